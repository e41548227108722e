//! Weights of a draw in memory that the thread has had before: a fresh vector of a large data set is fresh pages, which cost as much
//! as the weights in them.

use std::cell::RefCell;
use std::ops::Deref;

thread_local! {
    static SPARE: RefCell<Spare> = const { RefCell::new(Spare { vectors: Vec::new(), out: 0 }) };
}

/// Vectors of draws that are done.
struct Spare {
    vectors: Vec<Vec<f64>>,
    /// How many are in use: as many are kept when they come back. Others that come were made elsewhere, and nobody will ask for them.
    out: usize,
}

/// A vector of `n` numbers, whatever they are: one of a draw that is done, or a new one.
pub fn vector(n: usize) -> Vec<f64> {
    let fits = |spare: &Vec<f64>| spare.capacity() >= n && spare.capacity() <= 2 * n;
    let spare = SPARE.with_borrow_mut(|spare| {
        spare.out += 1;
        let found = spare.vectors.iter().rposition(fits);
        if found.is_none() {
            // Of other data: they will not come again.
            spare.vectors.clear();
        }
        found.map(|at| spare.vectors.swap_remove(at))
    });
    let mut vector = spare.unwrap_or_default();
    vector.resize(n, 0.0);
    vector
}

/// Numbers whose memory is kept for the next draw of this thread when they are dropped.
#[derive(Debug)]
pub struct Reused(Vec<f64>);

impl From<Vec<f64>> for Reused {
    fn from(vector: Vec<f64>) -> Reused {
        Reused(vector)
    }
}

impl Deref for Reused {
    type Target = [f64];

    fn deref(&self) -> &[f64] {
        &self.0
    }
}

impl Drop for Reused {
    fn drop(&mut self) {
        let vector = std::mem::take(&mut self.0);
        // A thread that ends has no use for it.
        let _ = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.out > 0 {
                spare.out -= 1;
                spare.vectors.push(vector);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_a_draw_serves_the_next() {
        let first = Reused::from(vector(1000));
        let place = first.as_ptr();
        drop(first);
        let second = vector(900);
        assert_eq!((second.as_ptr(), second.len()), (place, 900));
        drop(Reused::from(second));
        let small = Reused::from(vector(10));
        assert_eq!(small.len(), 10);
        SPARE.with_borrow(|spare| assert!(spare.vectors.is_empty(), "small ones do not sit in large ones"));
        drop((small, Reused::from(vec![0.0; 10])));
        SPARE.with_borrow(|spare| assert_eq!(spare.vectors.len(), 1, "what was made elsewhere is not kept"));
    }
}

//! The weights of the observed rows of a draw, a chunk at a time: those of a block of draws on many rows would take more memory than
//! the rows.

use super::weights;
use crate::kernel::Level;
use crate::kernel::exponentials::divide;
use crate::rng::{CHUNK, Seed};

/// Weights that are kept, or made again whenever they are asked for: the same bits.
#[derive(Clone, Copy, Debug)]
pub enum RowWeights<'f> {
    Kept(&'f [f64]),
    /// Of the Bayesian bootstrap: masses of a draw over their total.
    Drawn {
        seed: Seed,
        draw: u64,
        total: f64,
    },
    /// All alike.
    Even(f64),
}

impl RowWeights<'_> {
    /// Those of the rows of a chunk, the last of which is shorter.
    pub fn chunk(&self, chunk: usize, out: &mut [f64]) {
        match *self {
            RowWeights::Kept(w) => out.copy_from_slice(&w[chunk * CHUNK..][..out.len()]),
            RowWeights::Even(w) => out.fill(w),
            RowWeights::Drawn { seed, draw, total } => {
                weights::chunk(seed, draw, chunk as u64, out);
                divide(Level::current(), out, total);
            }
        }
    }
}

/// Where weights come from that are not kept yet.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source {
    /// A draw of the Bayesian bootstrap.
    Drawn(Seed, u64),
    Even(f64),
}

/// The sum of the masses of `n` rows in a draw: those of the chunks, added in order.
pub(super) fn total(n: usize, seed: Seed, draw: u64) -> f64 {
    let mut masses = [0.0; CHUNK];
    let of_chunk = |first: usize| {
        let rows = CHUNK.min(n - first);
        weights::chunk(seed, draw, (first / CHUNK) as u64, &mut masses[..rows])
    };
    (0..n).step_by(CHUNK).map(of_chunk).sum()
}

#[cfg(test)]
mod tests {
    use super::super::{Measure, Prior};
    use super::*;
    use crate::data::Dataset;

    #[test]
    fn weights_that_are_made_again_are_those_that_are_kept() {
        let data = Dataset::from_values(vec![0.5; 2 * CHUNK + 77]);
        let drawn = || Prior::Noninformative.posterior_draw(&data, Seed(4), 9);
        for (again, kept) in [(drawn(), drawn()), (Measure::empirical(&data), Measure::empirical(&data))] {
            let w = kept.weights().0;
            assert!(matches!(kept.row_weights(), RowWeights::Kept(_)));
            for source in [again.row_weights(), kept.row_weights()] {
                for c in [2, 0, 1] {
                    let mut out = vec![0.0; CHUNK.min(data.n() - c * CHUNK)];
                    source.chunk(c, &mut out);
                    assert_eq!(out, w[c * CHUNK..][..out.len()]);
                }
            }
            assert!(!matches!(again.row_weights(), RowWeights::Kept(_)), "nothing was kept of them");
        }
    }
}

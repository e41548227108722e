//! Random train/test split, anew for each repeat.

use rand::seq::SliceRandom;

use super::Dataset;
use crate::rng::Rng;

/// Puts `round(share · n)` random rows aside for testing, at least one on each side; both parts keep the order of
/// the file.
pub fn split(data: &Dataset, share: f64, rng: &mut Rng) -> (Dataset, Dataset) {
    let n = data.n();
    let n_test = ((share * n as f64).round() as usize).clamp(1.min(n), n.saturating_sub(1).max(1));
    let mut order: Vec<usize> = (0..n).collect();
    order.shuffle(rng);
    let (test, train) = order.split_at_mut(n_test.min(n));
    test.sort_unstable();
    train.sort_unstable();
    (data.select(train), data.select(test))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Seed};

    #[test]
    fn a_split_keeps_every_row_once() {
        let data = Dataset::from_values((0..101).map(f64::from).collect());
        let (train, test) = split(&data, 0.2, &mut Seed(3).stream(Purpose::Split, 0, 0));
        assert_eq!((train.n(), test.n()), (81, 20));
        let mut all: Vec<f64> = train.x.iter().chain(test.x.iter()).copied().collect();
        all.sort_unstable_by(f64::total_cmp);
        assert_eq!(all, (0..101).map(f64::from).collect::<Vec<_>>());
        let (_, other) = split(&data, 0.2, &mut Seed(4).stream(Purpose::Split, 0, 0));
        assert_ne!(test.x, other.x);
    }
}

//! The Monte Carlo error of a count: of how many posterior means lie within an interval (the predictive probabilities
//! above one half, the coefficients near zero).
//!
//! Leaving groups of draws out in turn does not answer this. Without a group a mean hardly moves, so that the count seldom
//! does, and where it does the jump is taken for a slope and blown up with the number of groups. Means are moved here by as much as
//! other draws would move them: let C(m) be the count at means m, and Z₁, Z₂ two independent Monte Carlo errors. Then
//! Var C = ½ E[C(m + Z₁) − C(m + Z₂)]², and Z₁, Z₂ = M ± D where M and D are independent, each with half the covariance
//! of Z₁. The means that were found stand for m + M; D is normal with a covariance estimated from groups of draws.

use std::ops::Range;

use rand::distr::Distribution;
use rand_distr::StandardNormal;

use crate::evaluate::Estimate;
use crate::rng::{Purpose, Seed};

/// Moves of all means, at least and at most: where there are many means, few moves tell the spread of their count.
const MOVES: Range<usize> = 100..1000;
/// Means times groups times moves that are not worth saving.
const CHEAP: usize = 1 << 28;
/// A mean farther than so many of its errors from both ends of the interval stays on its side.
const REACH: f64 = 4.0;

/// Counts means within an interval.
pub struct Tally {
    interval: Range<f64>,
    groups: usize,
    /// Independent normal numbers, one for each group and move; made when a mean is in reach.
    normals: Vec<f64>,
    /// Of each move, means within the interval after it less those within after the opposite move.
    differences: Vec<i64>,
    counted: usize,
    means: usize,
}

impl Tally {
    /// For `means` of them, from draws in `groups`.
    pub fn new(interval: Range<f64>, groups: usize, means: usize) -> Tally {
        let moves = (CHEAP / (groups * means).max(1)).clamp(MOVES.start, MOVES.end);
        Tally { interval, groups, normals: Vec::new(), differences: vec![0; moves], counted: 0, means: 0 }
    }

    /// Adds a mean; whether it counts, for an end of the interval may belong to it; and what each group adds to its error,
    /// numbers that sum to 0.
    pub fn add(&mut self, mean: f64, counts: bool, parts: &[f64]) {
        self.means += 1;
        self.counted += usize::from(counts);
        // Parts are deviations from their own mean.
        let unbiased = self.groups as f64 / (self.groups as f64 - 1.0);
        let error = (unbiased * parts.iter().map(|p| p * p).sum::<f64>()).sqrt();
        let Range { start, end } = self.interval;
        if (mean - start).abs().min((mean - end).abs()) < REACH * error {
            self.shift(mean, parts, (0.5 * unbiased).sqrt());
        }
    }

    fn shift(&mut self, mean: f64, parts: &[f64], scale: f64) {
        let moves = self.differences.len();
        if self.normals.is_empty() {
            let mut rng = Seed(0).stream(Purpose::Auxiliary, 0, 0);
            self.normals = (0..self.groups * moves).map(|_| StandardNormal.sample(&mut rng)).collect();
        }
        let mut by = vec![0.0; moves];
        for (part, normals) in parts.iter().zip(self.normals.chunks_exact(moves)) {
            by.iter_mut().zip(normals).for_each(|(by, z)| *by += scale * part * z);
        }
        let within = |mean: f64| i64::from(self.interval.start < mean && mean < self.interval.end);
        let moved = self.differences.iter_mut().zip(&by);
        moved.for_each(|(difference, by)| *difference += within(mean + by) - within(mean - by));
    }

    /// The count in per cent of the means; a single group cannot tell its error.
    pub fn percent(&self) -> Estimate {
        let squares: f64 = self.differences.iter().map(|&d| (d * d) as f64).sum();
        let error = (0.5 * squares / self.differences.len() as f64).sqrt();
        let percent = |count: f64| 100.0 * count / self.means as f64;
        let mcse = if self.groups > 1 { percent(error) } else { f64::NAN };
        Estimate { value: percent(self.counted as f64), mcse }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Means so many and so dense that their count moves in proportion: its error is that of a shared shift.
    #[test]
    fn many_means_that_move_together_have_the_error_of_the_move() {
        let (groups, means) = (40, 20_000);
        let mut rng = Seed(3).stream(Purpose::Auxiliary, 1, 0);
        let mut parts: Vec<f64> = (0..groups).map(|_| StandardNormal.sample(&mut rng)).collect();
        let centre = parts.iter().sum::<f64>() / groups as f64;
        parts.iter_mut().for_each(|p| *p = 0.001 * (*p - centre));
        let error = (parts.iter().map(|p| p * p).sum::<f64>() * 40.0 / 39.0).sqrt();
        let mut tally = Tally::new(0.5..f64::INFINITY, groups, means);
        for i in 0..means {
            let mean = (i as f64 + 0.5) / means as f64;
            tally.add(mean, mean > 0.5, &parts);
        }
        let Estimate { value, mcse } = tally.percent();
        assert_eq!(value, 50.0);
        // The spread of 335 moves is known to 4 %.
        assert!((mcse / (100.0 * error) - 1.0).abs() < 0.15, "{mcse}");
    }

    #[test]
    fn both_ends_of_the_interval_are_in_reach() {
        for mean in [-0.1, 0.1] {
            let mut tally = Tally::new(-0.1..0.1, 2, 1);
            tally.add(mean, false, &[0.01, -0.01]);
            let Estimate { value, mcse } = tally.percent();
            // On an end one of two opposite moves is within: ½ · 1² of the square of a mean.
            assert_eq!((value, mcse), (0.0, 100.0 * 0.5f64.sqrt()));
        }
        let mut alone = Tally::new(0.0..1.0, 1, 1);
        alone.add(0.5, true, &[0.0]);
        assert!(alone.percent().mcse.is_nan());
    }
}

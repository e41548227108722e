//! EM over rows that are mostly zeros, in many columns. Four things make it fast: only cells that are not zero are
//! visited; components are worked on in step; in many columns nearly every row belongs to one component, to all digits,
//! so that its share of the sums changes only when it moves to another; and to see that it does not, a pass visits only
//! the columns in which parameters have changed since the last.

mod expanded;
mod kept;
mod ledger;
mod rows;

pub use expanded::{Expanded, log_density};
pub use ledger::{Ledger, Moments, Opening, e_step};
pub use rows::SparseRows;

use super::vector::Line;

/// A row is settled on a component if no other comes nearer than this in log πₖNₖ: to rounding it has all of the row.
const SETTLED: f64 = 60.0;

/// The largest of the lanes, its place, and the second largest.
#[inline(always)]
fn top_two(lines: &[Line]) -> (f64, usize, f64) {
    let (mut max, mut at, mut second) = (f64::NEG_INFINITY, 0, f64::NEG_INFINITY);
    for (i, &value) in lines.iter().flat_map(|line| line.iter()).enumerate() {
        if value > max {
            (second, max, at) = (max, value, i);
        } else if value > second {
            second = value;
        }
    }
    (max, at, second)
}

#[cfg(test)]
mod tests {
    use super::ledger::OPEN;
    use super::*;
    use crate::kernel::{Level, available};
    use crate::math::log_sum_exp;
    use ndarray::Array2;
    use std::f64::consts::TAU;

    pub const N: usize = 720;
    pub const D: usize = 1100;

    /// Rows in ten clusters, one cell in ten not zero, every seventh column empty.
    pub fn rows() -> Array2<f64> {
        Array2::from_shape_fn((N, D), |(i, j)| {
            let own = j / 30 == i % 10 && (i + j) % 3 == 0;
            let filled = j % 7 != 0 && (own || (i * 31 + j * 17 + i * j) % 11 == 0);
            if filled { 0.2 + ((i * 7 + j * 3) % 11) as f64 / 10.0 } else { 0.0 }
        })
    }

    fn weights() -> Vec<f64> {
        (0..N).map(|i| (1 + (i * 5) % 7) as f64 / (4 * N) as f64).collect()
    }

    pub type Theta = (Vec<f64>, Vec<f64>, Vec<f64>);

    /// π, μ, σ²: component k is at `height` in the columns of cluster k + shift. Rows settle from about 0.4 on.
    pub fn mixture(k: usize, height: f64, shift: usize) -> Theta {
        let wave = |i: usize, a: f64| 0.01 * (i as f64 * a).sin();
        let mean = |i: usize| match (i % D) / 30 == (i / D + shift) % 10 {
            true => height,
            false => 0.05 + wave(i, 2.1),
        };
        let pi = (0..k).map(|c| 2.0 * (1 + c) as f64 / (k * (k + 1)) as f64).collect();
        (pi, (0..k * D).map(mean).collect(), (0..k * D).map(|i| 0.03 + wave(i, 0.7)).collect())
    }

    /// log πₖNₖ of every row and component, by the definition.
    fn log_joint_of(x: &Array2<f64>, (pi, mean, variance): &Theta) -> Vec<Vec<f64>> {
        let log_scale = |k: usize| variance[k * D..(k + 1) * D].iter().map(|v| (TAU * v).ln()).sum::<f64>();
        let log_scales: Vec<f64> = (0..pi.len()).map(log_scale).collect();
        let of = |y: ndarray::ArrayView1<f64>, k: usize| {
            let square = |j: usize| (y[j] - mean[k * D + j]).powi(2) / variance[k * D + j];
            pi[k].ln() - 0.5 * (log_scales[k] + (0..D).map(square).sum::<f64>())
        };
        x.outer_iter().map(|y| (0..pi.len()).map(|k| of(y, k)).collect()).collect()
    }

    pub fn expand(level: Level, (pi, mean, variance): &Theta) -> Expanded {
        Expanded::new(level, pi, mean, variance).expect("nothing cancels")
    }

    fn pass(level: Level, x: &Array2<f64>, mixture: &Expanded, thorough: bool, ledger: &mut Ledger) -> f64 {
        ledger.begin();
        e_step(level, &SparseRows::new(x.view()), &weights(), mixture, 0, thorough, ledger);
        ledger.end(mixture)
    }

    /// The largest difference of two sets of sums.
    fn distance(a: &Moments, b: &Moments) -> f64 {
        let all = |m: &Moments| m.mass.iter().chain(m.moments.as_flattened()).copied().collect::<Vec<_>>();
        all(a).iter().zip(&all(b)).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    }

    #[test]
    fn every_level_and_size_agrees_with_the_definition() {
        let (x, w) = (rows(), weights());
        for (k, height) in [1, 3, 8, 10, 17, 33].into_iter().flat_map(|k| [(k, 0.1), (k, 0.5)]) {
            let mut theta = mixture(k, height, 0);
            if k == 10 {
                theta.0[3] = 0.0;
            }
            let joint = log_joint_of(&x, &theta);
            let log_f: Vec<f64> = joint.iter().map(|l| log_sum_exp(l)).collect();
            let mut exact = Moments::new(k, D);
            for ((i, joint), c) in joint.iter().enumerate().flat_map(|r| (0..k).map(move |c| (r, c))) {
                let r = w[i] * (joint[c] - log_f[i]).exp();
                exact.mass[c] += r;
                for (j, moments) in exact.moments[c * D..(c + 1) * D].iter_mut().enumerate() {
                    *moments = [moments[0] + r * x[[i, j]], moments[1] + r * x[[i, j]] * x[[i, j]]];
                }
            }
            let log_lik: f64 = log_f.iter().zip(&w).map(|(l, w)| l * w).sum();
            for level in available() {
                let expanded = expand(level, &theta);
                let mut ledger = Ledger::new(k, D);
                let value = pass(level, &x, &expanded, true, &mut ledger);
                assert!((value - log_lik).abs() < 1e-11, "K {k}: {value}, not {log_lik}");
                assert!(distance(&ledger.sums, &exact) < 1e-12, "K {k}");
                let empty = (0..k).flat_map(|c| ledger.sums.of(c).iter().step_by(7));
                assert!(empty.into_iter().all(|moments| *moments == [0.0; 2]), "sums of zeros are exact");
                let mut out = vec![0.0; N];
                log_density(level, &SparseRows::new(x.view()), &expanded, &mut out);
                assert!(out.iter().zip(&log_f).all(|(a, b)| (a - b).abs() < 1e-10), "K {k}");
            }
        }
    }

    /// Rows that are settled, open, moving to another component, and coming back; long steps and short ones.
    #[test]
    fn a_ledger_gives_the_sums_of_a_first_pass_whatever_came_before() {
        let x = rows();
        let level = Level::current();
        let mut ledger = Ledger::new(10, D);
        let mut moved = 0;
        let steps = [(0.5, 0), (0.5003, 0), (0.501, 0), (0.5, 1), (0.3, 1), (0.3001, 1), (0.4, 2), (0.5, 0)];
        for (height, shift) in steps {
            let expanded = expand(level, &mixture(10, height, shift));
            let value = pass(level, &x, &expanded, true, &mut ledger);
            moved += ledger.moved();
            let mut fresh = Ledger::new(10, D);
            assert!((value - pass(level, &x, &expanded, true, &mut fresh)).abs() < 1e-11);
            assert!(distance(&ledger.sums, &fresh.sums) < 1e-14);
            assert_eq!(ledger.owners, fresh.owners);
        }
        assert!(moved > N / 2, "{moved}");
    }

    #[test]
    fn searches_that_share_their_first_pass_know_what_they_would_find_out_alone() {
        let x = rows();
        let sparse = SparseRows::new(x.view());
        let weights: Vec<Vec<f64>> = (1..=11)
            .map(|b| weights().iter().enumerate().map(|(i, w)| w * (1 + i % b) as f64).collect())
            .collect();
        let w: Vec<&[f64]> = weights.iter().map(|w| &w[..]).collect();
        for level in available() {
            let expanded = expand(level, &mixture(10, 0.4, 2));
            let opening = Opening::new(level, &sparse, &expanded);
            let moments = opening.moments(level, &sparse, 10, D, &w);
            assert_eq!(moments.len(), w.len());
            let mut shared = Ledger::new(10, D);
            for (w, moments) in w.iter().zip(moments) {
                let mut alone = Ledger::new(10, D);
                opening.begin(&mut shared, moments);
                let [a, b] = [&mut alone, &mut shared].map(|ledger| {
                    ledger.begin();
                    e_step(level, &sparse, w, &expanded, 0, true, ledger);
                    ledger.end(&expanded)
                });
                assert!(a == b && alone.owners == shared.owners && alone.sums == shared.sums, "{level:?}");
                assert_eq!(shared.moved(), 0);
            }
        }
    }

    #[test]
    fn a_pass_over_open_rows_is_a_whole_one_if_no_settled_row_moves_and_a_bound_if_one_does() {
        let x = rows();
        let level = Level::current();
        let theta = mixture(10, 0.4, 2);
        let mut ledger = Ledger::new(10, D);
        pass(level, &x, &expand(level, &theta), true, &mut ledger);
        let open = ledger.owners[0].iter().filter(|&&o| o == OPEN).count();
        assert!((N / 15..N - N / 15).contains(&open), "{open} rows are open");
        let near = expand(level, &(theta.0, theta.1.iter().map(|m| m + 1e-9).collect(), theta.2));
        let far = expand(level, &mixture(10, 0.5, 1));
        for (mixture, moves) in [(&near, false), (&far, true)] {
            let mut open_only = ledger.clone();
            let value = pass(level, &x, mixture, false, &mut open_only);
            let mut thorough = ledger.clone();
            let exact = pass(level, &x, mixture, true, &mut thorough);
            assert_eq!(thorough.moved() > 0, moves);
            match moves {
                false => assert!(
                    (value - exact).abs() < 1e-11 && distance(&open_only.sums, &thorough.sums) < 1e-13
                ),
                true => assert!(value < exact - 1.0, "{value} should be well below {exact}"),
            }
        }
    }

    #[test]
    fn avx2_and_avx512_give_the_same_bits() {
        let x = rows();
        let bits: Vec<Vec<u64>> = available()
            .filter(|&l| l != Level::PLAIN)
            .map(|level| {
                let mut ledger = Ledger::new(10, D);
                let value = pass(level, &x, &expand(level, &mixture(10, 0.4, 2)), true, &mut ledger);
                let sums = ledger.sums.moments.as_flattened().iter().chain(&ledger.sums.mass);
                sums.chain([&value]).map(|v| v.to_bits()).collect()
            })
            .collect();
        assert!(bits.windows(2).all(|pair| pair[0] == pair[1]));
    }

    #[test]
    fn squares_that_would_cancel_are_not_multiplied_out() {
        let (pi, mut mean, mut variance) = mixture(3, 0.1, 0);
        (mean[D], variance[D]) = (1.0, 1e-8);
        assert!(Expanded::new(Level::current(), &pi, &mean, &variance).is_some());
        variance[D] = 1e-10;
        assert!(Expanded::new(Level::current(), &pi, &mean, &variance).is_none());
        mean[D] = f64::NAN;
        assert!(Expanded::new(Level::current(), &pi, &mean, &variance).is_none());
    }
}

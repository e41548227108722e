//! From ℝᵈ to the support of θ: the identity, the exponential for what is positive, the logistic function for what lies between 0
//! and 1, exponentials of the steps of what is increasing, and stick-breaking for a simplex, whose point 0 is uniform (the
//! transforms of Stan).

use super::{Block, Support};
use crate::math::softplus;

/// The transform of all blocks of a parameter.
pub struct Transform {
    blocks: Vec<Block>,
}

/// Mixtures with covariance matrices refuse conventional Bayes for want of a prior, and search without a transform.
const NO_MATRIX: &str = "no density of θ has a covariance matrix";

fn logistic(x: f64) -> f64 {
    let e = libm::exp(-x.abs());
    if x >= 0.0 { 1.0 / (1.0 + e) } else { e / (1.0 + e) }
}

/// What a stick's coordinate is shifted by: with it 0 breaks off one part of those still to come.
fn shift(parts: usize) -> f64 {
    -libm::log((parts - 1) as f64)
}

impl Transform {
    pub fn new(blocks: Vec<Block>) -> Transform {
        Transform { blocks }
    }

    /// Coordinates of a block: a simplex has one less than entries.
    fn width(block: &Block) -> usize {
        block.range.len() - usize::from(block.support == Support::Simplex)
    }

    pub fn dim(&self) -> usize {
        self.blocks.iter().map(Self::width).sum()
    }

    fn len(&self) -> usize {
        self.blocks.iter().map(|b| b.range.len()).sum()
    }

    /// Each block with the place of its first coordinate.
    fn places(&self) -> impl Iterator<Item = (usize, &Block)> {
        self.blocks.iter().scan(0, |next, block| {
            let at = *next;
            *next += Self::width(block);
            Some((at, block))
        })
    }

    /// θ, and the log of the Jacobian determinant.
    pub fn constrain(&self, u: &[f64]) -> (Vec<f64>, f64) {
        let mut theta = vec![0.0; self.len()];
        let mut log_jacobian = 0.0;
        for (at, block) in self.places() {
            let u = &u[at..at + Self::width(block)];
            let theta = &mut theta[block.range.clone()];
            match block.support {
                Support::Real | Support::Location => theta.copy_from_slice(u),
                Support::Positive | Support::Scale | Support::Variance => {
                    theta.iter_mut().zip(u).for_each(|(t, u)| *t = libm::exp(*u));
                    log_jacobian += u.iter().sum::<f64>();
                }
                Support::Covariance(_) => unreachable!("{NO_MATRIX}"),
                Support::Unit => {
                    theta.iter_mut().zip(u).for_each(|(t, u)| *t = logistic(*u));
                    log_jacobian -= u.iter().map(|u| softplus(*u) + softplus(-u)).sum::<f64>();
                }
                Support::Ordered => {
                    let mut last = 0.0;
                    for (k, (t, u)) in theta.iter_mut().zip(u).enumerate() {
                        last += if k == 0 { *u } else { libm::exp(*u) };
                        *t = last;
                    }
                    log_jacobian += u.iter().skip(1).sum::<f64>();
                }
                Support::Simplex => {
                    let parts = theta.len();
                    let mut log_rest = 0.0;
                    for (k, u) in u.iter().enumerate() {
                        let v = u + shift(parts - k);
                        let (log_share, log_other) = (-softplus(-v), -softplus(v));
                        theta[k] = libm::exp(log_rest + log_share);
                        log_jacobian += log_rest + log_share + log_other;
                        log_rest += log_other;
                    }
                    theta[parts - 1] = libm::exp(log_rest);
                }
            }
        }
        (theta, log_jacobian)
    }

    /// The derivatives by u of a function of θ plus the log Jacobian, from those by θ, or by log θ where it is positive
    /// or on a simplex.
    pub fn pull_back_density(&self, u: &[f64], by_theta: &[f64], by_u: &mut [f64]) {
        self.chain(u, by_theta, 1.0, by_u);
    }

    /// The same without the log Jacobian.
    pub fn pull_back(&self, u: &[f64], by_theta: &[f64], by_u: &mut [f64]) {
        self.chain(u, by_theta, 0.0, by_u);
    }

    /// With so much of the log Jacobian.
    fn chain(&self, u: &[f64], by_theta: &[f64], jacobian: f64, by_u: &mut [f64]) {
        for (at, block) in self.places() {
            let width = Self::width(block);
            let (u, by_u) = (&u[at..at + width], &mut by_u[at..at + width]);
            let by_theta = &by_theta[block.range.clone()];
            match block.support {
                Support::Real | Support::Location => by_u.copy_from_slice(by_theta),
                Support::Positive | Support::Scale | Support::Variance => {
                    by_u.iter_mut().zip(by_theta).for_each(|(u, t)| *u = t + jacobian);
                }
                Support::Covariance(_) => unreachable!("{NO_MATRIX}"),
                Support::Unit => {
                    for ((by_u, by_theta), u) in by_u.iter_mut().zip(by_theta).zip(u) {
                        let (t, other) = (logistic(*u), logistic(-u));
                        *by_u = by_theta * t * other + jacobian * (other - t);
                    }
                }
                Support::Ordered => {
                    // A coordinate moves its entry and all after it.
                    let mut by_rest = 0.0;
                    for k in (0..width).rev() {
                        by_rest += by_theta[k];
                        by_u[k] = if k == 0 { by_rest } else { by_rest * libm::exp(u[k]) + jacobian };
                    }
                }
                Support::Simplex => {
                    // From the last stick back: what a change of the log of the rest would do.
                    let mut by_log_rest = by_theta[width];
                    for k in (0..width).rev() {
                        let share = logistic(u[k] + shift(width + 1 - k));
                        let of_jacobian = 2.0 * jacobian * share;
                        by_u[k] = by_theta[k] * (1.0 - share) - by_log_rest * share + jacobian - of_jacobian;
                        by_log_rest += by_theta[k] + jacobian;
                    }
                }
            }
        }
    }

    /// The coordinates of θ. An entry on the border of its support is moved inside.
    pub fn unconstrain(&self, theta: &[f64]) -> Vec<f64> {
        let mut u = vec![0.0; self.dim()];
        for (at, block) in self.places() {
            let width = Self::width(block);
            let (u, theta) = (&mut u[at..at + width], &theta[block.range.clone()]);
            match block.support {
                Support::Real | Support::Location => u.copy_from_slice(theta),
                Support::Positive | Support::Scale | Support::Variance => {
                    u.iter_mut().zip(theta).for_each(|(u, t)| *u = libm::log(t.max(f64::MIN_POSITIVE)));
                }
                Support::Covariance(_) => unreachable!("{NO_MATRIX}"),
                Support::Unit => {
                    for (u, t) in u.iter_mut().zip(theta) {
                        let inside = t.clamp(1e-12, 1.0 - 1e-12);
                        *u = libm::log(inside) - libm::log1p(-inside);
                    }
                }
                Support::Ordered => {
                    for (k, u) in u.iter_mut().enumerate() {
                        let above = |k: usize| (theta[k] - theta[k - 1]).max(f64::MIN_POSITIVE);
                        *u = if k == 0 { theta[0] } else { libm::log(above(k)) };
                    }
                }
                Support::Simplex => {
                    let inside: Vec<f64> = theta.iter().map(|t| t.max(1e-12)).collect();
                    for (k, u) in u.iter_mut().enumerate() {
                        let rest: f64 = inside[k + 1..].iter().sum();
                        *u = libm::log(inside[k] / rest) - shift(width + 1 - k);
                    }
                }
            }
        }
        u
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    fn transform() -> Transform {
        Transform::new(vec![
            Block { name: "pi".into(), range: 0..4, support: Support::Simplex },
            Block { name: "mu".into(), range: 4..6, support: Support::Location },
            Block { name: "sigma2".into(), range: 6..8, support: Support::Positive },
            Block { name: "p".into(), range: 8..10, support: Support::Unit },
            Block { name: "cut".into(), range: 10..13, support: Support::Ordered },
        ])
    }

    /// Cut points come back, their order kept, and derivatives of f(θ) = Σ cᵢ θᵢ² and of the Jacobian are pulled back.
    #[test]
    fn cut_points_stay_in_order() {
        let t = Transform::new(vec![Block { name: "cut".into(), range: 0..3, support: Support::Ordered }]);
        let c = [0.7, -1.3, 2.0];
        let value = |u: &[f64]| {
            let (theta, log_jacobian) = t.constrain(u);
            theta.iter().zip(c).map(|(t, c)| c * t * t).sum::<f64>() + log_jacobian
        };
        for u in [[0.0, 0.0, 0.0], [-1.0, 0.4, -2.0]] {
            let (theta, _) = t.constrain(&u);
            assert!(
                theta.is_sorted() && t.unconstrain(&theta).iter().zip(u).all(|(a, b)| (a - b).abs() < 1e-12)
            );
            let by_theta: Vec<f64> = theta.iter().zip(c).map(|(t, c)| 2.0 * c * t).collect();
            let mut by_u = [0.0; 3];
            t.pull_back_density(&u, &by_theta, &mut by_u);
            for (i, by_u) in by_u.iter().enumerate() {
                let moved = |by: f64| {
                    value(&std::array::from_fn::<f64, 3, _>(|k| u[k] + if k == i { by } else { 0.0 }))
                };
                let slope = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                assert!((slope - by_u).abs() < 1e-7, "{slope} {by_u}");
            }
        }
    }

    const D: usize = 12;
    const POINTS: [[f64; D]; 4] = [
        [0.0; D],
        [0.3, -1.2, 2.0, 0.5, -0.7, 1.1, -2.0, 0.6, -1.4, 0.2, -0.3, 0.9],
        [-4.0, 5.0, 0.1, 3.0, 2.0, 0.4, 0.2, -2.0, 3.0, -5.0, 1.0, 0.1],
        [1.9, 1.9, -1.9, -3.0, 0.0, -4.0, 3.0, 1.2, 0.0, 2.0, -1.0, -2.0],
    ];

    #[test]
    fn zero_is_uniform_and_the_way_back_is_exact() {
        let t = transform();
        let (theta, _) = t.constrain(&POINTS[0]);
        assert!(theta[..4].iter().all(|p| (p - 0.25).abs() < 1e-15), "{theta:?}");
        for u in POINTS {
            let (theta, _) = t.constrain(&u);
            assert!((theta[..4].iter().sum::<f64>() - 1.0).abs() < 1e-14);
            let back = t.unconstrain(&theta);
            assert!(back.iter().zip(u).all(|(a, b)| (a - b).abs() < 1e-10), "{back:?} for {u:?}");
        }
        let corner = t.unconstrain(&[1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 2.0, 2.0, 1.0]);
        assert!(corner.iter().all(|u| u.is_finite()), "{corner:?}");
    }

    /// The log Jacobian is that of the matrix of finite differences.
    #[test]
    fn the_jacobian_is_that_of_the_map() {
        let t = transform();
        // The last entry of the simplex follows from the others.
        let free = |theta: &[f64]| -> Vec<f64> { theta[..3].iter().chain(&theta[4..]).copied().collect() };
        let h = 1e-5;
        for u in POINTS {
            let (_, log_jacobian) = t.constrain(&u);
            let mut j = [[0.0f64; D]; D];
            for c in 0..D {
                let moved = |by: f64| {
                    let mut v = u;
                    v[c] += by;
                    free(&t.constrain(&v).0)
                };
                let (up, down) = (moved(h), moved(-h));
                (0..D).for_each(|r| j[r][c] = (up[r] - down[r]) / (2.0 * h));
            }
            // J is lower triangular.
            assert!((0..D).all(|r| (r + 1..D).all(|c| j[r][c].abs() < 1e-9)), "{j:?}");
            let log_det: f64 = (0..D).map(|i| j[i][i].abs().ln()).sum();
            assert!((log_det - log_jacobian).abs() < 1e-5, "{log_det} for {log_jacobian} at {u:?}");
        }
    }

    /// The pull-back of f(θ) = Σ cᵢ log θᵢ (positive and simplex) + Σ cᵢ θᵢ² (the others) against finite differences.
    #[test]
    fn derivatives_are_pulled_back() {
        let t = transform();
        let c = [0.7, -1.3, 2.0, 0.4, 1.0, -0.5, 0.8, -2.2, 1.5, -0.6, 0.3, -0.2, 0.9];
        let plain = [4, 5, 8, 9, 10, 11, 12];
        let value = |u: &[f64]| {
            let (theta, log_jacobian) = t.constrain(u);
            let logs = |i: usize| c[i] * libm::log(theta[i]);
            let f: f64 = [0, 1, 2, 3, 6, 7].map(logs).iter().sum();
            f + plain.map(|i| c[i] * theta[i] * theta[i]).iter().sum::<f64>() + log_jacobian
        };
        for u in POINTS {
            let (theta, _) = t.constrain(&u);
            let mut by_theta = c;
            plain.into_iter().for_each(|i| by_theta[i] *= 2.0 * theta[i]);
            let mut by_u = [0.0; D];
            t.pull_back_density(&u, &by_theta, &mut by_u);
            for i in 0..D {
                let moved = |by: f64| {
                    let mut v = u;
                    v[i] += by;
                    value(&v)
                };
                let slope = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                assert!((slope - by_u[i]).abs() < 1e-6 * (1.0 + slope.abs()), "{slope} {} at {u:?}", by_u[i]);
            }
        }
    }
}

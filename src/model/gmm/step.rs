//! The local search of the mixture: EM into the basin, Newton to its bottom.

use super::Gmm;
use super::newton::Direction;
use crate::kernel::mixture::{Sums, e_step, newton_step};
use crate::optim::{Minimum, Status};
use crate::process::Measure;

/// EM steps before the first Newton step, and after a refused one.
const EM_FIRST: usize = 12;
const EM_AGAIN: usize = 8;
/// A mixture with more parameters than this is left to EM: the Hessian would cost more than it saves.
const NEWTON_PARAMETERS: usize = 128;
/// EM whose steps shrink no faster than this is not extrapolated beyond it.
const SLOWEST_RATE: f64 = 0.9999;
/// Rounding noise of the objective, relative.
const NOISE: f64 = 1e-14;

/// A point of the search and the loss there.
struct Point {
    theta: Vec<f64>,
    value: f64,
}

impl Gmm {
    /// One pass over the atoms of F: fills `sums`, returns the objective at `theta`.
    pub(super) fn pass(&self, theta: &[f64], f: &Measure, newton: bool, sums: &mut Sums) -> f64 {
        let mixture = self.prepare(theta);
        sums.reset(self.k, self.d, newton);
        for atoms in f.atoms() {
            let pass = if newton { newton_step } else { e_step };
            pass(self.level, atoms.panel(), atoms.w, &mixture, sums);
        }
        self.penalty(theta) - sums.log_lik()
    }

    /// M step, eq. (E.7), from sums about the old parameters. Variances are clamped at the floor: the expected
    /// log likelihood is unimodal in each variance, so the clamp is its maximiser under the floor and EM stays
    /// monotone. The inverse-gamma penalty adds to numerator and denominator.
    pub(super) fn m_step(&self, theta: &[f64], sums: &Sums) -> Vec<f64> {
        let (k, d) = (self.k, self.d);
        let mut next = theta.to_vec();
        let em: Vec<Vec<f64>> = (0..k).map(|c| sums.em(c, d)).collect();
        let total: f64 = em.iter().map(|s| s[0]).sum();
        for (c, s) in em.iter().enumerate() {
            let mass = s[0];
            next[c] = mass / total;
            for j in 0..d {
                let (m, v) = (k + c * d + j, k + k * d + c * d + j);
                let sd = theta[v].sqrt();
                let (mut scatter, mut count) = (0.0, mass);
                if mass > 0.0 {
                    let shift = s[1 + j] / mass;
                    next[m] = theta[m] + sd * shift;
                    scatter = mass * theta[v] * (s[1 + d + j] / mass - shift * shift).max(0.0);
                }
                if let Some(p) = self.penalty {
                    scatter += 2.0 * p.scale;
                    count += 2.0 * p.shape;
                }
                if count > 0.0 {
                    next[v] = (scatter / count).max(self.floor);
                }
            }
        }
        next
    }

    pub(super) fn search(&self, f: &Measure, start: &[f64]) -> Minimum {
        let mut here = Point { theta: self.admissible(start), value: f64::INFINITY };
        let mut sums = Sums::default();
        let accelerate = self.change.is_none() && self.k * (1 + 2 * self.d) <= NEWTON_PARAMETERS;
        let mut em_left = if accelerate { EM_FIRST } else { usize::MAX };
        let mut em_again = EM_AGAIN;
        let mut trial = here.theta.clone();
        let mut after_newton = false;
        let mut drop = f64::INFINITY;
        for iteration in 1..=self.max_iterations {
            let newton = em_left == 0;
            let value = self.pass(&trial, f, newton, &mut sums);
            if after_newton && !(value <= here.value + NOISE * here.value.abs()) {
                // The Newton step went up: take it back and let EM work for a while.
                self.pass(&here.theta, f, false, &mut sums);
                trial = self.m_step(&here.theta, &sums);
                (em_left, em_again, after_newton) = (em_again, em_again * 2, false);
                continue;
            }
            if !value.is_finite() {
                return Minimum::failed(trial, iteration);
            }
            let previous_drop = std::mem::replace(&mut drop, here.value - value);
            here = Point { theta: trial, value };
            after_newton = false;
            if newton {
                match self.newton_direction(&here.theta, &sums) {
                    Direction::Step { step, decrement } => {
                        if self.mass * decrement <= self.tolerance * self.tolerance {
                            return self.end(here, &sums, iteration, Status::Ok);
                        }
                        trial = self.apply(&here.theta, &step);
                        after_newton = true;
                        continue;
                    }
                    Direction::Indefinite => (em_left, em_again) = (em_again, em_again * 2),
                }
            } else if self.em_has_converged(drop, previous_drop, here.value) {
                return self.end(here, &sums, iteration, Status::Ok);
            }
            trial = self.m_step(&here.theta, &sums);
            em_left = em_left.saturating_sub(1);
        }
        self.pass(&here.theta, f, false, &mut sums);
        let iterations = self.max_iterations;
        self.end(here, &sums, iterations, Status::MaxIter)
    }

    /// The authors' rule if `change` is set; otherwise what is left to gain, extrapolated from the last two steps of
    /// a linearly converging iteration: n · 2 (L − L*) is the squared distance in posterior standard deviations.
    fn em_has_converged(&self, drop: f64, previous_drop: f64, value: f64) -> bool {
        if let Some(change) = self.change {
            return drop < change;
        }
        if !previous_drop.is_finite() {
            return false;
        }
        if drop <= NOISE * value.abs() {
            return true;
        }
        let rate = (drop / previous_drop).clamp(0.0, SLOWEST_RATE);
        2.0 * self.mass * drop * rate / (1.0 - rate) <= self.tolerance * self.tolerance
    }

    /// The start within the constraints: variances not below the floor.
    fn admissible(&self, start: &[f64]) -> Vec<f64> {
        let mut theta = start.to_vec();
        theta[self.k + self.k * self.d..].iter_mut().for_each(|s| *s = s.max(self.floor));
        theta
    }

    fn end(&self, point: Point, sums: &Sums, iterations: usize, status: Status) -> Minimum {
        let collapsed = self.sigma2(&point.theta).iter().any(|&s| self.at_floor(s));
        let status = if status == Status::Ok && collapsed { Status::Collapsed } else { status };
        let gradient = self.gradient(&point.theta, sums).iter().fold(0.0f64, |m, g| m.max(g.abs()));
        Minimum { theta: point.theta, value: point.value, iterations, gradient, status }
    }
}

//! The local search of the mixture: EM into the basin, damped Newton steps to its bottom.

use super::Gmm;
use super::newton::System;
use crate::kernel::mixture::{Sums, e_step, newton_step};
use crate::optim::{Minimum, Status};
use crate::process::Measure;

/// EM steps before the first Newton step: enough that a search ends in the basin that EM alone would end in.
const EM_FIRST: usize = 30;
/// A mixture with more parameters than this is left to EM: the Hessian would cost more than it saves.
const NEWTON_PARAMETERS: usize = 128;
/// EM whose steps shrink no faster than this is not extrapolated beyond it.
const SLOWEST_RATE: f64 = 0.9999;
/// Rounding noise of the objective, relative.
const NOISE: f64 = 1e-14;

/// Damping of Newton steps: the first that is not zero, its factor up and down, and where it is hopeless.
const DAMPING_FIRST: f64 = 0.02;
const DAMPING_UP: f64 = 5.0;
const DAMPING_DOWN: f64 = 5.0;
const DAMPING_LEAST: f64 = 1e-3;
const DAMPING_MOST: f64 = 1e6;
/// Shares of the predicted decrease below which a step is called bad, and above which good.
const BAD: f64 = 0.25;
const GOOD: f64 = 0.75;

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
        // A component at infinity has no mass, so the loss alone would not tell.
        if start.iter().any(|t| !t.is_finite()) {
            return Minimum::failed(start.to_vec(), 0);
        }
        let mut sums = Sums::default();
        let accelerate = self.change.is_none() && self.k * (1 + 2 * self.d) <= NEWTON_PARAMETERS;
        let em = if accelerate { EM_FIRST.min(self.max_iterations) } else { self.max_iterations };
        let mut here = Point { theta: self.admissible(start), value: f64::INFINITY };
        let mut trial = here.theta.clone();
        let mut drop = f64::INFINITY;
        for iteration in 1..=em {
            let value = self.pass(&trial, f, false, &mut sums);
            if !value.is_finite() {
                return Minimum::failed(trial, iteration);
            }
            let previous_drop = std::mem::replace(&mut drop, here.value - value);
            here = Point { theta: trial, value };
            if self.em_has_converged(drop, previous_drop, value) {
                return self.end(here, &sums, iteration, Status::Ok);
            }
            trial = self.m_step(&here.theta, &sums);
        }
        if accelerate { self.newton(f, trial, em, sums) } else { self.end(here, &sums, em, Status::MaxIter) }
    }

    /// Newton steps from `start`, damped towards EM: with H the Hessian and D the information of the complete data,
    /// H s = −g is Newton's step and D s = −g is EM's, so (H + λD) s = −g goes from one to the other. λ rises where
    /// H is not positive definite or a step falls short of its promise; no accepted step goes up.
    fn newton(&self, f: &Measure, start: Vec<f64>, done: usize, mut sums: Sums) -> Minimum {
        let value = self.pass(&start, f, true, &mut sums);
        if !value.is_finite() {
            return Minimum::failed(start, done + 1);
        }
        let mut here = Point { theta: start, value };
        let mut system = System::new(self, &here.theta, &sums);
        let mut damping = 0.0;
        let mut iteration = done + 1;
        loop {
            let Some(step) =
                system.solve(&mut damping, |d| (d * DAMPING_UP).max(DAMPING_FIRST), DAMPING_MOST)
            else {
                // No step can be had, and no claim of convergence either.
                return self.end_at(here, &system, iteration, Status::MaxIter);
            };
            if self.mass * step.decrement <= self.tolerance * self.tolerance {
                return self.end_at(here, &system, iteration, Status::Ok);
            }
            if iteration >= self.max_iterations {
                return self.end_at(here, &system, iteration, Status::MaxIter);
            }
            iteration += 1;
            let trial = self.apply(&here.theta, &step.step);
            let value = self.pass(&trial, f, true, &mut sums);
            let gain = (here.value - value) / step.predicted;
            if value.is_nan() || value > here.value + NOISE * here.value.abs() {
                damping = (damping * DAMPING_UP).max(DAMPING_FIRST);
                if damping > DAMPING_MOST {
                    return self.end_at(here, &system, iteration, Status::Ok);
                }
                continue;
            }
            here = Point { theta: trial, value };
            system = System::new(self, &here.theta, &sums);
            if gain < BAD {
                damping = (damping * DAMPING_UP).max(DAMPING_FIRST);
            } else if gain > GOOD {
                damping /= DAMPING_DOWN;
                damping = if damping < DAMPING_LEAST { 0.0 } else { damping };
            }
        }
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
        let gradient = self.gradient(&point.theta, sums).iter().fold(0.0f64, |m, g| m.max(g.abs()));
        self.minimum(point, gradient, iterations, status)
    }

    fn end_at(&self, point: Point, system: &System, iterations: usize, status: Status) -> Minimum {
        self.minimum(point, system.largest_gradient(), iterations, status)
    }

    fn minimum(&self, point: Point, gradient: f64, iterations: usize, status: Status) -> Minimum {
        let collapsed = self.sigma2(&point.theta).iter().any(|&s| self.at_floor(s));
        let status = if status == Status::Ok && collapsed { Status::Collapsed } else { status };
        Minimum { theta: point.theta, value: point.value, iterations, gradient, status }
    }
}

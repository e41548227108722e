//! The local search of the mixture: EM into the basin, damped Newton steps to its bottom.

use super::Gmm;
use super::em::{Digits, EmSums, NOISE};
use super::newton::System;
use crate::kernel::sparse::{Moments, Opening};
use crate::model::Search;
use crate::optim::{Minimum, Status};
use crate::process::{Atoms, Measure};

/// EM steps before the first Newton step: enough that a search ends in the basin that EM alone would end in.
pub(super) const EM_FIRST: usize = 30;
/// A mixture with more parameters than this is left to EM and steps that are mixed of its: the Hessian would cost more than it saves.
const NEWTON_PARAMETERS: usize = 64;
/// Damping of Newton steps: the first that is not zero, its factor up and down, and where it is hopeless.
const DAMPING_FIRST: f64 = 0.02;
const DAMPING_UP: f64 = 5.0;
const DAMPING_DOWN: f64 = 5.0;
const DAMPING_LEAST: f64 = 1e-3;
const DAMPING_MOST: f64 = 1e6;
/// Shares of the predicted decrease below which a step is called bad, and above which good.
const BAD: f64 = 0.25;
const GOOD: f64 = 0.75;

/// What a pass in singles may be wrong by in the objective, and the gain of a step that is large beside it; both relative to
/// max(1, |L|).
const ROUGH_NOISE: f64 = 5e-7;
const ROUGH_GAIN: f64 = 2e-6;

/// A point of the search and the loss there.
#[derive(Clone)]
struct Point {
    theta: Vec<f64>,
    value: f64,
}

/// A point of Newton's method: the loss there, its derivatives, and how exact they are.
struct Stand {
    theta: Vec<f64>,
    value: f64,
    digits: Digits,
    system: System,
}

/// The atoms that all draws share but for the weights, unless there are no data.
fn first_atoms<'a>(search: &Search<'a>) -> Option<Atoms<'a>> {
    search.f.atoms().next()
}

impl Gmm {
    /// Searches from one start. Over sparse rows they share the first E step: their rows differ in weights alone.
    pub(super) fn search_all(&self, searches: &[Search]) -> Vec<Minimum> {
        let start = &searches[0].start;
        // A component at infinity has no mass, so the loss alone would not tell.
        if start.iter().any(|t| !t.is_finite()) {
            return searches.iter().map(|_| Minimum::failed(start.clone(), 0)).collect();
        }
        let start = self.admissible(start);
        let rows = first_atoms(&searches[0]).filter(|_| self.sparse).map(|atoms| atoms.x.sparse());
        let (Some(rows), Some(mixture)) = (rows, self.expand(&start)) else {
            return searches.iter().map(|s| self.search(s.f, &start, &mut EmSums::new(self))).collect();
        };
        let opening = Opening::new(self.level, rows, &mixture);
        let w: Vec<&[f64]> = searches.iter().filter_map(first_atoms).map(|atoms| atoms.w).collect();
        let moments = opening.moments(self.level, rows, self.k, self.d, &w);
        let mut sums = EmSums::new(self);
        let search = |(s, moments): (&Search, Moments)| {
            sums.after(&opening, moments);
            self.search(s.f, &start, &mut sums)
        };
        searches.iter().zip(moments).map(search).collect()
    }

    fn search(&self, f: &Measure, start: &[f64], sums: &mut EmSums) -> Minimum {
        let mut here = Point { theta: start.to_vec(), value: f64::INFINITY };
        let accelerate = self.change.is_none() && self.k * (1 + 2 * self.d) <= NEWTON_PARAMETERS;
        if accelerate && self.max_iterations > EM_FIRST {
            let mut theta = here.theta;
            for _ in 0..EM_FIRST {
                self.blind_pass(&theta, f, sums);
                self.m_step(&mut theta, sums);
            }
            return self.newton(f, theta, EM_FIRST, sums);
        }
        // Over sparse rows a pass knows what the one before it has left alone, and steps that add to variances may go up.
        let mixes = self.change.is_none() && !self.sparse && self.added == 0.0 && self.k > 1;
        if mixes && self.max_iterations > EM_FIRST {
            return self.mix(f, here.theta, sums);
        }
        let em = self.max_iterations;
        let mut trial = here.theta.clone();
        let mut drop = f64::INFINITY;
        // Once a thorough pass has found all settled rows where they were, EM runs ahead with the open rows alone until
        // they have converged. If the next thorough pass finds a settled row elsewhere, EM would have gone another way:
        // the search goes back to where it ran ahead from, and does so no more.
        let mut ahead_from: Option<(Point, Vec<f64>, f64)> = None;
        let (mut thorough, mut may_run_ahead) = (true, self.change.is_none());
        for iteration in 1..=em {
            // The last word is never an upper bound.
            thorough |= iteration == em;
            let value = self.em_pass(&trial, f, thorough, sums);
            if !value.is_finite() {
                return Minimum::failed(trial, iteration);
            }
            let unmoved = thorough && sums.settled_rows_unmoved();
            if thorough
                && !unmoved
                && iteration < em
                && let Some(back) = ahead_from.take()
            {
                (here, trial, drop) = back;
                may_run_ahead = false;
                continue;
            }
            let previous_drop = std::mem::replace(&mut drop, here.value - value);
            here = Point { theta: trial, value };
            let converged = self.em_has_converged(drop, previous_drop, value);
            if converged && thorough {
                return self.end(here.theta, here.value, sums, iteration, Status::Ok);
            }
            trial = here.theta.clone();
            self.m_step(&mut trial, sums);
            if unmoved && may_run_ahead && drop.is_finite() {
                ahead_from = Some((here.clone(), trial.clone(), drop));
            }
            thorough = converged || ahead_from.is_none();
        }
        self.end(here.theta, here.value, sums, em, Status::MaxIter)
    }

    /// Newton steps from `start`, damped towards EM: with H the Hessian and D the information of the complete data,
    /// H s = −g is Newton's step and D s = −g is EM's, so (H + λD) s = −g goes from one to the other. λ rises where
    /// H is not positive definite or a step falls short of its promise; no accepted step goes up.
    ///
    /// Passes are in singles while steps gain more than those can overlook. The last word is in doubles.
    fn newton(&self, f: &Measure, start: Vec<f64>, done: usize, sums: &mut EmSums) -> Minimum {
        let mut here = self.stand(start, f, Digits::Singles, sums);
        if !here.value.is_finite() {
            return Minimum::failed(here.theta, done + 1);
        }
        let mut damping = 0.0;
        let mut iteration = done + 1;
        loop {
            let raise = |d: f64| (d * DAMPING_UP).max(DAMPING_FIRST);
            let step = here.system.solve(&mut damping, raise, DAMPING_MOST);
            let next = match step {
                // No step can be had, and no claim of convergence either.
                None => Err(Status::MaxIter),
                Some(step) if self.mass * step.decrement <= self.tolerance * self.tolerance => {
                    Err(Status::Ok)
                }
                Some(_) if iteration >= self.max_iterations => Err(Status::MaxIter),
                Some(step) => Ok(step),
            };
            let rough = here.digits == Digits::Singles;
            let step = match next {
                Ok(step) => step,
                Err(_) if rough => {
                    here = self.stand(here.theta, f, Digits::Doubles, sums);
                    continue;
                }
                Err(status) => {
                    let gradient = here.system.largest_gradient();
                    return self.minimum(here.theta, here.value, gradient, iteration, status);
                }
            };
            iteration += 1;
            let scale = here.value.abs().max(1.0);
            let digits =
                if rough && step.predicted > ROUGH_GAIN * scale { Digits::Singles } else { Digits::Doubles };
            let noise = if rough { ROUGH_NOISE * scale } else { NOISE * here.value.abs() };
            let trial = self.stand(self.apply(&here.theta, &step.step), f, digits, sums);
            if trial.value.is_nan() || trial.value > here.value + noise {
                damping = raise(damping);
                if rough {
                    here = self.stand(here.theta, f, Digits::Doubles, sums);
                }
                continue;
            }
            let gain = (here.value - trial.value) / step.predicted;
            here = trial;
            if gain < BAD {
                damping = raise(damping);
            } else if gain > GOOD {
                damping /= DAMPING_DOWN;
                damping = if damping < DAMPING_LEAST { 0.0 } else { damping };
            }
        }
    }

    fn stand(&self, theta: Vec<f64>, f: &Measure, digits: Digits, sums: &mut EmSums) -> Stand {
        let (value, digits) = self.newton_pass(&theta, f, digits, sums);
        let system = System::new(self, &theta, &sums.panel);
        Stand { theta, value, digits, system }
    }

    /// The start within the constraints: variances not below the floor.
    pub(super) fn admissible(&self, start: &[f64]) -> Vec<f64> {
        let mut theta = start.to_vec();
        theta[self.k + self.k * self.d..].iter_mut().for_each(|s| *s = s.max(self.floor));
        theta
    }

    pub(super) fn end(
        &self,
        theta: Vec<f64>,
        value: f64,
        sums: &EmSums,
        iterations: usize,
        status: Status,
    ) -> Minimum {
        let gradient = self.gradient(&theta, |c| self.standardised(&theta, sums, c));
        let gradient = gradient.iter().fold(0.0f64, |m, g| m.max(g.abs()));
        self.minimum(theta, value, gradient, iterations, status)
    }

    fn minimum(
        &self,
        theta: Vec<f64>,
        value: f64,
        gradient: f64,
        iterations: usize,
        status: Status,
    ) -> Minimum {
        let collapsed = self.sigma2(&theta).iter().any(|&s| self.at_floor(s));
        let status = if status == Status::Ok && collapsed { Status::Collapsed } else { status };
        Minimum { theta, value, iterations, gradient, status }
    }
}

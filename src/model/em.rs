//! EM, and Anderson's mixing of its steps: for mixtures that have an E step, an M step and no Hessian.
//!
//! An EM step is f = −D⁻¹g, with g the gradient of the loss and D the information of the complete data. What remains of the way
//! to the minimum, −H⁻¹g, is found from how f has changed along the last steps (Walker and Ni 2011, in the norm of D). No step that
//! raises the loss is taken: plain EM takes its place (Henderson and Varadhan 2019).

use ndarray::{Array1, Array2};

use super::Context;
use crate::linalg::solve_spd;
use crate::math::{dot, largest};
use crate::optim::{Minimum, Status};

/// EM steps before the first that is mixed: enough that a search ends in the basin that EM alone would end in.
const EM_FIRST: usize = 30;
/// Steps that are remembered.
const MEMORY: usize = 10;
/// No mixed step is longer than this in the norm of D: longer ones jump out of the basin.
const LONGEST: f64 = 0.3;
/// Rounding noise of the objective, relative.
const NOISE: f64 = 1e-14;
/// Ridge of the least-squares problem of mixing, relative to its largest diagonal entry.
const RIDGE: f64 = 1e-13;
/// Steps that must be remembered before what they say of the way that remains is believed.
const LEAST: usize = 3;
/// EM steps shrink no slower than by 1 − this from one to the next: what a single step says of the way that remains.
const SLOWEST: f64 = 1e-4;
/// Times that a mixed step out of bounds is halved towards the plain one.
const HALVINGS: usize = 3;

/// What EM knows of a mixture on its data.
pub trait Expectation {
    /// The loss at θ. What the M step needs is kept.
    fn e_step(&mut self, theta: &[f64]) -> f64;

    /// θ of the last E step becomes the minimiser of the expected loss of the complete data.
    fn m_step(&mut self, theta: &mut [f64]);

    /// What [`Expectation::measure`] needs of the information D at θ.
    fn metric(&self, theta: &[f64]) -> Vec<f64>;

    /// A step in coordinates in which D is the identity.
    fn measure(&self, metric: &[f64], step: &[f64]) -> Vec<f64>;

    /// θ within its bounds; false if it is far outside.
    fn admit(&self, theta: &mut [f64]) -> bool;

    /// θ sits on a singularity of the loss.
    fn is_collapsed(&self, theta: &[f64]) -> bool;
}

/// When EM ends.
#[derive(Clone, Copy, Debug)]
pub struct Em {
    /// n + α, which turns a loss into posterior standard deviations.
    pub mass: f64,
    pub tolerance: f64,
    /// Plain EM that ends when the objective changes by less.
    pub change: Option<f64>,
    pub max_iterations: usize,
}

/// A point of the search and the loss there.
struct Point {
    theta: Vec<f64>,
    value: f64,
}

/// The last steps: how θ changed, how f did, and how f did in the norm of D at some point before them.
struct Memory {
    metric: Vec<f64>,
    last: Option<(Vec<f64>, Vec<f64>, Vec<f64>)>,
    changes: Vec<(Vec<f64>, Vec<f64>, Vec<f64>)>,
}

fn minus(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

impl Memory {
    fn new(metric: Vec<f64>) -> Memory {
        Memory { metric, last: None, changes: Vec::new() }
    }

    /// Remembers f at θ.
    fn add(&mut self, theta: &[f64], f: &[f64], measured: Vec<f64>) {
        if let Some((theta0, f0, measured0)) = &self.last {
            self.changes.push((minus(theta, theta0), minus(f, f0), minus(&measured, measured0)));
            if self.changes.len() > MEMORY {
                self.changes.remove(0);
            }
        }
        self.last = Some((theta.to_vec(), f.to_vec(), measured));
    }

    /// The way that remains: f − Σ γ (Δθ + Δf), with γ the least-squares fit of the Δf to f.
    fn mixed(&self) -> Option<Vec<f64>> {
        let (_, f, measured) = self.last.as_ref()?;
        let m = self.changes.len();
        let mut gram = Array2::from_shape_fn((m, m), |(i, j)| dot(&self.changes[i].2, &self.changes[j].2));
        let ridge = RIDGE * gram.diag().iter().fold(0.0f64, |most, v| most.max(*v));
        gram.diag_mut().iter_mut().for_each(|v| *v += ridge);
        let right: Array1<f64> = self.changes.iter().map(|change| dot(&change.2, measured)).collect();
        let gamma = if m == 0 { right } else { solve_spd(&gram, &right)? };
        let mut step = f.clone();
        for (gamma, (by_theta, by_f, _)) in gamma.iter().zip(&self.changes) {
            step.iter_mut().zip(by_theta).zip(by_f).for_each(|((s, t), f)| *s -= gamma * (t + f));
        }
        Some(step)
    }
}

impl Em {
    pub fn new(context: &Context) -> Em {
        Em {
            mass: context.mass,
            tolerance: context.optimiser.tolerance.get(),
            change: context.optimiser.change.map(|c| c.get()),
            max_iterations: context.optimiser.max_iterations.get(),
        }
    }

    /// A local minimum from `start`, which lies within the bounds.
    pub fn minimise(&self, start: &[f64], steps: &mut impl Expectation) -> Minimum {
        self.minimise_after(0, start, steps)
    }

    /// The same where so many EM steps have led to `start`.
    pub fn minimise_after(&self, done: usize, start: &[f64], steps: &mut impl Expectation) -> Minimum {
        // A component at infinity has no mass, so the loss alone would not tell.
        if start.iter().any(|t| !t.is_finite()) {
            return Minimum::failed(start.to_vec(), 0);
        }
        let here = Point { theta: start.to_vec(), value: steps.e_step(start) };
        if !here.value.is_finite() {
            return Minimum::failed(here.theta, done + 1);
        }
        let mut minimum = match self.change {
            Some(change) => self.plain(here, change, steps),
            None => self.mixing(done, here, steps),
        };
        if minimum.status == Status::Ok && steps.is_collapsed(&minimum.theta) {
            minimum.status = Status::Collapsed;
        }
        minimum
    }

    /// θ after an EM step, the step, and its norm in that of D.
    fn step(here: &Point, steps: &mut impl Expectation) -> (Vec<f64>, Vec<f64>, Vec<f64>, Vec<f64>) {
        let mut next = here.theta.clone();
        steps.m_step(&mut next);
        let f = minus(&next, &here.theta);
        let metric = steps.metric(&here.theta);
        let measured = steps.measure(&metric, &f);
        (next, f, metric, measured)
    }

    /// The authors' rule.
    fn plain(&self, mut here: Point, change: f64, steps: &mut impl Expectation) -> Minimum {
        for iteration in 1.. {
            if iteration == self.max_iterations {
                return end(here, iteration, Status::MaxIter, steps);
            }
            let mut theta = here.theta.clone();
            steps.m_step(&mut theta);
            let value = steps.e_step(&theta);
            if !value.is_finite() {
                return Minimum::failed(theta, iteration + 1);
            }
            let drop = here.value - value;
            here = Point { theta, value };
            if drop < change {
                return end(here, iteration + 1, Status::Ok, steps);
            }
        }
        unreachable!("there is a last iteration")
    }

    fn mixing(&self, done: usize, mut here: Point, steps: &mut impl Expectation) -> Minimum {
        let enough = self.tolerance * self.tolerance / self.mass.max(1.0);
        let mut memory: Option<Memory> = None;
        let mut iteration = done + 1;
        let mut still = 0;
        loop {
            let (plain, f, metric, measured) = Self::step(&here, steps);
            let length = dot(&measured, &measured);
            let mut mixed = None;
            // gᵀH⁻¹g, as far as it is known.
            let mut decrement = length / SLOWEST;
            if iteration >= EM_FIRST {
                let memory = memory.get_or_insert_with(|| Memory::new(metric.clone()));
                let by_memory = steps.measure(&memory.metric, &f);
                memory.add(&here.theta, &f, by_memory);
                if let Some(step) = memory.mixed().filter(|_| !memory.changes.is_empty()) {
                    let way = steps.measure(&metric, &step);
                    if memory.changes.len() >= LEAST {
                        decrement = decrement.min(length.max(dot(&measured, &way)));
                    }
                    mixed = Some(self.bounded(&here.theta, &plain, step, dot(&way, &way).sqrt(), steps));
                }
            }
            if decrement <= enough || still >= 2 {
                // An EM step more: at its end moments of the mixture are those of F.
                let value = steps.e_step(&plain);
                let lower = value <= here.value + NOISE * here.value.abs();
                let last = if lower { Point { theta: plain, value } } else { here };
                return end_at(last, largest(&measured), iteration + 1, Status::Ok);
            }
            if iteration >= self.max_iterations {
                return end_at(here, largest(&measured), iteration, Status::MaxIter);
            }
            let limit = here.value + NOISE * here.value.abs();
            let mut next = None;
            if let Some(theta) = mixed.flatten() {
                iteration += 1;
                let value = steps.e_step(&theta);
                next = (value <= limit).then_some(Point { theta, value });
                if next.is_none() {
                    memory = None;
                }
            }
            let next = match next {
                Some(next) => next,
                None => {
                    iteration += 1;
                    let value = steps.e_step(&plain);
                    Point { theta: plain, value }
                }
            };
            if !next.value.is_finite() {
                return Minimum::failed(next.theta, iteration);
            }
            still = if here.value - next.value <= NOISE * next.value.abs() { still + 1 } else { 0 };
            here = next;
        }
    }

    /// θ after a mixed step of this length, within bounds of length and of θ; `None` if it leads nowhere.
    fn bounded(
        &self,
        theta: &[f64],
        plain: &[f64],
        step: Vec<f64>,
        length: f64,
        steps: &impl Expectation,
    ) -> Option<Vec<f64>> {
        let mut share = if length > LONGEST { LONGEST / length } else { 1.0 };
        if !share.is_finite() {
            return None;
        }
        let far: Vec<f64> = theta.iter().zip(&step).map(|(t, s)| t + share * s).collect();
        share = 1.0;
        for _ in 0..=HALVINGS {
            let mut trial: Vec<f64> = plain.iter().zip(&far).map(|(p, t)| p + share * (t - p)).collect();
            if steps.admit(&mut trial) {
                return Some(trial);
            }
            share *= 0.5;
        }
        None
    }
}

/// The end of a search whose last E step was at `here`.
fn end(here: Point, iterations: usize, status: Status, steps: &mut impl Expectation) -> Minimum {
    let (_, _, _, measured) = Em::step(&here, steps);
    end_at(here, largest(&measured), iterations, status)
}

fn end_at(here: Point, gradient: f64, iterations: usize, status: Status) -> Minimum {
    Minimum { theta: here.theta, value: here.value, iterations, gradient, status }
}

//! Whether the curvature that a search works with is still worth having, and whether rounding lets it come any nearer.

use super::lbfgs::Settings;

/// Steps with one Hessian before their progress is judged.
const PATIENCE: usize = 10;

/// How far a search has come since its Hessian was made.
pub struct Progress {
    steps: usize,
    /// The largest gradient entry then; infinite before the first.
    steepest_then: f64,
}

impl Progress {
    pub fn new() -> Progress {
        Progress { steps: 0, steepest_then: f64::INFINITY }
    }

    /// No Hessian was made yet.
    pub fn is_first(&self) -> bool {
        self.steepest_then.is_infinite()
    }

    pub fn begin(&mut self, steepest: f64) {
        *self = Progress { steps: 0, steepest_then: steepest };
    }

    pub fn step(&mut self) {
        self.steps += 1;
    }

    pub fn has_moved(&self) -> bool {
        self.steps > 0
    }

    /// The gradient has shrunk so slowly that the rest of the way to `goal` would take more than `cost` steps.
    pub fn is_slow(&self, steepest: f64, goal: f64, cost: f64) -> bool {
        let rate = libm::log(self.steepest_then / steepest) / self.steps as f64;
        let ahead = libm::log(steepest / goal) / rate.max(0.0);
        self.steps >= PATIENCE && ahead > cost
    }
}

/// Steps in which a gradient that can shrink at all is halved.
const ENDURANCE: usize = 20;

/// Since when the gradient of a search has shrunk no further.
pub struct Stall {
    smallest: f64,
    steps: usize,
}

impl Stall {
    pub fn new() -> Stall {
        Stall { smallest: f64::INFINITY, steps: 0 }
    }

    /// At another point, whose step promises this gain: the search is at its minimum, and its gradient is rounding.
    pub fn is_over(&mut self, steepest: f64, gain: f64, settings: &Settings) -> bool {
        self.steps += 1;
        if steepest <= 0.5 * self.smallest {
            (self.smallest, self.steps) = (steepest, 0);
        }
        self.steps >= ENDURANCE && settings.is_there(gain)
    }
}

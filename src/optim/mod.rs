//! What a local search is told and what it answers. No model is known here.

pub mod batch;
pub mod bfgs;
pub mod descent;
pub mod kinks;
pub mod lbfgs;
mod line_search;
mod progress;
pub mod truncated;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::{Count, Positive};

/// When a local search ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Optimiser {
    /// Distance to the minimum that is close enough, in posterior standard deviations: a search ends when
    /// √(n gᵀH⁻¹g), with gradient g and Hessian H of the weighted loss, is below it.
    #[serde(default = "Optimiser::default_tolerance")]
    pub tolerance: Positive,
    /// Iterations after which a search gives up with status `max_iter`.
    #[serde(default = "Optimiser::default_max_iterations")]
    pub max_iterations: Count,
    /// Plain, unaccelerated iterations that end when the objective changes by less than this in one of them, instead
    /// of `tolerance`. For comparisons: slow searches stop early under this rule. For logistic regression the change is
    /// relative to max(1, |objective|), and a gradient without an entry above 1e-5 ends a search too: 2.2e-9 is scipy's
    /// L-BFGS-B with its defaults.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<Positive>,
    /// Searches by mini-batches of rows (supplement C), for losses that have a gradient.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subsample: Option<descent::Subsample>,
}

impl Optimiser {
    fn default_tolerance() -> Positive {
        Positive::new(1e-3).expect("positive")
    }

    fn default_max_iterations() -> Count {
        Count::new(6000).expect("at least one")
    }
}

impl Default for Optimiser {
    fn default() -> Self {
        Optimiser {
            tolerance: Self::default_tolerance(),
            max_iterations: Self::default_max_iterations(),
            change: None,
            subsample: None,
        }
    }
}

/// How a local search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Converged.
    Ok,
    /// Converged to a singularity: a variance sits on its floor.
    Collapsed,
    /// Out of iterations.
    MaxIter,
    /// The loss was not a finite number.
    Failed,
    /// The responses of the weighted data are separable and nothing holds the coefficients: the loss has no minimum, only a
    /// direction.
    Separated,
    /// No search, but a trajectory of NUTS that met an energy error too large to trust.
    Divergent,
    /// Columns of the weighted data depend on each other and there is no penalty: the loss has no single minimum.
    Unidentified,
    /// No step lowered the loss, and its gradient is not small.
    Stuck,
    /// Every row, or all but as many as there are coefficients, is out of the reach of a loss that does not grow for ever: it is
    /// flat there.
    Flat,
}

impl Status {
    pub const ALL: [Status; 9] = [
        Status::Ok,
        Status::Collapsed,
        Status::MaxIter,
        Status::Failed,
        Status::Separated,
        Status::Divergent,
        Status::Unidentified,
        Status::Stuck,
        Status::Flat,
    ];

    /// The search ended where it meant to.
    pub fn converged(self) -> bool {
        matches!(self, Status::Ok | Status::Collapsed)
    }

    /// The search was left on its way: out of iterations, or without a step that goes down.
    pub fn is_on_its_way(self) -> bool {
        matches!(self, Status::MaxIter | Status::Stuck)
    }

    /// There is no minimum, or none was found: θ is where a search was left, and no draw.
    pub fn is_lost(self) -> bool {
        matches!(self, Status::Failed | Status::Separated | Status::Unidentified | Status::Flat)
    }

    /// How a search ended that made no further step, at a gradient this small or not.
    pub fn without_a_step(small: bool) -> Status {
        if small { Status::Ok } else { Status::Stuck }
    }

    /// The number that stands for it in a table of draws.
    pub fn code(self) -> f64 {
        f64::from(self as u8)
    }

    /// Whether a number from a table of draws stands for a draw that is lost.
    pub fn is_lost_code(code: f64) -> bool {
        Status::ALL.iter().any(|s| s.is_lost() && s.code() == code)
    }

    pub fn name(self) -> &'static str {
        match self {
            Status::Ok => "ok",
            Status::Collapsed => "collapsed",
            Status::MaxIter => "max_iter",
            Status::Failed => "failed",
            Status::Separated => "separated",
            Status::Divergent => "divergent",
            Status::Unidentified => "unidentified",
            Status::Stuck => "stuck",
            Status::Flat => "flat",
        }
    }
}

/// Where a local search ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Minimum {
    pub theta: Vec<f64>,
    /// The weighted loss at `theta`.
    pub value: f64,
    pub iterations: usize,
    /// Largest entry of the gradient, in the model's scale-free coordinates; 0 for a closed form.
    pub gradient: f64,
    pub status: Status,
}

impl Minimum {
    /// A minimum known in closed form.
    pub fn closed_form(theta: Vec<f64>, value: f64) -> Self {
        let finite = value.is_finite() && theta.iter().all(|t| t.is_finite());
        let status = if finite { Status::Ok } else { Status::Failed };
        Minimum { theta, value, iterations: 1, gradient: 0.0, status }
    }

    /// The same, failed where its loss or its parameters are not numbers: no such end is a minimum.
    pub fn sound(self) -> Self {
        let finite = self.value.is_finite() && self.theta.iter().all(|t| t.is_finite());
        let status = if finite || self.status.is_lost() { self.status } else { Status::Failed };
        Minimum { status, ..self }
    }

    /// A search that broke down.
    pub fn failed(theta: Vec<f64>, iterations: usize) -> Self {
        Minimum { theta, value: f64::NAN, iterations, gradient: f64::NAN, status: Status::Failed }
    }

    /// Lower is better; what is not a number, or failed, is never better.
    pub fn beats(&self, other: &Minimum) -> bool {
        match (self.status == Status::Failed || self.value.is_nan(), other.status == Status::Failed) {
            (true, _) => false,
            (false, true) => true,
            (false, false) => self.value < other.value || other.value.is_nan(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minimum(value: f64, status: Status) -> Minimum {
        Minimum { theta: vec![], value, iterations: 1, gradient: 0.0, status }
    }

    #[test]
    fn nothing_broken_ever_wins() {
        let good = minimum(1.0, Status::Ok);
        let nan = minimum(f64::NAN, Status::Ok);
        let failed = minimum(-5.0, Status::Failed);
        assert!(!nan.beats(&good) && !failed.beats(&good) && !failed.beats(&failed));
        assert!(good.beats(&nan) && good.beats(&failed));
        assert!(minimum(0.5, Status::MaxIter).beats(&good));
        assert!(!good.beats(&good), "a tie keeps the earlier restart");
    }
}

//! Logistic regression with a penalty: l = −y log η − (1 − y) log(1 − η) + γ g(β), η = σ(βᵀx + β₀), eq. (14). The
//! intercept is not penalised.

mod flaws;
mod ground;
mod joint;
mod metric;
mod objective;
mod rows;

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use ndarray::Array2;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Block, Context, Model, Response, Search, Support};
use crate::bayes::Joint;
use crate::config::{Gamma, Positive};
use crate::data::Dataset;
use crate::kernel::lanes::{along, dots};
use crate::kernel::logistic::{log_density, student_t, student_t_curvatures};
use crate::kernel::{Level, Line, Scalar};
use crate::optim::Minimum;
use crate::optim::lbfgs::{BlockObjective, Settings};
use crate::process::base::BernoulliResponse;
use crate::process::{BaseMeasure, Measure};
use flaws::{Observed, constant};
use ground::Ground;
use joint::RegressionJoint;
use metric::Shared;

pub const STARTER: &str = include_str!("../../../configs/starters/logistic.toml");

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// g(β), on the coefficients and not the intercept.
    pub penalty: Penalty,
    /// Strength γ of the penalty: a number, or "1/n". Left out: "1/n".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gamma: Option<Gamma>,
    /// What conventional Bayes makes of a Student-t penalty. Left out: "hierarchy" where it is possible. Other penalties
    /// are priors exp(−n γ g(β)) as they stand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ard: Option<Ard>,
}

/// The ARD prior of eq. (12) for conventional Bayes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ard {
    /// β ~ N(0, 1/λ) with precisions λ ~ Gamma(a, b) as parameters, as in the paper. Needs γ = "1/n".
    Hierarchy,
    /// λ integrated out: a Student-t prior on β.
    Marginal,
}

/// The penalty g(β).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Penalty {
    /// Σ (2a + 1)/2 log(1 + β²/2b): minus the log density of a Student-t, the marginal of the ARD prior of eq. (12).
    StudentT {
        /// Shape of the gamma prior on the precisions; 2a degrees of freedom.
        a: Positive,
        /// Rate of the gamma prior on the precisions; b/a is the squared scale.
        b: Positive,
    },
    /// Σ |β|.
    Lasso,
    /// Σ β²/2.
    Ridge,
    /// 0.
    None,
}

impl Config {
    /// Nothing holds the coefficients.
    pub fn is_free(&self) -> bool {
        self.penalty == Penalty::None || self.gamma.as_ref().is_some_and(|g| g.value(1.0) == 0.0)
    }

    pub fn build(&self, context: &Context) -> Result<Box<dyn Model>, Vec<(&'static str, String)>> {
        let Some(y) = &context.train.y else {
            return Err(vec![(
                "penalty",
                "cannot be used: the data have no response; give `data.target`".into(),
            )]);
        };
        if y.iter().any(|&y| y != 0.0 && y != 1.0) {
            return Err(vec![(
                "penalty",
                "cannot be used: the response must be 0 or 1; see `data.classes`".into(),
            )]);
        }
        let gamma = self.gamma.as_ref().map_or(context.one_over_n(), |g| g.value(context.one_over_n()));
        if context.alpha == 0.0 && constant(y) {
            let message = format!(
                "cannot help: every training response is {}, and the intercept, which has no penalty, then has no minimum; \
                 the data need responses of both classes",
                y[0]
            );
            return Err(vec![("penalty", message)]);
        }
        // Precisions are parameters if n γ = 1: the penalty is then minus the log prior that they leave.
        let possible = match self.penalty {
            Penalty::StudentT { a, b } if (gamma / context.one_over_n() - 1.0).abs() < 1e-9 => {
                Some([a.get(), b.get()])
            }
            _ => None,
        };
        if self.ard == Some(Ard::Hierarchy) && possible.is_none() {
            let message = "\"hierarchy\" is the prior behind a `student_t` penalty with γ = \"1/n\"";
            return Err(vec![("ard", message.into())]);
        }
        Ok(Box::new(Logistic {
            hierarchy: possible.filter(|_| self.ard != Some(Ard::Marginal)),
            columns: context.train.columns.clone(),
            penalty: if gamma == 0.0 { Penalty::None } else { self.penalty },
            gamma,
            mass: context.mass,
            tolerance: context.optimiser.tolerance.get(),
            change: context.optimiser.change.map(|c| c.get()),
            max_iterations: context.optimiser.max_iterations.get(),
            level: Level::current(),
            block: (WEIGHTS / y.len().max(1)).clamp(SMALLEST_BLOCK, BLOCK),
            metric: OnceLock::new(),
            prior: context.alpha > 0.0,
            observed: OnceLock::new(),
            stack: OnceLock::new(),
        }))
    }
}

/// Logistic regression on data of d columns. θ is β (d), then the intercept.
struct Logistic {
    columns: Vec<String>,
    penalty: Penalty,
    gamma: f64,
    /// a and b of the prior of λ, where conventional Bayes has λ among its parameters.
    hierarchy: Option<[f64; 2]>,
    mass: f64,
    tolerance: f64,
    change: Option<f64>,
    max_iterations: usize,
    level: Level,
    block: usize,
    /// Second-order information that all draws share.
    metric: OnceLock<Shared>,
    /// There are pseudo-samples.
    prior: bool,
    /// What the observed rows by themselves identify.
    observed: OnceLock<Observed>,
    /// The observed rows and those that pseudo-samples are taken from, where these are others that all draws share.
    stack: OnceLock<Dataset>,
}

/// Draws of a block: few lanes are idle while its last searches end. Fewer where rows are so many that the weights of all
/// would take more than a few dozen megabytes, but enough to share a pass.
const BLOCK: usize = 256;
const SMALLEST_BLOCK: usize = 32;
const WEIGHTS: usize = 1 << 22;
/// Largest gradient entry of a converged search, per unit of the tolerance: 10⁻⁹ by default, and the score identities hold
/// to this.
const GRADIENT: f64 = 1e-6;

impl Logistic {
    fn d(&self) -> usize {
        self.columns.len()
    }

    /// γ g(β) of every lane, its gradient added to `gradient`. The lasso's part is with the optimiser, which knows about
    /// kinks.
    fn penalise<T: Scalar<L>, const L: usize>(
        &self,
        beta: &[Line<T, L>],
        gradient: &mut [Line<T, L>],
    ) -> [f64; L] {
        match self.penalty {
            Penalty::StudentT { a, b } => {
                let scale = self.gamma * (2.0 * a.get() + 1.0);
                let sums = student_t(self.level, 2.0 * b.get(), scale, beta, gradient);
                sums.map(|sum| 0.5 * scale * sum)
            }
            Penalty::Ridge => {
                let before = gradient.to_vec();
                along(self.level, &before, [self.gamma; L], beta, gradient);
                dots(self.level, beta, beta).map(|sum| 0.5 * self.gamma * sum)
            }
            Penalty::Lasso | Penalty::None => [0.0; L],
        }
    }

    /// γ g″(β) of every lane where `exact`, else [`Logistic::majorant`].
    fn curvatures<T: Scalar<L>, const L: usize>(
        &self,
        beta: &[Line<T, L>],
        exact: [bool; L],
        out: &mut [Line<T, L>],
    ) {
        match self.penalty {
            Penalty::StudentT { a, b } => {
                let scale = self.gamma * (2.0 * a.get() + 1.0);
                student_t_curvatures(self.level, 2.0 * b.get(), scale, exact, beta, out);
            }
            _ => out.fill(Line([T::of(self.majorant(0.0)); L])),
        }
    }

    /// γ g′(β)/β: the curvature of the parabola that touches the penalty at ±β and lies above it elsewhere, for g is
    /// concave in β². At 0 it is the second derivative.
    fn majorant(&self, beta: f64) -> f64 {
        match self.penalty {
            Penalty::StudentT { a, b } => self.gamma * (2.0 * a.get() + 1.0) / (2.0 * b.get() + beta * beta),
            Penalty::Ridge => self.gamma,
            Penalty::Lasso | Penalty::None => 0.0,
        }
    }

    fn settings(&self) -> Settings {
        Settings {
            max_iterations: self.max_iterations,
            tolerance: self.tolerance,
            mass: self.mass,
            gradient: GRADIENT * self.tolerance,
            change: self.change,
            l1: if self.penalty == Penalty::Lasso { self.gamma } else { 0.0 },
            l1_len: self.d(),
        }
    }

    fn metric(&self, data: &Dataset) -> &Shared {
        self.metric.get_or_init(|| {
            if self.change.is_some() || self.penalty == Penalty::Lasso {
                Shared::Unknown
            } else {
                Shared::new(self, data)
            }
        })
    }

    /// The searches of draws that live on the same rows.
    fn minimise_on_the_same_rows(&self, searches: &[Search]) -> Vec<Minimum> {
        let (ground, responses) = Ground::new(self, searches.iter().map(|s| s.f));
        let starts = searches.iter().map(|s| s.start.clone()).collect();
        ground.objective(self, ground.shared(self), responses).minimise(starts)
    }
}

impl Model for Logistic {
    fn names(&self) -> Vec<String> {
        self.columns.iter().map(|c| format!("beta.{c}")).chain(["intercept".to_owned()]).collect()
    }

    fn blocks(&self) -> Vec<Block> {
        let d = self.d();
        vec![
            Block { name: "beta", range: 0..d, support: Support::Real },
            Block { name: "intercept", range: d..d + 1, support: Support::Real },
        ]
    }

    fn loss(&self, theta: &[f64], f: &Measure) -> f64 {
        let (ground, responses) = Ground::new(self, [f].into_iter());
        let mut objective = ground.objective(self, &Shared::Unknown, responses);
        let point = Array2::from_shape_vec((1, theta.len()), theta.to_vec()).expect("one row");
        let (mut value, mut gradient) = ([0.0], Array2::zeros((1, theta.len())));
        objective.evaluate(&[0], &point, &mut value, &mut gradient);
        let l1 = if self.penalty == Penalty::Lasso { self.gamma } else { 0.0 };
        value[0] + l1 * theta[..self.d()].iter().map(|b| b.abs()).sum::<f64>()
    }

    fn minimise(&self, f: &Measure, start: &[f64]) -> Minimum {
        self.minimise_block(&[Search { f, start: start.to_vec() }]).remove(0)
    }

    fn minimise_block(&self, searches: &[Search]) -> Vec<Minimum> {
        let alike = |a: &Search, b: &Search| a.f.shares_rows_with(b.f);
        let mut minima: Vec<Minimum> =
            searches.chunk_by(alike).flat_map(|searches| self.minimise_on_the_same_rows(searches)).collect();
        self.mark_flaws(searches, &mut minima);
        minima
    }

    fn block_size(&self) -> usize {
        self.block
    }

    fn flaws(&self, train: &Dataset) -> Option<Vec<(&'static str, String)>> {
        self.flaws_of(train)
    }

    fn is_likelihood(&self) -> bool {
        true
    }

    fn log_density(&self, theta: &[f64], at: &Dataset, out: &mut [f64]) -> bool {
        let Some(y) = &at.y else { return false };
        let y = y.as_slice().expect("responses are contiguous");
        log_density(self.level, at.panel_with_intercept(), theta, y, out);
        true
    }

    fn coefficients(&self) -> Option<Range<usize>> {
        Some(0..self.d())
    }

    fn response(&self) -> Option<Response> {
        Some(Response::Binary)
    }

    fn joint<'a>(&'a self, data: &'a Dataset) -> Result<Box<dyn Joint + 'a>, (&'static str, String)> {
        let y = data.y.as_ref().expect("checked with the model");
        let mass: Vec<f64> = (0..data.n()).map(|i| data.weight(i)).collect();
        let ones = mass.iter().zip(y).map(|(w, y)| w * y).collect();
        Ok(Box::new(RegressionJoint { model: self, data, mass, ones, hierarchy: self.hierarchy }))
    }

    fn sampling(&self, theta: &[f64], data: &Arc<Dataset>) -> Option<Box<dyn BaseMeasure>> {
        let beta = ndarray::ArrayView1::from(&theta[..self.d()]);
        let eta = |x: ndarray::ArrayView1<f64>| 1.0 / (1.0 + libm::exp(-x.dot(&beta) - theta[self.d()]));
        let eta = data.x.outer_iter().map(eta).collect();
        Some(Box::new(BernoulliResponse::new(eta, data.clone())))
    }
}

/// A regression on `d` columns, to test its parts.
#[cfg(test)]
fn test_model(d: usize, penalty: Penalty) -> Logistic {
    Logistic {
        columns: (0..d).map(|j| format!("x{j}")).collect(),
        penalty,
        gamma: 0.05,
        hierarchy: None,
        mass: 6.0,
        tolerance: 1e-3,
        change: None,
        max_iterations: 1000,
        level: Level::Plain,
        block: 16,
        metric: OnceLock::new(),
        prior: false,
        observed: OnceLock::new(),
        stack: OnceLock::new(),
    }
}

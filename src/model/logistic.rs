//! Logistic regression with a penalty: l = −y log η − (1 − y) log(1 − η) + γ g(β), η = σ(βᵀx + β₀), eq. (14). The
//! intercept is not penalised.

use std::ops::Range;
use std::sync::OnceLock;

use ndarray::linalg::general_mat_mul;
use ndarray::{Array1, Array2, Axis, s};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Block, Context, Model, Search, Support};
use crate::config::{Gamma, Positive};
use crate::data::Dataset;
use crate::kernel::Level;
use crate::kernel::logistic::loss_and_slope;
use crate::linalg::Cholesky;
use crate::optim::lbfgs::{BlockObjective, Preconditioner, Settings, minimise_block};
use crate::optim::{Minimum, Status};
use crate::process::Measure;

pub const STARTER: &str = include_str!("../../configs/starters/logistic.toml");

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// g(β), on the coefficients and not the intercept.
    pub penalty: Penalty,
    /// Strength γ of the penalty: a number, or "1/n". Left out: "1/n".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gamma: Option<Gamma>,
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
        let free = gamma == 0.0 || self.penalty == Penalty::None;
        if free && context.alpha == 0.0 && (y.sum() == 0.0 || y.sum() == y.len() as f64) {
            let message = "is needed: the response is constant, and without one the intercept has no minimum";
            return Err(vec![("penalty", message.into())]);
        }
        Ok(Box::new(Logistic {
            columns: context.train.columns.clone(),
            penalty: if gamma == 0.0 { Penalty::None } else { self.penalty },
            gamma,
            mass: context.mass,
            tolerance: context.optimiser.tolerance.get(),
            max_iterations: context.optimiser.max_iterations.get(),
            level: Level::current(),
            curvature: OnceLock::new(),
        }))
    }
}

/// Logistic regression on data of d columns. θ is β (d), then the intercept.
struct Logistic {
    columns: Vec<String>,
    penalty: Penalty,
    gamma: f64,
    mass: f64,
    tolerance: f64,
    max_iterations: usize,
    level: Level,
    /// The Hessian at the fit to the unweighted data, factored: second-order information for every draw.
    curvature: OnceLock<Option<Curvature>>,
}

/// Draws that share a pass over the rows.
const BLOCK: usize = 16;
/// Rows of a pass that are worked on together: their margins stay in the cache.
const TILE: usize = 512;
/// Beyond so many coefficients the Hessian is not formed.
const DENSE: usize = 1000;
/// Largest gradient entry of a converged search: the score identities hold to this.
const GRADIENT: f64 = 1e-9;

impl Logistic {
    fn d(&self) -> usize {
        self.columns.len()
    }

    /// γ g(β), its gradient added to `gradient`. The lasso's part is with the optimiser, which knows about kinks.
    fn penalise(&self, beta: &[f64], gradient: &mut [f64]) -> f64 {
        match self.penalty {
            Penalty::StudentT { a, b } => {
                let (a, b) = (a.get(), b.get());
                let mut sum = 0.0;
                for (beta, g) in beta.iter().zip(gradient) {
                    sum += libm::log1p(beta * beta / (2.0 * b));
                    *g += self.gamma * (2.0 * a + 1.0) * beta / (2.0 * b + beta * beta);
                }
                self.gamma * (a + 0.5) * sum
            }
            Penalty::Ridge => {
                beta.iter().zip(gradient).for_each(|(beta, g)| *g += self.gamma * beta);
                0.5 * self.gamma * beta.iter().map(|b| b * b).sum::<f64>()
            }
            Penalty::Lasso | Penalty::None => 0.0,
        }
    }

    /// Second derivative of the penalty, where it is positive.
    fn penalty_curvature(&self, beta: f64) -> f64 {
        match self.penalty {
            Penalty::StudentT { a, b } => {
                let (a, b) = (a.get(), b.get());
                let denominator = 2.0 * b + beta * beta;
                (self.gamma * (2.0 * a + 1.0) * (2.0 * b - beta * beta) / (denominator * denominator))
                    .max(0.0)
            }
            Penalty::Ridge => self.gamma,
            Penalty::Lasso | Penalty::None => 0.0,
        }
    }

    fn settings<'a>(&self, preconditioner: Option<&'a dyn Preconditioner>) -> Settings<'a> {
        Settings {
            max_iterations: self.max_iterations,
            tolerance: self.tolerance,
            mass: self.mass,
            gradient: GRADIENT,
            preconditioner,
            l1: if self.penalty == Penalty::Lasso { self.gamma } else { 0.0 },
            l1_len: self.d(),
        }
    }

    /// H₀ = Xᵀ diag(η(1 − η)/n) X + penalty at the fit to the unweighted data; `None` where it is too large to form, or
    /// where the optimiser cannot use it.
    fn curvature(&self, data: &Dataset) -> Option<&Curvature> {
        let built = self.curvature.get_or_init(|| {
            if self.d() > DENSE || self.penalty == Penalty::Lasso || data.n() == 0 {
                return None;
            }
            let f = Measure::empirical(data);
            let objective = Objective::new(self, &[&f]);
            let start = vec![0.0; self.d() + 1];
            let rough = Curvature::new(self, data, &start)?;
            let fit = minimise_block(&objective, vec![start], &self.settings(Some(&rough))).remove(0);
            Curvature::new(self, data, &fit.theta)
        });
        built.as_ref()
    }

    /// Rows whose margin is on the wrong side, or on none.
    fn separates(&self, theta: &[f64], f: &Measure) -> bool {
        let data = f.observed();
        let (mass, ones) = f.responses();
        let (beta, intercept) = theta.split_at(self.d());
        let beta = ndarray::ArrayView1::from(beta);
        let right = |(i, x): (usize, ndarray::ArrayView1<f64>)| {
            let margin = x.dot(&beta) + intercept[0];
            let (one, zero) = (ones[i] > 0.0, mass[i] - ones[i] > 1e-12 * mass[i]);
            (!one || margin > 0.0) && (!zero || margin < 0.0)
        };
        data.x.outer_iter().enumerate().all(right)
    }
}

/// The weighted losses of a block of draws on the same rows.
struct Objective<'a> {
    model: &'a Logistic,
    x: &'a Array2<f64>,
    /// Per draw: mass of each row, and the part of it with response 1.
    responses: Vec<(Vec<f64>, Vec<f64>)>,
}

impl<'a> Objective<'a> {
    fn new(model: &'a Logistic, block: &[&Measure<'a>]) -> Self {
        let x = &block[0].observed().x;
        Objective { model, x, responses: block.iter().map(|f| f.responses()).collect() }
    }
}

impl BlockObjective for Objective<'_> {
    /// Margins of a tile of rows for all draws are one matrix product, and so is its share of all gradients.
    fn evaluate(
        &self,
        active: &[usize],
        theta: &Array2<f64>,
        values: &mut [f64],
        gradients: &mut Array2<f64>,
    ) {
        let d = self.model.d();
        let beta = theta.slice(s![.., ..d]);
        gradients.fill(0.0);
        values.fill(0.0);
        let mut margins = Array2::zeros((active.len(), TILE));
        for (t, rows) in self.x.axis_chunks_iter(Axis(0), TILE).enumerate() {
            let range = t * TILE..t * TILE + rows.nrows();
            let mut tile = margins.slice_mut(s![.., ..rows.nrows()]);
            for (mut line, theta) in tile.outer_iter_mut().zip(theta.outer_iter()) {
                line.fill(theta[d]);
            }
            general_mat_mul(1.0, &beta, &rows.t(), 1.0, &mut tile);
            for (i, &draw) in active.iter().enumerate() {
                let (mass, ones) = &self.responses[draw];
                let line = margins.slice_mut(s![i, ..rows.nrows()]);
                let line = line.into_slice().expect("a line of margins is contiguous");
                values[i] +=
                    loss_and_slope(self.model.level, line, &mass[range.clone()], &ones[range.clone()]);
                gradients[[i, d]] += line.iter().sum::<f64>();
            }
            let tile = margins.slice(s![.., ..rows.nrows()]);
            general_mat_mul(1.0, &tile, &rows, 1.0, &mut gradients.slice_mut(s![.., ..d]));
        }
        for (i, mut gradient) in gradients.outer_iter_mut().enumerate() {
            let theta = theta.row(i);
            let beta = &theta.as_slice().expect("rows of a fresh array are contiguous")[..d];
            let gradient = gradient.as_slice_mut().expect("rows of a fresh array are contiguous");
            values[i] += self.model.penalise(beta, &mut gradient[..d]);
        }
    }
}

/// A factored Hessian.
struct Curvature {
    factor: Cholesky,
}

impl Curvature {
    fn new(model: &Logistic, data: &Dataset, theta: &[f64]) -> Option<Curvature> {
        let d = model.d();
        let (beta, intercept) = theta.split_at(d);
        let margins = data.x.dot(&Array1::from(beta.to_vec())) + intercept[0];
        let n = data.n() as f64;
        let weight = margins.mapv(|m| {
            let e = libm::exp(-m.abs());
            e / ((1.0 + e) * (1.0 + e)) / n
        });
        let weighted = &data.x * &weight.view().insert_axis(Axis(1));
        let mut h = Array2::zeros((d + 1, d + 1));
        h.slice_mut(s![..d, ..d]).assign(&data.x.t().dot(&weighted));
        let cross = weighted.sum_axis(Axis(0));
        h.slice_mut(s![d, ..d]).assign(&cross);
        h.slice_mut(s![..d, d]).assign(&cross);
        h[[d, d]] = weight.sum();
        for (j, beta) in beta.iter().enumerate() {
            h[[j, j]] += model.penalty_curvature(*beta);
        }
        // A direction without curvature would be given an infinite step.
        let largest = h.diag().iter().fold(0.0f64, |m, v| m.max(*v));
        h.diag_mut().mapv_inplace(|v| v + 1e-9 * largest);
        Some(Curvature { factor: Cholesky::new(&h)? })
    }
}

impl Preconditioner for Curvature {
    fn apply(&self, v: &[f64]) -> Vec<f64> {
        self.factor.solve(v)
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
        let objective = Objective::new(self, &[f]);
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
        let Some(first) = searches.first() else { return Vec::new() };
        let curvature = self.curvature(first.f.observed()).map(|c| c as &dyn Preconditioner);
        let measures: Vec<&Measure> = searches.iter().map(|s| s.f).collect();
        let objective = Objective::new(self, &measures);
        let starts = searches.iter().map(|s| s.start.clone()).collect();
        let mut minima = minimise_block(&objective, starts, &self.settings(curvature));
        if self.penalty == Penalty::None {
            for (minimum, search) in minima.iter_mut().zip(searches) {
                if minimum.status != Status::Failed && self.separates(&minimum.theta, search.f) {
                    minimum.status = Status::Separated;
                }
            }
        }
        minima
    }

    fn block_size(&self) -> usize {
        BLOCK
    }

    fn is_likelihood(&self) -> bool {
        true
    }

    fn log_density(&self, theta: &[f64], at: &Dataset, out: &mut [f64]) -> bool {
        let Some(y) = &at.y else { return false };
        let (beta, intercept) = theta.split_at(self.d());
        let beta = ndarray::ArrayView1::from(beta);
        for ((out, x), y) in out.iter_mut().zip(at.x.outer_iter()).zip(y) {
            let margin = x.dot(&beta) + intercept[0];
            let towards = if *y == 1.0 { margin } else { -margin };
            *out = towards.min(0.0) - libm::log1p(libm::exp(-towards.abs()));
        }
        true
    }

    fn coefficients(&self) -> Option<Range<usize>> {
        Some(0..self.d())
    }
}

//! Regression: a loss of a linear predictor with a penalty, l = A(η) − y η + h(y) + γ g(β), η = βᵀx + β₀; eq. (14) for the
//! logistic family. The intercept is not penalised. What is here is the same for all families: blocks of draws in step,
//! second-order information, rows of the prior, what the data identify, conventional Bayes.

mod flaws;
mod ground;
mod joint;
mod metric;
mod objective;
mod products;
mod rows;

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use ndarray::{Array2, ArrayView1};
use rand::distr::Distribution;
use rand_distr::StandardNormal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::predictor::{Canonical, Common, PenaltyWeight};
use super::{Block, Context, Model, Response, Sampled, Search, Support};
use crate::config::{Complaint, Gamma, NonNegative, Positive, brief, complaint};
use crate::data::Dataset;
use crate::data::design::Design;
use crate::kernel::regression::{Partition, log_density};
use crate::kernel::{LANES, Level, Line, Scalar};
use crate::model::Joint;
use crate::optim::lbfgs::Settings;
use crate::optim::{Minimum, Status};
use crate::penalty::{Penalty, Shape};
use crate::process::base::DrawnResponse;
use crate::process::{BaseMeasure, Measure, Pseudo};
use crate::rng::{CHUNK, Rng};
use flaws::{Observed, one_sided};
use ground::{Ground, LARGE};
use joint::RegressionJoint;
use metric::Shared;
use objective::{Objective, tile};

/// A family of densities exp(y η − A(η) − h(y)): all that a regression knows of its response.
pub trait Family: Partition + Sized {
    const RESPONSE: Response;
    /// The largest response, if there is one; the smallest is 0.
    const LARGEST: Option<f64>;

    /// A in plain numbers.
    fn partition(eta: f64) -> f64;

    /// A′ and A″/A′.
    fn slopes(eta: f64) -> [f64; 2];

    /// h is not 0.
    const HAS_CARRIER: bool = false;

    /// h(y).
    fn carrier(_y: f64) -> f64 {
        0.0
    }

    /// A response at η.
    fn sample(eta: f64, rng: &mut Rng) -> f64;

    /// Covariates from `rows`, and a response at the η of each.
    fn base(eta: Vec<f64>, rows: &Arc<Dataset>) -> Box<dyn BaseMeasure> {
        Box::new(DrawnResponse {
            covariates: rows.clone(),
            draw: Box::new(move |row, rng| Self::sample(eta[row], rng)),
        })
    }

    /// A″(0).
    fn curvature_at_0() -> f64 {
        let [slope, ratio] = Self::slopes(0.0);
        slope * ratio
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// g(β), on the coefficients and not the intercept.
    pub penalty: Penalty,
    /// Strength γ of the penalty: a number, or "1/n". Left out: "1/n".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gamma: Option<Gamma>,
    /// What the penalty of a column is multiplied by: `{ age = 0.0, income = 2.0 }`. 0 leaves a column without a penalty.
    /// Left out: 1.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub penalty_factor: BTreeMap<String, NonNegative>,
    /// Weight of the penalty in a draw: "fixed", or "exponential" for an Exp(1) variate of each. Left out: "fixed".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub penalty_weight: Option<PenaltyWeight>,
    /// Whether the linear predictor has an intercept, which has no penalty. Left out: it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intercept: Option<bool>,
    /// What conventional Bayes makes of a Student-t penalty. Left out: "hierarchy" where it is possible. Other penalties
    /// are priors exp(−n γ g(β)) as they stand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ard: Option<Ard>,
    /// Mean and standard deviation of a normal prior on the intercept, for conventional Bayes and for a base measure
    /// `"prior_predictive"`. Left out: flat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intercept_prior: Option<(f64, Positive)>,
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

impl Config {
    pub fn build<F: Family>(&self, context: &Context) -> Result<Box<dyn Model>, Vec<Complaint>> {
        match self.beyond_the_core(context.train) {
            Some(key) if self.ard == Some(Ard::Hierarchy) => {
                let message = format!("\"hierarchy\" is not possible together with `{key}`");
                Err(vec![complaint("ard", message)])
            }
            Some(_) => self.common().build(Canonical::<F>(PhantomData), context),
            None => self.build_in_core::<F>(context),
        }
    }

    /// A key that the kernels of the core have no room for.
    fn beyond_the_core(&self, train: &Dataset) -> Option<&'static str> {
        let keys = [
            ("penalty_factor", !self.penalty_factor.is_empty()),
            ("penalty_weight", self.penalty_weight == Some(PenaltyWeight::Exponential)),
            ("intercept", self.intercept == Some(false)),
            ("data.offset", train.offset.is_some()),
        ];
        keys.into_iter().find(|(_, given)| *given).map(|(key, _)| key)
    }

    fn common(&self) -> Common {
        Common {
            penalty: self.penalty,
            gamma: self.gamma.clone(),
            penalty_factor: self.penalty_factor.clone(),
            weight: self.penalty_weight.unwrap_or_default(),
            intercept: self.intercept.unwrap_or(true),
            intercept_is_given: self.intercept.is_some(),
            intercept_prior: self.intercept_prior.map(|(mean, sd)| (mean, sd.get())),
            auxiliary_prior: None,
        }
    }

    fn build_in_core<F: Family>(&self, context: &Context) -> Result<Box<dyn Model>, Vec<Complaint>> {
        let Some(y) = &context.train.y else {
            return Err(vec![complaint("", "needs a response, and the data have none; give `data.target`")]);
        };
        if let Some(y) = y.iter().find(|&&y| !F::RESPONSE.admits(y)) {
            let classes = match F::RESPONSE {
                Response::Binary => "; see `data.classes`, and [model.multinomial] for more classes than two",
                _ => "",
            };
            let message =
                format!("cannot have a response {}: it must be {}{classes}", brief(*y), F::RESPONSE.what());
            return Err(vec![complaint("", message)]);
        }
        if self.intercept_prior.is_some_and(|(mean, _)| !mean.is_finite()) {
            return Err(vec![complaint("intercept_prior", "must have a finite mean")]);
        }
        let gamma = self.gamma.as_ref().map_or(context.one_over_n(), |g| g.value(context.one_over_n()));
        if context.alpha == 0.0 && one_sided::<F>(y) {
            let others = if F::RESPONSE == Response::Binary { "of both classes" } else { "above 0" };
            let message = format!(
                "cannot help: every training response is {}, and the intercept, which has no penalty, then has no minimum; \
                 the data need responses {others}",
                y[0]
            );
            return Err(vec![complaint("penalty", message)]);
        }
        // Precisions are parameters if n γ = 1: the penalty is then minus the log prior that they leave.
        let whole = (gamma / context.one_over_n() - 1.0).abs() < 1e-9;
        let possible = self.penalty.precisions().filter(|_| whole);
        if self.ard == Some(Ard::Hierarchy) && possible.is_none() {
            let message = "\"hierarchy\" is the prior behind a `student_t` penalty with γ = \"1/n\"";
            return Err(vec![complaint("ard", message)]);
        }
        Ok(Box::new(Regression::<F> {
            hierarchy: possible.filter(|_| self.ard != Some(Ard::Marginal)),
            columns: context.train.columns.clone(),
            penalty: if gamma == 0.0 { Penalty::None } else { self.penalty },
            gamma,
            strength: gamma / context.one_over_n(),
            intercept_prior: self.intercept_prior.map(|(mean, sd)| (mean, sd.get())),
            mass: context.mass,
            tolerance: context.optimiser.tolerance.get(),
            change: context.optimiser.change.map(|c| c.get()),
            max_iterations: context.optimiser.max_iterations.get(),
            level: Level::current(),
            block: block(context, y.len()),
            large: LARGE,
            known: Default::default(),
            prior: context.alpha > 0.0,
            observed: OnceLock::new(),
            stack: OnceLock::new(),
            family: PhantomData,
        }))
    }
}

/// A regression on data of d columns. θ is β (d), then the intercept.
pub struct Regression<F: Family> {
    columns: Vec<String>,
    penalty: Penalty,
    gamma: f64,
    /// n γ: the penalty as a prior is exp(−n γ g(β)).
    strength: f64,
    /// Mean and standard deviation; flat if there is none.
    intercept_prior: Option<(f64, f64)>,
    /// a and b of the prior of λ, where conventional Bayes has λ among its parameters.
    hierarchy: Option<[f64; 2]>,
    mass: f64,
    tolerance: f64,
    change: Option<f64>,
    max_iterations: usize,
    level: Level,
    block: usize,
    /// [`LARGE`].
    large: usize,
    /// Of the observed rows, and of these with the rows that pseudo-samples are taken from.
    known: [Known; 2],
    /// There are pseudo-samples.
    prior: bool,
    /// What the observed rows by themselves identify.
    observed: OnceLock<Observed>,
    /// The observed rows and those that pseudo-samples are taken from, where these are others that all draws share.
    stack: OnceLock<Dataset>,
    family: PhantomData<F>,
}

/// What all draws share that live on the same rows; it is of those rows and of no others.
#[derive(Default)]
struct Known {
    /// Second-order information.
    metric: OnceLock<Shared>,
    /// The minimum of the unweighted data, where there is one minimum: searches begin there.
    fit: OnceLock<Option<Vec<f64>>>,
}

/// Draws of a block: few lanes are idle while its last searches end. Fewer where rows are so many that the weights of all
/// would take more than a few dozen megabytes, but enough to share a pass; of many rows whose weights are kept, a line.
const BLOCK: usize = 256;
const SMALLEST_BLOCK: usize = 32;
const WEIGHTS: usize = 1 << 22;

fn block(context: &Context, n: usize) -> usize {
    let kept = n > LARGE && !is_streamed(context.train, context.alpha > 0.0);
    if kept {
        return LANES;
    }
    // Whole lines: a block that does not fill them has idle lanes from its beginning.
    (WEIGHTS / n.max(1)).clamp(SMALLEST_BLOCK, BLOCK) / SMALLEST_BLOCK * SMALLEST_BLOCK
}

/// Whether weights of many such rows are made again and not kept.
fn is_streamed(rows: &Dataset, prior: bool) -> bool {
    !prior && rows.design == Design::default()
}
/// Largest gradient entry of a converged search, per unit of the tolerance: 10⁻⁹ by default, and the score identities hold
/// to this.
const GRADIENT: f64 = 1e-6;

impl<F: Family> Regression<F> {
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
        self.penalty.penalise(self.level, self.gamma, beta, gradient)
    }

    /// γ g″(β) of every lane where `exact`, else [`Shape::majorant`].
    fn curvatures<T: Scalar<L>, const L: usize>(
        &self,
        beta: &[Line<T, L>],
        exact: [bool; L],
        out: &mut [Line<T, L>],
    ) {
        self.penalty.curvatures(self.level, self.gamma, beta, exact, out);
    }

    fn majorant(&self, beta: f64) -> f64 {
        self.penalty.majorant(self.gamma, beta)
    }

    /// Weight of Σ|β|.
    fn kink(&self) -> f64 {
        self.gamma * self.penalty.kink()
    }

    /// βᵀx + β₀ of every row.
    fn margins(&self, theta: &[f64], rows: &Dataset) -> Vec<f64> {
        let beta = ArrayView1::from(&theta[..self.d()]);
        rows.x.iter().map(|x| x.dot(&beta) + theta[self.d()]).collect()
    }

    /// ∫ h(y) dF.
    fn carrier(&self, f: &Measure) -> f64 {
        let of_part = |part: crate::process::Part| -> f64 {
            let atoms = part.w.iter().enumerate();
            atoms
                .map(|(k, w)| w * F::carrier(part.response(k).expect("regression data have responses")))
                .sum()
        };
        match F::HAS_CARRIER {
            false => 0.0,
            true if f.is_plain() && f.observed().n() > self.large => Self::carrier_by_chunks(f),
            true => f.parts().map(of_part).sum(),
        }
    }

    /// The same of observed rows alone, whose weights are not kept.
    fn carrier_by_chunks(f: &Measure) -> f64 {
        let y = f.observed().y.as_ref().and_then(|y| y.as_slice()).expect("regression data have responses");
        let (w, mut of_chunk) = (f.row_weights(), [0.0; CHUNK]);
        let mut sum = 0.0;
        for (c, y) in y.chunks(CHUNK).enumerate() {
            w.chunk(c, &mut of_chunk[..y.len()]);
            of_chunk.iter().zip(y).for_each(|(w, y)| sum += w * F::carrier(*y));
        }
        sum
    }

    fn settings(&self) -> Settings {
        Settings {
            max_iterations: self.max_iterations,
            tolerance: self.tolerance,
            mass: self.mass,
            gradient: GRADIENT * self.tolerance,
            change: self.change,
            l1: self.kink(),
            l1_factors: vec![1.0; self.d()],
        }
    }

    fn known(&self, rows: &Dataset) -> &Known {
        let stacked = self.stack.get().is_some_and(|stack| std::ptr::eq(stack, rows));
        &self.known[usize::from(stacked)]
    }

    fn metric(&self, data: &Dataset) -> &Shared {
        self.known(data)
            .metric
            .get_or_init(|| if self.change.is_some() { Shared::Unknown } else { Shared::new(self, data) })
    }

    /// A convex loss with a convex penalty.
    fn has_one_minimum(&self) -> bool {
        self.penalty.is_convex()
    }

    /// Where searches begin if all of them end in one minimum, whatever their starts: the fit to the unweighted rows, whose draws are
    /// about. With more columns than rows the first step does as well.
    fn fit(&self, shared: &Shared, rows: &Dataset) -> Option<&[f64]> {
        let find = || {
            let plain = self.change.is_some() || matches!(shared, Shared::Rows(..));
            if plain || !self.has_one_minimum() || rows.n() == 0 {
                return None;
            }
            let f = Measure::empirical(rows);
            let start = vec![0.0; self.d() + 1];
            let minimum = Objective::of_observed(self, shared, &[&f]).minimise(vec![start]).remove(0);
            (minimum.status == Status::Ok).then_some(minimum.theta)
        };
        self.known(rows).fit.get_or_init(find).as_deref()
    }

    fn loss_and_gradient(&self, theta: &[f64], f: &Measure) -> (f64, Vec<f64>) {
        let (ground, responses) = Ground::new(self, [f].into_iter());
        let objective = ground.objective(self, &Shared::Unknown, responses);
        let point = Array2::from_shape_vec((1, theta.len()), theta.to_vec()).expect("one row");
        let (value, gradient) = objective.evaluate(&[0], &point);
        let (kink, beta) = (self.kink(), &theta[..self.d()]);
        let mut gradient = gradient.into_raw_vec_and_offset().0;
        gradient.iter_mut().zip(beta).for_each(|(g, b)| *g += kink * b.signum());
        (value[0] + kink * beta.iter().map(|b| b.abs()).sum::<f64>(), gradient)
    }

    /// The searches of draws that live on the same rows, all of which know where their minimum is about, or none.
    fn minimise_on_the_same_rows(&self, searches: &[Search]) -> Vec<Minimum> {
        let (ground, responses) = Ground::new(self, searches.iter().map(|s| s.f));
        let starts = searches.iter().map(|s| s.start.clone()).collect();
        let shared = ground.shared(self);
        let objective = ground.objective(self, shared, responses);
        match searches[0].warm {
            true => objective.warm().minimise(starts),
            false => objective.near(self.fit(shared, ground.lasting())).minimise(starts),
        }
    }
}

impl<F: Family> Model for Regression<F> {
    fn names(&self) -> Vec<String> {
        self.columns.iter().map(|c| format!("beta.{c}")).chain(["intercept".to_owned()]).collect()
    }

    fn blocks(&self) -> Vec<Block> {
        let d = self.d();
        vec![
            Block { name: "beta".into(), range: 0..d, support: Support::Real },
            Block { name: "intercept".into(), range: d..d + 1, support: Support::Real },
        ]
    }

    fn loss(&self, theta: &[f64], f: &Measure) -> f64 {
        self.loss_and_gradient(theta, f).0
    }

    fn gradient(&self, theta: &[f64], f: &Measure) -> Option<Vec<f64>> {
        Some(self.loss_and_gradient(theta, f).1)
    }

    fn value_and_gradient(&self, theta: &[f64], f: &Measure) -> Option<(f64, Vec<f64>)> {
        Some(self.loss_and_gradient(theta, f))
    }

    fn has_its_own_start(&self, train: &Dataset) -> bool {
        let by_rows = train.d() > train.n() && self.kink() == 0.0;
        self.change.is_none() && self.has_one_minimum() && train.n() > 0 && !by_rows
    }

    fn minimise(&self, f: &Measure, start: &[f64]) -> Minimum {
        self.minimise_block(&[Search::new(f, start.to_vec())]).remove(0)
    }

    fn minimise_block(&self, searches: &[Search]) -> Vec<Minimum> {
        let alike = |a: &Search, b: &Search| a.f.shares_rows_with(b.f) && a.warm == b.warm;
        let mut minima: Vec<Minimum> =
            searches.chunk_by(alike).flat_map(|searches| self.minimise_on_the_same_rows(searches)).collect();
        self.mark_flaws(searches, &mut minima);
        minima
    }

    fn block_size(&self) -> usize {
        self.block
    }

    /// The basis of the columns, and the row of each side that a response lets η go to.
    fn looking(&self, rows: &Dataset) -> f64 {
        let looks = self.penalty == Penalty::None && !self.prior;
        if looks { rows.n() as f64 * (2 * (self.d() + 1) + 2) as f64 } else { 0.0 }
    }

    /// Doubles, and singles of half the size.
    fn layouts(&self, rows: &Dataset) -> f64 {
        1.5 * rows.n() as f64 * (self.d() + 1) as f64
    }

    /// A vector for each draw, and its lanes of masses and sums; of many rows those of a tile.
    fn working(&self, rows: &Dataset, draws: usize) -> f64 {
        let (n, lanes) = (rows.n() as f64, draws.next_multiple_of(LANES).min(4 * LANES) as f64);
        // Singles are half as large, and twice as many.
        let tile = n.min(2.0 * tile(self.d() + 1) as f64);
        // With pseudo-samples masses and sums are kept beside the weights.
        let kept = draws as f64 * n * if self.prior { 3.0 } else { 1.0 };
        match rows.n() > self.large {
            true if is_streamed(rows, self.prior) => 3.0 * lanes * (tile + CHUNK as f64),
            true => kept + 3.0 * lanes * (tile + CHUNK as f64),
            false => kept + 2.0 * lanes * n + lanes * tile,
        }
    }

    fn knows_offsets(&self) -> bool {
        true
    }

    fn flaws(&self, train: &Dataset) -> Option<Vec<Complaint>> {
        self.flaws_of(train)
    }

    fn is_likelihood(&self) -> bool {
        true
    }

    fn log_density(&self, theta: &[f64], at: &Dataset, out: &mut [f64]) -> bool {
        let Some(y) = &at.y else { return false };
        let y = y.as_slice().expect("responses are contiguous");
        log_density::<F>(self.level, at.x.panel_with_intercept(), theta, y, out);
        if F::HAS_CARRIER {
            out.iter_mut().zip(y).for_each(|(out, y)| *out -= F::carrier(*y));
        }
        true
    }

    fn has_mean(&self) -> bool {
        true
    }

    /// A′(η).
    fn mean(&self, theta: &[f64], at: &Dataset, out: &mut [f64]) {
        let means = self.margins(theta, at).into_iter().map(|eta| F::slopes(eta)[0]);
        out.iter_mut().zip(means).for_each(|(out, mean)| *out = mean);
    }

    fn respond(&self, theta: &[f64], at: &Dataset, rng: &mut Rng, out: &mut [f64]) -> bool {
        let responses = self.margins(theta, at).into_iter().map(|eta| F::sample(eta, rng));
        out.iter_mut().zip(responses).for_each(|(out, y)| *out = y);
        true
    }

    fn coefficients(&self) -> Option<Range<usize>> {
        Some(0..self.d())
    }

    fn response(&self) -> Option<Response> {
        Some(F::RESPONSE)
    }

    fn joint<'a>(&'a self, data: &'a Dataset) -> Result<Box<dyn Joint + 'a>, Complaint> {
        let y = data.y.as_ref().expect("checked with the model");
        let mass: Vec<f64> = (0..data.n()).map(|i| data.weight(i)).collect();
        let ones = mass.iter().zip(y).map(|(w, y)| w * y).collect();
        let carrier =
            if F::HAS_CARRIER { mass.iter().zip(y).map(|(w, y)| w * F::carrier(*y)).sum() } else { 0.0 };
        let hierarchy = self.hierarchy;
        Ok(Box::new(RegressionJoint { model: self, data, mass, ones, carrier, hierarchy }))
    }

    fn sampled(&self) -> Option<Sampled> {
        let finite = F::RESPONSE == Response::Binary;
        Some(if finite { Sampled::Finite } else { Sampled::Endless })
    }

    fn sampling(&self, theta: &[f64], data: &Arc<Dataset>) -> Option<Box<dyn BaseMeasure>> {
        Some(F::base(self.margins(theta, data), data))
    }

    fn prior_predictive(&self, data: &Arc<Dataset>) -> Result<Box<dyn BaseMeasure>, String> {
        let flat =
            "needs a proper prior on the intercept, and it is flat: give `intercept_prior` with the model";
        let intercept = self.intercept_prior.ok_or(flat)?;
        let (penalty, strength, d) = (self.penalty, self.strength, self.d());
        let improper = "needs a proper prior on the coefficients, and this penalty is none";
        let mut rng = crate::rng::Seed(0).stream(crate::rng::Purpose::Auxiliary, 2, 0);
        penalty.draw(strength, &mut rng).ok_or(improper)?;
        let draw = move |rng: &mut Rng| -> Vec<f64> {
            let mut theta: Vec<f64> =
                (0..d).map(|_| penalty.draw(strength, rng).expect("a proper prior")).collect();
            let z: f64 = StandardNormal.sample(rng);
            theta.push(intercept.0 + intercept.1 * z);
            theta
        };
        Ok(Box::new(Predictive::<F> { draw: Box::new(draw), rows: data.clone(), family: PhantomData }))
    }
}

/// How θ is drawn from its prior.
type DrawTheta = Box<dyn Fn(&mut Rng) -> Vec<f64> + Send + Sync>;

/// Covariates from the rows of the data, and for each pseudo-sample θ afresh from its prior, then its response.
struct Predictive<F: Family> {
    draw: DrawTheta,
    rows: Arc<Dataset>,
    family: PhantomData<F>,
}

impl<F: Family> BaseMeasure for Predictive<F> {
    fn sample(&self, t: usize, rng: &mut Rng) -> Pseudo {
        let (mut picked, mut y) = (Vec::with_capacity(t), Vec::with_capacity(t));
        for _ in 0..t {
            let (row, theta) = (self.rows.random_row(rng), (self.draw)(rng));
            let (beta, intercept) = theta.split_at(theta.len() - 1);
            picked.push(row);
            y.push(F::sample(self.rows.x.row(row).dot(&ArrayView1::from(beta)) + intercept[0], rng));
        }
        Pseudo::Shared { rows: self.rows.clone(), picked, y: Some(y) }
    }

    fn responses(&self) -> Option<Vec<f64>> {
        Some(vec![0.0])
    }
}

/// A regression on `d` columns, to test its parts.
#[cfg(test)]
fn test_model(d: usize, penalty: Penalty) -> Regression<super::Logistic> {
    Regression {
        columns: (0..d).map(|j| format!("x{j}")).collect(),
        penalty,
        gamma: 0.05,
        strength: 0.3,
        intercept_prior: None,
        hierarchy: None,
        mass: 6.0,
        tolerance: 1e-3,
        change: None,
        max_iterations: 1000,
        level: Level::PLAIN,
        block: 16,
        large: LARGE,
        known: Default::default(),
        prior: false,
        observed: OnceLock::new(),
        stack: OnceLock::new(),
        family: PhantomData,
    }
}

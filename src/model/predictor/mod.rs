//! Regressions whose loss is more than the A(η) − y η of [`regression`](super::regression): a loss of a response, of one or
//! several linear predictors ηₖ = βₖᵀx + β₀ₖ + offset, and of a few parameters φ beside them (a scale, cut points), with a
//! penalty Σ fⱼ g(βⱼ). A family is a [`Law`]; blocks of draws in step, second-order information, rows of the prior, what the
//! data identify and conventional Bayes are the same for all.

mod canonical;
mod config;
mod flaws;
mod home;
mod joint;
mod known;
mod objective;
mod prior;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use ndarray::ArrayView1;

pub use canonical::Canonical;
pub(super) use config::config;
pub use config::{Common, PenaltyWeight};

pub use super::identify::Form;
use super::{Block, Context, Joint, Model, Response, Sampled, Search, Support, Transform, expectation};
use crate::config::{Complaint, brief, complaint};
use crate::data::Dataset;
use crate::kernel::{LANES, Level};
use crate::optim::lbfgs::Settings;
use crate::optim::{Minimum, Status};
use crate::penalty::{Penalty, Shape};
use crate::process::base::DrawnResponse;
use crate::process::{BaseMeasure, Measure};
use crate::rng::Rng;
use home::Homes;
pub use home::has_large_columns;
use joint::PredictorJoint;
use known::{At, Known};
use objective::Metric;
use prior::Predictive;

/// A response: a number, and whether it is an event or censored.
#[derive(Clone, Copy)]
pub struct Outcome {
    pub y: f64,
    pub event: bool,
}

/// A parameter beside the coefficients.
pub struct Extra {
    pub name: Cow<'static, str>,
    pub entries: usize,
    pub support: Support,
    /// Where the fit to the unweighted data starts.
    pub start: Vec<f64>,
}

impl Extra {
    /// One number above 0.
    pub fn scale(name: &'static str, start: f64) -> Extra {
        Extra { name: name.into(), entries: 1, support: Support::Scale, start: vec![start] }
    }
}

/// l(y, η, φ): all that a regression knows of its response.
pub trait Law: Clone + Send + Sync + 'static {
    /// What the losses of rows need of φ, made once for all of them.
    type At: Send + Sync;

    fn response(&self) -> Response;

    /// The names of the linear predictors; a single one has none.
    fn predictors(&self) -> Vec<String> {
        vec![String::new()]
    }

    /// Whether a linear predictor may have an intercept.
    fn has_intercept(&self) -> bool {
        true
    }

    /// φ.
    fn extras(&self) -> Vec<Extra> {
        Vec::new()
    }

    fn at(&self, phi: &[f64]) -> Self::At;

    /// l up to [`Law::carrier`], and its derivatives: by η, and by φ, or by log φ where it is positive.
    fn loss(&self, at: &Self::At, of: Outcome, eta: &[f64], by_eta: &mut [f64], by_phi: &mut [f64]) -> f64;

    /// The part of l that no parameter moves.
    fn carrier(&self, _of: Outcome) -> f64 {
        0.0
    }

    /// l is −log f: LPPD, NUTS and ADVI have a meaning.
    fn is_likelihood(&self) -> bool {
        true
    }

    /// E[y | η, φ], or its stand-in; `None` if the response has none.
    fn mean(&self, at: &Self::At, eta: &[f64]) -> Option<f64>;

    /// Names of the linear predictors as numbers that are told of a row, where they are themselves what is predicted.
    fn tells(&self) -> Vec<String> {
        Vec::new()
    }

    /// A response at η, of a likelihood.
    fn sample(&self, _at: &Self::At, _eta: &[f64], _rng: &mut Rng) -> f64 {
        f64::NAN
    }

    /// Names of the classes, where the response is one.
    fn classes(&self) -> Vec<String> {
        Vec::new()
    }

    /// P(y = k | η, φ) of every class, where the response is one.
    fn probabilities(&self, _at: &Self::At, _eta: &[f64]) -> Option<Vec<f64>> {
        None
    }

    fn knows_events(&self) -> bool {
        false
    }

    /// Whether the response keeps η from falling without end, and from growing; where there is one.
    fn keeps(&self, _of: Outcome) -> [bool; 2] {
        [true, true]
    }

    /// The linear forms of η and φ that the loss of a response keeps from falling without end, where [`Law::keeps`] does not say it
    /// all; every response has forms of the same lengths.
    fn forms(&self, _of: Outcome) -> Option<Vec<Form>> {
        None
    }

    /// Counts vary no more than Poisson's at φ, where they may.
    fn is_undispersed(&self, _phi: &[f64]) -> bool {
        false
    }

    /// The loss has one minimum, if any; a law that does not say so is one of several.
    fn has_one_minimum(&self) -> bool {
        true
    }

    /// For a loss that does not grow for ever: laws whose minima lead to one of its own, the first of them smooth and convex. A start
    /// without them may lie where no row moves anything.
    fn ways(&self) -> Vec<Self> {
        Vec::new()
    }

    /// Whether the loss of a response is not flat at η.
    fn reaches(&self, _at: &Self::At, _of: Outcome, _eta: &[f64]) -> bool {
        true
    }

    /// What else the data must have for φ to have a minimum.
    fn wants(&self, _train: &Dataset) -> Option<Complaint> {
        None
    }
}

/// A regression on data of d columns. θ is βₖ of every predictor, then their intercepts, then φ.
pub struct Predictor {
    law: Arc<dyn Known>,
    columns: Vec<String>,
    penalty: Penalty,
    /// fⱼ of every column.
    factors: Vec<f64>,
    gamma: f64,
    intercept: bool,
    /// The penalty has a weight of its own in each draw.
    weighs: bool,
    intercept_prior: Option<(f64, f64)>,
    auxiliary_prior: Option<(f64, f64)>,
    /// n.
    n: f64,
    /// n + α.
    mass: f64,
    optimiser: crate::optim::Optimiser,
    /// There are pseudo-samples.
    prior: bool,
    /// The predictors have names.
    named: Vec<String>,
    metric: OnceLock<Metric>,
    sound: OnceLock<bool>,
    home: Homes,
    /// How many draws are made at a time.
    block: usize,
}

/// Draws of a block. Fewer where rows are so many that the weights of all would take more than a few dozen megabytes, but a line.
const BLOCK: usize = 64;
const WEIGHTS: usize = 1 << 22;

/// Largest gradient entry of a converged search, per unit of the tolerance: 10⁻⁹ by default.
const GRADIENT: f64 = 1e-6;

impl Common {
    /// The regression of a law, or what is wrong with it on these data.
    pub fn build<L: Law>(&self, law: L, context: &Context) -> Result<Box<dyn Model>, Vec<Complaint>> {
        Ok(Box::new(self.predictor(Arc::new(law), context)?))
    }

    pub fn predictor(&self, law: Arc<dyn Known>, context: &Context) -> Result<Predictor, Vec<Complaint>> {
        let train = context.train;
        let Some(y) = &train.y else {
            return Err(vec![complaint("", "needs a response, and the data have none; give `data.target`")]);
        };
        if let Some(y) = y.iter().find(|&&y| !law.response().admits(y)) {
            let what = law.response().what();
            return Err(vec![complaint(
                "",
                format!("cannot have a response {}: it must be {what}", brief(*y)),
            )]);
        }
        let gamma = self.gamma.as_ref().map_or(context.one_over_n(), |g| g.value(context.one_over_n()));
        let factors = self.factors(&train.columns)?;
        let penalty =
            if gamma == 0.0 || factors.iter().all(|f| *f == 0.0) { Penalty::None } else { self.penalty };
        if let Some((key, why)) = self.idle(&*law) {
            return Err(vec![complaint(key, why)]);
        }
        Ok(Predictor {
            columns: train.columns.clone(),
            penalty,
            factors,
            gamma,
            intercept: law.has_intercept() && self.intercept,
            weighs: self.weight == PenaltyWeight::Exponential,
            intercept_prior: self.intercept_prior,
            auxiliary_prior: self.auxiliary_prior,
            n: train.mass(),
            mass: context.mass,
            optimiser: context.optimiser.clone(),
            prior: context.alpha > 0.0,
            named: law.predictors(),
            metric: OnceLock::new(),
            sound: OnceLock::new(),
            home: Homes::new(),
            block: (WEIGHTS / train.n().max(1)).clamp(LANES, BLOCK),
            law,
        })
    }
}

impl Predictor {
    pub fn penalty(&self) -> Penalty {
        self.penalty
    }

    pub fn gamma(&self) -> f64 {
        self.gamma
    }

    /// fⱼ of every column.
    pub fn factors(&self) -> &[f64] {
        &self.factors
    }

    pub fn has_intercept(&self) -> bool {
        self.intercept
    }

    pub fn d(&self) -> usize {
        self.columns.len()
    }

    /// Linear predictors.
    fn m(&self) -> usize {
        self.named.len()
    }

    /// Parameters before φ.
    fn linear(&self) -> usize {
        self.m() * (self.d() + usize::from(self.intercept))
    }

    fn phi<'t>(&self, theta: &'t [f64]) -> &'t [f64] {
        &theta[self.linear()..]
    }

    /// ηₖ of a row.
    fn eta(&self, theta: &[f64], x: ArrayView1<f64>, offset: f64, eta: &mut [f64]) {
        let d = self.d();
        for (k, eta) in eta.iter_mut().enumerate() {
            let beta = ArrayView1::from(&theta[k * d..(k + 1) * d]);
            let intercept = if self.intercept { theta[self.m() * d + k] } else { 0.0 };
            *eta = x.dot(&beta) + intercept + offset;
        }
    }

    /// η of every row.
    fn visit(&self, theta: &[f64], at: &Dataset, mut see: impl FnMut(usize, &[f64])) {
        let mut eta = vec![0.0; self.m()];
        for (i, x) in at.x.iter().enumerate() {
            self.eta(theta, x, at.offset(i), &mut eta);
            see(i, &eta);
        }
    }

    /// γ Σ fⱼ g(βⱼ) without its kinks; the gradient is added to.
    pub fn penalise(&self, theta: &[f64], gradient: &mut [f64]) -> f64 {
        let d = self.d();
        let blocks =
            theta.chunks(d.max(1)).zip(gradient.chunks_mut(d.max(1))).take(if d > 0 { self.m() } else { 0 });
        blocks.map(|(beta, by)| self.penalty.weighted(self.gamma, &self.factors, beta, by)).sum()
    }

    /// Weight of Σ fⱼ|βⱼ|.
    fn kink(&self) -> f64 {
        self.gamma * self.penalty.kink()
    }

    /// fⱼ of every coefficient.
    fn all_factors(&self) -> Vec<f64> {
        self.factors.repeat(self.m())
    }

    pub fn kinks(&self, theta: &[f64]) -> f64 {
        let terms = theta.iter().zip(self.all_factors()).map(|(t, f)| f * t.abs());
        if self.kink() == 0.0 { 0.0 } else { self.kink() * terms.sum::<f64>() }
    }

    /// The weight of the penalty in a draw.
    pub fn weight(&self, f: &Measure) -> f64 {
        if self.weighs { f.penalty_weight() } else { 1.0 }
    }

    fn settings(&self) -> Settings {
        let tolerance = self.optimiser.tolerance.get();
        Settings {
            max_iterations: self.optimiser.max_iterations.get(),
            tolerance,
            mass: self.mass,
            gradient: GRADIENT * tolerance,
            change: self.optimiser.change.map(|c| c.get()),
            l1: self.kink(),
            l1_factors: self.all_factors(),
        }
    }

    fn transform(&self) -> Transform {
        Transform::new(self.blocks_of())
    }

    fn names_of(&self) -> Vec<String> {
        let tagged =
            |what: &str, tag: &str| if tag.is_empty() { what.to_owned() } else { format!("{what}.{tag}") };
        let beta = |tag: &String| {
            let name = tagged("beta", tag);
            self.columns.iter().map(move |c| format!("{name}.{c}")).collect::<Vec<_>>()
        };
        let intercepts = self.named.iter().filter(|_| self.intercept).map(|tag| tagged("intercept", tag));
        let of_extra = |extra: Extra| match extra.entries {
            1 => vec![extra.name.to_string()],
            entries => (1..=entries).map(|k| format!("{}.{k}", extra.name)).collect(),
        };
        let extras = self.law.extras().into_iter().flat_map(of_extra);
        self.named.iter().flat_map(beta).chain(intercepts).chain(extras).collect()
    }

    fn blocks_of(&self) -> Vec<Block> {
        let betas = self.m() * self.d();
        let mut blocks = vec![Block { name: "beta".into(), range: 0..betas, support: Support::Real }];
        if self.intercept {
            blocks.push(Block {
                name: "intercept".into(),
                range: betas..self.linear(),
                support: Support::Real,
            });
        }
        let mut next = self.linear();
        for extra in self.law.extras() {
            let range = next..next + extra.entries;
            next = range.end;
            blocks.push(Block { name: extra.name, range, support: extra.support });
        }
        blocks
    }

    /// ∫ l dF + ω γ g(β), and its derivatives by θ, or by log θ where it is positive.
    fn loss_and_gradient(&self, theta: &[f64], f: &Measure) -> (f64, Vec<f64>) {
        let weight = self.weight(f);
        let mut gradient = vec![0.0; theta.len()];
        let penalty = self.penalise(theta, &mut gradient) + self.kinks(theta);
        for ((g, t), factor) in gradient.iter_mut().zip(theta).zip(self.all_factors()) {
            *g += if self.kink() > 0.0 { self.kink() * factor * t.signum() } else { 0.0 };
        }
        gradient.iter_mut().for_each(|g| *g *= weight);
        let mut rows = vec![0.0; theta.len()];
        let value: f64 = f.parts().map(|part| objective::add_part(self, &part, theta, &mut rows)).sum();
        gradient.iter_mut().zip(&rows).for_each(|(g, r)| *g += r);
        (value + objective::carrier(&*self.law, f) + weight * penalty, gradient)
    }

    fn base(&self, theta: &[f64], data: &Arc<Dataset>) -> Box<dyn BaseMeasure> {
        let mut etas = Vec::new();
        self.visit(theta, data, |_, eta| etas.push(eta.to_vec()));
        let at = self.law.kept_at(self.phi(theta));
        let draw = move |row: usize, rng: &mut Rng| at.sample(&etas[row], rng);
        Box::new(DrawnResponse { covariates: data.clone(), draw: Box::new(draw) })
    }
}

impl Model for Predictor {
    fn names(&self) -> Vec<String> {
        self.names_of()
    }

    fn blocks(&self) -> Vec<Block> {
        self.blocks_of()
    }

    fn loss(&self, theta: &[f64], f: &Measure) -> f64 {
        self.loss_and_gradient(theta, f).0
    }

    fn gradient(&self, theta: &[f64], f: &Measure) -> Option<Vec<f64>> {
        self.value_and_gradient(theta, f).map(|(_, gradient)| gradient)
    }

    fn value_and_gradient(&self, theta: &[f64], f: &Measure) -> Option<(f64, Vec<f64>)> {
        let (value, mut gradient) = self.loss_and_gradient(theta, f);
        for block in self.blocks().into_iter().filter(|block| block.support.is_positive()) {
            // What has become 0 cannot be divided by, and moves nothing.
            block.range.for_each(|j| gradient[j] /= theta[j].max(f64::MIN_POSITIVE));
        }
        Some((value, gradient))
    }

    fn minimise(&self, f: &Measure, start: &[f64]) -> Minimum {
        self.minimise_block(&[Search::new(f, start.to_vec())]).remove(0)
    }

    fn minimise_block(&self, searches: &[Search]) -> Vec<Minimum> {
        let alike = |a: &Search, b: &Search| std::ptr::eq(a.f.observed(), b.f.observed());
        let of_chunk = |searches: &[Search]| {
            let transform = self.transform();
            let minima = self.minima(searches);
            let finish = |(minimum, search): (Minimum, &Search)| {
                let theta = transform.constrain(&minimum.theta).0;
                let finite = minimum.value.is_finite() && theta.iter().all(|t| t.is_finite());
                let status = match finite {
                    true if self.is_flat(search.f, &theta) => Status::Flat,
                    true => minimum.status,
                    false => Status::Failed,
                };
                let status = self.flaw(search.f).filter(|_| status != Status::Failed).unwrap_or(status);
                Minimum { value: minimum.value * self.weight(search.f), theta, status, ..minimum }
            };
            minima.into_iter().zip(searches).map(finish).collect::<Vec<_>>()
        };
        searches.chunk_by(alike).flat_map(of_chunk).collect()
    }

    fn block_size(&self) -> usize {
        self.block
    }

    /// The basis of the columns without a penalty; and of each side that a response lets η go to, the row there.
    fn looking(&self, rows: &Dataset) -> f64 {
        self.looking_of(rows)
    }

    fn layouts(&self, rows: &Dataset) -> f64 {
        rows.n() as f64 * (self.d() + usize::from(self.intercept)) as f64
    }

    /// The weights of each draw, and what the fit to all rows takes.
    fn working(&self, rows: &Dataset, draws: usize) -> f64 {
        (draws + 3) as f64 * rows.n() as f64
    }

    fn knows_events(&self) -> bool {
        self.law.knows_events()
    }

    fn knows_offsets(&self) -> bool {
        true
    }

    fn flaws(&self, train: &Dataset) -> Option<Vec<Complaint>> {
        self.flaws_of(train)
    }

    fn is_undispersed(&self, theta: &[f64]) -> bool {
        self.law.is_undispersed(self.phi(theta))
    }

    fn is_likelihood(&self) -> bool {
        self.law.is_likelihood()
    }

    fn log_density(&self, theta: &[f64], at: &Dataset, out: &mut [f64]) -> bool {
        let Some(y) = at.y.as_ref().filter(|_| self.is_likelihood()) else { return false };
        let here = self.law.at(self.phi(theta));
        let (mut by_eta, mut by_phi) = (vec![0.0; self.m()], vec![0.0; theta.len() - self.linear()]);
        self.visit(theta, at, |i, eta| {
            let of = Outcome { y: y[i], event: at.event.as_ref().is_none_or(|event| event[i] == 1.0) };
            out[i] = -here.loss(of, eta, &mut by_eta, &mut by_phi) - self.law.carrier(of);
        });
        true
    }

    fn has_mean(&self) -> bool {
        let phi: Vec<f64> = self.law.extras().into_iter().flat_map(|extra| extra.start).collect();
        self.law.at(&phi).mean(&vec![0.0; self.m()]).is_some()
    }

    fn mean(&self, theta: &[f64], at: &Dataset, out: &mut [f64]) {
        let here = self.law.at(self.phi(theta));
        self.visit(theta, at, |i, eta| out[i] = here.mean(eta).unwrap_or(f64::NAN));
    }

    fn probabilities(&self, theta: &[f64], at: &Dataset, out: &mut [f64]) {
        let here = self.law.at(self.phi(theta));
        let classes = out.len() / at.n().max(1);
        self.visit(theta, at, |i, eta| {
            let of_row = here.probabilities(eta).unwrap_or_default();
            out[i * classes..(i + 1) * classes].iter_mut().zip(of_row).for_each(|(out, p)| *out = p);
        });
    }

    fn predicted(&self) -> Vec<String> {
        match self.law.classes() {
            none if none.is_empty() && !self.law.tells().is_empty() => self.law.tells(),
            none if none.is_empty() => expectation(self),
            classes => classes.into_iter().map(|class| format!("probability.{class}")).collect(),
        }
    }

    fn predict(&self, theta: &[f64], at: &Dataset, out: &mut [f64]) {
        match self.response() {
            Some(Response::Class(_)) => self.probabilities(theta, at, out),
            _ if !self.law.tells().is_empty() => {
                let m = self.m();
                self.visit(theta, at, |i, eta| out[i * m..(i + 1) * m].copy_from_slice(eta));
            }
            _ => self.mean(theta, at, out),
        }
    }

    fn respond(&self, theta: &[f64], at: &Dataset, rng: &mut Rng, out: &mut [f64]) -> bool {
        let here = self.law.at(self.phi(theta));
        if self.is_likelihood() {
            self.visit(theta, at, |i, eta| out[i] = here.sample(eta, rng));
        }
        self.is_likelihood()
    }

    fn coefficients(&self) -> Option<Range<usize>> {
        Some(0..self.m() * self.d())
    }

    fn response(&self) -> Option<Response> {
        Some(self.law.response())
    }

    fn joint<'a>(&'a self, data: &'a Dataset) -> Result<Box<dyn Joint + 'a>, Complaint> {
        if !self.is_likelihood() {
            return Err(complaint("", "is a loss without a likelihood, and conventional Bayes needs one"));
        }
        if self.weighs {
            let message = "is for the bootstrap: conventional Bayes has the penalty as a prior, once";
            return Err(complaint("penalty_weight", message));
        }
        let w = (0..data.n()).map(|i| data.weight(i)).collect();
        Ok(Box::new(PredictorJoint { model: self, f: Measure::weighted(data, w) }))
    }

    fn sampled(&self) -> Option<Sampled> {
        self.is_likelihood().then_some(Sampled::Endless)
    }

    fn sampling(&self, theta: &[f64], data: &Arc<Dataset>) -> Option<Box<dyn BaseMeasure>> {
        self.is_likelihood().then(|| self.base(theta, data))
    }

    fn prior_predictive(&self, data: &Arc<Dataset>) -> Result<Box<dyn BaseMeasure>, String> {
        Ok(Box::new(Predictive::new(self, data)?))
    }
}

/// The level that kernels run at.
fn level() -> Level {
    Level::current()
}

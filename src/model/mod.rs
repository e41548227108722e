//! Parameters of interest. A model is a loss with a way to minimise it; adding one is a file and a line below.

mod bernoulli_mixture;
pub mod beta;
mod bracket;
mod components;
mod custom;
mod eights;
mod em;
pub mod exponential;
pub mod gamma;
mod gmm;
mod identify;
mod kmeans;
mod law;
pub mod linear;
mod logistic;
mod mean;
mod median;
pub mod multinomial;
pub mod negative_binomial;
mod normal;
pub mod ordered;
mod poisson;
pub mod predictor;
mod quantile;
mod quantile_regression;
pub mod regression;
mod robust;
pub mod row_loss;
mod staged;
pub mod subsample;
mod transform;
pub mod weibull;

pub use components::Components;
pub use custom::{DataColumns, named_columns};
pub use law::Law;
pub use logistic::Logistic;
pub use poisson::Poisson;
pub use staged::Stage;
pub use transform::Transform;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::{Complaint, InOrder, Texts, complaint};
use crate::data::Dataset;
use crate::optim::{Minimum, Optimiser};
use crate::process::{BaseMeasure, Measure};
use crate::rng::Rng;

/// The registry: `models! { Variant => module, … }` gives `[model.variant]` in a TOML file, its schema, its starter
/// experiment for `npl new`, and its place in the conformance tests.
macro_rules! models {
    ($($(#[doc = $doc:literal])* $variant:ident => $module:ident),* $(,)?) => {
        /// The model, one table per kind: `[model.gmm]`.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case", deny_unknown_fields)]
        pub enum ModelConfig {
            $($(#[doc = $doc])* $variant($module::Config),)*
            /// Several of them, each with a table `[[stage]]` of its own.
            #[serde(skip)]
            Stages(Vec<Stage>),
        }

        impl ModelConfig {
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => stringify!($module),)*
                    Self::Stages(_) => STAGES,
                }
            }

            /// Whether the response is one of several classes.
            pub fn classifies(&self) -> bool {
                match self {
                    Self::Stages(stages) => stages.iter().any(|stage| stage.model.classifies()),
                    _ => matches!(self, Self::Multinomial(_) | Self::Ordered(_)),
                }
            }

            /// Whether a draw is hardly more than a pass over its weights.
            pub fn is_closed_form(&self) -> bool {
                matches!(self, Self::Mean(_) | Self::Median(_) | Self::Quantile(_) | Self::Normal(_))
            }

            /// What it is, in a sentence.
            pub fn about(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => concat!($($doc),*).trim_ascii(),)*
                    Self::Stages(_) => "Models in stages that share the weights of a draw.",
                }
            }

            /// What is wrong with the model on this data: keys below `model.<name>`, of stages from the top, and why.
            pub fn build(&self, context: &Context) -> Result<Box<dyn Model>, Vec<Complaint>> {
                match self {
                    $(Self::$variant(config) => config.build(context),)*
                    Self::Stages(stages) => staged::build(stages, context),
                }
            }
        }

        /// Name and starter experiment of every model, in the order `npl new` lists them.
        pub const STARTERS: &[(&str, &str)] = &[$((stringify!($module), $module::STARTER)),*];
    };
}

models! {
    /// Gaussian mixture with K components, their covariances diagonal or of another kind, fitted by weighted EM.
    Gmm => gmm,
    /// Mixture of K products of Bernoullis, for columns of 0 and 1, fitted by weighted EM.
    BernoulliMixture => bernoulli_mixture,
    /// K centres, each row at the nearest: k-means by Lloyd's algorithm.
    Kmeans => kmeans,
    /// Logistic regression with a penalty on the coefficients, fitted by L-BFGS.
    Logistic => logistic,
    /// Poisson regression of counts, with a penalty on the coefficients.
    Poisson => poisson,
    /// Linear regression: least squares, or a normal density with its standard deviation.
    Linear => linear,
    /// Robust linear regression: Huber, Student-t, Tukey or Welsch.
    Robust => robust,
    /// Negative binomial regression of counts.
    NegativeBinomial => negative_binomial,
    /// Gamma regression of numbers above 0.
    Gamma => gamma,
    /// Beta regression of numbers between 0 and 1.
    Beta => beta,
    /// Multinomial logistic regression of several classes.
    Multinomial => multinomial,
    /// Ordered logistic regression of classes that have an order.
    Ordered => ordered,
    /// Exponential regression of survival times, right-censored or not.
    Exponential => exponential,
    /// Weibull regression of survival times, right-censored or not.
    Weibull => weibull,
    /// A loss of your own, by an expression.
    Custom => custom,
    /// The mean of each column: loss (y − θ)².
    Mean => mean,
    /// The median of each column: loss |y − θ|.
    Median => median,
    /// Quantiles of each column: the pinball loss.
    Quantile => quantile,
    /// Quantile regression, one quantile or several.
    QuantileRegression => quantile_regression,
    /// Normal location with known variance: loss −log N(y; θ, σ²).
    Normal => normal,
}

/// What models in stages are called, where a model has a name.
const STAGES: &str = "stages";

impl ModelConfig {
    /// Of an experiment without one: stages, if there are any.
    pub fn in_stages() -> ModelConfig {
        ModelConfig::Stages(Vec::new())
    }

    /// The stages of the experiment; none if it has one model.
    pub fn stages(&self) -> &[Stage] {
        match self {
            ModelConfig::Stages(stages) => stages,
            _ => &[],
        }
    }

    pub fn is_staged(&self) -> bool {
        matches!(self, ModelConfig::Stages(_))
    }

    /// Its table in a file.
    pub fn table(&self) -> String {
        if self.is_staged() { "[[stage]]".to_owned() } else { format!("[model.{}]", self.name()) }
    }

    /// The key of a file that a complaint of the model is about.
    pub fn key(&self, below: &str) -> String {
        match (self.is_staged(), below.is_empty()) {
            (true, true) => "stage".to_owned(),
            (true, false) => below.to_owned(),
            (false, true) => format!("model.{}", self.name()),
            (false, false) => format!("model.{}.{below}", self.name()),
        }
    }
}

/// Keys of a model, whichever of them it has, that are the prior on θ of conventional Bayes: no part of its loss.
pub const PRIOR_KEYS: &[&str] = &["prior", "ard", "intercept_prior", "auxiliary_prior"];

/// What a model is built for.
pub struct Context<'a> {
    pub train: &'a Dataset,
    /// Concentration of the prior of the bootstrap; 0 for conventional Bayes, and for what is centred on it.
    pub alpha: f64,
    /// n + α, with n the number of observations: the posterior's sample size, which turns a loss into posterior standard deviations.
    pub mass: f64,
    pub optimiser: &'a Optimiser,
    /// Quantities of a draw, for a model whose parameters are those of the draw.
    pub derived: Option<&'a InOrder<Texts>>,
}

impl Context<'_> {
    /// γ where the config says `"1/n"`.
    pub fn one_over_n(&self) -> f64 {
        1.0 / self.train.mass().max(1.0)
    }
}

/// One local search: its measure and its start.
#[derive(Clone)]
pub struct Search<'a> {
    pub f: &'a Measure<'a>,
    pub start: Vec<f64>,
    /// The start is a minimum of nearly the same loss under the same weights: one that [begins where it
    /// says](Model::has_its_own_start) begins there instead.
    pub warm: bool,
}

impl<'a> Search<'a> {
    pub fn new(f: &'a Measure<'a>, start: Vec<f64>) -> Search<'a> {
        Search { f, start, warm: false }
    }
}

/// A group of parameters that is started together.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    pub name: Cow<'static, str>,
    pub range: Range<usize>,
    pub support: Support,
}

/// Values that a block may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// Any number.
    Real,
    /// Any number, and comparable with the rows of the data: entry by entry a location in their columns.
    Location,
    Positive,
    /// Any number above 0, and no variance of a column.
    Scale,
    /// Any number above 0: a variance of all columns together.
    Variance,
    /// Positive definite matrices of so many rows, one after the other, all entries by rows.
    Covariance(usize),
    /// Between 0 and 1.
    Unit,
    /// Non-negative and summing to 1.
    Simplex,
    /// Increasing.
    Ordered,
}

impl Support {
    /// Numbers above 0, whose logarithms are derived by.
    pub fn is_positive(self) -> bool {
        matches!(self, Support::Positive | Support::Scale | Support::Variance)
    }

    /// Where the diagonals of matrices of so many entries together are; nowhere in what is no matrix.
    pub fn diagonal(self, len: usize) -> impl Iterator<Item = usize> {
        let d = if let Support::Covariance(d) = self { d } else { 0 };
        (0..len).filter(move |i| d > 0 && (i % (d * d)).is_multiple_of(d + 1))
    }
}

/// Values that a response may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response {
    /// 0 or 1.
    Binary,
    /// 0, 1, 2, …
    Count,
    /// Any number.
    Real,
    /// Any number above 0.
    Positive,
    /// Between 0 and 1, and neither.
    Unit,
    /// One of so many classes: 0, 1, 2, …
    Class(usize),
}

impl Response {
    pub fn admits(self, y: f64) -> bool {
        match self {
            Response::Binary => y == 0.0 || y == 1.0,
            Response::Count => y >= 0.0 && y.fract() == 0.0 && y.is_finite(),
            Response::Real => y.is_finite(),
            Response::Positive => y > 0.0 && y.is_finite(),
            Response::Unit => y > 0.0 && y < 1.0,
            Response::Class(classes) => y >= 0.0 && y.fract() == 0.0 && y < classes as f64,
        }
    }

    /// In words.
    pub fn what(self) -> &'static str {
        match self {
            Response::Binary => "0 or 1",
            Response::Count => "a count: 0, 1, 2, …",
            Response::Real => "a number",
            Response::Positive => "a number above 0",
            Response::Unit => "a number between 0 and 1, and neither",
            Response::Class(_) => "a class: 0, 1, 2, …, each with some rows",
        }
    }
}

/// A parameter of interest θ(F) = argmin ∫ l(y, θ) dF(y), eq. (1).
pub trait Model: Send + Sync {
    /// One name per entry of θ: dotted, 1-based.
    fn names(&self) -> Vec<String>;

    /// The blocks that a start is drawn for; none if the minimum is known in closed form.
    fn blocks(&self) -> Vec<Block> {
        Vec::new()
    }

    /// ∫ l(y, θ) dF(y).
    fn loss(&self, theta: &[f64], f: &Measure) -> f64;

    /// The derivatives of the loss by θ, where it has them and they are at hand.
    fn gradient(&self, _theta: &[f64], _f: &Measure) -> Option<Vec<f64>> {
        None
    }

    /// Loss and derivatives at once, for a model that has them from one pass over the rows.
    fn value_and_gradient(&self, theta: &[f64], f: &Measure) -> Option<(f64, Vec<f64>)> {
        Some((self.loss(theta, f), self.gradient(theta, f)?))
    }

    /// Whether searches on these rows begin where the model says, for there is one minimum and a start decides on nothing.
    fn has_its_own_start(&self, _train: &Dataset) -> bool {
        false
    }

    /// A local minimum from `start`.
    fn minimise(&self, f: &Measure, start: &[f64]) -> Minimum;

    /// The local searches of several draws at once. A model whose inner loop is a matrix product overrides it, and
    /// answers the same bits for any block size.
    fn minimise_block(&self, searches: &[Search]) -> Vec<Minimum> {
        searches.iter().map(|s| self.minimise(s.f, &s.start)).collect()
    }

    /// Numbers that it takes beside the rows to look for what is [wrong](Model::flaws) with them, before there are draws.
    fn looking(&self, _rows: &Dataset) -> f64 {
        0.0
    }

    /// Numbers that layouts of these rows take beside the rows, once there are draws.
    fn layouts(&self, rows: &Dataset) -> f64 {
        (rows.n() * rows.d()) as f64
    }

    /// Numbers that so many draws in step need, weights and all.
    fn working(&self, rows: &Dataset, draws: usize) -> f64 {
        let vectors = if rows.y.is_some() { 5 } else { 1 };
        (draws * vectors) as f64 * rows.n() as f64
    }

    /// How many draws the model likes to have in a block.
    fn block_size(&self) -> usize {
        1
    }

    /// Why θ has no law that draws could be made by without weights, on the data that the model was built for; `None` if it has.
    fn lawless(&self) -> Option<&'static str> {
        Some("only the median and quantiles of one column have a law that is known by itself")
    }

    /// Whether that law, which leaves no weights to look at, is worth it unasked.
    fn prefers_law(&self) -> bool {
        false
    }

    /// That law, on the data that the model was built for.
    fn law(&self, _train: &Dataset) -> Option<Box<dyn Law>> {
        None
    }

    /// Whether censored responses are told from events: `data.event` has a meaning.
    fn knows_events(&self) -> bool {
        false
    }

    /// Whether `data.offset` and `data.exposure` have a meaning: there is a linear predictor that they are added to.
    fn knows_offsets(&self) -> bool {
        false
    }

    /// What keeps the loss from having one minimum on these data, whatever their weights: keys below `model.<name>`, and
    /// why. `None` if no data could, or if it is a matter of the draw.
    fn flaws(&self, _train: &Dataset) -> Option<Vec<Complaint>> {
        None
    }

    /// Why the loss has no meaning for some of these rows, if so.
    fn refuses(&self, _rows: &Dataset) -> Option<String> {
        None
    }

    /// Why these cannot be pseudo-samples, if so.
    fn refuses_atoms(&self, rows: &Dataset) -> Option<String> {
        self.refuses(rows)
    }

    /// log f_θ(yᵢ) of every row into `out`; false if the loss is not a likelihood.
    fn log_density(&self, _theta: &[f64], _at: &Dataset, _out: &mut [f64]) -> bool {
        false
    }

    fn is_likelihood(&self) -> bool {
        false
    }

    /// E[y | x, θ] of every row into `out`, for a model that [has one](Model::has_mean).
    fn mean(&self, _theta: &[f64], _at: &Dataset, _out: &mut [f64]) {}

    /// P(y = k | x, θ) of every row and class into `out`, for a model whose response is a class.
    fn probabilities(&self, _theta: &[f64], _at: &Dataset, _out: &mut [f64]) {}

    /// The response has an expectation that is known.
    fn has_mean(&self) -> bool {
        false
    }

    /// What is told of a new row, a name for each number: by default the expectation of its response. None where θ itself is all
    /// that there is to tell.
    fn predicted(&self) -> Vec<String> {
        expectation(self)
    }

    /// The numbers of [`Model::predicted`] of every row into `out`, row after row.
    fn predict(&self, theta: &[f64], at: &Dataset, out: &mut [f64]) {
        self.mean(theta, at, out);
    }

    /// A response of every row, drawn from f_θ, into `out`; false if the loss is not a likelihood with responses.
    fn respond(&self, _theta: &[f64], _at: &Dataset, _rng: &mut Rng, _out: &mut [f64]) -> bool {
        false
    }

    /// Where the regression coefficients stand in θ, intercept aside.
    fn coefficients(&self) -> Option<Range<usize>> {
        None
    }

    /// Singularities of the loss in θ: at the floor, and merely narrow.
    fn collapse(&self, _theta: &[f64]) -> Option<Collapse> {
        None
    }

    /// Of counts that may vary more than Poisson's: at θ they do not.
    fn is_undispersed(&self, _theta: &[f64]) -> bool {
        false
    }

    /// Of a mixture: what its components are.
    fn components(&self) -> Option<Components> {
        None
    }

    /// What a regression takes for a response; `None` for a loss of rows alone.
    fn response(&self) -> Option<Response> {
        None
    }

    /// F_π with density f_π(y) = ∫ f_θ(y) dπ(θ), covariates from the rows of `data`; or why there is none.
    fn prior_predictive(&self, _data: &Arc<Dataset>) -> Result<Box<dyn BaseMeasure>, String> {
        Err("needs a prior on θ, and this loss has none".into())
    }

    /// Likelihood times prior on this data, for conventional Bayes; or the key below `model.<name>` that stands in the
    /// way, and why.
    fn joint<'a>(&'a self, _data: &'a Dataset) -> Result<Box<dyn Joint + 'a>, Complaint> {
        Err(complaint("", "is a loss without a likelihood, and conventional Bayes needs one"))
    }

    /// What [`Model::sampling`] makes, if it makes any.
    fn sampled(&self) -> Option<Sampled> {
        None
    }

    /// f_θ as a measure to draw pseudo-samples from, covariates from the rows of `data`; `None` if the loss is not a
    /// likelihood, or rows of it cannot be drawn.
    fn sampling(&self, _theta: &[f64], _data: &Arc<Dataset>) -> Option<Box<dyn BaseMeasure>> {
        None
    }
}

/// The support of f_θ as a base measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampled {
    /// Finitely many atoms of known shares, so that their weights can be exact.
    Finite,
    Endless,
}

/// What the expectation of the response of a model is called, if it has one.
fn expectation<M: Model + ?Sized>(model: &M) -> Vec<String> {
    match model.response() {
        Some(Response::Binary) if model.has_mean() => vec!["probability".into()],
        Some(_) if model.has_mean() => vec!["mean".into()],
        _ => Vec::new(),
    }
}

/// Likelihood times prior of a model on its data.
pub trait Joint: Send + Sync {
    /// One name per entry: θ of the model, then what the prior adds to it.
    fn names(&self) -> Vec<String>;

    /// What values the entries may take.
    fn blocks(&self) -> Vec<Block>;

    /// log π(θ) Π f_θ(yᵢ), normalised in π, and its derivatives into `gradient` if it is asked for: by θ, and by log θ
    /// where θ is positive or on a simplex, which is finite where θ vanishes.
    fn log_density(&self, theta: &[f64], gradient: Option<&mut [f64]>) -> f64;
}

/// How near a mixture has come to a singularity of its likelihood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collapse {
    /// A variance sits on the floor.
    pub at_floor: bool,
    /// A standard deviation is below a tenth of the data's.
    pub narrow: bool,
}

/// Whether a matrix, its d × d entries by rows, is symmetric and positive definite.
pub fn is_covariance(entries: &[f64], d: usize) -> bool {
    let Ok(matrix) = ndarray::ArrayView2::from_shape((d, d), entries) else { return false };
    let alike = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a.abs().max(b.abs());
    let symmetric = (0..d).all(|i| (0..i).all(|j| alike(matrix[[i, j]], matrix[[j, i]])));
    symmetric && crate::linalg::Cholesky::new(&matrix.to_owned()).is_some()
}

/// Responses that are all the same are met exactly by an ever better parameter beside the coefficients.
fn two_responses(train: &Dataset, what: &str) -> Option<Complaint> {
    let y = train.y.as_ref()?;
    let alike = y.iter().all(|v| *v == y[0]);
    let message = format!("has no minimum: all responses are the same, and so `{what}` has none");
    alike.then(|| complaint("", message))
}

/// A class without rows has no minimum.
fn every_class(train: &Dataset, classes: usize) -> Option<Complaint> {
    let y = train.y.as_ref()?;
    let absent = (0..classes).find(|&k| !y.iter().any(|y| *y == k as f64))?;
    let name = train.class_names().get(absent).cloned().unwrap_or_default();
    let name = crate::config::printable(&name);
    Some(complaint("", format!("has no minimum: class \"{name}\" has no training rows")))
}

/// `theta` for one column, `theta.<column>` for several.
fn column_names(symbol: &str, columns: &[String]) -> Vec<String> {
    match columns {
        [_] => vec![symbol.to_owned()],
        _ => columns.iter().map(|c| format!("{symbol}.{c}")).collect(),
    }
}

//! The experiment file as the user writes it: typed tables, each a struct whose comments are its reference.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::data::prepare::{Constant, Dummies, Missing, Standardise, StandardiseBy, Unseen};
use crate::data::simulate::Simulate;
use crate::error::Error;
use crate::init::Dist;
use crate::method::{Method, advi, importance, mdp, nuts};
use crate::model::{ModelConfig, Stage};
use crate::optim::Optimiser;
use crate::process::base::BaseConfig;
use crate::restarts::StopRule;

use crate::config::{
    Count, Document, InOrder, NonNegative, OpenUnit, Positive, Probability, Problems, Scalar, Texts,
};

/// An experiment: data, a parameter of interest, a prior on the sampling distribution, and how to sample.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Experiment {
    /// Name of the experiment and of its run directory.
    pub name: String,
    /// Seed of all randomness. Left out: drawn, printed and recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 9_223_372_036_854_775_807u64))]
    pub seed: Option<u64>,
    /// Independent repeats. Repeat i uses seed + i − 1, and new simulated data or a new split.
    #[serde(default = "one")]
    pub repeats: Count,
    /// How posterior draws are made.
    #[serde(default)]
    pub method: Method,
    pub data: DataConfig,
    /// Needed where there is no `[[stage]]`.
    #[serde(default = "ModelConfig::in_stages", skip_serializing_if = "ModelConfig::is_staged")]
    pub model: ModelConfig,
    /// Instead of `model`: models in stages, in order, which share the weights of a draw.
    #[serde(rename = "stage", default, skip_serializing_if = "Vec::is_empty")]
    written: Vec<Stage>,
    /// The Dirichlet process prior. Left out: α = 0, the Bayesian bootstrap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prior: Option<PriorConfig>,
    pub sampler: SamplerConfig,
    #[serde(default)]
    pub optimiser: Optimiser,
    /// Settings of `method = "nuts"`, and of the chains behind "mdp-npl".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nuts: Option<nuts::Settings>,
    /// Settings of `method = "advi"`, and of `sampler.fixed_init = "advi"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advi: Option<advi::Settings>,
    /// Settings of `method = "importance"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub importance: Option<importance::Settings>,
    /// Settings of `method = "mdp-npl"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mdp: Option<mdp::Settings>,
    #[serde(default)]
    pub evaluate: EvaluateConfig,
    /// Quantities of a draw, by expressions of its parameters: `odds.age = "exp(beta.age)"`. They are columns of the table of draws
    /// like parameters, and known to `model.custom.predict` and `npl predict --value`.
    #[serde(default, skip_serializing_if = "InOrder::is_empty")]
    pub derived: InOrder<Texts>,
    #[serde(default)]
    pub output: OutputConfig,
    /// Run the experiment over several values of one of its keys. Left out: once, as it stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathConfig>,
}

fn one() -> Count {
    Count::new(1).expect("at least one")
}

impl Experiment {
    /// What a document says, checked. Reading is compiled here, once, and not wherever experiments are read.
    pub fn read(document: &Document) -> Result<Experiment, Problems> {
        document.decode()
    }

    /// The file that says it all, without any default left out.
    pub fn to_toml(&self) -> Result<String, Error> {
        toml::to_string(self).map_err(|error| Error::Failed(error.to_string()))
    }

    /// Whether the model's table says anything of a penalty but that there is none.
    pub fn is_penalised(&self) -> bool {
        let tree = serde_json::to_value(&self.model).unwrap_or_default();
        let table = &tree[self.model.name()];
        let none = |value: &serde_json::Value| value.is_null() || value == "none";
        !none(&table["penalty"]) && table["gamma"] != 0.0 && table["gamma"] != 0
    }

    /// How often the rows are held out in parts: 1 without cross-validation.
    pub fn folds(&self) -> usize {
        self.evaluate.folds.map_or(1, Count::get)
    }
}

/// Stages are a model like any other, for all but the file.
impl<'de> Deserialize<'de> for Experiment {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Experiment, D::Error> {
        let mut experiment = Experiment::deserialize(from)?;
        let stages = std::mem::take(&mut experiment.written);
        if !stages.is_empty() {
            experiment.model = ModelConfig::Stages(stages);
        }
        Ok(experiment)
    }
}

impl Serialize for Experiment {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let written = self.model.stages().to_vec();
        Experiment::serialize(&Experiment { written, ..self.clone() }, to)
    }
}

/// Where the data come from, and what is done to them before any model sees them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DataConfig {
    /// File with the training rows, or a list of files to pool; gzip or not; looked for below `--data-dir`, `$NPL_DATA`,
    /// `./data` and the current folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub train: Option<Files>,
    /// File or files with the test rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<Files>,
    /// Draw the data from a known truth instead, anew in each repeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulate: Option<Simulate>,
    /// Format of the files. Left out: by their names, comma-separated if they tell nothing. Column files and Parquet are known by
    /// their bytes, whatever is said here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<FileFormat>,
    /// The response: a column, by name or by number from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Censoring, for models of survival times: a column that is 1 where the response is the time of an event, and 0 where it is
    /// only known that none came before it. Left out: all are events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// Offset of a regression: a column of numbers that are added to the linear predictor, with coefficient 1. Left out: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<String>,
    /// Exposure of a regression: a column of numbers above 0 whose logarithms are an offset, so that under a log link they
    /// multiply the mean. Left out: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exposure: Option<String>,
    /// Case weights: a column, by name or by number from 1, with the number of observations that each training row stands
    /// for. Left out: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<String>,
    /// Clusters: a column of text or numbers; training rows with the same value share one weight of the Dirichlet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// Strata: a column of text or numbers; the total weight of the training rows with the same value is fixed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stratify: Option<String>,
    /// Groups: a column of text or numbers; the experiment is run for the rows of each of its values by themselves, see
    /// docs/groups.md. Left out: once, for all rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Whose rows the columns, means and standard deviations of the groups are made of. Left out: "within".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_prepare: Option<ByPrepare>,
    /// File or files with the responses of the training rows, a line each, where they are apart from the covariates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<Files>,
    /// File or files with the responses of the test rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_labels: Option<Files>,
    /// What the texts of the response stand for: `{ ">50K" = 1, "<=50K" = 0 }`. Left out: they are numbers; -1 and 1
    /// become 0 and 1.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub classes: BTreeMap<String, f64>,
    /// Characters to cut off the end of the texts of the response: `"."`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strip: Option<String>,
    /// Draw the response from a model of the covariates, by the seed of the repeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<SimulatedResponse>,
    /// Columns to use, by name or by number from 1; others are not read and may hold anything. Left out: all but the
    /// response, event, offset, exposure, split, weight, cluster, stratum and group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<Vec<String>>,
    /// Response and columns by a formula, with R's meaning: `"income ~ age + I(age^2) + C(region, ref='north') + sex:hours"`. Instead
    /// of `target` and `columns`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub formula: Option<String>,
    /// New columns, by expressions of those of the file: `{ bmi = "weight/height^2" }`.
    #[serde(default, skip_serializing_if = "InOrder::is_empty")]
    pub derive: InOrder<String>,
    /// Which rows of the files to use, by an expression: `"age >= 18 and region == 'north'"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// Names of all columns of the file, where it has no header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names: Option<Vec<String>>,
    /// Whether the first line holds names. Left out: it does if one of its cells is not a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<bool>,
    /// One character between cells. Left out: a comma.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delimiter: Option<String>,
    /// What stands before decimals: `"."`, or `","` with another delimiter. Left out: a point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decimal: Option<String>,
    /// Lines to pass over at the top of each file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip_lines: Option<usize>,
    /// Lines that begin with this character are passed over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Cells that mean "missing": `["?", "NA", ""]`. In ARFF files `?` does in any case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_values: Vec<String>,
    /// What happens to missing values.
    #[serde(default)]
    pub missing: Missing,
    /// Columns of text, dates among them, or "auto": those with a text among their first 100 cells. Each becomes dummy columns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub categorical: Option<CategoricalConfig>,
    /// Which levels get a dummy column.
    #[serde(default)]
    pub dummies: Dummies,
    /// What happens to a level that occurs only in the test file.
    #[serde(default)]
    pub unseen: Unseen,
    /// Which columns are brought to mean 0 and standard deviation 1, which most searches need.
    #[serde(default)]
    pub standardise: Standardise,
    /// Whose mean and standard deviation standardise the test rows.
    #[serde(default)]
    pub standardise_by: StandardiseBy,
    /// What happens to a column that cannot be standardised because all its training values are equal.
    #[serde(default)]
    pub constant: Constant,
    /// Divide all numbers by this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub divide: Option<Positive>,
    /// Whether identical training rows become one row that counts for all of them, which changes no law, see docs/large.md. Left out:
    /// where it pays, that is from 10,000 rows on if no more than half of them are left, and of means, medians and quantiles no
    /// more than one in 32.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collapse: Option<bool>,
    /// Whether the rows are in a file that is mapped into memory, see docs/large.md: no draw depends on it. Left out: if they would take
    /// more than a quarter of the free memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mapped: Option<bool>,
    /// Use only so many training rows, from the first. 0 simulates the prior of θ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<usize>,
    /// Use only so many test rows, from the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_rows: Option<usize>,
    /// Train on so many rows, drawn at random from the training rows, with replacement, anew in each repeat: data sets of which the
    /// file is the truth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resample: Option<Count>,
    /// Share of the training rows to put aside for testing, at random, anew in each repeat; of the clusters, where the data
    /// have them: they are kept whole. Or a column or a file that says which.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<SplitConfig>,
}

impl DataConfig {
    pub fn has_decimal_commas(&self) -> bool {
        self.decimal.as_deref() == Some(",")
    }

    /// Groups are prepared by the rows of all of them.
    pub fn prepares_overall(&self) -> bool {
        self.by_prepare == Some(ByPrepare::Overall)
    }

    /// The column that says how rows are split.
    pub fn split_column(&self) -> Option<&String> {
        self.split.as_ref().and_then(|split| split.given()).and_then(|given| given.column.as_ref())
    }
}

/// A path, or several to pool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Files {
    One(String),
    Many(Vec<String>),
}

impl Files {
    pub fn as_slice(&self) -> &[String] {
        match self {
            Files::One(path) => std::slice::from_ref(path),
            Files::Many(paths) => paths,
        }
    }
}

/// How the groups of `data.by` are prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ByPrepare {
    /// Each by its own rows, as if there were no others.
    Within,
    /// All by the rows of all groups together.
    Overall,
}

/// How a data file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileFormat {
    /// Cells between delimiters.
    Csv,
    /// Cells between blanks.
    Whitespace,
    /// Weka's format.
    Arff,
    /// The format of MNIST.
    Idx,
    /// What `npl convert` makes of text.
    Columns,
    /// Columns of integers, floats, booleans or text; in a build with `--features parquet`.
    Parquet,
}

/// Columns of text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum CategoricalConfig {
    Columns(Vec<String>),
    Auto(Auto),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Auto {
    /// By the first cells of each column.
    Auto,
}

/// A split of the rows: at random, or as given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum SplitConfig {
    Share(OpenUnit),
    Table(SplitTable),
    Given(GivenSplit),
}

/// A random split that keeps the shares of the classes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SplitTable {
    /// Share of the rows for testing.
    pub test: OpenUnit,
    /// Whether each class of the response is split in these shares.
    #[serde(default)]
    pub stratify: bool,
}

/// A split that the data say: by a value of each row, in a column or in a file of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GivenSplit {
    /// A column of text or numbers, by name or by number from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// Instead of it, a file with a value for each row, a line each, without a header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The value of the rows to put aside for testing, the same in each repeat. Left out: values are folds, in the order of numbers
    /// or of the alphabet, and each repeat puts the next of them aside: fold (seed mod folds) + 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_out: Option<String>,
}

impl SplitConfig {
    /// The share of a random split.
    pub fn share(&self) -> Option<f64> {
        match self {
            SplitConfig::Share(share) => Some(share.get()),
            SplitConfig::Table(table) => Some(table.test.get()),
            SplitConfig::Given(_) => None,
        }
    }

    pub fn given(&self) -> Option<&GivenSplit> {
        match self {
            SplitConfig::Given(given) => Some(given),
            _ => None,
        }
    }

    pub fn stratify(&self) -> bool {
        matches!(self, SplitConfig::Table(table) if table.stratify)
    }
}

/// A response drawn from a model of the covariates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum SimulatedResponse {
    /// Bernoulli with the logistic function of Σ βⱼxⱼ, on the covariates as prepared: coefficients by column, the others
    /// are 0.
    Logistic(BTreeMap<String, f64>),
    /// 0 or 1, by a link that need not be the logistic one.
    Binary(SimulatedBinary),
    /// Poisson with mean exp(Σ βⱼxⱼ).
    Poisson(BTreeMap<String, f64>),
    /// Weibull survival times, censored at a given time.
    Weibull(SimulatedSurvival),
    /// Normal with mean Σ βⱼxⱼ.
    Linear(SimulatedNumbers),
    /// Negative binomial counts with mean exp(Σ βⱼxⱼ).
    NegativeBinomial(SimulatedCounts),
    /// Gamma with mean exp(Σ βⱼxⱼ).
    Gamma(SimulatedGamma),
    /// Beta with mean 1/(1 + exp(−Σ βⱼxⱼ)).
    Beta(SimulatedBeta),
    /// Ordered classes.
    Ordered(SimulatedOrdered),
    /// One of several classes.
    Multinomial(SimulatedClasses),
    /// Exponential survival times, censored at a given time.
    Exponential(SimulatedExponential),
}

/// P(y = 1) = G(c + Σ βⱼxⱼ).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SimulatedBinary {
    /// The distribution function G.
    pub link: Link,
    /// Coefficients by column, the others are 0.
    pub beta: BTreeMap<String, f64>,
    /// The constant c.
    #[serde(default)]
    pub intercept: f64,
}

/// What makes a probability of a linear predictor η.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Link {
    /// 1/(1 + exp(−η)).
    Logit,
    /// Φ(η), of the standard normal.
    Probit,
    /// 1 − exp(−exp(η)).
    Cloglog,
    /// ½ + atan(η)/π, of the standard Cauchy distribution.
    Cauchit,
}

impl Link {
    /// P(y = 1) at η.
    pub fn probability(self, eta: f64) -> f64 {
        match self {
            Link::Logit => 1.0 / (1.0 + libm::exp(-eta)),
            Link::Probit => 0.5 * libm::erfc(-eta * std::f64::consts::FRAC_1_SQRT_2),
            Link::Cloglog => -libm::expm1(-libm::exp(eta)),
            Link::Cauchit => 0.5 + libm::atan(eta) / std::f64::consts::PI,
        }
    }
}

/// y = Σ βⱼxⱼ + σ z with z ~ N(0, 1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SimulatedNumbers {
    /// Coefficients by column, the others are 0.
    pub beta: BTreeMap<String, f64>,
    /// The standard deviation σ.
    pub sigma: Positive,
}

/// Counts with mean μ and variance μ + α μ².
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SimulatedCounts {
    /// Coefficients by column, the others are 0.
    pub beta: BTreeMap<String, f64>,
    /// The dispersion α.
    pub dispersion: Positive,
}

/// Numbers above 0 with mean μ and variance μ²/k.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SimulatedGamma {
    /// Coefficients by column, the others are 0.
    pub beta: BTreeMap<String, f64>,
    /// The shape k.
    pub shape: Positive,
}

/// Numbers between 0 and 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SimulatedBeta {
    /// Coefficients by column, the others are 0.
    pub beta: BTreeMap<String, f64>,
    /// The precision: the sum of both parameters of the density.
    pub precision: Positive,
}

/// P(y ≤ k) = 1/(1 + exp(Σ βⱼxⱼ − cₖ₊₁)).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SimulatedOrdered {
    /// Coefficients by column, the others are 0.
    pub beta: BTreeMap<String, f64>,
    /// Cut points, in order; there is one class more.
    pub cut: Vec<f64>,
}

/// P(y = k) ∝ exp(Σ βₖⱼxⱼ).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SimulatedClasses {
    /// The class whose coefficients are 0.
    pub base: String,
    /// Coefficients by class and column, the others are 0.
    pub beta: BTreeMap<String, BTreeMap<String, f64>>,
}

/// log T = Σ βⱼxⱼ + log E with E ~ Exp(1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SimulatedExponential {
    /// Coefficients by column, the others are 0.
    pub beta: BTreeMap<String, f64>,
    /// Times beyond this are censored there. Left out: none are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub censored_at: Option<Positive>,
}

/// log T = Σ βⱼxⱼ + log E/k with E ~ Exp(1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SimulatedSurvival {
    /// Coefficients by column, the others are 0.
    pub beta: BTreeMap<String, f64>,
    /// The shape k.
    pub shape: Positive,
    /// Times beyond this are censored there. Left out: none are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub censored_at: Option<Positive>,
}

/// F ~ DP(α, F_π), eq. (2). The methods of conventional Bayes have no use for it; their prior is the model's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PriorConfig {
    /// Concentration α: the weight of the prior in rows of data. 0 is the Bayesian bootstrap.
    pub alpha: NonNegative,
    /// Number of pseudo-samples T of a draw.
    #[serde(rename = "T", default, skip_serializing_if = "Option::is_none")]
    pub truncation_limit: Option<Count>,
    /// How the prior part is made finite. Left out: "dirichlet" if T is given, otherwise "exact" where the base
    /// measure has finite support, otherwise adaptive with epsilon 1e-6.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncation: Option<TruncationConfig>,
    /// The base measure F_π that pseudo-samples are drawn from. Needed where alpha > 0, but for `method = "mdp-npl"`, whose
    /// base measure is the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<BaseConfig>,
}

/// From infinitely many prior atoms to finitely many.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum TruncationConfig {
    /// T pseudo-samples with weights Dir(α/T, …, α/T), as in Algorithm 2.
    Dirichlet,
    /// T sticks, of which the last takes the rest.
    StickBreaking,
    /// Sticks until less than this mass is left.
    Adaptive(OpenUnit),
    /// All atoms of a base measure with finite support: no truncation.
    Exact,
}

/// How posterior draws are found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SamplerConfig {
    /// Number of posterior draws B; of "nuts" over all chains, of "importance" from the proposal.
    #[serde(rename = "B")]
    pub draws: Count,
    /// Random restarts R of each draw (RR-NPL); with a `stop` rule, at most so many. Left out: 1.
    #[serde(rename = "R", default, skip_serializing_if = "Option::is_none")]
    pub restarts: Option<Count>,
    /// Distribution of the starts of each block of parameters.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub init: BTreeMap<String, Dist>,
    /// Start every draw from the same point (FI-NPL) instead of random restarts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fixed_init: Option<FixedInitConfig>,
    /// Stop restarting before R when enough has been seen. Left out: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<StopRule>,
    /// Draw by the law of θ instead of weights, where it is known: median and quantiles of one column under the Bayesian bootstrap,
    /// see docs/large.md. Left out: from 100,000 rows on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub law: Option<bool>,
    /// Share of draws that may have no minimum (failed, separated, unidentified) before the run counts as failed (exit code
    /// 3).
    #[serde(default = "none_failed")]
    pub max_failed: Probability,
    /// Share of draws that may run out of iterations before the run counts as failed (exit code 3).
    #[serde(default = "few_unconverged")]
    pub max_unconverged: Probability,
}

fn none_failed() -> Probability {
    Probability::new(0.0).expect("a probability")
}

fn few_unconverged() -> Probability {
    Probability::new(0.01).expect("a probability")
}

/// θ_init of FI-NPL, Algorithm 4.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum FixedInitConfig {
    /// The best of so many fits to the unweighted data, from random starts.
    BestOf(Count),
    /// The centre of a variational fit to the conventional posterior: one run of ADVI with the settings of `[advi]`, on the
    /// model's `prior`.
    Advi,
    /// A CSV file with a column per parameter, named as in `samples.csv`, of which the first row counts; or, for a
    /// mixture, with a row per component, see docs/models.md.
    File(String),
    /// A draw of an earlier run.
    Run {
        /// Its run directory.
        path: String,
        /// Which of its draws, counted from 1 over all repeats. Left out: the draw with the smallest loss on the unweighted
        /// training data.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        draw: Option<Count>,
    },
}

/// What is computed from the draws.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EvaluateConfig {
    /// Which metrics. Left out: all that apply to the model and the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Vec<Metric>>,
    /// A coefficient counts as zero if its posterior mean is below this in absolute value; needed for sparsity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epsilon: Option<Positive>,
    /// Cross-validation: the rows are dealt out over so many folds, and the experiment is run once for each, without its rows, which
    /// are then the test rows. Each of `repeats` deals anew. Left out: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folds: Option<Count>,
}

/// A number that is computed from the draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Mean log pointwise predictive density of the test data, eq. (E.11).
    Lppd,
    /// Mean squared error of the predictive mean of the response: of the probability of a 1, eq. (E.12), where it is 0 or 1, else
    /// in its own unit.
    Mse,
    /// Per cent of test responses predicted by a predictive probability above ½, eq. (E.13); of several classes, by the
    /// largest.
    Accuracy,
    /// Per cent of coefficients whose posterior mean is below epsilon in absolute value.
    Sparsity,
    /// Area under the curve of true against false positives, for a response 0 or 1: how often the probability of a 1 is higher
    /// for a response 1 than for a response 0. Computed only where it is named.
    Auc,
    /// −LPPD of a response that is a class. Computed only where it is named.
    LogLoss,
}

/// What is written to the run directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutputConfig {
    /// File of the draws. Its ending is its format: `.csv`; `.csv.gz`; `.npy`, float64, with the names of the columns in
    /// `.columns.json`; `.parquet`, in a build with `--features parquet`.
    #[serde(default = "OutputConfig::default_samples")]
    pub samples: String,
    /// Whether to keep, in `pointwise.csv`, the log predictive density of every test row; of `method = "nuts"` also the log
    /// likelihood of every training row by every draw of the first repeat, in `log_lik.npy`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pointwise: bool,
    /// Whether to keep, in `influence.csv`, how much every training row moves each parameter: needed for BCa intervals.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub influence: bool,
}

impl OutputConfig {
    fn default_samples() -> String {
        crate::store::SAMPLES.into()
    }
}

impl Default for OutputConfig {
    fn default() -> Self {
        OutputConfig { samples: Self::default_samples(), pointwise: false, influence: false }
    }
}

/// A sweep over one key of the experiment (section 3.3). All settings use the same random weights and starts, so that what
/// changes along the path is due to the key alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PathConfig {
    /// The key that is varied: `"model.logistic.penalty.student_t.b"`.
    pub parameter: String,
    /// Its values, in order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<Scalar>>,
    /// Or a geometric sequence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub geometric: Option<Geometric>,
    /// A draw of a parameter counts as near zero below this, in absolute value.
    #[serde(default = "PathConfig::default_near_zero")]
    pub near_zero: NonNegative,
    /// Whether the search of a draw begins at the minimum that the same draw has at the setting before, under the same weights; the
    /// first of its restarts does, the others begin as ever. It is faster, and leaves a loss with one minimum where it was; one with
    /// several is followed from the first setting on, so that its minima depend on the settings before (docs/performance.md). Shards
    /// are then of draws, through all settings.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub warm: bool,
    /// Parameters whose draws are kept for every setting, by name or pattern (`"beta.*"`); of the others `path.csv` has the quantiles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keep: Vec<String>,
}

/// first, first · ratio, first · ratio², …
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Geometric {
    pub first: f64,
    pub ratio: Positive,
    /// How many.
    pub count: Count,
}

impl PathConfig {
    fn default_near_zero() -> NonNegative {
        NonNegative::new(0.01).expect("at least 0")
    }

    /// The values of all settings.
    pub fn settings(&self) -> Vec<Scalar> {
        match (&self.values, &self.geometric) {
            (Some(values), _) => values.clone(),
            (None, Some(Geometric { first, ratio, count })) => {
                let value = |t: usize| Scalar::Number(first * libm::pow(ratio.get(), t as f64));
                (0..count.get()).map(value).collect()
            }
            (None, None) => Vec::new(),
        }
    }

    /// Where the value of setting `t`, from 0, is written.
    fn place(&self, t: usize) -> String {
        if self.values.is_some() { format!("path.values[{t}]") } else { "path.geometric".into() }
    }
}

impl Document {
    /// The document of setting `t`, from 0, of its path.
    pub fn setting(&self, path: &PathConfig, t: usize, value: &Scalar) -> Result<Document, Problems> {
        self.with("path.parameter", &path.place(t), value)
    }
}

/// The JSON schema of an experiment file, for editors.
pub fn schema() -> &'static serde_json::Value {
    crate::config::schema_of::<Experiment>()
}

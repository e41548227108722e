//! K-component, d-dimensional diagonal Gaussian mixture: l(y, θ) = −log Σₖ πₖ Πⱼ N(yⱼ; μₖⱼ, σ²ₖⱼ), minimised by
//! weighted EM (supplement E.2.1) with a Newton finish. Other covariances are in [`shaped`].
//!
//! The likelihood is unbounded: a component that shrinks onto one atom drives the loss to −∞. So the smallest
//! variance is part of the target and stands in the config; it is a clamp, under which EM stays monotone.

mod em;
mod joint;
mod mixed;
mod newton;
mod shaped;
mod shaped_joint;
mod step;

use std::f64::consts::TAU;
use std::sync::Arc;

use ndarray::Array2;
use rand::distr::Distribution;
use rand_distr::StandardNormal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) use self::joint::component;

use self::em::EmSums;
use self::joint::{MixtureJoint, MixtureMeasure};
use self::shaped::Shaped;
use super::em::Em;
use super::{Block, Collapse, Components, Context, Model, Sampled, Search, Support};
use crate::config::{Complaint, Count, Gamma, Positive, complaint};
use crate::data::Dataset;
use crate::kernel::Level;
use crate::kernel::mixture::{Mixture, log_density};
use crate::kernel::sparse::{self, Expanded};
use crate::math::log_sum_exp;
use crate::model::Joint;
use crate::optim::Minimum;
use crate::process::base::PriorPredictive;
use crate::process::{BaseMeasure, Measure};
use crate::rng::Rng;

pub const STARTER: &str = include_str!("../../../configs/starters/gmm.toml");

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(non_snake_case)]
pub struct Config {
    /// Number of components.
    pub K: Count,
    /// The smallest variance a component may have in any column, or in any direction where covariances are not diagonal. The
    /// likelihood has no maximum without it: see docs/models.md for how to choose it.
    pub variance_floor: Positive,
    /// Added to every variance in every M step, as the authors' code does. Such steps minimise no loss and may go up: for repeating the
    /// paper's numbers, with `optimiser.change` and diagonal covariances.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variance_added: Option<Positive>,
    /// What the covariances of the components are. Left out they are diagonal.
    #[serde(default, skip_serializing_if = "Covariance::is_diagonal")]
    pub covariance: Covariance,
    /// Penalty on the variances (loss-NPL), which removes the singularities of the likelihood.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub penalty: Option<Penalty>,
    /// Strength γ of the penalty: a number, or "1/n".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gamma: Option<Gamma>,
    /// The parametric prior on (π, μ, σ): for conventional Bayes, and for a base measure `"prior_predictive"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prior: Option<MixturePrior>,
}

/// Covariances of the components.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Covariance {
    /// A variance for each component and column: `sigma2.k.j`.
    #[default]
    Diagonal,
    /// A variance for each component: `sigma2.k`.
    Spherical,
    /// One matrix for all components: `Sigma.i.j`.
    Tied,
    /// A matrix for each component: `Sigma.k.i.j`.
    Full,
}

impl Covariance {
    fn is_diagonal(&self) -> bool {
        *self == Covariance::Diagonal
    }

    fn is_matrix(self) -> bool {
        matches!(self, Covariance::Tied | Covariance::Full)
    }
}

/// g(θ) of loss-NPL, eq. (8).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Penalty {
    /// Shape a and scale b: g = Σ (a + 1) log σ² + b/σ², minus the log density of an inverse gamma on each variance; of matrices on
    /// each eigenvalue, Σ (a + 1) log |Σ| + b tr Σ⁻¹.
    InverseGamma([Positive; 2]),
}

/// The prior of eq. (9): π ~ Dir(a₀), μ ~ N, σ ~ logNormal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MixturePrior {
    /// Dirichlet parameter of the component weights.
    #[serde(default = "MixturePrior::default_a0")]
    pub a0: Positive,
    /// Mean and standard deviation of the normal prior of each μ.
    #[serde(default = "MixturePrior::default_pair")]
    pub mu: (f64, Positive),
    /// Log-mean and log-standard-deviation of the log-normal prior of each standard deviation σ.
    #[serde(default = "MixturePrior::default_pair")]
    pub sigma: (f64, Positive),
}

impl MixturePrior {
    fn default_a0() -> Positive {
        Positive::new(1.0).expect("positive")
    }

    fn default_pair() -> (f64, Positive) {
        (0.0, Positive::new(1.0).expect("positive"))
    }
}

impl Config {
    pub fn build(&self, context: &Context) -> Result<Box<dyn Model>, Vec<Complaint>> {
        let k = self.K.get();
        let n = context.train.rows_before();
        let mut problems = Vec::new();
        if n > 0 && n < k {
            problems.push(complaint("K", format!("is {k}, more than the {n} rows of data")));
        }
        let penalty = match (&self.penalty, &self.gamma) {
            (Some(Penalty::InverseGamma([a, b])), Some(gamma)) => {
                let gamma = gamma.value(context.one_over_n());
                (gamma > 0.0).then(|| Shrinkage { shape: gamma * (a.get() + 1.0), scale: gamma * b.get() })
            }
            (None, None) => None,
            (Some(_), None) => {
                problems.push(complaint("penalty", "needs its strength: add `gamma = \"1/n\"` or a number"));
                None
            }
            (None, Some(_)) => {
                problems.push(complaint("gamma", "is the strength of a `penalty`, and there is none"));
                None
            }
        };
        if self.variance_added.is_some() {
            if !self.covariance.is_diagonal() {
                let message = "is for diagonal covariances: leave it out, or leave out `covariance`";
                problems.push(complaint("variance_added", message));
            }
            if context.optimiser.change.is_none() {
                let message = "makes steps that minimise no loss, so that no search would converge: state with `optimiser.change` \
                               when to stop, as the authors' code does (0.01 for MNIST, 1e-7 for the toy)";
                problems.push(complaint("variance_added", message));
            }
        }
        if self.covariance.is_matrix() {
            problems.extend(self.matrix_problems(context.train));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        if !self.covariance.is_diagonal() {
            return Ok(Box::new(Shaped {
                covariance: self.covariance,
                k,
                d: context.train.d(),
                floor: self.variance_floor.get(),
                penalty,
                prior: self.prior.clone(),
                spread: (n > 0).then(|| shaped::covariance_of(context.train)),
                em: Em::new(context),
                level: Level::current(),
            }));
        }
        let spread = context.train.moments().iter().map(|(_, v)| v.sqrt()).collect();
        Ok(Box::new(Gmm {
            k,
            d: context.train.d(),
            floor: self.variance_floor.get(),
            added: self.variance_added.map_or(0.0, Positive::get),
            penalty,
            prior: self.prior.clone(),
            data_sd: if n > 0 { spread } else { Vec::new() },
            mass: context.mass,
            tolerance: context.optimiser.tolerance.get(),
            change: context.optimiser.change.map(|c| c.get()),
            max_iterations: context.optimiser.max_iterations.get(),
            sparse: is_sparse(context.train),
            level: Level::current(),
        }))
    }
}

/// Entries that the matrices of a mixture may have.
const MOST_ENTRIES: usize = 1_000_000;
/// The least share of the largest variance that the smallest eigenvalue of a matrix of doubles can be told by.
const LEAST_SHARE: f64 = 1e-12;

impl Config {
    /// What is wrong where covariances are matrices.
    fn matrix_problems(&self, train: &Dataset) -> Vec<Complaint> {
        let mut problems = Vec::new();
        if self.prior.is_some() {
            let message = "has no use: it is one of standard deviations, for diagonal and spherical covariances, and no prior of \
                           matrices is known here; leave it out";
            problems.push(complaint("prior", message));
        }
        let (d, matrices) = (train.d(), if self.covariance == Covariance::Full { self.K.get() } else { 1 });
        let entries = matrices.saturating_mul(d * d);
        if entries > MOST_ENTRIES {
            let message = format!(
                "would have {entries} entries in {d} columns, and at most {MOST_ENTRIES} are possible"
            );
            problems.push(complaint("covariance", message));
        }
        let widest = train.moments().iter().map(|(_, v)| *v).fold(0.0, f64::max);
        let (floor, least) = (self.variance_floor.get(), LEAST_SHARE * widest);
        if train.n() > 0 && floor < least {
            let message = format!(
                "is {floor:e}, less than {LEAST_SHARE:e} of the largest variance {widest:.3e} of the data: a matrix of doubles \
                 cannot tell such an eigenvalue from 0; raise it, or give the columns other units"
            );
            problems.push(complaint("variance_floor", message));
        }
        problems
    }
}

/// γ g(σ²) = shape · log σ² + scale / σ², summed over components and columns.
#[derive(Clone, Copy, Debug)]
struct Shrinkage {
    shape: f64,
    scale: f64,
}

/// The mixture on data of d columns. θ is π (K), then μ (K × d by rows), then σ² (K × d by rows).
struct Gmm {
    k: usize,
    d: usize,
    floor: f64,
    /// What the authors' M step adds to every variance; 0 in one that minimises the loss.
    added: f64,
    penalty: Option<Shrinkage>,
    prior: Option<MixturePrior>,
    data_sd: Vec<f64>,
    mass: f64,
    tolerance: f64,
    change: Option<f64>,
    max_iterations: usize,
    /// Rows are passed over by their non-zero cells.
    sparse: bool,
    level: Level,
}

/// In at least so many columns, of whose cells at least this share is zero, visiting the others alone is faster, be the
/// components close or far apart: measured for K from 3 to 20, with 2000 rows.
const SPARSE_COLUMNS: usize = 64;
const SPARSE_SHARE: f64 = 0.5;

/// Searches over sparse rows that share their first E step.
const SPARSE_BLOCK: usize = 32;

fn is_sparse(data: &Dataset) -> bool {
    let zeros: usize = data.x.iter().map(|row| row.iter().filter(|x| **x == 0.0).count()).sum();
    data.d() >= SPARSE_COLUMNS && zeros as f64 >= SPARSE_SHARE * (data.n() * data.d()) as f64
}

/// σ below this share of the data's standard deviation counts as narrow.
const NARROW: f64 = 0.1;

impl Gmm {
    fn pi<'t>(&self, theta: &'t [f64]) -> &'t [f64] {
        &theta[..self.k]
    }

    fn mu<'t>(&self, theta: &'t [f64]) -> &'t [f64] {
        &theta[self.k..self.k + self.k * self.d]
    }

    fn sigma2<'t>(&self, theta: &'t [f64]) -> &'t [f64] {
        &theta[self.k + self.k * self.d..]
    }

    /// θ prepared for the kernels.
    fn prepare(&self, theta: &[f64], mixture: &mut Mixture) {
        let sigma2 = self.sigma2(theta);
        mixture.log_constant.clear();
        for (k, pi) in self.pi(theta).iter().enumerate() {
            let logs: f64 = sigma2[k * self.d..(k + 1) * self.d].iter().map(|s| libm::log(TAU * s)).sum();
            mixture.log_constant.push(libm::log(*pi) - 0.5 * logs);
        }
        mixture.mean.clear();
        mixture.mean.extend_from_slice(self.mu(theta));
        mixture.inverse_sd.clear();
        mixture.inverse_sd.extend(sigma2.iter().map(|s| 1.0 / s.sqrt()));
    }

    /// θ prepared for the kernels over sparse rows, where those are in use and exact at θ.
    fn expand(&self, theta: &[f64]) -> Option<Expanded> {
        if !self.sparse {
            return None;
        }
        Expanded::new(self.level, self.pi(theta), self.mu(theta), self.sigma2(theta))
    }

    /// γ g(θ).
    fn penalty(&self, theta: &[f64]) -> f64 {
        let Some(p) = self.penalty else { return 0.0 };
        self.sigma2(theta).iter().map(|s| p.shape * libm::log(*s) + p.scale / s).sum()
    }

    fn at_floor(&self, sigma2: f64) -> bool {
        sigma2 <= self.floor * (1.0 + 1e-9)
    }
}

fn no_prior() -> Complaint {
    let missing = "is missing: conventional Bayes needs a prior on θ; an empty table takes that of the paper";
    complaint("prior", missing)
}

/// One row: the components are exchangeable a priori, so the one a row comes from has fresh μ and σ, whatever π. A sphere has one
/// σ for all columns.
fn predictive_row(
    d: usize,
    prior: Option<&MixturePrior>,
    spherical: bool,
) -> Result<Box<dyn BaseMeasure>, String> {
    let missing = "needs a prior on θ: [model.gmm.prior] is missing";
    let MixturePrior { mu: (m, s), sigma: (log_mean, log_sd), .. } = prior.cloned().ok_or(missing)?;
    let (s, log_sd) = (s.get(), log_sd.get());
    let normal = |rng: &mut Rng| -> f64 { StandardNormal.sample(rng) };
    let sd = move |rng: &mut Rng| libm::exp(log_mean + log_sd * normal(rng));
    let draw = move |rng: &mut Rng, row: &mut [f64]| {
        let of_all = spherical.then(|| sd(rng));
        for value in row {
            let mu = m + s * normal(rng);
            let sigma = of_all.unwrap_or_else(|| sd(rng));
            *value = mu + sigma * normal(rng);
        }
    };
    let variance = s * s + libm::exp(2.0 * log_mean + 2.0 * log_sd * log_sd);
    Ok(Box::new(PriorPredictive { d, draw: Arc::new(draw), moments: Some(vec![(m, variance); d]) }))
}

impl Model for Gmm {
    fn names(&self) -> Vec<String> {
        Components::DiagonalGaussian { count: self.k, columns: self.d }.names()
    }

    fn components(&self) -> Option<Components> {
        Some(Components::DiagonalGaussian { count: self.k, columns: self.d })
    }

    fn blocks(&self) -> Vec<Block> {
        let (k, kd) = (self.k, self.k * self.d);
        vec![
            Block { name: "pi".into(), range: 0..k, support: Support::Simplex },
            Block { name: "mu".into(), range: k..k + kd, support: Support::Location },
            Block { name: "sigma2".into(), range: k + kd..k + 2 * kd, support: Support::Positive },
        ]
    }

    fn loss(&self, theta: &[f64], f: &Measure) -> f64 {
        self.em_pass(theta, f, true, &mut EmSums::new(self))
    }

    fn minimise(&self, f: &Measure, start: &[f64]) -> Minimum {
        let search = Search::new(f, start.to_vec());
        self.search_all(&[search]).pop().expect("one search, one minimum")
    }

    fn minimise_block(&self, searches: &[Search]) -> Vec<Minimum> {
        let alike = |a: &Search, b: &Search| {
            a.start == b.start && std::ptr::eq(a.f.observed(), b.f.observed()) && a.f.observed().n() > 0
        };
        searches.chunk_by(alike).flat_map(|searches| self.search_all(searches)).collect()
    }

    fn block_size(&self) -> usize {
        if self.sparse { SPARSE_BLOCK } else { 1 }
    }

    fn is_likelihood(&self) -> bool {
        true
    }

    fn log_density(&self, theta: &[f64], at: &Dataset, out: &mut [f64]) -> bool {
        match self.expand(theta) {
            Some(mixture) => sparse::log_density(self.level, at.x.sparse(), &mixture, out),
            None => {
                let mut mixture = Mixture::default();
                self.prepare(theta, &mut mixture);
                log_density(self.level, at.x.panel(), &mixture, out);
            }
        }
        true
    }

    fn predicted(&self) -> Vec<String> {
        (1..=self.k).map(|k| format!("component.{k}")).collect()
    }

    /// The posterior probabilities of the components that a row may come from.
    fn predict(&self, theta: &[f64], at: &Dataset, out: &mut [f64]) {
        let (pi, rest) = theta.split_at(self.k);
        let (mu, sigma2) = rest.split_at(self.k * self.d);
        let log_det: Vec<f64> =
            sigma2.chunks_exact(self.d).map(|s| s.iter().map(|s| libm::log(*s)).sum()).collect();
        for (x, out) in at.x.iter().zip(out.chunks_exact_mut(self.k)) {
            for (k, out) in out.iter_mut().enumerate() {
                let of = k * self.d..(k + 1) * self.d;
                let squares =
                    x.iter().zip(&mu[of.clone()]).zip(&sigma2[of]).map(|((x, m), s)| (x - m) * (x - m) / s);
                *out = libm::log(pi[k]) - 0.5 * (log_det[k] + squares.sum::<f64>());
            }
            let total = log_sum_exp(out);
            out.iter_mut().for_each(|p| *p = libm::exp(*p - total));
        }
    }

    fn collapse(&self, theta: &[f64]) -> Option<Collapse> {
        let sigma2 = self.sigma2(theta);
        let narrow =
            |(i, s): (usize, &f64)| self.data_sd.get(i % self.d).is_some_and(|sd| s.sqrt() < NARROW * sd);
        Some(Collapse {
            at_floor: sigma2.iter().any(|&s| self.at_floor(s)),
            narrow: sigma2.iter().enumerate().any(narrow),
        })
    }

    fn prior_predictive(&self, _data: &Arc<Dataset>) -> Result<Box<dyn BaseMeasure>, String> {
        predictive_row(self.d, self.prior.as_ref(), false)
    }

    fn joint<'a>(&'a self, data: &'a Dataset) -> Result<Box<dyn Joint + 'a>, Complaint> {
        let prior = self.prior.as_ref().ok_or_else(no_prior)?;
        Ok(Box::new(MixtureJoint { model: self, prior, data, empirical: Measure::empirical(data) }))
    }

    fn sampled(&self) -> Option<Sampled> {
        Some(Sampled::Endless)
    }

    fn sampling(&self, theta: &[f64], _data: &Arc<Dataset>) -> Option<Box<dyn BaseMeasure>> {
        let matrix = |values: Vec<f64>| Array2::from_shape_vec((self.k, self.d), values).expect("K × d");
        Some(Box::new(MixtureMeasure {
            pi: self.pi(theta).to_vec(),
            mean: matrix(self.mu(theta).to_vec()),
            sd: matrix(self.sigma2(theta).iter().map(|v| v.sqrt()).collect()),
        }))
    }
}

//! A mixture of K products of Bernoullis, for columns that are 0 or 1: l(y, θ) = −log Σₖ πₖ Πⱼ pₖⱼ^yⱼ (1 − pₖⱼ)^(1 − yⱼ), minimised by
//! weighted EM.

use std::sync::Arc;

use ndarray::Array2;
use rand::distr::Distribution;
use rand_distr::Open01;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::em::{Em, Expectation};
use super::gmm::component;
use super::{Block, Components, Context, Joint, Model, Response, Sampled, Support};
use crate::config::{Complaint, Count, OpenUnit, Positive, brief, complaint, printable};
use crate::data::Dataset;
use crate::kernel::Level;
use crate::kernel::components::{Bernoullis, Moments, bernoulli_density, bernoulli_step, bernoulli_sums};
use crate::math::{log_dirichlet_constant, log_sum_exp};
use crate::optim::Minimum;
use crate::process::base::PriorPredictive;
use crate::process::{BaseMeasure, Measure, Pseudo};
use crate::rng::Rng;

pub const STARTER: &str = include_str!("../../configs/starters/bernoulli_mixture.toml");

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(non_snake_case)]
pub struct Config {
    /// Number of components.
    pub K: Count,
    /// Probabilities of a component are no nearer to 0 and 1 than this, so that no row is impossible.
    #[serde(default = "Config::default_floor")]
    pub probability_floor: OpenUnit,
    /// The parametric prior on (π, p): for conventional Bayes, and for a base measure `"prior_predictive"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prior: Option<BernoulliPrior>,
}

/// π ~ Dir(a₀), p ~ Beta(a, b).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BernoulliPrior {
    /// Dirichlet parameter of the component weights.
    #[serde(default = "BernoulliPrior::one")]
    pub a0: Positive,
    /// Both parameters of the Beta prior of each p.
    #[serde(default = "BernoulliPrior::flat")]
    pub p: [Positive; 2],
}

impl BernoulliPrior {
    fn one() -> Positive {
        Positive::new(1.0).expect("positive")
    }

    fn flat() -> [Positive; 2] {
        [Self::one(); 2]
    }
}

impl Config {
    fn default_floor() -> OpenUnit {
        OpenUnit::new(1e-6).expect("strictly between 0 and 1")
    }

    pub fn build(&self, context: &Context) -> Result<Box<dyn Model>, Vec<Complaint>> {
        let (k, train) = (self.K.get(), context.train);
        let mut problems = Vec::new();
        if train.n() > 0 && train.n() < k {
            problems.push(complaint("K", format!("is {k}, more than the {} rows of data", train.n())));
        }
        let floor = self.probability_floor.get();
        if floor >= 0.5 {
            problems
                .push(complaint("probability_floor", "must be below 0.5: it is the least of p and of 1 − p"));
        }
        problems.extend(not_binary(train).map(|why| complaint("", why)));
        if !problems.is_empty() {
            return Err(problems);
        }
        let prior = self.prior.clone();
        Ok(Box::new(BernoulliMixture {
            k,
            d: train.d(),
            floor,
            prior,
            em: Em::new(context),
            level: Level::current(),
        }))
    }
}

/// The first cell that is not 0 or 1.
fn not_binary(rows: &Dataset) -> Option<String> {
    for (i, row) in rows.x.iter().enumerate() {
        if let Some(j) = row.iter().position(|v| !Response::Binary.admits(*v)) {
            let name = printable(&rows.columns[j]);
            return Some(format!(
                "takes columns of 0 and 1, and column \"{name}\" is {} in row {}; leave it out (`data.columns`), make it one \
                 (`data.derive`), or see that it is not standardised (`data.standardise`)",
                brief(row[j]),
                i + 1
            ));
        }
    }
    None
}

/// θ is π (K), then p (K × d by rows).
struct BernoulliMixture {
    k: usize,
    d: usize,
    floor: f64,
    prior: Option<BernoulliPrior>,
    em: Em,
    level: Level,
}

impl BernoulliMixture {
    fn pi<'t>(&self, theta: &'t [f64]) -> &'t [f64] {
        &theta[..self.k]
    }

    fn p<'t>(&self, theta: &'t [f64]) -> &'t [f64] {
        &theta[self.k..]
    }

    fn prepare(&self, theta: &[f64], mixture: &mut Bernoullis) {
        mixture.log_constant.clear();
        for (c, pi) in self.pi(theta).iter().enumerate() {
            let p = &self.p(theta)[c * self.d..(c + 1) * self.d];
            mixture.log_constant.push(libm::log(*pi) + p.iter().map(|p| libm::log1p(-p)).sum::<f64>());
        }
        mixture.logit.clear();
        mixture.logit.extend(self.p(theta).iter().map(|p| libm::log(*p) - libm::log1p(-p)));
    }

    fn clamped(&self, p: f64) -> f64 {
        p.clamp(self.floor, 1.0 - self.floor)
    }

    fn admissible(&self, start: &[f64]) -> Vec<f64> {
        let (pi, p) = start.split_at(self.k);
        pi.iter().copied().chain(p.iter().map(|p| self.clamped(*p))).collect()
    }

    fn pass<'a>(&'a self, f: &'a Measure<'a>) -> Pass<'a> {
        Pass { model: self, f, mixture: Bernoullis::default(), moments: Moments::default() }
    }
}

/// EM of the mixture on F.
struct Pass<'a> {
    model: &'a BernoulliMixture,
    f: &'a Measure<'a>,
    mixture: Bernoullis,
    moments: Moments,
}

/// 1/π of a component that has all but died.
const LEAST_ROOT: f64 = 1e-5;

impl Expectation for Pass<'_> {
    fn e_step(&mut self, theta: &[f64]) -> f64 {
        let model = self.model;
        model.prepare(theta, &mut self.mixture);
        self.moments.reset(model.k, bernoulli_sums(model.d));
        for atoms in self.f.atoms() {
            bernoulli_step(model.level, atoms.x.panel(), atoms.w, &self.mixture, &mut self.moments);
        }
        self.moments.finish();
        -self.moments.log_lik()
    }

    /// The expected log likelihood is concave in each p, so the clamp is its maximiser under the bounds and EM stays monotone.
    fn m_step(&mut self, theta: &mut [f64]) {
        let (k, d) = (self.model.k, self.model.d);
        let mut total = 0.0;
        for c in 0..k {
            let sums = self.moments.of(c, bernoulli_sums(d));
            total += sums[0];
            theta[c] = sums[0];
            // A component without mass stays where it is.
            if sums[0] > f64::MIN_POSITIVE {
                let p = &mut theta[k + c * d..k + (c + 1) * d];
                p.iter_mut().zip(&sums[1..]).for_each(|(p, ones)| *p = self.model.clamped(ones / sums[0]));
            }
        }
        theta[..k].iter_mut().for_each(|p| *p /= total);
    }

    /// 1/√π and √(π/(p(1 − p))).
    fn metric(&self, theta: &[f64]) -> Vec<f64> {
        let model = self.model;
        let roots = model.pi(theta).iter().map(|pi| 1.0 / pi.sqrt().max(LEAST_ROOT));
        let of = |(i, p): (usize, &f64)| (model.pi(theta)[i / model.d] / (p * (1.0 - p))).sqrt();
        roots.chain(model.p(theta).iter().enumerate().map(of)).collect()
    }

    fn measure(&self, metric: &[f64], step: &[f64]) -> Vec<f64> {
        metric.iter().zip(step).map(|(m, s)| m * s).collect()
    }

    fn admit(&self, theta: &mut [f64]) -> bool {
        let sound = theta.iter().all(|t| t.is_finite()) && self.model.pi(theta).iter().all(|p| *p >= 0.0);
        theta[self.model.k..].iter_mut().for_each(|p| *p = self.model.clamped(*p));
        sound
    }

    /// The likelihood is bounded, whatever p.
    fn is_collapsed(&self, _: &[f64]) -> bool {
        false
    }
}

impl Model for BernoulliMixture {
    fn names(&self) -> Vec<String> {
        Components::Bernoulli { count: self.k, columns: self.d }.names()
    }

    fn components(&self) -> Option<Components> {
        Some(Components::Bernoulli { count: self.k, columns: self.d })
    }

    fn blocks(&self) -> Vec<Block> {
        let (k, kd) = (self.k, self.k * self.d);
        vec![
            Block { name: "pi".into(), range: 0..k, support: Support::Simplex },
            Block { name: "p".into(), range: k..k + kd, support: Support::Unit },
        ]
    }

    fn refuses(&self, rows: &Dataset) -> Option<String> {
        not_binary(rows)
    }

    fn loss(&self, theta: &[f64], f: &Measure) -> f64 {
        self.pass(f).e_step(theta)
    }

    fn minimise(&self, f: &Measure, start: &[f64]) -> Minimum {
        self.em.minimise(&self.admissible(start), &mut self.pass(f))
    }

    fn is_likelihood(&self) -> bool {
        true
    }

    fn log_density(&self, theta: &[f64], at: &Dataset, out: &mut [f64]) -> bool {
        let mut mixture = Bernoullis::default();
        self.prepare(theta, &mut mixture);
        bernoulli_density(self.level, at.x.panel(), &mixture, out);
        true
    }

    fn predicted(&self) -> Vec<String> {
        (1..=self.k).map(|k| format!("component.{k}")).collect()
    }

    /// The posterior probabilities of the components that a row may come from.
    fn predict(&self, theta: &[f64], at: &Dataset, out: &mut [f64]) {
        let mut mixture = Bernoullis::default();
        self.prepare(theta, &mut mixture);
        for (x, out) in at.x.iter().zip(out.chunks_exact_mut(self.k)) {
            for (k, out) in out.iter_mut().enumerate() {
                let logits = &mixture.logit[k * self.d..(k + 1) * self.d];
                *out = mixture.log_constant[k] + x.iter().zip(logits).map(|(x, l)| x * l).sum::<f64>();
            }
            let total = log_sum_exp(out);
            out.iter_mut().for_each(|p| *p = libm::exp(*p - total));
        }
    }

    /// One row: the component that it comes from has fresh p, so every cell is 1 with probability a/(a + b), for itself.
    fn prior_predictive(&self, _data: &Arc<Dataset>) -> Result<Box<dyn BaseMeasure>, String> {
        let missing = "needs a prior on θ: [model.bernoulli_mixture.prior] is missing";
        let [a, b] = self.prior.as_ref().ok_or(missing)?.p.map(Positive::get);
        let mean = a / (a + b);
        let draw =
            move |rng: &mut Rng, row: &mut [f64]| row.iter_mut().for_each(|cell| *cell = coin(mean, rng));
        let moments = Some(vec![(mean, mean * (1.0 - mean)); self.d]);
        Ok(Box::new(PriorPredictive { d: self.d, draw: Arc::new(draw), moments }))
    }

    fn joint<'a>(&'a self, data: &'a Dataset) -> Result<Box<dyn Joint + 'a>, Complaint> {
        let missing = "is missing: conventional Bayes needs a prior on θ; an empty table is a flat one";
        let prior = self.prior.as_ref().ok_or_else(|| complaint("prior", missing))?;
        Ok(Box::new(BernoulliJoint { model: self, prior, data, empirical: Measure::empirical(data) }))
    }

    fn sampled(&self) -> Option<Sampled> {
        Some(Sampled::Endless)
    }

    fn sampling(&self, theta: &[f64], _data: &Arc<Dataset>) -> Option<Box<dyn BaseMeasure>> {
        let (pi, p) = (self.pi(theta).to_vec(), self.p(theta).to_vec());
        Some(Box::new(BernoulliMeasure { pi, p, d: self.d }))
    }
}

fn coin(p: f64, rng: &mut Rng) -> f64 {
    let u: f64 = Open01.sample(rng);
    f64::from(u8::from(u < p))
}

struct BernoulliJoint<'a> {
    model: &'a BernoulliMixture,
    prior: &'a BernoulliPrior,
    data: &'a Dataset,
    empirical: Measure<'a>,
}

impl Joint for BernoulliJoint<'_> {
    fn names(&self) -> Vec<String> {
        self.model.names()
    }

    fn blocks(&self) -> Vec<Block> {
        self.model.blocks()
    }

    /// Derivatives by log π and by p, from the sums of an E step (Fisher's identity).
    fn log_density(&self, theta: &[f64], gradient: Option<&mut [f64]>) -> f64 {
        let (model, n) = (self.model, self.data.mass());
        let (a0, [a, b]) = (self.prior.a0.get(), self.prior.p.map(Positive::get));
        let mut pass = model.pass(&self.empirical);
        let log_likelihood = -n * pass.e_step(theta);
        if let Some(gradient) = gradient {
            for c in 0..model.k {
                let sums = pass.moments.of(c, bernoulli_sums(model.d));
                gradient[c] = n * sums[0] + a0 - 1.0;
                for j in 0..model.d {
                    let i = model.k + c * model.d + j;
                    let (ones, zeros) = (n * sums[1 + j] + a - 1.0, n * (sums[0] - sums[1 + j]) + b - 1.0);
                    gradient[i] = ones / theta[i] - zeros / (1.0 - theta[i]);
                }
            }
        }
        // 0 · log 0 is 0 here: a flat prior does not mind the border.
        let times_log = |by: f64, log: f64| if by == 0.0 { 0.0 } else { by * log };
        let logs: f64 = model.pi(theta).iter().map(|p| times_log(a0 - 1.0, libm::log(*p))).sum();
        let beta = libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b);
        let of = |p: &f64| beta + times_log(a - 1.0, libm::log(*p)) + times_log(b - 1.0, libm::log1p(-p));
        let of_p: f64 = model.p(theta).iter().map(of).sum();
        log_likelihood + log_dirichlet_constant(a0, model.k) + logs + of_p
    }
}

/// The mixture at one θ.
struct BernoulliMeasure {
    pi: Vec<f64>,
    p: Vec<f64>,
    d: usize,
}

impl BaseMeasure for BernoulliMeasure {
    /// Each row from a component of its own.
    fn sample(&self, t: usize, rng: &mut Rng) -> Pseudo {
        let mut x = Array2::zeros((t, self.d));
        for mut row in x.outer_iter_mut() {
            let c = component(&self.pi, rng);
            let p = &self.p[c * self.d..(c + 1) * self.d];
            row.iter_mut().zip(p).for_each(|(cell, p)| *cell = coin(*p, rng));
        }
        Pseudo::Own(Box::new(Dataset::unnamed(x, None)))
    }
}

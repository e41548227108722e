//! Self-normalised importance sampling (supplement E.2.3): θ_b from a proposal q, with weight posterior over proposal.
//! Nothing is kept but sums: draws are as many as one likes.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rayon::ThreadPool;
use serde::{Deserialize, Serialize};

use crate::bytes::bytes;
use crate::error::Result;
use crate::init::{Dist, normalise, variate};
use crate::math::log_add_exp;
use crate::math::{log_dirichlet_constant, log_normal_density};
use crate::model::Joint;
use crate::model::{Block, Support};
use crate::ordered::in_order;
use crate::rng::{Purpose, Rng, Seed};

/// A draw whose log weight is further below the largest than this adds nothing to any sum.
pub const NEGLIGIBLE: f64 = 45.0;
/// Draws that a thread takes at one time.
const BLOCK: u64 = 256;

/// q(θ): one distribution for each block.
pub struct Proposal {
    blocks: Vec<(Block, Dist)>,
}

impl Proposal {
    /// What is wrong with it: the block, and why.
    pub fn new(
        blocks: Vec<Block>,
        config: &BTreeMap<String, Dist>,
    ) -> std::result::Result<Proposal, Vec<(String, String)>> {
        let mut problems = Vec::new();
        let known: Vec<String> = blocks.iter().map(|b| format!("`{}`", b.name)).collect();
        for name in config.keys().filter(|name| !blocks.iter().any(|b| b.name == name.as_str())) {
            let message = format!("is not a block of this posterior; its blocks are {}", known.join(", "));
            problems.push((name.clone(), message));
        }
        let mut chosen = Vec::new();
        for block in blocks {
            match config.get(block.name.as_ref()) {
                None => {
                    problems.push((block.name.to_string(), "is missing: every block needs a proposal".into()))
                }
                Some(dist) => match covers(dist, block.support) {
                    Ok(()) => chosen.push((block, dist.clone())),
                    Err(why) => problems.push((block.name.to_string(), why)),
                },
            }
        }
        if problems.is_empty() { Ok(Proposal { blocks: chosen }) } else { Err(problems) }
    }

    pub fn draw(&self, rng: &mut Rng) -> Vec<f64> {
        let len = self.blocks.iter().map(|(b, _)| b.range.len()).sum();
        let mut theta = vec![0.0; len];
        for (block, dist) in &self.blocks {
            let out = &mut theta[block.range.clone()];
            out.iter_mut().for_each(|v| *v = variate(dist, rng));
            match block.support {
                Support::Simplex => normalise(out),
                Support::Ordered => out.sort_by(f64::total_cmp),
                _ => {}
            }
        }
        theta
    }

    pub fn log_density(&self, theta: &[f64]) -> f64 {
        let of_block = |(block, dist): &(Block, Dist)| {
            let values = &theta[block.range.clone()];
            let constant = match (dist, block.support) {
                (Dist::Dirichlet(a), _) => log_dirichlet_constant(a.get(), values.len()),
                // Whatever their order was before.
                (_, Support::Ordered) => libm::lgamma(values.len() as f64 + 1.0),
                _ => 0.0,
            };
            constant + values.iter().map(|v| log_density(dist, *v)).sum::<f64>()
        };
        self.blocks.iter().map(of_block).sum()
    }
}

/// Whether a proposal reaches all of a block's support, and nothing else.
fn covers(dist: &Dist, support: Support) -> std::result::Result<(), String> {
    use Support::{Covariance, Location, Ordered, Positive, Real, Scale, Simplex, Unit, Variance};
    match (dist, support) {
        (Dist::Dirichlet(_), Simplex)
        | (Dist::Normal(_), Real | Location)
        | (Dist::LogNormal(_) | Dist::Gamma(_) | Dist::InverseGamma(_), Positive | Scale | Variance) => {
            Ok(())
        }
        (Dist::Uniform([low, high]), Real | Location) if low < high => Ok(()),
        (Dist::Uniform([low, high]), Positive | Scale | Variance) if low < high && *low >= 0.0 => Ok(()),
        (Dist::Uniform([low, high]), Unit) if low < high && *low >= 0.0 && *high <= 1.0 => Ok(()),
        (_, Simplex) => Err("sums to 1: its proposal is a `dirichlet`".into()),
        (_, Unit) => Err("lies between 0 and 1: its proposal is `uniform`".into()),
        (_, Ordered) => Err("is in order, and no proposal is".into()),
        (_, Covariance(_)) => Err("is a matrix, and no proposal is".into()),
        (_, Positive | Scale | Variance) => {
            Err("is positive: its proposal is `log_normal`, `gamma`, `inverse_gamma` or `uniform`".into())
        }
        (_, Real | Location) => Err("takes any value: its proposal is `normal` or `uniform`".into()),
    }
}

/// log of the density of one entry; of a Dirichlet without its constant.
fn log_density(dist: &Dist, x: f64) -> f64 {
    match *dist {
        Dist::Dirichlet(a) if a.get() == 1.0 => 0.0,
        Dist::Dirichlet(a) => (a.get() - 1.0) * libm::log(x),
        Dist::Uniform([low, high]) => -libm::log(high - low),
        Dist::Normal((m, s)) => log_normal_density(x, m, s.get()),
        Dist::LogNormal((m, s)) => log_normal_density(libm::log(x), m, s.get()) - libm::log(x),
        Dist::Gamma([shape, rate]) => {
            let (a, b) = (shape.get(), rate.get());
            a * libm::log(b) - libm::lgamma(a) + (a - 1.0) * libm::log(x) - b * x
        }
        Dist::InverseGamma([shape, scale]) => {
            let (a, b) = (shape.get(), scale.get());
            a * libm::log(b) - libm::lgamma(a) - (a + 1.0) * libm::log(x) - b / x
        }
        Dist::Constant(_) | Dist::File(_) | Dist::Data => f64::NAN,
    }
}

/// A draw from the proposal that counts.
pub struct WeightedDraw<T> {
    pub theta: Vec<f64>,
    pub log_joint: f64,
    pub result: T,
}

/// What the weights of all draws say.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Weights {
    pub draws: u64,
    /// 1/Σ w̃²: independent draws from the posterior that would do as well.
    pub ess: f64,
    /// Share of the largest weight.
    pub largest: f64,
    /// log of the mean weight: the log marginal likelihood.
    pub log_evidence: f64,
    /// Draws that were kept; the weights of all others together are below the rounding error of the sums.
    pub kept: u64,
}

/// Running sums of weights and their squares.
#[derive(Clone, Copy, Debug)]
pub struct WeightSums {
    draws: u64,
    kept: u64,
    max: f64,
    log_sum: f64,
    log_sum_squares: f64,
}

bytes!(Weights { draws, ess, largest, log_evidence, kept });
bytes!(WeightSums { draws, kept, max, log_sum, log_sum_squares });

impl Default for WeightSums {
    fn default() -> Self {
        let none = f64::NEG_INFINITY;
        WeightSums { draws: 0, kept: 0, max: none, log_sum: none, log_sum_squares: none }
    }
}

impl WeightSums {
    pub fn add(&mut self, log_weight: f64, kept: bool) {
        self.draws += 1;
        self.kept += u64::from(kept);
        self.max = self.max.max(log_weight);
        self.log_sum = log_add_exp(self.log_sum, log_weight);
        self.log_sum_squares = log_add_exp(self.log_sum_squares, 2.0 * log_weight);
    }

    /// Adds the draws that come next.
    pub fn fold(&mut self, next: &WeightSums) {
        self.draws += next.draws;
        self.kept += next.kept;
        self.max = self.max.max(next.max);
        self.log_sum = log_add_exp(self.log_sum, next.log_sum);
        self.log_sum_squares = log_add_exp(self.log_sum_squares, next.log_sum_squares);
    }

    /// The largest log weight.
    pub fn largest(&self) -> f64 {
        self.max
    }

    /// The same weights, of which so many were kept.
    pub fn with_kept(self, kept: u64) -> WeightSums {
        WeightSums { kept, ..self }
    }

    pub fn weights(&self) -> Weights {
        Weights {
            draws: self.draws,
            ess: libm::exp(2.0 * self.log_sum - self.log_sum_squares),
            largest: libm::exp(self.max - self.log_sum),
            log_evidence: self.log_sum - libm::log(self.draws as f64),
            kept: self.kept,
        }
    }
}

/// Which draws, of what, by whom.
pub struct Weighing<'a> {
    pub joint: &'a dyn Joint,
    pub proposal: &'a Proposal,
    pub draws: Range<u64>,
    /// The largest log weight of the draws before them, as far as it is known.
    pub largest: f64,
    pub seed: Seed,
    pub pool: &'a ThreadPool,
    pub cancel: &'a AtomicBool,
}

impl Weighing<'_> {
    /// Draws and weighs. Every log weight goes to `sink`, in order; those that may count with their draw and what `per_draw`
    /// makes of it.
    pub fn sample<T: Send>(
        &self,
        per_draw: impl Fn(&[f64]) -> T + Sync,
        mut sink: impl FnMut(u64, f64, Option<WeightedDraw<T>>) -> Result<()>,
    ) -> Result<()> {
        let Weighing { joint, proposal, seed, pool, cancel, .. } = *self;
        // The largest log weight that the sink has seen. Threads may read an old one: it is only smaller, so that they keep
        // more, and the sink, which goes by the order of the draws, decides.
        let largest = AtomicU64::new(self.largest.to_bits());
        let make = |index: u64| {
            let theta = proposal.draw(&mut seed.stream(Purpose::Proposal, index, 0));
            let log_joint = joint.log_density(&theta, None);
            let log_weight = log_joint - proposal.log_density(&theta);
            let log_weight = if log_weight.is_nan() { f64::NEG_INFINITY } else { log_weight };
            let counts = log_weight > f64::from_bits(largest.load(Ordering::Relaxed)) - NEGLIGIBLE;
            let draw = counts.then(|| WeightedDraw { result: per_draw(&theta), theta, log_joint });
            (index, log_weight, draw)
        };
        let mut max = self.largest;
        in_order(
            self.draws.clone(),
            BLOCK,
            pool,
            cancel,
            |ids, halted| (!halted()).then(|| ids.map(make).collect()),
            |(index, log_weight, draw)| {
                max = max.max(log_weight);
                largest.store(max.to_bits(), Ordering::Relaxed);
                sink(index, log_weight, draw.filter(|_| log_weight > max - NEGLIGIBLE))
            },
        )
    }
}

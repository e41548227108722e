//! Conventional Bayesian inference, for comparison: the posterior π(θ) Π f_θ(yᵢ) of a model that is believed, by NUTS,
//! ADVI and importance sampling. One definition of likelihood and prior, on the scale of θ, serves all of them.

pub mod advi;
pub mod convergence;
pub mod importance;
pub mod nuts;

use std::sync::atomic::AtomicBool;

use rand::distr::Distribution;
use rand_distr::Open01;
use rayon::ThreadPool;

use crate::error::{Error, Result};
use crate::init::Init;
use crate::model::{Joint, Transform};
use crate::rng::{Purpose, Rng, Seed};

/// A log density on ℝᵈ with its gradient: what samplers see.
pub trait LogDensity: Sync {
    fn dim(&self) -> usize;

    /// The value; the derivatives go into `gradient`.
    fn evaluate(&self, u: &[f64], gradient: &mut [f64]) -> f64;
}

/// A [`Joint`] on the unconstrained scale, Jacobian included.
pub struct Posterior<'a> {
    joint: Box<dyn Joint + 'a>,
    transform: Transform,
}

impl<'a> Posterior<'a> {
    pub fn new(joint: Box<dyn Joint + 'a>) -> Posterior<'a> {
        let transform = Transform::new(joint.blocks());
        Posterior { joint, transform }
    }

    pub fn joint(&self) -> &(dyn Joint + 'a) {
        self.joint.as_ref()
    }

    /// θ at an unconstrained point.
    pub fn constrain(&self, u: &[f64]) -> Vec<f64> {
        self.transform.constrain(u).0
    }

    /// The point where θ is.
    pub fn unconstrain(&self, theta: &[f64]) -> Vec<f64> {
        self.transform.unconstrain(theta)
    }
}

impl LogDensity for Posterior<'_> {
    fn dim(&self) -> usize {
        self.transform.dim()
    }

    fn evaluate(&self, u: &[f64], gradient: &mut [f64]) -> f64 {
        let (theta, log_jacobian) = self.transform.constrain(u);
        let mut by_theta = vec![0.0; theta.len()];
        let value = self.joint.log_density(&theta, Some(&mut by_theta));
        self.transform.pull_back_density(u, &by_theta, gradient);
        value + log_jacobian
    }
}

/// Starts that are tried before giving up.
const ATTEMPTS: usize = 100;

impl Posterior<'_> {
    /// The first of some starts at which density and gradient are finite: from `init`, where there is one, with 1 for
    /// what the prior adds to θ; or uniform between −2 and 2 in every coordinate.
    fn start(&self, init: Option<&Init>, rng: &mut Rng) -> Result<Vec<f64>> {
        let draw = |rng: &mut Rng| match init {
            Some(init) => {
                let mut theta = init.draw(rng);
                theta.resize(self.joint.names().len(), 1.0);
                self.unconstrain(&theta)
            }
            None => {
                let uniform = |rng: &mut Rng| <Open01 as Distribution<f64>>::sample(&Open01, rng);
                (0..self.dim()).map(|_| -2.0 + 4.0 * uniform(rng)).collect()
            }
        };
        let mut gradient = vec![0.0; self.dim()];
        let found = (0..ATTEMPTS).map(|_| draw(rng)).find(|u| {
            let value = self.evaluate(u, &mut gradient);
            value.is_finite() && gradient.iter().all(|g| g.is_finite())
        });
        found.ok_or_else(|| {
            let message = format!("the posterior density is not finite at any of {ATTEMPTS} starts");
            Error::Failed(message)
        })
    }

    /// Fits q, from a start of its own.
    pub fn advi(
        &self,
        tuning: &advi::Tuning,
        init: Option<&Init>,
        seed: Seed,
        pool: &ThreadPool,
        cancel: &AtomicBool,
    ) -> Result<advi::Fit> {
        let mut rng = seed.stream(Purpose::Variational, 0, 0);
        let start = self.start(init, &mut rng)?;
        advi::fit(self, tuning, start, rng, pool, cancel)
    }

    /// Draws from all chains, chain by chain, into `sink`.
    pub fn nuts(&self, plan: &ChainPlan, mut sink: impl FnMut(ChainDraw) -> Result<()>) -> Result<()> {
        let ChainPlan { tuning, draws, init, seed, threads, cancel } = *plan;
        let start = |chain: usize| self.start(init, &mut seed.stream(Purpose::Chain, chain as u64, 1));
        let draws = draws / tuning.chains;
        let chains = nuts::Chains { target: self, tuning, draws, seed, threads, cancel };
        let mut gradient = vec![0.0; self.dim()];
        chains.sample(start, |step| {
            let log_density = self.evaluate(&step.u, &mut gradient);
            sink(ChainDraw {
                theta: self.constrain(&step.u),
                log_density,
                chain: step.chain,
                steps: step.steps,
                step_size: step.step_size,
                divergent: step.divergent,
            })
        })
    }
}

/// How chains of NUTS are run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChainTuning {
    /// Draws of each chain that tune step size and mass matrix, and are not kept.
    pub warmup: usize,
    pub chains: usize,
    /// Mean acceptance statistic that the step size is tuned to.
    pub target_accept: f64,
    /// A trajectory has at most 2 to the power of this many steps.
    pub max_depth: usize,
}

/// Chains of NUTS to be run.
#[derive(Clone, Copy)]
pub struct ChainPlan<'a> {
    pub tuning: ChainTuning,
    /// Over all chains.
    pub draws: usize,
    /// Where chains begin, if not anywhere.
    pub init: Option<&'a Init>,
    pub seed: Seed,
    pub threads: usize,
    pub cancel: &'a AtomicBool,
}

/// A draw of a chain.
#[derive(Clone, Debug, PartialEq)]
pub struct ChainDraw {
    pub theta: Vec<f64>,
    /// On the unconstrained scale.
    pub log_density: f64,
    /// Counted from 0.
    pub chain: usize,
    pub steps: usize,
    pub step_size: f64,
    pub divergent: bool,
}

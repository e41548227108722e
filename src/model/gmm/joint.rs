//! The conventional Bayesian mixture of eq. (9): π ~ Dir(a₀), μ ~ N, σ ~ logNormal; and the mixture at a given θ as a
//! measure to draw from.

use ndarray::Array2;
use rand::distr::Distribution;
use rand_distr::{Open01, StandardNormal};

use super::em::EmSums;
use super::{Gmm, MixturePrior};
use crate::data::Dataset;
use crate::math::{log_dirichlet_constant, log_normal_density};
use crate::model::Joint;
use crate::model::{Block, Model};
use crate::process::{BaseMeasure, Measure, Pseudo};
use crate::rng::Rng;

pub(super) struct MixtureJoint<'a> {
    pub model: &'a Gmm,
    pub prior: &'a MixturePrior,
    pub data: &'a Dataset,
    pub empirical: Measure<'a>,
}

impl MixtureJoint<'_> {
    fn log_prior(&self, theta: &[f64]) -> f64 {
        let MixturePrior { a0, mu: (m, s), sigma: (log_mean, log_sd) } = self.prior;
        let (model, a0) = (self.model, a0.get());
        let pi = model.pi(theta);
        // 0 · log 0 is 0 here: a flat prior does not mind the border.
        let logs = if a0 == 1.0 { 0.0 } else { pi.iter().map(|p| libm::log(*p)).sum() };
        let dirichlet = log_dirichlet_constant(a0, model.k) + (a0 - 1.0) * logs;
        let means: f64 = model.mu(theta).iter().map(|mu| log_normal_density(*mu, *m, s.get())).sum();
        // log σ ~ N(m, s²) makes log σ² ~ N(2m, 4s²).
        let variance = |v: &f64| {
            let log_v = libm::log(*v);
            log_normal_density(log_v, 2.0 * log_mean, 2.0 * log_sd.get()) - log_v
        };
        dirichlet + means + model.sigma2(theta).iter().map(variance).sum::<f64>()
    }

    /// Derivatives of the log likelihood by log π, μ and log σ² from the sums of an EM pass (Fisher's identity), and
    /// those of the log prior.
    fn gradient(&self, theta: &[f64], sums: &EmSums, gradient: &mut [f64]) {
        let MixturePrior { a0, mu: (m, s), sigma: (log_mean, log_sd) } = self.prior;
        let (model, n) = (self.model, self.data.mass());
        let (k, d) = (model.k, model.d);
        let (mu, sigma2) = (model.mu(theta), model.sigma2(theta));
        for c in 0..k {
            // Σ w r, Σ w r z, Σ w r z² with z = (y − μ)/σ.
            let em = model.standardised(theta, sums, c);
            gradient[c] = n * em[0] + a0.get() - 1.0;
            for j in 0..d {
                let (i, v) = (c * d + j, sigma2[c * d + j]);
                let (first, second) = (em[1 + j], em[1 + d + j]);
                gradient[k + i] = n * first / v.sqrt() - (mu[i] - m) / (s.get() * s.get());
                let from_prior = (libm::log(v) - 2.0 * log_mean) / (4.0 * log_sd.get() * log_sd.get()) + 1.0;
                gradient[k + k * d + i] = 0.5 * n * (second - em[0]) - from_prior;
            }
        }
    }
}

impl Joint for MixtureJoint<'_> {
    fn names(&self) -> Vec<String> {
        self.model.names()
    }

    fn blocks(&self) -> Vec<Block> {
        self.model.blocks()
    }

    fn log_density(&self, theta: &[f64], gradient: Option<&mut [f64]>) -> f64 {
        let log_likelihood = match gradient {
            Some(gradient) => {
                let mut sums = EmSums::new(self.model);
                let loss = self.model.em_pass(theta, &self.empirical, true, &mut sums);
                self.gradient(theta, &sums, gradient);
                self.data.mass() * (self.model.penalty(theta) - loss)
            }
            None => {
                let mut logs = vec![0.0; self.data.n()];
                self.model.log_density(theta, self.data, &mut logs);
                logs.iter().enumerate().map(|(i, l)| self.data.weight(i) * l).sum()
            }
        };
        log_likelihood + self.log_prior(theta)
    }
}

/// A component at random, by weights.
pub(in crate::model) fn component(pi: &[f64], rng: &mut Rng) -> usize {
    let mut u: f64 = Open01.sample(rng);
    u *= pi.iter().sum::<f64>();
    let mut c = 0;
    while c + 1 < pi.len() && u >= pi[c] {
        u -= pi[c];
        c += 1;
    }
    c
}

/// The mixture at one θ.
pub(super) struct MixtureMeasure {
    pub pi: Vec<f64>,
    pub mean: Array2<f64>,
    pub sd: Array2<f64>,
}

impl BaseMeasure for MixtureMeasure {
    /// Each row from a component of its own.
    fn sample(&self, t: usize, rng: &mut Rng) -> Pseudo {
        let mut x = Array2::zeros((t, self.mean.ncols()));
        for mut row in x.outer_iter_mut() {
            let c = component(&self.pi, rng);
            for (j, value) in row.iter_mut().enumerate() {
                let z: f64 = StandardNormal.sample(rng);
                *value = self.mean[[c, j]] + self.sd[[c, j]] * z;
            }
        }
        Pseudo::Own(Box::new(Dataset::unnamed(x, None)))
    }
}

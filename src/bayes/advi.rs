//! Mean-field ADVI (Kucukelbir, Tran, Ranganath, Gelman and Blei 2017): q(u) = Π N(uᵢ; mᵢ, e^{2ωᵢ}) on the unconstrained
//! scale, by stochastic gradient ascent of the ELBO with the paper's adaptive step sizes. Search for the step size and
//! stop rule are those of Stan, which the comparisons were made with.

use std::f64::consts::{E, PI};
use std::sync::atomic::{AtomicBool, Ordering};

use rand::distr::Distribution;
use rand_distr::StandardNormal;
use rayon::ThreadPool;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::LogDensity;
use crate::bytes::bytes;
use crate::error::{Error, Result};
use crate::math::{mean, quantile_sorted};
use crate::rng::Rng;

/// Scales of the step size that are tried, in this order.
const ETAS: [f64; 5] = [100.0, 10.0, 1.0, 0.1, 0.01];
/// The moving average of squared gradients keeps this share of its past.
const MEMORY: f64 = 0.9;
/// τ of the paper: keeps the first steps finite.
const TAU: f64 = 1.0;
/// Draws for one gradient that may fail to be finite before the fit does.
const ATTEMPTS: usize = 20;

/// How a fit is made; the settings of `[advi]` say what each is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tuning {
    pub max_iterations: usize,
    pub gradient_samples: usize,
    pub elbo_samples: usize,
    pub elbo_every: usize,
    pub tolerance: f64,
    pub eta: Option<f64>,
    pub adapt_iterations: usize,
}

/// The variational family: independent normals.
#[derive(Clone, Debug, PartialEq)]
pub struct MeanField {
    pub mean: Vec<f64>,
    pub log_sd: Vec<f64>,
}

/// The ELBO on the way.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ElboPoint {
    pub iteration: usize,
    pub elbo: f64,
    /// Mean and median of the last relative changes.
    pub change_mean: f64,
    pub change_median: f64,
}

bytes!(MeanField { mean, log_sd });
bytes!(ElboPoint { iteration, elbo, change_mean, change_median });

/// A fit.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    pub q: MeanField,
    pub eta: f64,
    pub iterations: usize,
    pub converged: bool,
    pub trace: Vec<ElboPoint>,
}

impl MeanField {
    fn at(mean: Vec<f64>) -> MeanField {
        MeanField { log_sd: vec![0.0; mean.len()], mean }
    }

    fn transform(&self, z: &[f64]) -> Vec<f64> {
        self.mean.iter().zip(&self.log_sd).zip(z).map(|((m, w), z)| m + libm::exp(*w) * z).collect()
    }

    /// A draw.
    pub fn draw(&self, rng: &mut Rng) -> Vec<f64> {
        self.transform(&normals(self.mean.len(), rng))
    }

    pub fn log_density(&self, u: &[f64]) -> f64 {
        let term = |((u, m), w): ((&f64, &f64), &f64)| crate::math::log_normal_density(*u, *m, libm::exp(*w));
        u.iter().zip(&self.mean).zip(&self.log_sd).map(term).sum()
    }

    fn entropy(&self) -> f64 {
        self.log_sd.iter().sum::<f64>() + 0.5 * self.mean.len() as f64 * libm::log(2.0 * PI * E)
    }
}

fn normals(n: usize, rng: &mut Rng) -> Vec<f64> {
    (0..n).map(|_| StandardNormal.sample(rng)).collect()
}

/// Everything that a fit needs while it runs.
struct Ascent<'a> {
    target: &'a dyn LogDensity,
    tuning: &'a Tuning,
    pool: &'a ThreadPool,
    rng: Rng,
}

impl Ascent<'_> {
    /// E log p(u) + H(q) over some draws; draws at which p is not finite are left out.
    fn elbo(&mut self, q: &MeanField) -> f64 {
        let dim = q.mean.len();
        let draws: Vec<Vec<f64>> =
            (0..self.tuning.elbo_samples).map(|_| normals(dim, &mut self.rng)).collect();
        let value = |z: &Vec<f64>| self.target.evaluate(&q.transform(z), &mut vec![0.0; dim]);
        let values: Vec<f64> = self.pool.install(|| draws.par_iter().map(value).collect());
        let finite: Vec<f64> = values.into_iter().filter(|v| v.is_finite()).collect();
        if finite.is_empty() { f64::NEG_INFINITY } else { mean(&finite) + q.entropy() }
    }

    /// The gradient of the ELBO by mean and log sd; `None` if p is not finite where q is.
    fn gradient(&mut self, q: &MeanField) -> Option<(Vec<f64>, Vec<f64>)> {
        let dim = q.mean.len();
        let samples = self.tuning.gradient_samples;
        let (mut by_mean, mut by_log_sd) = (vec![0.0; dim], vec![0.0; dim]);
        let mut slope = vec![0.0; dim];
        for _ in 0..samples {
            let found = (0..ATTEMPTS).find_map(|_| {
                let z = normals(dim, &mut self.rng);
                let value = self.target.evaluate(&q.transform(&z), &mut slope);
                (value.is_finite() && slope.iter().all(|g| g.is_finite())).then_some(z)
            });
            let z = found?;
            for i in 0..dim {
                by_mean[i] += slope[i] / samples as f64;
                by_log_sd[i] += slope[i] * z[i] * libm::exp(q.log_sd[i]) / samples as f64;
            }
        }
        by_log_sd.iter_mut().for_each(|g| *g += 1.0);
        Some((by_mean, by_log_sd))
    }

    /// Step `k`, counted from 1, of a run; false if there is no gradient.
    fn step(&mut self, q: &mut MeanField, memory: &mut Memory, eta: f64, k: usize) -> bool {
        let Some((by_mean, by_log_sd)) = self.gradient(q) else { return false };
        let scale = eta / (k as f64).sqrt();
        let blocks =
            [(&mut q.mean, by_mean, &mut memory.mean), (&mut q.log_sd, by_log_sd, &mut memory.log_sd)];
        for (values, gradient, squares) in blocks {
            for ((value, g), s) in values.iter_mut().zip(gradient).zip(squares) {
                *s = if k == 1 { g * g } else { MEMORY * *s + (1.0 - MEMORY) * g * g };
                *value += scale * g / (TAU + s.sqrt());
            }
        }
        true
    }

    /// The scale of the step size under which the ELBO has risen most after a few steps.
    fn best_eta(&mut self, start: &MeanField, cancel: &AtomicBool) -> Result<f64> {
        let first = self.elbo(start);
        let mut best = (f64::NEG_INFINITY, None);
        for eta in ETAS {
            let mut q = start.clone();
            let mut memory = Memory::new(q.mean.len());
            let mut alive = true;
            for k in 1..=self.tuning.adapt_iterations {
                if cancel.load(Ordering::Relaxed) {
                    return Err(Error::Interrupted);
                }
                alive = alive && self.step(&mut q, &mut memory, eta, k);
            }
            let elbo = if alive { self.elbo(&q) } else { f64::NEG_INFINITY };
            // Once a smaller step does worse than one that did rise, none smaller will do better.
            if elbo > best.0 {
                best = (elbo, Some(eta));
            } else if best.0 > first {
                break;
            }
        }
        let (elbo, eta) = best;
        eta.filter(|_| elbo > first).ok_or_else(|| {
            Error::Failed(
                "ADVI: no step size raised the ELBO; set `advi.eta`, or begin elsewhere (`advi.begin`)"
                    .into(),
            )
        })
    }

    /// Steps of one size from here, until the ELBO stands still.
    fn climb(&mut self, mut q: MeanField, eta: f64, cancel: &AtomicBool) -> Result<Fit> {
        let tuning = self.tuning;
        let (most, every) = (tuning.max_iterations, tuning.elbo_every);
        let window = (most / every / 10).max(2);
        let mut memory = Memory::new(q.mean.len());
        let mut elbo = 0.0;
        let mut changes: Vec<f64> = Vec::new();
        let mut trace = Vec::new();
        for k in 1..=most {
            if cancel.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            if !self.step(&mut q, &mut memory, eta, k) {
                return Err(Error::Failed(format!(
                    "ADVI: the posterior density is not finite around iteration {k}; set `advi.eta` below {eta}"
                )));
            }
            if k % every != 0 {
                continue;
            }
            let previous = std::mem::replace(&mut elbo, self.elbo(&q));
            changes.push(((elbo - previous) / elbo).abs());
            let last = &changes[changes.len().saturating_sub(window)..];
            let mut sorted = last.to_vec();
            sorted.sort_unstable_by(f64::total_cmp);
            let (change_mean, change_median) = (mean(last), quantile_sorted(&sorted, 0.5));
            trace.push(ElboPoint { iteration: k, elbo, change_mean, change_median });
            if change_mean < tuning.tolerance || change_median < tuning.tolerance {
                return Ok(Fit { q, eta, iterations: k, converged: true, trace });
            }
        }
        Ok(Fit { q, eta, iterations: most, converged: false, trace })
    }
}

/// Moving averages of squared gradients.
struct Memory {
    mean: Vec<f64>,
    log_sd: Vec<f64>,
}

impl Memory {
    fn new(dim: usize) -> Memory {
        Memory { mean: vec![0.0; dim], log_sd: vec![0.0; dim] }
    }
}

/// Whether the ELBO has fallen since the beginning, by more than its Monte Carlo error.
fn went_astray(first: f64, last: f64) -> bool {
    last < first - 0.01 * first.abs() - 1.0
}

/// The best q from `start`. All randomness is that of `rng`, whatever the threads. A step size that raised the ELBO over its trial may
/// still be too long for the whole way: the fit then ends far from all data, with an ELBO that no longer changes. It is made again by
/// the next shorter one, unless the size was given.
pub fn fit(
    target: &dyn LogDensity,
    tuning: &Tuning,
    start: Vec<f64>,
    rng: Rng,
    pool: &ThreadPool,
    cancel: &AtomicBool,
) -> Result<Fit> {
    let mut ascent = Ascent { target, tuning, pool, rng };
    let start = MeanField::at(start);
    let first = Ascent { rng: ascent.rng.clone(), ..ascent }.elbo(&start);
    let (mut etas, given) = match tuning.eta {
        Some(eta) => (vec![eta], true),
        None => {
            let best = ascent.best_eta(&start, cancel)?;
            (ETAS.into_iter().filter(|eta| *eta <= best).collect(), false)
        }
    };
    loop {
        let eta = etas.remove(0);
        let fit = ascent.climb(start.clone(), eta, cancel)?;
        let last = fit.trace.last().map_or(first, |point| point.elbo);
        // One that was cut short is said to be so, wherever it is.
        if !went_astray(first, last) || etas.is_empty() && !fit.converged {
            return Ok(fit);
        }
        if etas.is_empty() {
            let hint = if given { "`advi.eta` is too large" } else { "begin elsewhere (`advi.begin`)" };
            return Err(Error::Failed(format!(
                "ADVI: the fit went astray: its ELBO is {last:.1} in the end, and was {first:.1} at its start; {hint}"
            )));
        }
    }
}

//! Negative binomial regression of counts, with a log link: E y = μ = e^η, Var y = μ + α μ². With r = 1/α the density is
//! Γ(y + r)/(Γ(r) y!) (αμ)^y/(1 + αμ)^(y + r); at α = 0 it is Poisson's.

use rand::distr::Distribution;

use super::predictor::{Extra, Law, Outcome, config};
use super::{Context, Model, Response};
use crate::config::Complaint;
use crate::math::{expit, softplus};
use crate::rng::Rng;

pub const STARTER: &str = include_str!("../../configs/starters/negative_binomial.toml");

config! {}

impl Config {
    pub fn build(&self, context: &Context) -> Result<Box<dyn Model>, Vec<Complaint>> {
        let most = context.train.y.iter().flatten().fold(0.0f64, |most, y| most.max(*y));
        self.common().build(NegativeBinomial { most: (most as usize).min(LONGEST) }, context)
    }
}

#[derive(Clone)]
pub struct NegativeBinomial {
    /// Counts up to this have their sums in a table.
    pub most: usize,
}

/// Counts beyond this have no table.
const LONGEST: usize = 1000;
/// r from which Stirling's series of log Γ has all digits.
const LARGE: f64 = 30.0;
/// The least dispersion that is told from 0.
const LEAST: f64 = 1e-12;
/// Dispersion up to which a count of a thousand varies by a thousandth more than Poisson's.
const TINY: f64 = 1e-6;
/// Beyond this mean counts are normal to more digits than a count has.
const LARGEST_MEAN: f64 = 1e15;

/// α, and Σ log(1 + αk) and Σ αk/(1 + αk) over k < y, for every y of the table.
pub struct At {
    alpha: f64,
    /// Whether α is what φ says.
    moves: bool,
    sums: Vec<[f64; 2]>,
}

fn term(alpha: f64, k: f64) -> [f64; 2] {
    let product = alpha * k;
    if product < f64::INFINITY {
        [libm::log1p(product), product / (1.0 + product)]
    } else {
        [libm::log(alpha) + libm::log(k), 1.0]
    }
}

impl At {
    /// log Γ(y + r) − log Γ(r) − y log r, and its derivative by log α.
    fn rising(&self, y: f64) -> [f64; 2] {
        if let Some(sums) = self.sums.get(y as usize) {
            return *sums;
        }
        // The first factors one by one, so that the rest are large.
        let first = (LARGE - 1.0 / self.alpha).ceil().clamp(0.0, y);
        let mut sums = (0..first as usize)
            .map(|k| term(self.alpha, k as f64))
            .fold([0.0; 2], |a, b| [a[0] + b[0], a[1] + b[1]]);
        let (low, high, r) = (1.0 / self.alpha + first, 1.0 / self.alpha + y, 1.0 / self.alpha);
        let (count, log_ratio) = (high - low, libm::log1p((high - low) / low));
        let series = |z: f64| 1.0 / (12.0 * z) - 1.0 / (360.0 * z * z * z);
        let slope = |z: f64| -0.5 / z - 1.0 / (12.0 * z * z) + 1.0 / (120.0 * z.powi(4));
        sums[0] += (high - 0.5) * log_ratio + count * libm::log(low / r) - count + series(high) - series(low);
        // By r it is ψ(high) − ψ(low) − count/r, and log α is −log r.
        sums[1] -= r * (log_ratio + slope(high) - slope(low)) - count;
        sums
    }
}

impl Law for NegativeBinomial {
    type At = At;

    fn response(&self) -> Response {
        Response::Count
    }

    fn extras(&self) -> Vec<Extra> {
        vec![Extra::scale("dispersion", 0.5)]
    }

    fn at(&self, phi: &[f64]) -> At {
        // Below this it is Poisson's to all digits of a count, and nothing moves any more.
        let (alpha, moves) = (phi[0].max(LEAST), phi[0] > LEAST);
        let mut sums = Vec::with_capacity(self.most + 1);
        let mut sum = [0.0; 2];
        for k in 0..=self.most {
            sums.push(sum);
            let term = term(alpha, k as f64);
            sum = [sum[0] + term[0], sum[1] + term[1]];
        }
        At { alpha, moves, sums }
    }

    fn loss(&self, at: &At, of: Outcome, eta: &[f64], by_eta: &mut [f64], by_phi: &mut [f64]) -> f64 {
        let (alpha, mean) = (at.alpha, libm::exp(eta[0]));
        let [sum, slope] = at.rising(of.y);
        let (log, share) = if mean < f64::INFINITY && alpha * mean < f64::INFINITY {
            (libm::log1p(alpha * mean), mean / (1.0 + alpha * mean))
        } else {
            // One of them overflows: the mean, while αμ may be small, or αμ, whose logarithm is not large.
            let log_product = libm::log(alpha) + eta[0];
            (softplus(log_product), expit(log_product) / alpha)
        };
        by_eta[0] = (1.0 + alpha * of.y) * share - of.y;
        by_phi[0] = if at.moves { (1.0 + alpha * of.y) * share - log / alpha - slope } else { 0.0 };
        (1.0 / alpha + of.y) * log - of.y * eta[0] - sum
    }

    fn carrier(&self, of: Outcome) -> f64 {
        libm::lgamma(of.y + 1.0)
    }

    fn mean(&self, _at: &At, eta: &[f64]) -> Option<f64> {
        Some(libm::exp(eta[0]))
    }

    /// A Poisson count whose mean is a gamma variate.
    fn sample(&self, at: &At, eta: &[f64], rng: &mut Rng) -> f64 {
        let mean = libm::exp(eta[0]);
        let gamma = rand_distr::Gamma::new(1.0 / at.alpha, mean * at.alpha);
        // A gamma variate of a shape too large to be made is its mean.
        let mean = gamma.map_or(mean, |gamma| gamma.sample(rng));
        rand_distr::Poisson::new(mean.min(LARGEST_MEAN)).map_or(0.0, |poisson| poisson.sample(rng))
    }

    fn is_undispersed(&self, phi: &[f64]) -> bool {
        phi[0] <= TINY
    }

    fn keeps(&self, of: Outcome) -> [bool; 2] {
        [of.y > 0.0, true]
    }
}

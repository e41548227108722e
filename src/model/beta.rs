//! Beta regression of numbers between 0 and 1, with a logit link: y ~ Beta(μ p, (1 − μ) p), μ = 1/(1 + e^−η), precision p
//! (Ferrari and Cribari-Neto 2004).

use rand::distr::Distribution;

use super::predictor::{Extra, Law, Outcome, config};
use super::{Context, Model, Response};
use crate::config::Complaint;
use crate::math::{digamma, expit};
use crate::rng::Rng;

pub const STARTER: &str = include_str!("../../configs/starters/beta.toml");

config! {}

impl Config {
    pub fn build(&self, context: &Context) -> Result<Box<dyn Model>, Vec<Complaint>> {
        self.common().build(Beta, context)
    }
}

#[derive(Clone)]
pub struct Beta;

/// The precision, and what depends on it alone.
pub struct At {
    precision: f64,
    log_gamma: f64,
    digamma: f64,
}

/// The smallest of a share of the precision: log Γ ends there.
const SMALLEST: f64 = 1e-300;

impl Law for Beta {
    type At = At;

    fn response(&self) -> Response {
        Response::Unit
    }

    fn extras(&self) -> Vec<Extra> {
        vec![Extra::scale("precision", 2.0)]
    }

    fn at(&self, phi: &[f64]) -> At {
        At { precision: phi[0], log_gamma: libm::lgamma(phi[0]), digamma: digamma(phi[0]) }
    }

    fn loss(&self, at: &At, of: Outcome, eta: &[f64], by_eta: &mut [f64], by_phi: &mut [f64]) -> f64 {
        let (mean, rest) = (expit(eta[0]), expit(-eta[0]));
        let (a, b) = ((mean * at.precision).max(SMALLEST), (rest * at.precision).max(SMALLEST));
        let (log_y, log_rest) = (libm::log(of.y), libm::log1p(-of.y));
        let (of_a, of_b) = (digamma(a) - log_y, digamma(b) - log_rest);
        by_eta[0] = a * rest * (of_a - of_b);
        by_phi[0] = a * of_a + b * of_b - at.precision * at.digamma;
        libm::lgamma(a) + libm::lgamma(b) - at.log_gamma - a * log_y - b * log_rest
    }

    fn carrier(&self, of: Outcome) -> f64 {
        libm::log(of.y) + libm::log1p(-of.y)
    }

    fn mean(&self, _at: &At, eta: &[f64]) -> Option<f64> {
        Some(expit(eta[0]))
    }

    fn sample(&self, at: &At, eta: &[f64], rng: &mut Rng) -> f64 {
        let share = |eta: f64| (expit(eta) * at.precision).max(f64::MIN_POSITIVE);
        let beta = rand_distr::Beta::new(share(eta[0]), share(-eta[0]));
        // A variate may round to an end.
        beta.map_or(f64::NAN, |beta| beta.sample(rng)).clamp(f64::MIN_POSITIVE, 1.0 - f64::EPSILON)
    }

    /// Numbers that are all the same are met exactly by an ever larger precision.
    fn wants(&self, train: &crate::data::Dataset) -> Option<Complaint> {
        super::two_responses(train, "precision")
    }
}

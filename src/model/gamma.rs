//! Gamma regression of numbers above 0, with a log link: y ~ Gamma(k, k/μ), μ = e^η, so that E y = μ and Var y = μ²/k.

use rand::distr::Distribution;

use super::predictor::{Extra, Law, Outcome, config};
use super::{Context, Model, Response};
use crate::config::Complaint;
use crate::math::digamma;
use crate::rng::Rng;

pub const STARTER: &str = include_str!("../../configs/starters/gamma.toml");

config! {}

impl Config {
    pub fn build(&self, context: &Context) -> Result<Box<dyn Model>, Vec<Complaint>> {
        self.common().build(Gamma, context)
    }
}

#[derive(Clone)]
pub struct Gamma;

/// The shape k, and what depends on it alone.
pub struct At {
    shape: f64,
    log_shape: f64,
    log_gamma: f64,
    digamma: f64,
}

impl Law for Gamma {
    type At = At;

    fn response(&self) -> Response {
        Response::Positive
    }

    fn extras(&self) -> Vec<Extra> {
        vec![Extra::scale("shape", 1.0)]
    }

    fn at(&self, phi: &[f64]) -> At {
        let shape = phi[0];
        At { shape, log_shape: libm::log(shape), log_gamma: libm::lgamma(shape), digamma: digamma(shape) }
    }

    fn loss(&self, at: &At, of: Outcome, eta: &[f64], by_eta: &mut [f64], by_phi: &mut [f64]) -> f64 {
        let (ratio, log_y) = (of.y * libm::exp(-eta[0]), libm::log(of.y));
        let deviance = eta[0] - log_y + ratio - at.log_shape;
        by_eta[0] = at.shape * (1.0 - ratio);
        by_phi[0] = at.shape * (deviance - 1.0 + at.digamma);
        at.shape * deviance + at.log_gamma
    }

    fn carrier(&self, of: Outcome) -> f64 {
        libm::log(of.y)
    }

    fn mean(&self, _at: &At, eta: &[f64]) -> Option<f64> {
        Some(libm::exp(eta[0]))
    }

    fn sample(&self, at: &At, eta: &[f64], rng: &mut Rng) -> f64 {
        let scale = libm::exp(eta[0]) / at.shape;
        let y = rand_distr::Gamma::new(at.shape, scale).map_or(f64::NAN, |gamma| gamma.sample(rng));
        y.clamp(f64::MIN_POSITIVE, f64::MAX)
    }

    /// Numbers that are all the same are met exactly by an ever larger shape.
    fn wants(&self, train: &crate::data::Dataset) -> Option<Complaint> {
        super::two_responses(train, "shape")
    }
}

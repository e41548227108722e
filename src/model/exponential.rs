//! Exponential regression of survival times t > 0, right-censored or not: log T = η + log E, E ~ Exp(1). The loss is t e^−η + δ η,
//! δ = 1 for an event and 0 for a censored time: Weibull regression with shape 1.

use rand::distr::Distribution;
use rand_distr::Exp1;

use super::predictor::{Law, Outcome, config};
use super::{Context, Model, Response};
use crate::config::Complaint;
use crate::rng::Rng;

pub const STARTER: &str = include_str!("../../configs/starters/exponential.toml");

config! {}

impl Config {
    pub fn build(&self, context: &Context) -> Result<Box<dyn Model>, Vec<Complaint>> {
        self.common().build(Exponential, context)
    }
}

#[derive(Clone)]
pub struct Exponential;

impl Law for Exponential {
    type At = ();

    fn response(&self) -> Response {
        Response::Positive
    }

    fn at(&self, _phi: &[f64]) {}

    fn loss(&self, _at: &(), of: Outcome, eta: &[f64], by_eta: &mut [f64], _by_phi: &mut [f64]) -> f64 {
        let (hazard, event) = (of.y * libm::exp(-eta[0]), f64::from(of.event));
        by_eta[0] = event - hazard;
        hazard + event * eta[0]
    }

    fn mean(&self, _at: &(), eta: &[f64]) -> Option<f64> {
        Some(libm::exp(eta[0]))
    }

    fn sample(&self, _at: &(), eta: &[f64], rng: &mut Rng) -> f64 {
        let e: f64 = Exp1.sample(rng);
        (libm::exp(eta[0]) * e).clamp(f64::MIN_POSITIVE, f64::MAX)
    }

    fn knows_events(&self) -> bool {
        true
    }

    /// A time that is censored keeps its scale from vanishing alone.
    fn keeps(&self, of: Outcome) -> [bool; 2] {
        [true, of.event]
    }
}

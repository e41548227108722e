//! Multinomial logistic regression: P(y = k) ∝ e^ηₖ with η of the first class 0 and a linear predictor for each of the others.

use rand::distr::Distribution;
use rand_distr::Open01;

use super::predictor::{Form, Law, Outcome, config};
use super::{Context, Model, Response};
use crate::config::{Complaint, complaint};
use crate::math::log_sum_exp;
use crate::rng::Rng;

pub const STARTER: &str = include_str!("../../configs/starters/multinomial.toml");

config! {}

impl Config {
    pub fn build(&self, context: &Context) -> Result<Box<dyn Model>, Vec<Complaint>> {
        let classes = context.train.class_names();
        if classes.len() < 2 {
            return Err(vec![complaint("", "needs a response of two classes at least")]);
        }
        self.common().build(Multinomial { classes }, context)
    }
}

#[derive(Clone)]
pub struct Multinomial {
    /// Their names; the first is the one that the others are compared with.
    pub classes: Vec<String>,
}

/// log Σ e^ηₖ with the first class.
fn log_total(eta: &[f64]) -> f64 {
    crate::math::log_add_exp(0.0, log_sum_exp(eta))
}

impl Law for Multinomial {
    type At = ();

    fn response(&self) -> Response {
        Response::Class(self.classes.len())
    }

    fn predictors(&self) -> Vec<String> {
        self.classes[1..].to_vec()
    }

    fn classes(&self) -> Vec<String> {
        self.classes.clone()
    }

    fn at(&self, _phi: &[f64]) {}

    fn loss(&self, _at: &(), of: Outcome, eta: &[f64], by_eta: &mut [f64], _by_phi: &mut [f64]) -> f64 {
        let (k, total) = (of.y as usize, log_total(eta));
        by_eta.iter_mut().zip(eta).for_each(|(by, eta)| *by = libm::exp(eta - total));
        if k > 0 {
            by_eta[k - 1] -= 1.0;
            return total - eta[k - 1];
        }
        total
    }

    fn mean(&self, _at: &(), _eta: &[f64]) -> Option<f64> {
        None
    }

    fn sample(&self, _at: &(), eta: &[f64], rng: &mut Rng) -> f64 {
        let (u, total): (f64, f64) = (Open01.sample(rng), log_total(eta));
        let mut sum = libm::exp(-total);
        let upto = |eta: &f64| {
            let here = sum;
            sum += libm::exp(eta - total);
            here
        };
        let starts: Vec<f64> = eta.iter().map(upto).collect();
        starts.iter().filter(|start| u >= **start).count() as f64
    }

    fn probabilities(&self, _at: &(), eta: &[f64]) -> Option<Vec<f64>> {
        let total = log_total(eta);
        Some([0.0].iter().chain(eta).map(|eta| libm::exp(eta - total)).collect())
    }

    /// η of its class minus that of every other (Albert and Anderson 1984).
    fn forms(&self, of: Outcome) -> Option<Vec<Form>> {
        let (own, classes) = (of.y as usize, self.classes.len());
        let against = |other: usize| {
            let of_class =
                |class: usize| f64::from(u8::from(class == own)) - f64::from(u8::from(class == other));
            Form { eta: (1..classes).map(of_class).collect(), phi: Vec::new() }
        };
        Some((0..classes).filter(|other| *other != own).map(against).collect())
    }

    fn wants(&self, train: &crate::data::Dataset) -> Option<Complaint> {
        super::every_class(train, self.classes.len())
    }
}

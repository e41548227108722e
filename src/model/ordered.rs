//! Ordered logistic regression (proportional odds): P(y ≤ k) = σ(cₖ₊₁ − η) of classes 0, 1, 2, …, cut points c₁ < c₂ < …, η = βᵀx without an
//! intercept.

use rand::distr::Distribution;
use rand_distr::Open01;

use super::predictor::{Extra, Form, Law, Outcome, config};
use super::{Context, Model, Response, Support};
use crate::config::{Complaint, complaint};
use crate::math::{expit, softplus};
use crate::rng::Rng;

pub const STARTER: &str = include_str!("../../configs/starters/ordered.toml");

config! {}

impl Config {
    pub fn build(&self, context: &Context) -> Result<Box<dyn Model>, Vec<Complaint>> {
        let classes = context.train.class_count();
        if classes < 2 {
            return Err(vec![complaint("", "needs a response of two classes at least")]);
        }
        self.common().build(Ordered { classes, names: context.train.class_names() }, context)
    }
}

#[derive(Clone)]
pub struct Ordered {
    pub classes: usize,
    /// For predictions; none where it is only drawn from.
    pub names: Vec<String>,
}

impl Law for Ordered {
    /// The cut points, between −∞ and ∞.
    type At = Vec<f64>;

    fn response(&self) -> Response {
        Response::Class(self.classes)
    }

    fn classes(&self) -> Vec<String> {
        self.names.clone()
    }

    fn has_intercept(&self) -> bool {
        false
    }

    fn extras(&self) -> Vec<Extra> {
        let start = (1..self.classes).map(|k| k as f64 - 0.5 * self.classes as f64).collect();
        vec![Extra { name: "cut".into(), entries: self.classes - 1, support: Support::Ordered, start }]
    }

    fn at(&self, phi: &[f64]) -> Vec<f64> {
        [&[f64::NEG_INFINITY], phi, &[f64::INFINITY]].concat()
    }

    /// σ(a) − σ(b) = σ(a) σ(−b) (1 − e^(b − a)): no digits are lost at either end.
    fn loss(&self, at: &Vec<f64>, of: Outcome, eta: &[f64], by_eta: &mut [f64], by_phi: &mut [f64]) -> f64 {
        let k = of.y as usize;
        let (low, high) = (at[k] - eta[0], at[k + 1] - eta[0]);
        let gap = 1.0 / libm::expm1(high - low);
        let (by_high, by_low) = (expit(-high) + gap, -expit(low) - gap);
        by_eta[0] = expit(-high) - expit(low);
        by_phi.fill(0.0);
        if k > 0 {
            by_phi[k - 1] = -by_low;
        }
        if k + 1 < self.classes {
            by_phi[k] = -by_high;
        }
        softplus(-high) + softplus(low) - libm::log(-libm::expm1(low - high))
    }

    fn mean(&self, _at: &Vec<f64>, _eta: &[f64]) -> Option<f64> {
        None
    }

    fn sample(&self, at: &Vec<f64>, eta: &[f64], rng: &mut Rng) -> f64 {
        let u: f64 = Open01.sample(rng);
        (1..self.classes).filter(|&k| u > expit(at[k] - eta[0])).count() as f64
    }

    fn probabilities(&self, at: &Vec<f64>, eta: &[f64]) -> Option<Vec<f64>> {
        let below = |k: usize| expit(at[k] - eta[0]);
        Some((0..self.classes).map(|k| below(k + 1) - below(k)).collect())
    }

    /// The cut point above its class minus η, and η minus the one below: cut points may move too.
    fn forms(&self, of: Outcome) -> Option<Vec<Form>> {
        let (k, cuts) = (of.y as usize, self.classes - 1);
        let cut = |at: usize, sign: f64| {
            let mut phi = vec![0.0; cuts];
            phi[at] = sign;
            Form { eta: vec![-sign], phi }
        };
        let [above, below] = [(k < cuts).then(|| cut(k, 1.0)), (k > 0).then(|| cut(k - 1, -1.0))];
        Some(above.into_iter().chain(below).collect())
    }

    fn wants(&self, train: &crate::data::Dataset) -> Option<Complaint> {
        super::every_class(train, self.classes)
    }
}

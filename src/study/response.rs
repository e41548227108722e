//! Responses drawn from a model of the covariates.

use std::collections::BTreeMap;

use ndarray::Array1;
use rand::distr::{Distribution, Open01};

use crate::config::printable;
use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::experiment::SimulatedResponse;
use crate::model::predictor::Law;
use crate::model::regression::Family;
use crate::model::{
    Logistic, Poisson, beta, exponential, gamma, linear, multinomial, negative_binomial, ordered, weibull,
};
use crate::rng::Rng;

/// Σ βⱼxⱼ and the offset of every row.
fn predictor(data: &Dataset, coefficients: &BTreeMap<String, f64>) -> Result<Array1<f64>> {
    let mut beta = Array1::zeros(data.d());
    for (name, value) in coefficients {
        let place = data.columns.iter().position(|c| c == name).ok_or_else(|| {
            let name = printable(name);
            Error::input(format!("`data.response` names the column \"{name}\", which the data lack"))
        })?;
        beta[place] = *value;
    }
    let mut eta = data.x.whole().dot(&beta);
    eta.iter_mut().enumerate().for_each(|(i, eta)| *eta += data.offset(i));
    Ok(eta)
}

/// A response of every row, by a law at φ.
fn by_law<L: Law>(law: &L, phi: &[f64], eta: &[Array1<f64>], rng: &mut Rng) -> Array1<f64> {
    let at = law.at(phi);
    let of_row = |i: usize| law.sample(&at, &eta.iter().map(|eta| eta[i]).collect::<Vec<_>>(), rng);
    (0..eta[0].len()).map(of_row).collect()
}

/// Times, and which of them are events that come before the end.
fn censored(times: Array1<f64>, end: Option<f64>) -> (Array1<f64>, Option<Array1<f64>>) {
    let end = end.unwrap_or(f64::INFINITY);
    let event = times.mapv(|t| f64::from(t < end));
    (times.mapv(|t| t.min(end)), Some(event))
}

pub fn with_response(data: &Dataset, response: &SimulatedResponse, rng: &mut Rng) -> Result<Dataset> {
    use SimulatedResponse as R;
    let eta = |beta: &BTreeMap<String, f64>| predictor(data, beta);
    let mut classes = Vec::new();
    let (y, event) = match response {
        R::Logistic(beta) => (eta(beta)?.iter().map(|eta| Logistic::sample(*eta, rng)).collect(), None),
        R::Binary(truth) => {
            let mut one = |eta: &f64| {
                let u: f64 = Open01.sample(rng);
                f64::from(u < truth.link.probability(truth.intercept + eta))
            };
            (eta(&truth.beta)?.iter().map(&mut one).collect(), None)
        }
        R::Poisson(beta) => (eta(beta)?.iter().map(|eta| Poisson::sample(*eta, rng)).collect(), None),
        R::Linear(truth) => (
            by_law(
                &linear::Normal { noise: linear::Noise::Estimated },
                &[truth.sigma.get()],
                &[eta(&truth.beta)?],
                rng,
            ),
            None,
        ),
        R::NegativeBinomial(truth) => {
            let law = negative_binomial::NegativeBinomial { most: 0 };
            (by_law(&law, &[truth.dispersion.get()], &[eta(&truth.beta)?], rng), None)
        }
        R::Gamma(truth) => (by_law(&gamma::Gamma, &[truth.shape.get()], &[eta(&truth.beta)?], rng), None),
        R::Beta(truth) => (by_law(&beta::Beta, &[truth.precision.get()], &[eta(&truth.beta)?], rng), None),
        R::Ordered(truth) => {
            if truth.cut.is_empty() || truth.cut.windows(2).any(|w| w[0] >= w[1]) {
                return Err(Error::input(
                    "`data.response.ordered.cut` must be numbers, each above the one before it",
                ));
            }
            let law = ordered::Ordered { classes: truth.cut.len() + 1, names: Vec::new() };
            (by_law(&law, &truth.cut, &[eta(&truth.beta)?], rng), None)
        }
        R::Multinomial(truth) => {
            classes = [&truth.base].into_iter().chain(truth.beta.keys()).cloned().collect();
            let eta = truth.beta.values().map(eta).collect::<Result<Vec<_>>>()?;
            if eta.is_empty() || truth.beta.contains_key(&truth.base) {
                let message =
                    "`data.response.multinomial.beta` needs coefficients for other classes than the base";
                return Err(Error::input(message));
            }
            (by_law(&multinomial::Multinomial { classes: classes.clone() }, &[], &eta, rng), None)
        }
        R::Exponential(truth) => {
            let times = by_law(&exponential::Exponential, &[], &[eta(&truth.beta)?], rng);
            censored(times, truth.censored_at.map(|end| end.get()))
        }
        R::Weibull(truth) => {
            let time = |eta: &f64| weibull::sample(*eta, truth.shape.get(), rng);
            censored(eta(&truth.beta)?.iter().map(time).collect(), truth.censored_at.map(|end| end.get()))
        }
    };
    let drawn = Dataset::new(data.x.clone(), Some(y), data.columns.clone()).with_classes(classes);
    Ok(drawn.with_design(data.design.clone()).with_event(event).with_offset(data.offset.clone()))
}

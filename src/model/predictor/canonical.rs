//! A family of [`regression`](crate::model::regression) as a law: for what its core has no room for (an offset, no intercept, factors or
//! random weights of the penalty).

use std::marker::PhantomData;

use super::{Law, Outcome};
use crate::model::Response;
use crate::model::regression::Family;
use crate::rng::Rng;

pub struct Canonical<F>(pub PhantomData<F>);

impl<F> Clone for Canonical<F> {
    fn clone(&self) -> Self {
        Canonical(PhantomData)
    }
}

impl<F: Family> Law for Canonical<F> {
    type At = ();

    fn response(&self) -> Response {
        F::RESPONSE
    }

    fn at(&self, _phi: &[f64]) {}

    fn loss(&self, _at: &(), of: Outcome, eta: &[f64], by_eta: &mut [f64], _by_phi: &mut [f64]) -> f64 {
        by_eta[0] = F::slopes(eta[0])[0] - of.y;
        F::partition(eta[0]) - of.y * eta[0]
    }

    fn carrier(&self, of: Outcome) -> f64 {
        F::carrier(of.y)
    }

    fn mean(&self, _at: &(), eta: &[f64]) -> Option<f64> {
        Some(F::slopes(eta[0])[0])
    }

    fn sample(&self, _at: &(), eta: &[f64], rng: &mut Rng) -> f64 {
        F::sample(eta[0], rng)
    }

    fn keeps(&self, of: Outcome) -> [bool; 2] {
        [of.y > 0.0, F::LARGEST.is_none_or(|largest| of.y < largest)]
    }
}

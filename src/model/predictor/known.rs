//! A [`Law`] behind a pointer: what the machinery of these regressions sees of it, so that it is compiled once and not for every law.
//! The loop over the rows of a tile is in here, where the law is known: a pointer is followed for a tile, not for a row.

use std::borrow::Cow;
use std::sync::Arc;

use super::{Extra, Form, Law, Outcome, Response};
use crate::config::Complaint;
use crate::data::Dataset;
use crate::kernel::Line;
use crate::rng::Rng;

/// Methods of [`Law`] that are the same behind a pointer.
macro_rules! known {
    ($($name:ident($($argument:ident: $type:ty),*) -> $out:ty;)*) => {
        pub trait Known: Send + Sync {
            $(fn $name(&self, $($argument: $type),*) -> $out;)*

            fn ways(&self) -> Vec<Arc<dyn Known>>;

            /// The law at φ.
            fn at<'a>(&'a self, phi: &[f64]) -> Box<dyn At + 'a>;

            /// The same, for whoever outlives the model.
            fn kept_at(&self, phi: &[f64]) -> Box<dyn At>;
        }

        impl<L: Law> Known for L {
            $(fn $name(&self, $($argument: $type),*) -> $out {
                Law::$name(self, $($argument),*)
            })*

            fn ways(&self) -> Vec<Arc<dyn Known>> {
                Law::ways(self).into_iter().map(|law| Arc::new(law) as Arc<dyn Known>).collect()
            }

            fn at<'a>(&'a self, phi: &[f64]) -> Box<dyn At + 'a> {
                Box::new(Here { at: Law::at(self, phi), law: Cow::Borrowed(self) })
            }

            fn kept_at(&self, phi: &[f64]) -> Box<dyn At> {
                Box::new(Here { at: Law::at(self, phi), law: Cow::<'static, L>::Owned(self.clone()) })
            }
        }
    };
}

known! {
    response() -> Response;
    predictors() -> Vec<String>;
    has_intercept() -> bool;
    extras() -> Vec<Extra>;
    carrier(of: Outcome) -> f64;
    is_likelihood() -> bool;
    tells() -> Vec<String>;
    classes() -> Vec<String>;
    knows_events() -> bool;
    keeps(of: Outcome) -> [bool; 2];
    forms(of: Outcome) -> Option<Vec<Form>>;
    is_undispersed(phi: &[f64]) -> bool;
    has_one_minimum() -> bool;
    wants(train: &Dataset) -> Option<Complaint>;
}

/// A law at φ.
pub trait At: Send + Sync {
    fn loss(&self, of: Outcome, eta: &[f64], by_eta: &mut [f64], by_phi: &mut [f64]) -> f64;

    fn mean(&self, eta: &[f64]) -> Option<f64>;

    fn sample(&self, eta: &[f64], rng: &mut Rng) -> f64;

    fn probabilities(&self, eta: &[f64]) -> Option<Vec<f64>>;

    fn reaches(&self, of: Outcome, eta: &[f64]) -> bool;

    /// Turns the margins of a lane, those of the rows from `first` on, into weighted slopes; adds up its losses and their derivatives
    /// by φ.
    fn slopes(&self, rows: &Passed, lane: usize, margins: &mut [Vec<Line>], into: Sums);
}

/// Observed rows that a lane passes, and their weights.
pub struct Passed<'a> {
    pub data: &'a Dataset,
    pub first: usize,
    pub w: &'a [f64],
}

pub struct Sums<'a> {
    pub value: &'a mut f64,
    pub by_phi: &'a mut [f64],
}

struct Here<'a, L: Law> {
    law: Cow<'a, L>,
    at: L::At,
}

impl<L: Law> At for Here<'_, L> {
    fn loss(&self, of: Outcome, eta: &[f64], by_eta: &mut [f64], by_phi: &mut [f64]) -> f64 {
        self.law.loss(&self.at, of, eta, by_eta, by_phi)
    }

    fn mean(&self, eta: &[f64]) -> Option<f64> {
        self.law.mean(&self.at, eta)
    }

    fn sample(&self, eta: &[f64], rng: &mut Rng) -> f64 {
        self.law.sample(&self.at, eta, rng)
    }

    fn probabilities(&self, eta: &[f64]) -> Option<Vec<f64>> {
        self.law.probabilities(&self.at, eta)
    }

    fn reaches(&self, of: Outcome, eta: &[f64]) -> bool {
        self.law.reaches(&self.at, of, eta)
    }

    fn slopes(&self, rows: &Passed, lane: usize, margins: &mut [Vec<Line>], into: Sums) {
        let Passed { data, first, w } = *rows;
        let y = data.y.as_ref().expect("regression data have responses");
        let (mut eta, mut by_eta) = (vec![0.0; margins.len()], vec![0.0; margins.len()]);
        let mut by_phi = vec![0.0; into.by_phi.len()];
        for r in 0..margins[0].len() {
            let i = first + r;
            let w = w.get(i).copied().unwrap_or(0.0);
            if i >= y.len() {
                margins.iter_mut().for_each(|margins| margins[r][lane] = 0.0);
                continue;
            }
            let offset = data.offset(i);
            eta.iter_mut().zip(&*margins).for_each(|(eta, margins)| *eta = margins[r][lane] + offset);
            let event = data.event.as_ref().is_none_or(|event| event[i] == 1.0);
            let of = Outcome { y: y[i], event };
            *into.value += w * self.law.loss(&self.at, of, &eta, &mut by_eta, &mut by_phi);
            margins.iter_mut().zip(&by_eta).for_each(|(margins, by)| margins[r][lane] = w * by);
            into.by_phi.iter_mut().zip(&by_phi).for_each(|(sum, by)| *sum += w * by);
        }
    }
}

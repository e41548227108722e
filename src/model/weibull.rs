//! Weibull regression of survival times t > 0, right-censored or not: log T = η + log E/k, η = βᵀx + β₀, E ~ Exp(1). With
//! z = k (log t − η) the loss is e^z − δ (log k − log t + z), δ = 1 for an event and 0 for a censored time.

use std::ops::Range;

use ndarray::ArrayView1;
use rand::distr::Distribution;
use rand_distr::Exp1;

use super::identify::Basis;
use super::predictor::{Extra, Law, Outcome, PenaltyWeight, config, has_large_columns};
use super::row_loss::{RowLoss, Rows, Tile};
use super::{Block, Context, Model, Response, Support};
use crate::config::{Complaint, brief, complaint};
use crate::data::Dataset;
use crate::kernel::{LANES, Level, Line};
use crate::penalty::{Penalty, Shape};
use crate::rng::Rng;

pub const STARTER: &str = include_str!("../../configs/starters/weibull.toml");

config! {}

impl Config {
    pub fn build(&self, context: &Context) -> Result<Box<dyn Model>, Vec<Complaint>> {
        if self.goes_beyond(context.train) || has_large_columns(context.train) {
            return self.common().build(Times, context);
        }
        let Some(y) = &context.train.y else {
            return Err(vec![complaint(
                "",
                "needs times, and the data have no response; give `data.target`",
            )]);
        };
        if let Some(y) = y.iter().find(|&&y| !Response::Positive.admits(y)) {
            return Err(vec![complaint(
                "",
                format!("cannot have a time {}: it must be {}", brief(*y), Response::Positive.what()),
            )]);
        }
        let gamma = self.gamma.as_ref().map_or(context.one_over_n(), |g| g.value(context.one_over_n()));
        let penalty = if gamma == 0.0 { Penalty::None } else { self.penalty };
        let loss =
            Weibull { columns: context.train.columns.clone(), penalty, gamma, prior: context.alpha > 0.0 };
        let (optimiser, n) = (context.optimiser.clone(), context.train.mass());
        Ok(Box::new(Rows { loss, optimiser, mass: context.mass, n }))
    }

    /// Keys are given that [`Weibull`] does not know, and the law of [`Times`] does.
    fn goes_beyond(&self, train: &Dataset) -> bool {
        let common = self.common();
        !common.penalty_factor.is_empty()
            || common.weight != PenaltyWeight::Fixed
            || !common.intercept
            || common.intercept_prior.is_some()
            || common.auxiliary_prior.is_some()
            || train.offset.is_some()
    }
}

/// The same loss of a time, for whatever a regression may have beside its coefficients.
#[derive(Clone)]
struct Times;

impl Law for Times {
    /// k and log k.
    type At = [f64; 2];

    fn response(&self) -> Response {
        Response::Positive
    }

    fn extras(&self) -> Vec<Extra> {
        vec![Extra::scale("shape", 1.0)]
    }

    fn at(&self, phi: &[f64]) -> [f64; 2] {
        [phi[0], libm::log(phi[0])]
    }

    fn loss(&self, at: &[f64; 2], of: Outcome, eta: &[f64], by_eta: &mut [f64], by_phi: &mut [f64]) -> f64 {
        let [shape, log_shape] = *at;
        let event = f64::from(of.event);
        let z = shape * (libm::log(of.y) - eta[0]);
        let exp = libm::exp(z);
        by_eta[0] = shape * (event - exp);
        by_phi[0] = z * exp - event * (1.0 + z);
        exp - event * (log_shape + z)
    }

    fn carrier(&self, of: Outcome) -> f64 {
        if of.event { libm::log(of.y) } else { 0.0 }
    }

    fn mean(&self, at: &[f64; 2], eta: &[f64]) -> Option<f64> {
        Some(libm::exp(eta[0] + libm::lgamma(1.0 + 1.0 / at[0])))
    }

    fn sample(&self, at: &[f64; 2], eta: &[f64], rng: &mut Rng) -> f64 {
        sample(eta[0], at[0], rng).clamp(f64::MIN_POSITIVE, f64::MAX)
    }

    fn knows_events(&self) -> bool {
        true
    }

    /// A time that is censored keeps its scale from vanishing alone.
    fn keeps(&self, of: Outcome) -> [bool; 2] {
        [true, of.event]
    }

    fn wants(&self, train: &Dataset) -> Option<Complaint> {
        one_time(train)
    }
}

/// Two different times of events are needed at least: one alone is met exactly by an ever larger shape.
fn one_time(train: &Dataset) -> Option<Complaint> {
    let y = train.y.as_ref()?;
    let is_event = |i: &usize| train.event.as_ref().is_none_or(|event| event[*i] == 1.0);
    let mut events = (0..train.n()).filter(is_event);
    let first = events.next().map(|i| y[i]);
    let alone = events.all(|i| Some(y[i]) == first);
    let message = "has no minimum: for its shape the data need events at two times at least";
    alone.then(|| complaint("", message))
}

/// θ is β (d), the intercept, and the shape k.
struct Weibull {
    columns: Vec<String>,
    penalty: Penalty,
    gamma: f64,
    /// There are pseudo-samples, and they are events.
    prior: bool,
}

/// A time at η.
pub fn sample(eta: f64, shape: f64, rng: &mut Rng) -> f64 {
    let e: f64 = Exp1.sample(rng);
    libm::exp(eta + libm::log(e) / shape)
}

impl RowLoss for Weibull {
    fn names(&self) -> Vec<String> {
        let beta = self.columns.iter().map(|c| format!("beta.{c}"));
        beta.chain(["intercept", "shape"].map(String::from)).collect()
    }

    fn blocks(&self) -> Vec<Block> {
        let d = self.columns.len();
        vec![
            Block { name: "beta".into(), range: 0..d, support: Support::Real },
            Block { name: "intercept".into(), range: d..d + 1, support: Support::Real },
            Block { name: "shape".into(), range: d + 1..d + 2, support: Support::Positive },
        ]
    }

    fn add(&self, tile: &Tile, theta: &[f64], gradient: &mut [f64]) -> f64 {
        let d = self.columns.len();
        let (beta, intercept, shape) = (ArrayView1::from(&theta[..d]), theta[d], theta[d + 1]);
        let log_shape = libm::log(shape);
        let mut sum = 0.0;
        for atom in tile.atoms() {
            let (event, log_time) = (f64::from(atom.event), libm::log(atom.y));
            let z = shape * (log_time - atom.x.dot(&beta) - intercept);
            let exp = libm::exp(z);
            sum += atom.w * (exp - event * (log_shape - log_time + z));
            let by_eta = atom.w * shape * (event - exp);
            gradient[..d].iter_mut().zip(atom.x).for_each(|(g, x)| *g += by_eta * x);
            gradient[d] += by_eta;
            gradient[d + 1] += atom.w * (z * exp - event * (1.0 + z));
        }
        sum
    }

    fn penalise(&self, theta: &[f64], gradient: &mut [f64]) -> f64 {
        let d = self.columns.len();
        let lines: Vec<Line> = theta[..d].iter().map(|b| Line([*b; LANES])).collect();
        let mut slopes = vec![Line::default(); d];
        let value = self.penalty.penalise(Level::current(), self.gamma, &lines, &mut slopes)[0];
        gradient.iter_mut().zip(&slopes).for_each(|(g, slope)| *g += slope[0]);
        value
    }

    fn kink(&self) -> (f64, usize) {
        (self.gamma * self.penalty.kink(), self.columns.len())
    }

    fn response(&self) -> Option<Response> {
        Some(Response::Positive)
    }

    fn has_mean(&self) -> bool {
        true
    }

    /// e^η Γ(1 + 1/k).
    fn mean(&self, x: ArrayView1<f64>, theta: &[f64]) -> f64 {
        let d = self.columns.len();
        let eta = x.dot(&ArrayView1::from(&theta[..d])) + theta[d];
        libm::exp(eta + libm::lgamma(1.0 + 1.0 / theta[d + 1]))
    }

    fn respond(&self, x: ArrayView1<f64>, theta: &[f64], rng: &mut Rng) -> Option<f64> {
        let d = self.columns.len();
        Some(sample(x.dot(&ArrayView1::from(&theta[..d])) + theta[d], theta[d + 1], rng))
    }

    fn coefficients(&self) -> Option<Range<usize>> {
        Some(0..self.columns.len())
    }

    fn is_likelihood(&self) -> bool {
        true
    }

    fn knows_events(&self) -> bool {
        true
    }

    /// Events at two times. Without a penalty, events must also keep every coefficient from growing, and columns be independent.
    fn flaws(&self, train: &Dataset) -> Option<Vec<Complaint>> {
        train.y.as_ref().filter(|_| !self.prior)?;
        let is_event = |i: &usize| train.event.as_ref().is_none_or(|event| event[*i] == 1.0);
        if let Some(wanted) = one_time(train) {
            return Some(vec![wanted]);
        }
        if self.penalty != Penalty::None {
            return None;
        }
        let basis = Basis::new(train.x.whole());
        let sides = |i: usize| [Some((i, -1.0)), is_event(&i).then_some((i, 1.0))];
        let rows: Vec<(usize, f64)> = (0..train.n()).flat_map(sides).flatten().collect();
        let why = if basis.spans_all_rows() || basis.separation(&rows).is_some() {
            "is needed: censored times leave a combination of columns without bound, and the loss has no minimum"
        } else if !basis.is_full() {
            "is needed: some columns are combinations of others, and their coefficients are not identified"
        } else {
            return None;
        };
        Some(vec![complaint("penalty", why)])
    }
}

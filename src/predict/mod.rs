//! From the draws of a run to what is to be told of new rows: the posterior of the predicted quantity, responses that may come, and
//! the log predictive density of those that came.

mod interval;
mod run;
mod value;

pub use interval::Interval;
pub use run::{Posterior, check_ratios, check_units, derived, preparations};
pub use value::Asked;

use std::ops::Range;

use rayon::prelude::*;

use crate::data::Dataset;
use crate::data::incoming::NewRows;
use crate::math::log_sum_exp;
use crate::rng::Purpose;

/// Rows that share a stream of responses.
const TILE: usize = 16;
/// Numbers of a block of rows, for all draws: a few dozen megabytes.
const BLOCK: usize = 1 << 22;
/// Rows of a block, at most: they stay in the cache.
const MOST_ROWS: usize = 256;

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    /// Probability of the intervals.
    pub level: f64,
    /// Intervals of responses that may come.
    pub responses: bool,
    /// What every draw says.
    pub draws: bool,
}

/// Where rows stand among all that come.
#[derive(Clone, Copy, Debug)]
pub enum Places<'a> {
    /// Together, after so many others.
    After(usize),
    /// Each at its own place, from 0: rows of one of several groups.
    Each(&'a [usize]),
}

/// What is told of a row.
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// Of every number that the model predicts.
    pub numbers: Vec<Interval>,
    /// Of a response that may come.
    pub response: Option<Interval>,
    /// Of the response that came, eq. (E.10).
    pub log_density: Option<f64>,
    /// What every draw says, number by number; empty unless it was asked for.
    pub draws: Vec<Vec<f64>>,
    /// Values that are no finite numbers, of all draws: intervals are those of the others.
    pub undefined: usize,
}

impl Posterior {
    /// Rows to hand in at a time.
    pub fn rows_at_once(&self) -> usize {
        let numbers = self.draws.len() * self.told().len().max(self.model.predicted().len()).max(1);
        (BLOCK / numbers.max(1)).clamp(TILE, MOST_ROWS) / TILE * TILE
    }

    /// Nothing of rows that lack something.
    pub fn tell(&self, places: Places, rows: &NewRows, question: Question) -> Vec<Option<Told>> {
        let (n, outputs, data) = (rows.n(), self.told().len(), &rows.data);
        let predicted = match &self.values {
            Some(values) => self.values(values, data),
            None => self.of_every_draw(n * outputs, |_, theta, out| self.model.predict(theta, data, out)),
        };
        let scored = self.values.is_none() && self.model.is_likelihood();
        let densities = data.y.as_ref().filter(|_| scored).map(|_| {
            self.of_every_draw(n, |b, theta, out| {
                self.model.log_density(theta, data, out);
                out.iter_mut().for_each(|l| *l += self.log_weights[b]);
            })
        });
        let responses = question.responses.then(|| self.responses(places, data));
        let column = |matrix: &[f64], width: usize, j: usize| -> Vec<f64> {
            (0..self.draws.len()).map(|b| matrix[b * width + j]).collect()
        };
        let told = |i: usize| {
            let of_output = |m: usize| column(&predicted, n * outputs, i * outputs + m);
            let interval = |values: Vec<f64>| Interval::of(values, &self.weights, question.level);
            let numbers: Vec<Vec<f64>> = (0..outputs).map(of_output).collect();
            let undefined = match self.values {
                Some(_) => numbers.iter().flatten().filter(|v| !v.is_finite()).count(),
                None => 0,
            };
            let draws = if question.draws { numbers.clone() } else { Vec::new() };
            let of_numbers = |values: Vec<f64>| match undefined {
                0 => interval(values),
                _ => Interval::of_finite(values, &self.weights, question.level),
            };
            let came = data.y.as_ref().is_some_and(|y| !y[i].is_nan());
            Told {
                numbers: numbers.into_iter().map(of_numbers).collect(),
                response: responses.as_ref().map(|drawn| interval(column(drawn, n, i))),
                log_density: densities.as_ref().filter(|_| came).map(|d| log_sum_exp(&column(d, n, i))),
                draws,
                undefined,
            }
        };
        (0..n).into_par_iter().map(|i| rows.whole[i].then(|| told(i))).collect()
    }

    /// `of` every draw, `width` numbers each, one draw after the other.
    fn of_every_draw(&self, width: usize, of: impl Fn(usize, &[f64], &mut [f64]) + Sync) -> Vec<f64> {
        let mut out = vec![0.0; width * self.draws.len()];
        if width > 0 {
            let draws = out.par_chunks_exact_mut(width).zip(&self.draws).enumerate();
            draws.for_each(|(b, (out, theta))| of(b, theta, out));
        }
        out
    }

    /// A response of every row, for every draw. Tiles of rows have streams of their own, so that it does not matter how many rows
    /// come at a time; rows of one of several groups, which stand anywhere, have one each.
    fn responses(&self, places: Places, data: &Dataset) -> Vec<f64> {
        let length = if matches!(places, Places::Each(_)) { 1 } else { TILE };
        let tile = |first: usize| -> (Range<usize>, Dataset, u64) {
            let rows = first..(first + length).min(data.n());
            let part = match places {
                Places::After(before) => (before + first) / TILE,
                Places::Each(places) => places[first],
            };
            (rows.clone(), data.select(&rows.collect::<Vec<_>>()), part as u64)
        };
        let tiles: Vec<(Range<usize>, Dataset, u64)> = (0..data.n()).step_by(length).map(tile).collect();
        self.of_every_draw(data.n(), |b, theta, out| {
            for (rows, data, part) in &tiles {
                let mut rng = self.seed.stream(Purpose::Prediction, b as u64, *part);
                self.model.respond(theta, data, &mut rng, &mut out[rows.clone()]);
            }
        })
    }
}

//! The weighted losses of a block of draws on the same rows, for the optimiser.

use std::ops::Range;

use ndarray::Array2;

use super::Logistic;
use super::metric::{Metric, Shared};
use crate::data::Dataset;
use crate::kernel::logistic::loss_and_slope;
use crate::kernel::products::{add_gradient, add_margins};
use crate::kernel::{LANES, Line, Panel};
use crate::optim::lbfgs::BlockObjective;
use crate::process::Measure;

/// Columns that are worked on together: their parameters stay in the cache.
const COLUMNS: usize = 512;
/// Cells of a tile, in groups of eight rows: half a megabyte.
const TILE: usize = 8192;

pub struct Objective<'a> {
    model: &'a Logistic,
    data: &'a Dataset,
    /// Per draw: mass of each row, and the part of it with response 1.
    responses: Vec<(Vec<f64>, Vec<f64>)>,
    metrics: Vec<Metric<'a>>,
    bench: Vec<Seats>,
}

/// Eight draws that are evaluated in step, each a lane.
struct Seats {
    taken: [Option<usize>; LANES],
    mass: Vec<Line>,
    ones: Vec<Line>,
    theta: Vec<Line>,
    gradient: Vec<Line>,
    value: Line,
    /// Of a tile of rows: margins, then slopes.
    margins: Vec<Line>,
}

impl Seats {
    fn new(x: &Panel) -> Seats {
        let zeros = |len: usize| vec![Line::default(); len];
        let rows = x.groups() * LANES;
        Seats {
            taken: [None; LANES],
            mass: zeros(rows),
            ones: zeros(rows),
            theta: zeros(x.d()),
            gradient: zeros(x.d()),
            value: Line::default(),
            margins: Vec::new(),
        }
    }

    fn take(&mut self, lane: usize, draw: usize, (mass, ones): &(Vec<f64>, Vec<f64>)) {
        if self.taken[lane] != Some(draw) {
            self.taken[lane] = Some(draw);
            self.mass.iter_mut().zip(mass).for_each(|(line, m)| line[lane] = *m);
            self.ones.iter_mut().zip(ones).for_each(|(line, o)| line[lane] = *o);
        }
    }
}

impl<'a> Objective<'a> {
    pub fn new(model: &'a Logistic, shared: &'a Shared, block: &[&Measure<'a>]) -> Self {
        let responses = block.iter().map(|f| f.responses()).collect();
        let metrics = block.iter().map(|_| Metric::new(shared)).collect();
        Objective { model, data: block[0].observed(), responses, metrics, bench: Vec::new() }
    }

    /// Loss and gradient of the first `open` draws on the bench: margins of a tile of rows are one matrix product, and so
    /// is its share of the gradients.
    fn pass(&mut self, open: usize) {
        let (x, level) = (self.data.panel_with_intercept(), self.model.level);
        let bench = &mut self.bench[..open.div_ceil(LANES)];
        for seats in bench.iter_mut() {
            seats.gradient.fill(Line::default());
            seats.value = Line::default();
        }
        for groups in pieces(x.groups(), TILE / x.d().min(COLUMNS)) {
            let rows = groups.start * LANES..groups.end * LANES;
            for seats in bench.iter_mut() {
                seats.margins.clear();
                seats.margins.resize(rows.len(), Line::default());
            }
            for columns in pieces(x.d(), COLUMNS) {
                for seats in bench.iter_mut() {
                    let theta = &seats.theta[columns.clone()];
                    add_margins(level, x, groups.clone(), columns.clone(), theta, &mut seats.margins);
                }
            }
            for seats in bench.iter_mut() {
                for (lane, draw) in seats.taken.iter().enumerate() {
                    if let Some(metric) = draw.map(|d| &mut self.metrics[d]) {
                        let real = rows.len().min(x.n() - rows.start);
                        metric.observe(rows.start, seats.margins[..real].iter().map(|m| m[lane]));
                    }
                }
                let (mass, ones) = (&seats.mass[rows.clone()], &seats.ones[rows.clone()]);
                let loss = loss_and_slope(level, &mut seats.margins, mass, ones);
                seats.value.iter_mut().zip(loss).for_each(|(v, l)| *v += l);
            }
            for columns in pieces(x.d(), COLUMNS) {
                for seats in bench.iter_mut() {
                    let gradient = &mut seats.gradient[columns.clone()];
                    add_gradient(level, x, groups.clone(), columns.clone(), &seats.margins, gradient);
                }
            }
        }
    }
}

/// 0..`len` in pieces of at most `size`.
fn pieces(len: usize, size: usize) -> impl Iterator<Item = Range<usize>> {
    (0..len).step_by(size).map(move |start| start..(start + size).min(len))
}

impl BlockObjective for Objective<'_> {
    fn evaluate(
        &mut self,
        active: &[usize],
        theta: &Array2<f64>,
        values: &mut [f64],
        gradients: &mut Array2<f64>,
    ) {
        let d = self.model.d();
        for (i, (&draw, theta)) in active.iter().zip(theta.outer_iter()).enumerate() {
            let (group, lane) = (i / LANES, i % LANES);
            if group == self.bench.len() {
                self.bench.push(Seats::new(self.data.panel_with_intercept()));
            }
            let seats = &mut self.bench[group];
            seats.take(lane, draw, &self.responses[draw]);
            seats.theta.iter_mut().zip(theta).for_each(|(line, t)| line[lane] = *t);
        }
        // A draw has one seat: one that moved has left another.
        let seats = self.bench.iter_mut().flat_map(|seats| &mut seats.taken);
        seats.skip(active.len()).for_each(|seat| *seat = None);
        self.pass(active.len());
        for (i, mut gradient) in gradients.outer_iter_mut().enumerate() {
            let (seats, lane) = (&self.bench[i / LANES], i % LANES);
            gradient.iter_mut().zip(&seats.gradient).for_each(|(g, line)| *g = line[lane]);
            let theta = theta.row(i);
            let beta = &theta.as_slice().expect(ROWS)[..d];
            values[i] =
                seats.value[lane] + self.model.penalise(beta, &mut gradient.as_slice_mut().expect(ROWS)[..d]);
        }
    }

    fn precondition(&mut self, active: &[usize], far: &[bool], v: &mut Array2<f64>) -> bool {
        let masses: Vec<&[f64]> = active.iter().map(|&s| &self.responses[s].0[..]).collect();
        let metrics: Vec<&Metric> = active.iter().map(|&s| &self.metrics[s]).collect();
        Metric::apply_block(&metrics, &self.data.x, &masses, far, v)
    }

    fn renew(&mut self, search: usize, theta: &[f64], far: bool) -> bool {
        self.metrics[search].renew(self.model, &self.data.x, &self.responses[search].0, theta, far)
    }

    fn begins_alone(&self, search: usize) -> bool {
        self.metrics[search].begins_alone()
    }

    fn renewal_cost(&self) -> f64 {
        Shared::renewal_cost(&self.data.x)
    }
}

const ROWS: &str = "rows of a fresh array are contiguous";

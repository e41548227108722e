//! The weighted losses of a block of draws on the same rows, for the optimiser.

use std::ops::Range;

use ndarray::Array2;

use super::Logistic;
use super::metric::{Hard, Metric, Shared, hessian};
use super::rows;
use crate::data::Dataset;
use crate::kernel::logistic::{curvatures, loss_and_slope};
use crate::kernel::products::{add_gradients, add_margins};
use crate::kernel::{LANES, Level, Line, Panel};
use crate::optim::Minimum;
use crate::optim::bfgs::{self, LaneObjective, Need, Trial};
use crate::optim::lbfgs::{self, BlockObjective, Settings};
use crate::process::Measure;

/// Columns that are worked on together: their parameters stay in the cache.
pub const COLUMNS: usize = 512;
/// Of log(1 + eᵐ), at m = 0.
const LARGEST_CURVATURE: f64 = 0.25;
/// Share of it that searches begin with at least, however large the margins of their start.
const LEAST: f64 = 1.0 / 16.0;
/// Rows that their size is taken from.
const SAMPLE: usize = 1024;
/// Cells of a tile, in groups of eight rows: half a megabyte.
const TILE: usize = 8192;

pub struct Objective<'a> {
    model: &'a Logistic,
    data: &'a Dataset,
    shared: &'a Shared,
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
    /// Of the hard rows, if there are any.
    hard_mass: Vec<Line>,
    hard_ones: Vec<Line>,
}

impl Seats {
    fn new(x: &Panel, hard: Option<&Hard>) -> Seats {
        let zeros = |len: usize| vec![Line::default(); len];
        let rows = x.groups() * LANES;
        let hard_rows = hard.map_or(0, |hard| hard.x.groups() * LANES);
        Seats {
            taken: [None; LANES],
            mass: zeros(rows),
            ones: zeros(rows),
            theta: zeros(x.d()),
            gradient: zeros(x.d()),
            value: Line::default(),
            margins: Vec::new(),
            hard_mass: zeros(hard_rows),
            hard_ones: zeros(hard_rows),
        }
    }

    fn take(&mut self, lane: usize, draw: usize, (mass, ones): &(Vec<f64>, Vec<f64>), hard: Option<&Hard>) {
        if self.taken[lane] != Some(draw) {
            self.taken[lane] = Some(draw);
            self.mass.iter_mut().zip(mass).for_each(|(line, m)| line[lane] = *m);
            self.ones.iter_mut().zip(ones).for_each(|(line, o)| line[lane] = *o);
            for (at, &i) in hard.iter().flat_map(|hard| hard.rows.iter().enumerate()) {
                (self.hard_mass[at][lane], self.hard_ones[at][lane]) = (mass[i], ones[i]);
            }
        }
    }
}

impl<'a> Objective<'a> {
    pub fn new(model: &'a Logistic, shared: &'a Shared, block: &[&Measure<'a>]) -> Self {
        let responses = block.iter().map(|f| f.responses()).collect();
        let metrics = block.iter().map(|_| Metric::new(shared)).collect();
        Objective { model, data: block[0].observed(), shared, responses, metrics, bench: Vec::new() }
    }

    /// Minimises the losses of all draws, from a start each.
    pub fn minimise(mut self, starts: Vec<Vec<f64>>) -> Vec<Minimum> {
        let (level, settings) = (self.model.level, self.model.settings());
        match self.shared {
            Shared::Small { .. } => bfgs::minimise_block(level, &mut self, starts, &settings),
            Shared::Rows(_, columns) => self.minimise_through_rows(columns, starts, &settings),
            Shared::Factor { .. } | Shared::Unknown => lbfgs::minimise_block(&mut self, starts, &settings),
        }
    }

    /// By majorisation as long as that gains much, and by L-BFGS from where it does not.
    fn minimise_through_rows(
        mut self,
        columns: &Panel,
        starts: Vec<Vec<f64>>,
        settings: &Settings,
    ) -> Vec<Minimum> {
        let descents = rows::descend(self.model, &mut self, columns, starts, settings);
        let left: Vec<usize> = (0..descents.len()).filter(|&i| descents[i].status.is_none()).collect();
        self.responses = left.iter().map(|&i| std::mem::take(&mut self.responses[i])).collect();
        self.metrics.truncate(left.len());
        self.bench.clear();
        let starts = left.iter().map(|&i| descents[i].theta.clone()).collect();
        let mut rest = lbfgs::minimise_block(&mut self, starts, settings).into_iter();
        let minimum = |descent: rows::Descent| {
            let done = descent.iterations;
            descent.minimum().unwrap_or_else(|| {
                let minimum = rest.next().expect("one for each that is left");
                Minimum { iterations: done + minimum.iterations, ..minimum }
            })
        };
        descents.into_iter().map(minimum).collect()
    }

    /// Mass of each row of a draw, and the part of it with response 1.
    pub fn responses(&self, draw: usize) -> (&[f64], &[f64]) {
        let (mass, ones) = &self.responses[draw];
        (mass, ones)
    }

    /// Σᵢ cᵢ xᵢ for every c, and Σᵢ cᵢ for the intercept.
    pub fn combine<'c>(&self, c: impl Iterator<Item = &'c [f64]>) -> Array2<f64> {
        let x = self.data.panel_with_intercept();
        let c: Vec<&[f64]> = c.collect();
        let rows = |c: &[&[f64]]| -> Vec<Line> {
            let line = |i: usize| {
                Line(std::array::from_fn(|l| c.get(l).and_then(|c| c.get(i)).copied().unwrap_or(0.0)))
            };
            (0..x.groups() * LANES).map(line).collect()
        };
        let slopes: Vec<Vec<Line>> = c.chunks(LANES).map(rows).collect();
        let slopes: Vec<&[Line]> = slopes.iter().map(|s| &s[..]).collect();
        let sums = through_rows(self.model.level, x, &slopes);
        Array2::from_shape_fn((c.len(), x.d()), |(i, j)| sums[i / LANES][j][i % LANES])
    }

    fn make_room(&mut self, groups: usize) {
        while self.bench.len() < groups {
            self.bench.push(Seats::new(self.data.panel_with_intercept(), self.shared.hard()));
        }
    }

    /// The share of the hard rows in the gradients of a group of the bench.
    fn hard_gradient(&self, seats: &Seats, hard: &Hard) -> Vec<Line> {
        let (level, groups, columns) = (self.model.level, 0..hard.x.groups(), 0..hard.x.d());
        let mut margins = vec![Line::default(); groups.len() * LANES];
        add_margins(level, &hard.x, groups.clone(), columns.clone(), &[&seats.theta], &mut [&mut margins]);
        loss_and_slope(level, &mut margins, &seats.hard_mass, &seats.hard_ones);
        let mut gradient = vec![Line::default(); columns.len()];
        add_gradients(level, &hard.x, groups, columns, &[&margins], &mut [&mut gradient]);
        gradient
    }

    /// Loss and gradient of the draws in the first `groups` of the bench: margins of a tile of rows are one matrix product, and so
    /// is its share of the gradients.
    fn pass(&mut self, groups: usize) {
        let (x, level) = (self.data.panel_with_intercept(), self.model.level);
        let bench = &mut self.bench[..groups];
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
                let (theta, mut margins): (Vec<&[Line]>, Vec<&mut [Line]>) =
                    bench.iter_mut().map(|s| (&s.theta[columns.clone()], &mut s.margins[..])).unzip();
                add_margins(level, x, groups.clone(), columns, &theta, &mut margins);
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
                let (slopes, mut gradients): (Vec<&[Line]>, Vec<&mut [Line]>) =
                    bench.iter_mut().map(|s| (&s.margins[..], &mut s.gradient[columns.clone()])).unzip();
                add_gradients(level, x, groups.clone(), columns, &slopes, &mut gradients);
            }
        }
    }
}

/// Σᵢ sᵢ xᵢ over all rows, for some times eight searches.
pub fn through_rows(level: Level, x: &Panel, slopes: &[&[Line]]) -> Vec<Vec<Line>> {
    let mut sums = vec![vec![Line::default(); x.d()]; slopes.len()];
    for columns in pieces(x.d(), COLUMNS) {
        let mut sums: Vec<&mut [Line]> = sums.iter_mut().map(|s| &mut s[columns.clone()]).collect();
        add_gradients(level, x, 0..x.groups(), columns, slopes, &mut sums);
    }
    sums
}

/// 0..`len` in pieces of at most `size`.
pub fn pieces(len: usize, size: usize) -> impl Iterator<Item = Range<usize>> {
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
        let groups = active.len().div_ceil(LANES);
        self.make_room(groups);
        for (i, (&draw, theta)) in active.iter().zip(theta.outer_iter()).enumerate() {
            let (group, lane) = (i / LANES, i % LANES);
            let seats = &mut self.bench[group];
            seats.take(lane, draw, &self.responses[draw], None);
            seats.theta.iter_mut().zip(theta).for_each(|(line, t)| line[lane] = *t);
        }
        // A draw has one seat: one that moved has left another.
        let seats = self.bench.iter_mut().flat_map(|seats| &mut seats.taken);
        seats.skip(active.len()).for_each(|seat| *seat = None);
        self.pass(groups);
        for seats in &mut self.bench[..groups] {
            let penalty = self.model.penalise(&seats.theta[..d], &mut seats.gradient[..d]);
            seats.value.iter_mut().zip(penalty).for_each(|(v, p)| *v += p);
        }
        for (i, mut gradient) in gradients.outer_iter_mut().enumerate() {
            let (seats, lane) = (&self.bench[i / LANES], i % LANES);
            gradient.iter_mut().zip(&seats.gradient).for_each(|(g, line)| *g = line[lane]);
            values[i] = seats.value[lane];
        }
    }

    fn precondition(&mut self, active: &[usize], far: &[bool], v: &mut Array2<f64>) -> bool {
        let masses: Vec<&[f64]> = active.iter().map(|&s| &self.responses[s].0[..]).collect();
        let metrics: Vec<&Metric> = active.iter().map(|&s| &self.metrics[s]).collect();
        Metric::apply_block(&metrics, self.model.level, self.data.panel_with_intercept(), &masses, far, v)
    }

    fn renew(&mut self, search: usize, theta: &[f64], far: bool) -> bool {
        self.metrics[search].renew(self.model, self.data, &self.responses[search].0, theta, far)
    }

    fn begins_alone(&self, search: usize) -> bool {
        self.metrics[search].begins_alone()
    }

    fn renewal_cost(&self) -> f64 {
        self.shared.renewal_cost(&self.data.x)
    }
}

impl LaneObjective for Objective<'_> {
    fn p(&self) -> usize {
        self.model.d() + 1
    }

    fn evaluate(&mut self, trials: &mut [Trial]) {
        let (d, p) = (self.model.d(), self.p());
        self.make_room(trials.len());
        for (seats, trial) in self.bench.iter_mut().zip(trials.iter()) {
            for (lane, draw) in trial.seats.iter().enumerate() {
                let hard = self.shared.hard();
                draw.iter().for_each(|&draw| seats.take(lane, draw, &self.responses[draw], hard));
            }
            seats.theta.copy_from_slice(&trial.at.theta[..p]);
        }
        self.pass(trials.len());
        for (seats, trial) in self.bench.iter().zip(trials) {
            let at = &mut trial.at;
            at.smooth[..p].copy_from_slice(&seats.gradient);
            if let Some(hard) = self.shared.hard() {
                let share = self.hard_gradient(seats, hard);
                let lines = at.smooth.iter_mut().zip(&share);
                lines.for_each(|(smooth, share)| (0..LANES).for_each(|l| smooth[l] -= share[l]));
            }
            at.gradient[..p].copy_from_slice(&seats.gradient);
            let penalty = self.model.penalise(&at.theta[..d], &mut at.gradient[..d]);
            at.values = std::array::from_fn(|l| seats.value[l] + penalty[l]);
        }
    }

    fn curvatures(&self, theta: &[Line], exact: [bool; LANES], out: &mut [Line]) {
        let d = self.model.d();
        for (theta, out) in theta[..d].iter().zip(out.iter_mut()) {
            let of = |l: usize, beta: f64| {
                if exact[l] { self.model.curvature(beta) } else { self.model.majorant(beta) }
            };
            out.0 = std::array::from_fn(|l| of(l, theta[l]));
        }
        out[d] = Line::default();
    }

    fn hessian(&mut self, search: usize, theta: &[f64], need: Need) -> Vec<f64> {
        let mass = &self.responses[search].0;
        let own = |far: bool| hessian(self.model, self.data, mass, theta, far, self.shared.hard());
        match (need, self.shared) {
            (Need::Start, Shared::Small { far, .. }) => {
                // The first rows tell well enough how large margins are.
                let x = self.data.panel_with_intercept();
                let (groups, rows) = (x.groups().min(SAMPLE / LANES), x.n().min(SAMPLE));
                let v = curvatures(self.model.level, x, groups, theta, &mass[..rows], false);
                let mean = v.iter().flat_map(|line| line.0).sum::<f64>() / mass[..rows].iter().sum::<f64>();
                let scale = (mean / LARGEST_CURVATURE).max(LEAST);
                far.iter().map(|h| scale * h).collect()
            }
            (Need::Near, Shared::Small { near: Some(near), .. }) => near.clone(),
            (Need::Start, _) => own(true),
            (Need::Near, _) => own(false),
            (Need::Anew { far }, _) => own(far),
        }
    }

    fn known_hessian(&self, search: usize, theta: &[f64], far: bool) -> Option<Vec<f64>> {
        let hard = self.shared.hard()?;
        Some(hard.hessian(self.model.level, &self.responses[search].0, theta, far))
    }

    fn hessian_cost(&self) -> f64 {
        self.shared.renewal_cost(&self.data.x)
    }

    /// Rows that come from afar are to serve more draws.
    fn seats(&self) -> usize {
        let x = self.data.panel_with_intercept();
        if x.groups() * x.d() <= 2 * TILE { 16 } else { 32 }
    }
}

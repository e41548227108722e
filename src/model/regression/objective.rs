//! The weighted losses of a block of draws on the same rows, for the optimiser.

use std::any::Any;
use std::borrow::Cow;
use std::cell::RefCell;
use std::ops::Range;

use ndarray::Array2;

use super::ground::Responses;
use super::metric::{Hard, Inverse, Metric, Shared, hessian};
use super::products::Curvatures;
use super::rows;
use super::{Family, Regression};
use crate::data::Dataset;
use crate::kernel::lanes::{add, along, interleaved};
use crate::kernel::products::{add_gradients, add_margins};
use crate::kernel::regression::{curvatures, loss_and_slope, loss_and_slope_of_rows};
use crate::kernel::{LANES, Level, Line, Panel, SINGLES, Scalar};
use crate::model::Response;
use crate::optim::Minimum;
use crate::optim::batch::{BatchObjective, Trial, evaluate_at};
use crate::optim::bfgs::{self, Curved, Need, Stage};
use crate::optim::lbfgs::{self, Settings};
use crate::optim::truncated::{self, End};
use crate::process::Measure;
use crate::rng::CHUNK;

/// Columns that are worked on together: their parameters stay in the first-level cache.
pub const COLUMNS: usize = 128;
/// Columns that the rows of a tile are counted by at most.
const WHOLE: usize = 512;
/// Share of the curvature at margin 0 that searches begin with at least, however large the margins of their start.
const LEAST: f64 = 1.0 / 16.0;
/// Rows for a parameter up to which draws differ much, where they have one minimum: the Hessian of a draw varies by 2p/n about that of the
/// unweighted data.
const DIFFERENT: usize = 4;
/// Rows that their size is taken from.
const SAMPLE: usize = 1024;
/// Values of columns for which singles will do on the way to a minimum, and one over the smallest.
const LARGEST_SINGLE: f64 = 1e4;
/// Cells of a tile, in groups of rows: half a megabyte.
const TILE: usize = 8192;
/// Cells, in groups of rows, of which a pass is made from memory that all cores share: four megabytes and more.
const AFAR: usize = 1 << 16;
/// Columns from which on the weights of a draw, which are read in every pass, are few beside the rows.
const WIDE: usize = 256;
/// Rows of which weights are put into lanes together: their lines stay in the first-level cache.
const LINES: usize = 64;

/// Rows of a tile in doubles.
pub fn tile(columns: usize) -> usize {
    TILE / columns.min(WHOLE) * LANES
}

pub struct Objective<'a, F: Family> {
    model: &'a Regression<F>,
    data: &'a Dataset,
    shared: &'a Shared,
    /// Of every draw.
    responses: Vec<Responses<'a>>,
    /// Where searches begin instead of their starts: the one minimum of the unweighted data.
    fit: Option<&'a [f64]>,
    /// Where searches begin is near their minima.
    begins_near: bool,
}

/// Draws that are evaluated in step, each a lane.
struct Seats<T: 'static = f64, const L: usize = LANES> {
    taken: [Option<usize>; L],
    /// Of all rows; of many rows of those from `first` on that a pass is at.
    many: bool,
    first: usize,
    mass: Vec<Line<T, L>>,
    /// Σ w y; none where all draws have the same responses, 0 or 1.
    ones: Vec<Line<T, L>>,
    /// Of a tile of rows: margins, then slopes; and its share of the gradient.
    margins: Vec<Line<T, L>>,
    share: Vec<Line<T, L>>,
    /// Of the hard rows, if there are any.
    hard_mass: Vec<Line<T, L>>,
    hard_ones: Vec<Line<T, L>>,
}

thread_local! {
    /// Masses of blocks that are done: fresh lines of many rows are fresh pages, which cost as much as what is put there.
    static SPARE: RefCell<Vec<Box<dyn Any>>> = const { RefCell::new(Vec::new()) };
}

/// Lines that are worth keeping, and how many vectors of them a thread keeps.
const WORTH_KEEPING: usize = 1 << 12;
const KEPT: usize = 8;

/// Lines of zeros, in memory that the thread has had before if it has some.
fn spare_lines<T: Scalar<L>, const L: usize>(len: usize) -> Vec<Line<T, L>> {
    let fits = |spare: &Box<dyn Any>| {
        spare.downcast_ref::<Vec<Line<T, L>>>().is_some_and(|lines| lines.capacity() >= len)
    };
    let spare = SPARE.with_borrow_mut(|spare| {
        let at = spare.iter().position(fits).filter(|_| len >= WORTH_KEEPING)?;
        spare.swap_remove(at).downcast::<Vec<Line<T, L>>>().ok()
    });
    let mut lines = spare.map_or_else(Vec::new, |lines| *lines);
    lines.clear();
    lines.resize(len, Line::default());
    lines
}

impl<T: 'static, const L: usize> Drop for Seats<T, L> {
    fn drop(&mut self) {
        if self.many || self.mass.len() < WORTH_KEEPING {
            return;
        }
        let mass = std::mem::take(&mut self.mass);
        // A thread that ends has no use for it.
        let _ = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.len() == KEPT {
                spare.remove(0);
            }
            spare.push(Box::new(mass));
        });
    }
}

impl<T: Scalar<L>, const L: usize> Seats<T, L> {
    fn new(x: &Panel<T, L>, hard: Option<&Panel<T, L>>, many: bool, alike: bool) -> Self {
        let zeros = |len: usize| vec![Line::default(); len];
        let hard_rows = hard.map_or(0, Panel::rows);
        let kept = if many { 0 } else { x.rows() };
        Seats {
            taken: [None; L],
            many,
            first: 0,
            mass: spare_lines(kept),
            ones: zeros(if alike { 0 } else { kept }),
            margins: Vec::new(),
            share: zeros(x.d()),
            hard_mass: zeros(hard_rows),
            hard_ones: zeros(hard_rows),
        }
    }

    /// Gives lanes to draws. What is new is put there some rows at a time, for all lanes of a line together.
    fn take(
        &mut self,
        seats: &[Option<usize>; L],
        responses: &[Responses],
        n: usize,
        alike: bool,
        hard: Option<&Hard>,
    ) {
        let new: Vec<(usize, &Responses)> = (0..L)
            .filter(|&lane| seats[lane] != self.taken[lane])
            .filter_map(|lane| Some((lane, &responses[seats[lane]?])))
            .collect();
        self.taken = *seats;
        if !self.many {
            let sums = |of| (!alike).then(|| Responses::sums(of, 0..n));
            let on_rows: Vec<_> = new.iter().map(|(lane, of)| (*lane, of.mass(0..n), sums(*of))).collect();
            for first in (0..n).step_by(LINES) {
                let rows = first..n.min(first + LINES);
                for (lane, mass, ones) in &on_rows {
                    put(&mut self.mass[first..], &mass[rows.clone()], *lane);
                    if let Some(ones) = ones {
                        put(&mut self.ones[first..], &ones[rows.clone()], *lane);
                    }
                }
            }
        }
        if let Some(hard) = hard {
            for (lane, of) in new {
                let [mass, ones] = of.hard(hard);
                put(&mut self.hard_mass, mass, lane);
                put(&mut self.hard_ones, ones, lane);
            }
        }
    }

    /// Has the masses of these rows at hand, of `n`. Rows of a pass come in their order.
    fn reach(
        &mut self,
        level: Level,
        rows: &Range<usize>,
        n: usize,
        responses: &[Responses],
        spare: &mut Spare,
        alike: bool,
    ) {
        if !self.many {
            return;
        }
        if rows.start == 0 {
            (self.first, self.mass, self.ones) = (0, Vec::new(), Vec::new());
        }
        let done = rows.start - self.first;
        self.mass.drain(..done);
        if !alike {
            self.ones.drain(..done);
        }
        self.first = rows.start;
        while self.first + self.mass.len() < rows.end {
            let at = self.first + self.mass.len();
            let len = CHUNK.min(n - at);
            for (lane, draw) in self.taken.iter().enumerate() {
                let place = lane * len..(lane + 1) * len;
                let (mass, ones) = (&mut spare.mass[place.clone()], &mut spare.ones[place]);
                match draw {
                    Some(draw) if alike => responses[*draw].masses_of_chunk(at / CHUNK, mass),
                    Some(draw) => responses[*draw].chunk(at / CHUNK, mass, ones),
                    None => [mass, ones].into_iter().for_each(|values| values.fill(0.0)),
                }
            }
            // Rows that fill up the last group have mass 0.
            let formats = [(&mut self.mass, &spare.mass), (&mut self.ones, &spare.ones)];
            for (lines, values) in formats.into_iter().take(if alike { 1 } else { 2 }) {
                let from = lines.len();
                lines.resize(from + len.next_multiple_of(L), Line::default());
                interleaved(level, &values[..L * len], len, &mut lines[from..][..len]);
            }
        }
    }

    /// The share of the hard rows in the gradients at θ.
    fn hard_gradient<F: Family>(
        &self,
        level: Level,
        hard: &Panel<T, L>,
        theta: &[Line<T, L>],
    ) -> Vec<Line<T, L>> {
        let (groups, columns) = (0..hard.groups(), 0..hard.d());
        let mut margins = vec![Line::default(); hard.rows()];
        add_margins(level, hard, groups.clone(), columns.clone(), &[theta], &mut [&mut margins]);
        loss_and_slope::<F, T, L>(level, &mut margins, &self.hard_mass, &self.hard_ones);
        let mut gradient = vec![Line::default(); columns.len()];
        add_gradients(level, hard, groups, columns, &[&margins], &mut [&mut gradient]);
        gradient
    }
}

/// Masses and sums of a chunk of rows, draw after draw.
struct Spare {
    mass: Vec<f64>,
    ones: Vec<f64>,
}

/// The first values into a lane of the first lines.
fn put<T: Scalar<L>, const L: usize>(lines: &mut [Line<T, L>], values: &[f64], lane: usize) {
    lines.iter_mut().zip(values).for_each(|(line, value)| line[lane] = T::of(*value));
}

/// Loss and gradient of the draws that are seated: margins of a tile of rows are one matrix product, and so is its share of
/// the gradients. `see` is shown the margins of every tile.
fn pass<F: Family, T: Scalar<L>, const L: usize>(
    level: Level,
    x: &Panel<T, L>,
    bench: &mut [Seats<T, L>],
    trials: &mut [Trial<T, L>],
    responses: &[Responses],
    y: Option<&[f64]>,
    mut see: impl FnMut(&Seats<T, L>, Range<usize>),
) {
    let many = bench.iter().any(|seats| seats.many);
    let zeros = || vec![0.0; if many { L * CHUNK } else { 0 }];
    let mut spare = Spare { mass: zeros(), ones: zeros() };
    for Trial { at, .. } in trials.iter_mut() {
        at.gradient.fill(Line::default());
        at.values = [0.0; L];
    }
    for groups in pieces(x.groups(), tile(x.d()) / LANES) {
        let rows = groups.start * L..groups.end * L;
        for seats in bench.iter_mut() {
            seats.margins.clear();
            seats.margins.resize(rows.len(), Line::default());
        }
        for columns in pieces(x.d(), COLUMNS) {
            let theta: Vec<&[_]> = trials.iter().map(|t| &t.at.theta[columns.clone()]).collect();
            let mut margins: Vec<&mut [_]> = bench.iter_mut().map(|s| &mut s.margins[..]).collect();
            add_margins(level, x, groups.clone(), columns, &theta, &mut margins);
        }
        for (seats, trial) in bench.iter_mut().zip(trials.iter_mut()) {
            see(seats, rows.start..rows.end.min(x.n()));
            seats.reach(level, &rows, x.n(), responses, &mut spare, y.is_some());
            let kept = rows.start - seats.first..rows.end - seats.first;
            let (margins, mass) = (&mut seats.margins, &seats.mass[kept.clone()]);
            let loss = match y.map(|y| &y[rows.start..rows.end.min(x.n())]) {
                Some(y) => loss_and_slope_of_rows::<F, T, L>(level, margins, mass, y),
                None => loss_and_slope::<F, T, L>(level, margins, mass, &seats.ones[kept]),
            };
            trial.at.values.iter_mut().zip(loss).for_each(|(v, l)| *v += l);
            seats.share.fill(Line::default());
        }
        for columns in pieces(x.d(), COLUMNS) {
            let (slopes, mut shares): (Vec<&[_]>, Vec<&mut [_]>) =
                bench.iter_mut().map(|s| (&s.margins[..], &mut s.share[columns.clone()])).unzip();
            add_gradients(level, x, groups.clone(), columns, &slopes, &mut shares);
        }
        // Tile by tile: a sum of all rows would lose more digits than singles can spare.
        for (seats, trial) in bench.iter().zip(trials.iter_mut()) {
            add(level, &seats.share, &mut trial.at.gradient[..x.d()]);
        }
    }
}

impl<'a, F: Family> Objective<'a, F> {
    /// Draws on the rows of `data`.
    pub fn new(
        model: &'a Regression<F>,
        shared: &'a Shared,
        data: &'a Dataset,
        responses: Vec<Responses<'a>>,
    ) -> Self {
        Objective { model, data, shared, responses, fit: None, begins_near: false }
    }

    /// Searches begin at this point, which is near all their minima, whatever their starts.
    pub fn near(self, fit: Option<&'a [f64]>) -> Self {
        Objective { fit, begins_near: fit.is_some(), ..self }
    }

    /// Every search begins at its own start, which is near its minimum.
    pub fn warm(self) -> Self {
        Objective { begins_near: true, ..self }
    }

    /// Draws without pseudo-samples on other than the observed rows.
    pub fn of_observed(model: &'a Regression<F>, shared: &'a Shared, block: &[&'a Measure<'a>]) -> Self {
        let responses = block.iter().map(|f| Responses::plain(model, f)).collect();
        Objective::new(model, shared, block[0].observed(), responses)
    }

    /// In doubles.
    fn in_lanes<'o>(&'o self) -> InLanes<'o, 'a, F, f64, LANES> {
        let hard = self.shared.hard().map(|hard| &hard.x);
        InLanes::new(self, self.data.x.panel_with_intercept(), hard, false)
    }

    /// Values and gradients of some draws at the rows of `theta`.
    pub fn evaluate(&self, draws: &[usize], theta: &Array2<f64>) -> (Vec<f64>, Array2<f64>) {
        evaluate_at(&mut self.in_lanes(), draws, theta)
    }

    /// Minimises the losses of all draws, from a start each.
    pub fn minimise(self, mut starts: Vec<Vec<f64>>) -> Vec<Minimum> {
        let (level, settings) = (self.model.level, self.model.settings());
        if let Some(fit) = self.fit {
            // What is not finite is no start, and fails as it would elsewhere.
            let finite = starts.iter_mut().filter(|start| start.iter().all(|t| t.is_finite()));
            finite.for_each(|start| start.copy_from_slice(fit));
        }
        match self.shared {
            Shared::Small { .. } => {
                let (singles, hard) = (self.suits_singles(), self.shared.hard());
                let stage = if self.begins_near { Stage::near } else { Stage::start };
                let mut stages = starts.into_iter().map(stage).collect();
                if singles {
                    let x = self.data.x.singles_with_intercept();
                    let mut lanes = InLanes::new(&self, x, hard.map(|hard| &hard.singles), singles);
                    stages = bfgs::approach(level, &mut lanes, stages, &settings);
                }
                let mut doubles = InLanes { singles: singles && settings.l1 == 0.0, ..self.in_lanes() };
                bfgs::minimise_block(level, &mut doubles, stages, &settings)
            }
            Shared::Rows(_, columns) => self.minimise_through_rows(columns, starts, &settings),
            Shared::Factor { near, .. } if self.draws_differ() && self.suits_singles() => {
                self.minimise_by_products(near, starts, &settings)
            }
            Shared::Factor { .. } | Shared::Unknown => {
                lbfgs::minimise_block_from(&mut self.in_lanes(), starts, self.begins_near, &settings)
            }
        }
    }

    /// There is one minimum, and the Hessians of draws are so far from that of the unweighted data that searches with it take many steps.
    fn draws_differ(&self) -> bool {
        let (n, p) = (self.data.n(), self.model.d() + 1);
        self.model.has_one_minimum() && DIFFERENT * p >= n
    }

    /// Columns are neither so large nor so small that their squares lose digits, or that steps along them do.
    fn suits_singles(&self) -> bool {
        let mut sizes = self.data.x.panel_with_intercept().sizes();
        sizes.all(|size| size == 0.0 || (1.0 / LARGEST_SINGLE..LARGEST_SINGLE).contains(&size))
    }

    /// By Newton's method with the products of Hessians, and by L-BFGS from where singles do not show the way.
    fn minimise_by_products(
        mut self,
        inverse: &Inverse,
        starts: Vec<Vec<f64>>,
        settings: &Settings,
    ) -> Vec<Minimum> {
        let level = self.model.level;
        let mut lanes = self.in_lanes();
        let mut ends =
            truncated::minimise_block(level, &mut Curvatures::new(&mut lanes, inverse), starts, settings);
        drop(lanes);
        let left: Vec<usize> = (0..ends.len()).filter(|&i| matches!(ends[i], End::Left { .. })).collect();
        let starts = ends.iter_mut().filter_map(|end| match end {
            End::Left { theta, .. } => Some(std::mem::take(theta)),
            End::Minimum(_) => None,
        });
        let mut rest = self.by_lbfgs(left, starts.collect(), true, settings).into_iter();
        let minimum = |end: End| match end {
            End::Minimum(minimum) => minimum,
            End::Left { iterations: done, .. } => {
                let minimum = rest.next().expect("one for each that is left");
                Minimum { iterations: done + minimum.iterations, ..minimum }
            }
        };
        ends.into_iter().map(minimum).collect()
    }

    /// The searches of some draws alone, by L-BFGS.
    fn by_lbfgs(
        &mut self,
        draws: Vec<usize>,
        starts: Vec<Vec<f64>>,
        near: bool,
        settings: &Settings,
    ) -> Vec<Minimum> {
        let mut responses: Vec<_> = std::mem::take(&mut self.responses).into_iter().map(Some).collect();
        self.responses = draws.iter().map(|&i| responses[i].take().expect("each is left once")).collect();
        lbfgs::minimise_block_from(&mut self.in_lanes(), starts, near, settings)
    }

    /// By majorisation as long as that gains much, and by L-BFGS from where it does not.
    fn minimise_through_rows(
        mut self,
        columns: &Panel,
        starts: Vec<Vec<f64>>,
        settings: &Settings,
    ) -> Vec<Minimum> {
        let descents = rows::descend(self.model, &mut self.in_lanes(), columns, starts, settings);
        let left: Vec<usize> = (0..descents.len()).filter(|&i| descents[i].status.is_none()).collect();
        let starts = left.iter().map(|&i| descents[i].theta.clone()).collect();
        let mut rest = self.by_lbfgs(left, starts, false, settings).into_iter();
        let minimum = |descent: rows::Descent| {
            let done = descent.iterations;
            descent.minimum().unwrap_or_else(|| {
                let minimum = rest.next().expect("one for each that is left");
                Minimum { iterations: done + minimum.iterations, ..minimum }
            })
        };
        descents.into_iter().map(minimum).collect()
    }

    /// The responses of the rows, where they are 0 or 1 and those of every draw: what is to be multiplied by them is exact in
    /// either format.
    fn responses_of_all(&self) -> Option<&'a [f64]> {
        let plain = |of: &Responses<'a>| of.plain_responses();
        let binary = F::RESPONSE == Response::Binary;
        self.responses
            .first()
            .and_then(plain)
            .filter(|_| binary && self.responses.iter().all(|r| plain(r).is_some()))
    }

    pub fn model(&self) -> &'a Regression<F> {
        self.model
    }

    /// The rows in singles.
    pub fn singles(&self) -> &'a Panel<f32, SINGLES> {
        self.data.x.singles_with_intercept()
    }

    /// Mass of each row of a draw.
    pub fn mass(&self, draw: usize) -> Cow<'_, [f64]> {
        self.responses[draw].mass(0..self.data.n())
    }

    /// Mass of each row of a draw, and Σ w y there.
    pub fn responses(&self, draw: usize) -> [Cow<'_, [f64]>; 2] {
        self.responses[draw].of(&(0..self.data.n()))
    }

    /// Σᵢ cᵢ xᵢ for every c, and Σᵢ cᵢ for the intercept.
    pub fn combine<'c>(&self, c: impl Iterator<Item = &'c [f64]>) -> Array2<f64> {
        let x = self.data.x.panel_with_intercept();
        let c: Vec<&[f64]> = c.collect();
        let rows = |c: &[&[f64]]| -> Vec<Line> {
            let line = |i: usize| {
                Line(std::array::from_fn(|l| c.get(l).and_then(|c| c.get(i)).copied().unwrap_or(0.0)))
            };
            (0..x.rows()).map(line).collect()
        };
        let slopes: Vec<Vec<Line>> = c.chunks(LANES).map(rows).collect();
        let slopes: Vec<&[Line]> = slopes.iter().map(|s| &s[..]).collect();
        let sums = through_rows(self.model.level, x, &slopes);
        Array2::from_shape_fn((c.len(), x.d()), |(i, j)| sums[i / LANES][j][i % LANES])
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

/// The draws of an objective, a lane each.
pub struct InLanes<'o, 'a, F: Family, T: 'static, const L: usize> {
    pub of: &'o Objective<'a, F>,
    x: &'o Panel<T, L>,
    hard: Option<&'o Panel<T, L>>,
    /// Hessians are made in singles.
    singles: bool,
    metrics: Vec<Metric<'a>>,
    bench: Vec<Seats<T, L>>,
    /// The responses of all draws, where they are 0 or 1 and the same.
    y: Option<&'a [f64]>,
}

impl<'o, 'a, F: Family, T: Scalar<L>, const L: usize> InLanes<'o, 'a, F, T, L> {
    fn new(
        of: &'o Objective<'a, F>,
        x: &'o Panel<T, L>,
        hard: Option<&'o Panel<T, L>>,
        singles: bool,
    ) -> Self {
        let metrics = of.responses.iter().map(|_| Metric::new(of.shared)).collect();
        InLanes { of, x, hard, singles, metrics, bench: Vec::new(), y: of.responses_of_all() }
    }

    /// From now on the margins of a draw at the point evaluated last are known.
    pub fn keep_margins(&mut self) {
        self.metrics.iter_mut().for_each(Metric::keep_margins);
    }

    pub fn margins(&self, draw: usize) -> &[f64] {
        self.metrics[draw].margins()
    }
}

impl<F: Family, T: Scalar<L>, const L: usize> BatchObjective<T, L> for InLanes<'_, '_, F, T, L> {
    fn p(&self) -> usize {
        self.of.model.d() + 1
    }

    fn evaluate(&mut self, trials: &mut [Trial<T, L>]) {
        let (d, p, of) = (self.of.model.d(), self.p(), self.of);
        let level = of.model.level;
        let groups = self.bench.len().max(trials.len());
        let alike = self.y.is_some();
        self.bench.resize_with(groups, || Seats::new(self.x, self.hard, self.x.n() > of.model.large, alike));
        for (seats, trial) in self.bench.iter_mut().zip(trials.iter()) {
            seats.take(&trial.seats, &of.responses, of.data.n(), alike, of.shared.hard());
        }
        let (bench, metrics) = (&mut self.bench[..trials.len()], &mut self.metrics);
        pass::<F, _, _>(level, self.x, bench, trials, &of.responses, self.y, |seats, rows| {
            for (lane, draw) in seats.taken.iter().enumerate() {
                let Some(draw) = *draw else { continue };
                metrics[draw].observe(rows.start, seats.margins[..rows.len()].iter().map(|m| m[lane].into()));
            }
        });
        for (seats, trial) in self.bench.iter().zip(trials) {
            let at = &mut trial.at;
            let parts = at.smooth.len().min(p);
            at.smooth[..parts].copy_from_slice(&at.gradient[..parts]);
            if let Some(hard) = self.hard.filter(|_| parts > 0) {
                let share = seats.hard_gradient::<F>(level, hard, &at.theta[..p]);
                along(level, &at.gradient[..p], [-1.0; L], &share, &mut at.smooth[..p]);
            }
            let penalty = of.model.penalise(&at.theta[..d], &mut at.gradient[..d]);
            let carrier = |l: usize| trial.seats[l].map_or(0.0, |draw| of.responses[draw].carrier);
            at.values = std::array::from_fn(|l| at.values[l] + penalty[l] + carrier(l));
        }
    }

    fn size(&self, search: usize) -> f64 {
        self.of.responses[search].carrier.abs()
    }

    /// Two lines at least share what is loaded. Rows that come from afar are to serve more draws.
    fn seats(&self) -> usize {
        match self.x.groups() * self.x.d() {
            cells if cells <= 2 * TILE => 2 * L,
            cells if cells > AFAR && self.x.d() >= WIDE => 8 * L,
            _ => 4 * L,
        }
    }

    fn precondition(&mut self, searches: &[usize], far: &[bool], v: &mut Array2<f64>) -> bool {
        let responses: Vec<&Responses> = searches.iter().map(|&s| &self.of.responses[s]).collect();
        let metrics: Vec<&Metric> = searches.iter().map(|&s| &self.metrics[s]).collect();
        let x = self.of.data.x.panel_with_intercept();
        Metric::apply_block::<F>(&metrics, self.of.model.level, x, &responses, far, v)
    }

    fn renew(&mut self, search: usize, theta: &[f64], far: bool) -> bool {
        let of = self.of;
        self.metrics[search].renew(of.model, of.data, &of.responses[search], theta, far)
    }

    fn begins_alone(&self, search: usize) -> bool {
        self.metrics[search].begins_alone()
    }

    fn renewal_cost(&self) -> f64 {
        self.of.shared.renewal_cost(&self.of.data.x, self.of.model.has_one_minimum())
    }
}

impl<F: Family, T: Scalar<L>, const L: usize> Curved<T, L> for InLanes<'_, '_, F, T, L> {
    fn curvatures(&self, theta: &[Line<T, L>], exact: [bool; L], out: &mut [Line<T, L>]) {
        let d = self.of.model.d();
        self.of.model.curvatures(&theta[..d], exact, &mut out[..d]);
        out[d] = Line::default();
    }

    fn hessian(&mut self, search: usize, theta: &[f64], need: Need) -> Vec<f64> {
        let Objective { model, data, shared, .. } = *self.of;
        let of = &self.of.responses[search];
        let mass = |rows| of.mass(rows);
        // Steps that are mended as they go need no more digits than singles have.
        let own = |far: bool| match self.singles {
            true => hessian::<F, _, _>(
                model.level,
                data.x.singles_with_intercept(),
                mass,
                theta,
                far,
                shared.hard(),
            ),
            false => hessian::<F, _, _>(
                model.level,
                data.x.panel_with_intercept(),
                mass,
                theta,
                far,
                shared.hard(),
            ),
        };
        match (need, shared) {
            (Need::Start, Shared::Small { far, .. }) => {
                // The first rows tell well enough how large margins are.
                let (groups, rows) = (self.x.groups().min(SAMPLE / L), self.x.n().min(SAMPLE));
                let mass = of.mass(0..rows);
                let v = curvatures::<F, T, L>(model.level, self.x, 0..groups, theta, &mass, false);
                let sum: f64 = v.iter().flat_map(|line| line.0).map(Into::into).sum();
                let mean = sum / mass.iter().sum::<f64>();
                let scale = (mean / F::curvature_at_0()).max(LEAST);
                far.iter().map(|h| scale * h).collect()
            }
            (Need::Near, Shared::Small { near: Some(near), .. }) => near.clone(),
            (Need::Start, _) => own(true),
            (Need::Near, _) => own(false),
            (Need::Anew { far }, _) => own(far),
        }
    }

    fn known_hessian(&self, search: usize, theta: &[f64], far: bool) -> Option<Vec<f64>> {
        let hard = self.of.shared.hard()?;
        Some(hard.hessian::<F>(self.of.model.level, self.singles, &self.of.responses[search], theta, far))
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_model;
    use super::*;
    use crate::config::Positive;
    use crate::kernel::available;
    use crate::model::{Logistic, Model, Search};
    use crate::optim::Status;
    use crate::penalty::{Penalty, StudentT};
    use crate::process::Prior;
    use crate::rng::Seed;
    use ndarray::Array1;

    /// Numbers without a pattern.
    fn noise(i: usize) -> f64 {
        ((i * 7919 + 13) % 997) as f64 / 500.0 - 1.0
    }

    fn data(n: usize, d: usize) -> Dataset {
        let x = Array2::from_shape_fn((n, d), |(i, j)| noise(i * d + j));
        let y = Array1::from_shape_fn(n, |i| f64::from(noise(3 * i) + x[[i, 0]] > 0.0));
        Dataset::unnamed(x, Some(y))
    }

    fn model(d: usize, level: Level) -> Regression<Logistic> {
        let positive = |v| Positive::new(v).unwrap();
        let penalty = Penalty::StudentT(StudentT { a: positive(1.0), b: positive(0.7) });
        Regression { level, ..test_model(d, penalty) }
    }

    /// More rows than a tile has, and more columns than are worked on together.
    #[test]
    fn losses_and_gradients_are_those_of_the_definition_in_both_formats() {
        let data = data(300, 520);
        let f = Measure::empirical(&data);
        for level in available() {
            let model = model(520, level);
            let objective = Objective::of_observed(&model, &Shared::Unknown, &[&f, &f]);
            evaluates(&objective, data.x.panel_with_intercept(), 1e-12);
            evaluates(&objective, data.x.singles_with_intercept(), 1e-5);
        }
    }

    fn evaluates<T: Scalar<L>, const L: usize>(objective: &Objective<Logistic>, x: &Panel<T, L>, error: f64) {
        let (data, d) = (objective.data, objective.model.d());
        let mut lanes = InLanes::new(objective, x, None, false);
        // Two draws in different lines, at points of their own.
        let mut trials: Vec<Trial<T, L>> = (0..2).map(|_| Trial::in_parts(d + 1)).collect();
        let places = [(0, 3), (1, L - 1)];
        let theta = |s: usize, j: usize| f64::from(noise(900 * s + 5 * j) as f32) / 10.0;
        for (s, (line, lane)) in places.into_iter().enumerate() {
            trials[line].seats[lane] = Some(s);
            (0..=d).for_each(|j| trials[line].at.theta[j][lane] = T::of(theta(s, j)));
        }
        lanes.evaluate(&mut trials);
        for (s, (line, lane)) in places.into_iter().enumerate() {
            let margin = |x: ndarray::ArrayView1<f64>| {
                x.iter().enumerate().map(|(j, x)| x * theta(s, j)).sum::<f64>() + theta(s, d)
            };
            let y = data.y.as_ref().unwrap();
            let mut slopes = vec![0.0; d + 1];
            let mut value = 0.0;
            for (x, y) in data.x.iter().zip(y) {
                let (m, w) = (margin(x), 1.0 / 300.0);
                value += w * (crate::math::softplus(m) - y * m);
                let slope = w * (1.0 / (1.0 + libm::exp(-m)) - y);
                slopes.iter_mut().zip(x.iter().chain([&1.0])).for_each(|(s, x)| *s += slope * x);
            }
            let at = &trials[line].at;
            let penalty: f64 = (0..d).map(|j| libm::log1p(theta(s, j).powi(2) / 1.4)).sum();
            value += objective.model.gamma * 1.5 * penalty;
            assert!((at.values[lane] / value - 1.0).abs() < error, "{} for {value}", at.values[lane]);
            for (j, slope) in slopes.iter().enumerate() {
                let smooth: f64 = at.smooth[j][lane].into();
                assert!((smooth - slope).abs() < error, "{smooth} for {slope} at {j}");
                let own = if j < d { objective.model.majorant(theta(s, j)) * theta(s, j) } else { 0.0 };
                let whole: f64 = at.gradient[j][lane].into();
                assert!((whole - slope - own).abs() < error, "{whole} at {j}");
            }
        }
    }

    /// A first part of the way in singles leads to the minimum of one in doubles alone.
    #[test]
    fn searches_end_where_they_would_in_doubles_alone() {
        let mut data = data(400, 4);
        // A row with much leverage.
        data.x[[9, 2]] = 50.0;
        let f = Measure::empirical(&data);
        for level in available() {
            let model = model(4, level);
            let shared = Shared::new(&model, &data);
            assert!(shared.hard().is_some());
            let starts: Vec<Vec<f64>> = (0..40).map(|s| (0..5).map(|j| noise(7 * s + j)).collect()).collect();
            let objective = Objective::of_observed(&model, &shared, &vec![&f; starts.len()]);
            assert!(objective.suits_singles());
            let (x, hard) = (data.x.panel_with_intercept(), shared.hard().map(|hard| &hard.x));
            let stages = starts.iter().cloned().map(Stage::start).collect();
            let mut doubles = InLanes::new(&objective, x, hard, false);
            let alone = bfgs::minimise_block(level, &mut doubles, stages, &model.settings());
            for (end, alone) in objective.minimise(starts).iter().zip(&alone) {
                assert_eq!(end.status, alone.status);
                assert!((end.value / alone.value - 1.0).abs() < 1e-13, "{level:?}");
                assert!(end.theta.iter().zip(&alone.theta).all(|(a, b)| (a - b).abs() < 1e-6), "{level:?}");
            }
        }
    }

    #[test]
    fn masses_of_a_block_lie_where_those_of_the_last_did() {
        let data = data(WORTH_KEEPING, 1);
        let seats = || Seats::<f64, LANES>::new(data.x.panel_with_intercept(), None, false, true);
        let mut first = seats();
        let place = first.mass.as_ptr();
        first.mass[3][1] = 7.0;
        drop(first);
        let second = seats();
        assert_eq!(second.mass.as_ptr(), place);
        assert!(second.mass.iter().all(|line| *line == Line::default()));
    }

    /// Half as many columns as rows: draws differ, and searches go by products of their Hessians to the minima that L-BFGS finds, each
    /// whatever is beside it.
    #[test]
    fn searches_by_products_end_where_others_do() {
        let (data, d) = (data(60, 24), 24);
        let draws: Vec<_> =
            (0..19).map(|draw| Prior::Noninformative.posterior_draw(&data, Seed(5), draw)).collect();
        for level in available() {
            let model = Regression { level, ..test_model(d, Penalty::Ridge) };
            let shared = model.metric(&data);
            let block: Vec<&Measure> = draws.iter().collect();
            let objective = || Objective::of_observed(&model, shared, &block);
            assert!(matches!(shared, Shared::Factor { .. }) && objective().draws_differ());
            let starts = vec![vec![0.0; d + 1]; draws.len()];
            let by_lbfgs =
                lbfgs::minimise_block(&mut objective().in_lanes(), starts.clone(), &model.settings());
            let found = objective().minimise(starts.clone());
            for (end, other) in found.iter().zip(&by_lbfgs) {
                assert_eq!(end.status, Status::Ok);
                assert!((end.value / other.value - 1.0).abs() < 1e-13, "{level:?}");
                assert!(end.theta.iter().zip(&other.theta).all(|(a, b)| (a - b).abs() < 1e-6), "{level:?}");
            }
            let alone = Objective::of_observed(&model, shared, &block[7..8]).minimise(starts[..1].to_vec());
            assert_eq!(alone[0], found[7], "{level:?}");
        }
    }

    /// Masses that are made again for every pass are those that are kept: every bit of every search is the same, with responses
    /// that pseudo-samples move and without, whatever rows are hard.
    #[test]
    fn many_rows_are_searched_like_few() {
        let data = |outlier: f64| {
            let mut data = data(5 * CHUNK + 13, 3);
            data.x[[CHUNK + 9, 2]] = outlier;
            data
        };
        for data in [data(1.0), data(300.0)] {
            for level in available() {
                let few = model(3, level);
                let many = Regression { large: 0, ..model(3, level) };
                let prior = Prior::Noninformative;
                let draws =
                    || (0..19).map(|draw| prior.posterior_draw(&data, Seed(3), draw)).collect::<Vec<_>>();
                let found = |model: &Regression<Logistic>| {
                    let draws = draws();
                    let search = |f| Search::new(f, vec![0.1; 4]);
                    model.minimise_block(&draws.iter().map(search).collect::<Vec<_>>())
                };
                let (few, many) = (found(&few), found(&many));
                assert_eq!(few, many, "{level:?}");
                assert!(few.iter().all(|minimum| minimum.status == Status::Ok));
            }
        }
    }

    #[test]
    fn singles_are_for_columns_that_fit() {
        for (scale, fits) in [(1.0, true), (1e3, true), (1e6, false), (1e-6, false), (0.0, true)] {
            let mut data = data(20, 2);
            (0..20).for_each(|i| data.x[[i, 1]] *= scale);
            let (f, model) = (Measure::empirical(&data), model(2, Level::PLAIN));
            let suits = Objective::of_observed(&model, &Shared::Unknown, &[&f]).suits_singles();
            assert_eq!(suits, fits, "{scale}");
        }
    }
}

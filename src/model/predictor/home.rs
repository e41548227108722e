//! Where searches begin that have no use for their own start: near the fit to the unweighted data. It is found in coordinates in
//! which every column has mean 0 and standard deviation 1, whatever its unit, and searches go on in them. They move no minimum:
//! a step in them is one of the coefficients, and kinks of the penalty have their factors in the same units.

use std::sync::{Arc, OnceLock};

use ndarray::Array2;

use super::objective::{Metric, Objective};
use super::{Known, Predictor, Support};
use crate::data::Dataset;
use crate::kernel::LANES;
use crate::linalg::Cholesky;
use crate::math::{self, dot};
use crate::model::row_loss::fit_from;
use crate::model::{Search, Transform};
use crate::optim::batch::{BatchObjective, Trial, evaluate_at};
use crate::optim::lbfgs::{self, Settings};
use crate::optim::{Minimum, Status};
use crate::process::Measure;

/// A start whose linear predictors are as large as this is no guess of anything: e²⁰ is half a billion.
const WILD: f64 = 20.0;
/// Columns beyond this are searched for in units of their own.
const COARSE: f64 = 100.0;
/// A fit whose linear predictors are as large as this is far from any start.
const DISTANT: f64 = 5.0;
/// Standard deviations of a start, at most.
const SPREAD: f64 = 3.0;
/// Beyond so many coordinates the fit is left to searches with gradients.
const MOST: usize = 100;
/// Step of a difference, in standard deviations of a column.
const STEP: f64 = 1e-4;
/// Powers of ten of positive parameters, and levels of linear predictors, that a fit may begin at.
const POWERS: std::ops::RangeInclusive<i32> = -2..=6;

/// Whether columns are so large that searches want units of their own.
pub fn has_large_columns(data: &Dataset) -> bool {
    data.moments().iter().any(|(mean, variance)| mean.abs() > COARSE || variance.sqrt() > COARSE)
}

/// From coordinates v to the unconstrained u: coefficients are divided by the sizes of their columns, and the level of a linear
/// predictor (its intercept, or the first cut point) takes up their means.
struct Change {
    means: Vec<f64>,
    sizes: Vec<f64>,
    /// Where the level of every linear predictor is, and which way it goes.
    levels: Vec<Option<(usize, f64)>>,
}

impl Change {
    fn of(model: &Predictor, data: &Dataset) -> Change {
        let (d, m) = (model.d(), model.m());
        let level = |k: usize| {
            let ordered = model.law.extras().first().is_some_and(|extra| extra.support == Support::Ordered);
            match model.intercept {
                true => Some((m * d + k, -1.0)),
                false => (ordered && m == 1).then_some((m * d, 1.0)),
            }
        };
        let size = |(mean, variance): (f64, f64)| {
            let size = variance.sqrt();
            if size > 1e-12 * mean.abs() && size.is_finite() { size } else { mean.abs().max(1.0) }
        };
        let moments = data.moments();
        Change {
            means: moments.iter().map(|(mean, _)| *mean).collect(),
            sizes: moments.into_iter().map(size).collect(),
            levels: (0..m).map(level).collect(),
        }
    }

    fn coefficients(&self) -> impl Iterator<Item = (usize, f64, f64, Option<(usize, f64)>)> {
        let d = self.means.len();
        let of = move |(k, level): (usize, &Option<(usize, f64)>)| {
            let level = *level;
            (0..d).map(move |j| (k * d + j, self.means[j], self.sizes[j], level))
        };
        self.levels.iter().enumerate().flat_map(of)
    }

    fn to_u(&self, v: &[f64]) -> Vec<f64> {
        let mut u = v.to_vec();
        for (j, mean, size, level) in self.coefficients() {
            u[j] = v[j] / size;
            if let Some((at, sign)) = level {
                u[at] += sign * mean * u[j];
            }
        }
        u
    }

    fn to_v(&self, u: &[f64]) -> Vec<f64> {
        let mut v = u.to_vec();
        for (j, mean, size, level) in self.coefficients() {
            v[j] = u[j] * size;
            if let Some((at, sign)) = level {
                v[at] -= sign * mean * u[j];
            }
        }
        v
    }

    /// The derivatives by v, from those by u.
    fn pull_back(&self, by_u: &[f64]) -> Vec<f64> {
        let mut by_v = by_u.to_vec();
        for (j, mean, size, level) in self.coefficients() {
            let by_level = level.map_or(0.0, |(at, sign)| sign * mean * by_u[at]);
            by_v[j] = (by_u[j] + by_level) / size;
        }
        by_v
    }
}

/// The objective in those coordinates.
struct Centred<'a> {
    objective: Objective<'a>,
    change: &'a Change,
    factor: Option<&'a Cholesky>,
}

impl Centred<'_> {
    /// Of the first search.
    fn at(&mut self, v: &[f64]) -> (f64, Vec<f64>) {
        let points = Array2::from_shape_fn((1, v.len()), |(_, j)| v[j]);
        let (values, gradients) = evaluate_at(self, &[0], &points);
        (values[0], gradients.row(0).to_vec())
    }

    /// Of the first search, by differences of gradients.
    fn hessian(&mut self, v: &[f64]) -> Array2<f64> {
        let p = v.len();
        let step = |i: usize, j: usize| if i % p == j { if i < p { STEP } else { -STEP } } else { 0.0 };
        let points = Array2::from_shape_fn((2 * p, p), |(i, j)| v[j] + step(i, j));
        let (_, gradients) = evaluate_at(self, &vec![0; 2 * p], &points);
        let slope = |i: usize, j: usize| (gradients[[i, j]] - gradients[[p + i, j]]) / (2.0 * STEP);
        Array2::from_shape_fn((p, p), |(i, j)| 0.5 * (slope(i, j) + slope(j, i)))
    }
}

impl BatchObjective for Centred<'_> {
    fn p(&self) -> usize {
        self.objective.p()
    }

    fn evaluate(&mut self, trials: &mut [Trial]) {
        let p = self.p();
        let there = |trial: &Trial| {
            let mut there = Trial::new(p);
            for lane in 0..LANES {
                if let Some(search) = trial.seats[lane] {
                    there.seat(lane, search, &self.change.to_u(&trial.at.theta(lane, p)));
                }
            }
            there
        };
        let mut moved: Vec<Trial> = trials.iter().map(there).collect();
        self.objective.evaluate(&mut moved);
        for (trial, there) in trials.iter_mut().zip(&moved) {
            for lane in (0..LANES).filter(|&lane| there.seats[lane].is_some()) {
                trial.at.values[lane] = there.at.values[lane];
                let gradient = self.change.pull_back(&there.at.gradient(lane, p));
                trial.at.gradient.iter_mut().zip(gradient).for_each(|(line, g)| line[lane] = g);
            }
        }
    }

    fn size(&self, search: usize) -> f64 {
        self.objective.size(search)
    }

    fn precondition(&mut self, searches: &[usize], _far: &[bool], v: &mut Array2<f64>) -> bool {
        let Some(factor) = self.factor else { return false };
        for (&search, mut row) in searches.iter().zip(v.outer_iter_mut()) {
            let solved = factor.solve(&row.to_vec());
            let scale = self.objective.scale(search);
            row.iter_mut().zip(solved).for_each(|(to, from)| *to = from / scale);
        }
        true
    }
}

/// The fit to the unweighted data.
pub(super) struct Home {
    change: Change,
    v: Vec<f64>,
    factor: Option<Cholesky>,
}

/// A home, made when a search first asks for it.
pub(super) type Homes = OnceLock<Home>;

impl Home {
    /// Whether columns are so large that rounding alone keeps their gradients from being small.
    fn is_coarse(&self) -> bool {
        self.change.means.iter().chain(&self.change.sizes).any(|v| v.abs() > COARSE)
    }

    /// Whether linear predictors are so large at θ that it is no start.
    fn is_wild(&self, u: &[f64]) -> bool {
        self.is_beyond(&self.change.to_v(u), WILD)
    }

    /// Whether a search from elsewhere would have a long way.
    fn is_distant(&self) -> bool {
        self.is_beyond(&self.v, DISTANT)
    }

    fn is_beyond(&self, v: &[f64], limit: f64) -> bool {
        let d = self.change.means.len();
        self.change.levels.iter().enumerate().any(|(k, level)| {
            let beta = &v[k * d..(k + 1) * d];
            let at = level.map_or(0.0, |(at, _)| v[at].abs());
            let size = dot(beta, beta).sqrt() + at;
            size.is_nan() || size > limit
        })
    }

    /// A start near it: as far off, in standard deviations of a row, as the start that it stands for is from 0.
    fn near(&self, u: &[f64]) -> Vec<f64> {
        let Some(factor) = &self.factor else { return self.v.clone() };
        let z: Vec<f64> = u.iter().map(|u| u.clamp(-SPREAD, SPREAD)).collect();
        let deviation = |j: usize| {
            let unit: Vec<f64> = (0..z.len()).map(|i| f64::from(i == j)).collect();
            factor.solve(&unit)[j].max(0.0).sqrt()
        };
        (0..z.len()).map(|j| self.v[j] + z[j] * deviation(j)).collect()
    }
}

impl Predictor {
    /// `None` without rows that are observed, or where searches are to be plain.
    fn home(&self, data: &Dataset) -> Option<&Home> {
        let wanted = data.n() > 0 && self.optimiser.change.is_none();
        wanted.then(|| self.home.get_or_init(|| self.make_home(data)))
    }

    fn make_home(&self, data: &Dataset) -> Home {
        let mut ways = self.law.ways().into_iter().map(|law| self.with(law));
        let Some(first) = ways.next() else { return self.fitted(data) };
        let mut home = first.fitted(data);
        for model in ways {
            let f = Measure::empirical(data);
            let search = Search::new(&f, Vec::new());
            home.v = model.search_from(&home, &[search], vec![home.v.clone()]).remove(0).theta;
        }
        home
    }

    /// The same regression of another law, without what is made of data.
    fn with(&self, law: Arc<dyn Known>) -> Predictor {
        Predictor {
            law,
            columns: self.columns.clone(),
            penalty: self.penalty,
            factors: self.factors.clone(),
            gamma: self.gamma,
            intercept: self.intercept,
            weighs: self.weighs,
            intercept_prior: self.intercept_prior,
            auxiliary_prior: self.auxiliary_prior,
            n: self.n,
            mass: self.mass,
            optimiser: self.optimiser.clone(),
            prior: self.prior,
            named: self.named.clone(),
            metric: OnceLock::new(),
            sound: OnceLock::new(),
            home: OnceLock::new(),
            block: self.block,
        }
    }

    /// By Newton's method from the best of a few levels; there, if it does not get further.
    fn fitted(&self, data: &Dataset) -> Home {
        let (change, transform, nothing) = (Change::of(self, data), self.transform(), Metric::none());
        let f = Measure::empirical(data);
        let block = [&f];
        let objective = Objective::new(self, &transform, &nothing, &block);
        let mut on = Centred { objective, change: &change, factor: None };
        let v = self.level(data, &transform, &mut on);
        if v.len() > MOST || self.kink() > 0.0 {
            return Home { v, factor: None, change };
        }
        let on = std::cell::RefCell::new(on);
        let found = fit_from(v.clone(), self.mass, |v| on.borrow_mut().at(v), |v| on.borrow_mut().hessian(v));
        drop(on);
        match found {
            Some((v, factor)) if v.iter().all(|v| v.is_finite()) => Home { change, v, factor: Some(factor) },
            _ => Home { change, v, factor: None },
        }
    }

    /// No coefficients: the level of the linear predictors and the powers of ten of what is positive that have the lowest loss.
    fn level(&self, data: &Dataset, transform: &Transform, on: &mut Centred) -> Vec<f64> {
        let (d, m) = (self.d(), self.m());
        let y = data.y.as_ref().map(|y| y.to_vec()).unwrap_or_default();
        let (mean, size) = (math::mean(&y), math::mean(&y.iter().map(|y| y.abs()).collect::<Vec<_>>()));
        let mut sorted = y;
        sorted.sort_unstable_by(f64::total_cmp);
        let median = math::quantile_sorted(&sorted, 0.5);
        let levels = [0.0, mean, median, libm::log(size), libm::log(mean / (1.0 - mean))];
        let levels = levels.into_iter().filter(|level| level.is_finite() && self.intercept);
        let at = |level: f64, power: i32| {
            let mut v = transform.unconstrain(&self.rough_start());
            (m * d..m * d + if self.intercept { m } else { 0 }).for_each(|j| v[j] = level);
            let positive = self.law.extras().into_iter().scan(self.linear(), |next, extra| {
                let at = *next..*next + extra.entries;
                *next = at.end;
                Some((at, extra.support.is_positive()))
            });
            let moved = positive.filter(|(_, positive)| *positive).flat_map(|(at, _)| at);
            moved.for_each(|j| v[j] += f64::from(power) * std::f64::consts::LN_10);
            v
        };
        let scales = self.law.extras().iter().any(|extra| extra.support.is_positive());
        let powers = if scales { POWERS } else { 0..=0 };
        let all = [0.0].into_iter().filter(|_| !self.intercept).chain(levels);
        let starts: Vec<Vec<f64>> =
            all.flat_map(|l| powers.clone().map(move |k| (l, k))).map(|(l, k)| at(l, k)).collect();
        let p = transform.dim();
        let points = Array2::from_shape_fn((starts.len(), p), |(i, j)| starts[i][j]);
        let (values, _) = evaluate_at(on, &vec![0; starts.len()], &points);
        let best = (0..starts.len())
            .filter(|&i| values[i].is_finite())
            .min_by(|&a, &b| values[a].total_cmp(&values[b]));
        best.map_or_else(|| transform.unconstrain(&self.rough_start()), |best| starts[best].clone())
    }

    /// Searches in the coordinates of home, from these starts in them; so are their ends.
    fn search_from(&self, home: &Home, searches: &[Search], starts: Vec<Vec<f64>>) -> Vec<Minimum> {
        let (transform, nothing) = (self.transform(), Metric::none());
        let block: Vec<&Measure> = searches.iter().map(|s| s.f).collect();
        let objective = Objective::new(self, &transform, &nothing, &block);
        let mut on = Centred { objective, change: &home.change, factor: home.factor.as_ref() };
        let settings = self.settings();
        let factors = settings.l1_factors.iter().zip(home.change.sizes.iter().cycle());
        let l1_factors = factors.map(|(factor, size)| factor / size).collect();
        lbfgs::minimise_block(&mut on, starts, &Settings { l1_factors, ..settings })
    }

    /// Those searches made at home, their ends in unconstrained coordinates.
    fn at_home(&self, home: &Home, searches: &[Search]) -> Vec<Minimum> {
        let transform = self.transform();
        let many = !self.law.has_one_minimum();
        let start =
            |s: &Search| if many { home.near(&transform.unconstrain(&s.start)) } else { home.v.clone() };
        let starts = searches.iter().map(start).collect();
        let minima = self.search_from(home, searches, starts);
        minima.into_iter().map(|m| Minimum { theta: home.change.to_u(&m.theta), ..m }).collect()
    }

    /// The minima of some searches, in unconstrained coordinates: from their own starts, or from home where these are wild or far from
    /// it, where the unweighted data cannot be fitted from 0, or where the loss has nothing to hold on to far off. A search that did not
    /// come to an end from its own start is made again from home, with the iterations that are left to it.
    pub(super) fn minima(&self, searches: &[Search]) -> Vec<Minimum> {
        let data = searches[0].f.observed();
        let transform = self.transform();
        let metric = self.metric(data);
        let far = |s: &Search| {
            let lost = metric.is_lost() || !self.law.ways().is_empty();
            let wild = |home: &Home| {
                let one = self.law.has_one_minimum();
                one && (home.is_coarse()
                    || home.is_distant()
                    || home.is_wild(&transform.unconstrain(&s.start)))
            };
            !s.warm && self.home(data).is_some_and(|home| lost || wild(home))
        };
        let (away, own): (Vec<usize>, Vec<usize>) = (0..searches.len()).partition(|&i| far(&searches[i]));
        let chosen = |some: &[usize]| some.iter().map(|&i| searches[i].clone()).collect::<Vec<_>>();
        let mut minima: Vec<Option<Minimum>> = vec![None; searches.len()];
        if !own.is_empty() {
            let some = chosen(&own);
            let block: Vec<&Measure> = some.iter().map(|s| s.f).collect();
            let starts = some.iter().map(|s| transform.unconstrain(&s.start)).collect();
            let mut objective = Objective::new(self, &transform, metric, &block);
            let found = lbfgs::minimise_block(&mut objective, starts, &self.settings());
            own.iter().zip(found).for_each(|(&i, m)| minima[i] = Some(m));
        }
        if let Some(home) = self.home(data).filter(|_| !away.is_empty()) {
            let found = self.at_home(home, &chosen(&away));
            away.iter().zip(found).for_each(|(&i, m)| minima[i] = Some(m));
        }
        let mut minima: Vec<Minimum> = minima.into_iter().map(|m| m.expect("each search is made")).collect();
        let most = self.optimiser.max_iterations.get();
        let open = |m: &Minimum| m.status == Status::Failed || m.status.is_on_its_way();
        let left: Vec<usize> =
            own.into_iter().filter(|&i| open(&minima[i]) && minima[i].iterations < most).collect();
        if let Some(home) = self.home(data).filter(|_| !left.is_empty()) {
            for (i, found) in left.iter().zip(self.at_home(home, &chosen(&left))) {
                let iterations = minima[*i].iterations + found.iterations;
                if found.status == Status::Ok || !minima[*i].beats(&found) {
                    minima[*i] = found;
                }
                minima[*i].iterations = iterations;
            }
        }
        minima
    }

    /// No more rows of a draw are within reach of the loss at θ than it has coefficients without a penalty.
    pub(super) fn is_flat(&self, f: &Measure, theta: &[f64]) -> bool {
        if self.law.ways().is_empty() {
            return false;
        }
        let at = self.law.at(self.phi(theta));
        let mut eta = vec![0.0; self.m()];
        let mut seen = 0;
        for part in f.parts() {
            for (k, _) in part.w.iter().enumerate().filter(|(_, w)| **w > 0.0) {
                self.eta(theta, part.row(k), part.offset(k), &mut eta);
                seen += usize::from(at.reaches(super::objective::outcome(&part, k), &eta));
            }
        }
        let free = self
            .factors
            .iter()
            .filter(|f| self.gamma == 0.0 || **f == 0.0 || self.penalty == crate::penalty::Penalty::None);
        seen <= free.count() + usize::from(self.intercept)
    }
}

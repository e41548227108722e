//! Searches on a smooth loss by its second derivatives: those of rows by expressions, spread over the coefficients of margins by
//! matrix products, and those of the penalty entry by entry. The searches are those of [`optim::bfgs`](crate::optim::bfgs), as those
//! of the [regressions](crate::model::regression) that are built in; rows with much leverage are treated alike.

use std::cell::OnceCell;
use std::sync::OnceLock;

use ndarray::{Array2, ArrayView2};

use super::{Custom, OnMeasures, prepare};
use crate::data::Dataset;
use crate::expression::{At, Input, Point, Prepared, Program, Second, Separate, Weighted, in_lines};
use crate::kernel::{LANES, Level, Line};
use crate::linalg::Cholesky;
use crate::math::{dot, largest};
use crate::model::row_loss::{OnBlock, Rows, fit};
use crate::model::{Block, Search, Support, Transform};
use crate::optim::Minimum;
use crate::optim::batch::{BatchObjective, Trial};
use crate::optim::bfgs::{self, Curved, Need, Stage};
use crate::process::Measure;

/// Beyond so many parameters matrices cost more than they spare, and beyond so many for the rows: p² of them over n.
const MOST: usize = 400;
const SMALL: usize = 24;
/// Variance of a draw's Hessian about that of the unweighted data, 2p/n, up to which they are taken to be alike.
const ALIKE: f64 = 1.0 / 16.0;
/// Leverage of a row beyond which its weight decides on the Hessian.
const LEVERAGE: f64 = 0.5;
/// Where there is one, leverage beyond which a row is hard; at most one row in so many is.
const HARD: f64 = 0.05;
const HARD_ONE_IN: usize = 16;
/// Share of the curvature at θ = 0 that searches begin with at least, and the rows that it is judged by, in lines.
const LEAST: f64 = 1.0 / 16.0;
const SAMPLE: usize = 128;
/// Step of a difference of what is known exactly at both its ends, and has no rows.
const STEP: f64 = 1e-5;
/// Shares of the diagonal that are added to a Hessian until it is positive definite.
const SHIFTS: [f64; 5] = [0.0, 1e-6, 1e-2, 1.0, 100.0];

/// The second derivatives of a loss.
pub struct Curvature {
    second: Second,
    /// Penalties of single entries, which are real.
    separate: Separate,
    /// All of the penalty is there.
    whole: bool,
    shared: OnceLock<Option<Shared>>,
}

/// What the searches of all draws know of their Hessians, penalties of single entries aside: lower triangles, row after row.
struct Shared {
    /// At u = 0, with the mean curvature of the margins there; for losses that have margins and bend up there.
    far: Option<(Vec<f64>, f64)>,
    /// At the fit to the unweighted data.
    fit: Vec<f64>,
    /// The Hessians of draws at their minima are about that one.
    alike: bool,
    hard: Option<Hard>,
}

/// Rows with so much leverage that their weights decide on the Hessian: each search has its own share of theirs, at every point anew.
struct Hard {
    rows: Vec<usize>,
    data: Dataset,
}

impl Curvature {
    pub fn new(program: &Program, blocks: &[Block]) -> Option<Curvature> {
        let real = |j: usize| blocks.iter().any(|b| b.support == Support::Real && b.range.contains(&j));
        let p = blocks.last().map_or(0, |b| b.range.end);
        if p > MOST {
            return None;
        }
        let separate = Separate::new(program, 1, real);
        let second = Second::new(program)?;
        Some(Curvature { second, whole: separate.is_whole, separate, shared: OnceLock::new() })
    }
}

/// The minima of some searches; `None` if the data have no fit to begin with.
pub fn minimise(
    loss: &Custom,
    curvature: &Curvature,
    model: &Rows<Custom>,
    transform: &Transform,
    searches: &[Search],
) -> Option<Vec<Minimum>> {
    let (p, data) = (transform.dim(), searches.first()?.f.observed());
    if data.n() == 0 || p * p > SMALL * data.n() || model.optimiser.change.is_some() {
        return None;
    }
    let shared = curvature.shared.get_or_init(|| Shared::new(loss, curvature, transform, data, model.mass));
    let shared = shared.as_ref()?;
    let block: Vec<&Measure> = searches.iter().map(|s| s.f).collect();
    let mut objective = Objective::new(loss, curvature, transform, Some(shared), &block);
    let stages = searches.iter().map(|s| Stage::start(transform.unconstrain(&s.start))).collect();
    Some(bfgs::minimise_block::<f64, LANES>(Level::current(), &mut objective, stages, &model.settings()))
}

impl Shared {
    fn new(
        loss: &Custom,
        curvature: &Curvature,
        transform: &Transform,
        data: &Dataset,
        mass: f64,
    ) -> Option<Shared> {
        let f = Measure::empirical(data);
        let objective = Objective::new(loss, curvature, transform, None, &[&f]);
        let p = transform.dim();
        let at = |u: &[f64]| {
            let (values, mut gradients) = objective.at(&[0], &[u.to_vec()]);
            (values[0], gradients.remove(0))
        };
        let whole = |u: &[f64]| {
            let mut h = objective.hessian_of_rows(0, u, false);
            objective.diagonal(u, |_, [_, bend]| bend).into_iter().for_each(|(k, bend)| h[[k, k]] += bend);
            h
        };
        let (u, _) = fit(p, mass, at, whole)?;
        let start = vec![0.0; p];
        let above = |h: &Array2<f64>, u: &[f64]| {
            let mut h = h.clone();
            objective.diagonal(u, majorant).into_iter().for_each(|(k, bend)| h[[k, k]] += bend);
            let largest = h.diag().iter().fold(0.0f64, |m, v| m.max(*v));
            h.diag_mut().mapv_inplace(|v| v + 1e-9 * largest);
            Cholesky::new(&h)
        };
        let first = objective.hessian_of_rows(0, &start, false);
        let mean = objective.mean_of_margins(0, &start);
        let far = above(&first, &start).filter(|_| curvature.second.has_margins() && mean > 0.0);
        let leverages = match &far {
            Some(factor) => objective.leverages(&start, factor),
            None => objective.leverages(&u, &above(&objective.hessian_of_rows(0, &u, false), &u)?),
        };
        let hard = (largest(&leverages) > LEVERAGE).then(|| Hard::new(&leverages, data));
        let alike = hard.is_none() && 2.0 * p as f64 <= ALIKE * data.mass();
        // All rows but the hard ones.
        let mut shared = Shared { far: None, fit: Vec::new(), alike, hard };
        let objective = Objective::new(loss, curvature, transform, Some(&shared), &[&f]);
        let easy = objective.own(0, &u, false);
        let easy_far = far.map(|_| (lower(objective.hessian_of_rows(0, &start, false).view()), mean));
        (shared.fit, shared.far) = (easy?, easy_far);
        Some(shared)
    }
}

impl Hard {
    fn new(leverages: &[f64], data: &Dataset) -> Hard {
        let mut rows: Vec<usize> = (0..leverages.len()).filter(|&i| leverages[i] > HARD).collect();
        rows.sort_by(|&i, &j| leverages[j].total_cmp(&leverages[i]));
        rows.truncate((leverages.len() / HARD_ONE_IN).max(1));
        let data = data.select(&rows);
        Hard { rows, data }
    }
}

/// The curvature of a parabola that touches a penalty at θ: where that is a concave function of θ², as most are, it lies above.
fn majorant(theta: f64, [slope, bend]: [f64; 2]) -> f64 {
    let chord = if theta == 0.0 { bend } else { slope / theta };
    chord.max(bend).max(0.0)
}

/// The hard rows of a block.
struct HardRows<'a> {
    rows: &'a [usize],
    first: Prepared<'a>,
    second: Prepared<'a>,
    /// Of every search.
    weights: Vec<Vec<Line>>,
}

/// The weighted losses of a block of draws.
struct Objective<'a> {
    loss: &'a Custom,
    of: &'a Curvature,
    transform: &'a Transform,
    shared: Option<&'a Shared>,
    on: OnMeasures<'a>,
    /// The rows of `on`, for second derivatives.
    second: Vec<OnceCell<Prepared<'a>>>,
    hard: Option<HardRows<'a>>,
    /// θ = u.
    real: bool,
    /// The coordinate that an entry of θ is, where it is real.
    places: Vec<Option<usize>>,
}

impl<'a> Objective<'a> {
    fn new(
        loss: &'a Custom,
        of: &'a Curvature,
        transform: &'a Transform,
        shared: Option<&'a Shared>,
        block: &[&'a Measure<'a>],
    ) -> Self {
        let on = OnMeasures::new(loss, block);
        let hard = shared.and_then(|shared| shared.hard.as_ref()).map(|hard| HardRows {
            rows: &hard.rows,
            first: prepare(&loss.program, &hard.data),
            second: prepare(of.second.program(), &hard.data),
            weights: block
                .iter()
                .map(|f| in_lines(&hard.rows.iter().map(|&i| f.weights().0[i]).collect::<Vec<_>>()))
                .collect(),
        });
        let mut places = vec![None; loss.names.len()];
        let mut next = 0;
        for block in &loss.blocks {
            if block.support == Support::Real {
                block.range.clone().enumerate().for_each(|(k, j)| places[j] = Some(next + k));
            }
            next += block.range.len() - usize::from(block.support == Support::Simplex);
        }
        let second = on.rows.iter().map(|_| OnceCell::new()).collect();
        let real = loss.blocks.iter().all(|b| b.support == Support::Real);
        Objective { loss, of, transform, shared, on, second, hard, real, places }
    }

    /// Values and gradients at the points of some searches.
    fn at(&self, searches: &[usize], u: &[Vec<f64>]) -> (Vec<f64>, Vec<Vec<f64>>) {
        let theta: Vec<Vec<f64>> = u.iter().map(|u| self.transform.constrain(u).0).collect();
        let mut by_theta: Vec<Vec<f64>> = theta.iter().map(|theta| vec![0.0; theta.len()]).collect();
        let values = self.on.add(searches, &theta, &mut by_theta);
        (values, u.iter().zip(&by_theta).map(|(u, by)| self.pulled_back(u, by)).collect())
    }

    /// From derivatives by θ, or by log θ where it is positive or on a simplex.
    fn pulled_back(&self, u: &[f64], by_theta: &[f64]) -> Vec<f64> {
        let mut by_u = vec![0.0; u.len()];
        self.transform.pull_back(u, by_theta, &mut by_u);
        by_u
    }

    /// The gradients of the hard rows alone.
    fn of_hard(&self, hard: &HardRows, searches: &[usize], u: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let theta: Vec<Vec<f64>> = u.iter().map(|u| self.transform.constrain(u).0).collect();
        let on = |s: usize| vec![Weighted { rows: &hard.first, weights: hard.weights[s].as_slice() }];
        let points: Vec<Point> =
            searches.iter().zip(&theta).map(|(&s, theta)| Point { theta, on: on(s) }).collect();
        self.by_u(&points, 0.0, u)
    }

    fn by_u(&self, points: &[Point], gamma: f64, u: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let mut by_theta: Vec<Vec<f64>> = points.iter().map(|point| vec![0.0; point.theta.len()]).collect();
        self.loss.program.add(points, gamma, &mut by_theta);
        for (by, point) in by_theta.iter_mut().zip(points) {
            self.loss.by_logarithms(point.theta, by);
        }
        u.iter().zip(&by_theta).map(|(u, by)| self.pulled_back(u, by)).collect()
    }

    /// γ times a function of every penalty of a single entry, by its coordinate: of the entry, and of its slope and bend.
    fn diagonal(&self, u: &[f64], of: impl Fn(f64, [f64; 2]) -> f64) -> Vec<(usize, f64)> {
        let theta = self.transform.constrain(u).0;
        let mut found = Vec::new();
        self.of.separate.slopes(&[&theta], |_, j, slopes| {
            let place = self.places[j].expect("penalties of single entries are of real ones");
            found.push((place, self.loss.gamma * of(theta[j], slopes)));
        });
        found
    }

    /// The weights of a search on rows of one origin; the hard ones have none.
    fn easy_weights(&self, search: usize, part: usize) -> Vec<Line> {
        let (place, weights) = &self.on.searches[search][part];
        let mut weights = weights.clone();
        let observed = std::ptr::eq(self.on.rows[*place].0, self.on.rows[0].0);
        for &i in self.hard.iter().filter(|_| observed && part == 0).flat_map(|hard| hard.rows) {
            weights[i / LANES][i % LANES] = 0.0;
        }
        weights
    }

    fn second_rows(&self, place: usize) -> &Prepared<'a> {
        self.second[place].get_or_init(|| prepare(self.of.second.program(), self.on.rows[place].0))
    }

    /// The Hessian of all rows but the hard ones, and of what is left of the penalty.
    fn hessian_of_rows(&self, search: usize, u: &[f64], far: bool) -> Array2<f64> {
        let theta = self.transform.constrain(u).0;
        let parts = &self.on.searches[search];
        let weights: Vec<Vec<Line>> = (0..parts.len()).map(|k| self.easy_weights(search, k)).collect();
        let on = |rows: fn(&Self, usize) -> &Prepared<'a>| -> Vec<Weighted> {
            let weighted = |(part, weights)| {
                let (place, _): &(usize, Vec<Line>) = part;
                Weighted { rows: rows(self, *place), weights }
            };
            parts.iter().zip(weights.iter().map(Vec::as_slice)).map(weighted).collect()
        };
        let mut h = self.of.second.hessian(self.place(&theta, far), &on(Self::second_rows), false);
        if !self.of.whole {
            h = h + self.rest_of_penalty(&theta);
        }
        let first = on(|objective, place| &objective.on.rows[place].1);
        self.in_coordinates(h, u, || Point { theta: &theta, on: first })
    }

    /// Where the bends of rows are taken: far from the minimum on the way from 0, if coordinates are those of rows.
    fn place<'t>(&self, theta: &'t [f64], far: bool) -> At<'t> {
        if far && self.real { At::FromZero(theta) } else { At::Here(theta) }
    }

    /// Differences of exact gradients, of parameters alone.
    fn rest_of_penalty(&self, theta: &[f64]) -> Array2<f64> {
        let p = theta.len();
        let moved = |k: usize| {
            let mut theta = theta.to_vec();
            theta[k / 2] += if k.is_multiple_of(2) { STEP } else { -STEP };
            theta
        };
        let points: Vec<Vec<f64>> = (0..2 * p).map(moved).collect();
        let at: Vec<Point> = points.iter().map(|theta| Point { theta, on: Vec::new() }).collect();
        let mut gradients = vec![vec![0.0; p]; 2 * p];
        self.loss.program.add(&at, self.loss.gamma, &mut gradients);
        let all: Vec<&[f64]> = points.iter().map(Vec::as_slice).collect();
        self.of.separate.slopes(&all, |s, j, [slope, _]| gradients[s][j] -= self.loss.gamma * slope);
        let slope = |i: usize, j: usize| (gradients[2 * i][j] - gradients[2 * i + 1][j]) / (2.0 * STEP);
        Array2::from_shape_fn((p, p), |(i, j)| 0.5 * (slope(i, j) + slope(j, i)))
    }

    /// From θ to u: Jᵀ H J, and what the bend of the transform makes of the gradient at a point.
    fn in_coordinates<'p>(
        &self,
        h: Array2<f64>,
        u: &[f64],
        point: impl FnOnce() -> Point<'p>,
    ) -> Array2<f64> {
        if self.real {
            return h;
        }
        let point = point();
        let (p, theta) = (u.len(), point.theta);
        let j = self.jacobian(u, theta);
        let mut by_theta = [vec![0.0; theta.len()]];
        let gamma = if self.of.whole { 0.0 } else { self.loss.gamma };
        self.loss.program.add(&[Point { theta, on: point.on }], gamma, &mut by_theta);
        let [by_theta] = by_theta;
        let pulled = |k: usize, by: f64| {
            let mut moved = u.to_vec();
            moved[k] += by;
            let mut scaled = by_theta.clone();
            self.loss.by_logarithms(&self.transform.constrain(&moved).0, &mut scaled);
            self.pulled_back(&moved, &scaled)
        };
        let bends: Vec<(Vec<f64>, Vec<f64>)> = (0..p).map(|k| (pulled(k, STEP), pulled(k, -STEP))).collect();
        let bend = |i: usize, k: usize| (bends[i].0[k] - bends[i].1[k]) / (2.0 * STEP);
        j.t().dot(&h).dot(&j) + Array2::from_shape_fn((p, p), |(i, k)| 0.5 * (bend(i, k) + bend(k, i)))
    }

    /// ∂θ/∂u, a row for every entry of θ.
    fn jacobian(&self, u: &[f64], theta: &[f64]) -> Array2<f64> {
        let mut jacobian = Array2::zeros((theta.len(), u.len()));
        for (i, mut row) in jacobian.outer_iter_mut().enumerate() {
            let mut unit = vec![0.0; theta.len()];
            unit[i] = 1.0;
            self.loss.by_logarithms(theta, &mut unit);
            row.iter_mut().zip(self.pulled_back(u, &unit)).for_each(|(to, from)| *to = from);
        }
        jacobian
    }

    /// The mean curvature of the margins of the first rows.
    fn mean_of_margins(&self, search: usize, u: &[f64]) -> f64 {
        let (Some((place, weights)), theta) =
            (self.on.searches[search].first(), self.transform.constrain(u).0)
        else {
            return 0.0;
        };
        let on = Weighted { rows: self.second_rows(*place), weights };
        let mass: f64 = weights.iter().take(SAMPLE).flat_map(|line| line.0).sum();
        self.of.second.of_margins(&theta, &on, SAMPLE) / mass
    }

    /// tr(H⁻¹ Hᵢ) of every observed row of the only search, with Hᵢ its share of the Hessian.
    fn leverages(&self, u: &[f64], h: &Cholesky) -> Vec<f64> {
        let second = &self.of.second;
        let theta = self.transform.constrain(u).0;
        let jacobian = (!self.real).then(|| self.jacobian(u, &theta));
        let half = |by_theta: &[f64]| match &jacobian {
            None => h.half(by_theta),
            Some(j) => h.half(&j.t().dot(&ndarray::ArrayView1::from(by_theta)).to_vec()),
        };
        let (data, (place, weights)) = (self.on.rows[0].0, &self.on.searches[0][0]);
        let mut direction = vec![0.0; theta.len()];
        let mut halves: Vec<Vec<f64>> = second
            .inputs
            .iter()
            .map(|input| {
                second.direction(*input, |_| 0.0, &mut direction);
                half(&direction)
            })
            .collect();
        let mut leverages = vec![0.0; data.n()];
        second.each_row(&theta, self.second_rows(*place), |i, v| {
            for (input, half_of) in second.inputs.iter().zip(&mut halves) {
                if let Input::Margin(_) = input {
                    second.direction(*input, |column| data.x[[i, column]], &mut direction);
                    *half_of = half(&direction);
                }
            }
            let term = |(&(a, b), v): (&(usize, usize), &f64)| {
                let twice = if a == b { 1.0 } else { 2.0 };
                twice * v * dot(&halves[a], &halves[b])
            };
            let sum: f64 = second.pairs.iter().zip(v).map(term).sum();
            leverages[i] = weights[i / LANES][i % LANES] * sum.abs();
        });
        leverages
    }

    /// A of a search at a point, raised until it is positive definite with the penalty; `None` if it is not finite.
    fn own(&self, search: usize, u: &[f64], far: bool) -> Option<Vec<f64>> {
        let h = self.hessian_of_rows(search, u, far);
        if h.iter().any(|h| !h.is_finite()) {
            return None;
        }
        let largest = h.diag().iter().fold(f64::MIN_POSITIVE, |most, v| most.max(v.abs()));
        let d = self.diagonal(u, majorant);
        let raised = |shift: &f64| {
            let mut a = h.clone();
            a.diag_mut().mapv_inplace(|v| v + shift * v.abs().max(1e-3 * largest));
            let mut whole = a.clone();
            d.iter().for_each(|(k, bend)| whole[[*k, *k]] += bend);
            whole.diag_mut().mapv_inplace(|v| v + 1e-9 * largest);
            Cholesky::new(&whole).map(|_| lower(a.view()))
        };
        SHIFTS.iter().find_map(raised)
    }
}

/// The lower triangle, row after row.
fn lower(h: ArrayView2<f64>) -> Vec<f64> {
    (0..h.nrows()).flat_map(|i| (0..=i).map(move |j| (i, j))).map(|at| h[at]).collect()
}

impl BatchObjective for Objective<'_> {
    fn p(&self) -> usize {
        self.transform.dim()
    }

    fn evaluate(&mut self, trials: &mut [Trial]) {
        let p = self.p();
        let lanes = |(t, trial): (usize, &Trial)| -> Vec<(usize, usize, usize)> {
            trial.seats.iter().enumerate().filter_map(|(l, s)| Some((t, l, (*s)?))).collect()
        };
        let seated: Vec<(usize, usize, usize)> = trials.iter().enumerate().flat_map(lanes).collect();
        let searches: Vec<usize> = seated.iter().map(|&(_, _, search)| search).collect();
        let u: Vec<Vec<f64>> = seated.iter().map(|&(t, lane, _)| trials[t].at.theta(lane, p)).collect();
        let (values, gradients) = self.at(&searches, &u);
        let mut smooth = gradients.clone();
        if let Some(hard) = &self.hard {
            for (smooth, hard) in smooth.iter_mut().zip(self.of_hard(hard, &searches, &u)) {
                smooth.iter_mut().zip(hard).for_each(|(s, h)| *s -= h);
            }
        }
        let theta: Vec<Vec<f64>> = u.iter().map(|u| self.transform.constrain(u).0).collect();
        let theta: Vec<&[f64]> = theta.iter().map(Vec::as_slice).collect();
        self.of.separate.slopes(&theta, |s, j, [slope, _]| {
            smooth[s][self.places[j].expect("real")] -= self.loss.gamma * slope;
        });
        for (i, (t, lane, _)) in seated.into_iter().enumerate() {
            let at = &mut trials[t].at;
            at.values[lane] = values[i];
            at.gradient.iter_mut().zip(&gradients[i]).for_each(|(line, g)| line[lane] = *g);
            at.smooth.iter_mut().zip(&smooth[i]).for_each(|(line, g)| line[lane] = *g);
        }
    }

    fn seats(&self) -> usize {
        4 * LANES
    }

    /// As many products as half a matrix has columns, and the expressions of all pairs of inputs.
    fn renewal_cost(&self) -> f64 {
        0.2 * self.p() as f64 + self.of.second.pairs.len() as f64
    }
}

impl Curved for Objective<'_> {
    fn curvatures(&self, theta: &[Line], exact: [bool; LANES], out: &mut [Line]) {
        out.fill(Line::default());
        let at = |lane: usize| -> Vec<f64> {
            self.places.iter().map(|place| place.map_or(0.0, |k| theta[k][lane])).collect()
        };
        let points: Vec<Vec<f64>> = (0..LANES).map(at).collect();
        let all: Vec<&[f64]> = points.iter().map(Vec::as_slice).collect();
        self.of.separate.slopes(&all, |lane, j, slopes| {
            let bend = if exact[lane] { slopes[1] } else { majorant(points[lane][j], slopes) };
            out[self.places[j].expect("real")][lane] = self.loss.gamma * bend;
        });
    }

    fn hessian(&mut self, search: usize, u: &[f64], need: Need) -> Vec<f64> {
        let shared = self.shared.expect("searches have what they share");
        match (need, &shared.far) {
            (Need::Start, Some((far, mean))) => {
                let scale = (self.mean_of_margins(search, u) / mean).max(LEAST);
                let scale = if scale.is_finite() { scale } else { 1.0 };
                far.iter().map(|h| scale * h).collect()
            }
            (Need::Start, None) => shared.fit.clone(),
            (Need::Near, _) if shared.alike => shared.fit.clone(),
            _ => {
                let far = matches!(need, Need::Anew { far: true });
                self.own(search, u, far).unwrap_or_else(|| shared.fit.clone())
            }
        }
    }

    fn known_hessian(&self, search: usize, u: &[f64], far: bool) -> Option<Vec<f64>> {
        let hard = self.hard.as_ref()?;
        let theta = self.transform.constrain(u).0;
        let weights = &hard.weights[search];
        let h = self.of.second.hessian(
            self.place(&theta, far),
            &[Weighted { rows: &hard.second, weights }],
            true,
        );
        let on = vec![Weighted { rows: &hard.first, weights }];
        Some(lower(self.in_coordinates(h, u, || Point { theta: &theta, on }).view()))
    }
}

//! The end of a search on a loss that bends. L-BFGS comes near a kink and no further; from there on the search goes along lines, on
//! which the loss is a function of one number whose derivative changes its sign: at a kink, which is found exactly, or between two.
//! With one parameter that is all. With more, a vertex of the kinks is made of the nearest, and left along an edge as long as one
//! goes down, as the simplex method does; at its end no edge does, which for a convex loss with straight pieces is the minimum.

use ndarray::Array2;

use super::{Custom, prepare};
use crate::data::Dataset;
use crate::expression::{Point, Prepared, Weighted, in_lines};
use crate::math::{dot, largest};
use crate::model::Transform;
use crate::model::row_loss::OnBlock;
use crate::optim::{Minimum, Status};

/// The first reach of a line to either side, relative, and how often it is made eight times as long.
const REACH: f64 = 1e-9;
const REACHES: usize = 14;
/// Kinks on a line that are told apart by the derivatives between them; more are halved first.
const FEW: usize = 64;
/// Edges that are followed, for each parameter.
const EDGES: usize = 40;
/// A derivative along an edge that is not below 0, relative to the gradient.
const LEVEL: f64 = 1e-11;

/// One search near its end.
struct Ending<'a> {
    loss: &'a Custom,
    on: &'a dyn OnBlock,
    search: usize,
    transform: &'a Transform,
    /// Rows of each origin, and each kink made ready for them.
    rows: Vec<&'a Dataset>,
    kinks: Vec<Vec<Prepared<'a>>>,
}

/// A kink of one row: which kink, rows of which origin, and the row.
type Bend = (usize, usize, usize);

/// A stretch of a line, from −∂ to +∂, with the numbers of all kinks at its ends.
struct Stretch {
    ends: [f64; 2],
    numbers: [Vec<(Bend, f64)>; 2],
}

pub fn finish(
    loss: &Custom,
    on: &dyn OnBlock,
    search: usize,
    transform: &Transform,
    minimum: Minimum,
) -> Minimum {
    if !minimum.status.is_on_its_way() {
        return minimum;
    }
    let rows = on.rows(search);
    let kinks = loss.kinks.iter().map(|kink| rows.iter().map(|data| prepare(kink, data)).collect()).collect();
    let ending = Ending { loss, on, search, transform, rows, kinks };
    let end = match minimum.theta.len() {
        1 => ending.line(&minimum.theta, &[1.0], None).map(|(theta, _)| theta),
        _ => ending.vertex(&minimum.theta),
    };
    let Some(theta) = end else { return minimum };
    let value = ending.at(std::slice::from_ref(&theta)).0[0];
    if value <= minimum.value + 1e-12 * minimum.value.abs() {
        Minimum { theta, value, gradient: 0.0, status: Status::Ok, ..minimum }
    } else {
        minimum
    }
}

fn along(u: &[f64], t: f64, d: &[f64]) -> Vec<f64> {
    u.iter().zip(d).map(|(u, d)| u + t * d).collect()
}

impl Ending<'_> {
    /// Values and gradients at some points.
    fn at(&self, u: &[Vec<f64>]) -> (Vec<f64>, Vec<Vec<f64>>) {
        let theta: Vec<Vec<f64>> = u.iter().map(|u| self.transform.constrain(u).0).collect();
        let mut by_theta: Vec<Vec<f64>> = theta.iter().map(|theta| vec![0.0; theta.len()]).collect();
        let values = self.on.add(&vec![self.search; u.len()], &theta, &mut by_theta);
        (values, u.iter().zip(&by_theta).map(|(u, by)| self.pulled_back(u, by)).collect())
    }

    fn pulled_back(&self, u: &[f64], by_theta: &[f64]) -> Vec<f64> {
        let mut by_u = vec![0.0; u.len()];
        self.transform.pull_back(u, by_theta, &mut by_u);
        by_u
    }

    /// Derivatives along a line at some of its points.
    fn slopes(&self, u: &[f64], d: &[f64], t: &[f64]) -> Vec<f64> {
        let points: Vec<Vec<f64>> = t.iter().map(|t| along(u, *t, d)).collect();
        self.at(&points).1.iter().map(|gradient| dot(gradient, d)).collect()
    }

    /// The numbers of all kinks at a point; one of θ alone counts once.
    fn numbers(&self, u: &[f64]) -> Vec<(Bend, f64)> {
        let theta = self.transform.constrain(u).0;
        let mut found = Vec::new();
        for (k, (kink, origins)) in self.loss.kinks.iter().zip(&self.kinks).enumerate() {
            let of_rows = kink.depends(0).0;
            for (o, rows) in origins.iter().enumerate().take(if of_rows { usize::MAX } else { 1 }) {
                let mut out = vec![0.0; rows.n()];
                kink.each_row(0, &theta, rows, &mut out);
                let count = if of_rows { out.len() } else { 1 };
                found.extend(out.into_iter().take(count).enumerate().map(|(i, value)| ((k, o, i), value)));
            }
        }
        found
    }

    /// The number of one kink at a point, and its gradient.
    fn bend(&self, bend: Bend, u: &[f64]) -> (f64, Vec<f64>) {
        let (k, o, i) = bend;
        let (kink, row) = (&self.loss.kinks[k], self.rows[o].select(&[i]));
        let theta = self.transform.constrain(u).0;
        let prepared = prepare(kink, &row);
        let weights = in_lines(&[1.0]);
        let mut by_theta = [vec![0.0; theta.len()]];
        let on = vec![Weighted { rows: &prepared, weights: &weights }];
        let value = kink.add(&[Point { theta: &theta, on }], 0.0, &mut by_theta)[0];
        self.loss.by_logarithms(&theta, &mut by_theta[0]);
        (value, self.pulled_back(u, &by_theta[0]))
    }

    /// The minimum on a line through `u`, or from `u` on if its derivative is known to be negative there, and the kink that it is
    /// at; `None` if it is not near.
    fn line(&self, u: &[f64], d: &[f64], from: Option<f64>) -> Option<(Vec<f64>, Option<Bend>)> {
        let mut stretch = self.stretch(u, d, from)?;
        let mut bends = stretch.bends();
        for _ in 0..60 {
            if bends.len() <= FEW {
                break;
            }
            let [low, high] = stretch.ends;
            let middle = 0.5 * (low + high);
            let side = usize::from(self.slopes(u, d, &[middle])[0] >= 0.0);
            stretch.ends[side] = middle;
            stretch.numbers[side] = self.numbers(&along(u, middle, d));
            bends = stretch.bends();
        }
        let [low, high] = stretch.ends;
        if bends.is_empty() {
            return Some((along(u, self.between(u, d, low, high), d), None));
        }
        // Derivatives between neighbours: the sign changes at a kink, or beside it.
        let mut stops = vec![low];
        stops.extend(bends.windows(2).map(|pair| 0.5 * (pair[0].0 + pair[1].0)));
        stops.push(high);
        let slopes = self.slopes(u, d, &stops);
        let after = (1..stops.len()).find(|&k| slopes[k] >= 0.0)?;
        let (t, bend, slope) = bends[after - 1];
        let (left, right) = (stops[after - 1], stops[after]);
        let near = 0.25 * (t - left).min(right - t).min(1e-6 * (right - left).max(1e-12));
        let sides = self.slopes(u, d, &[t - near, t + near]);
        if sides[0] > 0.0 {
            return Some((along(u, self.between(u, d, left, t - near), d), None));
        }
        if sides[1] < 0.0 {
            return Some((along(u, self.between(u, d, t + near, right), d), None));
        }
        let mut theta = along(u, t, d);
        for _ in 0..2 {
            let (number, _) = self.bend(bend, &theta);
            theta = along(&theta, -number / slope, d);
        }
        Some((theta, Some(bend)))
    }

    /// Ends between which the derivative changes from below 0 to above.
    fn stretch(&self, u: &[f64], d: &[f64], from: Option<f64>) -> Option<Stretch> {
        let mut reach = REACH * largest(u).max(1.0) / largest(d);
        for _ in 0..REACHES {
            let ends = [from.unwrap_or(-reach), reach];
            let slopes = self.slopes(u, d, &ends);
            if (slopes[0] < 0.0 || from.is_some()) && slopes[1] > 0.0 && ends[0] < ends[1] {
                return Some(Stretch { ends, numbers: ends.map(|t| self.numbers(&along(u, t, d))) });
            }
            reach *= 8.0;
        }
        None
    }

    /// Where the derivative vanishes on a stretch without a kink.
    fn between(&self, u: &[f64], d: &[f64], mut low: f64, mut high: f64) -> f64 {
        for _ in 0..100 {
            let middle = 0.5 * (low + high);
            if middle <= low || middle >= high {
                break;
            }
            *(if self.slopes(u, d, &[middle])[0] >= 0.0 { &mut high } else { &mut low }) = middle;
        }
        0.5 * (low + high)
    }
}

impl Stretch {
    /// Kinks between the ends, in order: where each lies on the line, and the slope of its number.
    fn bends(&self) -> Vec<(f64, Bend, f64)> {
        let [low, high] = self.ends;
        let pairs = self.numbers[0].iter().zip(&self.numbers[1]);
        let crossing = pairs.filter(|((_, a), (_, b))| a.signum() != b.signum() && *a != 0.0 && a != b);
        let bend = |((bend, a), (_, b)): (&(Bend, f64), &(Bend, f64))| {
            let slope = (b - a) / (high - low);
            (low - a / slope, *bend, slope)
        };
        let mut bends: Vec<(f64, Bend, f64)> =
            crossing.map(bend).filter(|(t, ..)| *t > low && *t < high).collect();
        bends.sort_by(|a, b| a.0.total_cmp(&b.0));
        // Rows that bend at the same place count as one.
        bends.dedup_by(|b, a| b.0 - a.0 <= 1e-13 * a.0.abs().max(high - low));
        bends
    }
}

/// As many kinks as parameters, all of them at 0 in one point.
struct Vertex {
    u: Vec<f64>,
    bends: Vec<Bend>,
    /// J⁻¹, with J the gradients of the kinks: column e leaves kink e and keeps the others.
    edges: Array2<f64>,
}

impl Ending<'_> {
    /// The vertex that no edge leads down from.
    fn vertex(&self, start: &[f64]) -> Option<Vec<f64>> {
        let p = start.len();
        let mut vertex = self.settle(start, self.nearest(start)?)?;
        for _ in 0..EDGES * p {
            let edges = |e: usize| vertex.edges.column(e).to_vec();
            let directions: Vec<Vec<f64>> = (0..p)
                .flat_map(|e| [1.0, -1.0].map(|side| edges(e).iter().map(|d| side * d).collect()))
                .collect();
            let near = |d: &[f64]| 1e-3 * REACH * largest(&vertex.u).max(1.0) / largest(d);
            let points: Vec<Vec<f64>> = directions.iter().map(|d| along(&vertex.u, near(d), d)).collect();
            let (_, gradients) = self.at(&points);
            let size = gradients.iter().map(largest).fold(0.0, f64::max);
            let rate = |k: &usize| dot(&gradients[*k], &directions[*k]) / largest(&directions[*k]);
            let steepest = (0..2 * p).min_by(|a, b| rate(a).total_cmp(&rate(b)))?;
            if rate(&steepest) >= -LEVEL * size {
                return Some(vertex.u);
            }
            let d = &directions[steepest];
            let (u, bend) = self.line(&vertex.u, d, Some(near(d)))?;
            let mut bends = vertex.bends.clone();
            bends[steepest / 2] = bend?;
            vertex = self.settle(&u, bends)?;
        }
        None
    }

    /// The kinks nearest to 0 whose gradients are independent, one for each parameter.
    fn nearest(&self, u: &[f64]) -> Option<Vec<Bend>> {
        let mut numbers = self.numbers(u);
        numbers.sort_by(|a, b| a.1.abs().total_cmp(&b.1.abs()));
        let (mut bends, mut basis): (Vec<Bend>, Vec<Vec<f64>>) = (Vec::new(), Vec::new());
        for (bend, _) in numbers.into_iter().take(20 * u.len() + 100) {
            let (_, mut rest) = self.bend(bend, u);
            let size = dot(&rest, &rest).sqrt();
            for unit in &basis {
                let share = dot(unit, &rest);
                rest.iter_mut().zip(unit).for_each(|(r, u)| *r -= share * u);
            }
            let left = dot(&rest, &rest).sqrt();
            if left > 1e-6 * size && left.is_finite() {
                rest.iter_mut().for_each(|r| *r /= left);
                basis.push(rest);
                bends.push(bend);
            }
            if bends.len() == u.len() {
                return Some(bends);
            }
        }
        None
    }

    /// The point where these kinks are all at 0, by Newton's method from `u`.
    fn settle(&self, u: &[f64], bends: Vec<Bend>) -> Option<Vertex> {
        let (p, mut u) = (u.len(), u.to_vec());
        let mut edges = Array2::zeros((p, p));
        for _ in 0..3 {
            let found: Vec<(f64, Vec<f64>)> = bends.iter().map(|bend| self.bend(*bend, &u)).collect();
            edges = inverse(&Array2::from_shape_fn((p, p), |(i, j)| found[i].1[j]))?;
            for i in 0..p {
                u[i] -= (0..p).map(|e| edges[[i, e]] * found[e].0).sum::<f64>();
            }
        }
        u.iter().all(|u| u.is_finite()).then_some(Vertex { u, bends, edges })
    }
}

/// By elimination with row pivots; `None` if there is none.
fn inverse(a: &Array2<f64>) -> Option<Array2<f64>> {
    let p = a.nrows();
    let (mut a, mut out) = (a.clone(), Array2::<f64>::eye(p));
    for c in 0..p {
        let pivot = (c..p).max_by(|i, j| a[[*i, c]].abs().total_cmp(&a[[*j, c]].abs()))?;
        if a[[pivot, c]] == 0.0 || !a[[pivot, c]].is_finite() {
            return None;
        }
        for j in 0..p {
            a.swap([c, j], [pivot, j]);
            out.swap([c, j], [pivot, j]);
        }
        let scale = 1.0 / a[[c, c]];
        a.row_mut(c).mapv_inplace(|v| v * scale);
        out.row_mut(c).mapv_inplace(|v| v * scale);
        for i in (0..p).filter(|i| *i != c) {
            let by = a[[i, c]];
            for j in 0..p {
                a[[i, j]] -= by * a[[c, j]];
                out[[i, j]] -= by * out[[c, j]];
            }
        }
    }
    Some(out)
}

//! min Σ wᵢ ρ_q(yᵢ − xᵢᵀθ) from vertex to vertex: leave one of the rows that are met, go along the edge to where the loss rises again,
//! past as many rows as that takes (Barrodale and Roberts 1973), meet the row there.
//!
//! At a vertex with rows B the loss is least if u = −B⁻ᵀ Σ sᵢxᵢ, the sum over the other rows with slopes sᵢ, lies between the slopes of both
//! sides of every row of B. Rows that are met by accident are told apart by responses that are moved by less than anybody measures; the
//! conditions at the end hold for the responses as they are, where such a row may have any slope between its two.

use ndarray::{Array2, ArrayView1, ArrayView2};

use crate::process::Measure;

/// What responses are moved by, relative to their size: above rounding, below what data mean.
const NUDGE: f64 = 1e-10;
/// Relative excess of u over a slope that is rounding.
const SLACK: f64 = 1e-9;
/// What is left of a row beside those before it, as a share of it, below which it is a combination of them.
const DEPENDENT: f64 = 1e-7;
/// Pivots between two factorisations of B.
const FRESH: usize = 50;

/// The rows of a draw: the observed ones, one for every column with a penalty, pseudo-samples.
pub struct Lines<'a> {
    observed: ArrayView2<'a, f64>,
    /// Penalties, then pseudo-samples, with the intercept.
    others: Array2<f64>,
    intercept: bool,
    d: usize,
    y: Vec<f64>,
    nudged: Vec<f64>,
    weights: Vec<f64>,
    /// Rows of a penalty: both sides have the whole weight as slope.
    penalties: std::ops::Range<usize>,
    /// The columns that these are on.
    penalised: Vec<usize>,
}

pub struct Vertex {
    pub theta: Vec<f64>,
    pub basis: Vec<usize>,
    pub pivots: usize,
    pub optimal: bool,
}

/// A number between ½ and 3/2 that belongs to row i.
fn nudge(i: usize) -> f64 {
    let mixed = (i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    0.5 + (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) as f64 / u64::MAX as f64
}

impl<'a> Lines<'a> {
    pub fn new(f: &'a Measure<'a>, intercept: bool, penalties: Vec<f64>) -> Self {
        let d = penalties.len();
        let p = d + usize::from(intercept);
        let observed = f.observed();
        let n = observed.n();
        let (mut cells, mut y, mut weights) = (Vec::new(), Vec::with_capacity(n), Vec::with_capacity(n));
        if n > 0 {
            let responses = observed.y.as_ref().expect("regression data have responses");
            y.extend(responses.iter().enumerate().map(|(i, y)| y - observed.offset(i)));
            weights.extend_from_slice(f.weights().0);
        }
        let penalised: Vec<usize> = (0..d).filter(|&j| penalties[j] > 0.0).collect();
        for &j in &penalised {
            cells.extend((0..p).map(|k| f64::from(j == k)));
            y.push(0.0);
            weights.push(penalties[j]);
        }
        for part in f.parts().skip(usize::from(n > 0)) {
            for (k, w) in part.w.iter().enumerate() {
                cells.extend(part.row(k).iter().copied().chain(intercept.then_some(1.0)));
                y.push(
                    part.response(k).expect("base measures of a regression have responses") - part.offset(k),
                );
                weights.push(*w);
            }
        }
        let size = y.iter().fold(0.0f64, |most, y| most.max(y.abs())).max(f64::MIN_POSITIVE);
        let nudged = y.iter().enumerate().map(|(i, y)| y + NUDGE * size * nudge(i)).collect();
        let others = Array2::from_shape_vec((y.len() - n, p), cells).expect("every row has every cell");
        let penalties = n..n + penalised.len();
        Lines { observed: observed.x.whole(), others, intercept, d, y, nudged, weights, penalties, penalised }
    }

    fn p(&self) -> usize {
        self.d + usize::from(self.intercept)
    }

    fn row(&self, i: usize) -> Vec<f64> {
        match i.checked_sub(self.observed.nrows()) {
            None => self.observed.row(i).iter().copied().chain(self.intercept.then_some(1.0)).collect(),
            Some(other) => self.others.row(other).to_vec(),
        }
    }

    /// xᵢᵀv of every row.
    fn along(&self, v: &[f64], out: &mut Vec<f64>) {
        let (head, whole) = (ArrayView1::from(&v[..self.d]), ArrayView1::from(v));
        let last = if self.intercept { v[self.d] } else { 0.0 };
        out.clear();
        out.extend(self.observed.outer_iter().map(|x| x.dot(&head) + last));
        out.extend(self.others.outer_iter().map(|x| x.dot(&whole)));
    }

    /// Slopes of row i where its residual is above 0, and, as a positive number, below.
    fn sides(&self, q: f64, i: usize) -> (f64, f64) {
        let w = self.weights[i];
        if self.penalties.contains(&i) { (w, w) } else { (q * w, (1.0 - q) * w) }
    }

    /// Rows that span ℝᵖ, in a fixed order that mixes them.
    fn span(&self) -> Option<Vec<usize>> {
        let (n, p) = (self.y.len(), self.p());
        let mut sizes = vec![0.0f64; p];
        (0..n)
            .for_each(|i| self.row(i).iter().zip(&mut sizes).for_each(|(x, size)| *size = size.max(x.abs())));
        let (mut basis, mut q): (Vec<usize>, Vec<Vec<f64>>) = (Vec::new(), Vec::new());
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|&a, &b| nudge(a).total_cmp(&nudge(b)));
        for i in order {
            let mut row: Vec<f64> =
                self.row(i).iter().zip(&sizes).map(|(x, s)| if *s > 0.0 { x / s } else { 0.0 }).collect();
            let length = norm(&row);
            for _ in 0..2 {
                for q in &q {
                    let along = crate::math::dot(q, &row);
                    row.iter_mut().zip(q).for_each(|(r, q)| *r -= along * q);
                }
            }
            let left = norm(&row);
            if self.weights[i] > 0.0 && left > DEPENDENT * length {
                row.iter_mut().for_each(|r| *r /= left);
                basis.push(i);
                q.push(row);
            }
            if basis.len() == p {
                return Some(basis);
            }
        }
        None
    }

    /// The vertex of least loss, from that of some rows; `None` if the rows do not span ℝᵖ.
    pub fn minimise(&self, q: f64, warm: Option<&[usize]>) -> Option<Vertex> {
        let mut at = match warm.and_then(|basis| Edge::new(self, basis.to_vec())) {
            Some(at) => at,
            None => Edge::new(self, self.span()?)?,
        };
        let most = 100 * (self.p() + 1) + self.y.len();
        let mut pivots = 0;
        let mut optimal = false;
        at.refresh(q)?;
        while pivots < most {
            if !at.pivot(q) {
                // With numbers that are fresh it may look otherwise.
                if pivots % FRESH == 0 || at.refresh(q).is_some() && !at.pivot(q) {
                    optimal = true;
                    break;
                }
            }
            pivots += 1;
            if pivots % FRESH == 0 {
                at.refresh(q)?;
            }
        }
        let mut basis = at.basis;
        basis.sort_unstable();
        let theta = self.solve(&basis)?;
        Some(Vertex { theta, basis, pivots, optimal })
    }

    /// θ that meets the rows of a basis, as they are.
    fn solve(&self, basis: &[usize]) -> Option<Vec<f64>> {
        let inverse = inverse(&self.matrix(basis))?;
        let y: Vec<f64> = basis.iter().map(|&i| self.y[i]).collect();
        let solve = |right: &[f64]| inverse.dot(&ArrayView1::from(right)).to_vec();
        let mut theta = solve(&y);
        // One step of refinement takes back what the inverse lost.
        let residual: Vec<f64> =
            basis.iter().zip(&y).map(|(&i, y)| y - crate::math::dot(&self.row(i), &theta)).collect();
        theta.iter_mut().zip(solve(&residual)).for_each(|(t, step)| *t += step);
        for &i in basis.iter().filter(|i| self.penalties.contains(i)) {
            theta[self.penalised[i - self.penalties.start]] = 0.0;
        }
        Some(theta)
    }

    fn matrix(&self, basis: &[usize]) -> Array2<f64> {
        let cells = basis.iter().flat_map(|&i| self.row(i)).collect();
        Array2::from_shape_vec((basis.len(), self.p()), cells).expect("every row has every cell")
    }
}

fn norm(v: &[f64]) -> f64 {
    crate::math::dot(v, v).sqrt()
}

/// Gauss and Jordan, rows of the largest pivots first; `None` if there is none.
fn inverse(a: &Array2<f64>) -> Option<Array2<f64>> {
    let p = a.nrows();
    let (mut a, mut out) = (a.clone(), Array2::<f64>::eye(p));
    for c in 0..p {
        let pivot = (c..p).max_by(|&i, &j| a[[i, c]].abs().total_cmp(&a[[j, c]].abs()))?;
        let value = a[[pivot, c]];
        if value.abs() < f64::MIN_POSITIVE || !value.is_finite() {
            return None;
        }
        for k in 0..p {
            a.swap([c, k], [pivot, k]);
            out.swap([c, k], [pivot, k]);
        }
        for k in 0..p {
            a[[c, k]] /= value;
            out[[c, k]] /= value;
        }
        for i in (0..p).filter(|&i| i != c) {
            let by = a[[i, c]];
            for k in 0..p {
                let (of_a, of_out) = (by * a[[c, k]], by * out[[c, k]]);
                a[[i, k]] -= of_a;
                out[[i, k]] -= of_out;
            }
        }
    }
    Some(out)
}

/// A vertex on the way.
struct Edge<'l, 'a> {
    lines: &'l Lines<'a>,
    basis: Vec<usize>,
    /// Which rows are met.
    met: Vec<bool>,
    inverse: Array2<f64>,
    residuals: Vec<f64>,
    /// Σ sᵢxᵢ over the rows that are not met.
    pull: Vec<f64>,
    steps: Vec<f64>,
}

impl<'l, 'a> Edge<'l, 'a> {
    fn new(lines: &'l Lines<'a>, basis: Vec<usize>) -> Option<Self> {
        let inverse = inverse(&lines.matrix(&basis))?;
        let mut met = vec![false; lines.y.len()];
        basis.iter().for_each(|&i| met[i] = true);
        let (residuals, pull) = (Vec::new(), vec![0.0; lines.p()]);
        Some(Edge { lines, basis, met, inverse, residuals, pull, steps: Vec::new() })
    }

    fn slope(&self, q: f64, i: usize) -> f64 {
        let (above, below) = self.lines.sides(q, i);
        if self.residuals[i] > 0.0 { above } else { -below }
    }

    /// All numbers anew from the rows that are met.
    fn refresh(&mut self, q: f64) -> Option<()> {
        self.inverse = inverse(&self.lines.matrix(&self.basis))?;
        let y: Vec<f64> = self.basis.iter().map(|&i| self.lines.nudged[i]).collect();
        let theta = self.inverse.dot(&ArrayView1::from(&y)).to_vec();
        let mut fitted = Vec::new();
        self.lines.along(&theta, &mut fitted);
        self.residuals = self.lines.nudged.iter().zip(fitted).map(|(y, fit)| y - fit).collect();
        self.basis.iter().for_each(|&i| self.residuals[i] = 0.0);
        self.pull.fill(0.0);
        for i in 0..self.residuals.len() {
            if !self.met[i] {
                self.add(i, self.slope(q, i));
            }
        }
        Some(())
    }

    /// Adds a slope of row i to the pull.
    fn add(&mut self, i: usize, slope: f64) {
        let n = self.lines.observed.nrows();
        if i < n {
            let x = self.lines.observed.row(i);
            self.pull.iter_mut().zip(x).for_each(|(pull, x)| *pull += slope * x);
            if self.lines.intercept {
                self.pull[self.lines.d] += slope;
            }
        } else {
            let x = self.lines.others.row(i - n);
            self.pull.iter_mut().zip(x).for_each(|(pull, x)| *pull += slope * x);
        }
    }

    /// The row to leave, the sign that its residual takes, and how fast the loss falls along that edge.
    fn leaving(&self, q: f64) -> Option<(usize, f64, f64)> {
        let u = -self.inverse.t().dot(&ArrayView1::from(&self.pull));
        let of_row = |(k, u): (usize, &f64)| {
            let (above, below) = self.lines.sides(q, self.basis[k]);
            let (excess, side) = if *u > above { (u - above, 1.0) } else { (-u - below, -1.0) };
            (excess > SLACK * (above + below)).then_some((k, side, excess))
        };
        u.iter().enumerate().filter_map(of_row).max_by(|a, b| a.2.total_cmp(&b.2))
    }

    /// One step to a better vertex; false if there is none.
    fn pivot(&mut self, q: f64) -> bool {
        let Some((k, side, fall)) = self.leaving(q) else { return false };
        let direction: Vec<f64> = self.inverse.column(k).iter().map(|v| side * v).collect();
        let mut steps = std::mem::take(&mut self.steps);
        self.lines.along(&direction, &mut steps);
        let crosses = |i: usize| !self.met[i] && self.residuals[i] * steps[i] < 0.0;
        let mut breaks: Vec<(f64, f64)> = Vec::new();
        for i in (0..steps.len()).filter(|&i| crosses(i)) {
            let (above, below) = self.lines.sides(q, i);
            breaks.push((-self.residuals[i] / steps[i], steps[i].abs() * (above + below)));
        }
        let total: f64 = breaks.iter().map(|(_, rise)| rise).sum();
        if breaks.is_empty() || total < fall {
            self.steps = steps;
            return false;
        }
        let stop = crate::model::quantile::select(&mut breaks, fall);
        let entering = (0..steps.len()).find(|&i| crosses(i) && -self.residuals[i] / steps[i] == stop);
        let Some(entering) = entering else { return false };
        self.go(q, k, side, entering, stop, &steps);
        self.steps = steps;
        true
    }

    /// Moves along the edge, past the rows before `stop`, and meets `entering` there.
    fn go(&mut self, q: f64, k: usize, side: f64, entering: usize, stop: f64, steps: &[f64]) {
        let leaving = self.basis[k];
        self.add(entering, -self.slope(q, entering));
        for (i, &step) in steps.iter().enumerate() {
            if self.met[i] {
                continue;
            }
            let before = self.residuals[i];
            if i != entering && before * step < 0.0 && -before / step <= stop {
                let (above, below) = self.lines.sides(q, i);
                self.residuals[i] = before + stop * step;
                // Rounding must not leave it on the side that it came from.
                if self.residuals[i] * before >= 0.0 {
                    self.residuals[i] = -before.signum() * f64::MIN_POSITIVE;
                }
                self.add(i, -before.signum() * (above + below));
            } else {
                let after = before + stop * step;
                self.residuals[i] =
                    if after * before < 0.0 { before.signum() * f64::MIN_POSITIVE } else { after };
            }
        }
        self.residuals[leaving] = side * stop;
        self.residuals[entering] = 0.0;
        (self.met[leaving], self.met[entering]) = (false, true);
        let (above, below) = self.lines.sides(q, leaving);
        self.add(leaving, if side > 0.0 { above } else { -below });
        self.replace(k, entering);
    }

    /// The inverse with row k of B replaced (Sherman and Morrison).
    fn replace(&mut self, k: usize, entering: usize) {
        self.basis[k] = entering;
        let row = ArrayView1::from(&self.lines.row(entering)).dot(&self.inverse);
        let column = self.inverse.column(k).to_owned();
        let pivot = row[k];
        for (j, &r) in row.iter().enumerate() {
            let by = (r - if j == k { 1.0 } else { 0.0 }) / pivot;
            for (i, c) in column.iter().enumerate() {
                self.inverse[[i, j]] -= by * c;
            }
        }
    }
}

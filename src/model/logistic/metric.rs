//! Second-order information for the searches: H₀ = Xᵀ V X + D, V the curvature of the loss in the margins and D that of
//! the penalty. With more rows than columns H₀ is formed and factored; with more columns than rows its inverse is had
//! from a system in the rows (Woodbury), and V is that of the search's last point.

use ndarray::linalg::general_mat_mul;
use ndarray::{Array1, Array2, ArrayView1, Axis, s};

use super::Logistic;
use super::objective::Objective;
use crate::data::Dataset;
use crate::linalg::Cholesky;
use crate::math::dot;
use crate::optim::lbfgs::minimise_block;
use crate::process::Measure;

/// Beyond so many rows and columns nothing of H₀ is formed.
const LARGEST: usize = 1000;
/// D of the intercept, which has no penalty, where D must be inverted: small beside V, whose entries sum to at most ¼.
const FREE: f64 = 0.02;
/// Leverage of a row beyond which its weight decides on H₀.
const LEVERAGE: f64 = 0.5;
/// Rows whose share of H₀ is one matrix product.
const TILE: usize = 256;

/// What all searches begin with.
pub enum Shared {
    Unknown,
    /// H₀ at θ = 0, where V is largest, for searches that are far from their minimum; at the fit to the unweighted data
    /// for those that are near. Where single rows have much `leverage`, H₀ depends on their weights, and each search
    /// begins with one of its own: too long a first step leads out of the basin of the start.
    Factor {
        far: Cholesky,
        near: Cholesky,
        leverage: bool,
    },
    /// D at β = 0, and X D⁻¹ Xᵀ.
    Rows(Gram),
}

/// 1/D of every column and of the intercept, and X D⁻¹ Xᵀ.
pub struct Gram {
    inverse: Vec<f64>,
    product: Array2<f64>,
}

/// What a search has made of its own.
enum Own {
    Factor(Cholesky),
    Rows(Gram),
}

/// H₀ of one search.
pub struct Metric<'a> {
    shared: &'a Shared,
    own: Option<Own>,
    /// Margins at the point evaluated last.
    margins: Vec<f64>,
}

impl Shared {
    pub fn new(model: &Logistic, data: &Dataset) -> Shared {
        let (n, d) = data.x.dim();
        if n == 0 || n.min(d) > LARGEST {
            return Shared::Unknown;
        }
        if d > n {
            return Gram::new(model, &data.x, &vec![0.0; d]).map_or(Shared::Unknown, Shared::Rows);
        }
        let f = Measure::empirical(data);
        let (mass, _) = f.weights();
        let start = vec![0.0; d + 1];
        let rough = || factor(model, &data.x, mass, &start, true);
        let (Some(far), Some(near)) = (rough(), rough()) else { return Shared::Unknown };
        let leverage = largest_leverage(&far, &data.x, mass) > LEVERAGE;
        let rough = Shared::Factor { far, near, leverage };
        let mut objective = Objective::new(model, &rough, &[&f]);
        let fit = minimise_block(&mut objective, vec![start.clone()], &model.settings()).remove(0);
        match (rough, factor(model, &data.x, mass, &fit.theta, false)) {
            (Shared::Factor { far, .. }, Some(near)) => Shared::Factor { far, near, leverage },
            (rough, _) => rough,
        }
    }

    /// Flops of a new H₀ over those of an evaluation.
    pub fn renewal_cost(x: &Array2<f64>) -> f64 {
        0.5 * x.nrows().min(x.ncols()) as f64
    }
}

impl<'a> Metric<'a> {
    pub fn new(shared: &'a Shared) -> Metric<'a> {
        Metric { shared, own: None, margins: Vec::new() }
    }

    /// Whether the search should make H₀ of its own before its first step.
    pub fn begins_alone(&self) -> bool {
        matches!(self.shared, Shared::Factor { leverage: true, .. })
    }

    fn factor(&self, far: bool) -> &Cholesky {
        match (&self.own, self.shared) {
            (Some(Own::Factor(own)), _) => own,
            (_, Shared::Factor { far: shared, .. }) if far => shared,
            (_, Shared::Factor { near: shared, .. }) => shared,
            _ => unreachable!("a metric keeps the kind it began with"),
        }
    }

    fn gram(&self) -> &Gram {
        match (&self.own, self.shared) {
            (Some(Own::Rows(own)), _) => own,
            (_, Shared::Rows(shared)) => shared,
            _ => unreachable!("a metric keeps the kind it began with"),
        }
    }

    /// Takes note of the margins of the rows from `first` on.
    pub fn observe(&mut self, first: usize, margins: impl Iterator<Item = f64>) {
        if matches!(self.shared, Shared::Rows(_)) {
            self.margins.truncate(first);
            self.margins.extend(margins);
        }
    }

    /// Makes H₀ anew at θ.
    pub fn renew(
        &mut self,
        model: &Logistic,
        x: &Array2<f64>,
        mass: &[f64],
        theta: &[f64],
        far: bool,
    ) -> bool {
        let new = match self.shared {
            Shared::Unknown => None,
            Shared::Factor { .. } => factor(model, x, mass, theta, far).map(Own::Factor),
            Shared::Rows(_) => Gram::new(model, x, &theta[..model.d()]).map(Own::Rows),
        };
        let made = new.is_some();
        self.own = new.or(self.own.take());
        made
    }

    /// H₀⁻¹ of every search on its row of `v`; false if it is unknown.
    pub fn apply_block(
        metrics: &[&Metric],
        x: &Array2<f64>,
        masses: &[&[f64]],
        far: &[bool],
        v: &mut Array2<f64>,
    ) -> bool {
        match metrics.first().map(|m| m.shared) {
            None | Some(Shared::Unknown) => return false,
            Some(Shared::Factor { .. }) => {
                for ((metric, far), mut row) in metrics.iter().zip(far).zip(v.outer_iter_mut()) {
                    let solved = metric.factor(*far).solve(row.as_slice().expect(ROWS));
                    row.assign(&ArrayView1::from(&solved));
                }
            }
            Some(Shared::Rows(_)) => woodbury(metrics, x, masses, far, v),
        }
        true
    }
}

const ROWS: &str = "rows of a matrix are contiguous";

/// (Xᵀ V X + D)⁻¹v = D⁻¹v − D⁻¹ Xᵀ V^½ (1 + V^½ X D⁻¹ Xᵀ V^½)⁻¹ V^½ X D⁻¹v, row by row of `v`.
fn woodbury(metrics: &[&Metric], x: &Array2<f64>, masses: &[&[f64]], far: &[bool], v: &mut Array2<f64>) {
    let (n, d) = x.dim();
    let grams: Vec<&Gram> = metrics.iter().map(|m| m.gram()).collect();
    for (mut row, gram) in v.outer_iter_mut().zip(&grams) {
        row.iter_mut().zip(&gram.inverse).for_each(|(v, i)| *v *= i);
    }
    let mut inner = Array2::zeros((metrics.len(), n));
    general_mat_mul(1.0, &v.slice(s![.., ..d]), &x.t(), 0.0, &mut inner);
    for (i, (metric, mass)) in metrics.iter().zip(masses).enumerate() {
        let root: Array1<f64> =
            metric.margins.iter().zip(*mass).map(|(&m, w)| (w * curvature(m, far[i])).sqrt()).collect();
        let mut system = &grams[i].product * &root * root.view().insert_axis(Axis(1));
        system.diag_mut().mapv_inplace(|v| v + 1.0);
        let right: Vec<f64> = inner.row(i).iter().zip(&root).map(|(u, r)| (u + v[[i, d]]) * r).collect();
        // 1 + a positive semidefinite matrix always has a factor, unless numbers overflowed.
        let solved = Cholesky::new(&system).map_or(vec![0.0; n], |c| c.solve(&right));
        inner.row_mut(i).iter_mut().zip(solved).zip(&root).for_each(|((u, s), r)| *u = s * r);
    }
    let mut back = Array2::zeros((metrics.len(), d));
    general_mat_mul(1.0, &inner, x, 0.0, &mut back);
    for (i, gram) in grams.iter().enumerate() {
        let mut row = v.row_mut(i);
        for j in 0..d {
            row[j] -= back[[i, j]] * gram.inverse[j];
        }
        row[d] -= inner.row(i).sum() * gram.inverse[d];
    }
}

impl Gram {
    /// `None` if a column has no penalty.
    fn new(model: &Logistic, x: &Array2<f64>, beta: &[f64]) -> Option<Gram> {
        let mut inverse: Vec<f64> = beta.iter().map(|b| 1.0 / model.majorant(*b)).collect();
        if inverse.iter().any(|i| !i.is_finite()) {
            return None;
        }
        let scaled = x * &ArrayView1::from(&inverse);
        let product = scaled.dot(&x.t()) + 1.0 / FREE;
        inverse.push(1.0 / FREE);
        Some(Gram { inverse, product })
    }
}

/// Curvature of log(1 + eᵐ): the second derivative near a minimum; far from one that of the parabola that touches at ±m
/// and lies above elsewhere (Jaakkola and Jordan 2000), under which a full step never goes up.
fn curvature(m: f64, far: bool) -> f64 {
    let m = m.abs();
    let e = libm::exp(-m);
    match far {
        false => e / ((1.0 + e) * (1.0 + e)),
        true if m < 1e-3 => 0.25,
        true => 0.5 * (1.0 - e) / ((1.0 + e) * m),
    }
}

/// max v wᵢ xᵢᵀH₀⁻¹xᵢ with v = ¼ and wᵢ the mass of row i, H₀ at θ = 0.
fn largest_leverage(far: &Cholesky, x: &Array2<f64>, mass: &[f64]) -> f64 {
    let of_row = |(x, w): (ArrayView1<f64>, &f64)| {
        let x: Vec<f64> = x.iter().copied().chain([1.0]).collect();
        0.25 * w * far.inverse_square(&x)
    };
    x.outer_iter().zip(mass).map(of_row).fold(0.0, f64::max)
}

/// H₀ at θ, factored.
fn factor(model: &Logistic, x: &Array2<f64>, mass: &[f64], theta: &[f64], far: bool) -> Option<Cholesky> {
    let d = model.d();
    let (beta, intercept) = theta.split_at(d);
    let mut h = Array2::zeros((d + 1, d + 1));
    let mut scaled = Array2::zeros((TILE, d + 1));
    for (rows, mass) in x.axis_chunks_iter(Axis(0), TILE).zip(mass.chunks(TILE)) {
        let mut scaled = scaled.slice_mut(s![..rows.nrows(), ..]);
        for ((x, w), mut out) in rows.outer_iter().zip(mass).zip(scaled.outer_iter_mut()) {
            let (x, out) = (x.to_slice().expect(ROWS), out.as_slice_mut().expect(ROWS));
            let root = (w * curvature(dot(x, beta) + intercept[0], far)).sqrt();
            out.iter_mut().zip(x).for_each(|(o, x)| *o = root * x);
            out[d] = root;
        }
        // By halves of the columns, for one of the four products is another's transpose.
        let half = d.div_ceil(2);
        let (left, right) = (scaled.slice(s![.., ..half]), scaled.slice(s![.., half..]));
        general_mat_mul(1.0, &left.t(), &left, 1.0, &mut h.slice_mut(s![..half, ..half]));
        general_mat_mul(1.0, &right.t(), &scaled, 1.0, &mut h.slice_mut(s![half.., ..]));
    }
    for (j, beta) in beta.iter().enumerate() {
        h[[j, j]] += model.majorant(*beta);
    }
    // A direction without curvature would be given an infinite step.
    let largest = h.diag().iter().fold(0.0f64, |m, v| m.max(*v));
    h.diag_mut().mapv_inplace(|v| v + 1e-9 * largest);
    Cholesky::new(&h)
}

#[cfg(test)]
mod tests {
    use super::super::Penalty;
    use super::*;
    use crate::config::Positive;
    use crate::kernel::Level;
    use std::sync::OnceLock;

    fn model(d: usize) -> Logistic {
        let positive = |v| Positive::new(v).unwrap();
        Logistic {
            columns: (0..d).map(|j| format!("x{j}")).collect(),
            penalty: Penalty::StudentT { a: positive(1.0), b: positive(0.7) },
            gamma: 0.05,
            hierarchy: None,
            mass: 6.0,
            tolerance: 1e-3,
            change: None,
            max_iterations: 100,
            level: Level::Plain,
            metric: OnceLock::new(),
        }
    }

    /// Numbers without a pattern.
    fn noise(i: usize) -> f64 {
        ((i * 7919 + 13) % 997) as f64 / 500.0 - 1.0
    }

    /// Through the rows, H₀⁻¹ is what the plain definition with the same V and D says.
    #[test]
    fn the_inverse_through_the_rows_is_exact() {
        let (n, d) = (6, 9);
        let x = Array2::from_shape_fn((n, d), |(i, j)| noise(i * d + j));
        let theta: Vec<f64> = (0..=d).map(|j| noise(j + 500)).collect();
        let mass: Vec<f64> = (0..n).map(|i| 0.1 + 0.02 * i as f64).collect();
        let model = model(d);
        let beta = Array1::from(theta[..d].to_vec());
        let margins = x.dot(&beta) + theta[d];
        for far in [false, true] {
            let gram = Gram::new(&model, &x, &theta[..d]).unwrap();
            let shared = Shared::Rows(gram);
            let mut metric = Metric::new(&shared);
            metric.observe(0, margins.iter().copied());
            let v: Vec<f64> = (0..=d).map(|j| noise(j + 900)).collect();
            let mut solved = Array2::from_shape_vec((1, d + 1), v.clone()).unwrap();
            assert!(Metric::apply_block(&[&metric], &x, &[&mass], &[far], &mut solved));
            let mut h = Array2::<f64>::zeros((d + 1, d + 1));
            for i in 0..n {
                let row: Vec<f64> = x.row(i).iter().copied().chain([1.0]).collect();
                let weight = mass[i] * curvature(margins[i], far);
                for j in 0..=d {
                    for k in 0..=d {
                        h[[j, k]] += weight * row[j] * row[k];
                    }
                }
            }
            for j in 0..d {
                h[[j, j]] += model.majorant(theta[j]);
            }
            h[[d, d]] += FREE;
            let back = h.dot(&solved.row(0));
            assert!(back.iter().zip(&v).all(|(a, b)| (a - b).abs() < 1e-10), "far {far}: {back}");
        }
    }

    /// The parabolas behind a search that is far lie above what they stand for: a full step never goes up.
    #[test]
    fn far_curvatures_majorise() {
        let softplus = |m: f64| m.max(0.0) + (-m.abs()).exp().ln_1p();
        let model = model(1);
        for at in [-30.0, -3.0, -0.2, 0.0, 1e-4, 1.5, 8.0] {
            let sigma = 1.0 / (1.0 + f64::exp(-at));
            let mut slope = [0.0];
            let penalty = |b: f64| model.penalise(&[b], &mut [0.0]);
            let touch = model.penalise(&[at], &mut slope);
            for to in (-400..400).map(|i| 0.1 * i as f64) {
                let step = to - at;
                let loss = softplus(at) + sigma * step + 0.5 * curvature(at, true) * step * step;
                assert!(loss >= softplus(to) - 1e-12, "loss from {at} to {to}");
                let bound = touch + slope[0] * step + 0.5 * model.majorant(at) * step * step;
                assert!(bound >= penalty(to) - 1e-12, "penalty from {at} to {to}");
            }
        }
    }

    #[test]
    fn a_lonely_outlier_has_leverage() {
        let even = Array2::from_shape_fn((50, 2), |(i, j)| noise(2 * i + j));
        let mut lonely = even.clone();
        lonely[[7, 1]] = 60.0;
        let data = |x| Dataset::unnamed(x, Some(Array1::from_shape_fn(50, |i| (i % 2) as f64)));
        let begins_alone = |data: &Dataset| Metric::new(&Shared::new(&model(2), data)).begins_alone();
        assert!(!begins_alone(&data(even)));
        assert!(begins_alone(&data(lonely)));
    }
}

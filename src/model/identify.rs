//! Whether a logistic regression without a penalty has a minimum, and no more than one. Weights are positive, so both are
//! facts of the rows and their responses, whatever a draw's weights are.
//!
//! *Rank*: the minimum is not unique if the columns of [1, X] are linearly dependent. *Separation*: there is no minimum if
//! some direction δ has sᵢ xᵢᵀδ ≥ 0 for all rows, sᵢ = ±1 by response, and > 0 for one (Albert and Anderson 1984: complete and
//! quasi-complete separation); along it the loss falls for ever.
//!
//! With A the rows sᵢxᵢ there is such a δ, or else a u > 0 with Aᵀu = 0 (Stiemke's alternative), never both. Both come from
//! one non-negative least-squares problem, min ‖Aᵀ(1 + v)‖ over v ≥ 0: if its residual r = Aᵀ(1 + v) is 0 then u = 1 + v; if
//! not, its optimality conditions say A r ≥ 0, and r·r = Σ (A r)ᵢ > 0, so that δ = r. Nothing rests on where a search for the
//! minimum stopped.

use std::ops::{Deref, Range};

use ndarray::{ArrayView1, ArrayView2};

use crate::data::Rows;
use crate::math::dot;
use crate::storage::{Buffer, Place};

/// A column of which less than this is left, as a share of its standard deviation, when its regression on those before it is
/// taken away is a combination of them: the tolerance of R's `lm`.
const COLLINEAR: f64 = 1e-7;
/// Spread of a column, as a share of its largest entry, that is rounding.
const CONSTANT: f64 = 1e-12;
/// Residual, as a share of the number of rows (each of length 1), that is rounding.
const ZERO: f64 = 1e-12;
/// Cosine of a row and the direction below which the row is on the wrong side; above, it is on the boundary.
const WRONG: f64 = 1e-9;
/// Rows that are looked at between two passes over all of them.
const SHORTLIST: usize = 256;
/// Share of a coefficient in the largest above which its column is named.
const NAMED: f64 = 0.05;

/// A row and the response that it has in some draw, as a sign; a row may have both.
pub type Labelled = (usize, f64);

/// What the loss of a row keeps from falling without end: a linear form of its predictors, and of parameters beside them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Form {
    /// A coefficient for each predictor.
    pub eta: Vec<f64>,
    /// And for each of the parameters.
    pub phi: Vec<f64>,
}

/// Numbers of the forms of all rows that are held at a time, at most: beyond, nothing is decided.
const MOST_NUMBERS: usize = 40_000_000;

/// A column of the data that is a combination of columns before it, up to a constant.
#[derive(Clone, Debug, PartialEq)]
pub struct Alias {
    pub column: usize,
    /// Which; none for a constant.
    pub of: Vec<usize>,
}

/// An orthonormal basis of the columns of [1, X], made in their order.
pub struct Basis {
    /// Its vectors; the first is that of the intercept, if there is one.
    q: Vec<Buffer<f64>>,
    /// Where they are.
    place: Place,
    /// The column of the data that each of the others stands for.
    columns: Vec<usize>,
    /// That column, centred and of length 1, in terms of the vectors up to its own.
    r: Vec<Vec<f64>>,
    /// Columns that add nothing. The basis of all of ℝⁿ is not asked which.
    pub aliased: Vec<Alias>,
    d: usize,
    /// Vectors of the intercept: one, or none.
    intercept: usize,
}

impl Basis {
    pub fn new(x: ArrayView2<f64>) -> Basis {
        Basis::with(x, 1, Place::Memory)
    }

    /// Of the columns of these rows, in a file if they are in one.
    pub fn of(rows: &Rows) -> Basis {
        Basis::with(rows.whole(), 1, rows.place())
    }

    /// Of the columns of X alone: there is no intercept.
    pub fn through_origin(x: ArrayView2<f64>) -> Basis {
        Basis::with(x, 0, Place::Memory)
    }

    fn with(x: ArrayView2<f64>, intercept: usize, place: Place) -> Basis {
        let (n, d) = x.dim();
        let mut basis = Basis {
            q: Vec::new(),
            place,
            columns: Vec::new(),
            r: Vec::new(),
            aliased: Vec::new(),
            d,
            intercept,
        };
        if n == 0 {
            return basis;
        }
        basis.q.extend((0..intercept).map(|_| Buffer::filled(place, n, 1.0 / (n as f64).sqrt())));
        for (j, column) in x.columns().into_iter().enumerate() {
            if basis.q.len() == n {
                break;
            }
            basis.add(j, column);
        }
        basis
    }

    fn add(&mut self, column: usize, x: ArrayView1<f64>) {
        let n = x.len() as f64;
        let mean = if self.intercept > 0 { x.sum() / n } else { 0.0 };
        let mut left = Buffer::filled(self.place, x.len(), 0.0);
        left.iter_mut().zip(x).for_each(|(left, v)| *left = v - mean);
        let length = norm(&left);
        let largest = x.iter().fold(0.0f64, |largest, v| largest.max(v.abs()));
        if length <= CONSTANT * n.sqrt() * largest {
            return self.aliased.push(Alias { column, of: Vec::new() });
        }
        left.iter_mut().for_each(|v| *v /= length);
        let mut r = orthogonalise(&self.q, &mut left).split_off(self.intercept);
        let rest = norm(&left);
        if rest <= COLLINEAR {
            let coefficients = self.coefficients(r);
            let of = largest_of(&coefficients).into_iter().map(|k| self.columns[k]).collect();
            return self.aliased.push(Alias { column, of });
        }
        left.iter_mut().for_each(|v| *v /= rest);
        r.push(rest);
        self.q.push(left);
        self.columns.push(column);
        self.r.push(r);
    }

    /// The combination of the basis vectors but the first, in terms of the columns they stand for.
    fn coefficients(&self, mut combination: Vec<f64>) -> Vec<f64> {
        solve_upper(&self.r, &mut combination);
        combination
    }

    /// Every direction is open: any responses could be fitted exactly.
    pub fn spans_all_rows(&self) -> bool {
        self.q.first().is_some_and(|one| one.len() == self.q.len())
    }

    /// The columns are independent, of each other and of the intercept.
    pub fn is_full(&self) -> bool {
        self.columns.len() == self.d && !self.q.is_empty()
    }

    /// A direction that separates rows with these responses: a coefficient of each column, by number, in units of its
    /// standard deviation.
    pub fn separation(&self, rows: &[Labelled]) -> Option<Vec<(usize, f64)>> {
        let k = self.q.len();
        if k == 0 {
            return None;
        }
        let mut a = Buffer::sized(self.place, rows.len() * k);
        let mut row = vec![0.0; k];
        for &(i, sign) in rows {
            row.iter_mut().zip(&self.q).for_each(|(a, q)| *a = sign * q[i]);
            let length = norm(&row);
            row.iter_mut().for_each(|v| *v /= length);
            a.extend_from_slice(&row);
        }
        let mut direction = Cone { a: &a, k }.separate()?;
        let coefficients = self.coefficients(direction.split_off(self.intercept));
        Some(self.columns.iter().copied().zip(coefficients).collect())
    }

    /// The same for several predictors and parameters beside them: a direction along which no form of a row falls, and some
    /// grow. Of each column the largest of its coefficients.
    pub fn separation_of_forms(&self, rows: &[(usize, Form)]) -> Option<Vec<(usize, f64)>> {
        let (predictors, extras) = rows.first().map(|(_, form)| (form.eta.len(), form.phi.len()))?;
        let (k, width) = (self.q.len(), predictors * self.q.len() + extras);
        if k == 0 || rows.len().saturating_mul(width) > MOST_NUMBERS {
            return None;
        }
        let one = 1.0 / (self.q[0].len() as f64).sqrt();
        let mut a = Vec::with_capacity(rows.len() * width);
        for (i, form) in rows {
            let first = a.len();
            a.extend(form.eta.iter().flat_map(|c| self.q.iter().map(move |q| c * q[*i])));
            a.extend(form.phi.iter().map(|c| c * one));
            let length = norm(&a[first..]);
            if length == 0.0 {
                a.truncate(first);
            }
            a[first..].iter_mut().for_each(|v| *v /= length);
        }
        let direction = Cone { a: &a, k: width }.separate()?;
        let of_predictor =
            |m: usize| self.coefficients(direction[m * k + self.intercept..(m + 1) * k].to_vec());
        let all: Vec<Vec<f64>> = (0..predictors).map(of_predictor).collect();
        let largest = |c: usize| all.iter().map(|of| of[c].abs()).fold(0.0, f64::max);
        Some(self.columns.iter().enumerate().map(|(c, &column)| (column, largest(c))).collect())
    }
}

/// The columns of a direction that matter, the largest first.
pub fn columns_of(direction: &[(usize, f64)]) -> Vec<usize> {
    let coefficients: Vec<f64> = direction.iter().map(|(_, b)| *b).collect();
    largest_of(&coefficients).into_iter().map(|k| direction[k].0).collect()
}

fn largest_of(coefficients: &[f64]) -> Vec<usize> {
    let size = |k: usize| coefficients[k].abs();
    let most = (0..coefficients.len()).map(size).fold(0.0, f64::max);
    let mut named: Vec<usize> = (0..coefficients.len()).filter(|&k| size(k) > NAMED * most).collect();
    named.sort_by(|&a, &b| size(b).total_cmp(&size(a)));
    named
}

/// Whether a column tells the responses apart by itself: all of one response are at or below all of the other.
pub fn separates_alone(x: ArrayView1<f64>, rows: &[Labelled]) -> bool {
    let range = |sign: f64| {
        let of = rows.iter().filter(|row| row.1 == sign).map(|row| x[row.0]);
        of.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)))
    };
    let (ones, zeros) = (range(1.0), range(-1.0));
    let varies = ones.0.min(zeros.0) < ones.1.max(zeros.1);
    varies && (ones.1 <= zeros.0 || zeros.1 <= ones.0)
}

/// The cone of rows of length 1, k numbers each.
struct Cone<'a> {
    a: &'a [f64],
    k: usize,
}

/// Rows whose multipliers v are positive. They are independent: `q` is an orthonormal basis of them, `r` has each in terms of it.
#[derive(Default)]
struct Active {
    rows: Vec<usize>,
    v: Vec<f64>,
    q: Vec<Vec<f64>>,
    r: Vec<Vec<f64>>,
}

impl Cone<'_> {
    fn rows(&self) -> Range<usize> {
        0..self.a.len() / self.k.max(1)
    }

    fn row(&self, i: usize) -> &[f64] {
        &self.a[i * self.k..(i + 1) * self.k]
    }

    /// r = Aᵀ(1 + v) for the v ≥ 0 that makes it shortest, by the active-set method of Lawson and Hanson (1974, chapter 23);
    /// `None` if that is 0.
    fn separate(&self) -> Option<Vec<f64>> {
        let mut sum = vec![0.0; self.k];
        self.rows().for_each(|i| sum.iter_mut().zip(self.row(i)).for_each(|(s, a)| *s += a));
        let mut active = Active::default();
        let mut shortest = f64::INFINITY;
        let vanishes = |residual: &[f64]| norm(residual) <= ZERO * self.rows().len() as f64;
        loop {
            let mut residual = active.residual(&sum);
            let length = norm(&residual);
            if vanishes(&residual) {
                return None;
            }
            // Every row that is admitted makes it shorter, unless the row cannot be told from the boundary.
            let mut shortlist = self.wrong(&residual, self.rows());
            if shortlist.is_empty() || length >= shortest {
                return Some(residual);
            }
            shortest = length;
            while let Some(&row) = shortlist.first() {
                active.admit(self, row, &sum);
                residual = active.residual(&sum);
                // What is left is rounding, and every row is on the wrong side of some of it.
                if vanishes(&residual) {
                    return None;
                }
                shortlist.retain(|&i| i != row);
                shortlist = self.wrong(&residual, shortlist);
            }
        }
    }

    /// The rows on the wrong side of a direction, the worst first, and not more than a shortlist of them.
    fn wrong(&self, direction: &[f64], among: impl IntoIterator<Item = usize>) -> Vec<usize> {
        let limit = -WRONG * norm(direction);
        let margins = among.into_iter().map(|i| (dot(self.row(i), direction), i));
        let mut found: Vec<(f64, usize)> = margins.filter(|(margin, _)| *margin < limit).collect();
        let worse = |a: &(f64, usize), b: &(f64, usize)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
        if found.len() > SHORTLIST {
            found.select_nth_unstable_by(SHORTLIST, worse);
            found.truncate(SHORTLIST);
        }
        found.sort_unstable_by(worse);
        found.into_iter().map(|(_, i)| i).collect()
    }
}

impl Active {
    /// What is left of `sum` outside the span of the active rows: Aᵀ(1 + v) for the best v of any sign.
    fn residual(&self, sum: &[f64]) -> Vec<f64> {
        let mut left = sum.to_vec();
        orthogonalise(&self.q, &mut left);
        left
    }

    /// Makes a row active, and rows inactive whose multiplier would fall to 0 on the way; not if rounding is all that speaks
    /// for it.
    fn admit(&mut self, cone: &Cone, row: usize, sum: &[f64]) {
        self.push(cone, row, 0.0);
        loop {
            let mut best: Vec<f64> = self.q.iter().map(|q| -dot(q, sum)).collect();
            solve_upper(&self.r, &mut best);
            let Some(last) = self.rows.len().checked_sub(1) else { return };
            if self.rows[last] == row && best[last] <= 0.0 && self.v[last] == 0.0 {
                return self.remove(cone, last);
            }
            let ratio = |k: usize| self.v[k] / (self.v[k] - best[k]);
            let falling = (0..best.len()).filter(|&k| best[k] <= 0.0);
            let Some(first) = falling.min_by(|&a, &b| ratio(a).total_cmp(&ratio(b))) else {
                self.v = best;
                return;
            };
            let step = ratio(first);
            self.v.iter_mut().zip(&best).for_each(|(v, best)| *v += step * (best - *v));
            self.v[first] = 0.0;
            self.remove(cone, first);
        }
    }

    fn push(&mut self, cone: &Cone, row: usize, v: f64) {
        let mut left = cone.row(row).to_vec();
        let mut r = orthogonalise(&self.q, &mut left);
        let rest = norm(&left);
        left.iter_mut().for_each(|a| *a /= rest);
        r.push(rest);
        self.rows.push(row);
        self.v.push(v);
        self.q.push(left);
        self.r.push(r);
    }

    fn remove(&mut self, cone: &Cone, place: usize) {
        let (rows, v) = (self.rows.split_off(place), self.v.split_off(place));
        self.q.truncate(place);
        self.r.truncate(place);
        rows.into_iter().zip(v).skip(1).for_each(|(row, v)| self.push(cone, row, v));
    }
}

/// Takes the part in the span of `q` away from `v`, and says what it was. Twice, for the first time leaves rounding errors of
/// what it took away (Giraud et al. 2005).
fn orthogonalise<Q: Deref<Target = [f64]>>(q: &[Q], v: &mut [f64]) -> Vec<f64> {
    let mut parts = vec![0.0; q.len()];
    for _ in 0..2 {
        let before = norm(v);
        for (part, q) in parts.iter_mut().zip(q) {
            let along = dot(q, v);
            v.iter_mut().zip(q.iter()).for_each(|(v, q)| *v -= along * q);
            *part += along;
        }
        if norm(v) > 0.1 * before {
            break;
        }
    }
    parts
}

/// Solves R x = b for x, in place of b; `r` has the columns of R.
fn solve_upper(r: &[Vec<f64>], b: &mut [f64]) {
    for k in (0..b.len()).rev() {
        b[k] /= r[k][k];
        let (before, at) = b.split_at_mut(k);
        before.iter_mut().zip(&r[k]).for_each(|(b, r)| *b -= r * at[0]);
    }
}

fn norm(v: &[f64]) -> f64 {
    dot(v, v).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array2, array};
    use rand::RngExt;

    use crate::rng::{Purpose, Seed};

    fn labelled(y: &[u8]) -> Vec<Labelled> {
        y.iter().enumerate().map(|(i, y)| (i, if *y == 1 { 1.0 } else { -1.0 })).collect()
    }

    fn separated(x: &Array2<f64>, y: &[u8]) -> bool {
        Basis::new(x.view()).separation(&labelled(y)).is_some()
    }

    /// On a line, by hand: apart, touching, overlapping by one row, overlapping by a hair.
    #[test]
    fn points_on_a_line() {
        let line = |v: [f64; 5]| Array2::from_shape_vec((5, 1), v.to_vec()).unwrap();
        let y = [0, 0, 0, 1, 1];
        assert!(separated(&line([1.0, 2.0, 3.0, 4.0, 5.0]), &y), "complete");
        assert!(separated(&line([1.0, 2.0, 3.0, 3.0, 5.0]), &y), "quasi-complete");
        assert!(!separated(&line([1.0, 2.0, 3.0, 2.5, 5.0]), &y));
        assert!(!separated(&line([1.0, 2.0, 3.0, 3.0 - 1e-6, 5.0]), &y), "by a hair");
        assert!(separated(&line([1.0, 2.0, 3.0, 3.0 + 1e-6, 5.0]), &y), "by a hair");
        assert!(!separated(&line([1.0, 2.0, 2.0, 2.0, 1.0]), &[0, 0, 1, 1, 1]), "nothing but ties");
        assert!(separated(&line([1.0, 2.0, 3.0, 4.0, 5.0]), &[1; 5]), "by the intercept");
    }

    /// Three classes on a line: apart; one of them inside another, which the others are apart from; all of them mixed. With cut points as
    /// with a predictor for each class.
    #[test]
    fn several_classes_on_a_line() {
        let multinomial = |y: usize| -> Vec<Form> {
            let eta = |k: usize| {
                let sign = |class: usize| f64::from(u8::from(class == y)) - f64::from(u8::from(class == k));
                (1..3).map(sign).collect()
            };
            (0..3).filter(|k| *k != y).map(|k| Form { eta: eta(k), phi: Vec::new() }).collect()
        };
        let ordered = |y: usize| -> Vec<Form> {
            let cut = |k: usize, sign: f64| {
                let phi = (0..2).map(|c| if c == k { sign } else { 0.0 }).collect();
                Form { eta: vec![-sign], phi }
            };
            [(y < 2).then(|| cut(y, 1.0)), (y > 0).then(|| cut(y - 1, -1.0))].into_iter().flatten().collect()
        };
        let separated = |x: &[f64], y: &[usize], forms: &dyn Fn(usize) -> Vec<Form>| {
            let x = Array2::from_shape_vec((x.len(), 1), x.to_vec()).unwrap();
            let rows: Vec<(usize, Form)> =
                y.iter().enumerate().flat_map(|(i, y)| forms(*y).into_iter().map(move |f| (i, f))).collect();
            Basis::new(x.view()).separation_of_forms(&rows).is_some()
        };
        let x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        for (free, forms) in [(true, &multinomial as &dyn Fn(usize) -> Vec<Form>), (false, &ordered)] {
            assert!(separated(&x, &[0, 0, 1, 1, 2, 2], forms), "complete");
            assert!(separated(&x, &[0, 0, 1, 1, 1, 2], forms), "touching nowhere");
            assert!(!separated(&x, &[0, 1, 0, 2, 1, 2], forms), "neighbours overlap");
            assert!(!separated(&x, &[1, 2, 0, 2, 1, 0], forms));
            // Two classes mixed and the third apart from both: only predictors of their own can follow.
            assert_eq!(separated(&x, &[0, 0, 1, 2, 1, 2], forms), free);
            assert_eq!(separated(&x, &[0, 2, 0, 2, 1, 1], forms), free);
        }
    }

    /// A row with both responses holds the direction to its boundary.
    #[test]
    fn a_row_of_both_responses_mends_what_it_lies_across() {
        let x = array![[1.0], [2.0], [3.0], [4.0]];
        let rows = labelled(&[0, 0, 1, 1]);
        let with = |more: &[Labelled]| Basis::new(x.view()).separation(&[&rows, more].concat()).is_some();
        assert!(with(&[(1, 1.0)]), "touching");
        assert!(!with(&[(0, 1.0)]));
        assert!(!with(&[(1, 1.0), (2, -1.0)]));
    }

    /// One dummy of many columns is 1 in rows of one response alone; scale and origin of the columns change nothing.
    #[test]
    fn the_column_that_separates_is_found_among_others_of_any_scale() {
        let mut rng = Seed(1).stream(Purpose::Auxiliary, 0, 0);
        let (n, d) = (300, 6);
        let scale = [1e-8, 1.0, 1e9, 3.0, 1e4, 0.1];
        let mut x = Array2::from_shape_fn((n, d), |(_, j)| scale[j] * (5.0 + rng.random_range(-1.0..1.0)));
        let y: Vec<u8> = (0..n).map(|_| rng.random_range(0..2)).collect();
        let basis = Basis::new(x.view());
        assert!(basis.is_full() && basis.separation(&labelled(&y)).is_none());
        for i in 0..n {
            x[[i, 3]] = f64::from(y[i] == 1 && i % 7 == 0);
        }
        let direction = Basis::new(x.view()).separation(&labelled(&y)).expect("no zero has the dummy");
        assert_eq!(columns_of(&direction), [3]);
        assert!(separates_alone(x.column(3), &labelled(&y)) && !separates_alone(x.column(1), &labelled(&y)));
    }

    /// Every answer has its certificate: margins that are nowhere negative, or positive multipliers that cancel. Cover (1965):
    /// as many responses as there are parameters are always separable, and twice as many with probability a half.
    #[test]
    fn random_responses_are_separable_as_often_as_they_should_be() {
        let mut rng = Seed(2).stream(Purpose::Auxiliary, 0, 0);
        let d = 4;
        let mut share = |n: usize| {
            let trial = |_| {
                let x = Array2::from_shape_fn((n, d), |_| rng.random_range(-1.0..1.0));
                let y: Vec<u8> = (0..n).map(|_| rng.random_range(0..2)).collect();
                let basis = Basis::new(x.view());
                let Some(direction) = basis.separation(&labelled(&y)) else { return 0 };
                let beta: Vec<f64> = direction
                    .iter()
                    .map(|&(j, b)| {
                        let (column, mean) = (x.column(j), x.column(j).sum() / n as f64);
                        b / norm(&column.iter().map(|v| v - mean).collect::<Vec<_>>())
                    })
                    .collect();
                let margin = |i: usize| -> f64 { x.row(i).iter().zip(&beta).map(|(x, b)| x * b).sum() };
                let of = |class: u8| (0..n).filter(|i| y[*i] == class).map(margin).collect::<Vec<_>>();
                let lowest = of(1).into_iter().fold(f64::INFINITY, f64::min);
                let highest = of(0).into_iter().fold(f64::NEG_INFINITY, f64::max);
                assert!(lowest >= highest - 1e-9 * highest.abs(), "{lowest} {highest}");
                1
            };
            f64::from((0..2000).map(trial).sum::<i32>()) / 2000.0
        };
        assert_eq!(share(d + 1), 1.0);
        // Five standard errors of a proportion of 2000.
        assert!((share(2 * (d + 1)) - 0.5).abs() < 5.0 * (0.25f64 / 2000.0).sqrt());
        assert!(share(60) < 0.01);
    }

    #[test]
    fn dependent_columns_are_named_with_what_they_depend_on() {
        let mut rng = Seed(3).stream(Purpose::Auxiliary, 0, 0);
        let mut x = Array2::from_shape_fn((50, 7), |_| rng.random_range(-1.0..1.0));
        for i in 0..50 {
            x[[i, 1]] = 0.0;
            x[[i, 2]] = 1e6;
            x[[i, 4]] = 7.0 - 1e5 * x[[i, 0]];
            x[[i, 5]] = x[[i, 0]] + 0.3 * x[[i, 3]] - 2.0;
            x[[i, 6]] = x[[i, 3]] + 1e-4 * x[[i, 6]];
        }
        let basis = Basis::new(x.view());
        let alias = |column, of: &[usize]| Alias { column, of: of.to_vec() };
        assert_eq!(basis.aliased, [alias(1, &[]), alias(2, &[]), alias(4, &[0]), alias(5, &[0, 3])]);
        assert!(!basis.is_full() && !basis.spans_all_rows(), "nearly is not exactly");
    }

    #[test]
    fn as_many_columns_as_rows_separate_anything() {
        let mut rng = Seed(4).stream(Purpose::Auxiliary, 0, 0);
        let x = Array2::from_shape_fn((20, 200), |_| rng.random_range(-1.0..1.0));
        let basis = Basis::new(x.view());
        assert!(basis.spans_all_rows() && !basis.is_full());
        let y: Vec<u8> = (0..20).map(|_| rng.random_range(0..2)).collect();
        assert!(basis.separation(&labelled(&y)).is_some());
    }
}

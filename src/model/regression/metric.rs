//! Second-order information for the searches: H₀ = Xᵀ V X + D, V the curvature of the loss in the margins and D that of
//! the penalty. With more rows than columns H₀ is formed and factored; with more columns than rows its inverse is had
//! from a system in the rows (Woodbury), and V is that of the search's last point.

use std::borrow::Cow;
use std::ops::Range;

use ndarray::{Array1, Array2, ArrayView1, Axis};

use super::ground::Responses;
use super::objective::{COLUMNS, Objective, pieces, through_rows};
use super::{Family, Regression};
use crate::data::{Dataset, Rows};
use crate::kernel::products::{NEAR, add_cross_products, add_margins, cross_products};
use crate::kernel::regression::{curvatures, curvatures_at};
use crate::kernel::{LANES, Level, Line, Panel, SINGLES, Scalar, load};
use crate::linalg::Cholesky;
use crate::process::Measure;
use crate::rng::CHUNK;

/// Beyond so many rows and columns nothing of H₀ is formed.
const LARGEST: usize = 1000;
/// The same where there is one minimum: H₀ at the fit to the unweighted data then serves all draws.
const LARGEST_CONVEX: usize = 1000;
/// Columns up to which a step with kinks is a matter of a matrix for each draw.
const LARGEST_WITH_KINKS: usize = 256;
/// D of the intercept, which has no penalty, where D must be inverted: small beside V, whose entries sum to about ¼.
const FREE: f64 = 0.02;
/// Leverage of a row beyond which its weight decides on H₀.
const LEVERAGE: f64 = 0.5;
/// Where there is one, leverage beyond which a row is hard; at most one row in so many is.
const HARD: f64 = 0.05;
const HARD_ONE_IN: usize = 16;
/// A search factors its matrix at every step where that costs at most about as much as an evaluation: p² of it over n.
const SMALL: usize = 24;
/// The same where there is one minimum, and all searches begin near it with one H₀: L-BFGS needs about as few steps then.
const SMALL_CONVEX: usize = 8;
/// Variance of a draw's Hessian about that of the unweighted data, 2p/n, up to which they are taken to be alike.
const ALIKE: f64 = 1.0 / 16.0;
/// The same for searches that begin near their minimum.
const ALIKE_CONVEX: f64 = 1.0 / 8.0;

/// What all searches begin with.
pub enum Shared {
    Unknown,
    /// Few parameters: Xᵀ V X of all rows but the hard ones at θ = 0 and at the fit to the unweighted data, lower triangles
    /// row after row, for searches that begin and for those that are near. Those that are near have their own unless draws
    /// are alike.
    Small {
        far: Vec<f64>,
        near: Option<Vec<f64>>,
        hard: Option<Hard>,
    },
    /// H₀ at θ = 0, where V is largest, for searches that are far from their minimum; at the fit to the unweighted data
    /// for those that are near. Where single rows have much `leverage`, H₀ depends on their weights, and each search
    /// begins with one of its own: too long a first step leads out of the basin of the start.
    Factor {
        far: Cholesky,
        near: Inverse,
        leverage: bool,
    },
    /// D at β = 0 and X D⁻¹ Xᵀ; the columns of X are the rows of the panel.
    Rows(Gram, Panel),
}

/// The rows with much leverage, where single rows have: their weights decide on H₀, and their curvature changes at every
/// step, so each search has its own share of theirs, at every point anew. They are few.
pub struct Hard {
    pub rows: Vec<usize>,
    pub x: Panel,
    pub singles: Panel<f32, SINGLES>,
}

/// H₀⁻¹, for many searches at once, in both formats.
pub struct Inverse {
    doubles: Panel,
    singles: Panel<f32, SINGLES>,
}

impl Inverse {
    fn new(factor: &Cholesky, p: usize) -> Inverse {
        let mut inverse = Array2::zeros((p, p));
        for (j, mut row) in inverse.outer_iter_mut().enumerate() {
            let unit: Vec<f64> = (0..p).map(|k| f64::from(j == k)).collect();
            row.assign(&ArrayView1::from(&factor.solve(&unit)));
        }
        Inverse { doubles: Panel::new(inverse.view()), singles: Panel::new(inverse.view()) }
    }

    /// On the chosen rows of `v`, eight in step.
    fn apply(&self, level: Level, rows: &[usize], v: &mut Array2<f64>) {
        let p = self.doubles.d();
        let mut lines: Vec<(Vec<Line>, Vec<Line>)> = rows
            .chunks(LANES)
            .map(|rows| {
                let line = |j: usize| Line(std::array::from_fn(|l| rows.get(l).map_or(0.0, |&i| v[[i, j]])));
                ((0..p).map(line).collect(), vec![Line::default(); self.doubles.rows()])
            })
            .collect();
        for columns in pieces(p, COLUMNS) {
            let (v, mut out): (Vec<&[Line]>, Vec<&mut [Line]>) =
                lines.iter_mut().map(|(v, out)| (&v[columns.clone()], &mut out[..])).unzip();
            add_margins(level, &self.doubles, 0..self.doubles.groups(), columns, &v, &mut out);
        }
        for (at, &i) in rows.iter().enumerate() {
            let solved = &lines[at / LANES].1;
            v.row_mut(i).iter_mut().zip(solved).for_each(|(v, line)| *v = line[at % LANES]);
        }
    }

    /// On lines of vectors.
    pub fn apply_in_singles(
        &self,
        level: Level,
        v: &[&[Line<f32, SINGLES>]],
        out: &mut [&mut [Line<f32, SINGLES>]],
    ) {
        let (x, p) = (&self.singles, self.singles.d());
        let mut sums: Vec<Vec<Line<f32, SINGLES>>> = vec![vec![Line::default(); x.rows()]; v.len()];
        for columns in pieces(p, COLUMNS) {
            let v: Vec<&[_]> = v.iter().map(|v| &v[columns.clone()]).collect();
            let mut sums: Vec<&mut [_]> = sums.iter_mut().map(|sums| &mut sums[..]).collect();
            add_margins(level, x, 0..x.groups(), columns, &v, &mut sums);
        }
        out.iter_mut().zip(&sums).for_each(|(out, sums)| out.copy_from_slice(&sums[..p]));
    }
}

/// 1/D of every column, and X D⁻¹ Xᵀ.
pub struct Gram {
    pub inverse: Vec<f64>,
    pub product: Array2<f64>,
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
    /// Margins at the point evaluated last, where they are asked for.
    margins: Vec<f64>,
    keeps: bool,
}

impl Shared {
    pub fn new<F: Family>(model: &Regression<F>, data: &Dataset) -> Shared {
        let (n, d) = (data.n(), data.d());
        let kinks = model.kink() > 0.0;
        let convex = model.has_one_minimum();
        let largest_order = if convex && d <= n { LARGEST_CONVEX } else { LARGEST };
        if n == 0 || n.min(d) > largest_order || kinks && d > LARGEST_WITH_KINKS {
            return Shared::Unknown;
        }
        if d > n && !kinks {
            let columns = Panel::new(data.x.whole().t());
            let gram = Gram::of(model, &columns, &vec![0.0; d]);
            return gram.map_or(Shared::Unknown, |gram| Shared::Rows(gram, columns));
        }
        let f = Measure::empirical(data);
        let all = Responses::plain(model, &f);
        let mass = |rows| all.mass(rows);
        let start = vec![0.0; d + 1];
        let x = data.x.panel_with_intercept();
        let far = hessian::<F, _, _>(model.level, x, mass, &start, true, None);
        let Some(first) = factor(model, &far, &start) else { return Shared::Unknown };
        let leverages = || leverages(F::curvature_at_0(), &first, &data.x, &all);
        let leverage = leverages().fold(0.0, f64::max) > LEVERAGE;
        let small = if convex { SMALL_CONVEX } else { SMALL };
        if (d + 1) * (d + 1) > small * n && !kinks {
            let near = Inverse::new(&first, d + 1);
            let mut shared = Shared::Factor { far: first, near, leverage };
            let (theta, fit) = shared.hessian_at_the_fit(model, data, &f);
            if let (Shared::Factor { near, .. }, Some(better)) = (&mut shared, factor(model, &fit, &theta)) {
                *near = Inverse::new(&better, d + 1);
            }
            return shared;
        }
        if leverage {
            let hard = Hard::new(leverages(), &data.x);
            let far = hessian::<F, _, _>(model.level, x, mass, &start, true, Some(&hard));
            return Shared::Small { far, near: None, hard: Some(hard) };
        }
        let mut shared = Shared::Small { far, near: None, hard: None };
        let alike = if convex { ALIKE_CONVEX } else { ALIKE };
        if 2.0 * (d + 1) as f64 <= alike * data.mass() {
            let fit = shared.hessian_at_the_fit(model, data, &f).1;
            if let Shared::Small { near, .. } = &mut shared {
                *near = Some(fit);
            }
        }
        shared
    }

    /// The minimum of the unweighted data, and Xᵀ V X there.
    fn hessian_at_the_fit<F: Family>(
        &self,
        model: &Regression<F>,
        data: &Dataset,
        f: &Measure,
    ) -> (Vec<f64>, Vec<f64>) {
        let start = vec![0.0; model.d() + 1];
        let theta = Objective::of_observed(model, self, &[f]).minimise(vec![start]).remove(0).theta;
        let x = data.x.panel_with_intercept();
        let all = Responses::plain(model, f);
        let lower = hessian::<F, _, _>(model.level, x, |rows| all.mass(rows), &theta, false, None);
        (theta, lower)
    }

    pub fn hard(&self) -> Option<&Hard> {
        match self {
            Shared::Small { hard, .. } => hard.as_ref(),
            _ => None,
        }
    }

    /// A new H₀ over an evaluation. Flops are not all: there is a logarithm and an exponential for each row, too, and
    /// with many columns the steps themselves cost as much as passes.
    pub fn renewal_cost(&self, x: &Rows, convex: bool) -> f64 {
        let (n, p) = (x.n() as f64, (x.d() + 1) as f64);
        match self {
            Shared::Rows(..) => 0.06 * n,
            // From near the minimum there is no hurry, and the factor alone is p³/3.
            Shared::Factor { .. } if convex => 0.2 * p + 1.5 * p * p / n,
            _ => 0.2 * p,
        }
    }
}

impl<'a> Metric<'a> {
    pub fn new(shared: &'a Shared) -> Metric<'a> {
        Metric { shared, own: None, margins: Vec::new(), keeps: matches!(shared, Shared::Rows(..)) }
    }

    /// Whether the search should make H₀ of its own before its first step.
    pub fn begins_alone(&self) -> bool {
        matches!(self.shared, Shared::Factor { leverage: true, .. })
    }

    /// What a search solves with alone; `None` if that is shared by all that are near.
    fn factor(&self, far: bool) -> Option<&Cholesky> {
        match (&self.own, self.shared) {
            (Some(Own::Factor(own)), _) => Some(own),
            (_, Shared::Factor { far: shared, .. }) => Some(shared).filter(|_| far),
            _ => unreachable!("a metric keeps the kind it began with"),
        }
    }

    fn gram(&self) -> &Gram {
        match (&self.own, self.shared) {
            (Some(Own::Rows(own)), _) => own,
            (_, Shared::Rows(shared, _)) => shared,
            _ => unreachable!("a metric keeps the kind it began with"),
        }
    }

    /// From now on margins are kept.
    pub fn keep_margins(&mut self) {
        self.keeps = true;
    }

    /// Margins at the point evaluated last.
    pub fn margins(&self) -> &[f64] {
        &self.margins
    }

    /// Takes note of the margins of the rows from `first` on.
    pub fn observe(&mut self, first: usize, margins: impl Iterator<Item = f64>) {
        if self.keeps {
            self.margins.truncate(first);
            self.margins.extend(margins);
        }
    }

    /// Makes H₀ anew at θ.
    pub fn renew<F: Family>(
        &mut self,
        model: &Regression<F>,
        data: &Dataset,
        of: &Responses,
        theta: &[f64],
        far: bool,
    ) -> bool {
        let new = match self.shared {
            Shared::Unknown | Shared::Small { .. } => None,
            Shared::Factor { .. } => {
                let x = data.x.panel_with_intercept();
                let lower = hessian::<F, _, _>(model.level, x, |rows| of.mass(rows), theta, far, None);
                factor(model, &lower, theta).map(Own::Factor)
            }
            Shared::Rows(_, columns) => Gram::of(model, columns, &theta[..model.d()]).map(Own::Rows),
        };
        let made = new.is_some();
        self.own = new.or(self.own.take());
        made
    }

    /// H₀⁻¹ of every search on its row of `v`; false if it is unknown.
    pub fn apply_block<F: Family>(
        metrics: &[&Metric],
        level: Level,
        x: &Panel,
        responses: &[&Responses],
        far: &[bool],
        v: &mut Array2<f64>,
    ) -> bool {
        match metrics.first().map(|m| m.shared) {
            None | Some(Shared::Unknown | Shared::Small { .. }) => return false,
            Some(Shared::Factor { near, .. }) => {
                let mut together = Vec::new();
                for (i, (metric, far)) in metrics.iter().zip(far).enumerate() {
                    let Some(factor) = metric.factor(*far) else {
                        together.push(i);
                        continue;
                    };
                    let solved = factor.solve(v.row(i).to_slice().expect(ROWS));
                    v.row_mut(i).assign(&ArrayView1::from(&solved));
                }
                near.apply(level, &together, v);
            }
            Some(Shared::Rows(..)) => woodbury::<F>(metrics, level, x, responses, far, v),
        }
        true
    }
}

const ROWS: &str = "rows of a matrix are contiguous";

/// (Xᵀ V X + D)⁻¹v = D⁻¹v − D⁻¹ Xᵀ V^½ (1 + V^½ X D⁻¹ Xᵀ V^½)⁻¹ V^½ X D⁻¹v, row by row of `v`.
fn woodbury<F: Family>(
    metrics: &[&Metric],
    level: Level,
    x: &Panel,
    responses: &[&Responses],
    far: &[bool],
    v: &mut Array2<f64>,
) {
    let grams: Vec<&Gram> = metrics.iter().map(|m| m.gram()).collect();
    for (mut row, gram) in v.outer_iter_mut().zip(&grams) {
        row.iter_mut().zip(gram.inverse_with_intercept()).for_each(|(v, i)| *v *= i);
    }
    // Eight searches in step, each a lane.
    let mut lanes: Vec<(Vec<Line>, Vec<Line>)> = v
        .axis_chunks_iter(Axis(0), LANES)
        .map(|v| {
            let line = |v: ArrayView1<f64>| Line(std::array::from_fn(|l| v.get(l).copied().unwrap_or(0.0)));
            (v.axis_iter(Axis(1)).map(line).collect(), vec![Line::default(); x.rows()])
        })
        .collect();
    for columns in pieces(x.d(), COLUMNS) {
        let (v, mut inner): (Vec<&[Line]>, Vec<&mut [Line]>) =
            lanes.iter_mut().map(|(v, inner)| (&v[columns.clone()], &mut inner[..])).unzip();
        add_margins(level, x, 0..x.groups(), columns, &v, &mut inner);
    }
    for (i, (metric, responses)) in metrics.iter().zip(responses).enumerate() {
        let (inner, lane) = (&mut lanes[i / LANES].1, i % LANES);
        let mass = responses.mass(0..metric.margins.len());
        let root = Array1::from(curvatures_at::<F>(level, &metric.margins, &mass, far[i])).sqrt();
        let right: Vec<f64> = inner.iter().zip(&root).map(|(u, r)| u[lane] * r).collect();
        // 1 + a positive semidefinite matrix always has a factor, unless numbers overflowed.
        let system = grams[i].system(&root, 1.0 / FREE);
        let solved = system.map_or(vec![0.0; right.len()], |c| c.solve(&right));
        let terms = solved.iter().zip(&root).map(|(s, r)| s * r).chain(std::iter::repeat(0.0));
        inner.iter_mut().zip(terms).for_each(|(u, term)| u[lane] = term);
    }
    let inner: Vec<&[Line]> = lanes.iter().map(|(_, inner)| &inner[..]).collect();
    let back = through_rows(level, x, &inner);
    for (i, (mut row, gram)) in v.outer_iter_mut().zip(&grams).enumerate() {
        let (back, lane) = (&back[i / LANES], i % LANES);
        let entries = row.iter_mut().zip(back).zip(gram.inverse_with_intercept());
        entries.for_each(|((v, back), i)| *v -= back[lane] * i);
    }
}

impl Gram {
    /// One for each β. The columns of X are the rows of the panel.
    pub fn new<F: Family>(model: &Regression<F>, columns: &Panel, betas: &[&[f64]]) -> Vec<Gram> {
        let inverse = |beta: &&[f64]| -> Vec<f64> { beta.iter().map(|b| 1.0 / model.majorant(*b)).collect() };
        let inverses: Vec<Vec<f64>> = betas.iter().map(inverse).collect();
        let lines = |inverse: &Vec<f64>| -> Vec<Line> {
            (0..columns.groups()).map(|g| Line(load(inverse, g))).collect()
        };
        let weights: Vec<Vec<Line>> = inverses.iter().map(lines).collect();
        let weights: Vec<&[Line]> = weights.iter().map(|w| &w[..]).collect();
        let products = cross_products(model.level, columns, &weights);
        let gram =
            |(inverse, product): (_, Vec<f64>)| Gram { inverse, product: symmetric(columns.d(), &product) };
        inverses.into_iter().zip(products).map(gram).collect()
    }

    /// `None` if a column has no penalty.
    fn of<F: Family>(model: &Regression<F>, columns: &Panel, beta: &[f64]) -> Option<Gram> {
        Some(Gram::new(model, columns, &[beta]).remove(0)).filter(|g| g.inverse.iter().all(|i| i.is_finite()))
    }

    fn inverse_with_intercept(&self) -> impl Iterator<Item = f64> {
        self.inverse.iter().copied().chain([1.0 / FREE])
    }

    /// 1 + R (X D⁻¹ Xᵀ + `more`) R, factored.
    pub fn system(&self, root: &Array1<f64>, more: f64) -> Option<Cholesky> {
        let mut system = (&self.product + more) * root * root.view().insert_axis(Axis(1));
        system.diag_mut().mapv_inplace(|v| v + 1.0);
        Cholesky::new(&system)
    }
}

/// The whole of a symmetric matrix, given its lower triangle row after row.
fn symmetric(p: usize, lower: &[f64]) -> Array2<f64> {
    let at = |j: usize, k: usize| lower[j * (j + 1) / 2 + k];
    Array2::from_shape_fn((p, p), |(j, k)| at(j.max(k), j.min(k)))
}

/// v wᵢ xᵢᵀH₀⁻¹xᵢ with v the curvature of the loss and wᵢ the mass of row i, H₀ at θ = 0.
fn leverages<'a>(
    curvature: f64,
    far: &'a Cholesky,
    x: &'a Rows,
    all: &'a Responses,
) -> impl Iterator<Item = f64> + 'a {
    x.tiles(CHUNK).flat_map(move |tile| {
        let mass = all.mass(tile.first..tile.first + tile.x.nrows());
        let of_row = move |(i, x): (usize, ArrayView1<f64>)| {
            let x: Vec<f64> = x.iter().copied().chain([1.0]).collect();
            curvature * mass[i % CHUNK] * far.inverse_square(&x)
        };
        tile.rows().map(of_row)
    })
}

impl Hard {
    fn new(leverages: impl Iterator<Item = f64>, x: &Rows) -> Hard {
        let mut hard: Vec<(usize, f64)> = leverages.enumerate().filter(|(_, l)| *l > HARD).collect();
        hard.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        hard.truncate((x.n() / HARD_ONE_IN).max(1));
        let rows: Vec<usize> = hard.into_iter().map(|(i, _)| i).collect();
        let x = x.select(&rows);
        let (singles, x) = (Panel::with_ones(x.whole(), 1), Panel::with_ones(x.whole(), 1));
        Hard { rows, x, singles }
    }

    /// Their share of Xᵀ V X at θ: its lower triangle, row after row.
    pub fn hessian<F: Family>(
        &self,
        level: Level,
        singles: bool,
        of: &Responses,
        theta: &[f64],
        far: bool,
    ) -> Vec<f64> {
        let mass = |rows: Range<usize>| Cow::Borrowed(&of.hard(self)[0][rows]);
        if singles {
            hessian::<F, _, _>(level, &self.singles, mass, theta, far, None)
        } else {
            hessian::<F, _, _>(level, &self.x, mass, theta, far, None)
        }
    }
}

/// Rows whose curvatures are in memory at a time: whole chunks, and pieces of which the sums are those of all rows at once.
const PIECE: usize = 12 * CHUNK;
const _: () = assert!(PIECE.is_multiple_of(NEAR * SINGLES) && PIECE.is_multiple_of(NEAR * LANES));

/// Xᵀ V X at θ, V for searches that are `far` from their minimum or not, of all rows or all but the hard ones: its lower
/// triangle, row after row. `mass` has the masses of rows that begin with a chunk.
pub fn hessian<'m, F: Family, T: Scalar<L>, const L: usize>(
    level: Level,
    x: &Panel<T, L>,
    mass: impl Fn(Range<usize>) -> Cow<'m, [f64]>,
    theta: &[f64],
    far: bool,
    without: Option<&Hard>,
) -> Vec<f64> {
    let mut sums = [vec![0.0; x.d() * (x.d() + 1) / 2]];
    for groups in pieces(x.groups(), PIECE / L) {
        let rows = groups.start * L..(groups.end * L).min(x.n());
        let mut v = curvatures::<F, T, L>(level, x, groups.clone(), theta, &mass(rows.clone()), far);
        for &i in without.iter().flat_map(|hard| &hard.rows).filter(|i| rows.contains(i)) {
            v[(i - rows.start) / L][i % L] = T::default();
        }
        add_cross_products(level, x, groups, &[&v], &mut sums);
    }
    let [sums] = sums;
    sums
}

/// H₀ = Xᵀ V X + D, factored, with D at θ.
fn factor<F: Family>(model: &Regression<F>, lower: &[f64], theta: &[f64]) -> Option<Cholesky> {
    let mut h = symmetric(theta.len(), lower);
    for (j, beta) in theta[..model.d()].iter().enumerate() {
        h[[j, j]] += model.majorant(*beta);
    }
    // A direction without curvature would be given an infinite step.
    let largest = h.diag().iter().fold(0.0f64, |m, v| m.max(*v));
    h.diag_mut().mapv_inplace(|v| v + 1e-9 * largest);
    Cholesky::new(&h)
}

#[cfg(test)]
mod tests {
    use super::super::test_model;
    use super::*;
    use crate::config::Positive;
    use crate::model::Logistic;
    use crate::penalty::{Penalty, StudentT};

    fn model(d: usize) -> Regression<Logistic> {
        let positive = |v| Positive::new(v).unwrap();
        test_model(d, Penalty::StudentT(StudentT { a: positive(1.0), b: positive(0.7) }))
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
            let columns = Panel::new(x.t());
            let gram = Gram::of(&model, &columns, &theta[..d]).unwrap();
            let shared = Shared::Rows(gram, columns);
            let mut metric = Metric::new(&shared);
            metric.observe(0, margins.iter().copied());
            let v: Vec<f64> = (0..=d).map(|j| noise(j + 900)).collect();
            let mut solved = Array2::from_shape_vec((1, d + 1), v.clone()).unwrap();
            let panel = Panel::with_ones(x.view(), 1);
            assert!(Metric::apply_block::<Logistic>(
                &[&metric],
                Level::PLAIN,
                &panel,
                &[&Responses::new(mass.clone(), Vec::new(), 0.0)],
                &[far],
                &mut solved
            ));
            let mut h = Array2::<f64>::zeros((d + 1, d + 1));
            for i in 0..n {
                let row: Vec<f64> = x.row(i).iter().copied().chain([1.0]).collect();
                let weight = curvatures_at::<Logistic>(Level::PLAIN, &[margins[i]], &[mass[i]], far)[0];
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
            let mut slope = 0.0;
            let penalty = |b: f64, slope: &mut f64| {
                let mut slopes = [Line::default()];
                let value = model.penalise(&[Line([b; LANES])], &mut slopes)[0];
                *slope = slopes[0][0];
                value
            };
            let touch = penalty(at, &mut slope);
            for to in (-400..400).map(|i| 0.1 * i as f64) {
                let step = to - at;
                let loss = softplus(at)
                    + sigma * step
                    + 0.5 * curvatures_at::<Logistic>(Level::PLAIN, &[at], &[1.0], true)[0] * step * step;
                assert!(loss >= softplus(to) - 1e-12, "loss from {at} to {to}");
                let bound = touch + slope * step + 0.5 * model.majorant(at) * step * step;
                assert!(bound >= penalty(to, &mut 0.0) - 1e-12, "penalty from {at} to {to}");
            }
        }
    }

    #[test]
    fn a_lonely_outlier_has_leverage() {
        let even = Array2::from_shape_fn((50, 2), |(i, j)| noise(2 * i + j));
        let mut lonely = even.clone();
        lonely[[7, 1]] = 60.0;
        let data = |x| Dataset::unnamed(x, Some(Array1::from_shape_fn(50, |i| (i % 2) as f64)));
        let hard = |data: &Dataset| match Shared::new(&model(2), data) {
            Shared::Small { hard, .. } => hard.map(|hard| hard.rows),
            _ => panic!("two columns are few"),
        };
        assert_eq!(hard(&data(even)), None);
        assert_eq!(hard(&data(lonely)), Some(vec![7]));
    }
}

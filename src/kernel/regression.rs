//! Losses of a linear predictor: those of a run of rows for searches, a lane each, given their margins; their curvature;
//! and penalties.

use std::ops::Range;

use super::lanes::mask;
use super::vector::{Arithmetic, LANES, Lanes, Line, Register, Scalar, Vector};
use super::{Panel, dispatch, load};

/// The loss A(m) − y m of an exponential family at margin m: all that a kernel knows of it.
pub trait Partition: Send + Sync + 'static {
    /// A and A′, safe for any margin.
    fn value_and_slope<V: Arithmetic>(margin: V) -> (V, V);

    /// A″; or, `far` from a minimum, the curvature of a parabola that touches at the margin and lies above elsewhere, where
    /// there is one: under it a full step never goes up.
    fn curvature<V: Arithmetic>(margin: V, far: bool) -> V;

    /// y m − A(m): the log density of y, up to a term of y alone.
    #[inline(always)]
    fn log_density<V: Arithmetic>(margin: V, y: V) -> V {
        y.mul(margin).sub(Self::value_and_slope(margin).0)
    }
}

dispatch! {
    /// Rows with mass uᵢ and sum of responses tᵢ at margins mᵢ: turns each margin into its slope uᵢ A′(mᵢ) − tᵢ and
    /// returns Σ uᵢ A(mᵢ) − tᵢ mᵢ.
    pub fn loss_and_slope<F: Partition>[T, L](
        margins: &mut [Line<T, L>], u: &[Line<T, L>], t: &[Line<T, L>]
    ) -> [f64; L] = loss_and_slope_body
}

dispatch! {
    /// The same where all of a row have the response yᵢ, and tᵢ is uᵢ yᵢ; rows beyond the last response have none.
    pub fn loss_and_slope_of_rows<F: Partition>[T, L](
        margins: &mut [Line<T, L>], u: &[Line<T, L>], y: &[f64]
    ) -> [f64; L] = loss_and_slope_of_rows_body
}

dispatch! {
    /// Σ uᵢ A(mᵢ) − tᵢ mᵢ over the rows of a panel at margins mᵢ = βᵀxᵢ + β₀, and its derivatives by β, then by β₀: one
    /// parameter, one pass.
    pub fn loss_and_gradient<F: Partition>(
        panel: &Panel,
        u: &[f64],
        t: &[f64],
        beta: &[f64],
        intercept: f64,
        gradient: &mut [f64],
    ) -> f64 = loss_and_gradient_body
}

/// What Σ w y of a row is had from.
trait Sums<V: Register<T, L>, T, const L: usize>: Copy {
    fn of(self, row: usize, mass: V) -> V;
}

impl<V: Register<T, L>, T, const L: usize> Sums<V, T, L> for &[Line<T, L>] {
    #[inline(always)]
    fn of(self, row: usize, _: V) -> V {
        V::load(&self[row])
    }
}

impl<V: Register<T, L>, T, const L: usize> Sums<V, T, L> for &[f64] {
    #[inline(always)]
    fn of(self, row: usize, mass: V) -> V {
        mass.mul(V::splat(self.get(row).copied().unwrap_or(0.0)))
    }
}

#[inline(always)]
fn loss_and_slope_body<V: Vector, F: Partition, T: Scalar<L>, const L: usize>(
    margins: &mut [Line<T, L>],
    u: &[Line<T, L>],
    t: &[Line<T, L>],
) -> [f64; L] {
    of_lines::<T::In<V>, F, T, L>(margins, u, t)
}

#[inline(always)]
fn loss_and_slope_of_rows_body<V: Vector, F: Partition, T: Scalar<L>, const L: usize>(
    margins: &mut [Line<T, L>],
    u: &[Line<T, L>],
    y: &[f64],
) -> [f64; L] {
    of_lines::<T::In<V>, F, T, L>(margins, u, y)
}

#[inline(always)]
fn of_lines<V: Register<T, L>, F: Partition, T: Scalar<L>, const L: usize>(
    margins: &mut [Line<T, L>],
    u: &[Line<T, L>],
    t: impl Sums<V, T, L>,
) -> [f64; L] {
    let (mut loss, mut first) = (V::splat(0.0), 0);
    if V::SUMS >= 16 {
        while first + 8 <= margins.len() {
            add_lines::<V, F, T, L, 8>(margins, u, t, first, &mut loss);
            first += 8;
        }
    }
    if V::IN_STEP {
        while first + 4 <= margins.len() {
            add_lines::<V, F, T, L, 4>(margins, u, t, first, &mut loss);
            first += 4;
        }
    }
    while first < margins.len() {
        add_lines::<V, F, T, L, 1>(margins, u, t, first, &mut loss);
        first += 1;
    }
    loss.lanes().map(Into::into)
}

/// `N` lines from `first` on, in step: turns margins into slopes, and adds their losses one after the other.
#[inline(always)]
fn add_lines<V: Register<T, L>, F: Partition, T: Scalar<L>, const L: usize, const N: usize>(
    margins: &mut [Line<T, L>],
    u: &[Line<T, L>],
    t: impl Sums<V, T, L>,
    first: usize,
    loss: &mut V,
) {
    let zero = [V::splat(0.0); N];
    let (mut m, mut mass, mut response) = (zero, zero, zero);
    for i in 0..N {
        m[i] = V::load(&margins[first + i]);
        mass[i] = V::load(&u[first + i]);
        response[i] = t.of(first + i, mass[i]);
    }
    let (terms, slopes) = of_margins::<_, F>(m, mass, response);
    for i in 0..N {
        *loss = loss.add(terms[i]);
        margins[first + i].0 = slopes[i].lanes();
    }
}

/// u A(m) − t m and its derivative u A′(m) − t.
#[inline(always)]
fn of_margins<V: Arithmetic, F: Partition>(m: V, u: V, t: V) -> (V, V) {
    let (value, slope) = F::value_and_slope(m);
    (u.mul(value).sub(t.mul(m)), u.mul(slope).sub(t))
}

#[inline(always)]
fn loss_and_gradient_body<V: Vector, F: Partition>(
    panel: &Panel,
    u: &[f64],
    t: &[f64],
    beta: &[f64],
    intercept: f64,
    gradient: &mut [f64],
) -> f64 {
    let mut sums: Vec<Lanes> = vec![[0.0; LANES]; panel.d()];
    let (mut loss, mut slopes) = (V::splat(0.0), V::splat(0.0));
    for g in 0..panel.groups() {
        let rows = panel.group(g);
        // Four sums, so that one addition need not wait for the one before it.
        let mut margins = [V::splat(intercept), V::splat(0.0), V::splat(0.0), V::splat(0.0)];
        let (fours, rest) = rows.as_chunks::<4>();
        let (beta_fours, beta_rest) = beta.as_chunks::<4>();
        for (x, b) in fours.iter().zip(beta_fours) {
            for l in 0..4 {
                margins[l] = V::load(&x[l]).fma(V::splat(b[l]), margins[l]);
            }
        }
        for (x, b) in rest.iter().zip(beta_rest) {
            margins[0] = V::load(x).fma(V::splat(*b), margins[0]);
        }
        let m = margins[0].add(margins[1]).add(margins[2].add(margins[3]));
        // Rows that fill up the last group have mass 0.
        let (terms, slope) = of_margins::<_, F>(m, V::load(&load(u, g)), V::load(&load(t, g)));
        loss = loss.add(terms);
        slopes = slopes.add(slope);
        for (sum, x) in sums.iter_mut().zip(rows) {
            *sum = V::load(x).fma(slope, V::load(sum)).lanes();
        }
    }
    let (by_beta, by_intercept) = gradient.split_at_mut(panel.d());
    by_beta.iter_mut().zip(&sums).for_each(|(g, sum)| *g = super::vector::sum(sum));
    by_intercept[0] = super::vector::sum(&slopes.lanes());
    super::vector::sum(&loss.lanes())
}

dispatch! {
    /// Σⱼ log(1 + βⱼ²/2b); adds its derivative by βⱼ²/2, times `scale`, times βⱼ, to every entry of the gradient.
    pub fn student_t[T, L](two_b: f64, scale: f64, beta: &[Line<T, L>], gradient: &mut [Line<T, L>]) -> [f64; L]
        = student_t_body
}

#[inline(always)]
fn student_t_body<V: Vector, T: Scalar<L>, const L: usize>(
    two_b: f64,
    scale: f64,
    beta: &[Line<T, L>],
    gradient: &mut [Line<T, L>],
) -> [f64; L] {
    let (splat, load) = (<T::In<V>>::splat, <T::In<V>>::load);
    let (one, inverse, two_b, scale) = (splat(1.0), splat(1.0 / two_b), splat(two_b), splat(scale));
    let mut total = splat(0.0);
    for (beta, gradient) in beta.iter().zip(gradient) {
        let beta = load(beta);
        let square = beta.mul(beta);
        total = total.add(square.fma(inverse, one).ln());
        gradient.0 = scale.mul(beta).div(two_b.add(square)).add(load(gradient)).lanes();
    }
    total.lanes().map(Into::into)
}

dispatch! {
    /// `scale`/(2b + βⱼ²), or where `exact`, the second derivative: that times (2b − βⱼ²)/(2b + βⱼ²).
    pub fn student_t_curvatures[T, L](
        two_b: f64, scale: f64, exact: [bool; L], beta: &[Line<T, L>], out: &mut [Line<T, L>]
    ) = student_t_curvatures_body
}

#[inline(always)]
fn student_t_curvatures_body<V: Vector, T: Scalar<L>, const L: usize>(
    two_b: f64,
    scale: f64,
    exact: [bool; L],
    beta: &[Line<T, L>],
    out: &mut [Line<T, L>],
) {
    let (splat, load) = (<T::In<V>>::splat, <T::In<V>>::load);
    let (one, half, two_b, scale) = (splat(1.0), splat(0.5), splat(two_b), splat(scale));
    let exact = mask::<T::In<V>, T, L>(exact);
    for (beta, out) in beta.iter().zip(out) {
        let beta = load(beta);
        let square = beta.mul(beta);
        let inverse = one.div(two_b.add(square));
        let ratio = exact.if_below(half, one, two_b.sub(square).mul(inverse));
        out.0 = scale.mul(inverse).mul(ratio).lanes();
    }
}

dispatch! {
    /// Mass times curvature of A of the rows of some groups at their margins under one θ, a line each; `mass` begins with the first of
    /// those rows.
    pub fn curvatures<F: Partition>[T, L](
        x: &Panel<T, L>, groups: Range<usize>, theta: &[f64], mass: &[f64], far: bool
    ) -> Vec<Line<T, L>> = curvatures_body
}

dispatch! {
    /// The same at given margins.
    pub fn curvatures_at<F: Partition>(margins: &[f64], mass: &[f64], far: bool) -> Vec<f64> = curvatures_at_body
}

#[inline(always)]
fn curvatures_at_body<V: Vector, F: Partition>(margins: &[f64], mass: &[f64], far: bool) -> Vec<f64> {
    let mut out = Vec::with_capacity(margins.len().next_multiple_of(LANES));
    for g in 0..margins.len().div_ceil(LANES) {
        let (m, mass) = (V::load(&load(margins, g)), V::load(&load(mass, g)));
        out.extend_from_slice(&F::curvature(m, far).mul(mass).lanes());
    }
    out.truncate(margins.len());
    out
}

#[inline(always)]
fn curvatures_body<V: Vector, F: Partition, T: Scalar<L>, const L: usize>(
    x: &Panel<T, L>,
    groups: Range<usize>,
    theta: &[f64],
    mass: &[f64],
    far: bool,
) -> Vec<Line<T, L>> {
    let mut out = Vec::with_capacity(groups.len());
    for first in groups.clone().step_by(GROUPS) {
        for (g, m) in (first..groups.end).zip(margins::<T::In<V>, T, L>(x, first, theta)) {
            let mass =
                std::array::from_fn(|l| T::of(mass.get((g - groups.start) * L + l).copied().unwrap_or(0.0)));
            out.push(Line(F::curvature(m, far).mul(<T::In<V>>::load(&mass)).lanes()));
        }
    }
    out
}

/// Groups of rows whose margins are summed up at once.
const GROUPS: usize = 4;

/// Margins of the rows from group `first` on under one θ. Groups beyond the last are the last again.
#[inline(always)]
fn margins<V: Register<T, L>, T: Scalar<L>, const L: usize>(
    x: &Panel<T, L>,
    first: usize,
    theta: &[f64],
) -> [V; GROUPS] {
    let rows: [&[Line<T, L>]; GROUPS] = std::array::from_fn(|i| x.group((first + i).min(x.groups() - 1)));
    let mut margins = [V::splat(0.0); GROUPS];
    for (j, &theta) in theta.iter().enumerate() {
        let theta = V::splat(theta);
        for (margin, rows) in margins.iter_mut().zip(&rows) {
            *margin = V::load(&rows[j]).fma(theta, *margin);
        }
    }
    margins
}

dispatch! {
    /// y m − A(m) of every row under one θ.
    pub fn log_density<F: Partition>(x: &Panel, theta: &[f64], y: &[f64], out: &mut [f64]) = log_density_body
}

#[inline(always)]
fn log_density_body<V: Vector, F: Partition>(x: &Panel, theta: &[f64], y: &[f64], out: &mut [f64]) {
    for first in (0..x.groups()).step_by(GROUPS) {
        for (g, m) in (first..x.groups()).zip(margins::<V, f64, LANES>(x, first, theta)) {
            let density = F::log_density(m, V::load(&load(y, g)));
            let run = &mut out[g * LANES..];
            let len = run.len().min(LANES);
            run[..len].copy_from_slice(&density.lanes()[..len]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Level, SINGLES, available};
    use crate::model::Logistic as F;

    #[test]
    fn every_level_agrees_with_the_definition_at_any_margin() {
        let margins: Vec<f64> =
            (0..101).map(|i| (i as f64 - 50.0) * 0.7).chain([-1e4, 1e4, -745.0, 745.0, 0.0]).collect();
        let u: Vec<f64> = (0..margins.len()).map(|i| 0.1 + (i % 5) as f64).collect();
        let t: Vec<f64> = u.iter().enumerate().map(|(i, u)| u * ((i % 3) as f64 / 2.0)).collect();
        let softplus = |m: f64| m.max(0.0) + libm::log1p(libm::exp(-m.abs()));
        let exact: f64 = margins.iter().zip(&u).zip(&t).map(|((&m, u), t)| u * softplus(m) - t * m).sum();
        for level in available() {
            // Each lane has the margins in another order.
            let turned = |x: &[f64]| -> Vec<Line> {
                (0..x.len()).map(|i| Line(std::array::from_fn(|l| x[(i + 7 * l) % x.len()]))).collect()
            };
            let mut slopes = turned(&margins);
            let loss = loss_and_slope::<F, f64, LANES>(level, &mut slopes, &turned(&u), &turned(&t));
            assert!(loss.iter().all(|l| (l / exact - 1.0).abs() < 1e-13), "{level:?}");
            for (i, line) in slopes.iter().enumerate() {
                for (l, slope) in line.iter().enumerate() {
                    let i = (i + 7 * l) % margins.len();
                    let sigma = 1.0 / (1.0 + libm::exp(-margins[i]));
                    assert!((slope - (u[i] * sigma - t[i])).abs() < 2e-15, "{level:?} at {}", margins[i]);
                }
            }
        }
    }

    /// The loss and slopes of lines in step are those of the lines one by one.
    fn steps_change_nothing<T: Scalar<L> + PartialEq + std::fmt::Debug, const L: usize>(level: Level) {
        let lines = |n: usize, by: f64| -> Vec<Line<T, L>> {
            let number = |i: usize| T::of(by * (((i * 7919 + 13) % 997) as f64 / 50.0 - 8.0));
            (0..n).map(|i| Line(std::array::from_fn(|l| number(L * i + l)))).collect()
        };
        for n in 0..30 {
            let (mut slopes, u, t) = (lines(n, 1.0), lines(n, 0.03), lines(n, -0.02));
            let mut alone = slopes.clone();
            let loss = loss_and_slope::<F, T, L>(level, &mut slopes, &u, &t);
            let mut sum = [0.0; L];
            for i in 0..n {
                let of_line = loss_and_slope::<F, T, L>(level, &mut alone[i..=i], &u[i..=i], &t[i..=i]);
                sum.iter_mut().zip(of_line).for_each(|(sum, own)| *sum = T::of(*sum + own).into());
            }
            assert_eq!((slopes, loss), (alone, sum), "{level:?}, n {n}");
            // Two rows that fill up a group have no response.
            let y: Vec<f64> = (0..n.saturating_sub(2)).map(|i| (i % 3 % 2) as f64).collect();
            let of_row = |i: usize, mass: T| T::of(mass.into() * y.get(i).unwrap_or(&0.0));
            let t: Vec<Line<T, L>> =
                u.iter().enumerate().map(|(i, u)| Line(u.map(|m| of_row(i, m)))).collect();
            let (mut slopes, mut kept) = (lines(n, 1.0), lines(n, 1.0));
            let of_rows = loss_and_slope_of_rows::<F, T, L>(level, &mut slopes, &u, &y);
            let of_lines = loss_and_slope::<F, T, L>(level, &mut kept, &u, &t);
            assert_eq!((slopes, of_rows), (kept, of_lines), "{level:?}, n {n}");
        }
    }

    #[test]
    fn lines_in_step_give_the_bits_of_lines_one_by_one() {
        for level in available() {
            steps_change_nothing::<f64, LANES>(level);
            steps_change_nothing::<f32, SINGLES>(level);
        }
    }

    #[test]
    fn a_pass_over_a_panel_is_margins_then_slopes_then_their_products_with_the_rows() {
        for (n, d) in [(1, 0), (7, 1), (8, 4), (21, 6), (40, 9)] {
            let x =
                ndarray::Array2::from_shape_fn((n, d), |(i, j)| ((i * 31 + j * 17) % 23) as f64 / 5.0 - 2.0);
            let beta: Vec<f64> = (0..d).map(|j| 0.4 - 0.15 * j as f64).collect();
            let u: Vec<f64> = (0..n).map(|i| 0.5 + (i % 4) as f64).collect();
            let t: Vec<f64> = u.iter().enumerate().map(|(i, u)| u * (i % 2) as f64).collect();
            let margin = |i: usize| x.row(i).iter().zip(&beta).map(|(x, b)| x * b).sum::<f64>() - 0.3;
            let lines = |x: &dyn Fn(usize) -> f64| (0..n).map(|i| Line([x(i); LANES])).collect::<Vec<_>>();
            let mut slopes = lines(&margin);
            let loss = loss_and_slope::<F, f64, LANES>(
                Level::PLAIN,
                &mut slopes,
                &lines(&|i| u[i]),
                &lines(&|i| t[i]),
            )[0];
            for level in available() {
                let mut gradient = vec![f64::NAN; d + 1];
                let found =
                    loss_and_gradient::<F>(level, &Panel::new(x.view()), &u, &t, &beta, -0.3, &mut gradient);
                assert!((found - loss).abs() < 1e-12 * loss.abs(), "{level:?}: {found} for {loss}");
                for (j, g) in gradient.iter().enumerate() {
                    let column = |i: usize| if j < d { x[[i, j]] } else { 1.0 };
                    let exact: f64 = slopes.iter().enumerate().map(|(i, s)| s[0] * column(i)).sum();
                    assert!((g - exact).abs() < 1e-12 * (1.0 + exact.abs()), "{level:?}: {g} for {exact}");
                }
            }
        }
    }

    /// 21 rows of 3 columns with an intercept, a θ, and margins from −16 to 20.
    fn rows() -> (Panel, Vec<f64>, Vec<f64>) {
        let x = ndarray::Array2::from_shape_fn((21, 3), |(i, j)| ((i * (j + 2)) % 11) as f64 - 5.0);
        let theta = vec![1.5, -0.7, 1.2, 0.3];
        let margins = x.outer_iter().map(|x| x[0] * 1.5 - x[1] * 0.7 + x[2] * 1.2 + 0.3).collect();
        (Panel::with_ones(x.view(), 1), theta, margins)
    }

    #[test]
    fn curvatures_are_those_of_the_definition() {
        let (x, theta, margins) = rows();
        let mass: Vec<f64> = (0..21).map(|i| 0.1 + (i % 5) as f64).collect();
        for level in available() {
            for far in [false, true] {
                let found = curvatures::<F, f64, LANES>(level, &x, 0..x.groups(), &theta, &mass, far);
                let found: Vec<f64> = found.iter().flat_map(|line| line.0).take(21).collect();
                let again = curvatures_at::<F>(level, &margins, &mass, far);
                assert_eq!(again.len(), 21);
                assert!(found.iter().zip(&again).all(|(a, b)| (a - b).abs() < 1e-14), "{level:?}");
                for ((found, &m), mass) in found.iter().zip(&margins).zip(&mass) {
                    let sigma = 1.0 / (1.0 + libm::exp(-m));
                    let exact = if far { (sigma - 0.5) / m } else { sigma * (1.0 - sigma) };
                    assert!((found - mass * exact).abs() < 1e-14, "{level:?}, far {far}, margin {m}");
                }
            }
            assert_eq!(curvatures::<F, f64, LANES>(level, &x, 0..2, &theta, &mass, false).len(), 2);
            let zeros = curvatures::<F, f64, LANES>(level, &x, 0..x.groups(), &[0.0; 4], &mass, true);
            assert_eq!(zeros[0].0, std::array::from_fn(|l| 0.25 * mass[l]), "{level:?}");
            assert_eq!(zeros[2][5..], [0.0; 3], "no mass beyond the last row");
        }
    }

    #[test]
    fn densities_are_those_of_the_definition() {
        let (x, mut theta, margins) = rows();
        let y: Vec<f64> = (0..21).map(|i| (i % 2) as f64).collect();
        for level in available() {
            let mut found = vec![0.0; 21];
            log_density::<F>(level, &x, &theta, &y, &mut found);
            for ((found, m), y) in found.iter().zip(&margins).zip(&y) {
                let towards = if *y == 1.0 { *m } else { -m };
                let exact = towards.min(0.0) - libm::log1p(libm::exp(-towards.abs()));
                assert!((found - exact).abs() < 1e-14, "{level:?} at {m}");
            }
        }
        theta[3] = 1e6;
        let mut far = vec![0.0; 21];
        log_density::<F>(crate::kernel::Level::detected(), &x, &theta, &y, &mut far);
        assert!(far.iter().zip(&y).all(|(f, y)| if *y == 1.0 { *f == 0.0 } else { *f < -9e5 }));
    }

    #[test]
    fn the_penalty_is_that_of_the_definition() {
        for level in available() {
            the_penalty_in::<f64, LANES>(level, 1e-14);
            the_penalty_in::<f32, { crate::kernel::SINGLES }>(level, 1e-5);
        }
    }

    fn the_penalty_in<T: Scalar<L>, const L: usize>(level: Level, error: f64) {
        let at = |j: usize, l: usize| (j * L + l) as f64 * 0.05 - 1.0;
        let lines = |f: &dyn Fn(usize, usize) -> f64| -> Vec<Line<T, L>> {
            (0..5).map(|j| Line(std::array::from_fn(|l| T::of(f(j, l))))).collect()
        };
        let beta = lines(&at);
        let mut gradient = lines(&|j, _| j as f64);
        let sums = student_t(level, 0.6, 1.5, &beta, &mut gradient);
        let mut curvatures = lines(&|_, _| 0.0);
        let exact = std::array::from_fn(|l| l % 2 == 1);
        student_t_curvatures(level, 0.6, 1.5, exact, &beta, &mut curvatures);
        for l in 0..L {
            let total: f64 = (0..5).map(|j| libm::log1p(at(j, l) * at(j, l) / 0.6)).sum();
            assert!((sums[l] - total).abs() < error, "{level:?}");
            for j in 0..5 {
                let square = at(j, l) * at(j, l);
                let slope = j as f64 + 1.5 * at(j, l) / (0.6 + square);
                assert!((gradient[j][l].into() - slope).abs() < error, "{level:?}");
                let ratio = if l % 2 == 1 { (0.6 - square) / (0.6 + square) } else { 1.0 };
                let curvature = 1.5 / (0.6 + square) * ratio;
                assert!((curvatures[j][l].into() - curvature).abs() < error, "{level:?}");
            }
        }
    }
}

//! The logistic loss of a run of rows for eight searches, a lane each, given their margins; and its curvature.

use super::vector::{LANES, Lanes, Line, Vector};
use super::{Panel, dispatch, load};

dispatch! {
    /// Rows with mass uᵢ of which tᵢ has response 1, at margins mᵢ: turns each margin into its slope uᵢ σ(mᵢ) − tᵢ and
    /// returns Σ uᵢ log(1 + e^mᵢ) − tᵢ mᵢ. Safe for any margin.
    pub fn loss_and_slope(margins: &mut [Line], u: &[Line], t: &[Line]) -> Lanes = loss_and_slope_body
}

dispatch! {
    /// Σ uᵢ log(1 + e^mᵢ) − tᵢ mᵢ over the rows of a panel at margins mᵢ = βᵀxᵢ + β₀, and its derivatives by β, then by
    /// β₀: one parameter, one pass.
    pub fn loss_and_gradient(
        panel: &Panel,
        u: &[f64],
        t: &[f64],
        beta: &[f64],
        intercept: f64,
        gradient: &mut [f64],
    ) -> f64 = loss_and_gradient_body
}

#[inline(always)]
fn loss_and_slope_body<V: Vector>(margins: &mut [Line], u: &[Line], t: &[Line]) -> Lanes {
    let mut loss = V::splat(0.0);
    for ((margin, u), t) in margins.iter_mut().zip(u).zip(t) {
        let (terms, slope) = of_margins(V::load(margin), V::load(u), V::load(t));
        loss = loss.add(terms);
        margin.0 = slope.lanes();
    }
    loss.lanes()
}

/// u log(1 + eᵐ) − t m and its derivative u σ(m) − t.
#[inline(always)]
fn of_margins<V: Vector>(m: V, u: V, t: V) -> (V, V) {
    let (zero, one) = (V::splat(0.0), V::splat(1.0));
    // e^-|m| never overflows; σ and log(1 + e^m) follow from it on either side of 0.
    let positive = zero.max(m);
    let e = m.sub(positive.add(positive)).exp();
    let (ln, sigma) = one.add(e).ln_and_quotient(m.if_below(zero, e, one));
    (u.mul(positive.add(ln)).sub(t.mul(m)), u.mul(sigma).sub(t))
}

#[inline(always)]
fn loss_and_gradient_body<V: Vector>(
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
        let (terms, slope) = of_margins(m, V::load(&load(u, g)), V::load(&load(t, g)));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Level, available};

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
            let loss = loss_and_slope(level, &mut slopes, &turned(&u), &turned(&t));
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
            let loss = loss_and_slope(Level::Plain, &mut slopes, &lines(&|i| u[i]), &lines(&|i| t[i]))[0];
            for level in available() {
                let mut gradient = vec![f64::NAN; d + 1];
                let found =
                    loss_and_gradient(level, &Panel::new(x.view()), &u, &t, &beta, -0.3, &mut gradient);
                assert!((found - loss).abs() < 1e-12 * loss.abs(), "{level:?}: {found} for {loss}");
                for (j, g) in gradient.iter().enumerate() {
                    let column = |i: usize| if j < d { x[[i, j]] } else { 1.0 };
                    let exact: f64 = slopes.iter().enumerate().map(|(i, s)| s[0] * column(i)).sum();
                    assert!((g - exact).abs() < 1e-12 * (1.0 + exact.abs()), "{level:?}: {g} for {exact}");
                }
            }
        }
    }
}

//! The logistic loss of a run of rows, given their margins.

use super::vector::{LANES, Vector};
use super::{dispatch, load};

dispatch! {
    /// Rows with mass uᵢ of which tᵢ has response 1, at margins mᵢ: turns each margin into its slope uᵢ σ(mᵢ) − tᵢ and
    /// returns Σ uᵢ log(1 + e^mᵢ) − tᵢ mᵢ. Safe for any margin.
    pub fn loss_and_slope(margins: &mut [f64], u: &[f64], t: &[f64]) -> f64 = loss_and_slope_body
}

#[inline(always)]
fn loss_and_slope_body<V: Vector>(margins: &mut [f64], u: &[f64], t: &[f64]) -> f64 {
    let (zero, one) = (V::splat(0.0), V::splat(1.0));
    let mut loss = zero;
    for g in 0..margins.len().div_ceil(LANES) {
        let (m, u, t) = (V::load(&load(margins, g)), V::load(&load(u, g)), V::load(&load(t, g)));
        // e^-|m| never overflows; σ and log(1 + e^m) follow from it on either side of 0.
        let positive = zero.max(m);
        let negative_abs = m.sub(positive.add(positive));
        let e = negative_abs.exp();
        let denominator = one.add(e);
        let sigma = m.if_below(zero, e, one).div(denominator);
        let softplus = positive.add(denominator.ln());
        loss = loss.add(u.mul(softplus).sub(t.mul(m)));
        let slope = u.mul(sigma).sub(t).lanes();
        let run = &mut margins[g * LANES..];
        let len = run.len().min(LANES);
        run[..len].copy_from_slice(&slope[..len]);
    }
    super::vector::sum(&loss.lanes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::available;

    #[test]
    fn every_level_agrees_with_the_definition_at_any_margin() {
        let margins: Vec<f64> =
            (0..101).map(|i| (i as f64 - 50.0) * 0.7).chain([-1e4, 1e4, -745.0, 745.0, 0.0]).collect();
        let u: Vec<f64> = (0..margins.len()).map(|i| 0.1 + (i % 5) as f64).collect();
        let t: Vec<f64> = u.iter().enumerate().map(|(i, u)| u * ((i % 3) as f64 / 2.0)).collect();
        let softplus = |m: f64| m.max(0.0) + libm::log1p(libm::exp(-m.abs()));
        let exact: f64 = margins.iter().zip(&u).zip(&t).map(|((&m, u), t)| u * softplus(m) - t * m).sum();
        for level in available() {
            let mut slopes = margins.clone();
            let loss = loss_and_slope(level, &mut slopes, &u, &t);
            assert!((loss / exact - 1.0).abs() < 1e-13, "{level:?}");
            for (i, slope) in slopes.iter().enumerate() {
                let sigma = 1.0 / (1.0 + libm::exp(-margins[i]));
                assert!((slope - (u[i] * sigma - t[i])).abs() < 1e-14, "{level:?} at {}", margins[i]);
            }
        }
    }
}

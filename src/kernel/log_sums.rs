//! Sums of numbers that are kept as logarithms.

use super::vector::{LANES, Vector};
use super::{dispatch, load};

dispatch! {
    /// Every sum s becomes log(eˢ + w eᵗ), with t the term in its place. Minus infinity is the logarithm of 0.
    pub fn log_add(sums: &mut [f64], log_w: f64, terms: &[f64]) = log_add_body
}

#[inline(always)]
fn log_add_body<V: Vector>(sums: &mut [f64], log_w: f64, terms: &[f64]) {
    let (zero, one, log_w) = (V::splat(0.0), V::splat(1.0), V::splat(log_w));
    for g in 0..sums.len().div_ceil(LANES) {
        let (s, t) = (V::load(&load(sums, g)), V::load(&load(terms, g)).add(log_w));
        let high = s.max(t);
        let apart = s.sub(t);
        let below = apart.if_below(zero, apart, zero.sub(apart));
        let sum = high.add(one.add(below.exp()).ln());
        // Two zeros are infinitely far apart, or not at all: their difference is no number.
        let sum = high.if_below(V::splat(f64::MIN), high, sum).lanes();
        let run = &mut sums[g * LANES..];
        let len = run.len().min(LANES);
        run[..len].copy_from_slice(&sum[..len]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::available;
    use crate::math::log_add_exp;

    #[test]
    fn logarithms_add_up_at_every_level() {
        let none = f64::NEG_INFINITY;
        let s: Vec<f64> =
            (0..50).map(|i| 3.0 * i as f64 - 70.0).chain([none, none, 1.0, -1e300, 5.0]).collect();
        let t: Vec<f64> =
            (0..50).map(|i| 0.7 * i as f64 - 20.0).chain([none, 2.0, none, -3.0, f64::NAN]).collect();
        for level in available() {
            let mut sums = s.clone();
            log_add(level, &mut sums, -0.5, &t);
            for ((sum, &s), &t) in sums.iter().zip(&s).zip(&t) {
                let exact = log_add_exp(s, t - 0.5);
                let same = sum == &exact || sum.is_nan() && exact.is_nan();
                assert!(same || (sum - exact).abs() < 1e-14 * exact.abs().max(1.0), "{level:?}: {s}, {t}");
            }
        }
    }
}

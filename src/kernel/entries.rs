//! Plain vectors, eight entries in step. Nothing is fused: every level gives the bits of [`crate::math::dot`] and of the plain loop.

use super::dispatch;
use super::vector::{LANES, Vector, sum};

dispatch! {
    /// Σ aⱼ bⱼ, in eight partial sums; then what does not fill a vector.
    pub fn dot(a: &[f64], b: &[f64]) -> f64 = dot_body
}

dispatch! {
    /// a + `scale` b in place of a.
    pub fn add_scaled(a: &mut [f64], scale: f64, b: &[f64]) = add_scaled_body
}

#[inline(always)]
fn dot_body<V: Vector>(a: &[f64], b: &[f64]) -> f64 {
    let (a8, a_rest) = a.as_chunks::<LANES>();
    let (b8, b_rest) = b.as_chunks::<LANES>();
    let mut total = V::splat(0.0);
    for (a, b) in a8.iter().zip(b8) {
        total = total.add(V::load(a).mul(V::load(b)));
    }
    let mut rest = 0.0;
    for (a, b) in a_rest.iter().zip(b_rest) {
        rest += a * b;
    }
    sum(&total.lanes()) + rest
}

#[inline(always)]
fn add_scaled_body<V: Vector>(a: &mut [f64], scale: f64, b: &[f64]) {
    let (a8, a_rest) = a.as_chunks_mut::<LANES>();
    let (b8, b_rest) = b.as_chunks::<LANES>();
    let by = V::splat(scale);
    for (a, b) in a8.iter_mut().zip(b8) {
        *a = V::load(a).add(by.mul(V::load(b))).lanes();
    }
    for (a, b) in a_rest.iter_mut().zip(b_rest) {
        *a += scale * b;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::available;

    #[test]
    fn every_level_gives_the_bits_of_the_plain_loops() {
        for n in (0..20).chain([100, 1027]) {
            let values = |salt: usize| -> Vec<f64> {
                (0..n).map(|i| ((i * 7919 + salt * 104_729) % 1009) as f64 / 31.0 - 11.0).collect()
            };
            let (a, b) = (values(1), values(2));
            let moved: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a + 0.3 * b).collect();
            for level in available() {
                assert_eq!(
                    dot(level, &a, &b).to_bits(),
                    crate::math::dot(&a, &b).to_bits(),
                    "{level:?}, n {n}"
                );
                let mut sums = a.clone();
                add_scaled(level, &mut sums, 0.3, &b);
                assert_eq!(sums, moved, "{level:?}, n {n}");
            }
        }
    }
}

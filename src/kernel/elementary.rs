//! The elementary operations by themselves, to test them, and to hold the speed of the other kernels against.

use super::vector::{Arithmetic, LANES, Lanes, Vector, sum};
use super::{Level, Simd, dispatch};

dispatch! {
    /// eˣ of every number, for x ≤ 700.
    pub fn exp_all(x: &mut [Lanes]) = exp_body
}

dispatch! {
    /// eˣ of every number, for x ≤ 80, in singles.
    pub fn exp_singles_all(x: &mut [[Lanes; 2]]) = exp_singles_body
}

dispatch! {
    /// ln x of every number, all positive and normal.
    pub fn ln_all(x: &mut [Lanes]) = ln_body
}

dispatch! {
    /// The same in singles.
    pub fn ln_singles_all(x: &mut [[Lanes; 2]]) = ln_singles_body
}

dispatch! {
    /// −ln x of every number, all positive and normal: the same bits at every level.
    pub fn minus_ln_all(x: &mut [Lanes]) = minus_ln_body
}

#[inline(always)]
fn exp_body<V: Vector>(x: &mut [Lanes]) {
    for x in x {
        *x = V::load(x).exp().lanes();
    }
}

#[inline(always)]
fn exp_singles_body<V: Vector>(x: &mut [[Lanes; 2]]) {
    in_singles::<V>(x, V::Singles::exp);
}

#[inline(always)]
fn ln_body<V: Vector>(x: &mut [Lanes]) {
    for x in x {
        *x = V::load(x).ln().lanes();
    }
}

#[inline(always)]
fn minus_ln_body<V: Vector>(x: &mut [Lanes]) {
    for x in x {
        *x = V::load(x).minus_ln().lanes();
    }
}

#[inline(always)]
fn ln_singles_body<V: Vector>(x: &mut [[Lanes; 2]]) {
    in_singles::<V>(x, V::Singles::ln);
}

#[inline(always)]
fn in_singles<V: Vector>(x: &mut [[Lanes; 2]], f: impl Fn(V::Singles) -> V::Singles) {
    for [a, b] in x {
        let [low, high] = V::doubles(f(V::load(a).singles(V::load(b))));
        (*a, *b) = (low.lanes(), high.lanes());
    }
}

/// As many multiply-adds as possible at once, for the peak of a core: `rounds` of them in each of so many numbers as the
/// answer says, and their sum.
pub fn multiply_add(level: Level, rounds: usize) -> (usize, f64) {
    match level.simd() {
        Simd::Avx512 => (LANES * MANY, multiply_add_many(level, rounds)),
        Simd::Avx2 | Simd::Plain => (LANES * FEW, multiply_add_few(level, rounds)),
    }
}

/// Chains of multiply-adds that keep both units of a core busy, and fit its registers: 32 of eight doubles, or 16 of four.
const MANY: usize = 16;
const FEW: usize = 6;

dispatch! { fn multiply_add_many(rounds: usize) -> f64 = many_body }
dispatch! { fn multiply_add_few(rounds: usize) -> f64 = few_body }

#[inline(always)]
fn many_body<V: Vector>(rounds: usize) -> f64 {
    multiply_add_body::<V, MANY>(rounds)
}

#[inline(always)]
fn few_body<V: Vector>(rounds: usize) -> f64 {
    multiply_add_body::<V, FEW>(rounds)
}

/// x ← x/2 + c, whose fixed point is 2c: nothing overflows or becomes denormal.
#[inline(always)]
fn multiply_add_body<V: Vector, const CHAINS: usize>(rounds: usize) -> f64 {
    let (half, c) = (V::splat(0.5), V::splat(0.25));
    let mut chains: [V; CHAINS] = std::array::from_fn(|i| V::splat(i as f64));
    for _ in 0..rounds {
        for chain in &mut chains {
            *chain = chain.fma(half, c);
        }
    }
    chains.iter().map(|chain| sum(&chain.lanes())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::available;

    #[test]
    fn multiply_adds_reach_their_fixed_point_at_every_level() {
        for level in available() {
            let (numbers, total) = multiply_add(level, 100);
            assert_eq!(total, 0.5 * numbers as f64, "{level:?}");
        }
    }
}

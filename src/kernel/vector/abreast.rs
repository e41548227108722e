//! Several vectors as one. A function of a number is a chain of operations that wait for each other, and a CPU looks for what is ready
//! among the next hundred or so: that is less than two such chains. Here an operation is made of all vectors before the next, so that
//! none waits. The compiler would undo that, to need fewer registers: products, which make up a chain, stay where they are.

use super::{Arithmetic, Format};

/// An operation of one vector after the other. A loop: a closure would not always be inlined.
macro_rules! each {
    ($i:ident => $operation:expr) => {{
        let mut out = [V::splat(0.0); N];
        for $i in 0..N {
            out[$i] = $operation;
        }
        out
    }};
}

impl<V: Arithmetic, const N: usize> Arithmetic for [V; N] {
    const FORMAT: Format = V::FORMAT;

    #[inline(always)]
    fn splat(value: f64) -> Self {
        [V::splat(value); N]
    }
    #[inline(always)]
    fn add(self, b: Self) -> Self {
        each!(i => self[i].add(b[i]))
    }
    #[inline(always)]
    fn sub(self, b: Self) -> Self {
        each!(i => self[i].sub(b[i]))
    }
    #[inline(always)]
    fn mul(self, b: Self) -> Self {
        each!(i => self[i].mul(b[i]).in_place())
    }
    #[inline(always)]
    fn div(self, b: Self) -> Self {
        each!(i => self[i].div(b[i]))
    }
    #[inline(always)]
    fn fma(self, b: Self, c: Self) -> Self {
        each!(i => self[i].fma(b[i], c[i]).in_place())
    }
    #[inline(always)]
    fn max(self, b: Self) -> Self {
        each!(i => self[i].max(b[i]))
    }
    #[inline(always)]
    fn if_below(self, limit: Self, yes: Self, no: Self) -> Self {
        each!(i => self[i].if_below(limit[i], yes[i], no[i]))
    }
    #[inline(always)]
    fn power_of_two(self) -> Self {
        each!(i => self[i].power_of_two())
    }
    #[inline(always)]
    fn split(self) -> (Self, Self) {
        let (mut exponents, mut mantissas) = (self, self);
        for i in 0..N {
            (exponents[i], mantissas[i]) = self[i].split();
        }
        (exponents, mantissas)
    }
}

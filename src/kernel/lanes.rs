//! Vectors in step, one a lane, entry after entry.

use super::dispatch;
use super::vector::{Arithmetic, Line, Register, Scalar, Vector};

dispatch! {
    /// Σⱼ xⱼ yⱼ of every lane.
    pub fn dots[T, L](x: &[Line<T, L>], y: &[Line<T, L>]) -> [f64; L] = dots_body
}

#[inline(always)]
fn dots_body<V: Vector, T: Scalar<L>, const L: usize>(x: &[Line<T, L>], y: &[Line<T, L>]) -> [f64; L] {
    let mut sums = <T::In<V>>::splat(0.0);
    for (x, y) in x.iter().zip(y) {
        sums = <T::In<V>>::load(x).fma(<T::In<V>>::load(y), sums);
    }
    sums.lanes().map(Into::into)
}

dispatch! {
    /// The largest |xⱼ| of every lane.
    pub fn largest[T, L](x: &[Line<T, L>]) -> [f64; L] = largest_body
}

#[inline(always)]
fn largest_body<V: Vector, T: Scalar<L>, const L: usize>(x: &[Line<T, L>]) -> [f64; L] {
    let zero = <T::In<V>>::splat(0.0);
    let mut most = zero;
    for x in x {
        let x = <T::In<V>>::load(x);
        most = x.max(zero.sub(x)).max(most);
    }
    most.lanes().map(Into::into)
}

dispatch! {
    /// x + `step` y, a step for every lane.
    pub fn along[T, L](x: &[Line<T, L>], step: [f64; L], y: &[Line<T, L>], out: &mut [Line<T, L>]) = along_body
}

#[inline(always)]
fn along_body<V: Vector, T: Scalar<L>, const L: usize>(
    x: &[Line<T, L>],
    step: [f64; L],
    y: &[Line<T, L>],
    out: &mut [Line<T, L>],
) {
    let step = <T::In<V>>::load(&step.map(T::of));
    for ((x, y), out) in x.iter().zip(y).zip(out) {
        out.0 = step.fma(<T::In<V>>::load(y), <T::In<V>>::load(x)).lanes();
    }
}

dispatch! {
    /// Columns of `len` numbers, one after the other and one for each lane, into the first lines of `out`; lanes beyond the last column
    /// stay as they are.
    pub fn interleaved[T, L](columns: &[f64], len: usize, out: &mut [Line<T, L>]) = interleaved_body
}

#[inline(always)]
fn interleaved_body<V: Vector, T: Scalar<L>, const L: usize>(
    columns: &[f64],
    len: usize,
    out: &mut [Line<T, L>],
) {
    // Eight rows at a time: of a column those are one line of the cache.
    for (piece, out) in out.chunks_mut(8).enumerate() {
        for lane in 0..L {
            let rows = columns.get(lane * len + 8 * piece..(lane + 1) * len).unwrap_or_default();
            for (out, value) in out.iter_mut().zip(rows) {
                out[lane] = T::of(*value);
            }
        }
    }
}

dispatch! {
    /// Adds x to y.
    pub fn add[T, L](x: &[Line<T, L>], y: &mut [Line<T, L>]) = add_body
}

#[inline(always)]
fn add_body<V: Vector, T: Scalar<L>, const L: usize>(x: &[Line<T, L>], y: &mut [Line<T, L>]) {
    for (x, y) in x.iter().zip(y) {
        y.0 = <T::In<V>>::load(x).add(<T::In<V>>::load(y)).lanes();
    }
}

dispatch! {
    /// y times x, entry by entry.
    pub fn multiply[T, L](x: &[Line<T, L>], y: &mut [Line<T, L>]) = multiply_body
}

#[inline(always)]
fn multiply_body<V: Vector, T: Scalar<L>, const L: usize>(x: &[Line<T, L>], y: &mut [Line<T, L>]) {
    for (x, y) in x.iter().zip(y) {
        y.0 = <T::In<V>>::load(x).mul(<T::In<V>>::load(y)).lanes();
    }
}

dispatch! {
    /// Adds x times y, entry by entry.
    pub fn add_products[T, L](x: &[Line<T, L>], y: &[Line<T, L>], out: &mut [Line<T, L>]) = add_products_body
}

#[inline(always)]
fn add_products_body<V: Vector, T: Scalar<L>, const L: usize>(
    x: &[Line<T, L>],
    y: &[Line<T, L>],
    out: &mut [Line<T, L>],
) {
    for ((x, y), out) in x.iter().zip(y).zip(out) {
        out.0 = <T::In<V>>::load(x).fma(<T::In<V>>::load(y), <T::In<V>>::load(out)).lanes();
    }
}

/// 1 in the lanes that are chosen, 0 in the others.
#[inline(always)]
pub(super) fn mask<R: Register<T, L>, T: Scalar<L>, const L: usize>(chosen: [bool; L]) -> R {
    R::load(&chosen.map(|chosen| T::of(f64::from(u8::from(chosen)))))
}

dispatch! {
    /// In the chosen lanes `to` becomes `by` times `from`; the others stay as they are.
    pub fn replace[T, L](chosen: [bool; L], by: f64, from: &[Line<T, L>], to: &mut [Line<T, L>]) = replace_body
}

#[inline(always)]
fn replace_body<V: Vector, T: Scalar<L>, const L: usize>(
    chosen: [bool; L],
    by: f64,
    from: &[Line<T, L>],
    to: &mut [Line<T, L>],
) {
    let (chosen, half) = (mask::<T::In<V>, T, L>(chosen), <T::In<V>>::splat(0.5));
    let by = <T::In<V>>::splat(by);
    for (from, to) in from.iter().zip(to) {
        let new = <T::In<V>>::load(from).mul(by);
        to.0 = chosen.if_below(half, <T::In<V>>::load(to), new).lanes();
    }
}

dispatch! {
    /// `to` − `from` in the chosen lanes, 0 in the others.
    pub fn differences[T, L](
        chosen: [bool; L], to: &[Line<T, L>], from: &[Line<T, L>], out: &mut [Line<T, L>]
    ) = differences_body
}

#[inline(always)]
fn differences_body<V: Vector, T: Scalar<L>, const L: usize>(
    chosen: [bool; L],
    to: &[Line<T, L>],
    from: &[Line<T, L>],
    out: &mut [Line<T, L>],
) {
    let (chosen, half) = (mask::<T::In<V>, T, L>(chosen), <T::In<V>>::splat(0.5));
    let zero = <T::In<V>>::splat(0.0);
    for ((to, from), out) in to.iter().zip(from).zip(out) {
        let difference = <T::In<V>>::load(to).sub(<T::In<V>>::load(from));
        out.0 = chosen.if_below(half, zero, difference).lanes();
    }
}

dispatch! {
    /// x times a factor for every lane.
    pub fn scale[T, L](by: [f64; L], x: &mut [Line<T, L>]) = scale_body
}

#[inline(always)]
fn scale_body<V: Vector, T: Scalar<L>, const L: usize>(by: [f64; L], x: &mut [Line<T, L>]) {
    let by = <T::In<V>>::load(&by.map(T::of));
    for x in x {
        x.0 = <T::In<V>>::load(x).mul(by).lanes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{LANES, Level, SINGLES, available};

    #[test]
    fn every_level_and_format_agrees_with_the_definition() {
        for level in available() {
            agrees::<f64, LANES>(level);
            agrees::<f32, SINGLES>(level);
        }
    }

    /// Multiples of 1/8 below 8: sums and products of a few are exact in both formats.
    fn lines<T: Scalar<L>, const L: usize>(from: usize) -> Vec<Line<T, L>> {
        let number = |i: usize| ((i * 7919 + 13) % 97) as f64 / 8.0 - 6.0;
        (0..5).map(|j| Line(std::array::from_fn(|l| T::of(number(from + L * j + l))))).collect()
    }

    fn agrees<T: Scalar<L>, const L: usize>(level: Level) {
        let (x, y) = (lines::<T, L>(3), lines::<T, L>(500));
        let at = |x: &[Line<T, L>], j: usize, l: usize| -> f64 { x[j][l].into() };
        let [mut out, mut to, mut apart, mut scaled, mut total] = [&x, &y, &x, &x, &x].map(|x| x.clone());
        let [mut multiplied, mut sums] = [&x, &y].map(|x| x.clone());
        let by: [f64; L] = std::array::from_fn(|l| l as f64 / 4.0);
        let chosen: [bool; L] = std::array::from_fn(|l| l % 3 == 1);
        // What is not a number in a lane that is not chosen stays there.
        let mut wild = x.clone();
        wild[2][0] = T::of(f64::NAN);
        along(level, &x, by, &y, &mut out);
        replace(level, chosen, -2.0, &wild, &mut to);
        differences(level, chosen, &wild, &y, &mut apart);
        scale(level, by, &mut scaled);
        add(level, &y, &mut total);
        multiply(level, &y, &mut multiplied);
        add_products(level, &x, &y, &mut sums);
        let (products, most) = (dots(level, &x, &y), largest(level, &x));
        for l in 0..L {
            let exact: f64 = (0..5).map(|j| at(&x, j, l) * at(&y, j, l)).sum();
            assert_eq!(products[l], exact, "{level:?}");
            assert_eq!(most[l], (0..5).map(|j| at(&x, j, l).abs()).fold(0.0, f64::max), "{level:?}");
            for j in 0..5 {
                let (x, y) = (at(&x, j, l), at(&y, j, l));
                assert_eq!(at(&out, j, l), x + by[l] * y, "{level:?}");
                assert_eq!(at(&to, j, l), if chosen[l] { -2.0 * x } else { y }, "{level:?}");
                assert_eq!(at(&apart, j, l), if chosen[l] { x - y } else { 0.0 }, "{level:?}");
                assert_eq!(at(&scaled, j, l), by[l] * x, "{level:?}");
                assert_eq!(at(&total, j, l), x + y, "{level:?}");
                assert_eq!(at(&multiplied, j, l), x * y, "{level:?}");
                assert_eq!(at(&sums, j, l), x * y + y, "{level:?}");
            }
        }
    }
}

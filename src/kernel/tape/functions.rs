//! Elementary functions on all numbers, each with its slope: what the operations of a tape are made of. Those of
//! [`Arithmetic`](crate::kernel::Arithmetic) hold where their caller knows the range; these hold everywhere.

use crate::kernel::vector::Vector;

#[inline(always)]
fn c<V: Vector>(value: f64) -> V {
    V::splat(value)
}

#[inline(always)]
pub fn minus<V: Vector>(x: V) -> V {
    c::<V>(0.0).sub(x)
}

/// The larger, NaN if the first is.
#[inline(always)]
pub fn larger<V: Vector>(a: V, b: V) -> V {
    a.if_below(b, b, a)
}

#[inline(always)]
pub fn abs<V: Vector>(x: V) -> V {
    x.max(minus(x))
}

/// 1 where a < b, else 0.
#[inline(always)]
pub fn less<V: Vector>(a: V, b: V) -> V {
    a.if_below(b, c(1.0), c(0.0))
}

/// `yes` where x is 0, else `no`.
#[inline(always)]
pub fn if_zero<V: Vector>(x: V, yes: V, no: V) -> V {
    abs(x).if_below(c(f64::from_bits(1)), yes, no)
}

/// The product, but nothing of nothing: what is not looked at may be infinite.
#[inline(always)]
pub fn share<V: Vector>(adjoint: V, slope: V) -> V {
    if_zero(adjoint, c(0.0), adjoint.mul(slope))
}

/// −1, 0 or 1.
#[inline(always)]
pub fn sign<V: Vector>(x: V) -> V {
    x.if_below(c(0.0), c(-1.0), c::<V>(0.0).if_below(x, c(1.0), c(0.0)))
}

/// eˣ, infinite where it overflows.
#[inline(always)]
pub fn exp<V: Vector>(x: V) -> V {
    let high = c::<V>(700.0);
    // 2⁶⁴ is taken off and put back; beyond 800 there is nothing but infinity.
    let shifted = x.sub(c(64.0 * std::f64::consts::LN_2));
    let bounded = c::<V>(800.0).if_below(x, c(690.0), shifted);
    let large = high.if_below(x, c(18_446_744_073_709_551_616.0), c(1.0));
    let all = high.if_below(x, bounded, x).exp().mul(large);
    c::<V>(800.0).if_below(x, c(f64::INFINITY), all)
}

/// ln x: −∞ at 0, NaN below.
#[inline(always)]
pub fn ln<V: Vector>(x: V) -> V {
    let (zero, infinite) = (c::<V>(0.0), c::<V>(f64::INFINITY));
    let tiny = c::<V>(f64::MIN_POSITIVE);
    let inside = x.if_below(tiny, x.mul(c(18_014_398_509_481_984.0)), x).ln();
    let value = inside.sub(x.if_below(tiny, c(54.0 * std::f64::consts::LN_2), zero));
    let value = x.if_below(infinite, value, x);
    let value = x.if_below(zero, c(f64::NAN), value);
    if_zero(x, c(f64::NEG_INFINITY), value)
}

/// ln(1 + x) to all digits, for x > −1.
#[inline(always)]
pub fn log1p<V: Vector>(x: V) -> V {
    let one = c::<V>(1.0);
    let u = one.add(x);
    let (e, m) = u.split();
    // Where 1 + x is its own mantissa, x itself is what that is above 1.
    let f = abs(e).if_below(c(0.5), x, m.sub(one));
    let value = V::ln_of_split(e, f, f.div(f.add(c(2.0))));
    let value = u.if_below(c(f64::INFINITY), value, u);
    let value = u.if_below(c(f64::MIN_POSITIVE), c(f64::NAN), value);
    if_zero(u, c(f64::NEG_INFINITY), value)
}

/// eˣ − 1 to all digits, given eˣ (Kahan).
#[inline(always)]
pub fn expm1<V: Vector>(x: V, e: V) -> V {
    let above = e.sub(c(1.0));
    let near = if_zero(above, x, above.mul(x.div(ln(e))));
    abs(x).if_below(c(0.5), near, above)
}

/// 1/(1 + e⁻ˣ) and its slope, from e^−|x|.
#[inline(always)]
pub fn expit<V: Vector>(x: V) -> (V, V) {
    let (zero, one) = (c::<V>(0.0), c::<V>(1.0));
    let e = minus(abs(x)).exp();
    let share = one.div(one.add(e));
    (share.mul(x.if_below(zero, e, one)), e.mul(share).mul(share))
}

/// ln(1 + eˣ) and its slope: one exponential, one division for both.
#[inline(always)]
pub fn softplus<V: Vector>(x: V) -> (V, V) {
    let (zero, one) = (c::<V>(0.0), c::<V>(1.0));
    let e = minus(abs(x)).exp();
    let u = one.add(e);
    let (exponent, m) = u.split();
    let f = abs(exponent).if_below(c(0.5), e, m.sub(one));
    let above = f.add(c(2.0));
    let both = one.div(u.mul(above));
    let ln = V::ln_of_split(exponent, f, f.mul(u.mul(both)));
    (larger(x, zero).add(ln), x.if_below(zero, e, one).mul(above.mul(both)))
}

/// tanh x and its slope.
#[inline(always)]
pub fn tanh<V: Vector>(x: V) -> (V, V) {
    let one = c::<V>(1.0);
    let twice = minus(abs(x).add(abs(x)));
    let e = twice.exp();
    let below = expm1(twice, e);
    let share = one.div(one.add(e));
    (sign(x).mul(minus(below)).mul(share), c::<V>(4.0).mul(e).mul(share).mul(share))
}

/// aᵇ for a ≥ 0, by logarithms.
#[inline(always)]
pub fn power<V: Vector>(a: V, b: V) -> V {
    let value = exp(b.mul(ln(a)));
    let at_zero = b.if_below(c(0.0), c(f64::INFINITY), c(0.0));
    if_zero(b, c(1.0), if_zero(a, at_zero, value))
}

/// x to a whole power, by squaring.
#[inline(always)]
pub fn whole_power<V: Vector>(x: V, k: i32) -> V {
    let one = c::<V>(1.0);
    let (mut square, mut left, mut value) = (x, k.unsigned_abs(), one);
    while left > 0 {
        if left & 1 == 1 {
            value = value.mul(square);
        }
        square = square.mul(square);
        left >>= 1;
    }
    if k < 0 { one.div(value) } else { value }
}

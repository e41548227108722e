//! Arithmetic on eight doubles in step, as plain array code that the compiler turns into vector instructions, with
//! exponential and logarithm of our own: the platform's are scalar, and differ between platforms.

pub const LANES: usize = 8;
pub type Lanes = [f64; LANES];

/// How a·b + c is rounded: once or twice.
pub trait Arithmetic {
    fn fma(a: f64, b: f64, c: f64) -> f64;
}

/// One rounding: needs the FMA instruction to be fast.
pub struct Fused;
impl Arithmetic for Fused {
    #[inline(always)]
    fn fma(a: f64, b: f64, c: f64) -> f64 {
        a.mul_add(b, c)
    }
}

/// Two roundings: what a CPU without FMA does well.
pub struct Unfused;
impl Arithmetic for Unfused {
    #[inline(always)]
    fn fma(a: f64, b: f64, c: f64) -> f64 {
        a * b + c
    }
}

#[inline(always)]
pub fn map(f: impl Fn(usize) -> f64) -> Lanes {
    let mut out = [0.0; LANES];
    let mut l = 0;
    while l < LANES {
        out[l] = f(l);
        l += 1;
    }
    out
}

/// acc += a · b, lane by lane.
#[inline(always)]
pub fn add_product<A: Arithmetic>(acc: &mut Lanes, a: &Lanes, b: &Lanes) {
    *acc = map(|l| A::fma(a[l], b[l], acc[l]));
}

#[inline(always)]
pub fn add(acc: &mut Lanes, a: &Lanes) {
    *acc = map(|l| acc[l] + a[l]);
}

/// Sum over the lanes, always in the same order.
#[inline(always)]
pub fn sum(x: &Lanes) -> f64 {
    ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]))
}

/// 1.5 · 2⁵²: adding it rounds to an integer that then sits in the low bits.
const ROUND: f64 = 6755399441055744.0;
const LOG2_E: f64 = std::f64::consts::LOG2_E;
/// ln 2 in two parts; the first has trailing zeros, so that its product with an integer is exact.
const LN2_HIGH: f64 = 6.931_471_803_691_238e-1;
const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
/// Below this the result is zero; exp(−708) is still a normal number.
const EXP_ZERO: f64 = -708.0;

/// exp(x) for x ≤ 700, to about 1 unit in the last place; 0 below −708. NaN for NaN.
#[inline(always)]
pub fn exp<A: Arithmetic>(x: &Lanes) -> Lanes {
    map(|l| {
        let v = if x[l] < EXP_ZERO { EXP_ZERO } else { x[l] };
        let shifted = A::fma(v, LOG2_E, ROUND);
        let k = shifted - ROUND;
        let r = A::fma(-k, LN2_LOW, A::fma(-k, LN2_HIGH, v));
        // Taylor polynomial of degree 13 on |r| ≤ ln 2 / 2: truncation below 2⁻⁵⁷.
        let mut p = 1.0 / 6_227_020_800.0;
        p = A::fma(p, r, 1.0 / 479_001_600.0);
        p = A::fma(p, r, 1.0 / 39_916_800.0);
        p = A::fma(p, r, 1.0 / 3_628_800.0);
        p = A::fma(p, r, 1.0 / 362_880.0);
        p = A::fma(p, r, 1.0 / 40_320.0);
        p = A::fma(p, r, 1.0 / 5_040.0);
        p = A::fma(p, r, 1.0 / 720.0);
        p = A::fma(p, r, 1.0 / 120.0);
        p = A::fma(p, r, 1.0 / 24.0);
        p = A::fma(p, r, 1.0 / 6.0);
        p = A::fma(p, r, 0.5);
        p = A::fma(p, r, 1.0);
        p = A::fma(p, r, 1.0);
        let scale = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
        if x[l] < EXP_ZERO { 0.0 } else { p * scale }
    })
}

/// ln(x) for positive normal x, to about 1 unit in the last place. NaN for NaN.
#[inline(always)]
pub fn ln<A: Arithmetic>(x: &Lanes) -> Lanes {
    const MANTISSA: u64 = (1 << 52) - 1;
    const ONE: u64 = 1023 << 52;
    /// The bits of √½: subtracting them first centres the mantissa on 1, in [√½, √2).
    const SQRT_HALF: u64 = 0x3fe6_a09e_667f_3bcd;
    /// 2⁵² as a double: its low bits hold an integer.
    const TWO52: u64 = 0x4330_0000_0000_0000;
    map(|l| {
        let bits = x[l].to_bits();
        let shifted = bits.wrapping_add(ONE).wrapping_sub(SQRT_HALF);
        let e = f64::from_bits((shifted >> 52) | TWO52) - (4_503_599_627_370_496.0 + 1023.0);
        let m = f64::from_bits((shifted & MANTISSA).wrapping_add(SQRT_HALF));
        let f = m - 1.0;
        let s = f / (2.0 + f);
        let z = s * s;
        // 2 atanh(s) = ln m; |s| ≤ 0.1716, the next term is below 2⁻⁵⁸ of the first.
        let mut p = 2.0 / 21.0;
        p = A::fma(p, z, 2.0 / 19.0);
        p = A::fma(p, z, 2.0 / 17.0);
        p = A::fma(p, z, 2.0 / 15.0);
        p = A::fma(p, z, 2.0 / 13.0);
        p = A::fma(p, z, 2.0 / 11.0);
        p = A::fma(p, z, 2.0 / 9.0);
        p = A::fma(p, z, 2.0 / 7.0);
        p = A::fma(p, z, 2.0 / 5.0);
        p = A::fma(p, z, 2.0 / 3.0);
        // ln m = f − s (f − z p): keeps the leading term exact.
        let tail = s * (f - z * p);
        let result = A::fma(e, LN2_HIGH, f - (tail - e * LN2_LOW));
        if x[l].is_nan() { f64::NAN } else { result }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worst<F: Fn(&Lanes) -> Lanes>(f: F, exact: fn(f64) -> f64, points: impl Iterator<Item = f64>) -> f64 {
        let points: Vec<f64> = points.collect();
        let mut worst: f64 = 0.0;
        for chunk in points.chunks_exact(LANES) {
            let x: Lanes = chunk.try_into().unwrap();
            for (value, x) in f(&x).iter().zip(x) {
                let e = exact(x);
                worst = worst.max((value - e).abs() / e.abs().max(f64::MIN_POSITIVE));
            }
        }
        worst
    }

    #[test]
    fn exp_is_exact_to_a_few_units() {
        let points = || (0..800_000).map(|i| -708.0 + i as f64 * 0.001_76);
        assert!(worst(exp::<Fused>, libm::exp, points()) < 4.0 * f64::EPSILON);
        assert!(worst(exp::<Unfused>, libm::exp, points()) < 4.0 * f64::EPSILON);
        assert_eq!(exp::<Fused>(&[0.0; LANES]), [1.0; LANES]);
        assert_eq!(exp::<Fused>(&[f64::NEG_INFINITY; LANES]), [0.0; LANES]);
        assert_eq!(exp::<Fused>(&[-1e9; LANES]), [0.0; LANES]);
        assert!(exp::<Fused>(&[f64::NAN; LANES])[0].is_nan());
    }

    #[test]
    fn ln_is_exact_to_a_few_units() {
        let wide = || (0..800_000).map(|i| libm::exp(-700.0 + i as f64 * 0.001_75));
        let near_one = || (0..80_000).map(|i| 0.6 + i as f64 * 1.1e-5).filter(|x| (x - 1.0).abs() > 1e-9);
        for points in [wide().collect::<Vec<_>>(), near_one().collect()] {
            assert!(worst(ln::<Fused>, libm::log, points.iter().copied()) < 4.0 * f64::EPSILON);
            assert!(worst(ln::<Unfused>, libm::log, points.iter().copied()) < 4.0 * f64::EPSILON);
        }
        assert_eq!(ln::<Fused>(&[1.0; LANES]), [0.0; LANES]);
        assert!(ln::<Fused>(&[f64::NAN; LANES])[0].is_nan());
    }
}

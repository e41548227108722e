//! Eight doubles in step: one vector of AVX-512, two of AVX2, or a plain array. Kernels are written once over
//! [`Vector`]. Written with intrinsics because the compiler, left to itself, turns a third of the exponential into
//! scalar code, and `std::simd` is not stable. Exponential and logarithm are our own: the platform's are scalar, and
//! differ between platforms.

pub const LANES: usize = 8;
pub type Lanes = [f64; LANES];

/// Eight doubles that fill a line of the cache: a vector that lies across two costs two loads.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C, align(64))]
pub struct Line(pub Lanes);

impl std::ops::Deref for Line {
    type Target = Lanes;

    fn deref(&self) -> &Lanes {
        &self.0
    }
}

impl std::ops::DerefMut for Line {
    fn deref_mut(&mut self) -> &mut Lanes {
        &mut self.0
    }
}

/// Eight doubles in step.
///
/// Implementations for a CPU feature may be used only inside a function compiled for that feature.
pub trait Vector: Copy {
    /// Vectors that stay in registers through a loop: what a kernel sums up at once.
    const SUMS: usize;

    fn splat(value: f64) -> Self;
    fn load(lanes: &Lanes) -> Self;
    fn lanes(self) -> Lanes;
    fn add(self, b: Self) -> Self;
    fn sub(self, b: Self) -> Self;
    fn mul(self, b: Self) -> Self;
    fn div(self, b: Self) -> Self;
    fn sqrt(self) -> Self;
    /// self · b + c, in one rounding where the CPU has it.
    fn fma(self, b: Self, c: Self) -> Self;
    /// The larger; the second if one is NaN.
    fn max(self, b: Self) -> Self;
    /// `yes` where self < limit, else `no`.
    fn if_below(self, limit: Self, yes: Self, no: Self) -> Self;
    /// A bit for each lane that is not below the limit: NaN is not.
    fn not_below(self, limit: Self) -> u8;
    /// Asks for memory that will be read soon. A hint: plain code does without.
    fn fetch<T>(_: &[T]) {}
    /// 2ᵏ from a double whose low bits hold the integer k.
    fn power_of_two(self) -> Self;
    /// e and m with self = 2ᵉ m and √½ ≤ m < √2, for positive normal numbers.
    fn split(self) -> (Self, Self);

    /// exp(x) for x ≤ 700, to about 1 unit in the last place; 0 below −708. NaN for NaN.
    #[inline(always)]
    fn exp(self) -> Self {
        // The polynomial of degree 11 through eʳ at the Chebyshev points of |r| ≤ ln 2 / 2: within 2·10⁻¹⁷.
        let coefficients = [
            2.510_038_549_551_032e-8,
            2.762_008_844_540_974_6e-7,
            2.755_726_845_999_706_4e-6,
            2.480_152_129_595_437_6e-5,
            1.984_126_986_305_361_8e-4,
            1.388_888_891_721_371_7e-3,
            8.333_333_333_330_062e-3,
            4.166_666_666_662_413e-2,
            1.666_666_666_666_666_9e-1,
            0.500_000_000_000_000_1,
            1.0,
            1.0,
        ];
        self.exp_by(&[LN2_HIGH, LN2_LOW], &coefficients)
    }

    /// exp(x) as above, but only to 3·10⁻¹⁰.
    #[inline(always)]
    fn exp_roughly(self) -> Self {
        // The same of degree 7.
        let coefficients = [
            1.989_099_082_467_365_4e-4,
            1.393_364_999_630_925_1e-3,
            8.333_310_925_480_9e-3,
            4.166_646_492_528_590_4e-2,
            1.666_666_668_162_323_2e-1,
            0.500_000_001_346_581,
            1.0,
            1.0,
        ];
        self.exp_by(&[std::f64::consts::LN_2], &coefficients)
    }

    /// 2ᵏ p(x − k ln 2), with ln 2 in parts and p by its coefficients, highest power first.
    #[inline(always)]
    fn exp_by<const L: usize, const N: usize>(self, ln2: &[f64; L], coefficients: &[f64; N]) -> Self {
        let c = |value: f64| Self::splat(value);
        let limit = c(EXP_ZERO);
        // max keeps its second argument where one is NaN.
        let v = limit.max(self);
        let shifted = v.fma(c(std::f64::consts::LOG2_E), c(ROUND));
        let k = shifted.sub(c(ROUND));
        let mut r = v;
        for part in ln2 {
            r = k.fma(c(-part), r);
        }
        let mut p = c(coefficients[0]);
        for coefficient in &coefficients[1..] {
            p = p.fma(r, c(*coefficient));
        }
        self.if_below(limit, c(0.0), p.mul(shifted.power_of_two()))
    }

    /// ln(x) for positive normal x, to about 1 unit in the last place.
    #[inline(always)]
    fn ln(self) -> Self {
        let (e, m) = self.split();
        let f = m.sub(Self::splat(1.0));
        Self::ln_of_split(e, f, f.div(f.add(Self::splat(2.0))))
    }

    /// ln(x) and `numerator`/x, to about 2 units in the last place: one division for both.
    #[inline(always)]
    fn ln_and_quotient(self, numerator: Self) -> (Self, Self) {
        let (e, m) = self.split();
        let f = m.sub(Self::splat(1.0));
        let above = f.add(Self::splat(2.0));
        let both = Self::splat(1.0).div(self.mul(above));
        (Self::ln_of_split(e, f, f.mul(self.mul(both))), numerator.mul(above.mul(both)))
    }

    /// ln(2ᵉ (1 + f)), given s = f/(f + 2).
    #[inline(always)]
    fn ln_of_split(e: Self, f: Self, s: Self) -> Self {
        let c = |value: f64| Self::splat(value);
        let z = s.mul(s);
        // 2 atanh(s) = ln m = 2s + s z p(z), p through the Chebyshev points of |s| ≤ 0.1716: within 5·10⁻¹⁸.
        let mut p = c(1.461_658_542_488_862_3e-1);
        for coefficient in [
            1.533_171_061_821_077_3e-1,
            1.818_288_945_567_494_7e-1,
            2.222_221_113_025_987_8e-1,
            2.857_142_862_600_327e-1,
            3.999_999_999_989_944_4e-1,
            6.666_666_666_666_67e-1,
        ] {
            p = p.fma(z, c(coefficient));
        }
        // ln m = f − s (f − z p): keeps the leading term exact.
        let tail = s.mul(f.sub(z.mul(p)));
        e.fma(c(LN2_HIGH), f.sub(tail.sub(e.mul(c(LN2_LOW)))))
    }
}

/// Sum over the lanes, always in the same order.
#[inline(always)]
pub fn sum(x: &Lanes) -> f64 {
    ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]))
}

/// 1.5 · 2⁵²: adding it rounds to an integer that then sits in the low bits.
const ROUND: f64 = 6755399441055744.0;
/// ln 2 in two parts; the first has trailing zeros, so that its product with an integer is exact.
const LN2_HIGH: f64 = 6.931_471_803_691_238e-1;
const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
/// Below this the result is zero; exp(−708) is still a normal number.
const EXP_ZERO: f64 = -708.0;

const BIAS: u64 = 1023;
const MANTISSA: u64 = (1 << 52) - 1;
/// The bits of √½: subtracting them first centres the mantissa on 1.
const SQRT_HALF: u64 = 0x3fe6_a09e_667f_3bcd;
/// 2⁵² as a double: its low bits hold an integer.
const TWO52_BITS: u64 = 0x4330_0000_0000_0000;
const TWO52_AND_BIAS: f64 = 4_503_599_627_370_496.0 + 1023.0;

/// Plain code: what every CPU has, and what the others are tested against.
#[derive(Clone, Copy)]
pub struct Plain(Lanes);

impl Plain {
    #[inline(always)]
    fn map(f: impl Fn(usize) -> f64) -> Plain {
        Plain(std::array::from_fn(f))
    }
}

impl Vector for Plain {
    const SUMS: usize = 4;

    #[inline(always)]
    fn splat(value: f64) -> Self {
        Plain([value; LANES])
    }
    #[inline(always)]
    fn load(lanes: &Lanes) -> Self {
        Plain(*lanes)
    }
    #[inline(always)]
    fn lanes(self) -> Lanes {
        self.0
    }
    #[inline(always)]
    fn add(self, b: Self) -> Self {
        Plain::map(|l| self.0[l] + b.0[l])
    }
    #[inline(always)]
    fn sub(self, b: Self) -> Self {
        Plain::map(|l| self.0[l] - b.0[l])
    }
    #[inline(always)]
    fn mul(self, b: Self) -> Self {
        Plain::map(|l| self.0[l] * b.0[l])
    }
    #[inline(always)]
    fn div(self, b: Self) -> Self {
        Plain::map(|l| self.0[l] / b.0[l])
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        Plain::map(|l| self.0[l].sqrt())
    }
    #[inline(always)]
    fn fma(self, b: Self, c: Self) -> Self {
        Plain::map(|l| self.0[l] * b.0[l] + c.0[l])
    }
    #[inline(always)]
    fn max(self, b: Self) -> Self {
        Plain::map(|l| if self.0[l] > b.0[l] { self.0[l] } else { b.0[l] })
    }
    #[inline(always)]
    fn if_below(self, limit: Self, yes: Self, no: Self) -> Self {
        Plain::map(|l| if self.0[l] < limit.0[l] { yes.0[l] } else { no.0[l] })
    }
    #[inline(always)]
    fn not_below(self, limit: Self) -> u8 {
        let below = |(a, b): (f64, f64)| a < b;
        let lanes = self.0.into_iter().zip(limit.0).enumerate();
        lanes.map(|(l, pair)| u8::from(!below(pair)) << l).sum()
    }
    #[inline(always)]
    fn power_of_two(self) -> Self {
        Plain::map(|l| f64::from_bits(self.0[l].to_bits().wrapping_add(BIAS) << 52))
    }
    #[inline(always)]
    fn split(self) -> (Self, Self) {
        let shifted = |l: usize| self.0[l].to_bits().wrapping_add((BIAS << 52) - SQRT_HALF);
        let e = Plain::map(|l| f64::from_bits((shifted(l) >> 52) | TWO52_BITS) - TWO52_AND_BIAS);
        let m = Plain::map(|l| f64::from_bits((shifted(l) & MANTISSA).wrapping_add(SQRT_HALF)));
        (e, m)
    }
}

#[cfg(target_arch = "x86_64")]
pub use x86::{Avx2, Avx512};

/// SAFETY of this module: every intrinsic needs a CPU feature, and is reached only from kernels that `dispatch!`
/// compiles for that feature and calls after the feature was detected. Loads and stores go through references to
/// arrays of the right length and ask for no alignment.
#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::*;
    use std::arch::x86_64::*;

    /// Each line of the cache that holds some of the items.
    #[inline(always)]
    fn fetch<T>(items: &[T]) {
        for item in items.iter().step_by((64 / size_of::<T>()).max(1)) {
            unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(item).cast()) };
        }
    }

    /// One vector of AVX-512.
    #[derive(Clone, Copy)]
    pub struct Avx512(__m512d);

    impl Vector for Avx512 {
        const SUMS: usize = 16;

        #[inline(always)]
        fn splat(value: f64) -> Self {
            Avx512(unsafe { _mm512_set1_pd(value) })
        }
        #[inline(always)]
        fn load(lanes: &Lanes) -> Self {
            Avx512(unsafe { _mm512_loadu_pd(lanes.as_ptr()) })
        }
        #[inline(always)]
        fn lanes(self) -> Lanes {
            let mut out = [0.0; LANES];
            unsafe { _mm512_storeu_pd(out.as_mut_ptr(), self.0) };
            out
        }
        #[inline(always)]
        fn add(self, b: Self) -> Self {
            Avx512(unsafe { _mm512_add_pd(self.0, b.0) })
        }
        #[inline(always)]
        fn sub(self, b: Self) -> Self {
            Avx512(unsafe { _mm512_sub_pd(self.0, b.0) })
        }
        #[inline(always)]
        fn mul(self, b: Self) -> Self {
            Avx512(unsafe { _mm512_mul_pd(self.0, b.0) })
        }
        #[inline(always)]
        fn div(self, b: Self) -> Self {
            Avx512(unsafe { _mm512_div_pd(self.0, b.0) })
        }
        #[inline(always)]
        fn sqrt(self) -> Self {
            Avx512(unsafe { _mm512_sqrt_pd(self.0) })
        }
        #[inline(always)]
        fn fma(self, b: Self, c: Self) -> Self {
            Avx512(unsafe { _mm512_fmadd_pd(self.0, b.0, c.0) })
        }
        #[inline(always)]
        fn max(self, b: Self) -> Self {
            Avx512(unsafe { _mm512_max_pd(self.0, b.0) })
        }
        #[inline(always)]
        fn if_below(self, limit: Self, yes: Self, no: Self) -> Self {
            unsafe {
                let mask = _mm512_cmp_pd_mask::<_CMP_LT_OQ>(self.0, limit.0);
                Avx512(_mm512_mask_blend_pd(mask, no.0, yes.0))
            }
        }
        #[inline(always)]
        fn not_below(self, limit: Self) -> u8 {
            unsafe { _mm512_cmp_pd_mask::<_CMP_NLT_UQ>(self.0, limit.0) }
        }
        #[inline(always)]
        fn fetch<T>(items: &[T]) {
            fetch(items);
        }
        #[inline(always)]
        fn power_of_two(self) -> Self {
            unsafe {
                let biased = _mm512_add_epi64(_mm512_castpd_si512(self.0), _mm512_set1_epi64(BIAS as i64));
                Avx512(_mm512_castsi512_pd(_mm512_slli_epi64::<52>(biased)))
            }
        }
        #[inline(always)]
        fn split(self) -> (Self, Self) {
            unsafe {
                let all = |bits: u64| _mm512_set1_epi64(bits as i64);
                let shifted = _mm512_add_epi64(_mm512_castpd_si512(self.0), all((BIAS << 52) - SQRT_HALF));
                let e = _mm512_or_si512(_mm512_srli_epi64::<52>(shifted), all(TWO52_BITS));
                let m = _mm512_add_epi64(_mm512_and_si512(shifted, all(MANTISSA)), all(SQRT_HALF));
                let e = _mm512_sub_pd(_mm512_castsi512_pd(e), _mm512_set1_pd(TWO52_AND_BIAS));
                (Avx512(e), Avx512(_mm512_castsi512_pd(m)))
            }
        }
    }

    /// Two vectors of AVX2.
    #[derive(Clone, Copy)]
    pub struct Avx2(__m256d, __m256d);

    impl Avx2 {
        #[inline(always)]
        fn both(self, b: Self, f: impl Fn(__m256d, __m256d) -> __m256d) -> Self {
            Avx2(f(self.0, b.0), f(self.1, b.1))
        }
    }

    impl Vector for Avx2 {
        const SUMS: usize = 4;

        #[inline(always)]
        fn splat(value: f64) -> Self {
            let v = unsafe { _mm256_set1_pd(value) };
            Avx2(v, v)
        }
        #[inline(always)]
        fn load(lanes: &Lanes) -> Self {
            unsafe { Avx2(_mm256_loadu_pd(lanes.as_ptr()), _mm256_loadu_pd(lanes[4..].as_ptr())) }
        }
        #[inline(always)]
        fn lanes(self) -> Lanes {
            let mut out = [0.0; LANES];
            unsafe {
                _mm256_storeu_pd(out.as_mut_ptr(), self.0);
                _mm256_storeu_pd(out[4..].as_mut_ptr(), self.1);
            }
            out
        }
        #[inline(always)]
        fn add(self, b: Self) -> Self {
            self.both(b, |a, b| unsafe { _mm256_add_pd(a, b) })
        }
        #[inline(always)]
        fn sub(self, b: Self) -> Self {
            self.both(b, |a, b| unsafe { _mm256_sub_pd(a, b) })
        }
        #[inline(always)]
        fn mul(self, b: Self) -> Self {
            self.both(b, |a, b| unsafe { _mm256_mul_pd(a, b) })
        }
        #[inline(always)]
        fn div(self, b: Self) -> Self {
            self.both(b, |a, b| unsafe { _mm256_div_pd(a, b) })
        }
        #[inline(always)]
        fn sqrt(self) -> Self {
            unsafe { Avx2(_mm256_sqrt_pd(self.0), _mm256_sqrt_pd(self.1)) }
        }
        #[inline(always)]
        fn fma(self, b: Self, c: Self) -> Self {
            unsafe { Avx2(_mm256_fmadd_pd(self.0, b.0, c.0), _mm256_fmadd_pd(self.1, b.1, c.1)) }
        }
        #[inline(always)]
        fn max(self, b: Self) -> Self {
            self.both(b, |a, b| unsafe { _mm256_max_pd(a, b) })
        }
        #[inline(always)]
        fn if_below(self, limit: Self, yes: Self, no: Self) -> Self {
            unsafe {
                let low = _mm256_cmp_pd::<_CMP_LT_OQ>(self.0, limit.0);
                let high = _mm256_cmp_pd::<_CMP_LT_OQ>(self.1, limit.1);
                Avx2(_mm256_blendv_pd(no.0, yes.0, low), _mm256_blendv_pd(no.1, yes.1, high))
            }
        }
        #[inline(always)]
        fn not_below(self, limit: Self) -> u8 {
            unsafe {
                let low = _mm256_movemask_pd(_mm256_cmp_pd::<_CMP_NLT_UQ>(self.0, limit.0));
                let high = _mm256_movemask_pd(_mm256_cmp_pd::<_CMP_NLT_UQ>(self.1, limit.1));
                (low | high << 4) as u8
            }
        }
        #[inline(always)]
        fn fetch<T>(items: &[T]) {
            fetch(items);
        }
        #[inline(always)]
        fn power_of_two(self) -> Self {
            self.both(self, |v, _| unsafe {
                let biased = _mm256_add_epi64(_mm256_castpd_si256(v), _mm256_set1_epi64x(BIAS as i64));
                _mm256_castsi256_pd(_mm256_slli_epi64::<52>(biased))
            })
        }
        #[inline(always)]
        fn split(self) -> (Self, Self) {
            let all = |bits: u64| unsafe { _mm256_set1_epi64x(bits as i64) };
            let shift =
                |v| unsafe { _mm256_add_epi64(_mm256_castpd_si256(v), all((BIAS << 52) - SQRT_HALF)) };
            let e = self.both(self, |v, _| unsafe {
                let bits = _mm256_or_si256(_mm256_srli_epi64::<52>(shift(v)), all(TWO52_BITS));
                _mm256_sub_pd(_mm256_castsi256_pd(bits), _mm256_set1_pd(TWO52_AND_BIAS))
            });
            let m = self.both(self, |v, _| unsafe {
                _mm256_castsi256_pd(_mm256_add_epi64(
                    _mm256_and_si256(shift(v), all(MANTISSA)),
                    all(SQRT_HALF),
                ))
            });
            (e, m)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::elementary::{exp_all, exp_roughly_all, ln_all};
    use crate::kernel::{Level, available};

    fn of(f: fn(Level, &mut [Lanes]), level: Level, points: &[Lanes]) -> Vec<Lanes> {
        let mut values = points.to_vec();
        f(level, &mut values);
        values
    }

    fn lanes(points: impl Iterator<Item = f64>) -> Vec<Lanes> {
        let points: Vec<f64> = points.collect();
        points.as_chunks::<LANES>().0.to_vec()
    }

    fn worst(f: fn(Level, &mut [Lanes]), level: Level, exact: fn(f64) -> f64, points: &[Lanes]) -> f64 {
        let values = of(f, level, points);
        let pairs = values.as_flattened().iter().zip(points.as_flattened());
        pairs.map(|(v, &x)| (v - exact(x)).abs() / exact(x).abs().max(f64::MIN_POSITIVE)).fold(0.0, f64::max)
    }

    #[test]
    fn exp_is_exact_to_a_few_units_at_every_level() {
        let points = lanes((0..800_000).map(|i| -708.0 + i as f64 * 0.001_76));
        for level in available() {
            assert!(worst(exp_all, level, libm::exp, &points) < 4.0 * f64::EPSILON, "{level:?}");
            let special = [0.0, f64::NEG_INFINITY, -1e9, -708.1, f64::NAN, 1.0, -1.0, 700.0];
            let values = of(exp_all, level, &[special])[0];
            assert_eq!(values[..4], [1.0, 0.0, 0.0, 0.0], "{level:?}");
            assert!(values[4].is_nan(), "{level:?}");
        }
    }

    #[test]
    fn the_rough_exp_is_exact_to_ten_digits_at_every_level() {
        let points = lanes((0..80_000).map(|i| -708.0 + i as f64 * 0.0176));
        for level in available() {
            assert!(worst(exp_roughly_all, level, libm::exp, &points) < 3e-10, "{level:?}");
            let special = [0.0, f64::NEG_INFINITY, -1e9, -708.1, f64::NAN, 1.0, -1.0, 700.0];
            let values = of(exp_roughly_all, level, &[special])[0];
            assert_eq!(values[..4], [1.0, 0.0, 0.0, 0.0], "{level:?}");
            assert!(values[4].is_nan(), "{level:?}");
        }
    }

    #[test]
    fn ln_is_exact_to_a_few_units_at_every_level() {
        let wide = lanes((0..800_000).map(|i| libm::exp(-700.0 + i as f64 * 0.001_75)));
        let near_one = lanes((0..80_000).map(|i| 0.6 + i as f64 * 1.1e-5).filter(|x| (x - 1.0).abs() > 1e-9));
        for level in available() {
            for points in [&wide, &near_one] {
                assert!(worst(ln_all, level, libm::log, points) < 4.0 * f64::EPSILON, "{level:?}");
            }
            assert_eq!(of(ln_all, level, &[[1.0; LANES]])[0], [0.0; LANES]);
        }
    }
}

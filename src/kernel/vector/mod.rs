//! Eight doubles or sixteen singles in step: one vector of AVX-512, two of AVX2, or a plain array. Kernels are written once
//! over [`Vector`]. Written with intrinsics because the compiler, left to itself, turns a third of the exponential into
//! scalar code, and `std::simd` is not stable. Exponential and logarithm are our own: the platform's are scalar, and
//! differ between platforms.

mod abreast;
mod plain;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use plain::Plain;
#[cfg(target_arch = "x86_64")]
pub use x86::{Avx2, Avx512};

pub const LANES: usize = 8;
pub type Lanes = [f64; LANES];
/// Singles in a vector.
pub const SINGLES: usize = 2 * LANES;

/// Eight doubles, or sixteen singles, that fill a line of the cache: a vector that lies across two costs two loads.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C, align(64))]
pub struct Line<T = f64, const L: usize = LANES>(pub [T; L]);

impl<T: Copy + Default, const L: usize> Default for Line<T, L> {
    fn default() -> Self {
        Line([T::default(); L])
    }
}

impl<T, const L: usize> std::ops::Deref for Line<T, L> {
    type Target = [T; L];

    fn deref(&self) -> &[T; L] {
        &self.0
    }
}

impl<T, const L: usize> std::ops::DerefMut for Line<T, L> {
    fn deref_mut(&mut self) -> &mut [T; L] {
        &mut self.0
    }
}

/// A format of numbers, `L` of which fill a line: doubles or singles.
pub trait Scalar<const L: usize>: Copy + Default + Into<f64> + Send + Sync + 'static {
    /// The vector of them at the level of `V`.
    type In<V: Vector>: Register<Self, L>;
    /// What is left of a number that lost all digits but a few, relative.
    const NOTHING: f64;

    fn of(value: f64) -> Self;
}

impl Scalar<LANES> for f64 {
    type In<V: Vector> = V;
    const NOTHING: f64 = 1e-13;

    fn of(value: f64) -> f64 {
        value
    }
}

impl Scalar<SINGLES> for f32 {
    type In<V: Vector> = V::Singles;
    const NOTHING: f64 = 1e-6;

    fn of(value: f64) -> f32 {
        value as f32
    }
}

/// Numbers in step, doubles or singles.
///
/// Implementations for a CPU feature may be used only inside a function compiled for that feature.
pub trait Arithmetic: Copy {
    const FORMAT: Format;

    fn splat(value: f64) -> Self;
    fn add(self, b: Self) -> Self;
    fn sub(self, b: Self) -> Self;
    fn mul(self, b: Self) -> Self;
    fn div(self, b: Self) -> Self;
    /// self · b + c, in one rounding where the CPU has it.
    fn fma(self, b: Self, c: Self) -> Self;
    /// The larger; the second if one is NaN.
    fn max(self, b: Self) -> Self;
    /// `yes` where self < limit, else `no`.
    fn if_below(self, limit: Self, yes: Self, no: Self) -> Self;
    /// 2ᵏ from a number whose low bits hold the integer k.
    fn power_of_two(self) -> Self;
    /// e and m with self = 2ᵉ m and √½ ≤ m < √2, for positive normal numbers.
    fn split(self) -> (Self, Self);

    /// The same number: the compiler makes it before what is made in place after it.
    #[inline(always)]
    fn in_place(self) -> Self {
        self
    }

    /// exp(x) and its slope up to where it would overflow, and beyond that along the tangent: convex, and finite as far as a
    /// search can go.
    #[inline(always)]
    fn exp_and_slope(self) -> (Self, Self) {
        let limit = Self::splat(-Self::FORMAT.exp_zero - 8.0);
        let beyond = self.sub(limit);
        let zero = Self::splat(0.0);
        let exp = self.if_below(limit, self, limit).exp();
        (exp.fma(beyond.if_below(zero, zero, beyond), exp), exp)
    }

    /// exp(x) for x ≤ 700, to about 1 unit in the last place; 0 below −708. NaN for NaN. In singles for x ≤ 80, to five digits;
    /// 0 below −64.
    #[inline(always)]
    fn exp(self) -> Self {
        let c = |value: f64| Self::splat(value);
        let limit = c(Self::FORMAT.exp_zero);
        // max keeps its second argument where one is NaN.
        let v = limit.max(self);
        let shifted = v.fma(c(std::f64::consts::LOG2_E), c(Self::FORMAT.round));
        let k = shifted.sub(c(Self::FORMAT.round));
        let mut r = v;
        for part in Self::FORMAT.exp_ln2 {
            r = k.fma(c(-part), r);
        }
        let (first, others) = Self::FORMAT.exp.split_first().expect("a polynomial");
        let mut p = c(*first);
        for coefficient in others {
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

    /// −ln(x) for positive normal x, to about 1 unit in the last place. Nothing is fused, so that all levels give the same
    /// bits.
    #[inline(always)]
    fn minus_ln(self) -> Self {
        let c = |value: f64| Self::splat(value);
        let (e, m) = self.split();
        let f = m.sub(c(1.0));
        let s = f.div(f.add(c(2.0)));
        let z = s.mul(s);
        let (first, others) = Self::FORMAT.ln.split_first().expect("a polynomial");
        let mut p = c(*first);
        for coefficient in others {
            p = p.mul(z).add(c(*coefficient));
        }
        let tail = s.mul(f.sub(z.mul(p)));
        tail.sub(e.mul(c(LN2_LOW))).sub(f).sub(e.mul(c(LN2_HIGH)))
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
        let (first, others) = Self::FORMAT.ln.split_first().expect("a polynomial");
        let mut p = c(*first);
        for coefficient in others {
            p = p.fma(z, c(*coefficient));
        }
        // ln m = f − s (f − z p): keeps the leading term exact.
        let tail = s.mul(f.sub(z.mul(p)));
        e.fma(c(LN2_HIGH), f.sub(tail.sub(e.mul(c(LN2_LOW)))))
    }
}

/// What exponential and logarithm need to know of a format; polynomials by their coefficients, highest power first.
pub struct Format {
    /// 1.5 · 2 to the digits of the mantissa: adding it rounds to an integer that then sits in the low bits.
    round: f64,
    /// Below this the exponential is zero.
    exp_zero: f64,
    /// eʳ for |r| ≤ ln 2 / 2, through the Chebyshev points.
    exp: &'static [f64],
    /// ln 2 in parts.
    exp_ln2: &'static [f64],
    /// p with ln m = 2 atanh(s) = 2s + s z p(z), z = s², through the Chebyshev points of |s| ≤ 0.1716.
    ln: &'static [f64],
}

/// Of the exponential within 2·10⁻¹⁷, of the logarithm within 5·10⁻¹⁸; exp(−708) is still a normal number.
const DOUBLE: Format = Format {
    round: 6755399441055744.0,
    exp_zero: -708.0,
    exp: &[
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
    ],
    exp_ln2: &[LN2_HIGH, LN2_LOW],
    ln: &[
        1.461_658_542_488_862_3e-1,
        1.533_171_061_821_077_3e-1,
        1.818_288_945_567_494_7e-1,
        2.222_221_113_025_987_8e-1,
        2.857_142_862_600_327e-1,
        3.999_999_999_989_944_4e-1,
        6.666_666_666_666_67e-1,
    ],
};

/// Within 10⁻⁷ and 3·10⁻⁹; ln 2 in one part, because five digits of the exponential will do. e⁻⁶⁴ is far from the smallest single, so that its products with small weights are normal numbers too:
/// the CPU takes a hundred times as long over those that are not.
const SINGLE: Format = Format {
    round: 12582912.0,
    exp_zero: -64.0,
    exp: &[
        8.369_148_491e-3,
        4.191_750_725e-2,
        1.666_650_526e-1,
        4.999_886_938e-1,
        1.000_000_011,
        1.000_000_075,
    ],
    exp_ln2: &[LN2_HIGH],
    ln: &[2.958_027_715e-1, 3.998_877_334e-1, 6.666_668_506e-1],
};

/// `L` numbers in step, from and to memory.
pub trait Register<T, const L: usize>: Arithmetic {
    /// Vectors that stay in registers through a loop: what a kernel sums up at once.
    const SUMS: usize;
    /// Functions of several vectors are made in step (`abreast`): it pays where each of their operations is one of the CPU.
    const IN_STEP: bool;

    fn load(lanes: &[T; L]) -> Self;
    fn lanes(self) -> [T; L];
    fn sqrt(self) -> Self;
    /// The [sum] over the lanes, in doubles.
    #[inline(always)]
    fn total(lanes: &[T; L]) -> f64
    where
        T: Copy + Into<f64>,
    {
        sum(lanes)
    }

    /// One register of the CPU. Where it takes several for all lanes, a kernel that goes through its data once for each of them has room
    /// for the sums of more rows and columns, and loads less for every product.
    type Part: Copy;
    const PARTS: usize;

    fn zeros() -> Self::Part;
    fn load_part(lanes: &[T; L], part: usize) -> Self::Part;
    fn store_part(from: Self::Part, part: usize, to: &mut [T; L]);
    /// a · b + c, rounded as by [`Arithmetic::fma`].
    fn fma_part(a: Self::Part, b: Self::Part, c: Self::Part) -> Self::Part;
}

/// Eight words of 64 bits in step.
pub trait Words: Copy {
    fn load(words: &[u64; LANES]) -> Self;
    fn splat(word: u64) -> Self;
    /// Modulo 2⁶⁴.
    fn add(self, b: Self) -> Self;
    fn or(self, b: Self) -> Self;
    fn xor(self, b: Self) -> Self;
    fn left(self, bits: u32) -> Self;
    fn right(self, bits: u32) -> Self;

    /// To the left, by 1 to 63 bits.
    #[inline(always)]
    fn rotate(self, bits: u32) -> Self {
        self.left(bits).or(self.right(64 - bits))
    }
}

/// Eight doubles in step.
pub trait Vector: Register<f64, LANES> {
    /// Sixteen singles.
    type Singles: Register<f32, SINGLES>;
    type Words: Words;

    /// A bit for each lane that is not below the limit: NaN is not.
    fn not_below(self, limit: Self) -> u8;
    /// The lanes that have a bit, 0 in the others.
    fn chosen(self, lanes: u8) -> Self;
    /// Lane k of vector i is lane i of vector k.
    #[inline(always)]
    fn transposed(rows: [Self; LANES]) -> [Self; LANES] {
        let mut lanes = [[0.0; LANES]; LANES];
        for (k, row) in rows.into_iter().enumerate() {
            let row = row.lanes();
            for i in 0..LANES {
                lanes[i][k] = row[i];
            }
        }
        let mut out = rows;
        for i in 0..LANES {
            out[i] = Self::load(&lanes[i]);
        }
        out
    }
    /// Asks for memory that will be read soon. A hint: plain code does without.
    fn fetch<T>(_: &[T]) {}
    /// These eight and another eight, rounded.
    fn singles(self, others: Self) -> Self::Singles;
    fn doubles(singles: Self::Singles) -> [Self; 2];
    /// The doubles of these bits.
    fn from_bits(words: Self::Words) -> Self;
}

/// Sum over the lanes, always in the same order: the second half is added to the first, and so on.
#[inline(always)]
pub fn sum<T: Copy + Into<f64>, const L: usize>(x: &[T; L]) -> f64 {
    let mut x = x.map(Into::into);
    let mut half = L / 2;
    while half > 0 {
        for l in 0..half {
            x[l] += x[half + l];
        }
        half /= 2;
    }
    x[0]
}

/// ln 2 in two parts; the first has trailing zeros, so that its product with an integer is exact.
const LN2_HIGH: f64 = 6.931_471_803_691_238e-1;
const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;

/// The bits of a double: the exponent of 1, those of the mantissa, and √½, which taken off first centres the mantissa on 1.
mod double {
    pub const BIAS: u64 = 1023;
    pub const MANTISSA: u64 = (1 << 52) - 1;
    pub const SQRT_HALF: u64 = 0x3fe6_a09e_667f_3bcd;
    /// 2⁵²: its low bits hold an integer.
    pub const INTEGER: u64 = 0x4330_0000_0000_0000;
    pub const INTEGER_AND_BIAS: f64 = 4_503_599_627_370_496.0 + 1023.0;
}

/// The same of a single.
mod single {
    pub const BIAS: u32 = 127;
    pub const MANTISSA: u32 = (1 << 23) - 1;
    pub const SQRT_HALF: u32 = 0x3f35_04f3;
    /// 2²³.
    pub const INTEGER: u32 = 0x4b00_0000;
    pub const INTEGER_AND_BIAS: f32 = 8_388_608.0 + 127.0;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::elementary::{exp_all, exp_singles_all, ln_all, ln_singles_all, minus_ln_all};
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

    /// The largest relative error of a function of singles, at points that are singles themselves.
    fn worst_single(
        f: fn(Level, &mut [[Lanes; 2]]),
        level: Level,
        exact: fn(f64) -> f64,
        points: &[f64],
    ) -> f64 {
        let rounded: Vec<f64> = points.iter().map(|&x| f64::from(x as f32)).collect();
        let mut values: Vec<[Lanes; 2]> = rounded
            .chunks_exact(2 * LANES)
            .map(|x| [std::array::from_fn(|l| x[l]), std::array::from_fn(|l| x[LANES + l])])
            .collect();
        f(level, &mut values);
        let pairs = values.as_flattened().as_flattened().iter().zip(&rounded);
        pairs.map(|(v, &x)| ((v - exact(x)) / exact(x)).abs()).fold(0.0, f64::max)
    }

    #[test]
    fn singles_keep_their_digits_at_every_level() {
        let few = 4.0 * f64::from(f32::EPSILON);
        let exponents: Vec<f64> = (0..80_000).map(|i| -64.0 + i as f64 * 0.0018).collect();
        let wide: Vec<f64> = (0..80_000).map(|i| libm::exp(-80.0 + i as f64 * 0.002)).collect();
        let near_one: Vec<f64> =
            (0..80_000).map(|i| 0.6 + i as f64 * 1.1e-5).filter(|x| (x - 1.0).abs() > 1e-4).collect();
        for level in available() {
            assert!(worst_single(exp_singles_all, level, libm::exp, &exponents) < 1e-5, "{level:?}");
            assert!(worst_single(ln_singles_all, level, libm::log, &wide) < few, "{level:?}");
            assert!(worst_single(ln_singles_all, level, libm::log, &near_one) < few, "{level:?}");
            let mut special =
                [[[0.0, f64::NEG_INFINITY, -1e9, -64.1, f64::NAN, 1.0, -1.0, 80.0], [0.0; LANES]]];
            exp_singles_all(level, &mut special);
            assert_eq!(special[0][0][1..4], [0.0; 3], "{level:?}");
            assert!(special[0][0][4].is_nan(), "{level:?}");
        }
    }

    #[test]
    fn ln_is_exact_to_a_few_units_at_every_level() {
        let wide = lanes((0..800_000).map(|i| libm::exp(-700.0 + i as f64 * 0.001_75)));
        let near_one = lanes((0..80_000).map(|i| 0.6 + i as f64 * 1.1e-5).filter(|x| (x - 1.0).abs() > 1e-9));
        let below_one = lanes((1..=1024).map(|k| 1.0 - k as f64 * f64::EPSILON / 2.0));
        for level in available() {
            for points in [&wide, &near_one] {
                assert!(worst(ln_all, level, libm::log, points) < 4.0 * f64::EPSILON, "{level:?}");
                assert!(worst(minus_ln_all, level, minus_log, points) < 4.0 * f64::EPSILON, "{level:?}");
                assert_eq!(
                    of(minus_ln_all, level, points),
                    of(minus_ln_all, Level::PLAIN, points),
                    "{level:?}"
                );
            }
            assert_eq!(of(ln_all, level, &[[1.0; LANES]])[0], [0.0; LANES]);
            assert!(worst(minus_ln_all, level, minus_log, &below_one) < 4.0 * f64::EPSILON, "{level:?}");
        }
    }

    fn minus_log(x: f64) -> f64 {
        -libm::log(x)
    }
}

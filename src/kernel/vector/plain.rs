//! Plain code: what every CPU has, and what the others are tested against.

use super::{
    Arithmetic, DOUBLE, Format, LANES, Lanes, Register, SINGLE, SINGLES, Vector, Words, double, single,
};

#[derive(Clone, Copy)]
pub struct Plain(Lanes);

#[derive(Clone, Copy)]
pub struct PlainSingles([f32; SINGLES]);

#[derive(Clone, Copy)]
pub struct PlainWords([u64; LANES]);

/// Operations lane by lane.
macro_rules! arithmetic {
    ($type:ident, $number:ty, $lanes:expr, $mantissa:literal, $bits:ident, $format:expr) => {
        impl $type {
            #[inline(always)]
            fn map(f: impl Fn(usize) -> $number) -> Self {
                $type(std::array::from_fn(f))
            }
        }

        impl Arithmetic for $type {
            const FORMAT: Format = $format;

            #[inline(always)]
            fn splat(value: f64) -> Self {
                $type::map(|_| value as $number)
            }
            #[inline(always)]
            fn add(self, b: Self) -> Self {
                $type::map(|l| self.0[l] + b.0[l])
            }
            #[inline(always)]
            fn sub(self, b: Self) -> Self {
                $type::map(|l| self.0[l] - b.0[l])
            }
            #[inline(always)]
            fn mul(self, b: Self) -> Self {
                $type::map(|l| self.0[l] * b.0[l])
            }
            #[inline(always)]
            fn div(self, b: Self) -> Self {
                $type::map(|l| self.0[l] / b.0[l])
            }
            #[inline(always)]
            fn fma(self, b: Self, c: Self) -> Self {
                $type::map(|l| self.0[l] * b.0[l] + c.0[l])
            }
            #[inline(always)]
            fn max(self, b: Self) -> Self {
                $type::map(|l| if self.0[l] > b.0[l] { self.0[l] } else { b.0[l] })
            }
            #[inline(always)]
            fn if_below(self, limit: Self, yes: Self, no: Self) -> Self {
                $type::map(|l| if self.0[l] < limit.0[l] { yes.0[l] } else { no.0[l] })
            }
            #[inline(always)]
            fn power_of_two(self) -> Self {
                $type::map(|l| {
                    <$number>::from_bits(self.0[l].to_bits().wrapping_add($bits::BIAS) << $mantissa)
                })
            }
            #[inline(always)]
            fn split(self) -> (Self, Self) {
                let one = $bits::BIAS << $mantissa;
                let shifted = |l: usize| self.0[l].to_bits().wrapping_add(one - $bits::SQRT_HALF);
                let e = |l| <$number>::from_bits((shifted(l) >> $mantissa) | $bits::INTEGER);
                let m = |l| (shifted(l) & $bits::MANTISSA).wrapping_add($bits::SQRT_HALF);
                let e = $type::map(|l| e(l) - $bits::INTEGER_AND_BIAS);
                (e, $type::map(|l| <$number>::from_bits(m(l))))
            }
        }

        impl Register<$number, { $lanes }> for $type {
            const SUMS: usize = 4;
            const IN_STEP: bool = false;

            #[inline(always)]
            fn load(lanes: &[$number; $lanes]) -> Self {
                $type(*lanes)
            }
            #[inline(always)]
            fn lanes(self) -> [$number; $lanes] {
                self.0
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                $type::map(|l| self.0[l].sqrt())
            }

            // Sixteen bytes: what every such CPU has registers for.
            type Part = [$number; $lanes / 4];
            const PARTS: usize = 4;

            #[inline(always)]
            fn zeros() -> Self::Part {
                [0.0; $lanes / 4]
            }
            #[inline(always)]
            fn load_part(lanes: &[$number; $lanes], part: usize) -> Self::Part {
                std::array::from_fn(|l| lanes[$lanes / 4 * part + l])
            }
            #[inline(always)]
            fn store_part(from: Self::Part, part: usize, to: &mut [$number; $lanes]) {
                to[$lanes / 4 * part..][..$lanes / 4].copy_from_slice(&from);
            }
            #[inline(always)]
            fn fma_part(a: Self::Part, b: Self::Part, c: Self::Part) -> Self::Part {
                std::array::from_fn(|l| a[l] * b[l] + c[l])
            }
        }
    };
}

arithmetic!(Plain, f64, LANES, 52, double, DOUBLE);
arithmetic!(PlainSingles, f32, SINGLES, 23, single, SINGLE);

impl Vector for Plain {
    type Singles = PlainSingles;
    type Words = PlainWords;

    #[inline(always)]
    fn not_below(self, limit: Self) -> u8 {
        let below = |(a, b): (f64, f64)| a < b;
        let lanes = self.0.into_iter().zip(limit.0).enumerate();
        lanes.map(|(l, pair)| u8::from(!below(pair)) << l).sum()
    }
    #[inline(always)]
    fn chosen(self, lanes: u8) -> Self {
        Plain::map(|l| if lanes >> l & 1 == 1 { self.0[l] } else { 0.0 })
    }
    #[inline(always)]
    fn singles(self, others: Self) -> PlainSingles {
        PlainSingles::map(|l| (if l < LANES { self.0[l] } else { others.0[l - LANES] }) as f32)
    }
    #[inline(always)]
    fn doubles(singles: PlainSingles) -> [Self; 2] {
        [0, LANES].map(|first| Plain::map(|l| f64::from(singles.0[first + l])))
    }
    #[inline(always)]
    fn from_bits(words: PlainWords) -> Self {
        Plain(words.0.map(f64::from_bits))
    }
}

impl Words for PlainWords {
    #[inline(always)]
    fn load(words: &[u64; LANES]) -> Self {
        PlainWords(*words)
    }
    #[inline(always)]
    fn splat(word: u64) -> Self {
        PlainWords([word; LANES])
    }
    #[inline(always)]
    fn add(self, b: Self) -> Self {
        PlainWords(std::array::from_fn(|l| self.0[l].wrapping_add(b.0[l])))
    }
    #[inline(always)]
    fn or(self, b: Self) -> Self {
        PlainWords(std::array::from_fn(|l| self.0[l] | b.0[l]))
    }
    #[inline(always)]
    fn xor(self, b: Self) -> Self {
        PlainWords(std::array::from_fn(|l| self.0[l] ^ b.0[l]))
    }
    #[inline(always)]
    fn left(self, bits: u32) -> Self {
        PlainWords(self.0.map(|word| word << bits))
    }
    #[inline(always)]
    fn right(self, bits: u32) -> Self {
        PlainWords(self.0.map(|word| word >> bits))
    }
}

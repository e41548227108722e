//! AVX-512, and AVX2 with FMA.
//!
//! SAFETY of this module: every intrinsic needs a CPU feature, and is reached only from kernels that `dispatch!`
//! compiles for that feature and calls after the feature was detected. Loads and stores go through references to
//! arrays of the right length and ask for no alignment. The assembly of `in_place` is a comment that names a register.

use super::{Arithmetic, DOUBLE, Format, LANES, Register, SINGLE, SINGLES, Vector, Words, double, single};
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

#[derive(Clone, Copy)]
pub struct Avx512Singles(__m512);

#[derive(Clone, Copy)]
pub struct Avx512Words(__m512i);

/// Two vectors of AVX2.
#[derive(Clone, Copy)]
pub struct Avx2(__m256d, __m256d);

#[derive(Clone, Copy)]
pub struct Avx2Singles(__m256, __m256);

#[derive(Clone, Copy)]
pub struct Avx2Words(__m256i, __m256i);

/// Operations of a type that holds one vector of AVX-512, by the intrinsics of its format.
macro_rules! avx512 {
    (
        $type:ident, $number:ty, $lanes:expr, $mantissa:literal, $bits:ident, $integer:ty, $format:expr,
        $set:ident $add:ident $sub:ident $mul:ident $div:ident $fma:ident $max:ident $cmp:ident $blend:ident
        $set_bits:ident $add_bits:ident $left:ident $right:ident $to_bits:ident $from_bits:ident
        $load:ident $store:ident $sqrt:ident $low:ident $eight:ident
    ) => {
        impl Register<$number, { $lanes }> for $type {
            const SUMS: usize = 16;
            const IN_STEP: bool = true;

            #[inline(always)]
            fn load(lanes: &[$number; $lanes]) -> Self {
                $type(unsafe { $load(lanes.as_ptr()) })
            }
            #[inline(always)]
            fn lanes(self) -> [$number; $lanes] {
                let mut out = [0.0; $lanes];
                unsafe { $store(out.as_mut_ptr(), self.0) };
                out
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                $type(unsafe { $sqrt(self.0) })
            }
            #[inline(always)]
            fn total(lanes: &[$number; $lanes]) -> f64 {
                $eight(lanes)
            }

            type Part = Self;
            const PARTS: usize = 1;

            #[inline(always)]
            fn zeros() -> Self {
                Self::splat(0.0)
            }
            #[inline(always)]
            fn load_part(lanes: &[$number; $lanes], _: usize) -> Self {
                Self::load(lanes)
            }
            #[inline(always)]
            fn store_part(from: Self, _: usize, to: &mut [$number; $lanes]) {
                *to = from.lanes();
            }
            #[inline(always)]
            fn fma_part(a: Self, b: Self, c: Self) -> Self {
                a.fma(b, c)
            }
        }

        impl Arithmetic for $type {
            const FORMAT: Format = $format;

            #[inline(always)]
            fn splat(value: f64) -> Self {
                $type(unsafe { $set(value as $number) })
            }
            #[inline(always)]
            fn add(self, b: Self) -> Self {
                $type(unsafe { $add(self.0, b.0) })
            }
            #[inline(always)]
            fn sub(self, b: Self) -> Self {
                $type(unsafe { $sub(self.0, b.0) })
            }
            #[inline(always)]
            fn mul(self, b: Self) -> Self {
                $type(unsafe { $mul(self.0, b.0) })
            }
            #[inline(always)]
            fn div(self, b: Self) -> Self {
                $type(unsafe { $div(self.0, b.0) })
            }
            #[inline(always)]
            fn fma(self, b: Self, c: Self) -> Self {
                $type(unsafe { $fma(self.0, b.0, c.0) })
            }
            #[inline(always)]
            fn in_place(self) -> Self {
                let low = unsafe { $low(self.0) };
                unsafe { std::arch::asm!("/* {0} */", in(xmm_reg) low, options(nomem, nostack, preserves_flags)) };
                self
            }
            #[inline(always)]
            fn max(self, b: Self) -> Self {
                $type(unsafe { $max(self.0, b.0) })
            }
            #[inline(always)]
            fn if_below(self, limit: Self, yes: Self, no: Self) -> Self {
                $type(unsafe { $blend($cmp::<_CMP_LT_OQ>(self.0, limit.0), no.0, yes.0) })
            }
            #[inline(always)]
            fn power_of_two(self) -> Self {
                unsafe {
                    let biased = $add_bits($to_bits(self.0), $set_bits($bits::BIAS as $integer));
                    $type($from_bits($left::<$mantissa>(biased)))
                }
            }
            #[inline(always)]
            fn split(self) -> (Self, Self) {
                unsafe {
                    let half = $set_bits($bits::SQRT_HALF as $integer);
                    let one_less_half = ($bits::BIAS << $mantissa) - $bits::SQRT_HALF;
                    let shifted = $add_bits($to_bits(self.0), $set_bits(one_less_half as $integer));
                    let integer = $set_bits($bits::INTEGER as $integer);
                    let e = $from_bits(_mm512_or_si512($right::<$mantissa>(shifted), integer));
                    let m = _mm512_and_si512(shifted, $set_bits($bits::MANTISSA as $integer));
                    ($type($sub(e, $set($bits::INTEGER_AND_BIAS))), $type($from_bits($add_bits(m, half))))
                }
            }
        }
    };
}

avx512! {
    Avx512, f64, LANES, 52, double, i64, DOUBLE,
    _mm512_set1_pd _mm512_add_pd _mm512_sub_pd _mm512_mul_pd _mm512_div_pd _mm512_fmadd_pd _mm512_max_pd
    _mm512_cmp_pd_mask _mm512_mask_blend_pd
    _mm512_set1_epi64 _mm512_add_epi64 _mm512_slli_epi64 _mm512_srli_epi64 _mm512_castpd_si512 _mm512_castsi512_pd
    _mm512_loadu_pd _mm512_storeu_pd _mm512_sqrt_pd _mm512_castpd512_pd128 total_of_eight
}

avx512! {
    Avx512Singles, f32, SINGLES, 23, single, i32, SINGLE,
    _mm512_set1_ps _mm512_add_ps _mm512_sub_ps _mm512_mul_ps _mm512_div_ps _mm512_fmadd_ps _mm512_max_ps
    _mm512_cmp_ps_mask _mm512_mask_blend_ps
    _mm512_set1_epi32 _mm512_add_epi32 _mm512_slli_epi32 _mm512_srli_epi32 _mm512_castps_si512 _mm512_castsi512_ps
    _mm512_loadu_ps _mm512_storeu_ps _mm512_sqrt_ps _mm512_castps512_ps128 total_of_sixteen
}

/// Operations of a type that holds two vectors of AVX2, by the intrinsics of its format.
macro_rules! avx2 {
    (
        $type:ident, $raw:ty, $number:ty, $lanes:expr, $mantissa:literal, $bits:ident, $integer:ty, $format:expr,
        $set:ident $add:ident $sub:ident $mul:ident $div:ident $fma:ident $max:ident $cmp:ident $blend:ident
        $set_bits:ident $add_bits:ident $left:ident $right:ident $to_bits:ident $from_bits:ident
        $load:ident $store:ident $sqrt:ident $low:ident $eight:ident
    ) => {
        impl Register<$number, { $lanes }> for $type {
            const SUMS: usize = 4;
            const IN_STEP: bool = true;

            #[inline(always)]
            fn load(lanes: &[$number; $lanes]) -> Self {
                unsafe { $type($load(lanes.as_ptr()), $load(lanes[$lanes / 2..].as_ptr())) }
            }
            #[inline(always)]
            fn lanes(self) -> [$number; $lanes] {
                let mut out = [0.0; $lanes];
                unsafe {
                    $store(out.as_mut_ptr(), self.0);
                    $store(out[$lanes / 2..].as_mut_ptr(), self.1);
                }
                out
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                unsafe { $type($sqrt(self.0), $sqrt(self.1)) }
            }
            #[inline(always)]
            fn total(lanes: &[$number; $lanes]) -> f64 {
                $eight(lanes)
            }

            type Part = $raw;
            const PARTS: usize = 2;

            #[inline(always)]
            fn zeros() -> $raw {
                unsafe { $set(0.0) }
            }
            #[inline(always)]
            fn load_part(lanes: &[$number; $lanes], part: usize) -> $raw {
                unsafe { $load(lanes[part * $lanes / 2..][..$lanes / 2].as_ptr()) }
            }
            #[inline(always)]
            fn store_part(from: $raw, part: usize, to: &mut [$number; $lanes]) {
                let (low, high) = to.split_at_mut($lanes / 2);
                unsafe { $store(if part == 0 { low } else { high }.as_mut_ptr(), from) };
            }
            #[inline(always)]
            fn fma_part(a: $raw, b: $raw, c: $raw) -> $raw {
                unsafe { $fma(a, b, c) }
            }
        }

        impl Arithmetic for $type {
            const FORMAT: Format = $format;

            #[inline(always)]
            fn splat(value: f64) -> Self {
                let v = unsafe { $set(value as $number) };
                $type(v, v)
            }
            #[inline(always)]
            fn add(self, b: Self) -> Self {
                unsafe { $type($add(self.0, b.0), $add(self.1, b.1)) }
            }
            #[inline(always)]
            fn sub(self, b: Self) -> Self {
                unsafe { $type($sub(self.0, b.0), $sub(self.1, b.1)) }
            }
            #[inline(always)]
            fn mul(self, b: Self) -> Self {
                unsafe { $type($mul(self.0, b.0), $mul(self.1, b.1)) }
            }
            #[inline(always)]
            fn div(self, b: Self) -> Self {
                unsafe { $type($div(self.0, b.0), $div(self.1, b.1)) }
            }
            #[inline(always)]
            fn fma(self, b: Self, c: Self) -> Self {
                unsafe { $type($fma(self.0, b.0, c.0), $fma(self.1, b.1, c.1)) }
            }
            #[inline(always)]
            fn in_place(self) -> Self {
                unsafe {
                    let (low, high) = ($low(self.0), $low(self.1));
                    std::arch::asm!("/* {0} {1} */", in(xmm_reg) low, in(xmm_reg) high, options(nomem, nostack, preserves_flags));
                }
                self
            }
            #[inline(always)]
            fn max(self, b: Self) -> Self {
                unsafe { $type($max(self.0, b.0), $max(self.1, b.1)) }
            }
            #[inline(always)]
            fn if_below(self, limit: Self, yes: Self, no: Self) -> Self {
                unsafe {
                    let low = $cmp::<_CMP_LT_OQ>(self.0, limit.0);
                    let high = $cmp::<_CMP_LT_OQ>(self.1, limit.1);
                    $type($blend(no.0, yes.0, low), $blend(no.1, yes.1, high))
                }
            }
            #[inline(always)]
            fn power_of_two(self) -> Self {
                $type($type::power(self.0), $type::power(self.1))
            }
            #[inline(always)]
            fn split(self) -> (Self, Self) {
                let (low, high) = ($type::split_one(self.0), $type::split_one(self.1));
                ($type(low.0, high.0), $type(low.1, high.1))
            }
        }

        impl $type {
            #[inline(always)]
            fn power(v: $raw) -> $raw {
                unsafe {
                    let biased = $add_bits($to_bits(v), $set_bits($bits::BIAS as $integer));
                    $from_bits($left::<$mantissa>(biased))
                }
            }
            #[inline(always)]
            fn split_one(v: $raw) -> ($raw, $raw) {
                unsafe {
                    let half = $set_bits($bits::SQRT_HALF as $integer);
                    let one_less_half = ($bits::BIAS << $mantissa) - $bits::SQRT_HALF;
                    let shifted = $add_bits($to_bits(v), $set_bits(one_less_half as $integer));
                    let integer = $set_bits($bits::INTEGER as $integer);
                    let e = $from_bits(_mm256_or_si256($right::<$mantissa>(shifted), integer));
                    let m = _mm256_and_si256(shifted, $set_bits($bits::MANTISSA as $integer));
                    ($sub(e, $set($bits::INTEGER_AND_BIAS)), $from_bits($add_bits(m, half)))
                }
            }
        }
    };
}

avx2! {
    Avx2, __m256d, f64, LANES, 52, double, i64, DOUBLE,
    _mm256_set1_pd _mm256_add_pd _mm256_sub_pd _mm256_mul_pd _mm256_div_pd _mm256_fmadd_pd _mm256_max_pd
    _mm256_cmp_pd _mm256_blendv_pd
    _mm256_set1_epi64x _mm256_add_epi64 _mm256_slli_epi64 _mm256_srli_epi64 _mm256_castpd_si256 _mm256_castsi256_pd
    _mm256_loadu_pd _mm256_storeu_pd _mm256_sqrt_pd _mm256_castpd256_pd128 total_of_eight
}

avx2! {
    Avx2Singles, __m256, f32, SINGLES, 23, single, i32, SINGLE,
    _mm256_set1_ps _mm256_add_ps _mm256_sub_ps _mm256_mul_ps _mm256_div_ps _mm256_fmadd_ps _mm256_max_ps
    _mm256_cmp_ps _mm256_blendv_ps
    _mm256_set1_epi32 _mm256_add_epi32 _mm256_slli_epi32 _mm256_srli_epi32 _mm256_castps_si256 _mm256_castsi256_ps
    _mm256_loadu_ps _mm256_storeu_ps _mm256_sqrt_ps _mm256_castps256_ps128 total_of_sixteen
}

impl Vector for Avx512 {
    type Singles = Avx512Singles;
    type Words = Avx512Words;

    #[inline(always)]
    fn not_below(self, limit: Self) -> u8 {
        unsafe { _mm512_cmp_pd_mask::<_CMP_NLT_UQ>(self.0, limit.0) }
    }
    #[inline(always)]
    fn chosen(self, lanes: u8) -> Self {
        Avx512(unsafe { _mm512_maskz_mov_pd(lanes, self.0) })
    }
    #[inline(always)]
    fn transposed(rows: [Self; LANES]) -> [Self; LANES] {
        // Pairs of lanes, then quarters of vectors, then halves.
        let (mut pairs, mut fours, mut out) = (rows, rows, rows);
        for k in 0..4 {
            let (a, b) = (rows[2 * k].0, rows[2 * k + 1].0);
            unsafe {
                (pairs[k].0, pairs[4 + k].0) = (_mm512_unpacklo_pd(a, b), _mm512_unpackhi_pd(a, b));
            }
        }
        for k in 0..4 {
            let (a, b) = (pairs[2 * k].0, pairs[2 * k + 1].0);
            unsafe {
                (fours[2 * k].0, fours[2 * k + 1].0) =
                    (_mm512_shuffle_f64x2::<0x88>(a, b), _mm512_shuffle_f64x2::<0xdd>(a, b));
            }
        }
        for odd in 0..2 {
            for k in 0..2 {
                let (a, b) = (fours[4 * odd + k].0, fours[4 * odd + 2 + k].0);
                unsafe {
                    out[2 * k + odd].0 = _mm512_shuffle_f64x2::<0x88>(a, b);
                    out[4 + 2 * k + odd].0 = _mm512_shuffle_f64x2::<0xdd>(a, b);
                }
            }
        }
        out
    }
    #[inline(always)]
    fn fetch<T>(items: &[T]) {
        fetch(items);
    }
    #[inline(always)]
    fn singles(self, others: Self) -> Avx512Singles {
        unsafe {
            let low = _mm512_castps256_ps512(_mm512_cvtpd_ps(self.0));
            Avx512Singles(_mm512_insertf32x8::<1>(low, _mm512_cvtpd_ps(others.0)))
        }
    }
    #[inline(always)]
    fn doubles(singles: Avx512Singles) -> [Self; 2] {
        unsafe {
            let low = _mm512_castps512_ps256(singles.0);
            let high = _mm512_extractf32x8_ps::<1>(singles.0);
            [Avx512(_mm512_cvtps_pd(low)), Avx512(_mm512_cvtps_pd(high))]
        }
    }
    #[inline(always)]
    fn from_bits(words: Avx512Words) -> Self {
        Avx512(unsafe { _mm512_castsi512_pd(words.0) })
    }
}

impl Vector for Avx2 {
    type Singles = Avx2Singles;
    type Words = Avx2Words;

    #[inline(always)]
    fn not_below(self, limit: Self) -> u8 {
        unsafe {
            let low = _mm256_movemask_pd(_mm256_cmp_pd::<_CMP_NLT_UQ>(self.0, limit.0));
            let high = _mm256_movemask_pd(_mm256_cmp_pd::<_CMP_NLT_UQ>(self.1, limit.1));
            (low | high << 4) as u8
        }
    }
    #[inline(always)]
    fn chosen(self, lanes: u8) -> Self {
        unsafe {
            let lanes = _mm256_set1_epi64x(i64::from(lanes));
            let (first, last) = (_mm256_setr_epi64x(1, 2, 4, 8), _mm256_setr_epi64x(16, 32, 64, 128));
            let low = _mm256_cmpeq_epi64(_mm256_and_si256(lanes, first), first);
            let high = _mm256_cmpeq_epi64(_mm256_and_si256(lanes, last), last);
            Avx2(
                _mm256_and_pd(self.0, _mm256_castsi256_pd(low)),
                _mm256_and_pd(self.1, _mm256_castsi256_pd(high)),
            )
        }
    }
    #[inline(always)]
    fn transposed(rows: [Self; LANES]) -> [Self; LANES] {
        let [a, b, c, d, e, f, g, h] = rows;
        let (top, bottom) = (four_by_four(a.0, b.0, c.0, d.0), four_by_four(a.1, b.1, c.1, d.1));
        let (right, corner) = (four_by_four(e.0, f.0, g.0, h.0), four_by_four(e.1, f.1, g.1, h.1));
        let mut out = rows;
        for i in 0..4 {
            (out[i], out[4 + i]) = (Avx2(top[i], right[i]), Avx2(bottom[i], corner[i]));
        }
        out
    }
    #[inline(always)]
    fn fetch<T>(items: &[T]) {
        fetch(items);
    }
    #[inline(always)]
    fn singles(self, others: Self) -> Avx2Singles {
        unsafe {
            let low = _mm256_set_m128(_mm256_cvtpd_ps(self.1), _mm256_cvtpd_ps(self.0));
            let high = _mm256_set_m128(_mm256_cvtpd_ps(others.1), _mm256_cvtpd_ps(others.0));
            Avx2Singles(low, high)
        }
    }
    #[inline(always)]
    fn doubles(singles: Avx2Singles) -> [Self; 2] {
        let Avx2Singles(a, b) = singles;
        unsafe {
            [
                Avx2(
                    _mm256_cvtps_pd(_mm256_castps256_ps128(a)),
                    _mm256_cvtps_pd(_mm256_extractf128_ps::<1>(a)),
                ),
                Avx2(
                    _mm256_cvtps_pd(_mm256_castps256_ps128(b)),
                    _mm256_cvtps_pd(_mm256_extractf128_ps::<1>(b)),
                ),
            ]
        }
    }
    #[inline(always)]
    fn from_bits(words: Avx2Words) -> Self {
        unsafe { Avx2(_mm256_castsi256_pd(words.0), _mm256_castsi256_pd(words.1)) }
    }
}

/// By vectors of four: they are those of both levels.
#[inline(always)]
fn total_of_eight(lanes: &[f64; LANES]) -> f64 {
    let (low, high) = lanes.split_at(LANES / 2);
    unsafe { total_of_four(_mm256_add_pd(_mm256_loadu_pd(low.as_ptr()), _mm256_loadu_pd(high.as_ptr()))) }
}

#[inline(always)]
fn total_of_sixteen(lanes: &[f32; SINGLES]) -> f64 {
    let (fours, _) = lanes.as_chunks::<4>();
    unsafe {
        let first = _mm256_cvtps_pd(_mm_loadu_ps(fours[0].as_ptr()));
        let second = _mm256_cvtps_pd(_mm_loadu_ps(fours[1].as_ptr()));
        let third = _mm256_cvtps_pd(_mm_loadu_ps(fours[2].as_ptr()));
        let fourth = _mm256_cvtps_pd(_mm_loadu_ps(fours[3].as_ptr()));
        total_of_four(_mm256_add_pd(_mm256_add_pd(first, third), _mm256_add_pd(second, fourth)))
    }
}

#[inline(always)]
fn total_of_four(x: __m256d) -> f64 {
    unsafe {
        let two = _mm_add_pd(_mm256_castpd256_pd128(x), _mm256_extractf128_pd::<1>(x));
        _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)))
    }
}

#[inline(always)]
fn four_by_four(a: __m256d, b: __m256d, c: __m256d, d: __m256d) -> [__m256d; 4] {
    unsafe {
        let (ab, ab_odd) = (_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b));
        let (cd, cd_odd) = (_mm256_unpacklo_pd(c, d), _mm256_unpackhi_pd(c, d));
        [
            _mm256_permute2f128_pd::<0x20>(ab, cd),
            _mm256_permute2f128_pd::<0x20>(ab_odd, cd_odd),
            _mm256_permute2f128_pd::<0x31>(ab, cd),
            _mm256_permute2f128_pd::<0x31>(ab_odd, cd_odd),
        ]
    }
}

/// How far to shift, as the shifts by a number known only when inlined want it.
#[inline(always)]
fn count(bits: u32) -> __m128i {
    unsafe { _mm_cvtsi32_si128(bits as i32) }
}

impl Words for Avx512Words {
    #[inline(always)]
    fn load(words: &[u64; LANES]) -> Self {
        Avx512Words(unsafe { _mm512_loadu_si512(words.as_ptr().cast()) })
    }
    #[inline(always)]
    fn splat(word: u64) -> Self {
        Avx512Words(unsafe { _mm512_set1_epi64(word as i64) })
    }
    #[inline(always)]
    fn add(self, b: Self) -> Self {
        Avx512Words(unsafe { _mm512_add_epi64(self.0, b.0) })
    }
    #[inline(always)]
    fn or(self, b: Self) -> Self {
        Avx512Words(unsafe { _mm512_or_si512(self.0, b.0) })
    }
    #[inline(always)]
    fn xor(self, b: Self) -> Self {
        Avx512Words(unsafe { _mm512_xor_si512(self.0, b.0) })
    }
    #[inline(always)]
    fn left(self, bits: u32) -> Self {
        Avx512Words(unsafe { _mm512_sll_epi64(self.0, count(bits)) })
    }
    #[inline(always)]
    fn right(self, bits: u32) -> Self {
        Avx512Words(unsafe { _mm512_srl_epi64(self.0, count(bits)) })
    }
}

impl Words for Avx2Words {
    #[inline(always)]
    fn load(words: &[u64; LANES]) -> Self {
        let (low, high) = words.split_at(LANES / 2);
        unsafe {
            Avx2Words(_mm256_loadu_si256(low.as_ptr().cast()), _mm256_loadu_si256(high.as_ptr().cast()))
        }
    }
    #[inline(always)]
    fn splat(word: u64) -> Self {
        let v = unsafe { _mm256_set1_epi64x(word as i64) };
        Avx2Words(v, v)
    }
    #[inline(always)]
    fn add(self, b: Self) -> Self {
        unsafe { Avx2Words(_mm256_add_epi64(self.0, b.0), _mm256_add_epi64(self.1, b.1)) }
    }
    #[inline(always)]
    fn or(self, b: Self) -> Self {
        unsafe { Avx2Words(_mm256_or_si256(self.0, b.0), _mm256_or_si256(self.1, b.1)) }
    }
    #[inline(always)]
    fn xor(self, b: Self) -> Self {
        unsafe { Avx2Words(_mm256_xor_si256(self.0, b.0), _mm256_xor_si256(self.1, b.1)) }
    }
    #[inline(always)]
    fn left(self, bits: u32) -> Self {
        let count = count(bits);
        unsafe { Avx2Words(_mm256_sll_epi64(self.0, count), _mm256_sll_epi64(self.1, count)) }
    }
    #[inline(always)]
    fn right(self, bits: u32) -> Self {
        let count = count(bits);
        unsafe { Avx2Words(_mm256_srl_epi64(self.0, count), _mm256_srl_epi64(self.1, count)) }
    }
}

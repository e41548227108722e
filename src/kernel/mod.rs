//! The few hot loops, written once over eight lanes and compiled three times: for AVX-512, for AVX2 with FMA, and
//! plain. The level is chosen at run time. AVX-512 and AVX2 give the same bits (both fuse multiply and add, both
//! sum in the same eight lanes); plain code differs in the last digits, so the level is recorded with every run.
//! The weights of a draw are the same bits at all three ([`exponentials`]).

// `unsafe` is for CPU features alone: intrinsics in `vector`, and calls of functions compiled for a feature in
// `dispatch!`, for which a `Level` is the proof that the CPU has it.
#![allow(unsafe_code)]

pub mod column;
pub mod components;
pub mod elementary;
pub mod entries;
pub mod exponentials;
pub mod lanes;
mod level;
pub mod log_sums;
pub mod mixture;
pub mod products;
pub mod regression;
pub mod sparse;
mod special;
pub mod tape;
pub mod triangle;
mod vector;

use ndarray::ArrayView2;

use crate::storage::{Buffer, Place};

pub use level::{Level, Simd, available};
pub use vector::{Arithmetic, LANES, Lanes, Line, SINGLES, Scalar};

/// Compiles the body of a kernel for every level: `dispatch! { fn name(args) -> ret = body }` makes `name(level, args)`
/// out of `body::<V: Vector>(args)`. `fn name[T, L](args)` is for numbers of any format, and its body
/// `body::<V: Vector, T: Scalar<L>, const L: usize>(args)`; `fn name<F: Family>` is for any `F`, which comes after `V`.
macro_rules! dispatch {
    (
        $(#[$doc:meta])* $vis:vis fn $name:ident $(<$family:ident: $bound:ident>)? $([$number:ident, $lanes:ident])?
        ($($arg:ident: $type:ty),* $(,)?) $(-> $ret:ty)? = $body:ident
    ) => {
        $(#[$doc])*
        #[allow(clippy::too_many_arguments)]
        $vis fn $name <$($family: $bound,)? $($number: $crate::kernel::Scalar<$lanes>, const $lanes: usize)?> (
            level: $crate::kernel::Level,
            $($arg: $type),*
        ) $(-> $ret)? {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512dq,avx2,fma")]
                fn avx512 <$($family: $bound,)? $($number: $crate::kernel::Scalar<$lanes>, const $lanes: usize)?> (
                    $($arg: $type),*
                ) $(-> $ret)? {
                    $body::<$crate::kernel::vector::Avx512 $(, $family)? $(, $number, $lanes)?>($($arg),*)
                }
                #[target_feature(enable = "avx2,fma")]
                fn avx2 <$($family: $bound,)? $($number: $crate::kernel::Scalar<$lanes>, const $lanes: usize)?> (
                    $($arg: $type),*
                ) $(-> $ret)? {
                    $body::<$crate::kernel::vector::Avx2 $(, $family)? $(, $number, $lanes)?>($($arg),*)
                }
                // SAFETY: there is no level but those that `Level::detected` has found on this CPU.
                match level.simd() {
                    $crate::kernel::Simd::Avx512 => return unsafe { avx512::<$($family,)? $($number, $lanes)?>($($arg),*) },
                    $crate::kernel::Simd::Avx2 => return unsafe { avx2::<$($family,)? $($number, $lanes)?>($($arg),*) },
                    $crate::kernel::Simd::Plain => {}
                }
            }
            let _ = level;
            $body::<$crate::kernel::vector::Plain $(, $family)? $(, $number, $lanes)?>($($arg),*)
        }
    };
}
use dispatch;

/// Rows in groups of eight doubles or sixteen singles, column after column within a group, so that the rows of a group are
/// worked on in step. The last group is filled up with the last row; whoever weighs the rows gives those weight 0.
#[derive(Debug)]
pub struct Panel<T = f64, const L: usize = LANES> {
    groups: Buffer<Line<T, L>>,
    n: usize,
    d: usize,
    /// The middle of each column, and half of its range.
    centre: Vec<f64>,
    reach: Vec<f64>,
}

impl<T: Copy, const L: usize> Clone for Panel<T, L> {
    fn clone(&self) -> Self {
        let Panel { groups, n, d, centre, reach } = self;
        Panel { groups: groups.clone(), n: *n, d: *d, centre: centre.clone(), reach: reach.clone() }
    }
}

impl<T: Scalar<L>, const L: usize> Panel<T, L> {
    pub fn new(x: ArrayView2<f64>) -> Self {
        Panel::with_ones(x, 0)
    }

    /// With so many columns of ones after those of `x`: one is an intercept.
    pub fn with_ones(x: ArrayView2<f64>, ones: usize) -> Self {
        Panel::placed(x, ones, Place::Memory)
    }

    /// The same, there.
    pub fn placed(x: ArrayView2<f64>, ones: usize, place: Place) -> Self {
        let (n, d) = (x.nrows(), x.ncols() + ones);
        let mut groups = Buffer::filled(place, n.div_ceil(L) * d, Line([T::of(1.0); L]));
        for i in 0..n.next_multiple_of(L) {
            for (j, &value) in x.row(i.min(n - 1)).iter().enumerate() {
                groups[(i / L) * d + j][i % L] = T::of(value);
            }
        }
        let (mut least, mut most) = (vec![f64::INFINITY; d], vec![f64::NEG_INFINITY; d]);
        for (at, line) in groups.iter().enumerate() {
            let j = at % d;
            let values = || line.iter().map(|&value| value.into());
            least[j] = values().fold(least[j], f64::min);
            most[j] = values().fold(most[j], f64::max);
        }
        let ends = || least.iter().zip(&most);
        let centre = ends().map(|(least, most)| 0.5 * least + 0.5 * most).collect();
        let reach = ends().map(|(least, most)| 0.5 * most - 0.5 * least).collect();
        Panel { groups, n, d, centre, reach }
    }

    pub fn n(&self) -> usize {
        self.n
    }

    pub fn d(&self) -> usize {
        self.d
    }

    /// The rows of group `g`, one entry per column.
    fn group(&self, g: usize) -> &[Line<T, L>] {
        &self.groups[g * self.d..(g + 1) * self.d]
    }

    pub fn groups(&self) -> usize {
        self.n.div_ceil(L)
    }

    /// Rows, with those that fill up the last group.
    pub fn rows(&self) -> usize {
        self.groups() * L
    }

    /// The largest absolute value of each column.
    pub fn sizes(&self) -> impl Iterator<Item = f64> {
        self.centre.iter().zip(&self.reach).map(|(centre, reach)| centre.abs() + reach)
    }
}

/// Eight consecutive values from `8 g` on, zeros beyond the end.
pub fn load(values: &[f64], g: usize) -> Lanes {
    let rest = &values[g * LANES..];
    match rest.first_chunk::<LANES>() {
        Some(full) => *full,
        None => {
            let mut lanes = [0.0; LANES];
            lanes[..rest.len()].copy_from_slice(rest);
            lanes
        }
    }
}

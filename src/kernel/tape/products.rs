//! X β of a tile of rows for several draws, and Xᵀ s: the rows are read once for all of them. Lanes are rows here; where lanes
//! are searches, see [`products`](crate::kernel::products).

use std::ops::Range;

use crate::kernel::vector::{Line, Register, Vector};
use crate::kernel::{Panel, dispatch};

dispatch! {
    /// Σⱼ xᵢⱼ βⱼ of the rows of `groups`, for every draw.
    pub fn margins(x: &Panel, groups: Range<usize>, beta: &[&[f64]], out: &mut [&mut [Line]]) = margins_body
}

#[inline(always)]
fn margins_body<V: Vector>(x: &Panel, groups: Range<usize>, beta: &[&[f64]], out: &mut [&mut [Line]]) {
    if <V as Register<f64, 8>>::SUMS >= 16 {
        by_draws::<V, 4, 4>(x, groups, beta, out);
    } else {
        by_draws::<V, 2, 2>(x, groups, beta, out);
    }
}

/// G groups of rows and S draws at a time; what is left over one by one. Every sum goes by columns.
#[inline(always)]
fn by_draws<V: Vector, const G: usize, const S: usize>(
    x: &Panel,
    groups: Range<usize>,
    beta: &[&[f64]],
    out: &mut [&mut [Line]],
) {
    let whole = beta.len() - beta.len() % S;
    let len = groups.len();
    for at in (0..len).step_by(G) {
        let full = at + G <= len;
        for s in (0..whole).step_by(S) {
            match full {
                true => margins_of::<V, G, S>(x, groups.start, at, &beta[s..], &mut out[s..]),
                false => (at..len).for_each(|at| {
                    margins_of::<V, 1, S>(x, groups.start, at, &beta[s..], &mut out[s..]);
                }),
            }
        }
        for s in whole..beta.len() {
            match full {
                true => margins_of::<V, G, 1>(x, groups.start, at, &beta[s..], &mut out[s..]),
                false => (at..len).for_each(|at| {
                    margins_of::<V, 1, 1>(x, groups.start, at, &beta[s..], &mut out[s..]);
                }),
            }
        }
    }
}

#[inline(always)]
fn margins_of<V: Vector, const G: usize, const S: usize>(
    x: &Panel,
    first: usize,
    at: usize,
    beta: &[&[f64]],
    out: &mut [&mut [Line]],
) {
    let d = x.d();
    let rows: [&[Line]; G] = std::array::from_fn(|g| &x.group(first + at + g)[..d]);
    let beta: [&[f64]; S] = std::array::from_fn(|s| &beta[s][..d]);
    let mut sums = [[V::splat(0.0); S]; G];
    for j in 0..d {
        let mut own = [V::splat(0.0); G];
        for g in 0..G {
            own[g] = V::load(&rows[g][j]);
        }
        for s in 0..S {
            let b = V::splat(beta[s][j]);
            for g in 0..G {
                sums[g][s] = own[g].fma(b, sums[g][s]);
            }
        }
    }
    for g in 0..G {
        for s in 0..S {
            out[s][at + g].0 = sums[g][s].lanes();
        }
    }
}

dispatch! {
    /// Adds Σᵢ xᵢⱼ sᵢ over the rows of `groups` to the lines of every draw, one for each column; their lanes are still to be summed.
    pub fn add_gradients(x: &Panel, groups: Range<usize>, slopes: &[&[Line]], out: &mut [&mut [Line]]) = gradients_body
}

#[inline(always)]
fn gradients_body<V: Vector>(x: &Panel, groups: Range<usize>, slopes: &[&[Line]], out: &mut [&mut [Line]]) {
    if <V as Register<f64, 8>>::SUMS >= 16 {
        by_columns::<V, 4, 4>(x, groups, slopes, out);
    } else {
        by_columns::<V, 2, 2>(x, groups, slopes, out);
    }
}

#[inline(always)]
fn by_columns<V: Vector, const J: usize, const S: usize>(
    x: &Panel,
    groups: Range<usize>,
    slopes: &[&[Line]],
    out: &mut [&mut [Line]],
) {
    let (draws, columns) = (slopes.len() - slopes.len() % S, x.d() - x.d() % J);
    for j in (0..columns).step_by(J) {
        for s in (0..draws).step_by(S) {
            gradients_of::<V, J, S>(x, groups.clone(), j, &slopes[s..], &mut out[s..]);
        }
        for s in draws..slopes.len() {
            gradients_of::<V, J, 1>(x, groups.clone(), j, &slopes[s..], &mut out[s..]);
        }
    }
    for j in columns..x.d() {
        for s in 0..slopes.len() {
            gradients_of::<V, 1, 1>(x, groups.clone(), j, &slopes[s..], &mut out[s..]);
        }
    }
}

#[inline(always)]
fn gradients_of<V: Vector, const J: usize, const S: usize>(
    x: &Panel,
    groups: Range<usize>,
    j: usize,
    slopes: &[&[Line]],
    out: &mut [&mut [Line]],
) {
    let mut sums = [[V::splat(0.0); S]; J];
    for c in 0..J {
        for s in 0..S {
            sums[c][s] = V::load(&out[s][j + c]);
        }
    }
    for (i, g) in groups.enumerate() {
        let x = &x.group(g)[j..j + J];
        let mut own = [V::splat(0.0); S];
        for s in 0..S {
            own[s] = V::load(&slopes[s][i]);
        }
        for c in 0..J {
            let x = V::load(&x[c]);
            for s in 0..S {
                sums[c][s] = x.fma(own[s], sums[c][s]);
            }
        }
    }
    for c in 0..J {
        for s in 0..S {
            out[s][j + c].0 = sums[c][s].lanes();
        }
    }
}

//! Products of the rows of a panel with the vectors of searches, a lane each: margins X θ, gradients Xᵀ s. Every
//! entry is summed in the order of columns or rows, so that no result depends on how the work is cut.

use std::ops::Range;

use super::vector::{Line, Register, Scalar, Vector};
use super::{Level, Panel, dispatch};

dispatch! {
    /// Adds Σⱼ xᵢⱼ θⱼ over `columns` to the margin of every row of `groups`, for some lines of searches; every `theta`
    /// begins with the first of the columns, and every `margins` with the first of the rows.
    pub fn add_margins[T, L](
        x: &Panel<T, L>,
        groups: Range<usize>,
        columns: Range<usize>,
        theta: &[&[Line<T, L>]],
        margins: &mut [&mut [Line<T, L>]],
    ) = add_margins_body
}

#[inline(always)]
fn add_margins_body<V: Vector, T: Scalar<L>, const L: usize>(
    x: &Panel<T, L>,
    groups: Range<usize>,
    columns: Range<usize>,
    theta: &[&[Line<T, L>]],
    margins: &mut [&mut [Line<T, L>]],
) {
    for (i, g) in groups.enumerate() {
        let x = &x.group(g)[columns.clone()];
        let rows = L * i..L * (i + 1);
        // Two at a time, where there are registers for the sums of both: a cell that is loaded serves them both.
        for (theta, margins) in theta.chunks(2).zip(margins.chunks_mut(2)) {
            match (theta, margins) {
                (&[a, b], [out_a, out_b]) if <T::In<V>>::SUMS >= 16 => {
                    for first in (0..L).step_by(8) {
                        let out = [&mut out_a[rows.clone()], &mut out_b[rows.clone()]];
                        add_to_rows::<T::In<V>, T, L, 8, 2>(x, first, [a, b], out);
                    }
                }
                (theta, margins) => {
                    for (theta, margins) in theta.iter().zip(margins) {
                        for first in (0..L).step_by(4) {
                            let out = [&mut margins[rows.clone()]];
                            add_to_rows::<T::In<V>, T, L, 4, 1>(x, first, [theta], out);
                        }
                    }
                }
            }
        }
    }
}

/// N rows of a group from `first` on, for D lines of searches.
#[inline(always)]
fn add_to_rows<V: Register<T, L>, T: Scalar<L>, const L: usize, const N: usize, const D: usize>(
    x: &[Line<T, L>],
    first: usize,
    theta: [&[Line<T, L>]; D],
    margins: [&mut [Line<T, L>]; D],
) {
    let theta = theta.map(|theta| &theta[..x.len()]);
    // Loops and no closures: these are not always inlined into code that is compiled for a feature.
    let mut sums = [[V::splat(0.0); N]; D];
    for (sums, margins) in sums.iter_mut().zip(&margins) {
        for (sum, margin) in sums.iter_mut().zip(&margins[first..]) {
            *sum = V::load(margin);
        }
    }
    for (j, x) in x.iter().enumerate() {
        let mut own = [V::splat(0.0); D];
        for (own, theta) in own.iter_mut().zip(&theta) {
            *own = V::load(&theta[j]);
        }
        for r in 0..N {
            let x = V::splat(x[first + r].into());
            for s in 0..D {
                sums[s][r] = x.fma(own[s], sums[s][r]);
            }
        }
    }
    for (sums, margins) in sums.iter().zip(margins) {
        for (sum, margin) in sums.iter().zip(&mut margins[first..]) {
            margin.0 = sum.lanes();
        }
    }
}

dispatch! {
    /// Adds Σᵢ xᵢⱼ sᵢ over the rows of `groups` to the entries of `gradients`, for some lines of searches; every one of
    /// these begins with the first of `columns`, and every `slopes` with the first of the rows.
    pub fn add_gradients[T, L](
        x: &Panel<T, L>,
        groups: Range<usize>,
        columns: Range<usize>,
        slopes: &[&[Line<T, L>]],
        gradients: &mut [&mut [Line<T, L>]],
    ) = add_gradients_body
}

#[inline(always)]
fn add_gradients_body<V: Vector, T: Scalar<L>, const L: usize>(
    x: &Panel<T, L>,
    groups: Range<usize>,
    columns: Range<usize>,
    slopes: &[&[Line<T, L>]],
    gradients: &mut [&mut [Line<T, L>]],
) {
    for (i, g) in groups.enumerate() {
        let x = &x.group(g)[columns.clone()];
        let rows = L * i..L * (i + 1);
        for (slopes, gradients) in slopes.chunks(2).zip(gradients.chunks_mut(2)) {
            match (slopes, gradients) {
                (&[a, b], [out_a, out_b]) if <T::In<V>>::SUMS >= 16 => {
                    for first in (0..L).step_by(8) {
                        let slopes = [&a[rows.clone()], &b[rows.clone()]];
                        add_rows::<T::In<V>, T, L, 8, 2>(x, first, slopes, [&mut out_a[..], &mut out_b[..]]);
                    }
                }
                (slopes, gradients) => {
                    for (slopes, gradient) in slopes.iter().zip(gradients) {
                        for first in (0..L).step_by(4) {
                            let slopes = [&slopes[rows.clone()]];
                            add_rows::<T::In<V>, T, L, 4, 1>(x, first, slopes, [&mut gradient[..]]);
                        }
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn add_rows<V: Register<T, L>, T: Scalar<L>, const L: usize, const N: usize, const D: usize>(
    x: &[Line<T, L>],
    first: usize,
    slopes: [&[Line<T, L>]; D],
    gradients: [&mut [Line<T, L>]; D],
) {
    let mut own = [[V::splat(0.0); N]; D];
    for (own, slopes) in own.iter_mut().zip(&slopes) {
        for (own, slope) in own.iter_mut().zip(&slopes[first..]) {
            *own = V::load(slope);
        }
    }
    let mut gradients = gradients.map(|gradient| &mut gradient[..x.len()]);
    for (j, x) in x.iter().enumerate() {
        let mut sums = [V::splat(0.0); D];
        for (sum, gradient) in sums.iter_mut().zip(&gradients) {
            *sum = V::load(&gradient[j]);
        }
        for r in 0..N {
            let x = V::splat(x[first + r].into());
            for s in 0..D {
                sums[s] = x.fma(own[s][r], sums[s]);
            }
        }
        for (sum, gradient) in sums.iter().zip(&mut gradients) {
            gradient[j].0 = sum.lanes();
        }
    }
}

/// Groups of rows that are worked on together: some columns of theirs stay in the first-level cache.
pub const NEAR: usize = 48;

/// The lower triangles of Xᵀ V X, row after row, for every V, the diagonal of `weights`, a line per group of rows.
pub fn cross_products<T: Scalar<L>, const L: usize>(
    level: Level,
    x: &Panel<T, L>,
    weights: &[&[Line<T, L>]],
) -> Vec<Vec<f64>> {
    let d = x.d();
    let mut sums = vec![vec![0.0; d * (d + 1) / 2]; weights.len()];
    add_cross_products(level, x, 0..x.groups(), weights, &mut sums);
    sums
}

dispatch! {
    /// Adds the same of the rows of `groups` alone, whose lines the `weights` are. In pieces of [`NEAR`] groups, or a number of times
    /// that, the sums are those of all rows at once.
    pub fn add_cross_products[T, L](
        x: &Panel<T, L>,
        groups: Range<usize>,
        weights: &[&[Line<T, L>]],
        sums: &mut [Vec<f64>],
    ) = add_cross_products_body
}

#[inline(always)]
fn add_cross_products_body<V: Vector, T: Scalar<L>, const L: usize>(
    x: &Panel<T, L>,
    groups: Range<usize>,
    weights: &[&[Line<T, L>]],
    sums: &mut [Vec<f64>],
) {
    let d = x.d();
    let lines = &x.groups[groups.start * d..groups.end * d];
    for (piece, lines) in lines.chunks(NEAR * d.max(1)).enumerate() {
        for (weights, sums) in weights.iter().zip(sums.iter_mut()) {
            let weights = &weights[piece * NEAR..][..lines.len() / d];
            if <T::In<V>>::SUMS >= 16 {
                add_tiles::<T::In<V>, T, L, 6, 4>(lines, d, weights, sums);
            } else {
                add_tiles::<T::In<V>, T, L, 4, 3>(lines, d, weights, sums);
            }
        }
    }
}

/// By tiles of N rows and M columns, whose sums stay in registers; the last rows, where they are few, by wider ones: 64 columns and an
/// intercept leave one.
#[inline(always)]
fn add_tiles<V: Register<T, L>, T: Scalar<L>, const L: usize, const N: usize, const M: usize>(
    lines: &[Line<T, L>],
    d: usize,
    weights: &[Line<T, L>],
    sums: &mut [f64],
) {
    let left = &mut vec![Line::default(); N * weights.len()][..];
    for j in (0..d).step_by(N) {
        match d - j {
            1 => add_rows_of_tiles::<V, T, L, 1, 12>(lines, d, weights, sums, j, left),
            2 => add_rows_of_tiles::<V, T, L, 2, 6>(lines, d, weights, sums, j, left),
            _ => add_rows_of_tiles::<V, T, L, N, M>(lines, d, weights, sums, j, left),
        }
    }
}

/// The rows from `j` on.
#[allow(clippy::needless_range_loop)] // With iterators the compiler keeps some of the sums in memory.
#[inline(always)]
fn add_rows_of_tiles<V: Register<T, L>, T: Scalar<L>, const L: usize, const N: usize, const M: usize>(
    lines: &[Line<T, L>],
    d: usize,
    weights: &[Line<T, L>],
    sums: &mut [f64],
    j: usize,
    left: &mut [Line<T, L>],
) {
    let left = &mut left.as_chunks_mut::<N>().0[..weights.len()];
    // Columns beyond the last are the last again, and left out below.
    for ((left, group), w) in left.iter_mut().zip(lines.chunks_exact(d)).zip(weights) {
        for (r, left) in left.iter_mut().enumerate() {
            left.0 = V::load(&group[(j + r).min(d - 1)]).mul(V::load(w)).lanes();
        }
    }
    for k in (0..(j + N).min(d)).step_by(M) {
        // Loops and no closures here, too.
        let mut ks = [0; M];
        for (c, ks) in ks.iter_mut().enumerate() {
            *ks = (k + c).min(d - 1);
        }
        let mut whole = [[Line::default(); M]; N];
        // Not unrolled: in what follows the first part the compiler would keep some of the sums in memory.
        for part in 0..std::hint::black_box(V::PARTS) {
            let mut tile = [[V::zeros(); M]; N];
            for (left, group) in left.iter().zip(lines.chunks_exact(d)) {
                let mut right = [V::zeros(); M];
                for c in 0..M {
                    right[c] = V::load_part(&group[ks[c]], part);
                }
                for r in 0..N {
                    let left = V::load_part(&left[r], part);
                    for c in 0..M {
                        tile[r][c] = V::fma_part(left, right[c], tile[r][c]);
                    }
                }
            }
            for r in 0..N {
                for c in 0..M {
                    V::store_part(tile[r][c], part, &mut whole[r][c]);
                }
            }
        }
        for r in 0..N.min(d - j) {
            let row = &mut sums[(j + r) * (j + r + 1) / 2..][..j + r + 1];
            match row[k.min(j + r + 1)..].first_chunk_mut::<M>() {
                Some(row) => {
                    for c in 0..M {
                        row[c] += V::total(&whole[r][c]);
                    }
                }
                None => {
                    for (out, whole) in row.iter_mut().skip(k).zip(&whole[r]) {
                        *out += V::total(whole);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{LANES, available};
    use ndarray::Array2;

    /// Numbers without a pattern.
    fn noise(i: usize) -> f64 {
        ((i * 7919 + 13) % 997) as f64 / 500.0 - 1.0
    }

    fn lines(len: usize, from: usize) -> Vec<Line> {
        (0..len).map(|j| Line(std::array::from_fn(|l| noise(from + LANES * j + l)))).collect()
    }

    /// However rows and columns are cut, and at every level.
    #[test]
    fn products_are_those_of_the_definition() {
        let (n, d) = (29, 11);
        let x = Array2::from_shape_fn((n, d - 1), |(i, j)| noise(i * d + j));
        let entry = |i: usize, j: usize| if j + 1 < d { x[[i, j]] } else { 1.0 };
        let panel = Panel::with_ones(x.view(), 1);
        let rows = panel.groups() * LANES;
        // Three times eight searches.
        let theta = [5000, 5500, 6000].map(|from| lines(d, from));
        let mut slopes = [9000, 9500, 9900].map(|from| lines(rows, from));
        slopes.iter_mut().for_each(|slopes| slopes[n..].fill(Line::default()));
        for level in available() {
            let mut margins = [0; 3].map(|_| vec![Line::default(); rows]);
            let mut gradients = [0; 3].map(|_| vec![Line::default(); d]);
            for groups in [0..3, 3..4] {
                for columns in [0..7, 7..d] {
                    let rows = groups.start * LANES..groups.end * LANES;
                    let theta = theta.each_ref().map(|t| &t[columns.clone()]);
                    let mut out = margins.each_mut().map(|m| &mut m[rows.clone()]);
                    add_margins(level, &panel, groups.clone(), columns.clone(), &theta, &mut out);
                    let slopes = slopes.each_ref().map(|s| &s[rows.clone()]);
                    let mut out = gradients.each_mut().map(|g| &mut g[columns.clone()]);
                    add_gradients(level, &panel, groups.clone(), columns, &slopes, &mut out);
                }
            }
            for (s, l) in (0..3).flat_map(|s| (0..LANES).map(move |l| (s, l))) {
                for (i, margin) in margins[s][..n].iter().enumerate() {
                    let exact: f64 = (0..d).map(|j| entry(i, j) * theta[s][j][l]).sum();
                    assert!((margin[l] - exact).abs() < 1e-14, "{level:?}: margin {i}");
                }
                for (j, gradient) in gradients[s].iter().enumerate() {
                    let exact: f64 = (0..n).map(|i| entry(i, j) * slopes[s][i][l]).sum();
                    assert!((gradient[l] - exact).abs() < 1e-14, "{level:?}: gradient {j}");
                }
            }
        }
    }

    #[test]
    fn cross_products_are_those_of_the_definition() {
        for (n, d) in [(803, 11), (21, 1), (390, 24)] {
            let x = Array2::from_shape_fn((n, d), |(i, j)| noise(i * d + j));
            let panel = Panel::new(x.view());
            let weights = [300, 77].map(|first| {
                let mut weights = lines(panel.groups(), first);
                (n..panel.groups() * LANES).for_each(|i| weights[i / LANES][i % LANES] = 0.0);
                weights
            });
            for level in available() {
                let both = cross_products(level, &panel, &[&weights[0], &weights[1]]);
                for (lower, weights) in both.iter().zip(&weights) {
                    assert_eq!(lower.len(), d * (d + 1) / 2);
                    for (j, k) in (0..d).flat_map(|j| (0..=j).map(move |k| (j, k))) {
                        let of_row = |i: usize| weights[i / LANES][i % LANES] * x[[i, j]] * x[[i, k]];
                        let exact: f64 = (0..n).map(of_row).sum();
                        let found = lower[j * (j + 1) / 2 + k];
                        assert!((found - exact).abs() < 1e-12, "{level:?}: {j}, {k}");
                    }
                }
            }
        }
    }
}

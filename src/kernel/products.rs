//! Products of the rows of a panel with the vectors of eight searches, a lane each: margins X θ, gradients Xᵀ s. Every
//! entry is summed in the order of columns or rows, so that no result depends on how the work is cut.

use std::ops::Range;

use super::vector::{LANES, Line, Vector, sum};
use super::{Panel, dispatch};

dispatch! {
    /// Adds Σⱼ xᵢⱼ θⱼ over `columns` to the margin of every row of `groups`, for some times eight searches; every `theta`
    /// begins with the first of the columns, and every `margins` with the first of the rows.
    pub fn add_margins(
        x: &Panel,
        groups: Range<usize>,
        columns: Range<usize>,
        theta: &[&[Line]],
        margins: &mut [&mut [Line]],
    ) = add_margins_body
}

#[inline(always)]
fn add_margins_body<V: Vector>(
    x: &Panel,
    groups: Range<usize>,
    columns: Range<usize>,
    theta: &[&[Line]],
    margins: &mut [&mut [Line]],
) {
    for (i, g) in groups.enumerate() {
        let x = &x.group(g)[columns.clone()];
        let rows = LANES * i..LANES * (i + 1);
        // Two at a time, where there are registers for the sums of both: a cell that is loaded serves them both.
        for (theta, margins) in theta.chunks(2).zip(margins.chunks_mut(2)) {
            match (theta, margins) {
                (&[a, b], [out_a, out_b]) if V::SUMS >= 16 => {
                    let out = [&mut out_a[rows.clone()], &mut out_b[rows.clone()]];
                    add_to_rows::<V, 8, 2>(x, 0, [a, b], out);
                }
                (theta, margins) => {
                    for (theta, margins) in theta.iter().zip(margins) {
                        add_to_rows::<V, 4, 1>(x, 0, [theta], [&mut margins[rows.clone()]]);
                        add_to_rows::<V, 4, 1>(x, 4, [theta], [&mut margins[rows.clone()]]);
                    }
                }
            }
        }
    }
}

/// N rows of a group from `first` on, for D times eight searches.
#[inline(always)]
fn add_to_rows<V: Vector, const N: usize, const D: usize>(
    x: &[Line],
    first: usize,
    theta: [&[Line]; D],
    margins: [&mut [Line]; D],
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
            let x = V::splat(x[first + r]);
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
    /// Adds Σᵢ xᵢⱼ sᵢ over the rows of `groups` to the entries of `gradients`, for some times eight searches; every one of
    /// these begins with the first of `columns`, and every `slopes` with the first of the rows.
    pub fn add_gradients(
        x: &Panel,
        groups: Range<usize>,
        columns: Range<usize>,
        slopes: &[&[Line]],
        gradients: &mut [&mut [Line]],
    ) = add_gradients_body
}

#[inline(always)]
fn add_gradients_body<V: Vector>(
    x: &Panel,
    groups: Range<usize>,
    columns: Range<usize>,
    slopes: &[&[Line]],
    gradients: &mut [&mut [Line]],
) {
    for (i, g) in groups.enumerate() {
        let x = &x.group(g)[columns.clone()];
        let rows = LANES * i..LANES * (i + 1);
        for (slopes, gradients) in slopes.chunks(2).zip(gradients.chunks_mut(2)) {
            match (slopes, gradients) {
                (&[a, b], [out_a, out_b]) if V::SUMS >= 16 => {
                    add_rows::<V, 8, 2>(x, 0, [&a[rows.clone()], &b[rows.clone()]], [out_a, out_b]);
                }
                (slopes, gradients) => {
                    for (slopes, gradient) in slopes.iter().zip(gradients) {
                        add_rows::<V, 4, 1>(x, 0, [&slopes[rows.clone()]], [gradient]);
                        add_rows::<V, 4, 1>(x, 4, [&slopes[rows.clone()]], [gradient]);
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn add_rows<V: Vector, const N: usize, const D: usize>(
    x: &[Line],
    first: usize,
    slopes: [&[Line]; D],
    gradients: [&mut [Line]; D],
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
            let x = V::splat(x[first + r]);
            for s in 0..D {
                sums[s] = x.fma(own[s][r], sums[s]);
            }
        }
        for (sum, gradient) in sums.iter().zip(&mut gradients) {
            gradient[j].0 = sum.lanes();
        }
    }
}

/// Lines of a panel that are worked on together, so that they stay in the cache.
const NEAR: usize = 8192;

dispatch! {
    /// The lower triangle of Xᵀ V X, row after row, with V the diagonal of `weights`, a line per group of rows.
    pub fn cross_products(x: &Panel, weights: &[Line]) -> Vec<f64> = cross_products_body
}

#[inline(always)]
fn cross_products_body<V: Vector>(x: &Panel, weights: &[Line]) -> Vec<f64> {
    let d = x.d();
    let mut sums = vec![0.0; d * (d + 1) / 2];
    let size = (NEAR / d).max(1);
    for (piece, weights) in weights.chunks(size).enumerate() {
        let lines = &x.groups[piece * size * d..][..weights.len() * d];
        if V::SUMS >= 16 {
            add_squares::<V, 4>(lines, d, weights, &mut sums);
        } else {
            add_squares::<V, 2>(lines, d, weights, &mut sums);
        }
    }
    sums
}

/// By squares of N rows and columns, whose sums stay in registers.
#[inline(always)]
fn add_squares<V: Vector, const N: usize>(lines: &[Line], d: usize, weights: &[Line], sums: &mut [f64]) {
    for j in (0..d).step_by(N) {
        for k in (0..=j).step_by(N) {
            let mut square = [[V::splat(0.0); N]; N];
            // Columns beyond the last are the last again, and left out below.
            let (js, ks): ([usize; N], [usize; N]) =
                (std::array::from_fn(|r| (j + r).min(d - 1)), std::array::from_fn(|c| (k + c).min(d - 1)));
            for (group, w) in lines.chunks_exact(d).zip(weights) {
                let w = V::load(w);
                let right: [V; N] = std::array::from_fn(|c| V::load(&group[ks[c]]));
                for r in 0..N {
                    let left = V::load(&group[js[r]]).mul(w);
                    (0..N).for_each(|c| square[r][c] = left.fma(right[c], square[r][c]));
                }
            }
            for r in 0..N.min(d - j) {
                let row = &mut sums[(j + r) * (j + r + 1) / 2 + k..];
                for (out, square) in row.iter_mut().zip(&square[r][..N.min(j + r + 1 - k)]) {
                    *out += sum(&square.lanes());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::available;
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
        let (n, d) = (203, 11);
        let x = Array2::from_shape_fn((n, d), |(i, j)| noise(i * d + j));
        let panel = Panel::new(x.view());
        let mut weights = lines(panel.groups(), 300);
        (n..panel.groups() * LANES).for_each(|i| weights[i / LANES][i % LANES] = 0.0);
        for level in available() {
            let lower = cross_products(level, &panel, &weights);
            assert_eq!(lower.len(), d * (d + 1) / 2);
            for j in 0..d {
                for k in 0..=j {
                    let exact: f64 =
                        (0..n).map(|i| weights[i / LANES][i % LANES] * x[[i, j]] * x[[i, k]]).sum();
                    assert!((lower[j * (j + 1) / 2 + k] - exact).abs() < 1e-13, "{level:?}: {j}, {k}");
                }
            }
        }
    }
}

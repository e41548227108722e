//! Products of the rows of a panel with the vectors of eight searches, a lane each: margins X θ, gradients Xᵀ s. Every
//! entry is summed in the order of columns or rows, so that no result depends on how the work is cut.

use std::ops::Range;

use super::vector::{LANES, Line, Vector};
use super::{Panel, dispatch};

dispatch! {
    /// Adds Σⱼ xᵢⱼ θⱼ over `columns` to the margin of every row of `groups`; `theta` begins with the first of the columns.
    pub fn add_margins(x: &Panel, groups: Range<usize>, columns: Range<usize>, theta: &[Line], margins: &mut [Line])
        = add_margins_body
}

#[inline(always)]
fn add_margins_body<V: Vector>(
    x: &Panel,
    groups: Range<usize>,
    columns: Range<usize>,
    theta: &[Line],
    margins: &mut [Line],
) {
    for (g, margins) in groups.zip(margins.chunks_exact_mut(LANES)) {
        let x = &x.group(g)[columns.clone()];
        if V::SUMS >= 8 {
            add_to_rows::<V, 8>(x, 0, theta, margins);
        } else {
            add_to_rows::<V, 4>(x, 0, theta, margins);
            add_to_rows::<V, 4>(x, 4, theta, margins);
        }
    }
}

/// N rows of a group from `first` on.
#[inline(always)]
fn add_to_rows<V: Vector, const N: usize>(x: &[Line], first: usize, theta: &[Line], margins: &mut [Line]) {
    let mut sums: [V; N] = std::array::from_fn(|r| V::load(&margins[first + r]));
    for (x, theta) in x.iter().zip(theta) {
        let theta = V::load(theta);
        for r in 0..N {
            sums[r] = V::splat(x[first + r]).fma(theta, sums[r]);
        }
    }
    for r in 0..N {
        margins[first + r].0 = sums[r].lanes();
    }
}

dispatch! {
    /// Adds Σᵢ xᵢⱼ sᵢ over the rows of `groups` to the entries of `gradient`, which begins with the first of `columns`.
    pub fn add_gradient(x: &Panel, groups: Range<usize>, columns: Range<usize>, slopes: &[Line], gradient: &mut [Line])
        = add_gradient_body
}

#[inline(always)]
fn add_gradient_body<V: Vector>(
    x: &Panel,
    groups: Range<usize>,
    columns: Range<usize>,
    slopes: &[Line],
    gradient: &mut [Line],
) {
    for (g, slopes) in groups.zip(slopes.chunks_exact(LANES)) {
        let x = &x.group(g)[columns.clone()];
        if V::SUMS >= 8 {
            add_rows::<V, 8>(x, 0, slopes, gradient);
        } else {
            add_rows::<V, 4>(x, 0, slopes, gradient);
            add_rows::<V, 4>(x, 4, slopes, gradient);
        }
    }
}

#[inline(always)]
fn add_rows<V: Vector, const N: usize>(x: &[Line], first: usize, slopes: &[Line], gradient: &mut [Line]) {
    let slopes: [V; N] = std::array::from_fn(|r| V::load(&slopes[first + r]));
    for (x, gradient) in x.iter().zip(gradient) {
        let mut sum = V::load(gradient);
        for r in 0..N {
            sum = V::splat(x[first + r]).fma(slopes[r], sum);
        }
        gradient.0 = sum.lanes();
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
        let theta = lines(d, 5000);
        let mut slopes = lines(panel.groups() * LANES, 9000);
        slopes[n..].fill(Line::default());
        for level in available() {
            let mut margins = vec![Line::default(); panel.groups() * LANES];
            let mut gradient = vec![Line::default(); d];
            for groups in [0..3, 3..4] {
                for columns in [0..7, 7..d] {
                    let rows = groups.start * LANES..groups.end * LANES;
                    let (theta, out) = (&theta[columns.clone()], &mut margins[rows.clone()]);
                    add_margins(level, &panel, groups.clone(), columns.clone(), theta, out);
                    let (slopes, out) = (&slopes[rows], &mut gradient[columns.clone()]);
                    add_gradient(level, &panel, groups.clone(), columns, slopes, out);
                }
            }
            for l in 0..LANES {
                for i in 0..n {
                    let exact: f64 = (0..d).map(|j| entry(i, j) * theta[j][l]).sum();
                    assert!((margins[i][l] - exact).abs() < 1e-14, "{level:?}: margin {i}");
                }
                for j in 0..d {
                    let exact: f64 = (0..n).map(|i| entry(i, j) * slopes[i][l]).sum();
                    assert!((gradient[j][l] - exact).abs() < 1e-14, "{level:?}: gradient {j}");
                }
            }
        }
    }
}

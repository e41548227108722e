//! Sums over one column of data under the weights of several draws: a draw a lane. A sum over rows in their order is a chain of
//! additions, each of which waits for the one before it; eight draws are eight chains. Nothing is fused and no order is changed, so that
//! every level gives the bits of the plain sum.

use super::vector::{LANES, Lanes, Vector, sum};
use super::{dispatch, load};

/// The weights of eight draws on the same rows; a draw may be there several times.
pub type Eight<'a> = [&'a [f64]; LANES];

dispatch! {
    /// Adds Σ w y of each draw.
    pub fn add_products(w: &Eight, y: &[f64], sums: &mut Lanes) = products_body
}

dispatch! {
    /// Adds Σ w (y − θ)² of each draw, with its own θ.
    pub fn add_squares(w: &Eight, y: &[f64], theta: &Lanes, sums: &mut Lanes) = squares_body
}

dispatch! {
    /// Adds Σ w (y − θ)(q − 1{y < θ}) of each draw, with its own θ.
    pub fn add_pinballs(w: &Eight, y: &[f64], theta: &Lanes, q: f64, sums: &mut Lanes) = pinballs_body
}

dispatch! {
    /// Σ w over all rows, and over those with y below `limit`; in lanes of rows.
    pub fn mass_below(w: &[f64], y: &[f64], limit: f64) -> (f64, f64) = below_body
}

/// Limits that one pass compares with.
pub const LIMITS: usize = 4;

dispatch! {
    /// Σ w over all rows, and over those with y below each of the limits: the bits of [`mass_below`].
    pub fn masses_below(w: &[f64], y: &[f64], limits: &[f64; LIMITS]) -> (f64, [f64; LIMITS]) = masses_below_body
}

/// Every row of the eight columns of weights and of `y`, in order. A macro, and in it loops, for closures are not always inlined: vectors
/// of a level are then passed by calls, and arrays copied.
macro_rules! each_row {
    ($vector:ty, $columns:ident, $y:ident, |$w:ident, $value:ident| $row:expr) => {{
        let n = $y.len();
        let (tiles, rest) = $y.as_chunks::<LANES>();
        let mut columns = [(&[][..], &[][..]); LANES];
        for l in 0..LANES {
            columns[l] = $columns[l][..n].as_chunks::<LANES>();
        }
        for (t, tile) in tiles.iter().enumerate() {
            let mut rows = [[0.0; LANES]; LANES];
            for l in 0..LANES {
                let draw = &columns[l].0[t];
                for i in 0..LANES {
                    rows[i][l] = draw[i];
                }
            }
            for i in 0..LANES {
                let ($w, $value) = (<$vector>::load(&rows[i]), tile[i]);
                $row;
            }
        }
        for (i, &value) in rest.iter().enumerate() {
            let mut row = [0.0; LANES];
            for l in 0..LANES {
                row[l] = columns[l].1[i];
            }
            let ($w, $value) = (<$vector>::load(&row), value);
            $row;
        }
    }};
}

#[inline(always)]
fn products_body<V: Vector>(w: &Eight, y: &[f64], sums: &mut Lanes) {
    let mut total = V::load(sums);
    each_row!(V, w, y, |w, y| total = total.add(w.mul(V::splat(y))));
    *sums = total.lanes();
}

#[inline(always)]
fn squares_body<V: Vector>(w: &Eight, y: &[f64], theta: &Lanes, sums: &mut Lanes) {
    let (mut total, theta) = (V::load(sums), V::load(theta));
    each_row!(V, w, y, |w, y| {
        let apart = V::splat(y).sub(theta);
        total = total.add(w.mul(apart.mul(apart)));
    });
    *sums = total.lanes();
}

#[inline(always)]
fn pinballs_body<V: Vector>(w: &Eight, y: &[f64], theta: &Lanes, q: f64, sums: &mut Lanes) {
    let (mut total, theta) = (V::load(sums), V::load(theta));
    let (above, below) = (V::splat(q), V::splat(q - 1.0));
    each_row!(V, w, y, |w, y| {
        let y = V::splat(y);
        total = total.add(w.mul(y.sub(theta).mul(y.if_below(theta, below, above))));
    });
    *sums = total.lanes();
}

#[inline(always)]
fn below_body<V: Vector>(w: &[f64], y: &[f64], limit: f64) -> (f64, f64) {
    let (mut all, mut below) = (V::splat(0.0), V::splat(0.0));
    let (limit, zero) = (V::splat(limit), V::splat(0.0));
    for g in 0..w.len().div_ceil(LANES) {
        let (w, y) = (V::load(&load(w, g)), V::load(&load(y, g)));
        all = all.add(w);
        below = below.add(y.if_below(limit, w, zero));
    }
    (sum(&all.lanes()), sum(&below.lanes()))
}

#[inline(always)]
fn masses_below_body<V: Vector>(w: &[f64], y: &[f64], limits: &[f64; LIMITS]) -> (f64, [f64; LIMITS]) {
    let (mut all, mut below) = (V::splat(0.0), [V::splat(0.0); LIMITS]);
    let (mut at, zero) = ([V::splat(0.0); LIMITS], V::splat(0.0));
    for k in 0..LIMITS {
        at[k] = V::splat(limits[k]);
    }
    for g in 0..w.len().div_ceil(LANES) {
        let (w, y) = (V::load(&load(w, g)), V::load(&load(y, g)));
        all = all.add(w);
        for k in 0..LIMITS {
            below[k] = below[k].add(y.if_below(at[k], w, zero));
        }
    }
    let mut sums = [0.0; LIMITS];
    for k in 0..LIMITS {
        sums[k] = sum(&below[k].lanes());
    }
    (sum(&all.lanes()), sums)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::available;

    fn values(n: usize, salt: usize) -> Vec<f64> {
        (0..n).map(|i| ((i * 7919 + salt * 104_729) % 1009) as f64 / 31.0 - 11.0).collect()
    }

    #[test]
    fn every_level_gives_the_bits_of_the_plain_sums() {
        for n in (0..20).chain([100, 1024, 1027]) {
            let y = values(n, 0);
            let columns: Vec<Vec<f64>> = (1..=LANES).map(|l| values(n, l)).collect();
            let w: Eight = std::array::from_fn(|l| &columns[l][..]);
            let theta: Lanes = std::array::from_fn(|l| 0.3 * l as f64 - 1.0);
            let plain = |term: &dyn Fn(f64, f64, f64) -> f64| -> Lanes {
                std::array::from_fn(|l| {
                    columns[l].iter().zip(&y).fold(0.5, |sum, (&w, &y)| sum + term(w, y, theta[l]))
                })
            };
            for level in available() {
                let mut sums = [0.5; LANES];
                add_products(level, &w, &y, &mut sums);
                assert_eq!(sums, plain(&|w, y, _| w * y), "{level:?}, n {n}");
                let mut sums = [0.5; LANES];
                add_squares(level, &w, &y, &theta, &mut sums);
                assert_eq!(sums, plain(&|w, y, t| w * ((y - t) * (y - t))), "{level:?}, n {n}");
                let mut sums = [0.5; LANES];
                add_pinballs(level, &w, &y, &theta, 0.3, &mut sums);
                let pinball = |w: f64, y: f64, t: f64| w * ((y - t) * (0.3 - if y < t { 1.0 } else { 0.0 }));
                assert_eq!(sums, plain(&pinball), "{level:?}, n {n}");
                let (all, below) = mass_below(level, &columns[0], &y, 2.0);
                let limits = [-3.0, 2.0, f64::INFINITY, f64::NEG_INFINITY];
                let each = limits.map(|limit| mass_below(level, &columns[0], &y, limit).1);
                assert_eq!(masses_below(level, &columns[0], &y, &limits), (all, each), "{level:?}, n {n}");
                let exact: f64 = columns[0].iter().zip(&y).filter(|(_, y)| **y < 2.0).map(|(w, _)| w).sum();
                assert!((all - columns[0].iter().sum::<f64>()).abs() < 1e-9 && (below - exact).abs() < 1e-9);
            }
        }
    }
}

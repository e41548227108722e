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
    /// Σ w over all rows, and over some of them: a bit for each row, eight in a byte; in lanes of rows.
    pub fn mass_of(w: &[f64], rows: &[u8]) -> (f64, f64) = mass_of_body
}

/// Choices of rows that one pass sums up.
pub const CHOICES: usize = 4;

dispatch! {
    /// Σ w over all rows, and over each choice of them: the bits of [`mass_of`].
    pub fn masses_of(w: &[f64], rows: &[&[u8]; CHOICES]) -> (f64, [f64; CHOICES]) = masses_of_body
}

/// The rows that are chosen, as [`mass_of`] wants them.
pub fn choice(rows: impl Iterator<Item = bool>) -> Vec<u8> {
    let mut bits = Vec::new();
    for (i, chosen) in rows.enumerate() {
        if i % LANES == 0 {
            bits.push(0);
        }
        bits[i / LANES] |= u8::from(chosen) << (i % LANES);
    }
    bits
}

/// Eight rows of the eight columns of weights and of `y` at a time, in order: `$rows` has the weights of all draws in one, and `$values` y. A
/// macro, and in it loops, for closures are not always inlined: vectors of a level are then passed by calls, and arrays copied.
macro_rules! each_tile {
    ($vector:ty, $columns:ident, $y:ident, |$rows:ident, $values:ident| $tile:expr) => {{
        let n = $y.len();
        let (tiles, rest) = $y.as_chunks::<LANES>();
        let mut columns = [(&[][..], &[][..]); LANES];
        for l in 0..LANES {
            columns[l] = $columns[l][..n].as_chunks::<LANES>();
        }
        for (t, $values) in tiles.iter().enumerate() {
            let mut rows = [<$vector>::splat(0.0); LANES];
            for l in 0..LANES {
                rows[l] = <$vector>::load(&columns[l].0[t]);
            }
            let $rows = <$vector>::transposed(rows);
            $tile;
        }
        if !rest.is_empty() {
            let mut rows = [<$vector>::splat(0.0); LANES];
            for l in 0..LANES {
                rows[l] = <$vector>::load(&load(columns[l].1, 0));
            }
            let ($rows, $values) = (<$vector>::transposed(rows), rest);
            $tile;
        }
    }};
}

#[inline(always)]
fn products_body<V: Vector>(w: &Eight, y: &[f64], sums: &mut Lanes) {
    let mut total = V::load(sums);
    each_tile!(V, w, y, |rows, values| {
        for (w, y) in rows.into_iter().zip(values) {
            total = total.add(w.mul(V::splat(*y)));
        }
    });
    *sums = total.lanes();
}

#[inline(always)]
fn squares_body<V: Vector>(w: &Eight, y: &[f64], theta: &Lanes, sums: &mut Lanes) {
    let (mut total, theta) = (V::load(sums), V::load(theta));
    each_tile!(V, w, y, |rows, values| {
        for (w, y) in rows.into_iter().zip(values) {
            let apart = V::splat(*y).sub(theta);
            total = total.add(w.mul(apart.mul(apart)));
        }
    });
    *sums = total.lanes();
}

#[inline(always)]
fn pinballs_body<V: Vector>(w: &Eight, y: &[f64], theta: &Lanes, q: f64, sums: &mut Lanes) {
    let (mut total, theta) = (V::load(sums), V::load(theta));
    let (above, below) = (V::splat(q), V::splat(q - 1.0));
    each_tile!(V, w, y, |rows, values| {
        for (w, y) in rows.into_iter().zip(values) {
            let y = V::splat(*y);
            total = total.add(w.mul(y.sub(theta).mul(y.if_below(theta, below, above))));
        }
    });
    *sums = total.lanes();
}

#[inline(always)]
fn mass_of_body<V: Vector>(w: &[f64], rows: &[u8]) -> (f64, f64) {
    let (mut all, mut some) = (V::splat(0.0), V::splat(0.0));
    let (groups, rest) = w.as_chunks::<LANES>();
    for (w, &chosen) in groups.iter().zip(rows) {
        let w = V::load(w);
        all = all.add(w);
        some = some.add(w.chosen(chosen));
    }
    if let Some(&chosen) = rows.get(groups.len()) {
        let w = V::load(&load(rest, 0));
        all = all.add(w);
        some = some.add(w.chosen(chosen));
    }
    (sum(&all.lanes()), sum(&some.lanes()))
}

#[inline(always)]
fn masses_of_body<V: Vector>(w: &[f64], rows: &[&[u8]; CHOICES]) -> (f64, [f64; CHOICES]) {
    let (mut all, mut some) = (V::splat(0.0), [V::splat(0.0); CHOICES]);
    let (groups, rest) = w.as_chunks::<LANES>();
    let rows = rows.map(|rows| &rows[..w.len().div_ceil(LANES)]);
    for (g, w) in groups.iter().enumerate() {
        let w = V::load(w);
        all = all.add(w);
        for k in 0..CHOICES {
            some[k] = some[k].add(w.chosen(rows[k][g]));
        }
    }
    if !rest.is_empty() {
        let w = V::load(&load(rest, 0));
        all = all.add(w);
        for k in 0..CHOICES {
            some[k] = some[k].add(w.chosen(rows[k][groups.len()]));
        }
    }
    let mut sums = [0.0; CHOICES];
    for k in 0..CHOICES {
        sums[k] = sum(&some[k].lanes());
    }
    (sum(&all.lanes()), sums)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Level, available};

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
                let choices = [-3.0, 2.0, f64::INFINITY, f64::NEG_INFINITY]
                    .map(|limit| choice(y.iter().map(|&y| y < limit)));
                let each = choices.each_ref().map(|rows| mass_of(level, &columns[0], rows));
                let together = masses_of(level, &columns[0], &choices.each_ref().map(|rows| &rows[..]));
                assert_eq!(together, (each[0].0, each.map(|(_, some)| some)), "{level:?}, n {n}");
                assert_eq!(each, choices.each_ref().map(|rows| mass_of(Level::PLAIN, &columns[0], rows)));
                let exact: f64 = columns[0].iter().zip(&y).filter(|(_, y)| **y < 2.0).map(|(w, _)| w).sum();
                let (all, some) = each[1];
                assert!((all - columns[0].iter().sum::<f64>()).abs() < 1e-9 && (some - exact).abs() < 1e-9);
                assert_eq!((each[2].1, each[3].1), (all, 0.0));
            }
        }
    }
}

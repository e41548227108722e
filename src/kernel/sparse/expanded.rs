//! A mixture whose squares are multiplied out, so that zeros need not be visited.

use std::f64::consts::TAU;

use super::rows::{BAND, SparseRows, TILE};
use super::top_two;
use crate::kernel::vector::{LANES, Lanes, Line, Vector, sum};
use crate::kernel::{Level, dispatch};

/// Σⱼ μ²/σ² beyond which squares are not multiplied out: rounding would reach 10⁻⁷ in a log density.
const LARGEST_SQUARE: f64 = 1e9;

/// A mixture with its squares multiplied out, so that a zero adds nothing:
/// log πₖNₖ(y) = baseₖ + Σⱼ yⱼ (aₖⱼ − yⱼ bₖⱼ), a = μ/σ², b = 1/2σ². Components without weight are left out.
pub struct Expanded {
    pub(super) d: usize,
    /// Which component each lane holds.
    pub(super) live: Vec<usize>,
    /// base, eight components at a time; −∞ in lanes without a component.
    pub(super) base: Vec<Lanes>,
    /// For each one or two groups of eight components, column after column: a and b.
    pub(super) slopes: Vec<Slopes>,
    /// Σⱼ μ²/2σ² of each lane: Σⱼ yⱼ (aₖⱼ − yⱼ bₖⱼ) is never larger.
    pub(super) squares: Vec<Lanes>,
}

/// a and b of eight components in one column, each in one line of the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C, align(64))]
pub(super) struct Slopes {
    pub a: Lanes,
    pub b: Lanes,
}

impl Expanded {
    /// π, and μ and σ² component after component. `None` if a mean is so many standard deviations from zero that the
    /// squares would cancel.
    pub fn new(level: Level, pi: &[f64], mean: &[f64], variance: &[f64]) -> Option<Expanded> {
        let d = mean.len() / pi.len();
        let live: Vec<usize> = (0..pi.len()).filter(|&k| pi[k] > 0.0).collect();
        let groups = live.len().div_ceil(LANES);
        let mut expanded = Expanded {
            d,
            base: vec![[f64::NEG_INFINITY; LANES]; groups],
            slopes: vec![Slopes::default(); groups * d],
            squares: vec![[0.0; LANES]; groups],
            live,
        };
        multiply_out(level, mean, variance, &mut expanded);
        for (at, &k) in expanded.live.iter().enumerate() {
            let (group, lane) = (at / LANES, at % LANES);
            let square = expanded.squares[group][lane];
            if square.is_nan() || square > 0.5 * LARGEST_SQUARE {
                return None;
            }
            let log_scale = d as f64 * libm::log(TAU) + sum_ln(level, &variance[k * d..(k + 1) * d]);
            expanded.base[group][lane] = libm::log(pi[k]) - 0.5 * log_scale - square;
        }
        Some(expanded)
    }

    pub(super) fn groups(&self) -> usize {
        self.base.len()
    }

    /// Place of a column in `slopes`.
    pub(super) fn place(&self, group: usize, j: usize) -> usize {
        place(self.groups(), self.d, group, j)
    }

    /// The slopes of `G` groups from `first` on, in a tile.
    #[inline(always)]
    fn tile<const G: usize>(&self, first: usize, tile: usize) -> &[[Slopes; G]] {
        let columns = tile * TILE..self.d.min((tile + 1) * TILE);
        let start = self.place(first, columns.start);
        self.slopes[start..start + G * columns.len()].as_chunks::<G>().0
    }

    /// Σⱼ yⱼ (aₖⱼ − yⱼ bₖⱼ) of the rows `picked`, a band or so of them. Those of the pth row and group g go to `at(p, g)`.
    #[inline(always)]
    pub(super) fn sums<V: Vector>(
        &self,
        rows: &SparseRows,
        picked: &[usize],
        at: impl Fn(usize, usize) -> usize,
        out: &mut [Line],
    ) {
        for first in (0..self.groups()).step_by(2) {
            match together(self.groups(), first).0 {
                1 => self.sums_of_groups::<V, 1>(rows, picked, first, |p, g| at(p, first + g), out),
                _ => self.sums_of_groups::<V, 2>(rows, picked, first, |p, g| at(p, first + g), out),
            }
        }
    }

    #[inline(always)]
    fn sums_of_groups<V: Vector, const G: usize>(
        &self,
        rows: &SparseRows,
        picked: &[usize],
        first: usize,
        at: impl Fn(usize, usize) -> usize,
        out: &mut [Line],
    ) {
        for tile in 0..rows.tiles() {
            let slopes = self.tile::<G>(first, tile);
            for (p, &i) in picked.iter().enumerate() {
                // Rows that are picked here and there would each be waited for.
                if let Some(&next) = picked.get(p + 1) {
                    let (columns, values) = rows.cells(next, tile);
                    V::fetch(columns);
                    V::fetch(values);
                }
                let (columns, values) = rows.cells(i, tile);
                let zero = [V::splat(0.0); G];
                let (mut even, mut odd) = (zero, zero);
                // Two cells at a time, so that one addition need not wait for the other.
                let (pairs, last) = columns.as_chunks::<2>();
                let (pairs_of_values, last_value) = values.as_chunks::<2>();
                for (j, y) in pairs.iter().zip(pairs_of_values) {
                    add_cell(&mut even, slopes, j[0], y[0]);
                    add_cell(&mut odd, slopes, j[1], y[1]);
                }
                for (j, y) in last.iter().zip(last_value) {
                    add_cell(&mut even, slopes, *j, *y);
                }
                for g in 0..G {
                    let (out, sum) = (&mut out[at(p, g)], even[g].add(odd[g]));
                    **out = if tile == 0 { sum } else { V::load(out).add(sum) }.lanes();
                }
            }
        }
    }
}

/// How many of all groups are worked on together with `group`, and the first of them.
fn together(groups: usize, group: usize) -> (usize, usize) {
    let first = group - group % 2;
    ((groups - first).min(2), first)
}

/// Place of column `j` of `d` in slopes of so many groups.
pub(super) fn place(groups: usize, d: usize, group: usize, j: usize) -> usize {
    let (together, first) = together(groups, group);
    first * d + j * together + (group - first)
}

/// acc += y (a − y b).
#[inline(always)]
fn add_cell<V: Vector, const G: usize>(acc: &mut [V; G], slopes: &[[Slopes; G]], j: u16, y: f64) {
    let slopes = &slopes[j as usize];
    let (y, minus_y) = (V::splat(y), V::splat(-y));
    for g in 0..G {
        acc[g] = y.fma(minus_y.fma(V::load(&slopes[g].b), V::load(&slopes[g].a)), acc[g]);
    }
}

/// Adds base to the sums of a row: log πₖNₖ.
#[inline(always)]
pub(super) fn add_base<V: Vector>(mixture: &Expanded, sums: &mut [Line]) {
    for (sum, base) in sums.iter_mut().zip(&mixture.base) {
        **sum = V::load(sum).add(V::load(base)).lanes();
    }
}

/// Turns log πₖNₖ into exp(log πₖNₖ − max); returns the sum.
#[inline(always)]
pub(super) fn exponentials<V: Vector>(log_joint: &mut [Line], max: f64) -> f64 {
    let mut total = V::splat(0.0);
    for lanes in log_joint {
        let e = V::load(lanes).sub(V::splat(max)).exp();
        total = total.add(e);
        **lanes = e.lanes();
    }
    sum(&total.lanes())
}

dispatch! {
    /// Slopes and squares of the components that are live, eight at a time.
    fn multiply_out(mean: &[f64], variance: &[f64], expanded: &mut Expanded) = multiply_out_body
}

#[inline(always)]
fn multiply_out_body<V: Vector>(mean: &[f64], variance: &[f64], expanded: &mut Expanded) {
    let d = expanded.d;
    for group in 0..expanded.groups() {
        let live = &expanded.live[group * LANES..];
        let firsts: [Option<usize>; LANES] = std::array::from_fn(|l| live.get(l).map(|k| k * d));
        let half = V::load(&firsts.map(|first| if first.is_some() { 0.5 } else { 0.0 }));
        let mut squares = V::splat(0.0);
        for j in 0..d {
            let of = |values: &[f64], none: f64| V::load(&firsts.map(|f| f.map_or(none, |f| values[f + j])));
            let (mean, b) = (of(mean, 0.0), half.div(of(variance, 1.0)));
            let a = mean.mul(b.add(b));
            squares = squares.add(mean.mul(a));
            let place = expanded.place(group, j);
            expanded.slopes[place] = Slopes { a: a.lanes(), b: b.lanes() };
        }
        expanded.squares[group] = squares.mul(V::splat(0.5)).lanes();
    }
}

dispatch! {
    /// log f(yᵢ) of every row.
    pub fn log_density(rows: &SparseRows, mixture: &Expanded, out: &mut [f64]) = log_density_body
}

dispatch! {
    /// Σ ln x of positive normal numbers.
    fn sum_ln(x: &[f64]) -> f64 = sum_ln_body
}

#[inline(always)]
fn log_density_body<V: Vector>(rows: &SparseRows, mixture: &Expanded, out: &mut [f64]) {
    let groups = mixture.groups();
    let mut joint = vec![Line::default(); groups * BAND];
    for (band, out) in rows.bands().zip(out.chunks_mut(BAND)) {
        let picked: Vec<usize> = band.collect();
        mixture.sums::<V>(rows, &picked, |p, g| p * groups + g, &mut joint);
        for (out, joint) in out.iter_mut().zip(joint.chunks_exact_mut(groups)) {
            add_base::<V>(mixture, joint);
            let max = top_two(joint).0;
            *out = max + libm::log(exponentials::<V>(joint, max));
        }
    }
}

#[inline(always)]
fn sum_ln_body<V: Vector>(x: &[f64]) -> f64 {
    let (full, rest) = x.as_chunks::<LANES>();
    let mut total = V::splat(0.0);
    for lanes in full {
        total = total.add(V::load(lanes).ln());
    }
    let mut last = [1.0; LANES];
    last[..rest.len()].copy_from_slice(rest);
    sum(&total.add(V::load(&last).ln()).lanes())
}

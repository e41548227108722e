//! EM over rows that are mostly zeros, in many columns. Four things make it fast: only cells that are not zero are
//! visited; components are worked on in step; in many columns nearly every row belongs to one component, to all digits,
//! so that its share of the sums changes only when it moves to another; and single precision, with a bound on its error,
//! is enough to see that it does not.

use std::f64::consts::TAU;
use std::ops::Range;

use ndarray::ArrayView2;

use super::vector::{LANES, Lanes, SINGLES, Singles, Vector, sum};
use super::{Level, dispatch};

/// Columns of a tile: the slopes of sixteen components in so many columns fit the second-level cache. Shorter runs of
/// cells cost more than they save.
const TILE: usize = 1024;
/// Rows that go through a tile together.
const BAND: usize = 64;

/// The cells that are not zero, by bands of rows, tiles of columns, and rows.
#[derive(Clone, Debug, Default)]
pub struct SparseRows {
    n: usize,
    tiles: usize,
    /// Most cells of a row.
    longest: usize,
    /// Where the cells of each row in each tile begin, and one more for the end.
    starts: Vec<usize>,
    /// Columns, counted from the first of the tile.
    columns: Vec<u16>,
    values: Vec<f64>,
    singles: Vec<f32>,
}

impl SparseRows {
    pub fn new(x: ArrayView2<f64>) -> Self {
        let (n, d) = x.dim();
        let tiles = d.div_ceil(TILE);
        let mut rows = SparseRows { n, tiles, starts: vec![0], ..SparseRows::default() };
        for (band, tile) in (0..n.div_ceil(BAND)).flat_map(|b| (0..tiles).map(move |t| (b, t))) {
            for i in band * BAND..(band + 1) * BAND {
                let cells = (tile * TILE..d.min((tile + 1) * TILE)).filter(|_| i < n).map(|j| (j, x[[i, j]]));
                for (j, value) in cells.filter(|(_, value)| *value != 0.0) {
                    rows.columns.push((j % TILE) as u16);
                    rows.values.push(value);
                }
                rows.starts.push(rows.values.len());
            }
        }
        rows.singles = rows.values.iter().map(|value| *value as f32).collect();
        rows.longest = (0..n).map(|i| (0..tiles).map(|t| rows.place(i, t).len()).sum()).max().unwrap_or(0);
        rows
    }

    fn bands(&self) -> usize {
        self.n.div_ceil(BAND)
    }

    /// Where the cells of row `i` in a tile are.
    #[inline(always)]
    fn place(&self, i: usize, tile: usize) -> Range<usize> {
        let at = ((i / BAND) * self.tiles + tile) * BAND + i % BAND;
        self.starts[at]..self.starts[at + 1]
    }

    /// Columns and values of row `i` in a tile.
    #[inline(always)]
    fn cells(&self, i: usize, tile: usize) -> (&[u16], &[f64]) {
        let cells = self.place(i, tile);
        (&self.columns[cells.clone()], &self.values[cells])
    }
}

/// Σⱼ μ²/σ² beyond which squares are not multiplied out: rounding would reach 10⁻⁷ in a log density.
const LARGEST_SQUARE: f64 = 1e9;

/// A mixture with its squares multiplied out, so that a zero adds nothing:
/// log πₖNₖ(y) = baseₖ + Σⱼ yⱼ (aₖⱼ − yⱼ bₖⱼ), a = μ/σ², b = 1/2σ². Components without weight are left out.
pub struct Expanded {
    d: usize,
    /// Which component each lane holds.
    live: Vec<usize>,
    /// base, eight components at a time; −∞ in lanes without a component.
    base: Vec<Lanes>,
    /// For each one or two groups of eight components, tile after tile: a and b of each column.
    slopes: Vec<Slopes>,
    /// Σⱼ μ²/2σ² of each lane.
    squares: Vec<Lanes>,
    /// For each sixteen components, tile after tile: a and b of each column.
    rough: Vec<RoughSlopes>,
}

/// a and b of eight components in one column, each in one line of the cache.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Slopes {
    a: Lanes,
    b: Lanes,
}

/// The same of sixteen, in single precision.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct RoughSlopes {
    a: [f32; SINGLES],
    b: [f32; SINGLES],
}

impl Expanded {
    /// π, and μ and σ² component after component. `None` if a mean is so many standard deviations from zero that the
    /// squares would cancel.
    pub fn new(level: Level, pi: &[f64], mean: &[f64], variance: &[f64]) -> Option<Expanded> {
        let d = mean.len() / pi.len();
        let live: Vec<usize> = (0..pi.len()).filter(|&k| pi[k] > 0.0).collect();
        let groups = live.len().div_ceil(LANES);
        let zero = Slopes { a: [0.0; LANES], b: [0.0; LANES] };
        let rough = RoughSlopes { a: [0.0; SINGLES], b: [0.0; SINGLES] };
        let mut expanded = Expanded {
            d,
            base: vec![[f64::NEG_INFINITY; LANES]; groups],
            slopes: vec![zero; groups * d],
            squares: vec![[0.0; LANES]; groups],
            rough: vec![rough; groups.div_ceil(2) * d],
            live,
        };
        for at in 0..expanded.live.len() {
            let (group, lane, k) = (at / LANES, at % LANES, expanded.live[at]);
            let (mean, variance) = (&mean[k * d..(k + 1) * d], &variance[k * d..(k + 1) * d]);
            let mut square = 0.0;
            for (j, (mean, variance)) in mean.iter().zip(variance).enumerate() {
                let precision = 1.0 / variance;
                let a = mean * precision;
                square += mean * a;
                let place = expanded.place(group, j);
                expanded.slopes[place].a[lane] = a;
                expanded.slopes[place].b[lane] = 0.5 * precision;
                let rough = &mut expanded.rough[at / SINGLES * d + j];
                rough.a[at % SINGLES] = a as f32;
                rough.b[at % SINGLES] = (0.5 * precision) as f32;
            }
            if square.is_nan() || square > LARGEST_SQUARE {
                return None;
            }
            let log_scale = d as f64 * libm::log(TAU) + sum_ln(level, variance);
            expanded.squares[group][lane] = 0.5 * square;
            expanded.base[group][lane] = libm::log(pi[k]) - 0.5 * (log_scale + square);
        }
        Some(expanded)
    }

    fn groups(&self) -> usize {
        self.base.len()
    }

    /// How many groups are worked on together with `group`, and the first of them.
    fn together(&self, group: usize) -> (usize, usize) {
        let first = group - group % 2;
        ((self.groups() - first).min(2), first)
    }

    /// Place of a column in `slopes`.
    fn place(&self, group: usize, j: usize) -> usize {
        let (together, first) = self.together(group);
        first * self.d + j * together + (group - first)
    }

    /// The slopes of `G` groups from `first` on, in a tile.
    #[inline(always)]
    fn tile<const G: usize>(&self, first: usize, tile: usize) -> &[[Slopes; G]] {
        let columns = tile * TILE..self.d.min((tile + 1) * TILE);
        let start = self.place(first, columns.start);
        self.slopes[start..start + G * columns.len()].as_chunks::<G>().0
    }

    /// The rough slopes of the `group`th sixteen in a tile.
    #[inline(always)]
    fn rough_tile(&self, group: usize, tile: usize) -> &[RoughSlopes] {
        &self.rough[group * self.d..][tile * TILE..self.d.min((tile + 1) * TILE)]
    }

    /// Σ w log πₖNₖ over rows that belong to one component each, by their sums.
    fn log_lik(&self, sums: &Moments) -> f64 {
        let of_component = |(at, &k): (usize, &usize)| {
            let (group, lane) = (at / LANES, at % LANES);
            if sums.mass[k] == 0.0 {
                return 0.0;
            }
            let moments = sums.of(k).iter().enumerate();
            let slopes = moments.map(|(j, [first, second])| {
                let slopes = &self.slopes[self.place(group, j)];
                first * slopes.a[lane] - second * slopes.b[lane]
            });
            sums.mass[k] * self.base[group][lane] + slopes.sum::<f64>()
        };
        self.live.iter().enumerate().map(of_component).sum()
    }
}

/// Sums about zero, which are exact in a column of zeros.
#[derive(Clone, Debug, Default)]
struct Moments {
    d: usize,
    /// Σ w r of each component.
    mass: Vec<f64>,
    /// Σ w r y and Σ w r y², component after component.
    moments: Vec<[f64; 2]>,
}

impl Moments {
    fn new(k: usize, d: usize) -> Self {
        Moments { d, mass: vec![0.0; k], moments: vec![[0.0; 2]; k * d] }
    }

    fn of(&self, k: usize) -> &[[f64; 2]] {
        &self.moments[k * self.d..(k + 1) * self.d]
    }

    /// Adds row `i` with weight `r` to component k.
    #[inline(always)]
    fn add(&mut self, rows: &SparseRows, i: usize, k: usize, r: f64) {
        self.mass[k] += r;
        let moments = &mut self.moments[k * self.d..(k + 1) * self.d];
        for (tile, moments) in moments.chunks_mut(TILE).enumerate() {
            let (columns, values) = rows.cells(i, tile);
            for (&j, &y) in columns.iter().zip(values) {
                let [first, second] = &mut moments[j as usize];
                let ry = r * y;
                *first += ry;
                *second += ry * y;
            }
        }
    }

    fn add_all(&mut self, other: &Moments) {
        self.mass.iter_mut().zip(&other.mass).for_each(|(a, b)| *a += b);
        self.moments.iter_mut().zip(&other.moments).for_each(|(a, b)| *a = [a[0] + b[0], a[1] + b[1]]);
    }
}

/// A row is settled on a component if no other comes nearer than this in log πₖNₖ: to rounding it has all of the row.
const SETTLED: f64 = 60.0;
/// Owner of a row that is not settled.
const OPEN: u32 = u32::MAX;

/// What EM remembers of the rows from pass to pass: which are settled, and their sums. A pass over the open rows alone
/// is a whole EM step as long as no settled row would move, which a thorough pass finds out; if one would, its log
/// likelihood is a lower bound (Neal and Hinton 1998, incremental EM).
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// The component that each row is settled on, for atoms of each origin.
    owners: Vec<Vec<u32>>,
    settled: Moments,
    /// Sums of the current pass over the open rows; after it, over all.
    sums: Moments,
    log_lik: f64,
    moved: usize,
}

impl Ledger {
    /// All rows open.
    pub fn new(k: usize, d: usize) -> Self {
        Ledger { settled: Moments::new(k, d), ..Ledger::default() }
    }

    /// Before a pass.
    pub fn begin(&mut self) {
        self.sums = Moments::new(self.settled.mass.len(), self.settled.d);
        self.log_lik = 0.0;
        self.moved = 0;
    }

    /// After a pass: Σ w log f(y).
    pub fn end(&mut self, mixture: &Expanded) -> f64 {
        self.sums.add_all(&self.settled);
        self.log_lik + mixture.log_lik(&self.settled)
    }

    /// After a pass: Σ w r of component k, and Σ w r yⱼ and Σ w r yⱼ² of each column.
    pub fn sums(&self, k: usize) -> (f64, &[[f64; 2]]) {
        (self.sums.mass[k], self.sums.of(k))
    }

    /// Settled rows that the last pass found elsewhere.
    pub fn moved(&self) -> usize {
        self.moved
    }

    /// Moves row `i` of weight `w` to its owner of this pass.
    #[inline(always)]
    fn settle(&mut self, rows: &SparseRows, i: usize, before: &mut u32, owner: u32, w: f64) {
        if owner == *before {
            return;
        }
        if *before != OPEN {
            self.settled.add(rows, i, *before as usize, -w);
            self.moved += 1;
        }
        if owner != OPEN {
            self.settled.add(rows, i, owner as usize, w);
        }
        *before = owner;
    }

    /// The owners of `n` rows of origin `part`, taken out.
    fn take(&mut self, part: usize, n: usize) -> Vec<u32> {
        if self.owners.len() <= part {
            self.owners.resize(part + 1, Vec::new());
        }
        let mut owners = std::mem::take(&mut self.owners[part]);
        owners.resize(n, OPEN);
        owners
    }
}

dispatch! {
    /// The E step of eq. (E.6) for the rows of origin `part`, all of them or the open ones, and the weighted sums that
    /// the M step of eq. (E.7) needs.
    pub fn e_step(
        rows: &SparseRows, w: &[f64], mixture: &Expanded, part: usize, thorough: bool, ledger: &mut Ledger
    ) = e_step_body
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

/// log πₖNₖ of the rows `picked`, all of one band.
#[inline(always)]
fn log_joint<V: Vector>(rows: &SparseRows, picked: &[usize], mixture: &Expanded, out: &mut [Lanes]) {
    let groups = mixture.groups();
    for out in out.chunks_exact_mut(groups).take(picked.len()) {
        out.copy_from_slice(&mixture.base);
    }
    for first in (0..groups).step_by(2) {
        match mixture.together(first).0 {
            1 => add_slopes::<V, 1>(rows, picked, mixture, first, out),
            _ => add_slopes::<V, 2>(rows, picked, mixture, first, out),
        }
    }
}

/// Adds Σⱼ yⱼ (aₖⱼ − yⱼ bₖⱼ) for `G` groups of eight components.
#[inline(always)]
fn add_slopes<V: Vector, const G: usize>(
    rows: &SparseRows,
    picked: &[usize],
    mixture: &Expanded,
    first: usize,
    out: &mut [Lanes],
) {
    let groups = mixture.groups();
    for tile in 0..rows.tiles {
        let slopes = mixture.tile::<G>(first, tile);
        for (&i, out) in picked.iter().zip(out.chunks_exact_mut(groups)) {
            let (columns, values) = rows.cells(i, tile);
            if columns.is_empty() {
                continue;
            }
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
                let out = &mut out[first + g];
                *out = V::load(out).add(even[g].add(odd[g])).lanes();
            }
        }
    }
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

/// Σⱼ yⱼ (aₖⱼ − yⱼ bₖⱼ) of the rows `picked`, all of one band, in single precision: sixteen components at a time.
#[inline(always)]
fn rough_sums<V: Vector>(
    rows: &SparseRows,
    picked: &[usize],
    mixture: &Expanded,
    out: &mut [[f32; SINGLES]],
) {
    let groups = mixture.groups().div_ceil(2);
    out.fill([0.0; SINGLES]);
    for (group, tile) in (0..groups).flat_map(|g| (0..rows.tiles).map(move |t| (g, t))) {
        let slopes = mixture.rough_tile(group, tile);
        for (&i, out) in picked.iter().zip(out.iter_mut().skip(group).step_by(groups)) {
            let cells = rows.place(i, tile);
            let (columns, values) = (&rows.columns[cells.clone()], &rows.singles[cells]);
            let mut sums = [V::Singles::splat(0.0); 4];
            let (fours, last) = columns.as_chunks::<4>();
            let (fours_of_values, last_values) = values.as_chunks::<4>();
            for (j, y) in fours.iter().zip(fours_of_values) {
                for l in 0..4 {
                    sums[l] = rough_cell::<V>(sums[l], slopes, j[l], y[l]);
                }
            }
            for (l, (j, y)) in last.iter().zip(last_values).enumerate() {
                sums[l] = rough_cell::<V>(sums[l], slopes, *j, *y);
            }
            let sum = sums[0].add(sums[1]).add(sums[2].add(sums[3]));
            *out = V::Singles::load(out).add(sum).lanes();
        }
    }
}

#[inline(always)]
fn rough_cell<V: Vector>(sum: V::Singles, slopes: &[RoughSlopes], j: u16, y: f32) -> V::Singles {
    let (slopes, y) = (&slopes[j as usize], V::Singles::splat(y));
    y.fma(y.fnma(V::Singles::load(&slopes.b), V::Singles::load(&slopes.a)), sum)
}

/// Bounds on log πₖNₖ from rough sums S, sixteen components at a time.
struct Bounds {
    base: Vec<[f32; SINGLES]>,
    /// The error is at most `fixed` + `share` |S|.
    fixed: Vec<[f32; SINGLES]>,
    share: f32,
}

impl Bounds {
    /// With m roundings of 2⁻²⁴ at most on the way of every cell, S is wrong by at most m 2⁻²⁴ Σⱼ |yⱼaⱼ| + yⱼ²bⱼ, which
    /// is below m 2⁻²⁴ (8 Σⱼ μⱼ²/2σⱼ² + 3 |S|) because |ya| ≤ y²b/2 + 2·μ²/2σ².
    fn new(rows: &SparseRows, mixture: &Expanded) -> Bounds {
        // Besides the sums of a lane: a, b and y, what is between them, and four sums, tiles and the bounds themselves.
        let m = rows.longest + rows.tiles + 12;
        let u = m as f64 * (0.5 * f32::EPSILON as f64);
        let (base, squares) = (mixture.base.as_flattened(), mixture.squares.as_flattened());
        let of = |g: usize, l: usize| {
            let at = g * SINGLES + l;
            if at < mixture.live.len() {
                (base[at] as f32, (u * (8.0 * squares[at] + 2.0 * base[at].abs())) as f32)
            } else {
                (f32::NEG_INFINITY, 0.0)
            }
        };
        let groups = mixture.groups().div_ceil(2);
        Bounds {
            base: (0..groups).map(|g| std::array::from_fn(|l| of(g, l).0)).collect(),
            fixed: (0..groups).map(|g| std::array::from_fn(|l| of(g, l).1)).collect(),
            share: (4.0 * u) as f32,
        }
    }

    /// The lane that a row is settled on, if its rough sums leave no doubt. What is not a number is doubt.
    #[inline(always)]
    fn settled<V: Vector>(&self, sums: &[[f32; SINGLES]]) -> Option<usize> {
        let share = V::Singles::splat(self.share);
        let of = |g: usize| {
            let sum = V::Singles::load(&sums[g]);
            let error = sum.abs().fma(share, V::Singles::load(&self.fixed[g]));
            (sum.add(V::Singles::load(&self.base[g])), error)
        };
        let one = V::Singles::splat(1.0);
        let mut low = f32::NEG_INFINITY;
        for g in 0..sums.len() {
            let (value, error) = of(g);
            low = low.max(one.fnma(error, value).largest());
        }
        let (mut own, mut others) = (None, 0);
        for g in 0..sums.len() {
            let (value, error) = of(g);
            let near = value.add(error).not_below(low - SETTLED as f32);
            others += near.count_ones();
            if near != 0 {
                own = Some(g * SINGLES + near.trailing_zeros() as usize);
            }
        }
        own.filter(|_| others == 1)
    }
}

/// The largest of the lanes, its place, and the second largest.
#[inline(always)]
fn top_two(lanes: &[f64]) -> (f64, usize, f64) {
    let (mut max, mut at, mut second) = (f64::NEG_INFINITY, 0, f64::NEG_INFINITY);
    for (i, &value) in lanes.iter().enumerate() {
        if value > max {
            (second, max, at) = (max, value, i);
        } else if value > second {
            second = value;
        }
    }
    (max, at, second)
}

/// Turns log πₖNₖ into exp(log πₖNₖ − max); returns the sum.
#[inline(always)]
fn exponentials<V: Vector>(log_joint: &mut [Lanes], max: f64) -> f64 {
    let mut total = V::splat(0.0);
    for lanes in log_joint {
        let e = V::load(lanes).sub(V::splat(max)).exp();
        total = total.add(e);
        *lanes = e.lanes();
    }
    sum(&total.lanes())
}

#[inline(always)]
fn e_step_body<V: Vector>(
    rows: &SparseRows,
    w: &[f64],
    mixture: &Expanded,
    part: usize,
    thorough: bool,
    ledger: &mut Ledger,
) {
    let groups = mixture.groups();
    let mut owners = ledger.take(part, rows.n);
    let mut joint = vec![[0.0; LANES]; groups * BAND];
    let mut rough = vec![[0.0; SINGLES]; groups.div_ceil(2) * BAND];
    let mut picked = Vec::with_capacity(BAND);
    let mut doubtful = Vec::with_capacity(BAND);
    let bounds = Bounds::new(rows, mixture);
    for band in 0..rows.bands() {
        picked.clear();
        let of_band = band * BAND..rows.n.min((band + 1) * BAND);
        picked.extend(of_band.filter(|&i| thorough || owners[i] == OPEN));
        if picked.is_empty() {
            continue;
        }
        rough_sums::<V>(rows, &picked, mixture, &mut rough);
        doubtful.clear();
        for (&i, rough) in picked.iter().zip(rough.chunks_exact(groups.div_ceil(2))) {
            match bounds.settled::<V>(rough) {
                Some(at) => ledger.settle(rows, i, &mut owners[i], mixture.live[at] as u32, w[i]),
                None => doubtful.push(i),
            }
        }
        if doubtful.is_empty() {
            continue;
        }
        log_joint::<V>(rows, &doubtful, mixture, &mut joint);
        for (&i, joint) in doubtful.iter().zip(joint.chunks_exact_mut(groups)) {
            let (max, at, second) = top_two(joint.as_flattened());
            let owner = if max - second > SETTLED { mixture.live[at] as u32 } else { OPEN };
            ledger.settle(rows, i, &mut owners[i], owner, w[i]);
            if owner == OPEN {
                let total = exponentials::<V>(joint, max);
                ledger.log_lik += w[i] * (max + libm::log(total));
                for (&k, &e) in mixture.live.iter().zip(joint.as_flattened()) {
                    if e > 0.0 {
                        ledger.sums.add(rows, i, k, w[i] * (e / total));
                    }
                }
            }
        }
    }
    ledger.owners[part] = owners;
}

#[inline(always)]
fn log_density_body<V: Vector>(rows: &SparseRows, mixture: &Expanded, out: &mut [f64]) {
    let groups = mixture.groups();
    let mut joint = vec![[0.0; LANES]; groups * BAND];
    for (band, out) in out.chunks_mut(BAND).enumerate() {
        let picked: Vec<usize> = (band * BAND..band * BAND + out.len()).collect();
        log_joint::<V>(rows, &picked, mixture, &mut joint);
        for (out, joint) in out.iter_mut().zip(joint.chunks_exact_mut(groups)) {
            let max = top_two(joint.as_flattened()).0;
            *out = max + libm::log(exponentials::<V>(joint, max));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::available;
    use crate::math::log_sum_exp;
    use ndarray::Array2;

    const D: usize = 1100;

    /// 150 rows in ten clusters, one cell in ten not zero, every seventh column empty.
    fn rows() -> Array2<f64> {
        Array2::from_shape_fn((150, D), |(i, j)| {
            let own = j / 30 == i % 10 && (i + j) % 3 == 0;
            let filled = j % 7 != 0 && (own || (i * 31 + j * 17 + i * j) % 11 == 0);
            if filled { 0.2 + ((i * 7 + j * 3) % 11) as f64 / 10.0 } else { 0.0 }
        })
    }

    fn weights() -> Vec<f64> {
        (0..150).map(|i| (1 + (i * 5) % 7) as f64 / 600.0).collect()
    }

    /// π, μ, σ²: component k is at `height` in the columns of cluster k + shift. Rows settle from about 0.4 on.
    fn mixture(k: usize, height: f64, shift: usize) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
        let wave = |i: usize, a: f64| 0.01 * (i as f64 * a).sin();
        let mean = |i: usize| match (i % D) / 30 == (i / D + shift) % 10 {
            true => height,
            false => 0.05 + wave(i, 2.1),
        };
        let pi = (0..k).map(|c| 2.0 * (1 + c) as f64 / (k * (k + 1)) as f64).collect();
        (pi, (0..k * D).map(mean).collect(), (0..k * D).map(|i| 0.03 + wave(i, 0.7)).collect())
    }

    /// log πₖNₖ of every row and component, by the definition.
    fn log_joint_of(x: &Array2<f64>, (pi, mean, variance): &(Vec<f64>, Vec<f64>, Vec<f64>)) -> Vec<Vec<f64>> {
        let of = |y: ndarray::ArrayView1<f64>, k: usize| {
            let column = |j: usize| {
                let (m, v) = (mean[k * D + j], variance[k * D + j]);
                -0.5 * ((TAU * v).ln() + (y[j] - m) * (y[j] - m) / v)
            };
            pi[k].ln() + (0..D).map(column).sum::<f64>()
        };
        x.outer_iter().map(|y| (0..pi.len()).map(|k| of(y, k)).collect()).collect()
    }

    fn expand(level: Level, (pi, mean, variance): &(Vec<f64>, Vec<f64>, Vec<f64>)) -> Expanded {
        Expanded::new(level, pi, mean, variance).expect("nothing cancels")
    }

    fn pass(level: Level, x: &Array2<f64>, mixture: &Expanded, thorough: bool, ledger: &mut Ledger) -> f64 {
        ledger.begin();
        e_step(level, &SparseRows::new(x.view()), &weights(), mixture, 0, thorough, ledger);
        ledger.end(mixture)
    }

    /// The largest difference of two sets of sums.
    fn distance(a: &Moments, b: &Moments) -> f64 {
        let all = |m: &Moments| m.mass.iter().chain(m.moments.as_flattened()).copied().collect::<Vec<_>>();
        all(a).iter().zip(&all(b)).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    }

    #[test]
    fn every_level_and_size_agrees_with_the_definition() {
        let (x, w) = (rows(), weights());
        for (k, height) in [1, 3, 8, 10, 17, 33].into_iter().flat_map(|k| [(k, 0.1), (k, 0.5)]) {
            let mut theta = mixture(k, height, 0);
            if k == 10 {
                theta.0[3] = 0.0;
            }
            let joint = log_joint_of(&x, &theta);
            let log_f: Vec<f64> = joint.iter().map(|l| log_sum_exp(l)).collect();
            let mut exact = Moments::new(k, D);
            for ((i, joint), c) in joint.iter().enumerate().flat_map(|r| (0..k).map(move |c| (r, c))) {
                let r = w[i] * (joint[c] - log_f[i]).exp();
                exact.mass[c] += r;
                for (j, moments) in exact.moments[c * D..(c + 1) * D].iter_mut().enumerate() {
                    *moments = [moments[0] + r * x[[i, j]], moments[1] + r * x[[i, j]] * x[[i, j]]];
                }
            }
            let log_lik: f64 = log_f.iter().zip(&w).map(|(l, w)| l * w).sum();
            for level in available() {
                let expanded = expand(level, &theta);
                let mut ledger = Ledger::new(k, D);
                let value = pass(level, &x, &expanded, true, &mut ledger);
                assert!((value - log_lik).abs() < 1e-11, "K {k}: {value}, not {log_lik}");
                assert!(distance(&ledger.sums, &exact) < 1e-12, "K {k}");
                let empty = (0..k).flat_map(|c| ledger.sums.of(c).iter().step_by(7));
                assert!(empty.into_iter().all(|moments| *moments == [0.0; 2]), "sums of zeros are exact");
                let mut out = vec![0.0; 150];
                log_density(level, &SparseRows::new(x.view()), &expanded, &mut out);
                assert!(out.iter().zip(&log_f).all(|(a, b)| (a - b).abs() < 1e-10), "K {k}");
            }
        }
    }

    /// Rows that are settled, open, moving to another component, and coming back.
    #[test]
    fn a_ledger_gives_the_sums_of_a_first_pass_whatever_came_before() {
        let x = rows();
        let level = Level::current();
        let mut ledger = Ledger::new(10, D);
        let mut moved = 0;
        for (height, shift) in [(0.5, 0), (0.5, 1), (0.3, 1), (0.4, 2), (0.5, 0)] {
            let expanded = expand(level, &mixture(10, height, shift));
            let value = pass(level, &x, &expanded, true, &mut ledger);
            moved += ledger.moved();
            let mut fresh = Ledger::new(10, D);
            assert!((value - pass(level, &x, &expanded, true, &mut fresh)).abs() < 1e-11);
            assert!(distance(&ledger.sums, &fresh.sums) < 1e-14);
            assert_eq!(ledger.owners, fresh.owners);
        }
        assert!(moved > 100, "{moved}");
    }

    #[test]
    fn a_pass_over_open_rows_is_a_whole_one_if_no_settled_row_moves_and_a_bound_if_one_does() {
        let x = rows();
        let level = Level::current();
        let theta = mixture(10, 0.4, 2);
        let mut ledger = Ledger::new(10, D);
        pass(level, &x, &expand(level, &theta), true, &mut ledger);
        let open = ledger.owners[0].iter().filter(|&&o| o == OPEN).count();
        assert!((10..140).contains(&open), "{open} of 150 rows are open");
        let near = expand(level, &(theta.0, theta.1.iter().map(|m| m + 1e-9).collect(), theta.2));
        let far = expand(level, &mixture(10, 0.5, 1));
        for (mixture, moves) in [(&near, false), (&far, true)] {
            let mut open_only = ledger.clone();
            let value = pass(level, &x, mixture, false, &mut open_only);
            let mut thorough = ledger.clone();
            let exact = pass(level, &x, mixture, true, &mut thorough);
            assert_eq!(thorough.moved() > 0, moves);
            match moves {
                false => assert!(
                    (value - exact).abs() < 1e-11 && distance(&open_only.sums, &thorough.sums) < 1e-13
                ),
                true => assert!(value < exact - 1.0, "{value} should be well below {exact}"),
            }
        }
    }

    /// The bounds hold, for mixtures of all widths and with components that are far away; and they are of use.
    #[test]
    fn single_precision_settles_a_row_only_where_double_does() {
        let x = rows();
        let sparse = SparseRows::new(x.view());
        let picked: Vec<usize> = (0..BAND).collect();
        for (k, narrow) in [3, 10, 17, 33].into_iter().flat_map(|k| [(k, 1.0), (k, 1e-2), (k, 1e-4)]) {
            let mut theta = mixture(k, 0.5, 0);
            theta.2.iter_mut().for_each(|v| *v *= narrow);
            theta.1[D + 3] = 3.0;
            let exact = log_joint_of(&x, &theta);
            for level in available() {
                let expanded = expand(level, &theta);
                let bounds = Bounds::new(&sparse, &expanded);
                let groups = expanded.groups().div_ceil(2);
                let mut rough = vec![[0.0; SINGLES]; groups * BAND];
                rough_sums_at(level, &sparse, &picked, &expanded, &mut rough);
                let mut settled = 0;
                for (i, sums) in rough.chunks_exact(groups).enumerate() {
                    for (at, sum) in sums.as_flattened().iter().take(k).enumerate() {
                        let (g, l) = (at / SINGLES, at % SINGLES);
                        let error = (exact[i][at] - (bounds.base[g][l] as f64 + *sum as f64)).abs();
                        assert!(error <= (bounds.fixed[g][l] + bounds.share * sum.abs()) as f64, "{level:?}");
                    }
                    if let Some(at) = settled_at(level, &bounds, sums) {
                        let (max, best, second) = top_two(&exact[i]);
                        assert!(best == at && max - second > SETTLED, "{level:?}: row {i} of K {k}");
                        settled += 1;
                    }
                }
                assert!(settled > BAND / 4 || narrow == 1.0, "{level:?}: only {settled}, K {k}, {narrow}");
            }
        }
    }

    #[test]
    fn what_is_not_a_number_is_doubt() {
        let theta = mixture(17, 0.5, 0);
        for level in available() {
            let bounds = Bounds::new(&SparseRows::new(rows().view()), &expand(level, &theta));
            let mut sums = [[-1e5f32; SINGLES]; 2];
            sums[0][5] = 1e5;
            assert_eq!(settled_at(level, &bounds, &sums), Some(5), "{level:?}");
            for bad in [f32::NAN, f32::INFINITY] {
                for at in [2, 5, 16] {
                    let mut sums = sums;
                    sums[at / SINGLES][at % SINGLES] = bad;
                    assert_eq!(settled_at(level, &bounds, &sums), None, "{level:?}: {bad} in lane {at}");
                }
            }
        }
    }

    dispatch! {
        fn rough_sums_at(rows: &SparseRows, picked: &[usize], mixture: &Expanded, out: &mut [[f32; SINGLES]])
            = rough_sums
    }
    dispatch! { fn settled_at(bounds: &Bounds, sums: &[[f32; SINGLES]]) -> Option<usize> = settled_body }

    #[inline(always)]
    fn settled_body<V: Vector>(bounds: &Bounds, sums: &[[f32; SINGLES]]) -> Option<usize> {
        bounds.settled::<V>(sums)
    }

    #[test]
    fn avx2_and_avx512_give_the_same_bits() {
        let x = rows();
        let bits: Vec<Vec<u64>> = available()
            .filter(|&l| l != Level::Plain)
            .map(|level| {
                let mut ledger = Ledger::new(10, D);
                let value = pass(level, &x, &expand(level, &mixture(10, 0.4, 2)), true, &mut ledger);
                let sums = ledger.sums.moments.as_flattened().iter().chain(&ledger.sums.mass);
                sums.chain([&value]).map(|v| v.to_bits()).collect()
            })
            .collect();
        assert!(bits.windows(2).all(|pair| pair[0] == pair[1]));
    }

    #[test]
    fn squares_that_would_cancel_are_not_multiplied_out() {
        let (pi, mut mean, mut variance) = mixture(3, 0.1, 0);
        (mean[D], variance[D]) = (1.0, 1e-8);
        assert!(Expanded::new(Level::current(), &pi, &mean, &variance).is_some());
        variance[D] = 1e-10;
        assert!(Expanded::new(Level::current(), &pi, &mean, &variance).is_none());
        mean[D] = f64::NAN;
        assert!(Expanded::new(Level::current(), &pi, &mean, &variance).is_none());
    }
}

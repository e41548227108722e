//! Log densities of all rows, kept from one EM step to the next. Near the end of a search few parameters change, and
//! those that change most belong to columns in which few rows are not zero. So the sums of a step are those of the
//! step before, but for the columns whose slopes have changed; and columns may lag behind as long as a bound on what
//! they would change, in any row, is small beside the distance from one component to the next.

use super::SETTLED;
use super::expanded::{Expanded, Slopes, place};
use super::rows::{ByColumn, SparseRows};
use crate::kernel::vector::{LANES, Lanes, Line, Vector};

/// What columns that lag behind may change in a log density, in all, up or down.
const LAG: f64 = 40.0;
/// Share of the cells beyond which starting over is faster.
const MOST: f64 = 0.5;
/// Share of the rows in doubt beyond which it is faster, too.
const MOST_IN_DOUBT: f64 = 0.25;
/// Rows with fewer cells a column than this are passed over whole: to look at the columns costs as much.
const FEWEST: usize = 48;
/// Columns that show whether a row may belong to a minor component.
const WITNESSES: usize = 16;

/// Σⱼ yⱼ (aₖⱼ − yⱼ bₖⱼ) of every row.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// Which component each lane holds; none if nothing is kept.
    live: Vec<usize>,
    /// The slopes that went into the sums, in the order of the mixture's.
    slopes: Vec<Slopes>,
    /// Group after group of components, row after row.
    sums: Vec<Line>,
    groups: Vec<Error>,
}

/// How far the sums of eight components may be from those of the mixture.
#[derive(Clone, Debug, Default)]
struct Error {
    up: Lanes,
    down: Lanes,
    /// The part of both that is rounding, and the largest Σⱼ |yⱼaₖⱼ| + yⱼ²bₖⱼ that a row could have had so far.
    rounding: Lanes,
    size: Lanes,
}

impl Clone for Kept {
    fn clone(&self) -> Self {
        let mut kept = Kept::default();
        kept.clone_from(self);
        kept
    }

    /// In the memory that is there: every search of a block begins with a copy.
    fn clone_from(&mut self, other: &Self) {
        self.live.clone_from(&other.live);
        self.slopes.clone_from(&other.slopes);
        self.sums.clone_from(&other.sums);
        self.groups.clone_from(&other.groups);
    }
}

/// Bounds on log πₖNₖ less the sums that are kept.
pub(super) struct Bounds {
    low: Vec<Lanes>,
    high: Vec<Lanes>,
}

impl Kept {
    /// Whether to keep the sums of so many cells is of use.
    pub fn pays(rows: &SparseRows, mixture: &Expanded) -> bool {
        rows.count() >= FEWEST * mixture.d
    }

    /// Brings the sums near to those of `mixture`. True if they are exact now, in every row. The sums of minor
    /// components are only brought so near that rows of the others can be told from theirs.
    #[inline(always)]
    pub fn follow<V: Vector>(&mut self, rows: &SparseRows, mixture: &Expanded, minor: &[bool]) -> bool {
        if self.exact_for(mixture) {
            return true;
        }
        self.bury(rows.n(), mixture);
        let exact = self.live != mixture.live || !self.catch_up::<V>(rows, mixture, minor);
        if exact {
            self.start_over::<V>(rows, mixture);
        }
        exact
    }

    /// Leaves out components that have lost all weight since: the others move up to their lanes.
    fn bury(&mut self, n: usize, mixture: &Expanded) {
        let (live, d) = (&mixture.live, mixture.d);
        let lane_of = |k: &usize| self.live.iter().position(|before| before == k);
        let Some(from) = live.iter().map(lane_of).collect::<Option<Vec<usize>>>() else { return };
        if from.len() == self.live.len() {
            return;
        }
        let (before, now) = (self.groups.len(), mixture.groups());
        let mut buried = Kept {
            live: live.clone(),
            slopes: vec![Slopes::default(); now * d],
            sums: vec![Line::default(); now * n],
            groups: vec![Error::default(); now],
        };
        for (to, from) in from.into_iter().enumerate() {
            let ((to, l), (from, m)) = ((to / LANES, to % LANES), (from / LANES, from % LANES));
            for j in 0..d {
                let old = &self.slopes[place(before, d, from, j)];
                let new = &mut buried.slopes[place(now, d, to, j)];
                (new.a[l], new.b[l]) = (old.a[m], old.b[m]);
            }
            let rows = buried.sums[to * n..].iter_mut().zip(&self.sums[from * n..][..n]);
            rows.for_each(|(new, old)| new[l] = old[m]);
            let (old, new) = (&self.groups[from], &mut buried.groups[to]);
            (new.up[l], new.down[l]) = (old.up[m], old.down[m]);
            (new.rounding[l], new.size[l]) = (old.rounding[m], old.size[m]);
        }
        *self = buried;
    }

    /// Nothing has changed since the sums were exact.
    fn exact_for(&self, mixture: &Expanded) -> bool {
        let is_zero = |error: &Error| error.up == [0.0; LANES] && error.down == [0.0; LANES];
        self.live == mixture.live && self.slopes == mixture.slopes && self.groups.iter().all(is_zero)
    }

    /// After a pass that left so many of `n` rows in doubt.
    pub fn judge(&mut self, doubtful: usize, n: usize) {
        if doubtful as f64 > MOST_IN_DOUBT * n as f64 {
            self.live.clear();
        }
    }

    #[inline(always)]
    pub fn start_over<V: Vector>(&mut self, rows: &SparseRows, mixture: &Expanded) {
        let (n, groups) = (rows.n(), mixture.groups());
        self.live.clone_from(&mixture.live);
        self.slopes.clone_from(&mixture.slopes);
        self.sums.resize(groups * n, Line::default());
        for band in rows.bands() {
            let (start, picked) = (band.start, band.collect::<Vec<usize>>());
            mixture.sums::<V>(rows, &picked, |p, g| g * n + start + p, &mut self.sums);
        }
        self.groups.clear();
        self.groups.resize(groups, Error::default());
    }

    /// Adds to the sums what columns have changed that must not lag behind. False if they are too many.
    #[inline(always)]
    fn catch_up<V: Vector>(&mut self, rows: &SparseRows, mixture: &Expanded, minor: &[bool]) -> bool {
        let by = rows.by_column();
        let mut chosen = Vec::with_capacity(mixture.groups());
        for g in 0..mixture.groups() {
            chosen.push(self.changes::<V>(by, mixture, g, minor));
        }
        let cells = chosen.iter().flat_map(|c| &c.columns).map(|(j, _)| by.counts[*j]).sum::<usize>();
        if cells as f64 > MOST * (rows.count() * mixture.groups()) as f64 {
            return false;
        }
        for (g, changes) in chosen.iter().enumerate() {
            let sums = &mut self.sums[g * rows.n()..(g + 1) * rows.n()];
            if changes.keep != [1.0; LANES] {
                let keep = V::load(&changes.keep);
                for sum in sums.iter_mut() {
                    sum.0 = V::load(sum).mul(keep).lanes();
                }
                for place in (0..mixture.d).map(|j| mixture.place(g, j)) {
                    self.slopes[place] = scaled::<V>(&self.slopes[place], keep);
                }
            }
            for (strip, sums) in ByColumn::strips(sums) {
                for (j, change) in &changes.columns {
                    let (a, b) = (V::load(&change.a), V::load(&change.b));
                    let (rows, values) = by.cells(strip, *j);
                    for (&i, &y) in rows.iter().zip(values) {
                        let sum = &mut sums[i as usize];
                        **sum = V::splat(y).fma(V::splat(-y).fma(b, a), V::load(sum)).lanes();
                    }
                }
            }
            for (j, _) in &changes.columns {
                let place = mixture.place(g, *j);
                self.slopes[place] = mixture.slopes[place];
            }
            let error = &mut self.groups[g];
            let size = V::load(&error.size).max(V::load(&changes.size));
            // A few roundings for every cell, each of a number that is not larger than the size.
            let per_size = V::splat(8.0 * f64::EPSILON * rows.longest() as f64);
            let rounding = size.fma(per_size, V::load(&error.rounding));
            *error = Error {
                up: rounding.add(V::load(&changes.up)).lanes(),
                down: rounding.add(V::load(&changes.down)).lanes(),
                rounding: rounding.lanes(),
                size: size.lanes(),
            };
        }
        true
    }

    /// Which columns of a group must not lag behind: those go first that change much for each of their cells.
    #[inline(always)]
    fn changes<V: Vector>(&self, by: &ByColumn, mixture: &Expanded, g: usize, minor: &[bool]) -> Changes {
        let is_minor: [bool; LANES] =
            std::array::from_fn(|l| mixture.live.get(g * LANES + l).is_some_and(|&k| minor[k]));
        let mut keep = [1.0; LANES];
        let mut lags = self.lags::<V>(by, mixture, g, &keep);
        let mut witnesses = Vec::new();
        if is_minor.contains(&true) {
            // If a component has moved, that rows were far from where it was does not tell how far they are from where
            // it is. Then more is known of it without what is kept than with it.
            let squares = &mixture.squares[g];
            keep = std::array::from_fn(|l| f64::from(!is_minor[l] || squares[l] >= lags.total_up[l]));
            if keep != [1.0; LANES] {
                lags = self.lags::<V>(by, mixture, g, &keep);
            }
            witnesses = witnesses_of::<V>(by, mixture, g, &is_minor);
        }
        let limit = V::load(&is_minor.map(|minor| if minor { f64::INFINITY } else { LAG }));
        let per_limit = V::load(&is_minor.map(|minor| if minor { 0.0 } else { 1.0 / LAG }));
        let mut order = Vec::with_capacity(mixture.d);
        for (j, (up, down)) in lags.up.iter().zip(&lags.down).enumerate() {
            let relative = V::load(up).max(V::load(down)).mul(per_limit).lanes();
            order.push((relative.into_iter().fold(0.0, f64::max) * by.per_count[j], j));
        }
        let changes = |j: usize, l: usize| is_minor[l] && (lags.up[j][l] != 0.0 || lags.down[j][l] != 0.0);
        for &j in witnesses.iter().filter(|&&j| (0..LANES).any(|l| changes(j, l))) {
            order[j].0 = f64::INFINITY;
        }
        order.sort_unstable_by(|x, y| x.0.total_cmp(&y.0));
        let mut changes = Changes { keep, size: lags.size, ..Changes::default() };
        let keep = V::load(&keep);
        for (gain, j) in order {
            let lag_up = V::load(&changes.up).add(V::load(&lags.up[j]));
            let lag_down = V::load(&changes.down).add(V::load(&lags.down[j]));
            if gain < f64::INFINITY && lag_up.max(lag_down).not_below(limit) == 0 {
                (changes.up, changes.down) = (lag_up.lanes(), lag_down.lanes());
            } else {
                let place = mixture.place(g, j);
                let old = scaled::<V>(&self.slopes[place], keep);
                changes.columns.push((j, difference::<V>(&mixture.slopes[place], &old)));
            }
        }
        // As they lie in memory.
        changes.columns.sort_unstable_by_key(|(j, _)| *j);
        changes
    }

    /// What every column may change.
    #[inline(always)]
    fn lags<V: Vector>(&self, by: &ByColumn, mixture: &Expanded, g: usize, keep: &Lanes) -> Lags {
        let d = mixture.d;
        let mut lags = Lags { up: Vec::with_capacity(d), down: Vec::with_capacity(d), ..Lags::default() };
        let (mut total, mut size, keep) = (V::splat(0.0), V::splat(0.0), V::load(keep));
        for (j, &[least, most]) in by.ranges.iter().enumerate() {
            let place = mixture.place(g, j);
            let (old, new) = (&scaled::<V>(&self.slopes[place], keep), &mixture.slopes[place]);
            let largest = V::splat(least.abs().max(most.abs()));
            let a = absolute(V::load(&new.a)).max(absolute(V::load(&old.a)));
            let b = V::load(&new.b).max(V::load(&old.b));
            size = size.add(largest.mul(largest.fma(b, a)));
            let (up, down) = extremes::<V>(&difference::<V>(new, old), [least, most]);
            total = total.add(up);
            lags.up.push(Line(up.lanes()));
            lags.down.push(Line(down.lanes()));
        }
        (lags.total_up, lags.size) = (total.lanes(), size.lanes());
        lags
    }

    pub fn bounds(&self, mixture: &Expanded) -> Bounds {
        let shifted = |shift: fn(&Error, usize) -> f64| {
            let groups = mixture.base.iter().zip(&self.groups);
            groups.map(|(base, error)| std::array::from_fn(|l| base[l] + shift(error, l))).collect()
        };
        Bounds { low: shifted(|error, l| -error.down[l]), high: shifted(|error, l| error.up[l]) }
    }

    /// Row `i` is settled on the component in a lane, whatever the error of the sums. What is not a number is doubt.
    #[inline(always)]
    pub fn is_settled<V: Vector>(&self, bounds: &Bounds, i: usize, lane: usize) -> bool {
        let n = self.sums.len() / bounds.low.len();
        let (group, own) = (lane / LANES, lane % LANES);
        let limit = V::splat(self.sums[group * n + i][own] + bounds.low[group][own] - SETTLED);
        let mut near = 0;
        for (g, high) in bounds.high.iter().enumerate() {
            let own = u8::from(g == group) << own;
            near |= V::load(&self.sums[g * n + i]).add(V::load(high)).not_below(limit) & !own;
        }
        near == 0
    }

    /// The sums of row `i`.
    pub fn copy(&self, i: usize, out: &mut [Line]) {
        let n = self.sums.len() / out.len();
        out.iter_mut().enumerate().for_each(|(g, out)| *out = self.sums[g * n + i]);
    }
}

/// What the columns of a group may change in any row.
#[derive(Default)]
struct Lags {
    up: Vec<Line>,
    down: Vec<Line>,
    total_up: Lanes,
    /// The largest Σⱼ |yⱼaₖⱼ| + yⱼ²bₖⱼ that a row could have before or after.
    size: Lanes,
}

/// What a group of components goes through from one step to the next.
#[derive(Default)]
struct Changes {
    /// Columns that must not lag behind, and what their slopes change.
    columns: Vec<(usize, Slopes)>,
    /// 0 for components that begin again from nothing, 1 for all others.
    keep: Lanes,
    /// What the others may change, in any row.
    up: Lanes,
    down: Lanes,
    /// The largest Σⱼ |yⱼaₖⱼ| + yⱼ²bₖⱼ that a row could have before or after.
    size: Lanes,
}

#[inline(always)]
fn difference<V: Vector>(new: &Slopes, old: &Slopes) -> Slopes {
    Slopes {
        a: V::load(&new.a).sub(V::load(&old.a)).lanes(),
        b: V::load(&new.b).sub(V::load(&old.b)).lanes(),
    }
}

#[inline(always)]
fn scaled<V: Vector>(slopes: &Slopes, by: V) -> Slopes {
    Slopes { a: V::load(&slopes.a).mul(by).lanes(), b: V::load(&slopes.b).mul(by).lanes() }
}

#[inline(always)]
fn absolute<V: Vector>(v: V) -> V {
    v.max(V::splat(0.0).sub(v))
}

/// How far above and below zero y (a − y b) comes for y in a range, or zero: at one of the ends, or at the vertex a/2b
/// if that is between them.
#[inline(always)]
fn extremes<V: Vector>(slopes: &Slopes, [least, most]: [f64; 2]) -> (V, V) {
    let (a, b, zero) = (V::load(&slopes.a), V::load(&slopes.b), V::splat(0.0));
    let (least, most) = (V::splat(least), V::splat(most));
    let first = least.mul(zero.sub(least).fma(b, a));
    let last = most.mul(zero.sub(most).fma(b, a));
    let vertex = a.div(b.add(b));
    let peak = vertex.mul(a).mul(V::splat(0.5));
    let peak = least.if_below(vertex, vertex.if_below(most, peak, zero), zero);
    let highest = first.max(last).max(peak).max(zero);
    let lowest = zero.sub(first).max(zero.sub(last)).max(zero.sub(peak)).max(zero);
    (highest, lowest)
}

/// Columns that rows of others are least likely to share with any of the minor components: the mean over the rows of
/// (y − μ)²/2σ² is largest, for the component where it is least.
#[inline(always)]
fn witnesses_of<V: Vector>(
    by: &ByColumn,
    mixture: &Expanded,
    g: usize,
    is_minor: &[bool; LANES],
) -> Vec<usize> {
    let mut misfits = Vec::with_capacity(mixture.d);
    for (j, &[first, second]) in by.means.iter().enumerate() {
        let slopes = &mixture.slopes[mixture.place(g, j)];
        let (a, b) = (V::load(&slopes.a), V::load(&slopes.b));
        let square = a.mul(a).div(b.mul(V::splat(4.0)));
        let misfit = b.fma(V::splat(second), square).sub(a.mul(V::splat(first))).lanes();
        let minor = misfit.into_iter().zip(is_minor).filter(|(_, is_minor)| **is_minor);
        misfits.push((minor.map(|(misfit, _)| misfit).fold(f64::INFINITY, f64::min), j));
    }
    if misfits.len() > WITNESSES {
        misfits.select_nth_unstable_by(WITNESSES, |x, y| y.0.total_cmp(&x.0));
        misfits.truncate(WITNESSES);
    }
    misfits.into_iter().map(|(_, j)| j).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{D, N, Theta, expand, mixture as theta_at, rows};
    use super::*;
    use crate::kernel::vector::Plain;
    use crate::kernel::{Level, available, dispatch};

    dispatch! {
        fn follow(kept: &mut Kept, rows: &SparseRows, mixture: &Expanded, minor: &[bool]) -> bool = follow_body
    }

    #[inline(always)]
    fn follow_body<V: Vector>(
        kept: &mut Kept,
        rows: &SparseRows,
        mixture: &Expanded,
        minor: &[bool],
    ) -> bool {
        kept.follow::<V>(rows, mixture, minor)
    }

    dispatch! {
        fn extremes_of(slopes: &Slopes, range: [f64; 2]) -> (Lanes, Lanes) = extremes_body
    }

    #[inline(always)]
    fn extremes_body<V: Vector>(slopes: &Slopes, range: [f64; 2]) -> (Lanes, Lanes) {
        let (up, down) = extremes::<V>(slopes, range);
        (up.lanes(), down.lanes())
    }

    #[test]
    fn no_value_of_a_column_changes_more_than_the_bound() {
        let a = [0.0, 0.0, 1.0, -1.0, 3.0, 0.7, -2.0, 1e-9];
        let b = [0.0, 1.0, 0.0, 2.0, -2.0, 0.6, -1.5, 1e9];
        for (level, range) in
            available().flat_map(|l| [[0.1, 1.0], [-2.0, 0.5], [-3.0, -1.0], [0.0, 0.0]].map(|r| (l, r)))
        {
            let (up, down) = extremes_of(level, &Slopes { a, b }, range);
            let grid = || (0..=100_000).map(|i| range[0] + (range[1] - range[0]) * i as f64 / 1e5);
            for l in 0..LANES {
                let values = || grid().map(|y| y * (a[l] - y * b[l]));
                let (most, least) = (values().fold(0.0, f64::max), values().fold(0.0, f64::min));
                let slack = 1e-9 * (1.0 + most - least);
                assert!((up[l] - most).abs() < slack, "{level:?}, {range:?}, lane {l}: {} not {most}", up[l]);
                assert!((down[l] + least).abs() < slack, "{level:?}, {range:?}, lane {l}");
            }
        }
    }

    /// The sums of all rows and lanes, by starting over.
    fn exact(level: Level, rows: &SparseRows, mixture: &Expanded) -> Vec<Line> {
        let mut kept = Kept::default();
        assert!(follow(level, &mut kept, rows, mixture, &[false; 10]));
        kept.sums
    }

    /// θ after a step in which every twentieth column changes much, the others hardly, and component 7 altogether.
    fn next((pi, mut mean, mut variance): Theta, step: usize) -> Theta {
        for (i, (m, v)) in mean.iter_mut().zip(&mut variance).enumerate() {
            let (k, j) = (i / D, i % D);
            let large = if (j + step).is_multiple_of(20) { 0.2 } else { 1e-4 };
            *m += large * (i as f64 * 0.37).sin() * 0.1;
            *v *= 1.0 + large * (i as f64 * 0.73).sin();
            if k == 7 {
                (*m, *v) = (0.3 * (1.0 + ((j * (step + 1)) as f64).sin()), 1e-4);
            }
        }
        (pi, mean, variance)
    }

    #[test]
    fn what_is_kept_is_as_near_to_the_sums_as_it_says() {
        let x = rows();
        let sparse = SparseRows::new(x.view());
        let minor: Vec<bool> = (0..10).map(|k| k == 7).collect();
        for level in available() {
            let mut theta = theta_at(10, 0.5, 0);
            let mut kept = Kept::default();
            assert!(
                follow(level, &mut kept, &sparse, &expand(level, &theta), &minor),
                "nothing is kept at first"
            );
            assert!(follow(level, &mut kept, &sparse, &expand(level, &theta), &minor), "nothing has changed");
            let mut most = 0.0f64;
            for step in 0..6 {
                theta = next(theta, step);
                let mixture = expand(level, &theta);
                let before = kept.slopes.clone();
                assert!(!follow(level, &mut kept, &sparse, &mixture, &minor), "{level:?}, step {step}");
                let followed = before.iter().zip(&kept.slopes).filter(|(a, b)| a.b[..7] != b.b[..7]).count();
                assert!(followed < before.len() / 2, "{followed} of {} columns", before.len());
                let exact = exact(level, &sparse, &mixture);
                for (at, (exact, sums)) in exact.iter().zip(&kept.sums).enumerate() {
                    let error = &kept.groups[at / N];
                    for l in 0..LANES {
                        let rise = exact[l] - sums[l];
                        assert!(
                            -error.down[l] <= rise && rise <= error.up[l],
                            "{level:?}, step {step}: {rise}"
                        );
                        let minor = at / N * LANES + l == 7;
                        assert!(
                            minor || error.up[l].max(error.down[l]) < LAG + 1e-6,
                            "{level:?}, step {step}"
                        );
                        most = if minor { most } else { most.max(rise.abs()) };
                    }
                }
            }
            assert!(most > 0.5, "{most}: columns lag behind");
            // Everything changes: that is to start over.
            theta.2.iter_mut().for_each(|v| *v *= 0.5);
            assert!(follow(level, &mut kept, &sparse, &expand(level, &theta), &minor), "{level:?}");
            kept.judge(N / 2, N);
            assert!(kept.live.is_empty());
        }
    }

    /// Components that die leave what is kept of the others as it was, whether a group of eight goes with them or not.
    #[test]
    fn the_dead_take_nothing_with_them() {
        let x = rows();
        let sparse = SparseRows::new(x.view());
        let minor = [false; 10];
        for level in available() {
            let mut theta = theta_at(10, 0.5, 0);
            let mut kept = Kept::default();
            assert!(follow(level, &mut kept, &sparse, &expand(level, &theta), &minor));
            // Some columns lag behind.
            theta = next(theta, 0);
            assert!(!follow(level, &mut kept, &sparse, &expand(level, &theta), &minor));
            for dead in [3, 8, 0] {
                theta.0[dead] = 0.0;
                let mixture = expand(level, &theta);
                assert!(!follow(level, &mut kept, &sparse, &mixture, &minor), "{level:?}: not from nothing");
                assert_eq!(kept.live, mixture.live);
                for (at, (exact, sums)) in exact(level, &sparse, &mixture).iter().zip(&kept.sums).enumerate()
                {
                    let error = &kept.groups[at / N];
                    for l in 0..LANES {
                        let rise = exact[l] - sums[l];
                        assert!(-error.down[l] <= rise && rise <= error.up[l], "{level:?}: {rise}");
                    }
                }
            }
            // One that comes back was never kept.
            theta.0[3] = 0.1;
            assert!(follow(level, &mut kept, &sparse, &expand(level, &theta), &minor), "{level:?}");
        }
    }

    /// No row is called settled that is not, and those of major components are found to be.
    #[test]
    fn settled_means_settled() {
        let x = rows();
        let sparse = SparseRows::new(x.view());
        let minor: Vec<bool> = (0..10).map(|k| k == 7).collect();
        let level = Level::current();
        let mut theta = theta_at(10, 0.9, 0);
        // One component of the second group is where one of the first is: nothing is settled on either.
        for values in [&mut theta.1, &mut theta.2] {
            values.copy_within(3 * D..4 * D, 9 * D);
        }
        let mut kept = Kept::default();
        follow(level, &mut kept, &sparse, &expand(level, &theta), &minor);
        for step in 0..4 {
            theta = next(theta, step);
            let mixture = expand(level, &theta);
            follow(level, &mut kept, &sparse, &mixture, &minor);
            let (bounds, exact) = (kept.bounds(&mixture), exact(level, &sparse, &mixture));
            let mut found = 0;
            for i in 0..N {
                let joint: Vec<f64> = (0..10)
                    .map(|k| mixture.base[k / LANES][k % LANES] + exact[k / LANES * N + i][k % LANES])
                    .collect();
                for lane in 0..10 {
                    let others =
                        (0..10).filter(|&k| k != lane).map(|k| joint[k]).fold(f64::NEG_INFINITY, f64::max);
                    let claim = kept.is_settled::<Plain>(&bounds, i, lane);
                    assert!(!claim || joint[lane] - others > SETTLED - 1e-6, "step {step}, row {i}");
                    found += usize::from(claim);
                }
            }
            assert!(found > N / 2, "step {step}: {found}");
        }
        let bounds = kept.bounds(&expand(level, &theta));
        assert!(kept.is_settled::<Plain>(&bounds, 4, 4));
        kept.sums[4][2] = f64::NAN;
        assert!(!kept.is_settled::<Plain>(&bounds, 4, 4), "what is not a number is doubt");
    }
}

//! The E step over sparse rows, and what it remembers from pass to pass.

use super::expanded::{Expanded, add_base, exponentials};
use super::kept::Kept;
use super::rows::{BAND, SparseRows, TILE};
use super::{SETTLED, top_two};
use crate::kernel::vector::{LANES, Line, Vector};
use crate::kernel::{Level, dispatch};

/// Sums about zero, which are exact in a column of zeros.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moments {
    d: usize,
    /// Σ w r of each component.
    pub mass: Vec<f64>,
    /// Σ w r y and Σ w r y², component after component.
    pub moments: Vec<[f64; 2]>,
}

impl Moments {
    pub fn new(k: usize, d: usize) -> Self {
        let mut moments = Moments::default();
        moments.clear(k, d);
        moments
    }

    /// All zeros.
    fn clear(&mut self, k: usize, d: usize) {
        self.d = d;
        self.mass.clear();
        self.mass.resize(k, 0.0);
        self.moments.clear();
        self.moments.resize(k * d, [0.0; 2]);
    }

    pub fn of(&self, k: usize) -> &[[f64; 2]] {
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

    /// Σ w log πₖNₖ over rows that belong to one component each.
    fn log_lik(&self, mixture: &Expanded) -> f64 {
        let of_component = |(at, &k): (usize, &usize)| {
            let (group, lane) = (at / LANES, at % LANES);
            if self.mass[k] == 0.0 {
                return 0.0;
            }
            let moments = self.of(k).iter().enumerate();
            let slopes = moments.map(|(j, [first, second])| {
                let slopes = &mixture.slopes[mixture.place(group, j)];
                first * slopes.a[lane] - second * slopes.b[lane]
            });
            self.mass[k] * mixture.base[group][lane] + slopes.sum::<f64>()
        };
        mixture.live.iter().enumerate().map(of_component).sum()
    }
}

/// Owner of a row that is not settled.
pub(super) const OPEN: u32 = u32::MAX;

/// What EM remembers of the rows from pass to pass: which are settled, and their sums. A pass over the open rows alone
/// is a whole EM step as long as no settled row would move, which a thorough pass finds out; if one would, its log
/// likelihood is a lower bound (Neal and Hinton 1998, incremental EM).
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// The component that each row is settled on, for atoms of each origin.
    pub(super) owners: Vec<Vec<u32>>,
    /// Their log densities.
    kept: Vec<Kept>,
    settled: Moments,
    /// Sums of the current pass over the open rows; after it, over all.
    pub(super) sums: Moments,
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
        self.sums.clear(self.settled.mass.len(), self.settled.d);
        self.log_lik = 0.0;
        self.moved = 0;
    }

    /// After a pass: Σ w log f(y).
    pub fn end(&mut self, mixture: &Expanded) -> f64 {
        self.sums.add_all(&self.settled);
        self.log_lik + self.settled.log_lik(mixture)
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

    /// What is known of `n` rows of origin `part`, taken out.
    fn take(&mut self, part: usize, n: usize) -> (Vec<u32>, Kept) {
        if self.owners.len() <= part {
            self.owners.resize(part + 1, Vec::new());
            self.kept.resize(part + 1, Kept::default());
        }
        let mut owners = std::mem::take(&mut self.owners[part]);
        owners.resize(n, OPEN);
        (owners, std::mem::take(&mut self.kept[part]))
    }
}

/// The component that a row is settled on by its log πₖNₖ, and the largest of these.
#[inline(always)]
fn owner_and_largest(mixture: &Expanded, joint: &[Line]) -> (u32, f64) {
    let (max, at, second) = top_two(joint);
    (if max - second > SETTLED { mixture.live[at] as u32 } else { OPEN }, max)
}

/// The first pass of all searches that start at the same θ, over rows that they share but for the weights.
pub struct Opening {
    owners: Vec<u32>,
    kept: Kept,
}

impl Opening {
    pub fn new(level: Level, rows: &SparseRows, mixture: &Expanded) -> Self {
        let mut opening = Opening { owners: vec![OPEN; rows.n()], kept: Kept::default() };
        open(level, rows, mixture, &mut opening);
        opening
    }

    /// The sums of the settled rows, for each of several sets of weights.
    pub fn moments(&self, level: Level, rows: &SparseRows, k: usize, d: usize, w: &[&[f64]]) -> Vec<Moments> {
        let mut all = Vec::with_capacity(w.len());
        for w in w.chunks(LANES) {
            let mut moments = vec![Moments::new(k, d); w.len()];
            add_settled(level, rows, &self.owners, w, &mut moments);
            all.append(&mut moments);
        }
        all
    }

    /// Makes `ledger` what a search knows of its rows after the pass; its memory is used again.
    pub fn begin(&self, ledger: &mut Ledger, settled: Moments) {
        ledger.owners.resize(1, Vec::new());
        ledger.owners[0].clone_from(&self.owners);
        ledger.kept.resize(1, Kept::default());
        ledger.kept[0].clone_from(&self.kept);
        ledger.settled = settled;
    }
}

dispatch! {
    fn open(rows: &SparseRows, mixture: &Expanded, opening: &mut Opening) = open_body
}

#[inline(always)]
fn open_body<V: Vector>(rows: &SparseRows, mixture: &Expanded, opening: &mut Opening) {
    opening.kept.start_over::<V>(rows, mixture);
    let mut joint = vec![Line::default(); mixture.groups()];
    for (i, owner) in opening.owners.iter_mut().enumerate() {
        opening.kept.copy(i, &mut joint);
        add_base::<V>(mixture, &mut joint);
        (*owner, _) = owner_and_largest(mixture, &joint);
    }
}

dispatch! {
    /// Adds every settled row to the sums of its component, for up to eight sets of weights in step.
    fn add_settled(rows: &SparseRows, owners: &[u32], w: &[&[f64]], out: &mut [Moments]) = add_settled_body
}

#[inline(always)]
fn add_settled_body<V: Vector>(rows: &SparseRows, owners: &[u32], w: &[&[f64]], out: &mut [Moments]) {
    let (k, d) = (out[0].mass.len(), out[0].d);
    let mut sums = vec![[Line::default(); 2]; d];
    for c in 0..k {
        sums.fill([Line::default(); 2]);
        let mut mass = V::splat(0.0);
        for i in (0..owners.len()).filter(|&i| owners[i] == c as u32) {
            let mut lanes = [0.0; LANES];
            lanes.iter_mut().zip(w).for_each(|(lane, w)| *lane = w[i]);
            let r = V::load(&lanes);
            mass = mass.add(r);
            for (tile, sums) in sums.chunks_mut(TILE).enumerate() {
                let (columns, values) = rows.cells(i, tile);
                for (&j, &y) in columns.iter().zip(values) {
                    let [first, second] = &mut sums[j as usize];
                    // As in `Moments::add`, to the last bit.
                    let (y, ry) = (V::splat(y), r.mul(V::splat(y)));
                    first.0 = V::load(first).add(ry).lanes();
                    second.0 = V::load(second).add(ry.mul(y)).lanes();
                }
            }
        }
        for (l, out) in out.iter_mut().enumerate() {
            out.mass[c] = mass.lanes()[l];
            let moments = &mut out.moments[c * d..(c + 1) * d];
            moments.iter_mut().zip(&sums).for_each(|(to, [first, second])| *to = [first[l], second[l]]);
        }
    }
}

dispatch! {
    /// The E step of eq. (E.6) for the rows of origin `part`, all of them or the open ones, and the weighted sums that
    /// the M step of eq. (E.7) needs.
    pub fn e_step(
        rows: &SparseRows, w: &[f64], mixture: &Expanded, part: usize, thorough: bool, ledger: &mut Ledger
    ) = e_step_body
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
    let (mut owners, mut kept) = ledger.take(part, rows.n());
    let keeps = thorough && Kept::pays(rows, mixture);
    let exact = keeps && kept.follow::<V>(rows, mixture, &minor(&owners, ledger.settled.mass.len()));
    let bounds = kept.bounds(mixture);
    let mut lanes = vec![None; ledger.settled.mass.len()];
    mixture.live.iter().enumerate().for_each(|(lane, &k)| lanes[k] = Some(lane));
    let mut doubtful = Vec::new();
    for (i, owner) in owners.iter().enumerate() {
        let stays = match lanes.get(*owner as usize) {
            Some(Some(lane)) if keeps => kept.is_settled::<V>(&bounds, i, *lane),
            Some(Some(_)) => !thorough,
            _ => false,
        };
        if !stays {
            doubtful.push(i);
        }
    }
    let mut joint = vec![Line::default(); groups * BAND];
    let mut open = 0;
    for doubtful in doubtful.chunks(BAND) {
        if exact {
            doubtful.iter().zip(joint.chunks_exact_mut(groups)).for_each(|(&i, joint)| kept.copy(i, joint));
        } else {
            mixture.sums::<V>(rows, doubtful, |p, g| p * groups + g, &mut joint);
        }
        for (&i, joint) in doubtful.iter().zip(joint.chunks_exact_mut(groups)) {
            add_base::<V>(mixture, joint);
            let (owner, max) = owner_and_largest(mixture, joint);
            ledger.settle(rows, i, &mut owners[i], owner, w[i]);
            if owner == OPEN {
                open += 1;
                let total = exponentials::<V>(joint, max);
                ledger.log_lik += w[i] * (max + libm::log(total));
                for (&k, &e) in mixture.live.iter().zip(joint.iter().flat_map(|line| line.iter())) {
                    // However small: what a component makes of its rows depends on their shares, not on how many.
                    if e > 0.0 {
                        ledger.sums.add(rows, i, k, w[i] * (e / total));
                    }
                }
            }
        }
    }
    if keeps {
        kept.judge(if exact { open } else { doubtful.len() }, rows.n());
    }
    (ledger.owners[part], ledger.kept[part]) = (owners, kept);
}

/// Minor components are those that have at most this share of the rows in all: what is kept of them need not be good
/// enough to find their own rows settled.
const MINOR: f64 = 0.02;

/// Which components are minor.
fn minor(owners: &[u32], k: usize) -> Vec<bool> {
    let mut counts = vec![0; k];
    owners.iter().filter(|owner| **owner != OPEN).for_each(|owner| counts[*owner as usize] += 1);
    let mut order: Vec<usize> = (0..k).collect();
    order.sort_by_key(|&c| counts[c]);
    let (mut minor, mut rows) = (vec![false; k], 0);
    for c in order {
        rows += counts[c];
        minor[c] = rows as f64 <= MINOR * owners.len() as f64;
    }
    minor
}

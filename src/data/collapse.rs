//! Identical rows as one row, which stands for all of them. The weights of c rows sum to a Gamma(c), which is what a row of case weight
//! c has: no law of any draw changes, though the draws of a seed do.

use super::Dataset;
use super::design::{Design, Groups};
use crate::storage::Buffer;

/// Fewer rows are left alone unless it is asked for: they are cheap as they are.
pub const FEWEST: usize = 10_000;
/// Rows that are looked at before all of them are: so many, picked over the whole of the data, have some that are alike if half of a
/// hundred million rows can go.
const LOOKED_AT: usize = 1 << 16;

/// Which rows a data set was collapsed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collapsed {
    /// How many there were.
    pub rows: usize,
    /// How many were kept while they were prepared.
    pub kept: usize,
    /// They had whole case weights, or none.
    pub whole_weights: bool,
}

impl Dataset {
    /// With every set of identical rows as one; `None` if that leaves more than `most` rows. Rows are identical if every cell is, bit
    /// by bit, with response, event and offset, and they are of one cluster and one stratum.
    pub fn collapsed(&self, most: usize) -> Option<Dataset> {
        let mut distinct = Distinct::new(self, 0);
        for i in 0..self.n() {
            distinct.add(i);
            if distinct.first.len() > most {
                return None;
            }
        }
        let Distinct { first, count, .. } = distinct;
        let pick = |groups: &Groups| groups.select(&first);
        let (clusters, strata) = (self.design.clusters(), self.design.strata().map(|(groups, _)| groups));
        let design = Design::new(Some(count), clusters.map(pick), strata.map(pick));
        let whole_weights = self.design.weights().is_none_or(|c| c.iter().all(|c| c.fract() == 0.0));
        let from = self.collapsed.unwrap_or(Collapsed { rows: self.n(), kept: self.n(), whole_weights });
        Some(Dataset { collapsed: Some(from), ..self.select(&first).with_design(design) })
    }

    /// The same where it leaves at most one row of `times`, of many rows.
    pub fn collapsed_if_it_pays(&self, times: usize) -> Option<Dataset> {
        let n = self.rows_before();
        if n < FEWEST || self.collapsed.is_none() && !self.has_twins() {
            return None;
        }
        self.collapsed(n / times)
    }

    /// Whether some of a few rows here and there are identical.
    fn has_twins(&self) -> bool {
        let mut some = Distinct::new(self, LOOKED_AT);
        let step = (self.n() / LOOKED_AT).max(1);
        // One row of every run of `step`, at no fixed distance: copies may come at one.
        let pick = |k: usize| k * step + (scrambled(k as u64) % step as u64) as usize;
        (0..self.n() / step).map(pick).any(|i| !some.add(i))
    }
}

/// Places of rows that differ, found by their hashes.
#[derive(Clone, Debug, Default, PartialEq)]
struct Slots {
    /// The place of a row; 0 is none, others are counted from 1.
    slots: Vec<u32>,
    hashes: Vec<u64>,
}

impl Slots {
    fn new(expected: usize) -> Slots {
        let slots = vec![0; (2 * expected).next_power_of_two().max(1 << 10)];
        Slots { slots, hashes: Vec::new() }
    }

    /// The place of the row with this hash that `is_it`, or that of a new one.
    fn place(&mut self, hash: u64, is_it: impl Fn(usize) -> bool) -> (usize, bool) {
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        while let Some(k) = (self.slots[slot] as usize).checked_sub(1) {
            if self.hashes[k] == hash && is_it(k) {
                return (k, false);
            }
            slot = (slot + 1) & mask;
        }
        self.hashes.push(hash);
        self.slots[slot] = u32::try_from(self.hashes.len()).expect("fewer rows than that fit into memory");
        if 2 * self.hashes.len() > self.slots.len() {
            self.grow();
        }
        (self.hashes.len() - 1, true)
    }

    fn grow(&mut self) {
        let mask = 2 * self.slots.len() - 1;
        self.slots = vec![0; mask + 1];
        for (k, hash) in self.hashes.iter().enumerate() {
            let mut slot = *hash as usize & mask;
            while self.slots[slot] != 0 {
                slot = (slot + 1) & mask;
            }
            self.slots[slot] = k as u32 + 1;
        }
    }
}

/// Rows that differ, each with the weights of its copies.
struct Distinct<'a> {
    data: &'a Dataset,
    slots: Slots,
    first: Vec<usize>,
    count: Vec<f64>,
}

impl<'a> Distinct<'a> {
    fn new(data: &'a Dataset, expected: usize) -> Distinct<'a> {
        Distinct { data, slots: Slots::new(expected), first: Vec::new(), count: Vec::new() }
    }

    /// Adds row i; false if it has been seen.
    fn add(&mut self, i: usize) -> bool {
        let Distinct { data, slots, first, count } = self;
        let hash = hash(words(data, i));
        let (k, is_new) = slots.place(hash, |k| words(data, first[k]).eq(words(data, i)));
        if is_new {
            first.push(i);
            count.push(0.0);
        }
        count[k] += data.weight(i);
        is_new
    }
}

/// Rows that are counted while a table is read, so that it holds those that differ and no others.
#[derive(Clone, Debug, PartialEq)]
pub struct Copies {
    slots: Slots,
    /// How often each row occurs.
    pub counts: Vec<u64>,
    /// The number of the first of its copies in the file, from 0.
    pub first: Vec<usize>,
    /// Rows so far.
    rows: usize,
    /// At most one row of so many may be left.
    times: usize,
}

impl Copies {
    /// Rows are counted from so many on: fewer are cheap as they are.
    pub const FROM: usize = 1 << 20;

    pub fn new(times: usize) -> Copies {
        Copies { slots: Slots::new(0), counts: Vec::new(), first: Vec::new(), rows: 0, times }
    }

    /// Rows that have been counted: no more are to come.
    pub fn of(counts: Vec<u64>, first: Vec<usize>, times: usize) -> Copies {
        let rows = counts.iter().sum::<u64>() as usize;
        Copies { slots: Slots::default(), counts, first, rows, times }
    }

    /// Counts a row, and puts it below those of `cells` if none is like it; false if that does not pay, at this row or one before.
    pub fn add(&mut self, row: &[f64], cells: &mut Buffer<f64>) -> bool {
        if self.are_too_few() {
            return false;
        }
        let width = row.len();
        let same = |k: usize| {
            cells[k * width..(k + 1) * width].iter().zip(row).all(|(a, b)| a.to_bits() == b.to_bits())
        };
        let (k, is_new) = self.slots.place(hash(row.iter().map(|v| v.to_bits())), same);
        if is_new {
            cells.extend_from_slice(row);
            self.counts.push(0);
            self.first.push(self.rows);
        }
        self.counts[k] += 1;
        self.rows += 1;
        !self.are_too_few()
    }

    /// Of these rows alone, in this order.
    pub fn select(&self, rows: &[usize]) -> Copies {
        let counts = rows.iter().map(|&i| self.counts[i]).collect();
        Copies::of(counts, rows.iter().map(|&i| self.first[i]).collect(), self.times)
    }

    /// So many rows differ that counting them does not pay.
    pub fn are_too_few(&self) -> bool {
        self.rows >= Copies::FROM && self.counts.len() * self.times > self.rows
    }
}

fn hash(words: impl Iterator<Item = u64>) -> u64 {
    words.fold(0, |hash, word| scrambled(hash ^ word))
}

/// All that tells a row from another, but its case weight.
fn words(data: &Dataset, i: usize) -> impl Iterator<Item = u64> + '_ {
    let beside = [&data.y, &data.event, &data.offset].into_iter().flatten().map(move |column| column[i]);
    let numbers = data.x.row(i).into_iter().copied().chain(beside);
    let design = &data.design;
    let groups = [design.clusters(), design.strata().map(|(groups, _)| groups)];
    numbers.map(f64::to_bits).chain(groups.into_iter().flatten().map(move |groups| groups.of[i] as u64))
}

/// The finaliser of SplitMix64: every bit of the word decides every bit of the answer.
fn scrambled(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array1, array};

    #[test]
    fn rows_that_differ_in_anything_stay_apart() {
        let x = array![[1.0, 2.0], [1.0, 2.0], [1.0, 2.0], [3.0, 2.0], [1.0, 2.0]];
        let data = |y: [f64; 5]| {
            Dataset::new(x.clone(), Some(Array1::from(y.to_vec())), vec!["a".into(), "b".into()])
        };
        let plain = data([0.0; 5]).collapsed(5).unwrap();
        assert_eq!((plain.n(), plain.design.weights()), (2, Some(&[4.0, 1.0][..])));
        assert_eq!((plain.mass(), plain.rows_before()), (5.0, 5));
        assert_eq!(
            data([0.0, 1.0, 0.0, 0.0, 0.0]).collapsed(5).unwrap().design.weights().unwrap(),
            [3.0, 1.0, 1.0]
        );
        let groups = Groups::new([7, 7, 8, 8, 8]);
        let of = |clusters, strata| {
            let design = Design::new(Some(vec![1.0, 0.5, 2.0, 1.0, 1.0]), clusters, strata);
            data([0.0; 5]).with_design(design).collapsed(5).unwrap()
        };
        for grouped in [of(Some(groups.clone()), None), of(None, Some(groups.clone()))] {
            assert_eq!(grouped.design.weights().unwrap(), [1.5, 3.0, 1.0]);
        }
        let strata = of(None, Some(groups)).design;
        assert_eq!(strata.strata().unwrap().1, [1.5 / 5.5, 4.0 / 5.5], "the shares are those of all rows");
        let offset = data([0.0; 5]).with_offset(Some(Array1::from(vec![0.0, 1.0, 1.0, 1.0, -0.0])));
        assert_eq!(offset.collapsed(5).unwrap().n(), 4, "bit by bit: minus zero is another number");
    }

    #[test]
    fn it_is_done_unasked_only_where_it_pays() {
        let data =
            |n: usize, distinct: usize| Dataset::from_values((0..n).map(|i| (i % distinct) as f64).collect());
        let left = |n, distinct, times| data(n, distinct).collapsed_if_it_pays(times).map(|data| data.n());
        assert_eq!(left(FEWEST, FEWEST / 2, 2), Some(FEWEST / 2));
        assert_eq!(left(FEWEST, FEWEST / 2 + 1, 2), None);
        assert_eq!(left(FEWEST - 1, 10, 2), None);
        assert_eq!(left(300_000, 150_000, 2), Some(150_000), "copies far from each other are found");
        assert_eq!(left(300_000, 150_000, 32), None);
        assert!(data(100, 3).collapsed(2).is_none() && data(100, 3).collapsed(3).is_some());
    }
}

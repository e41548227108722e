//! Draws from a file. Memory does not grow with the file: columns are read in strips.

use std::ops::Range;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::format::{Opened, Table};
use super::grouping::{PLACE, Rounds};
use super::{
    FOREIGN, Format, GROUP, Grouping, Kinship, LOG_WEIGHT, NameStyle, REPEAT, RESTART, STATISTICS, STATUS,
    Sample, Summary, npy, wrong,
};
use crate::config::printable;
use crate::error::{Error, Result};
use crate::optim::Status;

/// Bytes of values in memory at one time.
pub const STRIP: usize = 64 << 20;
/// The same for text, of which every strip parses the whole file again.
const TEXT_STRIP: usize = 256 << 20;

/// A table of draws in a file.
pub struct Samples {
    pub(super) path: PathBuf,
    pub(super) table: Box<dyn Table>,
    pub(super) columns: Vec<String>,
    /// How many columns stand in front of the parameters.
    pub(super) statistics: usize,
}

/// Columns of a table of draws.
pub struct Columns {
    pub statistics: Vec<Vec<f64>>,
    pub parameters: Vec<Vec<f64>>,
    /// Draws that are none.
    pub lost: usize,
}

impl Samples {
    /// The file's name tells its format.
    pub fn open(path: &Path) -> Result<Samples> {
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let format = Format::of(&name).map_err(|why| wrong(path, &format!("its name {why}")))?;
        Samples::checked(path, format.open(path)?)
    }

    /// An array with these columns, whatever its name.
    pub fn array(path: &Path, columns: Vec<String>, grouping: Option<&Grouping>) -> Result<Samples> {
        let levels = grouping.map(|all| all.names.clone()).unwrap_or_default();
        let columns = if grouping.is_some() { Grouping::columns(&columns) } else { columns };
        Samples::checked(path, npy::open_named(path, columns, levels)?)
    }

    fn checked(path: &Path, (mut columns, mut table): Opened) -> Result<Samples> {
        if columns.get(PLACE).is_some_and(|name| name == GROUP) {
            columns.remove(PLACE);
            table = Box::new(Rounds(table));
        }
        let known = STATISTICS.iter().zip(&columns).all(|(a, b)| a == b);
        let statistics = columns.iter().take_while(|c| c.ends_with("__")).count();
        if known && statistics >= STATISTICS.len() && columns.len() > statistics {
            Ok(Samples { path: path.to_owned(), table, columns, statistics })
        } else {
            Err(wrong(path, FOREIGN))
        }
    }

    pub fn parameters(&self) -> &[String] {
        &self.columns[self.statistics..]
    }

    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// How many draws there are.
    pub fn rows(&self) -> Result<usize> {
        let mut count = 0;
        match self.table.rows() {
            Some(rows) => return Ok(rows),
            None => self.scan(0..0, |_, _| {
                count += 1;
                true
            })?,
        }
        Ok(count)
    }

    /// Where the log weights are.
    pub(super) fn log_weights(&self) -> Result<usize> {
        let place = self.columns[..self.statistics].iter().position(|c| c == LOG_WEIGHT);
        place.ok_or_else(|| wrong(&self.path, &format!("its draws have weights, and no column {LOG_WEIGHT}")))
    }

    /// Goes through the draws: their statistics, and `range` of their parameters. Ends when `each` says false. Unlike
    /// data, draws may hold NaN: where a search failed.
    pub(super) fn scan(
        &self,
        range: Range<usize>,
        mut each: impl FnMut(&[f64], &[f64]) -> bool,
    ) -> Result<()> {
        self.table.scan(self.statistics, range, &mut each)
    }

    /// Every draw, all of it, with its repeat, counted from 1, in the order of the file, until `each` says false.
    pub fn each(&self, mut each: impl FnMut(usize, Sample) -> bool) -> Result<()> {
        let mut whole = true;
        self.scan(0..self.parameters().len(), |statistics, theta| match Sample::of_row(statistics, theta) {
            Some((repeat, sample)) => each(repeat, sample),
            None => {
                whole = false;
                false
            }
        })?;
        if whole { Ok(()) } else { Err(wrong(&self.path, FOREIGN)) }
    }

    /// These parameters of a model as the file calls them, with dots or brackets; or the first that it does not have.
    pub fn named<'n>(&self, names: &'n [String]) -> std::result::Result<Vec<String>, &'n String> {
        let find = |name: &'n String| {
            let both = [name.clone(), NameStyle::Bracket.apply(name)];
            both.into_iter().find(|n| self.parameters().contains(n)).ok_or(name)
        };
        names.iter().map(find).collect()
    }

    /// Where these parameters stand among those of the file, which may call them with brackets.
    fn places(&self, names: &[String]) -> Result<Vec<usize>> {
        let place = |name: &String| self.parameters().iter().position(|n| n == name);
        let find = |name: &String| {
            let place = place(name).or_else(|| place(&NameStyle::Bracket.apply(name)));
            place.ok_or_else(|| Error::input(format!("the draws have no parameter {}", printable(name))))
        };
        names.iter().map(find).collect()
    }

    /// The parameters `names` of every draw, in that order, until `each` says false.
    pub fn draws(&self, names: &[String], mut each: impl FnMut(Vec<f64>) -> bool) -> Result<()> {
        let places = self.places(names)?;
        self.scan(0..self.parameters().len(), |_, theta| each(places.iter().map(|&j| theta[j]).collect()))
    }

    /// The parameters `names` of every draw of one repeat, counted from 1, but those that are lost.
    pub fn of_repeat(&self, names: &[String], repeat: usize) -> Result<Vec<Vec<f64>>> {
        let places = self.places(names)?;
        let mut found = Vec::new();
        self.scan(0..self.parameters().len(), |statistics, theta| {
            if statistics[REPEAT] == repeat as f64 && !Status::is_lost_code(statistics[STATUS]) {
                found.push(places.iter().map(|&j| theta[j]).collect());
            }
            true
        })?;
        Ok(found)
    }

    /// Columns of the draws of one repeat, counted from 1, or of all: these statistics and these parameters. Draws that are
    /// none are counted and left out.
    pub fn table(&self, statistics: &[&str], names: &[String], repeat: Option<usize>) -> Result<Columns> {
        let find = |name: &&str| {
            let place = self.columns[..self.statistics].iter().position(|c| c == name);
            place.ok_or_else(|| wrong(&self.path, &format!("its draws have no column {name}")))
        };
        let of_statistics: Vec<usize> = statistics.iter().map(find).collect::<Result<_>>()?;
        let places = self.places(names)?;
        // What is not asked for is not read.
        let first = places.iter().copied().min().unwrap_or(0);
        let range = first..places.iter().copied().max().map_or(0, |last| last + 1);
        let mut table = Columns {
            statistics: vec![Vec::new(); statistics.len()],
            parameters: vec![Vec::new(); names.len()],
            lost: 0,
        };
        self.scan(range, |row, theta| {
            if repeat.is_some_and(|r| row[REPEAT] != r as f64) {
                return true;
            }
            if Status::is_lost_code(row[STATUS]) {
                table.lost += 1;
                return true;
            }
            table.statistics.iter_mut().zip(&of_statistics).for_each(|(column, &j)| column.push(row[j]));
            table.parameters.iter_mut().zip(&places).for_each(|(column, &j)| column.push(theta[j - first]));
            true
        })?;
        Ok(table)
    }

    /// A summary of every parameter, over all draws or those of one repeat, by what they are to each other. Where there is no minimum, a search left θ
    /// somewhere, and that is no draw.
    pub fn summarise(&self, draws: Kinship, repeat: Option<usize>) -> Result<Vec<Summary>> {
        let one = self.summarise_in_strips(draws, repeat, &[0], self.strip())?;
        Ok(one.into_iter().flatten().collect())
    }

    /// The same of every group, by its name; one without a name where there are no groups.
    pub fn summarise_groups(&self, draws: Kinship) -> Result<Vec<(Option<String>, Vec<Summary>)>> {
        let Some(grouping) = self.grouping()? else { return Ok(vec![(None, self.summarise(draws, None)?)]) };
        let firsts = grouping.firsts();
        let name = |first: &usize| Some(grouping.names[grouping.of(*first).0].clone());
        let all = self.summarise_in_strips(draws, None, &firsts, self.strip())?;
        Ok(firsts.iter().map(name).zip(all).collect())
    }

    /// Bytes of the columns that are read at one time.
    fn strip(&self) -> usize {
        if self.table.rows().is_some() { STRIP } else { TEXT_STRIP }
    }

    /// Of each part of the rounds: `firsts` are the rounds, from 1, that parts begin with.
    fn summarise_in_strips(
        &self,
        draws: Kinship,
        repeat: Option<usize>,
        firsts: &[usize],
        most: usize,
    ) -> Result<Vec<Vec<Summary>>> {
        let names = self.parameters();
        let fit = |rows: usize| (most / (8 * rows.max(1))).max(1);
        let mut rows = self.table.rows();
        let mut summaries: Vec<Vec<Summary>> =
            firsts.iter().map(|_| Vec::with_capacity(names.len())).collect();
        let log_weights = if draws == Kinship::Weighted { self.log_weights()? } else { 0 };
        let mut done = 0;
        while done < names.len() {
            let left = names.len() - done;
            let mut strip = Strip::new(left.min(rows.map_or(left, fit)), rows.unwrap_or(0), fit);
            let mut parts: Vec<(usize, Groups)> = firsts.iter().map(|_| Default::default()).collect();
            self.scan(done..done + strip.columns.len(), |statistics, theta| {
                let failed = Status::is_lost_code(statistics[STATUS]);
                if failed || repeat.is_some_and(|r| statistics[REPEAT] != r as f64) {
                    return true;
                }
                strip.add(theta);
                let part = firsts.partition_point(|first| *first as f64 <= statistics[REPEAT]) - 1;
                let (count, groups) = &mut parts[part];
                *count += 1;
                match draws {
                    Kinship::Independent => {}
                    Kinship::Chains { .. } => groups.add([statistics[REPEAT], statistics[RESTART]], 0.0),
                    Kinship::Weighted => groups.add([statistics[REPEAT], 0.0], statistics[log_weights]),
                }
                true
            })?;
            let columns = strip.end();
            rows = rows.or(Some(columns[0].len()));
            let names = &names[done..done + columns.len()];
            done += columns.len();
            let mut end = 0;
            for (summaries, (count, groups)) in summaries.iter_mut().zip(&parts) {
                let range = end..end + count;
                end = range.end;
                let weights = if draws == Kinship::Weighted { groups.weights() } else { Vec::new() };
                let of = |(name, values): (&String, &Vec<f64>)| {
                    let values = values[range.clone()].to_vec();
                    match draws {
                        Kinship::Independent => Summary::of(name, values),
                        Kinship::Chains { .. } => Summary::of_chains(name, &groups.chains(&values)),
                        Kinship::Weighted => {
                            let pairs: Vec<(f64, f64)> =
                                values.into_iter().zip(weights.iter().copied()).collect();
                            Summary::weighted(name, &pairs)
                        }
                    }
                };
                summaries.par_extend(names.par_iter().zip(&columns).map(of));
            }
        }
        Ok(summaries)
    }
}

/// Rows that are turned into columns together: one value at a time would touch as many pages as there are columns.
const TOGETHER: usize = 32;

/// Columns of a table that comes row by row.
struct Strip<F> {
    columns: Vec<Vec<f64>>,
    /// Rows that are not in the columns yet, and how long one is.
    waiting: Vec<f64>,
    width: usize,
    /// How many columns of so many rows fit the memory.
    fit: F,
}

impl<F: Fn(usize) -> usize> Strip<F> {
    fn new(width: usize, rows: usize, fit: F) -> Self {
        let columns = (0..width).map(|_| Vec::with_capacity(rows)).collect();
        Strip { columns, waiting: Vec::with_capacity(TOGETHER * width), width, fit }
    }

    fn add(&mut self, row: &[f64]) {
        self.waiting.extend_from_slice(&row[..self.width]);
        if self.waiting.len() == TOGETHER * self.width {
            self.turn();
        }
    }

    fn turn(&mut self) {
        let rows = self.columns[0].len() + self.waiting.len() / self.width;
        // A text tells only at its end how many rows it has: columns that would grow to too much are left to the next
        // strip.
        if rows > self.columns[0].capacity() {
            self.columns.truncate((self.fit)((2 * rows).max(4)));
        }
        for (j, column) in self.columns.iter_mut().enumerate() {
            column.extend(self.waiting.iter().skip(j).step_by(self.width));
        }
        self.waiting.clear();
    }

    fn end(mut self) -> Vec<Vec<f64>> {
        self.turn();
        self.columns
    }
}

/// Which repeat and chain draws belong to, and their log weights, in the order of the file.
#[derive(Default)]
struct Groups {
    keys: Vec<[f64; 2]>,
    of: Vec<(usize, f64)>,
}

impl Groups {
    fn add(&mut self, key: [f64; 2], log_weight: f64) {
        // The draws of a group stand together.
        if self.keys.last() != Some(&key) {
            self.keys.push(key);
        }
        self.of.push((self.keys.len() - 1, log_weight));
    }

    /// One list of chains for each repeat.
    fn chains(&self, values: &[f64]) -> Vec<Vec<Vec<f64>>> {
        let mut chains: Vec<Vec<f64>> = vec![Vec::new(); self.keys.len()];
        self.of.iter().zip(values).for_each(|((g, _), v)| chains[*g].push(*v));
        let mut repeats: Vec<(f64, Vec<Vec<f64>>)> = Vec::new();
        for (key, chain) in self.keys.iter().zip(chains) {
            match repeats.last_mut() {
                Some((repeat, chains)) if *repeat == key[0] => chains.push(chain),
                _ => repeats.push((key[0], vec![chain])),
            }
        }
        repeats.into_iter().map(|(_, chains)| chains).collect()
    }

    /// Weights that sum to 1, each repeat having the same share.
    fn weights(&self) -> Vec<f64> {
        let repeats = self.keys.len();
        let mut totals = vec![f64::NEG_INFINITY; repeats];
        self.of.iter().for_each(|(g, l)| totals[*g] = crate::math::log_add_exp(totals[*g], *l));
        self.of.iter().map(|(g, l)| libm::exp(l - totals[*g]) / repeats as f64).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{NameStyle, Writer, columns};

    /// Three repeats of five draws with seven parameters; the second draw of each failed.
    fn table(folder: &Path, name: &str) -> Samples {
        let names: Vec<String> = (1..=7).map(|j| format!("mu.{j}")).collect();
        let columns = columns(&[], &names, NameStyle::Dot);
        let format = Format::of(name).unwrap();
        let mut writer = Writer::new(Vec::new(), format, &columns, 15, None).unwrap();
        for (repeat, index) in (1..=3).flat_map(|r| (0..5).map(move |i| (r, i))) {
            let theta: Vec<f64> =
                (0..7).map(|j| 0.1 * j as f64 - (index * index) as f64 / repeat as f64).collect();
            let status = if index == 1 { Status::Failed } else { Status::Ok };
            let draw =
                Sample { index, theta, objective: 0.5, restart: 1, iterations: 1, status, extra: Vec::new() };
            writer.put(repeat, &draw).unwrap();
        }
        std::fs::write(folder.join(name), writer.finish().unwrap()).unwrap();
        if let Some(names) = format.names_file(name) {
            std::fs::write(folder.join(names), serde_json::to_string(&columns).unwrap()).unwrap();
        }
        Samples::open(&folder.join(name)).unwrap()
    }

    #[test]
    fn strips_of_any_width_give_the_same_summaries() {
        let folder = crate::tempfile::tempdir().unwrap();
        let whole = table(folder.path(), "a.csv").summarise(Kinship::Independent, None).unwrap();
        assert_eq!(whole.iter().map(|s| s.parameter.as_str()).collect::<Vec<_>>()[5..], ["mu.6", "mu.7"]);
        // Squares 0, 4, 9, 16 over 1, 2 and 3; without the failed ones.
        assert!((whole[0].mean + (29.0 + 29.0 / 2.0 + 29.0 / 3.0) / 12.0).abs() < 1e-14);
        let second = table(folder.path(), "a.csv").summarise(Kinship::Independent, Some(2)).unwrap();
        assert!((second[1].mean - (0.1 - 29.0 / 8.0)).abs() < 1e-14);
        let mut names = vec!["a.csv", "a.csv.gz", "a.npy"];
        names.extend(cfg!(feature = "parquet").then_some("a.parquet"));
        for name in names {
            for most in [1, 8 * 16, 8 * 16 * 3, 8 * 15 * 7, 1 << 20] {
                let samples = table(folder.path(), name);
                let plain = Kinship::Independent;
                assert_eq!(
                    samples.summarise_in_strips(plain, None, &[0], most).unwrap()[0],
                    whole,
                    "{name} {most}"
                );
                assert_eq!(
                    samples.summarise_in_strips(plain, Some(2), &[0], most).unwrap()[0],
                    second,
                    "{name} {most}"
                );
            }
        }
    }
}

//! Draws of groups: a column of the file says which group a draw is of, and repeats are counted within it. Inside npl they are draws
//! of rounds, numbered over all groups, in the place of repeats.

use std::ops::Range;
use std::sync::Arc;

use super::format::{Each, Table};
use super::{DRAW, FOREIGN, GROUP, REPEAT, STATISTICS, STATUS, Samples, wrong};
use crate::error::Result;
use crate::optim::Status;

/// Where the column stands: after the statistics that all tables have.
pub const PLACE: usize = STATISTICS.len();

/// Bytes of draws that are held to be gone through several times.
const IN_MEMORY: usize = 512 << 20;

/// Which group, and which repeat of it, the rounds of a table are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grouping {
    pub names: Vec<String>,
    /// Of every round: its group, from 0, and its repeat, from 1.
    pub rounds: Vec<(usize, usize)>,
}

impl Grouping {
    /// So many repeats of each group, one group after the other; `None` of no groups.
    pub fn new(names: Vec<String>, each: usize) -> Option<Grouping> {
        let rounds = (0..names.len()).flat_map(|g| (1..=each).map(move |repeat| (g, repeat))).collect();
        (!names.is_empty()).then_some(Grouping { names, rounds })
    }

    /// Of a round, from 1.
    pub fn of(&self, round: usize) -> (usize, usize) {
        self.rounds.get(round.wrapping_sub(1)).copied().unwrap_or((0, round))
    }

    /// The first round of every group that has any, from 1.
    pub fn firsts(&self) -> Vec<usize> {
        let begins = |r: &usize| *r == 0 || self.rounds[*r].0 != self.rounds[r - 1].0;
        (0..self.rounds.len()).filter(begins).map(|r| r + 1).collect()
    }

    /// The columns of a file with these ones and that of the groups.
    pub fn columns(columns: &[String]) -> Vec<String> {
        let mut all = columns.to_vec();
        all.insert(PLACE, GROUP.to_owned());
        all
    }

    /// Statistics as the file has them.
    pub fn row(&self, statistics: &[f64]) -> Vec<f64> {
        let (group, repeat) = self.of(statistics[REPEAT] as usize);
        let mut row = statistics.to_vec();
        row[REPEAT] = repeat as f64;
        row.insert(PLACE, group as f64 + 1.0);
        row
    }
}

/// A table of groups as one of rounds.
pub struct Rounds(pub Box<dyn Table>);

impl Table for Rounds {
    fn rows(&self) -> Option<usize> {
        self.0.rows()
    }

    fn scan(&self, statistics: usize, range: Range<usize>, each: &mut Each) -> Result<()> {
        let (mut round, mut last) = (0, None);
        let mut row = vec![0.0; statistics];
        self.0.scan(statistics + 1, range, &mut |written, theta| {
            let key = (written[PLACE].to_bits(), written[REPEAT].to_bits());
            // The draws of a round stand together.
            if last.replace(key) != Some(key) {
                round += 1;
            }
            row[..PLACE].copy_from_slice(&written[..PLACE]);
            row[PLACE..].copy_from_slice(&written[PLACE + 1..]);
            row[REPEAT] = round as f64;
            each(&row, theta)
        })
    }

    fn grouping(&self) -> Result<Option<Grouping>> {
        let names = self.0.levels()?;
        let mut rounds: Vec<(usize, usize)> = Vec::new();
        self.0.scan(PLACE + 1, 0..0, &mut |written, _| {
            let place = ((written[PLACE] as usize).wrapping_sub(1), written[REPEAT] as usize);
            if rounds.last() != Some(&place) {
                rounds.push(place);
            }
            true
        })?;
        Ok(Some(Grouping { names, rounds }))
    }
}

/// Some rounds of a table, numbered from 1.
struct Part {
    below: Arc<dyn Table>,
    rounds: Range<usize>,
}

impl Table for Part {
    fn rows(&self) -> Option<usize> {
        None
    }

    fn scan(&self, statistics: usize, range: Range<usize>, each: &mut Each) -> Result<()> {
        let mut row = vec![0.0; statistics];
        self.below.scan(statistics, range, &mut |written, theta| {
            let round = written[REPEAT] as usize;
            if round < self.rounds.start {
                return true;
            }
            row.copy_from_slice(written);
            row[REPEAT] = (round + 1 - self.rounds.start) as f64;
            round < self.rounds.end && each(&row, theta)
        })
    }
}

/// Rows that are at hand.
struct Loaded {
    cells: Vec<f64>,
    width: usize,
}

impl Table for Loaded {
    fn rows(&self) -> Option<usize> {
        Some(self.cells.len() / self.width)
    }

    fn scan(&self, statistics: usize, range: Range<usize>, each: &mut Each) -> Result<()> {
        for row in self.cells.chunks_exact(self.width) {
            let (front, theta) = row.split_at(statistics);
            if !each(front, &theta[range.clone()]) {
                break;
            }
        }
        Ok(())
    }
}

impl Samples {
    /// The draws of these rounds alone, counted from 1: those of a group.
    pub fn of_rounds(self, rounds: Range<usize>) -> Samples {
        let below: Arc<dyn Table> = Arc::from(self.table);
        Samples { table: Box::new(Part { below, rounds }), ..self }
    }

    /// The same of several groups. A text that is not too large is parsed but once.
    pub fn of_each(self, groups: &[Range<usize>]) -> Result<Vec<Samples>> {
        let loaded = if self.table.rows().is_none() { self.loaded()? } else { None };
        let Samples { path, table, columns, statistics } = self;
        let below: Arc<dyn Table> = match loaded {
            Some(loaded) => Arc::new(loaded),
            None => Arc::from(table),
        };
        let part = |rounds: &Range<usize>| {
            let table = Box::new(Part { below: below.clone(), rounds: rounds.clone() });
            Samples { path: path.clone(), table, columns: columns.clone(), statistics }
        };
        Ok(groups.iter().map(part).collect())
    }

    /// All rows; `None` if they would take too much memory.
    fn loaded(&self) -> Result<Option<Loaded>> {
        let (mut cells, mut fits) = (Vec::new(), true);
        self.scan(0..self.parameters().len(), |statistics, theta| {
            cells.extend_from_slice(statistics);
            cells.extend_from_slice(theta);
            fits = 8 * cells.len() <= IN_MEMORY;
            fits
        })?;
        Ok(fits.then_some(Loaded { cells, width: self.columns.len() }))
    }

    /// What draws of the same repeat and number differ by, where both groups have them: groups are independent of each other, and so any pairing
    /// of their draws is as good as any other.
    pub fn less(&self, other: &Samples) -> Result<Samples> {
        let width = self.columns.len();
        let key = |row: &[f64]| (row[REPEAT] as u64, row[DRAW] as u64);
        let found = |samples: &Samples| -> Result<Vec<f64>> {
            let mut cells = Vec::new();
            samples.scan(0..samples.parameters().len(), |statistics, theta| {
                if !Status::is_lost_code(statistics[STATUS]) {
                    cells.extend_from_slice(statistics);
                    cells.extend_from_slice(theta);
                }
                true
            })?;
            Ok(cells)
        };
        let (mut cells, others) = (found(self)?, found(other)?);
        let mut rows = others.chunks_exact(width).peekable();
        let (mut kept, mut at) = (0, 0);
        while at < cells.len() {
            while rows.next_if(|row| key(row) < key(&cells[at..])).is_some() {}
            if let Some(row) = rows.next_if(|row| key(row) == key(&cells[at..])) {
                cells.copy_within(at..at + width, kept);
                let theta = kept + self.statistics..kept + width;
                cells[theta].iter_mut().zip(&row[self.statistics..]).for_each(|(a, b)| *a -= b);
                kept += width;
            }
            at += width;
        }
        cells.truncate(kept);
        let (path, columns) = (self.path.clone(), self.columns.clone());
        Ok(Samples { path, table: Box::new(Loaded { cells, width }), columns, statistics: self.statistics })
    }

    /// Which rounds are those of which group; `None` where the file knows of no groups.
    pub fn grouping(&self) -> Result<Option<Grouping>> {
        let found = self.table.grouping()?;
        match &found {
            Some(all) if all.rounds.iter().any(|(g, _)| *g >= all.names.len()) => {
                Err(wrong(&self.path, FOREIGN))
            }
            _ => Ok(found),
        }
    }
}

//! A table of draws as if its components had been written under other labels.

use std::ops::Range;
use std::path::PathBuf;

use crate::error::Result;
use crate::model::Components;
use crate::samples::format::{Each, Table};
use crate::samples::{Grouping, wrong};

/// The labels of one draw.
#[derive(Clone, Debug, PartialEq)]
pub enum Labels {
    /// Label l is for component `order[l]`.
    Order { order: Box<[u32]>, ambiguous: bool },
    /// No draw; it stays as it is.
    Left,
}

impl Labels {
    /// The number that stands for it in a table of draws.
    fn code(&self) -> f64 {
        match self {
            Labels::Order { ambiguous, .. } => f64::from(u8::from(*ambiguous)),
            Labels::Left => 2.0,
        }
    }
}

/// Changes what another table reads, row by row.
pub struct AlignedTable {
    path: PathBuf,
    below: Box<dyn Table>,
    parameters: usize,
    /// Where the entries of each component stand among the parameters, alike for all.
    places: Vec<Vec<usize>>,
    labels: Vec<Labels>,
}

impl AlignedTable {
    /// `places` are those of all blocks of the components, one after the other.
    pub fn new(
        path: PathBuf,
        below: Box<dyn Table>,
        parameters: usize,
        places: Vec<usize>,
        components: Components,
        labels: Vec<Labels>,
    ) -> AlignedTable {
        let count = components.count();
        let of = |k: usize| {
            let mut start = 0;
            let mut found = Vec::new();
            for (_, each) in components.blocks().0 {
                found.extend_from_slice(&places[start + k * each..start + (k + 1) * each]);
                start += count * each;
            }
            found
        };
        AlignedTable { path, below, parameters, places: (0..count).map(of).collect(), labels }
    }

    fn relabel(&self, labels: &Labels, theta: &[f64], out: &mut [f64]) {
        out.copy_from_slice(theta);
        if let Labels::Order { order, .. } = labels {
            for (to, &from) in self.places.iter().zip(order) {
                to.iter().zip(&self.places[from as usize]).for_each(|(&to, &from)| out[to] = theta[from]);
            }
        }
    }
}

impl Table for AlignedTable {
    fn grouping(&self) -> Result<Option<Grouping>> {
        self.below.grouping()
    }

    fn rows(&self) -> Option<usize> {
        Some(self.labels.len())
    }

    fn scan(&self, statistics: usize, range: Range<usize>, each: &mut Each) -> Result<()> {
        let mut row = vec![0.0; self.parameters];
        let mut front = Vec::with_capacity(statistics);
        let (mut labels, mut more) = (self.labels.iter(), false);
        self.below.scan(statistics - 1, 0..self.parameters, &mut |statistics, theta| {
            let Some(labels) = labels.next() else {
                more = true;
                return false;
            };
            self.relabel(labels, theta, &mut row);
            front.clear();
            front.extend_from_slice(statistics);
            front.push(labels.code());
            each(&front, &row[range.clone()])
        })?;
        if more { Err(wrong(&self.path, "has grown while it was read")) } else { Ok(()) }
    }
}

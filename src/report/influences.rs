//! What a run keeps of how much rows move parameters: `influence.csv`.

use std::path::Path;

use ndarray::{Array2, ArrayView1};

use crate::bytes::bytes;
use crate::data::design::{Design, Groups};

/// How much rows move parameters: a line for each row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Influences {
    /// What rows count as and move with, if they do, then parameters.
    pub columns: Vec<String>,
    pub cells: Vec<f64>,
}

/// Columns with their names.
pub type Named = Vec<(String, Vec<f64>)>;

bytes!(Influences { columns, cells });

impl Influences {
    /// Numbers of a row in front: its case weight, its cluster and its stratum, from 1.
    pub const DESIGN: [&'static str; 3] = ["case_weight__", "cluster__", "stratum__"];

    /// Of rows with this design.
    pub fn new(design: &Design, parameters: Vec<String>, influence: &Array2<f64>) -> Influences {
        let numbers = |groups: &Groups| groups.of.iter().map(|&k| (k + 1) as f64).collect::<Vec<f64>>();
        let front = [
            design.weights().map(<[f64]>::to_vec),
            design.clusters().map(numbers),
            design.strata().map(|(strata, _)| numbers(strata)),
        ];
        let names = Self::DESIGN.iter().zip(&front).filter(|(_, column)| column.is_some());
        let columns = names.map(|(name, _)| name.to_string()).chain(parameters).collect();
        let row = |(i, row): (usize, ArrayView1<f64>)| {
            front.iter().flatten().map(|column| column[i]).chain(row.iter().copied()).collect::<Vec<f64>>()
        };
        Influences { columns, cells: influence.outer_iter().enumerate().flat_map(row).collect() }
    }

    /// Of a file: the design of the rows, of this group where there are groups, and the columns of the parameters with their names.
    pub fn read(file: &Path, group: Option<&str>) -> Option<(Design, Named)> {
        let mut reader = csv::Reader::from_path(file).ok()?;
        let front = usize::from(group.is_some());
        let names: Vec<String> = reader.headers().ok()?.iter().skip(front).map(String::from).collect();
        let mut columns: Vec<Vec<f64>> = vec![Vec::new(); names.len()];
        for record in reader.records() {
            let record = record.ok()?;
            if group.is_some() && record.get(0) != group {
                continue;
            }
            for (column, cell) in columns.iter_mut().zip(record.iter().skip(front)) {
                column.push(cell.parse().ok()?);
            }
        }
        let mut all: Named = names.into_iter().zip(columns).collect();
        let [weights, clusters, strata] = Self::DESIGN.map(|name| {
            let front = all.first().is_some_and(|(column, _)| column == name);
            front.then(|| all.remove(0).1)
        });
        let groups = |column: Vec<f64>| Groups::new(column.into_iter().map(f64::to_bits));
        Some((Design::new(weights, clusters.map(groups), strata.map(groups)), all))
    }
}

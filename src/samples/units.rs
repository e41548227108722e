//! Coefficients of standardised columns in the units of the data: with x̃ = (x/c − m)/s, β̃ x̃ = (β̃/(c s)) x − β̃ m/s, so that what a
//! column loses to its mean goes into the intercept.

use std::ops::Range;

use super::format::{Each, Table};
use super::read::Samples;
use super::{Grouping, REPEAT, wrong};
use crate::data::preparation::Preparation;
use crate::error::Result;

/// What one coefficient becomes: a multiple of itself, and its share of the intercept.
#[derive(Clone, Copy, Debug)]
struct Change {
    place: usize,
    scale: f64,
    share: f64,
}

/// Changes what another table reads, row by row.
struct InUnits {
    below: Box<dyn Table>,
    parameters: usize,
    /// Of every round; the last is that of all that follow.
    rounds: Vec<Vec<Change>>,
    intercept: Option<usize>,
    /// e^β: odds and rate ratios.
    ratios: bool,
}

impl Table for InUnits {
    fn grouping(&self) -> Result<Option<Grouping>> {
        self.below.grouping()
    }

    fn rows(&self) -> Option<usize> {
        self.below.rows()
    }

    fn scan(&self, statistics: usize, range: Range<usize>, each: &mut Each) -> Result<()> {
        let mut row = vec![0.0; self.parameters];
        self.below.scan(statistics, 0..self.parameters, &mut |statistics, theta| {
            row.copy_from_slice(theta);
            let round = (statistics[REPEAT] as usize).saturating_sub(1).min(self.rounds.len() - 1);
            for change in &self.rounds[round] {
                let beta = theta[change.place];
                row[change.place] =
                    if self.ratios { libm::exp(beta * change.scale) } else { beta * change.scale };
                if let Some(at) = self.intercept {
                    row[at] += beta * change.share;
                }
            }
            each(statistics, &row[range.clone()])
        })
    }
}

impl Samples {
    /// These draws with the coefficients of a regression in the units of its data, or those that they are in, and e^β instead of β
    /// where `ratios` are asked for. The file stays as it is.
    pub fn in_units(self, preparation: &Preparation, of_data: bool, ratios: bool) -> Result<Samples> {
        let intercept = self.parameters().iter().position(|name| name == "intercept");
        let mut rounds = Vec::with_capacity(preparation.rounds.len());
        for columns in &preparation.rounds {
            let mut changes = Vec::with_capacity(columns.len());
            for column in columns {
                let name = format!("beta.{}", column.name);
                let Some(place) = self.parameters().iter().position(|p| *p == name) else {
                    let why = format!(
                        "it has no draws of {name}: its parameters are not the coefficients of its columns"
                    );
                    return Err(wrong(&self.path, &crate::config::printable(&why)));
                };
                let sd = column.sd.filter(|sd| *sd > 0.0);
                let divided = if column.level.is_none() { preparation.divide.unwrap_or(1.0) } else { 1.0 };
                let (scale, share) = match of_data {
                    true => {
                        let unit = sd.map_or(1.0, |sd| column.unit / sd);
                        (unit / divided, if sd.is_some() { -column.mean * unit } else { 0.0 })
                    }
                    false => (1.0, 0.0),
                };
                changes.push(Change { place, scale, share });
            }
            rounds.push(changes);
        }
        if intercept.is_none() && rounds.iter().flatten().any(|change| change.share != 0.0) {
            let why = "its columns were centred and it has no intercept that would take their means: its coefficients have no \
                       meaning in the units of the data";
            return Err(wrong(&self.path, why));
        }
        let Samples { path, table, mut columns, statistics } = self;
        if ratios {
            for change in &rounds[0] {
                let name = &mut columns[statistics + change.place];
                *name = format!("exp({name})");
            }
        }
        let parameters = columns.len() - statistics;
        let table = Box::new(InUnits { below: table, parameters, rounds, intercept, ratios });
        Ok(Samples { path, table, columns, statistics })
    }
}

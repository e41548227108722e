//! Coefficients of standardised columns in the units of the data: with x̃ = (x/c − m)/s, β̃ x̃ = (β̃/(c s)) x − β̃ m/s, so that what a
//! column loses to its mean goes into the intercept.

use std::ops::Range;

use super::format::{Each, Table};
use super::read::Samples;
use super::{Grouping, REPEAT, wrong};
use crate::data::preparation::{Column, Preparation};
use crate::error::Result;

/// What one coefficient becomes: a multiple of itself; and its share of what stands beside it, the intercept, or every cut point.
#[derive(Clone, Debug)]
struct Change {
    place: usize,
    scale: f64,
    share: f64,
    beside: Vec<usize>,
}

/// How coefficients are told: in units of the data or those that they are in, as they are or as e^β.
#[derive(Clone, Debug)]
pub struct Units {
    /// Of every round; the last is that of all that follow.
    rounds: Vec<Vec<Change>>,
    /// e^β: odds and rate ratios.
    ratios: bool,
}

/// The parameters of one linear predictor.
struct Predictor {
    /// What names of its coefficients begin with: `beta.`, or `beta.q10.` of one of several.
    head: String,
    intercept: Option<usize>,
}

/// The linear predictors of these columns, and their cut points where these are in the place of intercepts.
fn predictors(parameters: &[String], columns: &[Column]) -> (Vec<Predictor>, Vec<usize>) {
    let place = |name: &str| parameters.iter().position(|known| known == name);
    let has_all =
        |head: &str| columns.iter().all(|column| place(&format!("{head}{}", column.name)).is_some());
    if has_all("beta.") {
        let one = Predictor { head: "beta.".into(), intercept: place("intercept") };
        let is_cut = |name: &String| name == "cut" || name.starts_with("cut.");
        let none = one.intercept.is_none();
        let cuts = (0..parameters.len()).filter(|&j| none && is_cut(&parameters[j]));
        return (vec![one], cuts.collect());
    }
    let first = columns.first().map_or(String::new(), |column| format!(".{}", column.name));
    let tag = |name: &String| Some(name.strip_prefix("beta.")?.strip_suffix(&first)?.to_owned());
    let tags: Vec<String> = parameters.iter().filter_map(tag).collect();
    let of_tag = |tag: String| Predictor {
        intercept: place(&format!("intercept.{tag}")),
        head: format!("beta.{tag}."),
    };
    (tags.into_iter().map(of_tag).filter(|one| has_all(&one.head)).collect(), Vec::new())
}

impl Units {
    /// Of these parameters; or why their coefficients have no such units.
    pub fn new(
        parameters: &[String],
        preparation: &Preparation,
        of_data: bool,
        ratios: bool,
    ) -> std::result::Result<Units, String> {
        let mut rounds = Vec::with_capacity(preparation.rounds.len());
        for columns in &preparation.rounds {
            let (predictors, cuts) = predictors(parameters, columns);
            if predictors.is_empty() {
                let name = columns.first().map_or("", |column| &column.name);
                let why = format!(
                    "it has no draws of beta.{name}: its parameters are not the coefficients of its columns"
                );
                return Err(crate::config::printable(&why).to_string());
            }
            let mut changes = Vec::new();
            for Predictor { head, intercept } in predictors {
                for column in columns {
                    let place = parameters.iter().position(|name| *name == format!("{head}{}", column.name));
                    let sd = column.sd.filter(|sd| *sd > 0.0);
                    let divided =
                        if column.level.is_none() { preparation.divide.unwrap_or(1.0) } else { 1.0 };
                    let (scale, share) = match of_data {
                        true => {
                            let unit = sd.map_or(1.0, |sd| column.unit / sd);
                            (unit / divided, if sd.is_some() { -column.mean * unit } else { 0.0 })
                        }
                        false => (1.0, 0.0),
                    };
                    if share != 0.0 && intercept.is_none() && cuts.is_empty() {
                        let why = "its columns were centred and it has no intercept that would take their means: its coefficients \
                                   have no meaning in the units of the data";
                        return Err(why.to_owned());
                    }
                    let place = place.expect("looked for with all of them");
                    // A cut point is on the other side: cut − βᵀx.
                    let (beside, share) = match intercept {
                        Some(at) => (vec![at], share),
                        None => (cuts.clone(), -share),
                    };
                    changes.push(Change { place, scale, share, beside });
                }
            }
            rounds.push(changes);
        }
        Ok(Units { rounds, ratios })
    }

    /// What parameters are called then.
    pub fn rename(&self, parameters: &mut [String]) {
        for change in self.rounds.first().into_iter().flatten().filter(|_| self.ratios) {
            let name = &mut parameters[change.place];
            *name = format!("exp({name})");
        }
    }

    fn of_round(&self, round: usize) -> &[Change] {
        self.rounds.get(round).or(self.rounds.last()).map_or(&[], Vec::as_slice)
    }

    /// Parameters of a round, counted from 0, as they are told.
    pub fn apply(&self, round: usize, theta: &mut [f64]) {
        for change in self.of_round(round) {
            let beta = theta[change.place];
            let scaled = beta * change.scale;
            theta[change.place] = if self.ratios { libm::exp(scaled) } else { scaled };
            change.beside.iter().for_each(|&at| theta[at] += beta * change.share);
        }
    }

    /// What becomes of a small change of parameters of this round, which are `told` after it.
    pub fn carry(&self, round: usize, told: &[f64], moved: &mut [f64]) {
        for change in self.of_round(round) {
            let beta = moved[change.place];
            let scaled = beta * change.scale;
            // The derivative of e^β is e^β.
            moved[change.place] = if self.ratios { told[change.place] * scaled } else { scaled };
            change.beside.iter().for_each(|&at| moved[at] += beta * change.share);
        }
    }
}

/// Changes what another table reads, row by row.
struct InUnits {
    below: Box<dyn Table>,
    parameters: usize,
    units: Units,
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
            self.units.apply((statistics[REPEAT] as usize).saturating_sub(1), &mut row);
            each(statistics, &row[range.clone()])
        })
    }
}

impl Samples {
    /// These draws with the coefficients of a regression in the units of its data, or those that they are in, and e^β instead of β
    /// where `ratios` are asked for. The file stays as it is.
    pub fn in_units(
        self,
        preparation: &Preparation,
        of_data: bool,
        ratios: bool,
    ) -> Result<(Samples, Units)> {
        let units = Units::new(self.parameters(), preparation, of_data, ratios)
            .map_err(|why| wrong(&self.path, &why))?;
        let Samples { path, table, mut columns, statistics } = self;
        let parameters = columns.len() - statistics;
        units.rename(&mut columns[statistics..]);
        let table = Box::new(InUnits { below: table, parameters, units: units.clone() });
        Ok((Samples { path, table, columns, statistics }, units))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As differences of the parameters that are told say.
    #[test]
    fn small_changes_are_carried_as_parameters_are() {
        for ratios in [false, true] {
            let changes = vec![
                Change { place: 0, scale: 0.4, share: -1.5, beside: vec![2, 4] },
                Change { place: 1, scale: 2.5, share: 0.25, beside: vec![2] },
            ];
            let units = Units { rounds: vec![changes], ratios };
            let (theta, step) = ([0.3, -0.7, 1.1, 9.0, -2.0], [0.2, 0.5, -0.4, 3.0, 0.1]);
            let told = |t: f64| {
                let mut theta: Vec<f64> = theta.iter().zip(&step).map(|(a, b)| a + t * b).collect();
                units.apply(3, &mut theta);
                theta
            };
            let mut moved = step.to_vec();
            units.carry(3, &told(0.0), &mut moved);
            for ((up, down), moved) in told(1e-5).iter().zip(told(-1e-5)).zip(&moved) {
                assert!(((up - down) / 2e-5 - moved).abs() < 1e-8, "{ratios}");
            }
        }
    }
}

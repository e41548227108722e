//! A quantile of each column: the pinball loss l(y, θ) = (y − θ)(q − 1{y < θ}).

use ndarray::ArrayView1;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Context, Model, column_names};
use crate::config::{Complaint, OpenUnit};
use crate::optim::Minimum;
use crate::process::Measure;

pub const STARTER: &str = include_str!("../../configs/starters/quantile.toml");

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Which quantile; 0.5 is the median.
    pub q: OpenUnit,
}

impl Config {
    pub fn build(&self, context: &Context) -> Result<Box<dyn Model>, Vec<Complaint>> {
        Ok(Box::new(Quantile::new(self.q.get(), 1.0, context)))
    }
}

/// The q-quantile; `scale` times the pinball loss is its objective.
pub struct Quantile {
    q: f64,
    scale: f64,
    columns: Vec<String>,
}

impl Quantile {
    pub fn new(q: f64, scale: f64, context: &Context) -> Self {
        Quantile { q, scale, columns: context.train.columns.clone() }
    }
}

impl Model for Quantile {
    fn names(&self) -> Vec<String> {
        column_names("theta", &self.columns)
    }

    fn loss(&self, theta: &[f64], f: &Measure) -> f64 {
        let pinball = |y: f64, t: f64| (y - t) * (self.q - if y < t { 1.0 } else { 0.0 });
        let row = |y: ArrayView1<f64>| y.iter().zip(theta).map(|(&y, &t)| pinball(y, t)).sum::<f64>();
        let sum = f.atoms().map(|a| a.x.iter().zip(a.w).map(|(y, w)| w * row(y)).sum::<f64>());
        self.scale * sum.sum::<f64>()
    }

    fn minimise(&self, f: &Measure, _start: &[f64]) -> Minimum {
        let theta: Vec<f64> = (0..f.d()).map(|j| weighted_quantile(f, j, self.q)).collect();
        let value = self.loss(&theta, f);
        Minimum::closed_form(theta, value)
    }
}

/// The lower q-quantile of column j: the smallest atom at or below which at least a share q of the mass lies. It is
/// always an atom, never between two.
fn weighted_quantile(f: &Measure, j: usize, q: f64) -> f64 {
    let mut atoms: Vec<(f64, f64)> = f.atoms().flat_map(|a| a.x.column(j).zip(a.w.iter().copied())).collect();
    let total: f64 = atoms.iter().map(|(_, w)| w).sum();
    select(&mut atoms, q * total)
}

/// The smallest value whose cumulative weight reaches `target`, by quickselect: linear in the number of atoms.
fn select(mut atoms: &mut [(f64, f64)], mut target: f64) -> f64 {
    while atoms.len() > 1 {
        let middle = (atoms.len() - 1) / 2;
        atoms.select_nth_unstable_by(middle, |a, b| a.0.total_cmp(&b.0));
        let (low, high) = atoms.split_at_mut(middle + 1);
        let mass: f64 = low.iter().map(|(_, w)| w).sum();
        if mass >= target || high.is_empty() {
            atoms = low;
        } else {
            target -= mass;
            atoms = high;
        }
    }
    atoms.first().map_or(f64::NAN, |(value, _)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lower_quantile_is_an_atom() {
        let pick = |q: f64| select(&mut [(3.0, 0.25), (1.0, 0.25), (4.0, 0.25), (2.0, 0.25)], q);
        assert_eq!(
            [pick(0.1), pick(0.25), pick(0.26), pick(0.5), pick(0.51), pick(0.99)],
            [1.0, 1.0, 2.0, 2.0, 3.0, 4.0]
        );
    }
}

//! Quantiles of each column: the pinball loss l(y, θ) = (y − θ)(q − 1{y < θ}), summed over quantiles if there are several.

use ndarray::ArrayView1;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Context, Model, column_names};
use crate::config::{Complaint, OpenUnit, complaint};
use crate::optim::Minimum;
use crate::process::Measure;

pub const STARTER: &str = include_str!("../../configs/starters/quantile.toml");

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Which quantile, 0.5 is the median; or a list of them, in order.
    pub q: Quantiles,
}

/// One quantile, or several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Quantiles {
    One(OpenUnit),
    Many(Vec<OpenUnit>),
}

impl Quantiles {
    /// In order, and at least one; or what is wrong with them.
    pub fn checked(&self) -> Result<Vec<f64>, Vec<Complaint>> {
        let q: Vec<f64> = match self {
            Quantiles::One(q) => vec![q.get()],
            Quantiles::Many(list) => list.iter().map(|q| q.get()).collect(),
        };
        if q.is_empty() || q.windows(2).any(|w| w[0] >= w[1]) {
            return Err(vec![complaint("q", "must be one or more numbers, each above the one before it")]);
        }
        Ok(q)
    }

    /// What tells the parameters of several apart: `q10` of 0.1.
    pub fn tags(&self) -> Vec<String> {
        match self {
            Quantiles::One(_) => vec![String::new()],
            // In per cent 0.29 is 28.999…: digits beyond the tenth are rounding.
            Quantiles::Many(list) => {
                list.iter().map(|q| format!("q{}", (1e12 * q.get()).round() / 1e10)).collect()
            }
        }
    }
}

impl Config {
    pub fn build(&self, context: &Context) -> Result<Box<dyn Model>, Vec<Complaint>> {
        let q = self.q.checked()?;
        Ok(Box::new(Quantile { q, tags: self.q.tags(), scale: 1.0, columns: context.train.columns.clone() }))
    }
}

/// Quantiles; `scale` times the pinball loss is their objective. θ is one quantile of every column, then the next.
pub struct Quantile {
    q: Vec<f64>,
    tags: Vec<String>,
    scale: f64,
    columns: Vec<String>,
}

impl Quantile {
    pub fn new(q: f64, scale: f64, context: &Context) -> Self {
        Quantile { q: vec![q], tags: vec![String::new()], scale, columns: context.train.columns.clone() }
    }
}

impl Model for Quantile {
    fn names(&self) -> Vec<String> {
        let of_tag = |tag: &String| {
            let symbol = if tag.is_empty() { "theta".to_owned() } else { format!("theta.{tag}") };
            column_names(&symbol, &self.columns)
        };
        self.tags.iter().flat_map(of_tag).collect()
    }

    fn loss(&self, theta: &[f64], f: &Measure) -> f64 {
        let of_quantile = |(q, theta): (&f64, &[f64])| {
            let pinball = |y: f64, t: f64| (y - t) * (q - if y < t { 1.0 } else { 0.0 });
            let row = |y: ArrayView1<f64>| y.iter().zip(theta).map(|(&y, &t)| pinball(y, t)).sum::<f64>();
            let sum = f.atoms().map(|a| a.x.iter().zip(a.w).map(|(y, w)| w * row(y)).sum::<f64>());
            self.scale * sum.sum::<f64>()
        };
        self.q.iter().zip(theta.chunks(f.d())).map(of_quantile).sum()
    }

    fn minimise(&self, f: &Measure, _start: &[f64]) -> Minimum {
        let of_quantile = |q: &f64| (0..f.d()).map(|j| weighted_quantile(f, j, *q)).collect::<Vec<_>>();
        let theta: Vec<f64> = self.q.iter().flat_map(of_quantile).collect();
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
pub fn select(mut atoms: &mut [(f64, f64)], mut target: f64) -> f64 {
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

    #[test]
    fn tags_are_per_cent() {
        let q = |list: &[f64]| Quantiles::Many(list.iter().map(|q| OpenUnit::new(*q).unwrap()).collect());
        assert_eq!(q(&[0.025, 0.29, 0.5]).tags(), ["q2.5", "q29", "q50"]);
        assert!(q(&[0.5, 0.1]).checked().is_err() && q(&[]).checked().is_err());
    }
}

//! A density for every column, any mix of them: Π_j f_j(y_j). The columns of a text that became dummies are drawn together.

use std::collections::BTreeMap;

use rand::distr::Distribution;
use rand_distr::{Beta, Gamma, Open01, Poisson, StandardNormal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BaseMeasure, Context, Problem, Pseudo, own, table};
use crate::config::{Positive, Probability, nearest, printable};
use crate::data::Dataset;
use crate::rng::Rng;

pub fn examples(columns: &[String]) -> Vec<String> {
    vec![format!("columns = {}", example_table(columns))]
}

/// A density for every column, each kind in turn.
pub fn example_table(columns: &[String]) -> String {
    let kinds = [
        "normal = [0.5, 2.0]",
        "gamma = [2.0, 1.5]",
        "poisson = 1.2",
        "bernoulli = 0.4",
        "uniform = [-1.0, 1.0]",
        "categorical = [[0.0, 0.5], [2.0, 0.25], [3.0, 0.25]]",
    ];
    let cells =
        columns.iter().zip(kinds.iter().cycle()).map(|(name, kind)| format!("{name:?} = {{ {kind} }}"));
    format!("{{ {} }}", cells.collect::<Vec<_>>().join(", "))
}

/// A density for every column, by name; columns as prepared, dummies and standardising included.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Columns(pub BTreeMap<String, Density>);

pub type Config = Columns;

/// The density of one column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Density {
    /// Mean and standard deviation.
    Normal(f64, Positive),
    /// Ends of the interval.
    Uniform(f64, f64),
    /// Shape and rate.
    Gamma(Positive, Positive),
    /// Both shapes of a beta density.
    Beta(Positive, Positive),
    /// Mean.
    Poisson(Positive),
    /// Probability of a 1; else it is 0.
    Bernoulli(Probability),
    /// Values and their probabilities: `[[0.0, 0.5], [1.0, 0.3], [2.0, 0.2]]`.
    Categorical(Vec<(f64, Probability)>),
}

impl Density {
    pub fn check(&self) -> Result<(), String> {
        match self {
            Density::Normal(mean, _) if !mean.is_finite() => Err("the mean must be a finite number".into()),
            Density::Uniform(low, high) if !(low < high && (high - low).is_finite()) => {
                Err("`uniform` must go from a lower to a higher number".into())
            }
            Density::Categorical(values) => {
                let sum: f64 = values.iter().map(|(_, p)| p.get()).sum();
                if (sum - 1.0).abs() > 1e-9 {
                    return Err(format!("the probabilities must sum to 1, not {sum}"));
                }
                if values.iter().any(|(v, _)| !v.is_finite()) {
                    return Err("values must be finite numbers".into());
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    pub fn draw(&self, rng: &mut Rng) -> f64 {
        match self {
            Density::Normal(mean, sd) => {
                let z: f64 = StandardNormal.sample(rng);
                mean + sd.get() * z
            }
            Density::Uniform(low, high) => {
                let u: f64 = Open01.sample(rng);
                low + (high - low) * u
            }
            Density::Gamma(shape, rate) => {
                Gamma::new(shape.get(), 1.0).expect("shapes are positive").sample(rng) / rate.get()
            }
            Density::Beta(a, b) => {
                let beta = Beta::new(a.get(), b.get()).expect("shapes are positive");
                // A variate may round to an end.
                beta.sample(rng).clamp(f64::MIN_POSITIVE, 1.0 - f64::EPSILON)
            }
            Density::Poisson(mean) => Poisson::new(mean.get()).expect("means are positive").sample(rng),
            Density::Bernoulli(p) => {
                let u: f64 = Open01.sample(rng);
                f64::from(u < p.get())
            }
            Density::Categorical(values) => {
                let mut u: f64 = Open01.sample(rng);
                let found = values.iter().find(|(_, p)| {
                    u -= p.get();
                    u < 0.0
                });
                // Rounding alone leads beyond the last.
                found.or(values.iter().rfind(|(_, p)| p.get() > 0.0)).map_or(f64::NAN, |(v, _)| *v)
            }
        }
    }

    /// Mean and variance.
    pub fn moments(&self) -> (f64, f64) {
        match self {
            Density::Normal(mean, sd) => (*mean, sd.get() * sd.get()),
            Density::Uniform(low, high) => (0.5 * (low + high), (high - low) * (high - low) / 12.0),
            Density::Gamma(shape, rate) => {
                (shape.get() / rate.get(), shape.get() / (rate.get() * rate.get()))
            }
            Density::Beta(a, b) => {
                let (a, total) = (a.get(), a.get() + b.get());
                let mean = a / total;
                (mean, mean * (1.0 - mean) / (total + 1.0))
            }
            Density::Poisson(mean) => (mean.get(), mean.get()),
            Density::Bernoulli(p) => (p.get(), p.get() * (1.0 - p.get())),
            Density::Categorical(values) => {
                let mean: f64 = values.iter().map(|(v, p)| p.get() * v).sum();
                (mean, values.iter().map(|(v, p)| p.get() * (v - mean) * (v - mean)).sum())
            }
        }
    }
}

impl Columns {
    /// The densities in the order of the columns of the data.
    pub fn densities(&self, names: &[String]) -> Result<Vec<Density>, String> {
        if let Some(unknown) = self.0.keys().find(|name| !names.contains(name)) {
            let hint = nearest(unknown, names.iter().map(String::as_str));
            let hint = hint.map(|n| format!("; did you mean `{n}`?")).unwrap_or_default();
            return Err(format!("names the column `{}`, which the data lack{hint}", printable(unknown)));
        }
        let of = |name: &String| {
            let density = self.0.get(name);
            let density =
                density.ok_or_else(|| format!("has no density for column `{}`", printable(name)))?;
            density.check().map_err(|why| format!("of column `{}`: {why}", printable(name)))?;
            Ok(density.clone())
        };
        names.iter().map(of).collect()
    }

    pub fn build(&self, context: &Context) -> Result<Box<dyn BaseMeasure>, Problem> {
        let densities = self.densities(&context.train.columns).map_err(|why| ("", why))?;
        Ok(Box::new(Product { densities }))
    }
}

struct Product {
    densities: Vec<Density>,
}

impl BaseMeasure for Product {
    fn sample(&self, t: usize, rng: &mut Rng) -> Pseudo {
        let x = table(t, self.densities.len(), |j| self.densities[j].draw(rng));
        own(Dataset::unnamed(x, None))
    }

    fn moments(&self) -> Option<Vec<(f64, f64)>> {
        Some(self.densities.iter().map(Density::moments).collect())
    }
}

//! The sampling design: what a row stands for in the posterior of F, and with which other rows it moves
//! (docs/sampling.md).

use std::collections::HashMap;

use rand::RngExt;

use super::table::Table;
use crate::error::{Error, Result};
use crate::rng::Rng;

/// Case weights, clusters and strata of the rows. By default every row is one observation, drawn on its own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Design {
    /// cᵢ, and Σ cⱼ over j ≤ i.
    weights: Option<(Vec<f64>, Vec<f64>)>,
    clusters: Option<Groups>,
    /// And the share of each stratum in all observations.
    strata: Option<(Groups, Vec<f64>)>,
}

/// Rows in groups, which are numbered in the order of their first rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Groups {
    /// The group of each row.
    pub of: Vec<usize>,
    pub count: usize,
}

impl Groups {
    /// Rows with the same key belong together.
    pub fn new(keys: impl IntoIterator<Item = u64>) -> Groups {
        let mut numbers = HashMap::new();
        let mut number = |key| {
            let next = numbers.len();
            *numbers.entry(key).or_insert(next)
        };
        let of = keys.into_iter().map(&mut number).collect();
        Groups { of, count: numbers.len() }
    }

    pub(super) fn select(&self, rows: &[usize]) -> Groups {
        Groups::new(rows.iter().map(|&i| self.of[i] as u64))
    }
}

impl Design {
    /// Positive weights, and groups of as many rows. Weights that are all 1 say nothing and are forgotten.
    pub fn new(weights: Option<Vec<f64>>, clusters: Option<Groups>, strata: Option<Groups>) -> Design {
        let weights = weights.filter(|c| c.iter().any(|&c| c != 1.0));
        let share = |strata: Groups| {
            let mut shares = vec![0.0; strata.count];
            let weight = |i: usize| weights.as_ref().map_or(1.0, |c| c[i]);
            strata.of.iter().enumerate().for_each(|(i, &s)| shares[s] += weight(i));
            let total: f64 = shares.iter().sum();
            shares.iter_mut().for_each(|s| *s /= total);
            (strata, shares)
        };
        let strata = strata.map(share);
        let with_sums = |c: Vec<f64>| {
            let sums = c.iter().scan(0.0, |sum, c| {
                *sum += c;
                Some(*sum)
            });
            let sums = sums.collect();
            (c, sums)
        };
        Design { weights: weights.map(with_sums), clusters, strata }
    }

    /// The design of these rows alone.
    pub fn select(&self, rows: &[usize]) -> Design {
        let weights = self.weights().map(|c| rows.iter().map(|&i| c[i]).collect());
        let pick = |groups: &Groups| groups.select(rows);
        Design::new(weights, self.clusters().map(pick), self.strata().map(|(groups, _)| pick(groups)))
    }

    /// cᵢ: how many observations each row stands for; `None` if all stand for one.
    pub fn weights(&self) -> Option<&[f64]> {
        self.weights.as_ref().map(|(c, _)| &c[..])
    }

    /// Rows that share one weight of the Dirichlet.
    pub fn clusters(&self) -> Option<&Groups> {
        self.clusters.as_ref()
    }

    /// Rows among which weights are drawn, and the fixed share of each such stratum.
    pub fn strata(&self) -> Option<(&Groups, &[f64])> {
        self.strata.as_ref().map(|(groups, shares)| (groups, &shares[..]))
    }

    /// Σ cᵢ of `n` rows.
    pub(super) fn mass(&self, n: usize) -> f64 {
        self.weights.as_ref().map_or(n as f64, |(_, sums)| sums.last().copied().unwrap_or(0.0))
    }

    /// One of `n` rows, with probability cᵢ / Σ c.
    pub(super) fn random_row(&self, n: usize, rng: &mut Rng) -> usize {
        match &self.weights {
            None => rng.random_range(0..n),
            Some((_, sums)) => {
                let u = rng.random_range(0.0..sums[n - 1]);
                sums.partition_point(|&sum| sum <= u)
            }
        }
    }
}

/// "3 strata, 12 clusters, weights that sum to 40"; empty for the default.
impl std::fmt::Display for Design {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let strata = self.strata().map(|(groups, _)| format!("{} strata", groups.count));
        let clusters = self.clusters().map(|groups| format!("{} clusters", groups.count));
        let weights = self.weights().map(|c| format!("weights that sum to {}", self.mass(c.len())));
        let parts: Vec<String> = [strata, clusters, weights].into_iter().flatten().collect();
        f.write_str(&parts.join(", "))
    }
}

/// The columns that say the design: by name in a config, by place in a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DesignColumns<C> {
    pub weight: Option<C>,
    pub cluster: Option<C>,
    pub stratify: Option<C>,
}

impl<C> DesignColumns<C> {
    /// Every column with the key that names it.
    pub fn keys(&self) -> impl Iterator<Item = (&'static str, &C)> {
        let keys = [
            ("data.weight", &self.weight),
            ("data.cluster", &self.cluster),
            ("data.stratify", &self.stratify),
        ];
        keys.into_iter().filter_map(|(key, column)| Some((key, column.as_ref()?)))
    }
}

impl DesignColumns<String> {
    /// Their places in a table.
    pub fn find(&self, table: &Table) -> Result<DesignColumns<usize>> {
        let place = |key: &str, name: &Option<String>| {
            let found = name.as_deref().map(|name| table.find(name)).transpose();
            found.map_err(|e| Error::input(format!("`{key}`: {e}")))
        };
        Ok(DesignColumns {
            weight: place("data.weight", &self.weight)?,
            cluster: place("data.cluster", &self.cluster)?,
            stratify: place("data.stratify", &self.stratify)?,
        })
    }

    /// The columns that hold names, whatever they look like.
    pub fn texts(&self) -> Vec<String> {
        self.cluster.iter().chain(&self.stratify).cloned().collect()
    }
}

impl DesignColumns<usize> {
    /// Their names in a table.
    pub fn names(&self, table: &Table) -> DesignColumns<String> {
        let name = |place: &Option<usize>| place.map(|j| table.names[j].clone());
        DesignColumns {
            weight: name(&self.weight),
            cluster: name(&self.cluster),
            stratify: name(&self.stratify),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Seed};

    #[test]
    fn groups_are_numbered_by_their_first_rows_in_every_selection() {
        let groups = Groups::new([7, 3, 7, 9, 3]);
        assert_eq!((&groups.of[..], groups.count), (&[0, 1, 0, 2, 1][..], 3));
        let some = groups.select(&[3, 4, 1]);
        assert_eq!((&some.of[..], some.count), (&[0, 1, 1][..], 2));
    }

    #[test]
    fn shares_of_strata_count_observations_not_rows() {
        let design = Design::new(Some(vec![2.0, 1.0, 5.0]), None, Some(Groups::new([0, 1, 0])));
        assert_eq!(design.strata().unwrap().1, [7.0 / 8.0, 1.0 / 8.0]);
        assert_eq!(design.select(&[1, 2]).strata().unwrap().1, [1.0 / 6.0, 5.0 / 6.0]);
        assert_eq!(design.to_string(), "2 strata, weights that sum to 8");
    }

    #[test]
    fn rows_are_picked_in_proportion_to_their_weights() {
        let design = Design::new(Some(vec![0.5, 3.0, 1.5]), None, None);
        let mut rng = Seed(1).stream(Purpose::Auxiliary, 0, 0);
        let mut counts = [0.0; 3];
        (0..30_000).for_each(|_| counts[design.random_row(3, &mut rng)] += 1.0);
        for (count, p) in counts.into_iter().zip([0.1, 0.6, 0.3]) {
            let z: f64 = (count - 30_000.0 * p) / f64::sqrt(30_000.0 * p * (1.0 - p));
            assert!(z.abs() < 5.0, "{count} of {p}");
        }
    }
}

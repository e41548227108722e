//! Data sets drawn from a known truth, anew for each repeat.

use ndarray::Array2;
use rand::distr::Distribution;
use rand_distr::{Open01, StandardNormal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Dataset;
use crate::config::{Numbers, Positive};
use crate::rng::Rng;

/// A sampling distribution F₀ to draw data from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Simulate {
    /// A Gaussian mixture with diagonal covariances.
    Mixture {
        /// Training rows. 0 simulates the prior of θ.
        n: usize,
        /// Test rows.
        #[serde(default)]
        n_test: usize,
        /// Weight of each component; scaled to sum to 1.
        pi: Vec<Positive>,
        /// Mean of each component: a number, or a list with one number per column.
        mu: Vec<Numbers>,
        /// Variance of each component: a number, or a list with one number per column.
        sigma2: Vec<Numbers>,
    },
    /// Independent normal columns.
    Normal {
        /// Training rows. 0 simulates the prior of θ.
        n: usize,
        /// Test rows.
        #[serde(default)]
        n_test: usize,
        /// Mean: a number, or a list with one number per column.
        mean: Numbers,
        /// Standard deviation: a number, or a list with one number per column.
        sd: Numbers,
    },
}

/// The truth in one form: components with means and standard deviations per column.
struct Components {
    cumulative: Vec<f64>,
    mean: Vec<Vec<f64>>,
    sd: Vec<Vec<f64>>,
}

impl Simulate {
    pub fn sizes(&self) -> (usize, usize) {
        match *self {
            Simulate::Mixture { n, n_test, .. } | Simulate::Normal { n, n_test, .. } => (n, n_test),
        }
    }

    /// Columns of the data.
    pub fn columns(&self) -> usize {
        match self {
            Simulate::Mixture { mu, sigma2, .. } => dimension(mu.iter().chain(sigma2)),
            Simulate::Normal { mean, sd, .. } => dimension([mean, sd]),
        }
    }

    /// What is wrong with the parameters: key below `data.simulate`, and why.
    pub fn problems(&self) -> Vec<(&'static str, String)> {
        let mut found = Vec::new();
        match self {
            Simulate::Mixture { pi, mu, sigma2, .. } => {
                if pi.is_empty() {
                    found.push(("mixture.pi", "needs at least one component".into()));
                }
                for (key, list) in [("mixture.mu", mu), ("mixture.sigma2", sigma2)] {
                    if list.len() != pi.len() {
                        found.push((key, format!("has {} entries for {} components", list.len(), pi.len())));
                    }
                }
                let d = dimension(mu.iter().chain(sigma2));
                for (key, list) in [("mixture.mu", mu), ("mixture.sigma2", sigma2)] {
                    if list.iter().any(|v| v.for_columns(d).is_none()) {
                        found.push((key, format!("gives some components {d} columns and others not")));
                    }
                }
                if sigma2.iter().any(|v| v.as_slice().iter().any(|&s| s <= 0.0)) {
                    found.push(("mixture.sigma2", "must be greater than 0".into()));
                }
            }
            Simulate::Normal { mean, sd, .. } => {
                let d = dimension([mean, sd]);
                if mean.for_columns(d).is_none() || sd.for_columns(d).is_none() {
                    found.push(("normal.sd", "has not as many entries as `mean`".into()));
                }
                if sd.as_slice().iter().any(|&s| s <= 0.0) {
                    found.push(("normal.sd", "must be greater than 0".into()));
                }
            }
        }
        found
    }

    fn components(&self) -> Components {
        let spread = |v: &Numbers, d| v.for_columns(d).expect("dimensions are checked with the config");
        let roots = |v: Vec<f64>| v.into_iter().map(f64::sqrt).collect();
        match self {
            Simulate::Mixture { pi, mu, sigma2, .. } => {
                let d = dimension(mu.iter().chain(sigma2));
                let total: f64 = pi.iter().map(|p| p.get()).sum();
                let mut sum = 0.0;
                let cumulative = pi.iter().map(|p| {
                    sum += p.get() / total;
                    sum
                });
                Components {
                    cumulative: cumulative.collect(),
                    mean: mu.iter().map(|v| spread(v, d)).collect(),
                    sd: sigma2.iter().map(|v| roots(spread(v, d))).collect(),
                }
            }
            Simulate::Normal { mean, sd, .. } => {
                let d = dimension([mean, sd]);
                Components { cumulative: vec![1.0], mean: vec![spread(mean, d)], sd: vec![spread(sd, d)] }
            }
        }
    }

    /// Training and test rows.
    pub fn draw(&self, rng: &mut Rng) -> (Dataset, Option<Dataset>) {
        let (n, n_test) = self.sizes();
        let truth = self.components();
        let train = truth.draw(n, rng);
        let test = (n_test > 0).then(|| truth.draw(n_test, rng));
        (train, test)
    }

    /// So many rows, whatever `n` is.
    pub fn rows(&self, n: usize, rng: &mut Rng) -> Dataset {
        self.components().draw(n, rng)
    }

    /// E y of every column.
    pub fn means(&self) -> Vec<f64> {
        let truth = self.components();
        let mut before = 0.0;
        let mut mean = vec![0.0; self.columns()];
        for (cumulative, of) in truth.cumulative.iter().zip(&truth.mean) {
            mean.iter_mut().zip(of).for_each(|(sum, m)| *sum += (cumulative - before) * m);
            before = *cumulative;
        }
        mean
    }
}

impl Components {
    fn draw(&self, n: usize, rng: &mut Rng) -> Dataset {
        let d = self.mean[0].len();
        let mut x = Array2::zeros((n, d));
        for mut row in x.outer_iter_mut() {
            let u: f64 = Open01.sample(rng);
            let k = self.cumulative.iter().position(|&c| u < c).unwrap_or(self.cumulative.len() - 1);
            for (j, value) in row.iter_mut().enumerate() {
                let z: f64 = StandardNormal.sample(rng);
                *value = self.mean[k][j] + self.sd[k][j] * z;
            }
        }
        let columns = if d == 1 { vec!["y".into()] } else { (1..=d).map(|j| format!("y{j}")).collect() };
        Dataset::new(x, None, columns)
    }
}

fn dimension<'a>(lists: impl IntoIterator<Item = &'a Numbers>) -> usize {
    lists.into_iter().map(|v| v.as_slice().len()).max().unwrap_or(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Seed};

    #[test]
    fn a_mixture_has_its_moments() {
        let truth = Simulate::Mixture {
            n: 200_000,
            n_test: 7,
            pi: vec![Positive::new(1.0).unwrap(), Positive::new(3.0).unwrap()],
            mu: vec![Numbers::List(vec![0.0, 1.0]), Numbers::List(vec![4.0, 1.0])],
            sigma2: vec![Numbers::One(1.0), Numbers::List(vec![1.0, 9.0])],
        };
        assert!(truth.problems().is_empty());
        let (train, test) = truth.draw(&mut Seed(1).stream(Purpose::Data, 0, 0));
        assert_eq!((train.n(), train.d(), test.unwrap().n()), (200_000, 2, 7));
        let moments = train.moments();
        // E y₁ = 3, Var y₁ = 1 + 16 · ¼ · ¾ = 4; E y₂ = 1, Var y₂ = ¼ + 9 · ¾ = 7. Five standard errors.
        for ((mean, var), (m, v, kurtosis)) in moments.iter().zip([(3.0, 4.0, 3.0), (1.0, 7.0, 5.0)]) {
            assert!((mean - m).abs() < 5.0 * (v / 200_000f64).sqrt(), "mean {mean}");
            assert!((var / v - 1.0).abs() < 5.0 * (kurtosis / 200_000f64).sqrt(), "variance {var}");
        }
    }

    #[test]
    fn mismatched_parameters_are_named() {
        let bad = Simulate::Mixture {
            n: 1,
            n_test: 0,
            pi: vec![Positive::new(1.0).unwrap()],
            mu: vec![Numbers::One(0.0), Numbers::One(1.0)],
            sigma2: vec![Numbers::One(-1.0)],
        };
        let keys: Vec<&str> = bad.problems().iter().map(|(key, _)| *key).collect();
        assert_eq!(keys, ["mixture.mu", "mixture.sigma2"]);
    }
}

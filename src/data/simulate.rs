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
    /// A Gaussian mixture, its covariances diagonal unless columns are correlated.
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
        /// Correlation of any two columns in each component. Left out it is 0 in all of them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        correlation: Vec<f64>,
    },
    /// A mixture of products of Bernoullis: columns of 0 and 1.
    Bernoulli {
        /// Training rows. 0 simulates the prior of θ.
        n: usize,
        /// Test rows.
        #[serde(default)]
        n_test: usize,
        /// Weight of each component; scaled to sum to 1.
        pi: Vec<Positive>,
        /// Probability of a 1 in each component: a number, or a list with one number per column.
        p: Vec<Numbers>,
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

/// The truth in one form: components with means per column, and standard deviations unless cells are 0 or 1.
struct Components {
    cumulative: Vec<f64>,
    mean: Vec<Vec<f64>>,
    sd: Option<Vec<Vec<f64>>>,
    /// Of any two columns, one for each component; none if it is 0 in all of them.
    correlation: Vec<f64>,
}

/// Shares that sum to 1, each added to those before it.
fn cumulative(pi: &[Positive]) -> Vec<f64> {
    let total: f64 = pi.iter().map(|p| p.get()).sum();
    let mut sum = 0.0;
    let next = |p: &Positive| {
        sum += p.get() / total;
        sum
    };
    pi.iter().map(next).collect()
}

impl Simulate {
    pub fn sizes(&self) -> (usize, usize) {
        match *self {
            Simulate::Mixture { n, n_test, .. }
            | Simulate::Bernoulli { n, n_test, .. }
            | Simulate::Normal { n, n_test, .. } => (n, n_test),
        }
    }

    /// Columns of the data.
    pub fn columns(&self) -> usize {
        match self {
            Simulate::Mixture { mu, sigma2, .. } => dimension(mu.iter().chain(sigma2)),
            Simulate::Bernoulli { p, .. } => dimension(p),
            Simulate::Normal { mean, sd, .. } => dimension([mean, sd]),
        }
    }

    /// What is wrong with the parameters: key below `data.simulate`, and why.
    pub fn problems(&self) -> Vec<(&'static str, String)> {
        let mut found = Vec::new();
        match self {
            Simulate::Bernoulli { pi, p, .. } => {
                if pi.is_empty() {
                    found.push(("bernoulli.pi", "needs at least one component".into()));
                }
                if p.len() != pi.len() {
                    let message = format!("has {} entries for {} components", p.len(), pi.len());
                    found.push(("bernoulli.p", message));
                }
                let d = dimension(p);
                if p.iter().any(|v| v.for_columns(d).is_none()) {
                    found.push(("bernoulli.p", format!("gives some components {d} columns and others not")));
                }
                if p.iter().any(|v| v.as_slice().iter().any(|p| !(0.0..=1.0).contains(p))) {
                    found.push(("bernoulli.p", "must lie between 0 and 1".into()));
                }
            }
            Simulate::Mixture { pi, mu, sigma2, correlation, .. } => {
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
                if !correlation.is_empty() && correlation.len() != pi.len() {
                    let message = format!("has {} entries for {} components", correlation.len(), pi.len());
                    found.push(("mixture.correlation", message));
                }
                let least = if d > 1 { -1.0 / (d as f64 - 1.0) } else { -1.0 };
                if correlation.iter().any(|r| !(*r > least && *r < 1.0)) {
                    let message = format!("of any two of {d} columns must be above {least} and below 1");
                    found.push(("mixture.correlation", message));
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
            Simulate::Mixture { pi, mu, sigma2, correlation, .. } => {
                let d = dimension(mu.iter().chain(sigma2));
                Components {
                    cumulative: cumulative(pi),
                    mean: mu.iter().map(|v| spread(v, d)).collect(),
                    sd: Some(sigma2.iter().map(|v| roots(spread(v, d))).collect()),
                    correlation: correlation.clone(),
                }
            }
            Simulate::Bernoulli { pi, p, .. } => Components {
                cumulative: cumulative(pi),
                mean: p.iter().map(|v| spread(v, dimension(p))).collect(),
                sd: None,
                correlation: Vec::new(),
            },
            Simulate::Normal { mean, sd, .. } => {
                let d = dimension([mean, sd]);
                let (mean, sd) = (vec![spread(mean, d)], Some(vec![spread(sd, d)]));
                Components { cumulative: vec![1.0], mean, sd, correlation: Vec::new() }
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
            let Some(sd) = &self.sd else {
                for (value, p) in row.iter_mut().zip(&self.mean[k]) {
                    let u: f64 = Open01.sample(rng);
                    *value = f64::from(u8::from(u < *p));
                }
                continue;
            };
            row.iter_mut().for_each(|z| *z = StandardNormal.sample(rng));
            if let Some(r) = self.correlation.get(k) {
                // The symmetric root of the matrix with 1 on its diagonal and r elsewhere.
                let mean = row.sum() / d as f64;
                let (apart, along) = ((1.0 - r).sqrt(), (1.0 + (d as f64 - 1.0) * r).sqrt());
                row.iter_mut().for_each(|z| *z = apart * (*z - mean) + along * mean);
            }
            for (j, value) in row.iter_mut().enumerate() {
                *value = self.mean[k][j] + sd[k][j] * *value;
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
            correlation: Vec::new(),
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
            correlation: vec![1.0],
        };
        let keys: Vec<&str> = bad.problems().iter().map(|(key, _)| *key).collect();
        assert_eq!(keys, ["mixture.mu", "mixture.correlation", "mixture.sigma2"]);
    }

    /// Five standard errors: (1 − ρ²)/√n of a correlation, √(p(1 − p)/n) of a share.
    #[test]
    fn correlations_and_probabilities_are_those_of_the_truth() {
        let one = Positive::new(1.0).unwrap();
        let truth = Simulate::Mixture {
            n: 40_000,
            n_test: 0,
            pi: vec![one],
            mu: vec![Numbers::List(vec![1.0, -1.0, 0.0])],
            sigma2: vec![Numbers::List(vec![1.0, 4.0, 0.25])],
            correlation: vec![-0.4],
        };
        assert!(truth.problems().is_empty());
        let (train, _) = truth.draw(&mut Seed(1).stream(Purpose::Data, 0, 0));
        let moments = train.moments();
        for (a, b) in [(0, 1), (1, 2), (0, 2)] {
            let products = train.x.iter().map(|y| (y[a] - moments[a].0) * (y[b] - moments[b].0));
            let r = products.sum::<f64>() / 40_000.0 / (moments[a].1 * moments[b].1).sqrt();
            assert!((r + 0.4).abs() < 5.0 * 0.84 / 200.0, "{r}");
        }
        let truth = Simulate::Bernoulli {
            n: 40_000,
            n_test: 0,
            pi: vec![one, Positive::new(3.0).unwrap()],
            p: vec![Numbers::List(vec![0.9, 0.1]), Numbers::One(0.5)],
        };
        assert!(truth.problems().is_empty());
        let (train, _) = truth.draw(&mut Seed(1).stream(Purpose::Data, 0, 0));
        for ((mean, _), p) in train.moments().iter().zip([0.6, 0.4]) {
            assert!((mean - p).abs() < 5.0 * 0.5 / 200.0, "{mean}");
        }
    }
}

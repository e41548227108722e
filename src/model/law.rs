//! Parameters whose posterior law is known by itself: a draw needs no weights and no pass over the data.

use rand::distr::Distribution;
use rand_distr::Binomial;

use crate::data::Dataset;
use crate::rng::Rng;

/// The law of θ under the Bayesian bootstrap.
pub trait Law: Send + Sync {
    fn draw(&self, rng: &mut Rng) -> Vec<f64>;
}

/// Quantiles of one column, in increasing order of q.
///
/// Dirichlet weights of n observations are the gaps between n − 1 uniform points. So the lower q-quantile, the smallest value at or
/// below which a share q of the mass lies, is observation 1 + N in order, with N the number of points below q: N ~ Bin(n − 1, q). Of
/// several quantiles the points between one and the next are binomial given those before. A row of case weight c, a whole number, is c
/// observations, whose weights add up to its Gamma(c).
pub struct OrderStatistics {
    q: Vec<f64>,
    /// In order.
    values: Vec<f64>,
    /// Observations up to each of them, where rows stand for several.
    upto: Option<Vec<u64>>,
}

impl OrderStatistics {
    /// Why quantiles of these data have no such law, if they do not.
    pub fn lawless(train: &Dataset) -> Option<&'static str> {
        let design = &train.design;
        let whole = |c: &[f64]| c.iter().all(|c| c.fract() == 0.0) && c.iter().sum::<f64>() < 9e15;
        if train.d() != 1 {
            Some(
                "columns share their weights, so that their quantiles are not independent: choose one in `data.columns`",
            )
        } else if train.n() == 0 {
            Some("there are no rows")
        } else if design.clusters().is_some() || design.strata().is_some() {
            Some("with `data.cluster` or `data.stratify` weights are no plain Dirichlet")
        } else if design.weights().is_some_and(|c| !whole(c)) {
            Some("`data.weight` has weights that are no whole numbers of observations")
        } else {
            None
        }
    }

    /// Sorts the column.
    pub fn new(train: &Dataset, q: &[f64]) -> OrderStatistics {
        let q = q.to_vec();
        let Some(c) = train.design.weights() else {
            let mut values: Vec<f64> = train.x.column(0).collect();
            values.sort_unstable_by(f64::total_cmp);
            return OrderStatistics { q, values, upto: None };
        };
        let mut rows: Vec<(f64, u64)> = train.x.column(0).zip(c.iter().map(|&c| c as u64)).collect();
        rows.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let upto = rows.iter().scan(0, |sum, (_, c)| {
            *sum += c;
            Some(*sum)
        });
        OrderStatistics { q, upto: Some(upto.collect()), values: rows.iter().map(|(y, _)| *y).collect() }
    }

    /// Observation `k` in order, counted from 0.
    fn value(&self, k: u64) -> f64 {
        let row = match &self.upto {
            None => k as usize,
            Some(upto) => upto.partition_point(|&sum| sum <= k),
        };
        self.values[row]
    }
}

impl Law for OrderStatistics {
    fn draw(&self, rng: &mut Rng) -> Vec<f64> {
        let observations = self.upto.as_ref().map_or(self.values.len() as u64, |upto| upto[upto.len() - 1]);
        let (mut below, mut before) = (0, 0.0);
        let mut quantile = |&q: &f64| {
            let p = ((q - before) / (1.0 - before)).clamp(0.0, 1.0);
            let law = Binomial::new(observations - 1 - below, p).expect("a probability");
            below += law.sample(rng);
            before = q;
            self.value(below)
        };
        self.q.iter().map(&mut quantile).collect()
    }
}

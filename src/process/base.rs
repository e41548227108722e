//! Base measures F_π: where prior pseudo-samples come from (sections 2.2 and 3.2).

use std::sync::Arc;

use ndarray::{Array1, Array2, Axis};
use rand::distr::Distribution;
use rand_distr::{Open01, StandardNormal};

use crate::data::Dataset;
use crate::rng::Rng;

/// F_π.
pub trait BaseMeasure: Send + Sync {
    /// `t` independent pseudo-samples.
    fn sample(&self, t: usize, rng: &mut Rng) -> Dataset;

    /// Probabilities of the atoms, where there are finitely many: then weights need no truncation.
    fn shares(&self) -> Option<&[f64]> {
        None
    }

    /// `t` atoms of a finite support drawn at random, by number.
    fn pick(&self, _t: usize, _rng: &mut Rng) -> Option<Vec<usize>> {
        None
    }

    /// Atoms of a finite support, by number.
    fn atoms(&self, _numbers: &[usize]) -> Dataset {
        Dataset::default()
    }

    /// The observed row whose covariates an atom has, and the atom's response, if it is of that kind.
    fn observed(&self, _atom: usize) -> Option<(usize, f64)> {
        None
    }

    /// Mean and variance of each column, where they are known; for choosing α (supplement A.2).
    fn moments(&self) -> Option<Vec<(f64, f64)>> {
        None
    }
}

/// Π_j N(y_j; m_j, s_j²).
pub struct Normal {
    pub mean: Vec<f64>,
    pub sd: Vec<f64>,
}

impl BaseMeasure for Normal {
    fn sample(&self, t: usize, rng: &mut Rng) -> Dataset {
        fill(t, self.mean.len(), |j| {
            let z: f64 = StandardNormal.sample(rng);
            self.mean[j] + self.sd[j] * z
        })
    }

    fn moments(&self) -> Option<Vec<(f64, f64)>> {
        Some(self.mean.iter().zip(&self.sd).map(|(m, s)| (*m, s * s)).collect())
    }
}

/// Π_j U(y_j; low_j, high_j).
pub struct Uniform {
    pub low: Vec<f64>,
    pub high: Vec<f64>,
}

impl BaseMeasure for Uniform {
    fn sample(&self, t: usize, rng: &mut Rng) -> Dataset {
        fill(t, self.low.len(), |j| {
            let u: f64 = Open01.sample(rng);
            self.low[j] + (self.high[j] - self.low[j]) * u
        })
    }

    fn moments(&self) -> Option<Vec<(f64, f64)>> {
        let moments = |(a, b): (&f64, &f64)| (0.5 * (a + b), (b - a) * (b - a) / 12.0);
        Some(self.low.iter().zip(&self.high).map(moments).collect())
    }
}

/// The empirical distribution of historical rows, by their case weights: finite support.
pub struct Empirical {
    rows: Dataset,
    share: Vec<f64>,
}

impl Empirical {
    pub fn new(rows: Dataset) -> Self {
        let share = (0..rows.n()).map(|i| rows.weight(i) / rows.mass()).collect();
        Empirical { rows, share }
    }
}

impl BaseMeasure for Empirical {
    fn sample(&self, t: usize, rng: &mut Rng) -> Dataset {
        self.atoms(&random_rows(t, &self.rows, rng))
    }

    fn shares(&self) -> Option<&[f64]> {
        Some(&self.share)
    }

    fn pick(&self, t: usize, rng: &mut Rng) -> Option<Vec<usize>> {
        Some(random_rows(t, &self.rows, rng))
    }

    fn atoms(&self, numbers: &[usize]) -> Dataset {
        self.rows.select(numbers)
    }

    fn moments(&self) -> Option<Vec<(f64, f64)>> {
        Some(self.rows.moments())
    }
}

fn random_rows(t: usize, data: &Dataset, rng: &mut Rng) -> Vec<usize> {
    (0..t).map(|_| data.random_row(rng)).collect()
}

/// Covariates drawn from the rows of the training data, by their case weights, and a Bernoulli response: f_π(y) f_π(x) of
/// eq. (15) if its probability is the same for all rows, a regression if it is not. Finite support: atom i < n is row i
/// with response 1, atom n + i is row i with response 0.
pub struct BernoulliResponse {
    /// Of a response 1, for each row.
    p: Vec<f64>,
    covariates: Arc<Dataset>,
    share: Vec<f64>,
}

impl BernoulliResponse {
    pub fn new(p: Vec<f64>, covariates: Arc<Dataset>) -> Self {
        let n = covariates.n();
        let response = |i: usize| if i < n { p[i] } else { 1.0 - p[i - n] };
        let share = |i: usize| response(i) * covariates.weight(i % n) / covariates.mass();
        let share = (0..2 * n).map(share).collect();
        BernoulliResponse { p, covariates, share }
    }
}

impl BaseMeasure for BernoulliResponse {
    fn sample(&self, t: usize, rng: &mut Rng) -> Dataset {
        self.atoms(&self.pick(t, rng).expect("the support is finite"))
    }

    fn shares(&self) -> Option<&[f64]> {
        Some(&self.share)
    }

    fn pick(&self, t: usize, rng: &mut Rng) -> Option<Vec<usize>> {
        let n = self.covariates.n();
        let one = |rng: &mut Rng| {
            let row = self.covariates.random_row(rng);
            let u: f64 = Open01.sample(rng);
            if u < self.p[row] { row } else { n + row }
        };
        Some((0..t).map(|_| one(rng)).collect())
    }

    fn atoms(&self, numbers: &[usize]) -> Dataset {
        let n = self.covariates.n();
        let rows: Vec<usize> = numbers.iter().map(|a| a % n).collect();
        let y = Array1::from_iter(numbers.iter().map(|&a| f64::from(a < n)));
        Dataset::new(self.covariates.x.select(Axis(0), &rows), Some(y), self.covariates.columns.clone())
    }

    fn observed(&self, atom: usize) -> Option<(usize, f64)> {
        let n = self.covariates.n();
        Some((atom % n, f64::from(atom < n)))
    }
}

/// How a model draws one pseudo-sample from f_π(y) = ∫ f_θ(y) dπ(θ): θ afresh from its prior, then y.
pub type DrawRow = Arc<dyn Fn(&mut Rng, &mut [f64]) + Send + Sync>;

/// The prior predictive of a model that has no closed form.
pub struct PriorPredictive {
    pub d: usize,
    pub draw: DrawRow,
    pub moments: Option<Vec<(f64, f64)>>,
}

impl BaseMeasure for PriorPredictive {
    fn sample(&self, t: usize, rng: &mut Rng) -> Dataset {
        let mut x = Array2::zeros((t, self.d));
        for mut row in x.outer_iter_mut() {
            (self.draw)(rng, row.as_slice_mut().expect("rows of a fresh array are contiguous"));
        }
        Dataset::unnamed(x, None)
    }

    fn moments(&self) -> Option<Vec<(f64, f64)>> {
        self.moments.clone()
    }
}

/// A `t` × `d` data set whose cells are drawn row by row.
fn fill(t: usize, d: usize, mut cell: impl FnMut(usize) -> f64) -> Dataset {
    Dataset::unnamed(Array2::from_shape_fn((t, d), |(_, j)| cell(j)), None)
}

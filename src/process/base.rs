//! Base measures F_π: where prior pseudo-samples come from (sections 2.2 and 3.2).

use std::sync::Arc;

use ndarray::{Array1, Array2, Axis};
use rand::RngExt;
use rand::distr::Distribution;
use rand_distr::{Open01, StandardNormal};

use crate::data::Dataset;
use crate::rng::Rng;

/// F_π.
pub trait BaseMeasure: Send + Sync {
    /// `t` independent pseudo-samples.
    fn sample(&self, t: usize, rng: &mut Rng) -> Dataset;

    /// Atoms and their probabilities, where there are finitely many: then weights need no truncation.
    fn support(&self) -> Option<(&Dataset, &[f64])> {
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

/// The empirical distribution of historical rows: finite support.
pub struct Empirical {
    rows: Dataset,
    share: Vec<f64>,
}

impl Empirical {
    pub fn new(rows: Dataset) -> Self {
        let share = vec![1.0 / rows.n() as f64; rows.n()];
        Empirical { rows, share }
    }
}

impl BaseMeasure for Empirical {
    fn sample(&self, t: usize, rng: &mut Rng) -> Dataset {
        let rows: Vec<usize> = (0..t).map(|_| rng.random_range(0..self.rows.n())).collect();
        self.rows.select(&rows)
    }

    fn support(&self) -> Option<(&Dataset, &[f64])> {
        Some((&self.rows, &self.share))
    }

    fn moments(&self) -> Option<Vec<(f64, f64)>> {
        Some(self.rows.moments())
    }
}

/// f_π(y) f_π(x) of section 3.2: a Bernoulli(p) response that is independent of covariates drawn from the rows of
/// the training data. Finite support: every row with y = 1 and with y = 0.
pub struct BernoulliResponse {
    p: f64,
    /// All rows with y = 1, then all rows with y = 0.
    atoms: Dataset,
    share: Vec<f64>,
}

impl BernoulliResponse {
    pub fn new(p: f64, covariates: &Dataset) -> Self {
        let n = covariates.n();
        let twice: Vec<usize> = (0..n).chain(0..n).collect();
        let x = covariates.x.select(Axis(0), &twice);
        let y = Array1::from_iter((0..2 * n).map(|i| if i < n { 1.0 } else { 0.0 }));
        let share = (0..2 * n).map(|i| if i < n { p } else { 1.0 - p } / n as f64).collect();
        BernoulliResponse { p, atoms: Dataset::new(x, Some(y), covariates.columns.clone()), share }
    }
}

impl BaseMeasure for BernoulliResponse {
    fn sample(&self, t: usize, rng: &mut Rng) -> Dataset {
        let n = self.atoms.n() / 2;
        let pick = |rng: &mut Rng| {
            let row = rng.random_range(0..n);
            let u: f64 = Open01.sample(rng);
            if u < self.p { row } else { n + row }
        };
        let rows: Vec<usize> = (0..t).map(|_| pick(rng)).collect();
        self.atoms.select(&rows)
    }

    fn support(&self) -> Option<(&Dataset, &[f64])> {
        Some((&self.atoms, &self.share))
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

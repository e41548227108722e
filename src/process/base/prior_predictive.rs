//! f_π(y) = ∫ f_θ(y) dπ(θ): the model's own prior, seen through its data.

use std::sync::Arc;

use super::{BaseMeasure, Context, Problem, Pseudo, own};
use crate::data::Dataset;
use crate::rng::Rng;
use ndarray::Array2;

pub fn examples(_columns: &[String]) -> Vec<String> {
    vec!["\"prior_predictive\"".into()]
}

pub fn build(context: &Context) -> Result<Box<dyn BaseMeasure>, Problem> {
    (context.predictive)().map_err(|why| ("", why))
}

/// How a model draws one pseudo-sample: θ afresh from its prior, then y.
pub type DrawRow = Arc<dyn Fn(&mut Rng, &mut [f64]) + Send + Sync>;

/// The prior predictive of a model that has no closed form.
pub struct PriorPredictive {
    pub d: usize,
    pub draw: DrawRow,
    pub moments: Option<Vec<(f64, f64)>>,
}

impl BaseMeasure for PriorPredictive {
    fn sample(&self, t: usize, rng: &mut Rng) -> Pseudo {
        let mut x = Array2::zeros((t, self.d));
        for mut row in x.outer_iter_mut() {
            (self.draw)(rng, row.as_slice_mut().expect("rows of a fresh array are contiguous"));
        }
        own(Dataset::unnamed(x, None))
    }

    fn moments(&self) -> Option<Vec<(f64, f64)>> {
        self.moments.clone()
    }
}

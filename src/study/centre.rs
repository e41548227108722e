//! What MDP-NPL is centred on (Lyddon, Walker and Holmes 2018, Algorithm 1): the model at draws from its posterior.

use std::sync::Arc;

use rand::RngExt;

use crate::data::Dataset;
use crate::model::Model;
use crate::process::{BaseMeasure, Pseudo};
use crate::rng::Rng;

/// f_θ̃ with θ̃ from the conventional posterior, another for each draw of the bootstrap.
pub struct Centred {
    pub model: Arc<dyn Model>,
    /// Draw b of the bootstrap takes draw b of these, from the first again after the last.
    pub draws: Vec<Vec<f64>>,
    /// Where the covariates of pseudo-samples come from.
    pub rows: Arc<Dataset>,
}

impl Centred {
    fn at(&self, draw: usize) -> Box<dyn BaseMeasure> {
        self.model.sampling(&self.draws[draw], &self.rows).expect("a likelihood: checked with the study")
    }
}

impl BaseMeasure for Centred {
    /// From the mixture: all from one of its members.
    fn sample(&self, t: usize, rng: &mut Rng) -> Pseudo {
        self.at(rng.random_range(0..self.draws.len())).sample(t, rng)
    }

    fn of_draw(&self, draw: u64) -> Option<Box<dyn BaseMeasure>> {
        Some(self.at((draw % self.draws.len() as u64) as usize))
    }
}

//! No penalty.

use super::Shape;
use crate::kernel::{Level, Line, Scalar};
use crate::rng::Rng;

pub struct None;

impl Shape for None {
    fn penalise<T: Scalar<L>, const L: usize>(
        &self,
        _level: Level,
        _gamma: f64,
        _beta: &[Line<T, L>],
        _gradient: &mut [Line<T, L>],
    ) -> [f64; L] {
        [0.0; L]
    }

    fn majorant(&self, _gamma: f64, _beta: f64) -> f64 {
        0.0
    }

    fn log_normaliser(&self, _strength: f64) -> f64 {
        0.0
    }

    fn draw(&self, _strength: f64, _rng: &mut Rng) -> Option<f64> {
        Option::None
    }
}

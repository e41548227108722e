//! No penalty.

use super::Shape;
use crate::rng::Rng;

pub struct None;

impl Shape for None {
    fn log_normaliser(&self, _strength: f64) -> f64 {
        0.0
    }

    fn draw(&self, _strength: f64, _rng: &mut Rng) -> Option<f64> {
        Option::None
    }
}

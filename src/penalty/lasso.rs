//! Σ |β|: no smooth part.

use rand::distr::Distribution;
use rand_distr::{Exp1, Open01};

use super::Shape;
use crate::rng::Rng;

pub struct Lasso;

impl Shape for Lasso {
    fn kink(&self) -> f64 {
        1.0
    }

    fn log_normaliser(&self, strength: f64) -> f64 {
        libm::log(0.5 * strength)
    }

    fn draw(&self, strength: f64, rng: &mut Rng) -> Option<f64> {
        let (size, side): (f64, f64) = (Exp1.sample(rng), Open01.sample(rng));
        (strength > 0.0).then(|| if side < 0.5 { -size / strength } else { size / strength })
    }
}

//! Σ β²/2.

use std::f64::consts::TAU;

use rand::distr::Distribution;
use rand_distr::StandardNormal;

use super::Shape;
use crate::kernel::lanes::{along, dots};
use crate::kernel::{Level, Line, Scalar};
use crate::rng::Rng;

pub struct Ridge;

impl Shape for Ridge {
    fn penalise<T: Scalar<L>, const L: usize>(
        &self,
        level: Level,
        gamma: f64,
        beta: &[Line<T, L>],
        gradient: &mut [Line<T, L>],
    ) -> [f64; L] {
        let before = gradient.to_vec();
        along(level, &before, [gamma; L], beta, gradient);
        dots(level, beta, beta).map(|sum| 0.5 * gamma * sum)
    }

    fn majorant(&self, gamma: f64, _beta: f64) -> f64 {
        gamma
    }

    fn log_normaliser(&self, strength: f64) -> f64 {
        0.5 * libm::log(strength / TAU)
    }

    fn draw(&self, strength: f64, rng: &mut Rng) -> Option<f64> {
        let z: f64 = StandardNormal.sample(rng);
        (strength > 0.0).then(|| z / strength.sqrt())
    }
}

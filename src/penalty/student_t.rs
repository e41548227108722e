//! Σ (2a + 1)/2 log(1 + β²/2b): minus the log density of a Student-t with 2a degrees of freedom, eq. (14).

use std::f64::consts::PI;

use rand::distr::Distribution;
use rand_distr::StudentT as Standard;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Shape;
use crate::config::Positive;
use crate::kernel::regression::{student_t, student_t_curvatures};
use crate::kernel::{Level, Line, Scalar};
use crate::rng::Rng;

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StudentT {
    /// Shape of the gamma prior on the precisions; 2a degrees of freedom.
    pub a: Positive,
    /// Rate of the gamma prior on the precisions; b/a is the squared scale.
    pub b: Positive,
}

impl StudentT {
    fn two_b(&self) -> f64 {
        2.0 * self.b.get()
    }

    fn scale(&self, gamma: f64) -> f64 {
        gamma * (2.0 * self.a.get() + 1.0)
    }

    /// exp(−s g) is (1 + β²/2b) to the power −p.
    fn power(&self, strength: f64) -> f64 {
        strength * (self.a.get() + 0.5)
    }
}

impl Shape for StudentT {
    fn is_convex(&self) -> bool {
        false
    }

    fn penalise<T: Scalar<L>, const L: usize>(
        &self,
        level: Level,
        gamma: f64,
        beta: &[Line<T, L>],
        gradient: &mut [Line<T, L>],
    ) -> [f64; L] {
        let scale = self.scale(gamma);
        student_t(level, self.two_b(), scale, beta, gradient).map(|sum| 0.5 * scale * sum)
    }

    fn curvatures<T: Scalar<L>, const L: usize>(
        &self,
        level: Level,
        gamma: f64,
        beta: &[Line<T, L>],
        exact: [bool; L],
        out: &mut [Line<T, L>],
    ) {
        student_t_curvatures(level, self.two_b(), self.scale(gamma), exact, beta, out);
    }

    fn majorant(&self, gamma: f64, beta: f64) -> f64 {
        self.scale(gamma) / (self.two_b() + beta * beta)
    }

    fn log_normaliser(&self, strength: f64) -> f64 {
        let power = self.power(strength);
        // A weaker penalty than this has no integral.
        let gammas = if power > 0.5 { libm::lgamma(power) - libm::lgamma(power - 0.5) } else { 0.0 };
        gammas - 0.5 * libm::log(PI * self.two_b())
    }

    fn draw(&self, strength: f64, rng: &mut Rng) -> Option<f64> {
        let freedom = 2.0 * self.power(strength) - 1.0;
        let t: f64 = Standard::new(freedom).ok().filter(|_| freedom > 0.0)?.sample(rng);
        Some(t * (self.two_b() / freedom).sqrt())
    }

    fn precisions(&self) -> Option<[f64; 2]> {
        Some([self.a.get(), self.b.get()])
    }
}

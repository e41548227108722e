//! Σ r |β| + (1 − r) β²/2: the lasso at r = 1, ridge at r = 0.

use rand::distr::Distribution;
use rand_distr::{Exp1, Open01, StandardNormal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Ridge, Shape};
use crate::config::OpenUnit;
use crate::kernel::{Level, Line, Scalar};
use crate::rng::Rng;

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ElasticNet {
    /// Share r of the lasso; the rest is ridge.
    pub ratio: OpenUnit,
}

impl ElasticNet {
    fn smooth(&self) -> f64 {
        1.0 - self.ratio.get()
    }
}

impl Shape for ElasticNet {
    fn penalise<T: Scalar<L>, const L: usize>(
        &self,
        level: Level,
        gamma: f64,
        beta: &[Line<T, L>],
        gradient: &mut [Line<T, L>],
    ) -> [f64; L] {
        Ridge.penalise(level, self.smooth() * gamma, beta, gradient)
    }

    fn majorant(&self, gamma: f64, _beta: f64) -> f64 {
        self.smooth() * gamma
    }

    fn kink(&self) -> f64 {
        self.ratio.get()
    }

    /// With u = s r and v = s (1 − r), ∫ exp(−u|β| − v β²/2) dβ = √(2π/v) exp(u²/2v) erfc(u/√(2v)).
    fn log_normaliser(&self, strength: f64) -> f64 {
        let (u, v) = (strength * self.ratio.get(), strength * self.smooth());
        let z = u / (2.0 * v).sqrt();
        -0.5 * libm::log(std::f64::consts::TAU / v) - log_scaled_erfc(z)
    }

    /// |β| is an exponential variate that is kept with probability exp(−v β²/2), or half a normal one that is kept with
    /// probability exp(−u|β|), whichever is kept more often.
    fn draw(&self, strength: f64, rng: &mut Rng) -> Option<f64> {
        let (u, v) = (strength * self.ratio.get(), strength * self.smooth());
        if strength <= 0.0 {
            return None;
        }
        let size = loop {
            let (kept, size) = if u * u > v {
                let size: f64 = Exp1.sample(rng);
                (-0.5 * v * (size / u) * (size / u), size / u)
            } else {
                let z: f64 = StandardNormal.sample(rng);
                (-u * z.abs() / v.sqrt(), z.abs() / v.sqrt())
            };
            let coin: f64 = Open01.sample(rng);
            if libm::log(coin) < kept {
                break size;
            }
        };
        let side: f64 = Open01.sample(rng);
        Some(if side < 0.5 { -size } else { size })
    }
}

/// log(exp(z²) erfc(z)) for z ≥ 0; beyond 20 by its asymptotic series, for erfc underflows.
fn log_scaled_erfc(z: f64) -> f64 {
    if z < 20.0 {
        return z * z + libm::log(libm::erfc(z));
    }
    let s = 1.0 / (2.0 * z * z);
    libm::log((1.0 - s * (1.0 - 3.0 * s * (1.0 - 5.0 * s))) / (z * std::f64::consts::PI.sqrt()))
}

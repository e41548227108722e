//! Poisson regression: l = e^η − y η + log y!, η = βᵀx + β₀.

use rand::distr::Distribution;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::regression::{self, Family};
use super::{Context, Model, Response};
use crate::config::Complaint;
use crate::kernel::Arithmetic;
use crate::kernel::regression::Partition;
use crate::rng::Rng;

pub const STARTER: &str = include_str!("../../configs/starters/poisson.toml");

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Config(regression::Config);

impl Config {
    pub fn build(&self, context: &Context) -> Result<Box<dyn Model>, Vec<Complaint>> {
        self.0.build::<Poisson>(context)
    }
}

pub struct Poisson;

/// Beyond this mean counts are normal to more digits than a count has.
const LARGEST_MEAN: f64 = 1e15;

impl Family for Poisson {
    const RESPONSE: Response = Response::Count;
    const LARGEST: Option<f64> = None;
    const HAS_CARRIER: bool = true;

    fn partition(eta: f64) -> f64 {
        libm::exp(eta)
    }

    fn slopes(eta: f64) -> [f64; 2] {
        [libm::exp(eta), 1.0]
    }

    fn carrier(y: f64) -> f64 {
        libm::lgamma(y + 1.0)
    }

    fn sample(eta: f64, rng: &mut Rng) -> f64 {
        let mean = libm::exp(eta).min(LARGEST_MEAN);
        rand_distr::Poisson::new(mean).map_or(0.0, |poisson| poisson.sample(rng))
    }
}

impl Partition for Poisson {
    #[inline(always)]
    fn value_and_slope<V: Arithmetic>(m: V) -> (V, V) {
        m.exp_and_slope()
    }

    /// No parabola lies above an exponential: steps that are too long are cut by the line search. One at least, so that they
    /// are not where counts are expected to be few.
    #[inline(always)]
    fn curvature<V: Arithmetic>(m: V, far: bool) -> V {
        let exp = m.exp_and_slope().1;
        if far { V::splat(1.0).max(exp) } else { exp }
    }
}

//! Logistic regression: l = log(1 + e^η) − y η, η = βᵀx + β₀, the loss of eq. (14).

use std::sync::Arc;

use rand::distr::Distribution;
use rand_distr::Open01;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::regression::{self, Family};
use super::{Context, Model, Response};
use crate::config::Complaint;
use crate::data::Dataset;
use crate::kernel::Arithmetic;
use crate::kernel::regression::Partition;
use crate::math::softplus;
use crate::process::BaseMeasure;
use crate::process::base::BernoulliResponse;
use crate::rng::Rng;

pub const STARTER: &str = include_str!("../../configs/starters/logistic.toml");

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Config(regression::Config);

impl Config {
    pub fn build(&self, context: &Context) -> Result<Box<dyn Model>, Vec<Complaint>> {
        self.0.build::<Logistic>(context)
    }
}

pub struct Logistic;

fn sigma(eta: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-eta))
}

impl Family for Logistic {
    const RESPONSE: Response = Response::Binary;
    const LARGEST: Option<f64> = Some(1.0);

    fn partition(eta: f64) -> f64 {
        softplus(eta)
    }

    fn slopes(eta: f64) -> [f64; 2] {
        let slope = sigma(eta);
        [slope, 1.0 - slope]
    }

    fn sample(eta: f64, rng: &mut Rng) -> f64 {
        let u: f64 = Open01.sample(rng);
        f64::from(u < sigma(eta))
    }

    /// Two responses are finitely many.
    fn base(eta: Vec<f64>, rows: &Arc<Dataset>) -> Box<dyn BaseMeasure> {
        Box::new(BernoulliResponse::new(eta.into_iter().map(sigma).collect(), rows.clone()))
    }
}

impl Partition for Logistic {
    #[inline(always)]
    fn value_and_slope<V: Arithmetic>(m: V) -> (V, V) {
        let (zero, one) = (V::splat(0.0), V::splat(1.0));
        // e^-|m| never overflows; σ and log(1 + e^m) follow from it on either side of 0.
        let positive = zero.max(m);
        let e = m.sub(positive.add(positive)).exp();
        let (ln, sigma) = one.add(e).ln_and_quotient(m.if_below(zero, e, one));
        (positive.add(ln), sigma)
    }

    /// The parabola that touches at ±m lies above (Jaakkola and Jordan 2000).
    #[inline(always)]
    fn curvature<V: Arithmetic>(m: V, far: bool) -> V {
        let (zero, one) = (V::splat(0.0), V::splat(1.0));
        let negative = m.if_below(zero, m, zero.sub(m));
        let e = negative.exp();
        let above = one.add(e);
        if !far {
            return e.div(above.mul(above));
        }
        let slope = V::splat(-0.5).mul(one.sub(e)).div(above.mul(negative));
        // The quotient loses its digits near 0, where it is ¼ to 2·10⁻⁸.
        negative.if_below(V::splat(-1e-3), slope, V::splat(0.25))
    }

    #[inline(always)]
    fn log_density<V: Arithmetic>(m: V, y: V) -> V {
        let (zero, one) = (V::splat(0.0), V::splat(1.0));
        // The sign of 2y − 1 turns the margin towards the response.
        let towards = m.mul(y.add(y).sub(one));
        let negative = towards.if_below(zero, towards, zero);
        let away = negative.add(negative).sub(towards);
        negative.sub(one.add(away.exp()).ln())
    }
}

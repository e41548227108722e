//! The conventional Bayesian regression of eq. (12): βⱼ ~ N(0, 1/λⱼ), λⱼ ~ Gamma(a, b), a flat prior on the intercept or a
//! normal one; or with λ integrated out, which leaves the penalty as a prior.

use std::f64::consts::TAU;

use super::{Family, Regression};
use crate::data::Dataset;
use crate::kernel::regression::loss_and_gradient;
use crate::kernel::{LANES, Line};
use crate::math::log_normal_density;
use crate::model::Joint;
use crate::model::{Block, Model, Support};
use crate::penalty::Shape;

pub(super) struct RegressionJoint<'a, F: Family> {
    pub model: &'a Regression<F>,
    pub data: &'a Dataset,
    /// Mass of each row, and that times its response.
    pub mass: Vec<f64>,
    pub ones: Vec<f64>,
    /// Σ w h(y).
    pub carrier: f64,
    /// a and b, where λ is a parameter.
    pub hierarchy: Option<[f64; 2]>,
}

impl<F: Family> RegressionJoint<'_, F> {
    /// log π(β), and its derivatives added to `gradient`: −n γ g(β), normalised.
    fn log_marginal_prior(&self, beta: &[f64], gradient: &mut [f64]) -> f64 {
        let n = self.data.mass();
        let (d, model) = (beta.len() as f64, self.model);
        let lines: Vec<Line> = beta.iter().map(|b| Line([*b; LANES])).collect();
        let mut by_lines = vec![Line::default(); beta.len()];
        let mut penalty = model.penalise(&lines, &mut by_lines)[0];
        let mut by_beta: Vec<f64> = by_lines.iter().map(|line| line[0]).collect();
        let kink = model.gamma * model.penalty.kink();
        if kink > 0.0 {
            penalty += kink * beta.iter().map(|b| b.abs()).sum::<f64>();
            by_beta.iter_mut().zip(beta).for_each(|(g, b)| *g += kink * b.signum());
        }
        let constant = model.penalty.log_normaliser(n * model.gamma);
        gradient.iter_mut().zip(&by_beta).for_each(|(g, p)| *g -= n * p);
        d * constant - n * penalty
    }

    /// log π(β, λ), and its derivatives by β added, by log λ stored.
    fn log_prior(
        &self,
        [a, b]: [f64; 2],
        beta: &[f64],
        lambda: &[f64],
        by_beta: &mut [f64],
        by_lambda: &mut [f64],
    ) -> f64 {
        let constant = a * libm::log(b) - libm::lgamma(a) - 0.5 * libm::log(TAU);
        let mut sum = 0.0;
        for (j, (beta, lambda)) in beta.iter().zip(lambda).enumerate() {
            let exponent = lambda * (0.5 * beta * beta + b);
            sum += (a - 0.5) * libm::log(*lambda) - exponent + constant;
            by_beta[j] -= lambda * beta;
            by_lambda[j] = a - 0.5 - exponent;
        }
        sum
    }
}

impl<F: Family> Joint for RegressionJoint<'_, F> {
    fn names(&self) -> Vec<String> {
        let lambda = self.model.columns.iter().map(|c| format!("lambda.{c}"));
        let lambda = lambda.filter(|_| self.hierarchy.is_some());
        self.model.names().into_iter().chain(lambda).collect()
    }

    fn blocks(&self) -> Vec<Block> {
        let d = self.model.d();
        let lambda = Block { name: "lambda".into(), range: d + 1..2 * d + 1, support: Support::Positive };
        let lambda = Some(lambda).filter(|_| self.hierarchy.is_some() && d > 0);
        self.model.blocks().into_iter().chain(lambda).collect()
    }

    fn log_density(&self, theta: &[f64], gradient: Option<&mut [f64]>) -> f64 {
        let d = self.model.d();
        let mut unused = Vec::new();
        let gradient = gradient.unwrap_or_else(|| {
            unused = vec![0.0; theta.len()];
            &mut unused
        });
        let (by_theta, by_lambda) = gradient.split_at_mut(d + 1);
        let (beta, lambda) = (&theta[..d], &theta[d + 1..]);
        let panel = self.data.x.panel();
        let loss =
            loss_and_gradient::<F>(self.model.level, panel, &self.mass, &self.ones, beta, theta[d], by_theta);
        by_theta.iter_mut().for_each(|g| *g = -*g);
        let log_prior = match self.hierarchy {
            Some(ab) => self.log_prior(ab, beta, lambda, &mut by_theta[..d], by_lambda),
            None => self.log_marginal_prior(beta, &mut by_theta[..d]),
        };
        let of_intercept = self.model.intercept_prior.map_or(0.0, |(mean, sd)| {
            by_theta[d] -= (theta[d] - mean) / (sd * sd);
            log_normal_density(theta[d], mean, sd)
        });
        log_prior - loss - self.carrier + of_intercept
    }
}

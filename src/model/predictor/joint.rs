//! Conventional Bayes: Π f_θ(yᵢ) exp(−n γ Σ fⱼ g(βⱼ)), the prior normalised where it can be; flat on intercepts and on the logarithm of
//! what is positive, unless the experiment says otherwise.

use super::{Predictor, objective};
use crate::math::log_normal_density;
use crate::model::{Block, Joint, Support};
use crate::penalty::Shape;
use crate::process::Measure;

pub(super) struct PredictorJoint<'a> {
    pub model: &'a Predictor,
    pub f: Measure<'a>,
}

impl PredictorJoint<'_> {
    /// log π(β), and its derivatives added.
    fn of_coefficients(&self, theta: &[f64], gradient: &mut [f64]) -> f64 {
        let (model, n) = (self.model, self.model.n);
        let mut by_penalty = vec![0.0; theta.len()];
        let penalty = model.penalise(theta, &mut by_penalty) + model.kinks(theta);
        let factors = model.all_factors();
        for (j, g) in gradient.iter_mut().enumerate() {
            let side = factors.get(j).map_or(0.0, |f| model.kink() * f * theta[j].signum());
            *g -= n * (by_penalty[j] + if model.kink() > 0.0 { side } else { 0.0 });
        }
        let constant =
            |f: &f64| if *f > 0.0 { model.penalty.log_normaliser(n * model.gamma * f) } else { 0.0 };
        factors.iter().map(constant).sum::<f64>() - n * penalty
    }

    /// log π of what is beside the coefficients, and its derivatives added.
    fn of_the_rest(&self, theta: &[f64], gradient: &mut [f64]) -> f64 {
        let mut sum = 0.0;
        for block in self.blocks().into_iter().skip(1) {
            let prior = match block.support {
                Support::Real => self.model.intercept_prior,
                support if support.is_positive() => self.model.auxiliary_prior,
                _ => None,
            };
            for j in block.range {
                let positive = block.support.is_positive();
                let value = if positive { libm::log(theta[j]) } else { theta[j] };
                if let Some((mean, sd)) = prior {
                    sum += log_normal_density(value, mean, sd);
                    gradient[j] -= (value - mean) / (sd * sd);
                }
                // A density of log θ is 1/θ of it on θ.
                if positive {
                    sum -= value;
                    gradient[j] -= 1.0;
                }
            }
        }
        sum
    }
}

impl Joint for PredictorJoint<'_> {
    fn names(&self) -> Vec<String> {
        self.model.names_of()
    }

    fn blocks(&self) -> Vec<Block> {
        self.model.blocks_of()
    }

    fn log_density(&self, theta: &[f64], gradient: Option<&mut [f64]>) -> f64 {
        let mut unused = Vec::new();
        let gradient = gradient.unwrap_or_else(|| {
            unused = vec![0.0; theta.len()];
            &mut unused
        });
        gradient.fill(0.0);
        let loss: f64 =
            self.f.parts().map(|part| objective::add_part(self.model, &part, theta, gradient)).sum();
        gradient.iter_mut().for_each(|g| *g = -*g);
        let prior = self.of_coefficients(theta, gradient) + self.of_the_rest(theta, gradient);
        prior - loss - objective::carrier(&*self.model.law, &self.f)
    }
}

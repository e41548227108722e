//! Robust linear regression of numbers: a loss of the residual z = (y − η)/σ that grows more slowly than its square.

use rand::distr::Distribution;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::linear::Sigma;
use super::predictor::{Extra, Law, Outcome, config};
use super::{Context, Model, Response};
use crate::config::{Complaint, Positive, complaint};
use crate::rng::Rng;

pub const STARTER: &str = include_str!("../../configs/starters/robust.toml");

config! {
    /// The loss, and where it bends, in units of σ.
    loss: Bend,
    /// σ: a number, or "estimated". Left out: estimated, which "tukey" and "welsch" cannot be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sigma: Option<Sigma>,
}

/// How a loss bends away from the square.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Bend {
    /// z²/2, from |z| = c on c|z| − c²/2. With σ estimated: (σ + σ ρ(z))/2 with ρ twice that, and c above 1.
    Huber(Positive),
    /// −log of the density of a Student-t with so many degrees of freedom and scale σ: the one that is a likelihood.
    StudentT(Positive),
    /// c²/6 (1 − (1 − z²/c²)³), from |z| = c on c²/6. It has many minima: restarts matter.
    Tukey(Positive),
    /// c²/2 (1 − exp(−z²/c²)). It has many minima: restarts matter.
    Welsch(Positive),
}

impl Config {
    pub fn build(&self, context: &Context) -> Result<Box<dyn Model>, Vec<Complaint>> {
        let sigma = match self.sigma {
            Some(Sigma::Number(sigma)) => Some(sigma.get()),
            Some(Sigma::Named(_)) | None => None,
        };
        match self.loss {
            Bend::Tukey(_) | Bend::Welsch(_) if sigma.is_none() => {
                let message = "must be a number: this loss has no minimum in σ";
                return Err(vec![complaint("sigma", message)]);
            }
            Bend::Huber(c) if sigma.is_none() && c.get() <= 1.0 => {
                let message = "must be above 1 where σ is estimated: below it σ has no minimum";
                return Err(vec![complaint("loss.huber", message)]);
            }
            _ => {}
        }
        self.common().build(Robust { bend: self.loss, sigma }, context)
    }
}

/// Where Huber's loss bends, in units of σ: so far out that it is the square of every residual, and where it is usual.
const SQUARES: f64 = 1e100;
const TIP: f64 = 1.345;
/// Multiples of c from where a row has less than a hundred millionth of its weight.
const GONE: f64 = 4.3;

#[derive(Clone)]
pub struct Robust {
    pub bend: Bend,
    /// `None`: a parameter.
    pub sigma: Option<f64>,
}

/// σ, its logarithm, and the constant of a density.
pub struct At {
    sigma: f64,
    log_sigma: f64,
    constant: f64,
}

/// ρ(z) and ρ′(z).
fn rho(bend: Bend, z: f64) -> (f64, f64) {
    match bend {
        Bend::Huber(c) if z.abs() > c.get() => {
            (c.get() * z.abs() - 0.5 * c.get() * c.get(), c.get() * z.signum())
        }
        Bend::Huber(_) => (0.5 * z * z, z),
        Bend::StudentT(freedom) => {
            let (nu, square) = (freedom.get(), z * z);
            (0.5 * (nu + 1.0) * libm::log1p(square / nu), (nu + 1.0) * z / (nu + square))
        }
        Bend::Tukey(c) => {
            let (square, left) = (c.get() * c.get(), (1.0 - z * z / (c.get() * c.get())).max(0.0));
            (square / 6.0 * (1.0 - left * left * left), z * left * left)
        }
        Bend::Welsch(c) => {
            let (square, left) = (c.get() * c.get(), libm::exp(-z * z / (c.get() * c.get())));
            (-0.5 * square * libm::expm1(-z * z / square), z * left)
        }
    }
}

impl Law for Robust {
    type At = At;

    fn response(&self) -> Response {
        Response::Real
    }

    fn extras(&self) -> Vec<Extra> {
        Vec::from_iter(self.sigma.is_none().then(|| Extra::scale("sigma", 1.0)))
    }

    fn at(&self, phi: &[f64]) -> At {
        let sigma = self.sigma.unwrap_or_else(|| phi[0]);
        let constant = match self.bend {
            Bend::StudentT(freedom) => {
                let nu = freedom.get();
                libm::lgamma(0.5 * nu) - libm::lgamma(0.5 * (nu + 1.0))
                    + 0.5 * libm::log(nu * std::f64::consts::PI)
            }
            _ => 0.0,
        };
        At { sigma, log_sigma: libm::log(sigma), constant }
    }

    fn loss(&self, at: &At, of: Outcome, eta: &[f64], by_eta: &mut [f64], by_phi: &mut [f64]) -> f64 {
        let z = (of.y - eta[0]) / at.sigma;
        let (rho, slope) = rho(self.bend, z);
        let concomitant = matches!(self.bend, Bend::Huber(_)) && self.sigma.is_none();
        // Huber's joint loss of η and σ is convex in both (Huber 1981, section 7.7).
        let scale = if concomitant { at.sigma } else { 1.0 };
        by_eta[0] = -scale * slope / at.sigma;
        let (value, by_log_sigma) = match self.bend {
            Bend::Huber(_) if concomitant => (at.sigma * (0.5 + rho), at.sigma * (0.5 + rho - z * slope)),
            Bend::StudentT(_) => (rho + at.log_sigma + at.constant, 1.0 - z * slope),
            _ => (rho, -z * slope),
        };
        by_phi.fill(by_log_sigma);
        value
    }

    fn is_likelihood(&self) -> bool {
        matches!(self.bend, Bend::StudentT(_))
    }

    /// The centre, of which the mean is the natural reading where there is one.
    fn mean(&self, _at: &At, eta: &[f64]) -> Option<f64> {
        Some(eta[0])
    }

    fn sample(&self, at: &At, eta: &[f64], rng: &mut Rng) -> f64 {
        match self.bend {
            Bend::StudentT(freedom) => {
                let t = rand_distr::StudentT::new(freedom.get()).map_or(f64::NAN, |t| t.sample(rng));
                eta[0] + at.sigma * t
            }
            _ => f64::NAN,
        }
    }

    /// All but Huber's loss may have several.
    fn has_one_minimum(&self) -> bool {
        matches!(self.bend, Bend::Huber(_))
    }

    /// Least squares, then the sum of absolute residuals, but for its tip.
    fn ways(&self) -> Vec<Robust> {
        let huber = |c: f64| Positive::new(c).map(|c| Robust { bend: Bend::Huber(c), sigma: self.sigma });
        match self.bend {
            Bend::Tukey(_) | Bend::Welsch(_) => [SQUARES, TIP].into_iter().filter_map(huber).collect(),
            Bend::Huber(_) | Bend::StudentT(_) => Vec::new(),
        }
    }

    fn reaches(&self, at: &At, of: Outcome, eta: &[f64]) -> bool {
        let z = ((of.y - eta[0]) / at.sigma).abs();
        match self.bend {
            Bend::Tukey(c) => z < c.get(),
            Bend::Welsch(c) => z < GONE * c.get(),
            Bend::Huber(_) | Bend::StudentT(_) => true,
        }
    }

    fn wants(&self, train: &crate::data::Dataset) -> Option<Complaint> {
        if self.sigma.is_some() { None } else { super::two_responses(train, "sigma") }
    }
}

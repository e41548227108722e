//! Linear regression: l = (y − η)²/2, or −log N(y; η, σ²) with σ known or a parameter. The minimum is known through Σ w z zᵀ with
//! z = (x, 1, y), which are had for blocks of draws in one matrix product; penalties act on these sums alone.

mod moments;
mod solve;

use std::f64::consts::TAU;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use rand::distr::Distribution;
use rand_distr::StandardNormal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::predictor::{Extra, Law, Outcome, Predictor, config};
use super::{Block, Context, Joint, Model, Response, Sampled, Search};
use crate::config::{Complaint, Positive};
use crate::data::Dataset;
use crate::optim::Minimum;
use crate::process::{BaseMeasure, Measure};
use crate::rng::Rng;
use moments::Design;
use solve::Problem;

pub const STARTER: &str = include_str!("../../../configs/starters/linear.toml");

config! {
    /// σ: a number, or "estimated", and the loss is that of a normal density. Left out: least squares, which is no likelihood.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sigma: Option<Sigma>,
}

/// The standard deviation of a response, or the scale of its residuals.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Sigma {
    Number(Positive),
    Named(Estimated),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Estimated {
    /// A parameter, minimised over with the coefficients.
    Estimated,
}

impl Config {
    pub fn build(&self, context: &Context) -> Result<Box<dyn Model>, Vec<Complaint>> {
        let noise = match self.sigma {
            None => Noise::LeastSquares,
            Some(Sigma::Number(sigma)) => Noise::Known(sigma.get()),
            Some(Sigma::Named(Estimated::Estimated)) => Noise::Estimated,
        };
        let law = Normal { noise };
        let model = self.common().predictor(Arc::new(law.clone()), context)?;
        Ok(Box::new(Linear { model, law, design: OnceLock::new() }))
    }
}

/// What is known of the spread of responses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Noise {
    LeastSquares,
    Known(f64),
    Estimated,
}

#[derive(Clone)]
pub struct Normal {
    pub noise: Noise,
}

impl Law for Normal {
    /// σ; 1 for least squares.
    type At = f64;

    fn response(&self) -> Response {
        Response::Real
    }

    fn extras(&self) -> Vec<Extra> {
        Vec::from_iter((self.noise == Noise::Estimated).then(|| Extra::scale("sigma", 1.0)))
    }

    fn at(&self, phi: &[f64]) -> f64 {
        match self.noise {
            Noise::LeastSquares => 1.0,
            Noise::Known(sigma) => sigma,
            Noise::Estimated => phi[0],
        }
    }

    fn loss(&self, sigma: &f64, of: Outcome, eta: &[f64], by_eta: &mut [f64], by_phi: &mut [f64]) -> f64 {
        let z = (of.y - eta[0]) / sigma;
        by_eta[0] = -z / sigma;
        by_phi.fill(1.0 - z * z);
        0.5 * z * z + self.constant(*sigma)
    }

    fn is_likelihood(&self) -> bool {
        self.noise != Noise::LeastSquares
    }

    fn mean(&self, _sigma: &f64, eta: &[f64]) -> Option<f64> {
        Some(eta[0])
    }

    fn sample(&self, sigma: &f64, eta: &[f64], rng: &mut Rng) -> f64 {
        let z: f64 = StandardNormal.sample(rng);
        eta[0] + sigma * z
    }

    fn wants(&self, train: &Dataset) -> Option<Complaint> {
        if self.noise == Noise::Estimated { super::two_responses(train, "sigma") } else { None }
    }
}

impl Normal {
    /// What the loss has beside z²/2.
    fn constant(&self, sigma: f64) -> f64 {
        match self.noise {
            Noise::LeastSquares => 0.0,
            _ => libm::log(sigma) + 0.5 * libm::log(TAU),
        }
    }
}

/// The regression, its minimum by sums of products; all else is that of any [`Predictor`].
struct Linear {
    model: Predictor,
    law: Normal,
    design: OnceLock<Design>,
}

/// Beyond so many columns products of pairs of them are too many, and searches go row by row.
const LARGEST: usize = 300;

impl Linear {
    fn minimum(&self, design: &Design, sums: &[f64], search: &Search) -> Minimum {
        let problem = Problem::new(&self.model, &self.law, design, sums, search.f);
        let start = &search.start;
        let Some(solution) = problem.solve(start) else { return self.model.minimise(search.f, start) };
        let status = self.model.flaw(search.f).unwrap_or(solution.status);
        Minimum {
            theta: solution.theta,
            value: solution.value,
            iterations: solution.iterations,
            gradient: solution.gradient,
            status,
        }
    }
}

impl Model for Linear {
    fn names(&self) -> Vec<String> {
        self.model.names()
    }

    fn blocks(&self) -> Vec<Block> {
        self.model.blocks()
    }

    fn loss(&self, theta: &[f64], f: &Measure) -> f64 {
        self.model.loss(theta, f)
    }

    fn gradient(&self, theta: &[f64], f: &Measure) -> Option<Vec<f64>> {
        self.model.gradient(theta, f)
    }

    fn minimise(&self, f: &Measure, start: &[f64]) -> Minimum {
        self.minimise_block(&[Search::new(f, start.to_vec())]).remove(0)
    }

    fn minimise_block(&self, searches: &[Search]) -> Vec<Minimum> {
        if self.model.d() > LARGEST {
            return self.model.minimise_block(searches);
        }
        let alike = |a: &Search, b: &Search| std::ptr::eq(a.f.observed(), b.f.observed());
        let of_chunk = |searches: &[Search]| {
            let observed = searches[0].f.observed();
            let design = self.design.get_or_init(|| Design::new(observed, self.model.has_intercept()));
            let sums = design.sums(observed, &searches.iter().map(|s| s.f).collect::<Vec<_>>());
            let solve = |(search, sums): (&Search, Vec<f64>)| self.minimum(design, &sums, search);
            searches.iter().zip(sums).map(solve).collect::<Vec<_>>()
        };
        searches.chunk_by(alike).flat_map(of_chunk).collect()
    }

    fn block_size(&self) -> usize {
        self.model.block_size()
    }

    fn looking(&self, rows: &Dataset) -> f64 {
        self.model.looking(rows)
    }

    fn layouts(&self, rows: &Dataset) -> f64 {
        self.model.layouts(rows)
    }

    fn working(&self, rows: &Dataset, draws: usize) -> f64 {
        (draws * rows.n()) as f64
    }

    fn knows_offsets(&self) -> bool {
        true
    }

    fn flaws(&self, train: &Dataset) -> Option<Vec<Complaint>> {
        self.model.flaws(train)
    }

    fn is_likelihood(&self) -> bool {
        self.model.is_likelihood()
    }

    fn log_density(&self, theta: &[f64], at: &Dataset, out: &mut [f64]) -> bool {
        self.model.log_density(theta, at, out)
    }

    fn has_mean(&self) -> bool {
        true
    }

    fn mean(&self, theta: &[f64], at: &Dataset, out: &mut [f64]) {
        self.model.mean(theta, at, out);
    }

    fn respond(&self, theta: &[f64], at: &Dataset, rng: &mut Rng, out: &mut [f64]) -> bool {
        self.model.respond(theta, at, rng, out)
    }

    fn coefficients(&self) -> Option<Range<usize>> {
        self.model.coefficients()
    }

    fn response(&self) -> Option<Response> {
        self.model.response()
    }

    fn joint<'a>(&'a self, data: &'a Dataset) -> Result<Box<dyn Joint + 'a>, Complaint> {
        if !self.is_likelihood() {
            let message = "must be given, a number or \"estimated\": least squares is no likelihood, and conventional Bayes needs one";
            return Err(crate::config::complaint("sigma", message));
        }
        self.model.joint(data)
    }

    fn sampled(&self) -> Option<Sampled> {
        self.model.sampled()
    }

    fn sampling(&self, theta: &[f64], data: &Arc<Dataset>) -> Option<Box<dyn BaseMeasure>> {
        self.model.sampling(theta, data)
    }

    fn prior_predictive(&self, data: &Arc<Dataset>) -> Result<Box<dyn BaseMeasure>, String> {
        self.model.prior_predictive(data)
    }
}

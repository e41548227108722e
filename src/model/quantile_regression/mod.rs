//! Quantile regression (Koenker and Bassett 1978): the pinball loss of y − η, η = βᵀx + β₀, for one quantile or several, each with
//! coefficients of its own. Its minimum is a vertex, where as many rows are met exactly as there are coefficients, and is found exactly.

mod simplex;

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::predictor::{Law, Outcome, Predictor, config};
use super::quantile::Quantiles;
use super::{Block, Context, Model, Response};
use crate::config::{Complaint, complaint};
use crate::data::Dataset;
use crate::optim::{Minimum, Status};
use crate::penalty::Penalty;
use crate::process::Measure;
use simplex::{Lines, Vertex};

pub const STARTER: &str = include_str!("../../../configs/starters/quantile_regression.toml");

config! {
    /// Which quantile, 0.5 is the median; or a list of them, in order.
    q: Quantiles,
}

impl Config {
    pub fn build(&self, context: &Context) -> Result<Box<dyn Model>, Vec<Complaint>> {
        if !matches!(self.penalty, Penalty::None | Penalty::Lasso) {
            let message = "must be \"none\" or \"lasso\": with any other the minimum is no vertex, and could not be found exactly";
            return Err(vec![complaint("penalty", message)]);
        }
        let q = self.q.checked()?;
        let bases = q.iter().map(|_| OnceLock::new()).collect();
        let law = Pinball { q: q.clone(), tags: self.q.tags() };
        let model = self.common().predictor(Arc::new(law), context)?;
        Ok(Box::new(QuantileRegression { model, q, bases }))
    }
}

#[derive(Clone)]
struct Pinball {
    q: Vec<f64>,
    tags: Vec<String>,
}

impl Law for Pinball {
    type At = ();

    fn response(&self) -> Response {
        Response::Real
    }

    fn predictors(&self) -> Vec<String> {
        self.tags.clone()
    }

    fn at(&self, _phi: &[f64]) {}

    fn loss(&self, _at: &(), of: Outcome, eta: &[f64], by_eta: &mut [f64], _by_phi: &mut [f64]) -> f64 {
        let terms = self.q.iter().zip(eta).zip(by_eta).map(|((q, eta), by)| {
            let slope = q - if of.y < *eta { 1.0 } else { 0.0 };
            *by = -slope;
            (of.y - eta) * slope
        });
        terms.sum()
    }

    fn is_likelihood(&self) -> bool {
        false
    }

    fn mean(&self, _at: &(), _eta: &[f64]) -> Option<f64> {
        None
    }

    /// `q10`, `q90`, or `quantile` where it is one.
    fn tells(&self) -> Vec<String> {
        let name = |tag: &String| if tag.is_empty() { "quantile".to_owned() } else { tag.clone() };
        self.tags.iter().map(name).collect()
    }
}

struct QuantileRegression {
    model: Predictor,
    q: Vec<f64>,
    /// Of every quantile: the rows that the fit to the unweighted data meets. Searches begin there, and end in the same vertex
    /// wherever they begin.
    bases: Vec<OnceLock<Option<Vec<usize>>>>,
}

impl QuantileRegression {
    fn lines<'a>(&self, f: &'a Measure<'a>) -> Lines<'a> {
        let weight = self.model.weight(f) * self.model.gamma();
        let lasso = self.model.penalty() == Penalty::Lasso;
        let penalties = self.model.factors().iter().map(|factor| if lasso { weight * factor } else { 0.0 });
        Lines::new(f, self.model.has_intercept(), penalties.collect())
    }

    fn search(&self, lines: &Lines, f: &Measure) -> Option<(Vec<f64>, usize, bool)> {
        let d = self.model.d();
        let (mut betas, mut intercepts, mut pivots, mut done) = (Vec::new(), Vec::new(), 0, true);
        for (q, basis) in self.q.iter().zip(&self.bases) {
            let observed = f.observed();
            let warm = basis.get_or_init(|| {
                let f = Measure::empirical(observed);
                if observed.n() == 0 { None } else { Some(self.lines(&f).minimise(*q, None)?.basis) }
            });
            let Vertex { theta, pivots: made, optimal, .. } = lines.minimise(*q, warm.as_deref())?;
            betas.extend_from_slice(&theta[..d]);
            intercepts.extend_from_slice(&theta[d..]);
            pivots += made;
            done &= optimal;
        }
        betas.extend(intercepts);
        Some((betas, pivots, done))
    }
}

impl Model for QuantileRegression {
    fn names(&self) -> Vec<String> {
        self.model.names()
    }

    fn loss(&self, theta: &[f64], f: &Measure) -> f64 {
        self.model.loss(theta, f)
    }

    fn minimise(&self, f: &Measure, _start: &[f64]) -> Minimum {
        let Some((theta, pivots, optimal)) = self.search(&self.lines(f), f) else {
            let status = self.model.flaw(f).unwrap_or(Status::Failed);
            let theta = vec![f64::NAN; self.names().len()];
            return Minimum { value: f64::NAN, iterations: 0, gradient: f64::NAN, status, theta };
        };
        let status = if optimal { Status::Ok } else { Status::MaxIter };
        let status = self.model.flaw(f).unwrap_or(status);
        Minimum { value: self.loss(&theta, f), iterations: pivots, gradient: 0.0, status, theta }
    }

    fn looking(&self, rows: &Dataset) -> f64 {
        self.model.looking(rows)
    }

    fn layouts(&self, _rows: &Dataset) -> f64 {
        0.0
    }

    /// Weights twice, responses twice, residuals and an order; the same for the fit to all rows that searches begin at.
    fn working(&self, rows: &Dataset, draws: usize) -> f64 {
        (12 * draws * rows.n()) as f64
    }

    fn blocks(&self) -> Vec<Block> {
        Vec::new()
    }

    fn knows_offsets(&self) -> bool {
        true
    }

    fn flaws(&self, train: &Dataset) -> Option<Vec<Complaint>> {
        self.model.flaws(train)
    }

    fn coefficients(&self) -> Option<Range<usize>> {
        self.model.coefficients()
    }

    fn response(&self) -> Option<Response> {
        self.model.response()
    }

    fn predicted(&self) -> Vec<String> {
        self.model.predicted()
    }

    fn predict(&self, theta: &[f64], at: &Dataset, out: &mut [f64]) {
        self.model.predict(theta, at, out);
    }
}

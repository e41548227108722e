//! Losses that are a sum over rows, known by their values and gradients alone: no matrix product, no closed form. An adaptor
//! makes a [`Model`] of any of them: searches of a block share each tile of rows, on the unconstrained scale of θ, and
//! likelihoods serve conventional Bayes.

use std::ops::Range;

use ndarray::ArrayView1;

use super::{Block, Joint, Model, Response, Search, Support, Transform};
use crate::config::{Complaint, complaint};
use crate::data::Dataset;
use crate::optim::batch::{BatchObjective, Trial};
use crate::optim::lbfgs::{self, Settings};
use crate::optim::{Minimum, Optimiser, Status};
use crate::process::{Measure, Part};

/// Some atoms of one origin.
pub struct Tile<'a> {
    part: &'a Part<'a>,
    atoms: Range<usize>,
}

/// A row with its response, and its weight in the measure.
pub struct Atom<'a> {
    pub x: ArrayView1<'a, f64>,
    pub y: f64,
    /// The response is an event, and not censored.
    pub event: bool,
    pub w: f64,
}

impl Tile<'_> {
    pub fn atoms(&self) -> impl Iterator<Item = Atom<'_>> {
        self.atoms.clone().map(|k| Atom {
            x: self.part.row(k),
            y: self.part.response(k).unwrap_or(f64::NAN),
            event: self.part.is_event(k),
            w: self.part.w[k],
        })
    }
}

/// l(row, θ), and a penalty on θ.
pub trait RowLoss: Send + Sync {
    fn names(&self) -> Vec<String>;

    fn blocks(&self) -> Vec<Block>;

    /// Σ w l(row, θ) over a tile; its derivatives are added to `gradient`: by θ, and by log θ where θ is positive or on a simplex.
    fn add(&self, tile: &Tile, theta: &[f64], gradient: &mut [f64]) -> f64;

    /// The smooth part of the penalty, in the same way.
    fn penalise(&self, _theta: &[f64], _gradient: &mut [f64]) -> f64 {
        0.0
    }

    /// Weight of Σ|θⱼ| in the penalty, and over how many of the first entries, which must be real.
    fn kink(&self) -> (f64, usize) {
        (0.0, 0)
    }

    fn response(&self) -> Option<Response> {
        None
    }

    /// Where the regression coefficients stand in θ.
    fn coefficients(&self) -> Option<Range<usize>> {
        None
    }

    /// E[y | x, θ], for a loss that [has one](RowLoss::has_mean).
    fn mean(&self, _x: ArrayView1<f64>, _theta: &[f64]) -> f64 {
        f64::NAN
    }

    /// The response has an expectation that is known.
    fn has_mean(&self) -> bool {
        false
    }

    /// l is −log f: LPPD, NUTS and ADVI have a meaning.
    fn is_likelihood(&self) -> bool {
        false
    }

    /// Censored responses are told from events.
    fn knows_events(&self) -> bool {
        false
    }

    /// What is wrong with the data, as problems of the config.
    fn flaws(&self, _train: &Dataset) -> Option<Vec<Complaint>> {
        None
    }
}

/// A [`RowLoss`] as a model.
pub struct Rows<L> {
    pub loss: L,
    pub optimiser: Optimiser,
    /// n + α.
    pub mass: f64,
    /// Of the data, Σ cᵢ: the penalty as a prior is exp(−n γ g).
    pub n: f64,
}

/// Rows of a tile: it stays in the cache while all searches of a block visit it.
const TILE: usize = 256;
/// Draws of a block.
const BLOCK: usize = 16;
/// Largest gradient entry of a converged search, per unit of the tolerance.
const GRADIENT: f64 = 1e-5;

impl<L: RowLoss> Rows<L> {
    fn settings(&self) -> Settings {
        let (l1, l1_len) = self.loss.kink();
        Settings {
            max_iterations: self.optimiser.max_iterations.get(),
            tolerance: self.optimiser.tolerance.get(),
            mass: self.mass,
            gradient: GRADIENT * self.optimiser.tolerance.get(),
            change: self.optimiser.change.map(|c| c.get()),
            l1,
            l1_len,
        }
    }

    fn kinks(&self, theta: &[f64]) -> f64 {
        let (weight, len) = self.loss.kink();
        weight * theta[..len].iter().map(|t| t.abs()).sum::<f64>()
    }
}

/// Adds up the loss of every search over all atoms, tile by tile.
fn add_up<L: RowLoss>(
    loss: &L,
    block: &[&Measure],
    theta: &[Vec<f64>],
    gradients: &mut [Vec<f64>],
) -> Vec<f64> {
    let parts: Vec<Vec<Part>> = block.iter().map(|f| f.parts().collect()).collect();
    let mut values = vec![0.0; block.len()];
    for p in 0..parts.iter().map(Vec::len).max().unwrap_or(0) {
        let atoms = parts.iter().filter_map(|of| of.get(p)).map(|part| part.w.len()).max().unwrap_or(0);
        for first in (0..atoms).step_by(TILE) {
            for (s, parts) in parts.iter().enumerate() {
                let Some(part) = parts.get(p) else { continue };
                let tile = Tile { part, atoms: first.min(part.w.len())..(first + TILE).min(part.w.len()) };
                values[s] += loss.add(&tile, &theta[s], &mut gradients[s]);
            }
        }
    }
    for (s, value) in values.iter_mut().enumerate() {
        *value += loss.penalise(&theta[s], &mut gradients[s]);
    }
    values
}

/// The searches of a block, in unconstrained coordinates.
struct Objective<'a, L> {
    loss: &'a L,
    transform: &'a Transform,
    block: Vec<&'a Measure<'a>>,
}

impl<L: RowLoss> BatchObjective for Objective<'_, L> {
    fn p(&self) -> usize {
        self.transform.dim()
    }

    fn evaluate(&mut self, trials: &mut [Trial]) {
        let p = self.p();
        let seated: Vec<(usize, usize, usize)> = trials
            .iter()
            .enumerate()
            .flat_map(|(t, trial)| {
                trial.seats.iter().enumerate().filter_map(move |(l, s)| Some((t, l, (*s)?)))
            })
            .collect();
        let block: Vec<&Measure> = seated.iter().map(|&(_, _, search)| self.block[search]).collect();
        let u: Vec<Vec<f64>> = seated.iter().map(|&(t, lane, _)| trials[t].at.theta(lane, p)).collect();
        let theta: Vec<Vec<f64>> = u.iter().map(|u| self.transform.constrain(u).0).collect();
        let mut by_theta: Vec<Vec<f64>> = theta.iter().map(|theta| vec![0.0; theta.len()]).collect();
        let values = add_up(self.loss, &block, &theta, &mut by_theta);
        let mut gradient = vec![0.0; p];
        for (i, (t, lane, _)) in seated.into_iter().enumerate() {
            self.transform.pull_back(&u[i], &by_theta[i], &mut gradient);
            let at = &mut trials[t].at;
            at.values[lane] = values[i];
            at.gradient.iter_mut().zip(&gradient).for_each(|(line, g)| line[lane] = *g);
        }
    }
}

impl<L: RowLoss> Model for Rows<L> {
    fn names(&self) -> Vec<String> {
        self.loss.names()
    }

    fn blocks(&self) -> Vec<Block> {
        self.loss.blocks()
    }

    fn loss(&self, theta: &[f64], f: &Measure) -> f64 {
        let mut gradient = [vec![0.0; theta.len()]];
        add_up(&self.loss, &[f], &[theta.to_vec()], &mut gradient)[0] + self.kinks(theta)
    }

    fn gradient(&self, theta: &[f64], f: &Measure) -> Option<Vec<f64>> {
        let mut gradient = [vec![0.0; theta.len()]];
        add_up(&self.loss, &[f], &[theta.to_vec()], &mut gradient);
        let [mut gradient] = gradient;
        let (kink, len) = self.loss.kink();
        gradient[..len].iter_mut().zip(theta).for_each(|(g, t)| *g += kink * t.signum());
        // A simplex has no derivatives entry by entry.
        for block in self.blocks() {
            match block.support {
                Support::Real | Support::Location => {}
                Support::Positive => block.range.for_each(|j| gradient[j] /= theta[j]),
                Support::Simplex => return None,
            }
        }
        Some(gradient)
    }

    fn minimise(&self, f: &Measure, start: &[f64]) -> Minimum {
        self.minimise_block(&[Search { f, start: start.to_vec() }]).remove(0)
    }

    fn minimise_block(&self, searches: &[Search]) -> Vec<Minimum> {
        let transform = Transform::new(self.blocks());
        let block = searches.iter().map(|s| s.f).collect();
        let starts = searches.iter().map(|s| transform.unconstrain(&s.start)).collect();
        let mut objective = Objective { loss: &self.loss, transform: &transform, block };
        let minima = lbfgs::minimise_block(&mut objective, starts, &self.settings());
        let constrain = |minimum: Minimum| {
            let theta = transform.constrain(&minimum.theta).0;
            let finite = theta.iter().all(|t| t.is_finite());
            let status = if finite { minimum.status } else { Status::Failed };
            Minimum { theta, status, ..minimum }
        };
        minima.into_iter().map(constrain).collect()
    }

    fn block_size(&self) -> usize {
        BLOCK
    }

    fn is_likelihood(&self) -> bool {
        self.loss.is_likelihood()
    }

    fn log_density(&self, theta: &[f64], at: &Dataset, out: &mut [f64]) -> bool {
        if !self.is_likelihood() {
            return false;
        }
        let f = Measure::weighted(at, vec![1.0; at.n()]);
        let mut unused = vec![0.0; theta.len()];
        for part in f.parts() {
            for (k, out) in out.iter_mut().enumerate() {
                *out = -self.loss.add(&Tile { part: &part, atoms: k..k + 1 }, theta, &mut unused);
            }
        }
        true
    }

    fn has_mean(&self) -> bool {
        self.loss.has_mean()
    }

    fn mean(&self, theta: &[f64], at: &Dataset, out: &mut [f64]) {
        for (x, out) in at.x.iter().zip(out) {
            *out = self.loss.mean(x, theta);
        }
    }

    fn response(&self) -> Option<Response> {
        self.loss.response()
    }

    fn coefficients(&self) -> Option<Range<usize>> {
        self.loss.coefficients()
    }

    fn knows_events(&self) -> bool {
        self.loss.knows_events()
    }

    fn flaws(&self, train: &Dataset) -> Option<Vec<Complaint>> {
        self.loss.flaws(train)
    }

    fn joint<'a>(&'a self, data: &'a Dataset) -> Result<Box<dyn Joint + 'a>, Complaint> {
        if !self.is_likelihood() {
            return Err(complaint("", "is a loss without a likelihood, and conventional Bayes needs one"));
        }
        let w = (0..data.n()).map(|i| data.weight(i)).collect();
        Ok(Box::new(RowJoint { model: self, f: Measure::weighted(data, w) }))
    }
}

/// Π f_θ(yᵢ) exp(−n γ g(θ)), flat where there is no penalty: by log θ where θ is positive.
struct RowJoint<'a, L> {
    model: &'a Rows<L>,
    f: Measure<'a>,
}

impl<L: RowLoss> Joint for RowJoint<'_, L> {
    fn names(&self) -> Vec<String> {
        self.model.names()
    }

    fn blocks(&self) -> Vec<Block> {
        self.model.blocks()
    }

    fn log_density(&self, theta: &[f64], gradient: Option<&mut [f64]>) -> f64 {
        let loss = &self.model.loss;
        let (mut of_rows, mut of_penalty) = (vec![0.0; theta.len()], vec![0.0; theta.len()]);
        let penalty = loss.penalise(theta, &mut of_penalty);
        let sum = self.f.parts().map(|part| {
            let atoms = 0..part.w.len();
            loss.add(&Tile { part: &part, atoms }, theta, &mut of_rows)
        });
        let sum: f64 = sum.sum();
        let (kink, len) = loss.kink();
        // A flat prior on log θ is 1/θ on θ.
        let positive = self.blocks().into_iter().filter(|b| b.support == Support::Positive);
        let positive: Vec<usize> = positive.flat_map(|b| b.range).collect();
        let flat: f64 = positive.iter().map(|&j| libm::log(theta[j])).sum();
        if let Some(gradient) = gradient {
            for (j, g) in gradient.iter_mut().enumerate() {
                let side = if j < len { kink * theta[j].signum() } else { 0.0 };
                *g = -of_rows[j] - self.model.n * (of_penalty[j] + side);
            }
            positive.iter().for_each(|&j| gradient[j] -= 1.0);
        }
        -sum - self.model.n * (penalty + self.model.kinks(theta)) - flat
    }
}

//! Losses that are a sum over rows, known by their values and gradients alone: no matrix product, no closed form. An adaptor
//! makes a [`Model`] of any of them: searches of a block share each tile of rows, on the unconstrained scale of θ, and
//! likelihoods serve conventional Bayes.

use std::collections::BTreeMap;
use std::ops::Range;

use ndarray::{Array2, ArrayView1};

mod metric;

pub use metric::{Metric, fit, fit_from};

use super::{Block, Joint, Model, Response, Search, Support, Transform, expectation};
use crate::config::{Complaint, complaint};
use crate::data::Dataset;
use crate::linalg::Cholesky;
use crate::optim::batch::{BatchObjective, Trial};
use crate::optim::lbfgs::{self, Settings};
use crate::optim::{Minimum, Optimiser, Status};
use crate::process::{Measure, Part};
use crate::rng::Rng;

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

/// Σ w l over all rows at θ; derivatives are added as those of [`RowLoss::sum`].
pub type Ready<'a> = dyn Fn(&[f64], &mut [f64]) -> f64 + Send + Sync + 'a;

/// l(row, θ), and a penalty on θ.
pub trait RowLoss: Send + Sync {
    fn names(&self) -> Vec<String>;

    fn blocks(&self) -> Vec<Block>;

    /// Σ w l(row, θ) over a tile; its derivatives are added to `gradient`: by θ, and by log θ where θ is positive or on a simplex.
    /// A loss that takes [whole blocks](RowLoss::on) has no use for it.
    fn add(&self, _tile: &Tile, _theta: &[f64], _gradient: &mut [f64]) -> f64 {
        f64::NAN
    }

    /// The loss on the measures of a block: tile by tile, or as a loss does it that can share more than rows.
    fn on<'a>(&'a self, block: &[&'a Measure<'a>]) -> Box<dyn OnBlock + 'a>
    where
        Self: Sized,
    {
        Box::new(ByTiles { loss: self, block: block.to_vec() })
    }

    /// Σ w l over all atoms of a measure, the penalty aside; derivatives as those of [`RowLoss::add`].
    fn sum(&self, f: &Measure, theta: &[f64], gradient: &mut [f64]) -> f64 {
        let part = |part: Part| self.add(&Tile { part: &part, atoms: 0..part.w.len() }, theta, gradient);
        f.parts().map(part).sum()
    }

    /// [`RowLoss::sum`] over rows that stay the same, made ready once for many points; `None` if there is nothing to make ready.
    fn ready<'a>(&'a self, _data: &'a Dataset, _w: &[f64]) -> Option<Box<Ready<'a>>> {
        None
    }

    /// Numbers beside the rows: layouts of them, and what so many draws in step need of weights and the like.
    fn takes(&self, rows: &Dataset, draws: usize) -> [f64; 2] {
        [0.0, (draws + 2) as f64 * rows.n() as f64]
    }

    /// l of every row into `out`.
    fn losses(&self, theta: &[f64], at: &Dataset, out: &mut [f64]) {
        let f = Measure::weighted(at, vec![1.0; at.n()]);
        let mut unused = vec![0.0; theta.len()];
        for part in f.parts() {
            for (k, out) in out.iter_mut().enumerate() {
                *out = self.add(&Tile { part: &part, atoms: k..k + 1 }, theta, &mut unused);
            }
        }
    }

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

    /// The same of every row into `out`.
    fn means(&self, theta: &[f64], at: &Dataset, out: &mut [f64]) {
        at.x.iter().zip(out).for_each(|(x, out)| *out = self.mean(x, theta));
    }

    /// The response has an expectation that is known.
    fn has_mean(&self) -> bool {
        false
    }

    /// A response drawn from f_θ, where there is a way to.
    fn respond(&self, _x: ArrayView1<f64>, _theta: &[f64], _rng: &mut Rng) -> Option<f64> {
        None
    }

    /// What the number is called that is told of a new row; by default the expectation of its response, where it is known.
    fn predicted(&self) -> Option<String> {
        None
    }

    /// That number of every row into `out`, where it has a [name](RowLoss::predicted).
    fn predict(&self, _theta: &[f64], _at: &Dataset, _out: &mut [f64]) {}

    /// Where searches keep a Hessian that they share as H₀; `None` if they do without.
    fn metric(&self) -> Option<&Metric> {
        None
    }

    /// The minima of some searches, in unconstrained coordinates, by second derivatives of the loss; `None` if it has none that help.
    /// Searches that do not converge are made again with gradients alone.
    fn by_curvature(
        &self,
        _model: &Rows<Self>,
        _transform: &Transform,
        _searches: &[Search],
    ) -> Option<Vec<Minimum>>
    where
        Self: Sized,
    {
        None
    }

    /// Largest gradient entry of a converged search, per unit of the tolerance.
    fn gradient_tolerance(&self) -> f64 {
        GRADIENT
    }

    /// Iterations after which a search is handed to [`RowLoss::finish`] for the first time.
    fn patience(&self) -> usize {
        usize::MAX
    }

    /// Goes on from where a smooth search was left by kinks of the loss.
    fn finish(&self, _on: &dyn OnBlock, _search: usize, _transform: &Transform, minimum: Minimum) -> Minimum {
        minimum
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
/// Draws of a block: few lanes are idle while its last searches end. Fewer where rows are so many that the weights of all would take
/// more than a few dozen megabytes, but enough to share a pass.
const BLOCK: usize = 64;
const SMALLEST_BLOCK: usize = 4;
const WEIGHTS: f64 = 4e6;
/// Largest gradient entry of a converged search, per unit of the tolerance.
const GRADIENT: f64 = 1e-5;

impl<L: RowLoss> Rows<L> {
    pub fn settings(&self) -> Settings {
        let (l1, l1_len) = self.loss.kink();
        Settings {
            max_iterations: self.optimiser.max_iterations.get(),
            tolerance: self.optimiser.tolerance.get(),
            mass: self.mass,
            gradient: self.loss.gradient_tolerance() * self.optimiser.tolerance.get(),
            change: self.optimiser.change.map(|c| c.get()),
            l1,
            l1_factors: vec![1.0; l1_len],
        }
    }

    /// The searches of a block by L-BFGS, in unconstrained coordinates.
    fn by_gradients(&self, transform: &Transform, searches: &[Search]) -> Vec<Minimum> {
        let block: Vec<&Measure> = searches.iter().map(|s| s.f).collect();
        let on = self.loss.on(&block);
        let starts = searches.iter().map(|s| transform.unconstrain(&s.start)).collect();
        let shared = self.loss.metric().zip(block.first());
        let shared = shared.and_then(|(metric, f)| metric.get(self, transform, f.observed()));
        let mut objective = objective(on.as_ref(), transform, shared);
        let settings = self.settings();
        let first =
            Settings { max_iterations: settings.max_iterations.min(self.loss.patience()), ..self.settings() };
        let finish =
            |(search, minimum): (usize, Minimum)| self.loss.finish(on.as_ref(), search, transform, minimum);
        let minima = lbfgs::minimise_block(&mut objective, starts, &first);
        let mut minima: Vec<Minimum> = minima.into_iter().enumerate().map(finish).collect();
        if first.max_iterations < settings.max_iterations {
            self.go_on(on.as_ref(), transform, &settings, &mut minima);
        }
        self.again_from_the_fit(on.as_ref(), transform, block[0].observed(), &settings, &mut minima);
        minima
    }

    /// Regressions whose searches did not come to an end from their own starts are searched again from the fit to the unweighted data,
    /// with the iterations that are left to them.
    fn again_from_the_fit(
        &self,
        on: &dyn OnBlock,
        transform: &Transform,
        data: &Dataset,
        settings: &Settings,
        minima: &mut [Minimum],
    ) {
        let open = |m: &Minimum| m.status == Status::Failed || m.status.is_on_its_way();
        let left = |m: &Minimum| open(m) && m.iterations < settings.max_iterations;
        let lost: Vec<usize> = (0..minima.len()).filter(|&i| left(&minima[i])).collect();
        if lost.is_empty() || self.loss.coefficients().is_none() || self.optimiser.change.is_some() {
            return;
        }
        let Some((u, factor)) = metric::fitted(self, transform, data) else { return };
        for i in lost {
            let one = One { on, search: i };
            let mut again = objective(&one, transform, Some(&factor));
            let found = lbfgs::minimise_block(&mut again, vec![u.clone()], settings).remove(0);
            let iterations = minima[i].iterations + found.iterations;
            if found.status == Status::Ok || !minima[i].beats(&found) {
                minima[i] = found;
            }
            minima[i].iterations = iterations;
        }
    }

    /// Those that second derivatives did not lead to a minimum are searched for again; the lower end counts.
    fn rescued(&self, transform: &Transform, searches: &[Search], mut minima: Vec<Minimum>) -> Vec<Minimum> {
        let lost: Vec<usize> = (0..minima.len()).filter(|&i| minima[i].status != Status::Ok).collect();
        if lost.is_empty() {
            return minima;
        }
        let again: Vec<Search> = lost.iter().map(|&i| searches[i].clone()).collect();
        for (i, found) in lost.into_iter().zip(self.by_gradients(transform, &again)) {
            let iterations = minima[i].iterations + found.iterations;
            if found.status == Status::Ok || !minima[i].beats(&found) {
                minima[i] = found;
            }
            minima[i].iterations = iterations;
        }
        minima
    }

    /// Searches that were handed over and not finished have all their iterations, one by one.
    fn go_on(&self, on: &dyn OnBlock, transform: &Transform, settings: &Settings, minima: &mut [Minimum]) {
        for (search, minimum) in minima.iter_mut().enumerate().filter(|(_, m)| m.status.is_on_its_way()) {
            let one = One { on, search };
            let mut objective = objective(&one, transform, None);
            let start = vec![minimum.theta.clone()];
            let found = lbfgs::minimise_block(&mut objective, start, settings).remove(0);
            let found = self.loss.finish(on, search, transform, found);
            *minimum = Minimum { iterations: minimum.iterations + found.iterations, ..found };
        }
    }

    fn kinks(&self, theta: &[f64]) -> f64 {
        let (weight, len) = self.loss.kink();
        weight * theta[..len].iter().map(|t| t.abs()).sum::<f64>()
    }
}

/// A loss on the measures of a block of searches.
pub trait OnBlock {
    /// ∫ l dF of some searches at their points, with the smooth part of the penalty; derivatives are added to `gradients`, as those
    /// of [`RowLoss::add`].
    fn add(&self, searches: &[usize], theta: &[Vec<f64>], gradients: &mut [Vec<f64>]) -> Vec<f64>;

    /// The rows that a search lives on, by origin, where the loss goes back to them.
    fn rows(&self, _search: usize) -> Vec<&Dataset> {
        Vec::new()
    }
}

/// Adds up the loss of every search over all atoms, tile by tile.
struct ByTiles<'a, L> {
    loss: &'a L,
    block: Vec<&'a Measure<'a>>,
}

impl<L: RowLoss> OnBlock for ByTiles<'_, L> {
    fn add(&self, searches: &[usize], theta: &[Vec<f64>], gradients: &mut [Vec<f64>]) -> Vec<f64> {
        let parts: Vec<Vec<Part>> = searches.iter().map(|&s| self.block[s].parts().collect()).collect();
        let mut values = vec![0.0; searches.len()];
        for p in 0..parts.iter().map(Vec::len).max().unwrap_or(0) {
            let atoms = parts.iter().filter_map(|of| of.get(p)).map(|part| part.w.len()).max().unwrap_or(0);
            for first in (0..atoms).step_by(TILE) {
                for (s, parts) in parts.iter().enumerate() {
                    let Some(part) = parts.get(p) else { continue };
                    let tile =
                        Tile { part, atoms: first.min(part.w.len())..(first + TILE).min(part.w.len()) };
                    values[s] += self.loss.add(&tile, &theta[s], &mut gradients[s]);
                }
            }
        }
        for (s, value) in values.iter_mut().enumerate() {
            *value += self.loss.penalise(&theta[s], &mut gradients[s]);
        }
        values
    }
}

/// One search of a block by itself.
struct One<'a> {
    on: &'a dyn OnBlock,
    search: usize,
}

impl OnBlock for One<'_> {
    fn add(&self, searches: &[usize], theta: &[Vec<f64>], gradients: &mut [Vec<f64>]) -> Vec<f64> {
        self.on.add(&vec![self.search; searches.len()], theta, gradients)
    }
}

/// The searches of a block, in unconstrained coordinates.
struct Objective<'a> {
    on: &'a dyn OnBlock,
    transform: &'a Transform,
    /// H₀ of all searches, and of those that made their own.
    shared: Option<&'a Cholesky>,
    own: BTreeMap<usize, Cholesky>,
}

fn objective<'a>(
    on: &'a dyn OnBlock,
    transform: &'a Transform,
    shared: Option<&'a Cholesky>,
) -> Objective<'a> {
    Objective { on, transform, shared, own: BTreeMap::new() }
}

impl Objective<'_> {
    /// Values and derivatives at the points of some searches.
    fn at(&self, searches: &[usize], u: &[Vec<f64>]) -> (Vec<f64>, Vec<Vec<f64>>) {
        let theta: Vec<Vec<f64>> = u.iter().map(|u| self.transform.constrain(u).0).collect();
        let mut by_theta: Vec<Vec<f64>> = theta.iter().map(|theta| vec![0.0; theta.len()]).collect();
        let values = self.on.add(searches, &theta, &mut by_theta);
        let pull_back = |(u, by_theta): (&Vec<f64>, &Vec<f64>)| {
            let mut by_u = vec![0.0; u.len()];
            self.transform.pull_back(u, by_theta, &mut by_u);
            by_u
        };
        (values, u.iter().zip(&by_theta).map(pull_back).collect())
    }
}

impl BatchObjective for Objective<'_> {
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
        let searches: Vec<usize> = seated.iter().map(|&(_, _, search)| search).collect();
        let u: Vec<Vec<f64>> = seated.iter().map(|&(t, lane, _)| trials[t].at.theta(lane, p)).collect();
        let (values, gradients) = self.at(&searches, &u);
        for (i, (t, lane, _)) in seated.into_iter().enumerate() {
            let at = &mut trials[t].at;
            at.values[lane] = values[i];
            at.gradient.iter_mut().zip(&gradients[i]).for_each(|(line, g)| line[lane] = *g);
        }
    }

    fn precondition(&mut self, searches: &[usize], _far: &[bool], v: &mut Array2<f64>) -> bool {
        let Some(shared) = self.shared else { return false };
        for (search, mut row) in searches.iter().zip(v.outer_iter_mut()) {
            let solved = self.own.get(search).unwrap_or(shared).solve(&row.to_vec());
            row.iter_mut().zip(solved).for_each(|(to, from)| *to = from);
        }
        true
    }

    fn renew(&mut self, search: usize, theta: &[f64], _far: bool) -> bool {
        let factor = self.shared.and_then(|_| metric::hessian(self, search, theta));
        let made = factor.is_some();
        self.own.extend(factor.map(|factor| (search, factor)));
        made
    }

    /// Two passes of differences to either side, for one search and so without rows that are shared.
    fn renewal_cost(&self) -> f64 {
        8.0 * self.p() as f64
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
        self.loss.on(&[f]).add(&[0], &[theta.to_vec()], &mut gradient)[0] + self.kinks(theta)
    }

    fn gradient(&self, theta: &[f64], f: &Measure) -> Option<Vec<f64>> {
        self.value_and_gradient(theta, f).map(|(_, gradient)| gradient)
    }

    fn value_and_gradient(&self, theta: &[f64], f: &Measure) -> Option<(f64, Vec<f64>)> {
        let mut gradient = [vec![0.0; theta.len()]];
        let value = self.loss.on(&[f]).add(&[0], &[theta.to_vec()], &mut gradient)[0] + self.kinks(theta);
        let [mut gradient] = gradient;
        let (kink, len) = self.loss.kink();
        gradient[..len].iter_mut().zip(theta).for_each(|(g, t)| *g += kink * t.signum());
        // A simplex has no derivatives entry by entry.
        for block in self.blocks() {
            match block.support {
                Support::Real | Support::Location | Support::Unit | Support::Ordered => {}
                Support::Positive | Support::Scale | Support::Variance => {
                    block.range.for_each(|j| gradient[j] /= theta[j])
                }
                Support::Simplex | Support::Covariance(_) => return None,
            }
        }
        Some((value, gradient))
    }

    fn minimise(&self, f: &Measure, start: &[f64]) -> Minimum {
        self.minimise_block(&[Search::new(f, start.to_vec())]).remove(0)
    }

    fn minimise_block(&self, searches: &[Search]) -> Vec<Minimum> {
        let transform = Transform::new(self.blocks());
        let minima = match self.loss.by_curvature(self, &transform, searches) {
            Some(minima) => self.rescued(&transform, searches, minima),
            None => self.by_gradients(&transform, searches),
        };
        let constrain = |minimum: Minimum| {
            let theta = transform.constrain(&minimum.theta).0;
            Minimum { theta, ..minimum }.sound()
        };
        minima.into_iter().map(constrain).collect()
    }

    fn layouts(&self, rows: &Dataset) -> f64 {
        self.loss.takes(rows, 1)[0]
    }

    fn working(&self, rows: &Dataset, draws: usize) -> f64 {
        self.loss.takes(rows, draws)[1]
    }

    fn block_size(&self) -> usize {
        ((WEIGHTS / self.n.max(1.0)) as usize).clamp(SMALLEST_BLOCK, BLOCK)
    }

    fn is_likelihood(&self) -> bool {
        self.loss.is_likelihood()
    }

    fn log_density(&self, theta: &[f64], at: &Dataset, out: &mut [f64]) -> bool {
        if !self.is_likelihood() {
            return false;
        }
        self.loss.losses(theta, at, out);
        out.iter_mut().for_each(|out| *out = -*out);
        true
    }

    fn has_mean(&self) -> bool {
        self.loss.has_mean()
    }

    fn mean(&self, theta: &[f64], at: &Dataset, out: &mut [f64]) {
        self.loss.means(theta, at, out);
    }

    fn respond(&self, theta: &[f64], at: &Dataset, rng: &mut Rng, out: &mut [f64]) -> bool {
        at.x.iter().zip(out).all(|(x, out)| match self.loss.respond(x, theta, rng) {
            Some(y) => {
                *out = y;
                true
            }
            None => false,
        })
    }

    fn predicted(&self) -> Vec<String> {
        self.loss.predicted().map_or_else(|| expectation(self), |name| vec![name])
    }

    fn predict(&self, theta: &[f64], at: &Dataset, out: &mut [f64]) {
        match self.loss.predicted() {
            Some(_) => self.loss.predict(theta, at, out),
            None => self.mean(theta, at, out),
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
        let w: Vec<f64> = (0..data.n()).map(|i| data.weight(i)).collect();
        let ready = self.loss.ready(data, &w);
        Ok(Box::new(RowJoint { model: self, f: Measure::weighted(data, w), ready }))
    }
}

/// Π f_θ(yᵢ) exp(−n γ g(θ)), flat where there is no penalty: by log θ where θ is positive.
struct RowJoint<'a, L> {
    model: &'a Rows<L>,
    f: Measure<'a>,
    ready: Option<Box<Ready<'a>>>,
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
        let sum = match &self.ready {
            Some(sum) => sum(theta, &mut of_rows),
            None => loss.sum(&self.f, theta, &mut of_rows),
        };
        let (kink, len) = loss.kink();
        // A flat prior on log θ is 1/θ on θ.
        let positive = self.blocks().into_iter().filter(|b| b.support.is_positive());
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

//! Local searches by mini-batches, eq. (C.2): rows ỹ ~ F, so that the mean of their gradients is that of the loss on average.

use rand::distr::Distribution;
use rand_distr::weighted::WeightedAliasIndex;

use super::{Model, Transform};
use crate::data::Dataset;
use crate::optim::descent::{Sampled, Subsample, descend};
use crate::optim::{Minimum, Status};
use crate::process::Measure;
use crate::rng::Rng;

/// Whether mini-batches can find the minimum of this loss; or why not.
pub fn possible(model: &dyn Model, train: &Dataset) -> Result<(), &'static str> {
    let blocks = model.blocks();
    if blocks.is_empty() {
        return Err(
            "has no use: the minimum of this loss is known in closed form, which takes one look at the rows",
        );
    }
    let transform = Transform::new(blocks);
    let (middle, _) = transform.constrain(&vec![0.0; transform.dim()]);
    let one = train.bare(&[0][..train.n().min(1)]);
    let known = model.gradient(&middle, &Measure::empirical(&one)).is_some();
    if known { Ok(()) } else { Err("follows gradients, and this loss has none: leave it out") }
}

/// A local minimum of the loss under F from `start`, with mini-batches from the stream.
pub fn minimise(model: &dyn Model, f: &Measure, start: &[f64], rule: &Subsample, rng: Rng) -> Minimum {
    let transform = Transform::new(model.blocks());
    let (observed, pseudo) = f.weights();
    let weights: Vec<f64> = observed.iter().chain(pseudo).copied().collect();
    let rows = weights.len();
    let Ok(alias) = WeightedAliasIndex::new(weights) else { return Minimum::failed(start.to_vec(), 0) };
    let size = rule.batch.get();
    let mut objective = Batches { model, f, transform, alias, size, rng, batch: Dataset::default() };
    let start_u = objective.transform.unconstrain(start);
    let end = descend(&mut objective, start_u, rows, rule);
    if end.status == Status::Failed {
        return Minimum::failed(start.to_vec(), end.steps);
    }
    let gradient = end.gradient.iter().fold(0.0f64, |most, g| most.max(g.abs()));
    let (theta, _) = objective.transform.constrain(&end.u);
    Minimum { theta, value: end.value, iterations: end.steps, gradient, status: end.status }
}

/// The loss under F on the unconstrained scale, and a mini-batch of its rows.
struct Batches<'a> {
    model: &'a dyn Model,
    f: &'a Measure<'a>,
    transform: Transform,
    alias: WeightedAliasIndex<f64>,
    size: usize,
    rng: Rng,
    batch: Dataset,
}

impl Batches<'_> {
    /// Value and gradient on the unconstrained scale.
    fn under(&self, u: &[f64], f: &Measure) -> (f64, Vec<f64>) {
        let (theta, _) = self.transform.constrain(u);
        let known = self.model.value_and_gradient(&theta, f);
        let (value, mut by_theta) = known.expect("checked with the experiment");
        // Transforms take derivatives by log θ where θ is positive.
        for block in self.model.blocks() {
            if block.support.is_positive() {
                block.range.for_each(|j| by_theta[j] *= theta[j]);
            }
        }
        let mut by_u = vec![0.0; u.len()];
        self.transform.pull_back(u, &by_theta, &mut by_u);
        (value, by_u)
    }
}

impl Sampled for Batches<'_> {
    fn look(&mut self, u: &[f64]) -> (f64, Vec<f64>) {
        self.under(u, self.f)
    }

    fn next(&mut self) {
        let picked: Vec<usize> = (0..self.size).map(|_| self.alias.sample(&mut self.rng)).collect();
        self.batch = self.f.gather(&picked);
    }

    fn gradient(&mut self, u: &[f64]) -> Vec<f64> {
        self.under(u, &self.f.of_batch(&self.batch)).1
    }
}

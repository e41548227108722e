//! What is summed up over draws: of a chunk, or of a round.

use crate::bayes::importance::{NEGLIGIBLE, WeightSums};
use crate::bytes::bytes;
use crate::data::Dataset;
use crate::evaluate::{Dealing, Estimate, OnTest, Sparsity, predicts};
use crate::experiment::{EvaluateConfig, Metric};
use crate::method::{Made, Trial, log_densities};
use crate::model::{Model, Response};
use crate::report::{DiagnosticsSum, Repeat};
use crate::run::Chunk;
use crate::samples::{Kinship, Sample};

/// Sums over draws, in the order of the draws. Those of chunks are folded in the order of the chunks, so that no bit of
/// them depends on threads, or on when a run was interrupted.
#[derive(Clone, Debug)]
pub struct Sums {
    diagnostics: DiagnosticsSum,
    on_test: Option<OnTest>,
    sparsity: Option<Sparsity>,
    weights: Option<WeightSums>,
}

bytes!(Sums { diagnostics, on_test, sparsity, weights });

/// What is computed of the draws of a round: all metrics that are asked for, or, if none are named, that apply.
pub struct Scores<'a> {
    wanted: Option<&'a [Metric]>,
    model: &'a dyn Model,
    /// The test rows, if anything is asked of them.
    pub test: Option<&'a Dataset>,
    restarts: usize,
    dealing: Dealing,
    epsilon: Option<f64>,
    weighted: bool,
}

impl<'a> Scores<'a> {
    pub fn new(evaluate: &'a EvaluateConfig, draws: u64, trial: &'a Trial) -> Scores<'a> {
        let mut scores = Scores {
            wanted: evaluate.metrics.as_deref(),
            model: trial.model.as_ref(),
            test: None,
            restarts: trial.restarts(),
            dealing: match trial.relation.draws {
                Kinship::Chains { .. } => Dealing::InRuns(draws),
                Kinship::Independent | Kinship::Weighted => Dealing::InTurn,
            },
            epsilon: evaluate.epsilon.map(|e| e.get()),
            weighted: trial.relation.draws == Kinship::Weighted,
        };
        let on_test = [Metric::Lppd, Metric::Mse, Metric::Accuracy, Metric::Auc, Metric::LogLoss];
        if on_test.into_iter().any(|m| scores.wants(m)) {
            let tested = |test: &&Dataset| scores.model.is_likelihood() || predicts(scores.model, test);
            scores.test = trial.test.as_deref().filter(tested);
        }
        scores
    }

    fn wants(&self, metric: Metric) -> bool {
        self.wanted.is_none_or(|m| m.contains(&metric))
    }

    /// A metric that nobody gets unasked.
    fn names(&self, metric: Metric) -> bool {
        self.wanted.is_some_and(|m| m.contains(&metric))
    }

    /// Sums over no draws.
    pub fn none(&self) -> Sums {
        let coefficients = self.model.coefficients().filter(|_| self.wants(Metric::Sparsity));
        Sums {
            diagnostics: DiagnosticsSum::default(),
            on_test: self.test.map(|test| OnTest::new(test.n(), self.restarts, self.dealing)),
            sparsity: coefficients
                .zip(self.epsilon)
                .map(|(range, epsilon)| Sparsity::new(range, epsilon, self.dealing)),
            weights: self.weighted.then(WeightSums::default),
        }
    }

    /// Adds a draw.
    pub fn add(&self, made: &Made, sums: &mut Sums) {
        match made {
            Made::Found(draw, records) => {
                sums.diagnostics.add(self.model, draw);
                if let (Some(on_test), Some(records)) = (&mut sums.on_test, records) {
                    on_test.add(draw, records);
                }
                if let Some(sparsity) = sums.sparsity.as_mut().filter(|_| !draw.failed()) {
                    sparsity.add(draw.index, 0.0, &draw.minimum.theta);
                }
            }
            Made::Drawn { sample, log_weight, densities } => {
                sums.diagnostics.add_sample(sample);
                if let (Some(on_test), Some(densities)) = (&mut sums.on_test, densities) {
                    on_test.add_one(sample.index, *log_weight, densities);
                }
                if let Some(sparsity) = &mut sums.sparsity {
                    sparsity.add(sample.index, *log_weight, &sample.theta);
                }
                sums.weights.iter_mut().for_each(|weights| weights.add(*log_weight, true));
            }
            Made::Dropped { log_weight, .. } => {
                sums.weights.iter_mut().for_each(|weights| weights.add(*log_weight, false));
            }
        }
    }

    /// log p(ỹᵢ) of every test row, eq. (E.10); none where the loss is no likelihood.
    pub fn pointwise(&self, sums: &Sums) -> Vec<f64> {
        let on_test = sums.on_test.as_ref().filter(|_| self.model.is_likelihood());
        on_test.map(|on_test| on_test.predictive().log_predictive(None)).unwrap_or_default()
    }

    /// The numbers of a round.
    pub fn report(&self, sums: &Sums, facts: Repeat) -> Repeat {
        let mut report = Repeat {
            sparsity: sums.sparsity.as_ref().map(Sparsity::estimate),
            diagnostics: sums.diagnostics.diagnostics(),
            by_restarts: sums
                .on_test
                .as_ref()
                .filter(|_| self.model.is_likelihood())
                .map(OnTest::by_restarts)
                .unwrap_or_default(),
            ..facts
        };
        report.diagnostics.importance = sums.weights.map(|weights| weights.weights());
        if let (Some(on_test), Some(test)) = (&sums.on_test, self.test) {
            let predictive = on_test.predictive();
            let y = test.y.as_ref().map(|y| y.as_slice().expect("responses are contiguous"));
            let (lppd, mse, accuracy) = match (self.model.response(), y) {
                (Some(Response::Binary), Some(y)) => {
                    let [lppd, mse, accuracy] = predictive.classification(y);
                    (lppd, Some(mse), Some(accuracy))
                }
                (Some(Response::Class(classes)), Some(y)) => {
                    (predictive.lppd(), None, on_test.accuracy(y, classes))
                }
                (_, y) => (predictive.lppd(), y.and_then(|y| on_test.squared_error(y)), None),
            };
            let likelihood = self.model.is_likelihood();
            report.lppd = (likelihood && self.wants(Metric::Lppd)).then_some(lppd);
            report.log_loss =
                self.names(Metric::LogLoss).then_some(Estimate { value: -lppd.value, mcse: lppd.mcse });
            report.auc = y.filter(|_| self.names(Metric::Auc)).map(|y| predictive.auc(y));
            report.mse = mse.filter(|_| self.wants(Metric::Mse));
            report.accuracy = accuracy.filter(|_| self.wants(Metric::Accuracy));
        }
        report
    }
}

impl Scores<'_> {
    /// A chunk of weighted draws without those that weigh nothing beside the largest before them. A chunk that was made
    /// where these are not known, in a shard, has more of them than one that was made in its turn.
    pub fn filtered(&self, chunk: Chunk, largest: f64) -> Chunk {
        let Some(weights) = chunk.sums.weights else { return chunk };
        let mut largest = largest;
        let mut counts = |row: &Sample| {
            let log_weight = row.extra[0];
            largest = largest.max(log_weight);
            log_weight > largest - NEGLIGIBLE
        };
        let (rows, dropped): (Vec<Sample>, Vec<Sample>) = chunk.rows.iter().cloned().partition(&mut counts);
        if dropped.is_empty() {
            return chunk;
        }
        let mut sums = self.none();
        let parameters = self.model.names().len();
        for row in &rows {
            let densities = self.test.map(|test| log_densities(self.model, parameters, &row.theta, test));
            let made = Made::Drawn { sample: row.clone(), log_weight: row.extra[0], densities };
            self.add(&made, &mut sums);
        }
        rows.iter().for_each(|row| sums.see(row));
        sums.weights = Some(weights.with_kept(rows.len() as u64));
        Chunk { rows, sums, ..chunk }
    }
}

impl Sums {
    /// The largest log weight; −∞ of draws without weights.
    pub fn largest(&self) -> f64 {
        self.weights.map_or(f64::NEG_INFINITY, |weights| weights.largest())
    }

    /// Every weight is 0.
    pub fn weighs_nothing(&self) -> bool {
        self.weights.is_some_and(|weights| weights.largest() == f64::NEG_INFINITY)
    }

    /// Adds what only the row of a draw shows, with the quantities derived from it.
    pub fn see(&mut self, row: &Sample) {
        self.diagnostics.see(row);
    }

    /// Adds the sums of the draws that come next.
    pub fn fold(&mut self, next: &Sums) {
        self.diagnostics.fold(&next.diagnostics);
        if let (Some(sum), Some(next)) = (&mut self.on_test, &next.on_test) {
            sum.fold(next);
        }
        if let (Some(sum), Some(next)) = (&mut self.sparsity, &next.sparsity) {
            sum.fold(next);
        }
        if let (Some(sum), Some(next)) = (&mut self.weights, &next.weights) {
            sum.fold(next);
        }
    }
}

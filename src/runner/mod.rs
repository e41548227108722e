//! One repeat from start to finish: sample, evaluate, report.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use rayon::ThreadPool;

use crate::config::Metric;
use crate::data::Dataset;
use crate::error::Result;
use crate::evaluate::{Dealing, OnTest, Sparsity};
use crate::method::{Findings, Job, Machine, Made};
use crate::model::{Model, Response};
use crate::report::{Diagnostics, DiagnosticsSum, Observations, Repeat};
use crate::samples::{Kinship, Sample};
use crate::study::Study;

/// Runs repeat `repeat` (from 0). Every draw is given to `on_draw`, in order, as soon as it and all before it are done.
/// `on_progress` hears how many more of `sampler.B` are done.
pub fn run_repeat(
    study: &Study,
    repeat: usize,
    pool: &ThreadPool,
    cancel: &AtomicBool,
    mut on_draw: impl FnMut(Sample) -> Result<()>,
    mut on_progress: impl FnMut(u64),
) -> Result<Repeat> {
    let trial = study.take_trial(repeat)?;
    let started = Instant::now();
    let bootstrap = study.experiment.method.is_bootstrap() && trial.prior.alpha() == 0.0;
    let facts = Repeat {
        repeat: repeat + 1,
        seed: trial.seed.0,
        n_train: trial.train.n(),
        n_test: trial.test.as_ref().map_or(0, |t| t.n()),
        draws: study.draws(),
        seconds: 0.0,
        lppd: None,
        mse: None,
        accuracy: None,
        sparsity: None,
        diagnostics: Diagnostics::default(),
        observations: Some(Observations::of(&trial.train, bootstrap)),
        by_restarts: Vec::new(),
        elbo: Vec::new(),
    };
    let draws = study.draws() as u64;
    let dealing = match trial.relation.draws {
        Kinship::Chains { .. } => Dealing::InRuns(draws),
        Kinship::Independent | Kinship::Weighted => Dealing::InTurn,
    };
    let model = trial.model.as_ref();
    let mut scores = Scores::new(study, model, trial.test.as_deref(), trial.restarts(), dealing);
    let test = scores.test;
    let mut sink = |made: Made| {
        scores.add(&made);
        on_draw(match made {
            Made::Found(draw, _) => draw.into_sample(),
            Made::Drawn { sample, .. } => sample,
        })
    };
    let mut job = Job {
        experiment: &study.experiment,
        trial: &trial,
        test,
        machine: Machine { pool, cancel },
        sink: &mut sink,
        on_progress: &mut on_progress,
    };
    let findings = trial.run(&mut job)?;
    let mut done = scores.report(facts);
    let Findings { chains, advi, importance, elbo } = findings;
    done.diagnostics = Diagnostics { chains, advi, importance, ..done.diagnostics };
    Ok(Repeat { elbo, seconds: started.elapsed().as_secs_f64(), ..done })
}

/// What is computed of the draws of a repeat, as they come.
struct Scores<'a> {
    wanted: Option<&'a [Metric]>,
    model: &'a dyn Model,
    /// The test rows, if anything is asked of them.
    test: Option<&'a Dataset>,
    on_test: Option<OnTest>,
    sparsity: Option<Sparsity>,
    diagnostics: DiagnosticsSum,
}

impl<'a> Scores<'a> {
    /// All metrics that are asked for, or, if none are named, that apply.
    fn new(
        study: &'a Study,
        model: &'a dyn Model,
        test: Option<&'a Dataset>,
        restarts: usize,
        dealing: Dealing,
    ) -> Self {
        let evaluate = &study.experiment.evaluate;
        let mut scores = Scores {
            wanted: evaluate.metrics.as_deref(),
            model,
            test: None,
            on_test: None,
            sparsity: None,
            diagnostics: DiagnosticsSum::default(),
        };
        if [Metric::Lppd, Metric::Mse, Metric::Accuracy].into_iter().any(|m| scores.wants(m)) {
            scores.test = test.filter(|_| model.is_likelihood());
            scores.on_test = scores.test.map(|test| OnTest::new(test.n(), restarts, dealing));
        }
        if let (Some(range), Some(epsilon)) = (model.coefficients(), evaluate.epsilon) {
            let sparsity = || Sparsity::new(range, epsilon.get(), dealing);
            scores.sparsity = scores.wants(Metric::Sparsity).then(sparsity);
        }
        scores
    }

    fn wants(&self, metric: Metric) -> bool {
        self.wanted.is_none_or(|m| m.contains(&metric))
    }

    fn add(&mut self, made: &Made) {
        match made {
            Made::Found(draw, densities) => {
                self.diagnostics.add(self.model, draw);
                if let (Some(on_test), Some(densities)) = (&mut self.on_test, densities) {
                    on_test.add(draw, densities);
                }
                if let Some(sparsity) = self.sparsity.as_mut().filter(|_| !draw.failed()) {
                    sparsity.add(draw.index, 0.0, &draw.minimum.theta);
                }
            }
            Made::Drawn { sample, log_weight, densities } => {
                self.diagnostics.add_sample(sample);
                if let (Some(on_test), Some(densities)) = (&mut self.on_test, densities) {
                    on_test.add_one(sample.index, *log_weight, densities);
                }
                if let Some(sparsity) = &mut self.sparsity {
                    sparsity.add(sample.index, *log_weight, &sample.theta);
                }
            }
        }
    }

    fn report(&self, facts: Repeat) -> Repeat {
        let mut report = Repeat {
            sparsity: self.sparsity.as_ref().map(Sparsity::estimate),
            diagnostics: self.diagnostics.diagnostics(),
            by_restarts: self.on_test.as_ref().map(OnTest::by_restarts).unwrap_or_default(),
            ..facts
        };
        if let (Some(on_test), Some(test)) = (&self.on_test, self.test) {
            let predictive = on_test.predictive();
            match test.y.as_ref().filter(|_| self.model.response() == Some(Response::Binary)) {
                Some(y) => {
                    let [lppd, mse, accuracy] =
                        predictive.classification(y.as_slice().expect("responses are contiguous"));
                    report.lppd = self.wants(Metric::Lppd).then_some(lppd);
                    report.mse = self.wants(Metric::Mse).then_some(mse);
                    report.accuracy = self.wants(Metric::Accuracy).then_some(accuracy);
                }
                None => report.lppd = Some(predictive.lppd()),
            }
        }
        report
    }
}

//! One repeat from start to finish: sample, evaluate, report.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use rayon::ThreadPool;

use crate::bootstrap::{Draw, posterior_bootstrap};
use crate::config::{Experiment, FixedInitConfig, Metric};
use crate::data::Dataset;
use crate::error::Result;
use crate::evaluate::{Densities, OnTest, Sparsity, densities};
use crate::model::Model;
use crate::report::{DiagnosticsSum, Repeat};
use crate::study::{ReadyTrial, Study};

/// Runs repeat `repeat` (from 0). Every draw is given to `on_draw`, in order, as soon as it and all before it are done;
/// none is kept.
pub fn run_repeat(
    study: &Study,
    repeat: usize,
    pool: &ThreadPool,
    cancel: &AtomicBool,
    mut on_draw: impl FnMut(Draw) -> Result<()>,
) -> Result<Repeat> {
    let trial = study.trial(repeat)?.scheme(pool, cancel)?;
    let started = Instant::now();
    let mut scores = Scores::new(study, &trial);
    let (model, test) = (scores.model, scores.test);
    let evaluate = |draw: &Draw| {
        let test = test.filter(|_| !draw.failed())?;
        Some(densities(model, draw, test))
    };
    posterior_bootstrap(
        &trial.plan(),
        0..study.draws() as u64,
        pool,
        cancel,
        evaluate,
        |draw, densities| {
            scores.add(&draw, densities.as_ref());
            on_draw(draw)
        },
    )?;
    let seconds = started.elapsed().as_secs_f64();
    Ok(scores.report(repeat, &trial, seconds))
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
    fn new(study: &'a Study, trial: &'a ReadyTrial) -> Self {
        let evaluate = &study.experiment.evaluate;
        let model = trial.model.as_ref();
        let mut scores = Scores {
            wanted: evaluate.metrics.as_deref(),
            model,
            test: None,
            on_test: None,
            sparsity: None,
            diagnostics: DiagnosticsSum::default(),
        };
        if [Metric::Lppd, Metric::Mse, Metric::Accuracy].into_iter().any(|m| scores.wants(m)) {
            scores.test = trial.test.as_deref().filter(|_| model.is_likelihood());
            scores.on_test = scores.test.map(|test| OnTest::new(test.n(), trial.scheme.restarts()));
        }
        if let (Some(range), Some(epsilon)) = (model.coefficients(), evaluate.epsilon) {
            scores.sparsity = scores.wants(Metric::Sparsity).then(|| Sparsity::new(range, epsilon.get()));
        }
        scores
    }

    fn wants(&self, metric: Metric) -> bool {
        self.wanted.is_none_or(|m| m.contains(&metric))
    }

    fn add(&mut self, draw: &Draw, densities: Option<&Densities>) {
        self.diagnostics.add(self.model, draw);
        if let (Some(on_test), Some(densities)) = (&mut self.on_test, densities) {
            on_test.add(draw, densities);
        }
        if let Some(sparsity) = self.sparsity.as_mut().filter(|_| !draw.failed()) {
            sparsity.add(&draw.minimum.theta);
        }
    }

    fn report(&self, repeat: usize, trial: &ReadyTrial, seconds: f64) -> Repeat {
        let mut report = Repeat {
            repeat: repeat + 1,
            seed: trial.seed.0,
            n_train: trial.train.n(),
            n_test: trial.test.as_ref().map_or(0, |t| t.n()),
            draws: self.diagnostics.draws(),
            seconds,
            lppd: None,
            mse: None,
            accuracy: None,
            sparsity: self.sparsity.as_ref().map(Sparsity::estimate),
            diagnostics: self.diagnostics.diagnostics(),
            by_restarts: self.on_test.as_ref().map(OnTest::by_restarts).unwrap_or_default(),
        };
        if let (Some(on_test), Some(test)) = (&self.on_test, self.test) {
            let predictive = on_test.predictive();
            match test.y.as_ref().filter(|_| self.model.coefficients().is_some()) {
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

/// A few words on how draws are made: `RR-NPL R=10`, `FI-NPL`, `NPL`, with α where it is not 0.
pub fn label(experiment: &Experiment) -> String {
    let sampler = &experiment.sampler;
    let mut label = match (&sampler.fixed_init, sampler.restarts) {
        (Some(FixedInitConfig::BestOf(_) | FixedInitConfig::File(_) | FixedInitConfig::Run { .. }), _) => {
            "FI-NPL".to_owned()
        }
        (None, Some(restarts)) => format!("RR-NPL R={}", restarts.get()),
        (None, None) => "NPL".to_owned(),
    };
    match &experiment.prior {
        Some(prior) if prior.alpha.get() > 0.0 => label += &format!(" alpha={}", prior.alpha.get()),
        _ => {}
    }
    label
}

//! One repeat from start to finish: sample, evaluate, report.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use rayon::ThreadPool;

use crate::bootstrap::{Draw, posterior_bootstrap};
use crate::config::{Experiment, FixedInitConfig, Metric};
use crate::error::Result;
use crate::evaluate::{ByRestarts, Estimate, predictive, sparsity};
use crate::report::{Diagnostics, Repeat};
use crate::study::{ReadyTrial, Study};

/// Runs repeat `repeat` (from 0). Every draw goes through `on_draw` in order, as soon as it and all before it are done.
pub fn run_repeat(
    study: &Study,
    repeat: usize,
    pool: &ThreadPool,
    cancel: &AtomicBool,
    mut on_draw: impl FnMut(&Draw) -> Result<()>,
) -> Result<(Repeat, Vec<Draw>)> {
    let trial = study.trial(repeat)?.scheme(pool, cancel)?;
    let started = Instant::now();
    let mut draws: Vec<Draw> = Vec::new();
    posterior_bootstrap(&trial.plan(), 0..study.draws() as u64, pool, cancel, |draw| {
        on_draw(&draw)?;
        draws.push(draw);
        Ok(())
    })?;
    let seconds = started.elapsed().as_secs_f64();
    let scores = score(study, &trial, &draws, pool);
    let report = Repeat {
        repeat: repeat + 1,
        seed: trial.seed.0,
        n_train: trial.train.n(),
        n_test: trial.test.as_ref().map_or(0, |t| t.n()),
        draws: draws.len(),
        seconds,
        lppd: scores.lppd,
        mse: scores.mse,
        accuracy: scores.accuracy,
        sparsity: scores.sparsity,
        diagnostics: Diagnostics::of(trial.model.as_ref(), &draws),
        by_restarts: scores.by_restarts,
    };
    Ok((report, draws))
}

/// The metrics of a repeat.
#[derive(Default)]
struct Scores {
    lppd: Option<Estimate>,
    mse: Option<Estimate>,
    accuracy: Option<Estimate>,
    sparsity: Option<Estimate>,
    by_restarts: Vec<ByRestarts>,
}

/// All metrics that are asked for, or, if none are named, that apply.
fn score(study: &Study, trial: &ReadyTrial, draws: &[Draw], pool: &ThreadPool) -> Scores {
    let evaluate = &study.experiment.evaluate;
    let wanted = |metric: Metric| evaluate.metrics.as_ref().is_none_or(|m| m.contains(&metric));
    let model = trial.model.as_ref();
    let mut scores = Scores::default();
    let on_test = [Metric::Lppd, Metric::Mse, Metric::Accuracy].into_iter().any(wanted);
    if let Some(test) = trial.test.as_ref().filter(|_| on_test && model.is_likelihood()) {
        let (predictive, by_restarts) = predictive(model, draws, test, pool);
        match test.y.as_ref().filter(|_| model.coefficients().is_some()) {
            Some(y) => {
                let [lppd, mse, accuracy] =
                    predictive.classification(y.as_slice().expect("responses are contiguous"));
                scores.lppd = wanted(Metric::Lppd).then_some(lppd);
                scores.mse = wanted(Metric::Mse).then_some(mse);
                scores.accuracy = wanted(Metric::Accuracy).then_some(accuracy);
            }
            None => scores.lppd = Some(predictive.lppd()),
        }
        scores.by_restarts = by_restarts;
    }
    if let (Some(range), Some(epsilon)) = (model.coefficients(), evaluate.epsilon) {
        scores.sparsity = wanted(Metric::Sparsity).then(|| sparsity(draws, range, epsilon.get()));
    }
    scores
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

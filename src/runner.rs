//! One repeat from start to finish: sample, evaluate, report.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use rayon::ThreadPool;

use crate::bootstrap::{Draw, posterior_bootstrap};
use crate::config::{Experiment, FixedInitConfig};
use crate::error::Result;
use crate::evaluate::lppd;
use crate::report::{Diagnostics, Repeat};
use crate::study::Study;

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
    let wanted = study.experiment.evaluate.metrics.as_ref().is_none_or(|m| !m.is_empty());
    let scored = match &trial.test {
        Some(test) if wanted && trial.model.is_likelihood() => {
            Some(lppd(trial.model.as_ref(), &draws, test, pool))
        }
        _ => None,
    };
    let (lppd, by_restarts) = scored.map_or((None, Vec::new()), |(all, by)| (Some(all), by));
    let report = Repeat {
        repeat: repeat + 1,
        seed: trial.seed.0,
        n_train: trial.train.n(),
        n_test: trial.test.as_ref().map_or(0, |t| t.n()),
        draws: draws.len(),
        seconds,
        lppd,
        diagnostics: Diagnostics::of(trial.model.as_ref(), &draws),
        by_restarts,
    };
    Ok((report, draws))
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

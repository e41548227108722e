//! Laws that every registered model obeys, whatever it is: a new model is tested by being registered.

use crate::support::*;

use npl::bootstrap::Scheme;
use npl::model::{STARTERS, Search};
use npl::process::Measure;
use npl::rng::{Purpose, Seed};
use npl::study::ReadyTrial;

/// The starter experiment of every model, ready to be sampled.
fn trials() -> Vec<(&'static str, ReadyTrial)> {
    let pool = pool(2);
    let ready = |(name, starter): (String, String)| {
        let trial = study(&starter).trial(0).unwrap_or_else(|e| panic!("{name}: {e}"));
        let cancel = std::sync::atomic::AtomicBool::new(false);
        let trial = trial.scheme(&pool, &cancel).unwrap_or_else(|e| panic!("{name}: {e}"));
        (&*name.leak(), trial)
    };
    starters().into_iter().map(ready).collect()
}

fn measure(trial: &ReadyTrial, draw: u64) -> Measure<'_> {
    trial.prior.posterior_draw(&trial.train, trial.seed, draw)
}

/// A start as the scheme would draw it; empty for a closed form.
fn start(trial: &ReadyTrial, draw: u64) -> Vec<f64> {
    match trial.scheme.as_ref() {
        Scheme::FixedInit(start) => start.clone(),
        Scheme::RandomRestart { init, .. } => {
            init.draw(&mut trial.seed.stream(npl::rng::Purpose::Init, draw, 0))
        }
    }
}

/// A plausible θ: the fit to another draw.
fn point(trial: &ReadyTrial, draw: u64) -> Vec<f64> {
    trial.model.minimise(&measure(trial, 1000 + draw), &start(trial, 1000 + draw)).theta
}

#[test]
fn every_starter_is_ready_to_run() {
    for (name, starter) in STARTERS {
        assert_eq!(study(starter).experiment.model.name(), *name);
    }
}

#[test]
fn names_match_the_dimension() {
    for (name, trial) in trials() {
        let names = trial.model.names();
        let distinct: std::collections::HashSet<&String> = names.iter().collect();
        assert_eq!(distinct.len(), names.len(), "{name}");
        assert_eq!(point(&trial, 0).len(), names.len(), "{name}");
        let covered: Vec<usize> = trial.model.blocks().into_iter().flat_map(|b| b.range).collect();
        assert!(covered.is_empty() || covered == (0..names.len()).collect::<Vec<_>>(), "{name}");
    }
}

/// ∫ l d(aF + (1 − a)G) = a ∫ l dF + (1 − a) ∫ l dG on the same rows, with γ = 0.
#[test]
fn the_loss_is_linear_in_the_measure() {
    for (name, trial) in trials() {
        let rows = &trial.train;
        let weights = |draw: u64| {
            npl::process::Prior::Noninformative.posterior_draw(rows, trial.seed, draw).weights().0.to_vec()
        };
        for draw in 0..10 {
            let theta = point(&trial, draw);
            let (u, v) = (weights(2 * draw), weights(2 * draw + 1));
            let mixed: Vec<f64> = u.iter().zip(&v).map(|(u, v)| 0.3 * u + 0.7 * v).collect();
            let loss = |w: Vec<f64>| trial.model.loss(&theta, &Measure::weighted(rows, w));
            assert_close(name, loss(mixed), 0.3 * loss(u) + 0.7 * loss(v), 1e-12);
        }
    }
}

/// Rounding aside: 1e-12 relative.
#[test]
fn a_search_never_ends_above_its_start_and_reports_the_loss_it_reached() {
    for (name, trial) in trials() {
        for draw in 0..20 {
            let f = measure(&trial, draw);
            let mut from = vec![point(&trial, draw)];
            from.extend((!trial.model.blocks().is_empty()).then(|| start(&trial, draw)));
            for start in from {
                let minimum = trial.model.minimise(&f, &start);
                let before = trial.model.loss(&start, &f);
                assert!(
                    minimum.value <= before + 1e-12 * before.abs().max(1.0),
                    "{name}: {before} to {}",
                    minimum.value
                );
                assert_close(name, minimum.value, trial.model.loss(&minimum.theta, &f), 1e-12);
            }
        }
    }
}

/// From wherever a search begins: what is not finite is no draw.
#[test]
fn what_is_ok_is_finite() {
    for (name, trial) in trials().into_iter().filter(|(_, trial)| !trial.model.blocks().is_empty()) {
        for draw in 0..12 {
            let f = measure(&trial, draw);
            let start = start(&trial, draw);
            for far in [1.0, 8.0, 60.0, 500.0] {
                let from: Vec<f64> = start.iter().map(|t| far * t).collect();
                let minimum = trial.model.minimise(&f, &from);
                let all = minimum.theta.iter().chain([&minimum.value, &minimum.gradient]);
                let finite = all.into_iter().all(|v| v.is_finite());
                assert!(minimum.status != npl::optim::Status::Ok || finite, "{name} from {far}: {minimum:?}");
            }
        }
    }
}

#[test]
fn a_block_of_searches_is_the_searches_one_by_one_to_the_bit() {
    for (name, trial) in trials() {
        let measures: Vec<Measure> = (0..37).map(|draw| measure(&trial, draw)).collect();
        let one_by_one: Vec<_> =
            measures.iter().zip(0..).map(|(f, draw)| trial.model.minimise(f, &start(&trial, draw))).collect();
        for size in [1, 5, 37] {
            let ids: Vec<usize> = (0..37).collect();
            let searches = |ids: &[usize]| {
                let search = |&i: &usize| Search::new(&measures[i], start(&trial, i as u64));
                trial.model.minimise_block(&ids.iter().map(search).collect::<Vec<_>>())
            };
            let blocks: Vec<_> = ids.chunks(size).flat_map(searches).collect();
            assert_eq!(blocks, one_by_one, "{name} in blocks of {size}");
        }
    }
}

/// A likelihood of responses can be drawn from: predictive intervals and simulated responses need it.
#[test]
fn every_likelihood_of_a_response_draws_responses() {
    let mut drawn = 0;
    for (name, trial) in trials() {
        if trial.model.response().is_none() || !trial.model.is_likelihood() {
            continue;
        }
        let theta = point(&trial, 0);
        let mut y = vec![f64::NAN; trial.train.n()];
        let mut rng = Seed(7).stream(Purpose::Auxiliary, 0, 0);
        let answers = trial.model.respond(&theta, &trial.train, &mut rng, &mut y);
        assert!(answers && y.iter().all(|y| y.is_finite()), "{name}: {y:?}");
        drawn += 1;
    }
    assert!(drawn >= 8, "{drawn} likelihoods");
}

/// Central differences of the loss: relative 1e-6 of the largest derivative.
#[test]
fn gradients_are_derivatives_of_the_loss() {
    let mut checked = Vec::new();
    for (name, trial) in trials() {
        let f = measure(&trial, 3);
        for draw in 0..3 {
            let theta = point(&trial, draw);
            let Some(gradient) = trial.model.gradient(&theta, &f) else { continue };
            checked.push(name);
            let size = gradient.iter().fold(1e-3f64, |m, g| m.max(g.abs()));
            for j in 0..theta.len() {
                let step = 1e-5 * theta[j].abs().max(0.1);
                let at = |by: f64| {
                    let mut theta = theta.clone();
                    theta[j] += by;
                    trial.model.loss(&theta, &f)
                };
                let difference = (at(step) - at(-step)) / (2.0 * step);
                let error = (gradient[j] - difference).abs();
                assert!(error < 1e-6 * size, "{name}, entry {j}: {} for {difference}", gradient[j]);
            }
        }
    }
    checked.dedup();
    assert_eq!(
        checked,
        [
            "logistic",
            "poisson",
            "linear",
            "robust",
            "negative_binomial",
            "gamma",
            "beta",
            "multinomial",
            "ordered",
            "exponential",
            "weibull",
            "custom",
            "mean",
            "normal"
        ]
    );
}

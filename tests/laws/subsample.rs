//! Searches by mini-batches (supplement C): unbiased, at the minimum of every loss that has a gradient, refused for all others.

use crate::support::*;

use npl::config::Document;
use npl::data::Dataset;
use npl::data::files::SearchPath;
use npl::experiment::Experiment;
use npl::model::STARTERS;
use npl::process::{Measure, Prior};
use npl::rng::{Purpose, Seed};
use npl::study::Study;

use rand::distr::Distribution;
use rand_distr::weighted::WeightedAliasIndex;

/// The study of an experiment with settings on top, or what is wrong with it.
fn with(toml: &str, sets: &[&str]) -> Result<Study, String> {
    let sets: Vec<String> = sets.iter().map(|s| (*s).to_owned()).collect();
    let document = Document::parse("test.toml", toml, &sets).map_err(|e| e.to_string())?;
    let experiment: Experiment = document.decode().map_err(|e| e.to_string())?;
    Study::new(document, experiment, SearchPath::default()).map_err(|e| e.to_string())
}

/// Every model either has its draws within a tenth of a posterior standard deviation of the minimum over all rows, or says why
/// mini-batches are not for it.
#[test]
fn every_model_is_minimised_or_refused() {
    let (mut minimised, mut refused) = (Vec::new(), Vec::new());
    for (name, starter) in STARTERS {
        let sets = ["sampler.B=3", "optimiser.subsample={check=1,batch=32,steps=60,change=1e-9,looks=300}"];
        match with(starter, &sets) {
            Err(message) => {
                assert!(message.contains("optimiser.subsample"), "{name}: {message}");
                refused.push(*name);
            }
            Ok(study) => {
                let cancel = std::sync::atomic::AtomicBool::new(false);
                let report = npl::run::run_repeat(&study, 0, &pool(2), &cancel, &mut |_| Ok(())).unwrap();
                let distance = report.diagnostics.subsample.expect("every draw is looked at");
                assert_eq!(distance.draws, 3, "{name}");
                assert!(distance.max < 0.1, "{name}: {} posterior standard deviations off", distance.max);
                minimised.push(*name);
            }
        }
    }
    for name in ["logistic", "poisson", "robust", "weibull", "custom"] {
        assert!(minimised.contains(&name), "{name} was refused");
    }
    for name in ["gmm", "mean", "median", "quantile", "normal"] {
        assert!(refused.contains(&name), "{name} was not refused");
    }
}

/// Eq. (C.2): the mean of a mini-batch's gradient is that of the loss, pseudo-samples included; z-tests on 4000 batches.
#[test]
fn mini_batches_are_unbiased() {
    let data = Dataset::from_values(FIVE.to_vec());
    let model = model("[normal]\nsigma2 = 4.0", &data);
    let pseudo = Dataset::from_values(vec![10.0, -7.0]);
    let w = Prior::Noninformative.posterior_draw(&data, Seed(4), 0).weights().0.to_vec();
    let observed: Vec<f64> = w.iter().map(|w| 0.6 * w).collect();
    let f =
        Measure::new(&data, observed.clone(), npl::process::Pseudo::Own(Box::new(pseudo)), vec![0.3, 0.1]);
    let exact = model.gradient(&[1.5], &f).unwrap()[0];
    let all: Vec<f64> = observed.into_iter().chain([0.3, 0.1]).collect();
    let alias = WeightedAliasIndex::new(all).unwrap();
    for seed in SEEDS {
        let mut rng = Seed(seed).stream(Purpose::Batches, 0, 0);
        let gradients: Vec<f64> = (0..4000)
            .map(|_| {
                let picked: Vec<usize> = (0..4).map(|_| alias.sample(&mut rng)).collect();
                let batch = f.gather(&picked);
                assert_eq!(batch.n(), 4);
                model.gradient(&[1.5], &f.of_batch(&batch)).unwrap()[0]
            })
            .collect();
        let mean = gradients.iter().sum::<f64>() / 4000.0;
        let variance = gradients.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / 3999.0;
        let z = (mean - exact) / (variance / 4000.0).sqrt();
        assert!(z.abs() < LIMIT, "seed {seed}: z = {z}");
    }
}

/// Neither threads nor B matter, and each restart has mini-batches of its own.
#[test]
fn draws_by_mini_batches_are_the_same_on_any_number_of_threads() {
    let starter = STARTERS.iter().find(|(name, _)| *name == "logistic").unwrap().1;
    let draws = |threads: usize, more: &str| {
        let sets = [more, "sampler.R=2", "optimiser.subsample={rule='adagrad',step=0.5,looks=8,check=0}"];
        let study = with(starter, &sets).unwrap();
        let mut thetas = Vec::new();
        let cancel = std::sync::atomic::AtomicBool::new(false);
        let mut keep = |draw: npl::samples::Sample| {
            thetas.push(draw.theta);
            Ok(())
        };
        let report = npl::run::run_repeat(&study, 0, &pool(threads), &cancel, &mut keep).unwrap();
        assert!(report.diagnostics.subsample.is_none(), "nobody was looked at");
        thetas
    };
    let two = draws(2, "sampler.B=6");
    assert_eq!(two, draws(1, "sampler.B=6"));
    assert_eq!(two[..4], draws(3, "sampler.B=4")[..]);
}

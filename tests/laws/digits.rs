//! Responses so large, or so sharp, that most digits of a loss cancel: searches are led by their gradients there, and end where these
//! vanish, to rounding, in few steps.

use std::fmt::Write;

use crate::raw_columns::minima;
use crate::support::*;

use npl::optim::Status;
use npl::process::Measure;

fn noise(i: usize) -> f64 {
    2.0 * ((i as f64 + 1.0) * 12.9898).sin().mul_add(43758.5453, 0.0).rem_euclid(1.0) - 1.0
}

/// Rows with means from half of `level` to twice as much, and responses about them.
fn file(rows: usize, response: impl Fn(usize, f64) -> f64) -> crate::tempfile::NamedTempFile {
    let mut text = "a,b,c,y\n".to_owned();
    for i in 0..rows {
        let (a, b, c) = (noise(3 * i), noise(5 * i + 1), noise(7 * i + 3));
        let y = response(i, 0.2 * a + 0.4 * b + 0.2 * c);
        writeln!(text, "{},{},{c},{y:?}", 20.0 + 5.0 * a, 3000.0 + 100.0 * b).unwrap();
    }
    let file = crate::tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    file
}

fn experiment(file: &crate::tempfile::NamedTempFile, model: &str) -> String {
    format!(
        "name = \"t\"\nseed = 1\n[sampler]\nB = 40\n[data]\ntrain = {:?}\ntarget = \"y\"\nstandardise = \"all\"\n[model.{model}\n",
        file.path().display().to_string()
    )
}

#[test]
fn large_counts_and_sharp_shares_have_minima() {
    let count =
        |level: f64| move |i: usize, eta: f64| (level * (eta + 0.1 * noise(11 * i + 2)).exp()).round();
    let share =
        |spread: f64| move |i: usize, eta: f64| 1.0 / (1.0 + (-eta - spread * noise(11 * i + 2)).exp());
    for rows in [40, 400] {
        let mut cases = Vec::new();
        for level in [370.0, 1e6, 1e10] {
            for model in [
                "poisson]\npenalty = \"none\"",
                "poisson]\npenalty = \"ridge\"\npenalty_weight = \"exponential\"",
                "negative_binomial]\npenalty = \"none\"",
            ] {
                cases.push((format!("{model} about {level}"), file(rows, count(level)), model));
            }
        }
        for spread in [0.1, 0.01] {
            let model = "beta]\npenalty = \"none\"";
            cases.push((format!("{model} within {spread}"), file(rows, share(spread)), model));
        }
        for (what, file, model) in cases {
            let cancel = std::sync::atomic::AtomicBool::new(false);
            let trial = study(&experiment(&file, model)).trial(0).unwrap().scheme(&pool(1), &cancel).unwrap();
            let found = minima(&trial);
            for (draw, minimum) in found.iter().enumerate() {
                assert!(minimum.status == Status::Ok, "{what}, {rows} rows, draw {draw}: {minimum:?}");
                assert!(minimum.iterations < 400, "{what}, {rows} rows, draw {draw}: {minimum:?}");
            }
            if model.starts_with("poisson]\npenalty = \"none\"") {
                scores_vanish(&what, &trial.train, &trial, &found);
            }
        }
    }
}

/// Σ w (e^η − y) x is 0, but for rounding of its terms.
fn scores_vanish(
    what: &str,
    train: &npl::data::Dataset,
    trial: &npl::study::ReadyTrial,
    found: &[npl::optim::Minimum],
) {
    let y = train.y.as_ref().unwrap();
    for (draw, minimum) in found.iter().enumerate() {
        let f: Measure = trial.prior.posterior_draw(train, trial.seed, draw as u64);
        let (mut score, mut size) = ([0.0; 4], [0.0; 4]);
        for ((x, y), w) in train.x.iter().zip(y).zip(f.weights().0) {
            let columns: Vec<f64> = x.iter().copied().chain([1.0]).collect();
            let eta: f64 = columns.iter().zip(&minimum.theta).map(|(x, t)| x * t).sum();
            for (j, x) in columns.iter().enumerate() {
                score[j] += w * (eta.exp() - y) * x;
                size[j] += w * y * x.abs();
            }
        }
        for j in 0..4 {
            let limit = (1e-12 * size[j]).max(2e-9);
            assert!(score[j].abs() <= limit, "{what}, draw {draw}, entry {j}: {} of {}", score[j], size[j]);
        }
    }
}

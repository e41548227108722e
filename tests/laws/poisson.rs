//! Poisson regression: the mean of a group is a Bayesian-bootstrap mean, and score identities hold at every draw.

use std::io::Write;

use crate::support::*;

use npl::optim::Status;

const COUNTS: [f64; 9] = [0.0, 1.0, 3.0, 2.0, 7.0, 0.0, 4.0, 5.0, 1.0];

/// Counts with a dummy column: the first four rows are in group 0.
fn experiment(seed: u64, draws: usize, rest: &str) -> (crate::tempfile::NamedTempFile, String) {
    let mut file = crate::tempfile::NamedTempFile::new().unwrap();
    writeln!(file, "g,y").unwrap();
    COUNTS.iter().enumerate().for_each(|(i, y)| writeln!(file, "{},{y}", u8::from(i >= 4)).unwrap());
    let text = format!(
        "name = \"t\"\nseed = {seed}\n[data]\ntrain = {:?}\ntarget = \"y\"\n[sampler]\nB = {draws}\n{rest}",
        file.path().display().to_string()
    );
    (file, text)
}

/// With a dummy for each group the model is saturated: e^β₀ and e^(β₀ + β) are means under Dirichlet weights of the group's rows,
/// with mean ȳ and variance s²/(n + 1), and they are independent of each other.
#[test]
fn means_of_groups_have_rubins_moments() {
    for seed in SEEDS {
        let (_file, text) = experiment(seed, 4000, "[model.poisson]\npenalty = \"none\"");
        let draws = run(&text);
        assert!(draws.iter().all(|d| d.status == Status::Ok));
        let rates = [
            draws.iter().map(|d| d.theta[1].exp()).collect::<Vec<f64>>(),
            draws.iter().map(|d| (d.theta[0] + d.theta[1]).exp()).collect(),
        ];
        for (rows, rate) in [&COUNTS[..4], &COUNTS[4..]].into_iter().zip(&rates) {
            let n = rows.len() as f64;
            let mean = rows.iter().sum::<f64>() / n;
            let s2 = rows.iter().map(|y| (y - mean).powi(2)).sum::<f64>() / n;
            assert_mean(&format!("seed {seed}"), rate, mean, s2 / (n + 1.0));
        }
        let centre = rates.each_ref().map(|r| npl::math::mean(r));
        let sd = rates.each_ref().map(|r| npl::math::sd(r));
        let products = rates[0].iter().zip(&rates[1]).map(|(a, b)| (a - centre[0]) * (b - centre[1]));
        let correlation = products.sum::<f64>() / 4000.0 / (sd[0] * sd[1]);
        assert!(correlation.abs() < LIMIT / 4000f64.sqrt(), "seed {seed}: {correlation}");
    }
}

/// Σ w (e^η − y) = 0 whatever the penalty, and Σ w (e^η − y) x = −γ g′(β), to the tolerance of a search.
#[test]
fn score_identities_hold_at_every_draw() {
    let penalties = [("\"ridge\"", 1.0), ("\"none\"", 0.0)];
    for (penalty, ridge) in penalties {
        let prior =
            "[prior]\nalpha = 3.0\nT = 5\nbase.response = { poisson = 2.0, covariates = \"empirical\" }";
        let rest = format!("[model.poisson]\npenalty = {penalty}\ngamma = 0.1\n{prior}");
        let (_file, text) = experiment(1, 50, &rest);
        let study = study(&text);
        let cancel = std::sync::atomic::AtomicBool::new(false);
        let trial = study.trial(0).unwrap().scheme(&pool(1), &cancel).unwrap();
        for draw in 0..50 {
            let f = trial.plan().measure(draw);
            let minimum = trial.model.minimise(&f, &trial.plan().start(draw, 0));
            let (mut by_beta, mut by_intercept) = (0.1 * ridge * minimum.theta[0], 0.0);
            for part in f.parts() {
                for (k, w) in part.w.iter().enumerate() {
                    let x = part.row(k)[0];
                    let slope =
                        w * ((minimum.theta[0] * x + minimum.theta[1]).exp() - part.response(k).unwrap());
                    by_intercept += slope;
                    by_beta += slope * x;
                }
            }
            assert!(
                by_beta.abs() < 1e-8 && by_intercept.abs() < 1e-8,
                "{penalty}: {by_beta}, {by_intercept}"
            );
        }
    }
}

/// Counts that are all 0 say nothing of a rate but that it is small; so it is in a group without a penalty.
#[test]
fn zeros_alone_are_refused() {
    for (counts, says) in [([0, 0, 0, 0], "above 0"), ([0, 0, 1, 2], "separated")] {
        let mut file = crate::tempfile::NamedTempFile::new().unwrap();
        let rows: String =
            counts.iter().enumerate().map(|(i, y)| format!("{},{y}\n", u8::from(i >= 2))).collect();
        write!(file, "g,y\n{rows}").unwrap();
        let text = format!(
            "name = \"t\"\n[data]\ntrain = {:?}\ntarget = \"y\"\n[sampler]\nB = 5\n[model.poisson]\npenalty = \"none\"",
            file.path().display().to_string()
        );
        let document = npl::config::Document::parse("t.toml", &text, &[]).unwrap();
        let experiment = document.decode().unwrap();
        let refused =
            npl::study::Study::new(document, experiment, Default::default()).err().unwrap().to_string();
        assert!(refused.contains(says) && refused.contains("penalty"), "{refused}");
    }
}

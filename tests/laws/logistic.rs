//! Logistic regression: exact laws of the intercept, score identities at every draw, symmetries, penalties.

use std::io::Write;

use crate::support::{SEEDS, assert_distribution, run, study};
use crate::tempfile::NamedTempFile;
use npl::optim::Status;
use npl::samples::Sample;
use npl::study::Trial;
use statrs::distribution::{Beta, Binomial, ContinuousCDF, Discrete};

/// Responses alone: 6 ones and 4 zeros.
const RESPONSES: [u8; 10] = [1, 1, 0, 1, 0, 1, 1, 0, 0, 1];

fn file(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

fn responses() -> NamedTempFile {
    file(&(String::from("y\n") + &RESPONSES.map(|y| format!("{y}\n")).concat()))
}

/// 60 rows of three correlated covariates and a response, its labels swapped if `flip`.
fn covariates(flip: bool) -> NamedTempFile {
    let mut text = String::from("a,b,c,y\n");
    for i in 0..60u32 {
        let (a, b) = (f64::from(i * 37 % 61) / 30.0 - 1.0, f64::from(i * 17 % 59) / 25.0 - 1.2);
        let c = 0.5 * a - 0.3 * b + f64::from(i * 29 % 31) / 31.0;
        let y = (a + 0.5 * b + f64::from(i * 13 % 23) / 11.0 - 1.0 > 0.0) != flip;
        text += &format!("{a},{b},{c},{}\n", u8::from(y));
    }
    file(&text)
}

fn experiment(
    seed: u64,
    draws: usize,
    data: &NamedTempFile,
    columns: &str,
    model: &str,
    rest: &str,
) -> String {
    format!(
        "name = \"t\"\nseed = {seed}\n[data]\ntrain = {:?}\ntarget = \"y\"\n{columns}\n[model.logistic]\n{model}\n\
         {rest}\n[sampler]\nB = {draws}\ninit.beta = {{ normal = [0.0, 1.0] }}\n\
         init.intercept = {{ normal = [0.0, 1.0] }}\n",
        data.path().display().to_string()
    )
}

fn sigmoid(draws: &[Sample]) -> Vec<f64> {
    draws.iter().map(|d| 1.0 / (1.0 + (-d.theta.last().unwrap()).exp())).collect()
}

/// Weights inside the two classes add up to Beta(6, 4), and the intercept alone fits the share of ones exactly.
#[test]
fn an_intercept_alone_follows_a_beta_law() {
    let data = responses();
    let law = Beta::new(6.0, 4.0).unwrap();
    for seed in SEEDS {
        let draws = run(&experiment(seed, 20_000, &data, "columns = []", "penalty = \"none\"", ""));
        assert!(draws.iter().all(|d| d.status == Status::Ok));
        assert_distribution(&format!("seed {seed}"), &sigmoid(&draws), |x| law.cdf(x));
    }
}

/// With Bernoulli(½) pseudo-responses: Beta(n₁ + αJ/T, n₀ + α(1 − J/T)) mixed over J ~ Bin(T, ½) with T of them, and
/// Beta(n₁ + α/2, n₀ + α/2) with the exact weights of all atoms.
#[test]
fn an_intercept_with_a_prior_follows_its_own_law_for_every_truncation() {
    let data = responses();
    let prior = |rest: &str| {
        format!(
            "[prior]\nalpha = 4.0\n{rest}\nbase = {{ response = {{ bernoulli = 0.5, covariates = \"empirical\" }} }}\n"
        )
    };
    let coin = Binomial::new(0.5, 3).unwrap();
    let mixture = |x: f64| -> f64 {
        let part = |j: u64| {
            let share = 4.0 * j as f64 / 3.0;
            coin.pmf(j) * Beta::new(6.0 + share, 4.0 + 4.0 - share).unwrap().cdf(x)
        };
        (0..=3).map(part).sum()
    };
    let exact = Beta::new(8.0, 6.0).unwrap();
    for seed in SEEDS {
        let three =
            run(&experiment(seed, 20_000, &data, "columns = []", "penalty = \"none\"", &prior("T = 3")));
        assert_distribution(&format!("T = 3, seed {seed}"), &sigmoid(&three), mixture);
        let all = run(&experiment(seed, 20_000, &data, "columns = []", "penalty = \"none\"", &prior("")));
        assert_distribution(&format!("exact, seed {seed}"), &sigmoid(&all), |x| exact.cdf(x));
    }
}

/// At a minimum Σ w η = Σ w y and Σ w (y − η) xⱼ = γ g′(βⱼ), for every draw.
#[test]
fn the_score_identities_hold_at_every_draw() {
    let data = covariates(false);
    for (model, slope) in [
        (
            "penalty = { student_t = { a = 1.0, b = 0.5 } }\ngamma = 0.02",
            &(|b: f64| 0.02 * 3.0 * b / (1.0 + b * b)) as &dyn Fn(f64) -> f64,
        ),
        ("penalty = \"ridge\"\ngamma = 0.1", &|b: f64| 0.1 * b),
        ("penalty = \"none\"", &|_| 0.0),
    ] {
        let study = study(&experiment(1, 50, &data, "", model, ""));
        let trial = study.trial(0).unwrap();
        let draws = run(&experiment(1, 50, &data, "", model, ""));
        for draw in &draws {
            assert_eq!(draw.status, Status::Ok, "{model}");
            let (residual, scores) = scores(&trial, draw);
            assert!(residual.abs() < 1e-8, "{model}");
            for (score, beta) in scores.iter().zip(&draw.theta) {
                assert!((score - slope(*beta)).abs() < 1e-8, "{model}: at {beta}");
            }
        }
    }
}

/// Σ w (y − η), and Σ w (y − η) xⱼ of each covariate, at a draw.
fn scores(trial: &Trial, draw: &Sample) -> (f64, Vec<f64>) {
    let f = trial.prior.posterior_draw(&trial.train, trial.seed, draw.index);
    let (masses, _) = f.masses();
    let (mass, ones) = (masses.mass, masses.response);
    let theta = &draw.theta;
    let residual = |i: usize| {
        let margin = trial.train.x.row(i).iter().zip(theta).map(|(x, b)| x * b).sum::<f64>() + theta[3];
        ones[i] - mass[i] / (1.0 + (-margin).exp())
    };
    let score = |j: usize| (0..60).map(|i| residual(i) * trial.train.x[[i, j]]).sum::<f64>();
    ((0..60).map(residual).sum(), (0..3).map(score).collect())
}

/// Lasso: the subgradient condition |Σ w (y − η) xⱼ| ≤ γ holds with equality exactly where β is not zero.
#[test]
fn the_lasso_sets_coefficients_to_zero_and_meets_its_optimality_conditions() {
    let data = covariates(false);
    let text = experiment(2, 40, &data, "", "penalty = \"lasso\"\ngamma = 0.12", "");
    let (draws, trial) = (run(&text), study(&text).trial(0).unwrap());
    assert!(draws.iter().any(|d| d.theta[..3].contains(&0.0)));
    for draw in &draws {
        for (score, beta) in scores(&trial, draw).1.iter().zip(&draw.theta) {
            if *beta == 0.0 {
                assert!(score.abs() <= 0.12 + 1e-6);
            } else {
                assert!((score - 0.12 * beta.signum()).abs() < 1e-6, "{score} at {beta}");
            }
        }
    }
}

#[test]
fn a_penalty_of_strength_zero_is_no_penalty_to_the_last_bit() {
    let data = covariates(false);
    let theta = |model: &str| -> Vec<Vec<f64>> {
        run(&experiment(3, 20, &data, "", model, "")).into_iter().map(|d| d.theta).collect()
    };
    assert_eq!(
        theta("penalty = { student_t = { a = 1.0, b = 1.0 } }\ngamma = 0"),
        theta("penalty = \"none\"\ngamma = 0")
    );
}

#[test]
fn swapping_the_labels_changes_the_sign() {
    let model = "penalty = { student_t = { a = 1.0, b = 1.0 } }\ngamma = \"1/n\"";
    let (one, other) = (covariates(false), covariates(true));
    let (one, other) =
        (run(&experiment(1, 30, &one, "", model, "")), run(&experiment(1, 30, &other, "", model, "")));
    for (a, b) in one.iter().zip(&other) {
        assert!(a.theta.iter().zip(&b.theta).all(|(a, b)| (a + b).abs() < 1e-6));
    }
}

/// What an experiment is refused for; `None` if it is not.
fn refusal(toml: &str) -> Option<String> {
    let document = npl::config::Document::parse("test.toml", toml, &[]).unwrap();
    let experiment = document.decode().unwrap();
    let study = npl::study::Study::new(document, experiment, Default::default());
    study.err().map(|e| e.to_string())
}

/// Four rows that a line separates: without a penalty there is no minimum, whatever the weights; with one there is.
#[test]
fn separable_data_are_refused_not_left_to_diverge() {
    let data = file("x,y\n-2,0\n-1,0\n1,1\n2,1\n");
    let why = refusal(&experiment(1, 20, &data, "", "penalty = \"none\"", "")).expect("no minimum");
    assert!(why.contains("test.toml:8") && why.contains("`x` alone"), "{why}");
    for method in ["nuts", "advi"] {
        let text = experiment(1, 20, &data, "", "penalty = \"none\"", "");
        let text = text.replacen("seed", &format!("method = \"{method}\"\nseed"), 1);
        assert!(refusal(&text).is_some(), "{method}: a flat prior leaves the posterior improper");
    }
    let penalised = run(&experiment(1, 20, &data, "", "penalty = \"ridge\"", ""));
    assert!(penalised.iter().all(|d| d.status == Status::Ok));
}

/// With pseudo-responses it is a matter of the draw: on a line, rows that are 0 up to the third and 1 from the fourth on are
/// separated unless a pseudo-response lies across. Those of a draw are known, and so is the answer.
#[test]
fn with_a_prior_each_draw_is_judged_by_its_own_atoms() {
    let data = file("x,y\n1,0\n2,0\n3,0\n4,1\n5,1\n6,1\n");
    let prior =
        "[prior]\nalpha = 1.0\nT = 3\nbase = { response = { bernoulli = 0.5, covariates = \"empirical\" } }";
    let text = experiment(1, 400, &data, "", "penalty = \"none\"", prior);
    let (draws, trial) = (run(&text), study(&text).trial(0).unwrap());
    let mut counts = [0, 0];
    for draw in &draws {
        let f = trial.prior.posterior_draw(&trial.train, trial.seed, draw.index);
        let (masses, _) = f.masses();
        let (mass, ones) = (masses.mass, masses.response);
        let has = |i: usize, one: bool| if one { ones[i] } else { mass[i] - ones[i] } > 1e-12 * mass[i];
        let lowest_one = (0..6).find(|&i| has(i, true)).unwrap();
        let highest_zero = (0..6).rev().find(|&i| has(i, false)).unwrap();
        let highest_one = (0..6).rev().find(|&i| has(i, true)).unwrap();
        let lowest_zero = (0..6).find(|&i| has(i, false)).unwrap();
        let separated = lowest_one >= highest_zero || highest_one <= lowest_zero;
        assert_eq!(draw.status == Status::Separated, separated, "draw {}", draw.index);
        // Where the row across weighs next to nothing, its minimum is too far away for a search: that is another matter.
        assert!(matches!(draw.status, Status::Separated | Status::Ok | Status::MaxIter));
        counts[usize::from(separated)] += 1;
    }
    assert!(counts.iter().all(|c| *c > 20), "{counts:?}");
}

/// A column of zeros: its coefficient would be that of its start.
#[test]
fn dependent_columns_are_refused_and_named() {
    let zero = file("a,z,y\n1,0,1\n2,0,0\n3,0,1\n4,0,0\n");
    let twice = file("a,b,y\n1,5,1\n2,7,0\n3,9,1\n4,11,0\n");
    let none = "penalty = \"none\"";
    let why = refusal(&experiment(1, 20, &zero, "", none, "")).expect("not identified");
    assert!(why.contains("test.toml:8") && why.contains("`z` is constant"), "{why}");
    let why = refusal(&experiment(1, 20, &twice, "", none, "")).expect("not identified");
    assert!(why.contains("`b` repeats `a`"), "{why}");
    assert_eq!(refusal(&experiment(1, 20, &zero, "", "penalty = \"ridge\"", "")), None);
    // Pseudo-responses on the same rows do not help.
    let prior = "[prior]\nalpha = 1.0\nbase = { response = { bernoulli = 0.5, covariates = \"empirical\" } }";
    let draws = run(&experiment(1, 20, &zero, "", none, prior));
    assert!(draws.iter().all(|d| d.status == Status::Unidentified), "{:?}", draws[0].status);
}

/// The penalty is not on the intercept: responses that are all the same send it to infinity whatever the penalty.
#[test]
fn a_constant_response_is_refused_whatever_the_penalty() {
    let data = file("x,y\n1,1\n2,1\n4,1\n");
    for penalty in ["\"none\"", "\"ridge\"", "\"lasso\"", "{ student_t = { a = 1.0, b = 1.0 } }"] {
        let text = experiment(1, 20, &data, "", &format!("penalty = {penalty}"), "");
        let why = refusal(&text).expect("the intercept has no minimum");
        assert!(why.contains("test.toml:8") && why.contains("every training response is 1"), "{why}");
    }
    let prior =
        "[prior]\nalpha = 1.0\nT = 2\nbase = { response = { bernoulli = 0.5, covariates = \"empirical\" } }";
    let text = experiment(1, 200, &data, "", "penalty = \"ridge\"", prior);
    let (draws, trial) = (run(&text), study(&text).trial(0).unwrap());
    for draw in &draws {
        let f = trial.prior.posterior_draw(&trial.train, trial.seed, draw.index);
        let (masses, _) = f.masses();
        let (mass, ones) = (masses.mass, masses.response);
        let zeros = mass.iter().zip(&ones).any(|(mass, ones)| mass - ones > 1e-12 * mass);
        assert_eq!(draw.status == Status::Separated, !zeros);
    }
}

/// Draws are the same bits whatever block they are in.
#[test]
fn a_draw_does_not_depend_on_its_block() {
    let data = covariates(false);
    let model = "penalty = { student_t = { a = 1.0, b = 1.0 } }";
    let long = run(&experiment(1, 40, &data, "", model, ""));
    for b in [1, 7, 16, 33] {
        let short = run(&experiment(1, b, &data, "", model, ""));
        assert!(short.iter().zip(&long).all(|(s, l)| s == l), "B = {b}");
    }
}

/// Under `optimiser.change` a search is plain L-BFGS with scipy's stopping rules: near the minimum, but not at it.
#[test]
fn a_plain_search_stops_early_and_close() {
    let data = covariates(false);
    let model = "penalty = { student_t = { a = 1.0, b = 1.0 } }";
    let tight = run(&experiment(1, 40, &data, "", model, ""));
    let plain = run(&experiment(1, 40, &data, "", model, "[optimiser]\nchange = 2.2e-9"));
    assert!(tight.iter().all(|d| d.extra[2] <= 1e-9));
    assert!(plain.iter().any(|d| d.extra[2] > 1e-7), "none stopped early");
    for (tight, plain) in tight.iter().zip(&plain) {
        assert_eq!(plain.status, Status::Ok);
        let excess = plain.objective - tight.objective;
        assert!((-1e-12..1e-4).contains(&excess), "{excess}");
    }
}

/// As in the paper; a row of the data, which starts the means of a mixture, is no coefficient.
#[test]
fn coefficients_start_from_a_standard_normal_unless_told_otherwise() {
    let data = covariates(false);
    let told = experiment(1, 20, &data, "", "penalty = \"ridge\"", "");
    let silent = told.lines().filter(|l| !l.starts_with("init.")).collect::<Vec<_>>().join("\n");
    let thetas = |toml: &str| run(toml).into_iter().map(|d| d.theta).collect::<Vec<_>>();
    assert_eq!(thetas(&told), thetas(&silent));
    let rows = told.replace("init.beta = { normal = [0.0, 1.0] }", "init.beta = \"data\"");
    let refused = std::panic::catch_unwind(|| study(&rows));
    assert!(refused.is_err(), "a row of the data cannot start beta");
}

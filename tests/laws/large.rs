//! What makes large data small: laws of quantiles instead of weights, and identical rows as one row (docs/large.md).

use std::io::Write;

use crate::support::*;
use crate::tempfile::NamedTempFile;
use ndarray::Array1;
use statrs::distribution::{Beta, Binomial, ContinuousCDF, Discrete, DiscreteCDF};

use npl::config::Document;
use npl::data::Dataset;
use npl::data::design::{Design, Groups};
use npl::data::files::SearchPath;
use npl::experiment::Experiment;
use npl::process::Prior;
use npl::rng::{Purpose, Seed};
use npl::study::Study;

fn table(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

/// An experiment with more keys of `[data]` and `[sampler]`.
fn with(seed: u64, draws: usize, file: &NamedTempFile, data: &str, sampler: &str, rest: &str) -> String {
    let path = file.path().display().to_string();
    format!(
        "name = \"t\"\nseed = {seed}\n[data]\ntrain = {path:?}\n{data}\n[sampler]\nB = {draws}\n{sampler}\n{rest}"
    )
}

fn refused(toml: &str) -> String {
    let document = Document::parse("test.toml", toml, &[]).unwrap();
    let experiment: Experiment = document.decode().unwrap();
    Study::new(document, experiment, SearchPath::default()).err().expect("it is refused").to_string()
}

const NINE: [f64; 9] = [3.0, -1.0, 4.5, 1.25, -5.5, 9.0, 2.5, 6.75, 5.0];

#[test]
fn the_law_of_a_quantile_is_binomial() {
    let mut sorted = NINE;
    sorted.sort_unstable_by(f64::total_cmp);
    let file = file_of(&NINE);
    let quantile = |q: f64| (q, format!("[model.quantile]\nq = {q:?}"));
    for (q, rest) in [quantile(0.1), quantile(0.37), quantile(0.9), (0.5, "[model.median]".into())] {
        let p: Vec<f64> = (0..9).map(|k| Binomial::new(q, 8).unwrap().pmf(k)).collect();
        for seed in SEEDS {
            let draws = run(&with(seed, 30_000, &file, "header = false", "law = true", &rest));
            assert!(draws.iter().all(|draw| draw.objective.is_nan()), "there is no objective");
            let mut counts = vec![0; 9];
            for theta in entry(&draws, 0) {
                counts[sorted.iter().position(|&y| y == theta).expect("a quantile is an atom")] += 1;
            }
            assert_counts(&format!("{rest:?}, seed {seed}"), &counts, &p);
        }
    }
}

/// A row of case weight c is c rows.
#[test]
fn whole_case_weights_count_in_the_law() {
    let file = table("y,c\n4,3\n1,1\n2,2\n7,5\n");
    // Eleven observations: 1, 2, 2, 4, 4, 4, 7, 7, 7, 7, 7.
    let (values, ends) = ([1.0, 2.0, 4.0, 7.0], [1u64, 3, 6, 11]);
    for q in [0.2, 0.6] {
        let points = Binomial::new(q, 10).unwrap();
        let p: Vec<f64> = (0..4)
            .map(|k| points.cdf(ends[k] - 1) - if k == 0 { 0.0 } else { points.cdf(ends[k - 1] - 1) })
            .collect();
        for law in [true, false] {
            let toml = with(
                1,
                30_000,
                &file,
                "weight = \"c\"",
                &format!("law = {law}"),
                &format!("[model.quantile]\nq = {q}"),
            );
            let mut counts = vec![0; 4];
            for theta in entry(&run(&toml), 0) {
                counts[values.iter().position(|&y| y == theta).unwrap()] += 1;
            }
            assert_counts(&format!("q {q}, law {law}"), &counts, &p);
        }
    }
}

/// Of four rows the weights are the gaps of three uniform points: N₁ of them are below 0.3 and N₂ below 0.7. By the law and by weights.
#[test]
fn two_quantiles_have_the_joint_law_of_the_weights() {
    let y = [2.0, 0.5, 3.5, 1.0];
    let mut sorted = y;
    sorted.sort_unstable_by(f64::total_cmp);
    let file = file_of(&y);
    let pairs: Vec<(usize, usize)> = (0..4).flat_map(|a| (a..4).map(move |b| (a, b))).collect();
    let factorial = |k: usize| (1..=k).product::<usize>() as f64;
    let p: Vec<f64> = pairs
        .iter()
        .map(|&(a, b)| {
            let ways = 6.0 / (factorial(a) * factorial(b - a) * factorial(3 - b));
            ways * 0.3f64.powi(a as i32) * 0.4f64.powi((b - a) as i32) * 0.3f64.powi(3 - b as i32)
        })
        .collect();
    for law in [true, false] {
        for seed in SEEDS {
            let rest = "[model.quantile]\nq = [0.3, 0.7]";
            let toml = with(seed, 30_000, &file, "header = false", &format!("law = {law}"), rest);
            let mut counts = vec![0; pairs.len()];
            for draw in run(&toml) {
                let place = |j: usize| sorted.iter().position(|&y| y == draw.theta[j]).unwrap();
                counts[pairs.iter().position(|&pair| pair == (place(0), place(1))).unwrap()] += 1;
            }
            assert_counts(&format!("law {law}, seed {seed}"), &counts, &p);
        }
    }
}

/// Row k holds k, so that a quantile is the number of its row: 20 bins of equal probability.
#[test]
fn the_law_holds_on_a_million_rows() {
    let n = 1_000_000u64;
    let data = Dataset::from_values((0..n).map(|k| k as f64).collect());
    for q in [0.003, 0.5, 0.93] {
        let law = model(&format!("[quantile]\nq = {q}"), &data).law(&data).expect("one column, no design");
        let points = Binomial::new(q, n - 1).unwrap();
        let draw = |b: u64| law.draw(&mut Seed(5).stream(Purpose::Law, b, 0))[0];
        let theta: Vec<f64> = (0..20_000).map(draw).collect();
        assert_mean(&format!("q {q}"), &theta, (n - 1) as f64 * q, (n - 1) as f64 * q * (1.0 - q));
        let ends: Vec<u64> = (1..20).map(|b| points.inverse_cdf(b as f64 / 20.0)).collect();
        let upto: Vec<f64> = ends.iter().map(|&k| points.cdf(k)).chain([1.0]).collect();
        let p: Vec<f64> = (0..20).map(|b| upto[b] - if b == 0 { 0.0 } else { upto[b - 1] }).collect();
        let mut counts = vec![0; 20];
        theta.iter().for_each(|t| counts[ends.partition_point(|&end| (end as f64) < *t)] += 1);
        assert_counts(&format!("q {q}"), &counts, &p);
    }
}

#[test]
fn a_law_that_does_not_hold_is_refused() {
    let file = table("a,b,k,c\n1,2,1,1.5\n2,1,1,1\n3,4,2,1\n5,1,2,2\n");
    let median = "[model.median]";
    let prior = "[model.median]\n[prior]\nalpha = 1.0\nT = 10\nbase = { normal = { mean = 0.0, sd = 1.0 } }";
    for (data, rest, why) in [
        ("columns = [\"a\", \"b\"]", median, "columns share their weights"),
        ("columns = [\"a\"]\ncluster = \"k\"", median, "no plain Dirichlet"),
        ("columns = [\"a\"]\nstratify = \"k\"", median, "no plain Dirichlet"),
        ("columns = [\"a\"]\nweight = \"c\"", median, "no whole numbers"),
        ("columns = [\"a\"]", prior, "pseudo-samples"),
        ("columns = [\"a\"]", "[model.mean]", "only the median and quantiles"),
    ] {
        let message = refused(&with(1, 10, &file, data, "law = true", rest));
        assert!(message.contains("`sampler.law`") && message.contains(why), "{message}");
    }
}

/// From 100,000 rows on, and written out.
#[test]
fn the_law_is_the_default_of_many_rows() {
    let numbers = |n: usize| file_of(&(0..n).map(|k| (k * 7919 % 100_003) as f64).collect::<Vec<_>>());
    for (n, sampler, expected) in
        [(100_000, "", Some(true)), (99_999, "", None), (100_000, "law = false", Some(false))]
    {
        let file = numbers(n);
        let toml = with(1, 2, &file, "header = false", sampler, "[model.median]");
        assert_eq!(study(&toml).experiment.sampler.law, expected, "{n} rows, {sampler}");
    }
}

/// Three ones of ten: Beta(3, 7), and two rows are left of ten.
#[test]
fn the_mean_of_collapsed_zeros_and_ones_is_beta() {
    let file = file_of(&[0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0]);
    for seed in SEEDS {
        let toml = with(seed, 20_000, &file, "header = false\ncollapse = true", "", "[model.mean]");
        let study = study(&toml);
        assert_eq!(study.trial(0).unwrap().train.n(), 2);
        assert_eq!(study.notes().distinct, Some(2));
        assert!(study.notes().changes()[0].contains("identical training rows are one: 2 that differ"));
        let (report, draws) = run_with_report(&toml);
        assert_eq!(report.n_train, 10, "the rows are still ten");
        let theta = entry(&draws, 0);
        assert_mean("mean", &theta, 0.3, 0.3 * 0.7 / 11.0);
        let beta = Beta::new(3.0, 7.0).unwrap();
        assert_distribution(&format!("seed {seed}"), &theta, |x| beta.cdf(x));
    }
}

/// A group of x = 0 and one of x = 1 with 2 of 5 and 6 of 9 events: the logits are those of independent Beta(2, 3) and Beta(6, 3).
#[test]
fn collapsed_logistic_regression_of_two_groups_is_two_betas() {
    let mut text = String::from("x,y\n");
    for (x, events, rows) in [(0, 2, 5), (1, 6, 9)] {
        (0..rows).for_each(|i| text += &format!("{x},{}\n", usize::from(i < events)));
    }
    let file = table(&text);
    let data = "target = \"y\"\ncollapse = true";
    let draws = run(&with(4, 20_000, &file, data, "", "[model.logistic]\npenalty = \"none\""));
    let place = |logit: f64| 1.0 / (1.0 + (-logit).exp());
    let (first, both): (Vec<f64>, Vec<f64>) =
        draws.iter().map(|d| (place(d.theta[1]), place(d.theta[0] + d.theta[1]))).unzip();
    for (values, a, b) in [(first, 2.0, 3.0), (both, 6.0, 3.0)] {
        let beta = Beta::new(a, b).unwrap();
        assert_distribution(&format!("Beta({a}, {b})"), &values, |x| beta.cdf(x));
    }
}

/// The rows of a cluster share one variate, collapsed or not: draw by draw the mean is the same.
#[test]
fn clusters_and_strata_keep_their_masses() {
    let y = [1.0, 1.0, 2.0, 1.0, 2.0, 2.0, 5.0, 1.0];
    let (clusters, strata) = (Groups::new([0, 0, 0, 1, 1, 1, 2, 2]), Groups::new([0, 0, 0, 0, 0, 0, 1, 1]));
    let data = Dataset::from_values(y.to_vec());
    for strata in [None, Some(strata)] {
        let all = data.clone().with_design(Design::new(None, Some(clusters.clone()), strata));
        let few = all.collapsed(8).unwrap();
        assert_eq!(few.n(), 6);
        for draw in 0..100 {
            let mean = |data: &Dataset| {
                weighted_moment(&Prior::Noninformative.posterior_draw(data, Seed(2), draw), 1)
            };
            assert_close("mean", mean(&few), mean(&all), 1e-13);
        }
    }
}

/// Unasked from 10,000 rows on, if half of them go; and never where it is forbidden. Test rows stay as they are.
#[test]
fn rows_are_collapsed_where_it_pays() {
    let lines = |n: usize, distinct: usize| -> String {
        let row = |i: usize| format!("{},{}\n", i % distinct, usize::from(i % 7 < 3));
        std::iter::once("x,y\n".to_owned()).chain((0..n).map(row)).collect()
    };
    let rows = |text: &str, data: &str| {
        let file = table(text);
        let logistic = "[model.logistic]\npenalty = \"ridge\"\ngamma = \"1/n\"";
        let toml = with(1, 2, &file, &format!("target = \"y\"\n{data}"), "", logistic);
        let trial = study(&toml).trial(0).unwrap();
        (trial.train.n(), trial.train.rows_before(), trial.test.as_ref().map(|test| test.n()))
    };
    assert_eq!(rows(&lines(10_000, 70), ""), (70, 10_000, None));
    assert_eq!(rows(&lines(9_999, 70), ""), (9_999, 9_999, None));
    assert_eq!(rows(&lines(10_000, 70), "collapse = false"), (10_000, 10_000, None));
    assert_eq!(rows(&lines(10_000, 9_000), ""), (10_000, 10_000, None));
    assert_eq!(rows(&lines(20_000, 70), "split = 0.25"), (70, 15_000, Some(5_000)));
}

/// 1/n, the posterior's sample size and moments go by observations, not by rows.
#[test]
fn a_collapsed_data_set_weighs_as_much() {
    let y = Array1::from(vec![0.0, 0.0, 1.0, 1.0, 0.0]);
    let x = ndarray::array![[1.0], [1.0], [2.0], [2.0], [1.0]];
    let all = Dataset::new(x, Some(y), vec!["x".into()]);
    let few = all.collapsed(5).unwrap();
    assert_eq!((few.n(), few.mass(), few.rows_before()), (2, 5.0, 5));
    let (a, b) = (all.moments()[0], few.moments()[0]);
    assert_close("mean", a.0, b.0, 1e-15);
    assert_close("variance", a.1, b.1, 1e-15);
}

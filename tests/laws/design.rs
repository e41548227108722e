//! Case weights, clusters and strata: the posterior of F has the laws of docs/sampling.md, and data that make no sense
//! are refused.

use std::io::Write;

use crate::program::Place;
use crate::support::*;
use crate::tempfile::NamedTempFile;
use ndarray::Array1;
use statrs::distribution::{Beta, ContinuousCDF};

use npl::bootstrap::Scheme;
use npl::data::Dataset;
use npl::data::design::{Design, Groups};
use npl::process::base::{BernoulliResponse, Normal};
use npl::process::{BaseMeasure, Measure, Prior, Truncation};
use npl::rng::Seed;

const DRAWS: u64 = 20_000;
const ALPHA: f64 = 2.5;
/// Whole numbers and others; they sum to 12.75.
const COUNTS: [f64; 5] = [3.0, 1.0, 0.25, 6.5, 2.0];

fn data(design: Design) -> Dataset {
    Dataset::from_values(FIVE.to_vec()).with_design(design)
}

fn weighted() -> Dataset {
    data(Design::new(Some(COUNTS.to_vec()), None, None))
}

fn dp(alpha: f64, truncation: Truncation) -> Prior {
    Prior::Dp { alpha, base: Box::new(Normal { mean: vec![0.5], sd: vec![2.0] }), truncation }
}

/// Weights of the rows, then of the pseudo-samples, in every draw.
fn draws(prior: &Prior, data: &Dataset, seed: u64) -> Vec<(Vec<f64>, Vec<f64>)> {
    let draw = |b| {
        let f = prior.posterior_draw(data, Seed(seed), b);
        (f.weights().0.to_vec(), f.weights().1.to_vec())
    };
    (0..DRAWS).map(draw).collect()
}

/// ∫ y dF in every draw of the Bayesian bootstrap.
fn means(data: &Dataset, seed: u64) -> Vec<f64> {
    let mean = |w: &[f64]| w.iter().zip(data.x.column(0)).map(|(w, y)| w * y).sum();
    draws(&Prior::Noninformative, data, seed).iter().map(|(w, _)| mean(w)).collect()
}

fn assert_beta(what: &str, values: &[f64], a: f64, b: f64) {
    let s = a + b;
    assert_mean(&format!("{what}, mean"), values, a / s, a * b / (s * s * (s + 1.0)));
    let beta = Beta::new(a, b).unwrap();
    assert_distribution(what, values, |x| beta.cdf(x));
}

/// Σ Wₛ θₛ of independent θₛ.
fn sum_of_independent(parts: &[(f64, Moments)]) -> Moments {
    let sum = |f: &dyn Fn(f64, &Moments) -> f64| parts.iter().map(|(w, m)| f(*w, m)).sum::<f64>();
    let m2 = sum(&|w, m| w * w * m.m2);
    let squares = sum(&|w, m| (w * w * m.m2).powi(2));
    Moments {
        mean: sum(&|w, m| w * m.mean),
        m2,
        m3: sum(&|w, m| w.powi(3) * m.m3),
        m4: sum(&|w, m| w.powi(4) * m.m4) + 3.0 * (m2 * m2 - squares),
    }
}

fn assert_moments(what: &str, values: &[f64], exact: Moments) {
    assert_mean(&format!("{what}, mean"), values, exact.mean, exact.m2);
    assert_var(&format!("{what}, variance"), values, exact);
}

/// P(Σ aₖ Eₖ ≤ 0) for independent exponentials and distinct aₖ.
fn below_zero(a: &[f64]) -> f64 {
    let tail = |k: usize| -> f64 { (0..a.len()).filter(|&j| j != k).map(|j| a[k] / (a[k] - a[j])).product() };
    1.0 - (0..a.len()).filter(|&k| a[k] > 0.0).map(tail).sum::<f64>()
}

fn file(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

/// An experiment on a file with a header; `keys` go into [data].
fn on(file: &NamedTempFile, seed: u64, keys: &str, rest: &str) -> String {
    let path = file.path().display().to_string();
    format!("name = \"t\"\nseed = {seed}\n[data]\ntrain = {path:?}\n{keys}\n{rest}\n[sampler]\nB = 20000\n")
}

// ---------------------------------------------------------------------------------------------------- case weights

/// A row of weight c has the mass of c rows: Beta(c, C − c), and the mean has the moments of DP(C, G).
#[test]
fn a_case_weight_is_a_number_of_rows() {
    let (data, total) = (weighted(), COUNTS.iter().sum::<f64>());
    let exact = Moments::of(&FIVE, &COUNTS).of_dp_mean(total);
    for seed in SEEDS {
        let draws = draws(&Prior::Noninformative, &data, seed);
        for (i, c) in COUNTS.into_iter().enumerate() {
            let w: Vec<f64> = draws.iter().map(|(w, _)| w[i]).collect();
            assert_beta(&format!("row {i}, seed {seed}"), &w, c, total - c);
        }
        assert_moments(&format!("mean, seed {seed}"), &means(&data, seed), exact);
    }
}

/// Against a row of weight 3, three rows: their masses sum to the same law.
#[test]
fn repeated_rows_have_the_law_of_their_weight() {
    let repeated = Dataset::from_values(vec![0.0, 0.0, 0.0, 1.0, 2.0, 2.0]);
    let once = Dataset::from_values(vec![0.0, 1.0, 2.0]);
    let once = once.with_design(Design::new(Some(vec![3.0, 1.0, 2.0]), None, None));
    let exact = Moments::of(&[0.0, 1.0, 2.0], &[3.0, 1.0, 2.0]).of_dp_mean(6.0);
    for seed in SEEDS {
        assert_moments(&format!("repeated, seed {seed}"), &means(&repeated, seed), exact);
        assert_moments(&format!("weighted, seed {seed}"), &means(&once, seed), exact);
    }
}

/// Beta(α, C), for every truncation.
#[test]
fn the_prior_is_weighed_against_the_number_of_observations() {
    let (data, total) = (weighted(), COUNTS.iter().sum::<f64>());
    let truncations = [
        Truncation::Dirichlet { t: 3 },
        Truncation::StickBreaking { t: 4 },
        Truncation::Adaptive { epsilon: 1e-3 },
    ];
    for truncation in truncations {
        let draws = draws(&dp(ALPHA, truncation), &data, 1);
        let prior: Vec<f64> = draws.iter().map(|(_, v)| v.iter().sum()).collect();
        assert_beta(&format!("{truncation:?}"), &prior, ALPHA, total);
        let row: Vec<f64> = draws.iter().map(|(w, _)| w[3]).collect();
        assert_beta(&format!("row, {truncation:?}"), &row, 6.5, total + ALPHA - 6.5);
    }
}

#[test]
fn weights_are_finite_and_sum_to_one_at_every_scale() {
    for scale in [1e-100, 1e-30, 1e-3, 1.0, 1e8, 1e99] {
        let c: Vec<f64> = [1.0, 2.0, 0.5, 3.0, 1.5].iter().map(|c| c * scale).collect();
        let strata = Groups::new([0, 0, 1, 1, 1]);
        let clusters = Groups::new([0, 1, 2, 2, 3]);
        for (clusters, strata) in [
            (None, None),
            (Some(clusters.clone()), None),
            (None, Some(strata.clone())),
            (Some(clusters), Some(strata)),
        ] {
            let data = data(Design::new(Some(c.clone()), clusters, strata));
            let shares = data.design.strata().map(|(_, shares)| shares.to_vec());
            for prior in [Prior::Noninformative, dp(0.1, Truncation::Dirichlet { t: 5 })] {
                for b in 0..100 {
                    let f = prior.posterior_draw(&data, Seed(1), b);
                    let (w, v) = f.weights();
                    let sum: f64 = w.iter().chain(v).sum();
                    assert!((sum - 1.0).abs() < 1e-12, "{scale}: {sum}");
                    assert!(w.iter().chain(v).all(|w| w.is_finite() && *w >= 0.0), "{scale}");
                    if let Some(shares) = &shares {
                        let (first, observed) = (w[0] + w[1], w.iter().sum::<f64>());
                        assert!((first - shares[0] * observed).abs() < 1e-12, "{scale}");
                    }
                }
            }
        }
    }
}

#[test]
fn the_empirical_measure_and_base_measures_have_case_weights() {
    let data = weighted();
    let total: f64 = COUNTS.iter().sum();
    let shares = COUNTS.map(|c| c / total);
    assert_eq!(Measure::empirical(&data).weights().0, shares);
    let labelled = Dataset::new(data.x.clone(), Some(Array1::zeros(5)), vec!["x".into()]);
    let base =
        BernoulliResponse::new(vec![0.3; 5], std::sync::Arc::new(labelled.with_design(data.design.clone())));
    for (i, share) in base.shares().unwrap().iter().enumerate() {
        let response = if i < 5 { 0.3 } else { 0.7 };
        assert_close("share of an atom", *share, response * shares[i % 5], 1e-15);
    }
    let exact = Moments::of(&FIVE, &COUNTS);
    let (mean, variance) = data.moments()[0];
    assert_close("mean", mean, exact.mean, 1e-14);
    assert_close("variance", variance, exact.m2, 1e-14);
}

/// Standardisation, imputation, γ = "1/n" and the loss are those of the repeated rows; weight 0 is no row.
#[test]
fn preparation_and_loss_are_those_of_repeated_rows() {
    let rows =
        [("1.5,?", 0, 2), ("-2,b", 1, 3), ("0.5,a", 1, 1), ("9,c", 0, 0), ("4,b", 0, 4), ("?,a", 1, 2)];
    let (mut once, mut repeated) = ("x,g,y,w\n".to_owned(), "x,g,y\n".to_owned());
    for (x, y, c) in rows {
        once += &format!("{x},{y},{c}\n");
        (0..c).for_each(|_| repeated += &format!("{x},{y}\n"));
    }
    let keys = "target = \"y\"\ncategorical = [\"g\"]\nmissing_values = [\"?\"]\nmissing = \"mean\"\n\
                standardise = \"all\"\n";
    let model = "[model.logistic]\npenalty = \"ridge\"\ngamma = \"1/n\"";
    let (once, repeated) = (file(&once), file(&repeated));
    let once = study(&on(&once, 1, &format!("{keys}weight = \"w\""), model)).trial(0).unwrap();
    let repeated = study(&on(&repeated, 1, keys, model)).trial(0).unwrap();
    assert_eq!(once.train.columns, ["x", "g_b"], "\"c\" occurs in a row that counts nothing");
    assert_eq!((once.train.n(), once.train.mass(), repeated.train.n()), (4, 10.0, 10));
    for (i, from) in [0, 3, 4, 8].into_iter().enumerate() {
        for j in 0..2 {
            assert_close("cell", once.train.x[[i, j]], repeated.train.x[[from, j]], 1e-14);
        }
    }
    let theta = [0.7, -1.1, 0.2];
    let loss = |t: &npl::study::Trial| t.model.loss(&theta, &Measure::empirical(&t.train));
    assert_close("loss", loss(&once), loss(&repeated), 1e-14);
}

const RESPONSES: &str = "y,w\n1,2.5\n0,1\n1,0.5\n0,3\n0,0.25\n1,4\n";

/// The masses of the two classes are Gamma(Σ cy) and Gamma(Σ c(1 − y)); with Bernoulli(p) pseudo-responses α p and α(1 − p)
/// are added to them.
#[test]
fn a_weighted_intercept_follows_a_beta_law() {
    let data = file(RESPONSES);
    let keys = "target = \"y\"\nweight = \"w\"\ncolumns = []";
    let prior =
        "[prior]\nalpha = 4.0\nbase = { response = { bernoulli = 0.25, covariates = \"empirical\" } }";
    for seed in SEEDS {
        for (prior, a, b) in [("", 7.0, 4.25), (prior, 8.0, 7.25)] {
            let model = format!("[model.logistic]\npenalty = \"none\"\n{prior}");
            let draws = run(&on(&data, seed, keys, &model));
            assert!(draws.iter().all(|d| d.extra[2] < 1e-8));
            let p: Vec<f64> = entry(&draws, 0).iter().map(|b| 1.0 / (1.0 + (-b).exp())).collect();
            assert_beta(&format!("seed {seed}"), &p, a, b);
        }
    }
}

/// The fit that FI-NPL starts from is that of the weighted rows: η = Σ cy/Σ c.
#[test]
fn a_fixed_start_is_fitted_with_case_weights() {
    let data = file(RESPONSES);
    let keys = "target = \"y\"\nweight = \"w\"\ncolumns = []";
    let toml = on(&data, 1, keys, "[model.logistic]\npenalty = \"none\"") + "fixed_init = { best_of = 1 }\n";
    let trial = study(&toml).trial(0).unwrap();
    let trial = trial.scheme(&pool(1), &std::sync::atomic::AtomicBool::new(false)).unwrap();
    let Scheme::FixedInit(theta) = trial.scheme.as_ref() else { panic!("FI-NPL") };
    assert_close("start", 1.0 / (1.0 + (-theta[0]).exp()), 7.0 / 11.25, 1e-9);
}

/// Historical rows count by their weights: the mean is that of DP(n + α, (Σ δ + α Σ c δ/Σ c)/(n + α)).
#[test]
fn historical_rows_count_by_their_weights() {
    let data = file("y,w\n0,1\n1,1\n2,1\n");
    let history = file("y,w\n5,3\n-4,1\n");
    let path = history.path().display().to_string();
    let rest = format!("[model.mean]\n[prior]\nalpha = 2.0\nbase = {{ empirical = {{ file = {path:?} }} }}");
    let exact = Moments::of(&[0.0, 1.0, 2.0, 5.0, -4.0], &[1.0, 1.0, 1.0, 1.5, 0.5]).of_dp_mean(5.0);
    for seed in SEEDS {
        let draws = run(&on(&data, seed, "weight = \"w\"", &rest));
        assert_moments(&format!("seed {seed}"), &entry(&draws, 0), exact);
    }
}

// -------------------------------------------------------------------------------------------------------- clusters

/// With G clusters of equal size the mean is that of G cluster means: variance s²/(G + 1).
#[test]
fn equal_clusters_are_a_bootstrap_of_their_means() {
    let y = [1.0, 3.0, -2.0, 0.0, 5.0, 8.0, 2.0, 2.5];
    let rows = Dataset::from_values(y.to_vec());
    let rows = rows.with_design(Design::new(None, Some(Groups::new([4, 4, 1, 1, 7, 7, 2, 2])), None));
    let exact = Moments::of_values(&[2.0, -1.0, 6.5, 2.25]).of_dp_mean(4.0);
    for seed in SEEDS {
        for (w, _) in draws(&Prior::Noninformative, &rows, seed).iter().take(100) {
            assert!((0..4).all(|k| w[2 * k] == w[2 * k + 1]), "the rows of a cluster share a weight");
        }
        assert_moments(&format!("seed {seed}"), &means(&rows, seed), exact);
    }
}

/// Any sizes, and weights inside: θ ≤ t where Σ gₖ Σ c(y − t) ≤ 0, whose law is that of a sum of exponentials.
#[test]
fn clusters_of_any_size_follow_the_exact_ratio_law() {
    let y = [1.0, 3.0, -2.0, 0.5, 5.0, 8.0, 2.0];
    let keys = [0, 0, 0, 1, 2, 2, 3];
    for c in [None, Some([0.5, 2.0, 1.0, 4.0, 1.5, 0.25, 3.0])] {
        let design = Design::new(c.map(Vec::from), Some(Groups::new(keys)), None);
        let rows = Dataset::from_values(y.to_vec()).with_design(design);
        let weight = |i: usize| c.map_or(1.0, |c| c[i]);
        let cdf = |t: f64| {
            let mut a = [0.0; 4];
            (0..7).for_each(|i| a[keys[i] as usize] += weight(i) * (y[i] - t));
            below_zero(&a)
        };
        for seed in SEEDS {
            assert_distribution(&format!("weights {c:?}, seed {seed}"), &means(&rows, seed), cdf);
        }
    }
}

/// A pseudo-sample is a cluster of one row. With α = 1 and T = 1 its mass is one more exponential.
#[test]
fn with_clusters_a_pseudo_sample_is_a_cluster_of_one_row() {
    let rows = data(Design::new(None, Some(Groups::new([0, 0, 0, 1, 1])), None));
    for seed in SEEDS {
        let draws = draws(&dp(1.0, Truncation::Dirichlet { t: 1 }), &rows, seed);
        let prior: Vec<f64> = draws.iter().map(|(_, v)| v[0]).collect();
        let cdf = |v: f64| below_zero(&[1.0 - v, -3.0 * v, -2.0 * v]);
        assert_distribution(&format!("seed {seed}"), &prior, cdf);
    }
}

/// Bits of weights: one row per cluster, weights of 1 and one stratum say nothing.
#[test]
fn a_design_that_says_nothing_changes_nothing() {
    let plain = Dataset::from_values(FIVE.to_vec());
    let singles = Some(Groups::new([9, 8, 7, 3, 5]));
    let nothing = Design::new(Some(vec![1.0; 5]), singles, Some(Groups::new([1; 5])));
    for prior in [
        Prior::Noninformative,
        dp(ALPHA, Truncation::Dirichlet { t: 3 }),
        dp(ALPHA, Truncation::Adaptive { epsilon: 1e-3 }),
    ] {
        assert_eq!(draws(&prior, &plain, 1)[..500], draws(&prior, &data(nothing.clone()), 1)[..500]);
    }
}

#[test]
fn a_vanishing_alpha_is_no_prior_draw_by_draw() {
    let clusters = || Some(Groups::new([0, 0, 1, 2, 3]));
    let strata = || Some(Groups::new([0, 0, 1, 1, 1]));
    let c = || Some(COUNTS.to_vec());
    for design in [
        Design::new(c(), None, strata()),
        Design::new(c(), clusters(), strata()),
        Design::new(c(), None, None),
    ] {
        let rows = data(design);
        for b in 0..200 {
            let without = Prior::Noninformative.posterior_draw(&rows, Seed(1), b);
            let nearly = dp(1e-12, Truncation::Dirichlet { t: 50 });
            let nearly = nearly.posterior_draw(&rows, Seed(1), b);
            let pairs = without.weights().0.iter().zip(nearly.weights().0);
            assert!(pairs.into_iter().all(|(a, b)| (a - b).abs() < 1e-9));
        }
    }
}

// ---------------------------------------------------------------------------------------------------------- strata

/// Totals are fixed at Cₛ/C, and the mean has variance Σ Wₛ² s²ₛ/(Cₛ + 1).
#[test]
fn strata_have_fixed_totals_and_independent_weights() {
    let keys = [0, 1, 0, 1, 1];
    for c in [[1.0; 5], COUNTS] {
        let rows = data(Design::new(Some(c.to_vec()), None, Some(Groups::new(keys))));
        let total: f64 = c.iter().sum();
        let part = |s: u64| {
            let of = |values: &[f64]| -> Vec<f64> {
                values.iter().zip(keys).filter(|(_, k)| *k == s).map(|(v, _)| *v).collect()
            };
            let (y, c) = (of(&FIVE), of(&c));
            let mass: f64 = c.iter().sum();
            (mass / total, Moments::of(&y, &c).of_dp_mean(mass))
        };
        let parts = [part(0), part(1)];
        for seed in SEEDS {
            for (w, _) in draws(&Prior::Noninformative, &rows, seed) {
                assert!((w[0] + w[2] - parts[0].0).abs() < 1e-12);
            }
            assert_moments(&format!("{c:?}, seed {seed}"), &means(&rows, seed), sum_of_independent(&parts));
        }
    }
}

/// Clusters within strata: Σ Wₛ² s²ₛ/(Gₛ + 1) with s²ₛ the variance of the cluster means, for clusters of equal size.
#[test]
fn clusters_within_strata_are_drawn_within_them() {
    let y = [1.0, 3.0, -2.0, 0.0, 5.0, 8.0, 2.0, 2.5, 4.0, 7.0];
    let clusters = Groups::new([0, 0, 1, 1, 2, 2, 3, 3, 4, 4]);
    let strata = Groups::new([0, 0, 0, 0, 0, 0, 1, 1, 1, 1]);
    let rows = Dataset::from_values(y.to_vec()).with_design(Design::new(None, Some(clusters), Some(strata)));
    let parts = [
        (0.6, Moments::of_values(&[2.0, -1.0, 6.5]).of_dp_mean(3.0)),
        (0.4, Moments::of_values(&[2.25, 5.5]).of_dp_mean(2.0)),
    ];
    for seed in SEEDS {
        assert_moments(&format!("seed {seed}"), &means(&rows, seed), sum_of_independent(&parts));
    }
}

/// The prior part is Beta(α, C) as without strata; they share out the rest.
#[test]
fn strata_share_out_what_the_prior_leaves() {
    let rows = data(Design::new(Some(COUNTS.to_vec()), None, Some(Groups::new([0, 0, 1, 1, 1]))));
    let total: f64 = COUNTS.iter().sum();
    for seed in SEEDS {
        let draws = draws(&dp(ALPHA, Truncation::Dirichlet { t: 3 }), &rows, seed);
        let prior: Vec<f64> = draws.iter().map(|(_, v)| v.iter().sum()).collect();
        assert_beta(&format!("prior part, seed {seed}"), &prior, ALPHA, total);
        for ((w, _), v) in draws.iter().zip(&prior) {
            assert!((w[0] + w[1] - 4.0 / total * (1.0 - v)).abs() < 1e-12);
        }
        let within: Vec<f64> = draws.iter().map(|(w, _)| w[0] / (w[0] + w[1])).collect();
        assert_beta(&format!("within a stratum, seed {seed}"), &within, 3.0, 1.0);
        assert_uncorrelated(&format!("prior and stratum, seed {seed}"), &prior, &within);
    }
}

// ----------------------------------------------------------------------------------------------------- the program

/// Forty rows in ten clusters, of which 3 and 7 are in stratum "b b".
fn survey(test: bool, design: bool) -> String {
    let mut text = String::from(if design { "x,k,y,s,w\n" } else { "y,x\n" });
    for i in 0..40u32 {
        let (k, x) = (i % 10, f64::from(i * 37 % 41) / 20.0 - f64::from(u8::from(test)));
        let y = u8::from(x + f64::from(i * 17 % 13) / 6.0 > 2.0);
        let stratum = if k == 3 || k == 7 { "b b" } else { "a" };
        text += &match design {
            true => format!("{x},k{k},{y},{stratum},{}\n", 1 + i % 3),
            false => format!("{y},{x}\n"),
        };
    }
    text
}

const SURVEY: &str = "name = \"s\"\nseed = 1\n[data]\ntrain = \"d.csv\"\ntest = \"t.csv\"\ntarget = \"y\"\n\
                      weight = \"w\"\ncluster = \"2\"\nstratify = \"s\"\n[model.logistic]\npenalty = \"ridge\"\n\
                      [sampler]\nB = 50\n";

#[test]
fn test_rows_need_no_design_and_threads_change_nothing() {
    let place = Place::new();
    place.write("e.toml", SURVEY).write("d.csv", survey(false, true));
    let mut samples = Vec::new();
    for (out, test, threads) in [("a", survey(true, true), "1"), ("b", survey(true, false), "3")] {
        place.write("t.csv", test).ok(&["run", "e.toml", "--threads", threads, "--out", out]);
        let metrics = place.read(&format!("{out}/report.csv"));
        let metrics: Vec<String> =
            crate::program::cells(&metrics)[1][6..10].iter().map(|c| c.to_string()).collect();
        samples.push((place.read(&format!("{out}/samples.csv")), metrics));
    }
    assert!(samples[0].0.starts_with("repeat__") && samples[0].1[0].starts_with("-0."), "{:?}", samples[0].1);
    assert_eq!(samples[0], samples[1]);
    let header = samples[0].0.lines().next().unwrap();
    assert!(header.ends_with("beta.x,intercept"), "{header}");
    let check = place.ok(&["check", "e.toml"]).stdout;
    assert!(check.contains("# design      2 strata, 10 clusters, weights that sum to 79"), "{check}");
}

/// The example of docs/sampling.md gives the numbers that stand there.
#[test]
fn the_documented_example_gives_its_numbers() {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/sampling.md");
    let page = std::fs::read_to_string(page).unwrap();
    let block = |kind: &str| {
        let (_, rest) = page.split_once(&format!("```{kind}\n")).unwrap();
        rest.split_once("```").unwrap().0
    };
    let place = Place::new();
    place.write("marks.csv", block("csv"));
    let rows = [
        ("| none: 18 equal rows |", &[][..]),
        ("| `weight` |", &["weight"]),
        ("| `weight`, `stratify` |", &["weight", "stratify"]),
        ("| `weight`, `cluster` |", &["weight", "cluster"]),
        ("| all three |", &["weight", "cluster", "stratify"]),
    ];
    for (title, keys) in rows {
        let kept = |line: &&str| {
            let key = ["weight", "cluster", "stratify"].into_iter().find(|key| line.starts_with(key));
            key.is_none_or(|key| keys.contains(&key))
        };
        let toml: Vec<&str> = block("toml").lines().filter(kept).collect();
        place.write("e.toml", toml.join("\n")).ok(&["run", "e.toml", "--out", "out"]);
        let summary = place.read("out/summary.csv");
        let number = |name: &str| -> f64 {
            let cells = crate::program::cells(&summary);
            cells[1][cells[0].iter().position(|c| *c == name).unwrap()].parse().unwrap()
        };
        let (low, high) = (number("q2.5"), number("q97.5"));
        let row = format!("{title} {:.3} | {:.3} | {low:.2} to {high:.2} |", number("mean"), number("sd"));
        assert!(page.contains(&row), "{row}");
        std::fs::remove_dir_all(place.path("out")).unwrap();
    }
}

/// No cluster is on both sides, in any repeat; ⌈0.25 · 10⌉ of them are for testing.
#[test]
fn a_split_keeps_clusters_whole() {
    let mut text = String::from("id,k,y\n");
    (0..40).for_each(|i| text += &format!("{},c{},{}\n", i % 10, i % 10, i % 2));
    let data = file(&text);
    let toml = on(
        &data,
        5,
        "target = \"y\"\ncluster = \"k\"\nsplit = 0.25",
        "[model.logistic]\npenalty = \"ridge\"",
    );
    let study = study(&format!("repeats = 20\n{toml}"));
    let mut seen = std::collections::HashSet::new();
    for repeat in 0..20 {
        let trial = study.trial(repeat).unwrap();
        let ids = |data: &Dataset| -> std::collections::BTreeSet<u64> {
            data.x.column(0).map(|id| id as u64).collect()
        };
        let (train, test) = (ids(&trial.train), ids(trial.test.as_ref().unwrap()));
        assert_eq!((train.len(), test.len(), trial.test.as_ref().unwrap().n()), (7, 3, 12));
        assert!(train.is_disjoint(&test));
        assert_eq!(trial.train.design.clusters().unwrap().count, 7);
        seen.insert(test);
    }
    assert!(seen.len() > 10, "a new split in each repeat");
}

/// `strip` is for the response: clusters that differ in their last character stay apart.
#[test]
fn only_texts_of_the_response_are_stripped() {
    let data = file("x,k,y\n1,a.,1.\n2,a,0\n4,a,1\n");
    let keys = "target = \"y\"\ncluster = \"k\"\nstrip = \".\"";
    let trial = study(&on(&data, 1, keys, "[model.logistic]\npenalty = \"ridge\"")).trial(0).unwrap();
    assert_eq!(trial.train.design.clusters().unwrap().of, [0, 1, 1]);
    assert_eq!(trial.train.y.as_ref().unwrap().to_vec(), [1.0, 0.0, 1.0]);
}

#[test]
fn a_design_that_makes_no_sense_is_refused() {
    let good = "x,k,s,w\n1,1,1,1\n2,1,1,2\n4,2,2,1\n";
    let cases: &[(&str, &str, &[&str])] = &[
        (good, "weight = \"v\"", &["d.csv", "`data.weight`", "no column \"v\""]),
        (good, "cluster = \"kk\"", &["d.csv", "`data.cluster`", "no column \"kk\"", "x, k, s, w"]),
        (good, "stratify = \"5\"", &["d.csv", "`data.stratify`", "no column \"5\""]),
        ("x,k\n1,a\n2,a\n", "weight = \"k\"\ncategorical = [\"k\"]", &["`data.weight`", "\"k\" holds text"]),
        (good, "cluster = \"k\"\nstratify = \"2\"", &["`data.cluster` and `data.stratify`", "\"k\""]),
        (good, "target = \"x\"\nweight = \"x\"", &["the target and `data.weight`", "\"x\""]),
        (
            good,
            "cluster = \"k\"\nstratify = \"s\"\nweight = \"w\"\ncolumns = [\"x\", \"w\"]",
            &["`data.weight`, \"w\"", "`data.columns`"],
        ),
        ("x,w\n1,2\n2,-1\n", "weight = \"w\"", &["`data.weight`", "row 2", "-1", "number of observations"]),
        ("x,w\n1,2\n2,1e101\n", "weight = \"w\"", &["`data.weight`", "row 2", "1e100"]),
        ("x,w\n1,2\n2,NaN\n", "weight = \"w\"", &["d.csv:3", "\"w\"", "`data.missing_values`"]),
        (
            "x,w\n1,2\n2,?\n",
            "weight = \"w\"\nmissing_values = [\"?\"]",
            &["row 2", "`data.weight`", "`data.missing = \"drop\"`"],
        ),
        ("x,w\n1,0\n2,0\n", "weight = \"w\"", &["every row of the data has `data.weight` 0"]),
        ("x,w\n1,0.25\n2,0.75\n", "weight = \"w\"", &["`data.weight`", "sums to 1", "number of rows"]),
        (
            "x,k,s\n1,a,p\n2,b,q\n4,a,q\n",
            "cluster = \"k\"\nstratify = \"s\"",
            &["cluster \"a\" lies in two strata", "`data.cluster`", "\"p\" and \"q\""],
        ),
        (
            "x,k,y\n1,a,1\n2,a,0\n",
            "cluster = \"k\"\ntarget = \"y\"\nsplit = 0.5",
            &["`data.split`", "one `data.cluster`"],
        ),
        (
            "x,k,y\n1,a,1\n2,b,0\n",
            "cluster = \"k\"\ntarget = \"y\"\nsplit = { test = 0.5, stratify = true }",
            &["e.toml:9", "`data.split.stratify`", "`data.cluster`"],
        ),
    ];
    let place = Place::new();
    for (data, keys, says) in cases {
        let model =
            if keys.contains("target") { "model.logistic.penalty = \"ridge\"" } else { "model.mean = {}" };
        let toml =
            format!("name = \"f\"\nseed = 1\n{model}\nsampler.B = 5\n[data]\ntrain = \"d.csv\"\n{keys}\n");
        let ended = place.write("d.csv", data).write("e.toml", toml).npl(&["run", "e.toml"]);
        assert_eq!(ended.code, Some(2), "{keys}: {}", ended.stderr);
        ended.assert_decent(keys);
        for text in *says {
            assert!(ended.stderr.contains(text), "{keys}: no {text:?} in\n{}", ended.stderr);
        }
        assert!(!place.exists("runs"), "{keys}");
    }
    let simulated = "name = \"f\"\nseed = 1\nmodel.mean = {}\nsampler.B = 5\ndata.cluster = \"k\"\n\
                     [data.simulate.normal]\nn = 5\nmean = 0.0\nsd = 1.0\n";
    let ended = place.write("e.toml", simulated).npl(&["run", "e.toml"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("`data.cluster` belongs to data from a file"), "{}", ended.stderr);
}

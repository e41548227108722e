//! Posteriors known in closed form: means, variances and quantiles of a Dirichlet process, with every truncation's own
//! finite-T correction.

use crate::support::*;
use statrs::distribution::{Beta, Binomial, ContinuousCDF, Discrete, Normal};

use npl::data::Dataset;
use npl::process::BaseMeasure;
use npl::process::base;
use npl::rng::{Purpose, Seed};

const ALPHA: f64 = 2.5;
const N: f64 = 5.0;
const MASS: f64 = N + ALPHA;
/// F_π = N(3, 2²) in every test with a continuous base measure.
const BASE_MEAN: f64 = 3.0;
const BASE_VARIANCE: f64 = 4.0;
const BASE: &str = "base = { normal = { mean = 3.0, sd = 2.0 } }";

fn theta(seed: u64, draws: usize, rest: &str) -> Vec<f64> {
    entry(&run(&experiment(seed, draws, &file_of(&FIVE), rest)), 0)
}

/// Mean and variance of G_n, the posterior's base measure.
fn posterior_base() -> (f64, f64) {
    let y = Moments::of_values(&FIVE);
    let mean = (N * y.mean + ALPHA * BASE_MEAN) / MASS;
    let between = N * ALPHA * (y.mean - BASE_MEAN).powi(2) / (MASS * MASS);
    (mean, (N * y.m2 + ALPHA * BASE_VARIANCE) / MASS + between)
}

/// E V² of the prior mass V ~ Beta(α, n).
fn squared_prior_mass() -> f64 {
    ALPHA * (ALPHA + 1.0) / (MASS * (MASS + 1.0))
}

fn prior(lines: &str) -> String {
    format!("[model.mean]\n[prior]\nalpha = {ALPHA:?}\n{BASE}\n{lines}")
}

#[test]
fn the_bayesian_bootstrap_mean_has_rubins_four_moments() {
    let exact = Moments::of_values(&FIVE).of_dp_mean(N);
    for seed in SEEDS {
        let theta = theta(seed, 100_000, "[model.mean]");
        assert_mean(&format!("mean, seed {seed}"), &theta, exact.mean, exact.m2);
        assert_var(&format!("variance, seed {seed}"), &theta, exact);
        assert_moment(&format!("third moment, seed {seed}"), &theta, exact.mean, 3, exact.m3);
        assert_moment(&format!("fourth moment, seed {seed}"), &theta, exact.mean, 4, exact.m4);
    }
}

/// Efron's bootstrap has variance s²/n where the Bayesian one has s²/(n + 1): at n = 5 a fifth more.
#[test]
fn the_bayesian_bootstrap_is_not_efrons() {
    let y = Moments::of_values(&FIVE);
    let exact = y.of_dp_mean(N);
    for seed in SEEDS {
        let theta = theta(seed, 20_000, "[model.mean]");
        assert!(z_of_variance(&theta, y.mean, y.m2 / N, exact.m4).abs() > 2.0 * LIMIT);
    }
}

#[test]
fn exact_weights_on_historical_data_have_the_moments_of_the_dirichlet_process() {
    let history = [3.0, -2.0, 0.5, 7.0];
    let values: Vec<f64> = FIVE.iter().chain(&history).copied().collect();
    let shares: Vec<f64> = (0..9).map(|i| if i < 5 { 1.0 } else { ALPHA / 4.0 }).collect();
    let exact = Moments::of(&values, &shares).of_dp_mean(MASS);
    let file = file_of(&history);
    let base = format!("base = {{ empirical = {{ file = {:?} }} }}", file.path().display().to_string());
    for seed in SEEDS {
        let theta = theta(seed, 50_000, &format!("[model.mean]\n[prior]\nalpha = {ALPHA:?}\n{base}"));
        assert_mean(&format!("mean, seed {seed}"), &theta, exact.mean, exact.m2);
        assert_var(&format!("variance, seed {seed}"), &theta, exact);
        assert_moment(&format!("third moment, seed {seed}"), &theta, exact.mean, 3, exact.m3);
        assert_moment(&format!("fourth moment, seed {seed}"), &theta, exact.mean, 4, exact.m4);
    }
}

/// E θ is the mean of G_n for every T; Var θ = (V_G + α²τ²/(T M))/(M + 1).
#[test]
fn finitely_many_pseudo_samples_inflate_the_variance_by_a_known_amount() {
    let (mean, variance) = posterior_base();
    for t in [1, 3, 50] {
        let exact = (variance + ALPHA * ALPHA * BASE_VARIANCE / (t as f64 * MASS)) / (MASS + 1.0);
        for seed in SEEDS {
            let theta = theta(seed, 50_000, &prior(&format!("T = {t}")));
            assert_mean(&format!("mean, T = {t}, seed {seed}"), &theta, mean, exact);
            assert_moment(&format!("variance, T = {t}, seed {seed}"), &theta, mean, 2, exact);
        }
    }
}

/// With r = α/(α + 2) the T-th stick, which takes the rest, adds E V² τ² r^(T−1) α/(1 + α).
#[test]
fn truncated_sticks_inflate_the_variance_by_a_known_amount() {
    let (mean, variance) = posterior_base();
    for t in [1, 2, 5] {
        let rest = (ALPHA / (ALPHA + 2.0)).powi(t - 1) * ALPHA / (1.0 + ALPHA);
        let exact = variance / (MASS + 1.0) + squared_prior_mass() * BASE_VARIANCE * rest;
        for seed in SEEDS {
            let lines = format!("T = {t}\ntruncation = \"stick_breaking\"");
            let theta = theta(seed, 50_000, &prior(&lines));
            assert_mean(&format!("mean, T = {t}, seed {seed}"), &theta, mean, exact);
            assert_moment(&format!("variance, T = {t}, seed {seed}"), &theta, mean, 2, exact);
        }
    }
}

/// One atom takes ε U^(1/α) where V > ε and all of V where V ≤ ε: τ² α/(α+1) (ε² α/(α+2) P(V > ε) + E[V²; V ≤ ε]).
#[test]
fn adaptive_sticks_inflate_the_variance_by_a_known_amount() {
    let (mean, variance) = posterior_base();
    for epsilon in [0.3, 0.05] {
        let above = Beta::new(ALPHA, N).unwrap().sf(epsilon);
        let below = squared_prior_mass() * Beta::new(ALPHA + 2.0, N).unwrap().cdf(epsilon);
        let lumped = epsilon * epsilon * ALPHA / (ALPHA + 2.0) * above + below;
        let exact = variance / (MASS + 1.0) + BASE_VARIANCE * ALPHA / (ALPHA + 1.0) * lumped;
        for seed in SEEDS {
            let theta = theta(seed, 50_000, &prior(&format!("truncation = {{ adaptive = {epsilon:?} }}")));
            assert_mean(&format!("mean, ε = {epsilon}, seed {seed}"), &theta, mean, exact);
            assert_moment(&format!("variance, ε = {epsilon}, seed {seed}"), &theta, mean, 2, exact);
        }
    }
}

/// Supplement E.1 with n = 0: the prior of θ has variance (σ² + τ²)(1 + α/T)/(1 + α) = 1.001.
#[test]
fn normal_location_without_data_is_the_prior_of_theta() {
    for seed in SEEDS {
        let toml = format!(
            "name = \"t\"\nseed = {seed}\n[data.simulate.normal]\nn = 0\nmean = 1.0\nsd = 1.0\n\
             [model.normal]\nsigma2 = 1.0\nprior.tau2 = 1.0\n\
             [prior]\nalpha = 1.0\nT = 1000\nbase = \"prior_predictive\"\n[sampler]\nB = 10000"
        );
        let theta = entry(&run(&toml), 0);
        assert_mean(&format!("mean, seed {seed}"), &theta, 0.0, 1.001);
        assert_moment(&format!("variance, seed {seed}"), &theta, 0.0, 2, 1.001);
    }
}

/// Var θ = τ²(1 + α/T)/(1 + α); one pseudo-sample is θ itself.
#[test]
fn without_data_the_mean_has_the_variance_of_its_truncation() {
    let base = Normal::new(BASE_MEAN, BASE_VARIANCE.sqrt()).unwrap();
    for t in [1, 4] {
        let exact = BASE_VARIANCE * (1.0 + ALPHA / t as f64) / (1.0 + ALPHA);
        for seed in SEEDS {
            let file = file_of(&FIVE);
            let toml = experiment(seed, 50_000, &file, &prior(&format!("T = {t}")));
            let theta = entry(&run(&toml.replacen("[data]\n", "[data]\nrows = 0\n", 1)), 0);
            assert_mean(&format!("mean, T = {t}, seed {seed}"), &theta, BASE_MEAN, exact);
            assert_moment(&format!("variance, T = {t}, seed {seed}"), &theta, BASE_MEAN, 2, exact);
            if t == 1 {
                assert_distribution(&format!("T = 1, seed {seed}"), &theta, |x| base.cdf(x));
            }
        }
    }
}

/// E Var_F = V_G − Var θ, with no prior s² n/(n + 1).
#[test]
fn the_variance_of_one_component_has_its_exact_mean() {
    let y = Moments::of_values(&FIVE);
    let (_, variance) = posterior_base();
    let inflated = (variance + ALPHA * ALPHA * BASE_VARIANCE / (3.0 * MASS)) / (MASS + 1.0);
    let one = "[model.gmm]\nK = 1\nvariance_floor = 1e-12\n";
    let with_prior = format!("{one}[prior]\nalpha = {ALPHA:?}\n{BASE}\nT = 3");
    for seed in SEEDS {
        for (what, rest, exact) in
            [("no prior", one, y.m2 * N / (N + 1.0)), ("T = 3", &with_prior, variance - inflated)]
        {
            let draws = run(&experiment(seed, 20_000, &file_of(&FIVE), rest));
            assert_average(&format!("{what}, seed {seed}"), &entry(&draws, 2), exact);
        }
    }
}

#[test]
fn every_draw_of_the_mean_is_the_weighted_sum_of_its_atoms() {
    let file = file_of(&FIVE);
    for rest in ["[model.mean]".to_owned(), prior("T = 30"), prior("")] {
        let toml = experiment(1, 300, &file, &rest);
        let trial = study(&toml).trial(0).unwrap();
        for draw in run(&toml) {
            let f = trial.prior.posterior_draw(&trial.train, trial.seed, draw.index);
            assert_close("θ", draw.theta[0], weighted_moment(&f, 1), 1e-12);
        }
    }
}

/// P(θ = y₍ₖ₎) is the binomial probability of k − 1 in n − 1 trials of probability q.
#[test]
fn a_bootstrap_quantile_picks_order_statistics_binomially() {
    let y: [f64; 9] = [3.0, -1.0, 4.5, 1.25, -5.5, 9.0, 2.5, 6.75, 5.0];
    let mut sorted = y;
    sorted.sort_unstable_by(f64::total_cmp);
    let file = file_of(&y);
    let quantile = |q: f64| (q, format!("[model.quantile]\nq = {q:?}"));
    for (q, rest) in
        [quantile(0.1), quantile(0.37), quantile(0.5), quantile(0.9), (0.5, "[model.median]".into())]
    {
        let p: Vec<f64> = (0..9).map(|k| Binomial::new(q, 8).unwrap().pmf(k)).collect();
        for seed in SEEDS {
            let mut counts = vec![0; 9];
            for theta in entry(&run(&experiment(seed, 30_000, &file, &rest)), 0) {
                counts[sorted.iter().position(|&y| y == theta).expect("a quantile is an atom")] += 1;
            }
            assert_counts(&format!("{rest:?}, seed {seed}"), &counts, &p);
        }
    }
}

/// P(θ ≤ t) = E P(Beta(a, M − a) ≥ q) with a = #{y ≤ t} + α J/T and J ~ Bin(T, F_π(t)).
#[test]
fn a_quantile_with_pseudo_samples_mixes_beta_tails() {
    let (t_max, alpha, q) = (5u64, 3.0, 0.4);
    let mass = N + alpha;
    let base = |t: f64| ((t + 2.0) / 8.0).clamp(0.0, 1.0);
    let tail = |a: f64| match a {
        a if a <= 0.0 => 0.0,
        a if a >= mass => 1.0,
        a => Beta::new(a, mass - a).unwrap().sf(q),
    };
    let cdf = |t: f64| {
        let seen = FIVE.iter().filter(|y| **y <= t).count() as f64;
        let pseudo = Binomial::new(base(t), t_max).unwrap();
        (0..=t_max).map(|j| pseudo.pmf(j) * tail(seen + alpha * j as f64 / t_max as f64)).sum()
    };
    let rest = format!(
        "[model.quantile]\nq = {q}\n[prior]\nalpha = {alpha:?}\nT = {t_max}\n\
         base = {{ uniform = {{ low = -2.0, high = 6.0 }} }}"
    );
    for seed in SEEDS {
        assert_distribution(&format!("seed {seed}"), &theta(seed, 30_000, &rest), cdf);
    }
}

#[test]
fn base_measures_have_the_moments_they_state() {
    let train = std::sync::Arc::new(Dataset::unnamed(ndarray::Array2::zeros((3, 2)), None));
    let mixture =
        model("[gmm]\nK = 2\nvariance_floor = 1e-6\nprior = { mu = [1.0, 2.0], sigma = [0.2, 0.3] }", &train);
    let normal = model("[normal]\nsigma2 = 1.5\nprior = { tau2 = 2.5 }", &train);
    // E σ² and E σ⁴ of a log-normal σ.
    let (s2, s4) = ((0.4f64 + 0.18).exp(), (0.8f64 + 0.72).exp());
    let of_mixture = Moments { mean: 1.0, m2: 4.0 + s2, m3: 0.0, m4: 48.0 + 24.0 * s2 + 3.0 * s4 };
    let gaussian = |mean: f64, v: f64| Moments { mean, m2: v, m3: 0.0, m4: 3.0 * v * v };
    let bases: Vec<(&str, Box<dyn BaseMeasure>, Moments)> = vec![
        ("mixture", mixture.prior_predictive(&train).unwrap(), of_mixture),
        ("normal location", normal.prior_predictive(&train).unwrap(), gaussian(0.0, 4.0)),
        ("normal", Box::new(base::Normal { mean: vec![3.0; 2], sd: vec![2.0; 2] }), gaussian(3.0, 4.0)),
        (
            "uniform",
            Box::new(base::Uniform { low: vec![-1.0; 2], high: vec![5.0; 2] }),
            Moments { mean: 2.0, m2: 3.0, m3: 0.0, m4: 81.0 / 5.0 },
        ),
        (
            "history",
            Box::new(base::Empirical::new(Dataset::unnamed(
                ndarray::array![[0.0, 0.0], [3.0, 3.0], [6.0, 6.0]],
                None,
            ))),
            Moments { mean: 3.0, m2: 6.0, m3: 0.0, m4: 54.0 },
        ),
    ];
    for (name, base, exact) in bases {
        for (mean, variance) in base.moments().unwrap() {
            assert_close(&format!("{name}, stated mean"), mean, exact.mean, 1e-12);
            assert_close(&format!("{name}, stated variance"), variance, exact.m2, 1e-12);
        }
        for seed in SEEDS {
            let rows = base.sample(100_000, &mut Seed(seed).stream(Purpose::PseudoSamples, 0, 0)).to_rows();
            let columns: Vec<Vec<f64>> = (0..2).map(|j| rows.x.column(j).collect::<Vec<f64>>()).collect();
            for column in &columns {
                assert_mean(&format!("{name}, mean, seed {seed}"), column, exact.mean, exact.m2);
                assert_var(&format!("{name}, variance, seed {seed}"), column, exact);
            }
            if name != "history" {
                assert_uncorrelated(&format!("{name}, columns, seed {seed}"), &columns[0], &columns[1]);
            }
        }
    }
}

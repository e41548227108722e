//! Conventional Bayes: densities and gradients, samplers against exact posteriors, weights against exact evidence.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::support::*;
use ndarray::{Array1, Array2};
use npl::bayes::importance::{NEGLIGIBLE, Proposal, Weighing, WeightSums};
use npl::bayes::{LogDensity, Posterior};
use npl::data::Dataset;
use npl::init::Dist;
use npl::math::{log_sum_exp, mean, sd};
use npl::model::Joint;
use npl::model::{Block, Support};
use npl::rng::{Purpose, Seed};
use npl::samples::Sample;
use rand::distr::Distribution;
use rand_distr::StandardNormal;

/// Numbers without a pattern, between −1 and 1.
fn noise(i: usize) -> f64 {
    ((i * 7919 + 13) % 997) as f64 / 498.0 - 1.0
}

fn normals(n: usize, stream: u64) -> Vec<f64> {
    let mut rng = Seed(99).stream(Purpose::Auxiliary, stream, 0);
    (0..n).map(|_| StandardNormal.sample(&mut rng)).collect()
}

// -------------------------------------------------------------------------------------------------------- gradients

/// The gradient against central differences at 20 random points.
fn assert_gradient(what: &str, target: &dyn LogDensity) {
    let dim = target.dim();
    for point in 0..20 {
        let u: Vec<f64> = normals(dim, point).iter().map(|z| 0.8 * z).collect();
        let mut gradient = vec![f64::NAN; dim];
        let value = target.evaluate(&u, &mut gradient);
        assert!(value.is_finite(), "{what}: {value} at {u:?}");
        for i in 0..dim {
            let moved = |by: f64| {
                let mut v = u.clone();
                v[i] += by;
                target.evaluate(&v, &mut vec![0.0; dim])
            };
            let h = 1e-5;
            let slope = (8.0 * (moved(h) - moved(-h)) - (moved(2.0 * h) - moved(-2.0 * h))) / (12.0 * h);
            // Rounding of values around 10³, over h.
            let tolerance = 1e-6 * (1.0 + slope.abs() + value.abs() * 1e-3);
            assert!((slope - gradient[i]).abs() < tolerance, "{what} [{i}]: {} for {slope}", gradient[i]);
        }
    }
}

/// Data, with case weights, and every table that makes a conventional model of them.
fn cases() -> Vec<(&'static str, Dataset)> {
    let line = Dataset::from_values((0..41).map(|i| 3.0 * noise(i) + f64::from(i % 2 == 0)).collect());
    let plane = Dataset::unnamed(Array2::from_shape_fn((30, 2), |(i, j)| 2.0 * noise(2 * i + j)), None);
    let coin = |(i, j): (usize, usize)| f64::from(u8::from(noise(5 * i + j) > 0.1 * j as f64));
    let coins = Dataset::unnamed(Array2::from_shape_fn((35, 3), coin), None);
    let sparse = |(i, j): (usize, usize)| if (i + 3 * j) % 4 == 0 { 1.5 + noise(7 * i + j) } else { 0.0 };
    let sparse = Dataset::unnamed(Array2::from_shape_fn((25, 66), sparse), None);
    let x = Array2::from_shape_fn((37, 4), |(i, j)| noise(4 * i + j + 5));
    let regression = Dataset::unnamed(x, Some(Array1::from_shape_fn(37, |i| f64::from(noise(3 * i) > 0.1))));
    vec![
        ("[normal]\nsigma2 = 2.0\nprior = { tau2 = 3.0 }", plane.clone()),
        (
            "[gmm]\nK = 3\nvariance_floor = 1e-6\nprior = { a0 = 0.4, mu = [0.5, 2.0], sigma = [-0.2, 0.7] }",
            line,
        ),
        (
            "[gmm]\nK = 3\nvariance_floor = 1e-6\ncovariance = \"spherical\"\nprior = { a0 = 0.4, mu = [0.5, 2.0], sigma = [-0.2, 0.7] }",
            plane.clone(),
        ),
        ("[bernoulli_mixture]\nK = 2\nprior = { a0 = 0.7, p = [2.0, 0.8] }", coins),
        ("[gmm]\nK = 2\nvariance_floor = 1e-6\nprior = {}", plane),
        ("[gmm]\nK = 2\nvariance_floor = 1e-6\nprior = { a0 = 1000.0 }", sparse),
        ("[logistic]\npenalty = { student_t = { a = 1.3, b = 0.6 } }", regression.clone()),
        (
            "[logistic]\nard = \"marginal\"\npenalty = { student_t = { a = 1.3, b = 0.6 } }",
            regression.clone(),
        ),
        ("[logistic]\ngamma = 0.2\npenalty = { student_t = { a = 1.0, b = 2.0 } }", regression.clone()),
        ("[logistic]\npenalty = \"ridge\"", regression.clone()),
        ("[logistic]\npenalty = \"lasso\"", regression),
    ]
}

#[test]
fn gradients_are_those_of_the_densities() {
    for (table, data) in cases() {
        let model = model(table, &data);
        let posterior = Posterior::new(model.joint(&data).unwrap_or_else(|e| panic!("{e:?}")));
        assert_gradient(table, &posterior);
        // A density alone is the same density.
        let theta = posterior.constrain(&vec![0.3; posterior.dim()]);
        let mut gradient = vec![0.0; theta.len()];
        let with = posterior.joint().log_density(&theta, Some(&mut gradient));
        let without = posterior.joint().log_density(&theta, None);
        assert!((with - without).abs() < 1e-9 * with.abs(), "{table}: {with} and {without}");
    }
}

#[test]
fn case_weights_are_repeated_rows() {
    for (table, data) in cases().into_iter().filter(|(_, data)| data.d() < 10) {
        let counts: Vec<f64> = (0..data.n()).map(|i| (1 + i % 3) as f64).collect();
        let rows: Vec<usize> = (0..data.n()).flat_map(|i| vec![i; 1 + i % 3]).collect();
        let repeated = data.select(&rows);
        let design = npl::data::design::Design::new(Some(counts), None, None);
        let weighted = data.with_design(design);
        let value = |data: &Dataset| {
            let model = model(table, data);
            let posterior = Posterior::new(model.joint(data).unwrap());
            let mut gradient = vec![0.0; posterior.dim()];
            let value = posterior.evaluate(&vec![0.2; posterior.dim()], &mut gradient);
            gradient.into_iter().chain([value]).collect::<Vec<f64>>()
        };
        for (a, b) in value(&weighted).iter().zip(value(&repeated)) {
            assert!((a - b).abs() < 1e-10 * (1.0 + a.abs()), "{table}: {a} and {b}");
        }
    }
}

/// Where λ is integrated out by quadrature, the hierarchy leaves the marginal prior, constant included.
#[test]
fn the_marginal_prior_is_the_hierarchy_without_its_precisions() {
    let data = Dataset::unnamed(Array2::zeros((2, 1)), Some(Array1::from(vec![0.0, 1.0])));
    let penalty = "penalty = { student_t = { a = 1.3, b = 0.6 } }";
    let hierarchy = model(&format!("[logistic]\n{penalty}"), &data);
    let marginal = model(&format!("[logistic]\nard = \"marginal\"\n{penalty}"), &data);
    for beta in [0.0, 0.4, -1.7, 6.0] {
        let step = 1e-3;
        let at = |t: f64| {
            let theta = [beta, 0.1, t.exp()];
            hierarchy.joint(&data).unwrap().log_density(&theta, None) + t
        };
        let integral = log_sum_exp(&(-20_000..8_000).map(|i| at(f64::from(i) * step)).collect::<Vec<_>>());
        let exact = marginal.joint(&data).unwrap().log_density(&[beta, 0.1], None);
        assert!((integral + step.ln() - exact).abs() < 1e-6, "{beta}: {} for {exact}", integral + step.ln());
    }
}

// ------------------------------------------------------------------------------------------ an exact posterior

const Y: [f64; 6] = [0.3, 1.9, -0.4, 2.2, 1.1, 0.8];
const SIGMA2: f64 = 1.5;
const TAU2: f64 = 2.0;

/// Mean and variance of θ given Y, for y ~ N(θ, σ²), θ ~ N(0, τ²).
fn exact_location() -> (f64, f64) {
    let precision = Y.len() as f64 / SIGMA2 + 1.0 / TAU2;
    (Y.iter().sum::<f64>() / SIGMA2 / precision, 1.0 / precision)
}

/// log ∫ Π N(yᵢ; θ, σ²) N(θ; 0, τ²) dθ.
fn exact_evidence() -> f64 {
    let (mean, variance) = exact_location();
    let log_normal = |x: f64, m: f64, v: f64| -0.5 * ((x - m).powi(2) / v + (std::f64::consts::TAU * v).ln());
    Y.iter().map(|y| log_normal(*y, mean, SIGMA2)).sum::<f64>() + log_normal(mean, 0.0, TAU2)
        - log_normal(mean, mean, variance)
}

fn location(method: &str, seed: u64, draws: usize, rest: &str) -> (npl::report::Repeat, Vec<Sample>) {
    let file = file_of(&Y);
    let model = format!("[model.normal]\nsigma2 = {SIGMA2}\nprior = {{ tau2 = {TAU2} }}\n{rest}");
    let toml = experiment(seed, draws, &file, &model);
    run_with_report(&toml.replacen("[data]", &format!("method = \"{method}\"\n[data]"), 1))
}

#[test]
fn nuts_finds_a_posterior_that_is_known() {
    let (exact, variance) = exact_location();
    for seed in SEEDS {
        let (report, draws) = location("nuts", seed, 8000, "[nuts]\nchains = 4\nwarmup = 300");
        let chains = report.diagnostics.chains.unwrap();
        assert_eq!((chains.chains, chains.divergences), (4, 0));
        assert!(chains.max_rhat < 1.01 && chains.min_ess_bulk > 2000.0, "{chains:?}");
        let theta = entry(&draws, 0);
        let z = (mean(&theta) - exact) / (variance / chains.min_ess_bulk).sqrt();
        assert!(z.abs() < LIMIT, "seed {seed}: z = {z}");
        // The variance of a normal posterior, from as many independent draws as the tails have.
        let spread = (sd(&theta).powi(2) / variance - 1.0) / (2.0 / chains.min_ess_tail).sqrt();
        assert!(spread.abs() < LIMIT, "seed {seed}: z = {spread}");
        let chain = |c: usize| draws.iter().filter(|d| d.restart == c).count();
        assert_eq!((1..=4).map(chain).collect::<Vec<_>>(), [2000; 4]);
    }
}

/// The posterior is in the variational family: mean and sd come out to within the noise of stochastic steps.
#[test]
fn advi_finds_a_normal_posterior() {
    let (exact, variance) = exact_location();
    for seed in SEEDS {
        let rest = "[advi]\ntolerance = 1e-4\ngradient_samples = 20";
        let (report, draws) = location("advi", seed, 4000, rest);
        let advi = report.diagnostics.advi.unwrap();
        // At its best the ELBO is the log evidence.
        assert!((advi.elbo - exact_evidence()).abs() < 0.05, "{advi:?} for {}", exact_evidence());
        assert!(report.elbo.len() * 100 == advi.iterations && report.elbo.last().unwrap().elbo == advi.elbo);
        let theta = entry(&draws, 0);
        assert!((mean(&theta) - exact).abs() < 0.15 * variance.sqrt(), "{} for {exact}", mean(&theta));
        assert!((sd(&theta) / variance.sqrt() - 1.0).abs() < 0.15, "{} for {}", sd(&theta), variance.sqrt());
        // log q of a draw is that of a normal distribution with their moments.
        let (m, s) = (mean(&theta), sd(&theta));
        let log_q = |t: f64| -0.5 * ((t - m) / s).powi(2) - (s * std::f64::consts::TAU.sqrt()).ln();
        let middle = |d: &&Sample| ((d.theta[0] - m) / s).abs() < 2.0;
        assert!(draws.iter().filter(middle).all(|d| (d.extra[0] - log_q(d.theta[0])).abs() < 0.15));
    }
}

#[test]
fn weights_find_a_posterior_that_is_known_and_its_evidence() {
    let (exact, variance) = exact_location();
    let rest = "[importance]\nproposal.theta = { normal = [0.5, 1.2] }";
    for seed in SEEDS {
        let (report, draws) = location("importance", seed, 20_000, rest);
        let weights = report.diagnostics.importance.unwrap();
        assert_eq!((weights.draws, weights.kept), (20_000, draws.len() as u64));
        let logs: Vec<f64> = draws.iter().map(|d| d.extra[0]).collect();
        let total = log_sum_exp(&logs);
        let w: Vec<f64> = logs.iter().map(|l| (l - total).exp()).collect();
        let ess = 1.0 / w.iter().map(|w| w * w).sum::<f64>();
        assert!((weights.ess / ess - 1.0).abs() < 1e-10, "{weights:?}");
        assert!((weights.log_evidence - (total - 20_000f64.ln())).abs() < 1e-10);
        // Relative error of a mean of weights: √((B/ESS − 1)/B).
        let error = (1.0 / ess - 1.0 / 20_000.0).sqrt();
        let z = (weights.log_evidence - exact_evidence()) / error;
        assert!(z.abs() < LIMIT, "seed {seed}: {} for {}", weights.log_evidence, exact_evidence());
        let estimate: f64 = draws.iter().zip(&w).map(|(d, w)| d.theta[0] * w).sum();
        let error: f64 =
            draws.iter().zip(&w).map(|(d, w)| (w * (d.theta[0] - estimate)).powi(2)).sum::<f64>().sqrt();
        assert!(((estimate - exact) / error).abs() < LIMIT, "{estimate} for {exact}");
        let spread: f64 = draws.iter().zip(&w).map(|(d, w)| (d.theta[0] - estimate).powi(2) * w).sum();
        assert!((spread / variance - 1.0).abs() < 0.1, "{spread} for {variance}");
    }
}

/// A posterior that needs its constants: the evidence of one component, by importance sampling and by quadrature.
#[test]
fn the_evidence_of_a_mixture_is_normalised() {
    let data = Dataset::from_values(Y.to_vec());
    let model =
        model("[gmm]\nK = 1\nvariance_floor = 1e-9\nprior = { mu = [0.5, 1.0], sigma = [0.2, 0.5] }", &data);
    let joint = model.joint(&data).unwrap();
    let step = 0.02;
    let grid = (-150..250).flat_map(|i| (-150..250).map(move |j| (f64::from(i) * step, f64::from(j) * step)));
    let at = |(mu, v): (f64, f64)| joint.log_density(&[1.0, mu, v.exp()], None) + v;
    let exact = log_sum_exp(&grid.map(at).collect::<Vec<_>>()) + 2.0 * step.ln();
    let proposal = [
        ("pi", Dist::Dirichlet(npl::config::Positive::new(1.0).unwrap())),
        ("mu", Dist::Normal((1.0, npl::config::Positive::new(1.0).unwrap()))),
        ("sigma2", Dist::InverseGamma([3.0, 3.0].map(|v| npl::config::Positive::new(v).unwrap()))),
    ];
    let proposal = proposal.into_iter().map(|(k, v)| (k.to_owned(), v)).collect();
    let proposal = Proposal::new(joint.blocks(), &proposal).unwrap();
    let (seed, pool, cancel) = (Seed(1), pool(2), AtomicBool::new(false));
    let joint = joint.as_ref();
    let (draws, largest) = (0..40_000, f64::NEG_INFINITY);
    let weighing =
        Weighing { joint, proposal: &proposal, draws, largest, seed, pool: &pool, cancel: &cancel };
    let mut weights = WeightSums::default();
    let add = |_, log_weight, draw: Option<_>| {
        weights.add(log_weight, draw.is_some());
        Ok(())
    };
    weighing.sample(|_| (), add).unwrap();
    let weights = weights.weights();
    let error = (1.0 / weights.ess).sqrt();
    assert!((weights.log_evidence - exact).abs() < LIMIT * error, "{} for {exact}", weights.log_evidence);
    assert!(error < 0.02, "{weights:?}");
}

/// A density with a spike: nearly all weight is on few draws.
struct Spike;

impl Joint for Spike {
    fn names(&self) -> Vec<String> {
        vec!["x".into()]
    }

    fn blocks(&self) -> Vec<Block> {
        vec![Block { name: "x".into(), range: 0..1, support: Support::Real }]
    }

    fn log_density(&self, theta: &[f64], _gradient: Option<&mut [f64]>) -> f64 {
        -0.5 * (theta[0] / 1e-2).powi(2)
    }
}

#[test]
fn only_draws_without_weight_are_dropped_and_in_the_same_way_by_any_threads() {
    let normal = Dist::Normal((0.0, npl::config::Positive::new(1.0).unwrap()));
    let proposal = Proposal::new(Spike.blocks(), &[("x".to_owned(), normal)].into()).unwrap();
    let cancel = AtomicBool::new(false);
    let run = |threads: usize| {
        let (mut kept, mut weights) = (Vec::new(), WeightSums::default());
        let keep = |index: u64, log_weight: f64, draw: Option<_>| {
            weights.add(log_weight, draw.is_some());
            kept.extend(draw.map(|_| (index, log_weight.to_bits())));
            Ok(())
        };
        let pool = pool(threads);
        let weighing = Weighing {
            joint: &Spike,
            proposal: &proposal,
            draws: 0..10_000,
            largest: f64::NEG_INFINITY,
            seed: Seed(3),
            pool: &pool,
            cancel: &cancel,
        };
        weighing.sample(|_| (), keep).unwrap();
        assert_eq!(weights.weights().draws, 10_000);
        (weights.weights(), kept)
    };
    let (weights, kept) = run(1);
    assert_eq!(run(2), (weights, kept.clone()));
    assert_eq!(run(7), (weights, kept.clone()));
    let log_weight = |i: u64| {
        let theta = proposal.draw(&mut Seed(3).stream(Purpose::Proposal, i, 0));
        Spike.log_density(&theta, None) - proposal.log_density(&theta)
    };
    let all: Vec<f64> = (0..10_000).map(log_weight).collect();
    let largest = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let indices: Vec<u64> = kept.iter().map(|k| k.0).collect();
    assert!(kept.len() < 2000, "most weigh nothing, and {} were kept", kept.len());
    for (i, l) in all.iter().enumerate() {
        assert!(*l <= largest - NEGLIGIBLE || indices.contains(&(i as u64)), "draw {i} was dropped");
    }
    let total = log_sum_exp(&all);
    assert!((weights.log_evidence - (total - 10_000f64.ln())).abs() < 1e-10);
}

// ---------------------------------------------------------------------------------------------------------- MDP-NPL

/// Given θ̃ the mean of F is that of DP(α + n, …) with base N(θ̃, σ²) truncated at T; θ̃ is normal. With M = n + α,
/// E = (n ȳ + α E θ̃)/M and Var = E Var(· | θ̃) + (α/M)² Var θ̃, where Var(· | θ̃) = (V + α²σ²/(T M))/(M + 1) and
/// V = (n s² + α σ²)/M + n α (ȳ − θ̃)²/M².
#[test]
fn mdp_npl_of_a_mean_has_its_exact_moments() {
    let (centre, spread) = exact_location();
    let (n, alpha, t) = (6.0, 4.0, 20.0);
    let m: f64 = n + alpha;
    let ybar = mean(&Y);
    let s2 = Y.iter().map(|y| (y - ybar).powi(2)).sum::<f64>() / n;
    let expected = (n * ybar + alpha * centre) / m;
    let between = n * alpha * ((ybar - centre).powi(2) + spread) / (m * m);
    let within = (n * s2 + alpha * SIGMA2) / m + between + alpha * alpha * SIGMA2 / (t * m);
    let variance = within / (m + 1.0) + (alpha / m).powi(2) * spread;
    for seed in SEEDS {
        let rest = format!("[prior]\nalpha = {alpha}\nT = {t}\n[nuts]\nchains = 2\nwarmup = 300");
        let (report, draws) = location("mdp-npl", seed, 20_000, &rest);
        let chains = report.diagnostics.chains.unwrap();
        // Only the part that is due to θ̃ is autocorrelated: at worst all of it.
        let size = chains.min_ess_bulk.min(20_000.0);
        let theta = entry(&draws, 0);
        let z = (mean(&theta) - expected) / (variance / size).sqrt();
        assert!(z.abs() < LIMIT, "seed {seed}: {} for {expected}", mean(&theta));
        let z = (sd(&theta).powi(2) / variance - 1.0) / (3.0 / size).sqrt();
        assert!(z.abs() < LIMIT, "seed {seed}: {} for {variance}", sd(&theta).powi(2));
    }
}

/// Pseudo-samples are the model's: each row from a component of its own, each response from its row's probability.
#[test]
fn the_model_at_a_draw_is_what_pseudo_samples_come_from() {
    let data = Arc::new(Dataset::unnamed(Array2::zeros((2, 2)), None));
    let gmm = model("[gmm]\nK = 2\nvariance_floor = 1e-6", &data);
    let theta = [0.3, 0.7, -5.0, 2.0, 5.0, 1.0, 0.04, 4.0, 1.0, 0.25];
    let base = gmm.sampling(&theta, &data).unwrap();
    let rows = base.sample(20_000, &mut Seed(1).stream(Purpose::PseudoSamples, 0, 0)).to_rows();
    let of = |low: bool, j: usize| -> Vec<f64> {
        rows.x.iter().filter(|r| (r[0] < 0.0) == low).map(|r| r[j]).collect()
    };
    let share = of(true, 0).len() as f64 / 20_000.0;
    assert!((share - 0.3).abs() < LIMIT * (0.21f64 / 20_000.0).sqrt(), "{share}");
    for (low, j, m, v) in
        [(true, 0, -5.0, 0.04), (true, 1, 2.0, 4.0), (false, 0, 5.0, 1.0), (false, 1, 1.0, 0.25f64)]
    {
        assert_mean("component", &of(low, j), m, v);
    }
    let x = Array2::from_shape_vec((3, 1), vec![-1.0, 0.0, 2.0]).unwrap();
    let data = Arc::new(Dataset::unnamed(x, Some(Array1::from(vec![0.0, 1.0, 1.0]))));
    let logistic = model("[logistic]\npenalty = \"ridge\"", &data);
    let base = logistic.sampling(&[1.5, -0.5], &data).unwrap();
    let eta = |x: f64| 1.0 / (1.0 + (0.5 - 1.5 * x).exp());
    let expected = [-1.0, 0.0, 2.0]
        .map(|x| eta(x) / 3.0)
        .into_iter()
        .chain([-1.0, 0.0, 2.0].map(|x| (1.0 - eta(x)) / 3.0));
    for (share, exact) in base.shares().unwrap().iter().zip(expected) {
        assert_close("share", *share, exact, 1e-14);
    }
}

//! The Gaussian mixture: identities that hold at every fit, symmetries of the posterior, and the variance floor.

use crate::support::*;
use statrs::distribution::{ContinuousCDF, Normal};

use npl::bootstrap::{Draw, Scheme};
use npl::data::Dataset;
use npl::model::Model;
use npl::optim::Status;
use npl::process::{Measure, Prior, Truncation, base};
use npl::restarts::same_minimum;
use npl::rng::{Purpose, Seed};
use npl::samples::Sample;

const TWO: &str = "[gmm]\nK = 2\nvariance_floor = 1e-8";
const THREE: &str = "[gmm]\nK = 3\nvariance_floor = 1e-8";
/// Starts that favour no component and put no two means on one row.
const EXCHANGEABLE: &str = "mu = { uniform = [-3.0, 6.0] }\nsigma2 = { inverse_gamma = [2.0, 1.0] }";

/// `sizes[k]` normal quantiles about `means[k]`: data without randomness.
fn clusters(sizes: &[usize], means: &[f64], sd: f64) -> Dataset {
    let normal = Normal::new(0.0, 1.0).unwrap();
    let cluster = |(&n, &mean): (&usize, &f64)| {
        (0..n).map(move |i| mean + sd * normal.inverse_cdf((i as f64 + 0.5) / n as f64)).collect::<Vec<_>>()
    };
    Dataset::from_values(sizes.iter().zip(means).flat_map(cluster).collect())
}

/// Two clusters that no fit confuses.
fn apart() -> Dataset {
    clusters(&[24, 36], &[-3.0, 3.0], 0.8)
}

/// Three clusters that overlap.
fn overlapping() -> Dataset {
    clusters(&[12, 18, 30], &[0.0, 2.0, 4.0], 0.9)
}

fn random_restart(model: &dyn Model, data: &Dataset, restarts: usize, starts: &str) -> Scheme {
    Scheme::RandomRestart { restarts, init: init(model, data, starts), stop: None }
}

/// Mean and second moment of a fitted mixture on the line.
fn fitted_moments(theta: &[f64]) -> (f64, f64) {
    let k = theta.len() / 3;
    let parts = (0..k).map(|c| (theta[c], theta[k + c], theta[2 * k + c]));
    parts.fold((0.0, 0.0), |(one, two), (pi, mu, s2)| (one + pi * mu, two + pi * (s2 + mu * mu)))
}

fn measure<'a>(data: &'a Dataset, seed: u64, draw: u64) -> Measure<'a> {
    Prior::Noninformative.posterior_draw(data, Seed(seed), draw)
}

fn starts(model: &dyn Model, data: &Dataset, starts: &str, draw: u64) -> Vec<f64> {
    init(model, data, starts).draw(&mut Seed(1).stream(Purpose::Init, draw, 0))
}

fn permuted(theta: &[f64], order: &[usize]) -> Vec<f64> {
    let k = order.len();
    (0..3).flat_map(|block| order.iter().map(move |&c| theta[block * k + c])).collect()
}

#[test]
fn one_component_is_the_weighted_mean_and_variance() {
    let data = overlapping();
    let model = model("[gmm]\nK = 1\nvariance_floor = 1e-8", &data);
    for draw in 0..200 {
        let f = measure(&data, 1, draw);
        let minimum = model.minimise(&f, &[1.0, 10.0, 3.0]);
        let (mean, square) = (weighted_moment(&f, 1), weighted_moment(&f, 2));
        assert_eq!(minimum.theta[0], 1.0);
        assert_close("mean", minimum.theta[1], mean, 1e-12);
        assert_close("variance", minimum.theta[2], square - mean * mean, 1e-12);
    }
}

/// Mixture moments equal weighted sample moments after any M step, converged or not.
#[test]
fn every_em_step_keeps_mean_and_second_moment() {
    let data = overlapping();
    for iterations in [2, 3, 7, 40] {
        let rule = optimiser(&format!("change = 1e-300\nmax_iterations = {iterations}"));
        let model = model_with(THREE, &data, &rule);
        for draw in 0..100 {
            let f = measure(&data, 1, draw);
            let minimum = model.minimise(&f, &starts(model.as_ref(), &data, EXCHANGEABLE, draw));
            let (mean, square) = fitted_moments(&minimum.theta);
            assert_close("π", minimum.theta[..3].iter().sum(), 1.0, 1e-12);
            assert_close("mean", mean, weighted_moment(&f, 1), 1e-10);
            // A variance on the floor may exceed the weighted one by no more than the floor.
            assert_close("second moment", square, weighted_moment(&f, 2), 2e-8);
            if minimum.theta[6..].iter().all(|&s| s > 1e-7) {
                assert_close("second moment", square, weighted_moment(&f, 2), 1e-10);
            }
        }
    }
}

/// What the authors' M step adds to every variance is what the second moment has too much.
#[test]
fn what_is_added_to_variances_is_in_the_second_moment() {
    let data = overlapping();
    let rule = optimiser("change = 1e-300\nmax_iterations = 9");
    let model = model_with(&format!("{THREE}\nvariance_added = 0.125"), &data, &rule);
    for draw in 0..100 {
        let f = measure(&data, 1, draw);
        let theta = model.minimise(&f, &starts(model.as_ref(), &data, EXCHANGEABLE, draw)).theta;
        let (mean, square) = fitted_moments(&theta);
        assert_close("mean", mean, weighted_moment(&f, 1), 1e-10);
        assert_close("second moment", square, weighted_moment(&f, 2) + 0.125, 1e-10);
    }
}

/// With gradient entries at most g: Σ πμ − ȳ = Σ gμ + σg' and the second moment is off by Σ g(μ² + σ²) + 2μσg' + 2σ²g''.
#[test]
fn converged_draws_keep_mean_and_second_moment_to_their_gradient() {
    let data = overlapping();
    let model = model_with(THREE, &data, &optimiser("tolerance = 1e-7"));
    let scheme = random_restart(model.as_ref(), &data, 1, EXCHANGEABLE);
    let draws = bootstrap(model.as_ref(), &Prior::Noninformative, &data, &scheme, 1, 0..1000, 2);
    let converged: Vec<&Draw> = draws.iter().filter(|d| d.minimum.status == Status::Ok).collect();
    assert!(converged.len() > 500, "{} converged", converged.len());
    for draw in converged {
        let f = measure(&data, 1, draw.index);
        let (theta, g) = (&draw.minimum.theta, draw.minimum.gradient);
        let size = |of: &dyn Fn(f64, f64) -> f64| {
            (0..3).map(|c| of(theta[3 + c].abs(), theta[6 + c].sqrt())).sum::<f64>()
        };
        let (mean, square) = fitted_moments(theta);
        let first = g * size(&|m, s| m + s);
        let second = g * size(&|m, s| m * m + s * s + 2.0 * m * s + 2.0 * s * s);
        assert!((mean - weighted_moment(&f, 1)).abs() <= first + 1e-12);
        assert!((square - weighted_moment(&f, 2)).abs() <= second + 1e-11);
        assert!(g < 1e-6, "gradient {g:e}");
    }
}

#[test]
fn the_mixture_mean_follows_the_law_of_the_bootstrap_mean() {
    let data = overlapping();
    let y = Moments::of_values(data.x.whole().as_slice().unwrap());
    let n = data.n() as f64;
    let model = model(THREE, &data);
    let exact = y.of_dp_mean(n);
    for (seed, restarts) in [(1, 1), (2, 1), (3, 3)] {
        let scheme = random_restart(model.as_ref(), &data, restarts, EXCHANGEABLE);
        let draws = bootstrap(model.as_ref(), &Prior::Noninformative, &data, &scheme, seed, 0..2000, 2);
        let moments: Vec<(f64, f64)> = draws.iter().map(|d| fitted_moments(&d.minimum.theta)).collect();
        let means: Vec<f64> = moments.iter().map(|m| m.0).collect();
        let variances: Vec<f64> = moments.iter().map(|m| m.1 - m.0 * m.0).collect();
        assert_mean(&format!("mean, seed {seed}"), &means, exact.mean, exact.m2);
        assert_var(&format!("variance, seed {seed}"), &means, exact);
        assert_average(&format!("mixture variance, seed {seed}"), &variances, y.m2 * n / (n + 1.0));
    }
}

/// As for the mean functional: Var = (V_G + α²τ²/(T M))/(M + 1), and the mixture variance averages V_G − Var.
#[test]
fn the_mixture_mean_follows_the_law_of_the_posterior_mean() {
    let data = apart().select(&(0..60).step_by(6).collect::<Vec<_>>());
    let y = Moments::of_values(data.x.whole().as_slice().unwrap());
    let (n, alpha, t, mu, tau2) = (data.n() as f64, 6.0, 2.0, 1.0, 9.0);
    let mass = n + alpha;
    let mean = (n * y.mean + alpha * mu) / mass;
    let total = (n * y.m2 + alpha * tau2) / mass + n * alpha * (y.mean - mu).powi(2) / (mass * mass);
    let variance = (total + alpha * alpha * tau2 / (t * mass)) / (mass + 1.0);
    let base = Box::new(base::Normal { mean: vec![mu], sd: vec![3.0] });
    let prior = Prior::Dp { alpha, base, truncation: Truncation::Dirichlet { t: 2 } };
    let model = model(TWO, &data);
    for seed in SEEDS {
        let scheme = random_restart(model.as_ref(), &data, 1, EXCHANGEABLE);
        let draws = bootstrap(model.as_ref(), &prior, &data, &scheme, seed, 0..4000, 2);
        let moments: Vec<(f64, f64)> = draws.iter().map(|d| fitted_moments(&d.minimum.theta)).collect();
        let means: Vec<f64> = moments.iter().map(|m| m.0).collect();
        let variances: Vec<f64> = moments.iter().map(|m| m.1 - m.0 * m.0).collect();
        assert_mean(&format!("mean, seed {seed}"), &means, mean, variance);
        assert_moment(&format!("variance, seed {seed}"), &means, mean, 2, variance);
        assert_average(&format!("mixture variance, seed {seed}"), &variances, total - variance);
    }
}

/// Plain EM, cut after 1, 2, … iterations, from random starts and from fits, with a floor that binds and without.
#[test]
fn em_never_raises_the_objective() {
    let data = overlapping();
    let penalty = "penalty = { inverse_gamma = [1.0, 0.1] }\ngamma = 0.05";
    for table in [
        THREE.to_owned(),
        "[gmm]\nK = 3\nvariance_floor = 0.5".to_owned(),
        format!("{THREE}\n{penalty}"),
        format!("[gmm]\nK = 3\nvariance_floor = 0.5\n{penalty}"),
    ] {
        let fit = model(&table, &data);
        for draw in 0..20 {
            let f = measure(&data, 1, draw);
            let random = starts(fit.as_ref(), &data, EXCHANGEABLE, draw);
            let fitted = fit.minimise(&f, &random).theta;
            for start in [random, fitted] {
                let mut last = f64::INFINITY;
                for iterations in 1..=30 {
                    let rule = optimiser(&format!("change = 1e-300\nmax_iterations = {iterations}"));
                    let value = model_with(&table, &data, &rule).minimise(&f, &start).value;
                    assert!(value <= last + 1e-12 * value.abs(), "{table}: {last} then {value}");
                    last = value;
                }
            }
        }
    }
}

#[test]
fn every_order_of_the_components_is_equally_likely() {
    let data = overlapping();
    let model = model(THREE, &data);
    for (seed, restarts) in [(1, 1), (2, 1), (3, 3)] {
        let scheme = random_restart(model.as_ref(), &data, restarts, EXCHANGEABLE);
        let draws = bootstrap(model.as_ref(), &Prior::Noninformative, &data, &scheme, seed, 0..3000, 2);
        let (mut counts, mut tied) = ([0; 6], 0);
        for draw in &draws {
            let mu = &draw.minimum.theta[3..6];
            // Two components may have collapsed onto one row; leaving those out favours no order.
            if mu[0] == mu[1] || mu[1] == mu[2] || mu[0] == mu[2] {
                tied += 1;
                continue;
            }
            let rank = |c: usize| (0..3).filter(|&e| mu[e] < mu[c]).count();
            counts[2 * rank(0) + usize::from(rank(1) > rank(2))] += 1;
        }
        assert!(tied < 300, "{tied} ties");
        assert_counts(&format!("seed {seed}"), &counts, &[1.0 / 6.0; 6]);
        for (name, block) in [("π", 0), ("μ", 3), ("log σ²", 6)] {
            for (a, b) in [(0, 1), (1, 2), (0, 2)] {
                let scale = |v: f64| if block == 6 { v.ln() } else { v };
                let difference =
                    |d: &Draw| scale(d.minimum.theta[block + a]) - scale(d.minimum.theta[block + b]);
                let differences: Vec<f64> = draws.iter().map(difference).collect();
                assert_average(&format!("{name} {a} and {b}, seed {seed}"), &differences, 0.0);
            }
        }
    }
}

#[test]
fn permuting_the_start_permutes_the_fit() {
    let data = overlapping();
    let model = model_with(THREE, &data, &optimiser("tolerance = 1e-8"));
    for draw in 0..50 {
        let f = measure(&data, 1, draw);
        let start = starts(model.as_ref(), &data, EXCHANGEABLE, draw);
        let fit = model.minimise(&f, &start);
        if fit.status != Status::Ok {
            continue;
        }
        for order in [[1, 2, 0], [0, 2, 1]] {
            let other = model.minimise(&f, &permuted(&start, &order));
            assert_close("objective", other.value, fit.value, 1e-9);
            for (a, b) in other.theta.iter().zip(permuted(&fit.theta, &order)) {
                assert_close("θ", *a, b, 1e-7);
            }
        }
    }
}

/// Lower, or the same minimum again.
fn not_higher(a: f64, b: f64) -> bool {
    a <= b || same_minimum(a, b)
}

#[test]
fn more_restarts_never_end_higher() {
    let data = overlapping();
    let model = model(THREE, &data);
    for seed in SEEDS {
        let runs = [1, 2, 5].map(|restarts| {
            let scheme = random_restart(model.as_ref(), &data, restarts, EXCHANGEABLE);
            bootstrap(model.as_ref(), &Prior::Noninformative, &data, &scheme, seed, 0..400, 2)
        });
        let mut improved = 0;
        for (one, (two, five)) in runs[0].iter().zip(runs[1].iter().zip(&runs[2])) {
            assert!(not_higher(two.minimum.value, one.minimum.value));
            assert!(not_higher(five.minimum.value, two.minimum.value));
            assert_eq!(five.with_restarts(2), two.minimum.theta);
            assert_eq!(five.with_restarts(1), one.minimum.theta);
            assert_eq!(five.values[..2], two.values);
            let best = five.values.iter().copied().fold(f64::INFINITY, f64::min);
            assert!(same_minimum(five.minimum.value, best));
            assert_eq!(five.values[five.restart - 1], five.minimum.value);
            improved += usize::from(five.minimum.value < one.minimum.value);
        }
        assert!(improved > 40, "restarts matter on these data: {improved}");
    }
}

/// Restarts that end in the same minimum under other labels differ in their last digits, which must not choose.
#[test]
fn of_equal_minima_the_first_wins() {
    let data = apart();
    let model = model(TWO, &data);
    let scheme = random_restart(model.as_ref(), &data, 5, EXCHANGEABLE);
    let mut again = 0;
    for draw in bootstrap(model.as_ref(), &Prior::Noninformative, &data, &scheme, 1, 0..400, 2) {
        let best = draw.values.iter().copied().fold(f64::INFINITY, f64::min);
        let first = draw.values.iter().position(|v| same_minimum(*v, best)).unwrap();
        assert_eq!(draw.restart, first + 1, "draw {}: {:?}", draw.index, draw.values);
        again += usize::from(draw.values[first] > best);
    }
    assert!(again > 100, "a later restart is lower by a rounding error: {again}");
}

#[test]
fn a_fixed_start_makes_restarts_irrelevant() {
    let data = apart();
    let model = model(TWO, &data);
    let start = vec![0.5, 0.5, -2.0, 2.0, 1.0, 1.0];
    let constant = "pi = { constant = 0.5 }\nmu = { constant = [-2.0, 2.0] }\nsigma2 = { constant = 1.0 }";
    let run =
        |scheme: &Scheme| bootstrap(model.as_ref(), &Prior::Noninformative, &data, scheme, 1, 0..500, 2);
    let fixed = run(&Scheme::FixedInit(start));
    for restarts in [1, 4] {
        let restarted = run(&random_restart(model.as_ref(), &data, restarts, constant));
        for (a, b) in fixed.iter().zip(&restarted) {
            assert_eq!(a.minimum, b.minimum);
            assert_eq!((b.restart, b.values.len()), (1, restarts));
        }
    }
    assert!(fixed.iter().all(|d| d.minimum.theta[2] < d.minimum.theta[3]), "no draw switches its labels");
}

#[test]
fn the_floor_holds_and_the_collapsed_share_is_the_count() {
    let file = file_of(overlapping().x.whole().as_slice().unwrap());
    let floor = 1e-3;
    let rest = format!(
        "R = 5\ninit.mu = {{ uniform = [-3.0, 6.0] }}\ninit.sigma2 = {{ inverse_gamma = [2.0, 1.0] }}\n\
         [model.gmm]\nK = 3\nvariance_floor = {floor:?}"
    );
    let sd = Moments::of_values(overlapping().x.whole().as_slice().unwrap()).m2.sqrt();
    for seed in SEEDS {
        let (report, draws) = run_with_report(&experiment(seed, 500, &file, &rest));
        let least = |d: &Sample| d.theta[6..].iter().copied().fold(f64::INFINITY, f64::min);
        assert!(draws.iter().all(|d| least(d) >= floor));
        let on_floor = draws.iter().filter(|d| least(d) == floor).count();
        let narrow = draws.iter().filter(|d| least(d).sqrt() < 0.1 * sd).count();
        let collapsed = draws.iter().filter(|d| d.status == Status::Collapsed).count();
        assert!(on_floor > 0, "the check needs draws on the floor");
        assert_eq!(collapsed, on_floor);
        let shares = report.diagnostics.collapse.unwrap();
        assert_eq!(shares.at_floor, on_floor as f64 / 500.0);
        assert_eq!(shares.narrow, narrow as f64 / 500.0);
        assert_eq!(report.diagnostics.status.get("collapsed"), Some(&on_floor));
    }
}

/// EM stops with at most change·ρ/(1 − ρ) to gain, ρ its rate, here below 0.9; θ follows the root of that.
#[test]
fn newton_and_plain_em_reach_the_same_minimum() {
    let data = apart();
    let newton = model_with(TWO, &data, &optimiser("tolerance = 1e-10"));
    let em = model_with(TWO, &data, &optimiser("change = 1e-15\nmax_iterations = 100000"));
    let near = vec![0.4, 0.6, -2.8, 2.9, 0.6, 0.7];
    for draw in 0..100 {
        let f = measure(&data, 1, draw);
        let (a, b) = (newton.minimise(&f, &near), em.minimise(&f, &near));
        assert_eq!((a.status, b.status), (Status::Ok, Status::Ok));
        assert_close("objective", a.value, b.value, 1e-12);
        for (a, b) in a.theta.iter().zip(&b.theta) {
            assert_close("θ", *a, *b, 1e-6);
        }
    }
}

const SHAPE: f64 = 1.0;
const SCALE: f64 = 0.1;

fn penalised(gamma: &str) -> String {
    format!("{THREE}\npenalty = {{ inverse_gamma = [{SHAPE:?}, {SCALE:?}] }}\ngamma = {gamma}")
}

/// A stationary variance is (scatter + 2γb)/(mass + 2γ(a + 1)) with scatter ≥ 0 and mass ≤ 1.
#[test]
fn penalised_draws_never_sit_on_the_floor() {
    let data = overlapping();
    let model = model(&penalised("\"1/n\""), &data);
    let gamma = 1.0 / data.n() as f64;
    let least = 2.0 * gamma * SCALE / (1.0 + 2.0 * gamma * (SHAPE + 1.0));
    let scheme = random_restart(model.as_ref(), &data, 5, EXCHANGEABLE);
    for seed in SEEDS {
        for draw in bootstrap(model.as_ref(), &Prior::Noninformative, &data, &scheme, seed, 0..300, 2) {
            assert!(draw.minimum.theta[6..].iter().all(|&s| s >= least * (1.0 - 1e-3)));
            assert!(!model.collapse(&draw.minimum.theta).unwrap().at_floor);
            assert_eq!(draw.minimum.status, Status::Ok);
        }
    }
}

#[test]
fn the_penalty_is_minus_the_log_of_an_inverse_gamma_on_each_variance() {
    let data = overlapping();
    let gamma = 0.07;
    let (plain, penalised) = (model(THREE, &data), model(&penalised("0.07"), &data));
    for draw in 0..50 {
        let f = measure(&data, 1, draw);
        let theta = starts(plain.as_ref(), &data, EXCHANGEABLE, draw);
        let penalty: f64 = theta[6..].iter().map(|s| (SHAPE + 1.0) * s.ln() + SCALE / s).sum();
        let exact = plain.loss(&theta, &f) + gamma * penalty;
        assert_close("loss", penalised.loss(&theta, &f), exact, 1e-12);
        let minimum = penalised.minimise(&f, &theta);
        assert_close("objective", minimum.value, penalised.loss(&minimum.theta, &f), 1e-12);
    }
}

/// Passes in singles lose a component whose rows all have responsibilities below e⁻⁶⁴, and rows that lie closer together than
/// they can tell: the search does not.
#[test]
fn searches_lose_neither_far_components_nor_close_rows() {
    let close = apart().x.column(0).map(|x| 1e-5 * x).chain([3.0, 3.5, 4.0]).collect();
    let cases = [
        (apart(), vec![0.5, 0.5, 0.0, 20.0, 1.0, 1.0]),
        (Dataset::from_values(close), vec![0.4, 0.4, 0.2, -4e-5, 5e-5, 3.6, 1e-9, 1e-9, 0.1]),
    ];
    for (data, start) in cases {
        let with = |k: usize| format!("[gmm]\nK = {k}\nvariance_floor = 1e-13");
        let k = start.len() / 3;
        let patient = optimiser("change = 1e-14\nmax_iterations = 100000");
        let (search, em) = (model(&with(k), &data), model_with(&with(k), &data, &patient));
        let f = Measure::empirical(&data);
        let (found, plain) = (search.minimise(&f, &start), em.minimise(&f, &start));
        assert!(found.value <= plain.value + 1e-9, "no higher than EM: {} and {}", found.value, plain.value);
        let one = model(&with(1), &data).minimise(&f, &[1.0, 0.0, 1.0]);
        assert!(found.value < one.value - 0.1, "components matter: {} and {}", found.value, one.value);
    }
}

/// The loss of a search is that at its end to the last digits, wherever it was cut short.
#[test]
fn the_loss_of_a_search_is_the_loss_at_its_end() {
    let data = overlapping();
    for iterations in 31..50 {
        let rule = optimiser(&format!("max_iterations = {iterations}"));
        let model = model_with(THREE, &data, &rule);
        for draw in 0..20 {
            let f = measure(&data, 2, draw);
            let minimum = model.minimise(&f, &starts(model.as_ref(), &data, EXCHANGEABLE, draw));
            assert_close("loss", minimum.value, model.loss(&minimum.theta, &f), 1e-13);
        }
    }
}

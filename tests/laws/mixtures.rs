//! Mixtures beside the diagonal Gaussian one: covariances of every kind, centres, and columns of 0 and 1. Identities that hold after
//! every step, symmetries, and what the floor does.

use crate::support::*;
use ndarray::Array2;
use statrs::distribution::{ContinuousCDF, Normal};

use npl::bootstrap::Scheme;
use npl::config::Document;
use npl::data::Dataset;
use npl::data::files::SearchPath;
use npl::experiment::Experiment;
use npl::model::{Context, Model, ModelConfig};
use npl::optim::{Optimiser, Status};
use npl::process::{Measure, Prior, Truncation, base};
use npl::rng::{Purpose, Seed};
use npl::study::Study;

const KINDS: [&str; 3] = ["spherical", "tied", "full"];

fn gmm(k: usize, kind: &str) -> String {
    format!("[gmm]\nK = {k}\nvariance_floor = 1e-8\ncovariance = \"{kind}\"")
}

/// Starts that favour no component.
fn exchangeable(kind: &str) -> String {
    let block = if kind == "spherical" || kind == "diagonal" { "sigma2" } else { "Sigma" };
    format!("mu = {{ uniform = [-3.0, 6.0] }}\n{block} = {{ inverse_gamma = [3.0, 2.0] }}")
}

/// Three tilted clouds that overlap, without randomness.
fn clouds() -> Dataset {
    let normal = Normal::new(0.0, 1.0).unwrap();
    let z = |i: usize, step: usize, n: usize| {
        normal.inverse_cdf(((i * step) % n) as f64 / n as f64 + 0.5 / n as f64)
    };
    let cloud = |&(n, mean, tilt): &(usize, [f64; 2], f64)| {
        (0..n).flat_map(move |i| {
            let (a, b) = (z(i, 1, n), z(i, 7, n));
            [mean[0] + a, mean[1] + tilt * a + 0.6 * b]
        })
    };
    let cells: Vec<f64> = [(18, [0.0, 0.0], 0.5), (24, [2.5, 1.0], -0.4), (30, [1.0, 3.5], 0.9)]
        .iter()
        .flat_map(cloud)
        .collect();
    Dataset::unnamed(Array2::from_shape_vec((cells.len() / 2, 2), cells).unwrap(), None)
}

fn measure<'a>(data: &'a Dataset, draw: u64) -> Measure<'a> {
    Prior::Noninformative.posterior_draw(data, Seed(1), draw)
}

/// With pseudo-samples.
fn with_prior<'a>(data: &'a Dataset, draw: u64) -> Measure<'a> {
    let base = Box::new(base::Normal { mean: vec![1.0; data.d()], sd: vec![2.0; data.d()] });
    let prior = Prior::Dp { alpha: 6.0, base, truncation: Truncation::Dirichlet { t: 9 } };
    prior.posterior_draw(data, Seed(1), draw)
}

fn start(model: &dyn Model, data: &Dataset, starts: &str, draw: u64) -> Vec<f64> {
    init(model, data, starts).draw(&mut Seed(1).stream(Purpose::Init, draw, 0))
}

/// ∫ y dF and ∫ y yᵀ dF.
fn moments(f: &Measure, d: usize) -> (Vec<f64>, Array2<f64>) {
    let (mut mean, mut square) = (vec![0.0; d], Array2::zeros((d, d)));
    for atoms in f.atoms() {
        for (y, w) in atoms.x.iter().zip(atoms.w) {
            for i in 0..d {
                mean[i] += w * y[i];
                (0..d).for_each(|j| square[[i, j]] += w * y[i] * y[j]);
            }
        }
    }
    (mean, square)
}

/// The same of a mixture of K components in d columns.
fn fitted(kind: &str, theta: &[f64], k: usize, d: usize) -> (Vec<f64>, Array2<f64>) {
    let (pi, rest) = theta.split_at(k);
    let (mu, shape) = rest.split_at(k * d);
    let entry = |c: usize, i: usize, j: usize| match kind {
        "spherical" => f64::from(u8::from(i == j)) * shape[c],
        "tied" => shape[i * d + j],
        _ => shape[c * d * d + i * d + j],
    };
    let (mut mean, mut square) = (vec![0.0; d], Array2::zeros((d, d)));
    for c in 0..k {
        for i in 0..d {
            mean[i] += pi[c] * mu[c * d + i];
            (0..d).for_each(|j| square[[i, j]] += pi[c] * (entry(c, i, j) + mu[c * d + i] * mu[c * d + j]));
        }
    }
    (mean, square)
}

fn assert_moments(kind: &str, theta: &[f64], k: usize, f: &Measure, tolerance: f64) {
    let d = f.d();
    let ((mean, square), (exact, whole)) = (fitted(kind, theta, k, d), moments(f, d));
    assert_close(kind, theta[..k].iter().sum(), 1.0, 1e-12);
    (0..d).for_each(|i| assert_close(&format!("{kind}: mean"), mean[i], exact[i], tolerance));
    if kind == "spherical" {
        return assert_close("trace", square.diag().sum(), whole.diag().sum(), tolerance);
    }
    square
        .iter()
        .zip(&whole)
        .for_each(|(a, b)| assert_close(&format!("{kind}: second moment"), *a, *b, tolerance));
}

/// After any M step mean and second moments, the whole matrix of them, are those of F; of spheres its trace. Floors are not reached.
#[test]
fn every_em_step_keeps_the_matrix_of_moments() {
    let data = clouds();
    for kind in KINDS {
        for iterations in [2, 3, 7, 40] {
            let rule = optimiser(&format!("change = 1e-300\nmax_iterations = {iterations}"));
            let model = model_with(&gmm(3, kind), &data, &rule);
            for draw in 0..20 {
                for f in [measure(&data, draw), with_prior(&data, draw)] {
                    let from = start(model.as_ref(), &data, &exchangeable(kind), draw);
                    let minimum = model.minimise(&f, &from);
                    if model.collapse(&minimum.theta).unwrap().at_floor {
                        continue;
                    }
                    assert_moments(kind, &minimum.theta, 3, &f, 1e-10);
                    assert_close(kind, minimum.value, model.loss(&minimum.theta, &f), 1e-12);
                }
            }
        }
    }
}

/// The last step of a search is one of EM: what holds after every step holds at every draw.
#[test]
fn every_draw_keeps_the_matrix_of_moments() {
    let data = clouds();
    for kind in KINDS {
        let model = model(&gmm(3, kind), &data);
        let (mut ok, mut narrow) = (0, 0);
        for draw in 0..60 {
            let f = measure(&data, draw);
            let minimum = model.minimise(&f, &start(model.as_ref(), &data, &exchangeable(kind), draw));
            let collapse = model.collapse(&minimum.theta).unwrap();
            assert!(minimum.status.converged(), "{kind}, draw {draw}: {:?}", minimum.status);
            assert_eq!(minimum.status == Status::Collapsed, collapse.at_floor, "{kind}, draw {draw}");
            if minimum.status == Status::Ok {
                assert_moments(kind, &minimum.theta, 3, &f, 1e-9);
                assert!(minimum.gradient < 1e-3, "{kind}: gradient {}", minimum.gradient);
                ok += 1;
            }
            narrow += usize::from(collapse.narrow);
        }
        assert!(ok > 20, "{kind}: {ok} of 60 are at a minimum, {narrow} narrow");
    }
}

#[test]
fn one_full_component_is_the_weighted_mean_and_covariance() {
    let data = clouds();
    let (full, tied) = (model(&gmm(1, "full"), &data), model(&gmm(1, "tied"), &data));
    for draw in 0..50 {
        let f = with_prior(&data, draw);
        let (mean, square) = moments(&f, 2);
        let from = [1.0, 5.0, -5.0, 3.0, 0.5, 0.5, 2.0];
        let minimum = full.minimise(&f, &from);
        assert_eq!(minimum.theta[0], 1.0);
        for i in 0..2 {
            assert_close("mean", minimum.theta[1 + i], mean[i], 1e-12);
            for j in 0..2 {
                let exact = square[[i, j]] - mean[i] * mean[j];
                assert_close("covariance", minimum.theta[3 + 2 * i + j], exact, 1e-12);
            }
        }
        let other = tied.minimise(&f, &from);
        assert_eq!(minimum.status, Status::Ok);
        minimum.theta.iter().zip(&other.theta).for_each(|(a, b)| assert_close("tied", *a, *b, 1e-12));
        assert_close("tied", minimum.value, other.value, 1e-12);
    }
}

/// Same steps of EM, same θ; and to the bottom, the same minimum.
#[test]
fn on_the_line_a_sphere_is_diagonal_and_so_is_a_matrix() {
    let data = Dataset::from_values(clouds().x.column(0).collect());
    let rule = optimiser("change = 1e-300\nmax_iterations = 25");
    for draw in 0..30 {
        let f = with_prior(&data, draw);
        let diagonal = model_with("[gmm]\nK = 3\nvariance_floor = 1e-8", &data, &rule);
        let from = start(diagonal.as_ref(), &data, &exchangeable("diagonal"), draw);
        let exact = diagonal.minimise(&f, &from);
        for kind in ["spherical", "full"] {
            let other = model_with(&gmm(3, kind), &data, &rule).minimise(&f, &from);
            assert_close(kind, other.value, exact.value, 1e-10);
            other.theta.iter().zip(&exact.theta).for_each(|(a, b)| assert_close(kind, *a, *b, 1e-10));
        }
        let penalty = "\npenalty = { inverse_gamma = [1.0, 0.1] }\ngamma = 0.05";
        let exact = model_with(&format!("[gmm]\nK = 3\nvariance_floor = 0.3{penalty}"), &data, &rule)
            .minimise(&f, &from);
        for kind in ["spherical", "full"] {
            let table = gmm(3, kind).replace("1e-8", "0.3") + penalty;
            let other = model_with(&table, &data, &rule).minimise(&f, &from);
            assert_close(kind, other.value, exact.value, 1e-10);
            other.theta.iter().zip(&exact.theta).for_each(|(a, b)| assert_close(kind, *a, *b, 1e-10));
        }
    }
}

/// Plain EM and mixed EM, cut after 1, 2, … iterations, with a floor that binds and without, with a penalty and without.
#[test]
fn no_step_raises_the_objective() {
    let data = clouds();
    let penalty = "penalty = { inverse_gamma = [1.0, 0.1] }\ngamma = 0.05";
    for kind in KINDS {
        for table in [
            gmm(3, kind),
            gmm(3, kind).replace("1e-8", "0.4"),
            format!("{}\n{penalty}", gmm(3, kind)),
            format!("{}\n{penalty}", gmm(3, kind).replace("1e-8", "0.4")),
        ] {
            for draw in 0..6 {
                let f = with_prior(&data, draw);
                let from = start(model(&table, &data).as_ref(), &data, &exchangeable(kind), draw);
                for rule in ["change = 1e-300", "tolerance = 1e-9"] {
                    let mut last = f64::INFINITY;
                    for iterations in (1..=12).chain((20..=60).step_by(4)) {
                        let rule = optimiser(&format!("{rule}\nmax_iterations = {iterations}"));
                        let value = model_with(&table, &data, &rule).minimise(&f, &from).value;
                        assert!(value <= last + 1e-12 * value.abs().max(1.0), "{table}: {last} then {value}");
                        last = value;
                    }
                }
            }
        }
    }
}

/// Plain EM of up to 20,000 steps from the same start ends in the same minimum in nearly all draws.
#[test]
fn mixed_steps_end_where_plain_em_ends() {
    let data = clouds();
    for kind in KINDS {
        let table = gmm(2, kind).replace("1e-8", "0.01");
        let mixed = model(&table, &data);
        let plain = model_with(&table, &data, &optimiser("change = 1e-14\nmax_iterations = 20000"));
        let mut same = 0;
        for draw in 0..40 {
            let f = measure(&data, draw);
            let from = start(mixed.as_ref(), &data, &exchangeable(kind), draw);
            let (a, b) = (mixed.minimise(&f, &from), plain.minimise(&f, &from));
            assert!(
                a.status.converged() && a.iterations < 3000,
                "{kind}: {:?} after {}",
                a.status,
                a.iterations
            );
            same += usize::from((a.value - b.value).abs() < 1e-7);
        }
        println!("{kind}: {same} of 40");
        assert!(same >= 34, "{kind}: {same} of 40");
    }
}

/// Clouds in a row, two standard deviations apart, without randomness.
fn row_of_clouds(count: usize) -> Dataset {
    let normal = Normal::new(0.0, 1.0).unwrap();
    let z = |i: usize, step: usize| normal.inverse_cdf(((i * step) % 37) as f64 / 37.0 + 0.5 / 37.0);
    let cells = (0..count).flat_map(|c| {
        (0..37).flat_map(move |i| [2f64.sqrt() * c as f64 + z(i, 1), 2f64.sqrt() * c as f64 + z(i, 7)])
    });
    Dataset::unnamed(Array2::from_shape_vec((37 * count, 2), cells.collect()).unwrap(), None)
}

/// With 75 parameters there is no Hessian. Plain EM of up to 20,000 steps from the same start ends in the same minimum in three
/// draws of four and more, never lower there; where the two part, neither is lower by more than chance.
#[test]
fn mixed_steps_of_many_parameters_end_where_plain_em_ends() {
    let data = row_of_clouds(15);
    let table = gmm(15, "diagonal").replace("1e-8", "0.01");
    let starts = "mu = { uniform = [-1.0, 22.0] }\nsigma2 = { inverse_gamma = [3.0, 2.0] }";
    let mixed = model(&table, &data);
    let plain = model_with(&table, &data, &optimiser("change = 1e-13\nmax_iterations = 20000"));
    let (mut same, mut steps) = (0, [0, 0]);
    let (mut sum, mut squares) = (0.0, 0.0);
    for draw in 0..40 {
        let f = measure(&data, draw);
        let from = start(mixed.as_ref(), &data, starts, draw);
        let (a, b) = (mixed.minimise(&f, &from), plain.minimise(&f, &from));
        assert!(a.status.converged(), "draw {draw}: {:?} after {}", a.status, a.iterations);
        let apart = a.value - b.value;
        if apart.abs() < 1e-5 {
            same += 1;
            assert!(apart < 1e-7, "draw {draw}: {apart}");
        }
        (sum, squares) = (sum + apart, squares + apart * apart);
        steps = [steps[0] + a.iterations, steps[1] + b.iterations];
    }
    println!("{same} of 40, {steps:?} steps, {sum} apart");
    assert!(same >= 30, "{same} of 40");
    assert!(sum <= 3.0 * squares.sqrt(), "{sum} apart");
    assert!(2 * steps[0] < steps[1], "{steps:?}");
}

/// Rows on a line have a covariance of rank 1: the eigenvalue beside the line is the floor, and along it that of the rows.
#[test]
fn the_floor_is_one_of_eigenvalues() {
    let x = Array2::from_shape_fn((20, 2), |(i, j)| (i as f64 / 5.0) * if j == 0 { 0.6 } else { 0.8 });
    let data = Dataset::unnamed(x, None);
    let along: Vec<f64> = (0..20).map(|i| i as f64 / 5.0).collect();
    let variance = Moments::of_values(&along).m2;
    for kind in ["full", "tied"] {
        let model = model(&gmm(1, kind).replace("1e-8", "1e-3"), &data);
        let minimum = model.minimise(&Measure::empirical(&data), &[1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0]);
        assert_eq!(minimum.status, Status::Collapsed, "{kind}");
        for (i, (a, b)) in [(0.6, 0.6), (0.6, 0.8), (0.8, 0.6), (0.8, 0.8)].into_iter().enumerate() {
            let unit = f64::from(u8::from(a == b));
            let exact = variance * a * b + 1e-3 * (unit - a * b);
            assert_close(kind, minimum.theta[3 + i], exact, 1e-12);
        }
    }
    let sphere = model(&gmm(1, "spherical").replace("1e-8", "3.0"), &data);
    let minimum = sphere.minimise(&Measure::empirical(&data), &[1.0, 0.0, 0.0, 1.0]);
    assert_eq!((minimum.status, minimum.theta[3]), (Status::Collapsed, 3.0));
}

/// Data y ↦ Ay + b, starts likewise: so are the fits, and the loss changes by log |A|.
#[test]
fn full_covariances_know_no_axes() {
    let data = clouds();
    let (a, b): ([[f64; 2]; 2], [f64; 2]) = ([[2.0, 1.0], [-0.5, 0.7]], [3.0, -1.0]);
    let moved = |y: &[f64]| [0, 1].map(|i| a[i][0] * y[0] + a[i][1] * y[1] + b[i]);
    let cells: Vec<f64> = data.x.iter().flat_map(|y| moved(&y.to_vec())).collect();
    let image = Dataset::unnamed(Array2::from_shape_vec((data.n(), 2), cells).unwrap(), None);
    let of_theta = |theta: &[f64]| {
        let mut out = theta[..3].to_vec();
        theta[3..9].chunks(2).for_each(|mu| out.extend(moved(mu)));
        for s in theta[9..].chunks(4) {
            let entry =
                |i: usize, j: usize| -> f64 { (0..4).map(|m| a[i][m / 2] * s[m] * a[j][m % 2]).sum() };
            out.extend([entry(0, 0), entry(0, 1), entry(1, 0), entry(1, 1)]);
        }
        out
    };
    let rule = optimiser("change = 1e-300\nmax_iterations = 20");
    let (one, other) =
        (model_with(&gmm(3, "full"), &data, &rule), model_with(&gmm(3, "full"), &image, &rule));
    let log_det = (a[0][0] * a[1][1] - a[0][1] * a[1][0]).abs().ln();
    for draw in 0..20 {
        let from = start(one.as_ref(), &data, &exchangeable("full"), draw);
        let f = measure(&data, draw);
        let g = Measure::weighted(&image, f.weights().0.to_vec());
        let (fit, image) = (one.minimise(&f, &from), other.minimise(&g, &of_theta(&from)));
        if fit.status == Status::Collapsed || one.collapse(&fit.theta).unwrap().at_floor {
            continue;
        }
        assert_close("loss", image.value, fit.value + log_det, 1e-8);
        image.theta.iter().zip(of_theta(&fit.theta)).for_each(|(x, y)| assert_close("θ", *x, y, 1e-6));
    }
}

/// A full mixture with diagonal matrices is the diagonal one: densities and what is told of a row.
#[test]
fn diagonal_matrices_are_diagonal() {
    let data = clouds();
    let theta = [0.3, 0.7, 0.0, 1.0, 2.0, 3.0];
    let diagonal = [&theta[..], &[0.5, 2.0, 1.0, 0.25]].concat();
    let full = [&theta[..], &[0.5, 0.0, 0.0, 2.0, 1.0, 0.0, 0.0, 0.25]].concat();
    let models = [model("[gmm]\nK = 2\nvariance_floor = 1e-8", &data), model(&gmm(2, "full"), &data)];
    let numbers = models.iter().zip([&diagonal, &full]).map(|(model, theta)| {
        let (mut logs, mut told) = (vec![0.0; data.n()], vec![0.0; 2 * data.n()]);
        assert!(model.log_density(theta, &data, &mut logs));
        model.predict(theta, &data, &mut told);
        told.chunks(2).for_each(|p| assert_close("probabilities", p[0] + p[1], 1.0, 1e-14));
        logs.push(model.loss(theta, &with_prior(&data, 3)));
        [logs, told].concat()
    });
    let numbers: Vec<Vec<f64>> = numbers.collect();
    numbers[0].iter().zip(&numbers[1]).for_each(|(a, b)| assert_close("number", *a, *b, 1e-12));
}

/// Component c at place `order[c]`.
fn permuted(model: &dyn Model, theta: &[f64], order: &[usize]) -> Vec<f64> {
    let mut out = theta.to_vec();
    let (blocks, _) = model.components().unwrap().blocks();
    let mut first = 0;
    for (_, each) in blocks {
        for (to, &from) in order.iter().enumerate() {
            out[first + to * each..][..each].copy_from_slice(&theta[first + from * each..][..each]);
        }
        first += order.len() * each;
    }
    out
}

fn binary(n: usize, d: usize) -> Dataset {
    let p = |i: usize, j: usize| [[0.9, 0.8, 0.2, 0.7, 0.3], [0.1, 0.3, 0.8, 0.6, 0.2]][i % 2][j % 5];
    let u = |i: usize, j: usize| ((i * 7919 * (2 * j + 3) + 131 * j * j + 13) % 997) as f64 / 997.0;
    Dataset::unnamed(Array2::from_shape_fn((n, d), |(i, j)| f64::from(u8::from(u(i, j) < p(i, j)))), None)
}

fn every_mixture() -> Vec<(String, Dataset, String)> {
    let mut all: Vec<_> = KINDS.iter().map(|kind| (gmm(3, kind), clouds(), exchangeable(kind))).collect();
    all.push(("[kmeans]\nK = 3".into(), clouds(), "mu = \"data\"".into()));
    all.push(("[bernoulli_mixture]\nK = 3".into(), binary(60, 5), String::new()));
    all
}

#[test]
fn permuting_the_start_permutes_the_fit() {
    for (table, data, starts) in every_mixture() {
        let model = model_with(&table, &data, &optimiser("change = 1e-300\nmax_iterations = 15"));
        for draw in 0..10 {
            let f = measure(&data, draw);
            let from = start(model.as_ref(), &data, &starts, draw);
            let fit = model.minimise(&f, &from);
            for order in [[1, 2, 0], [0, 2, 1]] {
                let other = model.minimise(&f, &permuted(model.as_ref(), &from, &order));
                assert_close(&table, other.value, fit.value, 1e-9);
                let expected = permuted(model.as_ref(), &fit.theta, &order);
                other.theta.iter().zip(expected).for_each(|(a, b)| assert_close(&table, *a, b, 1e-7));
            }
        }
    }
}

/// By weights, or by the first column where there are none.
#[test]
fn every_order_of_the_components_is_equally_likely() {
    for (table, data, starts) in every_mixture() {
        let model = model(&table, &data);
        let stride = if table.contains("kmeans") { data.d() } else { 1 };
        let scheme =
            Scheme::RandomRestart { restarts: 1, init: init(model.as_ref(), &data, &starts), stop: None };
        let draws = bootstrap(model.as_ref(), &Prior::Noninformative, &data, &scheme, 1, 0..900, 2);
        let (mut counts, mut tied) = ([0; 6], 0);
        for draw in &draws {
            let at = |c: usize| draw.minimum.theta[c * stride];
            if at(0) == at(1) || at(1) == at(2) || at(0) == at(2) {
                tied += 1;
                continue;
            }
            let rank = |c: usize| (0..3).filter(|&e| at(e) < at(c)).count();
            counts[2 * rank(0) + usize::from(rank(1) > rank(2))] += 1;
        }
        assert!(tied < 300, "{table}: {tied} ties");
        assert_counts(&table, &counts, &[1.0 / 6.0; 6]);
    }
}

// ------------------------------------------------------------------------------------------------------------ centres

#[test]
fn one_centre_is_the_bootstrap_mean() {
    let data = Dataset::from_values(FIVE.to_vec());
    let model = model("[kmeans]\nK = 1", &data);
    let exact = Moments::of_values(&FIVE).of_dp_mean(5.0);
    let scheme = Scheme::FixedInit(vec![9.0]);
    for seed in SEEDS {
        let draws = bootstrap(model.as_ref(), &Prior::Noninformative, &data, &scheme, seed, 0..4000, 2);
        let means: Vec<f64> = draws.iter().map(|d| d.minimum.theta[0]).collect();
        assert_mean(&format!("mean, seed {seed}"), &means, exact.mean, exact.m2);
        assert_var(&format!("variance, seed {seed}"), &means, exact);
        for draw in draws.iter().take(50) {
            let f = Prior::Noninformative.posterior_draw(&data, Seed(seed), draw.index);
            assert_close("mean", draw.minimum.theta[0], weighted_moment(&f, 1), 1e-12);
        }
    }
}

/// At every draw each centre is the mean of its rows, no step before it raised the loss, and no centre is without rows.
#[test]
fn every_centre_is_the_mean_of_its_rows() {
    let data = clouds();
    let model = model("[kmeans]\nK = 4", &data);
    for draw in 0..60 {
        let f = with_prior(&data, draw);
        // Two centres so far away that no row is nearest to them.
        let mut from = start(model.as_ref(), &data, "mu = \"data\"", draw);
        if draw % 3 == 0 {
            from[4..].copy_from_slice(&[1e3, 1e3, -1e3, 1e3]);
        }
        let minimum = model.minimise(&f, &from);
        assert_eq!(minimum.status, Status::Ok);
        let (mut mass, mut sums, mut loss) = ([0.0; 4], [[0.0; 2]; 4], 0.0);
        for atoms in f.atoms() {
            for (y, w) in atoms.x.iter().zip(atoms.w) {
                let square =
                    |c: usize| (0..2).map(|j| (y[j] - minimum.theta[2 * c + j]).powi(2)).sum::<f64>();
                let nearest = (0..4).min_by(|&a, &b| square(a).total_cmp(&square(b))).unwrap();
                mass[nearest] += w;
                loss += w * square(nearest);
                (0..2).for_each(|j| sums[nearest][j] += w * y[j]);
            }
        }
        assert_close("loss", minimum.value, loss, 1e-12);
        for c in 0..4 {
            assert!(mass[c] > 0.0, "draw {draw}: centre {c} has no rows");
            (0..2)
                .for_each(|j| assert_close("centre", minimum.theta[2 * c + j], sums[c][j] / mass[c], 1e-12));
        }
        let mut last = f64::INFINITY;
        for iterations in 1..=minimum.iterations {
            let rule = optimiser(&format!("max_iterations = {iterations}"));
            let value = model_with("[kmeans]\nK = 4", &data, &rule).minimise(&f, &from).value;
            assert!(value <= last * (1.0 + 1e-12), "{last} then {value}");
            last = value;
        }
    }
}

/// Centres that exchange their starts exchange their ends, also those that two centres without rows were moved to at once.
#[test]
fn centres_have_no_labels() {
    let data = clouds();
    let model = model("[kmeans]\nK = 4", &data);
    for draw in 0..60 {
        let f = with_prior(&data, draw);
        let mut from = start(model.as_ref(), &data, "mu = \"data\"", draw);
        from[4..].copy_from_slice(&[1e3, 1e3, -1e3, 1e3]);
        let turned = |theta: &[f64]| -> Vec<f64> { [6, 7, 4, 5, 0, 1, 2, 3].map(|i| theta[i]).to_vec() };
        let (one, other) = (model.minimise(&f, &from), model.minimise(&f, &turned(&from)));
        assert_eq!(turned(&one.theta), other.theta, "draw {draw}");
    }
}

fn refusal(table: &str, data: &Dataset) -> String {
    let config: ModelConfig = toml::from_str(table).unwrap();
    let optimiser = Optimiser::default();
    let context = Context { train: data, alpha: 0.0, mass: 5.0, optimiser: &optimiser, derived: None };
    config.build(&context).err().map_or(String::new(), |complaints| format!("{complaints:?}"))
}

/// A centre for which F has no row could be anywhere: no draw of θ, and said so.
#[test]
fn centres_without_rows_are_not_identified() {
    let twice = Dataset::from_values(vec![1.0, 1.0, 4.0, 4.0]);
    assert!(refusal("[kmeans]\nK = 3", &twice).contains("more than the 2 different rows"));
    let model = model("[kmeans]\nK = 3", &Dataset::from_values(vec![1.0, 2.0, 3.0]));
    let minimum = model.minimise(&Measure::empirical(&twice), &[1.0, 4.0, 9.0]);
    assert_eq!((minimum.status, minimum.value), (Status::Unidentified, 0.0));
    // As many different rows as centres: each has its own, wherever they start.
    let minimum = model.minimise(
        &Measure::weighted(&Dataset::from_values(vec![1.0, 1.0, 4.0, 5.0]), vec![0.25; 4]),
        &[7.0, 8.0, 9.0],
    );
    let mut centres = minimum.theta.clone();
    centres.sort_by(f64::total_cmp);
    assert_eq!((minimum.status, centres), (Status::Ok, vec![1.0, 4.0, 5.0]));
    let mut told = vec![0.5; 6];
    model.predict(&[1.0, 4.0, 5.0], &Dataset::from_values(vec![1.5, 4.6]), &mut told);
    assert_eq!(told, [1.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
    let mut logs = vec![0.0; 4];
    assert!(!model.is_likelihood() && !model.log_density(&[1.0, 4.0, 5.0], &twice, &mut logs));
}

// ------------------------------------------------------------------------------------------------- columns of 0 and 1

/// Σₖ πₖ pₖⱼ is the share of ones of column j under F, after every step and at every draw, where its probabilities are off their bounds.
#[test]
fn the_marginals_of_a_bernoulli_mixture_are_those_of_the_measure() {
    let data = binary(80, 5);
    let rules = [1, 2, 9].map(|more| format!("change = 1e-300\nmax_iterations = {}", 1 + more));
    for rule in rules.iter().map(String::as_str).chain([""]) {
        let model = model_with("[bernoulli_mixture]\nK = 2", &data, &optimiser(rule));
        let mut inside = 0;
        for draw in 0..40 {
            let f = measure(&data, draw);
            let minimum = model.minimise(&f, &start(model.as_ref(), &data, "", draw));
            let (pi, p) = minimum.theta.split_at(2);
            assert_close("π", pi.iter().sum(), 1.0, 1e-12);
            assert_close("loss", minimum.value, model.loss(&minimum.theta, &f), 1e-12);
            assert!(p.iter().all(|p| (1e-6..=1.0 - 1e-6).contains(p)));
            let (mean, _) = moments(&f, 5);
            for j in 0..5 {
                // A bound takes a probability by no more than itself from the share of ones.
                let free = |p: f64| p > 1e-6 && p < 1.0 - 1e-6;
                let tolerance = if free(p[j]) && free(p[5 + j]) { 1e-10 } else { 1e-6 };
                inside += usize::from(tolerance == 1e-10);
                assert_close("share", pi[0] * p[j] + pi[1] * p[5 + j], mean[j], tolerance);
            }
        }
        assert!(inside > 20, "{rule}: {inside} of 200");
    }
}

#[test]
fn one_bernoulli_component_is_the_shares_within_their_bounds() {
    let mut data = binary(30, 3);
    (0..30).for_each(|i| data.x[[i, 1]] = 1.0);
    let model = model("[bernoulli_mixture]\nK = 1\nprobability_floor = 0.01", &data);
    let f = measure(&data, 0);
    let minimum = model.minimise(&f, &[1.0, 0.5, 0.5, 0.5]);
    let (mean, _) = moments(&f, 3);
    assert_eq!((minimum.theta[0], minimum.theta[2], minimum.status), (1.0, 0.99, Status::Ok));
    assert_close("share", minimum.theta[1], mean[0], 1e-12);
    assert_close("share", minimum.theta[3], mean[2], 1e-12);
}

#[test]
fn no_step_of_a_bernoulli_mixture_raises_the_objective() {
    let data = binary(60, 5);
    for table in ["[bernoulli_mixture]\nK = 3", "[bernoulli_mixture]\nK = 3\nprobability_floor = 0.2"] {
        for draw in 0..10 {
            let f = measure(&data, draw);
            let from = start(model(table, &data).as_ref(), &data, "", draw);
            for rule in ["change = 1e-300", "tolerance = 1e-9"] {
                let mut last = f64::INFINITY;
                for iterations in (1..=12).chain((20..=60).step_by(4)) {
                    let rule = optimiser(&format!("{rule}\nmax_iterations = {iterations}"));
                    let value = model_with(table, &data, &rule).minimise(&f, &from).value;
                    assert!(value <= last + 1e-12, "{table}: {last} then {value}");
                    last = value;
                }
            }
        }
    }
}

/// The densities of all rows that there can be sum to 1, and draws from the mixture have its moments.
#[test]
fn a_bernoulli_mixture_is_a_distribution() {
    let rows = Array2::from_shape_fn((8, 3), |(i, j)| ((i >> j) & 1) as f64);
    let data = Dataset::unnamed(rows, None);
    let model = model("[bernoulli_mixture]\nK = 2", &data);
    let theta = [0.3, 0.7, 0.9, 0.2, 0.5, 0.1, 0.6, 0.8];
    let mut logs = vec![0.0; 8];
    assert!(model.log_density(&theta, &data, &mut logs));
    assert_close("total", logs.iter().map(|l| l.exp()).sum(), 1.0, 1e-14);
    let f = Measure::weighted(&data, logs.iter().map(|l| l.exp()).collect());
    let (mean, _) = moments(&f, 3);
    [0.34, 0.48, 0.71].iter().zip(mean).for_each(|(p, m)| assert_close("share", m, *p, 1e-14));
    let sampled = model.sampling(&theta, &std::sync::Arc::new(data.clone())).unwrap();
    let drawn = sampled.sample(20_000, &mut Seed(1).stream(Purpose::Auxiliary, 0, 0)).to_rows();
    assert!(model.refuses(&drawn).is_none());
    for (column, p) in [0.34, 0.48, 0.71].into_iter().enumerate() {
        let values: Vec<f64> = drawn.x.column(column).collect();
        assert_mean("drawn", &values, p, p * (1.0 - p));
    }
}

/// A full mixture as a measure to draw from has the moments of θ.
#[test]
fn draws_from_a_full_mixture_have_its_covariance() {
    let data = clouds();
    let model = model(&gmm(1, "full"), &data);
    let theta = [1.0, 2.0, -1.0, 2.0, 0.9, 0.9, 1.0];
    let sampled = model.sampling(&theta, &std::sync::Arc::new(data)).unwrap();
    let drawn = sampled.sample(20_000, &mut Seed(1).stream(Purpose::Auxiliary, 0, 0)).to_rows();
    let (a, b): (Vec<f64>, Vec<f64>) = drawn.x.iter().map(|y| (y[0] - 2.0, y[1] + 1.0)).unzip();
    assert_mean("first", &a, 0.0, 2.0);
    assert_mean("second", &b, 0.0, 1.0);
    let products: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a * b).collect();
    // Var y₁y₂ = σ₁²σ₂² + σ₁₂².
    assert_mean("covariance", &products, 0.9, 2.0 + 0.81);
}

// ------------------------------------------------------------------------------------------------------- what is refused

#[test]
fn what_cannot_be_honoured_is_refused_with_its_place() {
    let folder = crate::tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("rows.csv"), "a,b\n0,1\n1,1\n1,0\n0,0\n1,1\n").unwrap();
    std::fs::write(folder.path().join("wide.csv"), "a,b\n0,1\n1,1\n0.5,0\n0,0\n1,1\n").unwrap();
    let mixture = "[model.gmm]\nK = 2\nvariance_floor = 1e-4\ncovariance = \"full\"\n";
    let bernoulli = "[model.bernoulli_mixture]\nK = 2\n";
    let cases = [
        ("rows", format!("{mixture}prior = {{}}\n"), ":10", "standard deviations"),
        ("rows", format!("method = \"nuts\"\n{mixture}"), ":9", "covariance"),
        ("rows", mixture.replace("1e-4", "1e-14"), ":8", "cannot tell such an eigenvalue"),
        (
            "rows",
            format!("{mixture}[sampler.init]\nSigma = {{ normal = [0.0, 1.0] }}\n"),
            ":13",
            "positive variances",
        ),
        (
            "rows",
            format!("{mixture}[sampler.init]\nSigma = {{ constant = [1, 2, 2, 1, 1, 0, 0, 1] }}\n"),
            ":13",
            "positive definite",
        ),
        (
            "rows",
            format!("{mixture}[sampler.init]\nsigma2 = \"data\"\n"),
            ":13",
            "its blocks are `pi`, `mu`, `Sigma`",
        ),
        ("wide", bernoulli.to_owned(), ":6", "column \"a\" is 0.5 in row 3"),
        ("rows", format!("{bernoulli}probability_floor = 0.5\n"), ":8", "below 0.5"),
        (
            "rows",
            format!("{bernoulli}[prior]\nalpha = 1.0\nbase = {{ normal = {{ mean = 0.0, sd = 1.0 }} }}\n"),
            ":10",
            "will not do",
        ),
        (
            "rows",
            format!("{bernoulli}[prior]\nalpha = 1.0\nbase = {{ empirical = {{ file = \"wide.csv\" }} }}\n"),
            ":10",
            "0.5 in row 3",
        ),
        ("rows", "method = \"nuts\"\n[model.kmeans]\nK = 2\n".to_owned(), ":6", "without a likelihood"),
        ("rows", "[model.kmeans]\nK = 5\n".to_owned(), ":7", "more than the 4 different rows"),
    ];
    for (file, rest, line, says) in cases {
        let (top, rest) = match rest.strip_prefix("method = \"nuts\"\n") {
            Some(rest) => ("method = \"nuts\"\n", rest.to_owned()),
            None => ("\n", rest),
        };
        let sampler = if rest.contains("[sampler") { "" } else { "[sampler]\nB = 8\n" };
        let rest = rest.replace("[sampler.init]", "[sampler]\nB = 8\n[sampler.init]");
        let text = format!("name = \"law\"\nseed = 1\n{top}[data]\ntrain = \"{file}.csv\"\n{rest}{sampler}");
        let error = Document::parse("law.toml", &text, &[])
            .map_err(|e| e.to_string())
            .and_then(|document| {
                let experiment: Experiment = document.decode().map_err(|e| e.to_string())?;
                Study::new(document, experiment, SearchPath::new(Some(folder.path())))
                    .map_err(|e| e.to_string())
            })
            .and_then(|study| {
                let trial = study.trial(0).map_err(|e| e.to_string())?;
                trial.scheme(&pool(1), &std::sync::atomic::AtomicBool::new(false)).map_err(|e| e.to_string())
            })
            .err()
            .unwrap_or_else(|| panic!("{text} is taken"));
        assert!(error.contains(says) && error.contains(&format!("law.toml{line}")), "{text}\n{error}");
    }
}

/// The minima of scikit-learn 1.9.1 on the same rows (`GaussianMixture`, tol = 1e-13, reg_covar = 0, means_init = [[1, 0], [1, 4]]).
#[test]
fn unweighted_fits_are_those_of_scikit_learn() {
    let data = clouds();
    let minima = [
        ("spherical", 3.598_425_780_848_582_4),
        ("diagonal", 3.553_740_699_251_588_5),
        ("tied", 3.503_871_249_403_180_5),
        ("full", 3.313_026_753_871_640_5),
    ];
    for (kind, exact) in minima {
        let model = model_with(&gmm(2, kind), &data, &optimiser("tolerance = 1e-7"));
        let identity = [1.0, 0.0, 0.0, 1.0];
        let shape = match kind {
            "spherical" => vec![1.0; 2],
            "diagonal" => vec![1.0; 4],
            "tied" => identity.to_vec(),
            _ => identity.repeat(2),
        };
        let from = [&[0.5, 0.5, 1.0, 0.0, 1.0, 4.0][..], &shape].concat();
        let minimum = model.minimise(&Measure::empirical(&data), &from);
        assert_eq!(minimum.status, Status::Ok, "{kind}");
        assert_close(kind, minimum.value, exact, 1e-9);
    }
}

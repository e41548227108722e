//! The Gaussian mixture on data that are mostly zeros, in many columns, which has a path of its own: held to plain EM as
//! the formulas have it, and to identities that every EM step keeps.

use crate::support::*;
use ndarray::Array2;
use rand::RngExt;
use rand::distr::Distribution;
use rand_distr::StandardNormal;

use npl::bootstrap::Scheme;
use npl::data::Dataset;
use npl::model::Model;
use npl::optim::Status;
use npl::process::base::Normal;
use npl::process::{Measure, Prior, Truncation};
use npl::rng::{Purpose, Seed};

const N: usize = 240;
const D: usize = 64;
const K: usize = 4;
const FLOOR: f64 = 1e-6;
const TABLE: &str = "[gmm]\nK = 4\nvariance_floor = 1e-6";

/// Four clusters, each with sixteen columns of its own of which three are always empty; every tenth row is between two
/// clusters.
fn data() -> Dataset {
    let mut rng = Seed(7).stream(Purpose::Auxiliary, 0, 0);
    let x = Array2::from_shape_fn((N, D), |(i, j)| {
        let share = match (i % 10, (j / 16 + K - i % K) % K) {
            (0, 0 | 1) => 0.5,
            (1..=9, 0) => 1.0,
            _ => 0.0,
        };
        let z: f64 = StandardNormal.sample(&mut rng);
        let filled = share > 0.0 && j % 16 < 13 && rng.random_range(0..4) > 0;
        if filled { share * (1.0 + 0.3 * z) } else { 0.0 }
    });
    Dataset::unnamed(x, None)
}

/// Near the clusters, with variances that fit none of them.
fn start() -> Vec<f64> {
    let own = |i: usize| ((i % D) / 16 == i / D) as u8 as f64;
    let pi = vec![1.0 / K as f64; K];
    pi.into_iter().chain((0..K * D).map(|i| 0.1 + 0.5 * own(i))).chain(vec![0.2; K * D]).collect()
}

/// The Bayesian bootstrap, and with pseudo-samples, which have no zeros.
fn priors() -> [Prior; 2] {
    let base = Normal { mean: vec![0.0; D], sd: vec![0.1; D] };
    let dp = Prior::Dp { alpha: 2.0, base: Box::new(base), truncation: Truncation::Dirichlet { t: 50 } };
    [Prior::Noninformative, dp]
}

/// The atoms of F as rows and weights.
fn atoms(f: &Measure) -> Vec<(Vec<f64>, f64)> {
    let part =
        |a: npl::process::Atoms| a.x.iter().zip(a.w).map(|(y, w)| (y.to_vec(), *w)).collect::<Vec<_>>();
    f.atoms().flat_map(part).collect()
}

/// Eqs. (E.6) and (E.7), two passes for each variance; the objective at `theta` comes with it.
fn plain_em_step(theta: &[f64], atoms: &[(Vec<f64>, f64)]) -> (Vec<f64>, f64) {
    let (pi, rest) = theta.split_at(K);
    let (mu, sigma2) = rest.split_at(K * D);
    let mut r = Vec::new();
    let mut objective = 0.0;
    for (y, w) in atoms {
        let log_joint: Vec<f64> = (0..K)
            .map(|k| {
                let column = |j: usize| {
                    let (m, v) = (mu[k * D + j], sigma2[k * D + j]);
                    -0.5 * ((std::f64::consts::TAU * v).ln() + (y[j] - m).powi(2) / v)
                };
                pi[k].ln() + (0..D).map(column).sum::<f64>()
            })
            .collect();
        let log_f = npl::math::log_sum_exp(&log_joint);
        objective -= w * log_f;
        r.push(log_joint.iter().map(|l| w * (l - log_f).exp()).collect::<Vec<f64>>());
    }
    let mut next = vec![0.0; theta.len()];
    for k in 0..K {
        let mass: f64 = r.iter().map(|r| r[k]).sum();
        next[k] = mass;
        for j in 0..D {
            let average = |of: &dyn Fn(f64) -> f64| {
                atoms.iter().zip(&r).map(|((y, _), r)| r[k] * of(y[j])).sum::<f64>() / mass
            };
            let mean = average(&|y| y);
            next[K + k * D + j] = mean;
            next[K + K * D + k * D + j] = average(&|y| (y - mean).powi(2)).max(FLOOR);
        }
    }
    (next, objective)
}

/// Plain EM with so many passes.
fn em(data: &Dataset, passes: usize) -> Box<dyn Model> {
    model_with(TABLE, data, &optimiser(&format!("change = 1e-300\nmax_iterations = {passes}")))
}

#[test]
fn em_is_the_em_of_the_formulas() {
    let data = data();
    for (prior, draw) in priors().iter().flat_map(|p| (0..3).map(move |i| (p, i))) {
        let f = prior.posterior_draw(&data, Seed(1), draw);
        let rows = atoms(&f);
        let mut theta = start();
        for passes in 1..=6 {
            let (next, objective) = plain_em_step(&theta, &rows);
            let minimum = em(&data, passes).minimise(&f, &start());
            assert_close("objective", minimum.value, objective, 1e-12);
            let pairs = minimum.theta.iter().zip(&theta).enumerate();
            pairs.for_each(|(i, (a, b))| assert!((a - b).abs() < 1e-11, "θ[{i}]: {a} and {b}"));
            theta = next;
        }
    }
}

/// In every column, the empty ones included, mixture moments equal weighted sample moments after any M step. A variance
/// on the floor adds no more than the floor.
#[test]
fn every_em_step_keeps_mean_and_second_moment() {
    let data = data();
    for (prior, passes) in priors().iter().flat_map(|p| [2, 4, 12].map(|n| (p, n))) {
        let model = em(&data, passes);
        for draw in 0..20 {
            let f = prior.posterior_draw(&data, Seed(2), draw);
            let theta = model.minimise(&f, &start()).theta;
            assert_close("π", theta[..K].iter().sum(), 1.0, 1e-14);
            for j in 0..D {
                let sample = |power: i32| atoms(&f).iter().map(|(y, w)| w * y[j].powi(power)).sum::<f64>();
                let (mut mean, mut square) = (0.0, 0.0);
                for k in 0..K {
                    let (m, v) = (theta[K + k * D + j], theta[K + K * D + k * D + j]);
                    mean += theta[k] * m;
                    square += theta[k] * (v + m * m);
                }
                assert!((mean - sample(1)).abs() < 1e-13, "column {j}: mean {mean}");
                let excess = square - sample(2);
                assert!(
                    excess > -1e-13 && excess < FLOOR + 1e-13,
                    "column {j}: second moment off by {excess}"
                );
                if j % 16 >= 13 && matches!(prior, Prior::Noninformative) {
                    assert!(mean == 0.0 && (square - FLOOR).abs() < 1e-18, "column {j} is empty");
                }
            }
        }
    }
}

/// Where EM as the formulas have it ends by the default rule: what is left to gain, extrapolated from the last two
/// steps, is below 10⁻³ posterior standard deviations, 2n (L − L*) ≤ 10⁻⁶.
fn plain_em(f: &Measure) -> f64 {
    let rows = atoms(f);
    let (mut theta, mut value, mut drop) = (start(), f64::INFINITY, f64::INFINITY);
    loop {
        let (next, objective) = plain_em_step(&theta, &rows);
        let previous = std::mem::replace(&mut drop, value - objective);
        let rate = (drop / previous).clamp(0.0, 0.9999);
        if previous.is_finite() && (drop < 1e-12 || 2.0 * N as f64 * drop * rate / (1.0 - rate) <= 1e-6) {
            return objective;
        }
        (theta, value) = (next, objective);
    }
}

#[test]
fn no_step_goes_up_and_the_search_ends_where_plain_em_ends() {
    let data = data();
    let default = model(TABLE, &data);
    for (prior, draw) in priors().iter().flat_map(|p| (0..20).map(move |i| (p, i))) {
        let f = prior.posterior_draw(&data, Seed(3), draw);
        let values: Vec<f64> = (1..12).map(|passes| em(&data, passes).minimise(&f, &start()).value).collect();
        assert!(values.windows(2).all(|pair| pair[1] <= pair[0] + 1e-11), "{values:?}");
        let minimum = default.minimise(&f, &start());
        assert!(matches!(minimum.status, Status::Ok | Status::Collapsed), "{:?}", minimum.status);
        assert_close("loss", default.loss(&minimum.theta, &f), minimum.value, 1e-12);
        let plain = plain_em(&f);
        assert!(
            (minimum.value - plain).abs() < 1e-6 / N as f64,
            "draw {draw}: {} and {plain}",
            minimum.value
        );
    }
}

#[test]
fn draws_do_not_depend_on_threads() {
    let data = data();
    let model = model(TABLE, &data);
    let scheme = Scheme::FixedInit(start());
    for prior in priors() {
        let draws =
            [1, 4].map(|threads| bits(&bootstrap(model.as_ref(), &prior, &data, &scheme, 1, 0..24, threads)));
        assert_eq!(draws[0], draws[1]);
    }
}

/// log f of new rows against the definition, and with a component that has no weight.
#[test]
fn densities_are_those_of_the_definition() {
    let data = data();
    let model = model(TABLE, &data);
    let mut theta = start();
    (theta[0], theta[1]) = (0.0, 0.5);
    let mut out = vec![0.0; N];
    assert!(model.log_density(&theta, &data, &mut out));
    for (i, log_f) in out.iter().enumerate() {
        let row = [(data.x.row(i).to_vec(), 1.0)];
        let (_, objective) = plain_em_step(&theta, &row);
        assert_close("log f", *log_f, -objective, 1e-12);
    }
}

/// Means many standard deviations from zero: the squares would cancel, and the pass must see it.
#[test]
fn tiny_variances_far_from_zero_lose_no_digits() {
    let mut x = data().x.whole().to_owned();
    x.iter_mut().filter(|x| **x != 0.0).for_each(|x| *x += 1e6);
    let data = Dataset::unnamed(x, None);
    let f = Measure::empirical(&data);
    let own = |i: usize| (i % D) / 16 == i / D && i % 16 < 13;
    let theta: Vec<f64> = vec![1.0 / K as f64; K]
        .into_iter()
        .chain((0..K * D).map(|i| if own(i) { 1e6 + 1.0 } else { 0.0 }))
        .chain((0..K * D).map(|i| if own(i) { 0.1 } else { 1e12 }))
        .collect();
    let (_, objective) = plain_em_step(&theta, &atoms(&f));
    assert_close("objective", em(&data, 1).loss(&theta, &f), objective, 1e-12);
}

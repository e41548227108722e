//! NUTS on targets that are known exactly: moments by z-tests with effective sizes, what the warm-up learns, what diverges, and
//! what must not matter.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::support::*;
use npl::bayes::convergence::effective_sizes;
use npl::bayes::nuts::{Chains, Step};
use npl::bayes::{ChainTuning, LogDensity};
use npl::error::Error;
use npl::math::mean;
use npl::rng::{Purpose, Seed};
use rand::distr::Distribution;
use rand_distr::StandardNormal;

/// A log density that is a closure over place and gradient.
struct Target<F>(usize, F);

impl<F: Fn(&[f64], &mut [f64]) -> f64 + Sync> LogDensity for Target<F> {
    fn dim(&self) -> usize {
        self.0
    }

    fn evaluate(&self, u: &[f64], gradient: &mut [f64]) -> f64 {
        (self.1)(u, gradient)
    }
}

/// Independent normals with mean 0.
fn normal(scales: Vec<f64>) -> Target<impl Fn(&[f64], &mut [f64]) -> f64 + Sync> {
    Target(scales.len(), move |u: &[f64], gradient: &mut [f64]| {
        let terms = u.iter().zip(&scales).zip(gradient).map(|((u, s), g)| {
            *g = -u / (s * s);
            -0.5 * (u / s) * (u / s)
        });
        terms.sum()
    })
}

const CHAINS: usize = 4;
static NEVER: AtomicBool = AtomicBool::new(false);

fn tuning() -> ChainTuning {
    ChainTuning { warmup: 500, chains: CHAINS, target_accept: 0.8, max_depth: 10 }
}

/// Starts like those of the program: anywhere near 0.
fn start(dim: usize, seed: u64, chain: usize) -> Vec<f64> {
    let mut rng = Seed(seed).stream(Purpose::Chain, chain as u64, 1);
    (0..dim).map(|_| StandardNormal.sample(&mut rng)).collect()
}

/// All draws, chain by chain.
fn draws(target: &dyn LogDensity, each: usize, seed: u64, threads: usize) -> Vec<Step> {
    draws_from(target, each, seed, threads, |c| start(target.dim(), seed, c))
}

fn draws_from(
    target: &dyn LogDensity,
    draws: usize,
    seed: u64,
    threads: usize,
    start: impl Fn(usize) -> Vec<f64> + Sync,
) -> Vec<Step> {
    let chains = Chains { target, tuning: tuning(), draws, seed: Seed(seed), threads, cancel: &NEVER };
    let mut found = Vec::new();
    let keep = |step| {
        found.push(step);
        Ok(())
    };
    chains.sample(|c| Ok(start(c)), keep).unwrap();
    found
}

/// A function of the draws, by chains.
fn series(draws: &[Step], of: impl Fn(&[f64]) -> f64) -> Vec<Vec<f64>> {
    let mut found = vec![Vec::new(); CHAINS];
    draws.iter().for_each(|step| found[step.chain].push(of(&step.u)));
    found
}

/// The mean against the exact one, with the error of as many independent draws as the chains are worth: no fewer than this share
/// of them, or a chain that hardly moves would pass.
fn assert_series(what: &str, chains: &[Vec<f64>], exact: f64, variance: f64, worth: f64) {
    let values = chains.concat();
    let (size, _, _) = effective_sizes(chains, exact, [0.0]);
    assert!(size > worth * values.len() as f64, "{what}: {size} effective draws of {}", values.len());
    let z = (mean(&values) - exact) / (variance / size).sqrt();
    assert!(z.abs() < LIMIT, "{what}: {} for {exact}, z = {z}", mean(&values));
}

/// Mean and variance of every coordinate of a normal target.
fn assert_normal(what: &str, draws: &[Step], scales: &[f64], worth: f64) {
    for (i, s) in scales.iter().enumerate() {
        let v = s * s;
        assert_series(&format!("{what}, mean {i}"), &series(draws, |u| u[i]), 0.0, v, worth);
        let squares = series(draws, |u| u[i] * u[i]);
        assert_series(&format!("{what}, variance {i}"), &squares, v, 2.0 * v * v, worth);
    }
}

fn mean_steps(draws: &[Step]) -> f64 {
    mean(&draws.iter().map(|step| step.steps as f64).collect::<Vec<_>>())
}

fn divergences(draws: &[Step]) -> usize {
    draws.iter().filter(|step| step.divergent).count()
}

/// Beside the coordinates Σ u², which has the law of χ²: it is the energy, which only new momenta change.
#[test]
fn a_standard_normal_of_any_dimension() {
    for seed in SEEDS {
        for (dim, each) in [(1, 3000), (10, 2000), (100, 1000)] {
            let draws = draws(&normal(vec![1.0; dim]), each, seed, 2);
            assert_eq!((draws.len(), divergences(&draws)), (CHAINS * each, 0));
            let what = format!("seed {seed}, dimension {dim}");
            assert_normal(&what, &draws, &vec![1.0; dim], 0.15);
            let radius = series(&draws, |u| u.iter().map(|u| u * u).sum());
            assert_series(&format!("{what}, radius"), &radius, dim as f64, 2.0 * dim as f64, 0.15);
            // Half a period takes time π; trees double, so that a trajectory may be twice as long, or half.
            let time = mean_steps(&draws) * draws[0].step_size;
            assert!(time > 1.5 && time < 6.3, "{what}: {time}");
        }
    }
}

/// Thirteen scales from 10⁻³ to 10³. With the unit metric a trajectory would take millions of steps.
#[test]
fn scales_are_learnt() {
    let scales: Vec<f64> = (0..13).map(|i| libm::pow(10.0, -3.0 + 0.5 * f64::from(i))).collect();
    for seed in SEEDS {
        let draws = draws(&normal(scales.clone()), 2000, seed, 2);
        assert_normal(&format!("seed {seed}"), &draws, &scales, 0.15);
        assert_eq!(divergences(&draws), 0);
        assert!(mean_steps(&draws) < 16.0, "{}", mean_steps(&draws));
    }
}

/// Correlation 0.95, which a diagonal metric cannot take away.
#[test]
fn a_correlated_normal() {
    let rho = 0.95;
    let precision = 1.0 / (1.0 - rho * rho);
    let target = Target(2, |u: &[f64], gradient: &mut [f64]| {
        gradient[0] = -precision * (u[0] - rho * u[1]);
        gradient[1] = -precision * (u[1] - rho * u[0]);
        0.5 * (u[0] * gradient[0] + u[1] * gradient[1])
    });
    for seed in SEEDS {
        let draws = draws(&target, 3000, seed, 2);
        assert_normal(&format!("seed {seed}"), &draws, &[1.0, 1.0], 0.1);
        let products = series(&draws, |u| u[0] * u[1]);
        assert_series(&format!("seed {seed}, covariance"), &products, rho, 1.0 + rho * rho, 0.1);
    }
}

/// Neal's (2003): log scale v ~ N(0, 3²), nine coordinates N(0, eᵛ). No step size is right for its neck.
#[test]
fn a_funnel_diverges() {
    let target = Target(10, |u: &[f64], gradient: &mut [f64]| {
        let (v, rest) = u.split_first().unwrap();
        let (inverse, squares) = (libm::exp(-v), rest.iter().map(|x| x * x).sum::<f64>());
        gradient[0] = -v / 9.0 + 0.5 * squares * inverse - 4.5;
        gradient[1..].iter_mut().zip(rest).for_each(|(g, x)| *g = -x * inverse);
        -v * v / 18.0 - 0.5 * squares * inverse - 4.5 * v
    });
    for seed in SEEDS {
        assert!(divergences(&draws(&target, 1000, seed, 2)) > 0, "seed {seed}");
    }
}

/// e^{−u} for u > 0 and nothing beyond: trajectories that run into the wall diverge, and the law is still right.
#[test]
fn a_wall_diverges_and_is_respected() {
    let target = Target(1, |u: &[f64], gradient: &mut [f64]| {
        gradient[0] = -1.0;
        if u[0] > 0.0 { -u[0] } else { f64::NEG_INFINITY }
    });
    for seed in SEEDS {
        let draws = draws_from(&target, 5000, seed, 2, |_| vec![1.0]);
        assert!(divergences(&draws) > 100, "seed {seed}: {}", divergences(&draws));
        assert!(draws.iter().all(|step| step.u[0] > 0.0));
        assert_series(&format!("seed {seed}, mean"), &series(&draws, |u| u[0]), 1.0, 1.0, 0.02);
        // E u² = 2, E u⁴ = 24.
        assert_series(&format!("seed {seed}, square"), &series(&draws, |u| u[0] * u[0]), 2.0, 20.0, 0.02);
    }
}

#[test]
fn threads_do_not_matter_and_seeds_and_chains_do() {
    let target = normal(vec![0.5, 1.0, 2.0]);
    let bits = |steps: &[Step]| -> Vec<u64> {
        steps
            .iter()
            .flat_map(|s| s.u.iter().chain([&s.step_size]).map(|v| v.to_bits()).collect::<Vec<_>>())
            .collect()
    };
    let one = draws(&target, 200, 1, 1);
    for threads in [2, 3, 8] {
        assert_eq!(bits(&draws(&target, 200, 1, threads)), bits(&one), "{threads} threads");
    }
    assert_ne!(bits(&draws(&target, 200, 2, 1)), bits(&one));
    assert_ne!(one[0].u, one[200].u);
    // The first draws of a longer chain are those of a shorter one.
    assert_eq!(bits(&draws(&target, 50, 1, 1)[..50]), bits(&one[..50]));
}

/// No more than the gradient that is being evaluated: neither the rest of a trajectory nor of a warm-up.
#[test]
fn chains_stop_when_they_are_told_to() {
    for limit in [3, 500, 5000] {
        let (cancel, evaluations) = (AtomicBool::new(false), AtomicUsize::new(0));
        // So narrow a ridge that trajectories are as long as they may be.
        let target = Target(2, |u: &[f64], gradient: &mut [f64]| {
            if evaluations.fetch_add(1, Ordering::Relaxed) + 1 == limit {
                cancel.store(true, Ordering::Relaxed);
            }
            let across = 1e8 * (u[0] - u[1]);
            gradient.copy_from_slice(&[-across - u[0], across - u[1]]);
            -0.5 * (across * (u[0] - u[1]) + u[0] * u[0] + u[1] * u[1])
        });
        let tuning = ChainTuning { chains: 1, ..tuning() };
        let chains =
            Chains { target: &target, tuning, draws: 1000, seed: Seed(1), threads: 1, cancel: &cancel };
        let found = chains.sample(|_| Ok(vec![0.1, 0.1]), |_| Ok(()));
        assert!(matches!(found, Err(Error::Interrupted)), "{found:?}");
        let more = evaluations.into_inner() - limit;
        assert!(more <= 2, "{more} evaluations after {limit}");
    }
}

#[test]
fn a_chain_that_cannot_begin_says_which_and_why() {
    let target = normal(vec![1.0]);
    let chains =
        Chains { target: &target, tuning: tuning(), draws: 10, seed: Seed(1), threads: 2, cancel: &NEVER };
    let start = |c: usize| Ok(vec![if c == 2 { f64::NAN } else { 0.5 }]);
    let error = chains.sample(start, |_| Ok(())).unwrap_err();
    assert_eq!(error.to_string(), "chain 3: the log density is not finite where it begins");
}

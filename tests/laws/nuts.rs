//! NUTS against the reference posteriors of posteriordb. Their models live here alone: npl needs neither.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use npl::bayes::LogDensity;
use npl::bayes::convergence::{Convergence, effective_sizes};
use npl::bayes::nuts::{Chains, Step};
use npl::config::Count;
use npl::math::{mean, sd};
use npl::method::nuts::Settings;
use npl::rng::{Purpose, Seed};
use rand::distr::Distribution;
use rand_distr::StandardNormal;

fn folder() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let env = std::env::var_os("NPL_DATA").map(PathBuf::from);
    let places = env.into_iter().chain([root.join("data"), root.join("../shared/data")]);
    let found = places.map(|d| d.join("posteriordb")).find(|d| d.join("reference.csv").exists());
    if found.is_none() {
        println!("skipped: posteriordb/ is in none of $NPL_DATA, ./data and ../shared/data");
    }
    found
}

/// Numbers of a CSV file with a header, row by row.
fn numbers(path: &Path) -> Vec<Vec<f64>> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().skip(1).map(|l| l.split(',').map(|c| c.parse().unwrap()).collect()).collect()
}

/// Mean and sd of the reference draws of a parameter.
fn reference(folder: &Path, posterior: &str, parameter: &str) -> (f64, f64) {
    let text = std::fs::read_to_string(folder.join("reference.csv")).unwrap();
    let start = format!("{posterior},\"{parameter}\",");
    let line = text.lines().find_map(|l| l.strip_prefix(&start)).unwrap_or_else(|| panic!("{start}"));
    let (mean, sd) = line.split_once(',').unwrap();
    (mean.parse().unwrap(), sd.parse().unwrap())
}

fn log_normal(x: f64, m: f64, s: f64) -> f64 {
    -0.5 * ((x - m) / s).powi(2) - s.ln()
}

/// y ~ θ N(μ₁, σ₁) + (1 − θ) N(μ₂, σ₂), μ₁ < μ₂, μ ~ N(0, 2), σ ~ half-N(0, 2), θ ~ Beta(5, 5), on the scale of μ₁,
/// log(μ₂ − μ₁), log σ and logit θ.
struct GaussMix {
    y: Vec<f64>,
}

impl GaussMix {
    fn constrain(u: &[f64]) -> [f64; 5] {
        [u[0], u[0] + u[1].exp(), u[2].exp(), u[3].exp(), 1.0 / (1.0 + (-u[4]).exp())]
    }
}

impl LogDensity for GaussMix {
    fn dim(&self) -> usize {
        5
    }

    fn evaluate(&self, u: &[f64], gradient: &mut [f64]) -> f64 {
        let [mu1, mu2, s1, s2, theta] = Self::constrain(u);
        let mut value = log_normal(mu1, 0.0, 2.0) + log_normal(mu2, 0.0, 2.0) - (s1 * s1 + s2 * s2) / 8.0
            + 5.0 * (theta.ln() + (1.0 - theta).ln())
            + u[1]
            + u[2]
            + u[3];
        let (mut by1, mut by2) = (-mu1 / 4.0, -mu2 / 4.0);
        let (mut by_s1, mut by_s2) = (1.0 - s1 * s1 / 4.0, 1.0 - s2 * s2 / 4.0);
        let mut by_theta = 5.0 - 10.0 * theta;
        for &y in &self.y {
            let a = theta.ln() + log_normal(y, mu1, s1);
            let b = (1.0 - theta).ln() + log_normal(y, mu2, s2);
            let high = a.max(b);
            let log_sum = high + ((a - high).exp() + (b - high).exp()).ln();
            value += log_sum;
            let (r, q) = ((a - log_sum).exp(), (b - log_sum).exp());
            by1 += r * (y - mu1) / (s1 * s1);
            by2 += q * (y - mu2) / (s2 * s2);
            by_s1 += r * (((y - mu1) / s1).powi(2) - 1.0);
            by_s2 += q * (((y - mu2) / s2).powi(2) - 1.0);
            by_theta += r - theta;
        }
        gradient.copy_from_slice(&[by1 + by2, by2 * u[1].exp() + 1.0, by_s1, by_s2, by_theta]);
        value
    }
}

/// θ_j = μ + τ t_j, t ~ N(0, 1), μ ~ N(0, 5), τ ~ half-Cauchy(0, 5), y_j ~ N(θ_j, σ_j), on the scale of t, μ, log τ.
struct EightSchools {
    y: Vec<f64>,
    sigma: Vec<f64>,
}

impl LogDensity for EightSchools {
    fn dim(&self) -> usize {
        10
    }

    fn evaluate(&self, u: &[f64], gradient: &mut [f64]) -> f64 {
        let (mu, tau) = (u[8], u[9].exp());
        let ratio = (tau / 5.0).powi(2);
        let mut value = log_normal(mu, 0.0, 5.0) - ratio.ln_1p() + u[9];
        let (mut by_mu, mut by_tau) = (-mu / 25.0, 1.0 - 2.0 * ratio / (1.0 + ratio));
        for j in 0..8 {
            let theta = mu + tau * u[j];
            value += log_normal(u[j], 0.0, 1.0) + log_normal(self.y[j], theta, self.sigma[j]);
            let slope = (self.y[j] - theta) / self.sigma[j].powi(2);
            gradient[j] = tau * slope - u[j];
            by_mu += slope;
            by_tau += slope * tau * u[j];
        }
        gradient[8] = by_mu;
        gradient[9] = by_tau;
        value
    }
}

fn assert_gradient(target: &dyn LogDensity) {
    let mut rng = Seed(5).stream(Purpose::Auxiliary, 0, 0);
    for _ in 0..20 {
        let u: Vec<f64> = (0..target.dim()).map(|_| StandardNormal.sample(&mut rng)).collect();
        let mut gradient = vec![0.0; u.len()];
        target.evaluate(&u, &mut gradient);
        for i in 0..u.len() {
            let moved = |by: f64| {
                let mut v = u.clone();
                v[i] += by;
                target.evaluate(&v, &mut vec![0.0; u.len()])
            };
            let slope = (moved(1e-5) - moved(-1e-5)) / 2e-5;
            assert!((slope - gradient[i]).abs() < 1e-5 * (1.0 + slope.abs()), "{slope} {}", gradient[i]);
        }
    }
}

const CHAINS: usize = 4;

/// Draws of all chains, and their thetas.
fn chains(
    target: &dyn LogDensity,
    draws: usize,
    constrain: impl Fn(&[f64]) -> Vec<f64>,
) -> Vec<Vec<Vec<f64>>> {
    let count = |n| Count::new(n).unwrap();
    let settings = Settings { chains: count(CHAINS), warmup: count(1000), ..Settings::default() };
    let start = |c: usize| {
        let mut rng = Seed(7).stream(Purpose::Chain, c as u64, 1);
        Ok((0..target.dim()).map(|_| StandardNormal.sample(&mut rng)).collect())
    };
    let mut by_parameter: Vec<Vec<Vec<f64>>> = Vec::new();
    let mut divergent = 0;
    let keep = |step: Step| {
        let theta = constrain(&step.u);
        by_parameter.resize(theta.len(), vec![Vec::new(); CHAINS]);
        by_parameter.iter_mut().zip(theta).for_each(|(p, v)| p[step.chain].push(v));
        divergent += usize::from(step.divergent);
        Ok(())
    };
    let cancel = AtomicBool::new(false);
    let tuning = settings.tuning();
    let wanted = 0..tuning.chains;
    let chains = Chains { target, tuning, wanted, draws, seed: Seed(7), threads: 2, cancel: &cancel };
    chains.sample(start, keep).unwrap();
    assert!(divergent < CHAINS * draws / 200, "{divergent} divergences");
    by_parameter
}

/// Means within 5 combined Monte Carlo errors (the reference has 10,000 independent draws), sds within 5 %.
fn assert_reference(folder: &Path, posterior: &str, parameter: &str, chains: &[Vec<f64>]) {
    let (m, s) = reference(folder, posterior, parameter);
    let draws = chains.concat();
    let (size, _, _) = effective_sizes(chains, mean(&draws), [0.0]);
    let error = (sd(&draws).powi(2) / size + s * s / 10_000.0).sqrt();
    let z = (mean(&draws) - m) / error;
    assert!(z.abs() < 5.0, "{parameter}: {} for {m}, z = {z}", mean(&draws));
    assert!((sd(&draws) / s - 1.0).abs() < 0.05, "{parameter}: sd {} for {s}", sd(&draws));
    let rhat = Convergence::of(chains).rhat;
    assert!(rhat < 1.01, "{parameter}: {rhat}");
}

#[test]
fn low_dim_gauss_mix() {
    let Some(folder) = folder() else { return };
    let y = numbers(&folder.join("low_dim_gauss_mix.csv")).concat();
    let target = GaussMix { y };
    assert_gradient(&target);
    let found = chains(&target, 1500, |u| GaussMix::constrain(u).to_vec());
    for (name, chains) in ["mu[1]", "mu[2]", "sigma[1]", "sigma[2]", "theta"].iter().zip(&found) {
        assert_reference(&folder, "low_dim_gauss_mix", name, chains);
    }
}

#[test]
fn eight_schools() {
    let Some(folder) = folder() else { return };
    let rows = numbers(&folder.join("eight_schools.csv"));
    let target =
        EightSchools { y: rows.iter().map(|r| r[0]).collect(), sigma: rows.iter().map(|r| r[1]).collect() };
    assert_gradient(&target);
    let found = chains(&target, 5000, |u| {
        let (mu, tau) = (u[8], u[9].exp());
        u[..8].iter().map(|t| mu + tau * t).chain([mu, tau]).collect()
    });
    let names = (1..=8).map(|j| format!("theta[{j}]")).chain(["mu".into(), "tau".into()]);
    for (name, chains) in names.zip(&found) {
        assert_reference(&folder, "eight_schools_noncentered", &name, chains);
    }
}

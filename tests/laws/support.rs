//! What the statistical tests share: experiments built from text or from pieces, and checks whose tolerance follows
//! from a stated false-alarm rate.
//!
//! Seeds are fixed, so a test gives the same answer every time. Were they fresh, a right sampler would fail one check
//! of a mean in 1.7 million (|z| > 5), one of a distribution in 10⁹, one of counts in 10⁷.

#![allow(dead_code)]

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::tempfile::NamedTempFile;
use rayon::{ThreadPool, ThreadPoolBuilder};
use statrs::distribution::{ChiSquared, ContinuousCDF};

use npl::bootstrap::{Draw, Plan, Scheme, posterior_bootstrap};
use npl::config::Document;
use npl::data::Dataset;
use npl::data::files::SearchPath;
use npl::experiment::Experiment;
use npl::init::{Dist, Init};
use npl::model::{Context, Model, ModelConfig};
use npl::optim::Optimiser;
use npl::process::{Measure, Prior};
use npl::report::Repeat;
use npl::rng::Seed;
use npl::run::run_repeat;
use npl::samples::Sample;
use npl::study::Study;

/// Seeds of every statistical test.
pub const SEEDS: [u64; 3] = [1, 2, 3];
/// Limit of |z|: p = 5.7e-7.
pub const LIMIT: f64 = 5.0;
/// False-alarm rate of a check of a whole distribution.
const DISTRIBUTION_P: f64 = 1e-9;
/// False-alarm rate of a check of counts.
const COUNTS_P: f64 = 1e-7;
/// Smallest expected count for which the chi-square approximation is used.
const SMALLEST_CELL: f64 = 20.0;

/// Five numbers without symmetry, so that no moment vanishes by accident.
pub const FIVE: [f64; 5] = [0.0, 1.0, 2.0, 5.0, -1.3];

// ---------------------------------------------------------------------------------------------------- experiments

pub fn pool(threads: usize) -> ThreadPool {
    ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool of threads")
}

/// The study that an experiment file describes.
pub fn study(toml: &str) -> Study {
    let document = Document::parse("test.toml", toml, &[]).unwrap_or_else(|e| panic!("{e}"));
    let experiment: Experiment = document.decode().unwrap_or_else(|e| panic!("{e}"));
    Study::new(document, experiment, SearchPath::default()).unwrap_or_else(|e| panic!("{e}"))
}

/// Report and draws of an experiment.
pub fn run_with_report(toml: &str) -> (Repeat, Vec<Sample>) {
    let mut draws = Vec::new();
    let mut keep = |draw| {
        draws.push(draw);
        Ok(())
    };
    let cancel = AtomicBool::new(false);
    let report = run_repeat(&study(toml), 0, &pool(2), &cancel, &mut keep).expect("the run succeeds");
    (report, draws)
}

/// Draws of an experiment.
pub fn run(toml: &str) -> Vec<Sample> {
    run_with_report(toml).1
}

/// An experiment file with rows from `data`; `rest` holds the other tables.
pub fn experiment(seed: u64, draws: usize, data: &NamedTempFile, rest: &str) -> String {
    format!(
        "name = \"t\"\nseed = {seed}\n[data]\ntrain = {:?}\nheader = false\n[sampler]\nB = {draws}\n{rest}",
        data.path().display().to_string()
    )
}

/// The starter of every model, and those of the mixture with covariances of every kind: names and experiments.
pub fn starters() -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> =
        npl::model::STARTERS.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect();
    let (_, gmm) = npl::model::STARTERS.iter().find(|(name, _)| *name == "gmm").expect("the mixture");
    for kind in ["spherical", "tied", "full"] {
        let text = gmm.replace("\n[model.gmm]\n", &format!("\n[model.gmm]\ncovariance = \"{kind}\"\n"));
        let text = match kind {
            "spherical" => text,
            // No prior of matrices is known.
            _ => {
                let (before, rest) =
                    text.split_once("\n[model.gmm.prior]").expect("a prior for conventional Bayes");
                let after = rest.find("\n# The Dirichlet").expect("what follows it");
                format!("{before}{}", &rest[after..]).replace("init.sigma2", "init.Sigma")
            }
        };
        all.push((format!("gmm, {kind}"), text));
    }
    all
}

/// A file with one column of numbers.
pub fn file_of(values: &[f64]) -> NamedTempFile {
    let mut file = NamedTempFile::new().expect("a temporary file");
    values.iter().for_each(|v| writeln!(file, "{v:?}").expect("a line"));
    file
}

/// Entry `j` of θ in every draw.
pub fn entry(draws: &[Sample], j: usize) -> Vec<f64> {
    draws.iter().map(|d| d.theta[j]).collect()
}

/// A model from its table: `[gmm]`, `[mean]`, …
pub fn model(toml: &str, train: &Dataset) -> Box<dyn Model> {
    model_with(toml, train, &Optimiser::default())
}

pub fn model_with(toml: &str, train: &Dataset, optimiser: &Optimiser) -> Box<dyn Model> {
    let config: ModelConfig = toml::from_str(toml).unwrap_or_else(|e| panic!("{e}"));
    let context = Context { train, alpha: 0.0, mass: train.n() as f64, optimiser, derived: None };
    config.build(&context).unwrap_or_else(|e| panic!("{e:?}"))
}

/// An optimiser from its table.
pub fn optimiser(toml: &str) -> Optimiser {
    toml::from_str(toml).unwrap_or_else(|e| panic!("{e}"))
}

/// π₀ from the lines of a table: `mu = { uniform = [-2.0, 6.0] }`.
pub fn init(model: &dyn Model, train: &Dataset, toml: &str) -> Init {
    let config: std::collections::BTreeMap<String, Dist> =
        toml::from_str(toml).unwrap_or_else(|e| panic!("{e}"));
    let no_file = |_: &str, _: &[String]| Err("no files here".to_owned());
    let train = Arc::new(train.clone());
    Init::build(model.blocks(), &model.names(), &config, &train, &no_file).unwrap_or_else(|e| panic!("{e:?}"))
}

/// Draws `range` by `threads` threads.
pub fn bootstrap(
    model: &dyn Model,
    prior: &Prior,
    data: &Dataset,
    scheme: &Scheme,
    seed: u64,
    range: std::ops::Range<u64>,
    threads: usize,
) -> Vec<Draw> {
    let plan = Plan { model, prior, data, scheme, seed: Seed(seed), subsample: None, before: None };
    let mut draws = Vec::new();
    posterior_bootstrap(
        &plan,
        range,
        &pool(threads),
        &AtomicBool::new(false),
        |_| (),
        |draw, ()| {
            draws.push(draw);
            Ok(())
        },
    )
    .expect("nothing interrupts the run");
    draws
}

/// Σ w x^power over all atoms of one column.
pub fn weighted_moment(f: &Measure, power: i32) -> f64 {
    f.atoms().map(|a| a.x.column(0).zip(a.w).map(|(x, w)| w * x.powi(power)).sum::<f64>()).sum()
}

/// Bits of θ and objective of every draw: equal only if everything is.
pub fn bits(draws: &[Draw]) -> Vec<Vec<u64>> {
    let of = |d: &Draw| {
        let m = &d.minimum;
        let numbers = m.theta.iter().chain([&m.value, &m.gradient]).chain(&d.values).map(|v| v.to_bits());
        numbers.chain([d.index, d.restart as u64, m.iterations as u64, m.status as u64]).collect()
    };
    draws.iter().map(of).collect()
}

// ---------------------------------------------------------------------------------------------------------- moments

/// Mean and central moments 2, 3, 4 of a discrete distribution.
#[derive(Clone, Copy, Debug)]
pub struct Moments {
    pub mean: f64,
    pub m2: f64,
    pub m3: f64,
    pub m4: f64,
}

impl Moments {
    /// Values with probabilities that need not be normalised.
    pub fn of(values: &[f64], shares: &[f64]) -> Moments {
        let total: f64 = shares.iter().sum();
        let average =
            |f: &dyn Fn(f64) -> f64| values.iter().zip(shares).map(|(v, p)| f(*v) * p).sum::<f64>() / total;
        let mean = average(&|v| v);
        let central = |p: i32| average(&|v| (v - mean).powi(p));
        Moments { mean, m2: central(2), m3: central(3), m4: central(4) }
    }

    pub fn of_values(values: &[f64]) -> Moments {
        Moments::of(values, &vec![1.0; values.len()])
    }

    /// Moments of ∫ y dF for F ~ DP(mass, G), where these are the moments of G.
    pub fn of_dp_mean(self, mass: f64) -> Moments {
        let m = mass;
        Moments {
            mean: self.mean,
            m2: self.m2 / (m + 1.0),
            m3: 2.0 * self.m3 / ((m + 1.0) * (m + 2.0)),
            m4: (6.0 * self.m4 + 3.0 * m * self.m2 * self.m2) / ((m + 1.0) * (m + 2.0) * (m + 3.0)),
        }
    }
}

// ----------------------------------------------------------------------------------------------------------- checks

fn within(what: &str, z: f64) {
    println!("z = {z:+.2}  {what}");
    assert!(z.abs() <= LIMIT, "{what}: z = {z:.2}");
}

fn average(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The average is `mean`; the standard error follows from the exact variance.
pub fn assert_mean(what: &str, values: &[f64], mean: f64, variance: f64) {
    within(what, z_of_mean(values, mean, variance));
}

pub fn z_of_mean(values: &[f64], mean: f64, variance: f64) -> f64 {
    (average(values) - mean) / (variance / values.len() as f64).sqrt()
}

/// The average is `mean`; the standard error is that of the run itself.
pub fn assert_average(what: &str, values: &[f64], mean: f64) {
    let m = average(values);
    let variance = values.iter().map(|v| (v - m) * (v - m)).sum::<f64>() / values.len() as f64;
    within(what, z_of_mean(values, mean, variance));
}

/// The variance about the exact mean; the standard error √((μ₄ − V²)/B) follows from the exact fourth moment.
pub fn assert_var(what: &str, values: &[f64], exact: Moments) {
    within(what, z_of_variance(values, exact.mean, exact.m2, exact.m4));
}

pub fn z_of_variance(values: &[f64], mean: f64, variance: f64, fourth: f64) -> f64 {
    let squares: Vec<f64> = values.iter().map(|v| (v - mean) * (v - mean)).collect();
    z_of_mean(&squares, variance, fourth - variance * variance)
}

/// Central moment `power` about the exact mean is `expected`; the standard error is that of the run itself.
pub fn assert_moment(what: &str, values: &[f64], mean: f64, power: i32, expected: f64) {
    let powers: Vec<f64> = values.iter().map(|v| (v - mean).powi(power)).collect();
    assert_average(what, &powers, expected);
}

/// Independent pairs are uncorrelated: √B r is standard normal.
pub fn assert_uncorrelated(what: &str, x: &[f64], y: &[f64]) {
    within(what, correlation(x, y) * (x.len() as f64).sqrt());
}

pub fn correlation(x: &[f64], y: &[f64]) -> f64 {
    assert_eq!(x.len(), y.len());
    let (mx, my) = (average(x), average(y));
    let sum = |f: &dyn Fn(f64, f64) -> f64| x.iter().zip(y).map(|(a, b)| f(a - mx, b - my)).sum::<f64>();
    let (xx, yy) = (sum(&|a, _| a * a), sum(&|_, b| b * b));
    assert!(xx > 0.0 && yy > 0.0, "a constant has no correlation");
    sum(&|a, b| a * b) / (xx * yy).sqrt()
}

/// Largest distance between the empirical and the exact distribution function, which may have jumps.
pub fn distance(values: &[f64], cdf: impl Fn(f64) -> f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let n = sorted.len() as f64;
    let mut worst = 0.0f64;
    let mut below = 0;
    while below < sorted.len() {
        let x = sorted[below];
        let upto = below + sorted[below..].iter().take_while(|v| **v == x).count();
        worst = worst.max((cdf(x) - upto as f64 / n).abs());
        worst = worst.max((cdf(x.next_down()) - below as f64 / n).abs());
        below = upto;
    }
    worst
}

/// √(ln(2/p)/2B), the inequality of Dvoretzky, Kiefer and Wolfowitz with Massart's constant.
pub fn distance_limit(draws: usize) -> f64 {
    ((2.0 / DISTRIBUTION_P).ln() / (2.0 * draws as f64)).sqrt()
}

pub fn assert_distribution(what: &str, values: &[f64], cdf: impl Fn(f64) -> f64) {
    let (distance, limit) = (distance(values, cdf), distance_limit(values.len()));
    assert!(
        distance <= limit,
        "{what}: distance {distance:.4} of the distribution function, limit {limit:.4}"
    );
}

/// Counts follow these probabilities. Cells with a small expected count are joined to their neighbour.
pub fn assert_counts(what: &str, counts: &[usize], probabilities: &[f64]) {
    assert_eq!(counts.len(), probabilities.len());
    let total: usize = counts.iter().sum();
    let mut cells: Vec<(f64, f64)> = Vec::new();
    let mut open = (0.0, 0.0);
    for (count, p) in counts.iter().zip(probabilities) {
        open = (open.0 + *count as f64, open.1 + p * total as f64);
        if open.1 >= SMALLEST_CELL {
            cells.push(std::mem::take(&mut open));
        }
    }
    let last = cells.last_mut().expect("enough draws for one cell");
    *last = (last.0 + open.0, last.1 + open.1);
    assert!(cells.len() > 1, "{what}: one cell is no test");
    let statistic: f64 = cells.iter().map(|(seen, e)| (seen - e) * (seen - e) / e).sum();
    let p = ChiSquared::new(cells.len() as f64 - 1.0).expect("degrees of freedom").sf(statistic);
    println!("p = {p:.1e}  {what}");
    assert!(p > COUNTS_P, "{what}: chi-square {statistic:.1} in {} cells, p = {p:.1e}", cells.len());
}

/// |a − b| ≤ tolerance · max(1, |b|).
pub fn assert_close(what: &str, a: f64, b: f64, tolerance: f64) {
    assert!(
        (a - b).abs() <= tolerance * b.abs().max(1.0),
        "{what}: {a} and {b} differ by {:e}",
        (a - b).abs()
    );
}

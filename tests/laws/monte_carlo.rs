//! Monte Carlo errors of counts, accuracy and sparsity: right on average over seeds, for independent draws, for weighted
//! ones and for chains, whether the means behind a count are one or many, alike or not.

use std::io::Write;

use crate::tempfile::NamedTempFile;
use rand::distr::Distribution;
use rand_distr::{Open01, StandardNormal};

use crate::support::*;

use npl::evaluate::{Dealing, Estimate, Predictive, Sparsity};
use npl::math::sd;
use npl::rng::{Purpose, Rng, Seed};

/// What is allowed between the errors reported, root mean square over seeds, and the spread of the values.
const FACTOR: f64 = 1.3;
/// Runs of a case: their standard deviation is known to 4 %.
const RUNS: u64 = 300;

fn normal(rng: &mut Rng) -> f64 {
    StandardNormal.sample(rng)
}

/// How the errors of the draws behind many means are related.
#[derive(Clone, Copy, Debug)]
enum Errors {
    /// Each mean has its own.
    Own,
    /// All means have the same.
    Shared,
    /// Two factors, the second the larger the farther the mean is from the threshold.
    Mixed,
}

/// What draws are like.
#[derive(Clone, Copy, Debug)]
enum Draws {
    Independent,
    /// Independent, with log weights from a normal distribution: their squares are e times the square of their mean.
    Weighted,
    /// A chain with autocorrelation 0.8, whose means have 9 times the variance.
    Chain,
}

impl Draws {
    fn number(self) -> u64 {
        if let Draws::Chain = self { 4000 } else { 400 }
    }

    fn dealing(self) -> Dealing {
        if let Draws::Chain = self { Dealing::InRuns(self.number()) } else { Dealing::InTurn }
    }

    /// Variance of a mean of these draws, that of a draw being 1.
    fn variance(self) -> f64 {
        let inflation = match self {
            Draws::Independent => 1.0,
            Draws::Weighted => std::f64::consts::E,
            Draws::Chain => 9.0,
        };
        inflation / self.number() as f64
    }

    /// Draws with unit variance of means that are 0: draw, log weight, error of each mean.
    fn each(self, errors: Errors, places: &[f64], rng: &mut Rng, mut add: impl FnMut(u64, f64, &[f64])) {
        let mut state = vec![0.0; places.len()];
        let keep: f64 = if let Draws::Chain = self { 0.8 } else { 0.0 };
        for b in 0..self.number() {
            let (first, second) = (normal(rng), normal(rng));
            for (state, place) in state.iter_mut().zip(places) {
                let fresh = match errors {
                    Errors::Own => normal(rng),
                    Errors::Shared => first,
                    Errors::Mixed => (first + place * second) / (1.0 + place * place).sqrt(),
                };
                let spread = if b == 0 { 1.0 } else { (1.0 - keep * keep).sqrt() };
                *state = keep * *state + spread * fresh;
            }
            let log_weight = if let Draws::Weighted = self { normal(rng) } else { 0.0 };
            add(b, log_weight, &state);
        }
    }
}

/// Where means are: so many of their own Monte Carlo errors from the threshold.
const GRID: [f64; 13] = [-4.0, -2.6, -1.9, -1.3, -0.8, -0.4, 0.0, 0.3, 0.7, 1.2, 1.8, 2.5, 3.8];

/// Accuracy on rows whose predictive probability is `places` errors from one half.
fn accuracy(draws: Draws, errors: Errors, places: &[f64], seed: u64) -> Estimate {
    let spread = 0.05;
    let error = spread * draws.variance().sqrt();
    let mut predictive = Predictive::new(places.len(), 50, draws.dealing());
    let mut rng = Seed(seed).stream(Purpose::Auxiliary, 7, 0);
    draws.each(errors, places, &mut rng, |b, log_weight, z| {
        let log_p = |(place, z): (&f64, &f64)| libm::log(0.5 + place * error + spread * z);
        let densities: Vec<f64> = places.iter().zip(z).map(log_p).collect();
        predictive.add(b, log_weight, &densities);
    });
    let [_, _, accuracy] = predictive.classification(&vec![1.0; places.len()]);
    accuracy
}

/// Sparsity of coefficients whose mean is `places` errors from ε, half of them on the negative side.
fn sparsity(draws: Draws, errors: Errors, places: &[f64], seed: u64) -> Estimate {
    let epsilon = 0.1;
    let error = draws.variance().sqrt();
    let mut sparsity = Sparsity::new(0..places.len(), epsilon, draws.dealing());
    let mut rng = Seed(seed).stream(Purpose::Auxiliary, 8, 0);
    draws.each(errors, places, &mut rng, |b, log_weight, z| {
        let side = |j: usize| if j.is_multiple_of(2) { 1.0 } else { -1.0 };
        let beta = |j: usize| side(j) * (epsilon + 0.1 * places[j] * error) + 0.1 * z[j];
        sparsity.add(b, log_weight, &(0..places.len()).map(beta).collect::<Vec<_>>());
    });
    sparsity.estimate()
}

/// The errors reported, in units of the spread of the values over runs.
fn calibration(runs: impl Iterator<Item = Estimate>) -> f64 {
    let runs: Vec<Estimate> = runs.collect();
    let values: Vec<f64> = runs.iter().map(|e| e.value).collect();
    let squares: f64 = runs.iter().map(|e| e.mcse * e.mcse).sum();
    (squares / runs.len() as f64).sqrt() / sd(&values)
}

fn assert_calibrated(case: &str, found: f64) {
    assert!((1.0 / FACTOR..FACTOR).contains(&found), "{case}: {found:.3} of the spread over seeds");
}

#[test]
fn the_error_of_accuracy_is_the_spread_over_seeds() {
    for (draws, errors) in [
        (Draws::Independent, Errors::Own),
        (Draws::Independent, Errors::Shared),
        (Draws::Independent, Errors::Mixed),
        (Draws::Weighted, Errors::Mixed),
    ] {
        let found = calibration((0..RUNS).map(|seed| accuracy(draws, errors, &GRID, seed)));
        assert_calibrated(&format!("{draws:?}, {errors:?}"), found);
    }
}

#[test]
fn the_error_of_accuracy_is_right_for_chains() {
    let runs = (0..RUNS / 3).map(|seed| accuracy(Draws::Chain, Errors::Mixed, &GRID, seed));
    assert_calibrated("a chain", calibration(runs));
}

/// One row decides: where nothing averages out.
#[test]
fn the_error_of_accuracy_is_right_for_a_single_row() {
    for place in [0.0, 0.7, -1.5] {
        let found =
            calibration((0..RUNS).map(|seed| accuracy(Draws::Independent, Errors::Own, &[place], seed)));
        assert_calibrated(&format!("a row {place} errors from one half"), found);
    }
}

#[test]
fn the_error_of_sparsity_is_the_spread_over_seeds() {
    for (draws, errors) in [
        (Draws::Independent, Errors::Own),
        (Draws::Independent, Errors::Shared),
        (Draws::Independent, Errors::Mixed),
        (Draws::Weighted, Errors::Own),
    ] {
        let found = calibration((0..RUNS).map(|seed| sparsity(draws, errors, &GRID, seed)));
        assert_calibrated(&format!("{draws:?}, {errors:?}"), found);
    }
    let runs = (0..RUNS / 3).map(|seed| sparsity(Draws::Chain, Errors::Mixed, &GRID, seed));
    assert_calibrated("a chain", calibration(runs));
}

/// Means far from every threshold have no error, and one part alone cannot tell.
#[test]
fn a_count_that_cannot_change_has_no_error() {
    let far = accuracy(Draws::Independent, Errors::Own, &[-40.0, 50.0], 1);
    assert_eq!((far.value, far.mcse), (50.0, 0.0));
    let mut one = Predictive::new(1, 50, Dealing::InTurn);
    one.add(0, 0.0, &[libm::log(0.6)]);
    let [_, _, accuracy] = one.classification(&[1.0]);
    assert!(accuracy.value == 100.0 && accuracy.mcse.is_nan(), "{accuracy:?}");
}

/// Twelve covariates, most with a small effect, and a response, as text.
fn regression(rows: usize, stream: u64) -> NamedTempFile {
    let mut rng = Seed(11).stream(Purpose::Data, stream, 0);
    let mut file = NamedTempFile::new().unwrap();
    for _ in 0..rows {
        let x: Vec<f64> = (0..12).map(|_| normal(&mut rng)).collect();
        let margin: f64 = x.iter().enumerate().map(|(j, x)| 0.04 * j as f64 * x).sum();
        let u: f64 = Open01.sample(&mut rng);
        let y = u8::from(u < 1.0 / (1.0 + libm::exp(-margin)));
        let cells: Vec<String> = x.iter().map(|x| format!("{x:.6}")).chain([y.to_string()]).collect();
        writeln!(file, "{}", cells.join(",")).unwrap();
    }
    file
}

/// The same data, new draws: what a run says of its accuracy and sparsity is how far other runs are.
#[test]
fn runs_know_how_far_from_each_other_they_are() {
    let (train, test) = (regression(300, 1), regression(600, 2));
    let path = |file: &NamedTempFile| file.path().display().to_string();
    let reports: Vec<_> = (0..100)
        .map(|seed| {
            let toml = format!(
                "name = \"t\"\nseed = {seed}\n[data]\ntrain = {:?}\ntest = {:?}\nheader = false\ntarget = \"13\"\n\
                 [model.logistic]\npenalty = {{ student_t = {{ a = 1.0, b = 1.0 }} }}\ngamma = \"1/n\"\n\
                 [sampler]\nB = 100\n[evaluate]\nepsilon = 0.15\n",
                path(&train),
                path(&test)
            );
            run_with_report(&toml).0
        })
        .collect();
    let accuracy = calibration(reports.iter().map(|r| r.accuracy.expect("a response and test rows")));
    assert_calibrated("accuracy", accuracy);
    let sparsity = calibration(reports.iter().map(|r| r.sparsity.expect("coefficients and an epsilon")));
    assert_calibrated("sparsity", sparsity);
}

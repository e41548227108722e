//! The random measure: its weights and atoms follow the Dirichlet process posterior, truncated as asked, in law.

use crate::support::*;
use ndarray::{Array1, Array2};
use statrs::distribution::{Beta, ContinuousCDF, Discrete, Poisson};

use npl::data::Dataset;
use npl::data::design::{Design, Groups};
use npl::process::base::{BernoulliResponse, Empirical, Normal};
use npl::process::{BaseMeasure, Measure, Prior, Truncation};
use npl::rng::Seed;

const ALPHA: f64 = 2.5;
const DRAWS: u64 = 20_000;
/// Large, so that the mass it leaves to one atom is seen.
const EPSILON: f64 = 0.2;

/// One draw of F, by origin of its atoms.
struct Weights {
    w: Vec<f64>,
    v: Vec<f64>,
    pseudo: Dataset,
}

impl Weights {
    fn prior_mass(&self) -> f64 {
        self.v.iter().sum()
    }

    fn squares(&self) -> f64 {
        self.w.iter().chain(&self.v).map(|w| w * w).sum()
    }

    /// Mass of the pseudo-samples with this row and response; light ones are not stored.
    fn mass_at(&self, x: f64, y: Option<f64>) -> f64 {
        let response = |i: usize| self.pseudo.y.as_ref().map(|y| y[i]);
        (0..self.v.len()).filter(|&i| self.pseudo.x[[i, 0]] == x && response(i) == y).map(|i| self.v[i]).sum()
    }
}

fn data() -> Dataset {
    Dataset::from_values(FIVE.to_vec())
}

fn labelled() -> Dataset {
    let x = Array2::from_shape_vec((5, 1), FIVE.to_vec()).unwrap();
    Dataset::new(x, Some(Array1::from(vec![0.0, 1.0, 1.0, 0.0, 1.0])), vec!["x".into()])
}

fn history() -> Dataset {
    Dataset::from_values(vec![3.0, -2.0, 0.5, 7.0])
}

fn dp(alpha: f64, truncation: Truncation) -> Prior {
    Prior::Dp { alpha, base: Box::new(Normal { mean: vec![0.5], sd: vec![2.0] }), truncation }
}

fn exact(base: impl BaseMeasure + 'static) -> Prior {
    Prior::Dp { alpha: ALPHA, base: Box::new(base), truncation: Truncation::Exact }
}

/// A prior, the data it meets, and E Σ v² of its pseudo-samples given that E V² is `square` for their total mass V.
struct Case {
    name: &'static str,
    prior: Prior,
    data: Dataset,
    prior_squares: Box<dyn Fn(f64) -> f64>,
}

fn cases() -> Vec<Case> {
    let case =
        |name, prior, data, prior_squares: Box<dyn Fn(f64) -> f64>| Case { name, prior, data, prior_squares };
    let a = ALPHA;
    let dirichlet = move |t: f64| move |square: f64| square * (1.0 + a / t) / (1.0 + a);
    let sticks = move |t: i32| {
        move |square: f64| square * (1.0 / (1.0 + a) + (a / (a + 2.0)).powi(t - 1) * a / (1.0 + a))
    };
    let atoms = move |shares: Vec<f64>| {
        let sum: f64 = shares.iter().map(|p| p * p).sum();
        move |square: f64| square * (1.0 + a * sum) / (1.0 + a)
    };
    let response: Vec<f64> = (0..10).map(|i| if i < 5 { 0.3 / 5.0 } else { 0.7 / 5.0 }).collect();
    vec![
        case("no prior", Prior::Noninformative, data(), Box::new(|_| 0.0)),
        case("Dirichlet T = 1", dp(a, Truncation::Dirichlet { t: 1 }), data(), Box::new(dirichlet(1.0))),
        case("Dirichlet T = 4", dp(a, Truncation::Dirichlet { t: 4 }), data(), Box::new(dirichlet(4.0))),
        case("sticks T = 1", dp(a, Truncation::StickBreaking { t: 1 }), data(), Box::new(sticks(1))),
        case("sticks T = 3", dp(a, Truncation::StickBreaking { t: 3 }), data(), Box::new(sticks(3))),
        case(
            "adaptive",
            dp(a, Truncation::Adaptive { epsilon: EPSILON }),
            data(),
            Box::new(adaptive_squares),
        ),
        case("exact history", exact(Empirical::new(history())), data(), Box::new(atoms(vec![0.25; 4]))),
        case(
            "exact response",
            exact(BernoulliResponse::new(vec![0.3; 5], std::sync::Arc::new(labelled()))),
            labelled(),
            Box::new(atoms(response)),
        ),
    ]
}

/// Where V > ε the last atom takes ε U^(1/α) that would have been split, where V ≤ ε it takes all of V; each square
/// s² of a mass on one atom exceeds that of a split mass by s² α/(1 + α).
fn adaptive_squares(square: f64) -> f64 {
    let n = FIVE.len() as f64;
    let above = Beta::new(ALPHA, n).unwrap().sf(EPSILON);
    let below = square * Beta::new(ALPHA + 2.0, n).unwrap().cdf(EPSILON);
    let lumped = EPSILON * EPSILON * ALPHA / (ALPHA + 2.0) * above + below;
    square / (1.0 + ALPHA) + lumped * ALPHA / (1.0 + ALPHA)
}

fn draw(prior: &Prior, data: &Dataset, seed: u64, draw: u64) -> Weights {
    let f = prior.posterior_draw(data, Seed(seed), draw);
    let (w, v) = f.weights();
    Weights { w: w.to_vec(), v: v.to_vec(), pseudo: f.pseudo_samples().clone() }
}

fn draws(prior: &Prior, data: &Dataset, seed: u64) -> Vec<Weights> {
    (0..DRAWS).map(|b| draw(prior, data, seed, b)).collect()
}

fn column(draws: &[Weights], f: impl Fn(&Weights) -> f64) -> Vec<f64> {
    draws.iter().map(f).collect()
}

/// Mean, variance and fourth central moment of Beta(a, b).
fn beta_moments(a: f64, b: f64) -> Moments {
    let s = a + b;
    let m2 = a * b / (s * s * (s + 1.0));
    let excess = 6.0 * ((a - b) * (a - b) * (s + 1.0) - a * b * (s + 2.0)) / (a * b * (s + 2.0) * (s + 3.0));
    Moments { mean: a / s, m2, m3: f64::NAN, m4: (3.0 + excess) * m2 * m2 }
}

fn assert_beta(what: &str, values: &[f64], a: f64, b: f64) {
    let exact = beta_moments(a, b);
    assert_mean(&format!("{what}, mean"), values, exact.mean, exact.m2);
    assert_var(&format!("{what}, variance"), values, exact);
    let beta = Beta::new(a, b).unwrap();
    assert_distribution(what, values, |x| beta.cdf(x));
}

#[test]
fn a_data_weight_is_beta_with_one_part_of_the_mass() {
    for case in cases() {
        let mass = 5.0 + case.prior.alpha();
        for seed in SEEDS {
            let draws = draws(&case.prior, &case.data, seed);
            for i in [0, 2, 4] {
                let what = format!("{}, seed {seed}, weight {i}", case.name);
                assert_beta(&what, &column(&draws, |f| f.w[i]), 1.0, mass - 1.0);
            }
        }
    }
}

#[test]
fn weights_covary_as_in_a_dirichlet() {
    for case in cases() {
        let mass = 5.0 + case.prior.alpha();
        let exact = |a: f64, b: f64| -a * b / (mass * mass * (mass + 1.0));
        for seed in SEEDS {
            let draws = draws(&case.prior, &case.data, seed);
            let what = format!("{}, seed {seed}", case.name);
            let product = |f: &Weights| (f.w[0] - 1.0 / mass) * (f.w[4] - 1.0 / mass);
            assert_average(&format!("{what}, two rows"), &column(&draws, product), exact(1.0, 1.0));
            if ALPHA == case.prior.alpha() {
                let with_prior = |f: &Weights| (f.w[1] - 1.0 / mass) * (f.prior_mass() - ALPHA / mass);
                assert_average(
                    &format!("{what}, row and prior"),
                    &column(&draws, with_prior),
                    exact(1.0, ALPHA),
                );
            }
            if case.name == "Dirichlet T = 4" {
                let share = ALPHA / 4.0;
                assert!(draws.iter().all(|f| f.v.len() == 4));
                let two = |f: &Weights| (f.v[0] - share / mass) * (f.v[3] - share / mass);
                assert_average(
                    &format!("{what}, two pseudo-samples"),
                    &column(&draws, two),
                    exact(share, share),
                );
            }
        }
    }
}

#[test]
fn the_prior_mass_is_beta_alpha_n_for_every_truncation() {
    for case in cases().iter().filter(|c| c.prior.alpha() > 0.0) {
        for seed in SEEDS {
            let mass = column(&draws(&case.prior, &case.data, seed), Weights::prior_mass);
            assert_beta(&format!("{}, seed {seed}", case.name), &mass, ALPHA, 5.0);
        }
    }
}

#[test]
fn squared_weights_sum_to_what_each_truncation_promises() {
    for case in cases() {
        let alpha = case.prior.alpha();
        let mass = 5.0 + alpha;
        let scale = mass * (mass + 1.0);
        let expected = 10.0 / scale + (case.prior_squares)(alpha * (alpha + 1.0) / scale);
        for seed in SEEDS {
            let squares = column(&draws(&case.prior, &case.data, seed), Weights::squares);
            assert_average(&format!("{}, seed {seed}", case.name), &squares, expected);
        }
    }
}

/// What α is chosen from: E Σ w² without data, where a mean has that share of the variance of F_π.
#[test]
fn the_prior_variance_of_a_mean_is_what_the_truncation_says() {
    let nothing = Dataset::from_values(Vec::new());
    for truncation in [
        Truncation::Dirichlet { t: 4 },
        Truncation::StickBreaking { t: 2 },
        Truncation::StickBreaking { t: 4 },
        Truncation::Adaptive { epsilon: EPSILON },
        Truncation::Adaptive { epsilon: 0.7 },
    ] {
        for alpha in [0.3, ALPHA, 20.0] {
            let squares = column(&draws(&dp(alpha, truncation), &nothing, 1), Weights::squares);
            assert_average(&format!("{truncation:?}, {alpha}"), &squares, truncation.variance_of_mean(alpha));
        }
    }
    // All atoms of four historical rows, several to a draw: by the mean itself.
    let moments = Moments::of_values(history().x.whole().as_slice().unwrap());
    let square = |w: &Weights| {
        let mean: f64 = w.v.iter().zip(w.pseudo.x.column(0)).map(|(v, y)| v * y).sum();
        (mean - moments.mean).powi(2)
    };
    let squares = column(&draws(&exact(Empirical::new(history())), &nothing, 1), square);
    assert_average("exact", &squares, moments.m2 * Truncation::Exact.variance_of_mean(ALPHA));
}

#[test]
fn shares_within_a_subset_ignore_its_total() {
    for case in cases() {
        let mass = 5.0 + case.prior.alpha();
        for seed in SEEDS {
            let what = format!("{}, seed {seed}", case.name);
            let draws = draws(&case.prior, &case.data, seed);
            let total = column(&draws, |f| f.w[0] + f.w[1]);
            let share = column(&draws, |f| f.w[0] / (f.w[0] + f.w[1]));
            assert_beta(&format!("{what}, two rows"), &total, 2.0, mass - 2.0);
            assert_beta(&format!("{what}, share"), &share, 1.0, 1.0);
            assert_uncorrelated(&what, &total, &share);
        }
    }
}

#[test]
fn shares_of_pseudo_samples_are_dirichlet_or_sticks() {
    let fourth = ALPHA / 4.0;
    // The first share, and the second of what is left, for the schemes that have two.
    for (name, first, second) in [
        ("Dirichlet T = 4", (fourth, 3.0 * fourth), (fourth, 2.0 * fourth)),
        ("sticks T = 3", (1.0, ALPHA), (1.0, ALPHA)),
    ] {
        let case = cases().into_iter().find(|c| c.name == name).unwrap();
        for seed in SEEDS {
            let draws = draws(&case.prior, &case.data, seed);
            let mass = column(&draws, Weights::prior_mass);
            let one = column(&draws, |f| f.v[0] / f.prior_mass());
            let two = column(&draws, |f| f.v[1] / f.v[1..].iter().sum::<f64>());
            assert_beta(&format!("{name}, seed {seed}, first"), &one, first.0, first.1);
            assert_beta(&format!("{name}, seed {seed}, second"), &two, second.0, second.1);
            assert_uncorrelated(&format!("{name}, seed {seed}, mass and share"), &mass, &one);
            assert_uncorrelated(&format!("{name}, seed {seed}, both shares"), &one, &two);
        }
    }
}

#[test]
fn exact_weights_are_beta_at_every_atom_of_the_base_measure() {
    let mass = 5.0 + ALPHA;
    let (of_history, of_response) = (
        exact(Empirical::new(history())),
        exact(BernoulliResponse::new(vec![0.3; 5], std::sync::Arc::new(labelled()))),
    );
    for seed in SEEDS {
        let history_draws = draws(&of_history, &data(), seed);
        for x in [3.0, -2.0, 7.0] {
            let a = ALPHA / 4.0;
            let at = column(&history_draws, |f| f.mass_at(x, None));
            assert_beta(&format!("history {x}, seed {seed}"), &at, a, mass - a);
        }
        let response_draws = draws(&of_response, &labelled(), seed);
        for (x, y, p) in [(0.0, 1.0, 0.3), (5.0, 0.0, 0.7), (-1.3, 0.0, 0.7)] {
            let a = ALPHA * p / 5.0;
            let at = column(&response_draws, |f| f.mass_at(x, Some(y)));
            assert_beta(&format!("row {x} with response {y}, seed {seed}"), &at, a, mass - a);
        }
        let ones = |f: &Weights| FIVE.iter().map(|&x| f.mass_at(x, Some(1.0))).sum::<f64>();
        let a = ALPHA * 0.3;
        assert_beta(&format!("all responses 1, seed {seed}"), &column(&response_draws, ones), a, mass - a);
    }
}

#[test]
fn pseudo_responses_are_bernoulli_and_independent_of_the_row() {
    let base = BernoulliResponse::new(vec![0.3; 5], std::sync::Arc::new(labelled()));
    for seed in SEEDS {
        let sample =
            base.sample(50_000, &mut Seed(seed).stream(npl::rng::Purpose::PseudoSamples, 0, 0)).to_rows();
        let y = sample.y.as_ref().unwrap();
        let mut counts = [0; 10];
        for i in 0..sample.n() {
            let row = FIVE.iter().position(|&x| x == sample.x[[i, 0]]).unwrap();
            counts[2 * row + y[i] as usize] += 1;
        }
        let p: Vec<f64> = (0..10).map(|i| if i % 2 == 1 { 0.3 / 5.0 } else { 0.7 / 5.0 }).collect();
        assert_counts(&format!("seed {seed}"), &counts, &p);
    }
}

/// Rounding of the sum: 4 ε per weight.
#[test]
fn weights_are_finite_and_sum_to_one_at_every_scale() {
    let base = || Box::new(Normal { mean: vec![0.0], sd: vec![1.0] });
    for n in [0, 1, 5] {
        let data = data().head(n);
        for share in [1e-300, 1e-100, 1e-10, 1e-3, 0.5, 1.0, 30.0, 1e6] {
            for t in [1usize, 50] {
                let schemes = [Truncation::Dirichlet { t }, Truncation::StickBreaking { t }];
                // Adaptive sticks number α ln(1/ε): millions where α is.
                let adaptive = (share <= 30.0).then_some(Truncation::Adaptive { epsilon: 1e-6 });
                for truncation in schemes.into_iter().chain(adaptive) {
                    let prior = Prior::Dp { alpha: share * t as f64, base: base(), truncation };
                    for b in 0..20 {
                        let f = draw(&prior, &data, 1, b);
                        let all: Vec<f64> = f.w.iter().chain(&f.v).copied().collect();
                        let what = format!("n {n}, α/T {share}, {truncation:?}");
                        assert!(all.iter().all(|w| w.is_finite() && *w >= 0.0), "{what}");
                        let sum: f64 = all.iter().sum();
                        assert!((sum - 1.0).abs() <= 4.0 * all.len() as f64 * f64::EPSILON, "{what}: {sum}");
                        assert_eq!(f.v.len(), f.pseudo.n(), "{what}");
                    }
                }
            }
        }
    }
}

#[test]
fn draws_and_seeds_share_nothing() {
    let seeds = SEEDS.map(|seed| draws(&dp(ALPHA, Truncation::Dirichlet { t: 4 }), &data(), seed));
    let mut seen = std::collections::HashSet::new();
    for f in seeds.iter().flatten() {
        let atoms = f.pseudo.x.column(0);
        assert!(
            f.w.iter().chain(&f.v).copied().chain(atoms).all(|w| seen.insert(w.to_bits())),
            "a number came twice"
        );
    }
    type View = fn(&Weights) -> f64;
    let views: [(&str, View); 3] = [
        ("row weight", |f| f.w[0]),
        ("prior weight", |f| f.v[0] / f.prior_mass()),
        ("pseudo-sample", |f| f.pseudo.x[[0, 0]]),
    ];
    for (name, view) in views {
        for (seed, draws) in SEEDS.iter().zip(&seeds) {
            let values = column(draws, view);
            for lag in [1, 2, 16] {
                let what = format!("{name} of draws {lag} apart, seed {seed}");
                assert_uncorrelated(&what, &values[lag..], &values[..values.len() - lag]);
            }
            for (other, look) in views.iter().filter(|(other, _)| *other != name) {
                assert_uncorrelated(
                    &format!("{name} and {other}, seed {seed}"),
                    &values,
                    &column(draws, look),
                );
            }
        }
        let what = format!("{name} of seeds 1 and 2");
        assert_uncorrelated(&what, &column(&seeds[0], view), &column(&seeds[1], view));
    }
}

#[test]
fn pseudo_samples_of_one_draw_are_drawn_afresh_and_apart() {
    for seed in SEEDS {
        let draws = draws(&dp(ALPHA, Truncation::Dirichlet { t: 4 }), &data(), seed);
        let (first, last) = (column(&draws, |f| f.pseudo.x[[0, 0]]), column(&draws, |f| f.pseudo.x[[3, 0]]));
        let normal = statrs::distribution::Normal::new(0.5, 2.0).unwrap();
        assert_distribution(&format!("first, seed {seed}"), &first, |x| normal.cdf(x));
        assert_distribution(&format!("last, seed {seed}"), &last, |x| normal.cdf(x));
        assert_uncorrelated(&format!("first and last, seed {seed}"), &first, &last);
    }
}

/// Sticks until less than ε is left number 1 + Poisson(α ln(1/ε)), and one more atom takes ε U^(1/α).
#[test]
fn adaptive_sticks_are_poisson_many_and_leave_less_than_epsilon() {
    let (alpha, epsilon) = (2.0, 0.01f64);
    let rate = -alpha * epsilon.ln();
    let poisson = Poisson::new(rate).unwrap();
    for seed in SEEDS {
        let draws = draws(&dp(alpha, Truncation::Adaptive { epsilon }), &data().head(0), seed);
        let extra = column(&draws, |f| f.v.len() as f64 - 2.0);
        assert_mean(&format!("sticks, seed {seed}"), &extra, rate, rate);
        let exact = Moments { mean: rate, m2: rate, m3: rate, m4: rate + 3.0 * rate * rate };
        assert_var(&format!("variance of sticks, seed {seed}"), &extra, exact);
        let mut counts = vec![0; 41];
        extra.iter().for_each(|&k| counts[(k as usize).min(40)] += 1);
        let mut p: Vec<f64> = (0..40).map(|k| poisson.pmf(k)).collect();
        p.push(1.0 - p.iter().sum::<f64>());
        assert_counts(&format!("counts of sticks, seed {seed}"), &counts, &p);
        let left = column(&draws, |f| *f.v.last().unwrap());
        assert!(left.iter().all(|&l| l < epsilon));
        assert_distribution(&format!("mass left, seed {seed}"), &left, |x| {
            (x / epsilon).powf(alpha).min(1.0)
        });
    }
}

#[test]
fn a_vanishing_alpha_is_the_bayesian_bootstrap_draw_by_draw() {
    let data = data();
    let truncations = [
        Truncation::Dirichlet { t: 50 },
        Truncation::StickBreaking { t: 50 },
        Truncation::Adaptive { epsilon: 1e-6 },
    ];
    for truncation in truncations {
        for b in 0..500 {
            let without = draw(&Prior::Noninformative, &data, 1, b);
            let nearly = draw(&dp(1e-12, truncation), &data, 1, b);
            assert!(without.w.iter().zip(&nearly.w).all(|(a, b)| (a - b).abs() <= 1e-9), "{truncation:?}");
            assert!(nearly.prior_mass() <= 1e-9, "{truncation:?}");
        }
    }
}

#[test]
fn alpha_zero_ignores_the_rest_of_the_prior() {
    let file = file_of(&FIVE);
    let prior = "[model.mean]\n[prior]\nalpha = 0.0\nT = 7\nbase = { normal = { mean = 0.0, sd = 1.0 } }";
    assert_eq!(run(&experiment(1, 100, &file, prior)), run(&experiment(1, 100, &file, "[model.mean]")));
}

// -------------------------------------------------------------------------------------------------------- chunks of rows

/// Rows at both ends of the first two chunks, and in the third.
const APART: [usize; 5] = [0, 1023, 1024, 2047, 2048];
const MANY: usize = 2500;

fn many() -> Dataset {
    Dataset::from_values((0..MANY).map(|i| i as f64).collect())
}

#[test]
fn weights_in_different_chunks_are_dirichlet_together() {
    let n = MANY as f64;
    for seed in SEEDS {
        let draws: Vec<Vec<f64>> =
            (0..4000).map(|b| draw(&Prior::Noninformative, &many(), seed, b).w).collect();
        let of = |i: usize| -> Vec<f64> { draws.iter().map(|w| w[i]).collect() };
        for i in APART {
            assert_beta(&format!("row {i}, seed {seed}"), &of(i), 1.0, n - 1.0);
        }
        for (k, &i) in APART.iter().enumerate() {
            for &j in &APART[..k] {
                let product = |w: &Vec<f64>| (w[i] - 1.0 / n) * (w[j] - 1.0 / n);
                let products: Vec<f64> = draws.iter().map(product).collect();
                let what = format!("rows {i} and {j}, seed {seed}");
                assert_average(&what, &products, -1.0 / (n * n * (n + 1.0)));
            }
        }
        // A chunk has its share, and says nothing about the shares within another.
        let share: Vec<f64> = draws.iter().map(|w| w[..1024].iter().sum()).collect();
        assert_beta(&format!("first chunk, seed {seed}"), &share, 1024.0, n - 1024.0);
        let within: Vec<f64> = draws.iter().map(|w| w[1024] / (w[1024] + w[1025])).collect();
        assert_uncorrelated(&format!("share of a chunk, seed {seed}"), &share, &within);
    }
}

/// The weight of a penalty that is drawn with F is Exp(1), as that of a row is, and has nothing to do with the rows; what is no draw of
/// F has the penalty as it is.
#[test]
fn the_penalty_of_a_draw_weighs_an_exponential() {
    let data = data();
    for prior in [Prior::Noninformative, dp(ALPHA, Truncation::Dirichlet { t: 7 })] {
        for seed in SEEDS {
            let draws: Vec<_> = (0..4000).map(|b| prior.posterior_draw(&data, Seed(seed), b)).collect();
            let weights: Vec<f64> = draws.iter().map(|f| f.penalty_weight()).collect();
            assert_distribution("penalty", &weights, |w| -libm::expm1(-w.max(0.0)));
            let first: Vec<f64> = draws.iter().map(|f| f.weights().0[0]).collect();
            assert_uncorrelated("penalty and a row", &weights, &first);
            let of_others = draws
                .iter()
                .map(|f| [f.of_batch(&data).penalty_weight(), f.on(&data, vec![0.2; 5]).penalty_weight()]);
            assert!(of_others.zip(&weights).all(|(others, own)| others == [*own; 2]), "the same draw");
        }
    }
    assert_eq!(Measure::empirical(&data).penalty_weight(), 1.0);
}

/// Against the first row, to rounding: Gamma variates are logarithms of up to 40 first.
#[test]
fn the_mass_of_a_row_does_not_depend_on_the_rows_that_follow() {
    let counts: Vec<f64> = (0..MANY).map(|i| 0.5 + (i % 4) as f64).collect();
    let pairs = Groups::new((0..MANY as u64).map(|i| i / 2));
    let designs = [
        Design::default(),
        Design::new(Some(counts.clone()), None, None),
        Design::new(None, Some(pairs.clone()), None),
        Design::new(Some(counts), Some(pairs), None),
    ];
    for (d, design) in designs.into_iter().enumerate() {
        let all = many().with_design(design);
        for n in [2, 1024, 1025, 2100] {
            for b in 0..5 {
                let [long, short] =
                    [&all, &all.head(n)].map(|data| draw(&Prior::Noninformative, data, 1, b).w);
                let off = |i: usize| (long[i] / long[0] / (short[i] / short[0]) - 1.0).abs();
                assert!((0..n).all(|i| off(i) < 1e-13), "design {d}, n {n}, draw {b}");
            }
        }
    }
}

//! What must not matter: the order of rows, units, threads, blocks, how many draws are asked for, and broken searches.

use crate::support::*;

use npl::bootstrap::{Draw, Scheme};
use npl::config::OpenUnit;
use npl::data::Dataset;
use npl::model::{Block, Model, Support};
use npl::optim::{Minimum, Status};
use npl::process::{Measure, Prior, Truncation, base};
use npl::restarts::StopRule;
use npl::rng::{Purpose, Seed};

const GMM: &str = "[gmm]\nK = 2\nvariance_floor = 1e-10";
const MODELS: [&str; 5] = ["[mean]", "[median]", "[quantile]\nq = 0.3", "[normal]\nsigma2 = 2.0", GMM];
const START: [f64; 6] = [0.5, 0.5, -1.5, 3.5, 1.0, 2.0];

/// Two clusters of 16 and 24 rows, in mixed order.
fn data() -> Dataset {
    let value = |i: i32| if i % 5 < 2 { -3.0 } else { 3.0 } + f64::from((i * 37) % 41) / 20.0;
    Dataset::from_values((0..40).map(value).collect())
}

fn build(table: &str, data: &Dataset) -> Box<dyn Model> {
    model_with(table, data, &optimiser("tolerance = 1e-9"))
}

fn weights(draw: u64) -> Vec<f64> {
    Prior::Noninformative.posterior_draw(&data(), Seed(1), draw).weights().0.to_vec()
}

/// θ for the rows `values` with weights `w`.
fn fit(table: &str, values: &[f64], w: &[f64]) -> Minimum {
    let rows = Dataset::from_values(values.to_vec());
    let minimum = build(table, &rows).minimise(&Measure::weighted(&rows, w.to_vec()), &START);
    assert_eq!(minimum.status, Status::Ok, "{table}");
    minimum
}

fn assert_same(what: &str, a: &Minimum, b: &Minimum, tolerance: f64) {
    assert_close(what, a.value, b.value, tolerance);
    a.theta.iter().zip(&b.theta).for_each(|(a, b)| assert_close(what, *a, *b, tolerance));
}

#[test]
fn rows_may_be_permuted_with_their_weights() {
    let y = data().x.column(0).collect::<Vec<f64>>();
    let order: Vec<usize> = (0..40).map(|i| (i * 23 + 7) % 40).collect();
    for table in MODELS {
        for draw in 0..20 {
            let w = weights(draw);
            let turned = |v: &[f64]| order.iter().map(|&i| v[i]).collect::<Vec<_>>();
            assert_same(table, &fit(table, &turned(&y), &turned(&w)), &fit(table, &y, &w), 1e-9);
        }
    }
}

#[test]
fn a_repeated_row_is_one_row_with_the_sum_of_weights() {
    let y = data().x.column(0).collect::<Vec<f64>>();
    for table in MODELS {
        for draw in 0..20 {
            let w = weights(draw);
            let twice: Vec<f64> = y.iter().copied().chain([y[3]]).collect();
            let mut split = w.clone();
            split[3] *= 0.25;
            split.push(0.75 * w[3]);
            assert_same(table, &fit(table, &twice, &split), &fit(table, &y, &w), 1e-9);
        }
    }
}

#[test]
fn a_row_without_weight_is_no_row() {
    let y = data().x.column(0).collect::<Vec<f64>>();
    for table in MODELS {
        for draw in 0..20 {
            let mut w = weights(draw);
            w[5] = 0.0;
            let total: f64 = w.iter().sum();
            w.iter_mut().for_each(|w| *w /= total);
            let without = |v: &[f64]| [&v[..5], &v[6..]].concat();
            assert_same(table, &fit(table, &y, &w), &fit(table, &without(&y), &without(&w)), 1e-9);
        }
    }
}

/// Duplicated rows share a Dirichlet weight with parameter 2: the law is that of the duplicated data.
#[test]
fn duplicated_data_have_the_law_of_a_doubled_dirichlet() {
    let rows = [0.0, 0.0, 1.0, 1.0, 4.0, 4.0];
    let exact = Moments::of_values(&rows).of_dp_mean(6.0);
    let file = file_of(&rows);
    for seed in SEEDS {
        let theta = entry(&run(&experiment(seed, 50_000, &file, "[model.mean]")), 0);
        assert_mean(&format!("mean, seed {seed}"), &theta, exact.mean, exact.m2);
        assert_var(&format!("variance, seed {seed}"), &theta, exact);
        assert_moment(&format!("third moment, seed {seed}"), &theta, exact.mean, 3, exact.m3);
    }
}

/// The mean is ∫ y dF, of a probability; quantiles and EM do not see the scale of the weights.
#[test]
fn scaled_weights_have_the_same_minimum() {
    let rows = data();
    for (table, rule) in
        [("[median]", ""), ("[quantile]\nq = 0.3", ""), (GMM, "change = 1e-300\nmax_iterations = 50")]
    {
        let model = model_with(table, &rows, &optimiser(rule));
        for draw in 0..20 {
            let w = weights(draw);
            let scaled = |c: f64| Measure::weighted(&rows, w.iter().map(|w| c * w).collect());
            let (a, b) = (model.minimise(&scaled(1.0), &START), model.minimise(&scaled(8.0), &START));
            a.theta.iter().zip(&b.theta).for_each(|(a, b)| assert_close(table, *a, *b, 1e-9));
        }
    }
}

#[test]
fn units_and_origin_of_the_data_carry_over() {
    let (a, b) = (3.5, -20.0);
    let y = data().x.column(0).collect::<Vec<f64>>();
    let moved: Vec<f64> = y.iter().map(|y| a * y + b).collect();
    for table in MODELS {
        for draw in 0..20 {
            let w = weights(draw);
            let plain = fit(table, &y, &w).theta;
            let rows = Dataset::from_values(moved.clone());
            let start = [START[0], START[1], a * START[2] + b, a * START[3] + b, a * a, 2.0 * a * a];
            let other = build(table, &rows).minimise(&Measure::weighted(&rows, w), &start).theta;
            let expected: Vec<f64> = match plain[..] {
                [theta] => vec![a * theta + b],
                [p, q, m, n, s, t] => vec![p, q, a * m + b, a * n + b, a * a * s, a * a * t],
                _ => unreachable!("one entry, or six of the mixture"),
            };
            other.iter().zip(&expected).for_each(|(x, e)| assert_close(table, *x, *e, 1e-8));
        }
    }
}

fn dp() -> Prior {
    let base = Box::new(base::Normal { mean: vec![1.0], sd: vec![2.0] });
    Prior::Dp { alpha: 3.0, base, truncation: Truncation::Adaptive { epsilon: 1e-4 } }
}

/// π₀ of a model, or nothing where the minimum is known in closed form.
fn scheme(model: &dyn Model, rows: &Dataset, restarts: usize) -> Scheme {
    if model.blocks().is_empty() {
        return Scheme::FixedInit(Vec::new());
    }
    Scheme::RandomRestart { restarts, init: init(model, rows, "mu = \"data\""), stop: None }
}

#[test]
fn threads_and_blocks_change_no_bit() {
    let rows = data();
    for prior in [Prior::Noninformative, dp()] {
        for table in MODELS {
            let model = build(table, &rows);
            let scheme = scheme(model.as_ref(), &rows, 3);
            let run =
                |range, threads| bits(&bootstrap(model.as_ref(), &prior, &rows, &scheme, 1, range, threads));
            let whole = run(0..100, 1);
            assert_eq!(whole.len(), 100);
            assert_eq!(whole, run(0..100, 2), "{table}");
            assert_eq!(whole, run(0..100, 8), "{table}");
            // Other ranges cut other blocks.
            let parts = [0..1, 1..8, 8..41, 41..100].map(|range| run(range, 2)).concat();
            assert_eq!(whole, parts, "{table}");
            assert_eq!(whole[..40], run(0..40, 2), "{table}: fewer draws are the first of more");
        }
    }
}

#[test]
fn the_reported_objective_is_the_loss_at_theta() {
    let rows = data();
    for prior in [Prior::Noninformative, dp()] {
        for table in MODELS {
            let model = model(table, &rows);
            let scheme = scheme(model.as_ref(), &rows, 2);
            for draw in bootstrap(model.as_ref(), &prior, &rows, &scheme, 1, 0..100, 2) {
                let f = prior.posterior_draw(&rows, Seed(1), draw.index);
                assert_close(table, draw.minimum.value, model.loss(&draw.minimum.theta, &f), 1e-12);
            }
        }
    }
}

/// A default search ends within a thousandth of a posterior standard deviation of its minimum, and slopes by central
/// differences say so too, to ten times that.
#[test]
fn no_entry_of_a_converged_mixture_wants_to_move() {
    let rows = data();
    let model = model(GMM, &rows);
    for draw in 0..100 {
        let f = Prior::Noninformative.posterior_draw(&rows, Seed(1), draw);
        let minimum = model.minimise(&f, &START);
        if minimum.status != Status::Ok {
            continue;
        }
        for j in 2..6 {
            let h = 1e-3 * minimum.theta[if j < 4 { j + 2 } else { j }].sqrt();
            let at = |by: f64| {
                let mut theta = minimum.theta.clone();
                theta[j] += by;
                model.loss(&theta, &f)
            };
            let (up, down, here) = (at(h), at(-h), minimum.value);
            let (slope, curvature) = ((up - down) / (2.0 * h), (up + down - 2.0 * here) / (h * h));
            assert!(curvature > 0.0, "draw {draw}, entry {j}");
            // |g|/√H ≤ √(gᵀH⁻¹g), which the search has brought below tolerance/√n; differences err by h² l‴/6.
            let distance = (slope * slope / curvature * rows.n() as f64).sqrt();
            assert!(distance <= 0.01, "draw {draw}, entry {j}: {distance} posterior standard deviations");
        }
    }
}

#[test]
fn a_search_from_nowhere_fails_and_says_so() {
    let rows = data();
    let model = model(GMM, &rows);
    let f = Measure::empirical(&rows);
    for (j, bad) in [(0, f64::NAN), (2, f64::NAN), (3, f64::INFINITY), (4, f64::NAN), (5, f64::INFINITY)] {
        let mut start = START.to_vec();
        start[j] = bad;
        assert_eq!(model.minimise(&f, &start).status, Status::Failed, "entry {j} = {bad}");
    }
    let minimum = model.minimise(&f, &[f64::NAN; 6]);
    assert_eq!(minimum.status, Status::Failed);
    assert!(minimum.value.is_nan());
    let broken = Dataset::from_values(vec![1.0, f64::INFINITY]);
    for table in ["[mean]", "[normal]\nsigma2 = 1.0"] {
        let minimum = self::model(table, &broken).minimise(&Measure::empirical(&broken), &[]);
        assert_eq!(minimum.status, Status::Failed, "{table}");
    }
}

/// A search that ends where it starts, to one digit: value and θ are the start. Below `fails` it breaks down, above
/// `lies` it calls NaN a success.
struct Lottery {
    fails: f64,
    lies: f64,
}

impl Model for Lottery {
    fn names(&self) -> Vec<String> {
        vec!["theta".into()]
    }

    fn blocks(&self) -> Vec<Block> {
        vec![Block { name: "theta".into(), range: 0..1, support: Support::Real }]
    }

    fn loss(&self, theta: &[f64], _: &Measure) -> f64 {
        theta[0]
    }

    fn minimise(&self, _: &Measure, start: &[f64]) -> Minimum {
        let value = (10.0 * start[0]).floor() / 10.0;
        let (value, status) = match start[0] {
            s if s < self.fails => (-1.0, Status::Failed),
            s if s > self.lies => (f64::NAN, Status::Ok),
            _ => (value, Status::Ok),
        };
        Minimum { theta: vec![value], value, iterations: 1, gradient: 0.0, status }
    }
}

fn lottery(
    model: &Lottery,
    restarts: usize,
    stop: Option<StopRule>,
    draws: u64,
    threads: usize,
) -> Vec<Draw> {
    let rows = data();
    let init = init(model, &rows, "theta = { uniform = [0.0, 1.0] }");
    let scheme = Scheme::RandomRestart { restarts, init, stop };
    bootstrap(model, &Prior::Noninformative, &rows, &scheme, 1, 0..draws, threads)
}

/// Where restart `r` of `draw` starts.
fn ticket(draw: u64, r: usize) -> f64 {
    let model = Lottery { fails: 0.0, lies: 1.0 };
    init(&model, &data(), "theta = { uniform = [0.0, 1.0] }").draw(&mut Seed(1).stream(
        Purpose::Init,
        draw,
        r as u64,
    ))[0]
}

#[test]
fn a_broken_restart_never_wins() {
    let model = Lottery { fails: 0.4, lies: 0.8 };
    let mut broken_first = 0;
    for draw in lottery(&model, 6, None, 300, 2) {
        let tickets: Vec<f64> = (0..draw.values.len()).map(|r| ticket(draw.index, r)).collect();
        let good = tickets.iter().filter(|t| (0.4..=0.8).contains(*t));
        let best = good.map(|t| (10.0 * t).floor() / 10.0).fold(f64::INFINITY, f64::min);
        if best == f64::INFINITY {
            assert!(draw.minimum.status == Status::Failed || draw.minimum.value.is_nan());
            continue;
        }
        assert_eq!(draw.minimum.value, best, "draw {}: {tickets:?}", draw.index);
        assert_eq!(draw.minimum.status, Status::Ok);
        broken_first += usize::from(draw.restart > 1 && draw.values[0].is_nan());
    }
    assert!(broken_first > 50);
}

/// Three quarters of the restarts fail, so a third of all draws lose all four of theirs.
#[test]
fn a_draw_whose_restarts_all_failed_gets_more_on_any_number_of_threads() {
    let model = Lottery { fails: 0.75, lies: 1.0 };
    let rule = StopRule::GoodTuring(OpenUnit::new(0.3).unwrap());
    for stop in [None, Some(rule)] {
        // So few draws that restarts are made several at once.
        let alone = lottery(&model, 4, stop, 11, 1);
        assert!(alone.iter().any(|d| d.values.len() > 4), "some draw was rescued");
        for draw in &alone {
            let failed = |r: usize| ticket(draw.index, r) < 0.75;
            assert!(draw.values.iter().enumerate().all(|(r, v)| v.is_nan() == failed(r)));
            if draw.values.len() > 4 {
                assert!((0..draw.values.len() - 1).all(failed), "rescues end with the first success");
            }
        }
        for threads in [2, 3, 8] {
            assert_eq!(
                bits(&alone),
                bits(&lottery(&model, 4, stop, 11, threads)),
                "{threads} threads, {stop:?}"
            );
        }
    }
}

/// Values have ten possible outcomes; the rule stops at the first restart, from the second, at which the share of
/// outcomes seen once is at most a half.
#[test]
fn good_turing_stops_when_few_minima_were_found_once() {
    let rule = StopRule::GoodTuring(OpenUnit::new(0.5).unwrap());
    let mut lengths = std::collections::BTreeSet::new();
    for draw in lottery(&Lottery { fails: 0.0, lies: 1.0 }, 30, Some(rule), 300, 2) {
        let outcome = |r: usize| (10.0 * ticket(draw.index, r)).floor() as usize;
        let singles = |made: usize| {
            let mut seen = [0; 10];
            (0..made).for_each(|r| seen[outcome(r)] += 1);
            seen.iter().filter(|&&s| s == 1).count()
        };
        let stop = (2..=30).find(|&made| 2 * singles(made) <= made).unwrap_or(30);
        assert_eq!(draw.values.len(), stop, "draw {}", draw.index);
        lengths.insert(stop);
    }
    assert!(lengths.len() > 3);
}

//! Densities of draws: mass, bounds, weights, spikes, and how near they come to the truth.

use std::f64::consts::PI;

use npl::plot::kde::{Bounds, Density};
use npl::plot::kde2::Surface;
use npl::rng::{Purpose, Seed};
use rand_distr::{Beta, Distribution, Exp, Normal, Uniform};

fn draws(n: usize, seed: u64, distribution: impl Distribution<f64>) -> Vec<f64> {
    let mut rng = Seed(seed).stream(Purpose::Data, 0, 0);
    (0..n).map(|_| distribution.sample(&mut rng)).collect()
}

/// By the midpoint rule.
fn integral(low: f64, high: f64, f: impl Fn(f64) -> f64) -> f64 {
    let steps = 20_000;
    let width = (high - low) / f64::from(steps);
    (0..steps).map(|i| f(low + (f64::from(i) + 0.5) * width)).sum::<f64>() * width
}

#[test]
fn all_mass_is_within_the_bounds() {
    let unit = Bounds::UNIT;
    let cases: [(Vec<f64>, Bounds); 5] = [
        (draws(2000, 1, Beta::new(2.0, 5.0).unwrap()), unit),
        (draws(2000, 2, Beta::new(0.5, 0.5).unwrap()), unit),
        (draws(2000, 3, Uniform::new(0.0, 1.0).unwrap()), unit),
        (draws(2000, 4, Exp::new(1.0).unwrap()), Bounds::POSITIVE),
        (draws(30, 5, Exp::new(100.0).unwrap()), Bounds::POSITIVE),
    ];
    for (i, (values, bounds)) in cases.iter().enumerate() {
        let density = Density::of(values, None, *bounds).unwrap();
        let (low, high) = (density.low, density.high());
        assert!(low >= 0.0 && bounds.upper.is_none_or(|u| high <= u), "case {i}: {low} to {high}");
        let mass = integral(low, high, |x| density.at(x));
        assert!((mass - 1.0).abs() < 1e-3, "case {i}: {mass}");
        assert!(density.values.iter().all(|v| *v >= 0.0 && v.is_finite()), "case {i}");
        assert_eq!([density.at(-1e-9), density.beyond], [0.0, 0.0], "case {i}");
    }
}

/// `scipy.stats.gaussian_kde` as it is: a normal kernel, bandwidth by Scott's rule sd n^(−1/5).
fn scipy(values: &[f64]) -> impl Fn(f64) -> f64 {
    let h = npl::math::sd(values) * (values.len() as f64).powf(-0.2);
    move |x| {
        let sum: f64 = values.iter().map(|v| (-0.5 * ((x - v) / h).powi(2)).exp()).sum();
        sum / (values.len() as f64 * h * (2.0 * PI).sqrt())
    }
}

/// The mean of ∫|f̂ − f|^power over seeds: ours and scipy's.
fn errors(
    n: usize,
    power: i32,
    (low, high): (f64, f64),
    bounds: Bounds,
    sample: impl Fn(u64) -> Vec<f64>,
    truth: impl Fn(f64) -> f64,
) -> (f64, f64) {
    let seeds = 8;
    let (mut ours, mut theirs) = (0.0, 0.0);
    for seed in 0..seeds {
        let values = sample(seed);
        assert_eq!(values.len(), n);
        let (density, other) = (Density::of(&values, None, bounds).unwrap(), scipy(&values));
        let steps = 1500;
        let width = (high - low) / f64::from(steps);
        for x in (0..steps).map(|i| low + (f64::from(i) + 0.5) * width) {
            ours += (density.at(x) - truth(x)).abs().powi(power) * width;
            theirs += (other(x) - truth(x)).abs().powi(power) * width;
        }
    }
    (ours / seeds as f64, theirs / seeds as f64)
}

#[test]
fn densities_are_at_least_as_near_as_scipy_s() {
    let normal = |x: f64, m: f64, s: f64| (-0.5 * ((x - m) / s).powi(2)).exp() / (s * (2.0 * PI).sqrt());
    let inside = |x: f64| x > 0.0 && x < 1.0;
    let two = |seed: u64, n: usize| -> Vec<f64> {
        let z = draws(n, seed, Normal::new(0.0, 1.0).unwrap());
        let u = draws(n, seed + 1000, Uniform::new(0.0, 1.0).unwrap());
        z.iter().zip(u).map(|(z, u)| if u < 0.5 { *z } else { 5.0 + 0.3 * z }).collect()
    };
    for n in [200, 1000] {
        let beta = |seed| draws(n, seed, Beta::new(2.0, 5.0).unwrap());
        let density = |x: f64| if inside(x) { 30.0 * x * (1.0 - x).powi(4) } else { 0.0 };
        let skew = errors(n, 2, (-0.5, 1.5), Bounds::UNIT, beta, density);
        let exponential = |seed| draws(n, seed, Exp::new(1.0).unwrap());
        let density = |x: f64| if x < 0.0 { 0.0 } else { (-x).exp() };
        let decay = errors(n, 2, (-3.0, 15.0), Bounds::POSITIVE, exponential, density);
        let mixture = |x: f64| 0.5 * normal(x, 0.0, 1.0) + 0.5 * normal(x, 5.0, 0.3);
        let modes = errors(n, 2, (-8.0, 10.0), Bounds::NONE, |seed| two(seed, n), mixture);
        let arcsine = |seed| draws(n, seed, Beta::new(0.5, 0.5).unwrap());
        let density = |x: f64| if inside(x) { 1.0 / (PI * (x * (1.0 - x)).sqrt()) } else { 0.0 };
        let poles = errors(n, 1, (-0.5, 1.5), Bounds::UNIT, arcsine, density);
        for (name, (ours, theirs)) in [("beta", skew), ("exp", decay), ("mixture", modes), ("arcsine", poles)]
        {
            println!("{name}, {n} draws: {ours:.5}, scipy {theirs:.5}");
            assert!(ours <= theirs, "{name}, {n} draws: {ours} against {theirs}");
        }
    }
}

/// The estimator of Jones and Foster, draw by draw.
fn direct(values: &[f64], weights: &[f64], h: f64, bounds: Bounds, x: f64) -> f64 {
    let phi = |u: f64| if u.is_finite() { (-0.5 * u * u).exp() / (2.0 * PI).sqrt() } else { 0.0 };
    let cdf = |u: f64| 0.5 * libm::erfc(-u / 2f64.sqrt());
    let total: f64 = weights.iter().sum();
    let (mut plain, mut slope) = (0.0, 0.0);
    for (v, w) in values.iter().zip(weights) {
        let u = (v - x) / h;
        plain += w * phi(u) / (h * total);
        slope += w * u * phi(u) / (h * total);
    }
    let p = bounds.lower.map_or(f64::NEG_INFINITY, |l| (l - x) / h);
    let q = bounds.upper.map_or(f64::INFINITY, |u| (u - x) / h);
    let times = |u: f64| if u.is_finite() { u * phi(u) } else { 0.0 };
    let (a0, a1) = (cdf(q) - cdf(p), phi(p) - phi(q));
    let a2 = a0 + times(p) - times(q);
    let (cut, linear) = (plain / a0, (a2 * plain - a1 * slope) / (a0 * a2 - a1 * a1));
    cut * (linear / cut - 1.0).exp()
}

#[test]
fn the_grid_says_what_the_sum_over_draws_says() {
    let values = draws(400, 9, Beta::new(1.5, 3.0).unwrap());
    let uneven: Vec<f64> = (0..400).map(|i| 1.0 + f64::from(i % 7)).collect();
    for (bounds, weights) in [(Bounds::NONE, None), (Bounds::UNIT, None), (Bounds::UNIT, Some(&uneven[..]))] {
        let density = Density::of(&values, weights, bounds).unwrap();
        let each = weights.map_or(vec![1.0; 400], <[f64]>::to_vec);
        let at = |x: f64| direct(&values, &each, density.bandwidth, bounds, x);
        let (low, high) = (density.low, density.high());
        let steps = 800;
        let mass: f64 =
            (0..steps).map(|i| at(low + (high - low) * (f64::from(i) + 0.5) / f64::from(steps))).sum::<f64>()
                * (high - low)
                / f64::from(steps);
        for x in [0.001, 0.02, 0.1, 0.3, 0.5, 0.8, 0.95] {
            let expected = at(x) / mass;
            assert!(
                (density.at(x) - expected).abs() < 2e-3 * density.peak(),
                "{x}: {} {expected}",
                density.at(x)
            );
        }
    }
}

#[test]
fn weights_count_as_repetitions_do() {
    let values = draws(300, 11, Normal::new(0.0, 1.0).unwrap());
    let plain = Density::of(&values, None, Bounds::NONE).unwrap();
    let same = Density::of(&values, Some(&[0.25; 300]), Bounds::NONE).unwrap();
    assert!((plain.bandwidth - same.bandwidth).abs() < 1e-3 * plain.bandwidth);
    assert!(plain.values.iter().zip(&same.values).all(|(a, b)| (a - b).abs() < 1e-2 * plain.peak()));
    // A draw without weight is none.
    let weights: Vec<f64> = (0..300).map(|i| f64::from(u8::from(i < 200))).collect();
    let some = Density::of(&values, Some(&weights), Bounds::NONE).unwrap();
    let first = Density::of(&values[..200], None, Bounds::NONE).unwrap();
    assert!((some.at(0.3) - first.at(0.3)).abs() < 1e-2 * first.peak());
}

#[test]
fn values_that_many_draws_share_are_spikes() {
    let mut values = draws(700, 12, Normal::new(2.0, 0.5).unwrap());
    values.extend([0.0; 300]);
    let density = Density::of(&values, None, Bounds::NONE).unwrap();
    assert_eq!(density.spikes.len(), 1);
    assert_eq!((density.spikes[0].at, density.spikes[0].mass), (0.0, 0.3));
    let mass = integral(density.low, density.high(), |x| density.at(x));
    assert!((mass - 0.7).abs() < 1e-3, "{mass}");
    assert!(density.at(0.0) < 0.05);
    let constant = Density::of(&[3.0; 40], None, Bounds::POSITIVE).unwrap();
    assert_eq!((constant.spikes[0].at, constant.spikes[0].mass, constant.values.len()), (3.0, 1.0, 0));
    let two = Density::of(&[1.0, 2.0], None, Bounds::NONE).unwrap();
    assert!((integral(two.low, two.high(), |x| two.at(x)) - 1.0).abs() < 1e-3);
    assert!(Density::of(&[f64::NAN], None, Bounds::NONE).is_none());
}

#[test]
fn what_is_at_a_bound_but_for_rounding_is_one_spike() {
    let tiny = (0..300).map(|i| 10f64.powi(-10 - i % 20));
    let values: Vec<f64> = tiny.chain(draws(100, 17, Beta::new(2.0, 5.0).unwrap())).collect();
    let density = Density::of(&values, None, Bounds::UNIT).unwrap();
    assert_eq!(density.spikes.iter().map(|s| (s.at, s.mass)).collect::<Vec<_>>(), [(0.0, 0.75)]);
    // Without bounds nothing says that 1e-10 is nothing, but what is that near is one value all the same.
    assert_eq!(Density::of(&values, None, Bounds::NONE).unwrap().spikes.len(), 1);
}

/// A pole with long tails: the normal mean of few rows under a weak prior. Details are fine at the pole, and smooth far out.
#[test]
fn sparse_draws_have_wide_kernels() {
    let z = draws(4000, 18, Normal::new(0.0, 1.0).unwrap());
    let values: Vec<f64> = z.iter().map(|z| z * z * z).collect();
    let density = Density::of(&values, None, Bounds::NONE).unwrap();
    assert!(density.beyond < 0.01, "{}", density.beyond);
    let truth = |x: f64| {
        let c = x.abs().cbrt();
        (-0.5 * c * c).exp() / ((2.0 * PI).sqrt() * 3.0 * c * c)
    };
    // Noise in the tail: how much neighbours differ, relative to the density.
    let at: Vec<f64> =
        (0..40).map(|i| density.at(2.0 + 0.05 * f64::from(i)) / truth(2.0 + 0.05 * f64::from(i))).collect();
    let jumps = at.windows(2).map(|w| (w[1] - w[0]).abs()).fold(0.0, f64::max);
    assert!(jumps < 0.4, "{jumps}");
    assert!(density.bandwidth < 0.1 && density.peak() > 4.0 * density.at(0.5), "{}", density.bandwidth);
}

#[test]
fn far_outliers_do_not_flatten_the_rest() {
    let mut values = draws(1000, 13, Normal::new(0.0, 1.0).unwrap());
    values.push(1e9);
    let density = Density::of(&values, None, Bounds::NONE).unwrap();
    assert!((density.at(0.0) - 0.4).abs() < 0.06, "{}", density.at(0.0));
    assert!((density.beyond - 1.0 / 1001.0).abs() < 1e-12);
}

#[test]
fn a_million_draws_take_less_than_a_second() {
    let values = draws(1_000_000, 14, Normal::new(0.0, 1.0).unwrap());
    let started = processor_seconds();
    let density = Density::of(&values, None, Bounds::NONE).unwrap();
    let took = processor_seconds() - started;
    assert!((density.at(0.0) - 0.398_94).abs() < 5e-3);
    // A debug build is no measure.
    assert!(took < if cfg!(debug_assertions) { 60.0 } else { 3.0 }, "{took}");
}

/// What this thread has had of a core; 0 where nobody counts that.
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

#[test]
fn joint_densities_have_their_mass_and_their_regions() {
    let x = draws(3000, 15, Normal::new(0.0, 1.0).unwrap());
    let noise = draws(3000, 16, Normal::new(0.0, 0.6).unwrap());
    let y: Vec<f64> = x.iter().zip(&noise).map(|(x, e)| 0.8 * x + e).collect();
    let surface = Surface::of(&x, &y, None, [Bounds::NONE; 2]).unwrap();
    let mass: f64 = surface.values.iter().sum::<f64>() * surface.x.step * surface.y.step;
    assert!((mass - 1.0).abs() < 1e-9);
    // The density of the normal at its centre is 1/(2π sd sd √(1 − ρ²)) = 1/(2π 0.6).
    assert!((surface.peak() / (1.0 / (2.0 * PI * 0.6)) - 1.0).abs() < 0.15, "{}", surface.peak());
    let [half, most] = surface.levels(&[0.5, 0.95])[..] else { panic!("two levels") };
    assert!(half > most);
    // Regions of highest density of a normal: half of the mass is where the density is above half the peak.
    assert!((half / surface.peak() - 0.5).abs() < 0.1, "{}", half / surface.peak());
    assert!(Surface::of(&x, &[1.0; 3000], None, [Bounds::NONE; 2]).is_none());
}

/// Of what is far away only its mass counts: the rest is as sharp as without it, and holds its share.
#[test]
fn joint_densities_within_limits_know_what_is_beyond() {
    let x = draws(3000, 20, Normal::new(0.0, 1.0).unwrap());
    let y = draws(3000, 21, Normal::new(0.0, 1.0).unwrap());
    let far: Vec<f64> =
        x.iter().enumerate().map(|(i, v)| if i % 3 == 0 { 500.0 + 100.0 * v } else { *v }).collect();
    let limits = [Some((-4.0, 4.0)), None];
    let surface = Surface::within(&far, &y, None, [Bounds::NONE; 2], limits).unwrap();
    let mass: f64 = surface.values.iter().sum::<f64>() * surface.x.step * surface.y.step;
    assert!((mass - 2.0 / 3.0).abs() < 1e-3, "{mass}");
    assert!((surface.peak() / (2.0 / 3.0 / (2.0 * PI)) - 1.0).abs() < 0.2, "{}", surface.peak());
    let [half, most] = surface.levels(&[0.5, 0.8])[..] else { panic!("two levels") };
    assert!(half > 0.0 && most == 0.0, "{half} {most}");
    assert!(surface.x.low > -8.0 && surface.x.high() < 8.0);
}

//! Dirichlet and stick-breaking weights, in log space: with α/T = 0.002 a fifth of all Gamma variates underflow to
//! zero, and with α/T = 10⁻³⁰⁰ all of them do.

use rand::distr::Distribution;
use rand_distr::Gamma;

use super::reused;
use crate::data::Dataset;
use crate::data::design::Groups;
use crate::kernel::Level;
use crate::kernel::exponentials::{self as kernel, Generators, divide, sum_in_lanes};
use crate::math::log_add_exp;
use crate::rng::{CHUNK, Purpose, Rng, Seed, log_uniform};

/// A pseudo-sample lighter than this share of the whole mass cannot move a sum of doubles, and is left out.
pub const NEGLIGIBLE: f64 = 1e-20;

/// The observed part before normalisation.
pub struct Observed {
    /// Of the rows.
    pub masses: Vec<f64>,
    /// Their sum: the sums of the chunks, added in order.
    pub total: f64,
    /// The logarithm of the unit of both.
    pub log_unit: f64,
}

impl Observed {
    fn new(masses: Vec<f64>, log_unit: f64) -> Observed {
        let total = masses.chunks(CHUNK).map(|chunk| sum_in_lanes(Level::current(), chunk)).sum();
        Observed { masses, total, log_unit }
    }

    /// The Dirichlet vector of a draw without a prior.
    pub fn normalise(mut self) -> Vec<f64> {
        divide(Level::current(), &mut self.masses, self.total);
        self.masses
    }
}

/// The masses of the rows in draw `draw`.
///
/// A row of case weight c stands for c rows, and c variates Gamma(1) sum to one Gamma(c). The rows of a cluster share one
/// Gamma(1), so there c of them have c times its mass.
pub fn observed(data: &Dataset, seed: Seed, draw: u64) -> Observed {
    let design = &data.design;
    let strata = design.strata().filter(|(groups, _)| groups.count > 1);
    // The logarithm of the unit in each stratum, or in all rows.
    let mut units = vec![0.0; strata.map_or(1, |(groups, _)| groups.count)];
    let masses = match (design.clusters(), design.weights()) {
        (None, None) if strata.is_none() => return exponentials(data.n(), seed, draw),
        (None, None) => exponentials(data.n(), seed, draw).masses,
        (None, Some(c)) => {
            let logs = log_gammas(c, seed, draw);
            let unit_of = |i: usize| strata.map_or(0, |(groups, _)| groups.of[i]);
            units.fill(f64::NEG_INFINITY);
            logs.iter().enumerate().for_each(|(i, l)| units[unit_of(i)] = units[unit_of(i)].max(*l));
            logs.iter().enumerate().map(|(i, l)| libm::exp(l - units[unit_of(i)])).collect()
        }
        (Some(clusters), _) => {
            let shared = exponentials(clusters.count, seed, draw).masses;
            clusters.of.iter().enumerate().map(|(i, &k)| data.weight(i) * shared[k]).collect()
        }
    };
    match strata {
        None => Observed::new(masses, units[0]),
        Some((groups, shares)) => stratify(masses, &units, groups, shares),
    }
}

/// Gives every stratum its share of the whole mass, which stays what it is: the part that the prior is weighed against.
fn stratify(mut masses: Vec<f64>, units: &[f64], strata: &Groups, shares: &[f64]) -> Observed {
    let mut sums = vec![0.0; strata.count];
    masses.iter().zip(&strata.of).for_each(|(m, &s)| sums[s] += m);
    let logs = units.iter().zip(&sums).map(|(unit, sum)| unit + libm::log(*sum));
    let total = logs.fold(f64::NEG_INFINITY, log_add_exp);
    masses.iter_mut().zip(&strata.of).for_each(|(m, &s)| *m *= shares[s] / sums[s]);
    Observed::new(masses, total)
}

/// Gamma(1) variates of one chunk of rows, or of clusters, and their sum: what they are depends on no other chunk, and the
/// first of them not on how many there are.
pub fn chunk(seed: Seed, draw: u64, chunk: u64, out: &mut [f64]) -> f64 {
    let generators = Generators::seeded(&mut seed.stream(Purpose::Weights, draw, chunk));
    kernel::exponentials(Level::current(), &generators, out)
}

/// Gamma(1) variates, chunk by chunk.
fn exponentials(n: usize, seed: Seed, draw: u64) -> Observed {
    let mut masses = reused::vector(n);
    let total = (0..).zip(masses.chunks_mut(CHUNK)).map(|(c, out)| chunk(seed, draw, c, out)).sum();
    Observed { masses, total, log_unit: 0.0 }
}

/// log Gamma(c) variates, those of a chunk of rows from its stream, in order.
fn log_gammas(c: &[f64], seed: Seed, draw: u64) -> Vec<f64> {
    let chunk = |(chunk, c): (u64, &[f64])| {
        let mut rng = seed.stream(Purpose::Weights, draw, chunk);
        c.iter().map(|&c| log_gamma_variate(c, &mut rng)).collect::<Vec<f64>>()
    };
    (0..).zip(c.chunks(CHUNK)).flat_map(chunk).collect()
}

/// log of a Gamma(shape, 1) variate. Below shape 1 by log G(a) = log G(a + 1) + log(U)/a, which cannot underflow.
pub fn log_gamma_variate(shape: f64, rng: &mut Rng) -> f64 {
    let gamma = |a: f64| Gamma::new(a, 1.0).expect("shapes are positive and finite");
    if shape >= 1.0 {
        libm::log(gamma(shape).sample(rng))
    } else {
        libm::log(gamma(shape + 1.0).sample(rng)) + log_uniform(rng) / shape
    }
}

/// log Gamma(α/T) variates: the prior part of Algorithm 2.
pub fn symmetric(alpha: f64, t: usize, rng: &mut Rng) -> Vec<f64> {
    (0..t).map(|_| log_gamma_variate(alpha / t as f64, rng)).collect()
}

/// log Gamma(α pₖ) variates: the exact prior part when F_π has atoms of probability pₖ.
pub fn asymmetric(alpha: f64, share: &[f64], rng: &mut Rng) -> Vec<f64> {
    share
        .iter()
        .map(|&p| if p > 0.0 { log_gamma_variate(alpha * p, rng) } else { f64::NEG_INFINITY })
        .collect()
}

/// GEM(α), eq. (6), cut at T sticks of which the last takes the rest, times a total mass Gamma(α).
///
/// The prior part of a DP posterior draw is a DP(α, F_π) draw times Gamma(α) against the Gamma(n) of the data, so
/// the sticks are few: α of them per unit of log mass, not α + n.
pub fn sticks(alpha: f64, t: usize, rng: &mut Rng) -> Vec<f64> {
    let mut left = log_gamma_variate(alpha, rng);
    let mut logs: Vec<f64> = (1..t).map(|_| break_stick(&mut left, alpha, rng)).collect();
    logs.push(left);
    logs
}

/// GEM(α) until the mass left is below `epsilon` of the whole; the last atom takes it.
pub fn adaptive_sticks(alpha: f64, log_observed: f64, epsilon: f64, rng: &mut Rng) -> Vec<f64> {
    let mut left = log_gamma_variate(alpha, rng);
    let enough = log_add_exp(left, log_observed) + libm::log(epsilon);
    let mut logs = Vec::new();
    while left >= enough {
        logs.push(break_stick(&mut left, alpha, rng));
    }
    logs.push(left);
    logs
}

/// Breaks v ~ Beta(1, α) off the stick: 1 − v = U^(1/α).
fn break_stick(left: &mut f64, alpha: f64, rng: &mut Rng) -> f64 {
    let keep = log_uniform(rng) / alpha;
    let piece = *left + libm::log(-libm::expm1(keep));
    *left += keep;
    piece
}

/// Normalises observed and prior part together; the sum is 1 whatever the size of the logarithms.
pub fn join(observed: Observed, log_prior: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let (mut observed, sum) = (observed.masses, observed.total);
    let peak = log_prior.iter().copied().fold(libm::log(sum), f64::max);
    if peak == f64::NEG_INFINITY {
        // α so small that even logarithms overflow, and no data: all mass sits on one of the exchangeable atoms.
        let mut v = vec![0.0; log_prior.len()];
        v[0] = 1.0;
        return (observed, v);
    }
    let mut prior: Vec<f64> = log_prior.iter().map(|l| libm::exp(l - peak)).collect();
    let scale = if observed.is_empty() { 0.0 } else { libm::exp(-peak) };
    let total = sum * scale + prior.iter().sum::<f64>();
    observed.iter_mut().for_each(|g| *g *= scale / total);
    prior.iter_mut().for_each(|v| *v /= total);
    (observed, prior)
}

/// Indices of the weights that count.
pub fn heavy(v: &[f64]) -> Vec<usize> {
    (0..v.len()).filter(|&k| v[k] > NEGLIGIBLE).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_healthy_at_every_scale() {
        for n in [0usize, 1, 10] {
            for shape in [1e-308, 1e-300, 1e-100, 1e-10, 0.002, 0.5, 1.0, 3.0, 1e6] {
                for t in [1usize, 50] {
                    let mut rng = Seed(5).stream(Purpose::PriorWeights, t as u64, n as u64);
                    let prior = symmetric(shape * t as f64, t, &mut rng);
                    let (w, v) = join(exponentials(n, Seed(5), t as u64), &prior);
                    let all: Vec<f64> = w.iter().chain(&v).copied().collect();
                    let sum: f64 = all.iter().sum();
                    assert!(all.iter().all(|w| w.is_finite() && *w >= 0.0), "n {n}, shape {shape}, T {t}");
                    assert!((sum - 1.0).abs() < 1e-13, "n {n}, shape {shape}, T {t}: {sum}");
                }
            }
        }
    }

    #[test]
    fn alpha_near_zero_is_the_bayesian_bootstrap_draw_by_draw() {
        for draw in 0..100 {
            let prior = symmetric(1e-12, 50, &mut Seed(1).stream(Purpose::PriorWeights, draw, 0));
            let gammas = || exponentials(20, Seed(1), draw);
            let (w, v) = join(gammas(), &prior);
            assert!(w.iter().zip(gammas().normalise()).all(|(a, b)| (a - b).abs() < 1e-9));
            assert!(v.iter().sum::<f64>() < 1e-9);
        }
    }

    /// Of draw 3 with seed 7: the first rows, and those about the first boundary of chunks, as docs/architecture.md
    /// defines them. They are part of the format: other numbers need another version of the stream.
    #[test]
    fn masses_are_what_they_were() {
        let masses = exponentials(CHUNK + 2, Seed(7), 3).masses;
        let expected = [
            0x3fff9cb0a06696a6,
            0x400df7f7b3f91639,
            0x400a3c3913147c2b,
            0x3fcafcc96f99b8d7,
            0x3fe80e5ebd1fbd26,
            0x3fd488149b019a10,
        ];
        let rows = [0, 1, 8, CHUNK - 1, CHUNK, CHUNK + 1];
        assert_eq!(rows.map(|i| masses[i].to_bits()), expected);
    }

    #[test]
    fn chunks_make_up_a_draw_one_by_one() {
        let n = 2 * CHUNK + 100;
        let all = exponentials(n, Seed(7), 3);
        let mut total = 0.0;
        for (c, expected) in all.masses.chunks(CHUNK).enumerate() {
            let mut out = vec![0.0; expected.len()];
            total += chunk(Seed(7), 3, c as u64, &mut out);
            assert_eq!(out, expected);
        }
        assert_eq!(total, all.total);
        assert_eq!(Observed::new(all.masses, 0.0).total, total);
    }
}

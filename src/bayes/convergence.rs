//! Whether chains have mixed, and how many independent draws theirs are worth: rank-normalised split R̂, bulk and tail
//! effective sample size (Vehtari, Gelman, Simpson, Carpenter and Bürkner 2021). Written here because no crate has them
//! without a sampler of its own around them.

use serde::{Deserialize, Serialize};

use crate::math::{mean, quantile_sorted, sd};

/// Convergence of one parameter.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Convergence {
    /// Close to 1 if the chains, and the halves of each, agree; above 1.01 they do not.
    pub rhat: f64,
    /// Independent draws that would tell as much about the middle of the posterior.
    pub ess_bulk: f64,
    /// The same for its tails: the 5 % and 95 % quantiles.
    pub ess_tail: f64,
}

impl Convergence {
    /// Of chains of equal length; NaN below four draws a chain, or where a draw is not a number.
    pub fn of(chains: &[Vec<f64>]) -> Convergence {
        let split = halves(chains);
        if split.first().is_none_or(|c| c.len() < 2) || split.iter().flatten().any(|v| !v.is_finite()) {
            return Convergence { rhat: f64::NAN, ess_bulk: f64::NAN, ess_tail: f64::NAN };
        }
        let ranked = rank_normalised(&split);
        let sorted = |chains: &[Vec<f64>]| {
            let mut all = chains.concat();
            all.sort_unstable_by(f64::total_cmp);
            all
        };
        let median = quantile_sorted(&sorted(&split), 0.5);
        let whole = sorted(chains);
        let folded: Vec<Vec<f64>> =
            split.iter().map(|c| c.iter().map(|v| (v - median).abs()).collect()).collect();
        let below = |q: f64| effective_size(&indicator(&split, quantile_sorted(&whole, q)));
        Convergence {
            rhat: potential_reduction(&ranked).max(potential_reduction(&rank_normalised(&folded))),
            ess_bulk: effective_size(&ranked),
            ess_tail: below(0.05).min(below(0.95)),
        }
    }
}

/// Effective sample sizes for the mean, the standard deviation, and quantiles of chains.
pub fn effective_sizes<const Q: usize>(
    chains: &[Vec<f64>],
    centre: f64,
    quantiles: [f64; Q],
) -> (f64, f64, [f64; Q]) {
    let split = halves(chains);
    let squares: Vec<Vec<f64>> =
        split.iter().map(|c| c.iter().map(|v| (v - centre) * (v - centre)).collect()).collect();
    let of_quantile = |q: f64| effective_size(&indicator(&split, q));
    (effective_size(&split), effective_size(&squares), quantiles.map(of_quantile))
}

/// Each chain in two; of an odd number of draws the middle one is left out.
fn halves(chains: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let length = chains.iter().map(Vec::len).min().unwrap_or(0);
    let half = length / 2;
    chains.iter().flat_map(|c| [c[..half].to_vec(), c[length - half..length].to_vec()]).collect()
}

fn indicator(chains: &[Vec<f64>], limit: f64) -> Vec<Vec<f64>> {
    chains.iter().map(|c| c.iter().map(|v| f64::from(*v <= limit)).collect()).collect()
}

/// Normal scores of the ranks over all chains, ties by their mean rank.
fn rank_normalised(chains: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let all = chains.concat();
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_unstable_by(|&a, &b| all[a].total_cmp(&all[b]));
    let mut scores = vec![0.0; all.len()];
    let mut first = 0;
    while first < order.len() {
        let tied = order[first..].iter().take_while(|&&i| all[i] == all[order[first]]).count();
        let rank = first as f64 + 0.5 * (tied as f64 + 1.0);
        let score = normal_quantile((rank - 0.375) / (all.len() as f64 + 0.25));
        order[first..first + tied].iter().for_each(|&i| scores[i] = score);
        first += tied;
    }
    scores.chunks(chains[0].len()).map(<[f64]>::to_vec).collect()
}

/// R̂ of chains as they are.
fn potential_reduction(chains: &[Vec<f64>]) -> f64 {
    let n = chains[0].len() as f64;
    let means: Vec<f64> = chains.iter().map(|c| mean(c)).collect();
    let within = mean(&chains.iter().map(|c| sd(c).powi(2)).collect::<Vec<_>>());
    let between = n * sd(&means).powi(2);
    if within == 0.0 { f64::NAN } else { ((between / within + n - 1.0) / n).sqrt() }
}

/// N/τ with Geyer's initial monotone sequence estimate of the autocorrelation time τ. Draws that are all equal count
/// as they are.
fn effective_size(chains: &[Vec<f64>]) -> f64 {
    let (m, n) = (chains.len(), chains[0].len());
    let total = (m * n) as f64;
    if n < 3 || chains.iter().flatten().any(|v| !v.is_finite()) {
        return f64::NAN;
    }
    let centred: Vec<Vec<f64>> = chains
        .iter()
        .map(|c| {
            let centre = mean(c);
            c.iter().map(|v| v - centre).collect()
        })
        .collect();
    let autocovariance = |lag: usize| {
        let of_chain = |c: &Vec<f64>| crate::math::dot(&c[..n - lag], &c[lag..]) / n as f64;
        centred.iter().map(of_chain).sum::<f64>() / m as f64
    };
    let within = autocovariance(0) * n as f64 / (n as f64 - 1.0);
    let mut variance = within * (n as f64 - 1.0) / n as f64;
    if m > 1 {
        variance += sd(&chains.iter().map(|c| mean(c)).collect::<Vec<_>>()).powi(2);
    }
    if variance <= f64::MIN_POSITIVE {
        return total;
    }
    let correlation = |lag: usize| 1.0 - (within - autocovariance(lag)) / variance;
    let mut pairs = vec![(1.0, correlation(1))];
    // The first pair whose sum is negative, or else the last, counts by its even lag alone.
    let mut left_over = None;
    while 2 * pairs.len() + 2 < n {
        let t = 2 * pairs.len();
        let pair = (correlation(t), correlation(t + 1));
        if pair.0 + pair.1 < 0.0 {
            left_over = Some(pair.0);
            break;
        }
        pairs.push(pair);
    }
    let left_over = match left_over {
        None if pairs.len() > 1 => pairs.pop().map_or(0.0, |(even, _)| even),
        found => found.unwrap_or(0.0),
    };
    let mut smallest = f64::INFINITY;
    let mut sum = 0.0;
    for (even, odd) in pairs {
        smallest = smallest.min(even + odd);
        sum += smallest;
    }
    let tau = (2.0 * sum - 1.0 + left_over.max(0.0)).max(1.0 / libm::log10(total));
    total / tau
}

/// Φ⁻¹ to about 1e-16: Wichura's algorithm AS 241.
pub(super) fn normal_quantile(p: f64) -> f64 {
    let ratio = |x: f64, a: [f64; 8], b: [f64; 7]| {
        let numerator = a.iter().rev().fold(0.0, |s, c| s * x + c);
        let denominator = b.iter().rev().fold(0.0, |s, c| (s + c) * x) + 1.0;
        numerator / denominator
    };
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let a = [
            3.387_132_872_796_366_5,
            133.141_667_891_784_38,
            1_971.590_950_306_551_3,
            13_731.693_765_509_46,
            45_921.953_931_549_87,
            67_265.770_927_008_7,
            33_430.575_583_588_13,
            2_509.080_928_730_122_7,
        ];
        let b = [
            42.313_330_701_600_91,
            687.187_007_492_057_9,
            5_394.196_021_424_751,
            21_213.794_301_586_597,
            39_307.895_800_092_71,
            28_729.085_735_721_943,
            5_226.495_278_852_545,
        ];
        return q * ratio(0.180_625 - q * q, a, b);
    }
    let r = (-libm::log(p.min(1.0 - p))).sqrt();
    let tail = if r <= 5.0 {
        let a = [
            1.423_437_110_749_683_5,
            4.630_337_846_156_546,
            5.769_497_221_460_691,
            3.647_848_324_763_204_5,
            1.270_458_252_452_368_4,
            0.241_780_725_177_450_6,
            0.022_723_844_989_269_184,
            7.745_450_142_783_414e-4,
        ];
        let b = [
            2.053_191_626_637_759,
            1.676_384_830_183_803_8,
            0.689_767_334_985_1,
            0.148_103_976_427_480_08,
            0.015_198_666_563_616_457,
            5.475_938_084_995_345e-4,
            1.050_750_071_644_416_9e-9,
        ];
        ratio(r - 1.6, a, b)
    } else {
        let a = [
            6.657_904_643_501_103,
            5.463_784_911_164_114,
            1.784_826_539_917_291_3,
            0.296_560_571_828_504_87,
            0.026_532_189_526_576_124,
            1.242_660_947_388_078_4e-3,
            2.711_555_568_743_487_6e-5,
            2.010_334_399_292_288_1e-7,
        ];
        let b = [
            0.599_832_206_555_888,
            0.136_929_880_922_735_8,
            0.014_875_361_290_850_615,
            7.868_691_311_456_133e-4,
            1.846_318_317_510_054_8e-5,
            1.421_511_758_316_446e-7,
            2.044_263_103_389_939_8e-15,
        ];
        ratio(r - 5.0, a, b)
    };
    if q < 0.0 { -tail } else { tail }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An AR(1) chain driven by a linear congruential generator.
    fn chain(n: usize, seed: u64, rho: f64, shift: f64) -> Vec<f64> {
        let (mut x, mut y) = (seed, 0.0);
        let step = |_| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            y = rho * y + (x >> 11) as f64 / 2f64.powi(53) - 0.5;
            y + shift
        };
        (0..n).map(step).collect()
    }

    /// R̂, bulk and tail size, and size for the mean, as ArviZ 0.23.4 has them for the same chains.
    #[test]
    fn agrees_with_arviz() {
        let cases = [
            (
                4,
                100,
                0.5,
                0.0,
                [
                    1.007_625_070_563_875_4,
                    134.423_540_359_940_92,
                    262.572_838_601_903_36,
                    135.836_434_856_714_08,
                ],
            ),
            (
                2,
                101,
                0.9,
                0.0,
                [1.117_053_293_040_151, 20.747_871_110_490_98, 50.249_423_722_895_58, 17.513_339_078_712_86],
            ),
            (
                3,
                60,
                -0.4,
                0.0,
                [
                    0.993_217_306_802_217_2,
                    296.978_107_086_080_06,
                    205.086_191_143_327_08,
                    282.801_760_028_564,
                ],
            ),
            (
                2,
                200,
                0.3,
                0.5,
                [1.391_414_737_486_907, 4.586_355_092_742_222, 136.536_309_454_917_84, 4.378_968_481_385_317],
            ),
        ];
        for (m, n, rho, shift, expected) in cases {
            let chains: Vec<Vec<f64>> =
                (0..m).map(|i| chain(n, i as u64 + 1, rho, shift * i as f64)).collect();
            let found = Convergence::of(&chains);
            let (mean, _, _) = effective_sizes(&chains, 0.0, [0.0]);
            for (found, expected) in [found.rhat, found.ess_bulk, found.ess_tail, mean].iter().zip(expected) {
                assert!((found / expected - 1.0).abs() < 1e-9, "{m} x {n}: {found} for {expected}");
            }
        }
        // ArviZ has no R̂ for one chain; its halves may well disagree.
        let one = [chain(400, 1, 0.7, 0.0)];
        let found = Convergence::of(&one);
        assert!((found.ess_bulk / 91.200_828_706_096_15 - 1.0).abs() < 1e-9, "{found:?}");
        assert!(found.rhat > 0.99 && found.rhat < 1.05, "{found:?}");
    }

    #[test]
    fn degenerate_chains_do_not_pretend() {
        assert!(Convergence::of(&[vec![1.0, 2.0, 3.0]]).rhat.is_nan());
        assert!(Convergence::of(&[vec![f64::NAN; 10]]).ess_bulk.is_nan());
        assert!(Convergence::of(&[]).rhat.is_nan());
        let constant = Convergence::of(&[vec![3.0; 10], vec![3.0; 10]]);
        assert!(constant.rhat.is_nan());
        assert_eq!(constant.ess_bulk, 20.0);
    }

    #[test]
    fn normal_quantiles_are_exact() {
        let known = [
            (1e-12, -7.034_483_825_301_131),
            (0.001, -3.090_232_306_167_813),
            (0.02, -2.053_748_910_631_823),
            (0.3, -0.524_400_512_708_040_9),
            (0.5, 0.0),
            (0.77, 0.738_846_849_185_213_7),
            (0.999, 3.090_232_306_167_813),
        ];
        for (p, z) in known {
            assert!((normal_quantile(p) - z).abs() < 1e-14 * (1.0 + z.abs()), "{p}");
        }
    }
}

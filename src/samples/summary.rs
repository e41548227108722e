//! Marginal posteriors in numbers.

use serde::{Deserialize, Serialize};

use super::{GROUP, quoted};
use crate::bayes::convergence::{Convergence, effective_sizes};
use crate::math::{largest, mean, quantile_sorted, sd};

/// Quantiles of a summary.
pub const QUANTILES: [f64; 5] = [0.025, 0.1, 0.5, 0.9, 0.975];

/// Marginal posterior of one parameter, every number with its Monte Carlo standard error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    pub parameter: String,
    pub mean: f64,
    pub sd: f64,
    pub quantiles: [f64; 5],
    pub mcse_mean: f64,
    pub mcse_sd: f64,
    pub mcse_quantiles: [f64; 5],
    /// Of draws from chains; the worst of several repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub convergence: Option<Convergence>,
}

/// Draws of one chain of one repeat, or of one repeat.
type Part = Vec<f64>;

impl Summary {
    /// Values that are not numbers (failed draws) are left out.
    pub fn of(parameter: &str, mut values: Vec<f64>) -> Summary {
        values.retain(|v| v.is_finite());
        let unit = unit(values.iter());
        values.iter_mut().for_each(|v| *v /= unit);
        Summary::of_numbers(parameter, values).times(unit)
    }

    fn of_numbers(parameter: &str, mut values: Vec<f64>) -> Summary {
        values.sort_unstable_by(f64::total_cmp);
        let n = values.len() as f64;
        let (mean, sd) = (mean(&values), if values.is_empty() { f64::NAN } else { sd(&values) });
        // One draw has no spread, and nothing is known of its errors.
        let known = if n > 1.0 { 1.0 } else { f64::NAN };
        let fourth = values.iter().map(|v| (v - mean).powi(4)).sum::<f64>() / n;
        let variance = sd * sd;
        Summary {
            parameter: parameter.to_owned(),
            mean,
            sd,
            quantiles: QUANTILES.map(|q| quantile_sorted(&values, q)),
            mcse_mean: sd / n.sqrt(),
            // Delta method: Var(s²) ≈ (m₄ − σ⁴)/B, and sd = √s².
            mcse_sd: if sd > 0.0 || sd.is_nan() {
                ((fourth - variance * variance).max(0.0) / n).sqrt() / (2.0 * sd)
            } else {
                0.0 * known
            },
            mcse_quantiles: QUANTILES.map(|q| quantile_error(&values, q, n) * known),
            convergence: None,
        }
    }

    /// Draws that depend on each other: the chains of every repeat. Errors are those of as many independent draws as
    /// the chains are worth.
    pub fn of_chains(parameter: &str, repeats: &[Vec<Part>]) -> Summary {
        let finite = |chain: &Part| chain.iter().copied().filter(|v| v.is_finite()).collect();
        let repeats: Vec<Vec<Part>> =
            repeats.iter().map(|chains| chains.iter().map(finite).collect()).collect();
        let values = repeats.iter().flatten().flatten().copied().collect();
        let plain = Summary::of(parameter, values);
        let mut sorted: Vec<f64> = repeats.iter().flatten().flatten().copied().collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let (mut for_mean, mut for_sd, mut for_quantiles) = (0.0, 0.0, [0.0; 5]);
        let mut worst: Option<Convergence> = None;
        for chains in &repeats {
            let sizes = effective_sizes(chains, plain.mean, plain.quantiles);
            for_mean += sizes.0;
            for_sd += sizes.1;
            for_quantiles.iter_mut().zip(sizes.2).for_each(|(sum, size)| *sum += size);
            let found = Convergence::of(chains);
            worst = Some(worst.map_or(found, |worst| Convergence {
                rhat: nan_or(worst.rhat, found.rhat, f64::max),
                ess_bulk: nan_or(worst.ess_bulk, found.ess_bulk, f64::min),
                ess_tail: nan_or(worst.ess_tail, found.ess_tail, f64::min),
            }));
        }
        let n = sorted.len() as f64;
        Summary {
            mcse_mean: plain.mcse_mean * (n / for_mean).sqrt(),
            mcse_sd: plain.mcse_sd * (n / for_sd).sqrt(),
            mcse_quantiles: std::array::from_fn(|i| quantile_error(&sorted, QUANTILES[i], for_quantiles[i])),
            convergence: worst,
            ..plain
        }
    }

    /// Draws with weights that sum to 1 (self-normalised importance sampling); errors by the delta method.
    pub fn weighted(parameter: &str, draws: &[(f64, f64)]) -> Summary {
        let finite = || draws.iter().filter(|(v, _)| v.is_finite());
        let unit = unit(finite().map(|(v, _)| v));
        let all = finite().count() == draws.len();
        let total = if all { 1.0 } else { finite().map(|(_, w)| w).sum() };
        let scaled: Vec<(f64, f64)> = finite().map(|(v, w)| (v / unit, w / total)).collect();
        if scaled.is_empty() {
            return Summary::of(parameter, Vec::new());
        }
        Summary::weighted_numbers(parameter, scaled).times(unit)
    }

    fn weighted_numbers(parameter: &str, mut sorted: Vec<(f64, f64)>) -> Summary {
        sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let expectation = |f: &dyn Fn(f64) -> f64| sorted.iter().map(|(v, w)| w * f(*v)).sum::<f64>();
        let told = errors_are_told(sorted.iter().map(|(_, w)| *w));
        let error = |f: &dyn Fn(f64) -> f64| match told {
            true => sorted.iter().map(|(v, w)| (w * f(*v)).powi(2)).sum::<f64>().sqrt(),
            false => f64::NAN,
        };
        let mean = expectation(&|v| v);
        let variance = expectation(&|v| (v - mean) * (v - mean));
        let sd = variance.sqrt();
        let quantile = |q: f64| {
            let mut mass = 0.0;
            let reached = sorted.iter().find(|(_, w)| {
                mass += w;
                mass >= q
            });
            reached.or(sorted.last()).map_or(f64::NAN, |(v, _)| *v)
        };
        let quantiles = QUANTILES.map(quantile);
        let quantile_error = |i: usize| {
            let spread = error(&|v| f64::from(v <= quantiles[i]) - QUANTILES[i]);
            match told {
                true => {
                    0.5 * (quantile((QUANTILES[i] + spread).min(1.0))
                        - quantile((QUANTILES[i] - spread).max(0.0)))
                }
                false => f64::NAN,
            }
        };
        Summary {
            parameter: parameter.to_owned(),
            mean,
            sd,
            quantiles,
            mcse_mean: error(&|v| v - mean),
            mcse_sd: if sd > 0.0 || !told {
                error(&|v| (v - mean) * (v - mean) - variance) / (2.0 * sd)
            } else {
                0.0
            },
            mcse_quantiles: std::array::from_fn(quantile_error),
            convergence: None,
        }
    }

    /// The summary of so many times the values.
    fn times(mut self, unit: f64) -> Summary {
        let numbers = [&mut self.mean, &mut self.sd, &mut self.mcse_mean, &mut self.mcse_sd];
        let quantiles = self.quantiles.iter_mut().chain(&mut self.mcse_quantiles);
        numbers.into_iter().chain(quantiles).for_each(|number| *number *= unit);
        self
    }

    /// `summary.csv` of a run: a block of lines for each group, where there are groups.
    pub fn table_of_groups(groups: &[(Option<String>, Vec<Summary>)]) -> String {
        let table = |(name, summaries): &(Option<String>, Vec<Summary>)| {
            let table = Summary::table(summaries);
            let Some(name) = name else { return table };
            let name = quoted(name);
            let mut lines = table.lines();
            let header = lines.next().map(|line| format!("{GROUP},{line}\n")).unwrap_or_default();
            header + &lines.map(|line| format!("{name},{line}\n")).collect::<String>()
        };
        let Some((first, others)) = groups.split_first() else { return Summary::table(&[]) };
        let body = |group| table(group).split_inclusive('\n').skip(1).collect::<String>();
        table(first) + &others.iter().map(body).collect::<String>()
    }

    /// `summary.csv`. What is not told is left empty: the standard deviation and all errors of a single draw, and everything of a
    /// quantity that is a number in no draw.
    pub fn table(summaries: &[Summary]) -> String {
        let labels = ["q2.5", "q10", "q50", "q90", "q97.5"];
        let errors = labels.map(|l| format!("mcse_{l}"));
        let chains = summaries.first().is_some_and(|s| s.convergence.is_some());
        let convergence = if chains { ",rhat,ess_bulk,ess_tail" } else { "" };
        let header = format!(
            "parameter,mean,sd,{},mcse_mean,mcse_sd,{}{convergence}",
            labels.join(","),
            errors.join(",")
        );
        std::iter::once(header).chain(summaries.iter().map(Summary::line)).map(|line| line + "\n").collect()
    }

    fn line(&self) -> String {
        let numbers = [self.mean, self.sd].into_iter().chain(self.quantiles);
        let errors = [self.mcse_mean, self.mcse_sd].into_iter().chain(self.mcse_quantiles);
        let convergence = self.convergence.iter().flat_map(|c| [c.rhat, c.ess_bulk, c.ess_tail]);
        let cell = |v: f64| if v.is_nan() { String::new() } else { format!("{v:?}") };
        let cells: Vec<String> = numbers.chain(errors).chain(convergence).map(cell).collect();
        format!("{},{}", quoted(&self.parameter), cells.join(","))
    }
}

/// Whether draws with these weights tell the errors of what they say, too. They do not where a few draws have nearly all weight:
/// how far those are from each other says nothing of how far they are from where other draws would have been.
pub fn errors_are_told(weights: impl Iterator<Item = f64>) -> bool {
    const LEAST: f64 = 10.0;
    let (count, squares) = weights.fold((0.0, 0.0), |(n, sum), w| (n + 1.0, sum + w * w));
    let worth = 1.0 / squares;
    worth >= LEAST || worth > 0.5 * count
}

/// Independent draws that the chains of one repeat are worth (bulk): `chains` says which each value is of, and a chain's stand
/// together.
pub fn worth(chains: &[f64], values: &[f64]) -> f64 {
    let ends = (1..=chains.len()).filter(|&i| i == chains.len() || chains[i] != chains[i - 1]);
    let mut first = 0;
    let parts: Vec<Part> = ends.map(|end| values[std::mem::replace(&mut first, end)..end].to_vec()).collect();
    Convergence::of(&parts).ess_bulk
}

/// A power of two, in units of which fourth powers of values neither overflow nor vanish: 1 but for very large or small ones.
fn unit<'a>(values: impl Iterator<Item = &'a f64>) -> f64 {
    match largest(values) {
        0.0 | 1e-60..=1e60 => 1.0,
        size => libm::exp2(libm::log2(size).floor().clamp(-1000.0, 1000.0)),
    }
}

/// What is not a number is worse than any that is.
fn nan_or(a: f64, b: f64, pick: fn(f64, f64) -> f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { pick(a, b) }
}

/// Half the distance between the order statistics one standard deviation of their place, among `size` independent
/// draws, to each side of the quantile.
fn quantile_error(sorted: &[f64], q: f64, size: f64) -> f64 {
    let spread = (q * (1.0 - q) / size).sqrt();
    let at = |p: f64| quantile_sorted(sorted, p.clamp(0.0, 1.0));
    0.5 * (at(q + spread) - at(q - spread))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_draw_has_neither_spread_nor_errors() {
        let table = Summary::table(&[Summary::of("x", vec![1.5])]);
        assert_eq!(table.lines().nth(1), Some("x,1.5,,1.5,1.5,1.5,1.5,1.5,,,,,,,"));
        let table = Summary::table(&[Summary::of("x", vec![1.5, 1.5])]);
        assert_eq!(table.lines().nth(1), Some("x,1.5,0.0,1.5,1.5,1.5,1.5,1.5,0.0,0.0,0.0,0.0,0.0,0.0,0.0"));
    }

    #[test]
    fn what_is_a_number_in_no_draw_has_nothing_but_empty_cells() {
        let none = Summary::of("x", vec![f64::INFINITY, f64::NAN]);
        assert_eq!(Summary::table(&[none]).lines().nth(1), Some("x,,,,,,,,,,,,,,"));
        let weighted = Summary::weighted("x", &[(f64::NAN, 0.5), (f64::INFINITY, 0.5)]);
        assert!(weighted.mean.is_nan() && weighted.sd.is_nan());
        let some = Summary::weighted("x", &[(1.0, 0.25), (f64::NAN, 0.5), (3.0, 0.25)]);
        assert_eq!((some.mean, some.quantiles[4]), (2.0, 3.0), "of the draws that are numbers");
    }

    #[test]
    fn weights_stand_for_repeated_draws() {
        let plain = Summary::of("x", vec![1.0, 2.0, 2.0, 5.0]);
        let weighted = Summary::weighted("x", &[(5.0, 0.25), (1.0, 0.25), (2.0, 0.5)]);
        assert_eq!((weighted.mean, weighted.quantiles[2]), (plain.mean, plain.quantiles[2]));
        // Divisor n, and n - 1.
        assert!((weighted.sd - plain.sd * 0.75f64.sqrt()).abs() < 1e-15);
        // Equal weights have the error of a plain mean, but for the same divisors.
        let equal = Summary::weighted("x", &[1.0, 2.0, 2.0, 5.0].map(|v| (v, 0.25)));
        assert!((equal.mcse_mean - plain.mcse_mean * 0.75f64.sqrt()).abs() < 1e-15);
    }

    #[test]
    fn a_few_heavy_draws_do_not_tell_their_errors() {
        let heavy = |weight: f64| {
            let rest = (1.0 - weight) / 99.0;
            let draws: Vec<(f64, f64)> =
                (0..100).map(|i| (f64::from(i), if i == 50 { weight } else { rest })).collect();
            Summary::weighted("x", &draws)
        };
        // Worth 1.0 draws, and 24.
        let (few, many) = (heavy(0.999_999), heavy(0.2));
        assert!((few.mean - 50.0).abs() < 1e-4 && few.mcse_mean.is_nan() && few.mcse_sd.is_nan());
        assert!(few.mcse_quantiles.iter().all(|e| e.is_nan()));
        assert!(many.mcse_mean > 0.0 && many.mcse_quantiles.iter().all(|e| e.is_finite()));
    }

    #[test]
    fn chains_that_stick_have_larger_errors() {
        let mut rng = crate::rng::Seed(1).stream(crate::rng::Purpose::Auxiliary, 0, 0);
        let independent: Vec<f64> = (0..400).map(|_| crate::rng::log_uniform(&mut rng)).collect();
        let sticky: Vec<f64> = independent.iter().take(100).flat_map(|v| [*v; 4]).collect();
        let plain = Summary::of("x", sticky.clone());
        let chains = Summary::of_chains("x", &[vec![sticky.clone()]]);
        assert_eq!((chains.mean, chains.sd, chains.quantiles), (plain.mean, plain.sd, plain.quantiles));
        let ratio = chains.mcse_mean / plain.mcse_mean;
        // Every value four times: four draws are worth one, give or take what the lags of 100 values vary by.
        assert!((1.6..2.6).contains(&ratio), "{ratio}");
        let worth = super::worth(&[1.0; 400], &sticky);
        assert!((50.0..200.0).contains(&worth), "{worth}");
        let apart = [vec![1.0; 200], vec![2.0; 200]].concat();
        assert_eq!(
            super::worth(&apart, &sticky),
            Convergence::of(&[sticky[..200].to_vec(), sticky[200..].to_vec()]).ess_bulk
        );
        let twice = Summary::of_chains("x", &[vec![independent.clone()], vec![independent]]);
        assert!(twice.convergence.unwrap().ess_bulk < 800.0, "of the worst repeat, not of all");
    }

    #[test]
    fn values_of_any_scale_have_a_summary() {
        let plain = Summary::of("x", vec![1.0, -2.0, 3.0]);
        for unit in [libm::exp2(-990.0), libm::exp2(-400.0), libm::exp2(400.0), libm::exp2(1000.0)] {
            assert_eq!(
                Summary::of("x", [1.0, -2.0, 3.0].map(|v| v * unit).to_vec()),
                plain.clone().times(unit)
            );
        }
    }

    #[test]
    fn a_summary_of_known_numbers() {
        let s = Summary::of("x", (0..=1000).rev().map(|i| i as f64).chain([f64::NAN]).collect());
        assert_eq!((s.mean, s.quantiles[2], s.quantiles[0]), (500.0, 500.0, 25.0));
        assert!((s.sd - 289.108_111).abs() < 1e-5);
        assert!((s.mcse_mean - s.sd / 1001f64.sqrt()).abs() < 1e-12);
        // Uniform on 0..1000: the median's standard error is 1000 · ½/√n.
        assert!((s.mcse_quantiles[2] / (500.0 / 1001f64.sqrt()) - 1.0).abs() < 0.01);
    }
}

//! Questions that a posterior answers: where a parameter lies, by intervals of several kinds, and how probable it is that it lies
//! somewhere; each answer with its Monte Carlo error.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::read::Samples;
use super::{Kinship, LOG_WEIGHT, Relation, Summary, wrong};
use crate::error::Result;
use crate::math::{log_normal_density, log_sum_exp, normal_cdf, normal_quantile, quantile_sorted};

/// Which interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Interval {
    /// Equal tails: quantiles of the draws.
    #[default]
    Percentile,
    /// The shortest interval with so much of the draws: highest posterior density, where that is one interval.
    Hdi,
    /// Quantiles that make good for the median of the draws not being the estimate at equal weights: bias-corrected.
    Bc,
    /// The same, and for a spread that changes with the parameter: bias-corrected and accelerated.
    Bca,
    /// Equal tails of each parameter, so wide that all parameters lie in theirs at once in so much of the draws.
    Simultaneous,
}

/// What is asked.
#[derive(Clone, Debug)]
pub struct Question {
    pub interval: Interval,
    /// Probability of the interval.
    pub level: f64,
    /// How probable is it that a parameter is above this?
    pub above: Option<f64>,
    /// Or between these?
    pub between: Option<RangeInclusive<f64>>,
    /// What BC and BCa intervals know of each parameter.
    pub corrections: BTreeMap<String, Correction>,
}

/// What the quantiles of a parameter are corrected by (Efron 1987, *Better bootstrap confidence intervals*).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Correction {
    /// At equal weights.
    pub estimate: f64,
    /// BC intervals have no use for it.
    pub acceleration: f64,
}

/// Why draws have no corrected intervals, if so: they must spread around one estimate at equal weights.
pub fn uncorrectable(method: &str, alpha: f64, relation: &Relation) -> Option<&'static str> {
    if !matches!(method, "npl" | "mdp-npl") {
        return Some(
            "it corrects draws of the bootstrap towards the estimate at equal weights, and these are others",
        );
    }
    if method == "mdp-npl" || alpha > 0.0 {
        return Some(
            "with a prior of weight alpha > 0 draws are centred between the data and the prior, not on the estimate that they \
             would be corrected towards",
        );
    }
    relation.components.is_some_and(|components| components.count() > 1).then_some(
        "the loss of a mixture has several modes, and its draws no single estimate that they spread around",
    )
}

/// A number and its Monte Carlo error.
pub type Estimated = (f64, f64);

/// What is answered of one parameter.
#[derive(Clone, Debug)]
pub struct Answer {
    pub parameter: String,
    pub mean: Estimated,
    pub sd: Estimated,
    pub lower: Estimated,
    pub upper: Estimated,
    pub above: Option<Estimated>,
    pub between: Option<Estimated>,
}

/// Draws of one parameter, in order, with weights that sum to 1, and how many independent ones they are worth.
struct Sorted {
    values: Vec<f64>,
    /// Σ of the weights up to each.
    mass: Vec<f64>,
    /// All weights are the same.
    even: bool,
    worth: f64,
}

impl Samples {
    /// Of these parameters, by the draws of one repeat, counted from 1, or of all.
    pub fn answers(
        &self,
        names: &[String],
        draws: Kinship,
        repeat: Option<usize>,
        question: &Question,
    ) -> Result<Vec<Answer>> {
        let weighted = draws == Kinship::Weighted;
        let statistics: &[&str] = if weighted { &[LOG_WEIGHT] } else { &[] };
        let mut table = self.table(statistics, names, repeat)?;
        let count = table.parameters.first().map_or(0, Vec::len);
        if count == 0 {
            return Err(wrong(&self.path, "no draw of it is one"));
        }
        let weights = match weighted {
            true => {
                let logs = table.statistics.remove(0);
                let total = log_sum_exp(&logs);
                logs.into_iter().map(|l| libm::exp(l - total)).collect()
            }
            false => vec![1.0 / count as f64; count],
        };
        let summaries = self.summarise(draws, repeat)?;
        let summary = |name: &String| summaries.iter().find(|s| s.parameter == *name);
        if weighted && question.interval == Interval::Simultaneous {
            return Err(wrong(&self.path, "simultaneous intervals are for draws that all count alike"));
        }
        let joint = match question.interval {
            Interval::Simultaneous => Some(joint_tail(&table.parameters, question.level)),
            _ => None,
        };
        let answer = |(name, values): (&String, Vec<f64>)| {
            let summary = summary(name);
            let worth = match (summary.and_then(|s| s.convergence), weighted) {
                (Some(convergence), _) => convergence.ess_bulk,
                (None, true) => 1.0 / weights.iter().map(|w: &f64| w * w).sum::<f64>(),
                (None, false) => count as f64,
            };
            Sorted::new(values, &weights, worth).answer(name, summary, question, joint)
        };
        Ok(names.iter().zip(table.parameters).map(answer).collect())
    }
}

/// Intervals of draws that are at hand, a column for each parameter: both ends of every parameter, for each kind and probability
/// that is asked for. `corrections` are those of the columns, where a corrected kind is among them.
pub fn intervals(
    columns: &[Vec<f64>],
    log_weights: Option<&[f64]>,
    asked: &[(Interval, f64)],
    corrections: &[Correction],
) -> Vec<Vec<(f64, f64)>> {
    let count = columns.first().map_or(0, Vec::len);
    let weights: Vec<f64> = match log_weights {
        Some(logs) => {
            let total = log_sum_exp(logs);
            logs.iter().map(|l| libm::exp(l - total)).collect()
        }
        None => vec![1.0 / count as f64; count],
    };
    let sorted: Vec<Sorted> =
        columns.iter().map(|column| Sorted::new(column.clone(), &weights, count as f64)).collect();
    let of_kind = |&(interval, level): &(Interval, f64)| {
        let joint = (interval == Interval::Simultaneous).then(|| joint_tail(columns, level));
        let ends = |(j, sorted): (usize, &Sorted)| {
            let (lower, upper) = sorted.interval(interval, level, joint, corrections.get(j).copied());
            (lower.0, upper.0)
        };
        sorted.iter().enumerate().map(ends).collect()
    };
    asked.iter().map(of_kind).collect()
}

impl Sorted {
    fn new(values: Vec<f64>, weights: &[f64], worth: f64) -> Sorted {
        // Where a quantity is no number it is neither above nor below another.
        let mut pairs: Vec<(f64, f64)> =
            values.into_iter().zip(weights.iter().copied()).filter(|(v, _)| v.is_finite()).collect();
        if pairs.len() < weights.len() {
            let total: f64 = pairs.iter().map(|(_, w)| w).sum();
            pairs.iter_mut().for_each(|(_, w)| *w /= total);
        }
        pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut sum = 0.0;
        let mass = pairs.iter().map(|(_, w)| {
            sum += w;
            sum
        });
        let mass = mass.collect();
        let even = weights.iter().all(|w| *w == weights[0]);
        Sorted { values: pairs.into_iter().map(|(v, _)| v).collect(), mass, even, worth }
    }

    fn answer(
        &self,
        name: &str,
        summary: Option<&Summary>,
        question: &Question,
        joint: Option<f64>,
    ) -> Answer {
        let number = |of: fn(&Summary) -> Estimated| summary.map_or((f64::NAN, f64::NAN), of);
        let nothing = (f64::NAN, f64::NAN);
        if self.values.is_empty() {
            return Answer {
                parameter: name.to_owned(),
                mean: nothing,
                sd: nothing,
                lower: nothing,
                upper: nothing,
                above: question.above.map(|_| nothing),
                between: question.between.as_ref().map(|_| nothing),
            };
        }
        let by = question.corrections.get(name).copied();
        let (lower, upper) = self.interval(question.interval, question.level, joint, by);
        let share = |range: &dyn Fn(f64) -> bool| {
            let before = |i: usize| if i == 0 { 0.0 } else { self.mass[i - 1] };
            let inside = self.values.iter().enumerate().filter(|(_, v)| range(**v));
            let p: f64 = inside.map(|(i, _)| self.mass[i] - before(i)).sum();
            // A sum of nothing is −0.
            let p = p.clamp(0.0, 1.0) + 0.0;
            // No draw where one might have been says that the probability is below about 1/m, not that it is 0.
            (p, ((p * (1.0 - p)).max(1.0 / self.worth) / self.worth).sqrt())
        };
        Answer {
            parameter: name.to_owned(),
            mean: number(|s| (s.mean, s.mcse_mean)),
            sd: number(|s| (s.sd, s.mcse_sd)),
            lower,
            upper,
            above: question.above.map(|at| share(&|v| v > at)),
            between: question.between.as_ref().map(|range| share(&|v| range.contains(&v))),
        }
    }

    /// Both ends; NaN where there is no such interval.
    fn interval(
        &self,
        kind: Interval,
        level: f64,
        joint: Option<f64>,
        by: Option<Correction>,
    ) -> (Estimated, Estimated) {
        let nothing = (f64::NAN, f64::NAN);
        if self.values.is_empty() {
            return (nothing, nothing);
        }
        let tail = joint.unwrap_or(0.5 * (1.0 - level));
        let uncorrected = |by: Correction| Correction { acceleration: 0.0, ..by };
        match kind {
            Interval::Hdi => self.shortest(level),
            Interval::Bc | Interval::Bca => {
                let by = if kind == Interval::Bc { by.map(uncorrected) } else { by };
                by.map_or((nothing, nothing), |by| (self.corrected(tail, by), self.corrected(1.0 - tail, by)))
            }
            Interval::Percentile | Interval::Simultaneous => (self.quantile(tail), self.quantile(1.0 - tail)),
        }
    }

    /// The end of a BC or BCa interval: the quantile at Φ(z₀ + (z₀ + z)/(1 − a (z₀ + z))), where Φ(z₀) is the share of draws below the
    /// estimate, ties counted half. NaN where all draws lie on one side of it. Its error is that of the quantile and of z₀.
    fn corrected(&self, tail: f64, by: Correction) -> Estimated {
        let below = |inside: &dyn Fn(f64) -> bool| match self.values.partition_point(|v| inside(*v)) {
            0 => 0.0,
            count => self.mass[count - 1],
        };
        let share = 0.5 * (below(&|v| v < by.estimate) + below(&|v| v <= by.estimate));
        let centre = normal_quantile(share);
        let z = centre + normal_quantile(tail);
        let place = centre + z / (1.0 - by.acceleration * z);
        let q = normal_cdf(place);
        // Sums of weights are 1 but for rounding.
        if !(1e-9..=1.0 - 1e-9).contains(&share) || !q.is_finite() {
            return (f64::NAN, f64::NAN);
        }
        let density = |z: f64| libm::exp(log_normal_density(z, 0.0, 1.0));
        // Both z₀ in the formula move the place.
        let of_centre = 2.0 * density(place) * (share * (1.0 - share) / self.worth).sqrt() / density(centre);
        self.quantile_within(q, (q * (1.0 - q) / self.worth + of_centre * of_centre).sqrt())
    }

    /// A quantile; its error is half the distance between those one standard deviation of its place to either side.
    fn quantile(&self, q: f64) -> Estimated {
        self.quantile_within(q, (q * (1.0 - q) / self.worth).sqrt())
    }

    fn quantile_within(&self, q: f64, spread: f64) -> Estimated {
        let at = |q: f64| self.at(q.clamp(0.0, 1.0));
        (at(q), 0.5 * (at(q + spread) - at(q - spread)))
    }

    /// Type 7 where all draws count alike; else the first value at which so much of the mass is reached.
    fn at(&self, q: f64) -> f64 {
        if self.even {
            return quantile_sorted(&self.values, q);
        }
        self.values[self.mass.partition_point(|mass| *mass < q).min(self.values.len() - 1)]
    }

    /// The shortest interval between two draws that has so much of the mass. Its ends are those of an interval with unequal tails, and
    /// have the errors of those quantiles: the place where it is shortest varies more slowly than they do.
    fn shortest(&self, level: f64) -> (Estimated, Estimated) {
        let (mut best, mut from) = ((f64::INFINITY, 0, self.values.len() - 1), 0);
        for to in 0..self.values.len() {
            let before = |i: usize| if i == 0 { 0.0 } else { self.mass[i - 1] };
            while from < to && self.mass[to] - before(from + 1) >= level - 1e-12 {
                from += 1;
            }
            let width = self.values[to] - self.values[from];
            if self.mass[to] - before(from) >= level - 1e-12 && width < best.0 {
                best = (width, from, to);
            }
        }
        let (_, from, to) = best;
        let error = |i: usize| self.quantile(self.mass[i]).1;
        ((self.values[from], error(from)), (self.values[to], error(to)))
    }
}

/// The tail probability of intervals in which all parameters lie at once in `level` of the draws: by the ranks of the draws (Besag,
/// Green, Higdon and Mengersen 1995, section 6.3). Parameters that do not vary are in theirs always.
fn joint_tail(columns: &[Vec<f64>], level: f64) -> f64 {
    let n = columns[0].len();
    let mut depth = vec![usize::MAX; n];
    for column in columns {
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|&a, &b| column[a].total_cmp(&column[b]));
        if column[order[0]] == column[order[n - 1]] {
            continue;
        }
        for (rank, &i) in order.iter().enumerate() {
            depth[i] = depth[i].min(rank.min(n - 1 - rank));
        }
    }
    depth.sort_unstable();
    // So many draws may lie outside.
    let outside = ((1.0 - level) * n as f64).floor() as usize;
    let rank = depth[outside.min(n - 1)].min(n / 2);
    rank as f64 / (n as f64 - 1.0).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Seed, log_uniform};

    fn even(values: Vec<f64>) -> Sorted {
        let n = values.len();
        Sorted::new(values, &vec![1.0 / n as f64; n], n as f64)
    }

    /// Exp(1) has its highest density at 0: the shortest interval of probability p is (0, −log(1 − p)).
    #[test]
    fn the_shortest_interval_of_exponentials_begins_at_zero() {
        let mut rng = Seed(5).stream(Purpose::Auxiliary, 0, 0);
        let sorted = even((0..40_000).map(|_| -log_uniform(&mut rng)).collect());
        let ((lower, _), (upper, error)) = sorted.shortest(0.9);
        assert!(lower < 0.01, "{lower}");
        assert!((upper + 0.1f64.ln()).abs() < 4.0 * error + 0.02, "{upper} ± {error}");
        let equal = sorted.quantile(0.95).0 - sorted.quantile(0.05).0;
        assert!(upper - lower < equal);
    }

    /// k independent parameters: intervals of probability q each hold all with q^k.
    #[test]
    fn simultaneous_intervals_of_independent_parameters_have_a_known_tail() {
        let mut rng = Seed(6).stream(Purpose::Auxiliary, 0, 0);
        let columns: Vec<Vec<f64>> =
            (0..5).map(|_| (0..20_000).map(|_| log_uniform(&mut rng)).collect()).collect();
        let tail = joint_tail(&columns, 0.9);
        let expected = 0.5 * (1.0 - 0.9f64.powf(0.2));
        assert!((tail - expected).abs() < 0.1 * expected, "{tail}, not {expected}");
        let interval = |c: &Vec<f64>| (even(c.clone()).at(tail), even(c.clone()).at(1.0 - tail));
        let intervals: Vec<(f64, f64)> = columns.iter().map(interval).collect();
        let lies = |i: &usize| {
            columns.iter().zip(&intervals).all(|(c, (low, high))| (*low..=*high).contains(&c[*i]))
        };
        let share = (0..20_000).filter(lies).count() as f64 / 20_000.0;
        assert!((share - 0.9).abs() < 1e-3, "{share}");
        // One parameter alone: the interval with equal tails.
        assert!((joint_tail(&columns[..1], 0.9) - 0.05).abs() < 1e-3);
        // A parameter that does not vary, or is the same as another, asks for nothing.
        let twins = [columns[0].clone(), columns[0].clone(), vec![1.0; 20_000]];
        assert_eq!(joint_tail(&twins, 0.9), joint_tail(&columns[..1], 0.9));
    }

    /// Nothing to correct is the interval with equal tails.
    #[test]
    fn corrected_quantiles_are_where_the_formula_says() {
        let sorted = even((0..=1000).map(|i| f64::from(i) / 1000.0).collect());
        let by = |estimate, acceleration| Correction { estimate, acceleration };
        let plain = sorted.corrected(0.05, by(0.5, 0.0));
        assert!((plain.0 - 0.05).abs() < 1e-9, "{plain:?}");
        // A uniform on a grid: its quantiles are its probabilities.
        let z0 = normal_quantile(0.6);
        for (tail, a) in [(0.05, 0.0), (0.95, 0.0), (0.05, 0.05), (0.95, 0.05)] {
            let z = z0 + normal_quantile(tail);
            let expected = normal_cdf(z0 + z / (1.0 - a * z));
            let (found, error) = sorted.corrected(tail, by(0.6, a));
            assert!((found - expected).abs() < 2e-3, "{tail}, {a}: {found}, not {expected}");
            assert!(error > sorted.quantile(expected).1, "z₀ has an error, too");
        }
        assert!(sorted.corrected(0.05, by(2.0, 0.0)).0.is_nan(), "no draw beyond the estimate");
    }

    #[test]
    fn weights_stand_for_repeated_draws() {
        let repeated = even([vec![1.0; 10], vec![2.0; 60], vec![5.0; 30]].concat());
        let weighted = Sorted::new(vec![5.0, 1.0, 2.0], &[0.3, 0.1, 0.6], 100.0);
        for q in [0.05, 0.3, 0.65, 0.9] {
            assert_eq!(weighted.at(q), repeated.at(q), "{q}");
        }
        assert_eq!(weighted.shortest(0.6).0.0, 2.0);
        let question = Question {
            interval: Interval::Hdi,
            level: 0.9,
            above: Some(1.5),
            between: Some(0.0..=2.0),
            corrections: BTreeMap::new(),
        };
        let answer = weighted.answer("x", None, &question, None);
        let (p, error) = answer.above.unwrap();
        assert!((p - 0.9).abs() < 1e-12 && (error - 0.03).abs() < 1e-12);
        assert!((answer.between.unwrap().0 - 0.7).abs() < 1e-12);
    }
}

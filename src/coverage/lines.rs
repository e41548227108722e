//! Outcomes of all data sets as numbers, each with its Monte Carlo error.

use serde::{Deserialize, Serialize};

use super::{Outcome, Plan, Truth};
use crate::math::{mean, sd};
use crate::samples::{Interval, quoted};

/// What the numbers are of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    pub name: String,
    pub method: String,
    pub label: String,
    pub seed: u64,
    /// Rows of a data set, and draws on each.
    pub n: usize,
    pub draws: usize,
}

/// `coverage.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Coverage {
    #[serde(flatten)]
    pub settings: Settings,
    /// Data sets, and those of them that the experiment has no answer for.
    pub datasets: usize,
    pub without_answer: usize,
    /// Why, of the first of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// Data sets some of whose draws are none, and those whose variational fit did not converge.
    pub with_lost_draws: usize,
    pub not_converged: usize,
    pub truth: Truth,
    pub lines: Vec<Line>,
    /// Intervals that no data set has, which have no line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<String>,
}

/// Intervals of one kind and probability, of one parameter or of all at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    pub interval: String,
    pub level: f64,
    /// `None`: all parameters in theirs at once.
    pub parameter: Option<String>,
    pub truth: Option<f64>,
    /// Answered data sets that have no such interval, and count for nothing here.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub without_interval: usize,
    pub coverage: f64,
    pub mcse_coverage: f64,
    /// How often the truth is below the interval, and above it.
    pub below: Option<f64>,
    pub above: Option<f64>,
    pub width: Option<f64>,
    pub mcse_width: Option<f64>,
    /// Winkler's: the width, and 2/(1 − level) times the distance of a truth that is outside.
    pub score: Option<f64>,
    pub mcse_score: Option<f64>,
    /// Mean of the posterior means less the truth; their standard deviation over data sets; and that of the posterior, on average.
    pub bias: Option<f64>,
    pub mcse_bias: Option<f64>,
    pub sampling_sd: Option<f64>,
    pub posterior_sd: Option<f64>,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The interval score of an interval of probability `level` (Winkler 1972; Gneiting and Raftery 2007, section 6.2).
pub fn winkler((lower, upper): (f64, f64), truth: f64, level: f64) -> f64 {
    let outside = (lower - truth).max(0.0) + (truth - upper).max(0.0);
    (upper - lower) + 2.0 / (1.0 - level) * outside
}

/// A share of so many, with the binomial error; none or all of them say that it is within about 1/m of that, not that it is exact.
fn share(count: usize, of: usize) -> (f64, f64) {
    let (p, m) = (count as f64 / of as f64, of as f64);
    let variance = if count == 0 || count == of { 1.0 / m } else { p * (1.0 - p) };
    (p, (variance / m).sqrt())
}

impl Coverage {
    pub fn new(settings: Settings, plan: &Plan, outcomes: &[Outcome]) -> Coverage {
        let answered: Vec<&Outcome> = outcomes.iter().filter(|o| o.fault.is_none()).collect();
        let (mut lines, mut absent) = (Vec::new(), Vec::new());
        if !answered.is_empty() {
            for (k, (kind, level)) in plan.asked.iter().enumerate() {
                for line in of_kind(&spelled(*kind), *level, k, &plan.truth, &answered) {
                    match line.without_interval < answered.len() {
                        true => lines.push(line),
                        false => {
                            absent.extend(line.parameter.map(|name| format!("{} of {name}", line.interval)))
                        }
                    }
                }
            }
        }
        let fault = outcomes.iter().enumerate().find_map(|(i, o)| Some((i, o.fault.as_ref()?)));
        Coverage {
            settings,
            datasets: outcomes.len(),
            without_answer: outcomes.len() - answered.len(),
            fault: fault.map(|(i, why)| format!("data set {}: {why}", i + 1)),
            with_lost_draws: answered.iter().filter(|o| o.lost > 0).count(),
            not_converged: answered.iter().filter(|o| o.open).count(),
            truth: plan.truth.clone(),
            lines,
            absent,
        }
    }

    /// `coverage.csv`.
    pub fn table(&self) -> String {
        let mut out = String::from(
            "interval,level,parameter,truth,datasets,coverage,mcse_coverage,below,above,width,mcse_width,score,mcse_score,bias,\
             mcse_bias,sampling_sd,posterior_sd\n",
        );
        let cell =
            |value: Option<f64>| value.filter(|v| v.is_finite()).map_or(String::new(), |v| format!("{v:?}"));
        for line in &self.lines {
            let numbers = [
                Some(line.coverage),
                Some(line.mcse_coverage),
                line.below,
                line.above,
                line.width,
                line.mcse_width,
                line.score,
                line.mcse_score,
                line.bias,
                line.mcse_bias,
                line.sampling_sd,
                line.posterior_sd,
            ];
            out += &format!(
                "{},{:?},{},{},{},{}\n",
                line.interval,
                line.level,
                quoted(line.parameter.as_deref().unwrap_or(ALL)),
                cell(line.truth),
                self.datasets - self.without_answer - line.without_interval,
                numbers.map(cell).join(",")
            );
        }
        out
    }
}

/// What the line of all parameters at once has for a name: no parameter ends so.
pub const ALL: &str = "all__";

/// As it is asked for.
pub fn spelled(kind: Interval) -> String {
    clap::ValueEnum::to_possible_value(&kind).map_or(String::new(), |v| v.get_name().to_owned())
}

fn of_kind(interval: &str, level: f64, k: usize, truth: &Truth, answered: &[&Outcome]) -> Vec<Line> {
    let is_one = |(lower, upper): &(f64, f64)| lower.is_finite() && upper.is_finite();
    let of_parameter = |(j, (name, value)): (usize, &(String, f64))| {
        let known: Vec<&&Outcome> = answered.iter().filter(|o| is_one(&o.ends[k][j])).collect();
        let ends: Vec<(f64, f64)> = known.iter().map(|o| o.ends[k][j]).collect();
        let m = known.len();
        let root = (m as f64).sqrt();
        let averaged = |values: &[f64]| (mean(values), sd(values) / root);
        let below = ends.iter().filter(|(lower, _)| value < lower).count();
        let above = ends.iter().filter(|(_, upper)| value > upper).count();
        let (coverage, mcse_coverage) = share(m - below - above, m);
        let width = averaged(&ends.iter().map(|(lower, upper)| upper - lower).collect::<Vec<_>>());
        let score = averaged(&ends.iter().map(|e| winkler(*e, *value, level)).collect::<Vec<_>>());
        let means: Vec<f64> = known.iter().map(|o| o.mean[j]).collect();
        // A single draw that is a number has no standard deviation.
        let sds: Vec<f64> = known.iter().map(|o| o.sd[j]).filter(|sd| sd.is_finite()).collect();
        let (centre, error) = averaged(&means);
        Line {
            interval: interval.to_owned(),
            level,
            parameter: Some(name.clone()),
            truth: Some(*value),
            without_interval: answered.len() - m,
            coverage,
            mcse_coverage,
            below: Some(share(below, m).0),
            above: Some(share(above, m).0),
            width: Some(width.0),
            mcse_width: Some(width.1),
            score: Some(score.0),
            mcse_score: Some(score.1),
            bias: Some(centre - value),
            mcse_bias: Some(error),
            sampling_sd: Some(sd(&means)),
            posterior_sd: (!sds.is_empty()).then(|| mean(&sds)),
        }
    };
    let mut lines: Vec<Line> = truth.values.iter().enumerate().map(of_parameter).collect();
    let known: Vec<&&Outcome> = answered.iter().filter(|o| o.ends[k].iter().all(is_one)).collect();
    let inside = |o: &&&&Outcome| {
        o.ends[k]
            .iter()
            .zip(&truth.values)
            .all(|((lower, upper), (_, value))| (lower..=upper).contains(&value))
    };
    let (coverage, mcse_coverage) = share(known.iter().filter(inside).count(), known.len());
    lines.push(Line {
        interval: interval.to_owned(),
        level,
        parameter: None,
        truth: None,
        without_interval: answered.len() - known.len(),
        coverage,
        mcse_coverage,
        below: None,
        above: None,
        width: None,
        mcse_width: None,
        score: None,
        mcse_score: None,
        bias: None,
        mcse_bias: None,
        sampling_sd: None,
        posterior_sd: None,
    });
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(lower: f64, upper: f64) -> Outcome {
        Outcome {
            mean: vec![0.5 * (lower + upper); 2],
            sd: vec![1.0; 2],
            ends: vec![vec![(lower, upper), (-9.0, 9.0)]],
            lost: 0,
            open: false,
            fault: None,
        }
    }

    /// Three data sets by hand: below, inside, above the truth 1.
    #[test]
    fn rates_widths_and_scores_are_what_they_are_by_hand() {
        let outcomes = [outcome(1.5, 3.5), outcome(0.0, 2.0), outcome(-4.0, 0.0)];
        let truth = Truth {
            by: "stated".into(),
            rows: None,
            in_units_of_data: false,
            values: vec![("a".into(), 1.0), ("b".into(), 0.0)],
        };
        let lines = of_kind("percentile", 0.9, 0, &truth, &outcomes.iter().collect::<Vec<_>>());
        let [a, b, all] = <[Line; 3]>::try_from(lines).unwrap();
        let third = 1.0 / 3.0;
        assert!((a.coverage - third).abs() < 1e-15 && (all.coverage - third).abs() < 1e-15);
        assert_eq!((a.below, a.above), (Some(third), Some(third)));
        assert!((a.mcse_coverage - (2.0 / 27.0f64).sqrt()).abs() < 1e-15);
        assert!((a.width.unwrap() - 8.0 / 3.0).abs() < 1e-15);
        // 2 + 20 · 0.5, 2, and 4 + 20 · 1.
        assert!((a.score.unwrap() - (12.0 + 2.0 + 24.0) / 3.0).abs() < 1e-12);
        assert!((a.bias.unwrap() - (2.5 + 1.0 - 2.0) / 3.0 + 1.0).abs() < 1e-15);
        // All inside: the rate is 1, known to about 1/m.
        assert_eq!((b.coverage, b.mcse_coverage), (1.0, third));
        assert_eq!((all.parameter, all.width), (None, None));
    }

    /// A data set whose interval is none counts neither as one that covers nor as one that does not.
    #[test]
    fn what_has_no_interval_counts_for_nothing() {
        let outcomes = [outcome(f64::NAN, f64::NAN), outcome(0.0, 2.0), outcome(1.5, 2.0), outcome(0.5, 3.5)];
        let truth = |values: &[(&str, f64)]| Truth {
            by: "stated".into(),
            rows: None,
            in_units_of_data: false,
            values: values.iter().map(|(name, value)| (name.to_string(), *value)).collect(),
        };
        let all: Vec<&Outcome> = outcomes.iter().collect();
        let lines = of_kind("bca", 0.9, 0, &truth(&[("a", 1.0), ("b", 0.0)]), &all);
        let [a, b, both] = <[Line; 3]>::try_from(lines).unwrap();
        assert_eq!((a.without_interval, b.without_interval, both.without_interval), (1, 0, 1));
        assert!((a.coverage - 2.0 / 3.0).abs() < 1e-15 && (both.coverage - 2.0 / 3.0).abs() < 1e-15);
        assert_eq!(b.coverage, 1.0);
        assert!((a.width.unwrap() - 5.5 / 3.0).abs() < 1e-15, "{a:?}");
        assert!([a.bias, a.sampling_sd, a.score].iter().all(|v| v.unwrap().is_finite()));
    }
}

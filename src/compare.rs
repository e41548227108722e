//! Runs on the same test rows, compared row by row: what one predicts better than another, and how sure that is.

use std::collections::BTreeSet;
use std::path::Path;

use rayon::prelude::*;

use crate::config::printable;
use crate::error::{Error, Result};
use crate::evaluate::{Dealing, Means, OnRows, Predictive, jackknife, on_rows, predicts};
use crate::math::{mean, sd};
use crate::model::Response;
use crate::samples::{Kinship, LOG_WEIGHT, Samples};
use crate::store;
use crate::study::{Study, Trial};

/// Draws are dealt out over so many groups, to tell the Monte Carlo error.
const GROUPS: usize = 50;
/// Draws whose densities are held at one time.
const TOGETHER: usize = 64;

/// A number of every test row; higher is better.
#[derive(Clone, Debug)]
pub struct Pointwise {
    pub metric: &'static str,
    /// Of all draws.
    pub scores: Vec<f64>,
    /// Their mean without each group of draws in turn; none where leaving draws out says nothing: of counts.
    left_out: Vec<f64>,
}

/// The test rows of one repeat, and how a run predicts them.
#[derive(Clone, Debug)]
pub struct Scored {
    /// What the rows are known by.
    rows: Vec<u64>,
    /// Where they stand among all rows, from 0, where they were put aside of them.
    places: Option<Vec<usize>>,
    pub metrics: Vec<Pointwise>,
}

/// How much higher the mean score of one run is than that of another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    pub mean: f64,
    /// Standard error over test rows, or over repeats where there are several.
    pub se: f64,
    /// Monte Carlo error; NaN where it is not known.
    pub mcse: f64,
}

/// Scores of the test rows of a repeat, counted from 0.
pub fn score(run: &Path, study: &Study, repeat: usize) -> Result<Scored> {
    let wrong = |what: &str| Error::input(format!("{}: {what}", printable(&run.display().to_string())));
    let trial = study.trial(repeat)?;
    let Some(test) = &trial.test else { return Err(wrong("it has no test rows to compare by")) };
    let (likelihood, predicts) = (trial.model.is_likelihood(), predicts(trial.model.as_ref(), test));
    if !likelihood && !predicts {
        return Err(wrong(
            "its loss is not a likelihood, and predicts no response: there is nothing to compare by",
        ));
    }
    let places = study.test_rows(repeat);
    let mut rows: Vec<u64> = match &test.y {
        Some(y) => y.iter().map(|v| v.to_bits()).collect(),
        None => test.x.iter().flat_map(|row| row.to_vec()).map(f64::to_bits).collect(),
    };
    rows.extend(places.iter().flatten().map(|place| *place as u64));
    let (predictive, means) = predictive(run, &trial, repeat)?;
    let left: Vec<Vec<f64>> = predictive.groups().map(|g| predictive.log_predictive(Some(g))).collect();
    let whole = predictive.log_predictive(None);
    let smooth = |metric, of: &dyn Fn(f64) -> f64| Pointwise {
        metric,
        scores: whole.iter().map(|l| of(*l)).collect(),
        left_out: left.iter().map(|l| mean(&l.iter().map(|l| of(*l)).collect::<Vec<_>>())).collect(),
    };
    let mut metrics = if likelihood { vec![smooth("LPPD", &|l| l)] } else { Vec::new() };
    if let (true, Some(y)) = (predicts, &test.y) {
        let errors =
            |means: Vec<f64>| means.iter().zip(y).map(|(m, y)| -(m - y).powi(2)).collect::<Vec<f64>>();
        let groups = means.filled().len();
        metrics.push(Pointwise {
            metric: "-MSE",
            scores: errors(means.without(None)),
            left_out: (0..groups).map(|g| mean(&errors(means.without(Some(g))))).collect(),
        });
    }
    if let (Some(Response::Class(classes)), Some(y)) = (trial.model.response(), &test.y) {
        let all = means.without(None);
        let likeliest = |p: &[f64]| (0..classes).fold(0, |best, k| if p[k] > p[best] { k } else { best });
        let right = |(p, y): (&[f64], &f64)| if likeliest(p) as f64 == *y { 100.0 } else { 0.0 };
        let scores = all.chunks_exact(classes).zip(y).map(right).collect();
        metrics.push(Pointwise { metric: "accuracy", scores, left_out: Vec::new() });
    }
    if trial.model.response() == Some(Response::Binary) {
        metrics.push(smooth("-MSE", &|l| -(1.0 - libm::exp(l)).powi(2)));
        let y = test.y.as_ref().map(|y| y.to_vec()).unwrap_or_default();
        let right = |(l, y): (&f64, &f64)| {
            let p = libm::exp(*l);
            if (*y == 1.0 && p > 0.5) || (*y != 1.0 && p >= 0.5) { 100.0 } else { 0.0 }
        };
        let scores = whole.iter().zip(&y).map(right).collect();
        metrics.push(Pointwise { metric: "accuracy", scores, left_out: Vec::new() });
    }
    Ok(Scored { rows, places, metrics })
}

/// What the test rows of several repeats are to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounds {
    /// The same ones.
    Same,
    /// Folds of one's own: no row is in two of them.
    Apart,
    /// Put aside at random, anew in each.
    Overlapping,
    /// Rows of data sets of their own.
    Others,
}

impl Rounds {
    pub fn of(repeats: &[Scored]) -> Rounds {
        if repeats.windows(2).all(|pair| pair[0].is_on_the_rows_of(&pair[1])) {
            return Rounds::Same;
        }
        let places: Option<Vec<&Vec<usize>>> = repeats.iter().map(|repeat| repeat.places.as_ref()).collect();
        let Some(places) = places else { return Rounds::Others };
        let mut seen = BTreeSet::new();
        match places.into_iter().flatten().all(|place| seen.insert(place)) {
            true => Rounds::Apart,
            false => Rounds::Overlapping,
        }
    }
}

/// The same test rows in every repeat as one set: the mean of the scores of each.
pub fn averaged(mut repeats: Vec<Scored>) -> Option<Scored> {
    repeats.iter_mut().for_each(|repeat| repeat.places = Some((0..repeat.count()).collect()));
    pooled(&repeats)
}

/// The folds of a cross-validation as one set of test rows, in the order of the data: every row once for each time that they were
/// dealt out, and the mean of these scores.
pub fn pooled(folds: &[Scored]) -> Option<Scored> {
    let places: Vec<&Vec<usize>> = folds.iter().map(|fold| fold.places.as_ref()).collect::<Option<_>>()?;
    let n = 1 + places.iter().copied().flatten().max()?;
    let counts = places.iter().copied().flatten().fold(vec![0.0; n], |mut counts, &i| {
        counts[i] += 1.0;
        counts
    });
    let total: f64 = counts.iter().sum();
    let metric = |k: usize| -> Option<Pointwise> {
        let metric = folds[0].metrics.get(k)?.metric;
        let mut scores = vec![0.0; n];
        let groups = folds[0].metrics[k].left_out.len();
        let mut left_out = vec![0.0; groups];
        for (fold, places) in folds.iter().zip(&places) {
            let of = fold.of(metric)?;
            places.iter().zip(&of.scores).for_each(|(&i, score)| scores[i] += score);
            // Draws of folds are independent of each other: leaving a group out of all of them is leaving it out of their sum.
            let share = places.len() as f64 / total;
            left_out.iter_mut().zip(&of.left_out).for_each(|(sum, left)| *sum += share * left);
        }
        let means = scores.iter().zip(&counts).filter(|(_, count)| **count > 0.0);
        let scores = means.map(|(score, count)| score / count).collect();
        Some(Pointwise { metric, scores, left_out })
    };
    let metrics = (0..folds[0].metrics.len()).map(metric).collect::<Option<_>>()?;
    Some(Scored { rows: folds.iter().flat_map(|fold| fold.rows.clone()).collect(), places: None, metrics })
}

/// The test rows of several groups as one set of rows, group after group.
pub fn joined(groups: Vec<Scored>) -> Scored {
    let total: usize = groups.iter().map(|group| group.count()).sum();
    let metric = |first: &Pointwise| -> Option<Pointwise> {
        let parts: Vec<&Pointwise> =
            groups.iter().map(|group| group.of(first.metric)).collect::<Option<_>>()?;
        let scores: Vec<f64> = parts.iter().flat_map(|part| part.scores.iter().copied()).collect();
        let mut left_out = vec![0.0; first.left_out.len()];
        for part in parts {
            // Draws of groups are as independent of each other as those of folds.
            let share = part.scores.len() as f64 / total as f64;
            left_out.iter_mut().zip(&part.left_out).for_each(|(sum, left)| *sum += share * left);
        }
        Some(Pointwise { metric: first.metric, scores, left_out })
    };
    let metrics = groups[0].metrics.iter().filter_map(metric).collect();
    Scored { rows: groups.iter().flat_map(|group| group.rows.clone()).collect(), places: None, metrics }
}

/// The predictive density of every test row, and the posterior means of what is expected there.
fn predictive(run: &Path, trial: &Trial, repeat: usize) -> Result<(Predictive, Means)> {
    let test = trial.test.as_ref().expect("looked at before");
    let samples = Samples::open(&store::samples_of(run)?)?;
    let relation = store::relation_of(run, &samples);
    let weighted = relation.draws == Kinship::Weighted;
    let statistics: &[&str] = if weighted { &["draw__", LOG_WEIGHT] } else { &["draw__"] };
    let names = trial.model.names();
    let lacking = |name: &String| Error::input(format!("the draws have no parameter {}", printable(name)));
    let names = samples.named(&names).map_err(lacking)?;
    let table = samples.table(statistics, &names, Some(repeat + 1))?;
    let count = table.parameters.first().map_or(0, Vec::len);
    let dealing = match relation.draws {
        Kinship::Chains { .. } => Dealing::InRuns(count as u64),
        _ => Dealing::InTurn,
    };
    let mut predictive = Predictive::new(test.n(), GROUPS, dealing);
    let mut means = Means::new(dealing);
    for first in (0..count).step_by(TOGETHER) {
        let draws = first..(first + TOGETHER).min(count);
        let density = |b: usize| {
            let theta: Vec<f64> = table.parameters.iter().map(|column| column[b]).collect();
            on_rows(trial.model.as_ref(), &theta, test)
        };
        let of_draws: Vec<OnRows> = draws.clone().into_par_iter().map(density).collect();
        for (b, rows) in draws.zip(of_draws) {
            let log_weight = if weighted { table.statistics[1][b] } else { 0.0 };
            let draw = table.statistics[0][b] as u64 - 1;
            predictive.add(draw, log_weight, &rows.log_density);
            means.add(draw, log_weight, &rows.mean);
        }
    }
    if count == 0 {
        let run = printable(&run.display().to_string());
        return Err(Error::input(format!("{run}: it has no draws to compare by: all of them failed")));
    }
    Ok((predictive, means))
}

impl Scored {
    /// Whether both saw the same test rows.
    pub fn is_on_the_rows_of(&self, other: &Scored) -> bool {
        self.rows == other.rows
    }

    /// How many rows there are.
    fn count(&self) -> usize {
        self.metrics.first().map_or(0, |metric| metric.scores.len())
    }

    fn of(&self, metric: &str) -> Option<&Pointwise> {
        self.metrics.iter().find(|m| m.metric == metric)
    }
}

/// By a metric that both runs have, paired over test rows; one entry for each repeat.
pub fn difference(a: &[Scored], b: &[Scored], metric: &str) -> Option<Difference> {
    let pairs: Vec<(&Pointwise, &Pointwise)> =
        a.iter().zip(b).map(|(a, b)| Some((a.of(metric)?, b.of(metric)?))).collect::<Option<_>>()?;
    let by_repeat = |(a, b): &(&Pointwise, &Pointwise)| -> Vec<f64> {
        a.scores.iter().zip(&b.scores).map(|(a, b)| a - b).collect()
    };
    let of_rows: Vec<Vec<f64>> = pairs.iter().map(by_repeat).collect();
    let means: Vec<f64> = of_rows.iter().map(|d| mean(d)).collect();
    let se = match means.len() {
        1 => sd(&of_rows[0]) / (of_rows[0].len() as f64).sqrt(),
        n => sd(&means) / (n as f64).sqrt(),
    };
    // The draws of two runs are independent of each other unless they share their weights, which only makes the error smaller.
    let squares = pairs
        .iter()
        .map(|(a, b)| jackknife(&a.left_out).powi(2) + jackknife(&b.left_out).powi(2))
        .sum::<f64>();
    Some(Difference { mean: mean(&means), se, mcse: squares.sqrt() / pairs.len() as f64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scored(scores: &[f64]) -> Scored {
        let lppd = Pointwise { metric: "LPPD", scores: scores.to_vec(), left_out: vec![0.0, 2.0] };
        Scored { rows: vec![1; scores.len()], places: None, metrics: vec![lppd] }
    }

    /// Two folds are all rows, in their order; dealt out twice, a row has the mean of its scores.
    #[test]
    fn folds_are_one_set_of_rows() {
        let fold =
            |places: &[usize], scores: &[f64]| Scored { places: Some(places.to_vec()), ..scored(scores) };
        let once = [fold(&[0, 3], &[1.0, 4.0]), fold(&[1, 2], &[2.0, 3.0])];
        let all = pooled(&once).unwrap();
        assert_eq!(all.metrics[0].scores, [1.0, 2.0, 3.0, 4.0]);
        // Each fold 0 without the first group, and 2 without the second: so is their mean.
        assert_eq!(all.metrics[0].left_out, [0.0, 2.0]);
        let again = [fold(&[0, 1], &[3.0, 4.0]), fold(&[2, 3], &[5.0, 6.0])];
        let twice = pooled(&[once.to_vec(), again.to_vec()].concat()).unwrap();
        assert_eq!(twice.metrics[0].scores, [2.0, 3.0, 4.0, 5.0]);
        assert!(pooled(&[scored(&[1.0])]).is_none());
    }

    /// Rows that are the same in every repeat are no more rows for that; folds of one's own are all rows.
    #[test]
    fn repeats_are_known_by_their_rows() {
        let at = |places: &[usize], rows: &[u64]| Scored {
            places: Some(places.to_vec()),
            rows: rows.to_vec(),
            ..scored(&vec![1.0; places.len()])
        };
        let (a, b, c) = (at(&[0, 2], &[0, 2]), at(&[1, 3], &[1, 3]), at(&[2, 3], &[2, 3]));
        assert_eq!(Rounds::of(&[a.clone(), a.clone()]), Rounds::Same);
        assert_eq!(Rounds::of(&[a.clone(), b.clone()]), Rounds::Apart);
        assert_eq!(Rounds::of(&[a, b, c]), Rounds::Overlapping);
        let other = |row| Scored { rows: vec![row], ..scored(&[1.0]) };
        assert_eq!(Rounds::of(&[other(1), other(2)]), Rounds::Others);
        let all = averaged(vec![scored(&[1.0, 5.0]), scored(&[3.0, 6.0])]).unwrap();
        assert_eq!(all.metrics[0].scores, [2.0, 5.5]);
    }

    /// Of one row and of three: all rows count alike.
    #[test]
    fn groups_are_one_set_of_rows() {
        let all = joined(vec![scored(&[1.0]), scored(&[2.0, 3.0, 5.0])]);
        assert_eq!(all.metrics[0].scores, [1.0, 2.0, 3.0, 5.0]);
        assert_eq!(all.metrics[0].left_out, [0.0, 2.0]);
        let mut far = scored(&[9.0]);
        far.metrics[0].left_out = vec![4.0, 0.0];
        assert_eq!(joined(vec![far, scored(&[2.0, 3.0, 5.0])]).metrics[0].left_out, [1.0, 1.5]);
    }

    /// Differences 1, 2, 3: mean 2, standard error √(1/3); rows that are hard for both do not count.
    #[test]
    fn differences_are_paired_over_rows() {
        let (a, b) = (scored(&[-1.0, -100.0, 3.0]), scored(&[-2.0, -102.0, 0.0]));
        let found = difference(std::slice::from_ref(&a), std::slice::from_ref(&b), "LPPD").unwrap();
        assert_eq!(found.mean, 2.0);
        assert!((found.se - (1.0f64 / 3.0).sqrt()).abs() < 1e-15);
        // Half of (1 + 1), for each run.
        assert!((found.mcse - 2.0f64.sqrt()).abs() < 1e-15);
        let twice = difference(&[a.clone(), b.clone()], &[b, a], "LPPD").unwrap();
        assert_eq!(twice.mean, 0.0);
        assert!((twice.se - 2.0).abs() < 1e-15, "over repeats: 2 and -2");
        assert!(difference(&[scored(&[1.0])], &[scored(&[1.0])], "accuracy").is_none());
    }
}

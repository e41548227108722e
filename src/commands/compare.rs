//! `npl compare`: which of several runs predicts the same test rows better, and how sure that is.

use std::path::{Path, PathBuf};

use anyhow::Result;
use npl::compare::{Difference, Rounds, Scored, averaged, difference, joined, pooled, score};
use npl::config::printable;
use npl::error::Error;
use npl::math::mean;
use npl::study::Study;

use super::groups::named;
use super::text::{number, render};
use super::{load_run, note, pool, print, reading};
use crate::cli::{CompareArgs, Format};

pub fn compare(args: CompareArgs) -> Result<()> {
    reading(&args.reading);
    if args.runs.len() < 2 {
        return Err(Error::input("comparing takes two runs at least").into());
    }
    let pool = pool(&args.machine)?;
    let studies = args.runs.iter().map(|run| study(run, &args)).collect::<Result<Vec<Study>>>()?;
    let repeats = studies.iter().map(Study::each).min().unwrap_or(1);
    if studies.iter().any(|study| study.each() != repeats) {
        note(&format!("note: the runs have different numbers of repeats; the first {repeats} are compared"));
    }
    let folds = folds(&args.runs, &studies)?;
    let chosen = groups(&args, &studies)?;
    let scored = chosen.iter().map(|&(group, name)| -> Result<Vec<Vec<Scored>>> {
        let of_run = |(run, study): (&PathBuf, &Study)| -> Result<Vec<Scored>> {
            let first = group * study.each();
            (first..first + repeats).map(|round| Ok(pool.install(|| score(run, study, round))?)).collect()
        };
        let scored = args.runs.iter().zip(&studies).map(of_run).collect::<Result<Vec<_>>>()?;
        same_rows(&args.runs, &scored, name)?;
        Ok(scored)
    });
    let scored: Vec<Vec<Vec<Scored>>> = scored.collect::<Result<_>>()?;
    let rounds: Vec<Rounds> = scored.iter().map(|group| Rounds::of(&group[0])).collect();
    // What the repeats of all groups are.
    let rounds = if rounds.iter().all(|r| *r == rounds[0]) { rounds[0] } else { Rounds::Overlapping };
    let one = |run: Vec<Scored>| -> Vec<Scored> {
        let all = match (folds, rounds) {
            (Some(_), _) | (None, Rounds::Apart) => pooled(&run),
            (None, Rounds::Same) => averaged(run.clone()),
            (None, _) => None,
        };
        all.map_or(run, |all| vec![all])
    };
    let scored = scored.into_iter().map(|group| group.into_iter().map(one).collect()).collect();
    let scored = together(scored);
    let over = match folds {
        Some(folds) if repeats > folds => {
            format!("rows, held out in {folds} folds {} times", repeats / folds)
        }
        Some(folds) => format!("rows, each held out in one of {folds} folds"),
        None if repeats == 1 => "test rows".into(),
        None => match rounds {
            Rounds::Same => format!("test rows, the same in {repeats} repeats"),
            Rounds::Apart => format!("rows, each held out in one of {repeats} repeats"),
            Rounds::Overlapping | Rounds::Others => format!("{repeats} repeats"),
        },
    };
    let mut out = String::new();
    let mut table: Vec<Vec<String>> =
        vec![["run", "metric", "value", "best minus this", "se", "mcse"].map(String::from).to_vec()];
    let mut sentences = Vec::new();
    let mut compared = false;
    for metric in scored[0][0].metrics.iter().map(|m| m.metric) {
        let Some(values) = scored.iter().map(|run| value(run, metric)).collect::<Option<Vec<f64>>>() else {
            continue;
        };
        compared = true;
        let best = (0..values.len()).fold(0, |best, i| if values[i] > values[best] { i } else { best });
        let from = |i: usize| difference(&scored[best], &scored[i], metric).filter(|_| i != best);
        let differences: Vec<Option<Difference>> = (0..values.len()).map(from).collect();
        // What is told of runs side by side has the digits of their differences, and four decimals at most.
        let error = |d: &Difference| if d.mcse.is_nan() { d.se } else { d.mcse };
        let errors = differences.iter().flatten().map(error).filter(|error| *error > 0.0);
        let error = errors.fold(f64::INFINITY, f64::min).max(1e-3);
        for ((i, run), from) in args.runs.iter().enumerate().zip(differences) {
            table.push(row(run, metric, (values[i], error), from, args.format));
            sentences.extend(from.map(|from| sentence(&args.runs[best], run, metric, from, &over)));
        }
    }
    if !compared {
        let message = "the runs have no metric in common: log predictive densities are of likelihoods, squared errors of what is predicted";
        return Err(Error::input(message).into());
    }
    out += &render(&table, args.format);
    if matches!(args.format, Format::Text | Format::Markdown) {
        let overlaps = repeats > 1 && folds.is_none() && rounds == Rounds::Overlapping;
        let overlap = if overlaps { ", whose test rows overlap" } else { "" };
        out += &format!("(se: standard error over {over}{overlap}; mcse: Monte Carlo error)\n\n");
        sentences.iter().for_each(|line| out += &format!("{line}\n"));
    }
    print(out.as_bytes())
}

fn study(run: &Path, args: &CompareArgs) -> Result<Study> {
    let (_, study) = load_run(run, args.data_dir.as_deref(), &args.machine)?;
    if study.experiment.path.is_some() {
        let message = format!("{}: it is a path; runs of one setting each can be compared", shown(run));
        return Err(Error::input(message).into());
    }
    Ok(study)
}

/// The groups that are compared, from 0, by their names; one without a name where there are none.
fn groups<'a>(args: &CompareArgs, studies: &'a [Study]) -> Result<Vec<(usize, Option<&'a str>)>> {
    let names = studies[0].groups();
    if let Some(i) = studies.iter().position(|study| study.groups() != names) {
        let message = format!(
            "{} and {} have other groups: runs are compared on the same rows; give both the same `data.by`",
            shown(&args.runs[0]),
            shown(&args.runs[i])
        );
        return Err(Error::input(message).into());
    }
    let all = names.iter().enumerate().map(|(g, name)| (g, Some(*name)));
    Ok(match &args.group {
        Some(name) => all.skip(named(&names, name, "--group")?).take(1).collect(),
        None if names.is_empty() => vec![(0, None)],
        None => all.collect(),
    })
}

/// Groups of runs as runs: the rows of all groups together, repeat by repeat.
fn together(groups: Vec<Vec<Vec<Scored>>>) -> Vec<Vec<Scored>> {
    let of_run = |run: usize| -> Vec<Scored> {
        let repeats = groups[0][run].len();
        (0..repeats).map(|r| joined(groups.iter().map(|group| group[run][r].clone()).collect())).collect()
    };
    (0..groups[0].len()).map(of_run).collect()
}

/// How many folds the runs have, if they are cross-validations; rows that were put aside otherwise are other rows.
fn folds(runs: &[PathBuf], studies: &[Study]) -> Result<Option<usize>> {
    let of = |study: &Study| study.experiment.evaluate.folds.map(|folds| folds.get());
    let first = of(&studies[0]);
    match studies.iter().position(|study| of(study) != first) {
        None => Ok(first),
        Some(i) => {
            let message = format!(
                "{} and {} put rows aside in other ways: runs are compared on the same rows; give both the same `evaluate.folds`",
                shown(&runs[0]),
                shown(&runs[i])
            );
            Err(Error::input(message).into())
        }
    }
}

fn shown(run: &Path) -> String {
    printable(&run.display().to_string())
}

/// Scores on different rows are not comparable.
fn same_rows(runs: &[PathBuf], scored: &[Vec<Scored>], group: Option<&str>) -> Result<()> {
    for (run, others) in runs.iter().zip(scored).skip(1) {
        let apart = scored[0].iter().zip(others).position(|(a, b)| !a.is_on_the_rows_of(b));
        if let Some(repeat) = apart {
            let mut place =
                if others.len() > 1 { format!(" in repeat {}", repeat + 1) } else { String::new() };
            group.iter().for_each(|name| place += &format!(" in group \"{}\"", printable(name)));
            let message = format!(
                "{} and {} have other test rows{place}: runs are compared on the same rows; give both the same data, seed and split",
                shown(&runs[0]),
                shown(run)
            );
            return Err(Error::input(message).into());
        }
    }
    Ok(())
}

fn value(run: &[Scored], metric: &str) -> Option<f64> {
    let of = |scored: &Scored| scored.metrics.iter().find(|m| m.metric == metric).map(|m| mean(&m.scores));
    run.iter().map(of).collect::<Option<Vec<f64>>>().map(|values| mean(&values))
}

/// The value of a run with its error.
fn row(
    run: &Path,
    metric: &str,
    (value, error): (f64, f64),
    from: Option<Difference>,
    format: Format,
) -> Vec<String> {
    let people = matches!(format, Format::Text | Format::Markdown);
    let exact = |v: f64| if v.is_nan() { String::new() } else { format!("{v:?}") };
    let mut row = vec![run.display().to_string(), metric.to_owned()];
    match from {
        Some(d) if people => {
            row.extend([number(value, error), number(d.mean, d.se), small(d.se), small(d.mcse)])
        }
        None if people => row.extend([number(value, error), "best".into(), String::new(), String::new()]),
        Some(d) => row.extend([value, d.mean, d.se, d.mcse].map(exact)),
        None => row.extend([exact(value), exact(0.0), String::new(), String::new()]),
    }
    row
}

/// An error, with two digits.
fn small(value: f64) -> String {
    if value.is_nan() { String::new() } else { number(value, 0.1 * value) }
}

/// What the numbers say, in words.
fn sentence(best: &Path, run: &Path, metric: &str, d: Difference, over: &str) -> String {
    let (best, run) = (shown(best), shown(run));
    if d.mean == 0.0 && d.se == 0.0 {
        return format!("{metric}: {best} and {run} score every row alike.");
    }
    // More draws move the difference by about its Monte Carlo error, and the error over rows not at all.
    if d.mcse > 0.5 * d.mean && d.mean + 2.0 * d.mcse > 2.0 * d.se {
        return format!(
            "{metric}: {best} and {run} cannot be told apart by these draws: the Monte Carlo error is too large; more draws may."
        );
    }
    match d.mean / d.se {
        z if z > 2.0 => {
            format!(
                "{metric}: {best} is better than {run} by {} (standard error {} over {over}).",
                number(d.mean, d.se),
                small(d.se)
            )
        }
        _ => format!(
            "{metric}: {best} and {run} cannot be told apart on these rows: {} with standard error {}.",
            number(d.mean, d.se),
            small(d.se)
        ),
    }
}

//! `npl table`: runs side by side, as the paper's tables have them.

use std::path::{Path, PathBuf};

use anyhow::Result;
use npl::config::printable;
use npl::error::Error;
use npl::math::{mean, sd};
use npl::report::{Diagnostics, METRICS, OverRepeats, Report};
use npl::store;
use npl::words::setting;

use super::text::{error, number, percent, render};
use super::{note, note_warnings, print, reading, ways};
use crate::cli::{Format, TableArgs};

pub fn table(args: TableArgs) -> Result<()> {
    reading(&args.reading);
    let reports = args.runs.iter().map(|run| store::read_report(run)).collect::<Result<Vec<_>, _>>()?;
    if args.path {
        return along_path(&args, &reports);
    }
    let reports = labelled(&args.runs, reports);
    if let Some((run, _)) = args.runs.iter().zip(&reports).find(|(_, report)| report.path.is_some()) {
        let run = printable(&run.display().to_string());
        let message = format!(
            "{run} is a path: `npl table {run} --path` has its metrics, `npl summary {run}` the parameters along it"
        );
        return Err(Error::input(message).into());
    }
    let for_programs = matches!(args.format, Format::Csv | Format::Json);
    let rows = if for_programs { long(&reports) } else { side_by_side(&reports) };
    let mut out = render(&rows, args.format);
    let apart = apart(&args.runs, &reports);
    if !for_programs {
        if reports.iter().any(|r| r.each() > 1 && r.folds.is_none()) {
            out += "\nmean ± sd over repeats (standard error of the mean)\n";
        }
        if reports.iter().any(|r| r.folds.is_some()) {
            out += "\nfolds: pooled over the rows held out ± sd over folds (standard error over folds)\n";
        }
        if reports.iter().any(|r| !r.groups.is_empty()) {
            out += "\ngroups: pooled over the test rows of all groups\n";
        }
        out += &apart.map(|why| format!("\nnote: {why}\n")).unwrap_or_default();
        out += &below(&reports);
        return print(out.as_bytes());
    }
    print(out.as_bytes())?;
    apart.iter().for_each(|why| note(&format!("note: {why}")));
    reports.iter().try_for_each(note_warnings)
}

/// Runs of the same name are known by their directories.
fn labelled(runs: &[PathBuf], mut reports: Vec<Report>) -> Vec<Report> {
    let ways = ways(runs);
    let names: Vec<String> = reports.iter().map(|report| report.name.clone()).collect();
    for (i, report) in reports.iter_mut().enumerate() {
        if names.iter().enumerate().any(|(j, name)| j != i && *name == names[i]) {
            report.name = ways[i].clone();
        }
    }
    reports
}

/// Why numbers on test rows cannot be held against each other, if they cannot.
fn apart(runs: &[PathBuf], reports: &[Report]) -> Option<String> {
    let seen: Vec<(&Path, &Report)> = runs.iter().map(PathBuf::as_path).zip(reports).collect();
    let (first, other) = store::saw_different_rows(&seen)?;
    Some(format!(
        "{} and {} saw different splits of the data, or different data: what they score on test rows differs by that, too; \
         `npl compare` compares on the same rows",
        printable(&reports[first].name),
        printable(&reports[other].name)
    ))
}

/// The metric of every setting, and which of them to choose.
fn along_path(args: &TableArgs, reports: &[Report]) -> Result<()> {
    let ([run], [report]) = (&args.runs[..], reports) else {
        return Err(Error::input("--path: one run at a time").into());
    };
    let shown = printable(&run.display().to_string());
    let Some(path) = &report.path else {
        return Err(Error::input(format!("{shown}: the run has no path; `npl table` without --path")).into());
    };
    if let Some(metric) = args.metric.as_ref().filter(|m| METRICS.iter().all(|(name, ..)| name != m)) {
        let known: Vec<&str> = METRICS.iter().map(|(name, ..)| *name).collect();
        let message = format!("--metric {}: there are {}", printable(metric), known.join(", "));
        return Err(Error::input(message).into());
    }
    let Some(tuned) = report.tuned(args.metric.as_deref(), args.simpler) else {
        let message = format!(
            "{shown}: its settings have no such metric: give the experiment test rows, or `evaluate.folds`"
        );
        return Err(Error::input(message).into());
    };
    let for_programs = matches!(args.format, Format::Csv | Format::Json);
    let key = if for_programs { "value".to_owned() } else { path.parameter.clone() };
    let mut rows: Vec<Vec<String>> =
        vec![["setting".into(), key, tuned.title.into(), "se".into(), "mcse".into(), "pick".into()].to_vec()];
    for (t, metric) in tuned.values.iter().enumerate() {
        let pick = match (t == tuned.best, Some(t) == tuned.simplest) {
            (true, true) => "best, simplest",
            (true, false) => "best",
            (false, true) => "simplest",
            (false, false) => "",
        };
        let error = metric.se.or(metric.mcse).unwrap_or(f64::NAN);
        let optional = |v: Option<f64>| v.map(|v| format!("{v:?}")).unwrap_or_default();
        let small = |v: Option<f64>| v.map(|v| number(v, 0.1 * v)).unwrap_or_default();
        let numbers = match for_programs {
            true => [format!("{:?}", metric.mean), optional(metric.se), optional(metric.mcse)],
            false => [number(metric.mean, 0.1 * error), small(metric.se), small(metric.mcse)],
        };
        let value = if for_programs { path.values[t].clone() } else { setting(&path.values[t]) };
        let front = [(t + 1).to_string(), value];
        rows.push(front.into_iter().chain(numbers).chain([pick.to_owned()]).collect());
    }
    let mut out = render(&rows, args.format);
    if !for_programs {
        let (key, value) = (printable(&path.parameter), |t: usize| printable(&setting(&path.values[t])));
        out += &format!("\nbest {}: {key} = {}\n", tuned.title, value(tuned.best));
        out += &match (tuned.simplest, tuned.simpler) {
            (Some(t), Some(simpler)) => format!(
                "simplest within one standard error of it: {key} = {} ({} is simpler)\n",
                value(t),
                simpler.name()
            ),
            (None, Some(_)) => {
                "no standard error, and so no simplest within one: set `evaluate.folds`\n".to_owned()
            }
            (_, None) => {
                format!("which values of {key} are simpler is not known: --simpler larger or smaller\n")
            }
        };
    }
    print(out.as_bytes())?;
    note_warnings(report)
}

/// The warnings of all runs.
fn below(reports: &[Report]) -> String {
    let line = |report: &Report| {
        let name = printable(&report.name);
        let lines = report.warnings.iter().map(|w| format!("warning: {name}: {}\n", printable(w)));
        lines.collect::<String>()
    };
    let lines: String = reports.iter().map(line).collect();
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}

/// A column per run.
fn side_by_side(reports: &[Report]) -> Vec<Vec<String>> {
    let row = |title: &str, cell: &dyn Fn(&Report) -> String| -> Vec<String> {
        std::iter::once(title.to_owned()).chain(reports.iter().map(cell)).collect()
    };
    let metric =
        |name: &'static str| move |r: &Report| r.metrics.get(name).map_or("/".into(), |m| cell(name, m));
    let collapse = |r: &Report| {
        let shares: Option<Vec<f64>> =
            r.repeats.iter().map(|r| r.diagnostics.collapse.map(|c| c.at_floor)).collect();
        shares.map_or("/".into(), |s| percent(mean(&s)))
    };
    let mut rows = vec![
        row("", &|r| r.name.clone()),
        row("method", &|r| r.label.clone()),
        row("repeats", &|r| match r.folds {
            Some(folds) if r.each() > folds => format!("{folds} folds x {}", r.each() / folds),
            Some(folds) => format!("{folds} folds"),
            None => r.each().to_string(),
        }),
        row("groups", &|r| if r.groups.is_empty() { "/".into() } else { r.groups.len().to_string() }),
        row("draws", &|r| r.repeats.first().map_or(0, |r| r.draws).to_string()),
        row("LPPD", &metric("lppd")),
        row("MSE", &metric("mse")),
        row("accuracy %", &metric("accuracy")),
        row("sparsity %", &metric("sparsity")),
        row("AUC", &metric("auc")),
        row("log loss", &metric("log_loss")),
        row("seconds", &metric("seconds")),
        row("failed", &|r| r.lost().to_string()),
    ];
    let worst = |f: fn(&Diagnostics) -> Option<f64>, pick: fn(f64, f64) -> f64, digits: usize| {
        move |r: &Report| {
            let values = r.repeats.iter().filter_map(|r| f(&r.diagnostics));
            match values.reduce(pick) {
                None => "/".into(),
                Some(v) if v.is_nan() => "unknown".into(),
                Some(v) => format!("{v:.digits$}"),
            }
        }
    };
    rows.extend([
        row("R-hat at most", &worst(|d| d.chains.as_ref().map(|c| c.max_rhat), f64::max, 3)),
        row("ESS at least", &worst(|d| d.chains.as_ref().map(|c| c.min_ess_bulk), f64::min, 0)),
        row("divergences", &worst(|d| d.chains.as_ref().map(|c| c.divergences as f64), |a, b| a + b, 0)),
        row("ESS of weights", &|r| {
            let sizes = r.repeats.iter().filter_map(|r| r.diagnostics.importance.map(|w| w.ess));
            let sizes: Vec<f64> = sizes.collect();
            match sizes.len() {
                0 => "/".into(),
                1 => format!("{:.2}", sizes[0]),
                _ => format!("{:.2} ± {:.2}", mean(&sizes), sd(&sizes)),
            }
        }),
    ]);
    rows.retain(|row| row[1..].iter().any(|cell| cell != "/"));
    if reports.iter().any(|r| r.repeats.iter().any(|r| r.diagnostics.collapse.is_some())) {
        rows.push(row("on the floor", &collapse));
    }
    rows
}

fn cell(name: &str, m: &OverRepeats) -> String {
    let digits = if matches!(name, "seconds" | "accuracy" | "sparsity") { 2 } else { 4 };
    match (m.sd, m.se, m.mcse) {
        (Some(sd), Some(se), _) => format!("{:.digits$} ± {sd:.digits$} ({se:.digits$})", m.mean),
        (_, _, Some(mcse)) => format!("{:.digits$} (mcse {})", m.mean, error(mcse, 1)),
        _ => format!("{:.digits$}", m.mean),
    }
}

/// A line per run and metric, for programs.
fn long(reports: &[Report]) -> Vec<Vec<String>> {
    let titles = ["run", "method", "label", "metric", "repeats", "mean", "sd", "se", "mcse"];
    let mut rows = vec![titles.map(String::from).to_vec()];
    let optional = |v: Option<f64>| v.map(|v| format!("{v:?}")).unwrap_or_default();
    for report in reports {
        for (name, m) in &report.metrics {
            rows.push(vec![
                report.name.clone(),
                report.method.clone(),
                report.label.clone(),
                name.clone(),
                m.repeats.to_string(),
                format!("{:?}", m.mean),
                optional(m.sd),
                optional(m.se),
                optional(m.mcse),
            ]);
        }
    }
    rows
}

//! `npl table`: runs side by side, as the paper's tables have them.

use anyhow::Result;
use npl::config::printable;
use npl::error::Error;
use npl::math::{mean, sd};
use npl::report::{Diagnostics, OverRepeats, Report};
use npl::store;

use super::text::{percent, render};
use super::{note_warnings, print, reading};
use crate::cli::{Format, TableArgs};

pub fn table(args: TableArgs) -> Result<()> {
    reading(&args.reading);
    let reports = args.runs.iter().map(|run| store::read_report(run)).collect::<Result<Vec<_>, _>>()?;
    if let Some((run, _)) = args.runs.iter().zip(&reports).find(|(_, report)| report.path.is_some()) {
        let run = printable(&run.display().to_string());
        let message = format!("{run} is a path: `npl summary {run}`, or its report.csv, has its settings");
        return Err(Error::input(message).into());
    }
    let for_programs = matches!(args.format, Format::Csv | Format::Json);
    let rows = if for_programs { long(&reports) } else { side_by_side(&reports) };
    let mut out = render(&rows, args.format);
    if !for_programs && reports.iter().any(|r| r.repeats.len() > 1) {
        out += "\nmean ± sd over repeats (standard error of the mean)\n";
    }
    if !for_programs {
        out += &below(&reports);
        return print(out.as_bytes());
    }
    print(out.as_bytes())?;
    reports.iter().try_for_each(note_warnings)
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
        row("repeats", &|r| r.repeats.len().to_string()),
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
            values.reduce(pick).map_or("/".into(), |v| format!("{v:.digits$}"))
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
        (_, _, Some(mcse)) => format!("{:.digits$} (mcse {mcse:.0e})", m.mean),
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

//! What BC and BCa intervals are corrected by: the estimate at equal weights, and how much every row moves it.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use npl::config::printable;
use npl::error::Error;
use npl::influence::acceleration;
use npl::report::Report;
use npl::samples::{Correction, Interval, Relation};
use npl::store;

use crate::cli::{SummaryArgs, Units};

/// The estimate at equal weights of the repeat that is summarised; none where draws are of several, or are told in other units.
pub fn estimate(args: &SummaryArgs, report: &Report) -> BTreeMap<String, f64> {
    let repeat = match (args.repeat, &report.repeats[..]) {
        (Some(repeat), all) => all.get(repeat.wrapping_sub(1)),
        (None, [only]) => Some(only),
        (None, _) => None,
    };
    let changed = args.units != Units::Model || args.ratios || args.relabel;
    repeat.filter(|_| !changed).map(|repeat| repeat.estimate.clone()).unwrap_or_default()
}

/// Of these parameters; refused, with the reason, where corrected intervals mean nothing.
pub fn corrections(
    args: &SummaryArgs,
    report: &Report,
    relation: Relation,
    chosen: &[String],
) -> Result<BTreeMap<String, Correction>> {
    let kind = match args.interval {
        Some(Interval::Bc) => "bc",
        Some(Interval::Bca) => "bca",
        _ => return Ok(BTreeMap::new()),
    };
    let refuse = |why: &str| {
        let run = printable(&args.run.display().to_string());
        Err(Error::input(format!("{run}: --interval {kind}: {why}")).into())
    };
    if !matches!(report.method.as_str(), "npl" | "mdp-npl") {
        return refuse(
            "it corrects draws of the bootstrap towards the estimate at equal weights, and these are others",
        );
    }
    if report.method == "mdp-npl" || alpha(&args.run) > 0.0 {
        return refuse(
            "with a prior of weight alpha > 0 draws are centred between the data and the prior, not on the estimate that they \
             would be corrected towards",
        );
    }
    if relation.components.is_some_and(|components| components.count() > 1) {
        return refuse(
            "the loss of a mixture has several modes, and its draws no single estimate that they spread around",
        );
    }
    if args.units != Units::Model || args.ratios || args.relabel {
        return refuse(
            "the estimate is kept in the units of the model: leave out --units, --ratios and --relabel",
        );
    }
    if report.repeats.len() > 1 && args.repeat.is_none() {
        return refuse("draws of several repeats have several estimates: choose one with --repeat");
    }
    let estimate = estimate(args, report);
    if estimate.is_empty() {
        return refuse(
            "the run has no estimate at equal weights: it was made by an earlier version of npl, or none was found",
        );
    }
    let accelerations = match args.interval {
        Some(Interval::Bca) if args.repeat.is_some_and(|repeat| repeat > 1) => {
            return refuse("how much rows move the estimate is kept of the first repeat: --repeat 1");
        }
        Some(Interval::Bca) => match accelerations(&args.run) {
            Some(found) => found,
            None => {
                return refuse(
                    "it needs to know how much each row moves the estimate: run with `output.influence = true`",
                );
            }
        },
        _ => estimate.keys().map(|name| (name.clone(), 0.0)).collect(),
    };
    let mut found = BTreeMap::new();
    for name in chosen {
        match (estimate.get(name), accelerations.get(name)) {
            (Some(&estimate), Some(&acceleration)) => {
                found.insert(name.clone(), Correction { estimate, acceleration });
            }
            _ => {
                let name = printable(name);
                return refuse(&format!("nothing of the kind is kept of {name}: choose others with --only"));
            }
        }
    }
    Ok(found)
}

fn alpha(run: &Path) -> f64 {
    let text = store::file_of(run, store::CONFIG).ok().and_then(|file| std::fs::read_to_string(file).ok());
    let config: toml::Table = text.and_then(|text| text.parse().ok()).unwrap_or_default();
    let alpha = config.get("prior").and_then(|prior| prior.get("alpha"));
    alpha.and_then(|a| a.as_float().or(a.as_integer().map(|a| a as f64))).unwrap_or(0.0)
}

/// By the influence of the rows, of every parameter of the model.
fn accelerations(run: &Path) -> Option<BTreeMap<String, f64>> {
    if !store::read_manifest(run).ok()?.outputs.contains_key(store::INFLUENCE) {
        return None;
    }
    let mut reader = csv::Reader::from_path(store::file_of(run, store::INFLUENCE).ok()?).ok()?;
    let names: Vec<String> = reader.headers().ok()?.iter().map(String::from).collect();
    let mut columns: Vec<Vec<f64>> = vec![Vec::new(); names.len()];
    for record in reader.records() {
        for (column, cell) in columns.iter_mut().zip(record.ok()?.iter()) {
            column.push(cell.parse().ok()?);
        }
    }
    Some(names.into_iter().zip(columns.iter().map(|column| acceleration(column))).collect())
}

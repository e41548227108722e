//! What BC and BCa intervals are corrected by: the estimate at equal weights, and how much every row moves it.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use npl::config::printable;
use npl::error::Error;
use npl::influence::acceleration;
use npl::report::{Influences, Report};
use npl::samples::{Correction, Interval, uncorrectable};
use npl::store;

use super::summary::Told;

/// The estimate at equal weights of the repeat that is summarised, as its draws are told; none where draws are of several, or have other
/// labels. The report is that of rounds from the `first` on.
pub fn estimate(told: &Told, report: &Report, first: usize) -> BTreeMap<String, f64> {
    let args = told.args;
    let repeat = match (args.repeat, &report.repeats[..]) {
        (Some(repeat), all) => all.get(repeat.wrapping_sub(1)),
        (None, [only]) => Some(only),
        (None, _) => None,
    };
    let Some(repeat) = repeat.filter(|repeat| !args.relabel && !repeat.estimate.is_empty()) else {
        return BTreeMap::new();
    };
    let find = |name: &String| repeat.estimate.get(name).copied().unwrap_or(f64::NAN);
    let mut theta: Vec<f64> = told.parameters.iter().map(find).collect();
    told.units.iter().for_each(|units| units.apply(first + repeat.repeat.saturating_sub(1), &mut theta));
    told.names().into_iter().zip(theta).filter(|(_, value)| value.is_finite()).collect()
}

/// Of these parameters; refused, with the reason, where corrected intervals mean nothing.
pub fn corrections(told: &Told, report: &Report, first: usize) -> Result<BTreeMap<String, Correction>> {
    let Told { args, relation, chosen, .. } = told;
    let kind = match args.interval {
        Some(Interval::Bc) => "bc",
        Some(Interval::Bca) => "bca",
        _ => return Ok(BTreeMap::new()),
    };
    let refuse = |why: &str| {
        let run = printable(&args.run.display().to_string());
        Err(Error::input(format!("{run}: --interval {kind}: {why}")).into())
    };
    if let Some(why) = uncorrectable(&report.method, alpha(&args.run), relation) {
        return refuse(why);
    }
    if args.relabel {
        return refuse("the estimate is kept with the labels that it was found with: leave out --relabel");
    }
    if report.repeats.len() > 1 && args.repeat.is_none() {
        return refuse("draws of several repeats have several estimates: choose one with --repeat");
    }
    let estimate = estimate(told, report, first);
    if estimate.is_empty() {
        return refuse(
            "the run has no estimate at equal weights: it was made by an earlier version of npl, or none was found",
        );
    }
    let accelerations = match args.interval {
        Some(Interval::Bca) if args.repeat.is_some_and(|repeat| repeat > 1) => {
            return refuse("how much rows move the estimate is kept of the first repeat: --repeat 1");
        }
        Some(Interval::Bca) => match accelerations(report, told, first, &estimate) {
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

/// By the influence of the rows, of everything that is told.
fn accelerations(
    report: &Report,
    told: &Told,
    first: usize,
    estimate: &BTreeMap<String, f64>,
) -> Option<BTreeMap<String, f64>> {
    let (run, group) = (&told.args.run, report.repeats.first()?.group.as_deref());
    if !store::read_manifest(run).ok()?.outputs.contains_key(store::INFLUENCE) {
        return None;
    }
    let (design, kept) = Influences::read(&store::file_of(run, store::INFLUENCE).ok()?, group)?;
    let n = kept.first()?.1.len();
    let names = told.names();
    let at: Vec<f64> = names.iter().map(|name| estimate.get(name).copied().unwrap_or(f64::NAN)).collect();
    let of = |name: &String| kept.iter().find(|(column, _)| column == name).map(|(_, column)| column);
    let columns: Vec<Option<&Vec<f64>>> = told.parameters.iter().map(of).collect();
    let mut moved = vec![vec![0.0; n]; names.len()];
    for i in 0..n {
        let mut row: Vec<f64> =
            columns.iter().map(|column| column.map_or(f64::NAN, |column| column[i])).collect();
        told.units.iter().for_each(|units| units.carry(first, &at, &mut row));
        moved.iter_mut().zip(row).for_each(|(column, value)| column[i] = value);
    }
    let found = names.into_iter().zip(moved.iter().map(|column| acceleration(column, &design)));
    Some(found.filter(|(_, acceleration)| acceleration.is_finite()).collect())
}

//! `npl verify`: some draws of a finished run made again, and compared bit by bit.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use anyhow::Result;
use npl::config::printable;
use npl::error::Error;
use npl::method::Unit;
use npl::rng::{Purpose, Seed, drawn_seed};
use npl::run::Run;
use npl::samples::{Sample, Samples};
use npl::store;
use npl::study::Study;
use rand::RngExt;

use super::stop::{Leaves, Minder};
use super::{load_run, note, pool, print};
use crate::cli::VerifyArgs;

pub fn verify(args: VerifyArgs) -> Result<()> {
    let shown = printable(&args.run.display().to_string());
    let manifest = store::read_manifest(&args.run)?;
    let damaged: Vec<String> =
        manifest.outputs.keys().filter_map(|name| store::damage(&args.run, &manifest, name)).collect();
    if !damaged.is_empty() {
        damaged.iter().for_each(|why| note(why));
        let message = format!("{shown}: {} of {} files are damaged", damaged.len(), manifest.outputs.len());
        return Err(Error::Failed(message).into());
    }
    let (_, study) = load_run(&args.run, args.data_dir.as_deref(), &args.machine)?;
    if manifest.samples.is_empty() {
        let message = format!(
            "{shown} is a path that keeps no draws: its {} files are as they were written, and there is \
                               nothing else to compare",
            manifest.outputs.len()
        );
        return Err(Error::input(message).into());
    }
    let samples = Samples::open(&store::samples_of(&args.run)?)?;
    let picked = pick(&samples, args.draws as usize)?;
    let pool = pool(&args.machine)?;
    let minder = Minder::new(Leaves::default(), None)?;
    let run = Run::new(&study, &pool, &minder.cancel)?;
    let places = places(&study, &run);
    let (mut same, mut differ) = (0, Vec::new());
    let wanted = picked.iter().map(|(round, rows)| (*round, units(&study, rows))).collect();
    let mut again = run.again(&wanted).map_err(|error| minder.explain(error))?;
    for (round, rows) in picked {
        let made = again.remove(&round).unwrap_or_default();
        for row in rows {
            let found = made.iter().find(|sample| sample.index == row.index);
            let (group, repeat) = study.place(round);
            let group = group.map(|group| format!("group \"{}\", ", printable(group))).unwrap_or_default();
            let place = format!("{group}repeat {}, draw {}", repeat + 1, row.index + 1);
            match found.map(|sample| differs(&row, sample, &places)) {
                Some(None) => same += 1,
                Some(Some(what)) => differ.push(format!("{place}: {what}")),
                None => differ.push(format!("{place}: is not made any more")),
            }
        }
    }
    if !differ.is_empty() {
        differ.iter().for_each(|what| note(what));
        let message =
            format!("{shown}: {} of {} draws are not what they were", differ.len(), differ.len() + same);
        return Err(Error::Failed(message).into());
    }
    let files = manifest.outputs.len();
    print(
        format!("{shown}: {files} files as they were written; {same} draws made again, every bit the same\n")
            .as_bytes(),
    )
}

/// So many rows at random, all equally likely, by their rounds from 0: one pass, however many there are.
fn pick(samples: &Samples, count: usize) -> Result<BTreeMap<usize, Vec<Sample>>> {
    let mut rng = Seed(drawn_seed()).stream(Purpose::Auxiliary, 0, 0);
    let (mut picked, mut seen) = (Vec::new(), 0usize);
    samples.each(|repeat, sample| {
        seen += 1;
        let row = (repeat.saturating_sub(1), sample);
        if picked.len() < count {
            picked.push(row);
        } else if let Some(place) = picked.get_mut(rng.random_range(0..seen)) {
            *place = row;
        }
        true
    })?;
    let mut rounds: BTreeMap<usize, Vec<Sample>> = BTreeMap::new();
    picked.into_iter().for_each(|(round, sample)| rounds.entry(round).or_default().push(sample));
    Ok(rounds)
}

/// What has to be made again for these rows.
fn units(study: &Study, rows: &[Sample]) -> Vec<Range<u64>> {
    let length = match study.inference().unit(&study.experiment) {
        Unit::Chain(each) => each,
        Unit::Draws | Unit::Fit => 1,
    };
    let starts: BTreeSet<u64> = rows.iter().map(|row| row.index / length * length).collect();
    starts.into_iter().map(|start| start..start + length).collect()
}

/// Which entries of a draw are in the file.
fn places(study: &Study, run: &Run) -> Vec<usize> {
    match &study.experiment.path {
        None => (0..run.names.len()).collect(),
        Some(path) => path.keep.iter().filter_map(|k| run.names.iter().position(|n| n == k)).collect(),
    }
}

/// In what a row of the file is not the draw; `None` if it is, bit by bit.
fn differs(row: &Sample, draw: &Sample, places: &[usize]) -> Option<String> {
    let same = |a: f64, b: f64| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
    let counts =
        [(row.restart, draw.restart, "restart__"), (row.iterations, draw.iterations, "iterations__")];
    if let Some((_, _, what)) = counts.into_iter().find(|(a, b, _)| a != b) {
        return Some(format!("{what} differs"));
    }
    if row.status != draw.status {
        return Some("status__ differs".into());
    }
    if !same(row.objective, draw.objective) {
        return Some(format!("objective__ was {:?} and is {:?}", row.objective, draw.objective));
    }
    if row.extra.len() != draw.extra.len() || row.extra.iter().zip(&draw.extra).any(|(a, b)| !same(*a, *b)) {
        return Some("a statistic of the method differs".into());
    }
    let mut pairs = row.theta.iter().zip(places.iter().map(|&j| draw.theta[j]));
    let entry = pairs.position(|(a, b)| !same(*a, b));
    entry.map(|j| format!("parameter {} differs", j + 1))
}

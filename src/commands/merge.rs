//! `npl merge`: shards into the run that one machine would have made.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use npl::config::printable;
use npl::error::Error;
use npl::run::{Keeper, Kept, Options, Run, chunk_length, identity, spans, written_identity};
use npl::samples::Sample;
use npl::store::{self, Existing, Identity, RealDisk, RunDir, Shard, Shelf};
use npl::study::Study;

use super::stop::{Leaves, Minder};
use super::{load_resolved, pin_class, pool, print, summary, text};
use crate::cli::MergeArgs;

pub fn merge(args: MergeArgs) -> Result<()> {
    if let ([only], None) = (&args.shards[..], &args.out)
        && store::is_finished(only)
        && !args.force
    {
        let shown = printable(&only.display().to_string());
        let why = match in_shards(only) {
            true => "holds a finished run; --force would join its shards again",
            false => "holds a finished run and no shards: there is nothing to join",
        };
        return Err(Error::input(format!("{shown} {why}")).into());
    }
    let shards = found(&args.shards)?;
    let (first, of) = alike(&shards)?;
    pin_class(&first.simd, &args.machine)?;
    let study = load_resolved(
        "the experiment of the shards",
        &first.config,
        args.data_dir.as_deref(),
        &first.draws.map(|draws| vec![format!("sampler.B={draws}")]).unwrap_or_default(),
    )?;
    let resolved = study.experiment.to_toml()?;
    if let Some(why) = identity(&study, &resolved, first.shard).difference(&first) {
        return Err(Error::input(format!("the shards cannot be joined here: {why}")).into());
    }
    let out = match (&args.out, &args.shards[..]) {
        (Some(out), _) => out.clone(),
        (None, [only]) => only.clone(),
        _ => {
            return Err(
                Error::input("the shards are in several folders; say with --out where the run goes").into()
            );
        }
    };
    let mut kept = scan(&shards)?;
    kept.damaged.iter().for_each(|what| super::note(&format!("{what}, and set aside")));
    let pool = pool(&args.machine)?;
    let minder = Minder::new(Leaves::default(), None)?;
    let run = Run::new(&study, &pool, &minder.cancel)?;
    complete(&study, &run, &kept, of, &shards)?;
    let samples = &study.experiment.output.samples;
    let existing = if args.force { Existing::Replace } else { Existing::Join };
    let folder = RunDir::open(&out, samples, &resolved, study.inputs(), existing)?;
    let ours = identity(&study, &resolved, Shard::WHOLE);
    Shelf::of_run(&folder).clear(true);
    // Everything is kept already, where it came from.
    let keeper = Keeper::every(Shelf::of_run(&folder), ours, study.draws() as u64, Duration::MAX);
    let options = Options { names: args.names, resolved, command: std::env::args().collect() };
    let report = run
        .into_folder(&folder, &options, &keeper, &mut kept, &mut |_: Sample| Ok(()))
        .map_err(|error| minder.explain(error))?;
    if args.quiet {
        return Ok(());
    }
    let shown = printable(&out.display().to_string());
    let joined =
        format!("{of} shards joined in {shown}; what is in their {} is not needed any more", store::CHUNKS);
    print(format!("{}{}{joined}\n", text::warnings(&report), summary::diagnostics(&report)).as_bytes())
}

/// Whether there is anything that was made to be joined.
fn in_shards(run: &Path) -> bool {
    store::shards(run).iter().any(|(shard, _)| *shard != Shard::WHOLE)
}

/// Where each shard is, and what it says of itself.
type Shards = BTreeMap<Shard, (PathBuf, PathBuf, Identity)>;

fn found(folders: &[PathBuf]) -> Result<Shards> {
    let mut shards = Shards::new();
    for run in folders {
        let shown = printable(&run.display().to_string());
        let (whole, here): (Vec<_>, Vec<(Shard, PathBuf)>) =
            store::shards(run).into_iter().partition(|(shard, _)| *shard == Shard::WHOLE);
        if here.is_empty() {
            let unfinished =
                !store::is_finished(run) && whole.iter().any(|(_, folder)| Shelf::has_parts(folder));
            let why = match run.is_dir() {
                true if unfinished => {
                    "holds no shards, but a run that is not finished; go on with `npl run … --resume`"
                }
                true => "holds no shards",
                false => "no such folder",
            };
            return Err(Error::input(format!("{shown}: {why}")).into());
        }
        for (shard, folder) in here {
            let Some(identity) = written_identity(&Shelf::at(&folder)) else {
                let message =
                    format!("{shown}: what shard {} belongs to cannot be read; make it again", shard.index);
                return Err(Error::input(message).into());
            };
            if let Some((other, ..)) = shards.insert(shard, (run.clone(), folder, identity)) {
                let message = format!(
                    "shard {} is there twice, in {} and {shown}",
                    shard.index,
                    printable(&other.display().to_string())
                );
                return Err(Error::input(message).into());
            }
        }
    }
    Ok(shards)
}

/// That all are of one run; the identity of the first, and how many there should be.
fn alike(shards: &Shards) -> Result<(Identity, usize)> {
    let (first, (run, _, identity)) = shards.first_key_value().expect("some were found");
    for (shard, (other, _, theirs)) in shards {
        let shown = |path: &Path, shard: &Shard| {
            format!("shard {} in {}", shard.index, printable(&path.display().to_string()))
        };
        let why = match shard.of == first.of {
            true => identity.difference(&Identity { shard: *first, ..theirs.clone() }),
            false => Some(format!("one run was cut in {}, the other in {}", first.of, shard.of)),
        };
        if let Some(why) = why {
            let pair = format!("{} and {}", shown(run, first), shown(other, shard));
            let message = format!(
                "{pair} are not of one run: {why}; `npl run … --shard I/N --force` makes the wrong one again"
            );
            return Err(Error::input(message).into());
        }
    }
    Ok((identity.clone(), first.of))
}

/// What all of them hold; none may be in the making. Their locks are not held while they are joined, for there may be more
/// shards than a process may have files open: whoever goes on with a shard now adds parts, and one that goes missing is noticed.
fn scan(shards: &Shards) -> Result<Kept> {
    let mut shelves = Vec::new();
    for (shard, (run, folder, identity)) in shards {
        match Shelf::of_shard(Arc::new(RealDisk), run, *shard) {
            Err(error @ Error::Failed(_)) => return Err(error.into()),
            // Whoever may not write here cannot be kept from it either.
            Ok(_) | Err(_) => shelves.push((Shelf::at(folder), identity.hash())),
        }
    }
    Ok(Kept::scan(shelves)?)
}

/// That every draw is there.
fn complete(study: &Study, run: &Run, kept: &Kept, of: usize, shards: &Shards) -> Result<()> {
    let length = chunk_length(run.relation.draws);
    let lacks = |index: &usize| {
        let shard = Shard { of, index: *index };
        let gap = |(round, span): &(usize, std::ops::Range<u64>)| {
            !kept.missing(*round, study.draws_of(*round), span, length).is_empty()
        };
        !shards.contains_key(&shard) || spans(study, shard).iter().any(gap)
    };
    let missing: Vec<usize> = (1..=of).filter(lacks).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let message = format!(
        "{} of {of} shards are missing or not finished; make each with `npl run … --shard I/{of}`, I = {}\n(under \
         Slurm: --array={} and `--shard auto/{of}`)",
        missing.len(),
        store::ranges(&missing),
        store::ranges(&missing)
    );
    Err(Error::input(message).into())
}

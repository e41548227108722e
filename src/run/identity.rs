//! What makes a run this run; whether what is in a folder is part of it; and how it is cut into shards.

use std::ops::Range;
use std::path::Path;

use super::{CHUNK, Kept};
use crate::config::printable;
use crate::error::{Error, Result};
use crate::kernel::Level;
use crate::method::Unit;
use crate::samples::Samples;
use crate::store::{self, Identity, Manifest, Shard, Shelf};
use crate::study::Study;

/// Version and features that change numbers.
fn version() -> String {
    let version = env!("CARGO_PKG_VERSION");
    if cfg!(feature = "openblas") { format!("{version}+openblas") } else { version.to_owned() }
}

/// The SIMD levels that round alike.
pub fn simd_class(level: &str) -> &'static str {
    if level == Level::PLAIN.name() { "plain" } else { "avx2, avx512" }
}

/// Why draws cannot be added to those of this study, if they cannot.
pub fn not_extendable(study: &Study) -> Option<&'static str> {
    let experiment = &study.experiment;
    let over_draws = experiment.path.as_ref().is_some_and(|path| path.parameter == "sampler.B");
    let of_path = over_draws.then_some("the path is one of `sampler.B`");
    of_path.or_else(|| study.inference().not_extendable(experiment))
}

/// The experiment as text, without its number of draws.
fn config_of(text: &str) -> String {
    let Ok(mut table) = text.parse::<toml::Table>() else { return text.to_owned() };
    if let Some(toml::Value::Table(sampler)) = table.get_mut("sampler") {
        sampler.insert("B".to_owned(), toml::Value::Integer(1));
    }
    table.to_string()
}

/// Name and hash of the files that went in: where they are makes no difference.
fn inputs_of(inputs: &[crate::data::files::Input]) -> Vec<(String, String)> {
    let name = |path: &str| Path::new(path).file_name().map(|n| n.to_string_lossy().into_owned());
    inputs.iter().map(|input| (name(&input.path).unwrap_or_default(), input.sha256.clone())).collect()
}

/// What draws of this study must have in common.
pub fn identity(study: &Study, resolved: &str, shard: Shard) -> Identity {
    let fixed = not_extendable(study).is_some() || shard != Shard::WHOLE;
    Identity {
        npl: version(),
        streams: crate::rng::versions(),
        chunk: CHUNK,
        simd: simd_class(Level::current().name()).to_owned(),
        shard,
        draws: fixed.then(|| study.draws()),
        inputs: inputs_of(study.inputs()),
        config: config_of(resolved),
    }
}

/// What a finished run says of itself, in the same terms.
fn identity_of_run(manifest: &Manifest, config: &str, ours: &Identity) -> Identity {
    Identity {
        npl: if manifest.npl == env!("CARGO_PKG_VERSION") { version() } else { manifest.npl.clone() },
        simd: simd_class(&manifest.simd).to_owned(),
        draws: ours.draws.map(|_| manifest.draws),
        inputs: inputs_of(&manifest.inputs),
        config: config_of(config),
        ..ours.clone()
    }
}

/// What a run that is gone on with begins with.
pub enum Resumed {
    /// All of it is there already.
    Finished,
    From(Box<Kept>),
}

fn refuse(folder: &Path, why: &str) -> Error {
    let shown = printable(&folder.display().to_string());
    Error::input(format!("{shown} cannot be gone on with: {why}"))
}

/// The identity that is written on a shelf, if it is sound.
pub fn written_identity(shelf: &Shelf) -> Option<Identity> {
    let text = shelf.identity().filter(|text| store::sealed(text) == Some(true))?;
    serde_json::from_str(&text).ok()
}

/// What there is of this run in its folder; refused, saying why, where it is of another one.
pub fn resume(folder: &Path, shelf: Shelf, ours: &Identity, study: &Study) -> Result<Resumed> {
    let (draws, why_not) = (study.draws(), not_extendable(study));
    let has_parts = !shelf.parts().is_empty();
    let differs = |theirs: &Identity| match why_not {
        Some(why) if ours.config == theirs.config && ours.draws != theirs.draws => {
            let there = theirs.draws.unwrap_or(0);
            Some(format!("it has {there} draws, and cannot be given another number: {why}"))
        }
        _ => ours.difference(theirs),
    };
    let written = written_identity(&shelf);
    if let Some(why) = written.as_ref().and_then(differs) {
        return Err(refuse(folder, &why));
    }
    let mut finished = store::is_finished(folder).then(|| finished_run(folder)).transpose()?;
    if let Some((manifest, config)) = &finished
        && let Some(why) = differs(&identity_of_run(manifest, config, ours))
    {
        // Parts of this run beside the results of another: it was about to replace them.
        if !has_parts || written.is_none() {
            return Err(refuse(folder, &why));
        }
        finished = None;
    }
    let mut kept = Kept::scan(vec![(shelf, ours.hash())])?;
    let most = kept.draws.max(finished.as_ref().map_or(0, |(manifest, _)| manifest.draws as u64));
    if most > draws as u64 {
        let message = match finished {
            Some(_) => {
                format!(
                    "it has `sampler.B` = {most}, and {draws} are fewer: draws are added, never taken away"
                )
            }
            None => format!(
                "it was begun with `sampler.B` = {most} and is not finished: it goes on to so many draws or more, not to {draws}"
            ),
        };
        return Err(refuse(folder, &message));
    }
    let Some((manifest, _)) = finished else { return Ok(Resumed::From(Box::new(kept))) };
    let damaged = manifest.outputs.keys().find_map(|name| store::damage(folder, &manifest, name));
    if damaged.is_none() && manifest.draws == draws && !has_parts {
        return Ok(Resumed::Finished);
    }
    if let Some(why) = damaged {
        kept.damaged.push(why);
    } else if study.experiment.path.is_none() && !manifest.samples.is_empty() {
        let samples = store::samples_of(folder).and_then(|file| Samples::open(&file))?;
        kept = kept.with_base(samples, manifest.draws as u64)?;
    }
    Ok(Resumed::From(Box::new(kept)))
}

fn finished_run(folder: &Path) -> Result<(Manifest, String)> {
    let manifest = store::read_manifest(folder)?;
    let path = store::file_of(folder, store::CONFIG).unwrap_or_else(|_| folder.join(store::CONFIG));
    let config = std::fs::read_to_string(&path)
        .map_err(|e| Error::input(format!("{}: {e}", printable(&path.display().to_string()))))?;
    Ok((manifest, config))
}

/// What can be made by itself, in order: rounds, and the draws of each.
fn units(study: &Study) -> Vec<(usize, Range<u64>)> {
    let unit = study.inference().unit(&study.experiment);
    let of_round = |round: usize| {
        let draws = study.draws_of(round);
        let length = match unit {
            Unit::Draws => CHUNK,
            Unit::Chain(each) => each,
            Unit::Fit => draws,
        };
        (0..draws).step_by(length as usize).map(move |start| (round, start..(start + length).min(draws)))
    };
    (0..study.rounds()).flat_map(of_round).collect()
}

/// The same where settings of a path follow each other: some draws of a fold through all its settings; the rounds, and those draws.
fn strands(study: &Study) -> Vec<(Range<usize>, Range<u64>)> {
    let settings = study.settings().len();
    let of_fold = |first: usize| {
        let draws = study.draws_of(first);
        let strand = move |start: u64| (first..first + settings, start..(start + CHUNK).min(draws));
        (0..draws).step_by(CHUNK as usize).map(strand)
    };
    (0..study.rounds()).step_by(settings.max(1)).flat_map(of_fold).collect()
}

/// Into how many shards a study can be cut at most.
pub fn most_shards(study: &Study) -> usize {
    if study.is_warm() { strands(study).len() } else { units(study).len() }
}

/// The draws of a shard: neighbours, so that few rounds have to be built for it.
pub fn spans(study: &Study, shard: Shard) -> Vec<(usize, Range<u64>)> {
    if study.is_warm() {
        let joined = neighbours(strands(study), shard);
        let each =
            |(rounds, draws): (Range<usize>, Range<u64>)| rounds.map(move |round| (round, draws.clone()));
        return joined.into_iter().flat_map(each).collect();
    }
    neighbours(units(study), shard)
}

/// The share of a shard, what belongs together joined.
fn neighbours<T: Clone + PartialEq>(units: Vec<(T, Range<u64>)>, shard: Shard) -> Vec<(T, Range<u64>)> {
    let cut = |i: usize| (units.len() as u128 * i as u128 / shard.of as u128) as usize;
    let mut spans: Vec<(T, Range<u64>)> = Vec::new();
    for (of, draws) in &units[cut(shard.index - 1)..cut(shard.index)] {
        match spans.last_mut() {
            Some((last, span)) if last == of => span.end = draws.end,
            _ => spans.push((of.clone(), draws.clone())),
        }
    }
    spans
}

//! `npl samples`: draws of any stored format as text, for a pipe.

use std::io::BufWriter;
use std::path::Path;

use anyhow::Result;
use npl::error::Error;
use npl::samples::{Choice, Pick, Samples};
use npl::store::{self, AtomicFile};

use super::{groups, note, open_draws, reading, relabel, round};
use crate::cli::SamplesArgs;

pub fn samples(args: SamplesArgs) -> Result<()> {
    reading(&args.reading);
    let report = store::read_report(&args.run)?;
    let repeat = round(&report, args.repeat, args.setting)?;
    let group = groups::place(&report, args.group.as_deref())?;
    let samples = if args.relabel { relabelled(&args.run)? } else { open_draws(&args.run)? };
    let samples = match group {
        Some(group) => samples.of_rounds(groups::rounds(&report, group)),
        None => samples,
    };
    let choice = Choice { repeat, draws: args.draws, drop_failed: args.drop_failed };
    let pick = Pick { patterns: args.columns, no_statistics: args.no_statistics };
    match args.out.as_deref().filter(|out| *out != Path::new("-")) {
        Some(path) => {
            store::refuse_output(path, &args.run, &[])?;
            let mut file = AtomicFile::create(path)?;
            samples.stream(&pick, &choice, args.format, &mut file)?.map_err(|e| Error::write(path, e))?;
            Ok(file.commit()?)
        }
        None => {
            let mut out = BufWriter::with_capacity(1 << 16, std::io::stdout().lock());
            let written = samples.stream(&pick, &choice, args.format, &mut out)?;
            Ok(written.map_err(|e| Error::write(Path::new("standard output"), e))?)
        }
    }
}

/// Aligned draws; what a reader must know of them goes to standard error.
fn relabelled(run: &Path) -> Result<Samples> {
    let (samples, done) = relabel::aligned(run)?;
    note(&relabel::trust(&done));
    Ok(samples)
}

//! `npl relabel`: components of a mixture under the same labels in every draw.

use std::io::Write;
use std::path::Path;

use anyhow::Result;
use npl::config::printable;
use npl::error::Error;
use npl::model::Components;
use npl::samples::{self, Relabelling, Samples};
use npl::store;

use super::text::{percent, render};
use super::{note, open_draws, print, reading};
use crate::cli::{DrawFormat, Format, RelabelArgs};

/// More components or columns than this are not listed for people.
const COMPONENTS_LISTED: usize = 30;
const COLUMNS_LISTED: usize = 4;

pub fn relabel(args: RelabelArgs) -> Result<()> {
    reading(&args.reading);
    let (aligned, done) = aligned(&args.run)?;
    let file = store::samples_of(&args.run)?;
    let own = file.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    if args.out.as_deref() == Some(Path::new("-")) {
        if args.format.is_some_and(|format| format != DrawFormat::Csv) {
            let advice = "npl samples RUN --relabel has tsv and ndjson, --out FILE the other formats";
            return Err(Error::input(format!("--out -: standard output gets CSV; {advice}")).into());
        }
        let out = std::io::BufWriter::new(std::io::stdout());
        let written = aligned.copy(out, samples::Format::Csv)?.and_then(|mut out| out.flush());
        written.map_err(|e| Error::write(Path::new("standard output"), e))?;
        said(&done).lines().for_each(note);
        return Ok(());
    }
    let format = match args.format {
        Some(format) => format.of_draws(),
        None => samples::Format::of(&own).map_err(Error::input)?,
    };
    if let (Some(out), Some(_)) = (&args.out, args.format)
        && !out.to_string_lossy().ends_with(format.ending())
    {
        let shown = printable(&out.display().to_string());
        let message = format!("--out {shown}: its ending says another format than --format; leave that out");
        return Err(Error::input(message).into());
    }
    let out = args.out.unwrap_or_else(|| args.run.join(store::relabelled(&own, format)));
    store::refuse_output(&out, &args.run, &[])?;
    store::write_draws(&aligned, &out)?;
    print(format!("written to {}\n\n{}", printable(&out.display().to_string()), said(&done)).as_bytes())
}

/// The draws of a run under aligned labels, and what was done to them.
pub fn aligned(run: &Path) -> Result<(Samples, Relabelling)> {
    let samples = open_draws(run)?;
    let relation = store::relation_of(run, &samples);
    Ok(samples.relabelled(relation)?)
}

/// What was done, for people: the reference of the first repeat, how it was found, how far to trust labels.
pub fn said(done: &Relabelling) -> String {
    let mut out = reference(done);
    let first = &done.repeats[0];
    let iterations = |r: &npl::samples::AlignedRepeat| {
        let more = if r.converged { "" } else { " and were not settled" };
        format!("from draw {} in {} iterations{more}", r.pivot, r.iterations)
    };
    let others = match done.repeats.len() {
        1 => String::new(),
        n => format!(
            " (repeat {}; {} more have references of their own, aligned with it)",
            first.repeat,
            n - 1
        ),
    };
    out += &format!(
        "  labels     nearest to a reference {} (docs/relabelling.md)\n  \
           reference  {}{others}\n",
        match done.components {
            Components::Centres { .. } => "set of centres, by squared distance",
            _ => "mixture, by Kullback-Leibler divergence",
        },
        iterations(first)
    );
    let left = match done.left() {
        0 => String::new(),
        left => format!("; left as they are because they failed: {left}"),
    };
    out += &format!("  permuted   {} of {} draws{left}\n", percent(done.permuted()), done.draws());
    out + &format!(
        "  ambiguous  {} of draws: other labels would be less than twice as far from the reference\n",
        percent(done.ambiguous())
    )
}

/// How far to trust aligned labels, in a line.
pub fn trust(done: &Relabelling) -> String {
    let ambiguous = percent(done.ambiguous());
    format!(
        "components aligned over draws; the labels of {ambiguous} of draws are ambiguous (docs/relabelling.md)"
    )
}

/// What the labels stand for.
fn reference(done: &Relabelling) -> String {
    let Some(reference) = done.repeats.iter().find_map(|r| r.reference.as_ref()) else {
        return String::new();
    };
    let (count, columns) = (done.components.count(), done.components.columns());
    let shown = columns.min(COLUMNS_LISTED);
    let several = |symbol: &str, j: usize| match columns {
        1 => symbol.to_owned(),
        _ => format!("{symbol} {}", j + 1),
    };
    // Centres have neither weight nor spread.
    let centres = matches!(done.components, Components::Centres { .. });
    let titles = ["label", "weight"].into_iter().take(if centres { 1 } else { 2 }).map(str::to_owned);
    let each = if centres { 1 } else { 2 };
    let moments = (0..shown).flat_map(|j| [several("mean", j), several("sd", j)].into_iter().take(each));
    let mut rows: Vec<Vec<String>> = vec![titles.chain(moments).chain(["ambiguous".to_owned()]).collect()];
    for k in 0..count.min(COMPONENTS_LISTED) {
        let moment = |j: usize| {
            let at = k * columns + j;
            let sd = reference.variance(k, j).sqrt();
            [format!("{:.4}", reference.means[at]), format!("{sd:.4}")].into_iter().take(each)
        };
        let front = [(k + 1).to_string(), format!("{:.4}", reference.weights[k])].into_iter().take(each);
        let last = percent(done.ambiguous_component(k));
        rows.push(front.chain((0..shown).flat_map(moment)).chain([last]).collect());
    }
    let mut out = render(&rows, Format::Text);
    if count > COMPONENTS_LISTED {
        out += &format!("… and {} more labels\n", count - COMPONENTS_LISTED);
    }
    if columns > COLUMNS_LISTED {
        out += &format!("… and {} more columns\n", columns - COLUMNS_LISTED);
    }
    out + "\n"
}

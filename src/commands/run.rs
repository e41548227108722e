//! `npl run`: data, posterior draws, evaluation, run directory.

use std::io::{BufWriter, IsTerminal, Stdout};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use npl::config::printable;
use npl::data::Dataset;
use npl::error::Error;
use npl::experiment::Experiment;
use npl::math::largest;
use npl::method::Unit;
use npl::optim::Status;
use npl::report::Report;
use npl::run::{
    Keeper, Kept, Options, Resumed, Run, Watch, chunk_length, identity, resume, spans, written_identity,
};
use npl::samples::{Format, Sample, Samples, Writer};
use npl::store::{self, Existing, Identity, RealDisk, RunDir, Shard, Shelf};
use npl::study::{Need, Study};
use rayon::ThreadPool;

use super::stop::{Leaves, Minder, goes_on};
use super::{in_shell, load, note, pool, print, read, shard, summary, text};
use crate::cli::RunArgs;

pub fn run(args: RunArgs) -> Result<()> {
    let begun = Instant::now();
    if let Some(target) = args.samples.as_deref().filter(|t| *t != "-") {
        let message = format!(
            "--samples {}: only `-` is possible; the run directory has the file anyway",
            printable(target)
        );
        return Err(Error::input(message).into());
    }
    let shard = args.shard.as_deref().map(shard::parse).transpose()?;
    let known = known(&args)?;
    let reading = reading(&args);
    let study = load(&args.config, &args.overrides, &known);
    reading.finish_and_clear();
    let study = study?;
    let resolved = study.experiment.to_toml()?;
    let out = out(&args, &study.experiment);
    let limit = args.time_limit.map(|limit| limit.saturating_sub(begun.elapsed()));
    match shard {
        // One of one is the whole.
        Some(shard) if shard != Shard::WHOLE => part(&args, &study, resolved, &out, shard, limit),
        _ => whole(&args, &study, resolved, &out, limit),
    }
}

fn out(args: &RunArgs, experiment: &Experiment) -> PathBuf {
    args.out.clone().unwrap_or_else(|| Path::new("runs").join(&experiment.name))
}

/// What a run that is gone on with knows better than its file: the seed that was drawn for it, and how many draws `--more`
/// comes to.
fn known(args: &RunArgs) -> Result<Vec<String>> {
    let mut sets = Vec::new();
    if !args.resume && args.more.is_none() {
        return Ok(sets);
    }
    let (document, experiment) = read(&args.config, &args.overrides, &[])?;
    let out = out(args, &experiment);
    if !document.has("seed") {
        sets.extend(seed_there(&out).map(|seed| format!("seed={seed}")));
    }
    if let Some(more) = args.more {
        let shown = printable(&out.display().to_string());
        if !store::is_finished(&out) {
            let message =
                format!("--more adds to a finished run, and {shown} holds none; --resume would finish it");
            return Err(Error::input(message).into());
        }
        let draws = store::read_manifest(&out)?.draws + more as usize;
        sets.push(format!("sampler.B={draws}"));
    }
    Ok(sets)
}

/// The seed of what is in a folder, finished or not.
pub(super) fn seed_there(out: &Path) -> Option<i64> {
    let of_parts = store::shards(out).first().and_then(|(_, folder)| {
        let identity = written_identity(&Shelf::at(folder))?;
        identity.config.parse::<toml::Table>().ok()?.get("seed")?.as_integer()
    });
    let of_run = || store::read_manifest(out).ok().map(|manifest| manifest.seed as i64);
    of_parts.or_else(of_run)
}

/// A run does not write over the experiment that it was started with.
fn refuse_own_experiment(args: &RunArgs, out: &Path, resolved: &str) -> Result<()> {
    let place = out.join(store::CONFIG);
    let same = args.config.canonicalize().ok().zip(place.canonicalize().ok()).is_some_and(|(a, b)| a == b);
    let changes = || std::fs::read_to_string(&place).is_ok_and(|text| text != resolved);
    if args.force && same && changes() {
        let shown = printable(&place.display().to_string());
        let message = format!(
            "{shown} is the experiment, and --force would write over it; copy it, or choose another --out"
        );
        return Err(Error::input(message).into());
    }
    Ok(())
}

/// What need not be made again; `None` if that is all of it.
fn there(folder: &RunDir, existing: Existing, ours: &Identity, study: &Study) -> Result<Option<Kept>> {
    let shelf = Shelf::of_run(folder);
    if existing != Existing::Continue {
        shelf.clear(true);
        return Ok(Some(Kept::default()));
    }
    match resume(folder.path(), shelf, ours, study)? {
        Resumed::Finished => Ok(None),
        Resumed::From(kept) => {
            tell_damage(&kept);
            Ok(Some(*kept))
        }
    }
}

/// That the memory is enough, before anything is written.
fn fits(study: &Study, pool: &ThreadPool) -> Result<()> {
    let threads = pool.current_num_threads();
    Ok(Need::new(study, &*study.trial(0)?, threads).fits(threads)?)
}

/// What a user did not say, and should know.
fn tell(study: &Study) {
    if study.seed_was_drawn() {
        note(&format!("seed {} (drawn; recorded in config.toml)", study.first_seed().0));
    }
    study.notes().changes().iter().for_each(|line| note(line));
}

fn tell_damage(kept: &Kept) {
    for what in &kept.damaged {
        note(&format!("{what}; its draws are made again"));
    }
}

fn whole(args: &RunArgs, study: &Study, resolved: String, out: &Path, limit: Option<Duration>) -> Result<()> {
    refuse_own_experiment(args, out, &resolved)?;
    let pool = pool(&args.overrides.machine)?;
    fits(study, &pool)?;
    let samples = &study.experiment.output.samples;
    let existing = match (args.force, args.resume || args.more.is_some() || args.shard.is_some()) {
        (true, _) => Existing::Replace,
        (_, true) => Existing::Continue,
        _ => Existing::Refuse,
    };
    let folder = Arc::new(RunDir::open(out, samples, &resolved, study.inputs(), existing)?);
    let ours = identity(study, &resolved, Shard::WHOLE);
    let Some(mut kept) = there(&folder, existing, &ours, study)? else { return again(args, study, out) };
    if !args.quiet {
        tell(study);
    }
    let keeper = Arc::new(Keeper::every(Shelf::of_run(&folder), ours, study.draws() as u64, args.keep_every));
    let bar = progress(study, args, study.rounds() as u64 * study.draws() as u64);
    let leaves = Leaves {
        keeper: Some(keeper.clone()),
        folder: Some(folder.clone()),
        progress: Some(Box::new(far(study, &bar, out))),
        goes_on: goes_on(args.more.map(|_| study.draws())),
        archive: None,
    };
    let minder = Minder::new(leaves, limit)?;
    let run = Run::new(study, &pool, &minder.cancel)?;
    let columns = run.file_columns(args.names).map_or(0, |columns| columns.len());
    let advice = text::smaller(samples, study.draws() * study.rounds(), columns);
    if let Some(advice) = advice.filter(|_| !args.quiet) {
        note(&format!("{samples} {advice}"));
    }
    let mut screen = Screen::new(args, &run, bar)?;
    let options = Options { names: args.names, resolved, command: std::env::args().collect() };
    let report = run.into_folder(&folder, &options, &keeper, &mut kept, &mut screen);
    let report = report.map_err(|error| {
        // Before the bar goes: one that is finished says that all draws are there.
        let error = minder.explain(error);
        screen.bar.finish_and_clear();
        error
    })?;
    screen.end()?;
    announce(args, &report, out)?;
    enough_succeeded(study, &report)
}

/// How far a run has come, for whoever stopped it.
fn far(study: &Study, bar: &ProgressBar, out: &Path) -> impl Fn() -> String + Send + Sync + 'static {
    let (bar, shown) = (bar.clone(), printable(&out.display().to_string()));
    let chains = matches!(study.inference().unit(&study.experiment), Unit::Chain(_));
    move || match chains {
        true => format!("chains that were whole are kept in {shown}"),
        false => format!("{} of {} draws are kept in {shown}", bar.position(), bar.length().unwrap_or(0)),
    }
}

/// There is nothing left to do but to say what came of it.
fn again(args: &RunArgs, study: &Study, out: &Path) -> Result<()> {
    let report = store::read_report(out)?;
    if args.samples.is_some() {
        let draws = Samples::open(&store::samples_of(out)?)?;
        let mut writer = Writer::new(
            BufWriter::new(std::io::stdout()),
            Format::Csv,
            draws.columns(),
            0,
            draws.grouping()?,
        )
        .map_err(closed)?;
        let mut written = Ok(());
        draws.each(|repeat, draw| {
            written = writer.put(repeat, &draw);
            written.is_ok()
        })?;
        written.and_then(|()| writer.flush()).map_err(closed)?;
    }
    if !args.quiet {
        note("finished already: all draws are there");
    }
    announce(args, &report, out)?;
    enough_succeeded(study, &report)
}

/// `--shard`: some draws of some rounds, kept to be joined with the others.
fn part(
    args: &RunArgs,
    study: &Study,
    resolved: String,
    out: &Path,
    shard: Shard,
    limit: Option<Duration>,
) -> Result<()> {
    let shown = printable(&out.display().to_string());
    if study.seed_was_drawn() {
        let message =
            "a run that is cut into shards needs a seed: each of them would draw its own; set `seed`";
        return Err(Error::input(message).into());
    }
    if store::is_finished(out) && !args.force {
        let message = format!("{shown} holds a finished run; choose another folder for shards with --out");
        return Err(Error::input(message).into());
    }
    let others = store::shards(out);
    if let Some((other, _)) = others.iter().find(|(other, _)| other.of != shard.of) {
        let message = format!(
            "{shown} holds shards of a run that was cut in {}, and this is one of {}",
            other.of, shard.of
        );
        return Err(Error::input(message).into());
    }
    let pool = pool(&args.overrides.machine)?;
    fits(study, &pool)?;
    let ours = identity(study, &resolved, shard);
    if let Some((other, folder)) = others.iter().find(|(other, _)| *other != shard && !args.force) {
        refuse_another_run(out, *other, &Shelf::at(folder), &ours)?;
    }
    let shelf = Shelf::of_shard(Arc::new(RealDisk), out, shard)?;
    if args.force {
        shelf.clear(true);
    }
    refuse_another_run(out, shard, &shelf, &ours)?;
    let folder = shelf.folder().to_owned();
    // A shard that was interrupted is gone on with whether that is asked for or not: its draws can be no others.
    let mut kept = Kept::scan(vec![(Shelf::at(&folder), ours.hash())])?;
    tell_damage(&kept);
    let spans = spans(study, shard);
    let draws: u64 = spans.iter().map(|(_, span)| span.end - span.start).sum();
    shelf.write_identity(&ours)?;
    let keeper = Arc::new(Keeper::every(shelf, ours, study.draws() as u64, args.keep_every));
    let bar = progress(study, args, draws);
    let leaves = Leaves {
        keeper: Some(keeper.clone()),
        folder: None,
        progress: Some(Box::new(far(study, &bar, out))),
        goes_on: goes_on(None),
        archive: None,
    };
    let minder = Minder::new(leaves, limit)?;
    let run = Run::new(study, &pool, &minder.cancel)?;
    let length = chunk_length(run.relation.draws);
    let there: u64 =
        spans.iter().map(|(round, span)| kept.count(*round, study.draws_of(*round), span, length)).sum();
    let mut screen = Screen::new(args, &run, bar)?;
    let done = run.some(&spans, &keeper, &mut kept, &mut screen);
    done.map_err(|error| {
        let _ = keeper.write();
        let error = minder.explain(error);
        screen.bar.finish_and_clear();
        error
    })?;
    screen.end()?;
    if !args.quiet {
        let made = draws - there.min(draws);
        let again = if there > 0 { format!(", {there} of them made before") } else { String::new() };
        let what = if made == 0 && draws > 0 { "done already" } else { "done" };
        print(
            format!(
                "shard {} of {}: {what}, {draws} draws{again}; when all are, `npl merge {}` joins them\n",
                shard.index,
                shard.of,
                in_shell(out)
            )
            .as_bytes(),
        )?;
    }
    Ok(())
}

/// That a shard, in whose folder this one goes or beside which it will lie, is of the run of this one. What is of another would be
/// noticed when they are joined, after all the work.
fn refuse_another_run(out: &Path, shard: Shard, shelf: &Shelf, ours: &Identity) -> Result<()> {
    let theirs = written_identity(shelf).map(|theirs| Identity { shard: ours.shard, ..theirs });
    let Some(why) = theirs.and_then(|theirs| ours.difference(&theirs)) else { return Ok(()) };
    let message = format!(
        "{} holds shard {} of another run: {why}; choose another folder with --out, or replace what is there with --force",
        printable(&out.display().to_string()),
        shard.index
    );
    Err(Error::input(message).into())
}

/// What is seen of a run: a bar, and the draws on standard output if asked.
struct Screen {
    bar: ProgressBar,
    stdout: Option<Writer<BufWriter<Stdout>>>,
    flushed: Instant,
}

fn closed(e: std::io::Error) -> Error {
    Error::write(Path::new("standard output"), e)
}

impl Screen {
    fn new(args: &RunArgs, run: &Run, bar: ProgressBar) -> Result<Screen> {
        let stdout = match args.samples {
            Some(_) => {
                let out = BufWriter::new(std::io::stdout());
                let (columns, grouping) = (run.columns(args.names), run.grouping());
                Some(Writer::new(out, Format::Csv, &columns, 0, grouping).map_err(closed)?)
            }
            None => None,
        };
        let mut screen = Screen { bar, stdout, flushed: Instant::now() };
        screen.flush()?;
        Ok(screen)
    }

    fn flush(&mut self) -> npl::error::Result<()> {
        self.flushed = Instant::now();
        self.stdout.as_mut().map_or(Ok(()), |out| out.flush().map_err(closed))
    }

    fn end(&mut self) -> Result<()> {
        self.bar.finish_and_clear();
        Ok(self.flush()?)
    }
}

impl Watch for Screen {
    fn draw(&mut self, round: usize, draw: &Sample) -> npl::error::Result<()> {
        self.stdout.as_mut().map_or(Ok(()), |out| out.put(round + 1, draw).map_err(closed))?;
        // A reader that has seen enough is noticed at a flush.
        if self.flushed.elapsed() > Duration::from_millis(50) { self.flush() } else { Ok(()) }
    }

    fn progress(&mut self, more: u64) {
        self.bar.inc(more);
    }
}

/// Files that take long are seen to be read: after a while, how long it has been.
fn reading(args: &RunArgs) -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if args.quiet || !std::io::stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
        return bar;
    }
    let style = ProgressStyle::with_template("reading the data … {elapsed}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

/// To standard error, and only if that is a terminal.
fn progress(study: &Study, args: &RunArgs, total: u64) -> ProgressBar {
    let bar = ProgressBar::new(total);
    if args.quiet || !std::io::stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    } else {
        bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(8));
    }
    let template = "{msg} [{wide_bar}] {pos}/{len}  {rate}";
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let rate = |state: &ProgressState, out: &mut dyn std::fmt::Write| {
        let _ = out.write_str(&pace(state.pos(), state.per_sec(), state.eta()));
    };
    bar.set_style(style.with_key("rate", rate).progress_chars("=> "));
    bar.set_message(study.experiment.name.clone());
    bar
}

/// How fast it goes, and how long it will; before the first draw is there nobody knows.
fn pace(made: u64, per_second: f64, left: Duration) -> String {
    if made == 0 || per_second <= 0.0 || !per_second.is_finite() {
        return "no draw yet".to_owned();
    }
    let rate = match per_second {
        rate if rate >= 10.0 => format!("{rate:.0}/s"),
        rate if rate >= 1.0 => format!("{rate:.1}/s"),
        rate => format!("{} each", text::seconds(1.0 / rate)),
    };
    format!("{rate}  {} left", text::seconds(left.as_secs_f64()))
}

fn announce(args: &RunArgs, report: &Report, out: &Path) -> Result<()> {
    if args.json {
        let mut told = serde_json::to_value(report)?;
        if let Some(posterior) = summary::posterior(out, report) {
            told["posterior"] = posterior;
        }
        print((serde_json::to_string_pretty(&told)? + "\n").as_bytes())?;
    }
    if args.quiet {
        return Ok(());
    }
    let folder = printable(&out.display().to_string());
    let text = format!(
        "{}{}written to {folder}; `npl summary {}` shows the posterior\n",
        text::warnings(report),
        summary::diagnostics(report),
        in_shell(out)
    );
    if args.json || args.samples.is_some() {
        note(text.trim_end());
        return Ok(());
    }
    print(text.as_bytes())
}

/// Whether few enough draws are lost, and few enough not at their minimum.
fn enough_succeeded(study: &Study, report: &Report) -> Result<()> {
    let (sampler, draws) = (&study.experiment.sampler, report.draws());
    let lost = report.lost();
    let what = if lost == report.count(Status::Failed) { "failed" } else { "have no minimum" };
    let limits = [
        (lost, what, "max_failed", sampler.max_failed.get()),
        (
            report.count(Status::MaxIter) + report.count(Status::Stuck),
            if report.count(Status::Stuck) == 0 {
                "ran out of iterations"
            } else {
                "did not reach a minimum"
            },
            "max_unconverged",
            sampler.max_unconverged.get(),
        ),
    ];
    let over = |(count, what, key, allowed): &(usize, &str, &str, f64)| {
        (*count as f64 > allowed * draws as f64)
            .then(|| format!("{count} of {draws} draws {what}, more than sampler.{key} = {allowed} allows"))
    };
    let over: Vec<String> = limits.iter().filter_map(over).collect();
    if over.is_empty() {
        return Ok(());
    }
    let why = reasons(study, report);
    let message = format!("{}{why}; they are kept, and their status__ tells them", over.join("; "));
    Err(Error::FailedDraws(message).into())
}

/// Why draws are no draws, and what could be done, as far as can be told.
fn reasons(study: &Study, report: &Report) -> String {
    let penalty = study.experiment.model.key("penalty");
    let reason = |status: Status| match status {
        Status::Failed => Some(not_finite(study)),
        Status::Separated => Some(format!("a line separates their responses; `{penalty}` would hold them")),
        Status::Unidentified if study.experiment.model.name() == "kmeans" => {
            Some("they have fewer different rows than `model.kmeans.K` centres".to_owned())
        }
        Status::Unidentified => Some(format!(
            "their columns depend on each other; leave some out (`data.columns`), or set `{penalty}`"
        )),
        Status::MaxIter => Some("see `optimiser.max_iterations`".to_owned()),
        Status::Stuck => {
            Some("no step could be made; `data.standardise = \"numeric\"` would help".to_owned())
        }
        Status::Flat => {
            Some("no row is within reach of their loss; a larger `sigma` would reach more".to_owned())
        }
        _ => None,
    };
    let found = Status::ALL.into_iter().filter(|&status| report.count(status) > 0).filter_map(reason);
    found.map(|why| format!(": {why}")).collect()
}

/// A number whose square, times many rows, is beyond doubles or vanishes.
const LARGE: f64 = 1e140;

/// Why a loss was not a finite number: most often numbers that have no square.
fn not_finite(study: &Study) -> String {
    let advice = "`data.divide` and `data.standardise` change that";
    let columns = study.trial(0).map(|trial| {
        let response = trial.train.y.iter().map(|y| ("the response".to_owned(), largest(y)));
        let column =
            |j: usize| (format!("column \"{}\"", printable(&trial.train.columns[j])), sizes(&trial.train, j));
        response.chain((0..trial.train.d()).map(column)).max_by(|a, b| a.1.total_cmp(&b.1))
    });
    match columns {
        Ok(Some((what, size))) if size > LARGE => {
            format!(
                "their loss is not a finite number, and {what} has numbers up to {size:e}, whose squares are none; {advice}"
            )
        }
        _ => "their loss was not a finite number wherever a search began; `npl explain` shows one".to_owned(),
    }
}

fn sizes(data: &Dataset, j: usize) -> f64 {
    data.x.column(j).fold(0.0, |most, v| most.max(v.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_draws_have_a_pace() {
        let left = Duration::from_secs(90);
        assert_eq!(pace(0, 0.0, Duration::ZERO), "no draw yet");
        assert_eq!(pace(5, 1234.4, left), "1234/s  1 min 30 s left");
        assert_eq!(pace(5, 2.5, left), "2.5/s  1 min 30 s left");
        assert_eq!(pace(1, 0.25, left), "4.00 s each  1 min 30 s left");
    }
}

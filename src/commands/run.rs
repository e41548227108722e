//! `npl run`: data, posterior draws, evaluation, run directory.

use std::io::{BufWriter, IsTerminal};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use npl::bootstrap::Draw;
use npl::config::printable;
use npl::error::Error;
use npl::kernel::Level;
use npl::report::{HEADER, Report};
use npl::runner::{label, run_repeat};
use npl::samples::{Format, Summary, Writer, columns};
use npl::store::{self, DrawFile, Machine, Manifest, RunDir};
use npl::study::Study;

use super::{load, note, pool, print, summary, text};
use crate::cli::RunArgs;

pub fn run(args: RunArgs) -> Result<()> {
    if let Some(target) = args.samples.as_deref().filter(|t| *t != "-") {
        let message = format!(
            "--samples {}: only `-` is possible; the run directory has the file anyway",
            printable(target)
        );
        return Err(Error::input(message).into());
    }
    let study = load(&args.config, &args.overrides, &[])?;
    let pool = pool(&args.overrides)?;
    let cancel = interruptible()?;
    let resolved = toml::to_string(&study.experiment)?;
    let out = args.out.clone().unwrap_or_else(|| Path::new("runs").join(&study.experiment.name));
    let samples = &study.experiment.output.samples;
    let folder = RunDir::open(&out, samples, &resolved, study.inputs(), args.force)?;
    if !args.quiet && study.seed_was_drawn() {
        note(&format!("seed {} (drawn; recorded in config.toml)", study.seed(0).0));
    }
    let columns = columns(&study.trial(0)?.model.names(), args.names);
    let rows = study.draws() * study.repeats();
    if let Some(advice) = text::smaller(samples, rows, columns.len()).filter(|_| !args.quiet) {
        note(&format!("{samples} {advice}"));
    }
    let clock = Clock::start();
    let file = DrawFile::create(&folder, samples, columns.clone(), rows)?;
    let (report, draws) = sample(&study, &args, file, &columns, &pool, &cancel)?;
    let seconds = clock.started.elapsed().as_secs_f64();
    let results = Results { study: &study, folder: &folder, report: &report, resolved: &resolved };
    results.write(draws, &clock, &pool, seconds)?;
    announce(&args, &report, &out)?;
    enough_succeeded(&study, &report)
}

/// A flag that Ctrl-C, SIGTERM and SIGHUP set; a second signal ends the process at once.
pub fn interruptible() -> Result<Arc<AtomicBool>> {
    let cancel = Arc::new(AtomicBool::new(false));
    let flag = cancel.clone();
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
    })?;
    Ok(cancel)
}

struct Clock {
    started: Instant,
    wall: SystemTime,
}

impl Clock {
    fn start() -> Clock {
        Clock { started: Instant::now(), wall: SystemTime::now() }
    }
}

fn unix(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

/// Draws all repeats into a file that is not yet visible, and to standard output if asked.
fn sample(
    study: &Study,
    args: &RunArgs,
    mut file: DrawFile,
    columns: &[String],
    pool: &rayon::ThreadPool,
    cancel: &AtomicBool,
) -> Result<(Report, DrawFile)> {
    let closed = |e| Error::write(Path::new("standard output"), e);
    let mut stdout = match args.samples {
        Some(_) => {
            let out = BufWriter::new(std::io::stdout());
            let mut out = Writer::new(out, Format::Csv, columns, 0).map_err(closed)?;
            out.flush().map_err(closed)?;
            Some(out)
        }
        None => None,
    };
    let bar = progress(study, args);
    let mut repeats = Vec::new();
    for repeat in 0..study.repeats() {
        let mut flushed = Instant::now();
        let on_draw = |draw: Draw| {
            file.put(repeat + 1, &draw)?;
            if let Some(out) = &mut stdout {
                out.put(repeat + 1, &draw).map_err(closed)?;
                // A reader that has seen enough is noticed at a flush.
                if flushed.elapsed() > Duration::from_millis(50) {
                    out.flush().map_err(closed)?;
                    flushed = Instant::now();
                }
            }
            bar.inc(1);
            Ok(())
        };
        repeats.push(run_repeat(study, repeat, pool, cancel, on_draw)?);
    }
    if let Some(out) = &mut stdout {
        out.flush().map_err(closed)?;
    }
    bar.finish_and_clear();
    let experiment = &study.experiment;
    Ok((Report::new(&experiment.name, experiment.method.name(), label(experiment), repeats), file))
}

/// To standard error, and only if that is a terminal.
fn progress(study: &Study, args: &RunArgs) -> ProgressBar {
    let total = (study.repeats() * study.draws()) as u64;
    let bar = ProgressBar::new(total);
    if args.quiet || !std::io::stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    } else {
        bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(8));
    }
    let template = "{msg} [{wide_bar}] {pos}/{len}  {rate}/s  {eta} left";
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let rate = |state: &ProgressState, out: &mut dyn std::fmt::Write| {
        let _ = write!(out, "{:.0}", state.per_sec());
    };
    bar.set_style(style.with_key("rate", rate).progress_chars("=> "));
    bar.set_message(study.experiment.name.clone());
    bar
}

/// What goes into the run directory once all draws are made.
struct Results<'a> {
    study: &'a Study,
    folder: &'a RunDir,
    report: &'a Report,
    resolved: &'a str,
}

impl Results<'_> {
    /// The manifest comes last: without it nothing here is a result.
    fn write(&self, draws: DrawFile, clock: &Clock, pool: &rayon::ThreadPool, seconds: f64) -> Result<()> {
        let folder = self.folder;
        let (draws, summaries) = pool.install(|| draws.settle())?;
        folder.begin_replacing(&self.study.experiment.output.samples)?;
        // The experiment comes first: a run that dies here is known for what it was, and may be run again.
        store::write_file(&folder.file(store::CONFIG), self.resolved)?;
        draws.commit()?;
        let lines = summaries.iter().map(|s| s.line() + "\n").collect::<String>();
        store::write_file(&folder.file(store::SUMMARY), &format!("{}\n{lines}", Summary::header()))?;
        let lines =
            self.report.repeats.iter().map(|r| r.line(&self.report.method) + "\n").collect::<String>();
        store::write_file(&folder.file(store::REPORT), &format!("{HEADER}\n{lines}"))?;
        let json = serde_json::to_string_pretty(self.report)? + "\n";
        store::write_file(&folder.file(store::REPORT_JSON), &json)?;
        let manifest = self.manifest(clock, pool.current_num_threads(), seconds)?;
        let json = serde_json::to_string_pretty(&manifest)? + "\n";
        store::write_file(&folder.file(store::MANIFEST), &json)?;
        Ok(())
    }

    fn manifest(&self, clock: &Clock, threads: usize, seconds: f64) -> Result<Manifest> {
        let samples = &self.study.experiment.output.samples;
        let draws = store::draw_files(samples);
        let others = [store::REPORT, store::REPORT_JSON, store::SUMMARY, store::CONFIG];
        let files = draws.iter().map(String::as_str).chain(others);
        let hash = |name: &str| Ok((name.to_owned(), store::sha256(&self.folder.file(name))?));
        let mut status = std::collections::BTreeMap::new();
        for (name, count) in self.report.repeats.iter().flat_map(|r| &r.diagnostics.status) {
            *status.entry(name.clone()).or_insert(0) += count;
        }
        Ok(Manifest {
            npl: env!("CARGO_PKG_VERSION").into(),
            seed: self.study.seed(0).0,
            repeats: self.study.repeats(),
            draws: self.study.draws(),
            threads,
            simd: Level::current().name().into(),
            machine: Machine::current(),
            started: store::utc(unix(clock.wall)),
            finished: store::utc(unix(SystemTime::now())),
            seconds,
            command: std::env::args().collect(),
            samples: samples.clone(),
            inputs: self.study.inputs().to_vec(),
            status,
            outputs: files.map(hash).collect::<Result<_>>()?,
        })
    }
}

fn announce(args: &RunArgs, report: &Report, out: &Path) -> Result<()> {
    if args.json {
        print((serde_json::to_string_pretty(report)? + "\n").as_bytes())?;
    }
    if args.quiet {
        return Ok(());
    }
    let folder = printable(&out.display().to_string());
    let text = format!(
        "{}written to {folder}; `npl summary {folder}` shows the posterior\n",
        summary::diagnostics(report)
    );
    if args.json || args.samples.is_some() {
        note(text.trim_end());
        return Ok(());
    }
    print(text.as_bytes())
}

fn enough_succeeded(study: &Study, report: &Report) -> Result<()> {
    let (failed, draws) = (report.failed(), report.draws());
    let allowed = study.experiment.sampler.max_failed.get();
    if failed as f64 > allowed * draws as f64 {
        let message = format!(
            "{failed} of {draws} draws failed, more than sampler.max_failed = {allowed} allows; they are kept, with \
             status__ 3"
        );
        return Err(Error::FailedDraws(message).into());
    }
    Ok(())
}

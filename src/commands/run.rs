//! `npl run`: data, posterior draws, evaluation, run directory.

use std::io::{BufWriter, IsTerminal, Stdout};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use npl::config::printable;
use npl::error::Error;
use npl::optim::Status;
use npl::report::Report;
use npl::run::{Options, Run, Watch};
use npl::samples::{Format, Sample, Writer};
use npl::store::RunDir;
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
    if !args.quiet {
        study.notes().changes().iter().for_each(|line| note(line));
    }
    let run = Run::new(&study, &pool, &cancel)?;
    let columns = run.file_columns(args.names).map_or(0, |columns| columns.len());
    let advice = text::smaller(samples, study.draws() * study.rounds(), columns);
    if let Some(advice) = advice.filter(|_| !args.quiet) {
        note(&format!("{samples} {advice}"));
    }
    let mut screen = Screen::new(&study, &args, &run)?;
    let options = Options { names: args.names, resolved, command: std::env::args().collect() };
    let report = run.into_folder(&folder, &options, &mut screen)?;
    screen.end()?;
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
    fn new(study: &Study, args: &RunArgs, run: &Run) -> Result<Screen> {
        let stdout = match args.samples {
            Some(_) => {
                let out = BufWriter::new(std::io::stdout());
                Some(Writer::new(out, Format::Csv, &run.columns(args.names), 0).map_err(closed)?)
            }
            None => None,
        };
        let mut screen = Screen { bar: progress(study, args), stdout, flushed: Instant::now() };
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

/// To standard error, and only if that is a terminal.
fn progress(study: &Study, args: &RunArgs) -> ProgressBar {
    let total = (study.rounds() * study.draws()) as u64;
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

fn announce(args: &RunArgs, report: &Report, out: &Path) -> Result<()> {
    if args.json {
        print((serde_json::to_string_pretty(report)? + "\n").as_bytes())?;
    }
    if args.quiet {
        return Ok(());
    }
    let folder = printable(&out.display().to_string());
    let text = format!(
        "{}{}written to {folder}; `npl summary {folder}` shows the posterior\n",
        text::warnings(report),
        summary::diagnostics(report)
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
            report.count(Status::MaxIter),
            "ran out of iterations",
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
    let message = format!("{}; they are kept, and their status__ tells them", over.join("; "));
    Err(Error::FailedDraws(message).into())
}

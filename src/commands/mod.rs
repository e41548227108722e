//! One file per subcommand: read, call the library, write.

mod alpha;
mod check;
mod export;
#[cfg_attr(not(feature = "plot"), path = "no_plot.rs")]
mod plot;
mod relabel;
#[cfg_attr(not(feature = "plot"), path = "no_report.rs")]
mod report;
mod run;
mod samples;
mod summary;
mod table;
mod text;
mod version;

use std::io::{Read, Write};
use std::path::Path;

use anyhow::{Result, anyhow};
use clap::CommandFactory;
use npl::config::{Document, nearest, printable};
use npl::data::files::SearchPath;
use npl::error::Error;
use npl::experiment::Experiment;
use npl::kernel::Level;
use npl::model::STARTERS;
use npl::report::Report;
use npl::samples::Samples;
use npl::store;
use npl::study::Study;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::cli::{Cli, Command, MachineArgs, Overrides};

pub fn dispatch(cli: Cli) -> Result<()> {
    let Some(command) = cli.command else { return version::version(&cli.version) };
    match command {
        Command::Run(args) => run::run(args),
        Command::Check(args) => check::check(args),
        Command::Export(args) => export::export(args),
        Command::New { model } => new(&model),
        Command::Summary(args) => summary::summary(args),
        Command::Relabel(args) => relabel::relabel(args),
        Command::Samples(args) => samples::samples(args),
        Command::Table(args) => table::table(args),
        Command::Plot(args) => plot::plot(args),
        Command::Report(args) => report::report(args),
        Command::Alpha(args) => alpha::alpha(args),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "npl", &mut script);
            print(&script)
        }
    }
}

/// `npl new MODEL`.
fn new(model: &str) -> Result<()> {
    let names = || STARTERS.iter().map(|(name, _)| *name);
    match STARTERS.iter().find(|(name, _)| *name == model) {
        Some((_, starter)) => print(starter.as_bytes()),
        None => {
            let hint =
                nearest(model, names()).map(|n| format!("; did you mean `{n}`?")).unwrap_or(".".into());
            let list = names().collect::<Vec<_>>().join(", ");
            Err(Error::input(format!("no model `{}`{hint} There are {list}.", printable(model))).into())
        }
    }
}

/// To standard output; unlike `print!`, a closed pipe is not a panic.
fn print(bytes: &[u8]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes)
        .and_then(|()| out.flush())
        .map_err(|e| Error::write(Path::new("standard output"), e).into())
}

/// A line to standard error; unlike `eprintln!`, a full or closed one is not a panic.
fn note(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// The warnings of a run to standard error, where standard output is for programs.
fn note_warnings(report: &Report) -> Result<()> {
    text::warnings(report).lines().for_each(note);
    Ok(())
}

/// The draws of a finished run.
fn open_draws(run: &Path) -> Result<Samples> {
    if store::read_manifest(run)?.samples.is_empty() {
        let shown = printable(&run.display().to_string());
        let message = format!("{shown} is a path that kept no draws: name parameters in `path.keep`");
        return Err(Error::input(message).into());
    }
    Ok(Samples::open(&store::samples_of(run)?)?)
}

/// An experiment file with its overrides, checked and with its data read.
fn load(config: &Path, overrides: &Overrides, more: &[String]) -> Result<Study> {
    pin(&overrides.machine)?;
    let shown = config.display().to_string();
    let text = read_text(config)?;
    let seed = overrides.seed.map(|seed| format!("seed={seed}"));
    let sets: Vec<String> = overrides.set.iter().cloned().chain(seed).chain(more.iter().cloned()).collect();
    let document = Document::parse(&shown, &text, &sets).map_err(Error::from)?;
    let experiment: Experiment = document.decode().map_err(Error::from)?;
    Ok(Study::new(document, experiment, SearchPath::new(overrides.data_dir.as_deref()))?)
}

fn read_text(path: &Path) -> Result<String> {
    let shown = printable(&path.display().to_string());
    let wrong = |what: String| Error::input(format!("{shown}: {what}"));
    let meta = std::fs::metadata(path).map_err(|e| wrong(e.to_string()))?;
    if !meta.is_file() {
        return Err(wrong("not a regular file".into()).into());
    }
    // One byte beyond what is allowed is enough to refuse the file, however large it is.
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(Document::MAX_BYTES as u64 + 1).read_to_end(&mut bytes))
        .map_err(|e| wrong(e.to_string()))?;
    if bytes.len() > Document::MAX_BYTES {
        let message = format!("the file has {} bytes; at most {} are read", meta.len(), Document::MAX_BYTES);
        return Err(wrong(message).into());
    }
    Ok(String::from_utf8(bytes).map_err(|_| wrong("not UTF-8 text".into()))?)
}

/// Which kernels compute: `--simd`, else the best this CPU has.
fn pin(machine: &MachineArgs) -> Result<()> {
    let Some(level) = machine.simd else { return Ok(()) };
    let refuse =
        |best: Level| Error::input(format!("--simd {}: this CPU has {} at best", level.name(), best.name()));
    Ok(level.pin().map_err(refuse)?)
}

/// The threads of a run: `--threads`, else $RAYON_NUM_THREADS, $SLURM_CPUS_PER_TASK, else all cores; and which of these
/// it was.
fn threads(machine: &MachineArgs) -> (usize, &'static str) {
    let from_env = |name: &'static str| {
        let count = std::env::var(name).ok()?.parse::<usize>().ok().filter(|&n| n > 0)?;
        Some((count, name))
    };
    machine
        .threads
        .map(|n| (usize::from(n), "--threads"))
        .or_else(|| from_env("RAYON_NUM_THREADS"))
        .or_else(|| from_env("SLURM_CPUS_PER_TASK"))
        .unwrap_or_else(|| (std::thread::available_parallelism().map_or(1, |n| n.get()), "all cores"))
}

fn pool(overrides: &Overrides) -> Result<ThreadPool> {
    let (threads, _) = threads(&overrides.machine);
    ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|e| anyhow!("cannot start {threads} threads: {e}"))
}

//! `npl run`: data, posterior draws, evaluation, run directory.

use std::io::{BufWriter, IsTerminal, Stdout};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use npl::config::printable;
use npl::error::Error;
use npl::kernel::Level;
use npl::optim::Status;
use npl::path::SettingDraws;
use npl::report::{HEADER, PathReport, Repeat, Report};
use npl::runner::run_repeat;
use npl::samples::{Format, Relation, Sample, Summary, Writer, columns};
use npl::store::{self, AtomicFile, DrawFile, Machine, Manifest, RunDir};
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
    let clock = Clock::start();
    let outputs = Outputs::create(&study, &args, &folder)?;
    let (report, outputs) = sample(&study, &args, outputs, &pool, &cancel)?;
    let seconds = clock.started.elapsed().as_secs_f64();
    let results = Results { study: &study, folder: &folder, report: &report, resolved: &resolved };
    results.write(outputs, &clock, &pool, seconds)?;
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

/// Where draws go: files that are not yet visible, and standard output if asked.
struct Outputs {
    /// The file of draws; a path has one only if parameters are to be kept.
    draws: Option<DrawFile>,
    path: Option<PathFile>,
    stdout: Option<Writer<BufWriter<Stdout>>>,
    relation: Relation,
}

/// `path.csv`, and which parameters of a draw are kept.
struct PathFile {
    file: AtomicFile,
    near_zero: f64,
    kept: Vec<usize>,
}

fn closed(e: std::io::Error) -> Error {
    Error::write(Path::new("standard output"), e)
}

impl Outputs {
    fn create(study: &Study, args: &RunArgs, folder: &RunDir) -> Result<Outputs> {
        let trial = study.trial(0)?;
        let names = study.parameters(&trial);
        let own = study.inference().statistics();
        let rows = study.draws() * study.rounds();
        let path = match &study.experiment.path {
            Some(config) => {
                let mut file = AtomicFile::create(&folder.file(store::PATH))?;
                file.put(|out| writeln!(out, "{}", npl::path::HEADER))?;
                let kept = config.keep.iter().filter_map(|k| names.iter().position(|n| n == k)).collect();
                Some(PathFile { file, near_zero: config.near_zero.get(), kept })
            }
            None => None,
        };
        let written: Vec<String> = match &path {
            Some(path) => path.kept.iter().map(|&j| names[j].clone()).collect(),
            None => names.clone(),
        };
        let samples = &study.experiment.output.samples;
        let file_columns = columns(own, &written, args.names);
        let draws = match written.is_empty() {
            true => None,
            false => {
                if let Some(advice) = text::smaller(samples, rows, file_columns.len()).filter(|_| !args.quiet)
                {
                    note(&format!("{samples} {advice}"));
                }
                Some(DrawFile::create(folder, samples, file_columns, trial.relation.draws, rows)?)
            }
        };
        let stdout = match args.samples {
            Some(_) => {
                let out = BufWriter::new(std::io::stdout());
                let columns = columns(own, &names, args.names);
                let mut out = Writer::new(out, Format::Csv, &columns, 0).map_err(closed)?;
                out.flush().map_err(closed)?;
                Some(out)
            }
            None => None,
        };
        Ok(Outputs { draws, path, stdout, relation: trial.relation })
    }

    /// Adds a draw; rounds are counted from 1.
    fn put(&mut self, round: usize, draw: &Sample) -> npl::error::Result<()> {
        match (&mut self.draws, &self.path) {
            (Some(draws), None) => draws.put(round, draw)?,
            (Some(draws), Some(path)) => draws.put(round, &path.kept_of(draw))?,
            (None, _) => {}
        }
        self.stdout.as_mut().map_or(Ok(()), |out| out.put(round, draw).map_err(closed))
    }

    fn flush_stdout(&mut self) -> npl::error::Result<()> {
        self.stdout.as_mut().map_or(Ok(()), |out| out.flush().map_err(closed))
    }
}

impl PathFile {
    /// The draw with the kept parameters alone.
    fn kept_of(&self, draw: &Sample) -> Sample {
        let theta = self.kept.iter().map(|&j| draw.theta[j]).collect();
        Sample { theta, extra: draw.extra.clone(), ..*draw }
    }
}

/// Draws all repeats, or all settings of the path.
fn sample(
    study: &Study,
    args: &RunArgs,
    mut outputs: Outputs,
    pool: &rayon::ThreadPool,
    cancel: &AtomicBool,
) -> Result<(Report, Outputs)> {
    let bar = progress(study, args);
    let values = study.settings();
    let mut repeats = Vec::new();
    for round in 0..study.rounds() {
        let setting = values.get(round).map(|_| study.setting(round)).transpose()?;
        let (study, repeat) = setting.as_ref().map_or((study, round), |setting| (setting, 0));
        let names =
            setting.as_ref().map(|s| Ok::<_, Error>(s.parameters(s.trial(0)?.as_ref()))).transpose()?;
        let mut posterior = names.map(|names| SettingDraws::new(names, study.draws()));
        let mut flushed = Instant::now();
        let on_draw = |draw: Sample| {
            outputs.put(round + 1, &draw)?;
            if let Some(posterior) = posterior.as_mut().filter(|_| !draw.failed()) {
                posterior.add(&draw.theta);
            }
            // A reader that has seen enough is noticed at a flush.
            if flushed.elapsed() > Duration::from_millis(50) {
                outputs.flush_stdout()?;
                flushed = Instant::now();
            }
            Ok(())
        };
        let done = run_repeat(study, repeat, pool, cancel, on_draw, |more| bar.inc(more))?;
        repeats.push(Repeat { repeat: round + 1, ..done });
        if let (Some(path), Some(posterior)) = (&mut outputs.path, posterior) {
            let value = values[round].to_string();
            for point in pool.install(|| posterior.points(path.near_zero)) {
                path.file.put(|out| out.write_all(point.line(round + 1, &value).as_bytes()))?;
            }
        }
    }
    outputs.flush_stdout()?;
    bar.finish_and_clear();
    let experiment = &study.experiment;
    let report = Report::new(&experiment.name, experiment.method.name(), study.label(), repeats);
    let report = report.of_draws(outputs.relation).of_data(study.file_notes());
    let report = match &experiment.path {
        Some(path) => report.of_path(PathReport {
            parameter: path.parameter.clone(),
            values: values.iter().map(ToString::to_string).collect(),
        }),
        None => report,
    };
    Ok((report, outputs))
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

/// What goes into the run directory once all draws are made.
struct Results<'a> {
    study: &'a Study,
    folder: &'a RunDir,
    report: &'a Report,
    resolved: &'a str,
}

impl Results<'_> {
    /// The manifest comes last: without it nothing here is a result.
    fn write(&self, outputs: Outputs, clock: &Clock, pool: &rayon::ThreadPool, seconds: f64) -> Result<()> {
        let folder = self.folder;
        let samples = &self.study.experiment.output.samples;
        let mut files: Vec<String> = match outputs.draws {
            Some(_) => store::draw_files(samples),
            None => Vec::new(),
        };
        let settled = outputs.draws.map(|draws| pool.install(|| draws.settle())).transpose()?;
        let mut path = outputs.path.map(|path| path.file);
        path.as_mut().map_or(Ok(()), AtomicFile::settle)?;
        let posterior = if path.is_some() { store::PATH } else { store::SUMMARY };
        files.extend([posterior, store::REPORT, store::REPORT_JSON, store::CONFIG].map(String::from));
        let elbo = self.report.elbo();
        files.extend(elbo.is_some().then(|| store::ELBO.to_owned()));
        folder.begin_replacing(&files)?;
        // The experiment comes first: a run that dies here is known for what it was, and may be run again.
        store::write_file(&folder.file(store::CONFIG), self.resolved)?;
        let summaries = settled.map(|(draws, summaries)| draws.commit().map(|()| summaries)).transpose()?;
        match path {
            Some(path) => path.commit()?,
            None => {
                let text = Summary::table(summaries.as_deref().unwrap_or_default());
                store::write_file(&folder.file(store::SUMMARY), &text)?;
            }
        }
        let lines =
            self.report.repeats.iter().map(|r| r.line(&self.report.method) + "\n").collect::<String>();
        store::write_file(&folder.file(store::REPORT), &format!("{HEADER}\n{lines}"))?;
        let json = serde_json::to_string_pretty(self.report)? + "\n";
        store::write_file(&folder.file(store::REPORT_JSON), &json)?;
        elbo.map_or(Ok(()), |text| store::write_file(&folder.file(store::ELBO), &text))?;
        let manifest = self.manifest(&files, clock, pool.current_num_threads(), seconds)?;
        let json = serde_json::to_string_pretty(&manifest)? + "\n";
        store::write_file(&folder.file(store::MANIFEST), &json)?;
        Ok(())
    }

    fn manifest(&self, files: &[String], clock: &Clock, threads: usize, seconds: f64) -> Result<Manifest> {
        let samples = &self.study.experiment.output.samples;
        let hash = |name: &String| Ok((name.clone(), store::sha256(&self.folder.file(name))?));
        let mut status = std::collections::BTreeMap::new();
        for (name, count) in self.report.repeats.iter().flat_map(|r| &r.diagnostics.status) {
            *status.entry(name.clone()).or_insert(0) += count;
        }
        Ok(Manifest {
            npl: env!("CARGO_PKG_VERSION").into(),
            seed: self.study.seed(0).0,
            repeats: self.study.rounds(),
            draws: self.study.draws(),
            threads,
            simd: Level::current().name().into(),
            machine: Machine::current(),
            started: store::utc(unix(clock.wall)),
            finished: store::utc(unix(SystemTime::now())),
            seconds,
            command: std::env::args().collect(),
            samples: if files.contains(samples) { samples.clone() } else { String::new() },
            relation: self.report.relation,
            inputs: self.study.inputs().to_vec(),
            data: self.study.file_notes(),
            status,
            outputs: files.iter().map(hash).collect::<Result<_>>()?,
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

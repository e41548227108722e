//! One file per subcommand: read, call the library, write.

mod alpha;
mod check;
mod compare;
mod complete;
mod contrasts;
mod convert;
mod corrections;
mod coverage;
mod explain;
mod export;
mod groups;
mod man;
mod merge;
#[cfg_attr(not(feature = "plot"), path = "no_plot.rs")]
mod plot;
mod predict;
mod questions;
mod relabel;
#[cfg_attr(not(feature = "plot"), path = "no_report.rs")]
mod report;
mod run;
mod samples;
mod shard;
mod stop;
mod summary;
mod table;
mod text;
mod verify;
mod version;

use std::io::{Read, Write};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, anyhow};
use npl::config::{Document, nearest, printable};
use npl::data::files::SearchPath;
use npl::data::{blocks, cache, memory};
use npl::error::{Error, plainly};
use npl::experiment::Experiment;
use npl::kernel::Level;
use npl::model::STARTERS;
use npl::report::Report;
use npl::run::simd_class;
use npl::samples::Samples;
use npl::storage;
use npl::store::{self, Manifest};
use npl::study::Study;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::cli::{Cli, Command, MachineArgs, Overrides, ReadArgs};

pub fn dispatch(cli: Cli) -> Result<()> {
    let Some(command) = cli.command else { return version::version(&cli.version) };
    match command {
        Command::Run(args) => run::run(args),
        Command::Merge(args) => merge::merge(args),
        Command::Verify(args) => verify::verify(args),
        Command::Explain(args) => explain::explain(args),
        Command::Check(args) => check::check(args),
        Command::Convert(args) => convert::convert(args),
        Command::Export(args) => export::export(args),
        Command::New { model } => new(&model),
        Command::Summary(args) => summary::summary(args),
        Command::Relabel(args) => relabel::relabel(args),
        Command::Samples(args) => samples::samples(args),
        Command::Predict(args) => predict::predict(args),
        Command::Table(args) => table::table(args),
        Command::Compare(args) => compare::compare(args),
        Command::Coverage(args) => coverage::coverage(args),
        Command::Plot(args) => plot::plot(args),
        Command::Report(args) => report::report(args),
        Command::Alpha(args) => alpha::alpha(args),
        Command::Schema => check::schema(),
        Command::Completions { shell } => complete::script(shell),
        Command::Complete { words } => complete::complete(&words),
        Command::Man => man::man(),
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

/// Which repeat (of each group), or setting of a path, from 1, if one is named: both are numbered by `repeat__`.
fn round(report: &Report, repeat: Option<usize>, setting: Option<usize>) -> Result<Option<usize>> {
    let (flag, what, given, other) = match report.path {
        Some(_) => {
            let other = repeat.map(|r| format!("--repeat {r}: the run is a path; see --setting"));
            ("--setting", "settings", setting, other)
        }
        None => {
            let other = setting.map(|s| format!("--setting {s}: the run is not a path; see --repeat"));
            ("--repeat", "repeats", repeat, other)
        }
    };
    let count = report.path.as_ref().map_or(report.each(), |path| path.values.len());
    let outside = given.filter(|r| !(1..=count).contains(r));
    let message = other.or(outside.map(|r| format!("{flag} {r}: the run has {what} 1 to {count}")));
    message.map_or(Ok(given), |message| Err(Error::input(message).into()))
}

/// An experiment file with its overrides, checked and with its data read.
fn load(config: &Path, overrides: &Overrides, more: &[String]) -> Result<Study> {
    pin(&overrides.machine)?;
    let (document, experiment) = read(config, overrides, more)?;
    study(document, experiment, overrides.data_dir.as_deref())
}

/// An experiment file with its overrides, as it stands.
fn read(config: &Path, overrides: &Overrides, more: &[String]) -> Result<(Document, Experiment)> {
    let shown = config.display().to_string();
    let text = read_text(config)?;
    let seed = overrides.seed.map(|seed| format!("seed={seed}"));
    let sets: Vec<String> = overrides.set.iter().cloned().chain(seed).chain(more.iter().cloned()).collect();
    let document = Document::parse(&shown, &text, &sets).map_err(Error::from)?;
    let experiment = Experiment::read(&document).map_err(Error::from)?;
    Ok((document, experiment))
}

/// The experiment of a run, from its resolved text, which `shown` is the place of.
fn load_resolved(shown: &str, text: &str, data_dir: Option<&Path>, more: &[String]) -> Result<Study> {
    let document = Document::parse(shown, text, more).map_err(Error::from)?;
    let experiment = Experiment::read(&document).map_err(Error::from)?;
    study(document, experiment, data_dir)
}

/// An experiment with its data; what there is to say of how they were had is said.
fn study(document: Document, experiment: Experiment, data_dir: Option<&Path>) -> Result<Study> {
    let study = Study::new(document, experiment, SearchPath::new(data_dir));
    cache::notes().iter().for_each(|line| note(line));
    Ok(study?)
}

/// A finished run as it was made: its manifest, and its experiment with the data read again. Kernels of the class that made
/// it are pinned; data that have changed since are refused.
fn load_run(run: &Path, data_dir: Option<&Path>, machine: &MachineArgs) -> Result<(Manifest, Study)> {
    let manifest = store::read_manifest(run)?;
    let shown = printable(&run.display().to_string());
    if manifest.npl != env!("CARGO_PKG_VERSION") {
        let message =
            format!("{shown} was written by npl {}, and this is {}", manifest.npl, env!("CARGO_PKG_VERSION"));
        return Err(Error::input(message).into());
    }
    pin_class(simd_class(&manifest.simd), machine)?;
    let config = store::file_of(run, store::CONFIG)?;
    let text = read_text(&config)?;
    let study = load_resolved(&config.display().to_string(), &text, data_dir, &[])?;
    let mut pairs = study.inputs().iter().zip(&manifest.inputs);
    if let Some((now, _)) = pairs.find(|(now, then)| now.sha256 != then.sha256) {
        let message = format!("{} has changed since {shown} was made of it", printable(&now.path));
        return Err(Error::input(message).into());
    }
    Ok((manifest, study))
}

/// Kernels that round as these do, unless others are asked for.
fn pin_class(class: &str, machine: &MachineArgs) -> Result<()> {
    pin(machine)?;
    if machine.simd.is_none() && class == simd_class(Level::PLAIN.name()) {
        let _ = Level::PLAIN.pin();
    }
    let ours = simd_class(Level::current().name());
    if ours != class {
        let message = format!("it was made on a SIMD level of {{{class}}}, and this is one of {{{ours}}}");
        return Err(Error::input(message).into());
    }
    Ok(())
}

/// Files of runs are read without being checked, if that is asked for.
fn reading(args: &ReadArgs) {
    if args.no_verify {
        store::believe_all();
    }
}

/// `90`, `90s`, `45m`, `3h50m`, `1d`.
pub fn time(text: &str) -> std::result::Result<Duration, String> {
    let wrong = || format!("`{text}` is no time such as 90s, 45m or 3h50m");
    let (mut total, mut digits) = (0u64, String::new());
    // A bare number is seconds; behind a unit (3h50) it could be meant either way.
    let bare = text.bytes().all(|b| b.is_ascii_digit());
    for c in text.chars().chain(bare.then_some('s')) {
        let unit = match c {
            '0'..='9' => {
                digits.push(c);
                continue;
            }
            's' => 1,
            'm' => 60,
            'h' => 3600,
            'd' => 86_400,
            _ => return Err(wrong()),
        };
        let count = std::mem::take(&mut digits).parse::<u64>().map_err(|_| wrong())?;
        total = count.checked_mul(unit).and_then(|t| total.checked_add(t)).ok_or_else(wrong)?;
    }
    if total > 0 && digits.is_empty() { Ok(Duration::from_secs(total)) } else { Err(wrong()) }
}

/// `300000000`, `500M`, `8G`, `1.5T`: bytes.
pub fn size(text: &str) -> std::result::Result<u64, String> {
    let wrong = || format!("`{text}` is no size such as 500M or 8G");
    let units = [('K', 1e3), ('M', 1e6), ('G', 1e9), ('T', 1e12)];
    let (number, unit) = match units.iter().find(|(letter, _)| text.to_ascii_uppercase().ends_with(*letter)) {
        Some((_, unit)) => (&text[..text.len() - 1], *unit),
        None => (text, 1.0),
    };
    let bytes = number.parse::<f64>().map_err(|_| wrong())? * unit;
    if (1.0..=1e18).contains(&bytes) { Ok(bytes as u64) } else { Err(wrong()) }
}

/// A number of seconds, not below 0.
pub fn seconds(text: &str) -> std::result::Result<Duration, String> {
    let number = text.parse::<f64>().ok().and_then(|s| Duration::try_from_secs_f64(s).ok());
    number.ok_or_else(|| format!("`{text}` is no number of seconds"))
}

/// A positive number of minutes.
pub fn minutes(text: &str) -> std::result::Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|m| *m > 0.0 && m.is_finite());
    number.ok_or_else(|| format!("`{text}` is no positive number of minutes"))
}

/// A path as a shell takes it for one word.
fn in_shell(path: &Path) -> String {
    let shown = printable(&path.display().to_string());
    let plain = |c: char| c.is_alphanumeric() || "/._-+=:@%,".contains(c);
    if !shown.is_empty() && shown.chars().all(plain) {
        return shown;
    }
    format!("'{}'", shown.replace('\'', "'\\''"))
}

fn read_text(path: &Path) -> Result<String> {
    let shown = printable(&path.display().to_string());
    let wrong = |what: String| Error::input(format!("{shown}: {what}"));
    let meta = std::fs::metadata(path).map_err(|e| wrong(plainly(&e)))?;
    if !meta.is_file() {
        return Err(wrong("not a regular file".into()).into());
    }
    // One byte beyond what is allowed is enough to refuse the file, however large it is.
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(Document::MAX_BYTES as u64 + 1).read_to_end(&mut bytes))
        .map_err(|e| wrong(plainly(&e)))?;
    if bytes.len() > Document::MAX_BYTES {
        let message = format!("the file has {} bytes; at most {} are read", meta.len(), Document::MAX_BYTES);
        return Err(wrong(message).into());
    }
    Ok(String::from_utf8(bytes).map_err(|_| wrong("not UTF-8 text".into()))?)
}

/// How much memory may be used, and which kernels compute: `--simd`, else the best this CPU has.
fn pin(machine: &MachineArgs) -> Result<()> {
    machine.max_memory.into_iter().for_each(memory::allow);
    machine.cache.iter().cloned().for_each(storage::use_folder);
    if machine.no_cache {
        cache::turn_off();
    }
    blocks::allow(threads(machine)?.0);
    let Some(simd) = machine.simd else { return Ok(()) };
    let refuse =
        |best: Level| Error::input(format!("--simd {}: this CPU has {} at best", simd.name(), best.name()));
    Ok(Level::named(simd).and_then(Level::pin).map_err(refuse)?)
}

/// As many threads as are of any use.
const MOST_THREADS: usize = 1024;

/// The threads of a run: `--threads`, else $RAYON_NUM_THREADS, $SLURM_CPUS_PER_TASK, else all cores; and which of these
/// it was.
fn threads(machine: &MachineArgs) -> Result<(usize, &'static str)> {
    if let Some(threads) = machine.threads {
        return Ok((usize::from(threads), "--threads"));
    }
    for name in ["RAYON_NUM_THREADS", "SLURM_CPUS_PER_TASK"] {
        let said = std::env::var(name).ok().and_then(|text| text.parse::<usize>().ok()).filter(|&n| n > 0);
        match said {
            Some(count) if count > MOST_THREADS => {
                let message = format!("${name} is {count}, and at most {MOST_THREADS} threads are possible");
                return Err(Error::input(message).into());
            }
            Some(count) => return Ok((count, name)),
            None => {}
        }
    }
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    Ok((cores.min(MOST_THREADS), "all cores"))
}

fn pool(machine: &MachineArgs) -> Result<ThreadPool> {
    let (threads, _) = threads(machine)?;
    ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|e| anyhow!("cannot start {threads} threads: {e}"))
}

/// Ways to runs without the folders that all of them lie in, so that names say what differs.
fn ways(runs: &[PathBuf]) -> Vec<String> {
    let parts: Vec<Vec<Component>> = runs.iter().map(|run| run.components().collect()).collect();
    let least = parts.iter().map(Vec::len).min().unwrap_or(0);
    let same = |k: &usize| parts.iter().all(|way| way[*k] == parts[0][*k]);
    let shared = (0..least.saturating_sub(1)).take_while(same).count();
    let rest =
        |way: &Vec<Component>| printable(&way[shared..].iter().collect::<PathBuf>().display().to_string());
    parts.iter().map(rest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        let found = ["300", "500M", "8g", "1.5K"].map(|text| size(text).ok());
        assert_eq!(found, [300, 500_000_000, 8_000_000_000, 1500].map(Some));
        for text in ["", "M", "-1G", "nan", "inf", "8X", "0", "1e300G"] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_are_read() {
        let seconds = |text: &str| time(text).map(|t| t.as_secs()).ok();
        let found = ["90", "90s", "45m", "3h50m", "1d2h"].map(seconds);
        assert_eq!(found, [90, 90, 2700, 13_800, 93_600].map(Some));
        for text in ["", "h", "1h30", "3x", "-5m", "0", "1.5h", "99999999999999999999s", "m5"] {
            assert!(time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn ways_say_what_differs() {
        let told = |runs: &[&str]| ways(&runs.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(told(&["/a/b/rr/100", "/a/b/nuts/100"]), ["rr/100", "nuts/100"]);
        assert_eq!(told(&["/a/b", "/a/b/c"]), ["b", "b/c"]);
        assert_eq!(told(&["runs/x", "../x"]), ["runs/x", "../x"]);
        assert_eq!(told(&["runs/x", "runs/x"]), ["x", "x"]);
        assert_eq!(told(&["x"]), ["x"]);
        assert_eq!(told(&[]), [""; 0]);
    }
}

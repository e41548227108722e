//! What stops a command before it is done: Ctrl-C, signals of a scheduler, a time limit. What was made is kept first.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::Context;
use npl::config::printable;
use npl::coverage::Archive;
use npl::error::Error;
use npl::run::Keeper;
use npl::store::RunDir;

use super::note;

/// How long draws in the making are waited for.
const GRACE: Duration = Duration::from_secs(10);
/// The same where nothing is kept.
const SHORT_GRACE: Duration = Duration::from_secs(2);
/// Between two looks at signals and clock.
const TICK: Duration = Duration::from_millis(50);

/// Why it was stopped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reason {
    Interrupted,
    Terminated,
    TimeLimit,
}

impl Reason {
    fn code(self) -> u8 {
        if self == Reason::Interrupted { 130 } else { 143 }
    }

    fn what(self) -> &'static str {
        match self {
            Reason::Interrupted => "interrupted",
            Reason::Terminated => "terminated",
            Reason::TimeLimit => "the time limit is reached",
        }
    }
}

/// What a run leaves when it is stopped.
#[derive(Default)]
pub struct Leaves {
    pub keeper: Option<Arc<Keeper>>,
    pub folder: Option<Arc<RunDir>>,
    /// How far it has come, in words.
    pub progress: Option<Box<dyn Fn() -> String + Send + Sync>>,
    /// The command that goes on.
    pub goes_on: String,
    /// Data sets that are done, where these are what is made.
    pub archive: Option<Arc<Archive>>,
}

/// Looks out for signals, and for the time.
pub struct Minder {
    /// Set when it is time to stop.
    pub cancel: Arc<AtomicBool>,
    reason: Arc<Mutex<Option<Reason>>>,
    leaves: Arc<Leaves>,
}

impl Minder {
    /// From now on; `limit` is what is left of the time.
    pub fn new(leaves: Leaves, limit: Option<Duration>) -> anyhow::Result<Minder> {
        let minder = Minder { cancel: Arc::default(), reason: Arc::default(), leaves: Arc::new(leaves) };
        let (cancel, reason, leaves) = (minder.cancel.clone(), minder.reason.clone(), minder.leaves.clone());
        let mut signals = signals::Signals::new()?;
        let end = limit.map(|limit| Instant::now() + limit);
        let grace = if leaves.keeps() { GRACE } else { SHORT_GRACE };
        let mind = move || {
            let mut since: Option<(Instant, Reason)> = None;
            loop {
                std::thread::sleep(TICK);
                let late = end.is_some_and(|end| Instant::now() >= end).then_some(Reason::TimeLimit);
                for why in signals.pending().chain(late) {
                    match since {
                        None => {
                            *reason.lock().unwrap_or_else(|e| e.into_inner()) = Some(why);
                            cancel.store(true, Ordering::SeqCst);
                            since = Some((Instant::now(), why));
                        }
                        // Whoever presses Ctrl-C again means it; a scheduler may say the same twice.
                        Some(_) if why == Reason::Interrupted => std::process::exit(130),
                        Some(_) => {}
                    }
                }
                match since.filter(|(at, _)| at.elapsed() > grace) {
                    Some((_, why)) => leaves.abandon(why),
                    // A disk that is full is noticed where the draws are added.
                    None => drop(leaves.keeper.as_ref().map(|keeper| keeper.write_if_due())),
                }
            }
        };
        std::thread::Builder::new().spawn(mind).context("cannot start a thread")?;
        Ok(minder)
    }

    /// The error with what stopped the run, and how to go on with it.
    pub fn explain(&self, error: Error) -> Error {
        let reason = *self.reason.lock().unwrap_or_else(|e| e.into_inner());
        match (error, reason) {
            (Error::Interrupted, Some(reason)) => {
                let kept = self.leaves.write();
                Error::Stopped(self.leaves.message(reason, matches!(kept, Some(Ok(true)))), reason.code())
            }
            // A disk that is full, say.
            (error @ Error::Write { .. }, _) if self.leaves.keeps() => Error::Failed(format!(
                "{error}; what was kept before stays. Once that is mended, go on with:\n  {}",
                self.leaves.goes_on
            )),
            (error, _) => error,
        }
    }
}

impl Leaves {
    fn keeps(&self) -> bool {
        self.keeper.is_some() || self.archive.is_some()
    }

    /// Brings to disk what was made; whether anything is there.
    fn write(&self) -> Option<npl::error::Result<bool>> {
        let of_archive = || self.archive.as_ref().map(|archive| archive.write());
        self.keeper.as_ref().map(|keeper| keeper.write()).or_else(of_archive)
    }

    fn message(&self, reason: Reason, kept: bool) -> String {
        let what = reason.what();
        if !self.keeps() || !kept {
            return format!("{what}; nothing was written");
        }
        let progress = self.progress.as_ref().map_or(String::new(), |progress| progress());
        format!("{what}; {progress}. Go on with:\n  {}", self.goes_on)
    }

    /// Draws in the making take too long: the process ends without them.
    fn abandon(&self, reason: Reason) {
        let leave = |kept: bool| {
            self.folder.iter().for_each(|folder| folder.sweep());
            note(&format!("npl: {}", self.message(reason, kept)));
            std::process::exit(i32::from(reason.code()))
        };
        match &self.keeper {
            Some(keeper) => keeper.last(|written| leave(written.is_ok())),
            None => leave(matches!(self.write(), Some(Ok(true)))),
        }
    }
}

/// This command line, to go on with; `draws` if their number was reckoned by `--more`.
pub fn goes_on(draws: Option<usize>) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut args = std::env::args();
    words.extend(args.next().map(|program| {
        Path::new(&program).file_name().map_or(program.clone(), |name| name.to_string_lossy().into_owned())
    }));
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--force" | "--resume" => {}
            "--more" => drop(args.next()),
            more if more.starts_with("--more=") => {}
            _ => words.push(arg),
        }
    }
    if let Some(draws) = draws {
        words.extend(["--set".to_owned(), format!("sampler.B={draws}")]);
    }
    // Data sets that are there are gone on with whether that is asked for or not.
    if words.get(1).is_none_or(|command| command != "coverage") {
        words.push("--resume".to_owned());
    }
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// A word as a shell wants it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    let word = printable(word);
    if !word.is_empty() && word.chars().all(plain) {
        word
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(unix)]
mod signals {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};

    use super::Reason;

    pub struct Signals(signal_hook::iterator::Signals);

    impl Signals {
        /// Those that whoever started us has not told us to ignore: `nohup` means it.
        pub fn new() -> anyhow::Result<Signals> {
            let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
            let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
            let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
            // Elsewhere than on Linux nobody tells, and SIGHUP, left alone, stays ignored if it was.
            let hang_up = ignored.map(|_| SIGHUP);
            let wanted = [SIGINT, SIGTERM, SIGUSR1].into_iter().chain(hang_up);
            let minded: Vec<i32> =
                wanted.filter(|signal| ignored.unwrap_or(0) >> (signal - 1) & 1 == 0).collect();
            Ok(Signals(signal_hook::iterator::Signals::new(minded)?))
        }

        pub fn pending(&mut self) -> impl Iterator<Item = Reason> {
            let reason = |signal| if signal == SIGINT { Reason::Interrupted } else { Reason::Terminated };
            self.0.pending().map(reason)
        }
    }
}

#[cfg(not(unix))]
mod signals {
    use super::Reason;

    /// Other systems end a process as they do.
    pub struct Signals;

    impl Signals {
        pub fn new() -> anyhow::Result<Signals> {
            Ok(Signals)
        }

        pub fn pending(&mut self) -> impl Iterator<Item = Reason> {
            std::iter::empty()
        }
    }
}

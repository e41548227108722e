//! The run directory, and the only place that writes files: a result file is absent or whole.

mod copy;
mod disk;
mod draws;
#[cfg(test)]
pub mod faulty;

use std::fs;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use copy::{refuse_result, relabelled, write_draws};
pub use disk::{Disk, Lock, Output, RealDisk};
pub use draws::DrawFile;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::config::printable;
use crate::data::files::Input;
use crate::data::prepare::Notes;
use crate::error::{Error, Result};
use crate::report::Report;
use crate::samples::{Format, Relation, Samples};

/// Where draws are if nothing else is asked for.
pub const SAMPLES: &str = "samples.csv";
pub const REPORT: &str = "report.csv";
pub const REPORT_JSON: &str = "report.json";
pub const SUMMARY: &str = "summary.csv";
pub const PATH: &str = "path.csv";
pub const CONFIG: &str = "config.toml";
pub const MANIFEST: &str = "manifest.json";
/// Names that no file of draws may have.
/// The ELBO of a variational fit.
pub const ELBO: &str = "elbo.csv";
pub const RESERVED: [&str; 7] = [REPORT, REPORT_JSON, SUMMARY, PATH, ELBO, CONFIG, MANIFEST];
/// A page about the run, which is no result: no manifest lists it.
pub const PAGE: &str = "report.html";
/// What such a page says made it, among its first so many bytes.
pub const GENERATOR: &str = "npl report";
const PAGE_HEAD: u64 = 1024;
const LOCK: &str = ".npl.lock";

/// A file that appears under its name only when it is complete and on disk.
pub struct AtomicFile {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    temporary: PathBuf,
    writer: Option<BufWriter<Box<dyn Output>>>,
}

impl AtomicFile {
    pub fn create(path: &Path) -> Result<AtomicFile> {
        AtomicFile::create_on(Arc::new(RealDisk), path)
    }

    pub fn create_on(disk: Arc<dyn Disk>, path: &Path) -> Result<AtomicFile> {
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let temporary = path.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
        // A left-over of a dead process with our number is ours to remove; anything else is not followed.
        let _ = disk.remove(&temporary);
        let file = disk.create(&temporary).map_err(|e| Error::write(path, e))?;
        let writer = Some(BufWriter::with_capacity(1 << 18, file));
        Ok(AtomicFile { disk, path: path.to_owned(), temporary, writer })
    }

    fn writer(&mut self) -> &mut BufWriter<Box<dyn Output>> {
        self.writer.as_mut().expect("open until it is committed")
    }

    /// Writes over the first bytes.
    fn mend(&mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        let flushed = self.writer().flush();
        let mended = flushed.and_then(|()| write(&mut self.disk.reopen(&self.temporary)?));
        mended.map_err(|e| Error::write(&self.path, e))
    }

    /// Writes, naming the file in any error.
    pub fn put(&mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        write(self.writer()).map_err(|e| Error::write(&self.path, e))
    }

    /// To disk, but not yet under its name: a full disk shows here, while older results are still untouched.
    pub fn settle(&mut self) -> Result<()> {
        let writer = self.writer();
        let settled = writer.flush().and_then(|()| writer.get_mut().sync());
        settled.map_err(|e| Error::write(&self.path, e))
    }

    /// To disk, then under its name. The buffer is flushed by hand: dropping it would swallow a full disk.
    pub fn commit(mut self) -> Result<()> {
        let writer = self.writer.take().expect("open until it is committed");
        let finish = || -> io::Result<()> {
            writer.into_inner().map_err(|e| e.into_error())?.sync()?;
            self.disk.rename(&self.temporary, &self.path)
        };
        finish().map_err(|e| Error::write(&self.path, e))
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer().flush()
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        drop(self.writer.take());
        // Gone already if the file was committed.
        let _ = self.disk.remove(&self.temporary);
    }
}

/// Writes a whole small file.
pub fn write_file(path: &Path, text: &str) -> Result<()> {
    write_whole(AtomicFile::create(path)?, text)
}

fn write_whole(mut file: AtomicFile, text: &str) -> Result<()> {
    file.put(|out| out.write_all(text.as_bytes()))?;
    file.commit()
}

/// A run directory that this process alone writes to.
pub struct RunDir {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    /// Held until the run ends.
    _lock: Lock,
}

impl RunDir {
    /// Makes the directory if need be and takes hold of it, for a run that writes its draws to `samples`. A directory
    /// with the results of another experiment is left alone unless `force` is set; the same experiment may be run
    /// again, it writes the same bytes.
    pub fn open(
        path: &Path,
        samples: &str,
        resolved_config: &str,
        inputs: &[Input],
        force: bool,
    ) -> Result<RunDir> {
        RunDir::open_on(Arc::new(RealDisk), path, samples, resolved_config, inputs, force)
    }

    pub fn open_on(
        disk: Arc<dyn Disk>,
        path: &Path,
        samples: &str,
        resolved_config: &str,
        inputs: &[Input],
        force: bool,
    ) -> Result<RunDir> {
        let shown = printable(&path.display().to_string());
        if path.as_os_str().is_empty() {
            return Err(Error::input("the run directory has an empty name; see --out"));
        }
        if path.exists() && !path.is_dir() {
            return Err(Error::input(format!("{shown}: not a folder")));
        }
        if !force {
            refuse_other_run(path, samples, resolved_config, inputs, &shown)?;
        }
        disk.create_folder(path).map_err(|e| Error::write(path, e))?;
        let lock_path = path.join(LOCK);
        match disk.lock(&lock_path).map_err(|e| Error::write(&lock_path, e))? {
            Lock::Taken => Err(Error::Failed(format!("{shown}: another npl is writing to this folder"))),
            lock => {
                sweep(disk.as_ref(), path);
                Ok(RunDir { disk, path: path.to_owned(), _lock: lock })
            }
        }
    }

    /// A result that appears when it is whole.
    pub fn create(&self, name: &str) -> Result<AtomicFile> {
        AtomicFile::create_on(self.disk.clone(), &self.file(name))
    }

    /// Writes a whole small result.
    pub fn write(&self, name: &str, text: &str) -> Result<()> {
        write_whole(self.create(name)?, text)
    }

    /// SHA-256 of a result.
    pub fn sha256(&self, name: &str) -> Result<String> {
        let path = self.file(name);
        let found = self.disk.read(&path).and_then(sha256);
        found.map_err(|e| Error::Failed(format!("{}: {e}", path.display())))
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Declares old results void, before the first of the new `files` takes their place: without a manifest nothing is a
    /// result. Old files that have no successor go, with relabelled copies of the old draws and the page about them.
    pub fn begin_replacing(&self, files: &[String]) -> Result<()> {
        let old = read_manifest(&self.path).ok();
        self.remove(MANIFEST)?;
        let copies = old.iter().flat_map(|m| copy::relabelled_files(&m.samples));
        let results = old.iter().flat_map(|m| m.outputs.keys().cloned());
        let gone: Vec<String> = results.chain(copies).filter(|n| is_ours(n) && !files.contains(n)).collect();
        gone.iter().try_for_each(|name| self.remove(name))?;
        if self.has_page() { self.remove(PAGE) } else { Ok(()) }
    }

    /// Whether there is a page that npl made of the old results; what else has its name is not ours.
    fn has_page(&self) -> bool {
        let mut head = Vec::new();
        let read =
            fs::File::open(self.file(PAGE)).and_then(|file| file.take(PAGE_HEAD).read_to_end(&mut head));
        read.is_ok() && String::from_utf8_lossy(&head).contains(GENERATOR)
    }

    fn remove(&self, name: &str) -> Result<()> {
        let path = self.file(name);
        match self.disk.remove(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Error::write(&path, e)),
            _ => Ok(()),
        }
    }
}

impl Drop for RunDir {
    fn drop(&mut self) {
        let _ = self.disk.remove(&self.path.join(LOCK));
        // Leaves nothing behind if nothing was written; fails, as it should, if something was.
        let _ = self.disk.remove_folder(&self.path);
    }
}

/// The files that draws of this name are made of; none if it is not a name for draws.
pub fn draw_files(samples: &str) -> Vec<String> {
    match Format::of(samples) {
        Ok(format) if !RESERVED.contains(&samples) => {
            [samples.to_owned()].into_iter().chain(format.names_file(samples)).collect()
        }
        _ => Vec::new(),
    }
}

/// Whether a run may have written a file of this name.
fn is_ours(name: &str) -> bool {
    let names = Format::named_by(name).is_some_and(|draws| !draw_files(&draws).is_empty());
    name == PAGE || RESERVED.contains(&name) || !draw_files(name).is_empty() || names
}

/// Removes the unfinished files of a run that was killed. Whoever holds the lock is alone here.
fn sweep(disk: &dyn Disk, folder: &Path) {
    let unfinished = |name: &str| {
        let inner = name.strip_prefix('.').and_then(|rest| rest.strip_suffix(".tmp"));
        let parts = inner.and_then(|inner| inner.rsplit_once('.'));
        parts.is_some_and(|(name, id)| {
            is_ours(name) && !id.is_empty() && id.bytes().all(|b| b.is_ascii_digit())
        })
    };
    for path in disk.list(folder).unwrap_or_default() {
        if path.file_name().and_then(|name| name.to_str()).is_some_and(unfinished) {
            let _ = disk.remove(&path);
        }
    }
}

fn refuse_other_run(
    path: &Path,
    samples: &str,
    resolved_config: &str,
    inputs: &[Input],
    shown: &str,
) -> Result<()> {
    let draws = draw_files(samples);
    let mut results = draws.iter().map(String::as_str).chain(RESERVED);
    let Some(found) = results.find(|name| path.join(name).exists()) else { return Ok(()) };
    let same = fs::read_to_string(path.join(CONFIG)).is_ok_and(|old| old == resolved_config);
    let what = match read_manifest(path) {
        Ok(old) if same => match old.inputs.iter().zip(inputs).find(|(old, new)| old.sha256 != new.sha256) {
            Some((_, new)) => format!("an earlier version of {}", printable(&new.path)),
            None => return Ok(()),
        },
        Err(_) if same => return Ok(()),
        _ => format!("another experiment ({found})"),
    };
    Err(Error::input(format!(
        "{shown} holds results of {what}; choose another folder with --out, or replace them with --force"
    )))
}

/// What a run was made of and how it went: `manifest.json`, written last.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Manifest {
    pub npl: String,
    pub seed: u64,
    pub repeats: usize,
    pub draws: usize,
    pub threads: usize,
    /// Machine code of the kernels; part of the identity of the bytes.
    pub simd: String,
    pub machine: Machine,
    pub started: String,
    pub finished: String,
    pub seconds: f64,
    pub command: Vec<String>,
    /// The file of draws.
    #[serde(default = "usual_samples")]
    pub samples: String,
    /// What the draws are to each other; earlier versions did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relation: Option<Relation>,
    pub inputs: Vec<Input>,
    /// What the inputs became; absent where data are simulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Notes>,
    /// Draws by status.
    pub status: std::collections::BTreeMap<String, usize>,
    /// SHA-256 of every result file.
    pub outputs: std::collections::BTreeMap<String, String>,
}

/// What manifests meant before draws could be in another file.
fn usual_samples() -> String {
    SAMPLES.to_owned()
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Machine {
    pub os: String,
    pub arch: String,
    pub cpu: String,
    pub cores: usize,
}

impl Machine {
    pub fn current() -> Machine {
        let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = info.lines().find_map(|l| l.strip_prefix("model name")).and_then(|l| l.split_once(':'));
        Machine {
            os: std::env::consts::OS.into(),
            arch: std::env::consts::ARCH.into(),
            cpu: model.map_or("unknown", |(_, name)| name.trim()).into(),
            cores: std::thread::available_parallelism().map_or(1, |n| n.get()),
        }
    }
}

/// SHA-256 of all that there is to read.
fn sha256(mut from: impl Read) -> io::Result<String> {
    let (mut hash, mut buffer) = (Sha256::new(), vec![0; 1 << 16]);
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()),
            read => hash.update(&buffer[..read]),
        }
    }
}

/// Seconds since 1970 as `2026-11-16T03:04:05Z` (Howard Hinnant's days-to-civil).
pub fn utc(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let z = days + 719_468;
    let (era, doe) = (z / 146_097, z % 146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let day = doy - (153 * mp + 2) / 5 + 1;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    let year = yoe + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", rest / 3600, rest / 60 % 60, rest % 60)
}

/// The report of a finished run.
pub fn read_report(run: &Path) -> Result<Report> {
    let report: Report = read_json(run, REPORT_JSON)?;
    // One of an older version may have the facts and not the warnings.
    Ok(if report.warnings.is_empty() { report.judged() } else { report })
}

/// The file of draws of a run: its manifest knows the name. Without a manifest it is the usual one.
pub fn samples_of(run: &Path) -> Result<PathBuf> {
    let samples = match run.join(MANIFEST).exists() {
        true => read_manifest(run)?.samples,
        false => SAMPLES.to_owned(),
    };
    if draw_files(&samples).is_empty() {
        let shown = printable(&run.join(MANIFEST).display().to_string());
        return Err(Error::input(format!("{shown}: no draws can be in {}", printable(&samples))));
    }
    Ok(run.join(samples))
}

/// What the draws of a run are to each other: it says so, or is known by its columns.
pub fn relation_of(run: &Path, samples: &Samples) -> Relation {
    let said = read_manifest(run).ok().and_then(|manifest| manifest.relation);
    let guessed = || {
        let label = read_report(run).map(|report| report.label).unwrap_or_default();
        Relation::guessed(samples.columns(), &label)
    };
    said.map_or_else(guessed, |said| said.with_components(samples.columns()))
}

pub fn read_manifest(run: &Path) -> Result<Manifest> {
    read_json(run, MANIFEST)
}

fn read_json<T: serde::de::DeserializeOwned>(run: &Path, name: &str) -> Result<T> {
    let path = run.join(name);
    let shown = printable(&path.display().to_string());
    if !run.join(MANIFEST).exists() {
        let why = if run.is_dir() {
            "no finished run here: it has no manifest.json"
        } else {
            "no such run directory"
        };
        return Err(Error::input(format!("{}: {why}", printable(&run.display().to_string()))));
    }
    let text = fs::read_to_string(&path).map_err(|e| Error::input(format!("{shown}: {e}")))?;
    serde_json::from_str(&text).map_err(|e| Error::input(format!("{shown}: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_civil() {
        assert_eq!(utc(0), "1970-01-01T00:00:00Z");
        assert_eq!(utc(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(utc(1_794_798_245), "2026-11-16T03:04:05Z");
    }

    #[test]
    fn a_file_that_is_not_committed_leaves_nothing() {
        let folder = crate::tempfile::tempdir().unwrap();
        let path = folder.path().join("x.csv");
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"half").unwrap();
        drop(file);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        write_file(&path, "whole").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "whole");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_full_disk_is_an_error_with_the_name_of_the_file() {
        if !Path::new("/dev/full").exists() {
            return;
        }
        let file: Box<dyn Output> = Box::new(fs::File::options().write(true).open("/dev/full").unwrap());
        let folder = crate::tempfile::tempdir().unwrap();
        let path = folder.path().join("samples.csv");
        let temporary = folder.path().join("t");
        let writer = Some(BufWriter::new(file));
        let mut full = AtomicFile { disk: Arc::new(RealDisk), path: path.clone(), temporary, writer };
        full.write_all(b"lost?").unwrap();
        let error = full.commit().unwrap_err();
        assert!(error.to_string().contains("samples.csv"), "{error}");
        assert_eq!(error.exit_code(), 1);
        assert!(!path.exists());
    }

    #[test]
    fn one_process_at_a_time_and_one_experiment_per_folder() {
        let folder = crate::tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        let first = RunDir::open(&path, SAMPLES, "a", &[], false).unwrap();
        assert!(matches!(RunDir::open(&path, SAMPLES, "a", &[], false), Err(Error::Failed(_))));
        write_file(&first.file(CONFIG), "a").unwrap();
        drop(first);
        RunDir::open(&path, SAMPLES, "a", &[], false).unwrap();
        assert!(matches!(RunDir::open(&path, SAMPLES, "b", &[], false), Err(Error::Input(_))));
        RunDir::open(&path, SAMPLES, "b", &[], true).unwrap();
    }
}

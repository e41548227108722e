//! `manifest.json`, and reading a finished run: what it says of a file is checked before the file is used.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};

use super::folder::fingerprint;
use super::{MANIFEST, REPORT_JSON, SAMPLES, SWAP, Shard, draw_files, sealed, shards};
use crate::config::printable;
use crate::data::files::Input;
use crate::data::prepare::Notes;
use crate::error::{Error, Result};
use crate::report::Report;
use crate::samples::{Relation, Samples};

/// What a run was made of and how it went: `manifest.json`, written last. Its last entry is the SHA-256 of the others.
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
    pub status: BTreeMap<String, usize>,
    /// SHA-256 of every result file.
    pub outputs: BTreeMap<String, String>,
    /// Its bytes; earlier versions did not say.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sizes: BTreeMap<String, u64>,
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

/// Files of finished runs are read as they are, without asking whether they are what the run wrote.
static BELIEVE: AtomicBool = AtomicBool::new(false);

/// For the hurried: no file is checked from here on.
pub fn believe_all() {
    BELIEVE.store(true, Ordering::Relaxed);
}

/// Where a result is: on its way, if the run that wrote it was interrupted at the very end.
pub(super) fn place(run: &Path, name: &str) -> PathBuf {
    let swap = run.join(SWAP).join(name);
    if swap.exists() { swap } else { run.join(name) }
}

/// What is wrong with a result, by what the manifest says of it; `None` if nothing is.
pub fn damage(run: &Path, manifest: &Manifest, name: &str) -> Option<String> {
    let expected = manifest.outputs.get(name)?;
    let path = place(run, name);
    let shown = printable(&run.join(name).display().to_string());
    let size = match fs::metadata(&path) {
        Ok(found) if found.is_file() => found.len(),
        Ok(_) => return Some(format!("{shown}: not a regular file")),
        Err(e) => return Some(format!("{shown}: {e}; the manifest has it")),
    };
    if let Some(bytes) = manifest.sizes.get(name).filter(|bytes| **bytes != size) {
        return Some(format!("{shown} is damaged: it has {size} bytes, and the run wrote {bytes}"));
    }
    match fs::File::open(&path).and_then(fingerprint) {
        Ok((_, hash)) if hash == *expected => None,
        Ok(_) => Some(format!("{shown} is damaged or was changed: its SHA-256 is not that of the manifest")),
        Err(e) => Some(format!("{shown}: {e}")),
    }
}

/// A result of a finished run, checked.
pub fn file_of(run: &Path, name: &str) -> Result<PathBuf> {
    let manifest = read_manifest(run)?;
    check(run, &manifest, name)?;
    Ok(place(run, name))
}

fn check(run: &Path, manifest: &Manifest, name: &str) -> Result<()> {
    if BELIEVE.load(Ordering::Relaxed) {
        return Ok(());
    }
    match damage(run, manifest, name) {
        None => Ok(()),
        Some(why) => Err(Error::input(format!("{why} (--no-verify reads it all the same)"))),
    }
}

/// The report of a finished run.
pub fn read_report(run: &Path) -> Result<Report> {
    let path = file_of(run, REPORT_JSON)?;
    let report: Report = parse(&path, &text(&path)?)?;
    // One of an older version may have the facts and not the warnings.
    Ok(if report.warnings.is_empty() { report.judged() } else { report })
}

/// The file of draws of a run: its manifest knows the name. Without a manifest it is the usual one.
pub fn samples_of(run: &Path) -> Result<PathBuf> {
    if !place(run, MANIFEST).exists() {
        return match unfinished(run) {
            Some(why) => Err(Error::input(why)),
            None => Ok(run.join(SAMPLES)),
        };
    }
    let manifest = read_manifest(run)?;
    let files = draw_files(&manifest.samples);
    if manifest.samples.is_empty() {
        let shown = printable(&run.display().to_string());
        let message = format!("{shown} is a path that kept no draws: name parameters in `path.keep`");
        return Err(Error::input(message));
    }
    if files.is_empty() {
        let shown = printable(&run.join(MANIFEST).display().to_string());
        return Err(Error::input(format!("{shown}: no draws can be in {}", printable(&manifest.samples))));
    }
    files.iter().try_for_each(|file| check(run, &manifest, file))?;
    Ok(place(run, &manifest.samples))
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

/// What a directory without a manifest holds, if it is part of a run.
fn unfinished(run: &Path) -> Option<String> {
    let shown = printable(&run.display().to_string());
    let found = shards(run);
    let (first, folder) = found.first()?;
    if *first == Shard::WHOLE {
        let parts = super::Shelf::has_parts(folder);
        return parts.then(|| format!("{shown}: this run is not finished; go on with `npl run … --resume`"));
    }
    let of = first.of;
    let numbers: Vec<usize> = found.iter().filter(|(s, _)| s.of == of).map(|(s, _)| s.index).collect();
    let (some, is) = if numbers.len() > 1 { ("shards", "these are") } else { ("shard", "this is") };
    Some(format!(
        "{shown}: {is} {some} {} of {of} of a run; join them with `npl merge`",
        super::ranges(&numbers)
    ))
}

/// Whether there is a finished run, sound or not.
pub fn is_finished(run: &Path) -> bool {
    place(run, MANIFEST).exists()
}

pub fn read_manifest(run: &Path) -> Result<Manifest> {
    let path = place(run, MANIFEST);
    if !path.exists() {
        let shown = printable(&run.display().to_string());
        let why = match unfinished(run) {
            Some(why) => why,
            None if run.is_dir() => format!("{shown}: no finished run here: it has no manifest.json"),
            None => format!("{shown}: no such run directory"),
        };
        return Err(Error::input(why));
    }
    let text = text(&path)?;
    let damaged = || {
        let shown = printable(&run.join(MANIFEST).display().to_string());
        Error::input(format!(
            "{shown} is damaged: its own checksum does not fit (--no-verify reads it all the same)"
        ))
    };
    let believe = BELIEVE.load(Ordering::Relaxed);
    if !believe && sealed(&text) == Some(false) {
        return Err(damaged());
    }
    let manifest: Manifest =
        parse(&path, &text).map_err(|e| if believe { e } else { damaged_or(e, &text, damaged) })?;
    // Those of versions that sealed nothing know no sizes.
    if !believe && sealed(&text).is_none() && !manifest.sizes.is_empty() {
        return Err(damaged());
    }
    Ok(manifest)
}

/// A text that had a seal, or should have, is damaged; any other is just wrong.
fn damaged_or(error: Error, text: &str, damaged: impl Fn() -> Error) -> Error {
    if text.contains("\"sizes\"") { damaged() } else { no_manifest(error) }
}

/// Cut off, or of something else.
fn no_manifest(error: Error) -> Error {
    Error::input(format!(
        "{error}: this is no manifest of a run, or a damaged one; --force would make the run again"
    ))
}

fn text(path: &Path) -> Result<String> {
    let shown = || printable(&path.display().to_string());
    fs::read_to_string(path).map_err(|e| Error::input(format!("{}: {e}", shown())))
}

fn parse<T: serde::de::DeserializeOwned>(path: &Path, text: &str) -> Result<T> {
    let shown = || printable(&path.display().to_string());
    serde_json::from_str(text).map_err(|e| Error::input(format!("{}: {e}", shown())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with a manifest that lists one file of draws, sealed.
    fn finished(folder: &Path, change: impl Fn(&mut Manifest)) {
        fs::write(folder.join(SAMPLES), "draws").unwrap();
        let (size, hash) = fingerprint(&b"draws"[..]).unwrap();
        let mut manifest = Manifest {
            npl: "0".into(),
            seed: 1,
            repeats: 1,
            draws: 3,
            threads: 1,
            simd: "plain".into(),
            machine: Machine::current(),
            started: utc(0),
            finished: utc(1),
            seconds: 1.0,
            command: Vec::new(),
            samples: SAMPLES.into(),
            relation: None,
            inputs: Vec::new(),
            data: None,
            status: BTreeMap::new(),
            outputs: BTreeMap::from([(SAMPLES.to_owned(), hash)]),
            sizes: BTreeMap::from([(SAMPLES.to_owned(), size)]),
        };
        change(&mut manifest);
        fs::write(folder.join(MANIFEST), crate::store::seal(&manifest)).unwrap();
    }

    fn told<T>(result: Result<T>) -> String {
        result.err().map_or("nothing".into(), |e| e.to_string())
    }

    #[test]
    fn files_are_what_the_manifest_says_or_refused_with_the_reason() {
        let folder = crate::tempfile::tempdir().unwrap();
        let run = folder.path();
        finished(run, |_| ());
        assert_eq!(read_manifest(run).unwrap().draws, 3);
        assert_eq!(
            (samples_of(run).unwrap(), file_of(run, SAMPLES).unwrap()),
            (run.join(SAMPLES), run.join(SAMPLES))
        );
        let damaged = || (told(samples_of(run)), told(file_of(run, SAMPLES)));
        for (bytes, why) in
            [("drawz", "its SHA-256 is not"), ("draws!", "it has 6 bytes, and the run wrote 5")]
        {
            fs::write(run.join(SAMPLES), bytes).unwrap();
            let (samples, file) = damaged();
            assert!(samples.contains(why) && samples.contains(SAMPLES) && samples == file, "{samples}");
        }
        fs::remove_file(run.join(SAMPLES)).unwrap();
        assert!(damaged().0.contains("the manifest has it"), "{}", damaged().0);
        fs::create_dir(run.join(SAMPLES)).unwrap();
        assert!(damaged().0.contains("not a regular file"), "{}", damaged().0);
        fs::remove_dir(run.join(SAMPLES)).unwrap();
        // What no manifest lists is nobody's to judge.
        assert_eq!(damage(run, &read_manifest(run).unwrap(), "other"), None);
        finished(run, |manifest| manifest.samples = "../draws.exe".into());
        assert!(told(samples_of(run)).contains("no draws can be in ../draws.exe"));
    }

    /// Results that are on their way are looked for there first.
    #[test]
    fn a_result_on_its_way_counts() {
        let folder = crate::tempfile::tempdir().unwrap();
        let (run, swap) = (folder.path(), folder.path().join(SWAP));
        fs::create_dir(&swap).unwrap();
        finished(&swap, |manifest| manifest.draws = 9);
        assert!(is_finished(run) && !is_finished(&run.join("nowhere")));
        finished(run, |_| ());
        assert_eq!((read_manifest(run).unwrap().draws, samples_of(run).unwrap()), (9, swap.join(SAMPLES)));
    }

    #[test]
    fn manifests_without_a_seal_are_those_of_old_versions() {
        let folder = crate::tempfile::tempdir().unwrap();
        let run = folder.path();
        let unsealed = |text: String| {
            let mut tree: serde_json::Value = serde_json::from_str(&text).unwrap();
            tree.as_object_mut().unwrap().remove("checksum");
            fs::write(run.join(MANIFEST), tree.to_string()).unwrap();
        };
        finished(run, |_| ());
        let sealed = fs::read_to_string(run.join(MANIFEST)).unwrap();
        unsealed(sealed.clone());
        assert!(told(read_manifest(run)).contains("is damaged: its own checksum does not fit"));
        finished(run, |manifest| manifest.sizes.clear());
        unsealed(fs::read_to_string(run.join(MANIFEST)).unwrap());
        assert_eq!(read_manifest(run).unwrap().draws, 3);
        // The first of them did not say where their draws are: all were in one place.
        let said = fs::read_to_string(run.join(MANIFEST)).unwrap();
        let silent = said.replace(&format!("\"samples\":\"{SAMPLES}\","), "");
        assert!(silent.len() < said.len());
        fs::write(run.join(MANIFEST), silent).unwrap();
        assert_eq!(read_manifest(run).unwrap().samples, SAMPLES);
        fs::write(run.join(MANIFEST), sealed.replace("\"seed\": 1", "\"seed\": 2")).unwrap();
        assert!(told(read_manifest(run)).contains("is damaged"));
        // What cannot be read at all: damaged where it had sizes, and otherwise just wrong.
        fs::write(run.join(MANIFEST), "{\"sizes\": 3}").unwrap();
        assert!(told(read_manifest(run)).contains("is damaged"));
        fs::write(run.join(MANIFEST), "{}").unwrap();
        let why = told(read_manifest(run));
        assert!(why.contains("missing field") && why.contains(MANIFEST), "{why}");
    }

    #[test]
    fn folders_without_a_manifest_say_what_they_hold() {
        let folder = crate::tempfile::tempdir().unwrap();
        let run = folder.path();
        assert!(told(read_manifest(run)).contains("no finished run here"));
        assert!(told(read_manifest(&run.join("x"))).contains("no such run directory"));
        // Draws may be there without a manifest.
        assert_eq!(samples_of(run).unwrap(), run.join(SAMPLES));
        let shelf = run.join(crate::store::CHUNKS).join("1-of-1");
        fs::create_dir_all(&shelf).unwrap();
        assert!(told(read_manifest(run)).contains("no finished run here"));
        fs::write(shelf.join("00000001.part"), "").unwrap();
        assert!(
            told(read_manifest(run)).contains("not finished")
                && told(samples_of(run)).contains("not finished")
        );
        fs::remove_dir_all(&shelf).unwrap();
        for (shard, says) in [("2-of-9", "this is shard 2 of 9"), ("3-of-9", "these are shards 2-3 of 9")] {
            fs::create_dir_all(run.join(crate::store::CHUNKS).join(shard)).unwrap();
            let why = told(read_manifest(run));
            assert!(why.contains(says) && why.contains("npl merge"), "{why}");
        }
        fs::create_dir_all(run.join(crate::store::CHUNKS).join("4-of-10")).unwrap();
        assert!(told(read_manifest(run)).contains("these are shards 2-3 of 9"));
    }

    /// Every day of 400 years and a few, by the rule that everybody knows.
    #[test]
    fn dates_follow_the_calendar() {
        let (mut year, mut month, mut day) = (1970, 1, 1);
        for days in 0..147_000u64 {
            let second = days % 86_400;
            let time = format!("{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60);
            assert_eq!(utc(86_400 * days + second), format!("{year}-{month:02}-{day:02}T{time}Z"));
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let length = match month {
                2 => 28 + i32::from(leap),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            (year, month, day) = match (month, day == length) {
                (12, true) => (year + 1, 1, 1),
                (_, true) => (year, month + 1, 1),
                _ => (year, month, day + 1),
            };
        }
    }

    #[test]
    fn dates_are_civil() {
        assert_eq!(utc(0), "1970-01-01T00:00:00Z");
        assert_eq!(utc(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(utc(1_794_798_245), "2026-11-16T03:04:05Z");
    }
}

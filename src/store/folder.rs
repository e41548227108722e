//! The run directory while a run writes to it.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::atomic::write_whole;
use super::copy::relabelled_files;
use super::manifest::read_manifest;
use super::{
    AtomicFile, CHUNKS, CONFIG, Disk, GENERATOR, LOCK, Lock, MANIFEST, NEW, PAGE, PAGE_HEAD, PartWriter,
    RESERVED, RealDisk, SAMPLES, SWAP, Shard, draw_files, is_ours, seal, shards, usual_names,
};
use crate::config::printable;
use crate::data::files::Input;
use crate::data::hex;
use crate::error::{Error, Result};

/// What becomes of what is in the folder already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Results of another experiment, and runs that are not finished, are left alone. The same experiment may be run again:
    /// it writes the same bytes.
    Refuse,
    /// The same, but for the shards that the run is made of.
    Join,
    /// It is gone on with.
    Continue,
    /// It is replaced when the new run is done.
    Replace,
}

/// A run directory that this process alone writes to. New results are made in a folder within it, and take their places when
/// all of them are there.
pub struct RunDir {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    /// Held until the run ends.
    _lock: Lock,
}

impl RunDir {
    /// Makes the directory if need be and takes hold of it, for a run that writes its draws to `samples`.
    pub fn open(
        path: &Path,
        samples: &str,
        resolved_config: &str,
        inputs: &[Input],
        existing: Existing,
    ) -> Result<RunDir> {
        RunDir::open_on(Arc::new(RealDisk), path, samples, resolved_config, inputs, existing)
    }

    pub fn open_on(
        disk: Arc<dyn Disk>,
        path: &Path,
        samples: &str,
        resolved_config: &str,
        inputs: &[Input],
        existing: Existing,
    ) -> Result<RunDir> {
        let shown = printable(&path.display().to_string());
        if path.as_os_str().is_empty() {
            return Err(Error::input("the run directory has an empty name; see --out"));
        }
        if path.exists() && !path.is_dir() {
            return Err(Error::input(format!("{shown}: not a folder")));
        }
        refuse_own_inputs(path, samples, inputs)?;
        if matches!(existing, Existing::Refuse | Existing::Continue) {
            refuse_shards(path, &shown)?;
        }
        if matches!(existing, Existing::Refuse | Existing::Join) {
            refuse_other_run(path, samples, resolved_config, inputs, &shown)?;
        }
        disk.create_folder(path).map_err(|e| Error::write(path, e))?;
        let lock = hold(disk.as_ref(), path, &shown)?;
        let folder = RunDir { disk, path: path.to_owned(), _lock: lock };
        folder.finish_swap()?;
        folder.sweep();
        Ok(folder)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn disk(&self) -> Arc<dyn Disk> {
        self.disk.clone()
    }

    /// A result that is whole or absent, and in its place when all of them are.
    pub fn create(&self, name: &str) -> Result<AtomicFile> {
        let folder = self.path.join(NEW);
        still_there(&self.path)?;
        self.disk.create_folder(&folder).map_err(|e| Error::write(&self.path, e))?;
        AtomicFile::create_on(self.disk.clone(), &folder.join(name), &self.file(name))
    }

    /// Writes a whole small result.
    pub fn write(&self, name: &str, text: &str) -> Result<()> {
        write_whole(self.create(name)?, text.as_bytes())
    }

    /// Size and SHA-256 of a new result.
    pub fn fingerprint(&self, name: &str) -> Result<(u64, String)> {
        let found = self.disk.read(&self.path.join(NEW).join(name)).and_then(fingerprint);
        found.map_err(|e| Error::Failed(format!("{}: {e}", self.file(name).display())))
    }

    /// Where a result will be.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The new results are all there: from the first rename on they are the run, for readers know both places.
    pub fn publish(&self) -> Result<()> {
        let wrong = |e| Error::write(&self.path, e);
        self.disk.rename(&self.path.join(NEW), &self.path.join(SWAP)).map_err(wrong)?;
        self.disk.sync_folder(&self.path).map_err(wrong)?;
        self.finish_swap()
    }

    /// Brings new results to their places, here or where another process was interrupted. Old ones that have no successor
    /// go, if the old manifest has them, and they have a name that every run may use: a manifest can be anybody's.
    fn finish_swap(&self) -> Result<()> {
        let swap = self.path.join(SWAP);
        if !swap.is_dir() {
            return Ok(());
        }
        let wrong = |e| Error::write(&self.path, e);
        let list = self.disk.list(&swap).map_err(wrong)?;
        let name = |path: &PathBuf| path.file_name().and_then(|n| n.to_str()).map(str::to_owned);
        let mut names: Vec<String> = list.iter().filter_map(name).filter(|n| is_ours(n)).collect();
        // The manifest is the last to leave: as long as it is there, so may be the others.
        names.sort_by_key(|name| name == MANIFEST);
        if names.iter().any(|name| name == MANIFEST) {
            let (new, old) = (listed(&swap), listed(&self.path));
            for name in usual_names().iter().filter(|name| old.contains(name) && !new.contains(name)) {
                self.remove(&self.file(name))?;
            }
            // Copies of the draws that were, and the page about them.
            relabelled_files(SAMPLES).iter().try_for_each(|name| self.remove(&self.file(name)))?;
            if self.has_page() {
                self.remove(&self.file(PAGE))?;
            }
        }
        for name in names {
            self.disk.rename(&swap.join(&name), &self.file(&name)).map_err(wrong)?;
        }
        self.disk.sync_folder(&self.path).map_err(wrong)?;
        let _ = self.disk.remove_folder(&swap);
        Ok(())
    }

    /// Whether there is a page that npl made of the old results; what else has its name is not ours.
    fn has_page(&self) -> bool {
        let mut head = Vec::new();
        let read =
            fs::File::open(self.file(PAGE)).and_then(|file| file.take(PAGE_HEAD).read_to_end(&mut head));
        read.is_ok() && String::from_utf8_lossy(&head).contains(GENERATOR)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        match self.disk.remove(path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Error::write(path, e)),
            _ => Ok(()),
        }
    }

    /// Removes results that were not finished. Whoever holds the lock is alone here.
    pub fn sweep(&self) {
        let unfinished = |name: &str| {
            let inner = name.strip_prefix('.').and_then(|rest| rest.strip_suffix(".tmp"));
            let parts = inner.and_then(|inner| inner.rsplit_once('.'));
            parts.is_some_and(|(_, id)| !id.is_empty() && id.bytes().all(|b| b.is_ascii_digit()))
        };
        let stale = |name: &str| {
            let inner = name.strip_prefix('.').and_then(|rest| rest.strip_suffix(".tmp"));
            inner.and_then(|inner| inner.rsplit_once('.')).is_some_and(|(name, _)| is_ours(name))
                && unfinished(name)
        };
        // Earlier versions wrote beside their results.
        for path in self.disk.list(&self.path).unwrap_or_default() {
            if path.file_name().and_then(|name| name.to_str()).is_some_and(stale) {
                let _ = self.disk.remove(&path);
            }
        }
        let new = self.path.join(NEW);
        // A link is not followed.
        if !fs::symlink_metadata(&new).is_ok_and(|found| found.is_dir()) {
            return;
        }
        for path in self.disk.list(&new).unwrap_or_default() {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if is_ours(name) || name == "spool.npy" || unfinished(name) {
                let _ = self.disk.remove(&path);
            }
        }
        let _ = self.disk.remove_folder(&new);
    }

    /// The error, unless the reason for it is that the whole directory has gone.
    pub fn blame(&self, error: Error) -> Error {
        match error {
            Error::Write { .. } | Error::Failed(_) | Error::Input(_) => {
                still_there(&self.path).err().unwrap_or(error)
            }
            other => other,
        }
    }
}

/// A run directory that is gone is not made again: the lock on it is gone too.
fn still_there(run: &Path) -> Result<()> {
    if run.is_dir() {
        return Ok(());
    }
    let shown = printable(&run.display().to_string());
    Err(Error::Failed(format!("{shown}: the run directory was removed while the run was writing to it")))
}

impl Drop for RunDir {
    fn drop(&mut self) {
        self.sweep();
    }
}

/// The results that the manifest in this folder has, sound or not.
fn listed(folder: &Path) -> Vec<String> {
    let text = fs::read_to_string(folder.join(MANIFEST)).unwrap_or_default();
    let tree: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    tree["outputs"].as_object().map_or(Vec::new(), |outputs| outputs.keys().cloned().collect())
}

fn hold(disk: &dyn Disk, folder: &Path, shown: &str) -> Result<Lock> {
    let path = folder.join(LOCK);
    match disk.lock(&path) {
        Ok(Lock::Taken) => Err(Error::Failed(format!("{shown}: another npl is writing to this folder"))),
        Ok(lock) => Ok(lock),
        Err(e) if e.kind() == io::ErrorKind::InvalidInput => {
            Err(Error::input(format!("{}: {e}", printable(&path.display().to_string()))))
        }
        Err(e) => Err(Error::write(&path, e)),
    }
}

/// Size and SHA-256 of all that there is to read.
pub(super) fn fingerprint(mut from: impl Read) -> io::Result<(u64, String)> {
    let (mut hash, mut size, mut buffer) = (Sha256::new(), 0, vec![0; 1 << 16]);
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok((size, hex(&hash.finalize()))),
            read => {
                hash.update(&buffer[..read]);
                size += read as u64;
            }
        }
    }
}

/// A run does not write over what it is made from.
fn refuse_own_inputs(path: &Path, samples: &str, inputs: &[Input]) -> Result<()> {
    let Ok(folder) = path.canonicalize() else { return Ok(()) };
    let draws = draw_files(samples);
    let results: Vec<String> = draws.into_iter().chain(usual_names()).collect();
    for input in inputs {
        let Ok(place) = Path::new(&input.path).canonicalize() else { continue };
        let name = place.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        if place.parent() == Some(&folder) && results.iter().any(|result| result == name) {
            let message =
                "is read by this experiment, and would be replaced by its results; choose another --out";
            return Err(Error::input(format!("{}: {message}", printable(&input.path))));
        }
    }
    Ok(())
}

fn refuse_shards(path: &Path, shown: &str) -> Result<()> {
    let finished = super::manifest::is_finished(path);
    match shards(path).iter().find(|(shard, _)| *shard != Shard::WHOLE && !finished) {
        Some((shard, _)) => Err(Error::input(format!(
            "{shown} holds shards of a run that was cut in {}; join them with `npl merge {shown}`, or choose another folder \
             with --out",
            shard.of
        ))),
        None => Ok(()),
    }
}

fn refuse_other_run(
    path: &Path,
    samples: &str,
    resolved_config: &str,
    inputs: &[Input],
    shown: &str,
) -> Result<()> {
    if shards(path).iter().any(|(shard, folder)| *shard == Shard::WHOLE && Shelf::has_parts(folder)) {
        return Err(Error::input(format!(
            "{shown} holds a run that is not finished; go on with it with --resume, or replace it with --force"
        )));
    }
    let draws = draw_files(samples);
    let mut results = draws.iter().map(String::as_str).chain(RESERVED);
    let Some(found) = results.find(|name| path.join(name).exists() || path.join(SWAP).join(name).exists())
    else {
        return Ok(());
    };
    let config = super::manifest::place(path, CONFIG);
    let same = fs::read_to_string(config).is_ok_and(|old| old == resolved_config);
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

/// Where the parts of a run, or of a shard of one, are.
pub struct Shelf {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    /// Of a shard, whose run directory is that of others too.
    _lock: Option<Lock>,
    next: u64,
}

/// What is known of the identity of the parts.
const IDENTITY: &str = "identity.json";
/// What more draws are added to.
const FINISHED: &str = "finished.part";
const PART: &str = ".part";
const DAMAGED: &str = ".damaged";

impl Shelf {
    /// That of a whole run.
    pub fn of_run(run: &RunDir) -> Shelf {
        let folder = run.path.join(CHUNKS).join("1-of-1");
        Shelf::new(run.disk.clone(), folder, None)
    }

    /// That of a shard, and the hold on it.
    pub fn of_shard(disk: Arc<dyn Disk>, run: &Path, shard: Shard) -> Result<Shelf> {
        let folder = run.join(CHUNKS).join(format!("{}-of-{}", shard.index, shard.of));
        disk.create_folder(&folder).map_err(|e| Error::write(run, e))?;
        let lock = hold(disk.as_ref(), &folder, &printable(&folder.display().to_string()))?;
        Ok(Shelf::new(disk, folder, Some(lock)))
    }

    /// One to read.
    pub fn at(folder: &Path) -> Shelf {
        Shelf::new(Arc::new(RealDisk), folder.to_owned(), None)
    }

    fn new(disk: Arc<dyn Disk>, folder: PathBuf, lock: Option<Lock>) -> Shelf {
        let mut shelf = Shelf { disk, folder, _lock: lock, next: 1 };
        let names = fs::read_dir(&shelf.folder).into_iter().flatten().flatten();
        let number = |name: String| name.split('.').next()?.parse::<u64>().ok();
        let numbers = names.filter_map(|entry| number(entry.file_name().into_string().ok()?));
        shelf.next = numbers.max().map_or(1, |last| last + 1);
        shelf
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether there are parts of a run that is not finished.
    pub fn has_parts(folder: &Path) -> bool {
        !Shelf::at(folder).parts().is_empty()
    }

    /// All parts, in the order in which they were written.
    pub fn parts(&self) -> Vec<PathBuf> {
        let mut found: Vec<(u64, PathBuf)> = Vec::new();
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let name = entry.file_name().into_string().unwrap_or_default();
            if let Some(number) = name.strip_suffix(PART).and_then(|n| n.parse().ok()) {
                found.push((number, entry.path()));
            }
        }
        found.sort();
        found.into_iter().map(|(_, path)| path).collect()
    }

    /// What a finished run has left for more draws.
    pub fn finished(&self) -> Option<PathBuf> {
        Some(self.folder.join(FINISHED)).filter(|path| path.is_file())
    }

    pub fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.disk.read(path)?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Under another name, to be looked at by whoever wants to know what happened to it.
    pub fn set_aside(&self, path: &Path) {
        let mut name = path.as_os_str().to_owned();
        name.push(DAMAGED);
        let _ = self.disk.rename(path, Path::new(&name));
    }

    /// What is written of the identity; `None` if nothing is.
    pub fn identity(&self) -> Option<String> {
        fs::read_to_string(self.folder.join(IDENTITY)).ok()
    }

    fn create(&self, name: &str) -> Result<AtomicFile> {
        still_there(self.folder.parent().and_then(Path::parent).unwrap_or(&self.folder))?;
        self.disk.create_folder(&self.folder).map_err(|e| Error::write(&self.folder, e))?;
        let path = self.folder.join(name);
        AtomicFile::create_on(self.disk.clone(), &path, &path)
    }

    pub fn write_identity(&self, identity: &super::Identity) -> Result<()> {
        let text = seal(identity);
        if self.identity().as_ref() == Some(&text) {
            return Ok(());
        }
        write_whole(self.create(IDENTITY)?, text.as_bytes())
    }

    /// The next part.
    pub fn next_part(&mut self, identity: &[u8; 32], draws: u64) -> Result<PartWriter> {
        let file = self.create(&format!("{:08}{PART}", self.next))?;
        self.next += 1;
        PartWriter::new(file, identity, draws)
    }

    pub fn finished_part(&self, identity: &[u8; 32], draws: u64) -> Result<PartWriter> {
        PartWriter::new(self.create(FINISHED)?, identity, draws)
    }

    /// Removes the parts; and, if `all`, whatever else there is.
    pub fn clear(&self, all: bool) {
        for path in self.parts() {
            let _ = self.disk.remove(&path);
        }
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten().map(|entry| entry.path());
        for path in entries {
            let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
            let left = name.ends_with(DAMAGED) || name.starts_with('.') && name.ends_with(".tmp");
            if left || all && (name == FINISHED || name == IDENTITY) {
                let _ = self.disk.remove(&path);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{SAMPLES, write_file};
    use super::*;

    #[test]
    fn one_process_at_a_time_and_one_experiment_per_folder() {
        let folder = crate::tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        let open = |config, existing| RunDir::open(&path, SAMPLES, config, &[], existing);
        let first = open("a", Existing::Refuse).unwrap();
        assert!(matches!(open("a", Existing::Refuse), Err(Error::Failed(_))));
        write_file(&first.file(CONFIG), "a").unwrap();
        drop(first);
        open("a", Existing::Refuse).unwrap();
        assert!(matches!(open("b", Existing::Refuse), Err(Error::Input(_))));
        open("b", Existing::Replace).unwrap();
    }

    /// Whoever waits with the file open must not end up with a lock of its own.
    #[test]
    fn the_lock_is_never_removed() {
        let folder = crate::tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        let open = || RunDir::open(&path, SAMPLES, "a", &[], Existing::Refuse);
        drop(open().unwrap());
        assert!(path.join(LOCK).is_file());
        let waiting = fs::File::options().write(true).open(path.join(LOCK)).unwrap();
        let held = open().unwrap();
        assert!(waiting.try_lock().is_err());
        drop(held);
        assert!(waiting.try_lock().is_ok() && open().is_err());
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// What an interrupted run has left goes, and nothing else.
    #[test]
    fn only_what_is_ours_and_unfinished_is_swept() {
        let folder = crate::tempfile::tempdir().unwrap();
        let run = folder.path();
        let stay = [
            ".mine.12.tmp",
            ".report.csv.12x.tmp",
            ".report.csv..tmp",
            "report.csv.12.tmp",
            ".report.csv.12",
        ];
        for name in [".report.csv.12.tmp", ".samples.csv.7.tmp"].into_iter().chain(stay) {
            fs::write(run.join(name), "").unwrap();
        }
        let new = run.join(NEW);
        fs::create_dir(&new).unwrap();
        for name in ["report.csv", "spool.npy", ".anything.3.tmp", "theirs"] {
            fs::write(new.join(name), "").unwrap();
        }
        drop(RunDir::open(run, SAMPLES, "a", &[], Existing::Refuse).unwrap());
        let mut left: Vec<&str> = stay.into_iter().chain([LOCK, NEW]).collect();
        left.sort_unstable();
        assert_eq!(
            (names(run), names(&new)),
            (left.iter().map(|n| n.to_string()).collect(), vec!["theirs".to_owned()])
        );
        fs::remove_file(new.join("theirs")).unwrap();
        drop(RunDir::open(run, SAMPLES, "a", &[], Existing::Refuse).unwrap());
        assert!(!new.exists());
    }

    #[test]
    fn what_is_read_is_not_written_over() {
        let folder = crate::tempfile::tempdir().unwrap();
        let run = folder.path();
        let input = |name: &str| {
            fs::write(run.join(name), "").unwrap();
            Input { path: run.join(name).display().to_string(), bytes: 0, sha256: String::new() }
        };
        let open =
            |name: &str| RunDir::open(run, "mine.csv", "a", &[input(name)], Existing::Replace).map(drop);
        open("data.csv").unwrap();
        for name in ["mine.csv", "samples.npy", CONFIG] {
            let error = open(name).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains("is read by this experiment"), "{error}");
        }
        // The same name in another folder is another file.
        let elsewhere = run.join("elsewhere");
        RunDir::open(&elsewhere, "mine.csv", "a", &[input("mine.csv")], Existing::Replace).unwrap();
    }

    #[test]
    fn folders_in_use_are_refused_with_what_they_hold() {
        let folder = crate::tempfile::tempdir().unwrap();
        let run = folder.path().join("run");
        let refused = |existing| match RunDir::open(&run, SAMPLES, "a", &[], existing) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        };
        fs::write(&run, "").unwrap();
        assert!(refused(Existing::Replace).contains("not a folder"));
        fs::remove_file(&run).unwrap();
        assert!(RunDir::open(Path::new(""), SAMPLES, "a", &[], Existing::Refuse).is_err());
        let shelf = |name: &str| run.join(CHUNKS).join(name);
        fs::create_dir_all(shelf("2-of-5")).unwrap();
        for existing in [Existing::Refuse, Existing::Continue] {
            assert!(refused(existing).contains("a run that was cut in 5"), "{existing:?}");
        }
        assert_eq!((refused(Existing::Join), refused(Existing::Replace)), (String::new(), String::new()));
        // Those of a run that is finished are in nobody's way.
        fs::write(run.join(MANIFEST), "").unwrap();
        assert!(!refused(Existing::Continue).contains("cut in"));
        fs::remove_file(run.join(MANIFEST)).unwrap();
        fs::remove_dir(shelf("2-of-5")).unwrap();
        fs::create_dir_all(shelf("1-of-1")).unwrap();
        assert_eq!(refused(Existing::Refuse), "");
        fs::write(shelf("1-of-1").join("00000001.part"), "").unwrap();
        for existing in [Existing::Refuse, Existing::Join] {
            assert!(refused(existing).contains("--resume"), "{existing:?}");
        }
        assert_eq!((refused(Existing::Continue), refused(Existing::Replace)), (String::new(), String::new()));
        fs::remove_dir_all(run.join(CHUNKS)).unwrap();
        fs::write(run.join("report.csv"), "").unwrap();
        assert!(refused(Existing::Refuse).contains("another experiment (report.csv)"));
        fs::write(run.join(CONFIG), "a").unwrap();
        assert_eq!(refused(Existing::Refuse), "");
    }

    #[test]
    fn a_shelf_counts_its_parts() {
        let folder = crate::tempfile::tempdir().unwrap();
        let shelf = || Shelf::of_shard(Arc::new(RealDisk), folder.path(), Shard { of: 3, index: 2 });
        let mut first = shelf().unwrap();
        assert!(matches!(shelf(), Err(Error::Failed(_))), "another holds it");
        assert_eq!(first.folder(), folder.path().join(CHUNKS).join("2-of-3"));
        assert!(!Shelf::has_parts(first.folder()) && first.finished().is_none());
        for _ in 0..11 {
            first.next_part(&[7; 32], 10).unwrap().commit().unwrap();
        }
        let path = first.folder().to_owned();
        let parts = first.parts();
        assert!(Shelf::has_parts(&path) && parts.len() == 11);
        assert_eq!(parts[10], path.join("00000011.part"));
        first.set_aside(&parts[10]);
        assert_eq!(first.parts().len(), 10);
        assert!(path.join("00000011.part.damaged").is_file());
        drop(first);
        // Numbers of parts that were damaged are not given again.
        let mut again = shelf().unwrap();
        again.next_part(&[7; 32], 10).unwrap().commit().unwrap();
        assert_eq!(again.parts()[10], path.join("00000012.part"));
        again.finished_part(&[7; 32], 10).unwrap().commit().unwrap();
        assert_eq!(again.finished(), Some(path.join(FINISHED)));
        fs::write(path.join("mine"), "").unwrap();
        fs::write(path.join(".x.3.tmp"), "").unwrap();
        fs::write(path.join(IDENTITY), "").unwrap();
        again.clear(false);
        assert_eq!(names(&path), [LOCK, FINISHED, IDENTITY, "mine"]);
        again.clear(true);
        assert_eq!(names(&path), [LOCK, "mine"]);
    }

    #[test]
    fn a_directory_that_is_gone_is_the_reason() {
        let folder = crate::tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        let run = RunDir::open(&path, SAMPLES, "a", &[], Existing::Refuse).unwrap();
        let told = |error: Error| run.blame(error).to_string();
        assert_eq!(told(Error::Failed("x".into())), "x");
        fs::remove_dir_all(&path).unwrap();
        for error in
            [Error::Failed("x".into()), Error::input("x"), Error::write(&path, io::Error::other("x"))]
        {
            assert!(told(error).contains("was removed while the run was writing"));
        }
        assert!(matches!(run.blame(Error::Interrupted), Error::Interrupted));
        assert!(run.create("report.csv").is_err() && !path.exists());
    }

    #[cfg(unix)]
    #[test]
    fn a_lock_that_is_no_file_is_refused() {
        let folder = crate::tempfile::tempdir().unwrap();
        let target = folder.path().join("target");
        let link = |at: &Path| std::os::unix::fs::symlink(&target, at).unwrap();
        let fifo =
            |at: &Path| assert!(std::process::Command::new("mkfifo").arg(at).status().unwrap().success());
        let other = |at: &Path| fs::create_dir(at).unwrap();
        for plant in [&link as &dyn Fn(&Path), &fifo, &other] {
            let run = crate::tempfile::tempdir().unwrap();
            plant(&run.path().join(LOCK));
            let error = RunDir::open(run.path(), SAMPLES, "a", &[], Existing::Replace).err().unwrap();
            assert!(error.to_string().contains("not a regular file"), "{error}");
            assert_eq!(error.exit_code(), 2);
        }
        assert!(!target.exists());
    }

    /// Wherever bringing results to their places is interrupted, a reader finds the new ones, and the next writer ends it.
    #[test]
    fn a_swap_goes_on_where_it_was_interrupted() {
        for moved in 0..4 {
            let folder = crate::tempfile::tempdir().unwrap();
            let run = folder.path();
            let before = "{\"outputs\": {\"samples.npy\": \"\", \"report.csv\": \"\", \"mine.csv\": \"\"}}";
            for (name, text) in
                [("samples.npy", "old"), ("report.csv", "old"), ("mine.csv", "mine"), (MANIFEST, before)]
            {
                fs::write(run.join(name), text).unwrap();
            }
            fs::create_dir(run.join(SWAP)).unwrap();
            let names = [SAMPLES, "report.csv", MANIFEST];
            for (i, name) in names.into_iter().enumerate() {
                let at = if i < moved { run.join(name) } else { run.join(SWAP).join(name) };
                let outputs = "{\"outputs\": {\"samples.csv\": \"\", \"report.csv\": \"\"}}";
                fs::write(at, if name == MANIFEST { outputs } else { "new" }).unwrap();
            }
            drop(RunDir::open(run, SAMPLES, "a", &[], Existing::Replace).unwrap());
            for name in &names[..2] {
                assert_eq!(fs::read_to_string(run.join(name)).unwrap(), "new", "{name} after {moved}");
            }
            assert!(run.join(MANIFEST).is_file() && !run.join(SWAP).exists());
            assert_eq!(fs::read_to_string(run.join("mine.csv")).unwrap(), "mine");
            assert!(moved == 3 || !run.join("samples.npy").exists());
        }
    }
}

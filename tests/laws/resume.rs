//! Nothing lost, nothing wrong: wherever a run is interrupted, extended or cut into shards, it ends with the bytes of one that
//! was not.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use npl::error::{Error, Result};
use npl::run::{
    CHUNK, Keeper, Kept, Options, Resumed, Run, Watch, chunk_length, identity, most_shards, resume, spans,
};
use npl::samples::{NameStyle, Sample};
use npl::store::{self, Disk, Existing, Lock, Output, RealDisk, RunDir, Shard, Shelf};
use npl::study::Study;
use serde_json::Value;

use crate::support::{pool, study};
use crate::tempfile::tempdir;

const MIXTURE: &str = r#"
name = "toy"
seed = 5
repeats = 2
[data.simulate.mixture]
n = 60
n_test = 20
pi = [0.4, 0.6]
mu = [0.0, 4.0]
sigma2 = [1.0, 1.0]
[model.gmm]
K = 2
variance_floor = 1e-6
[model.gmm.prior]
[prior]
alpha = 20.0
T = 50
base = { normal = { mean = 0.0, sd = 1.0 } }
[nuts]
chains = 4
warmup = 40
[advi]
max_iterations = 200
[importance]
proposal.pi = { dirichlet = 1.0 }
proposal.mu = { normal = [2.0, 3.0] }
proposal.sigma2 = { log_normal = [0.0, 1.0] }
[sampler]
B = 100
"#;

const REGRESSION: &str = r#"
name = "toy"
seed = 5
[data.simulate.normal]
n = 60
n_test = 40
mean = [0.0, 0.0, 0.0]
sd = [1.0, 1.0, 1.0]
[data.response.logistic]
y1 = 2.0
[model.logistic]
penalty = "ridge"
[evaluate]
epsilon = 0.3
[sampler]
B = 100
"#;

const MEAN: &str = r#"
name = "m"
seed = 5
[data.simulate.normal]
n = 20
mean = 0.0
sd = 1.0
[model.normal]
sigma2 = 1.0
[sampler]
B = 100
"#;

const ALONG_PATH: &str =
    "[path]\nparameter = \"model.logistic.gamma\"\nvalues = [0.1, 1.0, 3.0]\nkeep = [\"beta.y1\"]\n";

/// A penalty with several minima, so that a search that begins elsewhere may end elsewhere; with more than one start.
const WARM: &str = "[path]\nparameter = \"model.logistic.penalty.student_t.b\"\nvalues = [1.0, 0.1, 0.01]\n\
                    keep = [\"beta.y1\", \"beta.y2\"]\nwarm = true\n";

fn warm() -> String {
    let text = REGRESSION
        .replace("penalty = \"ridge\"", "penalty = { student_t = { a = 1.0, b = 1.0 } }\ngamma = 0.05")
        .replace("n_test = 40\n", "");
    let (before, sampler) = text.split_once("[sampler]").unwrap();
    format!("{before}{WARM}[sampler]{sampler}R = 2\n")
}

/// Every method, what it can start from, a path, and the formats of draws.
fn experiments() -> Vec<(&'static str, String)> {
    let by = |method: &str| format!("method = {method:?}\n{MIXTURE}");
    let mut all = vec![
        ("restarts", format!("{MIXTURE}R = 3\n")),
        ("best of", format!("{MIXTURE}fixed_init = {{ best_of = 3 }}\n")),
        ("from ADVI", format!("{MIXTURE}fixed_init = \"advi\"\n")),
        ("ADVI", by("advi")),
        ("importance", by("importance")),
        ("regression", REGRESSION.to_owned()),
        ("path", format!("{REGRESSION}{ALONG_PATH}")),
        ("warm path", warm()),
        ("array", format!("{MEAN}[output]\nsamples = \"d.npy\"\n")),
        ("compressed", format!("{MEAN}[output]\nsamples = \"d.csv.gz\"\n")),
    ];
    all.push(("NUTS", by("nuts")));
    all.push(("MDP", by("mdp-npl")));
    all
}

/// Fails at the n-th draw, as a full disk would, or Ctrl-C; or only looks.
struct Stop<'a> {
    left: usize,
    look: Option<&'a mut dyn FnMut()>,
}

impl Watch for Stop<'_> {
    fn draw(&mut self, _round: usize, _draw: &Sample) -> Result<()> {
        self.look.iter_mut().for_each(|look| look());
        self.left = self.left.saturating_sub(1);
        if self.left == 0 { Err(Error::Interrupted) } else { Ok(()) }
    }
}

fn never() -> Stop<'static> {
    Stop { left: usize::MAX, look: None }
}

/// Runs into a folder, going on with what is there; parts are written after every draw, or only at the end.
fn go(text: &str, out: &Path, often: bool, watch: &mut dyn Watch) -> Result<()> {
    go_on(Arc::new(RealDisk), text, out, often, watch)
}

fn go_on(disk: Arc<dyn Disk>, text: &str, out: &Path, often: bool, watch: &mut dyn Watch) -> Result<()> {
    let study = study(text);
    let (pool, cancel) = (pool(2), AtomicBool::new(false));
    let resolved = toml::to_string(&study.experiment).unwrap();
    let samples = &study.experiment.output.samples;
    let folder = RunDir::open_on(disk, out, samples, &resolved, study.inputs(), Existing::Continue)?;
    let ours = identity(&study, &resolved, Shard::WHOLE);
    let mut kept = match resume(out, Shelf::of_run(&folder), &ours, &study)? {
        Resumed::Finished => return Ok(()),
        Resumed::From(kept) => kept,
    };
    let every = if often { Duration::ZERO } else { Duration::MAX };
    let keeper = Keeper::every(Shelf::of_run(&folder), ours, study.draws() as u64, every);
    let run = Run::new(&study, &pool, &cancel)?;
    let options = Options { names: NameStyle::Dot, resolved, command: Vec::new() };
    run.into_folder(&folder, &options, &keeper, &mut kept, watch).map(drop)
}

/// Times, taken out of a tree.
fn timeless(tree: &mut Value) {
    match tree {
        Value::Object(map) => {
            map.retain(|key, _| key != "seconds");
            map.values_mut().for_each(timeless);
        }
        Value::Array(items) => items.iter_mut().for_each(timeless),
        _ => {}
    }
}

/// All files of a run, times and machine aside.
fn files(out: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut manifest: Value = serde_json::from_slice(&fs::read(out.join(store::MANIFEST)).unwrap()).unwrap();
    let listed = store::read_manifest(out).unwrap();
    let mut found = BTreeMap::new();
    for name in listed.outputs.keys() {
        assert_eq!(store::damage(out, &listed, name), None);
        let bytes = fs::read(out.join(name)).unwrap();
        let bytes = match name.as_str() {
            store::REPORT => {
                let text = String::from_utf8(bytes).unwrap();
                let cut = |line: &str| line.rsplit_once(',').unwrap().0.to_owned() + "\n";
                text.lines().map(cut).collect::<String>().into_bytes()
            }
            store::REPORT_JSON => {
                let mut tree = serde_json::from_slice(&bytes).unwrap();
                timeless(&mut tree);
                tree.to_string().into_bytes()
            }
            _ => bytes,
        };
        found.insert(name.clone(), bytes);
    }
    for key in ["started", "finished", "seconds", "command", "threads", "machine", "checksum"] {
        manifest.as_object_mut().unwrap().remove(key);
    }
    for table in ["outputs", "sizes"] {
        manifest[table].as_object_mut().unwrap().retain(|name, _| !name.starts_with("report"));
    }
    found.insert(store::MANIFEST.to_owned(), manifest.to_string().into_bytes());
    found
}

fn same(what: &str, out: &Path, expected: &BTreeMap<String, Vec<u8>>) {
    let found = files(out);
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{what}");
    for (name, bytes) in &found {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(
            bytes == &expected[name],
            "{what}: {name} differs:\n{}\n{}",
            text(bytes),
            text(&expected[name])
        );
    }
}

fn whole(text: &str) -> BTreeMap<String, Vec<u8>> {
    let folder = tempdir().unwrap();
    go(text, folder.path(), false, &mut never()).unwrap();
    files(folder.path())
}

#[test]
fn every_method_goes_on_from_wherever_it_was_stopped() {
    for (name, text) in experiments() {
        let expected = whole(&text);
        for stop in [1, 17, 32, 33, 50, 64, 99, 100, 101, 133, 200] {
            let folder = tempdir().unwrap();
            let stopped = go(&text, folder.path(), stop % 2 == 0, &mut Stop { left: stop, look: None });
            if let Err(error) = stopped {
                assert!(matches!(error, Error::Interrupted), "{name}: {error}");
                assert!(!folder.path().join(store::MANIFEST).exists());
                // And once more on the way.
                let _ = go(&text, folder.path(), false, &mut Stop { left: stop + 40, look: None });
            }
            go(&text, folder.path(), false, &mut never()).unwrap();
            same(&format!("{name}, stopped at {stop}"), folder.path(), &expected);
            let left = fs::read_dir(folder.path().join(".npl-chunks/1-of-1"));
            let left =
                left.map_or(0, |entries| entries.filter(|e| part(&e.as_ref().unwrap().path())).count());
            assert_eq!(left, 0, "{name}: parts are left");
        }
    }
}

/// A part of a run that is not finished.
fn part(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "part") && !path.ends_with("finished.part")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).into_iter().flatten().flatten() {
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() { copy(&path, &target) } else { drop(fs::copy(&path, &target)) }
    }
}

/// What is on the disk at any moment is enough: it is what `kill -9` leaves.
#[test]
fn what_is_on_the_disk_is_a_beginning_at_any_moment() {
    for (name, text) in [("mean", MEAN.to_owned()), ("restarts", format!("{MIXTURE}R = 3\n"))] {
        let expected = whole(&text);
        let (folder, shots) = (tempdir().unwrap(), tempdir().unwrap());
        let mut taken = 0;
        let mut look = || {
            if taken % 9 == 0 {
                copy(folder.path(), &shots.path().join(taken.to_string()));
            }
            taken += 1;
        };
        go(&text, folder.path(), true, &mut Stop { left: usize::MAX, look: Some(&mut look) }).unwrap();
        assert!(taken >= 100);
        for entry in fs::read_dir(shots.path()).unwrap() {
            let shot = entry.unwrap().path();
            go(&text, &shot, false, &mut never()).unwrap();
            same(&format!("{name}, {}", shot.display()), &shot, &expected);
        }
    }
}

/// Parts that are on the disk at each draw.
fn parts_at_draws(text: &str, often: bool) -> Vec<usize> {
    let folder = tempdir().unwrap();
    let shelf = folder.path().join(".npl-chunks/1-of-1");
    let mut found = Vec::new();
    let mut look = || {
        let entries = fs::read_dir(&shelf).into_iter().flatten().flatten();
        found.push(entries.filter(|entry| part(&entry.path())).count());
    };
    go(text, folder.path(), often, &mut Stop { left: usize::MAX, look: Some(&mut look) }).unwrap();
    found
}

/// A part for each draw, or none before the end, as is asked; but memory never has more than 32 MB that is not on the disk: here
/// a draw is 16,000 numbers, and a chunk 4 MB.
#[test]
fn parts_are_written_when_they_are_due_or_large() {
    let often = parts_at_draws(MEAN, true);
    assert!((0..100).all(|draw| often[draw] + 1 >= draw && often[draw] <= draw + 1), "{often:?}");
    let never = parts_at_draws(MEAN, false);
    assert_eq!(never, [0; 100]);
    let zeros = "0.0, ".repeat(16_000);
    let wide = format!("mean = [{zeros}]\nsd = [{}]", zeros.replace("0.0", "1.0"));
    let text = MEAN.replace("mean = 0.0\nsd = 1.0", &wide).replace("n = 20", "n = 2");
    let text = text.replace("[model.normal]\nsigma2 = 1.0", "[model.mean]").replace("B = 100", "B = 300");
    let large = parts_at_draws(&format!("{text}[output]\nsamples = \"d.npy\"\n"), false);
    let first = large.iter().position(|count| *count > 0).expect("more than 32 MB of draws");
    assert!((256..290).contains(&first) && large[299] == 1, "{first}: {large:?}");
}

/// What is kept and what is missing make up the whole, however much was made: in one piece, and in shards, of which some are cut short.
#[test]
fn what_is_kept_and_what_is_missing_are_the_whole() {
    let study = study(MEAN);
    let resolved = toml::to_string(&study.experiment).unwrap();
    for stop in [1, 2, 31, 32, 33, 50, 64, 99] {
        let folder = tempdir().unwrap();
        let _ = go(MEAN, folder.path(), false, &mut Stop { left: stop + 1, look: None });
        let ours = identity(&study, &resolved, Shard::WHOLE);
        let shelf = Shelf::at(&folder.path().join(".npl-chunks/1-of-1"));
        let kept = Kept::scan(vec![(shelf, ours.hash())]).unwrap();
        let made = kept.count(0, 100, &(0..100), CHUNK);
        // The draw at which it was stopped is kept, and perhaps some that threads had made by then.
        assert!((stop as u64..=100).contains(&made), "{made} of {stop}");
        let gap = (made < 100).then_some(made..100);
        assert_eq!(kept.missing(0, 100, &(0..100), CHUNK), Vec::from_iter(gap));
        for (start, end) in [(0, 32), (10, 90), (made, 100), (99, 100), (50, 50)] {
            let inside = made.clamp(start, end) - start;
            assert_eq!(kept.count(0, 100, &(start..end), CHUNK), inside, "{start} to {end} of {made}");
        }
        assert_eq!(kept.count(1, 100, &(0..100), CHUNK), 0, "another round");
    }
    // Three shards of four chunks; the second, of chunks 33 to 64, stops after some draws, the third is there, the first is not.
    let folder = tempdir().unwrap();
    let shelves = [2, 3].map(|index| {
        let shard = Shard { of: 4, index };
        let mut watch = Stop { left: usize::MAX, look: None };
        make_shard(&study, folder.path(), shard, &mut watch).unwrap();
        let (_, path) = store::shards(folder.path()).into_iter().find(|(found, _)| *found == shard).unwrap();
        (Shelf::at(&path), identity(&study, &resolved, shard).hash())
    });
    let kept = Kept::scan(shelves.into()).unwrap();
    assert_eq!(kept.missing(0, 100, &(0..100), CHUNK), [0..32, 96..100]);
    assert_eq!(kept.count(0, 100, &(0..100), CHUNK), 64);
    assert_eq!(kept.missing(0, 100, &(0..97), CHUNK), [0..32, 96..97]);
    assert_eq!(kept.next_chunk(0, 0), Some(32..64));
    assert_eq!((kept.next_chunk(0, 64), kept.next_chunk(0, 65)), (Some(64..96), None));
}

/// Whoever lets go of a folder without results leaves none that are half made, and no hold on it.
#[test]
fn a_folder_that_is_let_go_of_has_nothing_half_made() {
    let place = tempdir().unwrap();
    let open = || RunDir::open(place.path(), "samples.csv", "", &[], Existing::Refuse).unwrap();
    let names = || {
        let entries = fs::read_dir(place.path()).unwrap();
        entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect::<Vec<_>>()
    };
    for _ in 0..2 {
        let folder = open();
        folder.write(store::REPORT, "whole").unwrap();
        let half = folder.create(store::SUMMARY).unwrap();
        assert!(names().contains(&".npl-new".to_owned()));
        drop((half, folder));
        assert_eq!(names(), [store::LOCK]);
    }
}

/// What happens to files, in its order.
#[derive(Clone, Debug, PartialEq)]
enum Event {
    Written(PathBuf),
    Synced(PathBuf),
    Renamed(PathBuf, PathBuf),
    NamesSynced(PathBuf),
}

/// The disk of this machine, by somebody who takes notes.
#[derive(Clone, Default)]
struct Journal(Arc<Mutex<Vec<Event>>>);

impl Journal {
    fn note(&self, event: Event) {
        self.0.lock().unwrap().push(event);
    }
}

struct Noted(Journal, PathBuf, Box<dyn Output>);

impl Write for Noted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.note(Event::Written(self.1.clone()));
        self.2.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.2.flush()
    }
}

impl Output for Noted {
    fn sync(&mut self) -> io::Result<()> {
        self.0.note(Event::Synced(self.1.clone()));
        self.2.flush()
    }
}

impl Disk for Journal {
    fn create(&self, path: &Path) -> io::Result<Box<dyn Output>> {
        Ok(Box::new(Noted(self.clone(), path.to_owned(), RealDisk.create(path)?)))
    }

    fn reopen(&self, path: &Path) -> io::Result<Box<dyn Output>> {
        Ok(Box::new(Noted(self.clone(), path.to_owned(), RealDisk.reopen(path)?)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.note(Event::Renamed(from.to_owned(), to.to_owned()));
        RealDisk.rename(from, to)
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        self.note(Event::NamesSynced(path.to_owned()));
        Ok(())
    }

    fn create_folder(&self, path: &Path) -> io::Result<()> {
        RealDisk.create_folder(path)
    }

    fn read(&self, path: &Path) -> io::Result<Box<dyn Read + Send>> {
        RealDisk.read(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove(path)
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove_folder(path)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        RealDisk.list(folder)
    }

    fn lock(&self, path: &Path) -> io::Result<Lock> {
        RealDisk.lock(path)
    }
}

/// A loss of power loses nothing that has a name: content is on the disk before it gets its name, a name before the next thing that
/// builds on it. Results come to their names when all of them are there, the manifest last.
#[test]
fn content_is_on_the_disk_before_its_name_and_the_manifest_is_last() {
    for (name, text) in experiments() {
        let (folder, journal) = (tempdir().unwrap(), Journal::default());
        go_on(Arc::new(journal.clone()), &text, folder.path(), true, &mut never()).unwrap();
        let events = journal.0.lock().unwrap().clone();
        let mut dirty = std::collections::BTreeSet::new();
        let mut unnamed: Option<PathBuf> = None;
        let mut targets = Vec::new();
        for (at, event) in events.iter().enumerate() {
            match event {
                Event::Written(path) => drop(dirty.insert(path.clone())),
                Event::Synced(path) => drop(dirty.remove(path)),
                Event::Renamed(from, to) => {
                    assert!(!dirty.contains(from), "{name}: {} has no content", to.display());
                    let parent = to.parent().unwrap().to_owned();
                    assert!(
                        unnamed.as_ref().is_none_or(|folder| *folder == parent),
                        "{name}: {unnamed:?}, {to:?}"
                    );
                    unnamed = Some(parent);
                    targets.push((at, from.clone(), to.clone()));
                }
                Event::NamesSynced(folder) => {
                    assert!(
                        unnamed.as_ref().is_none_or(|open| open == folder),
                        "{name}: {unnamed:?}, {folder:?}"
                    );
                    unnamed = None;
                }
            }
        }
        assert_eq!(unnamed, None, "{name}");
        let to_swap = targets.iter().position(|(_, _, to)| to.ends_with(".npl-swap")).unwrap();
        let out: Vec<_> = targets[to_swap + 1..]
            .iter()
            .filter(|(_, from, _)| from.parent().unwrap().ends_with(".npl-swap"))
            .collect();
        let listed = store::read_manifest(folder.path()).unwrap().outputs;
        assert_eq!(out.len(), listed.len() + 1, "{name}");
        assert!(out.last().unwrap().2.ends_with(store::MANIFEST), "{name}: {out:?}");
        let made = targets[..to_swap]
            .iter()
            .rfind(|(_, from, _)| from.parent().unwrap().ends_with(".npl-new"))
            .unwrap();
        assert!(made.2.ends_with(store::MANIFEST), "{name}: {made:?}");
    }
}

fn with_draws(text: &str, draws: usize) -> String {
    text.replace("B = 100", &format!("B = {draws}"))
}

#[test]
fn more_draws_end_with_the_bytes_of_one_longer_run() {
    let fixed = ["ADVI", "NUTS", "MDP"];
    for (name, text) in experiments().into_iter().filter(|(name, _)| !fixed.contains(name)) {
        let expected = whole(&text);
        for first in [1, 32, 40, 64] {
            let folder = tempdir().unwrap();
            go(&with_draws(&text, first), folder.path(), false, &mut never()).unwrap();
            // By way of a third length, interrupted.
            let longer = with_draws(&text, first + 20);
            let stopped = go(&longer, folder.path(), true, &mut Stop { left: first + 7, look: None });
            // Importance sampling writes fewer draws than it makes.
            let draws = store::read_manifest(folder.path()).unwrap().draws;
            assert!(draws == if stopped.is_err() { first } else { first + 20 }, "old results stay");
            assert!(stopped.is_err() || name == "importance", "{name}");
            if first == 40 {
                go(&longer, folder.path(), false, &mut never()).unwrap();
            }
            go(&text, folder.path(), false, &mut never()).unwrap();
            same(&format!("{name}, from {first}"), folder.path(), &expected);
            let shorter = go(&with_draws(&text, 99), folder.path(), false, &mut never());
            assert!(shorter.is_err_and(|e| e.to_string().contains("never taken away")), "{name}");
        }
    }
}

/// The draws that there were are read, not made: only so many are.
#[test]
fn more_draws_cost_as_much_as_they_are() {
    let folder = tempdir().unwrap();
    let made = std::cell::Cell::new(0);
    struct Count<'a>(&'a std::cell::Cell<u64>);
    impl Watch for Count<'_> {
        fn chunk(&mut self, chunk: &npl::run::Chunk) -> Result<()> {
            self.0.set(self.0.get() + chunk.draws.end - chunk.draws.start);
            Ok(())
        }
    }
    go(&with_draws(MEAN, 64), folder.path(), false, &mut Count(&made)).unwrap();
    assert_eq!(made.replace(0), 64);
    go(MEAN, folder.path(), false, &mut Count(&made)).unwrap();
    assert_eq!(made.replace(0), 36);
    go(MEAN, folder.path(), false, &mut Count(&made)).unwrap();
    assert_eq!(made.get(), 0);
}

#[test]
fn draws_that_cannot_be_added_are_refused_with_the_reason() {
    for (name, text) in experiments().into_iter().filter(|(name, _)| ["ADVI", "NUTS", "MDP"].contains(name)) {
        let folder = tempdir().unwrap();
        go(&text, folder.path(), false, &mut never()).unwrap();
        let error = go(&with_draws(&text, 200), folder.path(), false, &mut never()).unwrap_err().to_string();
        assert!(error.contains("cannot be given another number"), "{name}: {error}");
        go(&text, folder.path(), false, &mut never()).unwrap();
    }
}

/// Makes one shard.
fn make_shard(study: &Study, out: &Path, shard: Shard, watch: &mut dyn Watch) -> Result<()> {
    let (pool, cancel) = (pool(2), AtomicBool::new(false));
    let resolved = toml::to_string(&study.experiment).unwrap();
    let ours = identity(study, &resolved, shard);
    let shelf = Shelf::of_shard(Arc::new(RealDisk), out, shard).unwrap();
    let mut kept = Kept::scan(vec![(Shelf::at(shelf.folder()), ours.hash())]).unwrap();
    let keeper = Keeper::every(shelf, ours, study.draws() as u64, Duration::MAX);
    let run = Run::new(study, &pool, &cancel)?;
    let done = run.some(&spans(study, shard), &keeper, &mut kept, watch);
    keeper.write().unwrap();
    done
}

fn join(study: &Study, shards: &[PathBuf], of: usize, out: &Path) {
    let (pool, cancel) = (pool(2), AtomicBool::new(false));
    let resolved = toml::to_string(&study.experiment).unwrap();
    let mut shelves = Vec::new();
    for run in shards {
        for (shard, folder) in store::shards(run) {
            shelves.push((Shelf::at(&folder), identity(study, &resolved, shard).hash()));
        }
    }
    let mut kept = Kept::scan(shelves).unwrap();
    let run = Run::new(study, &pool, &cancel).unwrap();
    let length = chunk_length(run.relation.draws);
    for index in 1..=of {
        for (round, span) in spans(study, Shard { of, index }) {
            assert_eq!(kept.missing(round, study.draws_of(round), &span, length), []);
        }
    }
    let folder = RunDir::open(out, "samples.csv", &resolved, &[], Existing::Join).unwrap();
    let ours = identity(study, &resolved, Shard::WHOLE);
    let keeper = Keeper::every(Shelf::of_run(&folder), ours, study.draws() as u64, Duration::MAX);
    let options = Options { names: NameStyle::Dot, resolved, command: Vec::new() };
    struct NoneMade;
    impl Watch for NoneMade {
        fn opening(&mut self, _: &npl::run::Opening) -> Result<()> {
            panic!("a draw was made")
        }
    }
    run.into_folder(&folder, &options, &keeper, &mut kept, &mut NoneMade).unwrap();
}

/// Fails at the n-th draw that is made.
struct StopMaking(u64);

impl Watch for StopMaking {
    fn progress(&mut self, _more: u64) {}

    fn chunk(&mut self, _chunk: &npl::run::Chunk) -> Result<()> {
        self.0 -= 1;
        if self.0 == 0 { Err(Error::Interrupted) } else { Ok(()) }
    }
}

#[test]
fn shards_join_to_the_bytes_of_one_machine() {
    for (name, text) in experiments() {
        let expected = whole(&text);
        for of in [2, 3, 5, 40] {
            let folder = tempdir().unwrap();
            for index in 1..=of {
                let shard = Shard { of, index };
                // Some are interrupted, and gone on with.
                if index % 2 == 0 {
                    let _ = make_shard(&study(&text), folder.path(), shard, &mut StopMaking(2));
                }
                make_shard(&study(&text), folder.path(), shard, &mut never()).unwrap();
            }
            let out = folder.path().join("joined");
            join(&study(&text), &[folder.path().to_owned()], of, &out);
            same(&format!("{name}, {of} shards"), &out, &expected);
        }
    }
}

/// What was joined can be given more draws, as if it had been made in one piece.
#[test]
fn joined_shards_can_be_extended() {
    for text in [format!("{MIXTURE}R = 3\n"), format!("method = \"importance\"\n{MIXTURE}")] {
        let folder = tempdir().unwrap();
        let short = with_draws(&text, 75);
        for index in 1..=2 {
            make_shard(&study(&short), folder.path(), Shard { of: 2, index }, &mut never()).unwrap();
        }
        let out = folder.path().join("joined");
        join(&study(&short), &[folder.path().to_owned()], 2, &out);
        go(&text, &out, false, &mut never()).unwrap();
        same("joined, then extended", &out, &whole(&text));
    }
}

#[test]
fn shards_are_disjoint_and_complete_and_of_one_size() {
    for (name, text) in experiments() {
        let study = study(&text);
        let most = most_shards(&study);
        for of in [1, 2, 3, 7, most, most + 5] {
            // The draws of a round come in order, whichever shards have them: those of a warm path have some of every round.
            let mut next = vec![0; study.rounds()];
            let mut sizes = Vec::new();
            for index in 1..=of {
                let mut size = 0;
                for (round, span) in spans(&study, Shard { of, index }) {
                    assert_eq!(span.start, next[round], "{name}: {index} of {of}, round {round}");
                    size += span.end - span.start;
                    next[round] = span.end;
                }
                sizes.push(size);
            }
            let all: Vec<u64> = (0..study.rounds()).map(|round| study.draws_of(round)).collect();
            assert_eq!(next, all, "{name}: {of}");
            let (small, large) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
            // One unit more or less: a chunk, a chain, a repeat.
            assert!(large - small <= 100, "{name}: {sizes:?}");
        }
    }
}

/// Parts of which any byte is another are noticed, and their draws made again.
#[test]
fn a_damaged_part_is_never_believed() {
    let text = with_draws(MEAN, 70);
    let expected = whole(&text);
    let folder = tempdir().unwrap();
    let _ = go(&text, folder.path(), false, &mut Stop { left: 45, look: None });
    let shelf = folder.path().join(".npl-chunks/1-of-1");
    let first = fs::read_dir(&shelf).unwrap().map(|e| e.unwrap().path()).find(|p| part(p)).unwrap();
    let bytes = fs::read(&first).unwrap();
    for at in (0..bytes.len()).step_by(13) {
        let copied = tempdir().unwrap();
        copy(folder.path(), copied.path());
        let mut bad = bytes.clone();
        bad[at] ^= 0x10;
        fs::write(copied.path().join(".npl-chunks/1-of-1").join(first.file_name().unwrap()), bad).unwrap();
        go(&text, copied.path(), false, &mut never()).unwrap();
        same(&format!("byte {at}"), copied.path(), &expected);
    }
}

/// A manifest of which any byte is another is not read, and what there is of results neither.
#[test]
fn a_damaged_manifest_is_never_believed() {
    let folder = tempdir().unwrap();
    go(MEAN, folder.path(), false, &mut never()).unwrap();
    let path = folder.path().join(store::MANIFEST);
    let bytes = fs::read(&path).unwrap();
    assert!(store::read_report(folder.path()).is_ok());
    for at in 0..bytes.len() {
        for flip in [0x01, 0x20, 0x80] {
            let mut bad = bytes.clone();
            bad[at] ^= flip;
            fs::write(&path, bad).unwrap();
            let read = store::read_manifest(folder.path());
            assert!(read.is_err() && store::read_report(folder.path()).is_err(), "byte {at} ^ {flip}");
        }
    }
}

/// The same of the other results: every command that reads them asks the manifest first.
#[test]
fn damaged_results_are_noticed() {
    let folder = tempdir().unwrap();
    go(MEAN, folder.path(), false, &mut never()).unwrap();
    let read: [(&str, &dyn Fn() -> bool); 2] = [
        (store::REPORT_JSON, &|| store::read_report(folder.path()).is_ok()),
        (store::SAMPLES, &|| store::samples_of(folder.path()).is_ok()),
    ];
    for (name, reads) in read {
        let path = folder.path().join(name);
        let bytes = fs::read(&path).unwrap();
        for at in (0..bytes.len()).step_by(bytes.len() / 50) {
            let mut bad = bytes.clone();
            bad[at] ^= 1;
            fs::write(&path, &bad).unwrap();
            assert!(!reads(), "{name}, byte {at}");
            fs::write(&path, &bad[..at]).unwrap();
            assert!(!reads(), "{name}, {at} bytes");
        }
        fs::write(&path, bytes).unwrap();
        assert!(reads());
    }
    // What is damaged can be made again.
    fs::write(folder.path().join(store::SAMPLES), "x").unwrap();
    go(MEAN, folder.path(), false, &mut never()).unwrap();
    same("mended", folder.path(), &whole(MEAN));
}

#[test]
fn another_run_is_refused_saying_in_what_it_is_another() {
    let folder = tempdir().unwrap();
    let _ = go(MEAN, folder.path(), false, &mut Stop { left: 40, look: None });
    for (from, to, says) in [
        ("sigma2 = 1.0", "sigma2 = 2.0", "`model.normal.sigma2` is 1.0 there, and 2.0 here"),
        ("seed = 5", "seed = 6", "`seed` is 5 there, and 6 here"),
        ("n = 20", "n = 21", "data.simulate.normal.n"),
    ] {
        let error = go(&MEAN.replace(from, to), folder.path(), false, &mut never()).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
    go(MEAN, folder.path(), false, &mut never()).unwrap();
    let error = go(&MEAN.replace("seed = 5", "seed = 6"), folder.path(), false, &mut never()).unwrap_err();
    assert!(error.to_string().contains("`seed` is 5 there"), "{error}");
}

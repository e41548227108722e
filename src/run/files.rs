//! A run into its directory: result files are whole or absent, and the manifest comes last.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::{Chunk, Keeper, Kept, Opening, Run, Watch};
use crate::error::{Error, Result};
use crate::kernel::Level;
use crate::method::Trial;
use crate::path::PathPoint;
use crate::report::{Influences, Report};
use crate::samples::{GROUP, Kinship, NameStyle, Sample, Summary, columns, npy_header, quoted};
use crate::store::{self, AtomicFile, DrawFile, Machine, Manifest, RunDir};

/// What of a run's files is not in its study.
pub struct Options {
    pub names: NameStyle,
    /// The experiment with every default written out.
    pub resolved: String,
    /// The command line, for the manifest.
    pub command: Vec<String>,
}

/// Where draws go: files that are not yet visible.
struct Files {
    /// The file of draws; a path has one only if parameters are to be kept.
    draws: Option<DrawFile>,
    path: Option<AtomicFile>,
    /// Which parameters are kept; `None` for all.
    kept: Option<Vec<usize>>,
    /// Rounds whose draws are kept: of a path with folds, those of the first fold.
    rounds: usize,
    /// The log likelihood of the training rows of the first round.
    log_lik: Option<(AtomicFile, Arc<Trial>)>,
}

impl Files {
    /// Adds a draw; rounds are counted from 1.
    fn put(&mut self, round: usize, draw: &Sample) -> Result<()> {
        if let Some((file, trial)) = self.log_lik.as_mut().filter(|_| round == 1) {
            let mut densities = vec![0.0; trial.train.n()];
            let parameters = trial.model.names().len();
            trial.model.log_density(&draw.theta[..parameters], &trial.train, &mut densities);
            let bytes: Vec<u8> = densities.iter().flat_map(|v| v.to_le_bytes()).collect();
            file.put(|out| out.write_all(&bytes))?;
        }
        if round > self.rounds {
            return Ok(());
        }
        match (&mut self.draws, &self.kept) {
            (Some(draws), None) => draws.put(round, draw),
            (Some(draws), Some(kept)) => {
                let theta = kept.iter().map(|&j| draw.theta[j]).collect();
                draws.put(round, &Sample { theta, extra: draw.extra.clone(), ..*draw })
            }
            (None, _) => Ok(()),
        }
    }
}

/// Files, and whoever else is watching.
struct Both<'a> {
    files: Files,
    watch: &'a mut dyn Watch,
}

impl Watch for Both<'_> {
    fn opening(&mut self, opening: &Opening) -> Result<()> {
        self.watch.opening(opening)
    }

    fn draw(&mut self, round: usize, draw: &Sample) -> Result<()> {
        self.files.put(round + 1, draw)?;
        self.watch.draw(round, draw)
    }

    fn chunk(&mut self, chunk: &Chunk) -> Result<()> {
        self.watch.chunk(chunk)
    }

    fn points(&mut self, round: usize, value: &str, points: &[PathPoint]) -> Result<()> {
        for point in points {
            let line = point.line(round + 1, value);
            let file = self.files.path.as_mut().expect("a path has a file for its points");
            file.put(|out| out.write_all(line.as_bytes()))?;
        }
        self.watch.points(round, value, points)
    }

    fn progress(&mut self, more: u64) {
        self.watch.progress(more);
    }
}

impl Run<'_> {
    /// Which parameters of a path are kept; `None` if it is no path.
    fn kept(&self) -> Option<Vec<usize>> {
        let path = self.study.experiment.path.as_ref()?;
        Some(path.keep.iter().filter_map(|k| self.names.iter().position(|n| n == k)).collect())
    }

    /// All columns of a table of its draws.
    pub fn columns(&self, style: NameStyle) -> Vec<String> {
        columns(self.study.inference().statistics(), &self.names, style)
    }

    /// The columns of the file of draws; `None` if there will be none.
    pub fn file_columns(&self, style: NameStyle) -> Option<Vec<String>> {
        let Some(kept) = self.kept() else { return Some(self.columns(style)) };
        let names: Vec<String> = kept.into_iter().map(|j| self.names[j].clone()).collect();
        (!names.is_empty()).then(|| columns(self.study.inference().statistics(), &names, style))
    }

    fn files(&self, folder: &RunDir, style: NameStyle) -> Result<Files> {
        let kept = self.kept();
        let path = match kept {
            Some(_) => {
                let mut file = folder.create(store::PATH)?;
                file.put(|out| writeln!(out, "{}", crate::path::HEADER))?;
                Some(file)
            }
            None => None,
        };
        let settings = self.study.settings().len();
        let rounds = if settings > 0 { settings } else { self.study.rounds() };
        let rows = self.study.draws() * rounds;
        let samples = &self.study.experiment.output.samples;
        let create = |columns| {
            DrawFile::create(folder, samples, columns, self.study.grouping(), self.relation.draws, rows)
        };
        let draws = self.file_columns(style).map(create).transpose()?;
        let log_lik = self.log_lik(folder)?;
        Ok(Files { draws, path, kept, rounds, log_lik })
    }

    /// A file of the log likelihood of chains, with an array of draws by training rows, if it is to be kept.
    fn log_lik(&self, folder: &RunDir) -> Result<Option<(AtomicFile, Arc<Trial>)>> {
        let experiment = &self.study.experiment;
        let chains = matches!(self.relation.draws, Kinship::Chains { .. });
        if !experiment.output.pointwise || !chains || experiment.path.is_some() {
            return Ok(None);
        }
        let trial = self.study.trial(0)?;
        let mut header = Vec::new();
        npy_header(&mut header, self.study.draws(), trial.train.n())
            .map_err(|e| Error::write(Path::new(store::LOG_LIK), e))?;
        let mut file = folder.create(store::LOG_LIK)?;
        file.put(|out| out.write_all(&header))?;
        Ok(Some((file, trial)))
    }

    /// `pointwise.csv`, if it is to be kept.
    fn pointwise(&self, report: &Report) -> Result<Option<String>> {
        if !self.study.experiment.output.pointwise || report.repeats.iter().all(|r| r.pointwise.is_empty()) {
            return Ok(None);
        }
        let mut text = format!("{}row,log_density\n", report.place());
        for (round, repeat) in report.repeats.iter().enumerate() {
            let rows = match &self.study.experiment.path {
                Some(_) => {
                    let (setting, repeat) = self.study.setting_of(round);
                    self.setting(setting)?.test_rows(repeat)
                }
                None => self.study.test_rows(round),
            };
            let place = repeat.place();
            for (i, log_density) in repeat.pointwise.iter().enumerate() {
                let row = rows.as_ref().map_or(i, |rows| rows[i]) + 1;
                text += &format!("{place},{row},{log_density:?}\n");
            }
        }
        Ok(Some(text))
    }

    /// `influence.csv`, if it is to be kept: a line for every training row, of all groups, and a column for every parameter.
    fn influence(&self, report: &Report) -> Option<String> {
        let mut text = String::new();
        for repeat in report.repeats.iter().filter(|repeat| !repeat.influence.cells.is_empty()) {
            let Influences { columns, cells } = &repeat.influence;
            let group = repeat.group.as_ref().map(|group| quoted(group) + ",");
            if text.is_empty() {
                let names: Vec<_> = columns.iter().map(|name| quoted(name)).collect();
                let by = group.as_ref().map_or(String::new(), |_| format!("{GROUP},"));
                text = by + &names.join(",") + "\n";
            }
            for row in cells.chunks_exact(columns.len()) {
                let cells: Vec<String> = row.iter().map(|v| format!("{v:?}")).collect();
                text += &format!("{}{}\n", group.as_deref().unwrap_or_default(), cells.join(","));
            }
        }
        (!text.is_empty()).then_some(text)
    }

    /// Runs all rounds, but for what is kept of them, and writes the results. Whatever goes wrong, what was made stays.
    pub fn into_folder(
        &self,
        folder: &RunDir,
        options: &Options,
        keeper: &Keeper,
        kept: &mut Kept,
        watch: &mut dyn Watch,
    ) -> Result<Report> {
        let done = self.make_all(folder, options, keeper, kept, watch);
        if let Err(error) = &done {
            match error {
                // The reader has seen enough: it wants no more of it.
                Error::ClosedPipe => keeper.forget(),
                // The first error is the one to tell. There is no finished run to add draws to.
                _ => keeper.last(drop),
            }
            folder.sweep();
        }
        done.map_err(|error| folder.blame(error))
    }

    fn make_all(
        &self,
        folder: &RunDir,
        options: &Options,
        keeper: &Keeper,
        kept: &mut Kept,
        watch: &mut dyn Watch,
    ) -> Result<Report> {
        let (clock, wall) = (Instant::now(), SystemTime::now());
        if super::not_extendable(self.study).is_none() && self.study.experiment.path.is_none() {
            keeper.open_finished()?;
        }
        let mut both = Both { files: self.files(folder, options.names)?, watch };
        let report = self.all(keeper, kept, &mut both)?;
        let seconds = clock.elapsed().as_secs_f64();
        let files = self.write(folder, options, both.files, &report)?;
        let manifest = self.manifest(folder, options, &report, &files, (wall, seconds))?;
        folder.write(store::MANIFEST, &store::seal(&manifest))?;
        folder.publish()?;
        // The results are there. What is left over does no harm, and what is missing would only have to be made again.
        drop(keeper.finish());
        Ok(report)
    }

    /// All results but the manifest, without which nothing here is one; and their names.
    fn write(
        &self,
        folder: &RunDir,
        options: &Options,
        files: Files,
        report: &Report,
    ) -> Result<Vec<String>> {
        let samples = &self.study.experiment.output.samples;
        let mut names: Vec<String> = files.draws.iter().flat_map(|_| store::draw_files(samples)).collect();
        let settle = |draws: DrawFile| self.machine.pool.install(|| draws.settle());
        let settled = files.draws.map(settle).transpose()?;
        let posterior = if files.path.is_some() { store::PATH } else { store::SUMMARY };
        let others = [posterior, store::REPORT, store::REPORT_JSON, store::CONFIG, store::PREPARATION];
        names.extend(others.map(String::from));
        let elbo = report.elbo();
        names.extend(elbo.is_some().then(|| store::ELBO.to_owned()));
        let extra = [(store::POINTWISE, self.pointwise(report)?), (store::INFLUENCE, self.influence(report))];
        for (name, text) in extra {
            names.extend(text.is_some().then(|| name.to_owned()));
            text.map_or(Ok(()), |text| folder.write(name, &text))?;
        }
        if let Some((file, _)) = files.log_lik {
            file.commit()?;
            names.push(store::LOG_LIK.to_owned());
        }
        folder.write(store::CONFIG, &options.resolved)?;
        folder.write(store::PREPARATION, &(compact(&self.study.preparations()?)? + "\n"))?;
        let summaries = settled.map(|(draws, summaries)| draws.commit().map(|()| summaries)).transpose()?;
        match files.path {
            Some(path) => path.commit()?,
            None => {
                let text = Summary::table_of_groups(summaries.as_deref().unwrap_or_default());
                folder.write(store::SUMMARY, &text)?;
            }
        }
        let lines = report.repeats.iter().map(|r| r.line(&report.method) + "\n").collect::<String>();
        let header = report.repeats.first().map(|r| r.header()).unwrap_or_default();
        folder.write(store::REPORT, &format!("{header}\n{lines}"))?;
        folder.write(store::REPORT_JSON, &json(report)?)?;
        elbo.map_or(Ok(()), |text| folder.write(store::ELBO, &text))?;
        Ok(names)
    }

    fn manifest(
        &self,
        folder: &RunDir,
        options: &Options,
        report: &Report,
        files: &[String],
        (started, seconds): (SystemTime, f64),
    ) -> Result<Manifest> {
        let samples = &self.study.experiment.output.samples;
        let (mut outputs, mut sizes) = (BTreeMap::new(), BTreeMap::new());
        for name in files {
            let (size, hash) = folder.fingerprint(name)?;
            outputs.insert(name.clone(), hash);
            sizes.insert(name.clone(), size);
        }
        let mut status = BTreeMap::new();
        for (name, count) in report.repeats.iter().flat_map(|r| &r.diagnostics.status) {
            *status.entry(name.clone()).or_insert(0) += count;
        }
        Ok(Manifest {
            npl: env!("CARGO_PKG_VERSION").into(),
            seed: self.study.first_seed().0,
            repeats: self.study.rounds(),
            draws: self.study.draws(),
            threads: self.machine.pool.current_num_threads(),
            simd: Level::current().name().into(),
            machine: Machine::current(),
            started: store::utc(unix(started)),
            finished: store::utc(unix(SystemTime::now())),
            seconds,
            command: options.command.clone(),
            samples: if files.contains(samples) { samples.clone() } else { String::new() },
            relation: report.relation,
            inputs: self.study.inputs().to_vec(),
            data: self.study.file_notes(),
            status,
            outputs,
            sizes,
        })
    }
}

fn unix(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

fn compact(value: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|e| Error::Failed(e.to_string()))
}

fn json(value: &impl serde::Serialize) -> Result<String> {
    let text = serde_json::to_string_pretty(value).map_err(|e| Error::Failed(e.to_string()))?;
    Ok(text + "\n")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    use super::*;
    use crate::config::Document;
    use crate::data::files::SearchPath;
    use crate::run::{Resumed, identity, resume};
    use crate::store::faulty::{Fault, FaultyDisk};
    use crate::store::{Disk, Existing, Shard, Shelf};
    use crate::study::Study;

    const TOY: &str = "name = \"x\"\nseed = 1\n[data.simulate.normal]\nn = 20\nmean = 0.0\nsd = 1.0\n[model.normal]\nsigma2 = 1.0\n\
                       [sampler]\nB = 70\n";
    const PATH: &str =
        "[path]\nparameter = \"model.normal.sigma2\"\nvalues = [1.0, 2.0]\nkeep = [\"theta\"]\n";

    fn sound() -> Arc<dyn Disk> {
        Arc::new(FaultyDisk::new(Fault::None))
    }

    /// Runs an experiment into a folder on this disk, with a part in the middle of a chunk, and another one.
    fn run(text: &str, folder: &Path, disk: Arc<dyn Disk>, existing: Existing) -> Result<()> {
        let document = Document::parse("x.toml", text, &[]).unwrap();
        let experiment = document.decode().unwrap();
        let study = Study::new(document, experiment, SearchPath::default()).unwrap();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let cancel = AtomicBool::new(false);
        let run = Run::new(&study, &pool, &cancel)?;
        let resolved = study.experiment.to_toml().unwrap();
        let samples = &study.experiment.output.samples;
        let ours = identity(&study, &resolved, Shard::WHOLE);
        let folder = RunDir::open_on(disk, folder, samples, &resolved, study.inputs(), existing)?;
        let shelf = || Shelf::of_run(&folder);
        let mut kept = Kept::default();
        match existing {
            Existing::Continue => match resume(folder.path(), shelf(), &ours, &study)? {
                Resumed::Finished => return Ok(()),
                Resumed::From(found) => kept = *found,
            },
            _ => shelf().clear(true),
        }
        let keeper = Keeper::every(shelf(), ours, study.draws() as u64, Duration::MAX);
        let options = Options { names: NameStyle::Dot, resolved, command: Vec::new() };
        let mut watch =
            |draw: Sample| if [20, 50].contains(&draw.index) { keeper.write().map(drop) } else { Ok(()) };
        run.into_folder(&folder, &options, &keeper, &mut kept, &mut watch).map(drop)
    }

    /// A folder with a manifest has every file that it lists, as it was written; whose results they are.
    fn results(folder: &Path) -> Option<usize> {
        let manifest = store::read_manifest(folder).ok()?;
        for name in manifest.outputs.keys() {
            assert_eq!(store::damage(folder, &manifest, name), None);
        }
        Some(manifest.draws)
    }

    /// The bytes of all results, times aside.
    fn bytes(folder: &Path) -> Vec<(String, Vec<u8>)> {
        let manifest = store::read_manifest(folder).unwrap();
        let timed = [store::REPORT, store::REPORT_JSON];
        let names = manifest.outputs.into_keys().filter(|name| !timed.contains(&name.as_str()));
        names.map(|name| (name.clone(), std::fs::read(folder.join(&name)).unwrap())).collect()
    }

    /// Whatever call fails, once or for good: a run that failed says so and leaves the results that there were, all of
    /// them, or the new ones; and going on with it ends with the bytes of a run that nothing happened to.
    #[test]
    fn no_fault_of_the_disk_loses_or_spoils_anything() {
        let old = TOY.replace("B = 70", "B = 7");
        let endings = ["", "[output]\nsamples = \"d.npy\"\n", "[output]\nsamples = \"d.csv.gz\"\n", PATH];
        let (mut injected, started) = (0, Instant::now());
        for ending in endings {
            let text = format!("{TOY}{ending}");
            let whole = crate::tempfile::tempdir().unwrap();
            run(&text, whole.path(), sound(), Existing::Refuse).unwrap();
            let expected = bytes(whole.path());
            // A disk that stays away is the same to all formats.
            let faults = [Fault::Once as fn(usize) -> Fault, Fault::From];
            for fault in &faults[..if ending.is_empty() { 2 } else { 1 }] {
                for k in 1.. {
                    let folder = crate::tempfile::tempdir().unwrap();
                    let disk = FaultyDisk::new(fault(k));
                    // Every other time there are older results to replace.
                    let before = (k % 2 == 0).then_some(7);
                    if before.is_some() {
                        run(&old, folder.path(), sound(), Existing::Refuse).unwrap();
                    }
                    let ended = run(&text, folder.path(), Arc::new(disk.clone()), Existing::Replace);
                    let found = results(folder.path());
                    match ended {
                        Ok(()) => assert_eq!(found, Some(70), "{ending}: call {k}"),
                        Err(error) => {
                            assert_eq!(error.exit_code(), 1, "{error}");
                            let sound = found == before || found == Some(70);
                            assert!(sound, "{ending}: call {k} of {}: {found:?}", disk.calls());
                        }
                    }
                    // Nothing of it may be there yet, and then the old results are in the way.
                    let again = run(&text, folder.path(), sound(), Existing::Continue)
                        .or_else(|_| run(&text, folder.path(), sound(), Existing::Replace));
                    again.unwrap();
                    assert!(bytes(folder.path()) == expected, "{ending}: call {k}");
                    injected += 1;
                    if disk.calls() < k {
                        assert!(k > 20, "{k} calls make no run");
                        break;
                    }
                }
            }
        }
        println!("{injected} faults injected in {:.0?}: none lost or spoilt anything", started.elapsed());
    }
}

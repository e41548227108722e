//! A run into its directory: result files are whole or absent, and the manifest comes last.

use std::collections::BTreeMap;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::{Chunk, Opening, Run, Watch};
use crate::error::{Error, Result};
use crate::kernel::Level;
use crate::path::PathPoint;
use crate::report::{HEADER, Report};
use crate::samples::{NameStyle, Sample, Summary, columns};
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
}

impl Files {
    /// Adds a draw; rounds are counted from 1.
    fn put(&mut self, round: usize, draw: &Sample) -> Result<()> {
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
        self.watch.draw(round, draw)
    }

    fn chunk(&mut self, chunk: &Chunk) -> Result<()> {
        chunk.rows.iter().try_for_each(|row| self.files.put(chunk.round + 1, row))?;
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
        let rows = self.study.draws() * self.study.rounds();
        let samples = &self.study.experiment.output.samples;
        let create = |columns| DrawFile::create(folder, samples, columns, self.relation.draws, rows);
        let draws = self.file_columns(style).map(create).transpose()?;
        Ok(Files { draws, path, kept })
    }

    /// Runs all rounds and writes the results.
    pub fn into_folder(&self, folder: &RunDir, options: &Options, watch: &mut dyn Watch) -> Result<Report> {
        let (clock, wall) = (Instant::now(), SystemTime::now());
        let mut both = Both { files: self.files(folder, options.names)?, watch };
        let report = self.all(&mut both)?;
        let seconds = clock.elapsed().as_secs_f64();
        let files = self.write(folder, options, both.files, &report)?;
        let manifest = self.manifest(folder, options, &report, &files, (wall, seconds))?;
        folder.write(store::MANIFEST, &json(&manifest)?)?;
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
        let mut path = files.path;
        path.as_mut().map_or(Ok(()), AtomicFile::settle)?;
        let posterior = if path.is_some() { store::PATH } else { store::SUMMARY };
        names.extend([posterior, store::REPORT, store::REPORT_JSON, store::CONFIG].map(String::from));
        let elbo = report.elbo();
        names.extend(elbo.is_some().then(|| store::ELBO.to_owned()));
        folder.begin_replacing(&names)?;
        // The experiment comes first: a run that dies here is known for what it was, and may be run again.
        folder.write(store::CONFIG, &options.resolved)?;
        let summaries = settled.map(|(draws, summaries)| draws.commit().map(|()| summaries)).transpose()?;
        match path {
            Some(path) => path.commit()?,
            None => {
                let text = Summary::table(summaries.as_deref().unwrap_or_default());
                folder.write(store::SUMMARY, &text)?;
            }
        }
        let lines = report.repeats.iter().map(|r| r.line(&report.method) + "\n").collect::<String>();
        folder.write(store::REPORT, &format!("{HEADER}\n{lines}"))?;
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
        let hash = |name: &String| Ok((name.clone(), folder.sha256(name)?));
        let mut status = BTreeMap::new();
        for (name, count) in report.repeats.iter().flat_map(|r| &r.diagnostics.status) {
            *status.entry(name.clone()).or_insert(0) += count;
        }
        Ok(Manifest {
            npl: env!("CARGO_PKG_VERSION").into(),
            seed: self.study.seed(0).0,
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
            outputs: files.iter().map(hash).collect::<Result<_>>()?,
        })
    }
}

fn unix(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

fn json(value: &impl serde::Serialize) -> Result<String> {
    let text = serde_json::to_string_pretty(value).map_err(|e| Error::Failed(e.to_string()))?;
    Ok(text + "\n")
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::config::Document;
    use crate::data::files::SearchPath;
    use crate::store::faulty::{Fault, FaultyDisk};
    use crate::store::{Disk, RealDisk};
    use crate::study::Study;

    const TOY: &str = "name = \"x\"\nseed = 1\n[data.simulate.normal]\nn = 20\nmean = 0.0\nsd = 1.0\n[model.normal]\nsigma2 = 1.0\n\
                       [sampler]\nB = 40\n";
    const PATH: &str =
        "[path]\nparameter = \"model.normal.sigma2\"\nvalues = [1.0, 2.0]\nkeep = [\"theta\"]\n";

    /// Runs an experiment into a folder on this disk.
    fn run(text: &str, folder: &Path, disk: Arc<dyn Disk>) -> Result<Report> {
        let document = Document::parse("x.toml", text, &[]).unwrap();
        let experiment = document.decode().unwrap();
        let study = Study::new(document, experiment, SearchPath::default()).unwrap();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let cancel = AtomicBool::new(false);
        let run = Run::new(&study, &pool, &cancel)?;
        let resolved = toml::to_string(&study.experiment).unwrap();
        let samples = &study.experiment.output.samples;
        let folder = RunDir::open_on(disk, folder, samples, &resolved, study.inputs(), true)?;
        let options = Options { names: NameStyle::Dot, resolved, command: Vec::new() };
        run.into_folder(&folder, &options, &mut |_: Sample| Ok(()))
    }

    /// A folder with a manifest has every file that it lists, as it was written; whose results they are.
    fn results(folder: &Path) -> Option<usize> {
        let manifest = store::read_manifest(folder).ok()?;
        let held = RunDir::open(folder, "samples.csv", "", &[], true).unwrap();
        for (name, hash) in &manifest.outputs {
            assert_eq!(held.sha256(name).ok().as_ref(), Some(hash), "{name}");
        }
        Some(manifest.draws)
    }

    /// Whatever call fails, once or for good, a run that failed says so and leaves the results that there were, or none.
    #[test]
    fn no_fault_of_the_disk_leaves_a_result_that_looks_whole() {
        let old = TOY.replace("B = 40", "B = 7");
        let endings = ["", "[output]\nsamples = \"d.npy\"\n", "[output]\nsamples = \"d.csv.gz\"\n", PATH];
        let cases =
            endings.iter().flat_map(|end| [Fault::Once as fn(usize) -> Fault, Fault::From].map(|f| (end, f)));
        for (ending, fault) in cases {
            for k in 1.. {
                let folder = crate::tempfile::tempdir().unwrap();
                let disk = FaultyDisk::new(fault(k));
                // Every other time there are older results to replace.
                let before = (k % 2 == 0).then(|| run(&old, folder.path(), Arc::new(RealDisk)).unwrap());
                let ended = run(&format!("{TOY}{ending}"), folder.path(), Arc::new(disk.clone()));
                let found = results(folder.path());
                match ended {
                    Ok(_) => assert_eq!(found, Some(40), "{ending}: call {k}"),
                    Err(error) => {
                        assert_eq!(error.exit_code(), 1, "{error}");
                        let kept = before.as_ref().map(|_| 7);
                        assert!(
                            found.is_none() || found == kept,
                            "{ending}: call {k} of {}: {found:?}",
                            disk.calls()
                        );
                    }
                }
                if disk.calls() < k {
                    assert!(k > 20, "{k} calls make no run");
                    break;
                }
            }
        }
    }
}

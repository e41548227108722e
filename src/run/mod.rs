//! A run: rounds (repeats, or settings of a path) of chunks of draws, folded in order. Threads make draws, [`ordered`] puts them
//! in order, a chunk closes, its sums are folded: no bit of a report depends on threads. There is no terminal here: whoever
//! wants to see the draws come gives a [`Watch`].
//!
//! [`ordered`]: crate::ordered

mod chunk;
mod files;
mod fold;
mod sums;

use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use rayon::ThreadPool;

pub use chunk::{CHUNK, Chunk, Opening};
pub use files::Options;
pub use fold::Fold;
pub use sums::{Scores, Sums};

use crate::error::Result;
use crate::experiment::PathConfig;
use crate::method::{Findings, Job, Machine, Made, Sink, Trial};
use crate::path::PathPoint;
use crate::report::{Diagnostics, Observations, PathReport, Repeat, Report};
use crate::samples::{Kinship, Relation, Sample};
use crate::study::Study;

/// Sees a run go by. Rounds are counted from 0.
pub trait Watch {
    /// A round begins, and what had to be fitted for it is.
    fn opening(&mut self, _opening: &Opening) -> Result<()> {
        Ok(())
    }

    /// A draw that will be written, as soon as it and all before it are made.
    fn draw(&mut self, _round: usize, _draw: &Sample) -> Result<()> {
        Ok(())
    }

    /// A chunk is closed.
    fn chunk(&mut self, _chunk: &Chunk) -> Result<()> {
        Ok(())
    }

    /// A setting of a path is done.
    fn points(&mut self, _round: usize, _value: &str, _points: &[PathPoint]) -> Result<()> {
        Ok(())
    }

    /// So many more of `sampler.B` are made, written or not.
    fn progress(&mut self, _more: u64) {}
}

/// All rounds of a study, to be run.
pub struct Run<'a> {
    study: &'a Study,
    machine: Machine<'a>,
    /// Names of all entries of a draw.
    pub names: Vec<String>,
    /// What the draws will be to each other.
    pub relation: Relation,
}

impl<'a> Run<'a> {
    pub fn new(study: &'a Study, pool: &'a ThreadPool, cancel: &'a AtomicBool) -> Result<Run<'a>> {
        // Of a path the experiment as it stands is not run.
        let first = if study.experiment.path.is_some() { study.take_trial(0) } else { study.trial(0) }?;
        let (names, relation) = (study.parameters(&first), first.relation);
        Ok(Run { study, machine: Machine { pool, cancel }, names, relation })
    }

    /// Runs all rounds.
    pub fn all(&self, watch: &mut dyn Watch) -> Result<Report> {
        let (study, experiment) = (self.study, &self.study.experiment);
        let values = study.settings();
        let mut repeats = Vec::new();
        for round in 0..study.rounds() {
            let setting = values.get(round).map(|_| study.setting(round)).transpose()?;
            let of_repeat = Round { study, round, repeat: round, path: None };
            let at = setting.as_ref().map_or(of_repeat, |setting| Round {
                study: setting,
                round,
                repeat: 0,
                path: experiment.path.as_ref(),
            });
            let (done, points) = at.run(self.machine, watch)?;
            if let Some(value) = values.get(round) {
                watch.points(round, &value.to_string(), &points)?;
            }
            repeats.push(done);
        }
        let report = Report::new(&experiment.name, experiment.method.name(), study.label(), repeats);
        let report = report.of_draws(self.relation).of_data(study.file_notes());
        Ok(match &experiment.path {
            Some(path) => report.of_path(PathReport {
                parameter: path.parameter.clone(),
                values: values.iter().map(ToString::to_string).collect(),
            }),
            None => report,
        })
    }
}

/// One round of a run.
#[derive(Clone, Copy)]
struct Round<'a> {
    /// Of a path, that of the setting.
    study: &'a Study,
    /// Which of the rounds, and which repeat of the study it is; counted from 0.
    round: usize,
    repeat: usize,
    path: Option<&'a PathConfig>,
}

impl Round<'_> {
    fn run(&self, machine: Machine, watch: &mut dyn Watch) -> Result<(Repeat, Vec<PathPoint>)> {
        let trial = self.study.take_trial(self.repeat)?;
        let started = Instant::now();
        let draws = self.study.draws() as u64;
        let scores = Scores::new(&self.study.experiment.evaluate, draws, &trial);
        let length = match trial.relation.draws {
            Kinship::Chains { each, .. } => each as u64,
            Kinship::Independent | Kinship::Weighted => CHUNK,
        };
        let fold = self.fold(&scores, &trial);
        let next = begin(&scores, self.round, 0..length.min(draws));
        let mut sink = Chunks { scores: &scores, fold, next, length, draws, watch };
        let test = scores.test;
        trial.run(&mut Job {
            experiment: &self.study.experiment,
            trial: &trial,
            test,
            machine,
            sink: &mut sink,
        })?;
        let (done, points) = self.finish(sink.fold, &trial, machine.pool);
        Ok((Repeat { seconds: started.elapsed().as_secs_f64(), ..done }, points))
    }

    fn fold<'a>(&self, scores: &'a Scores, trial: &Trial) -> Fold<'a> {
        Fold::new(scores, trial, self.study.parameters(trial), self.path.is_some())
    }

    fn finish(&self, fold: Fold, trial: &Trial, pool: &ThreadPool) -> (Repeat, Vec<PathPoint>) {
        let near_zero = self.path.map_or(0.0, |path| path.near_zero.get());
        pool.install(|| fold.finish(self.facts(trial), near_zero))
    }

    /// What is known before the first draw.
    fn facts(&self, trial: &Trial) -> Repeat {
        let bootstrap = self.study.experiment.method.is_bootstrap() && trial.prior.alpha() == 0.0;
        Repeat {
            repeat: self.round + 1,
            seed: trial.seed.0,
            n_train: trial.train.n(),
            n_test: trial.test.as_ref().map_or(0, |t| t.n()),
            draws: self.study.draws(),
            seconds: 0.0,
            lppd: None,
            mse: None,
            accuracy: None,
            sparsity: None,
            diagnostics: Diagnostics::default(),
            observations: Some(Observations::of(&trial.train, bootstrap)),
            by_restarts: Vec::new(),
            elbo: Vec::new(),
        }
    }
}

/// Cuts the stream of draws into chunks, and folds them.
struct Chunks<'a> {
    scores: &'a Scores<'a>,
    fold: Fold<'a>,
    next: Chunk,
    /// Draws of a chunk, and of the round.
    length: u64,
    draws: u64,
    watch: &'a mut dyn Watch,
}

/// A chunk without its draws.
fn begin(scores: &Scores, round: usize, draws: Range<u64>) -> Chunk {
    Chunk { round, draws, rows: Vec::new(), sums: scores.none() }
}

impl Sink for Chunks<'_> {
    fn open(&mut self, findings: Findings) -> Result<()> {
        let opening = Opening { round: self.next.round, findings };
        self.watch.opening(&opening)?;
        self.fold.open(&opening);
        Ok(())
    }

    fn put(&mut self, made: Made) -> Result<()> {
        let index = made.index();
        self.scores.add(&made, &mut self.next.sums);
        if let Some(sample) = made.into_sample() {
            self.watch.draw(self.next.round, &sample)?;
            self.next.rows.push(sample);
        }
        self.watch.progress(1);
        if index + 1 == self.next.draws.end {
            let draws = index + 1..(index + 1 + self.length).min(self.draws);
            let next = begin(self.scores, self.next.round, draws);
            let closed = std::mem::replace(&mut self.next, next);
            self.watch.chunk(&closed)?;
            self.fold.add(&closed);
        }
        Ok(())
    }
}

/// The report of repeat `repeat`, from 0, by its opening and its chunks, all of them and in their order: what running it would
/// have said, but for the time.
pub fn fold(
    study: &Study,
    repeat: usize,
    opening: Option<&Opening>,
    chunks: &[Chunk],
    pool: &ThreadPool,
) -> Result<Repeat> {
    let trial = study.trial(repeat)?;
    let scores = Scores::new(&study.experiment.evaluate, study.draws() as u64, &trial);
    let at = Round { study, round: repeat, repeat, path: None };
    let mut fold = at.fold(&scores, &trial);
    opening.iter().for_each(|opening| fold.open(opening));
    chunks.iter().for_each(|chunk| fold.add(chunk));
    Ok(at.finish(fold, &trial, pool).0)
}

/// Runs repeat `repeat`, from 0.
pub fn run_repeat(
    study: &Study,
    repeat: usize,
    pool: &ThreadPool,
    cancel: &AtomicBool,
    watch: &mut dyn Watch,
) -> Result<Repeat> {
    let at = Round { study, round: repeat, repeat, path: None };
    Ok(at.run(Machine { pool, cancel }, watch)?.0)
}

/// Draws are all that it wants.
impl<F: FnMut(Sample) -> Result<()>> Watch for F {
    fn draw(&mut self, _round: usize, draw: &Sample) -> Result<()> {
        self(draw.clone())
    }
}

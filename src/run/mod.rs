//! A run: rounds (repeats, or settings of a path) of chunks of draws, folded in order. Threads make draws, [`ordered`] puts them
//! in order, a chunk closes, its sums are folded: no bit of a report depends on threads. What is made is kept ([`Keeper`]), and
//! what is kept ([`Kept`]) is not made again. There is no terminal here: whoever wants to see the draws come gives a [`Watch`].
//!
//! [`ordered`]: crate::ordered

mod chunk;
mod files;
mod fold;
mod identity;
mod keeper;
mod kept;
mod round;
mod sums;
mod trail;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use rayon::ThreadPool;

pub use chunk::{CHUNK, Chunk, Closing, Kind, Opening};
pub use files::Options;
pub use fold::Fold;
pub use identity::{
    Resumed, identity, most_shards, not_extendable, resume, simd_class, spans, written_identity,
};
pub use keeper::{Keeper, Live};
pub use kept::{Kept, State};
pub use round::chunk_length;
use round::{Round, Session};
pub use sums::{Scores, Sums};
use trail::Trail;

use crate::bootstrap::Minima;
use crate::error::{Error, Result};
use crate::method::{Findings, Job, Machine, Made, Sink, Trial};
use crate::path::PathPoint;
use crate::report::{PathReport, Repeat, Report};
use crate::samples::{Grouping, Relation, Sample};
use crate::study::Study;

/// Sees a run go by. Rounds are counted from 0.
pub trait Watch {
    /// A round begins, and what had to be fitted for it is.
    fn opening(&mut self, _opening: &Opening) -> Result<()> {
        Ok(())
    }

    /// A draw that will be written, as soon as it and all before it are there.
    fn draw(&mut self, _round: usize, _draw: &Sample) -> Result<()> {
        Ok(())
    }

    /// A chunk is made.
    fn chunk(&mut self, _chunk: &Chunk) -> Result<()> {
        Ok(())
    }

    /// A setting of a path is done.
    fn points(&mut self, _round: usize, _value: &str, _points: &[PathPoint]) -> Result<()> {
        Ok(())
    }

    /// So many more of `sampler.B` are there, written or not.
    fn progress(&mut self, _more: u64) {}
}

/// All rounds of a study, to be run.
pub struct Run<'a> {
    study: &'a Study,
    machine: Machine<'a>,
    /// Those of the model among them, which come first.
    parameters: usize,
    /// Names of all entries of a draw.
    pub names: Vec<String>,
    /// What the draws will be to each other.
    pub relation: Relation,
    settings: Mutex<BTreeMap<usize, Arc<Study>>>,
}

impl<'a> Run<'a> {
    pub fn new(study: &'a Study, pool: &'a ThreadPool, cancel: &'a AtomicBool) -> Result<Run<'a>> {
        // Of a path the experiment as it stands is not run.
        let first = if study.experiment.path.is_some() { study.take_trial(0) } else { study.trial(0) }?;
        let (names, relation) = (study.parameters(&first), first.relation);
        let (settings, parameters) = (Mutex::default(), first.model.names().len());
        Ok(Run { study, machine: Machine { pool, cancel }, parameters, names, relation, settings })
    }

    /// Which rounds are those of which group, where there are groups.
    pub fn grouping(&self) -> Option<Grouping> {
        self.study.grouping()
    }

    /// Runs all rounds, but for what is kept of them.
    pub fn all(&self, keeper: &Keeper, kept: &mut Kept, watch: &mut dyn Watch) -> Result<Report> {
        let (study, experiment) = (self.study, &self.study.experiment);
        let values = study.settings();
        let mut session = self.session(keeper, kept, watch);
        let mut repeats = Vec::new();
        for round in 0..study.rounds() {
            let draws = study.draws_of(round);
            session.trail.turn(study.setting_of(round).0);
            let (done, points) = match round::replay(&mut session, round, draws)? {
                Some(done) => done,
                None => {
                    let made = self.round(round, |at| at.run(&mut session, 0..draws))?;
                    made.expect("all draws of a round have something to say")
                }
            };
            // Of folds, the first has the points.
            if let Some(value) = values.get(round) {
                session.watch.points(round, &value.to_string(), &points)?;
            }
            repeats.push(done);
        }
        let report = Report::new(&experiment.name, experiment.method.name(), study.label(), repeats);
        let folds = experiment.evaluate.folds.map(|folds| folds.get());
        let report = report.of_draws(self.relation).of_data(study.file_notes()).of_folds(folds);
        let report = report.of_groups(study.by(), &study.groups());
        Ok(match &experiment.path {
            Some(path) => report.of_path(PathReport {
                parameter: path.parameter.clone(),
                values: values.iter().map(ToString::to_string).collect(),
            }),
            None => report,
        })
    }

    /// Makes some draws of some rounds, to be joined with others later.
    pub fn some(
        &self,
        spans: &[(usize, Range<u64>)],
        keeper: &Keeper,
        kept: &mut Kept,
        watch: &mut dyn Watch,
    ) -> Result<()> {
        let mut session = self.session(keeper, kept, watch);
        for (round, span) in spans {
            session.trail.turn(self.study.setting_of(*round).0);
            if self.is_there(&mut session, *round, span)? {
                session.watch.progress(span.end - span.start);
                session.recall(*round, span)?;
            } else if span.start == 0 {
                self.round(*round, |at| at.run(&mut session, span.clone()))?;
            } else {
                self.round(*round, |at| at.run_detached(&mut session, span.clone()))?;
            }
        }
        keeper.write().map(|_| ())
    }

    fn session<'s>(
        &'s self,
        keeper: &'s Keeper,
        kept: &'s mut Kept,
        watch: &'s mut dyn Watch,
    ) -> Session<'s> {
        Session { machine: self.machine, keeper, kept, watch, trail: self.trail() }
    }

    fn trail(&self) -> Trail {
        Trail::new(self.study.is_warm().then_some(self.parameters))
    }

    /// Whether these draws of a round are kept, and all that is to be said of it if they are all of them.
    fn is_there(&self, session: &mut Session, round: usize, span: &Range<u64>) -> Result<bool> {
        let (draws, length) = (self.study.draws_of(round), chunk_length(self.relation.draws));
        let whole = session.kept.missing(round, draws, span, length).is_empty();
        Ok(whole && (*span != (0..draws) || session.kept.closing(round, draws)?.is_some()))
    }

    /// Builds a round.
    fn round<T>(&self, round: usize, go: impl FnOnce(&Round) -> Result<T>) -> Result<T> {
        if self.machine.cancel.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        let (study, path) = (self.study, self.study.experiment.path.as_ref());
        match path {
            None => go(&Round { study, round, repeat: round, path: None }),
            Some(_) => {
                let (setting, repeat) = study.setting_of(round);
                go(&Round { study: &*self.setting(setting)?, round, repeat, path })
            }
        }
    }

    /// A setting of the path. It is come back to for every fold, and kept where it shares its data with the others.
    fn setting(&self, t: usize) -> Result<Arc<Study>> {
        let (experiment, mut made) =
            (&self.study.experiment, self.settings.lock().expect("nothing panics while it is held"));
        if let Some(found) = made.get(&t) {
            return Ok(found.clone());
        }
        let setting = Arc::new(self.study.setting(t)?);
        let alike = experiment.path.as_ref().is_some_and(|path| !path.parameter.starts_with("data."));
        if alike && experiment.folds() > 1 {
            made.insert(t, setting.clone());
        }
        Ok(setting)
    }

    /// Some draws of some rounds once more, whatever is kept of them, as rows of the table; of chains, whole ones. Where settings
    /// follow each other, those that come before are made again, too.
    pub fn again(&self, wanted: &BTreeMap<usize, Vec<Range<u64>>>) -> Result<BTreeMap<usize, Vec<Sample>>> {
        let mut trail = self.trail();
        let mut found = BTreeMap::new();
        for round in 0..self.study.rounds() {
            trail.turn(self.study.setting_of(round).0);
            let ranges = if trail.is_idle() {
                wanted.get(&round).cloned().unwrap_or_default()
            } else {
                self.needed(round, wanted)
            };
            if ranges.is_empty() {
                continue;
            }
            let rows = self.round(round, |at| {
                let trial = at.study.trial(at.repeat)?;
                rows_of(at.study, &trial, &ranges, trail.halves().0, self.machine).map(|(rows, _)| rows)
            })?;
            rows.iter().for_each(|row| trail.made.add(row));
            if wanted.contains_key(&round) {
                found.insert(round, rows);
            }
        }
        Ok(found)
    }

    /// Where the search of a draw of a round begins, where settings follow each other: its minimum at the setting before.
    pub fn before(&self, round: usize, draw: u64) -> Result<Option<Minima>> {
        if self.trail().is_idle() || self.study.setting_of(round).0 == 0 {
            return Ok(None);
        }
        let mut trail = self.trail();
        let wanted = BTreeMap::from([(round - 1, std::iter::once(draw..draw + 1).collect())]);
        self.again(&wanted)?.values().flatten().for_each(|row| trail.made.add(row));
        trail.turn(1);
        Ok(Some(trail.into_before()))
    }

    /// Draws that are wanted of this setting or one that follows it in the same fold, each once.
    fn needed(&self, round: usize, wanted: &BTreeMap<usize, Vec<Range<u64>>>) -> Vec<Range<u64>> {
        let fold = |round: usize| self.study.setting_of(round).1;
        let later = wanted.range(round..).filter(|(later, _)| fold(**later) == fold(round));
        let draws: BTreeSet<u64> = later.flat_map(|(_, ranges)| ranges.iter().cloned().flatten()).collect();
        draws.into_iter().map(|draw| draw..draw + 1).collect()
    }
}

/// These draws of a repeat as rows of the table, and what was found before the first; of chains, whole ones. Nothing is kept. On a
/// path whose settings follow each other, `before` are those of the setting before.
pub fn rows_of(
    study: &Study,
    trial: &Trial,
    ranges: &[Range<u64>],
    before: Option<&Minima>,
    machine: Machine,
) -> Result<(Vec<Sample>, Option<Findings>)> {
    let mut made = Collected::default();
    ranges.iter().try_for_each(|range| {
        let known = made.findings.clone();
        trial.run(&mut Job {
            experiment: &study.experiment,
            trial,
            range: range.clone(),
            known: known.as_ref(),
            before,
            largest: f64::NEG_INFINITY,
            test: None,
            machine,
            sink: &mut made,
        })
    })?;
    made.rows.iter_mut().for_each(|row| study.extend(row));
    Ok((made.rows, made.findings))
}

/// Collects rows.
#[derive(Default)]
struct Collected {
    findings: Option<Findings>,
    rows: Vec<Sample>,
}

impl Sink for Collected {
    fn open(&mut self, findings: Findings) -> Result<()> {
        self.findings = Some(findings);
        Ok(())
    }

    fn put(&mut self, made: Made) -> Result<()> {
        self.rows.extend(made.into_sample());
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
    Round { study, round: repeat, repeat, path: None }.folded(opening, chunks, pool)
}

/// Runs repeat `repeat`, from 0, and keeps nothing.
pub fn run_repeat(
    study: &Study,
    repeat: usize,
    pool: &ThreadPool,
    cancel: &AtomicBool,
    watch: &mut dyn Watch,
) -> Result<Repeat> {
    let at = Round { study, round: repeat, repeat, path: None };
    let (keeper, mut kept) = (Keeper::default(), Kept::default());
    let (machine, trail) = (Machine { pool, cancel }, Trail::default());
    let mut session = Session { machine, keeper: &keeper, kept: &mut kept, watch, trail };
    let done = at.run(&mut session, 0..study.draws() as u64)?;
    Ok(done.expect("all draws of a round have something to say").0)
}

/// Draws are all that it wants.
impl<F: FnMut(Sample) -> Result<()>> Watch for F {
    fn draw(&mut self, _round: usize, draw: &Sample) -> Result<()> {
        self(draw.clone())
    }
}

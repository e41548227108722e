//! One round of a run: what there is of it already, and the draws that are missing.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use rayon::ThreadPool;

use super::trail::{Taker, Trail};
use super::{CHUNK, Chunk, Closing, Fold, Keeper, Kept, Live, Opening, Scores, Watch};
use crate::config::printable;
use crate::error::{Error, Result};
use crate::experiment::PathConfig;
use crate::influence::{carried, influence};
use crate::method::{Findings, Job, Machine, Made, Sink, Trial};
use crate::path::PathPoint;
use crate::report::{Diagnostics, FEW, Influences, Observations, Repeat};
use crate::samples::{Kinship, Sample};
use crate::study::Study;

/// One round of a run.
#[derive(Clone, Copy)]
pub struct Round<'a> {
    /// Of a path, that of the setting.
    pub study: &'a Study,
    /// Which of the rounds, and which repeat of the study it is; counted from 0.
    pub round: usize,
    pub repeat: usize,
    pub path: Option<&'a PathConfig>,
}

/// The minimum at equal weights by names, and how much every row moves each parameter.
type Moved = (BTreeMap<String, f64>, Influences);

/// What rounds share.
pub struct Session<'a> {
    pub machine: Machine<'a>,
    pub keeper: &'a Keeper,
    pub kept: &'a mut Kept,
    pub watch: &'a mut dyn Watch,
    /// What settings of a path leave to each other.
    pub trail: Trail,
}

impl Session<'_> {
    /// Draws `span` of a round, all of which are kept, are passed on to the setting that follows.
    pub fn recall(&mut self, round: usize, span: &Range<u64>) -> Result<()> {
        let Session { kept, trail, .. } = self;
        if trail.is_idle() {
            return Ok(());
        }
        kept.each(round, span, &mut |row| trail.made.add(row))
    }
}

/// Draws of a chunk, by what they are to each other.
pub fn chunk_length(draws: Kinship) -> u64 {
    match draws {
        Kinship::Chains { each, .. } => each as u64,
        Kinship::Independent | Kinship::Weighted => CHUNK,
    }
}

/// A round of so many draws that was done before: its rows go by again, and nothing is built.
pub fn replay(session: &mut Session, round: usize, draws: u64) -> Result<Option<(Repeat, Vec<PathPoint>)>> {
    let Some(Closing { report, points }) = session.kept.closing(round, draws)? else { return Ok(None) };
    let opening = session.kept.opening(round)?;
    let Session { watch, trail, .. } = session;
    let state = session.kept.state(round, draws, &mut |row| {
        trail.made.add(row);
        watch.draw(round, row)
    })?;
    watch.progress(draws);
    if let Some((folded, open)) = state {
        let none = open.sums.clone();
        let live = Live { none, folded, open, detached: false, of_chains: false };
        session.keeper.closed(&live, opening.as_ref())?;
    }
    Ok(Some((report, points)))
}

impl Round<'_> {
    /// Draws `span` of the round, from its first on: those that are kept, and then those that are not. What it has to say, if
    /// these are all.
    pub fn run(&self, session: &mut Session, span: Range<u64>) -> Result<Option<(Repeat, Vec<PathPoint>)>> {
        let trial = self.study.take_trial(self.repeat)?;
        let started = Instant::now();
        let draws = self.study.draws() as u64;
        let scores = Scores::new(&self.study.experiment.evaluate, draws, &trial);
        let mut fold = self.fold(&trial);
        let mut opening = session.kept.opening(self.round)?;
        let known = opening.as_ref().map(|opening| &opening.findings);
        let (found, influence) = self.influence(&trial, session.machine, known)?.unzip();
        let Session { watch, trail, .. } = session;
        let state = session.kept.state(self.round, span.end, &mut |row| {
            fold.add(row);
            trail.made.add(row);
            watch.draw(self.round, row)
        })?;
        let none = scores.none();
        let (folded, open) = state.unwrap_or_else(|| (none.clone(), self.empty(&scores, 0)));
        session.watch.progress(open.draws.end);
        let length = chunk_length(trial.relation.draws);
        session.keeper.begin(self.live(&trial, (folded, open), none));
        loop {
            let Range { start, end: at } = session.keeper.live(|live| live.open.draws.clone());
            if at >= span.end {
                break;
            }
            if start == at && self.take_chunk(session, &scores, &mut fold, at, length)? {
                continue;
            }
            let end =
                session.kept.next_chunk(self.round, at).map_or(span.end, |next| next.start.min(span.end));
            self.make(session, &trial, &scores, Some(&mut fold), at..end, &mut opening)?;
        }
        let live = session.keeper.end();
        if span.end < draws {
            return Ok(None);
        }
        let mut sums = live.folded.clone();
        if !live.open.draws.is_empty() {
            session.watch.chunk(&live.open)?;
            sums.fold(&live.open.sums);
        }
        if sums.weighs_nothing() {
            let message = "no draw from the proposal has any weight: it misses the posterior";
            return Err(Error::Failed(message.into()));
        }
        let findings = opening.as_ref().map(|opening| opening.findings.clone()).unwrap_or_default();
        let near_zero = self.path.map_or(0.0, |path| path.near_zero.get());
        let facts = self.facts(&trial);
        let (done, points) =
            session.machine.pool.install(|| fold.finish(&scores, &sums, findings.clone(), facts, near_zero));
        let pointwise = self.pointwise(&scores, &sums);
        let seconds = started.elapsed().as_secs_f64();
        let estimate = match found {
            Some(found) => found,
            None => self.estimate(&trial, session.machine, Some(&findings)).unwrap_or_default(),
        };
        let influence = influence.unwrap_or_default();
        let report = Repeat { seconds, pointwise, estimate, influence, ..done };
        let closing = Closing { report, points };
        session.keeper.close(&closing, &live, opening.as_ref())?;
        Ok(Some((closing.report, closing.points)))
    }

    /// Draws `span` of the round, which begins without those before them: chunks are kept by themselves.
    pub fn run_detached(&self, session: &mut Session, span: Range<u64>) -> Result<()> {
        let trial = self.study.take_trial(self.repeat)?;
        let draws = self.study.draws() as u64;
        let scores = Scores::new(&self.study.experiment.evaluate, draws, &trial);
        let mut opening = session.kept.opening(self.round)?;
        let length = chunk_length(trial.relation.draws);
        let mut at = span.start;
        while at < span.end {
            let whole = (at + length).min(draws);
            let found = session.kept.chunk(self.round, at)?;
            let rows = found.iter().flat_map(|chunk| &chunk.rows);
            rows.for_each(|row| session.trail.made.add(row));
            session.watch.progress(found.as_ref().map_or(0, |chunk| chunk.draws.end - at));
            let open = match found {
                Some(chunk) if chunk.draws.end == whole => {
                    at = whole;
                    continue;
                }
                Some(chunk) => chunk,
                None => self.empty(&scores, at),
            };
            let next = session.kept.next_chunk(self.round, at + 1);
            let (from, end) = (open.draws.end, next.map_or(span.end, |next| next.start.min(span.end)));
            let none = scores.none();
            let live = self.live(&trial, (none.clone(), open), none);
            session.keeper.begin(Live { detached: true, ..live });
            self.make(session, &trial, &scores, None, from..end, &mut opening)?;
            session.keeper.end();
            at = end;
        }
        Ok(())
    }

    fn live(&self, trial: &Trial, (folded, open): super::State, none: super::Sums) -> Live {
        let of_chains = matches!(trial.relation.draws, Kinship::Chains { .. });
        Live { none, folded, open, detached: false, of_chains }
    }

    fn empty(&self, scores: &Scores, at: u64) -> Chunk {
        Chunk { round: self.round, draws: at..at, rows: Vec::new(), sums: scores.none() }
    }

    /// Folds the chunk of this length that begins at `at`, if it is kept; whether it was.
    fn take_chunk(
        &self,
        session: &mut Session,
        scores: &Scores,
        fold: &mut Fold,
        at: u64,
        length: u64,
    ) -> Result<bool> {
        let end = (at + length).min(self.study.draws() as u64);
        let Some(chunk) = session.kept.chunk(self.round, at)?.filter(|chunk| chunk.draws.end == end) else {
            return Ok(false);
        };
        let largest = session.keeper.live(|live| live.folded.largest());
        let chunk = scores.filtered(chunk, largest);
        for row in &chunk.rows {
            fold.add(row);
            session.trail.made.add(row);
            session.watch.draw(self.round, row)?;
        }
        session.watch.progress(end - at);
        session.keeper.take(chunk, end.is_multiple_of(length));
        Ok(true)
    }

    /// Makes draws.
    fn make(
        &self,
        session: &mut Session,
        trial: &Trial,
        scores: &Scores,
        fold: Option<&mut Fold>,
        range: Range<u64>,
        opening: &mut Option<Opening>,
    ) -> Result<()> {
        let (machine, keeper) = (session.machine, session.keeper);
        let known = opening.as_ref().map(|opening| opening.findings.clone());
        let largest = keeper.live(|live| live.folded.largest().max(live.open.sums.largest()));
        let length = chunk_length(trial.relation.draws);
        let draws = self.study.draws() as u64;
        let (before, trail) = session.trail.halves();
        let mut sink = Making {
            study: self.study,
            round: self.round,
            scores,
            fold,
            keeper,
            length,
            draws,
            opening,
            trail,
            watch: session.watch,
        };
        trial.run(&mut Job {
            experiment: &self.study.experiment,
            trial,
            range,
            known: known.as_ref(),
            before,
            largest,
            test: scores.test,
            machine,
            sink: &mut sink,
        })
    }

    pub fn fold(&self, trial: &Trial) -> Fold {
        Fold::new(trial, self.study.parameters(trial), self.path.is_some())
    }

    /// The report of the round by its chunks, all of them and in their order.
    pub fn folded(&self, opening: Option<&Opening>, chunks: &[Chunk], pool: &ThreadPool) -> Result<Repeat> {
        let trial = self.study.trial(self.repeat)?;
        let scores = Scores::new(&self.study.experiment.evaluate, self.study.draws() as u64, &trial);
        let (mut fold, mut sums) = (self.fold(&trial), scores.none());
        for chunk in chunks {
            chunk.rows.iter().for_each(|row| fold.add(row));
            sums.fold(&chunk.sums);
        }
        let findings = opening.map(|opening| opening.findings.clone()).unwrap_or_default();
        let facts = self.facts(&trial);
        let machine = Machine { pool, cancel: &AtomicBool::new(false) };
        let estimate = self.estimate(&trial, machine, Some(&findings)).unwrap_or_default();
        let done = pool.install(|| fold.finish(&scores, &sums, findings, facts, 0.0)).0;
        Ok(Repeat { pointwise: self.pointwise(&scores, &sums), estimate, ..done })
    }

    /// The minimum at equal weights, by names; settings of a path have none.
    fn estimate(
        &self,
        trial: &Trial,
        machine: Machine,
        known: Option<&Findings>,
    ) -> Option<BTreeMap<String, f64>> {
        if self.path.is_some() {
            return None;
        }
        trial.estimate(machine, known).map(|minimum| self.named(trial, minimum.theta))
    }

    fn named(&self, trial: &Trial, mut theta: Vec<f64>) -> BTreeMap<String, f64> {
        self.study.extend_parameters(&mut theta);
        let known = self.study.parameters(trial).into_iter().zip(theta);
        known.filter(|(_, value)| value.is_finite()).collect()
    }

    /// The same, and how much every training row moves it, if that is to be kept: of the first repeat, of every group.
    fn influence(&self, trial: &Trial, machine: Machine, known: Option<&Findings>) -> Result<Option<Moved>> {
        let (group, repeat) = self.study.place(self.round);
        if !self.study.experiment.output.influence || repeat > 0 {
            return Ok(None);
        }
        let of_group = group.map_or(String::new(), |name| format!("group \"{}\": ", printable(name)));
        let failed = |why: &str| Error::input(format!("`output.influence`: {of_group}{why}"));
        let minimum =
            trial.estimate(machine, known).ok_or_else(|| failed("there is no minimum at equal weights"))?;
        let found = machine.pool.install(|| influence(trial.model.as_ref(), &trial.train, &minimum.theta));
        let found = found.ok_or_else(|| {
            failed("the loss has no single smooth minimum at equal weights: its second derivatives are not positive definite there")
        })?;
        let found = carried(&found, &minimum.theta, |theta| self.study.extend_parameters(theta));
        let influences = Influences::new(&trial.train.design, self.study.parameters(trial), &found);
        Ok(Some((self.named(trial, minimum.theta), influences)))
    }

    /// The log predictive density of every test row, if it is to be kept.
    fn pointwise(&self, scores: &Scores, sums: &super::Sums) -> Vec<f64> {
        if self.study.experiment.output.pointwise { scores.pointwise(sums) } else { Vec::new() }
    }

    fn observations(&self, trial: &Trial, bootstrap: bool) -> Observations {
        let mut found = Observations::of(&trial.train, bootstrap);
        let parameters = trial.model.names().len();
        let few = found.free_weights.is_some_and(|free| free + 1 < FEW * parameters);
        // A loss that data may leave without a minimum has nothing but them to hold its parameters.
        let alone = || !self.study.experiment.is_penalised() && trial.model.flaws(&trial.train).is_some();
        found.many_parameters = (few && alone()).then_some(parameters);
        found
    }

    /// What is known before the first draw.
    fn facts(&self, trial: &Trial) -> Repeat {
        let bootstrap = self.study.experiment.method.is_bootstrap() && trial.prior.alpha() == 0.0;
        let (group, repeat) = match self.path {
            Some(_) => (None, self.round),
            None => self.study.place(self.round),
        };
        Repeat {
            group: group.map(str::to_owned),
            repeat: repeat + 1,
            seed: trial.seed.0,
            n_train: trial.train.rows_before(),
            n_test: trial.test.as_ref().map_or(0, |t| t.n()),
            draws: self.study.draws(),
            seconds: 0.0,
            lppd: None,
            mse: None,
            accuracy: None,
            sparsity: None,
            auc: None,
            log_loss: None,
            diagnostics: Diagnostics::default(),
            observations: Some(self.observations(trial, bootstrap)),
            by_restarts: Vec::new(),
            elbo: Vec::new(),
            pointwise: Vec::new(),
            estimate: BTreeMap::new(),
            influence: Influences::default(),
        }
    }
}

/// Cuts the stream of draws into chunks.
struct Making<'a> {
    study: &'a Study,
    round: usize,
    scores: &'a Scores<'a>,
    /// Of draws that all before are there of.
    fold: Option<&'a mut Fold>,
    keeper: &'a Keeper,
    /// Draws of a chunk, and of the round.
    length: u64,
    draws: u64,
    opening: &'a mut Option<Opening>,
    trail: &'a mut Taker,
    watch: &'a mut dyn Watch,
}

impl Making<'_> {
    fn show(&mut self, sample: &Sample) -> Result<()> {
        match &mut self.fold {
            Some(fold) => {
                fold.add(sample);
                self.watch.draw(self.round, sample)
            }
            None => Ok(()),
        }
    }
}

impl Sink for Making<'_> {
    fn open(&mut self, findings: Findings) -> Result<()> {
        let opening = Opening { round: self.round, findings };
        self.keeper.opening(&opening);
        self.watch.opening(&opening)?;
        *self.opening = Some(opening);
        Ok(())
    }

    fn put(&mut self, made: Made) -> Result<()> {
        let index = made.index();
        if self.keeper.live(|live| live.open.draws.end) != index {
            // Only chains end early, and then all do.
            self.keeper.jump(index);
            self.fold = None;
        }
        let (scores, study) = (self.scores, self.study);
        // The last chunk of a round, if it is shorter, stays open: a longer run goes on with it.
        let last = self.fold.is_none() && index + 1 == self.draws;
        let closes = (index + 1).is_multiple_of(self.length) || last;
        let add = |open: &mut Chunk| {
            scores.add(&made, &mut open.sums);
            open.draws.end = index + 1;
            let mut sample = made.into_sample();
            sample.iter_mut().for_each(|sample| study.extend(sample));
            open.rows.extend(sample.clone());
            sample
        };
        let (sample, closed) = self.keeper.add(add, closes);
        sample.iter().for_each(|sample| self.trail.add(sample));
        sample.iter().try_for_each(|sample| self.show(sample))?;
        self.watch.progress(1);
        closed.iter().try_for_each(|chunk| self.watch.chunk(chunk))?;
        self.keeper.write_if_due()
    }
}

//! How often intervals cover: the experiment on many data sets of which the truth is known. A data set is a repeat of the study,
//! with its own seed, so that `npl run` can make any of them again; what is kept of it is an [`Outcome`], and no result depends
//! on who made it, or when.

mod archive;
mod files;
mod lines;
mod truth;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

use ndarray::ArrayView1;
use rayon::{ThreadPool, ThreadPoolBuilder};

pub use archive::Archive;
pub use lines::{Coverage, Line, Settings};
use truth::units;
pub use truth::{Truth, Wanted};

use crate::bytes::bytes;
use crate::error::{Error, Result};
use crate::influence::{acceleration, carried, influence};
use crate::math::{mean, sd};
use crate::method::{Findings, Machine, Trial};
use crate::optim::Minimum;
use crate::run::rows_of;
use crate::samples::{Correction, Interval, Kinship, LOG_WEIGHT, Units, intervals, uncorrectable};
use crate::study::Study;

/// What is asked of every data set.
pub struct Plan<'a> {
    pub study: &'a Study,
    /// Intervals of these kinds and probabilities.
    pub asked: Vec<(Interval, f64)>,
    pub truth: Truth,
    /// Where the parameters whose truth is known stand in a draw.
    places: Vec<usize>,
    corrected: Option<Corrected>,
}

/// What corrected intervals need to know of every data set.
#[derive(Clone, Copy, PartialEq)]
enum Corrected {
    /// The estimate at equal weights.
    Only,
    /// And how much every row moves it.
    AndAccelerated,
}

impl Corrected {
    fn of(asked: &[(Interval, f64)]) -> Option<Corrected> {
        let is = |wanted: Interval| asked.iter().any(|(kind, _)| *kind == wanted);
        match (is(Interval::Bca), is(Interval::Bc)) {
            (true, _) => Some(Corrected::AndAccelerated),
            (false, true) => Some(Corrected::Only),
            (false, false) => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Corrected::Only => "bc",
            Corrected::AndAccelerated => "bca",
        }
    }
}

const NOT_SMOOTH: &str = "the loss has no single smooth minimum at equal weights: its second derivatives are not positive definite there";

/// Whether the loss has a minimum at equal weights that is not smooth.
fn lacks_influence(trial: &Trial) -> Result<bool> {
    let pool = ThreadPoolBuilder::new().num_threads(1).build();
    let pool = pool.map_err(|e| Error::Failed(format!("cannot start a thread: {e}")))?;
    let machine = Machine { pool: &pool, cancel: &AtomicBool::new(false) };
    let minimum = trial.estimate(machine, None);
    let missing = |minimum: Minimum| influence(trial.model.as_ref(), &trial.train, &minimum.theta).is_none();
    Ok(minimum.is_some_and(|minimum| pool.install(|| missing(minimum))))
}

/// What came of one data set.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Posterior means and standard deviations.
    pub mean: Vec<f64>,
    pub sd: Vec<f64>,
    /// Both ends of all parameters, for each interval that was asked for.
    pub ends: Vec<Vec<(f64, f64)>>,
    /// Draws that are none.
    pub lost: usize,
    /// A variational fit that did not converge.
    pub open: bool,
    /// Why there is nothing else, if so.
    pub fault: Option<String>,
}

bytes!(Outcome { mean, sd, ends, lost, open, fault });

impl<'a> Plan<'a> {
    /// Refuses studies whose data sets have no truth in common.
    pub fn new(
        study: &'a Study,
        asked: Vec<(Interval, f64)>,
        truth: Truth,
        only: impl Fn(&str) -> bool,
    ) -> Result<Plan<'a>> {
        let first = study.trial(0)?;
        if first.relation.components.is_some_and(|components| components.count() > 1) {
            let message = "coverage is counted by parameter, and the components of a mixture have no names that data sets \
                           share: any order of them fits as well; ask for a quantity that knows no order, such as a quantile \
                           of the data";
            return Err(Error::input(message));
        }
        if first.relation.draws == Kinship::Weighted
            && asked.iter().any(|(kind, _)| *kind == Interval::Simultaneous)
        {
            return Err(Error::input("simultaneous intervals are for draws that all count alike"));
        }
        let corrected = Corrected::of(&asked);
        let refuse = |why: &str| {
            let name = corrected.map_or("", Corrected::name);
            Err(Error::input(format!("--interval {name}: {why}")))
        };
        if corrected.is_some() {
            let method = study.experiment.method.name();
            if let Some(why) = uncorrectable(method, first.prior.alpha(), &first.relation) {
                return refuse(why);
            }
        }
        if corrected == Some(Corrected::AndAccelerated) {
            if study.experiment.model.is_staged() {
                return refuse(
                    "it needs to know how much each row moves the minimum, and stages have one each, of which the later move with \
                     the earlier; ask for bc",
                );
            }
            if study.flaws(&first).is_empty() && lacks_influence(&first)? {
                return refuse(NOT_SMOOTH);
            }
        }
        let names = study.parameters(&first);
        let place = |name: &String| names.iter().position(|n| n == name);
        let mut chosen = Truth { values: Vec::new(), ..truth.clone() };
        let mut places = Vec::new();
        for (name, value) in truth.values.into_iter().filter(|(name, _)| only(name)) {
            places.extend(place(&name));
            chosen.values.push((name, value));
        }
        if places.is_empty() {
            return Err(Error::input("no parameter is left whose true value is known"));
        }
        Ok(Plan { study, asked, truth: chosen, places, corrected })
    }

    /// What intervals of this data set are corrected by, for each parameter; or why there is nothing.
    fn corrections(
        &self,
        trial: &Trial,
        findings: Option<&Findings>,
        units: Option<&Units>,
        machine: Machine,
    ) -> std::result::Result<Vec<Correction>, String> {
        let Some(corrected) = self.corrected else { return Ok(Vec::new()) };
        let minimum = trial.estimate(machine, findings).ok_or("no minimum at equal weights was found")?;
        let mut theta = minimum.theta.clone();
        units.iter().for_each(|units| units.apply(0, &mut theta));
        let accelerations = match corrected {
            Corrected::Only => None,
            Corrected::AndAccelerated => {
                let found =
                    machine.pool.install(|| influence(trial.model.as_ref(), &trial.train, &minimum.theta));
                let mut found = found.ok_or(NOT_SMOOTH)?;
                for mut row in found.outer_iter_mut() {
                    let row = row.as_slice_mut().expect("rows of a matrix are whole");
                    units.iter().for_each(|units| units.carry(0, &theta, row));
                }
                let all = carried(&found, &theta, |theta| self.study.extend_parameters(theta));
                let of = |column: ArrayView1<f64>| acceleration(&column.to_vec(), &trial.train.design);
                Some(all.columns().into_iter().map(of).collect::<Vec<f64>>())
            }
        };
        self.study.extend_parameters(&mut theta);
        let of = |&j: &usize| Correction {
            estimate: theta[j],
            acceleration: accelerations.as_ref().map_or(0.0, |known| known[j]),
        };
        Ok(self.places.iter().map(of).collect())
    }

    /// The experiment on data set `i`, counted from 0.
    fn outcome(&self, i: usize, pool: &ThreadPool, cancel: &AtomicBool) -> Result<Outcome> {
        let nothing = |why: String| Outcome {
            mean: Vec::new(),
            sd: Vec::new(),
            ends: Vec::new(),
            lost: 0,
            open: false,
            fault: Some(why),
        };
        let tried = self.try_outcome(i, pool, cancel);
        match tried {
            // What a data set has that the first had not, a response of one class only, is its own fault.
            Err(Error::Input(_) | Error::Config(_) | Error::Failed(_)) => {
                Ok(nothing(tried.expect_err("an error").to_string()))
            }
            other => other.map(|outcome| outcome.unwrap_or_else(nothing)),
        }
    }

    fn try_outcome(
        &self,
        i: usize,
        pool: &ThreadPool,
        cancel: &AtomicBool,
    ) -> Result<std::result::Result<Outcome, String>> {
        let trial = self.study.trial(i)?;
        if let Some(flaw) = self.study.flaws(&trial).into_iter().next() {
            return Ok(Err(flaw));
        }
        let all = 0..self.study.draws() as u64;
        let (rows, findings) = rows_of(self.study, &trial, &[all], None, Machine { pool, cancel })?;
        let total = rows.len();
        let mut rows: Vec<_> = rows.into_iter().filter(|row| !row.failed()).collect();
        let own = self.study.inference().parameters(trial.model.as_ref(), &trial.train);
        let units = units(self.study, &own, Some(i))?;
        let machine = Machine { pool, cancel };
        let corrections = match self.corrections(&trial, findings.as_ref(), units.as_ref(), machine) {
            Ok(corrections) => corrections,
            Err(why) => return Ok(Err(why)),
        };
        if let Some(units) = units {
            for row in &mut rows {
                units.apply(0, &mut row.theta);
                row.theta.truncate(own.len());
                self.study.extend(row);
            }
        }
        if rows.len() < 2 {
            return Ok(Err("no draw of it is one".to_owned()));
        }
        let columns: Vec<Vec<f64>> =
            self.places.iter().map(|&j| rows.iter().map(|row| row.theta[j]).collect()).collect();
        let place = match trial.relation.draws {
            Kinship::Weighted => self.study.inference().statistics().iter().position(|s| *s == LOG_WEIGHT),
            _ => None,
        };
        let weights: Option<Vec<f64>> = place.map(|j| rows.iter().map(|row| row.extra[j]).collect());
        let ends = intervals(&columns, weights.as_deref(), &self.asked, &corrections);
        let (mean, sd) = match &weights {
            None => columns.iter().map(|c| moments(c)).unzip(),
            Some(logs) => columns.iter().map(|c| weighted_moments(c, logs)).unzip(),
        };
        let open = findings.and_then(|found| found.advi).is_some_and(|fit| !fit.converged);
        Ok(Ok(Outcome { mean, sd, ends, lost: total - rows.len(), open, fault: None }))
    }

    /// Data sets 0 to `count`, but for those that there are already, by so many threads, each of which has a data set to itself. All of
    /// them in their order; `progress` hears of each that is done.
    pub fn outcomes(
        &self,
        count: usize,
        threads: usize,
        cancel: &AtomicBool,
        archive: &Archive,
        progress: &mut dyn FnMut(usize),
    ) -> Result<Vec<Outcome>> {
        let mut done: BTreeMap<usize, Outcome> = archive.take_kept(count);
        progress(done.len());
        let missing: Vec<usize> = (0..count).filter(|i| !done.contains_key(i)).collect();
        let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        let failed: Mutex<Option<Error>> = Mutex::new(None);
        let fail = |error: Error| {
            stop.store(true, Ordering::Relaxed);
            failed.lock().expect("nothing panics while it is held").get_or_insert(error);
        };
        let (sender, receiver) = mpsc::channel();
        let work = |sender: mpsc::Sender<(usize, Outcome)>| {
            let pool = match ThreadPoolBuilder::new().num_threads(1).build() {
                Ok(pool) => pool,
                Err(e) => return fail(Error::Failed(format!("cannot start a thread: {e}"))),
            };
            while !stop.load(Ordering::Relaxed) && !cancel.load(Ordering::Relaxed) {
                let Some(&i) = missing.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
                match self.outcome(i, &pool, cancel) {
                    Ok(outcome) => drop(sender.send((i, outcome))),
                    // What was cancelled is no outcome.
                    Err(error) => return fail(error),
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..threads.min(missing.len()).max(1) {
                let (sender, work) = (sender.clone(), &work);
                scope.spawn(move || work(sender));
            }
            drop(sender);
            for (i, outcome) in receiver {
                if let Err(error) = archive.put(i, &outcome) {
                    fail(error);
                    break;
                }
                progress(1);
                done.insert(i, outcome);
            }
        });
        if let Some(error) = failed.into_inner().expect("nobody holds it") {
            return Err(error);
        }
        match done.len() == count {
            true => Ok(done.into_values().collect()),
            false => Err(Error::Interrupted),
        }
    }
}

/// Of the draws in which the quantity is a number.
fn moments(values: &[f64]) -> (f64, f64) {
    let known: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    (mean(&known), sd(&known))
}

fn weighted_moments(values: &[f64], logs: &[f64]) -> (f64, f64) {
    let (values, logs): (Vec<f64>, Vec<f64>) =
        values.iter().zip(logs).filter(|(v, _)| v.is_finite()).map(|(v, l)| (*v, *l)).unzip();
    let total = crate::math::log_sum_exp(&logs);
    let weights: Vec<f64> = logs.iter().map(|l| libm::exp(l - total)).collect();
    let mean: f64 = values.iter().zip(&weights).map(|(v, w)| v * w).sum();
    let variance: f64 = values.iter().zip(&weights).map(|(v, w)| w * (v - mean).powi(2)).sum();
    (mean, variance.sqrt())
}

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

use rayon::{ThreadPool, ThreadPoolBuilder};

pub use archive::Archive;
pub use lines::{Coverage, Line, Settings};
use truth::units;
pub use truth::{Truth, Wanted};

use crate::bytes::bytes;
use crate::error::{Error, Result};
use crate::math::{mean, sd};
use crate::method::Machine;
use crate::run::rows_of;
use crate::samples::{Interval, Kinship, LOG_WEIGHT, intervals};
use crate::study::Study;

/// What is asked of every data set.
pub struct Plan<'a> {
    pub study: &'a Study,
    /// Intervals of these kinds and probabilities.
    pub asked: Vec<(Interval, f64)>,
    pub truth: Truth,
    /// Where the parameters whose truth is known stand in a draw.
    places: Vec<usize>,
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
        if asked.iter().any(|(kind, _)| matches!(kind, Interval::Bc | Interval::Bca)) {
            let message = "corrected intervals stand on the estimate at equal weights and on influences, which are not made for every \
                           data set: ask for percentile, hdi or simultaneous";
            return Err(Error::input(message));
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
        Ok(Plan { study, asked, truth: chosen, places })
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
        if let Some(units) = units(self.study, &own, Some(i))? {
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
        let ends = intervals(&columns, weights.as_deref(), &self.asked);
        let (mean, sd) = match &weights {
            None => columns.iter().map(|c| (mean(c), sd(c))).unzip(),
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

fn weighted_moments(values: &[f64], logs: &[f64]) -> (f64, f64) {
    let total = crate::math::log_sum_exp(logs);
    let weights: Vec<f64> = logs.iter().map(|l| libm::exp(l - total)).collect();
    let mean: f64 = values.iter().zip(&weights).map(|(v, w)| v * w).sum();
    let variance: f64 = values.iter().zip(&weights).map(|(v, w)| w * (v - mean).powi(2)).sum();
    (mean, variance.sqrt())
}

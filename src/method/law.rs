//! Draws of the posterior bootstrap by the law of θ itself: no weights, no searches.

use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use super::{Case, Findings, Job, Made, Prepared};
use crate::error::{Error, Result};
use crate::experiment::Experiment;
use crate::model::{Law, Model};
use crate::optim::Status;
use crate::rng::Purpose;
use crate::samples::Sample;

const KEY: &str = "sampler.law";

/// Whether draws are made so.
pub fn is_asked_for(experiment: &Experiment) -> bool {
    experiment.sampler.law == Some(true)
}

/// Writes out whether draws are made so, where the data decide; or why they cannot be.
pub fn write_out(
    experiment: &mut Experiment,
    model: &dyn Model,
) -> std::result::Result<(), (&'static str, String)> {
    if experiment.sampler.law.is_none() && model.prefers_law() {
        experiment.sampler.law = Some(true);
    }
    match model.lawless() {
        Some(why) if is_asked_for(experiment) => Err((KEY, format!("`{KEY}`: {why}"))),
        _ => Ok(()),
    }
}

/// The law of a repeat; the data of one may have none that those of others have.
pub fn prepare(case: &Case) -> Result<Box<dyn Prepared>> {
    match case.model.lawless() {
        Some(why) => Err(case.problem(KEY, format!("`{KEY}`: {why}"))),
        None => Ok(Box::new(ByLaw::default())),
    }
}

#[derive(Default)]
struct ByLaw {
    /// Made for the first draw.
    law: OnceLock<Option<Box<dyn Law>>>,
}

impl Prepared for ByLaw {
    fn run(&self, job: &mut Job) -> Result<()> {
        job.open(&Findings::default())?;
        let trial = job.trial;
        let sorted = || trial.model.law(&trial.train);
        let law =
            self.law.get_or_init(sorted).as_ref().ok_or_else(|| Error::input("the model has no law"))?;
        for index in job.range.clone() {
            if job.machine.cancel.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            let theta = law.draw(&mut trial.seed.stream(Purpose::Law, index, 0));
            // One search that did nothing; there is no objective, and no gradient.
            let (objective, extra) = (f64::NAN, vec![1.0, 1.0, f64::NAN]);
            let sample =
                Sample { index, theta, objective, restart: 1, iterations: 0, status: Status::Ok, extra };
            job.sink.put(Made::Drawn { sample, log_weight: 0.0, densities: None })?;
        }
        Ok(())
    }
}

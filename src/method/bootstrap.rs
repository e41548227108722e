//! What the methods of the posterior bootstrap share: their starts and their draws.

use std::sync::Arc;

use super::{Findings, Job, Made, Prepared, Trial};
use crate::bootstrap::{Draw, Plan, Scheme, posterior_bootstrap};
use crate::config::Count;
use crate::data::Dataset;
use crate::error::Result;
use crate::evaluate::records;
use crate::experiment::{Experiment, FixedInitConfig};
use crate::init::default_dist;
use crate::model::Model;
use crate::optim::descent::Subsample;
use crate::process::Prior;
use crate::rng::Seed;
use crate::samples::{Kinship, Relation};

/// Columns in the table of draws.
pub const STATISTICS: &[&str] = &Draw::STATISTICS;

/// `RR-NPL R=10`, `FI-NPL`, `NPL`.
pub fn label(experiment: &Experiment) -> String {
    let sampler = &experiment.sampler;
    match (&sampler.fixed_init, sampler.restarts) {
        (Some(FixedInitConfig::Advi), _) => "FI-NPL from ADVI".to_owned(),
        (Some(FixedInitConfig::BestOf(_) | FixedInitConfig::File(_) | FixedInitConfig::Run { .. }), _) => {
            "FI-NPL".to_owned()
        }
        (None, Some(restarts)) => format!("RR-NPL R={}", restarts.get()),
        (None, None) => "NPL".to_owned(),
    }
}

/// The label with α where it is not 0.
pub fn with_alpha(label: String, experiment: &Experiment) -> String {
    match &experiment.prior {
        Some(prior) if prior.alpha.get() > 0.0 => format!("{label} alpha={}", prior.alpha.get()),
        _ => label,
    }
}

/// Draws are independent. Restarts find the components of a mixture in any order; from a fixed start they keep theirs.
pub fn relation(experiment: &Experiment, model: &dyn Model) -> Relation {
    let components = model.components();
    let mixture = components.is_some_and(|c| c.count() > 1);
    let exchangeable = mixture && experiment.sampler.fixed_init.is_none();
    Relation { draws: Kinship::Independent, exchangeable, components }
}

/// Whether the table of ADVI is in use.
pub fn uses_advi(experiment: &Experiment) -> bool {
    experiment.sampler.fixed_init == Some(FixedInitConfig::Advi)
}

/// Writes out how searches start.
pub fn write_out(
    experiment: &mut Experiment,
    model: &dyn Model,
) -> std::result::Result<(), (&'static str, String)> {
    if uses_advi(experiment) {
        experiment.advi.get_or_insert_default();
    }
    let advi_begins_at_init = experiment.advi.as_ref().is_some_and(|advi| advi.begin == super::Begin::Init);
    let blocks = model.blocks();
    let sampler = &mut experiment.sampler;
    if blocks.is_empty() {
        if sampler.restarts.is_some_and(|r| r.get() > 1) || sampler.fixed_init.is_some() {
            let key = if sampler.fixed_init.is_some() { "sampler.fixed_init" } else { "sampler.R" };
            let message =
                format!("`{key}` has no use: the minimum of this loss is known in closed form; leave it out");
            return Err((key, message));
        }
    } else if sampler.fixed_init.is_none() {
        sampler.restarts = sampler.restarts.or(Count::new(1));
    }
    let uses_init = match sampler.fixed_init {
        None | Some(FixedInitConfig::BestOf(_)) => true,
        Some(FixedInitConfig::Advi) => advi_begins_at_init,
        Some(_) => false,
    };
    if uses_init {
        for block in &blocks {
            sampler.init.entry(block.name.to_string()).or_insert_with(|| default_dist(block));
        }
    }
    Ok(())
}

/// A repeat that can be sampled.
pub struct ReadyTrial {
    pub seed: Seed,
    pub train: Arc<Dataset>,
    pub test: Option<Arc<Dataset>>,
    pub model: Arc<dyn Model>,
    pub prior: Arc<Prior>,
    pub scheme: Arc<Scheme>,
    pub subsample: Option<Subsample>,
    /// How the fits went that start and centre asked for.
    pub(super) findings: Findings,
}

impl ReadyTrial {
    pub(super) fn of(at: &Trial, prior: Arc<Prior>, scheme: Arc<Scheme>, findings: Findings) -> ReadyTrial {
        let Trial { seed, train, test, model, subsample, .. } = at;
        let (train, test, model) = (train.clone(), test.clone(), model.clone());
        let subsample = subsample.clone();
        ReadyTrial { seed: *seed, train, test, model, prior, scheme, subsample, findings }
    }

    pub fn plan(&self) -> Plan<'_> {
        Plan {
            model: self.model.as_ref(),
            prior: &self.prior,
            data: &self.train,
            scheme: &self.scheme,
            seed: self.seed,
            subsample: self.subsample.as_ref(),
            before: None,
        }
    }

    /// Makes the draws.
    fn run(&self, job: &mut Job) -> Result<()> {
        job.open(&self.findings)?;
        let (model, test) = (self.model.as_ref(), job.test);
        let evaluate = |draw: &Draw| {
            let test = test.filter(|_| !draw.failed())?;
            Some(records(model, draw, test))
        };
        let draws = job.range.clone();
        let (pool, cancel) = (job.machine.pool, job.machine.cancel);
        let plan = Plan { before: job.before, ..self.plan() };
        posterior_bootstrap(&plan, draws, pool, cancel, evaluate, |draw, records| {
            job.sink.put(Made::Found(draw, records))
        })
    }
}

/// Runs a prepared repeat of the bootstrap.
pub fn run(prepared: &dyn Prepared, job: &mut Job) -> Result<()> {
    let ready = prepared.bootstrap(job.trial, job.machine, job.known).expect("a method of the bootstrap")?;
    ready.run(job)
}

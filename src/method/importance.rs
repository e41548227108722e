//! The conventional posterior by self-normalised importance sampling.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Begin, Case, Effort, Inference, Job, Made, Prepared, Say, conventional, log_densities};
use crate::bayes::importance::{Proposal, Weighing, WeightedDraw};
use crate::data::Dataset;
use crate::error::Result;
use crate::evaluate::OnRows;
use crate::experiment::Experiment;
use crate::init::Dist;
use crate::model::Model;
use crate::optim::Status;
use crate::samples::{self, Kinship, Relation, Sample};

/// Self-normalised importance sampling: `sampler.B` draws from a proposal, weighted by posterior over proposal.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The proposal of each block of parameters: `proposal.mu = { normal = [0.0, 5.0] }`.
    pub proposal: BTreeMap<String, Dist>,
}

pub struct Importance;

impl Inference for Importance {
    fn problems(&self, experiment: &Experiment, say: &mut Say) {
        if experiment.path.is_some() {
            let message = "a path summarises draws that count the same, and those of \"importance\" do not";
            say("path", message.into());
        }
        if experiment.importance.is_none() {
            let message =
                "\"importance\" needs a proposal for every block of parameters: [importance.proposal]";
            say("method", message.into());
        }
    }

    fn idle(&self, _experiment: &Experiment) -> Vec<String> {
        conventional::idle(Begin::Uniform)
    }

    fn table(&self) -> Option<&'static str> {
        Some("importance")
    }

    fn statistics(&self) -> &'static [&'static str] {
        &[samples::LOG_WEIGHT]
    }

    fn label(&self, _experiment: &Experiment) -> String {
        "IS".to_owned()
    }

    fn relation(&self, _experiment: &Experiment, model: &dyn Model) -> Relation {
        Relation { draws: Kinship::Weighted, exchangeable: false, components: model.components() }
    }

    fn effort(&self, _experiment: &Experiment) -> Effort {
        Effort::Densities
    }

    fn parameters(&self, model: &dyn Model, train: &Dataset) -> Vec<String> {
        conventional::parameters(model, train)
    }

    fn prepare(&self, case: &Case) -> Result<Box<dyn Prepared>> {
        let Settings { proposal } = case.experiment.importance.clone().unwrap_or_default();
        let proposal = Proposal::new(case.posterior()?.joint().blocks(), &proposal)
            .map_err(|problems| case.problems_below("importance.proposal", "", problems))?;
        Ok(Box::new(Proposed(proposal)))
    }
}

struct Proposed(Proposal);

impl Prepared for Proposed {
    fn run(&self, job: &mut Job) -> Result<()> {
        let (trial, test) = (job.trial, job.test);
        let (model, parameters) = (trial.model.as_ref(), trial.model.names().len());
        let posterior = trial.posterior()?;
        let weighing = Weighing {
            joint: posterior.joint(),
            proposal: &self.0,
            draws: job.range.clone(),
            largest: job.largest,
            seed: trial.seed,
            pool: job.machine.pool,
            cancel: job.machine.cancel,
        };
        weighing.sample(
            |theta| test.map(|test| log_densities(model, parameters, theta, test)),
            |index, log_weight, draw: Option<WeightedDraw<Option<OnRows>>>| {
                let Some(WeightedDraw { theta, log_joint, result: densities }) = draw else {
                    return job.sink.put(Made::Dropped { index, log_weight });
                };
                let sample = Sample {
                    index,
                    theta,
                    objective: -log_joint,
                    restart: 1,
                    iterations: 0,
                    status: Status::Ok,
                    extra: vec![log_weight],
                };
                job.sink.put(Made::Drawn { sample, log_weight, densities })
            },
        )
    }
}

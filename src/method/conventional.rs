//! What the methods of conventional Bayes share.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Case;
use crate::bayes::Posterior;
use crate::data::Dataset;
use crate::error::Result;
use crate::init::Init;
use crate::model::Model;
use crate::process::Prior;

/// Where a chain or a variational fit begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Begin {
    /// Uniform between −2 and 2 on the unconstrained scale, as Stan does.
    #[default]
    Uniform,
    /// A start drawn from `sampler.init`, like those of random restarts.
    Init,
}

/// Keys of the bootstrap, which have no use here.
pub fn idle(begin: Begin) -> Vec<String> {
    let keys = [
        "prior",
        "sampler.R",
        "sampler.init",
        "sampler.fixed_init",
        "sampler.stop",
        "sampler.law",
        "optimiser",
    ];
    let idle = keys.into_iter().filter(|key| begin == Begin::Uniform || *key != "sampler.init");
    idle.map(String::from).collect()
}

/// Names of the model's parameters, and of what its prior adds to them.
pub fn parameters(model: &dyn Model, train: &Dataset) -> Vec<String> {
    model.joint(train).map_or_else(|_| model.names(), |joint| joint.names())
}

impl Case<'_> {
    /// Likelihood times prior of the conventional model.
    pub(super) fn posterior(&self) -> Result<Posterior<'_>> {
        let joint = self.model.joint(self.train).map_err(|(key, why)| {
            let key = self.experiment.model.key(&key);
            self.problem(&key, format!("`{key}` {why}"))
        })?;
        Ok(Posterior::new(joint))
    }

    /// The start of chains, or of variational fits, where it is that of restarts.
    pub(super) fn begin(&self, begin: Begin) -> Result<Option<Init>> {
        (begin == Begin::Init).then(|| self.init(&Prior::Noninformative)).transpose()
    }
}

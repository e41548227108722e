//! What the config says of the methods of conventional Bayes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Begin;
use crate::config::{Count, OpenUnit, Positive};
use crate::init::Dist;

/// The No-U-Turn Sampler (Hoffman and Gelman 2014). `sampler.B` draws in all, as many from each chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NutsSettings {
    /// Draws of each chain that tune step size and mass matrix, and are not kept.
    #[serde(default = "NutsSettings::default_warmup")]
    pub warmup: Count,
    /// Independent chains; they run in parallel.
    #[serde(default = "NutsSettings::default_chains")]
    pub chains: Count,
    /// Mean acceptance statistic that the step size is tuned to. Nearer to 1: smaller steps, fewer divergences.
    #[serde(default = "NutsSettings::default_target_accept")]
    pub target_accept: OpenUnit,
    /// A trajectory has at most 2 to the power of this many steps.
    #[serde(default = "NutsSettings::default_max_depth")]
    pub max_depth: Count,
    /// Where chains begin.
    #[serde(default)]
    pub begin: Begin,
}

impl NutsSettings {
    fn default_warmup() -> Count {
        Count::new(1000).expect("at least one")
    }

    fn default_chains() -> Count {
        Count::new(4).expect("at least one")
    }

    fn default_target_accept() -> OpenUnit {
        OpenUnit::new(0.8).expect("strictly between 0 and 1")
    }

    fn default_max_depth() -> Count {
        Count::new(10).expect("at least one")
    }
}

impl Default for NutsSettings {
    fn default() -> Self {
        NutsSettings {
            warmup: Self::default_warmup(),
            chains: Self::default_chains(),
            target_accept: Self::default_target_accept(),
            max_depth: Self::default_max_depth(),
            begin: Begin::default(),
        }
    }
}

/// Automatic differentiation variational inference (Kucukelbir et al. 2017): independent normals on the unconstrained
/// scale, fitted by stochastic gradient ascent of the evidence lower bound (ELBO). The defaults are Stan's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AdviSettings {
    /// Iterations after which the fit ends, converged or not.
    #[serde(default = "AdviSettings::default_max_iterations")]
    pub max_iterations: Count,
    /// Draws behind each gradient of the ELBO.
    #[serde(default = "AdviSettings::default_gradient_samples")]
    pub gradient_samples: Count,
    /// Draws behind each estimate of the ELBO.
    #[serde(default = "AdviSettings::default_elbo_samples")]
    pub elbo_samples: Count,
    /// Iterations between two estimates of the ELBO.
    #[serde(default = "AdviSettings::default_elbo_every")]
    pub elbo_every: Count,
    /// The fit has converged when the mean or the median of the last relative changes of the ELBO is below this.
    #[serde(default = "AdviSettings::default_tolerance")]
    pub tolerance: Positive,
    /// Scale η of the step sizes. Left out: the best of 100, 10, 1, 0.1 and 0.01 after `adapt_iterations` each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eta: Option<Positive>,
    /// Iterations that each η is tried for.
    #[serde(default = "AdviSettings::default_adapt_iterations")]
    pub adapt_iterations: Count,
    /// Where the means of the normals begin; their standard deviations begin at 1.
    #[serde(default)]
    pub begin: Begin,
}

impl AdviSettings {
    fn default_max_iterations() -> Count {
        Count::new(10_000).expect("at least one")
    }

    fn default_gradient_samples() -> Count {
        Count::new(1).expect("at least one")
    }

    fn default_elbo_samples() -> Count {
        Count::new(100).expect("at least one")
    }

    fn default_elbo_every() -> Count {
        Count::new(100).expect("at least one")
    }

    fn default_tolerance() -> Positive {
        Positive::new(0.01).expect("positive")
    }

    fn default_adapt_iterations() -> Count {
        Count::new(50).expect("at least one")
    }
}

impl Default for AdviSettings {
    fn default() -> Self {
        AdviSettings {
            max_iterations: Self::default_max_iterations(),
            gradient_samples: Self::default_gradient_samples(),
            elbo_samples: Self::default_elbo_samples(),
            elbo_every: Self::default_elbo_every(),
            tolerance: Self::default_tolerance(),
            eta: None,
            adapt_iterations: Self::default_adapt_iterations(),
            begin: Begin::default(),
        }
    }
}

/// Self-normalised importance sampling: `sampler.B` draws from a proposal, weighted by posterior over proposal.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportanceSettings {
    /// The proposal of each block of parameters: `proposal.mu = { normal = [0.0, 5.0] }`.
    pub proposal: BTreeMap<String, Dist>,
}

/// NPL with a mixture of Dirichlet processes as its prior (Lyddon, Walker and Holmes 2018): the base measure of each
/// draw is the model at a draw from its posterior. `prior.alpha` and `prior.T` are those of the DP.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MdpSettings {
    /// Where the posterior draws come from.
    #[serde(default)]
    pub centre: CentreConfig,
}

/// Posterior draws that centre the process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum CentreConfig {
    /// From NUTS, run first with the settings of `[nuts]`.
    #[default]
    Nuts,
    /// From an earlier run: its directory. Repeat i takes the draws of its repeat i.
    Run(String),
}

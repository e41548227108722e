//! The prior of the bootstrap, F ~ DP(α, F_π), from the experiment.

use super::Case;
use crate::config::{Count, OpenUnit};
use crate::data::Dataset;
use crate::error::Result;
use crate::experiment::{PriorConfig, TruncationConfig};
use crate::process::{BaseMeasure, Prior, Truncation, base};
use crate::rng::{Purpose, Seed};

/// Adaptive stick-breaking where the config leaves the truncation open.
const DEFAULT_EPSILON: f64 = 1e-6;

/// The most pseudo-samples that adaptive stick-breaking may be expected to make for a draw: a gigabyte for two threads, and a
/// second or so.
const MOST_STICKS: f64 = 1e7;

impl Case<'_> {
    /// The prior that the file describes.
    pub(super) fn prior(&self) -> Result<Prior> {
        let config = match &self.experiment.prior {
            Some(config) if config.alpha.get() > 0.0 => config,
            _ if self.train.n() == 0 => {
                let message = "there are no rows of data and no prior: give `prior.alpha` a value above 0";
                return Err(self.problem("data", message));
            }
            _ => return Ok(Prior::Noninformative),
        };
        let base = self.base(config)?;
        let truncation = self.truncation(config, base.shares().is_some(), self.train)?;
        Ok(Prior::Dp { alpha: config.alpha.get(), base, truncation })
    }

    /// How the prior part becomes finite; `finite` if the base measure has finite support.
    pub(super) fn truncation(
        &self,
        config: &PriorConfig,
        finite: bool,
        train: &Dataset,
    ) -> Result<Truncation> {
        let t = config.truncation_limit.map(Count::get);
        let chosen = config.truncation.unwrap_or(match (t, finite) {
            (Some(_), _) => TruncationConfig::Dirichlet,
            (None, true) => TruncationConfig::Exact,
            (None, false) => {
                TruncationConfig::Adaptive(OpenUnit::new(DEFAULT_EPSILON).expect("strictly between 0 and 1"))
            }
        });
        match (chosen, t) {
            (TruncationConfig::Dirichlet, Some(t)) => Ok(Truncation::Dirichlet { t }),
            (TruncationConfig::StickBreaking, Some(t)) => Ok(Truncation::StickBreaking { t }),
            (TruncationConfig::Adaptive(epsilon), None) => {
                let truncation = Truncation::Adaptive { epsilon: epsilon.get() };
                let sticks = truncation.pseudo_samples(config.alpha.get(), train.mass());
                if sticks > MOST_STICKS {
                    let message = format!(
                        "`prior.alpha` is {:e}: sticks until less than {:e} of the mass is left are about {sticks:.1e} \
                         pseudo-samples a draw, and at most {MOST_STICKS:e} are possible; choose their number, `prior.T`, \
                         with `truncation = \"dirichlet\"`",
                        config.alpha.get(),
                        epsilon.get()
                    );
                    return Err(self.problem("prior.alpha", message));
                }
                Ok(truncation)
            }
            (TruncationConfig::Exact, None) if finite => Ok(Truncation::Exact),
            (TruncationConfig::Exact, None) => {
                let message = "\"exact\" needs a base measure with finite support (`empirical`, `response`)";
                Err(self.problem("prior.truncation", message))
            }
            (TruncationConfig::Dirichlet | TruncationConfig::StickBreaking, None) => {
                Err(self.problem("prior.T", "`prior.T`, the number of pseudo-samples, is missing"))
            }
            (TruncationConfig::Adaptive(_) | TruncationConfig::Exact, Some(_)) => {
                let message = "this truncation finds its own number of pseudo-samples; leave `prior.T` out";
                Err(self.problem("prior.T", message))
            }
        }
    }

    fn base(&self, config: &PriorConfig) -> Result<Box<dyn BaseMeasure>> {
        let Some(base) = &config.base else {
            return Err(self.problem("prior", "alpha > 0 needs a base measure: `prior.base` is missing"));
        };
        let context = base::Context {
            train: self.train,
            covariates: self.covariates,
            response: self.train.y.is_some(),
            history: self.history.cloned(),
            predictive: &|| self.model.prior_predictive(self.covariates),
        };
        let key = |key: &str| match key {
            "" => format!("prior.base.{}", base.name()),
            key => format!("prior.base.{}.{key}", base.name()),
        };
        let built = base.build(&context).map_err(|(at, why)| {
            let at = key(at);
            self.problem(&at, format!("`{at}` {why}"))
        })?;
        if let Some(response) = self.model.response() {
            let model = self.experiment.model.table();
            let why = match built.responses() {
                None => {
                    Some(format!("has no response, and {model} is a regression: see `response`, `empirical`"))
                }
                Some(y) => y
                    .iter()
                    .find(|y| !response.admits(**y))
                    .map(|y| format!("has a response {y}, and that of {model} is {}", response.what())),
            };
            if let Some(why) = why {
                return Err(self.problem(&key(""), format!("`{}` {why}", key(""))));
            }
        }
        let historical = self.history.and_then(|rows| self.model.refuses_atoms(rows));
        let tried = built.sample(TRIED, &mut Seed(0).stream(Purpose::Auxiliary, 1, 0)).to_rows();
        if let Some(why) = historical.or_else(|| self.model.refuses_atoms(&tried)) {
            let model = self.experiment.model.table();
            return Err(self.problem(&key(""), format!("`{}` will not do: {model} {why}", key(""))));
        }
        Ok(built)
    }
}

/// Pseudo-samples that are looked at, to see of what kind they are.
const TRIED: usize = 100;

/// What the experiment says of a truncation.
pub fn config(truncation: Truncation) -> TruncationConfig {
    match truncation {
        Truncation::Dirichlet { .. } => TruncationConfig::Dirichlet,
        Truncation::StickBreaking { .. } => TruncationConfig::StickBreaking,
        Truncation::Adaptive { epsilon } => {
            TruncationConfig::Adaptive(OpenUnit::new(epsilon).expect("checked with the config"))
        }
        Truncation::Exact => TruncationConfig::Exact,
    }
}

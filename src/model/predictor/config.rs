//! The keys that all these regressions share.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Known;
use crate::config::{Complaint, Gamma, NonNegative, complaint, nearest, printable};
use crate::penalty::Penalty;

/// The weight of the penalty in the objective of a draw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PenaltyWeight {
    /// 1 in every draw.
    #[default]
    Fixed,
    /// An Exp(1) variate of each draw, as if the penalty were the loss of one more row (the weighted Bayesian bootstrap of
    /// Newton, Polson and Xu 2021).
    Exponential,
}

/// What a family is built with, besides its own keys.
#[derive(Clone, Debug)]
pub struct Common {
    pub penalty: Penalty,
    pub gamma: Option<Gamma>,
    pub penalty_factor: BTreeMap<String, NonNegative>,
    pub weight: PenaltyWeight,
    pub intercept: bool,
    /// The file says whether there is one.
    pub intercept_is_given: bool,
    pub intercept_prior: Option<(f64, f64)>,
    pub auxiliary_prior: Option<(f64, f64)>,
}

impl Common {
    /// fⱼ of every column; 1 where none is given.
    pub fn factors(&self, columns: &[String]) -> Result<Vec<f64>, Vec<Complaint>> {
        let unknown = self.penalty_factor.keys().filter(|name| !columns.contains(name));
        let complaints: Vec<Complaint> = unknown
            .map(|name| {
                let near = nearest(name, columns.iter().map(String::as_str));
                let hint =
                    near.map_or(String::new(), |near| format!("; did you mean `{}`?", printable(near)));
                complaint(
                    "penalty_factor",
                    format!("names `{}`, and the data have no such column{hint}", printable(name)),
                )
            })
            .collect();
        if !complaints.is_empty() {
            return Err(complaints);
        }
        Ok(columns.iter().map(|c| self.penalty_factor.get(c).map_or(1.0, |f| f.get())).collect())
    }

    /// A key that this law has no use for, and why.
    pub fn idle(&self, law: &dyn Known) -> Option<(&'static str, &'static str)> {
        let finite = |prior: Option<(f64, f64)>| prior.is_none_or(|(mean, _)| mean.is_finite());
        if !finite(self.intercept_prior) {
            return Some(("intercept_prior", "must have a finite mean"));
        }
        if !finite(self.auxiliary_prior) {
            return Some(("auxiliary_prior", "must have a finite mean"));
        }
        if !law.is_likelihood() && (self.intercept_prior.is_some() || self.auxiliary_prior.is_some()) {
            let key = if self.intercept_prior.is_some() { "intercept_prior" } else { "auxiliary_prior" };
            return Some((key, "has no use: this loss is no likelihood, and priors are for those"));
        }
        let intercept = law.has_intercept() && self.intercept;
        if self.intercept_prior.is_some() && !intercept {
            return Some(("intercept_prior", "has no use: there is no intercept"));
        }
        if self.intercept_is_given && !law.has_intercept() {
            return Some(("intercept", "has no use: cut points are in its place"));
        }
        let scale = law.extras().iter().any(|extra| extra.support.is_positive());
        (self.auxiliary_prior.is_some() && !scale)
            .then_some(("auxiliary_prior", "has no use: no parameter above 0 is beside the coefficients"))
    }
}

/// `config! { own keys }` is the `Config` of a family: its own keys, then those that all share.
macro_rules! config {
    ($($(#[$own_meta:meta])* $own:ident: $type:ty),* $(,)?) => {
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct Config {
            $($(#[$own_meta])* pub $own: $type,)*
            /// g(β), on the coefficients and nothing else.
            pub penalty: $crate::penalty::Penalty,
            /// Strength γ of the penalty: a number, or "1/n". Left out: "1/n".
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub gamma: Option<$crate::config::Gamma>,
            /// What the penalty of a column is multiplied by: `{ age = 0.0, income = 2.0 }`. 0 leaves a column without a
            /// penalty. Left out: 1.
            #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
            pub penalty_factor: std::collections::BTreeMap<String, $crate::config::NonNegative>,
            /// Weight of the penalty in a draw: "fixed", or "exponential" for an Exp(1) variate of each. Left out: "fixed".
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub penalty_weight: Option<$crate::model::predictor::PenaltyWeight>,
            /// Whether the linear predictor has an intercept, which has no penalty. Left out: it has.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub intercept: Option<bool>,
            /// Mean and standard deviation of a normal prior on the intercept, for conventional Bayes and for a base measure
            /// `"prior_predictive"`. Left out: flat.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub intercept_prior: Option<(f64, $crate::config::Positive)>,
            /// Mean and standard deviation of a normal prior on the logarithm of what is positive beside the coefficients, for
            /// the same. Left out: flat.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub auxiliary_prior: Option<(f64, $crate::config::Positive)>,
        }

        impl Config {
            fn common(&self) -> $crate::model::predictor::Common {
                let prior = |given: Option<(f64, $crate::config::Positive)>| given.map(|(mean, sd)| (mean, sd.get()));
                $crate::model::predictor::Common {
                    penalty: self.penalty,
                    gamma: self.gamma.clone(),
                    penalty_factor: self.penalty_factor.clone(),
                    weight: self.penalty_weight.unwrap_or_default(),
                    intercept: self.intercept.unwrap_or(true),
                    intercept_is_given: self.intercept.is_some(),
                    intercept_prior: prior(self.intercept_prior),
                    auxiliary_prior: prior(self.auxiliary_prior),
                }
            }
        }
    };
}
pub(in crate::model) use config;

//! The median of each column: l(y, θ) = |y − θ|, the first example after eq. (1). Twice the pinball loss at ½.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::quantile::Quantile;
use super::{Context, Model};
use crate::config::Complaint;

pub const STARTER: &str = include_str!("../../configs/starters/median.toml");

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {}

impl Config {
    pub fn build(&self, context: &Context) -> Result<Box<dyn Model>, Vec<Complaint>> {
        Ok(Box::new(Quantile::new(vec![0.5], vec![String::new()], 2.0, context)))
    }
}

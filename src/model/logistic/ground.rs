//! The rows that draws live on: the observed ones, and those of pseudo-samples if they are others.

use std::borrow::Cow;

use super::Logistic;
use super::metric::Shared;
use super::objective::Objective;
use crate::data::Dataset;
use crate::data::design::Design;
use crate::process::{Masses, Measure};

/// The mass of every row, and the part of it with response 1.
pub type Responses = (Vec<f64>, Vec<f64>);

/// The rows of draws that share them.
pub struct Ground<'a> {
    rows: Cow<'a, Dataset>,
    observed: &'a Dataset,
    /// Some rows belong to one draw alone.
    alone: bool,
}

impl<'a> Ground<'a> {
    /// The ground of draws that share their rows, and what each has on it.
    pub fn new<'m: 'a>(
        model: &'a Logistic,
        block: impl Iterator<Item = &'a Measure<'m>>,
    ) -> (Self, Vec<Responses>) {
        let masses: Vec<(Masses, Option<Masses>)> = block.map(|f| f.masses()).collect();
        let observed: &'a Dataset = masses[0].0.rows;
        let (rows, alone) = match &masses[0].1 {
            None => (Cow::Borrowed(observed), false),
            Some(others) if others.shared.is_some() => {
                (Cow::Borrowed(model.stack.get_or_init(|| stack(model, observed, others.rows))), false)
            }
            Some(others) => (Cow::Owned(Dataset::stack(observed, others.rows)), true),
        };
        let join = |(observed, others): (Masses, Option<Masses>)| match others {
            None => (observed.mass, observed.response),
            Some(others) => {
                ([observed.mass, others.mass].concat(), [observed.response, others.response].concat())
            }
        };
        (Ground { rows, observed, alone }, masses.into_iter().map(join).collect())
    }

    /// Second-order information. That of the observed rows serves where a draw has rows of its own: a search mends it.
    pub fn shared<'m>(&self, model: &'m Logistic) -> &'m Shared {
        if !self.alone {
            return model.metric(&self.rows);
        }
        match self.observed.n() {
            0 => &Shared::Unknown,
            _ => match model.metric(self.observed) {
                Shared::Rows(..) => &Shared::Unknown,
                shared => shared,
            },
        }
    }

    pub fn objective<'s>(
        &'s self,
        model: &'s Logistic,
        shared: &'s Shared,
        responses: Vec<Responses>,
    ) -> Objective<'s> {
        Objective::new(model, shared, &self.rows, responses)
    }
}

/// The observed rows, then those that pseudo-samples are taken from; as a data set each counts as F has it on average.
fn stack(model: &Logistic, observed: &Dataset, others: &Dataset) -> Dataset {
    let alpha = model.mass - observed.mass();
    let of_observed = (0..observed.n()).map(|i| observed.weight(i));
    let of_others = (0..others.n()).map(|i| alpha * others.weight(i) / others.mass());
    let weights = of_observed.chain(of_others).collect();
    Dataset::stack(observed, others).with_design(Design::new(Some(weights), None, None))
}

//! The rows that draws live on: the observed ones, and those of pseudo-samples if they are others.

use std::borrow::Cow;

use super::metric::Shared;
use super::objective::Objective;
use super::{Family, Regression};
use crate::data::Dataset;
use crate::data::design::Design;
use crate::process::{Masses, Measure};

/// What a draw has on the rows.
#[derive(Default)]
pub struct Responses {
    /// The mass of every row.
    pub mass: Vec<f64>,
    /// Σ w y of every row.
    pub sums: Vec<f64>,
    /// ∫ h(y) dF.
    pub carrier: f64,
}

/// The rows of draws that share them.
pub struct Ground<'a> {
    rows: Cow<'a, Dataset>,
    observed: &'a Dataset,
    /// Some rows belong to one draw alone.
    alone: bool,
}

impl<'a> Ground<'a> {
    /// The ground of draws that share their rows, and what each has on it.
    pub fn new<'m: 'a, F: Family>(
        model: &'a Regression<F>,
        block: impl Iterator<Item = &'a Measure<'m>>,
    ) -> (Self, Vec<Responses>) {
        let masses: Vec<_> = block.map(|f| (f.masses(), Regression::<F>::carrier(f))).collect();
        let ((first, others), _) = &masses[0];
        let observed: &'a Dataset = first.rows;
        let (rows, alone) = match others {
            None => (Cow::Borrowed(observed), false),
            Some(others) if others.shared.is_some() => {
                (Cow::Borrowed(model.stack.get_or_init(|| stack(model, observed, others.rows))), false)
            }
            Some(others) => (Cow::Owned(Dataset::stack(observed, others.rows)), true),
        };
        let join = |((observed, others), carrier): ((Masses, Option<Masses>), f64)| {
            let (mut mass, mut sums) = (observed.mass, observed.response);
            if let Some(others) = others {
                mass.extend(others.mass);
                sums.extend(others.response);
            }
            Responses { mass, sums, carrier }
        };
        (Ground { rows, observed, alone }, masses.into_iter().map(join).collect())
    }

    /// Second-order information. That of the observed rows serves where a draw has rows of its own: a search mends it.
    pub fn shared<'m, F: Family>(&self, model: &'m Regression<F>) -> &'m Shared {
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

    /// The rows that draws have in common.
    pub fn lasting(&self) -> &Dataset {
        if self.alone { self.observed } else { &self.rows }
    }

    pub fn objective<'s, F: Family>(
        &'s self,
        model: &'s Regression<F>,
        shared: &'s Shared,
        responses: Vec<Responses>,
    ) -> Objective<'s, F> {
        Objective::new(model, shared, &self.rows, responses)
    }
}

/// The observed rows, then those that pseudo-samples are taken from; as a data set each counts as F has it on average.
fn stack<F: Family>(model: &Regression<F>, observed: &Dataset, others: &Dataset) -> Dataset {
    let alpha = model.mass - observed.mass();
    let of_observed = (0..observed.n()).map(|i| observed.weight(i));
    let of_others = (0..others.n()).map(|i| alpha * others.weight(i) / others.mass());
    let weights = of_observed.chain(of_others).collect();
    Dataset::stack(observed, others).with_design(Design::new(Some(weights), None, None))
}

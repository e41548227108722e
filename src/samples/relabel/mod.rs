//! The components of a mixture under the same labels in every draw: Stephens' algorithm (2000, section 4). In turn the
//! reference is the mixture nearest to all draws under their labels, and each draw takes the labels under which it is nearest
//! to the reference, until no label changes; neither step ever goes up. Near is by the Kullback-Leibler divergence of the
//! joint distribution of label and observation, so that no data are needed.

mod align;
mod assignment;
mod reference;
mod table;

pub use align::AlignedRepeat;
pub use reference::Reference;

use self::align::{Aligned, Group};
use self::table::AlignedTable;
use super::read::Samples;
use super::{ALIGNMENT, DRAW, Kinship, NameStyle, REPEAT, Relation, STATUS, wrong};
use crate::config::printable;
use crate::error::Result;
use crate::model::Components;
use crate::optim::Status;

/// What relabelling did to the draws of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Relabelling {
    pub components: Components,
    /// Each repeat, or setting of a path, has a reference of its own, with labels after that of the one before it.
    pub repeats: Vec<AlignedRepeat>,
}

impl Relabelling {
    pub fn draws(&self) -> usize {
        self.repeats.iter().map(|r| r.draws).sum()
    }

    /// Draws that were left as they are: failed ones.
    pub fn left(&self) -> usize {
        self.repeats.iter().map(|r| r.left).sum()
    }

    /// Share of the draws whose components stand in another order now.
    pub fn permuted(&self) -> f64 {
        self.share(|repeat| repeat.permuted)
    }

    /// Share of the draws for which other labels are nearly as good.
    pub fn ambiguous(&self) -> f64 {
        self.share(|repeat| repeat.ambiguous)
    }

    /// Share of the draws for which the label of component `k` is one of those that could as well be others.
    pub fn ambiguous_component(&self, k: usize) -> f64 {
        self.share(|repeat| repeat.ambiguous_components[k])
    }

    /// A share of all draws that were aligned.
    fn share(&self, of: impl Fn(&AlignedRepeat) -> f64) -> f64 {
        let aligned = |r: &AlignedRepeat| (r.draws - r.left) as f64;
        let total: f64 = self.repeats.iter().map(aligned).sum();
        self.repeats.iter().map(|r| of(r) * aligned(r)).sum::<f64>() / total.max(1.0)
    }
}

impl Samples {
    /// These draws with their components under the same labels in each, and what was done to them. The file stays as it is.
    /// A statistic more tells how each draw was labelled ([`ALIGNMENT`]).
    pub fn relabelled(self, relation: Relation) -> Result<(Samples, Relabelling)> {
        let bad = |what: &str| wrong(&self.path, what);
        let components = match relation.components {
            Some(components) if components.count() > 1 => components,
            Some(_) => return Err(bad("its mixtures have one component, and no labels to align")),
            None => {
                return Err(bad("its parameters are not those of a mixture, and have no labels to align"));
            }
        };
        let places = self.component_places(components)?;
        let log_weights = if relation.draws == Kinship::Weighted { Some(self.log_weights()?) } else { None };
        let (mut repeats, mut labels) = (Vec::<AlignedRepeat>::new(), Vec::new());
        let mut group = Group::new(0, components);
        let mut end = |group: &mut Group, next: usize| {
            let whole = std::mem::replace(group, Group::new(next, components));
            if whole.is_empty() {
                return;
            }
            let before = repeats.iter().rev().find_map(|r| r.reference.as_ref());
            let Aligned { repeat, labels: found } = whole.aligned(before, relation.exchangeable);
            repeats.push(repeat);
            labels.extend(found);
        };
        let mut mixture = vec![0.0; places.len()];
        self.scan(0..self.parameters().len(), |statistics, theta| {
            let repeat = statistics[REPEAT] as usize;
            if repeat != group.repeat {
                end(&mut group, repeat);
            }
            mixture.iter_mut().zip(&places).for_each(|(value, &j)| *value = theta[j]);
            let lost = Status::is_lost_code(statistics[STATUS]);
            let converged = statistics[STATUS] == Status::Ok.code();
            let log_weight = log_weights.map_or(0.0, |j| statistics[j]);
            group.add(statistics[DRAW], (!lost).then_some(&mixture), converged, log_weight);
            true
        })?;
        end(&mut group, 0);
        if repeats.iter().all(|r| r.reference.is_none()) {
            return Err(bad("none of its draws is a mixture that could be aligned"));
        }
        Ok((self.with_labels(places, components, labels), Relabelling { components, repeats }))
    }

    /// Where weights, means and variances of all components stand among the parameters.
    fn component_places(&self, components: Components) -> Result<Vec<usize>> {
        let names: Vec<String> = self.parameters().iter().map(|name| NameStyle::dotted(name)).collect();
        let known: std::collections::HashMap<&str, usize> =
            names.iter().enumerate().map(|(j, name)| (name.as_str(), j)).collect();
        let place = |name: String| {
            known.get(name.as_str()).copied().ok_or_else(|| {
                let what = "components can only be aligned if all of their parameters were kept";
                wrong(&self.path, &format!("it has no column {}: {what}", printable(&name)))
            })
        };
        components.names().into_iter().map(place).collect()
    }

    fn with_labels(self, places: Vec<usize>, components: Components, labels: Vec<table::Labels>) -> Samples {
        let Samples { path, table, mut columns, statistics } = self;
        let parameters = columns.len() - statistics;
        columns.insert(statistics, ALIGNMENT.to_owned());
        let table = AlignedTable::new(path.clone(), table, parameters, places, components, labels);
        Samples { path, table: Box::new(table), columns, statistics: statistics + 1 }
    }
}

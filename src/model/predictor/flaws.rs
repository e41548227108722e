//! Where there is no minimum, or more than one. A penalty holds the coefficients that it is on; the others, and the intercept, are
//! held by the data: see [`identify`](crate::model::identify).

use ndarray::{Array2, Axis};

use super::{Outcome, Predictor};
use crate::config::{Complaint, complaint, printable};
use crate::data::Dataset;
use crate::model::identify::{Basis, Labelled, columns_of};
use crate::optim::Status;
use crate::penalty::Penalty;
use crate::process::Measure;

/// Columns that a message names.
const LISTED: usize = 5;

impl Predictor {
    /// Columns without a penalty.
    fn free(&self) -> Vec<usize> {
        (0..self.d()).filter(|&j| self.penalty == Penalty::None || self.factors[j] == 0.0).collect()
    }

    /// Numbers that [`Predictor::flaws_of`] needs beside the rows.
    pub(super) fn looking_of(&self, data: &Dataset) -> f64 {
        let (n, free) = (data.n() as f64, self.free().len());
        let Some(y) = data.y.as_ref().filter(|_| !self.prior && data.n() > 0) else { return 0.0 };
        let copied = if free < self.d() { free } else { 0 };
        let outcome = |i: usize| Outcome { y: y[i], event: data.event.as_ref().is_none_or(|e| e[i] == 1.0) };
        let sides = match self.law.forms(outcome(0)) {
            Some(forms) => forms.len() * self.m(),
            None => {
                let all = |i: usize| self.law.keeps(outcome(i)).into_iter().filter(|kept| *kept).count();
                let sides = (0..data.n()).map(all).max().unwrap_or(0);
                if sides == 2 && (0..data.n()).all(|i| all(i) == 2) { 0 } else { sides }
            }
        };
        n * (copied + (free + 1) * (1 + sides) + 2 * sides) as f64
    }

    fn basis(&self, x: ndarray::ArrayView2<f64>) -> Basis {
        let free = self.free();
        let some: Option<Array2<f64>> = (free.len() < self.d()).then(|| x.select(Axis(1), &free));
        let x = some.as_ref().map_or(x, |some| some.view());
        if self.intercept || !self.law.has_intercept() {
            Basis::new(x.view())
        } else {
            Basis::through_origin(x.view())
        }
    }

    /// A direction along which the loss falls for ever; all of them if no row keeps anything.
    fn separation(&self, basis: &Basis, data: &Dataset) -> Option<Vec<(usize, f64)>> {
        let y = data.y.as_ref().expect("regression data have responses");
        let is_event = |i: usize| data.event.as_ref().is_none_or(|event| event[i] == 1.0);
        let outcome = |i: usize| Outcome { y: y[i], event: is_event(i) };
        if data.n() > 0 && self.law.forms(outcome(0)).is_some() {
            let of_row =
                |i: usize| self.law.forms(outcome(i)).unwrap_or_default().into_iter().map(move |f| (i, f));
            return basis.separation_of_forms(&(0..data.n()).flat_map(of_row).collect::<Vec<_>>());
        }
        // What no row lets move either way falls along nothing.
        if data.n() > 0 && (0..data.n()).all(|i| self.law.keeps(outcome(i)) == [true, true]) {
            return None;
        }
        let of_row = |i: usize| {
            let [below, above] = self.law.keeps(outcome(i));
            [below.then_some((i, 1.0)), above.then_some((i, -1.0))].into_iter().flatten()
        };
        let rows: Vec<Labelled> = (0..data.n()).flat_map(of_row).collect();
        if rows.is_empty() { Some(Vec::new()) } else { basis.separation(&rows) }
    }

    fn status(&self, data: &Dataset) -> Option<Status> {
        let basis = self.basis(data.x.whole());
        if self.separation(&basis, data).is_some() {
            return Some(Status::Separated);
        }
        let full = basis.is_full() || self.free().is_empty();
        (!full).then_some(Status::Unidentified)
    }

    /// What is wrong with the atoms of a draw, where those of the data alone leave something open.
    pub fn flaw(&self, f: &Measure) -> Option<Status> {
        let sound = *self.sound.get_or_init(|| f.observed().n() > 0 && self.status(f.observed()).is_none());
        if sound { None } else { self.status(&f.written_out().0) }
    }

    /// What is wrong with the data, as problems of the config.
    pub(super) fn flaws_of(&self, train: &Dataset) -> Option<Vec<Complaint>> {
        if self.prior {
            return None;
        }
        if let Some(wanted) = self.law.wants(train) {
            return Some(vec![wanted]);
        }
        let (basis, free) = (self.basis(train.x.whole()), self.free());
        let name = |j: &usize| format!("`{}`", printable(&train.columns[free[*j]]));
        let list = |columns: &[usize]| columns.iter().take(LISTED).map(name).collect::<Vec<_>>().join(", ");
        let cure = "give a penalty (\"ridge\", `student_t`, \"lasso\"), or leave columns out";
        let mut flaws = Vec::new();
        if let Some(direction) = self.separation(&basis, train) {
            let columns = columns_of(&direction);
            let (key, why) = match columns.is_empty() {
                true => ("", "has no minimum: the responses are all at one end".to_owned()),
                false => (
                    "penalty",
                    format!(
                        "is needed: the responses are separated by {}, and without one the loss has no minimum: coefficients \
                     grow for ever; {cure}",
                        list(&columns)
                    ),
                ),
            };
            flaws.push(complaint(key, why));
        }
        let aliased: Vec<usize> = basis.aliased.iter().map(|alias| alias.column).collect();
        if !aliased.is_empty() || !(basis.is_full() || free.is_empty()) {
            let which = match aliased.len() {
                0 => "there are more columns than rows".to_owned(),
                1 => format!("{} is constant or a combination of other columns", list(&aliased)),
                _ => format!("{} are constant or combinations of other columns", list(&aliased)),
            };
            let why = format!("is needed: {which}, and without one coefficients are not identified; {cure}");
            flaws.push(complaint("penalty", why));
        }
        if flaws.is_empty() {
            // Draws need not look again.
            let _ = self.sound.set(true);
        }
        Some(flaws)
    }
}

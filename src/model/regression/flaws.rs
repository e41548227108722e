//! Where the regression has no minimum, or more than one. A penalty holds every coefficient (all of them grow without bound
//! in β), but not the intercept, which needs responses that keep it from either side: of both classes, or a count above 0.
//! Without a penalty see [`identify`].
//!
//! Without pseudo-samples all this is known of the data, before any draw. With them it is if the data are sound: more atoms take
//! nothing away. If they are not, each draw's own atoms decide.
//!
//! [`identify`]: crate::model::identify

use ndarray::{Array1, ArrayView1};

use super::{Family, Regression};
use crate::config::{Complaint, complaint};
use crate::data::Dataset;
use crate::model::Search;
use crate::model::identify::{Basis, Labelled, columns_of, separates_alone};
use crate::optim::{Minimum, Status};
use crate::penalty::Penalty;
use crate::process::{Masses, Measure};

/// Columns that a message names.
const LISTED: usize = 5;
/// Share of a row's mass below which a response cannot be told from rounding, neither here nor by the loss.
const ROUNDING: f64 = 1e-12;

/// The sides that a response keeps the margin from: a loss A(m) − y m rises without end where m grows unless y is the
/// largest response there is, and where it falls unless y is 0.
fn sides<F: Family>(mass: f64, sum: f64) -> impl Iterator<Item = f64> {
    let down = F::LARGEST.map_or(mass, |largest| largest * mass - sum);
    [(1.0, sum), (-1.0, down)]
        .into_iter()
        .filter(move |(_, part)| *part > ROUNDING * mass)
        .map(|(sign, _)| sign)
}

/// There are responses, and all keep the margin from the same side alone.
pub fn one_sided<F: Family>(y: &Array1<f64>) -> bool {
    let mut sides = y.iter().flat_map(|&y| sides::<F>(1.0, y));
    sides.next().is_some_and(|first| sides.all(|side| side == first))
}

/// What the observed rows identify.
pub enum Observed {
    /// All there is: no draw is worse.
    Sound,
    /// With a penalty: the responses are all the same.
    Constant,
    /// Without one: the rows are separable, or their columns dependent.
    Flawed(Basis),
}

impl Observed {
    fn new<F: Family>(model: &Regression<F>, data: &Dataset) -> Observed {
        let y = data.y.as_ref().expect("regression data have responses");
        if model.penalty != Penalty::None {
            return if y.is_empty() || one_sided::<F>(y) { Observed::Constant } else { Observed::Sound };
        }
        let basis = Basis::of(&data.x);
        let sound = basis.is_full() && basis.separation(&labelled::<F>(y.view())).is_none();
        if sound { Observed::Sound } else { Observed::Flawed(basis) }
    }
}

fn labelled<F: Family>(y: ArrayView1<f64>) -> Vec<Labelled> {
    y.iter().enumerate().flat_map(|(i, &y)| sides::<F>(1.0, y).map(move |side| (i, side))).collect()
}

impl<F: Family> Regression<F> {
    /// The statuses of draws whose atoms have no minimum, or more than one, whatever the searches found.
    pub(super) fn mark_flaws(&self, searches: &[Search], minima: &mut [Minimum]) {
        for (minimum, search) in minima.iter_mut().zip(searches) {
            let observed = self.observed.get_or_init(|| Observed::new(self, search.f.observed()));
            let found = match observed {
                Observed::Sound => return,
                Observed::Constant => one_class::<F>(search.f).then_some(Status::Separated),
                Observed::Flawed(basis) => flaw::<F>(basis, search.f),
            };
            if let Some(status) = found.filter(|_| minimum.status != Status::Failed) {
                minimum.status = status;
            }
        }
    }

    /// What is wrong with the data, as problems of the config.
    pub(super) fn flaws_of(&self, train: &Dataset) -> Option<Vec<Complaint>> {
        if self.penalty != Penalty::None || self.prior {
            return None;
        }
        let (basis, rows) = (Basis::of(&train.x), labelled::<F>(train.y.as_ref()?.view()));
        let needed = if self.gamma == 0.0 { "is needed, and `gamma` above 0" } else { "is needed" };
        let cure = "give a penalty (\"ridge\", `student_t`, \"lasso\")";
        let mut flaws = Vec::new();
        if basis.spans_all_rows() {
            let message = format!(
                "{needed}: {} columns and an intercept fit any responses of {} rows, and without one the loss has no \
                 minimum: coefficients grow for ever; {cure}, or use fewer columns",
                train.d(),
                train.n()
            );
            return Some(vec![complaint("penalty", message)]);
        }
        if let Some(direction) = basis.separation(&rows) {
            let alone: Vec<usize> =
                (0..train.d()).filter(|&j| separates_alone(train.x.whole().column(j), &rows)).collect();
            let how = match alone.len() {
                0 => format!("by a combination of {}", names(train, &columns_of(&direction))),
                1 => format!("by {} alone", names(train, &alone)),
                _ => format!("by each of {}", names(train, &alone)),
            };
            let message = format!(
                "{needed}: the responses are separated {how}, and without one the loss has no minimum: coefficients \
                 grow for ever; {cure}, or leave columns out"
            );
            flaws.push(complaint("penalty", message));
        }
        if !basis.aliased.is_empty() {
            let alias = |a: &crate::model::identify::Alias| {
                let column = names(train, &[a.column]);
                match a.of.len() {
                    0 => format!("{column} is constant"),
                    1 => format!("{column} repeats {} (up to scale and a constant)", names(train, &a.of)),
                    _ => format!("{column} is a combination of {} (up to a constant)", names(train, &a.of)),
                }
            };
            let mut listed: Vec<String> = basis.aliased.iter().take(LISTED).map(alias).collect();
            let more = basis.aliased.len().saturating_sub(LISTED);
            listed.extend((more > 0).then(|| format!("{more} more columns are like that")));
            let message = format!(
                "{needed}: {}, and without one their coefficients are not identified: any start is a minimum; {cure}, or \
                 leave such columns out",
                listed.join(", ")
            );
            flaws.push(complaint("penalty", message));
        }
        if flaws.is_empty() && basis.is_full() {
            // Draws need not look again.
            let _ = self.observed.set(Observed::Sound);
        }
        Some(flaws)
    }
}

/// Names of columns, a few of them.
fn names(train: &Dataset, columns: &[usize]) -> String {
    let name = |&j: &usize| format!("`{}`", crate::config::printable(&train.columns[j]));
    let shown: Vec<String> = columns.iter().take(LISTED).map(name).collect();
    let more = columns.len().saturating_sub(LISTED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    shown.join(", ") + &more
}

/// The responses that each row has in a draw, by more than rounding; rows are counted from `first`.
fn labels<F: Family>(first: usize, masses: &Masses) -> Vec<Labelled> {
    let rows = masses.mass.iter().zip(&masses.response).enumerate();
    rows.flat_map(|(i, (mass, sum))| sides::<F>(*mass, *sum).map(move |side| (first + i, side))).collect()
}

fn one_class<F: Family>(f: &Measure) -> bool {
    let (observed, others) = f.masses();
    let others = others.map_or(Vec::new(), |others| labels::<F>(0, &others));
    let mut signs = labels::<F>(0, &observed).into_iter().chain(others).map(|(_, sign)| sign);
    signs.next().is_none_or(|first| signs.all(|sign| sign == first))
}

/// What is wrong with the atoms of a draw without a penalty; `basis` is that of the observed rows.
fn flaw<F: Family>(basis: &Basis, f: &Measure) -> Option<Status> {
    let (observed, others) = f.masses();
    let mut rows = labels::<F>(0, &observed);
    let all;
    let basis = match others {
        None => basis,
        Some(others) => {
            // The rows that the draw has atoms on, and no more.
            let mut own = labels::<F>(0, &others);
            let mut picked: Vec<usize> = own.iter().map(|(i, _)| *i).collect();
            picked.dedup();
            let place = |i: usize| picked.binary_search(&i).expect("picked just now");
            own.iter_mut().for_each(|(i, _)| *i = observed.rows.n() + place(*i));
            rows.extend(own);
            let x = observed.rows.x.stack(&others.rows.x.select(&picked));
            all = Basis::new(x.whole());
            &all
        }
    };
    if basis.separation(&rows).is_some() {
        Some(Status::Separated)
    } else {
        (!basis.is_full()).then_some(Status::Unidentified)
    }
}

//! What coefficients of several runs are effects of: their numbers can be held against each other if that is the same.

use std::collections::HashMap;

use super::html::Html;
use super::view::View;
use crate::error::Result;
use crate::plot::Source;

/// Scales of a column that differ by less are those of other training rows, not other units.
const ALIKE: f64 = 1.25;

/// Where runs have coefficients in different units, all are told in those of the data, if they can be.
pub fn settle(views: &mut [View]) {
    if !differ(views) {
        return;
    }
    let told: Result<Vec<Source>> =
        views.iter().map(|view| view.source.again()?.in_units_of_data()).collect();
    for (view, told) in views.iter_mut().zip(told.into_iter().flatten()) {
        view.of_data = Some(told);
    }
}

/// Whether a unit of a column is another in some of the runs.
fn differ(views: &[View]) -> bool {
    let regressions = views.iter().filter(|view| !view.source.coefficients().is_empty());
    let mut seen: HashMap<String, f64> = HashMap::new();
    for (name, scale) in regressions.filter_map(|view| view.source.scales()).flatten() {
        let first = *seen.entry(name).or_insert(scale);
        if first.max(scale) > ALIKE * first.min(scale) {
            return true;
        }
    }
    false
}

/// What a reader must know of the units of coefficients.
pub fn said(views: &[View]) -> Option<Html> {
    let regressions: Vec<&View> =
        views.iter().filter(|view| !view.source.coefficients().is_empty()).collect();
    if views.iter().any(|view| view.of_data.is_some()) {
        return Some(Html::note(
            "Columns have other units in some of these runs than in others. Here all coefficients are told in the units of the \
             data, intercept included (npl summary --units data).",
        ));
    }
    let pers: Vec<Option<&str>> = regressions.iter().map(|view| view.source.per()).collect();
    let first = *pers.first()?;
    if pers.iter().any(|per| *per != first) || differ(views) {
        let told = |(view, per): (&&View, &Option<&str>)| {
            format!("of {} {}", view.label(), per.unwrap_or("in the units that the file has"))
        };
        let told: Vec<String> = regressions.iter().zip(&pers).map(told).collect();
        let words = "and cannot be held against each other";
        return Some(Html::note(&format!(
            "Coefficients are in different units {words}: {}.",
            told.join(", ")
        )));
    }
    first.map(|per| Html::note(&format!("Coefficients are {per}.")))
}

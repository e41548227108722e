//! How far the draws can be trusted: a column for each run.

use super::html::Html;
use super::table::{Cell, Table};
use super::view::View;
use crate::bayes::importance::Weights;
use crate::math::mean;
use crate::optim::Status;
use crate::report::{AdviReport, ChainReport, CollapseShares, Diagnostics, Report};
use crate::restarts::Adequacy;
use crate::words::{percent, seconds};

pub fn section(views: &[View]) -> Html {
    let labels: Vec<&str> = views.iter().map(View::label).collect();
    let mut table = Table::by_run(&labels, "value");
    draws(views, &mut table);
    searches(views, &mut table);
    chains(views, &mut table);
    approximations(views, &mut table);
    table.html()
}

/// A cell for each run.
fn cells(views: &[View], cell: impl Fn(&Report) -> Option<Cell>) -> Vec<Cell> {
    views.iter().map(|view| cell(view.report()).unwrap_or_else(Cell::absent)).collect()
}

/// What one part of the diagnostics is in every repeat; nothing if a repeat lacks it.
fn each<'a, T>(report: &'a Report, part: impl Fn(&'a Diagnostics) -> Option<T>) -> Option<Vec<T>> {
    let all: Option<Vec<T>> = report.repeats.iter().map(|r| part(&r.diagnostics)).collect();
    all.filter(|all| !all.is_empty())
}

fn share(value: f64) -> Cell {
    Cell::value(percent(value), value)
}

fn fixed(value: f64, digits: usize) -> Cell {
    Cell::value(format!("{value:.digits$}"), value)
}

fn draws(views: &[View], table: &mut Table) {
    let row = cells(views, |r| Some(Cell::count(r.draws())));
    table.explained("draws", "over all repeats or settings", row);
    let row = cells(views, |r| Some(Cell::text(seconds(r.repeats.iter().map(|r| r.seconds).sum()))));
    table.explained("time", "making, evaluating and writing them", row);
    let searched = |r: &Report| r.repeats.iter().any(|r| r.diagnostics.max_gradient.is_some());
    let converged = |r: &Report| {
        let count = r.count(Status::Ok) + r.count(Status::Collapsed);
        (searched(r) && r.draws() > 0).then(|| share(count as f64 / r.draws() as f64))
    };
    table.explained("converged", "draws whose search ended in a minimum", cells(views, converged));
    let out = |r: &Report| searched(r).then(|| Cell::count(r.count(Status::MaxIter)));
    table.explained("out of iterations", "not at a minimum; summaries have them", cells(views, out));
    let stuck = |r: &Report| searched(r).then(|| r.count(Status::Stuck)).filter(|&n| n > 0).map(Cell::count);
    table.explained("without a step", "not at a minimum; summaries have them", cells(views, stuck));
    let lost = |r: &Report| searched(r).then(|| Cell::count(r.lost()));
    table.explained("failed", "no minimum; summaries leave them out", cells(views, lost));
}

fn searches(views: &[View], table: &mut Table) {
    let average = |r: &Report, of: &dyn Fn(&Diagnostics) -> f64| {
        mean(&r.repeats.iter().map(|r| of(&r.diagnostics)).collect::<Vec<_>>())
    };
    let iterations = |r: &Report| {
        each(r, |d| d.max_gradient)?;
        Some(fixed(average(r, &|d| d.mean_iterations), 1))
    };
    table.explained("iterations", "of the search that won, on average", cells(views, iterations));
    let gradient = |r: &Report| {
        let largest = each(r, |d| d.max_gradient)?.into_iter().fold(0.0, f64::max);
        Some(Cell::value(format!("{largest:.1e}"), largest))
    };
    table.explained("largest gradient left", "of any draw that did not fail", cells(views, gradient));
    for (name, why, of) in COLLAPSE {
        let cell = |r: &Report| Some(share(mean(&each(r, |d| d.collapse.as_ref().map(of))?)));
        table.explained(name, why, cells(views, cell));
    }
    for (name, why, of, is_share) in RESTARTS {
        let cell = |r: &Report| {
            let value = mean(&each(r, |d| d.restarts.as_ref().map(of))?);
            Some(if is_share { share(value) } else { fixed(value, 1) })
        };
        table.explained(name, why, cells(views, cell));
    }
}

type Part<T> = fn(&T) -> f64;

const COLLAPSE: [(&str, &str, Part<CollapseShares>); 2] = [
    ("collapsed", "draws with a variance on the floor", |c| c.at_floor),
    ("narrow", "draws with a component narrower than a tenth of the data", |c| c.narrow),
];

const RESTARTS: [(&str, &str, Part<Adequacy>, bool); 6] = [
    ("restarts", "of a draw, on average", |a| a.restarts, false),
    ("distinct minima", "of a draw, on average", |a| a.minima, false),
    ("won by one restart", "draws whose best minimum was found once", |a| a.best_found_once, true),
    ("won by the last", "draws that their last restart improved", |a| a.improved_by_last, true),
    (
        "unseen basins",
        "by Good and Turing: chance that one more restart ends in a new minimum",
        |a| a.unseen_good_turing,
        true,
    ),
    ("unseen basins (BRK)", "the same, by Boender and Rinnooy Kan", |a| a.unseen_boender_rinnooy_kan, true),
];

fn chains(views: &[View], table: &mut Table) {
    let part = |r: &Report, of: &dyn Fn(&ChainReport) -> f64| -> Option<Vec<f64>> {
        each(r, |d| d.chains.as_ref()).map(|all| all.into_iter().map(of).collect())
    };
    // What is not a number is worse than any that is.
    let worst = |values: Vec<f64>, pick: fn(f64, f64) -> f64| {
        if values.iter().any(|v| v.is_nan()) { f64::NAN } else { values.into_iter().fold(f64::NAN, pick) }
    };
    let count = |r: &Report| Some(fixed(part(r, &|c| c.chains as f64)?[0], 0));
    table.explained("chains", "of NUTS, in each repeat", cells(views, count));
    let rhat = |r: &Report| Some(fixed(worst(part(r, &|c| c.max_rhat)?, f64::max), 3));
    table.explained(
        "R-hat",
        "of the worst parameter; above 1.01 the chains have not mixed",
        cells(views, rhat),
    );
    let name = |r: &Report| {
        let all = each(r, |d| d.chains.as_ref())?;
        all.into_iter().max_by(|a, b| a.max_rhat.total_cmp(&b.max_rhat)).map(|c| Cell::text(c.worst.clone()))
    };
    table.explained("worst parameter", "with that R-hat", cells(views, name));
    let bulk = |r: &Report| Some(fixed(worst(part(r, &|c| c.min_ess_bulk)?, f64::min), 0));
    table.explained(
        "ESS, bulk",
        "of the worst parameter: independent draws worth as much",
        cells(views, bulk),
    );
    let tail = |r: &Report| Some(fixed(worst(part(r, &|c| c.min_ess_tail)?, f64::min), 0));
    table.explained("ESS, tail", "the same, for outer quantiles", cells(views, tail));
    let divergences = |r: &Report| Some(fixed(part(r, &|c| c.divergences as f64)?.iter().sum(), 0));
    table.explained("divergences", "trajectories that went wrong", cells(views, divergences));
    let steps = |r: &Report| Some(fixed(mean(&part(r, &|c| c.mean_steps)?), 1));
    table.explained("steps", "of a trajectory, on average", cells(views, steps));
}

fn approximations(views: &[View], table: &mut Table) {
    let fits = |r: &Report| {
        let all: Vec<&AdviReport> = each(r, |d| d.advi.as_ref())?;
        let converged = all.iter().filter(|fit| fit.converged).count();
        Some(Cell::text(format!("{converged} of {}", all.len())))
    };
    table.explained("fits converged", "of ADVI", cells(views, fits));
    let elbo = |r: &Report| Some(fixed(mean(&each(r, |d| d.advi.as_ref().map(|a| a.elbo))?), 2));
    table.explained("ELBO", "of ADVI, mean over repeats", cells(views, elbo));
    type Part = fn(&Weights) -> f64;
    let parts: [(&str, &str, Part, usize); 3] = [
        ("ESS of weights", "independent draws that the weighted ones are worth, on average", |w| w.ess, 2),
        ("log marginal likelihood", "log of the mean weight", |w| w.log_evidence, 2),
        ("draws kept", "the others weigh nothing", |w| w.kept as f64, 0),
    ];
    for (name, why, of, digits) in parts {
        let cell = |r: &Report| Some(fixed(mean(&each(r, |d| d.importance.as_ref().map(of))?), digits));
        table.explained(name, why, cells(views, cell));
    }
    let largest = |r: &Report| {
        let all = each(r, |d| d.importance.as_ref().map(|w| w.largest))?;
        Some(share(all.into_iter().fold(0.0, f64::max)))
    };
    table.explained("largest weight", "share of one draw, at worst", cells(views, largest));
}

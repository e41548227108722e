//! Medians and intervals of many parameters, one below the other.

use super::Kind;
use crate::error::{Error, Result};
use crate::plot::axes::{Axes, Axis, Ticks, airy, middle, range_of};
use crate::plot::canvas::{Anchor, Scene, Shape, Stroke};
use crate::plot::names;
use crate::plot::options::{Request, run_stroke, truth_stroke};
use crate::plot::palette::{CATEGORIES, Colour, GREY, PALE};
use crate::plot::sheet::{Entry, Mark, Sheet, Surroundings};
use crate::plot::source::Source;
use crate::plot::theme::{CELL, Role};
use crate::samples::Summary;

pub const KIND: Kind = Kind {
    name: "forest",
    about: "medians with 80 % and 95 % intervals: the default for a regression",
    overlays: true,
    uses: "units round parameters truth top xlim",
    applies: |run: &Source| run.coefficients().len() > 1 && run.path().is_none(),
    draw,
};

/// Rows on a page where nothing says how many.
const ROWS: usize = 40;
/// Height of a row on a page.
const ROW: f64 = 13.5;

fn draw(request: &Request) -> Result<Scene> {
    let rounds: Vec<usize> = request.runs.iter().map(|run| request.round(run)).collect::<Result<_>>()?;
    let summaries: Vec<Vec<Summary>> =
        request.runs.iter().zip(&rounds).map(|(run, r)| run.summaries(*r)).collect::<Result<_>>()?;
    let (rows, note) = rows(request, &summaries[0])?;
    let (low, high) = reach(request, &summaries, &rows)?;
    let coefficients = are_coefficients(&rows);
    let around = surroundings(request, &rounds, &rows, note)?;
    let per_row = ROW.max(6.0 * request.runs.len() as f64);
    let mut sheet = Sheet::new(&request.theme(468.0, 120.0 + per_row * rows.len() as f64), &around);
    let name = |name: &String| if coefficients { names::covariate(name) } else { names::label(name) };
    let names = rows.iter().enumerate().map(|(i, n)| (i as f64, name(n))).collect();
    let label = shared_units(request).map_or("β".to_owned(), |per| format!("β {per}"));
    let x = Axis::new(if coefficients { label } else { String::new() }, airy((low, high), 0.03)).grid();
    let x = x.limits(request.options.x_limits);
    // From the first row down.
    let range = (rows.len() as f64 - 0.4, -0.6);
    let y = Axis { range, ..Axis::new("", (0.0, 1.0)).ticks(Ticks::Named(names)) };
    let body = sheet.body;
    let axes = Axes::new(&mut sheet, body, x, y);
    axes.rule_x(&mut sheet, 0.0, Stroke::new(GREY, 0.9));
    for (i, name) in rows.iter().enumerate() {
        row(&mut sheet, &axes, &summaries, i as f64, name);
        if let Some(truth) = request.truth(name) {
            let points = [-0.42, 0.42].map(|up| axes.at((truth, i as f64 + up))).to_vec();
            sheet.scene.add_within(axes.rect, Shape::Line { points, stroke: truth_stroke() });
        }
    }
    Ok(sheet.scene)
}

/// What coefficients of all runs are effects of.
fn shared_units(request: &Request) -> Option<&'static str> {
    let per = request.first().per()?;
    request.runs.iter().all(|run| run.per() == Some(per)).then_some(per)
}

fn are_coefficients(rows: &[String]) -> bool {
    rows.iter().all(|name| name.starts_with("beta"))
}

/// From the lowest end of an interval to the highest; with 0 among coefficients.
fn reach(request: &Request, summaries: &[Vec<Summary>], rows: &[String]) -> Result<(f64, f64)> {
    let shown = summaries.iter().flatten().filter(|s| rows.contains(&s.parameter));
    let (low, high) = range_of(shown.flat_map(|s| [s.quantiles[0], s.quantiles[4]]));
    if !low.is_finite() {
        // Says so if all draws failed.
        request.draws(request.first(), &rows[..1])?;
        return Err(Error::input("there is nothing to draw: no interval is finite"));
    }
    let truths = rows.iter().filter_map(|name| request.truth(name));
    Ok(range_of([low, high].into_iter().chain(truths).chain(are_coefficients(rows).then_some(0.0))))
}

fn surroundings(
    request: &Request,
    rounds: &[usize],
    rows: &[String],
    note: Option<String>,
) -> Result<Surroundings> {
    let mut around =
        request.surroundings(if are_coefficients(rows) { "Coefficients" } else { "Parameters" })?;
    around.legend.extend(request.truth_entry(rows));
    around.notes.push("Dots are medians, thick lines hold 80 % and thin ones 95 % of the posterior.".into());
    if request.runs.len() == 1 {
        let apart = Entry::new(Mark::Line(Stroke::new(CATEGORIES[0], 2.5)), "95 % interval without 0");
        around.legend.splice(0..0, [apart, Entry::new(Mark::Line(Stroke::new(PALE, 2.5)), "with 0")]);
    }
    around.notes.extend(note);
    // The axis says it where all runs say the same.
    around.notes.extend(if shared_units(request).is_none() { request.units(rows) } else { Vec::new() });
    for (run, round) in request.runs.iter().zip(rounds) {
        let lost = run.report.repeats.get(round - 1).map_or(0, |r| lost(&r.diagnostics.status));
        if lost > 0 {
            around.notes.push(format!("{}: {lost} draws have no minimum and are left out.", run.label));
        }
    }
    Ok(around)
}

/// A parameter of every run that has it, the runs one below the other.
fn row(sheet: &mut Sheet, axes: &Axes, summaries: &[Vec<Summary>], row: f64, name: &str) {
    let spread = if sheet.theme.is_page() { 0.7 } else { 1.0 };
    for (k, run) in summaries.iter().enumerate() {
        let Some(summary) = run.iter().find(|s| s.parameter == name) else { continue };
        let shift = spread * ((k as f64 + 0.5) / summaries.len() as f64 - 0.5);
        let [low, .., high] = summary.quantiles;
        // An interval of one draw has no width, and is none.
        let clear = low < high && (low > 0.0 || high < 0.0);
        let colour = if summaries.len() == 1 && !clear { PALE } else { run_stroke(k).paint.colour };
        whisker(sheet, axes, summary, row + shift, colour);
    }
}

fn lost(status: &std::collections::BTreeMap<String, usize>) -> usize {
    let lost = crate::optim::Status::ALL.into_iter().filter(|s| s.is_lost());
    lost.filter_map(|s| status.get(s.name())).sum()
}

/// A terminal has one width of line: there the 80 % interval is written, with its median.
fn whisker(sheet: &mut Sheet, axes: &Axes, summary: &Summary, row: f64, colour: Colour) {
    let [q2, q10, q50, q90, q97] = summary.quantiles;
    let mut bar = |from: f64, to: f64, width: f64| {
        let points = vec![axes.at((from, row)), axes.at((to, row))];
        sheet.scene.add_within(axes.rect, Shape::Line { points, stroke: Stroke::new(colour, width) });
    };
    bar(q2, q97, 1.0);
    if !sheet.theme.is_page() {
        return written(sheet, axes, [q10, q50, q90], row, colour);
    }
    bar(q10, q90, 3.0);
    let dot = if colour == PALE { GREY } else { colour };
    let circle =
        Shape::Circle { centre: axes.at((q50, row)), radius: 2.6, fill: Some(dot.into()), stroke: None };
    sheet.scene.add_within(axes.rect, circle);
}

/// `━━●━━` over the cells from the first quantile to the last.
fn written(sheet: &mut Sheet, axes: &Axes, quantiles: [f64; 3], row: f64, colour: Colour) {
    let cell = |q: f64| (axes.px(q).clamp(axes.rect.left, axes.rect.right - CELL.0) / CELL.0).floor() as i64;
    let [first, median, last] = quantiles.map(cell);
    let text: String = (first..=last).map(|i| if i == median { '●' } else { '━' }).collect();
    let y = axes.at((0.0, row)).1 + middle(&sheet.theme);
    sheet.write(&text, Role::Tick, (first as f64 * CELL.0, y), Anchor::Start, colour);
}

/// The rows, and what to say of parameters that are not among them: the strongest are chosen, by |median| over the width of
/// the 95 % interval, and stand by the size of their median.
fn rows(request: &Request, summaries: &[Summary]) -> Result<(Vec<String>, Option<String>)> {
    let run = request.first();
    let chosen = request.chosen(run.parameters())?;
    let coefficients = run.coefficients();
    let pool = match (&chosen, coefficients.is_empty()) {
        (Some(names), _) => names.clone(),
        (None, false) => coefficients,
        (None, true) => run.parameters().to_vec(),
    };
    let line = request.theme(468.0, 312.0);
    let by_height = if line.is_page() {
        ROWS
    } else {
        ((line.height / line.line(Role::Tick)) as usize).saturating_sub(8).max(3) / request.runs.len().min(3)
    };
    let by_height = request
        .options
        .height
        .filter(|_| line.is_page())
        .map_or(by_height, |h| (((h - 120.0) / 11.0) as usize).max(3));
    let most = request.options.most.unwrap_or(by_height).max(1);
    let wanted: std::collections::HashSet<&String> = pool.iter().collect();
    let mut found: Vec<&Summary> = summaries.iter().filter(|s| wanted.contains(&s.parameter)).collect();
    if found.is_empty() {
        return Err(Error::input("the run has no draws of these parameters"));
    }
    let all = found.len();
    if all <= most && chosen.is_some() {
        return Ok((pool, None));
    }
    let strength = |s: &Summary| {
        let width = s.quantiles[4] - s.quantiles[0];
        let strength = s.quantiles[2].abs() / width.max(f64::MIN_POSITIVE);
        if strength.is_nan() { f64::NEG_INFINITY } else { strength }
    };
    found.sort_by(|a, b| strength(b).total_cmp(&strength(a)));
    found.truncate(most);
    found.sort_by(|a, b| b.quantiles[2].total_cmp(&a.quantiles[2]));
    let note = (all > most).then(|| {
        format!("{most} of {all} shown: those with the largest |median| for the width of their interval.")
    });
    Ok((found.into_iter().map(|s| s.parameter.clone()).collect(), note))
}

//! Whether R was enough: the objective of every restart of some draws, which restart found the best, and how often.

use std::sync::atomic::AtomicBool;

use super::Kind;
use crate::bootstrap::{Draw, posterior_bootstrap};
use crate::config::printable;
use crate::error::{Error, Result};
use crate::plot::axes::{Axes, Axis, Ticks};
use crate::plot::canvas::{Paint, Rect, Scene, Shape, Stroke};
use crate::plot::options::Request;
use crate::plot::palette::{CATEGORIES, Colour};
use crate::plot::sheet::{Entry, Mark, Sheet};
use crate::plot::source::Source;
use crate::restarts::same_minimum;
use crate::samples::{HITS, RESTARTS};

pub const KIND: Kind = Kind {
    name: "restarts",
    about: "objective of every restart of some draws, which restart found the best minimum, and how often it was found",
    overlays: false,
    uses: "round",
    applies: |run: &Source| {
        run.path().is_none()
            && run
                .report
                .repeats
                .first()
                .and_then(|r| r.diagnostics.restarts.as_ref())
                .is_some_and(|a| a.restarts > 1.0)
    },
    draw,
};

/// Draws that are made again, with all their restarts.
const AGAIN: usize = 12;
/// Differences below this are the same minimum.
const FLOOR: f64 = 1e-6;

fn draw(request: &Request) -> Result<Scene> {
    let run = request.first();
    let round = request.round(run)?;
    let (winners, made, hits) = counts(run, round)?;
    let again = again(run, round);
    let mut around = request.surroundings("Restarts")?;
    if let Ok(draws) = &again {
        around.legend.push(Entry::new(Mark::Dot(CATEGORIES[0]), "the best minimum"));
        around.legend.push(Entry::new(Mark::Dot(CATEGORIES[1]), "another"));
        around.notes.push(format!(
            "Above: the first {} draws, made again with all their restarts. Below: all {} draws.",
            draws.len(),
            winners.len()
        ));
    }
    if let Err(why) = &again {
        around
            .notes
            .push(format!("Without the objectives: {}", printable(&why.to_string().replace('\n', " "))));
    }
    let mut sheet = Sheet::new(&request.theme(468.0, if again.is_ok() { 420.0 } else { 280.0 }), &around);
    let mut below = sheet.body;
    if let Ok(draws) = &again {
        let cut = below.top + 0.48 * below.height();
        objectives(&mut sheet, Rect { bottom: cut - 4.0, ..below }, draws);
        below.top = cut + 4.0;
    }
    let gap = 18.0;
    let half = 0.5 * (below.width() - gap);
    found_by(&mut sheet, Rect { right: below.left + half, ..below }, &winners, made);
    found_often(&mut sheet, Rect { left: below.right - half, ..below }, &hits);
    Ok(sheet.scene)
}

/// Which restart won and how often its minimum was found, of every draw; and the most restarts.
fn counts(run: &Source, round: usize) -> Result<(Vec<f64>, usize, Vec<f64>)> {
    let shown = printable(&run.folder.display().to_string());
    if !run.has_statistic(RESTARTS) || !run.has_statistic(HITS) {
        return Err(Error::input(format!("{shown}: its method has no restarts")));
    }
    let (mut columns, lost) = run.statistics(&["restart__", RESTARTS, HITS], round)?;
    let (hits, made, winners) = (columns.remove(2), columns.remove(1), columns.remove(0));
    let most = made.iter().copied().fold(0.0, f64::max) as usize;
    match (winners.is_empty(), most) {
        (true, _) => Err(Error::input(format!("{shown}: there is nothing to draw: all {lost} draws failed"))),
        (_, 0 | 1) => {
            Err(Error::input(format!("{shown}: its draws have one start each; `sampler.R` makes more")))
        }
        _ => Ok((winners, most, hits)),
    }
}

/// The first draws with all that was found on the way.
fn again(run: &Source, round: usize) -> Result<Vec<Draw>> {
    if round > 1 && run.study()?.is_warm() {
        return Err(Error::input(
            "searches of this setting begin at the minima of the one before, which are not made again here",
        ));
    }
    let trial = run.trial(round)?;
    let pool = rayon::ThreadPoolBuilder::new().build().map_err(|e| Error::Failed(e.to_string()))?;
    let never = AtomicBool::new(false);
    let ready = trial.scheme(&pool, &never)?;
    let made = run.report.repeats.get(round - 1).map_or(AGAIN, |r| r.draws).min(AGAIN) as u64;
    let mut draws = Vec::new();
    posterior_bootstrap(
        &ready.plan(),
        0..made,
        &pool,
        &never,
        |_| (),
        |draw, ()| {
            draws.push(draw);
            Ok(())
        },
    )?;
    Ok(draws)
}

/// How far above the best of its draw each restart ended.
fn objectives(sheet: &mut Sheet, place: Rect, draws: &[Draw]) {
    let best = |d: &Draw| d.values.iter().copied().filter(|v| !v.is_nan()).fold(f64::INFINITY, f64::min);
    let above = |d: &Draw| -> Vec<f64> {
        let best = best(d);
        d.values.iter().map(|&v| if same_minimum(v, best) { 0.0 } else { v - best }).collect()
    };
    let heights: Vec<Vec<f64>> = draws.iter().map(above).collect();
    let positive = || heights.iter().flatten().copied().filter(|h| *h > 0.0 && h.is_finite());
    let highest = positive().fold(FLOOR * 100.0, f64::max);
    let lowest = positive().fold(highest, f64::min).max(FLOOR);
    let (bottom, top) = (lowest.log10().floor() - 1.0, highest.log10() + 0.15);
    let level = |h: f64| if h <= 0.0 { bottom + 0.35 } else { h.max(FLOOR).log10() };
    let powers: Vec<i32> = (lowest.log10().floor() as i32..=top.floor() as i32).collect();
    let every = powers.len().div_ceil(4).max(1);
    let name = |p: &i32| {
        (
            f64::from(*p),
            crate::plot::axes::signed(&if (-2..4).contains(p) {
                format!("{}", 10f64.powi(*p))
            } else {
                format!("1e{p}")
            }),
        )
    };
    let ticks = [(bottom + 0.35, "best".to_owned())]
        .into_iter()
        .chain(powers.iter().step_by(every).map(name))
        .collect();
    let x = Axis::new("draw", (0.4, draws.len() as f64 + 0.6)).ticks(Ticks::Whole);
    let y =
        Axis::new("objective above the best of the draw", (bottom, top)).ticks(Ticks::Named(ticks)).grid();
    let axes = Axes::new(sheet, place, x, y);
    for (i, heights) in heights.iter().enumerate() {
        let r = heights.len() as f64;
        for (k, h) in heights.iter().enumerate().filter(|(_, h)| h.is_finite()) {
            let shift = if r > 1.0 { 0.6 * (k as f64 / (r - 1.0) - 0.5) } else { 0.0 };
            let centre = axes.at((i as f64 + 1.0 + shift, level(*h)));
            let colour = CATEGORIES[usize::from(*h > 0.0)];
            let fill = Some(Paint { colour, opacity: 0.8 });
            sheet.scene.add_within(axes.rect, Shape::Circle { centre, radius: 2.2, fill, stroke: None });
        }
    }
}

/// Share of draws whose best minimum had been found by each restart.
fn found_by(sheet: &mut Sheet, place: Rect, winners: &[f64], made: usize) {
    let share =
        |r: usize| 100.0 * winners.iter().filter(|w| **w <= r as f64).count() as f64 / winners.len() as f64;
    let points: Vec<(f64, f64)> = (1..=made).map(|r| (r as f64, share(r))).collect();
    let x = Axis::new("restart", (0.7, made as f64 + 0.3)).ticks(Ticks::Whole);
    let y = Axis::new("draws whose best is found (%)", (0.0, 103.0)).grid();
    let axes = Axes::new(sheet, place, x, y);
    axes.curve(sheet, &points, Stroke::new(CATEGORIES[0], 1.6));
    for p in points.iter().filter(|_| made <= 40) {
        sheet.scene.add_within(
            axes.rect,
            Shape::Circle {
                centre: axes.at(*p),
                radius: 2.3,
                fill: Some(CATEGORIES[0].into()),
                stroke: None,
            },
        );
    }
}

/// How many restarts of a draw ended in its best minimum.
fn found_often(sheet: &mut Sheet, place: Rect, hits: &[f64]) {
    let most = hits.iter().copied().fold(1.0, f64::max) as usize;
    let share = |h: usize| 100.0 * hits.iter().filter(|v| **v == h as f64).count() as f64 / hits.len() as f64;
    let bars: Vec<(usize, f64)> = (1..=most).map(|h| (h, share(h))).collect();
    let top = bars.iter().map(|b| b.1).fold(0.0, f64::max);
    let x = Axis::new("times the best was found", (0.4, most as f64 + 0.6)).ticks(Ticks::Whole);
    let axes = Axes::new(sheet, place, x, Axis::new("draws (%)", (0.0, 1.05 * top)).grid());
    for (h, share) in bars.into_iter().filter(|b| b.1 > 0.0) {
        let ((left, top), (right, bottom)) =
            (axes.at((h as f64 - 0.38, share)), axes.at((h as f64 + 0.38, 0.0)));
        // Found once is what should worry.
        let colour: Colour = CATEGORIES[usize::from(h == 1)];
        sheet.scene.add_within(
            axes.rect,
            Shape::Box { rect: Rect::new(left, top, right, bottom), fill: Some(colour.into()), stroke: None },
        );
    }
}

//! Every pair of some parameters: densities on the diagonal, joint ones below it, correlations above.

use super::Kind;
use super::bivariate;
use super::marginal;
use crate::error::{Error, Result};
use crate::plot::axes::{Axes, Axis, Ticks, round_ticks, signed, widened};
use crate::plot::canvas::{Anchor, Rect, Scene, Shape, Stroke};
use crate::plot::kde::Density;
use crate::plot::kde2::weighted_correlation;
use crate::plot::names;
use crate::plot::options::{Request, truth_stroke};
use crate::plot::palette::{CATEGORIES, Colour, FAINT, GREY, INK, diverging};
use crate::plot::sheet::Sheet;
use crate::plot::source::{Draws, Source};
use crate::plot::theme::Role;

pub const KIND: Kind = Kind {
    name: "pairs",
    about: "every pair of some parameters: densities, contours, correlations",
    overlays: false,
    uses: "units round parameters truth top",
    applies: |run: &Source| run.parameters().len() > 2 && run.path().is_none(),
    draw,
};

/// Parameters where nothing says how many, and at most.
const SHOWN: usize = 4;
const MOST: usize = 7;
const POINTS: usize = 250;

fn draw(request: &Request) -> Result<Scene> {
    let run = request.first();
    let all = run.parameters();
    let chosen = request.chosen(all)?;
    let asked = chosen.as_ref().map(Vec::len);
    let mut names = chosen.unwrap_or_else(|| {
        all.iter().take(request.options.most.unwrap_or(SHOWN).min(MOST)).cloned().collect()
    });
    if asked.is_some_and(|n| n > MOST) && request.options.most.is_none() {
        let n = names.len();
        return Err(Error::input(format!(
            "pairs of {n} parameters are too small to read; name at most {MOST} with --parameters"
        )));
    }
    names.truncate(request.options.most.unwrap_or(MOST).min(MOST));
    if names.len() < 2 {
        return Err(Error::input("pairs need at least two parameters"));
    }
    let draws = request.draws(run, &names)?;
    let mut around = request.surroundings("Pairs of parameters")?;
    around.legend.extend(request.truth_entry(&names));
    if names.len() < all.len() && asked.is_none() {
        around.notes.push(format!(
            "The first {} of {} parameters; --parameters chooses others.",
            names.len(),
            all.len()
        ));
    }
    around.notes.extend(request.units(&names));
    around.notes.extend(request.notes(run, &draws));
    around.notes.push("Below the diagonal contours hold 50, 80 and 95 %; above it are correlations.".into());
    let side = 120.0 + 88.0 * names.len() as f64;
    let mut sheet = Sheet::new(&request.theme(side, side + 30.0), &around);
    let densities: Vec<Option<Density>> = names
        .iter()
        .zip(&draws.columns)
        .map(|(n, c)| Density::of(c, draws.weights.as_deref(), run.bounds(n)))
        .collect();
    let ranges: Vec<(f64, f64)> =
        densities.iter().map(|d| widened(d.as_ref().map_or((0.0, 1.0), Density::window))).collect();
    let cells = cells(&mut sheet, &names, &ranges);
    for (i, j) in (0..names.len()).flat_map(|i| (0..names.len()).map(move |j| (i, j))) {
        let rect = cells[i * names.len() + j];
        let frame = Stroke::new(FAINT, 0.8);
        sheet.scene.add(Shape::Box { rect, fill: None, stroke: Some(frame) });
        let x = Axis::new("", ranges[j]).ticks(Ticks::None);
        match i.cmp(&j) {
            std::cmp::Ordering::Equal => {
                diagonal(&mut sheet, request, rect, x, &names[i], densities[i].as_ref())
            }
            std::cmp::Ordering::Greater => {
                let axes = Axes::bare(rect, x, Axis::new("", ranges[i]).ticks(Ticks::None));
                below(&mut sheet, request, &axes, run, &pair(&draws, j, i));
            }
            std::cmp::Ordering::Less => {
                let r = weighted_correlation(&draws.columns[i], &draws.columns[j], draws.weights.as_deref());
                above(&mut sheet, rect, r);
            }
        }
    }
    Ok(sheet.scene)
}

fn pair(draws: &Draws, a: usize, b: usize) -> Draws {
    Draws {
        names: vec![draws.names[a].clone(), draws.names[b].clone()],
        columns: vec![draws.columns[a].clone(), draws.columns[b].clone()],
        weights: draws.weights.clone(),
        worth: draws.worth,
        lost: draws.lost,
    }
}

/// Where the cells are, row by row; names and numbers stand outside.
fn cells(sheet: &mut Sheet, names: &[String], ranges: &[(f64, f64)]) -> Vec<Rect> {
    let theme = sheet.theme;
    let p = names.len();
    let line = theme.line(Role::Tick);
    let label_line = theme.line(Role::Label);
    let labels: Vec<String> =
        names.iter().map(|n| theme.fit(&names::label(n), Role::Label, 0.2 * sheet.body.width())).collect();
    let ticks: Vec<Vec<(f64, String)>> = ranges.iter().map(|r| round_ticks(*r, 3, false)).collect();
    let widest =
        ticks.iter().skip(1).flatten().map(|(_, t)| theme.width_of(t, Role::Tick)).fold(0.0, f64::max);
    let name = labels.iter().map(|l| theme.width_of(l, Role::Label)).fold(0.0, f64::max);
    let left = sheet.body.left + name + widest + 12.0;
    let top = sheet.body.top + 2.0;
    let bottom = sheet.body.bottom - line - label_line - sheet.air(4.0);
    let gap = 5.0;
    let (w, h) = (
        (sheet.body.right - left - 8.0 - gap * (p - 1) as f64) / p as f64,
        (bottom - top - gap * (p - 1) as f64) / p as f64,
    );
    let cell = |k: usize| {
        let (x, y) = (left + (k % p) as f64 * (w + gap), top + (k / p) as f64 * (h + gap));
        Rect::new(x, y, x + w, y + h)
    };
    let cells: Vec<Rect> = (0..p * p).map(cell).collect();
    for (i, label) in labels.iter().enumerate() {
        let row = cells[i * p];
        let middle = 0.5 * (row.top + row.bottom) + 0.36 * theme.size(Role::Label);
        sheet.write(label, Role::Label, (sheet.body.left, middle), Anchor::Start, INK);
        let column = cells[(p - 1) * p + i];
        let centre = 0.5 * (column.left + column.right);
        let fitted = theme.fit(label, Role::Label, w);
        sheet.write(
            &fitted,
            Role::Label,
            (centre, sheet.body.bottom - label_line + theme.ascent(Role::Label)),
            Anchor::Middle,
            INK,
        );
        ticks_below(sheet, column, ranges[i], &ticks[i]);
        if i > 0 {
            ticks_beside(sheet, row, ranges[i], &ticks[i]);
        }
    }
    cells
}

fn ticks_below(sheet: &mut Sheet, cell: Rect, range: (f64, f64), ticks: &[(f64, String)]) {
    let theme = sheet.theme;
    let y = cell.bottom + sheet.air(3.0) + theme.ascent(Role::Tick);
    let mut last = f64::NEG_INFINITY;
    for (v, text) in ticks {
        let half = 0.5 * theme.width_of(text, Role::Tick);
        let x = cell.left + (v - range.0) / (range.1 - range.0) * cell.width();
        if x - half > last + 5.0 && x - half >= cell.left - 2.0 && x + half <= cell.right + 2.0 {
            sheet.write(text, Role::Tick, (x, y), Anchor::Middle, GREY);
            last = x + half;
        }
    }
}

fn ticks_beside(sheet: &mut Sheet, cell: Rect, range: (f64, f64), ticks: &[(f64, String)]) {
    let line = sheet.theme.line(Role::Tick);
    let mut last = f64::INFINITY;
    for (v, text) in ticks {
        let y = cell.bottom - (v - range.0) / (range.1 - range.0) * cell.height()
            + 0.36 * sheet.theme.size(Role::Tick);
        if y < last - line && y - sheet.theme.ascent(Role::Tick) > cell.top - 2.0 && y < cell.bottom + 2.0 {
            sheet.write(text, Role::Tick, (cell.left - 4.0, y), Anchor::End, GREY);
            last = y;
        }
    }
}

fn diagonal(
    sheet: &mut Sheet,
    request: &Request,
    rect: Rect,
    x: Axis,
    name: &str,
    density: Option<&Density>,
) {
    let Some(density) = density else { return };
    let top = if density.peak() > 0.0 { 1.1 * density.peak() } else { 1.0 };
    let axes = Axes::bare(rect, x, Axis::new("", (0.0, top)).ticks(Ticks::None));
    marginal::fill(sheet, &axes, density, CATEGORIES[0], 1);
    marginal::curve(sheet, &axes, density, Stroke::new(CATEGORIES[0], 1.5));
    let scale = marginal::stem_scale(std::iter::once(density));
    marginal::stems(sheet, &axes, density, scale, CATEGORIES[0]);
    request.truth(name).into_iter().for_each(|v| axes.rule_x(sheet, v, truth_stroke()));
}

fn below(sheet: &mut Sheet, request: &Request, axes: &Axes, run: &Source, draws: &Draws) {
    let surface = bivariate::surface(run, draws, [None; 2]);
    if let Some(surface) = &surface {
        bivariate::shade(sheet, axes, surface);
    }
    bivariate::points(sheet, axes, draws, Colour(60, 60, 60), POINTS);
    if let Some(surface) = &surface {
        bivariate::lines(sheet, axes, surface, &Stroke::new(Colour(38, 60, 110), 0.9));
    }
    request.truth(&draws.names[0]).into_iter().for_each(|v| axes.rule_x(sheet, v, truth_stroke()));
    request.truth(&draws.names[1]).into_iter().for_each(|v| axes.rule_y(sheet, v, truth_stroke()));
}

fn above(sheet: &mut Sheet, rect: Rect, correlation: f64) {
    // Without the sign of a zero.
    let rounded = (100.0 * correlation).round() / 100.0 + 0.0;
    let text = if correlation.is_finite() { signed(&format!("{rounded:.2}")) } else { "/".into() };
    if sheet.theme.is_page() {
        let inner = Rect::new(rect.left + 0.5, rect.top + 0.5, rect.right - 0.5, rect.bottom - 0.5);
        let fill = crate::plot::canvas::Paint { colour: diverging(correlation), opacity: 0.45 };
        sheet.scene.add(Shape::Box { rect: inner, fill: Some(fill), stroke: None });
    }
    let at = (
        0.5 * (rect.left + rect.right),
        0.5 * (rect.top + rect.bottom) + 0.36 * sheet.theme.size(Role::Label),
    );
    sheet.write(&text, Role::Label, at, Anchor::Middle, INK);
}

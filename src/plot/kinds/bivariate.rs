//! The joint density of two parameters: its regions of highest density, and draws.

use super::Kind;
use crate::error::{Error, Result};
use crate::plot::axes::{Axes, Axis, airy, range_of};
use crate::plot::canvas::{Paint, Scene, Shape, Stroke};
use crate::plot::contour::contours;
use crate::plot::kde2::{Limits, Surface};
use crate::plot::names;
use crate::plot::options::{Request, run_stroke, truth_stroke};
use crate::plot::palette::{Colour, WHITE, blend, sequential};
use crate::plot::sheet::{Sheet, Surroundings};
use crate::plot::source::{Draws, Source};

pub const KIND: Kind = Kind {
    name: "bivariate",
    about: "joint density of two parameters: contours and draws; several runs in one picture",
    overlays: true,
    uses: "units round parameters truth xlim ylim",
    applies: |run: &Source| run.parameters().len() > 1 && run.path().is_none(),
    draw,
};

/// Shares of the mass within the contours, the innermost first.
pub const SHARES: [f64; 3] = [0.5, 0.8, 0.95];
/// Draws shown as points.
const POINTS: usize = 800;

fn draw(request: &Request) -> Result<Scene> {
    let names = parameters(request)?;
    let draws: Vec<Draws> =
        request.runs.iter().map(|run| request.draws(run, &names)).collect::<Result<_>>()?;
    let (a, b) = (names::label(&names[0]), names::label(&names[1]));
    let mut around = request.surroundings(&format!("Joint posterior of {a} and {b}"))?;
    around.legend.extend(request.truth_entry(&names));
    around.notes.extend(request.units(&names));
    around.notes.extend(request.runs.iter().zip(&draws).flat_map(|(run, draws)| request.notes(run, draws)));
    let limits = [request.options.x_limits, request.options.y_limits];
    let surfaces: Vec<Option<Surface>> =
        request.runs.iter().zip(&draws).map(|(run, draws)| surface(run, draws, limits)).collect();
    add_notes(&mut around, &surfaces, &names);
    let mut sheet = Sheet::new(&request.theme(430.0, 400.0), &around);
    let range = |j: usize| {
        let covered = surfaces
            .iter()
            .flatten()
            .map(|s| if j == 0 { (s.x.low, s.x.high()) } else { (s.y.low, s.y.high()) });
        let of_surfaces = range_of(covered.flat_map(|(l, h)| [l, h]));
        let flat = surfaces.iter().any(Option::is_none);
        let values = draws.iter().flat_map(|d| d.columns[j].iter().copied()).filter(|_| flat);
        let (low, high) =
            range_of(values.chain([of_surfaces.0, of_surfaces.1]).chain(request.truth(&names[j])));
        if flat || request.truth(&names[j]).is_some() { airy((low, high), 0.04) } else { (low, high) }
    };
    let x = Axis::new(a, range(0)).limits(request.options.x_limits);
    let y = Axis::new(b, range(1)).limits(request.options.y_limits);
    let body = sheet.body;
    let axes = Axes::new(&mut sheet, body, x, y);
    for (i, (draws, surface)) in draws.iter().zip(&surfaces).enumerate() {
        let colour = run_stroke(i).paint.colour;
        let only = request.runs.len() == 1;
        if let (Some(surface), true) = (surface, only) {
            shade(&mut sheet, &axes, surface);
        }
        points(
            &mut sheet,
            &axes,
            draws,
            if only { Colour(60, 60, 60) } else { colour },
            POINTS / request.runs.len(),
        );
        if let Some(surface) = surface {
            let stroke = if only {
                Stroke::new(Colour(38, 60, 110), 1.1)
            } else {
                Stroke { width: 1.1, ..run_stroke(i) }
            };
            lines(&mut sheet, &axes, surface, &stroke);
        }
    }
    request.truth(&names[0]).into_iter().for_each(|v| axes.rule_x(&mut sheet, v, truth_stroke()));
    request.truth(&names[1]).into_iter().for_each(|v| axes.rule_y(&mut sheet, v, truth_stroke()));
    Ok(sheet.scene)
}

fn parameters(request: &Request) -> Result<Vec<String>> {
    let all = request.first().parameters();
    let names = match request.chosen(all)? {
        Some(names) => names,
        // Locations say most of a mixture.
        None => {
            let locations: Vec<String> =
                all.iter().filter(|n| n.starts_with("mu.") || n.starts_with("mu[")).cloned().collect();
            let pool = if locations.len() > 1 { &locations[..] } else { all };
            pool.iter().take(2).cloned().collect()
        }
    };
    match names.len() {
        2 => Ok(names),
        n => Err(Error::input(format!(
            "a bivariate figure needs two parameters, and these are {n}; name two with --parameters"
        ))),
    }
}

/// The joint density; `None` where a parameter does not vary or draws are too few.
pub fn surface(run: &Source, draws: &Draws, limits: [Limits; 2]) -> Option<Surface> {
    let (x, y) = (&draws.columns[0], &draws.columns[1]);
    let bounds = [run.bounds(&draws.names[0]), run.bounds(&draws.names[1])];
    let weights = draws.weights.as_deref();
    if draws.count() < 10 { None } else { Surface::within(x, y, weights, bounds, limits) }
}

fn add_notes(around: &mut Surroundings, surfaces: &[Option<Surface>], names: &[String]) {
    if surfaces.iter().any(Option::is_some) {
        around.notes.push("Contours hold 50, 80 and 95 % of the posterior.".into());
    }
    if surfaces.iter().any(Option::is_none) {
        around.notes.push(format!(
            "{} or {} does not vary, or draws are few: points only.",
            names::label(&names[0]),
            names::label(&names[1])
        ));
    }
}

/// The density as colour: the mean of four points of the grid, as colours fade into each other and weigh more than lines.
pub fn shade(sheet: &mut Sheet, axes: &Axes, surface: &Surface) {
    let peak = surface.peak();
    let faint = |share: f64| blend(WHITE, sequential(share), 0.75);
    let (columns, rows) = (surface.x.points / 2, surface.y.points / 2);
    let point = |i: usize, j: usize| surface.values[j * surface.x.points + i];
    let mean = |i, j| 0.25 * (point(i, j) + point(i + 1, j) + point(i, j + 1) + point(i + 1, j + 1));
    let cells = (0..rows).rev().flat_map(|j| (0..columns).map(move |i| (2 * i, 2 * j)));
    let cells: Vec<Colour> = cells.map(|(i, j)| faint((mean(i, j) / peak).powf(0.7) * 0.75)).collect();
    // A point of the grid is the centre of its place.
    let (hx, hy) = (0.5 * surface.x.step, 0.5 * surface.y.step);
    let (left, bottom) = axes.at((surface.x.low - hx, surface.y.low - hy));
    let (right, top) = axes.at((surface.x.high() + hx, surface.y.high() + hy));
    let rect = crate::plot::canvas::Rect::new(left, top, right, bottom);
    if sheet.theme.is_page() {
        sheet.scene.add_within(axes.inside(), Shape::Image { rect, columns, cells, smooth: true });
    }
}

pub fn lines(sheet: &mut Sheet, axes: &Axes, surface: &Surface, stroke: &Stroke) {
    // No line for a share that reaches beyond what is seen.
    let seen = surface.levels(&SHARES).into_iter().zip([1.3, 1.0, 0.7]).filter(|(level, _)| *level > 0.0);
    for (level, width) in seen {
        for line in contours(surface, level) {
            let stroke = Stroke { width: width * stroke.width, ..stroke.clone() };
            axes.curve(sheet, &line, stroke);
        }
    }
}

/// Some of the draws; those with more weight are larger. A terminal has no room for them beside the contours.
pub fn points(sheet: &mut Sheet, axes: &Axes, draws: &Draws, colour: Colour, most: usize) {
    if !sheet.theme.is_page() && draws.count() >= 10 {
        return;
    }
    let share = |i: usize| draws.weight(i) * draws.count() as f64;
    for i in draws.thinned(most.max(1)) {
        let (x, y) = (draws.columns[0][i], draws.columns[1][i]);
        let radius = 1.1 * share(i).sqrt().clamp(0.3, 3.0);
        if x.is_finite() && y.is_finite() {
            let fill = Some(Paint { colour, opacity: 0.35 });
            sheet
                .scene
                .add_within(axes.rect, Shape::Circle { centre: axes.at((x, y)), radius, fill, stroke: None });
        }
    }
}

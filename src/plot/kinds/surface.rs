//! The density of one parameter along a path, as a field of colour.

use rayon::prelude::*;

use super::Kind;
use super::path::{Abscissa, no_path};
use crate::error::{Error, Result};
use crate::math::quantile_sorted;
use crate::plot::axes::{Axes, Axis, airy, range_of};
use crate::plot::canvas::{Scene, Shape, Stroke};
use crate::plot::kde::Density;
use crate::plot::names;
use crate::plot::options::{Request, truth_stroke};
use crate::plot::palette::{CATEGORIES, Colour, sequential};
use crate::plot::sheet::{Entry, Mark, Sheet};
use crate::plot::source::{Draws, Source};

pub const KIND: Kind = Kind {
    name: "surface",
    about: "density of one kept parameter along a path, as a field of colour",
    overlays: false,
    uses: "parameters log truth xlim ylim",
    applies: |run: &Source| run.path().is_some() && !run.parameters().is_empty(),
    draw,
};

/// Cells along the path, and across it.
const COLUMNS: usize = 360;
const ROWS: usize = 220;

fn draw(request: &Request) -> Result<Scene> {
    let run = request.first();
    if run.path().is_none() {
        return Err(no_path(run));
    }
    let name = parameter(request)?;
    let abscissa = Abscissa::of(run)?;
    let draws = run.by_round(&name)?;
    let medians: Vec<f64> = draws.iter().map(|d| quantile(d, 0.5)).collect();
    let ends = draws.iter().flat_map(|d| [quantile(d, 0.005), quantile(d, 0.995)]);
    let (low, high) = range_of(ends);
    if !low.is_finite() {
        return Err(Error::input("there is nothing to draw: all draws failed"));
    }
    let label = names::label(&name);
    let mut around = crate::plot::sheet::Surroundings {
        title: request
            .options
            .title
            .clone()
            .unwrap_or_else(|| format!("Posterior of {label} along the path")),
        subtitle: format!("{} · {} settings", run.label, run.rounds()),
        ..Default::default()
    };
    let line = Stroke::new(CATEGORIES[1], 1.6);
    around.legend.push(Entry::new(Mark::Line(line.clone()), "median"));
    around.legend.extend(request.truth(&name).map(|_| Entry::new(Mark::Line(truth_stroke()), "true value")));
    around.notes.push("Colour is density, darkest at the peak of each setting.".into());
    let mut sheet = Sheet::new(&request.theme(468.0, 330.0), &around);
    let y = Axis::new(label, airy((low, high), 0.02)).limits(request.options.y_limits);
    let body = sheet.body;
    let axes = Axes::new(&mut sheet, body, abscissa.axis(request), y);
    let cells = cells(&axes, &abscissa.values, &draws, run.bounds(&name));
    sheet
        .scene
        .add_within(axes.inside(), Shape::Image { rect: axes.rect, columns: COLUMNS, cells, smooth: false });
    let mut points: Vec<(f64, f64)> = abscissa.values.iter().copied().zip(medians).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    axes.curve(&mut sheet, &points, line);
    request.truth(&name).into_iter().for_each(|v| axes.rule_y(&mut sheet, v, truth_stroke()));
    Ok(sheet.scene)
}

fn parameter(request: &Request) -> Result<String> {
    let run = request.first();
    if run.parameters().is_empty() {
        return Err(Error::input("the path kept no draws; name parameters in `path.keep` and run it again"));
    }
    match request.chosen(run.parameters())? {
        None => Ok(run.parameters()[0].clone()),
        Some(names) if names.len() == 1 => Ok(names[0].clone()),
        Some(names) => {
            Err(Error::input(format!("a surface shows one parameter, and these are {}", names.len())))
        }
    }
}

fn quantile(draws: &Draws, q: f64) -> f64 {
    let mut sorted: Vec<f64> = draws.columns[0].iter().copied().filter(|v| v.is_finite()).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    quantile_sorted(&sorted, q)
}

/// Colours, row after row from the top: every column has the density of the setting that is nearest on the axis.
fn cells(axes: &Axes, at: &[f64], draws: &[Draws], bounds: crate::plot::kde::Bounds) -> Vec<Colour> {
    let (low, high) = axes.y_range();
    let level = |row: usize| high - (row as f64 + 0.5) / ROWS as f64 * (high - low);
    let half = 0.5 * (high - low) / ROWS as f64;
    let column = |d: &Draws| -> Vec<f64> {
        let Some(density) = Density::of(&d.columns[0], d.weights.as_deref(), bounds) else {
            return vec![0.0; ROWS];
        };
        let mut heights: Vec<f64> =
            (0..ROWS).map(|row| density.over(level(row) - half, level(row) + half)).collect();
        let peak = heights.iter().copied().fold(0.0, f64::max);
        heights.iter_mut().for_each(|h| *h /= peak.max(f64::MIN_POSITIVE));
        for spike in &density.spikes {
            let row = (high - spike.at) / (high - low) * ROWS as f64 - 0.5;
            // As thick as a line.
            let near = |i: &usize| (*i as f64 - row).abs() <= 1.0;
            (0..ROWS).filter(near).for_each(|i| heights[i] = heights[i].max(spike.mass.sqrt()));
        }
        heights
    };
    let densities: Vec<Vec<f64>> = draws.par_iter().map(column).collect();
    let spots: Vec<f64> = at.iter().map(|x| axes.px(*x)).collect();
    let nearest = |i: usize| {
        let x = axes.rect.left + (i as f64 + 0.5) / COLUMNS as f64 * axes.rect.width();
        (0..spots.len())
            .min_by(|&a, &b| (spots[a] - x).abs().total_cmp(&(spots[b] - x).abs()))
            .expect("a path has settings")
    };
    let of: Vec<usize> = (0..COLUMNS).map(nearest).collect();
    (0..ROWS)
        .flat_map(|row| of.iter().map(move |&t| (t, row)))
        .map(|(t, row)| sequential(densities[t][row].powf(0.7)))
        .collect()
}

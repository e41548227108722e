//! Marginal densities: a panel for each parameter, a line for each run.

use super::Kind;
use crate::error::{Error, Result};
use crate::plot::axes::{Axes, Axis, Ticks, airy, range_of, short};
use crate::plot::canvas::{Anchor, Paint, Point, Rect, Scene, Shape, Stroke};
use crate::plot::kde::{Density, Spike};
use crate::plot::names;
use crate::plot::options::{Request, run_stroke, truth_stroke};
use crate::plot::palette::{Colour, GREY, INK, blend};
use crate::plot::sheet::{Entry, Mark, Sheet};
use crate::plot::source::{Draws, Source};
use crate::plot::theme::{Role, Theme};

pub const KIND: Kind = Kind {
    name: "marginal",
    about: "densities of one or more parameters; several runs in one panel",
    overlays: true,
    uses: "units round parameters normal log truth top xlim ylim",
    applies: |run: &Source| !run.parameters().is_empty() && run.path().is_none(),
    draw,
};

/// Panels where nothing says how many.
const PANELS: usize = 12;
/// Points of a curve.
const POINTS: usize = 400;
/// A peak this many times as high as the rest is cut.
const THIN: f64 = 8.0;
/// How high the marks of single draws are.
const RUG: f64 = 9.0;
/// Draws that are so few that they are shown one by one below their density.
const FEW: usize = 20;
/// Spikes of a panel that have their shares written above them.
const WRITTEN: usize = 3;
/// Where there are more, those from here on are written, if they are no more than that.
const LARGE: f64 = 0.05;
/// From one such share to the next.
const BETWEEN: f64 = 8.0;

fn draw(request: &Request) -> Result<Scene> {
    let (names, note) = parameters(request)?;
    let draws: Vec<Draws> =
        request.runs.iter().map(|run| request.draws(run, &present(run, &names))).collect::<Result<_>>()?;
    let panels: Vec<Panel> = names.iter().map(|name| Panel::new(request, name, &draws)).collect();
    let one = names.len() == 1;
    let title = match &names[..] {
        [name] => format!("Posterior of {}", names::label(name)),
        _ => "Marginal posteriors".to_owned(),
    };
    let mut around = request.surroundings(&title)?;
    let normal =
        request.options.normal.map(|(m, s)| Entry::new(Mark::Line(normal_stroke()), normal_name(m, s)));
    around.legend.extend(normal);
    around.legend.extend(request.truth_entry(&names));
    around.notes.extend(note);
    around.notes.extend(request.units(&names));
    around.notes.extend(request.runs.iter().zip(&draws).flat_map(|(run, draws)| request.notes(run, draws)));
    around.notes.extend(request.runs.iter().zip(&draws).filter(|(_, d)| d.count() < FEW).map(few));
    around.notes.extend(beyond(&panels));
    around.notes.extend(cut(request, &panels));
    let columns = if one {
        1
    } else {
        panels.len().min(if panels.len().is_multiple_of(3) || panels.len() > 4 { 3 } else { 2 })
    };
    let rows = panels.len().div_ceil(columns);
    let height = if one { 312.0 } else { 110.0 + 96.0 * rows as f64 };
    let mut sheet = Sheet::new(&request.theme(468.0, height), &around);
    let places = sheet.panels(rows, columns);
    let lines = panels.iter().zip(&places).map(|(panel, place)| panel.lines(&sheet.theme, request, place));
    let lines = lines.max().unwrap_or(0);
    for (panel, place) in panels.iter().zip(places) {
        panel.draw(&mut sheet, request, place, one, lines);
    }
    Ok(sheet.scene)
}

/// Which parameters, and what to say of those that are not shown.
fn parameters(request: &Request) -> Result<(Vec<String>, Option<String>)> {
    let first = request.first();
    let shared: Vec<String> = first
        .parameters()
        .iter()
        .filter(|name| request.runs.iter().all(|r| r.parameters().contains(name)))
        .cloned()
        .collect();
    if let Some(names) = request.chosen(first.parameters())? {
        return Ok((names, None));
    }
    if shared.is_empty() {
        let what = if request.runs.len() > 1 {
            "the runs have no parameter in common"
        } else {
            "the run has no draws of any parameter"
        };
        return Err(Error::input(what));
    }
    let most = request.options.most.unwrap_or(PANELS).max(1);
    let note = (shared.len() > most)
        .then(|| format!("The first {most} of {} parameters; --parameters chooses others.", shared.len()));
    Ok((shared.into_iter().take(most).collect(), note))
}

/// Those of the names that a run has.
fn present(run: &Source, names: &[String]) -> Vec<String> {
    names.iter().filter(|n| run.parameters().contains(n)).cloned().collect()
}

fn normal_stroke() -> Stroke {
    Stroke::new(INK, 1.2).dashed(&[4.0, 2.5])
}

fn normal_name(mean: f64, sd: f64) -> String {
    format!("N({}, {}²)", short(mean), short(sd))
}

/// Said where a peak is cut.
fn cut(request: &Request, panels: &[Panel]) -> Option<String> {
    let thin = |panel: &Panel| {
        let range = panel.x_range(request);
        panel.densities.iter().any(|(_, d)| useful_height(d, range) < d.peak())
    };
    panels.iter().any(thin).then(|| "Peaks that are so thin that all else would lie flat are cut.".to_owned())
}

/// Said where a density is little more than its bandwidth.
fn few((run, draws): (&Source, &Draws)) -> String {
    let draws = crate::words::counted(draws.count(), "draw");
    format!("{}: {draws}, marked below; the shape of a density of so few is that of its kernel.", run.label)
}

fn beyond(panels: &[Panel]) -> Option<String> {
    let share = panels.iter().flat_map(|p| &p.densities).map(|(_, d)| d.beyond).fold(0.0, f64::max);
    (share > 0.0)
        .then(|| format!("Up to {} % of the draws lie far outside and are not shown.", short(100.0 * share)))
}

/// What is written of a value that many draws share.
struct Share {
    at: f64,
    mass: f64,
    text: String,
    colour: Colour,
}

/// One parameter of every run that has it.
struct Panel {
    name: String,
    /// By the number of the run.
    densities: Vec<(usize, Density)>,
    /// The draws themselves, where they are few.
    few: Vec<(usize, Vec<f64>)>,
}

impl Panel {
    fn new(request: &Request, name: &str, draws: &[Draws]) -> Panel {
        let density = |(i, draws): (usize, &Draws)| {
            let bounds = request.runs[i].bounds(name);
            Some((i, Density::of(draws.column(name)?, draws.weights.as_deref(), bounds)?))
        };
        let few = draws.iter().enumerate().filter(|(_, d)| d.count() < FEW);
        let few = few.filter_map(|(i, d)| Some((i, d.column(name)?.to_vec()))).collect();
        Panel {
            name: name.to_owned(),
            densities: draws.iter().enumerate().filter_map(density).collect(),
            few,
        }
    }

    fn x_range(&self, request: &Request) -> (f64, f64) {
        let windows: Vec<(f64, f64)> = self.densities.iter().map(|(_, d)| d.window()).collect();
        let normal = request.options.normal.map(|(m, s)| [m - 3.2 * s, m + 3.2 * s]);
        let ends = windows.iter().flat_map(|(a, b)| [*a, *b]).chain(normal.into_iter().flatten());
        let (low, high) = range_of(ends.chain(request.truth(&self.name)));
        let flat = self.densities.iter().all(|(_, d)| d.values.is_empty());
        if flat || request.truth(&self.name).is_some() { airy((low, high), 0.08) } else { (low, high) }
    }

    /// The range that is seen.
    fn seen(&self, request: &Request) -> (f64, f64) {
        request.options.x_limits.unwrap_or_else(|| self.x_range(request))
    }

    /// Values that many draws share, with their shares in words; none if they are too many to be read.
    fn shares(&self, request: &Request) -> Vec<Share> {
        let (low, high) = self.seen(request);
        let of_run = |(i, density): &(usize, Density)| -> Vec<Share> {
            let all = density.spikes.len() == 1 && density.values.is_empty();
            let share = |spike: &Spike| match all {
                true => "all draws".to_owned(),
                false => format!("{} %", short(100.0 * spike.mass)),
            };
            let colour = match self.densities.len() {
                1 => GREY,
                _ => blend(run_stroke(*i).paint.colour, INK, 0.4),
            };
            let shown = density.spikes.iter().filter(|spike| (low..=high).contains(&spike.at));
            let text = |spike: &Spike| format!("{} at {}", share(spike), short(spike.at));
            shown.map(|spike| Share { at: spike.at, mass: spike.mass, text: text(spike), colour }).collect()
        };
        let mut all: Vec<Share> = self.densities.iter().flat_map(of_run).collect();
        if all.len() > WRITTEN {
            all.retain(|share| share.mass >= LARGE);
        }
        if all.len() > WRITTEN { Vec::new() } else { all }
    }

    /// Lines that the shares of spikes take above the panel: one if they fit beside each other.
    fn lines(&self, theme: &Theme, request: &Request, place: &Rect) -> usize {
        let shares = self.shares(request);
        let width: f64 = shares.iter().map(|share| theme.width_of(&share.text, Role::Tick) + BETWEEN).sum();
        if width > place.width() { shares.len() } else { shares.len().min(1) }
    }

    /// The shares of spikes, each above its own, in lines between the label of the panel and the panel, where no curve is.
    fn write_shares(&self, sheet: &mut Sheet, request: &Request, place: Rect, axes: &Axes) {
        let (theme, mut shares) = (sheet.theme, self.shares(request));
        let line = theme.line(Role::Tick);
        let lines = self.lines(&theme, request, &place);
        if lines == 1 {
            shares.sort_by(|a, b| a.at.total_cmp(&b.at));
        }
        let width = |share: &Share| theme.width_of(&share.text, Role::Tick);
        let mut left = place.left;
        for (i, share) in shares.iter().enumerate() {
            let row = if lines == 1 { 0 } else { i };
            // Room for those that come after it on its line.
            let after: f64 = match lines {
                1 => shares[i + 1..].iter().map(|share| width(share) + BETWEEN).sum(),
                _ => 0.0,
            };
            let most = place.right - after - width(share);
            let x = (axes.px(share.at) - 0.5 * width(share)).min(most).max(left);
            let y = axes.rect.top - line * (lines - row) as f64 + theme.ascent(Role::Tick) - sheet.air(2.0);
            sheet.write(
                &theme.fit(&share.text, Role::Tick, place.right - x),
                Role::Tick,
                (x, y),
                Anchor::Start,
                share.colour,
            );
            if lines == 1 {
                left = x + width(share) + BETWEEN;
            }
        }
    }

    fn draw(&self, sheet: &mut Sheet, request: &Request, place: Rect, alone: bool, lines: usize) {
        let label = names::label(&self.name);
        let normal_peak = request.options.normal.map_or(0.0, |(_, s)| 0.398_942_28 / s);
        let range = self.seen(request);
        let heights = self.densities.iter().map(|(_, d)| useful_height(d, range));
        let peak = heights.fold(normal_peak, f64::max);
        let top = if peak > 0.0 { 1.08 * peak } else { 1.0 };
        let x = Axis::new(if alone { label.clone() } else { String::new() }, self.x_range(request));
        let x = x.limits(request.options.x_limits).log(request.options.log);
        let bare = !alone || peak <= 0.0;
        let y = Axis::new(if alone { "density".to_owned() } else { label }, (0.0, top));
        let y = y.ticks(if bare { Ticks::None } else { Ticks::Round }).limits(request.options.y_limits);
        let y = y.headroom(lines as f64 * sheet.theme.line(Role::Tick));
        let axes = Axes::new(sheet, place, x, y);
        for (i, density) in &self.densities {
            fill(sheet, &axes, density, run_stroke(*i).paint.colour, self.densities.len());
        }
        for (i, values) in &self.few {
            rug(sheet, &axes, values, run_stroke(*i).paint.colour);
        }
        let scale = stem_scale(self.densities.iter().map(|(_, density)| density));
        for (i, density) in &self.densities {
            curve(sheet, &axes, density, run_stroke(*i));
            stems(sheet, &axes, density, scale, run_stroke(*i).paint.colour);
        }
        self.write_shares(sheet, request, place, &axes);
        if let Some((mean, sd)) = request.options.normal {
            let (low, high) = axes.x_range();
            let density = |x: f64| libm::exp(crate::math::log_normal_density(x, mean, sd));
            let points: Vec<Point> = steps(low, high).map(|x| (x, density(x))).collect();
            axes.curve(sheet, &points, normal_stroke());
        }
        if let Some(truth) = request.truth(&self.name) {
            axes.rule_x(sheet, truth, truth_stroke());
        }
    }
}

fn steps(low: f64, high: f64) -> impl Iterator<Item = f64> {
    (0..=POINTS).map(move |i| low + (high - low) * i as f64 / POINTS as f64)
}

/// Points of a density within the axes, ending where it ends.
pub fn outline(axes: &Axes, density: &Density) -> Vec<Point> {
    let (low, high) = axes.x_range();
    let (low, high) = (low.max(density.low), high.min(density.high()));
    if density.values.is_empty() || low >= high {
        return Vec::new();
    }
    let half = 0.5 * (high - low) / POINTS as f64;
    steps(low, high).map(|x| (x, density.over(x - half, x + half))).collect()
}

/// How high a panel must reach: to the peak, unless that is so thin that all else would lie flat.
fn useful_height(density: &Density, (low, high): (f64, f64)) -> f64 {
    let half = 0.5 * (high - low) / POINTS as f64;
    let mut heights: Vec<f64> = steps(low, high).map(|x| density.over(x - half, x + half)).collect();
    heights.sort_unstable_by(f64::total_cmp);
    let usual = crate::math::quantile_sorted(&heights, 0.97);
    if density.peak() > THIN * usual && usual > 0.0 { 0.5 * THIN * usual } else { density.peak() }
}

pub fn fill(sheet: &mut Sheet, axes: &Axes, density: &Density, colour: Colour, among: usize) {
    let points = outline(axes, density);
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return };
    let ground = |x: f64| (axes.at((x, 0.0)).0, axes.rect.bottom);
    let shape = [ground(first.0)]
        .into_iter()
        .chain(points.iter().map(|p| axes.at(*p)))
        .chain([ground(last.0)])
        .collect();
    let opacity = if among > 2 { 0.08 } else { 0.16 };
    sheet.scene.add_within(axes.inside(), Shape::Polygon { points: shape, fill: Paint { colour, opacity } });
}

/// A short line upwards from the axis for each draw.
fn rug(sheet: &mut Sheet, axes: &Axes, values: &[f64], colour: Colour) {
    for x in values.iter().filter(|v| v.is_finite()).map(|v| axes.px(*v)) {
        let points = vec![(x, axes.rect.bottom), (x, axes.rect.bottom - RUG)];
        sheet.scene.add_within(axes.rect, Shape::Line { points, stroke: Stroke::new(colour, 1.2) });
    }
}

pub fn curve(sheet: &mut Sheet, axes: &Axes, density: &Density, stroke: Stroke) {
    let mut points = outline(axes, density);
    // A density that ends at a bound ends there on the picture, too.
    if let Some(first) = points.first().copied().filter(|p| p.1 > 0.0 && p.0 <= density.low + density.step) {
        points.insert(0, (first.0, 0.0));
    }
    if let Some(last) = points.last().copied().filter(|p| p.1 > 0.0 && p.0 >= density.high() - density.step) {
        points.push((last.0, 0.0));
    }
    axes.curve(sheet, &points, stroke);
}

/// The share that reaches to the top: all draws; of values that can be no others, the largest share.
pub fn stem_scale<'a>(densities: impl Iterator<Item = &'a Density> + Clone) -> f64 {
    let largest = densities.clone().flat_map(|d| &d.spikes).map(|spike| spike.mass).fold(0.0, f64::max);
    if densities.clone().all(|d| d.values.is_empty()) { largest } else { 1.0 }
}

/// A stem for each value that many draws share, as high as its share of `scale`.
pub fn stems(sheet: &mut Sheet, axes: &Axes, density: &Density, scale: f64, colour: Colour) {
    let (low, high) = axes.x_range();
    for spike in density.spikes.iter().filter(|s| (low..=high).contains(&s.at)) {
        let x = axes.px(spike.at);
        let tip = (x, axes.rect.bottom - 0.94 * axes.rect.height() * spike.mass / scale);
        sheet.scene.line((x, axes.rect.bottom), tip, Stroke::new(colour, 1.8));
        sheet.scene.add(Shape::Circle { centre: tip, radius: 2.6, fill: Some(colour.into()), stroke: None });
    }
}

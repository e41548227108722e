//! The density of a mixture over the histogram of its data, with its pointwise band.

use super::Kind;
use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::math::log_normal_density;
use crate::plot::axes::{Axes, Axis, Ticks, range_of};
use crate::plot::canvas::{Paint, Rect, Scene, Shape, Stroke};
use crate::plot::options::Request;
use crate::plot::palette::{CATEGORIES, Colour};
use crate::plot::sheet::{Entry, Mark, Sheet};
use crate::plot::source::{Draws, Source};

pub const KIND: Kind = Kind {
    name: "mixture",
    about: "density of a mixture, with its 80 % band, over the histogram of the data",
    overlays: false,
    uses: "round parameters xlim ylim",
    applies,
    draw,
};

pub fn applies(run: &Source) -> bool {
    run.path().is_none() && !components(run.parameters()).is_empty()
}

/// Draws that the band is made of, and points of a curve.
const DRAWS: usize = 600;
const POINTS: usize = 240;
/// Columns of the data that are shown of a mixture in many.
const COLUMNS: usize = 6;
const BAR: Colour = Colour(205, 205, 205);

/// A component: the names of its weight, means and variances.
struct Component {
    weight: String,
    means: Vec<String>,
    variances: Vec<String>,
}

/// The components that names tell of: `pi.k`, `mu.k` or `mu.k.j`, and the variances of columns, `sigma2.k` or `sigma2.k.j`, or on the
/// diagonal of `Sigma.k` or `Sigma`; with dots or brackets.
fn components(names: &[String]) -> Vec<Component> {
    let has = |name: &String| names.contains(name);
    let find = |head: &str, k: usize, j: Option<usize>| {
        let (dot, bracket) = match j {
            None => (format!("{head}.{k}"), format!("{head}[{k}]")),
            Some(j) => (format!("{head}.{k}.{j}"), format!("{head}[{k},{j}]")),
        };
        if has(&dot) { Some(dot) } else { Some(bracket).filter(has) }
    };
    let all = |head: &str, k: usize| -> Vec<String> {
        let one: Vec<String> = find(head, k, None).into_iter().collect();
        if one.is_empty() { (1..).map_while(|j| find(head, k, Some(j))).collect() } else { one }
    };
    let first =
        |dots: String, brackets: String| if has(&dots) { Some(dots) } else { Some(brackets).filter(has) };
    let variances = |k: usize, d: usize| -> Vec<String> {
        let own = all("sigma2", k);
        let matrix = |j: usize| first(format!("Sigma.{k}.{j}.{j}"), format!("Sigma[{k},{j},{j}]"));
        let shared = |j: usize| first(format!("Sigma.{j}.{j}"), format!("Sigma[{j},{j}]"));
        match own.len() {
            0 => (1..=d).map_while(|j| matrix(j).or_else(|| shared(j))).collect(),
            1 => vec![own[0].clone(); d],
            _ => own,
        }
    };
    let component = |k: usize| {
        let means = all("mu", k);
        let variances = variances(k, means.len());
        let weight = find("pi", k, None)?;
        (!means.is_empty() && means.len() == variances.len()).then_some(Component {
            weight,
            means,
            variances,
        })
    };
    (1..).map_while(component).collect()
}

fn draw(request: &Request) -> Result<Scene> {
    let run = request.first();
    let components = components(run.parameters());
    let Some(d) = components.first().map(|c| c.means.len()) else {
        return Err(Error::input(
            "the run is no mixture of Gaussians: it has no parameters pi, mu and sigma2 or Sigma",
        ));
    };
    let trial = run.trial(request.round(run)?);
    let data = trial.as_ref().ok().map(|trial| trial.train.as_ref());
    let columns = chosen(request, data)?.unwrap_or_else(|| widest(data, d));
    let draws = request.draws(run, run.parameters())?;
    let mut around = request.surroundings("Density of the mixture")?;
    let stroke = Stroke::new(CATEGORIES[0], 1.8);
    if data.is_some() {
        around.legend.push(Entry::new(Mark::Field(BAR.into()), "data"));
    }
    around.legend.push(Entry::new(Mark::Band(stroke.clone()), "mean and 80 % band"));
    if let Err(why) = &trial {
        let why = crate::config::printable(&why.to_string().replace('\n', " "));
        around.notes.push(format!("Without the histogram: {why}"));
    }
    if columns.len() < d && request.options.parameters.is_empty() {
        around.notes.push(format!("{} of {d} columns: those that vary most.", columns.len()));
    }
    around.notes.extend(request.notes(run, &draws).into_iter().filter(|note| !note.contains("any order")));
    let across = if columns.len() == 1 { 1 } else { columns.len().min(3) };
    let rows = columns.len().div_ceil(across);
    let height = if columns.len() == 1 { 312.0 } else { 120.0 + 130.0 * rows as f64 };
    let mut sheet = Sheet::new(&request.theme(468.0, height), &around);
    let places = sheet.panels(rows, across);
    for (&j, place) in columns.iter().zip(places) {
        let column = Column::new(request, &components, &draws, data, j);
        column.draw(&mut sheet, request, place, columns.len() == 1, &stroke);
    }
    Ok(sheet.scene)
}

/// `--parameters` means columns of the data here.
fn chosen(request: &Request, data: Option<&Dataset>) -> Result<Option<Vec<usize>>> {
    let patterns = &request.options.parameters;
    if patterns.is_empty() {
        return Ok(None);
    }
    let Some(data) = data else {
        return Err(Error::input("--parameters chooses columns of the data, and they are not here"));
    };
    let names = crate::plot::names::choose_among("column", patterns, &data.columns)?;
    let places = names.iter().take(COLUMNS).filter_map(|n| data.columns.iter().position(|c| c == n));
    Ok(Some(places.collect()))
}

/// The columns that vary most in the data; the first where there are none.
fn widest(data: Option<&Dataset>, d: usize) -> Vec<usize> {
    let mut columns: Vec<usize> = (0..d).collect();
    if let Some(data) = data.filter(|data| d > COLUMNS && data.d() == d) {
        let moments = data.moments();
        columns.sort_by(|&a, &b| moments[b].1.total_cmp(&moments[a].1));
    }
    columns.truncate(COLUMNS);
    columns.sort_unstable();
    columns
}

/// One column of the data: its histogram and the density of the mixture.
struct Column {
    name: String,
    bars: Vec<(f64, f64, f64)>,
    /// x, 10 %, mean, 90 %.
    curve: Vec<(f64, [f64; 3])>,
}

impl Column {
    fn new(
        request: &Request,
        components: &[Component],
        draws: &Draws,
        data: Option<&Dataset>,
        j: usize,
    ) -> Column {
        let values: Vec<f64> = data.map_or(Vec::new(), |data| data.x.column(j).collect());
        let name = data
            .and_then(|data| data.columns.get(j))
            .map_or(format!("column {}", j + 1), |n| crate::config::printable(n));
        let range = request.options.x_limits.unwrap_or_else(|| match data {
            Some(_) => crate::plot::axes::airy(range_of(values.iter().copied()), 0.05),
            None => spread(components, draws, j),
        });
        let weight = |i: usize| data.map_or(1.0, |data| data.weight(i));
        Column { name, bars: histogram(&values, &weight), curve: curve(components, draws, j, range) }
    }

    fn draw(&self, sheet: &mut Sheet, request: &Request, place: Rect, alone: bool, stroke: &Stroke) {
        let top = self
            .curve
            .iter()
            .map(|(_, q)| q[1].max(q[2]))
            .chain(self.bars.iter().map(|b| b.2))
            .fold(0.0, f64::max);
        // A spike of the likelihood would leave nothing of the rest to see.
        let usual = self.bars.iter().map(|b| b.2).fold(0.0, f64::max);
        let top = if usual > 0.0 { top.min(2.5 * usual) } else { top };
        let (low, high) = (self.curve[0].0, self.curve[self.curve.len() - 1].0);
        let x = Axis::new(if alone { self.name.clone() } else { String::new() }, (low, high));
        let y = Axis::new(if alone { "density".to_owned() } else { self.name.clone() }, (0.0, 1.06 * top));
        let y = y.ticks(if alone { Ticks::Round } else { Ticks::None }).limits(request.options.y_limits);
        let axes = Axes::new(sheet, place, x, y);
        for &(left, right, height) in &self.bars {
            let ((left, top), (right, bottom)) = (axes.at((left, height)), axes.at((right, 0.0)));
            let rect = Rect::new(left, top, right, bottom);
            let edge = Stroke::new(crate::plot::palette::WHITE, 0.5);
            sheet.scene.add_within(
                axes.inside(),
                Shape::Box { rect, fill: Some(Paint::from(BAR)), stroke: Some(edge) },
            );
        }
        let band: Vec<(f64, f64, f64)> = self.curve.iter().map(|(x, q)| (*x, q[0], q[2])).collect();
        axes.band(sheet, &band, Paint { colour: stroke.paint.colour, opacity: 0.25 });
        let mean: Vec<(f64, f64)> = self.curve.iter().map(|(x, q)| (*x, q[1])).collect();
        axes.curve(sheet, &mean, stroke.clone());
    }
}

/// Where the components are, three standard deviations around: for runs whose data are not here.
fn spread(components: &[Component], draws: &Draws, j: usize) -> (f64, f64) {
    let ends = components.iter().flat_map(|c| {
        let (m, s) = (draws.column(&c.means[j]), draws.column(&c.variances[j]));
        m.into_iter()
            .zip(s)
            .flat_map(|(m, s)| m.iter().zip(s).flat_map(|(m, s)| [m - 3.0 * s.sqrt(), m + 3.0 * s.sqrt()]))
    });
    let mut ends: Vec<f64> = ends.filter(|v| v.is_finite()).collect();
    ends.sort_unstable_by(f64::total_cmp);
    let q = |q: f64| crate::math::quantile_sorted(&ends, q);
    crate::plot::axes::widened((q(0.01), q(0.99)))
}

/// Bars by the rule of Freedman and Diaconis, which is for one mode, or √n if those are more; between 10 and 60 of them: left,
/// right, height.
fn histogram(values: &[f64], weight: &dyn Fn(usize) -> f64) -> Vec<(f64, f64, f64)> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let (Some(&low), Some(&high)) = (sorted.first(), sorted.last()) else { return Vec::new() };
    if high <= low {
        return Vec::new();
    }
    let iqr = crate::math::quantile_sorted(&sorted, 0.75) - crate::math::quantile_sorted(&sorted, 0.25);
    let wish = (high - low) / (2.0 * iqr / (sorted.len() as f64).cbrt()).max(1e-300);
    let count = wish.max((sorted.len() as f64).sqrt()).clamp(10.0, 60.0).ceil() as usize;
    let step = (high - low) / count as f64;
    let mut mass = vec![0.0; count];
    for (i, v) in values.iter().enumerate().filter(|(_, v)| v.is_finite()) {
        mass[(((v - low) / step) as usize).min(count - 1)] += weight(i);
    }
    let total: f64 = mass.iter().sum();
    let bar = |(i, m): (usize, f64)| (low + step * i as f64, low + step * (i + 1) as f64, m / total / step);
    mass.into_iter().enumerate().map(bar).collect()
}

/// Σ π N(x; μ, σ²) of some draws at each point: 10 %, mean and 90 %.
fn curve(components: &[Component], draws: &Draws, j: usize, (low, high): (f64, f64)) -> Vec<(f64, [f64; 3])> {
    let parts: Vec<[&[f64]; 3]> = components
        .iter()
        .filter_map(|c| {
            Some([draws.column(&c.weight)?, draws.column(&c.means[j])?, draws.column(&c.variances[j])?])
        })
        .collect();
    let some = draws.thinned(DRAWS);
    let at = |x: f64| {
        let density = |&i: &usize| {
            let part = |[pi, mu, sigma2]: &[&[f64]; 3]| match pi[i] > 0.0 {
                true => pi[i] * libm::exp(log_normal_density(x, mu[i], sigma2[i].sqrt())),
                false => 0.0,
            };
            (parts.iter().map(part).sum::<f64>(), draws.weight(i))
        };
        let mut values: Vec<(f64, f64)> = some.iter().map(density).filter(|(v, _)| v.is_finite()).collect();
        values.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let total: f64 = values.iter().map(|(_, w)| w).sum();
        let quantile = |q: f64| {
            let mut mass = 0.0;
            let reached = values.iter().find(|(_, w)| {
                mass += w;
                mass >= q * total
            });
            reached.or(values.last()).map_or(0.0, |(v, _)| *v)
        };
        [quantile(0.1), values.iter().map(|(v, w)| v * w).sum::<f64>() / total, quantile(0.9)]
    };
    (0..=POINTS).map(|i| low + (high - low) * i as f64 / POINTS as f64).map(|x| (x, at(x))).collect()
}

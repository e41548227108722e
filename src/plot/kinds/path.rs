//! Medians along a path, with their 80 % intervals.

use std::collections::BTreeMap;

use super::Kind;
use crate::config::printable;
use crate::error::{Error, Result};
use crate::path::{PathPoint, widest};
use crate::plot::axes::{Axes, Axis, Ticks, airy, range_of};
use crate::plot::canvas::{Paint, Point, Scene, Stroke};
use crate::plot::names;
use crate::plot::options::{Request, is_coefficient, run_stroke, truth_stroke};
use crate::plot::palette::{GREY, PALE};
use crate::plot::sheet::{Entry, Mark, Sheet, Surroundings};
use crate::plot::source::Source;

pub const KIND: Kind = Kind {
    name: "path",
    about: "medians and 80 % bands along a path, against log c where a Student-t penalty is varied",
    overlays: false,
    uses: "parameters absolute log truth top xlim ylim",
    applies: |run: &Source| run.path().is_some(),
    draw,
};

/// Coefficients in colour where nothing says which.
const COLOURED: usize = 5;

/// What stands on the horizontal axis of a path.
pub struct Abscissa {
    pub label: String,
    /// One for each setting.
    pub values: Vec<f64>,
    pub log: bool,
    /// Words, where settings are no numbers.
    pub names: Option<Vec<(f64, String)>>,
}

impl Abscissa {
    /// log c of a Student-t penalty, c = b/a (section 3.3); else the value itself, on a logarithmic scale if it spans much.
    pub fn of(run: &Source) -> Result<Abscissa> {
        let path = run.path().ok_or_else(|| no_path(run))?;
        let numbers: Option<Vec<f64>> = path.values.iter().map(|v| v.parse().ok()).collect();
        let Some(numbers) = numbers else {
            let names = path.values.iter().enumerate().map(|(i, v)| ((i + 1) as f64, printable(v))).collect();
            let values = (1..=path.values.len()).map(|i| i as f64).collect();
            return Ok(Abscissa {
                label: printable(&path.parameter),
                values,
                log: false,
                names: Some(names),
            });
        };
        let positive = numbers.iter().all(|v| *v > 0.0);
        let plain =
            |log| Abscissa { label: printable(&path.parameter), values: numbers.clone(), log, names: None };
        if let (Some(table), true) = (path.parameter.strip_suffix(".student_t.b"), positive)
            && let Some(a) = run.number(&format!("{table}.student_t.a"))?.filter(|a| *a > 0.0)
        {
            let values = numbers.iter().map(|b| libm::log(b / a)).collect();
            return Ok(Abscissa { label: "log c".into(), values, log: false, names: None });
        }
        let (low, high) = range_of(numbers.iter().copied());
        Ok(plain(positive && high / low > 20.0))
    }

    pub fn axis(&self, request: &Request) -> Axis {
        let (low, high) = range_of(self.values.iter().copied());
        let log = self.log || (request.options.log && low > 0.0);
        let range = if log { (low, high) } else { airy((low, high), 0.01) };
        let axis = Axis::new(self.label.clone(), range).limits(request.options.x_limits).log(log);
        match &self.names {
            Some(names) => axis.ticks(Ticks::Named(names.clone())),
            None => axis,
        }
    }
}

pub fn no_path(run: &Source) -> Error {
    let shown = printable(&run.folder.display().to_string());
    Error::input(format!(
        "{shown}: the run has no path; give its experiment a [path] table, or choose another --kind"
    ))
}

fn draw(request: &Request) -> Result<Scene> {
    let run = request.first();
    let abscissa = Abscissa::of(run)?;
    let lines = lines(run, &abscissa)?;
    let all: Vec<String> = lines.iter().map(|(name, _)| name.clone()).collect();
    let coloured = coloured(request, &all)?;
    let find = |name: &String| lines.iter().find(|(n, _)| n == name);
    let chosen: Vec<&(String, Line)> = coloured.iter().filter_map(find).collect();
    let behind = |name: &String| !coloured.contains(name) && name.starts_with("beta");
    let others: Vec<&Line> = lines.iter().filter(|(name, _)| behind(name)).map(|(_, line)| line).collect();
    let absolute = request.options.absolute;
    let mut sheet = Sheet::new(&request.theme(468.0, 330.0), &surroundings(request, &coloured, others.len()));
    let height = |v: f64| if absolute { v.abs() } else { v };
    let banded = chosen.iter().flat_map(|(_, line)| line.iter()).filter(|_| !absolute).flat_map(|(_, q)| *q);
    let medians = chosen.iter().map(|(_, line)| line).chain(others.iter().copied()).flatten();
    let levels = banded.chain(medians.map(|(_, q)| height(q[1])));
    let truths = coloured.iter().filter_map(|name| request.truth(name));
    let (low, high) = range_of(levels.chain(truths.map(height)));
    let y = Axis::new(if absolute { "|median|" } else { "median" }, airy((low, high), 0.03));
    let body = sheet.body;
    let axes = Axes::new(&mut sheet, body, abscissa.axis(request), y.grid().limits(request.options.y_limits));
    axes.rule_y(&mut sheet, 0.0, Stroke::new(GREY, 0.7));
    let median = |line: &Line| line.iter().map(|(x, q)| (*x, height(q[1]))).collect::<Vec<Point>>();
    others.iter().for_each(|line| axes.curve(&mut sheet, &median(line), Stroke::new(PALE, 0.7)));
    for (i, (_, line)) in chosen.iter().enumerate().filter(|_| !absolute) {
        let band: Vec<(f64, f64, f64)> = line.iter().map(|(x, q)| (*x, q[0], q[2])).collect();
        axes.band(&mut sheet, &band, Paint { colour: run_stroke(i).paint.colour, opacity: 0.15 });
    }
    for (i, (name, line)) in chosen.iter().enumerate() {
        axes.curve(&mut sheet, &median(line), run_stroke(i));
        if let Some(truth) = request.truth(name) {
            axes.rule_y(&mut sheet, height(truth), Stroke { paint: run_stroke(i).paint, ..truth_stroke() });
        }
    }
    Ok(sheet.scene)
}

fn surroundings(request: &Request, coloured: &[String], others: usize) -> Surroundings {
    let run = request.first();
    let absolute = request.options.absolute;
    let title = if absolute { "Absolute posterior medians" } else { "Posterior medians" };
    let varied = run.path().map(|path| printable(&path.parameter)).unwrap_or_default();
    let mut around = Surroundings {
        title: request.options.title.clone().unwrap_or_else(|| format!("{title} along the path")),
        subtitle: format!(
            "{} · {} · {} settings of {varied}",
            run.label,
            printable(&run.report.label),
            run.rounds()
        ),
        ..Surroundings::default()
    };
    for (i, name) in coloured.iter().enumerate() {
        let mark = if absolute { Mark::Line(run_stroke(i)) } else { Mark::Band(run_stroke(i)) };
        around.legend.push(Entry::new(mark, names::label(name)));
    }
    if others > 0 {
        around.legend.push(Entry::new(Mark::Line(Stroke::new(PALE, 1.0)), format!("{others} others")));
    }
    around.legend.extend(request.truth_entry(coloured));
    if !absolute {
        around.notes.push("Bands hold 80 % of the posterior at each setting.".into());
    }
    if let Some(per) = run.per().filter(|_| coloured.iter().any(|name| is_coefficient(name))) {
        around.notes.push(format!("Coefficients are {per}."));
    }
    let lost = run.report.lost();
    if lost > 0 {
        around.notes.push(format!("{lost} draws have no minimum and are left out."));
    }
    around
}

/// Places on the axis, and the three quantiles there.
type Line = Vec<(f64, [f64; 3])>;

/// In the order of the model.
fn lines(run: &Source, abscissa: &Abscissa) -> Result<Vec<(String, Line)>> {
    let mut order: BTreeMap<String, usize> = BTreeMap::new();
    let mut lines: Vec<(String, Line)> = Vec::new();
    for (setting, PathPoint { parameter, quantiles, .. }) in run.points()? {
        let Some(x) = abscissa.values.get(setting.wrapping_sub(1)) else { continue };
        let place = *order.entry(parameter.clone()).or_insert_with(|| {
            lines.push((parameter, Line::new()));
            lines.len() - 1
        });
        lines[place].1.push((*x, quantiles));
    }
    lines.iter_mut().for_each(|(_, line)| line.sort_by(|a, b| a.0.total_cmp(&b.0)));
    if lines.is_empty() {
        let shown = printable(&run.folder.display().to_string());
        return Err(Error::input(format!("{shown}: there is nothing to draw: all draws failed")));
    }
    Ok(lines)
}

/// Those that are asked for, else those that were kept, else the widest.
fn coloured(request: &Request, all: &[String]) -> Result<Vec<String>> {
    let run = request.first();
    if let Some(names) = request.chosen(all)? {
        return Ok(names);
    }
    let kept: Vec<String> = run.parameters().iter().filter(|n| all.contains(n)).cloned().collect();
    let most = request.options.most.unwrap_or(COLOURED);
    Ok(if kept.is_empty() {
        widest(&run.points()?, most)
    } else {
        kept.into_iter().take(most.max(7)).collect()
    })
}

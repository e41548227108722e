//! LPPD had there been fewer restarts.

use super::Kind;
use crate::config::printable;
use crate::error::{Error, Result};
use crate::evaluate::ByRestarts;
use crate::plot::axes::{Axes, Axis, Ticks, airy, range_of};
use crate::plot::canvas::{Scene, Shape, Stroke};
use crate::plot::options::{Request, run_stroke};
use crate::plot::sheet::Sheet;
use crate::plot::source::Source;

pub const KIND: Kind = Kind {
    name: "lppd",
    about: "mean LPPD of the test rows against the number of restarts R",
    overlays: true,
    uses: "round xlim ylim",
    applies: |run: &Source| {
        run.path().is_none() && run.report.repeats.first().is_some_and(|r| r.by_restarts.len() > 1)
    },
    draw,
};

fn draw(request: &Request) -> Result<Scene> {
    let lines: Vec<&[ByRestarts]> =
        request.runs.iter().map(|run| by_restarts(request, run)).collect::<Result<_>>()?;
    let mut around = request.surroundings("LPPD by the number of restarts")?;
    around.notes.push("Bars are two Monte Carlo standard errors either way.".into());
    let mut sheet = Sheet::new(&request.theme(468.0, 312.0), &around);
    let points = || lines.iter().copied().flatten();
    let error = |b: &ByRestarts| if b.lppd.mcse.is_finite() { 2.0 * b.lppd.mcse } else { 0.0 };
    let (low, high) = range_of(points().map(|b| b.restarts as f64));
    // The numbers that were looked at, and no others.
    let mut restarts: Vec<usize> = points().map(|b| b.restarts).collect();
    restarts.sort_unstable();
    restarts.dedup();
    let ticks = restarts.into_iter().map(|r| (r as f64, r.to_string())).collect();
    let x = Axis::new("restarts R", (low / 1.12, high * 1.12)).log(true).limits(request.options.x_limits);
    let x = x.ticks(Ticks::Named(ticks));
    let levels = points().flat_map(|b| [b.lppd.value - error(b), b.lppd.value + error(b)]);
    let y = Axis::new("mean LPPD", airy(range_of(levels), 0.06)).grid().limits(request.options.y_limits);
    let body = sheet.body;
    let axes = Axes::new(&mut sheet, body, x, y);
    for (i, line) in lines.iter().enumerate() {
        let stroke = run_stroke(i);
        let curve: Vec<(f64, f64)> = line.iter().map(|b| (b.restarts as f64, b.lppd.value)).collect();
        axes.curve(&mut sheet, &curve, stroke.clone());
        for b in line.iter() {
            let r = b.restarts as f64;
            let bar = [(r, b.lppd.value - error(b)), (r, b.lppd.value + error(b))];
            axes.curve(&mut sheet, &bar, Stroke::new(stroke.paint.colour, 1.2));
            let centre = axes.at((r, b.lppd.value));
            sheet.scene.add_within(
                axes.rect,
                Shape::Circle { centre, radius: 3.0, fill: Some(stroke.paint), stroke: None },
            );
        }
    }
    Ok(sheet.scene)
}

fn by_restarts<'a>(request: &Request<'a>, run: &'a Source) -> Result<&'a [ByRestarts]> {
    let repeat = &run.report.repeats[request.round(run)? - 1];
    if repeat.by_restarts.is_empty() {
        let shown = printable(&run.folder.display().to_string());
        let why = "needs test rows, a model with a density, and more than one restart";
        return Err(Error::input(format!("{shown}: the report has no LPPD by restarts: that {why}")));
    }
    Ok(&repeat.by_restarts)
}

//! A metric along a path, with its errors, the best setting and the simplest that is as good.

use super::Kind;
use super::path::{Abscissa, no_path};
use crate::config::printable;
use crate::error::{Error, Result};
use crate::plot::axes::{Axes, Axis, airy, range_of};
use crate::plot::canvas::{Scene, Shape, Stroke};
use crate::plot::options::{Request, run_stroke, truth_stroke};
use crate::plot::palette::GREY;
use crate::plot::sheet::{Entry, Mark, Sheet, Surroundings};
use crate::plot::source::Source;
use crate::report::Tuned;
use crate::words::setting;

pub const KIND: Kind = Kind {
    name: "tuning",
    about: "the metric of every setting of a path with its standard error, the best setting and the simplest within one of them",
    overlays: false,
    uses: "log xlim ylim",
    applies: |run: &Source| run.report.tuned(None, None).is_some(),
    draw,
};

fn draw(request: &Request) -> Result<Scene> {
    let run = request.first();
    let path = run.path().ok_or_else(|| no_path(run))?;
    let tuned = run.report.tuned(None, None).ok_or_else(|| {
        let shown = printable(&run.folder.display().to_string());
        Error::input(format!(
            "{shown}: no metric of its settings: give its experiment test rows, or `evaluate.folds`"
        ))
    })?;
    let Tuned { title, values, best, simplest, simpler } = &tuned;
    let abscissa = Abscissa::of(run)?;
    let error = |t: usize| values[t].se.or(values[t].mcse).unwrap_or(0.0);
    let mut around = Surroundings {
        title: request.options.title.clone().unwrap_or_else(|| format!("{title} along the path")),
        subtitle: format!(
            "{} · {} · {} settings of {}",
            run.label,
            printable(&run.report.label),
            values.len(),
            printable(&path.parameter)
        ),
        ..Surroundings::default()
    };
    let at = |t: usize| printable(&setting(&path.values[t]));
    around.legend.push(Entry::new(Mark::Line(run_stroke(1)), format!("best: {}", at(*best))));
    if let (Some(t), Some(simpler)) = (simplest, simpler) {
        around.legend.push(Entry::new(Mark::Line(truth_stroke()), format!("simplest as good: {}", at(*t))));
        let words = "As good is within one standard error of the best";
        around.notes.push(format!("{words}; {} is simpler.", simpler.name()));
    }
    around.notes.push(match values[*best].se {
        Some(_) => {
            "Bars are one standard error over folds either way; the grey line is one of them from the best."
                .into()
        }
        None => "Bars are one Monte Carlo standard error either way.".into(),
    });
    let mut sheet = Sheet::new(&request.theme(468.0, 312.0), &around);
    let levels = (0..values.len()).flat_map(|t| [values[t].mean - error(t), values[t].mean + error(t)]);
    let y = Axis::new(*title, airy(range_of(levels), 0.06)).grid().limits(request.options.y_limits);
    let body = sheet.body;
    let x = abscissa.axis(request).roomy(0.03, request.options.x_limits);
    let axes = Axes::new(&mut sheet, body, x, y);
    if let Some(se) = values[*best].se {
        let bound = if values[*best].mean >= values.iter().fold(f64::NEG_INFINITY, |m, v| m.max(v.mean)) {
            values[*best].mean - se
        } else {
            values[*best].mean + se
        };
        axes.rule_y(&mut sheet, bound, Stroke::new(GREY, 0.7));
    }
    axes.rule_x(&mut sheet, abscissa.values[*best], run_stroke(1));
    if let Some(t) = simplest {
        axes.rule_x(&mut sheet, abscissa.values[*t], truth_stroke());
    }
    let stroke = run_stroke(0);
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| abscissa.values[a].total_cmp(&abscissa.values[b]));
    let curve: Vec<(f64, f64)> = order.iter().map(|&t| (abscissa.values[t], values[t].mean)).collect();
    axes.curve(&mut sheet, &curve, stroke.clone());
    for t in order {
        let (x, mean) = (abscissa.values[t], values[t].mean);
        axes.curve(
            &mut sheet,
            &[(x, mean - error(t)), (x, mean + error(t))],
            Stroke::new(stroke.paint.colour, 1.2),
        );
        let centre = axes.at((x, mean));
        sheet.scene.add_within(
            axes.rect,
            Shape::Circle { centre, radius: 3.0, fill: Some(stroke.paint), stroke: None },
        );
    }
    Ok(sheet.scene)
}

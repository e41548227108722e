//! Predictive probabilities of a classifier against what came, on the test rows.

use super::Kind;
use crate::error::{Error, Result};
use crate::model::Response;
use crate::plot::axes::{Axes, Axis};
use crate::plot::canvas::{Scene, Shape, Stroke};
use crate::plot::options::{Request, run_stroke};
use crate::plot::palette::GREY;
use crate::plot::sheet::{Entry, Mark, Sheet};
use crate::plot::source::Source;

pub const KIND: Kind = Kind {
    name: "calibration",
    about: "predictive probabilities of a classifier against observed shares, on the test rows",
    overlays: true,
    uses: "round xlim ylim",
    applies: |run: &Source| {
        run.path().is_none()
            && run.report.repeats.first().is_some_and(|r| r.accuracy.is_some() && r.mse.is_some())
    },
    draw,
};

/// Bins with the same number of test rows.
const BINS: usize = 10;
/// Draws that the predictive probability is averaged over.
const DRAWS: usize = 400;

fn draw(request: &Request) -> Result<Scene> {
    let bins: Vec<Vec<Bin>> = request.runs.iter().map(|run| bins(request, run)).collect::<Result<_>>()?;
    let rows: usize = bins[0].iter().map(|b| b.rows).sum();
    let mut around = request.surroundings("Calibration on the test rows")?;
    around.legend.push(Entry::new(Mark::Line(ideal()), "as predicted"));
    let count = bins[0].len();
    around.notes.push(format!("{rows} test rows in {count} bins by predictive probability, with 95 % intervals of the observed share."));
    let mut sheet = Sheet::new(&request.theme(400.0, 400.0), &around);
    let reach = bins.iter().flatten().flat_map(|b| [b.predicted, b.interval.1]).fold(0.0, f64::max);
    let high = if reach < 0.6 { 1.1 * reach } else { 1.02 };
    let axis = |label: &str| Axis::new(label, (-0.02 * high, high)).grid();
    let x = axis("predicted probability of 1").limits(request.options.x_limits);
    let y = axis("observed share of 1").limits(request.options.y_limits);
    let body = sheet.body;
    let axes = Axes::new(&mut sheet, body, x, y);
    axes.curve(&mut sheet, &[(0.0, 0.0), (1.0, 1.0)], ideal());
    for (i, bins) in bins.iter().enumerate() {
        let stroke = run_stroke(i);
        let points: Vec<(f64, f64)> = bins.iter().map(|b| (b.predicted, b.share)).collect();
        axes.curve(&mut sheet, &points, Stroke { width: 1.0, ..stroke.clone() });
        for bin in bins {
            let ends = [(bin.predicted, bin.interval.0), (bin.predicted, bin.interval.1)];
            axes.curve(&mut sheet, &ends, Stroke::new(stroke.paint.colour, 1.4));
            let centre = axes.at((bin.predicted, bin.share));
            sheet.scene.add_within(
                axes.rect,
                Shape::Circle { centre, radius: 3.0, fill: Some(stroke.paint), stroke: None },
            );
        }
    }
    Ok(sheet.scene)
}

fn ideal() -> Stroke {
    Stroke::new(GREY, 1.0).dashed(&[4.0, 3.0])
}

struct Bin {
    predicted: f64,
    share: f64,
    interval: (f64, f64),
    rows: usize,
}

fn bins(request: &Request, run: &Source) -> Result<Vec<Bin>> {
    let trial = run.trial(request.round(run)?)?;
    let model = trial.model.as_ref();
    if model.response() != Some(Response::Binary) {
        return Err(Error::input(format!(
            "{}: calibration is of a classifier, whose response is 0 or 1",
            run.label
        )));
    }
    let test = trial.test.as_ref().filter(|test| test.n() > 0);
    let none = || {
        Error::input(format!(
            "{}: the experiment has no test rows; give `data.test` or `data.split`",
            run.label
        ))
    };
    let test = test.ok_or_else(none)?;
    let y = test.y.as_ref().expect("a classifier has responses");
    let draws = request.draws(run, &run.named(&model.names())?)?;
    let (mut p, mut total) = (vec![0.0; test.n()], 0.0);
    let mut log_density = vec![0.0; test.n()];
    for i in draws.thinned(DRAWS) {
        let theta: Vec<f64> = draws.columns.iter().map(|c| c[i]).collect();
        model.log_density(&theta, test, &mut log_density);
        let w = draws.weight(i);
        total += w;
        p.iter_mut().zip(&log_density).for_each(|(p, l)| *p += w * libm::exp(*l));
    }
    // The probability of a 1, from that of what came.
    let of_one = |(p, y): (&f64, &f64)| if *y == 1.0 { (p / total, 1.0) } else { (1.0 - p / total, 0.0) };
    let mut pairs: Vec<(f64, f64)> = p.iter().zip(y).map(of_one).collect();
    pairs.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let count = BINS.min(pairs.len() / 5).max(1);
    let n = pairs.len();
    Ok((0..count).map(|k| bin(&pairs[k * n / count..(k + 1) * n / count])).collect())
}

/// Wilson's interval at 95 %.
fn bin(pairs: &[(f64, f64)]) -> Bin {
    let n = pairs.len() as f64;
    let predicted = pairs.iter().map(|p| p.0).sum::<f64>() / n;
    let share = pairs.iter().map(|p| p.1).sum::<f64>() / n;
    let z2 = 1.959_964 * 1.959_964;
    let centre = (share + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let half = (z2 * (share * (1.0 - share) / n + z2 / (4.0 * n * n))).sqrt() / (1.0 + z2 / n);
    Bin { predicted, share, interval: (centre - half, centre + half), rows: pairs.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wilson_s_interval_stays_within_bounds() {
        let all = bin(&[(0.9, 1.0); 10]);
        assert_eq!((all.share, all.rows), (1.0, 10));
        // 1/(1 + z²/n): Wilson (1927) for ten successes in ten.
        assert!((all.interval.0 - 10.0 / (10.0 + 3.841_459)).abs() < 1e-6 && all.interval.1 <= 1.0 + 1e-12);
    }
}

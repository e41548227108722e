//! Correlations of the covariates, as a field of colour.

use super::Kind;
use crate::config::printable;
use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::plot::axes::signed;
use crate::plot::canvas::{Anchor, Rect, Scene, Shape, Stroke};
use crate::plot::options::Request;
use crate::plot::palette::{Colour, FAINT, GREY, INK, diverging};
use crate::plot::sheet::Sheet;
use crate::plot::source::Source;
use crate::plot::theme::Role;

pub const KIND: Kind = Kind {
    name: "correlation",
    about: "heat map of the correlations between the columns of the training data",
    overlays: false,
    uses: "round parameters top",
    applies: |run: &Source| run.coefficients().len() > 1 || (run.path().is_some() && run.study().is_ok()),
    draw,
};

/// Columns on one picture.
const COLUMNS: usize = 300;

fn draw(request: &Request) -> Result<Scene> {
    let run = request.first();
    let trial = run.trial(request.round(run)?)?;
    let train = trial.train.as_ref();
    if train.d() < 2 {
        return Err(Error::input(format!(
            "{}: correlations need at least two columns, and the data have {}",
            run.label,
            train.d()
        )));
    }
    let columns = chosen(request, train)?;
    let cells = matrix(train, &columns);
    let mut around = request.surroundings("Correlations of the covariates")?;
    if columns.len() < train.d() && request.options.parameters.is_empty() {
        around.notes.push(format!("The first {} of {} columns.", columns.len(), train.d()));
    }
    if cells.iter().any(|r| r.is_nan()) {
        around.notes.push("Grey: a column that does not vary.".into());
    }
    let mut sheet = Sheet::new(&request.theme(440.0, 432.0), &around);
    let labels: Vec<String> = columns.iter().map(|&j| printable(&train.columns[j])).collect();
    let rect = frame(&mut sheet, &labels);
    let cells: Vec<Colour> = cells.iter().map(|r| diverging(*r)).collect();
    sheet.scene.add(Shape::Image { rect, columns: columns.len(), cells, smooth: false });
    sheet.scene.add(Shape::Box { rect, fill: None, stroke: Some(Stroke::new(FAINT, 0.6)) });
    Ok(sheet.scene)
}

/// `--parameters` means columns here, with `beta.` before them or without.
fn chosen(request: &Request, train: &Dataset) -> Result<Vec<usize>> {
    let plain = |p: &String| p.strip_prefix("beta.").unwrap_or(p).to_owned();
    let patterns: Vec<String> = request.options.parameters.iter().map(plain).collect();
    let most = request.options.most.unwrap_or(COLUMNS).clamp(2, COLUMNS);
    if patterns.is_empty() {
        return Ok((0..train.d().min(most)).collect());
    }
    let names = crate::plot::names::choose_among("column", &patterns, &train.columns)?;
    if names.len() < 2 {
        return Err(Error::input("correlations need at least two columns; --parameters names one"));
    }
    Ok(names.iter().take(most).filter_map(|n| train.columns.iter().position(|c| c == n)).collect())
}

/// Pearson's, row by row; NaN where a column does not vary.
fn matrix(train: &Dataset, columns: &[usize]) -> Vec<f64> {
    let mass = train.mass();
    let centred = |&j: &usize| -> Vec<f64> {
        let column: Vec<f64> = train.x.column(j).collect();
        let mean = column.iter().enumerate().map(|(i, v)| train.weight(i) * v).sum::<f64>() / mass;
        let values = column.iter().enumerate().map(|(i, v)| train.weight(i).sqrt() * (v - mean));
        let values: Vec<f64> = values.collect();
        let norm = crate::math::dot(&values, &values).sqrt();
        values.into_iter().map(|v| if norm > 0.0 { v / norm } else { f64::NAN }).collect()
    };
    let columns: Vec<Vec<f64>> = columns.iter().map(centred).collect();
    columns
        .iter()
        .flat_map(|a| columns.iter().map(move |b| crate::math::dot(a, b).clamp(-1.0, 1.0)))
        .collect()
}

/// Names beside and below, a scale at the right; the square that is left.
fn frame(sheet: &mut Sheet, labels: &[String]) -> Rect {
    let theme = sheet.theme;
    let page = theme.is_page();
    let body = sheet.body;
    let bar = if page { 42.0 } else { 35.0 };
    let width = |l: &String| theme.width_of(l, Role::Tick);
    let widest = labels.iter().map(width).fold(0.0, f64::max).min(0.28 * body.width());
    let left = body.left + widest + 6.0;
    let bottom = body.bottom - if page { widest + 6.0 } else { 0.0 };
    let top = body.top + sheet.air(4.0);
    let side = (body.right - bar - left).min(if page { bottom - top } else { f64::INFINITY });
    let rect = Rect::new(left, top, left + side, if page { top + side } else { bottom });
    let d = labels.len() as f64;
    let line = theme.line(Role::Tick);
    let every = (d * line / rect.height()).ceil().max(1.0) as usize;
    let middle = if page { 0.36 * theme.size(Role::Tick) } else { 0.3 * theme.size(Role::Tick) };
    for (i, label) in labels.iter().enumerate().step_by(every) {
        let label = theme.fit(label, Role::Tick, widest);
        let at = (i as f64 + 0.5) / d;
        sheet.write(
            &label,
            Role::Tick,
            (rect.left - 4.0, rect.top + at * rect.height() + middle),
            Anchor::End,
            INK,
        );
        sheet.write_upright(
            &label,
            Role::Tick,
            (rect.left + at * rect.width() + middle, rect.bottom + 4.0),
            Anchor::End,
        );
    }
    scale(sheet, rect);
    rect
}

fn scale(sheet: &mut Sheet, beside: Rect) {
    let x = beside.right + if sheet.theme.is_page() { 12.0 } else { 5.0 };
    let rect = Rect::new(x, beside.top, x + if sheet.theme.is_page() { 9.0 } else { 5.0 }, beside.bottom);
    let steps = 101;
    let cells = (0..steps).map(|i| diverging(1.0 - 2.0 * i as f64 / (steps - 1) as f64)).collect();
    sheet.scene.add(Shape::Image { rect, columns: 1, cells, smooth: false });
    let line = sheet.theme.line(Role::Tick);
    for (value, share) in [(1.0, 0.0), (0.0, 0.5), (-1.0, 1.0)] {
        let inset = (0.5 - share) * 2.0 * 0.5 * line;
        let y = rect.top + share * rect.height() + inset + 0.36 * sheet.theme.size(Role::Tick);
        let y = if sheet.theme.is_page() { y } else { y - 1.0 };
        sheet.write(&signed(&format!("{value}")), Role::Tick, (rect.right + 4.0, y), Anchor::Start, GREY);
    }
}

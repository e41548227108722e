//! Axes: where numbers stand on the picture, round ticks, and labels that neither overlap nor leave it.

use super::canvas::{Anchor, Point, Rect, Shape, Stroke, straightened};
use super::palette::{FAINT, GREY, INK};
use super::sheet::Sheet;
use super::theme::{Role, Theme};

/// What an axis shows.
#[derive(Clone, Debug)]
pub struct Axis {
    pub label: String,
    pub range: (f64, f64),
    /// Equal factors are equal steps.
    pub log: bool,
    pub ticks: Ticks,
    /// Lines across the picture at the ticks.
    pub grid: bool,
    /// Of a vertical axis: room for texts between its label and the rectangle, where no curve can reach them.
    pub headroom: f64,
}

#[derive(Clone, Debug)]
pub enum Ticks {
    /// Round numbers, as many as there is room for.
    Round,
    /// Whole numbers only.
    Whole,
    None,
    /// Names at places, as many as there is room for.
    Named(Vec<(f64, String)>),
}

impl Axis {
    pub fn new(label: impl Into<String>, range: (f64, f64)) -> Axis {
        let range = widened(range);
        Axis { label: label.into(), range, log: false, ticks: Ticks::Round, grid: false, headroom: 0.0 }
    }

    pub fn ticks(self, ticks: Ticks) -> Axis {
        Axis { ticks, ..self }
    }

    pub fn grid(self) -> Axis {
        Axis { grid: true, ..self }
    }

    pub fn headroom(self, headroom: f64) -> Axis {
        Axis { headroom, ..self }
    }

    /// On a logarithmic scale, where all that is shown is above 0.
    pub fn log(self, log: bool) -> Axis {
        Axis { log: log && self.range.0 > 0.0, ..self }
    }

    /// Another range, where one is asked for.
    pub fn limits(self, range: Option<(f64, f64)>) -> Axis {
        Axis { range: range.unwrap_or(self.range), ..self }
    }

    /// With room for marks at both ends, as a share of it; what was asked for stays as it is.
    pub fn roomy(self, share: f64, asked: Option<(f64, f64)>) -> Axis {
        let (low, high) = self.range;
        let range = match asked {
            Some(range) => range,
            None if self.log => {
                let factor = libm::pow(high / low, share);
                (low / factor, high * factor)
            }
            None => airy((low, high), share),
        };
        Axis { range, ..self }
    }

    fn share(&self, value: f64) -> f64 {
        let at = |v: f64| if self.log { libm::log(v.max(f64::MIN_POSITIVE)) } else { v };
        (at(value) - at(self.range.0)) / (at(self.range.1) - at(self.range.0))
    }

    /// Ticks with labels, no more than `most` of them if they are numbers.
    fn marks(&self, most: usize) -> Vec<(f64, String)> {
        match &self.ticks {
            Ticks::None => Vec::new(),
            Ticks::Named(names) => {
                // From the first row down, the range of a forest is upside down.
                let (low, high) = (self.range.0.min(self.range.1), self.range.0.max(self.range.1));
                names.iter().filter(|(at, _)| (low..=high).contains(at)).cloned().collect()
            }
            Ticks::Round | Ticks::Whole if self.log => log_ticks(self.range, most),
            Ticks::Round => round_ticks(self.range, most, false),
            Ticks::Whole => round_ticks(self.range, most, true),
        }
    }
}

/// A range that is one number gets some room around it; one without numbers is 0 to 1.
pub fn widened((low, high): (f64, f64)) -> (f64, f64) {
    if !low.is_finite() || !high.is_finite() {
        return (0.0, 1.0);
    }
    // Closer together than rounding lets labels tell apart.
    if high - low > 1e-9 * low.abs().max(high.abs()) {
        return (low, high);
    }
    let room = if low == 0.0 { 1.0 } else { 0.05 * low.abs() };
    (low - room, high + room)
}

/// A range with some air on both sides.
pub fn airy((low, high): (f64, f64), share: f64) -> (f64, f64) {
    let (low, high) = widened((low, high));
    let room = share * (high - low);
    (low - room, high + room)
}

/// The range of numbers; those that are none are passed over.
pub fn range_of(values: impl IntoIterator<Item = f64>) -> (f64, f64) {
    let finite = values.into_iter().filter(|v| v.is_finite());
    finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)))
}

/// Steps of 1, 2 or 5 times a power of ten.
pub fn round_ticks((low, high): (f64, f64), most: usize, whole: bool) -> Vec<(f64, String)> {
    let rough = (high - low) / most.max(1) as f64;
    let ten = libm::pow(10.0, rough.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0].map(|m| m * ten);
    let ticks_of = |step: f64| {
        let (first, last) = ((low / step - 1e-6).ceil() as i64, (high / step + 1e-6).floor() as i64);
        (first, last)
    };
    let allowed = steps.into_iter().filter(|s| !whole || *s >= 1.0);
    let fits = |step: &f64| {
        let (first, last) = ticks_of(*step);
        (last - first) < most.max(1) as i64
    };
    let Some(step) = allowed.into_iter().find(fits).or(whole.then_some(1.0)) else { return Vec::new() };
    let (first, last) = ticks_of(step);
    let largest = low.abs().max(high.abs());
    (first..=last).map(|i| i as f64 * step).map(|v| (v, number(v, step, largest))).collect()
}

/// A tick with as many digits as its step needs.
fn number(value: f64, step: f64, largest: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let digits = (-(step.log10() + 1e-9).floor()).max(0.0) as usize;
    if largest >= 1e6 || step < 1e-4 && (largest < 1e-3 || digits > 8) {
        let more = ((value.abs().log10().floor() - step.log10().floor()).max(0.0) as usize).min(12);
        let text = format!("{value:.more$e}");
        let (head, power) = text.split_once('e').unwrap_or((&text, "0"));
        let head = if head.contains('.') { head.trim_end_matches('0').trim_end_matches('.') } else { head };
        return signed(&format!("{head}e{power}"));
    }
    signed(&format!("{value:.digits$}"))
}

/// With the sign that is as wide as a plus.
pub fn signed(text: &str) -> String {
    text.replace('-', "−")
}

/// A number for people: three digits that matter.
pub fn short(value: f64) -> String {
    let text = match value.abs() {
        0.0 => "0".into(),
        v if !(1e-3..1e6).contains(&v) => format!("{value:.2e}"),
        v => format!("{value:.*}", (2.0 - v.log10().floor()).clamp(0.0, 6.0) as usize),
    };
    signed(&text)
}

/// Powers of ten, thinned if they are too many; between them 2 and 5 if they are few.
fn log_ticks((low, high): (f64, f64), most: usize) -> Vec<(f64, String)> {
    let (first, last) = (low.log10().floor() as i32 - 1, high.log10().ceil() as i32 + 1);
    let inside = |v: &f64| *v >= low * (1.0 - 1e-9) && *v <= high * (1.0 + 1e-9);
    let tens = |multiples: &[f64], every: i32| -> Vec<f64> {
        let powers = (first..=last).filter(|p| p.rem_euclid(every) == 0);
        let all = powers.flat_map(|p| multiples.iter().map(move |m| m * libm::pow(10.0, f64::from(p))));
        all.filter(inside).collect()
    };
    let dense = [tens(&[1.0, 2.0, 5.0], 1), tens(&[1.0, 3.0], 1)];
    let sparse = (1..400).map(|every| tens(&[1.0], every));
    let chosen = dense.into_iter().chain(sparse).find(|ticks| ticks.len() <= most.max(1));
    let chosen = chosen.unwrap_or_default();
    if chosen.len() < 2 && high / low < 10.0 {
        return round_ticks((low, high), most, false);
    }
    let label = |v: f64| {
        let text =
            if (1e-3..1e5).contains(&v) { format!("{}", (v * 1e6).round() / 1e6) } else { format!("{v:e}") };
        (v, signed(&text))
    };
    chosen.into_iter().map(label).collect()
}

/// A pair of axes on the picture.
#[derive(Clone, Debug)]
pub struct Axes {
    /// Where data go.
    pub rect: Rect,
    x: Axis,
    y: Axis,
}

/// Between ticks and their labels; and between labels.
const TICK: f64 = 3.0;
/// From the horizontal axis down to its labels: clear of a label of the other axis that stands at the corner.
const BELOW: f64 = 5.5;
const APART: f64 = 7.0;
/// Width of the lines of axes.
const LINE: f64 = 0.8;

impl Axes {
    /// Draws the axes within `outer`, labels and all.
    pub fn new(sheet: &mut Sheet, outer: Rect, x: Axis, y: Axis) -> Axes {
        let theme = sheet.theme;
        let line = theme.line(Role::Tick);
        let mut rect = outer;
        if !y.label.is_empty() {
            rect.top += theme.line(Role::Label) + sheet.air(2.0);
        } else if !matches!(y.ticks, Ticks::None) {
            rect.top += sheet.air(5.0);
        }
        rect.top += y.headroom;
        if !x.label.is_empty() {
            rect.bottom -= theme.line(Role::Label);
        }
        if !matches!(x.ticks, Ticks::None) {
            rect.bottom -= line + sheet.air(BELOW);
        }
        let y_marks = y.marks(most_rows(&theme, &rect, &y.ticks));
        let clear = 1.03 * theme.size(Role::Tick);
        let y_marks = thinned(y_marks, &|a, b| rect.height() * (y.share(a.0) - y.share(b.0)).abs() >= clear);
        let widest = y_marks.iter().map(|(_, t)| theme.width_of(t, Role::Tick)).fold(0.0, f64::max);
        let widest = widest.min(0.45 * outer.width());
        if !y_marks.is_empty() {
            rect.left += widest + TICK + if theme.is_page() { 3.0 } else { 2.0 };
        }
        let beside = rect.left;
        let x_marks = fitted(&theme, &x, &mut rect, &outer);
        let axes = Axes { rect, x, y };
        axes.draw_x(sheet, outer, &x_marks);
        axes.draw_y(sheet, outer, &y_marks, (if theme.is_page() { rect.left } else { beside }, widest));
        axes
    }

    /// Axes that fill a rectangle; nothing of them is drawn.
    pub fn bare(rect: Rect, x: Axis, y: Axis) -> Axes {
        Axes { rect, x, y }
    }

    fn draw_x(&self, sheet: &mut Sheet, outer: Rect, marks: &[(f64, String)]) {
        let (theme, rect) = (sheet.theme, self.rect);
        let ink = Stroke::new(GREY, LINE);
        for (v, _) in marks.iter().filter(|_| self.x.grid && theme.is_page()) {
            sheet.scene.line((self.px(*v), rect.top), (self.px(*v), rect.bottom), Stroke::new(FAINT, 0.7));
        }
        sheet.scene.line((rect.left, rect.bottom), (rect.right, rect.bottom), ink.clone());
        let below = rect.bottom + sheet.air(BELOW) + theme.ascent(Role::Tick);
        for (v, label) in marks {
            let x = self.px(*v);
            if theme.is_page() {
                sheet.scene.line((x, rect.bottom), (x, rect.bottom + TICK), ink.clone());
            }
            sheet.write(label, Role::Tick, (x, below), Anchor::Middle, GREY);
        }
        let label = theme.fit(&self.x.label, Role::Label, outer.width());
        let half = 0.5 * theme.width_of(&label, Role::Label);
        let centre = (0.5 * (rect.left + rect.right)).max(outer.left + half).min(outer.right - half);
        let bottom = outer.bottom - theme.line(Role::Label) + theme.ascent(Role::Label) + sheet.air(1.0);
        sheet.write(&label, Role::Label, (centre, bottom), Anchor::Middle, GREY);
    }

    /// Labels end left of `beside`, and are no wider than `widest`.
    fn draw_y(&self, sheet: &mut Sheet, outer: Rect, marks: &[(f64, String)], (beside, widest): (f64, f64)) {
        let (theme, rect) = (sheet.theme, self.rect);
        let ink = Stroke::new(GREY, LINE);
        for (v, _) in marks.iter().filter(|_| self.y.grid && theme.is_page()) {
            sheet.scene.line((rect.left, self.py(*v)), (rect.right, self.py(*v)), Stroke::new(FAINT, 0.7));
        }
        let named = matches!(self.y.ticks, Ticks::Named(_));
        if !marks.is_empty() && !named {
            sheet.scene.line((rect.left, rect.top), (rect.left, rect.bottom), ink.clone());
        }
        for (v, label) in marks {
            // A terminal has no half rows: the topmost label stays below that of the axis.
            let y = if theme.is_page() {
                self.py(*v)
            } else {
                self.py(*v).max(rect.top + 0.5 * theme.line(Role::Tick))
            };
            if theme.is_page() && !named {
                sheet.scene.line((rect.left - TICK, y), (rect.left, y), ink.clone());
            }
            let label = theme.fit(label, Role::Tick, widest);
            let colour = if named { INK } else { GREY };
            let gap = if theme.is_page() { TICK + 2.0 } else { 3.0 };
            sheet.write(&label, Role::Tick, (beside - gap, y + middle(&theme)), Anchor::End, colour);
        }
        let label = theme.fit(&self.y.label, Role::Label, outer.width());
        sheet.write(
            &label,
            Role::Label,
            (outer.left, outer.top + theme.ascent(Role::Label)),
            Anchor::Start,
            GREY,
        );
    }

    /// Where fields of colour go: clear of the lines of the axes, half of which lie within the rectangle.
    pub fn inside(&self) -> Rect {
        let (half, rect) = (0.5 * LINE, self.rect);
        Rect::new(rect.left + half, rect.top + half, rect.right - half, rect.bottom - half)
    }

    pub fn px(&self, x: f64) -> f64 {
        self.rect.left + self.x.share(x) * self.rect.width()
    }

    pub fn py(&self, y: f64) -> f64 {
        self.rect.bottom - self.y.share(y) * self.rect.height()
    }

    pub fn at(&self, (x, y): Point) -> Point {
        // Far outside is as good as outside, and fits the numbers of every backend.
        let within = |v: f64| v.clamp(-1e5, 1e5);
        (within(self.px(x)), within(self.py(y)))
    }

    pub fn x_range(&self) -> (f64, f64) {
        self.x.range
    }

    pub fn y_range(&self) -> (f64, f64) {
        self.y.range
    }

    /// A line through points of the data; it breaks where there is no number.
    pub fn curve(&self, sheet: &mut Sheet, points: &[Point], stroke: Stroke) {
        for run in points.split(|(x, y)| !x.is_finite() || !y.is_finite()).filter(|run| run.len() > 1) {
            let points: Vec<Point> = run.iter().map(|p| self.at(*p)).collect();
            let points = straightened(&points);
            sheet.scene.add_within(self.rect, Shape::Line { points, stroke: stroke.clone() });
        }
    }

    /// The space between two curves over the same x. A terminal shows its edges.
    pub fn band(&self, sheet: &mut Sheet, band: &[(f64, f64, f64)], fill: super::canvas::Paint) {
        for run in band.split(|(x, l, h)| !(x + l + h).is_finite()).filter(|run| run.len() > 1) {
            let below = run.iter().map(|(x, l, _)| self.at((*x, *l)));
            let above = run.iter().rev().map(|(x, _, h)| self.at((*x, *h)));
            if sheet.theme.is_page() {
                let points = below.chain(above).collect();
                sheet.scene.add_within(self.inside(), Shape::Polygon { points, fill });
            } else {
                let edge = Stroke::new(fill.colour, 0.5).dashed(&[2.5, 5.0]);
                for points in [below.collect(), above.collect()] {
                    sheet.scene.add_within(self.rect, Shape::Line { points, stroke: edge.clone() });
                }
            }
        }
    }

    /// A line across at one value of x, within the axes.
    pub fn rule_x(&self, sheet: &mut Sheet, x: f64, stroke: Stroke) {
        let points = vec![(self.at((x, 0.0)).0, self.rect.top), (self.at((x, 0.0)).0, self.rect.bottom)];
        sheet.scene.add_within(self.rect, Shape::Line { points, stroke });
    }

    pub fn rule_y(&self, sheet: &mut Sheet, y: f64, stroke: Stroke) {
        let level = self.py(y).clamp(-1e5, 1e5);
        let points = vec![(self.rect.left, level), (self.rect.right, level)];
        sheet.scene.add_within(self.rect, Shape::Line { points, stroke });
    }
}

/// From the middle of a line of writing to where it stands.
pub fn middle(theme: &Theme) -> f64 {
    if theme.is_page() { 0.36 * theme.size(Role::Tick) } else { 0.3 * theme.size(Role::Tick) }
}

fn most_rows(theme: &Theme, rect: &Rect, ticks: &Ticks) -> usize {
    match ticks {
        Ticks::Named(names) => names.len(),
        _ => ((rect.height() / (1.9 * theme.line(Role::Tick))) as usize).clamp(1, 8),
    }
}

/// The ticks of a horizontal axis that stand apart, and the rectangle with room for the outermost.
fn fitted(theme: &Theme, axis: &Axis, rect: &mut Rect, outer: &Rect) -> Vec<(f64, String)> {
    let start = *rect;
    // In a terminal the labels of both axes share a row at the corner.
    let edge = if theme.is_page() { outer.left } else { rect.left };
    rect.right -= if theme.is_page() { 4.0 } else { 0.0 };
    for most in (1..=(rect.width() / 34.0).clamp(2.0, 9.0) as usize).rev() {
        let marks = axis.marks(most);
        let half = |text: &str| 0.5 * theme.width_of(text, Role::Tick);
        // Room for labels that reach over the ends; each shift moves the others a little, hence twice.
        for _ in 0..2 {
            let spot = |v: f64| rect.left + axis.share(v) * rect.width();
            let right = marks.iter().map(|(v, t)| spot(*v) + half(t)).fold(0.0, f64::max);
            let left = marks.iter().map(|(v, t)| spot(*v) - half(t)).fold(f64::INFINITY, f64::min);
            rect.right -= (right - outer.right).max(0.0);
            rect.left += (edge - left).max(0.0);
        }
        let spot = |v: f64| rect.left + axis.share(v) * rect.width();
        let apart = |pair: &[(f64, String)]| {
            spot(pair[0].0) + half(&pair[0].1) + APART <= spot(pair[1].0) - half(&pair[1].1)
        };
        if marks.windows(2).all(apart) {
            return marks;
        }
        if let Ticks::Named(_) = axis.ticks {
            return thinned(marks, &|a, b| apart(&[a.clone(), b.clone()]));
        }
        *rect = start;
    }
    Vec::new()
}

/// A place on an axis, and what is written there.
type Mark = (f64, String);

/// Those that stand apart from the last one kept.
fn thinned(marks: Vec<Mark>, apart: &dyn Fn(&Mark, &Mark) -> bool) -> Vec<Mark> {
    let mut kept: Vec<Mark> = Vec::new();
    for mark in marks {
        if kept.last().is_none_or(|last| apart(last, &mark)) {
            kept.push(mark);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_within() {
        let labels = |range, most| -> Vec<String> {
            round_ticks(range, most, false).into_iter().map(|t| t.1).collect()
        };
        assert_eq!(labels((-1.0, 1.0), 5), ["−1.0", "−0.5", "0", "0.5", "1.0"]);
        assert_eq!(labels((0.0, 3e7), 4), ["0", "1e7", "2e7", "3e7"]);
        assert_eq!(labels((0.0, 3e-7), 4), ["0", "1e−7", "2e−7", "3e−7"]);
        let whole: Vec<f64> = round_ticks((1.0, 3.0), 9, true).into_iter().map(|t| t.0).collect();
        assert_eq!(whole, [1.0, 2.0, 3.0]);
        let log: Vec<String> = log_ticks((0.5, 2000.0), 5).into_iter().map(|t| t.1).collect();
        assert_eq!(log, ["1", "10", "100", "1000"]);
        assert_eq!(log_ticks((1e-300, 1e300), 5).len(), 5);
    }

    #[test]
    fn ranges_of_one_number_have_room() {
        assert_eq!(widened((3.0, 3.0)), (2.85, 3.15));
        assert_eq!(widened((f64::INFINITY, f64::NEG_INFINITY)), (0.0, 1.0));
    }
}

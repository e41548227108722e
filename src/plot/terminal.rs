//! A scene in the cells of a terminal: lines as dots of braille, letters as they are, fields of colour as half blocks.

use std::fmt::Write;

use super::canvas::{Anchor, Item, Point, Rect, Scene, Shape, Text};
use super::palette::{Colour, lightness};
use super::theme::{CELL, cells, letter_cells};

/// A dot of braille, in points of the scene.
const DOT: f64 = CELL.0 / 2.0;
/// Fills that are fainter than this are not shown.
const FAINTEST: f64 = 0.5;

/// Lines of text; in colour (of a palette of 256) where `colour` says so.
pub fn terminal(scene: &Scene, colour: bool) -> String {
    let mut screen = Screen::new(scene);
    for item in &scene.items {
        screen.draw(item);
    }
    screen.text(colour)
}

#[derive(Clone, Default)]
struct Cell {
    dots: u8,
    ink: Option<Colour>,
    letter: Option<char>,
    /// The second half of a wide letter.
    taken: bool,
    /// Upper and lower half of a field.
    halves: Option<[Colour; 2]>,
}

struct Screen {
    columns: usize,
    rows: usize,
    cells: Vec<Cell>,
}

impl Screen {
    fn new(scene: &Scene) -> Screen {
        let columns = (scene.width / CELL.0).round().max(1.0) as usize;
        let rows = (scene.height / CELL.1).round().max(1.0) as usize;
        Screen { columns, rows, cells: vec![Cell::default(); columns * rows] }
    }

    fn draw(&mut self, Item { shape, clip }: &Item) {
        match shape {
            Shape::Line { points, stroke } => self.line(points, stroke.paint.colour, &stroke.dashes, clip),
            Shape::Polygon { points, fill } if fill.opacity >= FAINTEST => {
                let closed: Vec<Point> = points.iter().chain(points.first()).copied().collect();
                self.line(&closed, fill.colour, &[], clip);
            }
            Shape::Box { rect, fill, stroke } => {
                let r = rect;
                let corners = [
                    (r.left, r.top),
                    (r.right, r.top),
                    (r.right, r.bottom),
                    (r.left, r.bottom),
                    (r.left, r.top),
                ];
                let paint = fill.filter(|f| f.opacity >= FAINTEST).or(stroke.as_ref().map(|s| s.paint));
                if let Some(paint) = paint {
                    self.line(&corners, paint.colour, &[], clip);
                }
            }
            Shape::Circle { centre, fill, stroke, .. } => {
                if let Some(paint) = fill.or(stroke.as_ref().map(|s| s.paint)) {
                    self.dot(*centre, paint.colour, clip);
                }
            }
            Shape::Text(text) => self.write(text),
            Shape::Image { rect, columns, cells, .. } => self.image(rect, *columns, cells),
            Shape::Polygon { .. } => {}
        }
    }

    fn cell(&mut self, column: i64, row: i64) -> Option<&mut Cell> {
        let inside = column >= 0 && row >= 0 && column < self.columns as i64 && row < self.rows as i64;
        inside.then(|| &mut self.cells[row as usize * self.columns + column as usize])
    }

    fn dot(&mut self, (x, y): Point, colour: Colour, clip: &Option<Rect>) {
        let outside =
            |r: &Rect| x < r.left - DOT || x > r.right + DOT || y < r.top - DOT || y > r.bottom + DOT;
        if !x.is_finite() || !y.is_finite() || clip.as_ref().is_some_and(outside) {
            return;
        }
        let (i, j) = ((x / DOT).floor() as i64, (y / DOT).floor() as i64);
        // Dots of braille are numbered down the left column, then the right; the lowest row came later.
        const BITS: [[u8; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];
        let bit = BITS[j.rem_euclid(4) as usize][i.rem_euclid(2) as usize];
        if let Some(cell) = self.cell(i.div_euclid(2), j.div_euclid(4)) {
            cell.dots |= bit;
            cell.ink = Some(colour);
        }
    }

    fn line(&mut self, points: &[Point], colour: Colour, dashes: &[f64], clip: &Option<Rect>) {
        let period: f64 = dashes.iter().sum();
        let mut gone = 0.0;
        for pair in points.windows(2) {
            let (a, b) = (pair[0], pair[1]);
            let length = (b.0 - a.0).hypot(b.1 - a.1);
            // A line that leaves the picture by far is not followed there.
            let steps = ((length / (0.8 * DOT)).ceil() as usize).clamp(1, 20_000);
            for s in 0..=steps {
                let share = s as f64 / steps as f64;
                let on = period <= 0.0 || (gone + share * length) % period < dashes[0];
                if on {
                    self.dot((a.0 + share * (b.0 - a.0), a.1 + share * (b.1 - a.1)), colour, clip);
                }
            }
            gone += length;
        }
    }

    fn write(&mut self, text: &Text) {
        let width = cells(&text.text) as f64;
        let start = text.at.0 / CELL.0
            - match text.anchor {
                Anchor::Start => 0.0,
                Anchor::Middle => 0.5 * width,
                Anchor::End => width,
            };
        let row = ((text.at.1 - 0.8 * CELL.1) / CELL.1).round() as i64;
        let mut column = (start.round() as i64).min(self.columns as i64 - width as i64).max(0);
        for letter in text.text.chars() {
            let wide = letter_cells(letter);
            if let Some(cell) = self.cell(column, row).filter(|_| wide > 0) {
                *cell = Cell { letter: Some(letter), ink: Some(text.colour), ..Cell::default() };
            }
            if wide == 2
                && let Some(next) = self.cell(column + 1, row)
            {
                *next = Cell { taken: true, ..Cell::default() };
            }
            column += wide as i64;
        }
    }

    fn image(&mut self, rect: &Rect, columns: usize, picture: &[Colour]) {
        let rows = picture.len() / columns.max(1);
        let (left, right) = ((rect.left / CELL.0).round() as i64, (rect.right / CELL.0).round() as i64);
        let (top, bottom) = ((rect.top / CELL.1).round() as i64, (rect.bottom / CELL.1).round() as i64);
        let (wide, high) = ((right - left).max(1), 2 * (bottom - top).max(1));
        let sample = |i: i64, j: i64| {
            let column = ((i as f64 + 0.5) / wide as f64 * columns as f64) as usize;
            let row = ((j as f64 + 0.5) / high as f64 * rows as f64) as usize;
            picture[row.min(rows - 1) * columns + column.min(columns - 1)]
        };
        for (i, j) in (0..wide).flat_map(|i| (0..high / 2).map(move |j| (i, j))) {
            if let Some(cell) = self.cell(left + i, top + j) {
                cell.halves = Some([sample(i, 2 * j), sample(i, 2 * j + 1)]);
            }
        }
    }

    fn text(&self, colour: bool) -> String {
        let mut out = String::new();
        for row in self.cells.chunks(self.columns) {
            let mut line = String::new();
            let mut pen = Pen::default();
            for cell in row.iter().filter(|c| !c.taken) {
                let (sign, ink, ground) = cell.look(colour);
                if colour {
                    pen.turn(&mut line, ink, ground);
                }
                line.push(sign);
            }
            if colour {
                pen.turn(&mut line, None, None);
            }
            out += line.trim_end();
            out.push('\n');
        }
        out
    }
}

impl Cell {
    /// The sign, and its colours.
    fn look(&self, colour: bool) -> (char, Option<Colour>, Option<Colour>) {
        if let Some(letter) = self.letter {
            return (letter, self.ink, None);
        }
        if self.dots != 0 {
            let sign = char::from_u32(0x2800 + u32::from(self.dots)).expect("a dot pattern");
            return (sign, self.ink, self.halves.map(|[a, _]| a));
        }
        match self.halves {
            Some([upper, lower]) if colour => ('▀', Some(upper), Some(lower)),
            Some([upper, lower]) => {
                let dark = 1.0 - 0.5 * (lightness(upper) + lightness(lower));
                ([' ', '░', '▒', '▓', '█'][(5.0 * dark).clamp(0.0, 4.0) as usize], None, None)
            }
            None => (' ', None, None),
        }
    }
}

/// Which colours the terminal is set to.
#[derive(Default, PartialEq)]
struct Pen {
    ink: Option<u8>,
    ground: Option<u8>,
}

impl Pen {
    fn turn(&mut self, out: &mut String, ink: Option<Colour>, ground: Option<Colour>) {
        // Near-black text is left to the terminal, whose background may be dark.
        let ink = ink.filter(|c| ground.is_some() || lightness(*c) > 0.45 || !is_grey(*c));
        let next = Pen { ink: ink.map(nearest), ground: ground.map(nearest) };
        if next == *self {
            return;
        }
        out.push_str("\x1b[0m");
        if let Some(code) = next.ink {
            let _ = write!(out, "\x1b[38;5;{code}m");
        }
        if let Some(code) = next.ground {
            let _ = write!(out, "\x1b[48;5;{code}m");
        }
        *self = next;
    }
}

fn is_grey(Colour(r, g, b): Colour) -> bool {
    r.abs_diff(g) < 8 && g.abs_diff(b) < 8
}

/// The nearest of the 6 × 6 × 6 colours, or of the greys.
fn nearest(Colour(r, g, b): Colour) -> u8 {
    if is_grey(Colour(r, g, b)) {
        return if r > 246 { 231 } else { 232 + (f64::from(r).max(8.0) - 8.0).min(230.0) as u8 / 10 };
    }
    const STEPS: [u8; 6] = [0, 95, 135, 175, 215, 255];
    let step = |v: u8| (0..6u8).min_by_key(|i| STEPS[usize::from(*i)].abs_diff(v)).expect("six steps");
    16 + 36 * step(r) + 6 * step(g) + step(b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::canvas::Stroke;
    use crate::plot::palette::INK;

    #[test]
    fn a_line_is_dots_and_a_text_is_itself() {
        let mut scene = Scene::new(4.0 * CELL.0, 2.0 * CELL.1);
        scene.line((0.0, 1.0), (19.0, 1.0), Stroke::new(INK, 1.0));
        let text = Text {
            at: (0.0, 18.0),
            text: "né漢".into(),
            size: 10.0,
            anchor: Anchor::Start,
            upright: false,
            colour: INK,
        };
        scene.add(Shape::Text(text));
        assert_eq!(terminal(&scene, false), "⠉⠉⠉⠉\nné漢\n");
    }
}

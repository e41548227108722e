//! The parts that every picture has: a title above, a legend, notes below; and in between room for axes.

use super::canvas::{Anchor, Paint, Point, Rect, Scene, Shape, Stroke, Text};
use super::palette::{Colour, GREY, INK};
use super::theme::{Role, Theme};

/// What a line or a field of the legend looks like.
#[derive(Clone, Debug)]
pub enum Mark {
    Line(Stroke),
    /// A line within its band.
    Band(Stroke),
    Field(Paint),
    Dot(Colour),
}

#[derive(Clone, Debug)]
pub struct Entry {
    pub mark: Mark,
    pub label: String,
}

impl Entry {
    pub fn new(mark: Mark, label: impl Into<String>) -> Entry {
        Entry { mark, label: label.into() }
    }
}

/// What stands around the axes.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    pub title: String,
    /// Below the title: which run, which repeat, how many draws.
    pub subtitle: String,
    pub legend: Vec<Entry>,
    pub notes: Vec<String>,
}

/// Lines that they may take.
const TITLE_LINES: usize = 2;
const SUBTITLE_LINES: usize = 2;
const NOTE_LINES: usize = 8;
/// Those of a terminal, which has few.
const NOTE_ROWS: usize = 5;
const LEGEND_ROWS: usize = 3;
/// A mark of the legend, and the room around it.
const MARK: f64 = 16.0;
const GAP: f64 = 5.0;
const BETWEEN: f64 = 14.0;

/// A picture in the making.
pub struct Sheet {
    pub theme: Theme,
    pub scene: Scene,
    /// What is left for axes.
    pub body: Rect,
}

impl Sheet {
    pub fn new(theme: &Theme, around: &Surroundings) -> Sheet {
        let margin = if theme.is_page() { 10.0 } else { 0.0 };
        let body = Rect::new(margin, margin, theme.width - margin, theme.height - margin);
        let mut sheet = Sheet { theme: *theme, scene: Scene::new(theme.width, theme.height), body };
        sheet.scene.description = match around.subtitle.is_empty() {
            true => around.title.clone(),
            false => format!("{}. {}", around.title, around.subtitle),
        };
        sheet.heading(&around.title, Role::Title, INK, TITLE_LINES);
        sheet.heading(&around.subtitle, Role::Note, GREY, SUBTITLE_LINES);
        sheet.legend(&around.legend);
        sheet.notes(&around.notes);
        sheet
    }

    fn heading(&mut self, text: &str, role: Role, colour: Colour, most: usize) {
        for line in self.theme.wrap(text, role, self.body.width(), most) {
            let at = (self.body.left, self.body.top + self.theme.ascent(role));
            self.write(&line, role, at, Anchor::Start, colour);
            self.body.top += self.theme.line(role);
        }
    }

    fn notes(&mut self, notes: &[String]) {
        let room = self.body.width();
        let most = if self.theme.is_page() { NOTE_LINES } else { NOTE_ROWS };
        let wrapped = notes.iter().flat_map(|note| self.theme.wrap(note, Role::Note, room, most));
        let mut lines: Vec<String> = wrapped.collect();
        // What there is no room for is not left out in silence.
        if lines.len() > most {
            lines.truncate(most);
            lines[most - 1] = self.theme.fit(&format!("{} …", lines[most - 1]), Role::Note, room);
        }
        let line = self.theme.line(Role::Note);
        let top = self.body.bottom - line * lines.len() as f64;
        for (i, text) in lines.iter().enumerate() {
            let at = (self.body.left, top + line * i as f64 + self.theme.ascent(Role::Note) + self.air(2.0));
            self.write(text, Role::Note, at, Anchor::Start, GREY);
        }
        self.body.bottom = top - if lines.is_empty() { 0.0 } else { self.air(3.0) };
    }

    /// Space between parts that a terminal has no rows for.
    pub fn air(&self, points: f64) -> f64 {
        if self.theme.is_page() { points } else { 0.0 }
    }

    fn legend(&mut self, entries: &[Entry]) {
        if entries.is_empty() {
            self.body.top += self.air(4.0);
            return;
        }
        let line = self.theme.line(Role::Label);
        let most = self.body.width() - MARK - GAP;
        let (mut x, mut row) = (self.body.left, 0);
        for (i, entry) in entries.iter().enumerate() {
            let label = self.theme.fit(&entry.label, Role::Label, most);
            let width = MARK + GAP + self.theme.width_of(&label, Role::Label);
            let left = entries.len() - i;
            let more = format!("… and {left} more");
            let reserve = if left > 1 && row == LEGEND_ROWS - 1 {
                BETWEEN + self.theme.width_of(&more, Role::Label)
            } else {
                0.0
            };
            let full = x > self.body.left && x + width > self.body.right;
            if full && row < LEGEND_ROWS - 1 {
                row += 1;
                x = self.body.left;
            } else if x > self.body.left && x + width + reserve > self.body.right && row == LEGEND_ROWS - 1 {
                let at =
                    (x, self.body.top + line * row as f64 + self.theme.ascent(Role::Label) + self.air(2.0));
                self.write(&more, Role::Label, at, Anchor::Start, GREY);
                break;
            }
            let top = self.body.top + line * row as f64 + self.air(2.0);
            self.mark(&entry.mark, x, top + 0.5 * line);
            let at = (x + MARK + GAP, top + self.theme.ascent(Role::Label));
            self.write(&label, Role::Label, at, Anchor::Start, INK);
            x += width + BETWEEN;
        }
        self.body.top += line * (row + 1) as f64 + self.air(4.0);
    }

    fn mark(&mut self, mark: &Mark, x: f64, y: f64) {
        let y = y - self.air(1.5);
        match mark {
            Mark::Line(stroke) => self.scene.line((x, y), (x + MARK, y), stroke.clone()),
            Mark::Band(stroke) => {
                let fill = Some(Paint { colour: stroke.paint.colour, opacity: 0.2 });
                self.scene.add(Shape::Box {
                    rect: Rect::new(x, y - 4.0, x + MARK, y + 4.0),
                    fill,
                    stroke: None,
                });
                self.scene.line((x, y), (x + MARK, y), stroke.clone());
            }
            Mark::Field(paint) => {
                let rect = Rect::new(x + 2.0, y - 4.0, x + MARK - 2.0, y + 4.0);
                self.scene.add(Shape::Box { rect, fill: Some(*paint), stroke: None });
            }
            Mark::Dot(colour) => {
                let (centre, fill) = ((x + 0.5 * MARK, y), Some(Paint::from(*colour)));
                self.scene.add(Shape::Circle { centre, radius: 3.0, fill, stroke: None });
            }
        }
    }

    pub fn write(&mut self, text: &str, role: Role, at: Point, anchor: Anchor, colour: Colour) {
        if !text.is_empty() {
            let size = self.theme.size(role);
            let text = text.to_owned();
            self.scene.add(Shape::Text(Text { at, text, size, anchor, upright: false, colour }));
        }
    }

    /// Reads upwards; a terminal cannot.
    pub fn write_upright(&mut self, text: &str, role: Role, at: Point, anchor: Anchor) {
        if self.theme.is_page() && !text.is_empty() {
            let size = self.theme.size(role);
            let text = text.to_owned();
            self.scene.add(Shape::Text(Text { at, text, size, anchor, upright: true, colour: GREY }));
        }
    }

    /// The body cut into panels of the same size, row by row.
    pub fn panels(&self, rows: usize, columns: usize) -> Vec<Rect> {
        let gap = if self.theme.is_page() { 12.0 } else { 10.0 };
        let width = (self.body.width() - gap * (columns - 1) as f64) / columns as f64;
        let height = (self.body.height() - self.air(8.0) * (rows - 1) as f64) / rows as f64;
        let panel = |i: usize| {
            let left = self.body.left + (i % columns) as f64 * (width + gap);
            let top = self.body.top + (i / columns) as f64 * (height + self.air(8.0));
            Rect::new(left, top, left + width, top + height)
        };
        (0..rows * columns).map(panel).collect()
    }
}

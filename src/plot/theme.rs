//! How large a picture is, and how large its texts are: on a page, or in the cells of a terminal.

use super::canvas::{Anchor, Rect, Text};
use super::font;

/// Width and height of a cell of a terminal, in points of the scene. Four by two dots of braille are square then.
pub const CELL: (f64, f64) = (5.0, 10.0);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// Letters have the widths of the embedded font.
    Page,
    /// Every letter takes one cell, or two; nothing is turned.
    Cells,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Theme {
    pub width: f64,
    pub height: f64,
    pub medium: Medium,
}

/// What a text is for: it decides its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Title,
    Label,
    Tick,
    Note,
}

impl Default for Theme {
    fn default() -> Theme {
        Theme::page(468.0, 312.0)
    }
}

impl Theme {
    pub const fn page(width: f64, height: f64) -> Theme {
        Theme { width, height, medium: Medium::Page }
    }

    pub fn terminal(columns: usize, rows: usize) -> Theme {
        Theme { width: columns as f64 * CELL.0, height: rows as f64 * CELL.1, medium: Medium::Cells }
    }

    pub fn is_page(&self) -> bool {
        self.medium == Medium::Page
    }

    pub fn size(&self, role: Role) -> f64 {
        match (self.medium, role) {
            (Medium::Cells, _) => CELL.1,
            (Medium::Page, Role::Title) => 12.5,
            (Medium::Page, Role::Label) => 10.5,
            (Medium::Page, Role::Tick) => 9.5,
            (Medium::Page, Role::Note) => 9.0,
        }
    }

    /// From one line to the next.
    pub fn line(&self, role: Role) -> f64 {
        if self.is_page() { 1.25 * self.size(role) } else { CELL.1 }
    }

    pub fn ascent(&self, role: Role) -> f64 {
        font::ASCENT * self.size(role)
    }

    pub fn width_of(&self, text: &str, role: Role) -> f64 {
        self.measure(text, self.size(role))
    }

    pub fn measure(&self, text: &str, size: f64) -> f64 {
        match self.medium {
            Medium::Page => font::width(text, size),
            Medium::Cells => CELL.0 * cells(text) as f64,
        }
    }

    /// The space that a text takes.
    pub fn box_of(&self, text: &Text) -> Rect {
        let width = self.measure(&text.text, text.size);
        let back = match text.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => 0.5 * width,
            Anchor::End => width,
        };
        let (x, y) = text.at;
        let (up, down) = (font::ASCENT * text.size, font::DESCENT * text.size);
        match text.upright {
            true => Rect::new(x - up, y - (width - back), x + down, y + back),
            false => Rect::new(x - back, y - up, x - back + width, y + down),
        }
    }

    /// The text, with its middle left out where it is too wide: beginnings and ends tell names apart.
    pub fn fit(&self, text: &str, role: Role, width: f64) -> String {
        if self.width_of(text, role) <= width {
            return text.to_owned();
        }
        let letters: Vec<char> = text.chars().collect();
        let cut = |kept: usize| -> String {
            let (head, tail) = (kept.div_ceil(2), kept / 2);
            letters[..head].iter().chain(&['…']).chain(&letters[letters.len() - tail..]).collect()
        };
        let kept = (0..letters.len()).rev().find(|&kept| self.width_of(&cut(kept), role) <= width);
        kept.map_or(String::new(), cut)
    }

    /// Lines of words that are no wider than `width`, at most so many; what does not fit ends in an ellipsis.
    pub fn wrap(&self, text: &str, role: Role, width: f64, most: usize) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for word in text.split_whitespace() {
            let full = lines.len() == most;
            let longer = lines.last().map(|line| format!("{line} {word}"));
            match (longer.filter(|line| self.width_of(line, role) <= width), lines.last_mut()) {
                (Some(longer), Some(last)) => *last = longer,
                (_, Some(last)) if full => {
                    last.push('…');
                    *last = self.fit(last, role, width);
                    return lines;
                }
                _ => lines.push(self.fit(word, role, width)),
            }
        }
        lines
    }
}

/// Cells that a text takes in a terminal.
pub fn cells(text: &str) -> usize {
    text.chars().map(letter_cells).sum()
}

pub fn letter_cells(letter: char) -> usize {
    match letter {
        '\u{300}'..='\u{36f}' => 0,
        c if font::is_wide(c) => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_keep_both_ends() {
        let theme = Theme::terminal(80, 24);
        assert_eq!(theme.fit("beta.marital_status", Role::Tick, 50.0), "beta.…atus");
        assert_eq!(theme.fit("short", Role::Tick, 50.0), "short");
        assert_eq!(theme.wrap("one two three four", Role::Note, 40.0, 2), ["one two", "three…"]);
        let page = Theme::default();
        assert!(page.width_of(&page.fit(&"W".repeat(90), Role::Tick, 60.0), Role::Tick) <= 60.0);
    }
}

//! The embedded font: widths of texts, and outlines of letters. It is Liberation Sans, whose letters are as wide as those of
//! Arial and Helvetica, reduced to Latin, Greek, Cyrillic and some signs, and renamed as its licence asks.

use std::sync::OnceLock;

use ttf_parser::{Face, GlyphId, OutlineBuilder};

pub const BYTES: &[u8] = include_bytes!("font/sans.ttf");

/// Above and below the line of writing, as shares of the size: what letters, accents and tails reach.
pub const ASCENT: f64 = 0.80;
pub const DESCENT: f64 = 0.22;

fn face() -> &'static Face<'static> {
    static FACE: OnceLock<Face> = OnceLock::new();
    FACE.get_or_init(|| Face::parse(BYTES, 0).expect("the embedded font is whole"))
}

fn units() -> f64 {
    f64::from(face().units_per_em())
}

/// The number of a letter's shape; 0, a box, if the font has none.
pub fn glyph(letter: char) -> u16 {
    face().glyph_index(letter).map_or(0, |id| id.0)
}

/// How far a letter moves the pen, as a share of the size. What the font lacks is as wide as what stands in for it elsewhere.
pub fn advance(letter: char) -> f64 {
    match glyph(letter) {
        0 if is_wide(letter) => 1.0,
        number => f64::from(face().glyph_hor_advance(GlyphId(number)).unwrap_or(0)) / units(),
    }
}

/// Takes two cells of a terminal: Chinese, Japanese, Korean, pictures.
pub fn is_wide(letter: char) -> bool {
    matches!(letter as u32, 0x1100..=0x115f | 0x2e80..=0xa4cf | 0xac00..=0xd7a3 | 0xf900..=0xfaff | 0xfe30..=0xfe6f
        | 0xff00..=0xff60 | 0xffe0..=0xffe6 | 0x1f300..=0x1faff | 0x20000..=0x3fffd)
}

pub fn width(text: &str, size: f64) -> f64 {
    size * text.chars().map(advance).sum::<f64>()
}

/// Outlines of a text, its line of writing beginning at (0, 0), y downwards, as moves, lines, curves and ends.
pub fn outline(text: &str, size: f64, out: &mut dyn Outline) {
    let scale = size / units();
    let mut x = 0.0;
    for letter in text.chars() {
        let mut pen = Pen { out: &mut *out, x, scale };
        face().outline_glyph(GlyphId(glyph(letter)), &mut pen);
        x += size * advance(letter);
    }
}

/// Who draws outlines.
pub trait Outline {
    fn move_to(&mut self, x: f64, y: f64);
    fn line_to(&mut self, x: f64, y: f64);
    fn quad_to(&mut self, via: (f64, f64), x: f64, y: f64);
    fn close(&mut self);
}

struct Pen<'a> {
    out: &'a mut dyn Outline,
    x: f64,
    scale: f64,
}

impl Pen<'_> {
    fn at(&self, x: f32, y: f32) -> (f64, f64) {
        (self.x + self.scale * f64::from(x), -self.scale * f64::from(y))
    }
}

impl OutlineBuilder for Pen<'_> {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.out.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.out.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let (via, (x, y)) = (self.at(x1, y1), self.at(x, y));
        self.out.quad_to(via, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        // Not in this font, whose curves are quadratic; a chord through the middle of the handles is close.
        let via = self.at(0.5 * (x1 + x2), 0.5 * (y1 + y2));
        let (x, y) = self.at(x, y);
        self.out.quad_to(via, x, y);
    }

    fn close(&mut self) {
        self.out.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_as_wide_as_helvetica_s() {
        // Widths of Adobe's Helvetica, in thousandths.
        for (letter, thousandths) in [('a', 556.0), ('W', 944.0), ('1', 556.0), ('.', 278.0), ('i', 222.0)] {
            assert!((1000.0 * advance(letter) - thousandths).abs() < 1.0, "{letter}");
        }
        assert!("μσπθβ²₁₉−…≤×".chars().all(|c| glyph(c) != 0));
        assert_eq!(glyph('漢'), 0);
    }
}

//! A picture as a list of shapes, in points (1/72 inch), the origin at the top left. Backends turn it into bytes.

use super::palette::Colour;

pub type Point = (f64, f64);

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rect {
    pub left: f64,
    pub top: f64,
    pub right: f64,
    pub bottom: f64,
}

impl Rect {
    pub fn new(left: f64, top: f64, right: f64, bottom: f64) -> Rect {
        Rect { left, top, right, bottom }
    }

    pub fn width(&self) -> f64 {
        self.right - self.left
    }

    pub fn height(&self) -> f64 {
        self.bottom - self.top
    }

    pub fn contains(&self, other: &Rect, slack: f64) -> bool {
        other.left >= self.left - slack
            && other.top >= self.top - slack
            && other.right <= self.right + slack
            && other.bottom <= self.bottom + slack
    }

    pub fn overlaps(&self, other: &Rect, slack: f64) -> bool {
        self.left < other.right - slack
            && other.left < self.right - slack
            && self.top < other.bottom - slack
            && other.top < self.bottom - slack
    }
}

/// A colour with its opacity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Paint {
    pub colour: Colour,
    pub opacity: f64,
}

impl From<Colour> for Paint {
    fn from(colour: Colour) -> Paint {
        Paint { colour, opacity: 1.0 }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Stroke {
    pub paint: Paint,
    pub width: f64,
    /// Lengths drawn and left out in turn; empty for a line without gaps.
    pub dashes: Vec<f64>,
}

impl Stroke {
    pub fn new(paint: impl Into<Paint>, width: f64) -> Stroke {
        Stroke { paint: paint.into(), width, dashes: Vec::new() }
    }

    pub fn dashed(self, dashes: &[f64]) -> Stroke {
        Stroke { dashes: dashes.to_vec(), ..self }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Text {
    /// Where the line of writing begins, has its middle or ends.
    pub at: Point,
    pub text: String,
    pub size: f64,
    pub anchor: Anchor,
    /// Reads upwards.
    pub upright: bool,
    pub colour: Colour,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    Line {
        points: Vec<Point>,
        stroke: Stroke,
    },
    Polygon {
        points: Vec<Point>,
        fill: Paint,
    },
    Box {
        rect: Rect,
        fill: Option<Paint>,
        stroke: Option<Stroke>,
    },
    Circle {
        centre: Point,
        radius: f64,
        fill: Option<Paint>,
        stroke: Option<Stroke>,
    },
    Text(Text),
    /// Cells of colour, row after row from the top; smooth ones fade into each other.
    Image {
        rect: Rect,
        columns: usize,
        cells: Vec<Colour>,
        smooth: bool,
    },
}

/// A shape, and the rectangle that it must not leave.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    pub shape: Shape,
    pub clip: Option<Rect>,
}

/// A whole picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    pub width: f64,
    pub height: f64,
    /// What it shows, in words: for those who cannot see it.
    pub description: String,
    pub items: Vec<Item>,
}

impl Scene {
    pub fn new(width: f64, height: f64) -> Scene {
        Scene { width, height, description: String::new(), items: Vec::new() }
    }

    pub fn add(&mut self, shape: Shape) {
        self.items.push(Item { shape, clip: None });
    }

    pub fn add_within(&mut self, clip: Rect, shape: Shape) {
        self.items.push(Item { shape, clip: Some(clip) });
    }

    pub fn line(&mut self, from: Point, to: Point, stroke: Stroke) {
        self.add(Shape::Line { points: vec![from, to], stroke });
    }

    pub fn bounds(&self) -> Rect {
        Rect::new(0.0, 0.0, self.width, self.height)
    }

    pub fn texts(&self) -> impl Iterator<Item = &Text> {
        self.items.iter().filter_map(|item| match &item.shape {
            Shape::Text(text) => Some(text),
            _ => None,
        })
    }
}

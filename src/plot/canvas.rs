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

/// Less than this no eye can tell: a tenth of the thinnest line that is drawn.
const UNSEEN: f64 = 0.05;

/// The same line by fewer points, none of those left out further from it than can be seen (Douglas and Peucker). Contours come
/// with a point for every cell of their grid, most of them on the way between their neighbours.
pub fn straightened(points: &[Point]) -> Vec<Point> {
    let mut kept = vec![false; points.len()];
    let mut stretches = vec![(0, points.len().saturating_sub(1))];
    while let Some((first, last)) = stretches.pop() {
        for end in [first, last] {
            if let Some(end) = kept.get_mut(end) {
                *end = true;
            }
        }
        let away = |k: usize| distance(points[k], points[first], points[last]);
        let furthest = (first + 1..last).max_by(|&a, &b| away(a).total_cmp(&away(b)));
        if let Some(k) = furthest.filter(|&k| away(k) > UNSEEN) {
            stretches.extend([(first, k), (k, last)]);
        }
    }
    points.iter().zip(kept).filter(|(_, kept)| *kept).map(|(p, _)| *p).collect()
}

/// From a point to the line between two others, which are one where the line is closed.
fn distance(p: Point, a: Point, b: Point) -> f64 {
    let (way, from) = ((b.0 - a.0, b.1 - a.1), (p.0 - a.0, p.1 - a.1));
    let length = way.0 * way.0 + way.1 * way.1;
    let share = if length > 0.0 { ((way.0 * from.0 + way.1 * from.1) / length).clamp(0.0, 1.0) } else { 0.0 };
    (from.0 - share * way.0).hypot(from.1 - share * way.1)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_keeps_its_way_with_fewer_points() {
        let circle: Vec<Point> = (0..=720)
            .map(|k| f64::from(k % 720).to_radians() / 2.0)
            .map(|t| (90.0 * t.cos(), 90.0 * t.sin()))
            .collect();
        let fewer = straightened(&circle);
        assert!((90..200).contains(&fewer.len()), "{}", fewer.len());
        assert_eq!((fewer.first(), fewer.last()), (circle.first(), circle.last()));
        let off =
            |p: &Point| fewer.windows(2).map(|w| distance(*p, w[0], w[1])).fold(f64::INFINITY, f64::min);
        assert!(circle.iter().all(|p| off(p) <= UNSEEN));
        // There and back again is no straight line, and corners stay.
        let back = [(0.0, 0.0), (1.0, 0.0), (2.0, 0.0), (1.0, 0.0), (1.0, 1.0)];
        assert_eq!(straightened(&back), [(0.0, 0.0), (2.0, 0.0), (1.0, 0.0), (1.0, 1.0)]);
        assert_eq!(straightened(&[]), []);
        assert_eq!(straightened(&back[..1]), back[..1]);
    }
}

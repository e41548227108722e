//! A scene as PNG: shapes filled by tiny-skia, letters by their outlines.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use tiny_skia::{
    FillRule, FilterQuality, LineCap, LineJoin, Mask, Path, PathBuilder, Pixmap, PixmapPaint, StrokeDash,
    Transform,
};

use super::canvas::{Anchor, Paint, Point, Rect, Scene, Shape, Stroke, Text};
use super::font;
use super::palette::Colour;

/// `scale` pixels for a point.
pub fn png(scene: &Scene, scale: f64) -> Vec<u8> {
    let size = |points: f64| ((points * scale).round() as u32).clamp(1, 30_000);
    let mut pixels = Pixmap::new(size(scene.width), size(scene.height)).expect("a size within limits");
    pixels.fill(tiny_skia::Color::WHITE);
    let mut canvas =
        Canvas { pixels, transform: Transform::from_scale(scale as f32, scale as f32), mask: None };
    for item in &scene.items {
        canvas.clip(item.clip);
        canvas.draw(&item.shape);
    }
    let rgb: Vec<u8> = canvas.pixels.pixels().iter().flat_map(|p| [p.red(), p.green(), p.blue()]).collect();
    encode(canvas.pixels.width(), canvas.pixels.height(), &rgb, Some(scale))
}

/// Cells of colour as a picture, one pixel each.
pub fn image(columns: usize, cells: &[Colour]) -> Vec<u8> {
    let rgb: Vec<u8> = cells.iter().flat_map(|c| [c.0, c.1, c.2]).collect();
    encode(columns as u32, (cells.len() / columns.max(1)) as u32, &rgb, None)
}

struct Canvas {
    pixels: Pixmap,
    transform: Transform,
    /// The rectangle that shapes are cut to, and its mask.
    mask: Option<(Rect, Mask)>,
}

impl Canvas {
    fn clip(&mut self, clip: Option<Rect>) {
        if self.mask.as_ref().map(|(rect, _)| *rect) == clip {
            return;
        }
        self.mask = clip.and_then(|rect| {
            let mut mask = Mask::new(self.pixels.width(), self.pixels.height())?;
            mask.fill_path(&boxed(&rect)?, FillRule::Winding, true, self.transform);
            Some((rect, mask))
        });
    }

    fn fill(&mut self, path: &Path, paint: Paint, transform: Transform) {
        let mask = self.mask.as_ref().map(|(_, mask)| mask);
        self.pixels.fill_path(path, &painted(paint), FillRule::Winding, transform, mask);
    }

    fn stroke(&mut self, path: &Path, stroke: &Stroke) {
        let dashes: Vec<f32> = stroke.dashes.iter().map(|d| *d as f32).collect();
        let line = tiny_skia::Stroke {
            width: stroke.width as f32,
            line_cap: LineCap::Butt,
            line_join: LineJoin::Round,
            dash: StrokeDash::new(dashes, 0.0),
            ..Default::default()
        };
        let mask = self.mask.as_ref().map(|(_, mask)| mask);
        self.pixels.stroke_path(path, &painted(stroke.paint), &line, self.transform, mask);
    }

    fn both(&mut self, path: Option<Path>, fill: Option<Paint>, stroke: Option<&Stroke>) {
        let Some(path) = path else { return };
        if let Some(fill) = fill {
            self.fill(&path, fill, self.transform);
        }
        if let Some(stroke) = stroke {
            self.stroke(&path, stroke);
        }
    }

    fn draw(&mut self, shape: &Shape) {
        match shape {
            Shape::Line { points, stroke } => self.both(polyline(points, false), None, Some(stroke)),
            Shape::Polygon { points, fill } => self.both(polyline(points, true), Some(*fill), None),
            Shape::Box { rect, fill, stroke } => self.both(boxed(rect), *fill, stroke.as_ref()),
            Shape::Circle { centre, radius, fill, stroke } => {
                let circle = PathBuilder::from_circle(centre.0 as f32, centre.1 as f32, *radius as f32);
                self.both(circle, *fill, stroke.as_ref());
            }
            Shape::Text(text) => self.write(text),
            Shape::Image { rect, columns, cells, smooth } => self.image(rect, *columns, cells, *smooth),
        }
    }

    fn write(&mut self, text: &Text) {
        let mut pen = Letters(PathBuilder::new());
        font::outline(&text.text, text.size, &mut pen);
        let Some(path) = pen.0.finish() else { return };
        let back = font::width(&text.text, text.size)
            * match text.anchor {
                Anchor::Start => 0.0,
                Anchor::Middle => 0.5,
                Anchor::End => 1.0,
            };
        let (x, y) = (text.at.0 as f32, text.at.1 as f32);
        let turn = if text.upright { Transform::from_rotate(-90.0) } else { Transform::identity() };
        let place = turn.pre_translate(-back as f32, 0.0).post_translate(x, y).post_concat(self.transform);
        self.fill(&path, text.colour.into(), place);
    }

    fn image(&mut self, rect: &Rect, columns: usize, cells: &[Colour], smooth: bool) {
        let rows = cells.len() / columns.max(1);
        let Some(mut picture) = Pixmap::new(columns as u32, rows as u32) else { return };
        for (pixel, c) in picture.pixels_mut().iter_mut().zip(cells) {
            *pixel = tiny_skia::ColorU8::from_rgba(c.0, c.1, c.2, 255).premultiply();
        }
        let quality = if smooth { FilterQuality::Bilinear } else { FilterQuality::Nearest };
        let paint = PixmapPaint { quality, ..Default::default() };
        let scale = ((rect.width() / columns as f64) as f32, (rect.height() / rows as f64) as f32);
        let place = Transform::from_scale(scale.0, scale.1)
            .post_translate(rect.left as f32, rect.top as f32)
            .post_concat(self.transform);
        let mask = self.mask.as_ref().map(|(_, mask)| mask);
        self.pixels.draw_pixmap(0, 0, picture.as_ref(), &paint, place, mask);
    }
}

fn painted(paint: Paint) -> tiny_skia::Paint<'static> {
    let Colour(r, g, b) = paint.colour;
    let mut out = tiny_skia::Paint { anti_alias: true, ..Default::default() };
    out.set_color_rgba8(r, g, b, (255.0 * paint.opacity.clamp(0.0, 1.0)).round() as u8);
    out
}

fn boxed(rect: &Rect) -> Option<Path> {
    let [l, t, r, b] = [rect.left, rect.top, rect.right, rect.bottom].map(|v| v as f32);
    Some(PathBuilder::from_rect(tiny_skia::Rect::from_ltrb(l, t, r, b)?))
}

fn polyline(points: &[Point], closed: bool) -> Option<Path> {
    let mut path = PathBuilder::new();
    for (i, (x, y)) in points.iter().map(|(x, y)| (*x as f32, *y as f32)).enumerate() {
        if i == 0 { path.move_to(x, y) } else { path.line_to(x, y) }
    }
    if closed {
        path.close();
    }
    path.finish()
}

struct Letters(PathBuilder);

impl font::Outline for Letters {
    fn move_to(&mut self, x: f64, y: f64) {
        self.0.move_to(x as f32, y as f32);
    }

    fn line_to(&mut self, x: f64, y: f64) {
        self.0.line_to(x as f32, y as f32);
    }

    fn quad_to(&mut self, via: (f64, f64), x: f64, y: f64) {
        self.0.quad_to(via.0 as f32, via.1 as f32, x as f32, y as f32);
    }

    fn close(&mut self) {
        self.0.close();
    }
}

/// Eight bits each of red, green and blue; the resolution is written where it is known.
fn encode(width: u32, height: u32, rgb: &[u8], scale: Option<f64>) -> Vec<u8> {
    let mut rows = ZlibEncoder::new(Vec::new(), Compression::default());
    for row in rgb.chunks_exact(3 * width.max(1) as usize) {
        // 1: each byte as the difference from the pixel before.
        let before = [0, 0, 0].iter().chain(row);
        let line: Vec<u8> =
            [1].into_iter().chain(row.iter().zip(before).map(|(b, a)| b.wrapping_sub(*a))).collect();
        rows.write_all(&line).expect("memory takes all");
    }
    let mut out = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut head = [width.to_be_bytes(), height.to_be_bytes()].concat();
    head.extend([8, 2, 0, 0, 0]);
    chunk(&mut out, b"IHDR", &head);
    if let Some(scale) = scale {
        let per_metre = (scale * 72.0 / 0.0254).round() as u32;
        let size = [&per_metre.to_be_bytes()[..], &per_metre.to_be_bytes(), &[1]].concat();
        chunk(&mut out, b"pHYs", &size);
    }
    chunk(&mut out, b"IDAT", &rows.finish().expect("memory takes all"));
    chunk(&mut out, b"IEND", &[]);
    out
}

fn chunk(out: &mut Vec<u8>, name: &[u8; 4], data: &[u8]) {
    let mut sum = flate2::Crc::new();
    sum.update(name);
    sum.update(data);
    out.extend((data.len() as u32).to_be_bytes());
    out.extend(name);
    out.extend(data);
    out.extend(sum.sum().to_be_bytes());
}

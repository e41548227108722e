//! A scene as PDF, one page of its size: shapes as they are, letters as text in the embedded font.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::canvas::{Anchor, Paint, Point, Rect, Scene, Shape, Stroke, Text};
use super::font;
use super::palette::Colour;

/// How far the handles of a quarter of a circle are from its ends, for a radius of 1.
const QUARTER: f64 = 0.552_284_75;

pub fn pdf(scene: &Scene) -> Vec<u8> {
    let mut page = Page { height: scene.height, ..Page::default() };
    for item in &scene.items {
        page.out += "q\n";
        if let Some(clip) = item.clip {
            page.rect(&clip);
            page.out += "W n\n";
        }
        page.draw(&item.shape);
        page.out += "Q\n";
    }
    page.file(scene)
}

#[derive(Default)]
struct Page {
    height: f64,
    out: String,
    /// Opacities in thousandths, by the name of their state.
    states: BTreeMap<u32, String>,
    images: Vec<(usize, Vec<u8>, bool)>,
    /// Glyphs that are used, and what they stand for.
    glyphs: BTreeMap<u16, char>,
}

impl Page {
    fn put(&mut self, (x, y): Point, operator: &str) {
        let _ = writeln!(self.out, "{x:.3} {:.3} {operator}", self.height - y);
    }

    fn rect(&mut self, r: &Rect) {
        let (x, y, w, h) = (r.left, self.height - r.bottom, r.width(), r.height());
        let _ = writeln!(self.out, "{x:.3} {y:.3} {w:.3} {h:.3} re");
    }

    fn colour(&mut self, paint: Paint, operator: &str) {
        let Colour(r, g, b) = paint.colour;
        let [r, g, b] = [r, g, b].map(|v| f64::from(v) / 255.0);
        let _ = writeln!(self.out, "{r:.4} {g:.4} {b:.4} {operator}");
        if paint.opacity < 1.0 {
            let thousandths = (1000.0 * paint.opacity.max(0.0)).round() as u32;
            let name = self.states.entry(thousandths).or_insert(format!("G{thousandths}"));
            let _ = writeln!(self.out, "/{name} gs");
        }
    }

    fn path(&mut self, points: &[Point]) {
        points.iter().enumerate().for_each(|(i, p)| self.put(*p, if i == 0 { "m" } else { "l" }));
    }

    fn circle(&mut self, (x, y): Point, r: f64) {
        let k = QUARTER * r;
        self.put((x + r, y), "m");
        let quarters = [
            [(x + r, y + k), (x + k, y + r), (x, y + r)],
            [(x - k, y + r), (x - r, y + k), (x - r, y)],
            [(x - r, y - k), (x - k, y - r), (x, y - r)],
            [(x + k, y - r), (x + r, y - k), (x + r, y)],
        ];
        for [a, b, end] in quarters {
            self.put(a, "");
            self.put(b, "");
            self.put(end, "c");
        }
    }

    fn pen(&mut self, stroke: &Stroke) {
        self.colour(stroke.paint, "RG");
        let dashes: Vec<String> = stroke.dashes.iter().map(|d| format!("{d:.2}")).collect();
        let _ = writeln!(self.out, "{:.3} w 1 j [{}] 0 d", stroke.width, dashes.join(" "));
    }

    /// Draws the path that `make` lays out, filled, then stroked.
    fn both(&mut self, make: &dyn Fn(&mut Page), fill: Option<Paint>, stroke: Option<&Stroke>) {
        if let Some(fill) = fill {
            self.out += "q\n";
            self.colour(fill, "rg");
            make(self);
            self.out += "f\nQ\n";
        }
        if let Some(stroke) = stroke {
            self.pen(stroke);
            make(self);
            self.out += "S\n";
        }
    }

    fn draw(&mut self, shape: &Shape) {
        match shape {
            Shape::Line { points, stroke } => self.both(&|p| p.path(points), None, Some(stroke)),
            Shape::Polygon { points, fill } => self.both(&|p| p.path(points), Some(*fill), None),
            Shape::Box { rect, fill, stroke } => self.both(&|p| p.rect(rect), *fill, stroke.as_ref()),
            Shape::Circle { centre, radius, fill, stroke } => {
                self.both(&|p| p.circle(*centre, *radius), *fill, stroke.as_ref());
            }
            Shape::Text(text) => self.write(text),
            Shape::Image { rect, columns, cells, smooth } => {
                let pixels: Vec<u8> = cells.iter().flat_map(|c| [c.0, c.1, c.2]).collect();
                let (w, h, y) = (rect.width(), rect.height(), self.height - rect.bottom);
                let _ = writeln!(
                    self.out,
                    "{w:.3} 0 0 {h:.3} {:.3} {y:.3} cm /I{} Do",
                    rect.left,
                    self.images.len()
                );
                self.images.push((*columns, pixels, *smooth));
            }
        }
    }

    fn write(&mut self, text: &Text) {
        let codes: String = text.text.chars().map(|c| format!("{:04X}", font::glyph(c))).collect();
        for letter in text.text.chars() {
            self.glyphs.entry(font::glyph(letter)).or_insert(letter);
        }
        let back = font::width(&text.text, text.size)
            * match text.anchor {
                Anchor::Start => 0.0,
                Anchor::Middle => 0.5,
                Anchor::End => 1.0,
            };
        let (x, y) = (text.at.0, self.height - text.at.1);
        let place = match text.upright {
            true => format!("0 1 -1 0 {x:.3} {:.3}", y - back),
            false => format!("1 0 0 1 {:.3} {y:.3}", x - back),
        };
        self.colour(text.colour.into(), "rg");
        let _ = writeln!(self.out, "BT /F1 {:.3} Tf {place} Tm <{codes}> Tj ET", text.size);
    }

    /// The objects: catalogue, pages, page, content, font (five of them), states, images.
    fn file(self, scene: &Scene) -> Vec<u8> {
        let mut file = File::new();
        let states: String = self
            .states
            .iter()
            .map(|(t, name)| format!("/{name} << /ca {0:.3} /CA {0:.3} >> ", f64::from(*t) / 1000.0))
            .collect();
        let images: String = (0..self.images.len()).map(|i| format!("/I{i} {} 0 R ", 11 + i)).collect();
        file.object("<< /Type /Catalog /Pages 2 0 R >>");
        file.object("<< /Type /Pages /Kids [3 0 R] /Count 1 >>");
        file.object(&format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {:.2} {:.2}] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> \
             /ExtGState << {states}>> /XObject << {images}>> >> >>",
            scene.width, scene.height
        ));
        file.stream("", self.out.as_bytes());
        file.object(
            "<< /Type /Font /Subtype /Type0 /BaseFont /NPLSUB+nplSans /Encoding /Identity-H /DescendantFonts [6 0 R] /ToUnicode 9 0 R >>",
        );
        let widths: String =
            self.glyphs.iter().map(|(g, c)| format!("{g} [{:.0}] ", 1000.0 * font::advance(*c))).collect();
        file.object(&format!(
            "<< /Type /Font /Subtype /CIDFontType2 /BaseFont /NPLSUB+nplSans /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) \
             /Supplement 0 >> /FontDescriptor 7 0 R /CIDToGIDMap /Identity /DW 556 /W [{widths}] >>"
        ));
        file.object(
            "<< /Type /FontDescriptor /FontName /NPLSUB+nplSans /Flags 32 /FontBBox [-203 -303 1050 910] /ItalicAngle 0 /Ascent 905 \
             /Descent -212 /CapHeight 688 /StemV 80 /FontFile2 8 0 R >>",
        );
        file.stream(&format!("/Length1 {} ", font::BYTES.len()), font::BYTES);
        file.stream("", unicode(&self.glyphs).as_bytes());
        file.object(&format!(
            "<< /Title <{}> /Producer (npl) >>",
            utf16(&format!("\u{feff}{}", scene.description))
        ));
        for (columns, pixels, smooth) in &self.images {
            let rows = pixels.len() / 3 / columns.max(&1);
            let head = format!(
                "/Type /XObject /Subtype /Image /Width {columns} /Height {rows} /ColorSpace /DeviceRGB /BitsPerComponent 8 /Interpolate {smooth} "
            );
            file.stream(&head, pixels);
        }
        file.end()
    }
}

fn utf16(text: &str) -> String {
    text.encode_utf16().map(|unit| format!("{unit:04X}")).collect()
}

/// What the glyphs stand for, so that text can be searched and copied.
fn unicode(glyphs: &BTreeMap<u16, char>) -> String {
    let mut out = String::from(
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /Adobe-Identity-UCS def /CMapType 2 def\n\
         1 begincodespacerange <0000> <FFFF> endcodespacerange\n",
    );
    let known: Vec<(&u16, &char)> = glyphs.iter().filter(|(g, _)| **g != 0).collect();
    for some in known.chunks(100) {
        let _ = writeln!(out, "{} beginbfchar", some.len());
        for (glyph, letter) in some {
            let _ = writeln!(out, "<{glyph:04X}> <{}>", utf16(&letter.to_string()));
        }
        out += "endbfchar\n";
    }
    out + "endcmap CMapName currentdict /CMap defineresource pop end end\n"
}

/// Objects, numbered as they come, and where they begin.
struct File {
    bytes: Vec<u8>,
    places: Vec<usize>,
}

impl File {
    fn new() -> File {
        File { bytes: b"%PDF-1.5\n%\xe2\xe3\xcf\xd3\n".to_vec(), places: Vec::new() }
    }

    fn object(&mut self, body: &str) {
        self.begin();
        self.bytes.extend(body.as_bytes());
        self.bytes.extend(b"\nendobj\n");
    }

    fn begin(&mut self) {
        self.places.push(self.bytes.len());
        self.bytes.extend(format!("{} 0 obj\n", self.places.len()).as_bytes());
    }

    fn stream(&mut self, head: &str, data: &[u8]) {
        let mut packed = ZlibEncoder::new(Vec::new(), Compression::default());
        packed.write_all(data).expect("memory takes all");
        let packed = packed.finish().expect("memory takes all");
        self.begin();
        self.bytes.extend(
            format!("<< {head}/Filter /FlateDecode /Length {} >>\nstream\n", packed.len()).as_bytes(),
        );
        self.bytes.extend(packed);
        self.bytes.extend(b"\nendstream\nendobj\n");
    }

    fn end(mut self) -> Vec<u8> {
        let start = self.bytes.len();
        let count = self.places.len() + 1;
        let rows: String = self.places.iter().map(|place| format!("{place:010} 00000 n \n")).collect();
        let tail = format!(
            "xref\n0 {count}\n0000000000 65535 f \n{rows}trailer\n<< /Size {count} /Root 1 0 R /Info 10 0 R >>\nstartxref\n{start}\n%%EOF\n"
        );
        self.bytes.extend(tail.as_bytes());
        self.bytes
    }
}

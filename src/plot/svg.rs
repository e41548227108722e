//! A scene as SVG: plain text, letters as letters.

use std::fmt::Write;

use super::canvas::{Anchor, Paint, Point, Scene, Shape, Stroke, Text};
use super::font;
use super::palette::Colour;
use super::png;

/// Fonts of the same widths, whichever is there.
const FONTS: &str = "Arial, Helvetica, 'Liberation Sans', Arimo, sans-serif";

/// A file.
pub fn svg(scene: &Scene) -> String {
    written_out(scene, &identity(scene), " xmlns=\"http://www.w3.org/2000/svg\"")
}

/// An element of a page of HTML, where names that begin with `prefix` are its own.
pub fn svg_element(scene: &Scene, prefix: &str) -> String {
    written_out(scene, prefix, "")
}

fn written_out(scene: &Scene, prefix: &str, namespace: &str) -> String {
    let (w, h) = (number(scene.width), number(scene.height));
    let mut out = format!(
        "<svg{namespace} width=\"{w}pt\" height=\"{h}pt\" viewBox=\"0 0 {w} {h}\" role=\"img\" \
         font-family=\"{FONTS}\">\n<title>{}</title>\n<rect width=\"{w}\" height=\"{h}\" fill=\"#fff\"/>\n",
        escaped(&scene.description)
    );
    let mut clips: Vec<String> = Vec::new();
    // Draws are hundreds of dots that look alike: what they share is written once.
    let mut shared: Option<String> = None;
    for item in &scene.items {
        let mut more = String::new();
        if let Some(r) = item.clip {
            let [x, y, w, h] = [r.left, r.top, r.width(), r.height()].map(number);
            let area = format!("<rect x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\"/>");
            let place = clips.iter().position(|c| *c == area).unwrap_or_else(|| {
                let _ = writeln!(out, "<clipPath id=\"{prefix}{}\">{area}</clipPath>", clips.len());
                clips.push(area);
                clips.len() - 1
            });
            more = format!(" clip-path=\"url(#{prefix}{place})\"");
        }
        let dot = dotted(&item.shape).map(|style| style + &more);
        if dot != shared {
            out += if shared.is_some() { "</g>\n" } else { "" };
            if let Some(style) = &dot {
                let _ = writeln!(out, "<g{style}>");
            }
            shared = dot;
        }
        shape(&mut out, &item.shape, &more);
    }
    out + if shared.is_some() { "</g>\n</svg>\n" } else { "</svg>\n" }
}

/// How a filled circle without a rim looks: a round dot of a line that goes nowhere.
fn dotted(shape: &Shape) -> Option<String> {
    let Shape::Circle { radius, fill: Some(fill), stroke: None, .. } = shape else { return None };
    let look = format!(" stroke=\"{}\"{}", hex(fill.colour), opacity("stroke", *fill));
    Some(format!("{look} stroke-width=\"{}\" stroke-linecap=\"round\"", number(2.0 * radius)))
}

/// A prefix for names in this picture, so that several can stand in one page.
fn identity(scene: &Scene) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let size = format!("{}{}{}", scene.description, scene.width, scene.items.len());
    size.bytes().for_each(|b| hash = (hash ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
    format!("c{:08x}-", hash >> 32)
}

fn shape(out: &mut String, shape: &Shape, more: &str) {
    let _ = match shape {
        Shape::Line { points, stroke } => {
            writeln!(out, "<path d=\"{}\" fill=\"none\"{}{more}/>", path(points), stroked(Some(stroke)))
        }
        Shape::Polygon { points, fill } => {
            writeln!(out, "<path d=\"{}Z\"{}{more}/>", path(points), filled(Some(*fill)))
        }
        Shape::Box { rect, fill, stroke } => {
            let [x, y, w, h] = [rect.left, rect.top, rect.width(), rect.height()].map(number);
            let style = filled(*fill) + &stroked(stroke.as_ref());
            writeln!(out, "<rect x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\"{style}{more}/>")
        }
        Shape::Circle { centre, fill: Some(_), stroke: None, .. } => {
            writeln!(out, "<path d=\"M{} {}h0\"/>", number(centre.0), number(centre.1))
        }
        Shape::Circle { centre, radius, fill, stroke } => {
            let [x, y, r] = [centre.0, centre.1, *radius].map(number);
            let style = filled(*fill) + &stroked(stroke.as_ref());
            writeln!(out, "<circle cx=\"{x}\" cy=\"{y}\" r=\"{r}\"{style}{more}/>")
        }
        Shape::Text(text) => writeln!(out, "{}", written(text, more)),
        Shape::Image { rect, columns, cells, smooth } => {
            let [x, y, w, h] = [rect.left, rect.top, rect.width(), rect.height()].map(number);
            let bytes = base64(&png::image(*columns, cells));
            let how = if *smooth { "auto" } else { "pixelated" };
            writeln!(
                out,
                "<image x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" preserveAspectRatio=\"none\" \
                 style=\"image-rendering:{how}\" href=\"data:image/png;base64,{bytes}\"{more}/>"
            )
        }
    };
}

fn written(text: &Text, more: &str) -> String {
    let Text { at: (x, y), size, anchor, upright, colour, .. } = text;
    let [x, y, size] = [*x, *y, *size].map(number);
    let anchor = match anchor {
        Anchor::Start => "",
        Anchor::Middle => " text-anchor=\"middle\"",
        Anchor::End => " text-anchor=\"end\"",
    };
    let turn = if *upright { format!(" transform=\"rotate(-90 {x} {y})\"") } else { String::new() };
    let fill = hex(*colour);
    let words = escaped(&text.text);
    // Where another font stands in, words are fitted into the room that they were given.
    let known = text.text.chars().count() > 3 && text.text.chars().all(|c| font::glyph(c) != 0);
    let width = number(font::width(&text.text, text.size));
    let fitted = if known {
        format!(" textLength=\"{width}\" lengthAdjust=\"spacingAndGlyphs\"")
    } else {
        String::new()
    };
    let more = &format!("{fitted}{more}");
    format!(
        "<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\" fill=\"{fill}\"{anchor}{turn}{more}>{words}</text>"
    )
}

/// From its first point step by step: steps are shorter to write than places, the more so without zeros and blanks that
/// say nothing. They are between places that are rounded already, so that nothing adds up.
fn path(points: &[Point]) -> String {
    let mut out = String::with_capacity(8 * points.len());
    let (mut last, mut steps) = ((0.0, 0.0), false);
    for (i, (x, y)) in points.iter().map(|(x, y)| ((100.0 * x).round(), (100.0 * y).round())).enumerate() {
        match i {
            0 => out.push('M'),
            1 => out.push('l'),
            _ => steps = true,
        }
        for (first, step) in [(!steps, x - last.0), (false, y - last.1)] {
            let text = number(step / 100.0).replacen("0.", ".", usize::from(step.abs() < 100.0));
            out += if first || text.starts_with('-') { "" } else { " " };
            out += &text;
        }
        last = (x, y);
    }
    out
}

/// Hundredths of a point are finer than any eye.
fn number(v: f64) -> String {
    let text = format!("{v:.2}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    if text == "-0" { "0".into() } else { text.to_owned() }
}

fn hex(c: Colour) -> String {
    format!("#{:02x}{:02x}{:02x}", c.0, c.1, c.2)
}

fn opacity(name: &str, paint: Paint) -> String {
    if paint.opacity < 1.0 { format!(" {name}-opacity=\"{}\"", number(paint.opacity)) } else { String::new() }
}

fn filled(paint: Option<Paint>) -> String {
    match paint {
        Some(paint) => format!(" fill=\"{}\"{}", hex(paint.colour), opacity("fill", paint)),
        None => " fill=\"none\"".into(),
    }
}

fn stroked(stroke: Option<&Stroke>) -> String {
    let Some(Stroke { paint, width, dashes }) = stroke else { return String::new() };
    let dashes: Vec<String> = dashes.iter().map(|d| number(*d)).collect();
    let dashes =
        if dashes.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{}\"", dashes.join(" ")) };
    let colour = hex(paint.colour);
    let opacity = opacity("stroke", *paint);
    format!(
        " stroke=\"{colour}\" stroke-width=\"{}\" stroke-linejoin=\"round\"{opacity}{dashes}",
        number(*width)
    )
}

/// Text for XML, which has no control characters at all.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '&' => out += "&amp;",
            '"' => out += "&quot;",
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

pub(crate) fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len() * 4 / 3 + 4);
    for three in bytes.chunks(3) {
        let word = three.iter().enumerate().fold(0u32, |w, (i, b)| w | u32::from(*b) << (16 - 8 * i));
        for i in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * i)) as usize & 63] as char;
            out.push(if i <= three.len() { letter } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_has_its_padding() {
        assert_eq!([base64(b"M"), base64(b"Ma"), base64(b"Man")], ["TQ==", "TWE=", "TWFu"]);
    }

    #[test]
    fn names_of_users_are_no_markup() {
        assert_eq!(escaped("<b>&\"\u{1b}"), "&lt;b&gt;&amp;&quot;\u{fffd}");
        assert_eq!([number(-0.001), number(2.50), number(100.0)], ["0", "2.5", "100"]);
    }
}

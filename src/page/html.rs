//! HTML that is well-formed because it is made of whole elements, and safe because every text passes [`escaped`].

use sha2::{Digest, Sha256};

use crate::config::printable;
use crate::plot::{Scene, base64, svg_element};
use crate::store::GENERATOR;

/// A piece of a page: text and elements that are closed.
#[derive(Clone, Debug, Default)]
pub struct Html(String);

/// Attributes of an element.
pub type Attributes<'a> = [(&'static str, &'a str)];

impl Html {
    pub fn none() -> Html {
        Html::default()
    }

    /// Text of anyone, on one line.
    pub fn text(text: &str) -> Html {
        Html(escaped(text))
    }

    /// Text of anyone with its lines.
    pub fn lines(text: &str) -> Html {
        let lines: Vec<String> = text.lines().map(|line| escaped(&line.replace('\t', "    "))).collect();
        Html(lines.join("\n"))
    }

    /// Text of anyone; what stands between backquotes is code.
    pub fn marked(text: &str) -> Html {
        let parts: Vec<&str> = text.split('`').collect();
        // Without its closing fellow a backquote is a letter.
        if parts.len().is_multiple_of(2) {
            return Html::text(text);
        }
        let part = |(i, part): (usize, &&str)| match i % 2 {
            0 => Html::text(part),
            _ => Html::tag("code", Html::text(part)),
        };
        parts.iter().enumerate().map(part).collect()
    }

    pub fn picture(scene: &Scene, prefix: &str) -> Html {
        Html(svg_element(scene, prefix))
    }

    pub fn tag(name: &'static str, inside: Html) -> Html {
        Html::with(name, &[], inside)
    }

    pub fn with(name: &'static str, attributes: &Attributes, inside: Html) -> Html {
        let Html(inside) = inside;
        Html(format!("<{name}{}>{inside}</{name}>", written(attributes)))
    }

    pub fn paragraph(text: &str) -> Html {
        Html::tag("p", Html::text(text))
    }

    /// What a reader may pass over.
    pub fn note(text: &str) -> Html {
        Html::with("p", &[("class", "note")], Html::text(text))
    }

    /// What opens at a click.
    pub fn folded(title: &str, inside: Html) -> Html {
        Html::tag("details", Html::tag("summary", Html::text(title)).and(inside))
    }

    pub fn and(mut self, next: Html) -> Html {
        self.0 += &next.0;
        self
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<Html> for Html {
    fn from_iter<T: IntoIterator<Item = Html>>(pieces: T) -> Html {
        Html(pieces.into_iter().map(|piece| piece.0).collect())
    }
}

impl Extend<Html> for Html {
    fn extend<T: IntoIterator<Item = Html>>(&mut self, pieces: T) {
        pieces.into_iter().for_each(|piece| self.0 += &piece.0);
    }
}

/// A whole page that may load nothing, and run no script but the one it comes with.
pub fn document(title: &str, style: &'static str, script: &'static str, body: Html) -> String {
    let hash = base64(&Sha256::digest(script.as_bytes()));
    let policy = format!(
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{hash}'; base-uri 'none'; \
         form-action 'none'"
    );
    let title = escaped(title);
    let Html(body) = body;
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" \
         content=\"{policy}\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta \
         name=\"generator\" content=\"{GENERATOR}\">\n<title>{title}</title>\n<style>{style}</style>\n</head>\n<body>\n{body}\n\
         <script>{script}</script>\n</body>\n</html>\n"
    )
}

fn written(attributes: &Attributes) -> String {
    attributes.iter().map(|(name, value)| format!(" {name}=\"{}\"", escaped(value))).collect()
}

/// Text as HTML: no markup, nothing that hides or turns what surrounds it.
fn escaped(text: &str) -> String {
    let text = printable(text);
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '&' => out += "&amp;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_no_markup() {
        let Html(out) = Html::with("b", &[("title", "\"'><script>")], Html::text("</b>&\u{202e}\u{1b}"));
        assert_eq!(out, "<b title=\"&quot;&#39;&gt;&lt;script&gt;\">&lt;/b&gt;&amp;\\u{202e}\\u{1b}</b>");
        assert_eq!(Html::lines("a\tb\r\n<c>").0, "a    b\n&lt;c&gt;");
    }
}

//! Text into lines, and lines into cells, without a copy of either: the reading of a large file is the time it takes to
//! look at its bytes.

use std::io::{self, Read};
use std::ops::Range;

use memchr::{memchr, memchr2};

use super::blocks::whole_lines;
use super::table::MOST_COLUMNS;
use crate::config::printable;
use crate::error::Error;

/// Room for text to begin with; a longer line gets more.
const ROOM: usize = 1 << 18;
/// A longer line, or record, is none of a table: a small gzip file can hold one of terabytes.
const LONGEST: usize = 64 << 20;

/// What separates cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Separator {
    /// One byte.
    Byte(u8),
    /// Blanks and tabs, any number of them; those at the ends of lines count for nothing.
    Blanks,
}

/// What encloses a cell that holds a separator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quotes {
    /// `"`, doubled within the cell, which may go on over several lines (RFC 4180).
    Double,
    /// `"` or `'`, after a backslash within the cell, which ends on its line.
    Arff,
}

/// Why there is no next record.
#[derive(Debug)]
pub enum Fault {
    Read(io::Error),
    /// A quote that is never closed, on the line where it opens.
    OpenQuote {
        line: u64,
    },
    /// Text between a closing quote and the separator: most likely the quote was meant to open another cell, and all rows
    /// since the line where the first one opened would be lost in one cell.
    AfterQuote {
        line: u64,
        opened: u64,
    },
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Fault::Read(error)
    }
}

impl Fault {
    /// The message for people.
    pub fn in_file(&self, file: &str) -> Error {
        let file = printable(file);
        Error::input(match self {
            Fault::Read(e) => format!("{file}: {e}"),
            Fault::OpenQuote { line } => {
                format!("{file}:{line}: a quote opens a cell here, and none closes it")
            }
            Fault::AfterQuote { line, opened } if line == opened => {
                format!("{file}:{line}: text follows the quote that closes a cell")
            }
            Fault::AfterQuote { line, opened } => format!(
                "{file}:{line}: text follows the quote that closes a cell, which a quote on line {opened} has opened"
            ),
        })
    }
}

/// Text that is taken line by line.
pub struct Lines<R> {
    input: R,
    buffer: Vec<u8>,
    /// What of the buffer is read and not taken.
    left: Range<usize>,
    ended: bool,
    /// Lines and bytes taken.
    count: u64,
    bytes: u64,
}

impl<R: Read> Lines<R> {
    pub fn new(input: R) -> Self {
        Lines { input, buffer: vec![0; ROOM], left: 0..0, ended: false, count: 0, bytes: 0 }
    }

    /// Passes over a byte order mark in front of everything.
    pub fn skip_mark(&mut self) -> io::Result<()> {
        while self.left.len() < 3 && !self.ended {
            self.fill()?;
        }
        if self.buffer[self.left.clone()].starts_with(b"\xef\xbb\xbf") {
            self.left.start += 3;
        }
        Ok(())
    }

    /// Number of the line taken last, from 1.
    pub fn number(&self) -> u64 {
        self.count
    }

    /// The next line without its end, as a place in [`Lines::text`]; `None` where there is none. LF, CR LF and CR end
    /// a line.
    pub fn take(&mut self) -> io::Result<Option<Range<usize>>> {
        let mut seen = 0;
        loop {
            let unseen = &self.buffer[self.left.start + seen..self.left.end];
            match memchr2(b'\n', b'\r', unseen) {
                // CR may be half of CR LF, whose other half is not read yet.
                Some(at) if unseen[at] == b'\n' || at + 1 < unseen.len() || self.ended => {
                    let end = self.left.start + seen + at;
                    let pair =
                        self.buffer[end] == b'\r' && self.left.end > end + 1 && self.buffer[end + 1] == b'\n';
                    return Ok(Some(self.taken(end, end + 1 + usize::from(pair))));
                }
                _ if self.ended && self.left.is_empty() => return Ok(None),
                _ if self.ended => return Ok(Some(self.taken(self.left.end, self.left.end))),
                found => {
                    seen += found.unwrap_or(unseen.len());
                    self.fill()?;
                }
            }
        }
    }

    fn taken(&mut self, end: usize, next: usize) -> Range<usize> {
        let line = self.left.start..end;
        self.bytes += (next - self.left.start) as u64;
        self.left.start = next;
        self.count += 1;
        line
    }

    /// The whole lines among the next `size` bytes, which are not taken yet; `None` if there are none, or the rest is shorter than that.
    fn block(&mut self, size: usize) -> io::Result<Option<&[u8]>> {
        while self.left.len() < size {
            if self.ended {
                return Ok(None);
            }
            self.fill()?;
        }
        let lines = whole_lines(&self.buffer[self.left.start..][..size]);
        Ok(Some(lines).filter(|lines| !lines.is_empty()))
    }

    /// Takes so many bytes, which are so many lines.
    fn pass(&mut self, bytes: usize, lines: u64) {
        self.left.start += bytes;
        self.bytes += bytes as u64;
        self.count += lines;
    }

    /// Reads on, what is left first brought to the front.
    fn fill(&mut self) -> io::Result<()> {
        if self.left.start > 0 {
            self.buffer.copy_within(self.left.clone(), 0);
            self.left = 0..self.left.len();
        }
        if self.left.end == self.buffer.len() {
            self.grow()?;
        }
        loop {
            match self.input.read(&mut self.buffer[self.left.end..]) {
                Ok(0) => self.ended = true,
                Ok(read) => self.left.end += read,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
            }
            return Ok(());
        }
    }

    fn grow(&mut self) -> io::Result<()> {
        let room = self.buffer.len();
        if room >= LONGEST {
            return Err(too_long(self.count + 1));
        }
        self.buffer.try_reserve_exact(room).map_err(io::Error::other)?;
        self.buffer.resize(2 * room, 0);
        Ok(())
    }

    /// The text of a line just taken.
    pub fn text(&self, line: Range<usize>) -> &[u8] {
        &self.buffer[line]
    }
}

fn too_wide(line: u64) -> io::Error {
    io::Error::other(format!("line {line} has more than {MOST_COLUMNS} cells, the most that are read"))
}

fn too_long(line: u64) -> io::Error {
    io::Error::other(format!("line {line} has more than {} MiB and is none of a table", LONGEST >> 20))
}

/// The cells of one record, without blanks around them.
#[derive(Clone, Debug, Default)]
pub struct Cells {
    /// Text of a record with quotes, without them.
    unquoted: Vec<u8>,
    places: Vec<Range<usize>>,
}

/// A record: its cells, and the text they are in.
#[derive(Clone, Copy)]
pub struct Record<'a> {
    text: &'a [u8],
    places: &'a [Range<usize>],
}

impl<'a> Record<'a> {
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Cell `j`, from 0.
    pub fn cell(&self, j: usize) -> &'a [u8] {
        &self.text[self.places[j].clone()]
    }

    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> {
        let text = self.text;
        self.places.iter().map(move |place| &text[place.clone()])
    }

    pub fn to_vec(self) -> Vec<Vec<u8>> {
        self.iter().map(<[u8]>::to_vec).collect()
    }
}

/// Text that is taken record by record.
pub struct Records<R> {
    lines: Lines<R>,
    cells: Cells,
    separator: Separator,
    quotes: Quotes,
    comment: Option<u8>,
}

/// Where a record was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Line on which it starts, from 1.
    pub line: u64,
    /// First of the empty lines in front of it, if there are any.
    pub blank: Option<u64>,
}

impl<R: Read> Records<R> {
    pub fn new(lines: Lines<R>, separator: Separator, quotes: Quotes, comment: Option<u8>) -> Self {
        Records { lines, cells: Cells::default(), separator, quotes, comment }
    }

    /// The next block of whole lines, see [`Lines::block`].
    pub(super) fn block(&mut self, size: usize) -> io::Result<Option<&[u8]>> {
        self.lines.block(size)
    }

    pub(super) fn pass(&mut self, bytes: usize, lines: u64) {
        self.lines.pass(bytes, lines);
    }

    /// Bytes taken so far.
    pub(super) fn taken(&self) -> u64 {
        self.lines.bytes
    }

    /// Passes over lines, whatever is in them.
    pub fn skip(&mut self, lines: usize) -> io::Result<()> {
        for _ in 0..lines {
            if self.lines.take()?.is_none() {
                break;
            }
        }
        Ok(())
    }

    /// The next record that is neither an empty line nor a comment.
    pub fn next(&mut self) -> Result<Option<(Place, Record<'_>)>, Fault> {
        let mut blank = None;
        loop {
            let Some(line) = self.lines.take()? else { return Ok(None) };
            let place = Place { line: self.lines.number(), blank };
            let text = self.lines.text(line.clone());
            if text.is_empty() || self.separator == Separator::Blanks && text.trim_ascii().is_empty() {
                blank = blank.or(Some(place.line));
                continue;
            }
            if self.comment.is_some_and(|c| text[0] == c) {
                continue;
            }
            self.cells.places.clear();
            if self.quotes.occur(text) {
                self.quoted(line)?;
                return Ok(Some((place, Record { text: &self.cells.unquoted, places: &self.cells.places })));
            }
            split(text, self.separator, &mut self.cells.places);
            if self.cells.places.len() > MOST_COLUMNS {
                return Err(too_wide(place.line).into());
            }
            return Ok(Some((place, Record { text: self.lines.text(line), places: &self.cells.places })));
        }
    }

    /// A record some of whose cells may be quoted, and go on over several lines.
    fn quoted(&mut self, first: Range<usize>) -> Result<(), Fault> {
        let Cells { unquoted, places } = &mut self.cells;
        unquoted.clear();
        let mut line = self.lines.text(first).to_vec();
        let (mut at, mut start) = (0, 0);
        loop {
            if self.separator == Separator::Blanks || self.quotes == Quotes::Arff {
                at += line[at..].iter().take_while(|b| is_blank(**b)).count();
            }
            // A quote elsewhere than at the beginning of a cell is a character like others.
            let quote = line.get(at).copied().filter(|b| self.quotes.are(*b));
            let opened = self.lines.number();
            if let Some(quote) = quote {
                at += 1;
                loop {
                    match line.get(at) {
                        Some(&byte)
                            if self.quotes.escape(quote) == byte && line.get(at + 1) == Some(&quote) =>
                        {
                            at += 1
                        }
                        Some(&byte) if byte == quote => break,
                        Some(_) => {}
                        None => match self.lines.take()?.filter(|_| self.quotes == Quotes::Double) {
                            Some(_) if unquoted.len() > LONGEST => return Err(too_long(opened).into()),
                            Some(more) => {
                                unquoted.push(b'\n');
                                line = self.lines.text(more).to_vec();
                                at = 0;
                                continue;
                            }
                            None => return Err(Fault::OpenQuote { line: opened }),
                        },
                    }
                    unquoted.push(line[at]);
                    at += 1;
                }
                at += 1;
            }
            let rest = &line[at..];
            let end = rest.iter().position(|&b| self.separator.is(b));
            let tail = &rest[..end.unwrap_or(rest.len())];
            if quote.is_some() && !tail.trim_ascii().is_empty() {
                return Err(Fault::AfterQuote { line: self.lines.number(), opened });
            }
            unquoted.extend_from_slice(tail);
            places.push(trimmed(unquoted, start..unquoted.len()));
            if places.len() > MOST_COLUMNS {
                return Err(too_wide(opened).into());
            }
            start = unquoted.len();
            match end {
                Some(end) => at += end + 1,
                None => return Ok(()),
            }
            if self.separator == Separator::Blanks && line[at..].trim_ascii().is_empty() {
                return Ok(());
            }
        }
    }
}

impl Quotes {
    fn are(self, byte: u8) -> bool {
        byte == b'"' || self == Quotes::Arff && byte == b'\''
    }

    fn occur(self, text: &[u8]) -> bool {
        match self {
            Quotes::Double => memchr(b'"', text).is_some(),
            Quotes::Arff => memchr2(b'"', b'\'', text).is_some(),
        }
    }

    /// What makes a quote within a cell a character like others.
    fn escape(self, quote: u8) -> u8 {
        if self == Quotes::Arff { b'\\' } else { quote }
    }
}

impl Separator {
    fn is(self, byte: u8) -> bool {
        match self {
            Separator::Byte(separator) => byte == separator,
            Separator::Blanks => is_blank(byte),
        }
    }
}

fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// Places of the cells of a line without quotes; not all of them where they are too many.
pub(super) fn split(text: &[u8], separator: Separator, places: &mut Vec<Range<usize>>) {
    let mut start = 0;
    match separator {
        Separator::Byte(separator) => {
            for (at, &byte) in text.iter().enumerate() {
                if byte == separator {
                    places.push(trimmed(text, start..at));
                    start = at + 1;
                    if places.len() > MOST_COLUMNS {
                        return;
                    }
                }
            }
            places.push(trimmed(text, start..text.len()));
        }
        Separator::Blanks => {
            for (at, &byte) in text.iter().enumerate() {
                if is_blank(byte) {
                    if at > start {
                        places.push(start..at);
                        if places.len() > MOST_COLUMNS {
                            return;
                        }
                    }
                    start = at + 1;
                }
            }
            if text.len() > start {
                places.push(start..text.len());
            }
        }
    }
}

/// Without ASCII blanks at both ends.
fn trimmed(text: &[u8], mut place: Range<usize>) -> Range<usize> {
    while place.end > place.start && text[place.end - 1].is_ascii_whitespace() {
        place.end -= 1;
    }
    while place.start < place.end && text[place.start].is_ascii_whitespace() {
        place.start += 1;
    }
    place
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Gives its text in pieces of so many bytes: a line may end anywhere in the buffer.
    struct Pieces<'a>(&'a [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let n = self.1.min(self.0.len()).min(out.len());
            out[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    type Found = Vec<(u64, Vec<String>)>;

    fn read(text: &[u8], separator: Separator, quotes: Quotes, piece: usize) -> Result<Found, Fault> {
        let mut records = Records::new(Lines::new(Pieces(text, piece)), separator, quotes, Some(b'#'));
        let mut found = Vec::new();
        while let Some((place, record)) = records.next()? {
            let cells = record.iter().map(|c| String::from_utf8_lossy(c).into_owned()).collect();
            found.push((place.line, cells));
        }
        Ok(found)
    }

    fn all(text: &[u8], separator: Separator, piece: usize) -> Found {
        read(text, separator, Quotes::Double, piece).unwrap()
    }

    /// Rows between two quotes that were not meant to be a pair must not vanish into a cell.
    #[test]
    fn a_quote_that_is_not_closed_is_named_by_the_line_where_it_opens() {
        let fault = |text: &str, quotes| {
            let fault = read(text.as_bytes(), Separator::Byte(b','), quotes, 4).unwrap_err();
            fault.in_file("t").to_string()
        };
        let open = fault("x,g\n1,a\n2,\"b\n3,a\n4,b\n", Quotes::Double);
        assert_eq!(open, "t:3: a quote opens a cell here, and none closes it");
        let pair = fault("x,g\n1,\"b\n2,a\n3,\"b\n4,a\n", Quotes::Double);
        let says = "t:4: text follows the quote that closes a cell, which a quote on line 2 has opened";
        assert_eq!(pair, says);
        assert_eq!(fault("\"a\"b", Quotes::Double), "t:1: text follows the quote that closes a cell");
        assert!(fault("1,'b\n2,'c\n", Quotes::Arff).starts_with("t:1: a quote opens"));
    }

    #[test]
    fn arff_has_two_quotes_and_a_backslash() {
        let text = br#"'a, b', "c 'd'",'it\'s',o'clock"#;
        let found = read(text, Separator::Byte(b','), Quotes::Arff, 5).unwrap();
        assert_eq!(found[0].1, ["a, b", "c 'd'", "it's", "o'clock"]);
    }

    #[test]
    fn lines_end_in_three_ways_wherever_the_text_is_cut() {
        for piece in 1..12 {
            let found = all(b"a,b\r\n1, 2\n\n#x\r3,4\r\n\r\n5,", Separator::Byte(b','), piece);
            let cells = |line, a: &str, b: &str| (line, vec![a.to_owned(), b.to_owned()]);
            let expected = [cells(1, "a", "b"), cells(2, "1", "2"), cells(5, "3", "4"), cells(7, "5", "")];
            assert_eq!(found, expected, "pieces of {piece}");
        }
    }

    #[test]
    fn blanks_separate_once() {
        let found = all(b"  1\t 2 \n \n\"a b\" 3\t\n4 5", Separator::Blanks, 3);
        let lines: Vec<(u64, String)> =
            found.into_iter().map(|(line, cells)| (line, cells.join("|"))).collect();
        assert_eq!(lines, [(1, "1|2".into()), (3, "a b|3".into()), (4, "4|5".into())]);
    }

    #[test]
    fn a_line_longer_than_the_buffer_is_whole() {
        let long = "7,".repeat(ROOM);
        let found = all(format!("1\n{long}8\n").as_bytes(), Separator::Byte(b','), ROOM);
        assert_eq!((found.len(), found[1].1.len()), (2, ROOM + 1));
    }

    proptest! {
        /// The csv crate is the authority on quotes.
        #[test]
        fn cells_are_those_that_the_csv_crate_finds(text in "[ab1,\" \n\r]{0,40}", piece in 1usize..9) {
            // What we count as one line end, csv counts as text here and there.
            let text = text.replace("\r", "\r\n").replace("\n\n", "\n");
            let parsed = |text: &str| -> Vec<Vec<String>> {
                let mut reader = csv::ReaderBuilder::new()
                    .has_headers(false)
                    .flexible(true)
                    .trim(csv::Trim::All)
                    .from_reader(text.as_bytes());
                reader
                    .byte_records()
                    .map(|r| r.unwrap().iter().map(|c| String::from_utf8_lossy(c).replace('\r', "")).collect())
                    .collect()
            };
            let expected = parsed(&text);
            match read(text.as_bytes(), Separator::Byte(b','), Quotes::Double, piece) {
                Ok(found) => {
                    let found: Vec<Vec<String>> = found.into_iter().map(|(_, cells)| cells).collect();
                    prop_assert_eq!(found, expected);
                }
                // Another line belongs to the cell that is open.
                Err(Fault::OpenQuote { .. }) => {
                    prop_assert_eq!(parsed(&format!("{text}\nx")).len(), expected.len());
                }
                // The csv crate glues such text to the cell.
                Err(Fault::AfterQuote { .. }) => {
                    let follows = |w: &[u8]| w[0] == b'"' && matches!(w[1], b'a' | b'b' | b'1' | b' ' | b'"');
                    prop_assert!(text.as_bytes().windows(2).any(follows), "{}", text);
                }
                Err(Fault::Read(e)) => prop_assert!(false, "{}", e),
            }
        }
    }
}

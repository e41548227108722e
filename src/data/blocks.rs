//! Text read by all threads: a block of lines at a time, cut into pieces that are parsed side by side. A block with anything but plain rows
//! (quotes, blank lines, a level that is new, a cell that is wrong) is left to the reader that goes line by line, so that there is one
//! place that judges, and the table and every message are the same.

use std::io::{self, Read};
use std::sync::atomic::{AtomicUsize, Ordering};

use memchr::{memchr, memrchr};

use super::records::{Records, Separator, split};
use super::table::{Kind, Table};
use super::text::{number, pointed};

/// Bytes of a block.
const BLOCK: usize = 1 << 22;
/// Blocks that may be left to the other reader before more are tried than there were good ones.
const PATIENCE: usize = 4;

/// The most threads that may read, by the user's wish; 0: one for each core.
static ALLOWED: AtomicUsize = AtomicUsize::new(0);

/// From now on so many threads read.
pub fn allow(threads: usize) {
    ALLOWED.store(threads, Ordering::Relaxed);
}

fn threads() -> usize {
    match ALLOWED.load(Ordering::Relaxed) {
        0 => std::thread::available_parallelism().map_or(1, |n| n.get()),
        threads => threads,
    }
}

/// Bytes of a block, or 0 where one thread reads line by line.
pub fn size() -> usize {
    if threads() > 1 { BLOCK } else { 0 }
}

/// What the rows of a table are judged by; nothing of it changes while a block is read.
pub struct Rows<'a> {
    pub table: &'a Table,
    pub missing: &'a [Vec<u8>],
    pub strip: &'a [u8],
    pub comma: bool,
    pub labels: &'a [usize],
    pub separator: Separator,
    pub comment: Option<u8>,
}

/// Rows of some lines.
#[derive(Default)]
pub struct Piece {
    pub cells: Vec<f64>,
    pub rows: usize,
    lines: u64,
}

/// When blocks are read, and when lines.
pub struct Blocks {
    size: usize,
    /// The next block may begin after so many bytes.
    from: u64,
    good: usize,
    left: usize,
}

impl Blocks {
    /// Blocks of this size; of size 0, none.
    pub fn new(size: usize) -> Blocks {
        Blocks { size, from: if size == 0 { u64::MAX } else { 0 }, good: 0, left: 0 }
    }

    /// Whether what comes next may be a block.
    pub fn are_due<R: Read>(&self, records: &Records<R>) -> bool {
        records.taken() >= self.from
    }

    /// The rows of the next block, if it holds nothing but rows; then its lines are taken.
    pub fn next<R: Read>(
        &mut self,
        records: &mut Records<R>,
        parse: impl FnOnce(&[u8]) -> Option<Vec<Piece>>,
    ) -> io::Result<Option<Vec<Piece>>> {
        let Some(text) = records.block(self.size)? else {
            self.from = u64::MAX;
            return Ok(None);
        };
        let (bytes, pieces) = (text.len(), parse(text));
        match &pieces {
            Some(pieces) => {
                self.good += 1;
                records.pass(bytes, pieces.iter().map(|piece| piece.lines).sum());
            }
            None => {
                self.left += 1;
                let hopeless = self.left > self.good + PATIENCE;
                self.from = if hopeless { u64::MAX } else { records.taken() + bytes as u64 };
            }
        }
        Ok(pieces)
    }
}

impl Rows<'_> {
    /// The rows of a block of whole lines, in pieces; `None` if some line is no plain row.
    pub fn parse(&self, text: &[u8]) -> Option<Vec<Piece>> {
        if memchr(b'"', text).is_some() {
            return None;
        }
        let size = text.len().div_ceil(threads());
        let mut pieces = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let about = size.min(rest.len());
            let end = memchr(b'\n', &rest[about - 1..]).map_or(rest.len(), |at| about + at);
            let (piece, others) = rest.split_at(end);
            pieces.push(piece);
            rest = others;
        }
        let (first, others) = pieces.split_first()?;
        std::thread::scope(|scope| {
            let others: Vec<_> = others.iter().map(|piece| scope.spawn(|| self.piece(piece))).collect();
            let first = self.piece(first);
            let others = others.into_iter().map(|piece| piece.join().expect("a reader does not panic"));
            std::iter::once(first).chain(others).collect()
        })
    }

    fn piece(&self, text: &[u8]) -> Option<Piece> {
        let mut piece = Piece::default();
        let mut places = Vec::new();
        let mut rest = text;
        while let Some(end) = memchr(b'\n', rest) {
            let line = rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]);
            rest = &rest[end + 1..];
            piece.lines += 1;
            // A lone CR ends a line, too.
            if line.is_empty() || memchr(b'\r', line).is_some() {
                return None;
            }
            if self.comment.is_some_and(|comment| line[0] == comment) {
                continue;
            }
            places.clear();
            split(line, self.separator, &mut places);
            if places.len() != self.table.header.width() {
                return None;
            }
            for (j, &place) in self.table.places.iter().enumerate() {
                piece.cells.push(self.value(j, &line[places[place].clone()])?);
            }
            piece.rows += 1;
        }
        rest.is_empty().then_some(piece)
    }

    fn value(&self, j: usize, cell: &[u8]) -> Option<f64> {
        if self.missing.iter().any(|m| m == cell) {
            return Some(f64::NAN);
        }
        match &self.table.kinds[j] {
            Kind::Number => number(cell, self.comma).ok(),
            Kind::Levels(levels) => {
                let is_label = self.labels.contains(&j);
                let kept = |b: &u8| !is_label || !self.strip.contains(b);
                let end = cell.iter().rposition(kept).map_or(0, |last| last + 1);
                let text = pointed(&cell[..end], is_label && self.comma);
                levels.known(&text).filter(|_| !cell.is_empty()).map(|code| code as f64)
            }
        }
    }
}

/// The whole lines at the beginning of a text.
pub fn whole_lines(text: &[u8]) -> &[u8] {
    memrchr(b'\n', text).map_or(&[], |end| &text[..=end])
}

//! What there is of a run already: in parts, and in the file of draws of a finished run that is given more.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, sync_channel};

use super::{CHUNK, Chunk, Closing, Kind, Opening, Sums};
use crate::bytes::Bytes;
use crate::config::printable;
use crate::error::{Error, Result};
use crate::samples::{Sample, Samples};
use crate::store::{Part, Record, Shelf};

/// Draws of a finished run that are read ahead of their turn.
const AHEAD: usize = 256;

/// Where a record is.
#[derive(Clone, Debug)]
struct Entry {
    file: usize,
    record: Record,
}

#[derive(Default)]
struct OfRound {
    opening: Option<Entry>,
    /// By their first draw: rows of chunks, with or without their sums.
    rows: BTreeMap<u64, (Kind, Entry)>,
    /// Sums of all chunks up to here.
    states: Vec<(Kind, Entry)>,
    closing: Option<Entry>,
}

/// The draws of a finished run, in their order.
struct Base {
    draws: u64,
    rows: Receiver<(usize, Sample)>,
    next: Option<(usize, Sample)>,
}

/// Everything that need not be made again.
#[derive(Default)]
pub struct Kept {
    shelves: Vec<Shelf>,
    files: Vec<(usize, PathBuf)>,
    rounds: BTreeMap<usize, OfRound>,
    base: Option<Base>,
    /// The last file that was read.
    read: Option<(usize, Part)>,
    /// The largest `sampler.B` that any part was written under.
    pub draws: u64,
    /// Parts and results that are not what was written, each as a sentence; parts are set aside.
    pub damaged: Vec<String>,
}

/// A round as far as it is known: the sums of its chunks, and the one that is open.
pub type State = (Sums, Chunk);

impl Kept {
    /// Looks through the parts on these shelves, each with the hash of the identity that they must have.
    pub fn scan(shelves: Vec<(Shelf, [u8; 32])>) -> Result<Kept> {
        let mut kept = Kept::default();
        for (at, (shelf, identity)) in shelves.into_iter().enumerate() {
            for path in shelf.finished().into_iter().chain(shelf.parts()) {
                let bytes =
                    shelf.read(&path).map_err(|e| Error::input(format!("{}: {e}", path.display())))?;
                match Part::of_bytes(bytes).filter(|part| part.identity == identity) {
                    Some(part) => kept.index(at, path, part),
                    None => {
                        shelf.set_aside(&path);
                        kept.damaged.push(format!("{} is damaged", printable(&path.display().to_string())));
                    }
                }
            }
            kept.shelves.push(shelf);
        }
        Ok(kept)
    }

    fn index(&mut self, shelf: usize, path: PathBuf, part: Part) {
        let file = self.files.len();
        self.files.push((shelf, path));
        self.draws = self.draws.max(part.draws);
        for record in part.records {
            let Some(kind) = Kind::of(record.kind) else { continue };
            let of = self.rounds.entry(record.round).or_default();
            let entry = Entry { file, record };
            let draws = entry.record.draws.clone();
            match kind {
                Kind::Opening => of.opening = Some(entry),
                Kind::Closing => of.closing = Some(entry),
                Kind::State | Kind::Sums => of.states.push((kind, entry)),
                Kind::Rows | Kind::Chunk => {
                    let longer = |(_, old): &(Kind, Entry)| old.record.draws.end < draws.end;
                    if of.rows.get(&draws.start).is_none_or(longer) {
                        of.rows.insert(draws.start, (kind, entry));
                    }
                }
            }
        }
    }

    /// The draws of a finished run of `draws` draws a round are there too.
    pub fn with_base(mut self, samples: Samples, draws: u64) -> Result<Kept> {
        let (sender, rows) = sync_channel(AHEAD);
        let read = move || samples.each(|repeat, sample| sender.send((repeat, sample)).is_ok());
        let failed = |e| Error::Failed(format!("cannot start a thread: {e}"));
        std::thread::Builder::new().spawn(read).map_err(failed)?;
        self.base = Some(Base { draws, rows, next: None });
        Ok(self)
    }

    fn content<T: Bytes>(&mut self, entry: &Entry) -> Result<T> {
        let (shelf, path) = &self.files[entry.file];
        let changed = || Error::Failed(format!("{}: changed while it was read", path.display()));
        if self.read.as_ref().is_none_or(|(file, _)| *file != entry.file) {
            let part = self.shelves[*shelf].read(path).ok().and_then(Part::of_bytes).ok_or_else(changed)?;
            self.read = Some((entry.file, part));
        }
        let part = self.read.as_ref().map(|(_, part)| part).ok_or_else(changed)?;
        T::of_bytes(part.content(&entry.record)).ok_or_else(changed)
    }

    pub fn opening(&mut self, round: usize) -> Result<Option<Opening>> {
        let entry = self.rounds.get(&round).and_then(|of| of.opening.clone());
        entry.map(|entry| self.content(&entry)).transpose()
    }

    /// Where the rows of the finished run end, and those of parts go on: at the end of a chunk.
    fn boundary(&self) -> u64 {
        self.base.as_ref().map_or(0, |base| base.draws / CHUNK * CHUNK)
    }

    /// All rows before this draw are there.
    fn covered(&self, of: &OfRound) -> u64 {
        let mut at = self.boundary();
        while let Some((_, entry)) = of.rows.get(&at) {
            at = entry.record.draws.end;
        }
        at
    }

    fn best_state(&self, round: usize, most: u64) -> Option<(Kind, Entry)> {
        let of = self.rounds.get(&round)?;
        let covered = self.covered(of);
        let whole = |kind: Kind, draws: &Range<u64>| match kind {
            Kind::State => true,
            _ => self.base.as_ref().is_some_and(|base| base.draws == draws.end),
        };
        let usable = of.states.iter().filter(|(kind, entry)| {
            let draws = &entry.record.draws;
            draws.start <= covered && draws.end <= most && whole(*kind, draws)
        });
        usable.max_by_key(|(_, entry)| entry.record.draws.end).cloned()
    }

    /// How far a round has come, at most so many draws; its rows go to `row`, in their order.
    pub fn state(
        &mut self,
        round: usize,
        most: u64,
        row: &mut dyn FnMut(&Sample) -> Result<()>,
    ) -> Result<Option<State>> {
        let Some((kind, entry)) = self.best_state(round, most) else { return Ok(None) };
        let (folded, mut open): State = self.content(&entry)?;
        let start = open.draws.start;
        let boundary = self.boundary().min(start);
        self.base_rows(round, 0..boundary, row)?;
        let mut at = boundary;
        while at < start {
            let found = self.rounds.get(&round).and_then(|of| of.rows.get(&at)).cloned();
            let (kind, entry) = found.expect("rows are covered up to here");
            self.rows(kind, &entry)?.iter().try_for_each(&mut *row)?;
            at = entry.record.draws.end;
        }
        if kind == Kind::Sums {
            let mut rows = Vec::new();
            self.base_rows(round, open.draws.clone(), &mut |sample: &Sample| {
                rows.push(sample.clone());
                Ok(())
            })?;
            open.rows = rows;
        }
        open.rows.iter().try_for_each(&mut *row)?;
        Ok(Some((folded, open)))
    }

    fn rows(&mut self, kind: Kind, entry: &Entry) -> Result<Vec<Sample>> {
        match kind {
            Kind::Chunk => self.content::<Chunk>(entry).map(|chunk| chunk.rows),
            _ => self.content(entry),
        }
    }

    /// These rows of the finished run; what is before them is passed over.
    fn base_rows(
        &mut self,
        round: usize,
        draws: Range<u64>,
        row: &mut dyn FnMut(&Sample) -> Result<()>,
    ) -> Result<()> {
        let Some(base) = &mut self.base else { return Ok(()) };
        loop {
            let next = base.next.take().or_else(|| base.rows.recv().ok());
            let Some((repeat, sample)) = next else { return Ok(()) };
            if repeat > round + 1 || repeat == round + 1 && sample.index >= draws.end {
                base.next = Some((repeat, sample));
                return Ok(());
            }
            if repeat == round + 1 && sample.index >= draws.start {
                row(&sample)?;
            }
        }
    }

    /// How a round of so many draws ended, if all of it is there.
    pub fn closing(&mut self, round: usize, draws: u64) -> Result<Option<Closing>> {
        let reached = self.best_state(round, draws).map(|(_, entry)| entry.record.draws.end);
        let entry = self.rounds.get(&round).and_then(|of| of.closing.clone());
        match entry.filter(|entry| reached == Some(draws) && entry.record.draws.end == draws) {
            Some(entry) => self.content(&entry).map(Some),
            None => Ok(None),
        }
    }

    /// The chunk that begins here and is kept by itself, if it is.
    pub fn chunk(&mut self, round: usize, start: u64) -> Result<Option<Chunk>> {
        let found = self.rounds.get(&round).and_then(|of| of.rows.get(&start)).cloned();
        match found {
            Some((Kind::Chunk, entry)) => self.content(&entry).map(Some),
            _ => Ok(None),
        }
    }

    /// Rows of these draws of a round, all of which are there, in their order.
    pub fn each(&mut self, round: usize, span: &Range<u64>, row: &mut dyn FnMut(&Sample)) -> Result<()> {
        let mut at = span.start;
        if at == 0 {
            let state = self.state(round, span.end, &mut |sample| {
                row(sample);
                Ok(())
            })?;
            at = state.map_or(0, |(_, open)| open.draws.end);
        }
        while let Some(chunk) =
            self.chunk(round, at)?.filter(|chunk| at < span.end && !chunk.draws.is_empty())
        {
            chunk.rows.iter().for_each(&mut *row);
            at = chunk.draws.end;
        }
        Ok(())
    }

    /// Where the next chunk that is kept by itself begins, and ends, from this draw on.
    pub fn next_chunk(&self, round: usize, from: u64) -> Option<Range<u64>> {
        let of = self.rounds.get(&round)?;
        let mut chunks = of.rows.range(from..).filter(|(_, (kind, _))| *kind == Kind::Chunk);
        chunks.next().map(|(_, (_, entry))| entry.record.draws.clone())
    }

    /// How many draws of the rounds are there; `length` is that of a chunk.
    pub fn count(&self, round: usize, draws: u64, span: &Range<u64>, length: u64) -> u64 {
        let missing = self.missing(round, draws, span, length);
        (span.end - span.start) - missing.iter().map(|gap| gap.end - gap.start).sum::<u64>()
    }

    /// What is missing of these draws of a round.
    pub fn missing(&self, round: usize, draws: u64, span: &Range<u64>, length: u64) -> Vec<Range<u64>> {
        let reached = self.best_state(round, draws).map_or(0, |(_, entry)| entry.record.draws.end);
        let (mut at, mut gaps) = (span.start, Vec::new());
        if span.start < reached {
            at = reached.min(span.end);
        }
        while at < span.end {
            let next = self.next_chunk(round, at).filter(|next| next.start < span.end);
            let start = next.as_ref().map_or(span.end, |next| next.start);
            if start > at {
                gaps.push(at..start);
            }
            let Some(next) = next else { break };
            let full = (next.start + length).min(span.end);
            if next.end < full {
                gaps.push(next.end..full);
            }
            at = full;
        }
        gaps
    }
}

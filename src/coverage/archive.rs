//! The outcomes that are there already, and those that were just made: parts on the shelf of a run directory, as draws are kept.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::Outcome;
use crate::bytes::Bytes;
use crate::config::printable;
use crate::error::{Error, Result};
use crate::run::written_identity;
use crate::store::{Identity, Part, Shelf, record};

/// The one kind of record.
const OUTCOME: u64 = 1;

pub struct Archive {
    inner: Mutex<Inner>,
    every: Duration,
    /// Parts that are not what was written; they are set aside.
    pub damaged: Vec<String>,
}

struct Inner {
    shelf: Option<Shelf>,
    identity: Identity,
    kept: BTreeMap<usize, Outcome>,
    /// Records that are on no disk yet.
    waiting: Vec<u8>,
    written: Instant,
}

impl Archive {
    /// Keeps nothing.
    pub fn none(identity: Identity) -> Archive {
        Archive::of(None, identity, Duration::MAX)
    }

    fn of(shelf: Option<Shelf>, identity: Identity, every: Duration) -> Archive {
        let inner =
            Inner { shelf, identity, kept: BTreeMap::new(), waiting: Vec::new(), written: Instant::now() };
        Archive { inner: Mutex::new(inner), every, damaged: Vec::new() }
    }

    /// What is on this shelf, of data sets of this identity; refused, saying why, where it is of others. What is put is written
    /// about so often.
    pub fn open(shelf: Shelf, identity: Identity, every: Duration) -> Result<Archive> {
        if let Some(why) = written_identity(&shelf).and_then(|theirs| identity.difference(&theirs)) {
            let folder = shelf.folder().parent().and_then(|f| f.parent()).unwrap_or(shelf.folder());
            let shown = printable(&folder.display().to_string());
            let message = format!(
                "{shown} holds data sets of another kind: {why}; choose another folder with --out, or replace them with --force"
            );
            return Err(Error::input(message));
        }
        let (mut kept, mut damaged) = (BTreeMap::new(), Vec::new());
        for path in shelf.finished().into_iter().chain(shelf.parts()) {
            let shown = printable(&path.display().to_string());
            let bytes = shelf.read(&path).map_err(|e| Error::input(format!("{shown}: {e}")))?;
            let part = Part::of_bytes(bytes).filter(|part| part.identity == identity.hash());
            let outcomes = part.as_ref().and_then(outcomes);
            match outcomes {
                Some(outcomes) => kept.extend(outcomes),
                None => {
                    shelf.set_aside(&path);
                    damaged.push(shown);
                }
            }
        }
        let archive = Archive::of(Some(shelf), identity, every);
        archive.inner().kept = kept;
        Ok(Archive { damaged, ..archive })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// The first `count` data sets, as far as they are there.
    pub fn take_kept(&self, count: usize) -> BTreeMap<usize, Outcome> {
        self.inner().kept.range(..count).map(|(i, outcome)| (*i, outcome.clone())).collect()
    }

    /// Data set `i` is done.
    pub fn put(&self, i: usize, outcome: &Outcome) -> Result<()> {
        let mut inner = self.inner();
        put(i, outcome, &mut inner.waiting);
        inner.kept.insert(i, outcome.clone());
        let due = inner.written.elapsed() >= self.every;
        drop(inner);
        if due { self.write().map(drop) } else { Ok(()) }
    }

    /// Brings what was put to disk; whether anything is there.
    pub fn write(&self) -> Result<bool> {
        let inner = &mut *self.inner();
        inner.written = Instant::now();
        let Some(shelf) = &mut inner.shelf else { return Ok(false) };
        if !inner.waiting.is_empty() {
            shelf.write_identity(&inner.identity)?;
            let mut part = shelf.next_part(&inner.identity.hash(), inner.kept.len() as u64)?;
            part.put(&inner.waiting)?;
            part.commit()?;
            inner.waiting.clear();
        }
        Ok(!inner.kept.is_empty())
    }

    /// All that there is in one part, which more data sets can be added to.
    pub fn finish(&self) -> Result<()> {
        let inner = &mut *self.inner();
        let Some(shelf) = &inner.shelf else { return Ok(()) };
        shelf.write_identity(&inner.identity)?;
        let mut bytes = Vec::new();
        inner.kept.iter().for_each(|(i, outcome)| put(*i, outcome, &mut bytes));
        let mut part = shelf.finished_part(&inner.identity.hash(), inner.kept.len() as u64)?;
        part.put(&bytes)?;
        part.commit()?;
        inner.waiting.clear();
        shelf.clear(false);
        Ok(())
    }
}

fn put(i: usize, outcome: &Outcome, out: &mut Vec<u8>) {
    record(OUTCOME, i, &(0..0), |out| outcome.put(out), out);
}

/// `None` if one of them is none.
fn outcomes(part: &Part) -> Option<Vec<(usize, Outcome)>> {
    let of = |record: &crate::store::Record| {
        Some((record.round, Outcome::of_bytes(part.content(record)).filter(|_| record.kind == OUTCOME)?))
    };
    part.records.iter().map(of).collect()
}

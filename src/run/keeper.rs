//! Keeps what is made of a run, so that it can be gone on with.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::{Chunk, Closing, Kind, Opening, Sums};
use crate::bytes::Bytes;
use crate::error::Result;
use crate::store::{Identity, PartWriter, Shelf};

/// A part that would be larger is written at once, in bytes.
const LARGE: usize = 32 << 20;

/// A round in the making. Sums are added up in the order of the draws, so that where they were interrupted makes no
/// difference: the chunk that is open is gone on with.
pub struct Live {
    /// Sums over no draws.
    pub none: Sums,
    /// Sums of all chunks before the one that is open.
    pub folded: Sums,
    pub open: Chunk,
    /// Chunks before the first one are not here: none is folded, each is kept by itself.
    pub detached: bool,
    /// Chunks are chains, which cannot be gone on with half way.
    pub of_chains: bool,
}

/// Where a run is kept. Whoever sees that time is up may write what there is, while the run waits for a slow draw.
#[derive(Default)]
pub struct Keeper(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    place: Option<Place>,
    /// Records that are not written yet.
    records: Vec<u8>,
    live: Option<Live>,
    changed: bool,
    written: Option<Instant>,
    /// What a finished run leaves for more draws.
    finished: Option<PartWriter>,
}

struct Place {
    shelf: Shelf,
    identity: Identity,
    hash: [u8; 32],
    draws: u64,
    every: Duration,
}

impl Keeper {
    /// Parts of a run of so many draws go to this shelf, about so often.
    pub fn every(shelf: Shelf, identity: Identity, draws: u64, every: Duration) -> Keeper {
        let hash = identity.hash();
        let place = Some(Place { shelf, identity, hash, draws, every });
        Keeper(Mutex::new(Inner { place, written: Some(Instant::now()), ..Inner::default() }))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// What is being made.
    pub fn live<T>(&self, see: impl FnOnce(&mut Live) -> T) -> T {
        see(self.inner().live.as_mut().expect("a round is in the making"))
    }

    pub fn begin(&self, live: Live) {
        self.inner().live = Some(live);
    }

    pub fn opening(&self, opening: &Opening) {
        let inner = &mut *self.inner();
        if inner.place.is_some() {
            Kind::Opening.put(opening.round, &(0..0), opening, &mut inner.records);
            inner.changed = true;
        }
    }

    /// Adds a draw to the chunk that is open, which is `closed` if that is its last one: nobody sees a full chunk that is
    /// open. The closed chunk, if there is one.
    pub fn add<T>(&self, draw: impl FnOnce(&mut Chunk) -> T, closed: bool) -> (T, Option<Chunk>) {
        let inner = &mut *self.inner();
        inner.changed = true;
        let added = draw(&mut inner.live.as_mut().expect("a round is in the making").open);
        let chunk = if closed { inner.close() } else { None };
        (added, chunk)
    }

    /// Adds a chunk that is kept elsewhere; one that is not `whole` stays open.
    pub fn take(&self, chunk: Chunk, whole: bool) {
        let inner = &mut *self.inner();
        let live = inner.live.as_mut().expect("a round is in the making");
        live.open = match whole {
            true => {
                live.folded.fold(&chunk.sums);
                live.empty(chunk.draws.end)
            }
            false => chunk,
        };
    }

    /// A chain was interrupted, and one behind it is whole: it is kept by itself.
    pub fn jump(&self, to: u64) {
        let inner = &mut *self.inner();
        inner.put_state();
        let live = inner.live.as_mut().expect("a round is in the making");
        live.detached = true;
        live.open = live.empty(to);
    }

    /// Takes what was made, and keeps it.
    pub fn end(&self) -> Live {
        let inner = &mut *self.inner();
        inner.put_state();
        inner.live.take().expect("a round is in the making")
    }

    /// The round is done.
    pub fn close(&self, closing: &Closing, live: &Live, opening: Option<&Opening>) -> Result<()> {
        let inner = &mut *self.inner();
        if inner.place.is_none() {
            return Ok(());
        }
        let (round, draws) = (live.open.round, 0..live.open.draws.end);
        Kind::Closing.put(round, &draws, closing, &mut inner.records);
        inner.changed = true;
        inner.finish(live, opening)
    }

    /// The round was done before.
    pub fn closed(&self, live: &Live, opening: Option<&Opening>) -> Result<()> {
        self.inner().finish(live, opening)
    }

    /// Begins the file that more draws can be added to.
    pub fn open_finished(&self) -> Result<()> {
        let inner = &mut *self.inner();
        if let Some(place) = &inner.place {
            inner.finished = Some(place.shelf.finished_part(&place.hash, place.draws)?);
        }
        Ok(())
    }

    /// All results are written: parts go, what more draws can be added to stays.
    pub fn finish(&self) -> Result<()> {
        let inner = &mut *self.inner();
        let Some(place) = &inner.place else { return Ok(()) };
        match inner.finished.take() {
            Some(finished) => {
                place.shelf.write_identity(&place.identity)?;
                finished.commit()?;
                place.shelf.clear(false);
            }
            None => place.shelf.clear(true),
        }
        (inner.changed, inner.records) = (false, Vec::new());
        Ok(())
    }

    /// Nobody wants it any more.
    pub fn forget(&self) {
        let inner = &mut *self.inner();
        (inner.changed, inner.finished) = (false, None);
        inner.place.take().iter().for_each(|place| place.shelf.clear(true));
    }

    /// Writes all there is; whether anything is kept.
    pub fn write(&self) -> Result<bool> {
        let inner = &mut *self.inner();
        inner.write()?;
        Ok(inner.place.as_ref().is_some_and(|place| !place.shelf.parts().is_empty()))
    }

    /// Writes what there is, if it is time to.
    pub fn write_if_due(&self) -> Result<()> {
        self.inner().write_if_due()
    }

    /// Writes all there is, and lets nobody add to it any more while `then` goes on.
    pub fn last<T>(&self, then: impl FnOnce(Result<()>) -> T) -> T {
        let inner = &mut *self.inner();
        inner.finished = None;
        let written = inner.write();
        then(written)
    }
}

impl Inner {
    fn close(&mut self) -> Option<Chunk> {
        let live = self.live.as_mut()?;
        let empty = live.empty(live.open.draws.end);
        let closed = std::mem::replace(&mut live.open, empty);
        if !live.detached {
            live.folded.fold(&closed.sums);
        }
        if self.place.is_some() {
            let (round, draws) = (closed.round, &closed.draws);
            match live.detached {
                true => Kind::Chunk.put(round, draws, &closed, &mut self.records),
                false => Kind::Rows.put(round, draws, &closed.rows, &mut self.records),
            }
        }
        Some(closed)
    }

    /// Adds the state of the round that is being made.
    fn put_state(&mut self) {
        let (Some(live), true) = (&self.live, self.place.is_some()) else { return };
        let Chunk { round, draws, .. } = &live.open;
        if live.detached {
            if !live.of_chains && !draws.is_empty() {
                Kind::Chunk.put(*round, draws, &live.open, &mut self.records);
            }
            return;
        }
        let (draws, rows) = match live.of_chains {
            true => (&(draws.start..draws.start), &[][..]),
            false => (draws, &live.open.rows[..]),
        };
        let state = |out: &mut Vec<u8>| live.put_state(draws, rows, out);
        crate::store::record(Kind::State as u64, *round, draws, state, &mut self.records);
        self.changed = true;
    }

    fn finish(&mut self, live: &Live, opening: Option<&Opening>) -> Result<()> {
        let Some(finished) = &mut self.finished else { return Ok(()) };
        let mut records = Vec::new();
        let Chunk { round, draws, .. } = &live.open;
        if let Some(opening) = opening {
            Kind::Opening.put(*round, &(0..0), opening, &mut records);
        }
        let state = |out: &mut Vec<u8>| live.put_state(draws, &[], out);
        crate::store::record(Kind::Sums as u64, *round, draws, state, &mut records);
        finished.put(&records)
    }

    fn write_if_due(&mut self) -> Result<()> {
        let Some(place) = &self.place else { return Ok(()) };
        let due = self.written.is_none_or(|at| at.elapsed() >= place.every) || self.records.len() > LARGE;
        if due && self.changed { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<()> {
        if self.place.is_none() || !self.changed {
            return Ok(());
        }
        let before = self.records.len();
        self.put_state();
        let written = self.write_part();
        match written {
            Ok(()) => {
                self.records.clear();
                self.changed = false;
                self.written = Some(Instant::now());
            }
            // The state will be another when it is tried again.
            Err(_) => self.records.truncate(before),
        }
        written
    }

    fn write_part(&mut self) -> Result<()> {
        let Some(place) = &mut self.place else { return Ok(()) };
        place.shelf.write_identity(&place.identity)?;
        let mut part = place.shelf.next_part(&place.hash, place.draws)?;
        part.put(&self.records)?;
        part.commit()
    }
}

impl Live {
    /// A chunk that begins here.
    fn empty(&self, at: u64) -> Chunk {
        Chunk { round: self.open.round, draws: at..at, rows: Vec::new(), sums: self.none.clone() }
    }

    /// The sums before the open chunk, and what there is of that.
    fn put_state(&self, draws: &Range<u64>, rows: &[crate::samples::Sample], out: &mut Vec<u8>) {
        self.folded.put(out);
        self.open.round.put(out);
        draws.put(out);
        rows.len().put(out);
        rows.iter().for_each(|row| row.put(out));
        if draws.is_empty() { &self.none } else { &self.open.sums }.put(out);
    }
}

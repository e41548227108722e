//! Chunks: what a run is made of, and what can be kept of it.

use std::ops::Range;

use crate::bytes::{Bytes, bytes};
use crate::method::Findings;
use crate::path::PathPoint;
use crate::report::Repeat;
use crate::run::Sums;
use crate::samples::Sample;
use crate::store;

/// Consecutive draws of a chunk; the last one of a round may be shorter. Draws of chains come in chunks of a chain. It is part
/// of the format: sums over draws are sums over chunks of sums over their draws.
pub const CHUNK: u64 = 32;

/// How a round begins: the fits that its draws are started or centred from, or are drawn from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Opening {
    /// Counted from 0.
    pub round: usize,
    pub findings: Findings,
}

/// Consecutive draws of a round: their rows of the table, and their share of every sum.
#[derive(Clone, Debug)]
pub struct Chunk {
    /// Counted from 0.
    pub round: usize,
    /// Counted from 0 within the round.
    pub draws: Range<u64>,
    /// Of the draws that are written: those of importance sampling that weigh nothing are not.
    pub rows: Vec<Sample>,
    pub sums: Sums,
}

/// How a round ends.
#[derive(Clone, Debug)]
pub struct Closing {
    pub report: Repeat,
    pub points: Vec<PathPoint>,
}

bytes!(Opening { round, findings });
bytes!(Chunk { round, draws, rows, sums });
bytes!(Closing { report, points });

/// What is kept of a run while it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An [`Opening`].
    Opening = 1,
    /// The rows of a chunk, whose sums are in the state that follows.
    Rows = 2,
    /// A [`Chunk`] by itself, because those before it are not here.
    Chunk = 3,
    /// The sums of all chunks before the one that is open, and that one.
    State = 4,
    /// The same without rows: the run is finished, and they are in the file of draws.
    Sums = 5,
    /// A [`Closing`].
    Closing = 6,
}

impl Kind {
    pub const ALL: [Kind; 6] =
        [Kind::Opening, Kind::Rows, Kind::Chunk, Kind::State, Kind::Sums, Kind::Closing];

    pub fn of(number: u64) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| *kind as u64 == number)
    }

    /// Adds a record of this kind.
    pub fn put(self, round: usize, draws: &Range<u64>, content: &impl Bytes, out: &mut Vec<u8>) {
        store::record(self as u64, round, draws, |out| content.put(out), out);
    }
}

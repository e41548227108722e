//! Chunks: what a run is made of, and what can be kept of it.

use std::ops::Range;

use crate::bytes::bytes;
use crate::method::Findings;
use crate::run::Sums;
use crate::samples::Sample;

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

bytes!(Opening { round, findings });
bytes!(Chunk { round, draws, rows, sums });

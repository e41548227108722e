//! What a run will need of the memory, before any draw is made.

use super::{Study, Trial};
use crate::data::Dataset;
use crate::data::memory::{bytes, most};
use crate::error::{Error, Result};
use crate::samples::STRIP;
use crate::storage::Place;

/// The program itself, and what else is small.
const PROGRAM: f64 = 1e7;

/// Numbers' worth of text on its way into a large table, and of what is parsed of it.
const ON_THE_WAY: f64 = 2.5e6;

/// The share of these that stays with the allocator.
const STAYS: f64 = 0.3;

/// Bytes that a run needs at one time, by what they are for.
#[derive(Clone, Copy, Debug)]
pub struct Need {
    /// While the rows are read, and looked at for what is wrong with them.
    pub reading: f64,
    /// Rows of both parts, their layout for the kernels, and what they are split from.
    pub data: f64,
    /// Weights and pseudo-samples of the draws that are in the making, and draws that wait to be written.
    pub draws: f64,
    /// The table of draws, a strip of columns at a time, for the summary.
    pub summary: f64,
}

impl Need {
    pub fn new(study: &Study, trial: &Trial, threads: usize) -> Need {
        let parameters = study.parameters(trial).len() as f64;
        let block = trial.model.block_size().min(study.draws().div_ceil(2 * threads)).max(1);
        // A draw that waits for its turn has the log densities of the test rows with it.
        let scored =
            trial.test.as_ref().filter(|_| trial.model.is_likelihood()).map_or(0.0, |test| test.n() as f64);
        let waiting = (threads * block) as f64 * (4.0 * parameters + 2.0 * scored);
        let pseudo = (threads * block) as f64 * pseudo_cells(trial);
        // A path holds the draws of one setting.
        let rounds = if study.experiment.path.is_some() { 1 } else { study.rounds() };
        let table = 8.0 * study.draws() as f64 * rounds as f64 * parameters;
        let [reading, data] = data_cells(study, trial);
        Need {
            reading: 8.0 * reading,
            data: 8.0 * data,
            draws: 8.0 * (weights(study, trial, threads) + waiting + pseudo),
            summary: table.min(STRIP as f64),
        }
    }

    pub fn total(&self) -> f64 {
        self.reading.max(self.data + self.draws + self.summary) + PROGRAM
    }

    /// That it fits into what the machine, a limit on this process or `--max-memory` leaves.
    pub fn fits(&self, threads: usize) -> Result<()> {
        let allowed = most() as f64;
        if self.total() <= allowed {
            return Ok(());
        }
        Err(Error::input(format!(
            "this run needs about {} of memory ({} for the data, {} for draws in the making on {threads} threads), and {} are \
             allowed or free; fewer --threads need less, and so do `data.rows` and `data.columns`; --max-memory allows more \
             where it was given",
            bytes(self.total()),
            bytes(self.data.max(self.reading)),
            bytes(self.draws),
            bytes(allowed)
        )))
    }
}

/// Before there are draws, the table and what it becomes, and what it takes to look at that; then rows and their layouts that are in
/// memory, and responses.
fn data_cells(study: &Study, trial: &Trial) -> [f64; 2] {
    let (train, test) = (trial.train.as_ref(), trial.test.as_deref());
    let in_memory = |rows: &Dataset| rows.x.place() == Place::Memory;
    let cells = |rows: &Dataset| if in_memory(rows) { rows.n() as f64 * rows.d() as f64 } else { 0.0 };
    let beside = |rows: &Dataset| rows.n() as f64 * if rows.y.is_some() { 1.0 } else { 0.0 };
    let both = || std::iter::once(train).chain(test);
    let kept: f64 = both().map(|rows| cells(rows) + beside(rows)).sum();
    // What rounds are split from.
    let whole = if study.sources.keeps_frame() { kept } else { 0.0 };
    // The rows of other groups wait for their turn.
    let width = train.d() + usize::from(train.y.is_some());
    let others: usize = study.group_rows().iter().skip(1).map(|rows| rows * width).sum();
    let of_train = if in_memory(train) { trial.model.layouts(train) } else { 0.0 };
    let of_test =
        test.filter(|test| in_memory(test)).map_or(0.0, |test| test.n() as f64 * (test.d() + 1) as f64);
    let at_once = |rows: &Dataset| rows.collapsed.map_or(rows.n(), |before| before.kept) as f64;
    // Blocks of text come before the vectors that it takes to prepare the table.
    let of_files = study.experiment.data.train.is_some();
    let on_the_way = if of_files { ON_THE_WAY.min(2.0 * kept) } else { 0.0 };
    let prepared: f64 = both().map(|rows| 2.0 * at_once(rows)).sum();
    let read = kept + prepared.max(on_the_way);
    let looked_at = kept + whole + trial.model.looking(train);
    let drawing = kept + whole + of_train + of_test + STAYS * on_the_way;
    [read.max(looked_at), drawing].map(|cells| cells + others as f64)
}

/// Weights of the draws that are in the making, and what goes with them.
fn weights(study: &Study, trial: &Trial, threads: usize) -> f64 {
    // Draws by the law of θ have none: a sorted column, and where its rows stood.
    if study.experiment.sampler.law == Some(true) {
        return 2.0 * trial.train.n() as f64;
    }
    let block = trial.model.block_size().min(study.draws().div_ceil(2 * threads)).max(1);
    threads as f64 * trial.model.working(&trial.train, block)
}

/// Numbers behind the pseudo-samples of a draw: weights, and rows where they are not those of the data.
fn pseudo_cells(trial: &Trial) -> f64 {
    let columns = if trial.train.y.is_some() { 0 } else { trial.train.d() };
    trial.prior.pseudo_samples(trial.train.mass()) * (columns + 3) as f64
}

//! The observed rows of a block of draws where they are one column: what closed forms sum up eight draws at a time.

use std::ops::Range;

use crate::kernel::LANES;
use crate::kernel::column::Eight;
use crate::process::Measure;

/// Draws that share one pass over the rows. Fewer where rows are so many that the weights of all would take more than a
/// few dozen megabytes.
const BLOCK: usize = 16;
const WEIGHTS: usize = 1 << 22;

/// How many draws of a closed form on so many rows are made at a time.
pub fn block_size(rows: usize) -> usize {
    (WEIGHTS / rows.max(1)).clamp(1, BLOCK)
}

/// A column that all draws of a block have, and its masses in each of them.
pub struct SharedColumn<'a> {
    pub y: &'a [f64],
    pub w: Vec<&'a [f64]>,
}

impl<'a> SharedColumn<'a> {
    /// Of rows with one column, if the draws share any.
    pub fn of(block: &[&'a Measure<'a>]) -> Option<SharedColumn<'a>> {
        let first = block.first()?.atoms().next().filter(|atoms| atoms.x.d() == 1)?;
        let shared = |f: &&'a Measure<'a>| f.atoms().next().filter(|a| std::ptr::eq(a.x, first.x));
        let w = block.iter().map(|f| shared(f).map(|a| a.w)).collect::<Option<Vec<_>>>()?;
        Some(SharedColumn { y: first.x.whole().to_slice()?, w })
    }

    /// The draws by eights: their numbers in the block, and their masses of the rows `rows`; the last is there as often as it takes.
    pub fn eights(&self, rows: Range<usize>) -> impl Iterator<Item = (Range<usize>, Eight<'a>)> {
        let eight = move |first: usize| {
            let last = (first + LANES).min(self.w.len());
            (first..last, std::array::from_fn(|l| &self.w[(first + l).min(last - 1)][rows.clone()]))
        };
        (0..self.w.len()).step_by(LANES).map(eight)
    }
}

//! Rows of numbers, as losses visit them: one after the other, in tiles, or in a layout of the vector kernels. Where and how the
//! cells are kept is nobody else's business.

use std::ops::{Index, IndexMut, Range};
use std::sync::OnceLock;

use ndarray::{Array2, ArrayView1, ArrayView2, ArrayViewMut2, Axis};

use crate::kernel::sparse::SparseRows;
use crate::kernel::{Panel, SINGLES};
use crate::storage::{Buffer, Place};

const SHAPE: &str = "every row has every cell";

#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// Row after row.
    cells: Buffer<f64>,
    n: usize,
    d: usize,
    layouts: Layouts,
}

/// The same rows as the kernels want them, each made when it is first asked for.
#[derive(Clone, Debug, Default)]
struct Layouts {
    panel: OnceLock<Panel>,
    with_intercept: OnceLock<Panel>,
    singles_with_intercept: OnceLock<Panel<f32, SINGLES>>,
    sparse: OnceLock<SparseRows>,
}

/// Consecutive rows.
pub struct Tile<'a> {
    /// The number of the first of them.
    pub first: usize,
    pub x: ArrayView2<'a, f64>,
}

impl<'a> Tile<'a> {
    /// Its rows with their numbers.
    pub fn rows(self) -> impl Iterator<Item = (usize, ArrayView1<'a, f64>)> {
        let Tile { first, x } = self;
        (0..x.nrows()).map(move |i| (first + i, x.index_axis_move(Axis(0), i)))
    }
}

impl From<Array2<f64>> for Rows {
    fn from(cells: Array2<f64>) -> Rows {
        let (n, d) = cells.dim();
        let cells = match cells.is_standard_layout() {
            true => cells.into_raw_vec_and_offset(),
            false => (cells.iter().copied().collect(), None),
        };
        match cells {
            (cells, None | Some(0)) => Rows::new(cells.into(), n, d),
            (cells, Some(first)) => Rows::new(cells[first..first + n * d].to_vec().into(), n, d),
        }
    }
}

impl Rows {
    /// `n` rows of `d` cells, row after row.
    pub fn new(cells: Buffer<f64>, n: usize, d: usize) -> Rows {
        assert_eq!(cells.len(), n * d, "every row has every cell");
        Rows { cells, n, d, layouts: Layouts::default() }
    }

    pub fn n(&self) -> usize {
        self.n
    }

    pub fn d(&self) -> usize {
        self.d
    }

    /// Where the cells are.
    pub fn place(&self) -> Place {
        self.cells.place()
    }

    /// All rows in tiles of `size`, the last one shorter.
    pub fn tiles(&self, size: usize) -> impl Iterator<Item = Tile<'_>> {
        let first = (0..self.n).step_by(size);
        first.map(move |first| Tile { first, x: self.run(first..(first + size).min(self.n)) })
    }

    /// Consecutive rows.
    fn run(&self, rows: Range<usize>) -> ArrayView2<'_, f64> {
        let cells = &self.cells[rows.start * self.d..rows.end * self.d];
        ArrayView2::from_shape((rows.len(), self.d), cells).expect(SHAPE)
    }

    pub fn row(&self, i: usize) -> ArrayView1<'_, f64> {
        ArrayView1::from(&self.cells[i * self.d..(i + 1) * self.d])
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = ArrayView1<'_, f64>> + ExactSizeIterator {
        (0..self.n).map(|i| self.row(i))
    }

    pub fn column(&self, j: usize) -> impl Iterator<Item = f64> + Clone + '_ {
        (0..self.n).map(move |i| self.cells[i * self.d + j])
    }

    /// The rows with these numbers, in this order.
    pub fn select(&self, rows: &[usize]) -> Rows {
        let mut cells = Buffer::sized(self.place(), rows.len() * self.d);
        rows.iter().for_each(|&i| cells.extend_from_slice(&self.cells[i * self.d..(i + 1) * self.d]));
        Rows::new(cells, rows.len(), self.d)
    }

    /// The same rows without some of their columns.
    pub fn columns(&self, kept: &[usize]) -> Rows {
        let mut cells = Buffer::sized(self.place(), self.n * kept.len());
        let mut row = vec![0.0; kept.len()];
        for i in 0..self.n {
            row.iter_mut().zip(kept).for_each(|(cell, &j)| *cell = self.cells[i * self.d + j]);
            cells.extend_from_slice(&row);
        }
        Rows::new(cells, self.n, kept.len())
    }

    /// The rows of both, one set after the other.
    pub fn stack(&self, second: &Rows) -> Rows {
        assert_eq!(self.d, second.d, "columns are alike");
        let mut cells = Buffer::sized(self.place(), self.cells.len() + second.cells.len());
        [self, second].into_iter().for_each(|rows| cells.extend_from_slice(&rows.cells));
        Rows::new(cells, self.n + second.n, self.d)
    }

    /// All cells, to be changed: whatever layout was made before is of other ones.
    pub fn whole_mut(&mut self) -> ArrayViewMut2<'_, f64> {
        self.layouts = Layouts::default();
        ArrayViewMut2::from_shape((self.n, self.d), &mut self.cells[..]).expect(SHAPE)
    }

    /// All of them as one matrix, for what cannot be had tile by tile.
    pub fn whole(&self) -> ArrayView2<'_, f64> {
        self.run(0..self.n)
    }

    /// Groups of eight rows, column after column within a group.
    pub fn panel(&self) -> &Panel {
        self.layouts.panel.get_or_init(|| Panel::placed(self.whole(), 0, self.place()))
    }

    /// The same with a column of ones after the others.
    pub fn panel_with_intercept(&self) -> &Panel {
        self.layouts.with_intercept.get_or_init(|| Panel::placed(self.whole(), 1, self.place()))
    }

    /// The same in singles, sixteen rows to a group.
    pub fn singles_with_intercept(&self) -> &Panel<f32, SINGLES> {
        self.layouts.singles_with_intercept.get_or_init(|| Panel::placed(self.whole(), 1, self.place()))
    }

    fn at(&self, [i, j]: [usize; 2]) -> usize {
        assert!(j < self.d, "a column of the rows");
        i * self.d + j
    }

    /// The cells that are not zero.
    pub fn sparse(&self) -> &SparseRows {
        self.layouts.sparse.get_or_init(|| SparseRows::new(self.whole()))
    }
}

impl Index<[usize; 2]> for Rows {
    type Output = f64;

    fn index(&self, at: [usize; 2]) -> &f64 {
        &self.cells[self.at(at)]
    }
}

impl IndexMut<[usize; 2]> for Rows {
    /// Whatever layout was made before is of other cells.
    fn index_mut(&mut self, at: [usize; 2]) -> &mut f64 {
        self.layouts = Layouts::default();
        let at = self.at(at);
        &mut self.cells[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_of_any_size_are_all_rows_in_order() {
        let rows = Rows::from(Array2::from_shape_fn((7, 2), |(i, j)| (10 * i + j) as f64));
        for size in 1..9 {
            let visited: Vec<(usize, f64)> =
                rows.tiles(size).flat_map(Tile::rows).map(|(i, x)| (i, x[1])).collect();
            assert_eq!(visited, (0..7).map(|i| (i, (10 * i + 1) as f64)).collect::<Vec<_>>(), "{size}");
        }
        assert_eq!(Rows::default().tiles(3).count(), 0);
    }

    #[test]
    fn a_cell_that_changes_changes_every_layout() {
        let mut rows = Rows::from(Array2::<f64>::zeros((3, 2)));
        assert_eq!(rows.panel_with_intercept().sizes().collect::<Vec<_>>(), [0.0, 0.0, 1.0]);
        rows[[1, 0]] = 5.0;
        assert_eq!(rows.panel_with_intercept().sizes().collect::<Vec<_>>(), [5.0, 0.0, 1.0]);
    }
}

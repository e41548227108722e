//! Rows of numbers, as losses visit them: one after the other, in tiles, or in a layout of the vector kernels. Where and how the
//! cells are kept is nobody else's business.

use std::ops::{Index, IndexMut};
use std::sync::OnceLock;

use ndarray::{Array2, ArrayView1, ArrayView2, Axis};

use crate::kernel::sparse::SparseRows;
use crate::kernel::{Panel, SINGLES};

#[derive(Clone, Debug, Default)]
pub struct Rows {
    cells: Array2<f64>,
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
        Rows { cells, layouts: Layouts::default() }
    }
}

impl Rows {
    pub fn n(&self) -> usize {
        self.cells.nrows()
    }

    pub fn d(&self) -> usize {
        self.cells.ncols()
    }

    /// All rows in tiles of `size`, the last one shorter.
    pub fn tiles(&self, size: usize) -> impl Iterator<Item = Tile<'_>> {
        let numbered = self.cells.axis_chunks_iter(Axis(0), size).enumerate();
        numbered.map(move |(t, x)| Tile { first: t * size, x })
    }

    pub fn row(&self, i: usize) -> ArrayView1<'_, f64> {
        self.cells.row(i)
    }

    pub fn iter(&self) -> impl Iterator<Item = ArrayView1<'_, f64>> {
        self.cells.outer_iter()
    }

    pub fn column(&self, j: usize) -> impl Iterator<Item = f64> + '_ {
        self.cells.column(j).into_iter().copied()
    }

    /// The rows with these numbers, in this order.
    pub fn select(&self, rows: &[usize]) -> Rows {
        self.cells.select(Axis(0), rows).into()
    }

    /// The rows of both, one set after the other.
    pub fn stack(&self, second: &Rows) -> Rows {
        let both = [self.cells.view(), second.cells.view()];
        ndarray::concatenate(Axis(0), &both).expect("columns are alike").into()
    }

    /// All of them as one matrix, for what cannot be had tile by tile.
    pub fn whole(&self) -> ArrayView2<'_, f64> {
        self.cells.view()
    }

    /// Groups of eight rows, column after column within a group.
    pub fn panel(&self) -> &Panel {
        self.layouts.panel.get_or_init(|| Panel::new(self.whole()))
    }

    /// The same with a column of ones after the others.
    pub fn panel_with_intercept(&self) -> &Panel {
        self.layouts.with_intercept.get_or_init(|| Panel::with_ones(self.whole(), 1))
    }

    /// The same in singles, sixteen rows to a group.
    pub fn singles_with_intercept(&self) -> &Panel<f32, SINGLES> {
        self.layouts.singles_with_intercept.get_or_init(|| Panel::with_ones(self.whole(), 1))
    }

    /// The cells that are not zero.
    pub fn sparse(&self) -> &SparseRows {
        self.layouts.sparse.get_or_init(|| SparseRows::new(self.whole()))
    }
}

impl Index<[usize; 2]> for Rows {
    type Output = f64;

    fn index(&self, at: [usize; 2]) -> &f64 {
        &self.cells[at]
    }
}

impl IndexMut<[usize; 2]> for Rows {
    /// Whatever layout was made before is of other cells.
    fn index_mut(&mut self, at: [usize; 2]) -> &mut f64 {
        self.layouts = Layouts::default();
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

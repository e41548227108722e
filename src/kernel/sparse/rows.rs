//! Rows by their cells that are not zero.

use std::ops::Range;
use std::sync::OnceLock;

use ndarray::ArrayView2;

/// Columns of a tile: the slopes of sixteen components in so many columns fit the second-level cache. Shorter runs of
/// cells cost more than they save.
pub const TILE: usize = 1024;
/// Rows that go through a tile together.
pub const BAND: usize = 64;
/// Rows of a strip: what is kept of eight components, and the cells beside it, fit the second-level cache.
const STRIP: usize = 2048;

/// The cells that are not zero, by bands of rows, tiles of columns, and rows.
#[derive(Clone, Debug, Default)]
pub struct SparseRows {
    n: usize,
    d: usize,
    tiles: usize,
    /// Most cells of a row.
    longest: usize,
    /// Where the cells of each row in each tile begin, and one more for the end.
    starts: Vec<usize>,
    /// Columns, counted from the first of the tile.
    columns: Vec<u16>,
    values: Vec<f64>,
    by_column: OnceLock<ByColumn>,
}

impl SparseRows {
    pub fn new(x: ArrayView2<f64>) -> Self {
        let (n, d) = x.dim();
        let tiles = d.div_ceil(TILE);
        let mut rows = SparseRows { n, d, tiles, starts: vec![0], ..SparseRows::default() };
        for (band, tile) in (0..n.div_ceil(BAND)).flat_map(|b| (0..tiles).map(move |t| (b, t))) {
            for i in band * BAND..(band + 1) * BAND {
                let cells = (tile * TILE..d.min((tile + 1) * TILE)).filter(|_| i < n).map(|j| (j, x[[i, j]]));
                for (j, value) in cells.filter(|(_, value)| *value != 0.0) {
                    rows.columns.push((j % TILE) as u16);
                    rows.values.push(value);
                }
                rows.starts.push(rows.values.len());
            }
        }
        rows.longest = (0..n).map(|i| (0..tiles).map(|t| rows.place(i, t).len()).sum()).max().unwrap_or(0);
        rows
    }

    pub fn n(&self) -> usize {
        self.n
    }

    pub fn tiles(&self) -> usize {
        self.tiles
    }

    /// Cells that are not zero.
    pub fn count(&self) -> usize {
        self.values.len()
    }

    pub fn longest(&self) -> usize {
        self.longest
    }

    /// The rows of each band.
    pub fn bands(&self) -> impl Iterator<Item = Range<usize>> {
        (0..self.n.div_ceil(BAND)).map(|band| band * BAND..self.n.min((band + 1) * BAND))
    }

    /// Where the cells of row `i` in a tile are.
    #[inline(always)]
    fn place(&self, i: usize, tile: usize) -> Range<usize> {
        let at = ((i / BAND) * self.tiles + tile) * BAND + i % BAND;
        self.starts[at]..self.starts[at + 1]
    }

    /// Columns and values of row `i` in a tile.
    #[inline(always)]
    pub fn cells(&self, i: usize, tile: usize) -> (&[u16], &[f64]) {
        let cells = self.place(i, tile);
        (&self.columns[cells.clone()], &self.values[cells])
    }

    /// The same cells by columns, sorted at the first call.
    pub fn by_column(&self) -> &ByColumn {
        self.by_column.get_or_init(|| ByColumn::new(self))
    }
}

/// The cells by strips of rows, columns, and rows.
#[derive(Clone, Debug)]
pub struct ByColumn {
    /// Cells of each column.
    pub counts: Vec<usize>,
    /// One over their number, 1 for an empty column.
    pub per_count: Vec<f64>,
    /// The least and the largest value of each column that is not zero; zeros in an empty one.
    pub ranges: Vec<[f64; 2]>,
    /// The means of y and y² over all rows, zeros and all.
    pub means: Vec<[f64; 2]>,
    /// Where the cells of each column in each strip begin, and one more for the end.
    starts: Vec<usize>,
    /// Rows, counted from the first of the strip.
    rows: Vec<u16>,
    values: Vec<f64>,
}

impl ByColumn {
    fn new(rows: &SparseRows) -> Self {
        let (d, strips) = (rows.d, rows.n.div_ceil(STRIP));
        let mut by = ByColumn {
            counts: vec![0; d],
            per_count: Vec::new(),
            ranges: vec![[0.0; 2]; d],
            means: vec![[0.0; 2]; d],
            starts: vec![0; strips * d + 1],
            rows: vec![0; rows.count()],
            values: vec![0.0; rows.count()],
        };
        let cells = || {
            (0..rows.n).flat_map(|i| (0..rows.tiles).map(move |t| (i, t))).flat_map(|(i, tile)| {
                let (columns, values) = rows.cells(i, tile);
                columns.iter().zip(values).map(move |(&j, &y)| (i, tile * TILE + j as usize, y))
            })
        };
        for (i, j, y) in cells() {
            let [least, most] = by.ranges[j];
            by.ranges[j] = if by.counts[j] == 0 { [y, y] } else { [least.min(y), most.max(y)] };
            by.counts[j] += 1;
            by.means[j] = [by.means[j][0] + y / rows.n as f64, by.means[j][1] + y * y / rows.n as f64];
            by.starts[(i / STRIP) * d + j + 1] += 1;
        }
        by.per_count = by.counts.iter().map(|&count| 1.0 / count.max(1) as f64).collect();
        for at in 1..by.starts.len() {
            by.starts[at] += by.starts[at - 1];
        }
        let mut next = by.starts.clone();
        for (i, j, y) in cells() {
            let next = &mut next[(i / STRIP) * d + j];
            (by.rows[*next], by.values[*next]) = ((i % STRIP) as u16, y);
            *next += 1;
        }
        by
    }

    /// Rows and values of column `j` in a strip.
    #[inline(always)]
    pub fn cells(&self, strip: usize, j: usize) -> (&[u16], &[f64]) {
        let at = strip * self.counts.len() + j;
        let cells = self.starts[at]..self.starts[at + 1];
        (&self.rows[cells.clone()], &self.values[cells])
    }

    /// `of_rows` in strips.
    pub fn strips<T>(of_rows: &mut [T]) -> impl Iterator<Item = (usize, &mut [T])> {
        of_rows.chunks_mut(STRIP).enumerate()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array2;

    #[test]
    fn columns_hold_the_cells_of_the_rows() {
        let value = |i: usize, j: usize| ((i * 7 + j * 5) % 13) as f64 - 3.0;
        let x = Array2::from_shape_fn((4500, 40), |(i, j)| if (i + j) % 3 == 0 { value(i, j) } else { 0.0 });
        let rows = SparseRows::new(x.view());
        let by = rows.by_column();
        let mut copy = Array2::<f64>::zeros(x.dim());
        for (j, mut column) in copy.columns_mut().into_iter().enumerate() {
            let mut all = column.to_vec();
            for (strip, part) in ByColumn::strips(&mut all) {
                let (rows, values) = by.cells(strip, j);
                rows.iter().zip(values).for_each(|(&i, &y)| part[i as usize] = y);
            }
            column.assign(&ndarray::Array1::from(all));
        }
        assert_eq!(copy, x);
        assert_eq!(by.counts.iter().sum::<usize>(), rows.count());
        for (column, [least, most]) in x.columns().into_iter().zip(&by.ranges) {
            let values = || column.iter().copied().filter(|y| *y != 0.0);
            assert_eq!([values().fold(9.0, f64::min), values().fold(-9.0, f64::max)], [*least, *most]);
        }
    }
}

//! Σ w z zᵀ of blocks of draws, z the columns of the data, a one for the intercept, and the response. The products of pairs of columns
//! are a matrix of their own, and its product with the weights of many draws is all there is to do.

use std::sync::OnceLock;

use ndarray::{Array2, ArrayView1};

use crate::data::Dataset;
use crate::kernel::products::add_gradients;
use crate::kernel::{LANES, Level, Line, Panel};
use crate::process::{Measure, Part};

/// Rows of a tile.
const TILE: usize = 256;
/// Products that are kept for the next block, in numbers: 128 MiB.
const KEPT: usize = 1 << 24;

/// The columns about their centres, in units of their spread, so that sums of products lose few digits.
pub struct Design {
    pub centre: Vec<f64>,
    pub scale: Vec<f64>,
    pub response: f64,
    pub intercept: bool,
    tiles: OnceLock<Vec<Panel>>,
}

impl Design {
    /// By the unweighted data. Without an intercept columns stay where they are.
    pub fn new(data: &Dataset, intercept: bool) -> Design {
        let moments = if data.n() > 0 { data.moments() } else { vec![(0.0, 1.0); data.d()] };
        let centred = intercept && data.n() > 0;
        let n = data.mass();
        let of_row = |(i, y): (usize, &f64)| data.weight(i) * (y - data.offset(i)) / n;
        let y = data.y.as_ref().expect("regression data have responses");
        let spread = |(mean, variance): &(f64, f64)| {
            if centred { variance.sqrt() } else { (variance + mean * mean).sqrt() }
        };
        Design {
            centre: moments.iter().map(|(mean, _)| if centred { *mean } else { 0.0 }).collect(),
            scale: moments.iter().map(|m| Some(spread(m)).filter(|s| *s > 0.0).unwrap_or(1.0)).collect(),
            response: if centred { y.iter().enumerate().map(of_row).sum() } else { 0.0 },
            intercept,
            tiles: OnceLock::new(),
        }
    }

    /// Columns of z.
    pub fn width(&self) -> usize {
        self.centre.len() + usize::from(self.intercept) + 1
    }

    /// Place of the product of columns i ≥ j.
    pub fn place(i: usize, j: usize) -> usize {
        i * (i + 1) / 2 + j
    }

    fn z(&self, x: ArrayView1<f64>, y: f64, z: &mut Vec<f64>) {
        z.clear();
        z.extend(x.iter().zip(&self.centre).zip(&self.scale).map(|((x, m), s)| (x - m) / s));
        z.extend(self.intercept.then_some(1.0));
        z.push(y - self.response);
    }

    /// The products of a run of rows.
    fn tile(&self, data: &Dataset, first: usize) -> Panel {
        let rows = first..(first + TILE).min(data.n());
        let q = Self::place(self.width(), 0);
        let y = data.y.as_ref().expect("regression data have responses");
        let mut cells = Vec::with_capacity(rows.len() * q);
        let mut z = Vec::new();
        for i in rows.clone() {
            self.z(data.x.row(i), y[i] - data.offset(i), &mut z);
            for (a, za) in z.iter().enumerate() {
                cells.extend(z[..=a].iter().map(|zb| za * zb));
            }
        }
        Panel::new(
            Array2::from_shape_vec((rows.len(), q), cells).expect("every row has every product").view(),
        )
    }

    /// Lower triangles of Σ w z zᵀ, row after row, of draws on the same observed rows.
    pub fn sums(&self, data: &Dataset, block: &[&Measure]) -> Vec<Vec<f64>> {
        let q = Self::place(self.width(), 0);
        let lines = block.len().div_ceil(LANES);
        let mut sums = vec![vec![Line::default(); q]; lines];
        let firsts = || (0..data.n()).step_by(TILE);
        if data.n().saturating_mul(q) <= KEPT {
            let tiles = self.tiles.get_or_init(|| firsts().map(|first| self.tile(data, first)).collect());
            firsts().zip(tiles).for_each(|(first, tile)| add_tile(tile, first, block, &mut sums));
        } else {
            firsts().for_each(|first| add_tile(&self.tile(data, first), first, block, &mut sums));
        }
        let of_draw = |(s, f): (usize, &&Measure)| {
            let mut sums: Vec<f64> = sums[s / LANES].iter().map(|line| line[s % LANES]).collect();
            let others = f.parts().skip(usize::from(data.n() > 0));
            others.for_each(|part| self.add_part(&part, &mut sums));
            sums
        };
        block.iter().enumerate().map(of_draw).collect()
    }

    /// Atoms that are no observed rows, one by one.
    fn add_part(&self, part: &Part, sums: &mut [f64]) {
        let mut z = Vec::new();
        for (k, w) in part.w.iter().enumerate() {
            let y = part.response(k).expect("base measures of a regression have responses");
            self.z(part.row(k), y - part.offset(k), &mut z);
            for (a, za) in z.iter().enumerate() {
                for (b, zb) in z[..=a].iter().enumerate() {
                    sums[Self::place(a, b)] += w * za * zb;
                }
            }
        }
    }
}

/// Adds the products of a tile, weighted by every draw.
fn add_tile(tile: &Panel, first: usize, block: &[&Measure], sums: &mut [Vec<Line>]) {
    let of_line = |draws: &[&Measure]| {
        let mut lines = vec![Line::default(); tile.rows()];
        for (lane, f) in draws.iter().enumerate() {
            let w = &f.weights().0[first..first + tile.n()];
            lines.iter_mut().zip(w).for_each(|(line, w)| line[lane] = *w);
        }
        lines
    };
    // Two lines of draws at a time keep their weights and sums in the nearest cache.
    for (draws, sums) in block.chunks(2 * LANES).zip(sums.chunks_mut(2)) {
        let weights: Vec<Vec<Line>> = draws.chunks(LANES).map(of_line).collect();
        let weights: Vec<&[Line]> = weights.iter().map(|w| &w[..]).collect();
        let mut sums: Vec<&mut [Line]> = sums.iter_mut().map(|s| &mut s[..]).collect();
        add_gradients(Level::current(), tile, 0..tile.groups(), 0..tile.d(), &weights, &mut sums);
    }
}

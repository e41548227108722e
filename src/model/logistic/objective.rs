//! The weighted losses of a block of draws on the same rows, for the optimiser.

use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, Axis, s};

use super::Logistic;
use super::metric::{Metric, Shared};
use crate::kernel::logistic::loss_and_slope;
use crate::optim::lbfgs::BlockObjective;
use crate::process::Measure;

/// Rows of a pass that are worked on together: their margins stay in the cache.
const TILE: usize = 512;

pub struct Objective<'a> {
    model: &'a Logistic,
    x: &'a Array2<f64>,
    /// Per draw: mass of each row, and the part of it with response 1.
    responses: Vec<(Vec<f64>, Vec<f64>)>,
    metrics: Vec<Metric<'a>>,
}

impl<'a> Objective<'a> {
    pub fn new(model: &'a Logistic, shared: &'a Shared, block: &[&Measure<'a>]) -> Self {
        let x = &block[0].observed().x;
        let responses = block.iter().map(|f| f.responses()).collect();
        Objective { model, x, responses, metrics: block.iter().map(|_| Metric::new(shared)).collect() }
    }
}

impl BlockObjective for Objective<'_> {
    /// Margins of a tile of rows for all draws are one matrix product, and so is its share of all gradients.
    fn evaluate(
        &mut self,
        active: &[usize],
        theta: &Array2<f64>,
        values: &mut [f64],
        gradients: &mut Array2<f64>,
    ) {
        let d = self.model.d();
        let beta = theta.slice(s![.., ..d]);
        gradients.fill(0.0);
        values.fill(0.0);
        let mut margins = Array2::zeros((active.len(), TILE));
        for (t, rows) in self.x.axis_chunks_iter(Axis(0), TILE).enumerate() {
            let range = t * TILE..t * TILE + rows.nrows();
            let mut tile = margins.slice_mut(s![.., ..rows.nrows()]);
            for (mut line, theta) in tile.outer_iter_mut().zip(theta.outer_iter()) {
                line.fill(theta[d]);
            }
            general_mat_mul(1.0, &beta, &rows.t(), 1.0, &mut tile);
            for (i, &draw) in active.iter().enumerate() {
                let (mass, ones) = &self.responses[draw];
                let line = margins.slice_mut(s![i, ..rows.nrows()]);
                let line = line.into_slice().expect("a line of margins is contiguous");
                self.metrics[draw].observe(range.start, line);
                values[i] +=
                    loss_and_slope(self.model.level, line, &mass[range.clone()], &ones[range.clone()]);
                gradients[[i, d]] += line.iter().sum::<f64>();
            }
            let tile = margins.slice(s![.., ..rows.nrows()]);
            general_mat_mul(1.0, &tile, &rows, 1.0, &mut gradients.slice_mut(s![.., ..d]));
        }
        for (i, mut gradient) in gradients.outer_iter_mut().enumerate() {
            let theta = theta.row(i);
            let beta = &theta.as_slice().expect(ROWS)[..d];
            values[i] += self.model.penalise(beta, &mut gradient.as_slice_mut().expect(ROWS)[..d]);
        }
    }

    fn precondition(&mut self, active: &[usize], far: &[bool], v: &mut Array2<f64>) -> bool {
        let masses: Vec<&[f64]> = active.iter().map(|&s| &self.responses[s].0[..]).collect();
        let metrics: Vec<&Metric> = active.iter().map(|&s| &self.metrics[s]).collect();
        Metric::apply_block(&metrics, self.x, &masses, far, v)
    }

    fn renew(&mut self, search: usize, theta: &[f64], far: bool) -> bool {
        self.metrics[search].renew(self.model, self.x, &self.responses[search].0, theta, far)
    }

    fn begins_alone(&self, search: usize) -> bool {
        self.metrics[search].begins_alone()
    }

    fn renewal_cost(&self) -> f64 {
        Shared::renewal_cost(self.x)
    }
}

const ROWS: &str = "rows of a fresh array are contiguous";

//! The mean functional: l(y, θ) = (y − θ)², so θ(F) = ∫ y dF (supplement A.2).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::eights::{SharedColumn, block_size};
use super::{Context, Model, Search, column_names};
use crate::config::Complaint;
use crate::data::Dataset;
use crate::kernel::column::{add_products, add_squares};
use crate::kernel::{LANES, Level};
use crate::optim::Minimum;
use crate::process::{Atoms, Measure};

pub const STARTER: &str = include_str!("../../configs/starters/mean.toml");

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {}

impl Config {
    pub fn build(&self, context: &Context) -> Result<Box<dyn Model>, Vec<Complaint>> {
        let block = block_size(context.train.n());
        Ok(Box::new(Mean { columns: context.train.columns.clone(), block }))
    }
}

struct Mean {
    columns: Vec<String>,
    block: usize,
}

/// Rows per partial sum: keeps the rounding error of long sums small.
const TILE: usize = 1024;

impl Model for Mean {
    fn names(&self) -> Vec<String> {
        column_names("theta", &self.columns)
    }

    fn loss(&self, theta: &[f64], f: &Measure) -> f64 {
        squared_error(theta, f)
    }

    fn gradient(&self, theta: &[f64], f: &Measure) -> Option<Vec<f64>> {
        Some(by_location(theta, f, 2.0))
    }

    fn minimise(&self, f: &Measure, _start: &[f64]) -> Minimum {
        let theta = weighted_means(&[f]).remove(0);
        let value = self.loss(&theta, f);
        Minimum::closed_form(theta, value)
    }

    fn minimise_block(&self, searches: &[Search]) -> Vec<Minimum> {
        let block: Vec<&Measure> = searches.iter().map(|s| s.f).collect();
        let means = weighted_means(&block);
        let values = squared_errors(&means, &block);
        means.into_iter().zip(values).map(|(theta, value)| Minimum::closed_form(theta, value)).collect()
    }

    fn block_size(&self) -> usize {
        self.block
    }

    fn layouts(&self, _rows: &Dataset) -> f64 {
        0.0
    }
}

/// Σ w Σⱼ (yⱼ − θⱼ)².
pub fn squared_error(theta: &[f64], f: &Measure) -> f64 {
    f.atoms().map(|atoms| squares(theta, &atoms)).sum()
}

fn squares(theta: &[f64], atoms: &Atoms) -> f64 {
    let row = |y: ndarray::ArrayView1<f64>| y.iter().zip(theta).map(|(y, t)| (y - t) * (y - t)).sum::<f64>();
    atoms.x.iter().zip(atoms.w).map(|(y, w)| w * row(y)).sum()
}

/// The squared errors of a block, each at its own θ.
fn squared_errors(theta: &[Vec<f64>], block: &[&Measure]) -> Vec<f64> {
    let Some(shared) = SharedColumn::of(block) else {
        return theta.iter().zip(block).map(|(theta, f)| squared_error(theta, f)).collect();
    };
    let mut values = vec![0.0; block.len()];
    for (draws, w) in shared.eights(0..shared.y.len()) {
        let at: [f64; LANES] = std::array::from_fn(|l| theta[(draws.start + l).min(draws.end - 1)][0]);
        let mut sums = [0.0; LANES];
        add_squares(Level::current(), &w, shared.y, &at, &mut sums);
        values[draws].iter_mut().zip(sums).for_each(|(value, sum)| *value = sum);
    }
    for ((value, theta), f) in values.iter_mut().zip(theta).zip(block) {
        f.atoms().skip(1).for_each(|atoms| *value += squares(theta, &atoms));
    }
    values
}

/// Σ w c (θ − y): the derivatives of c/2 times the squared error.
pub fn by_location(theta: &[f64], f: &Measure, c: f64) -> Vec<f64> {
    let mut gradient = vec![0.0; theta.len()];
    for atoms in f.atoms() {
        for (y, w) in atoms.x.iter().zip(atoms.w) {
            gradient.iter_mut().zip(theta).zip(y).for_each(|((g, t), y)| *g += w * c * (t - y));
        }
    }
    gradient
}

/// ∫ y dF for a block of measures: the observed rows they share are read once.
pub fn weighted_means(block: &[&Measure]) -> Vec<Vec<f64>> {
    let parts: Vec<Vec<_>> = block.iter().map(|f| f.atoms().collect()).collect();
    let mut means = vec![vec![0.0; block[0].d()]; block.len()];
    let shared = SharedColumn::of(block);
    if let Some(shared) = &shared {
        let n = shared.y.len();
        for tile in (0..n).step_by(TILE).map(|first| first..(first + TILE).min(n)) {
            for (draws, w) in shared.eights(tile.clone()) {
                let mut sums = [0.0; LANES];
                add_products(Level::current(), &w, &shared.y[tile.clone()], &mut sums);
                means[draws].iter_mut().zip(sums).for_each(|(mean, sum)| mean[0] += sum);
            }
        }
    }
    for part in usize::from(shared.is_some())..parts.iter().map(Vec::len).max().unwrap_or(0) {
        let rows = parts.iter().filter_map(|p| p.get(part)).map(|a| a.x.n()).max().unwrap_or(0);
        for tile in (0..rows).step_by(TILE) {
            for (mean, atoms) in means.iter_mut().zip(&parts) {
                let Some(atoms) = atoms.get(part) else { continue };
                let end = (tile + TILE).min(atoms.w.len());
                let mut sum = vec![0.0; mean.len()];
                for i in tile.min(end)..end {
                    sum.iter_mut().zip(atoms.x.row(i)).for_each(|(s, y)| *s += atoms.w[i] * y);
                }
                mean.iter_mut().zip(sum).for_each(|(m, s)| *m += s);
            }
        }
    }
    means
}

//! Quantiles of each column: the pinball loss l(y, θ) = (y − θ)(q − 1{y < θ}), summed over quantiles if there are several.

use ndarray::ArrayView1;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bracket::{Spread, Wanted, quantiles};
use super::eights::{SharedColumn, block_size};
use super::law::{Law, OrderStatistics};
use super::{Context, Model, Search, column_names};
use crate::config::{Complaint, OpenUnit, complaint};
use crate::data::Dataset;
use crate::kernel::column::add_pinballs;
use crate::kernel::{LANES, Level};
use crate::optim::Minimum;
use crate::process::{Atoms, Measure};

pub const STARTER: &str = include_str!("../../configs/starters/quantile.toml");

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Which quantile, 0.5 is the median; or a list of them, in order.
    pub q: Quantiles,
}

/// One quantile, or several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Quantiles {
    One(OpenUnit),
    Many(Vec<OpenUnit>),
}

impl Quantiles {
    /// In order, and at least one; or what is wrong with them.
    pub fn checked(&self) -> Result<Vec<f64>, Vec<Complaint>> {
        let q: Vec<f64> = match self {
            Quantiles::One(q) => vec![q.get()],
            Quantiles::Many(list) => list.iter().map(|q| q.get()).collect(),
        };
        if q.is_empty() || q.windows(2).any(|w| w[0] >= w[1]) {
            return Err(vec![complaint("q", "must be one or more numbers, each above the one before it")]);
        }
        Ok(q)
    }

    /// What tells the parameters of several apart: `q10` of 0.1.
    pub fn tags(&self) -> Vec<String> {
        match self {
            Quantiles::One(_) => vec![String::new()],
            // In per cent 0.29 is 28.999…: digits beyond the tenth are rounding.
            Quantiles::Many(list) => {
                list.iter().map(|q| format!("q{}", (1e12 * q.get()).round() / 1e10)).collect()
            }
        }
    }
}

impl Config {
    pub fn build(&self, context: &Context) -> Result<Box<dyn Model>, Vec<Complaint>> {
        Ok(Box::new(Quantile::new(self.q.checked()?, self.q.tags(), 1.0, context)))
    }
}

/// Quantiles; `scale` times the pinball loss is their objective. θ is one quantile of every column, then the next.
pub struct Quantile {
    q: Vec<f64>,
    tags: Vec<String>,
    scale: f64,
    columns: Vec<String>,
    /// Where the quantiles of a draw will lie, in the order of θ: almost always, and where not it costs time.
    wanted: Vec<Wanted>,
    /// Of the data that the model was built for.
    rows: usize,
    block: usize,
    /// Why the law of θ is not known by itself.
    lawless: Option<&'static str>,
    /// There are so many rows that its law is preferred to weights.
    many: bool,
}

/// From so many rows on draws are made by the law of the quantiles, where it is known: below, weights are cheap, and they say more.
const MANY: usize = 100_000;

/// Rows per tile: the weights of eight draws are 128 KiB.
const TILE: usize = 2048;

impl Quantile {
    pub fn new(q: Vec<f64>, tags: Vec<String>, scale: f64, context: &Context) -> Self {
        let train = context.train;
        let spread = Spread::of(train, context.alpha);
        let of_column = |q: f64, j: usize| Wanted::new(q, spread.bracket(train, j, q), train.x.column(j));
        let of_quantile = |q: &f64| (0..train.d()).map(|j| of_column(*q, j)).collect::<Vec<_>>();
        let wanted = q.iter().flat_map(of_quantile).collect();
        let (columns, block) = (train.columns.clone(), block_size(train.n()));
        let lawless = match context.alpha > 0.0 {
            true => Some("pseudo-samples of a prior have no such law: leave [prior] out, or set `alpha = 0`"),
            false => OrderStatistics::lawless(train),
        };
        let (rows, many) = (train.n(), train.rows_before() >= MANY);
        Quantile { q, tags, scale, columns, wanted, rows, block, lawless, many }
    }

    fn pinballs(&self, theta: &[f64], q: f64, atoms: &Atoms) -> f64 {
        let pinball = |y: f64, t: f64| (y - t) * (q - if y < t { 1.0 } else { 0.0 });
        let row = |y: ArrayView1<f64>| y.iter().zip(theta).map(|(&y, &t)| pinball(y, t)).sum::<f64>();
        atoms.x.iter().zip(atoms.w).map(|(y, w)| w * row(y)).sum()
    }

    /// The losses of a block, each at its own θ.
    fn losses(&self, theta: &[Vec<f64>], block: &[&Measure]) -> Vec<f64> {
        let Some(shared) = SharedColumn::of(block) else {
            return theta.iter().zip(block).map(|(theta, f)| self.loss(theta, f)).collect();
        };
        let (mut values, n) = (vec![0.0; block.len()], shared.y.len());
        let mut sums = vec![vec![[0.0; LANES]; self.q.len()]; block.len().div_ceil(LANES)];
        // Tile by tile: the weights of eight draws serve all quantiles while they are near.
        for tile in (0..n).step_by(TILE).map(|first| first..(first + TILE).min(n)) {
            for ((draws, w), sums) in shared.eights(tile.clone()).zip(&mut sums) {
                for ((k, &q), sums) in self.q.iter().enumerate().zip(sums) {
                    let at: [f64; LANES] =
                        std::array::from_fn(|l| theta[(draws.start + l).min(draws.end - 1)][k]);
                    add_pinballs(Level::current(), &w, &shared.y[tile.clone()], &at, q, sums);
                }
            }
        }
        for (draw, (value, f)) in values.iter_mut().zip(block).enumerate() {
            for (k, &q) in self.q.iter().enumerate() {
                let sum = sums[draw / LANES][k][draw % LANES];
                let others = f.atoms().skip(1);
                let sum = others.fold(sum, |sum, atoms| sum + self.pinballs(&theta[draw][k..=k], q, &atoms));
                *value += self.scale * sum;
            }
        }
        values
    }

    /// θ of every draw of a block.
    fn entries(&self, block: &[&Measure]) -> Vec<Vec<f64>> {
        let (observed, d) = (block[0].observed(), self.columns.len());
        let shared = observed.n() > 0 && block.iter().all(|f| std::ptr::eq(f.observed(), observed));
        let mut theta = vec![vec![0.0; self.wanted.len()]; block.len()];
        for j in 0..d {
            let of_column: Vec<&Wanted> = self.wanted.iter().skip(j).step_by(d).collect();
            // What lies inside the brackets is known of the rows that the model was built for.
            let known = shared && observed.n() == self.rows;
            for (theta, f) in theta.iter_mut().zip(block) {
                let found = match known {
                    true => quantiles(f, j, &of_column),
                    false => of_column.iter().map(|one| weighted_quantile(f, j, one.q)).collect(),
                };
                theta.iter_mut().skip(j).step_by(d).zip(found).for_each(|(theta, value)| *theta = value);
            }
        }
        theta
    }
}

impl Model for Quantile {
    fn names(&self) -> Vec<String> {
        let of_tag = |tag: &String| {
            let symbol = if tag.is_empty() { "theta".to_owned() } else { format!("theta.{tag}") };
            column_names(&symbol, &self.columns)
        };
        self.tags.iter().flat_map(of_tag).collect()
    }

    fn loss(&self, theta: &[f64], f: &Measure) -> f64 {
        let of_quantile = |(q, theta): (&f64, &[f64])| {
            self.scale * f.atoms().map(|atoms| self.pinballs(theta, *q, &atoms)).sum::<f64>()
        };
        self.q.iter().zip(theta.chunks(f.d())).map(of_quantile).sum()
    }

    fn minimise(&self, f: &Measure, start: &[f64]) -> Minimum {
        self.minimise_block(&[Search::new(f, start.to_vec())]).remove(0)
    }

    fn minimise_block(&self, searches: &[Search]) -> Vec<Minimum> {
        let block: Vec<&Measure> = searches.iter().map(|s| s.f).collect();
        let theta = self.entries(&block);
        let values = self.losses(&theta, &block);
        theta.into_iter().zip(values).map(|(theta, value)| Minimum::closed_form(theta, value)).collect()
    }

    fn block_size(&self) -> usize {
        self.block
    }

    fn layouts(&self, _rows: &Dataset) -> f64 {
        0.0
    }

    fn lawless(&self) -> Option<&'static str> {
        self.lawless
    }

    fn prefers_law(&self) -> bool {
        self.many && self.lawless.is_none()
    }

    fn law(&self, train: &Dataset) -> Option<Box<dyn Law>> {
        self.lawless.is_none().then(|| Box::new(OrderStatistics::new(train, &self.q)) as Box<dyn Law>)
    }
}

/// The lower q-quantile of column j: the smallest atom at or below which at least a share q of the mass lies. It is
/// always an atom, never between two.
pub fn weighted_quantile(f: &Measure, j: usize, q: f64) -> f64 {
    let mut atoms: Vec<(f64, f64)> = f.atoms().flat_map(|a| a.x.column(j).zip(a.w.iter().copied())).collect();
    let total: f64 = atoms.iter().map(|(_, w)| w).sum();
    select(&mut atoms, q * total)
}

/// The smallest value whose cumulative weight reaches `target`, by quickselect: linear in the number of atoms.
pub fn select(mut atoms: &mut [(f64, f64)], mut target: f64) -> f64 {
    while atoms.len() > 1 {
        let middle = (atoms.len() - 1) / 2;
        atoms.select_nth_unstable_by(middle, |a, b| a.0.total_cmp(&b.0));
        let (low, high) = atoms.split_at_mut(middle + 1);
        let mass: f64 = low.iter().map(|(_, w)| w).sum();
        if mass >= target || high.is_empty() {
            atoms = low;
        } else {
            target -= mass;
            atoms = high;
        }
    }
    atoms.first().map_or(f64::NAN, |(value, _)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lower_quantile_is_an_atom() {
        let pick = |q: f64| select(&mut [(3.0, 0.25), (1.0, 0.25), (4.0, 0.25), (2.0, 0.25)], q);
        assert_eq!(
            [pick(0.1), pick(0.25), pick(0.26), pick(0.5), pick(0.51), pick(0.99)],
            [1.0, 1.0, 2.0, 2.0, 3.0, 4.0]
        );
    }

    #[test]
    fn tags_are_per_cent() {
        let q = |list: &[f64]| Quantiles::Many(list.iter().map(|q| OpenUnit::new(*q).unwrap()).collect());
        assert_eq!(q(&[0.025, 0.29, 0.5]).tags(), ["q2.5", "q29", "q50"]);
        assert!(q(&[0.5, 0.1]).checked().is_err() && q(&[]).checked().is_err());
    }
}

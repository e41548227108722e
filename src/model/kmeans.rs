//! K centres: l(y, θ) = minₖ |y − μₖ|², minimised by Lloyd's algorithm on weighted rows. A loss of the rows alone, and no likelihood.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Block, Components, Context, Model, Support};
use crate::config::{Complaint, Count, complaint};
use crate::data::Dataset;
use crate::optim::{Minimum, Status};
use crate::process::Measure;

pub const STARTER: &str = include_str!("../../configs/starters/kmeans.toml");

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(non_snake_case)]
pub struct Config {
    /// Number of centres.
    pub K: Count,
}

impl Config {
    pub fn build(&self, context: &Context) -> Result<Box<dyn Model>, Vec<Complaint>> {
        let (k, train) = (self.K.get(), context.train);
        // Counting stops when there are enough.
        let mut distinct = HashSet::new();
        for row in train.x.iter() {
            distinct.insert(row.iter().map(|v| (v + 0.0).to_bits()).collect::<Vec<u64>>());
            if distinct.len() >= k {
                break;
            }
        }
        if train.n() > 0 && distinct.len() < k {
            let found = distinct.len();
            return Err(vec![complaint(
                "K",
                format!("is {k}, more than the {found} different rows of data"),
            )]);
        }
        Ok(Box::new(KMeans {
            k,
            d: train.d(),
            change: context.optimiser.change.map(|c| c.get()),
            max_iterations: context.optimiser.max_iterations.get(),
        }))
    }
}

/// θ is μ, K × d by rows.
struct KMeans {
    k: usize,
    d: usize,
    change: Option<f64>,
    max_iterations: usize,
}

/// What a pass over F finds out about the centres.
struct Pass {
    loss: f64,
    /// Mass and Σ w (y − μ) of the rows of every centre.
    mass: Vec<f64>,
    shift: Vec<f64>,
    /// Rows have other centres than in the pass before.
    moved: bool,
}

fn squared_distance(y: &[f64], mu: &[f64]) -> f64 {
    y.iter().zip(mu).map(|(y, m)| (y - m) * (y - m)).sum()
}

/// The centre of every atom.
type Assignment = Vec<u32>;

impl KMeans {
    /// The nearest centre, the first of equals, and the squared distance.
    fn nearest(&self, y: &[f64], theta: &[f64]) -> (usize, f64) {
        let squares = theta.chunks_exact(self.d).map(|mu| squared_distance(y, mu)).enumerate();
        squares.fold((0, f64::INFINITY), |best, next| if next.1 < best.1 { next } else { best })
    }

    /// Every atom with its weight, its number among all atoms.
    fn each_row(f: &Measure, mut visit: impl FnMut(usize, &[f64], f64)) {
        let mut number = 0;
        let mut cells = Vec::new();
        for atoms in f.atoms() {
            for (row, w) in atoms.x.iter().zip(atoms.w) {
                match row.as_slice() {
                    Some(row) => visit(number, row, *w),
                    None => {
                        cells.clear();
                        cells.extend(row.iter().copied());
                        visit(number, &cells, *w);
                    }
                }
                number += 1;
            }
        }
    }

    fn pass(&self, theta: &[f64], f: &Measure, assignment: &mut Assignment) -> Pass {
        let (k, d) = (self.k, self.d);
        let (mut mass, mut shift) = (vec![0.0; k], vec![0.0; k * d]);
        let (mut loss, mut moved) = (0.0, false);
        Self::each_row(f, |i, y, w| {
            let (c, square) = self.nearest(y, theta);
            loss += w * square;
            mass[c] += w;
            let centre = &theta[c * d..(c + 1) * d];
            let shift = &mut shift[c * d..(c + 1) * d];
            shift.iter_mut().zip(y).zip(centre).for_each(|((s, y), m)| *s += w * (y - m));
            match assignment.get_mut(i) {
                Some(before) => {
                    moved |= *before != c as u32;
                    *before = c as u32;
                }
                None => {
                    moved = true;
                    assignment.push(c as u32);
                }
            }
        });
        Pass { loss, mass, shift, moved }
    }

    /// Rows to which centres without any are moved, one for each: those with the largest w |y − μ|², which then cost nothing.
    fn dearest(&self, theta: &[f64], f: &Measure, count: usize) -> Vec<Vec<f64>> {
        let mut found: Vec<(f64, Vec<f64>)> = Vec::new();
        Self::each_row(f, |_, y, w| {
            let cost = w * self.nearest(y, theta).1;
            let beaten = found.len() < count || found.last().is_some_and(|last| cost > last.0);
            if cost > 0.0 && beaten && !found.iter().any(|(_, row)| row == y) {
                let at = found.partition_point(|(other, _)| *other >= cost);
                found.insert(at, (cost, y.to_vec()));
                found.truncate(count);
            }
        });
        found.into_iter().map(|(_, row)| row).collect()
    }

    /// Centres become the means of their rows; those that have none are moved, as far as there are rows to move to.
    fn step(&self, theta: &mut [f64], f: &Measure, pass: &Pass) {
        let d = self.d;
        let mut empty: Vec<usize> = (0..self.k).filter(|&c| pass.mass[c] <= 0.0).collect();
        let rows = if empty.is_empty() { Vec::new() } else { self.dearest(theta, f, empty.len()) };
        for c in (0..self.k).filter(|&c| pass.mass[c] > 0.0) {
            for j in 0..d {
                theta[c * d + j] += pass.shift[c * d + j] / pass.mass[c];
            }
        }
        // Each row gets the nearest of the centres that are left: a rule that knows no labels, which stay exchangeable.
        for row in rows {
            let near = |c: &usize| squared_distance(&row, &theta[c * d..(c + 1) * d]);
            let (at, _) = (empty.iter().map(near).enumerate())
                .min_by(|a, b| a.1.total_cmp(&b.1))
                .expect("as many centres as rows");
            let c = empty.swap_remove(at);
            theta[c * d..(c + 1) * d].copy_from_slice(&row);
        }
    }
}

impl Model for KMeans {
    fn names(&self) -> Vec<String> {
        Components::Centres { count: self.k, columns: self.d }.names()
    }

    fn components(&self) -> Option<Components> {
        Some(Components::Centres { count: self.k, columns: self.d })
    }

    /// None, and which centre each row is nearest to.
    fn layouts(&self, _rows: &Dataset) -> f64 {
        0.0
    }

    fn blocks(&self) -> Vec<Block> {
        vec![Block { name: "mu".into(), range: 0..self.k * self.d, support: Support::Location }]
    }

    fn loss(&self, theta: &[f64], f: &Measure) -> f64 {
        let mut loss = 0.0;
        Self::each_row(f, |_, y, w| loss += w * self.nearest(y, theta).1);
        loss
    }

    /// Lloyd's algorithm: it ends when no row changes its centre, after finitely many steps, for none raises the loss. Then every
    /// centre is the mean of its rows, and the gradient is 0 but for rounding. A centre that keeps no rows, because F has fewer
    /// different ones than there are centres, could be anywhere.
    fn minimise(&self, f: &Measure, start: &[f64]) -> Minimum {
        let mut theta = start.to_vec();
        if theta.iter().any(|t| !t.is_finite()) {
            return Minimum::failed(theta, 0);
        }
        let (mut assignment, mut last) = (Assignment::new(), f64::INFINITY);
        for iteration in 1.. {
            let pass = self.pass(&theta, f, &mut assignment);
            if !pass.loss.is_finite() {
                return Minimum::failed(theta, iteration);
            }
            let empty = pass.mass.iter().any(|m| *m <= 0.0);
            let settled = !(pass.moved || empty && pass.loss > 0.0);
            let stopped = self.change.is_some_and(|change| last - pass.loss < change);
            let status = match () {
                () if settled && empty => Some(Status::Unidentified),
                () if settled || stopped => Some(Status::Ok),
                () if iteration == self.max_iterations => Some(Status::MaxIter),
                () => None,
            };
            if let Some(status) = status {
                let gradient = pass.shift.iter().fold(0.0f64, |most, s| most.max(2.0 * s.abs()));
                return Minimum { theta, value: pass.loss, iterations: iteration, gradient, status };
            }
            last = pass.loss;
            self.step(&mut theta, f, &pass);
        }
        unreachable!("there is a last iteration")
    }

    fn predicted(&self) -> Vec<String> {
        (1..=self.k).map(|k| format!("component.{k}")).collect()
    }

    /// 1 for the nearest centre of a row, 0 for the others.
    fn predict(&self, theta: &[f64], at: &Dataset, out: &mut [f64]) {
        for (x, out) in at.x.iter().zip(out.chunks_exact_mut(self.k)) {
            out.fill(0.0);
            out[self.nearest(&x.to_vec(), theta).0] = 1.0;
        }
    }
}

//! EM steps of the mixture (supplement E.2.1), over panels of rows or over the non-zero cells of sparse rows.

use super::Gmm;
use crate::kernel::mixture::{Sums, e_step, e_step_blind, newton_step};
use crate::kernel::sparse::{self, Ledger, Moments, Opening};
use crate::process::Measure;

/// EM whose steps shrink no faster than this is not extrapolated beyond it.
const SLOWEST_RATE: f64 = 0.9999;
/// Rounding noise of the objective, relative.
pub(super) const NOISE: f64 = 1e-14;

/// Sums of an EM pass: over panels about the old parameters, over sparse rows about zero.
pub(super) struct EmSums {
    pub panel: Sums,
    ledger: Ledger,
    /// The last pass was over sparse rows.
    is_sparse: bool,
}

impl EmSums {
    pub fn new(model: &Gmm) -> Self {
        EmSums { panel: Sums::default(), ledger: Ledger::new(model.k, model.d), is_sparse: false }
    }

    /// For a search that begins with what a first pass at its start has found out.
    pub fn after(&mut self, opening: &Opening, settled: Moments) {
        opening.begin(&mut self.ledger, settled);
    }

    /// The last pass was over sparse rows, and found every settled row where it had been.
    pub fn settled_rows_unmoved(&self) -> bool {
        self.is_sparse && self.ledger.moved() == 0
    }
}

impl Gmm {
    /// One pass over the atoms of F: fills `sums`, returns the objective at `theta`.
    pub(super) fn pass(&self, theta: &[f64], f: &Measure, newton: bool, sums: &mut Sums) -> f64 {
        let mixture = self.prepare(theta);
        sums.reset(self.k, self.d, newton);
        for atoms in f.atoms() {
            let pass = if newton { newton_step } else { e_step };
            pass(self.level, atoms.panel(), atoms.w, &mixture, sums);
        }
        self.penalty(theta) - sums.log_lik()
    }

    /// The pass of an EM step that nobody asks for the objective.
    pub(super) fn blind_pass(&self, theta: &[f64], f: &Measure, sums: &mut EmSums) {
        let mixture = self.prepare(theta);
        sums.is_sparse = false;
        sums.panel.reset(self.k, self.d, false);
        for atoms in f.atoms() {
            e_step_blind(self.level, atoms.panel(), atoms.w, &mixture, &mut sums.panel);
        }
    }

    /// The pass of an EM step. Over sparse rows one that is not thorough leaves settled rows where they are, and the
    /// objective is an upper bound.
    pub(super) fn em_pass(&self, theta: &[f64], f: &Measure, thorough: bool, sums: &mut EmSums) -> f64 {
        let mixture = self.expand(theta);
        sums.is_sparse = mixture.is_some();
        let Some(mixture) = mixture else { return self.pass(theta, f, false, &mut sums.panel) };
        let ledger = &mut sums.ledger;
        ledger.begin();
        for (part, atoms) in f.atoms().enumerate() {
            sparse::e_step(self.level, atoms.sparse_rows(), atoms.w, &mixture, part, thorough, ledger);
        }
        self.penalty(theta) - ledger.end(&mixture)
    }

    /// M step, eq. (E.7). Variances are clamped at the floor: the expected log likelihood is unimodal in each variance,
    /// so the clamp is its maximiser under the floor and EM stays monotone. The inverse-gamma penalty adds to numerator
    /// and denominator.
    pub(super) fn m_step(&self, theta: &[f64], sums: &EmSums) -> Vec<f64> {
        let (k, d) = (self.k, self.d);
        let mut next = theta.to_vec();
        let mut total = 0.0;
        for c in 0..k {
            let (mass, columns) = self.mean_and_scatter(theta, sums, c);
            total += mass;
            next[c] = mass;
            for (j, [mean, mut scatter]) in columns.into_iter().enumerate() {
                let (m, v) = (k + c * d + j, k + k * d + c * d + j);
                let mut count = mass;
                if let Some(p) = self.penalty {
                    scatter += 2.0 * p.scale;
                    count += 2.0 * p.shape;
                }
                next[m] = mean;
                if count > 0.0 {
                    next[v] = (scatter / count).max(self.floor);
                }
            }
        }
        next[..k].iter_mut().for_each(|p| *p /= total);
        next
    }

    /// Σ w r of component c; ȳ and Σ w r (y − ȳ)² of each column, or the old mean and 0 of a component without mass.
    fn mean_and_scatter(&self, theta: &[f64], sums: &EmSums, c: usize) -> (f64, Vec<[f64; 2]>) {
        let d = self.d;
        let mean = &self.mu(theta)[c * d..(c + 1) * d];
        let unchanged = || mean.iter().map(|m| [*m, 0.0]).collect();
        if sums.is_sparse {
            let (mass, moments) = sums.ledger.sums(c);
            let of_column = |[first, second]: &[f64; 2]| {
                let mean = first / mass;
                [mean, (second - first * mean).max(0.0)]
            };
            return (mass, if mass > 0.0 { moments.iter().map(of_column).collect() } else { unchanged() });
        }
        let em = sums.panel.em(c, d);
        let mass = em[0];
        let variance = &self.sigma2(theta)[c * d..(c + 1) * d];
        let of_column = |j: usize| {
            let shift = em[1 + j] / mass;
            let scatter = mass * variance[j] * (em[1 + d + j] / mass - shift * shift).max(0.0);
            [mean[j] + variance[j].sqrt() * shift, scatter]
        };
        (mass, if mass > 0.0 { (0..d).map(of_column).collect() } else { unchanged() })
    }

    /// Σ w r, Σ w r zⱼ … , Σ w r zⱼ² … of component c, z = (y − μ)/σ.
    pub(super) fn standardised(&self, theta: &[f64], sums: &EmSums, c: usize) -> Vec<f64> {
        let d = self.d;
        if !sums.is_sparse {
            return sums.panel.em(c, d);
        }
        let (mass, moments) = sums.ledger.sums(c);
        let mut em = vec![mass; 1 + 2 * d];
        for (j, [first, second]) in moments.iter().enumerate() {
            let (mean, variance) = (self.mu(theta)[c * d + j], self.sigma2(theta)[c * d + j]);
            let shift = first - mass * mean;
            em[1 + j] = shift / variance.sqrt();
            em[1 + d + j] = (second - mean * (first + shift)) / variance;
        }
        em
    }

    /// The authors' rule if `change` is set; otherwise what is left to gain, extrapolated from the last two steps of
    /// a linearly converging iteration: n · 2 (L − L*) is the squared distance in posterior standard deviations.
    pub(super) fn em_has_converged(&self, drop: f64, previous_drop: f64, value: f64) -> bool {
        if let Some(change) = self.change {
            return drop < change;
        }
        if !previous_drop.is_finite() {
            return false;
        }
        if drop <= NOISE * value.abs() {
            return true;
        }
        let rate = (drop / previous_drop).clamp(0.0, SLOWEST_RATE);
        2.0 * self.mass * drop * rate / (1.0 - rate) <= self.tolerance * self.tolerance
    }
}

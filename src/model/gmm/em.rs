//! EM steps of the mixture (supplement E.2.1), over panels of rows or over the non-zero cells of sparse rows.

use super::Gmm;
use crate::kernel::mixture::{
    Mixture, Pass, Sums, e_step, e_step_roughly, newton_roughly_exists, newton_step, newton_step_roughly,
};
use crate::kernel::sparse::{self, Ledger, Moments, Opening};
use crate::process::Measure;

/// EM whose steps shrink no faster than this is not extrapolated beyond it.
const SLOWEST_RATE: f64 = 0.9999;
/// Rounding noise of the objective, relative.
pub(super) const NOISE: f64 = 1e-14;

/// A component with less mass than this in singles, in which the exponential ends at e⁻⁶⁴, may owe it to rows that they
/// have lost.
const LEAST_MASS: f64 = 1e-20;

/// How exact a pass is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Digits {
    Singles,
    Doubles,
}

/// Sums of a pass: over panels about the old parameters, over sparse rows about zero.
pub(super) struct EmSums {
    pub panel: Sums,
    /// θ as the last pass over panels had it.
    mixture: Mixture,
    ledger: Ledger,
    /// The last pass was over sparse rows.
    is_sparse: bool,
}

impl EmSums {
    pub fn new(model: &Gmm) -> Self {
        let ledger = Ledger::new(model.k, model.d);
        EmSums { panel: Sums::default(), mixture: Mixture::default(), ledger, is_sparse: false }
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

impl EmSums {
    /// Σ w r of component c.
    fn mass(&self, c: usize, d: usize) -> f64 {
        if self.is_sparse { self.ledger.sums(c).0 } else { self.panel.em(c, d)[0] }
    }

    /// ȳ and Σ w r (y − ȳ)² in column j of component c, which has mass, and mean and variance from before the pass.
    fn mean_and_scatter(&self, [mean, variance]: [f64; 2], c: usize, j: usize, d: usize) -> (f64, f64) {
        if self.is_sparse {
            let (mass, moments) = self.ledger.sums(c);
            let [first, second] = moments[j];
            let mean = first / mass;
            return (mean, (second - first * mean).max(0.0));
        }
        let em = self.panel.em(c, d);
        let shift = em[1 + j] / em[0];
        let scatter = em[0] * variance * (em[1 + d + j] / em[0] - shift * shift).max(0.0);
        (mean + variance.sqrt() * shift, scatter)
    }
}

impl Gmm {
    /// One pass over the atoms of F: fills `sums`, returns the objective at `theta`.
    fn pass(&self, theta: &[f64], f: &Measure, sums: &mut EmSums) -> f64 {
        self.prepare(theta, &mut sums.mixture);
        self.panel_pass(f, e_step, false, sums);
        self.penalty(theta) - sums.panel.log_lik()
    }

    fn panel_pass(&self, f: &Measure, pass: Pass, newton: bool, sums: &mut EmSums) {
        sums.is_sparse = false;
        sums.panel.reset(self.k, self.d, newton);
        for atoms in f.atoms() {
            pass(self.level, atoms.x.panel(), atoms.w, &sums.mixture, &mut sums.panel);
        }
        sums.panel.finish();
    }

    /// A pass in singles, if they will do: `false` says that they did not.
    fn rough_pass(&self, f: &Measure, pass: Pass, newton: bool, sums: &mut EmSums) -> bool {
        // A single component has arrived after one step, which may as well be exact.
        if self.k == 1 || !f.atoms().all(|atoms| atoms.x.panel().suits_singles(&sums.mixture)) {
            return false;
        }
        self.panel_pass(f, pass, newton, sums);
        let without = f64::NEG_INFINITY;
        let mut components = sums.mixture.log_constant.iter().enumerate();
        components.all(|(c, constant)| *constant == without || sums.panel.em(c, self.d)[0] >= LEAST_MASS)
    }

    /// The pass of an EM step that nobody asks for the objective.
    pub(super) fn blind_pass(&self, theta: &[f64], f: &Measure, sums: &mut EmSums) {
        self.prepare(theta, &mut sums.mixture);
        if !self.rough_pass(f, e_step_roughly, false, sums) {
            self.panel_pass(f, e_step, false, sums);
        }
    }

    /// The pass of a Newton step: the objective, and how exact it and the sums are, which is no more than asked for.
    pub(super) fn newton_pass(
        &self,
        theta: &[f64],
        f: &Measure,
        digits: Digits,
        sums: &mut EmSums,
    ) -> (f64, Digits) {
        self.prepare(theta, &mut sums.mixture);
        let rough = digits == Digits::Singles
            && newton_roughly_exists(self.k, self.d)
            && self.rough_pass(f, newton_step_roughly, true, sums);
        if !rough {
            self.panel_pass(f, newton_step, true, sums);
        }
        let digits = if rough { Digits::Singles } else { Digits::Doubles };
        (self.penalty(theta) - sums.panel.log_lik(), digits)
    }

    /// The pass of an EM step. Over sparse rows one that is not thorough leaves settled rows where they are, and the
    /// objective is an upper bound.
    pub(super) fn em_pass(&self, theta: &[f64], f: &Measure, thorough: bool, sums: &mut EmSums) -> f64 {
        let mixture = self.expand(theta);
        sums.is_sparse = mixture.is_some();
        let Some(mixture) = mixture else { return self.pass(theta, f, sums) };
        let ledger = &mut sums.ledger;
        ledger.begin();
        for (part, atoms) in f.atoms().enumerate() {
            sparse::e_step(self.level, atoms.x.sparse(), atoms.w, &mixture, part, thorough, ledger);
        }
        self.penalty(theta) - ledger.end(&mixture)
    }

    /// M step, eq. (E.7). Variances are clamped at the floor: the expected log likelihood is unimodal in each variance,
    /// so the clamp is its maximiser under the floor and EM stays monotone. The inverse-gamma penalty adds to numerator
    /// and denominator.
    pub(super) fn m_step(&self, theta: &mut [f64], sums: &EmSums) {
        let (k, d) = (self.k, self.d);
        let mut total = 0.0;
        for c in 0..k {
            let mass = sums.mass(c, d);
            total += mass;
            // The ledger of sparse rows takes away what it has added: of a component without rows a rounding error is left.
            theta[c] = mass.max(0.0);
            let mut count = mass;
            if let Some(p) = self.penalty {
                count += 2.0 * p.shape;
            }
            for j in 0..d {
                let (m, v) = (k + c * d + j, k + k * d + c * d + j);
                let mut scatter = 0.0;
                // A component without mass stays where it is.
                if mass > 0.0 {
                    (theta[m], scatter) = sums.mean_and_scatter([theta[m], theta[v]], c, j, d);
                }
                if let Some(p) = self.penalty {
                    scatter += 2.0 * p.scale;
                }
                if count > 0.0 {
                    theta[v] = (scatter / count + self.added).max(self.floor);
                }
            }
        }
        theta[..k].iter_mut().for_each(|p| *p /= total);
    }

    /// Σ w r, Σ w r zⱼ … , Σ w r zⱼ² … of component c, z = (y − μ)/σ.
    pub(super) fn standardised(&self, theta: &[f64], sums: &EmSums, c: usize) -> Vec<f64> {
        let d = self.d;
        if !sums.is_sparse {
            return sums.panel.em(c, d).to_vec();
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
            // Steps that add to variances may go up, and the authors stop at a small change either way.
            return if self.added > 0.0 { drop.abs() } else { drop } < change;
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

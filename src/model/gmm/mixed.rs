//! Mixed EM steps over dense rows, where there are too many parameters for the Hessian.

use super::Gmm;
use super::em::EmSums;
use super::step::EM_FIRST;
use crate::model::em::{Em, Expectation};
use crate::optim::{Minimum, Status};
use crate::process::Measure;

/// √π of a component that has all but died.
const LEAST_ROOT: f64 = 1e-5;

/// EM of the mixture on F.
struct Pass<'a> {
    model: &'a Gmm,
    f: &'a Measure<'a>,
    sums: &'a mut EmSums,
}

impl Gmm {
    /// EM into the basin, in singles where they will do; then mixed steps. What a search says of itself at its end is what EM says there.
    pub(super) fn mix(&self, f: &Measure, mut start: Vec<f64>, sums: &mut EmSums) -> Minimum {
        for _ in 0..EM_FIRST {
            self.blind_pass(&start, f, sums);
            self.m_step(&mut start, sums);
        }
        let (mass, tolerance, max_iterations) = (self.mass, self.tolerance, self.max_iterations);
        let em = Em { mass, tolerance, change: None, max_iterations };
        let found = em.minimise_after(EM_FIRST, &start, &mut Pass { model: self, f, sums });
        if found.status == Status::Failed {
            return found;
        }
        let Minimum { theta, iterations, status, .. } = found;
        let value = self.em_pass(&theta, f, true, sums);
        let status = if status == Status::MaxIter { status } else { Status::Ok };
        self.end(theta, value, sums, iterations, status)
    }
}

impl Expectation for Pass<'_> {
    fn e_step(&mut self, theta: &[f64]) -> f64 {
        self.model.em_pass(theta, self.f, true, self.sums)
    }

    fn m_step(&mut self, theta: &mut [f64]) {
        self.model.m_step(theta, self.sums);
    }

    /// √π, then 1/σ.
    fn metric(&self, theta: &[f64]) -> Vec<f64> {
        let roots = self.model.pi(theta).iter().map(|p| p.sqrt());
        roots.chain(self.model.sigma2(theta).iter().map(|s| 1.0 / s.sqrt())).collect()
    }

    fn measure(&self, metric: &[f64], step: &[f64]) -> Vec<f64> {
        let (model, d) = (self.model, self.model.d);
        let (roots, inverses) = metric.split_at(model.k);
        let of_pi = model.pi(step).iter().zip(roots).map(|(s, root)| s / root.max(LEAST_ROOT));
        let of_mu = model.mu(step).iter().zip(inverses).enumerate().map(|(i, (s, w))| roots[i / d] * w * s);
        let half = 0.5f64.sqrt();
        let of_sigma2 = model.sigma2(step).iter().zip(inverses).enumerate();
        let of_sigma2 = of_sigma2.map(|(i, (s, w))| half * roots[i / d] * w * w * s);
        of_pi.chain(of_mu).chain(of_sigma2).collect()
    }

    fn admit(&self, theta: &mut [f64]) -> bool {
        let sound = theta.iter().all(|t| t.is_finite()) && self.model.pi(theta).iter().all(|p| *p >= 0.0);
        if sound {
            let inside = self.model.admissible(theta);
            theta.copy_from_slice(&inside);
        }
        sound
    }

    fn is_collapsed(&self, theta: &[f64]) -> bool {
        self.model.sigma2(theta).iter().any(|&s| self.model.at_floor(s))
    }
}

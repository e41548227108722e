//! Gradient and Hessian of the weighted mixture loss in scale-free coordinates: logits a of π, shifts of μ in units
//! of σ, and log σ². Per component ũ = (1, z, ½(z² − 1)) is the score of its log density, so
//!
//! H = C − Σₖ (Aₖ + curvature) + (diag π − ππᵀ) on the logits,
//!
//! with Aₖ = Σ w rₖ ũ ũᵀ and C = Σ w r̃ r̃ᵀ, r̃ the rₖũₖ of all components (Louis 1982).

use ndarray::{Array1, Array2};

use super::Gmm;
use crate::kernel::mixture::Sums;
use crate::linalg::solve_spd;

/// No coordinate moves by more than this in one step: longer steps jump out of the basin, often onto a singularity.
const LONGEST: f64 = 0.3;
/// A component lighter than this that is still losing mass has died; it is left out of the system.
const DEAD: f64 = 1e-10;

/// Gradient, Hessian and complete-data information at a point.
pub struct System {
    gradient: Array1<f64>,
    hessian: Array2<f64>,
    information: Array1<f64>,
}

/// A damped Newton step.
pub struct Step {
    pub step: Array1<f64>,
    /// gᵀ(H + λD)⁻¹g: about twice what is left to gain.
    pub decrement: f64,
    /// Decrease of the quadratic model along the step.
    pub predicted: f64,
}

impl System {
    pub fn new(model: &Gmm, theta: &[f64], sums: &Sums) -> System {
        let gradient = model.gradient(theta, |c| sums.em(c, model.d));
        let mut hessian = model.hessian(theta, sums);
        model.fix_inactive(theta, sums, &gradient, &mut hessian);
        System { gradient, hessian, information: model.information(theta, sums) }
    }

    pub fn largest_gradient(&self) -> f64 {
        self.gradient.iter().fold(0.0, |m, g| m.max(g.abs()))
    }

    /// Solves (H + λD) s = −g, raising λ until the matrix is positive definite; `None` beyond `most`.
    pub fn solve(&self, damping: &mut f64, raise: impl Fn(f64) -> f64, most: f64) -> Option<Step> {
        loop {
            let mut matrix = self.hessian.clone();
            matrix.diag_mut().scaled_add(*damping, &self.information);
            if let Some(solution) = solve_spd(&matrix, &self.gradient) {
                return Some(self.step(solution));
            }
            *damping = raise(*damping);
            if *damping > most {
                return None;
            }
        }
    }

    fn step(&self, solution: Array1<f64>) -> Step {
        let decrement = self.gradient.dot(&solution);
        let longest = solution.iter().fold(0.0f64, |m, s| m.max(s.abs()));
        let scale = if longest > LONGEST { LONGEST / longest } else { 1.0 };
        let step = -scale * solution;
        let predicted = -(self.gradient.dot(&step) + 0.5 * step.dot(&self.hessian.dot(&step)));
        Step { step, decrement, predicted }
    }
}

impl Gmm {
    /// Coordinates of component c start here; then its logit, d shifts and d log variances.
    fn place(&self, c: usize) -> usize {
        c * (1 + 2 * self.d)
    }

    /// Gradient of the objective by the sums Σ w r, Σ w r z, Σ w r z² of each component; coordinates at an active bound
    /// are 0.
    pub(super) fn gradient<S: AsRef<[f64]>>(&self, theta: &[f64], sums: impl Fn(usize) -> S) -> Array1<f64> {
        let d = self.d;
        let mut g = Array1::zeros(self.k * (1 + 2 * d));
        for c in 0..self.k {
            let em = sums(c);
            let em = em.as_ref();
            let at = self.place(c);
            if !self.is_dead(theta, em[0], c) {
                g[at] = self.pi(theta)[c] - em[0];
            }
            for j in 0..d {
                g[at + 1 + j] = -em[1 + j];
                let sigma2 = self.sigma2(theta)[c * d + j];
                let mut slope = -0.5 * (em[1 + d + j] - em[0]);
                if let Some(p) = self.penalty {
                    slope += p.shape - p.scale / sigma2;
                }
                if !(self.at_floor(sigma2) && slope > 0.0) {
                    g[at + 1 + d + j] = slope;
                }
            }
        }
        g
    }

    fn is_dead(&self, theta: &[f64], mass: f64, c: usize) -> bool {
        let pi = self.pi(theta)[c];
        pi < DEAD && mass <= pi
    }

    /// Diagonal of the information that the data would hold were the components of all rows known; 1 for a coordinate
    /// that is out of the system.
    fn information(&self, theta: &[f64], sums: &Sums) -> Array1<f64> {
        let d = self.d;
        let of_component = |c: usize| {
            let mass = sums.em(c, d)[0].max(f64::MIN_POSITIVE);
            let logit = self.pi(theta)[c].max(f64::MIN_POSITIVE);
            std::iter::once(logit).chain((0..d).map(move |_| mass)).chain((0..d).map(move |_| 0.5 * mass))
        };
        (0..self.k).flat_map(of_component).collect()
    }

    fn hessian(&self, theta: &[f64], sums: &Sums) -> Array2<f64> {
        let (k, d) = (self.k, self.d);
        let p1 = 1 + 2 * d;
        let p = k * p1;
        let mut h = Array2::zeros((p, p));
        for i in 0..p {
            for j in i..p {
                h[[i, j]] = sums.outer(i, j, p);
            }
        }
        for c in 0..k {
            let at = self.place(c);
            let em = sums.em(c, d);
            for i in 0..p1 {
                for j in i..p1 {
                    h[[at + i, at + j]] -= sums.inner(c, i, j, d);
                }
            }
            for j in 0..d {
                let (shift, log_var) = (at + 1 + j, at + 1 + d + j);
                h[[shift, shift]] += em[0];
                h[[shift, log_var]] += em[1 + j];
                h[[log_var, log_var]] += 0.5 * em[1 + d + j];
                if let Some(penalty) = self.penalty {
                    h[[log_var, log_var]] += penalty.scale / self.sigma2(theta)[c * d + j];
                }
            }
            h[[at, at]] += self.pi(theta)[c];
            for e in c..k {
                // −ππᵀ of the softmax, and +11ᵀ: adding a constant to all logits changes nothing, so that direction
                // may be given any curvature.
                h[[at, self.place(e)]] += 1.0 - self.pi(theta)[c] * self.pi(theta)[e];
            }
        }
        for i in 0..p {
            for j in 0..i {
                h[[i, j]] = h[[j, i]];
            }
        }
        h
    }

    /// Takes coordinates out of the system that do not move: variances held at the floor, dead components.
    fn fix_inactive(&self, theta: &[f64], sums: &Sums, gradient: &Array1<f64>, h: &mut Array2<f64>) {
        let d = self.d;
        for c in 0..self.k {
            let at = self.place(c);
            let dead = self.is_dead(theta, sums.em(c, d)[0], c);
            for i in 0..1 + 2 * d {
                let held =
                    i > d && self.at_floor(self.sigma2(theta)[c * d + i - 1 - d]) && gradient[at + i] == 0.0;
                if dead || held {
                    h.row_mut(at + i).fill(0.0);
                    h.column_mut(at + i).fill(0.0);
                    h[[at + i, at + i]] = 1.0;
                }
            }
        }
    }

    /// θ after a step in the scale-free coordinates.
    pub(super) fn apply(&self, theta: &[f64], step: &Array1<f64>) -> Vec<f64> {
        let (k, d) = (self.k, self.d);
        let mut next = theta.to_vec();
        for c in 0..k {
            let at = self.place(c);
            next[c] *= libm::exp(step[at]);
            for j in 0..d {
                let (m, v) = (k + c * d + j, k + k * d + c * d + j);
                next[m] += theta[v].sqrt() * step[at + 1 + j];
                next[v] = (theta[v] * libm::exp(step[at + 1 + d + j])).max(self.floor);
            }
        }
        let total: f64 = next[..k].iter().sum();
        next[..k].iter_mut().for_each(|p| *p /= total);
        next
    }
}

#[cfg(test)]
mod tests {
    use crate::data::Dataset;
    use crate::kernel::Level;
    use crate::process::Measure;

    use super::super::em::{Digits, EmSums};
    use super::super::{Gmm, Shrinkage};
    use ndarray::{Array1, Array2};

    fn example(k: usize, d: usize) -> (Gmm, Dataset, Vec<f64>, Vec<f64>) {
        let x = Array2::from_shape_fn((40, d), |(i, j)| ((i * 37 + j * 13) % 23) as f64 / 4.0 - 2.0);
        let w: Vec<f64> = (0..40).map(|i| (1 + (i * 7) % 5) as f64 / 120.0).collect();
        let total: f64 = w.iter().sum();
        let gmm = Gmm {
            k,
            d,
            floor: 1e-6,
            added: 0.0,
            penalty: Some(Shrinkage { shape: 0.02, scale: 0.03 }),
            prior: None,
            data_sd: vec![1.0; d],
            mass: 40.0,
            tolerance: 1e-3,
            change: None,
            max_iterations: 100,
            sparse: false,
            level: Level::current(),
        };
        let mut theta: Vec<f64> = (0..k).map(|i| 1.0 + i as f64).collect();
        let sum: f64 = theta.iter().sum();
        theta.iter_mut().for_each(|p| *p /= sum);
        theta.extend((0..k * d).map(|i| 1.5 * (i as f64 * 1.7).sin()));
        theta.extend((0..k * d).map(|i| 1.2 + (i as f64).cos()));
        (gmm, Dataset::unnamed(x, None), w.iter().map(|w| w / total).collect(), theta)
    }

    /// Central differences, h = ε^⅓, relative tolerance 1e-6.
    #[test]
    fn gradient_and_hessian_match_differences() {
        for (k, d) in [(1, 1), (2, 1), (3, 1), (2, 2), (3, 3)] {
            let (gmm, data, w, theta) = example(k, d);
            let f = Measure::weighted(&data, w);
            let gradient_of = |theta: &[f64], sums: &EmSums| gmm.gradient(theta, |c| sums.panel.em(c, d));
            let mut sums = EmSums::new(&gmm);
            gmm.newton_pass(&theta, &f, Digits::Doubles, &mut sums);
            let (gradient, hessian) = (gradient_of(&theta, &sums), gmm.hessian(&theta, &sums.panel));
            let p = gradient.len();
            let h = f64::EPSILON.cbrt();
            let moved = |i: usize, by: f64| {
                let mut step = Array1::zeros(p);
                step[i] = by;
                gmm.apply(&theta, &step)
            };
            for i in 0..p {
                let (mut up, mut down) = (EmSums::new(&gmm), EmSums::new(&gmm));
                let difference = gmm.em_pass(&moved(i, h), &f, true, &mut up)
                    - gmm.em_pass(&moved(i, -h), &f, true, &mut down);
                assert!((difference / (2.0 * h) - gradient[i]).abs() < 1e-6, "K {k}, d {d}, g[{i}]");
                // Shifts are in units of σ, so their slope cannot be compared across a move of that σ; symmetry
                // covers those entries.
                let (up, down) = (gradient_of(&moved(i, h), &up), gradient_of(&moved(i, -h), &down));
                let kind = |i: usize| (i / (1 + 2 * d), i % (1 + 2 * d));
                let rescaled =
                    |j: usize| kind(i).0 == kind(j).0 && kind(i).1 > d && (1..=d).contains(&kind(j).1);
                for j in (0..p).filter(|&j| !rescaled(j)) {
                    let mut exact = hessian[[i, j]];
                    if kind(i).1 == 0 && kind(j).1 == 0 {
                        exact -= 1.0;
                    }
                    assert!(((up[j] - down[j]) / (2.0 * h) - exact).abs() < 1e-6, "K {k}, d {d}, H[{i},{j}]");
                }
            }
        }
    }
}

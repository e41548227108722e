//! The minimum of a draw, given its sums of products: ½ aᵀSa − bᵀa + Σ penalty, with a the coefficients of the columns in units of their
//! spread. Quadratic penalties are one linear system; kinks are coordinate descent, then the system of the coefficients that are not 0; a
//! Student-t is a sequence of quadratic ones that touch it from above, each lower than the last, and then Newton's steps.

use ndarray::{Array1, Array2};

use super::moments::Design;
use super::{Noise, Normal};
use crate::linalg::Cholesky;
use crate::math::largest;
use crate::model::predictor::Predictor;
use crate::optim::Status;
use crate::penalty::{Penalty, Shape};
use crate::process::Measure;

/// Rounds of whatever is repeated until nothing changes.
const ROUNDS: usize = 10_000;
/// Change, relative to the largest coefficient, that is rounding.
const ROUNDING: f64 = 1e-15;
/// Sweeps of coordinate descent between two looks at the exact solution.
const SWEEPS: usize = 10;
/// Excess of a slope at a coefficient that is 0 over the weight of its kink, relative, that is rounding.
const SLACK: f64 = 1e-12;

pub struct Problem<'a> {
    model: &'a Predictor,
    law: &'a Normal,
    design: &'a Design,
    s: Array2<f64>,
    b: Array1<f64>,
    /// Σ w t², t the response about its centre, and Σ w.
    tt: f64,
    mass: f64,
    /// ω γ fⱼ of every coefficient; 0 for the intercept.
    gamma: Vec<f64>,
    weight: f64,
}

/// A value with its gradient.
type Height = (f64, Vec<f64>);

pub struct Solution {
    pub theta: Vec<f64>,
    pub value: f64,
    pub iterations: usize,
    pub gradient: f64,
    pub status: Status,
}

impl<'a> Problem<'a> {
    pub fn new(model: &'a Predictor, law: &'a Normal, design: &'a Design, sums: &[f64], f: &Measure) -> Self {
        let p = design.width() - 1;
        let at = |i: usize, j: usize| sums[Design::place(i.max(j), i.min(j))];
        let weight = model.weight(f);
        let factor = |j: usize| model.factors().get(j).map_or(0.0, |f| weight * model.gamma() * f);
        // Without an intercept nobody needs Σ w but the likelihood.
        let mass =
            if design.intercept { at(p - 1, p - 1) } else { f.weights().0.iter().chain(f.weights().1).sum() };
        Problem {
            s: Array2::from_shape_fn((p, p), |(i, j)| at(i, j)),
            b: Array1::from_shape_fn(p, |j| at(p, j)),
            tt: at(p, p),
            mass,
            gamma: (0..p).map(factor).collect(),
            weight,
            model,
            law,
            design,
        }
    }

    /// σ² that penalties are multiplied by.
    fn known(&self) -> Option<f64> {
        match self.law.noise {
            Noise::LeastSquares => Some(1.0),
            Noise::Known(sigma) => Some(sigma * sigma),
            Noise::Estimated => None,
        }
    }

    fn scale(&self, j: usize) -> f64 {
        self.design.scale.get(j).copied().unwrap_or(1.0)
    }

    /// The solution from a start, which only a penalty with several minima asks for; `None` if sums are singular.
    pub fn solve(&self, start: &[f64]) -> Option<Solution> {
        let mut a: Vec<f64> =
            (0..self.b.len()).map(|j| start.get(j).copied().unwrap_or(0.0) * self.scale(j)).collect();
        if a.iter().any(|a| !a.is_finite()) {
            a.fill(0.0);
        }
        let mut iterations = 0;
        let Some(sigma2) = self.known() else {
            // σ² and coefficients in turn: each step is exact, and the loss is convex in (a/σ, 1/σ) where the penalty is.
            let mut sigma2 = (self.tt / self.mass).max(f64::MIN_POSITIVE);
            for _ in 0..ROUNDS {
                iterations += self.coefficients(sigma2, &mut a)?;
                let next = (self.squares(&a) / self.mass).max(f64::MIN_POSITIVE);
                let change = (next / sigma2 - 1.0).abs();
                sigma2 = next;
                if change <= 4.0 * f64::EPSILON || self.model.penalty() == Penalty::None {
                    break;
                }
            }
            return Some(self.solution(&a, sigma2, iterations));
        };
        iterations += self.coefficients(sigma2, &mut a)?;
        Some(self.solution(&a, sigma2, iterations))
    }

    /// Σ w (t − aᵀz)².
    fn squares(&self, a: &[f64]) -> f64 {
        let a = Array1::from(a.to_vec());
        (self.tt - 2.0 * self.b.dot(&a) + a.dot(&self.s.dot(&a))).max(0.0)
    }

    /// Moves `a` to the minimum at this σ².
    fn coefficients(&self, sigma2: f64, a: &mut Vec<f64>) -> Option<usize> {
        let penalty = self.model.penalty();
        if penalty.kink() > 0.0 {
            return self.descend(sigma2, a);
        }
        if !matches!(penalty, Penalty::StudentT(_)) {
            let quadratic: Vec<f64> = (0..a.len()).map(|j| self.majorant(sigma2, j, 0.0)).collect();
            *a = self.system(&quadratic)?.solve(self.b.as_slice()?);
            return Some(1);
        }
        self.majorise(sigma2, a)
    }

    /// σ² ω γ fⱼ g′(β)/β in terms of a.
    fn majorant(&self, sigma2: f64, j: usize, a: f64) -> f64 {
        let scale = self.scale(j);
        if self.gamma[j] == 0.0 {
            0.0
        } else {
            self.model.penalty().majorant(sigma2 * self.gamma[j], a / scale) / (scale * scale)
        }
    }

    fn system(&self, diagonal: &[f64]) -> Option<Cholesky> {
        let mut s = self.s.clone();
        s.diag_mut().iter_mut().zip(diagonal).for_each(|(s, d)| *s += d);
        Cholesky::new(&s)
    }

    /// ½ aᵀSa − bᵀa + σ² Σ penalty, without kinks, and its gradient.
    fn smooth(&self, sigma2: f64, a: &[f64]) -> Height {
        let vector = Array1::from(a.to_vec());
        let product = self.s.dot(&vector);
        let mut gradient: Vec<f64> = product.iter().zip(&self.b).map(|(s, b)| s - b).collect();
        let mut value = 0.5 * vector.dot(&product) - self.b.dot(&vector);
        for (j, a) in a.iter().enumerate().filter(|(j, _)| self.gamma[*j] > 0.0) {
            let mut slope = [0.0];
            value += sigma2
                * self.model.penalty().weighted(self.gamma[j], &[1.0], &[a / self.scale(j)], &mut slope);
            gradient[j] += sigma2 * slope[0] / self.scale(j);
        }
        (value, gradient)
    }

    /// Parabolas that touch the penalty lie above it: no step goes up.
    fn majorise(&self, sigma2: f64, a: &mut Vec<f64>) -> Option<usize> {
        let mut before = self.smooth(sigma2, a);
        for round in 1..=ROUNDS {
            let diagonal: Vec<f64> = (0..a.len()).map(|j| self.majorant(sigma2, j, a[j])).collect();
            let mut next = self.system(&diagonal)?.solve(self.b.as_slice()?);
            let mut at = self.smooth(sigma2, &next);
            // Newton's step from there, where it is lower: near a minimum it is exact.
            if let Some((newton, there)) =
                self.newton(sigma2, &next, &at.1).filter(|(_, there)| there.0 < at.0)
            {
                (next, at) = (newton, there);
            }
            let change = a.iter().zip(&next).fold(0.0f64, |most, (a, b)| most.max((a - b).abs()));
            if at.0 > before.0 {
                return Some(round);
            }
            *a = next;
            before = at;
            if change <= ROUNDING * largest(a.iter()) {
                return Some(round);
            }
        }
        Some(ROUNDS)
    }

    fn newton(&self, sigma2: f64, a: &[f64], gradient: &[f64]) -> Option<(Vec<f64>, Height)> {
        let h = |j: usize| {
            let (scale, step) = (self.scale(j), 1e-6);
            let slope = |a: f64| self.majorant(sigma2, j, a) * a;
            (slope(a[j] + step * scale) - slope(a[j] - step * scale)) / (2.0 * step * scale)
        };
        let step = self.system(&(0..a.len()).map(h).collect::<Vec<_>>())?.solve(gradient);
        let next: Vec<f64> = a.iter().zip(step).map(|(a, s)| a - s).collect();
        let at = self.smooth(sigma2, &next);
        at.0.is_finite().then_some((next, at))
    }

    /// Coordinate descent until the coefficients that are not 0 and their signs are known, then their system.
    fn descend(&self, sigma2: f64, a: &mut Vec<f64>) -> Option<usize> {
        let p = a.len();
        let kink = self.model.penalty().kink();
        let l1: Vec<f64> = (0..p).map(|j| sigma2 * kink * self.gamma[j] / self.scale(j)).collect();
        let quadratic: Vec<f64> = (0..p).map(|j| self.majorant(sigma2, j, 0.0)).collect();
        a.fill(0.0);
        for round in 1..=ROUNDS {
            for _ in 0..SWEEPS {
                for j in 0..p {
                    let rest: f64 = (0..p).filter(|&k| k != j).map(|k| self.s[[j, k]] * a[k]).sum();
                    let (pull, curve) = (self.b[j] - rest, self.s[[j, j]] + quadratic[j]);
                    a[j] =
                        if curve > 0.0 { pull.signum() * (pull.abs() - l1[j]).max(0.0) / curve } else { 0.0 };
                }
            }
            if let Some(exact) = self.exact(&l1, &quadratic, a) {
                *a = exact;
                return Some(round * SWEEPS);
            }
        }
        Some(ROUNDS * SWEEPS)
    }

    /// The solution with the zeros and signs of `a`, if it has them, and no slope at a zero is beyond its kink.
    fn exact(&self, l1: &[f64], quadratic: &[f64], a: &[f64]) -> Option<Vec<f64>> {
        let active: Vec<usize> = (0..a.len()).filter(|&j| a[j] != 0.0 || l1[j] == 0.0).collect();
        let entry = |(i, j): (usize, usize)| {
            self.s[[active[i], active[j]]] + if i == j { quadratic[active[i]] } else { 0.0 }
        };
        let system = Cholesky::new(&Array2::from_shape_fn((active.len(), active.len()), entry))?;
        let right: Vec<f64> = active
            .iter()
            .map(|&j| self.b[j] - if a[j] == 0.0 { 0.0 } else { l1[j] * a[j].signum() })
            .collect();
        let mut exact = vec![0.0; a.len()];
        active.iter().zip(system.solve(&right)).for_each(|(&j, v)| exact[j] = v);
        let same = |&j: &usize| l1[j] == 0.0 || exact[j] * a[j] > 0.0;
        let slope = |j: usize| (0..a.len()).map(|k| self.s[[j, k]] * exact[k]).sum::<f64>() - self.b[j];
        let held =
            |j: usize| exact[j] != 0.0 || l1[j] == 0.0 || slope(j).abs() <= l1[j] * (1.0 + SLACK) + SLACK;
        (active.iter().all(same) && (0..a.len()).all(held)).then_some(exact)
    }

    /// θ in the units of the data, its loss and the largest derivative.
    fn solution(&self, a: &[f64], sigma2: f64, iterations: usize) -> Solution {
        let d = self.design.centre.len();
        let mut theta: Vec<f64> = (0..d).map(|j| a[j] / self.scale(j)).collect();
        if self.design.intercept {
            let shift: f64 = theta.iter().zip(&self.design.centre).map(|(b, m)| b * m).sum();
            theta.push(a[d] + self.design.response - shift);
        }
        let sigma = sigma2.sqrt();
        if self.law.noise == Noise::Estimated {
            theta.push(sigma);
        }
        let mut slopes = vec![0.0; theta.len()];
        let penalty = self.weight * (self.model.penalise(&theta, &mut slopes) + self.model.kinks(&theta));
        let value = 0.5 * self.squares(a) / sigma2 + self.mass * self.law.constant(sigma) + penalty;
        let (_, gradient) = self.smooth(sigma2, a);
        let kink = self.model.penalty().kink();
        let of_entry = |(j, g): (usize, &f64)| {
            let (g, l1) = (g / (sigma2 * self.scale(j)) * self.scale(j).powi(2), kink * self.gamma[j]);
            if kink == 0.0 {
                g.abs()
            } else if a[j] == 0.0 {
                (g.abs() - l1).max(0.0)
            } else {
                (g + l1 * a[j].signum()).abs()
            }
        };
        let gradient = gradient.iter().enumerate().map(of_entry).fold(0.0, f64::max);
        let finite = theta.iter().all(|t| t.is_finite());
        Solution {
            theta,
            value,
            iterations,
            gradient,
            status: if finite { Status::Ok } else { Status::Failed },
        }
    }
}

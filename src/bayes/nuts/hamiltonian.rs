//! Hamiltonian dynamics with a diagonal metric: H(u, p) = −log π(u) + ½ pᵀ M⁻¹ p, and the leapfrog steps that nearly keep it.

use rand::distr::{Distribution, Open01};

use crate::bayes::LogDensity;
use crate::bayes::convergence::normal_quantile;
use crate::math::dot;
use crate::rng::Rng;

/// A point of phase space, and what is known there.
#[derive(Clone, Debug)]
pub struct State {
    pub u: Vec<f64>,
    pub momentum: Vec<f64>,
    /// M⁻¹ p.
    pub velocity: Vec<f64>,
    /// Of log π.
    pub gradient: Vec<f64>,
    log_density: f64,
    /// H; ∞ where it is not a number.
    pub energy: f64,
}

/// H with the density that it is about.
pub struct Hamiltonian<'a> {
    target: &'a dyn LogDensity,
    /// The diagonal of M⁻¹: at its best the variances of the target.
    pub variances: Vec<f64>,
}

impl<'a> Hamiltonian<'a> {
    /// With the unit metric.
    pub fn new(target: &'a dyn LogDensity) -> Self {
        Hamiltonian { target, variances: vec![1.0; target.dim()] }
    }

    /// At rest.
    pub fn at(&self, u: Vec<f64>) -> State {
        let mut gradient = vec![0.0; u.len()];
        let log_density = self.target.evaluate(&u, &mut gradient);
        self.state(u, vec![0.0; gradient.len()], gradient, log_density)
    }

    /// The same place with a momentum from N(0, M), by the inverse of Φ: generators of normal variates have logarithms that
    /// belong to the platform.
    pub fn kicked(&self, from: &State, rng: &mut Rng) -> State {
        let draw = |v: &f64| normal_quantile(Open01.sample(rng)) / v.sqrt();
        let momentum = self.variances.iter().map(draw).collect();
        self.state(from.u.clone(), momentum, from.gradient.clone(), from.log_density)
    }

    /// A leapfrog step of size ε, backwards in time if it is negative (Hoffman and Gelman 2014, Algorithm 1).
    pub fn leapfrog(&self, from: &State, epsilon: f64) -> State {
        let half = 0.5 * epsilon;
        let kick = |(p, g): (&f64, &f64)| p + half * g;
        let mut momentum: Vec<f64> = from.momentum.iter().zip(&from.gradient).map(kick).collect();
        let drift = |((u, p), v): ((&f64, &f64), &f64)| u + epsilon * (v * p);
        let u: Vec<f64> = from.u.iter().zip(&momentum).zip(&self.variances).map(drift).collect();
        let mut gradient = vec![0.0; u.len()];
        let log_density = self.target.evaluate(&u, &mut gradient);
        momentum.iter_mut().zip(&gradient).for_each(|(p, g)| *p += half * g);
        self.state(u, momentum, gradient, log_density)
    }

    fn state(&self, u: Vec<f64>, momentum: Vec<f64>, gradient: Vec<f64>, log_density: f64) -> State {
        let velocity: Vec<f64> = momentum.iter().zip(&self.variances).map(|(p, v)| p * v).collect();
        let energy = 0.5 * dot(&momentum, &velocity) - log_density;
        // Where the density is infinite the energy is −∞, which is no better than none.
        let energy = if energy.is_finite() { energy } else { f64::INFINITY };
        State { u, momentum, velocity, gradient, log_density, energy }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Seed};

    /// −Σ (cosh(uᵢ) + uᵢ uᵢ₊₁/4): neither quadratic nor a product.
    struct Hills;

    impl LogDensity for Hills {
        fn dim(&self) -> usize {
            5
        }

        fn evaluate(&self, u: &[f64], gradient: &mut [f64]) -> f64 {
            let beside = |i: usize| u.get(i + 1).unwrap_or(&0.0) + if i > 0 { u[i - 1] } else { 0.0 };
            (0..5).for_each(|i| gradient[i] = -u[i].sinh() - 0.25 * beside(i));
            -u.iter().map(|u| u.cosh()).sum::<f64>() - 0.25 * u.windows(2).map(|w| w[0] * w[1]).sum::<f64>()
        }
    }

    fn start() -> (Hamiltonian<'static>, State) {
        let mut hamiltonian = Hamiltonian::new(&Hills);
        hamiltonian.variances = vec![0.3, 1.0, 0.7, 2.0, 0.5];
        let rest = hamiltonian.at(vec![0.4, -0.3, 0.8, 0.1, -0.9]);
        let state = hamiltonian.kicked(&rest, &mut Seed(1).stream(Purpose::Auxiliary, 0, 0));
        (hamiltonian, state)
    }

    fn run(hamiltonian: &Hamiltonian, from: &State, epsilon: f64, steps: usize) -> State {
        (0..steps).fold(from.clone(), |at, _| hamiltonian.leapfrog(&at, epsilon))
    }

    /// Back to where it began but for rounding: by a step backwards, and by a step forwards with the momentum turned round.
    #[test]
    fn leapfrog_steps_are_reversible() {
        let (hamiltonian, start) = start();
        let mut there = run(&hamiltonian, &start, 0.1, 50);
        assert!(start.u.iter().zip(&there.u).any(|(a, b)| (a - b).abs() > 0.1));
        let back = run(&hamiltonian, &there, -0.1, 50);
        there.momentum.iter_mut().for_each(|p| *p = -*p);
        let turned = run(&hamiltonian, &there, 0.1, 50);
        for i in 0..5 {
            assert!((back.u[i] - start.u[i]).abs() < 1e-11 && (turned.u[i] - start.u[i]).abs() < 1e-11);
            assert!((back.momentum[i] - start.momentum[i]).abs() < 1e-11);
            assert!((turned.momentum[i] + start.momentum[i]).abs() < 1e-11);
        }
    }

    /// Volume is kept: the determinant of the derivative of a step is 1.
    #[test]
    fn leapfrog_steps_keep_volume() {
        let (hamiltonian, start) = start();
        let h = 1e-5;
        let column = |k: usize| {
            let moved = |by: f64| {
                let (mut u, mut p) = (start.u.clone(), start.momentum.clone());
                if k < 5 {
                    u[k] += by
                } else {
                    p[k - 5] += by
                }
                let at = State { momentum: p, ..hamiltonian.at(u) };
                let end = hamiltonian.leapfrog(&at, 0.6);
                [end.u, end.momentum].concat()
            };
            let (high, low) = (moved(h), moved(-h));
            high.iter().zip(&low).map(|(a, b)| (a - b) / (2.0 * h)).collect::<Vec<f64>>()
        };
        let mut matrix: Vec<Vec<f64>> = (0..10).map(column).collect();
        let mut determinant = 1.0;
        for i in 0..10 {
            let pivot = (i..10).max_by(|&a, &b| matrix[a][i].abs().total_cmp(&matrix[b][i].abs())).unwrap();
            if pivot != i {
                matrix.swap(i, pivot);
                determinant = -determinant;
            }
            determinant *= matrix[i][i];
            for r in i + 1..10 {
                let factor = matrix[r][i] / matrix[i][i];
                (i..10).for_each(|c| matrix[r][c] -= factor * matrix[i][c]);
            }
        }
        assert!((determinant - 1.0).abs() < 1e-8, "{determinant}");
    }

    /// Over the same time, half the step makes a quarter of the error.
    #[test]
    fn the_energy_error_is_of_second_order() {
        let (hamiltonian, start) = start();
        let error =
            |steps: usize| (run(&hamiltonian, &start, 1.3 / steps as f64, steps).energy - start.energy).abs();
        for steps in [20, 40, 80] {
            let ratio = error(steps) / error(2 * steps);
            assert!((ratio - 4.0).abs() < 0.1, "{steps} steps: {ratio}");
        }
    }

    #[test]
    fn momenta_have_the_inverse_of_the_metric_as_variances() {
        let (hamiltonian, start) = start();
        let mut rng = Seed(2).stream(Purpose::Auxiliary, 0, 0);
        let n = 40_000;
        let mut sums = [0.0; 5];
        for _ in 0..n {
            let state = hamiltonian.kicked(&start, &mut rng);
            assert_eq!(state.u, start.u);
            sums.iter_mut().zip(&state.momentum).for_each(|(s, p)| *s += p * p);
        }
        for (sum, v) in sums.iter().zip(&hamiltonian.variances) {
            let z = (sum / n as f64 * v - 1.0) / (2.0 / n as f64).sqrt();
            assert!(z.abs() < 5.0, "z = {z}");
        }
    }

    #[test]
    fn energies_that_are_no_numbers_are_infinite() {
        struct Broken(f64, f64);
        impl LogDensity for Broken {
            fn dim(&self) -> usize {
                1
            }
            fn evaluate(&self, u: &[f64], gradient: &mut [f64]) -> f64 {
                gradient[0] = if u[0] == 0.0 { 1.0 } else { self.1 };
                if u[0] == 0.0 { 0.0 } else { self.0 }
            }
        }
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        for (value, slope) in [(inf, 0.0), (-inf, 0.0), (nan, 0.0), (0.0, inf), (0.0, nan)] {
            let target = Broken(value, slope);
            let hamiltonian = Hamiltonian::new(&target);
            let end = hamiltonian.leapfrog(&hamiltonian.at(vec![0.0]), 0.5);
            assert_eq!(end.energy, inf, "{value} {slope}");
        }
    }
}

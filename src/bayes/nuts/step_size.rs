//! The step size at which the mean acceptance statistic is δ, approached by Nesterov's dual averaging: Hoffman and Gelman
//! (2014), eq. (6) and Algorithm 6, with x = log ε and their γ, t₀ and κ.

const GAMMA: f64 = 0.05;
const T0: f64 = 10.0;
const KAPPA: f64 = 0.75;

#[derive(Clone, Debug)]
pub struct DualAveraging {
    /// δ.
    target: f64,
    /// μ, what x is drawn towards.
    attractor: f64,
    count: f64,
    /// H̄: how far acceptance was below the target, on average.
    shortfall: f64,
    /// x̄.
    mean: f64,
}

impl DualAveraging {
    /// From a step size of the right order; longer ones are tried first, for they cost less.
    pub fn new(epsilon: f64, target: f64) -> DualAveraging {
        DualAveraging { target, attractor: libm::log(10.0 * epsilon), count: 0.0, shortfall: 0.0, mean: 0.0 }
    }

    /// The step size of the next trajectory, after one with this acceptance statistic.
    pub fn learn(&mut self, acceptance: f64) -> f64 {
        self.count += 1.0;
        let eta = 1.0 / (self.count + T0);
        self.shortfall += eta * (self.target - acceptance - self.shortfall);
        let x = self.attractor - self.count.sqrt() / GAMMA * self.shortfall;
        self.mean += libm::pow(self.count, -KAPPA) * (x - self.mean);
        libm::exp(x)
    }

    /// The step size to go on with.
    pub fn settled(&self) -> f64 {
        libm::exp(self.mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Acceptance 1/(1 + ε²), without noise: ½ at ε = 1, 0.8 at ε = ½.
    #[test]
    fn dual_averaging_finds_the_step_that_is_asked_for() {
        for (target, exact) in [(0.5, 1.0), (0.8, 0.5)] {
            for first in [1e-3, 1.0, 100.0] {
                let mut averaging = DualAveraging::new(first, target);
                let mut epsilon: f64 = first;
                for _ in 0..2000 {
                    epsilon = averaging.learn(1.0 / (1.0 + epsilon * epsilon));
                }
                assert!((epsilon / exact - 1.0).abs() < 0.02, "{epsilon} for {exact}");
                let settled = averaging.settled();
                assert!((settled / exact - 1.0).abs() < 0.05, "{settled} for {exact}");
            }
        }
    }
}

//! The metric of a chain, learnt draw by draw from where it has been: M⁻¹ with σᵢ² = √(Var uᵢ / Var ∂ᵢ log π), the scales that bring
//! the target closest to a standard normal in Fisher divergence (Seyboldt, Carlson and Carpenter 2026, the diagonal case). Of a normal target
//! with independent coordinates they are its variances as soon as there are two draws, where variances of draws take hundreds.
//!
//! Where a chain has been early on is not the target. So there are two sets of draws: the metric is made of one, and the
//! other, begun later, takes its place when its window is full: after 10 draws at first, then after 80, 120, 180 and so on.

use super::hamiltonian::State;

/// Per cent of a warm-up with short windows, and per cent at its end that leave the metric alone, for the step size to settle.
const SHARES: [usize; 2] = [30, 15];
/// Draws of a short window, and of the first longer one.
const WINDOWS: [usize; 2] = [10, 80];
/// Draws that make a metric.
const FEWEST: usize = 3;
/// Beyond these a number is no scale but an accident.
const SCALES: [f64; 2] = [1e-20, 1e20];

/// A metric from the gradient at one place, as if the target were normal with its middle at a distance of 1: ∂ = 1/σ².
pub fn guess(at: &State) -> Vec<f64> {
    at.gradient.iter().map(|g| scale(1.0 / g.abs()).unwrap_or(1.0)).collect()
}

fn scale(value: f64) -> Option<f64> {
    let [low, high] = SCALES;
    (value.is_finite() && value > 0.0).then(|| value.clamp(low, high))
}

/// Learns a metric in the course of a warm-up.
pub struct Metric {
    current: Spread,
    /// Of the last draws alone.
    recent: Spread,
    /// Draws seen.
    seen: usize,
    /// Draws with short windows.
    early: usize,
    /// Draws that count.
    last: usize,
    window: usize,
}

impl Metric {
    pub fn new(warmup: usize) -> Metric {
        let [early, last] = SHARES.map(|share| share * warmup / 100);
        let (current, recent) = (Spread::default(), Spread::default());
        Metric { current, recent, seen: 0, early, last: warmup - last, window: WINDOWS[1] }
    }

    /// After another draw; whether the variances have changed.
    pub fn learn(&mut self, state: &State, variances: &mut [f64]) -> bool {
        let draw = self.seen;
        self.seen += 1;
        if draw >= self.last {
            return false;
        }
        self.current.add(state);
        self.recent.add(state);
        let is_early = draw < self.early;
        let (window, next) =
            if is_early { (WINDOWS[0], WINDOWS[0]) } else { (self.window, self.window * 3 / 2) };
        // A set that could not fill the window after this one would end with too few draws.
        if self.recent.count >= window && draw + next <= self.last {
            self.current = std::mem::take(&mut self.recent);
            self.window = if is_early { self.window } else { next };
        }
        let enough = self.current.count >= FEWEST;
        if enough {
            self.current.scales(variances);
        }
        enough
    }
}

/// Spread of draws and of their gradients.
#[derive(Default)]
struct Spread {
    count: usize,
    draws: Moments,
    gradients: Moments,
}

impl Spread {
    fn add(&mut self, state: &State) {
        self.count += 1;
        self.draws.add(self.count, &state.u);
        self.gradients.add(self.count, &state.gradient);
    }

    /// σ² of every coordinate; what it was where one of the two has no spread.
    fn scales(&self, variances: &mut [f64]) {
        for ((v, u), g) in variances.iter_mut().zip(&self.draws.squares).zip(&self.gradients.squares) {
            *v = scale((u / g).sqrt()).unwrap_or(*v);
        }
    }
}

/// Means, and sums of squared differences from them (Welford 1962).
#[derive(Default)]
struct Moments {
    mean: Vec<f64>,
    squares: Vec<f64>,
}

impl Moments {
    /// The value number `count`.
    fn add(&mut self, count: usize, values: &[f64]) {
        self.mean.resize(values.len(), 0.0);
        self.squares.resize(values.len(), 0.0);
        for ((value, mean), square) in values.iter().zip(&mut self.mean).zip(&mut self.squares) {
            let before = value - *mean;
            *mean += before / count as f64;
            *square += before * (value - *mean);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bayes::LogDensity;
    use crate::bayes::nuts::hamiltonian::Hamiltonian;

    /// −½ Σ (u/s)² for scales 1 and 100.
    struct Ellipse;

    impl LogDensity for Ellipse {
        fn dim(&self) -> usize {
            2
        }

        fn evaluate(&self, u: &[f64], gradient: &mut [f64]) -> f64 {
            gradient.copy_from_slice(&[-u[0], -u[1] / 1e4]);
            -0.5 * (u[0] * u[0] + u[1] * u[1] / 1e4)
        }
    }

    fn at(u: [f64; 2]) -> State {
        Hamiltonian::new(&Ellipse).at(u.to_vec())
    }

    #[test]
    fn a_guess_is_the_variance_at_a_distance_of_one() {
        let found = guess(&at([-1.0, 1.0]));
        assert!((found[0] - 1.0).abs() < 1e-12 && (found[1] / 1e4 - 1.0).abs() < 1e-12, "{found:?}");
        assert_eq!(guess(&at([0.0, 0.0])), [1.0, 1.0]);
    }

    /// Exactly, from any three places: gradients say as much as places do.
    #[test]
    fn variances_of_a_normal_target_need_three_draws() {
        let mut metric = Metric::new(100);
        let mut variances = vec![7.0, 7.0];
        assert!(!metric.learn(&at([0.3, 5.0]), &mut variances));
        assert!(!metric.learn(&at([0.5, -90.0]), &mut variances));
        assert_eq!(variances, [7.0, 7.0]);
        assert!(metric.learn(&at([9.0, 3.0]), &mut variances));
        assert!((variances[0] - 1.0).abs() < 1e-12 && (variances[1] / 1e4 - 1.0).abs() < 1e-12);
    }

    #[test]
    fn coordinates_without_spread_keep_their_scale() {
        let (mut metric, mut variances) = (Metric::new(100), vec![7.0, 7.0]);
        for i in 0..5 {
            metric.learn(&at([0.5, i as f64]), &mut variances);
        }
        assert_eq!(variances[0], 7.0);
        assert!((variances[1] / 1e4 - 1.0).abs() < 1e-12);
    }

    /// The draws of which the metric is made at the end, and those that come too late for it.
    #[test]
    fn early_draws_are_forgotten_and_late_ones_leave_the_metric_alone() {
        for (warmup, kept, last) in
            [(1000, 470, 850), (500, 275, 425), (100, 65, 85), (20, 17, 17), (4, 4, 4)]
        {
            let (mut metric, mut variances) = (Metric::new(warmup), vec![1.0; 2]);
            let changed = (0..warmup).filter(|&i| metric.learn(&at([i as f64, 1.0]), &mut variances));
            let changed: Vec<usize> = changed.collect();
            assert_eq!((metric.current.count, changed.last()), (kept, Some(&(last - 1))), "{warmup}");
            // Whole numbers that follow one another have variance kept (kept + 1)/12, here a sum of squares.
            let n = kept as f64;
            assert!((metric.current.draws.squares[0] / (n * (n * n - 1.0) / 12.0) - 1.0).abs() < 1e-9);
        }
    }
}

//! Predictive performance on test data (supplement E.3.1), streaming: no array of draws by test rows is kept.

use rayon::ThreadPool;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::bootstrap::Draw;
use crate::data::Dataset;
use crate::math::{log_add_exp, mean};
use crate::model::Model;
use crate::optim::Status;

/// A number and its Monte Carlo standard error.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    #[serde(deserialize_with = "nan_for_null")]
    pub value: f64,
    #[serde(deserialize_with = "nan_for_null")]
    pub mcse: f64,
}

/// JSON has no NaN and writes it as null; this reads it back.
pub fn nan_for_null<'de, D: serde::Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(from)?.unwrap_or(f64::NAN))
}

/// log Σ_b f(ỹᵢ | θ_b) of every test row, draws dealt out over groups in turn. The groups are independent parts of
/// the posterior sample, so leaving each out in turn gives the Monte Carlo error.
pub struct Predictive {
    log_sums: Vec<Vec<f64>>,
    counts: Vec<usize>,
}

impl Predictive {
    pub fn new(rows: usize, groups: usize) -> Self {
        Predictive { log_sums: vec![vec![f64::NEG_INFINITY; rows]; groups], counts: vec![0; groups] }
    }

    /// Adds a draw by its log densities.
    pub fn add(&mut self, draw: u64, log_density: &[f64]) {
        let g = (draw % self.counts.len() as u64) as usize;
        self.counts[g] += 1;
        self.log_sums[g].iter_mut().zip(log_density).for_each(|(sum, l)| *sum = log_add_exp(*sum, *l));
    }

    /// log p(ỹᵢ) of every row, eq. (E.10), without group `left_out`.
    fn log_predictive(&self, left_out: Option<usize>) -> Vec<f64> {
        let kept: Vec<usize> = (0..self.counts.len()).filter(|&g| Some(g) != left_out).collect();
        let draws: usize = kept.iter().map(|&g| self.counts[g]).sum();
        let log_draws = libm::log(draws as f64);
        let total =
            |i: usize| kept.iter().fold(f64::NEG_INFINITY, |sum, &g| log_add_exp(sum, self.log_sums[g][i]));
        (0..self.log_sums[0].len()).map(|i| total(i) - log_draws).collect()
    }

    /// Numbers made of the log predictive densities, each with its jackknife error over the groups.
    fn estimates<const M: usize>(&self, metrics: impl Fn(&[f64]) -> [f64; M]) -> [Estimate; M] {
        let groups: Vec<usize> = (0..self.counts.len()).filter(|&g| self.counts[g] > 0).collect();
        let without: Vec<[f64; M]> = groups.iter().map(|&g| metrics(&self.log_predictive(Some(g)))).collect();
        let values = metrics(&self.log_predictive(None));
        std::array::from_fn(|m| {
            let leave_one_out: Vec<f64> = without.iter().map(|w| w[m]).collect();
            Estimate { value: values[m], mcse: jackknife(&leave_one_out) }
        })
    }

    /// Mean LPPD, eq. (E.11).
    pub fn lppd(&self) -> Estimate {
        let [lppd] = self.estimates(|log_p| [mean(log_p)]);
        lppd
    }

    /// Mean LPPD, mean squared error of the predictive probability of a response 1, eq. (E.12), and per cent of responses
    /// on the right side of ½, eq. (E.13). All follow from p, the predictive probability of the response that came.
    pub fn classification(&self, y: &[f64]) -> [Estimate; 3] {
        self.estimates(|log_p| {
            let n = y.len() as f64;
            let p = || log_p.iter().map(|l| libm::exp(*l));
            let squares: f64 = p().map(|p| (1.0 - p) * (1.0 - p)).sum();
            let right = p().zip(y).filter(|(p, y)| if **y == 1.0 { *p > 0.5 } else { *p >= 0.5 }).count();
            [mean(log_p), squares / n, 100.0 * right as f64 / n]
        })
    }
}

/// Standard error from the values without each of several equal parts; NaN for a single part.
fn jackknife(leave_one_out: &[f64]) -> f64 {
    let k = leave_one_out.len() as f64;
    let centre = mean(leave_one_out);
    let variance = (k - 1.0) / k * leave_one_out.iter().map(|v| (v - centre).powi(2)).sum::<f64>();
    if k > 1.0 { variance.sqrt() } else { f64::NAN }
}

/// Per cent of coefficients whose posterior mean is below `epsilon` in absolute value (supplement E.3.2).
pub fn sparsity(draws: &[Draw], coefficients: std::ops::Range<usize>, epsilon: f64) -> Estimate {
    let good: Vec<&Draw> = draws.iter().filter(|d| d.minimum.status != Status::Failed).collect();
    let groups = GROUPS.min(good.len()).max(1);
    let mut sums = vec![vec![0.0; coefficients.len()]; groups];
    for (i, draw) in good.iter().enumerate() {
        sums[i % groups].iter_mut().zip(&draw.minimum.theta[coefficients.clone()]).for_each(|(s, b)| *s += b);
    }
    let total: Vec<f64> = (0..coefficients.len()).map(|j| sums.iter().map(|s| s[j]).sum()).collect();
    let share = |sum: &dyn Fn(usize) -> f64, draws: usize| {
        let small = (0..coefficients.len()).filter(|&j| (sum(j) / draws as f64).abs() < epsilon).count();
        100.0 * small as f64 / coefficients.len() as f64
    };
    let size = |g: usize| (good.len() + groups - 1 - g) / groups;
    let without: Vec<f64> =
        (0..groups).map(|g| share(&|j| total[j] - sums[g][j], good.len() - size(g))).collect();
    Estimate { value: share(&|j| total[j], good.len()), mcse: jackknife(&without) }
}

/// Groups behind a Monte Carlo error: the error of the error is about 1/√(2 · 50).
const GROUPS: usize = 50;
/// Groups for the table over r, which needs one [`Predictive`] per line.
const GROUPS_BY_RESTARTS: usize = 20;
/// Draws whose densities are held at one time.
const CHUNK: usize = 256;

/// LPPD as it would have been with fewer restarts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ByRestarts {
    pub restarts: usize,
    pub lppd: Estimate,
}

/// The predictive density of the draws on test data; and LPPD of the same draws cut off after r restarts, if they made
/// more than one.
pub fn predictive(
    model: &dyn Model,
    draws: &[Draw],
    test: &Dataset,
    pool: &ThreadPool,
) -> (Predictive, Vec<ByRestarts>) {
    let good: Vec<&Draw> = draws.iter().filter(|d| d.minimum.status != Status::Failed).collect();
    let most = good.iter().map(|d| d.values.len()).max().unwrap_or(1);
    let grid = if most > 1 { restart_grid(most) } else { Vec::new() };
    let rows = test.n();
    let mut all = Predictive::new(rows, GROUPS);
    let mut by: Vec<Predictive> = grid.iter().map(|_| Predictive::new(rows, GROUPS_BY_RESTARTS)).collect();
    let density = |theta: &[f64]| {
        let mut out = vec![0.0; rows];
        model.log_density(theta, test, &mut out);
        out
    };
    pool.install(|| {
        for chunk in good.chunks(CHUNK) {
            // Each point a draw would have stopped at with fewer restarts; the last is the draw itself.
            let densities: Vec<Vec<Vec<f64>>> =
                chunk.par_iter().map(|d| d.records().map(|(_, theta)| density(theta)).collect()).collect();
            let final_pass = || {
                for (draw, densities) in chunk.iter().zip(&densities) {
                    all.add(draw.index, densities.last().expect("a draw ends somewhere"));
                }
            };
            let grid_pass = || {
                by.par_iter_mut().zip(&grid).for_each(|(predictive, &r)| {
                    for (draw, densities) in chunk.iter().zip(&densities) {
                        let made = draw.records().take_while(|(at, _)| *at <= r).count();
                        predictive.add(draw.index, &densities[made.max(1) - 1]);
                    }
                })
            };
            rayon::join(final_pass, grid_pass);
        }
    });
    let by = grid.iter().zip(&by).map(|(&restarts, p)| ByRestarts { restarts, lppd: p.lppd() }).collect();
    (all, by)
}

/// 1, 2, 3, 5, 10, 20, 30, 50, 100, … and `most`.
fn restart_grid(most: usize) -> Vec<usize> {
    let decades = (0..).map(|e| 10usize.saturating_pow(e)).take_while(|&ten| ten <= most);
    let mut grid: Vec<usize> =
        decades.flat_map(|ten| [1, 2, 3, 5].map(|m| m * ten)).filter(|&r| r < most).collect();
    grid.push(most);
    grid
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optim::Minimum;

    #[test]
    fn lppd_is_the_mean_log_of_the_mean_density() {
        let densities = [[0.1, 0.4], [0.3, 0.2], [0.2, 0.6]];
        let mut predictive = Predictive::new(2, 3);
        for (b, d) in densities.iter().enumerate() {
            predictive.add(b as u64, &d.map(f64::ln));
        }
        let exact = 0.5 * (0.2f64.ln() + 0.4f64.ln());
        assert!((predictive.lppd().value - exact).abs() < 1e-14);
    }

    #[test]
    fn squared_error_and_accuracy_follow_from_the_predictive_probability() {
        // Predictive probabilities of a response 1: 0.9, 0.4, 0.5, 0.2; responses 1, 1, 0, 0.
        let y = [1.0, 1.0, 0.0, 0.0];
        let p = [0.9f64, 0.4, 0.5, 0.2];
        let mut predictive = Predictive::new(4, 2);
        for b in 0..2 {
            let log_p: Vec<f64> =
                p.iter().zip(y).map(|(p, y)| if y == 1.0 { p.ln() } else { (1.0 - p).ln() }).collect();
            predictive.add(b, &log_p);
        }
        let [lppd, mse, accuracy] = predictive.classification(&y);
        assert!((lppd.value - (0.9f64 * 0.4 * 0.5 * 0.8).ln() / 4.0).abs() < 1e-14);
        assert!((mse.value - (0.01 + 0.36 + 0.25 + 0.04) / 4.0).abs() < 1e-14);
        assert_eq!(accuracy.value, 75.0, "0.5 is not above one half: it predicts a response 0");
    }

    #[test]
    fn sparsity_counts_posterior_means_not_draws() {
        let draw = |index: u64, theta: Vec<f64>| Draw {
            index,
            minimum: Minimum::closed_form(theta, 1.0),
            restart: 1,
            values: vec![1.0],
            earlier: Vec::new(),
        };
        let draws = [draw(0, vec![1.0, 0.3, 0.05, 9.0]), draw(1, vec![-1.0, 0.1, -0.01, 9.0])];
        let share = sparsity(&draws, 0..3, 0.1);
        assert!((share.value - 200.0 / 3.0).abs() < 1e-12, "means 0, 0.2 and 0.02");
    }

    /// log of a mean of exponentials: the delta method gives the exact error, the jackknife must agree.
    #[test]
    fn the_monte_carlo_error_is_right() {
        use crate::rng::{Purpose, Seed, log_uniform};
        let errors: Vec<(f64, f64)> = (0..200)
            .map(|s| {
                let mut rng = Seed(s).stream(Purpose::Auxiliary, 0, 0);
                let mut predictive = Predictive::new(1, 50);
                for b in 0..1000 {
                    predictive.add(b, &[libm::log(-log_uniform(&mut rng))]);
                }
                let estimate = predictive.lppd();
                (estimate.value, estimate.mcse)
            })
            .collect();
        let values: Vec<f64> = errors.iter().map(|e| e.0).collect();
        let reported = mean(&errors.iter().map(|e| e.1).collect::<Vec<_>>());
        // Var(log mean of Exp(1)) ≈ 1/B; the sd over 200 runs is known to 5 %, the mean of the mcse to 1 %.
        assert!((crate::math::sd(&values) * 1000f64.sqrt() - 1.0).abs() < 0.25);
        assert!((reported * 1000f64.sqrt() - 1.0).abs() < 0.05, "{reported}");
    }

    #[test]
    fn the_grid_ends_at_the_most_restarts() {
        assert_eq!(restart_grid(10), [1, 2, 3, 5, 10]);
        assert_eq!(restart_grid(2), [1, 2]);
        assert_eq!(restart_grid(40), [1, 2, 3, 5, 10, 20, 30, 40]);
    }
}

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

    /// Mean LPPD, eq. (E.11), without group `left_out`.
    fn mean_lppd(&self, left_out: Option<usize>) -> f64 {
        let kept: Vec<usize> = (0..self.counts.len()).filter(|&g| Some(g) != left_out).collect();
        let draws: usize = kept.iter().map(|&g| self.counts[g]).sum();
        let log_draws = libm::log(draws as f64);
        let row = |i: usize| {
            let total = kept.iter().fold(f64::NEG_INFINITY, |sum, &g| log_add_exp(sum, self.log_sums[g][i]));
            total - log_draws
        };
        let rows = self.log_sums[0].len();
        (0..rows).map(row).sum::<f64>() / rows as f64
    }

    /// Mean LPPD with its jackknife error over the groups.
    pub fn lppd(&self) -> Estimate {
        let groups: Vec<usize> = (0..self.counts.len()).filter(|&g| self.counts[g] > 0).collect();
        let leave_one_out: Vec<f64> = groups.iter().map(|&g| self.mean_lppd(Some(g))).collect();
        let centre = mean(&leave_one_out);
        let k = groups.len() as f64;
        let variance = (k - 1.0) / k * leave_one_out.iter().map(|v| (v - centre).powi(2)).sum::<f64>();
        Estimate { value: self.mean_lppd(None), mcse: if k > 1.0 { variance.sqrt() } else { f64::NAN } }
    }
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

/// Mean LPPD of the draws; and of the same draws cut off after r restarts, if they made more than one.
pub fn lppd(
    model: &dyn Model,
    draws: &[Draw],
    test: &Dataset,
    pool: &ThreadPool,
) -> (Estimate, Vec<ByRestarts>) {
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
    test.panel();
    pool.install(|| {
        for chunk in good.chunks(CHUNK) {
            // Each record once; the last record is the draw itself.
            let densities: Vec<Vec<Vec<f64>>> = chunk
                .par_iter()
                .map(|d| match grid.is_empty() {
                    true => vec![density(&d.minimum.theta)],
                    false => d.records.iter().map(|(_, theta)| density(theta)).collect(),
                })
                .collect();
            let last = |d: &[Vec<f64>]| -> Vec<f64> { d.last().expect("a draw has a record").clone() };
            let final_pass = || {
                for (draw, densities) in chunk.iter().zip(&densities) {
                    all.add(draw.index, &last(densities));
                }
            };
            let grid_pass = || {
                by.par_iter_mut().zip(&grid).for_each(|(predictive, &r)| {
                    for (draw, densities) in chunk.iter().zip(&densities) {
                        let record = draw.records.iter().rposition(|(at, _)| *at <= r).unwrap_or(0);
                        predictive.add(draw.index, &densities[record]);
                    }
                })
            };
            rayon::join(final_pass, grid_pass);
        }
    });
    let by = grid.iter().zip(&by).map(|(&restarts, p)| ByRestarts { restarts, lppd: p.lppd() }).collect();
    (all.lppd(), by)
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

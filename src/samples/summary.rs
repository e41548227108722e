//! Marginal posteriors in numbers.

use serde::{Deserialize, Serialize};

use super::quoted;
use crate::math::{mean, quantile_sorted, sd};

/// Quantiles of a summary.
pub const QUANTILES: [f64; 5] = [0.025, 0.1, 0.5, 0.9, 0.975];

/// Marginal posterior of one parameter, every number with its Monte Carlo standard error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    pub parameter: String,
    pub mean: f64,
    pub sd: f64,
    pub quantiles: [f64; 5],
    pub mcse_mean: f64,
    pub mcse_sd: f64,
    pub mcse_quantiles: [f64; 5],
}

impl Summary {
    /// Values that are not numbers (failed draws) are left out.
    pub fn of(parameter: &str, mut values: Vec<f64>) -> Summary {
        values.retain(|v| v.is_finite());
        values.sort_unstable_by(f64::total_cmp);
        let n = values.len() as f64;
        let (mean, sd) = (mean(&values), sd(&values));
        let fourth = values.iter().map(|v| (v - mean).powi(4)).sum::<f64>() / n;
        let variance = sd * sd;
        Summary {
            parameter: parameter.to_owned(),
            mean,
            sd,
            quantiles: QUANTILES.map(|q| quantile_sorted(&values, q)),
            mcse_mean: sd / n.sqrt(),
            // Delta method: Var(s²) ≈ (m₄ − σ⁴)/B, and sd = √s².
            mcse_sd: if sd > 0.0 {
                ((fourth - variance * variance).max(0.0) / n).sqrt() / (2.0 * sd)
            } else {
                0.0
            },
            mcse_quantiles: QUANTILES.map(|q| quantile_error(&values, q)),
        }
    }

    /// Header of `summary.csv`.
    pub fn header() -> String {
        let labels = ["q2.5", "q10", "q50", "q90", "q97.5"];
        let errors = labels.map(|l| format!("mcse_{l}"));
        format!("parameter,mean,sd,{},mcse_mean,mcse_sd,{}", labels.join(","), errors.join(","))
    }

    /// Line of `summary.csv`.
    pub fn line(&self) -> String {
        let numbers = [self.mean, self.sd].into_iter().chain(self.quantiles);
        let errors = [self.mcse_mean, self.mcse_sd].into_iter().chain(self.mcse_quantiles);
        let cells: Vec<String> = numbers.chain(errors).map(|v| format!("{v:?}")).collect();
        format!("{},{}", quoted(&self.parameter), cells.join(","))
    }
}

/// Half the distance between the order statistics one binomial standard deviation to each side of the quantile.
fn quantile_error(sorted: &[f64], q: f64) -> f64 {
    let n = sorted.len() as f64;
    let spread = (q * (1.0 - q) / n).sqrt();
    let at = |p: f64| quantile_sorted(sorted, p.clamp(0.0, 1.0));
    0.5 * (at(q + spread) - at(q - spread))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_of_known_numbers() {
        let s = Summary::of("x", (0..=1000).rev().map(|i| i as f64).chain([f64::NAN]).collect());
        assert_eq!((s.mean, s.quantiles[2], s.quantiles[0]), (500.0, 500.0, 25.0));
        assert!((s.sd - 289.108_111).abs() < 1e-5);
        assert!((s.mcse_mean - s.sd / 1001f64.sqrt()).abs() < 1e-12);
        // Uniform on 0..1000: the median's standard error is 1000 · ½/√n.
        assert!((s.mcse_quantiles[2] / (500.0 / 1001f64.sqrt()) - 1.0).abs() < 0.01);
    }
}

//! A number of the posterior: where it lies.

/// Mean, standard deviation and the ends of an interval with equal tails.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    pub mean: f64,
    pub sd: f64,
    pub lower: f64,
    pub upper: f64,
}

impl Interval {
    /// Of the values of all draws. `weights` sum to 1; they are `None` where all draws count alike.
    pub fn of(mut values: Vec<f64>, weights: &Option<Vec<f64>>, level: f64) -> Interval {
        let tails = [0.5 * (1.0 - level), 0.5 * (1.0 + level)];
        let n = values.len() as f64;
        let (mean, variance, [lower, upper]) = match weights {
            None => {
                let mean = values.iter().sum::<f64>() / n;
                let variance = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (n - 1.0);
                (mean, variance, tails.map(|q| quantile(&mut values, q)))
            }
            Some(weights) => {
                let mean = values.iter().zip(weights).map(|(v, w)| w * v).sum::<f64>();
                let variance = values.iter().zip(weights).map(|(v, w)| w * (v - mean) * (v - mean)).sum();
                let mut pairs: Vec<(f64, f64)> = values.into_iter().zip(weights.iter().copied()).collect();
                pairs.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
                (mean, variance, tails.map(|q| weighted_quantile(&pairs, q)))
            }
        };
        Interval { mean, sd: variance.sqrt(), lower, upper }
    }

    /// Of those values that are finite numbers; NaN where there are none.
    pub fn of_finite(values: Vec<f64>, weights: &Option<Vec<f64>>, level: f64) -> Interval {
        let mut left: Option<Vec<f64>> = weights.as_ref().map(|weights| {
            weights.iter().zip(&values).filter(|(_, v)| v.is_finite()).map(|(w, _)| *w).collect()
        });
        if let Some(weights) = &mut left {
            let total: f64 = weights.iter().sum();
            weights.iter_mut().for_each(|w| *w /= total);
        }
        let values: Vec<f64> = values.into_iter().filter(|v| v.is_finite()).collect();
        match values.is_empty() {
            true => Interval { mean: f64::NAN, sd: f64::NAN, lower: f64::NAN, upper: f64::NAN },
            false => Interval::of(values, &left, level),
        }
    }
}

/// Type 7, as everywhere, by looking for its two order statistics instead of sorting.
fn quantile(values: &mut [f64], q: f64) -> f64 {
    let Some(last) = values.len().checked_sub(1) else { return f64::NAN };
    let h = q * last as f64;
    let low = (h.floor() as usize).min(last);
    let (_, &mut at, above) = values.select_nth_unstable_by(low, f64::total_cmp);
    let next = above.iter().copied().min_by(f64::total_cmp).unwrap_or(at);
    at + (h - low as f64) * (next - at)
}

/// The first value at which so much of the mass is reached.
fn weighted_quantile(sorted: &[(f64, f64)], q: f64) -> f64 {
    let mut mass = 0.0;
    let reached = sorted.iter().find(|(_, w)| {
        mass += w;
        mass >= q
    });
    reached.or(sorted.last()).map_or(f64::NAN, |(v, _)| *v)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::{mean, quantile_sorted, sd};

    #[test]
    fn an_interval_is_that_of_the_sorted_values() {
        let mut rng = crate::rng::Seed(3).stream(crate::rng::Purpose::Auxiliary, 0, 0);
        for n in [1, 2, 3, 10, 401] {
            let values: Vec<f64> = (0..n).map(|_| crate::rng::log_uniform(&mut rng)).collect();
            let mut sorted = values.clone();
            sorted.sort_unstable_by(f64::total_cmp);
            let found = Interval::of(values.clone(), &None, 0.8);
            assert_eq!(found.lower, quantile_sorted(&sorted, 0.5 * (1.0 - 0.8)), "{n}");
            assert_eq!(found.upper, quantile_sorted(&sorted, 0.5 * (1.0 + 0.8)), "{n}");
            assert_eq!(found.mean, mean(&values));
            assert!(n == 1 || found.sd == sd(&values));
        }
    }

    #[test]
    fn what_is_no_number_is_left_out() {
        let values = vec![f64::NAN, 1.0, f64::INFINITY, 2.0];
        let weights = Some(vec![0.3, 0.15, 0.1, 0.45]);
        assert_eq!(Interval::of_finite(values.clone(), &None, 0.5), Interval::of(vec![1.0, 2.0], &None, 0.5));
        assert!((Interval::of_finite(values, &weights, 0.5).mean - 1.75).abs() < 1e-15);
        assert!(Interval::of_finite(vec![f64::NAN], &None, 0.5).sd.is_nan());
    }

    #[test]
    fn weights_stand_for_repeated_draws() {
        let plain = Interval::of(vec![1.0, 2.0, 2.0, 5.0], &None, 0.5);
        let weighted = Interval::of(vec![5.0, 1.0, 2.0], &Some(vec![0.25, 0.25, 0.5]), 0.5);
        assert_eq!(weighted.mean, plain.mean);
        assert_eq!((weighted.lower, weighted.upper), (1.0, 2.0));
    }
}

//! Small numeric functions that several modules share.

/// log Σ exp(xᵢ), −∞ for nothing.
pub fn log_sum_exp(x: &[f64]) -> f64 {
    let max = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if max == f64::NEG_INFINITY {
        return max;
    }
    max + libm::log(x.iter().map(|&v| libm::exp(v - max)).sum::<f64>())
}

/// log(1 + eˣ).
pub fn softplus(x: f64) -> f64 {
    x.max(0.0) + libm::log1p(libm::exp(-x.abs()))
}

/// log(eᵃ + eᵇ).
pub fn log_add_exp(a: f64, b: f64) -> f64 {
    let (high, low) = if a >= b { (a, b) } else { (b, a) };
    if low == f64::NEG_INFINITY { high } else { high + libm::log1p(libm::exp(low - high)) }
}

/// Eight partial sums, so that the compiler may use vectors; always the same order.
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (a8, a_rest) = a.as_chunks::<8>();
    let (b8, b_rest) = b.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for (a, b) in a8.iter().zip(b8) {
        for l in 0..8 {
            sums[l] += a[l] * b[l];
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7])) + rest
}

/// Largest absolute value; 0 for nothing.
pub fn largest<'a>(x: impl IntoIterator<Item = &'a f64>) -> f64 {
    x.into_iter().fold(0.0, |m: f64, v| if v.abs() > m || v.is_nan() { v.abs() } else { m })
}

/// Arithmetic mean; NaN for nothing.
pub fn mean(x: &[f64]) -> f64 {
    x.iter().sum::<f64>() / x.len() as f64
}

/// Sample standard deviation (divisor n − 1); NaN below two values.
pub fn sd(x: &[f64]) -> f64 {
    if x.len() < 2 {
        return f64::NAN;
    }
    let m = mean(x);
    (x.iter().map(|v| (v - m) * (v - m)).sum::<f64>() / (x.len() as f64 - 1.0)).sqrt()
}

/// Quantile of sorted values with linear interpolation (type 7 of Hyndman and Fan, the default of R and numpy).
pub fn quantile_sorted(sorted: &[f64], q: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let h = q * last as f64;
    let low = (h.floor() as usize).min(last);
    let high = (low + 1).min(last);
    sorted[low] + (h - low as f64) * (sorted[high] - sorted[low])
}

/// log N(x; m, s²).
pub fn log_normal_density(x: f64, m: f64, s: f64) -> f64 {
    let z = (x - m) / s;
    -0.5 * z * z - libm::log(s) - 0.5 * libm::log(std::f64::consts::TAU)
}

/// ψ(x) = d log Γ(x)/dx for x > 0: upwards by ψ(x) = ψ(x + 1) − 1/x to where its asymptotic series has all digits.
pub fn digamma(mut x: f64) -> f64 {
    let mut sum = 0.0;
    while x < 10.0 {
        sum -= 1.0 / x;
        x += 1.0;
    }
    let s = 1.0 / (x * x);
    let series = s
        * (1.0 / 12.0
            - s * (1.0 / 120.0
                - s * (1.0 / 252.0 - s * (1.0 / 240.0 - s * (1.0 / 132.0 - s * 691.0 / 32760.0)))));
    sum + libm::log(x) - 0.5 / x - series
}

/// 1/(1 + e⁻ˣ).
pub fn expit(x: f64) -> f64 {
    let e = libm::exp(-x.abs());
    if x >= 0.0 { 1.0 / (1.0 + e) } else { e / (1.0 + e) }
}

/// log of the normalising constant of a symmetric Dirichlet: log Γ(K a) − K log Γ(a).
pub fn log_dirichlet_constant(a: f64, k: usize) -> f64 {
    libm::lgamma(a * k as f64) - k as f64 * libm::lgamma(a)
}

/// Φ(z), the standard normal distribution.
pub fn normal_cdf(z: f64) -> f64 {
    0.5 * libm::erfc(-z * std::f64::consts::FRAC_1_SQRT_2)
}

/// Φ⁻¹(p): a rational first guess, then Halley's steps.
pub fn normal_quantile(p: f64) -> f64 {
    if !(p > 0.0 && p < 1.0) {
        return if p == 0.0 {
            f64::NEG_INFINITY
        } else if p == 1.0 {
            f64::INFINITY
        } else {
            f64::NAN
        };
    }
    if p > 0.5 {
        return -normal_quantile(1.0 - p);
    }
    let tail = libm::sqrt(-2.0 * libm::log(p));
    // Abramowitz and Stegun 26.2.23, right to 5e-4.
    let mut z = -(tail
        - (2.515517 + tail * (0.802853 + tail * 0.010328))
            / (1.0 + tail * (1.432788 + tail * (0.189269 + tail * 0.001308))));
    for _ in 0..3 {
        let density = libm::exp(-0.5 * z * z) / libm::sqrt(2.0 * std::f64::consts::PI);
        let off = (normal_cdf(z) - p) / density;
        z -= off / (1.0 + 0.5 * z * off);
    }
    z
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_sum_exp_survives_extremes() {
        assert_eq!(log_sum_exp(&[]), f64::NEG_INFINITY);
        assert!((log_sum_exp(&[-1e300, 0.0]) - 0.0).abs() < 1e-15);
        assert!((log_sum_exp(&[1000.0, 1000.0]) - (1000.0 + 2f64.ln())).abs() < 1e-12);
        assert!((log_add_exp(-1000.0, -1001.0) - log_sum_exp(&[-1000.0, -1001.0])).abs() < 1e-12);
        assert_eq!(log_add_exp(f64::NEG_INFINITY, f64::NEG_INFINITY), f64::NEG_INFINITY);
    }

    #[test]
    fn digamma_has_its_known_values_and_is_the_slope_of_log_gamma() {
        let euler = 0.577_215_664_901_532_9;
        assert!((digamma(1.0) + euler).abs() < 4e-15, "{:e}", digamma(1.0) + euler);
        assert!((digamma(0.5) + euler + 2.0 * 2f64.ln()).abs() < 1e-14);
        for x in [0.01, 0.3, 2.7, 9.99, 10.01, 500.0] {
            let h = 1e-5 * x;
            let slope = (libm::lgamma(x + h) - libm::lgamma(x - h)) / (2.0 * h);
            assert!((digamma(x) / slope - 1.0).abs() < 1e-7, "{x}");
        }
    }

    #[test]
    fn quantiles_follow_type_7() {
        let x = [1.0, 2.0, 3.0, 4.0];
        assert_eq!(quantile_sorted(&x, 0.0), 1.0);
        assert_eq!(quantile_sorted(&x, 0.5), 2.5);
        assert_eq!(quantile_sorted(&x, 1.0), 4.0);
        assert!((quantile_sorted(&x, 0.1) - 1.3).abs() < 1e-15);
        assert!(quantile_sorted(&[], 0.5).is_nan());
    }

    #[test]
    fn normal_quantiles_are_those_of_tables() {
        for (p, z) in
            [(0.5, 0.0), (0.975, 1.959963984540054), (0.05, -1.6448536269514722), (1e-10, -6.361340902404056)]
        {
            assert!((normal_quantile(p) - z).abs() < 1e-12, "{p}: {}", normal_quantile(p));
            assert!((normal_cdf(z) / p - 1.0).abs() < 1e-9, "{z}");
        }
        assert!(normal_quantile(-0.1).is_nan() && normal_quantile(1.0) == f64::INFINITY);
    }
}

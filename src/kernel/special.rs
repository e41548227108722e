//! Derivatives of the log gamma function: digamma and trigamma, by their recurrences and asymptotic series.

use std::f64::consts::PI;

/// From here on the series have all digits.
const FAR: f64 = 10.0;

/// ψ(x) = d log Γ(x)/dx; NaN at the poles.
pub fn digamma(x: f64) -> f64 {
    if x <= 0.0 {
        // ψ(1 − x) − ψ(x) = π cot πx.
        let whole = x == x.floor();
        return if whole { f64::NAN } else { digamma(1.0 - x) - PI / libm::tan(PI * x) };
    }
    let (mut x, mut below) = (x, 0.0);
    while x < FAR {
        below += 1.0 / x;
        x += 1.0;
    }
    let z = 1.0 / (x * x);
    let series =
        [1.0 / 12.0, -1.0 / 120.0, 1.0 / 252.0, -1.0 / 240.0, 1.0 / 132.0, -691.0 / 32760.0, 1.0 / 12.0];
    let tail = series.iter().rev().fold(0.0, |sum, c| z * (c + sum));
    libm::log(x) - 0.5 / x - tail - below
}

/// ψ′(x).
pub fn trigamma(x: f64) -> f64 {
    if x <= 0.0 {
        let sine = libm::sin(PI * x);
        return PI * PI / (sine * sine) - trigamma(1.0 - x);
    }
    let (mut x, mut below) = (x, 0.0);
    while x < FAR {
        below += 1.0 / (x * x);
        x += 1.0;
    }
    let z = 1.0 / (x * x);
    let series = [1.0 / 6.0, -1.0 / 30.0, 1.0 / 42.0, -1.0 / 30.0, 5.0 / 66.0, -691.0 / 2730.0, 7.0 / 6.0];
    let tail = series.iter().rev().fold(0.0, |sum, c| z * (c + sum));
    (1.0 + 0.5 / x + tail) / x + below
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ψ(1) = −γ, ψ(½) = −γ − 2 ln 2, ψ′(1) = π²/6, ψ′(½) = π²/2; and both are derivatives.
    #[test]
    fn they_have_their_known_values_and_are_derivatives() {
        const EULER: f64 = 0.577_215_664_901_532_9;
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-13 * b.abs().max(1.0), "{a} for {b}");
        close(digamma(1.0), -EULER);
        close(digamma(0.5), -EULER - 2.0 * std::f64::consts::LN_2);
        close(trigamma(1.0), PI * PI / 6.0);
        close(trigamma(0.5), PI * PI / 2.0);
        for x in [-2.3, -0.4, 0.01, 0.7, 3.0, 9.99, 10.01, 250.0, 1e8] {
            let step = 1e-5 * f64::abs(x);
            let slope = |f: fn(f64) -> f64| (f(x + step) - f(x - step)) / (2.0 * step);
            assert!((slope(libm::lgamma) / digamma(x) - 1.0).abs() < 1e-6, "{x}");
            assert!((slope(digamma) / trigamma(x) - 1.0).abs() < 1e-6, "{x}");
        }
        assert!(digamma(-3.0).is_nan() && digamma(0.0).is_nan());
    }
}

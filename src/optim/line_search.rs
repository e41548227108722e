//! A step length that meets the Wolfe conditions (Nocedal and Wright 2006, (3.6)), one trial at a time.

/// Wolfe conditions.
const SUFFICIENT_DECREASE: f64 = 1e-4;
const CURVATURE: f64 = 0.9;
/// Trials of one line search.
const MAX_TRIALS: usize = 40;
/// Rounding noise of the objective, a sum over all rows, relative.
const NOISE: f64 = 1e-14;
/// Gains below this share of the objective are judged by slopes where the values deny them: these have lost half of the digits
/// that slopes still have (the approximate Wolfe conditions of Hager and Zhang 2005).
const BLUR: f64 = 1e-6;
/// A step that is judged by slopes has left no more than this share of the first.
const LEVELLED: f64 = 0.5;

/// A line search half way.
#[derive(Clone, Copy, Default)]
pub struct LineSearch {
    /// Objective and directional derivative where it began; the latter is negative.
    value: f64,
    pub descent: f64,
    /// What rounding is relative to.
    size: f64,
    /// The step to try.
    pub step: f64,
    low: f64,
    high: f64,
    trials: usize,
}

/// What a trial has shown.
#[derive(Clone, Copy, PartialEq)]
pub enum Verdict {
    Accept,
    /// `step` is another now.
    TryAgain,
    /// Nothing lower along this direction.
    Nothing,
}

impl LineSearch {
    /// `size` is that of parts of the objective that cancel, if they are larger than what is left.
    pub fn new(value: f64, size: f64, descent: f64, step: f64) -> LineSearch {
        let size = value.abs().max(size);
        LineSearch { value, descent, size, step, low: 0.0, high: f64::INFINITY, trials: 0 }
    }

    /// Judges the trial at `step` by its objective and, unless there is a kink that makes it meaningless, its directional
    /// derivative.
    pub fn judge(&mut self, value: f64, ascent: Option<f64>) -> Verdict {
        self.trials += 1;
        let enough = self.value + SUFFICIENT_DECREASE * self.step * self.descent;
        let (noise, promised) = (NOISE * self.size, -self.step * self.descent);
        let flat = value <= self.value + noise && promised <= noise;
        let blur = (BLUR * self.value.abs()).max(10.0 * noise);
        let levelled = ascent.is_some_and(|a| a.abs() <= -LEVELLED * self.descent);
        let flat = flat || levelled && value <= self.value + blur && promised <= blur;
        // −∞ is where a sum has overflowed, and no minimum.
        let too_high = !value.is_finite() || value > enough;
        if too_high && !flat {
            self.high = self.step;
        } else if !flat && ascent.is_some_and(|a| a < CURVATURE * self.descent) {
            self.low = self.step;
        } else {
            return Verdict::Accept;
        }
        if self.trials >= MAX_TRIALS || self.high.is_finite() && self.high - self.low <= 1e-14 * self.high {
            return Verdict::Nothing;
        }
        self.step = if self.high.is_finite() { self.shorter(value) } else { 2.0 * self.step };
        Verdict::TryAgain
    }

    /// The minimum of the parabola through both ends where it lies well inside the bracket, else the middle.
    fn shorter(&self, trial: f64) -> f64 {
        let middle = 0.5 * (self.low + self.high);
        if self.low > 0.0 || !trial.is_finite() {
            return middle;
        }
        let curve = trial - self.value - self.step * self.descent;
        let parabola = -0.5 * self.descent * self.step * self.step / curve;
        parabola.clamp(0.1 * self.high, 0.5 * self.high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Near its minimum a sum of 10¹² has no digits left for what a step gains; its slopes have.
    #[test]
    fn slopes_judge_what_values_cannot() {
        let noisy = 4.0 + 1e-9;
        let judge = |value: f64, size: f64, ascent: Option<f64>| {
            LineSearch::new(4.0, size, -1e-11, 1.0).judge(value, ascent)
        };
        assert!(judge(noisy, 0.0, Some(1e-14)) == Verdict::Accept);
        assert!(judge(noisy, 0.0, Some(-6e-12)) == Verdict::TryAgain, "the slope is as large as before");
        assert!(judge(noisy, 0.0, None) == Verdict::TryAgain, "no slope is known");
        assert!(judge(4.05, 0.0, Some(1e-14)) == Verdict::TryAgain, "this is more than noise");
        assert!(judge(4.05, 1e12, Some(1e-14)) == Verdict::Accept, "unless much larger parts cancel");
        assert!(judge(f64::NAN, 1e12, Some(0.0)) == Verdict::TryAgain);
    }
}

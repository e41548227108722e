//! What a concentration α comes to, by how the prior is made finite: the prior variance of a mean before there are data, which
//! α is chosen from (section 2.2, supplement A.2), and the number of pseudo-samples.

use super::weights::NEGLIGIBLE;
use super::{Prior, Truncation};

/// α is looked for below this: beyond it no prior gets tighter by a digit that counts.
const LARGEST: f64 = 1e15;

impl Prior {
    /// Pseudo-samples of a draw beside data of mass `n`, on average; 0 where they are rows of the data or of a file.
    pub fn pseudo_samples(&self, n: f64) -> f64 {
        match self {
            Prior::Noninformative => 0.0,
            Prior::Dp { alpha, truncation, .. } => truncation.pseudo_samples(*alpha, n),
        }
    }
}

impl Truncation {
    /// Pseudo-samples of a draw that are not negligible, on average. Sticks are a Poisson process with rate α in minus the
    /// logarithm of the mass that is left, from the prior's share α/(α + n) of the whole down to ε.
    pub fn pseudo_samples(self, alpha: f64, n: f64) -> f64 {
        match self {
            Truncation::Dirichlet { t } => t as f64 * -libm::expm1(alpha / t as f64 * libm::log(NEGLIGIBLE)),
            Truncation::StickBreaking { t } => t as f64,
            Truncation::Adaptive { epsilon } => {
                1.0 + alpha * (-libm::log(epsilon) - libm::log1p(n / alpha)).max(0.0)
            }
            Truncation::Exact => 0.0,
        }
    }

    /// Var(θ_μ) of the mean functional without data, as a share of the variance of F_π: E Σ w² of the weights. It is 1/(1 + α)
    /// under DP(α, F_π), of which truncation leaves mass R on one atom that would have been many: α E R²/(1 + α) more.
    pub fn variance_of_mean(self, alpha: f64) -> f64 {
        (1.0 + alpha * self.unbroken(alpha)) / (1.0 + alpha)
    }

    /// E R². A stick keeps (1 − v)² of its square, on average ρ = α/(α + 2). Sticks that end below ε have R = ε (1 − v): arrivals
    /// of a Poisson process do not remember where they were. The weights Dir(α/T, …, α/T) are as if it were 1/T.
    fn unbroken(self, alpha: f64) -> f64 {
        let rho = alpha / (alpha + 2.0);
        match self {
            Truncation::Dirichlet { t } => 1.0 / t as f64,
            Truncation::StickBreaking { t } => libm::pow(rho, t as f64 - 1.0),
            Truncation::Adaptive { epsilon } => epsilon * epsilon * rho,
            Truncation::Exact => 0.0,
        }
    }

    /// The smallest α under which the mean has this variance, a share below 1 of that of F_π; or, where no α has it, the
    /// variance that all are above.
    pub fn alpha_of_variance(self, share: f64) -> Result<f64, f64> {
        if let Truncation::Dirichlet { .. } | Truncation::Exact = self {
            let lowest = self.unbroken(0.0);
            return if share > lowest { Ok((1.0 - share) / (share - lowest)) } else { Err(lowest) };
        }
        // The variance falls with α to its lowest, then rises: so many sticks are too few by then.
        let tightest = self.tightest();
        let lowest = self.variance_of_mean(tightest);
        if share <= lowest {
            return Err(lowest);
        }
        let (mut low, mut high) = (0.0, tightest);
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            match self.variance_of_mean(middle) > share {
                true => low = middle,
                false => high = middle,
            }
        }
        Ok(high)
    }

    /// The α of the lowest variance, by golden section in its logarithm.
    fn tightest(self) -> f64 {
        let golden = 0.5 * (5f64.sqrt() - 1.0);
        let variance = |log_alpha: f64| self.variance_of_mean(libm::exp(log_alpha));
        let (mut low, mut high) = (-libm::log(LARGEST), libm::log(LARGEST));
        for _ in 0..100 {
            let width = golden * (high - low);
            match variance(high - width) < variance(low + width) {
                true => high = low + width,
                false => low = high - width,
            }
        }
        libm::exp(high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Truncation; 9] = [
        Truncation::Dirichlet { t: 4 },
        Truncation::Dirichlet { t: 100 },
        Truncation::StickBreaking { t: 2 },
        Truncation::StickBreaking { t: 5 },
        Truncation::StickBreaking { t: 1000 },
        Truncation::Adaptive { epsilon: 1e-6 },
        Truncation::Adaptive { epsilon: 0.1 },
        Truncation::Adaptive { epsilon: 0.9 },
        Truncation::Exact,
    ];

    #[test]
    fn the_answer_is_the_smallest_alpha_or_there_is_none() {
        let grid: Vec<f64> = (0..6000).map(|i| libm::exp(-10.0 + 0.005 * i as f64)).collect();
        for truncation in ALL {
            for share in [0.999, 0.9, 0.7, 0.5, 0.3, 0.1, 0.01, 1e-4] {
                // The first point of the grid that is tight enough is the first after the answer.
                let first = grid.iter().position(|&alpha| truncation.variance_of_mean(alpha) <= share);
                match truncation.alpha_of_variance(share) {
                    Ok(alpha) => {
                        let found = truncation.variance_of_mean(alpha);
                        assert!((found / share - 1.0).abs() < 1e-9, "{truncation:?}, {share}: {found}");
                        let first = first.map_or(f64::INFINITY, |i| grid[i]);
                        assert!(alpha <= first && first < 1.006 * alpha, "{truncation:?}, {share}: {alpha}");
                    }
                    Err(lowest) => {
                        assert!(first.is_none() && lowest >= share, "{truncation:?}, {share}: {lowest}");
                        let tightest = grid.iter().map(|&alpha| truncation.variance_of_mean(alpha));
                        assert!(tightest.fold(1.0, f64::min) >= lowest * (1.0 - 1e-12), "{truncation:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn one_atom_has_the_variance_of_the_base_measure() {
        assert_eq!(Truncation::Dirichlet { t: 1 }.alpha_of_variance(0.99), Err(1.0));
        assert_eq!(Truncation::StickBreaking { t: 1 }.alpha_of_variance(0.99), Err(1.0));
        assert_eq!(Truncation::Dirichlet { t: 4 }.alpha_of_variance(0.25), Err(0.25));
    }
}

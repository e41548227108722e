//! Random streams: every task owns one, named by what it is for and not by who runs it.

use rand::SeedableRng;
use rand::distr::{Distribution, Open01};
use rand_pcg::Pcg64Dxsm;
use sha2::{Digest, Sha256};

/// The generator behind every stream.
pub type Rng = Pcg64Dxsm;

/// Changing how any number is drawn from a stream changes published results: bump this then.
const VERSION: &[u8] = b"npl-stream-1";

/// What a stream is for. Each purpose has its own numbers, so that drawing more of one thing (restarts, pseudo-
/// samples) never moves another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Simulated data sets.
    Data = 1,
    /// Train and test split.
    Split = 2,
    /// Exponentials behind the weights of the observed atoms.
    Weights = 3,
    /// Gamma variates and sticks behind the weights of the prior part.
    PriorWeights = 4,
    /// Pseudo-samples from the base measure F_π.
    PseudoSamples = 5,
    /// θ_init of a restart.
    Init = 6,
    /// Fits to the unweighted data that select a fixed start.
    Selection = 7,
    /// Monte Carlo estimates that are not part of a posterior (moments of a base measure).
    Auxiliary = 8,
    /// A chain of NUTS.
    Chain = 9,
    /// The fit of ADVI.
    Variational = 10,
    /// Draws from the fit of ADVI.
    VariationalDraw = 11,
    /// Draws from the proposal of importance sampling.
    Proposal = 12,
}

/// All randomness of one repeat. Repeat i of seed s is repeat 0 of seed s + i, so that one repeat of a long run
/// can be run again alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(pub u64);

impl Seed {
    /// The stream of one task, whatever thread runs it and in whatever order.
    ///
    /// The 256-bit state and increment come from a hash: neighbouring `Pcg64` streams made by counting are
    /// visibly correlated, hashed ones are not.
    pub fn stream(self, purpose: Purpose, draw: u64, restart: u64) -> Rng {
        let mut hash = Sha256::new();
        hash.update(VERSION);
        for word in [self.0, purpose as u64, draw, restart] {
            hash.update(word.to_le_bytes());
        }
        Rng::from_seed(hash.finalize().into())
    }
}

/// A seed for a run whose config has none, from the operating system's randomness. Below 2⁵³, so that every tool
/// reads the recorded number exactly.
pub fn drawn_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id()) >> 11
}

/// log U for U uniform on (0, 1), by the same `libm` on every platform.
pub fn log_uniform(rng: &mut Rng) -> f64 {
    let u: f64 = Open01.sample(rng);
    libm::log(u)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// First 40 uniforms of 4000 streams: correlation of position j between neighbours at a lag.
    fn worst_correlation(stream: impl Fn(u64) -> Rng, lag: usize) -> (f64, f64) {
        let (streams, draws) = (4000, 40);
        let table: Vec<Vec<f64>> = (0..streams)
            .map(|b| {
                let mut rng = stream(b as u64);
                (0..draws).map(|_| <Open01 as Distribution<f64>>::sample(&Open01, &mut rng) - 0.5).collect()
            })
            .collect();
        let z: Vec<f64> = (0..draws)
            .map(|j| {
                let sum: f64 = (0..streams - lag).map(|b| table[b][j] * table[b + lag][j]).sum();
                sum * 12.0 / ((streams - lag) as f64).sqrt()
            })
            .collect();
        (z.iter().fold(0.0, |m, z| m.max(z.abs())), z.iter().map(|z| z * z).sum::<f64>() / draws as f64)
    }

    /// z² averages to 1 ± √(2/40); 5 standard deviations of that, and |z| ≤ 5 for each position.
    #[test]
    fn neighbouring_streams_are_not_correlated() {
        let seed = Seed(1);
        type Family = Box<dyn Fn(u64) -> Rng>;
        let families: [(&str, Family); 3] = [
            ("draws", Box::new(move |b| seed.stream(Purpose::Weights, b, 0))),
            ("restarts", Box::new(move |r| seed.stream(Purpose::Init, 7, r))),
            ("seeds", Box::new(|s| Seed(s).stream(Purpose::Weights, 0, 0))),
        ];
        for (name, family) in &families {
            for lag in [1, 2, 16, 256] {
                let (worst, mean_square) = worst_correlation(family, lag);
                assert!(worst < 5.0, "{name} at lag {lag}: |z| = {worst}");
                assert!(
                    (mean_square - 1.0).abs() < 5.0 * (2.0f64 / 40.0).sqrt(),
                    "{name}: z² = {mean_square}"
                );
            }
        }
    }

    /// The test above can fail: streams made by counting (the trap it guards against) do not pass it.
    #[test]
    fn counted_pcg_streams_would_be_caught() {
        let shared = |b: u64| Seed(1).stream(Purpose::Weights, b / 2, 0);
        let (worst, _) = worst_correlation(shared, 1);
        assert!(worst > 5.0, "two draws sharing a stream went unnoticed: |z| = {worst}");
    }

    #[test]
    fn streams_differ_in_every_coordinate() {
        use rand::Rng as _;
        let first = |mut rng: Rng| rng.next_u64();
        let base = first(Seed(1).stream(Purpose::Weights, 2, 3));
        assert_ne!(base, first(Seed(2).stream(Purpose::Weights, 2, 3)));
        assert_ne!(base, first(Seed(1).stream(Purpose::Init, 2, 3)));
        assert_ne!(base, first(Seed(1).stream(Purpose::Weights, 3, 3)));
        assert_ne!(base, first(Seed(1).stream(Purpose::Weights, 2, 4)));
        assert_eq!(base, first(Seed(1).stream(Purpose::Weights, 2, 3)));
    }
}

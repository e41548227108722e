//! Random streams: every task owns one, named by what it is for and not by who runs it.

use rand::SeedableRng;
use rand::distr::{Distribution, Open01};
use rand_pcg::Pcg64Dxsm;
use sha2::{Digest, Sha256};

/// The generator behind every stream.
pub type Rng = Pcg64Dxsm;

/// Rows whose weights come from one stream: a chunk of them can be made without the others. Large enough to pay for the
/// hash, small enough to stay in the nearest cache.
pub const CHUNK: usize = 1024;

/// What a stream is for. Each purpose has its own numbers, so that drawing more of one thing (restarts, pseudo-
/// samples) never moves another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Simulated data sets.
    Data = 1,
    /// Train and test split.
    Split = 2,
    /// Exponentials behind the weights of the observed atoms, a stream for each chunk of them.
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
    /// Responses of new rows.
    Prediction = 13,
    /// Mini-batches of rows, drawn from F.
    Batches = 20,
    /// The weight of a penalty in a draw.
    PenaltyWeight = 16,
    /// A draw by the law of its parameters.
    Law = 18,
}

impl Purpose {
    /// Changing how any number is drawn from a stream changes published results: bump its version then. The others keep
    /// theirs, so that data, splits and starts stay what they were.
    fn version(self) -> &'static [u8] {
        match self {
            Purpose::Weights | Purpose::Chain => b"npl-stream-2",
            _ => b"npl-stream-1",
        }
    }
}

/// All versions, as part of the identity of a run.
pub fn versions() -> String {
    let of = |purpose: Purpose| String::from_utf8_lossy(purpose.version()).into_owned();
    [of(Purpose::Data), of(Purpose::Weights)].join(", ")
}

/// All randomness of one repeat. Repeat i of seed s is repeat 0 of seed s + i, so that one repeat of a long run
/// can be run again alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(pub u64);

impl Seed {
    /// The stream of one task, whatever thread runs it and in whatever order; `part` is a restart of the draw, or a chunk
    /// of its rows.
    ///
    /// The 256-bit state and increment come from a hash: neighbouring `Pcg64` streams made by counting are
    /// visibly correlated, hashed ones are not.
    pub fn stream(self, purpose: Purpose, draw: u64, part: u64) -> Rng {
        let mut hash = Sha256::new();
        hash.update(purpose.version());
        for word in [self.0, purpose as u64, draw, part] {
            hash.update(word.to_le_bytes());
        }
        Rng::from_seed(hash.finalize().into())
    }

    /// That of a group of rows, by its name alone: what other groups there are changes nothing. Below 2⁵³, so that every tool reads
    /// the recorded number exactly, and an experiment on the rows of the group alone can be given it.
    pub fn of_group(self, name: &str) -> Seed {
        let mut hash = Sha256::new();
        hash.update(b"npl-group-1");
        hash.update(self.0.to_le_bytes());
        hash.update(name.as_bytes());
        let bytes: [u8; 32] = hash.finalize().into();
        let first = bytes.first_chunk().expect("a hash has 32 bytes");
        Seed(u64::from_le_bytes(*first) >> 11)
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
    use crate::kernel::exponentials::{Generators, exponentials};
    use crate::kernel::{LANES, Level};

    const VALUES: usize = 40;

    /// The first uniforms of a stream.
    fn uniforms(mut rng: Rng) -> Vec<f64> {
        (0..VALUES).map(|_| Open01.sample(&mut rng)).collect()
    }

    /// The uniforms behind so many masses of a chunk of rows, by lanes.
    fn lanes(mut rng: Rng, n: usize) -> [Vec<f64>; LANES] {
        let mut masses = vec![0.0; n];
        exponentials(Level::current(), &Generators::seeded(&mut rng), &mut masses);
        std::array::from_fn(|l| masses.iter().skip(l).step_by(LANES).map(|e| libm::exp(-e)).collect())
    }

    /// Those of the first lane.
    fn lane(rng: Rng) -> Vec<f64> {
        let [first, ..] = lanes(rng, VALUES * LANES);
        first
    }

    /// First 40 uniforms of 4000 streams: correlation of position j between neighbours at a lag.
    fn worst_correlation(stream: impl Fn(u64) -> Vec<f64>, lag: usize) -> (f64, f64) {
        let streams = 4000;
        let table: Vec<Vec<f64>> = (0..streams as u64).map(stream).collect();
        let z: Vec<f64> = (0..VALUES)
            .map(|j| {
                let pairs = table.iter().zip(&table[lag..]);
                let sum: f64 = pairs.map(|(a, b)| (a[j] - 0.5) * (b[j] - 0.5)).sum();
                sum * 12.0 / ((streams - lag) as f64).sqrt()
            })
            .collect();
        (z.iter().fold(0.0, |m, z| m.max(z.abs())), z.iter().map(|z| z * z).sum::<f64>() / VALUES as f64)
    }

    /// z² averages to 1 ± √(2/40); 5 standard deviations of that, and |z| ≤ 5 for each position.
    #[test]
    fn neighbouring_streams_are_not_correlated() {
        let seed = Seed(1);
        type Family = Box<dyn Fn(u64) -> Vec<f64>>;
        let families: [(&str, Family); 7] = [
            ("draws", Box::new(move |b| uniforms(seed.stream(Purpose::PriorWeights, b, 0)))),
            ("restarts", Box::new(move |r| uniforms(seed.stream(Purpose::Init, 7, r)))),
            ("seeds", Box::new(|s| uniforms(Seed(s).stream(Purpose::PriorWeights, 0, 0)))),
            ("masses of draws", Box::new(move |b| lane(seed.stream(Purpose::Weights, b, 0)))),
            ("masses of chunks", Box::new(move |c| lane(seed.stream(Purpose::Weights, 7, c)))),
            ("masses of seeds", Box::new(|s| lane(Seed(s).stream(Purpose::Weights, 0, 0)))),
            (
                "lanes of chunks",
                Box::new(move |b| {
                    let chunk = seed.stream(Purpose::Weights, 7, b / LANES as u64);
                    lanes(chunk, VALUES * LANES)[b as usize % LANES].clone()
                }),
            ),
        ];
        for (name, family) in &families {
            for lag in [1, 2, 3, 7, 16, 256] {
                let (worst, mean_square) = worst_correlation(family, lag);
                assert!(worst < 5.0, "{name} at lag {lag}: |z| = {worst}");
                assert!(
                    (mean_square - 1.0).abs() < 5.0 * (2.0f64 / VALUES as f64).sqrt(),
                    "{name}: z² = {mean_square}"
                );
            }
        }
    }

    /// The test above can fail: streams made by counting (the trap it guards against) do not pass it.
    #[test]
    fn counted_pcg_streams_would_be_caught() {
        let shared = |b: u64| Seed(1).stream(Purpose::Weights, b / 2, 0);
        for numbers in [uniforms, lane] {
            let (worst, _) = worst_correlation(|b| numbers(shared(b)), 1);
            assert!(worst > 5.0, "two draws sharing a stream went unnoticed: |z| = {worst}");
        }
    }

    /// Of all masses of 200 chunks, at each lag: uniforms and their squares within 5 standard errors of no correlation.
    #[test]
    fn masses_of_a_chunk_are_not_correlated_with_those_that_follow() {
        let chunks: Vec<Vec<f64>> = (0..200)
            .map(|c| {
                let mut masses = vec![0.0; CHUNK];
                let generators = Generators::seeded(&mut Seed(3).stream(Purpose::Weights, 1, c));
                exponentials(Level::current(), &generators, &mut masses);
                masses.iter().map(|e| libm::exp(-e) - 0.5).collect()
            })
            .collect();
        for lag in (1..=2 * LANES).chain([3 * LANES, 64 * LANES]) {
            let pairs = || chunks.iter().flat_map(|c| c.iter().zip(&c[lag..]));
            let n = pairs().count() as f64;
            let linear = 12.0 * pairs().map(|(a, b)| a * b).sum::<f64>() / n.sqrt();
            // U² less its mean has variance 1/180.
            let square = |a: &f64| a * a - 1.0 / 12.0;
            let squares = 180.0 * pairs().map(|(a, b)| square(a) * square(b)).sum::<f64>() / n.sqrt();
            assert!(linear.abs() < 5.0 && squares.abs() < 5.0, "lag {lag}: {linear}, {squares}");
        }
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

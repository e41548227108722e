//! The random measure: one draw F ~ DP(α + n, G_n) of the posterior of eq. (3) is a [`Measure`], a set of weighted
//! atoms. Observed rows and prior pseudo-samples are both atoms, and no loss asks which is which.

pub mod base;
mod weights;

pub use base::BaseMeasure;

use ndarray::{ArrayView1, ArrayView2};

use crate::data::Dataset;
use crate::kernel::Panel;
use crate::kernel::sparse::SparseRows;
use crate::rng::{Purpose, Seed};

/// The prior on F, eq. (2).
pub enum Prior {
    /// α = 0: the Bayesian bootstrap, exact.
    Noninformative,
    /// DP(α, F_π) with α > 0.
    Dp { alpha: f64, base: Box<dyn BaseMeasure>, truncation: Truncation },
    /// A mixture of Dirichlet processes, whose base measure is the model at a draw from its posterior: another for each
    /// draw, so that whoever draws brings it.
    Mdp { alpha: f64, truncation: Truncation },
}

/// How the infinitely many atoms of the prior part become finitely many.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Truncation {
    /// T pseudo-samples with weights Dir(1, …, 1, α/T, …, α/T): Algorithm 2.
    Dirichlet { t: usize },
    /// The prior part is GEM(α) stick-breaking, eq. (6), whose T-th stick takes what is left.
    StickBreaking { t: usize },
    /// Sticks until the mass left is below ε; one fresh atom takes it ("adaptive NPL", section 2.4.1).
    Adaptive { epsilon: f64 },
    /// Every atom of a base measure with finite support has its exact weight: no truncation.
    Exact,
}

/// One draw of F: observed atoms first, pseudo-samples after. The weights sum to 1.
pub struct Measure<'a> {
    observed: &'a Dataset,
    w: Vec<f64>,
    pseudo: Dataset,
    v: Vec<f64>,
    /// Instead of `pseudo`: pseudo-samples that are observed rows with a response of their own, row and response.
    relabelled: Vec<(usize, f64)>,
}

/// Atoms of one origin: rows, responses if there are any, weights.
#[derive(Clone, Copy)]
pub struct Atoms<'a> {
    pub x: ArrayView2<'a, f64>,
    pub y: Option<ArrayView1<'a, f64>>,
    pub w: &'a [f64],
    source: Source<'a>,
}

#[derive(Clone, Copy)]
struct Source<'a>(&'a Dataset);

impl<'a> Atoms<'a> {
    /// The rows in the layout of the vector kernels.
    pub fn panel(&self) -> &'a Panel {
        self.source.0.panel()
    }

    /// The cells that are not zero.
    pub fn sparse_rows(&self) -> &'a SparseRows {
        self.source.0.sparse_rows()
    }
}

impl<'a> Measure<'a> {
    /// Atoms with given weights; `v` belongs to `pseudo`.
    pub fn new(observed: &'a Dataset, w: Vec<f64>, pseudo: Dataset, v: Vec<f64>) -> Self {
        debug_assert_eq!(observed.n(), w.len());
        debug_assert_eq!(pseudo.n(), v.len());
        Measure { observed, w, pseudo, v, relabelled: Vec::new() }
    }

    /// Observed rows, and pseudo-samples that share their covariates, row and response, with weights `v`.
    fn relabelled(observed: &'a Dataset, w: Vec<f64>, relabelled: Vec<(usize, f64)>, v: Vec<f64>) -> Self {
        Measure { observed, w, pseudo: Dataset::default(), v, relabelled }
    }

    /// The empirical measure F_n of the observed rows, each with its case weight: what maximum likelihood works on.
    pub fn empirical(observed: &'a Dataset) -> Self {
        let n = observed.mass();
        Measure::weighted(observed, (0..observed.n()).map(|i| observed.weight(i) / n).collect())
    }

    /// The observed rows with weights of your own, and no pseudo-samples.
    pub fn weighted(observed: &'a Dataset, w: Vec<f64>) -> Self {
        Measure::new(observed, w, Dataset::default(), Vec::new())
    }

    /// The atoms by origin; a loss adds them all up the same way. Relabelled rows are not among them: a loss of a response
    /// asks for [`Measure::responses`].
    pub fn atoms(&self) -> impl Iterator<Item = Atoms<'_>> {
        let parts = [(self.observed, &self.w), (&self.pseudo, &self.v)];
        parts.into_iter().filter(|(data, _)| data.n() > 0).map(|(data, w)| Atoms {
            x: data.x.view(),
            y: data.y.as_ref().map(|y| y.view()),
            w,
            source: Source(data),
        })
    }

    /// Number of columns of every atom.
    pub fn d(&self) -> usize {
        if self.w.is_empty() { self.pseudo.d() } else { self.observed.d() }
    }

    /// Weights of the observed rows, then of the pseudo-samples.
    pub fn weights(&self) -> (&[f64], &[f64]) {
        (&self.w, &self.v)
    }

    /// The mass of each observed row, and how much of it has response 1: all that a loss linear in a binary response
    /// needs, pseudo-samples on observed rows included.
    pub fn responses(&self) -> (Vec<f64>, Vec<f64>) {
        let y = self.observed.y.as_ref().expect("regression data have responses");
        let mut mass = self.w.clone();
        let mut ones: Vec<f64> = self.w.iter().zip(y).map(|(w, y)| w * y).collect();
        for (&(row, y), &weight) in self.relabelled.iter().zip(&self.v) {
            mass[row] += weight;
            ones[row] += weight * y;
        }
        (mass, ones)
    }

    /// The observed rows, whatever their weights.
    pub fn observed(&self) -> &'a Dataset {
        self.observed
    }

    /// The pseudo-samples as rows of their own.
    pub fn pseudo_samples(&self) -> Dataset {
        if self.relabelled.is_empty() {
            return self.pseudo.clone();
        }
        let rows: Vec<usize> = self.relabelled.iter().map(|(row, _)| *row).collect();
        let mut data = self.observed.select(&rows);
        data.y = Some(self.relabelled.iter().map(|(_, y)| *y).collect());
        data
    }
}

impl Prior {
    pub fn alpha(&self) -> f64 {
        match self {
            Prior::Noninformative => 0.0,
            Prior::Dp { alpha, .. } | Prior::Mdp { alpha, .. } => *alpha,
        }
    }

    /// F ~ DP(α + n, G_n), eq. (3), from the streams of draw `draw`; weights, clusters and strata as the data have them.
    ///
    /// The observed part has streams of its own, so that α → 0 approaches the Bayesian bootstrap draw by draw.
    pub fn posterior_draw<'a>(&self, data: &'a Dataset, seed: Seed, draw: u64) -> Measure<'a> {
        match self {
            Prior::Noninformative => {
                let (observed, _) = weights::observed(data, &mut seed.stream(Purpose::Weights, draw, 0));
                Measure::weighted(data, weights::normalise(observed))
            }
            Prior::Dp { alpha, base, truncation } => {
                dp_draw(*alpha, base.as_ref(), *truncation, data, seed, draw)
            }
            Prior::Mdp { .. } => unreachable!("its base measure is the caller's: see `dp_draw`"),
        }
    }
}

/// F ~ DP(α + n, G_n) with α > 0 and base measure `base`, from the streams of draw `draw`.
pub fn dp_draw<'a>(
    alpha: f64,
    base: &dyn BaseMeasure,
    truncation: Truncation,
    data: &'a Dataset,
    seed: Seed,
    draw: u64,
) -> Measure<'a> {
    let (observed, log_unit) = weights::observed(data, &mut seed.stream(Purpose::Weights, draw, 0));
    let mut rng = seed.stream(Purpose::PriorWeights, draw, 0);
    let mut log_gammas = match truncation {
        Truncation::Dirichlet { t } => weights::symmetric(alpha, t, &mut rng),
        Truncation::StickBreaking { t } => weights::sticks(alpha, t, &mut rng),
        Truncation::Adaptive { epsilon } => {
            let log_observed = libm::log(observed.iter().sum()) + log_unit;
            weights::adaptive_sticks(alpha, log_observed, epsilon, &mut rng)
        }
        Truncation::Exact => {
            let share = base.shares().expect("exact weights are checked with the config");
            weights::asymmetric(alpha, share, &mut rng)
        }
    };
    log_gammas.iter_mut().for_each(|l| *l -= log_unit);
    let (w, v) = weights::join(observed, &log_gammas);
    let heavy = weights::heavy(&v);
    let mut rng = seed.stream(Purpose::PseudoSamples, draw, 0);
    // Atoms of a finite support by number: all that count, or as many at random.
    let picked = match truncation {
        Truncation::Exact => Some(heavy.clone()),
        _ => base.pick(heavy.len(), &mut rng),
    };
    let v: Vec<f64> = heavy.iter().map(|&k| v[k]).collect();
    match picked {
        None => Measure::new(data, w, base.sample(heavy.len(), &mut rng), v),
        Some(atoms) => match atoms.iter().map(|&a| base.observed(a)).collect::<Option<Vec<_>>>() {
            Some(rows) => Measure::relabelled(data, w, rows, v),
            None => Measure::new(data, w, base.atoms(&atoms), v),
        },
    }
}

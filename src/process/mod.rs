//! The random measure: one draw F ~ DP(α + n, G_n) of the posterior of eq. (3) is a [`Measure`], a set of weighted
//! atoms. Observed rows and prior pseudo-samples are both atoms, no loss asks which is which, and none can forget a part.

pub mod base;
mod concentration;
mod reused;
mod rows;
mod weights;

pub use base::{BaseMeasure, Pseudo};
pub use rows::RowWeights;

use std::sync::{Arc, OnceLock};

use ndarray::ArrayView1;
use rand::distr::Distribution;
use rand_distr::Exp1;

use crate::data::design::Design;
use crate::data::{Dataset, Rows};
use crate::rng::{Purpose, Seed};
use reused::Reused;
use rows::Source;

/// The prior on F, eq. (2).
pub enum Prior {
    /// α = 0: the Bayesian bootstrap, exact.
    Noninformative,
    /// DP(α, F_π) with α > 0; a mixture of Dirichlet processes where F_π is another for each draw.
    Dp { alpha: f64, base: Box<dyn BaseMeasure>, truncation: Truncation },
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

/// One draw of F: observed atoms and pseudo-samples. The weights sum to 1.
///
/// It is seen in one of three ways, each of them the whole of F: [`Measure::parts`], atom by atom with responses;
/// [`Measure::atoms`], the rows alone, for losses that know no response; [`Measure::masses`], the rows with their mass and
/// Σ w y, for losses that are linear in the response.
pub struct Measure<'a> {
    observed: &'a Dataset,
    /// Of the observed rows; of some draws made when they are first asked for.
    w: OnceLock<Reused>,
    source: Option<Source>,
    /// The sum of masses behind the weights of a draw.
    total: OnceLock<f64>,
    pseudo: Pseudo,
    v: Vec<f64>,
    /// Mass of every observed row, where pseudo-samples are observed rows, too.
    mass: Option<Vec<f64>>,
    /// Pseudo-samples as rows of their own, where they are asked for.
    gathered: OnceLock<Dataset>,
    /// What a penalty counts, where it is to be as random as the rows.
    penalty_weight: f64,
}

/// Atoms of one origin, with their responses if they have any.
pub struct Part<'a> {
    data: &'a Dataset,
    /// Which rows of `data`, if not all in order.
    picked: Option<&'a [usize]>,
    /// Instead of those of `data`.
    y: Option<&'a [f64]>,
    pub w: &'a [f64],
}

impl<'a> Part<'a> {
    fn row_number(&self, k: usize) -> usize {
        self.picked.map_or(k, |picked| picked[k])
    }

    /// The covariates of atom k.
    pub fn row(&self, k: usize) -> ArrayView1<'a, f64> {
        self.data.x.row(self.row_number(k))
    }

    /// What is added to the linear predictor of atom k.
    pub fn offset(&self, k: usize) -> f64 {
        self.data.offset(self.row_number(k))
    }

    /// The response of atom k.
    pub fn response(&self, k: usize) -> Option<f64> {
        let own = self.y.map(|y| y[k]);
        own.or_else(|| self.data.y.as_ref().map(|y| y[self.row_number(k)]))
    }
}

impl Part<'_> {
    /// The response of atom k is an event, and not censored.
    pub fn is_event(&self, k: usize) -> bool {
        self.y.is_some() || self.data.event.as_ref().is_none_or(|event| event[self.row_number(k)] == 1.0)
    }
}

/// Rows and weights of one origin.
#[derive(Clone, Copy)]
pub struct Atoms<'a> {
    pub x: &'a Rows,
    pub w: &'a [f64],
}

/// A set of rows that F has atoms on: the mass of every row, and Σ w y over the atoms there.
pub struct Masses<'a> {
    pub rows: &'a Dataset,
    /// Set for rows that all draws share.
    pub shared: Option<&'a Arc<Dataset>>,
    pub mass: Vec<f64>,
    pub response: Vec<f64>,
}

impl<'a> Measure<'a> {
    /// Observed rows with weights `w`, and pseudo-samples with weights `v`.
    pub fn new(observed: &'a Dataset, w: Vec<f64>, pseudo: Pseudo, v: Vec<f64>) -> Self {
        debug_assert_eq!(observed.n(), w.len());
        debug_assert_eq!(pseudo.len(), v.len());
        let mut f = Measure { pseudo, v, ..Measure::with(observed, None) };
        f.w = OnceLock::from(Reused::from(w));
        if let Some(picked) = f.picked_of_observed() {
            let mut mass = f.w().to_vec();
            picked.iter().zip(&f.v).for_each(|(&row, v)| mass[row] += v);
            f.mass = Some(mass);
        }
        f
    }

    /// Observed rows whose weights are not made yet.
    fn with(observed: &'a Dataset, source: Option<Source>) -> Self {
        let (w, total, gathered) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        let (pseudo, v) = (Pseudo::none(), Vec::new());
        Measure { observed, w, source, total, pseudo, v, mass: None, gathered, penalty_weight: 1.0 }
    }

    /// Weights of all observed rows.
    fn w(&self) -> &[f64] {
        self.w.get_or_init(|| match self.source {
            Some(Source::Drawn(seed, draw)) => {
                weights::observed(self.observed, seed, draw).normalise().into()
            }
            Some(Source::Even(w)) => vec![w; self.observed.n()].into(),
            None => Vec::new().into(),
        })
    }

    /// Weights of the observed rows, to be had a chunk at a time; where nobody has asked for all of them they are not kept.
    pub fn row_weights(&self) -> RowWeights<'_> {
        match self.source.filter(|_| self.w.get().is_none()) {
            None => RowWeights::Kept(self.w()),
            Some(Source::Even(w)) => RowWeights::Even(w),
            Some(Source::Drawn(seed, draw)) => {
                let total = *self.total.get_or_init(|| rows::total(self.observed.n(), seed, draw));
                RowWeights::Drawn { seed, draw, total }
            }
        }
    }

    /// The empirical measure F_n of the observed rows, each with its case weight: what maximum likelihood works on.
    pub fn empirical(observed: &'a Dataset) -> Self {
        let n = observed.mass();
        if observed.design.weights().is_none() {
            return Measure::with(observed, Some(Source::Even(1.0 / n)));
        }
        Measure::weighted(observed, (0..observed.n()).map(|i| observed.weight(i) / n).collect())
    }

    /// The observed rows with weights of your own, and no pseudo-samples.
    pub fn weighted(observed: &'a Dataset, w: Vec<f64>) -> Self {
        Measure::new(observed, w, Pseudo::none(), Vec::new())
    }

    /// The same draw on rows made of its own, with weights made of its own.
    pub fn on<'b>(&self, observed: &'b Dataset, w: Vec<f64>) -> Measure<'b> {
        Measure { penalty_weight: self.penalty_weight, ..Measure::weighted(observed, w) }
    }

    /// The rows of pseudo-samples that are observed rows.
    fn picked_of_observed(&self) -> Option<&[usize]> {
        match &self.pseudo {
            Pseudo::Shared { rows, picked, .. } if std::ptr::eq(Arc::as_ptr(rows), self.observed) => {
                Some(picked)
            }
            _ => None,
        }
    }

    /// All atoms, by origin.
    pub fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        let observed = Part { data: self.observed, picked: None, y: None, w: self.w() };
        let pseudo = match &self.pseudo {
            Pseudo::Own(rows) => Part { data: rows, picked: None, y: None, w: &self.v },
            Pseudo::Shared { rows, picked, y } => {
                Part { data: rows, picked: Some(picked), y: y.as_deref(), w: &self.v }
            }
        };
        [observed, pseudo].into_iter().filter(|part| !part.w.is_empty())
    }

    /// The law of the rows alone, by origin: what a loss without a response adds up.
    pub fn atoms(&self) -> impl Iterator<Item = Atoms<'_>> {
        let observed = (self.observed, self.mass.as_deref().unwrap_or_else(|| self.w()));
        let others = self.mass.is_none().then(|| (self.pseudo_rows(), &self.v[..]));
        [Some(observed), others]
            .into_iter()
            .flatten()
            .filter(|(data, _)| data.n() > 0)
            .map(|(data, w)| Atoms { x: &data.x, w })
    }

    fn pseudo_rows(&self) -> &Dataset {
        match &self.pseudo {
            Pseudo::Own(rows) => rows,
            shared => self.gathered.get_or_init(|| shared.to_rows()),
        }
    }

    /// The mass of every row that F lives on, and Σ w y there: all that a loss linear in the response needs. The observed
    /// rows, and the rows of pseudo-samples if they are others.
    pub fn masses(&self) -> (Masses<'a>, Option<Masses<'_>>) {
        let y = self.observed.y.as_ref();
        let mut observed = Masses {
            rows: self.observed,
            shared: None,
            mass: self.mass.clone().unwrap_or_else(|| self.w().to_vec()),
            response: y.map_or_else(
                || vec![0.0; self.w().len()],
                |y| {
                    let y = y.as_slice().expect("responses are contiguous");
                    self.w().iter().zip(y).map(|(w, y)| w * y).collect()
                },
            ),
        };
        let Some(part) = self.parts().find(|part| !std::ptr::eq(part.w, self.w())) else {
            return (observed, None);
        };
        let responses = |k: usize| part.response(k).expect("base measures of a regression have responses");
        if self.mass.is_some() {
            for (k, v) in self.v.iter().enumerate() {
                observed.response[part.row_number(k)] += v * responses(k);
            }
            return (observed, None);
        }
        let (mut mass, mut response) = (vec![0.0; part.data.n()], vec![0.0; part.data.n()]);
        for (k, v) in self.v.iter().enumerate() {
            mass[part.row_number(k)] += v;
            response[part.row_number(k)] += v * responses(k);
        }
        let shared = match &self.pseudo {
            Pseudo::Own(_) => None,
            Pseudo::Shared { rows, .. } => Some(rows),
        };
        (observed, Some(Masses { rows: part.data, shared, mass, response }))
    }

    /// The weight of a penalty that is drawn with F: 1 on average, and 1 for what is no draw.
    pub fn penalty_weight(&self) -> f64 {
        self.penalty_weight
    }

    /// Number of columns of every atom.
    pub fn d(&self) -> usize {
        match &self.pseudo {
            _ if self.observed.n() > 0 => self.observed.d(),
            Pseudo::Own(rows) => rows.d(),
            Pseudo::Shared { rows, .. } => rows.d(),
        }
    }

    /// Weights of the observed rows, then of the pseudo-samples.
    pub fn weights(&self) -> (&[f64], &[f64]) {
        (self.w(), &self.v)
    }

    /// Whether F lives on the same rows as another: they differ in the masses of rows alone.
    pub fn shares_rows_with(&self, other: &Measure) -> bool {
        let same_pseudo = match (&self.pseudo, &other.pseudo) {
            (Pseudo::Own(a), Pseudo::Own(b)) => a.n() == 0 && b.n() == 0,
            (Pseudo::Shared { rows: a, .. }, Pseudo::Shared { rows: b, .. }) => Arc::ptr_eq(a, b),
            _ => false,
        };
        std::ptr::eq(self.observed, other.observed) && same_pseudo
    }

    /// There are no pseudo-samples.
    pub fn is_plain(&self) -> bool {
        self.v.is_empty() && matches!(&self.pseudo, Pseudo::Own(rows) if rows.n() == 0)
    }

    /// The observed rows, whatever their weights.
    pub fn observed(&self) -> &'a Dataset {
        self.observed
    }

    /// The rows of the pseudo-samples with their weights, if there are any.
    pub fn pseudo_part(&self) -> Option<(&Dataset, &[f64])> {
        (!self.v.is_empty()).then(|| (self.pseudo_rows(), &self.v[..]))
    }

    /// The pseudo-samples as rows of their own.
    pub fn pseudo_samples(&self) -> Dataset {
        self.pseudo.to_rows()
    }

    /// Atoms by number, observed rows first, as rows of their own.
    pub fn gather(&self, picked: &[usize]) -> Dataset {
        let n = self.observed.n();
        if self.v.is_empty() {
            return self.observed.bare(picked);
        }
        let (mut observed, mut pseudo): (Vec<usize>, Vec<usize>) = picked.iter().partition(|&&k| k < n);
        pseudo.iter_mut().for_each(|k| *k -= n);
        observed.sort_unstable();
        Dataset::stack(&self.observed.bare(&observed), &self.pseudo_rows().bare(&pseudo))
    }

    /// The measure with equal weights on the rows of a mini-batch, eq. (C.2).
    pub fn of_batch<'b>(&self, batch: &'b Dataset) -> Measure<'b> {
        let m = batch.n();
        let f = Measure::weighted(batch, vec![1.0 / m as f64; m]);
        Measure { penalty_weight: self.penalty_weight, ..f }
    }

    /// F as plain rows with a weight each.
    pub fn written_out(&self) -> (Dataset, Vec<f64>) {
        let rows = Dataset::stack(self.observed, &self.pseudo_samples());
        (rows, [self.w(), &self.v].concat())
    }
}

impl Prior {
    pub fn alpha(&self) -> f64 {
        match self {
            Prior::Noninformative => 0.0,
            Prior::Dp { alpha, .. } => *alpha,
        }
    }

    /// F ~ DP(α + n, G_n), eq. (3), from the streams of draw `draw`; weights, clusters and strata as the data have them.
    ///
    /// The observed part has streams of its own, so that α → 0 approaches the Bayesian bootstrap draw by draw.
    pub fn posterior_draw<'a>(&self, data: &'a Dataset, seed: Seed, draw: u64) -> Measure<'a> {
        let penalty_weight = Exp1.sample(&mut seed.stream(Purpose::PenaltyWeight, draw, 0));
        let f = match self {
            Prior::Noninformative if data.design == Design::default() => {
                Measure::with(data, Some(Source::Drawn(seed, draw)))
            }
            Prior::Noninformative => Measure::weighted(data, weights::observed(data, seed, draw).normalise()),
            Prior::Dp { alpha, base, truncation } => {
                dp_draw(*alpha, base.as_ref(), *truncation, data, seed, draw)
            }
        };
        Measure { penalty_weight, ..f }
    }
}

/// F ~ DP(α + n, G_n) with α > 0 and base measure `base`, from the streams of draw `draw`.
fn dp_draw<'a>(
    alpha: f64,
    base: &dyn BaseMeasure,
    truncation: Truncation,
    data: &'a Dataset,
    seed: Seed,
    draw: u64,
) -> Measure<'a> {
    let of_draw = base.of_draw(draw);
    let base = of_draw.as_deref().unwrap_or(base);
    let observed = weights::observed(data, seed, draw);
    let log_unit = observed.log_unit;
    let mut rng = seed.stream(Purpose::PriorWeights, draw, 0);
    let mut log_gammas = match truncation {
        Truncation::Dirichlet { t } => weights::symmetric(alpha, t, &mut rng),
        Truncation::StickBreaking { t } => weights::sticks(alpha, t, &mut rng),
        Truncation::Adaptive { epsilon } => {
            let log_observed = libm::log(observed.total) + log_unit;
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
    // Atoms of a finite support by number: all that count, or as many pseudo-samples at random.
    let pseudo = match truncation {
        Truncation::Exact => base.atoms(heavy.clone()),
        _ => base.sample(heavy.len(), &mut seed.stream(Purpose::PseudoSamples, draw, 0)),
    };
    Measure::new(data, w, pseudo, heavy.iter().map(|&k| v[k]).collect())
}

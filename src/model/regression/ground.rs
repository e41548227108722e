//! The rows that draws live on: the observed ones, and those of pseudo-samples if they are others.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::OnceLock;

use super::metric::{Hard, Shared};
use super::objective::Objective;
use super::{Family, Regression};
use crate::data::Dataset;
use crate::data::design::Design;
use crate::process::{Masses, Measure, RowWeights};
use crate::rng::CHUNK;

/// Of more rows than this nothing is kept for each draw of a block: masses are made again for every pass, which costs about as much as
/// to fetch them from far away. What is found does not depend on it.
pub const LARGE: usize = 1 << 17;

/// What a draw has on the rows: the mass of each, and Σ w y there.
pub struct Responses<'a> {
    on: On<'a>,
    /// ∫ h(y) dF.
    pub carrier: f64,
    /// Of the hard rows.
    hard: OnceLock<[Vec<f64>; 2]>,
}

enum On<'a> {
    /// Where pseudo-samples add to the weights.
    Sums([Vec<f64>; 2]),
    /// The weights of the draw, and one response for each row.
    Weights(RowWeights<'a>, &'a [f64]),
}

impl<'a> Responses<'a> {
    pub fn new(mass: Vec<f64>, sums: Vec<f64>, carrier: f64) -> Responses<'a> {
        Responses { on: On::Sums([mass, sums]), carrier, hard: OnceLock::new() }
    }

    /// Of a draw without pseudo-samples.
    pub fn plain<F: Family>(model: &Regression<F>, f: &'a Measure) -> Responses<'a> {
        let data = f.observed();
        let y = data.y.as_ref().and_then(|y| y.as_slice()).expect("regression data have responses");
        let carrier = model.carrier(f);
        let w = if data.n() > model.large { f.row_weights() } else { RowWeights::Kept(f.weights().0) };
        Responses { on: On::Weights(w, y), carrier, hard: OnceLock::new() }
    }

    /// Masses and sums of all rows of a chunk.
    pub fn chunk(&self, chunk: usize, mass: &mut [f64], sums: &mut [f64]) {
        let rows = chunk * CHUNK..chunk * CHUNK + mass.len();
        match &self.on {
            On::Sums([all, of_all]) => {
                mass.copy_from_slice(&all[rows.clone()]);
                sums.copy_from_slice(&of_all[rows]);
            }
            On::Weights(w, y) => {
                w.chunk(chunk, mass);
                let products = mass.iter().zip(&y[rows]).map(|(w, y)| w * y);
                sums.iter_mut().zip(products).for_each(|(sum, product)| *sum = product);
            }
        }
    }

    /// Masses of some rows, the first of which begins a chunk.
    pub fn mass(&self, rows: Range<usize>) -> Cow<'_, [f64]> {
        match &self.on {
            On::Sums([mass, _]) => Cow::Borrowed(&mass[rows]),
            On::Weights(RowWeights::Kept(w), _) => Cow::Borrowed(&w[rows]),
            On::Weights(w, _) => {
                let mut mass = vec![0.0; rows.len()];
                let first = rows.start / CHUNK;
                (first..).zip(mass.chunks_mut(CHUNK)).for_each(|(c, out)| w.chunk(c, out));
                Cow::Owned(mass)
            }
        }
    }

    /// Masses of all rows of a chunk.
    pub fn masses_of_chunk(&self, chunk: usize, mass: &mut [f64]) {
        match &self.on {
            On::Sums([all, _]) => mass.copy_from_slice(&all[chunk * CHUNK..][..mass.len()]),
            On::Weights(w, _) => w.chunk(chunk, mass),
        }
    }

    /// The responses of the rows, if no pseudo-samples add to them.
    pub fn plain_responses(&self) -> Option<&'a [f64]> {
        match &self.on {
            On::Sums(_) => None,
            On::Weights(_, y) => Some(y),
        }
    }

    /// Sums of some rows, the first of which begins a chunk.
    pub fn sums(&self, rows: Range<usize>) -> Cow<'_, [f64]> {
        match &self.on {
            On::Sums([_, sums]) => Cow::Borrowed(&sums[rows]),
            On::Weights(_, y) => {
                Cow::Owned(self.mass(rows.clone()).iter().zip(&y[rows]).map(|(w, y)| w * y).collect())
            }
        }
    }

    /// Masses and sums of some rows, the first of which begins a chunk.
    pub fn of(&self, rows: &Range<usize>) -> [Cow<'_, [f64]>; 2] {
        [self.mass(rows.clone()), self.sums(rows.clone())]
    }

    /// Masses and sums of the hard rows.
    pub fn hard(&self, hard: &Hard) -> &[Vec<f64>; 2] {
        self.hard.get_or_init(|| {
            let mut picked = [(); 2].map(|()| vec![0.0; hard.rows.len()]);
            let mut places: Vec<usize> = (0..hard.rows.len()).collect();
            places.sort_unstable_by_key(|&at| hard.rows[at]);
            for places in places.chunk_by(|&a, &b| hard.rows[a] / CHUNK == hard.rows[b] / CHUNK) {
                let first = hard.rows[places[0]] / CHUNK * CHUNK;
                let last = hard.rows[places[places.len() - 1]];
                let of_rows = self.of(&(first..last + 1));
                for (picked, of_rows) in picked.iter_mut().zip(&of_rows) {
                    places.iter().for_each(|&at| picked[at] = of_rows[hard.rows[at] - first]);
                }
            }
            picked
        })
    }
}

/// The rows of draws that share them.
pub struct Ground<'a> {
    rows: Cow<'a, Dataset>,
    observed: &'a Dataset,
    /// Some rows belong to one draw alone.
    alone: bool,
}

impl<'a> Ground<'a> {
    /// The ground of draws that share their rows, and what each has on it.
    pub fn new<'m: 'a, F: Family>(
        model: &'a Regression<F>,
        block: impl Iterator<Item = &'a Measure<'m>>,
    ) -> (Self, Vec<Responses<'a>>) {
        let mut block = block.peekable();
        if let Some(first) = block.next_if(|f| f.is_plain()) {
            let observed: &'a Dataset = first.observed();
            let responses = std::iter::once(first).chain(block).map(|f| Responses::plain(model, f)).collect();
            return (Ground { rows: Cow::Borrowed(observed), observed, alone: false }, responses);
        }
        let masses: Vec<_> = block.map(|f| (f.masses(), model.carrier(f))).collect();
        let ((first, others), _) = &masses[0];
        let observed: &'a Dataset = first.rows;
        let (rows, alone) = match others {
            None => (Cow::Borrowed(observed), false),
            Some(others) if others.shared.is_some() => {
                (Cow::Borrowed(model.stack.get_or_init(|| stack(model, observed, others.rows))), false)
            }
            Some(others) => (Cow::Owned(Dataset::stack(observed, others.rows)), true),
        };
        let join = |((observed, others), carrier): ((Masses, Option<Masses>), f64)| {
            let (mut mass, mut sums) = (observed.mass, observed.response);
            if let Some(others) = others {
                mass.extend(others.mass);
                sums.extend(others.response);
            }
            Responses::new(mass, sums, carrier)
        };
        (Ground { rows, observed, alone }, masses.into_iter().map(join).collect())
    }

    /// Second-order information. That of the observed rows serves where a draw has rows of its own: a search mends it.
    pub fn shared<'m, F: Family>(&self, model: &'m Regression<F>) -> &'m Shared {
        if !self.alone {
            return model.metric(&self.rows);
        }
        match self.observed.n() {
            0 => &Shared::Unknown,
            _ => match model.metric(self.observed) {
                Shared::Rows(..) => &Shared::Unknown,
                shared => shared,
            },
        }
    }

    /// The rows that draws have in common.
    pub fn lasting(&self) -> &Dataset {
        if self.alone { self.observed } else { &self.rows }
    }

    pub fn objective<'s, F: Family>(
        &'s self,
        model: &'s Regression<F>,
        shared: &'s Shared,
        responses: Vec<Responses<'s>>,
    ) -> Objective<'s, F> {
        Objective::new(model, shared, &self.rows, responses)
    }
}

/// The observed rows, then those that pseudo-samples are taken from; as a data set each counts as F has it on average.
fn stack<F: Family>(model: &Regression<F>, observed: &Dataset, others: &Dataset) -> Dataset {
    let alpha = model.mass - observed.mass();
    let of_observed = (0..observed.n()).map(|i| observed.weight(i));
    let of_others = (0..others.n()).map(|i| alpha * others.weight(i) / others.mass());
    let weights = of_observed.chain(of_others).collect();
    Dataset::stack(observed, others).with_design(Design::new(Some(weights), None, None))
}

//! The two precisions of a pass: doubles, and singles for the way to a minimum.

use std::ops::Range;

use super::{Mixture, splat_all};
use crate::kernel::vector::{Arithmetic, LANES, Lanes, Vector};
use crate::kernel::{Panel, load};

/// How rows are taken up and sums are laid down.
pub trait Precision<V: Vector> {
    type Number: Arithmetic;
    /// The log likelihood is summed up too.
    const VALUE: bool;

    /// Steps over a panel, in runs after each of which sums are laid down.
    fn runs(panel: &Panel) -> impl Iterator<Item = Range<usize>>;

    /// The rows of a step, one entry for each column.
    fn rows(panel: &Panel, step: usize, y: &mut [Self::Number]);

    /// Means of components, from where rows are taken from.
    fn means(panel: &Panel, mean: &[f64], means: &mut [Self::Number]);

    /// Their weights, 0 beyond the last.
    fn weights(w: &[f64], step: usize) -> Self::Number;

    /// Adds to a sum in doubles.
    fn add(acc: &mut Lanes, a: Self::Number);
}

/// A step is eight rows in doubles, a panel one run.
pub struct Exact;

impl<V: Vector> Precision<V> for Exact {
    type Number = V;
    const VALUE: bool = true;

    #[inline(always)]
    fn runs(panel: &Panel) -> impl Iterator<Item = Range<usize>> {
        std::iter::once(0..panel.groups())
    }

    #[inline(always)]
    fn rows(panel: &Panel, step: usize, y: &mut [V]) {
        for (y, column) in y.iter_mut().zip(panel.group(step)) {
            *y = V::load(column);
        }
    }

    #[inline(always)]
    fn means(_: &Panel, mean: &[f64], means: &mut [V]) {
        splat_all(mean, means);
    }

    #[inline(always)]
    fn weights(w: &[f64], step: usize) -> V {
        V::load(&load(w, step))
    }

    #[inline(always)]
    fn add(acc: &mut Lanes, a: V) {
        *acc = V::load(acc).add(a).lanes();
    }
}

/// A step is sixteen rows in singles, taken from the centre of the panel.
pub struct Rough;

/// Steps whose sums may be made in singles: 64 roundings of a sum still leave five digits of it.
const RUN: usize = 64;

impl<V: Vector> Precision<V> for Rough {
    type Number = V::Singles;
    const VALUE: bool = false;

    #[inline(always)]
    fn runs(panel: &Panel) -> impl Iterator<Item = Range<usize>> {
        let steps = panel.groups().div_ceil(2);
        (0..steps).step_by(RUN).map(move |start| start..(start + RUN).min(steps))
    }

    #[inline(always)]
    fn rows(panel: &Panel, step: usize, y: &mut [V::Singles]) {
        // A last group without another stands for both: the weights of the second are 0.
        let (low, high) = (panel.group(2 * step), panel.group((2 * step + 1).min(panel.groups() - 1)));
        for j in 0..y.len() {
            let centre = V::splat(panel.centre[j]);
            y[j] = V::load(&low[j]).sub(centre).singles(V::load(&high[j]).sub(centre));
        }
    }

    #[inline(always)]
    fn means(panel: &Panel, mean: &[f64], means: &mut [V::Singles]) {
        for i in 0..means.len() {
            means[i] = V::Singles::splat(mean[i] - panel.centre[i % panel.d()]);
        }
    }

    #[inline(always)]
    fn weights(w: &[f64], step: usize) -> V::Singles {
        let rest = &w[2 * step * LANES..];
        let mut last = [[0.0; LANES]; 2];
        let [low, high] = match rest.first_chunk::<{ 2 * LANES }>() {
            Some(full) => full.as_chunks().0.first_chunk().expect("twice eight"),
            None => {
                last.as_flattened_mut()[..rest.len()].copy_from_slice(rest);
                &last
            }
        };
        V::load(low).singles(V::load(high))
    }

    #[inline(always)]
    fn add(acc: &mut Lanes, a: V::Singles) {
        let [low, high] = V::doubles(a);
        *acc = V::load(acc).add(low.add(high)).lanes();
    }
}

/// Widths of a component that half of a column's range may be for singles to tell the rows near it apart: z is then off by
/// 10⁻³ at most.
const WIDTHS: f64 = 1e4;

impl Panel {
    /// Singles tell the rows near every component apart.
    pub fn suits_singles(&self, mixture: &Mixture) -> bool {
        let wide = |(i, inverse_sd): (usize, &f64)| self.reach[i % self.d] * inverse_sd <= WIDTHS;
        mixture.inverse_sd.iter().enumerate().all(wide)
    }
}

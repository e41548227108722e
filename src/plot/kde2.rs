//! Densities of draws of two parameters.
//!
//! A product of Gaussian kernels on a grid. Each axis has the bandwidth of its own density ([`super::kde`]), widened from the
//! rate n^(−1/5) of one dimension to the n^(−1/6) of two, and narrowed where the two are correlated, as is best for a normal
//! density and kernels along the axes: (1 − ρ²)^(5/12) (1 + ρ²/2)^(−1/6) (Wand and Jones 1995, section 4.7). At bounds the kernel is
//! divided by its mass within them, axis by axis. The result integrates to 1, or to the share of the draws that are within limits.

use super::kde::{Bounds, Density};

/// Points of the grid along an axis.
const GRID: usize = 192;
/// Bandwidths beyond the draws that the grid covers.
const MARGIN: f64 = 3.0;

/// A density on a grid: `values[row * columns + column]`, rows along y.
#[derive(Clone, Debug)]
pub struct Surface {
    pub x: Grid,
    pub y: Grid,
    pub values: Vec<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grid {
    pub low: f64,
    pub step: f64,
    pub points: usize,
}

impl Grid {
    pub fn at(&self, i: usize) -> f64 {
        self.low + self.step * i as f64
    }

    pub fn high(&self) -> f64 {
        self.at(self.points - 1)
    }
}

/// What is to be seen of an axis; all of it if nothing is said.
pub type Limits = Option<(f64, f64)>;

/// One axis: where its grid is, and how wide its kernel.
struct Axis {
    grid: Grid,
    bandwidth: f64,
    bounds: Bounds,
}

impl Axis {
    /// Of the values within `limits`, and a little beyond; `None` if they do not vary.
    fn new(
        values: &[f64],
        weights: Option<&[f64]>,
        bounds: Bounds,
        limits: Limits,
        widen: f64,
    ) -> Option<Axis> {
        let bounds = if values.iter().all(|&v| bounds.admit(v)) { bounds } else { Bounds::NONE };
        // Kernels are as wide as is good for what is seen, with some room around it.
        let near = |v: f64, (low, high): (f64, f64)| (v - 0.5 * (low + high)).abs() <= high - low;
        let seen = |i: &usize| limits.is_none_or(|limits| near(values[*i], limits));
        let places: Vec<usize> = (0..values.len()).filter(seen).collect();
        let weights: Option<Vec<f64>> = weights.map(|w| places.iter().map(|&i| w[i]).collect());
        let values: Vec<f64> = places.iter().map(|&i| values[i]).collect();
        let density = Density::of(&values, weights.as_deref(), bounds)?;
        let finite = || values.iter().copied().filter(|v| v.is_finite());
        let (first, last) = density.window();
        let first = first.max(finite().fold(f64::INFINITY, f64::min));
        let last = last.min(finite().fold(f64::NEG_INFINITY, f64::max));
        let (first, last) = limits.map_or((first, last), |(low, high)| (first.max(low), last.min(high)));
        if last.partial_cmp(&first) != Some(std::cmp::Ordering::Greater) {
            return None;
        }
        let least = (last - first) / 60.0;
        let bandwidth = (density.bandwidth * widen).max(least);
        let reach = MARGIN * bandwidth;
        let low = bounds.lower.map_or(first - reach, |l| l.max(first - reach));
        let high = bounds.upper.map_or(last + reach, |u| u.min(last + reach));
        let grid = Grid { low, step: (high - low) / (GRID - 1) as f64, points: GRID };
        Some(Axis { grid, bandwidth, bounds })
    }

    /// Gaussian weights from every point of the grid to every other, each column divided by the kernel's mass within the bounds.
    fn kernel(&self) -> Vec<f64> {
        let h = self.bandwidth;
        let cdf = |x: f64| 0.5 * libm::erfc(-x / std::f64::consts::SQRT_2);
        let within = |x: f64| {
            let above = self.bounds.lower.map_or(0.0, |l| cdf((l - x) / h));
            self.bounds.upper.map_or(1.0, |u| cdf((u - x) / h)) - above
        };
        let row = |i: usize| {
            let x = self.grid.at(i);
            let mass = within(x);
            (0..GRID).map(move |j| {
                let u = (self.grid.at(j) - x) / h;
                if u.abs() > 5.0 { 0.0 } else { libm::exp(-0.5 * u * u) / mass }
            })
        };
        (0..GRID).flat_map(row).collect()
    }
}

fn correlation(x: &[f64], y: &[f64], weight: &dyn Fn(usize) -> f64) -> f64 {
    let total: f64 = (0..x.len()).map(weight).sum();
    let mean = |v: &[f64]| v.iter().enumerate().map(|(i, v)| weight(i) * v).sum::<f64>() / total;
    let (a, b) = (mean(x), mean(y));
    let cross = |f: &dyn Fn(usize) -> f64| (0..x.len()).map(|i| weight(i) * f(i)).sum::<f64>();
    let xy = cross(&|i| (x[i] - a) * (y[i] - b));
    let (xx, yy) = (cross(&|i| (x[i] - a).powi(2)), cross(&|i| (y[i] - b).powi(2)));
    xy / (xx * yy).sqrt()
}

/// Pearson's, of draws with weights.
pub fn weighted_correlation(x: &[f64], y: &[f64], weights: Option<&[f64]>) -> f64 {
    correlation(x, y, &|i| weights.map_or(1.0, |w| w[i]))
}

impl Surface {
    /// `None` if either parameter does not vary.
    pub fn of(x: &[f64], y: &[f64], weights: Option<&[f64]>, bounds: [Bounds; 2]) -> Option<Surface> {
        Surface::within(x, y, weights, bounds, [None; 2])
    }

    /// The part within limits: a long tail beyond them does not coarsen what is seen. It has the mass of the draws that are there.
    pub fn within(
        x: &[f64],
        y: &[f64],
        weights: Option<&[f64]>,
        bounds: [Bounds; 2],
        limits: [Limits; 2],
    ) -> Option<Surface> {
        let weight = |i: usize| weights.map_or(1.0, |w| w[i]);
        let (sum, squares) = (0..x.len()).map(weight).fold((0.0, 0.0), |(s, q), w| (s + w, q + w * w));
        let rho = weighted_correlation(x, y, weights);
        let rho2 = if rho.is_finite() { (rho * rho).min(0.999) } else { 0.0 };
        let narrow = libm::pow(1.0 - rho2, 5.0 / 12.0) * libm::pow(1.0 + rho2 / 2.0, -1.0 / 6.0);
        let widen = libm::pow(sum * sum / squares, 1.0 / 5.0 - 1.0 / 6.0) * narrow;
        let across = Axis::new(x, weights, bounds[0], limits[0], widen)?;
        let up = Axis::new(y, weights, bounds[1], limits[1], widen)?;
        let mut mass = vec![0.0; GRID * GRID];
        for i in 0..x.len() {
            spread(&mut mass, &across.grid, &up.grid, x[i], y[i], weight(i));
        }
        let values = smooth(&mass, &across, &up);
        let total: f64 = values.iter().sum::<f64>() * across.grid.step * up.grid.step;
        let here = mass.iter().sum::<f64>() / sum;
        let values = values.into_iter().map(|v| here * v / total).collect();
        Some(Surface { x: across.grid, y: up.grid, values })
    }

    /// The levels whose regions of highest density hold these shares of all mass; 0 where the grid has less than that.
    pub fn levels(&self, shares: &[f64]) -> Vec<f64> {
        let mut sorted = self.values.clone();
        sorted.sort_unstable_by(|a, b| b.total_cmp(a));
        let cell = self.x.step * self.y.step;
        let level = |share: &f64| {
            let mut mass = 0.0;
            let reached = sorted.iter().find(|v| {
                mass += **v * cell;
                mass >= *share
            });
            reached.copied().unwrap_or(0.0)
        };
        shares.iter().map(level).collect()
    }

    pub fn peak(&self) -> f64 {
        self.values.iter().copied().fold(0.0, f64::max)
    }
}

/// A point's weight, divided between the four points of the grid around it.
fn spread(mass: &mut [f64], x: &Grid, y: &Grid, px: f64, py: f64, weight: f64) {
    let place = |grid: &Grid, v: f64| {
        let at = (v - grid.low) / grid.step;
        let inside = (-1e-9..=(grid.points - 1) as f64 + 1e-9).contains(&at);
        let cell = (at.max(0.0) as usize).min(grid.points - 2);
        inside.then(|| (cell, (at - cell as f64).clamp(0.0, 1.0)))
    };
    if let (Some((i, a)), Some((j, b))) = (place(x, px), place(y, py)) {
        for (row, share) in [(j, 1.0 - b), (j + 1, b)] {
            mass[row * x.points + i] += weight * share * (1.0 - a);
            mass[row * x.points + i + 1] += weight * share * a;
        }
    }
}

/// Along x, then along y.
fn smooth(mass: &[f64], across: &Axis, up: &Axis) -> Vec<f64> {
    let (kernel_x, kernel_y) = (across.kernel(), up.kernel());
    let mut rows = vec![0.0; GRID * GRID];
    for (from, to) in mass.chunks_exact(GRID).zip(rows.chunks_exact_mut(GRID)) {
        for (m, kernel) in from.iter().zip(kernel_x.chunks_exact(GRID)).filter(|(m, _)| **m != 0.0) {
            to.iter_mut().zip(kernel).for_each(|(t, k)| *t += m * k);
        }
    }
    let mut values = vec![0.0; GRID * GRID];
    for (row, kernel) in rows.chunks_exact(GRID).zip(kernel_y.chunks_exact(GRID)) {
        for (to, k) in values.chunks_exact_mut(GRID).zip(kernel).filter(|(_, k)| **k != 0.0) {
            to.iter_mut().zip(row).for_each(|(t, m)| *t += k * m);
        }
    }
    values
}

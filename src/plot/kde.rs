//! Densities of draws.
//!
//! The estimator is a Gaussian kernel sum on a grid, corrected at known bounds by the local linear fit of Jones (1993) in the
//! positive form of Jones and Foster (1996): f̄ exp(f̂/f̄ − 1), with f̄ the kernel estimate divided by the kernel's mass within the
//! bounds and f̂ the local linear one. Away from bounds all three are the plain kernel estimate. The result integrates to 1.
//!
//! The bandwidth is the improved plug-in rule of Botev, Grotowski and Kroese (2010), which assumes no normal shape and so
//! keeps modes apart; below [`FEW`] effective draws, or where that rule has no answer, it is Silverman's
//! 0.9 min(sd, IQR/1.34) n^(−1/5). It is never more than the oversmoothing bound 1.144 sd n^(−1/5) of Terrell (1990), and never less
//! than [`NARROWEST`] of Silverman's. Where it is less than [`SPARSE`] of the oversmoothing bound, a density has details of very
//! different scales, and kernels are the wider the sparser draws are, up to that share: as √(peak/density), which is the rule of
//! Abramson (1982). Draws with weights count as (Σw)²/Σw². Values that many draws share are no part of a
//! density: they are [`Spike`]s.

use std::f64::consts::PI;

use super::fft::{convolve, cosines};

/// Points of the grid.
const GRID: usize = 4096;
/// Fewer effective draws than this have their bandwidth by Silverman's rule.
const FEW: f64 = 50.0;
/// A value is a spike if it has at least this share of all draws, and at least so many of them.
const SPIKE_SHARE: f64 = 0.01;
const SPIKE_COUNT: usize = 5;
/// Values this close, in interquartile ranges, are the same to any eye.
const SAME: f64 = 1e-5;
/// So many of them are no accident; of values that are exactly equal [`SPIKE_COUNT`] are enough.
const SAME_COUNT: usize = 10;
/// Draws further than this many interquartile ranges from the quartiles are beyond the grid.
const FAR: f64 = 25.0;
/// No bandwidth is less than this share of Silverman's: where a density has a pole, the plug-in rule has eyes for nothing else.
const NARROWEST: f64 = 0.07;
/// The widest kernel where draws are sparse, as a share of the oversmoothing bound.
const SPARSE: f64 = 0.5;
/// The grid has all draws but this share at either end, however far they are.
const TAIL: f64 = 0.002;
/// Closer to a bound than this share of the support is at it.
const AT_BOUND: f64 = 1e-9;
/// Where the kernel ends, in bandwidths: it is below 1e-8 of its height there.
const REACH: f64 = 6.2;

/// Where values can be.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bounds {
    pub lower: Option<f64>,
    pub upper: Option<f64>,
}

impl Bounds {
    pub const NONE: Bounds = Bounds { lower: None, upper: None };
    pub const POSITIVE: Bounds = Bounds { lower: Some(0.0), upper: None };
    pub const UNIT: Bounds = Bounds { lower: Some(0.0), upper: Some(1.0) };

    /// A value that is at a bound but for rounding, at it. A support without end has no scale to tell by.
    fn snapped(self, value: f64) -> f64 {
        match (self.lower, self.upper) {
            (Some(l), Some(u)) if (value - l).abs() < AT_BOUND * (u - l) => l,
            (Some(l), Some(u)) if (u - value).abs() < AT_BOUND * (u - l) => u,
            _ => value,
        }
    }

    pub fn admit(self, value: f64) -> bool {
        self.lower.is_none_or(|l| value >= l) && self.upper.is_none_or(|u| value <= u)
    }
}

/// A value that many draws share, and their part of the mass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spike {
    pub at: f64,
    pub mass: f64,
}

impl Spike {
    /// Both in one, where the larger is.
    fn with(self, other: Spike) -> Spike {
        let at = if other.mass > self.mass { other.at } else { self.at };
        Spike { at, mass: self.mass + other.mass }
    }
}

/// A density on a grid, and spikes beside it.
#[derive(Clone, Debug)]
pub struct Density {
    pub low: f64,
    pub step: f64,
    /// Of the continuous part; with the spikes and what is beyond the grid the mass is 1. Empty if all is spikes.
    pub values: Vec<f64>,
    pub spikes: Vec<Spike>,
    pub bandwidth: f64,
    /// Share of the mass that lies too far out to be on the grid.
    pub beyond: f64,
}

impl Density {
    /// Of values with weights, or each with the same; those that are not numbers are left out. `None` if nothing is left.
    pub fn of(values: &[f64], weights: Option<&[f64]>, bounds: Bounds) -> Option<Density> {
        let sorted = Sorted::new(&values.iter().map(|v| bounds.snapped(*v)).collect::<Vec<_>>(), weights);
        if sorted.values.is_empty() || sorted.total <= 0.0 {
            return None;
        }
        let bounds = if sorted.values.iter().all(|&v| bounds.admit(v)) { bounds } else { Bounds::NONE };
        let (rest, spikes) = sorted.without_spikes();
        let mut density =
            Density { low: 0.0, step: 0.0, values: Vec::new(), spikes, bandwidth: 0.0, beyond: 0.0 };
        if rest.values.is_empty() || rest.values.first() == rest.values.last() {
            let alone = rest.values.first().map(|&at| Spike { at, mass: rest.total / sorted.total });
            density.spikes.extend(alone);
            return Some(density);
        }
        density.spread(&rest, sorted.total, bounds);
        Some(density)
    }

    /// The continuous part.
    fn spread(&mut self, rest: &Sorted, total: f64, bounds: Bounds) {
        let scale = rest.scale();
        let pad = (REACH * scale.oversmoothed).max(1e-9 * (rest.last() - rest.first()));
        let iqr = scale.iqr;
        let near = |edge: f64, limit: f64, inner: fn(f64, f64) -> f64| {
            if iqr > 0.0 { inner(edge, limit) } else { edge }
        };
        let (least, most) = (rest.quantile(TAIL), rest.quantile(1.0 - TAIL));
        let first = near(rest.first(), least.min(scale.quartiles.0 - FAR * iqr), f64::max);
        let last = near(rest.last(), most.max(scale.quartiles.1 + FAR * iqr), f64::min);
        let low = bounds.lower.map_or(first - pad, |l| if first - l <= pad { l } else { first - pad });
        let high = bounds.upper.map_or(last + pad, |u| if u - last <= pad { u } else { last + pad });
        let step = (high - low) / (GRID - 1) as f64;
        let (mass, inside) = rest.binned(low, step);
        let bandwidth = improved_plug_in(&mass, rest.effective)
            .map(|t| t * GRID as f64 * step)
            .filter(|_| rest.effective >= FEW)
            .unwrap_or(scale.silverman)
            .clamp(step.max(NARROWEST * scale.silverman), scale.oversmoothed.max(step));
        let ends =
            Bounds { lower: bounds.lower.filter(|l| *l == low), upper: bounds.upper.filter(|u| *u == high) };
        self.values = adapted(&mass, step, (bandwidth, SPARSE * scale.oversmoothed), ends);
        let integral =
            step * (self.values.iter().sum::<f64>() - 0.5 * (self.values[0] + self.values[GRID - 1]));
        self.values.iter_mut().for_each(|v| *v *= inside / total / integral);
        (self.low, self.step, self.bandwidth) = (low, step, bandwidth);
        self.beyond = ((rest.total - inside) / total).max(0.0);
    }

    pub fn high(&self) -> f64 {
        self.low + self.step * self.values.len().saturating_sub(1) as f64
    }

    /// Linear between the points of the grid, 0 beyond.
    pub fn at(&self, x: f64) -> f64 {
        let place = (x - self.low) / self.step;
        let last = self.values.len().saturating_sub(1) as f64;
        if self.values.is_empty() || !(0.0..=last).contains(&place) {
            return 0.0;
        }
        let i = (place as usize).min(self.values.len() - 2);
        let share = place - i as f64;
        (1.0 - share) * self.values[i] + share * self.values[i + 1]
    }

    /// The mean from `a` to `b`: what a picture shows of a density that has more detail than it.
    pub fn over(&self, a: f64, b: f64) -> f64 {
        let first = ((a - self.low) / self.step).ceil().max(0.0);
        let last = ((b - self.low) / self.step).floor().min(self.values.len().saturating_sub(1) as f64);
        if last - first < 2.0 {
            return self.at(0.5 * (a + b));
        }
        let inside = &self.values[first as usize..=last as usize];
        inside.iter().sum::<f64>() / inside.len() as f64
    }

    pub fn peak(&self) -> f64 {
        self.values.iter().copied().fold(0.0, f64::max)
    }

    /// The part of the grid that is worth drawing: where the density is above a thousandth of its peak, and the spikes.
    pub fn window(&self) -> (f64, f64) {
        let floor = 1e-3 * self.peak();
        let visible = |v: &f64| *v > floor;
        let first = self.values.iter().position(visible).map(|i| self.low + self.step * i as f64);
        let last = self.values.iter().rposition(visible).map(|i| self.low + self.step * i as f64);
        let spikes = || self.spikes.iter().map(|s| s.at);
        let low = spikes().chain(first).fold(f64::INFINITY, f64::min);
        (low, spikes().chain(last).fold(f64::NEG_INFINITY, f64::max))
    }
}

/// Values in order, with their weights.
struct Sorted {
    values: Vec<f64>,
    /// Empty where each counts 1.
    weights: Vec<f64>,
    total: f64,
    effective: f64,
}

struct Scale {
    silverman: f64,
    oversmoothed: f64,
    iqr: f64,
    quartiles: (f64, f64),
}

impl Sorted {
    fn new(values: &[f64], weights: Option<&[f64]>) -> Sorted {
        match weights {
            None => {
                let mut values: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
                values.sort_unstable_by(f64::total_cmp);
                Sorted::of(values, Vec::new())
            }
            Some(weights) => {
                let pairs = values.iter().copied().zip(weights.iter().copied());
                let mut pairs: Vec<(f64, f64)> = pairs.filter(|(v, w)| v.is_finite() && *w > 0.0).collect();
                pairs.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
                let (values, weights) = pairs.into_iter().unzip();
                Sorted::of(values, weights)
            }
        }
    }

    fn of(values: Vec<f64>, weights: Vec<f64>) -> Sorted {
        let n = values.len() as f64;
        let total = if weights.is_empty() { n } else { weights.iter().sum() };
        let squares: f64 = weights.iter().map(|w| w * w).sum();
        let effective = if weights.is_empty() { n } else { total * total / squares };
        Sorted { values, weights, total, effective }
    }

    fn weight(&self, i: usize) -> f64 {
        self.weights.get(i).copied().unwrap_or(1.0)
    }

    fn first(&self) -> f64 {
        self.values[0]
    }

    fn last(&self) -> f64 {
        self.values[self.values.len() - 1]
    }

    /// Values that many share are taken out.
    fn without_spikes(&self) -> (Sorted, Vec<Spike>) {
        let (mut values, mut weights, mut spikes) = (Vec::new(), Vec::new(), Vec::<Spike>::new());
        // What rounding alone sets apart is the same value, too.
        let rounding = 1e-13 * self.first().abs().max(self.last().abs());
        let near = (SAME * (self.quantile(0.75) - self.quantile(0.25))).max(rounding);
        let mut start = 0;
        while start < self.values.len() {
            let first = self.values[start];
            // Most values have no neighbour that near: one look tells.
            let alone = self.values.get(start + SPIKE_COUNT - 1).is_none_or(|v| v - first > near);
            let count = if alone { 1 } else { self.values[start..].partition_point(|v| v - first <= near) };
            let equal = count > 1 && self.values[start + count - 1] == first;
            let mass: f64 = if alone { 0.0 } else { (start..start + count).map(|i| self.weight(i)).sum() };
            let enough = if equal { SPIKE_COUNT } else { SAME_COUNT };
            if count >= enough && mass >= SPIKE_SHARE * self.total {
                let middle = self.values[start + count / 2];
                let spike = Spike { at: middle, mass: mass / self.total };
                match spikes.last_mut() {
                    // Two neighbourhoods of one value.
                    Some(last) if spike.at - last.at <= 2.0 * near => *last = last.with(spike),
                    _ => spikes.push(spike),
                }
                start += count;
            } else {
                values.push(first);
                weights.extend(self.weights.get(start));
                start += 1;
            }
        }
        (Sorted::of(values, weights), spikes)
    }

    fn quantile(&self, q: f64) -> f64 {
        if self.weights.is_empty() {
            return crate::math::quantile_sorted(&self.values, q);
        }
        let mut mass = 0.0;
        let reached = self.weights.iter().position(|w| {
            mass += w;
            mass >= q * self.total
        });
        self.values[reached.unwrap_or(self.values.len() - 1)]
    }

    fn scale(&self) -> Scale {
        let weighted = |f: &dyn Fn(f64) -> f64| {
            let terms = self.values.iter().enumerate().map(|(i, v)| self.weight(i) * f(*v));
            terms.sum::<f64>() / self.total
        };
        let quartiles = (self.quantile(0.25), self.quantile(0.75));
        let iqr = quartiles.1 - quartiles.0;
        // Far outliers make the standard deviation say nothing of the bulk.
        let limit =
            |v: f64| if iqr > 0.0 { v.clamp(quartiles.0 - FAR * iqr, quartiles.1 + FAR * iqr) } else { v };
        let mean = weighted(&|v| limit(v));
        let sd = weighted(&|v| (limit(v) - mean).powi(2)).sqrt().max(f64::MIN_POSITIVE);
        let robust = if iqr > 0.0 { sd.min(iqr / 1.34) } else { sd };
        let rate = libm::pow(self.effective, -0.2);
        Scale { silverman: 0.9 * robust * rate, oversmoothed: 1.144 * sd * rate, iqr, quartiles }
    }

    /// Shares of the mass at the points of the grid, each value divided between its two neighbours; and the mass that is on it.
    fn binned(&self, low: f64, step: f64) -> (Vec<f64>, f64) {
        let mut mass = vec![0.0; GRID];
        let mut inside = 0.0;
        for (i, v) in self.values.iter().enumerate() {
            let place = (v - low) / step;
            if (-1e-9..=(GRID - 1) as f64 + 1e-9).contains(&place) {
                let at = (place.max(0.0) as usize).min(GRID - 2);
                let (share, w) = ((place - at as f64).clamp(0.0, 1.0), self.weight(i));
                mass[at] += (1.0 - share) * w;
                mass[at + 1] += share * w;
                inside += w;
            }
        }
        mass.iter_mut().for_each(|m| *m /= inside);
        (mass, inside)
    }
}

/// The sum of kernels between the narrowest and the widest bandwidth, as draws are dense or sparse by a pilot estimate; not
/// normalised. Bandwidths are powers of two of the narrowest, and a draw is shared between two of them.
fn adapted(mass: &[f64], step: f64, (narrow, wide): (f64, f64), bounds: Bounds) -> Vec<f64> {
    let levels = (wide / narrow).log2();
    if levels.is_nan() || levels <= 0.0 {
        return smooth(mass, step, narrow, bounds);
    }
    let pilot = smooth(mass, step, (narrow * wide).sqrt(), bounds);
    let peak = pilot.iter().copied().fold(0.0, f64::max);
    let level = |i: usize| (0.5 * (peak / pilot[i]).log2()).clamp(0.0, levels);
    let mut sum = vec![0.0; mass.len()];
    for k in 0..=levels.ceil() as usize {
        let share = |i: usize| (1.0 - (level(i) - k as f64).abs()).max(0.0);
        let part: Vec<f64> =
            mass.iter().enumerate().map(|(i, m)| if *m > 0.0 { m * share(i) } else { 0.0 }).collect();
        if part.iter().any(|m| *m > 0.0) {
            let smoothed = smooth(&part, step, narrow * libm::exp2(k as f64), bounds);
            sum.iter_mut().zip(smoothed).for_each(|(s, v)| *s += v);
        }
    }
    sum
}

/// The kernel sum with its correction at the bounds; not normalised. The grid begins and ends where bounds are.
fn smooth(mass: &[f64], step: f64, bandwidth: f64, bounds: Bounds) -> Vec<f64> {
    let offset = |j: usize| j as f64 * step / bandwidth;
    let reach = (0..mass.len()).take_while(|&j| offset(j) <= REACH);
    let height = 1.0 / ((2.0 * PI).sqrt() * bandwidth);
    let kernels: Vec<(f64, f64)> = reach
        .map(|j| (height * libm::exp(-0.5 * offset(j) * offset(j)), offset(j)))
        .map(|(k, u)| (k, u * k))
        .collect();
    let last = mass.len() - 1;
    let one = |(i, (plain, slope)): (usize, (f64, f64))| {
        let plain = plain.max(0.0);
        let p = bounds.lower.map_or(f64::NEG_INFINITY, |_| -offset(i));
        let q = bounds.upper.map_or(f64::INFINITY, |_| offset(last - i));
        if p < -REACH && q > REACH {
            return plain;
        }
        corrected(plain, slope, p, q)
    };
    convolve(mass, &kernels).into_iter().enumerate().map(one).collect()
}

/// f̄ exp(f̂/f̄ − 1) where the kernel sees offsets from `p` to `q` only; `plain` is Σ K(u), `slope` Σ u K(u).
fn corrected(plain: f64, slope: f64, p: f64, q: f64) -> f64 {
    let phi = |u: f64| if u.is_finite() { libm::exp(-0.5 * u * u) / (2.0 * PI).sqrt() } else { 0.0 };
    let cdf = |u: f64| 0.5 * libm::erfc(-u / std::f64::consts::SQRT_2);
    let weighted = |u: f64| if u.is_finite() { u * phi(u) } else { 0.0 };
    let a0 = cdf(q) - cdf(p);
    let a1 = phi(p) - phi(q);
    let a2 = a0 + weighted(p) - weighted(q);
    let cut = plain / a0;
    let determinant = a0 * a2 - a1 * a1;
    if cut <= 0.0 || determinant <= 1e-12 {
        return cut.max(0.0);
    }
    let linear = (a2 * plain - a1 * slope) / determinant;
    cut * libm::exp((linear / cut - 1.0).clamp(-30.0, 2.0))
}

/// The bandwidth of Botev, Grotowski and Kroese (2010) as a share of the grid's length, for `n` draws; `None` where the
/// fixed point is not found.
fn improved_plug_in(mass: &[f64], n: f64) -> Option<f64> {
    let squares: Vec<f64> = cosines(mass).iter().skip(1).map(|c| c * c).collect();
    // 2 π^2s Σ k^2s c² exp(−k²π²t), ended where terms vanish.
    let roughness = |s: i32, t: f64| {
        let terms = squares.iter().enumerate().map(|(i, c)| (((i + 1) * (i + 1)) as f64 * PI * PI, c));
        let alive = terms.take_while(|(k, _)| k * t < 120.0);
        2.0 * alive.map(|(k, c)| k.powi(s) * c * libm::exp(-k * t)).sum::<f64>()
    };
    let next = |t: f64| {
        let mut f = roughness(7, t);
        for s in (2..7).rev() {
            let odd: f64 = (1..=s).map(|i| (2 * i - 1) as f64).product();
            let k0 = odd / (2.0 * PI).sqrt();
            let c = (1.0 + libm::pow(0.5, s as f64 + 0.5)) / 3.0;
            f = roughness(s, libm::pow(2.0 * c * k0 / (n * f), 2.0 / (3 + 2 * s) as f64));
        }
        libm::pow(2.0 * n * PI.sqrt() * f, -0.4)
    };
    let above = |t: f64| t - next(t) > 0.0;
    // From a bandwidth of one step of the grid to a third of it all, in steps of a quarter.
    let smallest = 1.0 / (mass.len() * mass.len()) as f64;
    let ladder = (0..).map(|i| smallest * libm::pow(1.25, f64::from(i))).take_while(|t| *t < 0.1);
    let found = ladder.into_iter().find(|t| above(*t))?;
    let (mut low, mut high) = (found / 1.25, found);
    for _ in 0..20 {
        let middle = 0.5 * (low + high);
        if above(middle) { high = middle } else { low = middle }
    }
    high.is_finite().then(|| high.sqrt())
}

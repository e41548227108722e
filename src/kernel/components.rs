//! Passes over the atoms of mixtures whose components have matrices or probabilities: Gaussians by L⁻¹(y − μ), with Σ = LLᵀ, and
//! products of Bernoullis by their logits. Diagonal Gaussians have [`super::mixture`].

use super::vector::{LANES, Lanes, Vector, sum};
use super::{Panel, dispatch, load};

/// A mixture prepared for evaluation: log(πₖ |2πΣₖ|^-½), μₖ and the lower triangle of Lₖ⁻¹ by rows, component after component.
#[derive(Clone, Debug, Default)]
pub struct Gaussians {
    pub log_constant: Vec<f64>,
    pub mean: Vec<f64>,
    pub whitening: Vec<f64>,
}

/// A mixture prepared for evaluation: log(πₖ Πⱼ (1 − pₖⱼ)) and log(pₖⱼ/(1 − pₖⱼ)), component after component.
#[derive(Clone, Debug, Default)]
pub struct Bernoullis {
    pub log_constant: Vec<f64>,
    pub logit: Vec<f64>,
}

/// Sums of a pass, lane by lane.
#[derive(Clone, Debug, Default)]
pub struct Moments {
    log_lik: Lanes,
    sums: Vec<Lanes>,
    totals: Vec<f64>,
}

impl Moments {
    /// Zero sums, `each` for every one of K components.
    pub fn reset(&mut self, k: usize, each: usize) {
        self.log_lik = [0.0; LANES];
        self.sums.clear();
        self.sums.resize(k * each, [0.0; LANES]);
    }

    /// After the last pass.
    pub fn finish(&mut self) {
        self.totals.clear();
        self.totals.extend(self.sums.iter().map(sum));
    }

    /// Σ w log f(y).
    pub fn log_lik(&self) -> f64 {
        sum(&self.log_lik)
    }

    /// The `each` sums of component k, once finished.
    pub fn of(&self, k: usize, each: usize) -> &[f64] {
        &self.totals[k * each..(k + 1) * each]
    }
}

/// Sums of a Gaussian in d columns: Σ w r, Σ w r zⱼ, and Σ w r zᵢzⱼ, j ≤ i, by rows; z = L⁻¹(y − μ).
pub fn gaussian_sums(d: usize) -> usize {
    1 + d + d * (d + 1) / 2
}

/// Sums of a product of Bernoullis in d columns: Σ w r and Σ w r yⱼ.
pub fn bernoulli_sums(d: usize) -> usize {
    1 + d
}

dispatch! {
    /// Adds the E step of a mixture of Gaussians and the sums of [`gaussian_sums`].
    pub fn gaussian_step(panel: &Panel, w: &[f64], mixture: &Gaussians, moments: &mut Moments) = gaussian_step_body
}

dispatch! {
    /// log f(yᵢ) of every row.
    pub fn gaussian_density(panel: &Panel, mixture: &Gaussians, out: &mut [f64]) = gaussian_density_body
}

dispatch! {
    /// Adds the E step of a mixture of Bernoullis and the sums of [`bernoulli_sums`].
    pub fn bernoulli_step(panel: &Panel, w: &[f64], mixture: &Bernoullis, moments: &mut Moments) = bernoulli_step_body
}

dispatch! {
    /// log f(yᵢ) of every row.
    pub fn bernoulli_density(panel: &Panel, mixture: &Bernoullis, out: &mut [f64]) = bernoulli_density_body
}

/// Turns log πₖfₖ into exp(log πₖfₖ − max); returns max and Σ e.
#[inline(always)]
fn exponentiate<V: Vector>(e: &mut [V]) -> (V, V) {
    let mut max = V::splat(f64::NEG_INFINITY);
    for log_joint in e.iter() {
        max = max.max(*log_joint);
    }
    let mut total = V::splat(0.0);
    for log_joint in e.iter_mut() {
        *log_joint = log_joint.sub(max).exp();
        total = total.add(*log_joint);
    }
    (max, total)
}

#[inline(always)]
fn rows<V: Vector>(panel: &Panel, g: usize, y: &mut [V]) {
    for (y, column) in y.iter_mut().zip(panel.group(g)) {
        *y = V::load(column);
    }
}

/// Fills `z`, and `e` with log πₖNₖ.
#[inline(always)]
fn gaussian_joint<V: Vector>(y: &[V], mixture: &Gaussians, centred: &mut [V], z: &mut [V], e: &mut [V]) {
    let d = y.len();
    let mut whitening = mixture.whitening.iter();
    for (k, log_joint) in e.iter_mut().enumerate() {
        for j in 0..d {
            centred[j] = y[j].sub(V::splat(mixture.mean[k * d + j]));
        }
        let mut square = V::splat(0.0);
        for i in 0..d {
            let mut t = V::splat(0.0);
            for (centred, whitening) in centred[..=i].iter().zip(whitening.by_ref().take(i + 1)) {
                t = centred.fma(V::splat(*whitening), t);
            }
            square = t.fma(t, square);
            z[k * d + i] = t;
        }
        *log_joint = square.fma(V::splat(-0.5), V::splat(mixture.log_constant[k]));
    }
}

#[inline(always)]
fn gaussian_step_body<V: Vector>(panel: &Panel, w: &[f64], mixture: &Gaussians, moments: &mut Moments) {
    let (k, d) = (mixture.log_constant.len(), panel.d());
    let each = gaussian_sums(d);
    let zeros = |len: usize| vec![V::splat(0.0); len];
    let (mut y, mut centred, mut z, mut e) = (zeros(d), zeros(d), zeros(k * d), zeros(k));
    let (mut sums, mut log_lik) = (zeros(k * each), V::splat(0.0));
    for g in 0..panel.groups() {
        rows(panel, g, &mut y);
        let weight = V::load(&load(w, g));
        gaussian_joint(&y, mixture, &mut centred, &mut z, &mut e);
        let (max, total) = exponentiate(&mut e);
        log_lik = weight.fma(max.add(total.ln()), log_lik);
        let share = weight.div(total);
        for (c, sums) in sums.chunks_exact_mut(each).enumerate() {
            let (r, z) = (e[c].mul(share), &z[c * d..(c + 1) * d]);
            let (mass, rest) = sums.split_first_mut().expect("Σ w r is the first");
            let (first, mut second) = rest.split_at_mut(d);
            *mass = mass.add(r);
            for i in 0..d {
                let rz = r.mul(z[i]);
                first[i] = first[i].add(rz);
                let (row, below) = second.split_at_mut(i + 1);
                for (sum, z) in row.iter_mut().zip(z) {
                    *sum = rz.fma(*z, *sum);
                }
                second = below;
            }
        }
    }
    lay_down(log_lik, &sums, moments);
}

#[inline(always)]
fn lay_down<V: Vector>(log_lik: V, sums: &[V], moments: &mut Moments) {
    let add = |to: &mut Lanes, part: V| *to = V::load(to).add(part).lanes();
    add(&mut moments.log_lik, log_lik);
    moments.sums.iter_mut().zip(sums).for_each(|(to, part)| add(to, *part));
}

#[inline(always)]
fn gaussian_density_body<V: Vector>(panel: &Panel, mixture: &Gaussians, out: &mut [f64]) {
    let (k, d) = (mixture.log_constant.len(), panel.d());
    let zeros = |len: usize| vec![V::splat(0.0); len];
    let (mut y, mut centred, mut z, mut e) = (zeros(d), zeros(d), zeros(k * d), zeros(k));
    for (g, out) in out.chunks_mut(LANES).enumerate() {
        rows(panel, g, &mut y);
        gaussian_joint(&y, mixture, &mut centred, &mut z, &mut e);
        let (max, total) = exponentiate(&mut e);
        out.copy_from_slice(&max.add(total.ln()).lanes()[..out.len()]);
    }
}

/// Fills `e` with log πₖfₖ.
#[inline(always)]
fn bernoulli_joint<V: Vector>(y: &[V], mixture: &Bernoullis, e: &mut [V]) {
    for ((log_joint, constant), logits) in
        e.iter_mut().zip(&mixture.log_constant).zip(mixture.logit.chunks_exact(y.len().max(1)))
    {
        let mut t = V::splat(*constant);
        for (y, logit) in y.iter().zip(logits) {
            t = y.fma(V::splat(*logit), t);
        }
        *log_joint = t;
    }
}

#[inline(always)]
fn bernoulli_step_body<V: Vector>(panel: &Panel, w: &[f64], mixture: &Bernoullis, moments: &mut Moments) {
    let (k, d) = (mixture.log_constant.len(), panel.d());
    let each = bernoulli_sums(d);
    let zeros = |len: usize| vec![V::splat(0.0); len];
    let (mut y, mut e) = (zeros(d), zeros(k));
    let (mut sums, mut log_lik) = (zeros(k * each), V::splat(0.0));
    for g in 0..panel.groups() {
        rows(panel, g, &mut y);
        let weight = V::load(&load(w, g));
        bernoulli_joint(&y, mixture, &mut e);
        let (max, total) = exponentiate(&mut e);
        log_lik = weight.fma(max.add(total.ln()), log_lik);
        let share = weight.div(total);
        for (e, sums) in e.iter().zip(sums.chunks_exact_mut(each)) {
            let r = e.mul(share);
            sums[0] = sums[0].add(r);
            for (sum, y) in sums[1..].iter_mut().zip(&y) {
                *sum = r.fma(*y, *sum);
            }
        }
    }
    lay_down(log_lik, &sums, moments);
}

#[inline(always)]
fn bernoulli_density_body<V: Vector>(panel: &Panel, mixture: &Bernoullis, out: &mut [f64]) {
    let zeros = |len: usize| vec![V::splat(0.0); len];
    let (mut y, mut e) = (zeros(panel.d()), zeros(mixture.log_constant.len()));
    for (g, out) in out.chunks_mut(LANES).enumerate() {
        rows(panel, g, &mut y);
        bernoulli_joint(&y, mixture, &mut e);
        let (max, total) = exponentiate(&mut e);
        out.copy_from_slice(&max.add(total.ln()).lanes()[..out.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::available;
    use crate::math::log_sum_exp;
    use ndarray::Array2;

    fn value(i: usize, a: f64) -> f64 {
        (i as f64 * a + 0.3).sin()
    }

    fn close(what: &str, a: f64, b: f64) {
        assert!((a - b).abs() < 1e-12 * b.abs().max(1.0), "{what}: {a} for {b}");
    }

    /// Row by row, 29 rows: the last group is not full.
    #[test]
    fn gaussians_agree_with_the_definition_at_every_level() {
        for (k, d) in [(1, 1), (3, 1), (2, 2), (4, 5)] {
            let x = Array2::from_shape_fn((29, d), |(i, j)| 2.0 * value(7 * i + j, 1.7));
            let w: Vec<f64> = (0..29).map(|i| ((i * 5) % 7) as f64 / 80.0).collect();
            let mixture = Gaussians {
                log_constant: (0..k).map(|i| value(i, 1.3) - 1.0).collect(),
                mean: (0..k * d).map(|i| value(i, 2.1)).collect(),
                whitening: (0..k * d * (d + 1) / 2).map(|i| 0.8 + value(i, 0.7)).collect(),
            };
            let triangle = d * (d + 1) / 2;
            let each = gaussian_sums(d);
            let mut exact = vec![0.0; k * each];
            let (mut log_lik, mut logs) = (0.0, Vec::new());
            for (y, w) in x.outer_iter().zip(&w) {
                let z = |c: usize, i: usize| -> f64 {
                    let row = &mixture.whitening[c * triangle + i * (i + 1) / 2..];
                    (0..=i).map(|j| row[j] * (y[j] - mixture.mean[c * d + j])).sum()
                };
                let joint: Vec<f64> = (0..k)
                    .map(|c| mixture.log_constant[c] - 0.5 * (0..d).map(|i| z(c, i) * z(c, i)).sum::<f64>())
                    .collect();
                let log_f = log_sum_exp(&joint);
                logs.push(log_f);
                log_lik += w * log_f;
                for c in 0..k {
                    let r = w * (joint[c] - log_f).exp();
                    let z: Vec<f64> = (0..d).map(|i| z(c, i)).collect();
                    let pairs = (0..d).flat_map(|i| (0..=i).map(move |j| (i, j)));
                    let terms =
                        [1.0].into_iter().chain(z.iter().copied()).chain(pairs.map(|(i, j)| z[i] * z[j]));
                    exact[c * each..].iter_mut().zip(terms).for_each(|(sum, t)| *sum += r * t);
                }
            }
            for level in available() {
                let (panel, mut moments, mut out) = (Panel::new(x.view()), Moments::default(), vec![0.0; 29]);
                moments.reset(k, each);
                gaussian_step(level, &panel, &w, &mixture, &mut moments);
                gaussian_density(level, &panel, &mixture, &mut out);
                moments.finish();
                close("log likelihood", moments.log_lik(), log_lik);
                (0..k * each).for_each(|i| close("sum", moments.of(i / each, each)[i % each], exact[i]));
                out.iter().zip(&logs).for_each(|(a, b)| close("log density", *a, *b));
            }
        }
    }

    #[test]
    fn bernoullis_agree_with_the_definition_at_every_level() {
        for (k, d) in [(1, 1), (3, 4), (2, 11)] {
            let x =
                Array2::from_shape_fn((29, d), |(i, j)| f64::from(u8::from(value(5 * i + 3 * j, 1.7) > 0.2)));
            let w: Vec<f64> = (0..29).map(|i| ((i * 5) % 7) as f64 / 80.0).collect();
            let mixture = Bernoullis {
                log_constant: (0..k).map(|i| value(i, 1.3) - 1.0).collect(),
                logit: (0..k * d).map(|i| 2.0 * value(i, 0.7)).collect(),
            };
            let each = bernoulli_sums(d);
            let (mut exact, mut log_lik) = (vec![0.0; k * each], 0.0);
            for (y, w) in x.outer_iter().zip(&w) {
                let joint: Vec<f64> = (0..k)
                    .map(|c| {
                        mixture.log_constant[c] + (0..d).map(|j| y[j] * mixture.logit[c * d + j]).sum::<f64>()
                    })
                    .collect();
                let log_f = log_sum_exp(&joint);
                log_lik += w * log_f;
                for c in 0..k {
                    let r = w * (joint[c] - log_f).exp();
                    exact[c * each] += r;
                    (0..d).for_each(|j| exact[c * each + 1 + j] += r * y[j]);
                }
            }
            for level in available() {
                let (panel, mut moments) = (Panel::new(x.view()), Moments::default());
                moments.reset(k, each);
                bernoulli_step(level, &panel, &w, &mixture, &mut moments);
                moments.finish();
                close("log likelihood", moments.log_lik(), log_lik);
                (0..k * each).for_each(|i| close("sum", moments.of(i / each, each)[i % each], exact[i]));
                let mut out = vec![0.0; 29];
                bernoulli_density(level, &panel, &mixture, &mut out);
                let sum: f64 = out.iter().zip(&w).map(|(l, w)| w * l).sum();
                close("log density", sum, log_lik);
            }
        }
    }
}

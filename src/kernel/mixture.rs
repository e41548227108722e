//! Passes over the atoms of a diagonal Gaussian mixture: density, E step, and the sums behind Newton's method.

use super::lanes::{Arithmetic, LANES, Lanes, add, add_product, exp, ln, map, sum};
use super::{Panel, dispatch, load};

/// A mixture prepared for evaluation: log(πₖ Πⱼ (2πσ²ₖⱼ)^-½), μₖⱼ and 1/σₖⱼ, component after component.
#[derive(Clone, Debug, Default)]
pub struct Mixture {
    pub log_constant: Vec<f64>,
    pub mean: Vec<f64>,
    pub inverse_sd: Vec<f64>,
}

impl Mixture {
    pub fn k(&self) -> usize {
        self.log_constant.len()
    }
}

/// Working memory and sums of a pass; lane sums until [`Sums::total`] folds them.
#[derive(Clone, Debug, Default)]
pub struct Sums {
    log_lik: Lanes,
    /// Per component: Σ w r, then Σ w r zⱼ, then Σ w r zⱼ² over columns j, z = (y − μ)/σ.
    em: Vec<Lanes>,
    /// Σ w r̃ r̃ᵀ, upper triangle by rows, r̃ the rₖ ũₖ of all components one after the other.
    outer: Vec<Lanes>,
    /// Per component Σ w r ũ ũᵀ, upper triangle by rows, ũ = (1, z₁ … z_d, ½(z₁² − 1) … ½(z_d² − 1)).
    inner: Vec<Lanes>,
    z: Vec<Lanes>,
    log_joint: Vec<Lanes>,
    score: Vec<Lanes>,
}

impl Sums {
    /// Zero sums for K components in d columns.
    pub fn reset(&mut self, k: usize, d: usize, newton: bool) {
        let p1 = 1 + 2 * d;
        let p = k * p1;
        self.log_lik = [0.0; LANES];
        zero(&mut self.em, k * p1);
        zero(&mut self.z, k * d);
        zero(&mut self.log_joint, k);
        if newton {
            zero(&mut self.outer, p * (p + 1) / 2);
            zero(&mut self.inner, k * p1 * (p1 + 1) / 2);
            zero(&mut self.score, 2 * p);
        }
    }

    /// Σ w log f(y).
    pub fn log_lik(&self) -> f64 {
        sum(&self.log_lik)
    }

    /// Σ w r, Σ w r zⱼ … , Σ w r zⱼ² … of component k.
    pub fn em(&self, k: usize, d: usize) -> Vec<f64> {
        let p1 = 1 + 2 * d;
        self.em[k * p1..(k + 1) * p1].iter().map(sum).collect()
    }

    /// Σ w r̃ r̃ᵀ at (i, j), i ≤ j, of p.
    pub fn outer(&self, i: usize, j: usize, p: usize) -> f64 {
        sum(&self.outer[triangle(i, j, p)])
    }

    /// Σ w r ũ ũᵀ of component k at (i, j), i ≤ j.
    pub fn inner(&self, k: usize, i: usize, j: usize, d: usize) -> f64 {
        let p1 = 1 + 2 * d;
        sum(&self.inner[k * p1 * (p1 + 1) / 2 + triangle(i, j, p1)])
    }
}

fn zero(lanes: &mut Vec<Lanes>, len: usize) {
    lanes.clear();
    lanes.resize(len, [0.0; LANES]);
}

/// Place of (i, j), i ≤ j, in an upper triangle of size p stored by rows.
#[inline(always)]
fn triangle(i: usize, j: usize, p: usize) -> usize {
    i * p - i * (i + 1) / 2 + j
}

dispatch! {
    /// Adds the E step of eq. (E.6) and the weighted sums that the M step of eq. (E.7) needs.
    pub fn e_step(panel: &Panel, w: &[f64], mixture: &Mixture, sums: &mut Sums) = e_step_body
}

dispatch! {
    /// Like [`e_step`], and adds the sums behind gradient and Hessian of the weighted log likelihood.
    pub fn newton_step(panel: &Panel, w: &[f64], mixture: &Mixture, sums: &mut Sums) = newton_step_body
}

dispatch! {
    /// log f(yᵢ) of every row.
    pub fn log_density(panel: &Panel, mixture: &Mixture, sums: &mut Sums, out: &mut [f64]) = log_density_body
}

/// Fills `z` and turns `log_joint` into eᵏ = exp(log πₖ Nₖ − max); returns max and Σ eᵏ.
#[inline(always)]
fn joint<A: Arithmetic>(y: &[Lanes], mixture: &Mixture, z: &mut [Lanes], e: &mut [Lanes]) -> (Lanes, Lanes) {
    let d = y.len();
    let mut max = [f64::NEG_INFINITY; LANES];
    for (k, log_joint) in e.iter_mut().enumerate() {
        let mut square = [0.0; LANES];
        for j in 0..d {
            let (mean, inverse_sd) = (mixture.mean[k * d + j], mixture.inverse_sd[k * d + j]);
            let t = map(|l| (y[j][l] - mean) * inverse_sd);
            add_product::<A>(&mut square, &t, &t);
            z[k * d + j] = t;
        }
        let constant = mixture.log_constant[k];
        *log_joint = map(|l| A::fma(-0.5, square[l], constant));
        max = map(|l| if log_joint[l] > max[l] { log_joint[l] } else { max[l] });
    }
    let mut total = [0.0; LANES];
    for log_joint in e.iter_mut() {
        *log_joint = exp::<A>(&map(|l| log_joint[l] - max[l]));
        add(&mut total, log_joint);
    }
    (max, total)
}

#[inline(always)]
fn e_step_body<A: Arithmetic>(panel: &Panel, w: &[f64], mixture: &Mixture, sums: &mut Sums) {
    match (mixture.k(), panel.d()) {
        (2, 1) => e_step_fixed::<A, 2, 1>(panel, w, mixture, sums),
        (3, 1) => e_step_fixed::<A, 3, 1>(panel, w, mixture, sums),
        (2, 2) => e_step_fixed::<A, 2, 2>(panel, w, mixture, sums),
        (3, 2) => e_step_fixed::<A, 3, 2>(panel, w, mixture, sums),
        (k, d) => e_step_any::<A>(panel, w, mixture, sums, k, d),
    }
}

/// The same pass with sizes known to the compiler, which then keeps all sums in registers.
#[inline(always)]
fn e_step_fixed<A: Arithmetic, const K: usize, const D: usize>(
    panel: &Panel,
    w: &[f64],
    mixture: &Mixture,
    sums: &mut Sums,
) {
    let mut z = [[[0.0; LANES]; D]; K];
    let mut e = [[0.0; LANES]; K];
    let mut em = [[[0.0; LANES]; 5]; K];
    const { assert!(D <= 2) };
    let mut log_lik = [0.0; LANES];
    for g in 0..panel.groups() {
        let weight = load(w, g);
        let (max, total) = joint::<A>(panel.group(g), mixture, z.as_flattened_mut(), &mut e);
        let log_f = ln::<A>(&total);
        log_lik = map(|l| A::fma(weight[l], max[l] + log_f[l], log_lik[l]));
        let share = map(|l| weight[l] / total[l]);
        for k in 0..K {
            let r = map(|l| e[k][l] * share[l]);
            add(&mut em[k][0], &r);
            for j in 0..D {
                let rz = map(|l| r[l] * z[k][j][l]);
                add(&mut em[k][1 + j], &rz);
                add_product::<A>(&mut em[k][1 + D + j], &rz, &z[k][j]);
            }
        }
    }
    add(&mut sums.log_lik, &log_lik);
    for k in 0..K {
        for i in 0..1 + 2 * D {
            add(&mut sums.em[k * (1 + 2 * D) + i], &em[k][i]);
        }
    }
}

#[inline(always)]
fn e_step_any<A: Arithmetic>(
    panel: &Panel,
    w: &[f64],
    mixture: &Mixture,
    sums: &mut Sums,
    k: usize,
    d: usize,
) {
    let p1 = 1 + 2 * d;
    for g in 0..panel.groups() {
        let weight = load(w, g);
        let (max, total) = joint::<A>(panel.group(g), mixture, &mut sums.z, &mut sums.log_joint);
        let log_f = ln::<A>(&total);
        sums.log_lik = map(|l| A::fma(weight[l], max[l] + log_f[l], sums.log_lik[l]));
        let share = map(|l| weight[l] / total[l]);
        for c in 0..k {
            let r = map(|l| sums.log_joint[c][l] * share[l]);
            let (mass, moments) = sums.em[c * p1..(c + 1) * p1].split_first_mut().expect("p1 is at least 1");
            let (first, second) = moments.split_at_mut(d);
            add(mass, &r);
            for ((z, first), second) in sums.z[c * d..].iter().zip(first).zip(second) {
                let rz = map(|l| r[l] * z[l]);
                add(first, &rz);
                add_product::<A>(second, &rz, z);
            }
        }
    }
}

#[inline(always)]
fn newton_step_body<A: Arithmetic>(panel: &Panel, w: &[f64], mixture: &Mixture, sums: &mut Sums) {
    match (mixture.k(), panel.d()) {
        (2, 1) => newton_any::<A>(panel, w, mixture, sums, 2, 1),
        (3, 1) => newton_any::<A>(panel, w, mixture, sums, 3, 1),
        (k, d) => newton_any::<A>(panel, w, mixture, sums, k, d),
    }
}

#[inline(always)]
fn newton_any<A: Arithmetic>(
    panel: &Panel,
    w: &[f64],
    mixture: &Mixture,
    sums: &mut Sums,
    k: usize,
    d: usize,
) {
    let p1 = 1 + 2 * d;
    let p = k * p1;
    for g in 0..panel.groups() {
        let weight = load(w, g);
        let (max, total) = joint::<A>(panel.group(g), mixture, &mut sums.z, &mut sums.log_joint);
        let log_f = ln::<A>(&total);
        sums.log_lik = map(|l| A::fma(weight[l], max[l] + log_f[l], sums.log_lik[l]));
        let (score, weighted) = sums.score.split_at_mut(p);
        for c in 0..k {
            let r = map(|l| sums.log_joint[c][l] / total[l]);
            let s = &mut score[c * p1..(c + 1) * p1];
            s[0] = r;
            for j in 0..d {
                let z = sums.z[c * d + j];
                s[1 + j] = map(|l| r[l] * z[l]);
                s[1 + d + j] = map(|l| r[l] * (0.5 * A::fma(z[l], z[l], -1.0)));
            }
            add_inner::<A>(&mut sums.inner[c * p1 * (p1 + 1) / 2..], s, &weight, &sums.z[c * d..(c + 1) * d]);
            let em = &mut sums.em[c * p1..(c + 1) * p1];
            for (i, em) in em.iter_mut().enumerate() {
                if i <= d {
                    add_product::<A>(em, &s[i], &weight);
                } else {
                    let z = sums.z[c * d + i - 1 - d];
                    add_product::<A>(em, &map(|l| s[i - d][l] * z[l]), &weight);
                }
            }
        }
        for (weighted, s) in weighted.iter_mut().zip(score.iter()) {
            *weighted = map(|l| weight[l] * s[l]);
        }
        let mut place = 0;
        for i in 0..p {
            for s in &score[i..] {
                add_product::<A>(&mut sums.outer[place], &weighted[i], s);
                place += 1;
            }
        }
    }
}

/// Adds w r ũ ũᵀ; `s` is r ũ.
#[inline(always)]
fn add_inner<A: Arithmetic>(inner: &mut [Lanes], s: &[Lanes], weight: &Lanes, z: &[Lanes]) {
    let d = z.len();
    let mut place = 0;
    for (i, s) in s.iter().enumerate() {
        let ws = map(|l| weight[l] * s[l]);
        for j in i..1 + 2 * d {
            if j == 0 {
                add(&mut inner[place], &ws);
            } else if j <= d {
                add_product::<A>(&mut inner[place], &ws, &z[j - 1]);
            } else {
                let half = map(|l| 0.5 * A::fma(z[j - 1 - d][l], z[j - 1 - d][l], -1.0));
                add_product::<A>(&mut inner[place], &ws, &half);
            }
            place += 1;
        }
    }
}

#[inline(always)]
fn log_density_body<A: Arithmetic>(panel: &Panel, mixture: &Mixture, sums: &mut Sums, out: &mut [f64]) {
    for (g, out) in out.chunks_mut(LANES).enumerate() {
        let (max, total) = joint::<A>(panel.group(g), mixture, &mut sums.z, &mut sums.log_joint);
        let log_f = ln::<A>(&total);
        for (l, out) in out.iter_mut().enumerate() {
            *out = max[l] + log_f[l];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::available;
    use ndarray::Array2;

    fn example(k: usize, d: usize) -> (Array2<f64>, Vec<f64>, Mixture) {
        let x = Array2::from_shape_fn((29, d), |(i, j)| ((i * 37 + j * 11) % 17) as f64 / 3.0 - 2.0);
        let w: Vec<f64> = (0..29).map(|i| ((i * 5) % 7) as f64 / 80.0).collect();
        let value = |i: usize, a: f64| (i as f64 * a).sin();
        let mixture = Mixture {
            log_constant: (0..k).map(|i| value(i, 1.3) - 1.0).collect(),
            mean: (0..k * d).map(|i| 2.0 * value(i, 2.1)).collect(),
            inverse_sd: (0..k * d).map(|i| 1.5 + value(i, 0.7)).collect(),
        };
        (x, w, mixture)
    }

    /// The definition, row by row: sums of ũ and of outer products.
    fn naive(x: &Array2<f64>, w: &[f64], m: &Mixture) -> (f64, Vec<Vec<f64>>, Array2<f64>, Vec<Array2<f64>>) {
        let (k, d) = (m.k(), x.ncols());
        let p1 = 1 + 2 * d;
        let mut log_lik = 0.0;
        let mut em = vec![vec![0.0; p1]; k];
        let mut outer = Array2::zeros((k * p1, k * p1));
        let mut inner = vec![Array2::zeros((p1, p1)); k];
        for (y, &w) in x.outer_iter().zip(w) {
            let z = |c: usize, j: usize| (y[j] - m.mean[c * d + j]) * m.inverse_sd[c * d + j];
            let log_joint: Vec<f64> = (0..k)
                .map(|c| m.log_constant[c] - 0.5 * (0..d).map(|j| z(c, j).powi(2)).sum::<f64>())
                .collect();
            let log_f = crate::math::log_sum_exp(&log_joint);
            log_lik += w * log_f;
            let mut score = Vec::new();
            for c in 0..k {
                let r = (log_joint[c] - log_f).exp();
                let u: Vec<f64> = std::iter::once(1.0)
                    .chain((0..d).map(|j| z(c, j)))
                    .chain((0..d).map(|j| 0.5 * (z(c, j).powi(2) - 1.0)))
                    .collect();
                em[c][0] += w * r;
                for j in 0..d {
                    em[c][1 + j] += w * r * z(c, j);
                    em[c][1 + d + j] += w * r * z(c, j).powi(2);
                }
                for (a, b) in (0..p1).flat_map(|a| (0..p1).map(move |b| (a, b))) {
                    inner[c][[a, b]] += w * r * u[a] * u[b];
                }
                score.extend(u.iter().map(|u| r * u));
            }
            for (a, b) in (0..score.len()).flat_map(|a| (0..k * p1).map(move |b| (a, b))) {
                outer[[a, b]] += w * score[a] * score[b];
            }
        }
        (log_lik, em, outer, inner)
    }

    #[test]
    fn every_level_and_size_agrees_with_the_definition() {
        for (k, d) in [(1, 1), (2, 1), (3, 1), (2, 2), (3, 2), (4, 3)] {
            let (x, w, mixture) = example(k, d);
            let panel = Panel::new(x.view());
            let (log_lik, em, outer, inner) = naive(&x, &w, &mixture);
            let p1 = 1 + 2 * d;
            for level in available() {
                for newton in [false, true] {
                    let mut sums = Sums::default();
                    sums.reset(k, d, newton);
                    let pass = if newton { newton_step } else { e_step };
                    pass(level, &panel, &w, &mixture, &mut sums);
                    assert!((sums.log_lik() - log_lik).abs() < 1e-12);
                    for (c, em) in em.iter().enumerate() {
                        assert!(sums.em(c, d).iter().zip(em).all(|(a, b)| (a - b).abs() < 1e-12));
                    }
                    if newton {
                        for i in 0..k * p1 {
                            for j in i..k * p1 {
                                assert!((sums.outer(i, j, k * p1) - outer[[i, j]]).abs() < 1e-11);
                            }
                        }
                        for (c, i) in (0..k).flat_map(|c| (0..p1).map(move |i| (c, i))) {
                            for j in i..p1 {
                                assert!((sums.inner(c, i, j, d) - inner[c][[i, j]]).abs() < 1e-11);
                            }
                        }
                    }
                }
                let mut sums = Sums::default();
                sums.reset(k, d, false);
                let mut out = vec![0.0; 29];
                log_density(level, &panel, &mixture, &mut sums, &mut out);
                let total: f64 = out.iter().zip(&w).map(|(l, w)| l * w).sum();
                assert!((total - log_lik).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn avx2_and_avx512_give_the_same_bits() {
        let levels: Vec<_> = available().filter(|&l| l != crate::kernel::Level::Plain).collect();
        let (x, w, mixture) = example(3, 1);
        let panel = Panel::new(x.view());
        let bits: Vec<Vec<u64>> = levels
            .iter()
            .map(|&level| {
                let mut sums = Sums::default();
                sums.reset(3, 1, true);
                e_step(level, &panel, &w, &mixture, &mut sums);
                newton_step(level, &panel, &w, &mixture, &mut sums);
                let em = (0..3).flat_map(|c| sums.em(c, 1));
                em.chain((0..9).map(|i| sums.outer(i, 8, 9))).map(f64::to_bits).collect()
            })
            .collect();
        assert!(bits.windows(2).all(|pair| pair[0] == pair[1]));
    }

    #[test]
    fn a_dead_component_takes_nothing() {
        let (x, w, mut mixture) = example(3, 1);
        mixture.log_constant[1] = f64::NEG_INFINITY;
        let panel = Panel::new(x.view());
        for level in available() {
            let mut sums = Sums::default();
            sums.reset(3, 1, false);
            e_step(level, &panel, &w, &mixture, &mut sums);
            assert!(sums.log_lik().is_finite());
            assert_eq!(sums.em(1, 1), [0.0; 3]);
        }
    }
}

//! Passes over the atoms of a diagonal Gaussian mixture: density, E step, and the sums behind Newton's method.

mod precision;

use self::precision::{Exact, Precision, Rough};
use super::vector::{Arithmetic, LANES, Lanes, Vector, sum};
use super::{Level, Panel, dispatch};

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

/// The numbers of a mixture, each in all lanes.
#[derive(Clone, Copy)]
struct Components<'a, A> {
    log_constant: &'a [A],
    mean: &'a [A],
    inverse_sd: &'a [A],
}

/// Sums of a pass, lane by lane.
#[derive(Clone, Debug, Default)]
pub struct Sums {
    log_lik: Lanes,
    /// Per component: Σ w r, then Σ w r zⱼ, then Σ w r zⱼ² over columns j, z = (y − μ)/σ.
    em: Vec<Lanes>,
    /// Σ w r̃ r̃ᵀ, upper triangle by rows, r̃ the rₖ ũₖ of all components one after the other.
    outer: Vec<Lanes>,
    /// Per component Σ w r ũ ũᵀ, upper triangle by rows, ũ = (1, z₁ … z_d, ½(z₁² − 1) … ½(z_d² − 1)).
    inner: Vec<Lanes>,
    /// Sums of `em` over the lanes.
    em_totals: Vec<f64>,
}

impl Sums {
    /// Zero sums for K components in d columns.
    pub fn reset(&mut self, k: usize, d: usize, newton: bool) {
        let p1 = 1 + 2 * d;
        let p = k * p1;
        self.log_lik = [0.0; LANES];
        zero(&mut self.em, k * p1);
        if newton {
            zero(&mut self.outer, p * (p + 1) / 2);
            zero(&mut self.inner, k * p1 * (p1 + 1) / 2);
        }
    }

    /// Σ w log f(y).
    pub fn log_lik(&self) -> f64 {
        sum(&self.log_lik)
    }

    /// After the last pass.
    pub fn finish(&mut self) {
        self.em_totals.clear();
        self.em_totals.extend(self.em.iter().map(sum));
    }

    /// Σ w r, Σ w r zⱼ … , Σ w r zⱼ² … of component k, once finished.
    pub fn em(&self, k: usize, d: usize) -> &[f64] {
        let p1 = 1 + 2 * d;
        &self.em_totals[k * p1..(k + 1) * p1]
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
    /// [`e_step`] in singles and without the log likelihood: for the way to a minimum, not for its end.
    pub fn e_step_roughly(panel: &Panel, w: &[f64], mixture: &Mixture, sums: &mut Sums) = e_step_roughly_body
}

dispatch! {
    /// Like [`e_step`], and adds the sums behind gradient and Hessian of the weighted log likelihood.
    pub fn newton_step(panel: &Panel, w: &[f64], mixture: &Mixture, sums: &mut Sums) = newton_step_body
}

dispatch! {
    /// [`newton_step`] in singles, for the sizes of [`newton_roughly_exists`].
    pub fn newton_step_roughly(panel: &Panel, w: &[f64], mixture: &Mixture, sums: &mut Sums) = newton_step_roughly_body
}

dispatch! {
    /// log f(yᵢ) of every row.
    pub fn log_density(panel: &Panel, mixture: &Mixture, out: &mut [f64]) = log_density_body
}

/// A pass over the atoms of one origin.
pub type Pass = fn(Level, &Panel, &[f64], &Mixture, &mut Sums);

/// Fills `z` and turns `e` into exp(log πₖ Nₖ − max); returns max and Σ e.
#[inline(always)]
fn joint<A: Arithmetic>(y: &[A], mixture: Components<A>, z: &mut [A], e: &mut [A]) -> (A, A) {
    let d = y.len();
    let mut max = A::splat(f64::NEG_INFINITY);
    for (k, log_joint) in e.iter_mut().enumerate() {
        let mut square = A::splat(0.0);
        for j in 0..d {
            let t = y[j].sub(mixture.mean[k * d + j]).mul(mixture.inverse_sd[k * d + j]);
            square = t.fma(t, square);
            z[k * d + j] = t;
        }
        *log_joint = square.fma(A::splat(-0.5), mixture.log_constant[k]);
        max = max.max(*log_joint);
    }
    let mut total = A::splat(0.0);
    for log_joint in e.iter_mut() {
        *log_joint = log_joint.sub(max).exp();
        total = total.add(*log_joint);
    }
    (max, total)
}

/// Each number in all lanes.
#[inline(always)]
fn splat_all<A: Arithmetic>(numbers: &[f64], vectors: &mut [A]) {
    for (vector, number) in vectors.iter_mut().zip(numbers) {
        *vector = A::splat(*number);
    }
}

/// Numbers of a mixture of any size, in all lanes.
struct Splat<A> {
    log_constant: Vec<A>,
    mean: Vec<A>,
    inverse_sd: Vec<A>,
}

impl<A: Arithmetic> Splat<A> {
    #[inline(always)]
    fn new<V: Vector, P: Precision<V, Number = A>>(panel: &Panel, mixture: &Mixture) -> Self {
        let zeros = |numbers: &[f64]| vec![A::splat(0.0); numbers.len()];
        let mut log_constant = zeros(&mixture.log_constant);
        let (mut mean, mut inverse_sd) = (zeros(&mixture.mean), zeros(&mixture.inverse_sd));
        splat_all(&mixture.log_constant, &mut log_constant);
        splat_all(&mixture.inverse_sd, &mut inverse_sd);
        P::means(panel, &mixture.mean, &mut mean);
        Splat { log_constant, mean, inverse_sd }
    }

    #[inline(always)]
    fn components(&self) -> Components<'_, A> {
        Components { log_constant: &self.log_constant, mean: &self.mean, inverse_sd: &self.inverse_sd }
    }
}

#[inline(always)]
fn add<V: Vector>(acc: &mut Lanes, a: V) {
    *acc = V::load(acc).add(a).lanes();
}

/// acc += a · b.
#[inline(always)]
fn add_product<V: Vector>(acc: &mut Lanes, a: V, b: V) {
    *acc = a.fma(b, V::load(acc)).lanes();
}

#[inline(always)]
fn e_step_body<V: Vector>(panel: &Panel, w: &[f64], mixture: &Mixture, sums: &mut Sums) {
    e_step_in::<V, Exact>(panel, w, mixture, sums);
}

#[inline(always)]
fn e_step_roughly_body<V: Vector>(panel: &Panel, w: &[f64], mixture: &Mixture, sums: &mut Sums) {
    e_step_in::<V, Rough>(panel, w, mixture, sums);
}

/// The E step with sizes known to the compiler where they are common, so that it keeps all sums in registers.
#[inline(always)]
fn e_step_in<V: Vector, P: Precision<V>>(panel: &Panel, w: &[f64], mixture: &Mixture, sums: &mut Sums) {
    match (mixture.k(), panel.d()) {
        (1, 1) => e_step_fixed::<V, P, 1, 1>(panel, w, mixture, sums),
        (2, 1) => e_step_fixed::<V, P, 2, 1>(panel, w, mixture, sums),
        (3, 1) => e_step_fixed::<V, P, 3, 1>(panel, w, mixture, sums),
        (4, 1) => e_step_fixed::<V, P, 4, 1>(panel, w, mixture, sums),
        (2, 2) => e_step_fixed::<V, P, 2, 2>(panel, w, mixture, sums),
        (3, 2) => e_step_fixed::<V, P, 3, 2>(panel, w, mixture, sums),
        _ => e_step_any::<V, P>(panel, w, mixture, sums),
    }
}

#[inline(always)]
fn e_step_fixed<V: Vector, P: Precision<V>, const K: usize, const D: usize>(
    panel: &Panel,
    w: &[f64],
    mixture: &Mixture,
    sums: &mut Sums,
) {
    let zero = P::Number::splat(0.0);
    let (mut log_constant, mut mean, mut inverse_sd) = ([zero; K], [[zero; D]; K], [[zero; D]; K]);
    splat_all(&mixture.log_constant, &mut log_constant);
    splat_all(&mixture.inverse_sd, inverse_sd.as_flattened_mut());
    P::means(panel, &mixture.mean, mean.as_flattened_mut());
    let components = Components {
        log_constant: &log_constant,
        mean: mean.as_flattened(),
        inverse_sd: inverse_sd.as_flattened(),
    };
    for run in P::runs(panel) {
        let (mut mass, mut first, mut second) = ([zero; K], [[zero; D]; K], [[zero; D]; K]);
        let mut log_lik = zero;
        for step in run {
            let (mut y, mut z, mut e) = ([zero; D], [[zero; D]; K], [zero; K]);
            P::rows(panel, step, &mut y);
            let weight = P::weights(w, step);
            let (max, total) = joint(&y, components, z.as_flattened_mut(), &mut e);
            if P::VALUE {
                log_lik = weight.fma(max.add(total.ln()), log_lik);
            }
            let share = weight.div(total);
            for k in 0..K {
                let r = e[k].mul(share);
                mass[k] = mass[k].add(r);
                for j in 0..D {
                    let rz = r.mul(z[k][j]);
                    first[k][j] = first[k][j].add(rz);
                    second[k][j] = rz.fma(z[k][j], second[k][j]);
                }
            }
        }
        P::add(&mut sums.log_lik, log_lik);
        for k in 0..K {
            let em = &mut sums.em[k * (1 + 2 * D)..(k + 1) * (1 + 2 * D)];
            P::add(&mut em[0], mass[k]);
            for j in 0..D {
                P::add(&mut em[1 + j], first[k][j]);
                P::add(&mut em[1 + D + j], second[k][j]);
            }
        }
    }
}

#[inline(always)]
fn e_step_any<V: Vector, P: Precision<V>>(panel: &Panel, w: &[f64], mixture: &Mixture, sums: &mut Sums) {
    let (k, d) = (mixture.k(), panel.d());
    let p1 = 1 + 2 * d;
    let splat = Splat::new::<V, P>(panel, mixture);
    let zero = P::Number::splat(0.0);
    let (mut y, mut z, mut e) = (vec![zero; d], vec![zero; k * d], vec![zero; k]);
    let mut em = vec![zero; k * p1];
    for run in P::runs(panel) {
        let mut log_lik = zero;
        em.fill(zero);
        for step in run {
            P::rows(panel, step, &mut y);
            let weight = P::weights(w, step);
            let (max, total) = joint(&y, splat.components(), &mut z, &mut e);
            if P::VALUE {
                log_lik = weight.fma(max.add(total.ln()), log_lik);
            }
            let share = weight.div(total);
            for c in 0..k {
                let r = e[c].mul(share);
                let (mass, moments) = em[c * p1..(c + 1) * p1].split_first_mut().expect("p1 is at least 1");
                let (first, second) = moments.split_at_mut(d);
                *mass = mass.add(r);
                for ((z, first), second) in z[c * d..].iter().zip(first).zip(second) {
                    let rz = r.mul(*z);
                    *first = first.add(rz);
                    *second = rz.fma(*z, *second);
                }
            }
        }
        P::add(&mut sums.log_lik, log_lik);
        for (sum, part) in sums.em.iter_mut().zip(&em) {
            P::add(sum, *part);
        }
    }
}

#[inline(always)]
fn newton_step_body<V: Vector>(panel: &Panel, w: &[f64], mixture: &Mixture, sums: &mut Sums) {
    match (mixture.k(), panel.d()) {
        (1, 1) => newton_line::<V, Exact, 1>(panel, w, mixture, sums),
        (2, 1) => newton_line::<V, Exact, 2>(panel, w, mixture, sums),
        (3, 1) => newton_line::<V, Exact, 3>(panel, w, mixture, sums),
        (4, 1) => newton_line::<V, Exact, 4>(panel, w, mixture, sums),
        (2, 2) => newton_fixed::<V, 2, 2>(panel, w, mixture, sums),
        (3, 2) => newton_fixed::<V, 3, 2>(panel, w, mixture, sums),
        _ => newton_any::<V>(panel, w, mixture, sums),
    }
}

/// Whether [`newton_step_roughly`] has code for mixtures of this size.
pub fn newton_roughly_exists(k: usize, d: usize) -> bool {
    d == 1 && (2..=MOST_ON_LINE).contains(&k)
}

#[inline(always)]
fn newton_step_roughly_body<V: Vector>(panel: &Panel, w: &[f64], mixture: &Mixture, sums: &mut Sums) {
    match mixture.k() {
        2 => newton_line::<V, Rough, 2>(panel, w, mixture, sums),
        3 => newton_line::<V, Rough, 3>(panel, w, mixture, sums),
        4 => newton_line::<V, Rough, 4>(panel, w, mixture, sums),
        k => unreachable!("{k} components on the line"),
    }
}

/// Components on the line that the code below is made for, and their pairs.
const MOST_ON_LINE: usize = 4;
const PAIRS: usize = 6;
/// Moments 0 to 4 of one variable.
type Moments<T> = [T; 5];

/// On the line every z is an affine function of every other, so that all of Σ w r̃ r̃ᵀ and Σ w r ũ ũᵀ follow from the
/// moments Σ w rₖ zₖᵐ of each component and Σ w rₖ rₗ zₖᵐ of each pair: for three components 30 sums, which stay in
/// registers, instead of 63. The z of a pair is that of its narrower component, in which the other's has a factor below 1,
/// and loses no digits.
#[inline(always)]
fn newton_line<V: Vector, P: Precision<V>, const K: usize>(
    panel: &Panel,
    w: &[f64],
    mixture: &Mixture,
    sums: &mut Sums,
) {
    // Narrow components first.
    let mut order: [usize; K] = std::array::from_fn(|k| k);
    order.sort_by(|&a, &b| mixture.inverse_sd[b].total_cmp(&mixture.inverse_sd[a]));
    let (mean, inverse_sd) = (order.map(|k| mixture.mean[k]), order.map(|k| mixture.inverse_sd[k]));
    let zero = P::Number::splat(0.0);
    let (mut log_constants, mut means, mut inverse_sds) = ([zero; K], [zero; K], [zero; K]);
    splat_all(&order.map(|k| mixture.log_constant[k]), &mut log_constants);
    splat_all(&inverse_sd, &mut inverse_sds);
    P::means(panel, &mean, &mut means);
    let sorted = Components { log_constant: &log_constants, mean: &means, inverse_sd: &inverse_sds };
    let (mut own_totals, mut shared_totals) = ([[0.0; 5]; K], [[0.0; 5]; PAIRS]);
    for run in P::runs(panel) {
        let (mut y, mut z, mut e) = ([zero], [zero; K], [zero; K]);
        let mut own: [Moments<P::Number>; K] = [[zero; 5]; K];
        let mut shared: [Moments<P::Number>; PAIRS] = [[zero; 5]; PAIRS];
        let mut log_lik = zero;
        for step in run {
            P::rows(panel, step, &mut y);
            let weight = P::weights(w, step);
            let (max, total) = joint(&y, sorted, &mut z, &mut e);
            log_lik = weight.fma(max.add(total.ln()), log_lik);
            let inverse = P::Number::splat(1.0).div(total);
            let mut r = e;
            for r in &mut r {
                *r = r.mul(inverse);
            }
            let mut pair = 0;
            for k in 0..K {
                let weighted = weight.mul(r[k]);
                add_moments(&mut own[k], weighted, z[k]);
                for other in &r[k + 1..] {
                    add_moments(&mut shared[pair], weighted.mul(*other), z[k]);
                    pair += 1;
                }
            }
        }
        P::add(&mut sums.log_lik, log_lik);
        add_totals::<V, P>(own_totals.as_flattened_mut(), own.as_flattened());
        add_totals::<V, P>(shared_totals.as_flattened_mut(), shared.as_flattened());
    }
    line_sums(&order, &mean, &inverse_sd, &own_totals, &shared_totals, sums);
}

#[inline(always)]
fn add_totals<V: Vector, P: Precision<V>>(totals: &mut [f64], parts: &[P::Number]) {
    for (total, part) in totals.iter_mut().zip(parts) {
        let mut lanes = [0.0; LANES];
        P::add(&mut lanes, *part);
        *total += sum(&lanes);
    }
}

/// Adds a zᵐ, m = 0 … 4.
#[inline(always)]
fn add_moments<A: Arithmetic>(moments: &mut Moments<A>, a: A, z: A) {
    let [zeroth, higher @ ..] = moments;
    *zeroth = zeroth.add(a);
    let mut power = a;
    for moment in higher {
        *moment = power.fma(z, *moment);
        power = power.mul(z);
    }
}

/// A polynomial of degree at most 2, lowest power first.
type Quadratic = [f64; 3];

/// Σ p q under measured moments.
fn expectation(p: Quadratic, q: Quadratic, moments: &Moments<f64>) -> f64 {
    let mut value = 0.0;
    for (i, p) in p.iter().enumerate() {
        for (j, q) in q.iter().enumerate() {
            value += p * q * moments[i + j];
        }
    }
    value
}

/// ũ = (1, z, ½(z² − 1)) as polynomials in x, where z = scale · x + shift.
fn scores(scale: f64, shift: f64) -> [Quadratic; 3] {
    let square = [0.5 * (shift * shift - 1.0), scale * shift, 0.5 * scale * scale];
    [[1.0, 0.0, 0.0], [shift, scale, 0.0], square]
}

/// From the moments of components and pairs, narrow first, to the sums of a pass. Since Σₗ rₗ = 1, that of rₖ² is that of
/// rₖ without its pairs.
fn line_sums<const K: usize>(
    order: &[usize; K],
    mean: &[f64; K],
    inverse_sd: &[f64; K],
    own: &[Moments<f64>; K],
    shared: &[Moments<f64>; PAIRS],
    sums: &mut Sums,
) {
    let identity = scores(1.0, 0.0);
    let outer = |k: usize, i: usize, l: usize, j: usize| {
        let (a, b) = (order[k] * 3 + i, order[l] * 3 + j);
        triangle(a.min(b), a.max(b), 3 * K)
    };
    for k in 0..K {
        let c = order[k];
        sums.em[c * 3..].iter_mut().zip(&own[k][..3]).for_each(|(sum, moment)| sum[0] += moment);
        for i in 0..3 {
            for j in i..3 {
                let value = expectation(identity[i], identity[j], &own[k]);
                sums.inner[c * 6 + triangle(i, j, 3)][0] += value;
                sums.outer[outer(k, i, k, j)][0] += value;
            }
        }
    }
    let mut pair = 0;
    for k in 0..K {
        for l in k + 1..K {
            let scale = inverse_sd[l] / inverse_sd[k];
            let shift = (mean[k] - mean[l]) * inverse_sd[l];
            let wide = scores(scale, shift);
            for i in 0..3 {
                for (j, score) in wide.iter().enumerate() {
                    sums.outer[outer(k, i, l, j)][0] += expectation(identity[i], *score, &shared[pair]);
                }
                for j in i..3 {
                    sums.outer[outer(k, i, k, j)][0] -= expectation(identity[i], identity[j], &shared[pair]);
                    sums.outer[outer(l, i, l, j)][0] -= expectation(wide[i], wide[j], &shared[pair]);
                }
            }
            pair += 1;
        }
    }
}

#[inline(always)]
fn newton_fixed<V: Vector, const K: usize, const D: usize>(
    panel: &Panel,
    w: &[f64],
    mixture: &Mixture,
    sums: &mut Sums,
) {
    let zero = V::splat(0.0);
    let (mut log_constant, mut mean, mut inverse_sd) = ([zero; K], [[zero; D]; K], [[zero; D]; K]);
    splat_all(&mixture.log_constant, &mut log_constant);
    splat_all(&mixture.mean, mean.as_flattened_mut());
    splat_all(&mixture.inverse_sd, inverse_sd.as_flattened_mut());
    let (mut y, mut z, mut e) = ([zero; D], [[zero; D]; K], [zero; K]);
    // [r, r zⱼ, r ½(zⱼ² − 1)] of each component, in five places of which a single column uses three.
    let (mut score, mut weighted) = ([[zero; 5]; K], [[zero; 5]; K]);
    const { assert!(D <= 2) };
    newton_pass::<V>(
        panel,
        w,
        sums,
        &mut Workspace {
            components: Components {
                log_constant: &log_constant,
                mean: mean.as_flattened(),
                inverse_sd: inverse_sd.as_flattened(),
            },
            k: K,
            y: &mut y,
            z: z.as_flattened_mut(),
            e: &mut e,
            score: &mut score.as_flattened_mut()[..K * (1 + 2 * D)],
            weighted: &mut weighted.as_flattened_mut()[..K * (1 + 2 * D)],
        },
    );
}

#[inline(always)]
fn newton_any<V: Vector>(panel: &Panel, w: &[f64], mixture: &Mixture, sums: &mut Sums) {
    let (k, d) = (mixture.k(), panel.d());
    let vectors = |len: usize| vec![V::splat(0.0); len];
    let (mut y, mut z, mut e) = (vectors(d), vectors(k * d), vectors(k));
    let (mut score, mut weighted) = (vectors(k * (1 + 2 * d)), vectors(k * (1 + 2 * d)));
    let splat = Splat::new::<V, Exact>(panel, mixture);
    let mut work = Workspace {
        components: splat.components(),
        k,
        y: &mut y,
        z: &mut z,
        e: &mut e,
        score: &mut score,
        weighted: &mut weighted,
    };
    newton_pass::<V>(panel, w, sums, &mut work);
}

/// Working memory of a Newton pass.
struct Workspace<'a, V> {
    components: Components<'a, V>,
    k: usize,
    y: &'a mut [V],
    z: &'a mut [V],
    e: &'a mut [V],
    /// r ũ of all components.
    score: &'a mut [V],
    /// w r ũ of all components.
    weighted: &'a mut [V],
}

#[inline(always)]
fn newton_pass<V: Vector>(panel: &Panel, w: &[f64], sums: &mut Sums, work: &mut Workspace<V>) {
    let (k, d) = (work.k, work.y.len());
    let p1 = 1 + 2 * d;
    let half = |z: V| z.fma(z, V::splat(-1.0)).mul(V::splat(0.5));
    for g in 0..panel.groups() {
        Exact::rows(panel, g, work.y);
        let weight: V = Exact::weights(w, g);
        let (max, total) = joint(work.y, work.components, work.z, work.e);
        add_product(&mut sums.log_lik, weight, max.add(total.ln()));
        let inverse = V::splat(1.0).div(total);
        for c in 0..k {
            let r = work.e[c].mul(inverse);
            let z = &work.z[c * d..(c + 1) * d];
            let score = &mut work.score[c * p1..(c + 1) * p1];
            score[0] = r;
            for j in 0..d {
                score[1 + j] = r.mul(z[j]);
                score[1 + d + j] = r.mul(half(z[j]));
            }
            let weighted = &mut work.weighted[c * p1..(c + 1) * p1];
            for (weighted, score) in weighted.iter_mut().zip(score) {
                *weighted = weight.mul(*score);
            }
            let em = &mut sums.em[c * p1..(c + 1) * p1];
            add(&mut em[0], weighted[0]);
            for j in 0..d {
                add(&mut em[1 + j], weighted[1 + j]);
                add_product(&mut em[1 + d + j], weighted[1 + j], z[j]);
            }
            add_inner(&mut sums.inner[c * p1 * (p1 + 1) / 2..], weighted, z);
        }
        let mut place = 0;
        for (i, weighted) in work.weighted.iter().enumerate() {
            for score in &work.score[i..] {
                add_product(&mut sums.outer[place], *weighted, *score);
                place += 1;
            }
        }
    }
}

/// Adds w r ũ ũᵀ; `weighted` is w r ũ.
#[inline(always)]
fn add_inner<V: Vector>(inner: &mut [Lanes], weighted: &[V], z: &[V]) {
    let d = z.len();
    let half = |z: V| z.fma(z, V::splat(-1.0)).mul(V::splat(0.5));
    let mut place = 0;
    for (i, weighted) in weighted.iter().enumerate() {
        for j in i..1 + 2 * d {
            match j {
                0 => add(&mut inner[place], *weighted),
                j if j <= d => add_product(&mut inner[place], *weighted, z[j - 1]),
                j => add_product(&mut inner[place], *weighted, half(z[j - 1 - d])),
            }
            place += 1;
        }
    }
}

#[inline(always)]
fn log_density_body<V: Vector>(panel: &Panel, mixture: &Mixture, out: &mut [f64]) {
    let vectors = |len: usize| vec![V::splat(0.0); len];
    let (mut y, mut z, mut e) = (vectors(panel.d()), vectors(mixture.k() * panel.d()), vectors(mixture.k()));
    let splat = Splat::new::<V, Exact>(panel, mixture);
    for (g, out) in out.chunks_mut(LANES).enumerate() {
        Exact::rows(panel, g, &mut y);
        let (max, total) = joint(&y, splat.components(), &mut z, &mut e);
        let log_f = max.add(total.ln()).lanes();
        out.copy_from_slice(&log_f[..out.len()]);
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

    /// log likelihood, sums of ũ, outer products over all components and within each.
    type Naive = (f64, Vec<Vec<f64>>, Array2<f64>, Vec<Array2<f64>>);

    /// The definition, row by row: sums of ũ and of outer products.
    fn naive(x: &Array2<f64>, w: &[f64], m: &Mixture) -> Naive {
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
        for (k, d) in [(1, 1), (2, 1), (3, 1), (4, 1), (5, 1), (2, 2), (3, 2), (4, 3)] {
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
                    sums.finish();
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
                let mut out = vec![0.0; 29];
                log_density(level, &panel, &mixture, &mut out);
                let total: f64 = out.iter().zip(&w).map(|(l, w)| l * w).sum();
                assert!((total - log_lik).abs() < 1e-12);
            }
        }
    }

    /// Rows far from zero, more than a run of them, and not a multiple of a step.
    #[test]
    fn singles_agree_with_doubles_to_five_digits() {
        for (k, d) in [(1, 1), (2, 1), (3, 1), (4, 1), (5, 1), (2, 2), (3, 2), (4, 3)] {
            let (_, _, mut mixture) = example(k, d);
            mixture.mean.iter_mut().for_each(|mean| *mean += 1e5);
            for n in [1, 7, 8, 9, 16, 17, 1500] {
                let x = Array2::from_shape_fn((n, d), |(i, j)| 1e5 + 2.5 * ((3 * i + j * 11) as f64).sin());
                let w: Vec<f64> = (0..n).map(|i| (1.0 + (i as f64).cos()) / n as f64).collect();
                let panel = Panel::new(x.view());
                assert!(panel.suits_singles(&mixture));
                for level in available() {
                    let sums_of = |pass: Pass| {
                        let mut sums = Sums::default();
                        sums.reset(k, d, true);
                        pass(level, &panel, &w, &mixture, &mut sums);
                        sums.finish();
                        sums
                    };
                    let (exact, rough) = (sums_of(newton_step), sums_of(e_step_roughly));
                    for c in 0..k {
                        let close = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-5;
                        assert!(exact.em(c, d).iter().zip(rough.em(c, d)).all(close), "{k} {d} {n}");
                    }
                    if newton_roughly_exists(k, d) {
                        let rough = sums_of(newton_step_roughly);
                        assert!((rough.log_lik() - exact.log_lik()).abs() < 1e-6, "{k} {d} {n}");
                        for (i, j) in (0..3 * k).flat_map(|i| (i..3 * k).map(move |j| (i, j))) {
                            let difference = rough.outer(i, j, 3 * k) - exact.outer(i, j, 3 * k);
                            assert!(difference.abs() < 1e-4, "{k} {d} {n}: {i} {j} {difference}");
                        }
                    }
                }
            }
        }
    }

    /// A component too narrow for singles is told from one that is not.
    #[test]
    fn narrow_components_do_not_suit_singles() {
        let (x, _, mut mixture) = example(3, 1);
        let panel = Panel::new(x.view());
        assert!(panel.suits_singles(&mixture));
        mixture.inverse_sd[1] = 1e5;
        assert!(!panel.suits_singles(&mixture));
    }

    /// A component a thousand times narrower than its neighbours, between two rows and on one.
    #[test]
    fn a_collapsed_component_keeps_its_digits() {
        let (x, w, mut mixture) = example(3, 1);
        for mean in [x[[4, 0]], x[[4, 0]] + 1e-3] {
            (mixture.mean[1], mixture.inverse_sd[1], mixture.log_constant[1]) = (mean, 1e3, 3.0);
            let (_, _, outer, inner) = naive(&x, &w, &mixture);
            for level in available() {
                let mut sums = Sums::default();
                sums.reset(3, 1, true);
                newton_step(level, &Panel::new(x.view()), &w, &mixture, &mut sums);
                for (i, j) in (0..9).flat_map(|i| (i..9).map(move |j| (i, j))) {
                    let (found, exact) = (sums.outer(i, j, 9), outer[[i, j]]);
                    assert!((found - exact).abs() < 1e-12 * (1.0 + exact.abs()), "{i} {j}: {found} {exact}");
                }
                for (i, j) in (0..3).flat_map(|i| (i..3).map(move |j| (i, j))) {
                    let (found, exact) = (sums.inner(1, i, j, 1), inner[1][[i, j]]);
                    assert!((found - exact).abs() < 1e-12 * (1.0 + exact.abs()), "{i} {j}: {found} {exact}");
                }
            }
        }
    }

    #[test]
    fn avx2_and_avx512_give_the_same_bits() {
        let levels: Vec<_> = available().filter(|&l| l != crate::kernel::Level::PLAIN).collect();
        let (x, w, mixture) = example(3, 1);
        let panel = Panel::new(x.view());
        let bits: Vec<Vec<u64>> = levels
            .iter()
            .map(|&level| {
                let mut sums = Sums::default();
                sums.reset(3, 1, true);
                e_step(level, &panel, &w, &mixture, &mut sums);
                newton_step(level, &panel, &w, &mixture, &mut sums);
                e_step_roughly(level, &panel, &w, &mixture, &mut sums);
                newton_step_roughly(level, &panel, &w, &mixture, &mut sums);
                sums.finish();
                let em = (0..3).flat_map(|c| sums.em(c, 1).to_vec());
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
            sums.finish();
            assert!(sums.log_lik().is_finite());
            assert_eq!(sums.em(1, 1), [0.0; 3]);
        }
    }
}

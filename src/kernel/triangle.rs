//! Symmetric matrices in step, one a lane: Cholesky factors, products and updates of rank one.

use super::dispatch;
use super::vector::{Arithmetic, LANES, Line, Register, Scalar, Vector};

/// Rows that are stored together.
const ROWS: usize = 4;

/// Lower triangles by blocks of four rows: those of a block, column after column, up to its square on the diagonal, which
/// is whole. The last block is filled up with rows of the identity.
#[derive(Clone)]
pub struct Triangles<T = f64, const L: usize = LANES> {
    entries: Vec<[Line<T, L>; ROWS]>,
    order: usize,
}

impl<T: Scalar<L>, const L: usize> Triangles<T, L> {
    /// Identities of `p` rows.
    pub fn new(p: usize) -> Self {
        let order = p.next_multiple_of(ROWS);
        let blocks = order / ROWS;
        let mut new =
            Triangles { entries: vec![Default::default(); ROWS * blocks * (blocks + 1) / 2], order };
        (0..order).for_each(|j| new.entry(j, j).0.fill(T::of(1.0)));
        new
    }

    /// Rows, with those that fill up the last block: the length of vectors to go with the matrices.
    pub fn order(&self) -> usize {
        self.order
    }

    /// The matrix of one lane, from its lower triangle row after row.
    pub fn set(&mut self, lane: usize, lower: &[f64]) {
        self.visit(lower, |line, value| line[lane] = T::of(value));
    }

    /// The lower triangle of the matrix of one lane, `p` rows one after another.
    pub fn lower(&self, lane: usize, p: usize) -> Vec<f64> {
        let mut lower = Vec::with_capacity(p * (p + 1) / 2);
        for j in 0..p {
            let row = &self.entries[start(j / ROWS)..][..=j];
            lower.extend(row.iter().map(|entry| entry[j % ROWS][lane].into()));
        }
        lower
    }

    /// Adds to the matrix of one lane.
    pub fn add(&mut self, lane: usize, lower: &[f64]) {
        self.visit(lower, |line, value| line[lane] = T::of(line[lane].into() + value));
    }

    /// The entries that are stored, each with that of a lower triangle.
    fn visit(&mut self, lower: &[f64], mut to: impl FnMut(&mut Line<T, L>, f64)) {
        let (mut j, mut rest) = (0, lower);
        while let Some((row, next)) = rest.split_at_checked(j + 1) {
            let entries = &mut self.entries[start(j / ROWS)..];
            entries.iter_mut().zip(row).for_each(|(entry, value)| to(&mut entry[j % ROWS], *value));
            // The squares on the diagonal are whole.
            for (k, value) in row.iter().enumerate().take(j).skip(j - j % ROWS) {
                to(self.entry(k, j), *value);
            }
            (j, rest) = (j + 1, next);
        }
    }

    /// Entry j of the diagonal.
    pub fn diagonal(&self, j: usize) -> &Line<T, L> {
        &self.block(j / ROWS)[j][j % ROWS]
    }

    fn entry(&mut self, j: usize, k: usize) -> &mut Line<T, L> {
        &mut self.entries[start(j / ROWS) + k][j % ROWS]
    }

    /// Columns of a block of rows.
    fn block(&self, b: usize) -> &[[Line<T, L>; ROWS]] {
        &self.entries[start(b)..start(b + 1)]
    }
}

/// Where a block begins.
fn start(block: usize) -> usize {
    ROWS * block * (block + 1) / 2
}

dispatch! {
    /// The Cholesky factors of `a` with `more` added to the diagonal; 1/Lⱼⱼ in the place of Lⱼⱼ. All is NaN from the row on
    /// where a matrix turns out not to be positive definite, and so is the last entry.
    pub fn factor[T, L](a: &Triangles<T, L>, more: &[Line<T, L>], l: &mut Triangles<T, L>) = factor_body
}

#[inline(always)]
fn factor_body<V: Vector, T: Scalar<L>, const L: usize>(
    a: &Triangles<T, L>,
    more: &[Line<T, L>],
    l: &mut Triangles<T, L>,
) {
    if <T::In<V>>::SUMS >= 16 {
        factor_by::<T::In<V>, T, L, 4>(a, more, l)
    } else {
        factor_by::<T::In<V>, T, L, 2>(a, more, l)
    }
}

/// The first entries. Loops and no closures, here and below: these are not always inlined into code that is compiled for a feature.
#[inline(always)]
fn loaded<V: Register<T, L>, T: Scalar<L>, const L: usize>(x: &[Line<T, L>]) -> [V; ROWS] {
    let mut own = [V::splat(0.0); ROWS];
    for (own, x) in own.iter_mut().zip(&x[..ROWS]) {
        *own = V::load(x);
    }
    own
}

/// By squares of N rows and columns, whose sums stay in registers.
#[allow(clippy::needless_range_loop)] // Rows and columns of a square are numbers here.
#[inline(always)]
fn factor_by<V: Register<T, L>, T: Scalar<L>, const L: usize, const N: usize>(
    a: &Triangles<T, L>,
    more: &[Line<T, L>],
    l: &mut Triangles<T, L>,
) {
    for i in (0..a.order).step_by(N) {
        for j in (0..=i).step_by(N) {
            let (bi, bj) = (start(i / ROWS), start(j / ROWS));
            let (ri, rj) = (i % ROWS, j % ROWS);
            // Σₖ Lᵢₖ Lⱼₖ over the columns before j.
            let mut sums = [[V::splat(0.0); N]; N];
            for (x, y) in l.entries[bi..bi + j].iter().zip(&l.entries[bj..bj + j]) {
                let mut own = [V::splat(0.0); N];
                for (own, y) in own.iter_mut().zip(&y[rj..rj + N]) {
                    *own = V::load(y);
                }
                for r in 0..N {
                    let x = V::load(&x[ri + r]);
                    for (sum, y) in sums[r].iter_mut().zip(&own) {
                        *sum = x.fma(*y, *sum);
                    }
                }
            }
            for c in 0..N {
                if i == j {
                    let whole = V::load(&a.entries[bj + j + c][rj + c]).add(V::load(&more[j + c]));
                    let pivot = whole.sub(sums[c][c]);
                    let pivot = pivot.if_below(V::splat(T::NOTHING).mul(whole), V::splat(f64::NAN), pivot);
                    l.entries[bj + j + c][rj + c].0 = V::splat(1.0).div(pivot.sqrt()).lanes();
                }
                let inverse = V::load(&l.entries[bj + j + c][rj + c]);
                for r in if i == j { c + 1 } else { 0 }..N {
                    let value = V::load(&a.entries[bi + j + c][ri + r]).sub(sums[r][c]).mul(inverse);
                    l.entries[bi + j + c][ri + r].0 = value.lanes();
                    // On the diagonal the rows of this very square are the other factor: no more than are there already.
                    for later in c + 1..if i == j { r + 1 } else { N } {
                        let other = V::load(&l.entries[bj + j + c][rj + later]);
                        sums[r][later] = value.fma(other, sums[r][later]);
                    }
                }
            }
        }
    }
}

dispatch! {
    /// x becomes (L Lᵀ)⁻¹ x.
    pub fn solve[T, L](l: &Triangles<T, L>, x: &mut [Line<T, L>]) = solve_body
}

#[inline(always)]
fn solve_body<V: Vector, T: Scalar<L>, const L: usize>(l: &Triangles<T, L>, x: &mut [Line<T, L>]) {
    solve_in::<T::In<V>, T, L>(l, x);
}

#[inline(always)]
fn solve_in<V: Register<T, L>, T: Scalar<L>, const L: usize>(l: &Triangles<T, L>, x: &mut [Line<T, L>]) {
    for b in 0..l.order / ROWS {
        let (before, square) = l.block(b).split_at(ROWS * b);
        let mut own: [V; ROWS] = loaded(&x[ROWS * b..]);
        let mut sums = [V::splat(0.0); ROWS];
        for (l, x) in before.iter().zip(x.iter()) {
            let x = V::load(x);
            for (sum, l) in sums.iter_mut().zip(l) {
                *sum = V::load(l).fma(x, *sum);
            }
        }
        for c in 0..ROWS {
            own[c] = own[c].sub(sums[c]).mul(V::load(&square[c][c]));
            for r in c + 1..ROWS {
                sums[r] = V::load(&square[c][r]).fma(own[c], sums[r]);
            }
        }
        for (to, from) in x[ROWS * b..].iter_mut().zip(&own) {
            to.0 = from.lanes();
        }
    }
    for b in (0..l.order / ROWS).rev() {
        let (before, square) = l.block(b).split_at(ROWS * b);
        let mut own: [V; ROWS] = loaded(&x[ROWS * b..]);
        for c in (0..ROWS).rev() {
            let mut sum = V::splat(0.0);
            for r in c + 1..ROWS {
                sum = V::load(&square[c][r]).fma(own[r], sum);
            }
            own[c] = own[c].sub(sum).mul(V::load(&square[c][c]));
        }
        for (to, from) in x[ROWS * b..].iter_mut().zip(&own) {
            to.0 = from.lanes();
        }
        for (l, x) in before.iter().zip(x.iter_mut()) {
            let mut sum = V::splat(0.0);
            for (l, own) in l.iter().zip(&own) {
                sum = V::load(l).fma(*own, sum);
            }
            x.0 = V::load(x).sub(sum).lanes();
        }
    }
}

dispatch! {
    /// `out` = A x.
    pub fn times[T, L](a: &Triangles<T, L>, x: &[Line<T, L>], out: &mut [Line<T, L>]) = times_body
}

#[inline(always)]
fn times_body<V: Vector, T: Scalar<L>, const L: usize>(
    a: &Triangles<T, L>,
    x: &[Line<T, L>],
    out: &mut [Line<T, L>],
) {
    times_in::<T::In<V>, T, L>(a, x, out);
}

#[inline(always)]
fn times_in<V: Register<T, L>, T: Scalar<L>, const L: usize>(
    a: &Triangles<T, L>,
    x: &[Line<T, L>],
    out: &mut [Line<T, L>],
) {
    for b in 0..a.order / ROWS {
        let (before, square) = a.block(b).split_at(ROWS * b);
        let own: [V; ROWS] = loaded(&x[ROWS * b..]);
        let mut sums = [V::splat(0.0); ROWS];
        for ((a, x), out) in before.iter().zip(x).zip(out.iter_mut()) {
            let (x, mut sum) = (V::load(x), V::load(out));
            for r in 0..ROWS {
                let a = V::load(&a[r]);
                sums[r] = a.fma(x, sums[r]);
                sum = a.fma(own[r], sum);
            }
            out.0 = sum.lanes();
        }
        for (a, x) in square.iter().zip(own) {
            for (sum, a) in sums.iter_mut().zip(a) {
                *sum = V::load(a).fma(x, *sum);
            }
        }
        for (to, from) in out[ROWS * b..].iter_mut().zip(&sums) {
            to.0 = from.lanes();
        }
    }
}

dispatch! {
    /// A becomes A + u uᵀ − v vᵀ.
    pub fn update[T, L](a: &mut Triangles<T, L>, u: &[Line<T, L>], v: &[Line<T, L>]) = update_body
}

#[inline(always)]
fn update_body<V: Vector, T: Scalar<L>, const L: usize>(
    a: &mut Triangles<T, L>,
    u: &[Line<T, L>],
    v: &[Line<T, L>],
) {
    update_in::<T::In<V>, T, L>(a, u, v);
}

#[inline(always)]
fn update_in<V: Register<T, L>, T: Scalar<L>, const L: usize>(
    a: &mut Triangles<T, L>,
    u: &[Line<T, L>],
    v: &[Line<T, L>],
) {
    for b in 0..a.order / ROWS {
        let own_u: [V; ROWS] = loaded(&u[ROWS * b..]);
        let mut own_v: [V; ROWS] = loaded(&v[ROWS * b..]);
        for v in &mut own_v {
            *v = V::splat(0.0).sub(*v);
        }
        for ((a, u), v) in a.entries[start(b)..start(b + 1)].iter_mut().zip(u).zip(v) {
            let (u, v) = (V::load(u), V::load(v));
            for r in 0..ROWS {
                a[r].0 = own_v[r].fma(v, own_u[r].fma(u, V::load(&a[r]))).lanes();
            }
        }
    }
}

dispatch! {
    /// Adds to every entry of `d` this share of the largest entry on the diagonal of its lane.
    pub fn add_ridge[T, L](a: &Triangles<T, L>, share: f64, d: &mut [Line<T, L>]) = add_ridge_body
}

#[inline(always)]
fn add_ridge_body<V: Vector, T: Scalar<L>, const L: usize>(
    a: &Triangles<T, L>,
    share: f64,
    d: &mut [Line<T, L>],
) {
    let mut most = <T::In<V>>::splat(0.0);
    for j in 0..d.len() {
        most = <T::In<V>>::load(a.diagonal(j)).max(most);
    }
    let ridge = most.mul(<T::In<V>>::splat(share));
    for d in d {
        d.0 = <T::In<V>>::load(d).add(ridge).lanes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::available;
    use ndarray::{Array1, Array2};

    const P: usize = 11;

    /// Numbers without a pattern.
    fn noise(i: usize) -> f64 {
        ((i * 7919 + 13) % 997) as f64 / 500.0 - 1.0
    }

    /// A positive definite matrix for each lane.
    fn matrix(lane: usize) -> Array2<f64> {
        let root = Array2::from_shape_fn((P, P), |(i, j)| noise(1000 * lane + i * P + j));
        root.dot(&root.t()) + 0.1 * Array2::<f64>::eye(P)
    }

    fn triangles() -> Triangles {
        let mut all = Triangles::new(P);
        for lane in 0..LANES {
            let a = matrix(lane);
            let lower: Vec<f64> = (0..P).flat_map(|j| (0..=j).map(move |k| (j, k))).map(|jk| a[jk]).collect();
            all.set(lane, &lower);
        }
        all
    }

    fn vector(from: usize) -> Vec<Line> {
        let line =
            |j: usize| Line(std::array::from_fn(|l| if j < P { noise(from + 31 * l + j) } else { 0.0 }));
        (0..P.next_multiple_of(ROWS)).map(line).collect()
    }

    fn lane(x: &[Line], l: usize) -> Array1<f64> {
        x[..P].iter().map(|x| x[l]).collect()
    }

    #[test]
    fn solutions_products_and_updates_are_those_of_the_definition() {
        let (x, more, u, v) = (vector(5), vec![Line([0.3; LANES]); 12], vector(7000), vector(8000));
        for level in available() {
            let (mut a, mut l) = (triangles(), Triangles::new(P));
            let mut product = vec![Line::default(); 12];
            times(level, &a, &x, &mut product);
            let mut solved = x.clone();
            factor(level, &a, &more, &mut l);
            solve(level, &l, &mut solved);
            update(level, &mut a, &u, &v);
            let mut updated = vec![Line::default(); 12];
            times(level, &a, &x, &mut updated);
            for lane_number in 0..LANES {
                let exact = matrix(lane_number);
                let near = |a: Array1<f64>, b: Array1<f64>| (a - b).iter().all(|e| e.abs() < 1e-12);
                let [x, u, v] = [&x, &u, &v].map(|x| lane(x, lane_number));
                assert!(near(lane(&product, lane_number), exact.dot(&x)), "{level:?}: product");
                let back = (&exact + 0.3 * Array2::<f64>::eye(P)).dot(&lane(&solved, lane_number));
                assert!(near(back, x.clone()), "{level:?}: solution");
                let rank_one = &u * u.dot(&x) - &v * v.dot(&x);
                assert!(near(lane(&updated, lane_number), exact.dot(&x) + rank_one), "{level:?}: update");
            }
        }
    }

    #[test]
    fn what_is_added_to_one_lane_leaves_the_others_alone() {
        let (mut a, before) = (triangles(), triangles());
        a.add(3, &vec![0.5; P * (P + 1) / 2]);
        let x = vec![Line([1.0; LANES]); 12];
        for level in available() {
            let (mut after, mut first) = (vec![Line::default(); 12], vec![Line::default(); 12]);
            times(level, &a, &x, &mut after);
            times(level, &before, &x, &mut first);
            for j in 0..P {
                for l in 0..LANES {
                    let more = if l == 3 { 0.5 * P as f64 } else { 0.0 };
                    assert!((after[j][l] - first[j][l] - more).abs() < 1e-12, "{level:?}: {j}, lane {l}");
                }
            }
        }
    }

    #[test]
    fn a_matrix_that_is_not_positive_definite_leaves_the_others_alone() {
        let mut more = vec![Line::default(); 12];
        more[4][3] = -100.0;
        for level in available() {
            let mut l = Triangles::new(P);
            factor(level, &triangles(), &more, &mut l);
            for lane in 0..LANES {
                assert_eq!(l.diagonal(11)[lane].is_nan(), lane == 3, "{level:?}");
            }
        }
    }
}

//! The hot loops one by one, on one thread, at every SIMD level this CPU has: `cargo bench`, or `cargo bench -- e_step`.
//!
//! An item is a floating-point operation, counted from the code as written (a fused multiply-add is two, a division or
//! comparison one), so that items per second over those of `peak` are the share of what one core can do. Only what is
//! needed counts: lanes that hold no row, column or component do not. `exponential_masses` and `dirichlet_weights` count rows.

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use ndarray::Array2;
use npl::data::Dataset;
use npl::kernel::elementary::{exp_all, multiply_add};
use npl::kernel::exponentials::{Generators, exponentials as variates};
use npl::kernel::mixture::{self, Mixture, Sums};
use npl::kernel::products::{add_gradients, add_margins, cross_products};
use npl::kernel::regression::loss_and_slope;
use npl::kernel::sparse::{self, Expanded, Ledger, SparseRows};
use npl::kernel::{LANES, Level, Line, Panel, SINGLES, Scalar, available};
use npl::model::Logistic;
use npl::process::Prior;
use npl::rng::{CHUNK, Purpose, Seed};

fn main() {
    divan::main();
}

/// Operations of the exponential and of the logarithm of `kernel::vector`.
const EXP: usize = 30;
const LN: usize = 24;
/// Rows of logistic data that are worked on together.
const TILE: usize = 512;

/// Numbers between −1 and 1, the same in every run.
fn wave(i: usize) -> f64 {
    (i as f64 * 0.7391).sin()
}

fn weights(n: usize) -> Vec<f64> {
    (0..n).map(|i| (1.0 + wave(i)) / n as f64).collect()
}

/// What one core can do with operands in registers.
#[divan::bench(args = available())]
fn peak(bencher: Bencher, level: Level) {
    const ROUNDS: usize = 10_000;
    let (numbers, _) = multiply_add(level, 1);
    let operations = ItemsCount::new(2 * ROUNDS * numbers);
    bencher.counter(operations).bench(|| multiply_add(level, black_box(ROUNDS)));
}

#[divan::bench(args = available())]
fn exponentials(bencher: Bencher, level: Level) {
    const N: usize = 1024;
    let x: Vec<[f64; LANES]> =
        (0..N / LANES).map(|g| std::array::from_fn(|l| 20.0 * wave(g * LANES + l))).collect();
    bencher.counter(ItemsCount::new(EXP * N)).with_inputs(|| x.clone()).bench_refs(|x| exp_all(level, x));
}

fn a_mixture(k: usize, d: usize) -> Mixture {
    Mixture {
        log_constant: (0..k).map(|c| wave(c) - 1.0).collect(),
        mean: (0..k * d).map(|i| 2.0 * wave(3 * i)).collect(),
        inverse_sd: (0..k * d).map(|i| 1.5 + 0.5 * wave(5 * i)).collect(),
    }
}

/// Rows, components and columns: the toy mixture, and one without code of its own size.
const MIXTURES: [(usize, usize, usize); 2] = [(1000, 3, 1), (1000, 5, 10)];
/// The toy mixture, whose second derivatives follow from moments, and one in the plane.
const NEWTON: [(usize, usize, usize); 2] = [(1000, 3, 1), (1000, 3, 2)];

fn with_levels<T: Copy>(cases: &[T]) -> Vec<(T, Level)> {
    cases.iter().flat_map(|&case| available().map(move |level| (case, level))).collect()
}

type Pass = fn(Level, &Panel, &[f64], &Mixture, &mut Sums);

fn mixture_pass(
    bencher: Bencher,
    ((n, k, d), level): ((usize, usize, usize), Level),
    pass: Pass,
    newton: bool,
    operations: fn(usize, usize) -> usize,
) {
    let panel = Panel::new(Array2::from_shape_fn((n, d), |(i, j)| 3.0 * wave(i * d + j)).view());
    let (w, mixture) = (weights(n), a_mixture(k, d));
    let mut sums = Sums::default();
    bencher.counter(ItemsCount::new(n * operations(k, d))).bench_local(|| {
        sums.reset(k, d, newton);
        pass(level, &panel, &w, &mixture, &mut sums);
        sums.log_lik()
    });
}

/// Of a row: z and its square, log joint and exponential of each component.
fn joint_operations(k: usize, d: usize) -> usize {
    k * (4 * d + 2 + 1 + EXP + 1)
}

/// Of a row: its log likelihood, given the joint.
const VALUE: usize = LN + 3;

/// The joint, the share of the row, and the sums of each component.
fn em_operations(k: usize, d: usize) -> usize {
    joint_operations(k, d) + 1 + k * (2 + 4 * d)
}

#[divan::bench(args = with_levels(&MIXTURES))]
fn mixture_e_step(bencher: Bencher, case: ((usize, usize, usize), Level)) {
    mixture_pass(bencher, case, mixture::e_step, false, |k, d| em_operations(k, d) + VALUE);
}

#[divan::bench(args = with_levels(&MIXTURES))]
fn mixture_e_step_roughly(bencher: Bencher, case: ((usize, usize, usize), Level)) {
    mixture_pass(bencher, case, mixture::e_step_roughly, false, em_operations);
}

/// On the line five moments of each component and pair; elsewhere the scores r ũ with and without their weight, and both
/// triangles of their products.
fn newton_operations(k: usize, d: usize) -> usize {
    let (p1, p) = (1 + 2 * d, k * (1 + 2 * d));
    let sums = match d {
        1 => k + 13 * (k + k * (k - 1) / 2),
        _ => k * (2 + 8 * d + p1) + p * (p + 1) + k * p1 * (p1 + 1),
    };
    joint_operations(k, d) + VALUE + 1 + sums
}

#[divan::bench(args = with_levels(&NEWTON[..1]))]
fn mixture_newton_step_roughly(bencher: Bencher, case: ((usize, usize, usize), Level)) {
    mixture_pass(bencher, case, mixture::newton_step_roughly, true, newton_operations);
}

#[divan::bench(args = with_levels(&NEWTON))]
fn mixture_newton_step(bencher: Bencher, case: ((usize, usize, usize), Level)) {
    mixture_pass(bencher, case, mixture::newton_step, true, newton_operations);
}

/// Images of digits have 784 columns; a fifth of the cells is not zero here, and every row is near one component. A first
/// pass, with all rows open; and one after a step that has changed a twentieth of the columns.
#[divan::bench(args = with_levels(&["first", "next"]))]
fn sparse_e_step(bencher: Bencher, (pass, level): (&str, Level)) {
    let (n, k, d) = (1000, 10, 784);
    let centre =
        |c: usize, j: usize| if (c + j).is_multiple_of(5) { 0.5 + 0.3 * wave(c * d + j) } else { 0.0 };
    let x = Array2::from_shape_fn((n, d), |(i, j)| centre(i % k, j) * (1.0 + 0.1 * wave(i + j * n)));
    let (rows, w) = (SparseRows::new(x.view()), weights(n));
    let mixture = |shift: f64| {
        let moved = |j: usize| if j.is_multiple_of(20) { shift } else { 0.0 };
        let mean: Vec<f64> = (0..k * d).map(|i| centre(i / d, i % d) + moved(i % d)).collect();
        Expanded::new(level, &vec![0.1; k], &mean, &vec![0.01; k * d]).expect("means are near zero")
    };
    let mixtures = [mixture(0.0), mixture(0.1)];
    let mut ledger = Ledger::new(k, d);
    let one = |ledger: &mut Ledger, mixture: &Expanded| {
        ledger.begin();
        sparse::e_step(level, &rows, &w, mixture, 0, true, ledger);
        ledger.end(mixture)
    };
    one(&mut ledger, &mixtures[0]);
    // Log joints: two multiply-adds for each cell and component. A first pass adds each cell to the sums of its component.
    let cells = |step: usize| x.columns().into_iter().step_by(step).flatten().filter(|x| **x != 0.0).count();
    match pass {
        "first" => bencher
            .counter(ItemsCount::new(cells(1) * (4 * k + 4)))
            .with_inputs(|| Ledger::new(k, d))
            .bench_local_refs(|ledger| one(ledger, &mixtures[0])),
        _ => bencher.counter(ItemsCount::new(2 * 4 * k * cells(20))).bench_local(|| {
            one(&mut ledger, &mixtures[1]);
            one(&mut ledger, &mixtures[0])
        }),
    }
}

/// The loss and its slopes, given margins.
#[divan::bench(args = available())]
fn logistic_loss_and_slope(bencher: Bencher, level: Level) {
    loss::<f64, LANES>(bencher, level);
}

#[divan::bench(args = available())]
fn logistic_loss_and_slope_singles(bencher: Bencher, level: Level) {
    loss::<f32, SINGLES>(bencher, level);
}

fn loss<T: Scalar<L>, const L: usize>(bencher: Bencher, level: Level) {
    let lines = |x: &dyn Fn(usize) -> f64| (0..TILE).map(|i| Line([T::of(x(i)); L])).collect::<Vec<_>>();
    let (u, t) = (lines(&|_| 1.0), lines(&|i| (i % 2) as f64));
    let margins = lines(&|i| 4.0 * wave(i));
    bencher
        .counter(ItemsCount::new(L * TILE * (EXP + LN + 12)))
        .with_inputs(|| margins.clone())
        .bench_refs(|margins| loss_and_slope::<Logistic, _, _>(level, margins, &u, &t));
}

/// Margins of a tile of rows for two lines of draws, at the sizes of Adult and of Arcene.
#[divan::bench(args = products())]
fn logistic_margins(bencher: Bencher, &(level, d, rows): &(Level, usize, usize)) {
    margins::<f64, LANES>(bencher, level, d, rows);
}

#[divan::bench(args = products())]
fn logistic_margins_singles(bencher: Bencher, &(level, d, rows): &(Level, usize, usize)) {
    margins::<f32, SINGLES>(bencher, level, d, rows);
}

fn margins<T: Scalar<L>, const L: usize>(bencher: Bencher, level: Level, d: usize, rows: usize) {
    let x: Panel<T, L> = panel(rows, d);
    let (theta, mut margins) = (block::<T, L>(d), block::<T, L>(x.rows()));
    bencher.counter(ItemsCount::new(2 * 2 * L * rows * d)).bench_local(|| {
        let theta = theta.each_ref().map(|t| &t[..]);
        let mut margins = margins.each_mut().map(|m| &mut m[..]);
        add_margins(level, &x, 0..x.groups(), 0..d, &theta, &mut margins);
    });
}

/// Gradients of two lines of draws from the slopes of a tile of rows.
#[divan::bench(args = products())]
fn logistic_gradients(bencher: Bencher, &(level, d, rows): &(Level, usize, usize)) {
    gradients::<f64, LANES>(bencher, level, d, rows);
}

#[divan::bench(args = products())]
fn logistic_gradients_singles(bencher: Bencher, &(level, d, rows): &(Level, usize, usize)) {
    gradients::<f32, SINGLES>(bencher, level, d, rows);
}

fn gradients<T: Scalar<L>, const L: usize>(bencher: Bencher, level: Level, d: usize, rows: usize) {
    let x: Panel<T, L> = panel(rows, d);
    let (slopes, mut gradients) = (block::<T, L>(x.rows()), block::<T, L>(d));
    bencher.counter(ItemsCount::new(2 * 2 * L * rows * d)).bench_local(|| {
        let slopes = slopes.each_ref().map(|s| &s[..]);
        let mut gradients = gradients.each_mut().map(|g| &mut g[..]);
        add_gradients(level, &x, 0..x.groups(), 0..d, &slopes, &mut gradients);
    });
}

fn products() -> Vec<(Level, usize, usize)> {
    available().flat_map(|level| [(level, 97, TILE), (level, 10_000, 100)]).collect()
}

fn panel<T: Scalar<L>, const L: usize>(rows: usize, d: usize) -> Panel<T, L> {
    Panel::new(Array2::from_shape_fn((rows, d), |(i, j)| wave(i * d + j)).view())
}

/// Numbers of two lines of draws, each a lane.
fn block<T: Scalar<L>, const L: usize>(len: usize) -> [Vec<Line<T, L>>; 2] {
    [0; 2].map(|_| (0..len).map(|i| Line([T::of(wave(i) / len as f64); L])).collect())
}

/// The Hessian of a draw, at the size of Polish: the lower triangle of Xᵀ V X.
#[divan::bench(args = available())]
fn logistic_hessian(bencher: Bencher, level: Level) {
    hessian::<f64, LANES>(bencher, level);
}

#[divan::bench(args = available())]
fn logistic_hessian_singles(bencher: Bencher, level: Level) {
    hessian::<f32, SINGLES>(bencher, level);
}

fn hessian<T: Scalar<L>, const L: usize>(bencher: Bencher, level: Level) {
    const N: usize = 8400;
    const D: usize = 65;
    let x: Panel<T, L> = panel(N, D);
    let v = vec![Line([T::of(0.2); L]); x.groups()];
    bencher.counter(ItemsCount::new(N * D * (D + 1))).bench_local(|| cross_products(level, &x, &[&v]));
}

/// The observed part of a draw before normalisation, its streams included.
#[divan::bench(args = available())]
fn exponential_masses(bencher: Bencher, level: Level) {
    const N: usize = 100_000;
    let (mut masses, mut draw) = (vec![0.0; N], 0);
    bencher.counter(ItemsCount::new(N)).bench_local(|| {
        draw += 1;
        let chunk = |(c, out): (u64, &mut [f64])| {
            let generators = Generators::seeded(&mut Seed(1).stream(Purpose::Weights, draw, c));
            variates(level, &generators, out)
        };
        (0..).zip(masses.chunks_mut(CHUNK)).map(chunk).sum::<f64>()
    });
}

#[divan::bench(args = [1000, 36_177, 100_000])]
fn dirichlet_weights(bencher: Bencher, n: usize) {
    let data = Dataset::from_values((0..n).map(wave).collect());
    let mut draw = 0;
    bencher.counter(ItemsCount::new(n)).bench_local(|| {
        draw += 1;
        Prior::Noninformative.posterior_draw(&data, Seed(1), draw).weights().0[0]
    });
}

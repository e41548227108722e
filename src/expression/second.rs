//! Second derivatives of a loss. A row sees θ through its inputs: the entries of θ that it names, and its margins. There are few of
//! them, so the curvature of every row is a small matrix, by expressions; how it is spread over the coefficients of a margin is a
//! product of matrices, Xᵀ V X.

use ndarray::Array2;

use super::derive::Underivable;
use super::evaluate::{Buffers, Numbers, Seat, Weighted, sum, tiles};
use super::prepared::{Prepared, TILE};
use super::program::Program;
use super::tape::{Id, Op, Tape};
use crate::kernel::products::cross_products;
use crate::kernel::tape::{Binary, Operand, add_gradients, binary, weighted_sum};
use crate::kernel::{LANES, Level, Line};

/// The most inputs of a row, and the most operations for the curvatures of all of them.
const MOST_INPUTS: usize = 64;
const MOST_OPERATIONS: usize = 20_000;

/// What a row sees of θ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    Parameter(usize),
    Margin(usize),
}

/// Where second derivatives are wanted.
#[derive(Clone, Copy, Debug)]
pub enum At<'a> {
    Here(&'a [f64]),
    /// In the mean of the way from θ = 0. Of a margin alone that is the slope of the chord of ∂l/∂η: far from the minimum of a convex
    /// loss, whose bend vanishes far out, it tells how far to go where the bend itself does not.
    FromZero(&'a [f64]),
}

/// Gauss and Legendre's places and shares between 0 and 1.
const PLACES: [[f64; 2]; 5] = [
    [0.046_910_077_030_668, 0.118_463_442_528_094_5],
    [0.230_765_344_947_158_5, 0.239_314_335_249_683_2],
    [0.5, 0.284_444_444_444_444_4],
    [0.769_234_655_052_841_5, 0.239_314_335_249_683_2],
    [0.953_089_922_969_332, 0.118_463_442_528_094_5],
];

impl At<'_> {
    /// Points and their shares; on the way from 0 they crowd near it, where bends are large.
    fn points(&self) -> Vec<(Vec<f64>, f64)> {
        let at = |theta: &[f64], [s, share]: [f64; 2]| {
            (theta.iter().map(|t| s * s * t).collect::<Vec<f64>>(), 2.0 * s * share)
        };
        match self {
            At::Here(theta) => vec![(theta.to_vec(), 1.0)],
            At::FromZero(theta) => PLACES.iter().map(|place| at(theta, *place)).collect(),
        }
    }
}

/// The second derivatives of the first number of a program by the inputs of its rows.
#[derive(Clone, Debug)]
pub struct Second {
    program: Program,
    pub inputs: Vec<Input>,
    /// Which two inputs each number of the program belongs to; those that are missing are 0.
    pub pairs: Vec<(usize, usize)>,
    /// The entry of θ that each coefficient of a margin is; none if it is a constant.
    coefficients: Vec<Vec<Option<usize>>>,
}

impl Second {
    /// `None` if inputs are too many, or an operation has no second derivative, or coefficients are made of several parameters.
    pub fn new(program: &Program) -> Option<Second> {
        let (mut tape, root) = (program.tape.clone(), program.roots[0]);
        let coefficients =
            tape.margins.iter().map(|ids| of_margin(&tape, ids)).collect::<Option<Vec<_>>>()?;
        let found = inputs(&tape, root);
        if found.len() > MOST_INPUTS {
            return None;
        }
        let (ids, pairs) = curvatures(&mut tape, root, &found).ok()?;
        let inputs = found.iter().map(|(_, input)| *input).collect();
        Some(Second { program: Program::new(tape, ids), inputs, pairs, coefficients })
    }

    pub fn program(&self) -> &Program {
        &self.program
    }

    pub fn has_margins(&self) -> bool {
        self.inputs.iter().any(|input| matches!(input, Input::Margin(_)))
    }

    /// The curvatures of every tile of rows, up to a line: its first line, and the numbers of every pair, at a point or in the mean of
    /// some.
    fn visit(
        &self,
        points: &[(Vec<f64>, f64)],
        rows: &Prepared,
        lines: usize,
        mut see: impl FnMut(usize, &mut [Vec<Line>]),
    ) {
        let (program, level) = (&self.program, Level::current());
        let thetas: Vec<&[f64]> = points.iter().map(|(theta, _)| &theta[..]).collect();
        let numbers = Numbers::new(program, level, &thetas);
        let mut seats: Vec<Seat> = (0..points.len()).map(|s| Seat::new(program, &numbers, s)).collect();
        let mut buffers = Buffers::new(program);
        let mut means = vec![Vec::new(); self.pairs.len()];
        let mut here = vec![Line::default(); TILE];
        for tile in tiles(rows).take_while(|tile| tile.first < lines) {
            tile.fill_margins(level, &mut seats.iter_mut().collect::<Vec<_>>());
            for mean in &mut means {
                mean.clear();
                mean.resize(tile.len, Line::default());
            }
            for (seat, (_, share)) in seats.iter().zip(points) {
                tile.forward(program, level, seat, &mut buffers);
                for (&id, mean) in program.roots.iter().zip(&mut means) {
                    let found = tile.operand(program, id, &buffers.values, &seat.splats);
                    binary(
                        level,
                        Binary::Mul,
                        found,
                        Operand::all(&Line([*share; LANES])),
                        &mut here[..tile.len],
                    );
                    for (mean, here) in mean.iter_mut().zip(&here) {
                        (0..LANES).for_each(|l| mean[l] += here[l]);
                    }
                }
            }
            see(tile.first, &mut means);
        }
    }

    /// Σ w ∂²l/∂θ∂θ over some rows. What `convex` rows would not have is left out of them.
    pub fn hessian(&self, at: At, on: &[Weighted], convex: bool) -> Array2<f64> {
        let points = at.points();
        let p = points[0].0.len();
        let mut h = Array2::zeros((p, p));
        on.iter().for_each(|on| self.add_hessian(&points, on, convex, &mut h));
        h
    }

    fn add_hessian(&self, points: &[(Vec<f64>, f64)], on: &Weighted, convex: bool, h: &mut Array2<f64>) {
        let (level, lines) = (Level::current(), on.rows.lines);
        let d = on.rows.panel.map_or(0, |panel| panel.d());
        let mut numbers = vec![0.0; self.pairs.len()];
        // Of pairs of a margin and a number: a line for each column. Of two margins: a line for every eight rows.
        let mut sums = vec![vec![Line::default(); d]; self.pairs.len()];
        let both = |k: usize| matches!(self.kind(k), (Input::Margin(_), Input::Margin(_)));
        let mut v: Vec<Vec<Line>> =
            (0..self.pairs.len()).map(|k| vec![Line::default(); if both(k) { lines } else { 0 }]).collect();
        let mut product = vec![Line::default(); TILE];
        self.visit(points, on.rows, usize::MAX, |first, found| {
            if convex {
                self.clip(found);
            }
            for (k, found) in found.iter().enumerate() {
                let (of_pair, rows) = (Operand::rows(found), first..first + found.len());
                let weights = &on.weights[rows.clone()];
                match self.kind(k) {
                    (Input::Parameter(_), Input::Parameter(_)) => {
                        numbers[k] += weighted_sum(level, weights, of_pair);
                    }
                    (Input::Margin(_), Input::Margin(_)) => {
                        binary(level, Binary::Mul, Operand::rows(weights), of_pair, &mut v[k][rows]);
                    }
                    _ => {
                        let (Some(panel), out) = (on.rows.panel, &mut product[..found.len()]) else {
                            continue;
                        };
                        binary(level, Binary::Mul, Operand::rows(weights), of_pair, out);
                        add_gradients(level, panel, rows, &[out], &mut [&mut sums[k]]);
                    }
                }
            }
        });
        let squares: Vec<usize> = (0..self.pairs.len()).filter(|&k| both(k)).collect();
        let products = on.rows.panel.map(|panel| {
            let v: Vec<&[Line]> = squares.iter().map(|&k| &v[k][..]).collect();
            cross_products(level, panel, &v)
        });
        for k in 0..self.pairs.len() {
            match self.kind(k) {
                (Input::Parameter(i), Input::Parameter(j)) => {
                    h[[i, j]] += numbers[k];
                    if i != j {
                        h[[j, i]] += numbers[k];
                    }
                }
                (Input::Margin(m), Input::Parameter(i)) | (Input::Parameter(i), Input::Margin(m)) => {
                    for (j, line) in self.coefficients[m].iter().zip(&sums[k]) {
                        // Both ways round, also where a parameter is a coefficient and stands by itself.
                        j.iter().for_each(|&j| {
                            h[[i, j]] += sum(line);
                            h[[j, i]] += sum(line);
                        });
                    }
                }
                (Input::Margin(_), Input::Margin(_)) => {}
            }
        }
        for (&k, product) in squares.iter().zip(products.iter().flatten()) {
            self.spread(k, product, h);
        }
    }

    /// Adds Xᵀ V X, its lower triangle row after row, to the coefficients of two margins.
    fn spread(&self, k: usize, product: &[f64], h: &mut Array2<f64>) {
        let (Input::Margin(a), Input::Margin(b)) = self.kind(k) else { return };
        let (a, b) = (&self.coefficients[a], &self.coefficients[b]);
        for (i, to) in a.iter().enumerate() {
            for (j, from) in b.iter().enumerate() {
                let (Some(to), Some(from)) = (*to, *from) else { continue };
                let value = product[i.max(j) * (i.max(j) + 1) / 2 + i.min(j)];
                h[[to, from]] += value;
                // Of one margin with itself, both triangles are gone through.
                if self.pairs[k].0 != self.pairs[k].1 {
                    h[[from, to]] += value;
                }
            }
        }
    }

    fn kind(&self, pair: usize) -> (Input, Input) {
        let (a, b) = self.pairs[pair];
        (self.inputs[a], self.inputs[b])
    }

    /// Takes from every row what bends down: a matrix that is not positive by its minors keeps the positive part of its diagonal.
    fn clip(&self, curvatures: &mut [Vec<Line>]) {
        let lines = curvatures.first().map_or(0, Vec::len);
        let mut of_input = vec![0.0; self.inputs.len()];
        for (line, lane) in (0..lines).flat_map(|line| (0..LANES).map(move |lane| (line, lane))) {
            of_input.fill(0.0);
            for (k, &(a, _)) in self.pairs.iter().enumerate().filter(|(_, (a, b))| a == b) {
                of_input[a] = curvatures[k][line][lane];
            }
            let within = |(k, &(a, b)): (usize, &(usize, usize))| {
                let v = curvatures[k][line][lane];
                v * v <= of_input[a] * of_input[b] * (1.0 + 1e-9)
            };
            let positive = of_input.iter().all(|v| *v >= 0.0)
                && self.pairs.iter().enumerate().filter(|(_, (a, b))| a != b).all(within);
            if !positive {
                for (k, &(a, b)) in self.pairs.iter().enumerate() {
                    let value = &mut curvatures[k][line][lane];
                    *value = if a == b { value.max(0.0) } else { 0.0 };
                }
            }
        }
    }

    /// The curvatures of every row, pair by pair.
    pub fn each_row(&self, theta: &[f64], rows: &Prepared, mut see: impl FnMut(usize, &[f64])) {
        let mut of_row = vec![0.0; self.pairs.len()];
        self.visit(&[(theta.to_vec(), 1.0)], rows, usize::MAX, |first, found| {
            let len = found.first().map_or(0, Vec::len);
            for i in 0..(len * LANES).min(rows.n - first * LANES) {
                of_row.iter_mut().zip(&*found).for_each(|(v, lines)| *v = lines[i / LANES][i % LANES]);
                see(first * LANES + i, &of_row);
            }
        });
    }

    /// Σ w ∂²l/∂η² of all margins over the first rows, some lines of them.
    pub fn of_margins(&self, theta: &[f64], on: &Weighted, lines: usize) -> f64 {
        let mut total = 0.0;
        self.visit(&[(theta.to_vec(), 1.0)], on.rows, lines, |first, found| {
            for (k, found) in found.iter().enumerate() {
                let (a, b) = self.pairs[k];
                if a == b && matches!(self.inputs[a], Input::Margin(_)) {
                    let weights = &on.weights[first..first + found.len()];
                    total += weighted_sum(Level::current(), weights, Operand::rows(found));
                }
            }
        });
        total
    }

    /// How an input of a row moves with θ: an entry by itself, or the covariates at the places of the coefficients.
    pub fn direction(&self, input: Input, x: impl Fn(usize) -> f64, out: &mut [f64]) {
        out.fill(0.0);
        match input {
            Input::Parameter(j) => out[j] = 1.0,
            Input::Margin(m) => {
                for (column, place) in self.coefficients[m].iter().enumerate() {
                    place.iter().for_each(|&j| out[j] += x(column));
                }
            }
        }
    }
}

/// Coefficients that are entries of θ, or constants.
fn of_margin(tape: &Tape, ids: &[Id]) -> Option<Vec<Option<usize>>> {
    let of = |&id: &Id| match tape.ops[id] {
        Op::Parameter(j) => Some(Some(j)),
        Op::Constant(_) => Some(None),
        _ => None,
    };
    ids.iter().map(of).collect()
}

/// What the rows of a number see of θ, coefficients of margins aside.
fn inputs(tape: &Tape, root: Id) -> Vec<(Id, Input)> {
    let mut needed = vec![false; root + 1];
    needed[root] = true;
    for id in (0..=root).rev().filter(|&id| tape.active[id]) {
        if needed[id] {
            tape.ops[id].operands().for_each(|a| needed[a] = true);
        }
    }
    let input = |id: Id| match tape.ops[id] {
        Op::Parameter(j) => Some((id, Input::Parameter(j))),
        Op::Margin(m) => Some((id, Input::Margin(m))),
        _ => None,
    };
    (0..=root).filter(|&id| needed[id] && tape.active[id]).filter_map(input).collect()
}

type Curvatures = (Vec<Id>, Vec<(usize, usize)>);

/// The second derivatives of a number that are not 0, and whose they are.
fn curvatures(tape: &mut Tape, root: Id, inputs: &[(Id, Input)]) -> Result<Curvatures, Underivable> {
    let most = tape.ops.len() + MOST_OPERATIONS;
    let (mut ids, mut pairs) = (Vec::new(), Vec::new());
    for (a, (by, _)) in inputs.iter().enumerate() {
        let Some(slope) = tape.derivative(root, *by, most)? else { continue };
        for (b, (by, _)) in inputs.iter().enumerate().skip(a) {
            if let Some(curvature) = tape.derivative(slope, *by, most)? {
                ids.push(curvature);
                pairs.push((a, b));
            }
        }
    }
    Ok((ids, pairs))
}

//! A program over tiles of rows, for several points at once: values forwards, and derivatives by θ backwards. Lanes are rows, but
//! for numbers of θ alone, where they are points. A point has the same bits whatever others are evaluated beside it.

use super::prepared::{Prepared, TILE};
use super::program::{Place, Program};
use super::tape::{Id, Op};
use crate::kernel::tape::{
    Operand, Target, add_gradients, add_product, binary, binary_back, margins, select, select_back, unary,
    weighted_sum,
};
use crate::kernel::{LANES, Level, Line};

/// Rows, and how much each of them counts.
pub struct Weighted<'a> {
    pub rows: &'a Prepared<'a>,
    /// In lines, see [`in_lines`](super::in_lines).
    pub weights: &'a [Line],
}

/// A point, and the rows that it is evaluated on.
pub struct Point<'a> {
    pub theta: &'a [f64],
    pub on: Vec<Weighted<'a>>,
}

/// Numbers of θ alone: a line for every eight points.
pub(super) struct Numbers {
    width: usize,
    values: Vec<Line>,
    slopes: Vec<Line>,
}

impl Numbers {
    pub(super) fn new(program: &Program, level: Level, thetas: &[&[f64]]) -> Numbers {
        let (width, count) = (thetas.len().div_ceil(LANES), program.of_parameters.len());
        let mut numbers = Numbers {
            width,
            values: vec![Line::default(); count * width],
            slopes: vec![Line::default(); count * width],
        };
        for (k, &id) in program.of_parameters.iter().enumerate() {
            let (before, rest) = numbers.values.split_at_mut(k * width);
            let out = &mut rest[..width];
            let lines = |id: Id| &before[program.order[id] * width..][..width];
            match program.tape.ops[id] {
                Op::Constant(bits) => out.fill(Line([f64::from_bits(bits); LANES])),
                // Points that fill up the last line are the first again.
                Op::Parameter(j) => {
                    for (i, value) in out.iter_mut().flat_map(|line| line.0.iter_mut()).enumerate() {
                        *value = thetas[if i < thetas.len() { i } else { 0 }][j];
                    }
                }
                Op::Unary(op, a) => {
                    unary(level, op, lines(a), out, &mut numbers.slopes[k * width..][..width])
                }
                Op::Binary(op, a, b) => {
                    binary(level, op, Operand::rows(lines(a)), Operand::rows(lines(b)), out)
                }
                Op::Select(c, a, b) => {
                    select(
                        level,
                        Operand::rows(lines(c)),
                        Operand::rows(lines(a)),
                        Operand::rows(lines(b)),
                        out,
                    );
                }
                Op::Column(_) | Op::Margin(_) => {}
            }
        }
        numbers
    }

    pub(super) fn at(&self, program: &Program, id: Id, point: usize) -> f64 {
        self.values[program.order[id] * self.width + point / LANES][point % LANES]
    }

    /// From adjoints of all of them to derivatives by θ.
    fn back(&self, program: &Program, level: Level, adjoints: &mut [Line], gradients: &mut [Vec<f64>]) {
        let width = self.width;
        let lines = |id: Id| Operand::rows(&self.values[program.order[id] * width..][..width]);
        for (k, &id) in
            program.of_parameters.iter().enumerate().rev().filter(|(_, id)| program.tape.active[**id])
        {
            let (before, rest) = adjoints.split_at_mut(k * width);
            let (own, slopes) = (&rest[..width], &self.slopes[k * width..][..width]);
            let out = &self.values[k * width..][..width];
            let mut to = |id: Id, send: &mut dyn FnMut(Target)| {
                if program.tape.active[id] {
                    send(Target::rows(&mut before[program.order[id] * width..][..width]));
                }
            };
            match program.tape.ops[id] {
                Op::Parameter(j) => {
                    gradients.iter_mut().enumerate().for_each(|(s, g)| g[j] += own[s / LANES][s % LANES]);
                }
                Op::Unary(_, a) => to(a, &mut |target| add_product(level, own, slopes, target)),
                Op::Binary(op, a, b) => {
                    for (second, of) in [(false, a), (true, b)] {
                        to(of, &mut |target| {
                            binary_back(level, op, second, lines(a), lines(b), out, own, target)
                        });
                    }
                }
                Op::Select(c, a, b) => {
                    for (holds, of) in [(true, a), (false, b)] {
                        to(of, &mut |target| select_back(level, lines(c), holds, own, target));
                    }
                }
                Op::Constant(_) | Op::Column(_) | Op::Margin(_) => {}
            }
        }
    }
}

/// What is kept of a point while rows are gone through.
pub(super) struct Seat {
    /// The exported numbers, in all lanes.
    pub(super) splats: Vec<Line>,
    /// Their adjoints, lanes still to be summed.
    sums: Vec<Line>,
    /// The coefficients of every margin, and their adjoints.
    coefficients: Vec<Vec<f64>>,
    by_coefficients: Vec<Vec<Line>>,
    /// Of a tile: all margins, and their adjoints.
    margins: Vec<Vec<Line>>,
    by_margins: Vec<Vec<Line>>,
}

impl Seat {
    pub(super) fn new(program: &Program, numbers: &Numbers, point: usize) -> Seat {
        let value = |&id: &Id| numbers.at(program, id, point);
        let of_margins = &program.tape.margins;
        let lines = |len: usize| vec![Line::default(); len];
        Seat {
            splats: program.exported.iter().map(|id| Line([value(id); LANES])).collect(),
            sums: lines(program.exported.len()),
            coefficients: of_margins.iter().map(|ids| ids.iter().map(value).collect()).collect(),
            by_coefficients: of_margins.iter().map(|ids| lines(ids.len())).collect(),
            margins: of_margins.iter().map(|_| lines(TILE)).collect(),
            by_margins: of_margins.iter().map(|_| lines(TILE)).collect(),
        }
    }
}

/// The buffers of a tile.
pub(super) struct Buffers {
    pub(super) values: Vec<Line>,
    slopes: Vec<Line>,
    adjoints: Vec<Line>,
}

impl Buffers {
    pub(super) fn new(program: &Program) -> Buffers {
        let lines = vec![Line::default(); program.of_both.len() * TILE];
        Buffers { values: lines.clone(), slopes: lines.clone(), adjoints: lines }
    }
}

/// A tile of rows: lines `first` to `first + len`.
pub(super) struct Tile<'a> {
    rows: &'a Prepared<'a>,
    pub(super) first: usize,
    pub(super) len: usize,
}

impl Tile<'_> {
    pub(super) fn operand<'b>(
        &'b self,
        program: &Program,
        id: Id,
        buffers: &'b [Line],
        splats: &'b [Line],
    ) -> Operand<'b> {
        match program.places[id] {
            Place::Buffer(k) => Operand::rows(&buffers[k * TILE..][..self.len]),
            Place::Column(k) => Operand::rows(&self.rows.columns[k][self.first..][..self.len]),
            Place::Number(k) => Operand::all(&splats[k]),
            Place::None => unreachable!("what is used has a place"),
        }
    }

    pub(super) fn forward(&self, program: &Program, level: Level, seat: &Seat, buffers: &mut Buffers) {
        let len = self.len;
        for (k, &id) in program.of_both.iter().enumerate() {
            let (before, rest) = buffers.values.split_at_mut(k * TILE);
            let out = &mut rest[..len];
            let operand = |id: Id| self.operand(program, id, before, &seat.splats);
            match program.tape.ops[id] {
                Op::Margin(m) => out.copy_from_slice(&seat.margins[m][..len]),
                Op::Unary(op, a) => {
                    let Place::Buffer(a) = program.places[a] else {
                        unreachable!("one operand is of the same class")
                    };
                    unary(level, op, &before[a * TILE..][..len], out, &mut buffers.slopes[k * TILE..][..len]);
                }
                Op::Binary(op, a, b) => binary(level, op, operand(a), operand(b), out),
                Op::Select(c, a, b) => select(level, operand(c), operand(a), operand(b), out),
                Op::Constant(_) | Op::Parameter(_) | Op::Column(_) => {}
            }
        }
    }

    /// Adjoints of all buffers, from those of `root`, the weights of the rows.
    fn backward(
        &self,
        program: &Program,
        level: Level,
        root: Id,
        weights: &[Line],
        seat: &mut Seat,
        buffers: &mut Buffers,
    ) {
        let len = self.len;
        let Place::Buffer(top) = program.places[root] else {
            // A number of θ alone counts for every row.
            if let Place::Number(k) = program.places[root] {
                add_product(
                    level,
                    weights,
                    &vec![Line([1.0; LANES]); weights.len()],
                    Target::all(&mut seat.sums[k]),
                );
            }
            return;
        };
        buffers.adjoints.fill(Line::default());
        buffers.adjoints[top * TILE..][..len].copy_from_slice(weights);
        for (k, &id) in program.of_both.iter().enumerate().rev() {
            if k > top || !program.tape.active[id] {
                continue;
            }
            let (before, rest) = buffers.adjoints.split_at_mut(k * TILE);
            let own = &rest[..len];
            let (values, slopes) = (&buffers.values[..], &buffers.slopes[k * TILE..][..len]);
            let (splats, sums) = (&seat.splats, &mut seat.sums);
            let operand = |id: Id| self.operand(program, id, values, splats);
            let mut to = |id: Id, send: &mut dyn FnMut(Target)| match program.places[id] {
                _ if !program.tape.active[id] => {}
                Place::Buffer(a) => send(Target::rows(&mut before[a * TILE..][..len])),
                Place::Number(a) => send(Target::all(&mut sums[a])),
                Place::Column(_) | Place::None => {}
            };
            match program.tape.ops[id] {
                Op::Margin(m) => seat.by_margins[m][..len].copy_from_slice(own),
                Op::Unary(_, a) => to(a, &mut |target| add_product(level, own, slopes, target)),
                Op::Binary(op, a, b) => {
                    let out = &values[k * TILE..][..len];
                    for (second, of) in [(false, a), (true, b)] {
                        to(of, &mut |target| {
                            binary_back(level, op, second, operand(a), operand(b), out, own, target)
                        });
                    }
                }
                Op::Select(c, a, b) => {
                    for (holds, of) in [(true, a), (false, b)] {
                        to(of, &mut |target| select_back(level, operand(c), holds, own, target));
                    }
                }
                Op::Constant(_) | Op::Parameter(_) | Op::Column(_) => {}
            }
        }
    }

    /// The margins of some seats: rows are read once for all of them.
    pub(super) fn fill_margins(&self, level: Level, seats: &mut [&mut Seat]) {
        let (Some(panel), groups) = (self.rows.panel, self.first..self.first + self.len) else { return };
        for m in 0..seats.first().map_or(0, |seat| seat.margins.len()) {
            let parts = seats.iter_mut().map(|seat| (&seat.coefficients[m][..], &mut seat.margins[m][..]));
            let (beta, mut out): (Vec<&[f64]>, Vec<&mut [Line]>) = parts.unzip();
            margins(level, panel, groups.clone(), &beta, &mut out);
        }
    }

    fn add_by_coefficients(&self, level: Level, seats: &mut [&mut Seat]) {
        let (Some(panel), groups) = (self.rows.panel, self.first..self.first + self.len) else { return };
        for m in 0..seats.first().map_or(0, |seat| seat.margins.len()) {
            let parts =
                seats.iter_mut().map(|seat| (&seat.by_margins[m][..], &mut seat.by_coefficients[m][..]));
            let (slopes, mut out): (Vec<&[Line]>, Vec<&mut [Line]>) = parts.unzip();
            add_gradients(level, panel, groups.clone(), &slopes, &mut out);
        }
    }
}

pub(super) fn sum(line: &Line) -> f64 {
    let half: [f64; 4] = std::array::from_fn(|l| line[l] + line[l + 4]);
    (half[0] + half[2]) + (half[1] + half[3])
}

pub(super) fn tiles<'a>(rows: &'a Prepared<'a>) -> impl Iterator<Item = Tile<'a>> {
    (0..rows.lines).step_by(TILE).map(move |first| Tile { rows, first, len: TILE.min(rows.lines - first) })
}

impl Program {
    /// Σ w of the first number over the rows of every point, plus `gamma` times the second, if there is one, which must be of θ
    /// alone; the derivatives by θ are added to `gradients`.
    pub fn add(&self, points: &[Point], gamma: f64, gradients: &mut [Vec<f64>]) -> Vec<f64> {
        let level = Level::current();
        let thetas: Vec<&[f64]> = points.iter().map(|point| point.theta).collect();
        let numbers = Numbers::new(self, level, &thetas);
        let mut seats: Vec<Seat> = (0..points.len()).map(|s| Seat::new(self, &numbers, s)).collect();
        let mut totals = vec![0.0; points.len()];
        let mut buffers = Buffers::new(self);
        let parts = points.iter().map(|point| point.on.len()).max().unwrap_or(0);
        for part in 0..parts {
            let on = |s: usize| points[s].on.get(part);
            // Neighbours on the same rows share them.
            let mut s = 0;
            while s < points.len() {
                let Some(first) = on(s) else {
                    s += 1;
                    continue;
                };
                let same = |t: &usize| on(*t).is_some_and(|w| std::ptr::eq(w.rows, first.rows));
                let end = (s + 1..points.len()).find(|t| !same(t)).unwrap_or(points.len());
                for tile in tiles(first.rows) {
                    let mut sharing: Vec<&mut Seat> = seats[s..end].iter_mut().collect();
                    tile.fill_margins(level, &mut sharing);
                    for t in s..end {
                        let weights = &on(t).expect("it has this part").weights[tile.first..][..tile.len];
                        tile.forward(self, level, sharing[t - s], &mut buffers);
                        let root = tile.operand(self, self.roots[0], &buffers.values, &sharing[t - s].splats);
                        totals[t] += weighted_sum(level, weights, root);
                        tile.backward(self, level, self.roots[0], weights, sharing[t - s], &mut buffers);
                    }
                    tile.add_by_coefficients(level, &mut sharing);
                }
                s = end;
            }
        }
        self.finish(&numbers, level, &seats, gamma, &mut totals, gradients);
        totals
    }

    /// Adds what is of θ alone.
    fn finish(
        &self,
        numbers: &Numbers,
        level: Level,
        seats: &[Seat],
        gamma: f64,
        totals: &mut [f64],
        gradients: &mut [Vec<f64>],
    ) {
        let width = numbers.width;
        let mut adjoints = vec![Line::default(); numbers.values.len()];
        for (s, seat) in seats.iter().enumerate() {
            let mut add = |id: Id, by: f64| adjoints[self.order[id] * width + s / LANES][s % LANES] += by;
            self.exported.iter().zip(&seat.sums).for_each(|(&id, line)| add(id, sum(line)));
            for (ids, lines) in self.tape.margins.iter().zip(&seat.by_coefficients) {
                ids.iter().zip(lines).for_each(|(&id, line)| add(id, sum(line)));
            }
            if let Some(&penalty) = self.roots.get(1) {
                totals[s] += gamma * numbers.at(self, penalty, s);
                add(penalty, gamma);
            }
        }
        numbers.back(self, level, &mut adjoints, gradients);
    }

    /// The numbers of some operations in every row, for one point.
    fn visit_rows(&self, ids: &[Id], theta: &[f64], rows: &Prepared, mut out: impl FnMut(usize, usize, f64)) {
        let level = Level::current();
        let numbers = Numbers::new(self, level, &[theta]);
        let mut seat = Seat::new(self, &numbers, 0);
        let mut buffers = Buffers::new(self);
        for tile in tiles(rows) {
            tile.fill_margins(level, &mut [&mut seat]);
            tile.forward(self, level, &seat, &mut buffers);
            for (k, &id) in ids.iter().enumerate() {
                let start = tile.first * LANES;
                for i in start..(start + tile.len * LANES).min(rows.n) {
                    let line = (i - start) / LANES;
                    let value = match self.places[id] {
                        Place::Buffer(k) => buffers.values[k * TILE + line][i % LANES],
                        Place::Column(k) => rows.columns[k][tile.first + line][i % LANES],
                        Place::Number(k) => seat.splats[k][0],
                        Place::None => numbers.at(self, id, 0),
                    };
                    out(k, i, value);
                }
            }
        }
    }

    /// Number `root` in every row.
    pub fn each_row(&self, root: usize, theta: &[f64], rows: &Prepared, out: &mut [f64]) {
        self.visit_rows(&[self.roots[root]], theta, rows, |_, i, value| out[i] = value);
    }

    /// All numbers in every row: which, of which row, and what.
    pub fn in_rows(&self, theta: &[f64], rows: &Prepared, out: impl FnMut(usize, usize, f64)) {
        self.visit_rows(&self.roots, theta, rows, out);
    }

    /// All numbers, where none depends on rows.
    pub fn of_theta(&self, theta: &[f64]) -> Vec<f64> {
        let numbers = Numbers::new(self, Level::current(), &[theta]);
        self.roots.iter().map(|&id| numbers.at(self, id, 0)).collect()
    }
}

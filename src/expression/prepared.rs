//! What an expression needs of rows, computed once for all draws.

use super::program::{Place, Program};
use super::tape::Op;
use crate::kernel::tape::{Operand, binary, select, unary};
use crate::kernel::{LANES, Level, Line, Panel};

/// Lines of a tile: 256 rows, whose numbers stay in the cache.
pub(super) const TILE: usize = 32;

/// Rows, as an expression sees them.
pub trait Columns {
    fn n(&self) -> usize;

    /// Column j of row i.
    fn cell(&self, i: usize, j: usize) -> f64;
}

/// The numbers of all rows that depend on nothing else. Rows that fill up the last line are the last row again.
pub struct Prepared<'a> {
    pub(super) n: usize,
    pub(super) lines: usize,
    pub(super) columns: Vec<Vec<Line>>,
    pub(super) panel: Option<&'a Panel>,
}

impl<'a> Prepared<'a> {
    /// With all covariates as a panel, where there are [margins](Program::has_margins).
    pub fn new(program: &Program, rows: &dyn Columns, panel: Option<&'a Panel>) -> Prepared<'a> {
        let (n, level) = (rows.n(), Level::current());
        let lines = n.div_ceil(LANES);
        let mut columns = vec![vec![Line::default(); lines]; program.columns.len()];
        let mut values = vec![Line::default(); program.of_rows.len() * TILE];
        let mut slopes = vec![Line::default(); TILE];
        for first in (0..lines).step_by(TILE) {
            let len = TILE.min(lines - first);
            for (k, &id) in program.of_rows.iter().enumerate() {
                let (before, rest) = values.split_at_mut(k * TILE);
                let out = &mut rest[..len];
                let number = |id: usize| match program.tape.ops[id] {
                    Op::Constant(bits) => Line([f64::from_bits(bits); LANES]),
                    _ => Line::default(),
                };
                let constants: Vec<Line> = program.tape.ops[id].operands().map(number).collect();
                let operand = |which: usize, id: usize| match program.tape.ops[id] {
                    Op::Constant(_) => Operand::all(&constants[which]),
                    _ => Operand::rows(&before[program.order[id] * TILE..][..len]),
                };
                match program.tape.ops[id] {
                    Op::Column(j) => {
                        for (i, cell) in out.iter_mut().flat_map(|line| line.0.iter_mut()).enumerate() {
                            *cell = rows.cell((first * LANES + i).min(n - 1), j);
                        }
                    }
                    Op::Unary(op, a) => {
                        unary(level, op, &before[program.order[a] * TILE..][..len], out, &mut slopes)
                    }
                    Op::Binary(op, a, b) => binary(level, op, operand(0, a), operand(1, b), out),
                    Op::Select(c, a, b) => select(level, operand(0, c), operand(1, a), operand(2, b), out),
                    Op::Constant(_) | Op::Parameter(_) | Op::Margin(_) => {}
                }
                if let Place::Column(column) = program.places[id] {
                    columns[column][first..first + len].copy_from_slice(out);
                }
            }
        }
        Prepared { n, lines, columns, panel }
    }

    pub fn n(&self) -> usize {
        self.n
    }
}

/// Weights in lines; rows that fill up the last one have none.
pub fn in_lines(weights: &[f64]) -> Vec<Line> {
    let mut lines = vec![Line::default(); weights.len().div_ceil(LANES)];
    weights.iter().enumerate().for_each(|(i, w)| lines[i / LANES][i % LANES] = *w);
    lines
}

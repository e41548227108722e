//! A tape made ready: what is needed of it, sorted by how often it is computed, and where each number is then found.

use super::tape::{Class, Id, Op, Tape};
use crate::kernel::tape::{Binary, Unary};

/// Where a number is found while rows are gone through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Not needed there.
    None,
    /// Of every row and draw: which buffer of a tile.
    Buffer(usize),
    /// Of every row: which column of [`Prepared`](super::Prepared).
    Column(usize),
    /// Of every draw: which of the [`exported`](Program::exported) numbers.
    Number(usize),
}

/// Some numbers, by expressions that share their parts.
#[derive(Clone, Debug)]
pub struct Program {
    pub(super) tape: Tape,
    pub(super) roots: Vec<Id>,
    /// In the order of the tape: what parameters are needed for alone, what rows are, and the rest.
    pub(super) of_parameters: Vec<Id>,
    pub(super) of_rows: Vec<Id>,
    pub(super) of_both: Vec<Id>,
    /// Of the first two, what the rest is made of.
    pub(super) exported: Vec<Id>,
    pub(super) columns: Vec<Id>,
    pub(super) places: Vec<Place>,
    /// The place of each among `of_parameters`, or among `of_rows`.
    pub(super) order: Vec<usize>,
}

impl Program {
    pub fn new(tape: Tape, roots: Vec<Id>) -> Program {
        let needed = tape.needed(&roots);
        let of = |class: Class| -> Vec<Id> {
            (0..tape.ops.len()).filter(|&id| needed[id] && tape.classes[id] == class).collect()
        };
        let (of_parameters, of_rows, of_both) = (of(Class::Parameters), of(Class::Rows), of(Class::Both));
        let mut used = vec![false; tape.ops.len()];
        of_both.iter().flat_map(|&id| tape.ops[id].operands()).for_each(|id| used[id] = true);
        roots.iter().for_each(|&root| used[root] = true);
        let export = |ids: &[Id]| -> Vec<Id> { ids.iter().copied().filter(|&id| used[id]).collect() };
        let (exported, columns) = (export(&of_parameters), export(&of_rows));
        let mut places = vec![Place::None; tape.ops.len()];
        of_both.iter().enumerate().for_each(|(k, &id)| places[id] = Place::Buffer(k));
        columns.iter().enumerate().for_each(|(k, &id)| places[id] = Place::Column(k));
        exported.iter().enumerate().for_each(|(k, &id)| places[id] = Place::Number(k));
        let mut order = vec![0; tape.ops.len()];
        of_parameters.iter().enumerate().for_each(|(k, &id)| order[id] = k);
        of_rows.iter().enumerate().for_each(|(k, &id)| order[id] = k);
        Program { tape, roots, of_parameters, of_rows, of_both, exported, columns, places, order }
    }

    /// Whether a number depends on rows, and whether on parameters.
    pub fn depends(&self, root: usize) -> (bool, bool) {
        let needed = self.tape.needed(&[self.roots[root]]);
        let any = |wanted: fn(&Op) -> bool| {
            self.tape.ops.iter().zip(&needed).any(|(op, needed)| *needed && wanted(op))
        };
        (any(|op| matches!(op, Op::Column(_) | Op::Margin(_))), any(|op| matches!(op, Op::Parameter(_))))
    }

    /// Vectors of numbers by rows that are made ready for it.
    pub fn columns_read(&self) -> usize {
        self.columns.len()
    }

    /// There are products of all covariates with coefficients.
    pub fn has_margins(&self) -> bool {
        self.of_both.iter().any(|&id| matches!(self.tape.ops[id], Op::Margin(_)))
    }

    /// Whether a column is read by itself.
    pub fn reads(&self, column: usize) -> bool {
        self.of_rows.iter().any(|&id| self.tape.ops[id] == Op::Column(column))
    }

    /// The entries of θ that are used.
    pub fn uses(&self, parameter: usize) -> bool {
        self.of_parameters.iter().any(|&id| self.tape.ops[id] == Op::Parameter(parameter))
    }

    /// Where an expression may bend as θ moves: numbers that change their sign there, of every row or of θ alone.
    pub fn kinks(&self) -> Vec<Program> {
        let ids = self.of_parameters.iter().chain(&self.of_both);
        let mut tape = self.tape.clone();
        let mut found = Vec::new();
        for &id in ids {
            let root = match self.tape.ops[id] {
                Op::Unary(Unary::Abs, a) => a,
                Op::Binary(Binary::Min | Binary::Max | Binary::Less | Binary::AtMost, a, b) => {
                    tape.binary(Binary::Sub, a, b)
                }
                _ => continue,
            };
            if tape.active[root] && !found.contains(&root) {
                found.push(root);
            }
        }
        found.into_iter().map(|root| Program::new(tape.clone(), vec![root])).collect()
    }
}

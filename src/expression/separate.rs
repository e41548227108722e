//! A penalty as a sum of penalties of single entries of θ, with their derivatives, and of what is left.

use super::evaluate::Numbers;
use super::program::Program;
use super::tape::{Id, Op, Tape};
use crate::kernel::Level;
use crate::kernel::tape::{Binary, Unary};

/// The most operations that derivatives are made of, for each entry.
const MOST_OPERATIONS: usize = 200;

/// Σ gⱼ(θⱼ): the terms of a number of θ alone that are each of one entry.
#[derive(Clone, Debug)]
pub struct Separate {
    /// The entries that have such a term.
    pub entries: Vec<usize>,
    /// There are no other terms.
    pub is_whole: bool,
    /// gⱼ′ and gⱼ″ of each.
    program: Program,
}

impl Separate {
    /// Of number `root`, for entries that are `wanted`; none if a derivative is missing.
    pub fn new(program: &Program, root: usize, wanted: impl Fn(usize) -> bool) -> Separate {
        let nothing = || Separate {
            entries: Vec::new(),
            is_whole: false,
            program: Program::new(Tape::default(), Vec::new()),
        };
        let (mut tape, mut is_whole) = (program.tape.clone(), true);
        let mut of_entry: Vec<(usize, Id)> = Vec::new();
        for (id, factor) in terms(&tape, program.roots[root]) {
            let Some(j) = only_entry(&tape, id).filter(|&j| wanted(j)) else {
                is_whole = false;
                continue;
            };
            let factor = tape.constant(factor);
            let term = tape.binary(Binary::Mul, factor, id);
            match of_entry.iter_mut().find(|(known, _)| *known == j) {
                Some((_, sum)) => *sum = tape.binary(Binary::Add, *sum, term),
                None => of_entry.push((j, term)),
            }
        }
        let most = tape.ops.len() + MOST_OPERATIONS * of_entry.len();
        let (mut entries, mut roots) = (Vec::new(), Vec::new());
        for (j, id) in of_entry {
            let by = tape.push(Op::Parameter(j));
            let zero = tape.constant(0.0);
            let Ok(Some(slope)) = tape.derivative(id, by, most) else { return nothing() };
            let Ok(curvature) = tape.derivative(slope, by, most) else { return nothing() };
            entries.push(j);
            roots.extend([slope, curvature.unwrap_or(zero)]);
        }
        Separate { entries, is_whole, program: Program::new(tape, roots) }
    }

    /// gⱼ′ and gⱼ″ of every entry, at some points.
    pub fn slopes(&self, points: &[&[f64]], mut see: impl FnMut(usize, usize, [f64; 2])) {
        if self.entries.is_empty() || points.is_empty() {
            return;
        }
        let numbers = Numbers::new(&self.program, Level::current(), points);
        for (k, &j) in self.entries.iter().enumerate() {
            for s in 0..points.len() {
                let at = |which: usize| numbers.at(&self.program, self.program.roots[2 * k + which], s);
                see(s, j, [at(0), at(1)]);
            }
        }
    }
}

/// A number as a sum: its terms, each with a factor.
fn terms(tape: &Tape, root: Id) -> Vec<(Id, f64)> {
    let constant = |id: Id| match tape.ops[id] {
        Op::Constant(bits) => Some(f64::from_bits(bits)),
        _ => None,
    };
    let (mut open, mut found) = (vec![(root, 1.0)], Vec::new());
    while let Some((id, factor)) = open.pop() {
        match tape.ops[id] {
            Op::Binary(Binary::Add, a, b) => open.extend([(b, factor), (a, factor)]),
            Op::Binary(Binary::Sub, a, b) => open.extend([(b, -factor), (a, factor)]),
            Op::Unary(Unary::Minus, a) => open.push((a, -factor)),
            Op::Binary(Binary::Mul, a, b) => match (constant(a), constant(b)) {
                (Some(c), _) => open.push((b, factor * c)),
                (_, Some(c)) => open.push((a, factor * c)),
                _ => found.push((id, factor)),
            },
            Op::Binary(Binary::Div, a, b) => match constant(b) {
                Some(c) => open.push((a, factor / c)),
                None => found.push((id, factor)),
            },
            Op::Constant(_) => {}
            _ => found.push((id, factor)),
        }
    }
    found
}

/// The entry of θ that a number is made of, if it is only one.
fn only_entry(tape: &Tape, root: Id) -> Option<usize> {
    let (mut open, mut found) = (vec![root], None);
    let mut seen = std::collections::BTreeSet::new();
    while let Some(id) = open.pop() {
        if let Op::Parameter(j) = tape.ops[id] {
            if found.is_some_and(|known| known != j) {
                return None;
            }
            found = Some(j);
        }
        open.extend(tape.ops[id].operands().filter(|&a| seen.insert(a)));
    }
    found
}

//! Operations on numbers in order, each used after it is made. Vectors are gone by now; what is written twice is there once.

use std::collections::HashMap;

use crate::kernel::tape::{Binary, Unary};

/// The most operations of a tape.
pub const MAX_OPERATIONS: usize = 200_000;

/// The place of an operation on its tape.
pub type Id = usize;

/// Where a number comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Leaf {
    Constant(f64),
    /// An entry of θ.
    Parameter(usize),
    /// A column of the rows.
    Column(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// By its bits.
    Constant(u64),
    Parameter(usize),
    Column(usize),
    /// The product of all covariates with coefficients, by its number.
    Margin(usize),
    Unary(Unary, Id),
    Binary(Binary, Id, Id),
    /// The second where the first is not 0, else the third.
    Select(Id, Id, Id),
}

impl Op {
    /// What it is made of, coefficients of a margin aside.
    pub fn operands(&self) -> impl Iterator<Item = Id> {
        let (a, b, c) = match *self {
            Op::Unary(_, a) => (Some(a), None, None),
            Op::Binary(_, a, b) => (Some(a), Some(b), None),
            Op::Select(a, b, c) => (Some(a), Some(b), Some(c)),
            _ => (None, None, None),
        };
        [a, b, c].into_iter().flatten()
    }
}

/// What a number depends on, and so how often it is computed: once for each evaluation, once for each data set, or for every row
/// and draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Parameters,
    Rows,
    Both,
}

impl Class {
    fn join(self, other: Class) -> Class {
        if self == other { self } else { Class::Both }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Tape {
    pub ops: Vec<Op>,
    pub classes: Vec<Class>,
    /// Depends on θ in a way that has derivatives.
    pub active: Vec<bool>,
    /// The coefficients of every margin, one for each covariate.
    pub margins: Vec<Vec<Id>>,
    seen: HashMap<Op, Id>,
}

impl Tape {
    /// The place of an operation, on the tape already or new.
    pub fn push(&mut self, op: Op) -> Id {
        if let Some(&id) = self.seen.get(&op) {
            return id;
        }
        let constant = |id: Id| matches!(self.ops[id], Op::Constant(_));
        // A constant is what the others are.
        let class = op.operands().filter(|&id| !constant(id)).map(|id| self.classes[id]).reduce(Class::join);
        let class = match op {
            Op::Column(_) => Class::Rows,
            Op::Margin(_) => Class::Both,
            _ => class.unwrap_or(Class::Parameters),
        };
        let of_operands = op.operands().any(|id| self.active[id]);
        let active = match op {
            Op::Parameter(_) => true,
            Op::Margin(k) => self.margins[k].iter().any(|&id| self.active[id]),
            Op::Unary(unary, _) => of_operands && unary.has_slope(),
            Op::Binary(binary, ..) => of_operands && binary.has_slope(),
            Op::Select(_, a, b) => self.active[a] || self.active[b],
            Op::Constant(_) | Op::Column(_) => false,
        };
        let id = self.ops.len();
        self.ops.push(op);
        self.classes.push(class);
        self.active.push(active);
        self.seen.insert(op, id);
        id
    }

    pub fn leaf(&mut self, leaf: Leaf) -> Id {
        self.push(match leaf {
            Leaf::Constant(value) => Op::Constant(value.to_bits()),
            Leaf::Parameter(j) => Op::Parameter(j),
            Leaf::Column(j) => Op::Column(j),
        })
    }

    pub fn constant(&mut self, value: f64) -> Id {
        self.leaf(Leaf::Constant(value))
    }

    pub fn unary(&mut self, op: Unary, a: Id) -> Id {
        self.push(Op::Unary(op, a))
    }

    /// What changes nothing is left out.
    pub fn binary(&mut self, op: Binary, a: Id, b: Id) -> Id {
        let is = |id: Id, value: f64| self.ops[id] == Op::Constant(value.to_bits());
        match op {
            Binary::Mul | Binary::Div if is(b, 1.0) => a,
            Binary::Add | Binary::Sub if is(b, 0.0) => a,
            Binary::Mul if is(a, 1.0) => b,
            Binary::Add if is(a, 0.0) => b,
            _ => self.push(Op::Binary(op, a, b)),
        }
    }

    pub fn margin(&mut self, coefficients: Vec<Id>) -> Id {
        let known = self.margins.iter().position(|known| *known == coefficients);
        let k = known.unwrap_or(self.margins.len());
        if known.is_none() {
            self.margins.push(coefficients);
        }
        self.push(Op::Margin(k))
    }

    /// Which operations these numbers are made of, themselves included.
    pub fn needed(&self, roots: &[Id]) -> Vec<bool> {
        let mut needed = vec![false; self.ops.len()];
        roots.iter().for_each(|&root| needed[root] = true);
        for id in (0..self.ops.len()).rev() {
            if !needed[id] {
                continue;
            }
            self.ops[id].operands().for_each(|a| needed[a] = true);
            if let Op::Margin(k) = self.ops[id] {
                self.margins[k].iter().for_each(|&a| needed[a] = true);
            }
        }
        needed
    }
}

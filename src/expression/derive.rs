//! Derivatives as more operations of the same tape: what is the same in a value and in its derivatives is computed once, and what
//! derivatives of derivatives are made of has the kernels that values have.

use std::f64::consts::FRAC_2_SQRT_PI;

use super::tape::{Id, Op, Tape};
use crate::kernel::tape::{Binary, Unary};

/// What has no derivative on a tape: an operation that has none by itself, or too many operations.
#[derive(Debug)]
pub(super) struct Underivable;

/// A derivative; `None` if it is 0 everywhere.
pub(super) type Slope = Option<Id>;

impl Tape {
    /// How a number changes with an entry of θ or a margin, whose coefficients are not looked at: those are inputs by themselves.
    pub(super) fn derivative(&mut self, root: Id, by: Id, most: usize) -> Result<Slope, Underivable> {
        let needed = self.needed_without_coefficients(root);
        let mut slopes: Vec<Slope> = vec![None; root + 1];
        for id in (0..=root).filter(|&id| needed[id]) {
            slopes[id] = if id == by { Some(self.constant(1.0)) } else { self.slope(id, &slopes)? };
            if self.ops.len() > most {
                return Err(Underivable);
            }
        }
        Ok(slopes[root])
    }

    fn needed_without_coefficients(&self, root: Id) -> Vec<bool> {
        let mut needed = vec![false; root + 1];
        needed[root] = true;
        for id in (0..=root).rev() {
            if needed[id] {
                self.ops[id].operands().for_each(|a| needed[a] = true);
            }
        }
        needed
    }

    /// The derivative of an operation, from those of its operands.
    fn slope(&mut self, id: Id, slopes: &[Slope]) -> Result<Slope, Underivable> {
        let op = self.ops[id];
        if op.operands().all(|a| slopes[a].is_none()) {
            return Ok(None);
        }
        Ok(match op {
            Op::Constant(_) | Op::Parameter(_) | Op::Column(_) | Op::Margin(_) => None,
            Op::Unary(op, a) => match slopes[a] {
                Some(da) => self.of_unary(op, a, id)?.map(|by| self.binary(Binary::Mul, by, da)),
                None => None,
            },
            Op::Binary(op, a, b) => {
                let first = match slopes[a] {
                    Some(da) => self.of_first(op, a, b, id).map(|by| self.binary(Binary::Mul, by, da)),
                    None => None,
                };
                let second = match slopes[b] {
                    Some(db) => self.of_second(op, a, b, id).map(|by| self.binary(Binary::Mul, by, db)),
                    None => None,
                };
                match (first, second) {
                    (Some(first), Some(second)) => Some(self.binary(Binary::Add, first, second)),
                    (first, second) => first.or(second),
                }
            }
            Op::Select(condition, a, b) => {
                let zero = self.constant(0.0);
                let (a, b) = (slopes[a].unwrap_or(zero), slopes[b].unwrap_or(zero));
                (a != zero || b != zero).then(|| self.push(Op::Select(condition, a, b)))
            }
        })
    }

    /// −1 below 0, else 1: a number that does not change.
    fn side(&mut self, a: Id) -> Id {
        let (zero, one, minus) = (self.constant(0.0), self.constant(1.0), self.constant(-1.0));
        let below = self.binary(Binary::Less, a, zero);
        self.push(Op::Select(below, minus, one))
    }

    fn of_unary(&mut self, op: Unary, a: Id, id: Id) -> Result<Slope, Underivable> {
        let one = self.constant(1.0);
        Ok(Some(match op {
            Unary::Not => return Ok(None),
            Unary::Trigamma => return Err(Underivable),
            Unary::Minus => self.constant(-1.0),
            Unary::Abs => self.side(a),
            Unary::Exp => id,
            Unary::Expm1 => self.unary(Unary::Exp, a),
            Unary::Log => self.binary(Binary::Div, one, a),
            Unary::Log1p => {
                let above = self.binary(Binary::Add, one, a);
                self.binary(Binary::Div, one, above)
            }
            Unary::Sqrt => {
                let half = self.constant(0.5);
                self.binary(Binary::Div, half, id)
            }
            Unary::Tanh => {
                let square = self.unary(Unary::Power(2), id);
                self.binary(Binary::Sub, one, square)
            }
            Unary::Expit => {
                let rest = self.binary(Binary::Sub, one, id);
                self.binary(Binary::Mul, id, rest)
            }
            Unary::Softplus => self.unary(Unary::Expit, a),
            Unary::Lgamma => self.unary(Unary::Digamma, a),
            Unary::Digamma => self.unary(Unary::Trigamma, a),
            Unary::Erf => {
                let square = self.unary(Unary::Power(2), a);
                let minus = self.unary(Unary::Minus, square);
                let (bell, height) = (self.unary(Unary::Exp, minus), self.constant(FRAC_2_SQRT_PI));
                self.binary(Binary::Mul, height, bell)
            }
            Unary::Power(0) => return Ok(None),
            Unary::Power(k) => {
                let lower = match k {
                    1 => one,
                    2 => a,
                    k => self.unary(Unary::Power(k - 1), a),
                };
                let k = self.constant(f64::from(k));
                self.binary(Binary::Mul, k, lower)
            }
        }))
    }

    fn of_first(&mut self, op: Binary, a: Id, b: Id, id: Id) -> Slope {
        let (zero, one) = (self.constant(0.0), self.constant(1.0));
        match op {
            Binary::Add | Binary::Sub => Some(one),
            Binary::Mul => Some(b),
            Binary::Div => Some(self.binary(Binary::Div, one, b)),
            Binary::Power => {
                let lower = self.binary(Binary::Sub, b, one);
                let power = self.binary(Binary::Power, a, lower);
                Some(self.binary(Binary::Mul, b, power))
            }
            Binary::Min | Binary::Max => {
                let first = self.binary(Binary::Less, a, b);
                let (yes, no) = if op == Binary::Min { (one, zero) } else { (zero, one) };
                Some(self.push(Op::Select(first, yes, no)))
            }
            // r up to |r| = k, and ±k beyond.
            Binary::Huber => {
                let (size, side) = (self.unary(Unary::Abs, a), self.side(a));
                let beyond = self.binary(Binary::Less, b, size);
                let end = self.binary(Binary::Mul, side, b);
                Some(self.push(Op::Select(beyond, end, a)))
            }
            _ => {
                debug_assert!(!op.has_slope(), "{id}");
                None
            }
        }
    }

    fn of_second(&mut self, op: Binary, a: Id, b: Id, id: Id) -> Slope {
        let (zero, one, minus) = (self.constant(0.0), self.constant(1.0), self.constant(-1.0));
        match op {
            Binary::Add => Some(one),
            Binary::Sub => Some(minus),
            Binary::Mul => Some(a),
            Binary::Div => {
                let share = self.binary(Binary::Div, id, b);
                Some(self.unary(Unary::Minus, share))
            }
            // Nothing at a = 0.
            Binary::Power => {
                let log = self.unary(Unary::Log, a);
                let inside = self.binary(Binary::Mul, id, log);
                Some(self.push(Op::Select(a, inside, zero)))
            }
            Binary::Min | Binary::Max => {
                let first = self.binary(Binary::Less, a, b);
                let (yes, no) = if op == Binary::Min { (zero, one) } else { (one, zero) };
                Some(self.push(Op::Select(first, yes, no)))
            }
            Binary::Huber => {
                let size = self.unary(Unary::Abs, a);
                let beyond = self.binary(Binary::Less, b, size);
                let more = self.binary(Binary::Sub, size, b);
                Some(self.push(Op::Select(beyond, more, zero)))
            }
            _ => None,
        }
    }
}

//! One small language for losses, penalties, quantities of a draw, columns and filters: numbers, vectors and texts, definitions by
//! `let`, no loops. A text becomes a tree, names and shapes are checked, and what is left is a [`Tape`] of operations on numbers,
//! which a [`Program`] evaluates over tiles of rows and differentiates backwards. Everything is bounded: length, depth, number of
//! parts.

mod compile;
mod derive;
mod derived;
mod evaluate;
mod functions;
mod lexer;
mod parser;
mod prepared;
mod program;
mod second;
mod separate;
mod tape;

use std::fmt;

pub use compile::{Compiler, Meaning, Scope, Value};
pub use derived::{Definitions, Derived, parameter_names};
pub use evaluate::{Point, Weighted};
pub use lexer::{Span, Word};
pub use parser::{Kind, Node, Operator, Parser, parse};
pub use prepared::{Columns, Prepared, in_lines};
pub use program::Program;
pub use second::{At, Input, Second};
pub use separate::Separate;
pub use tape::{Id, Leaf, Tape};

/// What is wrong with a text, and with which characters of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    pub span: Span,
    pub message: String,
}

impl Fault {
    pub fn new(span: Span, message: impl Into<String>) -> Fault {
        Fault { span, message: message.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}", self.message)
    }
}

#[cfg(test)]
mod tests;

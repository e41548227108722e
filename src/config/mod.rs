//! What a configuration file is to the program: a tree that remembers lines, checked numbers, and errors that point at the
//! line. What an experiment says is [`experiment`](crate::experiment)'s.

mod document;
mod in_order;
mod nearest;
mod numbers;
mod problem;
mod schema_check;

pub use document::{Document, schema_of};
pub use in_order::{InOrder, Texts};
pub use nearest::nearest;
pub use numbers::{Count, Gamma, NamedGamma, NonNegative, Numbers, OpenUnit, Positive, Probability, Scalar};
pub use problem::{
    Complaint, Problem, Problems, brief, complaint, pointed, printable, within, without_characters,
};

//! Numbers that carry their range in the type: what is out of range does not parse, and the schema says so.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

macro_rules! ranged {
    ($(#[$doc:meta])* $name:ident($inner:ty = $text:literal), $valid:expr, $schema:tt, $expected:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
        #[serde(try_from = $text, into = $text)]
        pub struct $name($inner);

            impl $name {
                pub fn new(value: $inner) -> Option<Self> {
                    let valid: fn($inner) -> bool = $valid;
                    valid(value).then_some($name(value))
                }

                pub fn get(self) -> $inner {
                    self.0
                }
            }

            impl TryFrom<$inner> for $name {
                type Error = String;
                fn try_from(value: $inner) -> Result<Self, String> {
                    $name::new(value).ok_or_else(|| format!("{value} is not {}", $expected))
                }
            }

            impl From<$name> for $inner {
                fn from(value: $name) -> $inner {
                    value.0
                }
            }

            impl JsonSchema for $name {
                fn schema_name() -> Cow<'static, str> {
                    stringify!($name).into()
                }

                fn inline_schema() -> bool {
                    true
                }

                fn json_schema(_: &mut SchemaGenerator) -> Schema {
                    json_schema!($schema)
                }
            }
    };
}

ranged! {
    /// A finite number above 0.
    Positive(f64 = "f64"), |v| v.is_finite() && v > 0.0, { "type": "number", "exclusiveMinimum": 0 },
    "a finite number greater than 0"
}
ranged! {
    /// A finite number, 0 or above.
    NonNegative(f64 = "f64"), |v| v.is_finite() && v >= 0.0, { "type": "number", "minimum": 0 },
    "a finite number of at least 0"
}
ranged! {
    /// A number from 0 to 1.
    Probability(f64 = "f64"), |v| (0.0..=1.0).contains(&v), { "type": "number", "minimum": 0, "maximum": 1 },
    "a number between 0 and 1"
}
ranged! {
    /// A number strictly between 0 and 1.
    OpenUnit(f64 = "f64"), |v| v > 0.0 && v < 1.0, { "type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1 },
    "a number strictly between 0 and 1"
}
ranged! {
    /// A whole number, 1 or above.
    Count(usize = "usize"), |v| v >= 1, { "type": "integer", "minimum": 1 }, "an integer of at least 1"
}

/// A number for all, or a list with one for each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Numbers {
    One(f64),
    List(Vec<f64>),
}

impl Numbers {
    pub fn as_slice(&self) -> &[f64] {
        match self {
            Numbers::One(v) => std::slice::from_ref(v),
            Numbers::List(list) => list,
        }
    }

    /// One number for each of `len`; `None` if the list has another length.
    pub fn for_columns(&self, len: usize) -> Option<Vec<f64>> {
        match self {
            Numbers::One(v) => Some(vec![*v; len]),
            Numbers::List(list) => (list.len() == len).then(|| list.clone()),
        }
    }
}

/// A single value of any kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Scalar {
    Flag(bool),
    Integer(i64),
    Number(f64),
    Text(String),
}

impl std::fmt::Display for Scalar {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Scalar::Flag(flag) => write!(f, "{flag}"),
            Scalar::Integer(number) => write!(f, "{number}"),
            Scalar::Number(number) => write!(f, "{number:?}"),
            Scalar::Text(text) => write!(f, "{text}"),
        }
    }
}

/// γ of loss-NPL: a number, or `"1/n"` (supplement D).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Gamma {
    Number(NonNegative),
    Named(NamedGamma),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum NamedGamma {
    /// The inverse of the number of training rows.
    #[serde(rename = "1/n")]
    OneOverN,
}

impl Gamma {
    pub fn value(&self, one_over_n: f64) -> f64 {
        match self {
            Gamma::Number(v) => v.get(),
            Gamma::Named(NamedGamma::OneOverN) => one_over_n,
        }
    }
}

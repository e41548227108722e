//! From a tree to a tape: names are looked up, shapes checked, vectors written out entry by entry.

use std::collections::{BTreeMap, BTreeSet};
use std::f64::consts::PI;

use super::Fault;
use super::functions::{FUNCTIONS, Function};
use super::lexer::Span;
use super::parser::{Kind, Node, Operator};
use super::tape::{Class, Id, Leaf, MAX_OPERATIONS, Op, Tape};
use crate::config::nearest;
use crate::kernel::tape::{Binary, Unary};

/// What a name stands for.
#[derive(Clone, Debug, PartialEq)]
pub enum Meaning {
    Number(Leaf),
    Vector(Vec<Leaf>),
    /// A column of codes of levels.
    Text(Leaf, Vec<String>),
    /// Two things at once, in words: the name cannot be used.
    Two(String),
    /// A quantity that is defined after this one, or is this one.
    Later,
}

/// What names stand for, and which columns the covariates are, in the order of the rows.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    pub names: BTreeMap<String, Meaning>,
    pub covariates: Vec<usize>,
    /// What an unknown name may be, in words.
    pub known: &'static str,
    /// Names that could have been meant, beside those above.
    pub hints: Vec<String>,
}

/// What a part of an expression is.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Number {
        ids: Vec<Id>,
        vector: bool,
    },
    /// A code, and what codes stand for.
    Text {
        code: Id,
        levels: Vec<String>,
    },
}

impl Value {
    pub fn number(id: Id) -> Value {
        Value::Number { ids: vec![id], vector: false }
    }

    pub fn map(self, mut f: impl FnMut(Id) -> Id) -> Value {
        match self {
            Value::Number { ids, vector } => {
                Value::Number { ids: ids.into_iter().map(&mut f).collect(), vector }
            }
            text => text,
        }
    }

    /// That it is no text.
    pub fn numbers(self, span: &Span, wanted: &str) -> Result<Value, Fault> {
        match self {
            Value::Text { .. } => Err(Fault::new(span.clone(), format!("{wanted}, and this is a text"))),
            number => Ok(number),
        }
    }

    /// One number.
    pub fn scalar(&self, span: &Span, wanted: &str) -> Result<Id, Fault> {
        match self {
            Value::Number { ids, vector: false } => Ok(ids[0]),
            Value::Number { ids, .. } => Err(Fault::new(
                span.clone(),
                format!("{wanted}, and this is a vector with {} entries", ids.len()),
            )),
            Value::Text { .. } => Err(Fault::new(span.clone(), format!("{wanted}, and this is a text"))),
        }
    }
}

/// Functions of other languages, and what is here instead.
const ELSEWHERE: [(&[&str], &str); 10] = [
    (&["factor", "as.factor"], "a formula makes dummies of a column by `C(…)`"),
    (&["offset"], "`data.offset` names a column that is added to the linear predictor"),
    (
        &["scale", "standardize", "standardise"],
        "`data.standardise` brings columns to mean 0 and standard deviation 1",
    ),
    (&["poly"], "a power in a formula is `I(age^2)`"),
    (&["s", "te", "bs", "ns"], "splines are not there"),
    (&["ifelse", "where", "case_when"], "a choice is `if(condition, a, b)`"),
    (&["ln"], "the natural logarithm is `log`"),
    (&["sigmoid", "logistic", "inv_logit", "plogis"], "1/(1 + exp(-x)) is `expit`"),
    (&["pow", "power"], "a power is `a^b`"),
    (&["dnorm", "normal_pdf", "norm"], "the logarithm of a normal density is `normal_lpdf(y, mean, sd)`"),
];

/// Makes tapes of trees.
pub struct Compiler<'a> {
    pub tape: Tape,
    scope: &'a Scope,
    defined: Vec<(String, Value)>,
}

impl<'a> Compiler<'a> {
    pub fn new(scope: &'a Scope) -> Compiler<'a> {
        Compiler { tape: Tape::default(), scope, defined: Vec::new() }
    }

    /// Gives a number a name, for the expressions to come.
    pub fn define(&mut self, name: &str, id: Id) {
        self.defined.push((name.to_owned(), Value::number(id)));
    }

    /// The number that an expression is.
    pub fn scalar(&mut self, node: &Node) -> Result<Id, Fault> {
        let value = self.value(node)?;
        value.scalar(&node.span, "expected a single number")
    }

    pub fn value(&mut self, node: &Node) -> Result<Value, Fault> {
        if self.tape.ops.len() > MAX_OPERATIONS {
            return Err(too_large(&node.span));
        }
        match &node.kind {
            Kind::Number(value) => Ok(Value::number(self.tape.constant(*value))),
            Kind::Text(text) => Ok(Value::Text { code: self.tape.constant(0.0), levels: vec![text.clone()] }),
            Kind::Name(name) => self.name(name, &node.span),
            Kind::Minus(inner) => self.each(inner, Unary::Minus, "a minus sign takes numbers"),
            Kind::Not(inner) => self.each(inner, Unary::Not, "`not` takes numbers"),
            Kind::Pair(operator, a, b) => self.pair(*operator, a, b, &node.span),
            Kind::List(nodes) => self.list(nodes, &node.span),
            Kind::Let(name, value, body) => {
                if !matches!(self.scope.names.get(name), None | Some(Meaning::Later)) {
                    let message = format!("`{name}` has a meaning already: give the definition another name");
                    return Err(Fault::new(node.span.start..value.span.start, message));
                }
                let value = self.value(value)?;
                self.defined.push((name.clone(), value));
                let body = self.value(body);
                self.defined.pop();
                body
            }
            Kind::Call(name, nodes) => self.call(name, nodes, &node.span),
        }
    }

    fn each(&mut self, node: &Node, op: Unary, wanted: &str) -> Result<Value, Fault> {
        let value = self.value(node)?.numbers(&node.span, wanted)?;
        Ok(value.map(|a| self.tape.unary(op, a)))
    }

    fn name(&mut self, name: &str, span: &Span) -> Result<Value, Fault> {
        if let Some((_, value)) = self.defined.iter().rev().find(|(known, _)| known == name) {
            return Ok(value.clone());
        }
        match self.scope.names.get(name) {
            Some(Meaning::Number(leaf)) => Ok(Value::number(self.tape.leaf(*leaf))),
            Some(Meaning::Vector(leaves)) => {
                let ids = leaves.iter().map(|leaf| self.tape.leaf(*leaf)).collect();
                Ok(Value::Number { ids, vector: true })
            }
            Some(Meaning::Text(leaf, levels)) => {
                Ok(Value::Text { code: self.tape.leaf(*leaf), levels: levels.clone() })
            }
            Some(Meaning::Two(what)) => {
                Err(Fault::new(span.clone(), format!("`{name}` is {what}; rename one of them")))
            }
            // A name that the quantity has for itself, and the constant had before it.
            None | Some(Meaning::Later) if name == "pi" => Ok(Value::number(self.tape.constant(PI))),
            Some(Meaning::Later) => Err(Fault::new(
                span.clone(),
                format!(
                    "`{name}` is derived here or later: a quantity is made of parameters and of those derived before it"
                ),
            )),
            None => Err(self.unknown(name, span)),
        }
    }

    fn unknown(&self, name: &str, span: &Span) -> Fault {
        let names = self.names();
        let defined = self.defined.iter().map(|(name, _)| name.as_str());
        let hint = match nearest(name, defined.chain(names).chain(["pi"])) {
            Some(near) => format!("; did you mean `{near}`?"),
            None if Function::of(name).is_some() => {
                format!("; the function is called with brackets, `{name}(…)`")
            }
            None => self.listed(),
        };
        Fault::new(span.clone(), format!("`{name}` is not {}{hint}", self.scope.known))
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        let known = self.scope.names.iter().filter(|(_, meaning)| **meaning != Meaning::Later);
        known.map(|(name, _)| name).chain(&self.scope.hints).map(String::as_str)
    }

    /// The names that there are, if they are few.
    fn listed(&self) -> String {
        let names: BTreeSet<&str> = self.names().collect();
        let names: Vec<&str> = names.into_iter().collect();
        if names.is_empty() || names.len() > 12 {
            String::new()
        } else {
            format!("; there are {}", names.join(", "))
        }
    }

    fn call(&mut self, name: &str, nodes: &[Node], span: &Span) -> Result<Value, Fault> {
        let at = span.start..span.start + name.chars().count();
        let Some(function) = Function::of(name) else {
            let known = self.scope.names.contains_key(name) || self.defined.iter().any(|(n, _)| n == name);
            let ours = ELSEWHERE.iter().find(|(names, _)| names.contains(&name));
            let hint = match nearest(name, FUNCTIONS.iter().map(|f| f.name)) {
                _ if known => "; a product needs `*`".to_owned(),
                _ if ours.is_some() => ours.map(|(_, hint)| format!("; {hint}")).unwrap_or_default(),
                Some(near) => format!("; did you mean `{near}`?"),
                None => String::new(),
            };
            return Err(Fault::new(at, format!("`{name}` is no function{hint}")));
        };
        let mut args = Vec::with_capacity(nodes.len());
        for node in nodes {
            args.push((self.value(node)?, node.span.clone()));
        }
        function.call(self, span, args)
    }

    fn list(&mut self, nodes: &[Node], span: &Span) -> Result<Value, Fault> {
        if nodes.is_empty() {
            return Err(Fault::new(span.clone(), "expected the entries of a vector, as in `[a, b]`"));
        }
        let mut ids = Vec::new();
        for node in nodes {
            match self.value(node)?.numbers(&node.span, "a vector has numbers")? {
                Value::Number { ids: more, .. } => ids.extend(more),
                Value::Text { .. } => unreachable!("no text"),
            }
            if ids.len() > MAX_OPERATIONS {
                return Err(too_large(span));
            }
        }
        Ok(Value::Number { ids, vector: true })
    }

    fn pair(&mut self, operator: Operator, a: &Node, b: &Node, span: &Span) -> Result<Value, Fault> {
        if let (Operator::Power, Some(k)) = (operator, whole(b)) {
            let value = self.value(a)?.numbers(&a.span, "a power has a number for its base")?;
            return Ok(value.map(|id| self.power(id, k)));
        }
        let (left, right) = (self.value(a)?, self.value(b)?);
        let (text_a, text_b) = (matches!(left, Value::Text { .. }), matches!(right, Value::Text { .. }));
        if text_a || text_b {
            return self.texts(operator, (left, a), (right, b), span);
        }
        let (op, swap) = match operator {
            Operator::Or => (Binary::Or, false),
            Operator::And => (Binary::And, false),
            Operator::Equal => (Binary::Equal, false),
            Operator::Different => (Binary::Different, false),
            Operator::Less => (Binary::Less, false),
            Operator::AtMost => (Binary::AtMost, false),
            Operator::Greater => (Binary::Less, true),
            Operator::AtLeast => (Binary::AtMost, true),
            Operator::Add => (Binary::Add, false),
            Operator::Sub => (Binary::Sub, false),
            Operator::Mul => (Binary::Mul, false),
            Operator::Div => (Binary::Div, false),
            Operator::Power => (Binary::Power, false),
        };
        let (left, right) = if swap { (right, left) } else { (left, right) };
        self.pairwise(op, left, right, span)
    }

    fn power(&mut self, id: Id, k: i32) -> Id {
        match k {
            0 => self.tape.constant(1.0),
            1 => id,
            _ => self.tape.unary(Unary::Power(k), id),
        }
    }

    /// Texts are the same, or they are not.
    fn texts(
        &mut self,
        operator: Operator,
        a: (Value, &Node),
        b: (Value, &Node),
        span: &Span,
    ) -> Result<Value, Fault> {
        let op = match operator {
            Operator::Equal => Binary::Equal,
            Operator::Different => Binary::Different,
            _ => {
                let text = if matches!(a.0, Value::Text { .. }) { &a.1.span } else { &b.1.span };
                return Err(Fault::new(
                    text.clone(),
                    "expected a number: texts can be compared by `==` and `!=` only",
                ));
            }
        };
        let (Value::Text { code, levels }, Value::Text { code: other, levels: more }) = (a.0, b.0) else {
            return Err(Fault::new(span.clone(), "a text cannot be compared with a number"));
        };
        let (code, other) = match (self.literal(code), self.literal(other)) {
            (Some(_), Some(_)) => (code, self.recoded(&levels, &more[0])),
            (None, Some(_)) => (code, self.recoded(&levels, &more[0])),
            (Some(_), None) => (self.recoded(&more, &levels[0]), other),
            (None, None) if levels == more => (code, other),
            (None, None) => {
                return Err(Fault::new(
                    span.clone(),
                    "expected a text in quotes on one side: columns of text are not compared with each other",
                ));
            }
        };
        Ok(Value::number(self.tape.binary(op, code, other)))
    }

    /// The code of a text among levels; one that none has if it is not there.
    fn recoded(&mut self, levels: &[String], text: &str) -> Id {
        let code = levels.iter().position(|level| level == text).unwrap_or(levels.len());
        self.tape.constant(code as f64)
    }

    fn literal(&self, id: Id) -> Option<f64> {
        match self.tape.ops[id] {
            Op::Constant(bits) => Some(f64::from_bits(bits)),
            _ => None,
        }
    }

    /// Entry by entry; a number goes with every entry of a vector.
    pub fn pairwise(&mut self, op: Binary, a: Value, b: Value, span: &Span) -> Result<Value, Fault> {
        let (Value::Number { ids: a, vector: of_a }, Value::Number { ids: b, vector: of_b }) = (a, b) else {
            return Err(Fault::new(span.clone(), "expected numbers, and one of these is a text"));
        };
        if of_a && of_b && a.len() != b.len() {
            let message = format!(
                "vectors must have the same length, and these have {} and {} entries",
                a.len(),
                b.len()
            );
            return Err(Fault::new(span.clone(), message));
        }
        let entries = a.len().max(b.len());
        let entry = |ids: &[Id], i: usize| if ids.len() == 1 { ids[0] } else { ids[i] };
        let ids = (0..entries).map(|i| self.tape.binary(op, entry(&a, i), entry(&b, i))).collect();
        Ok(Value::Number { ids, vector: of_a || of_b })
    }

    pub fn total(&mut self, ids: &[Id]) -> Id {
        ids.iter().copied().reduce(|a, b| self.tape.binary(Binary::Add, a, b)).expect("vectors have entries")
    }

    /// Σ aᵢ bᵢ: a margin where one side is all covariates, and the other known before rows are.
    pub fn dot(&mut self, a: &[Id], b: &[Id]) -> Id {
        for (coefficients, columns) in [(a, b), (b, a)] {
            let known = coefficients.iter().all(|&id| self.tape.classes[id] == Class::Parameters);
            let all = columns.len() == self.scope.covariates.len()
                && columns
                    .iter()
                    .zip(&self.scope.covariates)
                    .all(|(&id, &j)| self.tape.ops[id] == Op::Column(j));
            if known && all && columns.len() > 1 {
                return self.tape.margin(coefficients.to_vec());
            }
        }
        let terms: Vec<Id> = a.iter().zip(b).map(|(&a, &b)| self.tape.binary(Binary::Mul, a, b)).collect();
        self.total(&terms)
    }

    /// `if(condition, yes, no)`, of numbers or of texts.
    pub fn choose(&mut self, span: &Span, args: Vec<(Value, Span)>) -> Result<Value, Fault> {
        let [(condition, at), (yes, _), (no, _)] = <[_; 3]>::try_from(args).expect("three arguments");
        let condition = condition.scalar(&at, "a condition is a single number, or a comparison")?;
        match (yes, no) {
            (Value::Number { ids: a, vector: of_a }, Value::Number { ids: b, vector: of_b }) => {
                if of_a && of_b && a.len() != b.len() {
                    let message = format!(
                        "both cases must have the same length, and these have {} and {} entries",
                        a.len(),
                        b.len()
                    );
                    return Err(Fault::new(span.clone(), message));
                }
                let entry = |ids: &[Id], i: usize| if ids.len() == 1 { ids[0] } else { ids[i] };
                let select = |i: usize| Op::Select(condition, entry(&a, i), entry(&b, i));
                let ids = (0..a.len().max(b.len())).map(|i| self.tape.push(select(i))).collect();
                Ok(Value::Number { ids, vector: of_a || of_b })
            }
            (Value::Text { code: a, levels }, Value::Text { code: b, levels: more }) => {
                self.choose_text(span, condition, (a, levels), (b, more))
            }
            _ => Err(Fault::new(span.clone(), "both cases must be numbers, or both texts")),
        }
    }

    fn choose_text(
        &mut self,
        span: &Span,
        condition: Id,
        yes: (Id, Vec<String>),
        no: (Id, Vec<String>),
    ) -> Result<Value, Fault> {
        let ((a, mut levels), (b, more)) = (yes, no);
        let recode = |levels: &mut Vec<String>, text: &String| {
            levels.iter().position(|level| level == text).unwrap_or_else(|| {
                levels.push(text.clone());
                levels.len() - 1
            })
        };
        let (a, b) = match (self.literal(a), self.literal(b)) {
            (_, Some(code)) => {
                let code = recode(&mut levels, &more[code as usize]);
                (a, self.tape.constant(code as f64))
            }
            (Some(code), None) => {
                let text = levels[code as usize].clone();
                levels = more;
                let code = recode(&mut levels, &text);
                (self.tape.constant(code as f64), b)
            }
            (None, None) if levels == more => (a, b),
            (None, None) => {
                return Err(Fault::new(span.clone(), "one of the two cases must be a text in quotes"));
            }
        };
        Ok(Value::Text { code: self.tape.push(Op::Select(condition, a, b)), levels })
    }
}

fn too_large(span: &Span) -> Fault {
    let message =
        format!("is too large: written out entry by entry it has more than {MAX_OPERATIONS} operations");
    Fault::new(span.clone(), message)
}

/// An exponent that is a whole number as it stands.
fn whole(node: &Node) -> Option<i32> {
    let value = match &node.kind {
        Kind::Number(value) => *value,
        Kind::Minus(inner) => match inner.kind {
            Kind::Number(value) => -value,
            _ => return None,
        },
        _ => return None,
    };
    (value.fract() == 0.0 && value.abs() <= 64.0).then_some(value as i32)
}

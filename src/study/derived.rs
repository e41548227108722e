//! Quantities of a draw, by expressions of its parameters.

use std::collections::BTreeMap;

use crate::config::{InOrder, Texts};
use crate::expression::{Compiler, Fault, Leaf, Meaning, Program, Scope, parse};

/// What is computed of every draw, and kept with its parameters.
pub struct Derived {
    pub names: Vec<String>,
    program: Program,
}

impl Derived {
    /// `None` if there are none; or the names of those that are wrong, and how.
    pub fn new(
        texts: &InOrder<Texts>,
        parameters: &[String],
    ) -> Result<Option<Derived>, Vec<(String, Fault)>> {
        let texts = texts.texts();
        let scope = scope(parameters);
        let mut compiler = Compiler::new(&scope);
        let (mut names, mut roots, mut faults) = (Vec::new(), Vec::new(), Vec::new());
        for (name, text) in texts {
            let taken = parameters.contains(&name) || names.contains(&name);
            let whole = 0..text.chars().count();
            let found = match taken {
                true => Err(Fault::new(whole, format!("the name `{name}` is taken"))),
                false if name.ends_with("__") => {
                    Err(Fault::new(whole, "names that end with `__` are those of npl's own columns"))
                }
                false => parse(text).and_then(|node| compiler.scalar(&node)),
            };
            match found {
                Ok(root) => {
                    compiler.define(&name, root);
                    roots.push(root);
                    names.push(name);
                }
                Err(fault) => faults.push((name, fault)),
            }
        }
        match faults.is_empty() {
            true if names.is_empty() => Ok(None),
            true => Ok(Some(Derived { names, program: Program::new(compiler.tape, roots) })),
            false => Err(faults),
        }
    }

    /// Adds them to the parameters of a draw.
    pub fn extend(&self, theta: &mut Vec<f64>) {
        theta.extend(self.program.of_theta(theta));
    }
}

/// Parameters by their names, and `beta` for all that are called `beta.…`.
fn scope(parameters: &[String]) -> Scope {
    let mut names: BTreeMap<String, Meaning> = BTreeMap::new();
    let mut vectors: BTreeMap<&str, Vec<Leaf>> = BTreeMap::new();
    for (j, name) in parameters.iter().enumerate() {
        names.insert(name.clone(), Meaning::Number(Leaf::Parameter(j)));
        if let Some((head, _)) = name.split_once('.') {
            vectors.entry(head).or_default().push(Leaf::Parameter(j));
        }
    }
    for (head, entries) in vectors {
        names.entry(head.to_owned()).or_insert(Meaning::Vector(entries));
    }
    Scope {
        names,
        covariates: Vec::new(),
        known: "a parameter, a quantity derived before or a constant",
        hints: Vec::new(),
    }
}

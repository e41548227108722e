//! Quantities of a draw, by expressions of its parameters and of the quantities before them.

use std::collections::BTreeMap;

use super::{Compiler, Fault, Id, Leaf, Meaning, Program, Scope, Tape, parse};
use crate::config::{InOrder, Texts};

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
        let Definitions { tape, all } = Definitions::new(texts, parameters);
        let (mut names, mut roots, mut faults) = (Vec::new(), Vec::new(), Vec::new());
        for (name, found) in all {
            match found {
                Ok(root) => {
                    names.push(name);
                    roots.push(root);
                }
                Err(fault) => faults.push((name, fault)),
            }
        }
        match faults.is_empty() {
            true if names.is_empty() => Ok(None),
            true => Ok(Some(Derived { names, program: Program::new(tape, roots) })),
            false => Err(faults),
        }
    }

    /// Adds them to the parameters of a draw.
    pub fn extend(&self, theta: &mut Vec<f64>) {
        theta.extend(self.program.of_theta(theta));
    }
}

/// Quantities in the order in which they are written, each a place on the tape or what is wrong with it.
pub struct Definitions {
    tape: Tape,
    all: Vec<(String, Result<Id, Fault>)>,
}

impl Definitions {
    pub fn new(texts: &InOrder<Texts>, parameters: &[String]) -> Definitions {
        let texts = texts.texts();
        let mut scope = scope(parameters);
        for (name, _) in &texts {
            scope.names.entry(name.clone()).or_insert(Meaning::Later);
        }
        let mut compiler = Compiler::new(&scope);
        let mut all: Vec<(String, Result<Id, Fault>)> = Vec::new();
        for (name, text) in texts {
            let taken = parameters.contains(&name) || all.iter().any(|(known, _)| *known == name);
            let whole = 0..text.chars().count();
            let found = match taken {
                true => Err(Fault::new(whole, format!("the name `{name}` is taken"))),
                false if name.ends_with("__") => {
                    Err(Fault::new(whole, "names that end with `__` are those of npl's own columns"))
                }
                false => parse(text).and_then(|node| compiler.scalar(&node)),
            };
            // What is wrong is told once, and not again wherever it is used.
            let id = found.as_ref().map_or_else(|_| compiler.tape.constant(f64::NAN), |id| *id);
            compiler.define(&name, id);
            all.push((name, found));
        }
        Definitions { tape: compiler.tape, all }
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Names that mean something else in a scope, too, cannot be used there.
    pub fn mark_twins(&self, scope: &mut Scope) {
        for (name, _) in &self.all {
            if let Some(meaning) = scope.names.get_mut(name) {
                let is = match meaning {
                    Meaning::Number(Leaf::Column(_)) => "a column of the data",
                    Meaning::Vector(leaves) if matches!(leaves[..], [Leaf::Column(_), ..]) => {
                        "the vector of all covariates"
                    }
                    _ => "a name of parameters",
                };
                *meaning = Meaning::Two(format!("both {is} and a derived quantity"));
            }
        }
    }

    /// What goes on with them: names that have two meanings in its scope are left to that.
    pub fn compiler<'a>(&self, scope: &'a Scope) -> Compiler<'a> {
        let mut compiler = Compiler::new(scope);
        compiler.tape = self.tape.clone();
        for (name, found) in self.all.iter().filter(|(name, _)| !scope.names.contains_key(name)) {
            let id = found.as_ref().map_or_else(|_| compiler.tape.constant(f64::NAN), |id| *id);
            compiler.define(name, id);
        }
        compiler
    }
}

/// Parameters by their names, and `beta` for all that are called `beta.…`.
fn scope(parameters: &[String]) -> Scope {
    let (mut names, vectors) = parameter_names(parameters);
    for (head, entries) in vectors {
        names.entry(head).or_insert(entries);
    }
    Scope {
        names,
        covariates: Vec::new(),
        known: "a parameter, a quantity derived before or a constant",
        hints: Vec::new(),
    }
}

/// Parameters by their names; and vectors by what the names of their entries have before the first dot.
pub fn parameter_names(parameters: &[String]) -> (BTreeMap<String, Meaning>, BTreeMap<String, Meaning>) {
    let mut names = BTreeMap::new();
    let mut vectors: BTreeMap<&str, Vec<Leaf>> = BTreeMap::new();
    for (j, name) in parameters.iter().enumerate() {
        names.insert(name.clone(), Meaning::Number(Leaf::Parameter(j)));
        if let Some((head, _)) = name.split_once('.') {
            vectors.entry(head).or_default().push(Leaf::Parameter(j));
        }
    }
    let vectors = vectors.into_iter().map(|(head, entries)| (head.to_owned(), Meaning::Vector(entries)));
    (names, vectors.collect())
}

//! The functions of the language. One more is a line of the table, and an arm where it is made.

use std::f64::consts::PI;

use super::Fault;
use super::compile::{Compiler, Value};
use super::lexer::Span;
use super::tape::Id;
use crate::kernel::tape::{Binary, Unary};

/// How many arguments a function takes, and what they are.
pub struct Function {
    pub name: &'static str,
    least: usize,
    most: usize,
    /// For messages.
    takes: &'static str,
    make: Make,
}

#[derive(Clone, Copy)]
enum Make {
    /// Entry by entry.
    Each(Unary),
    Square,
    /// Of two, entry by entry.
    Pair(Binary),
    /// Of all entries of a vector, or of several arguments entry by entry.
    Fold(Binary),
    Sum,
    Mean,
    Dot,
    LogSumExp,
    If,
    NormalLpdf,
    StudentLpdf,
}

const fn one(name: &'static str, op: Unary) -> Function {
    Function { name, least: 1, most: 1, takes: "one number or vector", make: Make::Each(op) }
}

const ANY: usize = usize::MAX;

pub const FUNCTIONS: &[Function] = &[
    one("exp", Unary::Exp),
    one("log", Unary::Log),
    one("log1p", Unary::Log1p),
    one("expm1", Unary::Expm1),
    one("sqrt", Unary::Sqrt),
    one("abs", Unary::Abs),
    one("tanh", Unary::Tanh),
    one("expit", Unary::Expit),
    one("softplus", Unary::Softplus),
    one("lgamma", Unary::Lgamma),
    one("digamma", Unary::Digamma),
    one("erf", Unary::Erf),
    Function { name: "sq", least: 1, most: 1, takes: "one number or vector", make: Make::Square },
    Function {
        name: "huber",
        least: 2,
        most: 2,
        takes: "a residual and the bend",
        make: Make::Pair(Binary::Huber),
    },
    Function {
        name: "min",
        least: 1,
        most: ANY,
        takes: "a vector, or two numbers or more",
        make: Make::Fold(Binary::Min),
    },
    Function {
        name: "max",
        least: 1,
        most: ANY,
        takes: "a vector, or two numbers or more",
        make: Make::Fold(Binary::Max),
    },
    Function { name: "sum", least: 1, most: 1, takes: "a vector", make: Make::Sum },
    Function { name: "mean", least: 1, most: 1, takes: "a vector", make: Make::Mean },
    Function { name: "dot", least: 2, most: 2, takes: "two vectors of the same length", make: Make::Dot },
    Function {
        name: "logsumexp",
        least: 1,
        most: ANY,
        takes: "a vector, or two numbers or more",
        make: Make::LogSumExp,
    },
    Function {
        name: "if",
        least: 3,
        most: 3,
        takes: "a condition, and a value for either case",
        make: Make::If,
    },
    Function {
        name: "normal_lpdf",
        least: 3,
        most: 3,
        takes: "a value, a mean and a standard deviation",
        make: Make::NormalLpdf,
    },
    Function {
        name: "student_lpdf",
        least: 4,
        most: 4,
        takes: "a value, degrees of freedom, a location and a scale",
        make: Make::StudentLpdf,
    },
];

impl Function {
    pub fn of(name: &str) -> Option<&'static Function> {
        FUNCTIONS.iter().find(|function| function.name == name)
    }

    /// The value for these arguments, each with its place.
    pub fn call(
        &self,
        compiler: &mut Compiler,
        span: &Span,
        args: Vec<(Value, Span)>,
    ) -> Result<Value, Fault> {
        if !(self.least..=self.most).contains(&args.len()) {
            let given = match args.len() {
                1 => "1 argument is".to_owned(),
                count => format!("{count} arguments are"),
            };
            let message = format!("`{}` takes {}, and {given} given", self.name, self.takes);
            return Err(Fault::new(span.clone(), message));
        }
        if let Make::If = self.make {
            return compiler.choose(span, args);
        }
        let wanted = format!("`{}` takes {}", self.name, self.takes);
        let number = |(value, span): (Value, Span)| Ok((value.numbers(&span, &wanted)?, span));
        let mut args = args.into_iter().map(number).collect::<Result<Vec<_>, Fault>>()?;
        match self.make {
            Make::Each(op) => Ok(args.remove(0).0.map(|a| compiler.tape.unary(op, a))),
            Make::Square => Ok(args.remove(0).0.map(|a| compiler.tape.unary(Unary::Power(2), a))),
            Make::Pair(op) => {
                let (b, a) = (args.remove(1).0, args.remove(0).0);
                compiler.pairwise(op, a, b, span)
            }
            Make::Fold(op) => self.fold(compiler, op, span, args),
            Make::Sum | Make::Mean => {
                let ids = self.vector(args.remove(0))?;
                let total = compiler.total(&ids);
                let count = compiler.tape.constant(ids.len() as f64);
                let mean = matches!(self.make, Make::Mean);
                Ok(Value::number(if mean { compiler.tape.binary(Binary::Div, total, count) } else { total }))
            }
            Make::Dot => {
                let (b, a) = (args.remove(1).0, args.remove(0).0);
                let (Value::Number { ids: a, .. }, Value::Number { ids: b, .. }) = (a, b) else {
                    return Err(Fault::new(span.clone(), "`dot` takes two vectors"));
                };
                if a.len() != b.len() {
                    let message = format!(
                        "`dot` takes two vectors of the same length, and these have {} and {} entries",
                        a.len(),
                        b.len()
                    );
                    return Err(Fault::new(span.clone(), message));
                }
                Ok(Value::number(compiler.dot(&a, &b)))
            }
            Make::LogSumExp => self.log_sum_exp(compiler, args),
            Make::NormalLpdf => Entries { compiler, span }.normal(values(args)),
            Make::StudentLpdf => Entries { compiler, span }.student(values(args)),
            Make::If => unreachable!("made above"),
        }
    }

    fn vector(&self, (value, span): (Value, Span)) -> Result<Vec<Id>, Fault> {
        match value {
            Value::Number { ids, vector: true } => Ok(ids),
            _ => Err(Fault::new(span, format!("`{}` takes {}, and this is a number", self.name, self.takes))),
        }
    }

    /// The entries of one vector, or all arguments.
    fn entries(&self, mut args: Vec<(Value, Span)>) -> Result<Vec<Id>, Fault> {
        if args.len() == 1 {
            return self.vector(args.remove(0));
        }
        args.into_iter()
            .map(|(value, span)| value.scalar(&span, &format!("`{}` takes {}", self.name, self.takes)))
            .collect()
    }

    fn fold(
        &self,
        compiler: &mut Compiler,
        op: Binary,
        span: &Span,
        mut args: Vec<(Value, Span)>,
    ) -> Result<Value, Fault> {
        if args.len() == 1 {
            let ids = self.vector(args.remove(0))?;
            let folded = ids.into_iter().reduce(|a, b| compiler.tape.binary(op, a, b));
            return Ok(Value::number(folded.expect("vectors have entries")));
        }
        let mut args = args.into_iter().map(|(value, _)| value);
        let mut folded = args.next().expect("at least one argument");
        for value in args {
            folded = compiler.pairwise(op, folded, value, span)?;
        }
        Ok(folded)
    }

    fn log_sum_exp(&self, compiler: &mut Compiler, args: Vec<(Value, Span)>) -> Result<Value, Fault> {
        let ids = self.entries(args)?;
        let tape = &mut compiler.tape;
        let shift = ids
            .iter()
            .copied()
            .reduce(|a, b| tape.binary(Binary::Shift, a, b))
            .expect("vectors have entries");
        let terms: Vec<Id> = ids
            .iter()
            .map(|&id| {
                let below = tape.binary(Binary::Sub, id, shift);
                tape.unary(Unary::Exp, below)
            })
            .collect();
        let total = compiler.total(&terms);
        let log = compiler.tape.unary(Unary::Log, total);
        Ok(Value::number(compiler.tape.binary(Binary::Add, shift, log)))
    }
}

/// As many arguments as were counted before.
fn values<const N: usize>(args: Vec<(Value, Span)>) -> [Value; N] {
    let mut values = args.into_iter().map(|(value, _)| value);
    std::array::from_fn(|_| values.next().expect("arguments are counted"))
}

/// Operations on values, entry by entry.
struct Entries<'c, 'a> {
    compiler: &'c mut Compiler<'a>,
    span: &'c Span,
}

impl Entries<'_, '_> {
    fn number(&mut self, value: f64) -> Value {
        Value::number(self.compiler.tape.constant(value))
    }

    fn of(&mut self, op: Unary, a: &Value) -> Value {
        a.clone().map(|a| self.compiler.tape.unary(op, a))
    }

    fn two(&mut self, op: Binary, a: &Value, b: &Value) -> Result<Value, Fault> {
        self.compiler.pairwise(op, a.clone(), b.clone(), self.span)
    }

    fn times(&mut self, a: f64, b: &Value) -> Result<Value, Fault> {
        let a = self.number(a);
        self.two(Binary::Mul, &a, b)
    }

    /// (y − location)/scale, squared.
    fn square(&mut self, y: &Value, location: &Value, scale: &Value) -> Result<Value, Fault> {
        let apart = self.two(Binary::Sub, y, location)?;
        let z = self.two(Binary::Div, &apart, scale)?;
        Ok(self.of(Unary::Power(2), &z))
    }

    /// log N(y; m, s²).
    fn normal(&mut self, [y, mean, sd]: [Value; 3]) -> Result<Value, Fault> {
        let square = self.square(&y, &mean, &sd)?;
        let kernel = self.times(-0.5, &square)?;
        let (log_sd, constant) = (self.of(Unary::Log, &sd), self.number(0.5 * libm::log(2.0 * PI)));
        let scale = self.two(Binary::Add, &log_sd, &constant)?;
        self.two(Binary::Sub, &kernel, &scale)
    }

    /// The log density of a Student-t: log Γ((ν + 1)/2) − log Γ(ν/2) − ½ log πν − log s − (ν + 1)/2 log(1 + z²/ν).
    fn student(&mut self, [y, freedom, location, scale]: [Value; 4]) -> Result<Value, Fault> {
        let square = self.square(&y, &location, &scale)?;
        let share = self.two(Binary::Div, &square, &freedom)?;
        let log = self.of(Unary::Log1p, &share);
        let one = self.number(1.0);
        let above = self.two(Binary::Add, &freedom, &one)?;
        let (power, half) = (self.times(0.5, &above)?, self.times(0.5, &freedom)?);
        let kernel = self.two(Binary::Mul, &power, &log)?;
        let (high, low) = (self.of(Unary::Lgamma, &power), self.of(Unary::Lgamma, &half));
        let gammas = self.two(Binary::Sub, &high, &low)?;
        let area = self.times(PI, &freedom)?;
        let log_area = self.of(Unary::Log, &area);
        let (half_area, log_scale) = (self.times(0.5, &log_area)?, self.of(Unary::Log, &scale));
        let spread = self.two(Binary::Add, &half_area, &log_scale)?;
        let constant = self.two(Binary::Sub, &gammas, &spread)?;
        self.two(Binary::Sub, &constant, &kernel)
    }
}

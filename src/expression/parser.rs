//! From words to a tree, by operator precedence (Pratt 1973).

use super::Fault;
use super::lexer::{Span, Word, words};

/// The deepest tree, and the most parts of one, that are accepted.
pub const MAX_DEPTH: usize = 200;
pub const MAX_PARTS: usize = 4_000;

/// A part of an expression, and where it is written.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    pub span: Span,
    pub kind: Kind,
    /// Parts below one another, itself included.
    depth: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    Number(f64),
    Text(String),
    Name(String),
    Call(String, Vec<Node>),
    Minus(Box<Node>),
    Not(Box<Node>),
    Pair(Operator, Box<Node>, Box<Node>),
    /// `[a, b, c]`.
    List(Vec<Node>),
    /// `let name = value; body`.
    Let(String, Box<Node>, Box<Node>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    Or,
    And,
    Equal,
    Different,
    Less,
    AtMost,
    Greater,
    AtLeast,
    Add,
    Sub,
    Mul,
    Div,
    Power,
}

impl Operator {
    fn of(word: &Word) -> Option<Operator> {
        Some(match word {
            Word::Name(name) if name == "or" => Operator::Or,
            Word::Name(name) if name == "and" => Operator::And,
            Word::Sign("==") => Operator::Equal,
            Word::Sign("!=") => Operator::Different,
            Word::Sign("<") => Operator::Less,
            Word::Sign("<=") => Operator::AtMost,
            Word::Sign(">") => Operator::Greater,
            Word::Sign(">=") => Operator::AtLeast,
            Word::Sign("+") => Operator::Add,
            Word::Sign("-") => Operator::Sub,
            Word::Sign("*") => Operator::Mul,
            Word::Sign("/") => Operator::Div,
            Word::Sign("^" | "**") => Operator::Power,
            _ => return None,
        })
    }

    /// How tightly it holds what stands to its left.
    fn binding(self) -> u8 {
        match self {
            Operator::Or => 1,
            Operator::And => 2,
            _ if self.compares() => 4,
            Operator::Add | Operator::Sub => 5,
            Operator::Mul | Operator::Div => 6,
            _ => 8,
        }
    }

    fn compares(self) -> bool {
        use Operator::{AtLeast, AtMost, Different, Equal, Greater, Less};
        matches!(self, Equal | Different | Less | AtMost | Greater | AtLeast)
    }
}

/// How tightly `not` and a minus sign hold what stands to their right: −x² is −(x²).
const NOT: u8 = 3;
const MINUS: u8 = 7;

/// Words that cannot be names.
const KEYWORDS: [&str; 4] = ["and", "or", "not", "let"];

pub struct Parser<'a> {
    text: &'a [char],
    words: Vec<(Word, Span)>,
    at: usize,
    parts: usize,
    open: usize,
}

/// The tree of a text.
pub fn parse(text: &str) -> Result<Node, Fault> {
    let characters: Vec<char> = text.chars().collect();
    let mut parser = Parser::new(&characters)?;
    let node = parser.whole()?;
    match parser.peek() {
        Word::End => Ok(node),
        Word::Sign("=") => {
            Err(parser.fault("expected an operator; `==` compares, and `=` belongs to `let name = value;`"))
        }
        _ => Err(parser.unexpected("an operator or the end")),
    }
}

impl<'a> Parser<'a> {
    pub fn new(text: &'a [char]) -> Result<Parser<'a>, Fault> {
        Ok(Parser { text, words: words(text)?, at: 0, parts: 0, open: 0 })
    }

    pub fn peek(&self) -> &Word {
        &self.words[self.at].0
    }

    /// The word after the next.
    pub fn second(&self) -> &Word {
        &self.words[(self.at + 1).min(self.words.len() - 1)].0
    }

    pub fn span(&self) -> Span {
        self.words[self.at].1.clone()
    }

    pub fn advance(&mut self) -> (Word, Span) {
        let word = self.words[self.at].clone();
        self.at = (self.at + 1).min(self.words.len() - 1);
        word
    }

    pub fn is(&self, sign: &str) -> bool {
        matches!(self.peek(), Word::Sign(s) if *s == sign)
    }

    pub fn take(&mut self, sign: &str) -> bool {
        let found = self.is(sign);
        if found {
            self.advance();
        }
        found
    }

    /// At the next word.
    pub fn fault(&self, message: impl Into<String>) -> Fault {
        Fault::new(self.span(), message)
    }

    pub fn unexpected(&self, wanted: &str) -> Fault {
        let hint = match self.peek() {
            Word::Sign("[") => "; an entry of a vector has a name of its own, as `beta.age` or `mu.1`",
            Word::Name(name) if name == "in" => "; one of several is `a == 'x' or a == 'y'`",
            Word::Name(name) if name == "then" || name == "else" => "; a choice is `if(condition, a, b)`",
            _ => "",
        };
        self.fault(format!("expected {wanted}, found {}{hint}", self.peek().shown(self.text, &self.span())))
    }

    pub fn expect(&mut self, sign: &str, why: &str) -> Result<Span, Fault> {
        if self.is(sign) { Ok(self.advance().1) } else { Err(self.unexpected(&format!("`{sign}`{why}"))) }
    }

    fn node(&mut self, span: Span, kind: Kind) -> Result<Node, Fault> {
        self.parts += 1;
        if self.parts > MAX_PARTS {
            return Err(Fault::new(
                span,
                format!("is too long: an expression has at most {MAX_PARTS} parts"),
            ));
        }
        let below = match &kind {
            Kind::Number(_) | Kind::Text(_) | Kind::Name(_) => 0,
            Kind::Call(_, nodes) | Kind::List(nodes) => {
                nodes.iter().map(|node| node.depth).max().unwrap_or(0)
            }
            Kind::Minus(node) | Kind::Not(node) => node.depth,
            Kind::Pair(_, a, b) | Kind::Let(_, a, b) => a.depth.max(b.depth),
        };
        if below >= MAX_DEPTH {
            let message =
                format!("is nested too deeply: at most {MAX_DEPTH} parts may stand within one another");
            return Err(Fault::new(span, message));
        }
        Ok(Node { span, kind, depth: below + 1 })
    }

    /// One level further in.
    fn inside<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T, Fault>) -> Result<T, Fault> {
        self.open += 1;
        if self.open > MAX_DEPTH {
            let message =
                format!("is nested too deeply: at most {MAX_DEPTH} parts may stand within one another");
            return Err(self.fault(message));
        }
        let found = parse(self);
        self.open -= 1;
        found
    }

    /// Definitions, and what is made of them.
    pub fn whole(&mut self) -> Result<Node, Fault> {
        let Word::Name(word) = self.peek() else { return self.expression(0) };
        if word != "let" {
            return self.expression(0);
        }
        let start = self.advance().1.start;
        let name = match self.advance() {
            (Word::Name(name), span) if KEYWORDS.contains(&name.as_str()) => {
                return Err(Fault::new(
                    span,
                    format!("expected a name, and `{name}` is a word of the language"),
                ));
            }
            (Word::Name(name), _) => name,
            (word, span) => {
                return Err(Fault::new(
                    span.clone(),
                    format!("expected a name after `let`, found {}", word.shown(self.text, &span)),
                ));
            }
        };
        self.expect("=", " after the name of a definition")?;
        let value = self.inside(|parser| parser.expression(0))?;
        self.expect(";", " after a definition")?;
        let body = self.inside(Self::whole)?;
        let span = start..body.span.end;
        self.node(span, Kind::Let(name, Box::new(value), Box::new(body)))
    }

    /// An expression whose operators hold more tightly than `least`.
    pub fn expression(&mut self, least: u8) -> Result<Node, Fault> {
        let mut left = self.inside(Self::operand)?;
        while let Some(operator) = Operator::of(self.peek()).filter(|operator| operator.binding() > least) {
            self.advance();
            // Powers go from the right, all others from the left.
            let binding = operator.binding() - u8::from(operator == Operator::Power);
            let right = self.inside(|parser| parser.expression(binding))?;
            if operator.compares() && Operator::of(self.peek()).is_some_and(Operator::compares) {
                return Err(self.fault("expected `and`, `or` or the end: two numbers are compared at a time, as in `a < b and b < c`"));
            }
            let span = left.span.start..right.span.end;
            left = self.node(span, Kind::Pair(operator, Box::new(left), Box::new(right)))?;
        }
        Ok(left)
    }

    fn operand(&mut self) -> Result<Node, Fault> {
        let (word, span) = (self.peek().clone(), self.span());
        match word {
            Word::Number(value) => self.leaf(Kind::Number(value)),
            Word::Text(text) => self.leaf(Kind::Text(text)),
            Word::Name(name) if name == "not" => {
                self.advance();
                let node = self.expression(NOT)?;
                let span = span.start..node.span.end;
                self.node(span, Kind::Not(Box::new(node)))
            }
            Word::Name(name) if KEYWORDS.contains(&name.as_str()) && self.text[span.start] != '`' => {
                Err(self.unexpected(OPERAND))
            }
            Word::Name(name) => {
                if self.second() == &Word::Sign("(") && self.text[span.start] != '`' {
                    return self.call(name);
                }
                self.leaf(Kind::Name(name))
            }
            Word::Sign("-") => {
                self.advance();
                let node = self.expression(MINUS)?;
                let span = span.start..node.span.end;
                self.node(span, Kind::Minus(Box::new(node)))
            }
            Word::Sign("+") => {
                self.advance();
                self.expression(MINUS)
            }
            Word::Sign("(") => {
                self.advance();
                let node = self.whole()?;
                self.expect(")", " to close the bracket")?;
                Ok(node)
            }
            Word::Sign("[") => {
                self.advance();
                let (nodes, end) = self.list("]")?;
                self.node(span.start..end, Kind::List(nodes))
            }
            _ => Err(self.unexpected(OPERAND)),
        }
    }

    /// The call that begins here.
    pub fn call_here(&mut self) -> Result<Node, Fault> {
        self.inside(Self::operand)
    }

    /// Where the last word ended.
    pub fn last_end(&self) -> usize {
        self.words[self.at.saturating_sub(1)].1.end
    }

    fn leaf(&mut self, kind: Kind) -> Result<Node, Fault> {
        let (_, span) = self.advance();
        self.node(span, kind)
    }

    fn call(&mut self, name: String) -> Result<Node, Fault> {
        let start = self.advance().1.start;
        self.advance();
        let (nodes, end) = self.list(")")?;
        self.node(start..end, Kind::Call(name, nodes))
    }

    /// Expressions between commas, up to a closing bracket, and where that ends.
    fn list(&mut self, close: &str) -> Result<(Vec<Node>, usize), Fault> {
        let mut nodes = Vec::new();
        if self.is(close) {
            return Ok((nodes, self.advance().1.end));
        }
        loop {
            nodes.push(self.whole()?);
            if self.is(close) {
                return Ok((nodes, self.advance().1.end));
            }
            self.expect(",", &format!(" or `{close}`"))?;
        }
    }
}

const OPERAND: &str = "a number, a name or `(`";

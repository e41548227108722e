//! `income ~ age + I(age^2) + C(region, ref='north') + sex:hours - 1`: R's formulas. A term is a set of factors, and the empty one
//! is the intercept. A factor of text is coded by dummies: all of its levels, or all but one where the term without it is there
//! too (Chambers and Hastie 1992, section 2.3.1), which is what R does.

use std::collections::BTreeSet;

use super::table::{Kind, MOST_COLUMNS, Table};
use crate::expression::{Fault, Kind as Part, Node, Parser, Span, Word};

/// The most terms that a formula may be multiplied out to.
const MOST_TERMS: usize = 2_000;

/// What stands between the signs of a formula.
#[derive(Clone, Debug, PartialEq)]
enum Factor {
    /// A column, of numbers or of text.
    Column(String, Span),
    /// `C(column, ref='level')`: a column of text, whatever it looks like.
    Levels { column: String, span: Span, reference: Option<(String, Span)> },
    /// A number, by an expression; named as it is written.
    Number { name: String, text: String, node: Node },
}

impl Factor {
    /// The column of the table that it is found in.
    fn column(&self) -> &str {
        match self {
            Factor::Column(column, _) | Factor::Levels { column, .. } => column,
            Factor::Number { name, .. } => name,
        }
    }

    fn span(&self) -> Span {
        match self {
            Factor::Column(_, span) | Factor::Levels { span, .. } => span.clone(),
            Factor::Number { node, .. } => node.span.clone(),
        }
    }
}

type Term = BTreeSet<usize>;

/// A response, and terms that become columns.
#[derive(Clone, Debug)]
pub struct Formula {
    response: Option<Factor>,
    factors: Vec<Factor>,
    terms: Vec<Term>,
    /// `.`: all columns that are not named otherwise.
    pub rest: bool,
}

/// A column of the design: a product of numbers and dummies, by their columns and levels.
pub struct DesignColumn {
    pub name: String,
    pub parts: Vec<(usize, Option<usize>)>,
}

impl Formula {
    pub fn new(text: &str) -> Result<Formula, Fault> {
        let characters: Vec<char> = text.chars().collect();
        let mut reader = Reader {
            parser: Parser::new(&characters)?,
            text: &characters,
            factors: Vec::new(),
            rest: false,
            depth: 0,
        };
        let response = if reader.parser.is("~") { None } else { Some(reader.response()?) };
        reader.parser.expect("~", " between the response and the terms")?;
        let mut terms = vec![Term::new()];
        reader.sum(&mut terms)?;
        if reader.parser.peek() != &Word::End {
            return Err(reader.parser.unexpected("`+`, `-`, `:`, `*` or the end"));
        }
        terms.sort_by_key(Term::len);
        let Reader { factors, rest, .. } = reader;
        Ok(Formula { response, factors, terms, rest })
    }

    pub fn has_intercept(&self) -> bool {
        self.terms.iter().any(Term::is_empty)
    }

    /// The column of the response.
    pub fn target(&self) -> Option<&str> {
        self.response.as_ref().map(Factor::column)
    }

    /// The columns that the terms are made of.
    pub fn columns(&self) -> Vec<String> {
        let mut columns: Vec<String> = Vec::new();
        for factor in self.terms.iter().flatten().map(|&k| &self.factors[k]) {
            if !columns.iter().any(|known| known == factor.column()) {
                columns.push(factor.column().to_owned());
            }
        }
        columns
    }

    /// Names and expressions of the numbers that are no columns of the file.
    pub fn numeric(&self) -> Vec<(String, String, Node)> {
        let mut found: Vec<(String, String, Node)> = Vec::new();
        for factor in self.response.iter().chain(&self.factors) {
            if let Factor::Number { name, text, node } = factor
                && !found.iter().any(|(known, ..)| known == name)
            {
                found.push((name.clone(), text.clone(), node.clone()));
            }
        }
        found
    }

    /// Columns of the file that terms name as they are, and those that are text in any case.
    pub fn raw_columns(&self) -> (Vec<String>, Vec<String>) {
        let (mut raw, mut forced) = (Vec::new(), Vec::new());
        for factor in &self.factors {
            match factor {
                Factor::Column(column, _) => raw.push(column.clone()),
                Factor::Levels { column, .. } => forced.push(column.clone()),
                Factor::Number { .. } => {}
            }
        }
        (raw, forced)
    }

    /// The columns of the design, given the levels of each column of text in alphabetical order, with their codes. `.` stands for those of the
    /// covariates that no term names.
    pub fn design(
        &self,
        table: &Table,
        covariates: &[usize],
        levels: &dyn Fn(usize) -> Vec<(String, usize)>,
    ) -> Result<Vec<DesignColumn>, Fault> {
        let mut design = Vec::new();
        // Without an intercept the first column of text has all its dummies, and the others have not, as in R.
        let mut whole = !self.has_intercept();
        let is_text =
            |k: usize| table.find(self.factors[k].column()).is_ok_and(|j| table.kinds[j] != Kind::Number);
        for term in self.terms.iter().filter(|term| !term.is_empty()) {
            let mut products = vec![DesignColumn { name: String::new(), parts: Vec::new() }];
            for &k in term {
                let alone: Term = term.iter().copied().filter(|other| *other != k).collect();
                let first = is_text(k) && std::mem::take(&mut whole);
                let contrasts = !first && (alone.is_empty() || self.terms.contains(&alone));
                let choices = self.coded(k, contrasts, table, levels)?;
                if design.len() + products.len().saturating_mul(choices.len()) > MOST_COLUMNS {
                    return Err(Fault::new(
                        self.factors[k].span(),
                        format!("the levels, multiplied out, make more than {MOST_COLUMNS} columns here"),
                    ));
                }
                // The first factor varies fastest, as in R.
                products = choices
                    .iter()
                    .flat_map(|choice| products.iter().map(|product| product.times(choice)))
                    .collect();
            }
            design.extend(products);
        }
        if self.rest {
            let named: Vec<&str> = self.factors.iter().chain(&self.response).map(Factor::column).collect();
            for &j in covariates.iter().filter(|&&j| !named.contains(&table.names[j].as_str())) {
                let first = table.kinds[j] != Kind::Number && std::mem::take(&mut whole);
                design.extend(choices(table, j, &levels(j), None, !first));
            }
        }
        Ok(design)
    }

    /// A factor as columns: itself, or its dummies.
    fn coded(
        &self,
        k: usize,
        contrasts: bool,
        table: &Table,
        levels: &dyn Fn(usize) -> Vec<(String, usize)>,
    ) -> Result<Vec<DesignColumn>, Fault> {
        let factor = &self.factors[k];
        let j = table.find(factor.column()).map_err(|e| Fault::new(factor.span(), e.to_string()))?;
        let of_level = match table.kinds[j] {
            Kind::Number => Vec::new(),
            Kind::Levels(_) => levels(j),
        };
        let reference = match factor {
            Factor::Levels { reference: Some((level, span)), .. } => {
                let found = of_level.iter().position(|(name, _)| name == level);
                Some(found.ok_or_else(|| {
                    let known: Vec<String> =
                        of_level.iter().take(12).map(|(name, _)| format!("'{name}'")).collect();
                    let message = format!(
                        "column \"{}\" has no level '{level}'; it has {}",
                        factor.column(),
                        known.join(", ")
                    );
                    Fault::new(span.clone(), message)
                })?)
            }
            _ => None,
        };
        Ok(choices(table, j, &of_level, reference, contrasts))
    }
}

impl DesignColumn {
    fn times(&self, other: &DesignColumn) -> DesignColumn {
        let colon = if self.name.is_empty() { "" } else { ":" };
        let parts = self.parts.iter().chain(&other.parts).copied().collect();
        DesignColumn { name: format!("{}{colon}{}", self.name, other.name), parts }
    }
}

/// A column of numbers, or a dummy for every level but, with `contrasts`, the reference.
fn choices(
    table: &Table,
    j: usize,
    levels: &[(String, usize)],
    reference: Option<usize>,
    contrasts: bool,
) -> Vec<DesignColumn> {
    let name = &table.names[j];
    if table.kinds[j] == Kind::Number {
        return vec![DesignColumn { name: name.clone(), parts: vec![(j, None)] }];
    }
    let left_out = contrasts.then_some(reference.unwrap_or(0));
    let dummies = levels.iter().enumerate().filter(|(i, _)| Some(*i) != left_out);
    let dummy = |(_, (level, code)): (usize, &(String, usize))| DesignColumn {
        name: format!("{name}_{level}"),
        parts: vec![(j, Some(*code))],
    };
    dummies.map(dummy).collect()
}

/// A formula half read.
struct Reader<'a> {
    parser: Parser<'a>,
    text: &'a [char],
    factors: Vec<Factor>,
    rest: bool,
    depth: usize,
}

const FACTOR: &str = "a column, a function of columns, `C(…)`, `I(…)`, `(`, `.`, 0 or 1";

impl Reader<'_> {
    fn response(&mut self) -> Result<Factor, Fault> {
        let start = self.parser.span().start;
        let node = self.parser.expression(0)?;
        if let Part::Name(name) = &node.kind {
            return Ok(Factor::Column(name.clone(), node.span));
        }
        let name = self.written(start, node.span.end);
        let text = self.text[start..self.parser.last_end().min(self.text.len())].iter().collect();
        Ok(Factor::Number { name, text, node })
    }

    /// Characters of the formula, without blanks.
    fn written(&self, start: usize, end: usize) -> String {
        self.text[start..end.min(self.text.len())].iter().filter(|c| !c.is_whitespace()).collect()
    }

    /// Terms that are added to those there are, or taken away.
    fn sum(&mut self, terms: &mut Vec<Term>) -> Result<(), Fault> {
        let mut sign = match self.parser.peek() {
            Word::Sign("-") => {
                self.parser.advance();
                "-"
            }
            Word::Sign("+") => {
                self.parser.advance();
                "+"
            }
            _ => "+",
        };
        loop {
            if self.parser.peek() == &Word::Number(0.0) {
                self.parser.advance();
                // Without nothing is with an intercept.
                change(terms, vec![Term::new()], sign == "-");
            } else {
                let found = self.product()?;
                change(terms, found, sign == "+");
            }
            self.bounded(terms)?;
            sign = match self.parser.peek() {
                Word::Sign("+") => "+",
                Word::Sign("-") => "-",
                _ => return Ok(()),
            };
            self.parser.advance();
        }
    }

    fn bounded(&self, terms: &[Term]) -> Result<(), Fault> {
        if terms.len() <= MOST_TERMS {
            return Ok(());
        }
        Err(self.parser.fault(format!("a formula has at most {MOST_TERMS} terms, and this one has more")))
    }

    /// Every term of one side with every term of the other.
    fn crossed(&self, a: &[Term], b: &[Term]) -> Result<Vec<Term>, Fault> {
        let mut found = Vec::new();
        for (a, b) in a.iter().flat_map(|a| b.iter().map(move |b| (a, b))) {
            change(&mut found, vec![a | b], true);
            self.bounded(&found)?;
        }
        Ok(found)
    }

    /// a*b is a + b + a:b.
    fn product(&mut self) -> Result<Vec<Term>, Fault> {
        let mut terms = self.interaction()?;
        while self.parser.take("*") {
            let right = self.interaction()?;
            let both = self.crossed(&terms, &right)?;
            change(&mut terms, right, true);
            change(&mut terms, both, true);
            self.bounded(&terms)?;
        }
        if self.parser.is("/") {
            return Err(self
                .parser
                .fault("expected `+`, `-`, `:` or `*`: nested terms are not known; `I(a/b)` divides"));
        }
        Ok(terms)
    }

    fn interaction(&mut self) -> Result<Vec<Term>, Fault> {
        let mut terms = self.power()?;
        while self.parser.take(":") {
            let right = self.power()?;
            terms = self.crossed(&terms, &right)?;
        }
        Ok(terms)
    }

    /// (a + b)^2 is (a + b)*(a + b).
    fn power(&mut self) -> Result<Vec<Term>, Fault> {
        let base = self.operand()?;
        if !self.parser.take("^") {
            return Ok(base);
        }
        let (word, span) = self.parser.advance();
        let Word::Number(power) = word else {
            return Err(Fault::new(span, "expected a whole number, as in `(a + b)^2`; `I(a^2)` is a square"));
        };
        if power.fract() != 0.0 || !(1.0..=9.0).contains(&power) {
            return Err(Fault::new(span, "expected a whole number from 1 to 9, as in `(a + b)^2`"));
        }
        let mut terms = base.clone();
        for _ in 1..power as usize {
            let both = self.crossed(&terms, &base)?;
            change(&mut terms, both, true);
            self.bounded(&terms)?;
        }
        Ok(terms)
    }

    fn operand(&mut self) -> Result<Vec<Term>, Fault> {
        match self.parser.peek().clone() {
            Word::Number(1.0) => {
                self.parser.advance();
                Ok(vec![Term::new()])
            }
            Word::Sign("(") => {
                self.depth += 1;
                if self.depth > 50 {
                    return Err(self.parser.fault("is nested too deeply"));
                }
                self.parser.advance();
                let mut terms = Vec::new();
                self.sum(&mut terms)?;
                self.parser.expect(")", " to close the bracket")?;
                self.depth -= 1;
                Ok(terms)
            }
            Word::Sign(".") => {
                self.parser.advance();
                self.rest = true;
                Ok(Vec::new())
            }
            Word::Name(_) => {
                let factor = self.factor()?;
                let k = self.factors.iter().position(|known| known.column() == factor.column());
                let k = k.unwrap_or_else(|| {
                    self.factors.push(factor);
                    self.factors.len() - 1
                });
                Ok(vec![Term::from([k])])
            }
            _ => Err(self.parser.unexpected(FACTOR)),
        }
    }

    fn factor(&mut self) -> Result<Factor, Fault> {
        let start = self.parser.span().start;
        let called = self.parser.second() == &Word::Sign("(") && self.text[start] != '`';
        match self.parser.peek().clone() {
            Word::Name(name) if called && name == "C" => self.levels(),
            Word::Name(name) if called => {
                let (node, inside) = match name.as_str() {
                    "I" => {
                        self.parser.advance();
                        self.parser.advance();
                        let first = self.parser.span().start;
                        let node = self.parser.expression(0)?;
                        let inside = first..self.parser.last_end();
                        self.parser.expect(")", " to close `I(`")?;
                        (node, inside)
                    }
                    _ => {
                        let node = self.parser.call_here()?;
                        (node, start..self.parser.last_end())
                    }
                };
                let end = self.parser.last_end();
                let text = self.text[inside].iter().collect();
                Ok(Factor::Number { name: self.written(start, end), text, node })
            }
            Word::Name(name) => {
                let (_, span) = self.parser.advance();
                Ok(Factor::Column(name, span))
            }
            _ => Err(self.parser.unexpected(FACTOR)),
        }
    }

    /// C(column) or C(column, ref='level').
    fn levels(&mut self) -> Result<Factor, Fault> {
        self.parser.advance();
        self.parser.advance();
        let (word, span) = self.parser.advance();
        let Word::Name(column) = word else {
            return Err(Fault::new(span, "expected a column within `C(…)`"));
        };
        let mut reference = None;
        if self.parser.take(",") {
            match self.parser.advance() {
                (Word::Name(name), _) if name == "ref" => {}
                (_, span) => return Err(Fault::new(span, "expected `ref='level'`")),
            }
            self.parser.expect("=", " after `ref`")?;
            match self.parser.advance() {
                (Word::Text(level), span) => reference = Some((level, span)),
                (_, span) => return Err(Fault::new(span, "expected a level in quotes, as in `ref='north'`")),
            }
        }
        self.parser.expect(")", " to close `C(`")?;
        Ok(Factor::Levels { column, span, reference })
    }
}

/// Adds terms, or takes them away.
fn change(terms: &mut Vec<Term>, by: Vec<Term>, add: bool) {
    match add {
        true => by.into_iter().for_each(|term| {
            if !terms.contains(&term) {
                terms.push(term);
            }
        }),
        false => terms.retain(|term| !by.contains(term)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::prepare::{Recipe, finish, frames};
    use super::super::shape::Shape;
    use super::super::text::{Categorical, Rules, read};
    use super::*;
    use crate::config::InOrder;

    /// Column names and cells of the design, and the response, that a formula makes of a small file.
    fn design(text: &str) -> (Vec<String>, Vec<Vec<f64>>, Vec<f64>) {
        let file = "y,age,hours,sex,region\n1,2,10,m,south\n0,3,20,f,north\n1,5,40,m,east\n0,7,30,f,south\n";
        let shape =
            Shape::new(&InOrder::default(), None, Some(text)).unwrap_or_else(|e| panic!("{text}: {e:?}"));
        let rules = Rules { categorical: Categorical::Auto, ..Rules::default() };
        let table = shape.apply(read(file.as_bytes(), "t", &rules).unwrap()).unwrap();
        let formula = shape.formula.clone().unwrap();
        let columns = (!formula.rest).then(|| formula.columns());
        let target = formula.target().map(str::to_owned);
        let recipe = Recipe { columns, target, formula: Some(formula), ..Recipe::default() };
        let (frame, _, _) = frames(table, None, &recipe).unwrap();
        let (data, _) = finish(frame, None, &recipe, None).unwrap();
        let cells = (0..data.d()).map(|j| data.x.column(j).collect()).collect();
        (data.columns, cells, data.y.map(|y| y.to_vec()).unwrap_or_default())
    }

    fn names(text: &str) -> String {
        design(text).0.join(" ")
    }

    /// The names that R's model.matrix has, in its order, up to how a level is joined to its column.
    #[test]
    fn terms_become_the_columns_of_r() {
        for (formula, wanted) in [
            ("y ~ age", "age"),
            ("y ~ age + hours", "age hours"),
            ("y ~ age + I(age^2) + log(hours)", "age I(age^2) log(hours)"),
            ("y ~ region", "region_north region_south"),
            ("y ~ C(region, ref='north')", "region_east region_south"),
            ("y ~ region - 1", "region_east region_north region_south"),
            ("y ~ 0 + region", "region_east region_north region_south"),
            ("y ~ region + sex - 1", "region_east region_north region_south sex_m"),
            ("y ~ sex:hours", "sex_f:hours sex_m:hours"),
            ("y ~ hours + sex:hours", "hours hours:sex_m"),
            ("y ~ sex*age", "sex_m age sex_m:age"),
            ("y ~ age:hours + age", "age age:hours"),
            ("y ~ (age + hours)^2", "age hours age:hours"),
            ("y ~ (age + hours)^2 - hours", "age age:hours"),
            ("y ~ sex*region", "sex_m region_north region_south sex_m:region_north sex_m:region_south"),
            (
                "y ~ sex:region",
                "sex_f:region_east sex_m:region_east sex_f:region_north sex_m:region_north sex_f:region_south sex_m:region_south",
            ),
            ("y ~ .", "age hours sex_m region_north region_south"),
        ] {
            assert_eq!(names(formula), wanted, "{formula}");
        }
    }

    #[test]
    fn cells_are_products() {
        let (_, cells, y) = design("log(1 + y) ~ age*sex + I(age^2)");
        assert_eq!(cells[0], [2.0, 3.0, 5.0, 7.0]);
        assert_eq!(cells[1], [1.0, 0.0, 1.0, 0.0]);
        assert_eq!(cells[2], [4.0, 9.0, 25.0, 49.0]);
        assert_eq!(cells[3], [2.0, 0.0, 5.0, 0.0]);
        assert!((y[0] - 2f64.ln()).abs() < 1e-15 && y[1] == 0.0);
    }

    /// Four columns of text with 40 levels each, multiplied out, are more columns than any file may have.
    #[test]
    fn levels_are_not_multiplied_out_without_end() {
        let line = |i: usize| format!("{i},a{i},b{i},c{i},d{i}\n");
        let file = format!("y,a,b,c,d\n{}", (0..40).map(line).collect::<String>());
        let rules = Rules { categorical: Categorical::Auto, ..Rules::default() };
        let table = read(file.as_bytes(), "t", &rules).unwrap();
        let levels = |j: usize| match &table.kinds[j] {
            Kind::Number => Vec::new(),
            Kind::Levels(levels) => levels.names().iter().cloned().zip(0..).collect(),
        };
        let columns =
            |text: &str| Formula::new(text).unwrap().design(&table, &[], &levels).map(|made| made.len());
        assert_eq!(columns("y ~ a:b:c - 1"), Ok(64_000));
        let fault = columns("y ~ a:b + a:b:c:d").unwrap_err();
        assert_eq!((fault.span, fault.message.contains("more than 1048576 columns")), (16..17, true));
    }

    #[test]
    fn mistakes_are_pointed_at() {
        for (text, at, says) in [
            ("y", 1, "expected `~` between the response and the terms"),
            ("y ~", 3, "expected a column"),
            ("y ~ age +", 9, "expected a column"),
            ("y ~ age age", 8, "expected `+`, `-`, `:`, `*` or the end"),
            ("y ~ age / sex", 8, "nested terms are not known"),
            ("y ~ (age + sex", 14, "expected `)` to close the bracket"),
            ("y ~ age^sex", 8, "expected a whole number"),
            ("y ~ age^2.5", 8, "expected a whole number from 1 to 9"),
            ("y ~ C(3)", 6, "expected a column within `C(…)`"),
            ("y ~ C(sex, level='m')", 11, "expected `ref='level'`"),
            ("y ~ C(sex, ref=m)", 15, "expected a level in quotes"),
            ("y ~ I(age", 9, "expected `)` to close `I(`"),
            ("y ~ age + 3", 10, "expected a column"),
            ("y ~ log(age", 11, "expected `,` or `)`"),
        ] {
            let fault = Formula::new(text).unwrap_err();
            assert!(
                fault.span.start == at && fault.message.contains(says),
                "{text}: {fault} at {}",
                fault.span.start
            );
        }
        let many: Vec<String> = (0..60).map(|k| format!("x{k}")).collect();
        let fault = Formula::new(&format!("y ~ ({})^5", many.join(" + "))).unwrap_err();
        assert!(fault.message.contains("at most 2000 terms"), "{fault}");
    }
}

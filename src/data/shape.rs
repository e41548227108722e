//! What expressions make of a table before it is prepared: new columns, and fewer rows. A value that can be applied to any table
//! with the same columns.

use std::collections::BTreeMap;

use super::formula::Formula;
use super::preparation::{MadeColumn, ReadColumn};
use super::table::{Kind, Levels, Table};
use crate::config::InOrder;
use crate::expression::{
    Columns, Compiler, Fault, Kind as Part, Leaf, Meaning, Node, Prepared, Program, Scope, Value, parse,
};

/// What is wrong with an expression: its key below `data`, and where.
pub type ShapeFault = (String, Fault);

/// Columns by expressions, and which rows are kept.
#[derive(Clone, Debug, Default)]
pub struct Shape {
    /// New columns, in the order in which they are made.
    columns: Vec<NewColumn>,
    filter: Option<Node>,
    pub formula: Option<Formula>,
}

/// A column by an expression.
#[derive(Clone, Debug)]
struct NewColumn {
    /// Where the expression is written, below `data`.
    key: String,
    name: String,
    text: String,
    node: Node,
}

impl Shape {
    pub fn new(
        derive: &InOrder<String>,
        filter: Option<&str>,
        formula: Option<&str>,
    ) -> Result<Shape, Vec<ShapeFault>> {
        let mut faults = Vec::new();
        let mut shape = Shape::default();
        for (name, text) in &derive.0 {
            let key = format!("derive.{name}");
            match parse(text) {
                Ok(node) => {
                    shape.columns.push(NewColumn { key, name: name.clone(), text: text.clone(), node })
                }
                Err(fault) => faults.push((key, fault)),
            }
        }
        let mut say = |key: &str, fault: Fault| faults.push((key.to_owned(), fault));
        shape.filter = filter.and_then(|text| parse(text).map_err(|fault| say("filter", fault)).ok());
        shape.formula =
            formula.and_then(|text| Formula::new(text).map_err(|fault| say("formula", fault)).ok());
        let of_formula = shape.formula.iter().flat_map(Formula::numeric);
        let column = |(name, text, node)| NewColumn { key: "formula".to_owned(), name, text, node };
        shape.columns.extend(of_formula.map(column));
        if faults.is_empty() { Ok(shape) } else { Err(faults) }
    }

    /// Whether a column is made by an expression.
    pub fn makes(&self, name: &str) -> bool {
        self.columns.iter().any(|column| column.name == name)
    }

    /// The columns that a run made, as it kept them.
    pub fn of(made: &[MadeColumn]) -> Result<Shape, ShapeFault> {
        let column = |made: &MadeColumn| match parse(&made.expression) {
            Ok(node) => {
                let (key, name, text) = (made.name.clone(), made.name.clone(), made.expression.clone());
                Ok(NewColumn { key, name, text, node })
            }
            Err(fault) => Err((made.name.clone(), fault)),
        };
        Ok(Shape { columns: made.iter().map(column).collect::<Result<_, _>>()?, ..Shape::default() })
    }

    /// What makes the new columns, and the columns of a table that it reads: enough to make them of other rows.
    pub fn kept(&self, table: &Table) -> (Vec<MadeColumn>, Vec<ReadColumn>) {
        let made =
            |column: &NewColumn| MadeColumn { name: column.name.clone(), expression: column.text.clone() };
        let mut reads: Vec<ReadColumn> = Vec::new();
        for name in self.columns.iter().flat_map(|column| names(&column.node)) {
            if let Some(j) = table.names.iter().position(|known| *known == name)
                && !reads.iter().any(|known| known.name == name)
            {
                reads.push(ReadColumn { name, text: table.kinds[j] != Kind::Number });
            }
        }
        (self.columns.iter().map(made).collect(), reads)
    }

    /// The names that a new column is made of, those that are new themselves and what they are made of too.
    pub fn needs(&self, name: &str) -> Vec<String> {
        let mut needed = vec![name.to_owned()];
        for column in self.columns.iter().rev() {
            if needed.contains(&column.name) {
                needed.extend(names(&column.node));
            }
        }
        needed
    }

    /// Those new columns alone that are wanted, by their names.
    pub fn only(mut self, wanted: &[String]) -> Shape {
        self.columns.retain(|column| wanted.contains(&column.name));
        self
    }

    pub fn makes_nothing(&self) -> bool {
        self.columns.is_empty()
    }

    pub fn drops_rows(&self) -> bool {
        self.filter.is_some()
    }

    /// Where a column is first read by an expression, as a key below `data`.
    pub fn reader(&self, name: &str) -> Option<String> {
        let of_columns = self.columns.iter().map(|column| (column.key.clone(), &column.node));
        let all = of_columns.chain(self.filter.iter().map(|node| ("filter".to_owned(), node)));
        all.into_iter().find(|(_, node)| names(node).iter().any(|n| n == name)).map(|(key, _)| key)
    }

    /// The columns of the file that expressions name: those compared with texts, and the others.
    pub fn reads(&self) -> (Vec<String>, Vec<String>) {
        let (mut texts, mut all) = (Vec::new(), Vec::new());
        for node in self.columns.iter().map(|column| &column.node).chain(&self.filter) {
            collect(node, &mut Vec::new(), &mut texts, &mut all);
        }
        let (raw, forced) = self.formula.as_ref().map(Formula::raw_columns).unwrap_or_default();
        all.extend(raw);
        texts.extend(forced);
        all.retain(|name| !texts.contains(name) && !self.makes(name));
        texts.retain(|name| !self.makes(name));
        (texts, all)
    }

    /// The table with its new columns, and without the rows that are left out; no new cell is infinite.
    pub fn apply(&self, table: Table) -> Result<Table, ShapeFault> {
        let table = self.shaped(table)?;
        self.check_finite(&table)?;
        Ok(table)
    }

    /// An infinite cell of a file is refused where it is read, and one that is made here: no loss of it is a number. Rows that were left out
    /// may have had any.
    fn check_finite(&self, table: &Table) -> Result<(), ShapeFault> {
        for NewColumn { key, name, node, .. } in &self.columns {
            let place = table.names.iter().position(|known| known == name).expect("made above");
            if let Some(row) = table.column(place).position(f64::is_infinite) {
                let message = format!(
                    "is infinite in row {} of the data that are used; `data.filter` leaves rows out",
                    table.number(row)
                );
                return Err((key.clone(), Fault::new(node.span.clone(), message)));
            }
        }
        Ok(())
    }

    /// The same, whatever its cells.
    pub fn shaped(&self, mut table: Table) -> Result<Table, ShapeFault> {
        for NewColumn { key, name, node, .. } in &self.columns {
            let (kind, cells) = self.column(&table, name, node).map_err(|fault| (key.clone(), fault))?;
            add_column(&mut table, name, kind, &cells);
        }
        let Some(filter) = &self.filter else { return Ok(table) };
        let keep = evaluate(&table, filter).map_err(|fault| ("filter".to_owned(), fault))?;
        let (Kind::Number, keep) = keep else {
            let fault = Fault::new(filter.span.clone(), "expected a condition, and this is a text");
            return Err(("filter".to_owned(), fault));
        };
        let width = table.width();
        let rows: Vec<usize> = (0..table.rows()).filter(|&i| keep[i] != 0.0 && !keep[i].is_nan()).collect();
        if rows.is_empty() && table.rows() > 0 {
            let fault = Fault::new(filter.span.clone(), "holds in no row of the data");
            return Err(("filter".to_owned(), fault));
        }
        for (to, &from) in rows.iter().enumerate() {
            table.cells.copy_within(from * width..(from + 1) * width, to * width);
        }
        table.truncate(rows.len());
        table.copies = table.copies.map(|copies| copies.select(&rows));
        Ok(table)
    }

    fn column(&self, table: &Table, name: &str, node: &Node) -> Result<(Kind, Vec<f64>), Fault> {
        if table.header.names.iter().any(|known| known == name) {
            let message = format!("the data have a column \"{name}\" already");
            return Err(Fault::new(node.span.clone(), message));
        }
        evaluate(table, node)
    }
}

/// All names in an expression, definitions aside.
fn names(node: &Node) -> Vec<String> {
    let mut all = Vec::new();
    collect(node, &mut Vec::new(), &mut Vec::new(), &mut all);
    all
}

/// Names in an expression, definitions aside: those compared with a text, and all of them.
fn collect(node: &Node, defined: &mut Vec<String>, texts: &mut Vec<String>, all: &mut Vec<String>) {
    match &node.kind {
        Part::Name(name) if !defined.contains(name) && !all.contains(name) => all.push(name.clone()),
        Part::Call(name, nodes) if name == "if" && nodes.len() == 3 => {
            mark(&nodes[1], &nodes[2], texts);
            nodes.iter().for_each(|node| collect(node, defined, texts, all));
        }
        Part::Call(_, nodes) | Part::List(nodes) => {
            nodes.iter().for_each(|node| collect(node, defined, texts, all))
        }
        Part::Minus(inner) | Part::Not(inner) => collect(inner, defined, texts, all),
        Part::Pair(_, a, b) => {
            mark(a, b, texts);
            collect(a, defined, texts, all);
            collect(b, defined, texts, all);
        }
        Part::Let(name, value, body) => {
            collect(value, defined, texts, all);
            defined.push(name.clone());
            collect(body, defined, texts, all);
            defined.pop();
        }
        Part::Name(_) | Part::Number(_) | Part::Text(_) => {}
    }
}

/// A name beside a text is one of a column of texts.
fn mark(a: &Node, b: &Node, texts: &mut Vec<String>) {
    for (one, other) in [(a, b), (b, a)] {
        if let (Part::Name(name), Part::Text(_)) = (&one.kind, &other.kind) {
            texts.push(name.clone());
        }
    }
}

impl Columns for Table {
    fn n(&self) -> usize {
        self.rows()
    }

    fn cell(&self, i: usize, j: usize) -> f64 {
        self.cells[i * self.width() + j]
    }
}

/// A table of which some columns of text are numbers after all: a response is read as text, for it may be the name of a class.
struct Numbered<'a> {
    table: &'a Table,
    /// The place of each of them, and what its levels stand for.
    columns: Vec<(usize, Vec<f64>)>,
}

impl Numbered<'_> {
    /// With the columns of an expression whose levels are numbers.
    fn of<'a>(table: &'a Table, node: &Node) -> Numbered<'a> {
        let values = |kind: &Kind| match kind {
            Kind::Levels(levels) => levels.names().iter().map(|level| level.trim().parse().ok()).collect(),
            Kind::Number => None,
        };
        let places = names(node).into_iter().filter_map(|name| table.names.iter().position(|n| *n == name));
        let columns = places.filter_map(|j| Some((j, values(&table.kinds[j])?))).collect();
        Numbered { table, columns }
    }

    fn is_number(&self, j: usize) -> bool {
        self.columns.iter().any(|(place, _)| *place == j)
    }
}

impl Columns for Numbered<'_> {
    fn n(&self) -> usize {
        self.table.rows()
    }

    fn cell(&self, i: usize, j: usize) -> f64 {
        let cell = self.table.cell(i, j);
        let numbers = self.columns.iter().find(|(place, _)| *place == j && !cell.is_nan());
        numbers.map_or(cell, |(_, numbers)| numbers[cell as usize])
    }
}

/// Columns of text are texts, and numbers only where they can be nothing else.
fn evaluate(table: &Table, node: &Node) -> Result<(Kind, Vec<f64>), Fault> {
    let as_read = evaluate_with(&Numbered { table, columns: Vec::new() }, node);
    let numbered = Numbered::of(table, node);
    if as_read.is_ok() || numbered.columns.is_empty() { as_read } else { evaluate_with(&numbered, node) }
}

fn evaluate_with(numbered: &Numbered, node: &Node) -> Result<(Kind, Vec<f64>), Fault> {
    let table = numbered.table;
    let meaning = |(j, kind): (usize, &Kind)| match kind {
        Kind::Number => Meaning::Number(Leaf::Column(j)),
        Kind::Levels(_) if numbered.is_number(j) => Meaning::Number(Leaf::Column(j)),
        Kind::Levels(levels) => Meaning::Text(Leaf::Column(j), levels.names().to_vec()),
    };
    let names: BTreeMap<String, Meaning> =
        table.names.iter().cloned().zip(table.kinds.iter().enumerate().map(meaning)).collect();
    let scope = Scope {
        names,
        covariates: Vec::new(),
        known: "a column of the data or a constant",
        hints: table.header.names.clone(),
    };
    let mut compiler = Compiler::new(&scope);
    let (root, kind) = match compiler.value(node)? {
        Value::Text { code, levels } => {
            let mut known = Levels::default();
            for level in &levels {
                known.code(level.as_bytes());
            }
            (code, Kind::Levels(known))
        }
        value => (value.scalar(&node.span, "expected a single number")?, Kind::Number),
    };
    let program = Program::new(compiler.tape, vec![root]);
    let mut cells = vec![0.0; table.rows()];
    program.each_row(0, &[], &Prepared::new(&program, numbered, None), &mut cells);
    Ok((kind, cells))
}

/// To the right of the others.
fn add_column(table: &mut Table, name: &str, kind: Kind, cells: &[f64]) {
    let (width, wider) = (table.width(), table.width() + 1);
    let mut all = std::mem::take(&mut table.cells);
    all.resize(cells.len() * wider, 0.0);
    for (i, &cell) in cells.iter().enumerate().rev() {
        all.copy_within(i * width..(i + 1) * width, i * wider);
        all[i * wider + width] = cell;
    }
    table.cells = all;
    table.places.push(table.header.width());
    table.header.names.push(name.to_owned());
    table.names.push(name.to_owned());
    table.kinds.push(kind);
}

#[cfg(test)]
mod tests {
    use super::super::text::{Categorical, Rules, read};
    use super::*;

    fn shaped(derive: &[(&str, &str)], filter: Option<&str>) -> Result<Table, ShapeFault> {
        let derive =
            InOrder(derive.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect());
        let shape = Shape::new(&derive, filter, None).map_err(|mut faults| faults.remove(0))?;
        let (mut texts, _) = shape.reads();
        texts.push("region".into());
        let rules =
            Rules { categorical: Categorical::Columns(texts), missing: vec!["?".into()], ..Rules::default() };
        shape.apply(
            read(&b"age,w,region\n17,60,north\n30,80,south\n?,70,north\n45,90,north\n"[..], "t", &rules)
                .unwrap(),
        )
    }

    #[test]
    fn columns_are_made_in_order_and_rows_left_out() {
        let derive = [("half", "age/2"), ("quarter", "half/2"), ("old", "if(age > 40, 'yes', 'no')")];
        let table = shaped(&derive, Some("age >= 18 and region == 'north'")).unwrap();
        assert_eq!(table.names, ["age", "w", "region", "half", "quarter", "old"]);
        assert_eq!(table.rows(), 1);
        assert_eq!(table.column(4).collect::<Vec<_>>(), [11.25]);
        let Kind::Levels(levels) = &table.kinds[5] else { panic!("a column of text") };
        assert_eq!(levels.names()[table.column(5).next().unwrap() as usize], "yes");
        // A comparison with a missing value does not hold.
        assert_eq!(shaped(&[], Some("age < 100")).unwrap().rows(), 3);
        assert_eq!(shaped(&[], Some("age != 30")).unwrap().rows(), 2);
        assert_eq!(shaped(&[], Some("region != 'north'")).unwrap().rows(), 1);
    }

    /// A response is read as text, and may be counted with all the same.
    #[test]
    fn texts_that_are_numbers_can_be_counted_with() {
        let text = &b"y,z\n3.5,1\n-1,2\n?,3\n12,4\n"[..];
        let rules = Rules {
            categorical: Categorical::Columns(vec!["y".into()]),
            missing: vec!["?".into()],
            ..Rules::default()
        };
        let derive = InOrder(vec![("log".to_owned(), "log(y + 2)".to_owned())]);
        let of = |filter| {
            let shape = Shape::new(&derive, Some(filter), None).unwrap();
            shape.apply(read(text, "t", &rules).unwrap()).map(|table| table.column(2).collect::<Vec<f64>>())
        };
        let found = of("y > 0").unwrap();
        let near = |(found, of): (&f64, f64)| (found - libm::log(of)).abs() < 1e-14;
        assert!(found.len() == 2 && found.iter().zip([5.5, 14.0]).all(near), "{found:?}");
        assert_eq!(of("y == '-1'").unwrap(), [0.0]);
        assert!(of("y == '12' and y > 0").unwrap_err().1.message.contains("text"));
    }

    #[test]
    fn infinite_cells_are_refused_in_rows_that_are_used() {
        let (key, fault) = shaped(&[("z", "1/(w - 80)")], None).unwrap_err();
        assert!(key == "derive.z" && fault.message.contains("infinite in row 2"), "{key}: {fault}");
        assert_eq!(shaped(&[("z", "1/(w - 80)")], Some("w != 80")).unwrap().rows(), 3);
    }

    #[test]
    fn mistakes_are_pointed_at() {
        for (derive, filter, key, at, says) in [
            (("z", "agee*2"), None, "derive.z", 0, "did you mean `age`?"),
            (("z", "1 +"), None, "derive.z", 3, "found the end"),
            (("age", "1"), None, "derive.age", 0, "already"),
            (("z", "w"), Some("z >"), "filter", 3, "found the end"),
            (("z", "w"), Some("region > 'a'"), "filter", 0, "compared by `==` and `!=` only"),
            (("z", "w"), Some("w > 1000"), "filter", 0, "holds in no row"),
            (("z", "w"), Some("'north'"), "filter", 0, "this is a text"),
        ] {
            let (found, fault) = shaped(&[derive], filter).unwrap_err();
            assert!(
                found == key && fault.span.start == at && fault.message.contains(says),
                "{found}: {fault}"
            );
        }
    }
}

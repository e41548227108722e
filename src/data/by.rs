//! Rows in groups, by the values of a column: each group is a table of its own that knows of no other rows.

use std::collections::HashMap;

use super::design::DesignColumns;
use super::prepare::{Chosen, Missing, Notes, Recipe};
use super::table::{Kind, Table};
use crate::config::printable;
use crate::error::{Error, Result};

/// More groups than this are taken for a column of numbers, or of names, that was meant for something else.
pub const MOST: usize = 1000;

/// Which rows of the training and test tables belong to which group.
#[derive(Clone, Debug, PartialEq)]
pub struct Grouped {
    /// In the order of numbers, if all are numbers, or of the alphabet.
    pub names: Vec<String>,
    /// Places of the rows of each group, from 0.
    pub train: Vec<Vec<usize>>,
    /// The same, if there is a test table.
    pub test: Option<Vec<Vec<usize>>>,
    /// The value of each, as the training table has it.
    pub values: Vec<f64>,
    /// Rows that belong to none, and are left out.
    pub notes: Notes,
}

impl Grouped {
    /// By the column that the recipe names.
    pub fn new(train: &Table, test: Option<&Table>, recipe: &Recipe) -> Result<Grouped> {
        let by = recipe.by.as_deref().expect("asked for where there are groups");
        let chosen = Chosen::new(train, recipe)?;
        let mut notes = Notes::default();
        let j = train.find(by)?;
        let found = by_value(train, j, &chosen, recipe, &mut notes)?;
        let column = printable(&train.names[j]);
        if found.is_empty() {
            let message = format!("`data.by`: no row of the data has a value in column \"{column}\"");
            return Err(Error::input(message));
        }
        if found.len() > MOST {
            return Err(Error::input(format!(
                "`data.by`: column \"{column}\" has {} different values, and at most {MOST} groups are possible; `data.derive` can make \
                 a column with fewer",
                found.len()
            )));
        }
        let names: Vec<String> = in_order(found.keys()).into_iter().cloned().collect();
        check_clusters(train, &found, &names, recipe)?;
        let test = test.map(|test| test_rows(test, &names, by, &chosen.of_test_rows(), recipe, &mut notes));
        let mut found = found;
        let mut rows = |name: &String| found.remove(name).expect("it was found");
        let rows: Vec<Vec<usize>> = names.iter().map(&mut rows).collect();
        let values = rows.iter().map(|rows| train.cells[rows[0] * train.width() + j] + 0.0).collect();
        Ok(Grouped { train: rows, test: test.transpose()?, names, values, notes })
    }
}

/// Texts in the order of numbers, if all are numbers, or of the alphabet; each once.
pub fn in_order<'t>(texts: impl Iterator<Item = &'t String>) -> Vec<&'t String> {
    let mut texts: Vec<&String> = texts.collect();
    let number = |text: &String| text.parse::<f64>().ok().filter(|v| !v.is_nan());
    match texts.iter().all(|text| number(text).is_some()) {
        true => {
            let value = |text: &String| number(text).unwrap_or(0.0);
            texts.sort_by(|a, b| value(a).total_cmp(&value(b)).then(a.cmp(b)));
        }
        false => texts.sort(),
    }
    texts.dedup();
    texts
}

/// The rows of every value. What a row without one costs is said by `data.missing`: it can be of no group.
fn by_value(
    table: &Table,
    j: usize,
    chosen: &Chosen,
    recipe: &Recipe,
    notes: &mut Notes,
) -> Result<HashMap<String, Vec<usize>>> {
    let mut rows: HashMap<u64, Vec<usize>> = HashMap::new();
    let mut without = 0;
    for (i, row) in table.cells.chunks_exact(table.width()).enumerate() {
        if chosen.is_absent(row) {
            notes.rows += 1;
            notes.rows_of_weight_0 += 1;
        } else if !row[j].is_nan() {
            // 0 and -0 are one number.
            rows.entry((row[j] + 0.0).to_bits()).or_default().push(i);
        } else if recipe.missing == Missing::Error {
            return Err(chosen.missing_cell(table, i, j));
        } else {
            without += 1;
        }
    }
    notes.rows += without;
    if without > 0 {
        notes.rows_with_missing += without;
        notes.rows_dropped += without;
        *notes.missing.entry(table.names[j].clone()).or_default() += without;
    }
    let name = |bits: u64| match &table.kinds[j] {
        Kind::Levels(levels) => levels.names()[f64::from_bits(bits) as usize].clone(),
        Kind::Number => f64::from_bits(bits).to_string(),
    };
    let mut found: HashMap<String, Vec<usize>> = HashMap::new();
    for (bits, rows) in rows {
        found.entry(name(bits)).or_default().extend(rows);
    }
    Ok(found)
}

/// The test rows of each group: all of them have some.
fn test_rows(
    test: &Table,
    names: &[String],
    by: &str,
    chosen: &Chosen,
    recipe: &Recipe,
    notes: &mut Notes,
) -> Result<Vec<Vec<usize>>> {
    let j = test.find(by).map_err(|e| Error::input(format!("`data.by`: the test rows: {e}")))?;
    let column = printable(&test.names[j]);
    // A test table may have its columns in another order.
    let mut found = by_value(test, j, &chosen.by(j), recipe, notes)?;
    if let Some(unseen) = in_order(found.keys()).into_iter().find(|name| !names.contains(name)) {
        return Err(Error::input(format!(
            "`data.by`: \"{}\" of column \"{column}\" occurs only in the test data: no group is trained on its rows",
            printable(unseen)
        )));
    }
    let rows = |name: &String| {
        found.remove(name).ok_or_else(|| {
            let name = printable(name);
            Error::input(format!("`data.by`: no test row has \"{name}\" in column \"{column}\""))
        })
    };
    names.iter().map(rows).collect()
}

/// Rows of a cluster share a weight, and groups share none.
fn check_clusters(
    table: &Table,
    found: &HashMap<String, Vec<usize>>,
    names: &[String],
    recipe: &Recipe,
) -> Result<()> {
    let design: DesignColumns<usize> = recipe.design.find(table)?;
    let Some(k) = design.cluster else { return Ok(()) };
    let mut home: HashMap<u64, &String> = HashMap::new();
    for name in names {
        for &i in &found[name] {
            let cell = table.cells[i * table.width() + k];
            if cell.is_nan() {
                continue;
            }
            let first = home.entry(cell.to_bits()).or_insert(name);
            if *first != name {
                let cluster = match &table.kinds[k] {
                    Kind::Levels(levels) => printable(&levels.names()[cell as usize]),
                    Kind::Number => cell.to_string(),
                };
                return Err(Error::input(format!(
                    "`data.cluster`: cluster \"{cluster}\" lies in two groups of `data.by`, \"{}\" and \"{}\": its rows share a weight, and \
                     groups have none in common",
                    printable(first),
                    printable(name)
                )));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::text::{Rules, read};

    fn table(text: &str) -> Table {
        let rules = Rules { groups: vec!["g".into()], missing: vec!["?".into()], ..Rules::default() };
        read(text.as_bytes(), "t", &rules).unwrap()
    }

    fn recipe(missing: Missing) -> Recipe {
        Recipe { by: Some("g".into()), missing, ..Recipe::default() }
    }

    #[test]
    fn rows_are_grouped_by_value_in_order() {
        let found = Grouped::new(&table("x,g\n1,b\n2,a\n3,b\n"), None, &recipe(Missing::Error)).unwrap();
        assert_eq!((found.names, found.train), (vec!["a".into(), "b".into()], vec![vec![1], vec![0, 2]]));
        let numbers = Grouped::new(&table("x,g\n1,10\n2,9\n3,-1\n"), None, &recipe(Missing::Error)).unwrap();
        assert_eq!(numbers.names, ["-1", "9", "10"]);
    }

    #[test]
    fn a_row_of_no_group_follows_the_policy() {
        let holey = table("x,g\n1,b\n2,?\n3,b\n");
        let error = Grouped::new(&holey, None, &recipe(Missing::Error)).unwrap_err().to_string();
        assert!(error.starts_with("row 2 of the data has no value in column \"g\""), "{error}");
        for missing in [Missing::Drop, Missing::Mean] {
            let found = Grouped::new(&holey, None, &recipe(missing)).unwrap();
            assert_eq!((found.train, found.notes.rows_dropped), (vec![vec![0, 2]], 1));
        }
    }

    #[test]
    fn test_rows_have_the_groups_of_the_training_rows() {
        let train = table("x,g\n1,b\n2,a\n3,b\n");
        let of = |text: &str| Grouped::new(&train, Some(&table(text)), &recipe(Missing::Error));
        assert_eq!(of("x,g\n1,a\n2,b\n").unwrap().test, Some(vec![vec![0], vec![1]]));
        let error = of("x,g\n1,a\n2,c\n").unwrap_err().to_string();
        assert!(error.contains("\"c\" of column \"g\" occurs only in the test data"), "{error}");
        let error = of("x,g\n1,a\n").unwrap_err().to_string();
        assert!(error.contains("no test row has \"b\""), "{error}");
    }

    #[test]
    fn a_table_of_some_rows_knows_no_others() {
        let all = table("x,g\n1,b\n2,a\n3,c\n4,a\n");
        let some = all.select(&[1, 2, 3]);
        assert_eq!(some.cells, [2.0, 0.0, 3.0, 1.0, 4.0, 0.0]);
        let Kind::Levels(levels) = &some.kinds[1] else { panic!("a column of text") };
        assert_eq!(levels.names(), ["a", "c"]);
        assert_eq!([some.number(0), some.number(2)], [2, 4], "rows are numbered as in the file");
        assert_eq!(some.select(&[2]).number(0), 4);
    }
}

//! Starts from files: a column per parameter, or a row per component of a mixture.

use std::collections::BTreeMap;
use std::path::Path;

use crate::config::printable;
use crate::data::prepare::{self, Recipe};
use crate::data::table::Table;
use crate::data::text::Rules;
use crate::data::{Format, read};
use crate::error::{Error, Result};

/// The column that numbers the components, in a file with a row for each.
const COMPONENT: &str = "component";
/// What else the blocks of a mixture are called there.
const WORDS: [(&str, &str); 9] = [
    ("pi", "pi"),
    ("weight", "pi"),
    ("mu", "mu"),
    ("mean", "mu"),
    ("sigma2", "sigma2"),
    ("var", "sigma2"),
    ("variance", "sigma2"),
    ("p", "p"),
    ("probability", "p"),
];

/// The parameters `names` from a CSV file: the first row of a file with a column for each, or, if it has a column
/// `component`, a row per component of a mixture.
pub fn read_parameters(path: &Path, names: &[String]) -> Result<Vec<f64>> {
    let rules = Rules { header: Some(true), rows: Some(1), ..Rules::default() };
    let (table, _) = read(path, Format::Text, &rules)?;
    if table.names.iter().any(|name| name == COMPONENT) {
        let (table, _) = read(path, Format::Text, &Rules { rows: None, ..rules })?;
        let shown = printable(&path.display().to_string());
        return by_component(&table, names).map_err(|why| Error::input(format!("{shown}: {why}")));
    }
    let recipe = Recipe { columns: Some(names.to_vec()), ..Recipe::default() };
    let (frame, _, _) = prepare::frames(table, None, &recipe)?;
    Ok(prepare::finish(frame, None, &recipe, None)?.0.x.row(0).to_vec())
}

/// Where a parameter of a mixture stands: block, component, and column of the data, counted from 1; column 0 for π.
type Place<'a> = (&'a str, usize, usize);

fn place(name: &str) -> Option<Place<'_>> {
    let mut parts = name.split('.');
    let block = parts.next().filter(|block| WORDS.iter().any(|(_, b)| b == block))?;
    let component = parts.next()?.parse().ok()?;
    let column = parts.next().map_or(Ok(0), str::parse).ok()?;
    Some((block, component, column))
}

fn by_component(table: &Table, names: &[String]) -> std::result::Result<Vec<f64>, String> {
    let places = names.iter().map(|name| place(name)).collect::<Option<Vec<Place>>>();
    let places = places.ok_or(format!(
        "a row per component (it has a column `{COMPONENT}`) starts a mixture without matrices, and this model is none"
    ))?;
    let components = places.iter().map(|p| p.1).max().unwrap_or(0);
    let rows = rows_of_components(table, components)?;
    let mut columns: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (block, _, _) in &places {
        if !columns.contains_key(block) {
            let most = places.iter().filter(|p| p.0 == *block).map(|p| p.2).max().unwrap_or(0);
            columns.insert(block, columns_of_block(table, block, most)?);
        }
    }
    let value = |(block, component, column): &Place| {
        let j = columns[block][column.saturating_sub(1)];
        table.cells[rows[component - 1] * table.width() + j]
    };
    Ok(places.iter().map(value).collect())
}

/// The row of each component.
fn rows_of_components(table: &Table, components: usize) -> std::result::Result<Vec<usize>, String> {
    if table.rows() != components {
        return Err(format!("{} rows, and the mixture has {components} components", table.rows()));
    }
    let at = table.find(COMPONENT).map_err(|e| e.to_string())?;
    let numbers: Vec<f64> = table.column(at).collect();
    let first = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let expected = format!("`{COMPONENT}` must number the rows from 0 or 1, each number once");
    let mut rows = vec![None; components];
    for (row, number) in numbers.iter().enumerate() {
        let slot = if first == 0.0 { *number } else { *number - 1.0 };
        let fits = slot >= 0.0 && slot < components as f64 && slot.fract() == 0.0;
        match rows.get_mut(slot as usize).filter(|_| fits) {
            Some(free @ None) => *free = Some(row),
            Some(Some(_)) => return Err(format!("component {number} occurs twice; {expected}")),
            None => return Err(format!("component {number} of {components}; {expected}")),
        }
    }
    Ok(rows.into_iter().map(|row| row.expect("as many rows as components, and none twice")).collect())
}

/// The columns of a block, one for each of `most` columns of the data, or a single one for `most` = 0.
fn columns_of_block(table: &Table, block: &str, most: usize) -> std::result::Result<Vec<usize>, String> {
    let mut found: BTreeMap<Option<usize>, usize> = BTreeMap::new();
    for (j, name) in table.names.iter().enumerate() {
        if let Some(number) = number_in_block(name, block)
            && found.insert(number, j).is_some()
        {
            return Err(format!("a second column for \"{}\"", printable(name)));
        }
    }
    let words: Vec<String> =
        WORDS.iter().filter(|(_, b)| *b == block).map(|(word, _)| format!("`{word}`")).collect();
    let words = words.join(" or ");
    if most <= 1 && found.len() == 1 {
        return Ok(found.into_values().collect());
    }
    if most == 0 {
        return Err(format!("needs one column {words}, and has {}", found.len()));
    }
    let first = usize::from(!found.contains_key(&Some(0)));
    let columns: Option<Vec<usize>> = (first..first + most).map(|j| found.get(&Some(j)).copied()).collect();
    columns.filter(|columns| columns.len() == found.len()).ok_or(format!(
        "needs {most} columns {words} with a number, `_{first}` to `_{}`, one for each column of the data; it has {}",
        first + most - 1,
        found.len()
    ))
}

/// The number at the end of a column's name, `mean_7` or `mean.7`, if it belongs to the block; `None` inside if there is
/// none.
fn number_in_block(name: &str, block: &str) -> Option<Option<usize>> {
    let (word, number) = match name.rsplit_once(['_', '.']) {
        Some((word, number)) => (word, Some(number.parse().ok()?)),
        None => (name, None),
    };
    WORDS.contains(&(word, block)).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::table::Header;

    fn names(k: usize, d: usize) -> Vec<String> {
        let matrix =
            |block: &'static str| (1..=k).flat_map(move |c| (1..=d).map(move |j| format!("{block}.{c}.{j}")));
        (1..=k).map(|c| format!("pi.{c}")).chain(matrix("mu")).chain(matrix("sigma2")).collect()
    }

    fn table(header: &str, rows: &[&[f64]]) -> Table {
        let names: Vec<String> = header.split(',').map(str::to_owned).collect();
        let table = Table::new(Header::named(names.clone()), (0..names.len()).collect());
        Table { rows: rows.len(), cells: rows.concat().into(), ..table }
    }

    #[test]
    fn components_and_columns_count_from_0_or_from_1_in_any_order() {
        let expected = [0.3, 0.7, 1.0, 2.0, 3.0, 4.0, 10.0, 20.0, 30.0, 40.0];
        let files = [
            table(
                "component,weight,mean_0,mean_1,var_0,var_1",
                &[&[0.0, 0.3, 1.0, 2.0, 10.0, 20.0], &[1.0, 0.7, 3.0, 4.0, 30.0, 40.0]],
            ),
            table(
                "sigma2.2,mu.2,note,mu.1,sigma2.1,pi,component",
                &[&[40.0, 4.0, 9.0, 3.0, 30.0, 0.7, 2.0], &[20.0, 2.0, 9.0, 1.0, 10.0, 0.3, 1.0]],
            ),
        ];
        for file in files {
            assert_eq!(by_component(&file, &names(2, 2)).unwrap(), expected);
            assert_eq!(by_component(&file, &names(2, 2)[2..6]).unwrap(), expected[2..6], "one block of them");
        }
        let one = table("component,weight,mean,variance", &[&[1.0, 1.0, 5.0, 6.0]]);
        assert_eq!(by_component(&one, &names(1, 1)).unwrap(), [1.0, 5.0, 6.0]);
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let header = "component,weight,mean_1,mean_2,var_1,var_2";
        let (one, two) = ([1.0, 0.5, 0.0, 0.0, 1.0, 1.0], [2.0, 0.5, 3.0, 3.0, 1.0, 1.0]);
        let [three, half, minus] = [3.0, 1.5, -1.0].map(|component| [component, 0.5, 3.0, 3.0, 1.0, 1.0]);
        let cases: [(&str, Vec<&[f64]>, usize, &str); 9] = [
            (header, vec![&one], 2, "1 rows, and the mixture has 2 components"),
            (header, vec![&one, &one], 2, "component 1 occurs twice"),
            (header, vec![&one, &three], 2, "component 3 of 2"),
            (header, vec![&one, &half], 2, "component 1.5 of 2"),
            (header, vec![&one, &minus], 2, "component -1 of 2"),
            (header, vec![&one, &two], 3, "needs 3 columns `mu` or `mean` with a number, `_1` to `_3`"),
            (header, vec![&one, &two], 1, "needs 1 columns `mu` or `mean`"),
            (
                "component,w,mean_1,mean_2,var_1,var_2",
                vec![&one, &two],
                2,
                "needs one column `pi` or `weight`",
            ),
            ("component,weight,mean_1,mu_1,var_1,var_2", vec![&one, &two], 2, "a second column for \"mu_1\""),
        ];
        for (header, rows, d, says) in cases {
            let error = by_component(&table(header, &rows), &names(2, d)).unwrap_err();
            assert!(error.contains(says), "{error:?} does not say {says:?}");
        }
        let other = by_component(&table(header, &[&one, &two]), &["beta.age".into()]).unwrap_err();
        assert!(other.contains("this model is none"), "{other}");
    }
}

//! Columns of text whose texts look like something else: numbers with a few words among them, or dates.

use crate::config::printable;

/// Columns with fewer levels are left alone: a code of three digits and a word is a code.
const LEVELS: usize = 5;
/// Share of levels that are alike from which they are no accident.
const MOST: f64 = 0.8;

/// A line for each categorical column, given with its levels, that was hardly meant to be one.
pub fn doubts(columns: &[(String, Vec<String>)]) -> Vec<String> {
    columns.iter().filter_map(|(name, levels)| doubt(name, levels)).collect()
}

fn doubt(name: &str, levels: &[String]) -> Option<String> {
    let count = |is: fn(&str) -> bool| levels.iter().filter(|level| is(level.trim())).count();
    let most = |count: usize| levels.len() >= LEVELS && count as f64 >= MOST * levels.len() as f64;
    let (dates, numbers, commas) = (count(is_date), count(is_number), count(has_decimal_comma));
    let (all, name) = (levels.len(), printable(name));
    let begin = |what: &str| {
        format!("column \"{name}\" is read as text, a dummy for each of {all} texts, and {what}")
    };
    if most(dates) {
        return Some(begin(&format!(
            "{dates} of them look like dates: npl knows none; make a column of numbers of it, such as days since the first"
        )));
    }
    if commas > 0 && most(numbers + commas) {
        let what = "of them are numbers with a comma: `data.decimal = \",\"` reads decimals that follow one";
        return Some(begin(&format!("{commas} {what}")));
    }
    // A column of nothing but numbers is text because somebody said so.
    if most(numbers) && numbers < all {
        let other = levels.iter().find(|level| !is_number(level.trim()))?;
        return Some(begin(&format!(
            "{numbers} of them are numbers: if \"{}\" marks a missing value, name it in `data.missing_values`",
            printable(other)
        )));
    }
    None
}

fn is_number(text: &str) -> bool {
    text.parse::<f64>().is_ok_and(f64::is_finite)
}

fn has_decimal_comma(text: &str) -> bool {
    text.contains(',') && is_number(&text.replacen(',', ".", 1))
}

/// Year, month and day in some order, with or without a time.
fn is_date(text: &str) -> bool {
    let day = text.split(['T', ' ']).next().unwrap_or_default();
    let parts: Vec<&str> = day.split(['-', '/', '.']).collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    parts.iter().all(|part| part.bytes().all(|b| b.is_ascii_digit()))
        && matches!(lengths[..], [4, 1..=2, 1..=2] | [1..=2, 1..=2, 2 | 4])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(levels: &[&str]) -> Option<String> {
        doubt("a", &levels.iter().map(|level| level.to_string()).collect::<Vec<_>>())
    }

    #[test]
    fn texts_that_were_meant_as_numbers_or_dates_are_told() {
        let has =
            |levels: &[&str], part: &str| assert!(says(levels).unwrap().contains(part), "{:?}", says(levels));
        has(&["1", "2.5", "-3", "4e2", "unknown"], "if \"unknown\" marks a missing value");
        has(&["1,5", "2", "3,25", "4", "5,0"], "3 of them are numbers with a comma");
        has(
            &["2021-01-02", "2021-1-3", "3.4.21", "04/05/2021", "2021-01-06T10:00"],
            "5 of them look like dates",
        );
    }

    #[test]
    fn codes_and_words_are_left_alone() {
        for levels in [
            &["1", "2", "3", "x"][..],
            &["1", "2", "3", "4", "5", "6"],
            &["1a", "2a", "3a", "4", "5"],
            &["10-20", "20-30", "30-40", "40-50", "50-60"],
            &["north", "south", "east", "west", "centre"],
        ] {
            assert_eq!(says(levels), None);
        }
    }
}

//! Answers of a posterior, as a table.

use npl::samples::{Answer, Estimated, Interval, Question};

use super::text::{error, number};

/// A row for each parameter, below their titles. For people numbers have no more digits than their Monte Carlo error allows; programs
/// get all of them, and the errors.
pub fn rows(answers: &[Answer], question: &Question, for_people: bool) -> Vec<Vec<String>> {
    let mut titles: Vec<String> = ["parameter", "mean", "mcse", "sd"].map(String::from).to_vec();
    let ends = match (question.interval, for_people) {
        (_, false) => ["lower", "upper"].map(String::from),
        (kind, true) => ends(kind, question.level),
    };
    let above = question.above.map(|at| format!("P(> {at})"));
    let between = question.between.as_ref().map(|r| format!("P({} to {})", r.start(), r.end()));
    let asked = ends.into_iter().chain(above).chain(between);
    match for_people {
        true => titles.extend(asked),
        false => titles.extend(asked.flat_map(|title| [title.clone(), format!("mcse {title}")])),
    }
    let row = |answer: &Answer| {
        let Answer { mean, sd, lower, upper, .. } = answer;
        let numbers = [Some(*lower), Some(*upper), answer.above, answer.between].into_iter().flatten();
        let mut row = vec![answer.parameter.clone()];
        if for_people {
            row.extend([number(mean.0, mean.1), error(mean.1, 2), number(sd.0, sd.1)]);
            row.extend(numbers.map(|(value, error)| number(value, error)));
        } else {
            row.extend([mean.0, mean.1, sd.0].map(exact));
            row.extend(numbers.flat_map(|(value, error): Estimated| [exact(value), exact(error)]));
        }
        row
    };
    std::iter::once(titles).chain(answers.iter().map(row)).collect()
}

/// What the ends of an interval are called.
fn ends(kind: Interval, level: f64) -> [String; 2] {
    let share = format!("{} %", short(100.0 * level));
    match kind {
        Interval::Percentile => {
            [50.0 * (1.0 - level), 50.0 * (1.0 + level)].map(|q| format!("{} %", short(q)))
        }
        Interval::Hdi => ["from", "to"].map(|end| format!("{share} HDI {end}")),
        Interval::Bc => ["from", "to"].map(|end| format!("{share} BC {end}")),
        Interval::Bca => ["from", "to"].map(|end| format!("{share} BCa {end}")),
        Interval::Simultaneous => ["from", "to"].map(|end| format!("{share} joint {end}")),
    }
}

fn exact(value: f64) -> String {
    if value.is_nan() { String::new() } else { format!("{value:?}") }
}

/// Without the zeros at its end.
fn short(value: f64) -> String {
    format!("{value:.4}").trim_end_matches('0').trim_end_matches('.').to_owned()
}

//! Columns as files have them, ages in years, incomes by the ten thousand, calendar years: the minimum of a loss without a penalty is the
//! same whatever the unit of a column, and a search that ends elsewhere, or nowhere, is no draw.

use std::fmt::Write;

use crate::support::*;

use npl::model::Search;
use npl::optim::{Minimum, Status};
use npl::process::Measure;
use npl::rng::Purpose;
use npl::study::ReadyTrial;

fn noise(i: usize) -> f64 {
    2.0 * ((i as f64 + 1.0) * 12.9898).sin().mul_add(43758.5453, 0.0).rem_euclid(1.0) - 1.0
}

/// 60 rows: columns of three sizes, and responses of every kind.
fn file() -> crate::tempfile::NamedTempFile {
    let mut text = "age,income,year,event,exposure,positive,count,unit,class,large\n".to_owned();
    for i in 0..60 {
        let (a, b, c) = (noise(3 * i), noise(5 * i + 1), noise(7 * i + 3));
        let eta = 0.5 * a - 0.4 * b + 0.3 * c + 0.5 * noise(11 * i + 2);
        let (age, income, year) = (48.0 + 25.0 * a, 40000.0 + 21000.0 * b, (2005.0 + 12.0 * c).round());
        let (event, exposure) = (u8::from(!i.is_multiple_of(5)), 1.0 + (i % 4) as f64);
        let wild = if i.is_multiple_of(9) { 700.0 } else { 0.0 };
        let (positive, count) = ((2.0 + eta).exp(), ((1.5 + 2.0 * eta).exp() * exposure / 2.0).floor());
        let (unit, class) = (1.0 / (1.0 + (-eta).exp()), i32::from(eta > -0.4) + i32::from(eta > 0.3));
        let large = 400.0 + 150.0 * eta + wild;
        writeln!(text, "{age},{income},{year},{event},{exposure},{positive},{count},{unit},{class},{large}")
            .unwrap();
    }
    let file = crate::tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    file
}

fn trial(file: &crate::tempfile::NamedTempFile, data: &str, model: &str, rest: &str) -> ReadyTrial {
    let text = format!(
        "name = \"t\"\nseed = 1\n[sampler]\nB = 40\n{rest}\n[data]\ntrain = {:?}\ncolumns = [\"age\", \"income\", \"year\"]\n{data}\n\
         [model.{model}\n",
        file.path().display().to_string()
    );
    let cancel = std::sync::atomic::AtomicBool::new(false);
    study(&text).trial(0).unwrap().scheme(&pool(1), &cancel).unwrap()
}

/// The searches of 24 draws, and what they minimise.
pub fn minima(trial: &ReadyTrial) -> Vec<Minimum> {
    let measures: Vec<Measure> =
        (0..24).map(|draw| trial.prior.posterior_draw(&trial.train, trial.seed, draw)).collect();
    let start = |draw: u64| match trial.scheme.as_ref() {
        npl::bootstrap::Scheme::RandomRestart { init, .. } => {
            init.draw(&mut trial.seed.stream(Purpose::Init, draw, 0))
        }
        npl::bootstrap::Scheme::FixedInit(start) => start.clone(),
    };
    let searches: Vec<Search> =
        measures.iter().zip(0..).map(|(f, draw)| Search::new(f, start(draw))).collect();
    trial.model.minimise_block(&searches)
}

const CASES: [(&str, &str); 9] = [
    ("target = \"positive\"\nevent = \"event\"", "exponential]\npenalty = \"none\""),
    ("target = \"positive\"\nevent = \"event\"", "weibull]\npenalty = \"none\""),
    ("target = \"positive\"", "gamma]\npenalty = \"none\""),
    ("target = \"unit\"", "beta]\npenalty = \"none\""),
    ("target = \"class\"", "ordered]\npenalty = \"none\""),
    ("target = \"count\"\nexposure = \"exposure\"", "poisson]\npenalty = \"none\""),
    ("target = \"count\"", "negative_binomial]\npenalty = \"none\""),
    ("target = \"large\"", "robust]\nloss = { huber = 1.345 }\npenalty = \"none\""),
    ("target = \"large\"", "robust]\nloss = { student_t = 4.0 }\npenalty = \"none\""),
];

#[test]
fn a_minimum_is_the_same_in_any_unit_of_the_columns() {
    let file = file();
    for (data, model) in CASES {
        let raw = minima(&trial(&file, data, model, ""));
        let standardised = minima(&trial(&file, &format!("{data}\nstandardise = \"all\""), model, ""));
        for (draw, (raw, other)) in raw.iter().zip(&standardised).enumerate() {
            let place = format!("{model}, draw {draw}: {raw:?}\n{other:?}");
            assert!(other.status == Status::Ok && raw.status == Status::Ok, "{place}");
            assert!(raw.iterations < 200, "{place}");
            assert!((raw.value - other.value).abs() < 1e-7 * other.value.abs().max(1.0), "{place}");
        }
    }
}

/// Least squares lies where most rows are within reach; a normal start does not.
#[test]
fn a_loss_that_does_not_grow_for_ever_begins_where_rows_are_within_reach() {
    let file = file();
    for bend in ["tukey = 4.685", "welsch = 2.985"] {
        let model = format!("robust]\nloss = {{ {bend} }}\nsigma = 60.0\npenalty = \"none\"");
        let trial = trial(&file, "target = \"large\"", &model, "");
        let huber = minima(&self::trial(&file, "target = \"large\"", CASES[7].1, ""));
        for (found, huber) in minima(&trial).iter().zip(&huber) {
            assert_eq!(found.status, Status::Ok, "{found:?}");
            // β of the age: 3 a year, for 150 × 0.5/25, and as much as the outliers leave uncertain.
            assert!((found.theta[0] - 3.0).abs() < 1.5, "{found:?}\n{huber:?}");
        }
        // All rows are beyond the reach of so small a scale.
        let model = format!("robust]\nloss = {{ {bend} }}\nsigma = 1e-9\npenalty = \"none\"");
        let trial = self::trial(&file, "target = \"large\"", &model, "");
        assert!(minima(&trial).iter().all(|m| m.status.is_lost()));
    }
}

/// Of every model that searches: from a start that is far off, it ends at finite numbers or has failed.
#[test]
fn no_search_ends_well_at_numbers_that_are_none() {
    for (name, starter) in starters() {
        let cancel = std::sync::atomic::AtomicBool::new(false);
        let trial = study(&starter).trial(0).unwrap().scheme(&pool(1), &cancel).unwrap();
        if trial.model.blocks().is_empty() {
            continue;
        }
        let npl::bootstrap::Scheme::RandomRestart { init, .. } = trial.scheme.as_ref() else { continue };
        let start = init.draw(&mut trial.seed.stream(Purpose::Init, 0, 0));
        let f = trial.prior.posterior_draw(&trial.train, trial.seed, 0);
        for block in trial.model.blocks().iter().filter(|b| b.name == "beta" || b.support.is_positive()) {
            for factor in [1e3, 1e150, 1e300] {
                let mut far = start.clone();
                far[block.range.clone()].iter_mut().for_each(|t| *t *= factor);
                let found = trial.model.minimise(&f, &far).sound();
                let finite = found.value.is_finite() && found.theta.iter().all(|t| t.is_finite());
                assert!(finite || found.status.is_lost(), "{name}, {} times {factor}: {found:?}", block.name);
            }
        }
    }
}

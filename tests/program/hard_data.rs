//! Numbers that are hard, for every model of the registry: a result, or a message that names file or key; never a panic, and never
//! a NaN for an answer. `scripts/campaign.py` tries more of them.

use npl::model::STARTERS;

use crate::support::{Ended, Place, cells};

const SCALES: [f64; 7] = [1.0, 1e-300, 1e-150, 1e20, 1e100, 1e160, 1e300];

/// Covariates at scale 1, by columns.
fn shapes() -> Vec<(&'static str, Vec<Vec<f64>>)> {
    let wave = |n: usize, f: f64| (0..n).map(|i| (1.0 + f * i as f64).sin()).collect::<Vec<f64>>();
    let (a, b) = (wave(20, 1.3), wave(20, 2.9));
    let opposite = a.iter().map(|v| -v).collect();
    vec![
        ("two columns", vec![a.clone(), b.clone()]),
        ("a constant column", vec![a.clone(), vec![1.0; 20]]),
        ("all rows equal", vec![vec![2.0; 20], vec![1.0; 20]]),
        ("duplicate columns", vec![a.clone(), a.clone()]),
        ("opposite columns", vec![a.clone(), opposite]),
        ("zeros", vec![vec![0.0; 20]; 2]),
        ("one row", vec![vec![0.7], vec![0.2]]),
        ("more columns than rows", (0..7).map(|j| wave(3, 0.7 + j as f64)).collect()),
        ("an outlier", vec![[&a[..19], &[1e9]].concat(), b]),
    ]
}

/// Responses that some model admits: coins, and what a column separates.
fn responses(x: &[f64]) -> [(&'static str, Vec<u8>); 3] {
    let n = x.len() as u8;
    [
        ("coins", (0..n).map(|i| (i.wrapping_mul(i) / 3) % 2).collect()),
        ("separable", x.iter().map(|v| u8::from(*v > 0.0)).collect()),
        ("ones", vec![1; n.into()]),
    ]
}

/// The starter of a model, on `d.csv`; and which columns of it are no covariates.
fn experiment(starter: &str) -> (String, Vec<&'static str>) {
    let keys: Vec<&str> =
        ["target", "event"].into_iter().filter(|key| starter.contains(&format!("\n# {key} = "))).collect();
    let data: String = keys.iter().map(|key| format!("{key} = \"{key}\"\n")).collect();
    let tables = &starter[starter.find("\n[model").unwrap()..];
    let few = |line: &str| if line.starts_with("B = ") { "B = 8".to_owned() } else { line.to_owned() };
    let tables: Vec<String> = tables.lines().map(few).collect();
    (format!("name = \"f\"\nseed = 1\n\n[data]\ntrain = \"d.csv\"\n{data}{}\n", tables.join("\n")), keys)
}

fn table(columns: &[Vec<f64>], scale: f64, keys: &[&str], y: &[u8]) -> String {
    let names = (0..columns.len()).map(|j| format!("x{j}")).chain(keys.iter().map(|key| key.to_string()));
    let mut text = names.collect::<Vec<_>>().join(",") + "\n";
    for (i, y) in y.iter().enumerate() {
        let numbers = columns.iter().map(|column| format!("{:?}", column[i] * scale));
        let others = keys.iter().map(|key| if *key == "event" { "1".to_owned() } else { y.to_string() });
        text += &(numbers.chain(others).collect::<Vec<_>>().join(",") + "\n");
    }
    text
}

fn judge(place: &Place, case: &str, ended: &Ended) {
    ended.assert_decent(case);
    let said = &ended.stderr;
    match ended.code {
        Some(0) => {}
        Some(2) => assert!(said.contains("d.csv") || said.contains("e.toml:"), "{case}: {said}"),
        Some(3) => {
            assert!(said.contains("draws") && said.contains("sampler.max_"), "{case}: {said}");
            let reasons = [
                "not a finite number",
                "separates",
                "depend on each other",
                "fewer different rows",
                "max_iterations",
                "no step could be made",
            ];
            assert!(reasons.iter().any(|why| said.contains(why)), "{case}: no reason in {said}");
        }
        code => panic!("{case}: {code:?} {said}"),
    }
    let digits = |c: char| c.is_ascii_digit();
    assert!(!said.split(|c| !digits(c)).any(|number| number.len() > 40), "{case}: {said}");
    assert_eq!(place.exists("out/samples.csv"), matches!(ended.code, Some(0 | 3)), "{case}");
    if ended.code != Some(0) {
        return;
    }
    for file in ["out/summary.csv", "out/samples.csv"] {
        let text = place.read(file);
        let bad = |cell: &&str| matches!(*cell, "NaN" | "inf" | "-inf");
        assert!(!cells(&text)[1..].iter().flatten().any(bad), "{case}: {file}\n{text}");
    }
}

#[test]
fn every_model_answers_or_says_why_not() {
    let place = Place::new();
    let mut tried = 0;
    for (model, starter) in STARTERS {
        let (text, keys) = experiment(starter);
        place.write("e.toml", text);
        for (shape, columns) in shapes() {
            for (kind, y) in &responses(&columns[0])[..if keys.is_empty() { 1 } else { 3 }] {
                // All scales with one response, one scale with the others.
                for scale in &SCALES[..if *kind == "coins" { SCALES.len() } else { 1 }] {
                    if columns.iter().flatten().any(|v| (v * scale).is_infinite()) {
                        continue;
                    }
                    place.write("d.csv", table(&columns, *scale, &keys, y));
                    let _ = std::fs::remove_dir_all(place.path("out"));
                    let ended = place.npl(&["run", "e.toml", "--out", "out", "--threads", "1"]);
                    judge(&place, &format!("{model}, {shape}, {kind} x {scale:e}"), &ended);
                    tried += 1;
                }
            }
        }
    }
    println!("{tried} hard data sets");
    assert!(tried >= 60 * STARTERS.len(), "{tried}");
}

/// Columns of any scale are standardised, and none is called constant that is not.
#[test]
fn columns_of_any_scale_are_standardised() {
    let place = Place::new();
    let starter = STARTERS.iter().find(|(name, _)| *name == "logistic").unwrap().1;
    let (text, keys) = experiment(starter);
    place.write("e.toml", text);
    let (_, columns) = &shapes()[0];
    let y = &responses(&columns[0])[0].1;
    let theta = |scale: f64| {
        place.write("d.csv", table(columns, scale, &keys, y));
        place.ok(&["run", "e.toml", "--out", "out", "--force", "--set", "data.standardise=\"all\""]);
        cells(&place.read("out/samples.csv"))[1][9..].iter().map(|c| c.parse().unwrap()).collect::<Vec<f64>>()
    };
    let expected = theta(1.0);
    for scale in [1e-300, 1e-160, 1e160, 1e300] {
        let near = theta(scale).iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-6);
        assert!(near, "{scale:e}");
    }
}

/// Where the shape of a gamma vanishes its loss is flat and its gradient no number: no draw ends there.
#[test]
fn no_draw_of_a_gamma_regression_ends_where_its_gradient_is_no_number() {
    let place = Place::new();
    place.write(
        "g.csv",
        "y,x\n6.1,7\n7.3,5\n3.5,8\n2.1,4\n1.7,2\n8.5,9\n2.9,6\n2.6,7\n3.8,4\n0.4,1\n1.4,1\n1.9,6\n",
    );
    place.write(
        "g.toml",
        "name = \"g\"\nseed = 1\n[data]\ntrain = \"g.csv\"\ntarget = \"y\"\n[model.gamma]\npenalty = \"none\"\n[sampler]\nB = 2000\n",
    );
    place.ok(&["run", "g.toml", "--out", "g"]);
    let samples = place.read("g/samples.csv");
    let rows = cells(&samples);
    let place_of = |name: &str| rows[0].iter().position(|cell| *cell == name).unwrap();
    let (status, slope) = (place_of("status__"), place_of("beta.x"));
    let numbers = |row: &Vec<&str>| row.iter().map(|cell| cell.parse::<f64>().unwrap()).collect::<Vec<_>>();
    let ok: Vec<Vec<f64>> = rows[1..].iter().map(numbers).filter(|row| row[status] == 0.0).collect();
    assert!(ok.len() >= 1990, "{}", ok.len());
    assert!(ok.iter().flatten().all(|v| v.is_finite()));
    let far = ok.iter().filter(|row| (row[slope] - 0.22).abs() > 0.6).count();
    assert_eq!(far, 0);
}

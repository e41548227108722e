//! `npl summary` that answers questions: intervals, probabilities, chosen parameters, formats.

use crate::support::{Place, cells};

const LOGISTIC: &str = "name = \"q\"\nseed = 2\n[data]\ntrain = \"q.csv\"\ntarget = \"y\"\n[sampler]\nB = 400\n[model.logistic]\npenalty = \"ridge\"\n";

fn place() -> Place {
    let place = Place::new();
    let row = |i: usize| {
        let (x, z) = (((i * 7919) % 101) as f64 / 25.0 - 2.0, ((i * 104_729) % 97) as f64 / 97.0);
        format!("{x},{z},{}\n", u8::from(((i * 31) % 53) as f64 / 53.0 < 1.0 / (1.0 + (-1.5 * x).exp())))
    };
    place
        .write("q.csv", format!("x,z,y\n{}", (0..120).map(row).collect::<String>()))
        .write("q.toml", LOGISTIC);
    place.ok(&["run", "q.toml", "--quiet"]);
    place
}

fn number(cell: &str) -> f64 {
    cell.parse().unwrap_or_else(|_| panic!("{cell:?} is no number"))
}

/// Against the draws themselves.
#[test]
fn questions_are_answered_by_counting_draws() {
    let place = place();
    let draws = place.read("runs/q/samples.csv");
    let table = cells(&draws);
    let j = table[0].iter().position(|c| *c == "beta.z").unwrap();
    let mut values: Vec<f64> = table[1..].iter().map(|row| number(row[j])).collect();
    values.sort_by(f64::total_cmp);
    let asked =
        ["summary", "runs/q", "--only", "beta.z", "--above", "0.1", "--between=-0.5,0.5", "--level", "0.8"];
    let said = place.ok(&[&asked[..], &["--format", "csv"]].concat()).stdout;
    let said = cells(&said);
    assert_eq!(
        said[0][4..],
        [
            "lower",
            "mcse lower",
            "upper",
            "mcse upper",
            "P(> 0.1)",
            "mcse P(> 0.1)",
            "P(-0.5 to 0.5)",
            "mcse P(-0.5 to 0.5)"
        ]
    );
    assert_eq!((said.len(), said[1][0]), (2, "beta.z"));
    // A tenth of 399 steps.
    let tenth = values[39] + 0.9 * (values[40] - values[39]);
    assert!((number(said[1][4]) - tenth).abs() < 1e-12);
    let share = values.iter().filter(|v| **v > 0.1).count() as f64 / 400.0;
    assert!((number(said[1][8]) - share).abs() < 1e-12);
    let error = (share * (1.0 - share) / 400.0).sqrt();
    assert!((number(said[1][9]) - error).abs() < 1e-12);
    let shortest = place.ok(&[
        "summary",
        "runs/q",
        "--only",
        "beta.z",
        "--level",
        "0.8",
        "--interval",
        "hdi",
        "--format",
        "csv",
    ]);
    let shortest =
        cells(&shortest.stdout).into_iter().map(|r| r.into_iter().map(String::from).collect::<Vec<_>>());
    let shortest = shortest.collect::<Vec<_>>();
    let width = number(&shortest[1][6]) - number(&shortest[1][4]);
    let best = (0..=80).map(|i| values[i + 319] - values[i]).fold(f64::INFINITY, f64::min);
    assert!((width - best).abs() < 1e-12, "{width}, not {best}");
}

#[test]
fn parameters_are_chosen_sorted_and_written_in_every_format() {
    let place = place();
    let order = |args: &[&str]| -> Vec<String> {
        let said = place.ok(&[&["summary", "runs/q", "--format", "csv"], args].concat()).stdout;
        cells(&said)[1..].iter().map(|row| row[0].to_owned()).collect()
    };
    assert_eq!(order(&[]), ["beta.x", "beta.z", "intercept"]);
    assert_eq!(order(&["--only", "beta.*"]), ["beta.x", "beta.z"]);
    assert_eq!(order(&["--sort", "distance"])[0], "beta.x");
    let json = place.ok(&["summary", "runs/q", "--format", "json", "--interval", "simultaneous"]).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json.as_array().unwrap().len(), 3);
    assert!(json[0]["lower"].as_f64().unwrap() < json[0]["mean"].as_f64().unwrap());
    let text = place.ok(&["summary", "runs/q", "--above", "0", "--interval", "hdi"]).stdout;
    let table: Vec<&str> = text.lines().take(4).collect();
    assert!(table[0].contains("95 % HDI from") && table[0].contains("P(> 0)"), "{text}");
    assert!(table.iter().all(|line| line.chars().count() <= 80), "{text}");
    for (args, says) in [
        (&["--only", "beta.y"][..], "did you mean"),
        (&["--level", "1.5"], "no probability"),
        (&["--between", "2,1"], "two numbers in order"),
        (&["--interval", "bca"], "possible values"),
    ] {
        let said = place.npl(&[&["summary", "runs/q"], args].concat());
        assert_eq!(said.code, Some(2), "{args:?}");
        assert!(said.stderr.contains(says), "{args:?}: {}", said.stderr);
    }
}

/// All parameters lie in simultaneous intervals at once in so much of the draws.
#[test]
fn simultaneous_intervals_hold_all_parameters_at_once() {
    let place = place();
    let said = place
        .ok(&["summary", "runs/q", "--interval", "simultaneous", "--level", "0.9", "--format", "csv"])
        .stdout;
    let said = cells(&said);
    let intervals: Vec<(f64, f64)> = said[1..].iter().map(|row| (number(row[4]), number(row[6]))).collect();
    let draws = place.read("runs/q/samples.csv");
    let table = cells(&draws);
    let first = table[0].iter().position(|c| *c == "beta.x").unwrap();
    let lies = |row: &&Vec<&str>| {
        row[first..].iter().zip(&intervals).all(|(cell, (low, high))| (*low..=*high).contains(&number(cell)))
    };
    let inside = table[1..].iter().filter(lies).count();
    assert!((360..=364).contains(&inside), "{inside} of 400");
}

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
        (&["--interval", "bcd"], "possible values"),
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

/// The estimate at equal weights is the minimum of the loss, where its derivatives are 0; the bias is the distance of the mean from it.
#[test]
fn the_estimate_stands_beside_the_mean() {
    let place = place();
    let said = place.ok(&["summary", "runs/q", "--format", "csv"]).stdout;
    let table = cells(&said);
    let j = |name: &str| table[0].iter().position(|c| *c == name).unwrap();
    let theta: Vec<f64> = table[1..].iter().map(|row| number(row[j("estimate")])).collect();
    let data = place.read("q.csv");
    let rows: Vec<Vec<f64>> =
        cells(&data)[1..].iter().map(|r| r.iter().map(|c| number(c)).collect()).collect();
    let mut slopes = [theta[0] / 120.0, theta[1] / 120.0, 0.0];
    for row in &rows {
        let p = 1.0 / (1.0 + (-(theta[0] * row[0] + theta[1] * row[1] + theta[2])).exp());
        for (slope, x) in slopes.iter_mut().zip([row[0], row[1], 1.0]) {
            *slope += (p - row[2]) * x / 120.0;
        }
    }
    assert!(slopes.iter().all(|s| s.abs() < 1e-4), "gamma = 1/n: {slopes:?}");
    for row in &table[1..] {
        let bias = number(row[j("mean")]) - number(row[j("estimate")]);
        assert!((number(row[j("bias")]) - bias).abs() < 1e-12);
    }
    let text = place.ok(&["summary", "runs/q"]).stdout;
    assert!(text.contains("estimate"), "{text}");
    assert!(
        text.lines().take_while(|line| !line.is_empty()).all(|line| line.chars().count() <= 80),
        "{text}"
    );
    let told = place.ok(&["run", "q.toml", "--json", "--quiet", "--out", "runs/json"]).stdout;
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["posterior"][0]["parameter"], "beta.x");
    assert_eq!(told["posterior"][0]["mean"].as_f64().unwrap(), number(table[1][j("mean")]));
    assert_eq!(told["posterior"][0]["estimate"].as_f64().unwrap(), theta[0]);
}

/// By scipy's and fwb's formulas, on the same draws.
#[test]
fn corrected_and_simultaneous_intervals_are_those_of_other_tools() {
    let Some(python) = crate::support::python("numpy, scipy.optimize, scipy.stats") else { return };
    let output = std::process::Command::new(&python)
        .arg(crate::support::script("check_intervals.py"))
        .args(["--npl", env!("CARGO_BIN_EXE_npl")])
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{out}{}", String::from_utf8_lossy(&output.stderr));
    assert!(out.contains("bca:") && out.contains("simultaneous:"), "{out}");
}

/// A mean moves with a row by how far the row is from it; the rows are those of the first repeat.
#[test]
fn influence_on_a_mean_is_the_distance_from_it() {
    let place = Place::new();
    let text = "name = \"i\"\nseed = 1\nrepeats = 2\nmodel.normal = { sigma2 = 4.0 }\nsampler.B = 10\noutput.influence = true\n\
                data.train = \"i.csv\"\n";
    place.write("i.csv", "a,b\n1,2\n3,5\n4,4\n9,-1\n").write("i.toml", text);
    place.ok(&["run", "i.toml", "--quiet"]);
    let text = place.read("runs/i/influence.csv");
    let table = cells(&text);
    assert_eq!(table[0], ["theta.a", "theta.b"]);
    let expected = [[-3.25, -0.5], [-1.25, 2.5], [-0.25, 1.5], [4.75, -3.5]];
    assert_eq!(table.len(), 1 + expected.len());
    for (row, expected) in table[1..].iter().zip(expected) {
        let near = row.iter().zip(expected).all(|(cell, value)| (number(cell) - value).abs() < 1e-8);
        assert!(near && row.len() == 2, "{row:?}: {expected:?}");
    }
}

#[test]
fn corrected_intervals_are_refused_where_they_mean_nothing() {
    let place = place();
    place.ok(&["summary", "runs/q", "--interval", "bc"]);
    let prior = r#"prior={ alpha = 20, T = 50, base = { response = { bernoulli = 0.5, covariates = "empirical" } } }"#;
    place.ok(&["run", "q.toml", "--quiet", "--out", "dp", "--set", prior]);
    place.ok(&["run", "q.toml", "--quiet", "--out", "nuts", "--set", "method=nuts"]);
    place.ok(&["run", "q.toml", "--quiet", "--out", "two", "--set", "repeats=2"]);
    let mixture = "name = \"g\"\nseed = 7\ndata.simulate.mixture = { n = 60, pi = [0.3, 0.7], mu = [[0.0], [3.0]], sigma2 = [[1.0], [1.0]] }\n\
                   model.gmm = { K = 2, variance_floor = 1e-2 }\nsampler.B = 20\n";
    place.write("g.toml", mixture);
    place.ok(&["run", "g.toml", "--quiet"]);
    for (run, kind, says) in [
        ("runs/q", "bca", "output.influence = true"),
        ("dp", "bc", "alpha > 0"),
        ("nuts", "bc", "these are others"),
        ("two", "bc", "--repeat"),
        ("runs/g", "bc", "several modes"),
    ] {
        let said = place.npl(&["summary", run, "--interval", kind]);
        assert!(said.code == Some(2) && said.stderr.contains(says), "{run}: {}", said.stderr);
    }
    for (set, says) in [(prior, "prior.alpha"), ("method=nuts", "is of the bootstrap")] {
        let said =
            place.npl(&["run", "q.toml", "--out", "x", "--set", "output.influence=true", "--set", set]);
        assert!(said.code == Some(2) && said.stderr.contains(says), "{set}: {}", said.stderr);
    }
}

/// A row of case weight c is c rows; β in other units has the interval of β in those units; a quantity of the draws has one, too.
#[test]
fn corrected_intervals_know_case_weights_and_units() {
    let place = place();
    let data = place.read("q.csv");
    let rows: Vec<&str> = data.lines().collect();
    let count = |i: usize| 1 + i % 3;
    let weighted = |i: usize| format!("{},{}\n", rows[i + 1], count(i));
    let copies = |i: usize| format!("{}\n", rows[i + 1]).repeat(count(i));
    place
        .write("few.csv", format!("{},c\n{}", rows[0], (0..120).map(weighted).collect::<String>()))
        .write("many.csv", format!("{}\n{}", rows[0], (0..120).map(copies).collect::<String>()))
        .write("w.toml", LOGISTIC.replace("[sampler]", "standardise = \"numeric\"\n[derived]\nodds = \"exp(beta.x)\"\n[output]\ninfluence = true\n[sampler]"));
    place.ok(&[
        "run",
        "w.toml",
        "--quiet",
        "--out",
        "few",
        "--set",
        "data.train=few.csv",
        "--set",
        "data.weight=c",
    ]);
    place.ok(&["run", "w.toml", "--quiet", "--out", "many", "--set", "data.train=many.csv"]);
    let numbers = |name: &str| -> Vec<Vec<f64>> {
        let text = place.read(name);
        cells(&text)[1..].iter().map(|row| row.iter().map(|cell| number(cell)).collect()).collect()
    };
    let (few, many) = (numbers("few/influence.csv"), numbers("many/influence.csv"));
    assert!(place.read("few/influence.csv").starts_with("case_weight__,beta.x,beta.z,intercept,odds\n"));
    let spread = few.iter().flat_map(|row| vec![&row[1..]; row[0] as usize]);
    assert_eq!(spread.clone().count(), many.len());
    for (row, copy) in spread.zip(&many) {
        assert!(
            row.iter().zip(copy).all(|(a, b)| (a - b).abs() < 1e-3 * b.abs().max(0.1)),
            "{row:?} {copy:?}"
        );
    }
    let preparation: serde_json::Value = serde_json::from_str(&place.read("few/preparation.json")).unwrap();
    let sd = preparation["rounds"][0][0]["sd"].as_f64().unwrap();
    let ends = |args: &[&str], name: &str| -> [f64; 2] {
        let said =
            place.ok(&[&["summary", "few", "--interval", "bca", "--format", "csv"], args].concat()).stdout;
        let table = cells(&said);
        let row = table.iter().find(|row| row[0] == name).unwrap_or_else(|| panic!("{said}"));
        [number(row[4]), number(row[6])]
    };
    let (model, data, ratios) = (
        ends(&[], "beta.x"),
        ends(&["--units", "data"], "beta.x"),
        ends(&["--units", "data", "--ratios"], "exp(beta.x)"),
    );
    let odds = ends(&[], "odds");
    for k in 0..2 {
        assert!((model[k] / sd - data[k]).abs() < 1e-9, "{model:?} {data:?}");
        // Quantiles lie between draws, where a line is no exponential.
        assert!((data[k].exp() / ratios[k] - 1.0).abs() < 1e-2, "{data:?} {ratios:?}");
        assert!((model[k].exp() / odds[k] - 1.0).abs() < 1e-2, "{model:?} {odds:?}");
    }
}

/// A quantity that some draws do not have is told of, and so are draws that are left out of its numbers.
#[test]
fn quantities_that_are_no_numbers_are_counted() {
    let place = place();
    let derived = "[derived]\nroot = \"sqrt(beta.z)\"\nnever = \"log(-exp(beta.x))\"\n[sampler]";
    place.write("d.toml", LOGISTIC.replace("[sampler]", derived));
    let said = place.ok(&["run", "d.toml", "--out", "runs/d"]);
    let draws = place.read("runs/d/samples.csv");
    let table = cells(&draws);
    let j = table[0].iter().position(|c| *c == "beta.z").unwrap();
    let below = table[1..].iter().filter(|row| number(row[j]) < 0.0).count();
    assert!(below > 0 && below < 400);
    for text in [said.stdout + &said.stderr, place.ok(&["summary", "runs/d"]).stdout] {
        assert!(text.contains(&format!("`root` is no number in {below} of 400 draws")), "{text}");
        assert!(text.contains("`never` is no number in 400 of 400 draws"), "{text}");
    }
    let summary = place.ok(&["summary", "runs/d", "--only", "never", "--format", "csv"]).stdout;
    assert!(cells(&summary)[1][1..].iter().all(|cell| cell.is_empty()), "{summary}");
}

/// Coefficients of several linear predictors, and cut points, in the units of the file: by hand, from the means of the draws as they are.
#[test]
fn several_predictors_and_cut_points_have_units_too() {
    let place = place();
    let data = place.read("q.csv");
    let class = |i: usize| ["low", "mid", "top"][(i * 31) % 53 * 3 / 53];
    let line = |(i, line): (usize, &str)| match i {
        0 => "x,z,k\n".to_owned(),
        i => format!("{},{}\n", line.rsplit_once(',').unwrap().0, class(i)),
    };
    place.write("k.csv", data.lines().enumerate().map(line).collect::<String>());
    let models = [
        ("multinomial", "k", "penalty = \"ridge\"", vec!["mid", "top"]),
        ("ordered", "k", "penalty = \"ridge\"", vec![]),
        ("quantile_regression", "z", "penalty = \"none\"\nq = [0.2, 0.5]", vec!["q20", "q50"]),
    ];
    for (model, target, keys, tags) in models {
        let columns = if target == "k" { vec!["x", "z"] } else { vec!["x"] };
        let order = if model == "ordered" { "classes = { low = 0, mid = 1, top = 2 }\n" } else { "" };
        let text = format!(
            "name = \"{model}\"\nseed = 2\n[data]\ntrain = \"k.csv\"\ntarget = \"{target}\"\ncolumns = {columns:?}\n\
             standardise = \"numeric\"\n{order}[sampler]\nB = 40\n[model.{model}]\n{keys}\n"
        );
        place.write("m.toml", text);
        place.ok(&["run", "m.toml", "--quiet"]);
        let run = format!("runs/{model}");
        let told = |args: &[&str]| -> Vec<(String, f64)> {
            let said = place.ok(&[&["summary", &run, "--format", "csv"], args].concat()).stdout;
            cells(&said)[1..].iter().map(|row| (row[0].to_owned(), number(row[1]))).collect()
        };
        let (plain, units) = (told(&[]), told(&["--units", "data"]));
        let of = |table: &[(String, f64)], name: &str| {
            table.iter().find(|(known, _)| known == name).unwrap_or_else(|| panic!("no {name}: {table:?}")).1
        };
        let preparation: serde_json::Value =
            serde_json::from_str(&place.read(&format!("{run}/preparation.json"))).unwrap();
        let column = |name: &str| {
            let all = preparation["rounds"][0].as_array().unwrap();
            let column = all.iter().find(|column| column["name"] == name).unwrap();
            [column["mean"].as_f64().unwrap(), column["sd"].as_f64().unwrap()]
        };
        let heads: Vec<String> = match tags.is_empty() {
            true => vec![String::new()],
            false => tags.iter().map(|tag| format!(".{tag}")).collect(),
        };
        for head in &heads {
            let mut moved = 0.0;
            for name in &columns {
                let [mean, sd] = column(name);
                let beta = of(&plain, &format!("beta{head}.{name}"));
                let found = of(&units, &format!("beta{head}.{name}"));
                assert!((found - beta / sd).abs() < 1e-9, "{model}: {found}");
                moved += beta * mean / sd;
            }
            // P(y <= k) has cut - eta: what goes to the intercept comes to the cut points.
            let beside = match model {
                "ordered" => vec![("cut.1".to_owned(), moved), ("cut.2".to_owned(), moved)],
                _ => vec![(format!("intercept{head}"), -moved)],
            };
            for (name, by) in beside {
                let (found, before) = (of(&units, &name), of(&plain, &name));
                assert!((found - before - by).abs() < 1e-9, "{model}, {name}: {found}, {before}, {by}");
            }
        }
    }
    let custom = "[model.custom]\nparameters = { beta = { real = \"x\" } }\nloss = \"sq(y - sq(beta.x*x + beta.z*z))\"\n";
    let text = LOGISTIC.replace("[model.logistic]\npenalty = \"ridge\"\n", custom);
    place.write("c.toml", text.replace("[sampler]", "standardise = \"numeric\"\n[sampler]"));
    place.ok(&["run", "c.toml", "--quiet", "--out", "c", "--set", "sampler.max_unconverged=1.0"]);
    let said = place.npl(&["summary", "c", "--units", "data"]);
    assert!(said.code == Some(2) && said.stderr.contains("known to its loss alone"), "{}", said.stderr);
}

/// What quantile regression predicts of a row are its quantiles there.
#[test]
fn quantiles_are_predicted() {
    let place = place();
    let text = LOGISTIC.replace("target = \"y\"", "target = \"z\"\ncolumns = [\"x\"]").replace(
        "[model.logistic]\npenalty = \"ridge\"\n",
        "[model.quantile_regression]\npenalty = \"none\"\nq = [0.1, 0.9]\n",
    );
    place.write("z.toml", text);
    place.ok(&["run", "z.toml", "--quiet", "--out", "z"]);
    place.write("new.csv", "x\n-1.5\n0.25\n");
    let said = place.ok(&["predict", "z", "new.csv"]).stdout;
    let draws = place.read("z/samples.csv");
    let (told, draws) = (cells(&said), cells(&draws));
    assert_eq!(told[0][..5], ["row", "q10", "q10_sd", "q10_lower", "q10_upper"]);
    let column = |name: &str| -> Vec<f64> {
        let j = draws[0].iter().position(|c| *c == name).unwrap_or_else(|| panic!("{name}: {:?}", draws[0]));
        draws[1..].iter().map(|row| number(row[j])).collect()
    };
    for (row, x) in told[1..].iter().zip([-1.5, 0.25]) {
        for (j, tag) in [(1, "q10"), (5, "q90")] {
            let (beta, intercept) = (column(&format!("beta.{tag}.x")), column(&format!("intercept.{tag}")));
            let mean = beta.iter().zip(&intercept).map(|(b, a)| a + b * x).sum::<f64>() / beta.len() as f64;
            assert!((number(row[j]) - mean).abs() < 1e-12, "{said}");
        }
    }
}

/// Whatever the names are: within 80 columns, every mean with its Monte Carlo error, and warnings in lines of that width.
#[test]
fn a_summary_fits_and_keeps_its_errors() {
    let place = Place::new();
    let long = "a_name_that_takes_much_room_in_a_table_of_a_summary";
    let rows: String = (0..12).map(|i| format!("{},{},{}\n", (i * 7) % 5, (i * 5) % 7, i % 2)).collect();
    for (name, covariate) in [("short", "w"), ("medium", "body_mass_index"), ("long", long)] {
        place.write("d.csv", format!("{covariate},z,y\n{rows}"));
        place.write(
            "x.toml",
            format!(
                "name = \"{name}\"\nseed = 1\n[data]\ntrain = \"d.csv\"\ntarget = \"y\"\n[derived]\nconstant = \"2\"\nlg = \"log(beta.z)\"\n\
                 [model.logistic]\npenalty = \"ridge\"\n[sampler]\nB = 40\n"
            ),
        );
        place.ok(&["run", "x.toml", "--quiet"]);
        let run = format!("runs/{name}");
        for more in
            [&[][..], &["--above", "0", "--between", "-1,1"], &["--interval", "hdi", "--level", "0.9"]]
        {
            let said = place.ok(&[&["summary", run.as_str()][..], more].concat()).stdout;
            assert!(said.lines().all(|line| line.chars().count() <= 80), "{said}");
            let titles: Vec<&str> = said.lines().filter(|line| line.starts_with("parameter")).collect();
            assert!(titles.iter().any(|line| line.contains("mean") && line.contains("mcse")), "{said}");
            let quantities = [format!("beta.{covariate}"), "beta.z".into(), "constant".into()];
            for quantity in quantities {
                let told = said.lines().filter(|line| line.starts_with(&format!("{quantity} "))).count();
                assert_eq!(told, titles.len(), "{quantity} in every block: {said}");
            }
            assert!(!said.contains("0.0e0") && said.starts_with("warning: "), "{said}");
        }
        let blocks = place.ok(&["summary", &run]).stdout.matches("parameter ").count();
        assert_eq!(blocks > 1, name == "long", "{blocks}");
    }
}

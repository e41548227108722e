//! `npl predict`: new rows are prepared as the training rows were, and what is said of them is what the run's own report says.

use crate::support::{Place, cells};

/// Rows of a number, a level, a count and whether it is odd, by a rule that no generator is needed for.
fn rows(from: usize, to: usize) -> Vec<[String; 5]> {
    let row = |i: usize| {
        let x = ((i * 7919) % 101) as f64 / 17.0 - 2.5;
        let level = ["north", "south", "west"][(i * 31 + i / 7) % 3];
        let noise = ((i * 104_729) % 97) as f64 / 97.0;
        let chance = 1.0 / (1.0 + (-(0.9 * x + if level == "south" { 1.0 } else { -0.3 })).exp());
        let count = ((0.4 * x + 0.5).exp() * 2.0 * noise).round();
        [
            i.to_string(),
            format!("{x:.4}"),
            level.to_owned(),
            u8::from(noise < chance).to_string(),
            count.to_string(),
        ]
    };
    (from..to).map(row).collect()
}

const HEADER: [&str; 5] = ["id", "x", "region", "y", "count"];

fn csv(rows: &[[String; 5]]) -> String {
    let lines = rows.iter().map(|row| row.join(",") + "\n").collect::<String>();
    HEADER.join(",") + "\n" + &lines
}

fn experiment(model: &str, target: &str, more: &str) -> String {
    format!(
        "name = \"t\"\nseed = 3\n[data]\ntrain = \"train.csv\"\ntest = \"test.csv\"\ntarget = \"{target}\"\n\
         columns = [\"x\", \"region\"]\ncategorical = [\"region\"]\nstandardise = \"numeric\"\n{more}\n\
         [sampler]\nB = 60\n[model.{model}]\npenalty = \"ridge\"\n"
    )
}

fn place(model: &str, target: &str, more: &str) -> Place {
    let place = Place::new();
    place.write("train.csv", csv(&rows(0, 150))).write("test.csv", csv(&rows(150, 200)));
    place.write("x.toml", experiment(model, target, more));
    place.ok(&["run", "x.toml", "--quiet"]);
    place
}

/// A column of a table, as numbers; what is empty is NaN.
fn column(text: &str, name: &str) -> Vec<f64> {
    let rows = cells(text);
    let j = rows[0].iter().position(|c| *c == name).unwrap_or_else(|| panic!("no {name} in {:?}", rows[0]));
    rows[1..].iter().map(|row| row[j].parse().unwrap_or(f64::NAN)).collect()
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let n = values.len() as f64;
    values.sum::<f64>() / n
}

fn near(found: f64, expected: f64) -> bool {
    (found - expected).abs() < 1e-12 * expected.abs().max(1.0)
}

/// LPPD, MSE and accuracy by the predictions of the held-out rows are those of the report.
#[test]
fn predictions_of_held_out_rows_are_what_the_report_scored() {
    for (model, target, name, more) in [
        ("logistic", "y", "probability", ""),
        ("logistic", "y", "probability", "offset = \"count\""),
        ("poisson", "count", "mean", ""),
        ("poisson", "count", "mean", "offset = \"y\""),
    ] {
        let place = place(model, target, more);
        let told = place.ok(&["predict", "runs/t", "test.csv"]).stdout;
        let report = place.read("runs/t/report.csv");
        let y = column(&place.read("test.csv"), target);
        let p = column(&told, name);
        assert!(near(mean(column(&told, "log_density").into_iter()), column(&report, "lppd")[0]), "{model}");
        let squares = mean(y.iter().zip(&p).map(|(y, p)| (y - p) * (y - p)));
        assert!(near(squares, column(&report, "mse")[0]), "{model}: {squares}");
        if model == "logistic" {
            let right = mean(y.iter().zip(&p).map(|(y, p)| f64::from((*y == 1.0) == (*p > 0.5))));
            assert!(near(100.0 * right, column(&report, "accuracy")[0]));
        }
    }
}

/// Neither the order of columns nor others beside them, line ends, quotes, a byte order mark, gzip, the response or a pipe matter.
#[test]
fn the_same_rows_written_otherwise_are_told_the_same() {
    let place = place("logistic", "y", "");
    let told = place.ok(&["predict", "runs/t", "test.csv"]).stdout;
    let expected = column(&told, "probability");
    let turned = rows(150, 200)
        .iter()
        .map(|r| format!("\"{}\",a text,{},{}\r\n", r[2], r[0], r[1]))
        .collect::<String>();
    place.write("turned.csv", format!("\u{feff}region,remark,id,x\r\n{turned}"));
    let said = place.ok(&["predict", "runs/t", "turned.csv", "--keep", "id", "--keep", "remark"]);
    assert_eq!(column(&said.stdout, "probability"), expected);
    assert_eq!(column(&said.stdout, "id"), column(&place.read("test.csv"), "id"));
    assert!(!said.stdout.contains("log_density") && said.stdout.contains(",a text,"));
    let mut piped = place.command(&["predict", "runs/t", "-"]);
    piped.stdin(std::fs::File::open(place.path("turned.csv")).unwrap());
    assert_eq!(column(&String::from_utf8(piped.output().unwrap().stdout).unwrap(), "probability"), expected);
    let lines = place.ok(&["predict", "runs/t", "turned.csv", "--format", "ndjson"]).stdout;
    let values = lines.lines().map(|l| serde_json::from_str::<serde_json::Value>(l).unwrap());
    let values: Vec<f64> = values.map(|v| v["probability"].as_f64().unwrap()).collect();
    assert_eq!(values, expected);
    place.ok(&["predict", "runs/t", "turned.csv", "--format", "npy", "--out", "p.npy"]);
    let array = std::fs::read(place.path("p.npy")).unwrap();
    assert_eq!(array.len() % 64, (50 * 4 * 8) % 64, "a header of whole lines, then 50 rows of 4 numbers");
    let first = f64::from_le_bytes(array[array.len() - 50 * 32..][..8].try_into().unwrap());
    assert_eq!(first, expected[0]);
    let names: Vec<String> = serde_json::from_str(&place.read("p.columns.json")).unwrap();
    assert_eq!(names[..2], ["probability", "probability_sd"]);
}

/// The mean over draws is that of the draws, and intervals are their quantiles.
#[test]
fn draws_are_behind_means_and_intervals() {
    let place = place("poisson", "count", "");
    let told = place.ok(&["predict", "runs/t", "test.csv", "--level", "0.5"]).stdout;
    let draws = place.ok(&["predict", "runs/t", "test.csv", "--draws"]).stdout;
    let table = cells(&draws);
    assert_eq!(table[0].len(), 61);
    for (i, row) in table[1..].iter().enumerate() {
        let mut values: Vec<f64> = row[1..].iter().map(|c| c.parse().unwrap()).collect();
        assert!(near(mean(values.iter().copied()), column(&told, "mean")[i]));
        values.sort_by(f64::total_cmp);
        // A quarter of 59 steps.
        let quarter = values[14] + 0.75 * (values[15] - values[14]);
        assert!(near(column(&told, "mean_lower")[i], quarter));
    }
    let (low, high) = (column(&told, "response_lower"), column(&told, "response_upper"));
    let (mean_low, mean_high) = (column(&told, "mean_lower"), column(&told, "mean_upper"));
    let wider = |i: usize| high[i] - low[i] >= mean_high[i] - mean_low[i];
    assert!((0..50).filter(|&i| wider(i)).count() > 40, "responses vary more than their mean");
}

/// Coefficients in the units of the file give the predictions by hand, and e^β are their exponentials.
#[test]
fn coefficients_in_the_units_of_the_data_predict_by_hand() {
    let place = place("logistic", "y", "divide = 2.5");
    let summary = place.ok(&["summary", "runs/t", "--units", "data", "--format", "csv"]).stdout;
    let table = cells(&summary);
    let names: Vec<&str> = table[1..].iter().map(|row| row[0]).collect();
    assert_eq!(names, ["beta.x", "beta.region_south", "beta.region_west", "intercept"]);
    // Linear in θ, so that means of coefficients are enough for the mean of the margin: look at a single draw.
    place.write(
        "one.toml",
        place.read("x.toml").replace("B = 60", "B = 1").replace("name = \"t\"", "name = \"one\""),
    );
    place.ok(&["run", "one.toml", "--quiet"]);
    let summary = place.ok(&["summary", "runs/one", "--units", "data", "--format", "csv"]).stdout;
    let beta = column(&summary, "mean");
    let told = column(&place.ok(&["predict", "runs/one", "test.csv"]).stdout, "probability");
    for (row, p) in rows(150, 200).iter().zip(told) {
        let level = |name: &str| f64::from(u8::from(row[2] == name));
        let eta = beta[0] * row[1].parse::<f64>().unwrap()
            + beta[1] * level("south")
            + beta[2] * level("west")
            + beta[3];
        assert!((1.0 / (1.0 + (-eta).exp()) - p).abs() < 1e-9);
    }
    let ratios = place.ok(&["summary", "runs/one", "--units", "data", "--ratios", "--format", "csv"]).stdout;
    assert!(ratios.contains("exp(beta.x)"));
    assert!(near(column(&ratios, "mean")[0], beta[0].exp()));
    assert!(near(column(&ratios, "mean")[3], beta[3]), "the intercept is none");
    // Chosen by its own name, or by the one that it is told by.
    let some = |pattern: &str| {
        place
            .ok(&["summary", "runs/one", "--ratios", "--only", pattern, "--format", "csv"])
            .stdout
            .lines()
            .count()
    };
    assert_eq!((some("beta.x"), some("exp(beta.x)"), some("beta.*"), some("*")), (2, 2, 4, 5));
    let said = place.npl(&["summary", "runs/one", "--ratios", "--only", "beta.y"]);
    assert!(said.code == Some(2) && said.stderr.contains("did you mean `"), "{}", said.stderr);
}

/// Missing cells and levels that no training row has, as the experiment says.
#[test]
fn what_a_row_lacks_is_dealt_with_as_the_run_says() {
    let row = "id,x,region\n1,NA,south\n2,0.5,\n3,0.5,east\n";
    let mean =
        place("logistic", "y", "missing = \"mean\"\nunseen = \"zero\"\nmissing_values = [\"NA\", \"\"]");
    mean.write("new.csv", row);
    let said = mean.ok(&["predict", "runs/t", "new.csv"]);
    let told = column(&said.stdout, "probability");
    assert!(told[0].is_finite() && told[1].is_nan() && told[2].is_finite(), "{told:?}");
    for line in [
        "1 row with missing values and no prediction",
        "1 missing cell taken for the mean of the training rows",
        "1 cell with a level that no training row has, whose dummies are 0",
    ] {
        assert!(said.stderr.contains(line), "{}", said.stderr);
    }
    let strict = place("logistic", "y", "missing_values = [\"NA\"]");
    strict.write("new.csv", row);
    let said = strict.npl(&["predict", "runs/t", "new.csv"]);
    assert_eq!(said.code, Some(2));
    assert!(said.stderr.contains("new.csv:2: column \"x\" (2): \"NA\" is missing"), "{}", said.stderr);
}

/// Files that cannot be predicted: exit 2, the file, and where there is one, line and column.
#[test]
fn broken_new_files_are_refused_with_their_place() {
    let place = place("logistic", "y", "");
    place.ok(&["new", "median"]);
    let cases: &[(&str, &str)] = &[
        ("", "the file is empty"),
        ("id,region\n1,south\n", "no column \"x\""),
        ("X,region\n1,south\n", "did you mean \"X\"?"),
        ("x;region\n1;south\n", "`data.delimiter`"),
        ("x,region\n", "no rows"),
        ("x,region\n1\n", "new.csv:2: 1 cells where 2 are expected"),
        ("x,region\n1,south\n2,south,9\n", "new.csv:3: 3 cells where 2 are expected"),
        ("x,region\nabc,south\n", "new.csv:2: column \"x\" (1): \"abc\" is not a number"),
        ("x,region\n1,south\ninf,south\n", "new.csv:3: column \"x\" (1): \"inf\" is not a finite number"),
        ("x,region\n1e999,south\n", "new.csv:2: column \"x\" (1)"),
        ("x,region\n\"1,south\n2,west\n", "new.csv:2: a quote opens a cell here"),
        ("x,region\n\"1\"2,south\n", "new.csv:2: text follows the quote"),
        (
            "x,region\n1,east\n",
            "new.csv:2: column \"region\" (2): \"east\" is a level that no training row has",
        ),
        ("x,region\n1,South\n", "\"South\" is a level"),
        ("x,region\n1,\n", "new.csv:2: column \"region\" (2)"),
        ("x,region\n,south\n", "new.csv:2: column \"x\" (1): \"\" is a missing value"),
        ("x,x,region\n1,2,south\n", "the name \"x\" is that of column 1 too"),
        ("x,region,y\n1,south,maybe\n", "new.csv:2: column \"y\" (3): \"maybe\" is not a number"),
        ("x,region\n1,\u{1b}[31m\n", "is a level that no training row has"),
        ("x,region\n1,5,south\n", "new.csv:2: 3 cells"),
    ];
    for (text, says) in cases {
        place.write("new.csv", text);
        let said = place.npl(&["predict", "runs/t", "new.csv"]);
        assert_eq!(said.code, Some(2), "{text:?}: {}", said.stderr);
        assert!(said.stderr.contains(says) && said.stderr.contains("new.csv"), "{text:?}: {}", said.stderr);
        said.assert_decent(text);
    }
    place.write("new.csv", csv(&rows(150, 160)));
    for (args, says) in [
        (&["predict", "runs/t", "nothing.csv"][..], "nothing.csv"),
        (&["predict", "runs/none", "new.csv"], "runs/none"),
        (&["predict", "runs/t", "new.csv", "--keep", "idd"], "did you mean \"id\"?"),
        (&["predict", "runs/t", "new.csv", "--level", "2"], "no probability"),
        (&["predict", "runs/t", "new.csv", "--repeat", "2"], "repeats 1 to 1"),
        (&["predict", "runs/t", "new.csv", "--format", "npy"], "--out"),
        (&["predict", "runs/t", "new.csv", "--out", "runs/t/samples.csv"], "samples.csv"),
    ] {
        let said = place.npl(args);
        assert_eq!(said.code, Some(2), "{args:?}: {}", said.stderr);
        assert!(said.stderr.contains(says), "{args:?}: {}", said.stderr);
    }
}

/// Every model with every starter: rows as its training rows are told something, or it is said that there is nothing to tell.
#[test]
fn every_model_predicts_or_says_that_it_cannot() {
    let place = Place::new();
    for (name, starter) in npl::model::STARTERS {
        let file = format!("{name}.toml");
        place.write(&file, starter);
        let ran = place.npl(&["run", &file, "--set", "sampler.B=20", "--out", name, "--quiet"]);
        assert!(matches!(ran.code, Some(0 | 3)), "{name}: {}", ran.stderr);
        place.ok(&["export", &file, "--out", &format!("{name}-x"), "--draws", "1"]);
        let said = place.npl(&["predict", name, &format!("{name}-x/train.csv")]);
        match said.code {
            Some(0) => {
                let lines = said.stdout.lines().count();
                assert_eq!(lines, place.read(&format!("{name}-x/train.csv")).lines().count(), "{name}");
                let first = &cells(&said.stdout)[1][1];
                assert!(first.parse::<f64>().is_ok_and(f64::is_finite), "{name}: {first}");
            }
            Some(2) => assert!(said.stderr.contains("tells nothing of a row"), "{name}: {}", said.stderr),
            other => panic!("{name}: exit {other:?}: {}", said.stderr),
        }
    }
}

/// The components that a row may come from have probabilities that sum to 1, under the same labels in every draw.
#[test]
fn rows_of_a_mixture_are_told_their_component() {
    let place = Place::new();
    place.write(
        "m.toml",
        "name = \"m\"\nseed = 1\n[data]\ntrain = \"m.csv\"\n[model.gmm]\nK = 2\nvariance_floor = 1e-4\n[sampler]\nB = 50\n\
         R = 4\ninit.pi = { dirichlet = 1.0 }\ninit.mu = { uniform = [-1.0, 11.0] }\ninit.sigma2 = { inverse_gamma = [1.0, 1.0] }\n",
    );
    let rows: String =
        (0..60).map(|i| format!("{}\n", (i % 2) as f64 * 10.0 + ((i * 37) % 11) as f64 / 11.0)).collect();
    place.write("m.csv", format!("a\n{rows}")).write("new.csv", "a\n0.4\n10.6\n");
    place.ok(&["run", "m.toml", "--quiet"]);
    let said = place.ok(&["predict", "runs/m", "new.csv"]);
    let (first, second) = (column(&said.stdout, "component.1"), column(&said.stdout, "component.2"));
    for i in 0..2 {
        assert!(near(first[i] + second[i], 1.0));
        assert!(first[i].max(second[i]) > 0.99, "{first:?}");
    }
    assert!((first[0] > 0.5) != (first[1] > 0.5));
    assert!(said.stderr.contains("components aligned"), "{}", said.stderr);
}

/// A formula with functions, squares, and products with levels.
const FORMULA: &str = "name = \"f\"\nseed = 3\n[data]\ntrain = \"train.csv\"\ntest = \"test.csv\"\nstandardise = \"numeric\"\n\
    formula = \"y ~ log(x + 3) + I( (x - 1)^2 ) + region:x + far\"\nderive = { near = \"abs(x) < 1\", far = \"if(near == 1, 'no', 'yes')\" }\n\
    [sampler]\nB = 40\n[model.logistic]\npenalty = \"ridge\"\n";

/// What expressions make of the training rows they make of new rows: the predictions are those of a run on the columns written out.
#[test]
fn expressions_are_applied_to_new_rows() {
    let place = Place::new();
    place.write("train.csv", csv(&rows(0, 150))).write("test.csv", csv(&rows(150, 200)));
    place.write("f.toml", FORMULA);
    place.ok(&["run", "f.toml", "--quiet"]);
    let told = place.ok(&["predict", "runs/f", "test.csv"]).stdout;
    let report = place.read("runs/f/report.csv");
    assert!(
        near(mean(column(&told, "log_density").into_iter()), column(&report, "lppd")[0]),
        "the test rows of the run"
    );
    // The same columns, written out, without expressions.
    let written = |rows: &[[String; 5]]| {
        let line = |r: &[String; 5]| {
            let x: f64 = r[1].parse().unwrap();
            let level = |name: &str| if r[2] == name { x } else { 0.0 };
            let far = u8::from(x.abs() >= 1.0);
            let numbers = [(x + 3.0).ln(), (x - 1.0).powi(2), level("north"), level("south"), level("west")];
            let numbers: Vec<String> = numbers.iter().map(|v| format!("{v:?}")).collect();
            format!("{},{far},{}\n", numbers.join(","), r[3])
        };
        format!("a,b,n,s,w,far,y\n{}", rows.iter().map(line).collect::<String>())
    };
    place.write("out.csv", written(&rows(0, 150))).write("new.csv", written(&rows(150, 200)));
    let plain = "name = \"w\"\nseed = 3\n[data]\ntrain = \"out.csv\"\ntarget = \"y\"\nstandardise = \"numeric\"\n\
                 columns = [\"a\", \"b\", \"far\", \"n\", \"s\", \"w\"]\ncategorical = [\"far\"]\n\
                 [sampler]\nB = 40\n[model.logistic]\npenalty = \"ridge\"\n";
    place.write("w.toml", plain);
    place.ok(&["run", "w.toml", "--quiet"]);
    let by_hand = place.ok(&["predict", "runs/w", "new.csv"]).stdout;
    let (found, expected) = (column(&told, "probability"), column(&by_hand, "probability"));
    for (i, (found, expected)) in found.iter().zip(&expected).enumerate() {
        // The order of columns is another, and so are the last digits of a search.
        assert!((found - expected).abs() < 1e-5, "row {}: {found}, not {expected}", i + 1);
    }
    // Standard input, in blocks of another size, with columns elsewhere and no response.
    let turned: String = rows(150, 200).iter().map(|r| format!("{},{}\n", r[2], r[1])).collect();
    place.write("turned.csv", format!("region,x\n{turned}"));
    assert_eq!(column(&place.ok(&["predict", "runs/f", "turned.csv"]).stdout, "probability"), found);
    for (file, says) in [
        ("region,xx\nnorth,1\n", "the experiment makes \"log(x+3)\" of it"),
        (
            "region,x\nnorth,1\nsouth,-3\n",
            "bad.csv:3: column \"log(x+3)\" (= log(x + 3)): \"-inf\" is not a finite number",
        ),
        ("region,x\nnorth,1\nsouth,-4\n", "bad.csv:3: column \"log(x+3)\""),
        ("region,x\nnorth,one\n", "bad.csv:2: column \"x\" (2): \"one\" is not a number"),
    ] {
        place.write("bad.csv", file);
        let said = place.npl(&["predict", "runs/f", "bad.csv"]);
        assert!(said.code == Some(2) && said.stderr.contains(says), "{file}: {}", said.stderr);
    }
    // A run that kept no expressions needs the columns themselves.
    let old = place.read("runs/f/preparation.json");
    let mut kept: serde_json::Value = serde_json::from_str(&old).unwrap();
    assert_eq!(kept["version"], 2);
    assert_eq!(kept["made"][0], serde_json::json!({ "name": "near", "expression": "abs(x) < 1" }));
    kept["version"] = 1.into();
    ["made", "reads"].iter().for_each(|key| drop(kept.as_object_mut().unwrap().remove(*key)));
    place.write("runs/f/preparation.json", kept.to_string());
    let said = place.npl(&["predict", "runs/f", "test.csv", "--no-verify"]);
    assert!(said.code == Some(2) && said.stderr.contains("has not kept"), "{}", said.stderr);
}

/// A response that an expression makes is scored; a filter leaves no new row out.
#[test]
fn a_made_response_is_scored_and_filters_are_not_applied() {
    let place = Place::new();
    place.write("train.csv", csv(&rows(0, 150))).write("test.csv", csv(&rows(150, 200)));
    let text = "name = \"l\"\nseed = 3\n[data]\ntrain = \"train.csv\"\ntest = \"test.csv\"\n\
                formula = \"log(count + 1) ~ x\"\n[sampler]\nB = 30\n[model.linear]\nsigma = \"estimated\"\npenalty = \"none\"\n";
    place.write("l.toml", text);
    place.ok(&["run", "l.toml", "--quiet"]);
    let told = place.ok(&["predict", "runs/l", "test.csv"]).stdout;
    let y: Vec<f64> = column(&place.read("test.csv"), "count").iter().map(|c| (c + 1.0).ln()).collect();
    let squares = mean(y.iter().zip(column(&told, "mean")).map(|(y, m)| (y - m) * (y - m)));
    assert!(near(squares, column(&place.read("runs/l/report.csv"), "mse")[0]), "{squares}");
    place.write(
        "some.toml",
        place
            .read("l.toml")
            .replace("name = \"l\"", "name = \"some\"")
            .replace("[sampler]", "filter = \"x > 0\"\n[sampler]"),
    );
    place.ok(&["run", "some.toml", "--quiet"]);
    let told = place.ok(&["predict", "runs/some", "test.csv"]);
    assert_eq!(cells(&told.stdout).len(), 51, "every new row");
    assert!(told.stderr.contains("`data.filter`"), "{}", told.stderr);
    // What an expression reads is found by name, or the nearest is told.
    let derived = "derive = { twice = \"2*count\" }\ncolumns = [\"x\", \"twice\"]\ntarget = \"y\"\n";
    let text = format!(
        "name = \"d\"\nseed = 3\n[data]\ntrain = \"train.csv\"\n{derived}[sampler]\nB = 5\n[model.logistic]\npenalty = \"ridge\"\n"
    );
    place.write("d.toml", text);
    place.ok(&["run", "d.toml", "--quiet"]);
    place.write("bad.csv", "x,counts\n1,2\n");
    let said = place.npl(&["predict", "runs/d", "bad.csv"]);
    assert_eq!(said.code, Some(2));
    assert!(
        said.stderr.contains("did you mean \"counts\"?; the experiment makes \"twice\" of it"),
        "{}",
        said.stderr
    );
    // A file that has the made column, and not what it is made of.
    place.write("raw.csv", "x,count\n1,2\n").write("made.csv", "x,twice\n1,4\n");
    let told = ["raw.csv", "made.csv"].map(|file| place.ok(&["predict", "runs/d", file]).stdout);
    assert_eq!(told[0], told[1]);
}

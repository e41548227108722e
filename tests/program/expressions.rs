//! Expressions in experiment files: what is wrong is pointed at, what docs/losses.md says is so, and derived quantities are columns
//! like any other.

use std::fs;
use std::path::Path;

use crate::support::Place;

const ROWS: &str = "age,hours,region,out,y\n30,10,north,1,2.5\n40,20,south,0,3.5\n50,15,north,1,1.5\n35,25,east,0,4.0\n\
                    45,12,south,1,2.0\n55,30,east,0,3.0\n";

/// A custom loss on the rows of `d.csv`.
fn custom(line: &str) -> String {
    let mut lines = vec![
        "parameters = { beta = { real = \"x\" }, s = { positive = 1 }, v = { real = 2 } }",
        "loss = \"sq(y - dot(beta, x) - v.1)/s + log(s)\"",
        "penalty = \"sum(v^2)\"",
    ];
    let key = line.split(" =").next().unwrap();
    lines.retain(|known| !known.starts_with(&format!("{key} =")));
    lines.push(line);
    format!(
        "name = \"e\"\nseed = 1\n[data]\ntrain = \"d.csv\"\ntarget = \"y\"\ncolumns = [\"age\", \"hours\"]\n[sampler]\nB = 3\n[model.custom]\n{}\n",
        lines.join("\n")
    )
}

/// The column of the first caret under the line that is wrong, from 1, within the value of its key.
fn caret(stderr: &str) -> Option<(String, usize)> {
    let lines: Vec<&str> = stderr.lines().collect();
    let marks = |line: &&str| {
        line.split_once("| ")
            .is_some_and(|(_, rest)| rest.contains('^') && rest.trim().chars().all(|c| c == '^'))
    };
    let at = lines.iter().position(marks)?;
    let (source, marks) = (lines[at - 1].split_once("| ")?.1, lines[at].split_once("| ")?.1);
    let column = marks.chars().position(|c| c == '^')?;
    let value = source.chars().position(|c| c == '"' || c == '\'')?;
    Some((source.to_owned(), column.checked_sub(value + 1)?))
}

/// Line, character of the text that is wrong, and what is said.
const WRONG: [(&str, usize, &str); 41] = [
    (r#"loss = """#, 0, "expected a number, a name or `(`"),
    (r#"loss = "sq(y - v.1""#, 10, "expected `,` or `)`, found the end"),
    (r#"loss = "sq(y - v.1))""#, 11, "expected an operator or the end, found `)`"),
    (r#"loss = "sq(y - v.1)/s +""#, 15, "found the end"),
    (r#"loss = "y y""#, 2, "expected an operator or the end, found `y`"),
    (r#"loss = "2y""#, 1, "expected an operator after the number"),
    (r#"loss = "y = s""#, 2, "`==` compares"),
    (r#"loss = "y & s""#, 2, "the word is `and`"),
    (r#"loss = "y % s""#, 2, "there is no remainder"),
    (r#"loss = "y < s < 3""#, 6, "two numbers are compared at a time"),
    (r#"loss = "agee*s""#, 0, "did you mean `age`?"),
    (r#"loss = "age*ss""#, 4, "`ss` is not a column of the data, a parameter or a constant"),
    (r#"loss = "sqq(y - s)""#, 0, "`sqq` is no function; did you mean `sq`?"),
    (r#"loss = "s(y)""#, 0, "a product needs `*`"),
    (r#"loss = "y + exp(y, s)""#, 4, "`exp` takes one number or vector, and 2 arguments are given"),
    (r#"loss = "beta""#, 0, "expected a single number, and this is a vector with 2 entries"),
    (r#"loss = "y - dot(beta, v) + dot([1, 2, 3], v)""#, 19, "these have 3 and 2 entries"),
    (r#"loss = "beta + [1, 2, 3]""#, 0, "these have 2 and 3 entries"),
    (r#"loss = "y - sum(s)""#, 8, "`sum` takes a vector, and this is a number"),
    (r#"loss = "y == 'a'""#, 0, "a text cannot be compared with a number"),
    (r#"loss = "y + 'a'""#, 4, "texts can be compared by `==` and `!=` only"),
    (r#"loss = "let z = y""#, 9, "expected `;` after a definition"),
    (r#"loss = "let 2 = y; s""#, 4, "expected a name after `let`"),
    (r#"loss = "y*`s""#, 2, "a name in backticks begins here and has no end"),
    (r#"loss = "huber(y)""#, 0, "`huber` takes a residual and the bend"),
    (r#"loss = "if(y > 1, 2)""#, 0, "`if` takes a condition, and a value for either case"),
    (r#"loss = "if(beta, 1, 2)""#, 3, "a condition is a single number"),
    (r#"loss = "y − s""#, 2, "the minus sign is `-`"),
    (r#"loss = "1e400*y""#, 0, "expected a number that a double can hold"),
    (r#"loss = 'y*"'"#, 2, "a text in quotes begins here and has no end"),
    (r#"loss = "y\t*ss""#, 3, "`ss` is not"),
    (r#"loss = "\u0079*ss""#, 2, "`ss` is not"),
    (r#"penalty = "sum(v^2""#, 7, "expected `,` or `)`, found the end"),
    (r#"penalty = "sum(w^2)""#, 4, "`w` is not"),
    (r#"penalty = "v""#, 0, "expected a single number"),
    (r#"predict = "dot(beta, x""#, 11, "expected `,` or `)`, found the end"),
    (r#"predict = "ages*2""#, 0, "did you mean `age`?"),
    (r#"predict = "max()""#, 0, "`max` takes a vector, or two numbers or more, and 0 arguments are given"),
    (r#"loss = "mean(1, 2)""#, 0, "`mean` takes a vector, and 2 arguments are given"),
    (r#"loss = "not""#, 3, "found the end"),
    (r#"loss = "y and or s""#, 6, "expected a number, a name or `(`, found `or`"),
];

#[test]
fn wrong_losses_are_pointed_at() {
    let place = Place::new();
    place.write("d.csv", ROWS).write("good.toml", custom("gamma = 0.1")).ok(&["check", "good.toml"]);
    for (line, at, says) in WRONG {
        let ended = place.write("e.toml", custom(line)).npl(&["run", "e.toml"]);
        assert_eq!(ended.code, Some(2), "{line}: {}", ended.stderr);
        assert!(ended.stderr.contains(says), "{line}: {}", ended.stderr);
        let (source, column) =
            caret(&ended.stderr).unwrap_or_else(|| panic!("{line}: no caret in\n{}", ended.stderr));
        assert_eq!(source, line, "{}", ended.stderr);
        // Escapes are wider than what they stand for.
        let wider = [("\\t", 1), ("\\u0079", 5)]
            .iter()
            .find(|(escape, _)| line.contains(escape))
            .map_or(0, |(_, by)| *by);
        assert_eq!(column, at + wider, "{line}:\n{}", ended.stderr);
    }
}

#[test]
fn wrong_tables_are_refused() {
    let place = Place::new();
    place.write("d.csv", ROWS);
    for (line, says) in [
        ("parameters = {}", "is empty: a loss needs a parameter"),
        (
            "parameters = { beta = { real = \"x\" }, s = { positive = 1 }, v = { real = 2 }, w = { real = 1 } }",
            "`model.custom.parameters.w` has no use",
        ),
        (
            "parameters = { beta = { real = \"x\" }, s = { positive = 1 }, v = { real = 3 } }\nloss = \"y*s*v.1 + dot(beta, x)\"\npenalty = \"v.2^2\"",
            "`v.3` occurs neither",
        ),
        (
            "parameters = { beta = { real = \"x\" }, s = { simplex = 1 }, v = { real = 2 } }",
            "needs two entries or more",
        ),
        (
            "parameters = { beta = { real = \"x\" }, s = { positiv = 1 }, v = { real = 2 } }",
            "did you mean `positive`?",
        ),
        ("parameters = { beta = { real = \"z\" }, s = { positive = 1 }, v = { real = 2 } }", "must be"),
        ("parameters = { beta = { real = 0 }, s = { positive = 1 }, v = { real = 2 } }", "at least 1"),
        (
            "parameters = { age = { real = 1 }, s = { positive = 1 } }\nloss = \"age*s\"\npenalty = \"s\"",
            "both a column of the data and a parameter",
        ),
        (
            "parameters = { \"a b\" = { real = 1 } }\nloss = \"y\"\npenalty = \"0\"",
            "must be a name of letters",
        ),
        ("loss = \"s + sum(v) + sum(beta)\"", "no column of the data occurs in it"),
        ("loss = \"y\"", "no parameter occurs in it"),
        ("penalty = \"sum(v^2)*age\"", "columns of the data cannot occur in it"),
    ] {
        let keys: Vec<&str> = line.lines().map(|line| line.split(" =").next().unwrap()).collect();
        let base = custom("gamma = 1.0");
        let kept: Vec<&str> = base
            .lines()
            .filter(|known| !keys.iter().any(|key| known.starts_with(&format!("{key} ="))))
            .collect();
        let ended = place.write("e.toml", format!("{}\n{line}\n", kept.join("\n"))).npl(&["run", "e.toml"]);
        assert_eq!(ended.code, Some(2), "{line}: {}", ended.stderr);
        assert!(ended.stderr.contains(says), "{line}: {}", ended.stderr);
    }
    let ended = place.write("e.toml", custom("gamma = 1.0")).npl(&[
        "run",
        "e.toml",
        "--set",
        "model.custom.loss=y*ss",
    ]);
    assert!(
        ended.stderr.contains("`ss` is not") && ended.stderr.contains("(character 3)"),
        "{}",
        ended.stderr
    );
}

const LOGISTIC: &str =
    "name = \"f\"\nseed = 1\nmodel.logistic.penalty = \"ridge\"\nsampler.B = 3\n[data]\ntrain = \"d.csv\"\n";

#[test]
fn wrong_formulas_filters_and_columns_are_pointed_at() {
    let place = Place::new();
    place.write("d.csv", ROWS);
    for (line, at, says) in [
        (r#"formula = "out""#, 3, "expected `~` between the response and the terms"),
        (r#"formula = "out ~ age +""#, 11, "expected a column"),
        (r#"formula = "out ~ agee""#, 6, "did you mean \"age\"?"),
        (r#"formula = "out ~ age / hours""#, 10, "nested terms are not known"),
        (r#"formula = "out ~ C(region, ref='west')""#, 20, "has no level 'west'"),
        (r#"formula = "out ~ I(age^2""#, 13, "expected `)` to close `I(`"),
        (r#"formula = "out ~ log(agee)""#, 10, "did you mean `age`?"),
        (r#"formula = "out ~ age ~ hours""#, 10, "expected `+`, `-`, `:`, `*` or the end"),
        (r#"filter = "age >""#, 5, "found the end"),
        (r#"filter = "aage > 3""#, 0, "did you mean `age`?"),
        (r#"filter = "region > 'a'""#, 0, "texts can be compared by `==` and `!=` only"),
        (r#"filter = "age > 1000""#, 0, "holds in no row of the data"),
        (r#"derive = { z = "age +" }"#, 5, "found the end"),
        (r#"derive = { age = "hours" }"#, 0, "already"),
    ] {
        let columns =
            if line.starts_with("formula") { "" } else { "target = \"out\"\ncolumns = [\"age\"]\n" };
        let ended = place.write("e.toml", format!("{LOGISTIC}{columns}{line}\n")).npl(&["run", "e.toml"]);
        assert_eq!(ended.code, Some(2), "{line}: {}", ended.stderr);
        assert!(ended.stderr.contains(says), "{line}: {}", ended.stderr);
        let (source, column) =
            caret(&ended.stderr).unwrap_or_else(|| panic!("{line}: no caret in\n{}", ended.stderr));
        assert_eq!((source.as_str(), column), (line, at), "{}", ended.stderr);
    }
    let without = format!("{LOGISTIC}formula = \"out ~ region - 1\"\n");
    let ended = place.write("e.toml", without).npl(&["run", "e.toml"]);
    assert!(ended.code == Some(2) && ended.stderr.contains("leaves the intercept out"), "{}", ended.stderr);
}

#[test]
fn a_formula_is_the_columns_it_stands_for() {
    let place = Place::new();
    let doubled = ROWS.to_owned()
        + &ROWS.lines().skip(1).map(|l| format!("{l}\n")).collect::<String>().replace("0,north", "1,north");
    place.write("d.csv", &doubled).write("wide.csv", wide(&doubled));
    let formula = format!(
        "{LOGISTIC}formula = \"out ~ age + I(age^2) + C(region, ref='north')\"\nfilter = \"hours < 26\"\n"
    );
    let columns = "target = \"out\"\ncolumns = [\"age\", \"age2\", \"region_east\", \"region_south\"]\n";
    place.write("formula.toml", formula).ok(&["run", "formula.toml", "--out", "a"]);
    place.write("wide.toml", format!("{LOGISTIC}{columns}").replace("d.csv", "wide.csv")).ok(&[
        "run",
        "wide.toml",
        "--out",
        "b",
    ]);
    let (a, b) = (place.read("a/samples.csv"), place.read("b/samples.csv"));
    assert!(
        a.lines()
            .next()
            .unwrap()
            .ends_with("beta.age,beta.I(age^2),beta.region_east,beta.region_south,intercept"),
        "{a}"
    );
    assert_eq!(a.lines().skip(1).collect::<Vec<_>>(), b.lines().skip(1).collect::<Vec<_>>());
}

/// `.` is every column that has no part of its own to play.
#[test]
fn all_other_columns_are_those_without_a_role() {
    let place = Place::new();
    let cells = |i: usize| {
        format!(
            "{},{},{},{},{},{}\n",
            i % 2,
            i * 7 % 11,
            i * 5 % 13,
            1 + i % 3,
            i / 4,
            ["train", "test"][i / 20]
        )
    };
    place.write(
        "d.csv",
        "out,age,hours,extra,group,part\n".to_owned() + &(0..24).map(cells).collect::<String>(),
    );
    for (roles, names) in [
        ("", "beta.age,beta.hours,beta.extra,beta.group,beta.part_train,intercept"),
        (
            "offset = \"extra\"\ncluster = \"group\"\nsplit = { column = \"part\" }\n",
            "beta.age,beta.hours,intercept",
        ),
        ("weight = \"extra\"\nstratify = \"part\"\n", "beta.age,beta.hours,beta.group,intercept"),
    ] {
        place.write("x.toml", format!("{LOGISTIC}categorical = \"auto\"\nformula = \"out ~ .\"\n{roles}"));
        place.ok(&["check", "x.toml"]);
        place.ok(&["run", "x.toml", "--out", "x", "--force", "--quiet"]);
        let header = place.read("x/samples.csv").lines().next().unwrap().to_owned();
        assert!(header.ends_with(&format!("__,{names}")), "{header}");
    }
}

/// The same by hand.
fn wide(rows: &str) -> String {
    let mut out = "age,age2,region_east,region_south,out\n".to_owned();
    for line in rows.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let (age, hours): (f64, f64) = (cells[0].parse().unwrap(), cells[1].parse().unwrap());
        if hours < 26.0 {
            let is = |level: &str| u8::from(cells[2] == level);
            out += &format!("{age},{},{},{},{}\n", age * age, is("east"), is("south"), cells[3]);
        }
    }
    out
}

#[test]
fn derived_quantities_are_columns_of_every_method() {
    let place = Place::new();
    place.write("d.csv", ROWS);
    let text = "name = \"g\"\nseed = 1\n[data]\ntrain = \"d.csv\"\ntarget = \"out\"\ncolumns = [\"age\"]\nstandardise = \"all\"\n\
                [model.logistic]\npenalty = \"ridge\"\n[sampler]\nB = 8\n[nuts]\nwarmup = 20\nchains = 2\n\
                [derived]\nodds.age = \"exp(beta.age)\"\ntwice = \"2*odds.age + intercept\"\n";
    place.write("g.toml", text);
    for method in ["npl", "nuts", "advi"] {
        place.ok(&["run", "g.toml", "--set", &format!("method={method}"), "--out", method]);
        let samples = place.read(&format!("{method}/samples.csv"));
        let header: Vec<&str> = samples.lines().next().unwrap().split(',').collect();
        assert_eq!(header[header.len() - 2..], ["odds.age", "twice"], "{method}");
        let at = |name: &str| header.iter().position(|h| *h == name).unwrap();
        for line in samples.lines().skip(1) {
            let cells: Vec<f64> = line.split(',').map(|cell| cell.parse().unwrap()).collect();
            let (beta, intercept) = (cells[at("beta.age")], cells[at("intercept")]);
            assert!((cells[at("odds.age")] / beta.exp() - 1.0).abs() < 1e-12, "{method}: {line}");
            assert!((cells[at("twice")] - 2.0 * beta.exp() - intercept).abs() < 1e-9, "{method}: {line}");
        }
        assert!(place.read(&format!("{method}/summary.csv")).contains("odds.age"), "{method}");
    }
    place.ok(&["verify", "npl"]);
    let wrong = text.replace("exp(beta.age)", "exp(beta.agee)");
    let ended = place.write("g.toml", wrong).npl(&["run", "g.toml", "--out", "x"]);
    assert!(ended.code == Some(2) && ended.stderr.contains("did you mean `beta.age`?"), "{}", ended.stderr);
    assert_eq!(caret(&ended.stderr).unwrap().1, 4, "{}", ended.stderr);
}

/// The files of docs/losses.md are written, and its commands run, as they stand there.
#[test]
fn the_page_on_losses_can_be_followed() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/losses.md")).unwrap();
    let place = Place::new();
    let (mut files, mut commands) = (0, 0);
    let mut before = "";
    for (k, piece) in page.split("```").enumerate() {
        if k % 2 == 0 {
            before = piece;
            continue;
        }
        let (language, text) = piece.split_once('\n').unwrap();
        // The last name in backticks of the sentence before.
        let name = before
            .trim_end()
            .strip_suffix(':')
            .and_then(|line| line.rsplit('\n').next())
            .map(|line| line.split('`').nth_back(1).unwrap());
        match (language, name.filter(|name| name.contains('.'))) {
            ("csv" | "toml", Some(name)) => {
                place.write(name, text);
                files += 1;
            }
            ("sh", _) => {
                for line in text.lines() {
                    let args: Vec<&str> = line.strip_prefix("npl ").unwrap().split_whitespace().collect();
                    place.ok(&args);
                    commands += 1;
                }
            }
            _ => {}
        }
    }
    assert_eq!((files, commands), (4, 5));
    // The house with the vineyard does not decide: a square metre is worth about three in most draws, and not ten.
    let samples = place.read("runs/robust/samples.csv");
    let at = samples.lines().next().unwrap().split(',').position(|name| name == "beta.size").unwrap();
    let mut slopes: Vec<f64> =
        samples.lines().skip(1).map(|line| line.split(',').nth(at).unwrap().parse().unwrap()).collect();
    slopes.sort_by(f64::total_cmp);
    assert!((2.0..4.0).contains(&slopes[slopes.len() / 2]), "{}", slopes[slopes.len() / 2]);
    assert!(
        place
            .read("runs/pumps/samples.csv")
            .lines()
            .next()
            .unwrap()
            .ends_with("scale,shape,median,risk.year")
    );
}

//! `npl compare`: paired differences are those of the rows, by hand.

use crate::support::{Place, cells};

const X: &str = "seed = 2\n[data]\ntrain = \"q.csv\"\ntest = \"t.csv\"\ntarget = \"y\"\n[sampler]\nB = 200\n";

fn place() -> Place {
    let place = Place::new();
    let row = |i: usize| {
        let (x, z) = (((i * 7919) % 101) as f64 / 25.0 - 2.0, ((i * 104_729) % 97) as f64 / 97.0);
        format!("{x},{z},{}\n", u8::from(((i * 31) % 53) as f64 / 53.0 < 1.0 / (1.0 + (-1.5 * x).exp())))
    };
    place.write("q.csv", format!("x,z,y\n{}", (0..120).map(row).collect::<String>()));
    place.write("t.csv", format!("x,z,y\n{}", (120..170).map(row).collect::<String>()));
    for (name, more) in [("both", ""), ("one", "columns = [\"z\"]\n"), ("again", "")] {
        let text = X.replace("[sampler]", &format!("{more}[sampler]"));
        place.write(
            &format!("{name}.toml"),
            format!("name = \"{name}\"\n{text}[model.logistic]\npenalty = \"ridge\"\n"),
        );
        let seed = if name == "again" { "9" } else { "2" };
        place.ok(&["run", &format!("{name}.toml"), "--quiet", "--seed", seed]);
    }
    place
}

#[test]
fn differences_are_those_of_the_predicted_rows() {
    let place = place();
    let said = place.ok(&["compare", "runs/both", "runs/one", "--format", "csv"]).stdout;
    let densities = |run: &str| -> Vec<f64> {
        let told = place.ok(&["predict", run, "t.csv"]).stdout;
        let table = cells(&told);
        let j = table[0].iter().position(|c| *c == "log_density").unwrap();
        table[1..].iter().map(|row| row[j].parse().unwrap()).collect()
    };
    let d: Vec<f64> = densities("runs/both").iter().zip(densities("runs/one")).map(|(a, b)| a - b).collect();
    let mean = d.iter().sum::<f64>() / 50.0;
    let se = (d.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 49.0 / 50.0).sqrt();
    let table = cells(&said);
    let row = table.iter().find(|row| row[0] == "runs/one" && row[1] == "LPPD").unwrap();
    let number = |j: usize| row[j].parse::<f64>().unwrap();
    assert!((number(3) - mean).abs() < 1e-12 && (number(4) - se).abs() < 1e-12, "{row:?}: {mean} {se}");
    assert!(number(5) > 0.0 && number(5) < 0.2 * se);
    let text = place.ok(&["compare", "runs/both", "runs/one"]).stdout;
    assert!(text.contains("-MSE: runs/both is better than runs/one by"), "{text}");
    let alike = place.ok(&["compare", "runs/both", "runs/again"]).stdout;
    assert!(alike.contains("cannot be told apart"), "{alike}");
}

#[test]
fn runs_on_other_rows_are_refused() {
    let place = place();
    place.write("t.csv", place.read("t.csv").replacen(",1\n", ",0\n", 1));
    place.ok(&["run", "one.toml", "--quiet", "--out", "runs/other"]);
    let said = place.npl(&["compare", "runs/both", "runs/other"]);
    assert_eq!(said.code, Some(2));
    assert!(said.stderr.contains("has changed since"), "{}", said.stderr);
    let said = place.npl(&["compare", "runs/other"]);
    assert_eq!((said.code, said.stderr.contains("two runs")), (Some(2), true));
    let text = place
        .read("both.toml")
        .replace("test = \"t.csv\"\n", "")
        .replace("[sampler]", "split.test = 0.3\n[sampler]");
    place.write("split.toml", text);
    place.ok(&["run", "split.toml", "--quiet", "--out", "runs/split"]);
    let said = place.npl(&["compare", "runs/split", "runs/other"]);
    assert_eq!(said.code, Some(2));
    assert!(said.stderr.contains("other test rows"), "{}", said.stderr);
}

/// Of a response that is a number: the squared error of the posterior mean, of a loss that is no likelihood, too.
#[test]
fn squared_errors_are_compared_where_responses_are_numbers() {
    let place = place();
    let head = X.replace("target = \"y\"", "target = \"z\"");
    let custom = "[model.custom]\nparameters = { beta = { real = \"x\" }, b = { real = 1 } }\n\
                  loss = \"huber(z - b - beta.x*x - beta.y*y, 0.5)\"\npredict = \"b + beta.x*x + beta.y*y\"\n";
    place.write(
        "n.toml",
        format!("name = \"n\"\n{head}[model.linear]\npenalty = \"none\"\nsigma = \"estimated\"\n"),
    );
    place.write("h.toml", format!("name = \"h\"\n{head}{custom}"));
    let said = place.npl(&["run", "h.toml", "--quiet", "--set", "evaluate.metrics=['mse']"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    place.ok(&["run", "n.toml", "--quiet"]);
    let said = place.ok(&["compare", "runs/n", "runs/h", "--format", "csv"]).stdout;
    let table = cells(&said);
    assert!(table[1..].iter().all(|row| row[1] == "-MSE") && table.len() == 3, "{said}");
    let response: Vec<f64> =
        cells(&place.read("t.csv"))[1..].iter().map(|row| row[1].parse().unwrap()).collect();
    let errors = |run: &str, name: &str| -> Vec<f64> {
        let told = place.ok(&["predict", run, "t.csv"]).stdout;
        let table = cells(&told);
        let j = table[0].iter().position(|c| *c == name).unwrap_or_else(|| panic!("{told}"));
        let mean = |row: &Vec<&str>| row[j].parse::<f64>().unwrap();
        table[1..].iter().zip(&response).map(|(row, y)| (mean(row) - y).powi(2)).collect()
    };
    let (n, h) = (errors("runs/n", "mean"), errors("runs/h", "prediction"));
    for (row, errors) in table[1..].iter().zip([&n, &h]) {
        let mse = errors.iter().sum::<f64>() / 50.0;
        assert!((row[2].parse::<f64>().unwrap() + mse).abs() < 1e-12, "{said}");
    }
    let d: Vec<f64> = n.iter().zip(&h).map(|(a, b)| a - b).collect();
    let mean = d.iter().sum::<f64>() / 50.0;
    let se = (d.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 49.0 / 50.0).sqrt();
    let worse = table[1..].iter().find(|row| row[3] != "0.0").unwrap();
    assert!((worse[3].parse::<f64>().unwrap() - mean.abs()).abs() < 1e-12, "{said}");
    assert!((worse[4].parse::<f64>().unwrap() - se).abs() < 1e-12, "{said}");
    // Without `predict` there is nothing to hold against a response.
    let bare = format!("name = \"b\"\n{head}{}", custom.lines().take(3).collect::<Vec<_>>().join("\n"));
    place.write("b.toml", bare + "\n");
    let said = place.npl(&["run", "b.toml", "--quiet", "--set", "evaluate.metrics=['mse']"]);
    assert!(said.code == Some(2) && said.stderr.contains("needs `model.custom.predict`"), "{}", said.stderr);
}

/// Files that are read are never written over.
#[test]
fn predictions_do_not_replace_what_they_are_made_of() {
    let place = place();
    for (new, out) in [("t.csv", "t.csv"), ("t.csv", "./q.csv"), ("q.csv", "t.csv")] {
        let before = (place.read("t.csv"), place.read("q.csv"));
        let said = place.npl(&["predict", "runs/both", new, "--out", out]);
        assert!(said.code == Some(2) && said.stderr.contains("never written over"), "{}", said.stderr);
        assert_eq!(before, (place.read("t.csv"), place.read("q.csv")));
    }
    let said = place.npl(&["samples", "runs/both", "--out", "q.csv"]);
    assert!(said.code == Some(2) && said.stderr.contains("made from"), "{}", said.stderr);
    place.ok(&["predict", "runs/both", "t.csv", "--out", "new.csv"]);
    place.ok(&["predict", "runs/both", "t.csv", "--out", "new.csv"]);
}

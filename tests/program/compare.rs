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

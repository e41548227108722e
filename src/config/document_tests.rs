//! Tests of documents on structures that mimic an experiment file.
#![allow(dead_code, non_snake_case)]

use super::*;
use crate::config::printable;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A number type whose schema and whose `try_from` have the same bounds, written once.
macro_rules! ranged {
    ($(#[$doc:meta])* $name:ident: $inner:ident = $text:literal, $words:literal,
     $($key:literal $op:tt $limit:literal),+) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Deserialize, JsonSchema)]
        #[serde(try_from = $text)]
        #[schemars(extend($($key = $limit),+))]
        struct $name($inner);

        impl TryFrom<$inner> for $name {
            type Error = &'static str;
            fn try_from(x: $inner) -> Result<Self, Self::Error> {
                let inside = (x as f64).is_finite() && $(x $op $limit)&&+;
                if inside { Ok($name(x)) } else { Err($words) }
            }
        }
    };
}

ranged!(Positive: f64 = "f64", "must be greater than 0", "exclusiveMinimum" > 0.0);
ranged!(NonNegative: f64 = "f64", "must be at least 0", "minimum" >= 0.0);
ranged!(Probability: f64 = "f64", "must be in [0, 1]", "minimum" >= 0.0, "maximum" <= 1.0);
ranged!(OpenUnit: f64 = "f64", "must be in (0, 1)", "exclusiveMinimum" > 0.0, "exclusiveMaximum" < 1.0);
ranged!(HalfOpen: f64 = "f64", "must be in (0, 1]", "exclusiveMinimum" > 0.0, "maximum" <= 1.0);
ranged!(
    /// A count of things.
    Count: u32 = "u32", "must be at least 1", "minimum" >= 1);
ranged!(Few: u32 = "u32", "must be in 2..=5", "minimum" >= 2, "maximum" <= 5);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Root {
    /// Name of the run. It also names the folder.
    name: String,
    seed: Option<u64>,
    repeats: Option<Count>,
    method: Method,
    data: DataPart,
    model: Model,
    prior: Option<Prior>,
    sampler: Sampler,
    #[serde(default)]
    gamma: Option<Gamma>,
    bounds: Option<(f64, f64)>,
    sizes: Option<Vec<Few>>,
    verbose: Option<bool>,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Method {
    Npl,
    /// The plain bootstrap.
    Bootstrap,
    LossLikelihood,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DataPart {
    file: std::path::PathBuf,
    columns: Option<Vec<String>>,
    weights: Option<Vec<f64>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Model {
    /// A Gaussian mixture.
    Gmm {
        K: Count,
        variance_floor: Option<Positive>,
    },
    Mean {},
    Quantile {
        q: OpenUnit,
    },
    Fixed(DataPart),
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Prior {
    /// Strength of the prior. Zero means none.
    alpha: NonNegative,
    /// Number of pseudo-samples.
    T: Option<Count>,
    /// The centring law.
    base: Option<Base>,
    truncation: Option<HalfOpen>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Base {
    Empirical,
    Normal { mean: f64, sd: Positive },
    Uniform { low: f64, high: f64 },
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Sampler {
    /// Number of bootstrap draws.
    B: Count,
    /// Number of restarts.
    R: Count,
    init: Option<BTreeMap<String, Dist>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Dist {
    Normal { mean: f64, sd: Positive },
    Dirichlet { weight: Positive },
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Gamma {
    Number(f64),
    Word(GammaWord),
    List(Vec<f64>),
}

#[derive(Debug, Deserialize, JsonSchema)]
enum GammaWord {
    #[serde(rename = "1/n")]
    OneOverN,
}

const GOOD: &str = r#"name = "toy"
seed = 7
method = "npl"
gamma = 1
bounds = [0, 1.5]
sizes = [2, 3]

[data]
file = "toy.csv"
weights = [1, 2.5]

[model.gmm]
K = 3
variance_floor = 1

[prior]
alpha = 1
T = 100
base = { normal = { mean = 0, sd = 1 } }

[sampler]
B = 100
R = 10

[sampler.init]
pi = { dirichlet = { weight = 1 } }
mu = { normal = { mean = 0, sd = 2.0 } }
"#;

fn sets(list: &[&str]) -> Vec<String> {
    list.iter().map(|s| s.to_string()).collect()
}

fn decode(text: &str, overrides: &[&str]) -> Result<Root, Problems> {
    Document::parse("configs/x.toml", text, &sets(overrides))?.decode()
}

/// The report on a good file after one replacement.
fn edited(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from:?}");
    report(&GOOD.replacen(from, to, 1), &[])
}

fn report(text: &str, overrides: &[&str]) -> String {
    decode(text, overrides).expect_err("problems").to_string()
}

#[track_caller]
fn assert_has(report: &str, part: &str) {
    assert!(report.contains(part), "no {part:?} in\n{report}");
}

/// The only line of a report on an override.
fn overridden(set: &str) -> String {
    let text = report(GOOD, &[set]);
    assert_eq!(text.lines().filter(|l| !l.contains("= help")).count(), 1, "{text}");
    text
}

#[test]
fn good_file_decodes_with_integers_as_numbers() {
    let root = decode(GOOD, &[]).unwrap();
    assert_eq!(root.prior.unwrap().alpha, NonNegative(1.0));
    assert_eq!(root.bounds, Some((0.0, 1.5)));
    assert_eq!(root.data.weights, Some(vec![1.0, 2.5]));
    assert!(matches!(root.gamma, Some(Gamma::Number(1.0))));
    assert!(matches!(root.model, Model::Gmm { K: Count(3), variance_floor: Some(Positive(1.0)) }));
}

#[test]
fn three_mistakes_give_three_problems_with_places_and_hints() {
    let text =
        GOOD.replace("alpha = 1", "alpah = 1").replace("B = 100", "B = 0").replace("R = 10", "R = \"ten\"");
    let problems = decode(&text, &[]).unwrap_err();
    assert_eq!(problems.len(), 3);
    let keys: Vec<_> = problems.iter().map(|p| p.key.as_str()).collect();
    assert_eq!(keys, ["prior.alpah", "sampler.B", "sampler.R"]);
    let expected = r#"configs/x.toml:17:1: unknown key `prior.alpah`; did you mean `alpha`?
 17 | alpah = 1
    | ^^^^^
configs/x.toml:22:5: `sampler.B` must be an integer of at least 1, not 0
 22 | B = 0
    |     ^
configs/x.toml:23:5: `sampler.R` must be an integer of at least 1, not the string "ten"
 23 | R = "ten"
    |     ^^^^^"#;
    assert_eq!(problems.to_string(), expected);
}

#[test]
fn missing_key_is_reported_at_the_header_with_help() {
    let expected = "configs/x.toml:16:1: missing key `prior.alpha` in [prior]\n 16 | [prior]\n    | ^^^^^^^\n    \
                    = help: Strength of the prior.";
    assert_eq!(edited("alpha = 1\n", ""), expected);
}

#[test]
fn missing_choice_names_what_there_is_to_choose_from() {
    let text = edited("method = \"npl\"\n", "");
    assert_has(&text, "1:1: missing key `method` at the top of the file");
    assert_has(&text, "= help: It must be one of `\"npl\"`, `\"loss-likelihood\"`, `\"bootstrap\"`");
}

#[test]
fn missing_key_of_the_root_is_reported_at_the_top() {
    let expected =
        "configs/x.toml:1:1: missing key `name` at the top of the file\n    = help: Name of the run.";
    assert_eq!(edited("name = \"toy\"\n", ""), expected);
    assert_eq!(decode("", &[]).unwrap_err().len(), 5);
}

#[test]
fn unknown_key_is_not_entered() {
    let text = edited("[prior]\n", "[prior]\nextra = { alpha = 1979-05-27, b = nan }\n");
    assert_eq!(text.matches("configs/x.toml:").count(), 1, "{text}");
    assert_has(&text, "17:1: unknown key `prior.extra`\n");
}

#[test]
fn misplaced_key_is_told_its_table() {
    let text = edited("seed = 7", "B = 7");
    assert_has(&text, "configs/x.toml:2:1: unknown key `B`");
    assert_has(&text, "= help: `B` belongs in [sampler]");
    let text = edited("[data]", "[data]\nK = 2\nseed = 3");
    assert_has(&text, "= help: `K` belongs in [model.gmm]");
    assert_has(&text, "= help: `seed` belongs at the top of the file, before the first [table]");
    assert_has(&edited("seed = 7", "sd = 7"), "belongs in [prior.base.normal]");
}

#[test]
fn a_key_already_written_is_not_the_first_hint() {
    let text = edited("alpha = 1", "alpha = 1\nt = 5");
    assert_has(&text, "unknown key `prior.t`; did you mean `T`?");
}

#[test]
fn unknown_variant_lists_the_variants() {
    let text = edited("[model.gmm]", "[model.gmn]");
    let line =
        "12:8: unknown key `model.gmn`; did you mean `gmm`? (one of `gmm`, `mean`, `quantile`, `fixed`)";
    assert_has(&text, line);
    assert_eq!(text.matches("configs/x.toml:").count(), 1, "{text}");
}

#[test]
fn two_variants_are_one_problem() {
    let text = edited("[prior]", "[model.mean]\n\n[prior]");
    assert_has(&text, "16:8: `model` must have one key only, but has `gmm` and `mean`");
    assert_eq!(text.matches("configs/x.toml:").count(), 1, "{text}");
}

#[test]
fn empty_enum_table_names_its_variants() {
    let text = edited("[model.gmm]\nK = 3\nvariance_floor = 1", "[model]");
    assert_has(&text, "12:1: missing key in [model]: it needs `gmm` or `mean` or `quantile` or `fixed`");
}

#[test]
fn unit_variant_is_matched_to_the_nearest() {
    let text = edited("\"npl\"", "\"bootstarp\"");
    let line = "3:10: `method` must be one of `\"npl\"`, `\"loss-likelihood\"`, `\"bootstrap\"`, \
                not the string \"bootstarp\"; did you mean `bootstrap`?";
    assert_has(&text, line);
    assert_has(&overridden("method=3"), "not 3");
}

#[test]
fn string_naming_a_struct_variant_is_told_to_be_a_table() {
    let text = edited("{ normal = { mean = 0, sd = 1 } }", "\"normal\"");
    assert_has(
        &text,
        "19:8: `prior.base` must give `normal` as a table, `normal = { ... }`: write `base = {",
    );
}

#[test]
fn string_near_a_struct_variant_gets_a_hint() {
    let text = edited("{ normal = { mean = 0, sd = 1 } }", "\"nromal\"");
    let line = "`prior.base` must be `\"empirical\"` or a table with one of the keys `normal`, `uniform`, \
                not the string \"nromal\"; did you mean `normal`?";
    assert_has(&text, line);
}

#[test]
fn unit_variant_written_as_a_key_is_told_to_be_a_string() {
    let text = edited("{ normal = { mean = 0, sd = 1 } }", "{ empirical = {} }");
    assert_has(&text, "19:10: `prior.base.empirical` takes no table: write `base = \"empirical\"`");
    decode(&GOOD.replace("{ normal = { mean = 0, sd = 1 } }", "\"empirical\""), &[]).unwrap();
}

#[test]
fn wrong_type_of_an_enum_names_its_forms() {
    let line =
        "`prior.base` must be `\"empirical\"` or a table with one of the keys `normal`, `uniform`, not 3";
    assert_has(&edited("{ normal = { mean = 0, sd = 1 } }", "3"), line);
}

#[test]
fn untagged_value_follows_the_type_written() {
    for (value, ok) in [("0.5", true), ("\"1/n\"", true), ("[1, 2.5]", true), ("[]", true), ("true", false)] {
        assert_eq!(
            decode(&GOOD.replace("gamma = 1", &format!("gamma = {value}")), &[]).is_ok(),
            ok,
            "{value}"
        );
    }
    let line = "4:9: `gamma` must be a number or a list of numbers or `\"1/n\"`, not true";
    assert_has(&edited("gamma = 1", "gamma = true"), line);
    assert_has(
        &edited("gamma = 1", "gamma = [1, \"x\"]"),
        "4:13: `gamma[1]` must be a number, not the string \"x\"",
    );
    assert_has(&edited("gamma = 1", "gamma = \"1/m\""), "not the string \"1/m\"; did you mean `1/n`?");
}

#[test]
fn ranges_are_said_in_words() {
    let range = |set: &str| overridden(set).split_once("must be ").unwrap().1.to_owned();
    assert_eq!(range("model.gmm.variance_floor=0"), "a number greater than 0, not 0");
    assert_eq!(range("prior.alpha=-0.5"), "a number of at least 0, not -0.5");
    assert_eq!(range("model.quantile.q=1"), "a number strictly between 0 and 1, not 1");
    assert_eq!(range("prior.truncation=1.5"), "a number greater than 0 and at most 1, not 1.5");
    assert_eq!(range("sizes=[2, 6]"), "an integer between 2 and 5, not 6");
    assert_eq!(range("sampler.B=4294967296"), "an integer between 1 and 4294967295, not 4294967296");
    assert_eq!(range("sampler.B=10.0"), "an integer of at least 1, not 10.0");
    assert_eq!(range("seed=-1"), "an integer of at least 0, not -1");
}

#[test]
fn numbers_are_finite_and_fit() {
    for (text, shown) in [("nan", "nan"), ("-inf", "-inf"), ("1e999", "inf")] {
        let line = format!("`prior.alpha` must be a finite number of at least 0, not {shown}");
        assert_has(&overridden(&format!("prior.alpha={text}")), &line);
    }
    assert_has(&edited("seed = 7", "seed = 9223372036854775808"), "2:8: `seed` must be a number between -92");
    assert_has(&overridden("prior.alpha=0xffffffffffffffffff"), "not 0xffffffffffffffffff");
    decode(GOOD, &["seed=9223372036854775807"]).unwrap();
}

#[test]
fn dates_are_refused_everywhere() {
    assert_has(&overridden("name=1979-05-27"), "`name` must be a string, not a date or time");
    assert_has(&overridden("prior.alpha=07:32:00"), "must be a number of at least 0, not a date or time");
    assert_has(&overridden("gamma=[1979-05-27]"), "`gamma[0]` must be a number");
}

#[test]
fn lists_and_tuples_have_lengths() {
    let line = "5:10: `bounds` must be a list of 2 values, not one of 1 element";
    assert_has(&edited("[0, 1.5]", "[0]"), line);
    assert_has(&edited("[0, 1.5]", "[0, true]"), "`bounds[1]` must be a number, not true");
    assert_has(&edited("[2, 3]", "4"), "`sizes` must be a list of integers, not 4");
}

#[test]
fn maps_check_their_values() {
    let text = edited("sd = 2.0", "sd = 0");
    assert_has(&text, "27:34: `sampler.init.mu.normal.sd` must be a number greater than 0, not 0");
    assert_has(
        &overridden("sampler.init.\"a.b\"=3"),
        "`sampler.init.\"a.b\"` must be a table with one of the keys",
    );
}

#[test]
fn newtype_variant_is_entered() {
    let root = decode(GOOD, &["model={fixed={file='a'}}"]).unwrap();
    assert!(matches!(root.model, Model::Fixed(_)));
    assert_has(&overridden("model.fixed.fil=1"), "unknown key `model.fixed.fil`; did you mean `file`?");
}

#[test]
fn overrides_win_in_order_and_bare_words_are_strings() {
    let list = ["name=foo", "sampler.B=5", "sampler.B=6", "data.file=a b.csv", "verbose=true", "seed = 0x10"];
    let root = decode(GOOD, &list).unwrap();
    assert_eq!((root.name.as_str(), root.sampler.B, root.verbose), ("foo", Count(6), Some(true)));
    assert_eq!((root.data.file.to_str(), root.seed), (Some("a b.csv"), Some(16)));
}

#[test]
fn override_of_a_variant_replaces_its_siblings() {
    let model = |list: &[&str]| format!("{:?}", decode(GOOD, list).unwrap().model);
    assert_eq!(model(&["model.mean={}"]), "Mean");
    assert_eq!(model(&["model.quantile.q=0.5"]), "Quantile { q: OpenUnit(0.5) }");
    assert_eq!(model(&["model.mean={}", "model.quantile.q=0.5"]), "Quantile { q: OpenUnit(0.5) }");
    assert_eq!(
        model(&["model.mean={}", "model.gmm.K=9"]),
        "Gmm { K: Count(9), variance_floor: Some(Positive(1.0)) }"
    );
    let base = decode(GOOD, &["prior.base=empirical"]).unwrap().prior.unwrap().base;
    assert!(matches!(base, Some(Base::Empirical)));
}

#[test]
fn override_makes_missing_tables() {
    let bare = GOOD.replace("[prior]\nalpha = 1\nT = 100\nbase = { normal = { mean = 0, sd = 1 } }\n", "");
    assert_eq!(decode(&bare, &["prior.alpha=2"]).unwrap().prior.unwrap().alpha, NonNegative(2.0));
    let text = report(&bare, &["prior.T=2"]);
    assert_has(&text, "--set prior.T=2: missing key `prior.alpha` in [prior]");
}

#[test]
fn override_problems_have_no_excerpt_and_come_last() {
    let text = report(&GOOD.replace("R = 10", "R = 0"), &["sampler.B=0", "prior.alhpa=1", "name.x=2"]);
    let lines: Vec<&str> = text.lines().collect();
    assert_has(lines[0], "configs/x.toml:23:5: `sampler.R`");
    assert_eq!(lines[3], "--set sampler.B=0: `sampler.B` must be an integer of at least 1, not 0");
    assert_eq!(lines[4], "--set prior.alhpa=1: unknown key `prior.alhpa`; did you mean `alpha`?");
    assert_eq!(lines[5], "--set name.x=2: `name` must be a string, not a table");
}

#[test]
fn malformed_overrides_are_problems() {
    let problems =
        Document::parse("x", GOOD, &sets(&["foo", "=3", "a..b=1", "", "a b=1", "x\ny=1"])).err().unwrap();
    assert_eq!(problems.len(), 6);
    assert_has(&problems.to_string(), "--set foo: must have the form `key.path=value`");
    assert_has(&problems.to_string(), "--set x\\u{a}y=1: must");
    assert_eq!(split_override("a.\"b=c\".d=e=f"), Some((sets(&["a", "b=c", "d"]), "e=f")));
}

#[test]
fn syntax_errors_are_all_shown_one_a_line() {
    let problems = Document::parse("x.toml", "a = 1\na = 2\nb = [1 2 3\n[c\nd = zz\n", &[]).err().unwrap();
    let text = problems.to_string();
    assert_has(&text, "x.toml:2:1: invalid TOML: duplicate key\n  2 | a = 2\n    | ^\n");
    let lines: Vec<&str> = text.lines().filter(|l| l.starts_with("x.toml")).collect();
    assert!(lines.len() >= 2 && lines.len() == problems.len(), "{text}");
}

#[test]
fn too_large_a_file_is_refused() {
    let big = "#".repeat(Document::MAX_BYTES + 1);
    let text = Document::parse("x.toml", &big, &[]).err().unwrap().to_string();
    assert_eq!(text, "x.toml: the file has 1048577 bytes; at most 1048576 are read");
    assert!(Document::parse("x.toml", &big[1..], &[]).is_ok());
}

#[test]
fn many_problems_are_quick_and_cut_short() {
    let text: String = (0..20_000).map(|i| format!("key{i}=1\n")).collect();
    let problems = decode(&text, &[]).unwrap_err();
    assert_eq!(problems.len(), 20_005);
    assert!(problems.to_string().ends_with("... and 19975 more"));
    let line = format!("x = {{ {} }}", (0..20_000).map(|i| format!("k{i}=1")).collect::<Vec<_>>().join(","));
    assert!(report(&line, &[]).len() < 10_000);
}

#[test]
fn problems_can_be_placed_by_key() {
    let document = Document::parse("x.toml", GOOD, &sets(&["sampler.R=3"])).unwrap();
    let at = |key: &str| document.problems(vec![document.problem(key, "odd")]).to_string();
    assert_has(&at("prior.T"), "x.toml:18:5: odd");
    assert_has(&at("prior.absent.deeper"), "x.toml:16:1: odd");
    assert_has(
        &at("data.weights[1]"),
        "x.toml:10:15: odd\n 10 | weights = [1, 2.5]\n    |               ^^^",
    );
    assert_eq!(at("nowhere"), "x.toml:1:1: odd");
    assert_eq!(at("sampler.R"), "--set sampler.R=3: odd");
    assert!(document.has("prior.T") && document.has("sampler.R") && document.has("model.gmm"));
    assert!(!document.has("prior.truncation") && !document.has("prior.T.x") && !document.has("model.mean"));
}

#[test]
fn what_serde_finds_is_placed_by_its_key() {
    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(try_from = "f64")]
    struct Even(f64);
    impl TryFrom<f64> for Even {
        type Error = String;
        fn try_from(x: f64) -> Result<Even, String> {
            if x % 2.0 == 0.0 { Ok(Even(x)) } else { Err("must be even".to_owned()) }
        }
    }
    #[derive(Debug, Deserialize, JsonSchema)]
    struct Outer {
        inner: BTreeMap<String, Even>,
    }
    let document = Document::parse("x.toml", "[inner]\na = 2\nb = 3\n", &[]).unwrap();
    let text = document.decode::<Outer>().unwrap_err().to_string();
    assert_has(&text, "x.toml:3:5: `inner.b`: must be even\n  3 | b = 3");
}

#[test]
fn foreign_text_is_printable() {
    let text = edited("\"npl\"", "\"\\u001b[31m\u{202e}evil\"");
    assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'), "{text}");
    assert_has(&text, "the string \"\\u{1b}[31m\\u{202e}evil\"");
    assert_eq!(printable("a\tb\u{85}\u{7f}é"), "a\\u{9}b\\u{85}\\u{7f}é");
}

#[test]
fn columns_count_characters_and_carets_align() {
    let text = edited(
        "base = { normal = { mean = 0, sd = 1 } }",
        "base = { normal = { mean = 0,\t\"é\u{200f}\" = 1, sd = 0 } }",
    );
    assert_has(&text, "19:31: unknown key");
    assert_has(&text, "19:46: `prior.base.normal.sd` must be a number greater than 0, not 0");
    let marked: Vec<&str> =
        text.lines().skip_while(|l| !l.contains("`prior.base.normal.sd`")).skip(1).collect();
    let caret = marked[1].chars().position(|c| c == '^').unwrap();
    assert_eq!(marked[0].chars().nth(caret), Some('0'), "{text}");
}

#[test]
fn long_lines_are_clipped_around_the_caret() {
    let long = format!("sizes = [{}9, {}3]", "2, ".repeat(100), "3, ".repeat(100));
    let text = edited("sizes = [2, 3]", &long);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[1].chars().count() < 115 && lines[1].contains('…'), "{text}");
    let caret = lines[2].chars().position(|c| c == '^').unwrap();
    assert_eq!(lines[1].chars().nth(caret), Some('9'), "{text}");
}

/// Checks that the schema of `T` refuses exactly what its `try_from` refuses.
fn agree<T: DeserializeOwned + JsonSchema + 'static>(values: &[&str]) {
    #[derive(Deserialize, JsonSchema)]
    struct One<T> {
        x: T,
    }
    for value in values {
        let text = format!("x = {value}");
        let found = Document::parse("x.toml", &text, &[]).unwrap().decode::<One<T>>();
        let by_serde = toml::from_str::<One<T>>(&text).is_ok();
        assert_eq!(found.is_ok(), by_serde, "{value}");
        if let Err(problems) = found {
            assert_has(&problems.to_string(), "`x` must be");
        }
    }
}

#[test]
fn schema_and_try_from_agree_on_ranges() {
    let floats = ["-1.0", "-0.0", "0.0", "5e-324", "0.5", "0.9999999999999999", "1.0", "1.0000000000000002"];
    let wild = ["2.0", "1e308", "-1e308", "nan", "inf", "-inf", "\"x\"", "true", "[1.0]"];
    let all: Vec<&str> = floats.into_iter().chain(wild).collect();
    agree::<Positive>(&all);
    agree::<NonNegative>(&all);
    agree::<Probability>(&all);
    agree::<OpenUnit>(&all);
    agree::<HalfOpen>(&all);
    let integers =
        ["-1", "0", "1", "2", "5", "6", "4294967295", "4294967296", "9223372036854775807", "1.0", "\"1\""];
    agree::<Count>(&integers);
    agree::<Few>(&integers);
}

struct Xorshift(u64);

impl Xorshift {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n.max(1) as u64) as usize
    }
}

/// One random edit of a text.
fn mutate(text: &str, random: &mut Xorshift) -> String {
    const BITS: [&str; 24] = [
        "0",
        "-1",
        "1e999",
        "nan",
        "\"",
        "'",
        "{",
        "}",
        "[",
        "]",
        "=",
        ".",
        ",",
        "\n",
        "\t",
        "é",
        "\u{202e}",
        "\"1/n\"",
        "1979-05-27",
        "true",
        "99999999999999999999",
        "mean",
        "gmm",
        "\u{0}",
    ];
    let mut chars: Vec<String> = text.chars().map(String::from).collect();
    let mut lines: Vec<&str> = text.lines().collect();
    let (at, line, other) = (random.below(chars.len()), random.below(lines.len()), random.below(lines.len()));
    match random.below(6) {
        0 => drop(chars.remove(at)),
        1 => chars.insert(at, BITS[random.below(BITS.len())].to_owned()),
        2 => chars[at] = BITS[random.below(BITS.len())].to_owned(),
        kind => {
            match kind {
                3 => lines.swap(line, other),
                4 => drop(lines.remove(line)),
                _ => lines.insert(line, lines[other]),
            }
            let value = BITS[random.below(BITS.len())];
            let replaced = lines.iter().enumerate().map(|(i, l)| match l.split_once('=') {
                Some((key, _)) if i == other && kind == 3 => format!("{key}= {value}\n"),
                _ => format!("{l}\n"),
            });
            return replaced.collect();
        }
    }
    chars.concat()
}

#[test]
fn mutated_files_never_panic_and_serde_accepts_what_the_schema_accepts() {
    let mut random = Xorshift(0x9e37_79b9_7f4a_7c15);
    let schema = SchemaSettings::draft07().into_generator().into_root_schema_for::<Root>().to_value();
    let (mut accepted, mut checked) = (0, 0);
    for round in 0..2000 {
        let mut text = GOOD.to_owned();
        for _ in 0..=round % 3 {
            text = mutate(&text, &mut random);
        }
        let set = mutate("model.quantile.q=0.5", &mut random);
        let list = if round % 4 == 0 { vec![set] } else { Vec::new() };
        let document = match Document::parse("x.toml", &text, &list) {
            Ok(document) => document,
            Err(problems) => {
                assert!(!problems.to_string().is_empty());
                continue;
            }
        };
        checked += 1;
        match document.decode::<Root>() {
            Ok(_) => accepted += 1,
            Err(problems) => {
                assert!(schema_check::check(&schema, &document.root).is_err(), "{problems}\n{text}");
                assert!(!problems.is_empty() && !problems.to_string().contains('\u{202e}'));
            }
        }
    }
    assert!(accepted > 100 && checked > accepted + 100, "{accepted} of {checked}");
}

#[test]
fn deep_nesting_is_a_problem_and_not_a_crash() {
    let dotted = format!("a{}=1", ".a".repeat(60_000));
    let header = format!("[a{}]", ".a".repeat(400_000));
    let list = format!("a={}{}", "[".repeat(400_000), "]".repeat(400_000));
    for text in [&dotted, &header, &list] {
        assert!(Document::parse("x.toml", text, &[]).is_err());
    }
    assert!(Document::parse("x.toml", "", std::slice::from_ref(&dotted)).is_err());
    assert!(decode("", &[&list[..100_000]]).is_err());
}

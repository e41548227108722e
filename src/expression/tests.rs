use std::collections::BTreeMap;

use ndarray::Array2;

use super::*;
use crate::kernel::{Line, Panel};

/// Columns a, b, c of some rows, c also a text; θ is s (a number), v (three entries) and beta (as many as columns).
struct Rows {
    cells: Array2<f64>,
    panel: Panel,
}

impl Columns for Rows {
    fn n(&self) -> usize {
        self.cells.nrows()
    }

    fn cell(&self, i: usize, j: usize) -> f64 {
        self.cells[[i, j]]
    }
}

fn noise(i: usize) -> f64 {
    ((i * 7919 + 13) % 997) as f64 / 500.0 - 1.0
}

fn rows(n: usize) -> Rows {
    let mut cells = Array2::from_shape_fn((n, 3), |(i, j)| noise(3 * i + j));
    (0..n).for_each(|i| cells[[i, 2]] = (i % 3) as f64);
    let panel = Panel::new(cells.view());
    Rows { cells, panel }
}

fn prepare<'a>(program: &Program, rows: &'a Rows) -> Prepared<'a> {
    Prepared::new(program, rows, Some(&rows.panel))
}

fn scope() -> Scope {
    let numbers = |from: usize, count: usize| (from..from + count).map(Leaf::Parameter).collect::<Vec<_>>();
    let mut names = BTreeMap::from([
        ("a".to_owned(), Meaning::Number(Leaf::Column(0))),
        ("b".to_owned(), Meaning::Number(Leaf::Column(1))),
        ("c".to_owned(), Meaning::Number(Leaf::Column(2))),
        ("word".to_owned(), Meaning::Text(Leaf::Column(2), ["x", "y", "z"].map(String::from).to_vec())),
        ("x".to_owned(), Meaning::Vector((0..3).map(Leaf::Column).collect())),
        ("s".to_owned(), Meaning::Number(Leaf::Parameter(0))),
        ("v".to_owned(), Meaning::Vector(numbers(1, 3))),
        ("beta".to_owned(), Meaning::Vector(numbers(4, 3))),
        ("odd-name".to_owned(), Meaning::Number(Leaf::Parameter(1))),
        ("both".to_owned(), Meaning::Two("a column and a parameter".into())),
    ]);
    (1..=3).for_each(|k| drop(names.insert(format!("v.{k}"), Meaning::Number(Leaf::Parameter(k)))));
    Scope {
        names,
        covariates: vec![0, 1, 2],
        known: "a column, a parameter or a constant",
        hints: Vec::new(),
    }
}

const THETA: [f64; 7] = [0.7, 0.3, -1.1, 1.9, 0.25, -0.4, 0.8];

fn program(text: &str) -> Result<Program, Fault> {
    let (scope, node) = (scope(), parse(text)?);
    let mut compiler = Compiler::new(&scope);
    let root = compiler.scalar(&node)?;
    Ok(Program::new(compiler.tape, vec![root]))
}

/// In row 4.
fn value(text: &str) -> f64 {
    let program = program(text).unwrap_or_else(|fault| panic!("{text}: {fault} at {:?}", fault.span));
    let rows = rows(9);
    let mut out = vec![0.0; 9];
    program.each_row(0, &THETA, &Prepared::new(&program, &rows, Some(&rows.panel)), &mut out);
    out[4]
}

#[test]
fn values_are_those_of_the_definition() {
    let (a, b, c) = (noise(12), noise(13), 1.0);
    let [s, v1, v2, v3, ..] = THETA;
    let dot = THETA[4] * a + THETA[5] * b + THETA[6] * c;
    for (text, wanted) in [
        ("1 + 2*3", 7.0),
        ("-2^2", -4.0),
        ("2^-1", 0.5),
        ("2^3^2", 512.0),
        ("(1 + 2)*3 - 4/8", 8.5),
        ("1e-3 + .5", 0.501),
        ("not 1 < 2 or 3 == 3", 1.0),
        ("1 <= 1 and 2 >= 3", 0.0),
        ("a + b*c", a + b * c),
        ("s*a", s * a),
        ("dot(beta, x)", dot),
        ("dot(x, 2*beta)", 2.0 * dot),
        ("dot(v, [a, b, 1])", v1 * a + v2 * b + v3),
        ("sum(v*x)", v1 * a + v2 * b + v3 * c),
        ("mean(v) + v.2", (v1 + v2 + v3) / 3.0 + v2),
        ("max(v) - min(v)", v3 - v2),
        ("max(a, b, 0)", a.max(b).max(0.0)),
        ("logsumexp(v)", (v1.exp() + v2.exp() + v3.exp()).ln()),
        ("logsumexp(1000, 1000)", 1000.0 + 2f64.ln()),
        ("sq(a - s)", (a - s) * (a - s)),
        ("huber(a - s, 0.1) + huber(0.05, 0.1)", 0.1 * ((a - s).abs() - 0.05) + 0.00125),
        ("if(a < b, a, b)", a.min(b)),
        ("let z = a - s; let w = z*z; w + z", (a - s) * (a - s) + a - s),
        ("`odd-name`*2", 2.0 * v1),
        ("word == 'y'", 1.0),
        ("'q' == word", 0.0),
        ("if(word != \"z\", 'u', 'w') == 'u'", 1.0),
        ("if(a > 5, 'u', word) == 'y'", 1.0),
        ("pi", std::f64::consts::PI),
        (
            "normal_lpdf(a, s, 2)",
            -0.5 * ((a - s) / 2.0).powi(2) - 2f64.ln() - 0.5 * (2.0 * std::f64::consts::PI).ln(),
        ),
        ("student_lpdf(1.5, 1, 0, 1)", -(std::f64::consts::PI * 3.25).ln()),
        ("lgamma(4.5) + digamma(2) + erf(0.3)", libm::lgamma(4.5) + 0.422_784_335_098_467_1 + libm::erf(0.3)),
        ("(2*c)^s", 2f64.powf(s)),
    ] {
        let found = value(text);
        assert!((found - wanted).abs() < 1e-13 * wanted.abs().max(1.0), "{text}: {found} for {wanted}");
    }
}

const LOSSES: [&str; 12] = [
    "sq(a - s)",
    "abs(a - s)",
    "softplus(dot(beta, x)) - c*dot(beta, x)",
    "-student_lpdf(a, exp(v.1), dot(beta, x), exp(s))",
    "-normal_lpdf(b, s, softplus(v.3))",
    "huber(a - dot(beta, x), exp(v.2))",
    "logsumexp(v.1 + a, v.2 + b, dot(v, beta)*c)",
    "if(a < s, sq(a - s), 3*abs(a - s)) + min(v)*b + max(a, v.1)",
    "exp(s)*c^exp(v.1) + tanh(a*s)/(1 + expit(b*v.2)) + log1p(sq(s*b)) + expm1(0.1*s*a)",
    "sqrt(1 + sq(a*s)) + lgamma(exp(s) + c) + digamma(exp(v.1))*b + erf(s*a) + (1 + c)^-3*s",
    "let r = a - dot(beta, x); let w = exp(-s); r*r*w + s",
    "sum((x - beta)^2) + mean(abs(v))*b",
];

/// Rows of several origins, several points at once: derivatives are central differences of the sum, and a point has the same bits
/// alone.
#[test]
fn gradients_are_derivatives_of_the_weighted_sum() {
    let (first, second) = (rows(531), rows(7));
    let weights: Vec<Vec<Line>> =
        (0..3).map(|s| in_lines(&(0..531).map(|i| 1.1 + noise(i + 37 * s)).collect::<Vec<_>>())).collect();
    let few = in_lines(&[0.3, 0.1, 0.0, 2.0, 0.5, 0.25, 1.0]);
    for text in LOSSES {
        let mut scope = scope();
        scope.covariates = vec![0, 1, 2];
        let mut compiler = Compiler::new(&scope);
        let roots =
            [text, "sum(sq(beta)) + abs(s)"].map(|text| compiler.scalar(&parse(text).unwrap()).unwrap());
        let program = Program::new(compiler.tape, roots.to_vec());
        let (on_first, on_second) = (prepare(&program, &first), prepare(&program, &second));
        let evaluate = |thetas: &[Vec<f64>], seeds: &[usize]| {
            let on = |s: usize| {
                let first = Weighted { rows: &on_first, weights: &weights[s] };
                vec![first, Weighted { rows: &on_second, weights: &few }]
            };
            let points: Vec<Point> =
                thetas.iter().zip(seeds).map(|(theta, &s)| Point { theta, on: on(s) }).collect();
            let mut gradients = vec![vec![0.0; 7]; thetas.len()];
            let values = program.add(&points, 0.3, &mut gradients);
            (values, gradients)
        };
        let thetas: Vec<Vec<f64>> =
            (0..3).map(|s| THETA.iter().map(|t| t + 0.0107 * s as f64 + 0.0003).collect()).collect();
        let (values, gradients) = evaluate(&thetas, &[0, 1, 2]);
        for s in 0..3 {
            let (alone, gradient) = evaluate(&thetas[s..=s], &[s]);
            assert_eq!((alone[0], &gradient[0]), (values[s], &gradients[s]), "{text}");
        }
        for j in 0..7 {
            let at = |by: f64| {
                let mut theta = thetas[1].clone();
                theta[j] += by;
                evaluate(&[theta], &[1]).0[0]
            };
            let wanted = (at(1e-6) - at(-1e-6)) / 2e-6;
            let scale = wanted.abs().max(values[1].abs()).max(1.0);
            // A kink within the step of one row moves the difference, not the derivative.
            assert!(
                (gradients[1][j] - wanted).abs() < 2e-5 * scale,
                "{text}, {j}: {} for {wanted}",
                gradients[1][j]
            );
        }
    }
}

/// Against differences of the exact gradient: margins, several of them, parameters by themselves and both at once.
#[test]
fn second_derivatives_are_derivatives_of_the_gradient() {
    for text in [
        "let eta = s + dot(beta, x); softplus(eta) - c*eta",
        "sqrt(1 + (a - s)^2) + tanh(s*b)",
        "-student_lpdf(a, 4 + s^2, v.1, exp(v.2))",
        "logsumexp([0, dot(beta, x), s + dot(v, x)]) - c*dot(v, x)",
        "exp(s*b)*log(2 + s*s) + expm1(v.1*a)/(1 + v.2^2) + log1p(v.3^2)*b",
        "lgamma(2 + s^2 + a^2) + erf(s*a - v.1) + expit(v.2*v.3*b)",
        "(2 + a^2)^(s*v.3) + (1.5 + s^2)^a + v.1^3*v.2^-2",
        "if(a < b, sq(s - a)*v.1, exp(v.2*s))",
        "huber(a - s - dot(beta, x), 0.6)*v.3",
        "v.1*sq(dot(v, x) - s)",
        "abs(a)*s^2 + max(a, b)*sq(v.1 - s) + min(a, 0.3)*s",
    ] {
        let program = program(text).unwrap_or_else(|fault| panic!("{text}: {fault} at {:?}", fault.span));
        let second = Second::new(&program).unwrap_or_else(|| panic!("{text}"));
        let rows = rows(300);
        let (prepared, curved) = (prepare(&program, &rows), prepare(second.program(), &rows));
        let weights = in_lines(&(0..300).map(|i| 0.002 + 0.001 * noise(i + 7).abs()).collect::<Vec<_>>());
        let h = second.hessian(At::Here(&THETA), &[Weighted { rows: &curved, weights: &weights }], false);
        let gradient = |theta: &[f64]| {
            let mut by_theta = [vec![0.0; 7]];
            let on = vec![Weighted { rows: &prepared, weights: &weights }];
            program.add(&[Point { theta, on }], 0.0, &mut by_theta);
            let [by_theta] = by_theta;
            by_theta
        };
        for i in 0..7 {
            let moved = |by: f64| {
                let mut theta = THETA;
                theta[i] += by;
                gradient(&theta)
            };
            let (up, down) = (moved(1e-5), moved(-1e-5));
            for j in 0..7 {
                let wanted = (up[j] - down[j]) / 2e-5;
                // Differences lose half the digits; rows that cross the bend of a Huber loss on the way count for it, too.
                let within = if text.contains("huber") { 3e-3 } else { 1e-7 * wanted.abs().max(1.0) };
                assert!(
                    (h[[i, j]] - wanted).abs() < within,
                    "{text} by {i}, {j}: {} for {wanted}",
                    h[[i, j]]
                );
                assert_eq!(h[[i, j]], h[[j, i]], "{text}");
            }
        }
    }
}

/// What has no second derivative on a tape, or too many inputs, is left to gradients.
#[test]
fn second_derivatives_are_only_where_they_are_known() {
    for text in ["digamma(2 + s^2)*a", "sq(dot(2*beta, x))"] {
        assert!(Second::new(&program(text).unwrap()).is_none(), "{text}");
    }
}

/// Terms of single entries and their derivatives; what is of several is left.
#[test]
fn a_penalty_is_taken_apart() {
    let both = |text: &str| {
        let (scope, mut found) = (scope(), Vec::new());
        let mut compiler = Compiler::new(&scope);
        let root = compiler.scalar(&parse(text).unwrap()).unwrap();
        let separate = Separate::new(&Program::new(compiler.tape, vec![root]), 0, |j| j > 0);
        separate.slopes(&[&THETA], |_, j, slopes| found.push((j, slopes)));
        (found, separate.is_whole)
    };
    let (found, whole) = both("1.5*sum(log(1 + beta^2/2)) - sq(v.1)/4");
    let student = |b: f64| [1.5 * 2.0 * b / (2.0 + b * b), 3.0 * (2.0 - b * b) / (2.0 + b * b).powi(2)];
    let wanted = [(4, student(0.25)), (5, student(-0.4)), (6, student(0.8)), (1, [-0.15, -0.5])];
    assert!(whole && found.len() == 4);
    for (j, [slope, bend]) in wanted {
        let (_, [a, b]) = found.iter().find(|(k, _)| *k == j).unwrap();
        assert!((a - slope).abs() < 1e-14 && (b - bend).abs() < 1e-14, "{j}: {a} {b} for {slope} {bend}");
    }
    let (found, whole) = both("sq(s) + v.1*v.2 + exp(v.3)");
    assert!(!whole && found.len() == 1 && found[0].0 == 3, "{found:?}");
}

#[test]
fn what_rows_or_parameters_decide_alone_is_not_computed_for_both() {
    let program = program("log(exp(a) + 2)*s + exp(s)*b + exp(s)").unwrap();
    // log(exp(a) + 2)·s, exp(s)·b, and two sums.
    assert_eq!(program.of_both.len(), 4);
    assert_eq!(program.columns.len(), 2);
    assert_eq!(program.depends(0), (true, true));
}

/// A branch that is not taken may be infinite, and its derivatives too.
#[test]
fn what_is_not_looked_at_does_not_count() {
    let program = program("if(a > 10, log(s - 5), s*a)").unwrap();
    let (rows, weights) = (rows(16), in_lines(&[0.0625; 16]));
    let prepared = prepare(&program, &rows);
    let mut gradient = vec![vec![0.0; 7]];
    let point = Point { theta: &THETA, on: vec![Weighted { rows: &prepared, weights: &weights }] };
    let value = program.add(&[point], 0.0, &mut gradient)[0];
    let mean = (0..16).map(|i| rows.cells[[i, 0]]).sum::<f64>() / 16.0;
    assert!((value - 0.7 * mean).abs() < 1e-15 && (gradient[0][0] - mean).abs() < 1e-15);
}

/// Text, first character of the fault, and what it says.
const WRONG: [(&str, usize, &str); 44] = [
    ("", 0, "expected a number, a name or `(`, found the end"),
    ("1 +", 3, "expected a number, a name or `(`, found the end"),
    ("1 2", 2, "expected an operator or the end, found `2`"),
    ("(1 + 2", 6, "expected `)` to close the bracket, found the end"),
    ("1 + 2)", 5, "expected an operator or the end, found `)`"),
    ("sq(a", 4, "expected `,` or `)`, found the end"),
    ("sq(a,)", 5, "expected a number, a name or `(`, found `)`"),
    ("2a", 1, "expected an operator after the number"),
    ("1.2.3", 3, "expected an operator after the number"),
    ("1e999", 0, "expected a number that a double can hold"),
    ("a & b", 2, "the word is `and`"),
    ("a && b", 2, "the word is `and`"),
    ("a | b", 2, "the word is `or`"),
    ("!a", 0, "the word is `not`"),
    ("a % 2", 2, "there is no remainder"),
    ("{a}", 0, "brackets are round"),
    ("a − b", 2, "the minus sign is `-`"),
    ("a = b", 2, "`==` compares"),
    ("a < b < c", 6, "two numbers are compared at a time"),
    ("a + * b", 4, "expected a number, a name or `(`, found `*`"),
    ("'abc", 0, "a text in quotes begins here and has no end"),
    ("`abc", 0, "a name in backticks begins here and has no end"),
    ("``", 0, "expected a name between the backticks"),
    ("let = 2; a", 4, "expected a name after `let`, found `=`"),
    ("let z 2; a", 6, "expected `=` after the name of a definition"),
    ("let z = 2 a", 10, "expected `;` after a definition"),
    ("let and = 2; a", 4, "`and` is a word of the language"),
    ("let z = 2;", 10, "expected a number, a name or `(`, found the end"),
    ("aa", 0, "`aa` is not a column, a parameter or a constant"),
    ("bet*a", 0, "did you mean `beta`?"),
    ("sqr(a)", 0, "`sqr` is no function; did you mean `sqrt`?"),
    ("a(b)", 0, "`a` is no function; a product needs `*`"),
    ("log*a", 0, "called with brackets"),
    ("exp(a, b)", 0, "`exp` takes one number or vector, and 2 arguments are given"),
    ("huber(a)", 0, "`huber` takes a residual and the bend, and 1 argument is given"),
    ("v", 0, "expected a single number, and this is a vector with 3 entries"),
    ("dot(v, [1, 2])", 0, "these have 3 and 2 entries"),
    ("v + [1, 2]", 0, "these have 3 and 2 entries"),
    ("sum(a)", 4, "`sum` takes a vector, and this is a number"),
    ("[]", 0, "expected the entries of a vector"),
    ("both + 1", 0, "`both` is a column and a parameter; rename one of them"),
    ("word + 1", 0, "texts can be compared by `==` and `!=` only"),
    ("log('a')", 4, "this is a text"),
    ("if(v, 1, 2)", 3, "a condition is a single number"),
];

#[test]
fn mistakes_are_pointed_at() {
    for (text, at, says) in WRONG {
        let fault = program(text).err().unwrap_or_else(|| panic!("{text:?} is accepted"));
        assert_eq!(fault.span.start, at, "{text:?}: {fault}");
        assert!(fault.message.contains(says), "{text:?}: {fault}");
    }
}

#[test]
fn what_is_too_large_is_refused() {
    let deep = format!("{}a{}", "(".repeat(5000), ")".repeat(5000));
    let long = vec!["a"; 300].join(" + ");
    let wide = format!("[{}]", vec!["a"; 5000].join(","));
    for (text, says) in [
        (deep, "nested too deeply"),
        (long, "nested too deeply"),
        (wide, "at most 4000 parts"),
        ("-".repeat(3000) + "a", "nested too deeply"),
        ("a".repeat(30_000), "at most 20000"),
    ] {
        let fault = program(&text).unwrap_err();
        assert!(fault.message.contains(says), "{fault}");
    }
    // Vectors that grow by being joined to themselves.
    let doubling: String = (0..40).map(|k| format!("let w{} = [w{k}, w{k}]; ", k + 1)).collect();
    let fault = program(&format!("let w0 = v; {doubling} sum(exp(w40 + a))")).unwrap_err();
    assert!(fault.message.contains("too large"), "{fault}");
}

/// Whatever the characters, parsing and compiling end, and faults lie within the text.
#[test]
fn any_text_is_accepted_or_refused() {
    let mut state = 88_172_645_463_325_252u64;
    let mut next = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let pieces = [
        "a",
        "b",
        "v",
        "x",
        "beta",
        "s",
        "word",
        "1",
        "2.5",
        "1e3",
        "+",
        "-",
        "*",
        "/",
        "^",
        "(",
        ")",
        "[",
        "]",
        ",",
        ";",
        "=",
        "==",
        "<",
        ">=",
        "and",
        "or",
        "not ",
        "let ",
        "z",
        "'y'",
        "\"",
        "`",
        "if(",
        "sq(",
        "dot(",
        "max(",
        "logsumexp(",
        " ",
        "é",
        "\u{0}",
        "~",
        ":",
        "v.1",
        ".",
        "e",
        "0",
        "student_lpdf(",
        "_",
    ];
    let corpus: Vec<String> =
        LOSSES.iter().chain(WRONG.iter().map(|(text, ..)| text)).map(|t| t.to_string()).collect();
    let mut accepted = 0;
    for round in 0..40_000 {
        let text: String = if round % 2 == 0 {
            (0..1 + next(14)).map(|_| pieces[next(pieces.len())]).collect()
        } else {
            let mut chars: Vec<char> = corpus[next(corpus.len())].chars().collect();
            for _ in 0..1 + next(3) {
                let (at, piece) = (next(chars.len() + 1), pieces[next(pieces.len())]);
                let cut = next(3).min(chars.len() - at);
                drop(chars.splice(at..at + cut, piece.chars()));
            }
            chars.into_iter().collect()
        };
        match program(&text) {
            Ok(_) => accepted += 1,
            Err(fault) => assert!(fault.span.start <= text.chars().count(), "{text:?}"),
        }
    }
    assert!(accepted > 500, "{accepted}");
}

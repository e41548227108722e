//! What strangers may have written, changed at random: readers answer or refuse, and what they answer holds together. Every file of
//! `fuzz/corpus` is tried, and a few changes of each; `NPL_FUZZ_SECONDS=600 cargo test --release --test program fuzz::` goes on
//! for as long with each target. What brings one down is kept in the corpus of its target, and tried ever after.

use std::any::Any;
use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use ndarray::Array2;
use npl::bytes::Bytes;
use npl::config::Document;
use npl::data::columns;
use npl::data::formula::Formula;
use npl::data::incoming::{Incoming, Source};
use npl::data::preparation::{InputColumn, Preparations};
use npl::data::table::{Kind, Table};
use npl::data::text::{self, Categorical, Rules, Syntax};
use npl::data::{Format, read};
use npl::experiment::Experiment;
use npl::expression::{
    Columns, Compiler, Fault, Leaf, Meaning, Point, Prepared, Program, Scope, Weighted, in_lines, parse,
};
use npl::kernel::Panel;
use npl::run::Chunk;
use npl::store::{self, Part};
use sha2::{Digest, Sha256};

use crate::support::patience;
use crate::tempfile::tempdir;

/// Tries some bytes; whether they were accepted.
type Target = fn(&[u8]) -> bool;

/// Changes of every file of a corpus that are tried each time.
const CHANGES: u64 = 100;
/// One input may take so long, and longer where others are at work: none needs a hundredth of it.
const SLOW: Duration = Duration::from_secs(10);

/// Whatever text is in a document: accepted, it can be written and read again and is the same.
fn config(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let decoded =
        |text: &str| -> Option<Experiment> { Document::parse("f.toml", text, &[]).ok()?.decode().ok() };
    let Some(experiment) = decoded(text) else { return false };
    let written = toml::to_string(&experiment).expect("what was read can be written");
    assert_eq!(decoded(&written), Some(experiment), "{written}");
    true
}

/// A table has what its width and rows say, and no cell but numbers, known levels and missing ones.
fn holds_together(table: &Table) {
    assert_eq!(table.cells.len(), table.rows() * table.width());
    assert_eq!((table.names.len(), table.kinds.len()), (table.width(), table.width()));
    assert!(table.names.iter().all(|name| !name.chars().any(char::is_control)), "{:?}", table.names);
    for (j, kind) in table.kinds.iter().enumerate() {
        let levels = if let Kind::Levels(levels) = kind { levels.names().len() } else { usize::MAX };
        assert!(
            table
                .column(j)
                .all(|v| v.is_nan() || v.is_finite() && (levels == usize::MAX || v < levels as f64))
        );
    }
}

fn accepted(read: npl::error::Result<Table>) -> bool {
    let table = match read {
        Ok(table) => table,
        Err(error) => {
            let message = error.to_string();
            assert!(message.contains("f.dat") && !message.contains('\u{1b}'), "{message:?}");
            return false;
        }
    };
    holds_together(&table);
    true
}

fn rules(syntax: Syntax) -> Rules {
    Rules { syntax, categorical: Categorical::Auto, missing: vec!["?".into()], ..Rules::default() }
}

fn csv(bytes: &[u8]) -> bool {
    let numbers = Rules { categorical: Categorical::Columns(Vec::new()), ..rules(Syntax::Delimited(b',')) };
    accepted(text::read(bytes, "f.dat", &rules(Syntax::Whitespace)));
    accepted(text::read(bytes, "f.dat", &numbers));
    accepted(text::read(bytes, "f.dat", &rules(Syntax::Delimited(b','))))
}

fn arff(bytes: &[u8]) -> bool {
    accepted(text::read(bytes, "f.dat", &rules(Syntax::Arff)))
}

fn file(bytes: &[u8], format: Format) -> npl::error::Result<Table> {
    let folder = tempdir().unwrap();
    let path = folder.path().join("f.dat");
    fs::write(&path, bytes).unwrap();
    read(&path, format, &rules(Syntax::Delimited(b','))).map(|(table, _)| table)
}

/// As it is, and with the seals that its blocks would have.
fn columns(bytes: &[u8]) -> bool {
    let levels = rules(Syntax::Delimited(b','));
    let numbers = Rules { categorical: Categorical::Columns(Vec::new()), rows: Some(3), ..levels.clone() };
    for rules in [&levels, &numbers] {
        accepted(columns::read(&columns::sealed_anew(bytes)[..], "f.dat", rules));
    }
    accepted(columns::read(bytes, "f.dat", &levels))
}

fn idx(bytes: &[u8]) -> bool {
    let table = file(bytes, Format::Idx);
    assert!(
        table.as_ref().map_or(0, |table| table.cells.len()) <= bytes.len(),
        "cells that no byte is behind"
    );
    accepted(table)
}

/// The bytes as they are, and within a sound gzip file.
fn gzip(bytes: &[u8]) -> bool {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(bytes).unwrap();
    let packed = packed.finish().unwrap();
    accepted(file(&packed, Format::Text));
    accepted(file(&packed, Format::Idx));
    accepted(file(bytes, Format::Text))
}

/// A part is as it was written or none. With a hash that fits, what is in it may still be anything.
fn part(bytes: &[u8]) -> bool {
    let found = Part::of_bytes(bytes.to_vec());
    if let Some(part) = &found {
        let mut other = bytes.to_vec();
        other[bytes.len() / 2] ^= 1;
        assert!(Part::of_bytes(other).is_none());
        contents(part);
    }
    let body = &bytes[..bytes.len().saturating_sub(40)];
    let mut sealed = [body, &(body.len() as u64).to_le_bytes()].concat();
    let hash = Sha256::digest(&sealed);
    sealed.extend_from_slice(&hash);
    Part::of_bytes(sealed).iter().for_each(contents);
    found.is_some()
}

fn contents(part: &Part) {
    for record in &part.records {
        let content = part.content(record);
        let _ = Chunk::of_bytes(content);
        let _ = Vec::<f64>::of_bytes(content);
        let _ = Vec::<Vec<f64>>::of_bytes(content);
    }
}

/// Rows that expressions and formulas are tried on: three numbers, of which the last is the code of a text.
struct Cells;

impl Columns for Cells {
    fn n(&self) -> usize {
        9
    }

    fn cell(&self, i: usize, j: usize) -> f64 {
        if j == 2 { (i % 3) as f64 } else { (i as f64 - 4.0) * [0.5, -1e3][j] }
    }
}

/// A place in a text that people are pointed to: within it, and with a reason that a terminal can show.
fn points(fault: &Fault, text: &str) -> bool {
    let length = text.chars().count();
    assert!(fault.span.start <= fault.span.end && fault.span.end <= length + 1, "{fault:?} in {text:?}");
    assert!(!fault.message.is_empty() && fault.message.len() < 4_000, "{fault:?}");
    false
}

/// An expression with a meaning is a number in every row, the same each time, and has derivatives to add.
fn expression(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let node = match parse(text) {
        Ok(node) => node,
        Err(fault) => return points(&fault, text),
    };
    let levels = ["x", "y", "z"].map(String::from).to_vec();
    let names = [
        ("a", Meaning::Number(Leaf::Column(0))),
        ("b", Meaning::Number(Leaf::Column(1))),
        ("word", Meaning::Text(Leaf::Column(2), levels)),
        ("x", Meaning::Vector((0..2).map(Leaf::Column).collect())),
        ("s", Meaning::Number(Leaf::Parameter(0))),
        ("beta", Meaning::Vector((1..3).map(Leaf::Parameter).collect())),
        ("both", Meaning::Two("a column and a parameter".into())),
    ];
    let names = names.into_iter().map(|(name, meaning)| (name.to_owned(), meaning)).collect();
    let scope = Scope { names, covariates: vec![0, 1], known: "a column or a parameter", hints: Vec::new() };
    let mut compiler = Compiler::new(&scope);
    let root = match compiler.scalar(&node) {
        Ok(root) => root,
        Err(fault) => return points(&fault, text),
    };
    let program = Program::new(compiler.tape, vec![root]);
    let cells = Array2::from_shape_fn((Cells.n(), 2), |(i, j)| Cells.cell(i, j));
    let panel = Panel::new(cells.view());
    let rows = Prepared::new(&program, &Cells, Some(&panel));
    let theta = [0.7, -1.5, 1e3];
    let value = || {
        let mut out = vec![0.0; Cells.n()];
        program.each_row(0, &theta, &rows, &mut out);
        out.into_iter().map(f64::to_bits).collect::<Vec<u64>>()
    };
    assert_eq!(value(), value(), "{text}");
    let weights = in_lines(&[1.0 / 9.0; 9]);
    let on = vec![Weighted { rows: &rows, weights: &weights }];
    let mut gradients = vec![vec![0.0; theta.len()]];
    let sums = program.add(&[Point { theta: &theta, on }], 1.0, &mut gradients);
    assert_eq!((sums.len(), gradients[0].len()), (1, theta.len()));
    program.kinks();
    true
}

/// A formula that is understood makes columns of columns that are there, no two alike.
fn formula(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let formula = match Formula::new(text) {
        Ok(formula) => formula,
        Err(fault) => return points(&fault, text),
    };
    let file = "y,age,hours,sex,region\n1,2,10,m,south\n0,3,20,f,north\n1,5,40,m,east\n0,7,30,f,south\n";
    let table = text::read(file.as_bytes(), "f.dat", &rules(Syntax::Delimited(b','))).unwrap();
    let levels = |j: usize| match &table.kinds[j] {
        Kind::Number => Vec::new(),
        Kind::Levels(levels) => levels.names().iter().cloned().zip(0..).collect::<Vec<_>>(),
    };
    let all: Vec<usize> = (0..table.width()).collect();
    let design = match formula.design(&table, &all, &levels) {
        Ok(design) => design,
        Err(fault) => return points(&fault, text),
    };
    let mut known = HashSet::new();
    for column in &design {
        assert!(known.insert(&column.name), "{} is there twice", column.name);
        for &(j, level) in &column.parts {
            assert!(level.map_or(table.kinds[j] == Kind::Number, |level| level < levels(j).len()), "{text}");
        }
    }
    true
}

/// A manifest is as it was sealed, or refused; sealed anew, what it says may still be anything.
fn manifest(bytes: &[u8]) -> bool {
    let folder = tempdir().unwrap();
    let accepted = |text: &[u8]| {
        fs::write(folder.path().join("manifest.json"), text).unwrap();
        let manifest = match store::read_manifest(folder.path()) {
            Ok(manifest) => manifest,
            Err(error) => {
                let message = error.to_string();
                assert!(message.contains("manifest.json") && !message.contains('\u{1b}'), "{message:?}");
                return false;
            }
        };
        for name in manifest.outputs.keys() {
            let damage = store::damage(folder.path(), &manifest, name);
            assert!(damage.is_some_and(|why| !why.contains('\u{1b}')));
        }
        // Whatever it says, draws are in its own folder.
        let draws = store::samples_of(folder.path());
        assert!(draws.is_err() || draws.is_ok_and(|path| path.parent() == Some(folder.path())));
        true
    };
    let found = accepted(bytes);
    if found {
        let mut other = bytes.to_vec();
        other[bytes.len() / 2] ^= 1;
        assert!(!accepted(&other) || store::sealed(&String::from_utf8_lossy(bytes)).is_none());
    }
    if let Ok(tree @ serde_json::Value::Object(_)) = serde_json::from_slice(bytes) {
        accepted(store::seal(&tree).as_bytes());
    }
    found
}

/// How rows are prepared: accepted, any rows can be, or are refused by their file.
fn preparation(bytes: &[u8]) -> bool {
    let Some(preparations) = std::str::from_utf8(bytes).ok().and_then(Preparations::of_text) else {
        return false;
    };
    let first = preparations.of(0);
    let name = |input: &InputColumn| input.name.clone();
    let by = preparations.by().map(|(name, _)| name.to_owned());
    let names: Vec<String> =
        first.inputs.iter().map(name).chain(["y".to_owned()]).chain(by.iter().cloned()).collect();
    let groups = preparations.by().map_or(Vec::new(), |(_, groups)| groups.to_vec());
    for cell in ["1.5", "m", "", "1e999"].into_iter().map(str::to_owned).chain(groups) {
        let line = vec![cell; names.len()].join(",");
        let file = format!("{}\n{line}\n1\n", names.join(","));
        for (group, round) in
            [None, Some(0), Some(3)].into_iter().flat_map(|g| [0, 1, 7].map(|round| (g, round)))
        {
            let rules = rules(Syntax::Delimited(b','));
            let group = group.filter(|g| preparations.by().is_some_and(|(_, groups)| *g < groups.len()));
            let rows = Incoming::new(
                Source::Text(file.as_bytes()),
                "f.dat",
                &rules,
                &preparations,
                (group, round),
                &[],
            );
            let Ok(mut rows) = rows else { continue };
            while let Ok(Some(rows)) = rows.next(1) {
                assert_eq!(rows.data.d(), first.columns(round).len());
            }
        }
    }
    true
}

/// A target for each kind of file, or of text within one, that strangers write.
const TARGETS: &[(&str, Target)] = &[
    ("config", config),
    ("csv", csv),
    ("arff", arff),
    ("idx", idx),
    ("columns", columns),
    ("gzip", gzip),
    ("part", part),
    ("expression", expression),
    ("formula", formula),
    ("manifest", manifest),
    ("preparation", preparation),
];

fn corpus(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target)
}

fn listed(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    paths.retain(|path| path.is_file());
    paths.sort();
    paths
}

/// SplitMix64 (Steele, Lea and Flood 2014).
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n.max(1) as u64) as usize
    }
}

const WORDS: &[&[u8]] = &[
    b"\0",
    b"\xff",
    b"\n",
    b"\r",
    b",",
    b"\"",
    b"'",
    b"1e999",
    b"nan",
    b"-",
    b"\x1b[2J",
    b"[",
    b"{",
    b"}",
    b"=",
    b"?",
    b"@data\n",
    b"99999999999999999999",
    b"\xef\xbb\xbf",
    b"\xff\xff\xff\xff",
    b"@attribute a {",
    b"1e-400",
    b"\\",
    b"%",
    b"\xe2\x80\xae",
];

/// A few changes of some bytes, or pieces of another file among them.
fn changed(bytes: &[u8], other: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..1 + dice.below(4) {
        let at = dice.below(bytes.len() + 1);
        let end = (at + 1 + dice.below(16)).min(bytes.len());
        match dice.below(7) {
            0 if at < bytes.len() => bytes[at] = dice.below(256) as u8,
            1 if at < bytes.len() => bytes[at] ^= 1 << dice.below(8),
            2 => drop(bytes.drain(at..end)),
            3 => drop(bytes.splice(at..at, WORDS[dice.below(WORDS.len())].iter().copied())),
            4 => {
                let again = bytes[at..end].to_vec();
                bytes.splice(at..at, again);
            }
            5 => {
                let from = dice.below(other.len() + 1);
                let to = (from + dice.below(64)).min(other.len());
                bytes.splice(at..at, other[from..to].iter().copied());
            }
            _ => bytes.truncate(at),
        }
    }
    bytes
}

fn said(panic: Box<dyn Any + Send>) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string())).unwrap_or_default()
}

/// Tries an input; what brings the target down is kept.
fn try_one(name: &str, target: Target, bytes: &[u8]) -> bool {
    let started = Instant::now();
    let outcome = catch_unwind(AssertUnwindSafe(|| target(bytes)));
    let took = started.elapsed();
    let slow = took > SLOW && took > patience(SLOW);
    if let (Ok(accepted), false) = (&outcome, slow) {
        return *accepted;
    }
    let hash: String = Sha256::digest(bytes).iter().take(6).map(|b| format!("{b:02x}")).collect();
    let path = corpus(name).join(format!("found-{hash}"));
    fs::write(&path, bytes).unwrap();
    let why = outcome.err().map_or_else(|| format!("{took:?}"), said);
    panic!("{}: {why}", path.display());
}

fn fuzz(name: &str) {
    let target = TARGETS.iter().find(|(n, _)| *n == name).map(|(_, target)| *target).unwrap();
    let mut paths = listed(&corpus(name));
    if name == "config" {
        let configs = Path::new(env!("CARGO_MANIFEST_DIR")).join("configs");
        paths.extend([listed(&configs), listed(&configs.join("starters"))].concat());
    }
    let files: Vec<Vec<u8>> = paths.iter().map(|path| fs::read(path).unwrap()).collect();
    let sound = files.iter().filter(|bytes| try_one(name, target, bytes)).count();
    assert!(
        sound > 0 && sound < files.len() || name == "part",
        "{name}: {sound} of {} are accepted",
        files.len()
    );
    let seconds =
        std::env::var("NPL_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok()).map(Duration::from_secs);
    let (started, mut dice, mut tried, mut accepted) = (Instant::now(), Dice(1), 0u64, 0u64);
    // What was accepted is changed further.
    let mut pool = files;
    let most = CHANGES * pool.len() as u64;
    while seconds.map_or(tried < most, |seconds| started.elapsed() < seconds) {
        let (base, other) = (dice.below(pool.len()), dice.below(pool.len()));
        let bytes = changed(&pool[base], &pool[other], &mut dice);
        tried += 1;
        if bytes.len() < 1 << 16 && try_one(name, target, &bytes) {
            accepted += 1;
            if pool.len() < 2000 {
                pool.push(bytes);
            }
        }
    }
    println!("{name}: {tried} changed inputs in {:.0?}, {accepted} of them accepted", started.elapsed());
}

#[test]
fn experiments_are_read_or_refused() {
    fuzz("config");
}

#[test]
fn delimited_text_is_read_or_refused() {
    fuzz("csv");
}

#[test]
fn arff_is_read_or_refused() {
    fuzz("arff");
}

#[test]
fn idx_is_read_or_refused() {
    fuzz("idx");
}

#[test]
fn column_files_are_read_or_refused() {
    fuzz("columns");
}

#[test]
fn compressed_files_are_read_or_refused() {
    fuzz("gzip");
}

#[test]
fn parts_are_as_they_were_written_or_none() {
    fuzz("part");
}

#[test]
fn expressions_are_understood_or_refused() {
    fuzz("expression");
}

#[test]
fn formulas_are_understood_or_refused() {
    fuzz("formula");
}

#[test]
fn manifests_are_as_they_were_sealed_or_refused() {
    fuzz("manifest");
}

#[test]
fn preparations_prepare_any_row_or_are_refused() {
    fuzz("preparation");
}

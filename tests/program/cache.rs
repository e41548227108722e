//! Tables of large files that are kept to be read again: what comes out is the same, whatever becomes of the cache.

use std::fs;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::support::Place;

/// So many bytes of rows with numbers, texts and missing cells: digits that do not compress.
fn table(bytes: usize) -> String {
    let mut text = "a,town,b,y\n".to_owned();
    let mut state = 11u64;
    let mut number = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 11
    };
    while text.len() < bytes {
        let (a, b) = (number(), number());
        let town = ["York", "Hull", "?"][(a % 3) as usize];
        let (c, d, e) = (number(), number(), number());
        text += &format!("0.{a:016}{c:016}{d:016},{town},0.{b:016}{e:016},{}\n", b % 2);
    }
    text
}

const EXPERIMENT: &str = "name = \"e\"\nseed = 4\n[data]\ntrain = \"d.csv\"\nmissing_values = [\"?\"]\nmissing = \"drop\"\n\
                          categorical = [\"town\"]\ntarget = \"y\"\n[model.linear]\npenalty = \"ridge\"\n[sampler]\nB = 3\n";

fn gzip(text: &str, level: Compression) -> Vec<u8> {
    let mut file = GzEncoder::new(Vec::new(), level);
    file.write_all(text.as_bytes()).unwrap();
    file.finish().unwrap()
}

struct Run {
    draws: String,
    manifest: String,
    said: String,
}

fn run(place: &Place, more: &[&str]) -> Run {
    let args = ["run", "e.toml", "--quiet", "--out", "out", "--force", "--threads", "2"];
    let ended = place.ok(&[&args, more].concat());
    let manifest = place.read("out/manifest.json");
    // The inputs, with their checksums.
    let from = manifest.find("\"inputs\"").expect("a manifest has inputs");
    let inputs = manifest[from..].split(']').next().unwrap().to_owned();
    Run { draws: place.read("out/samples.csv"), manifest: inputs, said: ended.stderr }
}

fn entries(place: &Place) -> Vec<String> {
    let names = if place.exists("cache") { place.list("cache") } else { Vec::new() };
    names.into_iter().filter(|name| name.ends_with(".table")).collect()
}

#[test]
fn a_large_file_is_read_once_and_every_run_is_the_same() {
    let place = Place::new();
    let text = table(9 << 20);
    // Digits are half a byte each when they are compressed.
    let small = gzip(&text, Compression::fast());
    let stored = |text: &str| gzip(text, Compression::none());
    place.write("d.csv.gz", &small).write("e.toml", EXPERIMENT);
    let with = ["--cache", "cache"];
    let plain = run(&place, &with);
    assert!(entries(&place).is_empty(), "a file of {} bytes is read again", small.len());

    place.write("d.csv.gz", stored(&text));
    let first = run(&place, &with);
    let kept = entries(&place);
    assert_eq!((kept.len(), &first.draws), (1, &plain.draws));
    let entry = place.path("cache").join(&kept[0]);
    let (sound, before) = (fs::read(&entry).unwrap(), fs::metadata(&entry).unwrap().modified().unwrap());
    let second = run(&place, &with);
    assert_eq!((&second.draws, &second.manifest), (&first.draws, &first.manifest));
    assert!(fs::metadata(&entry).unwrap().modified().unwrap() > before, "it was of use");
    place.ok(&["verify", "out", "--cache", "cache"]);

    // Damaged: said, made again, and used again.
    let mut broken = sound.clone();
    broken[sound.len() / 2] ^= 1;
    fs::write(&entry, broken).unwrap();
    let third = run(&place, &with);
    assert!(third.said.contains("is damaged; it is made again"), "{}", third.said);
    assert_eq!((&third.draws, &third.manifest), (&first.draws, &first.manifest));
    assert_eq!(fs::read(&entry).unwrap(), sound);

    // Not asked for, and where nothing can be kept.
    let without = run(&place, &["--cache", "other", "--no-cache"]);
    assert_eq!((&without.draws, &without.manifest), (&first.draws, &first.manifest));
    assert!(!place.exists("other"));
    place.write("taken", "a file");
    assert_eq!(run(&place, &["--cache", "taken"]).draws, first.draws);

    // Another file of the same length: one digit.
    let middle = text.len() / 2;
    let at = middle + text[middle..].find("0.").unwrap() + 5;
    let digit = if &text[at..=at] == "5" { "6" } else { "5" };
    let mut other = text;
    other.replace_range(at..=at, digit);
    place.write("d.csv.gz", stored(&other));
    let fourth = run(&place, &with);
    assert_ne!(fourth.manifest, first.manifest);
    assert_eq!(fourth.draws, run(&place, &["--no-cache"]).draws);
    assert_eq!(entries(&place).len(), 1, "it has taken the place of the file before");
}

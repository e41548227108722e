//! Parts: files with what is kept of a run while it goes on. A part is believed whole or not at all.
//!
//! `npl-part`, the version, the SHA-256 of the identity of the run and its number of draws; records, each with its kind, round,
//! draws and length; the length of all that, and its SHA-256. Words are 64 bits, lowest byte first.

use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{AtomicFile, CHUNKS};
use crate::data::hex;
use crate::error::Result;

const MAGIC: &[u8; 8] = b"npl-part";
const VERSION: u64 = 1;
/// Magic, version, identity, draws.
const HEAD: usize = 8 + 8 + 32 + 8;
/// Length, hash.
const TAIL: usize = 8 + 32;
/// Kind, round, first draw, end of the draws, length.
const RECORD: usize = 5 * 8;

/// One part of a run that is split over machines; counted from 1. A whole run is 1 of 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Shard {
    pub of: usize,
    pub index: usize,
}

impl Shard {
    pub const WHOLE: Shard = Shard { of: 1, index: 1 };

    fn folder(self) -> String {
        format!("{}-of-{}", self.index, self.of)
    }

    fn named(folder: &str) -> Option<Shard> {
        let (index, of) = folder.split_once("-of-")?;
        let (index, of) = (index.parse().ok()?, of.parse().ok()?);
        ((1..=of).contains(&index) && Shard { of, index }.folder() == folder).then_some(Shard { of, index })
    }
}

/// The shards that there is something of in a run directory, with their folders.
pub fn shards(run: &Path) -> Vec<(Shard, PathBuf)> {
    let entries = std::fs::read_dir(run.join(CHUNKS)).into_iter().flatten().flatten();
    let of = |path: PathBuf| Some((Shard::named(path.file_name()?.to_str()?)?, path));
    let mut found: Vec<_> =
        entries.filter_map(|entry| of(entry.path())).filter(|(_, p)| p.is_dir()).collect();
    found.sort();
    found
}

/// Numbers in order, in short: `3,17-19`.
pub fn ranges(numbers: &[usize]) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for &n in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == n => *last = n,
            _ => runs.push((n, n)),
        }
    }
    let shown = |(a, b): &(usize, usize)| if a == b { a.to_string() } else { format!("{a}-{b}") };
    runs.iter().map(shown).collect::<Vec<_>>().join(",")
}

/// What draws must have in common to be of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    /// Version of the program, and the features that change numbers.
    pub npl: String,
    /// Versions of the random streams.
    pub streams: String,
    /// Draws of a chunk.
    pub chunk: u64,
    /// Class of SIMD levels that round alike.
    pub simd: String,
    pub shard: Shard,
    /// `sampler.B`, where draws cannot be added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draws: Option<usize>,
    /// Name and SHA-256 of every file that went in.
    pub inputs: Vec<(String, String)>,
    /// The resolved experiment, with 1 for `sampler.B`.
    pub config: String,
}

impl Identity {
    /// What parts of this run are marked with.
    pub fn hash(&self) -> [u8; 32] {
        let text = serde_json::to_vec(self).expect("texts and numbers");
        Sha256::digest(text).into()
    }

    /// In what the other differs, in words; `None` if it does not.
    pub fn difference(&self, other: &Identity) -> Option<String> {
        let pairs = [
            ("the version of npl is", &self.npl, &other.npl),
            ("the random streams are", &self.streams, &other.streams),
            ("the class of SIMD levels is", &self.simd, &other.simd),
        ];
        if let Some((what, ours, theirs)) = pairs.into_iter().find(|(_, a, b)| a != b) {
            return Some(format!("{what} {theirs} there, and {ours} here"));
        }
        if self.config != other.config {
            return Some(format!("the experiment differs: {}", differing_keys(&self.config, &other.config)));
        }
        if self.inputs != other.inputs {
            let changed = self.inputs.iter().zip(&other.inputs).find(|(a, b)| a != b);
            let name = changed.map_or("the number of files", |((name, _), _)| name);
            return Some(format!("the data differ: {}", crate::config::printable(name)));
        }
        if self.draws != other.draws {
            let shown = |draws: Option<usize>| draws.map_or("open".to_owned(), |b| b.to_string());
            return Some(format!(
                "`sampler.B` is {} there, and {} here",
                shown(other.draws),
                shown(self.draws)
            ));
        }
        (self != other).then(|| "its parts are cut in another way".to_owned())
    }
}

/// The first keys in which two experiments differ.
fn differing_keys(ours: &str, theirs: &str) -> String {
    fn flat(prefix: &str, value: &toml::Value, out: &mut std::collections::BTreeMap<String, String>) {
        match value {
            toml::Value::Table(table) => {
                for (key, value) in table {
                    let dot = if prefix.is_empty() { "" } else { "." };
                    flat(&format!("{prefix}{dot}{key}"), value, out);
                }
            }
            value => drop(out.insert(prefix.to_owned(), value.to_string())),
        }
    }
    let keys = |text: &str| {
        let mut out = std::collections::BTreeMap::new();
        if let Ok(table) = text.parse::<toml::Table>() {
            flat("", &toml::Value::Table(table), &mut out);
        }
        out
    };
    let (ours, theirs) = (keys(ours), keys(theirs));
    let mut names: Vec<&String> = ours.keys().chain(theirs.keys()).collect();
    names.sort();
    names.dedup();
    let shown = |value: Option<&String>| value.map_or("not set".to_owned(), |v| crate::config::printable(v));
    let differs = |name: &&String| ours.get(*name) != theirs.get(*name);
    let say = |name: &String| {
        let (there, here) = (shown(theirs.get(name)), shown(ours.get(name)));
        format!("`{}` is {there} there, and {here} here", crate::config::printable(name))
    };
    let all: Vec<String> = names.into_iter().filter(differs).map(say).collect();
    let more = if all.len() > 3 { format!("; and {} more keys", all.len() - 3) } else { String::new() };
    all[..all.len().min(3)].join("; ") + &more
}

/// A value as JSON whose last entry is its own SHA-256: of the text with zeros in its place.
pub fn seal(value: &impl Serialize) -> String {
    let mut tree = serde_json::to_value(value).expect("texts and numbers");
    let map = tree.as_object_mut().expect("a table");
    map.insert(CHECKSUM.to_owned(), "0".repeat(64).into());
    let text = serde_json::to_string_pretty(&tree).expect("texts and numbers") + "\n";
    let place = checksum_place(&text).expect("just written");
    let hash = hex(&Sha256::digest(&text));
    format!("{}{hash}{}", &text[..place.start], &text[place.end..])
}

const CHECKSUM: &str = "checksum";

fn checksum_place(text: &str) -> Option<Range<usize>> {
    let key = format!("\"{CHECKSUM}\": \"");
    let start = text.rfind(&key)? + key.len();
    text.get(start..start + 64).map(|_| start..start + 64)
}

/// Whether a sealed text is as it was written; `None` if it has no seal.
pub fn sealed(text: &str) -> Option<bool> {
    let place = checksum_place(text)?;
    let open = format!("{}{}{}", &text[..place.start], "0".repeat(64), &text[place.end..]);
    Some(hex(&Sha256::digest(&open)) == text[place])
}

/// A part that is being written.
pub struct PartWriter {
    file: AtomicFile,
    hash: Sha256,
    length: u64,
}

impl PartWriter {
    pub fn new(file: AtomicFile, identity: &[u8; 32], draws: u64) -> Result<PartWriter> {
        let mut part = PartWriter { file, hash: Sha256::new(), length: 0 };
        let head = [&MAGIC[..], &VERSION.to_le_bytes(), identity, &draws.to_le_bytes()].concat();
        part.put(&head)?;
        Ok(part)
    }

    /// Adds records.
    pub fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.hash.update(bytes);
        self.length += bytes.len() as u64;
        self.file.put(|out| out.write_all(bytes))
    }

    pub fn commit(mut self) -> Result<()> {
        let length = self.length.to_le_bytes();
        self.put(&length)?;
        let hash = self.hash.clone().finalize();
        self.file.put(|out| out.write_all(&hash))?;
        self.file.commit()
    }
}

/// A record of a part: what it is, of which round and draws, and where its bytes are.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    pub kind: u64,
    pub round: usize,
    pub draws: Range<u64>,
    pub place: Range<usize>,
}

/// A record as bytes. Its content is put where it stays: sums over many test rows are megabytes.
pub fn record(
    kind: u64,
    round: usize,
    draws: &Range<u64>,
    content: impl FnOnce(&mut Vec<u8>),
    out: &mut Vec<u8>,
) {
    for word in [kind, round as u64, draws.start, draws.end, 0] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    let start = out.len();
    content(out);
    let length = (out.len() - start) as u64;
    out[start - 8..start].copy_from_slice(&length.to_le_bytes());
}

/// A part that was read, and is as it was written.
pub struct Part {
    bytes: Vec<u8>,
    pub identity: [u8; 32],
    /// `sampler.B` of the run that wrote it.
    pub draws: u64,
    pub records: Vec<Record>,
}

impl Part {
    /// `None` for anything else than a whole part.
    pub fn of_bytes(bytes: Vec<u8>) -> Option<Part> {
        let length = bytes.len().checked_sub(TAIL).filter(|&length| length >= HEAD)?;
        let word = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let hashed = Sha256::digest(&bytes[..length + 8]);
        if &bytes[..8] != MAGIC
            || word(8)? != VERSION
            || word(length)? != length as u64
            || bytes[length + 8..] != hashed[..]
        {
            return None;
        }
        let identity = *bytes[16..].first_chunk()?;
        let draws = word(48)?;
        let (mut records, mut at) = (Vec::new(), HEAD);
        while at < length {
            let [kind, round, start, end, size] = [0, 1, 2, 3, 4].map(|i| word(at + 8 * i));
            let place = at + RECORD..(at + RECORD).checked_add(size? as usize)?;
            if place.end > length {
                return None;
            }
            at = place.end;
            records.push(Record { kind: kind?, round: round? as usize, draws: start?..end?, place });
        }
        Some(Part { bytes, identity, draws, records })
    }

    pub fn content(&self, record: &Record) -> &[u8] {
        &self.bytes[record.place.clone()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::Bytes;

    fn small() -> Vec<u8> {
        let folder = crate::tempfile::tempdir().unwrap();
        let path = folder.path().join("p");
        let mut writer = PartWriter::new(AtomicFile::create(&path).unwrap(), &[7; 32], 100).unwrap();
        let mut bytes = Vec::new();
        record(2, 0, &(0..32), |out| vec![0.5f64, -1.0].put(out), &mut bytes);
        record(3, 1, &(32..40), |_| (), &mut bytes);
        writer.put(&bytes).unwrap();
        writer.commit().unwrap();
        std::fs::read(path).unwrap()
    }

    /// Every byte of it flipped, and every length of it: none is believed.
    #[test]
    fn a_damaged_part_is_none() {
        let bytes = small();
        let part = Part::of_bytes(bytes.clone()).unwrap();
        assert_eq!((part.identity, part.draws, part.records.len()), ([7; 32], 100, 2));
        assert_eq!(Vec::<f64>::of_bytes(part.content(&part.records[0])), Some(vec![0.5, -1.0]));
        assert_eq!((part.records[1].round, part.records[1].draws.clone()), (1, 32..40));
        for i in 0..bytes.len() {
            for flip in [1, 0x80, 0xff] {
                let mut bad = bytes.clone();
                bad[i] ^= flip;
                assert!(Part::of_bytes(bad).is_none(), "byte {i}");
            }
            assert!(Part::of_bytes(bytes[..i].to_vec()).is_none(), "{i} bytes");
        }
        assert!(Part::of_bytes([&bytes[..], &[0]].concat()).is_none());
    }

    #[test]
    fn a_seal_is_broken_by_any_byte() {
        let text = seal(&serde_json::json!({ "a": 1.5, "checksum": "x", "b": "é" }));
        assert_eq!(sealed(&text), Some(true));
        assert!(text.contains("\"a\": 1.5"), "{text}");
        for i in 0..text.len() {
            let mut bad = text.clone().into_bytes();
            bad[i] ^= 1;
            if let Ok(bad) = String::from_utf8(bad) {
                assert_ne!(sealed(&bad), Some(true), "byte {i}");
            }
        }
        assert_eq!(sealed("{}"), None);
    }

    #[test]
    fn identities_say_in_what_they_differ() {
        let ours = Identity {
            npl: "1.0".into(),
            streams: "w1".into(),
            chunk: 32,
            simd: "plain".into(),
            shard: Shard::WHOLE,
            draws: Some(100),
            inputs: vec![("a.csv".into(), "0".into()), ("b.csv".into(), "1".into())],
            config: "seed = 1\n[model.normal]\nsigma2 = 1.0\n".into(),
        };
        let differs = |change: &dyn Fn(&mut Identity)| {
            let mut theirs = ours.clone();
            change(&mut theirs);
            assert_eq!(ours.hash() == theirs.hash(), ours == theirs);
            ours.difference(&theirs).unwrap_or_default()
        };
        assert_eq!(differs(&|_| ()), "");
        assert_eq!(differs(&|t| t.npl = "2.0".into()), "the version of npl is 2.0 there, and 1.0 here");
        assert_eq!(differs(&|t| t.streams = "w2".into()), "the random streams are w2 there, and w1 here");
        assert_eq!(
            differs(&|t| t.simd = "avx2".into()),
            "the class of SIMD levels is avx2 there, and plain here"
        );
        assert_eq!(differs(&|t| t.inputs[1].1 = "2".into()), "the data differ: b.csv");
        assert_eq!(differs(&|t| t.inputs.truncate(1)), "the data differ: the number of files");
        assert_eq!(differs(&|t| t.draws = None), "`sampler.B` is open there, and 100 here");
        assert_eq!(differs(&|t| t.chunk = 64), "its parts are cut in another way");
        assert_eq!(
            differs(&|t| t.config = "seed = 1\n[model.normal]\nsigma2 = 4.0\n".into()),
            "the experiment differs: `model.normal.sigma2` is 4.0 there, and 1.0 here"
        );
        assert_eq!(
            differs(&|t| t.config = "name = \"x\"\n".into()),
            "the experiment differs: `model.normal.sigma2` is not set there, and 1.0 here; `name` is \"x\" there, and not set \
             here; `seed` is not set there, and 1 here"
        );
        let many = differs(&|t| t.config = "a = 1\nb = 1\nc = 1\n".into());
        assert!(many.ends_with("`c` is 1 there, and not set here; and 2 more keys"), "{many}");
    }

    #[test]
    fn numbers_in_short() {
        assert_eq!(ranges(&[3, 17, 18, 19]), "3,17-19");
        assert_eq!((ranges(&[]), ranges(&[1, 2])), (String::new(), "1-2".to_owned()));
    }

    #[test]
    fn shards_are_known_by_their_folders() {
        assert_eq!(Shard::named("3-of-40"), Some(Shard { of: 40, index: 3 }));
        for name in ["0-of-4", "5-of-4", "03-of-40", "3-of-", "x", "+3-of-40"] {
            assert_eq!(Shard::named(name), None, "{name}");
        }
    }
}

//! Tables of large files that have been read before. An entry holds what was made of a file by certain rules, and the checksum of that
//! file: it is used for the same bytes and the same rules, and for nothing else. The cache is a help and no more: whatever is wrong with
//! it, files are read as if there were none.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::SystemTime;

use sha2::{Digest, Sha256};

use super::Format;
use super::collapse::Copies;
use super::files::{Fingerprint, fingerprint};
use super::memory;
use super::sealed::{Bytes, Seal, first_seal, hex, seal};
use super::table::{Header, Kind, Levels, Table};
use super::text::{Rules, SHARE};
use crate::config::printable;
use crate::storage::{self, Buffer, Place};

/// Shorter files are read again: that takes a tenth of a second.
const LEAST: u64 = 32 << 20;
/// The same of compressed files, which hold a few times as much.
const LEAST_COMPRESSED: u64 = 8 << 20;
/// Entries take no more than this together, and leave as much free on the disk as one of them takes.
const MOST: u64 = 16 << 30;
/// Names of entries end with this.
const ENDING: &str = ".table";

const MAGIC: [u8; 8] = *b"\x89NPLT\r\n\x1a";
/// Of the format, and of what tables are: another reader would be told by it.
const VERSION: u32 = 1;
/// Cells of a block.
const BLOCK: usize = 1 << 16;
/// No block of names or cells is longer.
const LONGEST: u64 = 1 << 28;

/// How the cells of a column are written in a block: as doubles; or as integers of so many bytes, divided by a power of ten.
const DOUBLES: u8 = 8;

static OFF: AtomicBool = AtomicBool::new(false);
static COUNT: AtomicU64 = AtomicU64::new(0);
static NOTES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// From now on no table is kept, nor looked for.
pub fn turn_off() {
    OFF.store(true, Ordering::Relaxed);
}

/// What there is to say of entries, once.
pub fn notes() -> Vec<String> {
    NOTES.lock().map(|mut notes| std::mem::take(&mut *notes)).unwrap_or_default()
}

/// The place for the table of a file.
pub struct Entry {
    source: PathBuf,
    path: PathBuf,
}

/// What an entry was found to be.
enum Found {
    Table(Box<Table>),
    /// For another file, or not to be had in the memory there is.
    Other,
    Damaged,
}

impl Entry {
    /// Of a file that is read by these rules; `None` for one that is not worth it, or where nothing is kept.
    pub fn of(source: &Path, format: Format, gzip: bool, rules: &Rules) -> Option<Entry> {
        let least = if gzip { LEAST_COMPRESSED } else { LEAST };
        let folder = storage::folder().filter(|_| !OFF.load(Ordering::Relaxed))?;
        Entry::below(&folder, source, format, rules, least)
    }

    fn below(folder: &Path, source: &Path, format: Format, rules: &Rules, least: u64) -> Option<Entry> {
        let mut file = File::open(source).ok()?;
        let length = file.metadata().ok()?.len();
        if length < least || rules.rows.is_some() {
            return None;
        }
        // A name for what is likely to be the same file: whether it is, its checksum says.
        let rules = Rules { place: None, ..rules.clone() };
        let mut beginning = vec![0; 1 << 16];
        let read = file.read(&mut beginning).ok()?;
        let mut name = Sha256::new();
        name.update(format!("{} {VERSION} {format:?} {rules:?} {length} ", env!("CARGO_PKG_VERSION")));
        name.update(&beginning[..read]);
        let name = hex(&name.finalize()[..16]);
        Some(Entry { source: source.to_owned(), path: folder.join(name + ENDING) })
    }

    /// The table, if it is there and of the bytes that the file has now; and which those are.
    pub fn table(&self, rules: &Rules) -> Option<(Table, Fingerprint)> {
        let file = File::open(&self.path).ok()?;
        // The checksum of the file beside the entry.
        let (print, found) = std::thread::scope(|scope| {
            let print = scope.spawn(|| fingerprint(&self.source));
            let found = read(BufReader::with_capacity(1 << 20, &file), rules);
            (print.join().expect("a checksum does not panic"), found)
        });
        let (print, (of, found)) = (print.ok()?, found.unwrap_or(([0; 32], Found::Damaged)));
        match found {
            Found::Table(table) if hex(&of) == print.sha256 => {
                // For those who make room: it has been of use.
                let _ = file.set_modified(SystemTime::now());
                Some((*table, print))
            }
            Found::Damaged => {
                let shown = printable(&self.path.display().to_string());
                self.say(format!("{shown} is damaged; it is made again of {}", self.shown()));
                None
            }
            Found::Table(_) | Found::Other => None,
        }
    }

    /// Keeps a table for the next time, or does not.
    pub fn keep(&self, table: &Table, print: &Fingerprint) {
        let Some(folder) = self.path.parent() else { return };
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let made = folder.join(format!(".npl-{}-{number}{ENDING}", std::process::id()));
        let kept = self.write(folder, &made, table, print).and_then(|()| fs::rename(&made, &self.path));
        if kept.is_err() {
            let _ = fs::remove_file(&made);
        }
    }

    fn write(&self, folder: &Path, made: &Path, table: &Table, print: &Fingerprint) -> io::Result<()> {
        let Some(of) = bytes_of(&print.sha256) else { return Err(io::Error::other("no checksum")) };
        fs::create_dir_all(folder)?;
        let most = 8 * (table.cells.len() + 2 * table.rows) as u64;
        make_room(folder, most)?;
        if storage::space(folder).is_some_and(|space| space / 2 < most) {
            return Err(io::Error::other("the disk is nearly full"));
        }
        let mut options = File::options();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut out = Blocks::new(BufWriter::with_capacity(1 << 20, options.open(made)?))?;
        write(&mut out, table, &of)?;
        // What a crash cuts short is told by its seals: nobody need wait for the disk.
        out.out.flush()
    }

    fn say(&self, note: String) {
        if let Ok(mut notes) = NOTES.lock() {
            notes.push(note);
        }
    }

    fn shown(&self) -> String {
        printable(&self.source.display().to_string())
    }
}

/// Removes the entries that have not been of use for longest until so many bytes more are within the bound, and what was left by
/// programs that were killed.
fn make_room(folder: &Path, more: u64) -> io::Result<()> {
    if more > MOST / 2 {
        return Err(io::Error::other("too large to be kept"));
    }
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder)?.flatten() {
        let (Ok(meta), name) = (entry.metadata(), entry.file_name()) else { continue };
        let name = name.to_string_lossy();
        if !meta.is_file() || !name.ends_with(ENDING) {
            continue;
        }
        let used = meta.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        let day = std::time::Duration::from_secs(86_400);
        if name.starts_with(".npl-") {
            if used.elapsed().is_ok_and(|age| age > day) {
                let _ = fs::remove_file(entry.path());
            }
            continue;
        }
        entries.push((used, meta.len(), entry.path()));
    }
    entries.sort();
    let mut total: u64 = entries.iter().map(|(_, bytes, _)| bytes).sum();
    for (_, bytes, path) in entries {
        if total + more <= MOST {
            break;
        }
        fs::remove_file(path)?;
        total -= bytes;
    }
    Ok(())
}

fn bytes_of(hex: &str) -> Option<[u8; 32]> {
    let byte = |k: usize| u8::from_str_radix(hex.get(2 * k..2 * k + 2)?, 16).ok();
    (0..32).map(byte).collect::<Option<Vec<u8>>>()?.try_into().ok()
}

/// Sealed blocks: length, content, and SHA-256 of the seal before and both.
struct Blocks<S> {
    out: S,
    last: Seal,
}

impl<W: Write> Blocks<W> {
    fn new(mut out: W) -> io::Result<Blocks<W>> {
        out.write_all(&MAGIC)?;
        out.write_all(&VERSION.to_le_bytes())?;
        Ok(Blocks { out, last: first_seal(&MAGIC, VERSION) })
    }

    fn put(&mut self, content: &[u8]) -> io::Result<()> {
        self.last = seal(&self.last, &[], content);
        self.out.write_all(&(content.len() as u64).to_le_bytes())?;
        self.out.write_all(content)?;
        self.out.write_all(&self.last)
    }
}

impl<R: Read> Blocks<R> {
    fn begin(mut input: R) -> Option<Blocks<R>> {
        let mut head = [0; 12];
        input.read_exact(&mut head).ok()?;
        let known = head[..8] == MAGIC && head[8..] == VERSION.to_le_bytes();
        known.then(|| Blocks { out: input, last: first_seal(&MAGIC, VERSION) })
    }

    /// The next block, if it is what was written.
    fn next(&mut self, content: &mut Vec<u8>) -> Option<()> {
        let mut length = [0; 8];
        self.out.read_exact(&mut length).ok()?;
        let length = u64::from_le_bytes(length);
        if length > LONGEST {
            return None;
        }
        content.clear();
        (&mut self.out).take(length).read_to_end(content).ok()?;
        let mut found = [0; 32];
        self.out.read_exact(&mut found).ok()?;
        self.last = seal(&self.last, &[], content);
        (content.len() as u64 == length && found == self.last).then_some(())
    }
}

fn write(out: &mut Blocks<impl Write>, table: &Table, of: &[u8; 32]) -> io::Result<()> {
    let mut content = of.to_vec();
    let number = |content: &mut Vec<u8>, n: usize| content.extend((n as u64).to_le_bytes());
    let text = |content: &mut Vec<u8>, text: &str| {
        number(content, text.len());
        content.extend(text.as_bytes());
    };
    number(&mut content, table.rows);
    content.push(u8::from(table.header.numbered));
    number(&mut content, table.header.width());
    table.header.names.iter().for_each(|name| text(&mut content, name));
    number(&mut content, table.width());
    for (kind, &place) in table.kinds.iter().zip(&table.places) {
        number(&mut content, place);
        match kind {
            Kind::Number => content.push(0),
            Kind::Levels(levels) => {
                content.push(1);
                number(&mut content, levels.names().len());
                levels.names().iter().for_each(|name| text(&mut content, name));
            }
        }
    }
    content.push(u8::from(table.copies.is_some()));
    if content.len() as u64 > LONGEST {
        return Err(io::Error::other("too many texts to be kept"));
    }
    out.put(&content)?;
    for rows in 0..table.rows.div_ceil(rows_of_block(table.width())) {
        let (first, last) = block(rows, table);
        content.clear();
        for j in 0..table.width() {
            let column = || (first..last).map(move |i| table.cells[i * table.width() + j]);
            encode(column, &mut content);
        }
        if let Some(copies) = &table.copies {
            copies.counts[first..last].iter().for_each(|&count| content.extend(count.to_le_bytes()));
            copies.first[first..last].iter().for_each(|&row| number(&mut content, row));
        }
        out.put(&content)?;
    }
    Ok(())
}

fn rows_of_block(width: usize) -> usize {
    (BLOCK / width.max(1)).max(1)
}

/// The first row of a block, and the one after its last.
fn block(number: usize, table: &Table) -> (usize, usize) {
    let size = rows_of_block(table.width());
    (number * size, ((number + 1) * size).min(table.rows))
}

/// The integer that stands for a missing cell.
const MISSING: i32 = i32::MIN;

/// The cells of a column, as short as they can be without a bit lost: decimals with few digits are integers over a power of ten, and
/// the quotient of two integers, correctly rounded, is what their text was read as.
fn encode<I: Iterator<Item = f64>>(column: impl Fn() -> I, out: &mut Vec<u8>) {
    let (mut digits, mut least, mut most) = (0u8, 0, 0);
    let fit = column().all(|v| {
        if v.to_bits() == f64::NAN.to_bits() {
            return true;
        }
        loop {
            let scaled = (v * POWERS[usize::from(digits)]).round();
            if scaled.abs() > f64::from(i32::MAX) {
                return false;
            }
            // As an integer: there is no −0 among those.
            if (f64::from(scaled as i32) / POWERS[usize::from(digits)]).to_bits() == v.to_bits() {
                (least, most) = (scaled.min(f64::from(least)) as i32, scaled.max(f64::from(most)) as i32);
                return true;
            }
            if usize::from(digits) + 1 == POWERS.len() {
                return false;
            }
            // What fewer digits were enough for has more of them now.
            let larger = |k: i32| k.checked_mul(10);
            match (larger(least), larger(most)) {
                (Some(a), Some(b)) => (least, most) = (a, b),
                _ => return false,
            }
            digits += 1;
        }
    });
    if !fit {
        out.push(DOUBLES);
        column().for_each(|v| out.extend(v.to_bits().to_le_bytes()));
        return;
    }
    let width = match (least, most) {
        (-127..=127, -127..=127) => 1,
        (-32_767..=32_767, -32_767..=32_767) => 2,
        _ => 4,
    };
    out.extend([width, digits]);
    for v in column() {
        let k = if v.is_nan() { MISSING } else { (v * POWERS[usize::from(digits)]).round() as i32 };
        match width {
            1 => out.extend(i8::try_from(k).unwrap_or(i8::MIN).to_le_bytes()),
            2 => out.extend(i16::try_from(k).unwrap_or(i16::MIN).to_le_bytes()),
            _ => out.extend(k.to_le_bytes()),
        }
    }
}

/// Powers of ten that decimals are told by.
const POWERS: [f64; 10] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];

fn text(bytes: &mut Bytes) -> Option<String> {
    let length = bytes.long()?;
    Some(std::str::from_utf8(bytes.take(length)?).ok()?.to_owned())
}

/// The checksum that an entry is for, and its table; `None` for one that is damaged.
fn read(input: impl Read, rules: &Rules) -> Option<([u8; 32], Found)> {
    let mut blocks = Blocks::begin(input)?;
    let mut content = Vec::new();
    blocks.next(&mut content)?;
    let mut bytes = Bytes(&content);
    let of: Seal = bytes.word()?;
    let (mut table, rows, has_copies) = head(&mut bytes)?;
    if !bytes.0.is_empty() {
        return None;
    }
    let (width, room) = (table.width(), memory::room());
    let cells = rows.checked_mul(width)?;
    // Where the reader of the file would have put it.
    let place = rules.place.unwrap_or(if cells > room / SHARE { Place::File } else { Place::Memory });
    table.cells = Buffer::new(place);
    if place == Place::Memory && cells > room || table.cells.try_reserve(cells).is_err() {
        return Some((of, Found::Other));
    }
    let (mut counts, mut firsts) = (Vec::new(), Vec::new());
    let mut rows_of_it = Vec::new();
    for number in 0..rows.div_ceil(rows_of_block(width)) {
        table.rows = rows;
        let (first, last) = block(number, &table);
        blocks.next(&mut content)?;
        let mut bytes = Bytes(&content);
        rows_of_it.clear();
        rows_of_it.resize((last - first) * width, 0.0);
        for j in 0..width {
            decode(&mut bytes, rows_of_it.iter_mut().skip(j).step_by(width), last - first)?;
        }
        table.cells.extend_from_slice(&rows_of_it);
        if has_copies {
            counts.extend((first..last).map(|_| bytes.long().map(|n| n as u64)).collect::<Option<Vec<_>>>()?);
            firsts.extend((first..last).map(|_| bytes.long()).collect::<Option<Vec<_>>>()?);
        }
        if !bytes.0.is_empty() {
            return None;
        }
    }
    table.rows = rows;
    table.copies = has_copies.then(|| Copies::of(counts, firsts, rules.gather.unwrap_or(1)));
    Some((of, Found::Table(Box::new(table))))
}

/// A table without its cells, how many rows it has, and whether those are counted.
fn head(bytes: &mut Bytes) -> Option<(Table, usize, bool)> {
    let rows = bytes.long()?;
    let numbered = bytes.byte()? == 1;
    let names = (0..bytes.long()?).map(|_| text(bytes)).collect::<Option<Vec<String>>>()?;
    let header = Header { names, numbered };
    let (mut kinds, mut places) = (Vec::new(), Vec::new());
    for _ in 0..bytes.long()? {
        places.push(bytes.long().filter(|&place| place < header.width())?);
        kinds.push(match bytes.byte()? {
            0 => Kind::Number,
            _ => {
                let mut levels = Levels::default();
                for _ in 0..bytes.long()? {
                    levels.code(text(bytes)?.as_bytes());
                }
                Kind::Levels(levels)
            }
        });
    }
    let has_copies = bytes.byte()? == 1;
    Some((Table { kinds, ..Table::new(header, places) }, rows, has_copies))
}

fn decode<'c>(bytes: &mut Bytes, to: impl Iterator<Item = &'c mut f64>, rows: usize) -> Option<()> {
    let width = bytes.byte()?;
    if width == DOUBLES {
        let words = bytes.take(rows.checked_mul(8)?)?.chunks_exact(8);
        to.zip(words)
            .for_each(|(cell, word)| *cell = f64::from_le_bytes(word.try_into().expect("eight bytes")));
        return Some(());
    }
    let power = *POWERS.get(usize::from(bytes.byte()?))?;
    let words = bytes.take(rows.checked_mul(usize::from(width))?)?;
    let of = |k: i32, missing: i32| if k == missing { f64::NAN } else { f64::from(k) / power };
    match width {
        1 => to.zip(words).for_each(|(cell, &k)| *cell = of(i32::from(k as i8), i32::from(i8::MIN))),
        2 => to.zip(words.chunks_exact(2)).for_each(|(cell, word)| {
            *cell = of(i32::from(i16::from_le_bytes([word[0], word[1]])), i32::from(i16::MIN));
        }),
        4 => to.zip(words.chunks_exact(4)).for_each(|(cell, word)| {
            *cell = of(i32::from_le_bytes(word.try_into().expect("four bytes")), MISSING);
        }),
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::super::text::{Categorical, read as read_text};
    use super::*;

    fn bits(table: &Table) -> Vec<u64> {
        table.cells.iter().map(|v| v.to_bits()).collect()
    }

    fn text(rows: usize) -> String {
        let mut text = "a,b,c,town,d,e\n".to_owned();
        for i in 0..rows {
            let town = ["York", "Hull", "Leeds"][i * i % 3];
            let b = if i % 17 == 3 { "NA".to_owned() } else { (i % 7).to_string() };
            let x = (i as f64).sin();
            let e = ["-0.0", "1e300", "0.1"][i % 3];
            text += &format!("{x:.5},{b},{x},{town},{},{e}\n", i * 1000);
        }
        text
    }

    fn rules() -> Rules {
        Rules {
            missing: vec!["NA".into()],
            categorical: Categorical::Columns(vec!["town".into()]),
            ..Rules::default()
        }
    }

    /// A file, its folder, and the entry for it.
    fn entry(content: &str) -> (crate::tempfile::TempDir, Entry, Table, Fingerprint) {
        let folder = crate::tempfile::tempdir().unwrap();
        let source = folder.path().join("d.csv");
        fs::write(&source, content).unwrap();
        let entry = Entry::below(&folder.path().join("cache"), &source, Format::Text, &rules(), 1).unwrap();
        let table = read_text(content.as_bytes(), "d.csv", &rules()).unwrap();
        let print = fingerprint(&source).unwrap();
        (folder, entry, table, print)
    }

    #[test]
    fn a_table_is_read_as_it_was_kept() {
        for rows in [1, 50, 40_000] {
            let (_folder, entry, table, print) = entry(&text(rows));
            assert!(entry.table(&rules()).is_none(), "nothing is there yet");
            entry.keep(&table, &print);
            let (again, of) = entry.table(&rules()).expect("it was kept");
            assert_eq!((bits(&again), of), (bits(&table), print));
            assert_eq!((again.names, again.kinds, again.rows), (table.names, table.kinds, table.rows));
            assert_eq!((again.header, again.places, again.copies), (table.header, table.places, None));
        }
    }

    #[test]
    fn decimals_are_short_and_keep_their_bits() {
        let length = |cells: &[f64]| {
            let mut out = Vec::new();
            encode(|| cells.iter().copied(), &mut out);
            let mut again = vec![1.5; cells.len()];
            decode(&mut Bytes(&out), again.iter_mut(), cells.len()).unwrap();
            let bits = |cells: &[f64]| cells.iter().map(|v| v.to_bits()).collect::<Vec<u64>>();
            assert_eq!(bits(&again), bits(cells));
            out.len()
        };
        assert_eq!(length(&[1.0, -127.0, f64::NAN, 12.7]), 2 + 2 * 4);
        assert_eq!(length(&[1.0, -127.0, f64::NAN]), 2 + 3);
        assert_eq!(length(&[0.123_45, 5.0, f64::NAN]), 2 + 4 * 3);
        assert_eq!(length(&[-128.0]), 2 + 2);
        assert_eq!(length(&[214_748_364.0, 0.5]), 2 + 4 * 2);
        for doubles in [[-0.0], [1.0 / 3.0], [3e9], [f64::MAX], [5e-324]] {
            assert_eq!(length(&doubles), 1 + 8, "{doubles:?}");
        }
        assert_eq!(length(&[2e9, 0.5]), 1 + 16);
    }

    /// Another file of the same length and beginning, other rules, another version.
    #[test]
    fn an_entry_is_for_one_file_and_its_rules() {
        let content = text(20_000);
        let (_folder, entry, table, print) = entry(&content);
        entry.keep(&table, &print);
        assert!(content.len() > 1 << 16);
        fs::write(&entry.source, content.replacen("19999000", "19999001", 1)).unwrap();
        assert!(entry.table(&rules()).is_none(), "one digit is another");
        assert!(notes().is_empty(), "and nothing is wrong with the entry");
        let folder = entry.path.parent().unwrap();
        let of =
            |format, rules: &Rules| Entry::below(folder, &entry.source, format, rules, 1).map(|e| e.path);
        assert_eq!(of(Format::Text, &rules()), Some(entry.path.clone()));
        let placed = Rules { place: Some(Place::File), ..rules() };
        assert_eq!(of(Format::Text, &placed), Some(entry.path.clone()));
        let others = [
            Rules { missing: vec!["NA".into(), "0".into()], ..rules() },
            Rules { columns: Some(vec!["a".into()]), ..rules() },
            Rules { gather: Some(2), ..rules() },
            Rules { comma: true, ..rules() },
        ];
        others.iter().for_each(|rules| assert_ne!(of(Format::Text, rules), Some(entry.path.clone())));
        assert_ne!(of(Format::Idx, &rules()), Some(entry.path.clone()));
        assert_eq!(of(Format::Text, &Rules { rows: Some(3), ..rules() }), None);
        assert!(Entry::below(folder, &entry.source, Format::Text, &rules(), 1 << 30).is_none());
    }

    #[test]
    fn damage_is_noticed_and_said() {
        let (_folder, entry, table, print) = entry(&text(3000));
        entry.keep(&table, &print);
        let sound = fs::read(&entry.path).unwrap();
        for at in [0, 9, 13, 40, 200, sound.len() / 2, sound.len() - 1] {
            let mut broken = sound.clone();
            broken[at] ^= 4;
            fs::write(&entry.path, broken).unwrap();
            assert!(entry.table(&rules()).is_none(), "byte {at}");
        }
        for length in [0, 5, 12, 100, sound.len() - 1] {
            fs::write(&entry.path, &sound[..length]).unwrap();
            assert!(entry.table(&rules()).is_none(), "{length} bytes");
        }
        entry.say(String::new());
        assert!(notes().iter().any(|note| note.contains("is damaged; it is made again of")));
        fs::write(&entry.path, &sound).unwrap();
        assert!(entry.table(&rules()).is_some());
    }

    #[test]
    fn a_folder_that_takes_nothing_is_no_error() {
        let (folder, entry, table, print) = entry(&text(30));
        fs::write(folder.path().join("cache"), "a file").unwrap();
        entry.keep(&table, &print);
        assert!(entry.table(&rules()).is_none());
    }

    #[test]
    fn what_was_not_of_use_for_longest_goes_first() {
        let folder = crate::tempfile::tempdir().unwrap();
        let now = SystemTime::now();
        let file = |name: &str, bytes: u64, hours: u64| {
            let file = File::create(folder.path().join(name)).unwrap();
            file.set_len(bytes).unwrap();
            file.set_modified(now - std::time::Duration::from_secs(3600 * hours)).unwrap();
        };
        file("a.table", MOST / 4, 3);
        file("b.table", MOST / 4, 5);
        file("c.table", MOST / 4, 1);
        file(".npl-7-0.table", 10, 30);
        file(".npl-8-0.table", 10, 2);
        file("mine.txt", MOST, 9);
        let names = || {
            let mut names: Vec<String> = fs::read_dir(folder.path())
                .unwrap()
                .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
                .collect();
            names.sort();
            names
        };
        make_room(folder.path(), MOST / 4).unwrap();
        assert_eq!(names(), [".npl-8-0.table", "a.table", "b.table", "c.table", "mine.txt"]);
        make_room(folder.path(), MOST / 2).unwrap();
        assert_eq!(names(), [".npl-8-0.table", "a.table", "c.table", "mine.txt"]);
        assert!(make_room(folder.path(), MOST / 2 + 1).is_err());
    }
}

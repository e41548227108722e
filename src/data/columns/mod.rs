//! Column files: a table as it was read from text, in blocks of rows, column after column within a block, each block sealed. What
//! experiments say of missing values, text and numbers is applied when the file is read, as it is to text, so that one file serves
//! all of them. docs/columns.md has the format.

mod read;
mod write;

use super::sealed::{self, Seal, seal};

pub use read::read;
pub use write::{Conversion, Converted, convert, convert_parquet};

/// What column files begin with: no text does, and what mends line ends breaks it.
pub const MAGIC: [u8; 8] = *b"\x89NPLC\r\n\x1a";
const VERSION: u32 = 1;
/// What their names end with.
pub const ENDING: &str = ".nplc";

/// Kinds of blocks: names, rows, the end.
const NAMES: u8 = b'N';
const ROWS: u8 = b'R';
const END: u8 = b'E';

/// How the cells of a column are written in a block: as places among its texts, or as numbers.
const CODES_1: u8 = 1;
const CODES_2: u8 = 2;
const CODES_4: u8 = 4;
const INTEGERS: u8 = 5;
const DOUBLES: u8 = 8;
/// Added where some numbers were written in another way than the shortest, which is not kept.
const REWRITTEN: u8 = 0x80;

/// A cell among numbers that is none: a NaN with the place of its text.
const TEXT: u64 = 0x7ff8_0000_0000_0000;

/// SHA-256 of what came before, and of a block.
/// A file with the seals that its blocks would have, as far as they can be told apart: what a stranger could write, for tests.
pub fn sealed_anew(file: &[u8]) -> Vec<u8> {
    let Some((mut out, mut rest)) = file.split_at_checked(12).map(|(head, rest)| (head.to_vec(), rest))
    else {
        return file.to_vec();
    };
    let mut last = first_seal();
    while let Some((head, more)) = rest.split_at_checked(9) {
        let length = u64::from_le_bytes(head[1..].try_into().expect("eight bytes"));
        let content = usize::try_from(length).ok().and_then(|length| more.split_at_checked(length));
        let Some((content, more)) = content else { break };
        last = seal(&last, &head[..1], content);
        out.extend([head, content, &last].concat());
        rest = more.get(32..).unwrap_or_default();
    }
    out.extend(rest);
    out
}

/// The seal before the first block.
fn first_seal() -> Seal {
    sealed::first_seal(&MAGIC, VERSION)
}

/// A number as it is written where nobody says how.
fn shortest(value: f64, comma: bool) -> String {
    let text = value.to_string();
    if comma { text.replace('.', ",") } else { text }
}

#[cfg(test)]
mod tests {
    use super::super::table::{Kind, Table};
    use super::super::text::{self, Categorical, Rules};
    use super::*;
    use crate::error::Result;

    fn converted(text: &str, conversion: &Conversion) -> Vec<u8> {
        let mut file = Vec::new();
        convert(text.as_bytes(), "x.csv", conversion, &mut |bytes| {
            file.extend_from_slice(bytes);
            Ok(())
        })
        .unwrap();
        file
    }

    /// Numbers with five decimals, small integers, large ones, texts, and cells that are missing here and there.
    fn sample(rows: usize) -> String {
        let mut text = "a,b,c,town,id\n".to_owned();
        for i in 0..rows {
            let town = ["York", "Hull", "Leeds", "?"][i * i % 4];
            let b = if i % 17 == 3 { "NA".to_owned() } else { (i % 7).to_string() };
            let c = if i % 31 == 5 { "NA".to_owned() } else { (i as f64 * 0.37 - 3.0).to_string() };
            text += &format!("{:.5},{b},{c},{town},{}\n", (i as f64).sin(), i * 3);
        }
        text
    }

    fn rules() -> Rules {
        let names = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
        Rules {
            missing: names(&["NA", "?"]),
            categorical: Categorical::Columns(names(&["town"])),
            labels: names(&["b"]),
            groups: names(&["id"]),
            ..Rules::default()
        }
    }

    fn same(by_columns: Result<Table>, by_text: Result<Table>) {
        match (by_columns, by_text) {
            (Ok(one), Ok(other)) => {
                let bits = |table: &Table| table.cells.iter().map(|v| v.to_bits()).collect::<Vec<u64>>();
                assert_eq!(bits(&one), bits(&other));
                assert_eq!((one.names, one.kinds, one.rows), (other.names, other.kinds, other.rows));
                assert_eq!((one.header, one.places), (other.header, other.places));
            }
            (one, other) => {
                let (one, other) = (one.unwrap_err().to_string(), other.unwrap_err().to_string());
                assert_eq!(one.lines().count(), other.lines().count(), "{one}\n{other}");
                // Rows for lines: those of the text begin below its header.
                let first = one.lines().next().unwrap();
                assert!(first.contains("row "), "{one}");
                assert_eq!(
                    first.split(": column").nth(1),
                    other.lines().next().unwrap().split(": column").nth(1)
                );
            }
        }
    }

    #[test]
    fn a_table_is_that_of_the_text() {
        let conversion = Conversion { rows: 900, ..Conversion::default() };
        for rows in [1, 899, 900, 5000, 20_000] {
            let text = sample(rows);
            let file = converted(&text, &conversion);
            let some = Some(vec!["c".to_owned(), "town".to_owned()]);
            for rules in [
                rules(),
                Rules { rows: Some(rows / 2 + 1), ..rules() },
                Rules { columns: some, ..rules() },
                Rules { categorical: Categorical::Auto, ..rules() },
                Rules { missing: vec!["?".into()], ..rules() },
                Rules { missing: vec!["NA".into(), "?".into(), "3".into()], ..rules() },
                Rules { categorical: Categorical::Columns(Vec::new()), ..rules() },
            ] {
                same(read(&file[..], "x.nplc", &rules), text::read(text.as_bytes(), "x.csv", &rules));
            }
        }
    }

    #[test]
    fn a_file_without_names_has_none() {
        let text = "1,2.50,x\n3,4.5,y\n";
        let file = converted(text, &Conversion { header: Some(false), ..Conversion::default() });
        let plain = Rules { header: Some(false), categorical: Categorical::Auto, ..Rules::default() };
        same(read(&file[..], "f", &plain), text::read(text.as_bytes(), "f", &plain));
        let names = Some(["a", "b", "c"].map(String::from).to_vec());
        let named = Rules { names, ..plain.clone() };
        same(read(&file[..], "f", &named), text::read(text.as_bytes(), "f", &named));
        let two = Rules { names: Some(vec!["a".into()]), ..plain };
        assert_eq!(
            read(&file[..], "f", &two).unwrap_err().to_string(),
            "f: 3 cells a row, and `data.names` has 1 names"
        );
    }

    /// How numbers were written is kept where that can matter, and refused where it was not.
    #[test]
    fn texts_of_numbers_are_kept_or_asked_for() {
        let mut text = "zip,x\n".to_owned();
        (0..9000).for_each(|i| text += &format!("{:05},{:.4}\n", i * 7 % 10_000, f64::from(i) / 8.0));
        let file = converted(&text, &Conversion { rows: 3000, ..Conversion::default() });
        let of = |name: &str| Rules { groups: vec![name.into()], ..Rules::default() };
        same(read(&file[..], "f", &of("zip")), text::read(text.as_bytes(), "f", &of("zip")));
        let error = read(&file[..], "f", &of("x")).unwrap_err().to_string();
        assert!(error.contains("--text x"), "{error}");
        let marker = Rules { missing: vec!["800.0000".into()], ..Rules::default() };
        assert!(read(&file[..], "f", &marker).unwrap_err().to_string().contains("--text x"));
        let kept = Conversion { rows: 3000, texts: vec!["x".into()], ..Conversion::default() };
        let file = converted(&text, &kept);
        for rules in [of("x"), marker] {
            same(read(&file[..], "f", &rules), text::read(text.as_bytes(), "f", &rules));
        }
    }

    #[test]
    fn damage_is_noticed_wherever_it_is() {
        let file = converted(&sample(300), &Conversion { rows: 100, ..Conversion::default() });
        let read = |bytes: &[u8]| read(bytes, "f.nplc", &rules());
        assert!(read(&file).is_ok());
        for at in (0..file.len()).step_by(7).chain(0..64) {
            let mut bytes = file.clone();
            bytes[at] ^= 1 << (at % 8);
            let error = read(&bytes).expect_err("a bit is another").to_string();
            assert!(error.starts_with("f.nplc: "), "{error}");
            assert!(read(&file[..at]).is_err(), "cut at {at}");
        }
        let error = read(&[&file[..], b"x"].concat()).unwrap_err().to_string();
        assert!(error.contains("1 bytes follow"), "{error}");
        // Blocks that are sound by themselves, in another order.
        let plain = Rules::default();
        assert!(super::read(&MAGIC[..], "f", &plain).is_err());
        assert!(
            super::read(&b"a,b\n1,2\n"[..], "f", &plain).unwrap_err().to_string().contains("npl convert")
        );
    }

    /// What seals do not guard against: a file that was made to lie.
    #[test]
    fn a_file_that_lies_is_refused_without_reserving_memory() {
        let lie = |blocks: &[(u8, Vec<u8>)]| {
            let mut file = [&MAGIC[..], &VERSION.to_le_bytes()].concat();
            let mut last = first_seal();
            for (kind, content) in blocks {
                last = seal(&last, &[*kind], content);
                file.push(*kind);
                file.extend((content.len() as u64).to_le_bytes());
                file.extend(content);
                file.extend(last);
            }
            read(&file[..], "f", &Rules::default()).map(|_| ()).unwrap_err().to_string()
        };
        let number = |n: u32| n.to_le_bytes().to_vec();
        let names = (NAMES, [vec![0, 0], number(1), number(1), b"a".to_vec()].concat());
        let of_rows = |rows: u32, rest: &[&[u8]]| (ROWS, [&number(rows)[..], &rest.concat()].concat());
        for blocks in [
            vec![(NAMES, [vec![0, 0], number(u32::MAX)].concat())],
            vec![(NAMES, [vec![0, 0], number(1), number(u32::MAX)].concat())],
            vec![(ROWS, number(3))],
            vec![names.clone(), names.clone()],
            vec![names.clone(), of_rows(u32::MAX, &[&number(0), &[DOUBLES]])],
            vec![names.clone(), of_rows(1, &[&number(u32::MAX)])],
            vec![names.clone(), of_rows(1, &[&number(0), &[CODES_1], &[0]])],
            vec![names.clone(), of_rows(1, &[&number(0), &[99], &[0]])],
            vec![names.clone(), of_rows(1, &[&number(0), &[DOUBLES], &f64::INFINITY.to_le_bytes()])],
            vec![names.clone(), of_rows(1, &[&number(0), &[DOUBLES], &(TEXT | 5).to_le_bytes()])],
            vec![names.clone(), of_rows(1, &[&number(0), &[DOUBLES], &1.0f64.to_le_bytes(), &[0]])],
            vec![names.clone(), (END, 3u64.to_le_bytes().to_vec())],
            vec![names.clone(), (b'?', Vec::new())],
            vec![names],
        ] {
            assert!(lie(&blocks).starts_with("f: "));
        }
    }

    #[test]
    fn the_same_text_is_the_same_file() {
        let text = sample(4000);
        let conversion = Conversion { rows: 1000, ..Conversion::default() };
        assert_eq!(converted(&text, &conversion), converted(&text, &conversion));
        let kinds = read(&converted(&text, &conversion)[..], "f", &rules()).unwrap().kinds;
        assert_eq!(kinds.iter().filter(|kind| **kind == Kind::Number).count(), 2);
    }
}

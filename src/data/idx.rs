//! IDX, the format of MNIST: a magic number, dimensions, raw numbers. By hand, because the crates for it are GPL or
//! tied to one data set.

use std::io::Read;

use super::memory;
use super::table::{Header, Kind, Levels, MOST_COLUMNS, Table};
use super::text::Rules;
use crate::config::printable;
use crate::error::{Error, Result};

/// The first dimension counts rows; all others together are columns. Of the rules, those on names, columns, labels and
/// the number of rows apply.
pub fn read(mut input: impl Read, file: &str, rules: &Rules) -> Result<Table> {
    let shown = printable(file);
    let wrong = |what: String| Error::input(format!("{shown}: {what}"));
    let short = |_| wrong("the file ends before its header says".into());
    let mut magic = [0; 4];
    input.read_exact(&mut magic).map_err(short)?;
    let [0, 0, kind, dimensions @ 1..=255] = magic else {
        return Err(wrong("not an IDX file: it does not begin with two zero bytes and a type".into()));
    };
    let size = match kind {
        0x08 | 0x09 => 1,
        0x0b => 2,
        0x0c | 0x0d => 4,
        0x0e => 8,
        other => return Err(wrong(format!("IDX type 0x{other:02x} is not known"))),
    };
    let mut sizes = Vec::new();
    for _ in 0..dimensions {
        let mut word = [0; 4];
        input.read_exact(&mut word).map_err(short)?;
        sizes.push(u32::from_be_bytes(word) as usize);
    }
    let rows = rules.rows.map_or(sizes[0], |limit| limit.min(sizes[0]));
    let width = sizes[1..].iter().try_fold(1usize, |product, &s| product.checked_mul(s));
    let width = width
        .filter(|w| (1..=MOST_COLUMNS).contains(w))
        .ok_or_else(|| wrong("its dimensions are absurd".into()))?;
    if rows == 0 {
        return Err(wrong("no rows of data".into()));
    }
    // A header that lies about columns or rows costs no more than a row of bytes before the file ends.
    let mut row = vec![0; width * size];
    input.read_exact(&mut row).map_err(short)?;
    let header = match &rules.names {
        Some(names) if names.len() == width => Header::named(names.clone()),
        Some(names) => {
            let given = names.len();
            return Err(wrong(format!("{width} cells a row, and `data.names` has {given} names")));
        }
        None => Header::numbered(width),
    };
    let mut table = rules.used(header).map_err(|e| wrong(e.to_string()))?;
    let room = memory::room();
    for i in 0..rows {
        if table.cells.len() > room || table.cells.try_reserve(table.places.len()).is_err() {
            let free = memory::shown(room);
            return Err(wrong(format!(
                "{i} of {rows} rows fill the free memory, {free}; see `data.rows`, `data.columns`"
            )));
        }
        if i > 0 {
            input.read_exact(&mut row).map_err(short)?;
        }
        for (&j, name) in table.places.iter().zip(&table.names) {
            let cell = decode(kind, &row[j * size..][..size]);
            if !cell.is_finite() {
                let byte = 4 + 4 * sizes.len() + (i * width + j) * size;
                let name = printable(name);
                let what =
                    format!("row {}, column \"{name}\": {cell} at byte {byte} is not a finite number", i + 1);
                return Err(wrong(what));
            }
            table.cells.push(cell);
        }
    }
    table.rows = rows;
    if rows == sizes[0] {
        let more = std::io::copy(&mut input, &mut std::io::sink()).map_err(|e| wrong(e.to_string()))?;
        if more > 0 {
            let data = rows * width * size;
            return Err(wrong(format!("{more} bytes follow the {data} bytes of data that its header says")));
        }
    }
    let width = table.width();
    for label in &rules.labels {
        let j = table.find(label).map_err(|e| wrong(e.to_string()))?;
        let mut levels = Levels::default();
        for cell in table.cells.iter_mut().skip(j).step_by(width) {
            *cell = levels.code(cell.to_string().as_bytes()) as f64;
        }
        table.kinds[j] = Kind::Levels(levels);
    }
    Ok(table)
}

fn decode(kind: u8, bytes: &[u8]) -> f64 {
    let array4 = || bytes.try_into().expect("four bytes of a four-byte type");
    match kind {
        0x08 => f64::from(bytes[0]),
        0x09 => f64::from(bytes[0] as i8),
        0x0b => f64::from(i16::from_be_bytes(bytes.try_into().expect("two bytes of a two-byte type"))),
        0x0c => f64::from(i32::from_be_bytes(array4())),
        0x0d => f64::from(f32::from_be_bytes(array4())),
        _ => f64::from_be_bytes(bytes.try_into().expect("eight bytes of an eight-byte type")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_rows() {
        let file = [0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 1, 2, 3, 255];
        let table = read(&file[..], "x", &Rules::default()).unwrap();
        assert_eq!((table.width(), table.cells), (2, vec![1.0, 2.0, 3.0, 255.0].into()));
        let one = Rules { rows: Some(1), ..Rules::default() };
        assert_eq!(read(&file[..], "x", &one).unwrap().rows(), 1);
    }

    #[test]
    fn only_the_columns_that_are_used_are_read() {
        let file = [0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6];
        let rules = Rules { columns: Some(vec!["x3".into(), "1".into()]), ..Rules::default() };
        let table = read(&file[..], "x", &rules).unwrap();
        assert_eq!((table.rows(), table.cells), (2, vec![1.0, 3.0, 4.0, 6.0].into()));
    }

    #[test]
    fn what_is_not_a_number_or_too_much_is_refused_with_its_byte() {
        let error = |file: &[u8]| read(file, "x", &Rules::default()).unwrap_err().to_string();
        let header = [0, 0, 13, 2, 0, 0, 0, 2, 0, 0, 0, 2];
        let cells = |last: f32| [1.0, 2.0, 3.0, last].map(f32::to_be_bytes).concat();
        let file = |last: f32| [&header[..], &cells(last)].concat();
        assert!(read(&file(4.0)[..], "x", &Rules::default()).is_ok());
        assert_eq!(error(&file(f32::NAN)), "x: row 2, column \"x2\": NaN at byte 24 is not a finite number");
        assert!(error(&file(f32::INFINITY)).contains("inf at byte 24"));
        let long = [&file(4.0)[..], b"abc"].concat();
        assert_eq!(error(&long), "x: 3 bytes follow the 16 bytes of data that its header says");
        let one = Rules { rows: Some(1), ..Rules::default() };
        assert!(read(&long[..], "x", &one).is_ok(), "what is not asked for is not read");
    }

    #[test]
    fn labels_are_levels_under_their_name() {
        let file = [0, 0, 8, 1, 0, 0, 0, 3, 7, 2, 7];
        let names = |names: &[&str]| Some(names.iter().map(|n| n.to_string()).collect());
        let rules = Rules { names: names(&["label"]), labels: vec!["label".into()], ..Rules::default() };
        let table = read(&file[..], "x", &rules).unwrap();
        assert_eq!((&table.names[0][..], table.cells), ("label", vec![0.0, 1.0, 0.0].into()));
        assert!(matches!(&table.kinds[0], Kind::Levels(l) if l.names() == ["7", "2"]));
        let two = Rules { names: names(&["a", "b"]), ..Rules::default() };
        let error = read(&file[..], "x", &two).unwrap_err().to_string();
        assert_eq!(error, "x: 1 cells a row, and `data.names` has 2 names");
    }

    #[test]
    fn a_lying_header_is_refused_without_reserving_memory() {
        let lie = [0, 0, 8, 3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        assert!(read(&lie[..], "x", &Rules::default()).unwrap_err().to_string().contains("absurd"));
        let long = [0, 0, 8, 1, 0xff, 0xff, 0xff, 0xff, 1];
        assert!(read(&long[..], "x", &Rules::default()).unwrap_err().to_string().contains("ends before"));
        assert!(
            read(&b"PK\x03\x04"[..], "x", &Rules::default())
                .unwrap_err()
                .to_string()
                .contains("not an IDX file")
        );
    }
}

//! The header of NumPy's `.npy` format, version 1.0: an array of float64 in C order.

use std::io::{self, Read, Write};

const MAGIC: &[u8] = b"\x93NUMPY\x01\x00";
/// The array starts at a multiple of this: NumPy wants 64, and with 128 all headers have one length, so that the number
/// of rows can be mended when it is known.
const ALIGNMENT: usize = 128;

pub fn write_header(out: &mut dyn Write, rows: usize, columns: usize) -> io::Result<()> {
    let mut text = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({rows}, {columns}), }}");
    let unpadded = MAGIC.len() + 2 + text.len() + 1;
    text += &" ".repeat(unpadded.next_multiple_of(ALIGNMENT) - unpadded);
    text += "\n";
    out.write_all(MAGIC)?;
    out.write_all(&(text.len() as u16).to_le_bytes())?;
    out.write_all(text.as_bytes())
}

/// Where the array starts, its rows and its columns. `None` for what [`write_header`] does not write.
pub fn read_header(file: &mut dyn Read) -> Option<(u64, u64, u64)> {
    let mut start = [0; MAGIC.len() + 2];
    file.read_exact(&mut start).ok().filter(|()| start.starts_with(MAGIC))?;
    let length = u16::from_le_bytes([start[MAGIC.len()], start[MAGIC.len() + 1]]);
    let mut text = vec![0; length as usize];
    file.read_exact(&mut text).ok()?;
    let text = std::str::from_utf8(&text).ok()?;
    let shape = text.strip_prefix("{'descr': '<f8', 'fortran_order': False, 'shape': (")?;
    let (rows, columns) = shape.split_once(')')?.0.split_once(", ")?;
    Some(((start.len() + length as usize) as u64, rows.parse().ok()?, columns.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_aligned_and_reads_back() {
        for (rows, columns) in [(1, 10), (2000, 10_010), (usize::MAX, usize::MAX)] {
            let mut bytes = Vec::new();
            write_header(&mut bytes, rows, columns).unwrap();
            assert_eq!(bytes.len(), ALIGNMENT);
            assert_eq!(bytes.last(), Some(&b'\n'));
            let header = read_header(&mut &bytes[..]);
            assert_eq!(header, Some((bytes.len() as u64, rows as u64, columns as u64)));
            assert_eq!(read_header(&mut &bytes[..bytes.len() - 1]), None);
        }
        assert_eq!(read_header(&mut &b"repeat__,draw__"[..]), None);
    }
}

//! What files of our own consist of: words with the lowest byte first, in blocks, each with a seal that knows all blocks before it.

use sha2::{Digest, Sha256};

pub type Seal = [u8; 32];

/// The seal before the first block of files that begin so.
pub fn first_seal(magic: &[u8], version: u32) -> Seal {
    let mut hash = Sha256::new();
    hash.update(magic);
    hash.update(version.to_le_bytes());
    hash.finalize().into()
}

/// SHA-256 of the seal before, what kind of block it is where there are several, and its length and content.
pub fn seal(before: &Seal, kind: &[u8], content: &[u8]) -> Seal {
    let mut hash = Sha256::new();
    hash.update(before);
    hash.update(kind);
    hash.update((content.len() as u64).to_le_bytes());
    hash.update(content);
    hash.finalize().into()
}

/// A checksum in words.
pub fn hex(hash: &[u8]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Bytes one after the other; `None` where there are no more.
pub struct Bytes<'b>(pub &'b [u8]);

impl<'b> Bytes<'b> {
    pub fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub fn word<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub fn byte(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }

    /// A number of four bytes.
    pub fn number(&mut self) -> Option<usize> {
        Some(u32::from_le_bytes(self.word()?) as usize)
    }

    /// A number of eight bytes.
    pub fn long(&mut self) -> Option<usize> {
        usize::try_from(u64::from_le_bytes(self.word()?)).ok()
    }
}

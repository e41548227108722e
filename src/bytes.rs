//! Values as bytes and back, bit by bit: what is kept of a run must fold to the same numbers. Words are 64 bits, lowest byte
//! first; lists say how long they are.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

pub trait Bytes: Sized {
    fn put(&self, out: &mut Vec<u8>);

    /// Takes the value off the front; `None` if these bytes are of no such value.
    fn take(from: &mut &[u8]) -> Option<Self>;

    fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.put(&mut out);
        out
    }

    /// All of the bytes, and nothing behind them.
    fn of_bytes(mut bytes: &[u8]) -> Option<Self> {
        let value = Self::take(&mut bytes)?;
        bytes.is_empty().then_some(value)
    }
}

/// `bytes!(Type { field, … })`: the fields one after the other.
macro_rules! bytes {
    ($type:ty { $($field:ident),* $(,)? }) => {
        impl crate::bytes::Bytes for $type {
            fn put(&self, out: &mut Vec<u8>) {
                $(self.$field.put(out);)*
            }

            fn take(from: &mut &[u8]) -> Option<Self> {
                Some(Self { $($field: crate::bytes::Bytes::take(from)?),* })
            }
        }
    };
}
pub(crate) use bytes;

impl Bytes for u64 {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_le_bytes());
    }

    fn take(from: &mut &[u8]) -> Option<u64> {
        let (word, rest) = from.split_first_chunk()?;
        *from = rest;
        Some(u64::from_le_bytes(*word))
    }
}

impl Bytes for usize {
    fn put(&self, out: &mut Vec<u8>) {
        (*self as u64).put(out);
    }

    fn take(from: &mut &[u8]) -> Option<usize> {
        u64::take(from)?.try_into().ok()
    }
}

impl Bytes for bool {
    fn put(&self, out: &mut Vec<u8>) {
        u64::from(*self).put(out);
    }

    fn take(from: &mut &[u8]) -> Option<bool> {
        [false, true].get(usize::take(from)?).copied()
    }
}

impl Bytes for f64 {
    fn put(&self, out: &mut Vec<u8>) {
        self.to_bits().put(out);
    }

    fn take(from: &mut &[u8]) -> Option<f64> {
        u64::take(from).map(f64::from_bits)
    }
}

impl Bytes for String {
    fn put(&self, out: &mut Vec<u8>) {
        self.len().put(out);
        out.extend_from_slice(self.as_bytes());
    }

    fn take(from: &mut &[u8]) -> Option<String> {
        let length = usize::take(from)?;
        let (text, rest) = from.split_at_checked(length)?;
        *from = rest;
        String::from_utf8(text.to_vec()).ok()
    }
}

impl<T: Bytes> Bytes for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.len().put(out);
        self.iter().for_each(|item| item.put(out));
    }

    /// Grows as items are found: a length that is wrong asks for no memory.
    fn take(from: &mut &[u8]) -> Option<Vec<T>> {
        (0..usize::take(from)?).map(|_| T::take(from)).collect()
    }
}

impl<T: Bytes> Bytes for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        self.iter().for_each(|value| value.put(out));
    }

    fn take(from: &mut &[u8]) -> Option<Option<T>> {
        Some(if bool::take(from)? { Some(T::take(from)?) } else { None })
    }
}

impl<T: Bytes> Bytes for Arc<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.as_ref().put(out);
    }

    fn take(from: &mut &[u8]) -> Option<Arc<T>> {
        T::take(from).map(Arc::new)
    }
}

impl<A: Bytes, B: Bytes> Bytes for (A, B) {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
    }

    fn take(from: &mut &[u8]) -> Option<(A, B)> {
        Some((A::take(from)?, B::take(from)?))
    }
}

impl<T: Bytes> Bytes for Range<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.start.put(out);
        self.end.put(out);
    }

    fn take(from: &mut &[u8]) -> Option<Range<T>> {
        Some(T::take(from)?..T::take(from)?)
    }
}

impl<K: Bytes + Ord, V: Bytes> Bytes for BTreeMap<K, V> {
    fn put(&self, out: &mut Vec<u8>) {
        self.len().put(out);
        self.iter().for_each(|(key, value)| {
            key.put(out);
            value.put(out);
        });
    }

    fn take(from: &mut &[u8]) -> Option<BTreeMap<K, V>> {
        (0..usize::take(from)?).map(|_| <(K, V)>::take(from)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Everything = (Vec<Option<f64>>, (BTreeMap<String, Range<u64>>, bool));

    #[test]
    fn every_bit_comes_back_and_a_part_is_nothing() {
        let numbers = [0.0, -0.0, f64::NAN, f64::NEG_INFINITY, 0.1, f64::MIN_POSITIVE / 3.0].map(Some);
        let value: Everything =
            ([&numbers[..], &[None]].concat(), (BTreeMap::from([("é".to_owned(), 3..u64::MAX)]), true));
        let bytes = value.to_bytes();
        let back = Everything::of_bytes(&bytes).unwrap();
        let bits = |v: &Everything| v.0.iter().map(|x| x.map(f64::to_bits)).collect::<Vec<_>>();
        assert_eq!((bits(&back), &back.1), (bits(&value), &value.1));
        assert!((0..bytes.len()).all(|end| Everything::of_bytes(&bytes[..end]).is_none()));
        assert!(Everything::of_bytes(&[&bytes[..], &[0]].concat()).is_none());
        assert!(Vec::<f64>::of_bytes(&u64::MAX.to_le_bytes()).is_none());
    }
}

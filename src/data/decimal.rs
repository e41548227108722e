//! The double nearest to a decimal number, as fast as its digits can be looked at where that is exact.

/// Powers of ten that are doubles.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];

/// The number that `text` stands for, if it has at most 2⁵³ as digits and a power of ten that is a double: then one
/// correctly rounded operation gives the nearest double (Clinger 1990). `None` for all else, numbers or not.
pub fn short(text: &[u8]) -> Option<f64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let mut mantissa = 0u64;
    let mut at = 0;
    // Nineteen digits cannot overflow.
    let mut run = |at: &mut usize| {
        let first = *at;
        while let Some(digit) = digits.get(*at).map(|b| b.wrapping_sub(b'0')).filter(|d| *d < 10) {
            mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(digit));
            *at += 1;
        }
        *at - first
    };
    let whole = run(&mut at);
    let mut decimals = 0;
    if digits.get(at) == Some(&b'.') {
        at += 1;
        decimals = run(&mut at);
    }
    if whole + decimals == 0 || whole + decimals > 19 || mantissa > 1 << 53 {
        return None;
    }
    let exponent = match &digits[at..] {
        [] => 0,
        [b'e' | b'E', rest @ ..] => exponent(rest)?,
        _ => return None,
    };
    let power = exponent - decimals as i32;
    let magnitude = mantissa as f64;
    let value = match POWERS.get(power.unsigned_abs() as usize) {
        Some(scale) if power < 0 => magnitude / scale,
        Some(scale) => magnitude * scale,
        None => return None,
    };
    Some(if negative { -value } else { value })
}

/// A whole number of at most three digits.
fn exponent(text: &[u8]) -> Option<i32> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    if digits.is_empty() || digits.len() > 3 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value = digits.iter().fold(0, |value, b| 10 * value + i32::from(b - b'0'));
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_short_is_read_and_nothing_else() {
        for text in
            ["0", "-0", "+7", "1.", ".5", "007.50", "1e5", "2.5E-003", "-1.2345e+22", "9007199254740992"]
        {
            assert_eq!(
                short(text.as_bytes()).map(f64::to_bits),
                Some(text.parse::<f64>().unwrap().to_bits()),
                "{text}"
            );
        }
        for text in [
            "", "-", ".", "e5", "1e", "1e+", "1 ", "0x1", "inf", "nan", "1_0", "--1", "1.2.3", "1e5.0",
            "1e0005",
        ] {
            assert_eq!(short(text.as_bytes()), None, "{text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        #[test]
        fn the_nearest_double_to_the_last_bit(
            text in "[-+]?[0-9]{0,12}(\\.[0-9]{0,12})?([eE][-+]?[0-9]{1,3})?",
        ) {
            if let Some(value) = short(text.as_bytes()) {
                prop_assert_eq!(value.to_bits(), text.parse::<f64>().unwrap().to_bits(), "{}", text);
            }
        }
    }
}

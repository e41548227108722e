//! Numbers for people.

/// Two digits of the error, and none beyond; where there is no error, enough to read.
pub fn number(value: f64, error: f64) -> String {
    if !value.is_finite() {
        return format!("{value}");
    }
    let known = error > 0.0 && error.is_finite();
    let from_error = if known { 1 - error.log10().floor() as i32 } else { 4 };
    let decimals = from_error.clamp(0, 8) as usize;
    if value == 0.0 || (1e-4..1e7).contains(&value.abs()) {
        return format!("{value:.decimals$}");
    }
    let digits = if known { from_error + value.abs().log10().floor() as i32 } else { 3 };
    if digits < 0 { format!("{value:.decimals$}") } else { format!("{value:.*e}", digits.min(3) as usize) }
}

/// An error, with so many digits: with an exponent where it is small, for then its size is all that is looked for.
pub fn error(value: f64, digits: usize) -> String {
    match value {
        0.0 => "0".to_owned(),
        v if (0.0995..1e4).contains(&v) => {
            let decimals = digits as i32 - 1 - v.log10().floor() as i32;
            format!("{v:.*}", decimals.max(0) as usize)
        }
        v => format!("{v:.*e}", digits.saturating_sub(1)),
    }
}

/// A share in per cent.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// Bytes for people.
pub fn bytes(count: f64) -> String {
    let (unit, scale) = match count {
        c if c >= 1e9 => ("GB", 1e9),
        c if c >= 1e6 => ("MB", 1e6),
        c if c >= 1e3 => ("kB", 1e3),
        _ => ("bytes", 1.0),
    };
    if scale == 1.0 { format!("{count:.0} {unit}") } else { format!("{:.1} {unit}", count / scale) }
}

/// Seconds for people.
pub fn seconds(s: f64) -> String {
    // Rounded before it is cut into units: 599.7 s are 10 min 0 s, not 9 min 60 s.
    let (whole, minutes) = (s.round(), (s / 60.0).round());
    match s {
        s if s < 59.995 => format!("{s:.2} s"),
        _ if whole < 3600.0 => format!("{} min {} s", (whole / 60.0).floor(), whole % 60.0),
        _ => format!("{} h {} min", (minutes / 60.0).floor(), minutes % 60.0),
    }
}

/// The value of a key as a reader wants it: six digits of a number, which a product of factors may have spoilt further down.
pub fn setting(value: &str) -> String {
    match value.parse::<f64>() {
        Ok(number) if value.len() > 8 && number.is_finite() => {
            let rounded: f64 = format!("{number:.5e}").parse().expect("a number, as it was written");
            format!("{rounded:?}")
        }
        _ => value.to_owned(),
    }
}

/// `1 row`, `2 rows`.
pub fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// The first few of a list, and how many more there are.
pub fn few(items: &[String], most: usize) -> String {
    let shown = items[..items.len().min(most)].join(", ");
    if items.len() > most { format!("{shown} and {} more", items.len() - most) } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_unit_is_full() {
        let shown = [0.5, 59.99, 59.996, 60.2, 599.7, 3599.4, 3599.7, 7199.0, 7230.1].map(seconds);
        let expected = [
            "0.50 s",
            "59.99 s",
            "1 min 0 s",
            "1 min 0 s",
            "10 min 0 s",
            "59 min 59 s",
            "1 h 0 min",
            "2 h 0 min",
            "2 h 1 min",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn digits_are_no_finer_than_the_error() {
        assert_eq!(number(1.23456, 0.012), "1.235");
        assert_eq!(number(-123.456, 25.0), "-123");
        assert_eq!(number(5e-5, 0.012), "0.000");
        assert_eq!(number(5.123e-7, 1e-9), "5.123e-7");
        assert_eq!(number(5.123e-7, 1e-8), "5.12e-7");
        assert_eq!(number(1.2345e9, 1e3), "1.234e9");
        assert_eq!(
            [number(0.5, 0.0), number(f64::NAN, 1.0), number(5e-7, 0.0)],
            ["0.5000", "NaN", "5.000e-7"]
        );
    }
}

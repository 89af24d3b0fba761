//! Durations, sizes and money in the forms people write them, as exact integers.
//!
//! Every reader here has a writer whose text reads back as the same number. Nothing is rounded: a
//! value that doesn't come out whole in the smallest unit is refused.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The largest integer a specification may hold: what every JSON reader keeps exactly.
pub const INTEGER_MAX: u64 = (1 << 53) - 1;

/// Microseconds per unit of a duration, the largest first.
const DURATION_UNITS: [(&str, u64); 6] = [
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("m", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
    ("us", 1),
];

/// Bytes per unit of a size, as written; the largest first, binary before decimal.
const SIZE_UNITS: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("TB", 1_000_000_000_000),
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("kB", 1_000),
    ("B", 1),
];

/// Why a duration, size or amount of money could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// Not a duration.
    #[error(
        "`{0}` is not a duration: write seconds (`300`) or `250ms`, `90s`, `5m`, `1h30m`, `2d`"
    )]
    Duration(String),
    /// Not a size.
    #[error("`{0}` is not a size: write bytes (`65536`) or `64MiB`, `10 MB`, `1.5GiB`")]
    Size(String),
    /// Not an amount of money.
    #[error("`{0}` is not an amount of money: write `12.50 USD` (at most six decimals)")]
    Money(String),
}

/// Reads a duration into microseconds: `300` and `0.5` are seconds, `1h30m` and `250ms` name units.
pub fn parse_duration_us(text: &str) -> Result<u64, UnitError> {
    let refused = || UnitError::Duration(text.to_owned());
    let trimmed = text.trim();
    if !trimmed.is_empty() && trimmed.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return scaled(trimmed, 1_000_000).ok_or_else(refused);
    }
    let mut rest = trimmed;
    let mut total: u64 = 0;
    let mut smallest_so_far = u64::MAX;
    while !rest.is_empty() {
        let number_end = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .ok_or_else(refused)?;
        let (number, after) = rest.split_at(number_end);
        let unit_end = after
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(after.len());
        let (unit, next) = after.split_at(unit_end);
        let (_, unit_us) = *DURATION_UNITS
            .iter()
            .find(|(name, _)| *name == unit)
            .ok_or_else(refused)?;
        // Units fall from left to right, each once: `30m1h` and `5m5m` are typing errors.
        if unit_us >= smallest_so_far {
            return Err(refused());
        }
        smallest_so_far = unit_us;
        let part = scaled(number, unit_us).ok_or_else(refused)?;
        total = total
            .checked_add(part)
            .filter(|sum| *sum <= INTEGER_MAX)
            .ok_or_else(refused)?;
        rest = next.trim_start();
    }
    if trimmed.is_empty() {
        Err(refused())
    } else {
        Ok(total)
    }
}

/// Writes a duration so that [`parse_duration_us`] reads the same number: `1h30m`, `250ms`, `0s`.
pub fn format_duration_us(duration_us: u64) -> String {
    if duration_us == 0 {
        return "0s".to_owned();
    }
    let mut rest = duration_us;
    let mut text = String::new();
    for (unit, unit_us) in DURATION_UNITS {
        let count = rest / unit_us;
        if count > 0 {
            text.push_str(&count.to_string());
            text.push_str(unit);
        }
        rest %= unit_us;
    }
    text
}

/// Reads a size into bytes: `65536`, `64MiB`, `10 MB`; units in any case, `k` and `K` alike.
pub fn parse_size_bytes(text: &str) -> Result<u64, UnitError> {
    let refused = || UnitError::Size(text.to_owned());
    let trimmed = text.trim();
    let number_end = trimmed
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(number_end);
    let unit = unit.trim();
    let unit_bytes = if unit.is_empty() {
        1
    } else {
        SIZE_UNITS
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(unit))
            .map(|(_, bytes)| *bytes)
            .ok_or_else(refused)?
    };
    scaled(number, unit_bytes).ok_or_else(refused)
}

/// Writes a size so that [`parse_size_bytes`] reads the same number, in the largest unit it fills.
pub fn format_size_bytes(bytes: u64) -> String {
    let fitting = SIZE_UNITS
        .iter()
        .find(|(_, unit_bytes)| bytes >= *unit_bytes && bytes.is_multiple_of(*unit_bytes));
    let (unit, unit_bytes) = fitting.unwrap_or(&("B", 1));
    format!("{}{unit}", bytes / unit_bytes)
}

/// An amount of money: millionths of one currency.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Money {
    /// Millionths of the currency's unit.
    pub micros: u64,
    /// The currency's three letters, `USD`.
    pub currency: String,
}

impl FromStr for Money {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let refused = || UnitError::Money(text.to_owned());
        let trimmed = text.trim();
        let number_end = trimmed
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .ok_or_else(refused)?;
        let (number, currency) = trimmed.split_at(number_end);
        let currency = currency.trim();
        if currency.len() != 3 || !currency.bytes().all(|b| b.is_ascii_alphabetic()) {
            return Err(refused());
        }
        let micros = scaled(number, 1_000_000).ok_or_else(refused)?;
        Ok(Self {
            micros,
            currency: currency.to_ascii_uppercase(),
        })
    }
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", format_micros(self.micros), self.currency)
    }
}

/// Writes millionths of a currency's unit: `12.50`.
pub fn format_micros(micros: u64) -> String {
    let decimals = format!("{:06}", micros % 1_000_000);
    let trimmed = decimals.trim_end_matches('0');
    format!("{}.{trimmed:0<2}", micros / 1_000_000)
}

/// `digits[.digits]` times `unit`, exactly, or nothing.
fn scaled(number: &str, unit: u64) -> Option<u64> {
    let (whole, decimals) = match number.split_once('.') {
        None => (number, ""),
        Some((_, "")) => return None,
        Some(parts) => parts,
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    // Eighteen digits keep the arithmetic below inside 128 bits.
    if !digits(whole) || whole.len() > 18 || decimals.len() > 18 {
        return None;
    }
    if !decimals.is_empty() && !digits(decimals) {
        return None;
    }
    let mut value = whole.parse::<u128>().ok()? * u128::from(unit);
    if !decimals.is_empty() {
        let scale = 10_u128.pow(u32::try_from(decimals.len()).ok()?);
        let part = decimals.parse::<u128>().ok()? * u128::from(unit);
        if part % scale != 0 {
            return None;
        }
        value += part / scale;
    }
    u64::try_from(value)
        .ok()
        .filter(|exact| *exact <= INTEGER_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_as_people_write_them() {
        for (text, expected_us) in [
            ("300", 300_000_000),
            ("0.5", 500_000),
            ("90s", 90_000_000),
            ("5m", 300_000_000),
            ("1h30m", 5_400_000_000),
            ("1h 30m", 5_400_000_000),
            ("1.5h", 5_400_000_000),
            ("250ms", 250_000),
            ("7us", 7),
            ("2d", 172_800_000_000),
            ("0", 0),
        ] {
            assert_eq!(parse_duration_us(text), Ok(expected_us), "{text}");
        }
        for bad in [
            "",
            " ",
            "m",
            "5x",
            "5 m m",
            "30m1h",
            "5m5m",
            "-5s",
            "1e3",
            "nan",
            "5m3",
            ".5",
            "5.",
            "1..5s",
            "0.0000001",
            "99999999999d",
            "5M",
            "1,5s",
        ] {
            assert!(parse_duration_us(bad).is_err(), "{bad}");
        }
        assert_eq!(format_duration_us(5_400_000_000), "1h30m");
        assert_eq!(format_duration_us(0), "0s");
    }

    #[test]
    fn sizes_as_people_write_them() {
        for (text, expected) in [
            ("64MiB", 64 << 20),
            ("10 MB", 10_000_000),
            ("1024", 1024),
            ("1.5kib", 1536),
            ("1 gb", 1_000_000_000),
            ("0", 0),
            ("12B", 12),
        ] {
            assert_eq!(parse_size_bytes(text), Ok(expected), "{text}");
        }
        for bad in [
            "",
            "MB",
            "1.5B",
            "-1",
            "1 M",
            "1e6",
            "10 apples",
            "99999999TiB",
        ] {
            assert!(parse_size_bytes(bad).is_err(), "{bad}");
        }
        assert_eq!(format_size_bytes(64 << 20), "64MiB");
        assert_eq!(format_size_bytes(0), "0B");
    }

    #[test]
    fn money_as_people_write_it() {
        let money: Money = "12.50 USD".parse().unwrap();
        assert_eq!(
            money,
            Money {
                micros: 12_500_000,
                currency: "USD".to_owned()
            }
        );
        assert_eq!(money.to_string(), "12.50 USD");
        assert_eq!("3eur".parse::<Money>().unwrap().to_string(), "3.00 EUR");
        for bad in [
            "12.50",
            "USD",
            "12.50 dollars",
            "-1 USD",
            "1.0000001 USD",
            "1 U$D",
            "",
        ] {
            assert!(bad.parse::<Money>().is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(number in 0..=INTEGER_MAX) {
            prop_assert_eq!(parse_duration_us(&format_duration_us(number)), Ok(number));
            prop_assert_eq!(parse_size_bytes(&format_size_bytes(number)), Ok(number));
            let money = Money { micros: number, currency: "USD".to_owned() };
            prop_assert_eq!(money.to_string().parse::<Money>(), Ok(money));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,20}") {
            let _ = (parse_duration_us(&text), parse_size_bytes(&text), text.parse::<Money>());
        }
    }
}

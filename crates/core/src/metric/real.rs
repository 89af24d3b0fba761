//! [`Real`]: a finite number with one spelling, fit to be compared, hashed and shown.
//!
//! In canonical JSON a number that is not an integer is written as the shortest decimal text that
//! reads back as the same number. The spelling is ECMAScript's (and so RFC 8785's): plain digits
//! from 1e-6 up to 1e21, an exponent outside.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use serde::de::{Deserializer, Error as _, Unexpected, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use thiserror::Error;

use super::value::{is_decimal, names_no_finite};

/// Significant digits of the short form, as in C's `%g`.
const SHORT_DIGITS: usize = 6;
/// Whole numbers below have no more digits than that.
const WHOLE_MAX: f64 = 1e6;

/// A finite number. Minus zero is zero. Serialised as its shortest round-trip decimal text; read
/// back from that text or from a number.
#[derive(Debug, Clone, Copy)]
pub struct Real(f64);

/// Why a text or float is not a [`Real`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RealError {
    /// Not a plain decimal number.
    #[error("`{0}` is not a plain decimal number")]
    NotANumber(String),
    /// A nan, an infinity, or too large.
    #[error("`{0}` is not a finite number")]
    NotFinite(String),
}

impl Real {
    /// Zero.
    pub const ZERO: Self = Self(0.0);

    /// Takes a float if it is finite.
    pub fn new(value: f64) -> Result<Self, RealError> {
        if value.is_finite() {
            // Adding zero turns minus zero into zero and leaves the rest alone.
            Ok(Self(value + 0.0))
        } else {
            Err(RealError::NotFinite(value.to_string()))
        }
    }

    /// The float.
    pub fn get(self) -> f64 {
        self.0
    }

    /// At most six significant digits, as C's `%g` writes them: for people, not for the record.
    pub fn short(self) -> String {
        short_number(self.0)
    }
}

impl PartialEq for Real {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Real {}

impl PartialOrd for Real {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Real {
    fn cmp(&self, other: &Self) -> Ordering {
        // Total order and numeric order agree here: no nan, one zero.
        self.0.total_cmp(&other.0)
    }
}

impl Hash for Real {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

impl fmt::Display for Real {
    /// The shortest decimal text that reads back as the same number.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&shortest(self.0))
    }
}

impl FromStr for Real {
    type Err = RealError;

    fn from_str(text: &str) -> Result<Self, RealError> {
        if names_no_finite(text) {
            return Err(RealError::NotFinite(text.to_owned()));
        }
        if !is_decimal(text) {
            return Err(RealError::NotANumber(text.to_owned()));
        }
        let value = text
            .parse::<f64>()
            .map_err(|_| RealError::NotANumber(text.to_owned()))?;
        Self::new(value).map_err(|_| RealError::NotFinite(text.to_owned()))
    }
}

impl TryFrom<f64> for Real {
    type Error = RealError;

    fn try_from(value: f64) -> Result<Self, RealError> {
        Self::new(value)
    }
}

impl Serialize for Real {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&shortest(self.0))
    }
}

impl<'de> Deserialize<'de> for Real {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RealVisitor;

        impl Visitor<'_> for RealVisitor {
            type Value = Real;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a finite decimal number")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Real, E> {
                text.parse()
                    .map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
            }

            fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Real, E> {
                Real::new(value).map_err(|_| E::invalid_value(Unexpected::Float(value), &self))
            }

            fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Real, E> {
                Real::new(value as f64).map_err(E::custom)
            }

            fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Real, E> {
                Real::new(value as f64).map_err(E::custom)
            }
        }

        // Each format says which it holds; texts and numbers are both welcome.
        deserializer
            .deserialize_any(RealVisitor)
            .map_err(D::Error::custom)
    }
}

/// As RFC 8785 writes it in the record: of two texts that are equally near, the even one.
fn shortest(value: f64) -> String {
    serde_json_canonicalizer::to_string(&value).expect("BUG: a finite number has a text")
}

/// Any float with at most six significant digits, as C's `%g` writes it.
pub(crate) fn short_number(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if !value.is_finite() {
        return value.to_string().to_lowercase();
    }
    if value.abs() < WHOLE_MAX && value.fract() == 0.0 {
        // What most are, in a tenth of the time: listings show thousands.
        return (value as i64).to_string();
    }
    let scientific = format!("{value:.*e}", SHORT_DIGITS - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..SHORT_DIGITS as i32).contains(&exponent) {
        let decimals = (SHORT_DIGITS as i32 - 1 - exponent) as usize;
        trim_zeros(&format!("{value:.decimals$}")).to_owned()
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{}e{sign}{:02}", trim_zeros(mantissa), exponent.abs())
    }
}

fn trim_zeros(text: &str) -> &str {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn real(value: f64) -> Real {
        Real::new(value).unwrap()
    }

    #[test]
    fn the_shortest_text_is_as_ecmascript_writes_it() {
        let table = [
            (0.0, "0"),
            (-0.0, "0"),
            (7.0, "7"),
            (-7.5, "-7.5"),
            (0.1, "0.1"),
            (0.1 + 0.2, "0.30000000000000004"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (1.5e300, "1.5e+300"),
            (1e-6, "0.000001"),
            (1e-7, "1e-7"),
            (1.25e-9, "1.25e-9"),
            (5e-324, "5e-324"),
            (123_456.789, "123456.789"),
        ];
        for (value, text) in table {
            assert_eq!(real(value).to_string(), text);
        }
    }

    #[test]
    fn the_short_form_is_that_of_percent_g() {
        let table = [
            (0.0, "0"),
            (8.0, "8"),
            (8.5, "8.5"),
            (1.0 / 3.0, "0.333333"),
            (123_456.0, "123456"),
            (-999_999.0, "-999999"),
            (1_000_000.0, "1e+06"),
            (1_234_567.0, "1.23457e+06"),
            (999_999.5, "1e+06"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (-2.0 / 3.0, "-0.666667"),
            (1e300, "1e+300"),
            (100.0, "100"),
            (0.111_803_4, "0.111803"),
        ];
        for (value, text) in table {
            assert_eq!(real(value).short(), text);
        }
    }

    #[test]
    fn what_is_not_finite_is_refused() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(Real::new(value).is_err());
        }
        assert!(matches!(
            "nan".parse::<Real>(),
            Err(RealError::NotFinite(_))
        ));
        assert!(matches!(
            "1e999".parse::<Real>(),
            Err(RealError::NotFinite(_))
        ));
        assert!(matches!(
            "1_0".parse::<Real>(),
            Err(RealError::NotANumber(_))
        ));
        assert_eq!("-0.0".parse::<Real>().unwrap(), Real::ZERO);
        assert_eq!(real(-0.0).get().to_bits(), 0);
    }

    #[test]
    fn texts_and_numbers_are_read_and_texts_are_written() {
        for source in ["\"0.5\"", "0.5", "\"5e-1\""] {
            let read: Real = serde_json::from_str(source).unwrap();
            assert_eq!(serde_json::to_string(&read).unwrap(), "\"0.5\"");
        }
        assert_eq!(serde_json::from_str::<Real>("-3").unwrap(), real(-3.0));
        for source in ["\"nan\"", "null", "true", "\"\"", "[]"] {
            assert!(serde_json::from_str::<Real>(source).is_err(), "{source}");
        }
    }

    #[test]
    fn of_two_texts_that_are_equally_near_the_even_one_is_written() {
        let text = real(f64::from_bits(14_042_656_792_745_409_508)).to_string();
        assert_eq!(text, "-154273569736671.12");
    }

    proptest! {
        #[test]
        fn every_finite_number_survives_its_text(bits in any::<u64>()) {
            let value = f64::from_bits(bits);
            prop_assume!(value.is_finite());
            let text = real(value).to_string();
            prop_assert_eq!(text.parse::<Real>().unwrap(), real(value));
            prop_assert_eq!(&text, &serde_json_canonicalizer::to_string(&(value + 0.0)).unwrap());
        }

        #[test]
        fn order_is_numeric(left in -1e9_f64..1e9, right in -1e9_f64..1e9) {
            prop_assert_eq!(real(left).cmp(&real(right)), left.partial_cmp(&right).unwrap());
        }
    }
}

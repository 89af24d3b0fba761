//! Numbers that are not whole, and tolerances: kept as text wherever they are hashed.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A finite number, written as the shortest decimal text that reads back as the same number.
///
/// Specifications are hashed, and no two writers of floating-point JSON agree on every number.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Decimal(f64);

/// Why a text is no number for a specification.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a finite number")]
pub struct NotANumber(pub String);

impl Decimal {
    /// The number, unless it is infinite or not a number.
    pub fn new(number: f64) -> Option<Self> {
        // Adding zero turns -0 into 0: two texts for one number would be two hashes.
        number.is_finite().then_some(Self(number + 0.0))
    }

    /// The number as the machine calculates with it.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:?}", self.0);
        f.write_str(text.strip_suffix(".0").unwrap_or(&text))
    }
}

impl FromStr for Decimal {
    type Err = NotANumber;

    fn from_str(text: &str) -> Result<Self, NotANumber> {
        let refused = || NotANumber(text.to_owned());
        let number: f64 = text.trim().parse().map_err(|_| refused())?;
        Self::new(number).ok_or_else(refused)
    }
}

impl TryFrom<String> for Decimal {
    type Error = NotANumber;

    fn try_from(text: String) -> Result<Self, NotANumber> {
        text.parse()
    }
}

impl From<Decimal> for String {
    fn from(decimal: Decimal) -> Self {
        decimal.to_string()
    }
}

/// How far a guarded metric may move: in its own unit, or in percent of what it is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Tolerance {
    /// So much, in the metric's own unit.
    Absolute(Decimal),
    /// So many hundredths of the value it is compared with.
    Percent(Decimal),
}

impl Tolerance {
    /// The number without its unit.
    pub fn amount(self) -> f64 {
        match self {
            Self::Absolute(number) | Self::Percent(number) => number.get(),
        }
    }
}

impl fmt::Display for Tolerance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absolute(number) => write!(f, "{number}"),
            Self::Percent(number) => write!(f, "{number}%"),
        }
    }
}

impl FromStr for Tolerance {
    type Err = NotANumber;

    fn from_str(text: &str) -> Result<Self, NotANumber> {
        match text.trim().strip_suffix('%') {
            Some(number) => number.parse().map(Self::Percent),
            None => text.parse().map(Self::Absolute),
        }
        .map_err(|_| NotANumber(text.to_owned()))
    }
}

impl TryFrom<String> for Tolerance {
    type Error = NotANumber;

    fn try_from(text: String) -> Result<Self, NotANumber> {
        text.parse()
    }
}

impl From<Tolerance> for String {
    fn from(tolerance: Tolerance) -> Self {
        tolerance.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_text_for_one_number() {
        for (text, expected) in [
            ("1.0", "1"),
            ("-0", "0"),
            ("0.050", "0.05"),
            ("1e300", "1e300"),
            (" 5 ", "5"),
        ] {
            assert_eq!(text.parse::<Decimal>().unwrap().to_string(), expected);
        }
        for bad in ["", "nan", "inf", "-inf", "1e999", "1,5", "5%"] {
            assert!(bad.parse::<Decimal>().is_err(), "{bad}");
        }
    }

    #[test]
    fn tolerances_know_their_unit() {
        assert_eq!("5%".parse::<Tolerance>().unwrap().to_string(), "5%");
        assert_eq!("0.50".parse::<Tolerance>().unwrap().to_string(), "0.5");
        assert!("five".parse::<Tolerance>().is_err());
        assert!("%".parse::<Tolerance>().is_err());
    }

    proptest! {
        #[test]
        fn text_reads_back(number in any::<f64>().prop_filter("finite", |n| n.is_finite())) {
            let decimal = Decimal::new(number).unwrap();
            prop_assert_eq!(decimal.to_string().parse::<Decimal>().unwrap(), decimal);
        }
    }
}

//! The grammar of one value: what counts as a plain number, and what is refused.

use super::real::{Real, RealError};

/// What a value turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Parsed {
    /// A usable number.
    Finite(Real),
    /// `nan`, an infinity, or a number too large for one.
    NotFinite,
    /// Anything else.
    Malformed,
}

impl Parsed {
    /// Reads the value of a `key=value` line, white space already taken off.
    pub(super) fn plain(text: &str) -> Self {
        match text.parse::<Real>() {
            Ok(real) => Self::Finite(real),
            Err(RealError::NotFinite(_)) => Self::NotFinite,
            Err(RealError::NotANumber(_)) => Self::Malformed,
        }
    }

    /// Reads a bare token of a JSON document. Python's `NaN` and `Infinity` are not JSON but are
    /// what its standard library prints, so they are told apart from nonsense.
    pub(super) fn json_token(token: &str) -> Self {
        if matches!(token, "NaN" | "Infinity" | "-Infinity") {
            return Self::NotFinite;
        }
        let digits = token.strip_prefix('-').unwrap_or(token);
        let whole = digits.split(['.', 'e', 'E']).next().unwrap_or_default();
        let leading_zero = whole.len() > 1 && whole.starts_with('0');
        let bare_point = whole.is_empty()
            || digits.ends_with('.')
            || digits.contains(".e")
            || digits.contains(".E");
        if leading_zero || bare_point || !whole.bytes().all(|byte| byte.is_ascii_digit()) {
            return Self::Malformed;
        }
        Self::plain(token)
    }
}

/// Whether the text is a decimal number: optional sign, digits with an optional point, optional
/// exponent. No separators, no other bases, no units.
pub(super) fn is_decimal(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => (&unsigned[..at], Some(&unsigned[at + 1..])),
        None => (unsigned, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let mantissa_good =
        all_digits(whole) && all_digits(fraction) && !(whole.is_empty() && fraction.is_empty());
    let exponent_good = exponent.is_none_or(|part| {
        let digits = part.strip_prefix(['+', '-']).unwrap_or(part);
        !digits.is_empty() && all_digits(digits)
    });
    mantissa_good && exponent_good
}

/// Whether the text names a value that is no finite number: `nan`, `inf`, `infinity`, any case,
/// with or without a sign.
pub(super) fn names_no_finite(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    ["nan", "inf", "infinity"]
        .iter()
        .any(|word| unsigned.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finite(value: f64) -> Parsed {
        Parsed::Finite(Real::new(value).unwrap())
    }

    #[test]
    fn plain_values() {
        let table = [
            ("1.5", finite(1.5)),
            (".5", finite(0.5)),
            ("5.", finite(5.0)),
            ("+1.5", finite(1.5)),
            ("-2", finite(-2.0)),
            ("1e-3", finite(0.001)),
            ("1E+2", finite(100.0)),
            ("007", finite(7.0)),
            ("1e-999", finite(0.0)),
            ("-0", finite(0.0)),
            ("5.e1", finite(50.0)),
        ];
        for (text, expected) in table {
            assert_eq!(Parsed::plain(text), expected, "{text}");
        }
        for text in [
            "nan",
            "NaN",
            "-nan",
            "inf",
            "-Infinity",
            "+INF",
            "1e999",
            "-1e400",
        ] {
            assert_eq!(Parsed::plain(text), Parsed::NotFinite, "{text}");
        }
        assert_eq!(Parsed::plain(&"9".repeat(400)), Parsed::NotFinite);
        for text in [
            "",
            ".",
            "+",
            "e5",
            "1e",
            "1e+",
            "1,234.5",
            "0,5",
            "1_000",
            "1.2.3",
            "3/4",
            "0x10",
            "12ms",
            "95%",
            "1:30",
            "true",
            "\"0.5\"",
            "$5",
            "(1.5)",
            "[1.5]",
            "--1",
            "+-1",
            "info",
            "nano",
            "None",
            "abc",
            "1 2 3",
            "=1",
            "\u{2212}1",
            "\u{ff11}",
            "\u{661}",
            "1e5.0",
            "-",
            "infinit",
        ] {
            assert_eq!(Parsed::plain(text), Parsed::Malformed, "{text}");
        }
    }

    #[test]
    fn json_tokens() {
        for (text, value) in [
            ("7", 7.0),
            ("-0.5", -0.5),
            ("1e3", 1000.0),
            ("0", 0.0),
            ("0.25", 0.25),
            ("1.5E-1", 0.15),
        ] {
            assert_eq!(Parsed::json_token(text), finite(value), "{text}");
        }
        for text in ["NaN", "Infinity", "-Infinity", "1e999"] {
            assert_eq!(Parsed::json_token(text), Parsed::NotFinite, "{text}");
        }
        for text in [
            "true", "null", "007", ".5", "5.", "5.e1", "+1", "12ms", "1.2.3", "-", "nan", "inf",
            "0x10",
        ] {
            assert_eq!(Parsed::json_token(text), Parsed::Malformed, "{text}");
        }
    }
}

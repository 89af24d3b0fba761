//! Numbers as text: at most six significant digits, no trailing zeros.

/// Writes a value with at most six significant digits.
///
/// Very large and very small values get an exponent. Values that aren't finite
/// are written `unknown`: they never came out of a measurement.
///
/// ```
/// use loopwright_report::format_number;
/// assert_eq!(format_number(0.123_456_78), "0.123457");
/// assert_eq!(format_number(1200.0), "1200");
/// assert_eq!(format_number(-2_500_000.0), "-2.5e6");
/// ```
pub fn format_number(value: f64) -> String {
    if !value.is_finite() {
        return "unknown".to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    let scientific = format!("{value:.5e}");
    let (mantissa, exponent) = scientific
        .split_once('e')
        .unwrap_or((scientific.as_str(), "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        let decimals = usize::try_from(5 - exponent).unwrap_or(0);
        trim_zeros(&format!("{value:.decimals$}")).to_owned()
    } else {
        format!("{}e{exponent}", trim_zeros(mantissa))
    }
}

/// A value with its unit: `1.2 s`, `95%`, `3`.
pub(crate) fn with_unit(value: f64, unit: Option<&str>) -> String {
    let number = format_number(value);
    match unit {
        Some("%") => format!("{number}%"),
        Some(unit) if !unit.is_empty() => format!("{number} {unit}"),
        _ => number,
    }
}

/// A share in percent with three significant digits, unsigned.
pub(crate) fn percent(share: f64) -> String {
    let value = (share * 100.0).abs();
    if value >= 1e6 {
        return format!("{} %", format_number(value.round()));
    }
    let decimals = match value {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        _ => 2,
    };
    let text = format!("{value:.decimals$}");
    if value < 100.0 && text.starts_with("100") {
        return "over 99.9 %".to_owned();
    }
    format!("{} %", trim_zeros(&text))
}

/// The largest number of at most six significant digits that isn't above `value`.
pub(crate) fn round_down(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let rounded: f64 = format!("{value:.5e}").parse().unwrap_or(value);
    if rounded <= value {
        return rounded;
    }
    let unit = 10f64.powi(value.abs().log10().floor() as i32 - 5);
    format!("{:.5e}", rounded - unit).parse().unwrap_or(value)
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
    use super::*;

    #[test]
    fn six_digits_at_most() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (1.0, "1"),
            (0.1 + 0.2, "0.3"),
            (123_456.78, "123457"),
            (999_999.9, "1e6"),
            (1e21, "1e21"),
            (1.234_567e-7, "1.23457e-7"),
            (0.000_123_456_7, "0.000123457"),
            (-42.5, "-42.5"),
            (f64::NAN, "unknown"),
            (f64::INFINITY, "unknown"),
        ] {
            assert_eq!(format_number(value), text, "{value}");
        }
    }

    #[test]
    fn units_and_percent() {
        assert_eq!(with_unit(1.5, Some("s")), "1.5 s");
        assert_eq!(with_unit(95.0, Some("%")), "95%");
        assert_eq!(with_unit(95.0, None), "95");
        assert_eq!(percent(-0.123_45), "12.3 %");
        assert_eq!(percent(0.000_1), "0.01 %");
        assert_eq!(percent(12.0), "1200 %");
        assert_eq!(percent(-1.0), "100 %");
        assert_eq!(percent(-0.999_999), "over 99.9 %");
    }

    #[test]
    fn rounding_down_never_rises() {
        for value in [
            1_234_567.89,
            -1_234_567.89,
            9.999_999,
            3.0,
            -0.000_123_456_78,
        ] {
            assert!(round_down(value) <= value, "{value}");
        }
        assert_eq!(round_down(1_234_567.89), 1_234_560.0);
    }
}

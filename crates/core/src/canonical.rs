//! Canonical JSON (RFC 8785), the only form in which anything is hashed.
//!
//! Hashed values hold strings, integers within ±(2^53 - 1), booleans, null, arrays and objects.
//! Other numbers are written by their types as shortest-round-trip decimal *strings*, because two
//! JSON libraries need not print a float alike; here they are refused.

use serde::Serialize;
use serde_json::{Number, Value};

/// The largest integer that every JSON reader keeps exactly.
pub const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// A value that can't be written canonically.
#[derive(Debug, thiserror::Error)]
pub enum CanonicalError {
    /// A number that is not a safe integer stands at `path`.
    #[error(
        "the number {number} at {path} is not an integer within 2^53: write it as a decimal string"
    )]
    Number {
        /// JSON pointer to the place.
        path: String,
        /// The number as JSON prints it.
        number: String,
    },
    /// The type does not serialise to JSON.
    #[error("can't be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// The canonical bytes of `value`.
pub fn to_canonical<T: Serialize>(value: &T) -> Result<Vec<u8>, CanonicalError> {
    let value = serde_json::to_value(value)?;
    check(&value)?;
    if is_in_order(&value) {
        return Ok(serde_json::to_vec(&value)?);
    }
    Ok(serde_json_canonicalizer::to_vec(&value)?)
}

/// Whether the keys stand in canonical order already, in a value that [`check`] has passed. With
/// ASCII keys bytes sort as UTF-16 units do, and what is left of the canonical form (escapes, no
/// white space) is `serde_json`'s own.
pub(crate) fn is_in_order(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().all(is_in_order),
        Value::Object(fields) => {
            let keys = fields.keys().zip(fields.keys().skip(1));
            fields.keys().all(|key| key.is_ascii())
                && keys.into_iter().all(|(one, next)| one < next)
                && fields.values().all(is_in_order)
        }
        Value::Number(_) | Value::Null | Value::Bool(_) | Value::String(_) => true,
    }
}

/// Refuses numbers that are not safe integers. (A path is made only for one that is refused.)
pub(crate) fn check(value: &Value) -> Result<(), CanonicalError> {
    if is_safe(value) {
        return Ok(());
    }
    refuse(value, &mut String::new())
}

fn is_safe(value: &Value) -> bool {
    match value {
        Value::Number(number) => is_safe_integer(number),
        Value::Array(items) => items.iter().all(is_safe),
        Value::Object(fields) => fields.values().all(is_safe),
        Value::Null | Value::Bool(_) | Value::String(_) => true,
    }
}

fn is_safe_integer(number: &Number) -> bool {
    number
        .as_i64()
        .map(i64::unsigned_abs)
        .or_else(|| number.as_u64())
        .is_some_and(|magnitude| magnitude <= MAX_SAFE_INTEGER)
}

fn refuse(value: &Value, path: &mut String) -> Result<(), CanonicalError> {
    let length = path.len();
    match value {
        Value::Number(number) => {
            if !is_safe_integer(number) {
                return Err(CanonicalError::Number {
                    path: if path.is_empty() {
                        "/".to_owned()
                    } else {
                        path.clone()
                    },
                    number: number.to_string(),
                });
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                path.push('/');
                path.push_str(&index.to_string());
                refuse(item, path)?;
                path.truncate(length);
            }
        }
        Value::Object(fields) => {
            for (key, item) in fields {
                path.push('/');
                path.push_str(key);
                refuse(item, path)?;
                path.truncate(length);
            }
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_are_sorted_by_utf16_units_and_floats_are_refused() {
        // RFC 8785 §3.2.3: U+FB33 sorts after the surrogate pair of U+1F600.
        let text =
            to_canonical(&json!({"\u{fb33}": 1, "\u{1f600}": 2, "a": [true, null]})).unwrap();
        assert_eq!(
            text,
            "{\"a\":[true,null],\"\u{1f600}\":2,\"\u{fb33}\":1}".as_bytes()
        );
        let error = to_canonical(&json!({"a": [1, 0.5]})).unwrap_err();
        assert!(error.to_string().contains("0.5 at /a/1"), "{error}");
        assert!(to_canonical(&json!(MAX_SAFE_INTEGER)).is_ok());
        assert!(to_canonical(&json!(MAX_SAFE_INTEGER + 1)).is_err());
        assert!(to_canonical(&json!(-(MAX_SAFE_INTEGER as i64) - 1)).is_err());
    }

    proptest! {
        #[test]
        fn canonical_text_reads_back_and_is_a_fixed_point(text in ".*", number in -1_000_000i64..1_000_000) {
            let value = json!({"text": text, "list": [number, {"deep": text}]});
            let bytes = to_canonical(&value).unwrap();
            let back: Value = serde_json::from_slice(&bytes).unwrap();
            prop_assert_eq!(&back, &value);
            prop_assert_eq!(to_canonical(&back).unwrap(), bytes);
        }

        #[test]
        fn the_short_way_is_the_long_way(keys in proptest::collection::vec("[\\PC\u{fb33}\u{1f600}]{0,3}", 0..6), text in ".*") {
            let fields = keys.into_iter().map(|key| (key.clone(), json!({"b": key, "a": [text, -3]})));
            let value = Value::Object(fields.collect());
            let long = serde_json_canonicalizer::to_vec(&value).unwrap();
            prop_assert_eq!(to_canonical(&value).unwrap(), long);
        }
    }
}

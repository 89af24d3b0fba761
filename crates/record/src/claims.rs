//! What events say is kept elsewhere: blobs by digest, git objects by id.
//!
//! Two conventions make them findable without knowing an event's kind. A string that begins with
//! `sha256:` under a key ending in `_blob` names a blob; a string of 40 or 64 hex digits under a
//! key ending in `tree`, `commit` or `_oid` names a git object. A list under such a key names
//! several.

use std::collections::BTreeMap;

use loopwright_core::digest::Digest;
use serde_json::Value;

/// Where something was named first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedBy {
    /// The batch.
    pub batch: u64,
    /// The event's number.
    pub seq: u64,
}

/// Everything that a run's events name.
#[derive(Debug, Default)]
pub struct Claims {
    /// The blobs.
    pub blobs: BTreeMap<Digest, NamedBy>,
    /// The git objects.
    pub git: BTreeMap<String, NamedBy>,
}

impl Claims {
    /// Notes what an event's body names; what looks like a blob's name and isn't one comes back.
    pub fn note(&mut self, body: &Value, by: NamedBy) -> Vec<String> {
        let mut bad = Vec::new();
        self.walk("", body, by, &mut bad);
        bad
    }

    fn walk(&mut self, key: &str, value: &Value, by: NamedBy, bad: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                for (key, value) in fields {
                    self.walk(key, value, by, bad);
                }
            }
            Value::Array(items) => {
                for item in items {
                    self.walk(key, item, by, bad);
                }
            }
            Value::String(text) => self.text(key, text, by, bad),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn text(&mut self, key: &str, text: &str, by: NamedBy, bad: &mut Vec<String>) {
        if key.ends_with("_blob") && text.starts_with("sha256:") {
            match text.parse() {
                Ok(digest) => {
                    self.blobs.entry(digest).or_insert(by);
                }
                Err(_) => bad.push(format!("{key} is {text:?}, which is no digest")),
            }
        }
        let git = ["tree", "commit", "_oid"]
            .iter()
            .any(|end| key.ends_with(end));
        if git && is_oid(text) {
            self.git.entry(text.to_owned()).or_insert(by);
        }
    }
}

fn is_oid(text: &str) -> bool {
    let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    matches!(text.len(), 40 | 64) && text.bytes().all(hex)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_conventions_name_something() {
        let blob = Digest::of_content(b"x");
        let oid = "0123456789abcdef0123456789abcdef01234567";
        let body = json!({
            "log_blob": blob,
            "log": Digest::of_content(b"not named"),
            "gone_blob": null,
            "bad_blob": "sha256:12",
            "inner": [{"candidate_tree": oid, "commit": "HEAD", "head_oid": oid.to_uppercase()}],
            "parent_commit": [oid.replace('0', "1")],
        });
        let mut claims = Claims::default();
        let bad = claims.note(&body, NamedBy { batch: 1, seq: 2 });
        assert_eq!(claims.blobs.keys().collect::<Vec<_>>(), [&blob]);
        let oids: Vec<_> = claims.git.keys().cloned().collect();
        assert_eq!(oids, [oid.to_owned(), oid.replace('0', "1")]);
        assert_eq!(bad.len(), 1, "{bad:?}");
    }
}

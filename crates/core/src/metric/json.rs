//! The top level of a JSON object, read line by line without recursion and without building it.
//!
//! The structure is checked (brackets, commas, colons, strings); bare tokens are taken as they come,
//! because what a *wanted* token means is for [`super::value`] to say: `1.2.3` where a number was
//! expected should be refused aloud, not make the object disappear.

use std::borrow::Cow;

/// Deeper documents are not read: nothing a metric stands beside nests like this.
const DEEPEST: usize = 4096;

/// How far the object has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// More lines may follow.
    Open,
    /// Complete, with nothing behind it.
    Done,
    /// Not a JSON object.
    Failed,
}

/// A member of the top level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MemberValue<'a> {
    /// A number, a word, or something bare that is neither.
    Bare(&'a str),
    /// A string, an array or an object.
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expect {
    Opening,
    KeyOrEnd,
    Key,
    Colon,
    Value,
    ValueOrEnd,
    CommaOrEnd,
    Nothing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Container {
    Object,
    Array,
}

/// An object being read.
#[derive(Debug)]
pub(super) struct TopLevel {
    expect: Expect,
    stack: Vec<Container>,
    key: String,
}

impl TopLevel {
    pub(super) fn new() -> Self {
        Self {
            expect: Expect::Opening,
            stack: Vec::new(),
            key: String::new(),
        }
    }

    /// Reads one more line and reports the members of the top level found in it.
    pub(super) fn line(
        &mut self,
        line: &str,
        report: &mut impl FnMut(&str, MemberValue<'_>),
    ) -> Progress {
        let mut rest = line.trim_start();
        while let Some(first) = rest.bytes().next() {
            let length = match first {
                b'"' => self.string(rest, report),
                b'{' | b'[' => self.open(first, report),
                b'}' | b']' => self.close(first),
                b':' => self.follow(Expect::Colon, Expect::Value),
                b',' => self.comma(),
                _ => self.bare(rest, report),
            };
            let Some(length) = length else {
                return Progress::Failed;
            };
            rest = rest[length..].trim_start();
        }
        if self.expect == Expect::Nothing {
            Progress::Done
        } else {
            Progress::Open
        }
    }

    fn follow(&mut self, from: Expect, to: Expect) -> Option<usize> {
        (self.expect == from).then(|| {
            self.expect = to;
            1
        })
    }

    fn comma(&mut self) -> Option<usize> {
        let next = if self.stack.last()? == &Container::Object {
            Expect::Key
        } else {
            Expect::Value
        };
        self.follow(Expect::CommaOrEnd, next)
    }

    fn takes_value(&self) -> bool {
        matches!(self.expect, Expect::Value | Expect::ValueOrEnd)
    }

    /// A value begins or stands here: reports it if it is a member of the top level.
    fn member(&self, value: MemberValue<'_>, report: &mut impl FnMut(&str, MemberValue<'_>)) {
        if self.stack.len() == 1 {
            report(&self.key, value);
        }
    }

    fn open(
        &mut self,
        bracket: u8,
        report: &mut impl FnMut(&str, MemberValue<'_>),
    ) -> Option<usize> {
        let first = self.expect == Expect::Opening && bracket == b'{';
        if !(first || self.takes_value()) || self.stack.len() >= DEEPEST {
            return None;
        }
        self.member(MemberValue::Other, report);
        let (container, expect) = if bracket == b'{' {
            (Container::Object, Expect::KeyOrEnd)
        } else {
            (Container::Array, Expect::ValueOrEnd)
        };
        self.stack.push(container);
        self.expect = expect;
        Some(1)
    }

    fn close(&mut self, bracket: u8) -> Option<usize> {
        let (container, empty) = if bracket == b'}' {
            (Container::Object, Expect::KeyOrEnd)
        } else {
            (Container::Array, Expect::ValueOrEnd)
        };
        if self.stack.last() != Some(&container)
            || !(self.expect == Expect::CommaOrEnd || self.expect == empty)
        {
            return None;
        }
        self.stack.pop();
        self.expect = if self.stack.is_empty() {
            Expect::Nothing
        } else {
            Expect::CommaOrEnd
        };
        Some(1)
    }

    fn string(
        &mut self,
        rest: &str,
        report: &mut impl FnMut(&str, MemberValue<'_>),
    ) -> Option<usize> {
        let length = string_length(rest)?;
        if matches!(self.expect, Expect::KeyOrEnd | Expect::Key) {
            if self.stack.len() == 1 {
                self.key = unescaped(&rest[..length])?.into_owned();
            }
            self.expect = Expect::Colon;
        } else if self.takes_value() {
            self.member(MemberValue::Other, report);
            self.expect = Expect::CommaOrEnd;
        } else {
            return None;
        }
        Some(length)
    }

    fn bare(
        &mut self,
        rest: &str,
        report: &mut impl FnMut(&str, MemberValue<'_>),
    ) -> Option<usize> {
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-._".contains(byte);
        let length = rest
            .as_bytes()
            .iter()
            .take_while(|byte| is_part(byte))
            .count();
        if length == 0 || !self.takes_value() {
            return None;
        }
        self.member(MemberValue::Bare(&rest[..length]), report);
        self.expect = Expect::CommaOrEnd;
        Some(length)
    }
}

/// The length of the string at the beginning of `rest`, quotes included; none if it does not end or
/// holds a control character.
fn string_length(rest: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, byte) in rest.bytes().enumerate().skip(1) {
        match byte {
            0..=0x1f => return None,
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// The text of a quoted string.
fn unescaped(quoted: &str) -> Option<Cow<'_, str>> {
    if quoted.contains('\\') {
        serde_json::from_str(quoted).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(&quoted[1..quoted.len() - 1]))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(document: &str) -> (Progress, Vec<(String, String)>) {
        let mut members = Vec::new();
        let mut report = |key: &str, value: MemberValue<'_>| {
            let value = if let MemberValue::Bare(text) = value {
                text
            } else {
                "other"
            };
            members.push((key.to_owned(), value.to_owned()));
        };
        let mut top = TopLevel::new();
        let mut progress = Progress::Open;
        for line in document.lines() {
            progress = top.line(line, &mut report);
            if progress == Progress::Failed {
                break;
            }
        }
        (progress, members)
    }

    #[test]
    fn members_of_the_top_level_only() {
        let (progress, members) = read(
            "{\"a\": 1, \"b\": {\"m\": 2, \"x\": [{\"m\": 3}]}, \"c\": [1, [2]], \"\\u006d\": 7e0, \"s\": \"m\"}",
        );
        assert_eq!(progress, Progress::Done);
        let expected = [
            ("a", "1"),
            ("b", "other"),
            ("c", "other"),
            ("m", "7e0"),
            ("s", "other"),
        ];
        assert_eq!(
            members,
            expected.map(|(key, value)| (key.to_owned(), value.to_owned()))
        );
    }

    #[test]
    fn what_is_no_object_fails() {
        for document in [
            "[1]",
            "7",
            "\"m\"",
            "{\"a\" 1}",
            "{\"a\": 1,}",
            "{,}",
            "{\"a\": }",
            "{\"a\": 1} x",
            "{\"a\": 1}{",
            "{'a': 1}",
            "{a: 1}",
            "{\"a\": [1}",
            "{\"a\": 1]",
            "{\"a\": \"x\n\"}",
            "{{",
            "{\"a\"::1}",
            "{\"a\": 1 2}",
            "x {\"a\": 1}",
            "{\"a\": (1)}",
            "{\"\\q\": 1}",
        ] {
            assert_eq!(read(document).0, Progress::Failed, "{document}");
        }
        for document in ["{", "{\"a\":", "{\"a\": [1,", "{\"a\": {"] {
            assert_eq!(read(document).0, Progress::Open, "{document}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        assert_eq!(read(&"{".repeat(100_000)).0, Progress::Failed);
        assert_eq!(
            read(&format!("{{\"a\":{}", "[".repeat(100_000))).0,
            Progress::Failed
        );
        assert_eq!(read(&"{\"a\":".repeat(100_000)).0, Progress::Failed);
        assert_eq!(
            read(&format!(
                "{{\"a\":{}{}}}",
                "[".repeat(1000),
                "]".repeat(1000)
            ))
            .0,
            Progress::Done
        );
    }

    fn any_json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            (-1e12_f64..1e12).prop_map(Into::into),
            any::<String>().prop_map(Into::into),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
                prop::collection::btree_map(any::<String>(), inner, 0..4)
                    .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_object_is_read_compact_and_pretty(members in prop::collection::btree_map(any::<String>(), any_json(), 0..5)) {
            let keys: Vec<String> = members.keys().cloned().collect();
            let object = serde_json::Value::Object(members.into_iter().collect());
            for document in [serde_json::to_string(&object).unwrap(), serde_json::to_string_pretty(&object).unwrap()] {
                let (progress, seen) = read(&document);
                prop_assert_eq!(progress, Progress::Done);
                let mut seen_keys: Vec<String> = seen.into_iter().map(|(key, _)| key).collect();
                seen_keys.sort();
                prop_assert_eq!(&seen_keys, &keys);
            }
        }

        #[test]
        fn nothing_panics(document in "[\\[\\]{}:,\" a1\\\\é\n]{0,60}") {
            read(&document);
        }
    }
}

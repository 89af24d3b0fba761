//! What changed between two specifications of one loop, and what each change means.

use std::collections::BTreeMap;

use serde::Serialize;

use super::experiment::ExperimentSpec;
use super::setting::Class;
use super::table::setting;

/// A setting that changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FieldChange {
    /// The setting, as the table names it (`run`, `env.RUST_LOG`, `guard.size`).
    pub key: String,
    /// Its value before, as text; none where it had none.
    pub old: Option<String>,
    /// Its value now.
    pub new: Option<String>,
}

impl std::fmt::Display for FieldChange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = |value: &Option<String>| {
            value
                .as_ref()
                .map_or_else(|| "not set".to_owned(), |text| format!("`{text}`"))
        };
        write!(
            f,
            "{} was {}, now {}",
            self.key,
            shown(&self.old),
            shown(&self.new)
        )
    }
}

/// Everything that changed, by what it means.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Drift {
    /// The loop would be another one; a new loop is needed.
    pub refused: Vec<FieldChange>,
    /// A new segment with a fresh baseline is needed.
    pub harness: Vec<FieldChange>,
    /// Nothing is needed.
    pub free: Vec<FieldChange>,
}

impl Drift {
    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.refused.is_empty() && self.harness.is_empty() && self.free.is_empty()
    }
}

impl ExperimentSpec {
    /// What changed from `old` to `new`.
    pub fn drift(old: &Self, new: &Self) -> Drift {
        let (before, after) = (old.texts(), new.texts());
        let mut drift = Drift::default();
        let mut keys: Vec<&String> = before.keys().chain(after.keys()).collect();
        keys.sort_unstable();
        keys.dedup();
        for key in keys {
            let (old, new) = (before.get(key).cloned(), after.get(key).cloned());
            if old == new {
                continue;
            }
            let change = FieldChange {
                key: key.clone(),
                old,
                new,
            };
            match class_of(key) {
                Class::Identity => drift.refused.push(change),
                Class::Harness => drift.harness.push(change),
                Class::Free => drift.free.push(change),
            }
        }
        drift
    }

    /// The settings measurements depend on, by key and as text: what a harness digest covers
    /// besides the protected files themselves.
    pub fn harness_texts(&self) -> BTreeMap<String, String> {
        let mut texts = self.texts();
        texts.retain(|key, _| class_of(key) != Class::Free);
        texts
    }

    /// Every setting that has a value, as text.
    fn texts(&self) -> BTreeMap<String, String> {
        let named = [("name".to_owned(), self.name.clone())];
        let set = self
            .entries()
            .into_iter()
            .filter_map(|(key, value)| Some((key, value?.to_string())));
        named.into_iter().chain(set).collect()
    }
}

/// A key outside the table can only be the loop's name, which is what the loop is.
fn class_of(key: &str) -> Class {
    setting(key).map_or(Class::Identity, |setting| setting.class)
}

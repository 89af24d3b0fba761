//! Events: the immutable facts of a run's history.
//!
//! An event's id is the digest of its canonical bytes, parents included, so that events form a
//! Merkle DAG. The bytes are kept as they were written: later releases decode them with
//! [`Event::decode`], which lifts older schemas, and never write them again.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::canonical::{CanonicalError, MAX_SAFE_INTEGER, check, is_in_order, to_canonical};
use crate::digest::Digest;
use crate::ids::{BranchName, EffectId, RunId};
use crate::time::Micros;

/// The schema that this release writes.
pub const EVENT_SCHEMA: u32 = 1;

/// The domain of event ids.
const EVENT_DOMAIN: &str = "loopwright/event/1";

/// What part of a run an event is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scope {
    /// The branch, where the event belongs to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<BranchName>,
    /// The trial's number in an experiment run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<u64>,
    /// The iteration's number in an agent or search run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u64>,
}

impl Scope {
    /// The whole run.
    pub fn run() -> Self {
        Self::default()
    }

    /// A trial on a branch.
    pub fn trial(branch: &BranchName, trial: u64) -> Self {
        Self {
            branch: Some(branch.clone()),
            trial: Some(trial),
            iteration: None,
        }
    }

    /// A branch as a whole.
    pub fn branch(branch: &BranchName) -> Self {
        Self {
            branch: Some(branch.clone()),
            ..Self::default()
        }
    }

    /// An iteration.
    pub fn iteration(iteration: u64) -> Self {
        Self {
            iteration: Some(iteration),
            ..Self::default()
        }
    }
}

/// What was scrubbed from an event before it was hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scrub {
    /// The version of the rule set.
    pub rules: u32,
    /// How many values it replaced.
    pub values: u64,
}

/// One immutable fact. Shape: `{schema, run, seq, parents, kind, scope, effect?, attempt?, time,
/// scrub, body}`; unique by (run, seq), and by (run, effect, attempt, kind) where there is an
/// effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// The envelope's schema.
    pub schema: u32,
    /// The run.
    pub run: RunId,
    /// The place in the run, from 0, without gaps.
    pub seq: u64,
    /// Ids of the events this one follows from; the first is the causal one. Empty only for the
    /// first event of a run that was not forked.
    pub parents: Vec<Digest>,
    /// What happened, `noun.verb`.
    pub kind: String,
    /// What it is about.
    #[serde(default, skip_serializing_if = "is_whole_run")]
    pub scope: Scope,
    /// The effect it announces or settles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<EffectId>,
    /// Which attempt at that effect, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// When it was recorded; never earlier than the event before it.
    pub time: Micros,
    /// What was scrubbed.
    pub scrub: Scrub,
    /// The rest, by kind. No numbers but integers.
    pub body: Value,
}

fn is_whole_run(scope: &Scope) -> bool {
    *scope == Scope::default()
}

/// An event with the bytes and the id it is stored under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sealed {
    /// The decoded event.
    pub event: Event,
    /// Its id.
    pub id: Digest,
    /// Its canonical bytes.
    pub bytes: Vec<u8>,
}

/// An event's fields in the order of their names, which is the canonical one.
#[derive(Serialize)]
struct InOrder<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<u32>,
    body: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    effect: Option<&'a EffectId>,
    kind: &'a str,
    parents: &'a [Digest],
    run: &'a RunId,
    schema: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<ScopeInOrder<'a>>,
    scrub: Scrub,
    seq: u64,
    time: Micros,
}

/// The same of a scope.
#[derive(Serialize)]
struct ScopeInOrder<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<&'a BranchName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    iteration: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trial: Option<u64>,
}

impl<'a> InOrder<'a> {
    fn of(event: &'a Event) -> Self {
        // No field may be forgotten.
        let Event {
            schema,
            run,
            seq,
            parents,
            kind,
            scope,
            effect,
            attempt,
            time,
            scrub,
            body,
        } = event;
        let Scope {
            branch,
            trial,
            iteration,
        } = scope;
        Self {
            attempt: *attempt,
            body,
            effect: effect.as_ref(),
            kind,
            parents,
            run,
            schema: *schema,
            scope: (!is_whole_run(scope)).then_some(ScopeInOrder {
                branch: branch.as_ref(),
                iteration: *iteration,
                trial: *trial,
            }),
            scrub: *scrub,
            seq: *seq,
            time: *time,
        }
    }
}

/// Stored bytes that are not an event.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// Not JSON, or not of an event's shape.
    #[error("not an event: {0}")]
    Shape(#[from] serde_json::Error),
    /// Written by a later release.
    #[error(
        "event schema {found} is newer than this release knows ({known}); use a newer loopwright"
    )]
    Newer {
        /// The schema found.
        found: u32,
        /// The newest one known.
        known: u32,
    },
}

impl Event {
    /// Seals the event: canonical bytes and the id over them.
    pub fn seal(self) -> Result<Sealed, CanonicalError> {
        let bytes = self.canonical()?;
        let id = id_of(&bytes);
        Ok(Sealed {
            event: self,
            id,
            bytes,
        })
    }

    /// As [`to_canonical`], without a copy of the body, which may be large.
    fn canonical(&self) -> Result<Vec<u8>, CanonicalError> {
        let Scope {
            trial, iteration, ..
        } = self.scope;
        let safe = |number: u64| number <= MAX_SAFE_INTEGER;
        let of_envelope = [
            Some(self.seq),
            trial,
            iteration,
            Some(self.time.0.unsigned_abs()),
            Some(self.scrub.values),
        ];
        let is_plain = of_envelope.into_iter().flatten().all(safe)
            && check(&self.body).is_ok()
            && is_in_order(&self.body);
        if !is_plain {
            return to_canonical(self);
        }
        Ok(serde_json::to_vec(&InOrder::of(self))?)
    }

    /// Decodes stored bytes, lifting older schemas to this release's types. The bytes themselves
    /// stay what they are.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let value: Value = serde_json::from_slice(bytes)?;
        let found = value.get("schema").and_then(Value::as_u64).unwrap_or(0);
        let found = u32::try_from(found).unwrap_or(u32::MAX);
        if found > EVENT_SCHEMA {
            return Err(DecodeError::Newer {
                found,
                known: EVENT_SCHEMA,
            });
        }
        // Schema 1 is the first; later ones are lifted here, one step at a time.
        Ok(serde_json::from_value(value)?)
    }
}

/// The id of an event whose canonical bytes these are.
pub fn id_of(bytes: &[u8]) -> Digest {
    Digest::of(EVENT_DOMAIN, bytes)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sample() -> Event {
        Event {
            schema: EVENT_SCHEMA,
            run: RunId::new("0198-run").unwrap(),
            seq: 7,
            parents: vec![Digest::of_content(b"parent")],
            kind: "trial.decided".to_owned(),
            scope: Scope::trial(&BranchName::main(), 3),
            effect: Some(EffectId::new("t3/measure/candidate/1")),
            attempt: Some(1),
            time: Micros(1_700_000_000_000_000),
            scrub: Scrub {
                rules: 1,
                values: 0,
            },
            body: json!({"outcome": "kept", "metric": "9.5"}),
        }
    }

    /// Golden vector: changing it changes the identity of every stored history.
    #[test]
    fn an_events_bytes_and_id_are_pinned() {
        let sealed = sample().seal().unwrap();
        assert_eq!(
            String::from_utf8(sealed.bytes.clone()).unwrap(),
            concat!(
                r#"{"attempt":1,"body":{"metric":"9.5","outcome":"kept"},"effect":"t3/measure/candidate/1","#,
                r#""kind":"trial.decided","parents":["sha256:e47125968b3b71049fbc4802d1e40a71ea1359decfabacf70b34588037d4ff0c"],"#,
                r#""run":"0198-run","schema":1,"scope":{"branch":"main","trial":3},"scrub":{"rules":1,"values":0},"#,
                r#""seq":7,"time":1700000000000000}"#
            )
        );
        assert_eq!(
            sealed.id.to_string(),
            "sha256:8339b24701503edabc22386e46d9649267348528619b37788958a3569d03c184"
        );
        assert_eq!(Event::decode(&sealed.bytes).unwrap(), sealed.event);
    }

    #[test]
    fn the_short_way_writes_the_same_bytes_and_refuses_the_same_numbers() {
        let mut events = vec![sample(); 5];
        events[1].scope = Scope::run();
        events[2].scope = Scope::iteration(4);
        (events[3].effect, events[3].attempt) = (None, None);
        events[4].body =
            json!({"\u{fb33}": 1, "\u{1f600}": 2, "b": {"d": "\u{7f}\n\u{1}", "c": []}});
        for event in events {
            let bytes = to_canonical(&event).unwrap();
            assert_eq!(bytes, serde_json_canonicalizer::to_vec(&event).unwrap());
            assert_eq!(event.seal().unwrap().bytes, bytes);
        }
        let large = MAX_SAFE_INTEGER + 1;
        let mut events = vec![sample(); 3];
        events[0].seq = large;
        events[1].scope.trial = Some(large);
        events[2].body = json!({"deep": [large]});
        for (event, path) in events
            .into_iter()
            .zip(["/seq", "/scope/trial", "/body/deep/0"])
        {
            let error = event.seal().unwrap_err().to_string();
            assert!(error.contains(path), "{error}");
        }
    }

    #[test]
    fn a_newer_schema_is_refused_with_words() {
        let mut value = serde_json::to_value(sample()).unwrap();
        value["schema"] = json!(EVENT_SCHEMA + 1);
        let error = Event::decode(value.to_string().as_bytes()).unwrap_err();
        assert!(error.to_string().contains("newer"), "{error}");
    }
}

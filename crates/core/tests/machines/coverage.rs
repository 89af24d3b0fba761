//! Transition coverage: the edges that the scenarios go over are a closed list.
//!
//! An edge is where the run stood (the effect in flight, or none), what came from outside, and what
//! followed. A new edge without a place in `edges.txt` fails, and so does one that no scenario goes
//! over any more. With `LOOPWRIGHT_UPDATE_EXPECTED` set the list is written anew, to be reviewed.

use std::collections::BTreeSet;
use std::path::Path;

use loopwright_core::event::Event;
use loopwright_core::kernel::kind as kernel_kind;
use loopwright_core::turn::is_given;

use crate::support::Bench;

fn part(event: &Event) -> &str {
    let path = event.effect.as_ref().map_or("", |effect| effect.as_str());
    path.split('/').nth(1).unwrap_or("")
}

fn text<'a>(event: &'a Event, pointer: &str) -> &'a str {
    event
        .body
        .pointer(pointer)
        .and_then(|value| value.as_str())
        .unwrap_or("?")
}

/// What a given event is, as an edge names it.
fn input(event: &Event) -> String {
    match event.kind.as_str() {
        kernel_kind::EFFECT_ABANDONED => format!("abandoned({})", text(event, "/why")),
        kernel_kind::INVOCATION_ENDED => format!("ended({})", text(event, "/ending/reason")),
        kernel_kind::INVOCATION_BEGUN => {
            let mode = &event.body["caps"]["mode"];
            let mode = mode.as_str().unwrap_or("retry");
            format!("begun({mode})")
        }
        kernel_kind::OPERATOR_ACT => format!("resolved({})", text(event, "/arguments/as")),
        other => other.split('.').nth(1).unwrap_or(other).to_owned(),
    }
}

/// What a derived event is, as an edge names it.
fn outcome(event: &Event) -> String {
    match event.kind.as_str() {
        kernel_kind::EFFECT_ANNOUNCED => part(event).to_owned(),
        kernel_kind::EFFECT_REFUSED => format!("refused({})", part(event)),
        kernel_kind::INVOCATION_ENDED => format!("end({})", text(event, "/ending/reason")),
        "trial.decided" => format!("decided({})", text(event, "/outcome")),
        "target.checked" => format!("target({})", event.body["reached"]),
        "closing.checked" => format!("closed({})", !event.body["claim"].is_null()),
        "segment.started" => "segment".to_owned(),
        other => other.to_owned(),
    }
}

/// The edges of one history.
fn edges(bench: &Bench, into: &mut BTreeSet<String>) {
    let mut step = "rest".to_owned();
    for batch in &bench.batches[1..] {
        let mut edge: Option<String> = None;
        for sealed in &batch.events {
            let event = &sealed.event;
            if is_given(event) {
                into.extend(edge.take());
                let about = if event.effect.is_some() {
                    part(event)
                } else {
                    &step
                };
                edge = Some(format!("{about} | {} |", input(event)));
                if event.effect.is_some() {
                    "rest".clone_into(&mut step);
                }
            } else {
                let edge = edge.as_mut().expect("a derived event without a given one");
                edge.push(' ');
                edge.push_str(&outcome(event));
                if event.kind == kernel_kind::EFFECT_ANNOUNCED {
                    part(event).clone_into(&mut step);
                }
            }
        }
        into.extend(edge);
    }
}

#[test]
fn scenarios_go_over_a_closed_list_of_edges() {
    let all = [
        crate::outcomes::ALL,
        crate::guards::ALL,
        crate::endings::ALL,
        crate::interruptions::ALL,
        crate::targets::ALL,
        crate::switching::ALL,
        crate::keep_rule::ALL,
        crate::keep_closing::ALL,
    ];
    let mut found = BTreeSet::new();
    for (_, scenario) in all.iter().copied().flatten() {
        edges(&scenario(), &mut found);
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/machines/edges.txt");
    if std::env::var_os("LOOPWRIGHT_UPDATE_EXPECTED").is_some() {
        let lines: Vec<&str> = found.iter().map(String::as_str).collect();
        std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    let expected: BTreeSet<String> = expected.lines().map(str::to_owned).collect();
    let new: Vec<_> = found.difference(&expected).collect();
    let gone: Vec<_> = expected.difference(&found).collect();
    assert!(
        new.is_empty() && gone.is_empty(),
        "new edges: {new:#?}\nno longer gone over: {gone:#?}"
    );
}

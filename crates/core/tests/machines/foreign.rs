//! What another release wrote: readable, and driven only where everything in it is known.

use loopwright_core::batch::Batch;
use loopwright_core::event::Event;
use loopwright_core::experiment::{Experiment, kind as experiment_kind};
use loopwright_core::foreign::{Undrivable, check};
use loopwright_core::kernel::{RunStarted, body, kind};
use loopwright_core::machine::Machine;

use crate::support::Bench;

fn started(bench: &Bench) -> RunStarted {
    body(&bench.batches[0].events[0].event).unwrap()
}

fn kinds(batches: &[Batch]) -> Vec<&str> {
    let events = batches.iter().flat_map(|batch| &batch.events);
    events.map(|sealed| sealed.event.kind.as_str()).collect()
}

#[test]
fn what_this_release_writes_it_drives() {
    let mut bench = Bench::with_baseline(serde_json::json!({"target": "1"}));
    bench
        .propose("a")
        .measure(1.0)
        .commit("k1")
        .confirm(1.0)
        .ended("target_reached");
    assert_eq!(
        check::<Experiment>(&started(&bench), kinds(&bench.batches)),
        Ok(())
    );
    let all = kind::ALL
        .into_iter()
        .chain(Experiment::KINDS.iter().copied());
    assert_eq!(check::<Experiment>(&started(&bench), all), Ok(()));
}

#[test]
fn what_it_does_not_know_it_refuses_by_name() {
    let bench = Bench::with_baseline(serde_json::json!({}));
    let known = started(&bench);
    let refused = |change: fn(&mut RunStarted), kinds: &[&'static str]| {
        let mut started = known.clone();
        change(&mut started);
        check::<Experiment>(&started, kinds.iter().copied()).unwrap_err()
    };
    let events = refused(
        |_| {},
        &[experiment_kind::TRIAL_DECIDED, "keep.undone", "loop.forked"],
    );
    assert_eq!(
        events,
        Undrivable::Events(vec!["keep.undone".to_owned(), "loop.forked".to_owned()])
    );
    assert!(
        events.to_string().contains("keep.undone, loop.forked"),
        "{events}"
    );
    let newer = refused(|started| started.machine = 9, &[]);
    assert!(
        newer.to_string().contains("machine 9; this one knows 2"),
        "{newer}"
    );
    let policies = refused(|started| started.policies.push("racing/1".to_owned()), &[]);
    assert_eq!(policies, Undrivable::Policies(vec!["racing/1".to_owned()]));
    let kind = refused(|started| started.kind = "agent".to_owned(), &[]);
    assert_eq!(
        kind,
        Undrivable::Kind {
            found: "agent".to_owned()
        }
    );
}

/// An event of a later release is folded as a decision that changes nothing known.
#[test]
fn an_unknown_event_can_be_read() {
    let bench = Bench::with_baseline(serde_json::json!({}));
    let mut run = bench.run.clone();
    let newest = &bench.batches.last().unwrap().events.last().unwrap().event;
    let strange = Event {
        seq: run.kernel.next_seq,
        kind: "keep.undone".to_owned(),
        effect: None,
        attempt: None,
        body: serde_json::json!({"trial": 1}),
        ..newest.clone()
    };
    let sealed = strange.seal().unwrap();
    run.apply(&sealed.event, sealed.id).unwrap();
    assert_eq!(run.state, bench.run.state);
    assert_ne!(run.kernel.decisions, bench.run.kernel.decisions);
}

//! Histories of every release: later ones decode, verify and replay them to the same decisions.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use loopwright_core::batch::{Batch, BatchHeader};
use loopwright_core::canonical::to_canonical;
use loopwright_core::digest::Digest;
use loopwright_core::event::{Event, Sealed, id_of};
use loopwright_core::experiment::machine::settlement_of;
use loopwright_core::experiment::results::{Ended, Findings, Kept, Measured};
use loopwright_core::experiment::{Experiment, Mode, Named, RetryOf};
use loopwright_core::ids::{BranchName, RunId};
use loopwright_core::replay::{Replay, ReplayError};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::support::{
    Bench, candidate, harness, keep_rule, measured, proposed, ran, specification_with,
};

/// One line of a stored history.
#[derive(Serialize, Deserialize)]
struct Line {
    header: BatchHeader,
    digest: Digest,
    /// The canonical bytes of its events, as texts.
    events: Vec<String>,
}

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/histories")
        .join(name)
}

/// A small whole history with a little of everything the threshold rule's release can record.
fn threshold_history() -> Bench {
    let mut bench = Bench::new(specification_with(json!({
        "guards": [{"metric": "size", "max_rise": "5%", "max_rise_from_baseline": "20%"}],
        "target": "1",
    })));
    let reading = |value, size| measured(&[("m", value), ("size", size)]);
    bench
        .begin(|caps| caps.trials = Some(6))
        .measured(reading(10.0, 100.0));
    bench
        .propose("a")
        .measured(reading(9.5, 100.0))
        .commit("k1");
    bench.propose("b").measured(reading(9.25, 120.0));
    bench.propose("c").interrupt();
    bench
        .begin(|caps| caps.trials = Some(3))
        .measured(reading(9.5, 100.0));
    let failed = Measured {
        ran: ran(Ended::Exited(1)),
        ..measured(&[])
    };
    bench.propose("d").measured(failed);
    let mut touched = proposed("e");
    touched.findings.protected = Named::from_iter(["eval/score.py"]);
    bench.proposed(touched).ended("finished");
    let retry = RetryOf {
        trial: 2,
        commit: "commit-of-b".to_owned(),
    };
    bench.begin(|caps| caps.mode = Mode::Retry(retry));
    bench.settle("reapply", json!({"applied": {"candidate": candidate("f")}}));
    bench.measured(reading(8.5, 104.0)).kept(Kept::Rewritten {
        findings: Findings::default(),
        candidate: candidate("g"),
    });
    bench
        .measured(reading(8.75, 104.0))
        .commit("k2")
        .ended("finished");
    bench
        .begin(|_| {})
        .propose("h")
        .measured(reading(0.5, 104.0));
    // The host dies while it commits, and again while the target is confirmed.
    bench
        .begin(|_| {})
        .commit("k3")
        .begin(|_| {})
        .confirm(0.75)
        .ended("target_reached");
    bench.begin(|caps| {
        caps.harness = harness("h2");
        caps.trials = Some(1);
    });
    bench
        .measured(reading(20.0, 10.0))
        .propose("i")
        .measured(reading(21.0, 10.0));
    bench.ended("finished");
    bench
}

/// A small whole history with a little of everything the keep rule can record.
fn keep_history() -> Bench {
    let mut bench = Bench::new(specification_with(json!({
        "rule": keep_rule(json!({"closing": 2, "worth": "2%"})), "max_runs": 60,
        "guards": [{"metric": "size", "ceiling": "100"}],
    })));
    let reading = |value: f64| measured(&[("m", value), ("size", 50.0)]);
    let play = |bench: &mut Bench, values: &[f64]| {
        for value in values {
            bench.measured(reading(*value));
        }
    };
    // The same numbers again and again, a little apart, until there is a verdict.
    let duel = |bench: &mut Bench, candidate: f64, incumbent: f64| {
        let mut off = 0.0;
        while bench.waits_for().contains("/measure/") {
            let is_candidate = bench.waits_for().contains("candidate");
            play(
                bench,
                &[if is_candidate { candidate } else { incumbent } + off],
            );
            off = if off > 0.3 { 0.0 } else { off + 0.25 };
        }
    };
    let failed = || Measured {
        ran: ran(Ended::Exited(1)),
        ..measured(&[])
    };
    bench.begin(|caps| caps.trials = Some(6));
    play(&mut bench, &[10.0]);
    // Screened out, dropped from a duel, kept.
    play(bench.propose("a"), &[10.5]);
    play(bench.propose("b"), &[9.0, 9.5, 10.5, 9.25, 10.75]);
    play(&mut bench, &[10.5, 9.75]);
    play(bench.propose("c"), &[3.0, 4.25, 10.75]);
    bench.measured(failed());
    play(&mut bench, &[10.0, 4.0]);
    assert_eq!(bench.waits_for(), "t3/keep/1");
    bench.commit("k1");
    // Failed on a repeat, after the incumbent had failed once: repeated, and then unstable.
    play(bench.propose("d"), &[1.0]);
    bench.measured(failed()).measured(failed());
    // A look at the incumbent; killed in the middle of a duel, and the harness breaks.
    play(bench.propose("e"), &[4.25, 1.0, 3.25]);
    bench.begin(|caps| caps.trials = Some(2));
    bench.measured(failed());
    play(&mut bench, &[3.5]);
    bench.measured(failed()).ended("baseline_failed");
    bench.begin(|caps| caps.trials = Some(2));
    duel(&mut bench, 4.25, 4.25);
    play(bench.propose("f"), &[6.0]);
    // The closing check is cut off, and carried on.
    assert_eq!(bench.waits_for(), "t3/closing/1/1");
    bench.settle("closing", settlement_of(&reading(10.25)));
    bench.begin(|caps| caps.trials = Some(0));
    for value in [4.25, 4.0, 9.75] {
        bench.settle("closing", settlement_of(&reading(value)));
    }
    bench.ended("finished");
    // A branch of its own, and a limit that cuts its duel short.
    bench.specification["max_runs"] = json!(50);
    let incumbent = bench.state().incumbent().unwrap().clone();
    bench.begin(|caps| {
        caps.branch = BranchName::new("other").unwrap();
        (caps.harness.commit, caps.harness.tree) = (incumbent.commit, incumbent.tree);
    });
    play(&mut bench, &[4.0]);
    play(bench.propose("g"), &[3.0]);
    duel(&mut bench, 3.75, 4.0);
    bench.ended("budget");
    bench
}

fn stored(name: &str) -> Vec<Batch> {
    let text = std::fs::read_to_string(path(name)).unwrap();
    text.lines()
        .map(|line| batch_of(&serde_json::from_str(line).unwrap()))
        .collect()
}

/// A stored line with everything verified that a batch can say about itself.
fn batch_of(line: &Line) -> Batch {
    assert_eq!(line.header.digest().unwrap(), line.digest);
    assert_eq!(line.header.events.len(), line.events.len());
    let seal = |(bytes, id): (&String, &Digest)| {
        assert_eq!(id_of(bytes.as_bytes()), *id);
        let event = Event::decode(bytes.as_bytes()).unwrap();
        Sealed {
            event,
            id: *id,
            bytes: bytes.clone().into_bytes(),
        }
    };
    Batch {
        header: line.header.clone(),
        digest: line.digest,
        events: line
            .events
            .iter()
            .zip(&line.header.events)
            .map(seal)
            .collect(),
    }
}

fn write_if_asked(name: &str, bench: &Bench) {
    if std::env::var_os("LOOPWRIGHT_UPDATE_EXPECTED").is_none() || path(name).exists() {
        return;
    }
    let mut text = String::new();
    for batch in &bench.batches {
        let bytes = |sealed: &Sealed| String::from_utf8(sealed.bytes.clone()).unwrap();
        let line = Line {
            header: batch.header.clone(),
            digest: batch.digest,
            events: batch.events.iter().map(bytes).collect(),
        };
        writeln!(text, "{}", serde_json::to_string(&line).unwrap()).unwrap();
    }
    std::fs::write(path(name), text).unwrap();
}

/// The decision log of `v1-threshold.jsonl`: the same in every later release.
const THRESHOLD_DECISIONS: &str =
    "sha256:076cfd3797846a41a178b2786808ee22f4e0fa7b4bd1fe9d67f80b6ea09d4fdd";
/// The digest of its last batch, which covers all of it.
const THRESHOLD_HEAD: &str =
    "sha256:4bb399ede1994c1fda13607698a73230321a808f6b50cad3f12f2f88f9266cb1";

/// The same of `v2-keep.jsonl`.
const KEEP_DECISIONS: &str =
    "sha256:e4e0c6ec5262a88685a4003c6854f6578006209eee5819c6a8bc4efa5246b0cb";
const KEEP_HEAD: &str = "sha256:7de7f7a756dc2360a7da411d1636c3a76e28ad356c33d6d50d929d6d1ad51a85";

#[test]
fn the_first_threshold_history_replays_to_the_same_decisions() {
    write_if_asked("v1-threshold.jsonl", &threshold_history());
    replays("v1-threshold.jsonl", THRESHOLD_DECISIONS, THRESHOLD_HEAD);
}

#[test]
fn the_first_keep_history_replays_to_the_same_decisions() {
    write_if_asked("v2-keep.jsonl", &keep_history());
    replays("v2-keep.jsonl", KEEP_DECISIONS, KEEP_HEAD);
}

#[track_caller]
fn replays(name: &str, decisions: &str, head: &str) {
    let batches = stored(name);
    let run = batches[0].header.run.clone();
    let mut replay = Replay::<Experiment>::new(run);
    let mut previous = None;
    for (n, batch) in batches.iter().enumerate() {
        assert_eq!(
            (batch.header.n, batch.header.previous),
            (n as u64, previous)
        );
        previous = Some(batch.digest);
        replay.batch(batch).unwrap();
    }
    assert_eq!(replay.run().kernel.decisions.to_string(), decisions);
    assert_eq!(previous.unwrap().to_string(), head);
}

/// What this release writes has not moved either; goes when a later release writes otherwise.
#[test]
fn this_release_still_writes_the_first_threshold_history() {
    writes(&threshold_history(), "v1-threshold.jsonl");
}

#[test]
fn this_release_still_writes_the_first_keep_history() {
    writes(&keep_history(), "v2-keep.jsonl");
}

#[track_caller]
fn writes(now: &Bench, name: &str) {
    now.verify();
    let stored = stored(name);
    let differs = now
        .batches
        .iter()
        .zip(&stored)
        .position(|(now, then)| now != then);
    assert_eq!(
        (differs, now.batches.len()),
        (None, stored.len()),
        "the first batch that differs"
    );
}

fn replay(batches: &[Batch]) -> Result<(), ReplayError> {
    let mut replay = Replay::<Experiment>::new(RunId::new("run-1").unwrap());
    batches.iter().try_for_each(|batch| replay.batch(batch))
}

/// Every decision of the history, altered, is named by batch and number.
#[test]
fn an_altered_decision_is_named() {
    let batches = stored("v1-threshold.jsonl");
    replay(&batches).unwrap();
    let mut altered_decisions = 0;
    for (n, batch) in batches.iter().enumerate() {
        for (index, sealed) in batch.events.iter().enumerate() {
            if sealed.event.kind != "trial.decided" {
                continue;
            }
            let mut event = sealed.event.clone();
            event.body["outcome"] = json!("simplified");
            let mut altered = batches.clone();
            altered[n].events[index] = event.seal().unwrap();
            match replay(&altered).unwrap_err() {
                ReplayError::Differs(difference) => {
                    assert_eq!(
                        (difference.batch, difference.seq),
                        (n as u64, sealed.event.seq)
                    );
                    assert!(difference.recorded.unwrap().contains("simplified"));
                    assert!(!difference.replayed.unwrap().contains("simplified"));
                }
                ReplayError::Turn(error) => panic!("{error}"),
            }
            altered_decisions += 1;
        }
    }
    assert_eq!(altered_decisions, 10);
}

/// A result that was altered shows in the decision that followed from it.
#[test]
fn an_altered_result_shows_in_its_decision() {
    let mut batches = stored("v1-threshold.jsonl");
    let mut event = None;
    for batch in &mut batches {
        let first = &mut batch.events[0];
        if first
            .event
            .effect
            .as_ref()
            .is_some_and(|id| id.as_str() == "t1/measure/candidate/1")
            && first.event.kind == "effect.settled"
        {
            let mut changed = first.event.clone();
            changed.body["result"]["readings"]["m"] = json!({"value": "1000"});
            event = Some(changed.seq);
            *first = changed.seal().unwrap();
        }
    }
    match replay(&batches).unwrap_err() {
        ReplayError::Differs(difference) => assert_eq!(difference.seq, event.unwrap() + 1),
        ReplayError::Turn(error) => panic!("{error}"),
    }
}

/// A decision that is left out, or added, is named too.
#[test]
fn a_missing_or_added_event_is_named() {
    let batches = stored("v1-threshold.jsonl");
    let n = batches
        .iter()
        .position(|batch| batch.events.len() > 2)
        .unwrap();
    let mut shorter = batches.clone();
    shorter[n].events.pop();
    let mut longer = batches.clone();
    let extra = batches[n + 1].events[0].clone();
    longer[n].events.push(extra);
    for altered in [shorter, longer] {
        let Err(ReplayError::Differs(difference)) = replay(&altered) else {
            // An added given event may not fit at all, which is found as well.
            continue;
        };
        assert_eq!(difference.batch, n as u64);
    }
    assert!(
        replay(&{
            let mut cut = batches;
            cut.remove(3);
            cut
        })
        .is_err()
    );
}

/// Golden vector: changing it changes the chain of every stored run.
#[test]
fn a_batchs_digest_is_pinned() {
    let header = BatchHeader {
        run: RunId::new("run-1").unwrap(),
        n: 3,
        previous: Some(Digest::of_content(b"previous")),
        epoch: 2,
        events: vec![Digest::of_content(b"one"), Digest::of_content(b"two")],
    };
    assert_eq!(
        String::from_utf8(to_canonical(&header).unwrap()).unwrap(),
        format!(
            r#"{{"epoch":2,"events":["{}","{}"],"n":3,"previous":"{}","run":"run-1"}}"#,
            Digest::of_content(b"one"),
            Digest::of_content(b"two"),
            Digest::of_content(b"previous"),
        )
    );
    assert_eq!(
        header.digest().unwrap().to_string(),
        "sha256:41fbc98e746e3ffc9c1eaf095d0e4de0aa0851c66c6fb5528c75ee7f1a943eb7"
    );
}

/// Golden vector: the decision log before the first decision, and after one.
#[test]
fn the_decision_digest_is_pinned() {
    let bench = Bench::new(specification_with(json!({})));
    assert_eq!(
        bench.run.kernel.decisions.to_string(),
        "sha256:589c3415b99414dfa79f5254c0952b8033d88a225174a5dd9d6d9f8b066fd542"
    );
    let bench = Bench::with_baseline(json!({}));
    assert_eq!(
        bench.run.kernel.decisions.to_string(),
        "sha256:d91e50cbd655b4e508522bf76cbc3703971d2f2988e5b0020d2c1c65405cf440"
    );
}

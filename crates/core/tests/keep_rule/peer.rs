//! The rule decides as the peer does by which it was designed (`judge.py`): on streams that are
//! exchanged by a file where there is a Python, and on what the peer said of some of them
//! (`vectors.txt`) everywhere.
//!
//! `LOOPWRIGHT_UPDATE_EXPECTED=1 cargo test -p loopwright-core --test keep_rule` asks the peer for
//! the vectors anew.

use std::fs;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use loopwright_core::spec::Goal;

use crate::bench::Bench;
use crate::streams::Stream;

/// How many streams are given to the peer.
const STREAMS: u64 = 12_000;
/// Of how many its answers are stored.
const VECTORS: u64 = 160;

/// How far the peer's numbers may be off: its logarithms and exponentials are the platform's.
const ROUNDING: f64 = 1e-9;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/keep_rule")
}

/// What the peer says of those streams, a line each; nothing where there is no Python.
fn ask_peer(name: &str, numbers: std::ops::Range<u64>) -> Option<String> {
    if Command::new("python3").arg("--version").output().is_err() {
        return None;
    }
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut file = BufWriter::new(fs::File::create(&path).unwrap());
    for number in numbers {
        serde_json::to_writer(&mut file, &Stream::of(number)).unwrap();
        file.write_all(b"\n").unwrap();
    }
    file.into_inner().unwrap().sync_all().unwrap();
    let said = Command::new("python3")
        .arg(folder().join("judge.py"))
        .arg(&path)
        .output()
        .unwrap();
    assert!(
        said.status.success(),
        "the peer failed: {}",
        String::from_utf8_lossy(&said.stderr)
    );
    fs::remove_file(&path).unwrap();
    Some(String::from_utf8(said.stdout).unwrap())
}

/// Holds the rule's decisions against a line of the peer's.
#[track_caller]
fn compare(number: u64, said: &str) {
    let stream = Stream::of(number);
    let mut said = said.split(' ');
    let expected = said.next().unwrap();
    let mut bench = Bench::new(stream.rule());
    bench.careful = false;
    let (trace, stands) = stream.trace(bench);
    assert_eq!(trace, expected, "stream {number}");
    for found in stands {
        let expected: f64 = said.next().unwrap().parse().unwrap();
        let off = (found - expected).abs();
        assert!(
            off <= ROUNDING * expected.abs().max(f64::MIN_POSITIVE),
            "stream {number}: {found}, and the peer says {expected}"
        );
    }
}

#[test]
#[expect(clippy::print_stderr, reason = "a skipped part has to be seen")]
fn ten_thousand_streams_are_decided_as_the_peer_decides_them() {
    let Some(said) = ask_peer("keep-rule-streams.jsonl", 0..STREAMS) else {
        eprintln!("SKIPPED: there is no python3 here, so only the stored vectors were compared");
        return;
    };
    assert_eq!(said.lines().count() as u64, STREAMS);
    for (number, line) in (0..).zip(said.lines()) {
        compare(number, line);
    }
    // The streams are worth comparing: they hold keeps and reverts, duels and first draws.
    let count = |what: &str| said.matches(what).count();
    assert!(count("+") > 5_000, "{} keeps", count("+"));
    assert!(count("-") > 100_000, "{} reverts", count("-"));
    assert!(count("ii") > 50_000, "{} pairs of pairs", count("ii"));
}

#[test]
fn the_stored_streams_are_decided_as_the_peer_decided_them() {
    let path = folder().join("vectors.txt");
    if std::env::var_os("LOOPWRIGHT_UPDATE_EXPECTED").is_some()
        && let Some(said) = ask_peer("keep-rule-vectors.jsonl", 0..VECTORS)
    {
        fs::write(&path, said).unwrap();
    }
    let said = fs::read_to_string(&path).unwrap();
    assert_eq!(said.lines().count() as u64, VECTORS);
    for (number, line) in (0..).zip(said.lines()) {
        compare(number, line);
    }
}

/// Neither writing the state down after every reading nor the direction changes a decision.
#[test]
fn the_same_is_decided_from_a_state_that_was_written_and_in_the_other_direction() {
    for number in 0..VECTORS {
        let stream = Stream::of(number);
        let mut plain = Bench::new(stream.rule());
        plain.careful = false;
        let plain = stream.trace(plain);
        assert_eq!(stream.trace(Bench::new(stream.rule())), plain);
        let turned = Bench::towards(Goal::Maximize, stream.rule());
        assert_eq!(stream.trace(turned), plain);
    }
}

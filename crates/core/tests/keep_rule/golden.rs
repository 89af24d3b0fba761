//! The trace that the rule was designed with, run by run.

use loopwright_core::experiment::rule::Arm;
use loopwright_core::experiment::rule::keep::Keep;

use crate::bench::Bench;

/// Feeds what is written, `I` and `C` with a number and what follows from it.
#[track_caller]
fn play(bench: &mut Bench, trace: &str) {
    let words: Vec<&str> = trace.split_whitespace().collect();
    let mut words = words.iter().peekable();
    while let Some(arm) = words.next() {
        let wanted = match bench.want() {
            Arm::Incumbent => "I",
            Arm::Candidate => "C",
        };
        let value = words.next().unwrap();
        assert_eq!(wanted, *arm, "before {value}");
        let verdict = bench.feed(value.parse().unwrap());
        let expected = words.next_if(|word| ["KEEP", "revert"].contains(*word));
        let found = verdict.map(|kept| if kept { "KEEP" } else { "revert" });
        assert_eq!(found, expected.copied(), "after {arm} {value}");
    }
}

#[track_caller]
fn stands(bench: &Bench, expected: [f64; 5]) {
    let found = bench.stands();
    for (found, expected) in found.into_iter().zip(expected) {
        assert!((found - expected).abs() < 5.1e-5, "{found}, not {expected}");
    }
}

#[test]
fn a_noisy_loop_decides_as_the_trace_says() {
    let mut bench = Bench::new(Keep::default());
    play(
        &mut bench,
        "I 9.99 C 11.05 revert C 8.74 C 8.72 I 11.62 I 8.79 C 7.37 C 6.68 I 9.89 I 11.0",
    );
    play(
        &mut bench,
        "C 7.98 C 8.5 I 8.09 I 10.15 C 7.09 C 9.78 I 10.89 KEEP",
    );
    stands(&bench, [8.1762, 4.0, 0.8418, 6.0, 0.196_167]);
    play(&mut bench, "C 9.95 revert C 7.94 revert C 8.61 revert");
    play(
        &mut bench,
        "C 7.16 C 6.16 I 7.5 I 7.89 C 5.89 C 5.91 I 7.72 KEEP",
    );
    stands(&bench, [6.2, 2.0, 0.7391, 8.0, 0.295_179]);
    play(&mut bench, "C 5.77 revert");
}

#[test]
fn a_deterministic_loop_decides_as_the_trace_says() {
    let mut bench = Bench::new(Keep::default());
    play(
        &mut bench,
        "I 10 C 11 revert C 9.5 C 9.5 KEEP C 9.6 revert C 9 C 9 KEEP C 8.9 KEEP C 8.8 KEEP",
    );
    assert_eq!(bench.runs, 9);
}

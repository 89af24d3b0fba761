//! Output: bounded in memory, whole in a file, seen in order.

mod support;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use loopwright_exec::{Ending, Spill, StopHow, start};
use support::{begin, run, said, shell, supervisor};

#[test]
fn a_background_child_holding_the_pipe_delays_nothing() {
    let begun = Instant::now();
    let finished = run(shell("sleep 600 & echo hi"));
    assert_eq!(
        (finished.ending.clone(), said(&finished)),
        (Ending::Exited(0), "hi".into())
    );
    assert!(begun.elapsed() < Duration::from_secs(3));
}

#[test]
fn a_command_that_closes_its_output_is_waited_for() {
    let begun = Instant::now();
    let finished = run(shell("echo x; exec >&- 2>&-; sleep 0.3; exit 3"));
    assert_eq!(
        (finished.ending.clone(), said(&finished)),
        (Ending::Exited(3), "x".into())
    );
    assert!(begun.elapsed() >= Duration::from_millis(300));
}

#[test]
fn the_last_words_before_a_kill_are_kept() {
    for _ in 0..20 {
        let finished = run(shell("head -c 100000 /dev/zero; echo last; kill -9 $$"));
        assert_eq!(finished.ending, Ending::Signaled(9));
        assert!(finished.output.tail.ends_with(b"last\n"));
        assert_eq!(finished.output.total_bytes, 100_005);
    }
}

#[test]
fn an_observer_sees_every_byte_in_order_as_it_comes() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let writer = Arc::clone(&seen);
    let observer = move |bytes: &[u8]| writer.lock().unwrap().extend_from_slice(bytes);
    let line = "echo first; sleep 600 & echo $!; i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done; wait";
    let running = start(shell(line), Some(Box::new(observer)), &supervisor()).unwrap();
    let stopper = running.stopper();
    let waiter = std::thread::spawn(move || running.wait());
    // While it still runs.
    support::await_that("the last line", || {
        seen.lock().unwrap().ends_with(b"line 19999\n")
    });
    stopper.stop(StopHow::AtOnce);
    assert_eq!(waiter.join().unwrap().ending, Ending::Stopped);
    let seen = String::from_utf8(seen.lock().unwrap().clone()).unwrap();
    let mut lines = seen.lines();
    assert_eq!(lines.next(), Some("first"));
    lines.next();
    for (number, line) in lines.enumerate() {
        assert_eq!(line, format!("line {number}"));
    }
}

#[test]
fn a_long_output_is_spilled_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("output");
    let line = "i=0; while [ $i -lt 30000 ]; do echo line $i; i=$((i+1)); done";
    let mut command = shell(line);
    command.capture.spill = Some(Spill {
        path: path.clone(),
        limit_bytes: 10_000_000,
    });
    let finished = run(command);
    let spilled = finished.output.spilled.unwrap();
    assert!(!spilled.truncated);
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text.len() as u64, finished.output.total_bytes);
    let numbers = text
        .lines()
        .map(|line| line.strip_prefix("line ").unwrap().parse());
    let numbers: Vec<u32> = numbers.map(Result::unwrap).collect();
    assert!(numbers.iter().copied().eq(0..30000));
}

#[test]
fn an_endless_printer_is_stopped_by_its_limit() {
    let mut command = shell("yes");
    command.time_limit = Some(Duration::from_millis(300));
    command.grace = Duration::ZERO;
    let finished = run(command);
    assert_eq!(finished.ending, Ending::TimedOut);
    assert!(finished.output.total_bytes > 1_000_000);
    let kept = finished.output.head.len() + finished.output.tail.len();
    assert_eq!(kept, 64 * 1024);
}

#[test]
fn commands_can_be_waited_for_in_any_order() {
    // Both print more than a pipe holds; the second is waited for first.
    let line = "head -c 3000000 /dev/zero";
    let (first, second) = (begin(shell(line)), begin(shell(line)));
    assert_eq!(second.wait().output.total_bytes, 3_000_000);
    assert_eq!(first.wait().output.total_bytes, 3_000_000);
}

#[test]
fn the_limit_holds_though_nobody_waits() {
    let mark = support::mark("unwatched");
    let mut command = shell(&format!("sleep 600.{mark} & yes"));
    command.time_limit = Some(Duration::from_millis(300));
    let running = begin(command);
    support::await_sleeping(&mark, 1);
    support::assert_gone_within(&mark, support::PATIENCE);
    assert_eq!(running.wait().ending, Ending::TimedOut);
}

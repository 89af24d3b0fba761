//! Killed engines, killed supervisors, and takeover: the family goes all the
//! same.

mod support;

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use loopwright_exec::{
    Ended, Ending, SupervisorId, boot_id, end_orphans, process_alive, start_time_of,
};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use support::{
    HELPER, ISOLATIONS, PATIENCE, assert_gone_within, await_sleeping, begin, mark, marked, shell_in,
};

const NAMES: [&str; 3] = ["auto", "without-namespace", "subreaper-only"];

/// A family of four: detached, orphaned, deaf, and the command itself.
fn family(mark: &str) -> String {
    format!(
        "setsid sleep 600.{mark} & ( ( exec sleep 600.{mark} ) & ) ; \
         ( trap '' TERM HUP INT; exec sleep 600.{mark} ) & exec sleep 600.{mark}"
    )
}

/// An engine in a process and group of its own, with a family running.
fn engine(isolation: &str, mark: &str) -> (Child, SupervisorId) {
    use std::os::unix::process::CommandExt;
    let mut engine = std::process::Command::new(HELPER)
        .args(["engine", isolation, &family(mark)])
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    let mut line = String::new();
    let stdout = engine.stdout.take().unwrap();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    let id = serde_json::from_str(&line).unwrap();
    await_sleeping(mark, 4);
    (engine, id)
}

fn process(pid: u32) -> Pid {
    Pid::from_raw(pid as i32).unwrap()
}

fn signal(signal: Signal, pid: u32) {
    kill_process(process(pid), signal).unwrap();
}

#[test]
fn a_killed_engines_family_is_gone_within_two_seconds() {
    for isolation in NAMES {
        for whole_group in [false, true] {
            let mark = mark("engine");
            let (mut engine, id) = engine(isolation, &mark);
            if whole_group {
                kill_process_group(process(engine.id()), Signal::KILL).unwrap();
            } else {
                engine.kill().unwrap();
            }
            engine.wait().unwrap();
            assert_gone_within(&mark, Duration::from_secs(2));
            support::await_that("the supervisor's end", || !id.is_alive());
        }
    }
}

#[test]
fn an_engine_killed_right_after_the_start_leaves_nothing() {
    for isolation in NAMES {
        for delay_us in [0, 200, 500, 1000, 2000, 4000] {
            let mark = mark("early");
            let mut engine = std::process::Command::new(HELPER)
                .args(["engine", isolation, &family(&mark)])
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            // Any moment will do: there is nothing to wait for.
            std::thread::sleep(Duration::from_micros(delay_us));
            engine.kill().unwrap();
            engine.wait().unwrap();
            assert_gone_within(&mark, Duration::from_secs(2));
        }
    }
}

#[test]
fn a_killed_supervisor_is_told_and_its_family_gone() {
    for isolation in ISOLATIONS {
        let mark = mark("supervisor");
        let running = begin(shell_in(&family(&mark), isolation));
        await_sleeping(&mark, 4);
        let begun = Instant::now();
        signal(Signal::KILL, running.id().pid);
        let finished = running.wait();
        let Ending::SupervisorLost { detail } = &finished.ending else {
            panic!("{:?}", finished.ending);
        };
        assert!(detail.contains("signal: 9"), "{detail}");
        assert_eq!(marked(&mark), Vec::<String>::new(), "{isolation:?}");
        assert!(begun.elapsed() < Duration::from_secs(2), "{isolation:?}");
        assert_eq!(finished.cpu_user, None, "unknown is not zero");
    }
}

#[test]
fn a_killed_first_process_of_a_namespace_is_told_and_its_family_gone() {
    let mark = mark("first");
    let running = begin(shell_in(&family(&mark), loopwright_exec::Isolation::Auto));
    await_sleeping(&mark, 4);
    let pid = running.id().pid;
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children = children.unwrap_or_default();
    let first: Vec<&str> = children.split_whitespace().collect();
    let [first] = first[..] else {
        return support::skip("a_killed_first_process_…", "no PID namespace");
    };
    signal(Signal::KILL, first.parse().unwrap());
    let finished = running.wait();
    let Ending::SupervisorLost { detail } = &finished.ending else {
        panic!("{:?}", finished.ending);
    };
    assert!(detail.contains("signal 9"), "{detail}");
    assert_eq!(marked(&mark), Vec::<String>::new());
}

#[test]
fn other_signals_do_not_reach_the_supervisor() {
    for isolation in ISOLATIONS {
        let running = begin(shell_in("sleep 1; exit 9", isolation));
        let pid = running.id().pid;
        // It may not be deaf yet in its first instants.
        let status = format!("/proc/{pid}/status");
        support::await_that("a deaf supervisor", || {
            let text = std::fs::read_to_string(&status).unwrap_or_default();
            let caught = text.lines().find_map(|line| line.strip_prefix("SigCgt:"));
            let caught = caught.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
            caught.is_some_and(|bits| bits & (1 << (libc::SIGUSR2 - 1)) != 0)
        });
        let signals = [
            Signal::TERM,
            Signal::INT,
            Signal::HUP,
            Signal::QUIT,
            Signal::TSTP,
            Signal::USR1,
            Signal::PIPE,
        ];
        for each in signals {
            signal(each, pid);
        }
        assert_eq!(running.wait().ending, Ending::Exited(9), "{isolation:?}");
    }
}

#[test]
fn takeover_ends_a_stuck_supervisor_and_its_family() {
    for isolation in NAMES {
        let mark = mark("stuck");
        let (mut engine, id) = engine(isolation, &mark);
        // Stopped, it can't notice its engine's end. Neither can the first
        // process of its namespace.
        let pid = id.pid;
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        signal(Signal::STOP, pid);
        if isolation == "auto" {
            for first in children.unwrap_or_default().split_whitespace() {
                signal(Signal::STOP, first.parse().unwrap());
            }
        }
        engine.kill().unwrap();
        engine.wait().unwrap();
        assert!(id.is_alive());
        let ended = end_orphans(&id, PATIENCE).unwrap();
        assert!(
            matches!(ended, Ended::Killed { processes } if processes > 0),
            "{ended:?}"
        );
        assert_eq!(marked(&mark), Vec::<String>::new(), "{isolation}");
        assert!(!id.is_alive());
        assert_eq!(end_orphans(&id, PATIENCE).unwrap(), Ended::NothingLeft);
    }
}

#[test]
fn takeover_waits_for_one_that_ends_by_itself() {
    for isolation in NAMES {
        let mark = mark("itself");
        let (mut engine, id) = engine(isolation, &mark);
        engine.kill().unwrap();
        engine.wait().unwrap();
        let ended = end_orphans(&id, PATIENCE).unwrap();
        assert!(
            matches!(ended, Ended::ByItself | Ended::NothingLeft),
            "{ended:?}"
        );
        assert_eq!(marked(&mark), Vec::<String>::new(), "{isolation}");
    }
}

#[test]
fn takeover_finds_the_family_of_a_supervisor_killed_with_its_engine() {
    for isolation in NAMES {
        let mark = mark("both");
        let (mut engine, id) = engine(isolation, &mark);
        signal(Signal::STOP, engine.id());
        signal(Signal::KILL, id.pid);
        signal(Signal::KILL, engine.id());
        engine.wait().unwrap();
        end_orphans(&id, PATIENCE).unwrap();
        assert_eq!(marked(&mark), Vec::<String>::new(), "{isolation}");
    }
}

#[test]
fn takeover_touches_no_stranger() {
    let mut stranger = std::process::Command::new("setsid")
        .args(["sleep", "600"])
        .spawn()
        .unwrap();
    let pid = stranger.id();
    let start_time = start_time_of(pid).unwrap();
    let of_another_boot = SupervisorId {
        pid,
        start_time,
        boot_id: "00000000-0000-0000-0000-000000000000".into(),
    };
    let of_another_time = SupervisorId {
        pid,
        start_time: start_time - 1,
        boot_id: boot_id().to_owned(),
    };
    for id in [of_another_boot, of_another_time] {
        assert!(!id.is_alive());
        assert_eq!(end_orphans(&id, PATIENCE).unwrap(), Ended::NothingLeft);
        assert!(process_alive(pid, start_time), "a stranger was ended");
    }
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}

#[test]
fn an_identity_survives_json() {
    let id = SupervisorId {
        pid: 7,
        start_time: u64::MAX,
        boot_id: "b".into(),
    };
    let text = serde_json::to_string(&id).unwrap();
    assert_eq!(serde_json::from_str::<SupervisorId>(&text).unwrap(), id);
}

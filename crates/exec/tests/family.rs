//! The whole family ends with its command: at the limit, at a stop, after
//! success; and nobody else does.

mod support;

use std::time::{Duration, Instant};

use loopwright_exec::{Command, Containment, Ending, Isolation, StopHow, hold, process_alive};
use rustix::process::{Pid, Signal, kill_process};
use support::{
    ISOLATIONS, assert_gone_within, await_sleeping, begin, containment_of, mark, marked, run, said,
    shell_in, skip,
};

/// A detached session, a double-forked daemon and a child that ignores SIGTERM,
/// all holding the output pipe. Three processes bear the mark.
fn stubborn(mark: &str) -> String {
    format!(
        "setsid sleep 600.{mark} & \
         ( ( exec sleep 600.{mark} ) & ) ; \
         ( trap '' TERM; exec sleep 600.{mark} ) & "
    )
}

fn limited(line: &str, isolation: Isolation, limit: Duration) -> Command {
    let mut command = shell_in(line, isolation);
    command.time_limit = Some(limit);
    command
}

#[test]
fn at_the_limit_everything_goes_within_three_seconds() {
    for isolation in ISOLATIONS {
        let mark = mark("limit");
        let mut bystander = std::process::Command::new("setsid")
            .args(["sleep", "600"])
            .spawn()
            .unwrap();
        let limit = Duration::from_millis(700);
        let line = format!("{} echo begun; sleep 600.{mark}", stubborn(&mark));
        let begun = Instant::now();
        let running = begin(limited(&line, isolation, limit));
        await_sleeping(&mark, 4);
        let finished = running.wait();
        assert!(
            begun.elapsed() < limit + Duration::from_secs(3),
            "{isolation:?}"
        );
        assert_eq!(finished.ending, Ending::TimedOut);
        assert_eq!(said(&finished), "begun");
        assert!(finished.wall >= limit);
        assert_eq!(marked(&mark), Vec::<String>::new(), "{isolation:?}");
        assert!(
            bystander.try_wait().unwrap().is_none(),
            "a stranger was ended"
        );
        bystander.kill().unwrap();
        bystander.wait().unwrap();
    }
}

#[test]
fn after_success_what_is_left_is_ended_and_named() {
    for isolation in ISOLATIONS {
        let mark = mark("success");
        let line = format!("{} echo done; exit 5", stubborn(&mark));
        let begun = Instant::now();
        let finished = run(shell_in(&line, isolation));
        assert_eq!(finished.ending, Ending::Exited(5), "{isolation:?}");
        assert_eq!(said(&finished), "done");
        assert!(begun.elapsed() < Duration::from_secs(3), "{isolation:?}");
        assert_eq!(marked(&mark), Vec::<String>::new());
        assert_eq!(finished.leftovers.len(), 3, "{:?}", finished.leftovers);
        for leftover in &finished.leftovers {
            assert!(leftover.pid > 1 && leftover.ended);
        }
        let sleeps = finished
            .leftovers
            .iter()
            .filter(|left| left.name == "sleep");
        assert!(sleeps.count() >= 2, "{:?}", finished.leftovers);
    }
}

#[test]
fn a_helper_that_ends_by_itself_is_no_leftover_and_its_words_count() {
    for isolation in ISOLATIONS {
        let mut command = shell_in("( sleep 0.2; echo late ) & echo early", isolation);
        command.linger = Duration::from_secs(20);
        let finished = run(command);
        assert_eq!(said(&finished), "early\nlate");
        assert!(finished.leftovers.is_empty());
    }
}

#[test]
fn the_grace_lets_it_say_goodbye() {
    for isolation in ISOLATIONS {
        let line = "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.01; done";
        let mut command = limited(line, isolation, Duration::from_millis(300));
        command.grace = support::PATIENCE;
        let begun = Instant::now();
        let finished = run(command);
        assert_eq!(finished.ending, Ending::TimedOut);
        // In between the shell may tell that its `sleep` was terminated.
        let said = said(&finished);
        assert!(
            said.starts_with("ready\n") && said.ends_with("bye"),
            "{said}"
        );
        assert!(begun.elapsed() < support::PATIENCE / 2, "waited in vain");
    }
}

#[test]
fn no_grace_kills_at_once() {
    for isolation in ISOLATIONS {
        let line = "trap 'echo bye' TERM; while :; do sleep 0.01; done";
        let mut command = limited(line, isolation, Duration::from_millis(200));
        command.grace = Duration::ZERO;
        let finished = run(command);
        assert_eq!(
            (finished.ending.clone(), said(&finished)),
            (Ending::TimedOut, String::new())
        );
    }
}

#[test]
fn a_stopped_process_gets_its_goodbye_too() {
    for isolation in ISOLATIONS {
        let line = "trap 'echo bye; exit 0' TERM; kill -STOP $$; sleep 600";
        let mut command = limited(line, isolation, Duration::from_millis(300));
        command.grace = support::PATIENCE;
        assert_eq!(said(&run(command)), "bye", "{isolation:?}");
    }
}

#[test]
fn a_gentle_stop_is_gentle_and_one_at_once_hurries() {
    for isolation in ISOLATIONS {
        let mark = mark("stop");
        let line = format!(
            "trap 'echo bye; exit 0' TERM; {} while :; do sleep 0.01; done",
            stubborn(&mark)
        );
        let mut command = shell_in(&line, isolation);
        command.grace = Duration::from_secs(600);
        let running = begin(command);
        await_sleeping(&mark, 3);
        let stopper = running.stopper();
        stopper.stop(StopHow::Gently);
        // All but the one that ignores SIGTERM.
        support::await_that("the gentle end", || marked(&mark).len() == 1);
        stopper.clone().stop(StopHow::AtOnce);
        let finished = running.wait();
        assert_eq!(finished.ending, Ending::Stopped);
        assert!(said(&finished).ends_with("bye"), "{}", said(&finished));
        assert_eq!(marked(&mark), Vec::<String>::new());
        // Late words do nothing.
        stopper.stop(StopHow::Gently);
        stopper.stop(StopHow::AtOnce);
    }
}

#[test]
fn a_stop_right_after_the_start_counts() {
    for isolation in ISOLATIONS {
        let running = begin(shell_in("sleep 600", isolation));
        running.stopper().stop(StopHow::AtOnce);
        assert_eq!(running.wait().ending, Ending::Stopped);
    }
}

#[test]
fn stopping_what_lingers_keeps_the_commands_own_end() {
    for isolation in ISOLATIONS {
        let mark = mark("linger");
        let mut command = shell_in(&format!("sleep 600.{mark} & exit 4"), isolation);
        command.linger = Duration::from_secs(600);
        let running = begin(command);
        await_sleeping(&mark, 1);
        let stopper = running.stopper();
        let stopping = std::thread::spawn(move || {
            // Whether the shell has exited can't be seen from here: the sleep
            // bears the mark before and after. Stopping again does no harm.
            std::thread::sleep(Duration::from_millis(300));
            stopper.stop(StopHow::Gently);
        });
        let finished = running.wait();
        stopping.join().unwrap();
        assert_eq!(finished.ending, Ending::Exited(4), "{isolation:?}");
        assert_eq!(finished.leftovers.len(), 1);
    }
}

#[test]
fn dropping_it_ends_it() {
    for isolation in ISOLATIONS {
        let mark = mark("drop");
        let running = begin(shell_in(
            &format!("{} sleep 600.{mark}", stubborn(&mark)),
            isolation,
        ));
        await_sleeping(&mark, 4);
        let id = running.id().clone();
        drop(running);
        assert!(!process_alive(id.pid, id.start_time));
        assert_eq!(marked(&mark), Vec::<String>::new());
    }
}

#[test]
fn processes_that_fork_while_being_killed_do_not_escape() {
    for isolation in ISOLATIONS {
        let mark = mark("storm");
        // Six spawners whose children are at once somebody else's.
        let line = format!(
            "for i in 1 2 3 4 5 6; do \
               ( trap '' TERM; while :; do ( sleep 600.{mark} & ) ; done ) & \
             done; wait"
        );
        let mut command = limited(&line, isolation, Duration::from_millis(400));
        command.grace = Duration::from_millis(50);
        let begun = Instant::now();
        let finished = run(command);
        assert_eq!(finished.ending, Ending::TimedOut);
        assert_eq!(marked(&mark), Vec::<String>::new(), "{isolation:?}");
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "{:?}",
            begun.elapsed()
        );
    }
}

#[test]
fn kill_minus_nine_minus_one_reaches_the_family_only() {
    for isolation in ISOLATIONS {
        let test = format!("kill_minus_nine_minus_one with {isolation:?}");
        if containment_of(isolation) == Containment::Subreaper {
            // It would end this test, and whatever else this user runs.
            skip(&test, "the fence is weak here");
            continue;
        }
        let mut bystander = std::process::Command::new("sleep")
            .arg("600")
            .spawn()
            .unwrap();
        let line = "sleep 600 & echo before; kill -9 -1; echo after";
        let finished = run(shell_in(line, isolation));
        // Linux's `kill -1` spares the caller.
        assert_eq!(finished.ending, Ending::Exited(0), "{isolation:?}");
        assert_eq!(said(&finished), "before\nafter");
        assert!(
            bystander.try_wait().unwrap().is_none(),
            "a stranger was ended"
        );
        bystander.kill().unwrap();
        bystander.wait().unwrap();
    }
}

#[test]
fn nobody_in_the_family_can_kill_the_supervisor() {
    for isolation in ISOLATIONS {
        if containment_of(isolation) == Containment::Subreaper {
            skip(
                &format!("killing the supervisor with {isolation:?}"),
                "the fence is weak here",
            );
            continue;
        }
        // The parent is the supervisor or the namespace's first process.
        let finished = run(shell_in(
            "kill -9 $PPID; kill -STOP $PPID; exit 6",
            isolation,
        ));
        assert_eq!(finished.ending, Ending::Exited(6), "{isolation:?}");
    }
}

#[test]
fn the_fence_is_told() {
    let without = containment_of(Isolation::WithoutNamespace);
    assert_ne!(without, Containment::PidNamespace);
    assert_eq!(
        containment_of(Isolation::SubreaperOnly),
        Containment::Subreaper
    );
    assert!(Containment::Subreaper.is_weak() && !Containment::SubreaperScoped.is_weak());
    let finished = run(shell_in("true", Isolation::Auto));
    let had = finished.containment.unwrap();
    let is_strongest = had == Containment::PidNamespace && finished.containment_note.is_none();
    assert!(
        is_strongest || finished.containment_note.is_some(),
        "{finished:?}"
    );
}

#[test]
fn many_short_orphans_leave_no_zombies_behind_while_it_runs() {
    for isolation in ISOLATIONS {
        let line = "i=0; while [ $i -lt 100 ]; do ( true & ); i=$((i+1)); done; \
                    sleep 0.1; grep -l '^State:.Z' /proc/[0-9]*/status 2>/dev/null | wc -l";
        let finished = run(shell_in(line, isolation));
        if finished.containment == Some(Containment::PidNamespace) {
            assert_eq!(said(&finished), "0");
        }
        assert!(finished.leftovers.is_empty());
        assert_gone_within("no-such-mark", Duration::ZERO);
    }
}

/// The supervisor and, where it leads a namespace, that one's first process.
fn leaders(supervisor: u32) -> Vec<Pid> {
    let children = format!("/proc/{supervisor}/task/{supervisor}/children");
    let children = std::fs::read_to_string(children).unwrap_or_default();
    let children = children.split_ascii_whitespace().map(str::to_owned);
    let is_leader = |child: &String| {
        let name = std::fs::read_to_string(format!("/proc/{child}/comm"));
        name.is_ok_and(|name| name.trim_end() == "loopwright-sup")
    };
    let pids = children.filter(is_leader).chain([supervisor.to_string()]);
    pids.map(|pid| Pid::from_raw(pid.parse().unwrap()).unwrap())
        .collect()
}

fn stop_leaders(supervisor: u32) -> Vec<Pid> {
    let leaders = leaders(supervisor);
    for leader in &leaders {
        kill_process(*leader, Signal::STOP).unwrap();
    }
    leaders
}

#[test]
fn a_supervisor_that_is_stopped_keeps_no_limit_from_coming() {
    for isolation in ISOLATIONS {
        let mark = mark("stopped");
        let line = format!("{} echo begun; sleep 600.{mark}", stubborn(&mark));
        let mut command = limited(&line, isolation, Duration::from_millis(700));
        command.grace = Duration::from_millis(100);
        let begun = Instant::now();
        let running = begin(command);
        await_sleeping(&mark, 4);
        stop_leaders(running.id().pid);
        let finished = running.wait();
        assert_eq!(finished.ending, Ending::TimedOut, "{isolation:?}");
        assert_eq!(said(&finished), "begun");
        // It was woken, and told all there is to tell.
        assert!(finished.cpu_user.is_some() && finished.containment.is_some());
        assert!(begun.elapsed() < Duration::from_secs(6), "{isolation:?}");
        assert_eq!(marked(&mark), Vec::<String>::new(), "{isolation:?}");
    }
}

#[test]
fn one_that_is_stopped_again_and_again_is_killed_with_its_family() {
    for isolation in ISOLATIONS {
        let mark = mark("again");
        let line = format!("{} sleep 600.{mark}", stubborn(&mark));
        let mut command = limited(&line, isolation, Duration::from_millis(700));
        command.grace = Duration::ZERO;
        let begun = Instant::now();
        let running = begin(command);
        await_sleeping(&mark, 4);
        let leaders = stop_leaders(running.id().pid);
        let is_over = std::sync::atomic::AtomicBool::new(false);
        let finished = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    for leader in &leaders {
                        // Nobody takes the number meanwhile: it is collected at the end only.
                        let _ = kill_process(*leader, Signal::STOP);
                    }
                    std::thread::yield_now();
                }
            });
            let finished = running.wait();
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
            finished
        });
        assert_eq!(finished.ending, Ending::TimedOut, "{isolation:?}");
        assert!(begun.elapsed() < Duration::from_secs(20), "{isolation:?}");
        assert_eq!(marked(&mark), Vec::<String>::new(), "{isolation:?}");
    }
}

#[test]
fn a_supervisor_that_is_stopped_keeps_nobody_from_stopping_the_command() {
    for isolation in ISOLATIONS {
        let mark = mark("deaf");
        let mut command = shell_in(&format!("sleep 600.{mark}"), isolation);
        command.grace = Duration::from_millis(100);
        let running = begin(command.clone());
        await_sleeping(&mark, 1);
        stop_leaders(running.id().pid);
        let stopper = running.stopper();
        let waiting = std::thread::spawn(move || running.wait());
        stopper.stop(StopHow::Gently);
        let finished = waiting.join().unwrap();
        assert_eq!(finished.ending, Ending::Stopped, "{isolation:?}");
        assert_eq!(marked(&mark), Vec::<String>::new(), "{isolation:?}");
        // Nor does one that is given up.
        let running = begin(command);
        await_sleeping(&mark, 1);
        stop_leaders(running.id().pid);
        drop(running);
        assert_eq!(marked(&mark), Vec::<String>::new(), "{isolation:?}");
    }
}

#[test]
fn a_supervisor_that_is_stopped_before_its_command_is_known_holds_nobody() {
    for isolation in [Isolation::Auto, Isolation::SubreaperOnly] {
        let mut command = limited("echo late", isolation, Duration::from_millis(100));
        command.grace = Duration::ZERO;
        // More than a socket holds, so that sending it has to wait for its reader.
        let huge = "x".repeat(100_000);
        command
            .env
            .set
            .extend((0..12).map(|at| (format!("HUGE_{at}").into(), huge.clone().into())));
        let held = hold(command, None, &support::supervisor()).unwrap();
        let in_namespace = containment_of(isolation) == Containment::PidNamespace;
        let expected = if in_namespace { 2 } else { 1 };
        support::await_that("all who lead", || leaders(held.id().pid).len() == expected);
        stop_leaders(held.id().pid);
        let finished = held.release().wait();
        assert_ne!(finished.ending, Ending::Exited(0), "{isolation:?}");
    }
}

//! A supervisor that is made ready before its command is known. One test: it
//! looks at all children of its process.

mod support;

use std::time::{Duration, Instant};

use loopwright_exec::{Ending, Finished, Isolation, Supervisor, start};
use rustix::process::{Pid, Signal, kill_process};
use support::{HELPER, PATIENCE, said, shell, shell_in};

/// The living supervisors among this process's children.
fn supervisors() -> Vec<i32> {
    let own = std::process::id();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let Some((head, tail)) = stat.rsplit_once(") ") else {
            continue;
        };
        let mut tail = tail.split(' ');
        let (state, parent) = (tail.next().unwrap(), tail.next().unwrap());
        if head.ends_with("(loopwright-sup") && state != "Z" && parent == own.to_string() {
            found.push(head.split(' ').next().unwrap().parse().unwrap());
        }
    }
    found
}

fn await_supervisors(count: usize) -> Vec<i32> {
    let give_up_at = Instant::now() + PATIENCE;
    loop {
        let found = supervisors();
        if found.len() == count {
            return found;
        }
        assert!(Instant::now() < give_up_at, "{found:?}, not {count}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn run(supervisor: &Supervisor, command: loopwright_exec::Command) -> Finished {
    start(command, None, supervisor).unwrap().wait()
}

#[test]
fn the_next_command_runs_under_the_one_that_is_ready_and_under_another_if_it_is_gone() {
    let supervisor = Supervisor::program(HELPER);
    // Before anything was run there is nobody to make one.
    supervisor.make_ready();
    assert_eq!(supervisors(), []);
    assert_eq!(said(&run(&supervisor, shell("echo 1"))), "1");

    // (The last one may be at its end still: what it led is gone, and nobody waits for it.)
    await_supervisors(0);
    supervisor.make_ready();
    supervisor.make_ready();
    let ready = await_supervisors(1)[0];
    let running = start(shell("echo 2; exit 3"), None, &supervisor).unwrap();
    assert_eq!(running.id().pid, ready.unsigned_abs());
    let finished = running.wait();
    assert_eq!(said(&finished), "2");
    assert_eq!(finished.ending, Ending::Exited(3));

    await_supervisors(0);
    supervisor.make_ready();
    let ready = await_supervisors(1)[0];
    kill_process(Pid::from_raw(ready).unwrap(), Signal::KILL).unwrap();
    await_supervisors(0);
    let running = start(shell("echo 3"), None, &supervisor).unwrap();
    assert_ne!(running.id().pid, ready.unsigned_abs());
    assert_eq!(said(&running.wait()), "3");

    await_supervisors(0);
    // One that was made for another fence is not used.
    supervisor.make_ready();
    let ready = await_supervisors(1)[0];
    let other = start(
        shell_in("echo 4", Isolation::SubreaperOnly),
        None,
        &supervisor,
    );
    let other = other.unwrap();
    assert_ne!(other.id().pid, ready.unsigned_abs());
    assert_eq!(said(&other.wait()), "4");
    await_supervisors(0);

    supervisor.make_ready();
    await_supervisors(1);
    drop(supervisor);
    assert_eq!(supervisors(), []);
}

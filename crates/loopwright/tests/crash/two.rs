//! Two processes at one run: the second is refused, and one that takes over shuts the first out.

use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::bench::{Bench, names};

/// The exit status of a command that finds the run driven by another process.
const HELD: Option<i32> = Some(6);

fn start(mut command: Command) -> Child {
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn send(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

fn words(done: &Output) -> String {
    String::from_utf8_lossy(&done.stderr).into_owned()
}

/// Refused, saying who drives the run and since when.
fn expect_held(done: &Output, holder: &Child) {
    let words = words(done);
    assert_eq!(done.status.code(), HELD, "{words}");
    assert!(words.contains(&holder.id().to_string()), "{words}");
    assert!(words.contains("since"), "{words}");
}

fn the_second_is_refused(calm: &Bench, bench: &Bench) {
    assert!(calm.run(&[]).0.success());
    bench.hold(2);
    let first = start(bench.first_run());
    bench.await_line("begin propose 2", 1);
    let git = |arguments: &[&str]| {
        let done = bench.command("git", arguments).output().unwrap();
        String::from_utf8(done.stdout).unwrap()
    };
    // What an agent is in the middle of: a lock of git's, and a setting of its own.
    std::fs::write(bench.repository().join(".git/MERGE_MSG"), "midway").unwrap();
    git(&["config", "agent.midway", "true"]);
    expect_held(&bench.first_run().output().unwrap(), &first);
    let resume = bench.loopwright(&["resume"]).output().unwrap();
    expect_held(&resume, &first);
    assert_eq!(
        git(&["config", "agent.midway"]),
        "true\n",
        "the first was disturbed"
    );
    assert!(bench.repository().join(".git/MERGE_MSG").exists());
    std::fs::remove_file(bench.repository().join(".git/MERGE_MSG")).unwrap();
    git(&["config", "--remove-section", "agent"]);
    bench.let_go(2);
    let done = first.wait_with_output().unwrap();
    assert!(done.status.success(), "{}", words(&done));
    assert_eq!(bench.decisions(), calm.decisions());
    bench.check("second refused", 0);
}

#[test]
fn a_second_process_is_refused_and_the_first_unharmed() {
    the_second_is_refused(&Bench::new(), &Bench::new());
}

#[test]
fn a_second_process_is_refused_in_place_and_the_first_unharmed() {
    the_second_is_refused(&Bench::in_place(), &Bench::in_place());
}

fn a_stopped_one_is_shut_out(calm: &Bench, bench: &Bench) {
    assert!(calm.run(&[]).0.success());
    bench.hold(2);
    let first = start(bench.first_run());
    bench.await_line("begin propose 2", 1);
    send(&first, Signal::STOP);
    expect_held(&bench.loopwright(&["resume"]).output().unwrap(), &first);

    // The second takes over, and is itself in the middle of the trial when the first wakes up.
    let second = start(bench.loopwright(&["resume", "--force"]));
    bench.await_line("begin propose 2", 2);
    send(&first, Signal::CONT);
    let done = first.wait_with_output().unwrap();
    let said = words(&done);
    assert_eq!(done.status.code(), HELD, "{said}");
    assert!(said.contains("taken over"), "{said}");

    bench.let_go(2);
    let done = second.wait_with_output().unwrap();
    assert!(done.status.success(), "{}", words(&done));
    assert_eq!(bench.decisions(), calm.decisions());
    bench.check("taken over", 1);

    // Whoever comes next clears away what nobody works in any more.
    assert_eq!(taken_over(bench).len(), 1, "{:?}", taken_over(bench));
    bench.output(&["resume", "--trials", "1"]);
    assert_eq!(taken_over(bench), Vec::<String>::new());
}

/// The folders of those who took a run over.
fn taken_over(bench: &Bench) -> Vec<String> {
    let work = bench.path("work");
    let runs = names(&work).into_iter().flat_map(|store| {
        let store = work.join(store);
        let runs = names(&store).into_iter();
        runs.map(move |run| store.join(run))
    });
    let folders = runs.flat_map(|run| names(&run));
    folders
        .filter(|name| name.starts_with("taken-over-"))
        .collect()
}

#[test]
fn a_stopped_process_is_shut_out_by_force_only() {
    a_stopped_one_is_shut_out(&Bench::new(), &Bench::new());
}

#[test]
fn a_stopped_process_is_shut_out_in_place_by_force_only() {
    a_stopped_one_is_shut_out(&Bench::in_place(), &Bench::in_place());
}

#[test]
fn runs_of_two_loops_do_not_share_a_checkout() {
    let bench = Bench::in_place();
    bench.hold(1);
    let first = start(bench.first_run());
    bench.await_line("begin propose 1", 1);
    let mut other = bench.first_run();
    other.args(["--loop", "other"]);
    expect_held(&other.output().unwrap(), &first);
    bench.let_go(1);
    let done = first.wait_with_output().unwrap();
    assert!(done.status.success(), "{}", words(&done));
    bench.await_no_process("two loops");
}

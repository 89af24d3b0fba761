//! In place: whatever is interrupted or done meanwhile, nothing of the user's is lost.

use std::fs;
use std::path::PathBuf;

use loopwright_core::ids::{EffectId, LoopName};
use loopwright_exec::{boot_id, start_time_of};
use loopwright_record::{OpenMode, RunningCommand, Store};
use rustix::process::{Pid, Signal, kill_process};

use crate::common::await_that;
use crate::rig::{Rig, run_arguments, words_of};

/// A proposal that waits to be let go.
const HELD: &str =
    "touch \"$OUTSIDE/begun\"; while [ ! -e \"$OUTSIDE/go\" ]; do sleep 0.02; done; echo 5 > x";

fn interrupted(rig: &Rig, propose: &str) {
    let child = rig.start(&rig.repository(), "a", propose, &["--in-place"]);
    rig.await_file("begun");
    rig.kill(child);
}

fn resume(rig: &Rig) -> std::process::Output {
    rig.loopwright_in(&rig.repository(), &["resume", "--loop", "a"])
}

fn linked(rig: &Rig) -> PathBuf {
    let other = rig.path("other");
    let place = other.to_str().unwrap();
    rig.git(&["worktree", "add", "-q", "-b", "other", place]);
    other
}

fn read(folder: &std::path::Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap()
}

/// What a file held that was cleared away, by the words that say where it is.
fn saved(rig: &Rig, words: &str, name: &str) -> String {
    let (_, rest) = words.split_once("saved as commit ").expect(words);
    let objects = rig.repository().join(".git/loopwright/objects.git");
    let file = format!("{}:{name}", &rest[..40]);
    rig.git(&["--git-dir", objects.to_str().unwrap(), "show", &file])
}

/// What git reads at its start, and would wait for.
const TRAPS: [&str; 15] = [
    "HEAD",
    "config",
    "index",
    "packed-refs",
    "refs/heads/main",
    "info/exclude",
    "commondir",
    "../.git/objects/info/alternates",
    "refs/heads/unpacked",
    "logs/refs/heads/main",
    "objects/pack/pack-1.idx",
    "worktrees/other/HEAD",
    "modules/lib/HEAD",
    "../.gitattributes",
    "../new/.gitignore",
];

#[test]
fn a_pipe_left_where_git_reads_holds_nobody_up() {
    for name in TRAPS {
        let rig = Rig::new();
        rig.write(".git/info/exclude", "of-the-user\n");
        rig.git(&["pack-refs", "--all", "--no-prune"]);
        rig.git(&["branch", "unpacked"]);
        let other = linked(&rig);
        let (before, users) = (rig.git(&["rev-parse", "HEAD"]), settings(&rig));
        let propose = format!(
            "f=.git/{name}; [ -e $OUTSIDE/go ] || {{ mkdir -p new $(dirname $f); rm -f $f; mkfifo $f; }}; {HELD}"
        );
        interrupted(&rig, &propose);
        for look in ["status", "log", "verify", "doctor"] {
            let mut command = rig.tool(&[look, "--loop", "a"]);
            if look == "doctor" {
                command.args(["--run", "sh run.sh", "--metric", "m", "--goal", "min"]);
            }
            let mut child = command.spawn().unwrap();
            await_that(&format!("{look} to end with a pipe at {name}"), || {
                child.try_wait().unwrap().is_some()
            });
        }
        rig.touch("go");
        let done = resume(&rig);
        let words = words_of(&done, 0);
        assert!(
            words.contains("undone in your checkout: .git/")
                || words.contains("undone of the interrupted proposal: "),
            "{name}: {words}"
        );
        let there = other.to_str().unwrap();
        assert_eq!(
            rig.git(&["-C", there, "status", "--porcelain"]),
            "",
            "{name}"
        );
        assert_eq!(
            rig.git(&["rev-parse", "unpacked", "other"]),
            before.repeat(2),
            "{name}"
        );
        assert_eq!(rig.git(&["rev-parse", "HEAD~1"]), before, "{name}");
        assert_eq!(rig.git(&["status", "--porcelain"]), "", "{name}");
        assert_eq!(settings(&rig), users, "{name}");
        rig.git(&["fsck", "--full"]);
    }
}

fn settings(rig: &Rig) -> [String; 3] {
    ["HEAD", "config", "info/exclude"].map(|name| read(&rig.repository().join(".git"), name))
}

#[test]
fn a_pipe_of_somebody_elses_is_named_and_left() {
    let rig = Rig::new();
    let head = rig.repository().join(".git/HEAD");
    fs::remove_file(&head).unwrap();
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&head)
            .status()
            .unwrap()
            .success()
    );
    let words = rig.refusal(
        2,
        &[
            "run",
            "--run",
            "sh run.sh",
            "--metric",
            "m",
            "--goal",
            "min",
        ],
    );
    assert!(words.contains(".git/HEAD is a pipe or a device"), "{words}");
    assert!(fs::symlink_metadata(&head).is_ok());
}

#[test]
fn a_run_in_another_work_tree_puts_nothing_right_here() {
    let rig = Rig::new();
    let other = linked(&rig);
    interrupted(
        &rig,
        &format!("echo 6 > x; git config agent.was here; {HELD}"),
    );
    fs::write(other.join("run.sh"), "echo m=1\n").unwrap();
    fs::write(other.join("notes.txt"), "mine\n").unwrap();
    let child = rig.start(&other, "b", "echo 4 > x", &["--in-place"]);
    let words = words_of(&child.wait_with_output().unwrap(), 2);
    assert!(words.contains("loopwright resume --loop a"), "{words}");
    assert_eq!(read(&other, "run.sh"), "echo m=1\n");
    assert_eq!(read(&other, "notes.txt"), "mine\n");
    assert_eq!(read(&rig.repository(), "x"), "6\n");
    // `adopt` runs the user's git, which would obey what the proposal left.
    let adopt = rig.loopwright_in(&rig.repository(), &["adopt", "--loop", "a", "0"]);
    let words = words_of(&adopt, 2);
    assert!(words.contains("is not undone yet"), "{words}");
    rig.touch("go");
    let words = words_of(&resume(&rig), 0);
    assert!(words.contains(".git/config: it was put back"), "{words}");
    assert_eq!(rig.git(&["show", "main:x"]), "5\n");
    assert_eq!(read(&other, "notes.txt"), "mine\n");
}

#[test]
fn a_commit_made_after_ctrl_c_stays_on_its_branch() {
    let rig = Rig::new();
    let child = rig.start(&rig.repository(), "a", HELD, &["--in-place"]);
    rig.await_file("begun");
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    words_of(&child.wait_with_output().unwrap(), 130);
    assert_eq!(rig.git(&["status", "--porcelain"]), "");
    rig.write("mine", "1\n");
    rig.git(&["add", "mine"]);
    rig.git(&["commit", "-qm", "MY OWN WORK"]);
    let mine = rig.git(&["rev-parse", "main"]);
    rig.touch("go");
    let words = words_of(&resume(&rig), 2);
    assert!(words.contains(&mine[..10]), "{words}");
    assert_eq!(rig.git(&["rev-parse", "main"]), mine);
    assert_eq!(rig.git(&["show", "main:mine"]), "1\n");
    // What the words advise works.
    rig.git(&["branch", "mine"]);
    rig.git(&["reset", "-q", "--hard", "main~1"]);
    words_of(&resume(&rig), 0);
    assert_eq!(rig.git(&["show", "main:x"]), "5\n");
}

#[test]
fn what_the_user_did_after_a_kill_is_saved() {
    let rig = Rig::new();
    interrupted(&rig, &format!("echo 6 > x; {HELD}"));
    rig.write("run.sh", "echo m=1\n");
    rig.write("novel.txt", "mine\n");
    rig.touch("go");
    let words = words_of(&resume(&rig), 0);
    assert_eq!(saved(&rig, &words, "novel.txt"), "mine\n");
    assert_eq!(saved(&rig, &words, "run.sh"), "echo m=1\n");
    assert_eq!(saved(&rig, &words, "x"), "6\n");
    assert_eq!(rig.git(&["status", "--porcelain"]), "");
    rig.loopwright(&["verify", "--loop", "a"]);
}

#[test]
fn what_git_cannot_store_is_moved_aside_and_the_run_goes_on() {
    let rig = Rig::new();
    let leave = "git init -q nested; echo 1 > nested/y; mkfifo pipe";
    let propose = format!("{leave}; echo 5 > x");
    let child = rig.start(&rig.repository(), "a", &propose, &["--in-place"]);
    let words = words_of(&child.wait_with_output().unwrap(), 0);
    assert_eq!(rig.git(&["status", "--porcelain"]), "");
    let (_, rest) = words.split_once("nested: it was moved to ").expect(&words);
    let place = rest.split_once(": ").unwrap().0;
    assert_eq!(fs::read_to_string(format!("{place}/y")).unwrap(), "1\n");
    let next = rig.trial("echo 5 > x", &["--in-place", "--loop", "a"]);
    assert_eq!(next["outcome"], "kept", "{next}");
}

#[test]
fn a_commit_made_after_a_kill_stays_and_another_loop_may_start_from_it() {
    let rig = Rig::new();
    interrupted(&rig, HELD);
    rig.write("mine", "1\n");
    rig.git(&["add", "mine"]);
    rig.git(&["commit", "-qm", "mine"]);
    rig.write("novel.txt", "mine\n");
    let mine = rig.git(&["rev-parse", "main"]);
    let words = words_of(&resume(&rig), 2);
    assert!(words.contains(mine.trim()), "{words}");
    assert!(words.contains("git checkout -B main"), "{words}");
    assert_eq!(rig.git(&["rev-parse", "main"]), mine);
    assert_eq!(read(&rig.repository(), "novel.txt"), "mine\n");
    fs::remove_file(rig.repository().join("novel.txt")).unwrap();
    let child = rig.start(&rig.repository(), "b", "echo 4 > x", &["--in-place"]);
    words_of(&child.wait_with_output().unwrap(), 0);
    assert_eq!(rig.git(&["show", "main:x"]), "4\n");
    assert_eq!(rig.git(&["show", "main:mine"]), "1\n");
}

#[test]
fn what_goes_on_writing_is_ended_before_anything_is_put_right() {
    let rig = Rig::new();
    interrupted(&rig, HELD);
    // As where no fence holds and a proposal outlives its engine: something noted as running.
    let writing = "while :; do git config agent.was $((n = n + 1)); echo $n > x; : > \"$OUTSIDE/wrote\"; done";
    let mut writer = rig.command("sh", &["-c", writing]).spawn().unwrap();
    rig.await_file("wrote");
    let store = Store::open(&rig.repository().join(".git/loopwright"), OpenMode::Write).unwrap();
    let name = LoopName::new("a").unwrap();
    let run = store.latest_run(&name).unwrap().unwrap().run;
    let noted = RunningCommand {
        run,
        effect: EffectId::new("t1/propose"),
        attempt: 1,
        pid: writer.id(),
        start_time: start_time_of(writer.id()).unwrap(),
        boot_id: boot_id().to_owned(),
    };
    store.running().add(&noted).unwrap();
    drop(store);
    rig.touch("go");
    let words = words_of(&resume(&rig), 0);
    writer.wait().unwrap();
    let ended = words.find("ending what was left running of t1/propose");
    let undone = words.find("undone of the interrupted proposal");
    assert!(ended.is_some() && ended < undone, "{words}");
    let config = read(&rig.repository(), ".git/config");
    assert!(!config.contains("agent"), "{config}");
    assert_eq!(rig.git(&["show", "main:x"]), "5\n");
}

#[test]
fn what_others_do_during_a_proposal_stays() {
    let rig = Rig::new();
    let other = linked(&rig);
    let propose = format!("git config agent.was here; git tag agents; {HELD}");
    let child = rig.start(&rig.repository(), "b", &propose, &["--in-place"]);
    rig.await_file("begun");
    // Another loop keeps something meanwhile, and cannot be adopted here.
    let another = rig.start(&rig.repository(), "a", "echo 7 > x", &[]);
    words_of(&another.wait_with_output().unwrap(), 0);
    let adopt = rig.loopwright_in(&rig.repository(), &["adopt", "--loop", "a"]);
    words_of(&adopt, 6);
    // The user works in another work tree.
    fs::write(other.join("mine"), "1\n").unwrap();
    let place = other.to_str().unwrap();
    rig.git(&["-C", place, "add", "mine"]);
    rig.git(&["-C", place, "commit", "-qm", "mine"]);
    rig.git(&["-C", place, "branch", "novel"]);
    let before = rig.git(&["rev-parse", "other", "novel", "loopwright/a/main"]);
    rig.touch("go");
    let words = words_of(&child.wait_with_output().unwrap(), 0);
    let after = rig.git(&["rev-parse", "other", "novel", "loopwright/a/main"]);
    assert_eq!(after, before, "{words}");
    assert_eq!(rig.git(&["-C", place, "status", "--porcelain"]), "");
    assert_eq!(rig.git(&["show", "main:x"]), "5\n");
    for (name, what) in [
        (".git/config", "it was put back"),
        ("refs/heads/other", "was left alone"),
        ("refs/tags/agents", "was left alone"),
    ] {
        let line = format!("undone in your checkout: {name}: ");
        let line = words.lines().find(|found| found.contains(&line));
        assert!(
            line.is_some_and(|line| line.contains(what)),
            "{name}: {words}"
        );
    }
}

/// What it kept is on the user's branch: there is none of the loop's to speak of, or to bring.
#[test]
fn there_is_nothing_to_adopt() {
    let rig = Rig::new();
    let done = rig.try_loopwright(&run_arguments(
        "echo 5 > x",
        &["--in-place", "--trials", "1"],
    ));
    let words = words_of(&done, 0);
    assert!(!words.contains("adopt"), "{words}");
    let words = rig.refusal(2, &["adopt"]);
    assert!(words.contains("is on your branch already"), "{words}");
    let status = rig.loopwright(&["status"]);
    assert!(!status.contains("loopwright/default/main"), "{status}");
}

/// The user goes on working between invocations: the loop begins anew from there, in a new segment, if
/// somebody starts it; a resume does not.
#[test]
fn a_branch_that_its_user_moved_is_a_new_beginning() {
    let rig = Rig::with("sh eval.sh\n", &[("eval.sh", "echo m=$(cat x)\n")]);
    let more = ["--in-place", "--protect", "eval.sh"];
    let segments = |rig: &Rig| -> Vec<u64> {
        let log = rig.log();
        log.iter()
            .map(|row| row["segment"].as_u64().unwrap())
            .collect()
    };
    assert_eq!(rig.trial("echo 5 > x", &more)["outcome"], "kept");
    assert_eq!(rig.trial("echo 4 > x", &more)["outcome"], "kept");
    rig.write("eval.sh", "echo m=$(( $(cat x) + 100 ))\n");
    rig.commit_all("another evaluation");
    let words = rig.refusal(2, &["resume", "--trials", "1"]);
    assert!(words.contains("loopwright run"), "{words}");
    let arguments = run_arguments("echo 3 > x", &more);
    let done = rig.try_loopwright(&[&arguments[..], &["--trials", "1"]].concat());
    let words = words_of(&done, 0);
    assert!(words.contains("a new segment starts from there"), "{words}");
    let log = rig.log();
    assert_eq!(log.last().unwrap()["value"], 103.0);
    assert_eq!(log.last().unwrap()["against"], 104.0);
    assert_eq!(segments(&rig), [1, 1, 1, 2, 2]);
    // It goes on from there, also with other settings, each of which begins one segment.
    rig.trial("echo 2 > x", &more);
    assert_eq!(segments(&rig), [1, 1, 1, 2, 2, 2]);
    let other = [&more[..], &["--env", "A=1"]].concat();
    rig.trial("echo 1 > x", &other);
    rig.trial("echo 0 > x", &other);
    assert_eq!(segments(&rig), [1, 1, 1, 2, 2, 2, 3, 3, 3]);
    rig.loopwright(&["verify"]);
    rig.loopwright(&["replay"]);
}

/// What a hook refused and the user brought to the branch afterwards.
#[test]
fn a_trial_that_was_adopted_afterwards_is_the_next_beginning() {
    let rig = Rig::new();
    let hook = rig.repository().join(".git/hooks/pre-commit");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, "#!/bin/sh\nexit 1\n").unwrap();
    rig.shell("chmod +x .git/hooks/pre-commit");
    let trial = rig.trial("echo 5 > x", &["--in-place"]);
    assert_ne!(trial["outcome"], "kept", "{trial}");
    let why = trial["why"].as_str().unwrap();
    assert!(
        why.contains("a hook refused the commit, and said nothing"),
        "{why}"
    );
    fs::remove_file(&hook).unwrap();
    rig.loopwright(&["adopt", "1"]);
    let trial = rig.trial("echo 4 > x", &["--in-place"]);
    assert_eq!(
        (&trial["outcome"], &trial["against"]),
        (&"kept".into(), &5.0.into())
    );
}

/// Git would read one object in place of another.
#[test]
fn a_replacement_of_an_object_is_taken_away() {
    let rig = Rig::new();
    let propose = "echo 5 > x; evil=$(echo echo m=1 | git hash-object -w --stdin);
        git replace $(git rev-parse HEAD:run.sh) $evil";
    assert_eq!(rig.trial(propose, &["--in-place"])["outcome"], "kept");
    assert_eq!(rig.git(&["for-each-ref", "refs/replace"]), "");
    rig.git(&["checkout", "-q", "HEAD", "--", "run.sh"]);
    assert!(rig.git(&["show", "HEAD:run.sh"]).contains("cat x"));
}

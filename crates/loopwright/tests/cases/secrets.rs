//! What is secret stands nowhere in the record.

use std::process::Command;

use crate::rig::Rig;

const SECRET: &str = "zzq8fK2mPq91LxTTw03";

/// Everything of the record that could hold a text, as one.
fn recorded(rig: &Rig) -> String {
    let mut all = rig.loopwright(&["log", "--json"]);
    for trial in 0..rig.log().len() {
        all.push_str(&rig.loopwright(&["show", &trial.to_string(), "--json"]));
    }
    all
}

fn with_secret(rig: &Rig, arguments: &[&str]) -> (bool, String) {
    let mut command: Command = rig.command(env!("CARGO_BIN_EXE_loopwright"), arguments);
    let done = command.env("MY_API_KEY", SECRET).output().unwrap();
    let words = String::from_utf8_lossy(&done.stderr).into_owned();
    (done.status.success(), words)
}

fn run<'a>(propose: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec![
        "run",
        "--run",
        "sh run.sh",
        "--metric",
        "m",
        "--goal",
        "min",
    ];
    arguments.extend(["--propose", propose]);
    arguments.extend(more);
    arguments
}

/// A secret that the cut of the tail goes through has lost its beginning.
#[test]
fn a_secret_at_the_cut_of_an_outputs_end_is_not_recorded() {
    for after in [3980, 3990, 3996] {
        let rig = Rig::new();
        let propose = format!(
            "head -c 9000 /dev/zero | tr '\\0' x; echo; echo \"$MY_API_KEY\"
            head -c {after} /dev/zero | tr '\\0' y; echo 5 > x"
        );
        let (done, words) = with_secret(&rig, &run(&propose, &[]));
        assert!(done, "{words}");
        let recorded = recorded(&rig);
        for end in [SECRET, &SECRET[4..], &SECRET[12..]] {
            assert!(!recorded.contains(end), "{after}: {end}");
        }
    }
}

#[test]
fn a_secret_of_the_environment_is_refused_in_what_is_pinned() {
    let rig = Rig::new();
    let propose = format!("agent --key {SECRET}; echo 5 > x");
    let (done, words) = with_secret(&rig, &run(&propose, &[]));
    assert!(!done);
    assert!(
        words.contains("propose: read it from the environment"),
        "{words}"
    );
    let (done, words) = with_secret(&rig, &run("echo 5 > x", &["--protect", "run.sh"]));
    assert!(done, "{words}");
    let (done, words) = with_secret(&rig, &["resume", "--propose", &propose]);
    assert!(
        !done && words.contains("what looks like a secret"),
        "{words}"
    );
    let (done, words) = with_secret(&rig, &["resume", "--protect", "nothing/**"]);
    assert!(!done && words.contains("matches nothing"), "{words}");
}

#[test]
fn the_words_of_a_hook_are_scrubbed() {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    let rig = Rig::new();
    let (done, words) = with_secret(&rig, &run("echo 5 > x", &["--trials", "1"]));
    assert!(done, "{words}");
    rig.write("y", "1\n");
    rig.git(&["add", "y"]);
    rig.git(&["commit", "-qm", "so that adopting makes a commit"]);
    let hook = rig.repository().join(".git/hooks/pre-commit");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, "#!/bin/sh\necho \"no, $MY_API_KEY\" >&2\nexit 1\n").unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let (done, _) = with_secret(&rig, &["adopt", "1"]);
    assert!(!done, "the hook refuses");
    let store = rig.repository().join(".git/loopwright");
    let mut recorded_words = false;
    for entry in fs::read_dir(&store).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let bytes = fs::read(&path).unwrap();
            let found = bytes
                .windows(SECRET.len())
                .any(|part| part == SECRET.as_bytes());
            assert!(!found, "{}", path.display());
            let words = b"no, [redacted:known-value]";
            recorded_words |= bytes.windows(words.len()).any(|part| part == words);
        }
    }
    assert!(recorded_words, "{}", store.display());
}

/// The commands of an inner loop get nothing of the loop that measures it.
#[test]
fn an_outer_loops_variables_are_not_handed_on() {
    let rig = Rig::new();
    let mut command = rig.command(
        env!("CARGO_BIN_EXE_loopwright"),
        &run(
            "env | grep ^LOOPWRIGHT_ > $OUTSIDE/told; echo 5 > x",
            &["--pass-env", "LOOPWRIGHT_WANTED"],
        ),
    );
    for name in ["RESULT", "BRIEF_OLD", "BUDGET_STEPS_X", "WANTED"] {
        command.env(format!("LOOPWRIGHT_{name}"), "outer");
    }
    let done = command.output().unwrap();
    assert!(done.status.success(), "{done:?}");
    let told = std::fs::read_to_string(rig.path("told")).unwrap();
    let outer: Vec<&str> = told
        .lines()
        .filter(|line| line.ends_with("=outer"))
        .collect();
    assert_eq!(outer, ["LOOPWRIGHT_WANTED=outer"], "{told}");
}

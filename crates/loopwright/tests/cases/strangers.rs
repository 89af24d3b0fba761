//! Whatever a command leaves is a result. It neither holds the engine up, nor leads it outside, nor
//! ends the run.

use std::fs;

use crate::common::skip;
use crate::rig::Rig;

/// What a measurement of 7 leaves in place of its result, and how its trial ends.
const LEFT: &[(&str, &str, &str)] = &[
    ("a pipe", "mkfifo \"$LOOPWRIGHT_RESULT\"; echo m=7", "kept"),
    (
        "a directory",
        "mkdir -p \"$LOOPWRIGHT_RESULT/a\"; echo m=7",
        "kept",
    ),
    (
        "a link",
        "ln -s $OUTSIDE/one \"$LOOPWRIGHT_RESULT\"; echo m=7",
        "kept",
    ),
    (
        "a socket and nothing else",
        "mkfifo \"$LOOPWRIGHT_RESULT\"",
        "no_metric",
    ),
    (
        "no desk",
        "rm -rf \"$(dirname \"$LOOPWRIGHT_RESULT\")\"; echo m=7",
        "kept",
    ),
    (
        "a desk elsewhere",
        "cd \"$(dirname \"$LOOPWRIGHT_RESULT\")/..\" && rm -rf desk && ln -s $OUTSIDE desk; echo m=7",
        "kept",
    ),
    (
        "too much",
        "(echo m=7; head -c 2000000 /dev/zero | tr '\\0' '\\n'; echo m=9) > \"$LOOPWRIGHT_RESULT\"",
        "no_metric",
    ),
    (
        "a pipe for its output",
        "mkfifo \"$(dirname \"$LOOPWRIGHT_RESULT\")/../outputs/output\"
        head -c 300000 /dev/zero | tr '\\0' '\\n'; echo m=7",
        "kept",
    ),
    (
        "outputs elsewhere",
        "cd \"$(dirname \"$LOOPWRIGHT_RESULT\")/..\" && mv outputs old && ln -s $OUTSIDE outputs
        head -c 300000 /dev/zero | tr '\\0' '\\n'; echo m=7",
        "kept",
    ),
    (
        "no output",
        "head -c 300000 /dev/zero | tr '\\0' '\\n'; rm -rf \"$(dirname \"$LOOPWRIGHT_RESULT\")\"/../outputs/*; echo m=7",
        "kept",
    ),
];

#[test]
fn what_a_measurement_leaves_is_its_result_and_the_run_goes_on() {
    for (name, left, outcome) in LEFT {
        let rig = Rig::with(
            "case \"$(cat x)\" in 7) . ./leave.sh ;; *) echo \"m=$(cat x)\" ;; esac\n",
            &[("leave.sh", left)],
        );
        let mine = ["one", "output"].map(|name| rig.path(name));
        for file in &mine {
            fs::write(file, "m=1\n").unwrap();
        }
        let trial = rig.trial("echo 7 > x", &["--run-limit", "60s"]);
        assert_eq!(trial["outcome"], *outcome, "{name}: {trial}");
        let next = rig.trial("echo 3 > x", &[]);
        assert_eq!(next["outcome"], "kept", "{name}: {next}");
        for file in &mine {
            assert_eq!(fs::read_to_string(file).unwrap(), "m=1\n", "{name}");
        }
    }
}

/// The same of a proposal: the desk of the measurement after it is a new one.
#[test]
fn what_a_proposal_leaves_on_the_desk_is_gone() {
    let rig = Rig::new();
    let propose = "mkdir -p \"$(dirname \"$LOOPWRIGHT_BRIEF\")/result/a\"
        echo m=1 > \"$(dirname \"$LOOPWRIGHT_BRIEF\")/other\"; rm -f \"$LOOPWRIGHT_BRIEF\"
        mkdir \"$LOOPWRIGHT_BRIEF\"; echo $(($(cat x) - 1)) > x";
    for value in [9.0, 8.0] {
        let trial = rig.trial(propose, &[]);
        assert_eq!(trial["outcome"], "kept", "{trial}");
        assert_eq!(trial["value"], value, "{trial}");
    }
}

/// What is measured is not told what there is to beat.
#[test]
fn what_is_measured_finds_no_brief() {
    let run = "find \"$(dirname \"$LOOPWRIGHT_RESULT\")/..\" -name 'brief*' -type f -size +0 |
        grep . && exit 3
        echo m=$(cat x)";
    let rig = Rig::with(run, &[]);
    for value in [9.0, 8.0] {
        let propose = "test -s \"$LOOPWRIGHT_BRIEF\" && echo $(($(cat x) - 1)) > x";
        let trial = rig.trial(propose, &[]);
        assert_eq!(trial["value"], value, "{trial}");
    }
}

#[test]
fn what_the_tree_has_where_the_result_belongs_is_a_failed_trial() {
    let table = [
        ("mkdir res; echo 1 > res/m", "res", "a directory at res"),
        ("ln -s $OUTSIDE/docs res", "res/m.txt", "a link at res"),
        ("echo 1 > res", "res/m.txt", "a file at res"),
    ];
    for (propose, result_file, what) in table {
        let run = "mkdir -p \"$(dirname \"$LOOPWRIGHT_RESULT\")\"; echo \"m=$(cat x)\" > \"$LOOPWRIGHT_RESULT\"\n";
        let rig = Rig::with(run, &[]);
        fs::create_dir(rig.path("docs")).unwrap();
        fs::write(rig.path("docs/m.txt"), "m=1\n").unwrap();
        let more = ["--result-file", result_file];
        let trial = rig.trial(propose, &more);
        assert_eq!(trial["outcome"], "failed", "{trial}");
        let why = trial["why"].as_str().unwrap();
        assert!(why.contains(what), "{why}");
        assert_eq!(fs::read_to_string(rig.path("docs/m.txt")).unwrap(), "m=1\n");
        let next = rig.trial("echo 3 > x", &more);
        assert_eq!(next["outcome"], "kept", "{next}");
    }
}

/// A link on the way to a declared input leads it nowhere, and is no end of the run.
#[test]
fn what_stands_in_the_place_of_a_declared_input_is_not_measured() {
    let rig = Rig::new();
    rig.write(".gitignore", "in/data\n");
    rig.write("in/data", "1\n");
    rig.git(&["add", ".gitignore"]);
    rig.git(&["commit", "-qm", "ignore"]);
    fs::create_dir(rig.path("docs")).unwrap();
    let more = ["--link", "in/data"];
    let first = rig.trial("rm -rf in; ln -s $OUTSIDE/docs in; echo 5 > x", &more);
    assert_eq!(first["outcome"], "harness_changed", "{first}");
    let why = first["why"].as_str().unwrap();
    assert!(
        why.contains("in (the input in/data is linked there)"),
        "{why}"
    );
    let next = rig.trial("echo 4 > x", &more);
    assert_eq!(next["outcome"], "kept", "{next}");
    assert_eq!(fs::read_dir(rig.path("docs")).unwrap().count(), 0);
}

/// A repository with an input that git ignores.
fn with_input() -> Rig {
    let rig = Rig::new();
    rig.write(".gitignore", "data\n");
    rig.write("data/d", "1\n");
    rig.git(&["add", ".gitignore"]);
    rig.git(&["commit", "-qm", "ignore"]);
    rig
}

#[test]
fn a_declared_input_can_be_read_and_not_written() {
    let rig = with_input();
    let propose = "echo changed > data/d; echo changed > $OUTSIDE/repository/data/d; rm -f data/d
        grep -q 1 data/d && echo 5 > x";
    let trial = rig.trial(propose, &["--link", "data"]);
    let shown = rig.loopwright(&["show", "1", "--json"]);
    if !shown.contains("pid_namespace") {
        skip("nothing keeps commands from writing their inputs here");
        return;
    }
    assert_eq!(trial["outcome"], "kept", "{trial} {shown}");
    assert_eq!(
        fs::read_to_string(rig.repository().join("data/d")).unwrap(),
        "1\n"
    );
}

/// An input that changes while a proposal is made is laid to it, and to nobody after it. (Where no
/// namespace keeps it from writing it is the proposal's doing; here somebody else helps.)
#[test]
fn a_declared_input_that_changes_is_noticed() {
    let rig = with_input();
    let propose = "touch $OUTSIDE/begun; while [ ! -e $OUTSIDE/changed ]; do sleep 0.01; done
        echo 5 > x";
    let more = ["--link", "data", "--trials", "2"];
    std::thread::scope(|scope| {
        let helper = scope.spawn(|| {
            rig.await_file("begun");
            rig.write("data/d", "changed\n");
            fs::write(rig.path("changed"), "").unwrap();
        });
        rig.trial(propose, &more);
        helper.join().unwrap();
    });
    let log = rig.log();
    let (first, second) = (&log[1], &log[2]);
    assert_eq!(first["outcome"], "harness_changed", "{first}");
    let why = first["why"].as_str().unwrap();
    assert!(
        why.starts_with("the proposal changed what judges it: data (linked"),
        "{why}"
    );
    assert_eq!(second["outcome"], "failed", "{second}");
    let why = second["why"].as_str().unwrap();
    assert!(
        why.contains("not what it was when this invocation began"),
        "{why}"
    );
}

//! The keep rule through the whole program: over a fixed table of readings it runs the trees that the
//! trace it was designed with names, and decides as that does.

use serde_json::Value;

use crate::support::Rig;

/// Prints the next number of a table, and writes down which tree it was asked for.
const BENCH: &str = "\
cat n >> \"$LET/trees\"
sed -n 1p \"$LET/table\"
sed -i 1d \"$LET/table\"
";

const LOOP: &str = "\
[loop.speed]
run = \"sh bench.sh\"
metric = \"m\"
goal = \"min\"
propose = \"echo $LOOPWRIGHT_TRIAL > n\"
protect = [\"bench.sh\"]
rule = \"keep\"
closing = 2
";

/// The trace, each number behind its arm; a trial on each line.
const TRACE: &str = "\
I 9.99
C 11.05
C 8.74 C 8.72 I 11.62 I 8.79 C 7.37 C 6.68 I 9.89 I 11.0 C 7.98 C 8.5 I 8.09 I 10.15 C 7.09 C 9.78 I 10.89
C 9.95
C 7.94
C 8.61
C 7.16 C 6.16 I 7.5 I 7.89 C 5.89 C 5.91 I 7.72
C 5.77";

/// What start and finish measure at the end.
const CLOSING: [f64; 4] = [10.0, 6.0, 6.5, 10.5];

fn rig() -> Rig {
    let rig = Rig::bare();
    rig.write("n", "0\n");
    rig.write("bench.sh", BENCH);
    rig.write("loopwright.toml", LOOP);
    rig.commit_all();
    let words: Vec<&str> = TRACE.split_whitespace().collect();
    let numbers = words.chunks(2).map(|pair| pair[1].to_owned());
    let closing = CLOSING.iter().map(ToString::to_string);
    let table: Vec<String> = numbers
        .chain(closing)
        .map(|number| format!("m={number}"))
        .collect();
    std::fs::write(rig.root().join("let/table"), table.join("\n")).unwrap();
    rig
}

/// The trees that were to be run, by what stands in `n`: the trial that made each.
fn expected_trees() -> Vec<String> {
    let mut trees = Vec::new();
    let mut incumbent = 0;
    for (trial, line) in TRACE.lines().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        for pair in words.chunks(2) {
            let tree = if pair[0] == "I" { incumbent } else { trial };
            trees.push(tree.to_string());
        }
        if [2, 6].contains(&trial) {
            incumbent = trial;
        }
    }
    trees.extend(["0", "6", "6", "0"].map(str::to_owned));
    trees
}

#[test]
fn the_trees_of_the_trace_are_run_and_decided_as_it_says() {
    let rig = rig();
    let outcome = rig.run(&["run", "--trials", "7"]);
    insta::assert_snapshot!(outcome.normal());
    let trees = std::fs::read_to_string(rig.root().join("let/trees")).unwrap();
    assert_eq!(trees.lines().collect::<Vec<_>>(), expected_trees());
    assert_eq!(rig.git(&["show", "loopwright/speed/main:n"]), "6\n");
    insta::assert_snapshot!(rig.run(&["show", "6"]).normal());
    assert_eq!(rig.run(&["verify"]).code, 0);
    let _ = rig.run(&["replay"]).success();
}

#[test]
fn every_reading_is_there_with_its_arm_and_what_it_was_for() {
    let rig = rig();
    let _ = rig.run(&["run", "--trials", "2"]);
    let stdout = rig.run(&["show", "2", "--json"]).success();
    let row: Value = serde_json::from_str(&stdout).unwrap();
    let readings = row["readings"].as_array().unwrap();
    let line = TRACE.lines().nth(2).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(readings.len(), words.len() / 2);
    for (index, (taken, expected)) in readings.iter().zip(words.chunks(2)).enumerate() {
        let arm = if expected[0] == "I" {
            "incumbent"
        } else {
            "candidate"
        };
        assert_eq!(taken["arm"], arm);
        assert_eq!(taken["value"].as_f64(), expected[1].parse().ok());
        assert_eq!(taken["purpose"], if index == 0 { "first" } else { "duel" });
    }
}

#[test]
fn measurements_that_are_used_up_are_said_with_what_raises_them() {
    let rig = rig();
    let outcome = rig.run(&["run", "--trials", "7", "--max-runs", "6"]);
    insta::assert_snapshot!(outcome.normal());
    let stdout = rig
        .run(&["resume", "--max-runs", "60", "--trials", "1"])
        .stdout;
    assert!(stdout.contains("trial   6"), "{stdout}");
}

/// Labloop's flags mean labloop's rule.
#[test]
fn confirm_means_the_threshold_rule_and_is_said() {
    let rig = rig();
    let text = LOOP.replace("rule = \"keep\"\nclosing = 2\n", "");
    rig.write("loopwright.toml", &text);
    rig.commit_all();
    let outcome = rig.run(&["run", "--confirm"]);
    assert!(
        outcome
            .stderr
            .contains("`confirm` is set without `rule`: the threshold rule decides"),
        "{}",
        outcome.stderr
    );
    let _ = outcome.success();
}

/// What the wall clock cut off is not done: a resume measures what is left of it, and nothing else.
#[test]
fn a_closing_check_that_was_cut_off_is_carried_on_by_a_resume() {
    let rig = rig();
    let held = "case \"$(sed -n 1p \"$LET/table\")\" in hold*) while [ ! -e \"$LET/go\" ]; do sleep 0.05; done;; esac\n";
    rig.write(
        "bench.sh",
        &format!(
            "{held}{}",
            BENCH.replace("sed -n 1p", "sed -n '1s/^hold //;1p'")
        ),
    );
    rig.commit_all();
    let table = rig.root().join("let/table");
    let text = std::fs::read_to_string(&table).unwrap();
    let text = text.replace("m=10\nm=6\n", "m=11\nm=10\nhold m=6\n");
    assert!(text.contains("hold"), "{text}");
    std::fs::write(&table, text).unwrap();
    let outcome = rig.run(&["run", "--trials", "7", "--closing", "0"]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let outcome = rig.run(&["run", "--trials", "1", "--wall-clock", "5s"]);
    assert!(
        outcome
            .stderr
            .contains("not measured against each other yet"),
        "{}",
        outcome.stderr
    );
    std::fs::write(rig.root().join("let/go"), "").unwrap();
    let outcome = rig.run(&["resume", "--wall-clock", "1h"]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("start against finish"),
        "{}",
        outcome.stderr
    );
    assert_eq!(
        std::fs::read_to_string(&table).unwrap(),
        "",
        "all of it was measured"
    );
    let outcome = rig.run(&["resume"]);
    assert!(
        outcome.stderr.contains("nothing is left to do"),
        "{}",
        outcome.stderr
    );
}

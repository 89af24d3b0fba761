//! Acceptance cases of experiment loops, on the real binary. The names are those of the cases.

mod rig;

use rig::Rig;
use serde_json::Value;

fn outcomes(rig: &Rig) -> Vec<String> {
    let word = |trial: &Value| trial["outcome"].as_str().unwrap_or("?").to_owned();
    rig.log().iter().skip(1).map(word).collect()
}

fn why(rig: &Rig, trial: usize) -> String {
    rig.log()[trial]["why"].as_str().unwrap().to_owned()
}

#[test]
fn c1_what_the_agent_commits_or_configures_is_one_candidate_and_nothing_more() {
    for in_place in [false, true] {
        let rig = Rig::new();
        let marker = rig.path("marker");
        let evil = format!("touch {}", marker.display());
        let before = rig.users();
        let propose = format!(
            r"case $LOOPWRIGHT_TRIAL in
1) echo 99 > x; git commit -qam mine ;;
2) git checkout -qb side; echo 5 > x; git commit -qam mine
   git config core.fsmonitor '{evil}'
   git config filter.f.clean '{evil}'; git config filter.f.smudge '{evil}'
   mkdir -p .git/hooks; printf '#!/bin/sh\n{evil}\n' > .git/hooks/pre-commit
   cp .git/hooks/pre-commit .git/hooks/post-checkout; cp .git/hooks/pre-commit .git/hooks/reference-transaction
   chmod +x .git/hooks/* ;;
3) echo 7 > x; git commit -qam a; git commit -q --amend -m b ;;
esac"
        );
        let place: &[&str] = if in_place { &["--in-place"] } else { &[] };
        rig.run_loop(&propose, 3, place).succeeded();
        assert_eq!(
            outcomes(&rig),
            ["reverted", "kept", "reverted"],
            "in place: {in_place}"
        );
        assert!(
            !marker.exists(),
            "something of the proposer's ran in the engine (in place: {in_place})"
        );
        assert!(rig.loopwright(&["diff", "1"]).succeeded().contains("+99"));
        if in_place {
            assert_eq!(rig.git(&["symbolic-ref", "--short", "HEAD"]).trim(), "main");
            assert_eq!(rig.read("x"), "5\n");
            assert_eq!(
                rig.git(&["log", "--format=%s"]),
                "loopwright: m 5 (was 10)\nstart\n"
            );
            assert_eq!(rig.git(&["status", "--porcelain"]), "");
        } else {
            assert_eq!(rig.users(), before);
            assert_eq!(rig.git(&["show", "loopwright/default/main:x"]), "5\n");
            assert_eq!(
                rig.git(&["log", "--format=%s", "loopwright/default/main"]),
                "loopwright: m 5 (was 10)\nstart\n"
            );
        }
    }
}

#[test]
fn c2_rejected_work_leaves_nothing_behind() {
    let rig = Rig::new();
    rig.write(".gitignore", "cache/\n");
    rig.commit("ignore");
    let propose = r#"if [ "$LOOPWRIGHT_TRIAL" = 1 ]; then
echo 50 > x; git add x; echo a > "$(printf 'odd\nname here')"; mkdir empty; chmod +x run.sh
mkdir sub; (cd sub && git init -q . && echo b > f && git add f && git -c user.name=a -c user.email=a@b commit -qm c)
echo secret.txt >> .gitignore; echo s > secret.txt; mkdir -p cache; echo c > cache/c
fi"#;
    rig.run_loop(propose, 2, &[]).succeeded();
    let outcomes = outcomes(&rig);
    assert!(
        outcomes[0] == "failed" || outcomes[0] == "reverted",
        "{outcomes:?}"
    );
    assert_eq!(outcomes[1], "no_change");
}

#[test]
fn c3_a_hidden_cache_cannot_buy_a_win() {
    for declared in [false, true] {
        let rig = Rig::new();
        rig.write(".gitignore", "cache/\n");
        rig.write(
            "run.sh",
            "if [ -e cache/hit ]; then echo m=1; else echo \"m=$(cat x)\"; fi\n",
        );
        rig.commit("cache");
        let cache: &[&str] = if declared { &["--cache", "cache"] } else { &[] };
        let propose = "mkdir -p cache; touch cache/hit; echo '# note' >> run.sh";
        rig.run_loop(propose, 1, cache).succeeded();
        let log = rig.log();
        assert_eq!(log[1]["outcome"], "reverted", "{log:?}");
        assert_eq!(log[1]["value"], 10.0);
    }
}

#[test]
fn c5_a_time_limit_means_the_whole_family_and_so_does_success() {
    let rig = Rig::new();
    rig.write(
        "run.sh",
        r#"if [ "$(cat x)" = 10 ]; then echo m=10; exit; fi
setsid sleep 600 &
(sleep 600 & ) &
(trap '' TERM; sleep 600) &
if [ "$(cat x)" = 5 ]; then echo m=5; exit 0; fi
sleep 600
"#,
    );
    rig.commit("family");
    let propose = "[ \"$LOOPWRIGHT_TRIAL\" = 1 ] && echo 9 > x || echo 5 > x";
    rig.run_loop(propose, 2, &["--run-limit", "1s", "--grace", "200ms"])
        .succeeded();
    assert_eq!(outcomes(&rig), ["timed_out", "kept"]);
    assert!(why(&rig, 1).contains("the measurement"), "{}", why(&rig, 1));
    rig.await_no_process();
}

#[test]
fn c9_numbers_that_are_not_numbers_are_never_kept() {
    let table = [
        ("m=nan", "not_finite"),
        ("m=-inf", "not_finite"),
        ("m=1e999", "not_finite"),
        ("m=1,234.5", "no_metric"),
        ("m=1_000", "no_metric"),
        ("m=1.2.3", "no_metric"),
        ("m=3/4", "no_metric"),
        ("m=0x10", "no_metric"),
        ("{\"m\": true}", "no_metric"),
        ("{\"m\": \"0.5\"}", "no_metric"),
        ("m = 12ms", "no_metric"),
        ("m=", "no_metric"),
        ("nothing at all", "no_metric"),
        ("FAIL", "failed"),
        ("m=0.25", "kept"),
    ];
    let rig = Rig::new();
    rig.write(
        "run.sh",
        "cat x | grep -v FAIL; if grep -q FAIL x; then echo m=1; exit 1; fi; true\n",
    );
    rig.write("x", "m=10\n");
    rig.commit("print");
    let lines: String = table.iter().map(|(line, _)| format!("{line}\n")).collect();
    rig.outside("lines", &lines);
    let propose = format!(
        "sed -n \"${{LOOPWRIGHT_TRIAL}}p\" {} > x",
        rig.path("lines").display()
    );
    rig.run_loop(&propose, table.len(), &["--give-up-after", "0"])
        .succeeded();
    let expected: Vec<&str> = table.iter().map(|(_, outcome)| *outcome).collect();
    assert_eq!(outcomes(&rig), expected);
}

#[test]
fn c10_the_right_number_counts() {
    let table = [
        (
            "m=7; next we hope for m: 1",
            "printf 'm=7\\nnext we hope for m: 1\\n'",
        ),
        ("best-m", "printf 'best-m=1\\nm=7\\n'"),
        ("train.m", "printf 'train.m=1\\nm=7\\n'"),
        ("colour", "printf 'm=\\033[32m7\\033[0m\\n'"),
        ("pretty JSON", "printf '{\\n  \"m\": 7\\n}\\n'"),
        ("result file", "echo m=1; echo m=7 > $LOOPWRIGHT_RESULT"),
        (
            "much output",
            "head -c 20000000 /dev/zero | tr '\\0' . | fold -w 100; echo m=7",
        ),
    ];
    for (name, command) in table {
        let rig = Rig::new();
        rig.write("other.sh", &format!("{command}\n"));
        rig.commit("other");
        rig.loopwright(&[
            "baseline",
            "--run",
            "sh other.sh",
            "--metric",
            "m",
            "--goal",
            "min",
        ])
        .succeeded();
        assert_eq!(rig.log()[0]["value"], 7.0, "{name}");
    }
}

#[test]
fn c11_guards_hold_against_incumbent_and_baseline() {
    let rig = Rig::new();
    rig.write("x", "m=10\nsize=100\nacc=0.95\n");
    rig.write("run.sh", "cat x\n");
    rig.commit("guards");
    let propose = r"case $LOOPWRIGHT_TRIAL in
1) printf 'm=9\nsize=104\nacc=0.95\n' > x ;;
2) printf 'm=8\nsize=112\nacc=0.95\n' > x ;;
3) printf 'm=7\nsize=104\nacc=0.89\n' > x ;;
4) printf 'm=8.5\nsize=103\n' > x ;;
esac";
    let guards = ["--guard", "size: max_rise=5%", "--guard", "acc: floor=0.90"];
    rig.run_loop(propose, 4, &guards).succeeded();
    assert_eq!(
        outcomes(&rig),
        ["kept", "guard_failed", "guard_failed", "guard_failed"]
    );
    for (trial, word) in [(2, "size"), (3, "acc"), (4, "acc")] {
        assert!(why(&rig, trial).contains(word), "{}", why(&rig, trial));
    }
}

#[test]
fn c12_reaching_the_target_ends_the_work() {
    let rig = Rig::new();
    rig.write("x", "0.5\n");
    rig.commit("start");
    let done = rig.run_with("echo 1 > x", 5, &["--target", "1"], "max");
    done.succeeded();
    assert_eq!(outcomes(&rig), ["kept"]);
    assert!(done.words().contains("target reached"), "{}", done.words());
}

#[test]
fn c13_touching_the_referee_is_not_measured() {
    let rig = Rig::new();
    rig.write("eval/score.sh", "echo \"m=$(cat x)\"\n");
    rig.write("run.sh", "sh eval/score.sh\n");
    rig.commit("eval");
    let propose = r"case $LOOPWRIGHT_TRIAL in
1) echo 'echo m=1' > eval/score.sh ;;
2) rm eval/score.sh; ln -s ../x eval/score.sh ;;
3) echo 'echo m=1' > eval/score.sh; (sleep 1; git checkout eval/score.sh) > /dev/null 2>&1 & ;;
4) echo 'import os' > json.py ;;
5) echo 8 > x ;;
esac";
    rig.run_loop(propose, 5, &["--protect", "eval"]).succeeded();
    let changed = "harness_changed";
    assert_eq!(outcomes(&rig), [changed, changed, changed, changed, "kept"]);
    assert!(why(&rig, 1).contains("eval/score.sh"));
    assert!(why(&rig, 4).contains("json.py"));

    // A deliberate change of the user's is no cheat: a new segment starts, with a baseline of its own.
    rig.write("eval/score.sh", "echo \"m=$(($(cat x) * 2))\"\n");
    rig.commit("another referee");
    rig.run_loop("echo 7 > x", 1, &["--protect", "eval"])
        .succeeded();
    let log = rig.log();
    let last = &log[log.len() - 1];
    assert_eq!(
        (&last["segment"], &last["outcome"]),
        (&Value::from(2), &Value::from("kept")),
        "{last}"
    );
    assert_eq!(last["against"], 16.0);
}

#[test]
fn c16_hooks_never_make_a_record_lie() {
    let rig = Rig::new();
    rig.hook("pre-commit", "echo 77 > x; git add x");
    rig.run_loop("echo 4 > x", 1, &["--in-place"]).succeeded();
    assert_ne!(outcomes(&rig), ["kept"]);
    assert_eq!(rig.read("x"), "10\n");

    let rig = Rig::new();
    rig.hook("pre-commit", "echo no thanks >&2; exit 1");
    rig.run_loop("echo 4 > x", 1, &["--in-place"]).succeeded();
    assert_eq!(outcomes(&rig), ["failed"]);
    assert!(why(&rig, 1).contains("no thanks"), "{}", why(&rig, 1));
    std::fs::remove_file(rig.repository().join(".git/hooks/pre-commit")).unwrap();
    rig.loopwright(&["adopt", "1"]).succeeded();
    assert_eq!(rig.read("x"), "4\n");

    let rig = Rig::new();
    rig.hook("post-checkout", "exit 1");
    rig.hook("reference-transaction", "exit 1");
    rig.run_loop("echo 4 > x", 1, &[]).succeeded();
    assert_eq!(outcomes(&rig), ["kept"]);
}

#[test]
fn c20_the_user_goes_on_working() {
    let rig = Rig::new();
    let propose = format!(
        r"echo $((10 - LOOPWRIGHT_TRIAL)) > x
cd {repository} || exit 1
case $LOOPWRIGHT_TRIAL in
1) echo mine > other; git add other; git commit -qm other ;;
2) git checkout -qb elsewhere; git gc -q --prune=now; git worktree prune ;;
3) git checkout -q main; git commit -q --amend -m renamed; git reflog expire --expire=now --all; git gc -q --prune=now ;;
esac",
        repository = rig.repository().display()
    );
    rig.run_loop(&propose, 3, &[]).succeeded();
    assert_eq!(outcomes(&rig), ["kept", "kept", "kept"]);
    rig.loopwright(&["verify"]).succeeded();
    rig.loopwright(&["adopt"]).succeeded();
    assert_eq!(
        (rig.read("x"), rig.read("other")),
        ("7\n".to_owned(), "mine\n".to_owned())
    );
}

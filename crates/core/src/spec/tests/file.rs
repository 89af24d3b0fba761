//! Reading `loopwright.toml`: what is understood, and what is said about the rest.

use super::*;
use crate::metric::Real;
use crate::role::OnUnknown;

fn complaints(text: &str) -> Vec<String> {
    let problems = LoopFile::parse("loopwright.toml", text).unwrap_err();
    problems.list().iter().map(ToString::to_string).collect()
}

const WHOLE: &str = r#"
[loop.speed]
kind = "experiment"
run = "sh bench.sh"
metric = "seconds"
goal = "min"
propose = "sh propose.sh"
run_limit = "90s"
propose_limit = 1_200
setup_limit = 0.5
protect = ["tests/**", "bench.sh"]
link = ["data/"]
cache = "target"
setup = "npm ci"
setup_inputs = ["package-lock.json"]
result_file = "result.json"
strict_metric = true
rule = "threshold"
min_delta = 0.5
confirm = true
target = 1
trials = 20
wall_clock = "8h"
give_up_after = 0
grace = "250ms"
max_output = "10 MB"
brief = false
branch = "side"
env = { RUST_LOG = "off" }
env_policy = "clean"
pass_env = ["CUDA_*"]
on_unknown = { proposer = "ask", experiment = "fail" }
in_place = true
allow = {}

[loop.speed.budget]
steps = 0x10
time = "1h30m"
tokens = 2_000_000
money = "12.50 usd"

[[loop.speed.guard]]
metric = "size"
max_rise = "5%"
max_rise_from_baseline = "10%"
floor = 0
ceiling = 100.5

[[loop.speed.guard]]
metric = "acc"
max_drop = 0.01
max_drop_from_baseline = 0.05
"#;

#[test]
fn every_setting_is_understood() {
    let spec = spec(WHOLE);
    let protect: Vec<&str> = spec.protect.iter().map(Pattern::as_str).collect();
    assert_eq!(protect, ["bench.sh", "tests/**"]);
    assert_eq!(spec.link, ["data"]);
    assert_eq!(spec.cache[0].as_str(), "target");
    assert_eq!(
        (spec.run_limit_us, spec.propose_limit_us),
        (90_000_000, 1_200_000_000)
    );
    assert_eq!((spec.setup_limit_us, spec.grace_us), (500_000, 250_000));
    assert_eq!(spec.max_output_bytes, 10_000_000);
    assert_eq!(spec.goal, Goal::Minimize);
    assert_eq!(spec.trials, Some(20));
    assert_eq!(spec.wall_clock_us, Some(28_800_000_000));
    assert_eq!(spec.give_up_after, 0);
    let half = Real::new(0.5).unwrap();
    assert_eq!(
        spec.rule,
        RuleSpec::Threshold {
            min_delta: half,
            confirm: true
        }
    );
    assert_eq!(spec.target, Real::new(1.0).ok());
    assert_eq!(spec.env["RUST_LOG"], "off");
    assert!(spec.passes_variable("CUDA_HOME") && spec.passes_variable("PATH"));
    assert!(!spec.passes_variable("SECRET_TOKEN"));
    assert_eq!(spec.on_unknown.proposer, OnUnknown::Ask);
    assert_eq!(spec.on_unknown.experiment, OnUnknown::Fail);
    assert_eq!(spec.on_unknown.setup, OnUnknown::Retry);
    assert_eq!(spec.budget.steps, Some(16));
    assert_eq!(spec.budget.time_us, Some(5_400_000_000));
    assert_eq!(spec.budget.tokens, Some(2_000_000));
    assert_eq!(spec.budget.money.as_ref().unwrap().to_string(), "12.50 USD");
    let guards: Vec<String> = spec.guards.iter().map(ToString::to_string).collect();
    assert_eq!(
        guards,
        [
            "acc: max_drop=0.01, max_drop_from_baseline=0.05",
            "size: max_rise=5%, max_rise_from_baseline=10%, floor=0, ceiling=100.5",
        ]
    );
    assert!(spec.strict_metric && spec.in_place && !spec.brief);
    assert_eq!(spec.result_file.as_deref(), Some("result.json"));
    assert_eq!(spec.branch, "side");
}

#[test]
fn all_errors_come_at_once_with_place_and_near_misses() {
    let text = r#"
colour = 1
trials = 3

[loop.speed]
trails = 20
run-limit = "5m"
goal = "minn"
confirm = "yes"
grace = "soon"
protect = ["a", 2]
budget = { token = 5, money = 12.5 }
on_unknown = "retry"
allow = { network = true }
env = { A = 1 }

[[loop.speed.guard]]
metric = "size"
max_raise = "5%"
floor = "low"

[[loop.speed.guard]]
metric = "size"

[[loop.speed.guard]]
ceiling = 1

[loop."a b"]
"#;
    let found = complaints(text);
    let expected = [
        "loopwright.toml:2:1: colour: unknown table or setting; the file holds `[loop.NAME]` tables",
        "loopwright.toml:3:1: trials: stands outside any loop; settings belong under a loop: `[loop.NAME]`",
        "loopwright.toml:6:1: loop.speed.trails: unknown setting; did you mean `trials`?",
        "loopwright.toml:7:1: loop.speed.run-limit: unknown setting; did you mean `run_limit`?",
        "loopwright.toml:8:8: loop.speed.goal: `minn` is not one of `min`, `minimize`, `max`, `maximize`; did you mean `min`?",
        "loopwright.toml:9:11: loop.speed.confirm: expected `true` or `false`, found text",
        "loopwright.toml:10:9: loop.speed.grace: `soon` is not a duration: write seconds (`300`) or `250ms`, `90s`, `5m`, `1h30m`, `2d`",
        "loopwright.toml:11:11: loop.speed.protect: expected texts in the list, found a whole number",
        "loopwright.toml:12:12: loop.speed.budget.token: unknown setting; did you mean `tokens`?",
        "loopwright.toml:12:31: loop.speed.budget.money: an amount of money needs its currency: \"12.50 USD\"",
        "loopwright.toml:13:14: loop.speed.on_unknown: expected a table, found text",
        "loopwright.toml:14:11: loop.speed.allow.network: this release knows no such permission",
        "loopwright.toml:15:13: loop.speed.env.A: expected table of texts, found a whole number",
        "loopwright.toml:19:1: loop.speed.guard.max_raise: unknown setting of a guard; did you mean `max_rise`?",
        "loopwright.toml:20:9: loop.speed.guard.floor: `low` is not a plain decimal number",
        "loopwright.toml:23:1: loop.speed.guard: there are two guards of `size`; put the limits into one",
        "loopwright.toml:25:1: loop.speed.guard: the guard names no metric; say which metric it guards: `metric = \"size\"`",
        "loopwright.toml:28:7: loop.a b: a loop can't have this name; use letters, digits, `-`, `_` and `.`",
    ];
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.len(), expected.len(), "{found:#?}");
}

#[test]
fn broken_toml_is_placed_too() {
    let found = complaints("[loop.a]\nrun = \nmetric = \"m\"\ngoal = \"min\n");
    assert_eq!(found.len(), 2, "{found:#?}");
    assert!(found[0].starts_with("loopwright.toml:2:"), "{found:#?}");
    assert!(found[1].starts_with("loopwright.toml:4:"), "{found:#?}");
    let twice = complaints("[loop.a]\nrun = \"a\"\nrun = \"b\"\n");
    assert!(twice[0].starts_with("loopwright.toml:3:1:"), "{twice:#?}");
}

#[test]
fn a_loop_without_a_name_is_told_how_to_have_one() {
    let found = complaints("[loop]\nrun = \"a\"\n");
    assert_eq!(
        found,
        [
            "loopwright.toml:2:1: loop.run: stands outside any loop; give the loop a name: `[loop.NAME]`"
        ]
    );
}

#[test]
fn loops_of_later_kinds_do_not_spoil_the_file() {
    let text = format!("{LEAST}[loop.writer]\nkind = \"agent\"\nactor = \"x\"\n");
    let file = LoopFile::parse("f", &text).unwrap();
    assert!(file.choose(Some("speed")).is_ok());
    let (environment, flags) = (BTreeMap::new(), Flags::new());
    let file = Some(file.choose(Some("writer")).unwrap());
    let layers = Layers {
        name: None,
        pinned: None,
        file,
        environment: &environment,
        flags: &flags,
    };
    let problems = resolve(&layers).unwrap_err().to_string();
    assert!(
        problems.contains("can't drive loops of kind `agent`"),
        "{problems}"
    );
    let file = LoopFile::parse("f", "[loop.a]\nkind = \"exprmnt\"\n")
        .unwrap_err()
        .to_string();
    assert!(file.contains("f:2:8: loop.a.kind"), "{file}");
}

#[test]
fn a_loop_is_chosen_by_name() {
    let file = LoopFile::parse("f", "[loop.a]\n[loop.bench]\n").unwrap();
    assert_eq!(file.choose(Some("a")).unwrap().name, "a");
    let said = |name| file.choose(name).unwrap_err().to_string();
    assert!(said(None).contains("name one: `a`, `bench`"));
    assert!(said(Some("bnech")).contains("did you mean `bench`?"));
    assert!(said(Some("zzzzz")).contains("it has `a`, `bench`"));
    let empty = LoopFile::parse("f", "").unwrap();
    assert!(
        empty
            .choose(None)
            .unwrap_err()
            .to_string()
            .contains("has no loop")
    );
}

//! Layers, origins, and everything that is refused before anything is spent.

use super::*;

fn faults(text: &str) -> Vec<String> {
    let problems = resolved(text).experiment(Purpose::Propose).unwrap_err();
    problems.list().iter().map(ToString::to_string).collect()
}

/// The only fault of a loop that is complete but for this line.
fn fault(line: &str) -> String {
    let text = format!("{LEAST}propose = \"p\"\n{line}\n");
    let found = faults(&text);
    assert_eq!(found.len(), 1, "{line}: {found:#?}");
    found[0].clone()
}

fn by_flags(flags: &[(&str, &str)]) -> Result<Resolved, Problems> {
    let environment = BTreeMap::new();
    let mut given = Flags::new();
    for (flag, value) in flags {
        given.push(*flag, *value);
    }
    let (name, pinned, file) = (None, None, None);
    resolve(&Layers {
        name,
        pinned,
        file,
        environment: &environment,
        flags: &given,
    })
}

#[test]
fn every_default_of_the_table_reads_as_its_type() {
    for setting in SETTINGS {
        if let Some(text) = setting.default {
            let value = Value::parse(setting.kind, text).unwrap().unwrap();
            assert_eq!(value.to_string(), text, "{}", setting.key);
        }
    }
}

#[test]
fn later_layers_win_and_origins_are_remembered() {
    let text =
        format!("{LEAST}trials = 5\ngrace = \"1s\"\nprotect = [\"a\"]\nenv = {{ A = \"1\" }}\n");
    let file = LoopFile::parse("loopwright.toml", &text).unwrap();
    let environment = BTreeMap::from([
        ("LOOPWRIGHT_GRACE".to_owned(), "3s".to_owned()),
        ("LOOPWRIGHT_TRIALS".to_owned(), "7".to_owned()),
        ("LOOPWRIGHT_RUN_LIMIT".to_owned(), String::new()),
        ("LOOPWRIGHT_TRIASL".to_owned(), "7".to_owned()),
        ("LOOPWRIGHT_RESULT".to_owned(), "/x".to_owned()),
        ("GRACE".to_owned(), "4s".to_owned()),
    ]);
    let mut flags = Flags::new();
    for (flag, value) in [
        ("--trials", "9"),
        ("--protect", "b"),
        ("--protect", "c/**"),
        ("--env", "B=x=y"),
        ("--guard", "size max_rise=5%"),
        ("--wall-clock", "none"),
    ] {
        flags.push(flag, value);
    }
    let file = Some(file.choose(None).unwrap());
    let layers = Layers {
        name: None,
        pinned: None,
        file,
        environment: &environment,
        flags: &flags,
    };
    let resolved = resolve(&layers).unwrap();
    let rows = resolved.rows();
    let row = |key: &str| {
        let row = rows.iter().find(|row| row.key == key).unwrap();
        (
            row.value.clone().unwrap_or_default(),
            row.origin.to_string(),
        )
    };
    let pair = |value: &str, origin: &str| (value.to_owned(), origin.to_owned());
    assert_eq!(row("run"), pair("sh bench.sh", "loopwright.toml:2"));
    assert_eq!(row("grace"), pair("3s", "env LOOPWRIGHT_GRACE"));
    assert_eq!(row("trials"), pair("9", "--trials"));
    assert_eq!(row("run_limit"), pair("5m", "default"));
    assert_eq!(row("protect"), pair("[\"b\", \"c/**\"]", "--protect"));
    assert_eq!(row("env.A"), pair("1", "loopwright.toml:8"));
    assert_eq!(row("env.B"), pair("x=y", "--env"));
    assert_eq!(row("guard.size"), pair("size: max_rise=5%", "--guard"));
    assert_eq!(row("wall_clock"), pair("", "--wall-clock"));
    assert_eq!(rows.iter().filter(|row| row.key == "target").count(), 1);
    assert_eq!(resolved.notices.len(), 1, "{:?}", resolved.notices);
    assert!(resolved.notices[0].contains("did you mean `LOOPWRIGHT_TRIALS`?"));
    let text = render_rows(&rows);
    assert!(
        text.contains("loopwright.toml:2\n") && text.contains("(not set)"),
        "{text}"
    );
    let json = serde_json::to_value(&rows).unwrap();
    assert_eq!(json[1]["origin"]["from"], "file");
    assert_eq!(json[1]["origin"]["line"], 2);
}

#[test]
fn one_line_of_flags_is_a_whole_loop() {
    let resolved = by_flags(&[
        ("--run", "sh run.sh"),
        ("--metric", "m"),
        ("--goal", "minimize"),
        ("--propose", "echo 5 > x"),
        ("--trials", "3"),
    ])
    .unwrap();
    let spec = resolved.experiment(Purpose::Propose).unwrap();
    assert_eq!(
        (spec.name.as_str(), spec.branch.as_str()),
        (DEFAULT_LOOP_NAME, "main")
    );
    assert_eq!(spec.trials, Some(3));
    assert!(resolved.notices.is_empty());
}

#[test]
fn what_is_missing_is_named_with_its_flag() {
    let problems = by_flags(&[])
        .unwrap()
        .experiment(Purpose::Propose)
        .unwrap_err()
        .to_string();
    for flag in ["--run", "--metric", "--goal", "--propose"] {
        assert!(problems.contains(flag), "{problems}");
    }
    let problems = by_flags(&[])
        .unwrap()
        .experiment(Purpose::Measure)
        .unwrap_err();
    assert_eq!(problems.list().len(), 3, "{problems}");
}

#[test]
fn bad_flags_are_named() {
    let problems = by_flags(&[
        ("--trials", "many"),
        ("--env", "A"),
        ("--guard", "size max_raise=1"),
        ("--mertic", "m"),
        ("--goal", "up"),
    ])
    .unwrap_err()
    .to_string();
    for expected in [
        "--trials: trials: `many` is not a whole number",
        "--env: env: `A` has no `=`: write `--env NAME=VALUE`",
        "--guard: guard: unknown limit `max_raise` of a guard; did you mean `max_rise`?",
        "--mertic: unknown flag; did you mean `--metric`?",
        "--goal: goal: `up` is not one of",
    ] {
        assert!(problems.contains(expected), "{expected}\n{problems}");
    }
}

#[test]
fn contradictions_and_nonsense_are_refused() {
    for (line, expected) in [
        (
            "min_delta = -1",
            "loopwright.toml:6:1: loop.speed.min_delta: is negative",
        ),
        ("trials = 0", "leaves nothing to do"),
        ("run_limit = 0", "nothing can end in no time"),
        ("run_limit = \"none\"", "can't be `none`"),
        ("give_up_after = \"none\"", "can't be `none`"),
        ("protect = [\"/etc\"]", "is absolute"),
        ("protect = [\"~/x\"]", "begins with `~`"),
        ("protect = [\"a/../b\"]", "has a `..` part"),
        ("link = [\"../data\"]", "has a `..` part"),
        ("link = [\"data/*\"]", "is a pattern"),
        ("link = [\".git\"]", "names `.git`"),
        ("cache = [\"**\"]", "covers the whole tree"),
        (
            "cache = [\"a\"]\nprotect = [\"a/b\"]",
            "`a` overlaps `a/b` of `protect`",
        ),
        (
            "cache = [\"**/x\"]\nlink = [\"a/x\"]",
            "linked inputs are read-only",
        ),
        (
            "protect = [\"data/**\"]\nlink = [\"data\"]",
            "not in git and read-only already",
        ),
        (
            "result_file = \"out/r.json\"\ncache = [\"out\"]",
            "would count for the next",
        ),
        ("result_file = \"/tmp/r\"", "is absolute"),
        ("setup_inputs = [\"a\"]", "there is no `setup`"),
        ("setup = \" \"", "is blank"),
        ("branch = \"a/b\"", "can't name a branch"),
        (
            "env = { \"A=B\" = \"1\" }",
            "can't name an environment variable",
        ),
        (
            "env = { LOOPWRIGHT_X = \"1\" }",
            "given by loopwright itself",
        ),
        ("pass_env = [\"A*B\"]", "only a closing `*`"),
        ("guard = { metric = \"size\" }", "has no limit"),
        ("guard = { metric = \" \", floor = 1 }", "must not be blank"),
        (
            "guard = { metric = \"s\", floor = 2, ceiling = 1 }",
            "floor 2 above its ceiling 1",
        ),
        ("budget = { money = \"0 USD\" }", "is 0"),
        ("budget = { steps = 0 }", "is 0"),
        ("budget = { time = 0 }", "is 0"),
        ("budget = { tokens = 0 }", "is 0"),
        ("trials = 0", "is 0"),
        ("wall_clock = 0", "is 0"),
        ("run_limit = 0", "is 0"),
        ("propose_limit = 0", "is 0"),
        ("setup_limit = \"0s\"", "is 0"),
        ("max_output = 0", "no output would be recorded"),
        ("max_output = \"0 MB\"", "no output would be recorded"),
        ("min_delta = -1", "is negative"),
    ] {
        let found = fault(line);
        assert!(found.contains(expected), "{line}: {found}");
    }
    assert_eq!(
        faults("[loop.a]\nrun = \"\"\nmetric = \" \"\ntarget = 1\n").len(),
        4
    );
    let text = format!("{LEAST}target = inf\n");
    assert!(LoopFile::parse("f", &text).is_err());
}

#[test]
fn no_numeric_setting_takes_what_is_no_number_or_too_large() {
    let absurd = ["", "nan", "inf", "-inf", "1e999", "0x10", "1_000", "١"];
    for setting in SETTINGS {
        let refused: &[&str] = match setting.kind {
            ValueType::Number | ValueType::Graded(_) => &[],
            ValueType::Amount => &["-1", "-5%", "%", "nan%"],
            ValueType::Count | ValueType::Duration | ValueType::Size => {
                &["-1", "99999999999999999999", "9007199254740992d"]
            }
            ValueType::Money => &["-1 USD", "99999999999999999999 USD", "nan USD", "1"],
            _ => continue,
        };
        for text in absurd.iter().chain(refused) {
            let read = Value::parse(setting.kind, text);
            assert!(read.is_err(), "{} = {text:?}: {read:?}", setting.key);
        }
    }
    let large = Value::parse(ValueType::Count, "99999999999999999999").unwrap_err();
    assert!(large.contains("is too large"), "{large}");
}

#[test]
fn the_implied_rule_is_said() {
    let notices = resolved(&format!("{LEAST}min_delta = 1\nconfirm = true\n")).notices;
    assert_eq!(
        notices,
        ["`min_delta` and `confirm` are set without `rule`: the threshold rule decides"]
    );
    assert!(
        resolved(&format!("{LEAST}rule = \"threshold\"\nconfirm = true\n"))
            .notices
            .is_empty()
    );
}

#[test]
fn names_to_pass_on_where_all_are_passed_are_noticed() {
    let notices = resolved(&format!("{LEAST}pass_env = [\"A\"]\n")).notices;
    assert_eq!(
        notices,
        ["`pass_env` changes nothing while `env_policy` is `inherit`"]
    );
}

#[test]
fn the_specification_file_is_always_protected() {
    let spec = spec(LEAST);
    assert!(spec.protected().matches(SPEC_FILE_NAME.as_bytes()));
    assert!(spec.protect_set().is_empty());
}

#[test]
fn the_reference_names_every_setting() {
    let page = configuration_markdown();
    for setting in SETTINGS {
        assert!(
            page.contains(&format!("### `{}`\n", setting.key)),
            "{}",
            setting.key
        );
        assert!(
            setting
                .flag
                .is_none_or(|flag| page.contains(&format!("`{flag}`")))
        );
    }
    // Names in the table are unique, or one layer would hide another.
    for (index, setting) in SETTINGS.iter().enumerate() {
        for other in &SETTINGS[index + 1..] {
            assert_ne!(setting.key, other.key);
            assert!(
                setting.flag.is_none() || setting.flag != other.flag,
                "{:?}",
                setting.flag
            );
            assert!(
                setting.env.is_none() || setting.env != other.env,
                "{:?}",
                setting.env
            );
        }
    }
    // Examples of the reference are real ones.
    for setting in SETTINGS.iter().filter(|setting| setting.key != "guard") {
        let text = format!("[loop.x]\n{} = {}\n", setting.key, setting.example);
        LoopFile::parse("example", &text).unwrap();
    }
}

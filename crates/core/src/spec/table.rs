//! The table of settings: each is declared here and nowhere else.
//!
//! Reading the file, the environment and the command line, `config show`, the reference page and
//! the question what a change means (`drift`) all go by this table.

use super::setting::{Class, Setting};
use super::value::ValueType;
use crate::usage::Dimension;

const GOALS: &[(&str, &str)] = &[
    ("min", "minimize"),
    ("minimize", "minimize"),
    ("max", "maximize"),
    ("maximize", "maximize"),
];
const KINDS: &[(&str, &str)] = &[
    ("experiment", "experiment"),
    ("agent", "agent"),
    ("search", "search"),
];
const RULES: &[(&str, &str)] = &[("keep", "keep"), ("threshold", "threshold")];
const DOUBTS: &[(&str, &str)] = &[("strict", "0.02"), ("normal", "0.1"), ("quick", "0.4")];
const ENV_POLICIES: &[(&str, &str)] = &[("inherit", "inherit"), ("clean", "clean")];
const ON_UNKNOWN: &[(&str, &str)] = &[("retry", "retry"), ("ask", "ask"), ("fail", "fail")];

/// Every setting of an experiment loop, in the order of the reference page.
pub const SETTINGS: &[Setting] = &[
    file_only(
        "kind",
        ValueType::Choice(KINDS),
        Some("experiment"),
        Class::Identity,
        "What kind of loop this is. This release drives `experiment` loops.",
        "\"experiment\"",
    ),
    by_flag(
        "run",
        "--run",
        ValueType::Command,
        None,
        Class::Harness,
        "The measuring command, a line for `sh` (one of plain words is started without it), run in a \
         clean checkout of the candidate. It prints a line `name=value`, or writes its numbers to the file named by `$LOOPWRIGHT_RESULT`.",
        "\"sh bench.sh\"",
    ),
    by_flag(
        "metric",
        "--metric",
        ValueType::Text,
        None,
        Class::Identity,
        "The name of the number to improve.",
        "\"seconds\"",
    ),
    by_flag(
        "goal",
        "--goal",
        ValueType::Choice(GOALS),
        None,
        Class::Identity,
        "Whether less or more is better.",
        "\"min\"",
    ),
    by_flag(
        "propose",
        "--propose",
        ValueType::Command,
        None,
        Class::Free,
        "The command that changes the project, a line for `sh`, run in a private work tree once \
         per trial.",
        "\"sh propose.sh\"",
    ),
    by_flag(
        "setup",
        "--setup",
        ValueType::Command,
        None,
        Class::Harness,
        "A command that fetches and builds what the measurement needs; not measured, run in each \
         arm when one of `setup_inputs` changed.",
        "\"npm ci\"",
    ),
    by_flag(
        "setup_inputs",
        "--setup-input",
        ValueType::List,
        None,
        Class::Harness,
        "Patterns of the files `setup` depends on; without any, `setup` runs after every change \
         of the tree.",
        "[\"package-lock.json\"]",
    ),
    by_both(
        "run_limit",
        "--run-limit",
        "LOOPWRIGHT_RUN_LIMIT",
        ValueType::Duration,
        Some("5m"),
        Class::Harness,
        "The longest a measurement may take; everything it started is ended then.",
        "\"5m\"",
    ),
    by_both(
        "propose_limit",
        "--propose-limit",
        "LOOPWRIGHT_PROPOSE_LIMIT",
        ValueType::Duration,
        Some("30m"),
        Class::Free,
        "The longest a proposal may take.",
        "\"30m\"",
    ),
    by_both(
        "setup_limit",
        "--setup-limit",
        "LOOPWRIGHT_SETUP_LIMIT",
        ValueType::Duration,
        Some("30m"),
        Class::Free,
        "The longest the setup command may take.",
        "\"30m\"",
    ),
    by_both(
        "grace",
        "--grace",
        "LOOPWRIGHT_GRACE",
        ValueType::Duration,
        Some("2s"),
        Class::Free,
        "How long a command has between being asked to end and being ended.",
        "\"2s\"",
    ),
    by_both(
        "max_output",
        "--max-output",
        "LOOPWRIGHT_MAX_OUTPUT",
        ValueType::Size,
        Some("64MiB"),
        Class::Free,
        "A command's whole output is recorded up to this size, only its head and tail beyond.",
        "\"64MiB\"",
    ),
    by_flag(
        "protect",
        "--protect",
        ValueType::List,
        None,
        Class::Harness,
        "Patterns of the files that come from the baseline in every measurement; a proposal that \
         changes one is not measured. `loopwright.toml` is always protected.",
        "[\"bench.sh\", \"tests/**\"]",
    ),
    by_flag(
        "link",
        "--link",
        ValueType::List,
        None,
        Class::Harness,
        "Inputs git does not carry, by path: linked into every checkout, read-only where commands get a namespace of their own (doctor says), and watched.",
        "[\"data\"]",
    ),
    by_flag(
        "cache",
        "--cache",
        ValueType::List,
        None,
        Class::Harness,
        "Patterns of what measurements may keep from one to the next, per arm. Anything else that \
         is not in the tree is deleted before each measurement.",
        "[\"target\"]",
    ),
    by_flag(
        "result_file",
        "--result-file",
        ValueType::Text,
        None,
        Class::Harness,
        "The file of the checkout the measuring command writes its numbers to. \
         `$LOOPWRIGHT_RESULT` names it. Only what it says counts, whatever the output says. Without this \
         setting it is a private file outside the checkout, and where it and the output say \
         different numbers, neither counts.",
        "\"result.json\"",
    ),
    by_flag(
        "strict_metric",
        "--strict-metric",
        ValueType::Switch,
        Some("false"),
        Class::Harness,
        "Refuse a measurement that says different values of the metric, in its output, its result \
         file or the two together, instead of taking the last.",
        "true",
    ),
    by_flag(
        "env",
        "--env",
        ValueType::Entries,
        None,
        Class::Harness,
        "Environment variables for every command of the loop; as a flag, `--env NAME=VALUE`.",
        "{ RUST_LOG = \"off\" }",
    ),
    by_flag(
        "env_policy",
        "--env-policy",
        ValueType::Choice(ENV_POLICIES),
        Some("inherit"),
        Class::Harness,
        "`inherit` gives commands the environment loopwright was started with, `clean` only the \
         basics (`PATH`, `HOME`, `LANG` …), `pass_env` and `env`.",
        "\"clean\"",
    ),
    by_flag(
        "pass_env",
        "--pass-env",
        ValueType::List,
        None,
        Class::Harness,
        "Names of variables to hand on under `env_policy = \"clean\"`; a closing `*` means all \
         that begin so.",
        "[\"CUDA_*\"]",
    ),
    by_flag(
        "guard",
        "--guard",
        ValueType::Guards,
        None,
        Class::Harness,
        "Secondary metrics that must hold, each `[[loop.NAME.guard]]` with `metric` and limits: \
         `max_rise`, `max_drop` (against the incumbent, `5%` or in the metric's unit), \
         `max_rise_from_baseline`, `max_drop_from_baseline`, `floor`, `ceiling`. As a flag, \
         `--guard 'size: max_rise=5%, ceiling=100'`.",
        "metric = \"size\", max_rise = \"5%\"",
    ),
    by_flag(
        "rule",
        "--rule",
        ValueType::Choice(RULES),
        Some("keep"),
        Class::Free,
        "How it is decided whether a candidate is kept. `keep`: a first run that looks promising is \
         followed by back-to-back runs of candidate and incumbent, until it is clearly better, \
         clearly not, or out of pairs. `threshold`: its value beats the incumbent's by more than \
         `min_delta`. `min_delta` or `confirm` without `rule` mean the threshold rule.",
        "\"keep\"",
    ),
    by_flag(
        "doubt",
        "--doubt",
        ValueType::Graded(DOUBTS),
        Some("0.1"),
        Class::Free,
        "How many useless changes the keep rule may keep, on average, in 60 proposals of which none \
         helps; above 0, at most 1. Less doubt takes more runs. Running again refills nothing, and \
         branches share what is left.",
        "\"normal\"",
    ),
    by_flag(
        "worth",
        "--worth",
        ValueType::Amount,
        Some("0"),
        Class::Free,
        "The smallest improvement that the keep rule keeps, in the metric's unit or in percent.",
        "\"2%\"",
    ),
    by_flag(
        "max_pairs",
        "--max-pairs",
        ValueType::Count,
        Some("24"),
        Class::Free,
        "The most pairs of runs, one of the candidate and one of the incumbent, that the keep rule \
         gives to one candidate; 1 to 100.",
        "16",
    ),
    by_flag(
        "noise",
        "--noise",
        ValueType::Noise,
        Some("auto"),
        Class::Free,
        "What is known of the metric's noise: `auto` lets the keep rule find out, `none` says that \
         the metric repeats exactly (then one run decides), and readings of one tree are taken into \
         account as they are.",
        "[9.9, 10.2, 10.0]",
    ),
    by_flag(
        "ratio",
        "--ratio",
        ValueType::Switch,
        Some("false"),
        Class::Free,
        "Let the keep rule judge proportions, not differences: for seconds and bytes, whose noise \
         shrinks with them. The metric has to be above zero. A change makes the loop learn the noise \
         anew.",
        "true",
    ),
    by_flag(
        "coarse",
        "--coarse",
        ValueType::Switch,
        Some("false"),
        Class::Free,
        "The metric takes few values (counts, accuracies, few digits): the keep rule believes only \
         four equal repeats that it has no noise.",
        "true",
    ),
    by_flag(
        "closing",
        "--closing",
        ValueType::Count,
        Some("6"),
        Class::Free,
        "How many pairs of runs, where the branch started against where it arrived, the keep rule \
         takes at the end of an invocation that kept something; what they show is what the loop \
         claims. At most 100; 0 claims nothing.",
        "6",
    ),
    by_flag(
        "max_runs",
        "--max-runs",
        ValueType::Count,
        None,
        Class::Free,
        "The most measurements over the loop's whole life, the baseline included. The runs of a \
         closing check are kept back from it; a comparison that it cuts short is undecided.",
        "200",
    ),
    by_flag(
        "min_delta",
        "--min-delta",
        ValueType::Number,
        Some("0"),
        Class::Free,
        "The improvement a candidate must exceed under the threshold rule, in the metric's unit.",
        "0.5",
    ),
    by_flag(
        "confirm",
        "--confirm",
        ValueType::Switch,
        Some("false"),
        Class::Free,
        "Measure a candidate again before it is kept under the threshold rule; the worse value \
         counts.",
        "true",
    ),
    by_flag(
        "target",
        "--target",
        ValueType::Number,
        None,
        Class::Free,
        "End the run when this value is reached and confirmed once.",
        "1.0",
    ),
    by_both(
        "trials",
        "--trials",
        "LOOPWRIGHT_TRIALS",
        ValueType::Count,
        Some("1"),
        Class::Free,
        "The most trials of one invocation; `none` for no limit.",
        "20",
    ),
    by_both(
        "wall_clock",
        "--wall-clock",
        "LOOPWRIGHT_WALL_CLOCK",
        ValueType::Duration,
        None,
        Class::Free,
        "The longest one invocation may last; no trial starts after it.",
        "\"8h\"",
    ),
    by_both(
        "give_up_after",
        "--give-up-after",
        "LOOPWRIGHT_GIVE_UP_AFTER",
        ValueType::Count,
        Some("10"),
        Class::Free,
        "Stop after this many trials in a row, in one invocation, that came to no judgement: \
         failed, timed out, without a usable metric, unchanged, a duplicate, a harness changed … \
         A trial that was measured and judged (kept, simplified, reverted, undecided, guard or \
         holdout failed) ends the row. 0 means never.",
        "10",
    ),
    by_both(
        "budget.steps",
        "--budget-steps",
        "LOOPWRIGHT_BUDGET_STEPS",
        ValueType::Count,
        None,
        Class::Free,
        "The most proposals over the loop's whole life; measurements, baselines and retries don't \
         count.",
        "500",
    ),
    by_both(
        "budget.time",
        "--budget-time",
        "LOOPWRIGHT_BUDGET_TIME",
        ValueType::Duration,
        None,
        Class::Free,
        "The most time its commands may take together over the loop's whole life.",
        "\"24h\"",
    ),
    by_both(
        "budget.tokens",
        "--budget-tokens",
        "LOOPWRIGHT_BUDGET_TOKENS",
        ValueType::Count,
        None,
        Class::Free,
        "The most model tokens over the loop's whole life. Refused in this release: nothing can say \
         yet how many a proposal used.",
        "2000000",
    ),
    by_both(
        "budget.money",
        "--budget-money",
        "LOOPWRIGHT_BUDGET_MONEY",
        ValueType::Money,
        None,
        Class::Free,
        "The most money over the loop's whole life. Refused in this release: nothing can say yet \
         what a proposal cost.",
        "\"12.50 USD\"",
    ),
    by_flag(
        "brief",
        "--brief",
        ValueType::Switch,
        Some("true"),
        Class::Free,
        "Tell the proposer what was tried before and why it was kept or not.",
        "false",
    ),
    by_flag(
        "branch",
        "--branch",
        ValueType::Text,
        Some("main"),
        Class::Free,
        "The line of work inside the loop; its kept commits go to the git branch \
         `loopwright/LOOP/BRANCH`.",
        "\"main\"",
    ),
    by_flag(
        "in_place",
        "--in-place",
        ValueType::Switch,
        Some("false"),
        Class::Harness,
        "Work in the checkout itself and move its branch, instead of working beside it. A commit with \
         your hooks may take as long as a measurement.",
        "true",
    ),
    file_only(
        "on_unknown.proposer",
        ValueType::Choice(ON_UNKNOWN),
        Some("retry"),
        Class::Free,
        "What to do about a proposal whose outcome was lost in a crash: do it again, ask a \
         person (the run ends and waits for `loopwright resume --unknown`), or let the trial fail.",
        "\"retry\"",
    ),
    file_only(
        "on_unknown.experiment",
        ValueType::Choice(ON_UNKNOWN),
        Some("retry"),
        Class::Free,
        "The same for a measurement.",
        "\"retry\"",
    ),
    file_only(
        "on_unknown.setup",
        ValueType::Choice(ON_UNKNOWN),
        Some("retry"),
        Class::Free,
        "The same for the setup command, which is a part of the measurement: of the two settings \
         the more careful one holds (asking before failing before doing it again).",
        "\"retry\"",
    ),
];

/// Tables of a loop that have no setting yet in this release: they may be written, empty.
pub(crate) const RESERVED_TABLES: [&str; 1] = ["allow"];

/// The setting a key belongs to: `run`, `budget.tokens`, and `env` for `env.RUST_LOG`.
pub fn setting(key: &str) -> Option<&'static Setting> {
    let exact = SETTINGS
        .iter()
        .find(|setting| setting.key == key && !key.is_empty());
    exact.or_else(|| {
        let (table, _) = key.split_once('.')?;
        SETTINGS
            .iter()
            .find(|setting| setting.is_table() && setting.key == table)
    })
}

/// The setting that limits one dimension of a loop's budget.
pub fn budget_setting(dimension: Dimension) -> Option<&'static Setting> {
    match dimension {
        Dimension::Steps => setting("budget.steps"),
        Dimension::Time => setting("budget.time"),
        Dimension::Tokens => setting("budget.tokens"),
        Dimension::Money => setting("budget.money"),
        // An invocation's wall clock is no budget; the run's has no setting in an experiment loop.
        Dimension::Wall => None,
    }
}

/// The setting a flag (with its dashes) stands for.
pub fn setting_by_flag(flag: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.flag == Some(flag))
}

/// The setting an environment variable stands for.
pub fn setting_by_env(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.env == Some(name))
}

const fn file_only(
    key: &'static str,
    kind: ValueType,
    default: Option<&'static str>,
    class: Class,
    doc: &'static str,
    example: &'static str,
) -> Setting {
    Setting {
        key,
        flag: None,
        env: None,
        kind,
        default,
        class,
        doc,
        example,
        since: "0.1.0",
    }
}

const fn by_flag(
    key: &'static str,
    flag: &'static str,
    kind: ValueType,
    default: Option<&'static str>,
    class: Class,
    doc: &'static str,
    example: &'static str,
) -> Setting {
    Setting {
        flag: Some(flag),
        ..file_only(key, kind, default, class, doc, example)
    }
}

#[allow(
    clippy::too_many_arguments,
    reason = "a row of the table, named by its columns"
)]
const fn by_both(
    key: &'static str,
    flag: &'static str,
    env: &'static str,
    kind: ValueType,
    default: Option<&'static str>,
    class: Class,
    doc: &'static str,
    example: &'static str,
) -> Setting {
    Setting {
        env: Some(env),
        ..by_flag(key, flag, kind, default, class, doc, example)
    }
}

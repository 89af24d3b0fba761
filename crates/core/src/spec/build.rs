//! From resolved settings to a checked [`ExperimentSpec`]: everything that is wrong, at once.

use std::collections::BTreeMap;

use crate::guard::GuardSpec;
use crate::metric::{MetricName, Real};
use crate::role::OnUnknown;

use super::experiment::{
    BudgetSpec, EXPERIMENT_SCHEMA, EnvPolicy, ExperimentSpec, Goal, OnUnknownSpec,
};
use super::file::is_plain_name;
use super::overlap::overlap_faults;
use super::paths::{relative_path_fault, sorted};
use super::pattern::Pattern;
use super::problem::{Origin, Problem, Problems, unless};
use super::resolve::{ENV_PREFIX, Resolved};
use super::table::setting;
use super::units::Money;
use super::value::Value;

/// What the specification is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Measuring only: `baseline`, `noise`, `doctor`.
    Measure,
    /// Trials: a proposer is needed too.
    Propose,
}

impl Resolved {
    /// The specification, or everything that is wrong with it.
    pub fn experiment(&self, purpose: Purpose) -> Result<ExperimentSpec, Problems> {
        let mut builder = Builder {
            resolved: self,
            problems: Vec::new(),
        };
        let spec = builder.spec(purpose);
        for (key, message) in overlap_faults(&spec) {
            builder.fault(key, message);
        }
        unless(builder.problems, spec)
    }
}

pub(super) struct Builder<'a> {
    pub(super) resolved: &'a Resolved,
    problems: Vec<Problem>,
}

impl Builder<'_> {
    fn spec(&mut self, purpose: Purpose) -> ExperimentSpec {
        if !is_plain_name(&self.resolved.name) {
            let message = format!("`{}` can't name a loop", self.resolved.name);
            let help = "use letters, digits, `-`, `_` and `.`";
            self.problems
                .push(Problem::new(Origin::Default, "", message).with_help(help));
        }
        let propose = self.command("propose");
        if purpose == Purpose::Propose && propose.is_none() {
            self.missing("propose");
        }
        let setup = self.command("setup");
        let setup_inputs = self.patterns("setup_inputs");
        if setup.is_none() && !setup_inputs.is_empty() {
            self.fault(
                "setup_inputs",
                "is set, but there is no `setup` they belong to",
            );
        }
        let goal = self.goal();
        ExperimentSpec {
            schema: EXPERIMENT_SCHEMA,
            name: self.resolved.name.clone(),
            run: self.required_command("run"),
            metric: self.metric(),
            goal,
            propose,
            setup,
            setup_inputs,
            run_limit_us: self.limit("run_limit"),
            propose_limit_us: self.limit("propose_limit"),
            setup_limit_us: self.limit("setup_limit"),
            grace_us: self.needed("grace"),
            max_output_bytes: self.not_zero("max_output", "is 0: no output would be recorded"),
            protect: self.patterns("protect"),
            link: self.links(),
            cache: self.cache(),
            result_file: self.result_file(),
            strict_metric: self.switch("strict_metric"),
            env: self.env(),
            env_policy: match self.text("env_policy").as_deref() {
                Some("clean") => EnvPolicy::Clean,
                _ => EnvPolicy::Inherit,
            },
            pass_env: self.pass_env(),
            guards: self.guards(),
            rule: self.rule(goal),
            target: self.number("target"),
            max_runs: self.positive("max_runs"),
            trials: self.positive("trials"),
            wall_clock_us: self.positive("wall_clock"),
            give_up_after: self.needed("give_up_after"),
            budget: BudgetSpec {
                steps: self.positive("budget.steps"),
                time_us: self.positive("budget.time"),
                tokens: self.positive("budget.tokens"),
                money: self.money(),
            },
            brief: self.switch("brief"),
            branch: self.branch(),
            in_place: self.switch("in_place"),
            on_unknown: OnUnknownSpec {
                proposer: self.on_unknown("on_unknown.proposer"),
                experiment: self.on_unknown("on_unknown.experiment"),
                setup: self.on_unknown("on_unknown.setup"),
            },
        }
    }

    pub(super) fn fault(&mut self, key: &str, message: impl std::fmt::Display) {
        let origin = self.resolved.origin(key);
        let place = match &origin {
            Origin::File { .. } => format!("loop.{}.{key}", self.resolved.name),
            _ => key.to_owned(),
        };
        self.problems.push(Problem::new(origin, place, message));
    }

    fn missing(&mut self, key: &str) {
        let declared = setting(key);
        let flag = declared
            .and_then(|setting| setting.flag)
            .unwrap_or_default();
        let example = declared.map_or("", |setting| setting.example);
        let help = format!(
            "give `{flag} {}` or write `{key} = {example}` in loopwright.toml",
            example.replace('"', "'"),
        );
        self.missing_with(key, help);
    }

    fn missing_with(&mut self, key: &str, help: String) {
        let origin = self.resolved.origin(key);
        self.problems
            .push(Problem::new(origin, key, "is not set").with_help(help));
    }

    pub(super) fn text(&self, key: &str) -> Option<String> {
        match self.resolved.value(key) {
            Some(Value::Text(text)) => Some(text.clone()),
            _ => None,
        }
    }

    /// A command that isn't blank; a blank one is a fault.
    fn command(&mut self, key: &str) -> Option<String> {
        let text = self.text(key)?;
        if text.trim().is_empty() {
            self.fault(key, "is blank");
        } else if text.contains('\0') {
            self.fault(key, "holds a null character");
        }
        Some(text)
    }

    fn required_command(&mut self, key: &str) -> String {
        let command = self.command(key);
        if command.is_none() {
            self.missing(key);
        }
        command.unwrap_or_default()
    }

    fn metric(&mut self) -> String {
        let Some(metric) = self.text("metric") else {
            self.missing("metric");
            return String::new();
        };
        if let Err(fault) = MetricName::new(metric.as_str()) {
            self.fault("metric", fault);
        }
        metric
    }

    fn goal(&mut self) -> Goal {
        match self.text("goal").as_deref() {
            Some("maximize") => Goal::Maximize,
            Some(_) => Goal::Minimize,
            None => {
                let help = "say which is better, less or more: `--goal min` or `--goal max`";
                self.missing_with("goal", help.to_owned());
                Goal::Minimize
            }
        }
    }

    /// A count, a duration or a size.
    pub(super) fn whole(&self, key: &str) -> Option<u64> {
        match self.resolved.value(key) {
            Some(Value::DurationUs(number) | Value::Count(number) | Value::Bytes(number)) => {
                Some(*number)
            }
            _ => None,
        }
    }

    /// A number that may be left out, but not be 0.
    fn positive(&mut self, key: &str) -> Option<u64> {
        let number = self.whole(key)?;
        if number == 0 {
            self.fault(
                key,
                "is 0, which leaves nothing to do; leave it out or write `none` for no limit",
            );
        }
        Some(number)
    }

    /// A time limit.
    fn limit(&mut self, key: &str) -> u64 {
        self.not_zero(key, "is 0: nothing can end in no time")
    }

    /// A number that can't be left out, nor be 0.
    fn not_zero(&mut self, key: &str, why: &str) -> u64 {
        if self.whole(key) == Some(0) {
            self.fault(key, why);
        }
        self.needed(key)
    }

    pub(super) fn needed(&mut self, key: &str) -> u64 {
        let number = self.whole(key);
        if number.is_none() {
            self.fault(key, "can't be `none`");
        }
        number.unwrap_or_default()
    }

    pub(super) fn number(&self, key: &str) -> Option<Real> {
        match self.resolved.value(key) {
            Some(Value::Number(number)) => Some(*number),
            _ => None,
        }
    }

    pub(super) fn switch(&mut self, key: &str) -> bool {
        if let Some(Value::Switch(on)) = self.resolved.value(key) {
            return *on;
        }
        self.fault(key, "must be `true` or `false`");
        false
    }

    fn list(&self, key: &str) -> Vec<String> {
        match self.resolved.value(key) {
            Some(Value::List(items)) => sorted(items.clone()),
            _ => Vec::new(),
        }
    }

    fn patterns(&mut self, key: &str) -> Vec<Pattern> {
        let mut patterns = Vec::new();
        for text in self.list(key) {
            match Pattern::new(&text) {
                Ok(pattern) => patterns.push(pattern),
                Err(error) => self.fault(key, error),
            }
        }
        patterns
    }

    fn cache(&mut self) -> Vec<Pattern> {
        let patterns = self.patterns("cache");
        for pattern in &patterns {
            // Two unlike paths: only what covers everything covers both.
            if pattern.matches(b"a") && pattern.matches(b"z/.z") {
                let message = format!("`{pattern}` covers the whole tree: name what may be kept");
                self.fault("cache", message);
            }
        }
        patterns
    }

    fn links(&mut self) -> Vec<String> {
        let mut links = Vec::new();
        for text in self.list("link") {
            if let Some(fault) = relative_path_fault(&text) {
                self.fault("link", format!("`{text}` {fault}"));
            }
            links.push(text.trim_end_matches('/').to_owned());
        }
        sorted(links)
    }

    fn result_file(&mut self) -> Option<String> {
        let text = self.text("result_file")?;
        if let Some(fault) = relative_path_fault(&text) {
            self.fault("result_file", format!("`{text}` {fault}"));
        }
        Some(text)
    }

    fn env(&mut self) -> BTreeMap<String, String> {
        let mut variables = BTreeMap::new();
        for (key, located) in &self.resolved.entries {
            let (Some(name), Some(Value::Text(text))) = (key.strip_prefix("env."), &located.value)
            else {
                continue;
            };
            if name.is_empty() || name.contains(['=', '\0']) {
                self.fault(key, "can't name an environment variable");
            } else if name.starts_with(ENV_PREFIX) {
                self.fault(
                    key,
                    format!("names beginning with `{ENV_PREFIX}` are given by loopwright itself"),
                );
            } else if text.contains('\0') {
                self.fault(key, "holds a null character");
            }
            variables.insert(name.to_owned(), text.clone());
        }
        variables
    }

    fn pass_env(&mut self) -> Vec<String> {
        let names = self.list("pass_env");
        for name in &names {
            let stem = name.strip_suffix('*').unwrap_or(name);
            if name.is_empty() || stem.contains(['=', '*', '\0']) {
                let message =
                    format!("`{name}` is no variable's name; only a closing `*` stands for more");
                self.fault("pass_env", message);
            }
        }
        names
    }

    fn guards(&mut self) -> Vec<GuardSpec> {
        let mut guards = Vec::new();
        for (key, located) in &self.resolved.entries {
            let Some(Value::Guard(guard)) = &located.value else {
                continue;
            };
            if let Err(fault) = MetricName::new(guard.metric.as_str()) {
                self.fault(key, fault);
            }
            for fault in guard.faults() {
                self.fault(key, fault);
            }
            guards.push(guard.clone());
        }
        guards
    }

    fn money(&mut self) -> Option<Money> {
        let Some(Value::Money(money)) = self.resolved.value("budget.money") else {
            return None;
        };
        if money.micros == 0 {
            let why = "is 0; leave it out or write `none` for no limit";
            self.fault("budget.money", why);
        }
        Some(money.clone())
    }

    fn branch(&mut self) -> String {
        let branch = self.text("branch").unwrap_or_default();
        if !is_plain_name(&branch) {
            let message =
                format!("`{branch}` can't name a branch: use letters, digits, `-`, `_` and `.`");
            self.fault("branch", message);
        }
        branch
    }

    fn on_unknown(&self, key: &str) -> OnUnknown {
        match self.text(key).as_deref() {
            Some("ask") => OnUnknown::Ask,
            Some("fail") => OnUnknown::Fail,
            _ => OnUnknown::Retry,
        }
    }
}

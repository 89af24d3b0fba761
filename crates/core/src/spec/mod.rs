//! Loop specifications: what a loop is, where each of its settings came from, and whether they
//! make sense together.
//!
//! The way of a specification: [`LoopFile::parse`] reads `loopwright.toml`, [`resolve`] lays the
//! layers over each other and remembers where every value came from, [`Resolved::experiment`]
//! checks them and gives the [`ExperimentSpec`] that a run pins in its journal, and
//! [`ExperimentSpec::drift`] says what a later change of it means. [`detect`] proposes a
//! specification for a project that has none.
//!
//! Every setting is declared once, in [`SETTINGS`]; [`configuration_markdown`] is its reference.

mod build;
pub mod detect;
mod drift;
mod experiment;
mod file;
mod keep;
mod overlap;
mod paths;
mod pattern;
mod pattern_set;
mod problem;
mod reference;
mod resolve;
mod rule_notices;
mod rules;
mod setting;
mod table;
#[cfg(test)]
mod tests;
mod units;
mod value;

pub use crate::guard::{GUARD_LIMITS, GuardSpec, Tolerance};
pub use crate::near::{did_you_mean, near_misses};
pub use build::Purpose;
pub use drift::{Drift, FieldChange};
pub use experiment::{
    BASIC_ENVIRONMENT, BudgetSpec, EXPERIMENT_SCHEMA, EnvPolicy, ExperimentSpec, Goal,
    OnUnknownSpec, RuleSpec,
};
pub use file::{LoopEntry, LoopFile, SPEC_FILE_NAME, is_plain_name};
pub use keep::{KeepSpec, NoiseSpec};
pub use pattern::{Pattern, PatternError};
pub use pattern_set::{PatternSet, Unmatched};
pub use problem::{Origin, Problem, Problems};
pub use reference::configuration_markdown;
pub use resolve::{
    DEFAULT_LOOP_NAME, ENV_PREFIX, Flags, Layers, Located, Resolved, Row, render_rows, resolve,
};
pub use setting::{Class, Setting};
pub use table::{SETTINGS, budget_setting, setting, setting_by_env, setting_by_flag};
pub use units::{
    INTEGER_MAX, Money, UnitError, format_duration_us, format_micros, format_size_bytes,
    parse_duration_us, parse_size_bytes,
};
pub use value::{Value, ValueType};

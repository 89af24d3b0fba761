//! `status`: what each loop is doing and where it stands.

use std::fmt::Write as _;

use clap::Args;
use loopwright_core::ids::EffectId;
use loopwright_core::time::Micros;
use loopwright_engine::committer::now;
use loopwright_engine::views::{LoopStatus, effect_words, loops_of, status_of};

use crate::exit_code::Exit;
use crate::failure::Failure;
use crate::output::{self, Output, Tone, counted, moment, one_line, span};
use crate::place::Common;
use crate::trial_line::{best_text, counts_text, short_commit};

/// Show what the loops are doing and where they stand
///
/// All loops that were ever run here, or the one of --loop. `interrupted` means that an invocation
/// was cut off and nobody drives it: `loopwright resume` goes on.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Print one JSON object per loop
    #[arg(long)]
    json: bool,
}

/// Shows the status.
pub fn run(common: &Common, output: &Output, arguments: &Arguments) -> Result<Exit, Failure> {
    let record = common.read()?;
    let names = match &common.loop_name {
        Some(_) => vec![common.choose_loop(&record)?],
        None => loops_of(&record.store)?,
    };
    if names.is_empty() {
        return Err(Failure::nothing_was_run());
    }
    for (index, name) in names.iter().enumerate() {
        let Some(status) = status_of(&record.store, name)? else {
            continue;
        };
        if arguments.json {
            let object = serde_json::to_value(&status).expect("BUG: a status is plain data");
            output::json(&output::with_numbers(object, &["baseline", "incumbent"]))?;
        } else {
            if index > 0 {
                output::line("")?;
            }
            output::print(&text_of(&status, now(), output))?;
        }
    }
    Ok(Exit::Finished)
}

/// A loop's status as lines.
pub fn text_of(status: &LoopStatus, at: Micros, output: &Output) -> String {
    let mut text = String::new();
    let tone = match status.state {
        "running" => Tone::Good,
        "interrupted" => Tone::Bad,
        _ => Tone::Plain,
    };
    let mut row = |name: &str, value: &str| {
        let _ = writeln!(text, "  {name:<10} {value}");
    };
    row(
        "state",
        &format!(
            "{}{}",
            output.paint(tone, status.state),
            in_words(&status.words)
        ),
    );
    if let Some(trial) = status.open_trial {
        row("open", &format!("trial {trial}"));
    }
    let runs = status.state == "running";
    for (effect, attempt, since) in &status.in_flight {
        let words = effect_words(&EffectId::new(effect.as_str()));
        let again = if *attempt > 1 {
            format!(" (attempt {attempt})")
        } else {
            String::new()
        };
        if runs {
            row(
                "doing",
                &format!("{words}{again}, for {}", span(at.since(*since))),
            );
        } else {
            row("was doing", &format!("{words}{again}"));
        }
    }
    let is_said = matches!(status.state, "idle" | "ended");
    if let Some(ending) = status.last_ending.as_ref().filter(|_| !is_said) {
        row("last end", &one_line(&ending.words));
    }
    let counts = counts_text(status);
    let trials: u64 = status.counts.values().sum();
    if trials > 0 {
        row("trials", &format!("{trials}: {counts}"));
    }
    if let Some(baseline) = status.baseline {
        row(
            "baseline",
            &format!("{}: {}", status.metric, baseline.short()),
        );
    }
    if let Some(best) = best_text(status) {
        let commit = status.commit.as_deref().map_or("", short_commit);
        row(
            "best",
            &format!("{}, commit {commit}", best.trim_start_matches("best ")),
        );
    }
    let branch = if status.in_place {
        "the one that is checked out, in place".to_owned()
    } else {
        format!("loopwright/{}/{}", status.loop_name, status.branch)
    };
    row("branch", &branch);
    if let Some(segment) = status.segment.filter(|segment| *segment > 1) {
        row("segment", &segment.to_string());
    }
    row("budget", &spent(status));
    row("newest", &moment(status.last_at));
    row("run", &status.run);
    format!(
        "{} ({} {})\n{text}",
        status.loop_name, status.goal, status.metric
    )
}

fn in_words(words: &str) -> String {
    if words.is_empty() {
        String::new()
    } else {
        format!(": {}", one_line(words))
    }
}

fn spent(status: &LoopStatus) -> String {
    let account = &status.budget;
    let of = |limit: Option<String>| {
        limit
            .map(|limit| format!(" of {limit}"))
            .unwrap_or_default()
    };
    let steps = counted(account.spent.steps, "proposal");
    let steps = format!(
        "{steps}{}",
        of(account.limits.steps.map(|steps| steps.to_string()))
    );
    let time = format!(
        "{}{}",
        span(account.spent.time_us),
        of(account.limits.time_us.map(span))
    );
    format!("{steps}, {time} in commands")
}

//! The rule's reasons, in words. What they say of a gain is what pairs of a duel showed, never the
//! lucky first draw; the loop's claim is the closing check's.

use super::duel::{Duel, Turn};
use super::scale::Scale;
use super::standing::Standing;
use super::statistics::t_of_95;

use crate::spec::Goal;

/// A first draw beside the incumbent.
pub(super) struct Screened {
    pub(super) scale: Scale,
    pub(super) reading: f64,
    pub(super) reference: f64,
    pub(super) margin: f64,
    /// By how many noise units it is ahead, where the noise is known.
    pub(super) promise: Option<f64>,
    /// How many are asked for.
    pub(super) bar: f64,
}

impl Screened {
    /// It was not looked at again.
    pub(super) fn lost(&self) -> String {
        let shown = |judged| self.scale.shown(judged).short();
        let (mine, bar) = (shown(self.reading), shown(self.reference));
        if let Some(promise) = self.promise {
            let how = if promise < 0.0 { "worse" } else { "better" };
            let less = if self.margin > 0.0 {
                ", less what is worth keeping"
            } else {
                ""
            };
            let asked = if promise < 0.0 {
                String::new()
            } else {
                format!(", and a second look needs more than {}", self.bar)
            };
            return format!(
                "{mine} is {:.1} noise units {how} than about {bar}{less}{asked}",
                promise.abs()
            );
        }
        let direction = match self.scale.goal {
            Goal::Minimize => "lower",
            Goal::Maximize => "higher",
        };
        if self.reading == self.reference {
            format!("{mine} ties with {bar}")
        } else if self.reading < self.reference {
            format!("{mine} beat {bar}, but by less than what is worth keeping")
        } else {
            format!("{mine} did not beat {bar} ({direction} is better)")
        }
    }

    /// The metric repeats exactly, so one reading says it all.
    pub(super) fn exactly(&self) -> String {
        let shown = |judged| self.scale.shown(judged).short();
        let (mine, bar) = (shown(self.reading), shown(self.reference));
        format!("{mine} beat {bar}, and the metric repeats exactly")
    }
}

/// The pairs so far.
pub(super) fn so_far(duel: &Duel) -> String {
    if duel.pairs == 0 {
        return "it looked promising, and no pair of runs was left".to_owned();
    }
    format!("better in {}", pairs(duel))
}

/// It won its duel.
pub(super) fn better(duel: &Duel, standing: &Standing) -> String {
    format!("better in {}{}", pairs(duel), size(duel, standing))
}

/// It did not.
pub(super) fn not_better(turn: Turn, duel: &Duel, standing: &Standing) -> String {
    let so_far = so_far(duel);
    match turn {
        Turn::Unpromising if duel.pairs == 0 => {
            "measured again, it no longer looked better".to_owned()
        }
        Turn::Unpromising => format!("{so_far}, and no longer promising"),
        Turn::Worse if duel.margin > 0.0 => format!("{so_far}, and by less on the whole"),
        Turn::Worse => format!("{so_far}, and worse on the whole"),
        Turn::Spent | Turn::Open | Turn::Better => format!(
            "{so_far}{}: not clear enough after the most pairs it gets",
            size(duel, standing)
        ),
    }
}

fn pairs(duel: &Duel) -> String {
    let (won, pairs) = (duel.won, duel.pairs);
    let noun = if pairs == 1 { "pair" } else { "pairs" };
    let by = if duel.margin > 0.0 {
        ", by more than what is worth keeping"
    } else {
        ""
    };
    let again = if duel.retried {
        ", a failed run of it repeated"
    } else {
        ""
    };
    format!("{won} of {pairs} back-to-back {noun}{by}{again}")
}

/// How much better, in noise units, with its interval; nothing where the noise isn't known.
fn size(duel: &Duel, standing: &Standing) -> String {
    let deviation = standing.deviation().filter(|deviation| *deviation > 0.0);
    let (Some(deviation), true) = (deviation, duel.pairs > 0) else {
        return String::new();
    };
    let pairs = f64::from(duel.pairs);
    let mean = (duel.pair_sum / pairs + duel.margin) / deviation;
    let reach = t_of_95(standing.freedom()) * (2.0 / pairs).sqrt();
    format!(
        ", {mean:.1} noise units ({:.1} to {:.1})",
        mean - reach,
        mean + reach
    )
}

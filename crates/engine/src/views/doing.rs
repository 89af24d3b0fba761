//! What an effect of an experiment run is, in words: for status lines and live displays.

use loopwright_core::experiment::rule::Arm;
use loopwright_core::experiment::{EffectPath, Part};
use loopwright_core::ids::EffectId;

/// What is done for an effect, as in "trial 7: `words`".
pub fn effect_words(effect: &EffectId) -> String {
    let Ok(EffectPath { part, .. }) = EffectPath::of(effect) else {
        return effect.to_string();
    };
    let words = match part {
        Part::Propose => "proposing",
        Part::Reapply => "bringing the old change to the incumbent",
        Part::Measure { arm, reading } => match (arm, reading) {
            (Arm::Candidate, 1) => "measuring",
            (Arm::Candidate, _) => "measuring again",
            (Arm::Incumbent, _) => "measuring the incumbent",
        },
        Part::Target { .. } => "measuring the incumbent once more for the target",
        Part::Closing { .. } => "measuring start and finish against each other",
        Part::Keep { .. } => "committing",
    };
    words.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effects_are_said_in_words() {
        let words = |effect: &str| effect_words(&EffectId::new(effect));
        assert_eq!(words("t3/propose"), "proposing");
        assert_eq!(words("t3/measure/candidate/1"), "measuring");
        assert_eq!(words("t3/measure/candidate/2"), "measuring again");
        assert_eq!(words("t0/measure/incumbent/1"), "measuring the incumbent");
        assert_eq!(words("t3/keep/1"), "committing");
        assert_eq!(
            words("t3/closing/1/2"),
            "measuring start and finish against each other"
        );
        assert_eq!(words("t3/other"), "t3/other");
    }
}

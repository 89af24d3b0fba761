//! What an effect of an experiment run is, in words: for status lines and live displays.

use loopwright_core::ids::EffectId;

/// What is done for an effect, as in "trial 7: `words`".
pub fn effect_words(effect: &EffectId) -> String {
    let mut parts = effect.as_str().split('/').skip(1);
    let (part, arm, reading) = (parts.next(), parts.next(), parts.next());
    match (part, arm, reading) {
        (Some("propose"), ..) => "proposing".to_owned(),
        (Some("reapply"), ..) => "bringing the old change to the incumbent".to_owned(),
        (Some("measure"), Some("candidate"), Some("1")) => "measuring".to_owned(),
        (Some("measure"), Some("candidate"), Some(_)) => "measuring again".to_owned(),
        (Some("measure"), ..) => "measuring the incumbent".to_owned(),
        (Some("target"), ..) => "measuring the incumbent once more for the target".to_owned(),
        (Some("keep"), ..) => "committing".to_owned(),
        _ => effect.as_str().to_owned(),
    }
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
        assert_eq!(words("t3/other"), "t3/other");
    }
}

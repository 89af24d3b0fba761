//! Paths that two settings claim with contradicting meanings.

use super::experiment::ExperimentSpec;
use super::paths::escaped;
use super::pattern::Pattern;

/// Two settings whose paths must not meet.
struct Claim<'a> {
    key: &'static str,
    patterns: &'a [Pattern],
    other_key: &'static str,
    others: &'a [Pattern],
    why: &'static str,
}

/// What overlaps, as a fault of the setting named first.
pub(super) fn overlap_faults(spec: &ExperimentSpec) -> Vec<(&'static str, String)> {
    let literal = |text: &String| Pattern::new(&escaped(text)).ok();
    let links: Vec<Pattern> = spec.link.iter().filter_map(literal).collect();
    let result: Vec<Pattern> = spec.result_file.iter().filter_map(literal).collect();
    let claim = |key, patterns, other_key, others, why| Claim {
        key,
        patterns,
        other_key,
        others,
        why,
    };
    let read_only = "linked inputs are read-only";
    let protected = "protected files can't be written by measurements";
    let stale = "a result kept from one measurement would count for the next";
    let outside = "linked inputs are not in git and read-only already";
    let claims = [
        claim(
            "cache",
            &spec.cache[..],
            "protect",
            &spec.protect[..],
            protected,
        ),
        claim("cache", &spec.cache, "link", &links, read_only),
        claim("protect", &spec.protect, "link", &links, outside),
        claim("result_file", &result, "protect", &spec.protect, protected),
        claim("result_file", &result, "link", &links, read_only),
        claim("result_file", &result, "cache", &spec.cache, stale),
    ];
    claims.iter().flat_map(Claim::faults).collect()
}

impl Claim<'_> {
    fn faults(&self) -> Vec<(&'static str, String)> {
        let meeting = self.patterns.iter().flat_map(|mine| {
            self.others
                .iter()
                .filter(|other| mine.overlaps(other))
                .map(move |other| (mine, other))
        });
        let fault = |(mine, other): (&Pattern, &Pattern)| {
            let message = format!(
                "`{mine}` overlaps `{other}` of `{}`: {}",
                self.other_key, self.why
            );
            (self.key, message)
        };
        meeting.map(fault).collect()
    }
}

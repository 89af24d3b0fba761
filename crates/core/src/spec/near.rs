//! Near misses: which known words a mistyped one may have meant.
//!
//! Used wherever a name is refused, so that the refusal can be mended without a manual.

/// Suggestions given at most; more would hide the right one.
const SUGGESTIONS_MAX: usize = 3;

/// Words longer than this are compared by their first characters only: bounded work on any input.
const WORD_CHARS_MAX: usize = 200;

/// The candidates closest to `word`, best first: small edit distances (a swap of neighbours counts
/// one), or the same letters apart from case, `-` and `_`, or one beginning with the other.
pub fn near_misses<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let wanted = folded(word);
    let limit = (wanted.len() / 3).clamp(1, 3);
    let mut found: Vec<(usize, &str)> = candidates
        .into_iter()
        .filter(|candidate| *candidate != word)
        .filter_map(|candidate| {
            let known = folded(candidate);
            let begins = wanted.len() >= 3 && known.starts_with(&wanted)
                || known.len() >= 3 && wanted.starts_with(&known);
            if known.len().abs_diff(wanted.len()) > limit {
                return begins.then_some((limit + 1, candidate));
            }
            let distance = edit_distance(&wanted, &known);
            if distance <= limit {
                Some((distance, candidate))
            } else {
                begins.then_some((limit + 1, candidate))
            }
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    // The same word written otherwise leaves nothing to guess.
    if found.first().is_some_and(|(distance, _)| *distance == 0) {
        found.retain(|(distance, _)| *distance == 0);
    }
    found.truncate(SUGGESTIONS_MAX);
    found
        .into_iter()
        .map(|(_, candidate)| candidate.to_owned())
        .collect()
}

/// The words as the end of a sentence: "did you mean `a` or `b`?"; nothing for no words.
pub fn did_you_mean(words: &[String]) -> Option<String> {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    let (last, rest) = quoted.split_last()?;
    if rest.is_empty() {
        return Some(format!("did you mean {last}?"));
    }
    Some(format!("did you mean {} or {last}?", rest.join(", ")))
}

/// Lower case, without the separators people mix up.
fn folded(word: &str) -> Vec<char> {
    word.chars()
        .filter(|c| !matches!(c, '-' | '_'))
        .flat_map(char::to_lowercase)
        .take(WORD_CHARS_MAX)
        .collect()
}

/// Insertions, deletions, substitutions and swaps of neighbours that turn one word into the other.
fn edit_distance(from: &[char], to: &[char]) -> usize {
    let width = to.len() + 1;
    let mut before_last = vec![0; width];
    let mut last: Vec<usize> = (0..width).collect();
    for (row, a) in from.iter().enumerate() {
        let mut current = vec![row + 1; width];
        for (column, b) in to.iter().enumerate() {
            let changed = last[column] + usize::from(a != b);
            let mut best = changed.min(last[column + 1] + 1).min(current[column] + 1);
            if row > 0 && column > 0 && from[row - 1] == *b && *a == to[column - 1] {
                best = best.min(before_last[column - 1] + 1);
            }
            current[column + 1] = best;
        }
        before_last = std::mem::replace(&mut last, current);
    }
    last[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_find_their_word() {
        let known = [
            "trials",
            "target",
            "run",
            "run_limit",
            "metric",
            "give_up_after",
        ];
        assert_eq!(near_misses("trails", known), ["trials"]);
        assert_eq!(near_misses("give-up-after", known), ["give_up_after"]);
        assert_eq!(near_misses("Metric", known), ["metric"]);
        assert_eq!(near_misses("metrics", known), ["metric"]);
        assert!(near_misses("colour", known).is_empty());
        assert!(near_misses("", known).is_empty());
    }

    #[test]
    fn a_sentence_offers_them() {
        assert_eq!(did_you_mean(&[]), None);
        let words = ["a".to_owned(), "b".to_owned()];
        assert_eq!(did_you_mean(&words[..1]).unwrap(), "did you mean `a`?");
        assert_eq!(did_you_mean(&words).unwrap(), "did you mean `a` or `b`?");
    }

    #[test]
    fn distances_are_the_known_ones() {
        let distance = |a: &str, b: &str| edit_distance(&folded(a), &folded(b));
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("abcd", "abdc"), 1);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", ""), 3);
    }
}

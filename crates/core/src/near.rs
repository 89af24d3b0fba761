//! Near misses: which known words a mistyped one may have meant.
//!
//! Used wherever a name is refused or not found, so that it can be mended without a manual.

use std::collections::BTreeSet;

/// Suggestions given for a word out of a table; more would hide the right one.
const SUGGESTIONS_MAX: usize = 3;
/// How many are kept while collecting.
const KEPT_MAX: usize = 16;
/// Longer words aren't compared: bounded work on any input.
const WORD_CHARS_MAX: usize = 200;
/// The last rank of words that are the same but for case and punctuation.
const SAME_WORD: usize = 1;
/// The rank of words of which one only begins with the other: taken where nothing is nearer.
const BEGINNING: usize = 6;
/// Shorter beginnings say nothing.
const BEGINNING_CHARS_MIN: usize = 3;

/// Of the candidates, those close to `word`, the nearest first, at most three, never the word
/// itself: another case, other punctuation, the same words with something before or after
/// (`val_loss` for `loss`), few letters apart (a swap of neighbours counts one), or, where there is
/// none of these, one beginning with the other.
pub fn near_misses<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut collected = NearMisses::default();
    for candidate in candidates {
        collected.offer(word, candidate);
    }
    // In a table the same word written otherwise leaves nothing to guess.
    collected.keep_the_same_word();
    collected.nearest(SUGGESTIONS_MAX)
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

/// A bounded collection of near misses, the worst falling out first; the order of offers does not
/// matter.
#[derive(Debug, Default, Clone)]
pub(crate) struct NearMisses(BTreeSet<(usize, String)>);

impl NearMisses {
    pub(crate) fn offer(&mut self, asked: &str, seen: &str) {
        if let Some(rank) = rank(asked, seen) {
            self.0.insert((rank, seen.to_owned()));
            if self.0.len() > KEPT_MAX {
                self.0.pop_last();
            }
        }
    }

    /// Drops all others where the same word was seen, in another case or with other punctuation.
    fn keep_the_same_word(&mut self) {
        if self.0.first().is_some_and(|(rank, _)| *rank <= SAME_WORD) {
            self.0.retain(|(rank, _)| *rank <= SAME_WORD);
        }
    }

    /// The nearest, at most `count`.
    pub(crate) fn nearest(&self, count: usize) -> Vec<String> {
        let is_near = self.0.first().is_some_and(|(rank, _)| *rank < BEGINNING);
        self.0
            .iter()
            .take_while(|(rank, _)| !is_near || *rank < BEGINNING)
            .take(count)
            .map(|(_, name)| name.clone())
            .collect()
    }
}

/// How near a name is: 0 is another case only, then other punctuation, then more or fewer words,
/// then edit distance, then a beginning.
fn rank(asked: &str, seen: &str) -> Option<usize> {
    let is_long = |word: &str| word.chars().count() > WORD_CHARS_MAX;
    if asked == seen || seen.is_empty() || is_long(seen) || is_long(asked) {
        return None;
    }
    let (asked, seen) = (asked.to_lowercase(), seen.to_lowercase());
    if asked == seen {
        return Some(0);
    }
    let (asked_bare, seen_bare) = (bare(&asked), bare(&seen));
    if !asked_bare.is_empty() && asked_bare == seen_bare {
        return Some(SAME_WORD);
    }
    if stands_in(&asked, &seen) || stands_in(&seen, &asked) {
        return Some(2);
    }
    let allowed = match asked_bare.len() {
        0..=2 => return None,
        3..=5 => 1,
        6..=8 => 2,
        _ => 3,
    };
    // No distance is smaller than the difference of the lengths.
    if asked_bare.len().abs_diff(seen_bare.len()) <= allowed {
        let distance = edit_distance(&asked_bare, &seen_bare);
        if distance <= allowed {
            return Some(2 + distance);
        }
    }
    let begins = |whole: &[char], part: &[char]| {
        part.len() >= BEGINNING_CHARS_MIN && whole.starts_with(part)
    };
    let is_beginning = begins(&seen_bare, &asked_bare) || begins(&asked_bare, &seen_bare);
    is_beginning.then_some(BEGINNING)
}

fn bare(name: &str) -> Vec<char> {
    name.chars()
        .filter(|character| character.is_alphanumeric())
        .collect()
}

/// Whether `part` is the beginning or the end of `whole`, at the edge of a word.
fn stands_in(part: &str, whole: &str) -> bool {
    let edge =
        |character: Option<char>| character.is_some_and(|character| !character.is_alphanumeric());
    whole
        .strip_suffix(part)
        .is_some_and(|rest| edge(rest.chars().next_back()))
        || whole
            .strip_prefix(part)
            .is_some_and(|rest| edge(rest.chars().next()))
}

/// Insertions, deletions, replacements and swaps of neighbours between two words.
fn edit_distance(left: &[char], right: &[char]) -> usize {
    let width = right.len() + 1;
    let mut before: Vec<usize> = vec![0; width];
    let mut previous: Vec<usize> = (0..width).collect();
    for row in 1..=left.len() {
        let mut current = vec![row; width];
        for column in 1..width {
            let same = left[row - 1] == right[column - 1];
            let mut best = (previous[column - 1] + usize::from(!same))
                .min(previous[column] + 1)
                .min(current[column - 1] + 1);
            let swapped = row > 1
                && column > 1
                && left[row - 1] == right[column - 2]
                && left[row - 2] == right[column - 1];
            if swapped {
                best = best.min(before[column - 2] + 1);
            }
            current[column] = best;
        }
        before = std::mem::replace(&mut previous, current);
    }
    previous[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nearest<'a>(asked: &str, seen: impl IntoIterator<Item = &'a str>) -> Vec<String> {
        let mut collected = NearMisses::default();
        for name in seen {
            collected.offer(asked, name);
        }
        collected.nearest(5)
    }

    #[test]
    fn typing_errors_find_their_word() {
        let known = [
            "trials",
            "target",
            "run",
            "run_limit",
            "metric",
            "give_up_after",
            "propose",
        ];
        assert_eq!(near_misses("trails", known), ["trials"]);
        assert_eq!(near_misses("give-up-after", known), ["give_up_after"]);
        assert_eq!(near_misses("Metric", known), ["metric"]);
        assert_eq!(near_misses("metrics", known), ["metric"]);
        // A beginning, where nothing is nearer.
        assert_eq!(near_misses("prop", known), ["propose"]);
        assert_eq!(near_misses("proposer", ["pro", "proposed"]), ["proposed"]);
        assert!(near_misses("colour", known).is_empty());
        assert!(near_misses("", known).is_empty());
        assert_eq!(
            near_misses("a1", ["a2", "a_1", "a-1", "A1", "a.1"]),
            ["A1", "a-1", "a.1"]
        );
    }

    #[test]
    fn a_sentence_offers_them() {
        assert_eq!(did_you_mean(&[]), None);
        let words = ["a".to_owned(), "b".to_owned()];
        assert_eq!(did_you_mean(&words[..1]).unwrap(), "did you mean `a`?");
        assert_eq!(did_you_mean(&words).unwrap(), "did you mean `a` or `b`?");
    }

    #[test]
    fn nearest_first_and_nothing_far() {
        let table: [(&str, &[&str], &[&str]); 9] = [
            (
                "loss",
                &["val_loss", "Loss", "accuracy", "los"],
                &["Loss", "val_loss", "los"],
            ),
            (
                "m",
                &["best-m", "train.m", "n", "mm", "M"],
                &["M", "best-m", "train.m"],
            ),
            (
                "val_loss",
                &["val-loss", "valloss", "loss", "val_lsos"],
                &["val-loss", "valloss", "loss", "val_lsos"],
            ),
            (
                "accuracy",
                &["acuracy", "accurate", "acc"],
                &["acuracy", "accurate"],
            ),
            ("loss", &["loss"], &[]),
            ("loss", &["**loss", "\"loss\""], &["\"loss\"", "**loss"]),
            ("loss", &["floss", "blossom", "lossless"], &["floss"]),
            ("%", &["#", "@"], &[]),
            ("loss", &[""], &[]),
        ];
        for (asked, seen, expected) in table {
            assert_eq!(nearest(asked, seen.iter().copied()), expected, "{asked}");
        }
    }

    #[test]
    fn the_answer_is_bounded_and_ignores_order() {
        let seen: Vec<String> = (0..1000)
            .map(|number| format!("loss.{number:04}"))
            .collect();
        let forward = nearest("loss", seen.iter().map(String::as_str));
        let backward = nearest("loss", seen.iter().rev().map(String::as_str));
        assert_eq!(forward, backward);
        assert_eq!(
            forward,
            [
                "loss.0000",
                "loss.0001",
                "loss.0002",
                "loss.0003",
                "loss.0004"
            ]
        );
    }

    #[test]
    fn distances() {
        let chars = |text: &str| text.chars().collect::<Vec<_>>();
        for (left, right, distance) in [
            ("", "", 0),
            ("a", "", 1),
            ("loss", "lsos", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(edit_distance(&chars(left), &chars(right)), distance);
        }
    }
}

//! Near misses: which of the names seen somebody may have meant by the one asked for.

use std::collections::BTreeSet;

/// How many near names an answer holds.
const ANSWER: usize = 5;
/// How many are kept while collecting.
const KEPT: usize = 16;
/// The longest name compared, in characters.
const LONGEST_CHARS: usize = 128;

/// Of the names seen, those close to the one asked for: another case, other punctuation, the same
/// words with something before or after (`val_loss` for `loss`), or few letters apart. The nearest
/// first, at most five, never the asked name itself.
pub fn near_names<'a>(asked: &str, seen: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut collected = NearMisses::default();
    for name in seen {
        collected.offer(asked, name);
    }
    collected.answer()
}

/// A bounded collection of near misses, the worst falling out first; the order of offers does not
/// matter.
#[derive(Debug, Default, Clone)]
pub(super) struct NearMisses(BTreeSet<(usize, String)>);

impl NearMisses {
    pub(super) fn offer(&mut self, asked: &str, seen: &str) {
        if let Some(rank) = rank(asked, seen) {
            self.0.insert((rank, seen.to_owned()));
            if self.0.len() > KEPT {
                self.0.pop_last();
            }
        }
    }

    pub(super) fn answer(&self) -> Vec<String> {
        self.0
            .iter()
            .take(ANSWER)
            .map(|(_, name)| name.clone())
            .collect()
    }
}

/// How near a name is: 0 is another case only, then other punctuation, then more or fewer words,
/// then edit distance.
fn rank(asked: &str, seen: &str) -> Option<usize> {
    if asked == seen || seen.is_empty() || seen.chars().count() > LONGEST_CHARS {
        return None;
    }
    let (asked, seen) = (asked.to_lowercase(), seen.to_lowercase());
    if asked == seen {
        return Some(0);
    }
    let (asked_bare, seen_bare) = (bare(&asked), bare(&seen));
    if !asked_bare.is_empty() && asked_bare == seen_bare {
        return Some(1);
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
    let distance = edit_distance(&asked_bare, &seen_bare);
    (distance <= allowed).then_some(2 + distance)
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
            assert_eq!(near_names(asked, seen.iter().copied()), expected, "{asked}");
        }
    }

    #[test]
    fn the_answer_is_bounded_and_ignores_order() {
        let seen: Vec<String> = (0..1000)
            .map(|number| format!("loss.{number:04}"))
            .collect();
        let forward = near_names("loss", seen.iter().map(String::as_str));
        let backward = near_names("loss", seen.iter().rev().map(String::as_str));
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

//! Which part of the numbers is shown, and where the ticks are.
//!
//! The accepted values decide: a rejected attempt that went far astray is
//! shown at the edge rather than allowed to press everything else flat.

use crate::analysis::{Analysis, Attempt};
use crate::number::{format_number, round_down};

/// The value axis. Positions run from 0 (lowest value) to 1 (highest value).
pub(crate) struct Scale {
    pub logarithmic: bool,
    /// Whether there is no value at all: such an axis has no ticks.
    pub blank: bool,
    low: f64,
    high: f64,
}

/// Where a value falls.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Place {
    Inside(f64),
    Above,
    Below,
}

/// Marked places of an axis, and what must be added to their texts, if anything.
pub(crate) struct Ticks {
    pub marks: Vec<(f64, String)>,
    pub offset: Option<f64>,
}

/// Ratio of the accepted values from which the axis is logarithmic.
const LOGARITHMIC_FROM: f64 = 100.0;

impl Scale {
    pub(crate) fn for_values(analysis: &Analysis<'_>) -> Self {
        let accepted = || analysis.attempts.iter().filter(|a| a.accepted());
        let mut core: Vec<f64> = accepted()
            .flat_map(|a| [a.value, a.confirmed])
            .flatten()
            .collect();
        let mut others: Vec<f64> = analysis
            .attempts
            .iter()
            .filter(|a| !a.accepted())
            .filter_map(Attempt::place)
            .collect();
        others.sort_by(f64::total_cmp);
        if core.is_empty() && !others.is_empty() {
            // Nothing accepted: the middle half of what was measured stands in.
            let (from, to) = (others.len() / 4, others.len() - others.len() / 4);
            core = others[from..to].to_vec();
        }
        let Some((least, most)) = extent(&core) else {
            let target = analysis.target.unwrap_or(0.0);
            return Self {
                blank: analysis.target.is_none(),
                ..Self::around(false, target, target)
            };
        };
        let logarithmic = least > 0.0 && most / least >= LOGARITHMIC_FROM;
        let to_axis = |value: f64| if logarithmic { value.ln() } else { value };
        let usable = |value: &f64| !logarithmic || *value > 0.0;
        let others: Vec<f64> = others.into_iter().filter(usable).map(to_axis).collect();
        let (mut low, mut high) = (to_axis(least), to_axis(most));
        let span = high - low;
        include_others(&mut low, &mut high, &others);
        for (from, to) in accepted().filter_map(|a| a.interval) {
            // Intervals may widen the picture, though not without limit.
            if usable(&from) {
                low = low.min(to_axis(from).max(low - span.max(high - low) * 0.5));
            }
            if usable(&to) {
                high = high.max(to_axis(to).min(high + span.max(high - low) * 0.5));
            }
        }
        include_target(
            &mut low,
            &mut high,
            analysis.target.filter(usable).map(to_axis),
        );
        let mut scale = Self::around(logarithmic, low, high);
        // Labels stand on the better side, where nothing else is.
        let room = (scale.high - scale.low) * 0.06;
        if analysis.progress.lower_is_better {
            scale.low -= room;
        } else {
            scale.high += room;
        }
        scale
    }

    /// An axis of trial numbers.
    pub(crate) fn for_trials(first: u64, last: u64) -> Self {
        let (first, last) = (first as f64, last as f64);
        let pad = ((last - first) * 0.02).max(0.5).max(last * 1e-12);
        Self {
            logarithmic: false,
            blank: false,
            low: first - pad,
            high: last + pad,
        }
    }

    fn around(logarithmic: bool, low: f64, high: f64) -> Self {
        let size = low.abs().max(high.abs());
        let span = high - low;
        let pad = if span > size * 1e-12 {
            span * 0.07
        } else if size > 1e-290 && !logarithmic {
            size * 0.05
        } else {
            1.0
        };
        Self {
            logarithmic,
            blank: false,
            low: low - pad,
            high: high + pad,
        }
    }

    pub(crate) fn place(&self, value: f64) -> Place {
        if self.logarithmic && value <= 0.0 {
            return Place::Below;
        }
        let on_axis = if self.logarithmic { value.ln() } else { value };
        if on_axis < self.low {
            Place::Below
        } else if on_axis > self.high {
            Place::Above
        } else {
            Place::Inside((on_axis - self.low) / (self.high - self.low))
        }
    }

    /// The position, held at the edges.
    pub(crate) fn position(&self, value: f64) -> f64 {
        match self.place(value) {
            Place::Inside(at) => at,
            Place::Above => 1.0,
            Place::Below => 0.0,
        }
    }

    /// About `wanted` ticks at round values.
    pub(crate) fn ticks(&self, wanted: usize) -> Ticks {
        let values = if self.blank {
            Vec::new()
        } else if self.logarithmic {
            self.logarithmic_values(wanted)
        } else {
            round_values(self.low, self.high, wanted, 0.0)
        };
        let place = |value: f64| self.position(value);
        label_ticks(values, self.low, place)
    }

    /// Ticks at whole numbers only.
    pub(crate) fn whole_ticks(&self, wanted: usize) -> Vec<(f64, String)> {
        let mut marks: Vec<(f64, String)> = round_values(self.low, self.high, wanted, 1.0)
            .into_iter()
            .filter(|value| *value >= 0.0)
            .map(|value| {
                let text = if value < 1e7 {
                    format!("{value:.0}")
                } else {
                    format_number(value)
                };
                (self.position(value), text)
            })
            .collect();
        marks.dedup_by(|later, earlier| later.1 == earlier.1);
        marks
    }

    fn logarithmic_values(&self, wanted: usize) -> Vec<f64> {
        let decade = std::f64::consts::LN_10;
        let (from, to) = (
            (self.low / decade).floor() as i32,
            (self.high / decade).ceil() as i32,
        );
        let decades = (to - from).max(1) as usize;
        let every = decades.div_ceil(wanted.max(1)).max(1);
        let factors: &[f64] = if decades * 3 <= wanted + 3 {
            &[1.0, 2.0, 5.0]
        } else {
            &[1.0]
        };
        (from..=to)
            .filter(|exponent| exponent.rem_euclid(every as i32) == 0)
            .flat_map(|exponent| factors.iter().map(move |f| power_of_ten(*f, exponent)))
            .filter(|value| matches!(self.place(*value), Place::Inside(_)))
            .collect()
    }
}

/// `factor` × 10^`exponent`, correctly rounded (a product of powers isn't).
fn power_of_ten(factor: f64, exponent: i32) -> f64 {
    format!("{factor}e{exponent}").parse().unwrap_or(factor)
}

fn extent(values: &[f64]) -> Option<(f64, f64)> {
    let first = *values.first()?;
    Some(
        values
            .iter()
            .fold((first, first), |(low, high), v| (low.min(*v), high.max(*v))),
    )
}

/// Widens the range for rejected values, but leaves out the far outliers (`others` is sorted).
fn include_others(low: &mut f64, high: &mut f64, others: &[f64]) {
    if others.is_empty() {
        return;
    }
    let last = others.len() - 1;
    let span = *high - *low;
    let (most, least) = if last < 2 && span == 0.0 {
        (others[last], others[0])
    } else {
        // Nine in ten rejected values are inside, unless they are very far away.
        let (tenth, ninetieth) = (others[last.div_ceil(10)], others[last - last.div_ceil(10)]);
        let reach = if span > 0.0 { span * 6.0 } else { f64::MAX };
        (
            ninetieth.min(*high + reach).max(*high + span * 1.5),
            tenth.max(*low - reach).min(*low - span * 1.5),
        )
    };
    let inside = |v: &&f64| **v >= least && **v <= most;
    if let Some(first) = others.iter().find(inside) {
        *low = low.min(*first);
    }
    if let Some(last) = others.iter().rev().find(inside) {
        *high = high.max(*last);
    }
}

/// Takes the target in where that leaves at least a third of the height to the data.
fn include_target(low: &mut f64, high: &mut f64, target: Option<f64>) {
    let Some(target) = target else { return };
    let (new_low, new_high) = (low.min(target), high.max(target));
    let span = *high - *low;
    let small = span == 0.0 && (new_high - new_low) <= high.abs();
    if small || (new_high - new_low) <= span * 3.0 {
        (*low, *high) = (new_low, new_high);
    }
}

/// Multiples of a round step inside a range.
fn round_values(low: f64, high: f64, wanted: usize, smallest_step: f64) -> Vec<f64> {
    let rough = (high - low) / wanted.max(1) as f64;
    let exponent = rough.log10().floor() as i32;
    let mut step = power_of_ten(1.0, exponent + 1);
    for factor in [1.0, 2.0, 2.5, 5.0] {
        let whole = smallest_step < 1.0 || factor != 2.5 || exponent > 0;
        let candidate = power_of_ten(factor, exponent);
        if candidate >= rough * 0.85 && whole {
            step = candidate;
            break;
        }
    }
    step = step.max(smallest_step);
    let (first, last) = ((low / step).ceil(), (high / step).floor());
    let count = (last - first).clamp(-1.0, 50.0) as i64 + 1;
    (0..count)
        .map(|at| (first + at as f64) * step)
        .map(|value| if value == 0.0 { 0.0 } else { value })
        .collect()
}

/// Writes the ticks with the same number of decimals, or as differences to a
/// round value where six digits couldn't tell them apart.
fn label_ticks(values: Vec<f64>, low: f64, place: impl Fn(f64) -> f64) -> Ticks {
    let texts = tick_texts(&values);
    let distinct = texts.windows(2).all(|pair| pair[0] != pair[1]) && is_faithful(&values, &texts);
    if distinct || values.len() < 2 {
        let marks = values.iter().map(|v| place(*v)).zip(texts).collect();
        return Ticks {
            marks,
            offset: None,
        };
    }
    let offset = round_down(low);
    let differences: Vec<f64> = values.iter().map(|v| v - offset).collect();
    let texts = tick_texts(&differences)
        .into_iter()
        .map(|text| format!("+{text}"));
    Ticks {
        marks: values.iter().map(|v| place(*v)).zip(texts).collect(),
        offset: Some(offset),
    }
}

/// Whether the texts stand for evenly spaced values as they should.
fn is_faithful(values: &[f64], texts: &[String]) -> bool {
    let step = values
        .windows(2)
        .map(|pair| pair[1] - pair[0])
        .fold(f64::INFINITY, f64::min);
    values.iter().zip(texts).all(|(value, text)| {
        text.parse::<f64>()
            .is_ok_and(|read| (read - value).abs() <= step * 0.05)
    })
}

fn tick_texts(values: &[f64]) -> Vec<String> {
    let plain: Vec<String> = values.iter().map(|v| format_number(*v)).collect();
    if plain.iter().any(|text| text.contains('e')) {
        return plain;
    }
    let decimals_of = |text: &String| text.split_once('.').map_or(0, |(_, after)| after.len());
    let decimals = plain.iter().map(decimals_of).max().unwrap_or(0);
    let even: Vec<String> = values.iter().map(|v| format!("{v:.decimals$}")).collect();
    let digits = |text: &String| {
        let all: String = text.chars().filter(char::is_ascii_digit).collect();
        all.trim_start_matches('0').len()
    };
    let spread = values.iter().fold((f64::MAX, 0f64), |(low, high), v| {
        (low.min(v.abs()), high.max(v.abs()))
    });
    // Over several decades equal decimals would only add zeros.
    if even.iter().all(|text| digits(text) <= 6)
        && spread.1 <= spread.0.max(f64::MIN_POSITIVE) * 1e3
        || spread.0 == 0.0 && even.iter().all(|text| digits(text) <= 6)
    {
        even
    } else {
        plain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(low: f64, high: f64) -> (Vec<String>, Option<f64>) {
        let scale = Scale {
            logarithmic: false,
            blank: false,
            low,
            high,
        };
        let ticks = scale.ticks(5);
        (
            ticks.marks.into_iter().map(|(_, t)| t).collect(),
            ticks.offset,
        )
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(labels(0.93, 1.27).0, ["1.0", "1.1", "1.2"]);
        assert_eq!(labels(-3.0, 7.0).0, ["-2", "0", "2", "4", "6"]);
        assert_eq!(labels(0.0, 1e9).0, ["0", "2e8", "4e8", "6e8", "8e8", "1e9"]);
    }

    #[test]
    fn close_values_of_many_digits_are_told_by_their_difference() {
        let (texts, offset) = labels(1_234_567.1, 1_234_567.9);
        assert_eq!(offset, Some(1_234_560.0));
        assert_eq!(texts, ["+7.2", "+7.4", "+7.6", "+7.8"]);
    }

    #[test]
    fn whole_ticks_never_have_fractions() {
        for last in 0..40 {
            let ticks = Scale::for_trials(0, last).whole_ticks(8);
            assert!(!ticks.is_empty(), "{last}");
            assert!(ticks.len() <= 12, "{last}");
            assert!(ticks.windows(2).all(|p| p[0].1 != p[1].1), "{last}");
        }
    }

    #[test]
    fn ranges_of_any_size_stay_finite() {
        for (low, high) in [
            (0.0, 0.0),
            (1e300, 1e300),
            (-1e300, 1e300),
            (5e-324, 5e-324),
        ] {
            let scale = Scale::around(false, low, high);
            assert!(scale.low.is_finite() && scale.high.is_finite());
            assert!(scale.low < scale.high, "{low} {high}");
            let at = scale.position(low);
            assert!((0.0..=1.0).contains(&at));
            assert!(scale.ticks(5).marks.len() <= 51);
        }
    }
}

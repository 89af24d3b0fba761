//! A run's values in one line of characters, for status lines.

const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const PLAIN: [char; 8] = ['_', '.', ':', '-', '=', '+', '*', '#'];

/// Draws values as a line of at most `width` characters, taller for larger values.
///
/// Missing and non-finite values leave a blank: unknown is not zero. When there
/// are more values than characters, each character shows the last known value of
/// its stretch. Without `unicode` the heights are told by plain characters.
///
/// ```
/// use loopwright_report::sparkline;
/// assert_eq!(sparkline(&[Some(3.0), None, Some(1.0), Some(2.0)], 10, true), "█ ▁▅");
/// ```
pub fn sparkline(values: &[Option<f64>], width: usize, unicode: bool) -> String {
    let count = values.len().min(width);
    let shown: Vec<Option<f64>> = (0..count)
        .map(|at| {
            let from = at * values.len() / count;
            let to = (at + 1) * values.len() / count;
            let known = values[from..to].iter().rev().flatten();
            known.copied().find(|value| value.is_finite())
        })
        .collect();
    let known = || shown.iter().flatten().copied();
    let low = known().fold(f64::INFINITY, f64::min);
    let high = known().fold(f64::NEG_INFINITY, f64::max);
    let glyphs = if unicode { BLOCKS } else { PLAIN };
    shown
        .iter()
        .map(|value| value.map_or(' ', |value| glyphs[level(value, low, high)]))
        .collect()
}

fn level(value: f64, low: f64, high: f64) -> usize {
    // Halved before subtracting: the span of finite values may not be finite.
    let span = high / 2.0 - low / 2.0;
    if span <= 0.0 {
        return 3;
    }
    let share = (value / 2.0 - low / 2.0) / span;
    ((share * 7.0).round() as usize).min(7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes() {
        assert_eq!(sparkline(&[], 10, true), "");
        assert_eq!(sparkline(&[Some(1.0)], 0, true), "");
        assert_eq!(sparkline(&[Some(1.0); 3], 10, true), "▄▄▄");
        assert_eq!(sparkline(&[None, Some(f64::NAN)], 10, true), "  ");
        assert_eq!(sparkline(&[Some(f64::MIN), Some(f64::MAX)], 9, false), "_#");
    }

    #[test]
    fn long_series_are_shortened() {
        let values: Vec<_> = (0..1000).map(|v| Some(f64::from(v))).collect();
        let line = sparkline(&values, 8, true);
        assert_eq!(line, "▁▂▃▄▅▆▇█");
    }
}

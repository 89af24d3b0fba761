//! What the points say together: their order, the running best, segments, a summary.
//!
//! Both pictures start here, so that they can't disagree about what was kept,
//! where the best value stood, or which values are unknown.

use crate::model::{Mark, Point, Progress};
use crate::number::with_unit;
use crate::text::clean;

/// Beyond this a value can't be placed; far above anything that is measured.
const LARGEST: f64 = 1e300;

/// One point with its values made safe to draw.
pub(crate) struct Attempt<'a> {
    pub point: &'a Point,
    pub branch: usize,
    pub value: Option<f64>,
    pub confirmed: Option<f64>,
    pub interval: Option<(f64, f64)>,
}

impl Attempt<'_> {
    /// Whether it stands for an accepted state of the tree.
    pub(crate) fn accepted(&self) -> bool {
        matches!(self.point.mark, Mark::Kept | Mark::Baseline)
    }

    /// Where its mark stands on the value axis; `None` puts it on a strip.
    pub(crate) fn place(&self) -> Option<f64> {
        match self.point.mark {
            Mark::Kept | Mark::Baseline => self.value.or(self.confirmed),
            Mark::Rejected => self.value,
            Mark::Failed | Mark::Refused | Mark::NotMeasured => None,
        }
    }

    /// What an accepted attempt counts as: the confirmed value where there is one.
    pub(crate) fn level(&self) -> Option<f64> {
        self.confirmed.or(self.value).filter(|_| self.accepted())
    }

    /// The strip it belongs to when it has no place on the value axis.
    pub(crate) fn strip(&self) -> Option<Strip> {
        match self.point.mark {
            Mark::Failed => Some(Strip::Failed),
            Mark::Refused => Some(Strip::Refused),
            _ if self.place().is_none() => Some(Strip::NoValue),
            _ => None,
        }
    }
}

/// The rows at the edge for attempts without a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strip {
    Failed,
    Refused,
    NoValue,
}

impl Strip {
    pub(crate) const ALL: [Self; 3] = [Self::Failed, Self::Refused, Self::NoValue];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Refused => "refused",
            Self::NoValue => "no value",
        }
    }
}

/// The running best of one branch in one segment.
pub(crate) struct Lane {
    pub branch: usize,
    pub steps: Vec<Step>,
    /// Last trial of the branch in the segment: the line goes on to here.
    pub end_trial: u64,
}

/// From this trial on the best value was this.
pub(crate) struct Step {
    pub trial: u64,
    pub level: f64,
    pub interval: Option<(f64, f64)>,
}

/// First and best value of the newest segment that has any.
pub(crate) struct Headline {
    pub from: f64,
    pub to: f64,
    pub trial: u64,
    /// Relative change of positive values; `None` for others, or when nothing changed.
    pub change: Option<f64>,
    pub from_baseline: bool,
}

pub(crate) struct Analysis<'a> {
    pub progress: &'a Progress,
    pub attempts: Vec<Attempt<'a>>,
    pub branches: Vec<String>,
    pub lanes: Vec<Lane>,
    /// For each segment after the first: the last trial before it, its first trial, its number.
    pub boundaries: Vec<(u64, u64, u64)>,
    pub unit: Option<String>,
    pub target: Option<f64>,
}

impl<'a> Analysis<'a> {
    pub(crate) fn new(progress: &'a Progress) -> Self {
        let mut branches: Vec<String> = Vec::new();
        let mut places = std::collections::HashMap::new();
        let mut attempts: Vec<Attempt<'a>> = Vec::with_capacity(progress.points.len());
        for point in &progress.points {
            let branch = *places.entry(point.branch.as_str()).or_insert_with(|| {
                branches.push(clean(&point.branch));
                branches.len() - 1
            });
            attempts.push(Attempt {
                point,
                branch,
                value: usable(point.value),
                confirmed: usable(point.confirmed),
                interval: usable_interval(point.low_high),
            });
        }
        attempts.sort_by_key(|attempt| (attempt.point.trial, attempt.point.segment));
        let lanes = lanes(progress, &attempts);
        let boundaries = boundaries(&attempts);
        Self {
            progress,
            attempts,
            branches,
            lanes,
            boundaries,
            unit: progress.unit.as_deref().map(clean),
            target: usable(progress.target),
        }
    }

    /// First and last trial shown.
    pub(crate) fn trials(&self) -> Option<(u64, u64)> {
        let first = self.attempts.first()?.point.trial;
        let last = self.attempts.last()?.point.trial;
        Some((first, last))
    }

    /// The strips that have something on them.
    pub(crate) fn strips(&self) -> Vec<Strip> {
        let used = |strip: &Strip| self.attempts.iter().any(|a| a.strip() == Some(*strip));
        Strip::ALL.into_iter().filter(used).collect()
    }

    pub(crate) fn value_text(&self, value: f64) -> String {
        with_unit(value, self.unit.as_deref())
    }

    pub(crate) fn headline(&self) -> Option<Headline> {
        let with_level = || self.attempts.iter().filter(|a| a.level().is_some());
        let segment = with_level().map(|a| a.point.segment).max()?;
        let inside = || with_level().filter(move |a| a.point.segment == segment);
        let start = inside()
            .find(|a| a.point.mark == Mark::Baseline)
            .or_else(|| inside().next())?;
        let mut best = start;
        for attempt in inside() {
            let (level, best_level) = (attempt.level()?, best.level()?);
            if self.progress.better(level, best_level) {
                best = attempt;
            }
        }
        let (from, to) = (start.level()?, best.level()?);
        let change = (to - from) / from;
        // A share of a negative value, or to one, says nothing.
        let positive = from > 0.0 && to >= 0.0;
        Some(Headline {
            from,
            to,
            trial: best.point.trial,
            change: Some(change).filter(|c| positive && c.is_finite() && *c != 0.0),
            from_baseline: start.point.mark == Mark::Baseline,
        })
    }
}

fn usable(value: Option<f64>) -> Option<f64> {
    value.filter(|v| v.is_finite() && v.abs() <= LARGEST)
}

fn usable_interval(interval: Option<(f64, f64)>) -> Option<(f64, f64)> {
    let (low, high) = interval?;
    let (low, high) = (usable(Some(low))?, usable(Some(high))?);
    Some((low.min(high), low.max(high)))
}

fn lanes(progress: &Progress, attempts: &[Attempt<'_>]) -> Vec<Lane> {
    let mut lanes: std::collections::BTreeMap<(usize, u64), Lane> =
        std::collections::BTreeMap::new();
    for attempt in attempts {
        let key = (attempt.branch, attempt.point.segment);
        let lane = lanes.entry(key).or_insert_with(|| Lane {
            branch: key.0,
            steps: Vec::new(),
            end_trial: 0,
        });
        lane.end_trial = attempt.point.trial;
        let Some(level) = attempt.level() else {
            continue;
        };
        let improves = lane
            .steps
            .last()
            .is_none_or(|step| progress.better(level, step.level));
        if improves {
            lane.steps.push(Step {
                trial: attempt.point.trial,
                level,
                interval: attempt.interval,
            });
        }
    }
    lanes
        .into_values()
        .filter(|lane| !lane.steps.is_empty())
        .collect()
}

fn boundaries(attempts: &[Attempt<'_>]) -> Vec<(u64, u64, u64)> {
    let mut found = Vec::new();
    let mut newest: Option<u64> = None;
    let mut last_trial = 0;
    for attempt in attempts {
        let segment = attempt.point.segment;
        if newest.is_some_and(|newest| segment > newest) {
            found.push((last_trial, attempt.point.trial, segment));
        }
        newest = Some(newest.map_or(segment, |newest| newest.max(segment)));
        last_trial = attempt.point.trial;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(trial: u64, mark: Mark, value: f64) -> Point {
        Point {
            trial,
            mark,
            value: Some(value),
            ..Point::default()
        }
    }

    #[test]
    fn the_running_best_never_gets_worse_and_uses_confirmed_values() {
        let mut lucky = point(2, Mark::Kept, 7.0);
        lucky.confirmed = Some(9.0);
        let progress = Progress {
            metric: "m".into(),
            lower_is_better: true,
            points: vec![
                point(3, Mark::Kept, 9.5),
                point(0, Mark::Baseline, 10.0),
                point(1, Mark::Rejected, 1.0),
                lucky,
                point(4, Mark::Kept, 8.0),
            ],
            ..Progress::default()
        };
        let analysis = Analysis::new(&progress);
        let steps: Vec<_> = analysis.lanes[0]
            .steps
            .iter()
            .map(|s| (s.trial, s.level))
            .collect();
        assert_eq!(steps, [(0, 10.0), (2, 9.0), (4, 8.0)]);
        assert_eq!(
            analysis.sentence(),
            "m (lower is better), 4 attempts: 3 kept, 1 rejected. \
             From the baseline, 10, to 8 at trial 4, 20 % lower."
        );
    }

    #[test]
    fn segments_are_kept_apart() {
        let mut later = point(5, Mark::Baseline, 3.0);
        later.segment = 1;
        let progress = Progress {
            points: vec![
                point(0, Mark::Baseline, 1.0),
                point(4, Mark::Kept, 2.0),
                later,
            ],
            ..Progress::default()
        };
        let analysis = Analysis::new(&progress);
        assert_eq!(analysis.lanes.len(), 2);
        assert_eq!(analysis.boundaries, [(4, 5, 1)]);
        let head = analysis.headline().unwrap();
        assert_eq!((head.from, head.to), (3.0, 3.0));
    }

    #[test]
    fn values_that_are_unknown_stay_so() {
        let progress = Progress {
            points: vec![
                point(0, Mark::Baseline, f64::NAN),
                point(1, Mark::Failed, 0.0),
                point(2, Mark::Kept, f64::INFINITY),
            ],
            ..Progress::default()
        };
        let analysis = Analysis::new(&progress);
        assert!(analysis.attempts.iter().all(|a| a.place().is_none()));
        assert!(analysis.headline().is_none());
        assert_eq!(analysis.strips(), [Strip::Failed, Strip::NoValue]);
    }
}

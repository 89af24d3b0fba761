//! Made-up runs that show what pictures have to cope with.

use loopwright_report::{Mark, Point, Progress};

/// A small generator, so that the views never change.
pub struct Dice(u64);

impl Dice {
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number in 0..1.
    pub fn roll(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

pub fn point(trial: u64, mark: Mark, value: f64) -> Point {
    Point {
        trial,
        mark,
        value: Some(value),
        outcome: mark.word().to_owned(),
        ..Point::default()
    }
}

pub fn without_value(trial: u64, mark: Mark, outcome: &str) -> Point {
    Point {
        trial,
        mark,
        outcome: outcome.to_owned(),
        ..Point::default()
    }
}

pub fn progress(points: Vec<Point>) -> Progress {
    Progress {
        title: "Make the tokenizer faster".to_owned(),
        metric: "seconds".to_owned(),
        lower_is_better: true,
        unit: Some("s".to_owned()),
        target: None,
        points,
        notes: Vec::new(),
    }
}

fn kept(trial: u64, value: f64, confirmed: f64, label: &str) -> Point {
    Point {
        confirmed: Some(confirmed),
        low_high: Some((confirmed - 0.04, confirmed + 0.045)),
        label: Some(label.to_owned()),
        ..point(trial, Mark::Kept, value)
    }
}

/// An ordinary run: what the README shows.
pub fn ordinary() -> Progress {
    let mut dice = Dice::new(7);
    let mut points = vec![Point {
        low_high: Some((1.80, 1.89)),
        ..point(0, Mark::Baseline, 1.842)
    }];
    let kept_at = [
        (3, 1.66, 1.71, "read the file in one go"),
        (7, 1.52, 1.548, "intern repeated words"),
        (
            12,
            1.44,
            1.462,
            "table instead of match for character classes",
        ),
        (19, 1.28, 1.301, "split on byte slices"),
        (21, 1.26, 1.276, "drop the second pass"),
        (33, 1.19, 1.213, "reserve the output once"),
    ];
    let mut best = 1.842;
    for trial in 1..=38 {
        if let Some((_, value, confirmed, label)) = kept_at.iter().find(|k| k.0 == trial) {
            points.push(kept(trial, *value, *confirmed, label));
            best = *confirmed;
            continue;
        }
        points.push(match trial {
            5 => without_value(5, Mark::Failed, "timed_out"),
            15 => without_value(15, Mark::Failed, "failed"),
            16 => without_value(16, Mark::Failed, "no_metric"),
            24 => without_value(24, Mark::Refused, "harness_changed"),
            28 => without_value(28, Mark::NotMeasured, "duplicate"),
            30 => without_value(30, Mark::NotMeasured, "no_change"),
            _ => point(
                trial,
                Mark::Rejected,
                best + dice.roll().powi(2) * 0.55 - 0.02,
            ),
        });
    }
    Progress {
        target: Some(1.15),
        ..progress(points)
    }
}

/// Two lines of work, a changed harness, awkward words.
pub fn branches_and_segments() -> Progress {
    let mut points = vec![
        point(0, Mark::Baseline, 0.61),
        Point {
            label: Some("学习率减半，并使用余弦退火".to_owned()),
            ..point(2, Mark::Kept, 0.66)
        },
        point(3, Mark::Rejected, 0.58),
        Point {
            branch: "wide <&> \"deep\"".to_owned(),
            label: Some("twice the width".to_owned()),
            ..point(4, Mark::Kept, 0.70)
        },
        without_value(5, Mark::Failed, "out of memory"),
        Point {
            label: Some("label smoothing <0.1> & \x1b[31mred\x1b[0m".to_owned()),
            ..point(6, Mark::Kept, 0.68)
        },
        Point {
            branch: "wide <&> \"deep\"".to_owned(),
            ..point(7, Mark::Rejected, 0.69)
        },
        Point {
            branch: "wide <&> \"deep\"".to_owned(),
            label: Some("and a second layer of it, with a rather long explanation why".to_owned()),
            ..point(9, Mark::Kept, 0.74)
        },
    ];
    for (trial, mark, value) in [
        (10, Mark::Baseline, 0.55),
        (11, Mark::Rejected, 0.50),
        (12, Mark::Kept, 0.59),
        (13, Mark::Rejected, 0.56),
        (16, Mark::Kept, 0.63),
        (18, Mark::Rejected, 0.61),
    ] {
        points.push(Point {
            segment: 1,
            ..point(trial, mark, value)
        });
    }
    Progress {
        title: "Accuracy & <friends>".to_owned(),
        metric: "accuracy".to_owned(),
        lower_is_better: false,
        unit: None,
        target: Some(0.95),
        notes: vec!["The evaluation set was replaced before trial 10.".to_owned()],
        points,
    }
}

/// Many attempts of every kind.
pub fn many(count: u64) -> Progress {
    let mut dice = Dice::new(11);
    let mut best = 100.0;
    let mut points = vec![point(0, Mark::Baseline, best)];
    for trial in 1..count {
        let luck = dice.roll();
        let value = best * (0.99 + 0.3 * dice.roll() * dice.roll());
        points.push(if luck < 0.05 {
            without_value(trial, Mark::Failed, "failed")
        } else if luck < 0.055 {
            without_value(trial, Mark::Refused, "harness_changed")
        } else if luck < 0.08 {
            without_value(trial, Mark::NotMeasured, "no_change")
        } else if value < best && luck < 0.35 {
            best = value;
            Point {
                label: Some(format!("idea number {trial}")),
                confirmed: Some(value * 1.001),
                low_high: Some((value * 0.99, value * 1.01)),
                ..point(trial, Mark::Kept, value)
            }
        } else {
            point(trial, Mark::Rejected, value)
        });
    }
    progress(points)
}

/// Views at the borders of what can be drawn, by name.
pub fn borders() -> Vec<(&'static str, Progress)> {
    let all_kept = |count: u64, value: fn(u64) -> f64| {
        let points = (0..count).map(|at| point(at, Mark::Kept, value(at)));
        progress(points.collect())
    };
    vec![
        ("none", progress(Vec::new())),
        ("one", progress(vec![point(0, Mark::Baseline, 1.842)])),
        ("equal", all_kept(12, |_| 3.0)),
        ("zero", all_kept(5, |_| 0.0)),
        ("negative", all_kept(9, |at| -(at as f64) * 3.3 - 1.0)),
        ("huge", all_kept(9, |at| 10f64.powi(12 - 2 * at as i32))),
        (
            "extreme",
            all_kept(2, |at| if at == 0 { f64::MIN } else { f64::MAX }),
        ),
        (
            "widest",
            all_kept(2, |at| if at == 0 { -1e300 } else { 1e300 }),
        ),
        ("close", all_kept(6, |at| 1_234_567.0 + at as f64 * 0.01)),
        (
            "no_value",
            progress(vec![
                without_value(0, Mark::Kept, "kept"),
                without_value(1, Mark::Failed, "failed"),
                point(2, Mark::Rejected, f64::NAN),
            ]),
        ),
        (
            "outlier",
            progress(vec![
                point(0, Mark::Baseline, 1.0),
                point(1, Mark::Rejected, 1e9),
                point(2, Mark::Rejected, 1.01),
                point(3, Mark::Kept, 0.9),
                point(4, Mark::Rejected, -4e6),
                point(u64::MAX, Mark::Rejected, 0.92),
            ]),
        ),
    ]
}

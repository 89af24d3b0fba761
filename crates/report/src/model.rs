//! What a picture is made from: a plain view of one run, filled by the caller.

/// Everything the pictures show of one experiment run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Progress {
    /// The heading, usually the loop's name.
    pub title: String,
    /// Name of the number that is optimised.
    pub metric: String,
    /// Whether smaller values are better.
    pub lower_is_better: bool,
    /// Unit of the metric, written behind values.
    pub unit: Option<String>,
    /// The value at which the run would be done.
    pub target: Option<f64>,
    /// Every attempt and baseline, in any order.
    pub points: Vec<Point>,
    /// Sentences written under the picture.
    pub notes: Vec<String>,
}

/// One attempt, or one measured baseline.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Number of the trial; the horizontal axis.
    pub trial: u64,
    /// The line of work it belongs to.
    pub branch: String,
    /// The stretch with one harness; values of different segments aren't compared.
    pub segment: u64,
    /// What became of it.
    pub mark: Mark,
    /// The measured value (for a kept attempt: the one it was kept at).
    pub value: Option<f64>,
    /// The value found when the keep was confirmed.
    pub confirmed: Option<f64>,
    /// Interval of the value, in the metric's unit.
    pub low_high: Option<(f64, f64)>,
    /// What was changed; shown beside kept attempts.
    pub label: Option<String>,
    /// The outcome as the record words it (`kept`, `timed_out`, ...).
    pub outcome: String,
}

impl Default for Point {
    fn default() -> Self {
        Self {
            trial: 0,
            branch: "main".to_owned(),
            segment: 0,
            mark: Mark::NotMeasured,
            value: None,
            confirmed: None,
            low_high: None,
            label: None,
            outcome: String::new(),
        }
    }
}

/// What became of an attempt, as far as a picture tells it apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mark {
    /// The tree as it stood when the segment began.
    Baseline,
    /// Accepted: the new incumbent.
    Kept,
    /// Measured and not accepted.
    Rejected,
    /// Broke: no value came out.
    Failed,
    /// Not measured because it touched what it must not (the harness).
    Refused,
    /// Nothing to measure: no change, or seen before.
    NotMeasured,
}

impl Mark {
    /// The character that stands for the mark wherever only text can be shown.
    pub const fn symbol(self) -> char {
        match self {
            Self::Baseline => 'B',
            Self::Kept => '+',
            Self::Rejected => '-',
            Self::Failed => '!',
            Self::Refused => 'H',
            Self::NotMeasured => '=',
        }
    }

    /// The mark in words, as legends show it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Kept => "kept",
            Self::Rejected => "rejected",
            Self::Failed => "failed",
            Self::Refused => "refused",
            Self::NotMeasured => "not measured",
        }
    }
}

/// How many attempts ended in which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Measured baselines; they are not attempts.
    pub baseline: usize,
    /// Accepted attempts.
    pub kept: usize,
    /// Measured and not accepted.
    pub rejected: usize,
    /// Without a value because something broke.
    pub failed: usize,
    /// Not measured because they touched what is protected.
    pub refused: usize,
    /// Without anything to measure.
    pub not_measured: usize,
}

impl Counts {
    /// All attempts, baselines apart.
    pub const fn attempts(self) -> usize {
        self.kept + self.rejected + self.failed + self.refused + self.not_measured
    }

    /// The number for one mark.
    pub const fn of(self, mark: Mark) -> usize {
        match mark {
            Mark::Baseline => self.baseline,
            Mark::Kept => self.kept,
            Mark::Rejected => self.rejected,
            Mark::Failed => self.failed,
            Mark::Refused => self.refused,
            Mark::NotMeasured => self.not_measured,
        }
    }
}

impl Progress {
    /// Counts the attempts by their mark.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for point in &self.points {
            match point.mark {
                Mark::Baseline => counts.baseline += 1,
                Mark::Kept => counts.kept += 1,
                Mark::Rejected => counts.rejected += 1,
                Mark::Failed => counts.failed += 1,
                Mark::Refused => counts.refused += 1,
                Mark::NotMeasured => counts.not_measured += 1,
            }
        }
        counts
    }

    /// Whether `left` is better than `right`.
    pub(crate) fn better(&self, left: f64, right: f64) -> bool {
        if self.lower_is_better {
            left < right
        } else {
            left > right
        }
    }

    /// "lower is better" or "higher is better".
    pub(crate) const fn direction(&self) -> &'static str {
        if self.lower_is_better {
            "lower is better"
        } else {
            "higher is better"
        }
    }
}

//! A loop under the keep rule and nothing around it: purse, standing and the case of one candidate
//! after the other.

use loopwright_core::experiment::rule::keep::{Case, Failed, Keep, Purse, Scale, Standing};
use loopwright_core::experiment::rule::{Arm, Verdict, Want};
use loopwright_core::metric::Real;
use loopwright_core::spec::Goal;

/// The most that all of the rule's state may take when it is written down.
const STATE_BYTES_MAX: usize = 8 * 1024;

/// A loop between readings.
#[derive(Clone, Debug, PartialEq)]
pub struct Bench {
    pub rule: Keep,
    pub goal: Goal,
    pub purse: Purse,
    pub standing: Standing,
    pub case: Option<Case>,
    /// The last verdict.
    pub verdict: Option<Verdict>,
    /// Runs so far.
    pub runs: u64,
    /// Write the state down and read it back after every reading.
    pub careful: bool,
}

impl Bench {
    pub fn new(rule: Keep) -> Self {
        Self::towards(Goal::Minimize, rule)
    }

    pub fn towards(goal: Goal, rule: Keep) -> Self {
        let scale = Scale {
            goal,
            ratio: rule.ratio,
        };
        Self {
            rule,
            goal,
            purse: Purse::new(&rule),
            standing: Standing::new(&rule, scale),
            case: None,
            verdict: None,
            runs: 0,
            careful: true,
        }
    }

    /// The arm that is wanted.
    pub fn want(&self) -> Arm {
        match self.case.as_ref().map(Case::want) {
            None => Arm::Incumbent,
            Some(Want::Measure(arm)) => arm,
            Some(Want::Verdict(_)) => panic!("a decided case was left open"),
        }
    }

    /// A reading of the arm that is wanted; whether the candidate was kept, where that ends its case.
    pub fn feed(&mut self, value: f64) -> Option<bool> {
        let scale = self.standing.scale();
        let judged = scale.judged(Real::new(value).unwrap()).unwrap();
        self.runs += 1;
        let Some(mut case) = self.case.take() else {
            self.standing.baseline(judged);
            self.open();
            return None;
        };
        let Want::Measure(arm) = case.want() else {
            panic!("a decided case was left open");
        };
        case.feed(arm, judged, &mut self.purse, &mut self.standing);
        let want = case.want();
        self.case = Some(case);
        if self.careful {
            self.write_and_read();
        }
        let Want::Verdict(verdict) = want else {
            return None;
        };
        let kept = verdict.better;
        self.verdict = Some(verdict);
        self.close(kept);
        Some(kept)
    }

    /// Several readings; how the last one ended.
    pub fn feed_all(&mut self, values: &[f64]) -> Option<bool> {
        values
            .iter()
            .map(|value| self.feed(*value))
            .last()
            .flatten()
    }

    /// A failed run of the arm that is wanted.
    pub fn fail(&mut self) -> Failed {
        let arm = self.want();
        self.runs += 1;
        let case = self.case.as_mut().expect("an open case");
        case.fail(arm, &mut self.standing)
    }

    /// Ends the open case as the loop decides, and opens the next one.
    pub fn close(&mut self, kept: bool) {
        if let Some(case) = self.case.take() {
            case.close(kept, &mut self.purse, &mut self.standing);
        }
        self.open();
    }

    fn open(&mut self) {
        self.case = Some(Case::open(self.rule, self.goal, &self.standing));
    }

    fn write_and_read(&mut self) {
        let all = (&self.purse, &self.standing, &self.case);
        let text = serde_json::to_string(&all).unwrap();
        assert!(
            text.len() < STATE_BYTES_MAX,
            "a state of {} bytes",
            text.len()
        );
        let back: (Purse, Standing, Option<Case>) = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (&back.0, &back.1, &back.2),
            all,
            "what was read back differs"
        );
        (self.purse, self.standing, self.case) = back;
    }

    /// Where the loop stands: reference, its readings, standard deviation, degrees of freedom, purse.
    pub fn stands(&self) -> [f64; 5] {
        let (reference, readings) = self.standing.stands_at().unwrap_or_default();
        [
            reference,
            readings,
            self.standing.deviation().unwrap_or(0.0),
            self.standing.freedom(),
            self.purse.left(),
        ]
    }

    /// Why the last case was decided so.
    pub fn why(&self) -> &str {
        self.verdict.as_ref().map_or("", |verdict| &verdict.why)
    }
}

pub fn real(value: f64) -> Real {
    Real::new(value).unwrap()
}

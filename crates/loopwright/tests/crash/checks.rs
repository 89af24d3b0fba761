//! What must hold after whatever was done to a bench.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use loopwright_core::ids::LoopName;
use loopwright_core::kernel::kind;
use loopwright_record::{Journal as _, OpenMode, Select, Store};
use serde_json::Value;

use crate::bench::{Bench, TRIALS, names};
use crate::common::await_no_process_with;

impl Bench {
    /// The digest of all decisions.
    pub fn decisions(&self) -> String {
        let status: Value =
            serde_json::from_str(self.output(&["status", "--json"]).lines().next().unwrap())
                .unwrap();
        status["decisions"].as_str().unwrap().to_owned()
    }

    /// The numbers of the decided trials.
    pub fn trials(&self) -> Vec<u64> {
        let done = self.loopwright(&["log", "--json"]).output().unwrap();
        let text = String::from_utf8(done.stdout).unwrap();
        let number = |line: &str| serde_json::from_str::<Value>(line).ok()?["trial"].as_u64();
        text.lines().filter_map(number).collect()
    }

    /// How many invocations have begun.
    pub fn invocations(&self) -> usize {
        let store = Store::open(&self.repository().join(".git/loopwright"), OpenMode::Read);
        let store = store.unwrap();
        let name = LoopName::new("default").unwrap();
        let run = store.latest_run(&name).unwrap().unwrap().run;
        let begun = store.events_of_kind(&run, kind::INVOCATION_BEGUN, Select::newest(100));
        begun.unwrap().len()
    }

    /// What must hold at the end; at most `repeats` commands were begun again.
    pub fn check(&self, plan: &str, repeats: usize) {
        assert_eq!(
            self.trials(),
            (0..=TRIALS).collect::<Vec<_>>(),
            "{plan}: trials"
        );
        let ledger = self.ledger();
        let begun: Vec<&str> = ledger
            .lines()
            .filter(|line| line.starts_with("begin"))
            .collect();
        // Baseline and three measurements, one more of each that wins, five proposals.
        let once = 6 + TRIALS as usize;
        assert!(
            begun.len() >= once && begun.len() <= once + repeats,
            "{plan}: {begun:?}"
        );
        self.check_attempts(plan);
        self.check_briefs(plan);
        let branch = if self.in_place {
            "main"
        } else {
            "loopwright/default/main"
        };
        let kept = self
            .command("git", &["log", "--format=%s", branch])
            .output()
            .unwrap();
        assert_eq!(
            String::from_utf8(kept.stdout).unwrap(),
            "loopwright: m 4 (was 5)\nloopwright: m 5 (was 10)\nstart\n",
            "{plan}: the loop's branch"
        );
        self.check_untouched(plan);
    }

    /// What must hold at the end of whatever was driven: the user's things are as they were, the
    /// record is whole, nothing runs.
    pub fn check_untouched(&self, plan: &str) {
        assert_eq!(
            self.users(),
            self.before,
            "{plan}: something of the user's was touched"
        );
        self.output(&["verify"]);
        self.output(&["replay"]);
        self.await_no_process(plan);
        let running = self.repository().join(".git/loopwright/running");
        // The note of a command that is gone is blank, and the next one is written over it.
        let notes = fs::read_dir(running).into_iter().flatten().flatten();
        let left = notes
            .filter(|note| fs::read(note.path()).is_ok_and(|text| !text.trim_ascii().is_empty()));
        assert_eq!(left.count(), 0, "{plan}: commands are noted as running");
    }

    /// No command began more often than the record has attempts at its effect, and every effect
    /// was settled once at most: what was settled was never done again.
    fn check_attempts(&self, plan: &str) {
        let store = Store::open(&self.repository().join(".git/loopwright"), OpenMode::Read);
        let store = store.unwrap();
        let name = LoopName::new("default").unwrap();
        let run = store.latest_run(&name).unwrap().unwrap().run;
        let mut attempts: BTreeMap<String, u32> = BTreeMap::new();
        let mut settled = BTreeSet::new();
        for batch in store.batches(&run, 0).unwrap() {
            for sealed in batch.unwrap().events {
                let event = sealed.event;
                let Some(effect) = event.effect else {
                    continue;
                };
                let most = attempts.entry(effect.as_str().to_owned()).or_default();
                *most = (*most).max(event.attempt.unwrap_or(1));
                if event.kind == "effect.settled" {
                    assert!(
                        settled.insert(effect.clone()),
                        "{plan}: {effect} settled twice"
                    );
                }
            }
        }
        let ledger = self.ledger();
        for trial in 1..=TRIALS {
            let line = format!("begin propose {trial}");
            let begun = ledger.lines().filter(|found| *found == line).count();
            let most = attempts.get(&format!("t{trial}/propose")).copied();
            assert!(
                begun <= most.unwrap_or(0) as usize,
                "{plan}: {line}: {begun} times, attempts {attempts:?}"
            );
        }
    }

    /// Every attempt of a proposal was told the same, to the byte.
    fn check_briefs(&self, plan: &str) {
        let mut told: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        for name in names(&self.path("")) {
            let Some((trial, attempt)) = name
                .strip_prefix("ledger.brief-")
                .and_then(|rest| rest.split_once('-'))
            else {
                continue;
            };
            // One that is still being written is named otherwise.
            if attempt.parse::<u32>().is_err() {
                continue;
            }
            let brief = fs::read(self.path(&name)).unwrap();
            let first = told
                .entry(trial.to_owned())
                .or_insert_with(|| brief.clone());
            let (first, brief) = (
                String::from_utf8_lossy(first),
                String::from_utf8_lossy(&brief),
            );
            assert_eq!(
                first, brief,
                "{plan}: attempts of trial {trial} were told differently"
            );
        }
        assert_eq!(told.len() as u64, TRIALS, "{plan}: briefs");
    }

    /// All that is the user's: configuration, hooks, refs but the loop's, HEAD, files.
    pub fn users(&self) -> String {
        let git = |arguments: &[&str]| {
            let done = self.command("git", arguments).output().unwrap();
            String::from_utf8(done.stdout).unwrap()
        };
        let refs = git(&["for-each-ref", "--format=%(refname) %(objectname)"]);
        let refs: Vec<&str> = refs
            .lines()
            .filter(|line| !line.starts_with("refs/heads/loopwright/"))
            .filter(|line| !self.in_place || !line.starts_with("refs/heads/main "))
            .collect();
        let read = |name: &str| fs::read_to_string(self.repository().join(name)).unwrap();
        let mut hooks: Vec<_> = names(&self.repository().join(".git/hooks"));
        hooks.sort();
        // In place, the loop is there to change it.
        let x = if self.in_place {
            String::new()
        } else {
            read("x")
        };
        format!(
            "{refs:?} {hooks:?} {} {} {x} {:?}",
            read(".git/config"),
            read(".git/HEAD"),
            git(&["status", "--porcelain", "--ignored"])
        )
    }

    /// Waits until no process carries this bench's mark.
    pub fn await_no_process(&self, plan: &str) {
        await_no_process_with(&format!("MARK={}", self.mark), plan);
    }
}

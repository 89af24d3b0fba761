//! Verifying a run with everything this host has: the chain, the machine's fold, the blobs, and the
//! git objects the record names, down to the files of each tree.

use std::cell::RefCell;
use std::collections::HashSet;

use loopwright_core::experiment::Experiment;
use loopwright_core::ids::RunId;
use loopwright_git::{Mode, ObjectStore, Objects as _, Oid};
use loopwright_record::{
    Checks, Finding, FindingKind, Folding, GitCheck, Report, Store, VerifyError,
};

/// Verifies a run; without an object store the git objects are left out, and the report says so.
pub fn verify(
    store: &Store,
    run: &RunId,
    objects: Option<ObjectStore>,
) -> Result<Report, VerifyError> {
    let git = objects.map(|objects| GitObjects {
        inside: RefCell::new(Inside {
            objects,
            whole: HashSet::new(),
        }),
    });
    let mut fold = Folding::<Experiment>::new(run);
    let checks = Checks {
        git: git.as_ref().map(|git| git as &dyn GitCheck),
        fold: Some(&mut fold),
    };
    let mut report = loopwright_record::verify(store, run, checks)?;
    let state = fold.run().state.as_ref();
    if let (Some(git), Some(link)) = (&git, state.and_then(|state| state.chain_commit.as_ref())) {
        report.findings.extend(git.lost_chain(run, link));
    }
    Ok(report)
}

struct GitObjects {
    inside: RefCell<Inside>,
}

struct Inside {
    objects: ObjectStore,
    /// What was found whole already, so that the files that trees share are read once.
    whole: HashSet<Oid>,
}

impl GitCheck for GitObjects {
    fn faults(&self) -> Vec<String> {
        self.inside.borrow().objects.faults()
    }

    fn missing(&self, oids: &[String]) -> Vec<String> {
        let mut inside = self.inside.borrow_mut();
        let broken = oids.iter().filter(|oid| !inside.is_whole(oid));
        broken.cloned().collect()
    }
}

impl GitObjects {
    /// What is wrong with the reference that keeps a run's candidates, of which the record names one.
    fn lost_chain(&self, run: &RunId, recorded: &str) -> Option<Finding> {
        let objects = &mut self.inside.borrow_mut().objects;
        let what = objects.chain_fault(run.as_str(), recorded.parse().ok())?;
        Some(Finding {
            kind: FindingKind::Git,
            batch: None,
            seq: None,
            words: format!("run {run}: the reference of its candidates: {what}"),
        })
    }
}

impl Inside {
    /// Whether an object can be read, and everything a checkout of it would need.
    fn is_whole(&mut self, name: &str) -> bool {
        let Ok(oid) = name.parse::<Oid>() else {
            return false;
        };
        if self.whole.contains(&oid) {
            return true;
        }
        let whole = match self.objects.intact_kind(&oid).as_deref() {
            None => false,
            Some("commit") => match self.objects.read_commit(&oid) {
                Ok(facts) => self.is_whole_tree(&facts.tree),
                Err(_) => false,
            },
            Some("tree") => self.is_whole_tree(&oid),
            Some(_) => true,
        };
        if whole {
            self.whole.insert(oid);
        }
        whole
    }

    fn is_whole_tree(&mut self, tree: &Oid) -> bool {
        if self.whole.contains(tree) {
            return true;
        }
        let Ok(listing) = self.objects.listing(tree) else {
            return false;
        };
        for (mode, oid) in listing.values() {
            // A submodule's commit is in a repository of its own.
            let is_here = *mode == Mode::Submodule
                || self.whole.contains(oid)
                || self.objects.intact_kind(oid).is_some();
            if !is_here {
                return false;
            }
            self.whole.insert(*oid);
        }
        self.whole.insert(*tree);
        true
    }
}

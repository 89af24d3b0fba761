//! Two processes started at once, in a repository that has no store yet.

use loopwright_record::{OpenMode, Store};

use crate::common::await_that;
use crate::rig::{Rig, words_of};

const HELD: &str = "while [ ! -e \"$OUTSIDE/go\" ]; do sleep 0.02; done; echo 5 > x";

fn runs(rig: &Rig) -> usize {
    let folder = rig.repository().join(".git/loopwright");
    let store = Store::open(&folder, OpenMode::Read).unwrap();
    store.runs().unwrap().len()
}

#[test]
fn of_one_loop_make_one_run() {
    for in_place in [false, true] {
        let rig = Rig::new();
        let more: &[&str] = if in_place { &["--in-place"] } else { &[] };
        let start = || rig.start(&rig.repository(), "a", HELD, more);
        let mut children = [start(), start()];
        // One of them is refused while the other one's proposal waits.
        let mut refused = None;
        await_that("one to be refused", || {
            let ended = |child: &mut std::process::Child| child.try_wait().unwrap().is_some();
            refused = children.iter_mut().position(ended);
            refused.is_some()
        });
        let [first, second] = children;
        let (refused, driving) = match refused {
            Some(0) => (first, second),
            _ => (second, first),
        };
        let words = words_of(&refused.wait_with_output().unwrap(), 6);
        assert!(words.contains("is driven by"), "{words}");
        rig.touch("go");
        words_of(&driving.wait_with_output().unwrap(), 0);
        assert_eq!(runs(&rig), 1);
        rig.loopwright(&["verify"]);
    }
}

#[test]
fn of_two_loops_both_work() {
    let rig = Rig::new();
    rig.touch("go");
    let children = ["a", "b", "c"].map(|name| rig.start(&rig.repository(), name, HELD, &[]));
    for child in children {
        words_of(&child.wait_with_output().unwrap(), 0);
    }
    assert_eq!(runs(&rig), 3);
    for name in ["a", "b", "c"] {
        rig.loopwright(&["verify", "--loop", name]);
        let file = format!("loopwright/{name}/main:x");
        assert_eq!(rig.git(&["show", &file]), "5\n");
    }
}

//! Random proposals: the snapshot is what `git add -A` takes, and the reset undoes everything.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use proptest::prelude::*;

use crate::test_support::{TestRepository, commit_tree, listing};
use crate::{ObjectStore, ProposerRepository, UserRepository};

/// Few names, so that files, links and directories often want the same place.
const PATHS: &[&str] = &[
    "x",
    "run.sh",
    "a",
    "a/b",
    "a/b/c",
    "d/x",
    "d/e/f",
    "d/e",
    "d",
    "i.log",
    ".gitignore",
    "d/.gitignore",
    "d/e/i.log",
];

const CONTENTS: &[&str] = &["", "10\n", "*.log\n", "e/\n", "!i.log\n", "other\n", "/a\n"];

#[derive(Debug, Clone)]
enum Act {
    Write(usize, usize),
    Remove(usize),
    Directory(usize),
    Executable(usize, bool),
    Link(usize, usize),
    Rename(usize, usize),
    Commit,
}

fn act() -> impl Strategy<Value = Act> {
    let path = 0..PATHS.len();
    let content = 0..CONTENTS.len();
    prop_oneof![
        5 => (path.clone(), content).prop_map(|(path, content)| Act::Write(path, content)),
        3 => path.clone().prop_map(Act::Remove),
        1 => path.clone().prop_map(Act::Directory),
        1 => (path.clone(), any::<bool>()).prop_map(|(path, set)| Act::Executable(path, set)),
        2 => (path.clone(), path.clone()).prop_map(|(path, to)| Act::Link(path, to)),
        2 => (path.clone(), path).prop_map(|(path, to)| Act::Rename(path, to)),
        1 => Just(Act::Commit),
    ]
}

fn remove(path: &Path) {
    if fs::remove_file(path).is_err() {
        let _ = fs::remove_dir_all(path);
    }
}

/// Does it if it can be done; what can't is no proposal.
fn perform(repository: &TestRepository, work: &Path, act: &Act) {
    match act {
        Act::Write(path, content) => {
            let path = work.join(PATHS[*path]);
            let _ = fs::create_dir_all(path.parent().unwrap());
            let _ = fs::remove_file(&path);
            let _ = fs::write(path, CONTENTS[*content]);
        }
        Act::Remove(path) => remove(&work.join(PATHS[*path])),
        Act::Directory(path) => {
            let path = work.join(PATHS[*path]);
            let _ = fs::remove_file(&path);
            let _ = fs::create_dir_all(path);
        }
        Act::Executable(path, set) => {
            let path = work.join(PATHS[*path]);
            let mode = if *set { 0o755 } else { 0o644 };
            if fs::symlink_metadata(&path).is_ok_and(|facts| facts.is_file()) {
                fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
            }
        }
        Act::Link(path, to) => {
            let path = work.join(PATHS[*path]);
            remove(&path);
            let _ = symlink(PATHS[*to], path);
        }
        Act::Rename(path, to) => {
            let _ = fs::rename(work.join(PATHS[*path]), work.join(PATHS[*to]));
        }
        Act::Commit => repository.shell(work, "git add -A; git commit -qm mine >/dev/null || true"),
    }
}

struct Scene {
    repository: TestRepository,
    user: UserRepository,
    store: ObjectStore,
    proposer: ProposerRepository,
    clean: String,
}

fn scene() -> Scene {
    let repository = TestRepository::new();
    repository.write("d/x", "1\n");
    repository.write("d/e/f", "1\n");
    repository.write(".gitignore", "*.log\n");
    repository.commit_all("more");
    let (user, mut store) = repository.store();
    let identity = user.identity().unwrap();
    let place = repository.outside("proposer");
    let mut proposer = ProposerRepository::create(&place, &user, &mut store, &identity).unwrap();
    proposer.reset_to(&mut store, &user.head).unwrap();
    let clean = listing(proposer.work_tree());
    Scene {
        repository,
        user,
        store,
        proposer,
        clean,
    }
}

fn check(scene: &mut Scene, acts: &[Act]) {
    let work = scene.proposer.work_tree().to_path_buf();
    for act in acts {
        perform(&scene.repository, &work, act);
    }
    let ours = scene.proposer.snapshot(&mut scene.store).unwrap();
    let full = scene.proposer.full_snapshot(&mut scene.store).unwrap();
    assert_eq!(ours.tree, full.tree);
    let script = "rm -f .git/index; git read-tree \"$BASE\"; git add -A";
    let script = format!("BASE={}; {script}", scene.user.head);
    scene.repository.shell(&work, &script);
    let theirs = scene.repository.git_in(&work, ["write-tree"]);
    if ours.tree.to_hex() != theirs {
        let found = scene.repository.git_in(&work, ["ls-files", "-s"]);
        panic!("ours {ours:?}\ntheirs {found}");
    }
    // To the candidate and back.
    let kept = commit_tree(&mut scene.store, ours.tree, &[scene.user.head], "kept");
    scene.proposer.reset_to(&mut scene.store, &kept).unwrap();
    let again = scene.proposer.full_snapshot(&mut scene.store).unwrap();
    assert_eq!((again.tree, again.changes), (ours.tree, Vec::new()));
    let head = scene.user.head;
    scene.proposer.reset_to(&mut scene.store, &head).unwrap();
    assert_eq!(listing(&work), scene.clean);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1,
        failure_persistence: None,
        .. ProptestConfig::default()
    })]
    #[test]
    fn snapshots_are_what_git_would_take(
        proposals in prop::collection::vec(prop::collection::vec(act(), 1..8), 30)
    ) {
        // One repository for many proposals: what one leaves must not show in the next.
        let mut scene = scene();
        for acts in &proposals {
            check(&mut scene, acts);
        }
    }
}

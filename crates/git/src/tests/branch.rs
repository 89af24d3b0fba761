//! The loop's branch: kept commits arrive whole, and the user is never fought.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::test_support::{TestRepository, commit_tree};
use crate::types::{Change, Mode, ObjectFormat, Oid, RepoPath};
use crate::{GitError, ObjectStore, Published, UserBranch, UserRepository};

fn kept(store: &mut ObjectStore, parent: &Oid, content: &str) -> Oid {
    let base = store.read_commit(parent).unwrap().tree;
    let oid = store.write_blob(content.as_bytes()).unwrap();
    let change = Change {
        path: RepoPath::from("x"),
        before: None,
        after: Some((Mode::File, oid)),
    };
    let tree = store.write_tree(&base, &[change]).unwrap();
    commit_tree(store, tree, &[*parent], &format!("keep {content}"))
}

fn scene(format: ObjectFormat) -> (TestRepository, UserRepository, ObjectStore, UserBranch) {
    let repository = TestRepository::with_format(format);
    let (user, store) = repository.store();
    let branch = UserBranch::new(&user, "speed", "main").unwrap();
    (repository, user, store, branch)
}

#[test]
fn kept_commits_arrive_and_nothing_else_changes() {
    for format in [ObjectFormat::Sha1, ObjectFormat::Sha256] {
        let (repository, user, mut store, branch) = scene(format);
        // No hook of the user's may run, whatever it would do.
        for hook in ["reference-transaction", "post-checkout", "pre-commit"] {
            let path = repository.top.join(".git/hooks").join(hook);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "#!/bin/sh\ntouch hook-ran\nexit 1\n").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let before = repository.fingerprint();
        assert_eq!(
            branch.publish(&mut store, &user.head, None).unwrap(),
            Published::Moved
        );
        let one = kept(&mut store, &user.head, "5\n");
        branch.publish(&mut store, &one, Some(user.head)).unwrap();
        let again = branch.publish(&mut store, &one, Some(user.head)).unwrap();
        assert_eq!(again, Published::AlreadyThere);
        let two = kept(&mut store, &one, "4\n");
        branch.publish(&mut store, &two, Some(one)).unwrap();
        assert_eq!(repository.fingerprint(), before);
        assert_eq!(repository.git(["show", "loopwright/speed/main:x"]), "4");
        repository.git(["fsck", "--full", "--strict", "--no-dangling"]);
        let log = repository.git(["log", "--format=%an %s", "loopwright/speed/main"]);
        assert_eq!(log, "A User keep 4\nA User keep 5\nA User start");
        assert!(!repository.top.join("hook-ran").exists());
    }
}

#[test]
fn a_branch_the_user_moved_deleted_or_checked_out_is_left_alone() {
    let (repository, user, mut store, branch) = scene(ObjectFormat::Sha1);
    branch.publish(&mut store, &user.head, None).unwrap();
    let one = kept(&mut store, &user.head, "5\n");
    repository.git(["branch", "-q", "-D", "loopwright/speed/main"]);
    let error = branch
        .publish(&mut store, &one, Some(user.head))
        .unwrap_err();
    assert!(
        matches!(error, GitError::Moved { found: None, .. }),
        "{error}"
    );
    repository.git(["checkout", "-q", "-b", "loopwright/speed/main"]);
    let error = branch
        .publish(&mut store, &one, Some(user.head))
        .unwrap_err();
    assert!(matches!(error, GitError::CheckedOut { .. }), "{error}");
    let mine = repository.commit_all("the user's own");
    let error = branch
        .publish(&mut store, &one, Some(user.head))
        .unwrap_err();
    assert!(
        matches!(error, GitError::Moved { found: Some(found), .. } if found == mine),
        "{error}"
    );
    assert_eq!(branch.current().unwrap(), Some(mine));
    store.read_commit(&one).unwrap();
}

#[test]
fn a_branch_named_loopwright_is_named_as_the_obstacle() {
    let (repository, user, mut store, branch) = scene(ObjectFormat::Sha1);
    repository.git(["branch", "-q", "loopwright"]);
    let error = branch.publish(&mut store, &user.head, None).unwrap_err();
    assert!(matches!(error, GitError::BranchInTheWay { .. }), "{error}");
    assert!(UserBranch::new(&user, "a..b", "main").is_err());
}

#[test]
fn c20_the_user_rebases_and_collects_garbage_during_the_run() {
    let repository = TestRepository::new();
    repository.write("x", "11\n");
    repository.commit_all("second");
    let (user, mut store) = repository.store();
    let branch = UserBranch::new(&user, "speed", "main").unwrap();
    branch.publish(&mut store, &user.head, None).unwrap();
    let rewrite = "git commit -q --amend -m other; git reflog expire --expire=now --all; \
                   git gc -q --prune=now; git worktree prune";
    repository.shell(&repository.top, rewrite);
    let one = kept(&mut store, &user.head, "5\n");
    branch.publish(&mut store, &one, Some(user.head)).unwrap();
    repository.git(["fsck", "--full", "--no-dangling"]);
    // Without the branch to hold it the base goes, and publishing must not break the repository.
    repository.git(["branch", "-q", "-D", "loopwright/speed/main"]);
    repository.shell(&repository.top, rewrite);
    let error = branch.publish(&mut store, &one, None).unwrap_err();
    assert!(matches!(error, GitError::BaseGone { .. }), "{error}");
    repository.git(["fsck", "--full", "--no-dangling"]);
}

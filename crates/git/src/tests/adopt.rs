//! Adopting: the user's configuration applies, and what fails leaves the checkout as it was.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::test_support::{TestRepository, Unsupervised, commit_tree};
use crate::types::{Change, Mode, Oid, RepoPath};
use crate::{
    Adopted, GitError, ObjectStore, Obstacle, UserBranch, UserCommand, UserCommands,
    UserRepository, UserRun, adopt_branch, adopt_candidate,
};

struct Scene {
    repository: TestRepository,
    user: UserRepository,
    store: ObjectStore,
    branch: UserBranch,
    base: Oid,
}

impl Scene {
    fn new() -> Self {
        let repository = TestRepository::new();
        let (user, mut store) = repository.store();
        let branch = UserBranch::new(&user, "speed", "main").unwrap();
        branch.publish(&mut store, &user.head, None).unwrap();
        Self {
            base: user.head,
            repository,
            user,
            store,
            branch,
        }
    }

    fn candidate(&mut self, parent: Oid, files: &[(&str, &str)]) -> Oid {
        let tree = self.store.read_commit(&parent).unwrap().tree;
        let mut changes = Vec::new();
        for (path, content) in files {
            let oid = self.store.write_blob(content.as_bytes()).unwrap();
            changes.push(Change {
                path: RepoPath::from(*path),
                before: None,
                after: Some((Mode::File, oid)),
            });
        }
        let tree = self.store.write_tree(&tree, &changes).unwrap();
        commit_tree(&mut self.store, tree, &[parent], "candidate")
    }

    fn keep(&mut self, files: &[(&str, &str)]) -> Oid {
        let kept = self.candidate(self.base, files);
        self.branch
            .publish(&mut self.store, &kept, Some(self.base))
            .unwrap();
        kept
    }

    fn hook(&self, name: &str, script: &str) {
        let path = self.repository.top.join(".git/hooks").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn adopt(&mut self, candidate: Oid) -> Adopted {
        let message = "adopt trial 3\n";
        adopt_candidate(
            &self.user,
            &mut self.store,
            &candidate,
            message,
            &mut Unsupervised,
        )
        .unwrap()
    }

    /// All that an adoption may change.
    fn standing(&self) -> String {
        let git = &self.repository;
        let refs = git.git(["for-each-ref"]);
        let status = git.git(["status", "--untracked-files=all"]);
        refs + &status + &git.git(["diff", "HEAD"])
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.repository.top.join(path)).unwrap()
    }
}

#[test]
fn forward_where_possible_and_once_only() {
    let mut scene = Scene::new();
    let kept = scene.keep(&[("x", "5\n")]);
    scene.repository.write("untracked", "mine\n");
    let adopted = adopt_branch(&scene.user, &scene.branch, "adopt", &mut Unsupervised).unwrap();
    assert_eq!(adopted, Adopted::FastForwarded { commit: kept });
    assert_eq!(scene.read("x"), "5\n");
    let adopted = adopt_branch(&scene.user, &scene.branch, "adopt", &mut Unsupervised).unwrap();
    assert_eq!(adopted, Adopted::AlreadyThere);
}

#[test]
fn merged_where_the_user_went_on() {
    let mut scene = Scene::new();
    scene.keep(&[("x", "5\n")]);
    scene.repository.write("mine", "1\n");
    scene.repository.commit_all("the user's");
    let adopted = adopt_branch(
        &scene.user,
        &scene.branch,
        "adopt the loop's",
        &mut Unsupervised,
    )
    .unwrap();
    assert!(matches!(adopted, Adopted::Committed { .. }), "{adopted:?}");
    assert_eq!(
        scene.repository.git(["log", "-1", "--format=%s"]),
        "adopt the loop's"
    );
    assert_eq!(
        (scene.read("x"), scene.read("mine")),
        ("5\n".into(), "1\n".into())
    );
}

#[test]
fn conflicts_and_edits_in_the_way_touch_nothing() {
    let mut scene = Scene::new();
    let kept = scene.keep(&[("x", "5\n"), ("new/f", "1\n")]);
    scene.repository.write("x", "edited\n");
    scene
        .repository
        .shell(&scene.repository.top, "echo new/f > .git/info/exclude");
    scene
        .repository
        .write("new/f", "an ignored file of the user's\n");
    let before = scene.repository.fingerprint();
    for adopted in [
        adopt_branch(&scene.user, &scene.branch, "adopt", &mut Unsupervised).unwrap(),
        scene.adopt(kept),
    ] {
        assert!(
            matches!(adopted, Adopted::NotAdopted(Obstacle::Dirty(_))),
            "{adopted:?}"
        );
        assert_eq!(scene.repository.fingerprint(), before);
    }
    scene.repository.git(["checkout", "-q", "x"]);
    let before = scene.repository.fingerprint();
    let adopted = scene.adopt(kept);
    assert_eq!(
        adopted,
        Adopted::NotAdopted(Obstacle::Dirty("new/f".to_owned()))
    );
    assert_eq!(scene.repository.fingerprint(), before);
    scene.repository.write("x", "edited\n");
    scene.repository.commit_all("the user's");
    let before = scene.repository.fingerprint();
    let conflict = Adopted::NotAdopted(Obstacle::Conflict(vec![RepoPath::from("x")]));
    let adopted = adopt_branch(&scene.user, &scene.branch, "adopt", &mut Unsupervised).unwrap();
    assert_eq!(adopted, conflict);
    assert_eq!(scene.adopt(kept), conflict);
    assert_eq!(scene.repository.fingerprint(), before);
}

#[test]
fn c16_hooks_and_signing() {
    let mut scene = Scene::new();
    let better = scene.candidate(scene.base, &[("x", "5\n"), ("new/dir/f", "1\n")]);
    scene.repository.write("scratch", "the user's\n");
    scene.repository.git(["add", "scratch"]);
    assert!(matches!(
        scene.adopt(better),
        Adopted::NotAdopted(Obstacle::Dirty(_))
    ));
    scene.repository.git(["rm", "-q", "--cached", "scratch"]);
    let before = scene.repository.fingerprint();

    scene.hook("pre-commit", "echo no thanks >&2; exit 1");
    let adopted = scene.adopt(better);
    let refused = Adopted::NotAdopted(Obstacle::HookRefused("no thanks".to_owned()));
    assert_eq!(adopted, refused);
    assert_eq!(scene.repository.fingerprint(), before);

    scene.hook("pre-commit", "exit 0");
    scene.repository.git(["config", "commit.gpgsign", "true"]);
    scene
        .repository
        .git(["config", "gpg.program", "/bin/false"]);
    let adopted = scene.adopt(better);
    assert!(
        matches!(adopted, Adopted::NotAdopted(Obstacle::SigningFailed(_))),
        "{adopted:?}"
    );
    scene.repository.git(["config", "--unset", "gpg.program"]);
    scene
        .repository
        .git(["config", "--unset", "commit.gpgsign"]);
    assert_eq!(scene.repository.fingerprint(), before);

    scene.hook("pre-commit", "echo 77 > x; git add x");
    let before = scene.repository.fingerprint();
    for script in [
        "echo 77 > x; git add x",
        "mkdir d; echo 1 > d/other; echo 2 > new; git add new d",
    ] {
        scene.hook("pre-commit", script);
        let adopted = scene.adopt(better);
        let Adopted::NotAdopted(Obstacle::Rewritten { expected, tree }) = adopted else {
            panic!("{adopted:?}");
        };
        assert_ne!(expected, tree);
        assert_eq!(scene.repository.fingerprint(), before);
    }
}

/// A hook may take long, and its user goes on working.
#[test]
fn what_was_edited_while_a_hook_ran_is_left() {
    let mut scene = Scene::new();
    let kept = scene.keep(&[("x", "5\n"), ("new", "1\n"), ("other", "1\n")]);
    for end in ["exit 1", "echo 77 > other; git add other"] {
        scene.hook(
            "pre-commit",
            &format!("echo mine >> x; echo mine >> new; {end}"),
        );
        let adopted = scene.adopt(kept);
        assert!(matches!(adopted, Adopted::NotAdopted(_)), "{adopted:?}");
        assert_eq!(scene.read("x"), "5\nmine\n");
        assert_eq!(scene.read("new"), "1\nmine\n");
        assert!(!scene.repository.top.join("other").exists());
        let status = scene
            .repository
            .git(["status", "--porcelain", "--", "x", "new"]);
        assert_eq!(status, " M x\n?? new");
        scene.repository.git(["checkout", "--quiet", "--", "x"]);
        fs::remove_file(scene.repository.top.join("new")).unwrap();
    }
}

/// A git of the user's that holds the index goes on; what is left undone is done by the next adoption.
#[test]
fn the_lock_of_a_living_git_is_not_taken_away() {
    let mut scene = Scene::new();
    let kept = scene.keep(&[("x", "5\n")]);
    let lock = scene.repository.top.join(".git/index.lock");
    let held = fs::File::create(&lock).unwrap();
    let error = adopt_candidate(
        &scene.user,
        &mut scene.store,
        &kept,
        "adopt\n",
        &mut Unsupervised,
    );
    assert!(lock.exists(), "{error:?}");
    drop(held);
    fs::remove_file(&lock).unwrap();
    let adopted = scene.adopt(kept);
    assert!(matches!(adopted, Adopted::Committed { .. }), "{adopted:?}");
}

/// The engine and its git are gone before the commit: nothing is put back.
struct Killed;

impl UserCommands for Killed {
    fn run(&mut self, _command: UserCommand) -> Result<UserRun, GitError> {
        panic!("killed");
    }
}

#[test]
fn what_a_killed_adoption_left_is_taken_back_by_the_next_one() {
    let mut scene = Scene::new();
    let kept = scene.keep(&[("x", "5\n"), ("new/file", "1\n")]);
    let other = scene.candidate(scene.base, &[("y", "1\n")]);
    let before = scene.standing();
    let killed = |scene: &mut Scene| {
        let work = std::panic::AssertUnwindSafe(|| {
            adopt_candidate(&scene.user, &mut scene.store, &kept, "adopt\n", &mut Killed)
        });
        assert!(std::panic::catch_unwind(work).is_err());
        assert_eq!(scene.read("x"), "5\n");
    };
    killed(&mut scene);
    // Another result: the first one is not in its way.
    let adopted = scene.adopt(other);
    assert!(matches!(adopted, Adopted::Committed { .. }), "{adopted:?}");
    assert!(!scene.repository.top.join("new").exists());
    scene
        .repository
        .git(["reset", "--quiet", "--hard", &scene.base.to_hex()]);
    assert_eq!(scene.standing(), before);
    // What somebody edited meanwhile is theirs.
    killed(&mut scene);
    scene.repository.write("x", "mine\n");
    let adopted = scene.adopt(other);
    assert_eq!(
        adopted,
        Adopted::NotAdopted(Obstacle::Dirty("x".to_owned()))
    );
    assert_eq!(scene.read("x"), "mine\n");
    // And what they committed.
    scene.repository.commit_all("the user's");
    let adopted = scene.adopt(other);
    assert!(matches!(adopted, Adopted::Committed { .. }), "{adopted:?}");
    assert_eq!(scene.read("x"), "mine\n");
}

#[test]
fn any_trial_can_be_adopted_on_a_branch_that_went_on() {
    let mut scene = Scene::new();
    let kept = scene.keep(&[("other", "1\n")]);
    let rejected = scene.candidate(kept, &[("x", "5\n")]);
    scene.repository.write("mine", "1\n");
    scene.repository.commit_all("the user's");
    let adopted = scene.adopt(rejected);
    assert!(matches!(adopted, Adopted::Committed { .. }), "{adopted:?}");
    // Only what that trial changed, not what was kept before it.
    assert!(!scene.repository.top.join("other").exists());
    assert_eq!(scene.read("x"), "5\n");
    assert_eq!(scene.adopt(rejected), Adopted::AlreadyThere);
    assert_eq!(
        scene.repository.git(["log", "-1", "--format=%an %s"]),
        "A User adopt trial 3"
    );
}

#[test]
fn a_merge_a_hook_refuses_is_taken_back() {
    let mut scene = Scene::new();
    scene.keep(&[("x", "5\n")]);
    scene.repository.write("mine", "1\n");
    scene.repository.commit_all("the user's");
    scene.repository.write("unrelated", "draft\n");
    let before = scene.repository.fingerprint();
    scene.hook("pre-merge-commit", "echo not today >&2; exit 1");
    let adopted = adopt_branch(&scene.user, &scene.branch, "adopt", &mut Unsupervised).unwrap();
    let Adopted::NotAdopted(Obstacle::HookRefused(text)) = &adopted else {
        panic!("{adopted:?}");
    };
    assert!(text.contains("not today"));
    assert_eq!(scene.repository.fingerprint(), before);
}

/// A host that can't run anything any more.
struct Broken;

impl UserCommands for Broken {
    fn run(&mut self, _command: UserCommand) -> Result<UserRun, GitError> {
        Err(GitError::NotRun("the disk is full".to_owned()))
    }
}

#[test]
fn what_could_not_be_run_leaves_the_checkout_as_it_was() {
    let mut scene = Scene::new();
    let kept = scene.keep(&[("a", "theirs\n"), ("new/file", "1\n")]);
    let before = scene.standing();
    let error = adopt_branch(&scene.user, &scene.branch, "adopt\n", &mut Broken).unwrap_err();
    assert_eq!(error.to_string(), "the disk is full");
    assert_eq!(scene.standing(), before);
    let candidate = adopt_candidate(&scene.user, &mut scene.store, &kept, "adopt\n", &mut Broken);
    assert_eq!(candidate.unwrap_err().to_string(), "the disk is full");
    assert_eq!(scene.standing(), before);
}

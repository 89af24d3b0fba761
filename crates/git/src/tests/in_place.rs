//! In place: the user's branch moves, and nothing a proposer configured is ever used.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use crate::test_support::{TestRepository, listing};
use crate::types::{Objects as _, Oid, RepoPath};
use crate::{
    GitError, InPlace, InPlaceCommit, ObjectStore, Obstacle, Refusal, Snapshot, UserRepository,
};

struct Scene {
    repository: TestRepository,
    user: UserRepository,
    store: ObjectStore,
    place: InPlace,
}

impl Scene {
    fn new(repository: TestRepository) -> Self {
        let (user, mut store) = repository.store();
        let state = repository.outside("state");
        let place = InPlace::open(&state, &user, &mut store).unwrap();
        Self {
            repository,
            user,
            store,
            place,
        }
    }

    fn propose(&mut self, script: &str) -> Snapshot {
        self.place.begin().unwrap();
        self.repository.shell(&self.repository.top, script);
        self.place.snapshot(&mut self.store).unwrap()
    }

    fn restore(&mut self, commit: Oid) {
        self.place.restore(&mut self.store, &commit).unwrap();
    }

    fn content(&mut self, tree: &Oid, path: &str) -> String {
        let (_, oid) = self.store.listing(tree).unwrap()[&RepoPath::from(path)];
        String::from_utf8(self.store.read_blob(&oid).unwrap()).unwrap()
    }

    fn hook(&self, script: &str) {
        let path = self.hook_path();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn hook_path(&self) -> PathBuf {
        self.repository.top.join(".git/hooks/pre-commit")
    }
}

#[test]
fn c1_in_place_whatever_the_agent_does_the_starting_branch_has_the_result() {
    let repository = TestRepository::new();
    repository.write(".gitignore", "*.cache\n");
    repository.commit_all("ignore");
    repository.write("my.cache", "the user's own\n");
    repository.git(["branch", "-q", "other"]);
    let mut scene = Scene::new(repository);
    let before = scene.repository.fingerprint();
    let head = scene.user.head;
    for script in [
        "echo 5 > x; git commit -qam mine",
        "git checkout -qb side; echo 5 > x; git commit -qam mine",
        "echo 5 > x; git commit -qa --amend -m amended",
        "git branch -qD other; git tag evil; echo 5 > x; git stash -q; git stash pop -q",
        "git config core.fsmonitor 'touch ran; false'; git config filter.f.clean 'touch ran'; echo 5 > x",
        "mkdir -p .git/hooks; printf '#!/bin/sh\\ntouch ran\\n' > .git/hooks/pre-commit; \
         chmod +x .git/hooks/pre-commit; echo 5 > x; touch .git/index.lock",
        "git checkout -q --detach; echo 5 > x; mkdir .git/rebase-merge; rm -f .git/index",
    ] {
        let snapshot = scene.propose(script);
        assert_eq!(scene.content(&snapshot.tree, "x"), "5\n", "{script}");
        assert_eq!(snapshot.changes.len(), 1, "{script}");
        scene.restore(head);
        assert_eq!(scene.repository.fingerprint(), before, "{script}");
        assert!(!scene.repository.top.join("ran").exists(), "{script}");
    }
    let snapshot = scene.propose("git checkout -qb side; echo 5 > x; git commit -qam mine");
    assert_eq!(
        snapshot.agent_head.as_ref().unwrap().branch.as_deref(),
        Some("side")
    );
    let InPlaceCommit::Committed { commit } = scene
        .place
        .commit(&mut scene.store, &snapshot.tree, "keep 1\n")
        .unwrap()
    else {
        panic!("not committed");
    };
    assert_eq!(scene.repository.git(["branch", "--show-current"]), "main");
    assert_eq!(scene.repository.git(["rev-parse", "HEAD"]), commit.to_hex());
    assert_eq!(
        scene.repository.git(["log", "--format=%an %s", "-2"]),
        "A User keep 1\nA User ignore"
    );
    assert_eq!(scene.repository.git(["status", "--porcelain"]), "");
    assert!(scene.repository.top.join("my.cache").exists());
    let kept = listing(&scene.repository.top);
    scene.propose("echo 99 > x; mkdir -p new/dir; touch new/dir/f new/a.cache; chmod +x run.sh; git init -q nested");
    scene.restore(commit);
    fs::remove_file(scene.repository.top.join("new/a.cache")).unwrap();
    fs::remove_dir(scene.repository.top.join("new")).unwrap();
    assert_eq!(listing(&scene.repository.top), kept);
    scene.repository.git(["fsck", "--no-dangling"]);
}

#[test]
fn c16_in_place_hooks_and_signing() {
    let mut scene = Scene::new(TestRepository::new());
    scene.hook("echo no thanks >&2; exit 1");
    let head = scene.user.head;
    let before = scene.repository.fingerprint();
    let snapshot = scene.propose("echo 5 > x");
    let commit = scene
        .place
        .commit(&mut scene.store, &snapshot.tree, "keep")
        .unwrap();
    let refused = Obstacle::HookRefused("no thanks".to_owned());
    assert_eq!(commit, InPlaceCommit::Refused(refused));
    scene.restore(head);
    assert_eq!(scene.repository.fingerprint(), before);
    scene.hook("echo 77 > x; git add x");
    let snapshot = scene.propose("echo 5 > x");
    let commit = scene
        .place
        .commit(&mut scene.store, &snapshot.tree, "keep")
        .unwrap();
    let InPlaceCommit::Rewritten { tree, .. } = commit else {
        panic!("{commit:?}");
    };
    assert_eq!(scene.content(&tree, "x"), "77\n");
    scene.restore(head);
    assert_eq!(scene.repository.fingerprint(), before);
    fs::remove_file(scene.hook_path()).unwrap();
    scene.repository.git(["config", "commit.gpgsign", "true"]);
    scene
        .repository
        .git(["config", "gpg.program", "/bin/false"]);
    let snapshot = scene.propose("echo 5 > x; git config --unset commit.gpgsign");
    assert_eq!(snapshot.undone[0].path, RepoPath::from(".git/config"));
    let commit = scene
        .place
        .commit(&mut scene.store, &snapshot.tree, "keep")
        .unwrap();
    assert!(
        matches!(commit, InPlaceCommit::Refused(Obstacle::SigningFailed(_))),
        "{commit:?}"
    );
}

#[test]
fn hooks_the_tree_carries_are_not_run_when_the_proposal_changed_them() {
    let repository = TestRepository::new();
    repository.write("hooks/pre-commit", "#!/bin/sh\nexit 0\n");
    fs::set_permissions(
        repository.top.join("hooks/pre-commit"),
        fs::Permissions::from_mode(0o755),
    )
    .unwrap();
    repository.git(["config", "core.hooksPath", "hooks"]);
    repository.commit_all("hooks");
    let mut scene = Scene::new(repository);
    let snapshot =
        scene.propose("printf '#!/bin/sh\\ntouch ran\\n' > hooks/pre-commit; echo 5 > x");
    assert_eq!(snapshot.changes.len(), 2);
    let commit = scene
        .place
        .commit(&mut scene.store, &snapshot.tree, "keep")
        .unwrap();
    assert!(
        matches!(commit, InPlaceCommit::Refused(Obstacle::Failed(_))),
        "{commit:?}"
    );
    let head = scene.user.head;
    scene.restore(head);
    assert!(!scene.repository.top.join("ran").exists());
}

#[test]
fn only_a_clean_attached_idle_checkout_is_taken_over() {
    let repository = TestRepository::new();
    let (user, mut store) = repository.store();
    let state = repository.outside("state");
    let mut refusal = |user: &UserRepository| match InPlace::open(&state, user, &mut store) {
        Err(GitError::Refused(refusal)) => refusal,
        other => panic!("{other:?}"),
    };
    repository.write("new", "1\n");
    assert!(matches!(refusal(&user), Refusal::Dirty(paths) if paths == [RepoPath::from("new")]));
    fs::remove_file(repository.top.join("new")).unwrap();
    fs::write(repository.top.join(".git/MERGE_HEAD"), "").unwrap();
    assert!(matches!(refusal(&user), Refusal::Busy("merge")));
    fs::remove_file(repository.top.join(".git/MERGE_HEAD")).unwrap();
    repository.git(["checkout", "-q", "--detach"]);
    assert!(matches!(refusal(&repository.discover()), Refusal::Detached));
}

#[test]
fn submodules_in_place_are_put_back() {
    let repository = TestRepository::new();
    let root = repository.outside("");
    repository.shell(
        &root,
        "git init -q lib; cd lib; echo 1 > y; git add y; git commit -qm y",
    );
    repository.shell(&repository.top, "git submodule -q add ../lib lib");
    repository.commit_all("submodule");
    let mut scene = Scene::new(repository);
    let before = scene.repository.fingerprint();
    let head = scene.user.head;
    let snapshot = scene.propose("echo 5 > x; cd lib; echo 2 > y; git commit -qam evil; touch new");
    assert_eq!(snapshot.changes.len(), 1);
    assert!(
        snapshot
            .refused
            .iter()
            .any(|it| it.path == RepoPath::from("lib"))
    );
    scene.restore(head);
    assert_eq!(scene.repository.fingerprint(), before);
}

#[test]
fn an_interrupted_proposal_is_cleared_away_by_the_next_process() {
    let repository = TestRepository::new();
    repository.write(".gitignore", "*.cache\n");
    repository.commit_all("ignore");
    repository.write("my.cache", "the user's own\n");
    let mut scene = Scene::new(repository);
    let before = scene.repository.fingerprint();
    for script in [
        "git config core.fsmonitor 'touch ran; false'; git checkout -qb side; echo 5 > x; \
         git commit -qam mine; git branch -qD main; echo 6 > x; mkdir n; git init -q n/r; touch n/f",
        "rm -rf x run.sh; ln -s / x; echo garbage > .git/HEAD; touch .git/index.lock",
    ] {
        scene.place.begin().unwrap();
        scene.repository.shell(&scene.repository.top, script);
        // The engine dies here; another process begins.
        let state = scene.repository.outside("state");
        assert!(InPlace::recover(&state).unwrap().is_some());
        let user = scene.repository.discover();
        scene.place = InPlace::open(&state, &user, &mut scene.store).unwrap();
        assert!(InPlace::recover(&state).unwrap().is_none());
        let _ = fs::remove_file(scene.repository.top.join(".git/refs/heads/side"));
        assert_eq!(scene.repository.fingerprint(), before, "{script}");
        assert!(!scene.repository.top.join("ran").exists());
    }
}

#[test]
fn attributes_that_change_redraw_files_and_nothing_of_the_users_is_lost() {
    let repository = TestRepository::new();
    repository.write(".gitignore", "*.cache\n");
    repository.commit_all("ignore");
    repository.write("my.cache", "the user's own\n");
    let mut scene = Scene::new(repository);
    let before = scene.repository.fingerprint();
    let head = scene.user.head;
    let snapshot = scene.propose("echo '* eol=crlf' > .gitattributes");
    let commit = scene
        .place
        .commit(&mut scene.store, &snapshot.tree, "crlf")
        .unwrap();
    let InPlaceCommit::Committed { .. } = commit else {
        panic!("{commit:?}");
    };
    let read = |name: &str| fs::read_to_string(scene.repository.top.join(name)).unwrap();
    assert_eq!(read("x"), "10\r\n");
    assert_eq!(read("my.cache"), "the user's own\n");
    assert_eq!(scene.repository.git(["status", "--porcelain"]), "");
    scene.restore(head);
    assert_eq!(scene.repository.fingerprint(), before);
}

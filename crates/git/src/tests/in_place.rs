//! In place: the user's branch moves, and nothing a proposer configured is ever used.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use crate::test_support::{TestRepository, Unsupervised, listing};
use crate::types::{Objects as _, Oid, RepoPath};
use crate::{
    GitError, InPlace, InPlaceCommit, ObjectStore, Obstacle, Owner, Refusal, RefusedPath, Snapshot,
    UserCommand, UserCommands, UserEnd, UserRepository, UserRun,
};

fn owner(run: &str) -> Owner {
    Owner {
        run: run.to_owned(),
        loop_name: "speed".to_owned(),
    }
}

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
        let place = InPlace::open(&state, owner("run"), &user, &mut store).unwrap();
        Self {
            repository,
            user,
            store,
            place,
        }
    }

    fn propose(&mut self, script: &str) -> Snapshot {
        self.begin();
        self.repository.shell(&self.repository.top, script);
        self.place.snapshot(&mut self.store).unwrap()
    }

    fn begin(&mut self) {
        let at = self.place.at();
        let undone = self.place.begin(&mut self.store, &at).unwrap();
        assert_eq!(undone, []);
    }

    fn commit(&mut self, tree: &Oid, message: &str) -> InPlaceCommit {
        let (commit, undone) = self
            .place
            .commit(&mut self.store, tree, message, &mut Unsupervised)
            .unwrap();
        assert_eq!(undone, []);
        commit
    }

    /// Another process of `run` finds what this one left when it died.
    fn recover(&mut self, run: &str) -> Result<Option<Vec<RefusedPath>>, GitError> {
        let state = self.repository.outside("state");
        InPlace::recover(&state, &owner(run), &self.user, &mut self.store)
    }

    fn open_again(&mut self, run: &str) {
        let (state, user) = (self.repository.outside("state"), self.repository.discover());
        self.place = InPlace::open(&state, owner(run), &user, &mut self.store).unwrap();
        self.user = user;
    }

    /// What the words say was saved: the tree of the commit they name.
    fn saved(&mut self, words: &[RefusedPath]) -> Oid {
        let words: Vec<&str> = words.iter().map(|it| it.why.as_str()).collect();
        let words = words.join("; ");
        let (_, rest) = words.split_once("saved as commit ").expect(&words);
        let commit: Oid = rest[..40].parse().unwrap();
        let chain = self.store.chain_head("run").unwrap().unwrap();
        let kept = self.store.read_commit(&chain).unwrap().parents;
        assert!(kept.contains(&commit), "{words}");
        self.store.read_commit(&commit).unwrap().tree
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
    for script in [
        "echo 5 > x; git commit -qam mine",
        "git checkout -qb side; echo 5 > x; git commit -qam mine",
        "echo 5 > x; git commit -qa --amend -m amended",
        "git branch -qD other; echo 5 > x; git stash -q; git stash pop -q",
        "git config core.fsmonitor 'touch ran; false'; git config filter.f.clean 'touch ran'; echo 5 > x",
        "mkdir -p .git/hooks; printf '#!/bin/sh\\ntouch ran\\n' > .git/hooks/pre-commit; \
         chmod +x .git/hooks/pre-commit; echo 5 > x; touch .git/index.lock",
        "git checkout -q --detach; echo 5 > x; mkdir .git/rebase-merge; rm -f .git/index",
    ] {
        let snapshot = scene.propose(script);
        assert_eq!(scene.content(&snapshot.tree, "x"), "5\n", "{script}");
        assert_eq!(snapshot.changes.len(), 1, "{script}");
        assert_eq!(scene.repository.fingerprint(), before, "{script}");
        assert!(!scene.repository.top.join("ran").exists(), "{script}");
    }
    let snapshot = scene.propose("git checkout -qb side; echo 5 > x; git commit -qam mine");
    assert_eq!(
        snapshot.agent_head.as_ref().unwrap().branch.as_deref(),
        Some("side")
    );
    let InPlaceCommit::Committed { commit } = scene.commit(&snapshot.tree, "keep 1\n") else {
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
    fs::remove_file(scene.repository.top.join("new/a.cache")).unwrap();
    fs::remove_dir(scene.repository.top.join("new")).unwrap();
    assert_eq!(listing(&scene.repository.top), kept);
    scene.repository.git(["fsck", "--no-dangling"]);
}

#[test]
fn c16_in_place_hooks_and_signing() {
    let mut scene = Scene::new(TestRepository::new());
    scene.hook("echo no thanks >&2; exit 1");
    scene.open_again("run");
    let before = scene.repository.fingerprint();
    let snapshot = scene.propose("echo 5 > x");
    let commit = scene.commit(&snapshot.tree, "keep");
    let refused = Obstacle::HookRefused("no thanks".to_owned());
    assert_eq!(commit, InPlaceCommit::Refused(refused));
    assert_eq!(scene.repository.fingerprint(), before);
    scene.hook("echo 77 > x; git add x");
    scene.open_again("run");
    let snapshot = scene.propose("echo 5 > x");
    let commit = scene.commit(&snapshot.tree, "keep");
    let InPlaceCommit::Rewritten { tree, .. } = commit else {
        panic!("{commit:?}");
    };
    assert_eq!(scene.content(&tree, "x"), "77\n");
    assert_eq!(scene.repository.fingerprint(), before);
    fs::remove_file(scene.hook_path()).unwrap();
    scene.repository.git(["config", "commit.gpgsign", "true"]);
    scene
        .repository
        .git(["config", "gpg.program", "/bin/false"]);
    scene.open_again("run");
    let snapshot = scene.propose("echo 5 > x; git config --unset commit.gpgsign");
    assert_eq!(snapshot.undone[0].path, RepoPath::from(".git/config"));
    let commit = scene.commit(&snapshot.tree, "keep");
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
    let commit = scene.commit(&snapshot.tree, "keep");
    assert!(
        matches!(commit, InPlaceCommit::Refused(Obstacle::Failed(_))),
        "{commit:?}"
    );
    assert!(!scene.repository.top.join("ran").exists());
}

#[test]
fn only_a_clean_attached_idle_checkout_is_taken_over() {
    let repository = TestRepository::new();
    let (user, mut store) = repository.store();
    let state = repository.outside("state");
    let mut refusal =
        |user: &UserRepository| match InPlace::open(&state, owner("run"), user, &mut store) {
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
    let snapshot = scene.propose("echo 5 > x; cd lib; echo 2 > y; git commit -qam evil; touch new");
    assert_eq!(snapshot.changes.len(), 1);
    assert!(
        snapshot
            .refused
            .iter()
            .any(|it| it.path == RepoPath::from("lib"))
    );
    assert_eq!(scene.repository.fingerprint(), before);
}

#[test]
fn an_interrupted_proposal_is_cleared_away_and_nothing_in_it_is_lost() {
    let repository = TestRepository::new();
    repository.write(".gitignore", "*.cache\ntracked.log\n");
    repository.write("tracked.log", "1\n");
    repository.git(["add", "-f", "tracked.log"]);
    repository.commit_all("ignore");
    repository.write("my.cache", "the user's own\n");
    let mut scene = Scene::new(repository);
    let before = scene.repository.fingerprint();
    scene.begin();
    scene.repository.shell(
        &scene.repository.top,
        "git config core.fsmonitor 'touch ran; false'; echo 6 > x; mkdir n; touch n/f; rm run.sh; \
         ln -s / run.sh; echo 2 > tracked.log; touch .git/index.lock",
    );
    // The engine dies here; another process begins.
    let undone = scene.recover("run").unwrap().unwrap();
    let saved = scene.saved(&undone);
    assert_eq!(scene.content(&saved, "x"), "6\n");
    assert_eq!(scene.content(&saved, "n/f"), "");
    assert_eq!(scene.content(&saved, "run.sh"), "/");
    assert_eq!(scene.content(&saved, "tracked.log"), "2\n");
    assert!(
        undone[0].why.contains("what stood there is kept as"),
        "{undone:?}"
    );
    assert_eq!(scene.recover("run").unwrap(), None);
    scene.open_again("run");
    assert_eq!(scene.repository.fingerprint(), before);
    assert!(!scene.repository.top.join("ran").exists());
}

#[test]
fn a_damaged_git_directory_is_mended_before_recovery_runs_git() {
    let repository = TestRepository::new();
    repository.git(["branch", "-q", "packed"]);
    repository.git(["pack-refs", "--all"]);
    repository.git(["branch", "-q", "loose"]);
    let mut scene = Scene::new(repository);
    let start = scene.user.head.to_hex();
    for script in [
        "echo junk >> packed-refs",
        "rm packed-refs; mkfifo packed-refs",
        "rm -rf refs; ln -s /nowhere refs",
        "echo junk > refs/heads/loose; mkfifo refs/heads/pipe",
        "rm -f index; mkfifo index; rm -f logs/HEAD; mkfifo logs/HEAD",
        "touch refs/heads/main.lock packed-refs.lock index.lock",
    ] {
        scene.begin();
        scene.repository.write("x", "6\n");
        let git_dir = scene.repository.top.join(".git");
        scene.repository.shell(&git_dir, script);
        let words = scene.recover("run").unwrap().unwrap();
        let saved = scene.saved(&words);
        assert_eq!(scene.content(&saved, "x"), "6\n", "{script}");
        for name in ["main", "packed", "loose"] {
            assert_eq!(scene.repository.git(["rev-parse", name]), start, "{script}");
        }
        let references = scene.repository.git(["for-each-ref"]);
        assert_eq!(references.lines().count(), 3, "{script}: {references}");
        assert_eq!(scene.repository.git(["status", "--porcelain"]), "");
        scene.open_again("run");
    }
}

#[test]
fn what_others_pack_and_fetch_during_a_proposal_stays() {
    let repository = TestRepository::new();
    repository.git(["branch", "-q", "mine"]);
    repository.git(["pack-refs", "--all"]);
    let mut scene = Scene::new(repository);
    let snapshot = scene.propose(
        "id=$(git commit-tree -m other HEAD^{tree}); git update-ref refs/heads/mine $id; \
         git update-ref refs/remotes/origin/main $id; \
         git symbolic-ref refs/remotes/origin/HEAD refs/remotes/origin/main; \
         git pack-refs --all; echo junk >> .git/packed-refs; echo 5 > x",
    );
    assert_eq!(scene.content(&snapshot.tree, "x"), "5\n");
    let at = |name: &str| scene.repository.git(["rev-parse", name]);
    assert_eq!(at("main"), scene.user.head.to_hex());
    assert_ne!(at("mine"), at("main"));
    assert_eq!(at("origin/HEAD"), at("mine"));
}

#[test]
fn a_commit_made_since_the_interruption_is_left_where_it_is() {
    for script in [
        "echo 7 > x; git commit -qam mine",
        "git checkout -qb side",
        "git checkout -q --detach",
    ] {
        let mut scene = Scene::new(TestRepository::new());
        scene.begin();
        scene.repository.shell(&scene.repository.top, script);
        scene.repository.write("novel.txt", "1\n");
        let before = scene.repository.fingerprint();
        let head = scene.repository.git(["rev-parse", "HEAD"]);
        let refused = scene.recover("run").unwrap_err();
        assert!(
            matches!(refused, GitError::Refused(Refusal::MovedInPlace(_))),
            "{script}: {refused}"
        );
        let words = refused.to_string();
        assert!(words.contains(&head), "{words}");
        assert!(words.contains("git checkout -B main"), "{words}");
        assert_eq!(scene.repository.fingerprint(), before, "{script}");
    }
}

#[test]
fn another_loop_starts_from_what_was_committed_since() {
    let mut scene = Scene::new(TestRepository::new());
    scene.begin();
    scene.repository.write("mine", "1\n");
    scene.repository.commit_all("mine");
    scene.repository.write("novel.txt", "1\n");
    let refused = scene.recover("another").unwrap_err();
    assert!(
        matches!(refused, GitError::Refused(Refusal::Dirty(_))),
        "{refused}"
    );
    fs::remove_file(scene.repository.top.join("novel.txt")).unwrap();
    let before = scene.repository.fingerprint();
    let words = scene.recover("another").unwrap().unwrap();
    assert!(words[0].why.contains("is left where it is"), "{words:?}");
    scene.open_again("another");
    assert_eq!(scene.repository.fingerprint(), before);
}

#[test]
fn another_work_tree_is_never_put_right() {
    let mut scene = Scene::new(TestRepository::new());
    let other = scene.repository.outside("other");
    scene.repository.git([
        "worktree",
        "add",
        "-q",
        "-b",
        "other",
        other.to_str().unwrap(),
    ]);
    scene.begin();
    scene.repository.write("x", "6\n");
    scene
        .repository
        .git(["config", "core.fsmonitor", "touch ran; false"]);
    fs::write(other.join("x"), "mine\n").unwrap();
    fs::write(other.join("notes.txt"), "mine\n").unwrap();
    let there = scene.repository.try_discover(&other).unwrap();
    let state = scene.repository.outside("state");
    let recover = |store: &mut ObjectStore| InPlace::recover(&state, &owner("b"), &there, store);
    let refused = recover(&mut scene.store).unwrap_err().to_string();
    assert!(
        refused.contains("loopwright resume --loop speed"),
        "{refused}"
    );
    let has = |name: &str| fs::read_to_string(other.join(name)).unwrap();
    assert_eq!(
        (has("x"), has("notes.txt")),
        ("mine\n".to_owned(), "mine\n".to_owned())
    );
    // Its own process puts it right.
    assert!(scene.recover("run").unwrap().is_some());
    assert_eq!(recover(&mut scene.store).unwrap(), None);
}

#[test]
fn of_a_work_tree_that_is_gone_the_shared_settings_are_put_back() {
    let mut scene = Scene::new(TestRepository::new());
    let other = scene.repository.outside("other");
    scene.repository.git([
        "worktree",
        "add",
        "-q",
        "-b",
        "other",
        other.to_str().unwrap(),
    ]);
    let there = scene.repository.try_discover(&other).unwrap();
    let state = scene.repository.outside("state");
    let mut place = InPlace::open(&state, owner("run"), &there, &mut scene.store).unwrap();
    let before = scene.repository.fingerprint();
    place.begin(&mut scene.store, &there.head).unwrap();
    scene
        .repository
        .git(["config", "core.fsmonitor", "touch ran; false"]);
    scene
        .repository
        .git(["worktree", "remove", "--force", other.to_str().unwrap()]);
    assert_eq!(scene.recover("b").unwrap().unwrap().len(), 1);
    assert_eq!(scene.repository.fingerprint(), before);
    assert!(!there.git_dir.exists());
    assert_eq!(scene.recover("b").unwrap(), None);
}

#[test]
fn what_cannot_be_saved_is_not_cleared_away() {
    let mut scene = Scene::new(TestRepository::new());
    scene.begin();
    scene.repository.shell(
        &scene.repository.top,
        "git init -q nested; echo 1 > nested/y; mkfifo pipe",
    );
    let refused = scene.recover("run").unwrap_err();
    assert!(
        matches!(&refused, GitError::Refused(Refusal::CantBeSaved(paths)) if *paths == [RepoPath::from("nested")]),
        "{refused}"
    );
    assert!(scene.repository.top.join("nested/y").exists());
    fs::rename(
        scene.repository.top.join("nested"),
        scene.repository.outside("nested"),
    )
    .unwrap();
    assert!(scene.recover("run").unwrap().is_some());
}

#[test]
fn references_of_others_are_left_alone() {
    let repository = TestRepository::new();
    let other = repository.outside("other");
    repository.git([
        "worktree",
        "add",
        "-q",
        "-b",
        "other",
        other.to_str().unwrap(),
    ]);
    repository.git(["branch", "-q", "old"]);
    repository.git(["branch", "-q", "mine"]);
    let mut scene = Scene::new(repository);
    let script = "git branch -qD old; git checkout -q mine; echo 3 > x; git commit -qam on-mine; \
                  git checkout -qb side; git tag made; echo 5 > x; git commit -qam on-side; \
                  git update-ref refs/heads/loopwright/a/main HEAD; \
                  git update-ref refs/remotes/origin/main HEAD; cd ../other; git branch -q novel; \
                  echo 9 > x; git commit -qam in-other";
    let snapshot = scene.propose(script);
    let at = |name: &str| scene.repository.git(["rev-parse", name]);
    let words: Vec<String> = snapshot
        .undone
        .iter()
        .map(|it| format!("{}: {}", it.path, it.why))
        .collect();
    let start = scene.user.head.to_hex();
    assert_eq!(at("main"), start);
    assert_eq!(at("mine"), start, "{words:?}");
    assert_eq!(at("old"), start, "{words:?}");
    assert_eq!(at("novel"), start);
    assert_eq!(
        scene.repository.git(["branch", "--list", "side"]),
        "",
        "{words:?}"
    );
    for left in ["other", "made", "loopwright/a/main", "origin/main"] {
        assert_ne!(at(left), start, "{left}: {words:?}");
    }
    let said = words.join("\n");
    for (name, what) in [
        ("refs/heads/old", "it was put back"),
        ("refs/heads/mine", "it was put back"),
        ("refs/heads/side", "it was removed again"),
        ("refs/heads/other", "was left alone"),
        ("refs/heads/novel", "was left alone"),
        ("refs/tags/made", "was left alone"),
    ] {
        let line = said.lines().find(|line| line.starts_with(name));
        assert!(
            line.is_some_and(|line| line.contains(what)),
            "{name}: {said}"
        );
    }
    assert!(
        !said.contains("loopwright/") && !said.contains("remotes"),
        "{said}"
    );
    assert_eq!(
        scene.repository.git_in(&other, ["status", "--porcelain"]),
        ""
    );
}

#[test]
fn what_the_user_does_between_proposals_is_saved_or_ends_the_run() {
    let mut scene = Scene::new(TestRepository::new());
    let snapshot = scene.propose("echo 5 > x");
    scene.repository.write("x", "edited\n");
    scene.repository.write("notes.txt", "1\n");
    let (commit, undone) = scene
        .place
        .commit(&mut scene.store, &snapshot.tree, "keep", &mut Unsupervised)
        .unwrap();
    assert!(
        matches!(commit, InPlaceCommit::Committed { .. }),
        "{commit:?}"
    );
    let saved = scene.saved(&undone);
    assert_eq!(scene.content(&saved, "x"), "edited\n");
    assert_eq!(scene.content(&saved, "notes.txt"), "1\n");
    scene.repository.write("mine", "1\n");
    let mine = scene.repository.commit_all("mine");
    let at = scene.place.at();
    let refused = scene.place.begin(&mut scene.store, &at).unwrap_err();
    assert!(refused.to_string().contains(&mine.to_hex()), "{refused}");
    assert_eq!(scene.repository.git(["rev-parse", "main"]), mine.to_hex());
}

#[test]
fn a_stopped_proposal_is_undone_and_saved_and_an_idle_checkout_is_left_alone() {
    let mut scene = Scene::new(TestRepository::new());
    let before = scene.repository.fingerprint();
    scene.begin();
    scene.repository.shell(
        &scene.repository.top,
        "echo 5 > x; git commit -qam half; touch y",
    );
    let undone = scene.place.close(&mut scene.store).unwrap();
    let saved = scene.saved(&undone);
    assert_eq!(scene.content(&saved, "x"), "5\n");
    assert_eq!(scene.repository.fingerprint(), before);
    scene.repository.write("x", "the user's\n");
    assert_eq!(scene.place.close(&mut scene.store).unwrap(), []);
    assert_eq!(
        fs::read_to_string(scene.repository.top.join("x")).unwrap(),
        "the user's\n"
    );
}

/// Commits as git would, and dies before anybody looks.
struct Dying;

impl UserCommands for Dying {
    fn run(&mut self, command: UserCommand) -> Result<UserRun, GitError> {
        Unsupervised.run(command)?;
        Err(GitError::NotRun("the engine died".to_owned()))
    }
}

/// Dies before git does anything.
struct Dead;

impl UserCommands for Dead {
    fn run(&mut self, _: UserCommand) -> Result<UserRun, GitError> {
        Err(GitError::NotRun("the engine died".to_owned()))
    }
}

#[test]
fn a_commit_that_was_cut_off_is_found_or_undone() {
    let mut scene = Scene::new(TestRepository::new());
    let before = scene.repository.fingerprint();
    let snapshot = scene.propose("echo 5 > x");
    let commit = |scene: &mut Scene, commands: &mut dyn UserCommands| {
        let committed = scene
            .place
            .commit(&mut scene.store, &snapshot.tree, "keep", commands);
        committed.unwrap_err();
    };
    commit(&mut scene, &mut Dead);
    assert_eq!(scene.recover("run").unwrap().unwrap(), []);
    assert_eq!(scene.repository.fingerprint(), before);
    scene.open_again("run");
    commit(&mut scene, &mut Dying);
    let made = scene.repository.git(["rev-parse", "main"]);
    assert_eq!(scene.recover("run").unwrap().unwrap(), []);
    scene.open_again("run");
    assert_eq!(scene.place.at().to_hex(), made);
    assert_eq!(scene.repository.git(["status", "--porcelain"]), "");
}

/// Is cut off before git does anything.
struct TooLong;

impl UserCommands for TooLong {
    fn run(&mut self, command: UserCommand) -> Result<UserRun, GitError> {
        fs::write(command.directory.join(".git/index.lock"), "").unwrap();
        Ok(UserRun {
            end: UserEnd::CutOff("the commit passed its limit of 5 s".to_owned()),
            said: "linting".to_owned(),
        })
    }
}

#[test]
fn a_commit_that_takes_too_long_leaves_the_checkout_as_it_was() {
    let mut scene = Scene::new(TestRepository::new());
    let before = scene.repository.fingerprint();
    let snapshot = scene.propose("echo 5 > x");
    let (commit, _) = scene
        .place
        .commit(&mut scene.store, &snapshot.tree, "keep", &mut TooLong)
        .unwrap();
    let why = "the commit passed its limit of 5 s: linting".to_owned();
    assert_eq!(commit, InPlaceCommit::Refused(Obstacle::Failed(why)));
    assert_eq!(scene.repository.fingerprint(), before);
    assert_eq!(scene.recover("run").unwrap(), None);
}

#[test]
fn nothing_is_committed_once_the_users_own_configuration_changed() {
    let repository = TestRepository::new();
    let global = repository.outside("gitconfig");
    fs::write(&global, "[alias]\n\tst = status\n").unwrap();
    let mut scene = Scene::new(repository);
    let mut environment = scene.repository.environment();
    environment.retain(|(name, _)| name != "GIT_CONFIG_GLOBAL");
    environment.push(("GIT_CONFIG_GLOBAL".to_owned(), global.clone().into()));
    scene.user.set_environment_for_test(environment);
    let state = scene.repository.outside("state");
    scene.place = InPlace::open(&state, owner("run"), &scene.user, &mut scene.store).unwrap();
    let set = |name: &str, value: &str| {
        let file = global.to_str().unwrap();
        scene
            .repository
            .git(["config", "--file", file, name, value])
    };
    set("alias.ci", "commit");
    set("core.hooksPath", "/nowhere");
    let snapshot = scene.propose("echo 5 > x");
    let refused = scene.commit(&snapshot.tree, "keep");
    let InPlaceCommit::Refused(Obstacle::Failed(why)) = refused else {
        panic!("{refused:?}");
    };
    assert!(why.contains("gitconfig changed"), "{why}");
    scene.repository.git([
        "config",
        "--file",
        global.to_str().unwrap(),
        "--unset",
        "core.hooksPath",
    ]);
    let kept = scene.commit(&snapshot.tree, "keep");
    assert!(matches!(kept, InPlaceCommit::Committed { .. }), "{kept:?}");
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
    let commit = scene.commit(&snapshot.tree, "crlf");
    let InPlaceCommit::Committed { .. } = commit else {
        panic!("{commit:?}");
    };
    let read = |name: &str| fs::read_to_string(scene.repository.top.join(name)).unwrap();
    assert_eq!(read("x"), "10\r\n");
    assert_eq!(read("my.cache"), "the user's own\n");
    assert_eq!(scene.repository.git(["status", "--porcelain"]), "");
    let undone = scene.place.begin(&mut scene.store, &head).unwrap();
    assert_eq!(undone, []);
    assert_eq!(scene.repository.fingerprint(), before);
}

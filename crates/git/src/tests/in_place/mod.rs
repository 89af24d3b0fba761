//! In place: the user's branch moves, and nothing a proposer configured is ever used.

mod cleared;
mod commit;
mod guarded;
mod recovery;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use crate::test_support::{TestRepository, Unsupervised, listing};
use crate::types::{Objects as _, Oid, RepoPath};
use crate::{
    GitError, InPlace, InPlaceCommit, ObjectStore, Obstacle, Owner, Refusal, RefusedPath, Snapshot,
    UserCommand, UserCommands, UserEnd, UserRepository, UserRun, UserSettings,
};

fn owner(run: &str) -> Owner {
    Owner {
        run: run.to_owned(),
        loop_name: "speed".to_owned(),
    }
}

/// Says, so that it can be read, that a test tested nothing.
#[expect(clippy::print_stdout, reason = "a skipped test says so")]
fn skip(why: &str) {
    println!("SKIPPED: {why}");
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
        let place = InPlace::open(
            &state,
            owner("run"),
            &user,
            &mut store,
            UserSettings::AsTheyAre,
        )
        .unwrap();
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
        self.place = InPlace::open(
            &state,
            owner(run),
            &user,
            &mut self.store,
            UserSettings::AsTheyAre,
        )
        .unwrap();
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
    let mut refusal = |user: &UserRepository| match InPlace::open(
        &state,
        owner("run"),
        user,
        &mut store,
        UserSettings::AsTheyAre,
    ) {
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
fn a_commit_that_is_taken_off_its_branch_is_kept_and_named() {
    let repository = TestRepository::new();
    // A branch with a history that the loop's store knows nothing of.
    repository.git(["checkout", "-q", "--orphan", "apart"]);
    repository.write("x", "apart\n");
    repository.commit_all("apart");
    repository.git(["checkout", "-q", "main"]);
    let mut scene = Scene::new(repository);
    for (before, commit, name) in [
        ("", "", "refs/heads/main"),
        ("", "--amend", "refs/heads/main"),
        ("git checkout -q --detach", "", "HEAD"),
        ("git checkout -qb side", "", "refs/heads/side"),
        ("git checkout -q apart", "", "refs/heads/apart"),
    ] {
        let script = format!("{before}\necho mine > x; git commit -qam mine {commit}");
        scene.begin();
        scene.repository.shell(&scene.repository.top, &script);
        let mine = scene.repository.git(["rev-parse", "HEAD"]);
        let snapshot = scene.place.snapshot(&mut scene.store).unwrap();
        let main = scene.repository.git(["rev-parse", "main"]);
        assert_eq!(main, scene.user.head.to_hex());
        let mut undone = snapshot.undone.iter();
        let words = undone.find(|it| it.path == RepoPath::from(name));
        let words = &words.expect(&script).why;
        assert!(words.contains(&mine), "{script}: {words}");
        // When git has collected what nothing names, it is still to be had.
        let expire = ["reflog", "expire", "--expire=now", "--all"];
        scene.repository.git(expire);
        scene.repository.git(["gc", "-q", "--prune=now"]);
        let (_, rest) = words.split_once("git fetch ").expect(words);
        let wanted = rest
            .trim_end_matches(')')
            .replace("NAME", "refs/heads/back");
        let (store, wanted) = wanted.split_once(' ').unwrap();
        scene.repository.git(["fetch", "-q", store, wanted]);
        assert_eq!(scene.repository.git(["show", "back:x"]), "mine", "{script}");
        let said = scene.repository.git(["log", "-1", "--format=%B", "back"]);
        assert!(said.starts_with("mine"), "{script}: {said}");
        scene.repository.git(["branch", "-qD", "back"]);
        scene.repository.git(["fsck"]);
        scene.open_again("run");
    }
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

//! After a death in the middle: what is put right, what is refused, and that nothing is lost.

use super::*;

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
        undone[0].why.contains("what stood there is now"),
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
    let mut place = InPlace::open(
        &state,
        owner("run"),
        &there,
        &mut scene.store,
        UserSettings::AsTheyAre,
    )
    .unwrap();
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

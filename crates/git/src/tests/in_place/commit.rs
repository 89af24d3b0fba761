//! Commits by the user's git that are cut off, stopped, or made under other settings.

use super::*;

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
    scene.place = InPlace::open(
        &state,
        owner("run"),
        &scene.user,
        &mut scene.store,
        UserSettings::AsTheyAre,
    )
    .unwrap();
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

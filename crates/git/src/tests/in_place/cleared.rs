//! Nothing is cleared away that is not stored: what git can't store is moved aside, or stops the run.

use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixListener;
use std::path::Path;

use super::*;

/// What git can store nothing of: repositories, names like `.git`, pipes, files in submodules.
const UNSTORABLE: &str = "git init -q nested; echo 1 > nested/y; mkdir -p new/deep; \
     git init -q new/deep/repository; echo 2 > new/deep/repository/z; echo new > new/plain; \
     mkdir .GIT; echo 3 > .GIT/config; mkfifo pipe; mkfifo new/.gitignore; mkdir empty; \
     mkdir src; echo 4 > src/.git; echo 5 > src/f";

/// Each of those, and what it holds; none for a pipe.
const HELD: [(&str, Option<&str>); 6] = [
    ("nested/y", Some("1\n")),
    ("new/deep/repository/z", Some("2\n")),
    (".GIT/config", Some("3\n")),
    ("pipe", None),
    ("new/.gitignore", None),
    ("src/f", Some("5\n")),
];

/// Where something is now, by the words that say where it was moved.
fn moved(words: &[RefusedPath], name: &str) -> PathBuf {
    let name = Path::new(name);
    let found = words.iter().find_map(|it| {
        let rest = name.strip_prefix(it.path.to_path(Path::new(""))).ok()?;
        let (place, _) = it.why.strip_prefix("it was moved to ")?.split_once(": ")?;
        let place = PathBuf::from(place);
        Some(if rest.as_os_str().is_empty() {
            place
        } else {
            place.join(rest)
        })
    });
    found.unwrap_or_else(|| panic!("{} was not moved: {words:?}", name.display()))
}

fn expect_moved(words: &[RefusedPath], name: &str, content: Option<&str>) {
    let place = moved(words, name);
    match content {
        Some(content) => assert_eq!(fs::read_to_string(&place).unwrap(), content, "{name}"),
        None => assert!(
            fs::symlink_metadata(&place).unwrap().file_type().is_fifo(),
            "{name}"
        ),
    }
}

fn with_library() -> TestRepository {
    let repository = TestRepository::new();
    let root = repository.outside("");
    repository.shell(
        &root,
        "git init -q lib; cd lib; echo 1 > y; git add y; git commit -qm y",
    );
    repository.shell(&repository.top, "git submodule -q add ../lib lib");
    repository.commit_all("submodule");
    repository
}

#[test]
fn what_a_proposal_leaves_and_git_cannot_store_is_moved_aside() {
    let mut scene = Scene::new(with_library());
    let before = scene.repository.fingerprint();
    scene.begin();
    let script = format!("{UNSTORABLE}; echo 6 > lib/y; echo 7 > lib/mine; echo 8 > x");
    scene.repository.shell(&scene.repository.top, &script);
    let socket = UnixListener::bind(scene.repository.top.join("socket")).unwrap();
    let snapshot = scene.place.snapshot(&mut scene.store).unwrap();
    drop(socket);
    assert_eq!(scene.repository.fingerprint(), before);
    assert_eq!(scene.content(&snapshot.tree, "x"), "8\n");
    assert_eq!(scene.content(&snapshot.tree, "new/plain"), "new\n");
    for (name, content) in HELD {
        expect_moved(&snapshot.undone, name, content);
    }
    expect_moved(&snapshot.undone, "lib/y", Some("6\n"));
    expect_moved(&snapshot.undone, "lib/mine", Some("7\n"));
    let socket = fs::symlink_metadata(moved(&snapshot.undone, "socket")).unwrap();
    assert!(socket.file_type().is_socket());
    // What was stored is nowhere else.
    let said = |name: &str| {
        snapshot
            .undone
            .iter()
            .any(|it| it.path == RepoPath::from(name))
    };
    assert!(
        !said("x") && !said("new/plain") && !said("new"),
        "{:?}",
        snapshot.undone
    );
}

#[test]
fn what_an_interrupted_proposal_leaves_and_git_cannot_store_is_moved_aside() {
    let mut scene = Scene::new(TestRepository::new());
    let before = scene.repository.fingerprint();
    scene.begin();
    scene.repository.shell(&scene.repository.top, UNSTORABLE);
    let words = scene.recover("run").unwrap().unwrap();
    for (name, content) in HELD {
        expect_moved(&words, name, content);
    }
    let saved = scene.saved(&words);
    assert_eq!(scene.content(&saved, "new/plain"), "new\n");
    assert_eq!(scene.repository.fingerprint(), before);
    // The same of one that is stopped.
    scene.open_again("run");
    scene.begin();
    scene.repository.shell(&scene.repository.top, UNSTORABLE);
    let words = scene.place.close(&mut scene.store).unwrap();
    expect_moved(&words, "nested/y", Some("1\n"));
    assert_eq!(scene.repository.fingerprint(), before);
}

#[test]
fn what_the_user_left_and_git_cannot_store_stops_the_run_untouched() {
    for script in [
        "git init -q nested; echo 1 > nested/y",
        "mkfifo pipe",
        "mkdir .GIT; echo 3 > .GIT/config",
    ] {
        let mut scene = Scene::new(TestRepository::new());
        scene.propose("echo 5 > x");
        scene.repository.shell(&scene.repository.top, script);
        scene.repository.write("notes.txt", "mine\n");
        let before = scene.repository.fingerprint();
        let at = scene.place.at();
        let refused = scene.place.begin(&mut scene.store, &at).unwrap_err();
        assert!(
            matches!(&refused, GitError::Refused(Refusal::CantBeSaved(paths)) if paths.len() == 1),
            "{script}: {refused}"
        );
        assert_eq!(scene.place.close(&mut scene.store).unwrap(), []);
        assert_eq!(scene.repository.fingerprint(), before, "{script}");
    }
}

#[test]
fn ignored_repositories_of_the_users_stay_whatever_the_proposal_ignores() {
    let repository = TestRepository::new();
    repository.write(".gitignore", "vendor/\n*.cache\n");
    repository.commit_all("ignore");
    repository.shell(
        &repository.top,
        "mkdir vendor; git init -q vendor/a; echo 1 > vendor/a/y; echo 2 > vendor/plain; echo 3 > my.cache",
    );
    let mut scene = Scene::new(repository);
    let before = scene.repository.fingerprint();
    for script in [
        "rm .gitignore",
        "echo build > .gitignore",
        "echo '!vendor' > vendor/.gitignore; rm .gitignore",
    ] {
        let snapshot = scene.propose(script);
        let _ = fs::remove_file(scene.repository.top.join("vendor/.gitignore"));
        assert_eq!(
            scene.repository.fingerprint(),
            before,
            "{script}: {:?}",
            snapshot.undone
        );
    }
    // An interrupted one.
    scene.begin();
    scene
        .repository
        .shell(&scene.repository.top, "rm .gitignore");
    scene.recover("run").unwrap();
    assert_eq!(scene.repository.fingerprint(), before);
}

#[test]
fn what_only_the_proposal_ignores_does_not_stay_behind() {
    let repository = TestRepository::new();
    repository.write(".gitignore", "*.cache\n");
    repository.commit_all("ignore");
    let mut scene = Scene::new(repository);
    let before = scene.repository.fingerprint();
    for rules in [".gitignore", "sub/.gitignore"] {
        let script = format!("mkdir sub; echo out >> {rules}; mkdir sub/out; echo 1 > sub/out/f");
        let snapshot = scene.propose(&script);
        assert_eq!(scene.repository.fingerprint(), before, "{rules}");
        expect_moved(&snapshot.undone, "sub/out/f", Some("1\n"));
    }
}

#[test]
fn an_ignored_file_of_the_users_outlives_a_candidate_that_has_it() {
    let repository = TestRepository::new();
    repository.write(".gitignore", "settings\n");
    repository.commit_all("ignore");
    repository.write("settings", "mine\n");
    let mut scene = Scene::new(repository);
    scene.hook("exit 1");
    scene.open_again("run");
    let before = scene.repository.fingerprint();
    let snapshot = scene.propose("rm .gitignore");
    assert_eq!(scene.content(&snapshot.tree, "settings"), "mine\n");
    assert_eq!(scene.repository.fingerprint(), before);
    let refused = scene.commit(&snapshot.tree, "keep");
    assert!(matches!(refused, InPlaceCommit::Refused(_)), "{refused:?}");
    assert_eq!(scene.repository.fingerprint(), before);
    // Edited meanwhile, and in the way of what the candidate has.
    scene.repository.write("settings", "edited\n");
    let (_, undone) = scene
        .place
        .commit(&mut scene.store, &snapshot.tree, "keep", &mut Unsupervised)
        .unwrap();
    expect_moved(&undone, "settings", Some("edited\n"));
}

#[test]
fn what_a_hook_leaves_of_a_refused_commit_is_saved() {
    let mut scene = Scene::new(TestRepository::new());
    scene.hook("echo notes > notes; git init -q nested; echo 1 > nested/y; echo 12 > x; exit 1");
    scene.open_again("run");
    let before = scene.repository.fingerprint();
    let snapshot = scene.propose("echo 5 > x");
    let (commit, undone) = scene
        .place
        .commit(&mut scene.store, &snapshot.tree, "keep", &mut Unsupervised)
        .unwrap();
    assert!(matches!(commit, InPlaceCommit::Refused(_)), "{commit:?}");
    let saved = scene.saved(&undone);
    assert_eq!(scene.content(&saved, "notes"), "notes\n");
    assert_eq!(scene.content(&saved, "x"), "12\n");
    expect_moved(&undone, "nested/y", Some("1\n"));
    assert_eq!(scene.repository.fingerprint(), before);
}

#[test]
fn what_cannot_be_moved_aside_either_stops_the_run_and_stays() {
    let mut scene = Scene::new(TestRepository::new());
    let asides = [
        scene.repository.outside("state/aside"),
        scene.repository.top.join(".git/loopwright-aside"),
    ];
    scene.begin();
    scene.repository.shell(
        &scene.repository.top,
        "git init -q first; git init -q nested; echo 1 > nested/y; echo 5 > x",
    );
    // A folder that is on another file system, where there is one.
    let elsewhere = ["/dev/shm", "/run", "/var/tmp"].iter().find_map(|folder| {
        let device = |path: &Path| {
            use std::os::unix::fs::MetadataExt as _;
            fs::metadata(path).ok().map(|facts| facts.dev())
        };
        let is_other = device(Path::new(folder))? != device(&scene.repository.top)?;
        is_other.then(|| tempfile::tempdir_in(folder).ok())?
    });
    let Some(elsewhere) = elsewhere else {
        skip("there is no other file system here");
        return;
    };
    for aside in &asides {
        std::os::unix::fs::symlink(elsewhere.path(), aside).unwrap();
    }
    let before = listing(&scene.repository.top);
    let refused = scene.recover("run").unwrap_err();
    assert!(
        matches!(&refused, GitError::Refused(Refusal::CantBeSaved(_))),
        "{refused}"
    );
    assert_eq!(listing(&scene.repository.top), before);
    // With a folder that is not, the run goes on.
    fs::remove_file(&asides[1]).unwrap();
    let words = scene.recover("run").unwrap().unwrap();
    expect_moved(&words, "nested/y", Some("1\n"));
}

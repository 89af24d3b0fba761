//! What git obeys is put back, never through a link, and never read whole where it may be of any
//! size; what is outside only refuses a keep.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::*;

/// A size that nobody reads whole in a test.
const HUGE: &str = "truncate -s 20G";

fn why(commit: InPlaceCommit) -> String {
    match commit {
        InPlaceCommit::Refused(Obstacle::Failed(why)) => why,
        other => panic!("{other:?}"),
    }
}

/// What a file or directory holds.
fn held(path: &Path) -> String {
    if path.is_dir() {
        listing(path)
    } else {
        fs::read_to_string(path).unwrap()
    }
}

fn script(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// What of the user's own a git directory leads to by a link, and how a proposal changes that.
const LINKED: [(&str, &str); 3] = [
    (
        "hooks",
        "printf '#!/bin/sh\\ntouch ran\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
    ),
    (
        "config",
        "git config --file .git/config core.editor 'touch ran'",
    ),
    ("info", "echo '* text' > .git/info/attributes"),
];

#[test]
fn what_a_link_leads_to_is_compared_and_never_written() {
    for (name, change) in LINKED {
        let repository = TestRepository::new();
        let git_dir = repository.top.join(".git");
        let shared = repository.outside("shared");
        let _ = fs::remove_dir_all(git_dir.join("hooks"));
        fs::create_dir_all(git_dir.join("hooks")).unwrap();
        fs::create_dir_all(git_dir.join("info")).unwrap();
        fs::rename(git_dir.join(name), &shared).unwrap();
        symlink(&shared, git_dir.join(name)).unwrap();
        let mut scene = Scene::new(repository);
        let unchanged = scene.propose("echo 4 > x");
        let kept = scene.commit(&unchanged.tree, "keep");
        assert!(
            matches!(kept, InPlaceCommit::Committed { .. }),
            "{name}: {kept:?}"
        );
        let before = held(&shared);
        let snapshot = scene.propose(&format!("{change}; echo 5 > x"));
        assert_ne!(held(&shared), before, "{name}: it was put back");
        let changed = held(&shared);
        let words = why(scene.commit(&snapshot.tree, "keep"));
        assert!(
            words.contains("shared") && words.contains("changed since"),
            "{name}: {words}"
        );
        assert!(!scene.repository.top.join("ran").exists(), "{name}");
        // Another link, or none, is put back as a link, and nothing behind either is touched.
        for script in [
            format!("rm .git/{name}; ln -s ../../elsewhere .git/{name}"),
            format!("rm .git/{name}; mkdir .git/{name}; echo 1 > .git/{name}/pre-commit"),
        ] {
            scene.propose(&script);
            let target = fs::read_link(git_dir.join(name)).unwrap();
            assert_eq!(target, shared, "{name}: {script}");
            assert_eq!(held(&shared), changed, "{name}: {script}");
        }
    }
}

#[test]
fn a_link_that_a_proposal_puts_in_the_way_is_not_followed() {
    let repository = TestRepository::new();
    let root = repository.outside("");
    repository.shell(
        &root,
        "git init -q lib; cd lib; echo 1 > y; git add y; git commit -qm y",
    );
    repository.shell(&repository.top, "git submodule -q add ../lib lib");
    repository.write(".gitignore", "own-hooks\n");
    repository.git(["config", "core.hooksPath", "own-hooks"]);
    repository.commit_all("submodule");
    let git_dir = repository.top.join(".git");
    script(&repository.top.join("own-hooks/pre-commit"), "exit 0");
    script(&git_dir.join("modules/lib/hooks/pre-commit"), "exit 0");
    let precious = repository.outside("precious");
    for name in [
        "pre-commit",
        "config",
        "attributes",
        "exclude",
        "HEAD",
        "alternates",
    ] {
        fs::create_dir_all(&precious).unwrap();
        fs::write(precious.join(name), "precious\n").unwrap();
    }
    let mut scene = Scene::new(repository);
    let before = (scene.repository.fingerprint(), listing(&precious));
    for path in [
        "own-hooks",
        ".git/modules/lib/hooks",
        ".git/info",
        ".git/objects/info",
        ".git/modules/lib",
    ] {
        let replace = format!("rm -rf {path}; ln -s {} {path}", precious.display());
        scene.propose(&replace);
        assert_eq!(listing(&precious), before.1, "{path}");
        if path == ".git/modules/lib" {
            // What was in there is gone for good.
            break;
        }
        assert_eq!(scene.repository.fingerprint(), before.0, "{path}");
        assert!(
            scene.repository.top.join("own-hooks/pre-commit").exists(),
            "{path}"
        );
        // The same where the engine is killed.
        scene.begin();
        scene.repository.shell(&scene.repository.top, &replace);
        scene.recover("run").unwrap();
        assert_eq!(listing(&precious), before.1, "{path}");
        assert!(
            scene.repository.top.join("own-hooks/pre-commit").exists(),
            "{path}"
        );
        scene.open_again("run");
    }
}

#[test]
fn what_says_which_repository_this_is_and_what_is_included_is_put_back() {
    let repository = TestRepository::new();
    repository.git(["config", "include.path", "more"]);
    fs::write(repository.top.join(".git/more"), "[alias]\n\ta = b\n").unwrap();
    repository.git(["config", "--add", "include.path", "../mine.config"]);
    repository.write(".gitignore", "mine.config\n");
    repository.commit_all("ignore");
    repository.write("mine.config", "[alias]\n\tb = c\n");
    let other = repository.outside("other");
    repository.git([
        "worktree",
        "add",
        "-q",
        "-b",
        "other",
        other.to_str().unwrap(),
    ]);
    let mut scene = Scene::new(repository);
    let before = scene.repository.fingerprint();
    for change in [
        "git config --file .git/more core.fsmonitor 'touch ran; false'",
        "git config --file mine.config core.fsmonitor 'touch ran; false'",
        "cp -r .git ../evil; git --git-dir=../evil config core.fsmonitor 'touch ran; false'; echo ../../evil > .git/commondir",
    ] {
        let snapshot = scene.propose(&format!("echo 5 > x; {change}"));
        assert_eq!(scene.content(&snapshot.tree, "x"), "5\n", "{change}");
        assert!(!snapshot.undone.is_empty(), "{change}");
        assert_eq!(scene.repository.fingerprint(), before, "{change}");
        assert!(!scene.repository.top.join("ran").exists(), "{change}");
    }
    // In a linked work tree its name is a file.
    let user = scene.repository.try_discover(&other).unwrap();
    let state = scene.repository.outside("state");
    let mut place = InPlace::open(
        &state,
        owner("run"),
        &user,
        &mut scene.store,
        UserSettings::AsTheyAre,
    )
    .unwrap();
    place.begin(&mut scene.store, &user.head).unwrap();
    let named = fs::read_to_string(other.join(".git")).unwrap();
    scene
        .repository
        .shell(&other, "echo 'gitdir: ../evil' > .git");
    place.snapshot(&mut scene.store).unwrap();
    assert_eq!(fs::read_to_string(other.join(".git")).unwrap(), named);
}

#[test]
fn what_is_made_huge_is_put_back_unread() {
    let mut scene = Scene::new(TestRepository::new());
    scene.repository.git(["pack-refs", "--all", "--no-prune"]);
    scene.repository.git(["branch", "-q", "loose"]);
    scene.hook("exit 0");
    scene.open_again("run");
    let before = scene.repository.fingerprint();
    for name in [
        "config",
        "HEAD",
        "index",
        "packed-refs",
        "refs/heads/main",
        "refs/heads/loose",
        "logs/HEAD",
        "hooks/pre-commit",
        "hooks/post-commit",
        "info/exclude",
        "objects/info/alternates",
        "commondir",
        "shallow",
        "MERGE_MSG",
    ] {
        let change = format!("mkdir -p .git/info; {HUGE} .git/{name}");
        scene.begin();
        scene
            .repository
            .shell(&scene.repository.top, &format!("echo 5 > x; {change}"));
        let snapshot = scene.place.snapshot(&mut scene.store).unwrap();
        assert_eq!(scene.content(&snapshot.tree, "x"), "5\n", "{name}");
        assert_eq!(scene.repository.fingerprint(), before, "{name}");
        scene.begin();
        scene.repository.shell(&scene.repository.top, &change);
        scene.recover("run").unwrap();
        assert_eq!(scene.repository.fingerprint(), before, "{name}");
        scene.open_again("run");
    }
}

/// A git of the user's in another work tree that has locked a branch and waits for its next word.
struct Locking(Child);

impl Locking {
    fn new(scene: &Scene, place: &Path, reference: &str) -> Self {
        let mut git = Command::new("git")
            .args(["update-ref", "--stdin"])
            .current_dir(place)
            .envs(scene.repository.environment())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let words = format!("start\nupdate {reference} {}\nprepare\n", scene.user.head);
        std::io::Write::write_all(git.stdin.as_mut().unwrap(), words.as_bytes()).unwrap();
        let mut said = [0; 22];
        std::io::Read::read_exact(git.stdout.as_mut().unwrap(), &mut said).unwrap();
        assert_eq!(&said, b"start: ok\nprepare: ok\n");
        Self(git)
    }

    fn commit(mut self) {
        let stdin = self.0.stdin.as_mut().unwrap();
        std::io::Write::write_all(stdin, b"commit\n").unwrap();
        assert!(self.0.wait().unwrap().success());
    }
}

#[test]
fn locks_of_a_git_at_work_elsewhere_stay_and_those_of_a_dead_one_go() {
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
    let mut scene = Scene::new(repository);
    let [held, dead, main] =
        ["novel", "dead", "main"].map(|name| lock_file(&scene, &format!("refs/heads/{name}")));
    scene.begin();
    let locking = Locking::new(&scene, &other, "refs/heads/novel");
    fs::write(&dead, "").unwrap();
    let snapshot = scene.place.snapshot(&mut scene.store).unwrap();
    assert!(held.exists() && dead.exists(), "{:?}", snapshot.undone);
    locking.commit();
    assert!(!held.exists());
    // Now that nobody is at work, what is left is nobody's.
    let snapshot = scene.propose("touch .git/index.lock .git/HEAD.lock .git/packed-refs.lock");
    assert!(!dead.exists(), "{:?}", snapshot.undone);
    for name in ["index", "HEAD", "packed-refs"] {
        assert!(!lock_file(&scene, name).exists(), "{name}");
    }
    // One that is in the way is waited for, and named.
    scene.begin();
    let locking = Locking::new(&scene, &other, "refs/heads/main");
    let refused = scene.place.snapshot(&mut scene.store).unwrap_err();
    assert!(
        matches!(&refused, GitError::Refused(Refusal::Locked(path)) if *path == main),
        "{refused}"
    );
    assert!(main.exists());
    locking.commit();
    scene.recover("run").unwrap();
    scene.open_again("run");
    // What somebody has open is theirs, whatever they are called.
    scene.begin();
    let opened = fs::File::create(lock_file(&scene, "index")).unwrap();
    let refused = scene.place.snapshot(&mut scene.store).unwrap_err();
    assert!(
        matches!(refused, GitError::Refused(Refusal::Locked(_))),
        "{refused}"
    );
    drop(opened);
    scene.place.snapshot(&mut scene.store).unwrap();
    assert!(!lock_file(&scene, "index").exists());
}

fn lock_file(scene: &Scene, name: &str) -> PathBuf {
    scene.repository.top.join(format!(".git/{name}.lock"))
}

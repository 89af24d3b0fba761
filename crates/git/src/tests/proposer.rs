//! The proposer's repository: whatever an agent does becomes one candidate, and nothing stays.

use std::fs;
use std::path::Path;

use crate::test_support::{TestRepository, commit_tree, listing};
use crate::types::{Mode, Oid, RepoPath};
use crate::{ObjectStore, Person, ProposerRepository, Snapshot, UserRepository};

struct Scene {
    repository: TestRepository,
    user: UserRepository,
    store: ObjectStore,
    proposer: ProposerRepository,
    clean: String,
}

impl Scene {
    fn new(repository: TestRepository) -> Self {
        let (user, mut store) = repository.store();
        let identity = user.identity().unwrap();
        let place = repository.outside("proposer");
        let mut proposer =
            ProposerRepository::create(&place, &user, &mut store, &identity).unwrap();
        proposer.reset_to(&mut store, &user.head).unwrap();
        let clean = listing(proposer.work_tree());
        Self {
            repository,
            user,
            store,
            proposer,
            clean,
        }
    }

    fn propose(&mut self, script: &str) -> Snapshot {
        self.repository.shell(&self.work().clone(), script);
        self.proposer.snapshot(&mut self.store).unwrap()
    }

    fn work(&self) -> std::path::PathBuf {
        self.proposer.work_tree().to_path_buf()
    }

    /// Resets and demands the incumbent byte for byte, a clean `git status` and no change.
    fn reset(&mut self) {
        self.proposer
            .reset_to(&mut self.store, &self.user.head)
            .unwrap();
        assert_eq!(listing(&self.work()), self.clean);
        let snapshot = self.proposer.snapshot(&mut self.store).unwrap();
        assert_eq!(snapshot.changes, []);
        assert_eq!(snapshot.agent_head, None);
        assert_eq!(snapshot.refused, []);
        let full = self.proposer.full_snapshot(&mut self.store).unwrap();
        assert_eq!(full.tree, snapshot.tree);
        let git = |arguments: [&str; 2]| self.repository.git_in(&self.work(), arguments);
        assert_eq!(git(["status", "--porcelain"]), "");
        assert_eq!(git(["rev-parse", "HEAD"]), self.user.head.to_hex());
    }

    fn content(&mut self, snapshot: &Snapshot, path: &str) -> String {
        use crate::types::Objects as _;
        let listing = self.store.listing(&snapshot.tree).unwrap();
        let (_, oid) = listing[&RepoPath::from(path)];
        String::from_utf8(self.store.read_blob(&oid).unwrap()).unwrap()
    }
}

/// `lib` is an initialised submodule with the file `y`, which has a submodule `inner` itself.
fn with_submodule() -> TestRepository {
    let repository = TestRepository::new();
    let root = repository.outside("");
    repository.shell(
        &root,
        "git init -q inner; cd inner; echo 1 > z; git add z; git commit -qm z; cd ..; \
         git init -q lib; cd lib; echo 1 > y; git add y; git commit -qm y; \
         git submodule -q add ../inner inner; git commit -qm inner",
    );
    repository.shell(
        &repository.top,
        "git submodule -q add ../lib lib; git submodule -q update --init --recursive",
    );
    repository.commit_all("submodule");
    repository
}

#[test]
fn submodules_are_filled_where_the_user_has_them_and_read_only() {
    let mut scene = Scene::new(with_submodule());
    let work = scene.work();
    let read = |path: &str| fs::read_to_string(work.join(path)).ok();
    assert_eq!(read("lib/y").as_deref(), Some("1\n"));
    assert_eq!(read("lib/inner/z").as_deref(), Some("1\n"));
    let snapshot = scene.propose("echo 5 > x; rm -rf lib");
    assert_eq!(paths(&snapshot), ["x"]);
    assert_eq!(snapshot.refused[0].path, RepoPath::from("lib"));
    scene.reset();
    let snapshot = scene.propose("echo 2 > lib/inner/z; touch lib/inner/new; mkdir lib/e");
    assert_eq!(paths(&snapshot), [""; 0]);
    assert_eq!(snapshot.refused.len(), 1);
    scene.reset();
    // Where the user has not initialised it there is an empty directory, as with git.
    let root = scene.repository.outside("");
    scene
        .repository
        .git_in(&root, ["clone", "-q", "project", "clone"]);
    let user = scene.repository.try_discover(&root.join("clone")).unwrap();
    let mut store = ObjectStore::open_or_create(&root.join("s2"), &user).unwrap();
    store.import_base(&user, &user.head).unwrap();
    let person = Person::loopwright();
    let mut proposer =
        ProposerRepository::create(&root.join("p2"), &user, &mut store, &person).unwrap();
    proposer.reset_to(&mut store, &user.head).unwrap();
    assert_eq!(
        fs::read_dir(proposer.work_tree().join("lib"))
            .unwrap()
            .count(),
        0
    );
    fs::remove_dir(proposer.work_tree().join("lib")).unwrap();
    let snapshot = proposer.snapshot(&mut store).unwrap();
    assert_eq!((paths(&snapshot).len(), snapshot.refused.len()), (0, 1));
    proposer.reset_to(&mut store, &user.head).unwrap();
    assert!(proposer.work_tree().join("lib").is_dir());
}

fn paths(snapshot: &Snapshot) -> Vec<String> {
    snapshot
        .changes
        .iter()
        .map(|change| change.path.to_string())
        .collect()
}

#[test]
fn c1_whatever_the_agent_does_with_git_is_one_candidate() {
    let scripts = [
        "echo 5 > x; git commit -qam mine",
        "git checkout -qb side; echo 5 > x; git commit -qam mine",
        "echo 7 > x; git commit -qam mine; echo 5 > x; git commit -qa --amend -m again",
        "echo 5 > x; git add x; git commit -qm one; git commit -q --allow-empty -m two; \
         git rebase -q HEAD~1",
        "git config core.fsmonitor \"$PWD/evil\"; git config filter.f.clean \"touch $PWD/ran\"; \
         echo 5 > x",
        "printf '#!/bin/sh\\ntouch ran\\n' > .git/hooks/post-checkout; \
         chmod +x .git/hooks/post-checkout; echo /nowhere > .git/objects/info/alternates; echo 5 > x",
        "rm -rf .git; echo 5 > x",
        "rm -rf .git; ln -s /tmp .git; echo 5 > x",
        "rm -rf .git; git init -q; git add -A; git commit -qm root; echo 5 > x",
        "git pack-refs --all; echo 5 > x; git commit -qam packed; git gc -q",
        "git worktree add -q ../other; echo 5 > x",
    ];
    let before;
    let mut scene = {
        let repository = TestRepository::new();
        before = repository.fingerprint();
        Scene::new(repository)
    };
    for script in scripts {
        let snapshot = scene.propose(script);
        assert_eq!(paths(&snapshot), ["x"], "{script}");
        assert_eq!(scene.content(&snapshot, "x"), "5\n", "{script}");
        let committed = script.contains("commit");
        assert_eq!(snapshot.agent_head.is_some(), committed, "{script}");
        scene.reset();
        assert!(!scene.work().join("ran").exists());
    }
    assert_eq!(scene.repository.fingerprint(), before);
}

#[test]
fn c1_the_agents_own_words_are_kept() {
    let mut scene = Scene::new(TestRepository::new());
    let snapshot =
        scene.propose("git checkout -qb side; echo 5 > x; git commit -qam 'why: faster'");
    let head = snapshot.agent_head.unwrap();
    assert_eq!(head.branch.as_deref(), Some("side"));
    assert_eq!(head.message.as_deref(), Some("why: faster\n"));
}

#[test]
fn c2_rejected_work_leaves_nothing_behind() {
    let repository = with_submodule();
    repository.write(".gitignore", "cache/\n");
    repository.write("keep/me", "1\n");
    repository.write("closed/in/f", "1\n");
    repository.write("tool", "#!/bin/sh\n");
    repository.git(["add", "-A"]);
    repository.git(["update-index", "--chmod=+x", "tool"]);
    repository.shell(
        &repository.top,
        "ln -s x link; git add link; git commit -qm more",
    );
    let mut scene = Scene::new(repository);
    let snapshot = scene.propose(
        "echo 50 > x; git add x; printf hi > 'a b\nc'; mkdir empty; chmod +x run.sh; \
         mkdir nested; cd nested; git init -q; echo 1 > f; git add f; git commit -qm n; cd ..; \
         echo secret.txt >> .gitignore; echo s > secret.txt; \
         mkdir -p cache/deep; echo c > cache/deep/f; rm link; ln -s /etc link; \
         mkfifo pipe; chmod 000 tool; rm -rf keep; ln -s / keep; \
         mkdir -p shut/in; echo 1 > shut/in/f; chmod 000 shut/in; \
         echo 2 > closed/in/f; echo 1 > closed/new; chmod 000 closed/in; chmod 555 closed; \
         echo 2 > lib/y; echo 3 > lib/new; (cd lib && git init -q)",
    );
    let expected = [
        ".gitignore",
        "\"a b\\nc\"",
        "closed/in/f",
        "closed/new",
        "keep",
        "keep/me",
        "link",
        "run.sh",
        "shut/in/f",
    ];
    let mut found = paths(&snapshot);
    found.retain(|path| path != "tool" && path != "x");
    assert_eq!(found, expected);
    assert_eq!(scene.content(&snapshot, "x"), "50\n");
    let refused: Vec<String> = snapshot
        .refused
        .iter()
        .map(|it| it.path.to_string())
        .collect();
    assert_eq!(refused, ["lib", "nested", "pipe"]);
    let script = snapshot
        .changes
        .iter()
        .find(|it| it.path == RepoPath::from("run.sh"))
        .unwrap();
    assert_eq!(script.after.unwrap().0, Mode::Executable);
    scene.reset();
}

#[test]
fn odd_names_and_deep_trees_come_and_go() {
    let mut scene = Scene::new(TestRepository::new());
    let snapshot = scene.propose(
        "printf 1 > \"$(printf 'caf\\351')\"; printf 2 > '\"quoted\"'; printf 3 > ' space '; \
         d=.; for i in $(seq 150); do d=$d/d; done; mkdir -p $d; printf 4 > $d/f; \
         mkdir .GIT; printf 5 > .GIT/f; mkdir sub; echo x > 'sub/git~1'",
    );
    assert_eq!(snapshot.changes.len(), 4);
    assert!(paths(&snapshot).iter().any(|path| path.len() > 300));
    assert_eq!(snapshot.refused.len(), 2);
    let commit = commit_tree(&mut scene.store, snapshot.tree, &[], "odd");
    scene.proposer.reset_to(&mut scene.store, &commit).unwrap();
    let again = scene.proposer.full_snapshot(&mut scene.store).unwrap();
    assert_eq!(again.tree, snapshot.tree);
    assert_eq!(again.changes, []);
    scene.reset();
}

#[test]
fn a_removed_directory_is_no_proposal_and_is_rebuilt() {
    let mut scene = Scene::new(TestRepository::new());
    for script in [
        "rm -rf \"$PWD\"",
        "d=$PWD; cd /; rm -rf \"$d\"; ln -s /tmp \"$d\"",
    ] {
        let snapshot = scene.propose(script);
        assert!(snapshot.removed);
        assert_eq!(snapshot.changes, []);
        scene.reset();
    }
}

#[test]
fn writing_never_follows_a_link_out_of_the_tree() {
    let repository = TestRepository::new();
    repository.write("d/e/f", "inside\n");
    repository.commit_all("more");
    let outside = repository.outside("victim");
    fs::create_dir_all(outside.join("e")).unwrap();
    fs::write(outside.join("e/f"), "untouched\n").unwrap();
    fs::write(outside.join("e/extra"), "untouched\n").unwrap();
    let mut scene = Scene::new(repository);
    let victim = outside.display().to_string();
    for script in [
        format!("rm -rf d; ln -s '{victim}' d"),
        format!("rm -rf d/e; ln -s '{victim}/e' d/e"),
        format!("rm d/e/f; ln '{victim}/e/f' d/e/f"),
        format!("rm d/e/f; ln -s '{victim}/e/f' d/e/f"),
    ] {
        scene.propose(&script);
        scene.reset();
        assert_eq!(
            fs::read_to_string(outside.join("e/f")).unwrap(),
            "untouched\n"
        );
        assert!(outside.join("e/extra").exists());
    }
}

#[test]
fn same_size_edits_in_the_same_instant_are_seen() {
    let mut scene = Scene::new(TestRepository::new());
    let head = scene.user.head;
    for round in 0..50 {
        let digit = round % 10;
        fs::write(scene.work().join("x"), format!("2{digit}\n")).unwrap();
        let snapshot = scene.proposer.snapshot(&mut scene.store).unwrap();
        assert_eq!(scene.content(&snapshot, "x"), format!("2{digit}\n"));
        scene.proposer.reset_to(&mut scene.store, &head).unwrap();
        assert_eq!(fs::read_to_string(scene.work().join("x")).unwrap(), "10\n");
    }
}

#[test]
fn ignoring_is_gits() {
    let repository = TestRepository::new();
    repository.write(".gitignore", "*.log\n!keep.log\n/build/\nsub/**/tmp\n");
    repository.write("build/tracked", "1\n");
    repository.git(["add", "-f", "build/tracked"]);
    repository.commit_all("more");
    repository.shell(&repository.top, "echo '*.swp' >> .git/info/exclude");
    let mut scene = Scene::new(repository);
    let script = "echo 1 > a.log; echo 1 > keep.log; echo 2 > build/tracked; echo 1 > build/new; \
                  mkdir -p sub/a/tmp sub/b; echo 1 > sub/a/tmp/f; echo 1 > sub/b/f; echo 1 > e.swp; \
                  mkdir own; printf '*\\n!.gitignore\\n' > own/.gitignore; echo 1 > own/f";
    let snapshot = scene.propose(script);
    let mut ours = paths(&snapshot);
    ours.sort();
    let work = scene.work();
    scene.repository.git_in(&work, ["add", "-A"]);
    let theirs = scene
        .repository
        .git_in(&work, ["diff", "--cached", "--name-only"]);
    assert_eq!(ours, theirs.lines().collect::<Vec<_>>());
    scene.reset();
    // Rules that are a pipe would make git wait for ever.
    let snapshot = scene
        .propose("rm .gitignore; mkfifo .gitignore; mkdir n; mkfifo n/.gitignore; echo 1 > n/f");
    assert_eq!(paths(&snapshot), [".gitignore", "n/f"]);
    assert_eq!(snapshot.refused.len(), 2);
    scene.reset();
}

#[test]
fn history_can_be_read_and_incumbents_follow() {
    let repository = TestRepository::new();
    repository.write("x", "9\n");
    repository.commit_all("second");
    let mut scene = Scene::new(repository);
    let log = |scene: &Scene| {
        let work = scene.work();
        scene.repository.git_in(&work, ["log", "--format=%s"])
    };
    assert_eq!(log(&scene), "second\nstart");
    let snapshot = scene.propose("echo 5 > x; mkdir -p new; echo 1 > new/f; rm run.sh");
    let kept = commit_tree(&mut scene.store, snapshot.tree, &[scene.user.head], "kept");
    scene.proposer.reset_to(&mut scene.store, &kept).unwrap();
    assert_eq!(log(&scene), "kept\nsecond\nstart");
    assert_eq!(
        scene.proposer.snapshot(&mut scene.store).unwrap().changes,
        []
    );
    let work = scene.work();
    assert_eq!(
        scene.repository.git_in(&work, ["status", "--porcelain"]),
        ""
    );
    assert_eq!(
        scene.repository.git_in(&work, ["branch", "--show-current"]),
        "main"
    );
    assert!(!Path::new(&work).join("run.sh").exists());
    scene.reset();
}

#[test]
fn sha256_repositories_work_the_same() {
    let format = crate::types::ObjectFormat::Sha256;
    let mut scene = Scene::new(TestRepository::with_format(format));
    let snapshot = scene.propose("echo 5 > x; git commit -qam mine");
    assert_eq!(snapshot.tree.to_hex().len(), 64);
    assert!(snapshot.agent_head.is_some());
    scene.reset();
}

#[test]
fn a_second_process_takes_over_a_place() {
    let mut scene = Scene::new(TestRepository::new());
    let identity = Person::loopwright();
    let place = scene.repository.outside("proposer");
    for script in [
        "true",
        "echo 5 > x; echo 1 > new",
        "chmod 600 x; chmod 700 .; mkdir e; ln x ../second",
        "rm x; ln -s run.sh x; git commit -qam mine",
    ] {
        scene.propose(script);
        scene.proposer =
            ProposerRepository::create(&place, &scene.user, &mut scene.store, &identity).unwrap();
        scene.reset();
    }
    let none: Option<Oid> = None;
    assert_eq!(scene.store.chain_head("run").unwrap(), none);
}

#[test]
fn a_restore_that_failed_midway_is_made_good_by_the_next() {
    let mut scene = Scene::new(TestRepository::new());
    let snapshot = scene.propose("rm x; echo 1 > a; echo 2 > z");
    let kept = commit_tree(&mut scene.store, snapshot.tree, &[scene.user.head], "kept");
    // A tree with a blob that is missing fails halfway through.
    let missing = Oid::from_bytes(&[7; 20]).unwrap();
    let change = crate::Change {
        path: RepoPath::from("m"),
        before: None,
        after: Some((Mode::File, missing)),
    };
    let broken = scene.store.write_tree(&snapshot.tree, &[change]).unwrap();
    let broken = commit_tree(&mut scene.store, broken, &[kept], "broken");
    scene
        .proposer
        .reset_to(&mut scene.store, &broken)
        .unwrap_err();
    scene.reset();
    scene
        .proposer
        .reset_to(&mut scene.store, &broken)
        .unwrap_err();
    scene.proposer.reset_to(&mut scene.store, &kept).unwrap();
    assert_eq!(
        scene
            .proposer
            .full_snapshot(&mut scene.store)
            .unwrap()
            .changes,
        []
    );
    scene.reset();
}

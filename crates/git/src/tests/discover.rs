//! Odd repositories: handled, or refused in words before anything is spent.

use std::fs;

use crate::test_support::TestRepository;
use crate::types::{ObjectFormat, RepoPath};
use crate::{GitError, ObjectStore, Refusal};

fn refusal(result: Result<impl std::fmt::Debug, GitError>) -> Refusal {
    match result {
        Err(GitError::Refused(refusal)) => refusal,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

#[test]
fn what_a_loop_cant_start_from_is_refused_with_the_command_to_run() {
    let repository = TestRepository::unborn(ObjectFormat::Sha1);
    let unborn = refusal(repository.try_discover(&repository.top));
    assert!(unborn.to_string().contains("git commit"), "{unborn}");
    let nowhere = refusal(repository.try_discover(&repository.outside("missing")));
    assert!(matches!(nowhere, Refusal::NotARepository(_)));
    let plain = repository.outside("plain");
    fs::create_dir(&plain).unwrap();
    let plain = refusal(repository.try_discover(&plain));
    assert!(plain.to_string().contains("git init"), "{plain}");
    let repository = TestRepository::new();
    let bare = repository.outside("bare.git");
    repository.git(["clone", "-q", "--bare", ".", bare.to_str().unwrap()]);
    let refused = refusal(repository.try_discover(&bare));
    assert!(matches!(refused, Refusal::Bare(path) if path == bare));
    assert!(matches!(
        refusal(repository.try_discover(&repository.top.join(".git"))),
        Refusal::Bare(_)
    ));
}

#[test]
fn identity_comes_from_the_configuration_or_the_environment_or_is_refused() {
    let repository = TestRepository::new();
    let person = repository.discover().identity().unwrap();
    assert_eq!(
        (person.name.as_str(), person.email.as_str()),
        ("A User", "user@example.org")
    );
    repository.git(["config", "user.useConfigOnly", "true"]);
    repository.git(["config", "--unset", "user.email"]);
    let refused = refusal(repository.discover().identity());
    assert!(refused.to_string().contains("user.email"), "{refused}");
    let mut environment = repository.environment();
    environment.push(("GIT_COMMITTER_EMAIL".to_owned(), "env@example.org".into()));
    let user = crate::UserRepository::discover_with(&repository.top, environment).unwrap();
    assert_eq!(user.identity().unwrap().email, "env@example.org");
}

#[test]
fn dirty_checkouts_say_what_the_loop_will_not_see() {
    let repository = TestRepository::new();
    repository.write(".gitignore", "*.log\n");
    repository.commit_all("ignore");
    assert!(repository.discover().dirty().unwrap().is_clean());
    repository.write("x", "11\n");
    repository.write("new file", "1\n");
    repository.write("dir/f", "1\n");
    repository.write("a.log", "1\n");
    repository.git(["rm", "-q", "--cached", "run.sh"]);
    let index = fs::read(repository.top.join(".git/index")).unwrap();
    let dirty = repository.discover().dirty().unwrap();
    assert_eq!(
        dirty.modified,
        [RepoPath::from("run.sh"), RepoPath::from("x")]
    );
    let untracked = ["dir/", "new file", "run.sh"].map(RepoPath::from);
    assert_eq!(dirty.untracked, untracked);
    assert_eq!(fs::read(repository.top.join(".git/index")).unwrap(), index);
}

#[test]
fn sub_directories_and_linked_worktrees_are_known() {
    let repository = TestRepository::new();
    repository.write("deep/er/f", "1\n");
    let head = repository.commit_all("deep");
    let user = repository
        .try_discover(&repository.top.join("deep/er"))
        .unwrap();
    assert_eq!(user.top, repository.top);
    assert_eq!(user.prefix, RepoPath::from("deep/er"));
    assert_eq!(user.branch.as_deref(), Some("main"));
    let linked = repository.outside("linked");
    repository.git([
        "worktree",
        "add",
        "-q",
        "--detach",
        linked.to_str().unwrap(),
    ]);
    let user = repository.try_discover(&linked).unwrap();
    assert!(user.linked_worktree);
    assert_eq!((user.branch.clone(), user.head), (None, head));
    assert_eq!(user.common_dir, repository.top.join(".git"));
    let mut store = ObjectStore::open_or_create(&repository.outside("store"), &user).unwrap();
    store.import_base(&user, &head).unwrap();
}

#[test]
fn shallow_sparse_and_partial_clones() {
    let repository = TestRepository::new();
    repository.write("x", "11\n");
    repository.write("dir/f", "1\n");
    repository.commit_all("second");
    repository.git(["config", "uploadpack.allowFilter", "true"]);
    let url = format!("file://{}", repository.top.display());
    let root = repository.outside("");
    repository.git_in(&root, ["clone", "-q", "--depth=1", &url, "shallow"]);
    let user = repository.try_discover(&root.join("shallow")).unwrap();
    assert!(user.shallow && !user.partial);
    let mut store = ObjectStore::open_or_create(&root.join("s1"), &user).unwrap();
    store.import_base(&user, &user.head).unwrap();
    repository.git_in(&root.join("shallow"), ["sparse-checkout", "set", "dir"]);
    let user = repository.try_discover(&root.join("shallow")).unwrap();
    assert!(user.sparse);
    assert!(user.dirty().unwrap().is_clean());
    let partial = [
        "clone",
        "-q",
        "--filter=blob:none",
        "--no-checkout",
        &url,
        "partial",
    ];
    repository.git_in(&root, partial);
    let user = repository.try_discover(&root.join("partial")).unwrap();
    assert!(user.partial);
    let mut store = ObjectStore::open_or_create(&root.join("s2"), &user).unwrap();
    let refused = refusal(store.import_base(&user, &user.head));
    assert_eq!(refused, Refusal::PartialObjectsMissing { count: 3 });
    repository.git_in(&root.join("partial"), ["checkout", "-q"]);
    store.import_base(&user, &user.head).unwrap();
}

#[test]
fn alternates_of_the_users_are_followed() {
    let repository = TestRepository::new();
    let root = repository.outside("");
    repository.git(["clone", "-q", "--shared", ".", "../shared"]);
    let user = repository.try_discover(&root.join("shared")).unwrap();
    let found = user.object_directories();
    assert_eq!(found.len(), 2);
    assert_eq!(found[1], repository.top.join(".git/objects"));
    let mut store = ObjectStore::open_or_create(&root.join("store"), &user).unwrap();
    store.import_base(&user, &user.head).unwrap();
    fs::remove_dir_all(&repository.top).unwrap();
    store.git().run(["fsck", "--full"]).unwrap();
}

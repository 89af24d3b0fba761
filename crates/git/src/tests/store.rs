//! The store: git agrees with everything this process writes, and the user may do as they like.

use std::fs;

use crate::git::Git;
use crate::test_support::{TestRepository, commit_tree};
use crate::types::{Change, Mode, ObjectFormat, Objects as _, Oid, RepoPath, diff_listings};
use crate::{CommitSpec, GitError, ObjectStore, Person};

fn change(store: &mut ObjectStore, path: &str, content: &str) -> Change {
    let oid = store.write_blob(content.as_bytes()).unwrap();
    Change {
        path: RepoPath::from(path),
        before: None,
        after: Some((Mode::File, oid)),
    }
}

#[test]
fn git_reads_what_we_write_in_both_formats() {
    for format in [ObjectFormat::Sha1, ObjectFormat::Sha256] {
        let repository = TestRepository::with_format(format);
        repository.write("a/b/c", "deep\n");
        repository.write("a.b", "dot\n");
        repository.commit_all("more");
        let (user, mut store) = repository.store();
        let base = store.read_commit(&user.head).unwrap().tree;
        let changes = [
            change(&mut store, "a/b/c", "changed\n"),
            change(&mut store, "a0", "sorts after a/\n"),
            change(&mut store, "new/dir/file", "new\n"),
            Change {
                path: RepoPath::from("a.b"),
                before: None,
                after: None,
            },
        ];
        let tree = store.write_tree(&base, &changes).unwrap();
        let commit = commit_tree(&mut store, tree, &[user.head], "candidate");
        let link = store.append_to_chain("run-1", None, commit, 5).unwrap();
        assert_eq!(store.chain_head("run-1").unwrap(), Some(link));
        let again = store.append_to_chain("run-1", None, commit, 5).unwrap();
        assert_eq!(again, link);
        let git = store.git().clone();
        git.run(["fsck", "--full", "--strict", "--no-dangling"])
            .unwrap();
        let listed = git
            .text(["ls-tree", "-r", "--name-only", &tree.to_hex()])
            .unwrap();
        assert_eq!(listed, "a/b/c\na0\nnew/dir/file\nrun.sh\nx");
        let before = store.listing(&base).unwrap();
        let after = store.listing(&tree).unwrap();
        assert_eq!(
            diff_listings(&before, &after),
            store.diff(&base, &tree).unwrap()
        );
        assert_eq!(after.len(), 5);
    }
}

#[test]
fn emptied_directories_leave_the_tree_and_files_become_directories() {
    let repository = TestRepository::new();
    repository.write("d/only", "1\n");
    repository.commit_all("more");
    let (user, mut store) = repository.store();
    let base = store.read_commit(&user.head).unwrap().tree;
    let remove = |path: &str| Change {
        path: RepoPath::from(path),
        before: None,
        after: None,
    };
    let inside = change(&mut store, "x/inside", "2\n");
    let file = change(&mut store, "d", "3\n");
    let changes = [file, remove("d/only"), remove("x"), inside];
    let tree = store.write_tree(&base, &changes).unwrap();
    let paths: Vec<String> = store
        .listing(&tree)
        .unwrap()
        .keys()
        .map(ToString::to_string)
        .collect();
    assert_eq!(paths, ["d", "run.sh", "x/inside"]);
    let all = ["d", "run.sh", "x/inside"].map(remove);
    let nothing = store.write_tree(&tree, &all).unwrap();
    assert_eq!(nothing, store.empty_tree().unwrap());
}

#[test]
fn the_base_outlives_the_users_garbage_collection() {
    let repository = TestRepository::new();
    repository.write("x", "11\n");
    repository.commit_all("second");
    let (user, store) = repository.store();
    drop(store);
    repository.shell(
        &repository.top,
        "git reset -q --hard HEAD~1; git reflog expire --expire=now --all; git gc -q --prune=now",
    );
    let mut store = ObjectStore::open_or_create(&repository.outside("store"), &user).unwrap();
    let commit = store.read_commit(&user.head).unwrap();
    let listing = store.listing(&commit.tree).unwrap();
    let (_, blob) = listing[&RepoPath::from("x")];
    assert_eq!(store.read_blob(&blob).unwrap(), b"11\n");
    store.git().run(["fsck", "--full"]).unwrap();
}

#[test]
fn a_stump_left_by_a_power_loss_is_written_again() {
    let repository = TestRepository::new();
    let (user, mut store) = repository.store();
    let oid = store.write_blob(b"precious").unwrap();
    assert_eq!(store.make_durable().unwrap(), 1);
    drop(store);
    let hex = oid.to_hex();
    let path = repository
        .outside("store/objects")
        .join(&hex[..2])
        .join(&hex[2..]);
    fs::remove_file(&path).unwrap();
    fs::write(&path, b"").unwrap();
    let mut store = ObjectStore::open_or_create(&repository.outside("store"), &user).unwrap();
    assert_eq!(store.write_blob(b"precious").unwrap(), oid);
    assert_eq!(store.read_blob(&oid).unwrap(), b"precious");
    assert_eq!(store.make_durable().unwrap(), 1);
}

/// Git writes no object whose name is there.
#[test]
fn a_stump_that_git_passed_over_is_not_believed() {
    let repository = TestRepository::new();
    let (user, mut store) = repository.store();
    repository.write("new", "precious\n");
    repository.commit_all("more");
    let [commit, blob] = ["HEAD", "HEAD:new"]
        .map(|name| repository.git(["rev-parse", name]).trim().parse().unwrap());
    let blob: Oid = blob;
    let path = store.loose_path(&blob);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, b"").unwrap();
    let git = user.hermetic();
    let refused = store.import_new(&git, &commit, &user.head).unwrap_err();
    assert!(refused.to_string().contains("not whole"), "{refused}");
    store.import_new(&git, &commit, &user.head).unwrap();
    assert_eq!(store.read_blob(&blob).unwrap(), b"precious\n");
}

#[test]
fn candidates_move_to_another_base_or_conflict() {
    let repository = TestRepository::new();
    repository.write("long", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    repository.commit_all("more");
    let (user, mut store) = repository.store();
    let base = store.read_commit(&user.head).unwrap().tree;
    let top = [change(&mut store, "long", "one\n2\n3\n4\n5\n6\n7\n8\n9\n")];
    let end = [change(&mut store, "long", "1\n2\n3\n4\n5\n6\n7\n8\nnine\n")];
    let top = store.write_tree(&base, &top).unwrap();
    let end = store.write_tree(&base, &end).unwrap();
    let both = store.apply_candidate(&end, &base, &top).unwrap();
    let (_, blob) = store.listing(&both).unwrap()[&RepoPath::from("long")];
    assert_eq!(
        store.read_blob(&blob).unwrap(),
        b"one\n2\n3\n4\n5\n6\n7\n8\nnine\n"
    );
    let other = [change(&mut store, "long", "uno\n2\n3\n4\n5\n6\n7\n8\n9\n")];
    let other = store.write_tree(&base, &other).unwrap();
    match store.apply_candidate(&other, &base, &top) {
        Err(GitError::Conflict { paths }) => assert_eq!(paths, [RepoPath::from("long")]),
        result => panic!("{result:?}"),
    }
}

#[test]
fn a_dead_reader_is_started_again() {
    let repository = TestRepository::new();
    let (user, mut store) = repository.store();
    let tree = store.read_commit(&user.head).unwrap().tree;
    store.read_object(&tree).unwrap();
    store.kill_reader_for_test();
    assert_eq!(store.listing(&tree).unwrap().len(), 2);
    let (_, blob) = store.listing(&tree).unwrap()[&RepoPath::from("x")];
    store.kill_reader_for_test();
    let mut seen = 0;
    let mut count = |_: usize, content: &[u8]| {
        seen += usize::from(content == b"10\n");
        Ok(())
    };
    store.read_blobs(&vec![blob; 5000], &mut count).unwrap();
    assert_eq!(seen, 5000);
    let mut calls = 0;
    let mut refuse = |_: usize, _: &[u8]| {
        calls += 1;
        Err(GitError::Unexpected("full".to_owned()))
    };
    store
        .read_blobs(&vec![blob; 50_000], &mut refuse)
        .unwrap_err();
    assert_eq!(calls, 1);
    assert_eq!(store.read_blob(&blob).unwrap(), b"10\n");
}

#[test]
fn many_make_one_store_at_once_and_bring_a_base_each() {
    let repository = TestRepository::new();
    let commits: Vec<Oid> = (0..6)
        .map(|number| {
            repository.write("x", &format!("{number}\n"));
            repository.commit_all("another")
        })
        .collect();
    let user = repository.discover();
    let place = repository.outside("store");
    std::thread::scope(|scope| {
        for commit in &commits {
            let (user, place) = (&user, &place);
            scope.spawn(move || {
                let mut store = ObjectStore::open_or_create(place, user).unwrap();
                store.import_base(user, commit).unwrap();
                store
                    .append_to_chain(&commit.to_hex(), None, *commit, 1)
                    .unwrap();
            });
        }
    });
    let mut store = ObjectStore::open_or_create(&place, &user).unwrap();
    let bases = store.bases().unwrap();
    for commit in &commits {
        assert!(bases.contains(commit), "{commit}");
        let link = store.chain_head(&commit.to_hex()).unwrap().unwrap();
        assert_eq!(store.read_commit(&link).unwrap().parents, [*commit]);
    }
    let left = fs::read_dir(&place).unwrap().flatten();
    let names: Vec<_> = left.map(|entry| entry.file_name()).collect();
    assert!(
        !names
            .iter()
            .any(|name| name.to_string_lossy().contains(".new")),
        "{names:?}"
    );
}

/// Bytes that nothing can make shorter, from a simple generator.
fn noise(count: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[0]
    };
    std::iter::repeat_with(&mut next).take(count).collect()
}

#[test]
fn a_receiver_that_dies_early_holds_nobody_up() {
    let repository = TestRepository::new();
    let (_, mut store) = repository.store();
    // Far more than a pipe holds.
    let blob = store.write_blob(&noise(2 << 20)).unwrap();
    let nowhere = repository.outside("no-repository");
    fs::create_dir(&nowhere).unwrap();
    let nowhere = Git::on(&nowhere);
    let (done, is_done) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let listed = format!("{blob}\n");
        let _ = done.send(store.copy_out(listed.as_bytes(), &nowhere).is_err());
    });
    let patience = std::time::Duration::from_secs(60);
    assert_eq!(is_done.recv_timeout(patience), Ok(true));
}

#[test]
fn what_git_takes_for_harmful_is_refused_in_its_words() {
    let repository = TestRepository::new();
    let (user, mut store) = repository.store();
    let base = store.read_commit(&user.head).unwrap().tree;
    let bad = "[submodule \"x\"]\n\tpath = x\n\turl = -u./evil\n";
    let changes = [change(&mut store, ".gitmodules", bad)];
    let tree = store.write_tree(&base, &changes).unwrap();
    let listed = store.list_trees(&[tree]).unwrap();
    let error = store.copy_out(&listed, &user.hermetic()).unwrap_err();
    assert!(matches!(error, GitError::ObjectsRefused { .. }), "{error}");
    assert!(
        error.to_string().contains("disallowed submodule url"),
        "{error}"
    );
}

#[test]
fn a_commit_is_known_to_the_byte_but_for_its_author() {
    let repository = TestRepository::new();
    let (user, mut store) = repository.store();
    let tree = store.read_commit(&user.head).unwrap().tree;
    let person = |name: &str| Person {
        name: name.to_owned(),
        email: "a@example.org".to_owned(),
    };
    let (one, other) = (person("One"), person("Other"));
    let spec = CommitSpec {
        tree,
        parents: &[user.head],
        author: &one,
        time_s: 1_700_000_000,
        message: "keep\n\nTrial: 1\nRun: r\n",
    };
    let made = store.commit(&spec).unwrap();
    let asked = CommitSpec {
        author: &other,
        ..spec.clone()
    };
    assert!(store.is_made_as(&made, &asked).unwrap());
    let later = CommitSpec {
        time_s: 1_700_000_001,
        ..asked.clone()
    };
    let reworded = CommitSpec {
        message: "keep\n",
        ..asked.clone()
    };
    let elsewhere = CommitSpec {
        parents: &[made],
        ..asked
    };
    for wrong in [later, reworded, elsewhere] {
        assert!(!store.is_made_as(&made, &wrong).unwrap(), "{wrong:?}");
    }
    assert!(!store.is_made_as(&user.head, &spec).unwrap());
    let facts = store.read_commit(&made).unwrap();
    assert_eq!(facts.time_s, 1_700_000_000);
    for (message, is_said) in [
        ("otherwise\n\nTrial: 1\nRun: r\n", true),
        ("keep\n\nTrial: 2\nRun: r\n", false),
        ("mine\n", false),
    ] {
        assert_eq!(facts.is_worded_as(message), is_said, "{message}");
    }
}

#[test]
fn the_stores_own_small_files_are_made_anew_with_the_bases_that_were_copied_in() {
    for format in [ObjectFormat::Sha1, ObjectFormat::Sha256] {
        let repository = TestRepository::with_format(format);
        let (user, mut store) = repository.store();
        repository.write("x", "11\n");
        let second = repository.commit_all("a second base, on the first");
        let user = user.discover_again().unwrap();
        store.import_base(&user, &second).unwrap();
        let bases = store.bases().unwrap();
        assert_eq!(bases.len(), 2);
        let tree = store.read_commit(&second).unwrap().tree;
        let kept = commit_tree(&mut store, tree, &[second], "keep");
        let dir = store.dir().to_path_buf();
        for name in ["shallow", "loopwright-store", "HEAD", "config"] {
            let path = dir.join(name);
            let content = fs::read(&path).unwrap();
            // A line is missing, or all of it, or it is another.
            let shorter = content[..content.len() / 2].to_vec();
            for damaged in [shorter, Vec::new(), b"0\n".to_vec()] {
                fs::write(&path, &damaged).unwrap();
                let found = ObjectStore::open_to_verify(&dir).faults();
                assert!(found.iter().any(|words| words.contains(name)), "{found:?}");
                let mut again = ObjectStore::open_or_create(&dir, &user).unwrap();
                assert_eq!(again.mended(), std::slice::from_ref(&path));
                assert_eq!(fs::read(&path).unwrap(), content, "{name}");
                assert_eq!(again.bases().unwrap(), bases);
                assert_eq!(again.read_commit(&kept).unwrap().parents, [second]);
                again.list_objects(&kept, &second).unwrap();
                assert!(ObjectStore::open_to_verify(&dir).faults().is_empty());
            }
        }
        // Without the mark it is made to its end, with what is there already.
        fs::remove_file(dir.join("loopwright-store")).unwrap();
        fs::remove_file(dir.join("shallow")).unwrap();
        let again = ObjectStore::open_or_create(&dir, &user).unwrap();
        assert_eq!(again.bases().unwrap(), bases);
    }
}

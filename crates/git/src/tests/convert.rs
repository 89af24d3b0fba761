//! Line ends, keywords, encodings and LFS: git's own conversions, or a refusal.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::test_support::{TestRepository, listing};
use crate::{GitError, ObjectStore, ProposerRepository, Refusal};

#[test]
fn checkouts_and_snapshots_agree_with_git() {
    let repository = TestRepository::new();
    repository.write(
        ".gitattributes",
        "* text=auto\n*.bat eol=crlf\n*.id ident\n*.u16 working-tree-encoding=UTF-16LE\n",
    );
    repository.write("a.bat", "one\r\ntwo\r\n");
    repository.write("n.id", "$Id$\n");
    repository.shell(
        &repository.top,
        "printf 'h\\000i\\000\\n\\000' > t.u16; printf 'old\\r\\n' > crlf.txt",
    );
    repository.shell(
        &repository.top,
        "git -c core.autocrlf=false add -A; git commit -qm more",
    );
    // A file that has carriage returns in the repository keeps them under text=auto.
    repository.shell(
        &repository.top,
        "id=$(printf 'raw\\r\\n' | git hash-object -w --stdin); \
         git update-index --add --cacheinfo 100644,$id,raw.txt; git commit -qm raw; git checkout -q .",
    );
    let (user, mut store) = repository.store();
    let place = repository.outside("proposer");
    let identity = user.identity().unwrap();
    let mut proposer = ProposerRepository::create(&place, &user, &mut store, &identity).unwrap();
    proposer.reset_to(&mut store, &user.head).unwrap();
    repository.shell(&repository.top, "rm -rf ./* && git checkout -q .");
    assert_eq!(listing(proposer.work_tree()), listing(&repository.top));
    let full = proposer.full_snapshot(&mut store).unwrap();
    assert_eq!(full.changes, []);
    let script = "printf 'three\\r\\n' >> a.bat; printf 'new\\r\\nline\\r\\n' > new.txt; \
                  printf 'more\\r\\n' >> raw.txt; touch crlf.txt; printf 'x\\000' > t.u16; \
                  echo plain > plain.txt; \
                  (head -c 65534 /dev/zero | tr '\\000' a; printf '$Id: mine $\n') > long.id";
    repository.shell(proposer.work_tree(), script);
    let ours = proposer.snapshot(&mut store).unwrap();
    repository.git_in(proposer.work_tree(), ["add", "-A"]);
    let theirs = repository.git_in(proposer.work_tree(), ["write-tree"]);
    assert_eq!(ours.tree.to_hex(), theirs);
    assert!(
        ours.changes
            .iter()
            .all(|change| change.path.to_string() != "crlf.txt")
    );
    proposer.reset_to(&mut store, &user.head).unwrap();
    assert_eq!(listing(proposer.work_tree()), listing(&repository.top));
}

#[test]
fn lfs_without_git_lfs_and_foreign_filters_are_refused() {
    let repository = TestRepository::new();
    repository.write(".gitattributes", "*.bin filter=lfs\n*.sec filter=crypt\n");
    repository.write("a.bin", "pointer\n");
    repository.write("b.bin", "pointer\n");
    repository.commit_all("lfs");
    let mut user = repository.discover();
    let mut store = ObjectStore::open_or_create(&repository.outside("store"), &user).unwrap();
    let bin = repository.outside("bin");
    fs::create_dir(&bin).unwrap();
    let mut environment = repository.environment();
    environment.push(("PATH".to_owned(), bin.clone().into_os_string()));
    user.set_environment_for_test(environment);
    match store.import_base(&user, &user.head) {
        Err(GitError::Refused(Refusal::LfsMissing { example, others })) => {
            assert_eq!((example.to_string().as_str(), others), ("a.bin", 1));
        }
        other => panic!("{other:?}"),
    }
    let program = bin.join("git-lfs");
    fs::write(&program, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    store.import_base(&user, &user.head).unwrap();
    repository.write("c.sec", "1\n");
    repository.git(["config", "filter.crypt.clean", "touch ran; cat"]);
    repository.commit_all("filtered");
    assert!(repository.top.join("ran").exists());
    fs::remove_file(repository.top.join("ran")).unwrap();
    let user = repository.discover();
    match store.import_base(&user, &user.head) {
        Err(GitError::Refused(Refusal::FilterDriver { driver, .. })) => assert_eq!(driver, "crypt"),
        other => panic!("{other:?}"),
    }
    assert!(!repository.top.join("ran").exists());
}

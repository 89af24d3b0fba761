//! The arms over the real object store: what they hold is what git itself checks out.

use std::path::Path;

use crate::arms::{ArmRules, Arms, Role};
use crate::store::ObjectStore;
use crate::test_support::{TestRepository, listing};
use crate::types::{ObjectFormat, Oid};

/// A clone of a commit, as git makes it.
fn cloned(repository: &TestRepository, commit: &Oid) -> String {
    let place = repository.outside("clone");
    let clone = format!(
        "umask 022; rm -rf '{0}' && git clone -q --no-checkout . '{0}' && git -C '{0}' checkout -q {commit}",
        place.display()
    );
    repository.shell(&repository.top, &clone);
    listing(&place)
}

fn prepared(arms: &mut Arms, store: &mut ObjectStore, role: Role, commit: &Oid) -> String {
    let tree = store.read_commit(commit).unwrap().tree;
    let target = store.checkout_listing(&tree).unwrap();
    let arm = arms.prepare(role, &target, store, None).unwrap().path;
    let found = listing(&arm);
    arms.after_run(role, &[]).unwrap();
    found
}

fn without_top_mode(listing: &str) -> String {
    let lines = listing.lines().filter(|line| !line.starts_with(". d "));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn arms_hold_what_git_checks_out() {
    for format in [ObjectFormat::Sha1, ObjectFormat::Sha256] {
        let repository = TestRepository::with_format(format);
        repository.write("odd \n name", "o");
        repository.write("d/e/f.txt", "one\ntwo\n");
        repository.write(".gitattributes", "*.bin binary\n");
        repository.shell(&repository.top, "chmod +x run.sh; ln -s ../x d/link");
        let plain = repository.commit_all("plain");
        // Only the attributes change; f.txt keeps its blob and gets other line ends.
        repository.write(".gitattributes", "*.txt text eol=crlf\n");
        let converted = repository.commit_all("converted");
        let (user, mut store) = repository.store();
        store.import_base(&user, &plain).unwrap();

        let directory = repository.outside("arms");
        let mut arms = Arms::open(Path::new(&directory), ArmRules::default()).unwrap();
        for (role, commit) in [
            (Role::Incumbent, plain),
            (Role::Candidate, converted),
            (Role::Incumbent, plain),
            (Role::Candidate, plain),
            (Role::Candidate, converted),
        ] {
            let found = prepared(&mut arms, &mut store, role, &commit);
            let wanted = cloned(&repository, &commit);
            assert_eq!(without_top_mode(&found), without_top_mode(&wanted));
        }
    }
}

//! Inputs git does not carry: placed as links, watched by fingerprints, refused with words.

mod arms_support;

use std::fs;
use std::os::unix::fs::symlink;

use arms_support::{Bench, read, write};
use loopwright_git::arms::Role::Candidate;
use loopwright_git::arms::{ArmsError, InputLink, LinkFingerprint};
use loopwright_git::types::RepoPath;

#[test]
fn links_are_placed_and_watched() {
    let checkout = tempfile::tempdir().unwrap();
    let top = checkout.path();
    write(&top.join("data/a"), "a");
    write(&top.join("data/sub/b"), "b");
    let elsewhere = tempfile::tempdir().unwrap();
    write(&elsewhere.path().join("big"), "big");
    symlink(elsewhere.path(), top.join("mounted")).unwrap();
    let links = InputLink::resolve(top, &["data/", "mounted"]).unwrap();
    let prints: Vec<_> = links
        .iter()
        .map(|link| LinkFingerprint::take(link).unwrap())
        .collect();
    assert_eq!((prints[0].files, prints[0].bytes), (2, 2));
    let mut bench = Bench::with_links(&[], links.clone());
    let target = bench.tree(&[("x", "1")]);
    bench.measure(Candidate, &target, |root| {
        assert_eq!(read(&root.join("data/sub/b")), "b");
        assert_eq!(read(&root.join("mounted/big")), "big");
    });
    assert_eq!(bench.prepare(Candidate, &target).switched, 0);
    for print in &prints {
        assert_eq!(print.recheck().unwrap(), None);
    }
    // Written through the link, the link itself replaced.
    fs::write(bench.at("data/sub/b"), "c").unwrap();
    fs::remove_file(bench.at("mounted")).unwrap();
    fs::create_dir(bench.at("mounted")).unwrap();
    let changed = prints[0].recheck().unwrap().unwrap();
    assert_eq!(changed.link, RepoPath::from("data"));
    assert!(changed.example.unwrap().ends_with("data/sub/b"));
    assert_eq!(prints[1].recheck().unwrap(), None);
    bench.arms.after_run(Candidate, &[]).unwrap();
    assert_eq!(bench.prepare(Candidate, &target).switched, 1);
    assert_eq!(read(&bench.at("mounted/big")), "big");
    // What it is goes by content, not by when it was copied.
    fs::write(top.join("data/sub/b"), "b").unwrap();
    let again = LinkFingerprint::take(&links[0]).unwrap();
    assert_eq!(again.digest, prints[0].digest);
    fs::remove_dir_all(top.join("data")).unwrap();
    assert!(prints[0].recheck().unwrap().is_some());
}

#[test]
fn links_that_cannot_be_are_refused() {
    let checkout = tempfile::tempdir().unwrap();
    let top = checkout.path();
    write(&top.join("data/a"), "a");
    symlink("/", top.join("out")).unwrap();
    let refusal = |name: &str| InputLink::resolve(top, &[name]).unwrap_err();
    assert!(matches!(refusal("none"), ArmsError::LinkMissing { .. }));
    assert!(matches!(refusal("no/ne"), ArmsError::LinkMissing { .. }));
    for name in ["../x", "/etc", ".git", "", "out/etc"] {
        assert!(
            matches!(refusal(name), ArmsError::LinkOutside { .. }),
            "{name}"
        );
    }
    let links = InputLink::resolve(top, &["data"]).unwrap();
    for tracked in ["data", "data/a"] {
        let mut bench = Bench::with_links(&[], links.clone());
        let target = bench.tree(&[(tracked, "x")]);
        let refused = bench
            .arms
            .prepare(Candidate, &target, &mut bench.objects, None);
        assert!(
            matches!(refused, Err(ArmsError::LinkTracked { .. })),
            "{refused:?}"
        );
    }
}

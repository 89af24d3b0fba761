//! Repositories of every kind through the command line, each with a small loop from start to end.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use crate::common::skip;
use crate::rig::Rig;
use crate::small_loop::{BRANCH, Small};

const RUN: &str = "echo \"m=$(cat x)\"\n";

#[test]
fn a_sub_directory() {
    let mut rig = Rig::with("exit 9\n", &[("sub/x", "10\n"), ("sub/run.sh", RUN)]);
    rig.go_below("sub");
    Small::default().run_and_adopt(&rig);
    assert_eq!(rig.git(&["show", "HEAD:sub/x"]), "5\n");
    assert_eq!(rig.git(&["show", "HEAD:x"]), "10\n");
}

#[test]
fn a_linked_work_tree() {
    let mut rig = Rig::new();
    rig.git(&["worktree", "add", "-q", "-b", "side", "../linked"]);
    let main = rig.users();
    rig.move_to("linked");
    Small::default().run_and_adopt(&rig);
    assert_eq!(rig.git(&["show", "side:x"]), "5\n");
    assert_eq!(rig.git(&["show", "main:x"]), "10\n");
    rig.move_to("repository");
    let now = rig.users();
    let changed = main.differing(&now);
    let is_sides = |name: &&&str| {
        **name == "(refs)" || name.starts_with(".git/worktrees/") || name.ends_with("/side")
    };
    let others: Vec<_> = changed.iter().filter(|name| !is_sides(name)).collect();
    assert!(others.is_empty(), "{others:?}");
    // The record is the repository's, and is seen from both.
    assert_eq!(rig.log().len(), 3);
}

#[test]
fn names_by_sha256() {
    let rig = Rig::empty();
    fs::create_dir(rig.repository()).unwrap();
    rig.init(&["--object-format=sha256"]);
    rig.write("x", "10\n");
    rig.write("run.sh", RUN);
    rig.commit_all("start");
    Small::default().run_and_adopt(&rig);
    assert_eq!(rig.git(&["rev-parse", "HEAD"]).trim().len(), 64);
}

#[test]
fn a_shallow_clone() {
    let mut rig = Rig::new();
    for text in ["11\n", "12\n", "10\n"] {
        rig.write("x", text);
        rig.commit_all("more history");
    }
    let from = format!("file://{}", rig.repository().display());
    rig.git(&["clone", "-q", "--depth", "1", &from, "../shallow"]);
    rig.move_to("shallow");
    assert_eq!(rig.git(&["rev-list", "--count", "HEAD"]), "1\n");
    Small {
        also: "git log --oneline | grep -c . > history",
        ..Small::default()
    }
    .run_and_adopt(&rig);
    assert_eq!(rig.git(&["show", "HEAD:history"]), "1\n");
}

#[test]
fn submodules() {
    let rig = Rig::with("echo \"m=$(($(cat x) + $(cat lib/y) - 1))\"\n", &[]);
    let library = rig.path("library");
    let library = library.to_str().unwrap();
    rig.git(&["init", "-q", library]);
    fs::write(rig.path("library/y"), "1\n").unwrap();
    rig.git(&["-C", library, "add", "y"]);
    rig.git(&["-C", library, "commit", "-qm", "library"]);
    rig.git(&["submodule", "--quiet", "add", library, "lib"]);
    rig.commit_all("with a library");
    Small::default().run_and_adopt(&rig);
    // An edit inside is refused, with words.
    let inside = rig.trial("echo 3 > x; echo 0 > lib/y", &[]);
    assert_eq!(inside["outcome"], "failed", "{inside}");
    let why = inside["why"].as_str().unwrap();
    assert!(why.contains("lib: submodules are read-only"), "{inside}");
}

#[test]
fn large_files_of_git_lfs() {
    if !std::process::Command::new("git")
        .args(["lfs", "version"])
        .output()
        .is_ok_and(|done| done.status.success())
    {
        skip("git-lfs is not installed");
        return;
    }
    let rig = Rig::with(
        "grep -q '^large' data.bin && echo \"m=$(cat x)\"\n",
        &[(
            ".gitattributes",
            "*.bin filter=lfs diff=lfs merge=lfs -text\n",
        )],
    );
    rig.git(&["lfs", "install", "--local"]);
    rig.write("data.bin", "large 1\n");
    rig.commit_all("data");
    assert!(
        rig.git(&["show", "HEAD:data.bin"])
            .starts_with("version https://git-lfs")
    );
    Small {
        also: "echo large 2 > data.bin",
        ..Small::default()
    }
    .run_and_adopt(&rig);
    let data = fs::read_to_string(rig.repository().join("data.bin")).unwrap();
    assert_eq!(data, "large 2\n");
    assert!(
        rig.git(&["show", "HEAD:data.bin"])
            .starts_with("version https://git-lfs")
    );
}

#[test]
fn one_commit_that_holds_nothing() {
    let rig = Rig::empty();
    fs::create_dir(rig.repository()).unwrap();
    rig.init(&[]);
    rig.git(&["commit", "-q", "--allow-empty", "-m", "nothing"]);
    let run = ["--run", "echo m=$(cat x || echo 10)"];
    let small = |value: &str| {
        let mut arguments = vec!["run", "--metric", "m", "--goal", "min", "--propose", value];
        arguments.extend(run);
        rig.loopwright(&arguments);
        rig.log().pop().unwrap()
    };
    let before = rig.users();
    assert_eq!(small("echo 5 > x")["outcome"], "kept");
    assert_eq!(small("echo 7 > x")["outcome"], "reverted");
    // Without x it is 10 again.
    assert_eq!(small("rm x")["outcome"], "duplicate");
    before.expect_same(&rig.users(), "the user's");
    Small::adopt(&rig);
}

#[test]
fn line_ends_by_attributes_and_filters_nobody_has() {
    let rig = Rig::with(
        "test \"$(tr -dc '\\r' < doc.txt | wc -c)\" -ge 2 && echo \"m=$(cat x)\"\n",
        &[
            (
                ".gitattributes",
                "*.txt text eol=crlf\n*.odd filter=nobody\n",
            ),
            ("doc.txt", "one\ntwo\n"),
            ("data.odd", "as it is\n"),
        ],
    );
    rig.shell("rm doc.txt; git checkout -q doc.txt");
    Small {
        also: "printf 'uno\\r\\ntwo\\r\\n' > doc.txt; echo more >> data.odd",
        ..Small::default()
    }
    .run_and_adopt(&rig);
    assert_eq!(rig.git(&["show", "HEAD:doc.txt"]), "uno\ntwo\n");
    let doc = fs::read_to_string(rig.repository().join("doc.txt")).unwrap();
    assert_eq!(doc, "uno\r\ntwo\r\n");
    assert_eq!(rig.git(&["show", "HEAD:data.odd"]), "as it is\nmore\n");
}

#[test]
fn a_filter_of_the_users_is_refused_before_anything_runs() {
    let rig = Rig::with(
        RUN,
        &[(".gitattributes", "*.odd filter=mine\n"), ("a.odd", "a\n")],
    );
    rig.git(&["config", "filter.mine.clean", "cat"]);
    let before = rig.users();
    let words = rig.refusal(2, &crate::rig::run_arguments("echo 5 > x", &[]));
    assert!(
        words.contains("a.odd") && words.contains("\"mine\""),
        "{words}"
    );
    before.expect_same(&rig.users(), "refused");
}

#[test]
fn line_ends_by_the_users_own_settings() {
    for in_attributes in [false, true] {
        let rig = Rig::with(RUN, &[("doc.txt", "one\ntwo\n")]);
        if in_attributes {
            rig.shell("mkdir -p .git/info; echo '*.txt eol=crlf' > .git/info/attributes");
        } else {
            rig.git(&["config", "core.autocrlf", "true"]);
        }
        rig.shell("rm doc.txt; git checkout -q doc.txt");
        let doc = || fs::read_to_string(rig.repository().join("doc.txt")).unwrap();
        assert_eq!(doc(), "one\r\ntwo\r\n");
        Small {
            also: "sed -i s/one/uno/ doc.txt",
            ..Small::default()
        }
        .run_and_adopt(&rig);
        assert_eq!(rig.git(&["show", "HEAD:doc.txt"]), "uno\ntwo\n");
        assert_eq!(doc(), "uno\r\ntwo\r\n");
    }
}

#[test]
fn a_detached_head() {
    let rig = Rig::new();
    rig.git(&["checkout", "-q", "--detach"]);
    Small::default().run(&rig);
    let before = rig.users();
    let words = rig.refusal(2, &["adopt"]);
    assert!(
        words.contains("HEAD is detached\nhint: check out a branch first"),
        "{words}"
    );
    before.expect_same(&rig.users(), "not adopted");
    rig.git(&["checkout", "-q", "main"]);
    Small::adopt(&rig);
}

#[test]
fn packed_references_and_objects() {
    let rig = Rig::new();
    rig.git(&["tag", "-a", "-m", "tag", "v1"]);
    rig.git(&["gc", "-q"]);
    assert!(!rig.repository().join(".git/refs/heads/main").exists());
    Small::default().run(&rig);
    // The loop's own branch, too.
    rig.git(&["pack-refs", "--all"]);
    rig.git(&["gc", "-q", "--prune=now"]);
    let kept = rig.trial("echo 4 > x", &[]);
    assert_eq!(kept["outcome"], "kept", "{kept}");
    rig.git(&["pack-refs", "--all"]);
    rig.loopwright(&["adopt"]);
    assert_eq!(rig.git(&["show", "HEAD:x"]), "4\n");
}

#[test]
fn a_dirty_checkout() {
    let rig = Rig::with(RUN, &[("a", "a\n"), ("b", "b\n"), ("c", "c\n")]);
    rig.shell("echo edited > a; rm b; echo staged > d; git add d; echo loose > e");
    let arguments = crate::rig::run_arguments("ls | grep -q '^e$'", &[]);
    let done = rig.try_loopwright(&arguments);
    let words = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(
        words.contains("will not see: edits of a, b, d; untracked e"),
        "{words}"
    );
    let before = rig.users();
    let kept = rig.trial(
        "grep -q a a && test -e b && ! ls | grep -q '^[de]$' && echo 5 > x",
        &[],
    );
    assert_eq!(kept["outcome"], "kept", "{kept}");
    before.expect_same(&rig.users(), "the user's");
    // What is not in the way stays as it is; what is staged would become part of a commit.
    Small::adopt(&rig);
    let kept = rig.trial("echo 4 > x; echo 4 > a; echo 4 | sed -n we", &[]);
    assert_eq!(kept["outcome"], "kept", "{kept}");
    let before = rig.users();
    let words = rig.refusal(2, &["adopt"]);
    assert!(words.contains("in the way: a, e"), "{words}");
    before.expect_same(&rig.users(), "not adopted");
}

#[test]
fn executable_files_and_links() {
    let rig = Rig::with(
        RUN,
        &[("tool", "#!/bin/sh\n"), ("plain", "p\n"), ("d/f", "f\n")],
    );
    let top = rig.repository();
    fs::set_permissions(top.join("tool"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(rig.path("outside")).unwrap();
    fs::write(rig.path("outside/f"), "precious\n").unwrap();
    for (target, name) in [
        ("x", "link"),
        ("nowhere", "broken"),
        ("round", "round"),
        ("../outside", "out"),
        ("d", "directory"),
        ("/dev/null", "absolute"),
    ] {
        symlink(target, top.join(name)).unwrap();
    }
    rig.commit_all("links");
    let also = "chmod -x tool; chmod +x plain; echo through > link 2>/dev/null; rm link broken
         ln -s ../outside link; ln -s x broken; rm -r d; ln -s ../outside d; rm directory
         mkdir directory; echo f > directory/f; ln -s \"$OUTSIDE/outside/f\" new";
    Small { also, more: &[] }.run_and_adopt(&rig);
    let listed = rig.git(&["ls-tree", "-r", "--format=%(objectmode) %(path)", "HEAD"]);
    for line in [
        "100644 tool",
        "100755 plain",
        "120000 link",
        "120000 broken",
        "120000 round",
        "120000 d",
        "100644 directory/f",
        "120000 new",
        "120000 out",
        "120000 absolute",
    ] {
        assert!(
            listed.lines().any(|found| found == line),
            "{line}: {listed}"
        );
    }
    // A proposal that turns the link to the outside into a directory again writes nothing there.
    let back = rig.trial("rm d; mkdir d; echo mine > d/f; echo 4 > x", &[]);
    assert_eq!(back["outcome"], "kept", "{back}");
    assert_eq!(
        rig.trial("rm -r out; mkdir out; echo o > out/f", &[])["outcome"],
        "reverted"
    );
    rig.loopwright(&["adopt"]);
    assert_eq!(
        fs::read_to_string(rig.path("outside/f")).unwrap(),
        "precious\n"
    );
    assert_eq!(fs::read_dir(rig.path("outside")).unwrap().count(), 1);
}

#[test]
fn a_repository_of_somebody_else() {
    if !rustix::process::geteuid().is_root() {
        skip("only root can give a directory away");
        return;
    }
    let rig = Rig::new();
    rig.shell("chown -R 12345:12345 .");
    let words = rig.refusal(2, &crate::rig::run_arguments("echo 5 > x", &[]));
    assert!(words.contains("git does not trust"), "{words}");
    assert!(words.contains("safe.directory"), "{words}");
    assert!(!rig.repository().join(".git/loopwright").exists());
    let top = rig.repository();
    let trust = format!("[safe]\n\tdirectory = {}\n", top.display());
    let configuration = fs::read_to_string(rig.path("gitconfig")).unwrap();
    fs::write(rig.path("gitconfig"), configuration + &trust).unwrap();
    Small::default().run_and_adopt(&rig);
}

#[test]
fn a_branch_that_is_in_the_way() {
    let rig = Rig::new();
    rig.git(&["branch", "loopwright"]);
    let before = rig.users();
    let done = rig.try_loopwright(&crate::rig::run_arguments("echo 5 > x", &[]));
    let words = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(words.contains("rename that branch"), "{words}");
    before.expect_same(&rig.users(), "the user's");
    assert!(rig.git(&["branch", "--list", BRANCH]).is_empty());
}

//! Whatever somebody puts in the place of one of the store's own files: nobody waits for it, it is named,
//! and what can be made anew is.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Output;

use rustix::fs::{CWD, mkfifoat};

use crate::common::output_within_patience;
use crate::rig::Rig;

const LOOP: &str = r#"
[loop.default]
run = "sh run.sh"
metric = "m"
goal = "min"
propose = "echo $((9 - LOOPWRIGHT_TRIAL)) > x"
"#;

/// A loop with two trials whose outputs are long enough for blobs.
fn rig() -> Rig {
    let rig = Rig::with(
        "echo \"m=$(cat x)\"; seq 3000\n",
        &[("loopwright.toml", LOOP)],
    );
    rig.loopwright(&["run", "--trials", "2"]);
    rig
}

fn store(rig: &Rig) -> PathBuf {
    rig.repository().join(".git/loopwright")
}

/// The files below a folder, but for all but two of the loose objects.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found.sort();
    let is_loose = |path: &PathBuf| {
        let above = path.parent().and_then(Path::file_name);
        above.is_some_and(|name| name.len() == 2)
    };
    let (loose, mut others): (Vec<_>, Vec<_>) = found.into_iter().partition(is_loose);
    others.extend(loose.into_iter().take(2));
    others
}

fn said(rig: &Rig, arguments: &[&str]) -> (Option<i32>, String) {
    let done: Output = output_within_patience(&mut rig.tool(arguments));
    let both = [&*done.stdout, &*done.stderr].concat();
    (
        done.status.code(),
        String::from_utf8_lossy(&both).into_owned(),
    )
}

#[test]
fn a_pipe_in_the_place_of_a_file_of_the_store_holds_nobody_and_is_named() {
    let rig = rig();
    let store = store(&rig);
    for file in files(&store) {
        let aside = rig.path("aside");
        fs::rename(&file, &aside).unwrap();
        mkfifoat(CWD, &file, 0o600.into()).unwrap();
        let name = file.file_name().unwrap().to_str().unwrap();
        for arguments in [&["status"][..], &["verify"], &["diff", "1"], &["baseline"]] {
            // Asked of what nobody has mended yet.
            if !is_pipe(&file) {
                fs::remove_file(&file).unwrap();
                mkfifoat(CWD, &file, 0o600.into()).unwrap();
            }
            let (code, words) = said(&rig, arguments);
            assert!(
                code == Some(0) || (code == Some(7) && words.contains(name)),
                "{arguments:?} with a pipe at {}: {code:?}: {words}",
                file.display()
            );
        }
        fs::rename(&aside, &file).unwrap();
    }
    rig.loopwright(&["verify"]);
}

fn is_pipe(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    fs::symlink_metadata(path).is_ok_and(|facts| facts.file_type().is_fifo())
}

#[test]
fn nor_does_a_socket_or_a_link() {
    let rig = rig();
    let journal = store(&rig).join("journal.db");
    let aside = rig.path("aside");
    fs::rename(&journal, &aside).unwrap();
    let listener = UnixListener::bind(&journal).unwrap();
    let (code, words) = said(&rig, &["status"]);
    assert!(code == Some(7) && words.contains("a socket"), "{words}");
    drop(listener);
    fs::remove_file(&journal).unwrap();
    std::os::unix::fs::symlink(&aside, &journal).unwrap();
    let (code, words) = said(&rig, &["log"]);
    assert!(code == Some(7) && words.contains("a link"), "{words}");
    fs::rename(&aside, &journal).unwrap();
    rig.loopwright(&["verify"]);
}

/// Each file without which git reads nothing of ours, and what may become of it.
#[test]
fn small_files_of_the_object_store_are_found_damaged_and_made_anew() {
    let rig = rig();
    let objects = store(&rig).join("objects.git");
    let run = fs::read_dir(objects.join("refs/loopwright")).unwrap();
    let run = run.map(|entry| entry.unwrap().path()).next().unwrap();
    let small = ["shallow", "HEAD", "config", "loopwright-store"];
    let small = small.map(|name| objects.join(name));
    for file in small.into_iter().chain([run.join("chain")]) {
        let content = fs::read(&file).unwrap();
        let half = content[..content.len() / 2].to_vec();
        let mut other = content.clone();
        other[1] ^= 1;
        for damaged in [Some(Vec::new()), Some(half), Some(other), None] {
            fs::remove_file(&file).unwrap();
            if let Some(damaged) = &damaged {
                fs::write(&file, damaged).unwrap();
            }
            let name = file.file_name().unwrap().to_str().unwrap();
            let (code, words) = said(&rig, &["verify"]);
            let is_named =
                words.contains(name) || words.contains("the reference of its candidates");
            assert!(
                code == Some(7) && is_named,
                "{name} as {damaged:?}: {code:?}: {words}"
            );
            let (code, words) = said(&rig, &["baseline"]);
            assert_eq!(code, Some(0), "{name} as {damaged:?}: {words}");
            assert!(words.contains("made anew") || words.contains("put back") || damaged.is_none());
            assert_eq!(fs::read(&file).unwrap(), content, "{name}");
            rig.loopwright(&["verify"]);
        }
    }
    rig.loopwright(&["diff", "2"]);
}

#[test]
fn a_damaged_pack_is_said_to_be_damage() {
    let rig = rig();
    let packs = store(&rig).join("objects.git/objects/pack");
    let entries = fs::read_dir(packs).unwrap().map(|entry| entry.unwrap());
    let mut packs = entries.map(|entry| entry.path());
    let pack = packs.find(|path| path.extension().is_some_and(|it| it == "pack"));
    let pack = pack.unwrap();
    fs::set_permissions(&pack, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&pack, b"PACK").unwrap();
    for arguments in [&["verify"][..], &["baseline"]] {
        let (code, words) = said(&rig, arguments);
        assert_eq!(code, Some(7), "{arguments:?}: {words}");
    }
}

#[test]
fn a_pipe_in_the_place_of_the_note_about_the_checkout_holds_nobody() {
    let rig = Rig::new();
    let propose = "touch \"$OUTSIDE/begun\"; sleep 600";
    let child = rig.start(&rig.repository(), "a", propose, &["--in-place"]);
    rig.await_file("begun");
    rig.kill(child);
    let note = store(&rig).join("in-place/proposal.json");
    let aside = rig.path("aside");
    fs::rename(&note, &aside).unwrap();
    mkfifoat(CWD, &note, 0o600.into()).unwrap();
    for arguments in [&["resume", "--loop", "a"][..], &["adopt", "--loop", "a"]] {
        let (code, words) = said(&rig, arguments);
        assert_eq!(code, Some(7), "{arguments:?}: {words}");
        assert!(words.contains("proposal.json"), "{words}");
    }
    fs::rename(&aside, &note).unwrap();
    fs::remove_file(store(&rig).join("in-place/exclude")).unwrap();
    mkfifoat(CWD, store(&rig).join("in-place/exclude"), 0o600.into()).unwrap();
    let stopped = [
        "resume",
        "--loop",
        "a",
        "--propose",
        "echo 5 > x",
        "--trials",
        "1",
    ];
    let (code, words) = said(&rig, &stopped);
    assert_eq!(code, Some(0), "{words}");
}

/// A record whose objects are gone is not sound; a copy made without them can be looked at alone.
#[test]
fn a_lost_object_store_is_damage_unless_it_is_left_out() {
    let rig = Rig::new();
    rig.trial("echo 5 > x", &[]);
    fs::remove_dir_all(rig.repository().join(".git/loopwright/objects.git")).unwrap();
    let done = rig.try_loopwright(&["verify"]);
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert_eq!(done.status.code(), Some(7), "{said}");
    assert!(
        said.contains("it is gone, and all objects with it"),
        "{said}"
    );
    let said = rig.loopwright(&["verify", "--without-objects"]);
    assert!(said.contains("they were left out"), "{said}");
    assert!(said.contains("sound"), "{said}");
}

//! The store's own small files: without any of them git reads nothing of what the store holds.
//!
//! All of them can be made anew. `HEAD` and `config` are always the same; `shallow` names the commits
//! that were copied in whole, which are exactly those in packs; the mark, written last, says that the
//! store was made to its end and what `shallow` is. What is not plainly a file or a directory nobody
//! of ours has put there, and git would wait for it.

use std::collections::BTreeSet;
use std::fs::{self, FileType};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::disk;
use crate::error::GitError;
use crate::git::{Git, failure};
use crate::plain;
use crate::types::{ObjectFormat, Oid};

/// Written last: a store without it was interrupted while it was made.
const MARK: &str = "loopwright-store";

/// Held while the store is made, and while the list of its bases is changed: runs of several loops
/// share it, and any two may start at once.
const LOCK: &str = "loopwright-store.lock";

/// Which commits were copied in whole, without their history.
pub(super) const SHALLOW: &str = "shallow";

const HEAD: &[u8] = b"ref: refs/heads/main\n";

/// Directories that git takes a repository by, and those that it reads at its start.
const DIRECTORIES: [&str; 6] = [
    "objects",
    "objects/info",
    "objects/pack",
    "refs",
    "refs/heads",
    "refs/tags",
];

/// Something that is not as it was made.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) path: PathBuf,
    pub(super) what: String,
    remedy: Option<Remedy>,
}

/// How it is made anew.
#[derive(Debug)]
enum Remedy {
    MakeDirectory,
    Write(Vec<u8>),
    Remove,
    FindBases,
}

impl From<Fault> for GitError {
    fn from(fault: Fault) -> Self {
        Self::Damaged {
            path: fault.path,
            what: fault.what,
        }
    }
}

/// Makes the store where there is none, and whatever of it is damaged and can be made anew. Gives the
/// damaged files.
pub(super) fn bring_up(dir: &Path, format: ObjectFormat) -> Result<Vec<PathBuf>, GitError> {
    // One that was made and has lost its mark is damaged, not new.
    if !dir.join(MARK).is_file() && !dir.join("objects/pack").is_dir() {
        create(dir, format)?;
        return Ok(Vec::new());
    }
    let faults = faults(dir, format);
    if faults.is_empty() {
        return Ok(Vec::new());
    }
    let hopeless = faults.iter().position(|fault| fault.remedy.is_none());
    if let Some(hopeless) = hopeless {
        return Err(faults
            .into_iter()
            .nth(hopeless)
            .expect("it is there")
            .into());
    }
    let lock = dir.join(LOCK);
    if let Some(fault) = faults.iter().find(|fault| fault.path == lock) {
        // Nobody can hold what is no lock.
        fs::remove_file(&fault.path).map_err(GitError::io("remove", &lock))?;
    }
    let _lock = disk::lock(&lock)?;
    // Looked at again: another process may have been about to change it.
    let mut mended = Vec::new();
    for fault in self::faults(dir, format) {
        let failed = |_| GitError::Damaged {
            path: fault.path.clone(),
            what: fault.what.clone(),
        };
        match &fault.remedy {
            Some(Remedy::MakeDirectory) => {
                disk::make_directories_durably(dir, &fault.path).map_err(failed)?;
            }
            Some(Remedy::Write(content)) => {
                disk::replace_durably(&fault.path, content).map_err(failed)?;
            }
            // Done already, before it was locked.
            Some(Remedy::Remove) => {}
            Some(Remedy::FindBases) => {
                let found = bases_in_packs(dir, format)?;
                write_bases(dir, &found).map_err(failed)?;
            }
            None => return Err(fault.into()),
        }
        mended.push(fault.path);
    }
    Ok(mended)
}

/// The format that the store's configuration says.
pub(super) fn format_of(dir: &Path) -> ObjectFormat {
    match plain::read(&dir.join("config")) {
        Ok(text) if text == config(ObjectFormat::Sha256) => ObjectFormat::Sha256,
        _ => ObjectFormat::Sha1,
    }
}

fn config(format: ObjectFormat) -> Vec<u8> {
    let (version, extensions) = match format {
        ObjectFormat::Sha1 => (0, ""),
        ObjectFormat::Sha256 => (1, "[extensions]\n\tobjectformat = sha256\n"),
    };
    let core = format!("[core]\n\trepositoryformatversion = {version}\n\tbare = true\n");
    format!("{core}{extensions}").into_bytes()
}

fn create(dir: &Path, format: ObjectFormat) -> Result<(), GitError> {
    fs::create_dir_all(dir).map_err(|error| match fs::symlink_metadata(dir) {
        Ok(facts) if !facts.is_dir() => GitError::Damaged {
            path: dir.to_path_buf(),
            what: "it is no directory".to_owned(),
        },
        _ => GitError::io("make directory", dir)(error),
    })?;
    let _lock = disk::lock(&dir.join(LOCK))?;
    if dir.join(MARK).is_file() {
        return Ok(());
    }
    // All fan-out directories at once, so that storing an object never has to sync `objects`.
    for path in directories(dir) {
        match fs::create_dir(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(GitError::io("make directory", &path)(error));
            }
            _ => {}
        }
    }
    for path in [&dir.join("objects"), &dir.join("refs"), dir] {
        disk::sync_directory(path)?;
    }
    disk::replace_durably(&dir.join("config"), &config(format))?;
    disk::replace_durably(&dir.join("HEAD"), HEAD)?;
    // None, unless it is only the mark that was lost.
    let bases = bases_in_packs(dir, format)?;
    write_bases(dir, &bases)?;
    match dir.parent() {
        Some(parent) => disk::sync_directory(parent),
        None => Ok(()),
    }
}

fn directories(dir: &Path) -> impl Iterator<Item = PathBuf> {
    let fan_outs = (0..=u8::MAX).map(|byte| format!("objects/{byte:02x}"));
    let all = DIRECTORIES.into_iter().map(str::to_owned).chain(fan_outs);
    all.map(|name| dir.join(name))
}

/// All that is not as it was made, as far as it can be told without reading objects.
pub(super) fn faults(dir: &Path, format: ObjectFormat) -> Vec<Fault> {
    if !dir.is_dir() {
        return vec![Fault {
            path: dir.to_owned(),
            what: "it is gone, and all objects with it".to_owned(),
            remedy: None,
        }];
    }
    let mut found = Vec::new();
    strangers_in(dir, false, &mut found);
    for path in directories(dir) {
        let is_deep = path
            .strip_prefix(dir)
            .is_ok_and(|path| path.starts_with("refs"));
        if !strangers_in(&path, is_deep, &mut found) {
            found.push(Fault {
                path,
                what: "it is not there, or is no directory".to_owned(),
                remedy: Some(Remedy::MakeDirectory),
            });
        }
    }
    for (name, content) in [("config", &*config(format)), ("HEAD", HEAD)] {
        let path = dir.join(name);
        if !plain::read(&path).is_ok_and(|found| found == content) {
            let remedy = Remedy::Write(content.to_vec());
            put_in(&mut found, path, remedy);
        }
    }
    if let Some(path) = lost_bases(dir) {
        put_in(&mut found, path, Remedy::FindBases);
    }
    let lock = dir.join(LOCK);
    if found.iter().any(|fault| fault.path == lock) {
        put_in(&mut found, lock, Remedy::Remove);
    }
    found
}

/// Notes a fault with its remedy, in place of one that seemed to have none.
fn put_in(found: &mut Vec<Fault>, path: PathBuf, remedy: Remedy) {
    let known = found.iter().position(|fault| fault.path == path);
    let known = known.map(|at| found.swap_remove(at).what);
    found.push(Fault {
        path,
        what: known.unwrap_or_else(|| "it is not what was written".to_owned()),
        remedy: Some(remedy),
    });
}

/// Which file is not what says, or vouches for, what the bases are.
fn lost_bases(dir: &Path) -> Option<PathBuf> {
    let (mark, shallow) = (dir.join(MARK), dir.join(SHALLOW));
    let marked = plain::read(&mark).ok();
    let is_mark = |text: &Vec<u8>| text.starts_with(MARK_BEGINS) && text.ends_with(b"\n");
    let Some(marked) = marked.filter(is_mark) else {
        return Some(mark);
    };
    let found = match plain::read(&shallow) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some(Vec::new()),
        found => found.ok(),
    };
    let is_vouched_for = found.is_some_and(|found| mark_for(&found) == marked);
    (!is_vouched_for).then_some(shallow)
}

const MARK_BEGINS: &[u8] = b"1\nshallow ";

/// The mark of a store whose `shallow` is this.
fn mark_for(shallow: &[u8]) -> Vec<u8> {
    let mut text = MARK_BEGINS.to_vec();
    for byte in Sha256::digest(shallow) {
        text.extend_from_slice(format!("{byte:02x}").as_bytes());
    }
    text.push(b'\n');
    text
}

/// Notes what in a directory is neither a file nor a directory; false if it can't be read.
fn strangers_in(directory: &Path, is_deep: bool, found: &mut Vec<Fault>) -> bool {
    let Ok(entries) = fs::read_dir(directory) else {
        return false;
    };
    for entry in entries.flatten() {
        let kind = entry.file_type().ok();
        if let Some(what) = kind.and_then(plain::strange_kind) {
            found.push(Fault {
                path: entry.path(),
                what: format!("it is {what}, and nothing of the kind belongs there"),
                remedy: None,
            });
        } else if is_deep && kind.as_ref().is_some_and(FileType::is_dir) {
            strangers_in(&entry.path(), true, found);
        }
    }
    true
}

/// Adds to the commits that were copied in whole.
pub(super) fn add_base(dir: &Path, base: &Oid) -> Result<(), GitError> {
    let _lock = disk::lock(&dir.join(LOCK))?;
    // Read only now: another process may have brought a base of its own meanwhile.
    let mut bases = read_bases(dir)?;
    bases.insert(*base);
    write_bases(dir, &bases)
}

/// The commits that were copied in whole.
pub(super) fn read_bases(dir: &Path) -> Result<BTreeSet<Oid>, GitError> {
    let path = dir.join(SHALLOW);
    match plain::read(&path) {
        Ok(text) => Ok(text
            .split(|byte| *byte == b'\n')
            .filter_map(Oid::from_hex)
            .collect()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(BTreeSet::new()),
        Err(error) => Err(plain::failed("read", &path)(error)),
    }
}

/// Whoever finds the one without the other looks again under the lock.
fn write_bases(dir: &Path, bases: &BTreeSet<Oid>) -> Result<(), GitError> {
    let lines = bases.iter().map(|base| format!("{base}\n"));
    let text = lines.collect::<String>().into_bytes();
    let path = dir.join(SHALLOW);
    if text.is_empty() {
        // An empty one would mean the same, and git makes none.
        match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(GitError::io("remove", &path)(error));
            }
            _ => {}
        }
    } else {
        disk::replace_durably(&path, &text)?;
    }
    disk::replace_durably(&dir.join(MARK), &mark_for(&text))
}

/// The commits that packs hold: what was made here since is stored loose.
fn bases_in_packs(dir: &Path, format: ObjectFormat) -> Result<BTreeSet<Oid>, GitError> {
    let packs = dir.join("objects/pack");
    let mut names = Vec::new();
    // Packs that can't be looked at are not none.
    for entry in fs::read_dir(&packs).map_err(GitError::io("read", &packs))? {
        let path = entry.map_err(GitError::io("read", &packs))?.path();
        if path.extension().is_some_and(|extension| extension == "idx") {
            names.extend(names_in(&path, format)?);
        }
    }
    if names.is_empty() {
        return Ok(BTreeSet::new());
    }
    // Nothing of the repository but its objects is read: the rest may be what is damaged.
    let check = ["--shallow-file", "", "cat-file", "--batch-check"];
    let checked = Git::on(dir).output(check, names.join("\n").as_bytes())?;
    if !checked.status.success() {
        return Err(failure(check, &checked));
    }
    let lines = checked.stdout.split(|byte| *byte == b'\n');
    let commits = lines.filter_map(|line| {
        let (name, kind) = line.split_at_checked(format.id_bytes() * 2)?;
        kind.starts_with(b" commit ").then(|| Oid::from_hex(name))?
    });
    Ok(commits.collect())
}

/// The names of the objects in a pack.
fn names_in(index: &Path, format: ObjectFormat) -> Result<Vec<String>, GitError> {
    let damaged = |what: String| GitError::Damaged {
        path: index.to_path_buf(),
        what,
    };
    let content = plain::read(index).map_err(plain::failed("read", index))?;
    let format = format!("--object-format={}", format.name());
    let shown = Git::at(Path::new("/")).output(["show-index", &format], &content)?;
    if !shown.status.success() {
        return Err(damaged(crate::git::words(&shown)));
    }
    let text = String::from_utf8_lossy(&shown.stdout);
    let names = text.lines().filter_map(|line| line.split(' ').nth(1));
    Ok(names.map(str::to_owned).collect())
}

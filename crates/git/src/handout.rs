//! A directory of files that a stranger's command is given to read: the same files for one command
//! after the other, written over instead of made anew, because files made and removed by the hundred
//! are slow to make on some file systems.
//!
//! What the command did there counts for nothing: a file is written over only where it is still the one
//! that was made here, under no other name, and else removed and made anew.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode as Bits, Stat, fchmod, fstat, statat};

use crate::error::GitError;
use crate::untrusted::UntrustedDirectory;

/// What a file is given out with.
const READ_ONLY: u32 = 0o444;

/// Such a directory.
#[derive(Debug)]
pub struct Handout {
    parent: PathBuf,
    name: String,
    /// The files made here, open for writing.
    files: BTreeMap<String, File>,
    /// Whether they hold anything.
    is_out: bool,
}

impl Handout {
    /// The one of this name in `parent`; nothing is made yet.
    pub fn new(parent: &Path, name: &str) -> Self {
        Self {
            parent: parent.to_path_buf(),
            name: name.to_owned(),
            files: BTreeMap::new(),
            is_out: true,
        }
    }

    /// Where it lies.
    pub fn path(&self) -> PathBuf {
        self.parent.join(&self.name)
    }

    /// Puts exactly these files there, each a plain name and its content.
    pub fn lay_out(&mut self, contents: &[(&str, &[u8])]) -> Result<(), GitError> {
        self.is_out = true;
        let mut directory = self.open()?;
        for (name, content) in contents {
            let written = self
                .files
                .get(*name)
                .is_some_and(|file| write_over(file, content).is_ok());
            if !written {
                let file = directory.put_new(name, content, READ_ONLY)?;
                self.files.insert((*name).to_owned(), file);
            }
        }
        for name in self.files.keys() {
            if contents.iter().all(|(wanted, _)| wanted != name) {
                directory.remove(name)?;
            }
        }
        self.files
            .retain(|name, _| contents.iter().any(|(wanted, _)| wanted == name));
        Ok(())
    }

    /// Leaves nothing to be read there. Done already, it is not done again: what has come there since is
    /// no secret to whoever put it there.
    pub fn take_back(&mut self) -> Result<(), GitError> {
        if self.is_out {
            self.open()?;
            self.files.retain(|_, file| file.set_len(0).is_ok());
            self.is_out = false;
        }
        Ok(())
    }

    /// The directory with nothing in it but files that may be written over; those that may not are
    /// forgotten.
    fn open(&mut self) -> Result<UntrustedDirectory, GitError> {
        let mut found = Vec::new();
        let directory = UntrustedDirectory::emptied_but_for(&self.path(), |at, name| {
            let name = std::str::from_utf8(name).unwrap_or_default();
            let is_ours = self.files.get(name).is_some_and(|file| {
                let there = statat(at, name, AtFlags::SYMLINK_NOFOLLOW);
                there.is_ok_and(|there| is_as_made(file, &there))
            });
            if is_ours {
                found.push(name.to_owned());
            }
            is_ours
        });
        self.files.retain(|name, _| found.contains(name));
        if let Some(directory) = directory {
            return Ok(directory);
        }
        self.files.clear();
        UntrustedDirectory::anew(&self.parent, &self.name)
    }
}

/// Whether what stands there is the file that was made, reached by that name alone.
fn is_as_made(file: &File, there: &Stat) -> bool {
    let Ok(made) = fstat(file) else { return false };
    (made.st_dev, made.st_ino) == (there.st_dev, there.st_ino) && made.st_nlink == 1
}

fn write_over(file: &File, content: &[u8]) -> std::io::Result<()> {
    if fstat(file)?.st_mode & 0o7777 != READ_ONLY {
        fchmod(file, Bits::from_raw_mode(READ_ONLY))?;
    }
    file.set_len(content.len() as u64)?;
    file.write_all_at(content, 0)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    use super::*;

    type Trick<'a> = &'a dyn Fn();

    fn inode(path: &Path) -> u64 {
        fs::symlink_metadata(path).unwrap().ino()
    }

    #[test]
    fn files_are_written_over_and_taken_back_empty() {
        let folder = tempfile::tempdir().unwrap();
        let mut handout = Handout::new(folder.path(), "brief");
        handout
            .lay_out(&[("a", b"long text"), ("b", b"1")])
            .unwrap();
        let (a, b) = (handout.path().join("a"), handout.path().join("b"));
        let before = inode(&a);
        fs::write(handout.path().join("left"), "x").unwrap();
        handout.take_back().unwrap();
        assert_eq!(fs::read(&a).unwrap(), b"");
        assert!(!handout.path().join("left").exists());
        handout.lay_out(&[("a", b"short")]).unwrap();
        assert_eq!(fs::read(&a).unwrap(), b"short");
        assert_eq!(inode(&a), before);
        assert!(!b.exists());
        assert_eq!(fs::metadata(&a).unwrap().mode() & 0o7777, READ_ONLY);
    }

    #[test]
    fn what_was_done_to_a_file_counts_for_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let outside = folder.path().join("outside");
        fs::write(&outside, "mine").unwrap();
        let mut handout = Handout::new(folder.path(), "brief");
        let directory = handout.path();
        let a = directory.join("a");
        let remove = || fs::remove_file(&a).unwrap();
        let tricks: [(&str, Trick<'_>); 7] = [
            ("removed", &remove),
            ("a directory", &|| {
                remove();
                fs::create_dir_all(a.join("deep")).unwrap();
            }),
            ("a link", &|| {
                remove();
                symlink(&outside, &a).unwrap();
            }),
            ("another file", &|| {
                remove();
                fs::hard_link(&outside, &a).unwrap();
            }),
            ("known by another name", &|| {
                fs::hard_link(&a, folder.path().join("other")).unwrap();
            }),
            ("open to all", &|| {
                fs::set_permissions(&a, fs::Permissions::from_mode(0o666)).unwrap();
            }),
            ("elsewhere", &|| {
                fs::rename(&directory, folder.path().join("moved")).unwrap();
                symlink(folder.path(), &directory).unwrap();
            }),
        ];
        for (what, trick) in tricks {
            handout.lay_out(&[("a", b"first")]).unwrap();
            trick();
            handout.lay_out(&[("a", b"next")]).unwrap();
            assert_eq!(fs::read(&a).unwrap(), b"next", "{what}");
            let stat = fs::symlink_metadata(&a).unwrap();
            assert!(stat.is_file(), "{what}");
            assert_eq!(stat.mode() & 0o7777, READ_ONLY, "{what}");
            assert_eq!(fs::read_to_string(&outside).unwrap(), "mine", "{what}");
        }
        assert_eq!(fs::read(folder.path().join("other")).unwrap(), b"first");
    }
}

//! Directories that a stranger's commands had their hands on: the engine's way to read and write in
//! them.
//!
//! No link is ever followed, no pipe ever waited for, and nothing that may have been left there is
//! an error: it is said as what it is.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, RawMode, fstat, renameat, statat};
use rustix::process::geteuid;

use crate::disk::unique;
use crate::error::GitError;
use crate::place::{Place, names};
use crate::quote::quoted;
use crate::types::{Mode, RepoPath};

/// Such a directory.
#[derive(Debug)]
pub struct UntrustedDirectory {
    place: Place,
}

/// What reading a file there came to.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    /// A plain file with this content.
    Content(Vec<u8>),
    /// A plain file that is larger than was asked for.
    TooLarge,
    /// No plain file can be read there.
    Nothing,
}

impl UntrustedDirectory {
    /// Opens one; none where there is none, or a link.
    pub fn open(path: &Path) -> Result<Option<Self>, GitError> {
        Ok(Place::open(path)?.map(|place| Self { place }))
    }

    /// Makes `name` in `parent` anew, empty, whatever stood there. A directory of our own that can
    /// be emptied is used again: on some file systems making one takes long.
    pub fn anew(parent: &Path, name: &str) -> Result<Self, GitError> {
        if let Some(emptied) = Self::emptied_but_for(&parent.join(name), |_, _| false) {
            return Ok(emptied);
        }
        let mut above = Place::open_or_make(parent)?;
        if let Err(error) = above.remove(name.as_bytes()) {
            // Files of another user's (of a container, say) can't be removed, but put aside.
            let aside = format!("{name}.left-{}", unique());
            renameat(above.root(), name, above.root(), &aside).map_err(|_| error)?;
        }
        above.put_directory(name.as_bytes())?;
        let place = Place::open_or_make(&parent.join(name))?;
        Ok(Self { place })
    }

    /// One of our own, emptied but for what `stays` says of a name in it; none where there is none that
    /// can be emptied.
    pub(crate) fn emptied_but_for(
        path: &Path,
        mut stays: impl FnMut(BorrowedFd<'_>, &[u8]) -> bool,
    ) -> Option<Self> {
        let mut place = Place::open(path).ok()??;
        let found = fstat(place.root()).ok()?;
        // Open to everybody it is by no usual umask.
        let is_usual = found.st_mode & 0o7002 == 0 && found.st_mode & 0o700 == 0o700;
        if !is_usual || found.st_uid != geteuid().as_raw() {
            return None;
        }
        for (name, _) in names(place.root()).ok()? {
            if !stays(place.root(), &name) {
                place.remove(&name).ok()?;
            }
        }
        Some(Self { place })
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        self.place.path()
    }

    /// Where it lies for this process, as long as it is open: also where a link was put in its
    /// place.
    pub fn steady_path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.place.root().as_raw_fd()))
    }

    /// Reads a plain file of at most `bytes_max` bytes.
    pub fn read(&mut self, path: &Path, bytes_max: u64) -> Found {
        let Some(file) = self.open_file(path) else {
            return Found::Nothing;
        };
        let mut content = Vec::new();
        // One byte more tells a file that grew since.
        match file.take(bytes_max + 1).read_to_end(&mut content) {
            Ok(read) if read as u64 > bytes_max => Found::TooLarge,
            Ok(_) => Found::Content(content),
            Err(_) => Found::Nothing,
        }
    }

    /// Opens a plain file for reading; none where there is none that can be read.
    pub fn open_file(&mut self, path: &Path) -> Option<File> {
        self.place.forget();
        self.place.open_file(path.as_os_str().as_bytes()).ok()?
    }

    /// Makes room for a file at `path`: an old one is removed. In words, where something else
    /// stands in its way.
    pub fn make_room(&mut self, path: &Path) -> Result<(), String> {
        self.place.forget();
        let bytes = path.as_os_str().as_bytes();
        let ends = (0..bytes.len()).filter(|at| bytes[*at] == b'/');
        for end in ends {
            match self.kind(&bytes[..end]) {
                None => return Ok(()),
                Some(FileType::Directory) => {}
                Some(kind) => return Err(in_the_way(kind, &bytes[..end])),
            }
        }
        match self.kind(bytes) {
            None => Ok(()),
            Some(FileType::Directory) => Err(in_the_way(FileType::Directory, bytes)),
            Some(_) => self.place.remove(bytes).map_err(|error| error.to_string()),
        }
    }

    /// What stands at a path, itself not followed; none where nothing does.
    fn kind(&mut self, path: &[u8]) -> Option<FileType> {
        let (at, name) = self.place.parent(path, false).ok()??;
        let stat = statat(at, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some(FileType::from_raw_mode(stat.st_mode))
    }

    /// Makes a file with these permissions in place of what stood there; it stays open for writing.
    pub(crate) fn put_new(
        &mut self,
        name: &str,
        content: &[u8],
        mode: RawMode,
    ) -> Result<File, GitError> {
        self.place.put_new(name.as_bytes(), content, mode)
    }

    /// Removes what stands at a name.
    pub(crate) fn remove(&mut self, name: &str) -> Result<(), GitError> {
        self.place.remove(name.as_bytes())
    }

    /// Puts a link to `target`, in place of what stood there.
    pub fn put_link(&mut self, path: &RepoPath, target: &Path) -> Result<(), GitError> {
        let target = target.as_os_str().as_bytes();
        self.place.put(path, Mode::Link, target).map(drop)
    }
}

fn in_the_way(kind: FileType, path: &[u8]) -> String {
    let what = match kind {
        FileType::Directory => "a directory",
        FileType::Symlink => "a link",
        FileType::RegularFile => "a file",
        _ => "something that is no file",
    };
    format!("{what} at {}", quoted(path))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::fs::symlink;

    use super::*;

    fn folder() -> (tempfile::TempDir, UntrustedDirectory) {
        let folder = tempfile::tempdir().unwrap();
        let directory = UntrustedDirectory::anew(folder.path(), "desk").unwrap();
        (folder, directory)
    }

    #[test]
    fn neither_a_pipe_nor_a_link_nor_a_directory_is_read() {
        let (folder, mut desk) = folder();
        fs::write(folder.path().join("secret"), "42").unwrap();
        let path = |name: &str| desk.path().join(name);
        rustix::fs::mkfifoat(rustix::fs::CWD, path("pipe"), 0o600.into()).unwrap();
        symlink(folder.path().join("secret"), path("link")).unwrap();
        symlink(folder.path(), path("up")).unwrap();
        fs::create_dir(path("directory")).unwrap();
        fs::write(path("plain"), "7").unwrap();
        fs::set_permissions(path("plain"), Permissions::from_mode(0o000)).unwrap();
        for name in ["pipe", "link", "up/secret", "directory", "missing"] {
            assert_eq!(desk.read(Path::new(name), 10), Found::Nothing, "{name}");
        }
        assert_eq!(
            desk.read(Path::new("plain"), 10),
            Found::Content(b"7".to_vec())
        );
        assert_eq!(desk.read(Path::new("plain"), 0), Found::TooLarge);
    }

    #[test]
    fn room_is_made_only_where_nothing_is_in_the_way() {
        let (folder, mut arm) = folder();
        let outside = folder.path().join("docs");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("m.txt"), "mine").unwrap();
        symlink(&outside, arm.path().join("res")).unwrap();
        fs::create_dir(arm.path().join("taken")).unwrap();
        fs::write(arm.path().join("old"), "1").unwrap();
        symlink(outside.join("m.txt"), arm.path().join("old-link")).unwrap();
        let mut room = |path: &str| arm.make_room(Path::new(path));
        assert_eq!(room("res/m.txt"), Err("a link at res".to_owned()));
        assert_eq!(room("old/m.txt"), Err("a file at old".to_owned()));
        assert_eq!(room("taken"), Err("a directory at taken".to_owned()));
        for fine in ["old", "old-link", "not/yet/there", "taken/free"] {
            assert_eq!(room(fine), Ok(()), "{fine}");
        }
        assert!(!arm.path().join("old").exists());
        assert_eq!(fs::read_to_string(outside.join("m.txt")).unwrap(), "mine");
    }

    #[test]
    fn a_desk_made_anew_is_empty_and_its_own_whatever_was_left() {
        let (folder, desk) = folder();
        let outside = folder.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("kept"), "").unwrap();
        fs::remove_dir(desk.path()).unwrap();
        symlink(&outside, desk.path()).unwrap();
        assert!(!desk.steady_path().join("kept").exists());
        let mut desk = UntrustedDirectory::anew(folder.path(), "desk").unwrap();
        assert!(outside.join("kept").exists());
        assert!(fs::symlink_metadata(desk.path()).unwrap().is_dir());
        fs::create_dir_all(desk.path().join("brief.json/deep")).unwrap();
        let emptied = UntrustedDirectory::anew(folder.path(), "desk").unwrap();
        assert_eq!(fs::read_dir(emptied.path()).unwrap().count(), 0);
        fs::create_dir_all(desk.path().join("brief.json/deep")).unwrap();
        fs::set_permissions(desk.path(), Permissions::from_mode(0o000)).unwrap();
        let mut again = UntrustedDirectory::anew(folder.path(), "desk").unwrap();
        again.put_new("brief.json", b"{}", 0o444).unwrap();
        let put = again.path().join("brief.json");
        assert_eq!(fs::metadata(&put).unwrap().permissions().mode() & 0o222, 0);
        assert_eq!(fs::read(&put).unwrap(), b"{}");
        assert_eq!(desk.read(Path::new("brief.json"), 10), Found::Nothing);
    }
}

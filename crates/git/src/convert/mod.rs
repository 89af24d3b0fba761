//! Conversions between what a tree holds and what a checkout holds: line ends, `$Id$`,
//! encodings, LFS.
//!
//! Which of them are in force is learnt once per set of `.gitattributes` files. Most trees have
//! none and cost nothing; in the others git itself converts, and only what needs it. Filter
//! drivers of the user's are never run (a tree that needs one is refused before the run), with
//! the exception of LFS.

mod clean;
mod smudge;

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) use clean::clean;
use smudge::Smudger;

use crate::error::{GitError, Refusal};
use crate::git::{Git, split_nul};
use crate::store::ObjectStore;
use crate::types::{Mode, Objects as _, Oid, RepoPath, TreeListing};
use crate::user::UserRepository;

/// The conversions a tree's attributes speak of.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Words {
    /// Line ends are normalised on the way in.
    line_ends: bool,
    /// Line ends are changed on the way out.
    carriage_returns: bool,
    ident: bool,
    encoding: bool,
    lfs: bool,
    /// Other filters, by name.
    drivers: BTreeSet<String>,
}

/// The conversions in force.
#[derive(Debug, Default)]
pub(crate) struct Conversions {
    words: Words,
    /// The attribute files all this comes from.
    files: Vec<(RepoPath, Oid)>,
    /// The listing they were last looked for in.
    looked_in: Option<TreeListing>,
    smudger: Option<Smudger>,
    lfs_storage: Option<PathBuf>,
}

impl Conversions {
    /// True if checkouts may differ from blobs.
    pub(crate) fn change_checkouts(&self) -> bool {
        let words = &self.words;
        words.carriage_returns || words.ident || words.encoding || words.lfs
    }

    /// True if some content may have to be converted on its way in.
    pub(crate) fn may_clean(&self) -> bool {
        self.change_checkouts() || self.words.line_ends
    }

    /// True if this content may come out of git's hands differently. It is read in pieces: a file
    /// may be larger than memory.
    pub(crate) fn cleans(&self, content: &mut dyn Read) -> io::Result<bool> {
        const IDENT: &[u8] = b"$Id";
        let words = &self.words;
        if words.encoding || words.lfs {
            return Ok(true);
        }
        let mut piece = vec![0; 64 * 1024];
        // What of the piece before may be the beginning of the mark.
        let mut kept = 0;
        loop {
            let end = match content.read(&mut piece[kept..])? {
                0 => return Ok(false),
                count => kept + count,
            };
            let text = &piece[..end];
            if (words.line_ends && text.contains(&b'\r'))
                || (words.ident && text.windows(IDENT.len()).any(|part| part == IDENT))
            {
                return Ok(true);
            }
            kept = end.min(IDENT.len() - 1);
            piece.copy_within(end - kept..end, 0);
        }
    }

    /// Git with what the conversions need.
    pub(crate) fn configure(&self, git: Git) -> Git {
        let Some(storage) = self.lfs_storage.as_ref().filter(|_| self.words.lfs) else {
            return git;
        };
        git.with_setting("filter.lfs.required=true")
            .with_setting("filter.lfs.clean=git-lfs clean -- %f")
            .with_setting("filter.lfs.smudge=git-lfs smudge -- %f")
            .with_setting(format!("lfs.storage={}", storage.display()))
    }
}

impl ObjectStore {
    /// Takes the attributes of a tree as those in force.
    pub(crate) fn use_attributes_of(&mut self, listing: &TreeListing) -> Result<bool, GitError> {
        let looked_in = self.conversions.looked_in.as_ref();
        if looked_in.is_some_and(|known| Arc::ptr_eq(known, listing)) {
            return Ok(false);
        }
        let files: Vec<(RepoPath, Oid)> = listing
            .iter()
            .filter(|(path, (mode, _))| mode.is_regular() && is_attributes(path))
            .map(|(path, (_, oid))| (path.clone(), *oid))
            .collect();
        if files == self.conversions.files {
            self.conversions.looked_in = Some(Arc::clone(listing));
            return Ok(false);
        }
        let mut words = Words::default();
        for (_, oid) in &files {
            let content = self.read_blob(oid)?;
            words.learn(&content);
        }
        let before = self.conversions.change_checkouts();
        self.conversions.words = words;
        self.conversions.files = files;
        self.conversions.looked_in = Some(Arc::clone(listing));
        self.conversions.smudger = None;
        Ok(before || self.conversions.change_checkouts())
    }

    /// A file as a checkout has it.
    pub(crate) fn convert_out(&mut self, path: &RepoPath, oid: &Oid) -> Result<Vec<u8>, GitError> {
        if self.conversions.smudger.is_none() {
            let files = self.conversions.files.clone();
            let place = self.attributes_place(&files)?;
            let git = self.conversions.configure(self.git().clone());
            self.conversions.smudger = Some(Smudger::new(git.with_work_tree(&place)));
        }
        match &mut self.conversions.smudger {
            Some(smudger) => smudger.convert(path, oid),
            None => self.read_blob(oid),
        }
    }

    /// A directory holding nothing but attribute files, for git to read them in.
    fn attributes_place(&mut self, files: &[(RepoPath, Oid)]) -> Result<PathBuf, GitError> {
        let place = self.dir().join("attributes");
        match std::fs::remove_dir_all(&place) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(GitError::io("remove", &place)(error));
            }
            _ => {}
        }
        std::fs::create_dir_all(&place).map_err(GitError::io("make directory", &place))?;
        for (path, oid) in files.iter().filter(|(path, _)| path.is_safe()) {
            let content = self.read_blob(oid)?;
            let file = path.to_path(&place);
            let parent = file.parent().unwrap_or(&place);
            std::fs::create_dir_all(parent).map_err(GitError::io("make directory", parent))?;
            std::fs::write(&file, content).map_err(GitError::io("write", &file))?;
        }
        Ok(place)
    }

    /// Refuses a tree whose files need a program we don't have or don't run.
    pub fn check_conversions(
        &mut self,
        user: &UserRepository,
        listing: &TreeListing,
    ) -> Result<(), GitError> {
        self.use_attributes_of(listing)?;
        let words = self.conversions.words.clone();
        for driver in &words.drivers {
            let configured = ["clean", "smudge", "process"]
                .iter()
                .any(|part| user.setting(&format!("filter.{driver}.{part}")).is_some());
            if let Some((example, _)) = self.filtered_by(listing, driver)?.filter(|_| configured) {
                let driver = driver.clone();
                return Err(Refusal::FilterDriver { driver, example }.into());
            }
        }
        if !words.lfs {
            return Ok(());
        }
        match self.filtered_by(listing, "lfs")? {
            Some((example, others)) if !has_git_lfs(user) => {
                Err(Refusal::LfsMissing { example, others }.into())
            }
            _ => {
                self.conversions.lfs_storage = Some(user.common_dir.join("lfs"));
                Ok(())
            }
        }
    }

    /// One file this filter applies to, and how many more there are.
    fn filtered_by(
        &mut self,
        listing: &TreeListing,
        driver: &str,
    ) -> Result<Option<(RepoPath, usize)>, GitError> {
        let files = self.conversions.files.clone();
        let place = self.attributes_place(&files)?;
        self.conversions.smudger = None;
        let mut input = Vec::new();
        for (path, _) in listing.iter().filter(|(_, (mode, _))| mode.is_regular()) {
            input.extend_from_slice(path.as_bytes());
            input.push(0);
        }
        let git = self.git().clone().with_work_tree(&place);
        let output = git.run_with(["check-attr", "--stdin", "-z", "filter"], &input)?;
        let fields: Vec<&[u8]> = split_nul(&output).collect();
        let mut found = fields
            .chunks_exact(3)
            .filter(|fields| fields[2] == driver.as_bytes())
            .map(|fields| RepoPath::new(fields[0]));
        Ok(found.next().map(|example| (example, found.count())))
    }
}

impl Words {
    /// Reads an attributes file for words that mean a conversion.
    fn learn(&mut self, content: &[u8]) {
        let text = String::from_utf8_lossy(content);
        for line in text.lines().map(str::trim_start) {
            if line.starts_with('#') {
                continue;
            }
            for word in line.split_whitespace().skip(1) {
                let (name, value) = word.split_once('=').unwrap_or((word, ""));
                match name {
                    "text" | "crlf" => self.line_ends = true,
                    "eol" => {
                        self.line_ends = true;
                        self.carriage_returns |= value != "lf";
                    }
                    "ident" => self.ident = true,
                    "working-tree-encoding" => self.encoding = true,
                    "filter" if value == "lfs" => self.lfs = true,
                    "filter" if !value.is_empty() => {
                        self.drivers.insert(value.to_owned());
                    }
                    _ => {}
                }
            }
        }
    }
}

fn is_attributes(path: &RepoPath) -> bool {
    path.as_bytes() == b".gitattributes" || path.as_bytes().ends_with(b"/.gitattributes")
}

fn has_git_lfs(user: &UserRepository) -> bool {
    let search = user.variable("PATH").unwrap_or_default();
    std::env::split_paths(&search).any(|directory| is_program(&directory.join("git-lfs")))
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path)
        .is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0)
}

/// A file that was changed and whose content git has to convert.
pub(crate) struct ToClean {
    pub(crate) path: RepoPath,
    pub(crate) mode: Mode,
}

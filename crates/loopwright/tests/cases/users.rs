//! All that is the user's, to be compared before and after: every file of the checkout and of the
//! git directory, to the byte.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::hash::{DefaultHasher, Hasher as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::rig::Rig;

/// What of the common git directory is the loop's, or may grow: no object is ever changed, of
/// git's or of LFS's.
const NOT_THE_USERS: [&str; 6] = [
    "lfs",
    "loopwright",
    "objects",
    "refs/heads/loopwright",
    "logs/refs/heads/loopwright",
    "COMMIT_EDITMSG",
];

/// By name: kind, permission bits and content, and in the checkout the time of change as well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Users(BTreeMap<String, String>);

impl Users {
    pub fn of(rig: &Rig) -> Self {
        let mut found = BTreeMap::new();
        let top = rig.repository();
        let git = |arguments: &[&str]| rig.git_in(&top, arguments);
        let format = "--format=%(refname) %(objectname)";
        let refs = git(&["for-each-ref", format]);
        let refs: Vec<&str> = refs
            .lines()
            .filter(|line| !line.starts_with("refs/heads/loopwright/"))
            .collect();
        found.insert("(refs)".to_owned(), refs.join("\n"));
        let status = git(&["--no-optional-locks", "status", "--porcelain", "--ignored"]);
        found.insert("(status)".to_owned(), status);
        walk(
            &top,
            "",
            &|name| name == ".git" && top.join(".git").is_dir(),
            true,
            &mut found,
        );
        let common = if top.join(".git").is_dir() {
            top.join(".git")
        } else {
            git(&["rev-parse", "--path-format=absolute", "--git-common-dir"])
                .trim_end()
                .into()
        };
        let is_ours = |name: &str| NOT_THE_USERS.contains(&name);
        walk(&common, "", &is_ours, false, &mut found);
        Self(found)
    }

    /// What differs between the two, by name.
    pub fn differing<'a>(&'a self, other: &'a Self) -> BTreeSet<&'a str> {
        let names = self.0.keys().chain(other.0.keys());
        names
            .filter(|name| self.0.get(*name) != other.0.get(*name))
            .map(String::as_str)
            .collect()
    }

    /// Fails where anything differs, naming what.
    #[track_caller]
    pub fn expect_same(&self, now: &Self, what: &str) {
        let differing = self.differing(now);
        let shown: Vec<_> = differing
            .iter()
            .map(|name| (name, self.0.get(*name), now.0.get(*name)))
            .collect();
        assert!(differing.is_empty(), "{what}: {shown:#?}");
    }
}

fn walk(
    directory: &Path,
    at: &str,
    is_left_out: &dyn Fn(&str) -> bool,
    in_checkout: bool,
    found: &mut BTreeMap<String, String>,
) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().as_bytes().escape_ascii();
        let name = if at.is_empty() {
            name.to_string()
        } else {
            format!("{at}/{name}")
        };
        if is_left_out(&name) {
            continue;
        }
        let facts = fs::symlink_metadata(&path).unwrap();
        let content = if facts.is_symlink() {
            let target = fs::read_link(&path).unwrap();
            target.as_os_str().as_bytes().escape_ascii().to_string()
        } else if facts.is_file() {
            let mut hasher = DefaultHasher::new();
            hasher.write(&fs::read(&path).unwrap());
            format!("{} bytes, {:x}", facts.len(), hasher.finish())
        } else {
            String::new()
        };
        let mut line = format!("{:o} {content}", facts.mode());
        if in_checkout {
            line = format!("{line} {}.{}", facts.mtime(), facts.mtime_nsec());
        }
        let shown = if in_checkout {
            name.clone()
        } else {
            format!(".git/{name}")
        };
        if in_checkout || !facts.is_dir() {
            found.insert(shown, line);
        }
        if facts.is_dir() {
            walk(&path, &name, is_left_out, in_checkout, found);
        }
    }
}

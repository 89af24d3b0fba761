//! Where things lie: the user's repository, the store beside it, the work folders away from it.
//!
//! The store is in the repository's common git directory: never in the tree, never swept by
//! `git clean`, shared by linked work trees. Work folders (the proposer's checkout, the measuring
//! arms) lie in the user's cache directory: tools that walk up from them find no repository of the
//! user's, and agents that won't edit inside a `.git` can work.

use std::path::{Path, PathBuf};

use loopwright_core::digest::Digest;
use loopwright_git::UserRepository;
use loopwright_record::StorageError;

use crate::error::EngineError;

/// The variable that moves the store.
pub const STORE_VARIABLE: &str = "LOOPWRIGHT_STORE";

/// The variable that moves the work folders.
pub const WORK_VARIABLE: &str = "LOOPWRIGHT_WORK";

/// The folder of a store with the notes for putting the user's checkout back.
pub(crate) const IN_PLACE_FOLDER: &str = "in-place";

/// A repository with the places that belong to it.
#[derive(Debug, Clone)]
pub struct Project {
    /// The user's repository.
    pub user: UserRepository,
    /// The store's folder.
    pub store: PathBuf,
    /// The folder of this store's work folders.
    pub work: PathBuf,
}

impl Project {
    /// The project around `directory`. `store` overrides where its record is.
    pub fn find(directory: &Path, store: Option<&Path>) -> Result<Self, EngineError> {
        let user = UserRepository::discover(directory)?;
        let store = store_of(directory, store, &user.common_dir)?;
        let work =
            work_root().join(Digest::of_content(store.as_os_str().as_encoded_bytes()).short());
        Ok(Self { user, store, work })
    }

    /// The engine's own object store.
    pub fn objects(&self) -> PathBuf {
        objects_of(&self.store)
    }

    /// The work folder of one run.
    pub fn work_of(&self, run: &loopwright_core::ids::RunId) -> PathBuf {
        self.work.join(run.as_str())
    }
}

/// The object store that belongs to a record.
pub fn objects_of(store: &Path) -> PathBuf {
    store.join("objects.git")
}

/// Where the store of a repository is: where somebody chose to have it, else in its git directory.
pub(crate) fn store_of(
    directory: &Path,
    store: Option<&Path>,
    common_dir: &Path,
) -> Result<PathBuf, EngineError> {
    let chosen = chosen_store(directory, store)?;
    Ok(chosen.unwrap_or_else(|| common_dir.join("loopwright")))
}

/// The store that somebody chose.
pub(crate) fn chosen_store(
    directory: &Path,
    store: Option<&Path>,
) -> Result<Option<PathBuf>, EngineError> {
    let chosen = store
        .map(Path::to_path_buf)
        .or_else(|| variable(STORE_VARIABLE));
    chosen
        .map(|chosen| std::path::absolute(directory.join(chosen)))
        .transpose()
        .map_err(EngineError::io("find the store"))
}

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}

fn work_root() -> PathBuf {
    if let Some(chosen) = variable(WORK_VARIABLE) {
        return chosen;
    }
    let cache = variable("XDG_CACHE_HOME")
        .filter(|path| path.is_absolute())
        .or_else(|| variable("HOME").map(|home| home.join(".cache")));
    cache.unwrap_or_else(std::env::temp_dir).join("loopwright")
}

/// Refuses a store whose journal holds no run (`runs` of them) while its objects are those of runs:
/// the journal was emptied or replaced, and starting over would hide that.
pub fn check_not_lost(folder: &Path, runs: usize) -> Result<(), EngineError> {
    let chains = folder.join("objects.git/refs/loopwright");
    let lost = std::fs::read_dir(chains).map_or(0, Iterator::count);
    if lost == 0 || runs > 0 {
        return Ok(());
    }
    Err(EngineError::Storage(StorageError::Damaged(format!(
        "the journal in {} holds no run, but the objects beside it are those of {lost}: it was emptied or replaced; bring it back from a copy, or move the folder away to start over",
        folder.display()
    ))))
}

//! Finding the project of a run that is to be driven, where an interrupted proposal in the user's
//! checkout left a git directory in which git would wait for ever: that much is put right before the
//! first git, the rest by the session.

use std::path::Path;

use loopwright_git::{GitError, InPlace, Refusal};
use loopwright_record::{OpenMode, Store};

use crate::error::EngineError;
use crate::project::{IN_PLACE_FOLDER, Project, store_of};

use super::fence::take_checkout;
use super::notices::words_of;

/// The project around `directory`, and what had to be undone for git to find it, in words.
pub fn project_to_drive(
    directory: &Path,
    store: Option<&Path>,
) -> Result<(Project, Vec<String>), EngineError> {
    let trapped = match Project::find(directory, store) {
        Ok(project) => return Ok((project, Vec::new())),
        Err(EngineError::Git(GitError::Refused(Refusal::Trapped(trap)))) => trap,
        Err(error) => return Err(error),
    };
    let refusal = || EngineError::Git(GitError::Refused(Refusal::Trapped(trapped.clone())));
    let Some(common_dir) = &trapped.common_dir else {
        return Err(refusal());
    };
    let folder = store_of(directory, store, common_dir)?;
    let record = Store::open(&folder, OpenMode::Write).map_err(|_| refusal())?;
    // Somebody's proposal may be in the making there.
    let _checkout = take_checkout(&record, false)?;
    let undone = InPlace::make_workable(&folder.join(IN_PLACE_FOLDER))?.ok_or_else(refusal)?;
    Ok((Project::find(directory, store)?, words_of(&undone)))
}

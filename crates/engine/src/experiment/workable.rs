//! Finding the project of a run that is to be driven, where an interrupted proposal in the user's
//! checkout left a git directory in which git would wait for ever, finds no repository or may not
//! read: that much is put right before the first git, the rest by the session.

use std::path::Path;

use loopwright_git::{InPlace, Opened, common_directory};
use loopwright_record::{JOURNAL_FILE, OpenMode, Store};

use crate::error::EngineError;
use crate::project::{IN_PLACE_FOLDER, Project, store_of};

use super::fence::take_checkout;
use super::notices::words_of;

/// The project around `directory`, and what had to be undone for git to find it, in words.
pub fn project_to_drive(
    directory: &Path,
    store: Option<&Path>,
) -> Result<(Project, Vec<String>), EngineError> {
    let found = Project::find(directory, store);
    if let Ok(project) = &found {
        let journal = project.store.join(JOURNAL_FILE);
        let places = [&project.store, &journal, &project.objects()];
        if !places.into_iter().any(|place| Opened::is_needed(place)) {
            return Ok((project.clone(), Vec::new()));
        }
    }
    let mut opened = Opened::default();
    match make_workable(directory, store, &mut opened) {
        Ok(Some(undone)) => Ok((Project::find(directory, store)?, undone)),
        Ok(None) => {
            // Whoever did this, no proposal of ours.
            opened.close_again();
            Ok((found?, Vec::new()))
        }
        Err(error) => {
            opened.close_again();
            Err(error)
        }
    }
}

/// Puts right what an interrupted proposal left; none where there was none.
fn make_workable(
    directory: &Path,
    store: Option<&Path>,
    opened: &mut Opened,
) -> Result<Option<Vec<String>>, EngineError> {
    let Some(common_dir) = common_directory(directory, &mut |path| opened.open(path)) else {
        return Ok(None);
    };
    let folder = store_of(directory, store, &common_dir)?;
    opened.open_store(&folder);
    let notes = folder.join(IN_PLACE_FOLDER);
    if InPlace::interrupted(&notes)?.is_none() {
        return Ok(None);
    }
    let record = Store::open(&folder, OpenMode::Write)?;
    // Somebody's proposal may be in the making there.
    let _checkout = take_checkout(&record, false)?;
    let undone = InPlace::make_workable(&notes)?;
    Ok(undone.map(|undone| words_of(&undone)))
}

//! What the worker's side has to tell a person and no event carries: what was put right in their
//! checkout around an effect that came to no result.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use loopwright_git::{RefusedPath, UserSettings};

/// Words, gathered until somebody takes them.
#[derive(Clone, Default)]
pub struct Notices {
    words: Arc<Mutex<Vec<String>>>,
}

impl Notices {
    /// Adds what was undone.
    pub fn undone(&self, undone: &[RefusedPath]) {
        for words in words_of(undone) {
            self.say(format!("undone in your checkout: {words}"));
        }
    }

    /// Adds anything else.
    pub fn say(&self, words: String) {
        let mut all = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(words);
    }

    /// Takes all of them.
    pub fn take(&self) -> Vec<String> {
        let mut all = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *all)
    }
}

/// What was undone, a line each.
pub(super) fn words_of(undone: &[RefusedPath]) -> Vec<String> {
    let line = |it: &RefusedPath| format!("{}: {}", it.path, it.why);
    undone.iter().map(line).collect()
}

/// What a person is told of settings outside of the repository that are not what they were.
pub(super) fn settings_changed(file: &Path, counting: UserSettings) -> String {
    let file = file.display();
    match counting {
        UserSettings::AsTheyAre => format!(
            "{file} changed since a run was started here last; commits obey it as it is now"
        ),
        UserSettings::AsHeld => format!(
            "{file} changed since this run was started, by whomever: while it is so, nothing is kept; if it is as you want it, start again once the open trial is over: loopwright run"
        ),
    }
}

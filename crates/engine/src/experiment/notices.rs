//! What the worker's side has to tell a person and no event carries: what was put right in their
//! checkout around an effect that came to no result.

use std::sync::{Arc, Mutex, PoisonError};

use loopwright_git::RefusedPath;

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

//! The commands that run under a supervisor now: one small file each.
//!
//! Nothing here is synced: after a power loss nothing runs any more, and the boot id says so. A
//! new holder of a run ends what the files name before its first effect.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use loopwright_core::digest::Digest;
use loopwright_core::ids::{EffectId, RunId};
use serde::{Deserialize, Serialize};

use crate::error::StorageError;

/// A supervisor in flight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningCommand {
    /// The run it works for.
    pub run: RunId,
    /// The effect.
    pub effect: EffectId,
    /// The attempt.
    pub attempt: u32,
    /// The supervisor's process id.
    pub pid: u32,
    /// When it started, in the kernel's ticks since boot.
    pub start_time: u64,
    /// The boot that ticks count from.
    pub boot_id: String,
}

/// The folder of running commands.
#[derive(Clone, Debug)]
pub struct Running {
    folder: PathBuf,
}

impl Running {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Notes that a supervisor was started.
    pub fn add(&self, command: &RunningCommand) -> Result<(), StorageError> {
        let path = self.path(&command.run, &command.effect, command.attempt);
        let text = serde_json::to_vec(command).expect("BUG: a running command is plain data");
        let put = || -> io::Result<()> {
            fs::create_dir_all(&self.folder)?;
            let mut file = tempfile::Builder::new()
                .prefix(".new-")
                .tempfile_in(&self.folder)?;
            file.write_all(&text)?;
            file.persist(&path)?;
            Ok(())
        };
        put().map_err(|error| StorageError::io(&path, &error))
    }

    /// Notes that it is gone. Noting it twice is no error.
    pub fn remove(&self, run: &RunId, effect: &EffectId, attempt: u32) -> Result<(), StorageError> {
        let path = self.path(run, effect, attempt);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(StorageError::io(&path, &error))
            }
            _ => Ok(()),
        }
    }

    /// The commands noted for a run. A file that was never finished names nothing that could have
    /// been started: the note is made before the command is let go.
    pub fn list(&self, run: &RunId) -> Result<Vec<RunningCommand>, StorageError> {
        let failed = |error: io::Error| StorageError::io(&self.folder, &error);
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            found => found.map_err(failed)?,
        };
        let mut found = Vec::new();
        for entry in entries {
            if let Some(command) = read(&entry.map_err(failed)?.path())
                && command.run == *run
            {
                found.push(command);
            }
        }
        found.sort_by(|a, b| (&a.effect, a.attempt).cmp(&(&b.effect, b.attempt)));
        Ok(found)
    }

    fn path(&self, run: &RunId, effect: &EffectId, attempt: u32) -> PathBuf {
        // An effect's id may hold anything; its digest is a file name.
        let effect = Digest::of_content(effect.as_str().as_bytes()).short();
        self.folder.join(format!("{run}.{effect}.{attempt}.json"))
    }
}

fn read(path: &Path) -> Option<RunningCommand> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

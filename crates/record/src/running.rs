//! The commands that run under a supervisor now: one small file for each that runs at once.
//!
//! Nothing here is synced: after a power loss nothing runs any more, and the boot id says so. A
//! new holder of a run ends what the files name before its first effect.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use loopwright_core::ids::{EffectId, RunId};
use serde::{Deserialize, Serialize};

use crate::error::StorageError;
use crate::holder::start_time_of;
use crate::plain;

/// How long a note's file is at least; most notes fit.
const NOTE_BYTES: u64 = 512;

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
///
/// Each process writes files of its own, so that one that was fenced off and wakes up touches no
/// other's notes. A command that is gone leaves its file blank, and the next one writes over it: files
/// made and removed by the hundred are slow to make on some file systems.
#[derive(Clone, Debug)]
pub struct Running {
    folder: PathBuf,
    /// This process's files in use, and the attempts they name.
    taken: Arc<Mutex<BTreeMap<PathBuf, Attempt>>>,
}

type Attempt = (RunId, EffectId, u32);

impl Running {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            taken: Arc::default(),
        }
    }

    /// Notes that a supervisor was started.
    pub fn add(&self, command: &RunningCommand) -> Result<(), StorageError> {
        let path = self.take(command)?;
        let text = serde_json::to_vec(command).expect("BUG: a running command is plain data");
        // Torn by the death of this process it names nobody: then nothing was let go.
        write_over(&path, text).map_err(|error| StorageError::io(&path, &error))
    }

    /// Notes that it is gone. Noting it twice is no error.
    pub fn remove(&self, run: &RunId, effect: &EffectId, attempt: u32) -> Result<(), StorageError> {
        let attempt = (run.clone(), effect.clone(), attempt);
        let mut taken = self.lock();
        let own = taken.iter().find(|(_, holder)| **holder == attempt);
        if let Some(path) = own.map(|(path, _)| path.clone()) {
            write_over(&path, Vec::new()).map_err(|error| StorageError::io(&path, &error))?;
            taken.remove(&path);
            return Ok(());
        }
        // A dead holder's: nobody writes there any more.
        for path in self.files(run)? {
            if read(&path)?.is_some_and(|command| named(&command) == attempt) {
                remove(&path)?;
            }
        }
        Ok(())
    }

    /// The commands noted for a run.
    pub fn list(&self, run: &RunId) -> Result<Vec<RunningCommand>, StorageError> {
        let mut found = Vec::new();
        for path in self.files(run)? {
            found.extend(read(&path)?.filter(|command| command.run == *run));
        }
        found.sort_by(|a, b| (&a.effect, a.attempt).cmp(&(&b.effect, b.attempt)));
        Ok(found)
    }

    /// Takes away the files for notes of a run that name nobody: this process's, and those of dead
    /// ones. One that lives may be about to write.
    pub fn clear(&self, run: &RunId) -> Result<(), StorageError> {
        let taken = self.lock();
        for path in self.files(run)? {
            let is_others = |pid: u32| pid != std::process::id() && start_time_of(pid).is_some();
            if !taken.contains_key(&path)
                && read(&path)?.is_none()
                && !process_of(&path).is_some_and(is_others)
            {
                remove(&path)?;
            }
        }
        Ok(())
    }

    /// A file for this attempt: the one it has, or this process's first that is free.
    fn take(&self, command: &RunningCommand) -> Result<PathBuf, StorageError> {
        let attempt = named(command);
        let mut taken = self.lock();
        if let Some((path, _)) = taken.iter().find(|(_, holder)| **holder == attempt) {
            return Ok(path.clone());
        }
        if taken.is_empty() {
            fs::create_dir_all(&self.folder)
                .map_err(|error| StorageError::io(&self.folder, &error))?;
        }
        let process = std::process::id();
        for number in 0..=u32::MAX {
            let name = format!("{}.{process}.{number}.json", command.run);
            let path = self.folder.join(name);
            // One that names somebody is of a dead process that had our number.
            if !taken.contains_key(&path) && read(&path)?.is_none() {
                taken.insert(path.clone(), attempt);
                return Ok(path);
            }
        }
        unreachable!("BUG: more commands run than there are numbers")
    }

    /// The files for notes of a run.
    fn files(&self, run: &RunId) -> Result<Vec<PathBuf>, StorageError> {
        let failed = |error: io::Error| StorageError::io(&self.folder, &error);
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            found => found.map_err(failed)?,
        };
        let prefix = format!("{run}.");
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry.map_err(failed)?;
            if entry.file_name().to_string_lossy().starts_with(&prefix) {
                found.push(entry.path());
            }
        }
        Ok(found)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Attempt>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn named(command: &RunningCommand) -> Attempt {
    (command.run.clone(), command.effect.clone(), command.attempt)
}

/// Which process writes a file: the second part of its name.
fn process_of(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_str()?;
    name.split('.').nth(1)?.parse().ok()
}

/// Writes a note over another: padded with spaces, so that the file stays as long as it is. Cutting
/// it would free its block, and ask for another, twice a command.
fn write_over(path: &Path, mut text: Vec<u8>) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    let mut file = plain::open(path, &mut options)?;
    let length = file.metadata()?.len().max(NOTE_BYTES) as usize;
    text.resize(text.len().max(length), b' ');
    file.write_all(&text)
}

fn remove(path: &Path) -> Result<(), StorageError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(StorageError::io(path, &error))
        }
        _ => Ok(()),
    }
}

/// Whom a note names: nobody where it is gone, blank, or was torn by the death of its writer. One
/// that can't be read may name somebody.
fn read(path: &Path) -> Result<Option<RunningCommand>, StorageError> {
    match plain::read(path) {
        Ok(text) => Ok(serde_json::from_slice(&text).ok()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StorageError::io(path, &error)),
    }
}

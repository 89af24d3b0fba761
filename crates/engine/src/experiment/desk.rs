//! The desk: a directory outside every tree for the files that a command leaves, beside that for the
//! brief. Each command finds it empty: nothing an earlier one left there can be in the way. The brief is
//! there for the proposer alone: what is measured finds nothing to read.

use std::path::{Path, PathBuf};

use loopwright_git::{Found, UntrustedDirectory};

use crate::error::EngineError;

use super::workshop::Workshop;

const DESK: &str = "desk";
pub(super) const BRIEF: &str = "brief";
const RESULT: &str = "result";

/// A larger result file is not read.
const RESULT_FILE_BYTES_MAX: u64 = 1 << 20;

/// Where a command leaves its numbers.
pub(super) struct ResultFile {
    /// The checkout or the desk.
    directory: UntrustedDirectory,
    /// Where in it.
    relative: PathBuf,
}

impl ResultFile {
    /// Where it lies, for the command.
    pub(super) fn path(&self) -> PathBuf {
        self.directory.path().join(&self.relative)
    }

    /// What the command left there.
    pub(super) fn read(&mut self) -> Found {
        self.directory.read(&self.relative, RESULT_FILE_BYTES_MAX)
    }
}

impl Workshop {
    /// A desk with nothing on it, and no brief beside it.
    pub(super) fn clear_desk(&mut self) -> Result<UntrustedDirectory, EngineError> {
        self.brief.take_back()?;
        Ok(UntrustedDirectory::anew(&self.work, DESK)?)
    }

    /// The place for a result; in words, where the tree under test has something else there.
    pub(super) fn result_file(
        &mut self,
        arm: &Path,
    ) -> Result<Result<ResultFile, String>, EngineError> {
        let desk = self.clear_desk()?;
        let Some(named) = &self.spec.result_file else {
            let relative = RESULT.into();
            return Ok(Ok(ResultFile {
                directory: desk,
                relative,
            }));
        };
        let Some(mut directory) = UntrustedDirectory::open(arm)? else {
            return Ok(Err("its checkout is gone".to_owned()));
        };
        let relative = self.workdir.join(named);
        let room = directory.make_room(&relative);
        Ok(room
            .map(|()| ResultFile {
                directory,
                relative,
            })
            .map_err(|what| format!("the tree has {what}, where the result file belongs")))
    }
}

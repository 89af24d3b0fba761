//! The keep-alive chain: one reference per run holds every candidate of it.
//!
//! Each link is a commit whose parents are the previous link and the candidate. Order on the
//! disk: objects, their directories, the reference, its directory; only then may the caller
//! commit an event that names the candidate.

use std::path::PathBuf;

use super::{CommitSpec, ObjectStore, Person};
use crate::disk;
use crate::error::GitError;
use crate::plain;
use crate::types::Oid;

impl ObjectStore {
    /// Adds a candidate commit to a run's chain and makes both durable. Gives the new link.
    ///
    /// The link is a function of its inputs: done again after a crash it is the same commit.
    pub fn append_to_chain(
        &mut self,
        run: &str,
        previous: Option<Oid>,
        candidate: Oid,
        time_s: i64,
    ) -> Result<Oid, GitError> {
        let tree = self.read_commit(&candidate)?.tree;
        let parents: Vec<Oid> = previous.into_iter().chain([candidate]).collect();
        let link = self.commit(&CommitSpec {
            tree,
            parents: &parents,
            author: &Person::loopwright(),
            time_s,
            message: "chain\n",
        })?;
        self.make_durable()?;
        let reference = self.chain_path(run)?;
        if let Some(directory) = reference.parent() {
            disk::make_directories_durably(&self.dir, directory)?;
        }
        let line = format!("{link}\n");
        if !disk::write_over_durably(&reference, line.as_bytes())? {
            disk::replace_durably(&reference, line.as_bytes())?;
        }
        Ok(link)
    }

    /// The last link of a run's chain, if it has one.
    pub fn chain_head(&self, run: &str) -> Result<Option<Oid>, GitError> {
        let path = self.chain_path(run)?;
        let content = match plain::read(&path) {
            Ok(content) => content,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(plain::failed("read", &path)(error)),
        };
        match Oid::from_hex(content.trim_ascii()) {
            Some(link) => Ok(Some(link)),
            None => Err(GitError::Damaged {
                path,
                what: "it names no commit".to_owned(),
            }),
        }
    }

    /// What is wrong with a run's reference, in words: it has to keep `recorded`, the link that the
    /// record names last.
    pub fn chain_fault(&mut self, run: &str, recorded: Option<Oid>) -> Option<String> {
        let head = match self.chain_head(run) {
            Ok(head) => head,
            Err(error) => return Some(error.to_string()),
        };
        let recorded = recorded?;
        let Some(head) = head else {
            return Some(format!("it is not there, and has to keep {recorded}"));
        };
        let mut link = head;
        while link != recorded {
            let parents = self.read_commit(&link).map(|facts| facts.parents);
            match parents.as_deref() {
                // The first link has no link before it, only its candidate.
                Ok([previous, _]) => link = *previous,
                _ => return Some(format!("it names {head}, which does not keep {recorded}")),
            }
        }
        None
    }

    /// Puts a run's reference back where it is lost or damaged: at `recorded`, or away. Says whether
    /// that was needed.
    pub fn mend_chain(&mut self, run: &str, recorded: Option<Oid>) -> Result<bool, GitError> {
        if self.chain_fault(run, recorded).is_none() {
            return Ok(false);
        }
        let reference = self.chain_path(run)?;
        let Some(link) = recorded else {
            std::fs::remove_file(&reference).map_err(GitError::io("remove", &reference))?;
            return Ok(true);
        };
        if let Some(directory) = reference.parent() {
            disk::make_directories_durably(&self.dir, directory)?;
        }
        disk::replace_durably(&reference, format!("{link}\n").as_bytes())?;
        Ok(true)
    }

    fn chain_path(&self, run: &str) -> Result<PathBuf, GitError> {
        let safe = !run.is_empty()
            && run.len() <= 100
            && run
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        if !safe {
            return Err(GitError::unexpected(format!(
                "{run:?} is not a run's id that a reference can be named after"
            )));
        }
        Ok(self.dir.join("refs/loopwright").join(run).join("chain"))
    }
}

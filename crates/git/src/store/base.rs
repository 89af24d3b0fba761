//! Copying a base into the store, and what stands on it in and out.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use super::{ObjectStore, upkeep};
use crate::disk;
use crate::error::{GitError, Refusal};
use crate::git::{Git, failure, spawn, words};
use crate::types::{Objects as _, Oid};
use crate::user::UserRepository;

impl ObjectStore {
    /// Copies a commit of the user's (its trees and blobs, not its history) into the store and
    /// makes it durable; so with the submodules the user has initialised. Nothing of it is
    /// needed from the user's repository afterwards.
    ///
    /// Refuses what a loop can't work with: objects a partial clone never fetched, LFS files
    /// without git-lfs, filters of the user's.
    pub fn import_base(&mut self, user: &UserRepository, commit: &Oid) -> Result<(), GitError> {
        self.import_commit(&user.hermetic(), commit)?;
        let tree = self.read_commit(commit)?.tree;
        let listing = self.listing(&tree)?;
        self.check_conversions(user, &listing)?;
        self.import_submodules(&user.top, &listing)
    }

    /// The same from any repository (a submodule's).
    pub(crate) fn import_commit(&mut self, from: &Git, commit: &Oid) -> Result<(), GitError> {
        if self.bases()?.contains(commit) {
            return Ok(());
        }
        let hex = commit.to_hex();
        let listed = from.run([
            "rev-list",
            "--objects",
            "--no-walk",
            "--missing=print",
            &hex,
        ])?;
        let missing = listed
            .split(|byte| *byte == b'\n')
            .filter(|line| line.starts_with(b"?"))
            .count();
        if missing > 0 {
            return Err(Refusal::PartialObjectsMissing { count: missing }.into());
        }
        let pack = self.dir.join("objects/pack");
        fs::create_dir_all(&pack).map_err(GitError::io("make directory", &pack))?;
        let indexing = ["index-pack", "--stdin", "--threads=1"];
        pipe_objects(from, &listed, &self.git.clone().syncing(), indexing)?;
        disk::sync_directory(&pack)?;
        disk::sync_directory(&self.dir.join("objects"))?;
        upkeep::add_base(&self.dir, commit)?;
        // git reads which commits are shallow, and which packs there are, when it starts.
        self.reader.stop();
        Ok(())
    }

    /// Copies a commit made elsewhere on top of one the store has, and makes it durable.
    pub(crate) fn import_new(
        &mut self,
        from: &Git,
        commit: &Oid,
        known: &Oid,
    ) -> Result<(), GitError> {
        let (hex, known) = (commit.to_hex(), format!("^{known}"));
        let listed = from.run(["rev-list", "--objects", &hex, &known])?;
        let unpacking = ["unpack-objects", "-q", "--strict"];
        pipe_objects(from, &listed, &self.git, unpacking)?;
        for line in listed.split(|byte| *byte == b'\n') {
            let end = line.iter().position(|byte| *byte == b' ');
            if let Some(oid) = Oid::from_hex(&line[..end.unwrap_or(line.len())]) {
                self.expect_durable(oid)?;
            }
        }
        self.make_durable()?;
        Ok(())
    }

    /// Names everything `new` has and `known` has not (two commits or two trees), one object a line.
    pub(crate) fn list_objects(&self, new: &Oid, known: &Oid) -> Result<Vec<u8>, GitError> {
        let (new, known) = (new.to_hex(), format!("^{known}"));
        self.git.run(["rev-list", "--objects", &new, &known])
    }

    /// Names everything in these trees, one object a line.
    pub(crate) fn list_trees(&self, trees: &[Oid]) -> Result<Vec<u8>, GitError> {
        let mut arguments = vec!["rev-list".to_owned(), "--objects".to_owned()];
        arguments.extend(trees.iter().map(Oid::to_hex));
        self.git.run(&arguments)
    }

    /// Copies listed objects into another repository, as loose objects, synced.
    pub(crate) fn copy_out(&self, listed: &[u8], to: &Git) -> Result<(), GitError> {
        let unpacking = ["unpack-objects", "-q", "--strict"];
        pipe_objects(&self.git, listed, &to.clone().syncing(), unpacking)
    }
}

/// `git pack-objects` of one repository into a command of another.
fn pipe_objects<const N: usize>(
    from: &Git,
    listed: &[u8],
    to: &Git,
    arguments: [&str; N],
) -> Result<(), GitError> {
    let here = Path::new("/");
    let mut packing = from.command();
    packing
        .args(["pack-objects", "--stdout", "--quiet", "--window=0"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut packing = spawn(&mut packing, here)?;
    let receiving = {
        let stream = packing.stdout.take().map_or_else(Stdio::null, Stdio::from);
        let mut command = to.command();
        command
            .args(arguments)
            .stdin(stream)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // The description holds the reading end of the pipe, and has to go: should the receiver die
        // (a full disk), the packer would wait for ever for somebody to read.
        spawn(&mut command, here)
    };
    let input = packing.stdin.take();
    let output = receiving.and_then(|receiving| {
        std::thread::scope(|scope| {
            if let Some(mut input) = input {
                scope.spawn(move || input.write_all(listed));
            }
            receiving.wait_with_output()
        })
        .map_err(GitError::io("copy objects in", here))
    });
    let packed = packing
        .wait()
        .map_err(GitError::io("copy objects in", here))?;
    let output = output?;
    if !output.status.success() {
        let said = words(&output);
        return Err(if said.contains("fsck error") {
            GitError::ObjectsRefused { words: said }
        } else {
            failure(arguments, &output)
        });
    }
    if !packed.success() {
        return Err(GitError::unexpected(format!(
            "`git pack-objects` failed ({packed}); run `git fsck` in the project's repository"
        )));
    }
    Ok(())
}

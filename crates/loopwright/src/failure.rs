//! What a command says when it can't do what was asked: what, and what to do about it, and with
//! which exit status. The only place that turns errors of the libraries into words for people.

use std::fmt::Display;

use loopwright_core::spec::Problems;
use loopwright_engine::EngineError;
use loopwright_engine::driver::{DriveError, FaultKind};
use loopwright_git::arms::ArmsError;
use loopwright_git::{GitError, Refusal};
use loopwright_record::{
    AppendError, BlobError, Held, LoadError, OpenError, ReadError, StorageError, VerifyError,
};

use crate::exit_code::Exit;
use crate::output::{harmless, moment};

/// Why a command ends early.
#[derive(Debug)]
pub enum Failure {
    /// Whoever read our output has gone: that is no failure.
    BrokenPipe,
    /// Something to say.
    Words {
        /// The exit status.
        exit: Exit,
        /// What, one error each.
        what: Vec<String>,
        /// What to do about it.
        hints: Vec<String>,
    },
}

impl Failure {
    /// A failure without a hint.
    pub fn new(exit: Exit, what: impl Display) -> Self {
        Self::Words {
            exit,
            what: vec![what.to_string()],
            hints: Vec::new(),
        }
    }

    /// There is no run to speak of.
    pub fn nothing_was_run() -> Self {
        Self::refused("nothing was run here yet").hint("start: loopwright run, or loopwright demo")
    }

    /// A refusal.
    pub fn refused(what: impl Display) -> Self {
        Self::new(Exit::Refused, what)
    }

    /// The same with another exit status.
    #[must_use]
    pub fn exiting(mut self, with: Exit) -> Self {
        if let Self::Words { exit, .. } = &mut self {
            *exit = with;
        }
        self
    }

    /// The same with one more hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Display) -> Self {
        if let Self::Words { hints, .. } = &mut self {
            hints.push(hint.to_string());
        }
        self
    }

    /// A failure whose words end in what to do, after a semicolon.
    fn advised(exit: Exit, words: impl Display) -> Self {
        let words = words.to_string();
        match words.rsplit_once("; ") {
            Some((what, hint)) => Self::new(exit, what).hint(hint),
            None => Self::new(exit, words),
        }
    }

    /// A function that puts what was done in front of the system's word.
    pub fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |error| {
            if error.kind() == std::io::ErrorKind::BrokenPipe {
                Self::BrokenPipe
            } else {
                Self::new(Exit::Failure, format!("{what}: {error}"))
            }
        }
    }

    /// The lines for stderr and the exit status.
    pub fn report(self) -> (Vec<String>, Exit) {
        match self {
            Self::BrokenPipe => (Vec::new(), Exit::Finished),
            Self::Words { exit, what, hints } => {
                let mut lines: Vec<String> = Vec::new();
                // What was typed, or is called so, may stand in them.
                lines.extend(what.iter().map(|what| format!("error: {}", harmless(what))));
                lines.extend(hints.iter().map(|hint| format!("hint: {}", harmless(hint))));
                (lines, exit)
            }
        }
    }
}

impl From<Problems> for Failure {
    fn from(problems: Problems) -> Self {
        let several = problems.list().len() > 1;
        let mut hints = Vec::new();
        let what = problems.list().iter().map(|problem| {
            let mut bare = problem.clone();
            let help = bare.help.take();
            hints.extend(help.map(|help| {
                if several && !problem.key.is_empty() {
                    format!("{}: {help}", problem.key)
                } else {
                    help
                }
            }));
            bare.to_string()
        });
        Self::Words {
            exit: Exit::Refused,
            what: what.collect(),
            hints,
        }
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Refused { what, hints } => Self::Words {
                exit: Exit::Refused,
                what: vec![what],
                hints,
            },
            EngineError::Specification(problems) => problems.into(),
            EngineError::Held(held) => of_held(&held),
            EngineError::Open(error) => error.into(),
            EngineError::Read(error) | EngineError::Load(LoadError::Read(error)) => error.into(),
            EngineError::Load(error @ LoadError::NoSuchRun(_)) => Self::refused(error),
            EngineError::Load(error @ LoadError::Undrivable { .. }) => Self::refused(error).hint(
                "use the loopwright that wrote it, or a newer one; log, show and verify read it as it is",
            ),
            EngineError::Load(error) => damaged(error),
            EngineError::Storage(error) | EngineError::Blob(BlobError::Storage(error)) => {
                error.into()
            }
            EngineError::Drive(error) => of_drive(error),
            EngineError::Git(error) | EngineError::Arms(ArmsError::Git(error)) => error.into(),
            EngineError::Arms(error) => of_arms(&error),
            EngineError::Blob(error @ (BlobError::Missing(_) | BlobError::Damaged { .. })) => {
                damaged(error)
            }
            other => Self::new(Exit::Failure, other),
        }
    }
}

fn damaged(error: impl Display) -> Failure {
    Failure::new(Exit::Damaged, error)
        .hint("loopwright verify says what is damaged; keep a copy of the store")
}

fn of_held(held: &Held) -> Failure {
    let since = held
        .since
        .map(|since| format!(", since {}", moment(since)))
        .unwrap_or_default();
    let failure = Failure::new(Exit::Held, format!("{held}{since}"))
        .hint("wait for it, watch it (loopwright watch), or interrupt it");
    match &held.holder {
        Some(holder) if !holder.is_alive() => {
            failure.hint("if that process is gone: loopwright resume --force takes the run over")
        }
        _ => failure,
    }
}

fn of_drive(error: DriveError) -> Failure {
    match error {
        DriveError::Append(AppendError::Damaged(why)) => damaged(why),
        DriveError::Append(error @ AppendError::Fenced { .. }) => Failure::new(Exit::Held, error),
        DriveError::Host(fault) => match fault.kind {
            FaultKind::Damage => damaged(fault),
            FaultKind::TakenOver => Failure::new(Exit::Held, fault),
            FaultKind::Host => can_go_on(fault),
        },
        error @ DriveError::Append(_) => can_go_on(error),
        DriveError::Turn(error) => damaged(error),
        error @ DriveError::Late(_) => Failure::refused(error),
        error @ DriveError::Ended(_) => {
            Failure::refused(error).hint("start another loop: loopwright run --loop NAME")
        }
    }
}

fn can_go_on(error: impl Display) -> Failure {
    Failure::new(Exit::Failure, error).hint("then go on: loopwright resume")
}

fn of_arms(error: &ArmsError) -> Failure {
    let exit = match error {
        ArmsError::Git(_) | ArmsError::Io { .. } => Exit::Failure,
        _ => Exit::Refused,
    };
    Failure::advised(exit, error)
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Missing(_) => Self::nothing_was_run(),
            error @ OpenError::Damaged { .. } => Self::advised(Exit::Damaged, error),
            error @ OpenError::Storage {
                source: StorageError::Damaged(_),
                ..
            } => damaged(error),
            error @ OpenError::Storage { .. } => Self::new(Exit::Failure, error),
            error @ OpenError::Unwritable { .. } => {
                Self::refused(error).hint("make it writable, or name another place: --store DIR")
            }
            OpenError::Newer { found, known, path } => Self::refused(format!(
                "the store {} was written by a newer loopwright \
                 (store version {found}; this one knows {known})",
                path.display()
            ))
            .hint("use a newer loopwright, or another place: --store DIR"),
            error @ OpenError::Foreign(_) => Self::advised(Exit::Refused, error),
        }
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Damaged(damage) => damaged(damage),
            ReadError::Storage(error) => error.into(),
            error @ ReadError::Newer { .. } => Self::refused(error),
        }
    }
}

impl From<VerifyError> for Failure {
    fn from(error: VerifyError) -> Self {
        match error {
            VerifyError::Read(error) => error.into(),
            error @ VerifyError::NoSuchRun(_) => Self::refused(error),
        }
    }
}

impl From<StorageError> for Failure {
    fn from(error: StorageError) -> Self {
        match error {
            StorageError::Damaged(_) => damaged(error),
            StorageError::Full => Self::advised(Exit::Failure, error),
            error => Self::new(Exit::Failure, error),
        }
    }
}

impl From<GitError> for Failure {
    fn from(error: GitError) -> Self {
        match error {
            GitError::Refused(Refusal::NotTrusted { .. }) => Self::refused(error),
            GitError::Refused(_)
            | GitError::NoGit { .. }
            | GitError::CheckedOut { .. }
            | GitError::BranchInTheWay { .. } => Self::advised(Exit::Refused, error),
            error @ GitError::Damaged { .. } => damaged(error),
            // In our own store, that is; elsewhere it is the user's to find.
            GitError::Missing { oid, place } if place.ends_with("objects.git") => damaged(format!(
                "object {oid} is missing from {}, or damaged",
                place.display()
            )),
            error => Self::new(Exit::Failure, error),
        }
    }
}

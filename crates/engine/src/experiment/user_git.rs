//! Running the git commands in which the user's own programs take part (hooks, signing) as any other
//! outside command: under a supervisor, noted while they run, ended with the engine.

use std::sync::Arc;
use std::time::Duration;

use loopwright_core::effect::Announced;
use loopwright_core::experiment::results::Ended;
use loopwright_core::ids::{EffectId, RunId};
use loopwright_core::usage::Usage;
use loopwright_exec::{self as exec, Command, Ending, Environment, Stdin, Supervisor};
use loopwright_git::{GitError, UserCommand, UserCommands, UserEnd, UserRun};
use loopwright_record::{Running, RunningCommand, Store};

use crate::commands::{CommandRun, CommandRunner, ended_of};
use crate::error::EngineError;
use crate::hands::Control;

use super::fence::Fence;

/// Under which name a commit of `adopt` is noted while it runs.
pub(super) const ADOPTING: &str = "adopt";

/// Runs them for an effect.
pub(super) struct ForEffect<'a> {
    pub runner: &'a CommandRunner,
    pub announced: &'a Announced,
    pub control: &'a Control,
    pub limit: Duration,
    pub grace: Duration,
    /// Whether the checkout is still ours afterwards.
    pub fence: &'a Fence,
    pub reader: &'a Store,
    /// Why one could not be run, where that is a fault of the host.
    pub fault: Option<EngineError>,
    /// What they used so far.
    pub used: Usage,
}

impl ForEffect<'_> {
    /// Runs it; an error is a fault of the host.
    fn run_supervised(&mut self, command: UserCommand) -> Result<CommandRun, EngineError> {
        let mut command = supervised(command);
        command.time_limit = Some(self.limit);
        command.grace = self.grace;
        let run = self
            .runner
            .run(command, None, self.announced, self.control)?;
        self.used = self.used.then(run.usage.free_of_charge());
        self.fence.check(self.reader)?;
        Ok(run)
    }

    /// What came of whoever ran commands by it: a fault of the host, where there was one, says why
    /// better.
    pub fn result_of<T>(&mut self, done: Result<T, GitError>) -> Result<T, EngineError> {
        match (done, self.fault.take()) {
            (Err(_), Some(fault)) => Err(fault),
            (done, _) => Ok(done?),
        }
    }
}

impl UserCommands for ForEffect<'_> {
    fn run(&mut self, command: UserCommand) -> Result<UserRun, GitError> {
        let run = self.run_supervised(command).map_err(|error| {
            let words = error.to_string();
            self.fault = Some(error);
            GitError::NotRun(words)
        })?;
        let end = match &run.ran.ended {
            _ if run.stopped => UserEnd::Stopped,
            Ended::Exited(0) => UserEnd::Succeeded,
            Ended::Exited(_) => UserEnd::Failed,
            ended => UserEnd::CutOff(format!("the commit {}", ended.words())),
        };
        let said = run.ran.tail.trim().to_owned();
        Ok(UserRun { end, said })
    }
}

/// Runs them for a person who waits, and ends them if they take too long.
pub(super) struct Foreground<'a> {
    pub supervisor: &'a Supervisor,
    /// Where it is noted while they run, and for which run; none where that is not ours.
    pub running: Option<(Running, RunId)>,
    /// How long one may take.
    pub limit: Duration,
    /// Stops it.
    pub control: &'a Control,
    /// Why one could not be run.
    pub fault: Option<EngineError>,
}

impl UserCommands for Foreground<'_> {
    fn run(&mut self, command: UserCommand) -> Result<UserRun, GitError> {
        self.run_supervised(command).map_err(|error| {
            let words = error.to_string();
            self.fault = Some(error);
            GitError::NotRun(words)
        })
    }
}

impl Foreground<'_> {
    /// Runs it; an error is a fault of the host.
    fn run_supervised(&mut self, command: UserCommand) -> Result<UserRun, EngineError> {
        if self.control.is_stopping() {
            let said = String::new();
            let end = UserEnd::Stopped;
            return Ok(UserRun { end, said });
        }
        let mut command = supervised(command);
        command.time_limit = Some(self.limit);
        let held = exec::hold(command, None, self.supervisor)?;
        let (id, effect) = (held.id(), EffectId::new(ADOPTING));
        if let Some((running, run)) = &self.running {
            running.add(&RunningCommand {
                run: run.clone(),
                effect: effect.clone(),
                attempt: 1,
                pid: id.pid,
                start_time: id.start_time,
                boot_id: id.boot_id.clone(),
            })?;
        }
        // Only now: whoever comes after a crash must know of everything that runs.
        let running = held.release();
        self.control.running(running.stopper());
        let finished = running.wait();
        self.control.ended();
        if let Some((running, run)) = &self.running {
            running.remove(run, &effect, 1)?;
        }
        let end = match &finished.ending {
            Ending::Exited(0) => UserEnd::Succeeded,
            Ending::Exited(_) => UserEnd::Failed,
            Ending::Stopped => UserEnd::Stopped,
            ending => UserEnd::CutOff(format!("it {}", ended_of(ending, Some(self.limit)).words())),
        };
        let said = finished.output.text().trim().to_owned();
        Ok(UserRun { end, said })
    }
}

fn supervised(command: UserCommand) -> Command {
    let mut supervised = Command::argv(command.words, command.directory);
    supervised.env = Environment {
        inherit: true,
        set: command.set,
        remove: command.remove,
    };
    if !command.input.is_empty() {
        supervised.stdin = Stdin::Bytes(Arc::from(command.input));
    }
    supervised
}

//! Running a command for an effect: supervised, noted in the store while it runs, its output
//! bounded, scrubbed and kept.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use loopwright_core::digest::Digest;
use loopwright_core::effect::Announced;
use loopwright_core::experiment::Named;
use loopwright_core::experiment::results::{Ended, Ran};
use loopwright_core::scrub::Secrets;
use loopwright_core::usage::Usage;
use loopwright_exec::{
    self as exec, Captured, Command, Containment, Ending, Finished, Observer, Spill, Supervisor,
};
use loopwright_git::{Opened, UntrustedDirectory};
use loopwright_record::{Blobs, Running, RunningCommand};

use crate::error::EngineError;
use crate::hands::Control;
use crate::scrubbing::ScrubbingReader;

/// How much of an output's end stands in the record itself, in bytes. What is longer goes whole
/// into a blob.
const TAIL_BYTES_MAX: usize = 4000;

/// So much of an output's end is scrubbed before the tail is cut off it: a secret that lost its
/// beginning is not known any more.
const SCRUBBED_END_BYTES: usize = 48 * 1024;

/// The folder for outputs while they grow.
const OUTPUTS: &str = "outputs";
const OUTPUT: &str = "output";

/// Runs the commands of one run.
pub struct CommandRunner {
    /// Starts supervisors.
    pub supervisor: Supervisor,
    /// Where running commands are noted.
    pub running: Running,
    /// Where outputs are kept.
    pub blobs: Blobs,
    /// What is taken out of them.
    pub secrets: Arc<Secrets>,
    /// The run's folder, in which outputs lie while they grow.
    pub work: PathBuf,
    /// What no command may write: the inputs linked from the user's checkout.
    pub read_only: Vec<PathBuf>,
    /// How much of an output is kept.
    pub output_bytes_max: u64,
    /// The way to the record, where commands may have closed it: it lies in their checkout.
    pub way: Vec<PathBuf>,
}

/// What came of a command.
pub struct CommandRun {
    /// For the record.
    pub ran: Ran,
    /// What it used.
    pub usage: Usage,
    /// It was stopped on request, so that it settles nothing.
    pub stopped: bool,
    /// How many values were scrubbed from its output.
    pub scrubbed: u64,
}

impl CommandRunner {
    /// Runs `command` for `announced` to its end; stopped through `control`.
    pub fn run(
        &self,
        mut command: Command,
        observer: Option<Box<dyn Observer>>,
        announced: &Announced,
        control: &Control,
    ) -> Result<CommandRun, EngineError> {
        let limit = command.time_limit;
        let directory = command.cwd.clone();
        let mut outputs = UntrustedDirectory::anew(&self.work, OUTPUTS)?;
        command.read_only.clone_from(&self.read_only);
        command.capture.spill = Some(Spill {
            path: outputs.steady_path().join(OUTPUT),
            limit_bytes: self.output_bytes_max,
        });
        // That no supervisor can be had is the host's fault, never the trial's.
        let held = exec::hold(command, observer, &self.supervisor)?;
        let id = held.id();
        self.running.add(&RunningCommand {
            run: announced.run.clone(),
            effect: announced.effect.clone(),
            attempt: announced.attempt,
            pid: id.pid,
            start_time: id.start_time,
            boot_id: id.boot_id.clone(),
        })?;
        // Only now: whoever comes after a crash must know of everything that runs.
        loopwright_record::crash_point!("command.noted");
        let running = held.release();
        loopwright_record::crash_point!("command.running");
        control.running(running.stopper());
        let finished = running.wait();
        control.ended();
        loopwright_record::crash_point!("command.ended");
        self.open_way();
        self.running
            .remove(&announced.run, &announced.effect, announced.attempt)?;
        if let Ending::NotStarted { reason } = &finished.ending
            && directory.join(".").is_dir()
        {
            // It is what starts commands that failed: no shell, no room for another process.
            return Err(EngineError::NotStarted(reason.clone()));
        }
        let (output_blob, scrubbed) = self.keep_output(&finished.output, &mut outputs)?;
        // It is in the blob, without what is secret in it.
        let _ = outputs.make_room(Path::new(OUTPUT));
        let (tail, in_tail) = tail_of(&finished.output, &self.secrets);
        Ok(CommandRun {
            stopped: finished.ending == Ending::Stopped,
            usage: usage_of(&finished),
            ran: Ran {
                ended: ended_of(&finished.ending, limit),
                tail,
                output_blob,
                leftovers: finished
                    .leftovers
                    .iter()
                    .map(|left| left.name.clone())
                    .collect(),
                containment: containment_of(finished.containment).to_owned(),
            },
            scrubbed: scrubbed + in_tail,
        })
    }

    /// Opens the way to the record up again.
    fn open_way(&self) {
        let Some((store, above)) = self.way.split_last() else {
            return;
        };
        let mut opened = Opened::default();
        for path in above {
            opened.open(path);
        }
        opened.open_store(store);
    }

    /// Puts an output that is longer than its tail into a blob, scrubbed.
    fn keep_output(
        &self,
        output: &Captured,
        outputs: &mut UntrustedDirectory,
    ) -> Result<(Option<Digest>, u64), EngineError> {
        if output.total_bytes <= TAIL_BYTES_MAX as u64 {
            return Ok((None, 0));
        }
        // A command that finds its own output's file can take it away: then memory has both ends.
        let spilled = output.spilled.as_ref();
        if let Some(file) = spilled.and_then(|_| outputs.open_file(Path::new(OUTPUT))) {
            let mut clean = ScrubbingReader::new(file, &self.secrets);
            let blob = self.blobs.put_reader(&mut clean)?;
            return Ok((Some(blob.digest), clean.scrubbed()));
        }
        let (clean, count) = self.secrets.scrub_text(&output.text()).into_parts();
        Ok((Some(self.blobs.put_bytes(clean.as_bytes())?), count))
    }
}

/// The end of an output for the record, scrubbed, and how many values were taken out.
fn tail_of(output: &Captured, secrets: &Secrets) -> (String, u64) {
    let (mut end, count) = secrets
        .scrub_text(&output.text_tail(SCRUBBED_END_BYTES))
        .into_parts();
    if end.len() > TAIL_BYTES_MAX {
        let cut = end.len() - TAIL_BYTES_MAX;
        let cut = (cut..end.len()).find(|at| end.is_char_boundary(*at));
        end.drain(..cut.unwrap_or(0));
    }
    (end, count)
}

trait IntoParts {
    fn into_parts(self) -> (String, u64);
}

impl IntoParts for (std::borrow::Cow<'_, str>, usize) {
    fn into_parts(self) -> (String, u64) {
        (self.0.into_owned(), self.1 as u64)
    }
}

impl CommandRun {
    /// A command that was not begun, and why.
    pub fn not_started(why: &str) -> Self {
        Self {
            ran: Ran {
                ended: Ended::Broken {
                    why: why.to_owned(),
                },
                tail: String::new(),
                output_blob: None,
                leftovers: Named::default(),
                containment: String::new(),
            },
            usage: Usage::nothing(),
            stopped: false,
            scrubbed: 0,
        }
    }
}

pub(crate) fn ended_of(ending: &Ending, limit: Option<std::time::Duration>) -> Ended {
    match ending {
        Ending::Exited(code) => Ended::Exited(*code),
        Ending::Signaled(signal) => Ended::Signaled(*signal),
        Ending::TimedOut => {
            let limit_us = limit.map_or(0, |limit| limit.as_micros() as u64);
            Ended::TimedOut { limit_us }
        }
        Ending::Stopped => Ended::Broken {
            why: "it was stopped".to_owned(),
        },
        Ending::NotStarted { reason } => Ended::Broken {
            why: reason.clone(),
        },
        Ending::SupervisorLost { detail } => Ended::Broken {
            why: detail.clone(),
        },
    }
}

fn containment_of(containment: Option<Containment>) -> &'static str {
    match containment {
        Some(Containment::PidNamespace) => "pid_namespace",
        Some(Containment::SubreaperScoped) => "subreaper_scoped",
        Some(Containment::Subreaper) => "subreaper",
        None => "unknown",
    }
}

fn usage_of(finished: &Finished) -> Usage {
    let micros = |duration: std::time::Duration| duration.as_micros() as u64;
    let cpu = finished
        .cpu_user
        .zip(finished.cpu_system)
        .map(|(user, system)| user + system);
    Usage {
        wall_us: Some(micros(finished.wall)),
        cpu_us: cpu.map(micros),
        memory_bytes: finished.max_rss_bytes,
        tokens: None,
        money_micros: None,
    }
}

//! Running a command for an effect: supervised, noted in the store while it runs, its output
//! bounded, scrubbed and kept.

use std::fs::File;
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use loopwright_core::digest::Digest;
use loopwright_core::effect::Announced;
use loopwright_core::experiment::results::{Ended, Ran};
use loopwright_core::scrub::Secrets;
use loopwright_core::usage::Usage;
use loopwright_exec::{
    self as exec, Captured, Command, Containment, Ending, Finished, Observer, Spill, Supervisor,
};
use loopwright_record::{Blobs, Running, RunningCommand};

use crate::error::EngineError;
use crate::hands::Control;

/// How much of an output's end stands in the record itself, in bytes. What is longer goes whole
/// into a blob.
const TAIL_BYTES_MAX: usize = 4000;

/// The longest piece of an output that is scrubbed at once; a secret across two pieces could slip
/// through, so pieces end at the ends of lines where there are any.
const SCRUB_PIECE_BYTES_MAX: usize = 1 << 20;

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
    /// A folder for outputs while they grow.
    pub spill_folder: PathBuf,
    /// How much of an output is kept.
    pub output_bytes_max: u64,
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
        let spill = self
            .spill_folder
            .join(format!("output-{}", announced.attempt));
        command.capture.spill = Some(Spill {
            path: spill.clone(),
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
        self.running
            .remove(&announced.run, &announced.effect, announced.attempt)?;
        let (output_blob, scrubbed) = self.keep_output(&finished.output)?;
        // Nothing of a spill file is needed once its blob is there.
        let _ = std::fs::remove_file(&spill);
        let (tail, in_tail) = self
            .secrets
            .scrub_text(&finished.output.text_tail(TAIL_BYTES_MAX))
            .into_parts();
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

    /// Puts an output that is longer than its tail into a blob, scrubbed.
    fn keep_output(&self, output: &Captured) -> Result<(Option<Digest>, u64), EngineError> {
        if output.total_bytes <= TAIL_BYTES_MAX as u64 {
            return Ok((None, 0));
        }
        if let Some(spilled) = &output.spilled {
            return self.keep_spilled(&spilled.path);
        }
        let (clean, count) = self.secrets.scrub_text(&output.text()).into_parts();
        Ok((Some(self.blobs.put_bytes(clean.as_bytes())?), count))
    }

    fn keep_spilled(&self, path: &Path) -> Result<(Option<Digest>, u64), EngineError> {
        let clean_path = path.with_extension("clean");
        let count = self
            .scrub_file(path, &clean_path)
            .map_err(EngineError::io(format!(
                "scrub the output in {}",
                path.display()
            )))?;
        let digest = self.blobs.put_file(&clean_path)?.digest;
        let _ = std::fs::remove_file(&clean_path);
        Ok((Some(digest), count))
    }

    fn scrub_file(&self, from: &Path, to: &Path) -> std::io::Result<u64> {
        let mut reader = BufReader::with_capacity(SCRUB_PIECE_BYTES_MAX, File::open(from)?);
        let mut writer = BufWriter::new(File::create(to)?);
        let mut count = 0;
        loop {
            let piece = reader.fill_buf()?;
            if piece.is_empty() {
                writer.flush()?;
                return Ok(count);
            }
            let line_end = piece.iter().rposition(|byte| *byte == b'\n');
            let length = line_end.map_or(piece.len(), |at| at + 1);
            let (clean, found) = self.secrets.scrub_bytes(&piece[..length]);
            count += found as u64;
            writer.write_all(&clean)?;
            reader.consume(length);
        }
    }
}

trait IntoParts {
    fn into_parts(self) -> (String, u64);
}

impl IntoParts for (std::borrow::Cow<'_, str>, usize) {
    fn into_parts(self) -> (String, u64) {
        (self.0.into_owned(), self.1 as u64)
    }
}

fn ended_of(ending: &Ending, limit: Option<std::time::Duration>) -> Ended {
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

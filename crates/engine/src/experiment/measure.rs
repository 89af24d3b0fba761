//! Performing a measurement: an arm is brought to exactly the tree under test, set up where that
//! is needed, and the measuring command's numbers are read as it prints them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use loopwright_core::effect::Announced;
use loopwright_core::experiment::Named;
use loopwright_core::experiment::machine::settlement_of;
use loopwright_core::experiment::results::{Ended, Measured, SetUp};
use loopwright_core::experiment::rule::Arm;
use loopwright_core::metric::{self, Precedence, Readings, Scanner};
use loopwright_core::usage::Usage;
use loopwright_exec::{Command, Observer};
use loopwright_git::arms::Role;
use loopwright_git::{Found, RepoPath, TreeListing};

use crate::commands::CommandRun;
use crate::error::EngineError;
use crate::hands::Control;

use super::environment::environment;
use super::workshop::{Done, Ready, Workshop, oid_field, request_field};

/// An arm that holds exactly the tree to be measured.
pub(super) struct ReadyArm {
    role: Role,
    listing: TreeListing,
    /// The files that judge: looked at again afterwards.
    watched: Vec<RepoPath>,
    path: PathBuf,
}

impl Workshop {
    /// Performs `t<trial>/measure/<arm>/<reading>`, and what else measures a tree.
    pub(super) fn measure(
        &mut self,
        announced: &Announced,
        control: &Control,
    ) -> Result<Done, EngineError> {
        let ready = self.take_ready(announced);
        if let Some(why) = self.lost_inputs()? {
            return Ok(not_begun(&why));
        }
        let arm = match ready {
            Some(Ready::Arm(arm)) => Ok(arm),
            _ => self.ready_arm(announced)?,
        };
        let ReadyArm {
            role,
            listing,
            watched,
            mut path,
        } = match arm {
            Ok(arm) => arm,
            Err(why) => return Ok(not_begun(&why)),
        };
        let mut setup = None;
        if self.spec.setup.is_some() && self.arms.needs_setup(role, &self.setup_inputs)? {
            setup = match self.set_up(role, &path, &watched, announced, control)? {
                Ok(run) => Some(run),
                Err(done) => return Ok(done),
            };
            path = self
                .arms
                .prepare(role, &listing, &mut self.objects, None)?
                .path;
        }
        loopwright_record::crash_point!("measure.ready");
        let mut result_file = match self.result_file(&path)? {
            Ok(result_file) => result_file,
            Err(why) => {
                self.arms.after_run(role, &[])?;
                let run = CommandRun::not_started(&why);
                return Ok(measured(setup, run, Readings::default(), Named::default()));
            }
        };
        let command = self.command(
            &self.spec.run,
            &path,
            self.spec.run_limit_us,
            Some(&result_file.path()),
        );
        let scanner = SharedScanner::new(Scanner::new(&self.metrics, self.spec.strict_metric));
        let run = self
            .runner
            .run(command, Some(Box::new(scanner.clone())), announced, control)?;
        self.expect_ours()?;
        if run.stopped {
            self.arms.after_run(role, &[])?;
            self.arms.discard_cache(role)?;
            return Ok(Done::Stopped(usage_of_both(setup.as_ref(), &run)));
        }
        let cut_off = !matches!(run.ran.ended, Ended::Exited(_));
        let from_file = self.numbers_of(result_file.read());
        let touched = self.touched(role, &watched)?;
        if cut_off {
            // Whatever it was writing into its cache is half written.
            self.arms.discard_cache(role)?;
        }
        let readings = metric::combine(from_file, scanner.finish(), self.precedence());
        Ok(measured(setup, run, readings, touched))
    }

    /// Brings an arm to the tree to be measured; in words, where that tree can't be checked out.
    pub(super) fn ready_arm(
        &mut self,
        announced: &Announced,
    ) -> Result<Result<ReadyArm, String>, EngineError> {
        let tree = oid_field(&announced.request, "tree")?;
        let role = match request_field(&announced.request, "arm")? {
            Arm::Candidate => Role::Candidate,
            Arm::Incumbent => Role::Incumbent,
        };
        let listing = self.listing_to_measure(&tree)?;
        let watched: Vec<RepoPath> = listing
            .keys()
            .filter(|path| self.protected.matches(path.as_bytes()))
            .cloned()
            .collect();
        match self.arms.prepare(role, &listing, &mut self.objects, None) {
            Err(error) if error.is_of_tree() => Ok(Err(error.to_string())),
            prepared => Ok(Ok(ReadyArm {
                path: prepared?.path,
                role,
                listing,
                watched,
            })),
        }
    }

    /// Runs the setup; where that is the measurement's end, what came of it.
    fn set_up(
        &mut self,
        role: Role,
        path: &Path,
        watched: &[RepoPath],
        announced: &Announced,
        control: &Control,
    ) -> Result<Result<CommandRun, Done>, EngineError> {
        let line = self.spec.setup.clone().unwrap_or_default();
        self.clear_desk()?;
        let command = self.command(&line, path, self.spec.setup_limit_us, None);
        let run = self.runner.run(command, None, announced, control)?;
        self.expect_ours()?;
        let went_well = run.ran.ended.is_success() && !run.stopped;
        if went_well {
            self.arms.setup_done(role, &self.setup_inputs)?;
        }
        let touched = self.touched(role, watched)?;
        if !went_well {
            self.arms.discard_cache(role)?;
        }
        if run.stopped {
            return Ok(Err(Done::Stopped(run.usage.free_of_charge())));
        }
        if went_well && touched.is_empty() {
            return Ok(Ok(run));
        }
        let measured = Measured {
            ran: run.ran,
            in_setup: true,
            setup: None,
            readings: Readings::default(),
            touched,
        };
        let usage = run.usage.free_of_charge();
        Ok(Err(Done::Result(
            settlement_of(&measured),
            usage,
            run.scrubbed,
        )))
    }

    /// A file that was asked for by name is where the number is meant to be; one that is merely
    /// offered may have been written by whatever the measurement runs.
    fn precedence(&self) -> Precedence {
        match (&self.spec.result_file, self.spec.strict_metric) {
            (Some(_), true) => Precedence::StrictFile,
            (Some(_), false) => Precedence::File,
            (None, true) => Precedence::Strict,
            (None, false) => Precedence::Agreement,
        }
    }

    fn touched(&mut self, role: Role, watched: &[RepoPath]) -> Result<Named, EngineError> {
        let trace = self.arms.after_run(role, watched)?;
        let mut touched: Named = trace.touched.iter().map(ToString::to_string).collect();
        touched.extend(self.changed_links()?);
        Ok(touched)
    }

    fn command(
        &self,
        line: &str,
        arm: &Path,
        limit_us: u64,
        result_file: Option<&Path>,
    ) -> Command {
        let mut told: BTreeMap<&str, OsString> = BTreeMap::new();
        if let Some(result_file) = result_file {
            told.insert("LOOPWRIGHT_RESULT", result_file.into());
        }
        let mut command = Command::shell(line, arm.join(&self.workdir));
        command.env = environment(&self.environment, self.arms.ceiling(), told);
        command.time_limit = Some(Duration::from_micros(limit_us));
        command.grace = Duration::from_micros(self.spec.grace_us);
        command
    }

    /// What the result file says; nothing where none was left that could be read.
    fn numbers_of(&self, found: Found) -> Option<Readings> {
        let strict = self.spec.strict_metric;
        match found {
            Found::Content(content) => {
                Some(metric::from_result_file(&content, &self.metrics, strict))
            }
            // The end of it could say something else than its beginning.
            Found::TooLarge => Some(metric::unreadable_file(
                &self.metrics,
                "the result file is larger than 1 MiB",
            )),
            Found::Nothing => None,
        }
    }
}

/// A measurement that did not begin, and why.
fn not_begun(why: &str) -> Done {
    let run = CommandRun::not_started(why);
    measured(None, run, Readings::default(), Named::default())
}

/// A measurement that came to its end, after the setup that was due for it.
fn measured(
    setup: Option<CommandRun>,
    run: CommandRun,
    readings: Readings,
    touched: Named,
) -> Done {
    let usage = usage_of_both(setup.as_ref(), &run);
    let scrubbed = run.scrubbed + setup.as_ref().map_or(0, |setup| setup.scrubbed);
    let setup = setup.map(|setup| SetUp {
        ran: setup.ran,
        usage: setup.usage.free_of_charge(),
        measuring: run.usage.free_of_charge(),
    });
    let measured = Measured {
        ran: run.ran,
        in_setup: false,
        setup,
        readings,
        touched,
    };
    Done::Result(settlement_of(&measured), usage, scrubbed)
}

/// What a measurement used, the setup before it included.
fn usage_of_both(setup: Option<&CommandRun>, run: &CommandRun) -> Usage {
    let own = run.usage.free_of_charge();
    setup.map_or(own, |setup| setup.usage.free_of_charge().then(own))
}

/// A scanner that the output's reader feeds while the measurement waits for its end.
#[derive(Clone)]
struct SharedScanner(Arc<Mutex<Option<Scanner>>>);

impl SharedScanner {
    fn new(scanner: Scanner) -> Self {
        Self(Arc::new(Mutex::new(Some(scanner))))
    }

    fn finish(&self) -> Readings {
        let scanner = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        scanner.map(Scanner::finish).unwrap_or_default()
    }
}

impl Observer for SharedScanner {
    fn chunk(&mut self, bytes: &[u8]) {
        let mut scanner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(scanner) = scanner.as_mut() {
            scanner.feed(bytes);
        }
    }
}

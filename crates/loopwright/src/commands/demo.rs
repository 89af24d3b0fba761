//! `demo`: a real little project and a scripted proposer, unpacked, run, verified and drawn.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};

use clap::Args;
use loopwright_engine::Project;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::exit_code::Exit;
use crate::failure::Failure;
use crate::output::{Output, talk};
use crate::place::Common;

/// What the demo is made of: paths and contents.
const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/demo_files.rs"));

/// The project among them.
const PROJECT: &str = "route";

/// Tells the scripted proposer where its prepared changes are.
const CHANGES_VARIABLE: &str = "COURIER_CHANGES";

/// Run a bundled loop on a bundled project: no key, no network, under a minute
///
/// A courier's round is made shorter by a scripted proposer. Some of its changes help, one is a
/// tie, one crashes, one hangs, two cheat and are caught. Then the record is verified and the
/// progress drawn.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Unpack it here, and leave it there; must not exist yet, or be empty
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Leave it in the temporary directory where it was run
    #[arg(long)]
    keep: bool,

    /// Unpack it only
    #[arg(long, requires = "dir")]
    no_run: bool,
}

/// Runs the demo.
pub fn run(common: &Common, _output: &Output, arguments: &Arguments) -> Result<Exit, Failure> {
    if common.store.is_some() || common.loop_name.is_some() {
        return Err(
            Failure::refused("the demo has a store and a loop of its own")
                .hint("leave --store and --loop away"),
        );
    }
    let (folder, temporary) = folder_of(common, arguments)?;
    unpack(&folder)?;
    let route = folder.join(PROJECT);
    commit(&route)?;
    talk(&format!("the project is in {}", route.display()));
    if arguments.no_run {
        talk("");
        talk("run it:");
        talk(&format!("  cd {}", route.display()));
        talk(&format!(
            "  export {CHANGES_VARIABLE}=\"$(cd ../changes && pwd)\""
        ));
        talk("  loopwright run");
        return Ok(Exit::Finished);
    }
    let exit = show(&route, &folder.join("changes"))?;
    let goes = temporary.is_some() && !arguments.keep;
    if exit == Exit::Finished {
        say_where(&route, goes);
    }
    if goes && let Ok(project) = Project::find(&route, None) {
        // The checkouts lie elsewhere.
        let _ = fs::remove_dir_all(project.work);
    }
    if let Some(temporary) = temporary.filter(|_| arguments.keep) {
        let _ = temporary.keep();
    }
    Ok(exit)
}

/// Runs, verifies and draws, as one would type it.
fn show(route: &Path, changes: &Path) -> Result<Exit, Failure> {
    for words in [&["run"][..], &["verify"], &["report"]] {
        talk("");
        talk(&format!("$ loopwright {}", words.join(" ")));
        let status = in_project(route, changes, words)?;
        if let Some(exit) = failed(status) {
            return Ok(exit);
        }
    }
    Ok(Exit::Finished)
}

fn folder_of(
    common: &Common,
    arguments: &Arguments,
) -> Result<(PathBuf, Option<tempfile::TempDir>), Failure> {
    let Some(chosen) = &arguments.dir else {
        let temporary = tempfile::Builder::new()
            .prefix("loopwright-demo-")
            .tempdir()
            .map_err(Failure::io("make a temporary directory"))?;
        return Ok((temporary.path().to_path_buf(), Some(temporary)));
    };
    let folder = std::path::absolute(common.directory().join(chosen))
        .map_err(Failure::io(format!("find {}", chosen.display())))?;
    let occupied = match fs::read_dir(&folder) {
        Ok(mut entries) => entries.next().is_some(),
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    };
    if occupied {
        return Err(
            Failure::refused(format!("{} is there already", folder.display()))
                .hint("name a directory that doesn't exist yet"),
        );
    }
    Ok((folder, None))
}

fn unpack(folder: &Path) -> Result<(), Failure> {
    for (path, content) in FILES {
        let path = folder.join(path);
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent).map_err(Failure::io(format!("make {}", parent.display())))?;
        fs::write(&path, content).map_err(Failure::io(format!("write {}", path.display())))?;
    }
    Ok(())
}

/// Commits the project to a repository of its own, with an identity that is only there.
fn commit(route: &Path) -> Result<(), Failure> {
    for words in [
        &["init", "--quiet", "--initial-branch=main"][..],
        &["config", "user.name", "Loopwright Demo"],
        &["config", "user.email", "demo@loopwright.invalid"],
        &["config", "commit.gpgsign", "false"],
        &["add", "--all"],
        &[
            "commit",
            "--quiet",
            "--no-verify",
            "--message=A courier's round",
        ],
    ] {
        let mut git = Command::new("git");
        git.current_dir(route).args(words);
        for name in [
            "GIT_DIR",
            "GIT_WORK_TREE",
            "GIT_INDEX_FILE",
            "GIT_COMMON_DIR",
        ] {
            git.env_remove(name);
        }
        let status = git.status().map_err(|error| {
            Failure::refused(format!("git can't be started: {error}"))
                .hint("install git 2.38 or newer")
        })?;
        if !status.success() {
            let words = words.join(" ");
            return Err(Failure::new(Exit::Failure, format!("git {words} failed")));
        }
    }
    Ok(())
}

/// Runs a command of our own in the project, as one would type it there.
fn in_project(route: &Path, changes: &Path, words: &[&str]) -> Result<ExitStatus, Failure> {
    use std::os::unix::process::CommandExt as _;
    let mut signals =
        Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(Failure::io("catch signals"))?;
    let handle = signals.handle();
    let mut child = Command::new("/proc/self/exe")
        .arg0("loopwright")
        .args(words)
        .current_dir(route)
        .env(CHANGES_VARIABLE, changes)
        .env_remove("LOOPWRIGHT_STORE")
        // Its own group, so that a Ctrl-C reaches it once: from here.
        .process_group(0)
        .spawn()
        .map_err(Failure::io("start loopwright"))?;
    let pid = pid_of(&child);
    let forward = std::thread::spawn(move || {
        for signal in signals.forever() {
            let signal = match signal {
                SIGINT => Signal::INT,
                SIGTERM => Signal::TERM,
                _ => Signal::HUP,
            };
            // One that has just gone needs no signal.
            let _ = pid.map(|pid| kill_process(pid, signal));
        }
    });
    let status = child.wait().map_err(Failure::io("wait for loopwright"));
    handle.close();
    // A thread that panicked has said so.
    let _ = forward.join();
    status
}

fn pid_of(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw)
}

fn failed(status: ExitStatus) -> Option<Exit> {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.code(), status.signal()) {
        (Some(0), _) => None,
        (Some(code), _) if code > 128 => Some(Exit::Signal(code - 128)),
        (Some(_), _) => Some(Exit::Failure),
        (None, signal) => Some(signal.map_or(Exit::Failure, Exit::Signal)),
    }
}

fn say_where(route: &Path, goes: bool) {
    talk("");
    if goes {
        talk("it is removed now; to look around in it: loopwright demo --dir DIR");
        return;
    }
    talk("look around:");
    talk(&format!("  cd {}", route.display()));
    talk("  loopwright log");
    talk("  loopwright show 6");
    talk("  loopwright diff 13");
    talk("  loopwright adopt");
}

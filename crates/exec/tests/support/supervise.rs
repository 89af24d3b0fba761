//! What the tests and the example execute as supervisor, and a tiny engine for
//! them to kill.
//!
//! `… __supervise` is a fork server. `… engine ISOLATION LINE…` starts commands
//! the way an engine does, one after the other, with itself as supervisor; it
//! prints each supervisor's identity as JSON and waits.

use std::io::Write;
use std::process::ExitCode;

use loopwright_exec::{Command, Isolation, SUPERVISE_ARGUMENT, Supervisor, start, supervisor_main};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some(SUPERVISE_ARGUMENT) => supervisor_main(),
        Some("engine") => {
            let isolation = arguments.next().expect("an isolation");
            let supervisor = Supervisor::this_program();
            arguments.for_each(|line| engine(&isolation, &line, &supervisor));
            ExitCode::SUCCESS
        }
        _ => ExitCode::from(2),
    }
}

fn engine(isolation: &str, line: &str, supervisor: &Supervisor) {
    let mut command = Command::shell(line, ".");
    command.isolation = match isolation {
        "auto" => Isolation::Auto,
        "without-namespace" => Isolation::WithoutNamespace,
        _ => Isolation::SubreaperOnly,
    };
    let running = start(command, None, supervisor).expect("started");
    let id = serde_json_line(&running);
    let mut out = std::io::stdout();
    out.write_all(id.as_bytes()).expect("written");
    out.flush().expect("flushed");
    running.wait();
}

/// By hand: the binary may use the crate's own dependencies only.
fn serde_json_line(running: &loopwright_exec::Running) -> String {
    let id = running.id();
    format!(
        "{{\"pid\":{},\"start_time\":{},\"boot_id\":\"{}\"}}\n",
        id.pid, id.start_time, id.boot_id
    )
}

//! What a command gets: arguments, directory, environment, input, descriptors,
//! signals; and how its end is told.

mod support;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use loopwright_exec::{
    Command, Containment, Ending, StartError, Stdin, Streams, Supervisor, hold, process_alive,
    start,
};
use support::{ISOLATIONS, begin, run, said, shell, shell_in, skip, supervisor};

#[test]
fn the_exit_code_comes_back() {
    for isolation in ISOLATIONS {
        let finished = run(shell_in("echo out; exit 7", isolation));
        assert_eq!(finished.ending, Ending::Exited(7));
        assert_eq!(said(&finished), "out");
        assert!(finished.leftovers.is_empty());
    }
    assert!(run(shell("true")).ending.is_success());
}

#[test]
fn a_signal_of_its_own_comes_back() {
    for isolation in ISOLATIONS {
        for (name, number) in [("TERM", 15), ("KILL", 9), ("ABRT", 6), ("PIPE", 13)] {
            let finished = run(shell_in(&format!("kill -{name} $$"), isolation));
            assert_eq!(finished.ending, Ending::Signaled(number), "{isolation:?}");
        }
    }
}

#[test]
fn arguments_are_passed_as_they_are() {
    let words = ["printf", "<%s>", "a b", "", "$HOME", "é", "*"];
    let finished = run(Command::argv(words, "/"));
    assert_eq!(said(&finished), "<a b><><$HOME><é><*>");
}

#[test]
fn the_program_is_looked_up_in_the_commands_own_path() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("only-here");
    std::fs::write(&program, "#!/bin/sh\necho found \"$1\"\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::argv(["only-here", "it"], "/");
    let path = folder.path().as_os_str().to_owned();
    command.env.set.insert("PATH".into(), path);
    assert_eq!(said(&run(command)), "found it");
}

#[test]
fn it_runs_in_its_directory() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let finished = run(Command::shell("pwd", &folder));
    assert_eq!(said(&finished), folder.to_str().unwrap());
}

#[test]
fn its_environment_is_what_was_said() {
    let mut command = shell("env | sort");
    command.env.inherit = false;
    let set = [("B", "2 3"), ("A", "1\n")];
    let set = set.map(|(name, value)| (OsString::from(name), OsString::from(value)));
    command.env.set = BTreeMap::from(set);
    let text = said(&run(command));
    let named = |name: &str| text.lines().any(|line| line.starts_with(name));
    assert!(named("A=1") && named("B=2 3"), "{text}");
    assert!(!named("PATH=") && !named("HOME="), "{text}");

    let mut command = shell("echo ${PATH:+path} ${CARGO:-nothing} $NEW");
    command.env.remove.insert("CARGO".into());
    command.env.set.insert("NEW".into(), "new".into());
    assert_eq!(said(&run(command)), "path nothing new");
}

#[test]
fn a_namespaced_command_gets_no_variable_that_was_not_set() {
    let mut command = shell("env");
    command.env.inherit = false;
    let finished = run(command);
    if finished.containment != Some(Containment::PidNamespace) {
        return skip("a_namespaced_command_…", "no PID namespace");
    }
    // What the shell itself sets.
    let known = ["PWD=", "OLDPWD=", "SHLVL=", "_="];
    for line in said(&finished).lines() {
        assert!(known.iter().any(|name| line.starts_with(name)), "{line}");
    }
}

#[test]
fn its_input_is_null_or_the_given_bytes() {
    assert_eq!(
        said(&run(shell("wc -c; readlink /proc/self/fd/0"))),
        "0\n/dev/null"
    );
    let input: Vec<u8> = (0..1_000_000_u32).map(|i| i as u8).collect();
    for isolation in ISOLATIONS {
        let mut command = shell_in("cksum", isolation);
        command.stdin = Stdin::Bytes(input.clone().into());
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("input"), &input).unwrap();
        let expected = run(Command::shell("cksum < input", folder.path()));
        assert_eq!(said(&run(command)), said(&expected));
    }
}

#[test]
fn input_that_nobody_reads_blocks_nobody() {
    let mut command = shell("exit 3");
    command.stdin = Stdin::Bytes(vec![b'x'; 5_000_000].into());
    assert_eq!(run(command).ending, Ending::Exited(3));
}

#[test]
fn a_large_description_arrives_whole() {
    let word = "x".repeat(100_000);
    let mut command = Command::argv(["printf", "%s"], "/");
    if let loopwright_exec::Program::Argv(words) = &mut command.program {
        words.extend((0..8).map(|_| OsString::from(&word)));
    }
    command.stdin = Stdin::Bytes(vec![b'x'; 10].into());
    assert_eq!(run(command).output.total_bytes, 800_000);
}

#[test]
fn streams_are_merged_in_order_or_kept_apart() {
    let line = "for i in 1 2 3; do echo o$i; echo e$i >&2; done";
    assert_eq!(said(&run(shell(line))), "o1\ne1\no2\ne2\no3\ne3");
    let mut command = shell(line);
    command.streams = Streams::Separate;
    let finished = run(command);
    assert_eq!(said(&finished), "o1\no2\no3");
    assert_eq!(finished.stderr.unwrap().text(), "e1\ne2\ne3\n");
}

#[test]
fn what_cannot_run_says_why() {
    let reason = |command: Command| match run(command).ending {
        Ending::NotStarted { reason } => reason,
        other => panic!("{other:?}"),
    };
    for isolation in ISOLATIONS {
        let mut command = Command::argv(["no-such-program"], "/");
        command.isolation = isolation;
        // A directory that can't be searched would be the reason instead.
        command
            .env
            .set
            .insert("PATH".into(), "/usr/bin:/bin".into());
        let text = reason(command);
        assert!(
            text.contains("no-such-program") && text.contains("No such file"),
            "{text}"
        );
    }
    let text = reason(Command::shell("true", "/no/such/directory"));
    assert!(text.contains("/no/such/directory is not there"), "{text}");
    let text = reason(Command::argv(["/etc/passwd"], "/"));
    assert!(
        text.contains("/etc/passwd") && text.contains("ermission"),
        "{text}"
    );
    let text = reason(Command::argv(Vec::<OsString>::new(), "/"));
    assert!(text.contains("names no program"), "{text}");
}

#[test]
fn a_held_command_runs_when_it_is_released_and_never_if_it_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let ran = folder.path().join("ran");
    let command = || shell(&format!("echo yes >> {}", ran.display()));
    let held = hold(command(), None, &supervisor()).unwrap();
    assert!(held.id().is_alive());
    let id = held.id().clone();
    drop(held);
    assert!(!id.is_alive());
    assert!(!ran.exists());
    let finished = hold(command(), None, &supervisor())
        .unwrap()
        .release()
        .wait();
    assert!(finished.ending.is_success(), "{finished:?}");
    assert_eq!(std::fs::read_to_string(&ran).unwrap(), "yes\n");
}

#[test]
fn what_is_read_only_cannot_be_written_by_any_way() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::create_dir_all(at("data/below")).unwrap();
    std::fs::write(at("data/below/file"), "old").unwrap();
    std::fs::write(at("single"), "old").unwrap();
    std::os::unix::fs::symlink(at("data"), at("link")).unwrap();
    let line = "echo new > link/below/file; echo new > data/more; mv data/below data/b; \
                rm -rf link/below; echo new > single; chmod 777 data/below/file; echo free > here; \
                cat link/below/file";
    let mut command = shell(line);
    command.cwd = folder.path().to_owned();
    command.read_only = vec![at("data"), at("single"), at("missing")];
    let finished = begin(command).wait();
    if finished.containment != Some(Containment::PidNamespace) {
        return skip("read-only inputs", "there is no namespace of mounts here");
    }
    if let Some(note) = finished
        .containment_note
        .filter(|note| note.contains("read-only"))
    {
        return skip("read-only inputs", &note);
    }
    let text = finished.output.text();
    assert!(text.ends_with("old"), "{text}");
    assert_eq!(text.matches("Read-only file system").count(), 6, "{text}");
    assert_eq!(
        std::fs::read_to_string(at("data/below/file")).unwrap(),
        "old"
    );
    assert_eq!(std::fs::read_to_string(at("single")).unwrap(), "old");
    assert_eq!(std::fs::read_to_string(at("here")).unwrap(), "free\n");
    std::fs::write(at("single"), "ours").unwrap();
}

#[test]
fn a_supervisor_that_is_none_is_an_error_not_a_hang() {
    let error = start(shell("true"), None, &Supervisor::program("/no/such/binary")).unwrap_err();
    assert!(matches!(error, StartError::Supervisor { .. }));
    assert!(error.to_string().contains("/no/such/binary"), "{error}");
    let error = start(shell("true"), None, &Supervisor::program("/bin/false")).unwrap_err();
    assert!(matches!(error, StartError::Supervisor { .. }));
    assert!(
        error.to_string().contains("/bin/false: it ended at once"),
        "{error}"
    );
}

/// The command finds the fork server beside its own supervisor and kills it, or stops it.
#[test]
fn a_killed_fork_server_is_replaced() {
    replaced_after("KILL");
}

#[test]
fn a_stopped_fork_server_is_replaced() {
    replaced_after("STOP");
}

fn replaced_after(signal: &str) {
    let folder = tempfile::tempdir().unwrap();
    let killed = folder.path().join("killed");
    let line = format!(
        r#"engine=$(sed -n 's/^PPid:.//p' /proc/$PPID/status)
        for status in $(grep -lx "PPid:.$engine" /proc/[0-9]*/status); do
            if grep -qx 'Name:.loopwright-fork' "$status"; then
                number=${{status#/proc/}}; kill -s {signal} "${{number%/status}}"; echo yes >> {0}
            fi
        done 2>/dev/null"#,
        killed.display()
    );
    let after = folder.path().join("after");
    let next = format!("echo done > {}", after.display());
    let engine = std::process::Command::new(support::HELPER)
        .args(["engine", "subreaper-only", &line, &next])
        .output()
        .unwrap();
    assert!(engine.status.success(), "{engine:?}");
    assert_eq!(std::fs::read_to_string(killed).unwrap(), "yes\n");
    assert_eq!(std::fs::read_to_string(after).unwrap(), "done\n");
}

#[test]
fn signals_have_their_defaults_whatever_the_engine_ignores() {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report");
    let line = format!("exec grep ^Sig /proc/self/status > {0}", report.display());
    for isolation in ["auto", "without-namespace", "subreaper-only"] {
        let _ = std::fs::remove_file(&report);
        let engine = std::process::Command::new("/bin/sh")
            .args([
                "-c",
                "trap '' HUP INT TERM PIPE QUIT USR1; exec \"$@\"",
                "sh",
            ])
            .args([support::HELPER, "engine", isolation, &line])
            .output()
            .unwrap();
        assert!(engine.status.success(), "{engine:?}");
        let text = std::fs::read_to_string(&report).unwrap();
        for name in ["SigBlk", "SigIgn"] {
            let line = text.lines().find(|line| line.starts_with(name)).unwrap();
            let bits = line.split_whitespace().nth(1).unwrap();
            let bits = u64::from_str_radix(bits, 16).unwrap();
            // The C library keeps 32 and 33 to itself.
            assert_eq!(bits & !(0b11 << 31), 0, "{isolation}: {line}");
        }
    }
}

#[test]
fn it_has_descriptors_0_1_and_2_whatever_the_engine_holds() {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report");
    // The shell's glob itself holds the directory open: it is gone afterwards.
    let line = format!(
        "for fd in /proc/self/fd/*; do [ -e $fd ] && echo ${{fd##*/}}; done > {}",
        report.display()
    );
    for isolation in ["auto", "without-namespace", "subreaper-only"] {
        let engine = std::process::Command::new("/bin/sh")
            .args(["-c", "exec 7</dev/null 9>/dev/null; exec \"$@\"", "sh"])
            .args([support::HELPER, "engine", isolation, &line])
            .output()
            .unwrap();
        assert!(engine.status.success(), "{engine:?}");
        let text = std::fs::read_to_string(&report).unwrap();
        let open: Vec<&str> = text
            .lines()
            .filter(|fd| fd.parse::<u32>().unwrap() < 10)
            .collect();
        assert_eq!(open, ["0", "1", "2"], "{isolation}");
    }
}

#[test]
fn the_supervisor_has_a_session_of_its_own_and_no_terminal() {
    for isolation in ISOLATIONS {
        let running = begin(shell_in("sleep 600", isolation));
        let id = running.id().clone();
        let stat = format!("/proc/{}/stat", id.pid);
        support::await_that("a session", || {
            let stat = std::fs::read_to_string(&stat).unwrap();
            let fields: Vec<String> = stat
                .rsplit(')')
                .next()
                .unwrap()
                .split_whitespace()
                .map(Into::into)
                .collect();
            // Group, session, terminal.
            fields[2] == id.pid.to_string() && fields[3] == id.pid.to_string() && fields[4] == "0"
        });
        assert!(process_alive(id.pid, id.start_time));
        drop(running);
        assert!(!process_alive(id.pid, id.start_time));
    }
}

#[test]
fn killing_its_own_group_kills_no_supervisor() {
    for isolation in ISOLATIONS {
        let finished = run(shell_in("kill -9 0", isolation));
        assert_eq!(finished.ending, Ending::Signaled(9), "{isolation:?}");
    }
}

#[test]
fn process_tools_see_the_commands_own_numbers() {
    for isolation in ISOLATIONS {
        let finished = run(shell_in(
            "read pid rest < /proc/self/stat; echo $pid $$",
            isolation,
        ));
        let text = said(&finished);
        let (seen, own) = text.split_once(' ').unwrap();
        assert_eq!(seen, own, "{isolation:?}: /proc counts otherwise");
    }
}

#[test]
fn usage_counts_the_whole_family() {
    for isolation in ISOLATIONS {
        // The work is done by a grandchild.
        let line = "sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; true'; true";
        let finished = run(shell_in(line, isolation));
        let cpu = finished.cpu_user.unwrap() + finished.cpu_system.unwrap();
        assert!(cpu > Duration::from_millis(30), "{isolation:?}: {cpu:?}");
        assert!(finished.wall >= cpu / 2, "{:?} {cpu:?}", finished.wall);

        // `tail` holds what it may have to print.
        let line = "head -c 50000000 /dev/zero | tail -c 50000000 > /dev/null";
        let big = run(shell_in(line, isolation)).max_rss_bytes.unwrap();
        assert!(big > 50_000_000, "{isolation:?}: {big}");
        let small = run(shell_in("true", isolation)).max_rss_bytes.unwrap();
        assert!(small < 30_000_000, "{isolation:?}: {small}");
    }
}

#[test]
fn wall_time_is_the_commands_own() {
    let finished = run(shell("sleep 0.3; sleep 600 & exit 0"));
    assert!(finished.wall >= Duration::from_millis(300));
    assert_eq!(finished.leftovers.len(), 1);
    let begun = std::time::Instant::now();
    let finished = run(shell("sleep 0.2"));
    assert!(finished.wall <= begun.elapsed());
}

#[test]
fn many_commands_run_at_once() {
    let threads: Vec<_> = (0..16)
        .map(|number| {
            std::thread::spawn(move || {
                let finished = run(shell(&format!("sleep 0.05; echo {number}; exit {number}")));
                assert_eq!(finished.ending, Ending::Exited(number));
                assert_eq!(said(&finished), number.to_string());
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn an_observers_panic_reaches_the_waiter_and_ends_the_family() {
    let mark = support::mark("panic");
    let observer = |_: &[u8]| panic!("the observer's own words");
    let line = format!("sleep 600.{mark} & echo x; wait");
    let running = start(shell(&line), Some(Box::new(observer)), &supervisor()).unwrap();
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| running.wait()));
    let panic = panic.unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"the observer's own words"));
    assert_eq!(support::marked(&mark), Vec::<String>::new());
}

#[test]
fn a_line_without_a_shell_finds_itself_as_with_one() {
    let scratch = tempfile::tempdir().unwrap();
    let place = scratch.path().canonicalize().unwrap();
    let script = "#!/bin/sh\necho \"$0 $# $PWD\"; kill -9 $$\n";
    std::fs::write(place.join("tell"), script).unwrap();
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(place.join("tell"), executable).unwrap();
    let run_line = |line: &str| {
        let finished = run(Command::shell(line, place.join("")));
        (said(&finished), finished.ending)
    };
    let direct = run_line("./tell a b");
    assert_eq!(direct, run_line("exec ./tell \"a\" b"));
    assert_eq!(direct.0, format!("./tell 2 {}", place.display()));
    assert_eq!(direct.1, Ending::Signaled(9));
    // Who is asked for PWD by the environment alone is told the truth too.
    assert_eq!(run_line("printenv PWD").0, place.display().to_string());
    let missing = run_line("no-such-program-anywhere");
    assert_eq!(missing.1, Ending::Exited(127));
}

/// What the system refuses to start is refused by a shell, in its words and with its code.
#[test]
fn a_line_whose_program_cannot_be_started_ends_as_under_a_shell() {
    let folder = tempfile::tempdir().unwrap();
    let contents: [(&str, &[u8]); 4] = [
        ("bare", b"exit $#"),
        ("crlf", b"#!/bin/sh\r\necho m=1\r\n"),
        ("gone", b"#!/no/such/interpreter\necho m=1\n"),
        ("itself", b"#!./itself\n"),
    ];
    let ends_alike = |plain: &str, shell: &str| {
        for isolation in ISOLATIONS {
            let end = |line: &str| {
                let mut command = shell_in(line, isolation);
                command.cwd = folder.path().to_owned();
                run(command).ending
            };
            let found = end(plain);
            assert_eq!(found, end(shell), "{plain} {isolation:?}");
            assert!(
                matches!(found, Ending::Exited(code) if code > 0),
                "{plain}: {found:?}"
            );
        }
    };
    // A quote makes it a line for a shell from the start.
    ends_alike("no-such-program-anywhere x", "no-such-program-anywhere 'x'");
    ends_alike("/etc/passwd x", "/etc/passwd 'x'");
    ends_alike("/etc x", "/etc 'x'");
    for (name, content) in contents {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        ends_alike(&format!("./{name} x"), &format!("./{name} 'x'"));
    }
}

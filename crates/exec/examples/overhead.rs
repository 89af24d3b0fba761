//! What a supervised command costs, beside a bare one: start to end of `true`,
//! median over many, for every fence; and how fast output is read.
//!
//! ```text
//! cargo build --release -p loopwright-exec --bins
//! cargo run --release -p loopwright-exec --example overhead -- target/release/loopwright-supervise-test
//! ```
#![allow(clippy::print_stdout)]

use std::process::Stdio;
use std::time::{Duration, Instant};

use loopwright_exec::{Command, Finished, Isolation, Supervisor, start};

const REPEATS: usize = 300;

fn main() {
    let path = std::env::args().nth(1).expect("the supervisor's binary");
    let supervisor = Supervisor::program(path);
    let isolations = [
        Isolation::Auto,
        Isolation::WithoutNamespace,
        Isolation::SubreaperOnly,
    ];
    let mut bare = Vec::new();
    let mut supervised = vec![Vec::new(); isolations.len()];
    // Interleaved, so that whatever the machine does meanwhile hits all alike.
    for _ in 0..REPEATS {
        bare.push(timed(|| {
            let mut command = std::process::Command::new("/bin/true");
            command.stdout(Stdio::null()).status().expect("true runs");
        }));
        for (isolation, times) in isolations.iter().zip(&mut supervised) {
            times.push(timed(|| {
                run(&supervisor, "/bin/true", *isolation);
            }));
        }
    }
    println!("true, bare: {:?}", median(&mut bare));
    for (isolation, times) in isolations.iter().zip(&mut supervised) {
        let finished = run(&supervisor, "/bin/true", *isolation);
        let fence = finished.containment;
        println!("true, {isolation:?}: {:?} ({fence:?})", median(times));
        println!(
            "    {:?}, {:?} bytes",
            finished.wall, finished.max_rss_bytes
        );
    }
    let begun = Instant::now();
    let line = "head -c 300000000 /dev/zero";
    let finished = run_line(&supervisor, line, Isolation::Auto);
    println!(
        "300 MB read in {:?}: {} bytes",
        begun.elapsed(),
        finished.output.total_bytes
    );
}

fn run(supervisor: &Supervisor, program: &str, isolation: Isolation) -> Finished {
    let mut command = Command::argv([program], "/");
    command.isolation = isolation;
    let running = start(command, None, supervisor).expect("started");
    let finished = running.wait();
    assert!(finished.ending.is_success(), "{:?}", finished.ending);
    finished
}

fn run_line(supervisor: &Supervisor, line: &str, isolation: Isolation) -> Finished {
    let mut command = Command::shell(line, "/");
    command.isolation = isolation;
    start(command, None, supervisor).expect("started").wait()
}

fn timed(work: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    work();
    begun.elapsed()
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

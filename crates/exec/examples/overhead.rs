//! What a supervised command costs, beside a bare one: start to end of `true`
//! for every fence, the median of wall time and the mean of CPU time over many
//! (the latter also means something on a busy machine); and how fast output is
//! read.
//!
//! ```text
//! cargo build --release -p loopwright-exec --bins
//! cargo run --release -p loopwright-exec --example overhead -- target/release/loopwright-supervise-test
//! ```
#![allow(clippy::print_stdout)]

use std::process::Stdio;
use std::time::{Duration, Instant};

use loopwright_exec::{Command, Finished, Isolation, Supervisor, start};

const ROUNDS: usize = 10;
const REPEATS: usize = 50;

fn main() {
    let path = std::env::args().nth(1).expect("the supervisor's binary");
    let supervisor = Supervisor::program(path);
    let ways = [
        None,
        Some(Isolation::Auto),
        Some(Isolation::WithoutNamespace),
        Some(Isolation::SubreaperOnly),
    ];
    let mut wall = vec![Vec::new(); ways.len()];
    let mut cpu_ms = vec![0; ways.len()];
    // Interleaved, so that whatever the machine does meanwhile hits all alike.
    for _ in 0..ROUNDS {
        for (way, isolation) in ways.iter().enumerate() {
            let before = cpu_used_ms();
            for _ in 0..REPEATS {
                let begun = Instant::now();
                match isolation {
                    None => bare(),
                    Some(isolation) => drop(run(&supervisor, "/bin/true", *isolation)),
                }
                wall[way].push(begun.elapsed());
            }
            cpu_ms[way] += cpu_used_ms() - before;
        }
    }
    for (way, isolation) in ways.iter().enumerate() {
        let name = isolation.map_or("bare".into(), |isolation| format!("{isolation:?}"));
        let cpu_us = cpu_ms[way] * 1000 / (ROUNDS * REPEATS) as u64;
        let wall = median(&mut wall[way]);
        println!("true, {name}: {wall:?} wall, {cpu_us} µs of CPU");
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

fn bare() {
    let mut command = std::process::Command::new("/bin/true");
    command.stdout(Stdio::null()).status().expect("true runs");
}

/// CPU time of this process and all it has waited for.
fn cpu_used_ms() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("a /proc");
    let fields = stat.rsplit(')').next().expect("fields");
    let fields: Vec<&str> = fields.split_whitespace().collect();
    // utime, stime, cutime, cstime, in hundredths of a second.
    let ticks = fields[11..15]
        .iter()
        .map(|field| field.parse::<u64>().expect("a number"));
    ticks.sum::<u64>() * 10
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

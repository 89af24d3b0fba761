//! SIGKILL at random moments, of the engine alone and of its whole group, once or twice in a row.

use std::process::Stdio;
use std::time::{Duration, Instant};

use loopwright_simulator::Random;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::bench::Bench;

/// How many disturbed lives are lived.
const LIVES: u64 = 20;

/// Draws other moments; it stands in every failure's words.
const SEED_VARIABLE: &str = "LOOPWRIGHT_CRASH_SEED";

#[test]
fn a_run_killed_at_random_moments_comes_out_as_the_undisturbed_one() {
    let seed = std::env::var(SEED_VARIABLE).map_or(1, |text| text.parse().unwrap());
    let calm = Bench::new();
    let begun = Instant::now();
    assert!(calm.run(&[]).0.success());
    let whole_us = begun.elapsed().as_micros() as u64;
    let expected = calm.decisions();
    let lives = std::sync::atomic::AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let life = lives.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    if life >= LIVES {
                        return;
                    }
                    live(seed, life, whole_us, &expected);
                }
            });
        }
    });
}

fn live(seed: u64, life: u64, whole_us: u64, expected: &str) {
    let bench = Bench::new();
    let mut random = Random::of(seed, &format!("life {life}"));
    let mut plan = format!("{SEED_VARIABLE}={seed}, life {life}");
    let kills = 1 + random.below(2);
    for _ in 0..kills {
        let whole_group = random.below(2) == 0;
        let waits = random.below(2) == 0;
        let moment = Duration::from_micros(random.below(whole_us));
        let whom = if whole_group { " with its group" } else { "" };
        plan = format!("{plan}, killed after {moment:?}{whom}");
        kill(&bench, moment, whole_group);
        if waits {
            bench.await_no_process(&plan);
        }
    }
    bench.go_on(&plan);
    assert_eq!(bench.decisions(), expected, "{plan}: other decisions");
    bench.check(&plan, kills as usize);
}

/// Goes on as a user would, and kills that at a moment; it may have come to its end before.
fn kill(bench: &Bench, moment: Duration, whole_group: bool) {
    let mut command = bench.next_command();
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    // Not a wait for something: any moment will do, and this is how one is chosen.
    std::thread::sleep(moment);
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    // Not reaped yet, so its id is nobody else's; it may be over, and nobody there to be killed.
    let _ = if whole_group {
        kill_process_group(pid, Signal::KILL)
    } else {
        kill_process(pid, Signal::KILL)
    };
    child.wait().unwrap();
}

//! Measures what a trial costs in git work: reset and snapshot, on a small and a large project.
//!
//! `cargo run --release -p loopwright-git --features test-support --example cycle`

use std::fs;
use std::time::Duration;

use loopwright_git::test_support::{TestRepository, commit_tree};
use loopwright_git::{ObjectStore, ProposerRepository, UserRepository};

fn main() {
    for files in [2, 200, 20_000] {
        let repository = TestRepository::unborn(loopwright_git::ObjectFormat::Sha1);
        for file in 0..files {
            repository.write(
                &format!("d{}/e{}/f{file}", file % 20, file % 400),
                &format!("file {file}\n").repeat(20),
            );
        }
        repository.write("x", "10\n");
        repository.commit_all("start");
        let started = Clock::now();
        let (user, mut store) = repository.store();
        say(files, "import the base", started.elapsed());
        measure(files, &repository, &user, &mut store);
    }
}

fn measure(
    files: usize,
    repository: &TestRepository,
    user: &UserRepository,
    store: &mut ObjectStore,
) {
    let identity = user.identity().expect("an identity");
    let place = repository.outside("proposer");
    let mut proposer = ProposerRepository::create(&place, user, store, &identity).expect("a place");
    let started = Clock::now();
    proposer.reset_to(store, &user.head).expect("a checkout");
    say(files, "first checkout", started.elapsed());
    let rounds = 50;
    let (mut reset, mut snapshot, mut chain) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        let started = Clock::now();
        proposer.reset_to(store, &user.head).expect("a reset");
        reset.push(started.elapsed());
        fs::write(proposer.work_tree().join("x"), format!("{round}\n")).expect("a file");
        let started = Clock::now();
        let left = proposer.snapshot(store).expect("a snapshot");
        snapshot.push(started.elapsed());
        let started = Clock::now();
        let candidate = commit_tree(store, left.tree, &[user.head], &round.to_string());
        store
            .append_to_chain("run", None, candidate, 0)
            .expect("a link");
        chain.push(started.elapsed());
    }
    say(files, "reset", median(reset));
    say(files, "snapshot with one change", median(snapshot));
    say(files, "candidate, chain and syncs", median(chain));
    proposer.reset_to(store, &user.head).expect("a reset");
    let (mut reset, mut snapshot) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let started = Clock::now();
        proposer.snapshot(store).expect("a snapshot");
        snapshot.push(started.elapsed());
        let started = Clock::now();
        proposer.reset_to(store, &user.head).expect("a reset");
        reset.push(started.elapsed());
    }
    say(files, "snapshot without a change", median(snapshot));
    say(files, "reset without a change", median(reset));
    repository.shell(
        proposer.work_tree(),
        "git status >/dev/null; echo >> x; git commit -qam x",
    );
    let started = Clock::now();
    proposer.reset_to(store, &user.head).expect("a reset");
    say(files, "reset after an agent used git", started.elapsed());
    let started = Clock::now();
    proposer.full_snapshot(store).expect("a snapshot");
    say(files, "full snapshot", started.elapsed());
}

/// Processor time of this thread: says the same on a busy machine. What git processes and
/// syncs take is not in it, hence both times are shown.
struct Clock {
    wall: std::time::Instant,
    processor_ns: u64,
}

impl Clock {
    fn now() -> Self {
        Self {
            wall: std::time::Instant::now(),
            processor_ns: processor_ns(),
        }
    }

    fn elapsed(&self) -> (Duration, Duration) {
        let processor_ns = processor_ns().saturating_sub(self.processor_ns);
        (Duration::from_nanos(processor_ns), self.wall.elapsed())
    }
}

fn processor_ns() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text.split(' ').next().unwrap_or_default();
    first.parse().unwrap_or(0)
}

fn median(mut times: Vec<(Duration, Duration)>) -> (Duration, Duration) {
    times.sort();
    times[times.len() / 2]
}

#[allow(clippy::print_stdout)] // its purpose
fn say(files: usize, what: &str, (processor, wall): (Duration, Duration)) {
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    println!(
        "{files:>6} files  {what:<30} {:>9.3} ms processor {:>9.3} ms wall",
        ms(processor),
        ms(wall)
    );
}

//! A talkative command costs no memory here. Alone in its process, whose
//! high-water mark it reads.

mod support;

use support::{run, shell};

fn high_water_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    line.split_whitespace()
        .nth(1)
        .unwrap()
        .parse::<u64>()
        .unwrap()
        * 1024
}

#[test]
fn three_hundred_megabytes_cost_less_than_eight() {
    run(shell("true"));
    let before = high_water_bytes();
    let finished = run(shell("head -c 300000000 /dev/zero | tr '\\0' .; echo m=7"));
    let grown = high_water_bytes() - before;
    assert_eq!(finished.output.total_bytes, 300_000_004);
    assert!(finished.output.tail.ends_with(b".m=7\n"));
    assert!(grown < 8_000_000, "{grown} bytes");
    assert!(finished.max_rss_bytes.unwrap() < 30_000_000);
}

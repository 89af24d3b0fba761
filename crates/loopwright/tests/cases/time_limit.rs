//! C5: a time limit means the whole family, and so does success.

use std::fs;
use std::time::{Duration, Instant};

use crate::rig::Rig;

const FAMILY: &str = "if [ \"$(cat x)\" != 10 ]; then
  setsid sleep 600 &
  (sh -c 'sleep 600 & exit' &)
  sh -c 'trap \"\" TERM; sleep 600; sleep 600' &
  [ \"$(cat x)\" = 5 ] || sleep 600
fi
echo \"m=$(cat x)\"
";

/// How many processes carry the rig's folder in their environment.
fn family_of(rig: &Rig) -> usize {
    let mark = format!("OUTSIDE={}", rig.path("").display());
    let mark = mark.trim_end_matches('/').as_bytes();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let environments = processes.map(|entry| fs::read(entry.path().join("environ")));
    environments
        .flatten()
        .filter(|text| text.split(|byte| *byte == 0).any(|entry| entry == mark))
        .count()
}

#[test]
fn nothing_outlives_the_limit_or_success() {
    let rig = Rig::with(FAMILY, &[]);
    let mut users = rig.command("sleep", &["600"]).spawn().unwrap();
    let limits = ["--run-limit", "2s"];
    let began = Instant::now();
    let late = rig.trial("echo 7 > x", &limits);
    assert!(began.elapsed() < Duration::from_secs(15), "{late}");
    assert_eq!(late["outcome"], "timed_out", "{late}");
    assert_eq!(family_of(&rig), 1, "only the user's own is left");
    let kept = rig.trial("echo 5 > x", &limits);
    assert_eq!(kept["outcome"], "kept", "{kept}");
    assert_eq!(family_of(&rig), 1, "only the user's own is left");
    assert!(users.try_wait().unwrap().is_none(), "the user's was ended");
    users.kill().unwrap();
    users.wait().unwrap();
}

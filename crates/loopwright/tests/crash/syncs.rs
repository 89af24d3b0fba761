//! The order of syncs, read from a system call trace: whatever a kept event names is on the disk,
//! directory entries included, before the sync that makes the event durable.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::bench::Bench;
use crate::common::skip;

const EMPTY_TREE: &str = "4b/825dc642cb6eb9a060e54bf8d69288fbee4904";

/// One traced call that matters here.
#[derive(Debug, PartialEq)]
enum Call {
    Sync(String),
    /// A file got this name; its content was written under the other one, or is from now on.
    Named {
        from: String,
        to: String,
    },
    /// A file of this name is written over.
    Opened(String),
    KeptWritten,
}

fn parse(line: &str) -> Option<Call> {
    let call = line.split_once(' ')?.1.trim_start();
    if call.starts_with("fsync(") || call.starts_with("fdatasync(") {
        let path = call.split_once('<')?.1.split_once('>')?.0;
        return Some(Call::Sync(path.to_owned()));
    }
    if call.starts_with("openat(") {
        let flags = call.split_once("\", ")?.1;
        let path = call.rsplit_once("= ")?.1.split_once('<')?.1;
        let path = path.split_once('>')?.0.to_owned();
        return match (flags.contains("O_CREAT"), flags.contains("O_WRONLY")) {
            (true, _) => Some(Call::Named {
                from: path.clone(),
                to: path,
            }),
            (false, true) => Some(Call::Opened(path)),
            _ => None,
        };
    }
    if ["rename", "link"].iter().any(|name| call.starts_with(name)) && call.contains(" = 0") {
        let folder = |part: &str| {
            part.split_once('<')
                .and_then(|(_, rest)| rest.split_once('>'))
                .map(|(path, _)| path.to_owned())
        };
        let mut names = call.split('"').skip(1).step_by(2).map(str::to_owned);
        let (from, to) = (names.next()?, names.next()?);
        let base = call.split('"').next().and_then(folder);
        let full = |name: String| match &base {
            Some(base) if !name.starts_with('/') => format!("{base}/{name}"),
            _ => name,
        };
        return Some(Call::Named {
            from: full(from),
            to: full(to),
        });
    }
    let kept = r#"\"origin\":\"proposed\",\"outcome\":\"kept\""#;
    (call.starts_with("pwrite64(") && call.contains("journal.db-wal") && call.contains(kept))
        .then_some(Call::KeptWritten)
}

#[test]
fn what_a_kept_event_names_is_synced_before_it() {
    if !Command::new("strace")
        .arg("-V")
        .output()
        .is_ok_and(|done| done.status.success())
    {
        skip("strace is not installed, so the order of syncs is not checked");
        return;
    }
    let bench = Bench::new();
    let trace = bench.path("trace");
    bench.run_traced(&trace);
    let text = std::fs::read(&trace).unwrap();
    let calls: Vec<Call> = String::from_utf8_lossy(&text)
        .lines()
        .filter_map(parse)
        .collect();
    let written = calls.iter().position(|call| *call == Call::KeptWritten);
    let written = written.expect("the kept event is written to the log of the journal");
    let is_log = |call: &Call| matches!(call, Call::Sync(path) if path.ends_with("journal.db-wal"));
    let durable = written
        + calls[written..]
            .iter()
            .position(is_log)
            .expect("the log is synced");

    let before = &calls[..durable];
    let is_synced = |calls: &[Call], path: &str| {
        calls
            .iter()
            .any(|call| *call == Call::Sync(path.to_owned()))
    };
    // What counts under its last name.
    let temporary: BTreeSet<&str> = before
        .iter()
        .filter_map(|call| match call {
            Call::Named { from, to } if from != to => Some(from.as_str()),
            _ => None,
        })
        .collect();
    let mut named = BTreeSet::new();
    for (at, call) in before.iter().enumerate() {
        let (Call::Named { to, .. } | Call::Opened(to)) = call else {
            continue;
        };
        let counts = to.contains("/objects/") || to.contains("/refs/");
        // The empty tree is written once for git's own use; no event names it.
        if !counts
            || to.contains("/work/")
            || to.contains("/logs/")
            || to.ends_with(EMPTY_TREE)
            || temporary.contains(to.as_str())
        {
            continue;
        }
        let content = is_synced(&before[at..], to)
            || matches!(call, Call::Named { from, .. } if is_synced(&before[..at], from));
        assert!(content, "{to} is named before its content is synced");
        let folder = Path::new(to).parent().unwrap().to_str().unwrap();
        let entry = matches!(call, Call::Opened(_)) || is_synced(&before[at..], folder);
        assert!(entry, "{to} is named before its directory is synced");
        named.insert(to.clone());
    }
    // Candidate: blob, tree, commit, link. Keep: commit. And the refs of chain and branch.
    let in_store = named
        .iter()
        .filter(|path| path.contains("objects.git/objects/"))
        .count();
    assert!(in_store >= 5, "{named:?}");
    for reference in [
        "objects.git/refs/loopwright/",
        "refs/heads/loopwright/default/main",
    ] {
        assert!(
            named.iter().any(|path| path.contains(reference)),
            "{reference}: {named:?}"
        );
    }
}

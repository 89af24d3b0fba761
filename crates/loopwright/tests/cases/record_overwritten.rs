//! C13 e: a measurement that finds the record and damages it. Without a sandbox that can't be kept
//! from happening; it is never taken for a success, and what to do is said.

use crate::rig::Rig;

#[test]
fn a_damaged_record_ends_the_run_and_is_named() {
    let tricks = [
        "for file in \"$JOURNAL\"*; do echo junk > \"$file\"; done",
        "rm -f \"$JOURNAL\"*",
        "rm -f \"$JOURNAL-wal\"",
        "echo junk > \"$JOURNAL-wal\"",
    ];
    for trick in tricks {
        let run = format!("[ \"$(cat x)\" = 10 ] || {{ {trick}; }}\necho \"m=$(cat x)\"\n");
        let rig = Rig::with(&run, &[]);
        let done = rig
            .command(
                env!("CARGO_BIN_EXE_loopwright"),
                &[
                    "run",
                    "--run",
                    "sh run.sh",
                    "--metric",
                    "m",
                    "--goal",
                    "min",
                    "--propose",
                    "echo 5 > x",
                    "--trials",
                    "2",
                ],
            )
            .env(
                "JOURNAL",
                rig.repository().join(".git/loopwright/journal.db"),
            )
            .output()
            .unwrap();
        let words = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(7), "{trick}: {words}");
        assert!(words.contains("loopwright verify"), "{trick}: {words}");
        assert!(!words.contains("loopwright resume"), "{trick}: {words}");
    }
}

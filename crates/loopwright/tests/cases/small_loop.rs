//! A small loop from its start to `adopt`, for repositories of every kind.

use crate::rig::Rig;

pub const BRANCH: &str = "loopwright/default/main";

/// The loop's settings, and what its proposals do beside changing `x`.
#[derive(Clone, Copy, Default)]
pub struct Small<'a> {
    /// More flags of `run`.
    pub more: &'a [&'a str],
    /// A script that both proposals begin with.
    pub also: &'a str,
}

impl Small<'_> {
    /// A keep and a revert, looked at from all sides.
    pub fn run(self, rig: &Rig) {
        let before = rig.users();
        let kept = rig.trial(&format!("{}\necho 5 > x", self.also), self.more);
        assert_eq!(kept["outcome"], "kept", "{kept}");
        assert_eq!(kept["against"], 10.0, "{kept}");
        let reverted = rig.trial(&format!("{}\necho 7 > x", self.also), self.more);
        assert_eq!(reverted["outcome"], "reverted", "{reverted}");
        assert_eq!(reverted["value"], 7.0, "{reverted}");
        before.expect_same(&rig.users(), "while the loop ran");
        assert!(rig.loopwright(&["diff", "1"]).contains("\n+5"));
        assert!(rig.loopwright(&["diff", "2"]).contains("\n+7"));
        assert!(rig.loopwright(&["show", "2"]).contains("trial 2: reverted"));
        rig.loopwright(&["verify"]);
        rig.loopwright(&["replay"]);
        let commit = rig.git(&["rev-parse", BRANCH]);
        assert!(rig.loopwright(&["show", "1"]).contains(&commit));
        before.expect_same(&rig.users(), "after it was looked at");
        rig.git(&["fsck", "--full"]);
    }

    /// Brings what was kept to the checked-out branch, where it is as it was measured.
    pub fn adopt(rig: &Rig) {
        let status = rig.git(&["status", "--porcelain"]);
        rig.loopwright(&["adopt"]);
        assert_eq!(rig.git(&["diff", "--stat", BRANCH, "HEAD"]), "");
        let x = std::fs::read_to_string(rig.working_directory().join("x")).unwrap();
        assert_eq!(x.trim_end(), "5");
        assert_eq!(rig.git(&["status", "--porcelain"]), status);
        rig.loopwright(&["verify"]);
        rig.git(&["fsck", "--full"]);
    }

    pub fn run_and_adopt(self, rig: &Rig) {
        self.run(rig);
        Self::adopt(rig);
    }
}

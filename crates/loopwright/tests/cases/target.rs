//! C12: reaching the target ends the work.

use crate::rig::Rig;

#[test]
fn one_confirmation_and_no_further_proposal() {
    let run = "echo run >> \"$OUTSIDE/runs\"\necho \"m=$(cat x)\"\n";
    let rig = Rig::with(run, &[]);
    rig.write("x", "0.5\n");
    rig.git(&["commit", "-qam", "half"]);
    let propose = "echo propose >> \"$OUTSIDE/runs\"; echo 1 > x";
    let more = ["--goal", "max", "--target", "1", "--trials", "9"];
    let kept = rig.trial(propose, &more);
    assert_eq!(kept["outcome"], "kept", "{kept}");
    assert_eq!(rig.log().len(), 2);
    let runs = std::fs::read_to_string(rig.path("runs")).unwrap();
    assert_eq!(runs, "run\npropose\nrun\nrun\n");
}

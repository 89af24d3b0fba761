//! `completions`.

use crate::support::Rig;

#[test]
fn scripts_are_made_for_every_shell() {
    let rig = Rig::bare();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = rig.run(&["completions", shell]).success();
        assert!(
            script.contains("loopwright") && script.contains("wall-clock"),
            "{shell}"
        );
    }
}

#[test]
fn the_script_for_sh_parses() {
    let rig = Rig::bare();
    let script = rig.run(&["completions", "bash"]).success();
    rig.write("completions.bash", &script);
    if let Ok(status) = std::process::Command::new("bash")
        .args(["-n", "completions.bash"])
        .current_dir(rig.project())
        .status()
    {
        assert!(status.success());
    }
}

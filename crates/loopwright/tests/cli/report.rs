//! `report`.

use crate::support::Rig;

#[test]
fn the_picture_is_drawn_in_the_terminal() {
    let rig = Rig::after_six_trials();
    let picture = rig.run(&["report"]).success();
    assert!(
        picture.contains("6 attempts: 2 kept, 1 rejected, 2 failed, 1 not measured"),
        "{picture}"
    );
    assert!(picture.contains("two less"), "{picture}");
    assert!(!picture.contains('\x1b'));
    assert!(rig.run(&["report", "--ascii"]).success().is_ascii());
}

#[test]
fn the_picture_is_written_as_svg() {
    let rig = Rig::after_six_trials();
    let _ = rig.run(&["report", "--svg", "picture.svg"]).success();
    let written = rig.read("picture.svg");
    assert!(written.starts_with("<svg") && written.contains("two less"));
    assert_eq!(rig.run(&["report", "--svg", "-"]).success(), written);
}

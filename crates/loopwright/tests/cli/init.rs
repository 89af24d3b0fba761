//! `init`.

use crate::support::Rig;

fn bench_project() -> Rig {
    let rig = Rig::bare();
    rig.write("bench.sh", "echo seconds=1.5\n");
    rig.write("data/in.txt", "x\n");
    rig.write(".gitignore", "data\n");
    rig.commit_all();
    rig
}

#[test]
fn a_file_is_proposed_and_the_next_commands_are_said() {
    let rig = bench_project();
    insta::assert_snapshot!(rig.run(&["init"]).normal());
    insta::assert_snapshot!(rig.read("loopwright.toml"));
}

#[test]
fn what_is_proposed_can_be_used() {
    let rig = bench_project();
    let _ = rig.run(&["init"]).success();
    let file = rig.read("loopwright.toml").replace("# goal = ", "goal = ");
    rig.write("loopwright.toml", &file);
    let _ = rig.run(&["baseline", "--goal", "min"]).success();
}

#[test]
fn a_goal_that_is_not_certain_is_left_to_the_user() {
    let rig = Rig::bare();
    rig.write("bench.sh", "echo score=1.5\n");
    rig.commit_all();
    let said = rig.run(&["init"]);
    assert!(said.stderr.contains("for you to say"), "{said:?}");
    assert!(said.stderr.contains("fill in goal, propose"), "{said:?}");
    let file = rig.read("loopwright.toml");
    assert!(
        file.contains("# goal = \"min\"\n# goal = \"max\"\n"),
        "{file}"
    );
    let refused = rig.run(&["run", "--propose", "true"]).failure(2);
    assert!(refused.contains("goal: is not set"), "{refused}");
    assert!(refused.contains("--goal min"), "{refused}");
}

#[test]
fn an_existing_file_is_left_alone() {
    let rig = Rig::new();
    let before = rig.read("loopwright.toml");
    insta::assert_snapshot!(rig.run(&["init"]).normal());
    assert_eq!(rig.read("loopwright.toml"), before);
    let _ = rig.run(&["init", "--force"]).success();
    assert_ne!(rig.read("loopwright.toml"), before);
}

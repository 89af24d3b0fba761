//! scratch
use loopwright_core::event::Sealed;
use loopwright_core::spec::*;
use loopwright_engine::experiment::*;
use loopwright_engine::*;
use std::collections::BTreeMap;
struct W;
impl Watcher for W {
    fn committed(&mut self, events: &[Sealed]) {
        if std::env::var_os("QUIET").is_some() {
            return;
        }
        for e in events {
            let b = e.event.body.to_string();
            println!(
                "{} {} {:?} {}",
                e.event.seq,
                e.event.kind,
                e.event.effect.as_ref().map(|e| e.to_string()),
                &b[..b.len().min(300)]
            );
        }
    }
    fn notice(&mut self, words: &str) {
        println!("notice: {words}");
    }
}
fn main() -> std::process::ExitCode {
    let args: Vec<std::ffi::OsString> = std::env::args_os().collect();
    if args
        .get(1)
        .is_some_and(|a| a == loopwright_exec::SUPERVISE_ARGUMENT)
    {
        return loopwright_exec::supervisor_main();
    }
    let mut flags = Flags::new();
    let mut fresh = true;
    let mut it = std::env::args().skip(1);
    while let Some(f) = it.next() {
        if f == "resume" {
            fresh = false;
            continue;
        }
        let v = it.next().unwrap();
        flags.push(f, v);
    }
    let project = Project::find(&std::env::current_dir().unwrap(), None).unwrap();
    let env = BTreeMap::new();
    let store;
    let pin;
    let pinned_spec = if fresh {
        None
    } else {
        store = loopwright_record::Store::open(&project.store, loopwright_record::OpenMode::Read)
            .unwrap();
        pin = pinned(
            &store,
            &loopwright_core::ids::LoopName::new("default").unwrap(),
        )
        .unwrap()
        .unwrap();
        Some(serde_json::from_value::<ExperimentSpec>(pin.1.specification).unwrap())
    };
    let r = resolve(&Layers {
        name: None,
        pinned: pinned_spec.as_ref(),
        file: None,
        environment: &env,
        flags: &flags,
    })
    .unwrap();
    let spec = r
        .experiment(Purpose::Propose)
        .map_err(|e| e.to_string())
        .unwrap();
    let req = Request {
        spec,
        fresh,
        purpose: loopwright_engine::experiment::Purpose::Run,
        workdir: String::new(),
        force: false,
        supervisor: loopwright_exec::Supervisor::this_program(),
    };
    let t = std::time::Instant::now();
    match Session::drive(
        &project,
        req,
        loopwright_engine::hands::Happenings::default(),
        &mut W,
    ) {
        Ok(r) => println!("{} {:?} in {:?}", r.run, r.ending, t.elapsed()),
        Err(e) => {
            println!("error: {e}");
            if let EngineError::Refused { hints, .. } = e {
                for h in hints {
                    println!("hint: {h}");
                }
            }
            return 2.into();
        }
    }
    0.into()
}

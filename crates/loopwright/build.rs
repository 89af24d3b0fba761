//! Bundles the demo: every file of `demo/route` and `demo/changes`, as a table of paths and
//! contents in the binary.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let demo = root.join("demo");
    let mut files = Vec::new();
    for part in ["changes", "route"] {
        collect(&demo.join(part), &mut files)?;
    }
    files.sort();
    let mut table = String::from("&[\n");
    for file in &files {
        let path = file.strip_prefix(&demo).expect("it was found there");
        // As a string literal of Rust, whatever is in the path.
        let literal = |path: &Path| format!("{:?}", path.to_str().expect("paths here are text"));
        let (path, file) = (literal(path), literal(file));
        let _ = writeln!(table, "    ({path}, include_bytes!({file})),");
    }
    table.push_str("]\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    fs::write(out.join("demo_files.rs"), table)?;
    println!("cargo::rerun-if-changed=demo");
    Ok(())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

//! Lines that need no shell.
//!
//! `/bin/sh -c 'python bench.py'` starts a shell only to replace it: on a small
//! command that is a good part of its time. As `make` does, a line of plain words
//! whose first names a program is started directly. The command can't tell the
//! difference: it would have been the shell's own process, with the same words,
//! environment and working directory.
//!
//! Whatever is not surely plain (an unknown program, a script without `#!`, a
//! builtin) is left to the shell, so that its words and exit codes stay the same;
//! so is what the system then refuses to start (a script whose `#!` names nothing).

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD};

use crate::command::Environment;

/// What POSIX reserves or a shell may do itself (XCU 2.4, 2.14, 1.7, and what
/// common shells have beyond). Some are programs too; the shell's own is meant.
const SHELLS_OWN: &str = " . : [ alias bg bind break builtin caller case cd chdir command continue \
    coproc declare dirs disown do done echo elif else enable esac eval exec exit export false fc fg \
    fi for function getopts hash help history if in jobs kill let local logout mapfile popd printf \
    pushd pwd read readarray readonly return select set shift shopt source suspend test then time \
    times trap true type typeset ulimit umask unalias unset until wait while ";

/// The words of a line that a program can be started with as they stand; `None` if
/// it takes a shell, or might.
pub(crate) fn words(line: &str, cwd: &Path, env: &Environment) -> Option<Vec<OsString>> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b" _./-+,:@%=".contains(&byte);
    if !line.bytes().all(is_plain) {
        return None;
    }
    let words: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
    let name = *words.first()?;
    let is_the_shells = name.contains('=') || SHELLS_OWN.contains(&format!(" {name} "));
    if is_the_shells || !is_program(&find(name, cwd, env)?) {
        return None;
    }
    Some(words.into_iter().map(OsString::from).collect())
}

/// The file that a shell would execute under this name.
fn find(name: &str, cwd: &Path, env: &Environment) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(cwd.join(name));
    }
    let path = variable(env, OsStr::new("PATH"))?;
    // What a relative folder in it means depends on who looks.
    let folders = path.as_bytes().split(|byte| *byte == b':');
    for folder in folders {
        let folder = Path::new(OsStr::from_bytes(folder));
        if !folder.is_absolute() {
            return None;
        }
        let file = folder.join(name);
        if is_executable(&file) {
            return Some(file);
        }
    }
    None
}

fn variable(env: &Environment, name: &OsStr) -> Option<OsString> {
    match env.set.get(name) {
        Some(value) => Some(value.clone()),
        None if env.inherit && !env.remove.contains(name) => std::env::var_os(name),
        None => None,
    }
}

fn is_executable(file: &Path) -> bool {
    // By whom it may be executed is for the system to say, not for its mode alone.
    let is_allowed = rustix::fs::accessat(CWD, file, Access::EXEC_OK, AtFlags::EACCESS).is_ok();
    is_allowed && file.is_file()
}

/// Whether the kernel can execute it: a shell would run any other file as a script.
fn is_program(file: &Path) -> bool {
    let mut beginning = [0; 4];
    let read = is_executable(file).then(|| File::open(file)?.read_exact(&mut beginning));
    matches!(read, Some(Ok(()))) && (beginning == *b"\x7fELF" || beginning.starts_with(b"#!"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn env(path: &str) -> Environment {
        let mut env = Environment {
            inherit: false,
            ..Environment::default()
        };
        env.set.insert("PATH".into(), path.into());
        env
    }

    #[test]
    fn plain_words_of_a_program_need_no_shell() {
        let found = words("  ls  -l /tmp/a=b ", Path::new("/"), &env("/usr/bin:/bin"));
        assert_eq!(
            found,
            Some(["ls", "-l", "/tmp/a=b"].map(OsString::from).to_vec())
        );
    }

    #[test]
    fn everything_else_is_left_to_the_shell() {
        let scratch = tempfile::tempdir().unwrap();
        let bare = scratch.path().join("bare");
        std::fs::write(&bare, "echo no first line\n").unwrap();
        std::fs::set_permissions(&bare, std::fs::Permissions::from_mode(0o755)).unwrap();
        let path = env("/usr/bin:/bin");
        for line in [
            "",
            " ",
            "ls | wc",
            "ls $HOME",
            "ls *",
            "A=1 ls",
            "ls > x",
            "ls 'a'",
            "ls; ls",
            "ls\nls",
            "ls\tx",
            "ls ~",
            "ls #x",
            "cd /",
            "exit 3",
            "echo a",
            "true",
            "test -e x",
            "time ls",
            "no-such-program-anywhere x",
            "./bare",
            "/etc/passwd",
            "sh\u{a0}x",
        ] {
            assert_eq!(words(line, scratch.path(), &path), None, "{line:?}");
        }
        // The first of a name that may be executed counts, as for a shell.
        let (closed, open) = (scratch.path().join("closed"), scratch.path().join("open"));
        for (folder, mode) in [(&closed, 0o644), (&open, 0o755)] {
            std::fs::create_dir(folder).unwrap();
            std::fs::write(folder.join("tool"), "#!/bin/sh\n").unwrap();
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(folder.join("tool"), mode).unwrap();
        }
        let both = env(&format!("{}:{}", closed.display(), open.display()));
        assert_eq!(find("tool", Path::new("/"), &both), Some(open.join("tool")));
        for folders in ["", "bin:/usr/bin", ":/usr/bin", "/nowhere"] {
            assert_eq!(
                words("ls", Path::new("/"), &env(folders)),
                None,
                "{folders:?}"
            );
        }
    }
}

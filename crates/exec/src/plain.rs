//! Lines that need no shell.
//!
//! `/bin/sh -c 'python bench.py'` starts a shell only to replace it: on a small
//! command that is a good part of its time. As `make` does, a line of plain words
//! whose first names a program is started directly. The command can't tell the
//! difference: it would have been the shell's own process, with the same words,
//! environment and working directory.
//!
//! Whatever is not surely plain is left to the shell, so that its words and exit codes
//! stay the same; so is what the system then refuses to start (an unknown program, a
//! script without `#!` or whose `#!` names nothing).

use std::ffi::OsString;

/// What POSIX reserves or a shell may do itself (XCU 2.4, 2.14, 1.7, and what
/// common shells have beyond). Some are programs too; the shell's own is meant.
const SHELLS_OWN: &str = " . : [ alias bg bind break builtin caller case cd chdir command continue \
    coproc declare dirs disown do done echo elif else enable esac eval exec exit export false fc fg \
    fi for function getopts hash help history if in jobs kill let local logout mapfile popd printf \
    pushd pwd read readarray readonly return select set shift shopt source suspend test then time \
    times trap true type typeset ulimit umask unalias unset until wait while ";

/// The words of a line that a program can be started with as they stand; `None` if
/// it takes a shell, or might.
pub(crate) fn words(line: &str) -> Option<Vec<OsString>> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b" _./-+,:@%=".contains(&byte);
    if !line.bytes().all(is_plain) {
        return None;
    }
    let words: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
    let name = *words.first()?;
    let is_the_shells = name.contains('=') || SHELLS_OWN.contains(&format!(" {name} "));
    (!is_the_shells).then(|| words.into_iter().map(OsString::from).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_words_need_no_shell() {
        let expected = ["ls", "-l", "/tmp/a=b"].map(OsString::from).to_vec();
        assert_eq!(words("  ls  -l /tmp/a=b "), Some(expected));
        assert!(words("./bare").is_some());
    }

    #[test]
    fn everything_else_is_left_to_the_shell() {
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
            "sh\u{a0}x",
        ] {
            assert_eq!(words(line), None, "{line:?}");
        }
    }
}

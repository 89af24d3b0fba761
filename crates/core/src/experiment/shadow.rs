//! Import shadowing: new files that Python would import in place of what judges the change.
//!
//! A script's own directory comes first on `sys.path`, so a file `json.py` beside a measuring
//! script is imported instead of the standard library's, and a directory `score/` instead of
//! `score.py`. Such files are refused where anything is protected and the baseline has no such
//! file.

use std::collections::BTreeSet;

/// Modules of CPython's standard library (3.8 to 3.14), plus those that Python imports by itself.
const SPECIAL_MODULES: &str = "
__future__ _thread abc aifc antigravity argparse array ast asynchat asyncio asyncore atexit audioop
base64 bdb binascii binhex bisect builtins bz2 cProfile calendar cgi cgitb chunk cmath cmd code
codecs codeop collections colorsys compileall compression concurrent configparser contextlib
contextvars copy copyreg crypt csv ctypes curses dataclasses datetime dbm decimal difflib dis
distutils doctest email encodings ensurepip enum errno faulthandler fcntl filecmp fileinput fnmatch
formatter fractions ftplib functools gc genericpath getopt getpass gettext glob graphlib grp gzip
hashlib heapq hmac html http idlelib imaplib imghdr imp importlib inspect io ipaddress itertools
json keyword lib2to3 linecache locale logging lzma mailbox mailcap marshal math mimetypes mmap
modulefinder msilib msvcrt multiprocessing netrc nis nntplib nt ntpath nturl2path numbers opcode
operator optparse os ossaudiodev parser pathlib pdb pickle pickletools pipes pkgutil platform
plistlib poplib posix posixpath pprint profile pstats pty pwd py_compile pyclbr pydoc pydoc_data
pyexpat queue quopri random re readline reprlib resource rlcompleter runpy sched secrets select
selectors shelve shlex shutil signal site sitecustomize smtpd smtplib sndhdr socket socketserver
spwd sqlite3 sre_compile sre_constants sre_parse ssl stat statistics string stringprep struct
subprocess sunau symbol symtable sys sysconfig syslog tabnanny tarfile telnetlib tempfile termios
textwrap this threading time timeit tkinter token tokenize tomllib trace traceback tracemalloc tty
turtle types typing unicodedata unittest urllib usercustomize uu uuid venv warnings wave weakref
webbrowser winreg winsound wsgiref xdrlib xml xmlrpc zipapp zipfile zipimport zlib zoneinfo
";

/// Endings of files that Python imports.
const IMPORTABLE: [&str; 4] = ["py", "pyc", "pyo", "so"];

/// Which of the `added` paths would be imported in place of the standard library or of a
/// `protected` module. Paths are `/`-separated.
pub fn shadowing<'a>(
    added: impl IntoIterator<Item = &'a str>,
    protected: &[impl AsRef<str>],
) -> Vec<String> {
    let special: BTreeSet<&str> = SPECIAL_MODULES.split_whitespace().collect();
    let guarded: BTreeSet<&str> = protected
        .iter()
        .filter_map(|path| path.as_ref().strip_suffix(".py"))
        .collect();
    added
        .into_iter()
        .filter(|path| shadows(path, &special, &guarded))
        .map(str::to_owned)
        .collect()
}

fn shadows(path: &str, special: &BTreeSet<&str>, guarded: &BTreeSet<&str>) -> bool {
    let Some((module, ending)) = module_of(path) else {
        return false;
    };
    let name = module.rsplit('/').next().unwrap_or(module);
    if special.contains(name) {
        return true;
    }
    // A directory that is imported in place of a module of the same name: every directory on the
    // way to an importable file is a (namespace) package.
    let packages = module.match_indices('/').map(|(at, _)| &module[..at]);
    let mut packages = packages.filter(|package| !package.is_empty());
    let takes_a_name = |package: &str| {
        let last = package.rsplit('/').next().unwrap_or(package);
        guarded.contains(package) || special.contains(last)
    };
    packages.any(takes_a_name) || (ending != "py" && guarded.contains(module))
}

/// The module path (`eval/score`) and the ending of an importable file.
fn module_of(path: &str) -> Option<(&str, &str)> {
    let (stem, ending) = path.rsplit_once('.')?;
    if !IMPORTABLE.contains(&ending) {
        return None;
    }
    // `json.cpython-312-x86_64-linux-gnu.so` is the module `json`.
    let start = stem.rfind('/').map_or(0, |at| at + 1);
    let stem = match stem[start..].find('.') {
        Some(dot) => &stem[..start + dot],
        None => stem,
    };
    Some((stem, ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_what_would_be_imported_instead() {
        let table = [
            ("json.py", true),
            ("eval/json.py", true),
            ("json/__init__.py", true),
            ("json.cpython-312-x86_64-linux-gnu.so", true),
            ("__pycache__/json.cpython-312.pyc", true),
            ("sitecustomize.py", true),
            ("eval/score/__init__.py", true),
            ("eval/score.so", true),
            ("json/notes.md", false),
            ("tuning.py", false),
            ("src/fast_json.py", false),
            ("eval/scores/x.py", false),
            ("json", false),
        ];
        for (path, expected) in table {
            let found = shadowing([path], &["eval/score.py"]);
            assert_eq!(!found.is_empty(), expected, "{path}");
        }
    }
}

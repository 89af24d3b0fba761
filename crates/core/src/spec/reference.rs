//! The reference page of settings, written from the table.

use super::setting::{Class, Setting};
use super::table::SETTINGS;

/// The text of `docs/reference/configuration.md`.
pub fn configuration_markdown() -> String {
    let rows = SETTINGS.iter().map(row);
    let sections = SETTINGS.iter().map(section);
    std::iter::once(HEAD.to_owned())
        .chain(rows)
        .chain(sections)
        .collect()
}

fn row(setting: &Setting) -> String {
    format!(
        "| [`{}`](#{}) | {} | {} | {} | {} |\n",
        setting.key,
        anchor(setting),
        setting.kind.words(),
        code(setting.default),
        code(setting.flag),
        code(setting.env),
    )
}

fn section(setting: &Setting) -> String {
    format!(
        "\n### `{}`\n\n{}\n\nExample: `{}`. {} Since {}.\n",
        setting.key,
        setting.doc,
        example(setting),
        consequence(setting.class),
        setting.since
    )
}

const HEAD: &str = "# Configuration

<!-- Written from the table of settings in `crates/core/src/spec/table.rs`; edit it there. -->

A loop's settings come from these places, the later over the earlier: defaults, `loopwright.toml`
in the repository's top directory, the environment, the command line. `loopwright config show`
says where each value came from. A later place replaces a setting's whole value; lists are not
joined. Variables (`env`) and guards are replaced one by one.

The file holds one table per loop, `[loop.NAME]`. Nearly everything has a flag too, so that a loop
can be run without a file. Only settings that suit every loop of a machine or person have an
environment variable. An unknown name is an error.

**Durations** are `300` (seconds), `250ms`, `90s`, `5m`, `1h30m`, `2d`. **Sizes** are `65536`
(bytes), `64MiB`, `10 MB`. **Money** is `12.50 USD`. Where a number may be left out, `none` takes
it away again.

**Patterns** are relative globs: `*` and `?` stay inside one directory, `**` crosses directories,
`[a-z]` and `[!a-z]` are sets, `\\` takes the next character as it is. A pattern that names a
directory covers everything below it, hidden files too, and never a `.git`.

| setting | type | default | flag | environment |
|---|---|---|---|---|
";

/// How GitHub names the heading of a setting: punctuation goes, underscores stay.
fn anchor(setting: &Setting) -> String {
    setting.key.replace('.', "")
}

fn code(text: Option<&str>) -> String {
    text.map(|text| format!("`{text}`")).unwrap_or_default()
}

fn example(setting: &Setting) -> String {
    if setting.key == "guard" {
        format!("[[loop.NAME.guard]]` with `{}", setting.example)
    } else {
        format!("{} = {}", setting.key, setting.example)
    }
}

fn consequence(class: Class) -> &'static str {
    match class {
        Class::Identity => "Part of what the loop is: changing it needs a new loop.",
        Class::Harness => "Changing it starts a new segment with a fresh baseline.",
        Class::Free => "Can be changed at any time.",
    }
}

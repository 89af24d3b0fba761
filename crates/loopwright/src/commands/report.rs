//! `report`: the progress picture.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use loopwright_engine::views::progress_of;
use loopwright_report::{Progress, SvgOptions, TerminalOptions, Theme, svg, terminal};

use crate::exit_code::Exit;
use crate::failure::Failure;
use crate::output::{self, Output, talk};
use crate::place::Common;

/// The widest picture in a terminal; wider ones only stretch.
const WIDTH_MAX: usize = 120;

/// Draw the progress picture: every attempt, what was kept, the best so far
///
/// In the terminal, or as an SVG file.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Write an SVG file instead; `-` is stdout
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// The colours of the SVG file
    #[arg(long, value_name = "THEME", default_value = "auto")]
    theme: ThemeName,

    /// Draw with ASCII characters only
    #[arg(long)]
    ascii: bool,
}

/// The colours of a picture.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ThemeName {
    /// Light, and dark where the viewer prefers it.
    Auto,
    /// Always light.
    Light,
    /// Always dark.
    Dark,
}

/// Draws the picture.
pub fn run(common: &Common, output: &Output, arguments: &Arguments) -> Result<Exit, Failure> {
    let record = common.read()?;
    let (_, run) = common.choose_run(&record)?;
    let progress = progress_of(&record.store, &run)?;
    let Some(path) = &arguments.svg else {
        output::print(&in_terminal(&progress, output, arguments.ascii))?;
        return Ok(Exit::Finished);
    };
    let options = SvgOptions {
        theme: match arguments.theme {
            ThemeName::Auto => Theme::Auto,
            ThemeName::Light => Theme::Light,
            ThemeName::Dark => Theme::Dark,
        },
        ..SvgOptions::default()
    };
    let picture = svg(&progress, &options);
    if path.as_os_str() == "-" {
        output::print(&picture)?;
    } else {
        std::fs::write(path, picture).map_err(Failure::io(format!("write {}", path.display())))?;
        talk(&format!("wrote {}", path.display()));
    }
    Ok(Exit::Finished)
}

/// The picture in characters.
pub fn in_terminal(progress: &Progress, output: &Output, ascii: bool) -> String {
    let text = terminal(
        progress,
        &TerminalOptions {
            width: output.width.min(WIDTH_MAX),
            colour: output.colour,
            unicode: !ascii && speaks_unicode(),
            ..TerminalOptions::default()
        },
    );
    format!("{}\n", text.trim_end_matches('\n'))
}

/// Whether the locale takes more than ASCII; where none is set, as in a container, it mostly does.
fn speaks_unicode() -> bool {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set);
    locale.is_none_or(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

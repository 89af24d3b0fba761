//! What the terminal can show.

/// Size and abilities of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalOptions {
    /// Columns; no line is wider (fewer than 30 are taken as 30).
    pub width: usize,
    /// Lines wished for; more are used only where fewer couldn't be read.
    pub height: usize,
    /// Whether to add ANSI colours.
    pub colour: bool,
    /// Whether lines and blocks may be drawn with Unicode characters.
    pub unicode: bool,
}

impl Default for TerminalOptions {
    fn default() -> Self {
        Self {
            width: 80,
            height: 24,
            colour: false,
            unicode: true,
        }
    }
}

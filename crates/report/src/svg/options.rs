//! How large the SVG picture is and which colours it has.

/// Size and colours of the SVG picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SvgOptions {
    /// Width in pixels, at least 320 (smaller is taken as that).
    pub width: u32,
    /// Height in pixels, at least 260 (smaller is taken as that).
    pub height: u32,
    /// Which colours to use.
    pub theme: Theme,
}

impl Default for SvgOptions {
    fn default() -> Self {
        Self {
            width: 1000,
            height: 560,
            theme: Theme::Auto,
        }
    }
}

/// The colours of the SVG picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Theme {
    /// Light, and dark where the viewer prefers it.
    #[default]
    Auto,
    /// Always light.
    Light,
    /// Always dark.
    Dark,
}

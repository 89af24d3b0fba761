//! Colours and strokes of the SVG picture, as a style sheet scoped to its theme.

use super::options::Theme;

/// How many branches have their own colour, dash and shape before these repeat.
pub(super) const BRANCH_STYLES: usize = 6;

/// The class every rule hangs on, so that pictures of different themes can share a page.
pub(super) const fn root_class(theme: Theme) -> &'static str {
    match theme {
        Theme::Auto => "lw-auto",
        Theme::Light => "lw-light",
        Theme::Dark => "lw-dark",
    }
}

/// Whatever doesn't depend on light or dark.
const SHAPES: &str = "\
text{font-family:system-ui,-apple-system,\"Segoe UI\",Helvetica,Arial,sans-serif;font-size:12px}
.title{font-size:20px;font-weight:600}
.head{font-size:20px;font-weight:600;fill:currentColor}
.sub{font-size:13px}
.label{font-size:12px;font-weight:500;paint-order:stroke;stroke-width:3.5px;stroke-linejoin:round}
.small{font-size:11px}
.grid,.leader,.whisker{fill:none;stroke-width:1}
.axis{fill:none;stroke-width:1.2}
.best{fill:none;stroke:currentColor;stroke-width:2.4;stroke-linejoin:round}
.band{fill:currentColor;fill-opacity:.13}
.kept{fill:currentColor;stroke-width:1.5}
.kept-dots{fill:none;stroke:currentColor;stroke-width:6;stroke-linecap:round}
.ring{stroke:currentColor;stroke-width:2}
.link{fill:none;stroke:currentColor;stroke-width:1.4;stroke-dasharray:1.5 2.5}
.base{stroke-width:1.5}
.rejected{fill:none;stroke-width:1.4}
.rejected-dots{fill:none;stroke-width:3;stroke-linecap:round;stroke-opacity:.75}
.outside{fill:none;stroke-width:1.4}
.failed{fill:none;stroke-width:2.2;stroke-linecap:round}
.unmeasured{fill:none;stroke-width:1.6}
.target{fill:none;stroke-width:1.5;stroke-dasharray:7 5}
.segment{fill:none;stroke-width:1.2;stroke-dasharray:2 3}
.b1{stroke-dasharray:9 4}
.b2{stroke-dasharray:3 3}
.b3{stroke-dasharray:10 3 2 3}
.b4{stroke-dasharray:5 2}
.b5{stroke-dasharray:1 3}
.solid{stroke-dasharray:none}
";

/// Selector, property, light colour, dark colour.
const COLOURS: &[(&str, &str, &str, &str)] = &[
    (".page", "fill", "#ffffff", "#0d1117"),
    (".page", "stroke", "#d5dbe1", "#30363d"),
    (".title,.label", "fill", "#1f2328", "#e6edf3"),
    (".label", "stroke", "#ffffff", "#0d1117"),
    ("text", "fill", "#59636e", "#9aa4af"),
    (".grid", "stroke", "#e9edf1", "#21262d"),
    (".axis", "stroke", "#afb8c1", "#484f58"),
    (".leader", "stroke", "#afb8c1", "#57606a"),
    (".strip", "fill", "#f4f6f8", "#161b22"),
    (".kept,.base", "stroke", "#ffffff", "#0d1117"),
    (".ring", "fill", "#ffffff", "#0d1117"),
    (".base", "fill", "#1f2328", "#e6edf3"),
    (
        ".rejected,.rejected-dots,.outside,.whisker",
        "stroke",
        "#8c959f",
        "#7d8590",
    ),
    (".failed", "stroke", "#d1242f", "#ff7b72"),
    (".refused", "fill", "#8250df", "#bc8cff"),
    (".bang", "fill", "#ffffff", "#0d1117"),
    (".unmeasured", "stroke", "#8c959f", "#7d8590"),
    (".target", "stroke", "#9a6700", "#d29922"),
    (".target-text", "fill", "#9a6700", "#d29922"),
    (".segment", "stroke", "#59636e", "#9aa4af"),
    (".b0", "color", "#12805c", "#3fcf96"),
    (".b1", "color", "#0969da", "#58a6ff"),
    (".b2", "color", "#bc4c00", "#f0883e"),
    (".b3", "color", "#0e7490", "#39c5cf"),
    (".b4", "color", "#bf3989", "#f778ba"),
    (".b5", "color", "#6b6a12", "#c3c04a"),
];

/// The style sheet for a theme.
pub(super) fn sheet(theme: Theme) -> String {
    let root = root_class(theme);
    let mut sheet = String::new();
    for line in SHAPES.lines() {
        sheet.push_str(&scoped(root, line));
        sheet.push('\n');
    }
    // The general text colour comes first, so that the special ones win by their class.
    push_colours(&mut sheet, root, theme == Theme::Dark);
    if theme == Theme::Auto {
        sheet.push_str("@media (prefers-color-scheme:dark){\n");
        push_colours(&mut sheet, root, true);
        sheet.push_str("}\n");
    }
    sheet
}

fn push_colours(sheet: &mut String, root: &str, dark: bool) {
    for (selector, property, light, dark_colour) in COLOURS {
        let colour = if dark { dark_colour } else { light };
        sheet.push_str(&scoped(root, &format!("{selector}{{{property}:{colour}}}")));
        sheet.push('\n');
    }
}

/// Puts the root class before each selector of a rule.
fn scoped(root: &str, rule: &str) -> String {
    let (selectors, body) = rule.split_once('{').unwrap_or((rule, "}"));
    let selectors: Vec<String> = selectors
        .split(',')
        .map(|selector| format!(".{root} {selector}"))
        .collect();
    format!("{}{{{body}", selectors.join(","))
}

//! The characters lines are drawn with, in Unicode and in plain ASCII.

/// A running best's line: corners are named by where the line comes from and goes to.
pub(super) struct Stroke {
    pub across: char,
    pub upright: char,
    /// From the left, going down.
    pub falls: char,
    /// From above, going right.
    pub lands: char,
    /// From the left, going up.
    pub rises: char,
    /// From below, going right.
    pub tops: char,
}

pub(super) struct Glyphs {
    pub strokes: [Stroke; 3],
    pub axis: char,
    pub axis_tick: char,
    pub axis_corner: char,
    pub value_axis: char,
    pub value_tick: char,
    pub target: char,
    pub segment: char,
    pub band: Option<char>,
    pub ellipsis: &'static str,
    pub arrow: &'static str,
}

const fn stroke(glyphs: [char; 6]) -> Stroke {
    let [across, upright, falls, lands, rises, tops] = glyphs;
    Stroke {
        across,
        upright,
        falls,
        lands,
        rises,
        tops,
    }
}

const UNICODE: Glyphs = Glyphs {
    strokes: [
        stroke(['━', '┃', '┓', '┗', '┛', '┏']),
        stroke(['═', '║', '╗', '╚', '╝', '╔']),
        stroke(['┅', '┇', '┓', '┗', '┛', '┏']),
    ],
    axis: '─',
    axis_tick: '┬',
    axis_corner: '└',
    value_axis: '│',
    value_tick: '┤',
    target: '╌',
    segment: '┊',
    band: Some('░'),
    ellipsis: "…",
    arrow: "→",
};

const ASCII: Glyphs = Glyphs {
    strokes: [
        stroke(['_', '|', '_', '|', '|', '_']),
        stroke(['~', '|', '~', '|', '|', '~']),
        stroke([',', '|', ',', '|', '|', ',']),
    ],
    axis: '-',
    axis_tick: '+',
    axis_corner: '+',
    value_axis: '|',
    value_tick: '+',
    target: '.',
    segment: ':',
    band: None,
    ellipsis: "...",
    arrow: "->",
};

pub(super) const fn glyphs(unicode: bool) -> &'static Glyphs {
    if unicode { &UNICODE } else { &ASCII }
}

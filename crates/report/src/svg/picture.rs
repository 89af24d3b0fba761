//! Puts the SVG picture together.

use super::frame::{Frame, MARGIN};
use super::options::SvgOptions;
use super::style;
use super::writer::{Anchor, Writer};
use super::{axes, labels, legend, lines, marks};
use crate::analysis::Analysis;
use crate::model::Progress;
use crate::scale::Place;
use crate::text::{clean, cut_columns, escape};

/// Draws the progress of a run as an SVG document that can stand alone or inside a page.
///
/// Every attempt is in it. From 400 attempts on, marks share elements and have
/// no tooltips, and rejected ones closer than two pixels are merged (the picture
/// says so); kept ones are always drawn one by one. Values that aren't finite
/// count as unknown. The same view gives the same bytes.
pub fn svg(progress: &Progress, options: &SvgOptions) -> String {
    let analysis = Analysis::new(progress);
    let mut remark: Option<String> = None;
    // What the picture has to remark depends on its layout, and the line for it
    // changes the layout: the second round knows the line is needed.
    for _ in 0..2 {
        let frame = Frame::new(&analysis, options, remark.as_deref());
        let mut body = Writer::default();
        let left_out = draw(&mut body, &frame, &analysis);
        let found = remarks(&frame, &analysis, left_out);
        if found == remark {
            return document(&analysis, options, &frame, &body.finish());
        }
        remark = found;
    }
    let frame = Frame::new(&analysis, options, remark.as_deref());
    let mut body = Writer::default();
    draw(&mut body, &frame, &analysis);
    document(&analysis, options, &frame, &body.finish())
}

/// Draws everything; gives the number of labels without room.
fn draw(writer: &mut Writer, frame: &Frame, analysis: &Analysis<'_>) -> usize {
    axes::heading(writer, frame, analysis);
    axes::axes(writer, frame, analysis);
    let mut blocked = lines::segments(writer, frame, analysis);
    marks::rejected(writer, frame, analysis);
    lines::running_best(writer, frame, analysis);
    blocked.extend(lines::target(writer, frame, analysis));
    marks::accepted(writer, frame, analysis);
    marks::strips(writer, frame, analysis);
    labels::strip_words(writer, frame, analysis);
    let found = labels::find(frame, analysis, &blocked);
    labels::draw(writer, &found);
    if analysis.attempts.is_empty() {
        let middle = (
            f64::midpoint(frame.plot.left, frame.plot.right),
            f64::midpoint(frame.plot.top, frame.plot.bottom),
        );
        writer.text("sub", middle, Anchor::Middle, "nothing measured yet");
    }
    legend::draw(writer, frame);
    for (row, note) in frame.notes.iter().enumerate() {
        let y = frame.notes_y + row as f64 * Frame::note_row();
        writer.text("small", (MARGIN, y), Anchor::Start, note);
    }
    found.left_out
}

/// What the picture leaves out or simplifies, in one line.
fn remarks(frame: &Frame, analysis: &Analysis<'_>, left_out: usize) -> Option<String> {
    let mut parts = Vec::new();
    let mut outside = 0;
    let mut most = f64::NEG_INFINITY;
    let mut least = f64::INFINITY;
    for attempt in analysis.attempts.iter().filter(|a| !a.accepted()) {
        let Some(value) = attempt.place() else {
            continue;
        };
        if !matches!(frame.values.place(value), Place::Inside(_)) {
            outside += 1;
            most = most.max(value);
            least = least.min(value);
        }
    }
    match outside {
        0 => {}
        1 => parts.push(format!(
            "One rejected value lies beyond the edge: {}.",
            analysis.value_text(most)
        )),
        _ => parts.push(format!(
            "{outside} rejected values lie beyond the edge, between {} and {}.",
            analysis.value_text(least),
            analysis.value_text(most)
        )),
    }
    match left_out {
        0 => {}
        1 => parts.push("One kept attempt has no room for its label.".to_owned()),
        _ => parts.push(format!(
            "{left_out} kept attempts have no room for their label."
        )),
    }
    let has_interval =
        |a: &crate::analysis::Attempt<'_>| a.level().is_some() && a.interval.is_some();
    if !frame.bands && analysis.attempts.iter().any(has_interval) {
        parts.push("Intervals are left out: there are too many.".to_owned());
    }
    if frame.compact && analysis.progress.counts().rejected > 0 {
        parts.push("Rejected attempts that would overlap are merged.".to_owned());
    }
    (!parts.is_empty()).then(|| parts.join(" "))
}

fn document(analysis: &Analysis<'_>, options: &SvgOptions, frame: &Frame, body: &str) -> String {
    let (width, height) = (frame.width, frame.height.ceil());
    let title = cut_columns(&clean(&analysis.progress.title), 200, "…");
    let title = if title.is_empty() {
        format!("Progress of {}", clean(&analysis.progress.metric))
    } else {
        title
    };
    let description = cut_columns(&analysis.sentence(), 600, "…");
    // Ids that differ between pictures, for pages that hold several.
    let id = fingerprint(&format!("{title}\n{description}"));
    let root = style::root_class(options.theme);
    let mut writer = Writer::default();
    writer.raw(&format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"{root}\" width=\"{width}\" \
         height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
         aria-labelledby=\"lw-t-{id} lw-d-{id}\">"
    ));
    writer.raw(&format!(
        "<title id=\"lw-t-{id}\">{}</title>",
        escape(&title)
    ));
    writer.raw(&format!(
        "<desc id=\"lw-d-{id}\">{}</desc>",
        escape(&description)
    ));
    writer.raw(&format!("<style>\n{}</style>", style::sheet(options.theme)));
    writer.raw(&format!(
        "<rect class=\"page\" x=\".5\" y=\".5\" width=\"{}\" height=\"{}\" rx=\"8\"/>",
        width - 1.0,
        height - 1.0
    ));
    let mut text = writer.finish();
    text.push_str(body);
    text.push_str("</svg>\n");
    text
}

/// A short stable hash (FNV-1a) for ids.
fn fingerprint(text: &str) -> String {
    let hash = text.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    format!("{hash:08x}")
}

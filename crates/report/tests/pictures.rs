//! The pictures as they are, and what must hold of every picture.
//!
//! With `LOOPWRIGHT_PICTURES=<directory>` each SVG is also written there, to be looked at.

mod views;

use loopwright_report::{Mark, Point, Progress, SvgOptions, TerminalOptions, Theme, svg, terminal};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};
use views::{borders, branches_and_segments, many, ordinary, point, progress};

fn picture(name: &str, view: &Progress, options: &SvgOptions) -> String {
    let text = svg(view, options);
    if let Some(directory) = std::env::var_os("LOOPWRIGHT_PICTURES") {
        let path = std::path::Path::new(&directory).join(format!("{name}.svg"));
        std::fs::write(path, &text).unwrap();
    }
    check_svg(name, view, &text);
    text
}

/// What holds of every SVG picture.
fn check_svg(name: &str, view: &Progress, text: &str) {
    for word in ["NaN", "inf", "Infinity"] {
        let numbers = text.split(|c: char| !c.is_alphanumeric());
        assert!(!numbers.clone().any(|n| n == word), "{name}: {word}");
    }
    assert!(text.len() < 400_000, "{name}: {} bytes", text.len());
    let root = text.lines().next().unwrap();
    assert!(root.contains("role=\"img\"") && root.contains("aria-labelledby"));
    assert!(text.contains("<title id=") && text.contains("<desc id="));
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{name}");
    assert_eq!(kept_marks(text), view.counts().kept, "{name}: kept marks");
    check_well_formed(name, text);
    check_texts_inside(name, text);
}

/// Counts the marks of kept attempts, single ones and dots of a shared path.
fn kept_marks(text: &str) -> usize {
    let drawing = text.split("<g class=\"legend\">").next().unwrap();
    let lines = || drawing.lines();
    let single = lines()
        .filter(|l| l.starts_with("<path class=\"kept b"))
        .count();
    let dots = lines()
        .filter(|l| l.starts_with("<path class=\"kept-dots"))
        .map(|l| l.matches("h.01").count());
    single + dots.sum::<usize>()
}

/// Tags are nested and closed, and no bare `<` or `&` is left in texts.
fn check_well_formed(name: &str, text: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        assert!(!rest[..start].contains('>'), "{name}: stray >");
        let end = start + rest[start..].find('>').unwrap();
        let tag = &rest[start + 1..end];
        assert!(!tag.contains('<'), "{name}: stray < in {tag}");
        if let Some(closed) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(closed), "{name}");
        } else if !tag.ends_with('/') {
            open.push(tag.split(' ').next().unwrap());
        }
        rest = &rest[end + 1..];
    }
    assert!(open.is_empty(), "{name}: {open:?}");
    for after in text.split('&').skip(1) {
        let entity = after.split(';').next().unwrap();
        assert!(
            ["amp", "lt", "gt", "quot", "#39"].contains(&entity),
            "{name}: &{entity}"
        );
    }
}

fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let start = tag.find(&format!(" {name}=\""))? + name.len() + 3;
    tag[start..].split('"').next()
}

/// Width of a text in the narrower of the common fonts, in font sizes.
fn least_width(content: &str) -> f64 {
    let text = content.replace("&lt;", "<").replace("&gt;", ">");
    let text = text.replace("&quot;", "\"").replace("&#39;", "'");
    let text = text.replace("&amp;", "&");
    let narrow = |c: char| " iljtfr.,:;'|!()[]/\\-\"I*`".contains(c);
    text.chars()
        .map(|c| {
            if narrow(c) {
                0.28
            } else {
                c.width().unwrap_or(0) as f64 * 0.5
            }
        })
        .sum()
}

/// Every text begins and ends inside the picture, and labels don't lie on each other.
fn check_texts_inside(name: &str, text: &str) {
    let width: f64 = attribute(text, "width").unwrap().parse().unwrap();
    let height: f64 = attribute(text, "height").unwrap().parse().unwrap();
    let mut labels: Vec<(f64, f64, f64)> = Vec::new();
    for line in text.lines().filter(|l| l.starts_with("<text")) {
        let x: f64 = attribute(line, "x").unwrap().parse().unwrap();
        let y: f64 = attribute(line, "y").unwrap().parse().unwrap();
        let content = line.split('>').nth(1).unwrap().split('<').next().unwrap();
        let size = match attribute(line, "class") {
            Some("title" | "head b0") => 20.0,
            Some("sub") => 13.0,
            Some("small") => 11.0,
            _ => 12.0,
        };
        let long = least_width(content) * size;
        let (left, right) = match attribute(line, "text-anchor") {
            Some("end") => (x - long, x),
            Some("middle") => (x - long / 2.0, x + long / 2.0),
            _ => (x, x + long),
        };
        assert!(left >= 0.0 && right <= width, "{name}: {line}");
        assert!(y >= size * 0.8 && y <= height, "{name}: {line}");
        if attribute(line, "class") == Some("label") {
            for (other_left, other_right, other_y) in &labels {
                let apart =
                    (y - other_y).abs() >= 12.0 || right < *other_left || *other_right < left;
                assert!(apart, "{name}: {line}");
            }
            labels.push((left, right, y));
        }
    }
}

/// What holds of every terminal picture.
fn check_terminal(name: &str, view: &Progress, options: &TerminalOptions) -> String {
    let text = terminal(view, options);
    let mut plain = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character == '\x1b' {
            assert!(options.colour, "{name}");
            characters.by_ref().find(|c| *c == 'm').unwrap();
        } else {
            assert!(character == '\n' || !character.is_control(), "{name}");
            plain.push(character);
        }
    }
    for line in plain.lines() {
        assert!(
            line.width() <= options.width,
            "{name} at {}: {line}",
            options.width
        );
    }
    assert!(!plain.contains("NaN"), "{name}");
    if options.colour {
        let without = TerminalOptions {
            colour: false,
            ..*options
        };
        let trimmed = |text: &str| {
            let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
            lines.join("\n")
        };
        assert_eq!(
            trimmed(&plain),
            trimmed(&terminal(view, &without)),
            "{name}"
        );
    }
    plain
}

fn all_views() -> Vec<(&'static str, Progress)> {
    let mut views = borders();
    views.push(("ordinary", ordinary()));
    views.push(("branches_and_segments", branches_and_segments()));
    views.push(("hundred_fifty", many(150)));
    views.push(("thousand", many(1000)));
    views.push(("ten_thousand", many(10_000)));
    let kept = (0..10_000).map(|at| Point {
        low_high: Some((-(at as f64) - 1.0, -(at as f64) + 1.0)),
        confirmed: Some(-(at as f64) + 0.7),
        label: Some("&&&& \"\"\"\" <<<<".repeat(50)),
        branch: format!("branch {}", at % 9),
        segment: at / 3000,
        ..point(at, Mark::Kept, -(at as f64))
    });
    views.push(("all_kept", progress(kept.collect())));
    views
}

#[test]
fn svg_of_an_ordinary_run() {
    let text = picture("ordinary", &ordinary(), &SvgOptions::default());
    insta::assert_snapshot!(text);
    let dark = SvgOptions {
        theme: Theme::Dark,
        ..SvgOptions::default()
    };
    let text = picture("ordinary_dark", &ordinary(), &dark);
    assert!(!text.contains("prefers-color-scheme"));
    assert!(text.contains("#0d1117") && !text.contains("#ffffff"));
}

#[test]
fn svg_of_branches_and_segments() {
    let text = picture("branches", &branches_and_segments(), &SvgOptions::default());
    insta::assert_snapshot!(text);
}

#[test]
fn svg_of_every_view_at_every_size() {
    for (name, view) in all_views() {
        for (width, height) in [(1000, 560), (320, 260), (640, 300), (2400, 1400)] {
            // Pictures of long runs take a while to check: once for each size is enough.
            let themes = match view.points.len() {
                0..1000 => &[Theme::Light, Theme::Dark][..],
                _ => &[Theme::Auto][..],
            };
            for theme in themes.iter().copied() {
                let options = SvgOptions {
                    width,
                    height,
                    theme,
                };
                let suffix = if theme == Theme::Dark { "_dark" } else { "" };
                let text = picture(&format!("{name}_{width}{suffix}"), &view, &options);
                assert_eq!(text, svg(&view, &options), "{name}: the bytes differ");
            }
        }
    }
}

#[test]
fn terminal_of_an_ordinary_run() {
    let wide = TerminalOptions {
        width: 100,
        ..TerminalOptions::default()
    };
    insta::assert_snapshot!("terminal_unicode", terminal(&ordinary(), &wide));
    let ascii = TerminalOptions {
        unicode: false,
        ..TerminalOptions::default()
    };
    let text = terminal(&ordinary(), &ascii);
    assert!(text.is_ascii());
    insta::assert_snapshot!("terminal_ascii", text);
    let narrow = TerminalOptions {
        width: 40,
        colour: true,
        ..TerminalOptions::default()
    };
    let text = terminal(&ordinary(), &narrow).replace('\x1b', "<ESC>");
    insta::assert_snapshot!("terminal_narrow_colour", text);
}

#[test]
fn terminal_of_branches_and_segments() {
    insta::assert_snapshot!(terminal(
        &branches_and_segments(),
        &TerminalOptions::default()
    ));
}

#[test]
fn terminal_of_every_view_at_every_width() {
    for (name, view) in all_views() {
        for width in [40, 41, 57, 80, 120, 200] {
            for (colour, unicode) in [(false, false), (true, true), (false, true)] {
                let options = TerminalOptions {
                    width,
                    height: 24,
                    colour,
                    unicode,
                };
                let plain = check_terminal(name, &view, &options);
                let counts = view.counts();
                for mark in [Mark::Failed, Mark::Refused] {
                    if counts.of(mark) > 0 {
                        let row = plain
                            .lines()
                            .find(|l| l.trim_start().starts_with(mark.word()));
                        assert!(row.unwrap().contains(mark.symbol()), "{name}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_failed_attempt_never_has_a_value() {
    let mut view = ordinary();
    let before = svg(&view, &SvgOptions::default());
    for at in &mut view.points {
        if at.mark == Mark::Failed {
            at.value = Some(0.0);
        }
    }
    let after = svg(&view, &SvgOptions::default());
    let axes = |text: &str| {
        let start = text.find("<g class=\"axes\">").unwrap();
        text[start..start + text[start..].find("</g>").unwrap()].to_owned()
    };
    assert_eq!(axes(&before), axes(&after));
}

mod any_view {
    use super::*;
    use proptest::prelude::*;

    fn value() -> impl Strategy<Value = Option<f64>> {
        prop_oneof![
            1 => Just(None),
            4 => (-5.0..5.0).prop_map(Some),
            1 => any::<f64>().prop_map(Some),
            1 => (-300i32..300).prop_map(|e| Some(10f64.powi(e))),
        ]
    }

    fn any_point() -> impl Strategy<Value = Point> {
        let mark = prop_oneof![
            Just(Mark::Baseline),
            Just(Mark::Kept),
            Just(Mark::Rejected),
            Just(Mark::Failed),
            Just(Mark::Refused),
            Just(Mark::NotMeasured),
        ];
        let trial = prop_oneof![9 => 0u64..60, 1 => any::<u64>()];
        let interval = proptest::option::of((any::<f64>(), -9.0..9.0));
        let label = proptest::option::of(any::<String>());
        (
            trial,
            0usize..9,
            0u64..3,
            mark,
            (value(), value(), interval),
            label,
            ".{0,12}",
        )
            .prop_map(
                |(trial, branch, segment, mark, (value, confirmed, low_high), label, outcome)| {
                    Point {
                        trial,
                        branch: format!("b{branch}"),
                        segment,
                        mark,
                        value,
                        confirmed,
                        low_high,
                        label,
                        outcome,
                    }
                },
            )
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn can_be_drawn(
            points in proptest::collection::vec(any_point(), 0..60),
            title in any::<String>(),
            metric in any::<String>(),
            lower_is_better in any::<bool>(),
            target in value(),
            width in 40usize..200,
            unicode in any::<bool>(),
        ) {
            let view = Progress { title, metric, lower_is_better, unit: None, target, points, notes: Vec::new() };
            let options = SvgOptions { width: width as u32 * 8, ..SvgOptions::default() };
            check_svg("any", &view, &svg(&view, &options));
            check_terminal("any", &view, &TerminalOptions { width, height: 20, colour: true, unicode });
        }
    }
}

//! Writing a proposal down as a commented `loopwright.toml`.

use super::Proposal;

/// The proposal as the text of a `loopwright.toml` with one loop of that name. What was not found
/// stands there as a comment, ready to be filled in.
pub fn render_toml(proposal: &Proposal, name: &str) -> String {
    let mut page = Page(Vec::new());
    page.comment("What this project's loop does. `loopwright config show` explains every setting.");
    if !proposal.kinds.is_empty() {
        page.comment(&format!("Detected: {}.", proposal.kinds.join(", ")));
    }
    page.blank();
    page.line(format!("[loop.{}]", quoted_key(name)));
    page.comment("Measures the project as it stands; prints a line `name=value`, or writes its");
    page.comment("numbers to the file named by $LOOPWRIGHT_RESULT.");
    page.text("run", proposal.run.as_deref(), "sh bench.sh");
    page.comment("The number to improve, and whether less (min) or more (max) is better.");
    page.text("metric", proposal.metric.as_deref(), "seconds");
    if proposal.goal.is_none() && proposal.metric.is_some() {
        page.comment("Its name doesn't say which: choose one.");
        page.line("# goal = \"min\"");
        page.line("# goal = \"max\"");
    } else {
        page.text("goal", proposal.goal.map(super::Goal::name), "min");
    }
    page.blank();
    page.comment("Changes the project, once per trial: a script, a coding agent's command line …");
    page.text("propose", None, "sh propose.sh");
    page.blank();
    page.comment("The referee: a proposal that changes one of these files is not measured.");
    page.list("protect", &proposal.protect, "bench.sh");
    if proposal.strict_metric {
        page.comment("Two different values of the metric in one output are refused.");
        page.line("strict_metric = true");
    }
    page.comment("Inputs git does not carry: read-only in every checkout.");
    page.list("link", &proposal.link, "data");
    page.comment("What measurements may keep from one to the next; the rest is deleted.");
    page.list("cache", &proposal.cache, "build");
    page.comment("Fetches and builds what is needed; not measured.");
    page.text("setup", proposal.setup.as_deref(), "make deps");
    if proposal.setup.is_some() {
        page.list("setup_inputs", &proposal.setup_inputs, "deps.txt");
    }
    page.blank();
    page.comment("Limits: of a measurement, of a proposal, and of one `loopwright run`.");
    page.text("run_limit", None, "5m");
    page.text("propose_limit", None, "30m");
    page.text("wall_clock", None, "8h");
    page.line("# trials = 20");
    if !proposal.notes.is_empty() {
        page.blank();
        for note in &proposal.notes {
            page.comment(&format!("Note: {note}"));
        }
    }
    page.0.join("\n") + "\n"
}

/// The lines of the file.
struct Page(Vec<String>);

impl Page {
    fn line(&mut self, line: impl Into<String>) {
        self.0.push(line.into());
    }

    fn blank(&mut self) {
        self.line("");
    }

    fn comment(&mut self, text: &str) {
        for line in text.lines() {
            // A file name may hold characters no TOML comment may.
            let line: String = line.chars().filter(|c| !c.is_control()).collect();
            self.line(format!("# {line}"));
        }
    }

    fn text(&mut self, key: &str, value: Option<&str>, example: &str) {
        self.line(match value {
            Some(value) => format!("{key} = {}", quoted(value)),
            None => format!("# {key} = {}", quoted(example)),
        });
    }

    fn list(&mut self, key: &str, items: &[String], example: &str) {
        let quoted_items: Vec<String> = items.iter().map(|item| quoted(item)).collect();
        self.line(if items.is_empty() {
            format!("# {key} = [{}]", quoted(example))
        } else {
            format!("{key} = [{}]", quoted_items.join(", "))
        });
    }
}

/// A basic TOML string on one line.
fn quoted(text: &str) -> String {
    let escaped: String = text
        .chars()
        .map(|character| match character {
            '"' => "\\\"".to_owned(),
            '\\' => "\\\\".to_owned(),
            '\n' => "\\n".to_owned(),
            '\t' => "\\t".to_owned(),
            control if control.is_control() => format!("\\u{:04X}", u32::from(control)),
            other => other.to_string(),
        })
        .collect();
    format!("\"{escaped}\"")
}

/// A key, quoted where TOML wants it (`a.b` would be two keys).
fn quoted_key(name: &str) -> String {
    let bare = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
    if !name.is_empty() && name.bytes().all(bare) {
        name.to_owned()
    } else {
        quoted(name)
    }
}

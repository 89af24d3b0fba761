//! What a result file counts for beside the output.

use super::*;

#[test]
fn a_file_that_was_not_asked_for_by_name_contradicts_an_output_that_differs() {
    use Precedence::{Agreement, File, Strict};
    let asked = names(&["m"]);
    let table = [
        (
            "m=7",
            "m=1",
            [(File, "7"), (Agreement, "ambiguous"), (Strict, "ambiguous")],
        ),
        (
            "m=7",
            "m=7.0",
            [(File, "7"), (Agreement, "7"), (Strict, "7")],
        ),
        (
            "m=7",
            "no number",
            [(File, "7"), (Agreement, "7"), (Strict, "7")],
        ),
        (
            "m=7",
            "m=oops",
            [(File, "7"), (Agreement, "7"), (Strict, "ambiguous")],
        ),
        (
            "m=7",
            "m=1\nm=7",
            [(File, "7"), (Agreement, "7"), (Strict, "ambiguous")],
        ),
        (
            "m=oops",
            "m=1",
            [
                (File, "malformed"),
                (Agreement, "malformed"),
                (Strict, "malformed"),
            ],
        ),
        (
            "",
            "m=1",
            [
                (File, "not_in_result_file"),
                (Agreement, "1"),
                (Strict, "1"),
            ],
        ),
        (
            "7",
            "m=1",
            [
                (File, "nameless"),
                (Agreement, "nameless"),
                (Strict, "nameless"),
            ],
        ),
        (
            "size=7",
            "m=1",
            [
                (File, "not_in_result_file"),
                (Agreement, "1"),
                (Strict, "1"),
            ],
        ),
    ];
    for (file, stdout, expected) in table {
        for (precedence, expected) in expected {
            let strict = precedence == Strict;
            let mut scanner = Scanner::new(&asked, strict);
            scanner.feed(stdout.as_bytes());
            let file = from_result_file(file.as_bytes(), &asked, strict);
            let combined = combine(Some(file), scanner.finish(), precedence);
            let found = word(combined.get("m").unwrap());
            assert_eq!(found, expected, "{stdout:?} {precedence:?}");
        }
    }
    let refused = combine(
        Some(from_result_file(b"m=7", &asked, false)),
        from_result_file(b"m=1", &asked, false),
        Agreement,
    );
    let words = refused.get("m").unwrap().refusal().unwrap().to_string();
    assert!(words.contains("m=1 in the output"), "{words}");
    assert!(words.contains("m=7 in the result file"), "{words}");
    let large = unreadable_file(&asked, "too large");
    assert_eq!(word(large.get("m").unwrap()), "malformed");
}

#[test]
fn the_result_file_comes_first_where_it_was_asked_for() {
    let asked = names(&["m"]);
    let output = |text: &str| {
        let mut scanner = Scanner::new(&asked, false);
        scanner.feed(text.as_bytes());
        scanner.finish()
    };
    let table: [(Option<&str>, &str, &str); 12] = [
        (Some("{\"m\": 7}"), "m=1", "7"),
        (Some("{\n  \"m\": 7\n}\n"), "m=1", "7"),
        (Some("m=7\n"), "m=1", "7"),
        (Some("\u{feff}{\"m\": 7}"), "m=1", "7"),
        (Some("{\"m\": \"7\"}"), "m=1", "malformed"),
        (Some("m=nan"), "m=1", "not_finite"),
        (Some("{\"size\": 7}"), "m=1", "not_in_result_file"),
        (Some(""), "m=1", "not_in_result_file"),
        (Some("7\n"), "m=1", "nameless"),
        (Some("not a result"), "nothing", "not_in_result_file"),
        (None, "m=1", "not_in_result_file"),
        (None, "", "not_in_result_file"),
    ];
    for (file, stdout, expected) in table {
        let from_file = file.map(|file| from_result_file(file.as_bytes(), &asked, false));
        let combined = combine(from_file, output(stdout), Precedence::File);
        assert_eq!(
            word(combined.get("m").unwrap()),
            expected,
            "{file:?} {stdout:?}"
        );
    }
    let hinted = combine(
        Some(from_result_file(b"{\"M\": 7}", &asked, false)),
        output("nothing"),
        Precedence::Agreement,
    );
    let Some(Reading::Refused(Refusal::Missing { near, .. })) = hinted.get("m") else {
        panic!()
    };
    assert_eq!(near, &["M"]);
    assert_eq!(
        word(
            from_result_file(b"m=1\nm=2", &asked, true)
                .get("m")
                .unwrap()
        ),
        "ambiguous"
    );
    let large = serde_json::json!({ "log": "x".repeat(2 << 20), "m": 7 }).to_string();
    assert_eq!(
        word(
            from_result_file(large.as_bytes(), &asked, false)
                .get("m")
                .unwrap()
        ),
        "7"
    );
}

//! Tables and properties of reading metrics: the whole way from bytes to readings.

mod properties;
mod result_file;

use super::*;

fn names(list: &[&str]) -> Vec<MetricName> {
    list.iter()
        .map(|name| MetricName::new(*name).unwrap())
        .collect()
}

fn scan_chunks(output: &[u8], name: &str, strict: bool, chunk_bytes: usize) -> Reading {
    let mut scanner = Scanner::new(&names(&[name]), strict);
    for chunk in output.chunks(chunk_bytes.max(1)) {
        scanner.feed(chunk);
    }
    scanner.finish().get(name).unwrap().clone()
}

/// Scans whole and byte by byte, and wants the same from both.
fn scan(output: &str, name: &str, strict: bool) -> Reading {
    let whole = scan_chunks(output.as_bytes(), name, strict, usize::MAX);
    assert_eq!(
        whole,
        scan_chunks(output.as_bytes(), name, strict, 1),
        "chunks matter in {output:?}"
    );
    whole
}

/// A short word for a reading: the number, or the refusal's code.
fn word(reading: &Reading) -> String {
    match reading {
        Reading::Value(value) => value.to_string(),
        Reading::Refused(refusal) => refusal.code().to_owned(),
    }
}

fn check(name: &str, strict: bool, table: &[(&str, &str)]) {
    for (output, expected) in table {
        assert_eq!(word(&scan(output, name, strict)), *expected, "{output:?}");
    }
}

#[test]
fn numbers_that_are_not_numbers() {
    check(
        "m",
        false,
        &[
            ("m=nan", "not_finite"),
            ("m=-inf", "not_finite"),
            ("m=1e999", "not_finite"),
            ("m=Infinity\n", "not_finite"),
            ("m=1,234.5", "malformed"),
            ("m=1_000", "malformed"),
            ("m=1.2.3", "malformed"),
            ("m=3/4", "malformed"),
            ("m=0x10", "malformed"),
            ("{\"m\": true}", "malformed"),
            ("{\"m\": \"0.5\"}", "malformed"),
            ("{\"m\": null}", "malformed"),
            ("{\"m\": [1]}", "malformed"),
            ("{\"m\": {\"m\": 1}}", "malformed"),
            ("{\"m\": NaN}", "not_finite"),
            ("{\"m\": -Infinity}", "not_finite"),
            ("{\"m\": 1e999}", "not_finite"),
            ("{\"m\": 1,234.5}", "malformed"),
            ("{\"m\": 1_000}", "malformed"),
            ("m = 12ms", "malformed"),
            ("m=95%", "malformed"),
            ("m=", "malformed"),
            ("m:", "malformed"),
            ("m=1e-999", "0"),
            ("", "missing"),
            ("hello\n", "missing"),
        ],
    );
    assert_eq!(
        word(&scan(&format!("m={}", "7".repeat(400)), "m", false)),
        "not_finite"
    );
    assert_eq!(
        word(&scan(
            &format!("{{\"m\": {}}}", "7".repeat(5000)),
            "m",
            false
        )),
        "not_finite"
    );
    assert_eq!(word(&scan(&"{".repeat(100_000), "m", false)), "missing");
    assert_eq!(
        word(&scan(
            &format!("m=7\n{}", "{\"m\":[".repeat(100_000)),
            "m",
            false
        )),
        "7"
    );
}

#[test]
fn which_number_counts() {
    check(
        "m",
        false,
        &[
            ("m=7\nnext we hope for m: 1\n", "7"),
            ("best-m=1\nm=7\n", "7"),
            ("m=7\nbest-m=1\n", "7"),
            ("train.m=1\nm=7\n", "7"),
            ("m=7\ntrain.m=1\n", "7"),
            ("m=9\n{\"m\": 7}\n", "ambiguous"),
            ("{\"m\": 7}\nm=9\n", "ambiguous"),
            ("m=7\n{\"m\": 7.0}\n", "7"),
            ("m=\u{1b}[32m7", "7"),
            ("\u{1b}[1mm\u{1b}[0m=\u{1b}[32m7\u{1b}[0m\r\n", "7"),
            (
                "{\n  \"a\": {\n    \"m\": 1\n  },\n  \"m\": 7,\n  \"b\": [\n    1\n  ]\n}\n",
                "7",
            ),
            ("{\r\n\t\"m\": 7\r\n}\r\n", "7"),
            ("log\n    {\n      \"m\": 7\n    }\ndone", "7"),
            ("....m=7", "7"),
            ("..... m=7\n", "7"),
            ("m=9\nm=8\nm=7\n", "7"),
            ("{\"m\": 9}\n{\"m\": 7}\n", "7"),
            ("m=9\rm=8\rm=7\r", "7"),
            ("{\"m\": 9, \"m\": 7}", "7"),
            ("m=9\n{\"m\": 7}\nm=7", "7"),
        ],
    );
    let ambiguous = scan("m=9\nx\n{\"m\": 7}\n", "m", false);
    let quoted = Refusal::Ambiguous {
        first: "m=9".into(),
        second: "{\"m\": 7}".into(),
    };
    assert_eq!(ambiguous, Reading::Refused(quoted));
}

#[test]
fn an_older_value_never_stands_in_for_an_unusable_one() {
    check(
        "m",
        false,
        &[
            ("m=5\nm=oops", "malformed"),
            ("m=5\nm=nan", "not_finite"),
            ("m=5\n{\"m\": \"7\"}", "malformed"),
            ("{\"m\": 5}\n{\"m\": 1,234}", "malformed"),
            ("m=oops\nm=5", "5"),
            ("m: see below\n{\"m\": 5}", "5"),
            ("m=nan\n{\"m\": 5}", "ambiguous"),
            ("m=nan\nm=5", "5"),
        ],
    );
    let too_long = format!("m=5\n{{\"m\": 7, \"x\": \"{}\"}}\n", "x".repeat(400_000));
    assert_eq!(
        word(&scan_chunks(too_long.as_bytes(), "m", false, 4096)),
        "malformed"
    );
    let Reading::Refused(refusal) = scan("m=5\nm = 12 ms\n", "m", false) else {
        panic!()
    };
    assert_eq!(
        refusal,
        Refusal::Malformed {
            line: "m = 12 ms".into()
        }
    );
}

/// The rows of the older tool's table, each read as it is or refused with a word.
#[test]
fn forms_known_from_elsewhere() {
    check(
        "loss",
        false,
        &[
            ("loss=1.5", "1.5"),
            ("loss : 1.5", "1.5"),
            ("  loss =   1.5  ", "1.5"),
            ("loss:1.5", "1.5"),
            ("LOSS=1.5", "missing"),
            ("loss=\n1.5", "malformed"),
            ("loss=.5", "0.5"),
            ("loss=5.", "5"),
            ("loss=+1.5", "1.5"),
            ("loss=1e-3", "0.001"),
            ("loss=007", "7"),
            ("loss=info", "malformed"),
            ("loss=nano", "malformed"),
            ("loss=None", "malformed"),
            ("loss=0,5", "malformed"),
            ("loss=1:30", "malformed"),
            ("loss=1e", "malformed"),
            ("loss=1 2 3", "malformed"),
            ("loss=\"0.5\"", "malformed"),
            ("loss=$5", "malformed"),
            ("loss=(1.5)", "malformed"),
            ("loss=[1.5]", "malformed"),
            ("loss=--1", "malformed"),
            ("loss=+-1", "malformed"),
            ("loss==1", "malformed"),
            ("loss:=1", "malformed"),
            ("loss -> 1", "missing"),
            ("loss is 1", "missing"),
            ("| loss | 1 |", "missing"),
            ("loss 1", "missing"),
            ("val-loss=1", "missing"),
            ("val.loss=1", "missing"),
            ("train/loss=1", "missing"),
            ("my loss=1", "missing"),
            ("-loss=2", "missing"),
            ("val_loss=1", "missing"),
            ("loss_val=1", "missing"),
            ("loss2=1", "missing"),
            ("loss.x=1", "missing"),
            ("loss (val): 1", "missing"),
            ("**loss:** 1", "missing"),
            ("loss\u{ff1d}1", "missing"),
            ("loss=\u{2212}1", "malformed"),
            ("loss=\u{ff11}", "malformed"),
            ("{\"step\": 4, \"loss\": 1.5}", "1.5"),
            ("    {\"loss\": 1.5}", "1.5"),
            ("{\"m\": {\"loss\": 1}}", "missing"),
            ("{\"Loss\": 1}", "missing"),
            ("[{\"loss\": 1}]", "missing"),
            ("{'loss': 1}", "missing"),
            ("result {\"loss\": 1}", "missing"),
            ("{\"loss\": 1} done", "missing"),
            ("{\"note\": \"loss=7\", \"loss\": 1}", "1"),
            ("loss=3\rloss=2", "2"),
            ("{\"lo\\u0073s\": 4}", "4"),
        ],
    );
    for name in ["acc%", "loss(train)", "val loss", "a.b", "a=b", "m: x"] {
        assert_eq!(
            word(&scan(&format!("{name}=0.5"), name, false)),
            "0.5",
            "{name}"
        );
        let json = serde_json::json!({ name: 0.5 }).to_string();
        assert_eq!(word(&scan(&json, name, false)), "0.5", "{name}");
    }
}

#[test]
fn strict_refuses_what_differs_and_nothing_else() {
    check(
        "m",
        true,
        &[
            ("m=7", "7"),
            ("m=7\nm=7.0\n{\"m\": 7}", "7"),
            ("m=9\nm=7", "ambiguous"),
            ("m=7\nm=9\nm=7", "ambiguous"),
            ("m=9\n{\"m\": 7}", "ambiguous"),
            ("{\"m\": 9, \"m\": 7}", "ambiguous"),
            ("m=7\nm=nan", "ambiguous"),
            ("m=nan\nm=nan", "not_finite"),
            ("m=7\nm=oops", "malformed"),
            ("m=oops\nm=7", "ambiguous"),
            ("m=7\nnext we hope for m: 1", "7"),
            ("", "missing"),
        ],
    );
    let expected = Refusal::Ambiguous {
        first: "m=7".into(),
        second: "m: 3".into(),
    };
    assert_eq!(
        scan("m=7\nm=7\nm: 3\nm=1\n", "m", true),
        Reading::Refused(expected)
    );
}

#[test]
fn objects_over_several_lines() {
    check(
        "m",
        false,
        &[
            // What is not JSON ends the object, and is read by itself.
            ("{\nm=7\n}", "7"),
            ("{\n  \"m\": 1,\nwarning\n}\nm=7", "7"),
            ("{\n  \"m\": 1,\nwarning\n}\n", "missing"),
            ("{\n  \"x\": 1,\n{\"m\": 7}", "7"),
            // An object that never ends says nothing.
            ("m=7\n{\n  \"m\": 1\n", "7"),
            // What is nested says nothing, on whatever lines it stands.
            (
                "{\n\"runs\": [\n{\"m\": 1},\n{\"m\": 2}\n],\n\"m\": 7\n}",
                "7",
            ),
            ("{\n\"runs\": [\n{\n\"m\": 1\n}\n]\n}", "missing"),
            ("{\n\n  \"m\":\n    7\n\n}", "7"),
            ("{\n  \"m\": \"\n7\"\n}", "missing"),
        ],
    );
    let Reading::Refused(refusal) = scan("{\n  \"m\": true,\n  \"a\": 1\n}", "m", false) else {
        panic!()
    };
    assert_eq!(
        refusal,
        Refusal::Malformed {
            line: "\"m\": true,".into()
        }
    );
}

#[test]
fn missing_names_what_was_close() {
    let table: [(&str, &str, &[&str]); 6] = [
        (
            "val_loss=1\nLoss: 2\nepoch=3\n",
            "loss",
            &["Loss", "val_loss"],
        ),
        ("{\"Loss\": 1, \"lr\": 2}", "loss", &["Loss"]),
        ("best-m=1\n", "m", &["best-m"]),
        ("  \"loss\": 1,\n", "loss", &["\"loss\""]),
        ("Epoch 3 loss: 0.5\n", "loss", &["Epoch 3 loss"]),
        ("this sentence is about the loss: 1\n", "los", &[]),
    ];
    for (output, name, expected) in table {
        let Reading::Refused(Refusal::Missing { near, .. }) = scan(output, name, false) else {
            panic!("{output}")
        };
        assert_eq!(near, expected, "{output}");
    }
    let Reading::Refused(Refusal::Missing { within, .. }) =
        scan("step=3 loss=0.5 lr=1\n", "loss", false)
    else {
        panic!()
    };
    assert_eq!(within.as_deref(), Some("step=3 loss=0.5 lr=1"));
    for output in [
        "val_loss=1",
        "flossloss=1",
        "loss is 1",
        "train/loss=2",
        "the loss",
    ] {
        let Reading::Refused(Refusal::Missing { within, .. }) = scan(output, "loss", false) else {
            panic!()
        };
        assert_eq!(within, None, "{output}");
    }
}

#[test]
fn hints_are_bounded() {
    let mut scanner = Scanner::new(&names(&["loss"]), false);
    for number in 0..20_000 {
        scanner.feed(format!("loss.{number}=1\nepoch {number} loss=2\n").as_bytes());
    }
    let Some(Reading::Refused(Refusal::Missing { near, within })) =
        scanner.finish().get("loss").cloned()
    else {
        panic!()
    };
    assert_eq!(near.len(), 5);
    assert_eq!(within.as_deref(), Some("epoch 19999 loss=2"));
}

#[test]
fn several_metrics_at_once() {
    let mut scanner = Scanner::new(&names(&["m", "size", "acc", "m", "m=x"]), false);
    scanner.feed(b"m=9\nsize: 104\n{\"acc\": 0.95}\nm=x=4\n");
    let readings = scanner.finish();
    let words: Vec<String> = readings
        .iter()
        .map(|(name, reading)| format!("{name}:{}", word(reading)))
        .collect();
    assert_eq!(words, ["acc:0.95", "m:9", "m=x:4", "size:104"]);
    let json = serde_json::to_string(&readings).unwrap();
    assert_eq!(
        json,
        r#"{"acc":{"value":"0.95"},"m":{"value":"9"},"m=x":{"value":"4"},"size":{"value":"104"}}"#
    );
    assert_eq!(serde_json::from_str::<Readings>(&json).unwrap(), readings);
    assert_eq!(readings.values().len(), 4);
}

#[test]
fn much_output_needs_little_memory() {
    let dots = vec![b'.'; 1 << 20];
    let mut scanner = Scanner::new(&names(&["m"]), false);
    for _ in 0..64 {
        scanner.feed(&dots);
        assert!(scanner.held_bytes() < 1 << 20);
    }
    scanner.feed(b"m=7\n");
    assert_eq!(word(scanner.finish().get("m").unwrap()), "7");

    let mut scanner = Scanner::new(&names(&["m"]), false);
    scanner.feed(b"{\"m\": [");
    for _ in 0..16 {
        scanner.feed(&vec![b'['; 1 << 20]);
        assert!(scanner.held_bytes() < 1 << 20);
    }
    scanner.feed(b"\nm=7");
    assert_eq!(word(scanner.finish().get("m").unwrap()), "7");
}

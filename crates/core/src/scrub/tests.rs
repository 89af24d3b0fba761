//! Tables and properties of scrubbing.
//!
//! Tokens are put together from pieces here, so that no scanner takes this file for a leak.

use std::borrow::Cow;

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// So many characters that look random: letters of both cases and digits.
fn random(length: usize) -> String {
    "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zZ"
        .chars()
        .cycle()
        .take(length)
        .collect()
}

fn upper(length: usize) -> String {
    random(length).to_uppercase()
}

fn hex(length: usize) -> String {
    "0123456789abcdef9f8e7d6c5b4a"
        .chars()
        .cycle()
        .take(length)
        .collect()
}

fn key_body() -> String {
    format!("{}\n{}\n{}==\n", random(64), random(64), random(20))
}

fn armoured(label: &str) -> String {
    format!(
        "-----BEGIN {label}-----\n{}-----END {label}-----",
        key_body()
    )
}

/// Every shape with its kind.
fn tokens() -> Vec<(String, &'static str)> {
    let aws_secret = format!("{}/+{}", random(20), random(18));
    vec![
        (format!("ghp_{}", random(36)), "github-token"),
        (format!("gho_{}", random(36)), "github-token"),
        (format!("ghs_{}", random(36)), "github-token"),
        (
            format!("github_pat_{}_{}", random(22), random(59)),
            "github-token",
        ),
        (format!("glpat-{}", random(20)), "gitlab-token"),
        (format!("sk-{}", random(48)), "api-key"),
        (
            format!("sk-proj-{}-{}_{}", random(40), random(40), random(40)),
            "api-key",
        ),
        (
            format!("sk-ant-api03-{}-{}", random(60), random(30)),
            "api-key",
        ),
        (format!("sk-or-v1-{}", hex(64)), "api-key"),
        (format!("gsk_{}", random(52)), "api-key"),
        (format!("AKIA{}", upper(16)), "aws-access-key"),
        (format!("ASIA{}", upper(16)), "aws-access-key"),
        (format!("AKIA{}:{aws_secret}", upper(16)), "aws-access-key"),
        (
            format!("xoxb-123456789012-1234567890123-{}", random(24)),
            "slack-token",
        ),
        (
            format!("xapp-1-A0123456789-1234567890123-{}", hex(64)),
            "slack-token",
        ),
        (format!("AIza{}", random(35)), "google-key"),
        (format!("ya29.{}", random(60)), "google-key"),
        (format!("npm_{}", random(36)), "npm-token"),
        (format!("pypi-AgEIcHlwaS5vcmc{}", random(100)), "pypi-token"),
        (format!("hf_{}", random(34)), "hugging-face-token"),
        (format!("sk_live_{}", random(24)), "stripe-key"),
        (format!("rk_test_{}", random(24)), "stripe-key"),
        (format!("SG.{}.{}", random(22), random(43)), "sendgrid-key"),
        (format!("dop_v1_{}", hex(64)), "digitalocean-token"),
        (
            format!("eyJ{}.eyJ{}.{}", random(20), random(40), random(43)),
            "jwt",
        ),
        (armoured("PRIVATE KEY"), "private-key"),
        (armoured("RSA PRIVATE KEY"), "private-key"),
        (armoured("OPENSSH PRIVATE KEY"), "private-key"),
        (armoured("PGP PRIVATE KEY BLOCK"), "private-key"),
    ]
}

fn scrub(text: &str) -> (String, usize) {
    let (clean, count) = Secrets::default().scrub_text(text);
    (clean.into_owned(), count)
}

#[test]
fn tokens_go_wherever_they_stand() {
    for (token, kind) in tokens() {
        for (before, after) in [
            ("", ""),
            ("key=", "\n"),
            ("\"", "\","),
            ("see ", " for it"),
            ("(", ")."),
            ("https://x:", "@host/"),
            ("\\n", "\\n"),
            ("%20", "&x=1"),
            ("\u{1b}[32m", "\u{1b}[0m"),
            ("\\u001b[1;32m", ""),
            ("é", "é"),
            ("x/", "|y"),
            ("[", "]"),
        ] {
            let (clean, count) = scrub(&format!("{before}{token}{after}"));
            let expected = format!("{before}[redacted:{kind}]{after}");
            assert_eq!((clean, count), (expected, 1), "{before}{token}{after}");
        }
    }
}

#[test]
fn a_joint_before_a_token_hides_nothing_but_a_web_token() {
    for (token, kind) in tokens() {
        for joint in ["A_", "a-"] {
            let (clean, count) = scrub(&format!("{joint}{token}"));
            // In front of an encoded part these are characters of it.
            let expected = if kind == "jwt" {
                token.clone()
            } else {
                format!("[redacted:{kind}]")
            };
            assert_eq!(
                (clean, count),
                (format!("{joint}{expected}"), usize::from(kind != "jwt"))
            );
        }
    }
}

#[test]
fn bearers_and_named_keys_lose_only_the_value() {
    let secret = format!("{}/+{}", random(20), random(18));
    let table = [
        (
            format!("Authorization: Bearer {}", random(30)),
            "Authorization: Bearer [redacted:bearer-token]",
        ),
        (
            format!("bearer {}.", random(30)),
            "bearer [redacted:bearer-token].",
        ),
        (
            format!("aws_secret_access_key = {secret}\n"),
            "aws_secret_access_key = [redacted:aws-secret-key]\n",
        ),
        (
            format!("AWS_SECRET_ACCESS_KEY={secret}"),
            "AWS_SECRET_ACCESS_KEY=[redacted:aws-secret-key]",
        ),
        (
            format!("{{\"SecretAccessKey\": \"{secret}\"}}"),
            "{\"SecretAccessKey\": \"[redacted:aws-secret-key]\"}",
        ),
    ];
    for (text, expected) in table {
        assert_eq!(scrub(&text), (expected.to_owned(), 1), "{text}");
    }
}

#[test]
fn a_key_that_is_cut_off_goes_with_its_base64() {
    let cut = format!("-----BEGIN RSA PRIVATE KEY-----\n{}", key_body());
    assert_eq!(scrub(&cut).0, "[redacted:private-key]\n");
    let json = format!(
        "{{\"k\": \"{}\"}}",
        armoured("PRIVATE KEY").replace('\n', "\\n")
    );
    assert_eq!(scrub(&json).0, "{\"k\": \"[redacted:private-key]\"}");
}

#[test]
fn what_is_no_secret_survives() {
    let texts = [
        String::new(),
        format!("commit {}", hex(40)),
        format!("tree {} sha256:{}", hex(40), hex(64)),
        format!("AKIA is the prefix, then {}", hex(40)),
        format!("{} {}", upper(20), random(64)),
        "the password is in the vault; a token, a secret, a key".to_owned(),
        "token=7\nkey: 3\nm=1.5".to_owned(),
        "sk-learn, sk-learn-contrib-imbalanced-api-and-more-words-here-2".to_owned(),
        "risk-0123456789abcdefghij task-0123456789abcdefghij".to_owned(),
        "def hf_hub_download_with_a_long_name_of_a_function(): pass".to_owned(),
        "npm_config_registry npm_lifecycle_event npm_package_version".to_owned(),
        "ghp_short ghp_ github_pat_ AKIA AIza xoxb- glpat- sk- eyJ".to_owned(),
        "github_pat_is_the_prefix_of_fine_grained_tokens_of_github".to_owned(),
        "Bearer authentication is described in the_documentation_of_the_service".to_owned(),
        "bearer of bad news; Bearer: <token>".to_owned(),
        "eyJhbGciOiJ.two eyJmb28.bar.baz".to_owned(),
        "-----BEGIN CERTIFICATE-----\nMIIBsjCCAVmgAwIBAgIUQ2x1\n-----END CERTIFICATE-----".to_owned(),
        "a file that starts with -----BEGIN PRIVATE KEY----- and ends with -----END PRIVATE KEY----- is a key".to_owned(),
        "if text.startswith('-----BEGIN RSA PRIVATE KEY-----'):\n    raise ValueError('no')\n".to_owned(),
        format!("-----BEGIN PUBLIC KEY-----\n{}-----END PUBLIC KEY-----", key_body()),
        "secret_access_key = os.environ['AWS_SECRET_ACCESS_KEY']".to_owned(),
        "SG.en is a language; ya29.html a page; pypi-publish an action; cioppino".to_owned(),
        "550e8400-e29b-41d4-a716-446655440000 1732991234.567890 /usr/lib/x86_64-linux-gnu".to_owned(),
        "[redacted:github-token] [redacted:by-name] [redacted:known-value]".to_owned(),
    ];
    for text in &texts {
        let secrets = Secrets::default();
        let (clean, count) = secrets.scrub_text(text);
        assert_eq!((&*clean, count), (text.as_str(), 0));
        assert!(matches!(clean, Cow::Borrowed(_)));
    }
}

#[test]
fn known_values_go_and_short_ones_stay() {
    let environment = [
        ("OPENAI_API_KEY", "correct horse \"battery\""),
        ("DB_PASSWORD", "hunter2"),
        ("PG_PASSWORD", "postgres"),
        ("GH_TOKEN", "  longer-value-1\n"),
        ("OTHER_TOKEN", "longer-value"),
        ("HOME", "/home/somebody"),
        ("EMPTY_TOKEN", ""),
    ];
    let secrets = Secrets::new(environment);
    let table = [
        (
            "a correct horse \"battery\" b",
            "a [redacted:known-value] b",
            1,
        ),
        (
            "{\"k\": \"correct horse \\\"battery\\\"\"}",
            "{\"k\": \"[redacted:known-value]\"}",
            1,
        ),
        (
            "hunter2 postgres /home/somebody",
            "hunter2 postgres /home/somebody",
            0,
        ),
        (
            "xlonger-value-1xlonger-value",
            "x[redacted:known-value]x[redacted:known-value]",
            2,
        ),
    ];
    for (text, expected, count) in table {
        assert_eq!(secrets.scrub_text(text), (Cow::Borrowed(expected), count));
    }
    assert_eq!(format!("{secrets:?}"), "Secrets { known: 3 }");
    let (bytes, count) = secrets.scrub_bytes(b"\xff\x00longer-value\xfe");
    assert_eq!(
        (&*bytes, count),
        (b"\xff\x00[redacted:known-value]\xfe".as_slice(), 1)
    );
}

#[test]
fn documents_are_scrubbed_in_texts_and_keys() {
    let token = format!("ghp_{}", random(36));
    let other = format!("ghp_{}", random(38));
    let mut document = json!({
        "token": 7, "password": "in the vault", "list": [token, 1, null, true, {"deep": format!("x {token} y")}],
        "keys": {token.clone(): 1, other: 2},
    });
    assert_eq!(Secrets::default().scrub_json(&mut document), 4);
    let expected = json!({
        "token": 7, "password": "in the vault",
        "list": ["[redacted:github-token]", 1, null, true, {"deep": "x [redacted:github-token] y"}],
        "keys": {"[redacted:github-token]": 1, "[redacted:github-token] (2)": 2},
    });
    assert_eq!(document, expected);
    assert_eq!(Secrets::default().scrub_json(&mut document), 0);
}

#[test]
fn findings_name_kind_and_place() {
    let token = format!("hf_{}", random(34));
    let found = Secrets::default().findings(format!("a {token} b").as_bytes());
    assert_eq!(
        found,
        [Finding {
            kind: "hugging-face-token",
            range: 2..2 + token.len()
        }]
    );
}

#[test]
fn nothing_hides_in_a_false_replacement() {
    let token = format!("ghp_{}", random(36));
    assert_eq!(scrub(&format!("[redacted:{token}]")).1, 1);
    assert_eq!(
        scrub(&format!("[redacted:known-value{token}]")).1,
        0,
        "one word with what stands before"
    );
    let secrets = Secrets::from_values(["abcdefghijkl"]);
    assert_eq!(
        secrets.scrub_text("[redacted:abcdefghijkl]").0,
        "[redacted:[redacted:known-value]]"
    );
}

#[test]
fn texts_made_to_be_slow_are_not() {
    for piece in [
        "sk-",
        "eyJ-",
        "eyJ",
        "-----BEGIN PRIVATE KEY-----",
        "bearer ",
        "[redacted:",
        "AKIA",
        "----------",
        "github_pat_",
    ] {
        let text = piece.repeat(60_000 / piece.len());
        assert_eq!(scrub(&text).0.len(), text.len(), "{piece}");
    }
}

/// Texts in which secrets, halves of them, replacements and other characters meet.
fn any_text() -> impl Strategy<Value = String> {
    let token = prop::sample::select(tokens()).prop_map(|(token, _)| token);
    let part = (prop::sample::select(tokens()), any::<prop::sample::Index>()).prop_map(
        |((token, _), index)| {
            let cut = index.index(token.len());
            token[cut..].to_owned()
        },
    );
    let piece = prop_oneof![
        token,
        part,
        Just("known-secret-1".to_owned()),
        Just("redacted".to_owned()),
        Just("]known-va".to_owned()),
        Just("[redacted:jwt]".to_owned()),
        Just("[redacted:".to_owned()),
        Just("Bearer ".to_owned()),
        Just("secret_access_key=".to_owned()),
        Just("AKIA".to_owned()),
        "[A-Z0-9]{16}",
        "[ \\n\\\\_.:\"a-zA-Z0-9é-]{0,6}",
    ];
    prop::collection::vec(piece, 0..9).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn scrubbing_twice_changes_nothing(text in any_text(), escape in any::<bool>()) {
        let secrets = Secrets::from_values(["known-secret-1", "redacted", "]known-va", "[redacted:", "B3dE5gH7jK9"]);
        let text = if escape { json!(text).to_string() } else { text };
        let (once, _) = secrets.scrub_text(&text);
        let (twice, count) = secrets.scrub_text(&once);
        prop_assert_eq!(count, 0);
        prop_assert_eq!(&once, &twice);
        let (bytes, _) = secrets.scrub_bytes(text.as_bytes());
        prop_assert_eq!(&*bytes, once.as_bytes());
        let plain_parts = once.replace("[redacted:known-value]", "");
        prop_assert!(!plain_parts.contains("known-secret-1") || once.matches("[redacted").count() > 0);
    }

    #[test]
    fn no_token_survives_between_other_words((token, _) in prop::sample::select(tokens()), before in "[a-z ]{0,9}[ \n=:\"]", after in "[ \n\",;][a-z ]{0,9}") {
        let text = format!("{before}{token}{after}");
        let (clean, count) = scrub(&text);
        prop_assert_eq!(count, 1);
        prop_assert!(clean.starts_with(&before) && clean.ends_with(&after));
    }

    #[test]
    fn bytes_never_panic_and_innocent_words_survive(bytes in prop::collection::vec(any::<u8>(), 0..300), words in "[a-z]{1,12}( [a-z]{1,12}){0,8}") {
        Secrets::default().scrub_bytes(&bytes);
        prop_assert_eq!(scrub(&words), (words, 0));
    }
}

/// What comes out in pieces is what comes out whole, wherever a secret lies.
#[test]
fn secrets_across_the_ends_of_pieces_are_found() {
    let known = "line one of it\nand line two";
    let secrets = Secrets::from_values([known]);
    let (held_max, margin) = (2000, 600);
    let long = format!("Authorization: Bearer {}", random(40));
    let all = [armoured("RSA PRIVATE KEY"), known.to_owned(), long];
    for secret in &all {
        // Without ends of lines, too.
        for filler in ["some words of a log\n", "data,data,data,", " "] {
            for before in (900..2100).step_by(7) {
                let mut text: String = filler.chars().cycle().take(before).collect();
                text.push(' ');
                text.push_str(secret);
                text.push(' ');
                text.extend(filler.chars().cycle().take(3000));
                let (whole, count) = secrets.scrub_text(&text);
                assert_eq!(count, 1, "{text}");
                let mut clean = Vec::new();
                let mut pieces = Pieces::with_bounds(&secrets, held_max, margin);
                let mut take =
                    |piece: &[u8]| clean.extend_from_slice(&secrets.scrub_bytes(piece).0);
                for part in text.as_bytes().chunks(333) {
                    pieces.feed(part, &mut take);
                }
                pieces.finish(&mut take);
                assert_eq!(
                    String::from_utf8(clean).unwrap(),
                    whole,
                    "{before} {filler:?}"
                );
            }
        }
    }
}

#[test]
fn what_no_line_and_no_secret_ends_is_cut_all_the_same() {
    let secrets = Secrets::default();
    let token = format!("sk-{}", random(10_000));
    let mut pieces = Pieces::with_bounds(&secrets, 1000, 300);
    let mut taken = Vec::new();
    pieces.feed(token.as_bytes(), &mut |piece| {
        assert!(piece.len() <= 1000 && !piece.is_empty());
        taken.extend_from_slice(piece);
    });
    pieces.finish(&mut |piece| taken.extend_from_slice(piece));
    assert_eq!(taken, token.as_bytes());
}

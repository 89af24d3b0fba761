//! What holds for any output.

use proptest::prelude::*;

use super::*;

/// Output made of pieces that matter to the scanner.
fn any_output() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"m=7".to_vec()),
        Just(b"m: 1e999".to_vec()),
        Just(b"\n".to_vec()),
        Just(b"\r".to_vec()),
        Just(b"{\n  \"m\": 3\n}\n".to_vec()),
        Just(b"{\"m\": 5}\n".to_vec()),
        Just(b"\x1b[32m".to_vec()),
        Just(b"\x1b]0;".to_vec()),
        Just(b"\x1b".to_vec()),
        Just(b"\x07".to_vec()),
        Just(b"....".to_vec()),
        Just("é\u{3000}".as_bytes().to_vec()),
        Just(vec![b'x'; 40_000]),
        Just(vec![b'.'; 90_000]),
        Just(
            [
                b"{\"a\": \"".as_slice(),
                &[b'y'; 70_000],
                b"\", \"m\": 2}\n"
            ]
            .concat()
        ),
        prop::collection::vec(any::<u8>(), 0..8),
        "[mM=:{}\\[\\]\", 0-9.a-c]{0,12}".prop_map(String::into_bytes),
    ];
    prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn chunks_do_not_matter(output in any_output(), strict in any::<bool>(), chunk_bytes in 1_usize..9000) {
        let whole = scan_chunks(&output, "m", strict, usize::MAX);
        prop_assert_eq!(&whole, &scan_chunks(&output, "m", strict, 1));
        prop_assert_eq!(&whole, &scan_chunks(&output, "m", strict, chunk_bytes));
    }

    #[test]
    fn every_printed_number_is_read_back(bits in any::<u64>(), noise in "[a-z ]{0,20}") {
        let value = f64::from_bits(bits);
        prop_assume!(value.is_finite());
        let real = Real::new(value).unwrap();
        for output in [format!("{noise}\nm={value}\n"), format!("m = {value:e}"), format!("{{\"m\": {real}}}"), format!("m:{real}\n{noise}")] {
            prop_assert_eq!(scan_chunks(output.as_bytes(), "m", true, 7), Reading::Value(real), "{}", output);
        }
    }

    #[test]
    fn only_whole_lines_match(before in "[a-z ]{1,12}", after in "[a-z%_,/]{1,6}") {
        prop_assume!(!before.trim().is_empty());
        let prose = format!("{before}m=1");
        prop_assert_eq!(word(&scan_chunks(prose.as_bytes(), "m", false, 64)), "missing");
        let spoilt = format!("m=1{after}");
        prop_assert_eq!(word(&scan_chunks(spoilt.as_bytes(), "m", false, 64)), "malformed");
    }
}

//! `docs/reference/configuration.md` is generated from the table of settings; this test says when it
//! is out of date. `LOOPWRIGHT_UPDATE_EXPECTED=1 cargo test -p loopwright-core --test reference`
//! writes it anew.

use loopwright_core::spec::configuration_markdown;

#[test]
fn the_reference_of_settings_is_that_of_the_code() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/configuration.md"
    );
    let expected = configuration_markdown();
    if std::env::var_os("LOOPWRIGHT_UPDATE_EXPECTED").is_some() {
        std::fs::write(path, &expected).unwrap();
    }
    let found = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        found == expected,
        "docs/reference/configuration.md is not what the code says"
    );
}

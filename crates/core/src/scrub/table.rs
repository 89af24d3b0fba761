//! The table of token shapes: prefix, characters, lengths, proof of randomness, kind.
//!
//! A change here changes what is recorded: raise [`super::RULES_VERSION`] with it.

/// Which characters a token is made of.
#[derive(Debug, Clone, Copy)]
pub(super) enum Class {
    Alphanumeric,
    UpperDigits,
    LowerHex,
    /// With `-` and `_`, as in base64 for addresses.
    WordLike,
}

impl Class {
    pub(super) fn holds(self, byte: u8) -> bool {
        match self {
            Self::Alphanumeric => byte.is_ascii_alphanumeric(),
            Self::UpperDigits => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Self::LowerHex => byte.is_ascii_digit() || matches!(byte, b'a'..=b'f'),
            Self::WordLike => byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'),
        }
    }
}

/// What tells a token from words.
#[derive(Debug, Clone, Copy)]
pub(super) enum Proof {
    /// The prefix and the length are enough.
    Enough,
    /// A letter and a digit.
    Mixed,
    /// A letter, a digit, and so many letters or digits in one piece.
    Piece(usize),
}

impl Proof {
    pub(super) fn holds(self, token: &[u8]) -> bool {
        match self {
            Self::Enough => true,
            Self::Mixed => is_mixed(token),
            Self::Piece(length) => {
                is_mixed(token)
                    && token
                        .split(|byte| !byte.is_ascii_alphanumeric())
                        .any(|piece| piece.len() >= length)
            }
        }
    }
}

fn is_mixed(token: &[u8]) -> bool {
    token.iter().any(u8::is_ascii_alphabetic) && token.iter().any(u8::is_ascii_digit)
}

/// One shape of the table.
pub(super) struct Shape {
    pub(super) prefix: &'static str,
    pub(super) class: Class,
    /// Characters behind the prefix, at least.
    pub(super) least: usize,
    /// And at most; a longer run is something else.
    pub(super) most: usize,
    pub(super) proof: Proof,
    pub(super) kind: &'static str,
}

/// No upper bound.
pub(super) const ANY: usize = usize::MAX;

const fn shape(
    prefix: &'static str,
    class: Class,
    (least, most): (usize, usize),
    proof: Proof,
    kind: &'static str,
) -> Shape {
    Shape {
        prefix,
        class,
        least,
        most,
        proof,
        kind,
    }
}

/// The table.
#[rustfmt::skip]
pub(super) const SHAPES: [Shape; 42] = [
    shape("ghp_", Class::Alphanumeric, (36, ANY), Proof::Enough, "github-token"),
    shape("gho_", Class::Alphanumeric, (36, ANY), Proof::Enough, "github-token"),
    shape("ghu_", Class::Alphanumeric, (36, ANY), Proof::Enough, "github-token"),
    shape("ghs_", Class::Alphanumeric, (36, ANY), Proof::Enough, "github-token"),
    shape("ghr_", Class::Alphanumeric, (36, ANY), Proof::Enough, "github-token"),
    shape("github_pat_", Class::WordLike, (36, ANY), Proof::Piece(16), "github-token"),
    shape("glpat-", Class::WordLike, (20, ANY), Proof::Mixed, "gitlab-token"),
    shape("gldt-", Class::WordLike, (20, ANY), Proof::Mixed, "gitlab-token"),
    shape("glrt-", Class::WordLike, (20, ANY), Proof::Mixed, "gitlab-token"),
    shape("glptt-", Class::WordLike, (20, ANY), Proof::Mixed, "gitlab-token"),
    shape("sk-", Class::WordLike, (20, ANY), Proof::Piece(16), "api-key"),
    shape("xai-", Class::Alphanumeric, (60, ANY), Proof::Mixed, "api-key"),
    shape("gsk_", Class::Alphanumeric, (40, ANY), Proof::Mixed, "api-key"),
    shape("r8_", Class::Alphanumeric, (37, ANY), Proof::Mixed, "api-key"),
    shape("AKIA", Class::UpperDigits, (16, 16), Proof::Enough, "aws-access-key"),
    shape("ASIA", Class::UpperDigits, (16, 16), Proof::Enough, "aws-access-key"),
    shape("xoxa-", Class::WordLike, (10, ANY), Proof::Mixed, "slack-token"),
    shape("xoxb-", Class::WordLike, (10, ANY), Proof::Mixed, "slack-token"),
    shape("xoxe-", Class::WordLike, (10, ANY), Proof::Mixed, "slack-token"),
    shape("xoxo-", Class::WordLike, (10, ANY), Proof::Mixed, "slack-token"),
    shape("xoxp-", Class::WordLike, (10, ANY), Proof::Mixed, "slack-token"),
    shape("xoxr-", Class::WordLike, (10, ANY), Proof::Mixed, "slack-token"),
    shape("xoxs-", Class::WordLike, (10, ANY), Proof::Mixed, "slack-token"),
    shape("xapp-", Class::WordLike, (20, ANY), Proof::Piece(10), "slack-token"),
    shape("AIza", Class::WordLike, (35, ANY), Proof::Mixed, "google-key"),
    shape("GOCSPX-", Class::WordLike, (24, ANY), Proof::Enough, "google-key"),
    shape("ya29.", Class::WordLike, (30, ANY), Proof::Mixed, "google-key"),
    shape("npm_", Class::Alphanumeric, (36, ANY), Proof::Mixed, "npm-token"),
    shape("pypi-", Class::WordLike, (50, ANY), Proof::Piece(16), "pypi-token"),
    shape("cio", Class::Alphanumeric, (32, 32), Proof::Mixed, "crates-io-token"),
    shape("hf_", Class::Alphanumeric, (30, ANY), Proof::Enough, "hugging-face-token"),
    shape("sk_live_", Class::Alphanumeric, (16, ANY), Proof::Mixed, "stripe-key"),
    shape("sk_test_", Class::Alphanumeric, (16, ANY), Proof::Mixed, "stripe-key"),
    shape("rk_live_", Class::Alphanumeric, (16, ANY), Proof::Mixed, "stripe-key"),
    shape("rk_test_", Class::Alphanumeric, (16, ANY), Proof::Mixed, "stripe-key"),
    shape("whsec_", Class::Alphanumeric, (24, ANY), Proof::Mixed, "stripe-key"),
    shape("dckr_pat_", Class::WordLike, (24, ANY), Proof::Mixed, "docker-token"),
    shape("dop_v1_", Class::LowerHex, (64, 64), Proof::Enough, "digitalocean-token"),
    shape("lin_api_", Class::Alphanumeric, (36, ANY), Proof::Mixed, "linear-key"),
    shape("shpat_", Class::LowerHex, (32, 32), Proof::Enough, "shopify-token"),
    shape("AGE-SECRET-KEY-1", Class::UpperDigits, (58, 58), Proof::Enough, "age-key"),
    shape("SG.", Class::WordLike, (22, 22), Proof::Mixed, "sendgrid-key"),
];

/// A set of pairs of bytes: which two a secret can begin with. The quick answer for nearly every
/// place of a text.
#[derive(Clone)]
pub(super) struct Beginnings(Box<[u64; 1024]>);

impl Beginnings {
    /// Those of the shapes, and of what is told in other ways: armour, web tokens, `Bearer` and
    /// `secret_access_key` in any case.
    pub(super) fn of_shapes() -> Self {
        let mut beginnings = Self(Box::new([0; 1024]));
        for shape in &SHAPES {
            beginnings.insert(shape.prefix.as_bytes());
        }
        for pair in ["--", "ey", "be", "bE", "Be", "BE", "se", "sE", "Se", "SE"] {
            beginnings.insert(pair.as_bytes());
        }
        beginnings
    }

    /// Adds the beginning of a text of at least two bytes.
    pub(super) fn insert(&mut self, text: &[u8]) {
        if let [first, second, ..] = text {
            let index = Self::index(*first, *second);
            self.0[index / 64] |= 1 << (index % 64);
        }
    }

    pub(super) fn holds(&self, first: u8, second: u8) -> bool {
        let index = Self::index(first, second);
        self.0[index / 64] >> (index % 64) & 1 == 1
    }

    fn index(first: u8, second: u8) -> usize {
        usize::from(first) << 8 | usize::from(second)
    }
}

//! Which names of variables, headers and fields say that the value is a secret.

/// Words that make a name secret when they are its last.
const SECRET_LAST: [&str; 17] = [
    "token",
    "secret",
    "secrets",
    "password",
    "passwd",
    "passphrase",
    "credential",
    "credentials",
    "apikey",
    "authtoken",
    "accesstoken",
    "authorization",
    "cookie",
    "pat",
    "privatekey",
    "secretkey",
    "accesskey",
];

/// Words that make a name secret when they are its last and something stands before them: alone they
/// are a directory, a permission, or nothing in particular.
const SECRET_LAST_OF_SEVERAL: [&str; 4] = ["pwd", "pass", "auth", "key"];

/// Endings of a last word written together (`PGPASSWORD`, `GITHUBTOKEN`).
const SECRET_ENDINGS: [&str; 5] = ["password", "passwd", "apikey", "sshpass", "authtoken"];

/// Words before `key` with which it is no secret.
const OPEN_KEYS: [&str; 19] = [
    "public",
    "pub",
    "cache",
    "sort",
    "primary",
    "foreign",
    "partition",
    "group",
    "hot",
    "shift",
    "map",
    "dict",
    "object",
    "row",
    "index",
    "registry",
    "no",
    "any",
    "routing",
];

/// Words at the end that say which of several secrets it is.
const QUALIFIERS: [&str; 9] = [
    "prod",
    "production",
    "dev",
    "staging",
    "old",
    "new",
    "backup",
    "base",
    "default",
];

/// Names that look secret and hold a path.
const OPEN_NAMES: [&str; 3] = [
    "GOOGLE_APPLICATION_CREDENTIALS",
    "XDG_SESSION_COOKIE",
    "OLD_PWD",
];

/// Whether a variable, header or field of this name holds a secret. The name's last word decides:
/// `OPENAI_API_KEY`, `authToken` and `X-Api-Key` do; `monkey`, `token_count`, `keyword` and
/// `TOKENIZERS_PARALLELISM` do not.
pub fn is_secret_name(name: &str) -> bool {
    if OPEN_NAMES
        .iter()
        .any(|open| open.eq_ignore_ascii_case(name))
    {
        return false;
    }
    let mut words = words_of(name);
    while words.len() > 1
        && words
            .last()
            .is_some_and(|word| is_number(word) || QUALIFIERS.contains(&word.as_str()))
    {
        words.pop();
    }
    let Some((last, before)) = words.split_last() else {
        return false;
    };
    let last = last.trim_end_matches(|character: char| character.is_ascii_digit());
    if last == "key"
        && before
            .last()
            .is_some_and(|word| OPEN_KEYS.contains(&word.as_str()))
    {
        return false;
    }
    SECRET_LAST.contains(&last)
        || (SECRET_LAST_OF_SEVERAL.contains(&last) && !before.is_empty())
        || SECRET_ENDINGS.iter().any(|ending| last.ends_with(ending))
        // Too many providers write it together to list them; no English word ends like this.
        || (last.ends_with("token") && name.chars().all(|character| !character.is_ascii_lowercase()))
}

fn is_number(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit())
}

/// The words of a name in lower case: cut at everything that is no letter or digit, and before a
/// capital that follows a small letter.
fn words_of(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_small = false;
    for character in name.chars() {
        let begins = !character.is_alphanumeric() || (after_small && character.is_uppercase());
        if begins && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if character.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(character.to_lowercase());
        }
        after_small = character.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_names() {
        for name in [
            "OPENAI_API_KEY",
            "ANTHROPIC_API_KEY",
            "OPENAI_KEY",
            "GITHUB_TOKEN",
            "GH_TOKEN",
            "HF_TOKEN",
            "NPM_TOKEN",
            "CARGO_REGISTRY_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
            "DB_PASSWORD",
            "PGPASSWORD",
            "MYSQL_PWD",
            "SSHPASS",
            "CLIENT_SECRET",
            "SECRET_KEY_BASE",
            "API_KEY_2",
            "api-key",
            "X-Api-Key",
            "authToken",
            "apiKey",
            "accessToken",
            "Authorization",
            "Proxy-Authorization",
            "Cookie",
            "Set-Cookie",
            "TOKEN",
            "password",
            "APIKEY",
            "GITHUBTOKEN",
            "NPM_CONFIG__AUTH",
            "ACCOUNT_KEY",
            "SIGNING_KEY_PROD",
            "github.token",
            "TOKEN1",
            "GITLAB_PAT",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn open_names() {
        for name in [
            "",
            "_",
            "monkey",
            "MONKEY",
            "token_count",
            "TOKEN_COUNT",
            "keyword",
            "TOKENIZERS_PARALLELISM",
            "MAX_TOKENS",
            "PATH",
            "HOME",
            "PWD",
            "OLDPWD",
            "KEY",
            "key",
            "PASS",
            "PUBLIC_KEY",
            "CACHE_KEY",
            "primaryKey",
            "AWS_ACCESS_KEY_ID",
            "TOKEN_FILE",
            "SECRET_NAME",
            "PASSWORD_MIN_LENGTH",
            "SSH_AUTH_SOCK",
            "XAUTHORITY",
            "GIT_ASKPASS",
            "KEYBOARD",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "TURKEY",
            "bypass",
            "compass",
            "secretary",
            "AUTHOR",
            "GIT_AUTHOR_NAME",
            "2",
            "keys",
            "tokenizer",
            "path",
            "PATTERN",
            "compat",
            "DATABASE_URL",
        ] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn words() {
        assert_eq!(
            words_of("NPM_CONFIG__authToken2"),
            ["npm", "config", "auth", "token2"]
        );
        assert_eq!(words_of("X-Api-Key"), ["x", "api", "key"]);
    }
}

//! Quoting for remote command lines: a path with a space or a semicolon must reach the other machine as one word, and must not become a
//! command.

use crate::{Error, Result};

/// Removes the tilde for the home directory from the beginning of a remote path, because relative paths start in the home directory anyway.
pub(crate) fn without_tilde(path: &str) -> String {
    match path.strip_prefix('~') {
        Some("") => ".".to_owned(),
        Some(rest) if rest.starts_with('/') => match rest.trim_start_matches('/') {
            "" => "./".to_owned(),
            rest => format!("./{rest}"),
        },
        // A hyphen at the beginning of the path would be read as an option.
        _ if path.starts_with('-') => format!("./{path}"),
        _ => path.to_owned(),
    }
}

/// Returns the command line of a POSIX shell that runs the file at a path.
pub(crate) fn command(path: &str) -> String {
    let path = without_tilde(path);
    match path.contains('/') {
        true => quoted(&path),
        // Without a slash in the path, the shell would search the file in PATH.
        false => quoted(&format!("./{path}")),
    }
}

/// Returns the command line of the command interpreter of Windows that runs the file at a path.
///
/// # Errors
/// The path has a character that cannot be quoted.
pub(crate) fn command_for_windows(path: &str) -> Result<String> {
    // The interpreter replaces variables even inside quotes, and has no escape for a quote.
    if path.contains(['"', '%', '!', '\r', '\n']) {
        return Err(Error::fatal(format!(
            "script_path cannot be {path:?}: on Windows it must not contain any of \", %, ! and line ends"
        )));
    }
    let plain = |c: char| c.is_alphanumeric() || r"-_./\+:@~".contains(c);
    Ok(match !path.is_empty() && path.chars().all(plain) {
        true => path.to_owned(),
        // If a command line begins with a quote, `cmd /c` strips its first and last quote. `call` prevents that.
        false => format!("call \"{path}\""),
    })
}

/// Quotes a word for a POSIX shell.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./+,:@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Quotes a word for the command line parser of programs on Windows.
pub(crate) fn quoted_for_windows(word: &str) -> String {
    if !word.is_empty() && !word.contains([' ', '\t', '"', '&', '|', '<', '>', '^', '(', ')', ';', ',', '=']) {
        return word.to_owned();
    }
    let mut out = String::from("\"");
    let mut slashes = 0;
    for c in word.chars() {
        match c {
            '\\' => slashes += 1,
            '"' => {
                // Backslashes are literal except before a quote, where each must be doubled.
                out.push_str(&"\\".repeat(slashes + 1));
                slashes = 0;
            }
            _ => slashes = 0,
        }
        out.push(c);
    }
    out.push_str(&"\\".repeat(slashes));
    out.push('"');
    out
}

/// Quotes text for PowerShell, which also accepts typographic quotes as quotes.
pub(crate) fn quoted_for_powershell(text: &str) -> String {
    let mut out = String::from("'");
    for c in text.chars() {
        if matches!(c, '\'' | '\u{2018}'..='\u{201b}') {
            out.push(c);
        }
        out.push(c);
    }
    out.push('\'');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_each_platform() {
        for (word, posix, windows) in [
            ("/tmp/x", "/tmp/x", "/tmp/x"),
            ("~/a b", "'~/a b'", "\"~/a b\""),
            ("it's", r"'it'\''s'", "it's"),
            ("a;b", "'a;b'", "\"a;b\""),
            ("a&b", "'a&b'", "\"a&b\""),
            ("", "''", "\"\""),
            (r#"a\"b"#, "'a\\\"b'", "\"a\\\\\\\"b\""),
            (r"C:\a b\", r"'C:\a b\'", r#""C:\a b\\""#),
        ] {
            assert_eq!(
                (quoted(word).as_str(), quoted_for_windows(word).as_str()),
                (posix, windows)
            );
        }
        assert_eq!(quoted_for_powershell("it's ‘a’"), "'it''s ‘‘a’’'");
    }

    #[test]
    fn a_path_that_is_run_is_one_word() {
        for (path, run) in [
            ("/tmp/terraform_1.sh", "/tmp/terraform_1.sh"),
            ("/tmp/a b; touch x", "'/tmp/a b; touch x'"),
            ("/tmp/$(id)", "'/tmp/$(id)'"),
            ("~/x.sh", "./x.sh"),
            ("~/a b/$x.sh", "'./a b/$x.sh'"),
            ("x.sh", "./x.sh"),
            ("-x.sh", "./-x.sh"),
            ("/a\nb", "'/a\nb'"),
        ] {
            assert_eq!(command(path), run, "{path}");
        }
        for (path, plain) in [
            ("~", "."),
            ("~/", "./"),
            ("~/a", "./a"),
            ("~//a", "./a"),
            ("~root/a", "~root/a"),
            ("/a/~", "/a/~"),
            ("-a", "./-a"),
        ] {
            assert_eq!(without_tilde(path), plain, "{path}");
        }
        for (path, run) in [
            ("C:/Temp/terraform_1.cmd", "C:/Temp/terraform_1.cmd"),
            (r"C:\Temp\a.cmd", r"C:\Temp\a.cmd"),
            ("C:/Temp/a b & c.cmd", "call \"C:/Temp/a b & c.cmd\""),
        ] {
            assert_eq!(command_for_windows(path).unwrap(), run, "{path}");
        }
        for path in ["C:/a\".cmd", "C:/%X%.cmd", "C:/a\nb"] {
            assert!(command_for_windows(path).is_err(), "{path}");
        }
    }
}

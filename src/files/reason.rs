//! Why an operation on a file or a process failed, in words.

use std::io;

/// The operating system's reason for an error, without its number for the error: part of a sentence, in
/// lower case, without a full stop.
#[must_use]
pub fn io_reason(error: &io::Error) -> String {
    let text = error.to_string();
    // The library of temporary files appends their path, which the user does not know.
    let text = match text.rsplit_once(" at path \"") {
        Some((reason, path)) if path.ends_with('"') => reason,
        _ => &text,
    };
    plain(text)
}

/// A text without the number of an operating system's error, and without its first capital if that begins a word.
#[must_use]
pub fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(" (os error ") {
        let (before, after) = rest.split_at(at);
        out.push_str(before);
        rest = after.split_once(')').map_or("", |(_, tail)| tail);
    }
    out.push_str(rest);
    let mut letters = out.chars();
    match (letters.next(), letters.next()) {
        (Some(first), Some(second)) if first.is_uppercase() && second.is_lowercase() => {
            let tail = out.get(first.len_utf8()..).unwrap_or_default();
            first.to_lowercase().chain(tail.chars()).collect()
        }
        _ => out.trim_end_matches('.').to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_have_no_error_numbers_and_fit_into_a_sentence() {
        let reason = |code| io_reason(&io::Error::from_raw_os_error(code));
        assert_eq!(reason(2), "no such file or directory");
        assert_eq!(reason(13), "permission denied");
        let wrapped = io::Error::other("it cannot be read: No such file or directory (os error 2): more");
        assert_eq!(
            io_reason(&wrapped),
            "it cannot be read: No such file or directory: more"
        );
        let temporary = tempfile::NamedTempFile::new_in("/nonexistent").unwrap_err();
        assert_eq!(io_reason(&temporary), "no such file or directory");
        assert_eq!(io_reason(&io::Error::other("EOF while reading")), "EOF while reading");
        assert_eq!(plain("TLS is required."), "TLS is required");
    }
}

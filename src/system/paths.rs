//! Rules for the text of paths of every system, usable on any system.
//!
//! Paths inside of this program and in values of Terraform's language have `/` as separator on every system, as in Terraform. Windows
//! accepts both `/` and `\`, and paths can begin with a volume (`C:`, `\\server\share`). Functions of Windows may return a path with the
//! prefix `\\?\`, which disables these rules; the prefix is removed.

use std::path::PathBuf;

use crate::Os;

/// Returns true if the character separates the steps of a path.
#[must_use]
pub fn is_separator(os: Os, c: char) -> bool {
    c == '/' || os == Os::Windows && c == '\\'
}

/// Replaces every separator by `/`, and removes the prefix of long paths.
#[must_use]
pub fn to_slash(os: Os, path: &str) -> String {
    if os != Os::Windows {
        return path.to_owned();
    }
    let path = path.replace('\\', "/");
    match path.strip_prefix("//?/") {
        Some(rest) => match rest.strip_prefix("UNC/") {
            Some(server) => format!("//{server}"),
            // Without the prefix `\\?\`, only the path of a drive has the same meaning.
            None if drive(rest).is_some() => rest.to_owned(),
            None => path,
        },
        None => path,
    }
}

/// Replaces every separator by `/`. A path that is not valid Unicode is returned unchanged; on Windows, that is only a path with unpaired
/// surrogates.
#[must_use]
pub fn with_slashes(os: Os, path: PathBuf) -> PathBuf {
    match path.to_str() {
        Some(text) => to_slash(os, text).into(),
        None => path,
    }
}

/// Returns the length of a drive such as `C:` at the beginning of a path; `None` if the path does not begin with one.
fn drive(path: &str) -> Option<usize> {
    match path.as_bytes() {
        [letter, b':', ..] if letter.is_ascii_alphabetic() => Some(2),
        _ => None,
    }
}

/// Splits off the volume: `C:` or `//server/share` on Windows; empty elsewhere, and for relative paths.
#[must_use]
pub fn split_volume(os: Os, path: &str) -> (&str, &str) {
    if os != Os::Windows {
        return ("", path);
    }
    if let Some(end) = drive(path) {
        return path.split_at(end);
    }
    let is = |c: char| is_separator(os, c);
    let mut chars = path.char_indices();
    let server = matches!((chars.next(), chars.next(), chars.next()),
        (Some((_, a)), Some((_, b)), Some((_, c))) if is(a) && is(b) && !is(c));
    if !server {
        return ("", path);
    }
    // The volume ends after the server and the share.
    let mut ends = path.char_indices().skip(2).filter(|(_, c)| is(*c)).map(|(at, _)| at);
    match (ends.next(), ends.next()) {
        (Some(_), Some(end)) => path.split_at(end),
        (Some(_), None) => (path, ""),
        // A server without a share is not a volume.
        (None, _) => ("", path),
    }
}

/// Returns true if a path does not depend on the working directory.
#[must_use]
pub fn is_absolute(os: Os, path: &str) -> bool {
    let (volume, rest) = split_volume(os, path);
    let rooted = rest.starts_with(|c| is_separator(os, c));
    match os {
        // `\x` depends on the drive of the working directory; a share, however, is a root.
        Os::Windows => !volume.is_empty() && (rooted || drive(volume).is_none()),
        _ => rooted,
    }
}

/// Returns the shortest equivalent path, without access to the disk, with `/` as separator: no `.` steps, and `..` steps only
/// at the beginning.
#[must_use]
pub fn clean(os: Os, path: &str) -> String {
    let path = to_slash(os, path);
    let (volume, rest) = split_volume(os, &path);
    let rooted = rest.starts_with('/') || !volume.is_empty() && drive(volume).is_none();
    let mut steps: Vec<&str> = Vec::new();
    for step in rest.split('/') {
        match step {
            "" | "." => {}
            ".." => match steps.last() {
                Some(&last) if last != ".." => {
                    steps.pop();
                }
                // The parent of the root is the root.
                _ if rooted => {}
                _ => steps.push(".."),
            },
            step => steps.push(step),
        }
    }
    let steps = steps.join("/");
    match (rooted, steps.is_empty()) {
        (true, _) => format!("{volume}/{steps}"),
        (false, true) => format!("{volume}."),
        // Without the dot, the first step would be read as a volume (`./C:x`).
        (false, false) if volume.is_empty() && !split_volume(os, &steps).0.is_empty() => format!("./{steps}"),
        (false, false) => format!("{volume}{steps}"),
    }
}

/// Joins a directory and a path, and cleans the result. An absolute path stays below the directory, as in Go's library.
#[must_use]
pub fn join(os: Os, dir: &str, path: &str) -> String {
    clean(os, &format!("{dir}/{path}"))
}

/// Returns the last step of a path; `.` for an empty path, and a separator for a path of separators only.
#[must_use]
pub fn base(os: Os, path: &str) -> String {
    if path.is_empty() {
        return ".".to_owned();
    }
    let (_, rest) = split_volume(os, path);
    let trimmed = rest.trim_end_matches(|c| is_separator(os, c));
    match trimmed.rsplit(|c| is_separator(os, c)).next() {
        Some(last) if !last.is_empty() => last.to_owned(),
        _ if os == Os::Windows => "\\".to_owned(),
        _ => "/".to_owned(),
    }
}

/// Returns a path without its last step, as in Go's library: with the separators of the system.
#[must_use]
pub fn dir(os: Os, path: &str) -> String {
    let (volume, rest) = split_volume(os, path);
    let end = rest.rfind(|c| is_separator(os, c)).map_or(0, |at| at + 1);
    let kept = path.get(..volume.len() + end).unwrap_or(path);
    let clean = clean(os, kept);
    match os {
        Os::Windows => clean.replace('/', "\\"),
        _ => clean,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn paths_of_windows_are_cleaned_as_by_go() {
        for (path, expected) in [
            ("", "."),
            (r"C:\a\..\b", "C:/b"),
            ("C:/..", "C:/"),
            ("c:", "c:."),
            (r"C:a\..\..", "C:.."),
            (r"..\..\x\.", "../../x"),
            (r"\\server\share\..\a", "//server/share/a"),
            (r"\\server\share", "//server/share/"),
            (r"\\?\C:\long\", "C:/long"),
            (r"\\?\UNC\server\share\x", "//server/share/x"),
            (r".\C:x", "./C:x"),
        ] {
            assert_eq!(clean(Os::Windows, path), expected, "{path}");
        }
        assert_eq!(clean(Os::Unix, r"a\b/../c"), "c");
        assert_eq!(with_slashes(Os::Windows, r"\\?\C:\a b".into()), PathBuf::from("C:/a b"));
        assert_eq!(with_slashes(Os::Unix, r"a\b".into()), PathBuf::from(r"a\b"));
        assert_eq!(join(Os::Windows, r"C:\work", r"..\modules/x"), "C:/modules/x");
    }

    #[test]
    fn absolute_paths_have_a_volume_on_windows() {
        for (path, windows, unix) in [
            (r"C:\x", true, false),
            ("C:/x", true, false),
            ("C:x", false, false),
            ("/x", false, true),
            (r"\\server\share", true, false),
            (r"\\server", false, false),
            ("x", false, false),
        ] {
            assert_eq!(is_absolute(Os::Windows, path), windows, "{path}");
            assert_eq!(is_absolute(Os::Unix, path), unix, "{path}");
        }
    }

    #[test]
    fn last_step_is_that_of_go() {
        for (path, windows, unix) in [
            ("", ".", "."),
            ("a/b/", "b", "b"),
            (r"a\b", "b", r"a\b"),
            (r"C:\", "\\", r"C:\"),
            ("C:x", "x", "C:x"),
            ("/", "\\", "/"),
        ] {
            assert_eq!(base(Os::Windows, path), windows, "{path}");
            assert_eq!(base(Os::Unix, path), unix, "{path}");
        }
    }

    #[test]
    fn directory_of_a_path_is_that_of_go() {
        for (path, windows, unix) in [
            ("a/b/c", r"a\b", "a/b"),
            ("a", ".", "."),
            ("/", "\\", "/"),
            ("/x", "\\", "/"),
            (r"C:\x\y", r"C:\x", "."),
            ("C:x", "C:.", "."),
            ("a/b/", r"a\b", "a/b"),
        ] {
            assert_eq!(dir(Os::Windows, path), windows, "{path}");
            assert_eq!(dir(Os::Unix, path), unix, "{path}");
        }
    }

    fn os() -> impl Strategy<Value = Os> {
        proptest::sample::select(Os::ALL.to_vec())
    }

    fn path() -> impl Strategy<Value = String> {
        let part = proptest::sample::select(vec!["a", "b.c", ".", "..", "/", "\\", "C:", "d:", " ", "ä", "?"]);
        proptest::collection::vec(part, 0..9).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn clean_path_stays_as_it_is(os in os(), path in path()) {
            let once = clean(os, &path);
            prop_assert_eq!(clean(os, &once), once);
        }

        #[test]
        fn clean_path_is_absolute_if_the_path_is(os in os(), path in path()) {
            let path = to_slash(os, &path);
            prop_assert_eq!(is_absolute(os, &clean(os, &path)), is_absolute(os, &path));
        }

        #[test]
        fn clean_path_has_slashes_only_and_steps_up_at_its_beginning_only(os in os(), path in path()) {
            let clean = clean(os, &path);
            prop_assert!(os != Os::Windows || !clean.contains('\\'));
            let (_, rest) = split_volume(os, &clean);
            let steps: Vec<&str> = rest.split('/').filter(|step| !step.is_empty()).collect();
            let up = steps.iter().take_while(|step| **step == "..").count();
            prop_assert!(!steps[up..].contains(&".."));
            prop_assert!(up == 0 || !is_absolute(os, &clean));
        }

        #[test]
        fn rules_of_windows_are_those_of_unix_for_plain_names(names in proptest::collection::vec("[a-z.]{1,4}", 1..5)) {
            let path = names.join("/");
            prop_assert_eq!(clean(Os::Windows, &path), clean(Os::Unix, &path));
            prop_assert_eq!(clean(Os::Windows, &names.join("\\")), clean(Os::Unix, &path));
            prop_assert_eq!(base(Os::Windows, &path), base(Os::Unix, &path));
        }

        #[test]
        fn volume_and_rest_are_the_path(os in os(), path in path()) {
            let (volume, rest) = split_volume(os, &path);
            prop_assert_eq!(format!("{volume}{rest}"), path);
        }
    }
}

//! Names of objects, and their encoding in URLs.

use monoform_sdk::state_store::DEFAULT;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Characters to encode in a part of a path or query: all except the unreserved characters of RFC 3986.
const PART: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
/// Characters to encode in a path: the same, except that slashes are kept.
const PATH: &AsciiSet = &PART.remove(b'/');

/// Joins the parts of a name, which may contain slashes. As in Terraform, empty parts and `.` are removed, and `..` removes the part before
/// it.
#[must_use]
pub fn joined(parts: &[&str]) -> String {
    let mut out: Vec<&str> = Vec::new();
    for part in parts.iter().flat_map(|part| part.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(out.pop()),
            part => out.push(part),
        }
    }
    out.join("/")
}

/// Returns the object name of a state: `PREFIX/KEY` for the default workspace, `PREFIX/WORKSPACE/KEY` for others.
#[must_use]
pub fn state_object(prefix: &str, workspace: &str, key: &str) -> String {
    match workspace {
        DEFAULT => joined(&[prefix, key]),
        name => joined(&[prefix, name, key]),
    }
}

/// Encodes text as a part of a path or query.
#[must_use]
pub fn encoded(text: &str) -> String {
    utf8_percent_encode(text, PART).to_string()
}

/// Encodes text as a path.
#[must_use]
pub fn encoded_path(text: &str) -> String {
    utf8_percent_encode(text, PATH).to_string()
}

/// Encodes names and values as a query.
#[must_use]
pub fn query<'t>(parts: impl IntoIterator<Item = (&'t str, &'t str)>) -> String {
    let parts: Vec<String> = parts
        .into_iter()
        .map(|(name, value)| format!("{}={}", encoded(name), encoded(value)))
        .collect();
    parts.join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_joined_as_paths() {
        assert_eq!(joined(&["env:", "dev", "a/b.tfstate"]), "env:/dev/a/b.tfstate");
        assert_eq!(joined(&["", "dev", "k"]), "dev/k");
        assert_eq!(joined(&["a//b", "./c", "../d"]), "a/b/d");
    }

    #[test]
    fn addresses_have_what_is_reserved_encoded() {
        assert_eq!(encoded("env:/a b~"), "env%3A%2Fa%20b~");
        assert_eq!(encoded_path("env:/a b~"), "env%3A/a%20b~");
        assert_eq!(query([("prefix", "a/"), ("x", "")]), "prefix=a%2F&x=");
    }
}

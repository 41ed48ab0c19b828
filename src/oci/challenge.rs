//! Parser of the header `WWW-Authenticate`, in which a registry requests authentication.

/// The requested authentication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Challenge {
    /// A name and a password.
    Basic,
    /// A token from the server at `realm`.
    Bearer {
        realm: String,
        service: Option<String>,
        scope: Option<String>,
    },
}

/// Parses the challenges in the headers of a response, and chooses one; a token is preferred. `None` if no scheme is
/// supported.
pub fn challenge<'h>(headers: impl Iterator<Item = &'h str>) -> Option<Challenge> {
    let mut basic = None;
    for (scheme, mut parameters) in headers.flat_map(challenges) {
        if scheme.eq_ignore_ascii_case("basic") {
            basic = Some(Challenge::Basic);
        } else if scheme.eq_ignore_ascii_case("bearer") {
            let mut take = |name: &str| {
                let at = parameters
                    .iter()
                    .position(|(found, _)| found.eq_ignore_ascii_case(name))?;
                Some(parameters.swap_remove(at).1)
            };
            if let Some(realm) = take("realm") {
                // A token is preferred, because it does not send the password with each request.
                return Some(Challenge::Bearer {
                    realm,
                    service: take("service"),
                    scope: take("scope"),
                });
            }
        }
    }
    basic
}

/// Parses the value of a header: `scheme name=value, name="value", scheme …`. Returns the schemes with their parameters.
fn challenges(header: &str) -> Vec<(&str, Vec<(&str, String)>)> {
    let mut found: Vec<(&str, Vec<(&str, String)>)> = Vec::new();
    // Commas separate challenges as well as parameters. An item begins a challenge if its first name is not followed by
    // an equals sign.
    for item in items(header) {
        let (word, rest) = item.split_once(char::is_whitespace).unwrap_or((item, ""));
        let rest = rest.trim_start();
        let text = if word.contains('=') || rest.starts_with('=') {
            item
        } else {
            found.push((word, Vec::new()));
            rest
        };
        if let Some((name, value)) = text.split_once('=')
            && let Some((_, parameters)) = found.last_mut()
        {
            parameters.push((name.trim_end(), unquoted(value.trim_start())));
        }
    }
    found
}

/// Splits a header's value at its commas, except those in quotes. Empty items are left out.
fn items(header: &str) -> impl Iterator<Item = &str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let items = header.split(move |c: char| {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = is_quoted,
            '"' => is_quoted = !is_quoted,
            _ => return c == ',' && !is_quoted,
        }
        false
    });
    items.map(str::trim).filter(|item| !item.is_empty())
}

/// Returns a value without its quotes and escapes.
fn unquoted(value: &str) -> String {
    let Some(text) = value.strip_prefix('"') else {
        return value.to_owned();
    };
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next().filter(|c| *c != '"') {
        match c {
            '\\' => out.extend(chars.next()),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges() {
        let bearer = |realm: &str, service: Option<&str>, scope: Option<&str>| {
            Some(Challenge::Bearer {
                realm: realm.to_owned(),
                service: service.map(str::to_owned),
                scope: scope.map(str::to_owned),
            })
        };
        for (headers, expected) in [
            (
                &["Bearer realm=\"https://auth.example/token\",service=\"r\",scope=\"repository:a:pull,push\""][..],
                bearer("https://auth.example/token", Some("r"), Some("repository:a:pull,push")),
            ),
            (
                &["bearer realm=https://x , service=y"],
                bearer("https://x", Some("y"), None),
            ),
            (&["Bearer realm=\"a\\\"b\""], bearer("a\"b", None, None)),
            (&["Basic realm=\"r\"", "Bearer realm=\"x\""], bearer("x", None, None)),
            (
                &["Basic realm=\"a, Bearer realm=b\", Bearer realm=\"x\",service=\"s, t\", Negotiate"],
                bearer("x", Some("s, t"), None),
            ),
            (
                &["Bearer realm = \"x\" , scope = \"repository:a:pull,push\", Basic realm=\"y\""],
                bearer("x", None, Some("repository:a:pull,push")),
            ),
            (&["Negotiate, Basic"], Some(Challenge::Basic)),
            (
                &["Negotiate YWJj==, , Bearer service=s, realm=\"x\\\",y\""],
                bearer("x\",y", Some("s"), None),
            ),
            (&["Basic realm=\"r\""], Some(Challenge::Basic)),
            (&["basic"], Some(Challenge::Basic)),
            (&["Bearer service=\"x\""], None),
            (&["Digest realm=\"x\"", "", "Bearer realm=\""], bearer("", None, None)),
            (&[], None),
        ] {
            assert_eq!(challenge(headers.iter().copied()), expected, "{headers:?}");
        }
    }
}

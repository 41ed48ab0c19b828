//! The header `WWW-Authenticate`: the authentication that a registry requests.

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

/// Parses the challenge in the headers of a response; tokens are preferred.
pub fn challenge<'h>(headers: impl Iterator<Item = &'h str>) -> Option<Challenge> {
    let mut basic = None;
    for header in headers {
        let (scheme, rest) = header
            .trim()
            .split_once(char::is_whitespace)
            .unwrap_or((header.trim(), ""));
        if scheme.eq_ignore_ascii_case("basic") {
            basic = Some(Challenge::Basic);
        } else if scheme.eq_ignore_ascii_case("bearer") {
            let mut values = parameters(rest);
            let mut take = |name: &str| {
                let at = values.iter().position(|(found, _)| found.eq_ignore_ascii_case(name))?;
                Some(values.swap_remove(at).1)
            };
            if let Some(realm) = take("realm") {
                // A token does not expose the password in each request.
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

/// Parses `name=value, name="value"`.
fn parameters(mut text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    while let Some((name, rest)) = text.split_once('=') {
        let name = name.trim_matches(|c: char| c == ',' || c.is_whitespace()).to_owned();
        let mut value = String::new();
        let mut chars = rest.char_indices();
        // A quoted value may contain commas and escapes.
        let end = if rest.starts_with('"') {
            chars.next();
            loop {
                match chars.next() {
                    Some((_, '\\')) => value.extend(chars.next().map(|(_, c)| c)),
                    Some((at, '"')) => break at + 1,
                    Some((_, c)) => value.push(c),
                    None => break rest.len(),
                }
            }
        } else {
            let end = rest.find(',').unwrap_or(rest.len());
            value.push_str(rest[..end].trim());
            end
        };
        found.push((name, value));
        text = rest.get(end..).unwrap_or("");
    }
    found
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

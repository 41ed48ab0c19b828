//! Addresses of packages in messages and in the index of a mirror.

/// Returns an address for display, without passwords and keys.
pub(crate) fn public(package: &str) -> String {
    let (way, rest) = config::source_address::forced(package);
    let Ok(mut url) = net::Url::parse(rest) else {
        return package.to_owned();
    };
    let secret = |name: &str| {
        [
            "sshkey",
            "aws_access_key_id",
            "aws_access_key_secret",
            "aws_access_token",
        ]
        .contains(&name)
    };
    // Addresses that are signed already, by AWS or by Azure (SAS), are as good as a key until they expire.
    let hides = |name: &str| secret(name) || name.starts_with("X-Amz-") || name.eq_ignore_ascii_case("sig");
    if url.password().is_some() {
        // An address that has a password can be given another.
        let _ = url.set_password(Some("redacted"));
    } else if !url.query_pairs().any(|(name, _)| hides(&name)) {
        // The address stays byte for byte if there is nothing to hide: it is also the key of a package in mirrors.
        return package.to_owned();
    }
    let pairs: Vec<(String, String)> = url
        .query_pairs()
        .map(|(name, value)| {
            let value = if hides(&name) { "redacted".into() } else { value };
            (name.into_owned(), value.into_owned())
        })
        .collect();
    if !pairs.is_empty() {
        url.query_pairs_mut().clear().extend_pairs(pairs);
    }
    way.map_or_else(|| url.to_string(), |way| format!("{way}::{url}"))
}

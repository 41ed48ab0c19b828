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
    // A signed address is as good as a key until it expires. `sig` is used by Azure (SAS); `Signature` by CloudFront and the older
    // signatures of AWS, Google Cloud and Alibaba Cloud.
    let is_of_signature = |name: &str| {
        let name = name.to_ascii_lowercase();
        let prefixes = ["x-amz-", "x-goog-", "x-oss-"];
        prefixes.iter().any(|prefix| name.starts_with(prefix)) || ["sig", "signature"].contains(&&*name)
    };
    let hides = |name: &str| secret(name) || is_of_signature(name);
    // Git services take a token as the user's name, with no password. Names of accounts stay, because addresses may differ only in them.
    // The shortest tokens of GitHub, GitLab and Bitbucket have 20 characters or more.
    let is_token = |name: &str| name.len() >= 20 && matches!(url.scheme(), "http" | "https");
    if url.password().is_some() {
        // Setting the password cannot fail for an address that has one.
        let _ = url.set_password(Some("redacted"));
    } else if is_token(url.username()) {
        let _ = url.set_username("redacted");
    } else if !url.query_pairs().any(|(name, _)| hides(&name)) {
        // If there is nothing to hide, the address stays unchanged byte for byte, because it is also the key of a
        // package in mirrors.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_keys_and_signatures_are_hidden() {
        for (address, shown) in [
            (
                "https://storage.googleapis.com/b/m.zip?X-Goog-Credential=c%40p&X-Goog-Signature=s&archive=zip",
                "https://storage.googleapis.com/b/m.zip?X-Goog-Credential=redacted&X-Goog-Signature=redacted&archive=zip",
            ),
            (
                "https://b.s3.amazonaws.com/m.zip?x-amz-signature=s",
                "https://b.s3.amazonaws.com/m.zip?x-amz-signature=redacted",
            ),
            (
                "https://d.cloudfront.net/m.zip?Expires=1&Signature=s",
                "https://d.cloudfront.net/m.zip?Expires=1&Signature=redacted",
            ),
            (
                "https://a.blob.core.windows.net/c/m.zip?sv=1&sig=s",
                "https://a.blob.core.windows.net/c/m.zip?sv=1&sig=redacted",
            ),
            (
                "git::https://user:word@example.com/m.git?ref=v1",
                "git::https://user:redacted@example.com/m.git?ref=v1",
            ),
            (
                "git::https://glpat-abcdefghijklmnopqrst@gitlab.com/m.git?ref=v1",
                "git::https://redacted@gitlab.com/m.git?ref=v1",
            ),
            (
                "git::https://user@example.com/m.git",
                "git::https://user@example.com/m.git",
            ),
            (
                "s3::https://s3.amazonaws.com/b/m.zip?aws_access_key_secret=s",
                "s3::https://s3.amazonaws.com/b/m.zip?aws_access_key_secret=redacted",
            ),
            (
                "git::https://example.com/m.git?ref=signature",
                "git::https://example.com/m.git?ref=signature",
            ),
        ] {
            assert_eq!(public(address), shown);
        }
    }
}

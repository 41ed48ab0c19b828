//! Signatures of requests to Oracle Cloud.

#![expect(clippy::disallowed_methods, reason = "requests are signed with the time in them")]

use store_client::sum::{base64, sha256_base64};
use store_client::{Failure, HeaderMap, HeaderName, Method, Url, header_value};

use crate::identity::Identity;

/// Header with the token of the user on whose behalf a request is made.
pub(crate) const ANOTHER: &str = "opc-obo-token";

/// Returns the headers of a signed request. With `with_host`, the signature covers the host. The signature covers the body of a POST. It
/// does not cover the body of a PUT, as the service specifies for objects.
pub(crate) fn signed(
    identity: &Identity,
    (method, url): (&Method, &Url),
    headers: &[(&'static str, String)],
    body: Option<&[u8]>,
    with_host: bool,
) -> Result<HeaderMap, Failure> {
    let date = jiff::Timestamp::now().strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    let target = match url.query() {
        Some(query) => format!("{} {}?{query}", method.as_str().to_lowercase(), url.path()),
        None => format!("{} {}", method.as_str().to_lowercase(), url.path()),
    };
    let mut all: Vec<(&'static str, String)> = headers.to_vec();
    let mut parts = vec![("date", date.clone()), ("(request-target)", target)];
    if with_host {
        let host = url.host_str().unwrap_or_default();
        let host = url.port().map_or(host.to_owned(), |port| format!("{host}:{port}"));
        parts.push(("host", host));
    }
    all.push(("date", date));
    if let (Some(body), &Method::POST) = (body, method) {
        let of_body = [
            ("content-length", body.len().to_string()),
            ("content-type", "application/json".to_owned()),
            ("x-content-sha256", sha256_base64(body)),
        ];
        // `content-length` is skipped, because the HTTP client adds it.
        all.extend(of_body[1..].iter().cloned());
        parts.extend(of_body);
    }
    let token = headers.iter().find(|(name, _)| *name == ANOTHER);
    parts.extend(token.cloned());
    let lines: Vec<String> = parts.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    let signature = identity
        .key
        .sign_sha256(lines.join("\n").as_bytes())
        .map_err(|e| Failure {
            message: e.to_string(),
            passing: false,
        })?;
    let names: Vec<&str> = parts.iter().map(|(name, _)| *name).collect();
    let authorization = format!(
        "Signature version=\"1\",headers=\"{}\",keyId=\"{}\",algorithm=\"rsa-sha256\",signature=\"{}\"",
        names.join(" "),
        identity.key_id,
        base64(&signature)
    );
    all.push(("authorization", authorization));
    let mut map = HeaderMap::new();
    for (name, value) in all {
        map.insert(HeaderName::from_static(name), header_value(&value)?);
    }
    Ok(map)
}

//! AWS Signature Version 4 for requests to S3 and other services of AWS.

use std::pin::pin;
use std::task::{Context as TaskContext, Poll, Waker};
use std::time::Duration;

pub use reqsign_aws_v4::Credential;
use reqsign_aws_v4::RequestSigner;
use reqsign_core::{Context, SignRequest as _};
use reqwest::Method;
use reqwest::header::{HOST, HeaderMap};
use url::Url;

/// The service and region in a signature.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'s> {
    pub service: &'s str,
    pub region: &'s str,
}

/// The reason that a request cannot be signed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SignError {
    /// The URL or a header is not valid in a request.
    #[error(transparent)]
    Request(#[from] http_types::Error),
    /// The credentials have expired, or cannot sign.
    #[error(transparent)]
    Signer(#[from] reqsign_core::Error),
    /// The URL with the signature is not valid.
    #[error(transparent)]
    Address(#[from] url::ParseError),
    /// The signer did not finish at once.
    #[error("it is not signed at once")]
    Pending,
}

/// Signs a request. Returns its headers including the signature, without `Host`, which the transport
/// adds.
///
/// # Errors
/// Returns an error if the URL cannot be signed, or if the credentials have expired.
pub fn signed(
    scope: Scope<'_>,
    credential: &Credential,
    method: &Method,
    url: &Url,
    headers: HeaderMap,
) -> Result<HeaderMap, SignError> {
    let mut parts = sign(scope, credential, (method, url, headers), None)?;
    parts.headers.remove(HOST);
    Ok(parts.headers)
}

/// Returns the URL of a GET request with a signature in its query, which is valid for this duration.
///
/// # Errors
/// Returns an error if the URL cannot be signed, or if the credentials expire earlier.
pub fn presigned(scope: Scope<'_>, credential: &Credential, url: &Url, valid: Duration) -> Result<Url, SignError> {
    let parts = sign(scope, credential, (&Method::GET, url, HeaderMap::new()), Some(valid))?;
    Ok(Url::parse(&parts.uri.to_string())?)
}

fn sign(
    scope: Scope<'_>,
    credential: &Credential,
    (method, url, headers): (&Method, &Url, HeaderMap),
    valid: Option<Duration>,
) -> Result<http_types::request::Parts, SignError> {
    let request = http_types::Request::builder().method(method.clone()).uri(url.as_str());
    let mut parts = request.body(())?.into_parts().0;
    parts.headers = headers;
    let signer = RequestSigner::new(scope.service, scope.region);
    let context = Context::new();
    {
        let signing = pin!(signer.sign_request(&context, &mut parts, Some(credential), valid));
        // Signing is computation only, so it never has to wait.
        match signing.poll(&mut TaskContext::from_waker(Waker::noop())) {
            Poll::Ready(signed) => signed?,
            Poll::Pending => return Err(SignError::Pending),
        }
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    const SCOPE: Scope<'_> = Scope {
        service: "s3",
        region: "eu-west-1",
    };

    fn credential(token: Option<&str>) -> Credential {
        Credential {
            access_key_id: "key".to_owned(),
            secret_access_key: "hidden".to_owned(),
            session_token: token.map(str::to_owned),
            ..Credential::default()
        }
    }

    #[test]
    fn headers_carry_the_signature_and_the_token_as_secrets() {
        let url = Url::parse("https://bucket.example/a%20b?x=1").unwrap();
        let headers = signed(SCOPE, &credential(Some("t")), &Method::PUT, &url, HeaderMap::new()).unwrap();
        let authorization = &headers["authorization"];
        let text = authorization.to_str().unwrap();
        assert!(text.starts_with("AWS4-HMAC-SHA256 Credential=key/") && text.contains("/eu-west-1/s3/aws4_request"));
        assert!(authorization.is_sensitive() && headers["x-amz-security-token"].is_sensitive());
        assert!(!headers.contains_key("host"));
    }

    #[test]
    fn address_carries_the_signature_behind_its_own_query() {
        let url = Url::parse("https://bucket.example/a%20b%2Bc?prefix=x%2Fy").unwrap();
        let address = presigned(SCOPE, &credential(None), &url, Duration::from_secs(60)).unwrap();
        assert_eq!(address.path(), url.path());
        let query = address.query().unwrap();
        assert!(
            query.starts_with("prefix=x%2Fy&X-Amz-Algorithm=AWS4-HMAC-SHA256&"),
            "{query}"
        );
        for part in [
            "X-Amz-Credential=key%2F",
            "X-Amz-Expires=60",
            "X-Amz-SignedHeaders=host",
            "X-Amz-Signature=",
        ] {
            assert!(query.contains(part), "{query}");
        }
        assert!(!query.contains("hidden"));
    }
}

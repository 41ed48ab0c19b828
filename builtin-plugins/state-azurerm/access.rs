//! Authorization of requests to Azure Storage.

#![expect(clippy::disallowed_methods, reason = "a signed request has the time in it")]

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, KeyInit as _, Mac as _};
use monoform_sdk::{Diagnostic, Result};
use sha2::Sha256;
use store_client::{Failure, HeaderMap, HeaderValue, Method, Url};

/// Version of the storage REST API.
const VERSION: &str = "2023-11-03";

/// Credentials for requests to the storage account.
pub(crate) enum Access {
    /// Name and key of the account.
    Key(String, Vec<u8>),
    /// Shared access signature (SAS), in the form of a query string.
    Signature(String),
    /// Access token of Entra ID.
    Token,
}

impl Access {
    /// Reads the key of an account.
    pub fn key(account: &str, key: &str) -> Result<Access> {
        let key = BASE64.decode(key.trim()).map_err(|_| {
            Diagnostic::error(
                "Invalid azurerm backend configuration",
                "The key of the storage account is no Base64.",
            )
        })?;
        // The name of the read-only secondary endpoint has a suffix, but signatures contain the account name without it.
        let account = account.strip_suffix("-secondary").unwrap_or(account);
        Ok(Access::Key(account.to_owned(), key))
    }

    /// Signs a request. An access token is not added here, but by the caller.
    pub fn sign(
        &self,
        method: &Method,
        url: &mut Url,
        headers: &mut HeaderMap,
        length: usize,
    ) -> std::result::Result<(), Failure> {
        // The service refuses requests whose date differs by more than 15 minutes, so each attempt is signed again.
        let now = httpdate::fmt_http_date(std::time::SystemTime::now());
        let unusable = |_| Failure {
            message: "a header of the request has characters that HTTP headers cannot have".to_owned(),
            passing: false,
        };
        headers.insert("x-ms-date", HeaderValue::from_str(&now).map_err(unusable)?);
        headers.insert("x-ms-version", HeaderValue::from_static(VERSION));
        match self {
            Access::Token => {}
            Access::Signature(query) => {
                let complete = match url.query().filter(|query| !query.is_empty()) {
                    Some(own) => format!("{own}&{query}"),
                    None => query.clone(),
                };
                url.set_query(Some(&complete));
            }
            Access::Key(account, key) => {
                let text = text_to_sign(account, method, url, headers, length);
                let mut value = HeaderValue::from_str(&format!("SharedKey {account}:{}", signature(key, &text)))
                    .map_err(unusable)?;
                value.set_sensitive(true);
                headers.insert("authorization", value);
            }
        }
        Ok(())
    }
}

fn signature(key: &[u8], text: &str) -> String {
    // HMAC accepts keys of any length, so this cannot fail.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else {
        return String::new();
    };
    mac.update(text.as_bytes());
    BASE64.encode(mac.finalize().into_bytes())
}

/// Returns the text to sign, in the format of "Authorize with Shared Key".
fn text_to_sign(account: &str, method: &Method, url: &Url, headers: &HeaderMap, length: usize) -> String {
    let header = |name: &str| {
        headers
            .get(name)
            .and_then(|v| v.to_str().ok())
            .unwrap_or_default()
            .to_owned()
    };
    // Since version 2015-02-21 a length of zero is an empty line.
    let length = if length == 0 { String::new() } else { length.to_string() };
    let mut lines = vec![
        method.to_string(),
        header("content-encoding"),
        header("content-language"),
        length,
        header("content-md5"),
        header("content-type"),
        // The header date is empty because x-ms-date is used.
        String::new(),
        header("if-modified-since"),
        header("if-match"),
        header("if-none-match"),
        header("if-unmodified-since"),
        header("range"),
    ];
    let own: BTreeMap<&str, &str> = headers
        .iter()
        .filter(|(name, _)| name.as_str().starts_with("x-ms-"))
        .filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?.trim())))
        .collect();
    lines.extend(own.iter().map(|(name, value)| format!("{name}:{value}")));
    lines.push(format!("/{account}{}", url.path()));
    let mut parameters: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in url.query_pairs() {
        parameters
            .entry(name.to_lowercase())
            .or_default()
            .push(value.into_owned());
    }
    for (name, mut values) in parameters {
        values.sort();
        lines.push(format!("{name}:{}", values.join(",")));
    }
    lines.join("\n")
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn the_text_to_sign_is_that_of_the_documentation() {
        // The example "Get Container Metadata" of the page "Authorize with Shared Key".
        let url =
            Url::parse("http://myaccount.blob.core.windows.net/mycontainer?restype=container&comp=metadata&timeout=20")
                .unwrap();
        let mut headers = HeaderMap::new();
        headers.insert("x-ms-date", HeaderValue::from_static("Fri, 26 Jun 2015 23:39:12 GMT"));
        headers.insert("x-ms-version", HeaderValue::from_static("2015-02-21"));
        assert_eq!(
            text_to_sign("myaccount", &Method::GET, &url, &headers, 0),
            "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Fri, 26 Jun 2015 23:39:12 GMT\nx-ms-version:2015-02-21\n/myaccount/mycontainer\n\
             comp:metadata\nrestype:container\ntimeout:20"
        );
    }

    #[test]
    fn signatures_are_hmac_sha256() {
        // Test case 2 of RFC 4231.
        assert_eq!(
            signature(b"Jefe", "what do ya want for nothing?"),
            BASE64.encode(expected())
        );
    }

    fn expected() -> Vec<u8> {
        let text = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        (0..text.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
            .collect()
    }
}

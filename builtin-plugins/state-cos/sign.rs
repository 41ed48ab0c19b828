//! The two signature methods of Tencent Cloud: for buckets, and for other services.

use std::collections::BTreeMap;

use store_client::credential::Credential;
use store_client::name::encoded;
use store_client::sum::{hex, hmac_sha1, hmac_sha256, sha1_hex, sha256_hex};

/// Encodes names (in lower case) and values for a signature. Returns the list of names, and the list of pairs.
fn listed(parts: &[(&str, &str)]) -> (String, String) {
    let sorted: BTreeMap<String, String> = parts
        .iter()
        .map(|(name, value)| (encoded(name).to_lowercase(), encoded(value)))
        .collect();
    let names: Vec<&str> = sorted.keys().map(String::as_str).collect();
    let all: Vec<String> = sorted.iter().map(|(name, value)| format!("{name}={value}")).collect();
    (names.join(";"), all.join("&"))
}

/// Returns the header `authorization` for a request to a bucket. `path` is not percent-encoded, and `time` has the form `FROM;TO` in
/// seconds since 1970.
pub(crate) fn of_bucket(
    credential: &Credential,
    method: &str,
    path: &str,
    query: &[(&str, &str)],
    headers: &[(&str, &str)],
    time: &str,
) -> String {
    let (query_names, query) = listed(query);
    let (header_names, headers) = listed(headers);
    // The derived key is used as a hexadecimal string, not as bytes.
    let key = hex(&hmac_sha1(credential.key.as_bytes(), time.as_bytes()));
    let request = format!("{}\n{path}\n{query}\n{headers}\n", method.to_lowercase());
    let text = format!("sha1\n{time}\n{}\n", sha1_hex(request.as_bytes()));
    let signature = hex(&hmac_sha1(key.as_bytes(), text.as_bytes()));
    format!(
        "q-sign-algorithm=sha1&q-ak={}&q-sign-time={time}&q-key-time={time}&q-header-list={header_names}&q-url-param-list=\
         {query_names}&q-signature={signature}",
        credential.id
    )
}

/// A call of another service.
pub(crate) struct Call<'a> {
    pub service: &'a str,
    pub host: &'a str,
    pub content_type: &'a str,
    pub body: &'a str,
    /// Time in seconds since 1970.
    pub time: i64,
    /// Day of the time in UTC, such as `2019-02-25`.
    pub day: &'a str,
}

/// Returns the header `authorization` for a call (TC3-HMAC-SHA256).
pub(crate) fn of_call(credential: &Credential, call: &Call<'_>) -> String {
    const SIGNED: &str = "content-type;host";
    let request = format!(
        "POST\n/\n\ncontent-type:{}\nhost:{}\n\n{SIGNED}\n{}",
        call.content_type,
        call.host,
        sha256_hex(call.body.as_bytes())
    );
    let scope = format!("{}/{}/tc3_request", call.day, call.service);
    let text = format!(
        "TC3-HMAC-SHA256\n{}\n{scope}\n{}",
        call.time,
        sha256_hex(request.as_bytes())
    );
    let mut key = format!("TC3{}", credential.key).into_bytes();
    for part in [call.day, call.service, "tc3_request"] {
        key = hmac_sha256(&key, part.as_bytes());
    }
    let signature = hex(&hmac_sha256(&key, text.as_bytes()));
    format!(
        "TC3-HMAC-SHA256 Credential={}/{scope}, SignedHeaders={SIGNED}, Signature={signature}",
        credential.id
    )
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn requests_to_buckets_are_signed_as_in_the_documentation() {
        let credential = Credential {
            id: "AKIDQjz3ltompVjBni5LitkWHFlFpwkn9U5q".into(),
            key: "BQYIM75p8x0iWVFSIgqEKwFprpRSVHlz".into(),
            token: None,
        };
        let headers = [
            ("Date", "Thu, 16 May 2019 06:45:51 GMT"),
            ("Host", "examplebucket-1250000000.cos.ap-beijing.myqcloud.com"),
            ("Content-Type", "text/plain"),
            ("Content-Length", "13"),
            ("Content-MD5", "mQ/fVh815F3k6TAUm8m0eg=="),
            ("x-cos-acl", "private"),
            ("x-cos-grant-read", "uin=\"100000000011\""),
        ];
        let path = "/exampleobject(\u{817e}\u{8baf}\u{4e91})";
        let value = of_bucket(&credential, "PUT", path, &[], &headers, "1557989151;1557996351");
        assert!(
            value.ends_with("&q-signature=3b8851a11a569213c17ba8fa7dcf2abec6935172"),
            "{value}"
        );
        assert!(
            value.contains(
                "&q-header-list=content-length;content-md5;content-type;date;host;x-cos-acl;x-cos-grant-read&"
            )
        );
    }

    #[test]
    fn calls_are_signed_as_in_the_documentation() {
        let credential = Credential {
            id: "AKIDz8krbsJ5yKBZQpn74WFkmLPx3EXAMPLE".into(),
            key: "Gu5t9xGARNpq86cd98joQYCN3EXAMPLE".into(),
            token: None,
        };
        let call = Call {
            service: "cvm",
            host: "cvm.tencentcloudapi.com",
            content_type: "application/json; charset=utf-8",
            body: r#"{"Limit": 1, "Filters": [{"Values": ["\u672a\u547d\u540d"], "Name": "instance-name"}]}"#,
            time: 1_551_113_065,
            day: "2019-02-25",
        };
        assert_eq!(
            of_call(&credential, &call),
            "TC3-HMAC-SHA256 Credential=AKIDz8krbsJ5yKBZQpn74WFkmLPx3EXAMPLE/2019-02-25/cvm/tc3_request, \
             SignedHeaders=content-type;host, Signature=72e494ea809ad7a8c8f7a4507b9bddcbaa8e581f516e8da2f66e2c5a96525168"
        );
    }
}

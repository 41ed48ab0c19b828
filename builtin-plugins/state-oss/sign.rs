//! The three signature methods of Alibaba Cloud, all with HMAC-SHA1: for buckets, for tables, and for other services.

use std::collections::BTreeMap;

use store_client::name::encoded;
use store_client::sum::{base64, hmac_sha1};

/// Signs a request to a bucket. `headers` has the headers that begin with `x-oss-`. `resource` is the bucket and the object, not
/// percent-encoded.
pub(crate) fn of_bucket(
    key: &str,
    [method, content_md5, content_type, date]: [&str; 4],
    headers: &[(&str, &str)],
    resource: &str,
) -> String {
    // The signature covers the headers sorted by name.
    let sorted: BTreeMap<&str, &str> = headers.iter().copied().collect();
    let headers: String = sorted.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
    let text = format!("{method}\n{content_md5}\n{content_type}\n{date}\n{headers}{resource}");
    base64(&hmac_sha1(key.as_bytes(), text.as_bytes()))
}

/// Signs a request to a table. The signature covers the path, and all headers that begin with `x-ots-`.
pub(crate) fn of_table(key: &str, path: &str, headers: &[(&str, &str)]) -> String {
    let sorted: BTreeMap<&str, &str> = headers.iter().copied().collect();
    let headers: String = sorted
        .iter()
        .map(|(name, value)| format!("{name}:{}\n", value.trim()))
        .collect();
    let text = format!("{path}\nPOST\n\n{headers}");
    base64(&hmac_sha1(key.as_bytes(), text.as_bytes()))
}

/// Signs a call of another service with these parameters.
pub(crate) fn of_call(key: &str, method: &str, parameters: &BTreeMap<&str, &str>) -> String {
    let all: Vec<String> = parameters
        .iter()
        .map(|(name, value)| format!("{}={}", encoded(name), encoded(value)))
        .collect();
    let text = format!("{method}&%2F&{}", encoded(&all.join("&")));
    base64(&hmac_sha1(format!("{key}&").as_bytes(), text.as_bytes()))
}

#[cfg(test)]
mod unit {
    use super::*;

    /// The example of "Include signatures in the Authorization header" (OSS, version 1).
    #[test]
    fn requests_to_buckets_are_signed_as_in_the_documentation() {
        let key = "OtxrzxIsfpFjA7SwPzILwy8Bw21TLhquhboDYROV";
        let headers = [("x-oss-magic", "abracadabra"), ("x-oss-meta-author", "foo@bar.com")];
        let sum = "ODBGOERFMDMzQTczRUY3NUE3NzA5QzdFNUYzMDQxNEM=";
        let about = ["PUT", sum, "text/html", "Thu, 17 Nov 2005 18:49:58 GMT"];
        let text = of_bucket(key, about, &headers, "/oss-example/nelson");
        assert_eq!(text, "26NBxoKdsyly4EDv6inkoDft/yA=");
    }

    /// The example of "Request signatures" (RPC): DescribeRegions of ECS.
    #[test]
    fn calls_are_signed_as_in_the_documentation() {
        let parameters = BTreeMap::from([
            ("AccessKeyId", "testid"),
            ("Action", "DescribeRegions"),
            ("Format", "XML"),
            ("SignatureMethod", "HMAC-SHA1"),
            ("SignatureNonce", "3ee8c1b8-83d3-44af-a94f-4e0ad82fd6cf"),
            ("SignatureVersion", "1.0"),
            ("Timestamp", "2016-02-23T12:46:24Z"),
            ("Version", "2014-05-26"),
        ]);
        assert_eq!(
            of_call("testsecret", "GET", &parameters),
            "OLeaidS1JvxuMvnyHOwuJ+uX5qY="
        );
    }
}

//! A fake bucket and table of Alibaba Cloud. Every request is checked against the published interfaces of both: its signature
//! is recomputed from the secret key, as are the checksums of its content and of its rows.

use std::collections::BTreeMap;
use std::sync::Mutex;

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use md5::{Digest as _, Md5};
use support::server::{Reply, Request, Server, decoded};

use crate::cos::crc64;
use crate::lab::{Lab, Tool};

/// Headers that a signature can cover. They are listed because the test server returns headers only by name.
const OSS_HEADERS: [&str; 4] = [
    "x-oss-acl",
    "x-oss-object-acl",
    "x-oss-security-token",
    "x-oss-server-side-encryption",
];
const OTS_HEADERS: [&str; 6] = [
    "x-ots-accesskeyid",
    "x-ots-apiversion",
    "x-ots-contentmd5",
    "x-ots-date",
    "x-ots-instancename",
    "x-ots-ststoken",
];

/// Programs that the tests need. Terraform 1.11 lacks an argument that the recordings have.
pub const PROGRAMS: &[&str] = &["terraform-1.16"];

#[derive(Default)]
struct Account {
    objects: BTreeMap<String, Vec<u8>>,
    /// Columns of rows, by key.
    rows: BTreeMap<String, Vec<(String, String)>>,
}

fn signed(text: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, b"secret");
    BASE64.encode(hmac::sign(&key, text.as_bytes()))
}

fn refusal(status: u16, code: &str) -> Reply {
    Reply::new(
        status,
        format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>no</Message></Error>"),
    )
}

fn answer(account: &mut Account, request: &Request) -> Reply {
    if request.method() == "POST" {
        return table(account, request);
    }
    let path = decoded(request.path());
    let resource = match request.line.contains("?objectMeta") {
        true => format!("{path}?objectMeta"),
        false => path.clone(),
    };
    let own: String = OSS_HEADERS
        .iter()
        .filter(|name| !request.header(name).is_empty())
        .map(|name| format!("{name}:{}\n", request.header(name)))
        .collect();
    let sum = request.header("content-md5");
    assert!(sum.is_empty() || sum == BASE64.encode(Md5::digest(&request.body)));
    let text = format!(
        "{}\n{sum}\n{}\n{}\n{own}{resource}",
        request.method(),
        request.header("content-type"),
        request.header("date"),
    );
    if request.header("authorization") != format!("OSS id:{}", signed(&text)) {
        return refusal(403, "SignatureDoesNotMatch");
    }
    let Some(name) = path.strip_prefix("/states/") else {
        return refusal(404, "NoSuchBucket");
    };
    match request.method() {
        "GET" if name.is_empty() => listed(account, request),
        "GET" => match account.objects.get(name) {
            Some(content) => Reply::ok(content.clone()),
            None => refusal(404, "NoSuchKey"),
        },
        "HEAD" if account.objects.contains_key(name) => Reply::status(200),
        "HEAD" => Reply::status(404),
        "PUT" => {
            assert_eq!(request.header("x-oss-server-side-encryption"), "AES256");
            // Terraform sends the header for buckets, which has no effect on an object.
            let acl = [request.header("x-oss-object-acl"), request.header("x-oss-acl")];
            assert!(acl.contains(&"private"));
            assert_eq!(request.header("content-type"), "application/json");
            account.objects.insert(name.to_owned(), request.body.clone());
            Reply::status(200).with("x-oss-hash-crc64ecma", &crc64(&request.body).to_string())
        }
        "DELETE" => {
            account.objects.remove(name);
            Reply::status(204)
        }
        other => panic!("{other}"),
    }
}

/// Answers a list with two objects on a page, so that there are several pages.
fn listed(account: &Account, request: &Request) -> Reply {
    let query = |name| request.query(name).unwrap_or_default();
    let (prefix, marker) = (query("prefix"), query("marker"));
    let mut names = account
        .objects
        .keys()
        .filter(|name| name.starts_with(&prefix) && **name > marker);
    let page: Vec<String> = names.by_ref().take(2).cloned().collect();
    let shown = |name: &str| match query("encoding-type").as_str() {
        "url" => name.replace('/', "%2F").replace(':', "%3A"),
        _ => name.to_owned(),
    };
    let all: String = page
        .iter()
        .map(|name| format!("<Contents><Key>{}</Key></Contents>", shown(name)))
        .collect();
    let more = names.next().is_some();
    let next = page.last().filter(|_| more).map_or(String::new(), |name| shown(name));
    Reply::ok(format!(
        "<?xml version=\"1.0\"?><ListBucketResult><Name>states</Name><IsTruncated>{more}</IsTruncated><NextMarker>{next}</NextMarker>{all}\
         </ListBucketResult>"
    ))
}

/// Decodes a Protocol Buffers message. Returns the number of each field, with its bytes (else empty) or its integer
/// (else 0).
fn fields(mut bytes: &[u8]) -> Vec<(u8, Vec<u8>, u64)> {
    let varint = |bytes: &mut &[u8]| {
        let (mut value, mut shift) = (0_u64, 0);
        loop {
            let byte = bytes[0];
            *bytes = &bytes[1..];
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                return value;
            }
        }
    };
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let field = u8::try_from(tag >> 3).expect("a small number");
        let value = varint(&mut bytes);
        match tag & 7 {
            0 => all.push((field, Vec::new(), value)),
            2 => {
                let (content, rest) = bytes.split_at(usize::try_from(value).expect("a length"));
                all.push((field, content.to_vec(), 0));
                bytes = rest;
            }
            other => panic!("wire type {other}"),
        }
    }
    all
}

fn bytes_field(field: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![field << 3 | 2];
    let mut length = content.len();
    while length > 0x7f {
        out.push(u8::try_from(length & 0x7f).expect("seven bits") | 0x80);
        length >>= 7;
    }
    out.push(u8::try_from(length).expect("seven bits"));
    out.extend(content);
    out
}

fn crc8(crc: u8, bytes: &[u8]) -> u8 {
    let mut crc = crc;
    for byte in bytes {
        crc ^= byte;
        for _ in 0..8 {
            crc = if crc >= 0x80 { (crc << 1) ^ 7 } else { crc << 1 };
        }
    }
    crc
}

/// Decodes a row. Returns its cells, and true if it is marked as deleted. Verifies every checksum.
fn row(bytes: &[u8]) -> (Vec<(String, String)>, bool) {
    assert_eq!(&bytes[..4], [0x75, 0, 0, 0]);
    let mut at = 4;
    let (mut cells, mut check, mut deleted) = (Vec::new(), 0, false);
    let number =
        |at: usize| usize::try_from(u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four"))).expect("a length");
    loop {
        match bytes[at] {
            1 | 2 => at += 1,
            8 => {
                deleted = true;
                at += 1;
            }
            9 => {
                assert_eq!(bytes[at + 1], crc8(check, &[u8::from(deleted)]), "the check of the row");
                assert_eq!(at + 2, bytes.len());
                return (cells, deleted);
            }
            3 => {
                assert_eq!(bytes[at + 1], 4);
                let length = number(at + 2);
                let name = &bytes[at + 6..at + 6 + length];
                at += 6 + length;
                assert_eq!((bytes[at], bytes[at + 5]), (5, 3), "a text");
                let length = number(at + 6);
                assert_eq!(number(at + 1), length + 5);
                let value = &bytes[at + 10..at + 10 + length];
                let own = crc8(crc8(0, name), &bytes[at + 5..at + 10 + length]);
                at += 10 + length;
                assert_eq!((bytes[at], bytes[at + 1]), (10, own), "the check of the cell");
                at += 2;
                check = crc8(check, &[own]);
                let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
                cells.push((text(name), text(value)));
            }
            other => panic!("tag {other}"),
        }
    }
}

/// Encodes a row as the service does, but with 0 as each checksum. The cells of columns contain a timestamp.
fn row_bytes(key: &str, columns: &[(String, String)]) -> Vec<u8> {
    let mut out = vec![0x75, 0, 0, 0, 1];
    let cell = |out: &mut Vec<u8>, name: &str, value: &str, time: bool| {
        let length = |text: &str| u32::try_from(text.len()).expect("a length");
        out.extend([3, 4]);
        out.extend(length(name).to_le_bytes());
        out.extend(name.as_bytes());
        out.push(5);
        out.extend((length(value) + 5).to_le_bytes());
        out.push(3);
        out.extend(length(value).to_le_bytes());
        out.extend(value.as_bytes());
        if time {
            out.push(7);
            out.extend(1_700_000_000_000_i64.to_le_bytes());
        }
        out.extend([10, 0]);
    };
    cell(&mut out, "LockID", key, false);
    if !columns.is_empty() {
        out.push(2);
    }
    for (name, value) in columns {
        cell(&mut out, name, value, true);
    }
    out.extend([9, 0]);
    out
}

fn table(account: &mut Account, request: &Request) -> Reply {
    let headers: String = OTS_HEADERS
        .iter()
        .filter(|name| !request.header(name).is_empty())
        .map(|name| format!("{name}:{}\n", request.header(name)))
        .collect();
    let text = format!("{}\nPOST\n\n{headers}", request.path());
    assert_eq!(request.header("x-ots-signature"), signed(&text), "{text}");
    assert_eq!(
        request.header("x-ots-contentmd5"),
        BASE64.encode(Md5::digest(&request.body))
    );
    // The instance's name is the first label of the host name.
    assert_eq!(request.header("x-ots-instancename"), "127");
    let parts = fields(&request.body);
    let bytes = |number: u8| {
        let found = parts.iter().find(|(field, ..)| *field == number);
        found.map(|(_, content, _)| content.clone()).unwrap_or_default()
    };
    let refused = |status, code: &str| {
        Reply::new(
            status,
            [bytes_field(1, code.as_bytes()), bytes_field(2, b"no")].concat(),
        )
    };
    if bytes(1) != b"locks" {
        return refused(404, "OTSObjectNotExist");
    }
    // Each answer reports the consumed capacity.
    let capacity = bytes_field(1, &[0x08, 0, 0x10, 1]);
    let consumed = bytes_field(1, &capacity);
    if request.path() == "/DescribeTable" {
        let column = [bytes_field(1, b"LockID"), vec![0x10, 2]].concat();
        let meta = [bytes_field(1, b"locks"), bytes_field(2, &column)].concat();
        let reserved = [capacity, vec![0x10, 1]].concat();
        let parts = [
            bytes_field(1, &meta),
            bytes_field(2, &reserved),
            bytes_field(3, &[0x08, 1, 0x10, 1]),
            vec![0x20, 1],
        ];
        return Reply::ok(parts.concat());
    }
    let (mut cells, deleted) = row(&bytes(2));
    let (name, key) = cells.remove(0);
    assert_eq!(name, "LockID");
    // In a read the third field is a list of columns, and in a change it is the condition.
    let expected = match request.path() {
        "/GetRow" => 0,
        _ => fields(&bytes(3)).first().map_or(0, |(.., number)| *number),
    };
    match request.path() {
        "/PutRow" if expected == 2 && account.rows.contains_key(&key) => refused(403, "OTSConditionCheckFail"),
        "/PutRow" => {
            account.rows.insert(key, cells);
            Reply::ok(consumed)
        }
        "/GetRow" => {
            let found = account
                .rows
                .get(&key)
                .map_or(Vec::new(), |columns| row_bytes(&key, columns));
            Reply::ok([consumed, bytes_field(2, &found)].concat())
        }
        "/DeleteRow" => {
            assert!(deleted, "the row has the mark of deletion");
            match account.rows.remove(&key) {
                None if expected == 1 => refused(403, "OTSConditionCheckFail"),
                _ => Reply::ok(consumed),
            }
        }
        other => panic!("{other}"),
    }
}

pub fn lab() -> Lab {
    let account = Mutex::new(Account::default());
    let server = Server::http(move |request| answer(&mut account.lock().expect("the account"), request));
    let address = format!("http://{}", server.host());
    let environment = [
        ("ALICLOUD_ACCESS_KEY", "id"),
        ("ALICLOUD_SECRET_KEY", "secret"),
        ("ALICLOUD_REGION", "cn-beijing"),
    ];
    Lab {
        ty: "oss",
        settings: format!(
            "bucket = \"states\"\nprefix = \"a:/b\"\nencrypt = true\nacl = \"private\"\nendpoint = \"{address}\"\n\
             tablestore_endpoint = \"{address}\"\ntablestore_table = \"locks\""
        ),
        environment: environment
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec(),
        workspaces: true,
        named_locks: true,
        peer: Tool::Terraform,
        recorder: Tool::NewerTerraform,
        server: Box::new(server),
    }
}

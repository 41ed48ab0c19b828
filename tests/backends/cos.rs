//! A fake of Tencent Cloud's object storage with tags. Both programs connect to the real names of the servers, through a proxy that
//! forwards every connection to the fake. Both trust only its certificate.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use serde_json::{Value as Json, json};
use support::server::{Reply, Request, Server, decoded};

use crate::lab::{Lab, Tool};
use crate::server::proxy;

#[derive(Default)]
struct Account {
    /// Content and checksum of each object, by name.
    objects: BTreeMap<String, (Vec<u8>, String)>,
    tags: BTreeSet<String>,
}

fn answer(account: &mut Account, request: &Request) -> Reply {
    let host = request.header("host").to_owned();
    if host == "tag.tencentcloudapi.com" {
        return tag(account, request);
    }
    assert_eq!(host, "states-1250000000.cos.ap-guangzhou.myqcloud.com");
    assert!(request.header("authorization").contains("q-ak=id&"), "{}", request.line);
    let name = decoded(&request.path()[1..]);
    match request.method() {
        "GET" if name.is_empty() => {
            let prefix = request.query("prefix").unwrap_or_default();
            let names = account.objects.keys().filter(|name| name.starts_with(&prefix));
            let listed: String = names
                .map(|name| format!("<Contents><Key>{name}</Key></Contents>"))
                .collect();
            Reply::ok(format!(
                "<?xml version='1.0'?><ListBucketResult><IsTruncated>false</IsTruncated>{listed}</ListBucketResult>"
            ))
        }
        "GET" => match account.objects.get(&name) {
            Some((content, sum)) => Reply::ok(content.clone()).with("x-cos-meta-md5", sum),
            None => Reply::new(404, "<?xml version='1.0'?><Error><Code>NoSuchKey</Code></Error>"),
        },
        "PUT" => {
            let sum = request.header("x-cos-meta-md5").to_owned();
            assert_eq!(request.header("x-cos-server-side-encryption"), "AES256");
            let check = crc64(&request.body).to_string();
            account.objects.insert(name, (request.body.clone(), sum));
            Reply::status(200).with("x-cos-hash-crc64ecma", &check)
        }
        "DELETE" => {
            account.objects.remove(&name);
            Reply::status(204)
        }
        other => panic!("{other}"),
    }
}

/// Returns the CRC-64 with ECMA's polynomial, which the official client compares.
pub fn crc64(bytes: &[u8]) -> u64 {
    let step = |crc: u64, byte: &u8| {
        (0..8).fold(crc ^ u64::from(*byte), |crc, _| match crc & 1 {
            1 => (crc >> 1) ^ 0xc96c_5795_d787_0f42,
            _ => crc >> 1,
        })
    };
    !bytes.iter().fold(!0, step)
}

fn tag(account: &mut Account, request: &Request) -> Reply {
    let body: Json = serde_json::from_slice(&request.body).expect("JSON");
    let (key, value) = (
        body["TagKey"].clone(),
        body["TagValue"].as_str().unwrap_or_default().to_owned(),
    );
    assert!(
        request
            .header("authorization")
            .starts_with("TC3-HMAC-SHA256 Credential=id/")
    );
    let response = match request.header("x-tc-action") {
        "CreateTag" if account.tags.insert(value.clone()) => json!({"RequestId": "1"}),
        "CreateTag" => {
            json!({"Error": {"Code": "ResourceInUse.TagDuplicate", "Message": "tag exists"}, "RequestId": "1"})
        }
        "DescribeTags" if account.tags.contains(&value) => {
            json!({"TotalCount": 1, "Tags": [{"TagKey": key, "TagValue": value}], "RequestId": "1"})
        }
        "DescribeTags" => json!({"TotalCount": 0, "Tags": [], "RequestId": "1"}),
        "DeleteTag" => {
            account.tags.remove(&value);
            json!({"RequestId": "1"})
        }
        other => panic!("{other}"),
    };
    Reply::json(&json!({"Response": response}).to_string())
}

pub fn lab() -> Lab {
    let account = Mutex::new(Account::default());
    let names = ["*.cos.ap-guangzhou.myqcloud.com", "tag.tencentcloudapi.com"];
    let server = Server::https_as(&names, move |request| {
        answer(&mut account.lock().expect("objects"), request)
    });
    let dir = tempfile::tempdir().expect("a directory");
    let certificate = dir.path().join("cert.pem");
    std::fs::write(&certificate, &server.certificate).expect("a file");
    let port: u16 = server
        .host()
        .rsplit(':')
        .next()
        .and_then(|port| port.parse().ok())
        .expect("a port");
    let environment = [
        ("HTTPS_PROXY", format!("http://127.0.0.1:{}", proxy(port))),
        ("NO_PROXY", String::new()),
        ("SSL_CERT_FILE", certificate.display().to_string()),
        ("TENCENTCLOUD_SECRET_ID", "id".to_owned()),
        ("TENCENTCLOUD_SECRET_KEY", "key".to_owned()),
    ];
    Lab {
        ty: "cos",
        settings: "bucket = \"states-1250000000\"\nregion = \"ap-guangzhou\"\nprefix = \"a/b\"".to_owned(),
        environment: environment.map(|(name, value)| (name.to_owned(), value)).to_vec(),
        workspaces: true,
        named_locks: true,
        peer: Tool::Terraform,
        recorder: Tool::Terraform,
        server: Box::new((server, dir)),
    }
}

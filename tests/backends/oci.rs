//! A fake bucket of Oracle Cloud. The signature of every request is verified with the user's public key, over the headers that it
//! lists; these must include all that Oracle requires.

use std::collections::BTreeMap;
use std::sync::Mutex;

use aws_lc_rs::encoding::{AsDer as _, Pkcs8V1Der};
use aws_lc_rs::rsa::{KeyPair, KeySize};
use aws_lc_rs::signature::{KeyPair as _, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use md5::{Digest as _, Md5};
use serde_json::json;
use sha2::Sha256;
use support::server::{Reply, Request, Server, decoded};

use crate::lab::{Lab, Tool, run};

const KEY_ID: &str = "ocid1.tenancy.oc1..t/ocid1.user.oc1..u/11:22";
const CUSTOMER_KEY: &str = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";

#[derive(Default)]
struct Bucket {
    /// Content and version of each object, by name.
    objects: BTreeMap<String, (Vec<u8>, u64)>,
    written: u64,
    /// Parts of unfinished uploads.
    parts: BTreeMap<String, Vec<u8>>,
}

fn refusal(status: u16, code: &str) -> Reply {
    Reply::new(status, json!({"code": code, "message": "no"}).to_string())
}

/// Returns true if the signature is that of the user, over all headers that must be signed.
fn is_signed(public: &[u8], request: &Request) -> bool {
    let authorization = request.header("authorization");
    let part = |name: &str| {
        let rest = authorization.split(&format!("{name}=\"")).nth(1)?;
        rest.split('"').next().map(str::to_owned)
    };
    let (Some(names), Some(signature)) = (part("headers"), part("signature")) else {
        return false;
    };
    let names: Vec<&str> = names.split(' ').collect();
    let mut needed = vec!["date", "(request-target)", "host"];
    if request.method() == "POST" {
        needed.extend(["content-length", "content-type", "x-content-sha256"]);
    }
    let sum = request.header("x-content-sha256");
    let sum_is_right = sum.is_empty() || sum == BASE64.encode(Sha256::digest(&request.body));
    let target = request
        .line
        .rsplit_once(" HTTP/")
        .map_or(request.line.as_str(), |(line, _)| line);
    let (method, target) = target.split_once(' ').expect("a method");
    let lines: Vec<String> = names
        .iter()
        .map(|name| match *name {
            "(request-target)" => format!("{name}: {} {target}", method.to_lowercase()),
            name => format!("{name}: {}", request.header(name)),
        })
        .collect();
    let key = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, public);
    let signature = BASE64.decode(signature).unwrap_or_default();
    part("keyId").as_deref() == Some(KEY_ID)
        && part("algorithm").as_deref() == Some("rsa-sha256")
        && needed.iter().all(|name| names.contains(name))
        && sum_is_right
        && key.verify(lines.join("\n").as_bytes(), &signature).is_ok()
}

fn answer(bucket: &mut Bucket, public: &[u8], request: &Request) -> Reply {
    if !is_signed(public, request) {
        return refusal(401, "NotAuthenticated");
    }
    let Some(rest) = request.path().strip_prefix("/n/space/b/states/") else {
        return refusal(404, "BucketNotFound");
    };
    let (kind, name) = rest.split_once('/').unwrap_or((rest, ""));
    let name = decoded(name);
    let sum = request.header("content-md5");
    assert!(sum.is_empty() || sum == BASE64.encode(Md5::digest(&request.body)));
    match (request.method(), kind, name.as_str()) {
        ("GET", "o", "") => listed(bucket, request),
        ("GET", "objectversions", "") => {
            let prefix = request.query("prefix").unwrap_or_default();
            let names = bucket.objects.iter().filter(|(name, _)| name.starts_with(&prefix));
            let items: Vec<_> = names
                .map(|(name, (_, version))| json!({"name": name, "versionId": version.to_string(), "isDeleteMarker": false}))
                .collect();
            Reply::json(&json!({"items": items, "prefixes": []}).to_string())
        }
        ("GET" | "HEAD", "o", _) => match bucket.objects.get(&name) {
            None => refusal(404, "ObjectNotFound"),
            Some((content, version)) => {
                let matches = request.header("if-match");
                let tag = format!("v{version}");
                if !matches.is_empty() && matches != tag {
                    return refusal(412, "IfMatchFailed");
                }
                assert!(name.ends_with(".lock") || request.header("opc-sse-customer-key") == CUSTOMER_KEY);
                let reply = match request.method() {
                    "HEAD" => Reply::status(200),
                    _ => Reply::ok(content.clone()),
                };
                reply
                    .with("etag", &tag)
                    .with("content-md5", &BASE64.encode(Md5::digest(content)))
            }
        },
        ("PUT", "o", _) => {
            if request.header("if-none-match") == "*" && bucket.objects.contains_key(&name) {
                return refusal(412, "IfNoneMatchFailed");
            }
            assert!(name.ends_with(".lock") || request.header("opc-sse-customer-key") == CUSTOMER_KEY);
            bucket.put(name, request.body.clone())
        }
        ("DELETE", "o", _) => {
            let Some((_, version)) = bucket.objects.get(&name) else {
                return refusal(404, "ObjectNotFound");
            };
            let matches = request.header("if-match");
            if !matches.is_empty() && matches != format!("v{version}") {
                return refusal(412, "IfMatchFailed");
            }
            bucket.objects.remove(&name);
            Reply::status(204)
        }
        ("POST", "u", "") => {
            bucket.parts.clear();
            let json: serde_json::Value = serde_json::from_slice(&request.body).expect("JSON");
            Reply::json(
                &json!({"uploadId": "1", "object": json["object"], "namespace": "space", "bucket": "states"})
                    .to_string(),
            )
        }
        ("PUT", "u", _) => {
            let number = request.query("uploadPartNum").expect("a number");
            bucket.parts.insert(format!("{number:0>5}"), request.body.clone());
            Reply::status(200).with("etag", &number)
        }
        ("POST", "u", _) => {
            let content: Vec<u8> = std::mem::take(&mut bucket.parts).into_values().flatten().collect();
            bucket.put(name, content)
        }
        other => panic!("{other:?}"),
    }
}

impl Bucket {
    fn put(&mut self, name: String, content: Vec<u8>) -> Reply {
        self.written += 1;
        self.objects.insert(name, (content, self.written));
        Reply::status(200).with("etag", &format!("v{}", self.written))
    }
}

/// Answers a list. Pages have the length that is requested.
fn listed(bucket: &Bucket, request: &Request) -> Reply {
    let query = |name| request.query(name).unwrap_or_default();
    let (prefix, start) = (query("prefix"), query("start"));
    let limit: usize = query("limit").parse().unwrap_or(1000);
    let mut names = bucket
        .objects
        .keys()
        .filter(|name| name.starts_with(&prefix) && **name >= start);
    let page: Vec<_> = names.by_ref().take(limit).map(|name| json!({"name": name})).collect();
    let mut listed = json!({"objects": page});
    if let Some(next) = names.next() {
        listed["nextStartWith"] = next.as_str().into();
    }
    Reply::json(&listed.to_string())
}

pub fn lab() -> Lab {
    let pair = KeyPair::generate(KeySize::Rsa2048).expect("a key");
    let private: Pkcs8V1Der<'_> = pair.as_der().expect("its form");
    let public = pair.public_key().as_ref().to_vec();
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("key.pem");
    let body = BASE64.encode(private.as_ref());
    std::fs::write(
        &file,
        format!("-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n"),
    )
    .expect("a file");
    let bucket = Mutex::new(Bucket::default());
    let server = Server::http(move |request| answer(&mut bucket.lock().expect("the bucket"), &public, request));
    let environment = [
        ("OCI_tenancy_ocid", "ocid1.tenancy.oc1..t".to_owned()),
        ("OCI_user_ocid", "ocid1.user.oc1..u".to_owned()),
        ("OCI_fingerprint", "11:22".to_owned()),
        ("OCI_private_key_path", file.display().to_string()),
        ("OCI_region", "us-ashburn-1".to_owned()),
        (
            "CLIENT_HOST_OVERRIDES",
            format!("oci_object_storage.ObjectStorageClient=http://{}", server.host()),
        ),
    ];
    let sum = BASE64.encode(Sha256::digest(BASE64.decode(CUSTOMER_KEY).expect("base 64")));
    Lab {
        ty: "oci",
        settings: format!(
            "bucket = \"states\"\nnamespace = \"space\"\nkey = \"a/terraform.tfstate\"\nworkspace_key_prefix = \"a/envs\"\n\
             sse_customer_key = \"{CUSTOMER_KEY}\"\nsse_customer_key_sha256 = \"{sum}\""
        ),
        environment: environment.map(|(name, value)| (name.to_owned(), value)).to_vec(),
        workspaces: true,
        named_locks: true,
        peer: Tool::NewerTerraform,
        recorder: Tool::NewerTerraform,
        server: Box::new((server, dir)),
    }
}

pub const TESTS: &[(&str, fn())] = &[("errors_are_reported_with_a_remedy", wrong)];

fn wrong() {
    let lab = lab();
    let fails = |block: String, told: &[&str]| {
        let w = lab.without();
        w.write("backend.tf", &block);
        run(&w, Tool::Monoform, &["init", "-input=false"]).fails_with(told);
    };
    let block = lab.block("");
    fails(
        block.replace("\"states\"", "\"none\""),
        &["BucketNotFound", "oci os bucket create --name none"],
    );
    fails(lab.block("fingerprint = \"33\""), &["NotAuthenticated", "fingerprint"]);
    fails(
        lab.block("auth = \"x\""),
        &["Invalid authentication method", "OKEWorkloadIdentity"],
    );
    fails(
        lab.block("kms_key_id = \"k\""),
        &["Only one of kms_key_id, sse_customer_key"],
    );
}

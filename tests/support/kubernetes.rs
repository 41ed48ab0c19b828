//! A fake Kubernetes API of secrets and leases: resource versions and conflicts between writers, refusal of bad names, labels
//! and sizes, label selectors, pages, and lists without data.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use serde_json::{Value as Json, json};

use crate::server::{Reply, Request, Server, decoded};

/// The only namespace that exists.
pub const NAMESPACE: &str = "states";
/// The bearer token that is accepted.
pub const TOKEN: &str = "good";

/// Largest total size of a secret's data, in bytes.
const LIMIT: usize = 1 << 20;

/// Objects, by kind and name.
type Objects = BTreeMap<(String, String), Json>;

#[derive(Default)]
struct Kept {
    objects: Objects,
    version: u64,
}

pub struct Cluster {
    /// API server, with a self-signed certificate.
    pub server: Server,
    kept: Arc<Mutex<Kept>>,
}

impl Cluster {
    /// Starts a cluster that has no objects.
    pub fn start() -> Cluster {
        let kept: Arc<Mutex<Kept>> = Arc::default();
        let shared = kept.clone();
        Cluster {
            server: Server::https(move |request| answer(&mut shared.lock().expect("objects"), request)),
            kept,
        }
    }

    /// Returns the names of all objects of a kind (`secrets`, `leases`).
    pub fn names(&self, kind: &str) -> Vec<String> {
        let kept = self.kept.lock().expect("objects");
        let own = kept.objects.keys().filter(|(of, _)| of == kind);
        own.map(|(_, name)| name.clone()).collect()
    }

    /// Returns an object; null if it does not exist.
    pub fn object(&self, kind: &str, name: &str) -> Json {
        let kept = self.kept.lock().expect("objects");
        kept.objects
            .get(&(kind.to_owned(), name.to_owned()))
            .cloned()
            .unwrap_or_default()
    }

    /// Returns the text of a kubeconfig file for this cluster.
    pub fn kubeconfig(&self) -> String {
        let authority = base64::engine::general_purpose::STANDARD.encode(&self.server.certificate);
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: here\ncontexts:\n- name: here\n  context:\n    cluster: here\n    user: \
             me\nclusters:\n- name: here\n  cluster:\n    server: {}\n    certificate-authority-data: {authority}\nusers:\n- name: \
             me\n  user:\n    token: {TOKEN}\n",
            self.server.url("")
        )
    }
}

fn refusal(code: u16, reason: &str, message: &str) -> Reply {
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "reason": reason, "code": code});
    Reply::new(code, status.to_string()).with("Content-Type", "application/json")
}

fn reply(code: u16, object: &Json) -> Reply {
    Reply::new(code, object.to_string()).with("Content-Type", "application/json")
}

fn is_domain(name: &str) -> bool {
    let fits = |part: &str| {
        !part.is_empty()
            && part
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            && !part.starts_with('-')
            && !part.ends_with('-')
    };
    name.len() <= 253 && name.split('.').all(fits)
}

fn answer(kept: &mut Kept, request: &Request) -> Reply {
    if request.header("authorization") != format!("Bearer {TOKEN}") {
        return refusal(401, "Unauthorized", "Unauthorized");
    }
    if !request.body.is_empty() {
        assert!(
            request.header("content-type").starts_with("application/json"),
            "{}",
            request.line
        );
    }
    let path = request.path().to_owned();
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let (namespace, kind, name) = match parts.as_slice() {
        ["api", "v1", "namespaces", namespace, "secrets", name @ ..] => (*namespace, "secrets", name),
        [
            "apis",
            "coordination.k8s.io",
            "v1",
            "namespaces",
            namespace,
            "leases",
            name @ ..,
        ] => (*namespace, "leases", name),
        _ => panic!("there is nothing at {}", request.line),
    };
    assert!(name.len() <= 1, "{}", request.line);
    let name = name.first().map(|name| decoded(name));
    match (request.method(), name) {
        ("GET", None) => list(kept, kind, namespace, request),
        ("GET", Some(name)) => match kept.objects.get(&(kind.to_owned(), name.clone())) {
            Some(object) if namespace == NAMESPACE => reply(200, object),
            _ => refusal(404, "NotFound", &format!("{kind} \"{name}\" not found")),
        },
        ("POST", None) => create(kept, kind, namespace, request),
        ("PUT", Some(name)) => update(kept, kind, &name, request),
        ("DELETE", Some(name)) => {
            let options: Json = serde_json::from_slice(&request.body).expect("options");
            assert_eq!(options["propagationPolicy"], "Background");
            match kept.objects.remove(&(kind.to_owned(), name.clone())) {
                Some(_) => reply(200, &json!({"kind": "Status", "apiVersion": "v1", "status": "Success"})),
                None => refusal(404, "NotFound", &format!("{kind} \"{name}\" not found")),
            }
        }
        _ => refusal(405, "MethodNotAllowed", "the server does not allow this method"),
    }
}

fn list(kept: &Kept, kind: &str, namespace: &str, request: &Request) -> Reply {
    let selector = request.query("labelSelector").unwrap_or_default();
    let wanted: Vec<(&str, &str)> = selector.split(',').filter_map(|part| part.split_once('=')).collect();
    let fits = |object: &&Json| {
        let labels = &object["metadata"]["labels"];
        namespace == NAMESPACE && wanted.iter().all(|(name, value)| labels[*name] == **value)
    };
    let all: Vec<&Json> = kept
        .objects
        .iter()
        .filter(|((of, _), _)| of == kind)
        .map(|(_, o)| o)
        .filter(fits)
        .collect();
    // A server may return smaller pages than requested, so clients must always follow `continue`.
    let from: usize = request
        .query("continue")
        .map_or(0, |text| text.parse().expect("a number"));
    let size = if request.query("limit").is_some() { 2 } else { all.len() };
    let page = all.iter().skip(from).take(size);
    let without_data = request.header("accept").contains("as=PartialObjectMetadataList");
    let items: Vec<Json> = page
        .map(|object| match without_data {
            true => json!({"metadata": object["metadata"]}),
            false => (*object).clone(),
        })
        .collect();
    let next = if from + size < all.len() {
        (from + size).to_string()
    } else {
        String::new()
    };
    let (version, name) = match (kind, without_data) {
        (_, true) => ("meta.k8s.io/v1", "PartialObjectMetadataList"),
        ("secrets", _) => ("v1", "SecretList"),
        _ => ("coordination.k8s.io/v1", "LeaseList"),
    };
    reply(
        200,
        &json!({"kind": name, "apiVersion": version, "metadata": {"resourceVersion": "1", "continue": next}, "items": items}),
    )
}

/// Returns the error reply for an invalid object; `None` if the object is valid.
fn invalid(kind: &str, object: &Json) -> Option<Reply> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let wrong = |what: &str| {
        Some(refusal(
            422,
            "Invalid",
            &format!("{kind} \"{name}\" is invalid: {what}"),
        ))
    };
    if !is_domain(name) {
        return wrong(
            "metadata.name: Invalid value: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters",
        );
    }
    for (label, value) in object["metadata"]["labels"].as_object().into_iter().flatten() {
        let value = value.as_str().expect("text");
        let fits = value.len() <= 63 && value.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
        if !fits {
            return wrong(&format!("metadata.labels: Invalid value: {label}"));
        }
    }
    let mut size = 0;
    for data in object["data"].as_object().into_iter().flat_map(|data| data.values()) {
        let bytes = base64::engine::general_purpose::STANDARD.decode(data.as_str().expect("text"));
        size += bytes.expect("Base64").len();
    }
    if size > LIMIT {
        return wrong(&format!("data: Too long: must have at most {LIMIT} bytes"));
    }
    None
}

fn keep(kept: &mut Kept, kind: &str, mut object: Json, code: u16) -> Reply {
    kept.version += 1;
    let (version, name) = match kind {
        "secrets" => ("v1", "Secret"),
        _ => ("coordination.k8s.io/v1", "Lease"),
    };
    object["apiVersion"] = version.into();
    object["kind"] = name.into();
    object["metadata"]["namespace"] = NAMESPACE.into();
    object["metadata"]["resourceVersion"] = kept.version.to_string().into();
    object["metadata"]["uid"] = "00000000-0000-4000-8000-000000000001".into();
    object["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z".into();
    let name = object["metadata"]["name"].as_str().expect("a name").to_owned();
    kept.objects.insert((kind.to_owned(), name), object.clone());
    reply(code, &object)
}

fn create(kept: &mut Kept, kind: &str, namespace: &str, request: &Request) -> Reply {
    if namespace != NAMESPACE {
        return refusal(404, "NotFound", &format!("namespaces \"{namespace}\" not found"));
    }
    let object: Json = serde_json::from_slice(&request.body).expect("an object");
    if let Some(wrong) = invalid(kind, &object) {
        return wrong;
    }
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    if kept.objects.contains_key(&(kind.to_owned(), name.clone())) {
        return refusal(409, "AlreadyExists", &format!("{kind} \"{name}\" already exists"));
    }
    keep(kept, kind, object, 201)
}

fn update(kept: &mut Kept, kind: &str, name: &str, request: &Request) -> Reply {
    let object: Json = serde_json::from_slice(&request.body).expect("an object");
    let Some(before) = kept.objects.get(&(kind.to_owned(), name.to_owned())) else {
        return refusal(404, "NotFound", &format!("{kind} \"{name}\" not found"));
    };
    assert_eq!(object["metadata"]["name"], *name);
    let (wanted, there) = (
        &object["metadata"]["resourceVersion"],
        &before["metadata"]["resourceVersion"],
    );
    // By the API's definition, an update without a version is unconditional.
    if wanted.is_string() && wanted != there {
        let message = format!("Operation cannot be fulfilled on {kind} \"{name}\": the object has been modified");
        return refusal(409, "Conflict", &message);
    }
    match invalid(kind, &object) {
        Some(wrong) => wrong,
        None => keep(kept, kind, object, 200),
    }
}

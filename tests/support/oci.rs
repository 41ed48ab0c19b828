//! Artifacts of OCI registries, for tests: manifests and blobs, and a registry that serves them.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::registry::sha256;
use super::server::{Reply, Request};

const IMAGE: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// Authentication that a registry requires.
#[derive(Clone, Debug)]
pub enum Access {
    /// No authentication at all.
    Open,
    /// Name and password, for `Basic`.
    Basic(&'static str, &'static str),
    /// Name and password of the token server, `/token`; the password is a refresh token, too.
    Token(&'static str, &'static str),
}

/// A blob or manifest to upload to a registry.
pub struct Upload {
    /// Name of the repository.
    pub repository: String,
    /// True for a manifest, false for a blob.
    pub manifest: bool,
    /// Tag of a manifest that has one; otherwise the digest.
    pub reference: String,
    /// Media type of the content.
    pub media_type: String,
    /// Bytes as they are uploaded.
    pub content: Vec<u8>,
}

/// Content of the repositories of a registry.
#[derive(Clone, Debug)]
pub struct Artifacts {
    /// Media types and contents, by repository and digest.
    blobs: BTreeMap<(String, String), (String, Vec<u8>)>,
    /// Digests, by repository and tag.
    tags: BTreeMap<(String, String), String>,
    access: Access,
    /// Number of tags on a page.
    pub page: usize,
}

impl Artifacts {
    /// Creates empty repositories.
    pub fn new(access: Access) -> Artifacts {
        Artifacts {
            blobs: BTreeMap::new(),
            tags: BTreeMap::new(),
            access,
            page: 100,
        }
    }

    /// Adds a blob and returns its descriptor.
    pub fn blob(&mut self, repository: &str, media_type: &str, content: &[u8]) -> Json {
        let digest = format!("sha256:{}", sha256(content));
        let blob = (media_type.to_owned(), content.to_vec());
        self.blobs.insert((repository.to_owned(), digest.clone()), blob);
        json!({ "mediaType": media_type, "digest": digest, "size": content.len() })
    }

    /// Adds a manifest and returns its descriptor.
    pub fn manifest(&mut self, repository: &str, tag: Option<&str>, manifest: &Json) -> Json {
        let text = manifest.to_string();
        let media_type = manifest["mediaType"].as_str().expect("a media type");
        let descriptor = self.blob(repository, media_type, text.as_bytes());
        if let Some(tag) = tag {
            let digest = descriptor["digest"].as_str().expect("a digest").to_owned();
            self.tags.insert((repository.to_owned(), tag.to_owned()), digest);
        }
        descriptor
    }

    fn image(&mut self, repository: &str, tag: Option<&str>, artifact_type: &str, archive: &[u8]) -> Json {
        let layer = self.blob(repository, "archive/zip", archive);
        let config = self.blob(repository, "application/vnd.oci.empty.v1+json", b"{}");
        let manifest = json!({
            "schemaVersion": 2, "mediaType": IMAGE, "artifactType": artifact_type, "config": config, "layers": [layer]
        });
        self.manifest(repository, tag, &manifest)
    }

    /// Adds a module package and returns the digest of its manifest.
    pub fn module(&mut self, repository: &str, tag: &str, archive: &[u8]) -> String {
        let kind = "application/vnd.opentofu.modulepkg";
        let descriptor = self.image(repository, Some(tag), kind, archive);
        descriptor["digest"].as_str().expect("a digest").to_owned()
    }

    /// Adds a version of a provider for these platforms.
    pub fn provider(&mut self, repository: &str, tag: &str, packages: &[(&str, &[u8])]) {
        let target = "application/vnd.opentofu.provider-target";
        let mut entries = Vec::new();
        for (platform, archive) in packages {
            let mut entry = self.image(repository, None, target, archive);
            let (os, architecture) = platform.split_once('_').expect("a platform");
            entry["artifactType"] = target.into();
            entry["platform"] = json!({ "os": os, "architecture": architecture });
            entries.push(entry);
        }
        let index = json!({
            "schemaVersion": 2, "mediaType": INDEX, "artifactType": "application/vnd.opentofu.provider", "manifests": entries
        });
        self.manifest(repository, Some(tag), &index);
    }

    /// Changes the content of all blobs of a media type and keeps their digests.
    pub fn damage(&mut self, media_type: &str) {
        for (kind, content) in self.blobs.values_mut().filter(|(kind, _)| kind == media_type) {
            debug_assert_eq!(kind, media_type);
            if let Some(byte) = content.last_mut() {
                *byte ^= 1;
            }
        }
    }

    /// Returns all blobs and manifests in an order in which they can be uploaded: blobs first.
    pub fn uploads(&self) -> Vec<Upload> {
        // Blobs are pushed before manifests, and manifests before indexes, because registries refuse references
        // to missing parts.
        let rank = |kind: &str| match kind {
            INDEX => 2,
            IMAGE => 1,
            _ => 0,
        };
        let upload = |((repository, digest), (kind, content)): (&(String, String), &(String, Vec<u8>))| {
            let tag = self.tags.iter().find(|((r, _), d)| r == repository && *d == digest);
            Upload {
                repository: repository.clone(),
                manifest: rank(kind) > 0,
                reference: tag.map_or(digest, |((_, tag), _)| tag).clone(),
                media_type: kind.clone(),
                content: content.clone(),
            }
        };
        let mut all: Vec<Upload> = self.blobs.iter().map(upload).collect();
        all.sort_by_key(|upload| rank(&upload.media_type));
        all
    }

    /// Answers a request as a registry at this address.
    pub fn answer(&self, request: &Request, address: &str) -> Reply {
        let basic = |name: &str, password: &str| {
            use base64::Engine as _;
            let pair = base64::engine::general_purpose::STANDARD.encode(format!("{name}:{password}"));
            format!("Basic {pair}")
        };
        let header = request.header("authorization");
        if request.path() == "/token" {
            let Access::Token(name, password) = &self.access else {
                return Reply::status(404);
            };
            let form = String::from_utf8_lossy(&request.body);
            let refreshed = request.method() == "POST" && form.contains(&format!("refresh_token={password}"));
            let scoped = refreshed || request.query("scope").is_some_and(|scope| scope.ends_with(":pull"));
            return match refreshed || header == basic(name, password) {
                true if scoped => Reply::json(r#"{"token":"open-sesame"}"#),
                _ => Reply::status(401),
            };
        }
        match &self.access {
            Access::Open => {}
            Access::Basic(name, password) if header == basic(name, password) => {}
            Access::Token(..) if header == "Bearer open-sesame" => {}
            Access::Basic(..) => return Reply::status(401).with("WWW-Authenticate", "Basic realm=\"test\""),
            Access::Token(..) => {
                let repository = request.path().trim_start_matches("/v2/");
                let repository = repository.split("/manifests/").next().unwrap_or_default();
                let repository = repository.split("/blobs/").next().unwrap_or_default();
                let repository = repository.trim_end_matches("/tags/list");
                let challenge =
                    format!("Bearer realm=\"{address}/token\",service=\"test\",scope=\"repository:{repository}:pull\"");
                return Reply::status(401).with("WWW-Authenticate", &challenge);
            }
        }
        self.authorized(request)
    }

    fn authorized(&self, request: &Request) -> Reply {
        let path = request.path().trim_start_matches("/v2/");
        if let Some(repository) = path.strip_suffix("/tags/list") {
            let tags: Vec<&str> = self
                .tags
                .keys()
                .filter(|(r, _)| r == repository)
                .map(|(_, t)| &**t)
                .collect();
            if tags.is_empty() {
                return Reply::status(404);
            }
            let from: usize = request.query("last").and_then(|last| last.parse().ok()).unwrap_or(0);
            let page: Vec<&str> = tags.iter().skip(from).take(self.page).copied().collect();
            let reply = Reply::json(&json!({ "name": repository, "tags": page }).to_string());
            return match from + self.page < tags.len() {
                true => {
                    let next = format!("</v2/{repository}/tags/list?last={}>; rel=\"next\"", from + self.page);
                    reply.with("Link", &next)
                }
                false => reply,
            };
        }
        let named = path.split_once("/manifests/").or_else(|| path.split_once("/blobs/"));
        let Some((repository, reference)) = named else {
            return Reply::status(404);
        };
        let key = |text: &str| (repository.to_owned(), text.to_owned());
        let digest = self
            .tags
            .get(&key(reference))
            .cloned()
            .unwrap_or_else(|| reference.to_owned());
        match self.blobs.get(&key(&digest)) {
            Some((kind, content)) => Reply::ok(content.clone()).with("Content-Type", kind),
            None => Reply::status(404),
        }
    }
}

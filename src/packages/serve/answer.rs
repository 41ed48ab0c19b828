//! Request paths and their response documents.
//!
//! ```text
//! /.well-known/terraform.json                                          address of the registry
//! /providers/HOST/NAMESPACE/TYPE/index.json                            versions, for a network mirror
//! /providers/HOST/NAMESPACE/TYPE/VERSION.json                          archives of a version
//! /providers/HOST/NAMESPACE/TYPE/terraform-provider-…_OS_ARCH.zip      an archive
//! /providers/HOST/NAMESPACE/TYPE/….zip.SHA256SUMS, ….SHA256SUMS.sig    its checksum and the signature of that, for a registry
//! /v1/providers/NAMESPACE/TYPE/versions                                versions, in the registry of this server itself
//! /v1/providers/NAMESPACE/TYPE/VERSION/download/OS/ARCH                a package
//! /registry/HOST/v1/providers/…                                        the same paths, in place of the registry of HOST
//! ```

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use addrs::Provider;
use addrs::platform::Platform;
use hyper::body::Incoming;
use hyper::{Method, Request, StatusCode, header};
use serde_json::{Value as Json, json};
use server::{Handler, Reply};
use versions::Version;

use super::contents::{Archive, PackageLocation, Packages, Shelf};

/// Plugin protocols in the registry's responses, which must name at least one. Which protocols a provider supports is only
/// known when it is started.
const PROTOCOLS: [&str; 2] = ["5.0", "6.0"];

/// Request handler that serves the packages of a [`Shelf`].
pub struct Answers(pub Arc<Shelf>);

impl Handler for Answers {
    async fn answer(&self, request: Request<Incoming>) -> Reply {
        if request.method() != Method::GET && request.method() != Method::HEAD {
            let mut reply = problem(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are answered");
            let allowed = header::HeaderValue::from_static("GET, HEAD");
            reply.headers.insert(header::ALLOW, allowed);
            return reply;
        }
        let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
        let opened = match answer(&self.0, host.unwrap_or_default(), request.uri().path()).await {
            // The archive is deleted when its last user drops it, so it is opened while `found` is alive.
            Ok(Answer::File(found)) => tokio::fs::File::open(&found.path)
                .await
                .map(|file| Reply::file("application/zip", file, found.size)),
            Ok(Answer::Json(document)) => Ok(json_reply(StatusCode::OK, &document)),
            Ok(Answer::Bytes(media, bytes)) => Ok(Reply::bytes(StatusCode::OK, media, bytes)),
            Ok(Answer::NotFound) => Ok(problem(StatusCode::NOT_FOUND, "there is no such package here")),
            Err(why) => Err(why),
        };
        opened.unwrap_or_else(|why| Reply {
            error: Some(why.to_string()),
            ..problem(StatusCode::INTERNAL_SERVER_ERROR, "the package cannot be read")
        })
    }
}

fn json_reply(status: StatusCode, document: &Json) -> Reply {
    Reply::bytes(status, "application/json", document.to_string().into_bytes())
}

fn problem(status: StatusCode, text: &str) -> Reply {
    json_reply(status, &json!({"errors": [text]}))
}

#[derive(Debug)]
enum Answer {
    Json(Json),
    /// Text or bytes of this media type.
    Bytes(&'static str, Vec<u8>),
    File(Archive),
    NotFound,
}

/// Answers a request for a path. `host` is the value of the Host header: the name, and perhaps the port, of this server for the
/// client.
async fn answer(shelf: &Arc<Shelf>, host: &str, path: &str) -> io::Result<Answer> {
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    match parts.as_slice() {
        // A relative path is correct for every name and port that the server is reached by.
        [".well-known", "terraform.json"] => Ok(Answer::Json(json!({"providers.v1": "/v1/providers/"}))),
        ["providers", host, namespace, ty, file] => match provider(host, namespace, ty) {
            Some(provider) => mirrored(shelf, &provider, file).await,
            None => Ok(Answer::NotFound),
        },
        ["v1", "providers", namespace, ty, rest @ ..]
        | ["registry", _, "v1", "providers", namespace, ty, rest @ ..] => {
            let host = match parts.as_slice() {
                ["registry", other, ..] => other,
                _ => host,
            };
            match provider(host, namespace, ty) {
                Some(provider) => registered(shelf, &provider, rest).await,
                None => Ok(Answer::NotFound),
            }
        }
        _ => Ok(Answer::NotFound),
    }
}

fn provider(host: &str, namespace: &str, ty: &str) -> Option<Provider> {
    Provider::parse(&format!("{host}/{namespace}/{ty}")).ok()
}

/// Finds the packages of a provider. The search reads directories, so it runs on a thread for blocking work.
async fn packages(shelf: &Arc<Shelf>, provider: &Provider) -> io::Result<Packages> {
    let (shelf, provider) = (shelf.clone(), provider.clone());
    let found = tokio::task::spawn_blocking(move || shelf.packages(&provider)).await;
    found.map_err(io::Error::other)
}

fn archive_name(provider: &Provider, version: &Version, platform: &Platform) -> String {
    format!("terraform-provider-{}_{version}_{platform}.zip", provider.ty)
}

/// Answers a request of the network mirror protocol.
async fn mirrored(shelf: &Arc<Shelf>, provider: &Provider, file: &str) -> io::Result<Answer> {
    let packages = packages(shelf, provider).await?;
    if file == "index.json" && !packages.is_empty() {
        let versions: BTreeMap<String, Json> = packages.keys().map(|v| (v.to_string(), json!({}))).collect();
        return Ok(Answer::Json(json!({"versions": versions})));
    }
    if let Some(version) = file.strip_suffix(".json").and_then(|text| Version::parse(text).ok()) {
        let Some(platforms) = packages.get(&version) else {
            return Ok(Answer::NotFound);
        };
        let mut archives = BTreeMap::new();
        for (platform, place) in platforms {
            let name = archive_name(provider, &version, platform);
            let hashes = [shelf.hash(place).await?];
            archives.insert(platform.to_string(), json!({"url": name, "hashes": hashes}));
        }
        return Ok(Answer::Json(json!({"archives": archives})));
    }
    // The other paths are those of archives and their checksums.
    let (name, more) = match file.split_once(".zip") {
        Some((name, more)) => (format!("{name}.zip"), more),
        None => return Ok(Answer::NotFound),
    };
    let named = |(version, platforms): (&Version, &BTreeMap<Platform, PackageLocation>)| {
        let fits = |(platform, place): (&Platform, &PackageLocation)| {
            (archive_name(provider, version, platform) == name).then(|| place.clone())
        };
        platforms.iter().find_map(fits)
    };
    let Some(place) = packages.iter().find_map(named) else {
        return Ok(Answer::NotFound);
    };
    let archive = shelf.archive(&place).await?;
    let sums = format!("{}  {name}\n", archive.sha256);
    Ok(match more {
        "" => Answer::File(archive),
        ".SHA256SUMS" => Answer::Bytes("text/plain", sums.into_bytes()),
        ".SHA256SUMS.sig" => Answer::Bytes("application/octet-stream", shelf.key.sign(sums.as_bytes())),
        _ => Answer::NotFound,
    })
}

/// Answers a request of the provider registry protocol.
async fn registered(shelf: &Arc<Shelf>, provider: &Provider, rest: &[&str]) -> io::Result<Answer> {
    let packages = packages(shelf, provider).await?;
    match rest {
        ["versions"] if !packages.is_empty() => {
            let platform = |platform: &Platform| json!({"os": platform.os, "arch": platform.arch});
            let version = |(version, platforms): (&Version, &BTreeMap<Platform, PackageLocation>)| {
                let platforms: Vec<Json> = platforms.keys().map(platform).collect();
                json!({"version": version.to_string(), "protocols": PROTOCOLS, "platforms": platforms})
            };
            let versions: Vec<Json> = packages.iter().map(version).collect();
            Ok(Answer::Json(json!({"versions": versions})))
        }
        [version, "download", os, arch] => {
            let platform = format!("{os}_{arch}").parse::<Platform>().ok();
            let version = Version::parse(version).ok();
            let (Some(version), Some(platform)) = (version, platform) else {
                return Ok(Answer::NotFound);
            };
            let Some(place) = packages.get(&version).and_then(|platforms| platforms.get(&platform)) else {
                return Ok(Answer::NotFound);
            };
            let archive = shelf.archive(place).await?;
            let name = archive_name(provider, &version, &platform);
            let url = format!("/providers/{provider}/{name}");
            Ok(Answer::Json(json!({
                "protocols": PROTOCOLS,
                "os": platform.os,
                "arch": platform.arch,
                "filename": name,
                "download_url": url,
                "shasum": archive.sha256,
                "shasums_url": format!("{url}.SHA256SUMS"),
                "shasums_signature_url": format!("{url}.SHA256SUMS.sig"),
                "signing_keys": {
                    "gpg_public_keys": [{"key_id": shelf.key.id(), "ascii_armor": shelf.key.armored()}],
                },
            })))
        }
        _ => Ok(Answer::NotFound),
    }
}

//! Provider registries and network mirrors, for tests: their documents, keys and packages.

use std::collections::BTreeMap;
use std::io::Write;

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use serde_json::json;
use sha2::Digest;

use super::server::{Reply, Request};

/// Returns this machine's platform in the form of package names.
pub fn platform() -> String {
    let os = match std::env::consts::OS {
        "macos" => "darwin",
        other => other,
    };
    let arch = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    format!("{os}_{arch}")
}

/// Makes a zip archive of executable files.
pub fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, content) in files {
        let options = zip::write::SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Stored)
            .unix_permissions(0o755);
        out.start_file(*name, options).expect("an entry");
        out.write_all(content).expect("an entry");
    }
    out.finish().expect("an archive").into_inner()
}

/// Returns the SHA-256 of bytes in hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(&sha2::Sha256::digest(bytes))
}

/// A signing key: OpenPGP version 4 with Ed25519.
pub struct Key {
    pair: Ed25519KeyPair,
    body: Vec<u8>,
}

/// Returns an OpenPGP packet with a five-byte length.
fn packet(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).expect("a small packet").to_be_bytes();
    [&[0xc0 | tag, 0xff], &length[..], body].concat()
}

/// Encodes a multiprecision integer of OpenPGP: the number of bits, then the bytes without leading zeros.
fn mpi(bytes: &[u8]) -> Vec<u8> {
    let zeros = bytes.iter().take_while(|b| **b == 0).count();
    let bytes = &bytes[zeros..];
    let bits = bytes
        .first()
        .map_or(0, |first| bytes.len() * 8 - first.leading_zeros() as usize);
    [&u16::try_from(bits).expect("a small number").to_be_bytes()[..], bytes].concat()
}

impl Key {
    /// Generates a key with a fixed time of creation.
    pub fn new() -> Key {
        let pair = Ed25519KeyPair::generate().expect("a key");
        let curve = [0x2b, 0x06, 0x01, 0x04, 0x01, 0xda, 0x47, 0x0f, 0x01];
        let point = [&[0x40], pair.public_key().as_ref()].concat();
        let created = 1_700_000_000_u32.to_be_bytes();
        let body = [&[4], &created[..], &[22, 9], &curve, &mpi(&point)].concat();
        Key { pair, body }
    }

    fn hashed(&self) -> Vec<u8> {
        let length = u16::try_from(self.body.len()).expect("a small key").to_be_bytes();
        [&[0x99], &length[..], &self.body].concat()
    }

    fn id_bytes(&self) -> Vec<u8> {
        sha1::Sha1::digest(self.hashed())[12..].to_vec()
    }

    /// Returns the key ID as registries show it.
    pub fn id(&self) -> String {
        self.id_bytes().iter().map(|b| format!("{b:02X}")).collect()
    }

    /// Makes a signature packet of this kind over `of`.
    fn signature(&self, kind: u8, of: &[u8]) -> Vec<u8> {
        let created = 1_700_000_001_u32.to_be_bytes();
        let hashed = [&[5, 2], &created[..], &[2, 27, 3]].concat();
        let length = u16::try_from(hashed.len()).expect("a few bytes").to_be_bytes();
        let head = [&[4, kind, 22, 8], &length[..], &hashed].concat();
        let size = u32::try_from(head.len()).expect("a few bytes").to_be_bytes();
        let digest = sha2::Sha256::digest([of, &head, &[4, 0xff], &size].concat());
        let made = self.pair.sign(&digest);
        let (r, s) = made.as_ref().split_at(32);
        let issuer = [&[9, 16][..], &self.id_bytes()].concat();
        packet(
            2,
            &[&head, &[0, 10][..], &issuer, &digest[..2], &mpi(r), &mpi(s)].concat(),
        )
    }

    /// Returns the public key, armored as registries publish it.
    pub fn armored(&self) -> String {
        let user = b"Nobody <nobody@example.com>";
        let length = u32::try_from(user.len()).expect("a short name").to_be_bytes();
        let about = [&self.hashed(), &[0xb4][..], &length, user].concat();
        let all = [packet(6, &self.body), packet(13, user), self.signature(0x13, &about)].concat();
        let text = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, all);
        let lines: Vec<&str> = text
            .as_bytes()
            .chunks(64)
            .map(|l| std::str::from_utf8(l).expect("text"))
            .collect();
        format!(
            "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n{}\n-----END PGP PUBLIC KEY BLOCK-----\n",
            lines.join("\n")
        )
    }

    /// Makes a detached signature of binary text.
    pub fn sign(&self, text: &[u8]) -> Vec<u8> {
        self.signature(0, text)
    }
}

/// A version of a provider in a registry.
pub struct Release {
    /// Archives, by platform.
    pub archives: BTreeMap<String, Vec<u8>>,
    /// Supported plugin protocols.
    pub protocols: Vec<&'static str>,
}

/// A provider registry below `/v1/providers/`.
pub struct Registry {
    /// Key that signs the checksums of the packages.
    pub key: Key,
    /// Releases, by `NAMESPACE/TYPE` and version.
    pub releases: BTreeMap<String, BTreeMap<String, Release>>,
}

impl Registry {
    /// Creates an empty registry with a new key.
    pub fn new() -> Registry {
        Registry {
            key: Key::new(),
            releases: BTreeMap::new(),
        }
    }

    /// Adds a version with packages for this machine and for another platform. The program in a package is this text
    /// and the name of the platform.
    pub fn with(mut self, provider: &str, version: &str, program: &str) -> Registry {
        let ty = provider.rsplit('/').next().expect("a type");
        let name = format!("terraform-provider-{ty}_v{version}");
        let archive = |platform: &str| {
            zip(&[
                (&name, format!("{program} {platform}\n").as_bytes()),
                ("LICENSE", b"none\n"),
            ])
        };
        let archives = [platform(), "plan9_mips".to_owned()].map(|p| (p.clone(), archive(&p)));
        self.releases.entry(provider.to_owned()).or_default().insert(
            version.to_owned(),
            Release {
                archives: archives.into(),
                protocols: vec!["5.0"],
            },
        );
        self
    }

    /// Returns the list of checksums of a version.
    pub fn sums(&self, provider: &str, version: &str) -> String {
        let ty = provider.rsplit('/').next().expect("a type");
        let release = &self.releases[provider][version];
        let line = |(platform, archive): (&String, &Vec<u8>)| {
            format!(
                "{}  terraform-provider-{ty}_{version}_{platform}.zip\n",
                sha256(archive)
            )
        };
        release.archives.iter().map(line).collect()
    }

    /// Answers a request for a document, an archive or a signature.
    pub fn answer(&self, request: &Request) -> Reply {
        let path = request.path();
        if path == "/.well-known/terraform.json" {
            return Reply::json(r#"{"providers.v1":"/v1/providers/"}"#);
        }
        let (files, rest) = match (path.strip_prefix("/v1/providers/"), path.strip_prefix("/files/")) {
            (Some(rest), _) => (false, rest),
            (_, Some(rest)) => (true, rest),
            _ => return Reply::status(404),
        };
        let parts: Vec<&str> = rest.split('/').collect();
        let [namespace, ty, more @ ..] = parts.as_slice() else {
            return Reply::status(404);
        };
        let provider = format!("{namespace}/{ty}");
        let Some(versions) = self.releases.get(&provider) else {
            return Reply::status(404);
        };
        match (files, more) {
            (false, ["versions"]) => {
                let one = |(version, release): (&String, &Release)| {
                    let platforms: Vec<_> = release
                        .archives
                        .keys()
                        .filter_map(|p| p.split_once('_'))
                        .map(|(os, arch)| json!({"os": os, "arch": arch}))
                        .collect();
                    json!({"version": version, "protocols": release.protocols, "platforms": platforms})
                };
                let list: Vec<_> = versions.iter().map(one).collect();
                Reply::json(&json!({"versions": list, "warnings": null}).to_string())
            }
            (false, [version, "download", os, arch]) => {
                let platform = format!("{os}_{arch}");
                let Some((release, archive)) = versions
                    .get(*version)
                    .and_then(|r| Some((r, r.archives.get(&platform)?)))
                else {
                    return Reply::status(404);
                };
                let filename = format!("terraform-provider-{ty}_{version}_{platform}.zip");
                let base = format!("/files/{provider}/{version}");
                Reply::json(
                    &json!({
                        "protocols": release.protocols, "os": os, "arch": arch, "filename": filename,
                        "download_url": format!("{base}/{filename}"), "shasum": sha256(archive),
                        "shasums_url": format!("{base}/SHA256SUMS"),
                        "shasums_signature_url": format!("{base}/SHA256SUMS.sig"),
                        "signing_keys": {"gpg_public_keys": [{"key_id": self.key.id(), "ascii_armor": self.key.armored(),
                            "trust_signature": "", "source": "", "source_url": ""}]},
                    })
                    .to_string(),
                )
            }
            (true, [version, file]) => {
                let Some(release) = versions.get(*version) else {
                    return Reply::status(404);
                };
                let sums = self.sums(&provider, version);
                let platform = file
                    .trim_start_matches(&format!("terraform-provider-{ty}_{version}_"))
                    .trim_end_matches(".zip");
                match *file {
                    "SHA256SUMS" => Reply::ok(sums),
                    "SHA256SUMS.sig" => Reply::ok(self.key.sign(sums.as_bytes())),
                    _ => release
                        .archives
                        .get(platform)
                        .map_or_else(|| Reply::status(404), |a| Reply::ok(a.clone())),
                }
            }
            _ => Reply::status(404),
        }
    }
}

//! Addresses: repositories, tags, digests, and `oci://` addresses of module packages.

use std::fmt;

use data_encoding::HEXLOWER;
use net::{Host, Url};
use sha2::{Digest as _, Sha256, Sha512};

use crate::error::OciError;

/// The scheme of a module's address.
const SCHEME: &str = "oci://";
/// The maximum length of a repository's name with its host, from the distribution specification.
const LONGEST: usize = 255;

/// A repository: `HOST[:PORT]/NAME`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Repository {
    host: Host,
    name: String,
}

/// A reference to a manifest of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// The tag of a manifest, which may change.
    Tag(String),
    /// The digest of a manifest.
    Digest(Digest),
}

/// The digest of a blob or a manifest, `ALGORITHM:HEX`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digest {
    algorithm: Algorithm,
    hex: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Algorithm {
    Sha256,
    Sha512,
}

/// The address of a module package: `oci://HOST[:PORT]/NAME[?tag=TAG|?digest=DIGEST]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleAddress {
    pub repository: Repository,
    /// The manifest; the tag `latest` by default.
    pub reference: Reference,
}

impl Repository {
    /// Parses `HOST[:PORT]/NAME`.
    ///
    /// # Errors
    ///
    /// Returns an error if the host or the name is not valid.
    pub fn parse(text: &str) -> Result<Repository, OciError> {
        let invalid = |reason: &'static str| OciError::Address {
            address: text.to_owned(),
            reason,
        };
        let (host, name) = text
            .split_once('/')
            .ok_or_else(|| invalid("it must have the form HOST/REPOSITORY"))?;
        let host = Host::parse(host).ok_or_else(|| invalid("it does not begin with the name of a host"))?;
        if !name.split('/').all(is_component) || text.len() > LONGEST {
            return Err(invalid(
                "the name of a repository consists of lower-case letters and digits, with single \".\", \"_\" or \"-\" between them, \
                 in parts that \"/\" separates",
            ));
        }
        let name = name.to_owned();
        Ok(Repository { host, name })
    }

    /// Returns the host with its port.
    #[must_use]
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Returns the name in the registry.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the URL of a path below the repository in the registry's API.
    pub(crate) fn url(&self, rest: &str) -> Result<Url, OciError> {
        let host = match self.host.as_str() {
            // The name of Docker's registry differs from the host that serves it.
            "docker.io" => "registry-1.docker.io",
            host => host,
        };
        Url::parse(&format!("https://{host}/v2/{}/{rest}", self.name)).map_err(|_| OciError::Address {
            address: self.to_string(),
            reason: "it is not a valid address",
        })
    }
}

impl fmt::Display for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.host, self.name)
    }
}

/// Returns true for a valid part of a repository's name: groups of letters and digits, with `.`, `_`, `__` or dashes
/// between them.
fn is_component(part: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let groups = part.split(plain).filter(|between| !between.is_empty());
    let separators = groups.into_iter().all(|between| {
        matches!(between, "." | "_" | "__") || (!between.is_empty() && between.bytes().all(|byte| byte == b'-'))
    });
    part.starts_with(plain) && part.ends_with(plain) && separators
}

/// Returns true for a valid tag: 1 to 128 letters, digits, `_`, `.` and `-`, not beginning with `.` or `-`.
fn is_tag(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    (1..=128).contains(&text.len()) && text.chars().all(fits) && !text.starts_with(['.', '-'])
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reference::Tag(tag) => f.write_str(tag),
            Reference::Digest(digest) => digest.fmt(f),
        }
    }
}

impl Digest {
    /// Parses `sha256:HEX` or `sha512:HEX`; `None` for other text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Digest> {
        let (algorithm, hex) = text.split_once(':')?;
        let (algorithm, length) = match algorithm {
            "sha256" => (Algorithm::Sha256, 64),
            "sha512" => (Algorithm::Sha512, 128),
            _ => return None,
        };
        // The specification allows lower case only.
        let lower = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let valid = hex.len() == length && hex.bytes().all(lower);
        valid.then(|| Digest {
            algorithm,
            hex: hex.to_owned(),
        })
    }

    /// Returns the hexadecimal digits of a SHA-256; `None` for another algorithm.
    #[must_use]
    pub fn sha256(&self) -> Option<&str> {
        (self.algorithm == Algorithm::Sha256).then_some(&*self.hex)
    }

    /// Returns true if this is the digest of the bytes.
    #[must_use]
    pub fn is_of(&self, bytes: &[u8]) -> bool {
        let mut hasher = self.hasher();
        hasher.update(bytes);
        hasher.matches(self)
    }

    /// Returns a hasher of the digest's algorithm.
    pub(crate) fn hasher(&self) -> Hasher {
        match self.algorithm {
            Algorithm::Sha256 => Hasher::Sha256(Sha256::new()),
            Algorithm::Sha512 => Hasher::Sha512(Sha512::new()),
        }
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let algorithm = match self.algorithm {
            Algorithm::Sha256 => "sha256",
            Algorithm::Sha512 => "sha512",
        };
        write!(f, "{algorithm}:{}", self.hex)
    }
}

/// An incremental hash of one algorithm.
pub(crate) enum Hasher {
    Sha256(Sha256),
    Sha512(Sha512),
}

impl Hasher {
    pub fn update(&mut self, bytes: &[u8]) {
        match self {
            Hasher::Sha256(hasher) => hasher.update(bytes),
            Hasher::Sha512(hasher) => hasher.update(bytes),
        }
    }

    /// Returns true if the hashed bytes have this digest.
    pub fn matches(self, digest: &Digest) -> bool {
        let hex = match self {
            Hasher::Sha256(hasher) => HEXLOWER.encode(&hasher.finalize()),
            Hasher::Sha512(hasher) => HEXLOWER.encode(&hasher.finalize()),
        };
        hex == digest.hex
    }
}

impl ModuleAddress {
    /// Returns true if the address has the scheme `oci`.
    #[must_use]
    pub fn is_one(address: &str) -> bool {
        address
            .get(..SCHEME.len())
            .is_some_and(|begin| begin.eq_ignore_ascii_case(SCHEME))
    }

    /// Parses the address of a package, without the directory in it.
    ///
    /// # Errors
    ///
    /// Returns an error if the repository or an argument is not valid.
    pub fn parse(address: &str) -> Result<ModuleAddress, OciError> {
        let invalid = |reason: &'static str| OciError::Address {
            address: address.to_owned(),
            reason,
        };
        if !ModuleAddress::is_one(address) {
            return Err(invalid("it does not begin with oci://"));
        }
        let url = Url::parse(address).map_err(|_| invalid("it is not a valid address"))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(invalid(
                "it must not have a name or a password; these are settings of the CLI configuration",
            ));
        }
        if url.fragment().is_some() {
            return Err(invalid("it must not have a part after \"#\""));
        }
        // The repository is taken from the text, because the parsed URL has no ".." any more, which a
        // repository must not contain.
        let rest = address.get(SCHEME.len()..).unwrap_or_default();
        let repository = Repository::parse(rest.split(['?', '#']).next().unwrap_or_default())?;
        let mut reference = None;
        for (name, value) in url.query_pairs() {
            let found = match &*name {
                "tag" => Some(&*value)
                    .filter(|tag| is_tag(tag))
                    .map(|tag| Reference::Tag(tag.to_owned())),
                "digest" => Digest::parse(&value).map(Reference::Digest),
                "archive" => {
                    return Err(invalid(
                        "the argument \"archive\" is not for OCI registries: their packages are always ZIP archives",
                    ));
                }
                _ => return Err(invalid("its only arguments are \"tag\" and \"digest\"")),
            };
            let Some(found) = found else {
                return Err(invalid(match &*name {
                    "tag" => "the argument \"tag\" is not a valid tag",
                    _ => "the argument \"digest\" must be sha256: or sha512: and hexadecimal digits in lower case",
                }));
            };
            if reference.replace(found).is_some() {
                return Err(invalid("it can have either one \"tag\" or one \"digest\""));
            }
        }
        Ok(ModuleAddress {
            repository,
            reference: reference.unwrap_or_else(|| Reference::Tag("latest".to_owned())),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repositories() {
        for good in [
            "example.com/a",
            "example.com:5000/a/b-c/d.e_f__g---h",
            "docker.io/library/x",
            "localhost:1/0",
        ] {
            assert_eq!(Repository::parse(good).unwrap().to_string(), good);
        }
        for bad in [
            "example.com",
            "example.com/",
            "/a",
            "example.com/A",
            "example.com/a//b",
            "example.com/-a",
            "example.com/a.",
            "example.com/a..b",
            "example.com/a/../b",
            "example.com/a___b",
            "example.com/a?x",
            "a@example.com/a",
        ] {
            assert!(Repository::parse(bad).is_err(), "{bad}");
        }
        let hub = Repository::parse("docker.io/library/x").unwrap();
        assert_eq!(
            hub.url("tags/list").unwrap().as_str(),
            "https://registry-1.docker.io/v2/library/x/tags/list"
        );
    }

    #[test]
    fn addresses_of_modules() {
        let parse = |text: &str| {
            let address = ModuleAddress::parse(text)?;
            Ok::<_, OciError>(format!("{}@{}", address.repository, address.reference))
        };
        let digest = format!("sha256:{}", "0a".repeat(32));
        assert_eq!(parse("oci://example.com/a/b").unwrap(), "example.com/a/b@latest");
        assert_eq!(
            parse("OCI://example.com:5000/a?tag=1.0").unwrap(),
            "example.com:5000/a@1.0"
        );
        assert_eq!(
            parse(&format!("oci://example.com/a?digest={digest}")).unwrap(),
            format!("example.com/a@{digest}")
        );
        for (bad, why) in [
            ("oci://example.com", "HOST/REPOSITORY"),
            ("oci://example.com/a?tag=", "not a valid tag"),
            ("oci://example.com/a?tag=.x", "not a valid tag"),
            ("oci://example.com/a?digest=md5:00", "sha256"),
            ("oci://example.com/a?tag=x&tag=y", "either one"),
            (&format!("oci://example.com/a?tag=x&digest={digest}"), "either one"),
            ("oci://example.com/a?archive=zip", "ZIP"),
            ("oci://example.com/a?ref=x", "only arguments"),
            ("oci://u:p@example.com/a", "name or a password"),
            ("oci://example.com/a#x", "\"#\""),
        ] {
            let error = parse(bad).unwrap_err().to_string();
            assert!(error.contains(why), "{bad}: {error}");
        }
    }

    #[test]
    fn digests() {
        let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let digest = Digest::parse(empty).unwrap();
        assert!(digest.is_of(b"") && !digest.is_of(b"x"));
        assert_eq!(digest.to_string(), empty);
        assert_eq!(digest.sha256(), Some(&empty[7..]));
        for bad in [
            "",
            "sha256:",
            "sha256:00",
            "sha1:00",
            &empty.to_uppercase(),
            &empty[7..],
        ] {
            assert!(Digest::parse(bad).is_none(), "{bad}");
        }
    }
}

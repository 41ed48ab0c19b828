//! Fetching of packages from addresses of every kind.

mod checksum;
mod error;
mod file;
mod gcs;
mod git;
mod http;
mod s3;

use std::path::{Path, PathBuf};

use archive::{Entries, Format, Limits};
use config::source_address::{RemoteSource, forced};
use net::{Client, Url};
use oci::ModuleAddress;

use crate::tree;
use checksum::Checksum;

pub(crate) use error::file_error;
pub use error::{ChecksumError, FetchError, GoogleError, LocationError};
pub use git::Commit;
pub(crate) use http::location;

/// Limit of the number of times that one address may lead to another, as in Terraform.
const REDIRECTS: usize = 10;

#[derive(Clone, Debug)]
pub struct Fetcher {
    client: Client,
}

/// Address of a package, split into its parts.
struct Address {
    /// Getter: `git`, `https`, `s3`…
    way: String,
    url: Url,
    /// Format of the archive, if the address refers to one.
    archive: Option<Format>,
    checksum: Option<String>,
}

/// Result of one request for a package.
enum Came {
    Here,
    /// The server names another address.
    Redirect(RemoteSource),
}

impl Fetcher {
    #[must_use]
    pub fn new(client: Client) -> Fetcher {
        Fetcher { client }
    }

    /// Fetches a package to a path that does not exist.
    ///
    /// # Errors
    ///
    /// The address is invalid, a request or a program failed, or the package was rejected.
    pub async fn fetch(&self, package: &str, to: &Path) -> Result<(), FetchError> {
        let mut address = package.to_owned();
        let mut subdir: Option<String> = None;
        // Only a part of the package may be needed, so the whole package is fetched beside the path.
        let raw = match to.file_name() {
            Some(name) => to.with_file_name(format!("{}.whole", name.to_string_lossy())),
            None => return Err(FetchError::NoTarget(to.to_owned())),
        };
        for _ in 0..=REDIRECTS {
            match self.step(&address, &raw).await? {
                Came::Here => {
                    let found = match &subdir {
                        Some(subdir) => tree::subdirectory(&raw, subdir, None)?,
                        None => raw.clone(),
                    };
                    let failed = file_error("moving the package", to);
                    // A link leads to a directory of the user. A rename would take its content away from there, so the
                    // subdirectory is copied.
                    let theirs = raw.is_symlink() && found != raw;
                    if theirs {
                        tree::copy(&found, to).map_err(failed)?;
                    } else {
                        system::rename(&found, to).map_err(failed)?;
                    }
                    return tree::remove(&raw).map_err(failed);
                }
                Came::Redirect(next) => {
                    // Both addresses may contain keys, so neither is logged. The requests themselves are logged
                    // without keys.
                    tracing::debug!("the package has another address");
                    // The requested subdirectory is below the one that the new address names.
                    subdir = match (next.subdir, subdir) {
                        (Some(outer), Some(inner)) => Some(format!("{outer}/{inner}")),
                        (outer, inner) => outer.or(inner),
                    };
                    address = next.package;
                }
            }
        }
        Err(FetchError::Redirects(REDIRECTS))
    }

    async fn step(&self, package: &str, to: &Path) -> Result<Came, FetchError> {
        if ModuleAddress::is_one(package) {
            self.oci_package(package, to).await?;
            return Ok(Came::Here);
        }
        let address = Address::parse(package)?;
        // `checksum` is for files, so an address with it is never a repository or a directory.
        let wanted = address.checksum.is_some();
        match (address.way.as_str(), address.archive) {
            ("git", None) if !wanted => git::fetch(&address.url, to).await?,
            ("hg", None) if !wanted => hg(&address.url, to).await?,
            ("s3", None) if !wanted && !s3::is_file(&self.client, &address.url).await? => {
                s3::directory(&self.client, &address.url, to).await?;
            }
            ("gcs", None) if !wanted && !gcs::is_file(&self.client, &address.url).await? => {
                gcs::directory(&self.client, &address.url, to).await?;
            }
            ("file", None) if !wanted => file::directory(&address.url, to)?,
            ("http" | "https", None) if !wanted => {
                return http::discovered_location(&self.client, &address.url)
                    .await
                    .map(Came::Redirect);
            }
            ("http" | "https" | "s3" | "gcs" | "file", Some(format)) => self.archive(&address, format, to).await?,
            ("git" | "hg", _) => {
                return Err(FetchError::ArgumentOfFiles);
            }
            ("http" | "https" | "s3" | "gcs" | "file", None) => {
                return Err(FetchError::NotAnArchive);
            }
            (other, _) => return Err(FetchError::Scheme(other.to_owned())),
        }
        Ok(Came::Here)
    }

    /// Downloads an archive, verifies it and unpacks it.
    async fn archive(&self, address: &Address, format: Format, to: &Path) -> Result<(), FetchError> {
        let checksum = match &address.checksum {
            Some(text) => Some(Checksum::read(self, text, &address.url).await?),
            None => None,
        };
        // Created beside the target, because that file system needs space for the package anyway.
        let parent = to.parent().unwrap_or(Path::new("."));
        let file = tempfile::Builder::new()
            .prefix(".archive-")
            .tempfile_in(parent)
            .map_err(file_error("creating a temporary file", parent))?
            .into_temp_path();
        self.file(&address.way, &address.url, &file).await?;
        let limits = Limits::from_variables(self.client.settings().environment.all())?;
        let name = net::shown(&address.url);
        unpack(format, &file, to, name, limits, checksum).await
    }

    /// Downloads and unpacks a package from an OCI registry.
    async fn oci_package(&self, package: &str, to: &Path) -> Result<(), FetchError> {
        let address = ModuleAddress::parse(package)?;
        let limits = Limits::from_variables(self.client.settings().environment.all())?;
        let parent = to.parent().unwrap_or(Path::new("."));
        let dir = tempfile::Builder::new()
            .prefix(".archive-")
            .tempdir_in(parent)
            .map_err(file_error("creating a temporary directory", parent))?;
        let file = dir.path().join("module.zip");
        oci::fetch_module(&self.client, &address, &file, limits.download).await?;
        unpack(Format::Zip, &file, to, package.to_owned(), limits, None).await
    }

    /// Downloads one file.
    async fn file(&self, way: &str, url: &Url, to: &Path) -> Result<(), FetchError> {
        match way {
            "http" | "https" => http::download(&self.client, url, to).await,
            "s3" => s3::file(&self.client, url, to).await,
            "gcs" => gcs::file(&self.client, url, to).await,
            "file" => {
                let path = file::path(url)?;
                let copied = tokio::fs::copy(&path, to).await;
                copied.map(drop).map_err(file_error("copying", &path))
            }
            other => Err(FetchError::Scheme(other.to_owned())),
        }
    }
}

/// Verifies an archive by the checksum that its address has, and unpacks it. `name` is its address, for messages.
async fn unpack(
    format: Format,
    file: &Path,
    to: &Path,
    name: String,
    limits: Limits,
    checksum: Option<Checksum>,
) -> Result<(), FetchError> {
    let (file, to) = (file.to_path_buf(), to.to_path_buf());
    let work = move || {
        if let Some(checksum) = checksum {
            checksum.verify(&file, &name)?;
        }
        archive::unpack(format, &file, &to, Entries::Links, &limits)
            .map_err(|source| FetchError::Unpack { name, source })
    };
    // Hashing and decompression would block the other downloads.
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| FetchError::Canceled)?
}

impl Address {
    fn parse(package: &str) -> Result<Address, FetchError> {
        let (way, rest) = forced(package);
        let mut url = Url::parse(rest).map_err(FetchError::Url)?;
        let way = way.map_or_else(|| url.scheme().to_owned(), str::to_ascii_lowercase);
        let mut address = Address {
            archive: None,
            checksum: None,
            url: url.clone(),
            way,
        };
        let mut said: Option<String> = None;
        let mut rest: Vec<(String, String)> = Vec::new();
        let mut ours = false;
        let mut seen = std::collections::BTreeSet::new();
        for (name, value) in url.query_pairs().into_owned() {
            // If an argument is repeated, the first one counts, as in Terraform.
            if matches!(name.as_str(), "archive" | "checksum") && !seen.insert(name.clone()) {
                continue;
            }
            match name.as_str() {
                "archive" => {
                    ours = true;
                    said = Some(value).filter(|v| !v.is_empty());
                }
                "checksum" => {
                    ours = true;
                    address.checksum = Some(value).filter(|v| !v.is_empty());
                }
                _ => rest.push((name, value)),
            }
        }
        // If none of the arguments is for this program, the query stays unchanged byte for byte, because it may
        // be signed.
        if ours {
            if rest.is_empty() {
                url.set_query(None);
            } else {
                url.query_pairs_mut().clear().extend_pairs(rest);
            }
        }
        // `archive` is a format or a boolean in a form that Go parses. `archive=false` turns off unpacking, whatever the file's extension;
        // true, or no value, selects the format by the extension.
        address.archive = match said.as_deref().map(|said| (gotext::boolean(said), said)) {
            Some((Some(false), _)) => None,
            None | Some((Some(true), _)) => Format::of_path(url.path())?,
            Some((None, kind)) => Some(Format::named(kind)?),
        };
        address.url = url;
        Ok(address)
    }
}

/// Clones a Mercurial repository.
async fn hg(url: &Url, to: &Path) -> Result<(), FetchError> {
    let mut url = url.clone();
    let revision = url
        .query_pairs()
        .find(|(name, _)| name == "rev")
        .map(|(_, rev)| rev.into_owned());
    url.set_query(None);
    let mut command = tokio::process::Command::new("hg");
    command.args(["clone", "--quiet"]);
    if let Some(revision) = &revision {
        command.args(["--updaterev", revision]);
        // hg could read such a revision as an option.
        if revision.starts_with('-') {
            return Err(FetchError::Revision(revision.clone()));
        }
    }
    let source = match url.to_file_path() {
        Ok(path) if url.scheme() == "file" => path,
        _ => PathBuf::from(url.as_str()),
    };
    command
        .arg("--")
        .arg(source)
        .arg(to)
        .stdin(std::process::Stdio::null())
        .kill_on_drop(true);
    match command.output().await {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(FetchError::Repository {
            action: "hg failed".to_owned(),
            output: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        }),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Err(FetchError::NoProgram {
            repository: "Mercurial",
            program: "hg",
        }),
        Err(source) => Err(FetchError::Program { program: "hg", source }),
    }
}

/// Returns the commit of a fetched directory, if git fetched it.
pub async fn commit(dir: &Path) -> Option<Commit> {
    git::commit(dir).await
}

/// Returns true if a name is that of a tag in a fetched repository.
pub async fn is_tag(dir: &Path, name: &str) -> bool {
    git::is_tag(dir, name).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        let address = Address::parse("git::https://example.com/x.git?ref=v1").unwrap();
        assert_eq!((address.way.as_str(), address.archive), ("git", None));
        let address = Address::parse("https://example.com/x?a=%2Fb&archive=tgz&checksum=md5:00").unwrap();
        assert_eq!(address.archive, Some(Format::TarGz));
        assert_eq!(address.url.as_str(), "https://example.com/x?a=%2Fb");
        assert_eq!(address.checksum.as_deref(), Some("md5:00"));
        let address = Address::parse("HTTPS://example.com/x.tar.gz?sig=a/b").unwrap();
        assert_eq!((address.way.as_str(), address.archive), ("https", Some(Format::TarGz)));
        assert_eq!(address.url.query(), Some("sig=a/b"));
        assert_eq!(
            Address::parse("https://example.com/x.zip?archive=false")
                .unwrap()
                .archive,
            None
        );
        for bad in [
            "https://example.com/x?archive=rar",
            "https://",
            "https://example.com/x.tar.zst",
        ] {
            assert!(Address::parse(bad).is_err(), "{bad}");
        }
    }
}

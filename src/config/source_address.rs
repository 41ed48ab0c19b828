//! Source addresses of modules: the `source` argument of a module call.

use std::fmt;

use system::{Os, paths};

use crate::files::clean;

/// A module's source address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModuleSource {
    /// A directory relative to the calling module; begins with `./` or `../`.
    Local(String),
    Registry(RegistrySource),
    /// Any other address, fetched by its own protocol.
    Remote(RemoteSource),
}

/// A module of a registry: `[HOST/]NAMESPACE/NAME/SYSTEM[//SUBDIR]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistrySource {
    /// Host name of the registry.
    pub host: String,
    pub namespace: String,
    pub name: String,
    pub system: String,
    /// Directory inside the package.
    pub subdir: Option<String>,
}

/// A package at any other address, and possibly a directory in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteSource {
    /// Package address with all shorthands expanded: `git::https://example.com/a.git?ref=v1`.
    pub package: String,
    /// Directory inside the package.
    pub subdir: Option<String>,
}

/// An invalid source address. The text is one or more sentences.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SourceAddressError {
    /// Version for an address that is not of a registry.
    #[error(
        "\"{0}\" is not the address of a module in a registry, and only such a module has versions. Remove the \"version\" argument."
    )]
    VersionWithoutRegistry(String),
    #[error("The source address must not be empty.")]
    Empty,
    /// A path after `//` that leads out of the package.
    #[error("The subdirectory \"{0}\" leads out of the module package it should be in.")]
    SubdirectoryOutsidePackage(String),
    /// An address with a scheme and a port that is not a number, so that it is not a URL.
    #[error(
        "\"{0}\" is neither a registry address nor any other known kind of module source. The port in it is not a number; if it is \
         meant as the scp-like form of a git address, leave out \"ssh://\"."
    )]
    Port(String),
    /// An address of no known kind.
    #[error(
        "\"{0}\" is neither a registry address nor any other known kind of module source. If it is a local directory, it must begin \
         with \"./\" or \"../\", like \"./{0}\"."
    )]
    UnknownKind(String),
    /// An address at a host of git repositories that names no repository.
    #[error("A {service} address needs a user and a repository: {host}/USER/REPOSITORY.")]
    Repository { service: &'static str, host: &'static str },
    /// An address in Google Cloud Storage that names no object.
    #[error("An address in Google Cloud Storage has the form www.googleapis.com/storage/v1/BUCKET/OBJECT.")]
    GoogleObject,
    /// An address in Amazon S3 that names no object.
    #[error("An address in Amazon S3 has the form s3.amazonaws.com/BUCKET/OBJECT or BUCKET.s3.amazonaws.com/OBJECT.")]
    AmazonObject,
}

impl ModuleSource {
    /// Reads a source address. `has_version` is true if the call has a `version` argument, which only registry modules
    /// may have.
    ///
    /// # Errors
    /// The text is not a source address, or it is the address of a remote package although the call has a version. A
    /// local address with a version is no error here: the caller reports it.
    pub fn parse(text: &str, has_version: bool) -> Result<ModuleSource, SourceAddressError> {
        // Windows separates directories by backslashes; Terraform accepts them on all systems.
        if ["./", "../", ".\\", "..\\"]
            .iter()
            .any(|prefix| text.starts_with(prefix))
        {
            return Ok(ModuleSource::Local(clean_local(&text.replace('\\', "/"))));
        }
        if let Some(source) = RegistrySource::parse(text)? {
            return Ok(ModuleSource::Registry(source));
        }
        if has_version {
            return Err(SourceAddressError::VersionWithoutRegistry(text.to_owned()));
        }
        // If both errors apply, the one about the version is reported first, because it is more helpful than the one
        // about an empty address.
        if text.is_empty() {
            return Err(SourceAddressError::Empty);
        }
        RemoteSource::parse(text).map(ModuleSource::Remote)
    }

    /// Returns true if the module is part of the caller's package.
    #[must_use]
    pub fn is_local(&self) -> bool {
        matches!(self, ModuleSource::Local(_))
    }
}

fn clean_local(text: &str) -> String {
    let cleaned = clean(text);
    if cleaned.starts_with("../") || cleaned == ".." {
        cleaned
    } else if cleaned == "." {
        "./".to_owned()
    } else {
        format!("./{cleaned}")
    }
}

impl RegistrySource {
    /// Reads a registry address. `None` if the text may be an address of another kind; an error if it can only be a
    /// registry address, and is invalid.
    fn parse(text: &str) -> Result<Option<RegistrySource>, SourceAddressError> {
        let (package, subdir) = match text.split_once("//") {
            Some((package, subdir)) => (package, Some(subdir)),
            None => (text, None),
        };
        let parts: Vec<&str> = package.split('/').collect();
        let (host, [namespace, name, system]) = match parts.as_slice() {
            [host, a, b, c] => (*host, [*a, *b, *c]),
            [a, b, c] => (addrs::provider::default_host(), [*a, *b, *c]),
            _ => return Ok(None),
        };
        // The hosts of version control services are shorthands for git addresses, never registries.
        let version_control = ["github.com", "bitbucket.org"];
        let lower_case = !system.is_empty() && system.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        if version_control.contains(&host)
            // If the namespace looks like a host, a part is missing, as in `HOST/NAME/SYSTEM`.
            || host_like(namespace)
            || !host_like(host)
            || !word(namespace)
            || !word(name)
            || !lower_case
        {
            return Ok(None);
        }
        Ok(Some(RegistrySource {
            host: host.to_lowercase(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            system: system.to_owned(),
            subdir: subdir_inside(subdir.unwrap_or(""))?,
        }))
    }

    /// Returns the address without the subdirectory.
    #[must_use]
    pub fn package(&self) -> String {
        format!("{}/{}/{}/{}", self.host, self.namespace, self.name, self.system)
    }
}

/// Cleans a directory inside a package; `None` for the package itself.
fn subdir_inside(subdir: &str) -> Result<Option<String>, SourceAddressError> {
    if subdir.is_empty() {
        return Ok(None);
    }
    let cleaned = clean(subdir);
    let cleaned = cleaned.trim_start_matches('/');
    // A package must not give access to files outside of it.
    if cleaned == ".." || cleaned.starts_with("../") {
        return Err(SourceAddressError::SubdirectoryOutsidePackage(cleaned.to_owned()));
    }
    Ok(Some(cleaned.to_owned()).filter(|s| !s.is_empty() && s != "."))
}

fn host_like(text: &str) -> bool {
    let (name, port) = text
        .split_once(':')
        .map_or((text, None), |(name, port)| (name, Some(port)));
    let label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.chars().all(|c| c.is_alphanumeric() || c == '-')
    };
    name.contains('.') && name.split('.').all(label) && port.is_none_or(|p| p.parse::<u16>().is_ok_and(|p| p > 0))
}

fn word(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
        && !text.starts_with(['-', '_'])
        && !text.ends_with(['-', '_'])
}

impl RemoteSource {
    /// Reads the address of a package, and expands its shorthand.
    ///
    /// # Errors
    /// The text is of no known kind, or its subdirectory leads out of the package.
    pub fn parse(text: &str) -> Result<RemoteSource, SourceAddressError> {
        let (package, subdir) = split_subdir(text);
        let subdir = subdir_inside(subdir)?;
        // An expanded shorthand can have a subdirectory of its own (github.com/USER/REPOSITORY/DIR), and the written
        // one is below it.
        let (package, found) = split_subdir_owned(&normalise(Os::CURRENT, &package)?);
        let found = subdir_inside(&found)?;
        let subdir = match (found, subdir) {
            (Some(outer), Some(inner)) => Some(format!("{outer}/{inner}")),
            (outer, inner) => outer.or(inner),
        };
        Ok(RemoteSource { package, subdir })
    }

    /// Splits off the forced protocol, if there is one (`git` of `git::https://…`).
    #[must_use]
    pub fn forced(&self) -> (Option<&str>, &str) {
        forced(&self.package)
    }
}

/// Splits the forced protocol off an address, if there is one (`git` of `git::https://…`).
#[must_use]
pub fn forced(address: &str) -> (Option<&str>, &str) {
    match address.split_once("::") {
        Some((way, rest)) if !way.is_empty() && !rest.is_empty() && way.bytes().all(|b| b.is_ascii_alphanumeric()) => {
            (Some(way), rest)
        }
        _ => (None, address),
    }
}

/// Splits an address into package and the directory after `//`. The query belongs to the package.
fn split_subdir(text: &str) -> (String, &str) {
    let (path, query) = text.split_at(text.find('?').unwrap_or(text.len()));
    // The slashes of a scheme do not begin a subdirectory.
    let begin = path.find("://").map_or(0, |i| i + 3);
    match path.get(begin..).and_then(|rest| rest.find("//")) {
        None => (text.to_owned(), ""),
        Some(at) => {
            let (package, subdir) = path.split_at(begin + at);
            (format!("{package}{query}"), subdir.trim_start_matches('/'))
        }
    }
}

fn split_subdir_owned(text: &str) -> (String, String) {
    let (package, subdir) = split_subdir(text);
    (package, subdir.to_owned())
}

/// Expands the shorthand of an address to a URL. An address that is a URL is returned unchanged.
fn normalise(os: Os, text: &str) -> Result<String, SourceAddressError> {
    let (force, address) = forced(text);
    // Paths on a drive are recognized before the scheme, because the letter of a drive looks like a scheme.
    if os == Os::Windows && paths::is_absolute(os, address) {
        let file = file_url(&paths::to_slash(os, address));
        return Ok(force.map(|way| format!("{way}::{file}")).unwrap_or(file));
    }
    if is_url(address) {
        return Ok(text.to_owned());
    }
    let (path, query) = address.split_at(address.find('?').unwrap_or(address.len()));
    let found = if let Some(rest) = path.strip_prefix("github.com/") {
        hosted("github.com", "GitHub", rest)?
    } else if let Some(found) = scp_like(path) {
        found
    } else if let Some(rest) = path.strip_prefix("bitbucket.org/") {
        hosted("bitbucket.org", "Bitbucket", rest)?
    } else if path.contains(".googleapis.com/") {
        google(path)?
    } else if path.contains(".amazonaws.com/") {
        amazon(path)?
    } else if path.starts_with('/') {
        format!("file://{path}")
    } else {
        return Err(match address.contains("://") {
            true => SourceAddressError::Port(address.to_owned()),
            false => SourceAddressError::UnknownKind(address.to_owned()),
        });
    };
    // A protocol that the user wrote takes precedence over the one that the shorthand implies.
    let (implied, found) = forced(&found);
    Ok(match force.or(implied) {
        Some(way) => format!("{way}::{found}{query}"),
        None => format!("{found}{query}"),
    })
}

/// Returns the URL of a Windows path in Terraform's form: without a third slash before the drive.
fn file_url(path: &str) -> String {
    match path.strip_prefix("//") {
        // The server becomes the host of the address.
        Some(server) => format!("file://{server}"),
        None => format!("file://{path}"),
    }
}

/// Returns true if a text begins with a scheme, and is not the scp-like form of an address.
fn is_url(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else {
        return false;
    };
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    if !scheme.starts_with(|c: char| c.is_ascii_alphabetic()) || !scheme.chars().all(fits) {
        return false;
    }
    let Some(authority) = rest.strip_prefix("//") else {
        return true;
    };
    let authority = authority.split(['/', '?', '#']).next().unwrap_or("");
    let host = authority.rsplit('@').next().unwrap_or("");
    // In `user@host:path` the text after the colon is a path; a URL has only digits there.
    match host.rsplit_once(':') {
        Some((_, port)) if !host.ends_with(']') => port.bytes().all(|b| b.is_ascii_digit()),
        _ => true,
    }
}

/// Expands `USER/REPOSITORY[/SUBDIR]` of a host of git repositories.
fn hosted(host: &'static str, service: &'static str, rest: &str) -> Result<String, SourceAddressError> {
    let mut parts = rest.splitn(3, '/');
    let (Some(user), Some(repository)) = (parts.next(), parts.next()) else {
        return Err(SourceAddressError::Repository { service, host });
    };
    let ending = if repository.ends_with(".git") { "" } else { ".git" };
    let subdir = parts.next().map(|s| format!("//{s}")).unwrap_or_default();
    Ok(format!("git::https://{host}/{user}/{repository}{ending}{subdir}"))
}

/// Expands `git@HOST:PATH`, the form that scp and git use; `None` for other forms.
fn scp_like(path: &str) -> Option<String> {
    let (host, path) = path.strip_prefix("git@")?.split_once(':')?;
    let path = path.strip_prefix('/').unwrap_or(path);
    if host.is_empty() || path.is_empty() {
        return None;
    }
    Some(format!("git::ssh://git@{host}/{path}"))
}

fn google(path: &str) -> Result<String, SourceAddressError> {
    let parts: Vec<&str> = path.splitn(5, '/').collect();
    match parts.as_slice() {
        [_, _, version, bucket, object] => Ok(format!(
            "gcs::https://www.googleapis.com/storage/{version}/{bucket}/{object}"
        )),
        _ => Err(SourceAddressError::GoogleObject),
    }
}

fn amazon(path: &str) -> Result<String, SourceAddressError> {
    let (host, object) = path.split_once('/').unwrap_or((path, ""));
    let labels: Vec<&str> = host.split('.').collect();
    match labels.as_slice() {
        [region, _, _] => Ok(format!("s3::https://{region}.amazonaws.com/{object}")),
        [bucket, region, _, _] => Ok(format!("s3::https://{region}.amazonaws.com/{bucket}/{object}")),
        [bucket, "s3", region, _, _] => Ok(format!("s3::https://s3.{region}.amazonaws.com/{bucket}/{object}")),
        _ => Err(SourceAddressError::AmazonObject),
    }
}

/// Formats as in the module manifest: a registry address always has its host.
impl fmt::Display for ModuleSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ModuleSource::Local(s) => f.write_str(s),
            ModuleSource::Remote(r) => r.fmt(f),
            ModuleSource::Registry(r) => {
                f.write_str(&r.package())?;
                match &r.subdir {
                    Some(subdir) => write!(f, "//{subdir}"),
                    None => Ok(()),
                }
            }
        }
    }
}

impl fmt::Display for RemoteSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, query) = self
            .package
            .split_at(self.package.find('?').unwrap_or(self.package.len()));
        match &self.subdir {
            Some(subdir) => write!(f, "{path}//{subdir}{query}"),
            None => f.write_str(&self.package),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        match ModuleSource::parse(text, false) {
            Ok(ModuleSource::Local(path)) => format!("local {path}"),
            Ok(source @ ModuleSource::Registry(_)) => format!("registry {source}"),
            Ok(source @ ModuleSource::Remote(_)) => source.to_string(),
            Err(_) => "error".to_owned(),
        }
    }

    #[test]
    fn absolute_paths_of_windows_are_files_there_only() {
        for (text, expected) in [
            (r"C:\modules\x", "file://C:/modules/x"),
            ("C:/modules/x?a=b", "file://C:/modules/x?a=b"),
            (r"git::C:\modules\x.git", "git::file://C:/modules/x.git"),
            (r"\\server\share\x", "file://server/share/x"),
        ] {
            assert_eq!(normalise(Os::Windows, text).unwrap(), expected, "{text}");
            assert_ne!(normalise(Os::Unix, text).ok().as_deref(), Some(expected), "{text}");
        }
        // Both forms of the address are the same file for the library that fetches it.
        let file = "file:///C:/modules/x";
        assert_eq!(normalise(Os::Windows, file).unwrap(), file);
    }

    /// Forms that Terraform accepts, and forms that it refuses.
    #[test]
    fn kinds_of_sources() {
        for (text, expected) in [
            ("./a/../b/", "local ./b"),
            ("./", "local ./"),
            ("../a/../b", "local ../b"),
            (".\\a", "local ./a"),
            ("..", "error"),
            (".", "error"),
            ("", "error"),
            ("x", "error"),
            ("modules/x", "error"),
            ("a/b/c/d", "error"),
            ("a/b/C", "error"),
            ("a/b/c-d", "error"),
            ("-a/b/c", "error"),
            ("a..b.com/a/b/c", "error"),
            ("user@host:a/b", "error"),
            ("git::./x", "error"),
            ("git::ssh://git@h.com:a/b.git", "error"),
            ("a/b/c//../x", "error"),
            ("https://h/x.zip//../y", "error"),
            ("github.com/a", "error"),
            ("github.com/a/b//x/../../y", "error"),
            (
                "hashicorp/consul/aws",
                "registry registry.terraform.io/hashicorp/consul/aws",
            ),
            (
                "hashicorp/consul/aws//",
                "registry registry.terraform.io/hashicorp/consul/aws",
            ),
            ("A_b/x/y1//d", "registry registry.terraform.io/A_b/x/y1//d"),
            (
                "APP.example.com:8443/a/b/c//sub",
                "registry app.example.com:8443/a/b/c//sub",
            ),
            ("gitlab.com/a/b/c", "registry gitlab.com/a/b/c"),
            ("localhost:8080/a/b/c", "localhost:8080/a/b/c"),
            ("github.com/a/b", "git::https://github.com/a/b.git"),
            ("github.com/a/b/c//d", "git::https://github.com/a/b.git//c/d"),
            (
                "github.com/a/b.git//sub?ref=v1",
                "git::https://github.com/a/b.git//sub?ref=v1",
            ),
            ("bitbucket.org/a/b", "git::https://bitbucket.org/a/b.git"),
            (
                "git::https://example.com/x.git//a//b?ref=v1",
                "git::https://example.com/x.git//a/b?ref=v1",
            ),
            (
                "git@github.com:a/b.git//sub?ref=x",
                "git::ssh://git@github.com/a/b.git//sub?ref=x",
            ),
            (
                "git::git@host.com:a/b.git?ref=1",
                "git::ssh://git@host.com/a/b.git?ref=1",
            ),
            ("git::/abs/repo", "git::file:///abs/repo"),
            ("/abs/dir//sub", "file:///abs/dir//sub"),
            ("file:///abs//s", "file:///abs//s"),
            ("file::/abs", "file::file:///abs"),
            (
                "https://example.com/x.zip//sub?archive=zip",
                "https://example.com/x.zip//sub?archive=zip",
            ),
            ("https://h/get?to=https://x//y", "https://h/get?to=https://x//y"),
            (
                "s3.amazonaws.com/bucket/key.zip",
                "s3::https://s3.amazonaws.com/bucket/key.zip",
            ),
            (
                "bucket.s3.amazonaws.com/key.zip",
                "s3::https://s3.amazonaws.com/bucket/key.zip",
            ),
            (
                "bucket.s3.eu-west-1.amazonaws.com/key.zip//s",
                "s3::https://s3.eu-west-1.amazonaws.com/bucket/key.zip//s",
            ),
            (
                "s3-eu-west-1.amazonaws.com/b/k",
                "s3::https://s3-eu-west-1.amazonaws.com/b/k",
            ),
            (
                "www.googleapis.com/storage/v1/b/o/x.zip",
                "gcs::https://www.googleapis.com/storage/v1/b/o/x.zip",
            ),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn versions_are_for_registries() {
        assert!(ModuleSource::parse("a/b/c", true).is_ok());
        assert_eq!(
            ModuleSource::parse("github.com/a/b", true),
            Err(SourceAddressError::VersionWithoutRegistry("github.com/a/b".to_owned()))
        );
    }

    proptest::proptest! {
        /// An address in the manifest is read back as the same address.
        #[test]
        fn displayed_sources_parse_equal(text in "[a-z./:?@=&A-Z0-9~-]{0,40}") {
            if let Ok(source) = ModuleSource::parse(&text, false) {
                let shown = source.to_string();
                let again = ModuleSource::parse(&shown, false).map(|s| s.to_string());
                proptest::prop_assert_eq!(again, Ok(shown));
            }
        }
    }
}

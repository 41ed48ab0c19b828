//! Plugins installed by the user: the search directories and their plugins.
//!
//! A *mirror* directory has `HOST/NAMESPACE/TYPE/VERSION/OS_ARCH/` with the executable inside. A *flat* one, the older
//! layout, has executables named `terraform-provider-NAME_vX.Y.Z`. Such a name has no namespace, so that the executable
//! counts for `hashicorp/NAME`, as a source address without a namespace does.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use addrs::Provider;
use addrs::program::Mode;
use system::Os;

use crate::cli_config::{Method, Source};
use crate::settings::Settings;
use addrs::platform::Platform;
use versions::Version;

/// Directory that is searched for plugins.
#[derive(Clone, Debug)]
pub struct SearchDir {
    pub path: PathBuf,
    /// True if the directory may contain packages in mirror layout.
    mirror: bool,
    /// True if the directory may contain executables in flat layout.
    flat: bool,
    /// Installation method that the directory belongs to, whose patterns limit the providers; `None` for all providers.
    method: Option<Method>,
    /// True if the directory comes with the configuration, whose author may have filled it.
    of_configuration: bool,
}

/// Provider package or executable that was found on this machine.
#[derive(Clone, Debug)]
pub struct Found {
    pub version: Version,
    pub package: Package,
    pub executable: PathBuf,
    /// True if the executable is in a directory of the configuration. It may have arrived with a checkout, without a decision of the
    /// user to run it.
    pub of_configuration: bool,
}

/// Files of an installed provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Package {
    /// Directory whose files all belong to the provider.
    Directory(PathBuf),
    /// Single file, in a directory with other files.
    File(PathBuf),
}

impl Package {
    /// Computes the `h1:` checksum of the package.
    pub fn hash(&self) -> std::io::Result<String> {
        match self {
            Package::Directory(dir) => crate::hash::directory(dir),
            Package::File(file) => crate::hash::single_file(file),
        }
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Package::Directory(path) | Package::File(path) => path,
        }
    }
}

/// Executable in flat layout.
#[derive(Clone, Debug, PartialEq)]
pub struct Flat {
    /// Part of the file name between kind and version, in lower case.
    pub name: String,
    /// Version in the file name, or 0.0.0.
    pub version: Version,
    pub path: PathBuf,
    /// True if the executable is in a directory of the configuration. It may have arrived with a checkout, without a decision of the
    /// user to run it.
    pub of_configuration: bool,
}

#[derive(Clone, Copy)]
enum Layout {
    Mirror,
    Flat,
    Both,
}

impl SearchDir {
    fn new(path: PathBuf, layout: Layout) -> SearchDir {
        SearchDir {
            path,
            mirror: !matches!(layout, Layout::Flat),
            flat: !matches!(layout, Layout::Mirror),
            method: None,
            of_configuration: false,
        }
    }

    fn of_configuration(self) -> SearchDir {
        SearchDir {
            of_configuration: true,
            ..self
        }
    }
}

/// Returns the directories with installed plugins, in the order in which they are searched.
#[must_use]
pub fn search_dirs(settings: &Settings) -> Vec<SearchDir> {
    if !settings.plugin_dirs.is_empty() {
        let named = settings.plugin_dirs.iter().cloned();
        let named = named.map(|path| SearchDir::new(path, Layout::Both));
        // The file in the data directory that lists these directories may have come with the configuration.
        return match settings.plugin_dirs_remembered {
            true => named.map(SearchDir::of_configuration).collect(),
            false => named.collect(),
        };
    }
    if let Some(methods) = &settings.config.provider_installation {
        let mirror = |method: &Method| match &method.source {
            Source::FilesystemMirror(path) => Some(SearchDir {
                method: Some(method.clone()),
                ..SearchDir::new(path.clone(), Layout::Mirror)
            }),
            _ => None,
        };
        // As in Terraform: explicit installation methods replace all implied directories.
        return methods.iter().filter_map(mirror).collect();
    }
    let platform = Platform::current().to_string();
    let flat = |path: PathBuf| SearchDir::new(path, Layout::Flat);
    let both = |path: PathBuf| SearchDir::new(path, Layout::Both);
    let work = &settings.working_dir;
    let environment = &settings.environment;
    let mut dirs = vec![flat(work.clone()).of_configuration()];
    // The order is Terraform's, which searches the directory of its executable, too.
    dirs.extend(settings.builtins.executable.parent().map(|dir| flat(dir.to_owned())));
    let local = work.join("terraform.d/plugins");
    dirs.push(flat(local.join(&platform)).of_configuration());
    dirs.push(both(local).of_configuration());
    dirs.push(flat(settings.data_dir.join("plugins").join(&platform)).of_configuration());
    let home = environment.home();
    let variable = |name: &str| environment.get(name).map(str::to_owned);
    let paths = environment.cli_configuration(Mode::current().paths());
    for user in paths.into_iter().flat_map(|paths| paths.plugins) {
        dirs.push(flat(user.join(&platform)));
        dirs.push(both(user));
    }
    let mirrors = Os::CURRENT.plugin_directories(home.as_deref(), &variable).into_iter();
    dirs.extend(mirrors.map(|path| SearchDir::new(path, Layout::Mirror)));
    dirs
}

impl SearchDir {
    /// Returns true if the directory may contain packages in mirror layout.
    #[must_use]
    pub fn is_mirror(&self) -> bool {
        self.mirror
    }

    /// Returns true if the directory is searched for this provider.
    #[must_use]
    pub fn applies_to(&self, provider: &Provider) -> bool {
        self.method.as_ref().is_none_or(|method| method.applies_to(provider))
    }

    /// Returns the packages of a provider for a platform in mirror layout, one for each version; none if the directory is not searched for
    /// them.
    #[must_use]
    pub fn in_mirror(&self, provider: &Provider, platform: &Platform) -> Vec<Found> {
        if !self.mirror || !self.applies_to(provider) {
            return Vec::new();
        }
        let mut found = versions_below(&self.path, provider, platform);
        for found in &mut found {
            found.of_configuration = self.of_configuration;
        }
        found
    }

    /// Returns the executables of a kind (`provider`, `provisioner`) in flat layout, sorted by name. `own` is left out: links to
    /// this executable are put into plugin directories so that other tools can use the built-in plugins.
    #[must_use]
    pub fn in_flat(&self, kind: &str, own: Option<&Path>) -> Vec<Flat> {
        if !self.flat {
            return Vec::new();
        }
        let prefix = format!("terraform-{kind}-");
        let mut out: Vec<Flat> = entries(&self.path)
            .into_iter()
            .filter_map(|name| {
                let rest = name.strip_prefix(&prefix)?;
                let path = self.path.join(&name);
                if !path.is_file() {
                    return None;
                }
                let Some((name, version)) = flat_name(rest) else {
                    tracing::warn!(path = %path.display(), "plugin ignored: its name has no valid version");
                    return None;
                };
                Some(Flat {
                    name,
                    version,
                    path,
                    of_configuration: self.of_configuration,
                })
            })
            .collect();
        out.retain(|flat| own.is_none() || flat.path.canonicalize().ok().as_deref() != own);
        out
    }
}

/// Returns the directory of a provider below a directory in mirror layout.
#[must_use]
pub fn provider_dir(base: &Path, provider: &Provider) -> PathBuf {
    base.join(&*provider.host)
        .join(&*provider.namespace)
        .join(&*provider.ty)
}

/// Returns the unpacked packages of a provider in mirror layout: the platforms of each version.
#[must_use]
pub fn platforms_below(base: &Path, provider: &Provider) -> BTreeMap<Version, BTreeSet<Platform>> {
    let below = provider_dir(base, provider);
    let mut out: BTreeMap<Version, BTreeSet<Platform>> = BTreeMap::new();
    for name in entries(&below) {
        let Ok(version) = Version::parse(&name) else {
            continue;
        };
        let dir = below.join(&name);
        let platforms = entries(&dir).into_iter().filter_map(|name| {
            let platform: Platform = name.parse().ok()?;
            executable_in(&dir.join(name), &provider.ty).map(|_| platform)
        });
        let platforms: BTreeSet<Platform> = platforms.collect();
        if !platforms.is_empty() {
            out.insert(version, platforms);
        }
    }
    out
}

/// Returns the providers that a directory in mirror layout has packages of.
#[must_use]
pub fn providers_below(base: &Path) -> Vec<Provider> {
    let mut out = Vec::new();
    // Beside mirrors there are other directories, such as those of platforms in flat layout. Only the names of hosts
    // have a dot or a port.
    for host in entries(base).into_iter().filter(|host| host.contains(['.', ':'])) {
        for namespace in entries(&base.join(&host)) {
            for ty in entries(&base.join(&host).join(&namespace)) {
                out.extend(Provider::parse(&format!("{host}/{namespace}/{ty}")));
            }
        }
    }
    out
}

/// Returns the unpacked packages of a provider for a platform in mirror layout, one for each version.
#[must_use]
pub fn versions_below(base: &Path, provider: &Provider, platform: &Platform) -> Vec<Found> {
    let below = provider_dir(base, provider);
    let mut out = Vec::new();
    for name in entries(&below) {
        let Ok(version) = Version::parse(&name) else {
            continue;
        };
        let dir = below.join(&name).join(platform.to_string());
        match executable_in(&dir, &provider.ty) {
            Some(executable) => out.push(Found {
                version,
                executable,
                package: Package::Directory(dir),
                of_configuration: false,
            }),
            // A package without its executable looks installed to the user, so it is reported.
            None if dir.is_dir() => tracing::warn!(dir = %dir.display(), "package ignored: it has no executable"),
            None => {}
        }
    }
    out
}

/// Returns the executable of a package: the first file whose name is that of the provider, alone or followed by `_` or a dot.
#[must_use]
pub fn executable_in(dir: &Path, ty: &str) -> Option<PathBuf> {
    let wanted = format!("terraform-provider-{ty}");
    entries(dir)
        .into_iter()
        .find(|name| {
            name.strip_prefix(&wanted)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['_', '.']))
        })
        .map(|name| dir.join(name))
}

/// Returns the names in a directory, sorted; empty if it cannot be read.
pub(crate) fn entries(dir: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return Vec::new();
    };
    // The names are sorted, because otherwise selections would depend on the order of the file system.
    let mut names: Vec<String> = entries.filter_map(|e| e.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// Parses a name of the form `NAME[_vX.Y.Z[_xN]][.exe]`; `None` if it has another form. Without a version, the version is 0.0.0.
fn flat_name(rest: &str) -> Option<(String, Version)> {
    let rest = rest.to_lowercase();
    let rest = rest.strip_suffix(".exe").unwrap_or(&rest);
    let (name, version) = match rest.split_once("_v") {
        None => (rest, Version::new(0, 0, 0)),
        Some((name, version)) => {
            // In names of old releases, `_x5` is the version of the plugin protocol.
            let version = version.split_once("_x").map_or(version, |(version, _)| version);
            (name, Version::parse(version).ok()?)
        }
    };
    let valid = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    valid.then(|| (name.to_owned(), version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_flat_layout() {
        let v = |text| Version::parse(text).unwrap();
        for (rest, expected) in [
            ("null", Some(("null", v("0.0.0")))),
            ("null_v3.2.1", Some(("null", v("3.2.1")))),
            ("null_v3.2.1_x5", Some(("null", v("3.2.1")))),
            ("Null_v3.2.1_x5.EXE", Some(("null", v("3.2.1")))),
            ("azure-ad_v1.0.0-beta1", Some(("azure-ad", v("1.0.0-beta1")))),
            ("null_v3.2", None),
            ("null_v3.2.1.zip", None),
            ("null.md", None),
            ("", None),
        ] {
            let expected = expected.map(|(name, version)| (name.to_owned(), version));
            assert_eq!(flat_name(rest), expected, "{rest}");
        }
    }

    #[test]
    fn a_package_has_its_executable_under_several_names() {
        let dir = tempfile::tempdir().unwrap();
        let add = |name: &str| std::fs::write(dir.path().join(name), "").unwrap();
        add("LICENSE.txt");
        add("terraform-provider-nullify");
        assert_eq!(executable_in(dir.path(), "null"), None);
        add("terraform-provider-null_v3.2.1_x5");
        assert_eq!(
            executable_in(dir.path(), "null"),
            Some(dir.path().join("terraform-provider-null_v3.2.1_x5"))
        );
        add("terraform-provider-null");
        assert_eq!(
            executable_in(dir.path(), "null"),
            Some(dir.path().join("terraform-provider-null"))
        );
    }
}

//! `init -from-module`: copies a module into an empty directory, as its configuration.

use std::io;
use std::path::Path;

use config::files::{Disk, clean, join};
use config::manifest::Manifest;
use config::source_address::{ModuleSource, RemoteSource};
use config::{LiteralAddress, LoadOptions, load};
use net::Client;
use syntax::{Diagnostic, Diagnostics};

use crate::fetch::Fetcher;
use crate::registry::Registries;
use crate::tree;

/// Returns true if a directory has nothing in it but the data directory.
pub fn is_empty(dir: &Path, data_dir: &str) -> io::Result<bool> {
    for entry in std::fs::read_dir(dir)? {
        let name = entry?.file_name();
        if name != *".terraform" && name != *data_dir {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Copies a module to an empty directory. The modules that it calls are left to installation.
pub async fn copy(
    client: &Client,
    source: &str,
    dir: &Path,
    data_dir: &str,
    tool_version: &str,
) -> Result<(), Diagnostics> {
    let fail = |summary: &str, detail: String| Err(Diagnostics::from(Diagnostic::error(summary, detail)));
    let written = absolute_source(source);
    let remote = remote_source(client, source, &written).await?;
    let failed = |e: io::Error| {
        Diagnostics::from(Diagnostic::error(
            "Failed to copy root module",
            format!(
                "The module \"{source}\" cannot be copied to {}: {}.",
                dir.display(),
                files::io_reason(&e)
            ),
        ))
    };
    std::fs::create_dir_all(data_dir).map_err(failed)?;
    // The module is fetched to the data directory first, so that a module that turns out to be unusable leaves the
    // directory empty.
    let partial = tempfile::Builder::new()
        .prefix("from-module-")
        .tempdir_in(data_dir)
        .map_err(failed)?;
    let package = partial.path().join("package");
    if let Err(problem) = Fetcher::new(client.clone()).fetch(&remote.package, &package).await {
        return fail(
            "Failed to download module",
            format!("The module could not be fetched from \"{source}\": {problem}."),
        );
    }
    let module = match &remote.subdir {
        None => package,
        Some(subdir) => match tree::subdirectory(&package, subdir, None) {
            Ok(module) => module,
            Err(problem) => {
                return fail(
                    "Unreadable module subdirectory",
                    format!("The package of \"{source}\" was fetched, but {problem}."),
                );
            }
        },
    };
    // Paths out of the module are checked before anything is copied: a module that needs files outside of its
    // directory does not work alone.
    let problems = leaving(&module.to_string_lossy(), source, &written, tool_version);
    if problems.has_errors() {
        return Err(problems);
    }
    tree::copy(&module, dir).map_err(failed)
}

/// Returns the source address with a relative path made absolute: the copy is in another directory.
fn absolute_source(source: &str) -> String {
    let unix = source.replace('\\', "/");
    let relative = unix == "." || unix == ".." || unix.starts_with("./") || unix.starts_with("../");
    match std::path::absolute(&unix) {
        Ok(path) if relative => {
            let (path, subdir) = match unix.split_once("//") {
                Some((package, subdir)) => (std::path::absolute(package).unwrap_or(path), Some(subdir)),
                None => (path, None),
            };
            let package = clean(&path.to_string_lossy());
            subdir.map_or_else(|| package.clone(), |subdir| format!("{package}//{subdir}"))
        }
        _ => source.to_owned(),
    }
}

/// Returns the package of a source address. For a registry module, it is that of the newest version.
async fn remote_source(client: &Client, source: &str, written: &str) -> Result<RemoteSource, Diagnostics> {
    let fail = |summary: &str, detail: String| Err(Diagnostics::from(Diagnostic::error(summary, detail)));
    match ModuleSource::parse(written, false) {
        Ok(ModuleSource::Remote(remote)) => Ok(remote),
        Ok(ModuleSource::Registry(module)) => {
            let registries = Registries::new(client.clone(), None, None);
            let located = async {
                let version = registries.choose(&module, None).await?;
                registries.location(&module, &version.text).await
            };
            match located.await {
                Ok(location) => Ok(RemoteSource {
                    // The registry's subdirectory comes first, and the one in the address is relative to it.
                    subdir: match (location.subdir, &module.subdir) {
                        (Some(outer), Some(inner)) => Some(format!("{outer}/{inner}")),
                        (outer, inner) => outer.or_else(|| inner.clone()),
                    },
                    package: location.package,
                }),
                Err(problem) => fail(problem.summary, problem.detail),
            }
        }
        Ok(ModuleSource::Local(_)) => fail(
            "Invalid module source address",
            format!("\"{source}\" is not a directory."),
        ),
        Err(error) => fail("Invalid module source address", error.to_string()),
    }
}

/// Returns an error for each module call whose source path leads out of the directory that is copied.
fn leaving(dir: &str, source: &str, written: &str, tool_version: &str) -> Diagnostics {
    let mut problems = Diagnostics::new();
    let nothing = Manifest::default();
    let options = LoadOptions::new(tool_version, &nothing);
    let loaded = load(&Disk, dir, &options);
    for call in loaded.config.root.module.module_calls.values() {
        let LiteralAddress::Known(address) = &call.address else {
            continue;
        };
        let ModuleSource::Local(relative) = &address.source else {
            continue;
        };
        if !relative.starts_with("../") && relative != ".." {
            continue;
        }
        let instead = RemoteSource::parse(written).ok().map(|remote| {
            let subdir = join(remote.subdir.as_deref().unwrap_or("."), relative);
            RemoteSource {
                subdir: Some(subdir).filter(|s| s != "."),
                ..remote
            }
        });
        // If the path leads out of the package, no remote address can be suggested.
        let advice = match instead.filter(|i| i.subdir.as_ref().is_none_or(|s| !s.starts_with(".."))) {
            Some(instead) => format!(" such as \"{instead}\""),
            None => String::new(),
        };
        problems.push(Diagnostic::error(
            "Root module references parent directory",
            format!(
                "The module \"{source}\" calls the module \"{}\" by way of its parent directory, which is not copied with it. To \
                 use it as a new root module, its source must be written as a remote address{advice}.",
                call.name
            ),
        ));
    }
    problems
}

//! `provider …`: tools for authors of providers.

mod check;
mod docs;
mod new;
mod release;
mod test;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use addrs::Provider;
use plugins::Program;
use provider::ProviderSchema;
use syntax::Diagnostics;

use crate::outcome::Failure;
use crate::session::Session;

pub use check::COMMAND as CHECK;
pub use docs::COMMAND as DOCS;
pub use new::COMMAND as NEW;
pub use release::COMMAND as RELEASE;
pub use test::COMMAND as TEST;

/// Beginning of the names of provider executables.
const PREFIX: &str = "terraform-provider-";

/// Executable of a provider under development.
struct Executable {
    path: PathBuf,
    /// Name of the provider, the prefix of its types.
    name: String,
}

impl Executable {
    /// Returns the executable at a path. Without `name`, the name of the provider is derived from the file name.
    fn at(path: &Path, name: Option<&str>) -> Result<Executable, Failure> {
        let file = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = match name {
            Some(name) => Some(name.to_owned()),
            None => file.as_deref().and_then(provider_name).map(str::to_owned),
        };
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            return Err(Failure::new(
                "Unknown name of the provider",
                format!(
                    "The file {} is not called {PREFIX}NAME. Name the provider by the option -name.",
                    path.display()
                ),
            ));
        };
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        Ok(Executable { path, name })
    }

    /// Finds the newest executable of the project in a directory and its subdirectories in [`PLACES`].
    fn in_directory(dir: &Path, name: Option<&str>) -> Result<Executable, Failure> {
        let newest = PLACES
            .iter()
            .flat_map(|place| executables(&dir.join(place)))
            .filter(|path| name.is_none_or(|name| file_name(path).and_then(provider_name) == Some(name)))
            .max_by_key(|path| modified(path));
        match newest {
            Some(path) => Executable::at(&path, name),
            None => Err(Failure::new(
                "No provider executable",
                format!(
                    "There is no executable {PREFIX}{} in {}, nor in its directories {}. Build the provider first, or name the file.",
                    name.unwrap_or("NAME"),
                    dir.display(),
                    PLACES.get(1..).unwrap_or_default().join(", ")
                ),
            )),
        }
    }

    /// Starts the provider, and requests its schemas.
    fn schema(&self, session: &Session) -> Result<Arc<ProviderSchema>, Diagnostics> {
        let host = session.plugin_host()?;
        let program = Program::Executable {
            path: self.path.clone(),
            package: None,
        };
        let provider = host.provider(&self.address(), program)?;
        session.runtime()?.block_on(async {
            let schema = provider.schema().await;
            provider.close().await;
            let schema = schema?;
            match schema.first_problem() {
                None => Ok(schema),
                Some(reason) => Err(provider::invalid_schema(&self.name, reason).into()),
            }
        })
    }

    /// Returns the provider address that the bare name implies: `hashicorp/NAME`.
    fn address(&self) -> Provider {
        Provider::default_for(self.name.as_str())
    }
}

/// Directories of a project in which builds put executables, relative to it.
const PLACES: &[&str] = &[".", "bin", "dist", "target/debug", "target/release"];

fn file_name(path: &Path) -> Option<&str> {
    path.file_name().and_then(|name| name.to_str())
}

/// Returns NAME from the file name of an executable, `terraform-provider-NAME`, perhaps with a version; `None` for
/// other names.
fn provider_name(file: &str) -> Option<&str> {
    let rest = file.strip_prefix(PREFIX)?;
    let rest = rest.strip_suffix(".exe").unwrap_or(rest);
    Some(rest.split_once("_v").map_or(rest, |(name, _)| name))
}

/// Returns the provider executables directly in a directory.
fn executables(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let files = entries.map(|entry| entry.path());
    files
        .filter(|path| {
            let is_provider = file_name(path)
                // Build directories have files such as NAME.d beside the executable.
                .is_some_and(|name| {
                    name.starts_with(PREFIX) && (!name.contains('.') || name.ends_with(".exe") || name.contains("_v"))
                });
            is_provider && path.is_file()
        })
        .collect()
}

fn modified(path: &Path) -> Option<SystemTime> {
    path.metadata().and_then(|data| data.modified()).ok()
}

/// Returns the only argument.
fn one<'a>(positional: &'a [String], what: &str) -> Result<&'a str, Failure> {
    match positional {
        [one] => Ok(one),
        [] => Err(Failure::usage("Missing argument", format!("Name {what}."))),
        _ => Err(Failure::usage(
            "Too many command line arguments",
            format!("Name {what}, and nothing else."),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_executables_say_the_provider() {
        for (file, name) in [
            ("terraform-provider-zoo", Some("zoo")),
            ("terraform-provider-zoo_v1.2.3", Some("zoo")),
            ("terraform-provider-zoo_v1.2.3_x5.exe", Some("zoo")),
            ("terraform-provider-google-beta", Some("google-beta")),
            ("zoo", None),
        ] {
            assert_eq!(provider_name(file), name, "{file}");
        }
    }
}

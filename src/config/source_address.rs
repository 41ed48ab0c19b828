//! Where modules come from: the `source` argument of a module call.

use std::fmt;

/// A module's source address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModuleSource {
    /// A directory relative to the calling module: begins with `./` or `../`.
    Local(String),
    /// A module of a registry.
    Registry(RegistrySource),
    /// Anything else: fetched by its own protocol.
    Remote(String),
}

/// A module of a registry: `[HOST/]NAMESPACE/NAME/SYSTEM[//SUBDIR]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistrySource {
    /// The registry's host name.
    pub host: String,
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The target system.
    pub system: String,
    /// The directory inside the package.
    pub subdir: Option<String>,
}

impl ModuleSource {
    /// Reads a source address. `has_version` says whether the call has a `version` argument, which only registry modules
    /// may have. The error is a sentence.
    pub fn parse(text: &str, has_version: bool) -> Result<ModuleSource, String> {
        let unix = text.replace('\\', "/");
        if unix.starts_with("./") || unix.starts_with("../") || unix == "." || unix == ".." {
            return Ok(ModuleSource::Local(clean_local(&unix)));
        }
        match RegistrySource::parse(text) {
            Some(source) => Ok(ModuleSource::Registry(source)),
            None if has_version => Err(format!(
                "Terraform cannot process a version constraint for \"{text}\", which is not the address of a module in a \
                 registry."
            )),
            None if text.is_empty() => Err("The source address must not be empty.".into()),
            None => {
                if !text.contains([':', '/', '.']) || (text.split('/').count() <= 2 && looks_like_path(text)) {
                    return Err(format!(
                        "\"{text}\" is neither a registry address nor any other known kind of module source. If it is a \
                         local directory, it must begin with \"./\" or \"../\"."
                    ));
                }
                Ok(ModuleSource::Remote(text.to_owned()))
            }
        }
    }

    /// Whether the module is part of the package of the calling one.
    #[must_use]
    pub fn is_local(&self) -> bool {
        matches!(self, ModuleSource::Local(_))
    }
}

/// Words and slashes only: most likely a path whose `./` is missing.
fn looks_like_path(text: &str) -> bool {
    text.chars()
        .all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '/'))
}

fn clean_local(text: &str) -> String {
    let cleaned = crate::files::clean(text);
    if cleaned.starts_with("../") || cleaned == ".." {
        cleaned
    } else {
        format!("./{}", cleaned.trim_start_matches("./"))
    }
}

impl RegistrySource {
    fn parse(text: &str) -> Option<RegistrySource> {
        let (package, subdir) = match text.split_once("//") {
            Some((package, subdir)) => (package, Some(subdir)),
            None => (text, None),
        };
        let parts: Vec<&str> = package.split('/').collect();
        let (host, rest) = match parts.as_slice() {
            [host, rest @ ..] if rest.len() == 3 => (*host, rest),
            rest if rest.len() == 3 => ("registry.terraform.io", rest),
            _ => return None,
        };
        let [namespace, name, system] = rest else { return None };
        // Hosts of version control are shorthands for git addresses, never registries.
        if ["github.com", "bitbucket.org", "gitlab.com"].contains(&host) || host_like(namespace) {
            return None;
        }
        if !host_like(host) || !word(namespace) || !word(name) {
            return None;
        }
        if system.is_empty() || !system.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()) {
            return None;
        }
        Some(RegistrySource {
            host: host.to_lowercase(),
            namespace: (*namespace).to_owned(),
            name: (*name).to_owned(),
            system: (*system).to_owned(),
            subdir: subdir.filter(|s| !s.is_empty()).map(crate::files::clean),
        })
    }
}

fn host_like(text: &str) -> bool {
    text.contains('.')
        && text
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '-' | '.' | ':'))
        && !text.starts_with('.')
        && !text.ends_with('.')
}

fn word(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
        && !text.starts_with(['-', '_'])
        && !text.ends_with(['-', '_'])
}

/// As the module manifest has it: a registry address always with its host.
impl fmt::Display for ModuleSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ModuleSource::Local(s) | ModuleSource::Remote(s) => f.write_str(s),
            ModuleSource::Registry(r) => {
                write!(f, "{}/{}/{}/{}", r.host, r.namespace, r.name, r.system)?;
                match &r.subdir {
                    Some(subdir) => write!(f, "//{subdir}"),
                    None => Ok(()),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_sources() {
        let kind = |s: &str| match ModuleSource::parse(s, false) {
            Ok(ModuleSource::Local(_)) => "local",
            Ok(ModuleSource::Registry(_)) => "registry",
            Ok(ModuleSource::Remote(_)) => "remote",
            Err(_) => "error",
        };
        for (text, expected) in [
            ("./a", "local"),
            ("../a/../b", "local"),
            (".\\a", "local"),
            ("hashicorp/consul/aws", "registry"),
            ("app.example.com:8443/a/b/c//sub", "registry"),
            ("github.com/a/b", "remote"),
            ("git::https://example.com/x.git?ref=v1", "remote"),
            ("/abs/dir", "remote"),
            ("modules/x", "error"),
            ("", "error"),
        ] {
            assert_eq!(kind(text), expected, "{text}");
        }
        assert_eq!(ModuleSource::parse("./a/../b/", false).unwrap().to_string(), "./b");
        assert_eq!(
            ModuleSource::parse("a/b/c//d", false).unwrap().to_string(),
            "registry.terraform.io/a/b/c//d"
        );
    }
}

//! The shared files `~/.aws/config` and `~/.aws/credentials`.

use std::collections::BTreeMap;

use monoform_sdk::env;

use crate::config::{Config, list, text};

/// Paths of the shared files.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    pub(super) config: Vec<String>,
    pub(super) credentials: Vec<String>,
}

/// A section of a shared file, by setting. A setting `b` in the group `a` has the name `a.b`.
pub(crate) type Section = BTreeMap<String, String>;

/// Sections of all files, by name: profiles, SSO sessions and services.
#[derive(Default)]
pub(super) struct Sections {
    pub profiles: BTreeMap<String, Section>,
    pub sessions: BTreeMap<String, Section>,
    services: BTreeMap<String, Section>,
}

/// Service endpoints from the variable `AWS_ENDPOINT_URL` and from a profile in the shared files.
#[derive(Default)]
pub(crate) struct Endpoints {
    /// Endpoint for all services.
    pub all: Option<String>,
    /// Endpoints for single services, such as `s3.endpoint_url`.
    services: Section,
}

impl Endpoints {
    /// Returns the endpoint that is set for one service.
    pub fn for_service(&self, service: &str) -> Option<String> {
        self.services.get(&format!("{service}.endpoint_url")).cloned()
    }
}

impl Files {
    /// Returns the paths from the arguments, or else from the environment, or else the defaults.
    pub fn from_config(arguments: &Config) -> Files {
        let one = text(&arguments.shared_credentials_file).map(|file| vec![file]);
        let credentials = list(&arguments.shared_credentials_files).or(one);
        let config = list(&arguments.shared_config_files);
        let or = |given: Option<Vec<String>>, variables: &[&str], usual: &str| {
            given.unwrap_or_else(|| vec![env::first(variables).unwrap_or_else(|| usual.to_owned())])
        };
        Files {
            config: or(config, &["AWS_SHARED_CONFIG_FILE", "AWS_CONFIG_FILE"], "~/.aws/config"),
            credentials: or(credentials, &["AWS_SHARED_CREDENTIALS_FILE"], "~/.aws/credentials"),
        }
    }

    /// Reads all sections. Settings in credentials files override those in config files.
    pub(super) fn read(&self) -> Sections {
        let mut all = Sections::default();
        let read = |path: &String| std::fs::read_to_string(env::expand_home(path)).unwrap_or_default();
        for path in &self.config {
            let found = sections(&read(path));
            // If a file has both `[default]` and `[profile default]`, the section `[default]` is ignored.
            let has_long = found.iter().any(|(name, _)| kind(name) == ("profile", "default"));
            for (name, section) in found {
                let (kind, name) = kind(&name);
                let (of_kind, name) = match (kind, name) {
                    ("profile", name) => (&mut all.profiles, name),
                    ("sso-session", name) => (&mut all.sessions, name),
                    ("services", name) => (&mut all.services, name),
                    ("default", "") if !has_long => (&mut all.profiles, "default"),
                    _ => continue,
                };
                of_kind.entry(name.to_owned()).or_default().extend(section);
            }
        }
        for (name, section) in self.credentials.iter().flat_map(|path| sections(&read(path))) {
            all.profiles.entry(name).or_default().extend(section);
        }
        all
    }

    /// Returns the endpoints from `AWS_ENDPOINT_URL` and a profile, or none if the user has set that these are ignored. The variables for
    /// single services (`AWS_ENDPOINT_URL_<SERVICE>`) are not read here.
    pub fn endpoints(&self, profile: &str) -> Endpoints {
        let mut all = self.read();
        let section = all.profiles.remove(profile).unwrap_or_default();
        let get = |key: &str| section.get(key).filter(|value| !value.is_empty());
        let ignored =
            env::var("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS").or_else(|| get("ignore_configured_endpoint_urls").cloned());
        if ignored.is_some_and(|text| text.eq_ignore_ascii_case("true")) {
            return Endpoints::default();
        }
        Endpoints {
            all: env::var("AWS_ENDPOINT_URL").or_else(|| get("endpoint_url").cloned()),
            services: get("services")
                .and_then(|name| all.services.remove(name))
                .unwrap_or_default(),
        }
    }
}

/// Splits the header of a section in the config file into its kind and its name.
fn kind(header: &str) -> (&str, &str) {
    let (kind, name) = header.split_once(char::is_whitespace).unwrap_or((header, ""));
    (kind, name.trim())
}

/// Parses the sections of a file, in order.
fn sections(text: &str) -> Vec<(String, Section)> {
    let mut out: Vec<(String, Section)> = Vec::new();
    let mut outer = String::new();
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = trimmed.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            out.push((name.trim().to_owned(), Section::new()));
            continue;
        }
        if let (Some((name, value)), Some((_, section))) = (trimmed.split_once('='), out.last_mut()) {
            let value = value.split(" #").next().unwrap_or_default().trim();
            let name = name.trim().to_lowercase();
            // An indented line is a nested setting of the last setting that was not indented.
            let name = match line.starts_with(char::is_whitespace) {
                true => format!("{outer}.{name}"),
                false => {
                    outer.clone_from(&name);
                    name
                }
            };
            section.insert(name, value.to_owned());
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_read_with_comments_and_nested_settings() {
        let text = "# x\n[default]\nregion = eu-west-1 # where\n[profile dev]\naws_access_key_id=A\ns3 =\n  max = 5\n; y\nROLE_ARN = r\n";
        let found = sections(text);
        assert_eq!(found[0].0, "default");
        assert_eq!(found[0].1["region"], "eu-west-1");
        assert_eq!(found[1].0, "profile dev");
        assert_eq!(found[1].1["role_arn"], "r");
        assert!(!found[1].1.contains_key("max"));
        assert_eq!(found[1].1["s3.max"], "5");
    }
}

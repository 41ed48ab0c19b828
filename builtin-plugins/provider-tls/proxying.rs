//! The provider's configuration: the proxy for requests to servers.

#![expect(clippy::disallowed_methods, reason = "the environment names proxy servers")]

use monoform_sdk::cty::{Path, Step, Value};
use monoform_sdk::schema::{block, optional};
use monoform_sdk::{Attr, Diagnostic, Diagnostics, Result, Validator, model};
use proxies::Proxies;
use url::Url;

use crate::{failed, web_address};

model! {
    /// The provider's configuration.
    pub struct Config {
        /// The proxy for connections to the outside.
        pub proxy: Attr<Vec<Proxy>> = block().validate(Validator::Size(0, 1)),
    }
}

model! {
    pub struct Proxy {
        /// URL of the proxy, with the scheme `http`, `https` or `socks5`.
        pub url: Attr<String> = optional(),
        /// The name by which the proxy knows you.
        pub username: Attr<String> = optional(),
        /// The password for it.
        pub password: Attr<String> = optional().sensitive(),
        /// True if to use the proxy that the environment names (`HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`). The default is true.
        pub from_env: Attr<bool> = optional(),
    }
}

impl Config {
    /// Checks rules that the schema cannot express.
    pub fn check(&self) -> Diagnostics {
        let mut out = Diagnostics::new();
        for (i, proxy) in self.proxy.known().into_iter().flatten().enumerate() {
            let at = |name: &str| {
                Path::root()
                    .attribute("proxy")
                    .with(Step::Index(Value::number(i as i64)))
                    .attribute(name)
            };
            let mut combination = |name: &str, detail: String| {
                out.push(Diagnostic::error("Invalid Attribute Combination", detail).at(at(name)));
            };
            let path = |name: &str| format!("proxy[{i}].{name}");
            let from_env = proxy.from_env.known().is_some();
            let set = [
                ("url", proxy.url.known().is_some()),
                ("username", proxy.username.known().is_some()),
                ("password", proxy.password.known().is_some()),
            ];
            for (name, set) in set {
                if !(set && from_env) {
                    continue;
                }
                if name == "url" {
                    combination(name, conflict(&path("from_env"), &path(name)));
                }
                combination("from_env", conflict(&path(name), &path("from_env")));
            }
            for (name, set, needed, missing) in [
                ("username", !proxy.username.is_null(), "url", proxy.url.is_null()),
                (
                    "password",
                    !proxy.password.is_null(),
                    "username",
                    proxy.username.is_null(),
                ),
            ] {
                if set && missing {
                    let detail = format!(
                        "Attribute \"{}\" must be specified when \"{}\" is specified",
                        path(needed),
                        path(name)
                    );
                    combination(name, detail);
                }
            }
            if let Some(text) = proxy.url.as_str()
                && let Some(problem) = web_address::check(text, &["http", "https", "socks5"])
            {
                out.push(problem.at(at("url")));
            }
        }
        out
    }
}

fn conflict(one: &str, other: &str) -> String {
    format!("Attribute \"{one}\" cannot be specified when \"{other}\" is specified")
}

/// Proxy for requests to servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Proxying {
    Direct,
    Through(Url),
    /// The proxy that the environment variables name, if there is one.
    AsTheEnvironmentSays,
}

/// Error for an environment variable whose value is not a usable proxy URL.
#[derive(Debug, thiserror::Error)]
#[error("{0} names no proxy that can be used: it has the form http://HOST:PORT")]
pub(crate) struct UnusableProxy(String);

impl Proxying {
    /// Reads the proxy settings of a configuration.
    pub fn configured(config: &Config) -> Result<Proxying> {
        let Some(proxy) = config.proxy.known().and_then(|blocks| blocks.first()) else {
            return Ok(Proxying::AsTheEnvironmentSays);
        };
        let Some(text) = proxy.url.as_str() else {
            return Ok(match proxy.from_env {
                Attr::Known(false) => Proxying::Direct,
                _ => Proxying::AsTheEnvironmentSays,
            });
        };
        let unusable = |e: &dyn std::fmt::Display| failed("Unable to parse proxy URL", format!("{text:?}: {e}."));
        let mut url = Url::parse(text).map_err(|e| unusable(&e))?;
        if let Some(name) = proxy.username.as_str()
            && (url.set_username(name).is_err() || url.set_password(proxy.password.as_str()).is_err())
        {
            return Err(unusable(&"a URL of this form has no place for a name and a password"));
        }
        Ok(Proxying::Through(url))
    }

    /// Returns the proxy for the HTTP client.
    pub fn proxy(&self) -> std::result::Result<http::Proxy, UnusableProxy> {
        match self {
            Proxying::Direct => Ok(http::Proxy::None),
            Proxying::Through(url) => Ok(http::Proxy::Always(names_by_proxy(url.as_str()))),
            Proxying::AsTheEnvironmentSays => {
                let proxies = Proxies::from_variables(|name| std::env::var(name).ok());
                match proxies.unusable() {
                    Some(variable) => Err(UnusableProxy(variable.to_owned())),
                    None => Ok(http::Proxy::Rules(Box::new(proxies))),
                }
            }
        }
    }
}

/// Changes the scheme of a SOCKS URL, so that the proxy resolves host names.
fn names_by_proxy(url: &str) -> String {
    match url.strip_prefix("socks5://") {
        Some(rest) => format!("socks5h://{rest}"),
        None => url.to_owned(),
    }
}

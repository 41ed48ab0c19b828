//! Arguments of a `connection` block, with the defaults of each kind of connection.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use monoform_sdk::cty::Value;

use crate::ssh::keys;
use crate::{Error, Result, ssh, winrm};

/// Default of `timeout`.
const TIMEOUT: Duration = Duration::from_secs(300);

/// Validated arguments of a `connection` block.
#[derive(Clone, Debug)]
pub struct Settings {
    pub(crate) kind: Kind,
    pub(crate) timeout: Duration,
    script_path: String,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Ssh(Box<ssh::Settings>),
    Winrm(Box<winrm::Settings>),
}

impl Settings {
    /// Reads the arguments of the block from a map or an object. Keys and certificates are parsed here, so that an invalid one is reported
    /// before a connection is attempted.
    ///
    /// # Errors
    ///
    /// There is no connection block, or one of its arguments is invalid.
    pub fn read(connection: &Value) -> Result<Settings> {
        if connection.is_null() {
            return Err(Error::fatal("Missing connection configuration for provisioner."));
        }
        let mut arguments = Arguments::default();
        for (name, value) in connection.entries().into_iter().flatten() {
            // A host sends the block either as an object, in which numbers and booleans have their own types, or as a map of strings.
            if let Some(text) = monoform_sdk::cty::convert::convert(value, &monoform_sdk::cty::Type::String)
                .ok()
                .and_then(|text| text.as_str().map(str::to_owned))
            {
                arguments.0.insert(name.to_string(), text);
            }
        }
        match arguments.text("type") {
            "" | "ssh" => ssh(&arguments, agent_socket()),
            "winrm" => winrm(&arguments),
            other => Err(Error::fatal(format!("connection type '{other}' not supported"))),
        }
    }

    /// Returns the time limit for connecting, including all attempts.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Returns a path for a script on the other machine. `%RAND%` in the setting is replaced by a random number.
    #[must_use]
    pub fn script_path(&self) -> String {
        // The highest bit is cleared, because Terraform uses non-negative signed 32-bit numbers.
        let number = rand::random::<u32>() >> 1;
        self.script_path.replace("%RAND%", &number.to_string())
    }
}

/// Returns the socket path of the SSH agent (`SSH_AUTH_SOCK`). Without the variable, the pipe of the OpenSSH service on Windows.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place where this crate reads the environment"
)]
fn agent_socket() -> Option<PathBuf> {
    let set = std::env::var_os("SSH_AUTH_SOCK").filter(|path| !path.is_empty());
    set.map(PathBuf::from).or_else(system::user::ssh_agent)
}

#[derive(Default)]
struct Arguments(HashMap<String, String>);

impl Arguments {
    /// Returns an argument as text; an argument that is not set is an empty text, because no argument distinguishes the two cases.
    fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    fn or(&self, name: &str, default: &str) -> String {
        match self.text(name) {
            "" => default.to_owned(),
            text => text.to_owned(),
        }
    }

    fn optional(&self, name: &str) -> Option<String> {
        Some(self.text(name).to_owned()).filter(|text| !text.is_empty())
    }

    fn flag(&self, name: &str) -> bool {
        self.text(name) == "true"
    }

    fn port(&self, name: &str, default: u16) -> Result<u16> {
        match self.text(name) {
            // Terraform treats port 0 as not set.
            "" | "0" => Ok(default),
            text => text
                .parse()
                .map_err(|_| Error::fatal(format!("{name} must be a number from 1 to 65535, and is {text}"))),
        }
    }

    fn timeout(&self) -> Duration {
        // If the text is not a duration, Terraform uses the default, and writes a line to its log.
        gotext::duration::parse(self.text("timeout")).unwrap_or(TIMEOUT)
    }
}

/// Removes the brackets around an IPv6 address, if there are any.
fn host(text: &str) -> String {
    let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    inner.unwrap_or(text).to_owned()
}

fn ssh(arguments: &Arguments, socket: Option<PathBuf>) -> Result<Settings> {
    if arguments.text("host").is_empty() {
        return Err(Error::fatal("host for provisioner cannot be empty"));
    }
    let windows = match arguments.text("target_platform") {
        "" | "unix" => false,
        "windows" => true,
        _ => {
            return Err(Error::fatal(
                "target_platform for provisioner has to be either unix or windows",
            ));
        }
    };
    // By default, an agent is used if there is one. A missing agent is an error only if the block requires it.
    let agent = match (arguments.text("agent"), socket) {
        ("true", None) => {
            return Err(Error::fatal(
                "SSH agent requested but SSH_AUTH_SOCK not-specified: no agent is running, or its address is not in the \
                 environment",
            ));
        }
        ("true" | "", Some(socket)) => Some(ssh::AgentSettings {
            socket,
            identity: arguments.optional("agent_identity"),
        }),
        _ => None,
    };
    let target = ssh::Hop {
        host: host(arguments.text("host")),
        port: arguments.port("port", 22)?,
        user: arguments.or("user", "root"),
        password: arguments.optional("password"),
        key: keys::user_key(arguments.text("private_key"), arguments.text("certificate"))?,
        host_key: keys::host_key(arguments.text("host_key"))?,
    };
    let bastion = match arguments.text("bastion_host") {
        "" => None,
        bastion => Some(ssh::Hop {
            // By default, the bastion has the port, user and credentials of the target. The bastion arguments override them.
            host: host(bastion),
            port: arguments.port("bastion_port", target.port)?,
            user: arguments.or("bastion_user", &target.user),
            password: arguments
                .optional("bastion_password")
                .or_else(|| target.password.clone()),
            key: keys::user_key(
                &arguments.or("bastion_private_key", arguments.text("private_key")),
                &arguments.or("bastion_certificate", arguments.text("certificate")),
            )?,
            host_key: keys::host_key(arguments.text("bastion_host_key"))?,
        }),
    };
    let default_path = if windows {
        "C:/windows/temp/terraform_%RAND%.cmd"
    } else {
        "/tmp/terraform_%RAND%.sh"
    };
    Ok(Settings {
        kind: Kind::Ssh(Box::new(ssh::Settings {
            target,
            bastion,
            proxy: proxy(arguments)?,
            agent,
            windows,
        })),
        timeout: arguments.timeout(),
        script_path: arguments.or("script_path", default_path),
    })
}

fn proxy(arguments: &Arguments) -> Result<Option<ssh::proxy::Proxy>> {
    use ssh::proxy::{Proxy, Scheme};
    if arguments.text("proxy_host").is_empty() {
        return Ok(None);
    }
    let (scheme, default_port) = match arguments.text("proxy_scheme") {
        "" | "http" => (Scheme::Http, 80),
        "https" => (Scheme::Https, 443),
        "socks5" => (Scheme::Socks5, 1080),
        other => {
            return Err(Error::fatal(format!(
                "proxy_scheme is http, https or socks5, and not \"{other}\""
            )));
        }
    };
    Ok(Some(Proxy {
        scheme,
        host: host(arguments.text("proxy_host")),
        port: arguments.port("proxy_port", default_port)?,
        user: arguments.text("proxy_user_name").to_owned(),
        password: arguments.text("proxy_user_password").to_owned(),
    }))
}

fn winrm(arguments: &Arguments) -> Result<Settings> {
    if arguments.text("host").is_empty() {
        return Err(Error::fatal("host for provisioner cannot be empty"));
    }
    let script_path = arguments.or("script_path", "C:/Temp/terraform_%RAND%.cmd");
    // Compared with forward slashes, since Windows accepts both kinds in a path.
    if script_path.replace('\\', "/").starts_with("C:/Windows/Temp") {
        return Err(Error::fatal(
            "script_path cannot be in C:\\Windows\\Temp: Windows may remove scripts there before they run. Choose another folder.",
        ));
    }
    let https = arguments.flag("https");
    let timeout = arguments.timeout();
    Ok(Settings {
        kind: Kind::Winrm(Box::new(winrm::Settings {
            host: host(arguments.text("host")),
            port: arguments.port("port", if https { 5986 } else { 5985 })?,
            user: arguments.or("user", "Administrator"),
            password: arguments.text("password").to_owned(),
            https,
            insecure: arguments.flag("insecure"),
            ntlm: arguments.flag("use_ntlm"),
            cacert: arguments.optional("cacert"),
            timeout,
        })),
        timeout,
        script_path,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(list: &[(&str, &str)]) -> Arguments {
        Arguments(list.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect())
    }

    fn of_ssh(list: &[(&str, &str)]) -> Result<(ssh::Settings, Settings)> {
        let settings = ssh(&arguments(list), None)?;
        match &settings.kind {
            Kind::Ssh(inner) => Ok(((**inner).clone(), settings.clone())),
            Kind::Winrm(_) => panic!("not SSH"),
        }
    }

    #[test]
    fn ssh_has_its_defaults() {
        let (inner, all) = of_ssh(&[("host", "[::1]"), ("timeout", "nonsense")]).unwrap();
        assert_eq!(
            (
                inner.target.host.as_str(),
                inner.target.port,
                inner.target.user.as_str()
            ),
            ("::1", 22, "root")
        );
        assert_eq!(all.timeout(), Duration::from_secs(300));
        assert!(all.script_path().starts_with("/tmp/terraform_"));
        assert_ne!(all.script_path(), all.script_path());
        let (_, windows) = of_ssh(&[("host", "h"), ("target_platform", "windows")]).unwrap();
        assert!(windows.script_path().starts_with("C:/windows/temp/terraform_"));
    }

    #[test]
    fn a_bastion_takes_what_it_does_not_say_from_the_target() {
        let (inner, _) = of_ssh(&[
            ("host", "h"),
            ("user", "u"),
            ("password", "p"),
            ("port", "2222"),
            ("bastion_host", "b"),
            ("bastion_user", "v"),
        ])
        .unwrap();
        let bastion = inner.bastion.unwrap();
        assert_eq!((bastion.user.as_str(), bastion.port), ("v", 2222));
        assert_eq!(bastion.password.as_deref(), Some("p"));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for (list, part) in [
            (&[("host", "")][..], "host for provisioner cannot be empty"),
            (&[("host", "h"), ("target_platform", "vms")], "either unix or windows"),
            (&[("host", "h"), ("port", "99999")], "port must be a number"),
            (&[("host", "h"), ("agent", "true")], "SSH_AUTH_SOCK not-specified"),
            (
                &[("host", "h"), ("proxy_host", "p"), ("proxy_scheme", "ftp")],
                "proxy_scheme",
            ),
            (&[("host", "h"), ("private_key", "x")], "no key found"),
            (&[("host", "h"), ("host_key", "x")], "host_key"),
        ] {
            let error = ssh(&arguments(list), None).map(|_| ()).unwrap_err();
            assert!(error.to_string().contains(part), "{error}");
        }
        let error = winrm(&arguments(&[
            ("host", "h"),
            ("script_path", "C:\\Windows\\Temp\\x.cmd"),
        ]))
        .unwrap_err();
        assert!(error.to_string().contains("cannot be in"), "{error}");
    }
}

//! Names of hosts with services, and their settings.

use std::collections::BTreeMap;
use std::fmt;

/// A host's name in comparable form: lower case, in ASCII (punycode), without the port 443.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Host(String);

impl Host {
    /// Parses a name with an optional port; `None` if it is not valid.
    #[must_use]
    pub fn parse(text: &str) -> Option<Host> {
        let (name, port) = match text.rsplit_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (text, None),
        };
        // These characters would change the meaning of a URL with this host.
        if name.is_empty() || name.contains(['/', '@', '?', '#', '[', ']', '%', '\\']) {
            return None;
        }
        let name = match url::Host::parse(name).ok()? {
            url::Host::Domain(name) => name,
            url::Host::Ipv4(address) => address.to_string(),
            url::Host::Ipv6(_) => return None,
        };
        match port {
            None => Some(Host(name)),
            Some(port) => {
                let digits = !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
                let port: u16 = port.parse().ok().filter(|p| digits && *p > 0)?;
                Some(Host(if port == 443 { name } else { format!("{name}:{port}") }))
            }
        }
    }

    /// Returns the name in comparable form.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name in Unicode instead of punycode, the form of files of the CLI configuration.
    #[must_use]
    pub fn display(&self) -> String {
        let (name, port) = match self.0.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (&*self.0, None),
        };
        let (unicode, valid) = idna::domain_to_unicode(name);
        let name = if valid.is_ok() { unicode } else { name.to_owned() };
        match port {
            Some(port) => format!("{name}:{port}"),
            None => name,
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Settings of hosts in the CLI configuration.
#[derive(Clone, Debug, Default)]
pub struct HostSettings {
    /// Services from `host` blocks, by host and service ID; they replace service discovery. A value is a URL, or an
    /// object as in the discovery document.
    pub services: BTreeMap<Host, BTreeMap<String, serde_json::Value>>,
    pub tokens: BTreeMap<Host, crate::Token>,
    /// The credentials helper: a program that returns tokens for hosts.
    pub helper: Option<CredentialsHelper>,
    pub oci: crate::OciSettings,
}

/// A credentials helper: `NAME` of the program `terraform-credentials-NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CredentialsHelper {
    pub name: String,
    /// Arguments of the program, followed by the verb and host of each request.
    pub args: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_in_one_form() {
        for (text, expected) in [
            ("Registry.Terraform.IO", Some("registry.terraform.io")),
            ("example.com:443", Some("example.com")),
            ("example.com:0443", Some("example.com")),
            ("example.com:8443", Some("example.com:8443")),
            ("испытание.com", Some("xn--80akhbyknj4f.com")),
            ("localhost:1", Some("localhost:1")),
            ("127.0.0.1:80", Some("127.0.0.1:80")),
            ("", None),
            ("a b", None),
            ("example.com:", None),
            ("example.com:+1", None),
            ("example.com:99999", None),
            ("a/b", None),
            ("user@example.com", None),
        ] {
            assert_eq!(Host::parse(text).as_ref().map(Host::as_str), expected, "{text}");
        }
        let shown = |text: &str| Host::parse(text).unwrap().display();
        assert_eq!(shown("Испытание.com:8443"), "испытание.com:8443");
        assert_eq!(shown("example.com"), "example.com");
    }
}

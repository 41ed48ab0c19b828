//! Server and credentials for updates, from the provider's configuration or, for absent arguments, from environment variables.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use monoform_sdk::schema::{block, optional};
use monoform_sdk::{Attr, Diagnostic, Result, Validator, model};

use crate::text;
use crate::tsig::{Algorithm, Key};

/// Default time limit of one exchange.
const TIMEOUT: Duration = Duration::from_secs(2);

model! {
    /// Kerberos.
    pub struct GssApi {
        /// The Kerberos realm or Active Directory domain. Else from the environment: `DNS_UPDATE_REALM`.
        pub realm: Attr<String> = optional(),
        /// User name (principal). Defaults to the environment variable `DNS_UPDATE_USERNAME`.
        pub username: Attr<String> = optional(),
        /// The password of the user. Else from the environment: `DNS_UPDATE_PASSWORD`.
        pub password: Attr<String> = optional().sensitive().validate(Validator::ConflictsWith(&["keytab"]))
            .validate(Validator::AlsoRequires(&["username"])),
        /// The file with a key of the user. Else from the environment: `DNS_UPDATE_KEYTAB`.
        pub keytab: Attr<String> = optional().validate(Validator::ConflictsWith(&["password"]))
            .validate(Validator::AlsoRequires(&["username"])),
    }
}

model! {
    /// A server that takes updates.
    pub struct Update {
        /// The name or address of the server. Else from the environment: `DNS_UPDATE_SERVER`.
        pub server: Attr<String> = optional(),
        /// The port of the server. Else from the environment (`DNS_UPDATE_PORT`), or 53.
        pub port: Attr<i64> = optional(),
        /// The transport of messages: `udp`, `udp4`, `udp6`, `tcp`, `tcp4` or `tcp6`. If an answer does not fit into UDP,
        /// the request is repeated over TCP. Else from the environment (`DNS_UPDATE_TRANSPORT`), or `udp`.
        pub transport: Attr<String> = optional(),
        /// Time limit of an answer: a duration such as `500ms`, or a number of seconds. 0 means two seconds. Else from
        /// the environment (`DNS_UPDATE_TIMEOUT`), or 0.
        pub timeout: Attr<String> = optional(),
        /// Number of attempts to get a response, at least 1. Else from the environment (`DNS_UPDATE_RETRIES`), or 3.
        pub retries: Attr<i64> = optional(),
        /// True to request recursion: the server queries other servers for names that it does not serve. Else from the environment
        /// (`DNS_UPDATE_RECURSIVE`), or false.
        pub recursive: Attr<bool> = optional(),
        /// The name of the TSIG key that signs messages, with a dot at its end. Else from the environment: `DNS_UPDATE_KEYNAME`.
        pub key_name: Attr<String> = optional().validate(Validator::ConflictsWith(&["gssapi"]))
            .validate(Validator::AlsoRequires(&["key_algorithm"])).validate(Validator::AlsoRequires(&["key_secret"])),
        /// Algorithm of the key: `hmac-md5`, `hmac-sha1`, `hmac-sha256` or `hmac-sha512`. Else from the environment: `DNS_UPDATE_KEYALGORITHM`.
        pub key_algorithm: Attr<String> = optional().validate(Validator::ConflictsWith(&["gssapi"]))
            .validate(Validator::AlsoRequires(&["key_name"])).validate(Validator::AlsoRequires(&["key_secret"])),
        /// The secret of the key, in base64. Else from the environment: `DNS_UPDATE_KEYSECRET`.
        pub key_secret: Attr<String> = optional().validate(Validator::ConflictsWith(&["gssapi"]))
            .validate(Validator::AlsoRequires(&["key_name"])).validate(Validator::AlsoRequires(&["key_algorithm"])),
        /// Signatures by Kerberos (GSS-TSIG), which this provider refuses.
        pub gssapi: Attr<Vec<GssApi>> = block().validate(Validator::Size(0, 1))
            .validate(Validator::ConflictsWith(&["key_name", "key_algorithm", "key_secret"])),
    }
}

model! {
    /// The provider's configuration.
    pub struct Config {
        /// Server for updates. Without this block all settings come from the environment.
        pub update: Attr<Vec<Update>> = block().validate(Validator::Size(0, 1)),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transport {
    pub is_tcp: bool,
    /// Limits addresses to one family: 4 or 6.
    pub family: Option<u8>,
}

impl Transport {
    fn from_name(text: &str) -> Option<Transport> {
        let (is_tcp, family) = match text {
            "udp" => (false, None),
            "udp4" => (false, Some(4)),
            "udp6" => (false, Some(6)),
            "tcp" => (true, None),
            "tcp4" => (true, Some(4)),
            "tcp6" => (true, Some(6)),
            _ => return None,
        };
        Some(Transport { is_tcp, family })
    }
}

/// Settings of a client, resolved from configuration and environment.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// The server; `None` if neither the configuration nor the environment names one.
    pub server: Option<String>,
    pub port: u16,
    pub transport: Transport,
    pub timeout: Duration,
    pub retries: i64,
    pub recursive: bool,
    pub key: Option<Key>,
}

fn failed(detail: impl Into<String>) -> Diagnostic {
    Diagnostic::error("Error initializing DNS Client:", detail)
}

impl Config {
    /// Resolves the settings. `variable` returns the value of an environment variable that is set and not empty.
    pub fn settings(self, variable: &dyn Fn(&str) -> Option<String>) -> Result<Settings> {
        let mut blocks = self.update.or(Vec::new());
        let given = !blocks.is_empty();
        let update = blocks.pop().unwrap_or_default();
        let text = |value: &Attr<String>, name| value.as_str().map(str::to_owned).or_else(|| variable(name));
        let whole = |value: &Attr<i64>, name, default| match (value.known(), variable(name)) {
            (Some(number), _) => Ok(*number),
            (None, None) => Ok(default),
            (None, Some(text)) => text.trim().parse().map_err(|_| {
                Diagnostic::error(
                    format!("Invalid {name} environment variable:"),
                    format!("A whole number is needed, but the variable says {text:?}."),
                )
            }),
        };

        let port = whole(&update.port, "DNS_UPDATE_PORT", 53)?;
        let port =
            u16::try_from(port).map_err(|_| failed(format!("port is a number from 0 to 65535, but is {port}.")))?;
        let transport = text(&update.transport, "DNS_UPDATE_TRANSPORT").unwrap_or_else(|| "udp".to_owned());
        let transport = Transport::from_name(&transport).ok_or_else(|| {
            failed(format!(
                "unknown transport: {transport}. It is udp, udp4, udp6, tcp, tcp4 or tcp6."
            ))
        })?;
        let recursive = match (update.recursive.known(), variable("DNS_UPDATE_RECURSIVE")) {
            (Some(flag), _) => *flag,
            (None, None) => false,
            (None, Some(text)) => gotext::boolean(&text).ok_or_else(|| {
                Diagnostic::error(
                    "Invalid DNS_UPDATE_RECURSIVE environment variable:",
                    format!("It must say true or false, but says {text:?}."),
                )
            })?,
        };

        let gssapi = update.gssapi.clone().or(Vec::new()).pop();
        let names = [
            "DNS_UPDATE_REALM",
            "DNS_UPDATE_USERNAME",
            "DNS_UPDATE_PASSWORD",
            "DNS_UPDATE_KEYTAB",
        ];
        if gssapi.is_some() || names.iter().any(|name| variable(name).is_some()) {
            return Err(failed(
                "Error configuring provider: signatures by Kerberos (GSS-TSIG) are not supported by this provider. Use a TSIG key \
                 (key_name, key_algorithm, key_secret), or install the official hashicorp/dns provider, which takes the place of \
                 this one. A gssapi block asks for them, and so does any of the environment variables DNS_UPDATE_REALM, \
                 DNS_UPDATE_USERNAME, DNS_UPDATE_PASSWORD and DNS_UPDATE_KEYTAB.",
            )
            .into());
        }

        let server = text(&update.server, "DNS_UPDATE_SERVER");
        Ok(Settings {
            // A block without a server means the server on this machine.
            server: server.or_else(|| given.then(String::new)),
            port,
            transport,
            timeout: timeout(&text(&update.timeout, "DNS_UPDATE_TIMEOUT").unwrap_or_else(|| "0".to_owned()))?,
            retries: whole(&update.retries, "DNS_UPDATE_RETRIES", 3)?,
            recursive,
            key: key(
                &text(&update.key_name, "DNS_UPDATE_KEYNAME").unwrap_or_default(),
                &text(&update.key_algorithm, "DNS_UPDATE_KEYALGORITHM").unwrap_or_default(),
                &text(&update.key_secret, "DNS_UPDATE_KEYSECRET").unwrap_or_default(),
            )?,
        })
    }
}

fn key(name: &str, algorithm: &str, secret: &str) -> Result<Option<Key>> {
    let failed = |detail: String| failed(format!("Error configuring provider: {detail}"));
    let parts = [name, algorithm, secret];
    if parts.iter().all(|p| p.is_empty()) {
        return Ok(None);
    }
    if parts.iter().any(|p| p.is_empty()) {
        return Err(failed(
            "when using authentication, \"key_name\", \"key_secret\" and \"key_algorithm\" should be non empty."
                .to_owned(),
        )
        .into());
    }
    if !text::is_complete(name) {
        return Err(failed(format!(
            "\"key_name\" should be fully-qualified, with a dot at its end, but is {name:?}."
        ))
        .into());
    }
    let name = text::name(name).map_err(|e| failed(format!("\"key_name\" cannot be read: {e}.")))?;
    let algorithm = Algorithm::from_name(algorithm).ok_or_else(|| {
        failed(format!(
            "Unknown HMAC algorithm: {algorithm}. It is hmac-md5, hmac-sha1, hmac-sha256 or hmac-sha512."
        ))
    })?;
    let secret = STANDARD
        .decode(secret)
        .map_err(|e| failed(format!("\"key_secret\" is not base64: {e}.")))?;
    Ok(Some(Key::new(&name, algorithm, secret)))
}

/// Parses a duration: a number of seconds, or numbers with units such as `1m30s`.
fn timeout(text: &str) -> Result<Duration> {
    let seconds = match text.parse::<i64>() {
        #[allow(
            clippy::cast_precision_loss,
            reason = "a number of seconds that large is as good as any"
        )]
        Ok(seconds) => seconds as f64,
        Err(_) => with_units(text).ok_or_else(|| {
            Diagnostic::error(
                "Invalid DNS Provider Timeout Value",
                format!("timeout is a duration such as \"500ms\" or a whole number of seconds, but is {text:?}."),
            )
        })?,
    };
    if seconds < 0.0 {
        return Err(Diagnostic::error(
            "Invalid timeout",
            format!("timeout cannot be negative, but is {text:?}."),
        )
        .into());
    }
    Ok(Some(seconds)
        .filter(|s| *s > 0.0)
        .map_or(TIMEOUT, |s| Duration::try_from_secs_f64(s).unwrap_or(Duration::MAX)))
}

fn with_units(text: &str) -> Option<f64> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    let mut total = 0.0;
    loop {
        let number = rest.find(|c: char| c != '.' && !c.is_ascii_digit())?;
        let (number, after) = rest.split_at(number);
        let unit = after
            .find(|c: char| c == '.' || c.is_ascii_digit())
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(unit);
        let unit = match unit {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "µs" | "μs" => 1e-6,
            "ns" => 1e-9,
            _ => return None,
        };
        total += number.parse::<f64>().ok()? * unit;
        if after.is_empty() {
            return Some(sign * total);
        }
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_environment(variables: &[(&str, &str)]) -> Result<Settings> {
        let find = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
        Config::default().settings(&find)
    }

    #[test]
    fn the_environment_says_what_the_configuration_does_not() {
        let settings = from_environment(&[]).unwrap();
        assert_eq!((settings.server, settings.port, settings.retries), (None, 53, 3));
        assert_eq!((settings.timeout, settings.recursive), (Duration::from_secs(2), false));
        let variables = [
            ("DNS_UPDATE_SERVER", "ns.example"),
            ("DNS_UPDATE_PORT", "5353"),
            ("DNS_UPDATE_TRANSPORT", "tcp6"),
            ("DNS_UPDATE_TIMEOUT", "1m1.5s"),
            ("DNS_UPDATE_RETRIES", "7"),
            ("DNS_UPDATE_RECURSIVE", "T"),
            ("DNS_UPDATE_KEYNAME", "k."),
            ("DNS_UPDATE_KEYALGORITHM", "hmac-md5"),
            ("DNS_UPDATE_KEYSECRET", "c2VjcmV0"),
        ];
        let settings = from_environment(&variables).unwrap();
        assert_eq!(
            (settings.server.as_deref(), settings.port, settings.retries),
            (Some("ns.example"), 5353, 7)
        );
        assert_eq!(
            settings.transport,
            Transport {
                is_tcp: true,
                family: Some(6)
            }
        );
        assert_eq!(
            (settings.timeout, settings.recursive),
            (Duration::from_millis(61_500), true)
        );
        assert!(settings.key.is_some());
        let block = Update {
            server: "given".into(),
            port: 1.into(),
            ..Update::default()
        };
        let config = Config {
            update: vec![block].into(),
        };
        let settings = config
            .settings(&|name| (name == "DNS_UPDATE_SERVER").then(|| "not this".to_owned()))
            .unwrap();
        assert_eq!((settings.server.as_deref(), settings.port), (Some("given"), 1));
    }

    #[test]
    fn unusable_settings_are_reported() {
        for (variables, expected) in [
            (
                &[("DNS_UPDATE_PORT", "x")][..],
                "Invalid DNS_UPDATE_PORT environment variable:",
            ),
            (&[("DNS_UPDATE_PORT", "65536")], "port is a number from 0 to 65535"),
            (
                &[("DNS_UPDATE_RETRIES", "1.5")],
                "Invalid DNS_UPDATE_RETRIES environment variable:",
            ),
            (
                &[("DNS_UPDATE_RECURSIVE", "yes")],
                "Invalid DNS_UPDATE_RECURSIVE environment variable:",
            ),
            (&[("DNS_UPDATE_TRANSPORT", "sctp")], "unknown transport: sctp"),
            (&[("DNS_UPDATE_TIMEOUT", "soon")], "Invalid DNS Provider Timeout Value"),
            (&[("DNS_UPDATE_TIMEOUT", "5")], ""),
            (&[("DNS_UPDATE_TIMEOUT", "-1s")], "timeout cannot be negative"),
            (&[("DNS_UPDATE_TIMEOUT", "-1")], "timeout cannot be negative"),
            (&[("DNS_UPDATE_KEYNAME", "k.")], "when using authentication"),
            (&[("DNS_UPDATE_USERNAME", "u")], "GSS-TSIG"),
        ] {
            let text = from_environment(variables)
                .err()
                .map(|d| format!("{:?}", d.0))
                .unwrap_or_default();
            assert!(
                text.contains(expected) && text.is_empty() == expected.is_empty(),
                "{variables:?}: {text}"
            );
        }
        for (name, algorithm, secret, expected) in [
            ("k", "hmac-md5", "c2VjcmV0", "should be fully-qualified"),
            ("k.", "hmac-sha3", "c2VjcmV0", "Unknown HMAC algorithm: hmac-sha3"),
            ("k.", "hmac-md5", "no", "is not base64"),
        ] {
            let text = format!("{:?}", key(name, algorithm, secret));
            assert!(text.contains(expected), "{text}");
        }
    }
}

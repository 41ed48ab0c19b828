//! Connection parameters from the connection string, the environment, and the password file.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use monoform_sdk::env;
use percent_encoding::percent_decode_str;
use store_client::Tls;
use tokio_postgres::Config;
use tokio_postgres::config::{SslMode, TargetSessionAttrs};

/// Effective settings of the connection.
pub(crate) struct Settings {
    /// Hosts, as the connection string or the environment names them.
    pub host: String,
    pub config: Config,
    pub tls: Tls,
    /// Time limit for connecting and authenticating; `None` for no limit.
    pub connecting: Option<Duration>,
    /// Time limit for the answer to a statement; `None` for no limit.
    pub silence: Option<Duration>,
    /// Description of the connection for messages.
    pub title: String,
}

/// Environment variable that sets [`Settings::silence`], in seconds.
pub(crate) const SILENCE_VARIABLE: &str = "MONOFORM_PG_TIMEOUT";

const CONNECTING: Duration = Duration::from_secs(60);

/// Default of [`Settings::silence`]. It is far longer than reading a large state takes on a slow connection, because the limit applies to
/// the complete answer.
const SILENCE: Duration = Duration::from_secs(600);

/// Reason why the parameters cannot be used, as a whole sentence.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SettingsError {
    #[error("{name} must be a number of seconds, and not {given:?}.")]
    Seconds { name: &'static str, given: String },
    #[error("The environment variable {0} is set, which is not supported. Unset it.")]
    Variable(&'static str),
    #[error("No user is set: name one in the connection string, or in the environment variable PGUSER.")]
    NoUser,
    #[error("The port of the connection string is no number: {0:?}.")]
    Port(String),
    #[error("The file {path:?} of {parameter} cannot be read: {source}.")]
    File {
        path: String,
        parameter: &'static str,
        source: std::io::Error,
    },
    #[error(
        "The sslmode {0:?} is not supported: there are \"disable\", \"require\" (the default), \
         \"verify-ca\" and \"verify-full\"."
    )]
    Mode(String),
    #[error(
        "The target_session_attrs {0:?} is not supported: there are \"any\" (the default), \"read-write\" and \"read-only\"."
    )]
    Target(String),
    #[error("The file {0:?} with the private key (sslkey) can be read by others: run \"chmod 600 {0}\".")]
    ReadableKey(String),
    #[error(
        "The connection string is no valid URL: {0}. Its form is postgres://USER:PASSWORD@HOST:PORT/DATABASE, with special \
         characters in percent encoding."
    )]
    Url(#[from] url::ParseError),
    #[error("In the connection string, {0:?} has no value: write {0}=VALUE.")]
    NoValue(String),
    #[error("In the connection string, the value of {0:?} has no closing quote (').")]
    NoQuote(String),
}

/// Parses a number of seconds. Zero means no limit.
fn seconds(name: &'static str, given: Option<&str>, default: Duration) -> Result<Option<Duration>, SettingsError> {
    let Some(given) = given else {
        return Ok(Some(default));
    };
    let seconds: u64 = given.trim().parse().map_err(|_| SettingsError::Seconds {
        name,
        given: given.to_owned(),
    })?;
    Ok((seconds > 0).then(|| Duration::from_secs(seconds)))
}

/// Environment variables of libpq, and the parameters that they set.
const VARIABLES: &[(&str, &str)] = &[
    ("PGHOST", "host"),
    ("PGPORT", "port"),
    ("PGDATABASE", "dbname"),
    ("PGUSER", "user"),
    ("PGPASSWORD", "password"),
    ("PGPASSFILE", "passfile"),
    ("PGOPTIONS", "options"),
    ("PGAPPNAME", "application_name"),
    ("PGSSLMODE", "sslmode"),
    ("PGSSLCERT", "sslcert"),
    ("PGSSLKEY", "sslkey"),
    ("PGSSLROOTCERT", "sslrootcert"),
    ("PGSSLSNI", "sslsni"),
    ("PGCONNECT_TIMEOUT", "connect_timeout"),
    ("PGCLIENTENCODING", "client_encoding"),
    ("PGDATESTYLE", "datestyle"),
    ("PGTZ", "timezone"),
    ("PGGEQO", "geqo"),
];

/// Environment variables that Terraform refuses, because they would not have their usual effect.
const REFUSED: &[&str] = &[
    "PGSERVICE",
    "PGSERVICEFILE",
    "PGREALM",
    "PGREQUIRESSL",
    "PGSSLCRL",
    "PGREQUIREPEER",
    "PGKRBSRVNAME",
    "PGGSSLIB",
    "PGSYSCONFDIR",
    "PGLOCALEDIR",
];

type Parameters = BTreeMap<String, String>;

impl Settings {
    /// Returns the settings from a connection string and the environment.
    pub fn new(connection: &str) -> Result<Settings, SettingsError> {
        let mut parameters = Parameters::new();
        if let Some(variable) = REFUSED.iter().find(|name| env::var(name).is_some()) {
            return Err(SettingsError::Variable(variable));
        }
        for (variable, name) in VARIABLES {
            if let Some(value) = env::var(variable) {
                parameters.insert((*name).to_owned(), value);
            }
        }
        // The connection string takes precedence over the environment.
        parameters.extend(parse(connection)?);
        Settings::from_parameters(parameters)
    }

    fn from_parameters(mut parameters: Parameters) -> Result<Settings, SettingsError> {
        let mut take = |name: &str| parameters.remove(name).filter(|value| !value.is_empty());
        let host = take("host").unwrap_or_else(|| "localhost".to_owned());
        let port = take("port").unwrap_or_else(|| "5432".to_owned());
        let user = match take("user") {
            Some(user) => user,
            None => system_user().ok_or(SettingsError::NoUser)?,
        };
        let database = take("dbname").unwrap_or_else(|| user.clone());
        let (explicit, passfile) = (take("password"), take("passfile"));
        let hosts = hosts_with_ports(&host, &port);
        // The library supports one password for all hosts, so the first password in the file that matches one of the hosts is used.
        let stored = |(host, port): &(&str, &str)| stored_password(passfile.as_deref(), [host, port, &database, &user]);
        let password = explicit.or_else(|| hosts.iter().find_map(stored));
        let mode = take("sslmode").unwrap_or_else(|| "require".to_owned());
        let files = TlsFiles {
            root: take("sslrootcert"),
            certificate: take("sslcert"),
            key: take("sslkey"),
            inline: take("sslinline").as_deref() == Some("true"),
        };
        take("sslsni");
        let mut config = Config::new();
        config.user(&user).dbname(&database);
        if let Some(password) = password {
            config.password(password);
        }
        for (host, port) in &hosts {
            let number = port.parse().map_err(|_| SettingsError::Port((*port).to_owned()))?;
            config.host(*host).port(number);
        }
        // Sockets need no TLS. But the mode applies to all hosts, so TLS is turned off only if all of them are sockets.
        let is_socket = hosts.iter().all(|(host, _)| host.starts_with('/'));
        let connecting = seconds("connect_timeout", take("connect_timeout").as_deref(), CONNECTING)?;
        if let Some(limit) = connecting {
            config.connect_timeout(limit);
        }
        if let Some(target) = take("target_session_attrs") {
            config.target_session_attrs(match &*target {
                "any" => TargetSessionAttrs::Any,
                "read-write" => TargetSessionAttrs::ReadWrite,
                "read-only" => TargetSessionAttrs::ReadOnly,
                _ => return Err(SettingsError::Target(target)),
            });
        }
        let silence = seconds(SILENCE_VARIABLE, env::var(SILENCE_VARIABLE).as_deref(), SILENCE)?;
        config.application_name(
            take("application_name")
                .or_else(|| take("fallback_application_name"))
                .as_deref()
                .unwrap_or(""),
        );
        take("fallback_application_name");
        take("binary_parameters");
        take("disable_prepared_binary_result");
        let mut options = take("options").unwrap_or_default();
        // These parameters have no effect here: the encoding is always UTF-8, and no statement contains dates.
        take("client_encoding");
        take("datestyle");
        // The remaining parameters are sent as session settings.
        for (name, value) in &parameters {
            let value = value.replace('\\', "\\\\").replace(' ', "\\ ");
            options.push_str(&format!(" -c {name}={value}"));
        }
        if !options.trim().is_empty() {
            config.options(options.trim());
        }
        let (ssl, tls) = if is_socket {
            (SslMode::Disable, Tls::default())
        } else {
            files.tls(&mode)?
        };
        config.ssl_mode(ssl);
        Ok(Settings {
            config,
            tls,
            connecting,
            silence,
            host: host.clone(),
            title: format!("the database \"{database}\" on {host}:{port} as the user \"{user}\""),
        })
    }
}

/// Returns the hosts with their ports. If there are fewer ports than hosts, the last port is used for the other hosts.
fn hosts_with_ports<'t>(hosts: &'t str, ports: &'t str) -> Vec<(&'t str, &'t str)> {
    let ports: Vec<&str> = ports.split(',').map(str::trim).collect();
    let port = |i: usize| ports.get(i).or(ports.last()).copied().unwrap_or("5432");
    let hosts = hosts.split(',').map(|host| host.trim_matches(['[', ']']));
    hosts.enumerate().map(|(i, host)| (host, port(i))).collect()
}

/// Paths of the TLS files, or their contents (`sslinline`).
struct TlsFiles {
    root: Option<String>,
    certificate: Option<String>,
    key: Option<String>,
    inline: bool,
}

impl TlsFiles {
    fn tls(&self, mode: &str) -> Result<(SslMode, Tls), SettingsError> {
        let read = |parameter: &'static str, given: &str| match self.inline {
            true => Ok(given.to_owned()),
            false => std::fs::read_to_string(env::expand_home(given)).map_err(|source| SettingsError::File {
                path: given.to_owned(),
                parameter,
                source,
            }),
        };
        let own = |name: &str| {
            let path = env::expand_home("~/.postgresql").join(name);
            path.is_file().then(|| path.to_string_lossy().into_owned())
        };
        let authorities = self
            .root
            .as_deref()
            .map(|given| read("sslrootcert", given))
            .transpose()?;
        let certificate = self.certificate.clone().or_else(|| own("postgresql.crt"));
        let key = self.key.clone().or_else(|| own("postgresql.key"));
        let client = match (certificate, key) {
            (Some(certificate), Some(key)) => {
                if !self.inline {
                    private(&key)?;
                }
                Some((read("sslcert", &certificate)?, read("sslkey", &key)?))
            }
            _ => None,
        };
        let tls = Tls {
            authorities,
            client,
            ..Tls::default()
        };
        match mode {
            "disable" => Ok((SslMode::Disable, Tls::default())),
            // As in libpq, `require` verifies the certificate chain if a CA certificate is configured.
            "require" if tls.authorities.is_some() => Ok((SslMode::Require, Tls { any_name: true, ..tls })),
            "require" => Ok((SslMode::Require, Tls { insecure: true, ..tls })),
            "verify-ca" => Ok((SslMode::Require, Tls { any_name: true, ..tls })),
            "verify-full" => Ok((SslMode::Require, tls)),
            other => Err(SettingsError::Mode(other.to_owned())),
        }
    }
}

/// Like libpq, returns an error for a private key file that others can read. If root owns the file, the group may read it.
fn private(key: &str) -> Result<(), SettingsError> {
    use system::files::MetadataExt as _;
    let Ok(found) = env::expand_home(key).metadata() else {
        // A missing file is reported when it is read.
        return Ok(());
    };
    let readable = if found.uid() == 0 { 0o037 } else { 0o077 };
    match system::files::rights_of_others(&found) & readable {
        0 => Ok(()),
        _ => Err(SettingsError::ReadableKey(key.to_owned())),
    }
}

fn parse(connection: &str) -> Result<Parameters, SettingsError> {
    match connection.starts_with("postgres://") || connection.starts_with("postgresql://") {
        true => parse_url(connection),
        false => parse_words(connection),
    }
}

/// Hosts and ports of a URL with several hosts, and the URL with one.
struct Hosts {
    url: String,
    hosts: String,
    ports: String,
}

impl Hosts {
    /// Takes the hosts out of a URL; `None` if there is only one.
    fn of(text: &str) -> Option<Hosts> {
        let (scheme, rest) = text.split_once("://")?;
        let (authority, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let (login, list) = authority.rsplit_once('@').unwrap_or(("", authority));
        if !list.contains(',') {
            return None;
        }
        let parts = list.split(',').map(|part| match part.rsplit_once(':') {
            // A colon of an IPv6 address is before its bracket.
            Some((host, port)) if !port.contains(']') => (host, port),
            _ => (part, "5432"),
        });
        let (hosts, ports): (Vec<&str>, Vec<&str>) = parts.unzip();
        Some(Hosts {
            url: format!("{scheme}://{login}@hosts{tail}"),
            hosts: hosts.join(","),
            ports: ports.join(","),
        })
    }
}

fn parse_url(text: &str) -> Result<Parameters, SettingsError> {
    if let Some(Hosts { url, hosts, ports }) = Hosts::of(text) {
        let mut out = parse_url(&url)?;
        out.insert("host".to_owned(), hosts);
        out.insert("port".to_owned(), ports);
        return Ok(out);
    }
    let url = url::Url::parse(text)?;
    let decode = |part: &str| percent_decode_str(part).decode_utf8_lossy().into_owned();
    let mut out = Parameters::new();
    let mut set = |name: &str, value: String| {
        if !value.is_empty() {
            out.insert(name.to_owned(), value);
        }
    };
    set("user", decode(url.username()));
    set("password", url.password().map(decode).unwrap_or_default());
    set("host", url.host_str().map(decode).unwrap_or_default());
    set("port", url.port().map(|port| port.to_string()).unwrap_or_default());
    set("dbname", decode(url.path().trim_start_matches('/')));
    for (name, value) in url.query_pairs() {
        set(&name, value.into_owned());
    }
    Ok(out)
}

/// Parses pairs `key=value`. Values with spaces are in single quotes, and a backslash escapes the next character.
fn parse_words(text: &str) -> Result<Parameters, SettingsError> {
    let mut out = Parameters::new();
    let mut chars = text.chars().peekable();
    loop {
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        if chars.peek().is_none() {
            return Ok(out);
        }
        let mut name = String::new();
        while let Some(c) = chars.next_if(|c| !c.is_whitespace() && *c != '=') {
            name.push(c);
        }
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        if chars.next() != Some('=') {
            return Err(SettingsError::NoValue(name));
        }
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        let quoted = chars.next_if_eq(&'\'').is_some();
        let mut value = String::new();
        loop {
            match chars.next() {
                Some('\'') if quoted => break,
                Some(c) if c.is_whitespace() && !quoted => break,
                Some('\\') => value.extend(chars.next()),
                Some(c) => value.push(c),
                None if quoted => {
                    return Err(SettingsError::NoQuote(name));
                }
                None => break,
            }
        }
        out.insert(name, value);
    }
}

fn system_user() -> Option<String> {
    system::user::name().or_else(|| env::var("USER"))
}

/// Returns the password in the password file for this host, port, database and user.
fn stored_password(file: Option<&str>, wanted: [&str; 4]) -> Option<String> {
    let path: PathBuf = env::expand_home(file.unwrap_or("~/.pgpass"));
    let others = system::files::rights_of_others(&path.metadata().ok()?);
    // As in libpq, a password file that others can read is ignored.
    if others != 0 {
        tracing::warn!(
            "the password file {} is ignored, since other users can read it",
            path.display()
        );
        return None;
    }
    let text = std::fs::read_to_string(&path).ok()?;
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let fields = password_fields(line);
        let [host, port, database, user, password] = fields.as_slice() else {
            return None;
        };
        let socket = wanted[0].starts_with('/') && host == "localhost";
        let fits = |(pattern, value): (&String, &&str)| pattern == "*" || pattern == value;
        let rest = [port, database, user].into_iter().zip(&wanted[1..]).all(fits);
        (rest && (socket || host == "*" || host == wanted[0])).then(|| password.clone())
    })
}

fn password_fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            // The password is the last field, so colons in it need no backslash.
            ':' if fields.len() < 5 => fields.push(String::new()),
            '\\' => {
                if let Some(last) = fields.last_mut() {
                    last.extend(chars.next());
                }
            }
            c => {
                if let Some(last) = fields.last_mut() {
                    last.push(c);
                }
            }
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Vec<(String, String)> {
        parse(text).unwrap().into_iter().collect()
    }

    fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
    }

    #[test]
    fn url_can_name_several_hosts() {
        let expected = pairs(&[
            ("dbname", "d"),
            ("host", "a,[::1],c"),
            ("password", "p"),
            ("port", "1,2,5432"),
            ("sslmode", "disable"),
            ("user", "u"),
        ]);
        assert_eq!(parsed("postgres://u:p@a:1,[::1]:2,c/d?sslmode=disable"), expected);
        assert_eq!(
            hosts_with_ports("a,[::1],c", "1,2,5432"),
            [("a", "1"), ("::1", "2"), ("c", "5432")]
        );
        let text = "postgres://u@a,b/d?sslmode=disable&target_session_attrs=";
        assert!(Settings::new(&format!("{text}read-write")).is_ok());
        assert!(matches!(
            Settings::new(&format!("{text}standby")),
            Err(SettingsError::Target(_))
        ));
    }

    #[test]
    fn both_forms_of_connection_strings_are_read() {
        let expected = pairs(&[
            ("dbname", "d b"),
            ("host", "h"),
            ("password", "p@:'"),
            ("port", "1"),
            ("sslmode", "disable"),
            ("user", "u"),
        ]);
        assert_eq!(parsed("postgres://u:p%40%3A'@h:1/d%20b?sslmode=disable"), expected);
        assert_eq!(
            parsed("user=u password = p@:\\' host=h port=1 dbname='d b'  sslmode=disable "),
            expected
        );
        assert_eq!(parsed(""), []);
        for wrong in ["user", "user='x", "postgres://h:port/d"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn certificates_are_checked_as_the_mode_says() {
        let mode = |text: &str| {
            Settings::from_parameters(parse(text).unwrap()).map(|s| (s.config.get_ssl_mode(), s.tls.insecure))
        };
        assert_eq!(mode("user=u").unwrap(), (SslMode::Require, true));
        assert_eq!(mode("user=u sslmode=disable").unwrap(), (SslMode::Disable, false));
        assert_eq!(mode("user=u sslmode=verify-full").unwrap(), (SslMode::Require, false));
        assert_eq!(mode("user=u host=/run/postgresql").unwrap(), (SslMode::Disable, false));
        assert!(mode("user=u sslmode=prefer").is_err_and(|e| e.to_string().contains("verify-full")));
        assert!(mode("user=u sslrootcert=/none").is_err_and(|e| e.to_string().contains("/none")));
    }

    #[test]
    fn what_is_no_parameter_of_the_connection_is_one_of_the_session() {
        let settings = Settings::from_parameters(parse("user=u search_path='a b' sslmode=disable").unwrap()).unwrap();
        assert_eq!(settings.config.get_options(), Some("-c search_path=a\\ b"));
    }

    #[test]
    fn hosts_have_their_ports_and_one_socket_does_not_turn_encryption_off() {
        assert_eq!(
            hosts_with_ports("a,[::1],c", "1,2"),
            [("a", "1"), ("::1", "2"), ("c", "2")]
        );
        let mode = |text: &str| {
            Settings::from_parameters(parse(text).unwrap())
                .unwrap()
                .config
                .get_ssl_mode()
        };
        assert_eq!(mode("user=u host=/run/a,b"), SslMode::Require);
        assert_eq!(mode("user=u host=/run/a,/run/b"), SslMode::Disable);
    }

    #[test]
    fn password_of_the_file_is_that_of_the_first_host_in_it() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "b:5432:*:u:second\n").unwrap();
        let text = format!("user=u host=a,b passfile={}", file.path().display());
        let settings = Settings::from_parameters(parse(&text).unwrap()).unwrap();
        assert_eq!(settings.config.get_password(), Some(&b"second"[..]));
    }

    #[test]
    fn passwords_are_found_by_the_first_line_that_fits() {
        assert_eq!(password_fields("h:1:d\\:e:*:p:q"), ["h", "1", "d:e", "*", "p:q"]);
    }
}

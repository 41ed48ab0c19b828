//! Proxies that environment variables set, with the rules of Go's standard library: tools around Terraform are written
//! in Go, and one `NO_PROXY` must mean the same to all of them. All clients follow these rules: registries and mirrors
//! (`net`), state stores, and the providers `http` and `tls`.
//!
//! `HTTPS_PROXY` applies to https, `HTTP_PROXY` to http; upper case precedes lower case. `ALL_PROXY` is ignored.
//! Servers on this machine are reached directly. `NO_PROXY` lists further exceptions:
//!
//! - `example.com`: this host and its subdomains; `.example.com` or `*.example.com`: subdomains only;
//! - `10.1.2.3`, `::1`: an address; `10.0.0.0/8`, `fd00::/8`: a range, for hosts that are addresses;
//! - with `:PORT` after a host or an address: this port only;
//! - `*`: all hosts.

use std::net::IpAddr;

use url::{Host, Url};

/// The proxies of http and https, and the exceptions.
#[derive(Clone, Debug, Default)]
pub struct Proxies {
    http: Option<Named>,
    https: Option<Named>,
    exceptions: Vec<Exception>,
}

/// A proxy and the variable that sets it.
#[derive(Clone, Debug)]
struct Named {
    variable: String,
    /// URL of the proxy; `None` if the text is not valid.
    url: Option<Url>,
}

/// An entry of `NO_PROXY`.
#[derive(Clone, Debug)]
struct Exception {
    text: String,
    matches: Matches,
    port: Option<u16>,
}

#[derive(Clone, Debug)]
enum Matches {
    All,
    Address(IpAddr),
    Range(IpAddr, u8),
    Domain {
        /// The domain without a leading dot.
        name: String,
        /// True if the entry includes the domain itself, not only its subdomains.
        itself: bool,
    },
}

/// Route to a server: through a proxy, or directly with the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way<'p> {
    /// Through a proxy, with the variable that sets it.
    Proxy(&'p Url, &'p str),
    /// Directly, because the value of this variable is not the URL of a proxy.
    Unusable(&'p str),
    /// Directly, because of this entry of `NO_PROXY`.
    Excepted(&'p str),
    /// Directly, because the server is on this machine.
    Local,
    /// Directly, because no proxy is set for the scheme.
    Direct,
}

impl<'p> Way<'p> {
    #[must_use]
    pub fn proxy(self) -> Option<&'p Url> {
        match self {
            Way::Proxy(url, _) => Some(url),
            _ => None,
        }
    }
}

impl Proxies {
    /// Reads the proxies from environment variables.
    #[must_use]
    pub fn from_variables(get: impl Fn(&str) -> Option<String>) -> Proxies {
        let find = |name: &str| -> Option<(String, String)> {
            [name.to_owned(), name.to_ascii_lowercase()]
                .into_iter()
                .find_map(|name| Some((get(&name).filter(|value| !value.is_empty())?, name)))
                .map(|(value, name)| (name, value))
        };
        let proxy = |name: &str| find(name).map(|(variable, value)| named(variable, &value));
        // If this program runs as a CGI script, the web server passes the request's header "Proxy" under this
        // name.
        let is_web_server = get("REQUEST_METHOD").is_some_and(|method| !method.is_empty());
        Proxies {
            http: proxy("HTTP_PROXY").filter(|_| !is_web_server),
            https: proxy("HTTPS_PROXY"),
            exceptions: find("NO_PROXY").map(|(_, list)| exceptions(&list)).unwrap_or_default(),
        }
    }

    /// Overrides the proxies and exceptions of the environment with those of a client's own settings, which error
    /// messages call `http_proxy` and `https_proxy`.
    #[must_use]
    pub fn with(mut self, http: Option<&str>, https: Option<&str>, except: Option<&str>) -> Proxies {
        if let Some(http) = http {
            self.http = Some(named("http_proxy".to_owned(), http));
        }
        if let Some(https) = https {
            self.https = Some(named("https_proxy".to_owned(), https));
        }
        if let Some(except) = except {
            self.exceptions = exceptions(except);
        }
        self
    }

    /// Returns the first variable whose value is not the URL of a proxy; `None` if there is none.
    #[must_use]
    pub fn unusable(&self) -> Option<&str> {
        let all = [&self.http, &self.https].into_iter().flatten();
        let mut unusable = all.filter(|named| named.url.is_none());
        unusable.next().map(|named| &*named.variable)
    }

    /// Returns the route to the server of a URL. The first match wins: loopback, `NO_PROXY`, proxy of the scheme.
    #[must_use]
    pub fn way(&self, url: &Url) -> Way<'_> {
        let named = match url.scheme() {
            "https" => &self.https,
            "http" => &self.http,
            _ => &None,
        };
        let (Some(named), Some(host)) = (named, url.host()) else {
            return Way::Direct;
        };
        let address = match host {
            Host::Ipv4(address) => Some(IpAddr::V4(address)),
            Host::Ipv6(address) => Some(IpAddr::V6(address)),
            Host::Domain(_) => None,
        };
        // As in Go's net/http, requests to this machine never go through a proxy.
        if url.host_str() == Some("localhost") || address.is_some_and(|address| address.is_loopback()) {
            return Way::Local;
        }
        let name = url.host_str().unwrap_or_default();
        let port = url.port_or_known_default();
        let found = self.exceptions.iter().find(|one| one.applies(name, address, port));
        match (found, &named.url) {
            (Some(exception), _) => Way::Excepted(&exception.text),
            (None, Some(url)) => Way::Proxy(url, &named.variable),
            (None, None) => Way::Unusable(&named.variable),
        }
    }
}

/// Parses the URL of a proxy; without a scheme, the proxy uses http.
fn named(variable: String, text: &str) -> Named {
    let known = |url: &Url| matches!(url.scheme(), "http" | "https" | "socks5" | "socks5h") && url.has_host();
    let text = text.trim();
    let url = Url::parse(text).ok().filter(known).or_else(|| {
        let bare = !text.contains("://");
        bare.then(|| Url::parse(&format!("http://{text}")).ok().filter(known))?
    });
    let names_by_proxy = |mut url: Url| {
        // The proxy resolves the server's name, because it may be in a network with other names.
        if url.scheme() == "socks5" && url.set_scheme("socks5h").is_err() {
            return None;
        }
        Some(url)
    };
    Named {
        variable,
        url: url.and_then(names_by_proxy),
    }
}

fn exceptions(list: &str) -> Vec<Exception> {
    let entries = list.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    entries.filter_map(exception).collect()
}

/// Parses an entry; `None` if it is empty or not valid.
fn exception(text: &str) -> Option<Exception> {
    let entry = text.to_lowercase();
    let of = |matches, port| {
        Some(Exception {
            text: text.to_owned(),
            matches,
            port,
        })
    };
    if entry == "*" {
        return of(Matches::All, None);
    }
    if let Some((address, bits)) = entry.split_once('/')
        && let (Ok(address), Ok(bits)) = (address.parse::<IpAddr>(), bits.parse::<u8>())
        && bits <= if address.is_ipv4() { 32 } else { 128 }
    {
        return of(Matches::Range(address, bits), None);
    }
    // The address is parsed before the port is split off, because an IPv6 address without brackets contains
    // colons.
    if let Ok(address) = entry.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        return of(Matches::Address(address), None);
    }
    let (host, port) = match entry.rsplit_once(':') {
        Some((host, port)) => (host, Some(port.parse().ok()?)),
        None => (&*entry, None),
    };
    if let Ok(address) = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        return of(Matches::Address(address), port);
    }
    let host = host
        .strip_prefix('*')
        .filter(|rest| rest.starts_with('.'))
        .unwrap_or(host);
    let (name, itself) = match host.strip_prefix('.') {
        Some(name) => (name, false),
        None => (host, true),
    };
    // Names are compared as in URLs, where letters beyond ASCII are encoded.
    let name = match Host::parse(name) {
        Ok(Host::Domain(name)) => name,
        _ if name.is_empty() => return None,
        _ => name.to_owned(),
    };
    of(Matches::Domain { name, itself }, port)
}

impl Exception {
    fn applies(&self, host: &str, address: Option<IpAddr>, port: Option<u16>) -> bool {
        let matches = match &self.matches {
            Matches::All => true,
            // An IPv4 address may be written as a mapped IPv6 address.
            Matches::Address(own) => address.is_some_and(|address| address.to_canonical() == own.to_canonical()),
            Matches::Range(base, bits) => address.is_some_and(|address| is_in_range(address, *base, *bits)),
            Matches::Domain { name, itself } => match host.strip_suffix(&**name) {
                Some("") => *itself,
                // `example.com` does not match `notexample.com`.
                Some(before) => before.ends_with('.'),
                None => false,
            },
        };
        matches && self.port.is_none_or(|own| port == Some(own))
    }
}

fn is_in_range(address: IpAddr, base: IpAddr, bits: u8) -> bool {
    let (value, of_base, width) = match (address.to_canonical(), base) {
        (IpAddr::V4(address), IpAddr::V4(base)) => (address.to_bits().into(), base.to_bits().into(), 32),
        (IpAddr::V6(address), IpAddr::V6(base)) => (address.to_bits(), base.to_bits(), 128),
        _ => return false,
    };
    let different: u128 = value ^ of_base;
    // Rust has no shift by the whole width, which a range of all addresses would need.
    different.checked_shr(width - u32::from(bits)).unwrap_or_default() == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(variables: &[(&str, &str)]) -> Proxies {
        let find = |name: &str| variables.iter().find(|(known, _)| *known == name);
        Proxies::from_variables(|name| find(name).map(|(_, value)| (*value).to_owned()))
    }

    /// Returns the host of the proxy for a URL, or the reason for none.
    fn way(proxies: &Proxies, url: &str) -> String {
        match proxies.way(&Url::parse(url).unwrap()) {
            Way::Proxy(url, variable) => format!("{variable} {}", url.host_str().unwrap()),
            Way::Unusable(variable) => format!("unusable {variable}"),
            Way::Excepted(entry) => format!("excepted {entry}"),
            Way::Local => "local".to_owned(),
            Way::Direct => "direct".to_owned(),
        }
    }

    #[test]
    fn scheme_and_case_of_variables() {
        for (variables, url, expected) in [
            (&[("HTTPS_PROXY", "http://p:3128")][..], "https://a.b", "HTTPS_PROXY p"),
            (&[("HTTPS_PROXY", "http://p:3128")], "http://a.b", "direct"),
            (&[("http_proxy", "p:3128")], "http://a.b", "http_proxy p"),
            (
                &[("http_proxy", "low"), ("HTTP_PROXY", "up")],
                "http://a.b",
                "HTTP_PROXY up",
            ),
            (
                &[("HTTPS_PROXY", ""), ("https_proxy", "low")],
                "https://a.b",
                "https_proxy low",
            ),
            (&[("ALL_PROXY", "http://p:1")], "https://a.b", "direct"),
            (&[("all_proxy", "socks5://p:1")], "http://a.b", "direct"),
            (
                &[("HTTP_PROXY", "p"), ("REQUEST_METHOD", "GET")],
                "http://a.b",
                "direct",
            ),
            (
                &[("HTTPS_PROXY", "p"), ("REQUEST_METHOD", "GET")],
                "https://a.b",
                "HTTPS_PROXY p",
            ),
            (
                &[("HTTPS_PROXY", "socks5://u:p@s:1080")],
                "https://a.b",
                "HTTPS_PROXY s",
            ),
            (&[("HTTPS_PROXY", "http://")], "https://a.b", "unusable HTTPS_PROXY"),
            (&[("HTTPS_PROXY", "ftp://p:1")], "https://a.b", "unusable HTTPS_PROXY"),
            (&[("HTTPS_PROXY", "p")], "https://localhost:8443/x", "local"),
            (&[("HTTPS_PROXY", "p")], "https://127.8.9.1", "local"),
            (&[("HTTPS_PROXY", "p")], "https://[::1]/", "local"),
            (&[("HTTPS_PROXY", "p")], "https://localhost.example", "HTTPS_PROXY p"),
        ] {
            assert_eq!(way(&proxies(variables), url), expected, "{variables:?} {url}");
        }
    }

    #[test]
    fn entries_of_no_proxy() {
        for (list, url, excepted) in [
            ("example.com", "https://example.com", true),
            ("example.com", "https://a.b.example.com", true),
            ("example.com", "https://notexample.com", false),
            (".example.com", "https://example.com", false),
            (".example.com", "https://a.example.com", true),
            ("*.example.com", "https://example.com", false),
            ("*.example.com", "https://a.example.com", true),
            ("*example.com", "https://a.example.com", false),
            ("EXAMPLE.com", "https://Example.COM", true),
            ("example.com.", "https://example.com", false),
            ("example.com:443", "https://example.com", true),
            ("example.com:443", "https://example.com:8443", false),
            ("*.example.com:8443", "https://a.example.com:8443", true),
            ("example.com:80", "http://example.com", true),
            (":443", "https://example.com", false),
            ("10.0.0.0/8", "https://10.200.3.4", true),
            ("10.0.0.0/8", "https://11.0.0.1", false),
            ("10.1.2.3/8", "https://10.200.3.4", true),
            ("0.0.0.0/0", "https://1.2.3.4", true),
            ("0.0.0.0/0", "https://example.com", false),
            ("10.0.0.0/33", "https://10.0.0.1", false),
            ("fd00::/8", "https://[fd12::1]", true),
            ("fd00::/8", "https://[fe80::1]", false),
            ("1.2.3.4", "https://1.2.3.4:8443", true),
            ("1.2.3.4:443", "https://1.2.3.4:8443", false),
            ("[2001:db8::1]:443", "https://[2001:db8::1]", true),
            ("2001:db8::1", "https://[2001:db8::1]:8443", true),
            ("bücher.example", "https://xn--bcher-kva.example", true),
            ("other, *", "https://example.com", true),
            (" , a.b ,example.com ", "https://example.com", true),
            ("a b", "https://example.com", false),
        ] {
            let all = proxies(&[("HTTPS_PROXY", "p"), ("HTTP_PROXY", "p"), ("NO_PROXY", list)]);
            let found = way(&all, url);
            assert_eq!(found.starts_with("excepted "), excepted, "{list} {url}: {found}");
        }
        let all = proxies(&[("HTTPS_PROXY", "p"), ("no_proxy", "a.b, 10.0.0.0/8")]);
        assert_eq!(way(&all, "https://10.1.1.1"), "excepted 10.0.0.0/8");
    }

    #[test]
    fn own_settings_take_the_place_of_variables() {
        let all = proxies(&[("HTTPS_PROXY", "env"), ("NO_PROXY", "a.b")]);
        assert_eq!(
            way(&all.clone().with(None, Some("own"), None), "https://x.y"),
            "https_proxy own"
        );
        assert_eq!(
            way(&all.clone().with(Some("own"), None, None), "https://x.y"),
            "HTTPS_PROXY env"
        );
        let own = all.with(None, Some("own"), Some("x.y"));
        assert_eq!(way(&own, "https://x.y"), "excepted x.y");
        assert_eq!(way(&own, "https://a.b"), "https_proxy own");
    }
}

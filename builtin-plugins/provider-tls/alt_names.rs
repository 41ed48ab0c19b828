//! Alternative names in certificates and requests: host names, IP addresses and URIs.

use std::net::IpAddr;

use monoform_sdk::{Attr, Diagnostic, Diagnostics};
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::prelude::X509CertificationRequest;
use yasna::{DERWriter, Tag};

use crate::problem::CertificateError;
use crate::uri;

/// Alternative names of a subject, in the order in which they are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AltNames {
    pub dns: Vec<String>,
    pub ips: Vec<IpAddr>,
    pub uris: Vec<String>,
}

/// List of texts in a configuration.
pub(crate) type Texts = Attr<Vec<Attr<String>>>;

fn texts(list: &Texts) -> impl Iterator<Item = &str> {
    list.known().into_iter().flatten().map(Attr::text)
}

impl AltNames {
    /// Parses the alternative names in a configuration.
    pub fn configured(dns: &Texts, ips: &Texts, uris: &Texts) -> Result<AltNames, Diagnostics> {
        let mut out = AltNames::default();
        for (i, text) in texts(dns).enumerate() {
            if !text.is_ascii() {
                let detail = format!(
                    "Failed to parse {text:?}: certificates hold host names in ASCII; write an international one in its \
                     \"xn--\" form."
                );
                return Err(at("dns_names", i, "Invalid DNS name", detail));
            }
            out.dns.push(text.to_owned());
        }
        for (i, text) in texts(ips).enumerate() {
            let ip: IpAddr = text.parse().map_err(|e| {
                at(
                    "ip_addresses",
                    i,
                    "Invalid IP address",
                    format!("Failed to parse {text:?}: {e}."),
                )
            })?;
            // As in Go, an IPv4-mapped IPv6 address is written into a certificate as the four bytes of the IPv4 address.
            out.ips.push(ip.to_canonical());
        }
        for (i, text) in texts(uris).enumerate() {
            let uri = uri::normal(text)
                .map_err(|e| at("uris", i, "Invalid URI", format!("Failed to parse {text:?}: {e}.")))?;
            out.uris.push(uri);
        }
        Ok(out)
    }

    /// Reads the alternative names in a certificate request.
    pub fn requested(request: &X509CertificationRequest<'_>) -> Result<AltNames, CertificateError> {
        let mut out = AltNames::default();
        for extension in request.requested_extensions().into_iter().flatten() {
            let names = match extension {
                ParsedExtension::SubjectAlternativeName(names) => names,
                ParsedExtension::ParseError { error } => {
                    return Err(CertificateError::Extension(error.to_string()));
                }
                _ => continue,
            };
            for name in &names.general_names {
                match name {
                    GeneralName::DNSName(name) => out.dns.push((*name).to_owned()),
                    GeneralName::URI(uri) => out.uris.push((*uri).to_owned()),
                    GeneralName::IPAddress(bytes) => {
                        let ip = <[u8; 4]>::try_from(*bytes)
                            .map(IpAddr::from)
                            .or_else(|_| <[u8; 16]>::try_from(*bytes).map(IpAddr::from))
                            .map_err(|_| CertificateError::IpAddress(bytes.len()))?;
                        out.ips.push(ip.to_canonical());
                    }
                    GeneralName::Invalid(..) => return Err(CertificateError::AlternativeName),
                    // As in the official provider, names of other kinds, such as e-mail addresses, are dropped.
                    _ => {}
                }
            }
        }
        Ok(out)
    }

    /// Returns true if there are no names.
    pub fn is_empty(&self) -> bool {
        self.dns.is_empty() && self.ips.is_empty() && self.uris.is_empty()
    }

    pub fn write(&self, writer: DERWriter<'_>) {
        writer.write_sequence(|w| {
            let mut name = |tag, bytes: &[u8]| {
                w.next()
                    .write_tagged_implicit(Tag::context(tag), |w| w.write_bytes(bytes));
            };
            for host in &self.dns {
                name(2, host.as_bytes());
            }
            for ip in &self.ips {
                // The tags are those of GeneralName (RFC 5280, section 4.2.1.6).
                match ip {
                    IpAddr::V4(ip) => name(7, &ip.octets()),
                    IpAddr::V6(ip) => name(7, &ip.octets()),
                }
            }
            for uri in &self.uris {
                name(6, uri.as_bytes());
            }
        });
    }
}

fn at(list: &'static str, index: usize, summary: &str, detail: String) -> Diagnostics {
    use monoform_sdk::cty::{Path, Step, Value};
    let path = Path::root()
        .attribute(list)
        .with(Step::Index(Value::number(index as i64)));
    Diagnostic::error(summary, detail).at(path).into()
}

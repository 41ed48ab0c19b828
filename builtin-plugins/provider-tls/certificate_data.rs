//! `tls_certificate`: the fields of the certificates that a server presents, or of a certificate in the configuration.

use data_encoding::HEXLOWER;
use monoform_sdk::schema::{computed, optional};
use monoform_sdk::{Attr, Check, Context, DataSource, Diagnostic, Result, Schema, Validator, async_trait, model};
use sha1::{Digest, Sha1};
use url::Url;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::fetch::{self, FetchError, Fetched};
use crate::key::public::identifier;
use crate::name::Name;
use crate::problem::CertificateError;
use crate::{Proxying, algorithms, failed, pem, web_address};

model! {
    /// A certificate.
    pub struct Certificate {
        /// Signature algorithm.
        pub signature_algorithm: Attr<String> = computed(),
        /// The algorithm of its key.
        pub public_key_algorithm: Attr<String> = computed(),
        /// Serial number in decimal.
        pub serial_number: Attr<String> = computed(),
        /// True if it may sign others.
        pub is_ca: Attr<bool> = computed(),
        /// Number of intermediate certificates that may follow in a chain; -1 for any number.
        pub max_path_length: Attr<i64> = computed(),
        /// The version of the standard.
        pub version: Attr<i64> = computed(),
        /// Distinguished name of the issuer.
        pub issuer: Attr<String> = computed(),
        /// Distinguished name of the subject.
        pub subject: Attr<String> = computed(),
        /// Beginning of the validity.
        pub not_before: Attr<String> = computed(),
        /// End of the validity.
        pub not_after: Attr<String> = computed(),
        /// SHA-1 fingerprint in hexadecimal.
        pub sha1_fingerprint: Attr<String> = computed(),
        /// The certificate as PEM.
        pub cert_pem: Attr<String> = computed(),
    }
}

impl Certificate {
    fn read(der: &[u8]) -> std::result::Result<Certificate, CertificateError> {
        let certificate = pem::whole(X509Certificate::from_der(der), "certificate")?;
        let constraints = certificate
            .basic_constraints()
            .map_err(|_| CertificateError::BasicConstraints)?;
        let time = |time: &x509_parser::time::ASN1Time| {
            jiff::Timestamp::from_second(time.timestamp()).map_or_else(|_| time.to_string(), |t| t.to_string())
        };
        Ok(Certificate {
            signature_algorithm: algorithms::signature(&certificate.signature_algorithm).into(),
            public_key_algorithm: algorithms::public_key(&certificate.public_key().algorithm).into(),
            serial_number: certificate.tbs_certificate.serial.to_string().into(),
            is_ca: certificate.is_ca().into(),
            max_path_length: match constraints {
                Some(constraints) => constraints.value.path_len_constraint.map_or(-1, i64::from).into(),
                // As in Go, the value is 0 if the certificate does not have the extension.
                None => 0.into(),
            },
            version: (i64::from(certificate.version().0) + 1).into(),
            issuer: Name::read(certificate.issuer())?.text().into(),
            subject: Name::read(certificate.subject())?.text().into(),
            not_before: time(&certificate.validity().not_before).into(),
            not_after: time(&certificate.validity().not_after).into(),
            sha1_fingerprint: HEXLOWER.encode(&Sha1::digest(der)).into(),
            cert_pem: pem::encode(pem::CERTIFICATE, der).into(),
        })
    }

    /// Returns the text from which the ID of the data source is computed: as in the official provider, Go's text form of a struct.
    fn text(&self) -> String {
        let number = |n: &Attr<i64>| n.known().copied().unwrap_or_default().to_string();
        let parts = [
            quoted(self.signature_algorithm.text()),
            quoted(self.public_key_algorithm.text()),
            quoted(self.serial_number.text()),
            self.is_ca.clone().or(false).to_string(),
            number(&self.max_path_length),
            number(&self.version),
            quoted(self.issuer.text()),
            quoted(self.subject.text()),
            quoted(self.not_before.text()),
            quoted(self.not_after.text()),
            quoted(self.sha1_fingerprint.text()),
            quoted(self.cert_pem.text()),
        ];
        format!("{{{}}}", parts.join(" "))
    }
}

/// Quotes a text as Go does.
fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x07' => out.push_str("\\a"),
            '\x08' => out.push_str("\\b"),
            '\x0b' => out.push_str("\\v"),
            '\x0c' => out.push_str("\\f"),
            c if c.is_ascii_control() => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

model! {
    /// The certificate chain of a server (`url`), or the certificate in `content`.
    pub struct Model {
        /// The server. With `https://`, a request is sent by HTTP, through the provider's proxy if there is one, and redirects are
        /// followed; with `tls://` there must be a port, and no more is done than to make a connection.
        pub url: Attr<String> = optional()
            .validate(Validator::custom(checked_url))
            .validate(Validator::ExactlyOneOf(&["content", "url"])),
        /// A certificate as PEM, instead of a server.
        pub content: Attr<String> = optional().validate(Validator::ExactlyOneOf(&["content", "url"])),
        /// True if the certificates must lead to an authority that this machine trusts. The default is true.
        pub verify_chain: Attr<bool> = optional().validate(Validator::ConflictsWith(&["content"])),
        /// The certificates: the one of the server comes last.
        pub certificates: Attr<Vec<Certificate>> = computed(),
        /// A hash of the certificates.
        pub id: Attr<String> = computed(),
    }
}

fn checked_url(check: &Check<'_>) -> Option<Diagnostic> {
    let text = check.value.as_str()?;
    web_address::check(text, &["https", "tls"]).map(|d| d.at(check.path.clone()))
}

pub(crate) struct CertificateSource;

#[async_trait]
impl DataSource for CertificateSource {
    type Model = Model;
    type Client = Proxying;

    fn schema(&self) -> Schema {
        crate::plain_but(
            Schema::of::<Model>().describe("The parsed certificates of a server, or of a text."),
            &["certificates", "content", "id", "url", "verify_chain"],
        )
    }

    async fn read(&self, config: Model, cx: &mut Context<Proxying>) -> Result<Model> {
        let verify = config.verify_chain.clone().or(true);
        let certificates = match config.content.as_str() {
            Some(text) => vec![given(text)?],
            None => {
                let url = config.url.text();
                let mut chain = of_server(url, verify, cx).await?;
                // As in the official provider, the list begins at the end of the chain, and the server's own certificate comes last.
                chain.reverse();
                let read = |der: &Vec<u8>| {
                    Certificate::read(der).map_err(|e| failed("Unable to parse certificate", format!("{url}: {e}.")))
                };
                chain.iter().map(read).collect::<Result<_>>()?
            }
        };
        let text: Vec<String> = certificates.iter().map(Certificate::text).collect();
        Ok(Model {
            // The ID is a checksum of Go's text form of the list, so that it is the same as in states of the official provider.
            id: identifier(format!("[{}]", text.join(" ")).as_bytes()).into(),
            verify_chain: verify.into(),
            certificates: certificates.into(),
            ..config
        })
    }
}

fn given(text: &str) -> Result<Certificate> {
    let at = |diagnostic: Diagnostic| diagnostic.at_attribute("content");
    let block = pem::first(text).ok_or_else(|| {
        at(Diagnostic::error(
            "Failed to decoded PEM",
            "The value is not a valid PEM encoding of a certificate.",
        ))
    })?;
    if block.tag() != pem::CERTIFICATE {
        return Err(at(Diagnostic::error(
            "Unexpected PEM preamble",
            format!(
                "Certificate PEM should be {:?}, got {:?}.",
                pem::CERTIFICATE,
                block.tag()
            ),
        ))
        .into());
    }
    Certificate::read(block.contents())
        .map_err(|e| at(Diagnostic::error("Unable to parse certificate", format!("{e}."))).into())
}

/// Returns the certificates that a server presents, with its own first.
async fn of_server(text: &str, verify: bool, cx: &mut Context<Proxying>) -> Result<Vec<Vec<u8>>> {
    let url = Url::parse(text).map_err(|e| failed("Failed to parse URL", format!("{text:?} is no URL: {e}.")))?;
    let client = cx.client()?;
    let mut stop = cx.stop();
    let fetch = async {
        match (url.scheme(), url.port()) {
            ("tls", None) => Err(failed(
                "URL malformed",
                format!("Port missing from URL: {text}. With tls:// it must be given, as in tls://example.com:8443."),
            )),
            ("tls", Some(port)) => Ok(fetch::by_tls(url.host(), port, verify).await),
            _ => Ok(fetch::by_https(&url, verify, &client).await),
        }
    };
    // Stoppable, because a server may accept the connection and never answer.
    let fetched: Fetched = tokio::select! {
        fetched = fetch => fetched?,
        () = stop.requested() => Err(FetchError::Stopped),
    };
    fetched.map_err(|e| failed("Failed to identify fetch peer certificates", format!("{text}: {e}.")))
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn text_is_quoted_as_the_ids_of_before_need_it() {
        assert_eq!(quoted("a \"b\"\\\n\x01ä"), "\"a \\\"b\\\"\\\\\\n\\x01ä\"");
    }
}

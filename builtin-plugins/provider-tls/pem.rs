//! PEM, the text format of keys, requests and certificates.

use pem::{EncodeConfig, LineEnding};

pub(crate) use pem::Pem;

use crate::problem::CertificateError;

/// Label of a certificate.
pub(crate) const CERTIFICATE: &str = "CERTIFICATE";
/// Label of a certificate request.
pub(crate) const REQUEST: &str = "CERTIFICATE REQUEST";

/// Returns the first block of a text; `None` if it has no valid one.
pub(crate) fn first(text: &str) -> Option<Pem> {
    pem::parse(text).ok()
}

/// Returns the bytes of the first block, which must have this label.
pub(crate) fn first_with_label(text: &str, label: &'static str) -> Result<Vec<u8>, CertificateError> {
    let block = first(text).ok_or(CertificateError::NoPemBlock(label))?;
    if block.tag() != label {
        return Err(CertificateError::PemLabel {
            expected: label,
            found: block.tag().to_owned(),
        });
    }
    Ok(block.into_contents())
}

/// Encodes a block, with lines of 64 characters and a line break at the end.
pub(crate) fn encode(label: &str, der: impl Into<Vec<u8>>) -> String {
    pem::encode_config(
        &Pem::new(label, der),
        EncodeConfig::new().set_line_ending(LineEnding::LF),
    )
}

/// Returns the result of a parser. If bytes are left over, returns an error.
pub(crate) fn whole<T, E>(parsed: Result<(&[u8], T), E>, what: &'static str) -> Result<T, CertificateError> {
    match parsed {
        Ok(([], parsed)) => Ok(parsed),
        Ok(_) => Err(CertificateError::Trailing(what)),
        Err(_) => Err(CertificateError::Malformed(what)),
    }
}

/// Returns true if a stored text is PEM. Early versions of the official provider stored only a hash of some arguments. A change from that
/// hash to the PEM text must not replace the object.
pub(crate) fn is_pem(text: &str) -> bool {
    let label = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphabetic() || c == ' ');
    let text = text.strip_suffix('\n').unwrap_or(text);
    let parts = text
        .strip_prefix("-----BEGIN ")
        .and_then(|rest| rest.strip_suffix("-----"))
        .and_then(|rest| Some((rest.split_once("-----\n")?.0, rest.rsplit_once("\n-----END ")?.1)));
    parts.is_some_and(|(begin, end)| label(begin) && label(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_not_pem() {
        let text = encode(CERTIFICATE, vec![0; 100]);
        assert!(text.lines().all(|line| line.len() <= 64), "{text}");
        assert!(text.ends_with("-----END CERTIFICATE-----\n"));
        assert!(is_pem(&text) && is_pem(text.trim_end()));
        for other in [
            "",
            "a94a8fe5ccb19ba61c4c0873d391e987982fbbd3",
            "-----BEGIN X-----\n",
            "-----BEGIN 1-----\nx\n-----END 1-----",
        ] {
            assert!(!is_pem(other), "{other}");
        }
    }

    #[test]
    fn the_first_block_counts() {
        let text = format!("words before\n{}{}", encode(REQUEST, *b"a"), encode(CERTIFICATE, *b"b"));
        assert_eq!(first_with_label(&text, REQUEST), Ok(b"a".to_vec()));
        let error = first_with_label(&text, CERTIFICATE).unwrap_err().to_string();
        assert!(
            error.contains("expected \"CERTIFICATE\", got \"CERTIFICATE REQUEST\""),
            "{error}"
        );
        assert!(
            first_with_label("words", CERTIFICATE)
                .unwrap_err()
                .to_string()
                .contains("failed to decode PEM")
        );
    }
}

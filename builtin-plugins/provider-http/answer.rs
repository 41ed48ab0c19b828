//! Responses: headers as a map of text, the body as bytes.

use std::collections::BTreeMap;
use std::io::Read;

use flate2::read::MultiGzDecoder;
use http::header::{CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, HeaderMap, HeaderValue, TRAILER, TRANSFER_ENCODING};

/// Size limit of a body in bytes. The body is in three attributes, one of them in base64, and an answer of a plugin is limited to 256 MiB.
pub(crate) const LARGEST: usize = 76 << 20;

/// Reason why the body of a response cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyError {
    #[error("the body is larger than the {} MiB that are accepted", LARGEST >> 20)]
    TooLarge,
    #[error("the compressed body cannot be read: {0}")]
    Compressed(std::io::Error),
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub status: u16,
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

impl Answer {
    /// Creates an answer from the parts of a response. If `gzip` is set, a body that the server has compressed is decompressed.
    pub fn new(status: u16, mut headers: HeaderMap, mut body: Vec<u8>, gzip: bool) -> Result<Answer, BodyError> {
        let is_gzip = |encoding: &[u8]| encoding.eq_ignore_ascii_case(b"gzip");
        if gzip && !body.is_empty() && headers.get(CONTENT_ENCODING).is_some_and(|v| is_gzip(v.as_bytes())) {
            let mut plain = Vec::new();
            // The limit applies to the decompressed body, so that a small response cannot exhaust the memory.
            let mut decoder = MultiGzDecoder::new(body.as_slice()).take(LARGEST as u64 + 1);
            decoder.read_to_end(&mut plain).map_err(BodyError::Compressed)?;
            if plain.len() > LARGEST {
                return Err(BodyError::TooLarge);
            }
            body = plain;
            // As in Go's client, these headers are removed: they describe the compressed body.
            headers.remove(CONTENT_ENCODING);
            headers.remove(CONTENT_LENGTH);
        }
        // Hop-by-hop headers are removed, because they are only about this connection.
        let closes = |v: &HeaderValue| v.as_bytes().eq_ignore_ascii_case(b"close");
        if headers.get(CONNECTION).is_some_and(closes) {
            headers.remove(CONNECTION);
        }
        headers.remove(TRANSFER_ENCODING);
        headers.remove(TRAILER);
        let mut text = BTreeMap::<String, String>::new();
        for (name, value) in &headers {
            let value = replaced(value.as_bytes());
            text.entry(title_case(name.as_str()))
                .and_modify(|all| {
                    all.push_str(", ");
                    all.push_str(&value);
                })
                .or_insert(value);
        }
        Ok(Answer {
            status,
            headers: text,
            body,
        })
    }
}

/// Returns the name of a header with a capital letter at the beginning of each word: `Content-Type`.
fn title_case(name: &str) -> String {
    // Configurations expect names as Go's client shows them, but HTTP/2 transmits them in lower case.
    let mut begins = true;
    name.chars()
        .map(|c| {
            let cased = if begins { c.to_ascii_uppercase() } else { c };
            begins = c == '-';
            cased
        })
        .collect()
}

/// Converts bytes to text. Each byte that is not valid UTF-8 becomes a replacement character.
pub(crate) fn replaced(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_bytes_as_text() {
        assert_eq!(title_case("x-frame-options"), "X-Frame-Options");
        assert_eq!(title_case("etag"), "Etag");
        assert_eq!(replaced(b"a\xe2\x82b\xff"), "a\u{fffd}\u{fffd}b\u{fffd}");
    }
}

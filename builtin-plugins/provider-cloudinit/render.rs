//! The MIME message. Every byte is as in the official provider, since a different message would be other user data, and would replace
//! machines.

use std::io::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use deflate::Gzip;
use flate2::Crc;

/// A part of the message. Empty fields have no header, except that an empty content type becomes `text/plain`.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// Content of the part, as it is sent.
    pub content: &'a str,
    /// MIME type of the content.
    pub content_type: &'a str,
    /// Name of the file that the part becomes.
    pub filename: &'a str,
    /// Value of the header `X-Merge-Type`.
    pub merge_type: &'a str,
}

/// Default content type of a part.
pub(crate) const CONTENT_TYPE: &str = "text/plain";
/// Default boundary between the parts.
pub const BOUNDARY: &str = "MIMEBOUNDARY";

/// Returns the reason why a boundary is invalid in MIME (RFC 2046), as the end of a sentence.
pub(crate) fn boundary_problem(boundary: &str) -> Option<String> {
    let fine = |c: char| c.is_ascii_alphanumeric() || "'()+_,-./:=? ".contains(c);
    if (1..=70).contains(&boundary.len()) && boundary.chars().all(fine) && !boundary.ends_with(' ') {
        return None;
    }
    Some(format!(
        "invalid boundary {boundary:?}: a boundary has 1 to 70 characters, each of them a letter of ASCII, a digit, one of \
         '()+_,-./:=? or a space that is not at the end."
    ))
}

/// Renders the message. The first line ends in `\n` and the others in `\r\n`, as in the official provider.
pub fn message(parts: &[Part<'_>], boundary: &str) -> String {
    let mut out = format!("Content-Type: multipart/mixed; boundary=\"{boundary}\"\nMIME-Version: 1.0\r\n\r\n");
    for (i, part) in parts.iter().enumerate() {
        if i > 0 {
            out.push_str("\r\n");
        }
        out.push_str(&format!("--{boundary}\r\n"));
        if !part.filename.is_empty() {
            let filename = part.filename;
            out.push_str(&format!("Content-Disposition: attachment; filename=\"{filename}\"\r\n"));
        }
        let content_type = match part.content_type {
            "" => CONTENT_TYPE,
            given => given,
        };
        out.push_str(&format!(
            "Content-Transfer-Encoding: 7bit\r\nContent-Type: {content_type}\r\nMime-Version: 1.0\r\n"
        ));
        if !part.merge_type.is_empty() {
            out.push_str(&format!("X-Merge-Type: {}\r\n", part.merge_type));
        }
        out.push_str("\r\n");
        out.push_str(part.content);
    }
    out.push_str(&format!("\r\n--{boundary}--\r\n"));
    out
}

/// Encodes the message as configured.
pub fn encode(message: String, gzip: bool, base64: bool) -> io::Result<String> {
    // Compressed data is not text, so it is always in base64.
    if !gzip {
        return Ok(if base64 { STANDARD.encode(message) } else { message });
    }
    let mut encoder = Gzip::new(Vec::new());
    let bytes = encoder.write_all(message.as_bytes()).and_then(|()| encoder.finish());
    bytes.map(|bytes| STANDARD.encode(bytes))
}

/// Returns the CRC-32 of a result, which is its ID in the state.
pub fn checksum(rendered: &str) -> String {
    let mut crc = Crc::new();
    crc.update(rendered.as_bytes());
    crc.sum().to_string()
}

//! Private data of objects, stored by keys. The format is that of terraform-plugin-framework: a JSON object that has a base64-encoded JSON
//! document for each key. A provider that moves from that framework to this SDK can thus read the private data of existing objects.

use cty::json::Json;

use crate::diag::{Diagnostic, Diagnostics, Result};
use crate::json::to_json;
use crate::model::Cty;

/// Reads the value of a key; `None` if there is none.
pub(crate) fn get<T: Cty>(private: &[u8], key: &str) -> Result<Option<T>> {
    let all = parse(private)?;
    let Some(document) = all.get(key).filter(|document| !document.is_null()) else {
        return Ok(None);
    };
    let json = (document.as_str().and_then(decode)).and_then(|bytes| Json::parse(&bytes).ok());
    let value = json.ok_or_else(unreadable)?.to_value(&T::ty());
    match value.map(|value| T::from_cty(&value)) {
        Ok(Ok(value)) => Ok(Some(value)),
        Ok(Err(_)) | Err(_) => Err(Diagnostic::error(
            "Private Data Has Another Type",
            format!("The private data \"{key}\" of this object is not of the type that the plugin reads. This is a bug in the plugin."),
        )
        .into()),
    }
}

/// Returns private data with another value for a key; without the key if the value is `None`.
pub(crate) fn set<T: Cty>(private: &[u8], key: &str, value: Option<&T>) -> Result<Vec<u8>> {
    if key.is_empty() || key.starts_with('.') {
        return Err(Diagnostic::error(
            "Invalid Key of Private Data",
            format!("The plugin uses the key \"{key}\" for private data, but a key must not be empty or begin with a dot. This is a bug in the plugin."),
        )
        .into());
    }
    let Json::Object(mut all) = parse(private)? else {
        return Err(unreadable());
    };
    match value {
        None => drop(all.remove(key)),
        Some(value) => {
            let document = to_json(&value.to_cty()).map_err(Diagnostics::from)?;
            all.insert(key.to_owned(), encode(document.to_string().as_bytes()).into());
        }
    }
    Ok(match all.is_empty() {
        true => Vec::new(),
        false => Json::Object(all).to_string().into_bytes(),
    })
}

fn parse(private: &[u8]) -> Result<Json> {
    if private.is_empty() {
        return Ok(Json::Object(Default::default()));
    }
    match Json::parse(private) {
        Ok(json @ Json::Object(_)) => Ok(json),
        Ok(_) | Err(_) => Err(unreadable()),
    }
}

fn unreadable() -> Diagnostics {
    Diagnostic::error(
        "Private Data Not Readable",
        "The private data of this object has no keys. The plugin stores it as bytes, or the object was written by another provider.",
    )
    .into()
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Encodes bytes in base64. These 20 lines save every author the dependency on a crate.
fn encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let bits = (0..3).fold(0_u32, |bits, i| {
            bits << 8 | u32::from(chunk.get(i).copied().unwrap_or_default())
        });
        for i in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * i) & 63) as usize];
            out.push(if i > chunk.len() { '=' } else { digit.into() });
        }
    }
    out
}

fn decode(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=').as_bytes();
    let mut out = Vec::with_capacity(digits.len() * 3 / 4);
    for chunk in digits.chunks(4) {
        let mut bits = 0_u32;
        for i in 0..4 {
            let digit = match chunk.get(i) {
                Some(digit) => DIGITS.iter().position(|d| d == digit)?,
                None => 0,
            };
            bits = bits << 6 | u32::try_from(digit).ok()?;
        }
        // A single digit has only six bits, which is less than a byte.
        let count = chunk.len().checked_sub(1).filter(|count| *count > 0)?;
        out.extend((0..count).map(|i| (bits >> (16 - 8 * i) & 255) as u8));
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_stored_by_key() {
        let private = set(b"", "etag", Some(&"x-1".to_owned())).unwrap();
        assert_eq!(private, br#"{"etag":"IngtMSI="}"#, "the form of the framework");
        let private = set(&private, "parts", Some(&vec![1_i64, 2])).unwrap();
        assert_eq!(get::<Vec<i64>>(&private, "parts"), Ok(Some(vec![1, 2])));
        assert_eq!(get::<String>(&private, "etag"), Ok(Some("x-1".into())));
        assert_eq!(get::<String>(&private, "other"), Ok(None));
        assert_eq!(get::<String>(b"", "etag"), Ok(None));
        let private = set::<String>(&private, "parts", None).unwrap();
        assert_eq!(set::<String>(&private, "etag", None), Ok(Vec::new()));
    }

    #[test]
    fn other_private_data_is_an_error_and_not_lost() {
        assert!(get::<String>(b"bytes", "etag").is_err());
        assert!(set(b"[1]", "etag", Some(&1_i64)).is_err());
        assert!(set(b"", ".own", Some(&1_i64)).is_err());
        let private = set(b"", "etag", Some(&"a".to_owned())).unwrap();
        assert!(get::<Vec<i64>>(&private, "etag").is_err());
        assert!(get::<String>(br#"{"etag":"?"}"#, "etag").is_err());
    }

    #[test]
    fn base64_is_read_as_it_is_written() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("\u{ff}~?", "w79+Pw=="),
        ] {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).as_deref(), Some(bytes.as_bytes()));
        }
        assert_eq!(decode("Zg==x"), None);
        assert_eq!(decode("Z"), None);
    }
}

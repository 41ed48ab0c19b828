//! Unicode normalization of text: strings and names of the language are in NFC.

use std::sync::Arc;

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

/// Normalizes a text to NFC. Text in that form, such as ASCII, is only copied.
pub(crate) fn normalize(text: &str) -> Arc<str> {
    if text.is_ascii() || is_nfc_quick(text.chars()) == IsNormalized::Yes {
        return text.into();
    }
    text.nfc().collect::<String>().into()
}

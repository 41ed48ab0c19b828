//! Names in addresses: identifiers, hosts, namespaces and types of providers, and the error for invalid text.

/// The error for text that is not an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{summary}: {detail}")]
pub struct ParseError {
    /// The kind of problem, in one line.
    pub summary: String,
    /// The problem, in a sentence.
    pub detail: String,
}

impl ParseError {
    pub fn new(summary: impl Into<String>, detail: impl Into<String>) -> ParseError {
        ParseError {
            summary: summary.into(),
            detail: detail.into(),
        }
    }

    pub(crate) fn address(detail: impl Into<String>) -> ParseError {
        ParseError::new("Invalid address", detail)
    }
}

/// Returns true if the text is a valid identifier of HCL.
#[must_use]
pub fn is_identifier(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c == '_' || unicode_ident::is_xid_start(c))
        // Identifiers of HCL are Unicode identifiers that may also contain dashes.
        && chars.all(|c| c == '-' || unicode_ident::is_xid_continue(c))
}

/// Words that begin references to objects other than resources.
pub(crate) const RESERVED: &[&str] = &[
    "count",
    "each",
    "local",
    "module",
    "path",
    "self",
    "terraform",
    "var",
    // Terraform reserves the next three words, although it does not use them.
    "template",
    "lazy",
    "arg",
];

/// Returns true if the address of a resource of this type is ambiguous without the prefix `resource.`.
pub(crate) fn needs_resource_prefix(ty: &str) -> bool {
    matches!(ty, "data" | "ephemeral" | "resource") || RESERVED.contains(&ty)
}

/// Normalizes a host name: lower case, labels separated by dots, with an optional port.
pub(crate) fn host(text: &str) -> Result<String, ParseError> {
    let lower = text.to_lowercase();
    let (name, port) = lower.split_once(':').map_or((&*lower, None), |(n, p)| (n, Some(p)));
    let valid = !name.is_empty()
        && name.split('.').all(|label| {
            !label.is_empty()
                && !label.starts_with('-')
                && !label.ends_with('-')
                && label.chars().all(|c| c.is_alphanumeric() || c == '-')
        })
        && port.is_none_or(|p| p.parse::<u16>().is_ok());
    if valid {
        Ok(lower)
    } else {
        Err(ParseError::new(
            "Invalid provider source hostname",
            format!("\"{text}\" is not a valid host name."),
        ))
    }
}

/// Normalizes the namespace of a provider: lower case letters and digits, with underscores and single dashes between them.
pub(crate) fn provider_namespace(text: &str) -> Result<String, ParseError> {
    normalized(text, &['-', '_']).ok_or_else(|| {
        ParseError::new(
            "Invalid provider namespace",
            format!(
                "\"{text}\" is not a valid provider namespace: only letters, digits, and underscores and single dashes between \
                 them can be part of it."
            ),
        )
    })
}

/// Normalizes the type of a provider: lower case letters and digits, with single dashes between them.
pub(crate) fn provider_type(text: &str) -> Result<String, ParseError> {
    // A resource type begins with the type of its provider and an underscore, so the provider type cannot contain underscores.
    normalized(text, &['-']).ok_or_else(|| {
        ParseError::new(
            "Invalid provider type",
            format!(
                "\"{text}\" is not a valid provider type: only letters, digits and single dashes between them can be part of \
                 it."
            ),
        )
    })
}

/// Converts a part of a provider's address to lower case. Returns `None` unless it consists of letters and digits, with the characters of
/// `signs` between them.
fn normalized(text: &str, signs: &[char]) -> Option<String> {
    let lower = text.to_lowercase();
    let valid = !lower.is_empty()
        && lower.chars().all(|c| c.is_alphanumeric() || signs.contains(&c))
        && !lower.starts_with(signs)
        && !lower.ends_with(signs)
        && !lower.contains("--");
    valid.then_some(lower)
}

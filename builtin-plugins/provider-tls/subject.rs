//! The `subject` block, and other arguments about the subject of a certificate.

use monoform_sdk::schema::{Attribute, optional};
use monoform_sdk::{Attr, Modifier, Result, Validator, model};

use crate::name::{Name, Sort};
use crate::{failed, pem};

fn part() -> Attribute {
    optional().requires_replace()
}

model! {
    /// Subject: the parts of a distinguished name.
    pub struct Subject {
        /// The common name (CN).
        pub common_name: Attr<String> = part(),
        /// The organization (O).
        pub organization: Attr<String> = part(),
        /// The unit of the organization (OU).
        pub organizational_unit: Attr<String> = part(),
        /// Lines of the street address (STREET).
        pub street_address: Attr<Vec<Attr<String>>> = part(),
        /// The town (L).
        pub locality: Attr<String> = part(),
        /// The state or province (ST).
        pub province: Attr<String> = part(),
        /// The country, by its two letters (C).
        pub country: Attr<String> = part(),
        /// The postal code (POSTALCODE).
        pub postal_code: Attr<String> = part(),
        /// A serial number of the subject, not of the certificate (SERIALNUMBER).
        pub serial_number: Attr<String> = part(),
        /// An e-mail address (1.2.840.113549.1.9.1).
        pub email_address: Attr<String> = part(),
    }
}

/// Returns the name in the subject block; empty without a block.
pub(crate) fn name(blocks: &Attr<Vec<Subject>>) -> Result<Name> {
    let mut name = Name::default();
    let Some(subject) = blocks.known().and_then(|blocks| blocks.first()) else {
        return Ok(name);
    };
    for (sort, value) in [
        (Sort::Country, &subject.country),
        (Sort::Province, &subject.province),
        (Sort::Locality, &subject.locality),
        (Sort::PostalCode, &subject.postal_code),
        (Sort::Organization, &subject.organization),
        (Sort::Unit, &subject.organizational_unit),
        (Sort::CommonName, &subject.common_name),
        (Sort::SerialNumber, &subject.serial_number),
    ] {
        if let Some(value) = value.as_str() {
            name.add(sort, value);
        }
    }
    for line in subject.street_address.known().into_iter().flatten() {
        name.add(Sort::Street, line.text());
    }
    if let Some(address) = subject.email_address.as_str() {
        name.add_email(address)
            .map_err(|e| failed("Invalid Certificate Subject", format!("{e}.")))?;
    }
    Ok(name)
}

/// Returns the attribute for a list of names.
pub(crate) fn names() -> Attribute {
    optional().requires_replace()
}

/// Returns the attribute for a list of names, none of which may be empty.
pub(crate) fn names_of_some_length() -> Attribute {
    names().validate(Validator::each(Validator::LengthAtLeast(1)))
}

/// Returns the attribute for a PEM argument. A change replaces the object, unless the state is so old that it has only a hash of the
/// argument.
pub(crate) fn pem_input(attribute: Attribute) -> Attribute {
    attribute.modify(Modifier::custom(|change| {
        if let Some(prior) = change.prior
            && *prior != change.planned
            && prior.as_str().is_some_and(pem::is_pem)
        {
            change.replace = true;
        }
    }))
}

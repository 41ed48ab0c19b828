//! Distinguished names: encoding, decoding, and their text form.
//!
//! The encoded attributes have a fixed order, from the country to the serial number, and one group for each type, whatever the order of a
//! decoded name was. Attributes of other types are shown, but not encoded again.

use data_encoding::HEXLOWER;
use x509_parser::x509::X509Name;
use yasna::DERWriter;

use crate::oid::{self, Oid};
use crate::problem::CertificateError;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Name {
    /// Values by attribute type, in the order of [`SORTS`].
    values: [Vec<String>; SORTS.len()],
    /// E-mail address, which is a part of the name in older certificates.
    email: Option<String>,
    /// Attributes of other types in a decoded name.
    others: Vec<(String, String)>,
}

/// Type of an attribute of a distinguished name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    Country,
    Province,
    Locality,
    Street,
    PostalCode,
    Organization,
    Unit,
    CommonName,
    SerialNumber,
}

/// Attribute types in the order of encoding, with the last arc of their object identifiers (below 2.5.4) and their short names.
const SORTS: [(Sort, u64, &str); 9] = [
    (Sort::Country, 6, "C"),
    (Sort::Province, 8, "ST"),
    (Sort::Locality, 7, "L"),
    (Sort::Street, 9, "STREET"),
    (Sort::PostalCode, 17, "POSTALCODE"),
    (Sort::Organization, 10, "O"),
    (Sort::Unit, 11, "OU"),
    (Sort::CommonName, 3, "CN"),
    (Sort::SerialNumber, 5, "SERIALNUMBER"),
];

/// Prefix of the object identifiers of attribute types (X.520).
const ATTRIBUTES: Oid = &[2, 5, 4];

/// Error for an e-mail address that is not ASCII.
#[derive(Debug, thiserror::Error)]
#[error("the e-mail address {0:?} has characters that a name cannot hold")]
pub(crate) struct NotAscii(String);

impl Name {
    /// Adds an attribute. Common name and serial number have one value, which a new one replaces and an empty one removes.
    pub fn add(&mut self, sort: Sort, value: &str) {
        let values = &mut self.values[sort as usize];
        if matches!(sort, Sort::CommonName | Sort::SerialNumber) {
            values.clear();
            if value.is_empty() {
                return;
            }
        }
        values.push(value.to_owned());
    }

    /// Adds an e-mail address. RFC 5280 requires that it is an IA5String.
    pub fn add_email(&mut self, address: &str) -> Result<(), NotAscii> {
        if !address.is_ascii() {
            return Err(NotAscii(address.to_owned()));
        }
        self.email = Some(address.to_owned());
        Ok(())
    }

    /// Returns true if the encoded name would be empty.
    pub fn is_empty(&self) -> bool {
        self.email.is_none() && self.values.iter().all(Vec::is_empty)
    }

    /// Decodes the name in a certificate or request.
    pub fn read(name: &X509Name<'_>) -> Result<Name, CertificateError> {
        let mut out = Name::default();
        for attribute in name.iter_attributes() {
            let value = attribute.attr_value();
            let value = string(value.header.tag().0, value.data)?;
            let arcs = oid::arcs(attribute.attr_type());
            match arcs
                .strip_prefix(ATTRIBUTES)
                .and_then(|rest| SORTS.iter().find(|(_, arc, _)| rest == [*arc]))
            {
                Some((sort, _, _)) => out.add(*sort, &value),
                None => out.others.push((attribute.attr_type().to_id_string(), value)),
            }
        }
        Ok(out)
    }

    pub fn write(&self, writer: DERWriter<'_>) {
        writer.write_sequence(|w| {
            for ((_, arc, _), values) in SORTS.iter().zip(&self.values) {
                if values.is_empty() {
                    continue;
                }
                let identifier = oid::der(&[ATTRIBUTES, &[*arc]].concat());
                w.next().write_set_of(|w| {
                    for value in values {
                        w.next().write_sequence(|w| {
                            w.next().write_oid(&identifier);
                            write_string(value, w.next());
                        });
                    }
                });
            }
            if let Some(address) = &self.email {
                w.next().write_set(|w| {
                    w.next().write_sequence(|w| {
                        w.next().write_oid(&oid::der(oid::EMAIL_ADDRESS));
                        w.next().write_ia5_string(address);
                    });
                });
            }
        });
    }

    /// Encodes the name as a DER document.
    pub fn der(&self) -> Vec<u8> {
        yasna::construct_der(|w| self.write(w))
    }

    /// Formats the name approximately as in RFC 2253, with the last attribute first.
    pub fn text(&self) -> String {
        let known = SORTS.iter().zip(&self.values).rev();
        let known = known
            .filter(|(_, values)| !values.is_empty())
            .map(|((_, _, label), values)| {
                let parts: Vec<String> = values
                    .iter()
                    .map(|value| format!("{label}={}", escaped(value)))
                    .collect();
                parts.join("+")
            });
        // As in RFC 2253, an attribute without a short name is shown as its object identifier, with its encoded value in hexadecimal.
        let others = self.others.iter().rev().map(|(oid, value)| {
            let der = yasna::construct_der(|w| write_string(value, w));
            format!("{oid}=#{}", HEXLOWER.encode(&der))
        });
        known.chain(others).collect::<Vec<_>>().join(",")
    }
}

fn escaped(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for (i, c) in value.char_indices() {
        // RFC 2253 escapes spaces only at both ends, and `#` only at the beginning.
        let special = match c {
            ',' | '+' | '"' | '\\' | '<' | '>' | ';' => true,
            ' ' => i == 0 || i + 1 == value.len(),
            '#' => i == 0,
            _ => false,
        };
        if special {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// Writes text as a PrintableString if all of its characters are allowed there, otherwise as a UTF8String.
fn write_string(text: &str, writer: DERWriter<'_>) {
    let printable = |c: char| c.is_ascii_alphanumeric() || " '()+,-./:=?".contains(c);
    if text.chars().all(printable) {
        writer.write_printable_string(text);
    } else {
        writer.write_utf8_string(text);
    }
}

/// Decodes an ASN.1 string of the type with this tag.
fn string(tag: u32, bytes: &[u8]) -> Result<String, CertificateError> {
    let malformed = || CertificateError::NameString(tag);
    match tag {
        // UTF8String, NumericString, PrintableString and IA5String
        12 | 18 | 19 | 22 => std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| malformed()),
        // T61String. In practice, it contains Latin-1.
        20 => Ok(bytes.iter().map(|b| char::from(*b)).collect()),
        // BMPString, which is UTF-16 in big-endian order.
        30 => {
            let (units, rest) = bytes.as_chunks::<2>();
            let units: Vec<u16> = units.iter().map(|u| u16::from_be_bytes(*u)).collect();
            let units = units.strip_suffix(&[0]).unwrap_or(&units);
            match String::from_utf16(units) {
                Ok(text) if rest.is_empty() => Ok(text),
                _ => Err(malformed()),
            }
        }
        _ => Err(malformed()),
    }
}

#[cfg(test)]
mod tests {
    use x509_parser::prelude::FromDer;

    use super::*;

    fn read(der: &[u8]) -> Name {
        let (_, name) = X509Name::from_der(der).unwrap();
        Name::read(&name).unwrap()
    }

    #[test]
    fn what_is_written_is_read_and_shown() {
        let mut name = Name::default();
        name.add(Sort::CommonName, "Root, \"CA\"");
        name.add(Sort::Organization, " Test #1 Org ");
        name.add(Sort::Country, "");
        name.add(Sort::Street, "Zürich 1");
        name.add(Sort::Street, "Backyard");
        name.add_email("a@example.com").unwrap();
        let read = read(&name.der());
        assert_eq!(
            read.text(),
            "CN=Root\\, \\\"CA\\\",O=\\ Test #1 Org\\ ,STREET=Backyard+STREET=Zürich 1,C=,\
             1.2.840.113549.1.9.1=#0c0d61406578616d706c652e636f6d"
        );
        // Attributes of other types are not encoded again.
        assert!(!read.der().windows(3).any(|w| w == b"exa"));
        assert!(
            name.add_email("ä@example.com")
                .unwrap_err()
                .to_string()
                .contains("e-mail")
        );
    }

    #[test]
    fn empty_names_of_people_are_none() {
        let mut name = Name::default();
        name.add(Sort::CommonName, "");
        name.add(Sort::SerialNumber, "");
        assert!(name.is_empty());
        assert_eq!(name.der(), [0x30, 0]);
    }

    #[test]
    fn old_string_types_are_read() {
        assert_eq!(string(30, &[0, b'H', 0, b'i', 0, 0]), Ok("Hi".into()));
        assert_eq!(string(20, &[0xe4]), Ok("ä".into()));
        assert!(string(30, &[0]).is_err());
        assert!(string(2, &[1]).is_err());
    }
}

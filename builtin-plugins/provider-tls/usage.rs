//! Key usages in certificates.

use yasna::models::ObjectIdentifier;

use crate::oid;

/// Names of key usages in configurations, in alphabetical order.
pub(crate) const NAMES: &[&str] = &[
    "any_extended",
    "cert_signing",
    "client_auth",
    "code_signing",
    "content_commitment",
    "crl_signing",
    "data_encipherment",
    "decipher_only",
    "digital_signature",
    "email_protection",
    "encipher_only",
    "ipsec_end_system",
    "ipsec_tunnel",
    "ipsec_user",
    "key_agreement",
    "key_encipherment",
    "microsoft_commercial_code_signing",
    "microsoft_kernel_code_signing",
    "microsoft_server_gated_crypto",
    "netscape_server_gated_crypto",
    "ocsp_signing",
    "server_auth",
    "timestamping",
];

/// Usages in the extension KeyUsage, in the order of their bits.
const BITS: &[&str] = &[
    "digital_signature",
    "content_commitment",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    "cert_signing",
    "crl_signing",
    "encipher_only",
    "decipher_only",
];

/// Usages in the extension ExtendedKeyUsage, with their object identifiers.
const EXTENDED: &[(&str, &[u64])] = &[
    ("any_extended", &[2, 5, 29, 37, 0]),
    ("server_auth", &[1, 3, 6, 1, 5, 5, 7, 3, 1]),
    ("client_auth", &[1, 3, 6, 1, 5, 5, 7, 3, 2]),
    ("code_signing", &[1, 3, 6, 1, 5, 5, 7, 3, 3]),
    ("email_protection", &[1, 3, 6, 1, 5, 5, 7, 3, 4]),
    ("ipsec_end_system", &[1, 3, 6, 1, 5, 5, 7, 3, 5]),
    ("ipsec_tunnel", &[1, 3, 6, 1, 5, 5, 7, 3, 6]),
    ("ipsec_user", &[1, 3, 6, 1, 5, 5, 7, 3, 7]),
    ("timestamping", &[1, 3, 6, 1, 5, 5, 7, 3, 8]),
    ("ocsp_signing", &[1, 3, 6, 1, 5, 5, 7, 3, 9]),
    ("microsoft_server_gated_crypto", &[1, 3, 6, 1, 4, 1, 311, 10, 3, 3]),
    ("netscape_server_gated_crypto", &[2, 16, 840, 1, 113730, 4, 1]),
    ("microsoft_commercial_code_signing", &[1, 3, 6, 1, 4, 1, 311, 2, 1, 22]),
    ("microsoft_kernel_code_signing", &[1, 3, 6, 1, 4, 1, 311, 61, 1, 1]),
];

/// Usages of a certificate's key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Uses {
    /// Bits of KeyUsage. The first usage is the lowest bit.
    bits: u16,
    /// Object identifiers of ExtendedKeyUsage, in the order of the configuration.
    extended: Vec<&'static [u64]>,
}

impl Uses {
    /// Returns the usages with these names.
    pub fn named<'a>(names: impl Iterator<Item = &'a str>) -> Uses {
        let mut uses = Uses::default();
        for name in names {
            if let Some(bit) = BITS.iter().position(|n| *n == name) {
                uses.bits |= 1 << bit;
            } else if let Some((_, oid)) = EXTENDED.iter().find(|(n, _)| *n == name) {
                uses.extended.push(oid);
            }
        }
        uses
    }

    /// Encodes the content of the extension KeyUsage: a bit string that ends with the last bit that is set. `None` if no bit is set.
    pub fn key_usage(&self) -> Option<Vec<u8>> {
        let length = (u16::BITS - self.bits.leading_zeros()) as usize;
        if length == 0 {
            return None;
        }
        // In DER, the first bit is the highest one, and trailing zero bits are omitted.
        let bytes = self.bits.reverse_bits().to_be_bytes();
        let bytes = &bytes[..length.div_ceil(8)];
        Some(yasna::construct_der(|w| w.write_bitvec_bytes(bytes, length)))
    }

    /// Encodes the content of the extension ExtendedKeyUsage; `None` if it has no usages.
    pub fn extended_key_usage(&self) -> Option<Vec<u8>> {
        if self.extended.is_empty() {
            return None;
        }
        Some(yasna::construct_der(|w| {
            w.write_sequence(|w| {
                for arcs in &self.extended {
                    let oid: ObjectIdentifier = oid::der(arcs);
                    w.next().write_oid(&oid);
                }
            });
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_use() {
        assert!(NAMES.is_sorted());
        assert_eq!(NAMES.len(), BITS.len() + EXTENDED.len());
        for name in NAMES {
            let uses = Uses::named([*name].into_iter());
            assert!(
                uses.key_usage().is_some() != uses.extended_key_usage().is_some(),
                "{name}"
            );
        }
    }

    #[test]
    fn bits_end_with_the_last_one_set() {
        let bits = |names: &[&str]| Uses::named(names.iter().copied()).key_usage();
        assert_eq!(bits(&["server_auth"]), None);
        assert_eq!(
            bits(&["digital_signature", "key_encipherment"]),
            Some(vec![3, 2, 5, 0b1010_0000])
        );
        assert_eq!(bits(&["cert_signing", "crl_signing"]), Some(vec![3, 2, 1, 0b0000_0110]));
        assert_eq!(bits(&["decipher_only"]), Some(vec![3, 3, 7, 0, 0b1000_0000]));
    }
}

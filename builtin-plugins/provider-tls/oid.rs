//! Object identifiers of keys, signatures and certificates, as lists of their arcs (numbers).

use yasna::models::ObjectIdentifier;

pub(crate) type Oid = &'static [u64];

/// Converts an object identifier to the type of the DER writer.
pub(crate) fn der(oid: &[u64]) -> ObjectIdentifier {
    ObjectIdentifier::from_slice(oid)
}

/// Returns the arcs of a decoded object identifier; empty if one of them is too large for 64 bits.
pub(crate) fn arcs(oid: &x509_parser::der_parser::Oid<'_>) -> Vec<u64> {
    oid.iter().map(Iterator::collect).unwrap_or_default()
}

pub(crate) const RSA: Oid = &[1, 2, 840, 113549, 1, 1, 1];
pub(crate) const EC: Oid = &[1, 2, 840, 10045, 2, 1];
pub(crate) const DSA: Oid = &[1, 2, 840, 10040, 4, 1];
pub(crate) const ED25519: Oid = &[1, 3, 101, 112];

pub(crate) const P224: Oid = &[1, 3, 132, 0, 33];
pub(crate) const P256: Oid = &[1, 2, 840, 10045, 3, 1, 7];
pub(crate) const P384: Oid = &[1, 3, 132, 0, 34];
pub(crate) const P521: Oid = &[1, 3, 132, 0, 35];

pub(crate) const SHA256_WITH_RSA: Oid = &[1, 2, 840, 113549, 1, 1, 11];
pub(crate) const ECDSA_WITH_SHA256: Oid = &[1, 2, 840, 10045, 4, 3, 2];
pub(crate) const ECDSA_WITH_SHA384: Oid = &[1, 2, 840, 10045, 4, 3, 3];
pub(crate) const ECDSA_WITH_SHA512: Oid = &[1, 2, 840, 10045, 4, 3, 4];

pub(crate) const SUBJECT_KEY_ID: Oid = &[2, 5, 29, 14];
pub(crate) const KEY_USAGE: Oid = &[2, 5, 29, 15];
pub(crate) const SUBJECT_ALT_NAME: Oid = &[2, 5, 29, 17];
pub(crate) const BASIC_CONSTRAINTS: Oid = &[2, 5, 29, 19];
pub(crate) const AUTHORITY_KEY_ID: Oid = &[2, 5, 29, 35];
pub(crate) const EXT_KEY_USAGE: Oid = &[2, 5, 29, 37];
pub(crate) const EXTENSION_REQUEST: Oid = &[1, 2, 840, 113549, 1, 9, 14];
pub(crate) const EMAIL_ADDRESS: Oid = &[1, 2, 840, 113549, 1, 9, 1];

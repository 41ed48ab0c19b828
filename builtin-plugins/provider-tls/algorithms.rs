//! Names of the algorithms in certificates.

use x509_parser::signature_algorithm::RsaSsaPssParams;
use x509_parser::x509::AlgorithmIdentifier;

use crate::oid::{self, Oid};

/// Name of an unknown algorithm, which is that of Go's package `x509`.
const UNKNOWN: &str = "0";

const SIGNATURES: &[(&str, Oid)] = &[
    ("MD5-RSA", &[1, 2, 840, 113549, 1, 1, 4]),
    ("SHA1-RSA", &[1, 2, 840, 113549, 1, 1, 5]),
    ("SHA1-RSA", &[1, 3, 14, 3, 2, 29]),
    ("SHA256-RSA", oid::SHA256_WITH_RSA),
    ("SHA384-RSA", &[1, 2, 840, 113549, 1, 1, 12]),
    ("SHA512-RSA", &[1, 2, 840, 113549, 1, 1, 13]),
    ("DSA-SHA1", &[1, 2, 840, 10040, 4, 3]),
    ("DSA-SHA256", &[2, 16, 840, 1, 101, 3, 4, 3, 2]),
    ("ECDSA-SHA1", &[1, 2, 840, 10045, 4, 1]),
    ("ECDSA-SHA256", oid::ECDSA_WITH_SHA256),
    ("ECDSA-SHA384", oid::ECDSA_WITH_SHA384),
    ("ECDSA-SHA512", oid::ECDSA_WITH_SHA512),
    ("Ed25519", oid::ED25519),
];

const RSA_PSS: Oid = &[1, 2, 840, 113549, 1, 1, 10];

/// Hashes of RSA-PSS: the name of the algorithm, the length of the hash in bytes, and its identifier.
const PSS_HASHES: &[(&str, u32, Oid)] = &[
    ("SHA256-RSAPSS", 32, &[2, 16, 840, 1, 101, 3, 4, 2, 1]),
    ("SHA384-RSAPSS", 48, &[2, 16, 840, 1, 101, 3, 4, 2, 2]),
    ("SHA512-RSAPSS", 64, &[2, 16, 840, 1, 101, 3, 4, 2, 3]),
];

const KEYS: &[(&str, Oid)] = &[
    ("RSA", oid::RSA),
    ("DSA", oid::DSA),
    ("ECDSA", oid::EC),
    ("Ed25519", oid::ED25519),
];

/// Returns the name of a signature algorithm.
pub(crate) fn signature(algorithm: &AlgorithmIdentifier<'_>) -> &'static str {
    let arcs = oid::arcs(&algorithm.algorithm);
    if arcs == RSA_PSS {
        return pss(algorithm).unwrap_or(UNKNOWN);
    }
    named(SIGNATURES, &arcs)
}

/// Returns the name of a public key's algorithm.
pub(crate) fn public_key(algorithm: &AlgorithmIdentifier<'_>) -> &'static str {
    named(KEYS, &oid::arcs(&algorithm.algorithm))
}

fn named(table: &[(&'static str, Oid)], arcs: &[u64]) -> &'static str {
    table
        .iter()
        .find(|(_, oid)| *oid == arcs)
        .map_or(UNKNOWN, |(name, _)| name)
}

/// Returns the name of an RSA-PSS algorithm. There is a name only if all parameters use the same hash and the salt is as long as the hash.
fn pss(algorithm: &AlgorithmIdentifier<'_>) -> Option<&'static str> {
    let parameters = RsaSsaPssParams::try_from(algorithm.parameters.as_ref()?).ok()?;
    let hash = oid::arcs(parameters.hash_algorithm_oid());
    let mask = parameters.mask_gen_algorithm().ok()?;
    let same = oid::arcs(&mask.hash) == hash && parameters.trailer_field() == 1;
    let (name, _, _) = PSS_HASHES
        .iter()
        .find(|(_, length, oid)| same && *oid == hash && parameters.salt_length() == *length)?;
    Some(name)
}

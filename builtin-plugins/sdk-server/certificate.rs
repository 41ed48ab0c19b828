//! The certificate of this process, as go-plugin expects it: self-signed, an authority, for the name `localhost`.

/// Object identifiers, in DER.
const ECDSA_WITH_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2];
const EC_PUBLIC_KEY: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1];
const PRIME256V1: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
const COMMON_NAME: &[u8] = &[0x55, 4, 3];
const ORGANIZATION: &[u8] = &[0x55, 4, 10];
const KEY_USAGE: &[u8] = &[0x55, 0x1d, 15];
const ALTERNATIVE_NAME: &[u8] = &[0x55, 0x1d, 17];
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 19];
const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 37];
const SERVER_AUTH: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 1];
const CLIENT_AUTH: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 2];

/// Tags of DER.
const BOOLEAN: u8 = 1;
const INTEGER: u8 = 2;
const BIT_STRING: u8 = 3;
const OCTET_STRING: u8 = 4;
const OBJECT_IDENTIFIER: u8 = 6;
const UTF8_STRING: u8 = 12;
const UTC_TIME: u8 = 23;
const GENERALIZED_TIME: u8 = 24;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
/// A name of a host, in an alternative name.
const DNS_NAME: u8 = 0x82;
/// The version, and the extensions, of a certificate.
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;

/// Bits of the key's uses: digital signature, key encipherment, key agreement, signatures of certificates; two bits are unused.
const USES: &[u8] = &[2, 0b1010_1100];

const HOST: &[u8] = b"localhost";

/// Makes the certificate for a public key of P-256 (an uncompressed point). `sign` returns an ECDSA signature with SHA-256 in DER.
pub(crate) fn self_signed(
    public_key: &[u8],
    serial: [u8; 16],
    sign: impl FnOnce(&[u8]) -> Option<Vec<u8>>,
) -> Option<Vec<u8>> {
    let algorithm = sequence(&[&identifier(ECDSA_WITH_SHA256)]);
    let name = sequence(&[&name_part(COMMON_NAME, HOST), &name_part(ORGANIZATION, b"Monoform")]);
    // Clocks of hosts may be wrong, and the certificate ends with the process.
    let validity = sequence(&[
        &element(UTC_TIME, &[b"750101000000Z"]),
        &element(GENERALIZED_TIME, &[b"40960101000000Z"]),
    ]);
    let key = sequence(&[
        &sequence(&[&identifier(EC_PUBLIC_KEY), &identifier(PRIME256V1)]),
        &bits(public_key),
    ]);
    // Go's verifier takes this certificate as the root of the connection, and compares the name `localhost`.
    let authority = sequence(&[&element(BOOLEAN, &[&[0xff]])]);
    let extensions = sequence(&[
        &extension(BASIC_CONSTRAINTS, true, &authority),
        &extension(KEY_USAGE, true, &element(BIT_STRING, &[USES])),
        &extension(
            EXTENDED_KEY_USAGE,
            false,
            &sequence(&[&identifier(CLIENT_AUTH), &identifier(SERVER_AUTH)]),
        ),
        &extension(ALTERNATIVE_NAME, false, &sequence(&[&element(DNS_NAME, &[HOST])])),
    ]);
    let content = sequence(&[
        &element(VERSION, &[&element(INTEGER, &[&[2]])]),
        &element(INTEGER, &[&positive(serial)]),
        &algorithm,
        &name,
        &validity,
        &name,
        &key,
        &element(EXTENSIONS, &[&extensions]),
    ]);
    let signature = sign(&content)?;
    Some(sequence(&[&content, &algorithm, &bits(&signature)]))
}

/// Makes the bytes of a positive integer in its shortest form.
fn positive(mut number: [u8; 16]) -> [u8; 16] {
    if let Some(first) = number.first_mut() {
        *first = (*first & 0x3f) | 0x40;
    }
    number
}

fn element(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let mut out = vec![tag];
    match u8::try_from(length) {
        Ok(short) if short < 0x80 => out.push(short),
        _ => {
            let bytes = length.to_be_bytes();
            let bytes = bytes.iter().copied().skip_while(|byte| *byte == 0).collect::<Vec<u8>>();
            // A length of 8 bytes at most.
            out.push(0x80 | u8::try_from(bytes.len()).unwrap_or_default());
            out.extend(bytes);
        }
    }
    parts.iter().for_each(|part| out.extend_from_slice(part));
    out
}

fn sequence(parts: &[&[u8]]) -> Vec<u8> {
    element(SEQUENCE, parts)
}

fn identifier(identifier: &[u8]) -> Vec<u8> {
    element(OBJECT_IDENTIFIER, &[identifier])
}

/// A bit string of whole bytes.
fn bits(bytes: &[u8]) -> Vec<u8> {
    element(BIT_STRING, &[&[0], bytes])
}

fn name_part(kind: &[u8], text: &[u8]) -> Vec<u8> {
    let part = sequence(&[&identifier(kind), &element(UTF8_STRING, &[text])]);
    element(SET, &[&part])
}

fn extension(kind: &[u8], critical: bool, value: &[u8]) -> Vec<u8> {
    let mark = match critical {
        true => element(BOOLEAN, &[&[0xff]]),
        // False is the default, which DER leaves out.
        false => Vec::new(),
    };
    sequence(&[&identifier(kind), &mark, &element(OCTET_STRING, &[value])])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_the_shortest_form() {
        assert_eq!(element(SEQUENCE, &[&[7; 3]]), [0x30, 3, 7, 7, 7]);
        assert_eq!(element(SEQUENCE, &[&[0; 127]])[..2], [0x30, 127]);
        assert_eq!(element(SEQUENCE, &[&[0; 128]])[..3], [0x30, 0x81, 128]);
        assert_eq!(element(SEQUENCE, &[&[0; 256]])[..4], [0x30, 0x82, 1, 0]);
    }

    #[test]
    fn serial_numbers_are_positive_and_have_no_leading_zeros() {
        for first in [0, 0x7f, 0x80, 0xff] {
            let number = positive([first; 16]);
            assert!((0x40..0x80).contains(&number[0]), "{number:?}");
        }
    }
}

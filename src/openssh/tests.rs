use super::*;
use crate::wire::Reader;

fn keys() -> [PrivateKey; 3] {
    [
        PrivateKey::Rsa {
            n: vec![0xc1; 128],
            e: vec![1, 0, 1],
            d: vec![0x7f; 127],
            coefficient: vec![3],
            p: vec![0xff; 64],
            q: vec![0xfe; 64],
        },
        PrivateKey::Ecdsa {
            curve: "nistp256".into(),
            point: vec![4; 65],
            scalar: vec![0x9a; 31],
        },
        PrivateKey::Ed25519 {
            seed: vec![1; 32],
            public: vec![2; 32],
        },
    ]
}

#[test]
fn written_key_is_read_back() {
    for key in keys() {
        let bytes = key.write(7);
        assert!(PrivateKey::read(&bytes) == Ok(key.clone()), "{key:?}");
        // The secret part is the last item, and ends with the padding.
        assert!(bytes.starts_with(MAGIC));
    }
}

#[test]
fn truncated_key_is_refused() {
    for key in keys() {
        let bytes = key.write(7);
        for length in 0..bytes.len() {
            let expected = match length < MAGIC.len() {
                true => Error::NotOpenSsh,
                false => Error::Truncated,
            };
            assert_eq!(PrivateKey::read(&bytes[..length]), Err(expected), "{key:?} {length}");
        }
    }
}

#[test]
fn error_names_what_is_wrong() {
    let [_, _, key] = keys();
    let bytes = key.write(7);
    let with = |find: &[u8], replacement: &[u8]| {
        let at = bytes.windows(find.len()).position(|w| w == find).unwrap();
        let mut changed = bytes.clone();
        changed[at..at + find.len()].copy_from_slice(replacement);
        PrivateKey::read(&changed).unwrap_err()
    };
    assert_eq!(with(b"none", b"aes!"), Error::Encrypted);
    assert_eq!(with(MAGIC, b"openssh-key-v2\0"), Error::NotOpenSsh);
    assert_eq!(
        with(&[0, 0, 0, 7, 0, 0, 0, 7], &[0, 0, 0, 7, 0, 0, 0, 8]),
        Error::CheckNumbers
    );
    assert_eq!(
        with(&[0, 0, 0, 1, 0, 0, 0, 51], &[0, 0, 0, 2, 0, 0, 0, 51]),
        Error::SeveralKeys
    );
    assert_eq!(PrivateKey::read(b""), Err(Error::NotOpenSsh));
}

#[test]
fn padding_of_more_than_255_bytes_is_refused() {
    let [_, _, key] = keys();
    let bytes = key.write(7);
    let mut outer = Reader(&bytes[MAGIC.len()..]);
    for _ in 0..3 {
        outer.string().unwrap();
    }
    outer.u32().unwrap();
    outer.string().unwrap();
    // The last item is the secret part: its length, and bytes that end with the padding.
    let (head, secret) = (&bytes[..bytes.len() - outer.0.len()], &outer.0[4..]);
    let padded_to = |last: u32| {
        let more = u32::from(*secret.last().unwrap()) + 1..=last;
        let secret: Vec<u8> = secret.iter().copied().chain(more.map(|n| n as u8)).collect();
        let length = u32::try_from(secret.len()).unwrap().to_be_bytes();
        PrivateKey::read(&[head, &length[..], &secret[..]].concat())
    };
    assert!(padded_to(255) == Ok(key.clone()));
    assert_eq!(padded_to(256), Err(Error::Padding));
    assert_eq!(padded_to(257), Err(Error::Padding));
}

#[test]
fn debug_shows_no_secret() {
    let [_, _, key] = keys();
    assert_eq!(format!("{key:?}"), "PrivateKey(ssh-ed25519)");
}

//! Tests with keys and signatures from GnuPG, intact and damaged.

#![allow(
    clippy::disallowed_methods,
    reason = "tests read their settings from the environment, and need the time"
)]

use proptest::prelude::*;

use super::*;

/// Four kinds of keys from GnuPG 2.2, and a signature of the same line by each. `sub` signs with a subkey.
const MADE: [(&str, &[u8], &[u8]); 4] = [
    (
        "rsa",
        include_bytes!("../tests/openpgp/rsa2048.asc"),
        include_bytes!("../tests/openpgp/rsa2048.sig"),
    ),
    (
        "ed25519",
        include_bytes!("../tests/openpgp/ed25519.asc"),
        include_bytes!("../tests/openpgp/ed25519.sig"),
    ),
    (
        "p256",
        include_bytes!("../tests/openpgp/nistp256.asc"),
        include_bytes!("../tests/openpgp/nistp256.sig"),
    ),
    (
        "sub",
        include_bytes!("../tests/openpgp/sub.asc"),
        include_bytes!("../tests/openpgp/sub.sig"),
    ),
];
const DOCUMENT: &[u8] = b"abc  file_1.zip\n";

fn one(signature: &[u8]) -> Signature {
    Signature::read_all(signature).unwrap().remove(0)
}

#[test]
fn what_gnupg_has_signed() {
    for (name, key, signature) in MADE {
        let keys = Certificate::read_all(key).unwrap();
        let signature = one(signature);
        assert_eq!(keys.len(), 1, "{name}");
        assert!(keys[0].has_signed(DOCUMENT, &signature), "{name}");
        assert!(keys[0].has_key(&signature.issuer().unwrap()), "{name}");
        assert!(!keys[0].has_signed(b"abd  file_1.zip\n", &signature), "{name}");
        for (other, key, _) in MADE.iter().filter(|(other, ..)| *other != name) {
            let key = &Certificate::read_all(key).unwrap()[0];
            assert!(
                !key.has_signed(DOCUMENT, &signature),
                "{other} has not signed for {name}"
            );
        }
    }
    let sub = &Certificate::read_all(MADE[3].1).unwrap()[0];
    assert_eq!((sub.id().as_str(), sub.signing.len()), ("B6EC67E884F547EC", 1));
}

#[test]
fn a_subkey_counts_only_with_its_binding() {
    let bytes = dearmored(MADE[3].1).unwrap();
    let signature = one(MADE[3].2);
    // The last packet is the binding. The key is invalid without it, and with one bit of it changed.
    let mut without = Reader(&bytes);
    let mut end = 0;
    while let Ok((tag, _)) = without.packet() {
        if tag == PUBLIC_SUBKEY {
            end = bytes.len() - without.0.len();
        }
    }
    let mut changed = bytes.clone();
    *changed.last_mut().unwrap() ^= 1;
    for bytes in [&bytes[..end], &changed] {
        let keys = Certificate::read_all(bytes).unwrap();
        assert!(!keys[0].has_signed(DOCUMENT, &signature));
    }
    // The subkey of another key, after this key's primary key.
    let mut stolen = dearmored(MADE[1].1).unwrap();
    stolen.extend(&bytes[bytes.len() - (bytes.len() - 222)..]);
    for key in Certificate::read_all(&stolen).unwrap() {
        assert!(!key.has_signed(DOCUMENT, &signature));
    }
}

proptest! {
    #[test]
    fn no_bytes_are_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), which in 0..4_usize, at in 0..900_usize, bit in 0..8) {
        let _ = Certificate::read_all(&bytes);
        let _ = Signature::read_all(&bytes);
        let mut key = dearmored(MADE[which].1).unwrap();
        let at = at % key.len();
        key[at] ^= 1_u8 << bit;
        let signature = one(MADE[which].2);
        for key in Certificate::read_all(&key).unwrap_or_default() {
            let _ = key.has_signed(DOCUMENT, &signature);
        }
        let mut changed = MADE[which].2.to_vec();
        let at = at % changed.len();
        changed[at] ^= 1_u8 << bit;
        for signature in Signature::read_all(&changed).unwrap_or_default() {
            let _ = Certificate::read_all(MADE[which].1).unwrap()[0].has_signed(DOCUMENT, &signature);
        }
    }
}

/// GnuPG with an empty home directory. `Gnupg::new` prints a message and returns `None` if `gpg` is not installed.
struct Gnupg(tempfile::TempDir);

impl Gnupg {
    fn new(test: &str) -> Option<Gnupg> {
        // The agent's socket is in this directory, and its path must be short.
        let gnupg = Gnupg(tempfile::Builder::new().prefix("g").tempdir_in("/tmp").unwrap());
        support::needs("gpg", test).map(|_| gnupg)
    }

    fn run(&self, args: &[&str], input: &[u8]) -> Vec<u8> {
        use std::io::Write;
        let mut child = std::process::Command::new("gpg")
            .args([
                "--batch",
                "--quiet",
                "--no-tty",
                "--pinentry-mode",
                "loopback",
                "--passphrase",
                "",
            ])
            .args(args)
            .env("GNUPGHOME", self.0.path())
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        let out = child.wait_with_output().unwrap();
        assert!(
            out.status.success(),
            "{args:?}: {}",
            String::from_utf8_lossy(&out.stderr)
        );
        out.stdout
    }

    /// Makes a key for these uses, and returns its fingerprint.
    fn key(&self, name: &str, algorithm: &str, usage: &str) -> String {
        self.run(&["--quick-generate-key", name, algorithm, usage, "never"], b"");
        let list = self.run(&["--with-colons", "--list-keys", name], b"");
        let list = String::from_utf8(list).unwrap();
        let line = list.lines().find(|l| l.starts_with("fpr")).unwrap();
        line.split(':').nth(9).unwrap().to_owned()
    }

    fn certificates(&self, name: &str) -> Vec<Certificate> {
        Certificate::read_all(&self.run(&["--armor", "--export", name], b"")).unwrap()
    }

    fn sign(&self, more: &[&str]) -> Vec<Signature> {
        let args = [more, &["--detach-sign", "--output", "-"]].concat();
        Signature::read_all(&self.run(&args, DOCUMENT)).unwrap()
    }
}

impl Drop for Gnupg {
    fn drop(&mut self) {
        let end = ["--kill", "gpg-agent"];
        let _ = std::process::Command::new("gpgconf")
            .args(end)
            .env("GNUPGHOME", self.0.path())
            .status();
    }
}

#[test]
fn every_kind_of_key_and_hash() {
    let Some(gnupg) = Gnupg::new("every_kind_of_key_and_hash") else {
        return;
    };
    for algorithm in ["rsa2048", "ed25519", "nistp256", "nistp384", "nistp521"] {
        gnupg.key(algorithm, algorithm, "sign");
        let key = gnupg.certificates(algorithm).remove(0);
        for hash in ["SHA256", "SHA384", "SHA512"] {
            // GnuPG makes no signature with a hash that is smaller than the curve.
            if matches!(
                (algorithm, hash),
                ("nistp384", "SHA256") | ("nistp521", "SHA256" | "SHA384")
            ) {
                continue;
            }
            for form in [&["--armor"][..], &["--textmode"]] {
                let signature = gnupg
                    .sign(&[form, &["-u", algorithm, "--digest-algo", hash]].concat())
                    .remove(0);
                assert!(key.has_signed(DOCUMENT, &signature), "{algorithm} {hash} {form:?}");
                assert!(
                    !key.has_signed(b"abd  file_1.zip\n", &signature),
                    "{algorithm} {hash} {form:?}"
                );
            }
        }
    }
    let weak = gnupg.sign(&["-u", "rsa2048", "--digest-algo", "SHA1"]).remove(0);
    assert!(!gnupg.certificates("rsa2048")[0].has_signed(DOCUMENT, &weak));
    assert_eq!(weak.not_relied_on().as_deref(), Some("SHA-1"));
    // A document with two signatures.
    let both = gnupg.sign(&["-u", "rsa2048", "-u", "ed25519"]);
    assert_eq!(both.len(), 2);
    for name in ["rsa2048", "ed25519"] {
        let key = gnupg.certificates(name).remove(0);
        assert_eq!(both.iter().filter(|s| key.has_signed(DOCUMENT, s)).count(), 1, "{name}");
    }
}

#[test]
fn keys_that_are_not_for_this() {
    let Some(gnupg) = Gnupg::new("keys_that_are_not_for_this") else {
        return;
    };
    // The primary key may sign documents until a later self-signature says that it may not.
    let fingerprint = gnupg.key("turned", "ed25519", "sign,cert");
    let signature = gnupg.sign(&["-u", "turned"]).remove(0);
    assert!(gnupg.certificates("turned")[0].has_signed(DOCUMENT, &signature));
    std::thread::sleep(std::time::Duration::from_millis(1100));
    gnupg.run(
        &["--command-fd", "0", "--edit-key", &fingerprint],
        b"change-usage\nS\nQ\nsave\n",
    );
    assert!(!gnupg.certificates("turned")[0].has_signed(DOCUMENT, &signature));

    // One subkey signs and one encrypts; then the first is revoked.
    let fingerprint = gnupg.key("owner", "ed25519", "cert");
    gnupg.run(&["--quick-add-key", &fingerprint, "ed25519", "sign", "never"], b"");
    gnupg.run(&["--quick-add-key", &fingerprint, "cv25519", "encr", "never"], b"");
    let owner = gnupg.certificates("owner").remove(0);
    let signature = gnupg.sign(&["-u", "owner"]).remove(0);
    assert_eq!(
        owner.signing.len(),
        1,
        "neither the primary key nor the one for encryption"
    );
    assert!(owner.has_signed(DOCUMENT, &signature));
    assert!(owner.has_key(&signature.issuer().unwrap()));
    gnupg.run(
        &["--command-fd", "0", "--edit-key", &fingerprint],
        b"key 1\nrevkey\ny\n0\n\ny\nsave\n",
    );
    let revoked = gnupg.run(&["--export", "owner"], b"");
    assert!(!Certificate::read_all(&revoked).unwrap()[0].has_signed(DOCUMENT, &signature));
    // The revocation comes before the binding that it revokes.
    let mut packets = Vec::new();
    let mut reader = Reader(&revoked);
    while !reader.0.is_empty() {
        let before = reader.0;
        let (tag, body) = reader.packet().unwrap();
        let whole = before[..before.len() - reader.0.len()].to_vec();
        let kind = (tag == SIGNATURE).then(|| body[1]);
        packets.push((kind, whole));
    }
    let at = packets
        .iter()
        .position(|(k, _)| *k == Some(kind::REVOKES_SUBKEY))
        .unwrap();
    let binding = packets
        .iter()
        .position(|(k, _)| *k == Some(kind::BINDS_SUBKEY))
        .unwrap();
    packets.swap(at, binding);
    let swapped: Vec<u8> = packets.into_iter().flat_map(|(_, whole)| whole).collect();
    assert!(!Certificate::read_all(&swapped).unwrap()[0].has_signed(DOCUMENT, &signature));

    // A revoked primary key.
    let fingerprint = gnupg.key("lost", "rsa2048", "sign");
    let signature = gnupg.sign(&["-u", "lost"]).remove(0);
    assert!(gnupg.certificates("lost")[0].has_signed(DOCUMENT, &signature));
    let path = gnupg.0.path().join(format!("openpgp-revocs.d/{fingerprint}.rev"));
    let text = std::fs::read_to_string(path)
        .unwrap()
        .replace(":-----BEGIN", "-----BEGIN");
    gnupg.run(&["--import"], text.as_bytes());
    assert!(gnupg.certificates("lost").is_empty());
}

#[test]
fn signatures_that_end() {
    let Some(gnupg) = Gnupg::new("signatures_that_end") else {
        return;
    };
    gnupg.key("brief", "ed25519", "sign");
    let made = gnupg.sign(&["-u", "brief", "--default-sig-expire", "1d"]).remove(0);
    assert!(!made.has_expired(made.made + 86_399) && made.has_expired(made.made + 86_400));
    let forever = gnupg.sign(&["-u", "brief"]).remove(0);
    assert!(!forever.has_expired(u64::MAX));
}

//! Tests of encryption and decryption with chains of methods.

use state::codec::{Cipher as _, Head, is_sealed};

use super::*;

#[test]
fn text_is_sealed_in_the_form_of_opentofu_and_opened_by_its_passphrase() {
    let target = state(&of_passphrase(PASSPHRASE));
    let head = Head {
        serial: 7,
        lineage: "one",
    };
    let text = String::from_utf8(target.seal(b"secret".to_vec(), Some(head)).unwrap()).unwrap();
    assert!(
        text.starts_with("{\"serial\":7,\"lineage\":\"one\",\"meta\":{\"key_provider.pbkdf2.p\":\""),
        "{text}"
    );
    assert!(text.ends_with("\",\"encryption_version\":\"v0\"}"), "{text}");
    assert!(is_sealed(text.as_bytes()));
    // A later run derives the key from the stored metadata.
    let opened = state(&of_passphrase(PASSPHRASE)).open(text.as_bytes()).unwrap();
    assert_eq!((&*opened.text, opened.outdated), (&b"secret"[..], false));
}

#[test]
fn wrong_passphrase_and_damage_are_errors() {
    let text = sealed(&state(&of_passphrase(PASSPHRASE)));
    let other = state(&of_passphrase("another passphrase of some length"));
    let error = other.open(&text).unwrap_err().to_string();
    assert!(
        error.starts_with("decryption failed for all provided methods") && error.contains("method.aes_gcm.m"),
        "{error}"
    );
    let text = String::from_utf8(text).unwrap();
    let version = text.replace("\"v0\"", "\"v1\"");
    let error = other.open(version.as_bytes()).unwrap_err().to_string();
    assert!(error.starts_with("invalid encrypted payload version: v1"), "{error}");
    let error = other
        .open(b"{\"encryption_version\":\"v0\",\"encrypted_data\":\"?\"}")
        .unwrap_err();
    assert!(
        error.to_string().starts_with("invalid data format for decryption"),
        "{error}"
    );
}

#[test]
fn fallback_reads_what_the_old_key_wrote_and_marks_it_as_outdated() {
    let old = of_passphrase(PASSPHRASE);
    let text = sealed(&state(&old));
    let both = old.replace("state {\n method = method.aes_gcm.m\n}", "")
        + "key_provider \"pbkdf2\" \"new\" {\n passphrase = \"a new passphrase, long enough\"\n iterations = 200000\n}\n\
           method \"aes_gcm\" \"new\" {\n keys = key_provider.pbkdf2.new\n}\n\
           state {\n method = method.aes_gcm.new\n fallback {\n method = method.aes_gcm.m\n }\n}\n";
    let target = state(&both);
    let opened = target.open(&text).unwrap();
    assert_eq!((&*opened.text, opened.outdated), (&b"secret"[..], true));
    let opened = target.open(&sealed(&target)).unwrap();
    assert!(!opened.outdated);
    assert!(target.accept_plain().is_err());
}

#[test]
fn plain_text_is_accepted_by_the_method_unencrypted_only() {
    let into = of_passphrase(PASSPHRASE).replace(
        "method = method.aes_gcm.m\n}",
        "method = method.aes_gcm.m\n fallback {\n method = method.unencrypted.u\n }\n}",
    ) + "method \"unencrypted\" \"u\" {}\n";
    assert!(state(&into).accept_plain().unwrap(), "it is to be encrypted");
    let out_of = of_passphrase(PASSPHRASE).replace(
        "method = method.aes_gcm.m\n}",
        "method = method.unencrypted.u\n fallback {\n method = method.aes_gcm.m\n }\n}",
    ) + "method \"unencrypted\" \"u\" {}\n";
    let target = state(&out_of);
    assert!(!target.accept_plain().unwrap());
    assert_eq!(sealed(&target), b"secret");
    assert!(
        target
            .open(&sealed(&state(&of_passphrase(PASSPHRASE))))
            .unwrap()
            .outdated
    );
    let error = state(&of_passphrase(PASSPHRASE))
        .accept_plain()
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("encountered unencrypted payload without unencrypted method configured"),
        "{error}"
    );
}

#[test]
fn keys_of_one_provider_are_passphrases_of_the_next() {
    let chain = |alias: &str| {
        format!(
            "key_provider \"pbkdf2\" \"a\" {{\n passphrase = \"{PASSPHRASE}\"\n iterations = 200000\n}}\n\
             key_provider \"pbkdf2\" \"b\" {{\n chain = key_provider.pbkdf2.a\n iterations = 200000\n {alias}\n}}\n\
             method \"aes_gcm\" \"m\" {{\n keys = key_provider.pbkdf2.b\n aad = [1, 2, 3]\n}}\n\
             state {{\n method = method.aes_gcm.m\n}}\n"
        )
    };
    let target = state(&chain("encrypted_metadata_alias = \"mine\""));
    let text = sealed(&target);
    let shown = String::from_utf8(text.clone()).unwrap();
    assert!(
        shown.contains("\"key_provider.pbkdf2.a\":") && shown.contains("\"mine\":"),
        "{shown}"
    );
    assert_eq!(
        state(&chain("encrypted_metadata_alias = \"mine\""))
            .open(&text)
            .unwrap()
            .text,
        b"secret"
    );
    let clash = refusal(&chain("encrypted_metadata_alias = \"key_provider.pbkdf2.a\""));
    assert!(clash.starts_with("Duplicate metadata key"), "{clash}");
}

#[test]
fn keys_can_be_literal_objects() {
    let body = |key: &str| {
        format!(
            "method \"aes_gcm\" \"m\" {{\n keys = {{ encryption_key = {key}, decryption_key = {key} }}\n}}\n\
             state {{\n method = method.aes_gcm.m\n}}\n"
        )
    };
    let target = state(&body("range(24)"));
    assert_eq!(target.open(&sealed(&target)).unwrap().text, b"secret");
    assert!(refusal(&body("range(20)")).contains("received 20 bytes"));
    assert!(refusal(&body("[-1]")).contains("0 to 255"));
}

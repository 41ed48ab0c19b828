//! Tests of errors in the configuration, and of changes by the environment.

use super::*;

fn method(name: &str) -> String {
    format!(
        "method \"aes_gcm\" \"{name}\" {{\n keys = {{ encryption_key = range(16), decryption_key = range(16) }}\n}}\n"
    )
}

#[test]
fn errors_have_the_summaries_of_opentofu() {
    for (body, expected) in [
        ("state {\n method = \"x\"\n}", "Invalid encryption method identifier"),
        (
            "state {\n method = method.aes_gcm\n}",
            "Invalid encryption method identifier",
        ),
        (
            "state {\n method = method.aes_gcm.none\n}",
            "Reference to undeclared encryption method",
        ),
        (
            "method \"unencrypted\" \"u\" {}\nstate {\n method = method.unencrypted.u\n enforced = true\n}",
            "Unencrypted method is forbidden",
        ),
        (
            "key_provider \"pbkdf2\" \"a\" {}\nkey_provider \"pbkdf2\" \"a\" {}",
            "Duplicate key_provider",
        ),
        (
            "method \"unencrypted\" \"a\" {}\nmethod \"unencrypted\" \"a\" {}",
            "Duplicate method",
        ),
        (
            "remote_state_data_sources {\n remote_state_data_source \"a\" {}\n remote_state_data_source \"a\" {}\n}",
            "Duplicate remote_data_source",
        ),
    ] {
        assert_eq!(summary(encryption(body)), expected, "{body}");
    }
    let using = |key_provider: &str, keys: &str| {
        refusal(&format!(
            "{key_provider}\nmethod \"aes_gcm\" \"m\" {{\n keys = {keys}\n}}\nstate {{\n method = method.aes_gcm.m\n}}\n"
        ))
    };
    for (key_provider, keys, expected) in [
        ("", "key_provider.pbkdf2.a", "Reference to undeclared key provider"),
        ("", "key_provider.pbkdf2", "Invalid Key Provider expression format"),
        (
            "key_provider \"xor\" \"a\" {}",
            "key_provider.xor.a",
            "Unknown key_provider type",
        ),
        (
            "key_provider \"azure_vault\" \"a\" {\n vault_uri = \"u\"\n vault_key_name = \"k\"\n key_length = 32\n}",
            "key_provider.azure_vault.a",
            "Key provider left out of this build: This executable was built without the key provider \"azure_vault\"",
        ),
        (
            "key_provider \"pbkdf2\" \"a\" {\n passphrase = \"short\"\n}",
            "key_provider.pbkdf2.a",
            "Unable to build encryption key data",
        ),
        (
            "key_provider \"pbkdf2\" \"a\" {\n chain = key_provider.pbkdf2.b\n}\n\
             key_provider \"pbkdf2\" \"b\" {\n chain = key_provider.pbkdf2.a\n}",
            "key_provider.pbkdf2.a",
            "Circular reference detected",
        ),
        (
            "key_provider \"external\" \"a\" {\n command = [\"/no/such/program\"]\n}",
            "key_provider.external.a",
            "Unable to fetch encryption key data",
        ),
    ] {
        let error = using(key_provider, keys);
        assert!(error.starts_with(expected), "{error}");
    }
    let unknown = refusal("method \"rot13\" \"m\" {}\nstate {\n method = method.rot13.m\n}");
    assert!(unknown.starts_with("Unknown encryption method type"), "{unknown}");
}

#[test]
fn secret_variables_are_usable_and_unencrypted_methods_warn() {
    let config = "variable \"pass\" {\n type = string\n sensitive = true\n}\nlocals {\n long = \"${var.pass}${var.pass}\"\n}\n\
         terraform {\n encryption {\n key_provider \"pbkdf2\" \"p\" {\n passphrase = local.long\n iterations = 200000\n }\n\
         method \"aes_gcm\" \"m\" {\n keys = key_provider.pbkdf2.p\n }\n method \"unencrypted\" \"u\" {}\n\
         state {\n method = method.aes_gcm.m\n }\n plan {\n method = method.unencrypted.u\n }\n}\n}\n";
    let found = encryption_with(config, &["pass=ten chars!"]).unwrap();
    found.state().unwrap().prepare().unwrap();
    assert_eq!(found.warnings().0[0].summary, "Unencrypted method configured");
    let missing = encryption_with(config, &[]).unwrap();
    let problems = missing.state().unwrap().prepare().unwrap_err();
    assert_eq!(problems.0[0].summary, "Required variable not set");
}

#[test]
fn environment_wins_argument_by_argument() {
    let base = format!(
        "{}{}state {{\n method = method.aes_gcm.a\n enforced = true\n}}\n",
        method("a"),
        method("b")
    );
    let merged = |over: &str| {
        let (body, problems) = syntax::parse_file("base.tf", base.as_bytes());
        assert!(!problems.has_errors());
        let settings = Settings::decode(&body).unwrap();
        let settings = settings.with(Settings::of_environment(over).unwrap().unwrap());
        let mut problems = Diagnostics::new();
        let chain = settings.chain(settings.state.as_ref().unwrap(), &mut problems);
        (chain, problems.0.first().map(|d| d.summary.to_string()))
    };
    assert_eq!(merged("state {\n method = method.aes_gcm.b\n}"), (vec![1], None));
    assert_eq!(
        merged("state {\n fallback {\n method = method.aes_gcm.b\n }\n}"),
        (vec![0, 1], None)
    );
    // In JSON, a reference is a string. The argument "enforced" of the block stays in effect.
    let json = r#"{"method": {"unencrypted": {"u": {}}}, "state": {"method": "method.unencrypted.u"}}"#;
    assert_eq!(
        merged(json),
        (vec![2], Some("Unencrypted method is forbidden".to_owned()))
    );
    assert!(Settings::of_environment(" \n").unwrap().is_none());
    assert!(Settings::of_environment("stat {}").is_err());
}

#[test]
fn json_refers_to_key_providers_by_plain_strings_and_templates() {
    for reference in ["key_provider.pbkdf2.p", "${key_provider.pbkdf2.p}"] {
        let text = format!(
            r#"{{"key_provider": {{"pbkdf2": {{"p": {{"passphrase": "{PASSPHRASE}", "iterations": 200000}}}}}},
                "method": {{"aes_gcm": {{"m": {{"keys": "{reference}"}}}}}}, "state": {{"method": "method.aes_gcm.m"}}}}"#
        );
        let settings = Settings::of_environment(&text).unwrap().unwrap();
        let known = KnownRoot::new(Arc::default(), &SetVariables::default(), "/", "default");
        let found = Encryption::new(settings, known, &Environment::default(), Programs::default()).unwrap();
        let target = found.state().unwrap();
        assert_eq!(target.open(&sealed(target)).unwrap().text, b"secret", "{reference}");
    }
}

#[test]
fn data_sources_have_targets_of_their_own() {
    let body = |remote: &str| {
        format!(
            "{}{}remote_state_data_sources {{\n{remote}\n}}\n",
            method("a"),
            method("b")
        )
    };
    let found = encryption(&body(
        "remote_state_data_source \"m[\\\"k\\\"].s\" {\n method = method.aes_gcm.a\n}\ndefault {\n method = method.aes_gcm.b\n}",
    ))
    .unwrap();
    assert!(found.has_remote_states() && found.state().is_none());
    let (named, default) = (
        found.remote_state("m[\"k\"].s").unwrap(),
        found.remote_state("other").unwrap(),
    );
    assert!(!Arc::ptr_eq(named, default));
    let without = encryption(&method("a")).unwrap();
    assert!(without.remote_state("x").is_none() && !without.has_remote_states());
}

//! Tests of external programs that provide keys or encrypt.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use state::codec::Cipher as _;

use super::*;

/// Writes a shell script.
fn script(dir: &Path, name: &str, text: &str) -> String {
    let path = dir.join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{text}")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
    path.to_str().unwrap().to_owned()
}

fn of_program(path: &str) -> String {
    format!(
        "key_provider \"external\" \"e\" {{\n command = [\"{path}\"]\n}}\n\
         method \"aes_gcm\" \"m\" {{\n keys = key_provider.external.e\n}}\nstate {{\n method = method.aes_gcm.m\n}}\n"
    )
}

const KEY_HEADER: &str = r#"echo '{"magic":"OpenTofu-External-Key-Provider","version":1}'"#;

#[test]
fn key_of_a_program_is_found_again_by_its_metadata() {
    let dir = tempfile::tempdir().unwrap();
    let key = "MDEyMzQ1Njc4OWFiY2RlZg==";
    let text = format!(
        "{KEY_HEADER}\nread input\ncase \"$input\" in\n\
         null) echo '{{\"keys\":{{\"encryption_key\":\"{key}\"}},\"meta\":{{\"external_data\":{{\"id\":1}}}}}}';;\n\
         '{{\"external_data\":{{\"id\":1}}}}') echo '{{\"keys\":{{\"encryption_key\":\"{key}\",\"decryption_key\":\"{key}\"}},\
         \"meta\":{{\"external_data\":{{\"id\":1}}}}}}';;\n\
         *) echo \"unexpected $input\" >&2; exit 3;;\nesac\n"
    );
    // The input has no line break at its end, so the shell's `read` returns an error status.
    let target = state(&of_program(&script(dir.path(), "keys", &text)));
    assert_eq!(target.open(&sealed(&target)).unwrap().text, b"secret");
}

#[test]
fn program_that_breaks_the_protocol_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    for (name, text, expected) in [
        ("a", "echo hello", "is not its header"),
        ("b", r#"echo '{"magic":"other","version":1}'"#, "invalid magic"),
        (
            "c",
            r#"echo '{"magic":"OpenTofu-External-Key-Provider","version":2}'"#,
            "invalid version number",
        ),
        ("d", "true", "printed no header"),
        ("e", &format!("{KEY_HEADER}\necho oops >&2\nexit 4"), "oops"),
        (
            "f",
            &format!("{KEY_HEADER}\necho '{{\"keys\":{{}},\"more\":1}}'"),
            "invalid JSON response",
        ),
    ] {
        let error = refusal(&of_program(&script(dir.path(), name, text)));
        assert!(
            error.starts_with("Unable to fetch encryption key data") && error.contains(expected),
            "{error}"
        );
    }
}

#[test]
fn program_that_encrypts_gets_the_payload_and_returns_it() {
    let dir = tempfile::tempdir().unwrap();
    let text = r#"echo '{"magic":"OpenTofu-External-Encryption-Method","version":1}'
exec sed 's/.*\("payload":"[^"]*"\).*/{\1}/'
"#;
    let path = script(dir.path(), "same", text);
    let target = state(&format!(
        "method \"external\" \"m\" {{\n encrypt_command = [\"{path}\"]\n decrypt_command = [\"{path}\"]\n}}\n\
         state {{\n method = method.external.m\n}}\n"
    ));
    assert_eq!(target.open(&sealed(&target)).unwrap().text, b"secret");
}

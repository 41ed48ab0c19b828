//! Encrypted states in stores.

use std::sync::Arc;

use support::Workspace;

use crate::http::Kept;
use crate::lab::{Lab, Tool, run};

pub const TESTS: &[(&str, fn())] = &[(
    "the_server_and_the_rescued_copy_have_no_secret_in_clear_text",
    nothing_in_clear,
)];

const SECRET: &str = "planted-secret-71c2";

const ENCRYPTION: &str = "key_provider \"pbkdf2\" \"p\" {\n  passphrase = \"correct horse battery staple\"\n  \
                          iterations = 200000\n}\nmethod \"aes_gcm\" \"m\" {\n  keys = key_provider.pbkdf2.p\n}\n\
                          state {\n  method = method.aes_gcm.m\n}\n";

fn encrypted(lab: &Lab, more: &str) -> Workspace {
    let w = lab.without().env("TF_ENCRYPTION", ENCRYPTION);
    w.write("backend.tf", &lab.block(more));
    run(&w, Tool::Monoform, &["init", "-input=false"]).ok();
    w
}

/// A state can be read only with its key.
pub fn state_is_encrypted(lab: &Lab) {
    let w = encrypted(lab, "");
    let word = format!("-var=word={SECRET}");
    run(&w, Tool::Monoform, &["apply", "-auto-approve", &word]).ok();
    run(&w, Tool::Monoform, &["output", "-raw", "word"])
        .ok()
        .shows(&[SECRET]);
    run(&w, Tool::Monoform, &["plan", "-detailed-exitcode", &word]).ok();
    let without = lab.without();
    without.write("backend.tf", &lab.block(""));
    // `init` reads the state to find the providers in it.
    run(&without, Tool::Monoform, &["init", "-input=false"]).fails_with(&["is encrypted and can not be read"]);
    run(&without, Tool::Monoform, &["state", "list"]).fails_with(&["is encrypted and can not be read"]);
    run(&without, Tool::Monoform, &["apply", "-auto-approve"]).fails_with(&["is encrypted and can not be read"]);
    let pulled = run(&w, Tool::Monoform, &["state", "pull"]).ok();
    pulled.shows(&[SECRET]);
    run(&w, Tool::Monoform, &["destroy", "-auto-approve", &word]).ok();
}

fn nothing_in_clear() {
    let lab = crate::http::lab();
    let kept = lab
        .server
        .downcast_ref::<Arc<Kept>>()
        .expect("the server's content")
        .clone();
    let w = encrypted(&lab, "retry_max = 0");
    let word = format!("-var=word={SECRET}");
    run(&w, Tool::Monoform, &["apply", "-auto-approve", &word]).ok();
    kept.fails(true);
    let more = format!("-var=word={SECRET}-more");
    run(&w, Tool::Monoform, &["apply", "-auto-approve", &more]).fails_with(&["errored.tfstate"]);
    kept.fails(false);
    assert!(!w.read("errored.tfstate").contains(SECRET));
    // The copy is encrypted like the state, and can be pushed unchanged.
    run(&w, Tool::Monoform, &["state", "push", "errored.tfstate"]).ok();
    run(&w, Tool::Monoform, &["output", "-raw", "word"])
        .ok()
        .shows(&[&format!("{SECRET}-more")]);
    let history = kept.history();
    assert!(history.len() >= 2);
    for (_, state) in history {
        assert!(!String::from_utf8_lossy(&state).contains(SECRET));
    }
}

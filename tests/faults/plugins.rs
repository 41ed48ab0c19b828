//! Plugins that do not follow the protocol.

use crate::{no_orphans, refused, script_plugin};
use support::Workspace;

fn workspace() -> Workspace {
    Workspace::with(&[("main.tf", "resource \"broken_thing\" \"a\" {}\n")])
}

#[test]
fn one_that_ends_at_once() {
    let w = workspace();
    let path = script_plugin(&w, "broken", "echo 'cannot find libfoo' >&2\nexit 7");
    let path = path.display().to_string();
    for command in [
        &["plan", "-no-color"][..],
        &["apply", "-no-color", "-auto-approve"],
        &["validate", "-no-color"],
    ] {
        refused(
            &w,
            command,
            &[
                "Failed to start plugin",
                "provider \"hashicorp/broken\"",
                &path,
                "exit status 7",
                "cannot find libfoo",
            ],
        );
    }
    no_orphans(&w);
}

#[test]
fn one_that_prints_garbage() {
    let w = workspace();
    script_plugin(&w, "broken", "echo 'Welcome to the broken plugin!'\nexec sleep 300");
    refused(
        &w,
        &["plan", "-no-color"],
        &[
            "Failed to start plugin",
            "Unrecognized remote plugin message: Welcome to the broken plugin!",
            "not a plugin",
        ],
    );
    no_orphans(&w);
}

#[test]
fn one_that_hangs_in_the_handshake() {
    let w = workspace().env("MONOFORM_PLUGIN_START_TIMEOUT", "0.5");
    script_plugin(&w, "broken", "echo 'still thinking' >&2\nexec sleep 300");
    refused(
        &w,
        &["plan", "-no-color"],
        &[
            "Failed to start plugin",
            "did not say within 0.5 seconds",
            "was killed",
            "still thinking",
        ],
    );
    no_orphans(&w);
}

#[test]
fn socket_that_does_not_exist_is_named() {
    let w = workspace();
    script_plugin(
        &w,
        "broken",
        "echo '1|6|unix|/nowhere/at/all.sock|grpc|'\nexec sleep 300",
    );
    refused(
        &w,
        &["plan", "-no-color"],
        &[
            "Plugin did not respond",
            "The provider \"hashicorp/broken\" did not answer the request GetProviderSchema. Its process is still running.",
            "its socket /nowhere/at/all.sock cannot be reached: no such file or directory.",
        ],
    );
    no_orphans(&w);
}

#[test]
fn one_of_another_age() {
    let w = workspace();
    script_plugin(&w, "broken", "echo '1|4|tcp|127.0.0.1:1|netrpc|'\nexec sleep 300");
    refused(
        &w,
        &["plan", "-no-color"],
        &["version 4 of the plugin protocol", "5 and 6", "older"],
    );
    no_orphans(&w);
}

#[test]
fn one_that_is_no_program() {
    let w = workspace();
    let path = script_plugin(&w, "broken", "");
    std::fs::write(&path, [0x7f, b'E', b'L', b'F', 0, 0, 0]).expect("a file");
    refused(
        &w,
        &["plan", "-no-color"],
        &["Failed to start plugin", "not a program for this machine"],
    );
}

#[test]
fn one_that_does_not_exist() {
    let w = workspace();
    let plugins = w.home().join(".terraform.d/plugins");
    std::fs::create_dir_all(&plugins).expect("a directory");
    let plugins = plugins.display().to_string();
    for command in ["plan", "validate"] {
        refused(
            &w,
            &[command, "-no-color"],
            &["hashicorp/broken", "directories were searched", &plugins],
        );
    }
    w.write(
        "main.tf",
        "resource \"terraform_data\" \"a\" {\n  provisioner \"cook\" {}\n}\n",
    );
    refused(&w, &["plan", "-no-color"], &["no provisioner \"cook\"", "local-exec"]);
}

//! Tests of the messages about plugins that do not start. They are compared as a whole, since users get
//! nothing else.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::launch::Launch;

/// Creates an executable file with this content.
fn file(dir: &Path, content: &[u8]) -> PathBuf {
    let path = dir.join("terraform-provider-bad");
    std::fs::write(&path, content).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn launch(program: PathBuf) -> Launch {
    Launch {
        title: "provider \"acme/bad\"".into(),
        program,
        args: Vec::new(),
        protocols: vec![5, 6],
        tls: true,
        timeout: Duration::from_secs(20),
        own: false,
        environment: std::collections::BTreeMap::new(),
        waiting: None,
    }
}

/// Returns the detail of the error, with FILE in place of the file's path.
async fn error_of(launch: Launch) -> String {
    let program = launch.program.display().to_string();
    let errors = match launch.start().await {
        Ok(_) => panic!("it started"),
        Err(errors) => errors,
    };
    assert_eq!(errors.len(), 1);
    assert_eq!(errors.0[0].summary, "Failed to start plugin");
    errors.0[0].detail.replace(&program, "FILE")
}

async fn script_error(script: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    error_of(launch(file(dir.path(), format!("#!/bin/sh\n{script}\n").as_bytes()))).await
}

const START: &str = "The provider \"acme/bad\" (FILE) could not be started. ";

#[tokio::test]
async fn a_plugin_that_ends_at_once() {
    assert_eq!(
        script_error("echo 'cannot find libfoo' >&2; echo 'giving up' >&2; exit 3").await,
        format!(
            "{START}It ended, or closed its standard output, before it printed its address. Its process ended with \
             exit status 3.\n\nThe last it wrote:\n  cannot find libfoo\n  giving up"
        )
    );
    assert_eq!(
        script_error("kill -9 $$").await,
        format!(
            "{START}It ended, or closed its standard output, before it printed its address. Its process was killed by \
             signal 9 (SIGKILL; it may have used more memory than there is)."
        )
    );
}

#[tokio::test]
async fn a_file_that_is_not_a_plugin() {
    assert_eq!(
        script_error("echo 'Hello, I am not a plugin'; sleep 100").await,
        format!(
            "{START}Unrecognized remote plugin message: Hello, I am not a plugin\n\nThe first line a plugin prints must say \
             where it can be reached; this line does not. Either the file is not a plugin, or it is a plugin from the time \
             before this protocol. Remove the file if it is a leftover of an old installation; otherwise rebuild the \
             plugin with a current version of its SDK."
        )
    );
    let old = "2|unix|/var/folders/pj/T/tf-plugin604337945";
    let text = script_error(&format!("echo '{old}'")).await;
    assert!(
        text.starts_with(&format!("{START}Unrecognized remote plugin message: {old}\n")),
        "{text}"
    );
}

#[tokio::test]
async fn a_file_that_stays_open_for_writing() {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("terraform-provider-bad");
    std::fs::copy("/bin/true", &program).unwrap();
    let _open = std::fs::OpenOptions::new().append(true).open(&program).unwrap();
    assert_eq!(
        error_of(launch(program)).await,
        format!(
            "{START}Another process has the file open for writing. If it is still being written, run the command again when \
             that is done."
        )
    );
}

#[tokio::test]
async fn a_plugin_that_says_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let program = file(dir.path(), b"#!/bin/sh\necho 'still thinking' >&2\nexec sleep 100\n");
    let text = error_of(Launch {
        timeout: Duration::from_millis(300),
        ..launch(program)
    })
    .await;
    assert_eq!(
        text,
        format!(
            "{START}It did not say within 0.3 seconds where it can be reached, and was killed. It may not be a plugin, or the \
             machine may be overloaded.\n\nThe last it wrote:\n  still thinking"
        )
    );
}

#[tokio::test]
async fn a_plugin_for_other_versions() {
    for (line, expected) in [
        (
            "1|4|unix|/tmp/x|grpc|",
            "The plugin speaks version 4 of the plugin protocol, but only 5 and 6 can be used here. It was built for an older \
             release of the tool: install a newer version of the plugin.",
        ),
        (
            "1|7|unix|/tmp/x|grpc|",
            "The plugin speaks version 7 of the plugin protocol, but only 5 and 6 can be used here. It was built for a newer \
             release of the tool: install an older version of the plugin, or a newer version of this tool.",
        ),
        (
            "2|6|unix|/tmp/x|grpc|",
            "The plugin uses version 2 of the plugin handshake, but only version 1 is understood. Rebuild the plugin with a \
             current version of its SDK, or install a release of it that is made for this tool.",
        ),
        (
            "1|6|pipe|/tmp/x|grpc|",
            "The plugin listens on a network of the kind \"pipe\", but only \"unix\" and \"tcp\" can be used.",
        ),
        (
            "1|5|unix|/tmp/x|netrpc",
            "The plugin wants to be spoken to by \"netrpc\", but plugins are spoken to by \"grpc\" only. It was built for a \
             release before 0.12: install a newer version of the plugin.",
        ),
    ] {
        assert_eq!(
            script_error(&format!("echo '{line}'; exec sleep 100")).await,
            format!("{START}{expected}")
        );
    }
}

#[tokio::test]
async fn files_that_cannot_run() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(
        error_of(launch(dir.path().join("missing"))).await,
        format!("{START}The file does not exist. Run init to install it again.")
    );
    assert_eq!(
        error_of(launch(file(dir.path(), b"#!/no/such/interpreter\n"))).await,
        format!(
            "{START}The file exists, but the interpreter or dynamic loader it names does not: it may be built for another \
             system or C library."
        )
    );
    // The first bytes of an executable for an unknown processor.
    let mut alien = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\xff\xff\x01\0\0\0".to_vec();
    alien.resize(4096, 0);
    let text = error_of(launch(file(dir.path(), &alien))).await;
    assert!(
        text.starts_with(&format!("{START}The file is not a program for this machine (")),
        "{text}"
    );
    let plain = file(dir.path(), b"#!/bin/sh\n");
    std::fs::set_permissions(&plain, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(
        error_of(launch(plain)).await,
        format!("{START}The file is not executable, or the file system it is on does not allow programs to run.")
    );
    let text = error_of(launch(dir.path().to_owned())).await;
    assert_eq!(text, format!("{START}This is a directory, not a file."));
}

#[tokio::test]
async fn a_plugin_gets_what_it_needs_in_its_environment() {
    let script = r#"
        echo "$TF_PLUGIN_MAGIC_COOKIE $PLUGIN_PROTOCOL_VERSIONS $PLUGIN_MIN_PORT $PLUGIN_MAX_PORT" >&2
        echo "$PLUGIN_CLIENT_CERT" | head -1 >&2
        exit 1
    "#;
    let text = script_error(script).await;
    let cookie = "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2";
    assert!(
        text.ends_with(&format!("  {cookie} 5,6 10000 25000\n  -----BEGIN CERTIFICATE-----")),
        "{text}"
    );
    let dir = tempfile::tempdir().unwrap();
    let program = file(
        dir.path(),
        b"#!/bin/sh\necho \"cert=$PLUGIN_CLIENT_CERT\" >&2; exit 1\n",
    );
    let text = error_of(Launch {
        tls: false,
        ..launch(program)
    })
    .await;
    assert!(text.ends_with("\n  cert="), "{text}");
}

#[tokio::test]
async fn a_plugin_does_not_outlive_its_last_user() {
    let dir = tempfile::tempdir().unwrap();
    let pid_file = dir.path().join("pid");
    let script = format!(
        "#!/bin/sh\necho $$ > {}\necho '1|6|unix|/tmp/none|grpc|'\nexec sleep 100\n",
        pid_file.display()
    );
    let launched = launch(file(dir.path(), script.as_bytes())).start().await.unwrap();
    let pid = std::fs::read_to_string(&pid_file).unwrap();
    let alive = || Path::new(&format!("/proc/{}/cmdline", pid.trim())).exists();
    if cfg!(target_os = "linux") {
        assert!(alive());
    }
    drop(launched);
    for _ in 0..200 {
        if !alive() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the process is still there");
}

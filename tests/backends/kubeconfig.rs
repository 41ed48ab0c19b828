//! As whom a cluster is asked: a table of files, variables and arguments, each run with a cluster that records the first identity
//! that it is shown. Terraform must show the same.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use libtest_mimic::Trial;
use support::server::{Reply, Request, Server};
use support::{Workspace, which};

use crate::lab::{RESOURCE, Tool, run};

/// A case: variables, arguments of the backend, and the identity. `ADDRESS` is the cluster's, `DIR` the working directory.
struct Case {
    name: &'static str,
    variables: &'static [(&'static str, &'static str)],
    arguments: &'static str,
    identity: &'static str,
    /// Whether Terraform does the same. It needs a file.
    with_terraform: bool,
}

const NONE: Case = Case {
    name: "",
    variables: &[],
    arguments: "",
    identity: "",
    with_terraform: true,
};

/// Two files: in the first one the users have tokens of each kind.
const ONE: &str = r#"
apiVersion: v1
kind: Config
current-context: token
clusters:
- name: here
  cluster:
    server: ADDRESS
    certificate-authority-data: AUTHORITY
- name: unsafe
  cluster:
    server: PLAIN
contexts:
- name: token
  context: {cluster: here, user: token}
- name: file
  context: {cluster: here, user: file}
- name: basic
  context: {cluster: here, user: basic}
- name: program
  context: {cluster: here, user: program}
- name: unsafe
  context: {cluster: unsafe, user: token}
users:
- name: token
  user: {token: of-file}
- name: file
  user: {tokenFile: token.txt}
- name: basic
  user: {username: me, password: secret}
- name: program
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: DIR/program
      args: [one]
      env:
      - {name: WORD, value: two}
      interactiveMode: Never
"#;

const TWO: &str = r#"
apiVersion: v1
kind: Config
current-context: other
contexts:
- name: other
  context: {cluster: here, user: other}
users:
- name: other
  user: {token: of-second-file}
- name: token
  user: {token: is-hidden-by-the-first-file}
"#;

const PROGRAM: &str = r#"#!/bin/sh
echo "{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":{\"token\":\"of-program-$1-$WORD\"}}"
"#;

const FORBIDDEN: &str =
    r#"{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no"}"#;

const CASES: &[Case] = &[
    Case {
        name: "current_context_of_file",
        arguments: "config_path = \"one\"",
        identity: "Bearer of-file",
        ..NONE
    },
    Case {
        name: "file_of_environment",
        variables: &[("KUBE_CONFIG_PATH", "one")],
        identity: "Bearer of-file",
        ..NONE
    },
    Case {
        name: "file_of_argument_before_environment",
        variables: &[("KUBE_CONFIG_PATH", "none")],
        arguments: "config_path = \"one\"",
        identity: "Bearer of-file",
        ..NONE
    },
    Case {
        name: "files_are_merged",
        arguments: "config_paths = [\"one\", \"two\"]\nconfig_context = \"other\"",
        identity: "Bearer of-second-file",
        ..NONE
    },
    Case {
        name: "first_of_files_counts",
        variables: &[("KUBE_CONFIG_PATHS", "one:two")],
        identity: "Bearer of-file",
        // So it is documented for kubectl; Terraform takes the last one.
        with_terraform: false,
        ..NONE
    },
    Case {
        name: "context_of_environment",
        variables: &[("KUBE_CTX", "basic")],
        arguments: "config_path = \"one\"",
        identity: "Basic bWU6c2VjcmV0",
        ..NONE
    },
    Case {
        name: "user_in_place_of_that_of_the_context",
        arguments: "config_path = \"one\"\nconfig_context_auth_info = \"basic\"",
        identity: "Basic bWU6c2VjcmV0",
        ..NONE
    },
    Case {
        name: "token_in_a_file",
        arguments: "config_path = \"one\"\nconfig_context = \"file\"",
        identity: "Bearer of-token-file",
        ..NONE
    },
    Case {
        name: "program_of_file",
        arguments: "config_path = \"one\"\nconfig_context = \"program\"",
        identity: "Bearer of-program-one-two",
        ..NONE
    },
    Case {
        name: "user_of_file_not_without_tls",
        arguments: "config_path = \"one\"\nconfig_context = \"unsafe\"",
        identity: "",
        ..NONE
    },
    Case {
        name: "token_of_argument_without_tls_too",
        arguments: "config_path = \"one\"\nconfig_context = \"unsafe\"\ntoken = \"of-argument\"",
        identity: "Bearer of-argument",
        ..NONE
    },
    Case {
        name: "token_of_argument_before_file",
        arguments: "config_path = \"one\"\ntoken = \"of-argument\"",
        identity: "Bearer of-argument",
        ..NONE
    },
    Case {
        name: "token_of_argument_before_environment",
        variables: &[("KUBE_TOKEN", "of-environment")],
        arguments: "host = \"ADDRESS\"\ninsecure = true\ntoken = \"of-argument\"",
        identity: "Bearer of-argument",
        with_terraform: false,
    },
    Case {
        name: "everything_of_environment",
        variables: &[
            ("KUBE_HOST", "ADDRESS"),
            ("KUBE_INSECURE", "true"),
            ("KUBE_TOKEN", "of-environment"),
        ],
        identity: "Bearer of-environment",
        with_terraform: false,
        ..NONE
    },
    Case {
        name: "user_and_password",
        arguments: "host = \"ADDRESS\"\ninsecure = true\nusername = \"me\"\npassword = \"secret\"",
        identity: "Basic bWU6c2VjcmV0",
        with_terraform: false,
        ..NONE
    },
    Case {
        name: "program_of_block",
        arguments: "host = \"ADDRESS\"\ninsecure = true\nexec {\n  api_version = \"client.authentication.k8s.io/v1\"\n  command = \"DIR/program\"\n  args = \
                    [\"a\"]\n  env = { WORD = \"b\" }\n}",
        identity: "Bearer of-program-a-b",
        with_terraform: false,
        ..NONE
    },
];

/// A test for each case.
pub fn trials() -> Vec<Trial> {
    let trial = |case: &'static Case| {
        Trial::test(format!("kubeconfig::{}", case.name), move || {
            assert_eq!(identity(case, Tool::Monoform), case.identity);
            if case.with_terraform && which("terraform").is_some() {
                assert_eq!(identity(case, Tool::Terraform), case.identity, "by Terraform");
            }
            Ok(())
        })
    };
    CASES.iter().map(trial).collect()
}

/// Whom a program shows itself as.
fn identity(case: &Case, tool: Tool) -> String {
    let shown: Arc<Mutex<Vec<String>>> = Arc::default();
    let answer = |kept: Arc<Mutex<Vec<String>>>| {
        move |request: &Request| {
            let identity = request.header("authorization").to_owned();
            kept.lock().expect("identities").push(identity);
            Reply::new(403, FORBIDDEN).with("Content-Type", "application/json")
        }
    };
    let (safe, plain) = (
        Server::https(answer(shown.clone())),
        Server::http(answer(shown.clone())),
    );
    let w = Workspace::with(&[
        ("main.tf", RESOURCE),
        ("token.txt", "of-token-file"),
        ("program", PROGRAM),
    ]);
    let dir = w.dir().display().to_string();
    let authority = BASE64.encode(&safe.certificate);
    let filled = |text: &str| {
        text.replace("ADDRESS", &safe.url(""))
            .replace("PLAIN", &plain.url(""))
            .replace("DIR", &dir)
            .replace("AUTHORITY", &authority)
    };
    std::fs::set_permissions(w.dir().join("program"), std::fs::Permissions::from_mode(0o755)).expect("its mode");
    w.write("one", &filled(ONE));
    w.write("two", &filled(TWO));
    let block = format!(
        "terraform {{\n  backend \"kubernetes\" {{\n    secret_suffix = \"s\"\n{}\n  }}\n}}\n",
        filled(case.arguments)
    );
    w.write("backend.tf", &block);
    let mut w = w;
    for (name, value) in case.variables {
        let value = filled(value);
        w = w.env(name, value);
    }
    let init = run(&w, tool, &["init", "-input=false"]);
    let shown = shown.lock().expect("identities");
    let first = shown.first().cloned();
    first.unwrap_or_else(|| panic!("{tool:?} has not asked the cluster: {}", init.all()))
}

//! Credentials for a Kubernetes cluster: arguments, the environment, kubeconfig files, and programs.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;
use support::server::{Reply, Request};

use crate::credentials::{Pairs, ROW, Row, STATE, Table, Terraform, same};

pub const TABLE: Table = Table {
    store: "kubernetes",
    subject: "all_sources",
    settings: "secret_suffix = \"x\"",
    environment: &[],
    names: &["k8s.example"],
    answer,
    as_ours: same,
    rows: ROWS,
};

/// Answers a request. The first part of the path names the cluster.
fn answer(request: &Request) -> (Option<String>, Reply) {
    let (kind, text) = request.header("authorization").split_once(' ').unwrap_or_default();
    let by = match kind {
        "Basic" => String::from_utf8_lossy(&BASE64.decode(text).unwrap_or_default()).into_owned(),
        _ => text.to_owned(),
    };
    let by = if by.is_empty() { "nobody".to_owned() } else { by };
    let instead = match (request.header("impersonate-user"), request.header("impersonate-group")) {
        ("", _) => String::new(),
        (user, "") => format!(" as {user}"),
        (user, group) => format!(" as {user} of {group}"),
    };
    let cluster = request.path().split('/').nth(1).unwrap_or_default();
    let line = format!("{cluster} by {by}{instead}");
    if by == "refused" {
        let text = "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"Unauthorized\",\"reason\":\
                    \"Unauthorized\",\"code\":401}";
        return (
            Some(line),
            Reply::new(401, text).with("Content-Type", "application/json"),
        );
    }
    // A state exists, so that no run has to create one.
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(STATE.as_bytes()).expect("memory");
    let state = BASE64.encode(packed.finish().expect("memory"));
    let secret = json!({
        "kind": "Secret",
        "apiVersion": "v1",
        "metadata": {
            "name": "tfstate-default-x",
            "resourceVersion": "1",
            "labels": {"tfstate": "true", "tfstateSecretSuffix": "x", "tfstateWorkspace": "default"},
            "annotations": {"encoding": "gzip"},
        },
        "data": {"tfstate": state},
    });
    let reply = match request.path().ends_with("/secrets") {
        true => {
            json!({"kind": "SecretList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": [secret]})
        }
        false => secret,
    };
    (Some(line), Reply::json(&reply.to_string()))
}

/// Clusters, users, and contexts for some of their combinations.
const CONFIG: &str = r#"
apiVersion: v1
kind: Config
current-context: a
clusters:
- name: one
  cluster: {server: "https://k8s.example/one"}
- name: two
  cluster: {server: "https://k8s.example/two"}
- name: plain
  cluster: {server: "{url}/plain"}
users:
- name: u
  user: {token: of-u}
- name: v
  user: {username: v, password: pass}
- name: f
  user: {tokenFile: token}
- name: i
  user: {token: of-u, as: other, as-groups: [team]}
- name: p
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: ./give
      args: [p]
      interactiveMode: Never
      env: [{name: WHO, value: me}]
- name: q
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: no-such-program
      interactiveMode: Never
      installHint: Install the program.
contexts:
- name: a
  context: {cluster: one, user: u}
- name: b
  context: {cluster: two, user: v}
- name: c
  context: {cluster: one, user: f}
- name: d
  context: {cluster: one, user: i}
- name: e
  context: {cluster: one, user: p}
- name: g
  context: {cluster: one, user: q}
- name: h
  context: {cluster: plain, user: u}
"#;

/// Kubeconfig with another cluster, user and context.
const SECOND: &str = r#"
apiVersion: v1
kind: Config
current-context: z
clusters:
- name: three
  cluster: {server: "https://k8s.example/three"}
users:
- name: w
  user: {token: of-w}
contexts:
- name: z
  context: {cluster: three, user: w}
- name: mixed
  context: {cluster: one, user: w}
"#;

/// Kubeconfig with more fields for entries of [`CONFIG`].
const OVER: &str = r#"
apiVersion: v1
kind: Config
current-context: b
clusters:
- name: one
  cluster: {server: "https://k8s.example/over"}
users:
- name: u
  user: {as: other, as-groups: [over]}
- name: f
  user: {as: other}
- name: p
  user:
    exec: {args: [over]}
contexts:
- name: c
  context: {cluster: two}
"#;

/// Kubeconfig in which two users have the same name.
const TWICE: &str = r#"
apiVersion: v1
kind: Config
users:
- name: w
  user: {token: of-w}
- name: w
  user: {token: of-another}
"#;

const GIVE: &str = "#!/bin/sh\necho \"{\\\"kind\\\":\\\"ExecCredential\\\",\\\"apiVersion\\\":\\\"client.authentication.k8s.io/v1\\\",\
                    \\\"status\\\":{\\\"token\\\":\\\"of-program-$1-$WHO\\\"}}\"\n";

const GIVE_OF_OVER: &str = "#!/bin/sh\necho \"{\\\"kind\\\":\\\"ExecCredential\\\",\\\"apiVersion\\\":\\\"client.authentication.k8s.io/v1\\\",\
                            \\\"status\\\":{\\\"token\\\":\\\"of-program-of-over-$1-$WHO\\\"}}\"\n";

const FILES: Pairs = &[
    ("kube/config", CONFIG),
    ("kube/token", "of-file\n"),
    ("kube/give", GIVE),
    ("~/.kube/config", CONFIG),
    ("second", SECOND),
    ("over/config", OVER),
    ("over/token", "of-file-of-over"),
    ("over/give", GIVE_OF_OVER),
    ("twice", TWICE),
    ("give", GIVE),
    ("fail", "#!/bin/sh\necho \"no login\" >&2\nexit 4\n"),
];

/// Environment whose certificate file does not exist, so that no server certificate is trusted.
const NOBODY_TRUSTED: Pairs = &[("SSL_CERT_FILE", "{dir}/none.pem")];

/// Expected difference: Terraform uses a host from arguments only if there is also a kubeconfig file.
const WITHOUT_A_FILE: Terraform = Terraform::Differs("a host needs a file besides", &[], false);

const ROWS: &[Row] = &[
    Row {
        name: "a_token_in_an_argument",
        environment: &[
            ("KUBE_TOKEN", "of-environment"),
            ("KUBE_HOST", "https://k8s.example/not-this"),
        ],
        block: "host = \"https://k8s.example/h\"\ntoken = \"of-argument\"",
        seen: &["h by of-argument"],
        terraform: WITHOUT_A_FILE,
        ..ROW
    },
    Row {
        name: "a_token_in_the_environment",
        environment: &[("KUBE_TOKEN", "of-environment"), ("KUBE_HOST", "https://k8s.example/h")],
        seen: &["h by of-environment"],
        terraform: WITHOUT_A_FILE,
        ..ROW
    },
    Row {
        name: "a_name_and_a_password_in_arguments",
        block: "host = \"https://k8s.example/h\"\nusername = \"n\"\npassword = \"p\"",
        seen: &["h by n:p"],
        terraform: WITHOUT_A_FILE,
        ..ROW
    },
    Row {
        name: "a_name_and_a_password_in_the_environment",
        environment: &[
            ("KUBE_USER", "n"),
            ("KUBE_PASSWORD", "p"),
            ("KUBE_HOST", "https://k8s.example/h"),
        ],
        seen: &["h by n:p"],
        terraform: WITHOUT_A_FILE,
        ..ROW
    },
    Row {
        name: "a_file_in_an_argument",
        environment: &[("KUBE_CONFIG_PATH", "second")],
        files: FILES,
        block: "config_path = \"kube/config\"",
        seen: &["one by of-u"],
        ..ROW
    },
    Row {
        name: "a_file_in_the_home_directory",
        files: FILES,
        block: "config_path = \"~/.kube/config\"",
        seen: &["one by of-u"],
        ..ROW
    },
    Row {
        name: "a_file_in_the_environment",
        environment: &[("KUBE_CONFIG_PATH", "second"), ("KUBE_CONFIG_PATHS", "kube/config")],
        files: FILES,
        seen: &["three by of-w"],
        ..ROW
    },
    Row {
        name: "the_file_of_kubectl_is_not_used_unasked",
        environment: &[("KUBECONFIG", "kube/config")],
        files: FILES,
        fails: &["The backend does not say where the cluster is"],
        terraform: Terraform::NotAsked("goes to a cluster on this machine"),
        ..ROW
    },
    Row {
        name: "several_files_in_an_argument",
        files: FILES,
        block: "config_paths = [\"kube/config\", \"second\"]\nconfig_context = \"mixed\"",
        seen: &["one by of-w"],
        ..ROW
    },
    Row {
        name: "a_context_of_the_second_of_several_files",
        environment: &[("KUBE_CONFIG_PATHS", "kube/config:gone:second")],
        files: FILES,
        block: "config_context = \"z\"",
        seen: &["three by of-w"],
        ..ROW
    },
    // `kubectl` would instead use the cluster and the user of the first file.
    Row {
        name: "a_cluster_and_a_user_of_two_files_are_merged_and_the_later_one_counts",
        files: FILES,
        block: "config_paths = [\"kube/config\", \"over/config\"]",
        seen: &["over by of-u as other of over"],
        ..ROW
    },
    Row {
        name: "a_context_of_two_files_is_merged_and_paths_begin_at_the_later_one",
        files: FILES,
        block: "config_paths = [\"kube/config\", \"over/config\"]\nconfig_context = \"c\"",
        seen: &["two by of-file-of-over as other"],
        ..ROW
    },
    Row {
        name: "a_program_of_two_files_is_merged",
        files: FILES,
        block: "config_paths = [\"kube/config\", \"{dir}/over/config\"]\nconfig_context = \"e\"",
        seen: &["over by of-program-of-over-over-me"],
        ..ROW
    },
    Row {
        name: "the_first_current_context_of_several_files_counts",
        environment: &[("KUBE_CONFIG_PATHS", "over/config:kube/config")],
        files: FILES,
        seen: &["two by v:pass"],
        ..ROW
    },
    Row {
        name: "two_users_with_one_name_in_a_file",
        files: FILES,
        block: "config_paths = [\"kube/config\", \"twice\"]",
        fails: &["twice has two users with the name \"w\""],
        ..ROW
    },
    Row {
        name: "another_context_in_an_argument",
        environment: &[("KUBE_CTX", "a")],
        files: FILES,
        block: "config_path = \"kube/config\"\nconfig_context = \"b\"",
        seen: &["two by v:pass"],
        ..ROW
    },
    Row {
        name: "another_context_in_the_environment",
        environment: &[("KUBE_CTX", "b"), ("KUBE_CONFIG_PATH", "kube/config")],
        files: FILES,
        seen: &["two by v:pass"],
        ..ROW
    },
    Row {
        name: "another_user_and_another_cluster_in_arguments",
        environment: &[("KUBE_CTX_AUTH_INFO", "f"), ("KUBE_CTX_CLUSTER", "one")],
        files: FILES,
        block: "config_path = \"kube/config\"\nconfig_context_auth_info = \"v\"\nconfig_context_cluster = \"two\"",
        seen: &["two by v:pass"],
        ..ROW
    },
    Row {
        name: "another_user_and_another_cluster_in_the_environment",
        environment: &[("KUBE_CTX_AUTH_INFO", "v"), ("KUBE_CTX_CLUSTER", "two")],
        files: FILES,
        block: "config_path = \"kube/config\"",
        seen: &["two by v:pass"],
        ..ROW
    },
    Row {
        name: "the_user_of_a_file_is_not_told_without_tls",
        files: FILES,
        block: "config_path = \"kube/config\"\nconfig_context = \"h\"",
        seen: &["plain by nobody"],
        ..ROW
    },
    Row {
        name: "a_token_in_an_argument_is_told_without_tls",
        files: FILES,
        block: "config_path = \"kube/config\"\nconfig_context = \"h\"\ntoken = \"of-argument\"",
        seen: &["plain by of-argument"],
        ..ROW
    },
    Row {
        name: "a_certificate_that_nobody_trusts",
        environment: NOBODY_TRUSTED,
        files: FILES,
        block: "config_path = \"kube/config\"",
        fails: &["certificate"],
        ..ROW
    },
    Row {
        name: "any_certificate_by_an_argument",
        environment: NOBODY_TRUSTED,
        files: FILES,
        block: "config_path = \"kube/config\"\ninsecure = true",
        seen: &["one by of-u"],
        ..ROW
    },
    Row {
        name: "everything_in_the_environment",
        environment: &[
            ("SSL_CERT_FILE", "{dir}/none.pem"),
            ("KUBE_INSECURE", "true"),
            ("KUBE_TOKEN", "of-environment"),
            ("KUBE_HOST", "https://k8s.example/h"),
        ],
        seen: &["h by of-environment"],
        terraform: WITHOUT_A_FILE,
        ..ROW
    },
    Row {
        name: "a_context_that_is_not_there",
        files: FILES,
        block: "config_path = \"kube/config\"\nconfig_context = \"nowhere\"",
        fails: &["context \"nowhere\" does not exist in the files; there are: a, b"],
        ..ROW
    },
    Row {
        name: "a_token_in_an_argument_comes_before_the_file",
        files: FILES,
        block: "config_path = \"kube/config\"\ntoken = \"of-argument\"",
        seen: &["one by of-argument"],
        ..ROW
    },
    Row {
        name: "a_host_in_an_argument_comes_before_the_file",
        files: FILES,
        block: "config_path = \"kube/config\"\nhost = \"https://k8s.example/h\"",
        seen: &["h by of-u"],
        ..ROW
    },
    Row {
        name: "a_token_in_a_file_beside_the_file",
        files: FILES,
        block: "config_path = \"{dir}/kube/config\"\nconfig_context = \"c\"",
        seen: &["one by of-file"],
        ..ROW
    },
    Row {
        name: "in_the_place_of_another_user",
        files: FILES,
        block: "config_path = \"kube/config\"\nconfig_context = \"d\"",
        seen: &["one by of-u as other of team"],
        ..ROW
    },
    Row {
        name: "a_program_in_the_file",
        files: FILES,
        block: "config_path = \"{dir}/kube/config\"\nconfig_context = \"e\"",
        seen: &["one by of-program-p-me"],
        ..ROW
    },
    Row {
        name: "a_program_that_is_not_installed",
        files: FILES,
        block: "config_path = \"kube/config\"\nconfig_context = \"g\"",
        fails: &["no-such-program", "Install the program."],
        ..ROW
    },
    Row {
        name: "a_program_in_the_block",
        files: FILES,
        block: r#"
            host = "https://k8s.example/h"
            exec {
              api_version = "client.authentication.k8s.io/v1"
              command     = "{dir}/give"
              args        = ["block"]
              env         = { WHO = "you" }
            }
        "#,
        seen: &["h by of-program-block-you"],
        terraform: Terraform::NotAsked("wants an interactive mode, and has no argument for it"),
        ..ROW
    },
    Row {
        name: "a_program_of_an_older_version_in_the_block",
        files: &[(
            "give",
            "#!/bin/sh\necho '{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1beta1\",\"status\":\
             {\"token\":\"of-older\"}}'\n",
        )],
        block: r#"
            host = "https://k8s.example/h"
            exec {
              api_version = "client.authentication.k8s.io/v1beta1"
              command     = "{dir}/give"
            }
        "#,
        seen: &["h by of-older"],
        terraform: WITHOUT_A_FILE,
        ..ROW
    },
    Row {
        name: "a_program_in_the_block_comes_before_that_of_the_file",
        files: FILES,
        block: r#"
            config_path    = "{dir}/kube/config"
            config_context = "e"
            exec {
              api_version = "client.authentication.k8s.io/v1"
              command     = "{dir}/give"
              args        = ["block"]
            }
        "#,
        seen: &["one by of-program-block-"],
        terraform: Terraform::NotAsked("wants an interactive mode, and has no argument for it"),
        ..ROW
    },
    Row {
        name: "a_program_that_fails",
        files: FILES,
        block: r#"
            host = "https://k8s.example/h"
            exec {
              api_version = "client.authentication.k8s.io/v1beta1"
              command     = "{dir}/fail"
            }
        "#,
        fails: &["{dir}/fail has failed", "no login"],
        ..ROW
    },
    Row {
        name: "a_token_that_is_refused",
        block: "host = \"https://k8s.example/h\"\ntoken = \"refused\"",
        seen: &["h by refused"],
        fails: &["401"],
        terraform: WITHOUT_A_FILE,
        ..ROW
    },
    Row {
        name: "in_a_cluster_without_its_variables",
        block: "in_cluster_config = true",
        fails: &["KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined"],
        ..ROW
    },
];

//! Logs: their form, their content, and what they must not contain.

use serde_json::Value as Json;

use support::Workspace;

pub const TESTS: &[(&str, fn())] = &[
    ("logs::lines_have_one_form", lines_have_one_form),
    ("logs::json_has_an_object_a_line", json_has_an_object_a_line),
    ("logs::parts_have_levels_of_their_own", parts_have_levels_of_their_own),
    (
        "logs::plugins_have_names_and_what_they_write_is_seen",
        plugins_have_names_and_what_they_write_is_seen,
    ),
    ("logs::no_secret_is_in_any_log", no_secret_is_in_any_log),
];

const MAIN: &str = "resource \"terraform_data\" \"a\" {\n  input = 1\n}\n";

/// Returns true for a line like `2026-01-02T03:04:05.678Z [INFO]  cli: …`.
fn is_line(line: &str) -> bool {
    let levels = ["[TRACE] ", "[DEBUG] ", "[INFO]  ", "[WARN]  ", "[ERROR] "];
    line.len() > 33 && line.as_bytes()[10] == b'T' && line[23..].starts_with("Z ") && levels.contains(&&line[25..33])
}

fn lines_have_one_form() {
    let w = Workspace::with(&[("main.tf", MAIN)])
        .env("TF_LOG", "trace")
        .env("TF_LOG_PATH", "the.log");
    let ran = w.run(&["plan", "-no-color"]).ok();
    assert!(ran.stderr.is_empty(), "{}", ran.all());
    let log = w.read("the.log");
    for line in log.lines() {
        assert!(is_line(line), "{line}");
    }
    for text in [
        "cli: started: ",
        "request=GetProviderSchema elapsed=",
        "request=PlanResourceChange elapsed=",
        "cli: decided: address=terraform_data.a action=Create",
    ] {
        assert!(log.contains(text), "{text} is not in\n{log}");
    }
    // Requests about objects of a built-in provider are sent together in batches; requests about the provider itself
    // are not.
    let batched = |request: &str| {
        let calls = log.lines().filter(|line| line.contains(&format!("request={request} ")));
        calls.map(|line| line.contains("batched=true")).collect::<Vec<_>>()
    };
    assert_eq!(batched("PlanResourceChange"), [true], "{log}");
    assert_eq!(batched("GetProviderSchema"), [false], "{log}");
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &std::fs::metadata(w.dir().join("the.log")).expect("a log").permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);
    let w = Workspace::new().env("TF_LOG", "loud");
    let ran = w.run(&["version"]).ok();
    assert!(
        ran.stderr
            .contains("[WARN] Invalid log level: \"loud\". TRACE is used in its place"),
        "{}",
        ran.all()
    );
}

fn json_has_an_object_a_line() {
    let w = Workspace::with(&[("main.tf", MAIN)]).env("TF_LOG", "json");
    let ran = w.run(&["plan", "-no-color"]).ok();
    let mut modules = std::collections::BTreeSet::new();
    for line in ran.stderr.lines() {
        let object: Json = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        for name in ["@level", "@message", "@timestamp", "@module"] {
            assert!(object[name].is_string(), "{name} in {line}");
        }
        modules.insert(object["@module"].as_str().unwrap_or_default().to_owned());
    }
    assert!(modules.contains("cli") && modules.contains("plugins"), "{modules:?}");
}

fn parts_have_levels_of_their_own() {
    let w = Workspace::with(&[("main.tf", MAIN)]).env("TF_LOG_CORE", "info");
    let ran = w.run(&["plan", "-no-color"]).ok();
    assert!(ran.stderr.contains("[INFO]  cli: started"), "{}", ran.all());
    assert!(!ran.stderr.contains("[DEBUG]"), "{}", ran.all());
    let w = Workspace::with(&[("main.tf", MAIN)]).env("TF_LOG_PROVIDER", "trace");
    let ran = w.run(&["plan", "-no-color"]).ok();
    assert!(!ran.stderr.contains(" cli: "), "{}", ran.all());
}

fn plugins_have_names_and_what_they_write_is_seen() {
    let w = Workspace::with(&[(
        "main.tf",
        "terraform {\n  required_providers {\n    odd = {\n      source = \"example.com/a/odd\"\n    }\n  }\n}\nresource \"odd_x\" \"a\" {}\n",
    )])
    .env("TF_LOG", "debug");
    let dir = w
        .home()
        .join(".terraform.d/plugins/example.com/a/odd/1.2.3/linux_amd64");
    std::fs::create_dir_all(&dir).expect("a directory");
    let path = dir.join("terraform-provider-odd_v1.2.3");
    let script = "#!/bin/sh\necho 'plain words' >&2\necho '{\"@level\":\"debug\",\"@message\":\"in form\",\"@module\":\"sdk\",\"n\":1}' \
                  >&2\nsleep 0.2\nexit 1\n";
    std::fs::write(&path, script).expect("a file");
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("permissions");
    w.run(&["init", "-no-color"]).ok();
    let ran = w.run(&["plan", "-no-color"]);
    assert_eq!(ran.status, 1);
    for text in [
        "[WARN]  provider.terraform-provider-odd_v1.2.3: plain words\n",
        "[DEBUG] provider.terraform-provider-odd_v1.2.3: in form: @module=sdk n=1\n",
    ] {
        assert!(ran.stderr.contains(text), "{text} is not in\n{}", ran.all());
    }
    let w = w.env("TF_LOG_PROVIDER_ODD", "error");
    let ran = w.run(&["plan", "-no-color"]);
    assert!(!ran.stderr.contains("plain words\n2"), "{}", ran.all());
    assert!(!ran.stderr.contains("[WARN]  provider."), "{}", ran.all());
}

fn no_secret_is_in_any_log() {
    let secret = |name: &str| format!("s3cr3t-{name}");
    let w = Workspace::with(&[(
        "main.tf",
        &format!(
            r#"
variable "flag" {{
  type      = string
  sensitive = true
}}

variable "environment" {{
  type      = string
  sensitive = true
}}

variable "file" {{
  type      = string
  ephemeral = true
}}

provider "http" {{}}

resource "terraform_data" "a" {{
  input = [var.flag, var.environment, sensitive("{literal}")]
}}

resource "random_password" "p" {{
  length  = 20
  keepers = {{ k = var.flag }}
}}

resource "local_sensitive_file" "f" {{
  filename = "out"
  content  = "{content}"
}}

data "http" "h" {{
  url             = "http://user:{password}@127.0.0.1:1/path?token={query}"
  request_headers = {{ Authorization = "Bearer {header}" }}
  retry {{
    attempts     = 1
    max_delay_ms = 1
    min_delay_ms = 1
  }}
  depends_on = [local_sensitive_file.f]
}}

module "m" {{
  source = "git::http://user:{module}@127.0.0.1:1/x.git?token={module_query}"
}}
"#,
            literal = secret("literal"),
            content = secret("content"),
            password = secret("password"),
            query = secret("query"),
            header = secret("header"),
            module = secret("module"),
            module_query = secret("module-query"),
        ),
    )])
    .env("TF_LOG", "trace")
    .env("TF_VAR_environment", secret("environment"))
    .env("TF_TOKEN_example_com", secret("token"));
    w.write("x.tfvars", &format!("file = \"{}\"\n", secret("file")));
    let mut logs = String::new();
    let flag = format!("-var=flag={}", secret("flag"));
    for args in [
        &["init", "-no-color"][..],
        &["get", "-no-color"],
        &["plan", "-no-color", &flag, "-var-file=x.tfvars"],
    ] {
        logs.push_str(&log_lines(&w.run(args).stderr));
    }
    // Without the module, the apply runs until the request that fails.
    let main = w.read("main.tf");
    w.write("main.tf", main.split("module \"m\"").next().unwrap_or_default());
    for args in [
        &["plan", "-no-color", &flag, "-var-file=x.tfvars", "-out=p"][..],
        &[
            "apply",
            "-no-color",
            "-auto-approve",
            "-var",
            &flag[5..],
            "-var-file=x.tfvars",
        ],
        &["apply", "-no-color", "-auto-approve", &flag, "-var-file=x.tfvars"],
        &["show", "-no-color"],
        &["output", "-no-color"],
        &["state", "pull"],
        &["destroy", "-no-color", "-auto-approve", &flag, "-var-file=x.tfvars"],
    ] {
        logs.push_str(&log_lines(&w.run(args).stderr));
    }
    assert!(logs.contains("request=ApplyResourceChange"), "{logs}");
    let found: Vec<&str> = logs.lines().filter(|line| line.contains("s3cr3t-")).collect();
    assert!(found.is_empty(), "{found:#?}");
}

/// Returns the log lines of standard error. Other lines, such as errors, are shown to a user who may know the secrets.
fn log_lines(text: &str) -> String {
    text.lines()
        .filter(|line| is_line(line))
        .fold(String::new(), |all, line| all + line + "\n")
}

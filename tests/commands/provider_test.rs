//! `provider test`: acceptance tests, with built-in providers as the executables of an author.

use std::os::unix::fs::symlink;
use std::path::Path;

use monoform_sdk_testing::acceptance::{Acceptance, AcceptanceError, Import, Object, Step};
use support::{Workspace, lean, monoform, needs, words};

pub const TESTS: &[(&str, fn())] = &[
    ("provider_test::steps_pass_in_monoform_and_terraform", programs),
    ("provider_test::checks_that_do_not_hold_are_reported", failures),
    ("provider_test::sweepers_and_skipped_files_are_named", sweepers),
    ("provider_test::objects_that_are_left_can_be_destroyed", left),
    ("provider_test::files_with_mistakes_are_refused", refused),
    ("provider_test::steps_in_rust_pass_and_failures_are_reported", in_rust),
    ("provider_test::init_finds_the_provider_and_modules", initialized),
    ("provider_test::provider_time_passes_its_acceptance_tests", time),
];

fn workspace(provider: &str, files: &[(&str, &str)]) -> Workspace {
    let w = Workspace::with(files);
    let link = w.dir().join(format!("terraform-provider-{provider}"));
    symlink(lean(), link).expect("a link");
    w
}

/// Steps with every kind of check.
const FILES: &str = r#"
config {
  variable "text" {
    type = string
  }
  variable "unique" {
    type = string
  }
}

variables = { text = "one" }

step "create" {
  config {
    resource "local_file" "a" {
      filename = "a-${var.unique}.txt"
      content  = var.text
    }

    resource "local_sensitive_file" "b" {
      filename = "b.txt"
      content  = "secret"
    }

    output "name" {
      value = basename(local_file.a.filename)
    }
  }
  actions = { "local_file.a" = "create", "local_sensitive_file.b" = "create" }
  planned "local_file.a" {
    action  = "create"
    values  = { content = "one" }
    unknown = ["id"]
  }
  state "local_file.a" {
    values  = { content = "one", file_permission = "0777" }
    matches = { id = "^[0-9a-f]{40}$" }
    null    = ["source"]
    set     = ["content_md5"]
  }
  state "local_sensitive_file.b" {
    sensitive = ["content"]
  }
  assert {
    condition     = startswith(outputs.name, "a-") && length(outputs.name) == 14
    error_message = "The output is ${outputs.name}."
  }
}

step "change" {
  variables = { text = "two" }
  actions   = { "local_file.a" = "replace", "local_sensitive_file.b" = "no-op" }
}

step "somebody has removed a file" {
  run     = [["rm", "b.txt"]]
  actions = { "local_sensitive_file.b" = "create", "local_file.a" = "replace" }
}

step "refresh" {
  operation      = "refresh"
  run            = [["rm", "b.txt"]]
  non_empty_plan = true
  assert {
    condition     = !contains(keys(state), "local_sensitive_file.b")
    error_message = "The file is still in the state."
  }
}

step "wrong arguments" {
  operation = "plan"
  directory = "wrong"
  expect_error = "Invalid Attribute Combination"
}

step "destroy" {
  operation = "destroy"
  config {}
}

step "create again" {
  config {
    resource "local_file" "a" {
      filename = "again.txt"
      content  = var.text
    }
  }
}

destroyed {
  run = [["sh", "-c", "test ! -e again.txt"]]
  config {
    data "local_file" "a" {
      filename = "again.txt"
    }
  }
  expect_error = "again.txt"
}
"#;

const WRONG: &str = r#"
resource "local_file" "a" {
  filename       = "a"
  content        = "a"
  content_base64 = "YQ=="
}
"#;

fn programs() {
    let w = workspace(
        "local",
        &[("tests/files.acctest.hcl", FILES), ("tests/wrong/main.tf", WRONG)],
    );
    let ran = w.run(&["provider", "test", "."]).ok();
    let text = words(&ran.stdout);
    assert!(text.contains("Success! 8 passed, 0 failed."), "{}", ran.all());
    assert!(!w.dir().join("tests/again.txt").exists());
    let own = format!("-with={}", monoform());
    let Some(terraform) = needs("terraform", "provider_test::programs") else {
        return;
    };
    let terraform = format!("-with={}", terraform.display());
    let ran = w.run(&["provider", "test", &own, &terraform, "."]).ok();
    let text = words(&ran.stdout);
    assert!(text.contains("Success! 16 passed, 0 failed."), "{}", ran.all());
    for program in ["(Monoform v", "(Terraform v"] {
        assert!(text.contains(&format!("files.acctest.hcl {program}")), "{}", ran.all());
    }
    w.run(&["provider", "test", "-with=no-such-program", "."]).fails_with(&[
        "No such program",
        "no-such-program",
        "not found",
    ]);
}

const FAILING: &str = r#"
step "uuid" {
  config {
    resource "random_uuid" "a" {}
    resource "random_password" "p" {
      length = 5
    }
  }
  actions = { "random_uuid.a" = "update" }
  state "random_uuid.a" {
    values = { id = "x" }
  }
  state "random_password.p" {
    values = { result = "hunter2" }
  }
  import "random_uuid.a" {}
  import "random_password.p" {
    id     = state["random_password.p"].result
    ignore = ["bcrypt_hash", "length"]
  }
  import "random_uuid.a" {
    id           = "no uuid"
    expect_error = "(?i)uuid"
  }
}

step "error" {
  operation = "plan"
  config {
    resource "random_password" "p" {
      length = 0
    }
  }
}

step "not reached" {
  operation = "plan"
}
"#;

const DRIFTING: &str = r#"
step "changes in each plan" {
  config {
    resource "random_id" "a" {
      byte_length = 2
      keepers     = { now = timestamp() }
    }
  }
}

step "an error that does not come" {
  expect_error   = "some error"
  non_empty_plan = true
}
"#;

fn failures() {
    let w = Workspace::with(&[
        ("acceptance/failing.acctest.hcl", FAILING),
        ("acceptance/drifting.acctest.hcl", DRIFTING),
    ]);
    symlink(lean(), w.dir().join("plugin")).expect("a link");
    let test = ["provider", "test", "-test-directory=acceptance", "-name=random"];
    let ran = w.run(&[&test[..], &["-junit-xml=report.xml", "plugin"]].concat());
    assert_eq!(ran.status, 1, "{}", ran.all());
    let all = words(&ran.all());
    for part in [
        "The action of random_uuid.a is \"create\", and \"update\" is expected.",
        "The plan changes random_password.p (\"create\"), which the expected actions do not list.",
        "and \"x\" is expected.",
        "random_password.p: result is a sensitive value, and \"hunter2\" is expected.",
        "run \"error\"... fail",
        "Attribute length",
        "run \"not reached\"... skip",
        "A plan after the step must have no changes, and has these: random_id.a (destroy_before_create).",
        "The step has no error, and one that matches \"some error\" is expected.",
        "Failure! 0 passed, 4 failed, 1 skipped.",
    ] {
        assert!(all.contains(part), "{part}\n{}", ran.all());
    }
    assert!(!all.contains("the imported"), "{}", ran.all());
    // Diagnostics of the program are shown at the lines of the test file.
    assert!(all.contains("on acceptance/failing.acctest.hcl line"), "{}", ran.all());
    let report = w.read("report.xml");
    assert!(
        report.contains("<testcase name=\"uuid\" classname=\"acceptance/failing.acctest.hcl\"")
            && report.contains("assertions failed"),
        "{report}"
    );
    // Runs a single file, with machine-readable output.
    let ran = w.run(
        &[
            &test[..],
            &["-json", "-parallelism=1", "-filter=drifting.acctest.hcl", "plugin"],
        ]
        .concat(),
    );
    assert_eq!(ran.status, 1, "{}", ran.all());
    let mut summary = ran.stdout.lines().filter_map(|line| serde_json::from_str(line).ok());
    let summary = summary.rfind(|line: &serde_json::Value| line["type"] == "test_summary");
    assert_eq!(summary.expect("a summary")["test_summary"]["failed"], 2);
    w.run(&[&test[..], &["-filter=none", "plugin"]].concat())
        .fails_with(&["No acceptance tests", "-filter"]);
    w.run(&[&test[..], &["-parallelism=0", "plugin"]].concat())
        .fails_with(&["-parallelism"]);
}

const SKIPPED: &str = r#"
skip_unless = ["ZOO_TOKEN"]

step "one" {
  config {}
}

sweeper "files" {
  run = [["sh", "-c", "touch swept"], ["rm", "swept"]]
}

sweeper "account" {
  skip_unless = ["ZOO_ACCOUNT"]
  run         = [["false"]]
}

sweeper "broken" {
  run = [["sh", "-c", "echo no such bucket >&2; exit 3"]]
}
"#;

fn sweepers() {
    let w = workspace("null", &[("tests/a.acctest.hcl", SKIPPED)]);
    let ran = w.run(&["provider", "test", "."]).ok();
    let all = words(&ran.all());
    assert!(
        all.contains("needs the environment variable ZOO_TOKEN") && all.contains("1 skipped"),
        "{}",
        ran.all()
    );
    let ran = w.run(&["provider", "test", "-sweep", "."]);
    assert_eq!(ran.status, 1, "{}", ran.all());
    let all = words(&ran.all());
    for part in [
        "run \"files\"... pass",
        "run \"account\"... skip",
        "ZOO_ACCOUNT",
        "run \"broken\"... fail",
        "no such bucket",
    ] {
        assert!(all.contains(part), "{part}\n{}", ran.all());
    }
    let w = w.env("ZOO_TOKEN", "x");
    w.run(&["provider", "test", "."]).ok().shows(&["1 passed"]);
}

const LEFT: &str = r#"
step "one" {
  config {
    resource "null_resource" "a" {
      lifecycle {
        prevent_destroy = true
      }
    }
  }
}
"#;

fn left() {
    let w = workspace("null", &[("tests/a.acctest.hcl", LEFT)]);
    let ran = w.run(&["provider", "test", "."]);
    assert_eq!(ran.status, 1, "{}", ran.all());
    let all = words(&ran.all());
    assert!(
        all.contains("Objects are left") && all.contains("null_resource.a"),
        "{}",
        ran.all()
    );
    let (_, rest) = all.split_once("-chdir=").expect("a directory");
    let work = Path::new(rest.split(' ').next().expect("a path"));
    assert!(work.join("terraform.tfstate").is_file(), "{}", ran.all());
    std::fs::remove_dir_all(work.parent().expect("a directory")).expect("a directory");
}

fn refused() {
    let w = workspace(
        "null",
        &[(
            "tests/a.acctest.hcl",
            "step \"a\" {\n  operation = \"walk\"\n  actoins = {}\n}\n",
        )],
    );
    w.run(&["provider", "test", "."]).fails_with(&[
        "Invalid operation",
        "on tests/a.acctest.hcl line 2",
        "actoins",
        "Did you mean \"actions\"?",
    ]);
    let w = workspace("null", &[]);
    w.run(&["provider", "test", "."])
        .fails_with(&["No acceptance tests", "tests"]);
    w.run(&["provider", "test", "terraform-provider-none"])
        .fails_with(&["No provider executable"]);
}

fn in_rust() {
    let w = workspace("random", &[]);
    let executable = w.dir().join("terraform-provider-random");
    let step = Step::apply("create").config("resource \"random_integer\" \"a\" {\n  min = var.min\n  max = 9\n}");
    let tests = |expected: i64| {
        Acceptance::new(&executable)
            .monoform(monoform())
            .config("variable \"min\" { type = number }")
            .variable("min", 9i64)
            .step(
                step.clone()
                    .action("random_integer.a", "create")
                    .planned(Object::at("random_integer.a").unknown("result").null("seed"))
                    .state(
                        Object::at("random_integer.a")
                            .value("result", expected)
                            .matches("id", "^9$"),
                    )
                    .assert("state[\"random_integer.a\"].result == 9", "The result is not 9.")
                    .import(Import::at("random_integer.a").id("\"9,9,9\"")),
            )
            .step(
                Step::plan("no number")
                    .variable("min", "x")
                    .expect_error("(?i)a number is required"),
            )
            .destroyed(Step::destroyed().command(["true"]))
    };
    tests(9).run().expect("tests that pass");
    match tests(8).run() {
        Err(AcceptanceError::Failed(report)) => assert!(words(&report).contains("and 8 is expected."), "{report}"),
        other => panic!("{other:?}"),
    }
    let missing = tests(9).monoform(w.dir().join("none")).run();
    assert!(matches!(missing, Err(AcceptanceError::NotRun(_))), "{missing:?}");
}

/// A file whose configuration has a module, which Terraform uses only after `init`.
const INITIALIZED: &str = r#"
init = true

step "module" {
  run = [["mkdir", "module"], ["sh", "-c", "echo 'resource \"null_resource\" \"a\" {}' > module/main.tf"]]
  config {
    module "one" {
      source = "./module"
    }

    resource "null_resource" "b" {}
  }
  actions = { "module.one.null_resource.a" = "create", "null_resource.b" = "create" }
}
"#;

fn initialized() {
    let w = workspace("null", &[("tests/a.acctest.hcl", INITIALIZED)]);
    let ran = w.run(&["provider", "test", "."]).ok();
    assert!(
        words(&ran.stdout).contains("Success! 1 passed, 0 failed."),
        "{}",
        ran.all()
    );
    let Some(terraform) = needs("terraform", "provider_test::initialized") else {
        return;
    };
    let terraform = format!("-with={}", terraform.display());
    let ran = w.run(&["provider", "test", &terraform, "."]).ok();
    assert!(
        words(&ran.stdout).contains("Success! 1 passed, 0 failed."),
        "{}",
        ran.all()
    );
    w.write("tests/a.acctest.hcl", &INITIALIZED.replace("init = true", ""));
    let ran = w.run(&["provider", "test", &terraform, "."]);
    assert_eq!(ran.status, 1, "{}", ran.all());
}

/// Steps of the provider `time`, beside its code, as an author has them.
const TIME: &str = include_str!("../../builtin-plugins/provider-time/tests/time.acctest.hcl");

fn time() {
    let w = workspace("time", &[("tests/time.acctest.hcl", TIME)]);
    let own = format!("-with={}", monoform());
    let terraform = needs("terraform", "provider_test::time").map(|path| format!("-with={}", path.display()));
    let count = if terraform.is_some() { 12 } else { 6 };
    let arguments = ["provider", "test", &own]
        .into_iter()
        .chain(terraform.as_deref())
        .chain(["."]);
    let ran = w.run(&arguments.collect::<Vec<_>>()).ok();
    let text = words(&ran.stdout);
    assert!(
        text.contains(&format!("Success! {count} passed, 0 failed.")),
        "{}",
        ran.all()
    );
}

//! The command `console`, on the real executable.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

struct Answer {
    out: String,
    err: String,
    status: i32,
}

fn monoform(dir: &Path, arguments: &[&str], input: &str) -> Answer {
    let mut command = Command::new(env!("CARGO_BIN_EXE_monoform"));
    support::isolated(&mut command, dir);
    let mut child = command
        .args(arguments)
        .current_dir(dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that refuses its arguments does not read its input.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    Answer {
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
        status: output.status.code().unwrap(),
    }
}

fn ask(dir: &Path, arguments: &[&str], input: &str) -> String {
    let mut all = vec!["console"];
    all.extend(arguments);
    let answer = monoform(dir, &all, input);
    assert_eq!(answer.status, 0, "{input}: {}", answer.err);
    answer.out.trim_end().to_owned()
}

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    dir
}

#[test]
fn piped_input_prints_the_last_value_or_the_first_error() {
    let dir = folder(&[]);
    assert_eq!(ask(dir.path(), &[], "1 + 1\nupper(\"a\")\n"), "\"A\"");
    assert_eq!(ask(dir.path(), &[], "1\n\n"), "");
    assert_eq!(ask(dir.path(), &[], ""), "");
    assert_eq!(ask(dir.path(), &[], "1\nexit\n2\n"), "");
    assert!(ask(dir.path(), &[], "help").contains("Control-D"));
    let failed = monoform(dir.path(), &["console"], "1\nnope(\n2\n");
    assert_eq!((failed.status, failed.out.as_str()), (1, ""));
    assert!(failed.err.contains("Error: "), "{}", failed.err);
    let refused = monoform(dir.path(), &["console", "x"], "1\n");
    assert_eq!(refused.status, 1);
    assert!(
        refused.err.contains("Too many command line arguments"),
        "{}",
        refused.err
    );
}

#[test]
fn variables_come_from_all_sources_and_may_be_unset() {
    let dir = folder(&[
        (
            "main.tf",
            "variable \"a\" {}\nvariable \"b\" { type = number }\nlocals { sum = var.b + 1 }\n",
        ),
        ("terraform.tfvars", "a = \"file\"\n"),
        ("more.tfvars", "b = 41\n"),
    ]);
    assert_eq!(
        ask(dir.path(), &[], "[var.a, var.b, local.sum]"),
        "[\n  \"file\",\n  (known after apply),\n  (known after apply),\n]"
    );
    assert_eq!(
        ask(
            dir.path(),
            &["-var", "a=flag", "-var-file=more.tfvars"],
            "\"${var.a} ${local.sum}\""
        ),
        "\"flag 42\""
    );
    let unknown = monoform(dir.path(), &["console", "-var", "zz=1"], "1");
    assert_eq!(unknown.status, 1);
    assert!(unknown.err.contains("Value for undeclared variable"), "{}", unknown.err);
}

#[test]
fn a_broken_value_does_not_end_the_console() {
    let dir = folder(&[("main.tf", "locals {\n  bad  = upper(1, 2)\n  good = 5\n}\n")]);
    let answer = monoform(dir.path(), &["console"], "local.good");
    assert_eq!(answer.status, 0);
    assert_eq!(answer.out, "5\n", "warnings are not among the results");
    assert!(answer.err.contains("Too many function arguments"), "{}", answer.err);
    assert!(
        answer.err.contains("some expressions may produce unexpected"),
        "{}",
        answer.err
    );
    let bad = monoform(dir.path(), &["console"], "local.bad").out;
    assert!(bad.ends_with("(known after apply)\n"), "{bad}");
}

#[test]
fn objects_are_as_in_the_state_or_as_planned() {
    let configuration = |n: u32| {
        format!(
            "resource \"terraform_data\" \"x\" {{\n  count = {n}\n  input = count.index + {n}\n}}\noutput \"o\" {{\n  value = \
             terraform_data.x[*].output\n}}\n"
        )
    };
    let dir = folder(&[("main.tf", &configuration(2))]);
    assert_eq!(ask(dir.path(), &[], "terraform_data.x"), "(known after apply)");
    assert_eq!(
        ask(dir.path(), &["-plan"], "terraform_data.x[*].input"),
        "[\n  2,\n  3,\n]"
    );
    let applied = monoform(dir.path(), &["apply", "-auto-approve"], "");
    assert_eq!(applied.status, 0, "{}", applied.err);
    let before = std::fs::read(dir.path().join("terraform.tfstate")).unwrap();
    assert_eq!(ask(dir.path(), &[], "terraform_data.x[*].output"), "[\n  2,\n  3,\n]");

    std::fs::write(dir.path().join("main.tf"), configuration(3)).unwrap();
    assert_eq!(ask(dir.path(), &[], "terraform_data.x[*].input"), "[\n  2,\n  3,\n]");
    assert_eq!(
        ask(dir.path(), &["-plan"], "terraform_data.x[*].input"),
        "[\n  3,\n  4,\n  5,\n]"
    );
    assert_eq!(std::fs::read(dir.path().join("terraform.tfstate")).unwrap(), before);
    std::fs::copy(dir.path().join("terraform.tfstate"), dir.path().join("other.tfstate")).unwrap();
    std::fs::remove_file(dir.path().join("terraform.tfstate")).unwrap();
    assert_eq!(
        ask(dir.path(), &["-state=other.tfstate"], "terraform_data.x[1].output"),
        "3"
    );
    let missing = monoform(dir.path(), &["console"], "terraform_data.y");
    assert_eq!(missing.status, 1);
    assert!(
        missing.err.contains("Reference to undeclared resource"),
        "{}",
        missing.err
    );
}

#[test]
fn functions_are_listed_for_tools() {
    let dir = folder(&[]);
    let answer = monoform(dir.path(), &["metadata", "functions", "-json"], "");
    let document: serde_json::Value = serde_json::from_str(&answer.out).unwrap();
    let all = document["function_signatures"].as_object().unwrap();
    assert_eq!(all.len(), 268);
    assert_eq!(all["core::join"], all["join"]);
    assert_eq!(
        all["join"]["variadic_parameter"]["type"],
        serde_json::json!(["list", "string"])
    );
    assert_eq!(all["tolist"]["parameters"][0]["is_nullable"], true);
    assert_eq!(monoform(dir.path(), &["metadata", "functions"], "").status, 1);
}

#[test]
fn functions_of_providers_are_called() {
    let dir = folder(&[(
        "main.tf",
        "terraform {\n  required_providers {\n    terraform = {\n      source = \"terraform.io/builtin/terraform\"\n    }\n    time = \
         {\n      source = \"hashicorp/time\"\n    }\n  }\n}\nlocals {\n  text = provider::terraform::encode_expr([1])\n}\n",
    )]);
    for (expression, answer) in [
        ("local.text", "\"[1]\""),
        (
            "provider::terraform::encode_tfvars({ a = 1, b = [true] })",
            "<<EOT\na = 1\nb = [true]\n\nEOT",
        ),
        (
            "provider::terraform::decode_tfvars(\"a = 1\\nb = [2]\\n\")",
            "{\n  \"a\" = 1\n  \"b\" = [\n    2,\n  ]\n}",
        ),
        ("upper(provider::terraform::encode_expr(\"a\"))", "\"\\\"A\\\"\""),
        (
            "provider::terraform::encode_expr(sensitive(\"a\"))",
            "(sensitive value)",
        ),
        ("provider::time::rfc3339_parse(\"2024-01-02T03:04:05Z\").year", "2024"),
        ("try(provider::terraform::decode_tfvars(\"a = \"), \"d\")", "\"d\""),
        ("can(provider::terraform::nope(1))", "false"),
        ("can(provider::other::f(1))", "false"),
    ] {
        assert_eq!(ask(dir.path(), &[], expression), answer, "{expression}");
    }
    for (expression, summary) in [
        ("provider::terraform::nope(1)", "Unknown provider function"),
        ("provider::other::f(1)", "Unknown provider function"),
        ("provider::terraform(1)", "Unknown provider function"),
        ("provider::terraform::encode_expr()", "Not enough function arguments"),
        ("provider::terraform::decode_tfvars(null)", "Invalid function argument"),
        ("provider::terraform::encode_tfvars(1)", "Error in function call"),
    ] {
        let failed = monoform(dir.path(), &["console"], expression);
        assert_eq!(failed.status, 1, "{expression}: {}", failed.out);
        assert!(failed.err.contains(summary), "{expression}: {}", failed.err);
    }
}

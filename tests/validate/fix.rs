//! `validate -fix` and `validate -watch`.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use support::{Workspace, monoform};

pub const TESTS: &[(&str, fn())] = &[
    ("fix::names_are_mended", names_are_mended),
    ("fix::syntax_is_mended", syntax_is_mended),
    ("fix::blocks_and_arguments_change_places", blocks_and_arguments),
    ("fix::json_and_test_files_are_mended", json_and_test_files),
    ("fix::what_is_not_certain_is_left_alone", uncertain),
    ("fix::a_file_that_cannot_be_parsed_is_left_alone", unparseable),
    ("fix::diff_writes_nothing", diff),
    ("fix::modules_are_left_alone", modules),
    ("fix::a_file_that_may_not_be_written_is_left_alone", read_only),
    ("fix::flags_that_exclude_each_other", flags),
    ("watch::the_configuration_is_checked_again", watch),
];

/// Returns the listed fixes.
fn listed(text: &str) -> Vec<&str> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("  "));
    lines.filter(|line| line.contains(" → ")).collect()
}

fn names_are_mended() {
    let broken = r#"
variable "region" {
  defalt = "x"
  type   = strng
}
locals {
  prefix = upprr(var.regoin)
}
resource "random_pets" "server" {
  lenght = 2
}
reource "terraform_data" "x" {
  input = "${local.prefx}-${random_pet.servr.id}-${random_pet.server.seperator}"
}
output "o" {
  value = { name = "n" }.nmae
}
"#;
    let w = Workspace::with(&[("main.tf", broken)]);
    let ran = w.run(&["validate", "-no-color", "-fix"]).ok();
    let expected = [
        ("defalt ", "default "),
        ("strng", "string"),
        ("upprr", "upper"),
        ("var.regoin", "var.region"),
        ("\"random_pets\"", "\"random_pet\""),
        ("lenght", "length"),
        ("reource", "resource"),
        ("local.prefx", "local.prefix"),
        ("random_pet.servr", "random_pet.server"),
        ("seperator", "separator"),
        (".nmae", ".name"),
    ];
    let mended = expected
        .iter()
        .fold(broken.to_owned(), |text, (from, to)| text.replace(from, to));
    assert_eq!(w.read("main.tf"), mended, "{}", ran.all());
    assert_eq!(
        listed(&ran.stdout),
        [
            "main.tf:3: \"defalt\" → \"default\"",
            "main.tf:4: \"strng\" → \"string\"",
            "main.tf:7: \"upprr\" → \"upper\"",
            "main.tf:7: \"regoin\" → \"region\"",
            "main.tf:9: \"random_pets\" → \"random_pet\"",
            "main.tf:10: \"lenght\" → \"length\"",
            "main.tf:12: \"reource\" → \"resource\"",
            "main.tf:13: \"prefx\" → \"prefix\"",
            "main.tf:13: \"random_pet.servr\" → \"random_pet.server\"",
            "main.tf:13: \"seperator\" → \"separator\"",
            "main.tf:16: \"nmae\" → \"name\"",
        ],
        "{}",
        ran.all()
    );
    ran.shows(&["These mistakes were mended:\n", "Success! The configuration is valid."]);
    let again = w.run(&["validate", "-no-color", "-fix"]).ok();
    assert!(!again.stdout.contains("mended"), "{}", again.all());
}

fn syntax_is_mended() {
    let broken = "variable \"a\" {\n  type: string\n  default := 'one two'\n}\nvariable “b” {\n  default == \"x\",\n  \
                  sensitive true\n}\nlocals {\n  \"c\": 1,\n  d = ‘x’ # it's\n  e 5\n  f upper(\"x\")\n  g = True\n}\n";
    let w = Workspace::with(&[("main.tf", broken)]);
    let ran = w.run(&["validate", "-no-color", "-fix"]).ok();
    assert_eq!(
        w.read("main.tf"),
        "variable \"a\" {\n  type = string\n  default = \"one two\"\n}\nvariable \"b\" {\n  default = \"x\"\n  sensitive = \
         true\n}\nlocals {\n  c = 1\n  d = \"x\" # it's\n  e = 5\n  f = upper(\"x\")\n  g = true\n}\n",
        "{}",
        ran.all()
    );
    let all = listed(&ran.stdout);
    for one in [
        "main.tf:2: \"type:\" → \"type =\"",
        "main.tf:3: 'one two' → \"one two\"",
        "main.tf:7: \"sensitive\" → \"sensitive =\"",
    ] {
        assert!(all.contains(&one), "{one}\n{}", ran.all());
    }
}

fn blocks_and_arguments() {
    let broken = "resource \"null_resource\" \"x\" {\n  triggers {\n    a = 1\n  }\n  lifecycle = {\n    prevent_destroy = \
                  true\n  }\n}\n";
    let w = Workspace::with(&[("main.tf", broken)]);
    let ran = w.run(&["validate", "-no-color", "-fix"]).ok();
    assert_eq!(
        w.read("main.tf"),
        "resource \"null_resource\" \"x\" {\n  triggers = {\n    a = 1\n  }\n  lifecycle {\n    prevent_destroy = \
         true\n  }\n}\n",
        "{}",
        ran.all()
    );
}

fn json_and_test_files() {
    let w = Workspace::with(&[
        (
            "main.tf.json",
            "{\"locals\": {\"prefix\": \"x\"}, \"resource\": {\"local_file\": {\"f\": {\"content\": \"\", \"filname\": \"${local.prefx}\"}}}}\n",
        ),
        (
            "tests/a.tftest.hcl",
            "run \"one\" {\n  comand = plan\n  assert {\n    condition = local_file.f.content == \"\"\n    error_mesage = 'no'\n  }\n}\n",
        ),
    ]);
    let ran = w.run(&["validate", "-no-color", "-fix"]).ok();
    assert_eq!(
        w.read("main.tf.json"),
        "{\"locals\": {\"prefix\": \"x\"}, \"resource\": {\"local_file\": {\"f\": {\"content\": \"\", \"filename\": \"${local.prefix}\"}}}}\n",
        "{}",
        ran.all()
    );
    assert_eq!(
        w.read("tests/a.tftest.hcl"),
        "run \"one\" {\n  command = plan\n  assert {\n    condition = local_file.f.content == \"\"\n    error_message = \"no\"\n  }\n}\n",
        "{}",
        ran.all()
    );
}

/// No fix is made if two names are equally near, if a change would not reduce the number of errors, or if the text may
/// have another meaning.
fn uncertain() {
    for text in [
        "locals {\n  zone_a = 1\n  zone_b = 2\n  x = local.zone_c\n}\n",
        "variable \"v1\" {}\noutput \"o\" {\n  value = var.v2\n}\n",
        "locals {\n  name = 1\n  x = local.names_of_all\n}\n",
        // The right name is already in use.
        "resource \"terraform_data\" \"x\" {\n  input = 1\n  inputs = 2\n}\n",
        "locals {\n  a = 'it is \"quoted\"'\n}\n",
        "resource \"terraform_data\" \"x\" {\n  provisioner \"local-exec\"\n    command = \"true\"\n  }\n}\n",
    ] {
        let w = Workspace::with(&[("main.tf", text)]);
        let ran = w.run(&["validate", "-no-color", "-fix"]);
        assert_eq!(ran.status, 1, "{}", ran.all());
        assert!(ran.stdout.contains("Nothing was changed"), "{}", ran.all());
        assert!(ran.stderr.contains("Error: "), "{}", ran.all());
        assert_eq!(w.read("main.tf"), text);
    }
}

/// Mistakes in one file are fixed even if another file cannot be parsed.
fn unparseable() {
    let broken = "locals {\n  a: 1\n  b = [\n}\n";
    let w = Workspace::with(&[
        ("broken.tf", broken),
        ("main.tf", "variable \"x\" {\n  defalt = 1\n}\n"),
    ]);
    let ran = w.run(&["validate", "-no-color", "-fix"]);
    assert_eq!(ran.status, 1, "{}", ran.all());
    assert_eq!(w.read("broken.tf"), broken);
    assert_eq!(
        w.read("main.tf"),
        "variable \"x\" {\n  default = 1\n}\n",
        "{}",
        ran.all()
    );
}

fn diff() {
    let broken = "variable \"x\" {\n  defalt = 1\n}\n";
    let w = Workspace::with(&[("main.tf", broken)]);
    let ran = w.run(&["validate", "-no-color", "-fix", "-diff"]);
    assert_eq!(ran.status, 1, "{}", ran.all());
    let ran = ran.shows(&[
        "nothing was written",
        "main.tf:2: \"defalt\" → \"default\"",
        "--- old/main.tf\n+++ new/main.tf\n",
        "\n-  defalt = 1\n+  default = 1\n",
    ]);
    assert!(ran.stderr.contains("Unsupported argument"), "{}", ran.all());
    assert_eq!(w.read("main.tf"), broken);
}

/// Files of a module are not changed, because other configurations may use the module, too.
fn modules() {
    let module = "variable \"x\" {\n  defalt = 1\n}\n";
    let w = Workspace::with(&[
        ("main.tf", "module \"m\" {\n  source = \"./m\"\n}\n"),
        ("m/main.tf", module),
    ]);
    w.run(&["init"]);
    let ran = w.run(&["validate", "-no-color", "-fix"]);
    assert_eq!(ran.status, 1, "{}", ran.all());
    assert_eq!(w.read("m/main.tf"), module);
}

fn read_only() {
    let broken = "variable \"x\" {\n  defalt = 1\n}\n";
    let w = Workspace::with(&[("main.tf", broken)]);
    let path = w.dir().join("main.tf");
    let mut permissions = std::fs::metadata(&path).expect("the file").permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(&path, permissions).expect("a mode");
    if std::fs::OpenOptions::new().write(true).open(&path).is_ok() {
        return support::skip("fix::read_only", "a user that is not root", "is not running this test");
    }
    w.run(&["validate", "-no-color", "-fix"])
        .fails_with(&["Failed to write main.tf", "The file is as it was."]);
    assert_eq!(w.read("main.tf"), broken);
}

fn flags() {
    let w = Workspace::with(&[("main.tf", "")]);
    for (other, reason) in [
        (&["-diff"][..], "use both together"),
        (&["-fix", "-watch"], "exclude each other"),
        (&["-watch", "-diff"], "use both together"),
    ] {
        w.run(&[&["validate"][..], other].concat()).fails_with(&[reason]);
    }
    for other in ["-fix", "-watch"] {
        let refused = w.run(&["validate", "-json", other]);
        assert_eq!(refused.status, 1, "{}", refused.all());
        assert_eq!(
            refused.json()["diagnostics"][0]["summary"],
            "Incompatible command-line flags"
        );
    }
}

fn watch() {
    let w = Workspace::with(&[
        ("main.tf", "module \"m\" {\n  source = \"../m\"\n}\n"),
        ("../m/main.tf", "locals {}\n"),
    ]);
    w.run(&["init"]).ok();
    let mut child = w
        .command(monoform())
        .args(["validate", "-no-color", "-watch"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("monoform starts");
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    let mut until = |text: &str| {
        let found = lines
            .by_ref()
            .map(|line| line.expect("a line"))
            .find(|l| l.contains(text));
        assert!(found.is_some(), "the output ended before {text:?}");
    };
    until("The configuration is valid.");
    until("Waiting for changes.");
    w.write("other.tf", "locals {\n  a = local.nothing\n}\n");
    until("Changed: other.tf");
    until("Waiting for changes.");
    w.write("../m/main.tf", "locals {\n  b = 1\n}\n");
    until("Changed: ../m/main.tf");
    until("Waiting for changes.");
    std::fs::remove_file(w.dir().join("other.tf")).expect("the file");
    until("The configuration is valid.");
    until("Waiting for changes.");
    let sent = std::process::Command::new("kill")
        .args(["-s", "INT", &child.id().to_string()])
        .status();
    assert!(sent.expect("kill runs").success());
    let ran = support::ran(child.wait_with_output().expect("its end"));
    assert_eq!(ran.status, 0, "{}", ran.all());
    assert_eq!(
        ran.stderr.matches("Reference to undeclared local value").count(),
        2,
        "{}",
        ran.all()
    );
}

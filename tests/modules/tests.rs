//! Modules of runs in test files. The manifest, the lines of `init` and the tree of `providers` are those of Terraform 1.16.

use crate::registry::{registry, workspace};
use crate::says;
use support::Workspace;

/// Returns a test file whose run tests a module.
fn tested(source: &str, version: &str) -> String {
    format!(
        "run \"one\" {{\n  module {{\n    source = \"{source}\"\n    {version}\n  }}\n  assert {{\n    condition = output.said == \
         \"inner\" || output.said == \"1.2.0\"\n    error_message = output.said\n  }}\n}}\n"
    )
}

#[test]
fn from_a_registry() {
    let server = registry();
    let source = format!("{}/team/net/any", server.host());
    let w = workspace(&server, "");
    w.write("tests/a.tftest.hcl", &tested(&source, "version = \"~> 1.0\""));
    w.run(&["test", "-no-color"])
        .fails_with(&["Module not installed", "tests/a.tftest.hcl line 2", "\"init\""]);
    assert_eq!(server.requests(), [""; 0], "a test asks nobody");

    let init = w.run(&["init", "-no-color"]).ok();
    let lines = format!(
        "Initializing modules...\nDownloading {source} 1.2.0 for test.tests.a.one...\n- test.tests.a.one in \
         .terraform/modules/test.tests.a.one/net-x\n"
    );
    assert!(init.stdout.contains(&lines), "{}", init.all());
    let entry = format!(
        "{{\"Key\":\"test.tests.a.one\",\"Source\":\"{source}\",\"Version\":\"1.2.0\",\"Dir\":\
         \".terraform/modules/test.tests.a.one/net-x\"}}"
    );
    assert_eq!(
        w.read(".terraform/modules/modules.json"),
        format!("{{\"Modules\":[{{\"Key\":\"\",\"Source\":\"\",\"Dir\":\".\"}},{entry}]}}")
    );
    w.run(&["test", "-no-color"]).ok().shows(&["run \"one\"... pass"]);

    // Installed modules are not requested again, and modules that they call are installed below them.
    server.requests();
    w.run(&["init"]).ok();
    assert_eq!(server.requests(), [""; 0]);
    w.write(
        "tests/a.tftest.hcl",
        &tested(&format!("{source}//modules/inner"), "version = \"1.2.0\""),
    );
    let get = w.run(&["get", "-no-color"]).ok();
    let dir = ".terraform/modules/test.tests.a.one/net-x";
    let lines = format!("- test.tests.a.one in {dir}/modules/inner\n- test.tests.a.one.up in {dir}\n");
    assert!(get.stdout.contains(&lines), "{}", get.all());
    w.run(&["test", "-no-color"]).ok().shows(&["run \"one\"... pass"]);

    // A module that no run names any more is removed from the manifest.
    w.write("tests/a.tftest.hcl", "run \"one\" {}\n");
    w.run(&["get"]).ok();
    assert!(!w.read(".terraform/modules/modules.json").contains("test.tests"));
}

#[test]
fn beside_the_configuration() {
    let w = Workspace::with(&[
        ("setup/main.tf", "module \"inner\" {\n  source = \"./inner\"\n}\n"),
        ("setup/inner/main.tf", &says("inner")),
        (
            "main.tftest.hcl",
            "run \"one\" {\n  module {\n    source = \"./setup/\"\n  }\n}\nrun \"plain\" {}\n",
        ),
        (
            "tests/b.tftest.json",
            "{\"run\": {\"two\": {\"module\": {\"source\": \"./setup\"}}}}",
        ),
    ]);
    // A directory with test files only is not empty.
    let init = w.run(&["init", "-no-color"]).ok();
    let lines = "Initializing modules...\n- test.main.one in setup\n- test.main.one.inner in setup/inner\n\
         - test.tests.b.tftest.json.two in setup\n- test.tests.b.tftest.json.two.inner in setup/inner\n";
    assert!(init.stdout.contains(lines), "{}", init.all());
    assert_eq!(
        w.read(".terraform/modules/modules.json"),
        "{\"Modules\":[{\"Key\":\"\",\"Source\":\"\",\"Dir\":\".\"},\
         {\"Key\":\"test.main.one\",\"Source\":\"./setup\",\"Dir\":\"setup\"},\
         {\"Key\":\"test.main.one.inner\",\"Source\":\"./inner\",\"Dir\":\"setup/inner\"},\
         {\"Key\":\"test.tests.b.tftest.json.two\",\"Source\":\"./setup\",\"Dir\":\"setup\"},\
         {\"Key\":\"test.tests.b.tftest.json.two.inner\",\"Source\":\"./inner\",\"Dir\":\"setup/inner\"}]}"
    );
    let again = w.run(&["init", "-no-color"]).ok();
    assert!(!again.stdout.contains("- test.main"), "{}", again.all());

    w.write("setup/main.tf", "resource \"random_pet\" \"p\" {}\n");
    let tree = w.run(&["providers", "-no-color"]).ok();
    assert_eq!(
        tree.stdout,
        "\nProviders required by configuration:\n.\n├── test.main\n│   └── run.one\n│       └── \
         provider[registry.terraform.io/hashicorp/random]\n└── test.tests.b.tftest.json\n    └── run.two\n        └── \
         provider[registry.terraform.io/hashicorp/random]\n\n"
    );
    let get = w.run(&["get", "-no-color"]).ok();
    assert_eq!(get.stdout, "", "{}", get.all());
    assert!(!w.read(".terraform/modules/modules.json").contains("inner"));
}

#[test]
fn that_cannot_be_used() {
    let w = Workspace::with(&[
        ("main.tf", ""),
        ("broken/main.tf", "x = 3\n"),
        (
            "a.tftest.hcl",
            "run \"one\" {\n  module {\n    source = \"./nowhere\"\n  }\n}\n",
        ),
    ]);
    for command in ["get", "init"] {
        w.run(&[command, "-no-color"])
            .fails_with(&["Unreadable module directory", "a.tftest.hcl line 2", "nowhere"]);
    }
    w.write(
        "a.tftest.hcl",
        "run \"one\" {\n  module {\n    source = \"./broken\"\n  }\n}\n",
    );
    for command in ["get", "init", "providers"] {
        w.run(&[command, "-no-color"])
            .fails_with(&["Unsupported argument", "broken/main.tf line 1"]);
    }
    w.write("a.tftest.hcl", "run \"one\" {\n  what = 3\n}\n");
    for command in ["get", "init", "providers"] {
        w.run(&[command, "-no-color"])
            .fails_with(&["Unsupported argument", "a.tftest.hcl line 2"]);
    }
    w.run(&["get", "-no-color", "-test-directory=../x"])
        .fails_with(&["Invalid testing directory"]);
}

#[test]
fn a_provider_that_only_a_test_needs_is_installed() {
    let w = Workspace::with(&[
        ("main.tf", ""),
        (
            "setup/main.tf",
            "terraform {\n  required_providers {\n    x = {\n      source = \"localhost:1/team/x\"\n    }\n  }\n}\n",
        ),
        (
            "tests/a.tftest.hcl",
            "run \"one\" {\n  module {\n    source = \"./setup\"\n  }\n}\n",
        ),
    ]);
    for command in [&["init", "-no-color"][..], &["providers", "lock", "-no-color"]] {
        w.run(command).fails_with(&["localhost:1/team/x"]);
    }
    w.run(&["get", "-no-color", "-test-directory=elsewhere"])
        .ok()
        .shows(&["Test directory does not exist"]);
}

//! Modes: called as `tofu` or with `MONOFORM_MODE`, the program answers as OpenTofu, and reads its language.

use std::os::unix::fs::symlink;

use support::{Ran, Workspace, monoform, ran};

pub const TESTS: &[(&str, fn())] = &[
    (
        "opentofu::called_as_tofu_it_answers_as_opentofu",
        called_as_tofu_it_answers_as_opentofu,
    ),
    (
        "opentofu::variable_selects_the_mode_of_any_name",
        variable_selects_the_mode_of_any_name,
    ),
    (
        "opentofu::each_mode_reads_its_files_and_its_version_constraints",
        each_mode_reads_its_files_and_its_version_constraints,
    ),
    (
        "opentofu::disabled_resources_and_modules_are_null_and_destroyed",
        disabled_resources_and_modules_are_null_and_destroyed,
    ),
    (
        "opentofu::prevent_destroy_depends_on_variables",
        prevent_destroy_depends_on_variables,
    ),
    (
        "opentofu::language_block_selects_versions",
        language_block_selects_versions,
    ),
    (
        "opentofu::removed_block_without_lifecycle_has_the_meaning_of_the_mode",
        removed_block_without_lifecycle_has_the_meaning_of_the_mode,
    ),
    (
        "opentofu::settings_of_a_backend_depend_on_variables",
        settings_of_a_backend_depend_on_variables,
    ),
    (
        "opentofu::sources_of_modules_depend_on_variables",
        sources_of_modules_depend_on_variables,
    ),
    (
        "opentofu::settings_and_plugins_of_the_user_are_at_the_paths_of_the_mode",
        settings_and_plugins_of_the_user_are_at_the_paths_of_the_mode,
    ),
    (
        "opentofu::forgotten_objects_are_counted_and_fail_a_destroy",
        forgotten_objects_are_counted_and_fail_a_destroy,
    ),
    (
        "opentofu::states_keep_their_providers_where_translation_is_off",
        states_keep_their_providers_where_translation_is_off,
    ),
];

/// Runs the program through a link with the name of OpenTofu's.
pub fn tofu(w: &Workspace, args: &[&str]) -> Ran {
    let link = w.home().join("tofu");
    if !link.exists() {
        symlink(monoform(), &link).expect("a link");
    }
    w.run_program(&link, args)
}

/// Runs the executable under its own name in a mode.
pub fn in_mode(w: &Workspace, mode: &str, args: &[&str]) -> Ran {
    let mut command = w.command(monoform());
    command.env("MONOFORM_MODE", mode).args(args);
    ran(command.output().expect("the program starts"))
}

fn called_as_tofu_it_answers_as_opentofu() {
    let w = Workspace::with(&[(
        "main.tf",
        "terraform {\n  required_version = \">= 99\"\n  required_providers {\n    null = {\n      source = \"hashicorp/null\"\n    }\n  }\n}\n\
         resource \"null_resource\" \"a\" {}\n",
    )]);
    let ran = tofu(&w, &["version"]).ok();
    assert!(ran.stdout.starts_with("OpenTofu v1.12.6\n"), "{}", ran.all());
    let ran = tofu(&w, &["version", "-json"]).ok();
    assert!(
        ran.stdout.contains("\"terraform_version\": \"1.12.6\""),
        "{}",
        ran.all()
    );
    let ran = tofu(&w, &["init", "-no-color"]).ok();
    assert!(
        ran.stdout.contains("OpenTofu has been successfully initialized!") && ran.stdout.contains("\"tofu plan\""),
        "{}",
        ran.all()
    );
    let ran = tofu(&w, &["plan", "-json"]).ok();
    let first = ran.stdout.lines().next().unwrap_or_default();
    for part in [
        "\"OpenTofu 1.12.6\"",
        "\"tofu.ui\"",
        "\"tofu\":\"1.12.6\"",
        "\"ui\":\"1.2\"",
    ] {
        assert!(first.contains(part), "{part}\n{first}");
    }
    let ran = tofu(&w, &["apply", "-auto-approve", "-no-color"]).ok();
    assert!(!ran.stdout.contains("Terraform"), "{}", ran.all());
    let state = w.read("terraform.tfstate");
    assert!(
        state.contains("\"terraform_version\": \"1.12.6\"")
            && state.contains("provider[\\\"registry.opentofu.org/hashicorp/null\\\"]"),
        "{state}"
    );
    // The same configuration is planned in Terraform mode.
    w.run(&["plan", "-no-color"])
        .fails_with(&["Unsupported Terraform Core version", "version \">= 99\" of Terraform"]);
}

fn variable_selects_the_mode_of_any_name() {
    let w = Workspace::with(&[("main.tf", "")]);
    let ran = in_mode(&w, "opentofu", &["version"]).ok();
    assert!(ran.stdout.starts_with("OpenTofu v1.12.6\n"), "{}", ran.all());
    let ran = in_mode(&w, "terraform", &["version"]).ok();
    assert!(ran.stdout.starts_with("Terraform v1.16.0\n"), "{}", ran.all());
    let ran = in_mode(&w, "tofu", &["version"]);
    assert!(
        ran.stderr.contains("\"tofu\", is not a mode") && ran.stdout.starts_with("Monoform v"),
        "{}",
        ran.all()
    );
}

fn each_mode_reads_its_files_and_its_version_constraints() {
    let w = Workspace::with(&[
        ("main.tf", "output \"from\" {\n  value = \"tf\"\n}\n"),
        ("main.tofu", "output \"from\" {\n  value = \"tofu\"\n}\n"),
        ("more.tofu", "output \"more\" {\n  value = 1\n}\n"),
    ]);
    let outputs = |mode: &str| {
        let ran = in_mode(&w, mode, &["plan", "-no-color"]).ok();
        let has = |text: &str| ran.all().contains(text);
        let warned = has("File of OpenTofu is not read") && has("Beside main.tofu is a file of Terraform");
        (has("from = \"tf\""), has("from = \"tofu\""), has("more = 1"), warned)
    };
    assert_eq!(outputs("terraform"), (true, false, false, false));
    assert_eq!(outputs("opentofu"), (false, true, true, false));
    assert_eq!(outputs("monoform"), (true, false, true, true));
    w.write("version.tofu", "terraform {\n  required_version = \">= 1.13\"\n}\n");
    for mode in ["opentofu", "monoform"] {
        in_mode(&w, mode, &["plan", "-no-color"]).fails_with(&["Incompatible module", "answers as version 1.12.6"]);
    }
    in_mode(&w, "terraform", &["plan"]).ok();
}

/// Returns the workspace of a configuration, planned or applied in the mode of OpenTofu and under the own name.
pub fn both(files: &[(&str, &str)], check: impl Fn(&Workspace, &dyn Fn(&[&str]) -> Ran)) {
    for mode in ["opentofu", "monoform"] {
        let w = Workspace::with(files);
        check(&w, &|args| in_mode(&w, mode, args));
    }
}

const ENABLED: &str = r#"
variable "on" {
  default = true
}
resource "terraform_data" "a" {
  input = 1
  lifecycle {
    enabled = var.on
  }
}
module "m" {
  source = "./m"
  lifecycle {
    enabled = var.on
  }
}
output "a" {
  value = try(terraform_data.a.output, "none")
}
output "m" {
  value = module.m != null ? module.m.x : "none"
}
"#;

fn disabled_resources_and_modules_are_null_and_destroyed() {
    let child = "resource \"terraform_data\" \"b\" {\n  input = \"x\"\n}\noutput \"x\" {\n  value = terraform_data.b.input\n}\n";
    both(&[("main.tf", ENABLED), ("m/main.tf", child)], |w, run| {
        run(&["apply", "-auto-approve", "-no-color"]).ok();
        let ran = run(&["plan", "-no-color", "-out=p", "-var=on=false"]).ok();
        for text in [
            "# terraform_data.a will be destroyed\n  # (because enabled is false)",
            "# (because module.m is not in configuration)",
            "~ a = 1 -> \"none\"",
            "~ m = \"x\" -> \"none\"",
            "Plan: 0 to add, 0 to change, 2 to destroy.",
        ] {
            assert!(ran.stdout.contains(text), "{text}\n{}", ran.all());
        }
        let ran = run(&["show", "-json", "p"]).ok();
        assert!(
            ran.stdout.contains("\"delete_because_enabled_false\""),
            "{}",
            ran.stdout
        );
        run(&["apply", "p"]).ok();
        assert!(
            !w.read("terraform.tfstate").contains("terraform_data"),
            "objects remain"
        );
        let ran = run(&["plan", "-no-color", "-var=on=false"]).ok();
        assert!(ran.stdout.contains("No changes."), "{}", ran.all());
        // A resource with `enabled` keeps its object when `count` replaces it.
        run(&["apply", "-auto-approve", "-no-color"]).ok();
        w.write(
            "main.tf",
            &ENABLED
                .replacen("  lifecycle {\n    enabled = var.on\n  }", "  count = 1", 1)
                .replace("terraform_data.a.", "terraform_data.a[0]."),
        );
        let ran = run(&["apply", "-auto-approve", "-no-color"]).ok();
        assert!(ran.stdout.contains("0 added, 0 changed, 0 destroyed"), "{}", ran.all());
        w.write("main.tf", ENABLED);
        let ran = run(&["plan", "-no-color"]).ok();
        assert!(
            ran.stdout.contains("terraform_data.a[0] has moved to terraform_data.a"),
            "{}",
            ran.all()
        );
        run(&["destroy", "-auto-approve", "-no-color"]).ok();
    });
    for (value, text) in [
        ("null", "is null"),
        ("sensitive(true)", "is sensitive"),
        ("[]", "must be true or false"),
        ("terraform_data.b.id == \"a\"", "is not known before apply"),
    ] {
        let main = format!(
            "resource \"terraform_data\" \"b\" {{}}\nresource \"terraform_data\" \"a\" {{\n  lifecycle {{\n    enabled = {value}\n  }}\n}}\n"
        );
        both(&[("main.tf", &main)], |_, run| {
            run(&["plan", "-no-color"]).fails_with(&["Invalid enabled argument", text]);
        });
    }
    let main = "resource \"terraform_data\" \"a\" {\n  count = 1\n  lifecycle {\n    enabled = true\n  }\n}\n";
    both(&[("main.tf", main)], |w, run| {
        run(&["validate", "-no-color"]).fails_with(&["Invalid combination of \"count\" and \"enabled\""]);
        in_mode(w, "terraform", &["validate", "-no-color"]).fails_with(&["Unsupported argument", "\"enabled\""]);
    });
}

fn prevent_destroy_depends_on_variables() {
    let main = r#"
variable "protected" {
  default = true
}
resource "terraform_data" "a" {
  input            = 1
  triggers_replace = [tofu.workspace, var.n]
  lifecycle {
    prevent_destroy = var.protected && var.n > 0
  }
}
variable "n" {
  default = 1
}
"#;
    both(&[("main.tf", main)], |w, run| {
        run(&["apply", "-auto-approve", "-no-color"]).ok();
        assert!(w.read("terraform.tfstate").contains("\"default\""), "the workspace");
        run(&["plan", "-no-color", "-var=n=2"]).fails_with(&["Instance cannot be destroyed", "Change its value"]);
        run(&["destroy", "-auto-approve", "-no-color"]).fails_with(&["Instance cannot be destroyed"]);
        run(&["plan", "-no-color", "-var=n=2", "-var=protected=false"]).ok();
        run(&["destroy", "-auto-approve", "-no-color", "-var=protected=false"]).ok();
        for (value, text) in [
            ("\"x\"", "Invalid value for prevent_destroy"),
            ("sensitive(true)", "Invalid value for prevent_destroy"),
            ("each.key == \"\"", "Invalid reference in prevent_destroy"),
        ] {
            let main = format!(
                "resource \"terraform_data\" \"a\" {{\n  for_each = toset([\"a\"])\n  lifecycle {{\n    prevent_destroy = {value}\n  }}\n}}\n"
            );
            w.write("main.tf", &main);
            run(&["validate", "-no-color"]).fails_with(&[text]);
        }
        w.write("main.tf", main);
        in_mode(w, "terraform", &["validate", "-no-color"]).fails_with(&["Variables not allowed"]);
    });
}

fn language_block_selects_versions() {
    let checked = |text: &str, summary: &str| {
        both(&[("main.tf", text)], |w, run| {
            let ran = run(&["validate", "-no-color"]);
            match summary {
                "" => assert!(!ran.ok().all().contains("Warning"), "{text}"),
                _ => assert!(ran.all().contains(summary), "{text}\n{}", ran.all()),
            }
            in_mode(w, "terraform", &["validate", "-no-color"]).fails_with(&["Unsupported block type"]);
        });
    };
    for (body, summary) in [
        (
            "compatible_with {\n    opentofu = \">= 1.12, < 2.0\"\n    other = 5\n  }\n  edition = tofu2024\n  experiments = []",
            "",
        ),
        (
            "compatible_with {\n    opentofu = \">= 1.13\"\n  }\n  nonsense = 1",
            "Incompatible module",
        ),
        (
            "compatible_with {\n    opentofu = \">= 1.10\"\n  }",
            "Ineffective version constraint",
        ),
        ("edition = tofu2025", "Unsupported language edition"),
        ("edition = \"tofu2024\"", "Invalid language edition"),
        ("experiments = [x]", "Unknown experiment keyword"),
        (
            "compatible_with {\n    opentofu = \">= 1.12\"\n  }\n  compatible_with {\n    opentofu = \">= 1.12\"\n  }",
            "Duplicate compatible_with block",
        ),
    ] {
        checked(&format!("language {{\n  {body}\n}}\n"), summary);
    }
    both(&[("main.tf", ""), ("override.tf", "language {}\n")], |_, run| {
        run(&["validate", "-no-color"]).fails_with(&["Language selections in override file"]);
    });
    let json = "{\"language\": {\"compatible_with\": {\"opentofu\": \">= 1.13\"}}}";
    both(&[("main.tf.json", json)], |_, run| {
        run(&["validate", "-no-color"]).fails_with(&["Incompatible module"]);
    });
}

fn removed_block_without_lifecycle_has_the_meaning_of_the_mode() {
    for (mode, total, warned) in [
        ("opentofu", "will no longer be managed by OpenTofu", true),
        ("monoform", "0 to add, 0 to change, 1 to destroy", true),
        ("terraform", "0 to add, 0 to change, 1 to destroy", false),
    ] {
        let w = Workspace::with(&[("main.tf", "resource \"terraform_data\" \"a\" {}\n")]);
        in_mode(&w, mode, &["apply", "-auto-approve"]).ok();
        w.write("main.tf", "removed {\n  from = terraform_data.a\n}\n");
        let ran = in_mode(&w, mode, &["plan", "-no-color"]).ok();
        assert!(ran.stdout.contains(total), "{mode}\n{}", ran.all());
        let text = "Missing lifecycle from the removed block";
        assert_eq!(ran.all().contains(text), warned, "{mode}\n{}", ran.all());
    }
}

fn settings_of_a_backend_depend_on_variables() {
    let main = |path: &str| {
        format!(
            "variable \"name\" {{\n  default = \"one\"\n}}\nvariable \"secret\" {{\n  default   = \"x\"\n  sensitive = true\n}}\n\
             variable \"unset\" {{\n  type = string\n}}\nlocals {{\n  path = \"${{var.name}}-${{terraform.workspace}}.tfstate\"\n}}\n\
             resource \"terraform_data\" \"a\" {{}}\nterraform {{\n  backend \"local\" {{\n    path = {path}\n  }}\n}}\n"
        )
    };
    let unset = "-var=unset=u";
    both(&[("main.tf", &main("local.path"))], |w, run| {
        run(&["init", "-no-color"]).ok();
        run(&["apply", "-auto-approve", unset]).ok();
        assert!(w.exists("one-default.tfstate"), "the state is elsewhere");
        assert!(run(&["state", "list"]).ok().stdout.contains("terraform_data.a"));
        // Another value of the variable selects another backend.
        run(&["plan", "-no-color", unset, "-var=name=two"]).fails_with(&["Backend initialization required"]);
        run(&["state", "list", "-var=name=two", unset]).fails_with(&["Backend initialization required"]);
        for (path, summary) in [
            ("var.secret", "Sensitive value not allowed"),
            ("var.unset", "Required variable not set"),
            ("terraform_data.a.id", "Dynamic value in static context"),
            ("var.none", "Reference to undeclared input variable"),
        ] {
            w.write("main.tf", &main(path));
            run(&["state", "list"]).fails_with(&[summary]);
        }
        w.write("main.tf", &main("\"${lower(\"ONE\")}-default.tfstate\""));
        run(&["plan", "-no-color", unset]).ok();
        in_mode(w, "terraform", &["plan", "-no-color", unset]).fails_with(&["Function calls not allowed"]);
    });
}

fn sources_of_modules_depend_on_variables() {
    let main = r#"
variable "which" {
  default = "a"
}
locals {
  dir = "./${var.which}"
}
module "outer" {
  source = "./outer"
  dir    = upper(local.dir) == "" ? "" : "../${var.which}"
}
module "direct" {
  source = local.dir
}
output "all" {
  value = "${module.outer.name} ${module.direct.name}"
}
"#;
    let outer = "variable \"dir\" {}\nmodule \"inner\" {\n  source = var.dir\n}\noutput \"name\" {\n  value = module.inner.name\n}\n";
    let named = |name: &str| format!("output \"name\" {{\n  value = \"{name}\"\n}}\n");
    let (a, b) = (named("first"), named("second"));
    let files = [
        ("main.tf", main),
        ("outer/main.tf", outer),
        ("a/main.tf", &*a),
        ("b/main.tf", &*b),
    ];
    both(&files, |w, run| {
        let ran = run(&["plan", "-no-color"]).ok();
        assert!(ran.stdout.contains("all = \"first first\""), "{}", ran.all());
        let ran = run(&["plan", "-no-color", "-var=which=b", "-out=p"]).ok();
        assert!(ran.stdout.contains("all = \"second second\""), "{}", ran.all());
        run(&["apply", "p"]).ok();
        assert!(run(&["output", "-var=which=b"]).ok().stdout.contains("second second"));
        in_mode(w, "terraform", &["plan", "-no-color"]).fails_with(&["Unknown module source"]);
        w.write(
            "main.tf",
            &main.replacen("default = \"a\"", "default = \"a\"\n  const   = false", 1),
        );
        run(&["plan", "-no-color"]).fails_with(&["Unable to use variable in static context"]);
        w.write("main.tf", "resource \"terraform_data\" \"a\" {}\nmodule \"outer\" {\n  source = \"./outer\"\n  dir    = terraform_data.a.id\n}\n");
        run(&["plan", "-no-color"]).fails_with(&["Unknown module source"]);
    });
}

fn settings_and_plugins_of_the_user_are_at_the_paths_of_the_mode() {
    let w = Workspace::with(&[("main.tf", "")]);
    let home = w.home();
    let (config, data) = (home.join("config"), home.join("data"));
    let write = |path: &std::path::Path| {
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        std::fs::write(path, "disable_checkpoint = true\n").expect("a file");
    };
    let file = |mode: &str, xdg: bool| {
        let mut command = w.command(monoform());
        command.env("MONOFORM_MODE", mode).arg("doctor");
        if xdg {
            command.env("XDG_CONFIG_HOME", &config).env("XDG_DATA_HOME", &data);
        }
        let text = ran(command.output().expect("the program starts")).all();
        let found = ["/.terraformrc", "/.tofurc", "/config/opentofu/tofurc"].into_iter();
        let found: Vec<&str> = found.filter(|name| text.contains(name)).collect();
        (found.concat(), text.contains("/data/opentofu/plugins"))
    };
    let expect = |mode: &str, xdg: bool, path: &str, plugins: bool| {
        assert_eq!(file(mode, xdg), (path.to_owned(), plugins), "{mode}, XDG: {xdg}");
    };
    write(&config.join("opentofu/tofurc"));
    std::fs::create_dir_all(data.join("opentofu/plugins")).expect("a directory");
    expect("opentofu", true, "/config/opentofu/tofurc", true);
    expect("opentofu", false, "", false);
    expect("terraform", true, "", false);
    write(&home.join(".terraformrc"));
    expect("opentofu", true, "/.terraformrc", true);
    write(&home.join(".tofurc"));
    expect("opentofu", true, "/.tofurc", true);
    expect("opentofu", false, "/.tofurc", false);
    expect("terraform", true, "/.terraformrc", false);
    expect("monoform", true, "/.terraformrc", false);
}

fn forgotten_objects_are_counted_and_fail_a_destroy() {
    let w = Workspace::with(&[(
        "main.tf",
        "resource \"terraform_data\" \"a\" {\n  lifecycle {\n    destroy = false\n  }\n}\n",
    )]);
    let run = |args: &[&str]| in_mode(&w, "opentofu", args);
    let apply = || drop(run(&["apply", "-auto-approve"]).ok());
    apply();
    let ran = run(&["destroy", "-auto-approve", "-no-color"]);
    assert!(
        ran.status == 1
            && ran
                .stdout
                .contains("Plan: 0 to add, 0 to change, 0 to destroy, 1 to forget.")
            && ran.stderr.contains("left behind forgotten instances"),
        "{}",
        ran.all()
    );
    assert!(run(&["state", "list"]).ok().stdout.is_empty());
    apply();
    let ran = run(&["destroy", "-auto-approve", "-no-color", "-suppress-forget-errors"]).ok();
    assert!(
        ran.stdout.contains("Destroy complete! Resources: 0 destroyed."),
        "{}",
        ran.all()
    );
    apply();
    let ran = run(&["plan", "-destroy", "-json"]).ok();
    assert!(ran.stdout.contains("\"forget\":1"), "{}", ran.all());
    w.write("main.tf", "removed {\n  from = terraform_data.a\n}\n");
    let ran = run(&["apply", "-auto-approve", "-no-color"]).ok();
    assert!(
        ran.stdout
            .contains("Apply complete! Resources: 0 added, 0 changed, 0 destroyed, 1 forgotten."),
        "{}",
        ran.all()
    );
    // Under its own name, the totals and the status are those of Terraform.
    w.write(
        "main.tf",
        "resource \"terraform_data\" \"a\" {\n  lifecycle {\n    destroy = false\n  }\n}\n",
    );
    w.run(&["apply", "-auto-approve"]).ok();
    let ran = w.run(&["destroy", "-auto-approve", "-no-color"]).ok();
    assert!(
        ran.stdout.contains("Plan: 0 to add, 0 to change, 0 to destroy."),
        "{}",
        ran.all()
    );
}

fn states_keep_their_providers_where_translation_is_off() {
    let w = Workspace::with(&[("main.tf", "resource \"null_resource\" \"a\" {}\n")]);
    in_mode(&w, "terraform", &["apply", "-auto-approve"]).ok();
    w.write("main.tf", "");
    let planned = |translation: &str| {
        let run = |args: &[&str]| {
            let mut command = w.command(monoform());
            command
                .env("MONOFORM_MODE", "opentofu")
                .env("OPENTOFU_STATEFILE_PROVIDER_ADDRESS_TRANSLATION", translation)
                .args(args);
            ran(command.output().expect("the program starts")).ok()
        };
        run(&["plan", "-out=p"]);
        let shown = run(&["show", "-json", "p"]).stdout;
        let hosts = ["registry.terraform.io", "registry.opentofu.org"].into_iter();
        let found = hosts.filter(|host| shown.contains(&format!("\"provider_name\":\"{host}/hashicorp/null\"")));
        found.collect::<Vec<_>>().concat()
    };
    assert_eq!(planned("0"), "registry.terraform.io");
    assert_eq!(planned("1"), "registry.opentofu.org");
}

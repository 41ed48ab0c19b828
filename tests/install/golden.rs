//! Messages about a provider that cannot be found, selected, verified or started: each in full, as in `golden.txt`. With
//! `MONOFORM_BLESS` in the environment the file is written instead, to be read before it is committed.

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use support::Workspace;
use support::registry::platform;

/// Writes a plugin that ends at once, which suffices for tests that do not start it.
fn plugin(w: &Workspace, path: &str) {
    w.write(path, "#!/bin/sh\necho 'no such luck' >&2\nexit 3\n");
    let file = w.dir().join(path);
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).expect("permissions");
}

fn requiring(source: &str, constraint: &str) -> String {
    let version = if constraint.is_empty() {
        String::new()
    } else {
        format!(", version = \"{constraint}\"")
    };
    format!("terraform {{\n  required_providers {{\n    x = {{ source = \"{source}\"{version} }}\n  }}\n}}\n")
}

fn locked(source: &str, version: &str, hash: &str) -> String {
    format!("provider \"{source}\" {{\n  version = \"{version}\"\n  hashes  = [\"{hash}\"]\n}}\n")
}

/// Preparation of a workspace, and the command to run.
struct Case {
    name: &'static str,
    prepare: fn(Workspace) -> Workspace,
    args: &'static [&'static str],
}

const fn case(name: &'static str, args: &'static [&'static str], prepare: fn(Workspace) -> Workspace) -> Case {
    Case { name, prepare, args }
}

const ACME: &str = "example.com/acme/x";
const PLAN: &[&str] = &["plan"];
const INIT: &[&str] = &["init"];

const CASES: &[Case] = &[
    case("nowhere", PLAN, |w| {
        w.write("main.tf", &requiring(ACME, "~> 1.0"));
        w
    }),
    case("here in other versions only", PLAN, |w| {
        w.write("main.tf", &requiring("hashicorp/x", "~> 2.0"));
        plugin(&w, "terraform.d/plugins/terraform-provider-x_v1.4.0");
        plugin(&w, "terraform.d/plugins/terraform-provider-x_v2.0.0-beta1");
        w
    }),
    case("a file without a namespace", PLAN, |w| {
        w.write("main.tf", &requiring("acme/x", ""));
        plugin(&w, "terraform.d/plugins/terraform-provider-x_v1.4.0");
        w
    }),
    case("locked, but not installed", PLAN, |w| {
        w.write("main.tf", &requiring(ACME, ""));
        w.write(".terraform.lock.hcl", &locked(ACME, "1.2.3", "h1:x"));
        w
    }),
    case("locked in a version that will not do", PLAN, |w| {
        w.write("main.tf", &requiring(ACME, "~> 2.0"));
        w.write(".terraform.lock.hcl", &locked(ACME, "1.2.3", "h1:x"));
        w
    }),
    case("built in as another major version", PLAN, |w| {
        w.write("main.tf", &requiring("hashicorp/null", "~> 9.0"));
        w
    }),
    case("built in, but switched off", PLAN, |w| {
        w.write("main.tf", &requiring("hashicorp/null", ""));
        w.env("MONOFORM_DISABLE_INTERNAL_PLUGINS", "*")
    }),
    case("near a name that is there", PLAN, |w| {
        w.write("main.tf", "resource \"nul_resource\" \"a\" {}\n");
        w
    }),
    case("in another namespace", PLAN, |w| {
        w.write(
            "main.tf",
            &format!("{}\nresource \"x_y\" \"z\" {{}}\n", requiring("acme/null", "")),
        );
        w
    }),
    case("here for another platform only", PLAN, |w| {
        w.write("main.tf", &requiring(ACME, ""));
        plugin(
            &w,
            "terraform.d/plugins/example.com/acme/x/1.1.0/plan9_mips/terraform-provider-x",
        );
        w
    }),
    case("newer for another platform", INIT, |w| {
        w.write("main.tf", &requiring(ACME, ""));
        plugin(
            &w,
            "terraform.d/plugins/example.com/acme/x/1.1.0/plan9_mips/terraform-provider-x",
        );
        let here = format!(
            "terraform.d/plugins/example.com/acme/x/1.0.0/{}/terraform-provider-x",
            platform()
        );
        plugin(&w, &here);
        w
    }),
    case("needed by the state", PLAN, |w| {
        w.write("main.tf", "");
        let state = r#"{"version":4,"terraform_version":"1.11.4","serial":1,"lineage":"a","outputs":{},"resources":[{"mode":"managed","type":"x_y","name":"z","provider":"provider[\"example.com/acme/x\"]","instances":[]}]}"#;
        w.write("terraform.tfstate", state);
        w
    }),
    case("built in, and exactly another version is required", PLAN, |w| {
        w.write("main.tf", &requiring("hashicorp/null", "3.2.0"));
        w.env("MONOFORM_EXACT_INTERNAL_PLUGINS", "*")
    }),
    case("part of the language, with a version", INIT, |w| {
        w.write("main.tf", &requiring("terraform.io/builtin/terraform", "1.0"));
        w
    }),
    case("no part of the language", PLAN, |w| {
        w.write("main.tf", &requiring("terraform.io/builtin/x", ""));
        w
    }),
    case("a namespace that nobody has", PLAN, |w| {
        w.write("main.tf", &requiring("a/b/c/d", ""));
        w
    }),
    case("under development, but not there", PLAN, |w| {
        w.write("main.tf", &requiring(ACME, ""));
        let overrides = format!("dev_overrides {{\n    \"{ACME}\" = \"{}\"\n  }}", w.dir().display());
        w.write(
            "../home/.terraformrc",
            &format!("provider_installation {{\n  {overrides}\n  direct {{}}\n}}\n"),
        );
        w
    }),
    case("installed from nowhere", INIT, |w| {
        w.write("main.tf", &requiring(ACME, ""));
        w.write(
            "../home/.terraformrc",
            "provider_installation {\n  direct {\n    exclude = [\"example.com/*/*\"]\n  }\n}\n",
        );
        w
    }),
    case("installed from a mirror that has none", INIT, |w| {
        w.write("main.tf", &requiring(ACME, ">= 1.0"));
        plugin(&w, "given/example.com/acme/xx/1.0.0/plan9_mips/terraform-provider-xx");
        w
    }),
    case("a method that does not exist", INIT, |w| {
        w.write("main.tf", &requiring(ACME, ""));
        w.write("../home/.terraformrc", "provider_installation {\n  telepathy {}\n}\n");
        w
    }),
    case("a lock file that is none", INIT, |w| {
        w.write("main.tf", &requiring(ACME, ""));
        w.write(".terraform.lock.hcl", "provider \"x\" {\n  version = \"1\"\n}\n");
        w
    }),
    case(
        "a lock file that must not change",
        &["init", "-lockfile=readonly"],
        |w| {
            w.write("main.tf", &requiring("hashicorp/x", ""));
            plugin(&w, "terraform.d/plugins/terraform-provider-x_v1.4.0");
            w
        },
    ),
    case("another package than the one that was locked", INIT, |w| {
        w.write("main.tf", &requiring("hashicorp/x", ""));
        plugin(&w, "terraform.d/plugins/terraform-provider-x_v1.4.0");
        w.write(
            ".terraform.lock.hcl",
            &locked("registry.terraform.io/hashicorp/x", "1.4.0", "h1:other"),
        );
        w
    }),
    case("a package that was changed since", PLAN, |w| {
        w.write(
            "main.tf",
            &format!("{}\nresource \"x_y\" \"z\" {{}}\n", requiring("hashicorp/x", "")),
        );
        plugin(&w, "terraform.d/plugins/terraform-provider-x_v1.4.0");
        w.run(&["init"]).ok();
        plugin(&w, "terraform.d/plugins/terraform-provider-x_v1.4.0.new");
        w.write("terraform.d/plugins/terraform-provider-x_v1.4.0", "changed");
        w
    }),
    case("in the directory of the configuration, and not recorded", PLAN, |w| {
        w.write("main.tf", &requiring("hashicorp/x", ""));
        plugin(&w, "terraform.d/plugins/terraform-provider-x_v1.4.0");
        w
    }),
    case("one that ends at once", PLAN, |w| {
        w.write(
            "main.tf",
            &format!("{}\nresource \"x_y\" \"z\" {{}}\n", requiring("hashicorp/x", "")),
        );
        plugin(&w, "../home/.terraform.d/plugins/terraform-provider-x_v1.4.0");
        w
    }),
    case("one that runs nowhere", PLAN, |w| {
        w.write(
            "main.tf",
            &format!("{}\nresource \"x_y\" \"z\" {{}}\n", requiring(ACME, "")),
        );
        let reattach = r#"{"example.com/acme/x":{"Protocol":"grpc","ProtocolVersion":6,"Addr":{"Network":"unix","String":"/nowhere"}}}"#;
        w.env("TF_REATTACH_PROVIDERS", reattach)
    }),
    case("running, said in a way that cannot be understood", PLAN, |w| {
        w.write("main.tf", &requiring(ACME, ""));
        w.env(
            "TF_REATTACH_PROVIDERS",
            "{\"example.com/acme/x\":{\"Addr\":{\"Network\":\"pigeon\",\"String\":\"\"}}}",
        )
    }),
    case("a provisioner near a name that is there", PLAN, |w| {
        w.write(
            "main.tf",
            "resource \"terraform_data\" \"a\" {\n  provisioner \"local-exce\" {}\n}\n",
        );
        w
    }),
    case("a provisioner that is nowhere", PLAN, |w| {
        w.write(
            "main.tf",
            "resource \"terraform_data\" \"a\" {\n  provisioner \"cook\" {}\n}\n",
        );
        w
    }),
];

/// Replaces the text between the first `before` and the next `after` by dots. A text without these remains as it is.
fn without(text: &str, before: &str, after: &str) -> String {
    let parts = text.split_once(before);
    let parts = parts.and_then(|(head, rest)| Some((head, rest.split_once(after)?.1)));
    parts.map_or_else(
        || text.to_owned(),
        |(head, tail)| format!("{head}{before}…{after}{tail}"),
    )
}

#[test]
fn every_message() {
    let mut found = String::new();
    for Case { name, prepare, args } in CASES {
        let w = prepare(Workspace::new());
        let share = w.dir().join("../share").display().to_string();
        let w = w.env("XDG_DATA_DIRS", share.replace("/work/..", ""));
        let mut args: Vec<&str> = args.to_vec();
        args.push("-no-color");
        if *name == "installed from a mirror that has none" {
            args.push("-plugin-dir=given");
        }
        let ran = w.run(&args);
        assert_eq!(ran.status, 1, "{name}: {}", ran.all());
        // Line breaks depend on the terminal's width and on the length of paths, so paragraphs are joined, but
        // lists are not.
        let root = w.dir().parent().expect("a parent").display().to_string();
        let mut message = String::new();
        for line in ran.stderr.trim().lines() {
            let joins =
                !line.is_empty() && !line.starts_with("  ") && !message.is_empty() && !message.ends_with("\n\n");
            if joins && message.ends_with('\n') {
                message.pop();
                message.push(' ');
            }
            let _ = writeln!(message, "{line}");
        }
        // The messages are compared without the build directory and the list of built-in plugins.
        let beside = Path::new(support::monoform()).parent().expect("a directory");
        let message = message
            .replace(&root, "ROOT")
            .replace(&beside.display().to_string(), "BESIDE")
            .replace(&platform(), "PLATFORM");
        let message = without(&message, "Built in are: ", ".");
        let message = without(&message, "provider is version ", ",");
        let message = without(&message, "built in as version ", ",");
        let _ = write!(found, "== {name}\n\n{}\n\n", message.trim());
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/install/golden.txt");
    if std::env::var_os("MONOFORM_BLESS").is_some() {
        std::fs::write(&path, &found).expect("a file");
    }
    let expected = std::fs::read_to_string(&path).expect("the messages");
    let sections = |text: &str| text.split("== ").map(str::to_owned).collect::<Vec<_>>();
    for (found, expected) in sections(&found).iter().zip(&sections(&expected)) {
        assert_eq!(found, expected);
    }
    assert_eq!(found, expected);
}

//! Suggestions of the name that was probably meant, for misspelt words on the command line and in a configuration.

use std::io::Write as _;
use std::process::Stdio;

use support::{Ran, Workspace, monoform, words};

pub const TESTS: &[(&str, fn())] = &[
    ("suggestions::of_commands_and_flags", commands_and_flags),
    ("suggestions::of_values_of_flags", values),
    ("suggestions::of_addresses", addresses),
    ("suggestions::of_names_in_a_configuration", configuration),
];

const MAIN: &str = r#"
variable "region" { default = "x" }

resource "terraform_data" "server" { count = 1 }

module "network" { source = "./network" }

output "address" { value = 1 }
"#;

/// Returns an applied directory with a second workspace.
fn applied() -> Workspace {
    let w = Workspace::with(&[
        ("main.tf", MAIN),
        ("network/main.tf", "resource \"terraform_data\" \"subnet\" {}\n"),
        ("one.tftest.hcl", "run \"one\" {}\n"),
    ]);
    w.run(&["init"]).ok();
    w.run(&["apply", "-auto-approve"]).ok();
    w.run(&["workspace", "new", "production"]).ok();
    w.run(&["workspace", "select", "default"]).ok();
    w
}

/// Checks that a command fails with this suggestion.
#[track_caller]
fn suggests(w: &Workspace, arguments: &[&str], name: &str) {
    let ran = w.run(arguments);
    assert_ne!(ran.status, 0, "{}", ran.all());
    says(&ran, name);
}

#[track_caller]
fn says(ran: &Ran, name: &str) {
    let said = words(&format!("{}{}", ran.stdout, ran.stderr));
    let expected = format!("Did you mean {name}?");
    assert!(said.contains(&expected), "{expected:?} is not in\n{}", ran.all());
}

fn commands_and_flags() {
    let w = Workspace::new();
    for (arguments, name) in [
        (&["aply"][..], "\"apply\""),
        (&["state", "lst"], "\"list\""),
        (&["workspace", "selct"], "\"select\""),
        (&["providers", "-jsno"], "-json"),
        (&["help", "enviroment"], "\"environment\""),
        (&["help", "state", "lst"], "\"state list\""),
        (&["-chidr=x", "plan"], "-chdir="),
        (&["-versoin"], "-version"),
        (&["plan", "-otu=p"], "-out"),
        (&["plan", "--refresh-onyl"], "-refresh-only"),
        (&["state", "mv", "-dry-rnu", "a.b", "a.c"], "-dry-run"),
        (&["completion", "bahs"], "\"bash\""),
    ] {
        suggests(&w, arguments, name);
    }
    // No command has a similar name.
    let far = w.run(&["xyzzy"]);
    assert!(far.status == 1 && !far.all().contains("Did you mean"), "{}", far.all());
}

fn values() {
    let w = applied();
    for (arguments, name) in [
        (&["workspace", "select", "prodution"][..], "\"production\""),
        (&["workspace", "delete", "prodution"], "\"production\""),
        (&["output", "adress"], "\"address\""),
        (&["plan", "-var=regoin=y"], "\"region\""),
        (&["graph", "-type=plna"], "\"plan\""),
        (&["graph", "-format=mermiad"], "\"mermaid\""),
    ] {
        suggests(&w, arguments, name);
    }
    says(&w.run(&["test", "-filter=oen.tftest.hcl"]), "\"one.tftest.hcl\"");
    w.write("terraform.tfvars", "regoin = \"y\"\n");
    says(&w.run(&["plan"]).ok(), "\"region\"");
}

fn addresses() {
    let w = applied();
    for (arguments, name) in [
        (
            &["state", "show", "terraform_data.servr[0]"][..],
            "terraform_data.server[0]",
        ),
        (&["state", "show", "terraform_data.server"], "terraform_data.server[0]"),
        (&["state", "list", "module.netwrk"], "module.network"),
        (&["state", "rm", "terraform_data.servr"], "terraform_data.server"),
        (
            &[
                "state",
                "mv",
                "module.network.terraform_data.subnets",
                "terraform_data.x",
            ],
            "module.network.terraform_data.subnet",
        ),
        (&["taint", "terraform_data.server"], "terraform_data.server[0]"),
        (&["untaint", "terraform_data.servre[0]"], "terraform_data.server[0]"),
        (
            &["plan", "-strict-addresses", "-target=terraform_data.servr"],
            "terraform_data.server",
        ),
        (
            &["plan", "-strict-addresses", "-target=module.netwrk"],
            "module.network",
        ),
        (&["plan", "-exclude=terraform_data.servr"], "terraform_data.server"),
        (
            &["plan", "-strict-addresses", "-replace=terraform_data.server[1]"],
            "terraform_data.server[0]",
        ),
        (&["import", "terraform_data.servr", "x"], "terraform_data.server"),
        (
            &["import", "module.netwrk.terraform_data.subnet", "x"],
            "module.network",
        ),
        (&["explain", "terraform_data.servr"], "terraform_data.server"),
    ] {
        suggests(&w, arguments, name);
    }
    let replaced = w.run(&[
        "state",
        "replace-provider",
        "terraform.io/builtin/terrafrom",
        "hashicorp/null",
    ]);
    says(&replaced.ok(), "terraform.io/builtin/terraform");
    w.write(
        "actions.tf",
        "action \"local_command\" \"greet\" {\n  config {\n    command = \"true\"\n  }\n}\n",
    );
    suggests(
        &w,
        &["plan", "-invoke=action.local_command.gret"],
        "action.local_command.greet",
    );
    let mut console = w
        .command(monoform())
        .args(["console", "-scope=module.netwrk"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("monoform starts");
    // The console may have ended before it has read anything.
    let _ = console.stdin.take().expect("its input").write_all(b"1\n");
    says(
        &support::ran(console.wait_with_output().expect("its output")),
        "module.network",
    );
}

/// Tests suggestions that have no case in `tests/validate`.
fn configuration() {
    for (text, name) in [
        (
            "provider \"random\" {\n  alias = \"west\"\n}\nresource \"random_pet\" \"x\" {\n  provider = random.wset\n}\n",
            "random.west",
        ),
        (
            "resource \"terraform_data\" \"x\" {\n  provisioner \"local-exec\" {\n    command = \"true\"\n    when = destory\n  }\n}\n",
            "\"destroy\"",
        ),
        (
            "resource \"terraform_data\" \"x\" {\n  provisioner \"local-exec\" {\n    command = \"true\"\n    on_failure = contineu\n  \
             }\n}\n",
            "\"continue\"",
        ),
        ("terraform {\n  backend \"loacl\" {}\n}\n", "\"local\""),
        (
            "output \"o\" {\n  value = provider::tim::rfc3339_parse(\"\")\n}\nterraform {\n  required_providers {\n    time = {\n      \
          source = \"hashicorp/time\"\n    }\n  }\n}\n",
            "\"time\"",
        ),
    ] {
        suggests(&Workspace::with(&[("main.tf", text)]), &["validate"], name);
    }
}

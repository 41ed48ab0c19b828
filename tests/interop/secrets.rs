//! A provider that returns a value for a write-only attribute. Each response that contains one is refused, as in Terraform, and the value
//! reaches neither the state nor a plan.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use support::{Workspace, needs};

use crate::{build, install_in_mirror};

const HEAD: &str = "terraform {\n  required_providers {\n    secrets = {\n      source = \"example.com/test/secrets\"\n    }\n  }\n}\n";
const LEAKED: &str = "leaked";

/// Request whose response is wrong, additional configuration, and expected error.
const FAULTS: [(&str, &str, &str); 8] = [
    ("plan", "", "Provider produced invalid plan"),
    // The older type system tolerates many errors, but not this one.
    ("legacy plan", "", "Provider produced invalid plan"),
    ("apply", "", "Provider produced invalid object"),
    ("legacy apply", "", "Provider produced invalid object"),
    ("read", "", "Provider produced invalid object"),
    ("upgrade", "", "Invalid resource state upgrade"),
    (
        "import",
        "import {\n  id = \"i\"\n  to = secrets_one.a\n}\n",
        "Import returned a non-null value for a write-only attribute",
    ),
    (
        "move",
        "moved {\n  from = terraform_data.a\n  to   = secrets_one.a\n}\n",
        "Provider returned invalid value",
    ),
];

fn provider() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| build("secrets", "secrets"))
}

pub fn values_of_write_only_attributes_are_refused() {
    let with_terraform = needs("terraform", "secrets::values_of_write_only_attributes_are_refused").is_some();
    for (fault, more, error) in FAULTS {
        let programs: &[&str] = if with_terraform { &["", "terraform"] } else { &[""] };
        for program in programs {
            let w = Workspace::new();
            install_in_mirror(&w, provider(), "example.com/test/secrets");
            let run = |args: &[&str]| match *program {
                "" => w.run(args),
                _ => w.terraform(args),
            };
            let apply = || run(&["apply", "-no-color", "-input=false", "-auto-approve"]);
            if fault == "move" {
                w.write("main.tf", "resource \"terraform_data\" \"a\" {}\n");
                run(&["init"]).ok();
                apply().ok();
            }
            let resource = format!("resource \"secrets_one\" \"a\" {{\n  fault  = \"{fault}\"\n  secret = \"x\"\n}}\n");
            w.write("main.tf", &format!("{HEAD}{resource}{more}"));
            run(&["init"]).ok();
            // An object must exist before it is read.
            if matches!(fault, "read" | "upgrade") {
                apply().ok();
            }
            apply().fails_with(&[error]);
            let state = std::fs::read_to_string(w.dir().join("terraform.tfstate")).unwrap_or_default();
            assert!(!state.contains(LEAKED), "{fault}: {state}");
        }
    }
}

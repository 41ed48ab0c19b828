//! A provider on version 2 of the plugin SDK: protocol 5, nested blocks, sets.

use serde_json::json;

use crate::{apply, install, listing, nothing_to_do, plans, shed, tamper, with_cli_config};
use support::Workspace;

const HEAD: &str = "provider \"shed\" {\n  directory = \"tools\"\n}\n";

fn axe(name: &str, weight: u32, rest: &str) -> String {
    format!(
        r#"
resource "shed_tool" "axe" {{
  name   = "{name}"
  weight = {weight}
  tags   = ["sharp", "heavy"]
  labels = {{ owner = "me" }}

  handle {{
    material = "ash"
    length   = 60
  }}
{rest}
}}

data "shed_weight" "axe" {{
  tool = shed_tool.axe.id
}}

output "weight" {{
  value = data.shed_weight.axe.weight
}}
"#
    )
}

const PARTS: &str =
    "  part {\n    name = \"head\"\n  }\n\n  part {\n    name   = \"wedge\"\n    serial = \"W1\"\n  }\n";

fn life(w: &Workspace) {
    w.write("main.tf", HEAD);
    w.write("axe.tf", &axe("Axe", 3, PARTS));
    plans(
        w,
        "Plan: 1 to add, 0 to change, 0 to destroy.",
        &[
            "  # shed_tool.axe will be created\n",
            "      + tags   = [\n          + \"heavy\",\n          + \"sharp\",\n        ]\n",
            "      + handle {\n          + length   = 60\n          + material = \"ash\"\n        }\n",
            "      + part {\n          + name   = \"head\"\n          + serial = (known after apply)\n        }\n",
        ],
    );
    apply(w, "Resources: 1 added, 0 changed, 0 destroyed.");
    let tool = w.attributes("shed_tool", "axe");
    assert_eq!(tool["handle"], json!([{"length": 60, "material": "ash"}]));
    assert_eq!(tool["tags"], json!(["heavy", "sharp"]));
    let mut parts = tool["part"].as_array().expect("parts").clone();
    parts.sort_by_key(|p| p["name"].to_string());
    assert_eq!(
        json!(parts),
        json!([{"name": "head", "serial": "serial-of-head"}, {"name": "wedge", "serial": "W1"}])
    );
    assert_eq!(w.run(&["output", "-raw", "weight"]).ok().stdout, "3");
    nothing_to_do(w);

    // The object is updated in place; one block of a set is removed, and another one stays.
    w.write(
        "axe.tf",
        &axe("Axe", 4, "  part {\n    name   = \"wedge\"\n    serial = \"W1\"\n  }\n"),
    );
    plans(
        w,
        "Plan: 0 to add, 1 to change, 0 to destroy.",
        &[
            "      ~ weight = 3 -> 4\n",
            "      - part {\n          - name   = \"head\" -> null\n",
        ],
    );
    apply(w, "Resources: 0 added, 1 changed, 0 destroyed.");
    assert_eq!(w.attributes("shed_tool", "axe")["id"], tool["id"]);
    assert_eq!(w.run(&["output", "-raw", "weight"]).ok().stdout, "4");
    nothing_to_do(w);

    // The object is replaced, and the new one is created before the old one is destroyed.
    let before = listing(w, "tools");
    let cbd = "  lifecycle {\n    create_before_destroy = true\n  }\n";
    w.write("axe.tf", &axe("Hatchet", 4, cbd));
    plans(
        w,
        "Plan: 1 to add, 0 to change, 1 to destroy.",
        &[
            "  # shed_tool.axe must be replaced\n+/- resource \"shed_tool\" \"axe\" {\n",
            "\"Axe\" -> \"Hatchet\" # forces replacement\n",
        ],
    );
    apply(w, "Resources: 1 added, 0 changed, 1 destroyed.");
    assert!(!before[0].exists());
    nothing_to_do(w);

    // A change by another program is detected.
    let file = listing(w, "tools").remove(0);
    tamper(&file, |tool| tool["labels"] = json!({"owner": "you", "since": "now"}));
    plans(
        w,
        "Plan: 0 to add, 1 to change, 0 to destroy.",
        &[
            "          ~ \"owner\" = \"you\" -> \"me\"\n",
            "          - \"since\" = \"now\" -> null\n",
        ],
    );
    apply(w, "Resources: 0 added, 1 changed, 0 destroyed.");
    std::fs::remove_file(&file).expect("a file");
    plans(w, "Plan: 1 to add, 0 to change, 0 to destroy.", &[]);

    // The object is imported by an apply.
    w.write(
        "tools/saw.tool.json",
        r#"{"name":"Saw","weight":2,"tags":["sharp"],"handle":[],"parts":[],"labels":{}}"#,
    );
    w.write(
        "saw.tf",
        r#"
import {
  to = shed_tool.saw
  id = "saw"
}

resource "shed_tool" "saw" {
  name   = "Saw"
  weight = 2
  tags   = ["sharp"]
}
"#,
    );
    apply(w, "Resources: 1 imported, 1 added, 0 changed, 0 destroyed.");
    nothing_to_do(w);
    assert_eq!(listing(w, "tools").len(), 2);

    w.run(&["destroy", "-no-color", "-auto-approve"])
        .ok()
        .shows(&["Destroy complete! Resources: 2 destroyed."]);
    assert!(listing(w, "tools").is_empty());
}

pub fn the_life_of_a_tool_by_a_file_name() {
    let provider = shed();
    let w = Workspace::new();
    std::fs::create_dir(w.dir().join("tools")).expect("a directory");
    install(
        provider,
        &w.home().join(".terraform.d/plugins"),
        "terraform-provider-shed_v1.2.3",
    );
    life(&w);
}

pub fn the_life_of_a_tool_under_development() {
    let provider = shed();
    let w = Workspace::new();
    std::fs::create_dir(w.dir().join("tools")).expect("a directory");
    let dir = w.home().join("development");
    install(provider, &dir, "terraform-provider-shed");
    let w = with_cli_config(
        w,
        &format!(
            "provider_installation {{\n  dev_overrides {{\n    \"hashicorp/shed\" = \"{}\"\n  }}\n  direct {{}}\n}}\n",
            dir.display()
        ),
    );
    w.write("main.tf", HEAD);
    w.run(&["plan", "-no-color"])
        .ok()
        .shows(&["Provider development overrides are in effect", "hashicorp/shed"]);
    life(&w);
}

pub fn mistakes_in_blocks() {
    let provider = shed();
    let w = Workspace::new();
    install(
        provider,
        &w.home().join(".terraform.d/plugins"),
        "terraform-provider-shed_v1.0.0",
    );
    let handle = "  handle {\n    material = \"ash\"\n  }\n";
    for (body, texts) in [
        (format!("  name = \"x\"\n{handle}{handle}"), &["handle", "line"][..]),
        (
            "  name = \"x\"\n  handle {\n  }\n".into(),
            &["must set the argument \"material\"", "line"],
        ),
        (
            "  name = \"x\"\n  handel {\n  }\n".into(),
            &["Unsupported block type", "Did you mean \"handle\"?"],
        ),
        (
            "  weight = \"light\"\n  name = \"x\"\n".into(),
            &["attribute \"weight\": a number is required", "main.tf line 7"],
        ),
        (
            "".into(),
            &["Missing required argument", "must set the argument \"name\""],
        ),
    ] {
        w.write(
            "main.tf",
            &format!("{HEAD}\n\nresource \"shed_tool\" \"x\" {{\n{body}}}\n"),
        );
        for command in ["validate", "plan"] {
            w.run(&[command, "-no-color"]).fails_with(texts);
        }
    }
    // The provider reports that the directory does not exist, at the line of the argument.
    w.write(
        "main.tf",
        &format!("{HEAD}\nresource \"shed_tool\" \"x\" {{\n  name = \"x\"\n}}\n"),
    );
    w.run(&["apply", "-no-color", "-auto-approve"])
        .fails_with(&["with shed_tool.x, on main.tf line 5", "no such file"]);
}

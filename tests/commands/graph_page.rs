//! `graph -format=html`: the page has all resources, their order, and what a plan does to them, and needs nothing else.

use serde_json::{Value as Json, json};
use support::Workspace;

/// The tests, by name.
pub const TESTS: &[(&str, fn())] = &[
    ("graph_page::it_has_what_the_plan_does", what_the_plan_does),
    ("graph_page::it_has_hundreds_of_resources", hundreds),
];

/// The data of a page.
fn data(page: &str) -> Json {
    let (_, rest) = page.split_once("id=\"data\">").expect("data");
    let (text, rest) = rest.split_once("</script>").expect("an end");
    assert!(!text.contains('<'), "{text}");
    assert!(rest.contains("draw();\n</script>"));
    // Nothing is loaded from anywhere: the name of the SVG namespace is no address.
    let addresses = page.matches("://").count();
    assert_eq!(addresses, page.matches("http://www.w3.org/2000/svg").count());
    assert!(!page.contains("src=") && !page.contains("href="));
    serde_json::from_str(text).expect("JSON")
}

fn what_the_plan_does() {
    let text = "resource \"terraform_data\" \"a\" {\n  count = 2\n  triggers_replace = \"1\"\n}\nmodule \"m\" {\n  source = \"./m\"\n  in = \
                terraform_data.a[0].id\n}\nresource \"terraform_data\" \"gone\" {}\n";
    let child = "variable \"in\" {}\nresource \"terraform_data\" \"b\" {\n  input = var.in\n}\n";
    let w = Workspace::with(&[("main.tf", text), ("m/main.tf", child)]);
    w.run(&["get"]).ok();
    w.run(&["apply", "-auto-approve"]).ok();
    let plain = data(&w.run(&["graph", "-format=html"]).ok().stdout);
    assert_eq!(plain["nodes"][0]["actions"], json!({}), "{plain:#}");
    let changed = text
        .replace("\"1\"", "\"2\"")
        .replace("resource \"terraform_data\" \"gone\" {}\n", "");
    w.write("main.tf", &changed);
    w.run(&["plan", "-out=p"]).ok();
    let page = data(&w.run(&["graph", "-format=html", "-plan=p"]).ok().stdout);
    assert_eq!(
        page,
        json!({
            "nodes": [
                {
                    "address": "terraform_data.a",
                    "module": "",
                    "label": "terraform_data.a",
                    "actions": {"replace": 2},
                },
                {
                    "address": "terraform_data.gone",
                    "module": "",
                    "label": "terraform_data.gone",
                    "actions": {"delete": 1},
                },
                {
                    "address": "module.m.terraform_data.b",
                    "module": "module.m",
                    "label": "terraform_data.b",
                    "actions": {"update": 1},
                },
            ],
            "edges": [[2, 0]],
        })
    );
    w.run(&["graph", "-format=html", "-type=plan"])
        .fails_with(&["Incompatible options"]);
}

fn hundreds() {
    let resource = |n: usize| match n {
        0 => "resource \"terraform_data\" \"r0\" {}\n".to_owned(),
        n => format!(
            "resource \"terraform_data\" \"r{n}\" {{\n  input = terraform_data.r{}.id\n}}\n",
            n / 2
        ),
    };
    let text: String = (0..300).map(resource).collect();
    let w = Workspace::with(&[("main.tf", &text)]);
    let page = data(&w.run(&["graph", "-format=html"]).ok().stdout);
    assert_eq!(page["nodes"].as_array().map(Vec::len), Some(300));
    assert_eq!(page["edges"].as_array().map(Vec::len), Some(299));
}

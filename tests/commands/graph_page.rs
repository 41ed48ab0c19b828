//! `graph -format=html`: the page has all resources, their order and the plan's changes, and needs no other file.

use serde_json::{Value as Json, json};
use support::{Workspace, needs};

pub const TESTS: &[(&str, fn())] = &[
    ("graph_page::it_has_what_the_plan_does", what_the_plan_does),
    ("graph_page::it_has_hundreds_of_resources", hundreds),
    ("graph_page::a_browser_draws_and_searches_it", in_a_browser),
];

/// Returns the data of a page.
fn data(page: &str) -> Json {
    let (_, rest) = page.split_once("id=\"data\">").expect("data");
    let (text, rest) = rest.split_once("</script>").expect("an end");
    assert!(!text.contains('<'), "{text}");
    assert!(rest.contains("draw();\n</script>"));
    // The page loads nothing: the name of the SVG namespace is no address.
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

/// Returns a configuration of 300 resources, each with a reference to another.
fn three_hundred() -> Workspace {
    let resource = |n: usize| match n {
        0 => "resource \"terraform_data\" \"r0\" {}\n".to_owned(),
        n => format!(
            "resource \"terraform_data\" \"r{n}\" {{\n  input = terraform_data.r{}.id\n}}\n",
            n / 2
        ),
    };
    let text: String = (0..300).map(resource).collect();
    Workspace::with(&[("main.tf", &text)])
}

fn hundreds() {
    let w = three_hundred();
    let page = data(&w.run(&["graph", "-format=html"]).ok().stdout);
    assert_eq!(page["nodes"].as_array().map(Vec::len), Some(300));
    assert_eq!(page["edges"].as_array().map(Vec::len), Some(299));
}

/// Script that searches in the page and clicks on a result. It puts its findings into the title, which a dump of the page
/// contains.
const IN_PAGE: &str = r#"<script>
const lit = () => [...document.querySelectorAll("g.node:not(.off)")].map((g) => g.dataset.address);
const listed = () => [...document.querySelectorAll("li:not(.gone)")].length;
const seek = (text) => { search.value = text; search.dispatchEvent(new Event("input")); };
const boxes = [...document.querySelectorAll("g.node")];
const places = new Set(boxes.map((g) => g.querySelector("rect").getAttribute("x") + "," + g.querySelector("rect").getAttribute("y")));
const found = { nodes: boxes.length, places: places.size, edges: document.querySelectorAll("path").length };
seek("create");
found.created = lit().length;
seek("data.r299");
found.searched = [lit(), listed(), told.textContent];
seek("");
document.querySelector('[data-address="terraform_data.r100"]').dispatchEvent(new Event("click"));
found.near = lit();
document.title = JSON.stringify(found);
</script>
</body>"#;

fn in_a_browser() {
    let Some(chromium) = needs("chromium", "graph_page::a_browser_draws_and_searches_it") else {
        return;
    };
    let w = three_hundred();
    w.run(&["plan", "-out=p"]).ok();
    let page = w.run(&["graph", "-format=html", "-plan=p"]).ok().stdout;
    w.write("page.html", &page.replacen("</body>", IN_PAGE, 1));
    let address = format!("file://{}", w.dir().join("page.html").display());
    let profile = format!("--user-data-dir={}", w.home().join("chromium").display());
    let switches = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--dump-dom",
    ];
    let ran = w
        .run_program(chromium, &[&switches[..], &[&profile, &address]].concat())
        .ok();
    let title = ran
        .stdout
        .split_once("<title>")
        .and_then(|(_, rest)| rest.split_once("</title>"));
    let (title, _) = title.unwrap_or_else(|| panic!("no title in {}", ran.all()));
    let found: Json = serde_json::from_str(title).unwrap_or_else(|e| panic!("{title}: {e}"));
    assert_eq!(
        found,
        json!({
            "nodes": 300,
            "places": 300,
            "edges": 299,
            "created": 300,
            "searched": [["terraform_data.r299"], 1, "1 of 300 resources"],
            "near": ["terraform_data.r100", "terraform_data.r200", "terraform_data.r201", "terraform_data.r50"],
        })
    );
}

//! `graph -format=html`: the page has all resources, their order and the plan's changes, and needs no other file.

use serde_json::{Value as Json, json};
use support::{Workspace, needs};

pub const TESTS: &[(&str, fn())] = &[
    ("graph_page::it_has_what_the_plan_does", what_the_plan_does),
    ("graph_page::it_has_hundreds_of_resources", hundreds),
    ("graph_page::a_browser_draws_and_searches_it", in_a_browser),
    ("graph_page::changes_are_reviewed_in_a_browser", reviewed),
];

/// Returns the data of a page, after checking that the page loads nothing.
fn data(page: &str) -> Json {
    let (_, rest) = page.split_once("id=\"data\">").expect("data");
    let (text, rest) = rest.split_once("</script>").expect("an end");
    assert!(!text.contains('<'), "{text}");
    assert!(rest.contains("start();\n</script>"));
    // The page loads nothing; the only URL-like text is the name of the SVG namespace.
    let addresses = page.matches("://").count();
    assert_eq!(addresses, page.matches("http://www.w3.org/2000/svg").count());
    assert!(page.contains("default-src 'none'"));
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
    let nodes = page["nodes"].as_array().expect("nodes");
    let shown: Vec<_> = nodes
        .iter()
        .map(|node| json!([node["address"], node["module"], node["label"], node["actions"]]))
        .collect();
    assert_eq!(
        shown,
        [
            json!(["terraform_data.a", "", "terraform_data.a", {"replace": 2}]),
            json!(["terraform_data.gone", "", "terraform_data.gone", {"destroy": 1}]),
            json!(["module.m.terraform_data.b", "module.m", "terraform_data.b", {"update": 1}]),
        ]
    );
    assert_eq!(page["edges"], json!([[2, 0]]));
    assert_eq!(page["plan"], "Plan: 2 to add, 1 to change, 3 to destroy.");
    assert_eq!(page["explain"], "monoform explain -plan=p ");
    // Each change contains its reason and its values.
    let changes = nodes[0]["changes"].as_array().expect("changes");
    assert_eq!(changes[1]["address"], "terraform_data.a[1]");
    assert_eq!(changes[1]["because"], json!(["triggers_replace"]));
    let text = changes[1]["text"].as_str().expect("a text");
    assert!(
        text.contains("# terraform_data.a[1] must be replaced")
            && text.contains("~ triggers_replace = \"1\" -> \"2\"\n"),
        "{text}"
    );
    w.run(&["graph", "-format=html", "-type=plan"])
        .fails_with(&["Incompatible options"]);
}

/// Returns a workspace with 300 resources. Each but the first refers to an earlier one.
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

/// Runs a script in a page with a browser, and returns what the script leaves in `result`. The script puts it into the title,
/// which a dump of the page contains.
fn driven(chromium: &std::path::Path, w: &Workspace, page: &str, script: &str) -> Json {
    let script = format!(
        "<script>\n{{\nlet result;\n{HELPERS}\n{script}\ndocument.title = JSON.stringify(result);\n}}\n</script>\n</body>"
    );
    w.write("page.html", &page.replacen("</body>", &script, 1));
    let address = format!("file://{}", w.dir().join("page.html").display());
    let profile = format!("--user-data-dir={}", w.home().join("chromium").display());
    let switches = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--window-size=1400,900",
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
    serde_json::from_str(title).unwrap_or_else(|e| panic!("{title}: {e}"))
}

const HELPERS: &str = r##"
const drawnBoxes = () => [...document.querySelectorAll("g.node")].map((g) => g.dataset.address).sort();
const listed = () => [...document.querySelectorAll("#list li")].map((li) => li.textContent);
const seek = (text) => { search.value = text; search.dispatchEvent(new Event("input")); };
const press = (key, on = document.body) => on.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
const click = (element) => element.dispatchEvent(new MouseEvent("click", { bubbles: true }));
const box = (address) => document.querySelector(`[data-address="${address}"]`);
"##;

fn in_a_browser() {
    let Some(chromium) = needs("chromium", "graph_page::a_browser_draws_and_searches_it") else {
        return;
    };
    let w = three_hundred();
    w.run(&["plan", "-out=p"]).ok();
    let page = w.run(&["graph", "-format=html", "-plan=p"]).ok().stdout;
    let script = r##"
const spots = new Set(boxes.map((b) => `${b.x},${b.y}`));
result = { boxes: boxes.length, places: spots.size, links: links.length, title: document.querySelector("h1").textContent };
// Nothing is wider or higher than its frame, and no two boxes overlap.
const over = (a, b) => a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
result.overlap = boxes.some((a, at) => boxes.slice(at + 1).some((b) => over(a, b)));
fit();
seek("data.r299");
result.searched = [listed(), told.textContent];
press("Enter", search);
result.chosen = [chosen.address, details.querySelector("pre").textContent.includes("# terraform_data.r299 will be created")];
seek("");
choose(places.get("terraform_data.r100"), true);
result.related = [...details.querySelectorAll("ul")].map((ul) => [...ul.children].map((li) => li.textContent));
press("Escape");
result.closed = details.hidden;
"##;
    let found = driven(&chromium, &w, &page, script);
    assert_eq!(
        found,
        json!({
            "boxes": 300,
            "places": 300,
            "links": 299,
            "title": "Plan: 300 to add, 0 to change, 0 to destroy.",
            "overlap": false,
            "searched": [["terraform_data.r299: create"], "1 of 300 resources found"],
            "chosen": ["terraform_data.r299", true],
            "related": [
                ["terraform_data.r50: create"],
                ["terraform_data.r200: create", "terraform_data.r201: create"],
            ],
            "closed": true,
        })
    );
}

fn reviewed() {
    let Some(chromium) = needs("chromium", "graph_page::changes_are_reviewed_in_a_browser") else {
        return;
    };
    let text = |replaced: &str| {
        format!(
            "resource \"terraform_data\" \"base\" {{}}\n\nresource \"terraform_data\" \"far\" {{}}\n\nmodule \"changed\" {{\n  \
             source  = \"./changed\"\n  trigger = \"{replaced}\"\n  base    = terraform_data.base.id\n}}\n\nmodule \"same\" {{\n  source \
             = \"./same\"\n}}\n"
        )
    };
    let changed = "variable \"trigger\" {}\n\nvariable \"base\" {}\n\nresource \"terraform_data\" \"r\" {\n  input            = \
                   var.base\n  triggers_replace = var.trigger\n}\n\nmodule \"inner\" {\n  source = \"./inner\"\n  in     = \
                   terraform_data.r.id\n}\n";
    let inner = "variable \"in\" {}\n\nresource \"terraform_data\" \"u\" {\n  input = var.in\n}\n";
    let w = Workspace::with(&[
        ("main.tf", &text("1")),
        ("changed/main.tf", changed),
        ("changed/inner/main.tf", inner),
        ("same/main.tf", "resource \"terraform_data\" \"s\" {}\n"),
    ]);
    w.run(&["get"]).ok();
    w.run(&["apply", "-auto-approve"]).ok();
    w.write("main.tf", &text("2"));
    w.run(&["plan", "-out=p"]).ok();
    let page = w.run(&["graph", "-format=html", "-plan=p"]).ok().stdout;
    let script = r##"
result = { first: drawnBoxes(), frames: frames.map((f) => f.module.path).sort(), list: listed() };
const inside = (a, b) => a.x >= b.x && a.y >= b.y && a.x + a.w <= b.x + b.w && a.y + a.h <= b.y + b.h;
result.nested = frames.every((f) => f.items.every((item) => inside(item, f)));
click(box("module.changed.terraform_data.r"));
result.why = details.querySelector("summary").textContent;
result.related = [...details.querySelectorAll("ul")].map((ul) => ul.textContent);
click(document.querySelector('[data-module="module.changed.module.inner"]'));
result.folded = drawnBoxes();
press("a");
result.all = drawnBoxes();
press("m");
press("Escape");
press("n");
press("n");
result.second = chosen.address;
const before = view.scale;
press("-");
result.smaller = view.scale < before;
"##;
    let found = driven(&chromium, &w, &page, script);
    assert_eq!(
        found,
        json!({
            // The page shows the resource that the change depends on, and no others.
            "first": ["module.changed.module.inner.terraform_data.u", "module.changed.terraform_data.r", "terraform_data.base"],
            "frames": ["", "module.changed", "module.changed.module.inner"],
            "list": ["module.changed.terraform_data.r: replace", "module.changed.module.inner.terraform_data.u: update"],
            "nested": true,
            "why": "module.changed.terraform_data.r: replace because of triggers_replace",
            "related": ["terraform_data.base", "module.changed.module.inner.terraform_data.u: update"],
            "folded": ["module.changed.module.inner", "module.changed.terraform_data.r", "terraform_data.base"],
            "all": [
                "module.changed.module.inner",
                "module.changed.terraform_data.r",
                "module.same",
                "terraform_data.base",
                "terraform_data.far",
            ],
            "second": "module.changed.module.inner.terraform_data.u",
            "smaller": true,
        })
    );
}

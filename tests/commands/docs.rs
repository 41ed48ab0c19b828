//! `docs`: pages about built-in resources and functions, with examples that can be copied.

use std::collections::BTreeSet;

use support::{Workspace, needs};

pub const TESTS: &[(&str, fn())] = &[
    ("docs::pages_say_what_there_is", pages),
    ("docs::examples_are_valid", examples),
    ("docs::installed_provider_has_pages", installed),
    ("docs::site_has_a_page_of_everything_and_no_broken_link", site),
    ("docs::site_is_searched_in_a_browser_from_a_file", searched),
];

fn pages() {
    let w = Workspace::new();
    w.run(&["docs", "random_pet"]).ok().shows(&[
        "random_pet: resource of the built-in provider registry.terraform.io/hashicorp/random",
        "  resource \"random_pet\" \"example\" {\n  }\n",
        "\nArguments:\n",
        "  length: number, decided by the provider if it is not set\n",
        "\nDecided by the provider:\n\n  id: string\n",
    ]);
    // A resource and a data source may have the same name.
    w.run(&["docs", "local_file"]).ok().shows(&[
        "local_file: resource of",
        "local_file: data source of",
        "  data \"local_file\" \"example\" {\n    filename = \"...\"\n  }\n",
        "  filename: string, required\n",
    ]);
    w.run(&["docs", "random"])
        .ok()
        .shows(&["random: built-in provider", "random_pet"]);
    w.run(&["docs", "local-exec"]).ok().shows(&[
        "local-exec: built-in provisioner",
        "  provisioner \"local-exec\" {\n    command = \"...\"\n  }\n",
    ]);
    w.run(&["docs", "upper"])
        .ok()
        .shows(&["upper(", "): function that returns string\n"]);
    w.run(&["docs", "provider::terraform::encode_expr"])
        .ok()
        .shows(&["provider::terraform::encode_expr(", "): function that returns string\n"]);
    w.run(&["docs", "random_pett"])
        .fails_with(&["Nothing of that name is known", "Did you mean \"random_pet\"?"]);
    w.run(&["docs", "upperr"]).fails_with(&["Did you mean \"upper\"?"]);
    w.run(&["docs"]).ok().shows(&[
        "Functions:\n\n  abs, ",
        "Built-in providers:\n\n  ",
        " random, ",
        "Provisioners:\n\n  file, local-exec, remote-exec\n",
        "\"monoform docs NAME\" describes one of them",
    ]);
    w.run(&["docs", "abs", "ceil"])
        .fails_with(&["Too many command line arguments"]);
    assert_eq!(std::fs::read_dir(w.dir()).expect("a directory").count(), 0);
}

fn installed() {
    let w = Workspace::with(&[(
        "main.tf",
        "terraform {\n  required_providers {\n    random = {\n      source = \"example.com/acme/random\"\n    }\n  }\n}\n",
    )]);
    let listed = |status: &str| {
        let text = support::words(&w.run(&["docs"]).ok().stdout);
        assert!(text.contains(status), "{text}");
    };
    listed("Required by the configuration, and not installed (run init): example.com/acme/random ");
    let platform = w.run(&["version", "-json"]).ok().json()["platform"].clone();
    let dir = format!(
        "../home/.terraform.d/plugins/example.com/acme/random/9.8.7/{}",
        platform.as_str().expect("a platform")
    );
    let dir = w.dir().join(dir);
    std::fs::create_dir_all(&dir).expect("a directory");
    // A copy is used, because a link to this executable would count as its built-in provider.
    std::fs::copy(support::lean(), dir.join("terraform-provider-random_v9.8.7")).expect("a copy");
    w.run(&["init"]).ok();
    listed("Installed and packed providers: example.com/acme/random (version 9.8.7) ");
    w.run(&["docs", "random_pet"]).ok().shows(&[
        "random_pet: resource of the built-in provider registry.terraform.io/hashicorp/random (as version",
        "random_pet: resource of the installed provider example.com/acme/random (version 9.8.7)\n",
    ]);
}

/// Returns the example of a page without its indent.
fn example(page: &str) -> String {
    let (_, rest) = page.split_once("\nExample:\n\n").expect("an example");
    let lines = rest.lines().take_while(|line| !line.is_empty());
    lines
        .map(|line| format!("{}\n", line.strip_prefix("  ").unwrap_or(line)))
        .collect()
}

fn examples() {
    let names = [
        "terraform_data",
        "random_password",
        "random_shuffle",
        "time_static",
        "random_integer",
        "null_resource",
    ];
    for name in names {
        let w = Workspace::new();
        let text = example(&w.run(&["docs", name]).ok().stdout);
        w.write("main.tf", &text);
        w.run(&["fmt", "-check"]).ok();
        w.run(&["validate"]).ok();
    }
}

/// Returns the values of an attribute in a page.
fn values<'p>(page: &'p str, attribute: &str) -> Vec<&'p str> {
    let begin = format!(" {attribute}=\"");
    let parts = page.split(begin.as_str()).skip(1);
    parts.filter_map(|part| part.split('"').next()).collect()
}

fn site() {
    let w = Workspace::new();
    w.run(&["docs", "-html=site"]).ok().shows(&["site/index.html"]);
    let names: BTreeSet<String> = std::fs::read_dir(w.dir().join("site"))
        .expect("the site")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    for page in [
        "index.html",
        "guide-ci.html",
        "command-plan.html",
        "command-state-mv.html",
        "provider-random.html",
        "provisioners.html",
        "functions.html",
        "json.html",
    ] {
        assert!(names.contains(page), "{page} is not in {names:?}");
    }
    let pages = names.iter().filter(|name| name.ends_with(".html"));
    for name in pages {
        let page = w.read(&format!("site/{name}"));
        let ids = values(&page, "id");
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "{name}: {ids:?}");
        for link in values(&page, "href").into_iter().chain(values(&page, "src")) {
            assert!(names.contains(link), "{name}: {link}");
        }
    }
    // Each target of the search index exists.
    let script = w.read("site/search.js");
    let entries = script
        .lines()
        .next()
        .and_then(|line| line.strip_prefix("const ENTRIES = "));
    let entries = entries.and_then(|line| line.strip_suffix(';')).expect("entries");
    let entries: Vec<serde_json::Value> = serde_json::from_str(entries).expect("JSON");
    assert!(entries.len() > 250, "{}", entries.len());
    for entry in &entries {
        let address = entry["u"].as_str().expect("an address");
        let (file, part) = address.split_once('#').unwrap_or((address, ""));
        let page = w.read(&format!("site/{file}"));
        assert!(part.is_empty() || values(&page, "id").contains(&part), "{address}");
    }
    assert!(w.read("site/provider-random.html").contains("<code>random_pet</code>"));
    w.run(&["docs", "-html=site", "abs"])
        .fails_with(&["Too many command line arguments"]);
}

fn searched() {
    let Some(chromium) = needs("chromium", "docs::site_is_searched_in_a_browser_from_a_file") else {
        return;
    };
    let w = Workspace::new();
    w.run(&["docs", "-html=site"]).ok();
    let profile = format!("--user-data-dir={}", w.home().join("chromium").display());
    let address = format!("file://{}?q=random+pet", w.dir().join("site/index.html").display());
    let switches = ["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"];
    let page = w
        .run_program(chromium, &[&switches[..], &[&profile, &address]].concat())
        .ok()
        .stdout;
    assert!(
        page.contains("href=\"provider-random.html#resource-random-pet\""),
        "{page}"
    );
}

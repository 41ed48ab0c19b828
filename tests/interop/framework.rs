//! A provider on the plugin framework: protocol 6, nested attributes.

use serde_json::json;

use crate::{apply, install_in_mirror, listing, nothing_to_do, plans, shelf, tamper};
use support::Workspace;

const HEAD: &str = r#"
terraform {
  required_providers {
    shelf = {
      source  = "example.com/test/shelf"
      version = "~> 1.0"
    }
  }
}

provider "shelf" {
  directory = "books"
}
"#;

/// Returns a configuration with a book.
pub fn configuration() -> String {
    format!("{HEAD}{}", dune("en", 412, "{ title = \"Dune\" }"))
}

fn workspace() -> Workspace {
    let provider = shelf();
    let w = Workspace::with(&[("main.tf", HEAD)]);
    std::fs::create_dir(w.dir().join("books")).expect("a directory");
    install_in_mirror(&w, provider, "example.com/test/shelf");
    w
}

fn dune(language: &str, pages: u32, chapters: &str) -> String {
    format!(
        r#"
resource "shelf_book" "dune" {{
  title    = "Dune"
  language = "{language}"
  pages    = {pages}
  author   = {{ name = "Frank Herbert", born = 1920 }}
  chapters = [{chapters}]
}}

data "shelf_title" "dune" {{
  id = shelf_book.dune.id
}}

output "title" {{
  value = data.shelf_title.dune.title
}}

output "secret" {{
  value     = shelf_book.dune.secret
  sensitive = true
}}
"#
    )
}

pub fn the_life_of_a_book() {
    let w = workspace();
    w.write(
        "dune.tf",
        &dune("en", 412, "{ title = \"Dune\" }, { title = \"Muad'Dib\" }"),
    );

    w.run(&["init", "-no-color"])
        .ok()
        .shows(&["example.com/test/shelf v1.0.0", ".terraform.lock.hcl"]);
    let lock = w.read(".terraform.lock.hcl");
    for text in [
        "provider \"example.com/test/shelf\"",
        "version     = \"1.0.0\"",
        "constraints = \"~> 1.0\"",
        "\"h1:",
    ] {
        assert!(lock.contains(text), "{text} is not in\n{lock}");
    }

    plans(
        &w,
        "Plan: 1 to add, 0 to change, 0 to destroy.",
        &[
            "  # data.shelf_title.dune will be read during apply\n",
            "  # shelf_book.dune will be created\n",
            "      + author   = {\n          + born = 1920\n          + name = \"Frank Herbert\"\n        }\n",
            "      + chapters = [\n          + {\n              + number = (known after apply)\n              + title  = \"Dune\"\n",
            "      + secret   = (sensitive value)\n",
        ],
    );
    apply(&w, "Resources: 1 added, 0 changed, 0 destroyed.");
    let book = w.attributes("shelf_book", "dune");
    assert_eq!(
        book["chapters"],
        json!([{"number": 1, "title": "Dune"}, {"number": 2, "title": "Muad'Dib"}])
    );
    assert_eq!(book["secret"], "secret of Dune");
    let first = listing(&w, "books").remove(0);
    assert_eq!(w.run(&["output", "-raw", "title"]).ok().stdout, "Dune");
    assert!(!w.run(&["show", "-no-color"]).ok().stdout.contains("secret of"));
    nothing_to_do(&w);

    // The object is updated in place.
    w.write(
        "dune.tf",
        &dune(
            "en",
            500,
            "{ title = \"Dune\" }, { title = \"Muad'Dib\" }, { title = \"The Prophet\" }",
        ),
    );
    plans(
        &w,
        "Plan: 0 to add, 1 to change, 0 to destroy.",
        &[
            "  # shelf_book.dune will be updated in-place\n",
            "      ~ pages    = 412 -> 500\n",
        ],
    );
    apply(&w, "Resources: 0 added, 1 changed, 0 destroyed.");
    assert_eq!(w.attributes("shelf_book", "dune")["id"], book["id"]);
    nothing_to_do(&w);

    // The object is replaced.
    w.write("dune.tf", &dune("fr", 500, "{ title = \"Dune\" }"));
    plans(
        &w,
        "Plan: 1 to add, 0 to change, 1 to destroy.",
        &[
            "  # shelf_book.dune must be replaced\n-/+ resource \"shelf_book\" \"dune\" {\n",
            "      ~ language = \"en\" -> \"fr\" # forces replacement\n",
        ],
    );
    apply(&w, "Resources: 1 added, 0 changed, 1 destroyed.");
    assert_ne!(w.attributes("shelf_book", "dune")["id"], book["id"]);
    assert!(!first.exists());
    nothing_to_do(&w);

    // A change that another program has made is detected.
    let file = listing(&w, "books").remove(0);
    tamper(&file, |book| book["author"]["born"] = json!(1900));
    plans(
        &w,
        "Plan: 0 to add, 1 to change, 0 to destroy.",
        &["~ born = 1900 -> 1920"],
    );
    w.run(&["plan", "-no-color", "-refresh-only"])
        .ok()
        .shows(&["Objects have changed outside of", "~ born = 1920 -> 1900"]);
    apply(&w, "Resources: 0 added, 1 changed, 0 destroyed.");
    std::fs::remove_file(&file).expect("a file");
    plans(
        &w,
        "Plan: 1 to add, 0 to change, 0 to destroy.",
        &["  # shelf_book.dune will be created\n"],
    );
    apply(&w, "Resources: 1 added, 0 changed, 0 destroyed.");

    w.run(&["destroy", "-no-color", "-auto-approve"])
        .ok()
        .shows(&["Destroy complete! Resources: 1 destroyed."]);
    assert!(listing(&w, "books").is_empty());
}

pub fn an_import_by_apply() {
    let w = workspace();
    w.write(
        "books/cafe.book.json",
        r#"{"title":"Emma","language":"en","pages":474,"author":{"name":"Jane Austen","born":null},"chapters":null}"#,
    );
    let config = |title: &str| {
        format!(
            r#"
import {{
  to = shelf_book.emma
  id = "cafe"
}}

resource "shelf_book" "emma" {{
  title    = "{title}"
  language = "en"
  pages    = 474
  author   = {{ name = "Jane Austen" }}
}}
"#
        )
    };
    w.write("emma.tf", &config("Emma"));
    plans(
        &w,
        "Plan: 1 to import, 0 to add, 0 to change, 0 to destroy.",
        &["  # shelf_book.emma will be imported\n"],
    );
    w.write("emma.tf", &config("Emma, 2nd edition"));
    plans(
        &w,
        "Plan: 1 to import, 0 to add, 1 to change, 0 to destroy.",
        &["  # shelf_book.emma will be updated in-place\n  # (imported from \"cafe\")\n"],
    );
    apply(&w, "Resources: 1 imported, 0 added, 1 changed, 0 destroyed.");
    assert_eq!(w.attributes("shelf_book", "emma")["id"], "cafe");
    assert!(w.read("books/cafe.book.json").contains("2nd edition"));
    nothing_to_do(&w);

    w.write(
        "emma.tf",
        &config("Emma")
            .replace("\"cafe\"", "\"none\"")
            .replace("shelf_book.emma", "shelf_book.other"),
    );
    let ran = w.run(&["plan", "-no-color"]);
    assert_eq!(ran.status, 1, "an import without a resource: {}", ran.all());
    w.write(
        "emma.tf",
        &config("Emma").replace("\"cafe\"", "\"none\"").replace("emma", "other"),
    );
    w.run(&["plan", "-no-color"])
        .fails_with(&["Cannot import non-existent remote object", "shelf_book.other"]);
}

pub fn an_error_at_an_attribute() {
    let w = workspace();
    w.write(
        "books.tf",
        r#"
resource "shelf_book" "good" {
  title  = "Walden"
  author = { name = "Thoreau" }
}

resource "shelf_book" "bad" {
  author = { name = "Somebody" }
  title  = "forbidden"
}

resource "shelf_book" "after" {
  title  = "After ${shelf_book.bad.id}"
  author = { name = "Somebody" }
}
"#,
    );
    let ran = w.run(&["apply", "-no-color", "-auto-approve"]).fails_with(&[
        "Error: Forbidden title",
        "with shelf_book.bad, on books.tf line 9, in resource \"shelf_book\" \"bad\": 9: title = \"forbidden\"",
        "This book may not be shelved.",
    ]);
    assert_eq!(ran.stderr.matches("Error:").count(), 1, "{}", ran.all());
    // Completed operations are recorded.
    assert_eq!(w.attributes("shelf_book", "good")["title"], "Walden");
    assert_eq!(w.state()["resources"].as_array().map(Vec::len), Some(1));
    plans(&w, "Plan: 2 to add, 0 to change, 0 to destroy.", &[]);

    // A mistake in a nested attribute is reported before anything runs.
    w.write(
        "books.tf",
        "resource \"shelf_book\" \"bad\" {\n  title = \"x\"\n  author = { nmae = \"x\" }\n}\n",
    );
    w.run(&["validate", "-no-color"])
        .fails_with(&["on books.tf line 3", "name"]);
}

pub fn a_package_that_was_changed_after_init() {
    let w = workspace();
    w.write("dune.tf", &dune("en", 1, ""));
    w.run(&["init", "-no-color"]).ok();
    let dir = w.home().join(format!(
        ".terraform.d/plugins/example.com/test/shelf/1.0.0/{}",
        crate::platform()
    ));
    std::fs::write(dir.join("extra"), "somebody was here").expect("a file");
    w.run(&["plan", "-no-color"])
        .fails_with(&["example.com/test/shelf", "1.0.0", "lock file"]);
}

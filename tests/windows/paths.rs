//! Paths in values, in sources of modules, and in archives.

use std::io::Write as _;

use crate::machine::{Windows, quoted};

#[test]
fn paths_in_values_have_slashes_as_those_of_terraform() {
    let config = r#"
        output "cwd" {
          value = [path.cwd, path.module, abspath("a\\..\\b")]
        }
        output "found" {
          value = [fileset(".", "**/*.txt"), fileset(path.cwd, "sub\\*.txt"), file("sub\\a.txt")]
        }
        output "steps" {
          value = [basename("C:\\a\\b.txt"), dirname("C:/a/b.txt")]
        }
        resource "local_file" "deep" {
          filename = "out\\deep/file.txt"
          content  = "x"
        }
    "#;
    let files = [("main.tf", config), ("sub/a.txt", "text")];
    let Some(w) = Windows::with(&files, "paths_in_values_have_slashes_as_those_of_terraform") else {
        return;
    };
    w.run(&["apply", "-no-color", "-auto-approve"]).ok();
    let outputs = w.run(&["output", "-json"]).ok().json();
    let cwd = w.path("").trim_end_matches('\\').replace('\\', "/");
    assert_eq!(
        outputs["cwd"]["value"],
        serde_json::json!([cwd, ".", format!("{cwd}/b")])
    );
    assert_eq!(
        outputs["found"]["value"],
        serde_json::json!([["sub/a.txt"], ["sub/a.txt"], "text"])
    );
    assert_eq!(outputs["steps"]["value"], serde_json::json!(["b.txt", "C:\\a"]));
    assert!(w.files.exists("out/deep/file.txt"));
}

#[test]
fn modules_are_found_by_paths_with_a_drive() {
    let Some(w) = Windows::with(
        &[("there/out.tf", "output \"here\" {\n  value = path.module\n}\n")],
        "modules_are_found_by_paths_with_a_drive",
    ) else {
        return;
    };
    let there = w.path("there");
    let slashes = there.replace('\\', "/");
    let calls = [
        ("backslashes", there),
        ("slashes", slashes.clone()),
        ("address", format!("file://{slashes}")),
        ("long_address", format!("file:///{slashes}")),
        ("local", ".\\there".to_owned()),
    ];
    let config: String = calls
        .iter()
        .map(|(name, source)| {
            format!(
                "module \"{name}\" {{\n  source = {}\n}}\noutput \"{name}\" {{\n  value = module.{name}.here\n}}\n",
                quoted(source)
            )
        })
        .collect();
    w.files.write("main.tf", &config);
    w.run(&["init", "-no-color"]).ok();
    w.run(&["apply", "-no-color", "-auto-approve"]).ok().shows(&[
        "backslashes = \".terraform/modules/backslashes\"",
        "long_address = \".terraform/modules/long_address\"",
        "local = \"there\"",
    ]);
}

#[test]
fn archive_with_the_name_of_a_device_is_refused() {
    let Some(w) = Windows::with(&[], "archive_with_the_name_of_a_device_is_refused") else {
        return;
    };
    let file = std::fs::File::create(w.files.dir().join("module.zip")).expect("a file");
    let mut archive = zip::ZipWriter::new(file);
    archive
        .start_file("sub/aux.tf", zip::write::SimpleFileOptions::default())
        .expect("an entry");
    archive.write_all(b"").expect("an entry");
    archive.finish().expect("an archive");
    let source = quoted(&w.path("module.zip"));
    w.files
        .write("main.tf", &format!("module \"m\" {{\n  source = {source}\n}}\n"));
    w.run(&["init", "-no-color"])
        .fails_with(&["sub/aux.tf", "module \"m\""]);
    assert!(!w.files.exists(".terraform/modules/m"));
}

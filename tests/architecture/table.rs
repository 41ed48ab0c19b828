//! The table of `tests/README.md`, which `scripts/t` reads: it has a row for every crate, and every path and test in it
//! exists.

use std::path::Path;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the rows of the table. Each has three cells: paths, commands, and test programs with their filters.
fn rows() -> Vec<[Vec<String>; 3]> {
    let page = std::fs::read_to_string(root().join("tests/README.md")).expect("the page");
    let quoted = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    let table = page
        .lines()
        .skip_while(|line| !line.starts_with("| change in |"))
        .skip(2);
    table
        .take_while(|line| line.starts_with('|'))
        .map(|row| {
            let cells: Vec<&str> = row.split('|').collect();
            [quoted(cells[1]), quoted(cells[2]), quoted(cells[3])]
        })
        .collect()
}

fn crates() -> Vec<String> {
    let mut found = vec!["proto".to_owned()];
    for folder in ["src", "builtin-plugins"] {
        for entry in std::fs::read_dir(root().join(folder)).expect("a folder").flatten() {
            if entry.path().join("Cargo.toml").is_file() {
                found.push(format!("{folder}/{}", entry.file_name().to_string_lossy()));
            }
        }
    }
    found
}

fn covers(place: &str, path: &str) -> bool {
    match place.strip_suffix("NAME") {
        Some(family) => path.starts_with(family),
        None => place == path,
    }
}

#[test]
fn every_crate_has_a_row_and_every_path_of_a_row_exists() {
    let rows = rows();
    let places: Vec<&String> = rows.iter().flat_map(|row| &row[0]).collect();
    let crates = crates();
    let mut wrong: Vec<&str> = Vec::new();
    let uncovered = |name: &&String| !places.iter().any(|place| covers(place, name));
    wrong.extend(crates.iter().filter(uncovered).map(String::as_str));
    let missing = |place: &&&String| match place.strip_suffix("NAME") {
        Some(_) => !crates.iter().any(|name| covers(place, name)),
        None => !root().join(place.as_str()).exists(),
    };
    wrong.extend(places.iter().filter(missing).map(|place| place.as_str()));
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn every_package_of_a_command_and_every_test_program_exists() {
    let manifests: Vec<String> = crates()
        .iter()
        .map(|name| std::fs::read_to_string(root().join(name).join("Cargo.toml")).expect("a manifest"))
        .collect();
    let own = std::fs::read_to_string(root().join("Cargo.toml")).expect("the manifest");
    let mut wrong = Vec::new();
    for [_, commands, programs] in rows() {
        for command in commands {
            let words: Vec<&str> = command.split(' ').collect();
            for package in words.windows(2).filter(|pair| pair[0] == "-p").map(|pair| pair[1]) {
                let line = format!("name = \"{package}\"");
                if !package.contains("NAME") && !manifests.iter().any(|text| text.contains(&line)) {
                    wrong.push(package.to_owned());
                }
            }
        }
        for program in programs.iter().filter(|words| !words.starts_with("cargo ")) {
            let name = program.split(' ').next().unwrap_or_default();
            if !own.contains(&format!("path = \"tests/{name}/main.rs\"")) {
                wrong.push(program.clone());
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

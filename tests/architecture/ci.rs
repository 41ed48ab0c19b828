//! Checks of `.ci/run`: it contains the README's test command unchanged, requires all programs that tests need, and ends with a
//! short run of tests.

use std::path::Path;

fn text(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The README's test command runs all tests, so `.ci/run` must contain exactly that command. A different command could select different
/// tests, and leave out some.
#[test]
fn the_test_command_of_the_readme_runs_with_everything_required() {
    let readme = text("README.md");
    let command = readme.lines().skip_while(|line| *line != "Pass the tests:").nth(2);
    let command = command.expect("a command behind the heading").trim();
    let ci = text(".ci/run");
    let lines: Vec<&str> = ci.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let at = |wanted: &str| lines.iter().position(|line| *line == wanted);
    let required = at("export PATH MONOFORM_REQUIRE").expect("what is required");
    assert!(at(command).is_some_and(|at| at > required), "{command}");
    assert_eq!(lines.last(), Some(&&*format!("{command} --test quickstart")));
    let tests = lines.iter().filter(|line| line.contains("cargo test"));
    assert_eq!(tests.count(), 2);
}

/// `doctest = false` and `test = false` in the manifest of a crate save the start of rustdoc or the linking of a test program. Tests in
/// such a crate would silently not run.
#[test]
fn crates_that_leave_out_a_kind_of_tests_have_none_of_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut wrong = Vec::new();
    for folder in ["src", "builtin-plugins", "tests"] {
        for entry in std::fs::read_dir(root.join(folder)).expect("a folder").flatten() {
            let dir = entry.path();
            let Ok(manifest) = std::fs::read_to_string(dir.join("Cargo.toml")) else {
                continue;
            };
            let code = code_below(&dir);
            if manifest.contains("\ndoctest = false\n") && has_doc_test(&code) {
                wrong.push(format!("{} has examples in its documentation", dir.display()));
            }
            let has_tests = code.contains("#[test]") || code.contains("::test]");
            if manifest.contains("\ntest = false\n") && has_tests {
                wrong.push(format!("{} has unit tests", dir.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

fn code_below(dir: &Path) -> String {
    let mut code = String::new();
    for entry in std::fs::read_dir(dir).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            code += &code_below(&path);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            code += &std::fs::read_to_string(&path).expect("a text");
        }
    }
    code
}

/// Returns true if a code block in the documentation is in Rust and is to run.
fn has_doc_test(code: &str) -> bool {
    let mut inside = false;
    let mut fences = code.lines().filter_map(|line| {
        let text = line.trim().strip_prefix("///").or(line.trim().strip_prefix("//!"))?;
        let language = text.trim().strip_prefix("```")?;
        inside = !inside;
        inside.then_some(language.trim())
    });
    fences.any(|language| matches!(language, "" | "rust" | "no_run" | "should_panic"))
}

#[test]
fn a_test_without_its_program_is_left_out_by_name() {
    let trial = |programs: &[&str]| support::needing(libtest_mimic::Trial::test("a", || Ok(())), programs);
    let whole = trial(&["cargo"]);
    assert!(!whole.has_ignored_flag());
    assert_eq!(whole.kind(), "");
    let without = trial(&["cargo", "no-such-program"]);
    assert!(without.has_ignored_flag());
    assert_eq!(without.kind(), "needs no-such-program");
    assert!(support::needs("no-such-program", "a").is_none());
}

//! Promises of `.ci/run`: the README's test command unchanged, with all programs required that tests need, and a short run of tests at the
//! end.

use std::path::Path;

fn text(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// All tests are in that run. A run with other programs could leave out a test that the README's command leaves out, too.
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

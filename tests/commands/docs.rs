//! `docs`: pages about what is built in, with examples that can be copied.

use support::Workspace;

/// The tests, by name.
pub const TESTS: &[(&str, fn())] = &[
    ("docs::pages_say_what_there_is", pages),
    ("docs::examples_are_valid", examples),
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
    // One name, two kinds.
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
        .fails_with(&["Nothing of that name is built in", "Did you mean \"random_pet\"?"]);
    w.run(&["docs", "upperr"]).fails_with(&["Did you mean \"upper\"?"]);
    w.run(&["docs"]).fails_with(&["Required argument missing"]);
    assert_eq!(std::fs::read_dir(w.dir()).expect("a directory").count(), 0);
}

/// The example of a page without its indent.
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

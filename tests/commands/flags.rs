//! Every command with every flag of its help: the flag exists, and wrong use of it is refused with a reason.

use support::Workspace;

pub const TESTS: &[(&str, fn())] = &[
    ("flags::each_is_refused_well_when_it_is_misused", misused),
    ("flags::each_command_refuses_what_it_does_not_know", unknown),
];

/// Returns the commands that the help lists, with their subcommands.
pub fn commands(w: &Workspace) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for name in names(&w.run(&["-help"]).ok().stdout, "  ", ":") {
        let page = w.run(&[&name, "-help"]).ok().stdout;
        if !page.contains("<subcommand>") {
            all.push(vec![name.clone()]);
        }
        if let Some((_, below)) = page.split_once("\nSubcommands:\n") {
            let below = names(&format!("Subcommands:\n{below}"), "    ", "Subcommands:");
            all.extend(below.into_iter().map(|sub| vec![name.clone(), sub]));
        }
    }
    assert!(all.len() > 35, "{all:?}");
    all
}

/// Returns the first words of indented lines below titles with this end.
fn names(page: &str, indent: &str, title: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        if !line.starts_with(' ') {
            inside = line.ends_with(title) && !line.contains("options") && !line.starts_with("Guides");
        } else if inside
            && let Some(rest) = line.strip_prefix(indent)
            && rest.starts_with(|c: char| c.is_ascii_lowercase())
        {
            found.extend(rest.split_whitespace().next().map(str::to_owned));
        }
    }
    found
}

/// Returns the flags of a page: the name, and true if the flag has a value.
pub fn flags(page: &str) -> Vec<(String, bool)> {
    // In the help, each flag follows an empty line.
    let shown = page.split("\n\n").filter_map(|part| {
        let line = part
            .lines()
            .find(|line| line.starts_with("  -") || !line.ends_with(':'))?;
        line.strip_prefix("  -")
    });
    let word = |line: &str| line.split_whitespace().next().unwrap_or_default().to_owned();
    let flag = |word: String| match word.split_once('=') {
        Some((name, value)) => (name.to_owned(), value != "false"),
        None => (word, false),
    };
    shown.map(word).map(flag).collect()
}

fn misused() {
    let w = Workspace::new();
    let mut tried = 0;
    for command in commands(&w) {
        let path: Vec<&str> = command.iter().map(|word| &**word).collect();
        let page = w.run(&[&path[..], &["-help"]].concat()).ok().stdout;
        let flags = flags(&page);
        assert!(flags.iter().any(|(name, _)| name == "no-color"), "{path:?}\n{page}");
        for (name, valued) in flags {
            let (argument, expected) = match valued {
                true => (format!("-{name}"), format!("flag needs an argument: -{name}")),
                // This flag accepts kinds of changes, too.
                false if name == "auto-approve" && path != ["state", "replace-provider"] => (
                    format!("-{name}=perhaps"),
                    "\"perhaps\" is no kind of change".to_owned(),
                ),
                false => (
                    format!("-{name}=perhaps"),
                    format!("invalid boolean value \"perhaps\" for -{name}"),
                ),
            };
            let ran = w.run(&[&path[..], &[&argument]].concat());
            let said = format!("{}{}", ran.stdout, ran.stderr).replace("\\\"", "\"");
            let said = said.replace("\n│ ", " ");
            assert!(
                ran.status == 1 && said.contains(&expected),
                "{path:?} {argument}\n{}",
                ran.all()
            );
            tried += 1;
        }
    }
    assert!(tried > 250, "{tried}");
    assert_eq!(std::fs::read_dir(w.dir()).expect("a directory").count(), 0);
}

fn unknown() {
    let w = Workspace::new();
    for command in commands(&w) {
        let path: Vec<&str> = command.iter().map(|word| &**word).collect();
        let ran = w.run(&[&path[..], &["-no-colour"]].concat());
        assert!(ran.status == 1, "{}", ran.all());
        assert!(
            ran.all()
                .contains("flag provided but not defined: -no-colour. Did you mean -no-color?"),
            "{path:?}\n{}",
            ran.all()
        );
    }
}

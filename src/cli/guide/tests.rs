//! Commands, flags and environment variables in the guides exist, and variables are documented.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use views::json::documents;
use views::ui::Style;

use super::{TOPICS, Text, Topic, find, nearest};
use crate::commands::declared;
use crate::commands::man;
use crate::commands::overview::{general, global_flags, paths};

/// Returns the guides with their texts.
fn guides() -> impl Iterator<Item = (&'static Topic, &'static str)> {
    TOPICS.iter().filter_map(|topic| match topic.text {
        Text::Guide(markdown) => Some((topic, markdown)),
        Text::Functions | Text::Documents | Text::Manual => None,
    })
}

/// Returns the lines of a guide's blocks of code, and the code in its sentences.
fn code(markdown: &str) -> (Vec<String>, Vec<String>) {
    let (mut lines, mut text) = (Vec::new(), String::new());
    let mut inside = false;
    for line in markdown.lines() {
        if line.trim_start().starts_with("```") {
            inside = !inside;
        } else if inside {
            lines.push(line.trim().to_owned());
        } else {
            text.push_str(line.trim());
            text.push(' ');
        }
    }
    assert!(!inside, "a block of code has no end");
    assert!(
        text.matches('`').count().is_multiple_of(2),
        "a backtick is alone: {text}"
    );
    let inline = text.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    (lines, inline)
}

/// Returns the visible flags of a command.
fn flags(path: &str) -> BTreeSet<String> {
    let declared = declared(path).unwrap_or_else(|| panic!("there is no command {path:?}"));
    let own = declared.get_arguments().filter(|argument| !argument.is_hide_set());
    own.filter_map(|argument| argument.get_long().map(str::to_owned))
        .chain(["help".to_owned()])
        .collect()
}

/// Returns the arguments in a line that runs this program, which may set variables before it.
fn command_line(line: &str) -> Option<Vec<&str>> {
    let mut words = line.split_whitespace().map(|word| word.trim_start_matches("<("));
    let before = |word: &&str| word.contains('=') || *word == "source";
    if words.by_ref().find(|word| !before(word)) != Some("monoform") {
        return None;
    }
    let end = |word: &&str| !matches!(*word, "|" | ">" | "<" | "#" | "&&");
    Some(
        words
            .take_while(end)
            .map(|word| word.trim_end_matches([')', ',']))
            .collect(),
    )
}

/// Returns the path of the command that these words begin with.
fn path_of(words: &[&str]) -> Option<String> {
    let known: BTreeSet<&str> = paths().collect();
    (1..=words.len().min(2))
        .rev()
        .map(|n| words[..n].join(" "))
        .find(|path| known.contains(path.as_str()))
}

fn check_flags(topic: &str, path: &str, words: &[&str]) {
    let flags = flags(path);
    for word in words.iter().filter(|word| word.starts_with('-') && word.len() > 1) {
        let name = word.trim_start_matches('-').split('=').next().unwrap_or_default();
        assert!(flags.contains(name), "{topic}: {path} has no flag {word}");
    }
}

#[test]
fn every_topic_is_listed_and_shown() {
    let list = general("monoform");
    for topic in TOPICS {
        let line = |line: &str| line.trim_start().starts_with(topic.name) && line.ends_with(topic.about);
        assert!(list.lines().any(line), "{}", topic.name);
        let shown = find(topic.name)
            .unwrap()
            .shown(Style::default(), 80, "monoform", man::page);
        assert!(shown.lines().count() > 20, "{shown}");
        assert!(!shown.contains("```") && !shown.starts_with('#'), "{shown}");
    }
    assert_eq!(nearest("enviroment", paths()), Some("environment"));
    assert_eq!(nearest("aply", paths()), Some("apply"));
}

#[test]
fn every_guide_fits_a_terminal() {
    for (topic, markdown) in guides() {
        assert!(markdown.starts_with("# "), "{}", topic.name);
        let shown = topic.shown(Style::default(), 80, "monoform", man::page);
        let prose = shown.lines().filter(|line| !line.starts_with("    "));
        for line in prose {
            assert!(line.chars().count() <= 80, "{}: {line}", topic.name);
        }
    }
}

#[test]
fn every_function_is_listed_once() {
    let page = find("functions")
        .unwrap()
        .shown(Style::default(), 80, "monoform", man::page);
    for name in lang::functions::signature::all().keys() {
        let lines = page.lines().filter(|line| {
            let own = line.strip_prefix("  ").and_then(|rest| rest.strip_prefix(name));
            own.is_some_and(|rest| rest.starts_with("  ") && !rest.trim().is_empty())
        });
        assert_eq!(lines.count(), 1, "{name}\n{page}");
    }
}

#[test]
fn commands_and_flags_in_guides_exist() {
    let globals: Vec<String> = global_flags().map(|(flag, _)| flag).collect();
    let mut checked = 0;
    for (topic, markdown) in guides() {
        let (lines, inline) = code(markdown);
        for line in lines.iter().chain(&inline) {
            let Some(words) = command_line(line) else { continue };
            let first = words.first().copied().unwrap_or_default();
            checked += 1;
            match first {
                // Only the program's name is written.
                "" => {}
                "internal-plugin" => assert!(matches!(words[1], "list" | "link"), "{line}"),
                "help" => {
                    let subject = words[1..].join(" ");
                    let document = subject.strip_prefix("json ").and_then(documents::find).is_some();
                    let known =
                        subject.is_empty() || document || find(&subject).is_some() || path_of(&words[1..]).is_some();
                    assert!(known, "{}: {line}", topic.name);
                }
                _ if first.starts_with('-') => assert!(globals.iter().any(|flag| flag == first), "{line}"),
                _ => {
                    let path = path_of(&words).unwrap_or_else(|| panic!("{}: {line}", topic.name));
                    check_flags(topic.name, &path, &words);
                }
            }
        }
        // Inline code such as `plan -json` omits the program's name; `-junit-xml` even omits the command.
        for code in &inline {
            let words: Vec<&str> = code.split_whitespace().collect();
            if code.starts_with('-') && words.len() == 1 {
                let name = code.trim_start_matches('-').split('=').next().unwrap_or_default();
                assert!(all_flags().contains(name), "{}: {code}", topic.name);
            } else if let (Some(path), true) = (path_of(&words), code.contains(" -")) {
                check_flags(topic.name, &path, &words);
            }
        }
    }
    assert!(checked > 50, "{checked}");
}

fn all_flags() -> BTreeSet<String> {
    paths()
        .filter(|path| declared(path).is_some())
        .flat_map(flags)
        .collect()
}

#[test]
#[should_panic(expected = "plan has no flag -outt=x")]
fn wrong_flag_is_found() {
    check_flags("test", "plan", &["plan", "-outt=x"]);
}

/// Returns the texts of the source files of the executable, without their tests.
fn sources() -> Vec<String> {
    fn walk(dir: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() && !matches!(name.as_str(), "tests" | "examples" | "target") {
                walk(&path, found);
            } else if name.ends_with(".rs") && name != "tests.rs" {
                found.push(path);
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let mut files = Vec::new();
    walk(&root.join("src"), &mut files);
    walk(&root.join("builtin-plugins"), &mut files);
    let read = |path: &PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        let end = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
        text[..end].to_owned()
    };
    files.iter().map(read).collect()
}

/// Returns the longest prefix of a text that can be the name of a variable.
fn name_at(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_'));
    &text[..end.unwrap_or(text.len())]
}

/// Returns the names in a text that follow one of these characters and have one of our prefixes.
fn names_behind<'t>(text: &'t str, before: &[char]) -> BTreeSet<&'t str> {
    let begin = |(at, _): &(usize, char)| text[..*at].chars().next_back().is_none_or(|c| before.contains(&c));
    let ours = ["TF_", "TFE_", "MONOFORM_"];
    text.char_indices()
        .filter(begin)
        .map(|(at, _)| name_at(&text[at..]))
        .filter(|name| ours.iter().any(|prefix| name.starts_with(prefix)))
        .collect()
}

fn environment() -> &'static str {
    guides().find(|(topic, _)| topic.name == "environment").unwrap().1
}

/// Returns true if the guide about variables documents a name, or the family whose prefix it is (ending in `_`).
fn documented(name: &str) -> bool {
    let page = environment();
    match name.ends_with('_') {
        true => page.contains(&format!("`{name}<")),
        false => page.contains(&format!("`{name}`")) || page.contains(&format!("`{name}=")),
    }
}

#[test]
fn each_variable_that_is_read_is_documented() {
    let mut found = BTreeSet::new();
    for source in sources() {
        found.extend(names_behind(&source, &['"']).into_iter().map(str::to_owned));
    }
    assert!(found.len() > 30, "{found:?}");
    // The guide describes the arguments of the backend "http" by a common prefix, and a bare prefix is no name.
    let missing: Vec<&String> = found
        .iter()
        .filter(|name| !name.starts_with("TF_HTTP_") && *name != "MONOFORM_" && !documented(name))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert!(documented("TF_HTTP_"));
}

#[test]
fn each_documented_variable_is_read() {
    let sources = sources();
    let (_, inline) = code(environment());
    let mut checked = 0;
    for word in &inline {
        let name = name_at(word);
        if name.len() < 3 || !name.starts_with(|c: char| c.is_ascii_uppercase()) {
            continue;
        }
        checked += 1;
        assert!(sources.iter().any(|source| source.contains(name)), "{name}");
    }
    assert!(checked > 50, "{checked}");
}

#[test]
fn variables_in_guides_are_documented() {
    for (topic, markdown) in guides() {
        for name in names_behind(markdown, &[' ', '\n', '`', '$', '"', '(']) {
            assert!(documented(name), "{}: {name}", topic.name);
        }
    }
}

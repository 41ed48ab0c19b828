//! Completion candidates for the last word of a command line.

use addrs::Program;
use views::json::documents::DOCUMENTS;

use super::Shell;
use super::line::Line;
use super::live::Live;
use crate::args::flags::is_switch;
use crate::commands::{COMMANDS, Command, find, overview};
use crate::guide::TOPICS;

/// Number of candidates above which they are cut at the next dot or bracket.
const MANY: usize = 100;

/// Completion candidate.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Candidate {
    /// Whole word, without quotes.
    pub text: String,
    /// Description; may be empty.
    pub about: String,
}

impl Candidate {
    fn new(text: impl Into<String>, about: impl Into<String>) -> Candidate {
        Candidate {
            text: text.into(),
            about: about.into(),
        }
    }
}

/// Returns the candidates for the last word, sorted.
#[must_use]
pub fn complete(line: &Line, live: &dyn Live) -> Vec<Candidate> {
    let mut found = of_word(line, live);
    // A control character in a name would reach the terminal, and a line break would separate two candidates.
    found.retain(|c| c.text.starts_with(&line.last) && !c.text.contains(char::is_control));
    found.sort_unstable();
    found.dedup();
    grouped(found, &line.last)
}

fn of_word(line: &Line, live: &dyn Live) -> Vec<Candidate> {
    let (words, last) = (&line.words, &*line.last);
    let globals = words.iter().take_while(|w| w.starts_with('-')).count();
    let mut rest = &words[globals..];
    let mut path = String::new();
    while let Some(word) = rest.first() {
        let longer = if path.is_empty() {
            word.clone()
        } else {
            format!("{path} {word}")
        };
        let known = |c: &&Command| c.path == longer || c.path.starts_with(&format!("{longer} "));
        if !COMMANDS.iter().any(known) {
            break;
        }
        path = longer;
        rest = &rest[1..];
    }
    if path.is_empty() {
        if !rest.is_empty() {
            return Vec::new();
        }
        if let Some(dir) = last.strip_prefix("-chdir=") {
            return with_flag("-chdir=", paths(dir, true, live));
        }
        return if last.starts_with('-') {
            overview::global_flags()
                .map(|(flag, about)| Candidate::new(flag, about))
                .collect()
        } else {
            overview::top()
                .into_iter()
                .map(|(name, about)| Candidate::new(name, about))
                .collect()
        };
    }
    let command = find(&path);
    let declared = command.map(|command| command.declared(Program::default()));
    if last.starts_with('-') {
        return match (&declared, command) {
            (Some(declared), Some(command)) => flags(command, declared, last, live),
            _ => Vec::new(),
        };
    }
    // The value of a flag may be the next word instead of following `=`.
    let mut positional = Vec::new();
    let mut awaited = None;
    for word in rest {
        if awaited.take().is_some() {
            continue;
        }
        match word.strip_prefix("--").or_else(|| word.strip_prefix('-')) {
            Some(flag) if positional.is_empty() => {
                let argument = declared
                    .as_ref()
                    .and_then(|declared| declared.get_arguments().find(|a| a.get_long() == Some(flag)));
                awaited = argument.filter(|argument| !is_switch(argument));
            }
            _ => positional.push(&**word),
        }
    }
    if let (Some(argument), Some(command)) = (awaited, command) {
        return values(command, argument, last, live);
    }
    let mut all = of_positional(&path, &positional, last, live);
    if rest.is_empty() {
        let below = overview::below(&path).into_iter();
        all.extend(below.map(|c| Candidate::new(&c.path[path.len() + 1..], c.about)));
    }
    all
}

/// Returns candidates without descriptions.
fn plain(names: Vec<String>) -> Vec<Candidate> {
    names.into_iter().map(|name| Candidate::new(name, "")).collect()
}

/// Returns candidates for a positional argument, after the arguments `before` it.
fn of_positional(path: &str, before: &[&str], last: &str, live: &dyn Live) -> Vec<Candidate> {
    let first = before.is_empty();
    match path {
        "workspace select" | "workspace delete" | "env select" | "env delete" if first => plain(live.workspaces()),
        "state show" | "state history" | "taint" | "untaint" | "state mv" if first => plain(live.instances()),
        "state list" | "state rm" | "state restore" | "state identities" => plain(live.instances()),
        "state replace-provider" if before.len() < 2 => plain(live.providers()),
        "providers lock" => plain(live.providers()),
        "import" if first => plain(live.configured()),
        "explain" if first => plain(live.configured().into_iter().chain(live.instances()).collect()),
        "output" if first => plain(live.outputs()),
        "completion" if first => plain(Shell::ALL.map(|shell| shell.name().to_owned()).to_vec()),
        "help" if first => {
            let topics = TOPICS.iter().map(|topic| Candidate::new(topic.name, topic.about));
            let commands = overview::top().into_iter();
            topics
                .chain(commands.map(|(name, about)| Candidate::new(name, about)))
                .collect()
        }
        "help" if before == ["json"] => {
            let documents = DOCUMENTS.iter();
            documents
                .map(|document| Candidate::new(document.name, document.command))
                .collect()
        }
        "fmt" => paths(last, false, live),
        "apply" | "show" | "state push" if first => paths(last, false, live),
        "pack" | "providers serve" if first => paths(last, false, live),
        "providers mirror" | "modules mirror" | "unpack" if first => paths(last, true, live),
        _ => Vec::new(),
    }
}

/// Returns the flags of a command, or the values of one flag.
fn flags(command: &Command, declared: &clap::Command, last: &str, live: &dyn Live) -> Vec<Candidate> {
    let name = last.trim_start_matches('-');
    let dashes = &last[..last.len() - name.len()];
    if let Some((name, value)) = name.split_once('=') {
        let Some(flag) = declared.get_arguments().find(|a| a.get_long() == Some(name)) else {
            return Vec::new();
        };
        let values = match is_switch(flag) {
            true => plain(vec!["true".to_owned(), "false".to_owned()]),
            false => values(command, flag, value, live),
        };
        return with_flag(&format!("{dashes}{name}="), values);
    }
    let named = |flag: &clap::Arg| {
        let long = flag.get_long()?;
        // The flag is completed without an equals sign, because the value may be the next word, and shells append a blank to a completed
        // word.
        let about = flag.get_help().map(ToString::to_string).unwrap_or_default();
        Some(Candidate::new(format!("{dashes}{long}"), about))
    };
    let flags = declared.get_arguments().filter(|flag| !flag.is_hide_set());
    flags.filter_map(named).collect()
}

fn with_flag(flag: &str, values: Vec<Candidate>) -> Vec<Candidate> {
    let with = |value: Candidate| Candidate::new(format!("{flag}{}", value.text), value.about);
    values.into_iter().map(with).collect()
}

/// Returns the values of a flag, by its placeholder.
fn values(command: &Command, flag: &clap::Arg, typed: &str, live: &dyn Live) -> Vec<Candidate> {
    let long = flag.get_long().unwrap_or_default();
    let placeholder = flag
        .get_value_names()
        .and_then(|names| names.first())
        .map_or("", |name| name.as_str());
    match (placeholder, command.path, long) {
        (_, _, "invoke") => plain(live.actions()),
        ("ADDRESS", _, "replace") => plain(live.instances()),
        ("ADDRESS", ..) => plain(live.configured().into_iter().chain(live.instances()).collect()),
        ("PATH" | "FILE", ..) => paths(typed, false, live),
        ("DIR", ..) => paths(typed, true, live),
        ("'NAME=VALUE'", ..) => plain(live.variables().into_iter().map(|name| name + "=").collect()),
        ("SOURCE", ..) => plain(live.providers()),
        (_, "plan" | "show", "format") => plain(["markdown", "text"].map(str::to_owned).to_vec()),
        (_, _, "verbosity") => plain(["brief", "full", "normal"].map(str::to_owned).to_vec()),
        (_, "graph", "format") => plain(["dot", "html", "mermaid"].map(str::to_owned).to_vec()),
        (_, "graph", "type") => plain(
            ["plan", "plan-refresh-only", "plan-destroy", "apply"]
                .map(str::to_owned)
                .to_vec(),
        ),
        (_, "init", "lockfile") => plain(vec!["readonly".to_owned()]),
        _ => Vec::new(),
    }
}

/// Returns the files and directories that begin as typed.
fn paths(typed: &str, directories: bool, live: &dyn Live) -> Vec<Candidate> {
    let (dir, begun) = match typed.rfind('/') {
        Some(at) => typed.split_at(at + 1),
        None => ("", typed),
    };
    let names = live.names_in(dir).into_iter();
    // As in shells, hidden names are candidates once their dot is typed.
    let hidden = begun.starts_with('.');
    plain(
        names
            .filter(|name| hidden || !name.starts_with('.'))
            .filter(|name| !directories || name.ends_with('/'))
            .map(|name| format!("{dir}{name}"))
            .collect(),
    )
}

/// Cuts candidates after the next dot or bracket, if there are too many to read.
fn grouped(found: Vec<Candidate>, typed: &str) -> Vec<Candidate> {
    if found.len() <= MANY {
        return found;
    }
    let mut from = typed.len();
    loop {
        let mut cut: Vec<Candidate> = found.iter().map(|c| cut_behind(c, from)).collect();
        cut.dedup();
        match &cut[..] {
            // All candidates continue alike up to here, so the user would have nothing to choose from.
            [only] if only.text.len() > from => from = only.text.len(),
            _ => return cut,
        }
    }
}

fn cut_behind(candidate: &Candidate, from: usize) -> Candidate {
    let rest = candidate.text.get(from..).unwrap_or_default();
    match rest.find(['.', '[']) {
        Some(at) => Candidate::new(&candidate.text[..=from + at], ""),
        None => candidate.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed;

    impl Live for Fixed {
        fn workspaces(&self) -> Vec<String> {
            vec!["default".into(), "staging".into()]
        }

        fn instances(&self) -> Vec<String> {
            let many = (0..300).map(|i| format!("module.big[{}].t.n[{i}]", i % 2));
            many.chain(["t.a".into(), "t.each[\"x y\"]".into()]).collect()
        }

        fn configured(&self) -> Vec<String> {
            vec![
                "module.big".into(),
                "module.big.t.n".into(),
                "t.a".into(),
                "t.each".into(),
            ]
        }

        fn actions(&self) -> Vec<String> {
            vec!["action.local_command.go".into()]
        }

        fn outputs(&self) -> Vec<String> {
            vec!["url".into()]
        }

        fn variables(&self) -> Vec<String> {
            vec!["size".into()]
        }

        fn providers(&self) -> Vec<String> {
            vec!["registry.terraform.io/hashicorp/null".into()]
        }

        fn names_in(&self, dir: &str) -> Vec<String> {
            match dir {
                "" => vec![".hidden".into(), "modules/".into(), "p.tfplan".into()],
                "modules/" => vec!["a/".into(), "b.tf".into()],
                _ => Vec::new(),
            }
        }
    }

    fn completed(line: &str) -> Vec<String> {
        let found = complete(&Line::parse(line), &Fixed);
        found.into_iter().map(|c| c.text).collect()
    }

    #[test]
    fn commands_and_their_subcommands() {
        assert_eq!(completed("monoform pl"), ["plan"]);
        assert_eq!(completed("monoform -chdir=x va"), ["validate"]);
        assert_eq!(completed("monoform state sh"), ["show"]);
        assert_eq!(completed("monoform providers "), ["lock", "mirror", "schema", "serve"]);
        assert!(completed("monoform ").contains(&"workspace".to_owned()));
        assert!(!completed("monoform ").contains(&"env".to_owned()));
        assert!(completed("monoform nonsense ").is_empty());
        assert_eq!(completed("monoform completion z"), ["zsh"]);
    }

    #[test]
    fn flags_and_their_values() {
        assert_eq!(completed("monoform plan -detailed"), ["-detailed-exitcode"]);
        assert_eq!(completed("monoform plan -o"), ["-out"]);
        assert_eq!(completed("monoform plan --refresh-o"), ["--refresh-only"]);
        assert_eq!(completed("monoform plan -input="), ["-input=false", "-input=true"]);
        assert_eq!(completed("monoform plan -var s"), ["size="]);
        assert_eq!(completed("monoform plan -var=s"), ["-var=size="]);
        assert_eq!(completed("monoform graph -format m"), ["mermaid"]);
        assert_eq!(completed("monoform plan -format m"), ["markdown"]);
        assert_eq!(completed("monoform apply -verbosity=f"), ["-verbosity=full"]);
        assert_eq!(completed("monoform workspace new -st"), ["-state"]);
        assert_eq!(
            completed("monoform plan -var-file modules/"),
            ["modules/a/", "modules/b.tf"]
        );
        assert_eq!(completed("monoform -chdir="), ["-chdir=modules/"]);
        assert!(completed("monoform state -").is_empty());
    }

    #[test]
    fn what_is_in_the_working_directory() {
        assert_eq!(completed("monoform workspace select s"), ["staging"]);
        assert_eq!(completed("monoform workspace delete -force "), ["default", "staging"]);
        assert_eq!(completed("monoform state show t."), ["t.a", "t.each[\"x y\"]"]);
        assert_eq!(completed("monoform state show 't.each["), ["t.each[\"x y\"]"]);
        assert_eq!(
            completed("monoform plan -target=t.e"),
            ["-target=t.each", "-target=t.each[\"x y\"]"]
        );
        assert_eq!(completed("monoform apply -replace t.a"), ["t.a"]);
        assert_eq!(completed("monoform apply -invoke "), ["action.local_command.go"]);
        assert_eq!(completed("monoform apply "), ["modules/", "p.tfplan"]);
        assert_eq!(completed("monoform import t.e"), ["t.each"]);
        assert_eq!(completed("monoform import t.a "), Vec::<String>::new());
        assert_eq!(completed("monoform output "), ["url"]);
        assert_eq!(
            completed("monoform state replace-provider r"),
            ["registry.terraform.io/hashicorp/null"]
        );
    }

    #[test]
    fn many_addresses_are_shown_step_by_step() {
        assert_eq!(completed("monoform state show "), ["module.", "t."]);
        // If all candidates share a prefix, they are shown up to the first step at which they differ.
        assert_eq!(completed("monoform state show m"), ["module.big[0].", "module.big[1]."]);
        assert_eq!(completed("monoform state show module.big[1].t.n[29").len(), 6);
    }
}

//! Report of an apply that did not complete: operations that were done, aborted and not begun.

use std::fmt::Write as _;

use engine::apply::{Completion, Recorded, UnfinishedOperation};
use engine::plan::Action;

use crate::command_line::joined;
use crate::verb::Verb;

/// Limit of the operations that are listed by name.
const LIMIT: usize = 10;

/// Returns the report; `None` if every operation completed. `verb` is the command.
#[must_use]
pub fn text(verb: Verb, completion: &Completion) -> Option<String> {
    if completion.is_complete() {
        return None;
    }
    let Completion {
        total,
        done,
        failed,
        aborted,
        not_begun,
    } = completion;
    let mut out = format!(
        "{} incomplete: of {total} operations, {done} completed, {failed} failed, {} aborted, {} not begun.\n",
        verb.name(),
        aborted.len(),
        not_begun.len()
    );
    list(
        &mut out,
        "Aborted; they may have taken effect, in whole or in part:",
        aborted,
    );
    list(&mut out, "Not begun:", not_begun);
    Some(out)
}

/// Returns advice for continuing: the command as it was typed, or the commands for a new plan in place of the saved one, which
/// became stale. Values of variables are left out, since they may be secrets. Returns `None` if running the command again would do
/// more than continue, or if nothing was typed.
#[must_use]
pub fn next(typed: &[String], saved: Option<&str>, command: &str) -> Option<String> {
    // A second run with `-replace` would replace objects again, and one with `-invoke` would invoke the action
    // twice.
    let again_is_more = |word: &str| {
        let flag = word.strip_prefix('-').map(|flag| flag.trim_start_matches('-'));
        flag.is_some_and(|flag| flag.starts_with("replace") || flag.starts_with("invoke"))
    };
    if typed.is_empty() || typed.iter().any(|word| again_is_more(word)) {
        return None;
    }
    let Some(saved) = saved else {
        let words = without_values(typed);
        return Some(format!("\nTo go on, run again:\n  {command} {}\n", joined(&words)));
    };
    // Global options such as -chdir come before the command, so they do in the suggested commands, too.
    let global = typed.iter().take_while(|word| word.starts_with('-')).cloned();
    let global: String = global.map(|word| joined(&[word]) + " ").collect();
    let file = joined(&[saved.to_owned()]);
    Some(format!(
        "\nTo go on, make a new plan and apply it:\n  {command} {global}plan -out={file}\n  {command} {global}apply {file}\n"
    ))
}

/// Replaces the values of variables by an ellipsis.
fn without_values(typed: &[String]) -> Vec<String> {
    let mut value = false;
    typed
        .iter()
        .map(|word| {
            let given = if std::mem::take(&mut value) {
                Some(("", word.as_str()))
            } else {
                ["-var=", "--var="]
                    .iter()
                    .find_map(|flag| Some((*flag, word.strip_prefix(flag)?)))
            };
            value = matches!(word.as_str(), "-var" | "--var");
            match given.and_then(|(flag, variable)| Some((flag, variable.split_once('=')?.0))) {
                Some((flag, name)) => format!("{flag}{name}=…"),
                None => word.clone(),
            }
        })
        .collect()
}

fn list(out: &mut String, title: &str, operations: &[UnfinishedOperation]) {
    if operations.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{title}");
    // A line that says "and one more" would be as long as naming the operation.
    let shown = if operations.len() == LIMIT + 1 {
        LIMIT + 1
    } else {
        LIMIT
    };
    for operation in operations.iter().take(shown) {
        let _ = writeln!(
            out,
            "  - {} ({}){}",
            operation.address,
            operation.action.map_or("invoke", word),
            recorded(operation)
        );
    }
    if operations.len() > shown {
        let _ = writeln!(out, "  - and {} more", operations.len() - shown);
    }
}

/// Describes the entry in the state of an object whose operation was aborted.
fn recorded(operation: &UnfinishedOperation) -> &'static str {
    match (operation.recorded, operation.action) {
        (None, _) => "",
        (Some(Recorded::Nothing), _) => ": not in the state",
        (Some(Recorded::Tainted), _) => ": in the state as tainted, so the next apply replaces it",
        (Some(Recorded::Object), Some(Action::Create)) => ": in the state",
        (Some(Recorded::Object), _) => ": in the state as it was before",
    }
}

fn word(action: Action) -> &'static str {
    match action {
        Action::Delete => "destroy",
        other => other.word(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operations(count: usize) -> Vec<UnfinishedOperation> {
        let one = |i: usize| UnfinishedOperation {
            address: format!("t.n[{i}]"),
            action: Some(Action::Create),
            recorded: None,
        };
        (0..count).map(one).collect()
    }

    #[test]
    fn the_command_to_go_on_has_no_values_of_variables() {
        let words = |text: &str| text.split('|').map(str::to_owned).collect::<Vec<_>>();
        let of = |text: &str, saved| next(&words(text), saved, "monoform").unwrap();
        assert_eq!(of("apply", None), "\nTo go on, run again:\n  monoform apply\n");
        assert_eq!(
            of(
                "-chdir=my dir|apply|-var|key=s3cr3t|-var=b=c=d|-target=t.n[\"a\"]|-var-file=x.tfvars",
                None
            ),
            "\nTo go on, run again:\n  monoform '-chdir=my dir' apply -var 'key=…' '-var=b=…' '-target=t.n[\"a\"]' -var-file=x.tfvars\n"
        );
        assert_eq!(
            of("-chdir=d|apply|-parallelism=3|a plan", Some("a plan")),
            "\nTo go on, make a new plan and apply it:\n  monoform -chdir=d plan -out='a plan'\n  monoform -chdir=d apply 'a plan'\n"
        );
        assert_eq!(next(&words("apply|-replace=t.n"), None, "monoform"), None);
    }

    #[test]
    fn a_complete_apply_needs_no_words() {
        assert_eq!(text(Verb::Apply, &Completion::default()), None);
    }

    #[test]
    fn unfinished_operations_are_listed_up_to_a_limit() {
        let completion = |not_begun| Completion {
            total: 5 + not_begun,
            done: 1,
            failed: 1,
            aborted: [Recorded::Nothing, Recorded::Tainted, Recorded::Object]
                .into_iter()
                .zip(operations(3))
                .map(|(recorded, operation)| UnfinishedOperation {
                    recorded: Some(recorded),
                    ..operation
                })
                .collect(),
            not_begun: operations(not_begun),
        };
        assert_eq!(
            text(Verb::Apply, &completion(2)).unwrap(),
            "Apply incomplete: of 7 operations, 1 completed, 1 failed, 3 aborted, 2 not begun.\n\nAborted; they may have taken \
             effect, in whole or in part:\n  - t.n[0] (create): not in the state\n  - t.n[1] (create): in the state as tainted, so the next \
             apply replaces it\n  - t.n[2] (create): in the state\n\nNot begun:\n  - t.n[0] (create)\n  - t.n[1] (create)\n"
        );
        let eleven = text(Verb::Apply, &completion(11)).unwrap();
        assert!(eleven.ends_with("t.n[10] (create)\n"), "{eleven}");
        let many = text(Verb::Apply, &completion(1000)).unwrap();
        assert!(many.ends_with("t.n[9] (create)\n  - and 990 more\n"), "{many}");
    }
}

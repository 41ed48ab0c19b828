//! Functions of templates.

use std::path::Path;

use super::Field;
use crate::docs::sections;

/// Calls a function.
///
/// # Errors
/// There is no such function, its arguments are wrong, or the file that it shows cannot be read; as a clause.
pub fn call(name: &str, arguments: &[Field], root: &Path) -> Result<Field, String> {
    let takes = |number: usize| match arguments.len() == number {
        true => Ok(()),
        false => Err(format!(
            "\"{name}\" takes {number} argument{}",
            if number == 1 { "" } else { "s" }
        )),
    };
    let texts: Vec<String> = arguments.iter().map(Field::text).collect();
    let text = |at: usize| texts.get(at).map(String::as_str).unwrap_or_default();
    let text_of = |f: &dyn Fn(&str) -> String| takes(1).map(|()| Field::Text(f(text(0))));
    match name {
        "trimspace" => text_of(&|text| text.trim().to_owned()),
        "lower" => text_of(&str::to_lowercase),
        "upper" => text_of(&str::to_uppercase),
        "plainmarkdown" => text_of(&sections::plain),
        "prefixlines" => takes(2).map(|()| Field::Text(prefixed(text(0), text(1)))),
        "tffile" => takes(1).and_then(|()| code("terraform", text(0), root)),
        "codefile" => takes(2).and_then(|()| code(text(0), text(1), root)),
        "printf" => formatted(&texts).map(Field::Text),
        "not" => takes(1).map(|()| Field::Flag(!arguments.iter().any(Field::is_true))),
        "or" => Ok(Field::Flag(arguments.iter().any(Field::is_true))),
        "and" => Ok(Field::Flag(arguments.iter().all(Field::is_true))),
        "eq" => takes(2).map(|()| Field::Flag(text(0) == text(1))),
        _ => Err(format!(
            "there is no function \"{name}\" in templates; there are and, codefile, eq, lower, not, or, plainmarkdown, prefixlines, \
             printf, tffile, trimspace and upper"
        )),
    }
}

fn prefixed(prefix: &str, text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(|line| format!("{prefix}{line}")).collect();
    lines.join("\n")
}

fn code(language: &str, path: &str, root: &Path) -> Result<Field, String> {
    let text = std::fs::read_to_string(root.join(path))
        .map_err(|error| format!("the file {path} cannot be read: {}", files::io_reason(&error)))?;
    Ok(Field::Text(format!("```{language}\n{}\n```", text.trim_end())))
}

/// Fills in `%s` and `%q` of a format.
fn formatted(texts: &[String]) -> Result<String, String> {
    let (format, arguments) = texts.split_first().ok_or("\"printf\" needs a format")?;
    let mut arguments = arguments.iter();
    let mut out = String::new();
    let mut rest = format.as_str();
    while let Some((before, after)) = rest.split_once('%') {
        out.push_str(before);
        let verb = after.chars().next().unwrap_or_default();
        match verb {
            '%' => out.push('%'),
            's' | 'q' => {
                let argument = arguments
                    .next()
                    .ok_or("\"printf\" has fewer arguments than its format")?;
                match verb {
                    's' => out.push_str(argument),
                    _ => out.push_str(&format!("{argument:?}")),
                }
            }
            _ => return Err(format!("\"printf\" knows %s, %q and %% here, and not %{verb}")),
        }
        rest = after.get(verb.len_utf8()..).unwrap_or_default();
    }
    out.push_str(rest);
    match arguments.next() {
        None => Ok(out),
        Some(_) => Err("\"printf\" has more arguments than its format".to_owned()),
    }
}

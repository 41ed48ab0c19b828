//! Templates of pages, in the syntax of templates for registry pages.
//!
//! The syntax is a part of Go's `text/template`: fields, the functions of [`call`], pipes, `if`, `else`, `range`, comments, and `-` beside
//! a brace to remove adjacent blanks. Everything else is an error with its line, because a wrong page would be published otherwise.

mod call;
mod parse;

use std::collections::BTreeMap;
use std::path::Path;

use super::DocsError;
use parse::{Call, Node, Term};

/// Value of a field or of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    Text(String),
    Flag(bool),
    List(Vec<String>),
}

impl Field {
    fn is_true(&self) -> bool {
        match self {
            Field::Text(text) => !text.is_empty(),
            Field::Flag(flag) => *flag,
            Field::List(items) => !items.is_empty(),
        }
    }

    fn text(&self) -> String {
        match self {
            Field::Text(text) => text.clone(),
            Field::Flag(flag) => flag.to_string(),
            Field::List(items) => items.join(" "),
        }
    }
}

/// Fields of a page by their names.
pub type Fields = BTreeMap<&'static str, Field>;

/// Mistake in a template: its line, and a clause that says what is wrong.
#[derive(Debug, PartialEq, Eq)]
pub struct Mistake {
    pub line: usize,
    pub reason: String,
}

/// Fields and item that an expression can refer to, and the directory that its functions read.
struct Scope<'a> {
    /// The project's directory, which paths of files are relative to.
    root: &'a Path,
    fields: &'a Fields,
    /// The item of the innermost `range`.
    item: Option<&'a str>,
}

/// Fills in a template.
///
/// # Errors
/// The template has a mistake, or names a file that cannot be read. The error has `path` as the path of the template.
pub fn render(path: &Path, template: &str, root: &Path, fields: &Fields) -> Result<String, DocsError> {
    let scope = Scope {
        root,
        fields,
        item: None,
    };
    let rendered = parse::parse(template).and_then(|nodes| {
        let mut out = String::new();
        fill(&mut out, &nodes, &scope)?;
        Ok(out)
    });
    rendered.map_err(|Mistake { line, reason }| DocsError::Template {
        path: path.to_owned(),
        line,
        reason,
    })
}

fn fill(out: &mut String, nodes: &[Node], scope: &Scope<'_>) -> Result<(), Mistake> {
    for node in nodes {
        match node {
            Node::Text(text) => out.push_str(text),
            Node::Value(call) => out.push_str(&evaluate(call, scope)?.text()),
            Node::If(condition, then, otherwise) => {
                let chosen = if evaluate(condition, scope)?.is_true() {
                    then
                } else {
                    otherwise
                };
                fill(out, chosen, scope)?;
            }
            Node::Range(list, body) => match evaluate(list, scope)? {
                Field::List(items) => {
                    for item in &items {
                        let scope = Scope {
                            item: Some(item),
                            ..*scope
                        };
                        fill(out, body, &scope)?;
                    }
                }
                _ => {
                    let reason = "\"range\" needs a list, such as .ExampleFiles".to_owned();
                    return Err(Mistake {
                        line: list.line,
                        reason,
                    });
                }
            },
        }
    }
    Ok(())
}

/// Evaluates a pipeline: the result of each command is the last argument of the next one.
fn evaluate(pipeline: &Call, scope: &Scope<'_>) -> Result<Field, Mistake> {
    let mistake = |reason: String| Mistake {
        line: pipeline.line,
        reason,
    };
    let mut piped: Option<Field> = None;
    for command in &pipeline.commands {
        let (first, rest) = command
            .split_first()
            .ok_or_else(|| mistake("a pipe has no command".to_owned()))?;
        let mut arguments = Vec::with_capacity(rest.len() + 1);
        for term in rest {
            arguments.push(term_value(term, scope).map_err(mistake)?);
        }
        arguments.extend(piped.take());
        let value = match first {
            Term::Name(name) => call::call(name, &arguments, scope.root).map_err(mistake)?,
            _ if !arguments.is_empty() => return Err(mistake("a value takes no arguments".to_owned())),
            term => term_value(term, scope).map_err(mistake)?,
        };
        piped = Some(value);
    }
    piped.ok_or_else(|| mistake("the braces are empty".to_owned()))
}

fn term_value(term: &Term, scope: &Scope<'_>) -> Result<Field, String> {
    match term {
        Term::Text(text) => Ok(Field::Text(text.clone())),
        Term::Item => match scope.item {
            Some(item) => Ok(Field::Text(item.to_owned())),
            None => Err("\".\" has a meaning inside of \"range\" only".to_owned()),
        },
        Term::Field(name) => scope.fields.get(name.as_str()).cloned().ok_or_else(|| {
            let known: Vec<String> = scope.fields.keys().map(|name| format!(".{name}")).collect();
            format!("this page has no field \".{name}\"; it has {}", known.join(", "))
        }),
        Term::Name(name) => Err(format!(
            "\"{name}\" is neither a field (which begins with a dot) nor a text in quotes"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(template: &str) -> Result<String, String> {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("examples")).unwrap();
        std::fs::write(root.path().join("examples/a.tf"), "a = 1\n\n").unwrap();
        let fields = Fields::from([
            ("Name", Field::Text("zoo_pet".into())),
            ("Description", Field::Text("A *pet*,\nwith `a` [link](x).".into())),
            ("HasExample", Field::Flag(false)),
            ("HasImport", Field::Flag(true)),
            (
                "Files",
                Field::List(vec!["examples/a.tf".into(), "examples/a.tf".into()]),
            ),
        ]);
        render(Path::new("templates/x.md"), template, root.path(), &fields).map_err(|error| error.to_string())
    }

    #[test]
    fn placeholders_conditions_and_lists_are_filled_in() {
        for (template, expected) in [
            ("# {{ .Name }} {{.Name}}", "# zoo_pet zoo_pet"),
            ("{{/* nothing */}}x", "x"),
            ("a  {{- .Name -}}  b", "azoo_petb"),
            ("{{ if .HasExample }}yes{{ else }}no{{ end }}", "no"),
            (
                "{{ if .HasExample }}1{{ else if .HasImport }}2{{ else }}3{{ end }}",
                "2",
            ),
            ("{{ if or .HasExample .HasImport }}one{{ end }}", "one"),
            ("{{ if and .HasImport (not .HasExample) }}one{{ end }}", "one"),
            ("{{ if eq .Name \"zoo_pet\" }}pet{{ end }}", "pet"),
            (
                "{{ .Description | plainmarkdown | trimspace | prefixlines \"  \" }}",
                "  A pet,\n  with a link.",
            ),
            (
                "{{ range .Files }}\n{{ tffile . }}{{ end }}",
                "\n```terraform\na = 1\n```\n```terraform\na = 1\n```",
            ),
            ("{{ codefile \"shell\" \"examples/a.tf\" }}", "```shell\na = 1\n```"),
            ("{{ printf \"%s is %q\" .Name \"x\" }}", "zoo_pet is \"x\""),
            ("{{ \"{{\" }}", "{{"),
        ] {
            assert_eq!(rendered(template).as_deref(), Ok(expected), "{template}");
        }
    }

    #[test]
    fn mistakes_are_reported_with_their_line() {
        for (template, expected) in [
            (
                "\n{{ .Nam }}",
                "templates/x.md, line 2: this page has no field \".Nam\"",
            ),
            ("{{ if .Name }}", "line 1: \"if\" has no \"end\""),
            ("{{ end }}", "line 1: \"end\" has no \"if\" or \"range\""),
            ("{{ .Name", "line 1: \"{{\" is not closed"),
            ("{{ with .Name }}{{ end }}", "line 1: \"with\" cannot be used here"),
            ("{{ wit .Name }}", "line 1: there is no function \"wit\""),
            (
                "\n\n{{ tffile \"nothing.tf\" }}",
                "line 3: the file nothing.tf cannot be read",
            ),
            ("{{ range .Name }}{{ end }}", "\"range\" needs a list"),
            ("{{ . }}", "inside of \"range\""),
            ("{{ tffile }}", "\"tffile\" takes 1 argument"),
        ] {
            let error = rendered(template).unwrap_err();
            assert!(error.contains(expected), "{template}: {error}");
        }
    }
}

//! Pages of the site, from the texts of `help` and `docs`.

use std::fmt::Write as _;

use addrs::Program;
use lang::functions::{groups, signature};
use packages::builtin::BuiltinProvider;
use provider::ProviderSchema;
use schema::BlockSchema;
use syntax::Diagnostics;
use views::json::documents::DOCUMENTS;

use super::html::{self, anchor, code, escaped, inline};
use super::{Entry, Page};
use crate::args::help;
use crate::commands::docs::page::{self as docs, Kind};
use crate::commands::docs::{provisioner_schema, schema};
use crate::commands::{COMMANDS, Command, examples, overview};
use crate::guide::{TOPICS, markdown};
use crate::session::Session;

/// Returns all pages, the start page first.
pub(super) fn all(session: &Session) -> Result<Vec<Page>, Diagnostics> {
    let mut pages = Vec::new();
    pages.extend(
        TOPICS
            .iter()
            .filter_map(|topic| Some(guide(topic.name, topic.about, topic.markdown()?))),
    );
    let mut commands: Vec<&&Command> = COMMANDS.iter().filter(|c| !overview::is_hidden(c.path)).collect();
    commands.sort_by_key(|command| command.path);
    pages.extend(
        commands
            .into_iter()
            .map(|command| of_command(command, session.ui.program)),
    );
    for provider in &session.builtins.providers {
        pages.push(of_provider(provider, &*schema(session, provider)?));
    }
    pages.push(provisioners(session)?);
    pages.push(functions());
    pages.push(documents());
    // The first page is made last, since it lists the others.
    pages.insert(0, first(&pages));
    Ok(pages)
}

fn first(pages: &[Page]) -> Page {
    let mut body =
        "<h1>Monoform</h1>\n<p>Infrastructure as code in one executable. These pages are those of <code>monoform \
                    help</code> and <code>monoform docs</code>.</p>\n"
            .to_owned();
    for section in html::SECTIONS {
        let _ = writeln!(body, "<h2>{section}</h2>\n<dl class=\"pages\">");
        for page in pages.iter().filter(|page| page.section == section) {
            let _ = writeln!(
                body,
                "<div><dt><a href=\"{}\">{}</a></dt><dd>{}</dd></div>",
                page.file,
                escaped(&page.title),
                escaped(&page.about)
            );
        }
        body.push_str("</dl>\n");
    }
    Page {
        file: "index.html".to_owned(),
        title: "Monoform".to_owned(),
        section: "",
        about: "The documentation of Monoform".to_owned(),
        body,
        entries: Vec::new(),
    }
}

fn guide(name: &str, about: &str, text: &str) -> Page {
    let blocks = markdown::parse(text);
    let file = format!("guide-{name}.html");
    let mut entries = vec![Entry {
        title: name.to_owned(),
        kind: "guide",
        address: file.clone(),
        about: about.to_owned(),
        words: text.replace('`', ""),
    }];
    for block in &blocks {
        if let markdown::Block::Heading { level: 2, text } = block {
            entries.push(Entry {
                title: text.clone(),
                kind: "guide",
                address: format!("{file}#{}", anchor(text)),
                about: about.to_owned(),
                words: String::new(),
            });
        }
    }
    Page {
        file,
        title: name.to_owned(),
        section: "Guides",
        about: about.to_owned(),
        body: html::blocks(&blocks),
        entries,
    }
}

fn of_command(command: &Command, called: Program) -> Page {
    let program = called.command;
    let declared = command.declared(called);
    let title = command.path;
    let usage = format!("{program} [global options] {title} [options] {}", command.positional);
    let mut body = format!("<h1><code>{program} {title}</code></h1>\n{}", code(&usage));
    let details = declared.get_about().map(ToString::to_string).unwrap_or_default();
    let _ = writeln!(body, "<p>{}</p>", inline(&details));
    let below = overview::below(title);
    if !below.is_empty() {
        body.push_str("<h2>Subcommands</h2>\n<dl class=\"pages\">\n");
        for one in below {
            let (file, path) = (command_file(one.path), one.path);
            let _ = writeln!(
                body,
                "<div><dt><a href=\"{file}\">{path}</a></dt><dd>{}</dd></div>",
                escaped(one.about)
            );
        }
        body.push_str("</dl>\n");
    }
    let examples = examples::for_command(title);
    if !examples.is_empty() {
        body.push_str("<h2 id=\"examples\">Examples</h2>\n");
    }
    for (arguments, what) in examples {
        let line = format!("{program} {title} {arguments}");
        let _ = writeln!(body, "<p>{}</p>\n{}", inline(what), code(line.trim_end()));
    }
    let flags: Vec<_> = declared
        .get_arguments()
        .filter(|flag| flag.get_long().is_some() && !flag.is_hide_set())
        .collect();
    let mut words = details;
    if !flags.is_empty() {
        body.push_str("<h2 id=\"options\">Options</h2>\n<dl class=\"arguments\">\n");
    }
    for flag in &flags {
        let (shown, about) = (help::shown(flag), help::about(flag));
        let _ = writeln!(
            body,
            "<dt><code>{}</code></dt><dd>{}</dd>",
            escaped(&shown),
            inline(&about)
        );
        let _ = write!(words, " {shown} {about}");
    }
    if !flags.is_empty() {
        body.push_str("</dl>\n");
    }
    let file = command_file(title);
    Page {
        title: title.to_owned(),
        section: "Commands",
        about: command.about.to_owned(),
        body,
        entries: vec![Entry {
            title: format!("{program} {title}"),
            kind: "command",
            address: file.clone(),
            about: command.about.to_owned(),
            words,
        }],
        file,
    }
}

fn command_file(path: &str) -> String {
    format!("command-{}.html", path.replace(' ', "-"))
}

/// Part of a page about a block: heading, description, example, arguments.
struct Part<'a> {
    heading: String,
    kind: &'static str,
    block: &'a BlockSchema,
    example: String,
}

fn part(page: &mut Page, part: &Part<'_>) {
    let id = anchor(&format!("{} {}", part.kind, part.heading));
    let _ = writeln!(
        page.body,
        "<h2 id=\"{id}\"><code>{}</code> <small>{}</small></h2>",
        escaped(&part.heading),
        part.kind
    );
    let description = &part.block.description.text;
    let mut words = description.clone();
    for paragraph in description.split("\n\n").filter(|p| !p.trim().is_empty()) {
        let _ = writeln!(page.body, "<p>{}</p>", inline(paragraph.trim()));
    }
    page.body.push_str(&code(&part.example));
    let arguments = docs::arguments_of(part.block);
    for (given, title) in [(true, "Arguments"), (false, "Decided by the provider")] {
        let mut some = arguments.iter().filter(|argument| argument.given == given).peekable();
        if some.peek().is_none() {
            continue;
        }
        let _ = writeln!(page.body, "<h3>{title}</h3>\n<dl class=\"arguments\">");
        for argument in some {
            let _ = writeln!(
                page.body,
                "<dt><code>{}</code> <small>{}</small></dt><dd>{}</dd>",
                escaped(&argument.label),
                escaped(&argument.facts),
                inline(argument.about.trim())
            );
            let _ = write!(words, " {} {}", argument.label, argument.about);
        }
        page.body.push_str("</dl>\n");
    }
    // The first sentence is enough for a search result.
    let first = description.split(". ").next().unwrap_or_default();
    page.entries.push(Entry {
        title: part.heading.clone(),
        kind: part.kind,
        address: format!("{}#{id}", page.file),
        about: first.trim_end_matches('.').to_owned(),
        words,
    });
}

fn of_provider(provider: &BuiltinProvider, schema: &ProviderSchema) -> Page {
    let name = &provider.name;
    let file = format!("provider-{name}.html");
    let version = provider
        .version
        .as_ref()
        .map(|version| format!(", version {version}"))
        .unwrap_or_default();
    let types: usize = Kind::ALL.iter().map(|kind| kind.names(schema).len()).sum();
    let about = format!("{types} types and {} functions", schema.functions.len());
    let mut page = Page {
        title: name.clone(),
        section: "Providers",
        body: format!(
            "<h1>Provider <code>{name}</code></h1>\n<p>Built in: <code>{}</code>{version}.</p>\n",
            escaped(&provider.address.to_string())
        ),
        about,
        entries: Vec::new(),
        file,
    };
    part(
        &mut page,
        &Part {
            heading: format!("provider \"{name}\""),
            kind: "configuration",
            block: &schema.provider.block,
            example: docs::provider_example(&provider.name, schema),
        },
    );
    for kind in Kind::ALL {
        for name in kind.names(schema) {
            let Some(found) = kind.schema(schema, &name) else {
                continue;
            };
            part(
                &mut page,
                &Part {
                    kind: kind.title(),
                    block: &found.block,
                    example: docs::type_example(kind, &name, &provider.name, found),
                    heading: name,
                },
            );
        }
    }
    for (function, found) in schema.functions.iter() {
        let called = format!("provider::{name}::{function}");
        let id = anchor(&called);
        let text = docs::provider_function(&called, found, 100);
        let _ = writeln!(
            page.body,
            "<h2 id=\"{id}\"><code>{called}</code> <small>function</small></h2>\n{}",
            code(&text)
        );
        page.entries.push(Entry {
            title: called,
            kind: "function",
            address: format!("{}#{id}", page.file),
            about: found.summary.clone(),
            words: found.description.text.clone(),
        });
    }
    page
}

fn provisioners(session: &Session) -> Result<Page, Diagnostics> {
    let names = &session.builtins.provisioners;
    let mut page = Page {
        file: "provisioners.html".to_owned(),
        title: "provisioners".to_owned(),
        section: "Providers",
        about: names.join(", "),
        body: "<h1>Provisioners</h1>\n".to_owned(),
        entries: Vec::new(),
    };
    for name in names {
        let schema = provisioner_schema(session, name)?;
        part(
            &mut page,
            &Part {
                heading: name.clone(),
                kind: "provisioner",
                block: &schema.block,
                example: docs::provisioner_example(name, &schema),
            },
        );
    }
    Ok(page)
}

fn functions() -> Page {
    let file = "functions.html";
    let signatures = signature::all();
    let mut body = "<h1>Functions</h1>\n".to_owned();
    let mut entries = Vec::new();
    for (title, names) in groups() {
        let _ = writeln!(body, "<h2 id=\"{}\">{title}</h2>", anchor(title));
        for name in names {
            let Some(found) = signatures.get(name) else { continue };
            let parameters = found.parameters.iter().map(|p| p.name.to_owned());
            let further = found.variadic.iter().map(|p| format!("{}...", p.name));
            let parameters: Vec<String> = parameters.chain(further).collect();
            let _ = writeln!(
                body,
                "<h3 id=\"{name}\"><code>{name}({})</code> <small>{}</small></h3>\n<p>{}</p>",
                escaped(&parameters.join(", ")),
                escaped(&docs::word(&found.returns)),
                inline(found.description)
            );
            entries.push(Entry {
                title: name.to_owned(),
                kind: "function",
                address: format!("{file}#{name}"),
                about: found.description.split(". ").next().unwrap_or_default().to_owned(),
                words: found.description.to_owned(),
            });
        }
    }
    Page {
        file: file.to_owned(),
        title: "functions".to_owned(),
        section: "Language",
        about: format!("The {} functions of the language", entries.len()),
        body,
        entries,
    }
}

fn documents() -> Page {
    let file = "json.html";
    let mut body = "<h1>JSON documents</h1>\n<p>With <code>-json</code> a command prints one document, or one object a line while it \
                    runs (a stream). A property keeps its meaning while the first number of <code>format_version</code> stays the \
                    same.</p>\n"
        .to_owned();
    let mut entries = Vec::new();
    for document in DOCUMENTS {
        let id = anchor(document.name);
        let _ = writeln!(
            body,
            "<h2 id=\"{id}\">{}</h2>\n<p>{}</p>\n<details><summary>JSON Schema</summary>\n{}</details>",
            escaped(document.name),
            inline(document.command),
            code(document.schema)
        );
        entries.push(Entry {
            title: format!("JSON of {}", document.name),
            kind: "document",
            address: format!("{file}#{id}"),
            about: document.command.to_owned(),
            words: String::new(),
        });
    }
    Page {
        file: file.to_owned(),
        title: "JSON documents".to_owned(),
        section: "Language",
        about: "What -json prints, with the schema of each document".to_owned(),
        body,
        entries,
    }
}

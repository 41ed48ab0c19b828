//! Plans, diagnostics and summaries in terminals of 80 and of 160 columns, plain and in colours, against the files in `goldens/`.
//!
//! A file has a section for each terminal; terminals with the same text share one. `␛` stands for the escape character. `cargo
//! test
//! --workspace --lib -- --ignored goldens_are_written` writes the files again; read the differences before committing them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use engine::plan::{Action, Reason};
use serde_json::{Value as Json, json};
use syntax::diag::ExpressionContext;
use syntax::{Diagnostic, Diagnostics, Pos, Range, SourceMap};
use unicode_width::UnicodeWidthStr as _;

use crate::diagnostics::{self, Layout};
use crate::json::read;
use crate::terminal::shown;
use crate::ui::Style;
use crate::{diff, summary};

/// Terminal that a text is rendered for.
#[derive(Clone, Copy)]
struct Look {
    width: usize,
    colour: bool,
}

impl Look {
    fn layout(self) -> Layout {
        Layout {
            style: Style { on: self.colour },
            width: self.width,
            plain: !self.colour,
        }
    }
}

const LOOKS: [Look; 4] = [
    Look {
        width: 80,
        colour: false,
    },
    Look {
        width: 80,
        colour: true,
    },
    Look {
        width: 160,
        colour: false,
    },
    Look {
        width: 160,
        colour: true,
    },
];

type Show = fn(Look) -> String;

/// Functions that render the text, by the names of the files.
const SUBJECTS: [(&str, Show); 4] = [
    ("plan", changes),
    ("problems", problems),
    ("warnings", warnings),
    ("summary", many),
];

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("goldens/{name}.txt"))
}

/// Renders the content of a golden file.
fn golden(show: Show) -> String {
    let mut sections: Vec<(String, String)> = Vec::new();
    for look in LOOKS {
        let style = if look.colour { "colours" } else { "plain" };
        let title = format!("{} {style}", look.width);
        let text = shown(&show(look)).replace('\x1b', "␛");
        match sections.iter_mut().find(|(_, same)| *same == text) {
            Some((titles, _)) => {
                let _ = write!(titles, ", {title}");
            }
            None => sections.push((title, text)),
        }
    }
    sections
        .iter()
        .map(|(titles, text)| format!("=== {titles}\n{text}"))
        .collect()
}

#[test]
fn views_look_as_in_the_goldens() {
    for (name, show) in SUBJECTS {
        let expected = std::fs::read_to_string(file(name)).unwrap();
        assert_eq!(golden(show), expected, "{name}");
    }
}

#[test]
#[ignore = "writes the goldens again"]
fn goldens_are_written() {
    for (name, show) in SUBJECTS {
        std::fs::write(file(name), golden(show)).unwrap();
    }
}

#[test]
fn no_line_of_prose_is_wider_than_the_terminal() {
    for (_, show) in SUBJECTS {
        for look in LOOKS.into_iter().filter(|look| !look.colour) {
            for line in show(look)
                .lines()
                .filter(|line| !line.starts_with(' ') && line.split(' ').count() > 8)
            {
                assert!(line.width() <= look.width, "{line}");
            }
        }
    }
}

/// Returns a change in the form of a plan's JSON document.
fn change(name: &str, before: &Json, after: &Json) -> Json {
    json!({
        "address": format!("terraform_data.{name}"),
        "mode": "managed",
        "type": "terraform_data",
        "name": name,
        "provider_name": "terraform.io/builtin/terraform",
        "change": {
            "actions": ["update"],
            "before": { "id": "0f5a", "input": before, "output": before, "triggers_replace": null },
            "after": { "id": "0f5a", "input": after, "triggers_replace": null },
            "after_unknown": { "output": true },
            "before_sensitive": {},
            "after_sensitive": {},
        },
    })
}

/// Renders nested blocks, maps, lists, sets, a replacement, multi-line text, JSON and YAML in strings, long lists and drift.
fn changes(look: Look) -> String {
    let records = Path::new(env!("CARGO_MANIFEST_DIR")).join("diff/tests/plans");
    let record = |name: &str| -> Json {
        serde_json::from_str(&std::fs::read_to_string(records.join(format!("{name}.json"))).unwrap()).unwrap()
    };
    let schemas = read::schemas(&record("schemas")).unwrap();
    let own = json!({
        "applyable": true,
        "errored": false,
        "mode": "normal",
        "resource_changes": [
            change(
                "yaml",
                &json!("replicas: 2\nimage:\n  name: web\n  tag: v1\nports:\n  - 80\n  - 443\nlabels:\n  a: b\n"),
                &json!("replicas: 3\nimage:\n  name: web\n  tag: v2\nports:\n  - 80\n  - 443\nlabels:\n  a: b\n"),
            ),
            change(
                "json",
                &json!(r#"{"Version":"2012-10-17","Statement":[{"Action":"s3:Get*","Effect":"Allow"}]}"#),
                &json!(r#"{"Version":"2012-10-17","Statement":[{"Action":"s3:*","Effect":"Allow"}]}"#),
            ),
            change(
                "long",
                &json!((0..12).collect::<Vec<_>>()),
                &json!((0..12).filter(|n| *n != 6).collect::<Vec<_>>()),
            ),
        ],
    });
    let mut plan = read::plan(&record("drift_relevant"), &schemas).unwrap();
    for name in ["shed_update", "zoo_blocks", "shed_replace"] {
        let more = read::plan(&record(name), &schemas).unwrap();
        plan.changes.extend(more.changes);
        plan.outputs.extend(more.outputs);
    }
    plan.changes.extend(read::plan(&own, &schemas).unwrap().changes);
    let style = diff::Style {
        colour: look.colour,
        width: look.width,
        revealed: false,
        short: false,
        unchanged: false,
        program: addrs::Program::MONOFORM,
    };
    diff::plan_text(plan.view(), &schemas, style)
}

const SOURCE: &str =
    "resource \"terraform_data\" \"web\" {\n  count = 3\n  input = terraform_data.network[7].output\n}\n";

fn at(line: u32, bytes: std::ops::Range<u32>) -> Range {
    let pos = |byte| Pos { line, column: 1, byte };
    Range {
        file: "modules/web/main.tf".into(),
        start: pos(bytes.start),
        end: pos(bytes.end),
    }
}

fn sources() -> SourceMap {
    let mut sources = SourceMap::default();
    sources.insert("modules/web/main.tf", SOURCE);
    sources
}

/// Renders a long detail with letters of one and of two columns, a snippet with values, an address, and lines that are not
/// wrapped.
fn problems(look: Look) -> String {
    let mut index = Diagnostic::error(
        "Invalid index",
        "The given key does not identify an element in this collection value: the collection has fewer elements than the \
         expression asks for, because the number of instances of the resource was changed, and what refers to them was not.\n\n\
         Use one of these:\n  - a key from 0 to 2\n  - the function element, which begins again after the last one, whatever the \
         number of elements is\n",
    )
    .about("module.web.terraform_data.web[1]")
    .at(&at(3, 78..81));
    index.expression = Some(Box::new(ExpressionContext {
        values: vec![
            ("count.index".into(), "is 1".into()),
            ("terraform_data.network".into(), "is tuple with 3 elements".into()),
        ],
        ..ExpressionContext::default()
    }));
    let wide = Diagnostic::warning(
        "Value for undeclared variable",
        "日本語の長い説明文です。 ".repeat(8)
            + "And one more sentence, which has words of the usual width and is long enough to be broken.",
    );
    let address = Diagnostic::error(
        "Failed to query available provider packages",
        format!(
            "Could not retrieve the list of available versions for provider https://{}.",
            "very-long-name.".repeat(14)
        ),
    );
    [index, wide, address]
        .iter()
        .map(|problem| diagnostics::format(problem, &sources(), look.layout()))
        .collect()
}

/// Renders warnings folded into one, then as summaries.
fn warnings(look: Look) -> String {
    let deprecated = |line| {
        Diagnostic::warning(
            "Deprecated Resource",
            "This resource is deprecated and will be removed in the next major version of the provider. Use another one, and \
             see the guide for how to move what exists to it.",
        )
        .at(&at(line, 0..8))
    };
    let mut all: Diagnostics = (1..=4).map(deprecated).collect();
    all.push(Diagnostic::warning("No place", "It stands alone."));
    let folded = diagnostics::fold_warnings(all).0;
    let mut out: String = folded
        .iter()
        .map(|problem| diagnostics::format(problem, &sources(), look.layout()))
        .collect();
    out.push_str(&diagnostics::compact_warnings(&folded, look.layout().style, "Monoform"));
    out
}

/// Renders the summary of a plan with 2,000 changes.
fn many(_: Look) -> String {
    let own = json!({
        "applyable": true,
        "errored": false,
        "mode": "normal",
        "resource_changes": [change("a", &json!(1), &json!(2))],
    });
    let records = Path::new(env!("CARGO_MANIFEST_DIR")).join("diff/tests/plans/schemas.json");
    let schemas = serde_json::from_str(&std::fs::read_to_string(records).unwrap()).unwrap();
    let one = read::plan(&own, &read::schemas(&schemas).unwrap())
        .unwrap()
        .changes
        .remove(0);
    let changes = (0..2000).map(|i| {
        let mut change = one.clone();
        let module = [
            "",
            "module.network.",
            "module.web[\"eu\"].",
            "module.web[\"us\"].module.cache.",
        ][i % 4];
        let text = format!("{module}terraform_data.{}[{i}]", ["server", "disk", "record"][i % 3]);
        change.address = addrs::parse::resource_instance(&text).unwrap();
        (change.action, change.reason) = match i % 100 {
            0 => (Action::DeleteThenCreate, Reason::ReplaceBecauseCannotUpdate),
            1 => (Action::Delete, Reason::DeleteBecauseNoResourceConfig),
            2..40 => (Action::Create, Reason::None),
            _ => (Action::Update, Reason::None),
        };
        if change.action == Action::DeleteThenCreate {
            change.replace_paths = vec![cty::Path(vec![cty::Step::Attribute("triggers_replace".into())])];
        }
        change
    });
    let plan = read::PlanDocument {
        changes: changes.collect(),
        ..read::PlanDocument::default()
    };
    summary::text(plan.view())
}

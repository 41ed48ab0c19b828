//! Decoding of files with acceptance tests.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use addrs::Provider;
use config::model::CheckRule;
use cty::{Type, Value};
use lang::eval::{Context, evaluate, evaluate_as};
use lang::scope::Constant;
use regex::Regex;
use serde_json::Value as Json;
use syntax::ast::{Attribute, Block, Expr};
use syntax::content::{BodySpec, Content, exact};
use syntax::{Diagnostic, Diagnostics, Range, SourceMap};

use super::file::{
    AcceptanceFile, DESTROYED, Import, ObjectCheck, Operation, Step, StepConfig, Sweeper, configuration_files,
    shown_path,
};
use super::path::ValuePath;

const FILE: BodySpec<'_> = BodySpec {
    attributes: &[
        ("source", false),
        ("init", false),
        ("skip_unless", false),
        ("variables", false),
    ],
    blocks: &[
        ("config", &[]),
        ("step", &["name"]),
        (DESTROYED, &[]),
        ("sweeper", &["name"]),
    ],
};

const STEP: BodySpec<'_> = BodySpec {
    attributes: &[
        ("operation", false),
        ("directory", false),
        ("variables", false),
        ("run", false),
        ("expect_error", false),
        ("non_empty_plan", false),
        ("actions", false),
    ],
    blocks: &[
        ("config", &[]),
        ("planned", &["address"]),
        ("state", &["address"]),
        ("import", &["address"]),
        ("assert", &[]),
    ],
};

const AFTER: BodySpec<'_> = BodySpec {
    attributes: &[
        ("directory", false),
        ("variables", false),
        ("run", false),
        ("expect_error", false),
    ],
    blocks: &[("config", &[]), ("assert", &[])],
};

const PLANNED: BodySpec<'_> = BodySpec {
    attributes: &[
        ("action", false),
        ("values", false),
        ("matches", false),
        ("set", false),
        ("null", false),
        ("unknown", false),
        ("sensitive", false),
    ],
    blocks: &[],
};

const STATE: BodySpec<'_> = BodySpec {
    attributes: &[
        ("values", false),
        ("matches", false),
        ("set", false),
        ("null", false),
        ("sensitive", false),
    ],
    blocks: &[],
};

const IMPORT: BodySpec<'_> = BodySpec {
    attributes: &[("id", false), ("ignore", false), ("expect_error", false)],
    blocks: &[],
};

const ASSERT: BodySpec<'_> = BodySpec {
    attributes: &[("condition", true), ("error_message", true)],
    blocks: &[],
};

const SWEEPER: BodySpec<'_> = BodySpec {
    attributes: &[("skip_unless", false), ("run", true)],
    blocks: &[],
};

/// Actions that a plan can have for an object.
const ACTIONS: &[&str] = &[
    "no-op",
    "create",
    "read",
    "update",
    "replace",
    "destroy_before_create",
    "create_before_destroy",
    "delete",
    "forget",
];

/// Decodes a file with acceptance tests. Returns `None`, with the diagnostics, if the file has errors.
pub(super) fn decode(
    name: &str,
    dir: &Path,
    bytes: &[u8],
    sources: &mut SourceMap,
) -> (Option<AcceptanceFile>, Diagnostics) {
    let (body, problems) = syntax::parser::parse_file(name, bytes);
    let mut reader = Reader { dir, sources, problems };
    let content = exact(&body, FILE, &mut reader.problems);
    let file = AcceptanceFile {
        name: name.into(),
        dir: dir.to_owned(),
        text: String::from_utf8_lossy(bytes).into(),
        source: reader.source(&content),
        init: reader.is_true(&content, "init"),
        skip_unless: reader.texts(&content, "skip_unless"),
        config: content.blocks_of("config").next().map(|block| block.body.range.clone()),
        variables: reader.variables(&content),
        steps: content.blocks_of("step").map(|block| reader.step(block)).collect(),
        destroyed: content.blocks_of(DESTROYED).next().map(|block| reader.step(block)),
        sweepers: content
            .blocks_of("sweeper")
            .map(|block| reader.sweeper(block))
            .collect(),
    };
    reader.only_one(&content, "config");
    reader.only_one(&content, DESTROYED);
    reader.names_differ(&content);
    let problems = reader.problems;
    ((!problems.has_errors()).then_some(file), problems)
}

struct Reader<'r> {
    dir: &'r Path,
    sources: &'r mut SourceMap,
    problems: Diagnostics,
}

impl Reader<'_> {
    fn error(&mut self, summary: &str, detail: impl Into<String>, at: &Range) {
        self.problems.push(Diagnostic::error(summary, detail).at(at));
    }

    fn only_one(&mut self, content: &Content<'_>, ty: &str) {
        if let Some(second) = content.blocks_of(ty).nth(1) {
            self.error(
                "Duplicate block",
                format!("There can be only one {ty} block here."),
                &second.header,
            );
        }
    }

    fn names_differ(&mut self, content: &Content<'_>) {
        let mut known = Vec::new();
        for block in content.blocks_of("step").chain(content.blocks_of("sweeper")) {
            let name = block.labels.first().map(|label| &*label.text).unwrap_or_default();
            if known.contains(&(&*block.ty, name)) || name == DESTROYED {
                self.error(
                    "Duplicate name",
                    format!("There is another {} with the name \"{name}\" in this file.", block.ty),
                    &block.header,
                );
            }
            known.push((&*block.ty, name));
        }
    }

    fn as_type(&mut self, expr: &Expr, ty: &Type) -> Option<Value> {
        let (value, problems) = evaluate_as(expr, ty, Context::new(&Constant));
        let is_fine = !problems.has_errors();
        self.problems.extend(problems);
        is_fine.then_some(value).filter(Value::is_wholly_known)
    }

    fn is_true(&mut self, content: &Content<'_>, name: &str) -> bool {
        let value = content
            .attribute(name)
            .and_then(|attribute| self.as_type(&attribute.expr, &Type::Bool));
        value.and_then(|value| value.as_bool()).unwrap_or_default()
    }

    fn text(&mut self, content: &Content<'_>, name: &str) -> Option<(String, Range)> {
        let attribute = content.attribute(name)?;
        let value = self.as_type(&attribute.expr, &Type::String)?;
        Some((value.as_str()?.to_owned(), attribute.expr.range().clone()))
    }

    fn texts(&mut self, content: &Content<'_>, name: &str) -> Vec<String> {
        let value = content
            .attribute(name)
            .and_then(|attribute| self.as_type(&attribute.expr, &Type::list(Type::String)));
        value.iter().flat_map(strings).collect()
    }

    fn commands(&mut self, content: &Content<'_>) -> Vec<Vec<String>> {
        let Some(attribute) = content.attribute("run") else {
            return Vec::new();
        };
        let ty = Type::list(Type::list(Type::String));
        let value = self.as_type(&attribute.expr, &ty);
        let commands: Vec<Vec<String>> = value
            .iter()
            .filter_map(Value::as_seq)
            .flatten()
            .map(|command| strings(command).collect())
            .collect();
        if commands.iter().any(Vec::is_empty) {
            self.error(
                "Empty command",
                "A command is a list: a program, and its arguments.",
                attribute.expr.range(),
            );
        }
        commands
    }

    fn variables(&mut self, content: &Content<'_>) -> BTreeMap<String, Json> {
        let entries = self.entries(content, "variables");
        entries.into_iter().map(|(name, value, _)| (name, value)).collect()
    }

    /// Reads an attribute whose value is an object: name, JSON document and source range for each of its members. Empty if the attribute is
    /// not set or invalid.
    fn entries(&mut self, content: &Content<'_>, name: &str) -> Vec<(String, Json, Range)> {
        let Some(attribute) = content.attribute(name) else {
            return Vec::new();
        };
        let (value, problems) = evaluate(&attribute.expr, Context::new(&Constant));
        let has_failed = problems.has_errors();
        self.problems.extend(problems);
        let range = attribute.expr.range();
        let Some(entries) = value.entries().filter(|_| !has_failed) else {
            if !has_failed {
                let detail = format!("The argument \"{name}\" is an object: names with values.");
                self.error("Invalid value", detail, range);
            }
            return Vec::new();
        };
        entries
            .filter_map(|(key, value)| {
                let text = cty::json::to_simple_text(value).ok()?;
                Some((key.to_string(), serde_json::from_str(&text).ok()?, range.clone()))
            })
            .collect()
    }

    fn path(&mut self, text: &str, at: &Range) -> Option<ValuePath> {
        let path = ValuePath::parse(text);
        if path.is_none() {
            let detail = format!("\"{text}\" is no path of a value, such as \"rule[0].port\" or \"tags[\\\"a\\\"]\".");
            self.error("Invalid path", detail, at);
        }
        path
    }

    fn paths(&mut self, content: &Content<'_>, name: &str) -> Vec<(ValuePath, Range)> {
        let texts = self.texts(content, name);
        let Some(attribute) = content.attribute(name) else {
            return Vec::new();
        };
        let range = attribute.expr.range();
        let mut found = Vec::new();
        for text in texts {
            found.extend(self.path(&text, range).map(|path| (path, range.clone())));
        }
        found
    }

    fn pattern(&mut self, text: &str, at: &Range) -> Option<Regex> {
        match Regex::new(text) {
            Ok(regex) => Some(regex),
            Err(_) => {
                self.error(
                    "Invalid regular expression",
                    format!("\"{text}\" is no regular expression."),
                    at,
                );
                None
            }
        }
    }

    fn expect_error(&mut self, content: &Content<'_>) -> Option<(Regex, Range)> {
        let (text, range) = self.text(content, "expect_error")?;
        Some((self.pattern(&text, &range)?, range))
    }

    fn step(&mut self, block: &Block) -> Step {
        let is_after = &*block.ty == DESTROYED;
        let spec = if is_after { AFTER } else { STEP };
        let content = exact(&block.body, spec, &mut self.problems);
        let name = block.labels.first().map_or(DESTROYED, |label| &*label.text);
        let config = self.config(&content);
        let mut operation = self.operation(&content);
        if is_after {
            operation = if config.is_some() {
                Operation::Plan
            } else {
                Operation::Nothing
            };
        }
        let non_empty_plan = content
            .attribute("non_empty_plan")
            .filter(|_| self.is_true(&content, "non_empty_plan"));
        Step {
            name: name.into(),
            range: block.header.clone(),
            operation,
            config,
            variables: self.variables(&content),
            run: self.commands(&content),
            run_range: content
                .attribute("run")
                .map_or(&block.header, |attribute| &attribute.range)
                .clone(),
            expect_error: self.expect_error(&content),
            non_empty_plan: non_empty_plan.map(|attribute| attribute.range.clone()),
            actions: self.actions(&content),
            planned: content
                .blocks_of("planned")
                .map(|block| self.object(block, PLANNED))
                .collect(),
            states: content
                .blocks_of("state")
                .map(|block| self.object(block, STATE))
                .collect(),
            imports: content.blocks_of("import").map(|block| self.import(block)).collect(),
            asserts: content
                .blocks_of("assert")
                .filter_map(|block| self.assert(block))
                .collect(),
        }
    }

    fn source(&mut self, content: &Content<'_>) -> Option<String> {
        let (text, range) = self.text(content, "source")?;
        if Provider::parse(&text).is_err() {
            let detail = format!("\"{text}\" is no address of a provider: [HOST/]NAMESPACE/NAME is needed.");
            self.error("Invalid source", detail, &range);
        }
        Some(text)
    }

    fn operation(&mut self, content: &Content<'_>) -> Operation {
        let Some((name, range)) = self.text(content, "operation") else {
            return Operation::default();
        };
        let found = Operation::NAMES.iter().find(|(known, _)| *known == name);
        if found.is_none() {
            self.error(
                "Invalid operation",
                format!("\"{name}\" is no operation: \"apply\", \"plan\", \"refresh\" or \"destroy\" is needed."),
                &range,
            );
        }
        found.map_or(Operation::default(), |(_, operation)| *operation)
    }

    fn config(&mut self, content: &Content<'_>) -> Option<StepConfig> {
        self.only_one(content, "config");
        let text = content.blocks_of("config").next();
        let directory = self.text(content, "directory");
        match (text, directory) {
            (Some(block), None) => Some(StepConfig::Text(block.body.range.clone())),
            (Some(_), Some((_, range))) => {
                self.error(
                    "Several configurations",
                    "A step has either a config block or a directory.",
                    &range,
                );
                None
            }
            (None, Some((path, range))) => {
                let dir = self.dir.join(&path);
                match configuration_files(&dir) {
                    Ok(files) if !files.is_empty() => {
                        for file in &files {
                            let text = fs::read(dir.join(file)).unwrap_or_default();
                            let shown = shown_path(&range, &path, file);
                            self.sources.insert(shown, String::from_utf8_lossy(&text).into_owned());
                        }
                        Some(StepConfig::Directory(path.into(), range))
                    }
                    _ => {
                        self.error(
                            "No configuration",
                            format!("The directory {} has no configuration files.", dir.display()),
                            &range,
                        );
                        None
                    }
                }
            }
            (None, None) => None,
        }
    }

    fn actions(&mut self, content: &Content<'_>) -> Option<(BTreeMap<String, String>, Range)> {
        let attribute = content.attribute("actions")?;
        let value = self.as_type(&attribute.expr, &Type::map(Type::String))?;
        let range = attribute.expr.range();
        let mut actions = BTreeMap::new();
        for (address, action) in value.entries().into_iter().flatten() {
            let action = action.as_str().unwrap_or_default();
            self.is_action(action, range);
            actions.insert(address.to_string(), action.to_owned());
        }
        Some((actions, range.clone()))
    }

    fn is_action(&mut self, action: &str, at: &Range) {
        if !ACTIONS.contains(&action) {
            self.error(
                "Invalid action",
                format!("\"{action}\" is no action. These are: {}.", ACTIONS.join(", ")),
                at,
            );
        }
    }

    fn object(&mut self, block: &Block, spec: BodySpec<'_>) -> ObjectCheck {
        let content = exact(&block.body, spec, &mut self.problems);
        let action = self.text(&content, "action");
        if let Some((action, range)) = &action {
            self.is_action(action, range);
        }
        let mut values = Vec::new();
        for (text, value, range) in self.entries(&content, "values") {
            values.extend(self.path(&text, &range).map(|path| (path, value, range)));
        }
        let mut matches = Vec::new();
        for (text, pattern, range) in self.entries(&content, "matches") {
            let path = self.path(&text, &range);
            let pattern = pattern.as_str().unwrap_or_default().to_owned();
            let pattern = self.pattern(&pattern, &range);
            matches.extend(path.zip(pattern).map(|(path, pattern)| (path, pattern, range)));
        }
        ObjectCheck {
            address: label(block),
            range: block.header.clone(),
            action,
            values,
            matches,
            set: self.paths(&content, "set"),
            null: self.paths(&content, "null"),
            unknown: self.paths(&content, "unknown"),
            sensitive: self.paths(&content, "sensitive"),
        }
    }

    fn import(&mut self, block: &Block) -> Import {
        let content = exact(&block.body, IMPORT, &mut self.problems);
        Import {
            address: label(block),
            range: block.header.clone(),
            id: content.attribute("id").map(|attribute| attribute.expr.clone()),
            ignore: self
                .paths(&content, "ignore")
                .into_iter()
                .map(|(path, _)| path)
                .collect(),
            expect_error: self.expect_error(&content),
        }
    }

    fn assert(&mut self, block: &Block) -> Option<CheckRule> {
        let content = exact(&block.body, ASSERT, &mut self.problems);
        let expr = |attribute: &Attribute| attribute.expr.clone();
        Some(CheckRule {
            condition: content.attribute("condition").map(expr)?,
            error_message: content.attribute("error_message").map(expr)?,
            range: block.header.clone(),
        })
    }

    fn sweeper(&mut self, block: &Block) -> Sweeper {
        let content = exact(&block.body, SWEEPER, &mut self.problems);
        Sweeper {
            name: label(block).into(),
            range: block.header.clone(),
            skip_unless: self.texts(&content, "skip_unless"),
            run: self.commands(&content),
        }
    }
}

fn label(block: &Block) -> String {
    block
        .labels
        .first()
        .map(|label| label.text.to_string())
        .unwrap_or_default()
}

fn strings(list: &Value) -> impl Iterator<Item = String> {
    let items = list.as_seq().unwrap_or_default().iter();
    items.filter_map(|item| item.as_str().map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::super::file::masked;
    use super::*;

    fn read(text: &str) -> (Option<AcceptanceFile>, Vec<String>) {
        let mut sources = SourceMap::default();
        let (file, problems) = decode("tests/a.acctest.hcl", Path::new("."), text.as_bytes(), &mut sources);
        let texts = problems
            .iter()
            .map(|p| format!("{}: {}", p.summary, p.detail))
            .collect();
        (file, texts)
    }

    #[test]
    fn mistakes_in_a_file_are_all_reported() {
        let (file, problems) = read(
            "step \"a\" {\n  operation = \"walk\"\n  actions = { \"zoo_pet.a\" = \"make\" }\n  state \"zoo_pet.a\" {\n    values = { \
             \"a b\" = 1 }\n    matches = { id = \"(\" }\n    sensitiv = []\n  }\n}\nstep \"a\" {\n  run = [[]]\n  directory = \"none\"\n}\n",
        );
        assert!(file.is_none());
        let all = problems.join("\n");
        for part in [
            "\"walk\" is no operation",
            "\"make\" is no action",
            "\"a b\" is no path",
            "\"(\" is no regular expression",
            "sensitiv",
            "another step with the name \"a\"",
            "Empty command",
            "has no configuration files",
        ] {
            assert!(all.contains(part), "{part}\n{all}");
        }
    }

    #[test]
    fn configuration_keeps_its_positions_in_the_masked_file() {
        let text = "# é\nstep \"a\" {\n  config {\n    resource \"zoo_pet\" \"a\" {}\n  }\n}\n";
        let (file, problems) = read(text);
        assert_eq!(problems, [""; 0]);
        let file = file.unwrap();
        let Some(StepConfig::Text(range)) = &file.steps[0].config else {
            panic!("{file:?}");
        };
        let masked = masked(&file.text, &[range]);
        assert_eq!(masked.trim(), "resource \"zoo_pet\" \"a\" {}");
        assert_eq!(masked.find("resource"), text.find("resource"));
        assert_eq!(masked.lines().nth(3), text.lines().nth(3));
    }
}

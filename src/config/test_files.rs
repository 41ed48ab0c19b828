//! Test files (`*.tftest.hcl`, `*.tftest.json`): whether they are written as the language wants it.
//!
//! Running them is another matter: here, only the syntax of the files and the names and constants of their blocks are
//! checked. They stand in the directory of the root module and in one directory for tests, neither searched further
//! down.

use std::collections::BTreeMap;
use std::sync::Arc;

use files::io_reason;
use syntax::ast::{Attribute, Block, Body, Expr};
use syntax::content::BodySpec;
use syntax::{Diagnostic, Diagnostics, Range, SourceMap, content};

use crate::decode::parts;
use crate::files::{FileSource, is_ignored, join};
use crate::parse;

/// Where test files are, beside the directory of the root module, by default.
pub const DEFAULT_DIR: &str = "tests";

const FILE: BodySpec<'static> = BodySpec {
    attributes: &[],
    blocks: &[
        ("run", &["name"]),
        ("variables", &[]),
        ("provider", &["name"]),
        ("mock_provider", &["name"]),
        ("override_resource", &[]),
        ("override_data", &[]),
        ("override_module", &[]),
    ],
};

const RUN: BodySpec<'static> = BodySpec {
    attributes: &[
        ("command", false),
        ("providers", false),
        ("expect_failures", false),
        ("state_key", false),
    ],
    blocks: &[
        ("plan_options", &[]),
        ("variables", &[]),
        ("module", &[]),
        ("assert", &[]),
        ("override_resource", &[]),
        ("override_data", &[]),
        ("override_module", &[]),
    ],
};

const PLAN_OPTIONS: BodySpec<'static> = BodySpec {
    attributes: &[
        ("mode", false),
        ("refresh", false),
        ("replace", false),
        ("target", false),
    ],
    blocks: &[],
};

const MODULE: BodySpec<'static> = BodySpec {
    attributes: &[("source", false), ("version", false)],
    blocks: &[],
};

const ASSERT: BodySpec<'static> = BodySpec {
    attributes: &[("condition", true), ("error_message", true)],
    blocks: &[],
};

const MOCK_PROVIDER: BodySpec<'static> = BodySpec {
    attributes: &[("alias", false), ("source", false), ("override_during", false)],
    blocks: &[
        ("mock_resource", &["type"]),
        ("mock_data", &["type"]),
        ("override_resource", &[]),
        ("override_data", &[]),
    ],
};

const MOCK: BodySpec<'static> = BodySpec {
    attributes: &[("defaults", false), ("override_during", false)],
    blocks: &[],
};

const OVERRIDE: BodySpec<'static> = BodySpec {
    attributes: &[("target", false), ("values", false), ("override_during", false)],
    blocks: &[],
};

const OVERRIDE_MODULE: BodySpec<'static> = BodySpec {
    attributes: &[("target", false), ("outputs", false), ("override_during", false)],
    blocks: &[],
};

/// Checks the test files of a root module. `tests` is the directory for tests; `explicit` is set if the user named it.
/// The texts of the files go to `sources`.
#[must_use]
pub fn check(files: &dyn FileSource, root: &str, tests: &str, explicit: bool, sources: &mut SourceMap) -> Diagnostics {
    let mut diagnostics = Diagnostics::new();
    let mut paths = names(files, root, root, false, &mut diagnostics);
    let dir = join(root, tests);
    if dir != root {
        paths.extend(names(files, &dir, tests, explicit, &mut diagnostics));
    }
    for path in paths {
        let bytes = match files.read(&path) {
            Ok(bytes) => bytes,
            Err(error) => {
                diagnostics.push(Diagnostic::error(
                    "Failed to read file",
                    format!("The test file {path} cannot be read: {}.", io_reason(&error)),
                ));
                continue;
            }
        };
        sources.insert(path.as_str(), String::from_utf8_lossy(&bytes).as_ref());
        let (body, problems) = if path.ends_with(".json") {
            syntax::json::parse_file(&path, &bytes)
        } else {
            parse::file(&path, &bytes)
        };
        let broken = problems.has_errors();
        diagnostics.extend(problems);
        // What a file lacks whose text could not be read is reported when it can be.
        if !broken {
            Checker {
                diagnostics: &mut diagnostics,
            }
            .file(Arc::unwrap_or_clone(body));
        }
    }
    diagnostics
}

/// The test files of a directory, in order.
fn names(files: &dyn FileSource, dir: &str, shown: &str, explicit: bool, diagnostics: &mut Diagnostics) -> Vec<String> {
    let mut names = match files.list(dir) {
        Ok(names) => names,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            if explicit {
                diagnostics.push(Diagnostic::warning(
                    "Test directory does not exist",
                    format!("There is no directory {shown}, in which test files were looked for."),
                ));
            }
            return Vec::new();
        }
        Err(error) => {
            diagnostics.push(Diagnostic::error(
                "Failed to read test directory",
                format!("The directory {shown} cannot be read: {}.", io_reason(&error)),
            ));
            return Vec::new();
        }
    };
    names.retain(|name| !is_ignored(name) && (name.ends_with(".tftest.hcl") || name.ends_with(".tftest.json")));
    names.sort();
    names.into_iter().map(|name| join(dir, &name)).collect()
}

struct Checker<'d> {
    diagnostics: &'d mut Diagnostics,
}

impl Checker<'_> {
    fn error(&mut self, summary: impl Into<String>, detail: impl Into<String>, at: &Range) {
        self.diagnostics.push(Diagnostic::error(summary, detail).at(at));
    }

    /// Reports a block whose like, by this key, was there before.
    fn first(&mut self, seen: &mut BTreeMap<String, Range>, key: String, at: &Range, summary: impl Into<String>) {
        if let Some(first) = seen.get(&key) {
            let detail = format!("The first one is at {first}.");
            self.error(summary, detail, at);
        } else {
            seen.insert(key, at.clone());
        }
    }

    fn file(&mut self, body: Body) {
        let (mut runs, mut providers, mut variables) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let mut overrides = BTreeMap::new();
        for block in parts::exact(body, FILE, self.diagnostics).blocks {
            let header = parts::header(&block);
            match &*block.ty {
                "run" => {
                    if let Some(label) = block.labels.first() {
                        parts::check_name(label, "Invalid run block name", self.diagnostics);
                        let summary = "Duplicate \"run\" block names";
                        self.first(&mut runs, label.text.to_string(), &header, summary);
                    }
                    self.run(block.body);
                }
                "variables" => {
                    self.first(&mut variables, String::new(), &header, "Multiple \"variables\" blocks");
                    self.no_blocks(&block.body);
                }
                "provider" | "mock_provider" => self.provider(block, &mut providers),
                _ => self.overriding(block, &mut overrides),
            }
        }
    }

    fn run(&mut self, body: Body) {
        let mut taken = parts::exact(body, RUN, self.diagnostics);
        let command = taken.attribute("command");
        self.keyword(command, "command", &["apply", "plan"]);
        if let Some(list) = taken.attribute("expect_failures") {
            for item in parts::static_list(&list.expr, self.diagnostics) {
                let _: Option<_> = parts::static_traversal(item, self.diagnostics);
            }
        }
        if let Some(key) = taken.attribute("state_key") {
            let _: Option<_> = parts::constant_string(&key.expr, self.diagnostics);
        }
        let (mut seen, mut overrides) = (BTreeMap::new(), BTreeMap::new());
        for block in taken.blocks {
            let header = parts::header(&block);
            let ty = block.ty.clone();
            if matches!(&*ty, "plan_options" | "variables" | "module") {
                self.first(&mut seen, ty.to_string(), &header, format!("Multiple \"{ty}\" blocks"));
            }
            match &*ty {
                "plan_options" => self.plan_options(block.body, &header),
                "variables" => self.no_blocks(&block.body),
                "module" => self.module(block.body, &header),
                "assert" => self.assertion(block.body),
                _ => self.overriding(block, &mut overrides),
            }
        }
    }

    fn plan_options(&mut self, body: Body, header: &Range) {
        let mut taken = parts::exact(body, PLAN_OPTIONS, self.diagnostics);
        let mode = taken.attribute("mode");
        let refresh_only = mode.as_ref().and_then(|a| word(&a.expr)).as_deref() == Some("refresh-only");
        self.keyword(mode, "mode", &["normal", "refresh-only"]);
        let refresh = taken
            .attribute("refresh")
            .and_then(|a| parts::constant_bool(&a.expr, self.diagnostics));
        if refresh_only && refresh == Some(false) {
            self.error(
                "Incompatible plan options",
                "A plan that only refreshes cannot be made without refreshing: remove refresh = false, or the mode.",
                header,
            );
        }
        for name in ["replace", "target"] {
            let Some(list) = taken.attribute(name) else { continue };
            for item in parts::static_list(&list.expr, self.diagnostics) {
                let _: Option<_> = parts::static_traversal(item, self.diagnostics);
            }
        }
    }

    fn module(&mut self, body: Body, header: &Range) {
        let mut taken = parts::exact(body, MODULE, self.diagnostics);
        let version = taken.attribute("version");
        if let Some(version) = &version {
            let _: Option<_> =
                crate::decode::constraint(&version.expr, crate::version::Dialect::Module, self.diagnostics);
        }
        let Some(source) = taken.attribute("source") else {
            self.error(
                "Missing \"source\" attribute for module block",
                "The \"module\" block of a run says which other module is tested, so it needs a \"source\".",
                header,
            );
            return;
        };
        let Some(text) = parts::constant_string(&source.expr, self.diagnostics) else {
            return;
        };
        let parsed = crate::source_address::ModuleSource::parse(&text, version.is_some());
        let detail = match parsed {
            Ok(crate::source_address::ModuleSource::Remote(_)) => {
                "A run can test a local module or one of a registry, no other.".to_owned()
            }
            Ok(_) => return,
            Err(detail) => detail,
        };
        self.error("Invalid module source address", detail, source.expr.range());
    }

    fn assertion(&mut self, body: Body) {
        let mut taken = parts::exact(body, ASSERT, self.diagnostics);
        let condition = taken.expr("condition");
        if let Some(condition) = condition.filter(|c| lang::refs::traversals(c).is_empty()) {
            self.error(
                "Invalid assert expression",
                "The condition refers to nothing, so its result would always be the same. It must refer to at least one object \
                 of the configuration.",
                condition.range(),
            );
        }
    }

    fn provider(&mut self, block: Block, seen: &mut BTreeMap<String, Range>) {
        let header = parts::header(&block);
        let Some(label) = block.labels.into_iter().next() else {
            return;
        };
        if !parts::is_provider_name(&label.text) {
            self.diagnostics
                .push(parts::invalid_provider_name(&label.text, &label.range));
        }
        let mut mocks = BTreeMap::new();
        let alias = if &*block.ty == "mock_provider" {
            let mut taken = parts::exact(block.body, MOCK_PROVIDER, self.diagnostics);
            self.during(&mut taken);
            if let Some(source) = taken.attribute("source") {
                let _: Option<_> = parts::constant_string(&source.expr, self.diagnostics);
            }
            let mut overrides = BTreeMap::new();
            for inner in std::mem::take(&mut taken.blocks) {
                if !inner.ty.starts_with("mock_") {
                    self.overriding(inner, &mut overrides);
                    continue;
                }
                if let Some(label) = inner.labels.first() {
                    let key = format!("{} {}", inner.ty, label.text);
                    let summary = format!("Duplicate {} block", inner.ty);
                    self.first(&mut mocks, key, &label.range, summary);
                }
                let mut taken = parts::exact(inner.body, MOCK, self.diagnostics);
                self.during(&mut taken);
            }
            taken.attribute("alias")
        } else {
            if let Some(version) = block.body.attribute("version") {
                self.error(
                    "Version constraints are not allowed in test files",
                    "Which versions of a provider will do is said in the \"required_providers\" block of the configuration. Remove \
                     the \"version\" argument.",
                    version.expr.range(),
                );
            }
            block.body.attribute("alias").cloned()
        };
        let alias = alias.and_then(|a| parts::constant_string(&a.expr, self.diagnostics));
        let key = match alias {
            Some(alias) => format!("{}.{alias}", label.text),
            None => label.text.to_string(),
        };
        self.first(seen, key, &header, "Duplicate provider block");
    }

    fn overriding(&mut self, block: Block, seen: &mut BTreeMap<String, Range>) {
        let header = parts::header(&block);
        let of_module = &*block.ty == "override_module";
        let spec = if of_module { OVERRIDE_MODULE } else { OVERRIDE };
        let mut taken = parts::exact(block.body, spec, self.diagnostics);
        self.during(&mut taken);
        let Some(target) = taken.attribute("target") else {
            let detail = format!(
                "An {} block needs a \"target\": the address of what it stands for.",
                block.ty
            );
            self.error("Missing target attribute", detail, &header);
            return;
        };
        let Some(traversal) = parts::static_traversal(&target.expr, self.diagnostics) else {
            return;
        };
        let root = &*traversal.root;
        let fits = match of_module {
            true => root == "module",
            false => ![
                "var",
                "local",
                "each",
                "count",
                "path",
                "terraform",
                "self",
                "output",
                "run",
            ]
            .contains(&root),
        };
        if !fits {
            let what = if of_module {
                "a module"
            } else {
                "a resource or data source"
            };
            let detail = format!("The target of an {} block is the address of {what}.", block.ty);
            self.error("Invalid address", detail, &traversal.root_range);
            return;
        }
        let steps: Vec<String> = traversal.steps.iter().map(|s| format!("{s:?}")).collect();
        let key = format!("{} {root} {}", block.ty, steps.join(" "));
        let summary = format!("Duplicate {} block", block.ty);
        self.first(seen, key, &header, summary);
    }

    fn during(&mut self, taken: &mut parts::Taken) {
        let Some(attribute) = taken.attribute("override_during") else {
            return;
        };
        if !matches!(word(&attribute.expr).as_deref(), Some("apply" | "plan")) {
            self.error(
                "Invalid override_during value",
                "The \"override_during\" argument takes one of these keywords: apply or plan.",
                attribute.expr.range(),
            );
        }
    }

    fn keyword(&mut self, attribute: Option<Attribute>, name: &str, words: &[&str]) {
        let Some(attribute) = attribute else { return };
        let given = word(&attribute.expr);
        if given.as_deref().is_some_and(|given| words.contains(&given)) {
            return;
        }
        let near = given.and_then(|given| content::suggest(&given, words.iter().copied()).map(str::to_owned));
        self.error(
            format!("Invalid \"{name}\" keyword"),
            format!(
                "The \"{name}\" argument takes one of these keywords, without quotes: {}.{}",
                words.join(" or "),
                content::did_you_mean(near.as_deref())
            ),
            attribute.expr.range(),
        );
    }

    fn no_blocks(&mut self, body: &Body) {
        for block in &body.blocks {
            self.error(
                format!("Unexpected \"{}\" block", block.ty),
                "Blocks are not allowed here: only values of variables.",
                &block.type_range,
            );
        }
    }
}

/// A keyword; in the JSON syntax, it is a string.
fn word(expr: &Expr) -> Option<Arc<str>> {
    match expr {
        Expr::Json(json) => json.text().cloned(),
        _ => expr.as_keyword().map(Into::into),
    }
}

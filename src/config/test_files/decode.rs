//! Decodes the syntax trees of test files to typed blocks.

use std::collections::BTreeMap;
use std::sync::Arc;

use addrs::{Mode, Target};
use syntax::ast::{Attribute, Block, Body, Expr};
use syntax::content::BodySpec;
use syntax::{Diagnostic, Diagnostics, Range, content};

use crate::decode::{Decoder, address, constraint, parts};
use crate::model::{CallAddress, CheckRule, Reference, RunModule, RunOptions, TestFile, TestRun};
use crate::source_address::ModuleSource;
use crate::version::Dialect;

const FILE: BodySpec<'static> = BodySpec {
    attributes: &[],
    blocks: &[
        ("run", &["name"]),
        ("variables", &[]),
        ("variable", &["name"]),
        ("test", &[]),
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
        ("parallel", false),
        ("skip_cleanup", false),
    ],
    blocks: &[
        ("plan_options", &[]),
        ("variables", &[]),
        ("module", &[]),
        ("assert", &[]),
        ("backend", &["type"]),
        ("override_resource", &[]),
        ("override_data", &[]),
        ("override_module", &[]),
    ],
};

const TEST: BodySpec<'static> = BodySpec {
    attributes: &[("parallel", false), ("skip_cleanup", false)],
    blocks: &[],
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

pub(super) struct TestDecoder<'d> {
    pub diagnostics: &'d mut Diagnostics,
    /// Function that reads the mock data files in a directory.
    pub mock_data: &'d mut dyn FnMut(&str, &Range, &mut Diagnostics) -> Vec<Body>,
}

/// Settings in a file's `test` block, which hold for all its runs.
#[derive(Clone, Copy, Default)]
struct Defaults {
    parallel: bool,
}

impl TestDecoder<'_> {
    pub(super) fn error(&mut self, summary: impl Into<String>, detail: impl Into<String>, at: &Range) {
        self.diagnostics.push(Diagnostic::error(summary, detail).at(at));
    }

    /// Reports a block if another one with this key came before it. Returns true for the first one.
    pub(super) fn first(
        &mut self,
        seen: &mut BTreeMap<String, Range>,
        key: String,
        at: &Range,
        summary: impl Into<String>,
    ) -> bool {
        if let Some(first) = seen.get(&key) {
            let detail = format!("The first one is at {first}.");
            self.error(summary, detail, at);
            return false;
        }
        seen.insert(key, at.clone());
        true
    }

    pub(super) fn decoder(&mut self) -> Decoder<'_> {
        Decoder {
            overriding: false,
            diagnostics: self.diagnostics,
        }
    }

    pub(super) fn file(&mut self, body: Body) -> TestFile {
        let mut out = TestFile::default();
        let (mut runs, mut providers, mut once) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let mut overrides = BTreeMap::new();
        let blocks = parts::exact(body, FILE, self.diagnostics).blocks;
        // The `test` block sets defaults for all runs, wherever it is in the file.
        let (settings, blocks): (Vec<_>, Vec<_>) = blocks.into_iter().partition(|b| &*b.ty == "test");
        let mut defaults = Defaults::default();
        for block in settings {
            let header = parts::header(&block);
            self.first(&mut once, "test".to_owned(), &header, "Multiple \"test\" blocks");
            let mut taken = parts::exact(block.body, TEST, self.diagnostics);
            defaults.parallel |= self.flag(taken.attribute("parallel")).unwrap_or(false);
            self.no_skip_cleanup(taken.attribute("skip_cleanup"));
        }
        for block in blocks {
            let header = parts::header(&block);
            match &*block.ty {
                "run" => {
                    if let Some(label) = block.labels.first() {
                        parts::check_name(label, "Invalid run block name", self.diagnostics);
                        let summary = "Duplicate \"run\" block names";
                        self.first(&mut runs, label.text.to_string(), &label.range, summary);
                    }
                    out.runs.extend(self.run(block, defaults));
                }
                "variables" => {
                    self.first(
                        &mut once,
                        "variables".to_owned(),
                        &header,
                        "Multiple \"variables\" blocks",
                    );
                    out.variables.extend(self.values(block.body));
                }
                "variable" => {
                    if let Some(variable) = self.decoder().variable(block) {
                        let summary = "Duplicate \"variable\" block names";
                        if self.first(&mut once, format!("variable {}", variable.name), &header, summary) {
                            out.definitions.insert(variable.name.clone(), variable);
                        }
                    }
                }
                "provider" | "mock_provider" => {
                    if let Some((address, provider)) = self.provider(block, &mut providers) {
                        out.providers.insert(address, provider);
                    }
                }
                _ => out.overrides.extend(self.overriding(block, &mut overrides, false)),
            }
        }
        let both: Vec<_> = out
            .definitions
            .values()
            .filter(|v| out.variables.contains_key(&v.name))
            .collect();
        for variable in both {
            self.diagnostics.push(
                Diagnostic::error(
                    "Duplicate \"variable\" block names",
                    format!(
                        "The \"variables\" block gives a value to \"{0}\", so that there is nothing a \"variable\" block could \
                         take from outside. Remove one of the two.",
                        variable.name
                    ),
                )
                .at(&variable.range),
            );
        }
        out
    }

    /// Reads a constant bool; `None` if it is missing or invalid.
    fn flag(&mut self, attribute: Option<Attribute>) -> Option<bool> {
        parts::constant_bool(&attribute?.expr, self.diagnostics)
    }

    fn no_skip_cleanup(&mut self, attribute: Option<Attribute>) {
        let Some(attribute) = attribute else { return };
        let range = attribute.name_range.clone();
        if self.flag(Some(attribute)) == Some(true) {
            self.error(
                "Invalid attribute",
                "The \"skip_cleanup\" argument exists in experimental builds of Terraform only. What a test file creates is \
                 destroyed at its end.",
                &range,
            );
        }
    }

    fn values(&mut self, body: Body) -> BTreeMap<Arc<str>, Expr> {
        let body = content::resolve(
            body,
            BodySpec {
                attributes: &[],
                blocks: &[],
            },
            self.diagnostics,
        );
        self.no_blocks(&body);
        body.attributes.into_iter().map(|a| (a.name, a.expr)).collect()
    }

    fn run(&mut self, block: Block, defaults: Defaults) -> Option<TestRun> {
        let range = parts::header(&block);
        let name = block.labels.into_iter().next()?.text;
        let mut taken = parts::exact(block.body, RUN, self.diagnostics);
        let command = self.keyword(taken.attribute("command"), "command", &["apply", "plan"]);
        let mut out = TestRun {
            name,
            apply: command.as_deref() != Some("plan"),
            options: RunOptions::default(),
            variables: BTreeMap::new(),
            module: None,
            providers: Vec::new(),
            asserts: Vec::new(),
            expect_failures: Vec::new(),
            overrides: Vec::new(),
            state_key: None,
            parallel: self.flag(taken.attribute("parallel")).unwrap_or(defaults.parallel),
            range,
        };
        if let Some(list) = taken.attribute("expect_failures") {
            for item in parts::static_list(&list.expr, self.diagnostics) {
                out.expect_failures.extend(self.expected(item));
            }
        }
        if let Some(attribute) = taken.attribute("providers") {
            out.providers = self.decoder().passed_providers(&attribute.expr);
        }
        if let Some(key) = taken.attribute("state_key") {
            out.state_key = parts::constant_string(&key.expr, self.diagnostics);
        }
        self.no_skip_cleanup(taken.attribute("skip_cleanup"));
        let (mut seen, mut overrides) = (BTreeMap::new(), BTreeMap::new());
        for block in taken.blocks {
            let header = parts::header(&block);
            let ty = block.ty.clone();
            if matches!(&*ty, "plan_options" | "variables" | "module") {
                self.first(&mut seen, ty.to_string(), &header, format!("Multiple \"{ty}\" blocks"));
            }
            match &*ty {
                "plan_options" => out.options = self.plan_options(block.body, &header),
                "variables" => out.variables.extend(self.values(block.body)),
                "module" => out.module = self.module(block.body, &header),
                "assert" => out.asserts.extend(self.assertion(block)),
                "backend" => self.error(
                    "Invalid block",
                    "A \"backend\" block of a run exists in experimental builds of Terraform only. The states of runs are kept in \
                     memory.",
                    &header,
                ),
                _ => out.overrides.extend(self.overriding(block, &mut overrides, false)),
            }
        }
        Some(out)
    }

    /// Reads an entry of `expect_failures`. Problems are reported.
    fn expected(&mut self, item: &Expr) -> Option<Reference> {
        let traversal = parts::static_traversal(item, self.diagnostics)?;
        match lang::refs::reference(&traversal) {
            Ok(reference) => Some(named_result(reference)),
            Err(problem) => {
                self.diagnostics.push(problem);
                None
            }
        }
    }

    fn plan_options(&mut self, body: Body, header: &Range) -> RunOptions {
        let mut taken = parts::exact(body, PLAN_OPTIONS, self.diagnostics);
        let mode = self.keyword(taken.attribute("mode"), "mode", &["normal", "refresh-only"]);
        let refresh = taken.attribute("refresh");
        let at = refresh.as_ref().map_or(header, |a| &a.name_range).clone();
        let mut out = RunOptions {
            refresh_only: mode.as_deref() == Some("refresh-only"),
            refresh: self.flag(refresh).unwrap_or(true),
            ..RunOptions::default()
        };
        if out.refresh_only && !out.refresh {
            self.error(
                "Incompatible plan options",
                "A plan that only refreshes cannot be made without refreshing: remove refresh = false, or the mode.",
                &at,
            );
        }
        if let Some(list) = taken.attribute("replace") {
            for item in parts::static_list(&list.expr, self.diagnostics) {
                match self.address(item) {
                    Some(Target::ResourceInstance(instance)) if instance.resource.resource.mode == Mode::Managed => {
                        out.replace.push(instance);
                    }
                    Some(Target::Resource(resource)) if resource.resource.mode == Mode::Managed => {
                        out.replace.push(resource.instance(addrs::InstanceKey::None));
                    }
                    // As with `-replace`, an address without keys means the single instance.
                    Some(Target::ConfigResource(resource)) if resource.resource.mode == Mode::Managed => {
                        let module = resource.module.0.iter().fold(addrs::ModuleInstance::root(), |m, name| {
                            m.child(name.clone(), addrs::InstanceKey::None)
                        });
                        let resource = resource.resource.absolute(&module);
                        out.replace.push(resource.instance(addrs::InstanceKey::None));
                    }
                    Some(_) => out.not_replaceable.push(item.range().clone()),
                    None => {}
                }
            }
        }
        if let Some(list) = taken.attribute("target") {
            for item in parts::static_list(&list.expr, self.diagnostics) {
                out.target.extend(self.address(item));
            }
        }
        out
    }

    /// Reads an address: a reference, with or without quotes. Problems are reported.
    pub(super) fn address(&mut self, expr: &Expr) -> Option<Target> {
        let traversal = parts::static_traversal(expr, self.diagnostics)?;
        let parsed = address::text(&traversal).and_then(|text| {
            addrs::parse::target(&text).map_err(|e| Diagnostic::error(e.summary, e.detail).at(&traversal.range))
        });
        match parsed {
            Ok(target) => Some(target),
            Err(problem) => {
                self.diagnostics.push(problem);
                None
            }
        }
    }

    fn module(&mut self, body: Body, header: &Range) -> Option<RunModule> {
        let mut taken = parts::exact(body, MODULE, self.diagnostics);
        let version = taken.attribute("version");
        let has_version = version.is_some();
        let version = version.and_then(|v| constraint(&v.expr, Dialect::Module, self.diagnostics));
        let Some(source) = taken.attribute("source") else {
            self.error(
                "Missing \"source\" attribute for module block",
                "The \"module\" block of a run says which other module is tested, so it needs a \"source\".",
                header,
            );
            return None;
        };
        let text = parts::constant_string(&source.expr, self.diagnostics)?;
        let detail = match ModuleSource::parse(&text, has_version) {
            Ok(ModuleSource::Remote(_)) => "A run can test a local module or one of a registry, no other.".to_owned(),
            Ok(address) => {
                return Some(RunModule {
                    address: CallAddress {
                        source: address,
                        version,
                    },
                    range: header.clone(),
                });
            }
            Err(error) => error.to_string(),
        };
        self.error("Invalid module source address", detail, &source.name_range);
        None
    }

    fn assertion(&mut self, block: Block) -> Option<CheckRule> {
        let range = parts::header(&block);
        let mut taken = parts::exact(block.body, ASSERT, self.diagnostics);
        let condition = taken.expr("condition");
        let error_message = taken.expr("error_message");
        if let Some(condition) = condition.as_ref().filter(|c| lang::refs::traversals(c).is_empty()) {
            self.error(
                "Invalid assert expression",
                "The condition refers to nothing, so its result would always be the same. It must refer to at least one object \
                 of the configuration.",
                condition.range(),
            );
        }
        Some(CheckRule {
            condition: condition?,
            error_message: error_message?,
            range,
        })
    }

    fn keyword(&mut self, attribute: Option<Attribute>, name: &str, words: &[&str]) -> Option<Arc<str>> {
        let attribute = attribute?;
        let given = word(&attribute.expr);
        if given.as_deref().is_some_and(|given| words.contains(&given)) {
            return given;
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
        None
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

/// Returns a keyword, which the JSON syntax writes as a string; `None` for other expressions.
pub(super) fn word(expr: &Expr) -> Option<Arc<str>> {
    match expr {
        Expr::Json(json) => json.text().cloned(),
        _ => expr.as_keyword().map(Into::into),
    }
}

/// Rewrites references for test files, where `output.x` and `check.x` name outputs and checks, not resources.
fn named_result(mut reference: Reference) -> Reference {
    if let addrs::Referenceable::Resource(resource) = &reference.subject
        && resource.mode == Mode::Managed
    {
        let name = resource.name.clone();
        match &*resource.ty {
            "output" => reference.subject = addrs::Referenceable::Output(name),
            "check" => reference.subject = addrs::Referenceable::Check(name),
            _ => {}
        }
    }
    reference
}

//! Decodes the providers of test files, their mocks, and overrides.

use std::collections::BTreeMap;

use addrs::{LocalProviderConfig, Mode, Target};
use syntax::ast::Block;
use syntax::content::BodySpec;
use syntax::{Diagnostic, Range};

use super::decode::{TestDecoder, word};
use crate::decode::parts;
use crate::model::{Mock, MockProvider, Override, OverrideKind, ProviderConfig, TestProvider};

const MOCK_PROVIDER: BodySpec<'static> = BodySpec {
    attributes: &[
        ("alias", false),
        ("for_each", false),
        ("source", false),
        ("override_during", false),
    ],
    blocks: &[
        ("mock_resource", &["type"]),
        ("mock_data", &["type"]),
        ("override_resource", &[]),
        ("override_data", &[]),
    ],
};

/// Content of a file in a mock provider's `source` directory.
const MOCK_DATA: BodySpec<'static> = BodySpec {
    attributes: &[],
    blocks: MOCK_PROVIDER.blocks,
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

/// Roots of references that are never addresses.
const NO_ADDRESS: &[&str] = &[
    "var",
    "local",
    "each",
    "count",
    "path",
    "terraform",
    "self",
    "output",
    "run",
];

impl TestDecoder<'_> {
    pub(super) fn provider(
        &mut self,
        block: Block,
        seen: &mut BTreeMap<String, Range>,
    ) -> Option<(LocalProviderConfig, TestProvider)> {
        let header = parts::header(&block);
        let (name, provider) = match &*block.ty {
            "mock_provider" => {
                let mock = self.mock_provider(block)?;
                (mock.address.clone(), TestProvider::Mock(mock))
            }
            _ => {
                let real = self.real_provider(block)?;
                (real.address.clone(), TestProvider::Real(real))
            }
        };
        self.first(seen, name.to_string(), &header, "Duplicate provider block")
            .then_some((name, provider))
    }

    fn real_provider(&mut self, mut block: Block) -> Option<ProviderConfig> {
        if let Some(version) = block.body.attribute("version") {
            let at = version.expr.range().clone();
            self.error(
                "Version constraints are not allowed in test files",
                "Version constraints belong into the \"required_providers\" block of the configuration. Remove the \
                 \"version\" argument.",
                &at,
            );
            // The argument is removed, so that the decoder does not add its warning about a deprecated argument
            // to the error.
            block.body.attributes.retain(|a| &*a.name != "version");
        }
        if let Some(for_each) = block.body.attribute("for_each") {
            let at = for_each.expr.range().clone();
            self.error(
                "Provider instances are not allowed in test files",
                "A provider block of a test file configures one provider. Remove the \"for_each\" argument.",
                &at,
            );
            block.body.attributes.retain(|a| &*a.name != "for_each");
        }
        self.decoder().provider(block)
    }

    fn mock_provider(&mut self, block: Block) -> Option<MockProvider> {
        let range = parts::header(&block);
        let label = block.labels.into_iter().next()?;
        if !parts::is_provider_name(&label.text) {
            self.diagnostics
                .push(parts::invalid_provider_name(&label.text, &label.range));
        }
        let mut taken = parts::exact(block.body, MOCK_PROVIDER, self.diagnostics);
        let during_plan = self.during(&mut taken, false);
        let alias = taken
            .attribute("alias")
            .and_then(|a| parts::constant_string(&a.expr, self.diagnostics));
        let for_each = taken.attribute("for_each");
        let for_each = self.decoder().provider_for_each(for_each, alias.is_some());
        let mut out = MockProvider {
            address: LocalProviderConfig {
                name: label.text,
                alias,
            },
            for_each,
            resources: BTreeMap::new(),
            data: BTreeMap::new(),
            overrides: Vec::new(),
            during_plan,
            range,
        };
        // The blocks of the provider block are added before the blocks of the directory, because these have
        // lower precedence.
        self.mocks(std::mem::take(&mut taken.blocks), &mut out);
        if let Some(source) = taken.attribute("source")
            && let Some(dir) = parts::constant_string(&source.expr, self.diagnostics)
        {
            let at = out.range.clone();
            self.external(&dir, &at, &mut out);
        }
        Some(out)
    }

    /// Adds the mocks and overrides in the files of a directory, except for types and targets for which the block
    /// itself has one.
    fn external(&mut self, dir: &str, at: &Range, out: &mut MockProvider) {
        let mut all = MockProvider {
            resources: BTreeMap::new(),
            data: BTreeMap::new(),
            overrides: Vec::new(),
            ..out.clone()
        };
        // The blocks are collected in `all` first: duplicates among the files are errors, but the block may
        // replace any of them.
        let bodies = (self.mock_data)(dir, at, self.diagnostics);
        for body in bodies {
            let taken = parts::exact(body, MOCK_DATA, self.diagnostics);
            let mut one = MockProvider {
                resources: BTreeMap::new(),
                data: BTreeMap::new(),
                overrides: Vec::new(),
                ..out.clone()
            };
            self.mocks(taken.blocks, &mut one);
            for (into, from, what) in [
                (&mut all.resources, one.resources, "mock_resource"),
                (&mut all.data, one.data, "mock_data"),
            ] {
                for (ty, mock) in from {
                    if let Some(first) = into.get(&ty) {
                        let detail = format!("There is a {what} block for {ty} at {} already.", first.range);
                        let problem = Diagnostic::error("Duplicate mock resource block", detail);
                        self.diagnostics.push(problem.at(&mock.range));
                        continue;
                    }
                    into.insert(ty, mock);
                }
            }
            for found in one.overrides {
                if let Some(first) = all.overrides.iter().find(|o| o.target == found.target) {
                    let detail = format!("There is an override for {} at {} already.", found.target, first.range);
                    self.error("Duplicate override block", detail, &found.range);
                    continue;
                }
                all.overrides.push(found);
            }
        }
        for (ty, mock) in all.resources {
            out.resources.entry(ty).or_insert(mock);
        }
        for (ty, mock) in all.data {
            out.data.entry(ty).or_insert(mock);
        }
        for found in all.overrides {
            if !out.overrides.iter().any(|o| o.target == found.target) {
                out.overrides.push(found);
            }
        }
    }

    /// Decodes the mocks and overrides inside a mock provider.
    fn mocks(&mut self, blocks: Vec<Block>, out: &mut MockProvider) {
        let (mut mocks, mut overrides) = (BTreeMap::new(), BTreeMap::new());
        for inner in blocks {
            if !inner.ty.starts_with("mock_") {
                out.overrides
                    .extend(self.overriding(inner, &mut overrides, out.during_plan));
                continue;
            }
            let range = parts::header(&inner);
            let Some(label) = inner.labels.into_iter().next() else {
                continue;
            };
            let key = format!("{} {}", inner.ty, label.text);
            let summary = format!("Duplicate {} block", inner.ty);
            let is_first = self.first(&mut mocks, key, &label.range, summary);
            let mut taken = parts::exact(inner.body, MOCK, self.diagnostics);
            let mock = Mock {
                during_plan: self.during(&mut taken, out.during_plan),
                defaults: taken.attribute("defaults"),
                range,
            };
            if is_first {
                let into = if &*inner.ty == "mock_resource" {
                    &mut out.resources
                } else {
                    &mut out.data
                };
                into.insert(label.text, mock);
            }
        }
    }

    pub(super) fn overriding(
        &mut self,
        block: Block,
        seen: &mut BTreeMap<String, Range>,
        during_plan: bool,
    ) -> Option<Override> {
        let range = parts::header(&block);
        let kind = match &*block.ty {
            "override_module" => OverrideKind::Module,
            "override_data" => OverrideKind::Data,
            _ => OverrideKind::Resource,
        };
        let (spec, values) = match kind {
            OverrideKind::Module => (OVERRIDE_MODULE, "outputs"),
            _ => (OVERRIDE, "values"),
        };
        let mut taken = parts::exact(block.body, spec, self.diagnostics);
        let during_plan = self.during(&mut taken, during_plan);
        let values = taken.attribute(values);
        let Some(attribute) = taken.attribute("target") else {
            let detail = format!(
                "An {} block needs a \"target\": the address of the object that it overrides.",
                block.ty
            );
            self.error("Missing target attribute", detail, &range);
            return None;
        };
        let traversal = parts::static_traversal(&attribute.expr, self.diagnostics)?;
        let root = &*traversal.root;
        if NO_ADDRESS.contains(&root) {
            let what = match kind {
                OverrideKind::Module => "a module",
                _ => "a resource or data source",
            };
            let detail = format!("The target of an {} block is the address of {what}.", block.ty);
            self.error("Invalid address", detail, &traversal.root_range);
            return None;
        }
        let target = self.address(&attribute.expr)?;
        let mode = match &target {
            Target::Module(_) | Target::ModuleInstance(_) => None,
            Target::ConfigResource(r) => Some(r.resource.mode),
            Target::Resource(r) => Some(r.resource.mode),
            Target::ResourceInstance(r) => Some(r.resource.resource.mode),
        };
        let wanted = match kind {
            OverrideKind::Module => None,
            OverrideKind::Resource => Some(Mode::Managed),
            OverrideKind::Data => Some(Mode::Data),
        };
        let target_range = attribute.name_range.to(attribute.expr.range());
        if mode != wanted {
            let what = match kind {
                OverrideKind::Module => "a module",
                OverrideKind::Resource => "a managed resource",
                OverrideKind::Data => "a data source",
            };
            let detail = format!("The target of an {} block is {what}, not {}.", block.ty, target);
            self.error("Invalid override target", detail, &target_range);
            return None;
        }
        let summary = format!("Duplicate {} block", block.ty);
        self.first(seen, format!("{} {}", block.ty, target), &range, summary);
        Some(Override {
            kind,
            target,
            values,
            during_plan,
            range,
            target_range,
        })
    }

    fn during(&mut self, taken: &mut parts::Taken, default: bool) -> bool {
        let Some(attribute) = taken.attribute("override_during") else {
            return default;
        };
        match word(&attribute.expr).as_deref() {
            Some("plan") => true,
            Some("apply") => false,
            _ => {
                self.error(
                    "Invalid override_during value",
                    "The \"override_during\" argument takes one of these keywords: apply or plan.",
                    &attribute.name_range,
                );
                default
            }
        }
    }
}

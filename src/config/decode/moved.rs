//! `moved`, `removed` and `import` blocks.

use addrs::program::Mode as Tool;
use addrs::{Mode, Provider, Target, parse};
use syntax::ast::{Block, Expr};
use syntax::content::BodySpec;
use syntax::{Diagnostic, Range};

use super::{Decoder, address, parts};
use crate::model::{Import, ImportBy, MoveEndpoint, MoveSubject, Moved, Provisioner, ProvisionerWhen, Removed};

const MOVED: BodySpec<'static> = BodySpec {
    attributes: &[("from", true), ("to", true)],
    blocks: &[],
};

const REMOVED: BodySpec<'static> = BodySpec {
    attributes: &[("from", true)],
    blocks: &[("lifecycle", &[]), ("connection", &[]), ("provisioner", &["type"])],
};

const REMOVED_LIFECYCLE: BodySpec<'static> = BodySpec {
    attributes: &[("destroy", false)],
    blocks: &[],
};

const IMPORT: BodySpec<'static> = BodySpec {
    attributes: &[
        ("provider", false),
        ("to", true),
        ("id", false),
        ("identity", false),
        ("for_each", false),
    ],
    blocks: &[],
};

impl Decoder<'_> {
    pub(super) fn moved(&mut self, block: Block) -> Option<Moved> {
        let range = parts::header(&block);
        if self.overriding {
            self.diagnostics.push(
                Diagnostic::error(
                    "Cannot override 'moved' blocks",
                    "Override files cannot have moved blocks.",
                )
                .at(&range),
            );
            return None;
        }
        let mut taken = parts::exact(block.body, MOVED, self.diagnostics);
        let (from, to) = (taken.expr("from"), taken.expr("to"));
        let mut endpoint = |expr: Option<Expr>| {
            let expr = expr?;
            let target = address::target(&expr, self.diagnostics)?;
            Some(MoveEndpoint {
                subject: move_subject(target),
                range: expr.range().clone(),
            })
        };
        let (from, to) = (endpoint(from), endpoint(to));
        // Both endpoints are read before the first `?`, so that errors in `to` are reported together with those in
        // `from`.
        let (from, to) = (from?, to?);
        let module = |e: &MoveEndpoint| matches!(e.subject, MoveSubject::Module(_));
        if module(&from) != module(&to) {
            self.diagnostics.push(
                Diagnostic::error(
                    "Invalid \"moved\" addresses",
                    "\"from\" and \"to\" must both be resources, or both be modules.",
                )
                .at(&range),
            );
            return None;
        }
        Some(Moved { from, to, range })
    }

    pub(super) fn removed(&mut self, block: Block) -> Option<Removed> {
        let range = parts::header(&block);
        let mut taken = parts::exact(block.body, REMOVED, self.diagnostics);
        let from = taken.expr("from");
        let mut destroy = None;
        let mut lifecycle_at: Option<Range> = None;
        let mut connection = None;
        let mut provisioners = Vec::new();
        let mut first_provisioner = None;
        for block in taken.blocks {
            match &*block.ty {
                "lifecycle" => match &lifecycle_at {
                    Some(first) => {
                        self.diagnostics
                            .push(parts::duplicate_block("lifecycle", "removed block", first, &block));
                    }
                    None => {
                        lifecycle_at = Some(block.header.clone());
                        let mut inner = parts::exact(block.body, REMOVED_LIFECYCLE, self.diagnostics);
                        if let Some(a) = inner.attribute("destroy") {
                            destroy = parts::constant_bool(&a.expr, self.diagnostics);
                        }
                    }
                },
                "connection" => connection = Some(self.connection(block)),
                _ => {
                    first_provisioner.get_or_insert_with(|| block.header.clone());
                    provisioners.extend(self.destroy_provisioner(block));
                }
            }
        }
        // The addresses are checked after the blocks, so that their errors are reported, too.
        let from = from?;
        let from_range = from.range().clone();
        let target = address::target(&from, self.diagnostics)?;
        if let Some((summary, detail)) = not_removable(&target) {
            self.diagnostics
                .push(Diagnostic::error(summary, detail).at(address::first_key(&from)));
            return None;
        }
        if let (Target::Module(_), Some(provisioner)) = (&target, first_provisioner) {
            self.diagnostics.push(
                Diagnostic::error(
                    "Invalid provisioner block",
                    "Provisioners can stand in a removed block whose address is a managed resource only.",
                )
                .at(&provisioner),
            );
        }
        if lifecycle_at.is_none() {
            destroy = self.removed_without_lifecycle(&range);
        }
        if destroy == Some(false)
            && Tool::current().has_opentofu()
            && let Some(provisioner) = provisioners.first()
        {
            self.diagnostics.push(
                Diagnostic::warning(
                    "Removed block provisioners will not be executed",
                    "The block has \"destroy = false\": nothing is destroyed, and provisioners run at destruction only.",
                )
                .at(&provisioner.range),
            );
        }
        Some(Removed {
            from: target,
            from_range,
            destroy,
            provisioners,
            connection,
            range,
        })
    }

    /// Returns the value of `destroy` for a removed block without `lifecycle`. Terraform destroys the object in this
    /// case (`None`), and OpenTofu forgets it (`Some(false)`). Modes other than Terraform's warn about the difference.
    fn removed_without_lifecycle(&mut self, range: &Range) -> Option<bool> {
        let mode = Tool::current();
        let (destroy, what) = match mode {
            Tool::Terraform => return None,
            Tool::Monoform => (
                None,
                "The object is destroyed, as in Terraform. OpenTofu would only forget it.",
            ),
            Tool::OpenTofu => (
                Some(false),
                "The object leaves the state and is not destroyed. Terraform would destroy it.",
            ),
        };
        self.diagnostics.push(
            Diagnostic::warning(
                "Missing lifecycle from the removed block",
                format!("{what} Add a \"lifecycle\" block with the argument \"destroy\" to say what is meant."),
            )
            .at(range),
        );
        destroy
    }

    /// Reads the argument that identifies the object of an import block: exactly one of `id` and `identity`.
    fn import_by(&mut self, id: Option<Expr>, identity: Option<Expr>, range: &Range) -> Option<ImportBy> {
        match (id, identity) {
            (Some(id), None) => Some(ImportBy::Id(id)),
            (None, Some(identity)) => Some(ImportBy::Identity(identity)),
            (id, _) => {
                let detail = match id {
                    Some(_) => {
                        "This import block has the arguments \"id\" and \"identity\". Only one of them can say which object \
                         to import."
                    }
                    None => {
                        "Nothing says which object to import: the block needs the argument \"id\" or the argument \
                         \"identity\"."
                    }
                };
                self.diagnostics
                    .push(Diagnostic::error("Invalid import block", detail).at(range));
                None
            }
        }
    }

    /// Decodes a provisioner of a removed block, which must run at destruction.
    fn destroy_provisioner(&mut self, block: Block) -> Option<Provisioner> {
        let provisioner = self.provisioner(block)?;
        if provisioner.when != ProvisionerWhen::Destroy {
            self.diagnostics.push(
                Diagnostic::error(
                    "Invalid provisioner block",
                    "Only provisioners that run at destruction (\"when = destroy\") can stand in a removed block.",
                )
                .at(&provisioner.range),
            );
        }
        self.only_own_references(&provisioner.body);
        Some(provisioner)
    }

    pub(super) fn import(&mut self, block: Block) -> Option<Import> {
        let range = parts::header(&block);
        if self.overriding {
            self.diagnostics.push(
                Diagnostic::error(
                    "Cannot override 'import' blocks",
                    "Override files cannot have import blocks.",
                )
                .at(&range),
            );
            return None;
        }
        let mut taken = parts::exact(block.body, IMPORT, self.diagnostics);
        let provider = taken.attribute("provider");
        let provider_ref = provider
            .as_ref()
            .and_then(|a| parts::provider_ref(&a.expr, "provider", self.diagnostics));
        let provider_range = provider.map(|a| a.range);
        let for_each = taken.expr("for_each");
        let (to, id, identity) = (taken.attribute("to"), taken.expr("id"), taken.expr("identity"));
        let by = self.import_by(id, identity, &range);
        let (to, by) = (to?, by?);
        let (to, to_attribute) = (parts::unquoted(to.expr, self.diagnostics), to.range);
        let to_range = to.range().clone();
        let found = match address::with_dynamic_keys(&to) {
            Some(found) => found,
            // A quoted address, or no address at all, which `static_traversal` reports.
            None => (parts::static_traversal(&to, self.diagnostics)?, Vec::new()),
        };
        let (traversal, keys) = found;
        let dynamic = !keys.is_empty();
        let address = address::text(&traversal).and_then(|text| {
            parse::resource_instance(&text).map_err(|e| Diagnostic::error(e.summary, e.detail).at(&to_range))
        });
        let instance = match address {
            Ok(instance) => instance,
            Err(problem) => {
                self.diagnostics.push(problem);
                return None;
            }
        };
        if instance.resource.resource.mode != Mode::Managed {
            self.diagnostics.push(
                Diagnostic::error("Invalid import address", "Only managed resources can be imported.")
                    .at(&to_attribute),
            );
            return None;
        }
        if let Some(at) = provider_range.as_ref().filter(|_| !instance.module.is_root()) {
            self.diagnostics.push(
                Diagnostic::error(
                    "Invalid import provider argument",
                    "Which provider configuration a resource inside a module has is said by the module, and by the \"providers\" \
                     argument of its call. The \"provider\" argument here is for resources without configuration.",
                )
                .at(at),
            );
        }
        Some(Import {
            to,
            to_resource: instance.config(),
            to_instance: (!dynamic).then_some(instance),
            by,
            for_each,
            provider_ref,
            provider_range,
            provider: Provider::default_for(""),
            range,
        })
    }
}

/// Reason why a target cannot be the address of a removed block: summary and detail.
fn not_removable(target: &Target) -> Option<(&'static str, &'static str)> {
    match target {
        Target::ResourceInstance(_) | Target::Resource(_) => Some((
            "Resource instance keys not allowed",
            "The address must name a resource with all its instances: without any instance key.",
        )),
        Target::ModuleInstance(_) => Some((
            "Module instance keys not allowed",
            "The address must name a module with all its instances: without any instance key.",
        )),
        Target::ConfigResource(r) if r.resource.mode == Mode::Data => Some((
            "Data source address not allowed",
            "A data source is never destroyed. Remove its block, and it leaves the state by itself.",
        )),
        Target::ConfigResource(r) if r.resource.mode == Mode::Ephemeral => Some((
            "Ephemeral resource address not allowed",
            "An ephemeral resource is never stored. Removing its block is enough.",
        )),
        Target::Module(_) | Target::ConfigResource(_) => None,
    }
}

fn move_subject(target: Target) -> MoveSubject {
    match target {
        Target::Module(m) => {
            let none = addrs::InstanceKey::None;
            MoveSubject::Module(m.0.iter().fold(addrs::ModuleInstance::root(), |at, name| {
                at.child(name.clone(), none.clone())
            }))
        }
        Target::ModuleInstance(m) => MoveSubject::Module(m),
        Target::ConfigResource(r) => {
            let none = addrs::InstanceKey::None;
            let module = r.module.0.iter().fold(addrs::ModuleInstance::root(), |at, name| {
                at.child(name.clone(), none.clone())
            });
            MoveSubject::Resource(r.resource.absolute(&module))
        }
        Target::Resource(r) => MoveSubject::Resource(r),
        Target::ResourceInstance(i) => MoveSubject::Instance(i),
    }
}

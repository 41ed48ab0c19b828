//! Expansion: evaluates `count`, `for_each` and `enabled` to the instances of a block.

use std::collections::BTreeMap;
use std::sync::Arc;

use addrs::program::Mode;
use addrs::{InstanceKey, Module, ModuleInstance, Resource};
use cty::{Marks, Type, Value};
use lang::eval::{Context, with_expression};
use syntax::Diagnostic;
use syntax::ast::Expr;
use syntax::diag::Extra;

use super::memo::slot;
use super::objects::Objects;
use super::{Evaluator, Expansion, ModuleScope, Repetition, Reported};

/// A block that can have a repetition argument, in an instance of its module.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum Repeated {
    Call(ModuleInstance, Arc<str>),
    Resource(ModuleInstance, Resource),
    Action(ModuleInstance, addrs::Action),
    /// The block of a provider configuration.
    Provider(addrs::AbsProviderConfig),
}

impl Expansion {
    /// Builds the value of all instances like [`Expansion::gather`], but as a list for `count` and a map for `for_each`. All instances must
    /// have the type `ty`.
    pub(super) fn gather_typed(
        &self,
        ty: Type,
        mut instance: impl FnMut(InstanceKey) -> Result<Value, Reported>,
    ) -> Result<Value, Reported> {
        Ok(match self {
            Expansion::Single => instance(InstanceKey::None)?,
            Expansion::Disabled => Value::null(ty),
            Expansion::Unknown { counted: true } => Value::unknown(Type::list(ty)),
            Expansion::Unknown { counted: false } => Value::unknown(Type::map(ty)),
            Expansion::Count(n) => {
                let items: Result<Vec<Value>, Reported> = (0..*n).map(|i| instance(InstanceKey::Int(i))).collect();
                Value::list(ty, items?)
            }
            Expansion::ForEach(keys) => {
                let items: Result<BTreeMap<_, _>, Reported> = keys
                    .keys()
                    .map(|k| Ok((k.clone(), instance(InstanceKey::String(k.clone()))?)))
                    .collect();
                Value::map(ty, items?)
            }
        })
    }

    /// Builds the value of the instances that have an object. For `count`, the tuple ends at the last instance with an object, and earlier
    /// instances without one are unknown. For `for_each`, instances without an object are left out.
    pub(super) fn gather_present(&self, objects: &Objects) -> Result<Value, Reported> {
        let value = |key: InstanceKey| Ok(objects.get(&key).cloned().unwrap_or_else(Value::dynamic));
        match self {
            Expansion::Count(n) => {
                let present = |i: &u64| objects.contains_key(&InstanceKey::Int(*i));
                let end = (0..*n).rev().find(present).map_or(0, |last| last + 1);
                Expansion::Count(end).gather(value)
            }
            Expansion::ForEach(items) => {
                let keys = items.keys().map(|k| (k.clone(), InstanceKey::String(k.clone())));
                Ok(Value::object(
                    keys.filter_map(|(name, key)| Some((name, objects.get(&key)?.clone()))),
                ))
            }
            Expansion::Single | Expansion::Disabled | Expansion::Unknown { .. } => self.gather(value),
        }
    }

    /// Builds the value of a repeated block from the objects that exist: a tuple for `count`, an object for `for_each`, else the
    /// single object.
    pub(super) fn gather_existing(&self, objects: Objects) -> Value {
        match self {
            Expansion::Count(_) | Expansion::Unknown { counted: true } => {
                let mut all: Vec<Value> = Vec::new();
                for (key, value) in objects {
                    if let InstanceKey::Int(at) = key {
                        all.resize(all.len().max(usize::try_from(at).unwrap_or_default()), Value::dynamic());
                        all.push(value);
                    }
                }
                Value::tuple(all)
            }
            Expansion::ForEach(_) | Expansion::Unknown { counted: false } => {
                Value::object(objects.into_iter().filter_map(|(k, v)| match k {
                    InstanceKey::String(k) => Some((k, v)),
                    _ => None,
                }))
            }
            Expansion::Single => objects.get(&InstanceKey::None).cloned().unwrap_or_else(Value::dynamic),
            Expansion::Disabled => {
                let object = objects.get(&InstanceKey::None).cloned();
                object.unwrap_or_else(|| Value::null(Type::Dynamic))
            }
        }
    }
}

impl Evaluator<'_> {
    /// Returns the expansion of a module call in an instance of the calling module.
    pub fn call_expansion(&self, module: &ModuleInstance, call: &Arc<str>) -> Result<Arc<Expansion>, Reported> {
        let block = self
            .config
            .node(&module.module())
            .and_then(|n| n.module.module_calls.get(call))
            .ok_or(Reported)?;
        let key = Repeated::Call(module.clone(), call.clone());
        // Blocks that need the expansion at the same time wait for one evaluation.
        slot(&self.expansions, &key)
            .get_or_init(|| {
                self.expand(
                    module,
                    block.count.as_ref(),
                    block.for_each.as_ref(),
                    block.enabled.as_ref(),
                )
            })
            .clone()
    }

    /// Returns the expansion of a configured resource in an instance of its module.
    pub fn resource_expansion(&self, module: &ModuleInstance, resource: &Resource) -> Result<Arc<Expansion>, Reported> {
        let block = self
            .config
            .node(&module.module())
            .and_then(|n| n.module.resources.get(resource))
            .ok_or(Reported)?;
        let key = Repeated::Resource(module.clone(), resource.clone());
        slot(&self.expansions, &key)
            .get_or_init(|| {
                let enabled = block.lifecycle.enabled.as_ref();
                self.expand(module, block.count.as_ref(), block.for_each.as_ref(), enabled)
            })
            .clone()
    }

    /// Returns the expansion of an action in an instance of its module.
    pub fn action_expansion(
        &self,
        module: &ModuleInstance,
        action: &addrs::Action,
    ) -> Result<Arc<Expansion>, Reported> {
        let block = self
            .config
            .node(&module.module())
            .and_then(|n| n.module.actions.get(action))
            .ok_or(Reported)?;
        let key = Repeated::Action(module.clone(), action.clone());
        slot(&self.expansions, &key)
            .get_or_init(|| self.expand(module, block.count.as_ref(), block.for_each.as_ref(), None))
            .clone()
    }

    /// Returns the instances of a module; none if one of the module calls on its path is not in the configuration.
    pub fn module_instances(&self, module: &Module) -> Result<Vec<ModuleInstance>, Reported> {
        let Some((parent, name)) = module.parent() else {
            return Ok(vec![ModuleInstance::root()]);
        };
        let mut out = Vec::new();
        for parent in self.module_instances(&parent)? {
            let known = self
                .config
                .node(&parent.module())
                .is_some_and(|n| n.module.module_calls.contains_key(name));
            if known {
                let expansion = self.call_expansion(&parent, name)?;
                let instances = expansion.keys().into_iter().map(|key| parent.child(name.clone(), key));
                // Instances whose outputs a test overrides are left out, so nothing in them is evaluated.
                out.extend(instances.filter(|instance| self.given_outputs(instance).is_none()));
            }
        }
        Ok(out)
    }

    fn expand(
        &self,
        module: &ModuleInstance,
        count: Option<&Expr>,
        for_each: Option<&Expr>,
        enabled: Option<&Expr>,
    ) -> Result<Arc<Expansion>, Reported> {
        let scope = self.scope(module).ok_or(Reported)?;
        let expansion = match (count, for_each, enabled) {
            (Some(expr), _, _) => self.count(expr, &scope)?,
            (None, Some(expr), _) => self.for_each(expr, &scope)?,
            (None, None, Some(expr)) => self.enabled(expr, &scope)?,
            (None, None, None) => Expansion::Single,
        };
        Ok(Arc::new(expansion))
    }

    fn count(&self, expr: &Expr, scope: &ModuleScope<'_>) -> Result<Expansion, Reported> {
        let count = RepetitionArgument {
            name: "count",
            expr,
            scope,
        };
        count.count(self.evaluate_used(expr, scope)?)
    }

    fn enabled(&self, expr: &Expr, scope: &ModuleScope<'_>) -> Result<Expansion, Reported> {
        let enabled = RepetitionArgument {
            name: "enabled",
            expr,
            scope,
        };
        enabled.enabled(self.evaluate_used(expr, scope)?)
    }

    /// Expands a `for_each` expression.
    pub fn for_each(&self, expr: &Expr, scope: &ModuleScope<'_>) -> Result<Expansion, Reported> {
        let for_each = RepetitionArgument {
            name: "for_each",
            expr,
            scope,
        };
        for_each.for_each(self.evaluate_used(expr, scope)?)
    }

    /// Evaluates the `for_each` expression of an import block to the values of `each`. Imports name existing instances and create none, so
    /// any collection is allowed. `each.key` is the index in a list or tuple, and the element itself in a set. Static evaluation returns
    /// one repetition with unknown values.
    pub fn import_for_each(&self, expr: &Expr, scope: &ModuleScope<'_>) -> Result<Vec<Repetition>, Reported> {
        let for_each = RepetitionArgument {
            name: "for_each",
            expr,
            scope,
        };
        for_each.import_for_each(self.evaluate_used(expr, scope)?)
    }
}

/// A `count`, `for_each` or `enabled` argument, with the context of its diagnostics.
struct RepetitionArgument<'r> {
    name: &'static str,
    expr: &'r Expr,
    scope: &'r ModuleScope<'r>,
}

impl RepetitionArgument<'_> {
    fn is_static(&self) -> bool {
        self.scope.evaluator.is_static()
    }

    fn max_instances(&self) -> u64 {
        self.scope.evaluator.environment.functions.max_instances()
    }

    fn report(&self, diagnostic: Diagnostic) -> Reported {
        let diagnostic = diagnostic.at(self.expr.range());
        let context = Context::new(self.scope);
        self.scope
            .evaluator
            .report([with_expression(diagnostic, self.expr, context)]);
        Reported
    }

    fn invalid(&self, detail: impl Into<String>) -> Reported {
        self.report(Diagnostic::error(format!("Invalid {} argument", self.name), detail))
    }

    fn invalid_because(&self, extra: Extra, detail: impl Into<String>) -> Reported {
        let mut diagnostic = Diagnostic::error(format!("Invalid {} argument", self.name), detail);
        diagnostic.extra = extra;
        self.report(diagnostic)
    }

    fn count(&self, value: Value) -> Result<Expansion, Reported> {
        let (value, marks) = value.unmark();
        // A sensitive number is allowed, unlike sensitive keys: the number of instances discloses little of it.
        if marks.is_ephemeral() {
            return Err(self.invalid(
                "The value of \"count\" depends on an ephemeral value, which is not stored in the plan. Choose a \
                 number that does not depend on ephemeral values.",
            ));
        }
        let number = cty::convert(&value, &Type::Number).map_err(|e| {
            let detail = format!("The \"count\" argument is the number of instances: {}.", e.message);
            self.report(Diagnostic::error("Incorrect value type", detail))
        })?;
        if !number.is_known() {
            // In validation `count` may still be unknown, and any number can be valid.
            if self.is_static() {
                return Ok(Expansion::Unknown { counted: true });
            }
            return Err(self.invalid_because(
                Extra::CausedByUnknown,
                "The number of instances is not known before apply, because \"count\" depends on attributes of \
                 resources that are not created yet. Apply those resources first, with the -target option, and plan \
                 again.",
            ));
        }
        let Some(number) = number.as_number() else {
            return Err(self.invalid("The value of \"count\" is null, where a whole number is required."));
        };
        if number.is_negative() {
            return Err(self.invalid("The value of \"count\" is negative; it must be zero or more."));
        }
        match number.to_i64().and_then(|n| u64::try_from(n).ok()) {
            Some(n) if n > self.max_instances() => Err(self.invalid(format!(
                "The value of \"count\" is {n}, and a block has at most {} instances. If that is intended, set the \
                 environment variable MONOFORM_MAX_ELEMENTS to a larger number.",
                self.max_instances()
            ))),
            Some(n) => Ok(Expansion::Count(n)),
            None => Err(self.invalid("The value of \"count\" is not a whole number, or too large.")),
        }
    }

    fn enabled(&self, value: Value) -> Result<Expansion, Reported> {
        let (value, marks) = value.unmark();
        if marks.contains(Marks::SENSITIVE) {
            return Err(self.invalid_because(
                Extra::CausedBySensitive,
                "The value of \"enabled\" is sensitive. Whether there is an instance is shown, and would disclose it.",
            ));
        }
        if marks.contains(Marks::EPHEMERAL) {
            return Err(self.invalid(
                "The value of \"enabled\" depends on an ephemeral value, which is not stored in the plan. Choose a value \
                 that does not depend on ephemeral values.",
            ));
        }
        let enabled = cty::convert(&value, &Type::Bool).map_err(|e| {
            self.invalid(format!(
                "The value of \"enabled\" must be true or false: {}.",
                e.message
            ))
        })?;
        if !enabled.is_known() {
            // In validation `enabled` may still be unknown, and any value can be valid.
            if self.is_static() {
                return Ok(Expansion::Single);
            }
            return Err(self.invalid_because(
                Extra::CausedByUnknown,
                "Whether there is an instance is not known before apply, because \"enabled\" depends on attributes of \
                 resources that are not created yet. Leave this block out of the plan with the -exclude option, or apply \
                 those resources first, with the -target option, and plan again.",
            ));
        }
        match enabled.as_bool() {
            Some(true) => Ok(Expansion::Single),
            Some(false) => Ok(Expansion::Disabled),
            None => Err(self.invalid("The value of \"enabled\" is null, where true or false is required.")),
        }
    }

    fn for_each(&self, value: Value) -> Result<Expansion, Reported> {
        // Only the marks of the collection itself matter. In a set they include those of the elements. Values of a map may be sensitive,
        // because addresses contain only its keys.
        let (value, marks) = value.unmark();
        if marks.contains(Marks::SENSITIVE) {
            return Err(self.invalid_because(
                Extra::CausedBySensitive,
                "The value of \"for_each\" is sensitive. Its keys become part of resource addresses, which are shown.",
            ));
        }
        if marks.contains(Marks::EPHEMERAL) {
            return Err(self.invalid(
                "The value of \"for_each\" depends on an ephemeral value, which is not stored in the plan. Choose \
                 keys that do not depend on ephemeral values.",
            ));
        }
        if value.is_null() {
            return Err(self.invalid("The value of \"for_each\" is null, where a map or a set of strings is required."));
        }
        match value.ty() {
            Type::Map(_) | Type::Object(_) => {
                let Some(entries) = value.entries() else {
                    return self.unknown_keys(value.ty());
                };
                Ok(Expansion::ForEach(
                    entries.map(|(k, v)| (k.clone(), v.clone())).collect(),
                ))
            }
            Type::Set(element) => self.for_each_of_set(&value, element),
            Type::Dynamic => self.unknown_keys(value.ty()),
            other => {
                let hint = match other {
                    Type::List(_) | Type::Tuple(_) => " To use a list, convert it with toset(...).",
                    _ => "",
                };
                Err(self.invalid(format!(
                    "The value of \"for_each\" is of type {}; it must be a map or a set of strings.{hint}",
                    other.friendly_name()
                )))
            }
        }
    }

    fn import_for_each(&self, value: Value) -> Result<Vec<Repetition>, Reported> {
        let (value, marks) = value.unmark();
        if marks.is_ephemeral() {
            return Err(self.invalid(
                "The value of \"for_each\" depends on an ephemeral value, which is not stored in the plan. Choose \
                 imports that do not depend on ephemeral values.",
            ));
        }
        // Terraform accepts a sensitive collection.
        if marks.is_sensitive() && Mode::current().is_opentofu() {
            return Err(self.invalid(
                "The value of \"for_each\" is sensitive, and its keys become parts of addresses, which are shown. Use a value that \
                 is not sensitive.",
            ));
        }
        let collection = matches!(
            value.ty(),
            Type::Map(_) | Type::Object(_) | Type::List(_) | Type::Tuple(_) | Type::Set(_) | Type::Dynamic
        );
        if !collection {
            return Err(self.invalid(format!(
                "The value of \"for_each\" is of type {}; it must be a map, an object, a list, a tuple or a set.",
                value.ty().friendly_name()
            )));
        }
        // In validation, one repetition represents all instances.
        if self.is_static() {
            return Ok(vec![Repetition {
                index: None,
                each: Some((Value::dynamic(), Value::dynamic())),
            }]);
        }
        if value.is_null() {
            return Ok(Vec::new());
        }
        let each = |key: Value, element: &Value| Repetition {
            index: None,
            each: Some((key, element.clone().with_marks(marks))),
        };
        // An object also stores its attributes as a sequence, but `each.key` needs their names, so objects are handled below.
        if let Some(items) = value.as_seq().filter(|_| !matches!(value.ty(), Type::Object(_))) {
            // The key of a set's element is the element itself, as in `for_each` of a resource.
            let is_set = matches!(value.ty(), Type::Set(_));
            let key = |(i, item): (usize, &Value)| if is_set { item.clone() } else { Value::number(i) };
            return Ok(items
                .iter()
                .enumerate()
                .map(|(i, item)| each(key((i, item)), item))
                .collect());
        }
        match value.entries() {
            Some(entries) => Ok(entries
                .map(|(key, item)| each(Value::shared_string(key.clone()), item))
                .collect()),
            None => Err(self.invalid_because(
                Extra::CausedByUnknown,
                "The value of \"for_each\" is known only after apply, and an import needs it during planning.",
            )),
        }
    }

    fn for_each_of_set(&self, set: &Value, element: &Type) -> Result<Expansion, Reported> {
        let Some(items) = set.as_seq() else {
            return self.unknown_keys(set.ty());
        };
        if items.is_empty() {
            return Ok(Expansion::ForEach(BTreeMap::new()));
        }
        // In static evaluation, the type of the elements may still be unknown.
        if self.is_static() && matches!(element, Type::Dynamic) {
            return self.unknown_keys(set.ty());
        }
        if !matches!(element, Type::String) {
            let detail = format!(
                "The elements of a set in \"for_each\" must be strings; these are of type {}.",
                element.friendly_name()
            );
            return Err(self.report(Diagnostic::error("Invalid for_each set argument", detail)));
        }
        let mut out = BTreeMap::new();
        for item in items {
            if !item.is_known() {
                return self.unknown_keys(set.ty());
            }
            let Some(key) = item.as_arc_str() else {
                return Err(
                    self.invalid("The set in \"for_each\" contains null, which cannot be the key of an instance.")
                );
            };
            out.insert(key.clone(), item.clone());
        }
        Ok(Expansion::ForEach(out))
    }

    /// Returns the result for a `for_each` value of this type whose keys are unknown: an error, except in static evaluation.
    fn unknown_keys(&self, ty: &Type) -> Result<Expansion, Reported> {
        // Variables have no values in validation, so unknown keys are not an error.
        if self.is_static() {
            return Ok(Expansion::Unknown { counted: false });
        }
        let (what, advice) = match ty {
            Type::Set(_) => (
                "set contains values that are known only after apply",
                "Use a map in its place: write the keys of the map into the configuration, and leave the unknown parts to \
                 its values.",
            ),
            _ => (
                "map has keys that are known only after apply",
                "Write the keys of the map into the configuration, and leave the unknown parts to its values.",
            ),
        };
        Err(self.invalid_because(
            Extra::CausedByUnknown,
            format!(
                "The \"for_each\" {what}, so the keys of the instances cannot be \
                 planned.\n\n{advice}\n\nOtherwise apply the resources that \"for_each\" refers to first, with \
                 the -target option, and plan again."
            ),
        ))
    }
}

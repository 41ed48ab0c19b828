//! Evaluation of the configuration.
//!
//! An [`Evaluator`] computes the values of variables, locals, outputs, modules and resources in every module instance, on demand and only
//! once. It makes no planning decisions: the objects of resources come from the operation's [`ObjectSource`], and the operation replaces
//! them as it plans or applies ([`Evaluator::set_object`]). The value of a resource is computed at the first reference to it. Walks visit a
//! block after everything it refers to ([`crate::blocks`]), so all objects are set by then.
//!
//! [`expand`] evaluates `count`, `for_each` and `enabled`, [`scope`] resolves references, [`checks`] evaluates conditions, and
//! [`objects`] is the interface of object sources.

pub mod checks;
mod deprecations;
pub mod expand;
mod expansion;
pub mod instance_conditions;
mod memo;
pub mod objects;
mod prevent_destroy;
mod provider_functions;
pub mod provider_instances;
mod reported;
pub mod scope;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use addrs::{AbsResource, AbsResourceInstance, InstanceKey, ModuleInstance};
use config::{Config, ModuleNode, Output, Variable};
use cty::{Marks, Type, Value};
use lang::eval::{Context, describe_convert_error, evaluate, with_expression};
use provider::{ProviderSource, Schemas};
use syntax::ast::Expr;
use syntax::diag::Extra;
use syntax::{Diagnostic, Diagnostics, Range};

use crate::blocks::Block;
use crate::functions::Functions;
use crate::inputs::EvaluationEnvironment;

use memo::{Slot, read, slot, write};
use objects::{ObjectSource, Objects, ReferencedResource};

pub use expansion::{Expansion, Repetition};
pub use reported::Reported;
pub use scope::ModuleScope;

#[derive(Clone, PartialEq, Eq, Hash)]
enum Key {
    Variable(ModuleInstance, Arc<str>),
    Local(ModuleInstance, Arc<str>),
    Output(ModuleInstance, Arc<str>),
    Resource(AbsResource),
    /// A module call, with all outputs, or with only one of them.
    Module(ModuleInstance, Arc<str>, Option<Arc<str>>),
}

/// Evaluator of a configuration. See the module's documentation.
pub struct Evaluator<'a> {
    config: &'a Config,
    environment: EvaluationEnvironment,
    variables: &'a BTreeMap<Arc<str>, Value>,
    source: Box<dyn ObjectSource + 'a>,
    memo: RwLock<HashMap<Key, Slot<Value>>>,
    expansions: RwLock<HashMap<expand::Repeated, Slot<Arc<Expansion>>>>,
    objects: RwLock<HashMap<AbsResource, Objects>>,
    diagnostics: Mutex<Diagnostics>,
    functions: Option<&'a Functions<'a>>,
    schemas: Option<&'a Schemas>,
    results: Mutex<checks::Results>,
    module_outputs: Option<&'a dyn ProviderSource>,
}

impl<'a> Evaluator<'a> {
    /// Creates an evaluator of a configuration with these values of its root variables (converted, without marks) and
    /// the objects of this source.
    pub fn new(
        config: &'a Config,
        environment: EvaluationEnvironment,
        variables: &'a BTreeMap<Arc<str>, Value>,
        source: Box<dyn ObjectSource + 'a>,
    ) -> Evaluator<'a> {
        Evaluator {
            config,
            environment,
            variables,
            source,
            memo: RwLock::default(),
            expansions: RwLock::default(),
            objects: RwLock::default(),
            diagnostics: Mutex::default(),
            functions: None,
            schemas: None,
            results: Mutex::default(),
            module_outputs: None,
        }
    }

    /// Sets the source of outputs of module instances whose content is not evaluated, because a test overrides their outputs.
    #[must_use]
    pub fn with_module_outputs(mut self, source: &'a dyn ProviderSource) -> Evaluator<'a> {
        self.module_outputs = Some(source).filter(|source| source.has_module_outputs());
        self
    }

    /// Returns the overridden outputs of a module instance; `None` if its content is evaluated.
    fn given_outputs(&self, module: &ModuleInstance) -> Option<BTreeMap<Arc<str>, Value>> {
        self.module_outputs?.module_outputs(module)
    }

    #[must_use]
    pub fn with_functions(mut self, functions: &'a Functions<'a>) -> Evaluator<'a> {
        self.functions = Some(functions);
        self
    }

    /// Sets the schemas of providers, which declare the deprecated attributes of objects.
    #[must_use]
    pub fn with_schemas(mut self, schemas: &'a Schemas) -> Evaluator<'a> {
        self.schemas = Some(schemas);
        self
    }

    #[must_use]
    pub fn config(&self) -> &'a Config {
        self.config
    }

    /// Returns true if a function result is unknown because a file was missing.
    pub(crate) fn lacks_files(&self) -> bool {
        let missing = self.environment.functions.missing_files.as_ref();
        missing.is_some_and(lang::scope::MissingFiles::are_found)
    }

    /// Returns true in static evaluation, where each block is evaluated once for all values and instances ([`ObjectSource::is_static`]).
    fn is_static(&self) -> bool {
        self.source.is_static()
    }

    /// Records diagnostics. A provider that cannot be started is reported once, not for each object.
    pub fn report(&self, diagnostics: impl IntoIterator<Item = Diagnostic>) {
        let mut reported = self.diagnostics.lock().unwrap_or_else(PoisonError::into_inner);
        for diagnostic in diagnostics {
            // Each object of the provider tries to start it, and would report the same failure again.
            if diagnostic.extra != Extra::NotStarted || !reported.0.contains(&diagnostic) {
                reported.push(diagnostic);
            }
        }
    }

    /// Takes the diagnostics reported so far.
    pub fn take_diagnostics(&self) -> Diagnostics {
        std::mem::take(&mut *self.diagnostics.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the scope of a module instance, without `count`, `each` and `self`.
    #[must_use]
    pub fn scope(&self, module: &ModuleInstance) -> Option<ModuleScope<'_>> {
        self.scope_with(module, Repetition::default(), None)
    }

    /// Returns the scope of one instance of a block. `self_value` is the object that `self` refers to, if there is one. Returns `None` if
    /// the configuration does not have the module.
    #[must_use]
    pub fn scope_with(
        &self,
        module: &ModuleInstance,
        repetition: Repetition,
        self_value: Option<Value>,
    ) -> Option<ModuleScope<'_>> {
        let node = self.config.node(&module.module())?;
        Some(ModuleScope {
            evaluator: self,
            module: module.clone(),
            node,
            repetition,
            self_value,
            caller: None,
            files_may_change: false,
            own_value: None,
        })
    }

    /// Returns the scope for the validations of a variable in static evaluation. The variable has the value of the argument in the module
    /// call, as far as it is known.
    #[must_use]
    pub fn validation_scope(&self, module: &ModuleInstance, name: &Arc<str>, value: Value) -> Option<ModuleScope<'_>> {
        let scope = self.scope(module)?;
        Some(ModuleScope {
            own_value: Some((name.clone(), value)),
            ..scope
        })
    }

    /// Evaluates an expression and reports its diagnostics.
    pub fn evaluate(&self, expr: &Expr, scope: &ModuleScope<'_>) -> Result<Value, Reported> {
        let (value, diagnostics) = evaluate(expr, Context::new(scope));
        let failed = diagnostics.has_errors();
        self.report(diagnostics);
        // If an expression refers to a value that failed, it fails with an error that contains no diagnostics, because the first failure
        // has been reported.
        if failed { Err(Reported) } else { Ok(value) }
    }

    fn memo(&self, key: &Key, compute: impl FnOnce() -> Result<Value, Reported>) -> Result<Value, Reported> {
        // The map is not locked during the computation, so only threads that need the same value wait for it.
        slot(&self.memo, key).get_or_init(compute).clone()
    }

    /// Marks a block of a module instance as failed. The failure must have been reported. A variable gets an unknown value instead, and
    /// nothing is done for provider and check blocks.
    pub(crate) fn mark_reported(&self, module: &ModuleInstance, block: &Block) {
        let name_in = |name: &Arc<str>| (module.clone(), name.clone());
        // Called before any evaluation, so setting the slots cannot fail.
        match block {
            Block::Local(_, name) => {
                let (module, name) = name_in(name);
                let _: Result<(), _> = slot(&self.memo, &Key::Local(module, name)).set(Err(Reported));
            }
            Block::Output(_, name) => {
                let (module, name) = name_in(name);
                let _: Result<(), _> = slot(&self.memo, &Key::Output(module, name)).set(Err(Reported));
            }
            Block::Call(_, name) => {
                let (module, name) = name_in(name);
                let _: Result<(), _> = slot(&self.expansions, &expand::Repeated::Call(module, name)).set(Err(Reported));
            }
            Block::Resource(resource) => {
                let key = expand::Repeated::Resource(module.clone(), resource.resource.clone());
                let _: Result<(), _> = slot(&self.expansions, &key).set(Err(Reported));
            }
            Block::Variable(_, name) => {
                let (module, name) = name_in(name);
                let _: Result<(), _> = slot(&self.memo, &Key::Variable(module, name)).set(Ok(Value::dynamic()));
            }
            Block::Action(action) => {
                let key = expand::Repeated::Action(module.clone(), action.action.clone());
                let _: Result<(), _> = slot(&self.expansions, &key).set(Err(Reported));
            }
            Block::Provider(_) | Block::Check(..) => {}
        }
    }

    // ---- variables, locals, outputs -----------------------------------------------------------------------------

    pub fn variable(&self, module: &ModuleInstance, node: &ModuleNode, name: &Arc<str>) -> Result<Value, Reported> {
        self.memo(&Key::Variable(module.clone(), name.clone()), || {
            if !self.is_static() {
                return self.input_value(module, node, name);
            }
            // Static evaluation covers all calls of a module, so it does not use the arguments of one call, which may even have no
            // instances.
            let variable = node.module.variables.get(name).ok_or(Reported)?;
            Ok(Value::unknown(variable.value_type()).with_marks(declared_marks(variable)))
        })
    }

    /// Returns the value for an input variable: the argument of the module call, or in the root module the value that the user has set;
    /// otherwise the default. Variables of the root module are unknown in static evaluation, and if they have neither a value nor a
    /// default.
    pub fn input_value(&self, module: &ModuleInstance, node: &ModuleNode, name: &Arc<str>) -> Result<Value, Reported> {
        let variable = node.module.variables.get(name).ok_or(Reported)?;
        let value = match module.parent() {
            None if self.is_static() => Value::unknown(variable.value_type()),
            None => self
                .variables
                .get(name)
                .or(variable.default.as_ref())
                .cloned()
                .unwrap_or_else(|| Value::unknown(variable.value_type())),
            Some((parent, step)) => self.module_input(&parent, step, variable)?,
        };
        Ok(value.with_marks(declared_marks(variable)))
    }

    /// Returns the source range of an input variable's value: the range of the argument in the module call, otherwise that of the
    /// declaration.
    pub fn input_range(&self, module: &ModuleInstance, name: &str) -> Option<Range> {
        let argument = module.parent().and_then(|(parent, step)| {
            let call = self
                .config
                .node(&parent.module())?
                .module
                .module_calls
                .get(&step.name)?;
            Some(call.inputs.attribute(name)?.expr.range().clone())
        });
        argument.or_else(|| {
            let node = self.config.node(&module.module())?;
            Some(node.module.variables.get(name)?.range.clone())
        })
    }

    /// Evaluates the argument of a module call for a variable. Without an argument, returns the default of the variable.
    fn module_input(
        &self,
        parent: &ModuleInstance,
        step: &addrs::ModuleStep,
        variable: &Variable,
    ) -> Result<Value, Reported> {
        let Some(node) = self.config.node(&parent.module()) else {
            return Err(Reported);
        };
        let Some(call) = node.module.module_calls.get(&step.name) else {
            return Err(Reported);
        };
        let Some(attribute) = call.inputs.attribute(&variable.name) else {
            return variable.default.clone().ok_or(Reported);
        };
        let repetition = if self.is_static() {
            // The representative instance has unknown values of `count.index` and `each`, because it represents all instances.
            Expansion::of_any(call.count.is_some(), call.for_each.is_some()).repetition(&InstanceKey::None)
        } else {
            self.call_expansion(parent, &step.name)?.repetition(&step.key)
        };
        let scope = ModuleScope {
            evaluator: self,
            module: parent.clone(),
            node,
            repetition,
            self_value: None,
            caller: None,
            files_may_change: false,
            own_value: None,
        };
        let value = self.evaluate(&attribute.expr, &scope)?;
        let range = attribute.expr.range();
        let child = parent.child(step.name.clone(), InstanceKey::None).module();
        // The value keeps its deprecation mark, so that its uses inside the module give warnings, too.
        self.warn_of_deprecations(&value, &child, range);
        if let Some(deprecated) = &variable.deprecated
            && !value.is_null()
            && self.warns_about(&child)
        {
            self.report([Diagnostic::warning("Deprecated variable got a value", &*deprecated.message).at(range)]);
        }
        if value.deep_marks().is_ephemeral() && !variable.ephemeral {
            self.report([Diagnostic::error(
                "Ephemeral value not allowed",
                format!(
                    "The argument depends on an ephemeral value, and the input variable \"{}\" does not accept those. \
                     Add ephemeral = true to its declaration.",
                    variable.name
                ),
            )
            .at(range)]);
            return Err(Reported);
        }
        converted_input(variable, value).map_err(|diagnostic| {
            let diagnostic = diagnostic.at(range);
            self.report([with_expression(diagnostic, &attribute.expr, Context::new(&scope))]);
            Reported
        })
    }

    pub fn local(&self, module: &ModuleInstance, node: &ModuleNode, name: &Arc<str>) -> Result<Value, Reported> {
        self.memo(&Key::Local(module.clone(), name.clone()), || {
            let Some(local) = node.module.locals.get(name) else {
                return Err(Reported);
            };
            self.evaluate_used(&local.expr, &self.scope(module).ok_or(Reported)?)
        })
    }

    /// Returns the value of an output value, with the marks of its declaration.
    pub fn output(&self, module: &ModuleInstance, node: &ModuleNode, name: &Arc<str>) -> Result<Value, Reported> {
        self.memo(&Key::Output(module.clone(), name.clone()), || {
            let Some(output) = node.module.outputs.get(name) else {
                return Err(Reported);
            };
            let scope = self.scope(module).ok_or(Reported)?;
            let value = self.evaluate(&output.expr, &scope)?;
            let value = self.converted_output(output, value, &scope)?;
            let mut marks = Marks::NONE;
            if output.sensitive {
                marks |= Marks::SENSITIVE;
            }
            if output.ephemeral {
                marks |= Marks::EPHEMERAL;
            }
            let refuse = |summary, detail| {
                self.report([Diagnostic::error(summary, detail).at(output.expr.range())]);
                Err(Reported)
            };
            match (value.deep_marks().is_ephemeral(), output.ephemeral) {
                (true, false) if module.is_root() => {
                    return refuse(
                        "Ephemeral value not allowed",
                        "The output values of the root module are stored, so they must not depend on ephemeral values.",
                    );
                }
                (true, false) => {
                    return refuse(
                        "Ephemeral value not allowed",
                        "The expression depends on an ephemeral value. Add ephemeral = true to the output value to \
                         allow that.",
                    );
                }
                _ => {}
            }
            if module.is_root() && value.deep_marks().is_sensitive() && !output.sensitive {
                self.report([Diagnostic::error(
                    "Output refers to sensitive values",
                    "The value contains sensitive data, and output values of the root module are shown and \
                     stored.\n\nTo export the data nevertheless, declare that the output value is sensitive:\n    \
                     sensitive = true",
                )
                .at(&output.range)]);
                return Err(Reported);
            }
            if let Some(deprecated) = output.deprecated.as_ref().filter(|_| module.is_root()) {
                self.report([Diagnostic::error(
                    "Root module output deprecated",
                    "There is no module that calls the root module, so nobody could be warned. Remove the argument.",
                )
                .at(&deprecated.range)]);
            }
            // The value of a deprecated output loses other deprecations: references to the output already get the warning of the output.
            let value = if output.deprecated.is_some() {
                value.without_deprecations().0
            } else if module.is_root() {
                self.without_deprecations(value, &module.module(), &output.expr)
            } else {
                self.without_deprecation(value, &module.module(), output.expr.range())
            };
            Ok(value.with_marks(marks))
        })
    }

    /// Converts the value of an output to the output's type.
    fn converted_output(&self, output: &Output, value: Value, scope: &ModuleScope<'_>) -> Result<Value, Reported> {
        if !output.typed {
            return Ok(value);
        }
        cty::convert(&output.defaults.apply(value), &output.ty).map_err(|error| {
            let detail = format!(
                "The value does not fit the type of the output value: {}.",
                describe_convert_error(&error)
            );
            let problem = Diagnostic::error("Invalid output value", detail).at(output.expr.range());
            self.report([with_expression(problem, &output.expr, Context::new(scope))]);
            Reported
        })
    }

    /// Returns the value of a module call: an object of outputs or, with `count` or `for_each`, a collection of such objects: a tuple or
    /// object, or a list or map if [`typed_instance`] finds a common type. With `only`, the objects have only that output, and the other
    /// outputs are not evaluated.
    fn module_value(
        &self,
        module: &ModuleInstance,
        node: &ModuleNode,
        call: &Arc<str>,
        only: Option<&Arc<str>>,
    ) -> Result<Value, Reported> {
        self.memo(&Key::Module(module.clone(), call.clone(), only.cloned()), || {
            let Some(child) = node.children.get(call) else {
                return Err(Reported);
            };
            let expansion = self.call_expansion(module, call)?;
            // In static evaluation, a module call with `count` or `for_each` may have no instances, so references to its outputs must not
            // warn.
            let marks_deprecations = !self.is_static() || matches!(*expansion, Expansion::Single);
            let instance = |key: InstanceKey| {
                // In static evaluation, the instance without key represents all instances.
                let key = if self.is_static() { InstanceKey::None } else { key };
                let instance = module.child(call.clone(), key);
                let names = child
                    .module
                    .outputs
                    .keys()
                    .filter(|name| only.is_none_or(|only| only == *name));
                if let Some(given) = self.given_outputs(&instance) {
                    let value = |name: &Arc<str>| given.get(name).cloned().unwrap_or(Value::null(Type::Dynamic));
                    return Ok(Value::object(names.map(|name| (name.clone(), value(name)))));
                }
                let outputs: Result<Vec<_>, Reported> = names
                    .map(|name| {
                        let value = self.output(&instance, child, name)?;
                        let deprecated = child.module.outputs.get(name).filter(|_| marks_deprecations);
                        let deprecated =
                            deprecated.filter(|output| output.deprecated.is_some() && self.warns_about(&child.path));
                        let mark = deprecated.map_or(Marks::NONE, |output| deprecations::mark(&child.path, output));
                        Ok((name.clone(), value.with_marks(mark)))
                    })
                    .collect();
                Ok(Value::object(outputs?))
            };
            match (
                &*expansion,
                typed_instance(child, only).filter(|_| self.module_outputs.is_none()),
            ) {
                (Expansion::Count(_) | Expansion::ForEach(_) | Expansion::Unknown { .. }, Some(ty)) => {
                    expansion.gather_typed(ty, instance)
                }
                _ => expansion.gather(instance),
            }
        })
    }

    // ---- resources ----------------------------------------------------------------------------------------------

    /// Returns the value of a resource: its object, or a tuple or object with the objects of its instances.
    fn resource_value(&self, resource: &ReferencedResource<'_>) -> Result<Value, Reported> {
        self.memo(&Key::Resource(resource.address.clone()), || {
            let value = self.source.value(resource)?;
            Ok(self.with_deprecations(resource, value))
        })
    }

    fn with_objects<T>(&self, resource: &AbsResource, f: impl FnOnce(&mut Objects) -> T) -> T {
        // Decoding the objects of a large resource takes long, so it is done before the map is locked.
        if !read(&self.objects).contains_key(resource) {
            let initial = self.source.initial_objects(resource);
            write(&self.objects).entry(resource.clone()).or_insert(initial);
        }
        f(write(&self.objects).entry(resource.clone()).or_default())
    }

    /// Sets the object of an instance. Must be called before any expression that refers to the resource is evaluated.
    pub fn set_object(&self, address: &AbsResourceInstance, value: Value) {
        self.with_objects(&address.containing_resource(), |objects| {
            objects.insert(address.resource.key.clone(), value);
        });
    }

    /// Discards the cached value of a resource. It was computed for an action that one instance of the resource triggers, while other
    /// instances had no objects yet. Later references need the value of all instances.
    pub(crate) fn forget_resource_value(&self, resource: &AbsResource) {
        write(&self.memo).remove(&Key::Resource(resource.clone()));
    }

    /// Removes the object of an instance. If the objects of the resource are not loaded yet, nothing is done: the state they will be loaded
    /// from does not have this object any more.
    pub fn remove_object(&self, address: &AbsResourceInstance) {
        if let Some(objects) = write(&self.objects).get_mut(&address.containing_resource()) {
            objects.remove(&address.resource.key);
        }
    }

    #[must_use]
    pub fn object(&self, address: &AbsResourceInstance) -> Option<Value> {
        self.with_objects(&address.containing_resource(), |objects| {
            objects.get(&address.resource.key).cloned()
        })
    }
}

/// Returns the common type of a module's instances, if the module has outputs and each declares a type without `any`; otherwise `None`.
/// With a common type, the value of a repeated call is a list or a map.
fn typed_instance(module: &ModuleNode, only: Option<&Arc<str>>) -> Option<Type> {
    let outputs = &module.module.outputs;
    let fixed = |output: &Output| output.typed && !output.ty.has_dynamic();
    if !outputs.values().all(fixed) || outputs.is_empty() {
        return None;
    }
    let of_instance = outputs.iter().filter(|(name, _)| only.is_none_or(|only| only == *name));
    Some(Type::object(
        of_instance.map(|(name, output)| (name.clone(), output.ty.without_optional())),
    ))
}

/// Returns the marks for the arguments `sensitive` and `ephemeral` of a variable.
fn declared_marks(variable: &Variable) -> Marks {
    let mut marks = Marks::NONE;
    if variable.sensitive {
        marks |= Marks::SENSITIVE;
    }
    if variable.ephemeral {
        marks |= Marks::EPHEMERAL;
    }
    marks
}

/// Converts the value that a module call passes to a variable, with the defaults of the variable's type. If the variable is not nullable,
/// null becomes the variable's default.
fn converted_input(variable: &Variable, value: Value) -> Result<Value, Diagnostic> {
    let wrong = |detail| Diagnostic::error("Invalid value for input variable", detail);
    let (value, marks) = value.unmark();
    // The defaults are applied before the conversion, which would set missing optional attributes to null.
    let value = variable.defaults.apply(value);
    if value.is_null() && !variable.nullable {
        return match &variable.default {
            Some(default) => Ok(default.clone()),
            None => Err(wrong(format!(
                "The argument for the input variable \"{}\" of the called module is null, and the variable has \
                 neither a default nor nullable = true.",
                variable.name
            ))),
        };
    }
    let converted = cty::convert(&value, &variable.ty).map_err(|e| {
        let at = e.path.to_string();
        let at = at.strip_prefix('.').map_or(at.clone(), str::to_owned);
        let at = if at.is_empty() {
            String::new()
        } else {
            format!("{at}: ")
        };
        wrong(format!(
            "The given value is not suitable for child module variable \"{}\" defined at {}: {at}{}.",
            variable.name, variable.range, e.message
        ))
    })?;
    Ok(converted.with_marks(marks))
}

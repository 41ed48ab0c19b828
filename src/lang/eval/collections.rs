//! Object constructors, `for` expressions and splats.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use cty::{Marks, Refinements, Type, Value};
use syntax::ast::{Expr, For, ObjectItem, ObjectKey};
use syntax::{Diagnostic, Range};

use super::{Context, ExpressionEvaluator};
use crate::scope::FunctionSettings;

pub(super) type Elements = Vec<(Value, Value)>;

fn duplicate_key(key: &str) -> Diagnostic {
    Diagnostic::error(
        "Duplicate object key",
        format!(
            "An earlier element also has the key {key:?} in the result. To collect all values of a key in a list, write \"...\" after \
             the value."
        ),
    )
}

impl ExpressionEvaluator {
    pub(super) fn object(&mut self, items: &[ObjectItem], _whole: &Expr, context: &Context<'_>) -> Value {
        let mut attributes: BTreeMap<Arc<str>, Value> = BTreeMap::new();
        let mut marks = Marks::NONE;
        let mut known = true;
        for item in items {
            let key = match &item.key {
                ObjectKey::Bare { name, .. } => Some(name.clone()),
                ObjectKey::Expr(key) => self.object_key(key, item, &mut marks, context),
            };
            let value = self.expr(&item.value, context);
            match key {
                Some(key) => {
                    attributes.insert(key, value);
                }
                None => known = false,
            }
        }
        // Values are evaluated after an invalid key, too, so that all errors are reported.
        if known {
            Value::object(attributes).with_marks(marks)
        } else {
            Value::dynamic().with_marks(marks)
        }
    }

    fn object_key(
        &mut self,
        key: &Expr,
        item: &ObjectItem,
        marks: &mut Marks,
        context: &Context<'_>,
    ) -> Option<Arc<str>> {
        // HCL refuses `{ a.b = 1 }`, because the author may mean either form.
        if let Expr::Traversal(t) = key
            && !t.steps.is_empty()
        {
            let problem = Diagnostic::error(
                "Ambiguous attribute key",
                "This key can be read as a reference or as a name with dots in it. Put a reference in parentheses, a \
                 name in quotes.",
            );
            self.report(problem.at(key.range()), key, context);
            return None;
        }
        let errors = self.errors();
        let value = self.expr(key, context);
        if self.errors() > errors {
            return None;
        }
        if value.is_null() {
            let problem = Diagnostic::error("Null value as key", "This key is null; a key must be a string.");
            self.report(problem.at(item.value.range()), key, context);
            return None;
        }
        *marks |= value.marks();
        match cty::convert(&value, &Type::String) {
            Ok(text) => text.as_arc_str().cloned(),
            Err(error) => {
                let problem = Diagnostic::error(
                    "Incorrect key type",
                    format!("Can't use this value as a key: {}.", error.message),
                );
                self.report(problem.at(key.range()), key, context);
                None
            }
        }
    }

    /// Returns the elements to iterate over and the marks of the collection. The error is the result of the iteration:
    /// unknown after an error or for an unknown collection.
    pub(super) fn elements(
        &mut self,
        collection: &Expr,
        whole: &Expr,
        whole_range: &Range,
        context: &Context<'_>,
    ) -> Result<(Elements, Marks), Value> {
        let errors = self.errors();
        let value = self.expr(collection, context);
        if self.errors() > errors {
            return Err(Value::dynamic());
        }
        if value.is_null() {
            let problem = Diagnostic::error(
                "Iteration over null value",
                "A 'for' expression needs a collection, and this value is null.",
            );
            self.report(problem.at(collection.range()).within(whole_range), collection, context);
            return Err(Value::dynamic());
        }
        let marks = value.marks();
        if *value.ty() == Type::Dynamic {
            // The elements are not known yet, so the `for` has not used a deprecated value. The mark would cause a
            // warning.
            return Err(Value::dynamic().with_marks(marks.without_deprecations()));
        }
        if value.ty().is_primitive() {
            let problem = Diagnostic::error(
                "Iteration over non-iterable value",
                format!(
                    "A 'for' expression needs a collection, and this is a {} value.",
                    value.ty().friendly_name()
                ),
            );
            self.report(problem.at(collection.range()).within(whole_range), whole, context);
            return Err(Value::dynamic());
        }
        match iterate(&value) {
            Some(elements) => Ok((elements, marks)),
            None => Err(Value::dynamic().with_marks(marks)),
        }
    }

    pub(super) fn for_expression(&mut self, e: &For, whole: &Expr, context: &Context<'_>) -> Value {
        let (elements, mut marks) = match self.elements(&e.collection, whole, &e.range, context) {
            Ok(found) => found,
            Err(value) => return value,
        };
        if let Some(condition) = &e.condition
            && !self.condition_can_hold(condition, e, context)
        {
            return Value::dynamic();
        }
        let mut known = true;
        let mut list: Vec<Value> = Vec::new();
        let mut single: BTreeMap<Arc<str>, Value> = BTreeMap::new();
        let mut grouped: BTreeMap<Arc<str>, Vec<Value>> = BTreeMap::new();
        let most = context
            .scope
            .functions()
            .map_or(u64::MAX, FunctionSettings::max_elements);
        for (key, value) in elements {
            if !self.count_element(most, &e.range) {
                return Value::dynamic();
            }
            // Declared outside of the match, so that `variables` can borrow either array.
            let both;
            let one;
            let variables: &[(Arc<str>, Value)] = match &e.key {
                Some(name) => {
                    both = [(name.clone(), key), (e.value.clone(), value)];
                    &both
                }
                None => {
                    one = [(e.value.clone(), value)];
                    &one
                }
            };
            let inner = context.with_variables(variables);
            if let Some(condition) = &e.condition {
                match self.include(condition, e, known, &mut marks, &inner) {
                    Some(true) => {}
                    Some(false) => continue,
                    None => {
                        known = false;
                        continue;
                    }
                }
            }
            let Some(key_expr) = &e.result_key else {
                list.push(self.expr(&e.result, &inner));
                continue;
            };
            let key = self.result_key(key_expr, e, &mut marks, &inner);
            let value = self.expr(&e.result, &inner);
            let Some(key) = key else {
                known = false;
                continue;
            };
            if e.group {
                grouped.entry(key).or_default().push(value);
                continue;
            }
            match single.entry(key) {
                Entry::Vacant(place) => {
                    place.insert(value);
                }
                Entry::Occupied(place) => {
                    let problem = duplicate_key(place.key()).at(key_expr.range()).within(&e.range);
                    self.report(problem, key_expr, &inner);
                }
            }
        }
        let result = if !known {
            Value::dynamic()
        } else if e.result_key.is_none() {
            Value::tuple(list)
        } else if e.group {
            Value::object(grouped.into_iter().map(|(k, v)| (k, Value::tuple(v))))
        } else {
            Value::object(single)
        };
        result.with_marks(marks)
    }

    /// Counts an element; returns false if the limit is exceeded. Elements of nested expressions count, too, because
    /// they multiply.
    fn count_element(&mut self, most: u64, range: &Range) -> bool {
        self.produced += 1;
        // The error is reported exactly once, because the enclosing expressions exceed the limit, too.
        if self.produced == most.saturating_add(1) {
            self.fixed.push(too_many(most, range));
        }
        self.produced <= most
    }

    /// Checks before the iteration whether the condition can be a bool at all, so that this error is reported once
    /// instead of for each element.
    fn condition_can_hold(&mut self, condition: &Expr, e: &For, context: &Context<'_>) -> bool {
        let variables: Vec<(Arc<str>, Value)> = e
            .key
            .iter()
            .chain([&e.value])
            .map(|n| (n.clone(), Value::dynamic()))
            .collect();
        let inner = context.with_variables(&variables);
        let (value, problems) = self.apart(true, |s| s.expr(condition, &inner));
        // With unknown variables, errors may occur that the actual elements would not cause.
        if problems.has_errors() {
            return true;
        }
        let problem = if value.is_null() {
            Diagnostic::error(
                "Condition is null",
                "The condition after 'if' is null; it must be true or false.",
            )
        } else if let Err(error) = cty::convert(&value, &Type::Bool) {
            Diagnostic::error(
                "Invalid 'for' condition",
                format!("The condition after 'if' must be true or false: {}.", error.message),
            )
        } else {
            return true;
        };
        self.report(problem.at(condition.range()).within(&e.range), condition, &inner);
        false
    }

    /// Returns true if an element is included; `None` if that is not known, or after an error. A condition that is
    /// invalid for one element is likely invalid for all, so only the first is reported.
    fn include(
        &mut self,
        condition: &Expr,
        e: &For,
        first: bool,
        marks: &mut Marks,
        inner: &Context<'_>,
    ) -> Option<bool> {
        let errors = self.errors();
        let value = self.expr(condition, inner);
        if self.errors() > errors {
            return None;
        }
        let problem = if value.is_null() {
            Diagnostic::error(
                "Invalid 'for' condition",
                "The condition after 'if' is null; it must be true or false.",
            )
        } else {
            *marks |= value.marks();
            match cty::convert(&value, &Type::Bool) {
                Ok(include) => return include.as_bool(),
                Err(error) => Diagnostic::error(
                    "Invalid 'for' condition",
                    format!("The condition after 'if' must be true or false: {}.", error.message),
                ),
            }
        };
        if first {
            self.report(problem.at(condition.range()).within(&e.range), condition, inner);
        }
        None
    }

    fn result_key(&mut self, key: &Expr, e: &For, marks: &mut Marks, inner: &Context<'_>) -> Option<Arc<str>> {
        let errors = self.errors();
        let value = self.expr(key, inner);
        if self.errors() > errors {
            return None;
        }
        let problem = if value.is_null() {
            Diagnostic::error(
                "Invalid object key",
                "The key is null for an element of the collection.",
            )
        } else {
            *marks |= value.marks();
            match cty::convert(&value, &Type::String) {
                Ok(key) => return key.as_arc_str().cloned(),
                Err(error) => Diagnostic::error(
                    "Invalid object key",
                    format!(
                        "The key is not a string for an element of the collection: {}.",
                        error.message
                    ),
                ),
            }
        };
        self.report(problem.at(key.range()).within(&e.range), key, inner);
        None
    }

    pub(super) fn splat(
        &mut self,
        source: &Expr,
        each: &Expr,
        marker: &Range,
        whole: &Expr,
        context: &Context<'_>,
    ) -> Value {
        let errors = self.errors();
        let value = self.expr(source, context);
        if self.errors() > errors {
            return Value::dynamic();
        }
        let (value, marks) = value.unmark();
        let sequence = matches!(value.ty(), Type::List(_) | Type::Set(_) | Type::Tuple(_));
        if value.is_null() {
            // As in HCL, a splat treats a null that is not a list as an empty list.
            if !sequence {
                return Value::empty_tuple().with_marks(marks);
            }
            let problem = Diagnostic::error(
                "Splat of null value",
                "The value before the splat is null, though its type is that of a list, set or tuple.",
            );
            self.report(
                problem.at(source.range()).within(&source.range().to(marker)),
                whole,
                context,
            );
            return Value::dynamic();
        }
        if *value.ty() == Type::Dynamic {
            return Value::dynamic().with_marks(marks);
        }
        if !sequence {
            // A value that may be null has one element or none.
            let unsure = !value.is_certainly_not_null();
            let element = self.expr(each, &context.with_splat_element(&value));
            return if unsure {
                Value::dynamic()
            } else {
                Value::tuple(vec![element])
            }
            .with_marks(marks);
        }
        if !value.is_known() {
            return self.unknown_splat(&value, each, context).with_marks(marks);
        }
        let errors = self.errors();
        let items: Vec<Value> = value
            .as_seq()
            .unwrap_or_default()
            .iter()
            .map(|element| self.expr(each, &context.with_splat_element(element)))
            .collect();
        if self.errors() > errors {
            let ty = self.splat_type(value.ty(), each, context);
            return Value::unknown(ty).with_marks(marks);
        }
        let result = if matches!(value.ty(), Type::Tuple(_)) {
            Value::tuple(items)
        } else if let Some(first) = items.first() {
            let element = first.ty().clone();
            // If elements have different types because of dynamic parts, they cannot form a list.
            if items.iter().all(|i| *i.ty() == element) {
                Value::list(element, items)
            } else {
                Value::tuple(items)
            }
        } else {
            match self.splat_type(value.ty(), each, context) {
                Type::List(element) => Value::list((*element).clone(), Vec::new()),
                _ => Value::empty_tuple(),
            }
        };
        result.with_marks(marks)
    }

    /// Returns the splat of an unknown list, set or tuple.
    fn unknown_splat(&mut self, value: &Value, each: &Expr, context: &Context<'_>) -> Value {
        // A step that is invalid for every possible element is an error even if the number of elements is unknown.
        let types: Vec<Type> = match value.ty() {
            Type::Tuple(types) => types.to_vec(),
            Type::List(e) | Type::Set(e) => vec![(**e).clone()],
            _ => Vec::new(),
        };
        let errors = self.errors();
        for ty in types {
            self.expr(each, &context.with_splat_element(&Value::unknown(ty)));
        }
        if self.errors() > errors {
            return Value::dynamic();
        }
        let ty = self.splat_type(value.ty(), each, context);
        let refinements = Refinements {
            not_null: true,
            length_min: value.refinements().and_then(|r| r.length_min),
            length_max: value.refinements().and_then(|r| r.length_max),
            ..Refinements::default()
        };
        let refinements = if ty.is_collection() {
            refinements
        } else {
            Refinements::not_null()
        };
        Value::unknown_refined(ty, refinements)
    }

    /// Returns the type of a splat's result, from the type of its source.
    fn splat_type(&mut self, source: &Type, each: &Expr, context: &Context<'_>) -> Type {
        let mut element = |ty: &Type| {
            let unknown = Value::unknown(ty.clone());
            let (value, _) = self.apart(true, |s| s.expr(each, &context.with_splat_element(&unknown)));
            value.ty().clone()
        };
        match source {
            Type::Tuple(types) => Type::tuple(types.iter().map(element).collect::<Vec<_>>()),
            Type::List(e) | Type::Set(e) => Type::list(element(e)),
            _ => Type::Dynamic,
        }
    }
}

/// Returns keys and elements of a known collection or structure; `None` for anything else.
pub(super) fn iterate(value: &Value) -> Option<Elements> {
    if let Some(items) = value.as_seq() {
        let set = matches!(value.ty(), Type::Set(_));
        let key = |i: usize, v: &Value| if set { v.clone() } else { Value::number(i) };
        return Some(items.iter().enumerate().map(|(i, v)| (key(i, v), v.clone())).collect());
    }
    Some(
        value
            .entries()?
            .map(|(k, v)| (Value::shared_string(k.clone()), v.clone()))
            .collect(),
    )
}

/// Builds the error for `for` expressions that produce too many elements.
fn too_many(most: u64, range: &Range) -> Diagnostic {
    let detail = format!(
        "The \"for\" expressions here produce more than {most} elements. If that is intended, set the environment variable \
         MONOFORM_MAX_ELEMENTS to a larger number."
    );
    Diagnostic::error("Too many elements", detail).at(range)
}

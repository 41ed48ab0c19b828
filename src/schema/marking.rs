//! Sensitive and write-only attributes of a schema, applied to objects.

use std::collections::BTreeMap;

use cty::{Kind, Marks, Path, Type, Value};

use crate::{AttributeSchema, AttributeType, BlockSchema};

/// Returns the paths of the sensitive attributes of an object that are not null, in the object's order. For an attribute inside a set, the
/// path is that of the set.
#[must_use]
pub fn sensitive_paths(schema: &BlockSchema, object: &Value) -> Vec<Path> {
    if !schema.contains_sensitive() {
        return Vec::new();
    }
    given(schema, object, |attribute| attribute.sensitive)
}

/// Marks the sensitive attributes of an object. Returns the object itself if the schema has none.
#[must_use]
pub fn mark_sensitive(schema: &BlockSchema, object: Value) -> Value {
    if !schema.contains_sensitive() {
        return object;
    }
    let changed = change(&Node::Block(schema), &object, &|attribute, value| {
        attribute.sensitive.then(|| value.clone().with_marks(Marks::SENSITIVE))
    });
    changed.unwrap_or(object)
}

/// Returns the paths of ephemeral values outside of write-only attributes. An ephemeral value there is an error, because it would be
/// stored.
#[must_use]
pub fn misplaced_ephemeral(schema: &BlockSchema, object: &Value) -> Vec<Path> {
    let mut out = Vec::new();
    // Few objects contain ephemeral values, and values cache their marks, so this check is fast and avoids a walk.
    if !object.deep_marks().is_ephemeral() {
        return out;
    }
    if object.marks().is_ephemeral() {
        out.push(Path::root());
    }
    walk(
        &Node::Block(schema),
        object,
        &mut Path::root(),
        &mut |attribute, value, path| {
            if attribute.write_only || !value.deep_marks().is_ephemeral() {
                return false;
            }
            if value.marks().is_ephemeral() || matches!(attribute.ty, AttributeType::Plain(_)) {
                out.push(path.clone());
                return false;
            }
            true
        },
    );
    out
}

/// Returns the paths of write-only attributes that are not null.
#[must_use]
pub fn given_write_only(schema: &BlockSchema, object: &Value) -> Vec<Path> {
    if !schema.contains_write_only() {
        return Vec::new();
    }
    given(schema, object, |attribute| attribute.write_only)
}

/// Returns the paths of matching attributes that are not null, each once, without the attributes nested in them.
fn given(schema: &BlockSchema, object: &Value, is_meant: impl Fn(&AttributeSchema) -> bool) -> Vec<Path> {
    let mut out = Vec::new();
    walk(
        &Node::Block(schema),
        object,
        &mut Path::root(),
        &mut |attribute, value, path| {
            if !is_meant(attribute) {
                return true;
            }
            // All elements of a set give the same path, which is added once.
            if !value.is_null() && !out.contains(path) {
                out.push(path.clone());
            }
            false
        },
    );
    out
}

/// Sets write-only attributes to null, because objects must not contain them.
#[must_use]
pub fn without_write_only(schema: &BlockSchema, object: &Value) -> Value {
    if !schema.contains_write_only() {
        return object.clone();
    }
    let changed = change(&Node::Block(schema), object, &|attribute, value| {
        // A null without marks needs no change.
        let stays = value.is_null() && value.marks().is_empty();
        (attribute.write_only && !stays).then(|| Value::null(value.ty().clone()))
    });
    changed.unwrap_or_else(|| object.clone())
}

/// Returns true if the path leads to a write-only attribute, or into one.
#[must_use]
pub fn is_write_only(schema: &BlockSchema, path: &Path) -> bool {
    let mut node = Some(Node::Block(schema));
    let mut found = false;
    for step in &path.0 {
        // Index steps select elements of collections, and all elements have the same attributes.
        let cty::Step::Attribute(name) = step else { continue };
        let Some(here) = node else { return false };
        let attribute = here.attribute(name);
        found = attribute.is_some_and(|a| a.write_only);
        node = match attribute.map(|a| &a.ty) {
            Some(AttributeType::Nested(nested)) => Some(Node::Object(&nested.attributes)),
            Some(AttributeType::Plain(_)) => None,
            None => here.block(name),
        };
    }
    found
}

/// A schema with attributes: of a block, or of the objects of a nested attribute type.
enum Node<'s> {
    Block(&'s BlockSchema),
    Object(&'s BTreeMap<std::sync::Arc<str>, AttributeSchema>),
}

impl<'s> Node<'s> {
    fn attribute(&self, name: &str) -> Option<&'s AttributeSchema> {
        match self {
            Node::Block(schema) => schema.attributes.get(name),
            Node::Object(attributes) => attributes.get(name),
        }
    }

    fn block(&self, name: &str) -> Option<Node<'s>> {
        match self {
            Node::Block(schema) => schema.blocks.get(name).map(|b| Node::Block(&b.block)),
            Node::Object(_) => None,
        }
    }
}

/// Calls `f` for each attribute of an object. If `f` returns true, the attributes nested in that attribute are visited, too.
fn walk(node: &Node<'_>, object: &Value, path: &mut Path, f: &mut dyn FnMut(&AttributeSchema, &Value, &Path) -> bool) {
    if !matches!(object.ty(), Type::Object(_)) {
        return;
    }
    for (name, value) in object.entries().into_iter().flatten() {
        path.0.push(cty::Step::Attribute(name.clone()));
        if let Some(attribute) = node.attribute(name) {
            if f(attribute, value, path)
                && let AttributeType::Nested(nested) = &attribute.ty
            {
                walk_all(
                    &Node::Object(&nested.attributes),
                    value,
                    path,
                    nested.nesting.is_single(),
                    f,
                );
            }
        } else if let Some(inner) = node.block(name) {
            let single = matches!(node, Node::Block(s) if s.blocks.get(name).is_some_and(|b| b.nesting.is_single()));
            walk_all(&inner, value, path, single, f);
        }
        path.0.pop();
    }
}

/// Calls [`walk`] for one object or each object of a collection.
fn walk_all(
    node: &Node<'_>,
    value: &Value,
    path: &mut Path,
    single: bool,
    f: &mut dyn FnMut(&AttributeSchema, &Value, &Path) -> bool,
) {
    if single {
        walk(node, value, path, f);
        return;
    }
    match (value.kind(), value.ty()) {
        // A path into a set would contain the element itself, so attributes of its elements get the path of the set.
        (Kind::Seq(items), Type::Set(_)) => {
            for item in items.iter() {
                let here = path.clone();
                walk(node, item, path, &mut |attribute, inner, _| f(attribute, inner, &here));
            }
        }
        (Kind::Seq(items), Type::List(_) | Type::Tuple(_)) => {
            for (i, item) in items.iter().enumerate() {
                path.0.push(cty::Step::Index(Value::number(i)));
                walk(node, item, path, f);
                path.0.pop();
            }
        }
        _ => {
            for (key, item) in value.entries().into_iter().flatten() {
                path.0.push(cty::Step::Index(Value::shared_string(key.clone())));
                walk(node, item, path, f);
                path.0.pop();
            }
        }
    }
}

/// Replaces attributes at any depth with the results of `f`. Returns `None` if none is replaced.
fn change(node: &Node<'_>, object: &Value, f: &dyn Fn(&AttributeSchema, &Value) -> Option<Value>) -> Option<Value> {
    let (Kind::Seq(values), Type::Object(ty)) = (object.kind(), object.ty()) else {
        return None;
    };
    let changed = |name: &str, value: &Value| {
        if let Some(attribute) = node.attribute(name) {
            return f(attribute, value).or_else(|| match &attribute.ty {
                AttributeType::Nested(nested) => {
                    change_all(&Node::Object(&nested.attributes), value, nested.nesting.is_single(), f)
                }
                AttributeType::Plain(_) => None,
            });
        }
        match (node, node.block(name)) {
            (Node::Block(schema), Some(inner)) => {
                let single = schema.blocks.get(name).is_some_and(|b| b.nesting.is_single());
                change_all(&inner, value, single, f)
            }
            _ => None,
        }
    };
    let attributes = ty.attributes().iter().zip(values.iter());
    // Unchanged parts are shared with the old object, because objects may be large.
    with_changes(object, attributes.map(|(a, value)| changed(&a.name, value)))
}

fn change_all(
    node: &Node<'_>,
    value: &Value,
    single: bool,
    f: &dyn Fn(&AttributeSchema, &Value) -> Option<Value>,
) -> Option<Value> {
    if single {
        return change(node, value, f);
    }
    match value.kind() {
        Kind::Seq(items) => with_changes(value, items.iter().map(|item| change(node, item, f))),
        Kind::Map(items) => with_changes(value, items.iter().map(|(_, item)| change(node, item, f))),
        _ => None,
    }
}

/// Replaces parts of a value by position. Returns `None` if there is no change.
fn with_changes(value: &Value, parts: impl Iterator<Item = Option<Value>>) -> Option<Value> {
    let changes: Vec<(usize, Value)> = parts.enumerate().filter_map(|(i, part)| Some((i, part?))).collect();
    if changes.is_empty() {
        return None;
    }
    let (mut changes, mut at) = (changes.into_iter().peekable(), 0..);
    Some(value.map_parts(|_, part| {
        let here = at.next();
        let changed = changes.next_if(|(i, _)| Some(*i) == here);
        changed.map_or_else(|| part.clone(), |(_, new)| new)
    }))
}

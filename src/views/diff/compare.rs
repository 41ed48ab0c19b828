//! Comparison of two values, as a tree of their parts that is ready to be rendered.
//!
//! There are two kinds of comparison. If the schema has a type, it decides how parts pair up. Otherwise (an attribute of the dynamic
//! type, an output value) the content decides, as if both values were JSON documents.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use cty::types::ObjectType;
use cty::{Kind, Type, Value};
use schema::{AttributeSchema, AttributeType, BlockSchema, NestedBlock, NestedObject, Nesting};

use super::alike;
use super::pair::{Pair, Paths};
use super::sequence;
use super::tree::{Act, Block, Blocks, Body, Node, Secret};

/// Returns true if both values have the same content. Marks are ignored.
fn same(pair: &Pair<'_>) -> bool {
    match (pair.before, pair.after) {
        (None, None) => true,
        (Some(b), Some(a)) => same_content(b, a),
        _ => false,
    }
}

fn same_content(a: &Value, b: &Value) -> bool {
    // Removing marks copies a value, so it is avoided for values without marks.
    if a.deep_marks().is_empty() && b.deep_marks().is_empty() {
        return a == b;
    }
    a.clone().unmark_deep().0 == b.clone().unmark_deep().0
}

fn leaf<'v>(pair: &Pair<'v>) -> Node<'v> {
    let act = match (pair.before, pair.after) {
        (None, None) => Act::Keep,
        (None, Some(_)) => Act::Create,
        (Some(_), None) => Act::Delete,
        _ if same(pair) => Act::Keep,
        _ => Act::Update,
    };
    pair.node(act, Body::Primitive(pair.before, pair.after))
}

/// Handles sensitive and unknown values; everything else is compared by `inner`.
fn guarded<'v>(pair: Pair<'v>, inner: &dyn Fn(Pair<'v>) -> Node<'v>) -> Node<'v> {
    if let Some(node) = sensitive(&pair, &|p| guarded(p, inner)) {
        return node;
    }
    if pair.after.is_some_and(|v| !v.is_known()) {
        unknown(&pair, inner)
    } else {
        inner(pair)
    }
}

fn sensitive<'v>(pair: &Pair<'v>, inner: &dyn Fn(Pair<'v>) -> Node<'v>) -> Option<Node<'v>> {
    if !pair.was_sensitive && !pair.is_sensitive {
        return None;
    }
    let (before, after) = (pair.was_sensitive, pair.is_sensitive);
    let inner = inner(pair.clone().plain());
    let absent = pair.before.is_none() && pair.after.is_none();
    // Adding or removing a mark is a change, even if the value is the same.
    let act = if inner.act == Act::Keep && before != after && !absent {
        Act::Update
    } else {
        inner.act
    };
    let secret = Secret {
        inner: inner.act,
        before,
        after,
    };
    Some(Node {
        act,
        replace: pair.replace.ends_here(),
        body: Body::Sensitive(secret, pair.revealed.then(|| Box::new(inner))),
    })
}

fn unknown<'v>(pair: &Pair<'v>, inner: &dyn Fn(Pair<'v>) -> Node<'v>) -> Node<'v> {
    if !pair.has_before() && pair.before.is_none() {
        return pair.node(Act::Create, Body::Unknown(None));
    }
    // Attributes of a removed value have no changes of their own, so they do not force replacement.
    let before = inner(Pair {
        replace: Paths::none(),
        legacy: true,
        ..pair.only_before()
    });
    pair.node(Act::Update, Body::Unknown(Some(Box::new(before))))
}

/// Compares values by their content, as if they were JSON.
pub(super) fn dynamic(pair: Pair<'_>) -> Node<'_> {
    guarded(pair, &dynamic_known)
}

#[derive(Clone, Copy, PartialEq)]
enum Shape {
    Null,
    String,
    Number,
    Bool,
    Array,
    Object,
}

fn shape(value: Option<&Value>) -> Shape {
    match value.map(|v| (v.kind(), v.ty())) {
        Some((Kind::Seq(_), Type::Object(_)) | (Kind::Map(_), _)) => Shape::Object,
        Some((Kind::Seq(_), _)) => Shape::Array,
        Some((Kind::Bool(_), _)) => Shape::Bool,
        Some((Kind::Number(_), _)) => Shape::Number,
        Some((Kind::String(_), _)) => Shape::String,
        None | Some((Kind::Null | Kind::Unknown(_), _)) => Shape::Null,
    }
}

fn dynamic_known(pair: Pair<'_>) -> Node<'_> {
    // Parts are not marked as forcing replacement: a provider cannot declare that for a part of a dynamic value.
    let pair = Pair {
        replace: Paths::none(),
        ..pair
    };
    let (before, after) = (shape(pair.before), shape(pair.after));
    if before == after || pair.before.is_none() || pair.after.is_none() {
        let shape = if before == Shape::Null { after } else { before };
        return dynamic_of(&pair, shape);
    }
    let old = dynamic_of(&pair.only_before(), before);
    let new = dynamic_of(&pair.only_after(), after);
    pair.node(Act::Update, Body::TypeChange(Box::new(old), Box::new(new)))
}

fn dynamic_of<'v>(pair: &Pair<'v>, common: Shape) -> Node<'v> {
    match common {
        Shape::Object => {
            let mut act = pair.initial();
            let mut items = Vec::new();
            for name in keys(pair) {
                let child = dynamic(pair.part(name));
                act = act.with(child.act);
                items.push((name, child));
            }
            pair.node(act, Body::Object { items, nested: false })
        }
        Shape::Array => {
            let (before, after) = pair.sequences();
            let is_object = |v: &Value| shape(Some(v)) == Shape::Object;
            let steps = match pair.alike && before.iter().chain(after).any(is_object) {
                true => alike::lists(before, after),
                false => sequence::elements(before, after, is_object),
            };
            list(pair, before, after, steps, true, &dynamic)
        }
        _ => leaf(pair),
    }
}

/// Returns the keys of both sides, sorted.
fn keys<'v>(pair: &Pair<'v>) -> Vec<&'v str> {
    fn names(value: Option<&Value>) -> Vec<&str> {
        value
            .and_then(Value::entries)
            .into_iter()
            .flatten()
            .map(|(k, _)| &**k)
            .collect()
    }
    let (before, after) = (names(pair.before), names(pair.after));
    // The common case needs no merge.
    if before.is_empty() || before == after {
        return after;
    }
    let mut all = before;
    all.extend(after);
    all.sort_unstable();
    all.dedup();
    all
}

fn list<'v>(
    pair: &Pair<'v>,
    before: &'v [Value],
    after: &'v [Value],
    steps: Vec<(Option<usize>, Option<usize>)>,
    context: bool,
    compare: &dyn Fn(Pair<'v>) -> Node<'v>,
) -> Node<'v> {
    let mut act = pair.initial();
    let mut items = Vec::with_capacity(steps.len());
    for step in steps {
        let child = compare(pair.element(before, after, step));
        act = act.with(child.act);
        items.push(child);
    }
    pair.node(act, Body::List { items, context })
}

fn set_items<'v>(pair: &Pair<'v>, compare: &dyn Fn(Pair<'v>) -> Node<'v>) -> (Act, Vec<Node<'v>>) {
    let (before, after) = pair.sequences();
    let mut act = pair.initial();
    let steps = match pair.alike {
        true => alike::sets(before, after),
        false => sequence::match_sets(before, after),
    };
    let items = steps
        .into_iter()
        .map(|step| {
            let child = compare(pair.element(before, after, step));
            act = act.with(child.act);
            child
        })
        .collect();
    (act, items)
}

fn map_items<'v>(pair: &Pair<'v>, compare: &dyn Fn(Pair<'v>) -> Node<'v>) -> (Act, Vec<(&'v str, Node<'v>)>) {
    let mut act = pair.initial();
    let items = keys(pair)
        .into_iter()
        .map(|key| {
            let child = compare(pair.part(key).if_relevant());
            act = act.with(child.act);
            (key, child)
        })
        .collect();
    (act, items)
}

/// Compares values of a known type.
pub(super) fn typed<'v>(pair: Pair<'v>, ty: &'v Type) -> Node<'v> {
    // An empty string that becomes unknown is left to the typed comparison, which can treat it as null.
    if matches!(ty, Type::Dynamic) && !(pair.before.is_some_and(is_empty) && pair.after.is_some_and(|v| !v.is_known()))
    {
        return dynamic(pair);
    }
    guarded(pair, &|pair| typed_known(&pair, ty))
}

/// Null as a present value, in contrast to an absent part.
static NULL: LazyLock<Value> = LazyLock::new(|| Value::null(Type::String));

fn is_empty(value: &Value) -> bool {
    value.as_str() == Some("")
}

/// Replaces an empty string by null.
pub(super) fn null_if_empty(value: &Value) -> &Value {
    if is_empty(value) { &NULL } else { value }
}

/// Replaces empty strings by null for the legacy type system, which does not distinguish them.
fn without_empty<'v>(pair: &Pair<'v>) -> Pair<'v> {
    let pair = pair.clone();
    if pair.legacy {
        Pair {
            before: pair.before.map(null_if_empty),
            after: pair.after.map(null_if_empty),
            ..pair
        }
    } else {
        pair
    }
}

fn typed_known<'v>(pair: &Pair<'v>, ty: &'v Type) -> Node<'v> {
    match ty {
        Type::Dynamic | Type::String | Type::Number | Type::Bool => leaf(&without_empty(pair)),
        Type::Object(object) => {
            let (act, items) = object_items(pair, object);
            pair.node(act, Body::Object { items, nested: false })
        }
        Type::Map(element) => {
            let (act, items) = map_items(pair, &|p| typed(p, element));
            pair.node(act, Body::Map { items, nested: false })
        }
        Type::Set(element) => {
            let (act, items) = set_items(pair, &|p| typed(p, element));
            pair.node(act, Body::Set { items, nested: false })
        }
        Type::List(element) => {
            let (before, after) = pair.sequences();
            let objects = matches!(**element, Type::Object(_));
            let steps = match pair.alike && objects {
                true => alike::lists(before, after),
                false => sequence::elements(before, after, |_| objects),
            };
            list(pair, before, after, steps, true, &|p| typed(p, element))
        }
        // Elements of a tuple have different types, so only equal positions are compared.
        Type::Tuple(types) => {
            let (before, after) = pair.sequences();
            let mut act = pair.initial();
            let items = types.iter().enumerate().map(|(i, ty)| {
                let step = ((i < before.len()).then_some(i), (i < after.len()).then_some(i));
                let child = typed(pair.element(before, after, step), ty);
                act = act.with(child.act);
                child
            });
            let items = items.collect();
            pair.node(act, Body::List { items, context: true })
        }
    }
}

fn object_items<'v>(pair: &Pair<'v>, ty: &'v Arc<ObjectType>) -> (Act, Vec<(&'v str, Node<'v>)>) {
    let mut act = pair.initial();
    let mut items = Vec::new();
    for attribute in ty.attributes() {
        let part = pair.part(&attribute.name).if_relevant().implicit();
        let nothing = part.is_nothing();
        let child = typed(part, &attribute.ty);
        // Attributes that are null on both sides are not even counted as unchanged, as in Terraform.
        if child.act == Act::Keep && nothing {
            continue;
        }
        act = act.with(child.act);
        items.push((&*attribute.name, child));
    }
    (act, items)
}

/// Compares the values of an attribute.
pub(super) fn attribute<'v>(pair: Pair<'v>, schema: &'v AttributeSchema) -> Node<'v> {
    let whole = pair.clone();
    match &schema.ty {
        AttributeType::Plain(ty) => typed(pair, ty),
        AttributeType::Nested(nested) => guarded(pair, &|pair| nested_attribute(&pair, nested))
            .with_unknown_parts(|| nested.nesting.is_single().then(|| unknown_parts(&whole, nested))),
    }
}

/// Value that is not known yet.
static UNKNOWN: LazyLock<Value> = LazyLock::new(Value::dynamic);

impl<'v> Node<'v> {
    /// If a nested object becomes unknown, replaces its old value by a tree of its parts.
    fn with_unknown_parts(mut self, parts: impl FnOnce() -> Option<Node<'v>>) -> Node<'v> {
        if let Body::Unknown(Some(before)) = &mut self.body
            && let Some(parts) = parts()
        {
            **before = parts;
        }
        self
    }
}

/// Returns the tree of a nested object each part of which is not known yet.
fn unknown_parts<'v>(pair: &Pair<'v>, nested: &'v NestedObject) -> Node<'v> {
    let parts = nested.attributes.iter().map(|(name, schema)| {
        let part = pair.only_before().part(name).implicit();
        let child = attribute(
            Pair {
                after: Some(&*UNKNOWN),
                is_sensitive: false,
                ..part
            },
            schema,
        );
        (&**name, child)
    });
    Node {
        act: Act::Update,
        replace: false,
        body: Body::Object {
            items: parts.collect(),
            nested: true,
        },
    }
}

/// Returns the node of a write-only attribute, which is never stored. The object around it decides the action.
fn write_only<'v>(parent: &Pair<'v>) -> Node<'v> {
    Node {
        act: parent.initial(),
        replace: false,
        body: Body::WriteOnly,
    }
}

fn nested_object<'v>(pair: Pair<'v>, attributes: &'v BTreeMap<Arc<str>, AttributeSchema>) -> Node<'v> {
    guarded(pair, &|pair| {
        let mut act = pair.initial();
        let mut items = Vec::new();
        for (name, schema) in attributes {
            let part = pair.part(name).if_relevant().implicit();
            // A write-only value is never stored. It is null on both sides, and would not be shown.
            let nothing = part.is_nothing() && !schema.write_only;
            let child = if schema.write_only {
                write_only(&pair)
            } else {
                attribute(part, schema)
            };
            if child.act == Act::Keep && nothing {
                continue;
            }
            act = act.with(child.act);
            items.push((&**name, child));
        }
        pair.node(act, Body::Object { items, nested: true })
    })
}

fn nested_attribute<'v>(pair: &Pair<'v>, nested: &'v NestedObject) -> Node<'v> {
    let object = |p: Pair<'v>| nested_object(p, &nested.attributes);
    match nested.nesting {
        Nesting::Single | Nesting::Group => object(pair.clone()),
        Nesting::Map => {
            let (act, items) = map_items(pair, &object);
            pair.node(act, Body::Map { items, nested: true })
        }
        Nesting::Set => {
            let (act, items) = set_items(pair, &object);
            pair.node(act, Body::Set { items, nested: true })
        }
        Nesting::List => {
            let (before, after) = pair.sequences();
            list(pair, before, after, positions(pair), false, &object)
        }
    }
}

/// Pairs up the nested objects or blocks of a list, which have no keys: by similarity, or by position as in Terraform. By position, all
/// later elements are shown as changed if one is removed.
fn positions(pair: &Pair<'_>) -> Vec<sequence::Step> {
    let (before, after) = pair.sequences();
    match pair.alike {
        true => alike::lists(before, after),
        false => sequence::by_position(before.len(), after.len()),
    }
}

/// Compares the contents of blocks.
pub(super) fn block<'v>(pair: &Pair<'v>, schema: &'v BlockSchema) -> Node<'v> {
    if let Some(node) = sensitive(pair, &|p| block(&p, schema)) {
        let Body::Sensitive(secret, shown) = node.body else {
            return node;
        };
        return Node {
            body: Body::SensitiveBlock(secret, shown),
            ..node
        };
    }
    if pair.after.is_some_and(|v| !v.is_known()) {
        return unknown(pair, &|p| block(&p, schema));
    }
    let legacy = !is_modern(schema);
    let mut act = pair.initial();
    let mut attributes = Vec::new();
    for (name, attribute_schema) in &schema.attributes {
        let mut part = pair.part(name).if_relevant().implicit();
        part.legacy = legacy;
        let nothing = part.is_nothing() && !attribute_schema.write_only;
        // The legacy SDK stores unset strings as empty ones, so empty strings are not shown.
        if legacy {
            part.before = part.before.filter(|v| !is_empty(v));
            part.after = part.after.filter(|v| !is_empty(v));
        }
        let child = if attribute_schema.write_only {
            write_only(pair)
        } else {
            attribute(part, attribute_schema)
        };
        if child.act == Act::Keep && nothing {
            continue;
        }
        act = act.with(child.act);
        attributes.push((&**name, child));
    }
    let mut blocks = Vec::new();
    for (name, nested) in &schema.blocks {
        let part = pair.part(name).if_relevant().implicit();
        let (these, content) = nested_blocks(&part, nested);
        if these == Act::Keep && part.is_nothing() {
            continue;
        }
        act = act.with(these);
        blocks.push((&**name, content));
    }
    pair.node(act, Body::Block(Block { attributes, blocks }))
}

fn nested_blocks<'v>(pair: &Pair<'v>, nested: &'v NestedBlock) -> (Act, Blocks<'v>) {
    let replace = pair.replace.ends_here();
    let whole = || block(pair, &nested.block);
    let unknown_whole = pair.after.is_some_and(|v| !v.is_known());
    let compare = |p: Pair<'v>| {
        block(
            &p.implicit().sensitive(pair.was_sensitive, pair.is_sensitive),
            &nested.block,
        )
    };
    let (act, items) = match nested.nesting {
        Nesting::Single | Nesting::Group => {
            let node = whole();
            (node.act, vec![(None, node)])
        }
        // If the number of blocks is unknown, the old ones have no counterparts, and one unknown block represents all
        // new ones.
        _ if unknown_whole => {
            let act = if pair.has_before() { Act::Update } else { Act::Create };
            let node = |act| Node {
                act,
                replace: false,
                body: Body::Unknown(None),
            };
            let (was, will) = (pair.was_sensitive, pair.is_sensitive);
            let first = if was || will {
                let secret = Secret {
                    inner: act,
                    before: was,
                    after: will,
                };
                Node {
                    body: Body::SensitiveBlock(secret, pair.revealed.then(|| Box::new(node(act)))),
                    ..node(act)
                }
            } else {
                node(act)
            };
            let gone = pair.only_before();
            let old = pair.before.and_then(Value::as_seq).unwrap_or_default();
            let old = old
                .iter()
                .enumerate()
                .map(|(i, _)| compare(gone.element(gone.sequences().0, &[], (Some(i), None))));
            (
                act,
                std::iter::once(first).chain(old).map(|node| (None, node)).collect(),
            )
        }
        Nesting::Map => {
            let (act, items) = map_items(pair, &compare);
            (act, items.into_iter().map(|(key, node)| (Some(key), node)).collect())
        }
        Nesting::Set => {
            let (act, items) = set_items(pair, &compare);
            (act, items.into_iter().map(|node| (None, node)).collect())
        }
        Nesting::List => {
            let (before, after) = pair.sequences();
            let mut act = pair.initial();
            let mut items = Vec::new();
            for step in positions(pair) {
                let child = compare(pair.element(before, after, step));
                act = act.with(child.act);
                items.push((None, child));
            }
            (act, items)
        }
    };
    (act, Blocks { items, replace })
}

/// Returns true if a schema has something that the legacy SDK cannot express.
fn is_modern(schema: &BlockSchema) -> bool {
    schema.attributes.values().any(|a| match &a.ty {
        AttributeType::Nested(_) => true,
        AttributeType::Plain(ty) => has_structure(ty),
    }) || schema
        .blocks
        .values()
        .any(|b| !matches!(b.nesting, Nesting::List | Nesting::Set) || is_modern(&b.block))
}

fn has_structure(ty: &Type) -> bool {
    match ty {
        Type::Dynamic | Type::Tuple(_) => true,
        Type::Object(_) => true,
        Type::List(e) | Type::Set(e) | Type::Map(e) => matches!(**e, Type::Dynamic | Type::Tuple(_)),
        _ => false,
    }
}

//! Comparing two values.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cty::{Kind as ValueKind, Path, Step as PathStep, Type, Value};
use lang::schema::{AttributeSchema, AttributeType, BlockSchema, Nesting};

use crate::views::diff::sequence::{Step, steps};
use crate::views::diff::{Blocks, Change, Diff, Kind};

/// The values of one place: `None` where there is nothing at all, which is not the same as null.
#[derive(Clone, Copy)]
struct Pair<'v> {
    before: Option<&'v Value>,
    after: Option<&'v Value>,
}

/// The paths whose change asks for a new object, as far as they lead through the current place.
#[derive(Clone)]
struct Replace<'p>(Vec<&'p [PathStep]>);

impl<'p> Replace<'p> {
    fn none() -> Replace<'p> {
        Replace(Vec::new())
    }

    fn here(&self) -> bool {
        self.0.iter().any(|p| p.is_empty())
    }

    fn attribute(&self, name: &str) -> Replace<'p> {
        self.under(|step| matches!(step, PathStep::Attribute(n) if &**n == name))
    }

    fn key(&self, key: &str) -> Replace<'p> {
        self.under(|step| matches!(step, PathStep::Index(k) if k.as_str() == Some(key)))
    }

    fn element(&self, index: usize) -> Replace<'p> {
        self.under(
            |step| matches!(step, PathStep::Index(k) if k.as_number().and_then(cty::Number::to_usize) == Some(index)),
        )
    }

    fn under(&self, fits: impl Fn(&PathStep) -> bool) -> Replace<'p> {
        if self.0.is_empty() {
            return Replace::none();
        }
        Replace(
            self.0
                .iter()
                .filter_map(|p| p.split_first().filter(|(s, _)| fits(s)).map(|(_, rest)| rest))
                .collect(),
        )
    }

    /// For the elements of a set: where the path names one, that is taken for all.
    fn set_element(&self) -> Replace<'p> {
        self.under(|step| matches!(step, PathStep::Index(_)))
    }
}

impl<'v> Pair<'v> {
    /// The values, null as nothing.
    fn implicit(self) -> Pair<'v> {
        let there = |v: Option<&'v Value>| v.filter(|v| !v.is_null());
        Pair {
            before: there(self.before),
            after: there(self.after),
        }
    }

    fn get(self, name: &str) -> Pair<'v> {
        Pair {
            before: self.before.and_then(|v| v.get(name)),
            after: self.after.and_then(|v| v.get(name)),
        }
    }

    fn change(self) -> Change {
        match (self.before, self.after) {
            (None, None) => Change::None,
            (None, Some(_)) => Change::Create,
            (Some(_), None) => Change::Delete,
            (Some(b), Some(a)) if same(b, a) => Change::None,
            _ => Change::Update,
        }
    }
}

/// Whether two values are the same, marks aside.
fn same(a: &Value, b: &Value) -> bool {
    if a.deep_marks().is_empty() && b.deep_marks().is_empty() {
        return a.kind() == b.kind();
    }
    a.clone().unmark_deep().0.kind() == b.clone().unmark_deep().0.kind()
}

/// The difference between two objects of a schema; null is no object.
#[must_use]
pub fn object(before: &Value, after: &Value, schema: &BlockSchema, replace: &[Path]) -> Diff {
    let replace = Replace(replace.iter().map(|p| &*p.0).collect());
    let pair = Pair {
        before: Some(before),
        after: Some(after),
    }
    .implicit();
    block(pair, schema, &replace)
}

/// The difference between two values of any type.
#[must_use]
pub fn anything(before: Option<&Value>, after: Option<&Value>) -> Diff {
    guarded(Pair { before, after }, &Replace::none(), false, generic)
}

/// The difference between two values of a type; null is nothing.
#[must_use]
pub fn typed(before: Option<&Value>, after: Option<&Value>, ty: &Type) -> Diff {
    of_type(Pair { before, after }.implicit(), ty, &Replace::none())
}

/// Looks at marks and unknowns first, which are the same for all kinds of values.
fn guarded<'v>(pair: Pair<'v>, replace: &Replace<'_>, is_block: bool, compare: impl Fn(Pair<'_>) -> Diff) -> Diff {
    let sensitive = |v: Option<&Value>| v.is_some_and(|v| v.marks().is_sensitive());
    let (before, after) = (sensitive(pair.before), sensitive(pair.after));
    if before || after {
        let mut change = pair.change();
        let same = change == Change::None;
        if same && before != after {
            change = Change::Update;
        }
        let kind = Kind::Sensitive {
            before,
            after,
            same,
            block: is_block,
        };
        return Diff {
            change,
            replace: replace.here(),
            kind,
        };
    }
    if pair.after.is_some_and(|v| !v.is_known()) {
        let known_before = pair.before.filter(|v| !v.is_null());
        let change = if known_before.is_some() {
            Change::Update
        } else {
            Change::Create
        };
        let inner = known_before.map(|_| {
            Box::new(compare(Pair {
                before: known_before,
                after: None,
            }))
        });
        return Diff {
            change,
            replace: replace.here(),
            kind: Kind::Unknown(inner),
        };
    }
    compare(pair)
}

fn primitive(pair: Pair<'_>, replace: bool) -> Diff {
    Diff {
        change: pair.change(),
        replace,
        kind: Kind::Primitive(pair.before.cloned(), pair.after.cloned()),
    }
}

// ---- by shape -----------------------------------------------------------------------------------------------------

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Nothing,
    Primitive,
    Sequence,
    Named,
}

fn shape(value: Option<&Value>) -> Shape {
    match value {
        None => Shape::Nothing,
        Some(v) => match (v.kind(), v.ty()) {
            (ValueKind::Null | ValueKind::Unknown(_), _) => Shape::Nothing,
            (ValueKind::Seq(_), Type::Object(_)) | (ValueKind::Map(_), _) => Shape::Named,
            (ValueKind::Seq(_), _) => Shape::Sequence,
            _ => Shape::Primitive,
        },
    }
}

/// The difference between values by their shape.
fn generic(pair: Pair<'_>) -> Diff {
    fn whole(pair: Pair<'_>) -> Diff {
        guarded(pair, &Replace::none(), false, generic)
    }
    match (shape(pair.before), shape(pair.after)) {
        (Shape::Named, Shape::Named | Shape::Nothing) | (Shape::Nothing, Shape::Named) if !explicit_null(pair) => {
            let names = names(pair);
            let attributes: BTreeMap<String, Diff> = names
                .into_iter()
                .map(|name| (name.to_string(), whole(pair.get(&name))))
                .collect();
            collected(pair, attributes.values().map(|d| d.change), false, || {
                Kind::Object(attributes.clone())
            })
        }
        (Shape::Sequence, Shape::Sequence | Shape::Nothing) | (Shape::Nothing, Shape::Sequence)
            if !explicit_null(pair) =>
        {
            let items = sequence(
                pair,
                |pair, _| whole(pair),
                |b, a| shape(Some(b)) == Shape::Named && shape(Some(a)) == Shape::Named,
            );
            collected(pair, items.iter().map(|d| d.change), false, || {
                Kind::List(items.clone(), true)
            })
        }
        (Shape::Primitive | Shape::Nothing, Shape::Primitive | Shape::Nothing) => primitive(pair, false),
        _ => type_change(pair),
    }
}

/// Whether a collection becomes null or comes from it, where null counts.
fn explicit_null(pair: Pair<'_>) -> bool {
    [pair.before, pair.after]
        .into_iter()
        .flatten()
        .any(|v| shape(Some(v)) == Shape::Nothing)
}

fn type_change(pair: Pair<'_>) -> Diff {
    let gone = generic(Pair {
        before: pair.before,
        after: None,
    });
    let come = generic(Pair {
        before: None,
        after: pair.after,
    });
    Diff {
        change: Change::Update,
        replace: false,
        kind: Kind::TypeChange(Box::new(gone), Box::new(come)),
    }
}

fn names(pair: Pair<'_>) -> BTreeSet<Arc<str>> {
    [pair.before, pair.after]
        .into_iter()
        .flatten()
        .filter_map(Value::entries)
        .flat_map(|entries| entries.map(|(name, _)| name.clone()).collect::<Vec<_>>())
        .collect()
}

/// What happens to a whole whose parts change like this.
fn collected(pair: Pair<'_>, parts: impl Iterator<Item = Change>, replace: bool, kind: impl FnOnce() -> Kind) -> Diff {
    let whole = match (pair.before, pair.after) {
        (None, None) => Change::None,
        (None, Some(_)) => Change::Create,
        (Some(_), None) => Change::Delete,
        _ => parts.fold(Change::None, Change::and),
    };
    // Parts that all come or go change a whole that was and is there.
    let whole = if pair.before.is_some() && pair.after.is_some() && whole != Change::None {
        Change::Update
    } else {
        whole
    };
    Diff {
        change: whole,
        replace,
        kind: kind(),
    }
}

fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_seq).unwrap_or_default()
}

/// The elements of two sequences: side by side if there are as many, through what they have in common otherwise.
fn sequence(
    pair: Pair<'_>,
    element: impl Fn(Pair<'_>, usize) -> Diff,
    pairs: impl Fn(&Value, &Value) -> bool,
) -> Vec<Diff> {
    let (before, after) = (items(pair.before), items(pair.after));
    if before.len() == after.len() {
        let both = before.iter().zip(after).enumerate();
        return both
            .map(|(i, (b, a))| {
                element(
                    Pair {
                        before: Some(b),
                        after: Some(a),
                    },
                    i,
                )
            })
            .collect();
    }
    steps(before, after, same, pairs)
        .into_iter()
        .map(|step| match step {
            Step::Both(b, a) => element(
                Pair {
                    before: before.get(b),
                    after: after.get(a),
                },
                a,
            ),
            Step::Before(b) => element(
                Pair {
                    before: before.get(b),
                    after: None,
                },
                b,
            ),
            Step::After(a) => element(
                Pair {
                    before: None,
                    after: after.get(a),
                },
                a,
            ),
        })
        .collect()
}

/// The elements of two sets: those in both, those only before, those only after, in their order.
fn set(pair: Pair<'_>, element: impl Fn(Pair<'_>) -> Diff) -> Vec<Diff> {
    let (before, after) = (items(pair.before), items(pair.after));
    if before.iter().any(|v| !v.is_wholly_known()) || after.iter().any(|v| !v.is_wholly_known()) {
        let gone = before.iter().map(|b| Pair {
            before: Some(b),
            after: after.iter().find(|a| same(a, b)),
        });
        let come = after
            .iter()
            .filter(|a| !before.iter().any(|b| same(a, b)))
            .map(|a| Pair {
                before: None,
                after: Some(a),
            });
        return gone.chain(come).map(element).collect();
    }
    // Both are in the canonical order of sets, so what they share is found by going along both.
    steps(before, after, same, |_, _| false)
        .into_iter()
        .map(|step| {
            element(match step {
                Step::Both(b, a) => Pair {
                    before: before.get(b),
                    after: after.get(a),
                },
                Step::Before(b) => Pair {
                    before: before.get(b),
                    after: None,
                },
                Step::After(a) => Pair {
                    before: None,
                    after: after.get(a),
                },
            })
        })
        .collect()
}

// ---- by type ------------------------------------------------------------------------------------------------------

fn of_type(pair: Pair<'_>, ty: &Type, replace: &Replace<'_>) -> Diff {
    if *ty == Type::Dynamic {
        return guarded(pair, &Replace::none(), false, generic);
    }
    guarded(pair, replace, false, |pair| match ty {
        Type::Object(o) => {
            let attributes = o
                .attributes()
                .iter()
                .filter_map(|a| {
                    let pair = pair.get(&a.name).implicit();
                    let diff = of_type(pair, &a.ty, &replace.attribute(&a.name));
                    absent(pair, &diff).then(|| (a.name.to_string(), diff))
                })
                .collect::<BTreeMap<_, _>>();
            collected(pair, attributes.values().map(|d| d.change), replace.here(), || {
                Kind::Object(attributes.clone())
            })
        }
        Type::Map(element) => {
            let entries: BTreeMap<String, Diff> = names(pair)
                .into_iter()
                .map(|key| (key.to_string(), of_type(pair.get(&key), element, &replace.key(&key))))
                .collect();
            collected(pair, entries.values().map(|d| d.change), replace.here(), || {
                Kind::Map(entries.clone())
            })
        }
        Type::List(element) => {
            let objects = matches!(**element, Type::Object(_));
            let items = sequence(
                pair,
                |pair, i| of_type(pair, element, &replace.element(i)),
                |_, _| objects,
            );
            collected(pair, items.iter().map(|d| d.change), replace.here(), || {
                Kind::List(items.clone(), true)
            })
        }
        Type::Tuple(types) => {
            let ty = |i: usize| types.get(i).cloned().unwrap_or(Type::Dynamic);
            let items = sequence(pair, |pair, i| of_type(pair, &ty(i), &replace.element(i)), |_, _| false);
            collected(pair, items.iter().map(|d| d.change), replace.here(), || {
                Kind::List(items.clone(), true)
            })
        }
        Type::Set(element) => {
            let items = set(pair, |pair| of_type(pair, element, &replace.set_element()));
            collected(pair, items.iter().map(|d| d.change), replace.here(), || {
                Kind::Set(items.clone())
            })
        }
        _ => primitive(pair, replace.here()),
    })
}

/// Whether there is anything to say of an attribute: one that is null and stays null is not there.
fn absent(pair: Pair<'_>, diff: &Diff) -> bool {
    pair.before.is_some() || pair.after.is_some() || diff.change != Change::None
}

fn attribute(pair: Pair<'_>, schema: &AttributeSchema, replace: &Replace<'_>) -> Diff {
    match &schema.ty {
        AttributeType::Plain(ty) => of_type(pair, ty, replace),
        AttributeType::Nested(nested) => guarded(pair, replace, false, |pair| {
            let one = |pair: Pair<'_>, replace: &Replace<'_>| {
                guarded(pair, replace, false, |pair| {
                    let attributes = attributes(pair, &nested.attributes, replace);
                    let changes: Vec<Change> = attributes.values().map(|d| d.change).collect();
                    collected(pair, changes.into_iter(), replace.here(), || Kind::Object(attributes))
                })
            };
            match nested.nesting {
                Nesting::Single | Nesting::Group => one(pair, replace),
                Nesting::List => {
                    let items = sequence(pair, |pair, i| one(pair, &replace.element(i)), |_, _| true);
                    collected(pair, items.iter().map(|d| d.change), replace.here(), || {
                        Kind::List(items.clone(), false)
                    })
                }
                Nesting::Set => {
                    let items = set(pair, |pair| one(pair, &replace.set_element()));
                    collected(pair, items.iter().map(|d| d.change), replace.here(), || {
                        Kind::Set(items.clone())
                    })
                }
                Nesting::Map => {
                    let entries: BTreeMap<String, Diff> = names(pair)
                        .into_iter()
                        .map(|k| (k.to_string(), one(pair.get(&k), &replace.key(&k))))
                        .collect();
                    collected(pair, entries.values().map(|d| d.change), replace.here(), || {
                        Kind::Map(entries.clone())
                    })
                }
            }
        }),
    }
}

fn attributes(
    pair: Pair<'_>,
    schemas: &BTreeMap<Arc<str>, AttributeSchema>,
    replace: &Replace<'_>,
) -> BTreeMap<String, Diff> {
    schemas
        .iter()
        .filter_map(|(name, schema)| {
            let pair = pair.get(name).implicit();
            let diff = attribute(pair, schema, &replace.attribute(name));
            absent(pair, &diff).then(|| (name.to_string(), diff))
        })
        .collect()
}

// ---- blocks -------------------------------------------------------------------------------------------------------

fn block(pair: Pair<'_>, schema: &BlockSchema, replace: &Replace<'_>) -> Diff {
    guarded(pair, replace, true, |pair| {
        let attributes = attributes(pair, &schema.attributes, replace);
        let mut blocks = BTreeMap::new();
        for (name, nested) in &schema.blocks {
            let pair = pair.get(name).implicit();
            let replace = replace.attribute(name);
            let one = |pair: Pair<'_>, replace: &Replace<'_>| block(pair, &nested.block, replace);
            let whole = [pair.before, pair.after].into_iter().flatten();
            let items: Vec<(Option<String>, Diff)> =
                if whole.clone().any(|v| v.marks().is_sensitive()) || pair.after.is_some_and(|v| !v.is_known()) {
                    vec![(None, one(pair, &replace))]
                } else {
                    match nested.nesting {
                        Nesting::Single | Nesting::Group => vec![(None, one(pair, &replace))],
                        Nesting::List => sequence(pair, |pair, i| one(pair, &replace.element(i)), |_, _| true)
                            .into_iter()
                            .map(|d| (None, d))
                            .collect(),
                        Nesting::Set => set(pair, |pair| one(pair, &replace.set_element()))
                            .into_iter()
                            .map(|d| (None, d))
                            .collect(),
                        Nesting::Map => names(pair)
                            .into_iter()
                            .map(|k| (Some(k.to_string()), one(pair.get(&k), &replace.key(&k))))
                            .collect(),
                    }
                };
            let items: Vec<_> = items
                .into_iter()
                .filter(|(_, d)| match &d.kind {
                    // A block that is not there and does not come.
                    Kind::Block(attributes, blocks) => {
                        d.change != Change::None
                            || !attributes.is_empty()
                            || !blocks.is_empty()
                            || pair.before.is_some()
                    }
                    _ => true,
                })
                .collect();
            if !items.is_empty() {
                blocks.insert(name.to_string(), Blocks { items });
            }
        }
        let parts: Vec<Change> = attributes
            .values()
            .map(|d| d.change)
            .chain(blocks.values().flat_map(|b| b.items.iter().map(|(_, d)| d.change)))
            .collect();
        collected(pair, parts.into_iter(), replace.here(), || {
            Kind::Block(attributes, blocks)
        })
    })
}

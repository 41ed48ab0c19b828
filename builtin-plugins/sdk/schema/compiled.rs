//! Schemas in compiled form: computed when a call first uses a type, in place of the declaration.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use cty::value::Part;
use cty::{ObjectType, Type, Value};

use super::shape::{Attribute, Block, NestedBlock, Nesting, Schema};
use crate::modifier::Modifier;
use crate::type_rules::Compared;
use crate::validate::{Group, Validator};

/// A schema prepared for many calls: its object type, and its members in the order of that type's attributes. Descriptions are left
/// out, since no call uses them.
#[derive(Debug)]
pub struct Compiled {
    /// Schema version of states.
    pub version: i64,
    /// Advice for users of the type, if it is deprecated.
    pub deprecated: Option<&'static str>,
    /// The type of the objects that the schema describes.
    pub ty: Type,
    /// The same type as `ty`, as an object type.
    pub object: Arc<ObjectType>,
    /// The members of the outermost block.
    #[doc(hidden)]
    pub members: Vec<CompiledMember>,
    /// Groups of attributes of which at least one must be set.
    pub(crate) at_least_one_of: Vec<Vec<&'static str>>,
    /// Other rules about groups of attributes.
    pub(crate) groups: Vec<Group>,
    /// True if an attribute at any depth is write-only.
    write_only: bool,
    /// True if an attribute at any depth has a type with rules.
    rules: bool,
}

/// A schema that is compiled when it is first used. A process of a large provider usually uses few of its types, and need not compile the
/// others.
#[derive(Debug, Default)]
pub(crate) struct LazySchema {
    compiled: OnceLock<Compiled>,
    plain: bool,
}

impl LazySchema {
    /// Creates a schema that is not compiled yet. Its descriptions are plain text if `plain` is set.
    pub fn new(plain: bool) -> LazySchema {
        LazySchema {
            plain,
            ..LazySchema::default()
        }
    }

    /// Returns the compiled form. `schema` must return the same schema at each call; it is called at most once.
    pub fn get(&self, schema: impl FnOnce() -> Schema) -> &Compiled {
        self.compiled.get_or_init(|| Compiled::new(schema()))
    }

    /// Returns the schema for a description of the type. Nothing of it is kept: each host asks for descriptions once, and those of a
    /// large provider fill more memory than all of its work.
    pub fn declared(&self, schema: impl FnOnce() -> Schema) -> Schema {
        match self.plain {
            true => schema().plain(),
            false => schema(),
        }
    }
}

/// A member of a provider that has a schema.
pub trait Described: Send + Sync {
    /// Returns the schema as its author declares it. Each call makes it anew.
    fn declared(&self) -> Schema;

    /// Returns the schema for calls. The first call compiles it.
    fn schema(&self) -> &Compiled;
}

/// Member of a block, with its inner members if it has any. The blocks and nested schemas of the declarations are empty: their
/// content is in the inner members.
#[derive(Debug)]
#[allow(missing_docs, reason = "hidden: for the server and the test harness")]
pub enum CompiledMember {
    Attribute(Attribute),
    /// An attribute with nested attributes.
    Nested(Attribute, Nesting, Vec<CompiledMember>),
    /// Nested blocks, with the type of the value that they form.
    Block(NestedBlock, Type, Vec<CompiledMember>),
}

impl CompiledMember {
    /// Returns the name in the configuration.
    pub fn name(&self) -> &'static str {
        match self {
            CompiledMember::Attribute(a) | CompiledMember::Nested(a, ..) => a.name,
            CompiledMember::Block(b, ..) => b.name,
        }
    }

    /// Returns the attribute; `None` for a block.
    pub fn attribute(&self) -> Option<&Attribute> {
        match self {
            CompiledMember::Attribute(a) | CompiledMember::Nested(a, ..) => Some(a),
            CompiledMember::Block(..) => None,
        }
    }

    /// Returns the modifiers of the planned value.
    pub fn modifiers(&self) -> &[Modifier] {
        match self {
            CompiledMember::Attribute(a) | CompiledMember::Nested(a, ..) => &a.modifiers,
            CompiledMember::Block(b, ..) => &b.modifiers,
        }
    }

    /// Returns the rules for the configured value.
    pub fn validators(&self) -> &[Validator] {
        match self {
            CompiledMember::Attribute(a) | CompiledMember::Nested(a, ..) => &a.validators,
            CompiledMember::Block(b, ..) => &b.validators,
        }
    }

    /// Returns the type of the member's value.
    pub fn ty(&self) -> Type {
        match self {
            CompiledMember::Attribute(a) | CompiledMember::Nested(a, ..) => a.ty.clone(),
            CompiledMember::Block(_, ty, _) => ty.clone(),
        }
    }

    /// Returns the value of this member if the configuration does not set it.
    pub fn absent(&self, ty: &Type) -> Value {
        let CompiledMember::Block(block, _, members) = self else {
            return Value::null(ty.clone());
        };
        // Null allows the plugin to set the blocks; an empty list would be a decision that there are none.
        if block.computed {
            return Value::null(ty.clone());
        }
        match (block.nesting, ty) {
            (Nesting::List, Type::List(element)) => Value::list((**element).clone(), Vec::new()),
            (Nesting::List, _) => Value::empty_tuple(),
            (Nesting::Set, Type::Set(element)) => Value::set((**element).clone(), Vec::new()),
            (Nesting::Map, Type::Map(element)) => Value::map((**element).clone(), BTreeMap::new()),
            (Nesting::Map, _) => Value::empty_object(),
            (Nesting::Group, Type::Object(object)) => {
                let inside = members.iter().zip(object.attributes()).map(|(m, a)| m.absent(&a.ty));
                Value::object_of(object, inside.collect())
            }
            _ => Value::null(ty.clone()),
        }
    }

    /// Returns true if the plugin may set these blocks.
    pub fn is_computed_block(&self) -> bool {
        matches!(self, CompiledMember::Block(block, ..) if block.computed)
    }

    /// Returns the inner members, if there are any.
    pub fn inside(&self) -> Option<(Nesting, &[CompiledMember])> {
        match self {
            CompiledMember::Attribute(_) => None,
            CompiledMember::Nested(_, nesting, members) => Some((*nesting, members)),
            CompiledMember::Block(b, _, members) => Some((b.nesting, members)),
        }
    }
}

impl Compiled {
    /// Compiles a schema for use by many calls.
    #[must_use]
    pub fn new(schema: Schema) -> Compiled {
        let ty = schema.root.ty();
        let deprecated = schema.root.deprecated;
        let members = compile(schema.root);
        Compiled {
            version: schema.version,
            deprecated,
            object: ty.as_object().cloned().unwrap_or_default(),
            ty,
            write_only: any_attribute(&members, &|a| a.write_only),
            rules: any_attribute(&members, &|a| !a.rules.is_empty()),
            at_least_one_of: schema.at_least_one_of,
            groups: schema.groups,
            members,
        }
    }

    /// Builds an object with these attributes; all other members have the value for members that the configuration does not set
    /// ([`CompiledMember::absent`]).
    #[doc(hidden)]
    pub fn object_with(&self, given: &BTreeMap<&str, Value>) -> Value {
        let values = self.members.iter().zip(self.object.attributes()).map(|(member, a)| {
            let given = given.get(&*a.name).cloned();
            given.unwrap_or_else(|| member.absent(&a.ty))
        });
        Value::object_of(&self.object, values.collect())
    }

    /// Removes the values of write-only attributes from an object, since these are never stored.
    pub(crate) fn without_write_only(&self, object: Value) -> Value {
        // Most schemas have no such attribute; the object is then returned without a copy.
        match self.write_only {
            true => without_write_only(&self.members, &object),
            false => object,
        }
    }

    /// Replaces each value by that of `before` if both mean the same. A value that a service returns in another form is then no change.
    pub(crate) fn settled(&self, before: &Value, after: Value) -> Value {
        match self.rules && before.is_present() {
            true => settled(&self.members, before, &after),
            false => after,
        }
    }

    /// Converts an object to a configuration. Attributes that a configuration cannot set, and write-only ones, become null.
    pub(crate) fn settable_only(&self, object: Value) -> Value {
        settable_only(&self.members, &object)
    }
}

fn settable_only(members: &[CompiledMember], object: &Value) -> Value {
    object.map_parts(|part, value| {
        let member = match part {
            Part::Attribute(name) => members.iter().find(|m| m.name() == &**name),
            _ => None,
        };
        let settable = |a: &Attribute| (a.required || a.optional) && !a.write_only;
        match member.map(|m| (m, m.inside())) {
            // Write-only attributes are omitted as well: the state does not have their values.
            Some((m, _)) if m.attribute().is_some_and(|a| !settable(a)) => Value::null(value.ty().clone()),
            Some((_, Some((Nesting::Single | Nesting::Group, members)))) => settable_only(members, value),
            Some((_, Some((_, members)))) => value.map_parts(|_, item| settable_only(members, item)),
            _ => value.clone(),
        }
    })
}

fn compile(block: Block) -> Vec<CompiledMember> {
    let attributes = block.attributes.into_iter().map(|mut attribute| {
        attribute.description = String::new();
        match attribute.nested.take() {
            None => CompiledMember::Attribute(attribute),
            Some(nested) => CompiledMember::Nested(attribute, nested.nesting, compile(nested.block)),
        }
    });
    let blocks = block.blocks.into_iter().map(|mut nested| {
        let ty = nested.ty();
        let inside = compile(std::mem::take(&mut nested.block));
        CompiledMember::Block(nested, ty, inside)
    });
    let mut members: Vec<CompiledMember> = attributes.chain(blocks).collect();
    // The order of an object type's attributes.
    members.sort_by_key(CompiledMember::name);
    members
}

fn any_attribute(members: &[CompiledMember], holds: &dyn Fn(&Attribute) -> bool) -> bool {
    members.iter().any(|member| {
        member.attribute().is_some_and(holds)
            || member
                .inside()
                .is_some_and(|(_, members)| any_attribute(members, holds))
    })
}

fn without_write_only(members: &[CompiledMember], object: &Value) -> Value {
    object.map_parts(|part, value| {
        let member = match part {
            Part::Attribute(name) => members.iter().find(|m| m.name() == &**name),
            _ => None,
        };
        match member.map(|m| (m, m.inside())) {
            Some((m, _)) if m.attribute().is_some_and(|a| a.write_only) => Value::null(value.ty().clone()),
            Some((_, Some((Nesting::Single | Nesting::Group, members)))) => without_write_only(members, value),
            Some((_, Some((_, members)))) => value.map_parts(|_, item| without_write_only(members, item)),
            _ => value.clone(),
        }
    })
}

fn settled(members: &[CompiledMember], before: &Value, after: &Value) -> Value {
    if after.ty().as_object().is_none() || before == after {
        return after.clone();
    }
    after.map_parts(|part, value| {
        let Part::Attribute(name) = part else {
            return value.clone();
        };
        let member = members.iter().find(|m| m.name() == &**name);
        let (Some(member), Some(before)) = (member, before.get(name)) else {
            return value.clone();
        };
        match member.inside() {
            None => {
                (member.attribute()).map_or_else(|| value.clone(), |a| a.rules.settled(Compared::Result, before, value))
            }
            Some((nesting, inner)) => settled_blocks(nesting, inner, before, value),
        }
    })
}

fn settled_blocks(nesting: Nesting, members: &[CompiledMember], before: &Value, after: &Value) -> Value {
    if matches!(nesting, Nesting::Single | Nesting::Group) {
        return match before.is_present() {
            true => settled(members, before, after),
            false => after.clone(),
        };
    }
    let of_before = before.as_seq().unwrap_or_default();
    after.map_parts(|part, item| {
        let found = match part {
            Part::Attribute(key) | Part::Key(key) => before.get(key),
            Part::Index(i) => of_before.get(i),
            // Elements of a set have no key, so an element is paired with one that means the same.
            Part::SetElement => of_before.iter().find(|b| settled(members, b, item) == **b),
        };
        match found {
            Some(found) if found.is_present() => settled(members, found, item),
            _ => item.clone(),
        }
    })
}

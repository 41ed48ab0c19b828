//! Decoding of block bodies to objects, under a schema.
//!
//! [`decode_body`] evaluates attributes, collects nested blocks (`expand` multiplies the dynamic ones) and reports
//! everything that the schema does not allow. [`path_range`] is the reverse: the source range of a part of the object.

mod expand;
mod ranges;

use std::collections::BTreeMap;
use std::sync::Arc;

use cty::types::{ObjectAttribute, ObjectType};
use cty::{Type, Value};
use syntax::ast::{Attribute, Block, Body, Expr};
use syntax::content;
use syntax::{Diagnostic, Diagnostics};

use crate::eval::{Context, evaluate, with_expression};
use crate::refs::references_except;
pub use crate::resolve::resolve;
use expand::Expanded;
pub use ranges::{expression_range, path_range};
use schema::{AttributeSchema, AttributeType, BlockSchema, NestedBlock, NestedObject, Nesting};

/// Decodes a body to an object of its schema: attributes evaluated and converted, nested blocks collected, `dynamic`
/// blocks expanded. The caller has taken out meta-arguments, so that the body has only content of the schema. Invalid
/// parts are unknown; the value always has the schema's implied type.
#[must_use]
pub fn decode_body(body: &Body, schema: &BlockSchema, context: Context<'_>) -> (Value, Diagnostics) {
    decode_body_of(body, schema, Own::default(), context)
}

/// Meta-arguments and nested blocks that the language defines for a block. The body no longer contains them; errors
/// about misspelt names suggest them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Own {
    pub attributes: &'static [&'static str],
    pub blocks: &'static [&'static str],
}

/// Decodes a body as [`decode_body`] does, for a block with these meta-arguments and nested blocks.
#[must_use]
pub fn decode_body_of(body: &Body, schema: &BlockSchema, own: Own, context: Context<'_>) -> (Value, Diagnostics) {
    let mut decoder = Decoder {
        diagnostics: Diagnostics::new(),
        own,
        depth: 0,
        iterators: Vec::new(),
        unevaluated: false,
    };
    let value = decoder.body(body, schema, &context);
    (value, decoder.diagnostics)
}

struct Decoder {
    diagnostics: Diagnostics,
    own: Own,
    /// Number of blocks around the current body.
    depth: usize,
    /// Iterator variables of the enclosing dynamic blocks.
    iterators: Vec<Arc<str>>,
    /// True in the content of a dynamic block whose number of blocks is unknown. As in HCL, only the names in its
    /// expressions are checked, and nothing is evaluated: the expressions may be invalid, which does not matter if no
    /// block is generated.
    unevaluated: bool,
}

impl Decoder {
    fn body(&mut self, body: &Body, schema: &BlockSchema, context: &Context<'_>) -> Value {
        self.depth += 1;
        let value = self.body_inside(body, schema, context);
        self.depth -= 1;
        value
    }

    fn body_inside(&mut self, body: &Body, schema: &BlockSchema, context: &Context<'_>) -> Value {
        let body = &*resolve(body, schema, &mut self.diagnostics);
        self.check_names(body, schema);
        let ty = schema.implied_object();
        let mut blocks = self.expand(body, schema, context);
        let values = ty
            // The attributes are in the order of the object type, as its values are.
            .attributes()
            .iter()
            .map(|part| {
                // Names of blocks and attributes are distinct in a schema, so each entry is used once.
                let own = blocks.remove(&part.name).unwrap_or_default();
                if let Some(nested) = schema.blocks.get(&part.name) {
                    return self.blocks(&part.name, nested, own, body, context);
                }
                match schema.attributes.get(&part.name) {
                    Some(attribute) => self.attribute(&part.name, attribute, own, body, context),
                    None => Value::unknown(part.ty.clone()),
                }
            })
            .collect();
        Value::object_of(&ty, values)
    }

    fn check_names(&mut self, body: &Body, schema: &BlockSchema) {
        for attribute in &body.attributes {
            let name = &*attribute.name;
            if schema.attributes.contains_key(name) {
                continue;
            }
            // In the JSON syntax, arguments and blocks look alike, so one message serves for both.
            if matches!(attribute.expr, Expr::Json(_)) {
                let expected = schema.attributes.keys().chain(schema.blocks.keys()).map(|k| &**k);
                self.diagnostics.push(syntax::json::extraneous(attribute, expected));
                continue;
            }
            let own = self.own_here();
            if schema.blocks.contains_key(name) || own.blocks.contains(&name) {
                self.diagnostics.push(content::block_as_argument(attribute));
                continue;
            }
            let names = schema.attributes.keys().map(|k| &**k);
            let near = content::near(name, names.chain(own.attributes.iter().copied()));
            self.diagnostics
                .push(content::unsupported_argument(attribute, near.as_ref()));
        }
    }

    /// Returns the meta-arguments of the current body. Only the outermost one has any.
    fn own_here(&self) -> Own {
        if self.depth == 1 { self.own } else { Own::default() }
    }

    /// Reports a block that the schema does not have; `block` is `None` for the type of a dynamic block.
    fn unsupported_block(&mut self, ty: &str, range: &syntax::Range, block: Option<&Block>, schema: &BlockSchema) {
        let own = self.own_here();
        if schema.attributes.contains_key(ty) || own.attributes.contains(&ty) {
            let open = block.map_or(range, |block| &block.open);
            let is_bare = block.is_some_and(|block| block.labels.is_empty());
            self.diagnostics
                .push(content::argument_as_block(ty, range, open, is_bare));
            return;
        }
        let names = schema.blocks.keys().map(|k| &**k);
        let near = content::near(ty, names.chain(own.blocks.iter().copied()));
        self.diagnostics
            .push(content::unsupported_block(ty, range, near.as_ref()));
    }

    fn attribute(
        &mut self,
        name: &str,
        schema: &AttributeSchema,
        blocks: Vec<Expanded<'_>>,
        body: &Body,
        context: &Context<'_>,
    ) -> Value {
        let ty = schema.implied_type();
        let Some(attribute) = body.attribute(name) else {
            // Providers that use Terraform's old SDK have attributes that users write as blocks.
            if !blocks.is_empty() {
                return self.attribute_of_blocks(&ty, blocks, context);
            }
            if schema.required {
                self.diagnostics.push(
                    Diagnostic::error(
                        "Missing required argument",
                        format!("This block must set the argument \"{name}\", and it does not."),
                    )
                    .at(&body.end),
                );
                return Value::unknown(ty);
            }
            return Value::null(ty);
        };
        if let Some(block) = blocks.first() {
            self.diagnostics.push(
                Diagnostic::error(
                    "Unsupported block type",
                    format!(
                        "Blocks of type \"{name}\" are not expected here, because the argument \"{name}\" is set, too."
                    ),
                )
                .at(block.range),
            );
        }
        self.attribute_value(attribute, &constraint(schema), &ty, context)
    }

    fn attribute_value(&mut self, attribute: &Attribute, constraint: &Type, ty: &Type, context: &Context<'_>) -> Value {
        if self.unevaluated || !self.refers_to_what_is_there(&attribute.expr, context) {
            return Value::unknown(ty.clone());
        }
        let (value, problems) = evaluate(&attribute.expr, *context);
        let failed = problems.has_errors();
        self.diagnostics.extend(problems);
        if failed {
            return Value::unknown(ty.clone());
        }
        match cty::convert(&value, constraint) {
            Ok(value) => value,
            Err(error) => {
                let name = &attribute.name;
                let problem = Diagnostic::error(
                    "Incorrect attribute value type",
                    format!("Inappropriate value for attribute \"{name}\": {}.", error.message),
                );
                let problem = problem.at(attribute.expr.range()).within(&attribute.range);
                self.diagnostics
                    .push(with_expression(problem, &attribute.expr, *context));
                Value::unknown(ty.clone())
            }
        }
    }

    /// Reports references to undeclared objects in the content of a dynamic block. Returns true if there are none.
    /// Elsewhere, references have been checked already.
    fn refers_to_what_is_there(&mut self, expr: &Expr, context: &Context<'_>) -> bool {
        if self.iterators.is_empty() {
            return true;
        }
        // Evaluation reports traversals that are not references.
        let (references, _) = references_except(expr, &self.iterators);
        let problems = references.iter().filter_map(|r| context.scope().check(r).err());
        let before = self.diagnostics.len();
        self.diagnostics.extend(problems);
        self.diagnostics.len() == before
    }

    /// Builds the value of an attribute that is written as blocks, one for each element.
    fn attribute_of_blocks(&mut self, ty: &Type, blocks: Vec<Expanded<'_>>, context: &Context<'_>) -> Value {
        let Some(Type::Object(object)) = ty.element() else {
            return Value::unknown(ty.clone());
        };
        let schema = schema_of_object(object);
        let nesting = if matches!(ty, Type::Set(_)) {
            Nesting::Set
        } else {
            Nesting::List
        };
        self.collect(nesting, &schema, &blocks, context)
            .unwrap_or_else(|| Value::unknown(ty.clone()))
    }

    fn blocks(
        &mut self,
        ty: &str,
        schema: &NestedBlock,
        blocks: Vec<Expanded<'_>>,
        body: &Body,
        context: &Context<'_>,
    ) -> Value {
        let implied = schema.implied_type();
        let unknown = blocks.iter().any(|b| b.unknown);
        match schema.nesting {
            Nesting::Single | Nesting::Group => {
                if let [first, second, ..] = blocks.as_slice()
                    && !unknown
                {
                    let detail = format!(
                        "There can be one \"{ty}\" block here, and one stands at {}. Remove one of the two.",
                        first.range
                    );
                    self.diagnostics
                        .push(Diagnostic::error(format!("Duplicate {ty} block"), detail).at(second.range));
                }
                match blocks.first() {
                    // The blocks are still decoded, so that errors in their content are reported.
                    _ if unknown => {
                        self.collect(Nesting::List, &schema.block, &blocks, context);
                        Value::unknown(implied)
                    }
                    Some(block) => self.one(block, &schema.block, context),
                    None if schema.min_items > 0 => {
                        self.diagnostics.push(
                            Diagnostic::error(
                                format!("Missing {ty} block"),
                                format!("A block of type \"{ty}\" is required here."),
                            )
                            .at(&body.end),
                        );
                        Value::unknown(implied)
                    }
                    None if schema.nesting == Nesting::Single => Value::null(implied),
                    // A block with the nesting mode "group" always has an object: with default values if it is not
                    // written.
                    None => schema.block.empty_object(),
                }
            }
            nesting => {
                let count = blocks.len() as u64;
                if !unknown && count < schema.min_items {
                    self.diagnostics.push(
                        Diagnostic::error(
                            format!("Insufficient {ty} blocks"),
                            format!("At least {} \"{ty}\" blocks are required.", schema.min_items),
                        )
                        .at(&body.end),
                    );
                }
                if !unknown && schema.max_items > 0 && count > schema.max_items {
                    let extra = usize::try_from(schema.max_items).unwrap_or(usize::MAX);
                    // As in HCL, this is the position at which a missing argument of the extra block would be
                    // reported.
                    let at = blocks.get(extra).map_or(&body.end, |b| &b.body.end);
                    self.diagnostics.push(
                        Diagnostic::error(
                            format!("Too many {ty} blocks"),
                            format!("No more than {} \"{ty}\" blocks are allowed", schema.max_items),
                        )
                        .at(at),
                    );
                }
                self.collect(nesting, &schema.block, &blocks, context)
                    .unwrap_or(Value::unknown(implied))
            }
        }
    }

    fn one(&mut self, block: &Expanded<'_>, schema: &BlockSchema, context: &Context<'_>) -> Value {
        let outside = (self.iterators.len(), self.unevaluated);
        self.iterators.extend(block.iterators().cloned());
        self.unevaluated |= block.unknown;
        let value = block.in_context(context, |inner| self.body(block.body, schema, inner));
        self.iterators.truncate(outside.0);
        self.unevaluated = outside.1;
        value.with_marks(block.marks)
    }

    /// Collects blocks in a collection. `None` if their number is unknown or, for a set, if they have no common type.
    fn collect(
        &mut self,
        nesting: Nesting,
        schema: &BlockSchema,
        blocks: &[Expanded<'_>],
        context: &Context<'_>,
    ) -> Option<Value> {
        let mut named: BTreeMap<Arc<str>, Value> = BTreeMap::new();
        let mut items = Vec::with_capacity(blocks.len());
        let mut known = true;
        for block in blocks {
            let value = self.one(block, schema, context);
            known &= !block.unknown;
            if nesting == Nesting::Map {
                let Some(key) = &block.key else { continue };
                if named.insert(key.clone(), value).is_some() {
                    self.diagnostics.push(
                        Diagnostic::error(
                            format!("Duplicate {} block", block.ty),
                            format!(
                                "A block of type \"{}\" with the label \"{key}\" is there already.",
                                block.ty
                            ),
                        )
                        .at(block.range),
                    );
                }
            } else {
                items.push(value);
            }
        }
        if !known {
            return None;
        }
        // Elements with dynamic parts can have different types, which only tuples and objects allow.
        let element = schema.implied_type();
        let dynamic = element.has_dynamic();
        Some(match nesting {
            Nesting::Map if dynamic => Value::object(named),
            Nesting::Map => Value::map(element, named),
            Nesting::Set if dynamic => {
                let (element, items) = cty::convert::unify_values(&items).ok()??;
                Value::set(element, items)
            }
            Nesting::Set => Value::set(element, items),
            _ if dynamic => Value::tuple(items),
            _ => Value::list(element, items),
        })
    }
}

/// Returns true if an attribute may also be written as repeated blocks: lists and sets of objects.
fn takes_blocks(schema: &AttributeSchema) -> bool {
    matches!(&schema.ty, AttributeType::Plain(Type::List(e) | Type::Set(e)) if matches!(**e, Type::Object(_)))
}

/// Returns the schema of the blocks that an attribute may also be written as; `None` if it has no such form.
pub fn written_as_blocks(schema: &AttributeSchema) -> Option<BlockSchema> {
    let element = match &schema.ty {
        AttributeType::Plain(ty) if takes_blocks(schema) => ty.element(),
        _ => None,
    };
    match element {
        Some(Type::Object(object)) => Some(schema_of_object(object)),
        _ => None,
    }
}

/// Builds the schema of blocks from an object type, with all attributes optional.
fn schema_of_object(object: &ObjectType) -> BlockSchema {
    let attributes = object.attributes().iter().map(|a| {
        let schema = AttributeSchema {
            ty: AttributeType::Plain(a.ty.clone()),
            optional: true,
            ..AttributeSchema::default()
        };
        (a.name.clone(), schema)
    });
    BlockSchema {
        attributes: attributes.collect(),
        ..BlockSchema::default()
    }
}

/// Returns the type that an attribute's value is converted to: attributes of nested objects that are not required are
/// optional.
fn constraint(schema: &AttributeSchema) -> Type {
    match &schema.ty {
        AttributeType::Plain(ty) => ty.without_optional(),
        AttributeType::Nested(nested) => nested_constraint(nested),
    }
}

fn nested_constraint(nested: &NestedObject) -> Type {
    let object = Type::Object(Arc::new(ObjectType::new(nested.attributes.iter().map(|(name, a)| {
        ObjectAttribute {
            name: name.clone(),
            ty: constraint(a),
            optional: !a.required,
        }
    }))));
    match nested.nesting {
        Nesting::Single | Nesting::Group => object,
        Nesting::List => Type::list(object),
        Nesting::Set => Type::set(object),
        Nesting::Map => Type::map(object),
    }
}

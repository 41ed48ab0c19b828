//! Encoding of values as JSON: one walk over a value for all forms of output.

use crate::codec::CodecError;
use crate::{Kind, Step, Type, Value};

/// Receiver of a value, part by part: builds a document, or text.
pub(super) trait Sink {
    fn null(&mut self);
    fn bool(&mut self, value: bool);
    /// Writes a number. Returns false if it cannot be written.
    fn number(&mut self, digits: &str) -> bool;
    fn string(&mut self, text: &str);
    /// Writes the JSON form of a type.
    fn ty(&mut self, ty: &Type);
    fn begin(&mut self, brackets: Brackets, count: usize);
    /// Writes the name of an object's next member.
    fn name(&mut self, name: &str);
    fn end(&mut self, brackets: Brackets);
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Brackets {
    Array,
    Object,
}

/// Writes a known value of this type. A value of type `any` is accompanied by its own type.
pub(super) fn write<S: Sink>(value: &Value, ty: &Type, out: &mut S) -> Result<(), CodecError> {
    if !value.is_known() {
        return Err(CodecError::new("value is not known"));
    }
    if *ty == Type::Dynamic && *value.ty() != Type::Dynamic {
        // Without its type, the value could not be read back.
        out.begin(Brackets::Object, 2);
        out.name("value");
        write(value, value.ty(), out)?;
        out.name("type");
        out.ty(value.ty());
        out.end(Brackets::Object);
        return Ok(());
    }
    match (value.kind(), ty) {
        (Kind::Null, _) => out.null(),
        (Kind::Bool(b), Type::Bool) => out.bool(*b),
        (Kind::String(s), Type::String) => out.string(s),
        (Kind::Number(n), Type::Number) => {
            if n.is_infinite() {
                return Err(CodecError::new("cannot serialize infinity as JSON"));
            }
            if !out.number(&n.to_string()) {
                return Err(CodecError::new("cannot serialize the number as JSON"));
            }
        }
        (Kind::Seq(items), Type::List(element) | Type::Set(element)) => {
            let set = matches!(ty, Type::Set(_));
            out.begin(Brackets::Array, items.len());
            for (i, item) in items.iter().enumerate() {
                // An element of a set has no index: its path names it by the element itself.
                let step = || Step::Index(if set { item.clone() } else { Value::number(i) });
                write(item, element, out).map_err(|e| e.under(step()))?;
            }
            out.end(Brackets::Array);
        }
        (Kind::Seq(items), Type::Tuple(types)) if items.len() == types.len() => {
            out.begin(Brackets::Array, items.len());
            for (i, (item, ty)) in items.iter().zip(types.iter()).enumerate() {
                write(item, ty, out).map_err(|e| e.under(Step::Index(Value::number(i))))?;
            }
            out.end(Brackets::Array);
        }
        (Kind::Map(items), Type::Map(element)) => {
            out.begin(Brackets::Object, items.len());
            for (key, item) in items.iter() {
                out.name(key);
                write(item, element, out).map_err(|e| e.under(Step::Index(Value::shared_string(key.clone()))))?;
            }
            out.end(Brackets::Object);
        }
        (Kind::Seq(items), Type::Object(o)) if items.len() == o.len() => {
            out.begin(Brackets::Object, items.len());
            for (attribute, item) in o.attributes().iter().zip(items.iter()) {
                out.name(&attribute.name);
                write(item, &attribute.ty, out).map_err(|e| e.under(Step::Attribute(attribute.name.clone())))?;
            }
            out.end(Brackets::Object);
        }
        _ => return Err(CodecError::new(format!("{} required", ty.friendly_name()))),
    }
    Ok(())
}

//! Decoding of msgpack to values.

use std::sync::Arc;

use super::{MAX_REFINEMENT_BYTES, REFINED, refinement};
use crate::codec::{CodecError, MAX_DEPTH, map_of, uniform};
use crate::{Number, ObjectType, Refinements, Step, Type, Value, json};

/// Decodes a value of this type. Bytes after the value are an error.
pub fn decode(bytes: &[u8], ty: &Type) -> Result<Value, CodecError> {
    let mut reader = Reader { bytes };
    let value = read(&mut reader, ty, 0)?;
    if !reader.bytes.is_empty() {
        return Err(CodecError::new("unexpected bytes after the value"));
    }
    Ok(value)
}

/// The unread bytes.
struct Reader<'b> {
    bytes: &'b [u8],
}

impl<'b> Reader<'b> {
    fn peek(&self) -> Result<u8, CodecError> {
        self.bytes
            .first()
            .copied()
            .ok_or_else(|| CodecError::new("unexpected end of data"))
    }

    fn take(&mut self, count: usize) -> Result<&'b [u8], CodecError> {
        let (taken, rest) = self
            .bytes
            .split_at_checked(count)
            .ok_or_else(|| CodecError::new("unexpected end of data"))?;
        self.bytes = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, CodecError> {
        Ok(self.take(1)?[0])
    }

    /// Reads an unsigned big-endian number of up to eight bytes.
    fn unsigned(&mut self, count: usize) -> Result<u64, CodecError> {
        Ok(self.take(count)?.iter().fold(0, |n, b| n << 8 | u64::from(*b)))
    }

    fn length(&mut self, count: usize) -> Result<usize, CodecError> {
        // At most four bytes, which fit a `usize` on every platform.
        Ok(usize::try_from(self.unsigned(count)?).unwrap_or(usize::MAX))
    }

    /// Reads text or bytes; `None` if something else is next.
    fn text(&mut self) -> Result<Option<&'b [u8]>, CodecError> {
        let length = match self.byte()? {
            code @ 0xa0..=0xbf => usize::from(code & 0x1f),
            0xc4 | 0xd9 => self.length(1)?,
            0xc5 | 0xda => self.length(2)?,
            0xc6 | 0xdb => self.length(4)?,
            _ => return Ok(None),
        };
        self.take(length).map(Some)
    }

    fn str(&mut self) -> Result<Option<&'b str>, CodecError> {
        match self.text()? {
            Some(bytes) => match std::str::from_utf8(bytes) {
                Ok(s) => Ok(Some(s)),
                Err(_) => Err(CodecError::new("text is not valid UTF-8")),
            },
            None => Ok(None),
        }
    }

    fn array_length(&mut self) -> Result<Option<usize>, CodecError> {
        Ok(Some(match self.byte()? {
            code @ 0x90..=0x9f => usize::from(code & 0x0f),
            0xdc => self.length(2)?,
            0xdd => self.length(4)?,
            _ => return Ok(None),
        }))
    }

    fn map_length(&mut self) -> Result<Option<usize>, CodecError> {
        Ok(Some(match self.byte()? {
            code @ 0x80..=0x8f => usize::from(code & 0x0f),
            0xde => self.length(2)?,
            0xdf => self.length(4)?,
            _ => return Ok(None),
        }))
    }

    /// Reads a number in any form but text; `None` if something else is next.
    fn number(&mut self) -> Result<Option<Number>, CodecError> {
        let code = self.byte()?;
        Ok(match code {
            0x00..=0x7f => Some(Number::from(i64::from(code))),
            0xe0..=0xff => Some(Number::from(i64::from(code as i8))),
            0xcc => Some(Number::from(self.unsigned(1)?)),
            0xcd => Some(Number::from(self.unsigned(2)?)),
            0xce => Some(Number::from(self.unsigned(4)?)),
            0xcf => Some(Number::from(self.unsigned(8)?)),
            0xd0 => Some(Number::from(i64::from(self.unsigned(1)? as u8 as i8))),
            0xd1 => Some(Number::from(i64::from(self.unsigned(2)? as u16 as i16))),
            0xd2 => Some(Number::from(i64::from(self.unsigned(4)? as u32 as i32))),
            0xd3 => Some(Number::from(self.unsigned(8)? as i64)),
            0xca => Number::from_f64(f64::from(f32::from_bits(self.unsigned(4)? as u32))),
            0xcb => Number::from_f64(f64::from_bits(self.unsigned(8)?)),
            _ => None,
        })
    }

    /// Skips the next value.
    fn skip(&mut self, depth: usize) -> Result<(), CodecError> {
        // Skipped values are read recursively, too, so deep nesting could exhaust the stack.
        check_depth(depth)?;
        let code = self.peek()?;
        let parts = match code {
            0x00..=0x7f | 0xe0..=0xff | 0xc0 | 0xc2 | 0xc3 => return self.take(1).map(drop),
            0xcc | 0xd0 => return self.take(2).map(drop),
            0xcd | 0xd1 => return self.take(3).map(drop),
            0xce | 0xd2 | 0xca => return self.take(5).map(drop),
            0xcf | 0xd3 | 0xcb => return self.take(9).map(drop),
            0xa0..=0xbf | 0xc4..=0xc6 | 0xd9..=0xdb => return self.text().map(drop),
            0xc7..=0xc9 | 0xd4..=0xd8 => return self.extension().map(drop),
            0x80..=0x8f | 0xde | 0xdf => self.map_length()?.unwrap_or(0).saturating_mul(2),
            _ => self.array_length()?.unwrap_or(0),
        };
        for _ in 0..parts {
            self.skip(depth + 1)?;
        }
        Ok(())
    }

    /// Reads the code and the content of an extension, which must be next.
    fn extension(&mut self) -> Result<(u8, &'b [u8]), CodecError> {
        let length = match self.byte()? {
            code @ 0xd4..=0xd8 => 1 << (code - 0xd4),
            0xc7 => self.length(1)?,
            0xc8 => self.length(2)?,
            0xc9 => self.length(4)?,
            _ => return Err(CodecError::new("an extension is required")),
        };
        let code = self.byte()?;
        Ok((code, self.take(length)?))
    }
}

fn check_depth(depth: usize) -> Result<(), CodecError> {
    if depth > MAX_DEPTH {
        Err(CodecError::new("the value is nested too deeply"))
    } else {
        Ok(())
    }
}

fn read(from: &mut Reader<'_>, ty: &Type, depth: usize) -> Result<Value, CodecError> {
    check_depth(depth)?;
    // Extensions encode unknown values.
    match from.peek()? {
        0xc7..=0xc9 | 0xd4..=0xd8 => return read_unknown(from, ty),
        0xc0 => {
            from.byte()?;
            return Ok(Value::null(ty.clone()));
        }
        _ => {}
    }
    match ty {
        Type::Dynamic => read_dynamic(from, depth),
        Type::Bool => match from.byte()? {
            0xc2 => Ok(Value::bool(false)),
            0xc3 => Ok(Value::bool(true)),
            _ => Err(CodecError::new("bool is required")),
        },
        Type::Number => read_number(from)?
            .map(Value::number)
            .ok_or_else(|| CodecError::new("number is required")),
        Type::String => match from.str()? {
            Some(s) => Ok(Value::string(s)),
            None => Err(CodecError::new("string is required")),
        },
        Type::List(element) | Type::Set(element) => read_sequence(from, ty, element, depth),
        Type::Map(element) => read_map(from, element, depth),
        Type::Tuple(types) => read_tuple(from, types, depth),
        Type::Object(o) => read_object(from, o, depth),
    }
}

/// Reads a list or a set.
fn read_sequence(from: &mut Reader<'_>, ty: &Type, element: &Type, depth: usize) -> Result<Value, CodecError> {
    let set = matches!(ty, Type::Set(_));
    let Some(length) = from.array_length()? else {
        return Err(CodecError::new(if set {
            "a set is required"
        } else {
            "a list is required"
        }));
    };
    let mut items = Vec::with_capacity(plausible(length, from));
    for i in 0..length {
        let item = read(from, element, depth + 1).map_err(|e| e.under(Step::Index(Value::number(i))))?;
        items.push(item);
    }
    let (element, items) = uniform(element, items)?;
    Ok(if set {
        Value::set(element, items)
    } else {
        Value::list(element, items)
    })
}

fn read_map(from: &mut Reader<'_>, element: &Type, depth: usize) -> Result<Value, CodecError> {
    let Some(length) = from.map_length()? else {
        return Err(CodecError::new("a map is required"));
    };
    let mut items = Vec::with_capacity(plausible(length, from));
    for _ in 0..length {
        let Some(key) = from.str()? else {
            return Err(CodecError::new("all keys must be strings"));
        };
        // Keys are normalized, as strings are.
        let key = Value::string(key);
        let item = read(from, element, depth + 1).map_err(|e| e.under(Step::Index(key.clone())))?;
        if let Some(key) = key.as_arc_str() {
            items.push((key.clone(), item));
        }
    }
    map_of(element, items)
}

fn read_tuple(from: &mut Reader<'_>, types: &[Type], depth: usize) -> Result<Value, CodecError> {
    let Some(length) = from.array_length()? else {
        return Err(CodecError::new("a tuple is required"));
    };
    if length != types.len() {
        return Err(CodecError::new(format!(
            "a tuple of length {} is required",
            types.len()
        )));
    }
    let mut items = Vec::with_capacity(length);
    for (i, ty) in types.iter().enumerate() {
        items.push(read(from, ty, depth + 1).map_err(|e| e.under(Step::Index(Value::number(i))))?);
    }
    Ok(Value::tuple(items))
}

/// Returns the number of elements to allocate at once: the claimed length may be far more than the data contains.
fn plausible(length: usize, from: &Reader<'_>) -> usize {
    length.min(from.bytes.len()).min(4096)
}

fn read_object(from: &mut Reader<'_>, ty: &Arc<ObjectType>, depth: usize) -> Result<Value, CodecError> {
    let Some(length) = from.map_length()? else {
        return Err(CodecError::new("an object is required"));
    };
    if length != ty.len() {
        let message = format!("an object with {} attributes is required ({length} given)", ty.len());
        return Err(CodecError::new(message));
    }
    let mut items = Vec::with_capacity(length);
    // Encoders write attributes in order of their names, so each is usually at its position.
    for (i, attribute) in ty.attributes().iter().enumerate() {
        let before = from.bytes;
        match from.text()? {
            Some(name) if name == attribute.name.as_bytes() => {
                let step = |e: CodecError| e.under(Step::Attribute(attribute.name.clone()));
                items.push(read(from, &attribute.ty, depth + 1).map_err(step)?);
            }
            _ => {
                // The reader goes back to the name, which `read_unordered` reads again.
                from.bytes = before;
                return read_unordered(from, ty, items, i, depth);
            }
        }
    }
    Ok(Value::object_of(ty, items))
}

/// Reads the rest of an object whose attributes are in another order.
fn read_unordered(
    from: &mut Reader<'_>,
    ty: &Arc<ObjectType>,
    read_already: Vec<Value>,
    next: usize,
    depth: usize,
) -> Result<Value, CodecError> {
    let mut slots: Vec<Option<Value>> = read_already.into_iter().map(Some).collect();
    slots.resize_with(ty.len(), || None);
    for _ in next..ty.len() {
        let Some(name) = from.str()? else {
            return Err(CodecError::new("all keys must be strings"));
        };
        let Some(at) = ty.index_of(name) else {
            return Err(CodecError::new("unsupported attribute").under(Step::Attribute(name.into())));
        };
        let step = |e: CodecError| e.under(Step::Attribute(name.into()));
        slots[at] = Some(read(from, &ty.attributes()[at].ty, depth + 1).map_err(step)?);
    }
    let items: Option<Vec<Value>> = slots.into_iter().collect();
    match items {
        Some(items) => Ok(Value::object_of(ty, items)),
        // There were as many known names as attributes. So if one attribute is missing, another one occurs twice.
        None => Err(CodecError::new("an attribute has two values")),
    }
}

fn read_number(from: &mut Reader<'_>) -> Result<Option<Number>, CodecError> {
    match from.peek()? {
        0xa0..=0xbf | 0xc4..=0xc6 | 0xd9..=0xdb => Ok(from.str()?.and_then(Number::parse)),
        _ => from.number(),
    }
}

fn read_dynamic(from: &mut Reader<'_>, depth: usize) -> Result<Value, CodecError> {
    if from.array_length()? != Some(2) {
        return Err(CodecError::new(
            "a value of any type must be an array of its type and itself",
        ));
    }
    let Some(text) = from.text()? else {
        return Err(CodecError::new("the type of a value is not valid: text is required"));
    };
    let ty =
        json::type_from_text(text).map_err(|e| CodecError::new(format!("the type of a value is not valid: {e}")))?;
    let ty = ty.without_optional();
    // Optional attributes belong to type constraints; the type of a value has none.
    read(from, &ty, depth + 1)
}

fn read_unknown(from: &mut Reader<'_>, ty: &Type) -> Result<Value, CodecError> {
    let (code, body) = from.extension()?;
    // An extension of one byte is the original form of an unknown value: it has no refinements, whatever its
    // code is.
    if body.len() <= 1 {
        return Ok(Value::unknown(ty.clone()));
    }
    if code != REFINED {
        let message = format!("unsupported extension type {code:#04x} of length {}", body.len());
        return Err(CodecError::new(message));
    }
    // This is the limit of Terraform's decoder.
    if body.len() > MAX_REFINEMENT_BYTES {
        return Err(CodecError::new("oversize description of an unknown value"));
    }
    let mut from = Reader { bytes: body };
    let Some(count) = from.map_length()? else {
        return Err(bad_description("not a map"));
    };
    let mut known = Refinements::default();
    let mut null = false;
    for _ in 0..count {
        let Some(key) = from.number()?.and_then(|n| n.to_i64()) else {
            return Err(bad_description("a key is not an integer"));
        };
        // A value of unknown type has no refinements, so they are skipped.
        if *ty == Type::Dynamic {
            from.skip(0)?;
            continue;
        }
        null |= read_refinement(&mut from, key, ty, &mut known)?;
    }
    Ok(if null {
        Value::null(ty.clone())
    } else {
        Value::unknown_refined(ty.clone(), known)
    })
}

fn bad_description(why: &str) -> CodecError {
    CodecError::new(format!("the description of an unknown value is not valid: {why}"))
}

/// Reads a refinement; returns true if it says that the value is null.
fn read_refinement(from: &mut Reader<'_>, key: i64, ty: &Type, known: &mut Refinements) -> Result<bool, CodecError> {
    match key {
        refinement::NULLNESS => match from.byte()? {
            0xc2 => known.not_null = true,
            0xc3 => return Ok(true),
            _ => return Err(bad_description("whether it is null is not a bool")),
        },
        refinement::PREFIX => {
            if *ty != Type::String {
                return Err(bad_description("a prefix of what is no string"));
            }
            let Some(prefix) = from.str()? else {
                return Err(bad_description("a prefix is not a string"));
            };
            known.prefix = Some(prefix.into());
        }
        refinement::NUMBER_MIN | refinement::NUMBER_MAX => {
            if *ty != Type::Number {
                return Err(bad_description("a bound of what is no number"));
            }
            if from.array_length()? != Some(2) {
                return Err(bad_description("a bound is not a number and a bool"));
            }
            let number = read_number(from)?;
            let inclusive = match from.byte()? {
                0xc2 => Some(false),
                0xc3 => Some(true),
                _ => None,
            };
            let Some(bound) = number.zip(inclusive) else {
                return Err(bad_description("a bound is not a number and a bool"));
            };
            if key == refinement::NUMBER_MIN {
                known.number_min = Some(bound);
            } else {
                known.number_max = Some(bound);
            }
        }
        refinement::LENGTH_MIN | refinement::LENGTH_MAX => {
            if !ty.is_collection() {
                return Err(bad_description("a length of what is no collection"));
            }
            let Some(length) = from.number()?.and_then(|n| n.to_usize()) else {
                return Err(bad_description("a length is not a whole number"));
            };
            if key == refinement::LENGTH_MIN {
                known.length_min = Some(length);
            } else {
                known.length_max = Some(length);
            }
        }
        // Refinements of later versions are skipped.
        _ => from.skip(0)?,
    }
    Ok(false)
}

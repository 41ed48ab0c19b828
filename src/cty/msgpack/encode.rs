//! Encoding of values as msgpack.

use std::borrow::Cow;

use super::{CodecError, MAX_REFINEMENT_BYTES, REFINED, refinement};
use crate::codec::as_type;
use crate::refine::safe_prefix;
use crate::{Kind, Number, Refinements, Step, Type, Value, json};

/// Limit on the encoded part of a known prefix, in bytes.
const MAX_PREFIX_BYTES: usize = 256;

/// Encodes a value as this type; marks are an error. A value of another type is converted first.
pub fn encode(value: &Value, ty: &Type) -> Result<Vec<u8>, CodecError> {
    // Enough for most objects: growing from nothing would be five allocations.
    let mut out = Vec::with_capacity(256);
    write(as_type(value, ty)?.as_ref(), ty, &mut out)?;
    Ok(out)
}

fn write(value: &Value, ty: &Type, out: &mut Vec<u8>) -> Result<(), CodecError> {
    // The encoding has no marks, so values with marks, such as secrets, are refused.
    if !value.marks().is_empty() {
        return Err(CodecError::new("value has marks, so it cannot be serialized"));
    }
    if *ty == Type::Dynamic && *value.ty() != Type::Dynamic {
        write_array_length(2, out);
        // As Terraform's encoder, which writes types as bytes, not as text.
        write_bytes(json::type_text(value.ty()).as_bytes(), out);
        return write(value, value.ty(), out);
    }
    match (value.kind(), ty) {
        (Kind::Unknown(known), _) => write_unknown(known.as_deref(), out),
        (Kind::Null, _) => out.push(0xc0),
        (Kind::Bool(b), Type::Bool) => out.push(if *b { 0xc3 } else { 0xc2 }),
        (Kind::Number(n), Type::Number) => write_number(n, out),
        (Kind::String(s), Type::String) => write_str(s, out),
        (Kind::Seq(items), Type::List(element) | Type::Set(element)) => {
            write_array_length(items.len(), out);
            for (i, item) in items.iter().enumerate() {
                write(item, element, out).map_err(|e| {
                    let set = matches!(ty, Type::Set(_));
                    e.under(Step::Index(if set { item.clone() } else { Value::number(i) }))
                })?;
            }
        }
        (Kind::Seq(items), Type::Tuple(types)) if items.len() == types.len() => {
            write_array_length(items.len(), out);
            for (i, (item, ty)) in items.iter().zip(types.iter()).enumerate() {
                write(item, ty, out).map_err(|e| e.under(Step::Index(Value::number(i))))?;
            }
        }
        (Kind::Map(items), Type::Map(element)) => {
            write_map_length(items.len(), out);
            for (key, item) in items.iter() {
                write_str(key, out);
                write(item, element, out).map_err(|e| e.under(Step::Index(Value::shared_string(key.clone()))))?;
            }
        }
        (Kind::Seq(items), Type::Object(o)) if items.len() == o.len() => {
            write_map_length(items.len(), out);
            for (attribute, item) in o.attributes().iter().zip(items.iter()) {
                write_str(&attribute.name, out);
                write(item, &attribute.ty, out).map_err(|e| e.under(Step::Attribute(attribute.name.clone())))?;
            }
        }
        _ => return Err(CodecError::new(format!("{} required", ty.friendly_name()))),
    }
    Ok(())
}

fn write_number(n: &Number, out: &mut Vec<u8>) {
    // As in Terraform's encoder, a fraction that a double holds exactly is a double, and any other is text. Whole
    // numbers beyond 64 bits are text, too.
    if let Some(n) = n.to_i64() {
        write_int(n, out);
    } else if let Some(n) = n.to_f64_exact().filter(|_| !n.is_integer()) {
        out.push(0xcb);
        out.extend(n.to_be_bytes());
    } else {
        write_str(&n.to_string(), out);
    }
}

fn write_int(n: i64, out: &mut Vec<u8>) {
    // Each number is written in its shortest format, as by Go's cty.
    match n {
        0..=0x7f => out.push(n as u8),
        0x80..=0xff => out.extend([0xcc, n as u8]),
        0x100..=0xffff => {
            out.push(0xcd);
            out.extend((n as u16).to_be_bytes());
        }
        0x1_0000..=0xffff_ffff => {
            out.push(0xce);
            out.extend((n as u32).to_be_bytes());
        }
        0x1_0000_0000.. => {
            out.push(0xcf);
            out.extend(n.to_be_bytes());
        }
        -32..=-1 => out.push(n as i8 as u8),
        -0x80..=-33 => out.extend([0xd0, n as i8 as u8]),
        -0x8000..=-0x81 => {
            out.push(0xd1);
            out.extend((n as i16).to_be_bytes());
        }
        -0x8000_0000..=-0x8001 => {
            out.push(0xd2);
            out.extend((n as i32).to_be_bytes());
        }
        _ => {
            out.push(0xd3);
            out.extend(n.to_be_bytes());
        }
    }
}

fn write_str(s: &str, out: &mut Vec<u8>) {
    match s.len() {
        n @ 0..=31 => out.push(0xa0 | n as u8),
        n => write_length(n, Some(0xd9), 0xda, 0xdb, out),
    }
    out.extend(s.as_bytes());
}

fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    write_length(bytes.len(), Some(0xc4), 0xc5, 0xc6, out);
    out.extend(bytes);
}

fn write_array_length(n: usize, out: &mut Vec<u8>) {
    if n < 16 {
        out.push(0x90 | n as u8)
    } else {
        write_length(n, None, 0xdc, 0xdd, out)
    }
}

fn write_map_length(n: usize, out: &mut Vec<u8>) {
    if n < 16 {
        out.push(0x80 | n as u8)
    } else {
        write_length(n, None, 0xde, 0xdf, out)
    }
}

/// Writes a length in one, two or four bytes after its code. Messages are far below four gigabytes.
fn write_length(n: usize, one: Option<u8>, two: u8, four: u8, out: &mut Vec<u8>) {
    match (n, one) {
        (0..=0xff, Some(code)) => out.extend([code, n as u8]),
        (0..=0xffff, _) => {
            out.push(two);
            out.extend((n as u16).to_be_bytes());
        }
        _ => {
            out.push(four);
            out.extend((n as u32).to_be_bytes());
        }
    }
}

fn write_unknown(known: Option<&Refinements>, out: &mut Vec<u8>) {
    let mut body = Vec::new();
    let mut count = 0;
    if let Some(known) = known {
        if known.not_null {
            count += 1;
            write_int(refinement::NULLNESS, &mut body);
            body.push(0xc2);
        }
        for (key, bound) in [
            (refinement::NUMBER_MIN, &known.number_min),
            (refinement::NUMBER_MAX, &known.number_max),
        ] {
            if let Some((n, inclusive)) = bound {
                count += 1;
                write_int(key, &mut body);
                write_array_length(2, &mut body);
                write_number(n, &mut body);
                body.push(if *inclusive { 0xc3 } else { 0xc2 });
            }
        }
        if let Some(prefix) = &known.prefix {
            // The refinement only says how the text begins, so a shorter prefix is also correct.
            let prefix = if prefix.len() > MAX_PREFIX_BYTES {
                let cut = (0..MAX_PREFIX_BYTES)
                    .rev()
                    .find(|at| prefix.is_char_boundary(*at))
                    .unwrap_or(0);
                Cow::Owned(safe_prefix(&prefix[..cut]))
            } else {
                Cow::Borrowed(&**prefix)
            };
            if !prefix.is_empty() {
                count += 1;
                write_int(refinement::PREFIX, &mut body);
                write_str(&prefix, &mut body);
            }
        }
        for (key, length) in [
            (refinement::LENGTH_MIN, known.length_min),
            (refinement::LENGTH_MAX, known.length_max),
        ] {
            if let Some(length) = length.and_then(|n| i64::try_from(n).ok()) {
                count += 1;
                write_int(key, &mut body);
                write_int(length, &mut body);
            }
        }
    }
    let length = body.len() + 1;
    // The refinements would be too large to be decoded, and an unknown value without refinements is still
    // correct.
    if count == 0 || length > MAX_REFINEMENT_BYTES {
        out.extend([0xd4, 0, 0]);
        return;
    }
    // Extensions of 1, 2, 4, 8 and 16 bytes have codes of their own, without a length.
    match length {
        1 => out.push(0xd4),
        2 => out.push(0xd5),
        4 => out.push(0xd6),
        8 => out.push(0xd7),
        16 => out.push(0xd8),
        n => write_length(n, Some(0xc7), 0xc8, 0xc9, out),
    }
    out.push(REFINED);
    write_map_length(count, out);
    out.extend(body);
}
